package runner

import (
	"crypto/sha256"
	"fmt"
	"io"
	"sync"
)

const (
	stdinLimit  = 1 << 20 // bytes accepted and not yet taken by the command
	stdinChunk  = 64 << 10
	writesKept  = 128  // write ids remembered for a replay
	endOfInput  = 0x04 // what a terminal's line discipline takes as the end (termios(3), VEOF)
	writeIDSize = 128  // bytes
)

// WriteRequest gives a command input. A write is accepted whole or not at all.
type WriteRequest struct {
	ProcessID string `json:"process_id"`
	Data      []byte `json:"-"`
	Close     bool   `json:"close,omitempty"`    // no more input after this
	WriteID   string `json:"write_id,omitempty"` // the same id again is the same write
}

// WriteResult says how much was accepted. Accepted is not yet read.
type WriteResult struct {
	Accepted int  `json:"accepted_bytes"`
	Replayed bool `json:"replayed"`
}

// stdin is the bounded queue between clients and a command that may never read.
type stdin struct {
	to       io.Writer
	terminal bool         // the end of input is a character, not a close
	midLine  bool         // what was written last does not end a line; the pump's alone
	close    func() error // of a pipe

	wake chan struct{} // holds one: there is something to do
	stop chan struct{} // closed when the command has ended

	mu     sync.Mutex // guards what follows
	queue  []byte
	taken  int // bytes of the chunk being written
	closed bool
	over   bool
	writes map[string][32]byte
	sizes  map[string]int
	order  []string
}

func newStdin(to io.WriteCloser, terminal bool) *stdin {
	return &stdin{to: to, terminal: terminal, close: to.Close, wake: make(chan struct{}, 1), stop: make(chan struct{}),
		writes: map[string][32]byte{}, sizes: map[string]int{}}
}

// accept queues a write.
func (s *stdin) accept(r WriteRequest) (WriteResult, error) {
	sum := sha256.Sum256(fmt.Appendf(r.Data[:len(r.Data):len(r.Data)], "%v", r.Close))
	s.mu.Lock()
	defer s.mu.Unlock()
	if seen, ok := s.writes[r.WriteID]; ok && r.WriteID != "" {
		if seen != sum {
			return WriteResult{}, &Fault{Code: InvalidArgument, Message: "write_id was used for other data", Next: "use a new write_id"}
		}
		return WriteResult{Accepted: s.sizes[r.WriteID], Replayed: true}, nil
	}
	switch pending := len(s.queue) + s.taken; {
	case s.over:
		return WriteResult{}, notRunning(r.ProcessID)
	case s.closed:
		return WriteResult{}, &Fault{Code: InvalidArgument, Message: "standard input was closed", Next: "start another process"}
	case len(r.Data) > stdinLimit-pending:
		return WriteResult{}, &Fault{Code: LimitExceeded, Retryable: true,
			Message: fmt.Sprintf("%d bytes wait to be read by the command, at most %d", pending, stdinLimit),
			Next:    "wait until it reads, or send less", Details: map[string]any{"pending": pending, "limit": stdinLimit}}
	}
	s.queue = append(s.queue, r.Data...)
	s.closed = r.Close
	s.remember(r.WriteID, sum, len(r.Data))
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return WriteResult{Accepted: len(r.Data)}, nil
}

func (s *stdin) remember(id string, sum [32]byte, n int) {
	if id == "" {
		return
	}
	if len(s.order) == writesKept {
		delete(s.writes, s.order[0])
		delete(s.sizes, s.order[0])
		s.order = s.order[1:]
	}
	s.writes[id], s.sizes[id], s.order = sum, n, append(s.order, id)
}

// pump moves what was accepted to the command until it ends.
func (s *stdin) pump() {
	for {
		chunk, last := s.next()
		if len(chunk) > 0 {
			if _, err := s.to.Write(chunk); err != nil {
				return // the command closed its side or is gone
			}
			last := chunk[len(chunk)-1]
			s.midLine = last != '\n' && last != '\r' && last != endOfInput
			continue
		}
		if last {
			s.endInput()
			return
		}
		select {
		case <-s.wake:
		case <-s.stop:
			return
		}
	}
}

func (s *stdin) next() (chunk []byte, last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(len(s.queue), stdinChunk)
	chunk, s.queue, s.taken = s.queue[:n:n], s.queue[n:], n
	return chunk, s.closed
}

func (s *stdin) endInput() {
	if s.terminal && s.midLine { // one only hands the line over as it is (termios(3))
		s.to.Write([]byte{endOfInput})
	}
	if s.terminal {
		s.to.Write([]byte{endOfInput})
		return
	}
	s.close()
}

// end is called when the command has ended: nothing is accepted any more.
func (s *stdin) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.over = true
		close(s.stop)
	}
}

func notRunning(id string) *Fault {
	return &Fault{Code: ProcessNotRunning, Message: "process " + quoteID(id) + " has exited", Next: "read what is left of its output, or start another"}
}

// Write gives a process input.
func (r *Runner) Write(req WriteRequest) (WriteResult, error) {
	p, err := r.find(req.ProcessID)
	if err != nil {
		return WriteResult{}, err
	}
	if len(req.WriteID) > writeIDSize {
		return WriteResult{}, &Fault{Code: InvalidArgument, Message: fmt.Sprintf("write_id is longer than %d bytes", writeIDSize)}
	}
	if p.attached {
		return WriteResult{}, &Fault{Code: InvalidArgument, Message: "the process has the caller's own standard input"}
	}
	return p.stdin.accept(req)
}
