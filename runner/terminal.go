package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/creack/pty"
)

// maxCells bounds a terminal in each direction, in character cells.
const maxCells = 65535

// Resize changes the size of a process's terminal.
func (r *Runner) Resize(ctx context.Context, id string, rows, cols int) error {
	p, err := r.find(id)
	if err != nil {
		return err
	}
	p.mu.Lock() // held so that the terminal is not closed meanwhile
	defer p.mu.Unlock()
	switch {
	case p.status.State == Exited:
		return notRunning(id)
	case !p.tty:
		return &Fault{Code: ProcessNotTTY, Message: "process " + quoteID(id) + " has pipes, not a terminal", Next: "start it with tty"}
	case rows < 1 || rows > maxCells || cols < 1 || cols > maxCells:
		return &Fault{Code: InvalidArgument, Message: fmt.Sprintf("a terminal of %d rows and %d columns", rows, cols),
			Next: fmt.Sprintf("give 1 to %d for each", maxCells)}
	}
	err = pty.Setsize(p.cell.Terminal, &pty.Winsize{Rows: uint16(rows), Cols: uint16(cols)})
	if errors.Is(err, os.ErrClosed) {
		return notRunning(id) // its output has been passed on already
	}
	return err
}

// join connects the terminal with the caller's own streams, for codespace run,
// until nobody holds the command's side.
func (p *process) join() {
	go func() {
		io.Copy(p.cell.Terminal, p.from)
		p.from.Close()
	}()
	go func() {
		io.Copy(p.to, p.cell.Terminal) // EIO is its end
		p.to.Close()
		p.cell.Terminal.Close()
		p.from.Close()
	}()
}
