package sandbox

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"codespace/sandbox/message"

	"golang.org/x/sys/unix"
)

// inlineBytes is the longest launch sent as one datagram; a longer one goes in a
// sealed memfd.
const inlineBytes = 48 << 10

// Cell is one locked-down PID 1 that waits for a launch, and the command after
// it. It is used once.
type Cell struct {
	Receipt Receipt
	Leaf    Leaf
	PID     int // of its PID 1, as this process names it
	Tree    Tree

	// Terminal is the master of the command's pseudo-terminal, 24 by 80; nil if it
	// has none. Close does not close it: what was written to it may still be read.
	Terminal *os.File

	ch    *message.Channel
	pidfd *os.File
	buf   []byte
	once  sync.Once
}

// Event is what a cell tells after Started.
type Event struct {
	Empty  bool            // no process is left; false: the argv's own end
	Status unix.WaitStatus // the argv's wait status
	CPU    time.Duration   // user plus system, of everything reaped so far
	MaxRSS int64           // bytes, of the largest process reaped so far
}

func newCell(a answer, w Wish) (*Cell, error) {
	want := 2
	if w.Terminal {
		want = 3
	}
	if len(a.files) != want {
		message.CloseAll(a.files)
		return nil, fmt.Errorf("cannot use cell: %d descriptors came with it, want %d", len(a.files), want)
	}
	ch, err := message.New(a.files[0])
	if err != nil {
		message.CloseAll(a.files)
		return nil, err
	}
	c := &Cell{Receipt: a.reply.Receipt, Leaf: a.reply.Leaf, PID: a.reply.PID, ch: ch}
	c.Tree = Tree{PID: c.PID, Birth: birth(c.PID)}
	if c.pidfd, err = polled(a.files[1]); err == nil && w.Terminal {
		c.Terminal, err = polled(a.files[2])
	}
	if err != nil {
		message.CloseAll(append(a.files, c.pidfd)) // closing none is none
		ch.Close()
		return nil, err
	}
	return c, nil
}

// polled returns the same open file for use with the poller, which takes only
// non-blocking descriptors. It closes f.
func polled(f *os.File) (*os.File, error) {
	dup, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	f.Close()
	if err == nil {
		err = unix.SetNonblock(dup, true)
	}
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(dup), f.Name()), nil
}

// Launch is one command for a cell. Files are its stdin, stdout and stderr; a cell
// with a terminal has its own and takes none.
type Launch struct {
	Argv, Env []string
	Cwd       string
	Files     [3]*os.File
}

// Launch starts the command and returns once its own image runs. A *Failure
// with Launch set says why it does not, an *Unsure that it may have; the cell is
// spent either way.
func (c *Cell) Launch(l Launch) error {
	var files []*os.File
	if c.Terminal == nil {
		files = l.Files[:]
	}
	m := message.Message{Kind: message.KindLaunch}
	for _, a := range l.Argv {
		m.String(message.TagArg, a)
	}
	for _, e := range l.Env {
		m.String(message.TagEnv, e)
	}
	m.String(message.TagCwd, l.Cwd)
	b := m.Encode()
	if len(b) > inlineBytes {
		body, err := message.Sealed("launch", b)
		if err != nil {
			return err
		}
		defer body.Close()
		files = append(files, body)
		short := message.Message{Kind: message.KindLaunch}
		b = short.Uint64(message.TagBody, uint64(len(b))).Encode()
	}
	if err := c.ch.Send(b, files...); err != nil {
		return fmt.Errorf("cannot launch: %w", err)
	}
	r, err := c.receive()
	if err != nil {
		return &Unsure{err}
	}
	switch r.Kind {
	case message.KindStarted:
		return nil
	case message.KindFailed:
		f := FailureOf(r)
		f.Launch = true
		return f
	}
	return &Unsure{fmt.Errorf("the cell answered %d", r.Kind)}
}

// Unsure is a launch whose answer was lost: the command may have run. Kill ends
// what there is of it. It does not unwrap: its cause says nothing of the command.
type Unsure struct{ cause error }

func (u *Unsure) Error() string {
	return "cannot tell whether the command was started: " + u.cause.Error()
}

// Next returns the next event, io.EOF when PID 1 is gone.
func (c *Cell) Next() (Event, error) {
	m, err := c.receive()
	if err != nil {
		return Event{}, err
	}
	if m.Kind != message.KindExited && m.Kind != message.KindEmpty {
		return Event{}, fmt.Errorf("unexpected message %d from a cell", m.Kind)
	}
	return Event{
		Empty:  m.Kind == message.KindEmpty,
		Status: unix.WaitStatus(m.Number(message.TagStatus)),
		CPU:    time.Duration(m.Number(message.TagCPU)) * time.Microsecond,
		MaxRSS: int64(m.Number(message.TagMaxRSS)),
	}, nil
}

func (c *Cell) receive() (message.Message, error) {
	if c.buf == nil {
		c.buf = make([]byte, 4096) // what a cell sends is short
	}
	b, files, err := c.ch.Receive(c.buf)
	if err != nil {
		return message.Message{}, err
	}
	message.CloseAll(files) // a released cell has nothing to give
	return message.Decode(b)
}

// Signal sends a signal to every process of the cell (tree) or to the argv's
// process group. An ended cell is no error.
func (c *Cell) Signal(sig int, tree bool) error {
	m := message.Message{Kind: message.KindSignal}
	m.Uint32(message.TagSignal, uint32(sig))
	if tree {
		m.Uint32(message.TagTree, 1)
	}
	err := c.ch.Send(m.Encode())
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.ENOTCONN) {
		return nil
	}
	return err
}

// Ready reports whether PID 1 still waits for its launch.
func (c *Cell) Ready() bool {
	raw, err := c.pidfd.SyscallConn()
	alive := false
	if err == nil {
		raw.Control(func(fd uintptr) {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
			alive = n == 0 && err == nil
		})
	}
	return alive
}

// Kill ends every process of the cell at once. It does not wait; Gone does.
func (c *Cell) Kill() {
	raw, err := c.pidfd.SyscallConn()
	if err == nil {
		raw.Control(func(fd uintptr) { unix.PidfdSendSignal(int(fd), unix.SIGKILL, nil, 0) })
	}
	c.Leaf.Kill()
}

// Gone waits until PID 1, and with it every process of the cell, is gone.
// The kernel ends a pid namespace before its PID 1 becomes waitable
// (kernel/pid_namespace.c, zap_pid_ns_processes).
func (c *Cell) Gone() {
	raw, err := c.pidfd.SyscallConn()
	if err != nil {
		return
	}
	raw.Read(func(fd uintptr) bool {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(p, 0)
		return n > 0 || (err != nil && err != unix.EINTR)
	})
}

// Close kills what is left, waits for it to be gone, and frees the cell.
func (c *Cell) Close() {
	c.once.Do(func() {
		c.Kill()
		c.Gone()
		c.ch.Close()
		c.pidfd.Close()
		c.Leaf.Remove()
	})
}
