package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// streams passes our standard streams to a command through pipes of its own: a
// sandbox never holds a descriptor of ours, which could be a terminal or a file.
type streams struct {
	theirs [3]*os.File
	ours   [3]*os.File
	out    sync.WaitGroup
	ended  atomic.Bool           // the command is gone
	lost   atomic.Pointer[error] // why output was not passed on
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
			s.out.Go(func() { s.pass(to, s.ours[i]) })
		}
	}
}

// pass copies until the command's side ends. When ours ends first, the command is
// told by its next write, as in any pipeline; another error of ours is kept.
func (s *streams) pass(to, from *os.File) {
	defer from.Close()
	for b := make([]byte, 64<<10); ; {
		if s.ended.Load() { // anew for each read: a slow reader of ours loses nothing
			from.SetReadDeadline(time.Now().Add(lingerFor))
		}
		n, err := from.Read(b)
		if _, werr := to.Write(b[:n]); werr != nil {
			if !errors.Is(werr, syscall.EPIPE) {
				s.lost.CompareAndSwap(nil, &werr)
			}
			return
		}
		if err != nil && !(errors.Is(err, os.ErrDeadlineExceeded) && n > 0) {
			return // the end, or nothing for a while after the command's own end
		}
	}
}

// lingerFor is how long output may be held open by a descriptor that travelled to
// another command after this one has ended.
const lingerFor = time.Second

// drain waits until everything the command wrote is passed on. Its error is that of
// a standard stream of ours that did not take it.
func (s *streams) drain() error {
	s.ended.Store(true)
	for _, f := range s.ours[1:] {
		f.SetReadDeadline(time.Now().Add(lingerFor))
	}
	s.out.Wait()
	if err := s.lost.Load(); err != nil {
		return fmt.Errorf("cannot pass the command's output on: %w", *err)
	}
	return nil
}
