package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
)

// streams passes our standard streams to a command through pipes of its own: a
// sandbox never holds a descriptor of ours, which could be a terminal or a file.
type streams struct {
	theirs [3]*os.File
	ours   [3]*os.File
	out    sync.WaitGroup
}

func openStreams() (*streams, error) {
	var s streams
	for i := range s.ours {
		var p [2]int
		if err := syscall.Pipe2(p[:], syscall.O_CLOEXEC); err != nil {
			return nil, fmt.Errorf("cannot make a pipe: %w", err)
		}
		theirs, ours := p[0], p[1]
		if i > 0 {
			theirs, ours = p[1], p[0]
		}
		// Ours goes through the poller; theirs must block, as programs expect.
		if err := syscall.SetNonblock(ours, true); err != nil {
			return nil, fmt.Errorf("cannot make a pipe: %w", err)
		}
		s.theirs[i], s.ours[i] = os.NewFile(uintptr(theirs), "stream"), os.NewFile(uintptr(ours), "stream")
	}
	return &s, nil
}

// started closes the command's ends here and begins to copy.
func (s *streams) started() {
	for _, f := range s.theirs {
		f.Close()
	}
	go func() {
		io.Copy(s.ours[0], os.Stdin)
		s.ours[0].Close()
	}()
	for i, to := range []*os.File{1: os.Stdout, 2: os.Stderr} {
		if i > 0 {
			s.out.Go(func() { passOn(to, s.ours[i]) })
		}
	}
}

// passOn copies until the command's side ends. When ours ends first, the command
// is told by the next write, as in any pipeline.
func passOn(to, from *os.File) {
	io.Copy(to, from)
	from.Close()
}

// drain waits until everything the command wrote is passed on. The command's
// tree is gone, so both pipes are at their end.
func (s *streams) drain() { s.out.Wait() }
