package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"codespace/gateway"

	"golang.org/x/term"
)

func onTerminal() bool { return term.IsTerminal(int(os.Stdin.Fd())) }

// terminalGone reports whether standard input was a terminal that has hung up.
func terminalGone() bool {
	_, err := term.GetState(int(os.Stdin.Fd()))
	return errors.Is(err, syscall.EIO)
}

// terminal makes our terminal the command's: raw, so that every key reaches it,
// and of the same size, now and after each change. restore undoes it, once.
func (r *oneRun) terminal(id string) (restore func(), err error) {
	if !onTerminal() {
		return func() {}, nil
	}
	fd := int(os.Stdin.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return nil, fmt.Errorf("cannot set the terminal: %w", err)
	}
	changes := make(chan os.Signal, 1)
	signal.Notify(changes, syscall.SIGWINCH)
	go func() {
		for range changes {
			r.follow(id, fd)
		}
	}()
	r.follow(id, fd)
	return sync.OnceFunc(func() {
		signal.Stop(changes)
		close(changes)
		term.Restore(fd, before)
	}), nil
}

// follow gives the command's terminal the size of ours. One that has ended needs none.
func (r *oneRun) follow(id string, fd int) {
	if cols, rows, err := term.GetSize(fd); err == nil && rows > 0 && cols > 0 {
		r.Resize(context.Background(), cli, gateway.Resize{ProcessID: id, Rows: rows, Cols: cols})
	}
}
