package sandbox

// The preparation protocol. The helper inherits one end of a SEQPACKET pair as
// descriptor 3; whichever side finds the other gone ends what it owns.
//
//	runner                               helper
//	  Prepare(plan) ───────────────────────▶  libcontainer builds the sandbox
//	  ◀── Prepared(receipt) + descriptor | Failed(step, index, errno, reason)
//	  Cell(sandbox, wish) ─────────────────▶  the factory clones, the cell locks
//	  ◀── Cell(receipt, leaf) + descriptors      itself down, the kernel's view
//	      | Failed(...)                          is read back
//	  Release(sandbox) ────────────────────▶  the factory ends, and all of it
//	  ◀──────────────────────────── Released
//	  PatchFilter ─────────────────────────▶  libseccomp compiles it
//	  ◀────────────────────── Filter(program)
//
// A sandbox comes with a pidfd of its PID 1, the factory: by it the runner ends a
// factory whose helper died and that does not notice (it may be stopped). A cell's
// descriptors are its own socket, a pidfd of its PID 1, and the master of its
// pseudo-terminal if the command is to have one. From there on the runner speaks to
// the cell alone, in the messages of package message:
//
//	runner                               cell (PID 1)
//	  Launch(argv, env, cwd) + streams ──▶
//	  ◀──────────────── Started | Failed(step, errno, reason)
//	  Signal(number, tree) ──▶             ◀── Exited(wait status, usage)
//	                                       ◀── Empty(usage), then the end
//
// A released cell sends no descriptor: the runner closes any that arrive.

import (
	"encoding/json"
	"fmt"
	"os"

	"codespace/sandbox/message"
)

// protocolVersion is the version of the preparation protocol. Each request
// carries it and another one is refused before any work.
const protocolVersion = 3

type verb string

const (
	verbPrepare verb = "prepare"
	verbCell    verb = "cell"
	verbRelease verb = "release"
	verbFilter  verb = "compile the filter of a patch helper"
)

// Wish is what a cell is asked to be.
type Wish struct {
	Writable bool `json:"writable,omitempty"` // it may change the workspace
	Terminal bool `json:"terminal,omitempty"` // its command gets a pseudo-terminal
}

type request struct {
	Version int    `json:"version"`
	ID      uint64 `json:"id"`
	Verb    verb   `json:"verb"`
	Plan    *Plan  `json:"plan,omitempty"`
	Sandbox string `json:"sandbox,omitempty"`
	Wish    Wish   `json:"wish,omitzero"`
}

type reply struct {
	ID      uint64   `json:"id"`
	Sandbox string   `json:"sandbox,omitempty"` // that was prepared
	Failed  *Failure `json:"failed,omitempty"`
	Receipt Receipt  `json:"receipt,omitzero"`
	Leaf    Leaf     `json:"leaf,omitzero"`
	PID     int      `json:"pid,omitempty"`
	Filter  []byte   `json:"filter,omitempty"`
}

// Made is a cell that is locked down. Files are its socket, the pidfd of its PID 1
// and the master of its terminal if it was asked to have one, in this order.
type Made struct {
	Receipt Receipt
	Leaf    Leaf
	PID     int // of its PID 1, in the pid namespace of helper and runner
	Files   []*os.File
}

// Builder is what a helper does for each request. Errors that are a *Failure
// cross as they are. The file of a sandbox is a pidfd of its PID 1.
type Builder struct {
	Prepare func(Plan) (Receipt, *os.File, error)
	Cell    func(sandbox string, w Wish) (Made, error)
	Release func(sandbox string) error

	PatchFilter func() ([]byte, error) // the system-call filter of a patch helper
}

// Serve answers requests on the inherited socket until the runner is gone.
// Requests are answered in any order. A malformed request, a descriptor or
// another version ends the service with an error: nothing it could mean is safe.
func Serve(f *os.File, b Builder) error {
	ch, err := message.New(f)
	if err != nil {
		return err
	}
	defer ch.Close()
	answers := make(chan answer)
	done := make(chan struct{})
	defer close(done)
	go sendAnswers(ch, answers, done)
	buf := make([]byte, message.MaxBytes)
	for {
		b0, files, err := ch.Receive(buf)
		if err != nil {
			return err
		}
		message.CloseAll(files)
		r, err := readRequest(b0, len(files))
		if err != nil {
			return err
		}
		go func() {
			a := b.answer(r)
			select {
			case answers <- a:
			case <-done:
				message.CloseAll(a.files)
			}
		}()
	}
}

type answer struct {
	reply reply
	files []*os.File
}

func sendAnswers(ch *message.Channel, answers <-chan answer, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case a := <-answers:
			b, err := json.Marshal(a.reply)
			if err == nil {
				err = ch.Send(b, a.files...)
			}
			message.CloseAll(a.files)
			if err != nil {
				ch.Close() // the reader sees it and ends the service
			}
		}
	}
}

func readRequest(b []byte, files int) (request, error) {
	var r request
	if err := json.Unmarshal(b, &r); err != nil {
		return r, fmt.Errorf("cannot read request: %w", err)
	}
	if r.Version != protocolVersion {
		return r, fmt.Errorf("cannot serve version %d of the preparation protocol: this helper speaks %d", r.Version, protocolVersion)
	}
	if files != 0 {
		return r, fmt.Errorf("cannot accept %d descriptors with a request", files)
	}
	return r, nil
}

func (b Builder) prepare(r request) (answer, error) {
	receipt, pidfd, err := b.Prepare(*r.Plan)
	if err != nil {
		return answer{reply: reply{ID: r.ID}}, err
	}
	return answer{reply: reply{ID: r.ID, Sandbox: r.Plan.ID, Receipt: receipt}, files: []*os.File{pidfd}}, nil
}

func (b Builder) answer(r request) answer {
	a := answer{reply: reply{ID: r.ID}}
	var err error
	switch {
	case r.Verb == verbPrepare && r.Plan != nil:
		if err = r.Plan.Check(); err == nil {
			a, err = b.prepare(r)
		}
	case r.Verb == verbCell:
		var m Made
		m, err = b.Cell(r.Sandbox, r.Wish)
		a.reply.Receipt, a.reply.Leaf, a.reply.PID, a.files = m.Receipt, m.Leaf, m.PID, m.Files
	case r.Verb == verbRelease:
		err = b.Release(r.Sandbox)
	case r.Verb == verbFilter:
		a.reply.Filter, err = b.PatchFilter()
	default:
		err = fmt.Errorf("cannot serve request %q", r.Verb)
	}
	if err != nil {
		a.reply.Failed = Fail(string(r.Verb), 0, err)
	}
	return a
}
