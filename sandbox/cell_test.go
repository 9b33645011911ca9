package sandbox_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"codespace/sandbox"
	"codespace/sandbox/message"
)

// played is a cell whose PID 1 is played by the test; the process behind its
// pidfd is real.
type played struct {
	*sandbox.Cell
	child
	pid1 *message.Channel
}

func play(t *testing.T) played {
	t.Helper()
	c := start(t)
	ours, theirs, err := message.Pair()
	if err != nil {
		t.Fatal(err)
	}
	b := forbidden(t)
	b.Cell = func(string, sandbox.Wish) (sandbox.Made, error) {
		return sandbox.Made{PID: c.cmd.Process.Pid, Files: []*os.File{theirs, duplicate(t, c.pidfd)}}, nil
	}
	h, _ := connect(t, b)
	cell, err := h.Cell(t.Context(), "a", sandbox.Wish{Writable: true})
	if err != nil {
		t.Fatal(err)
	}
	pid1, err := message.New(ours)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cell.Close(); pid1.Close() })
	return played{cell, c, pid1}
}

// answers sends one message and returns what came before it.
func (p played) answers(t *testing.T, m message.Message) <-chan message.Message {
	seen := make(chan message.Message, 1)
	go func() {
		b, files, err := p.pid1.Receive(make([]byte, message.MaxBytes))
		got, bad := message.Decode(bytes.Clone(b))
		if err != nil || bad != nil || len(files) < 3 {
			t.Errorf("%x with %d descriptors: %v", b, len(files), errors.Join(err, bad))
		}
		if len(files) == 4 {
			got, bad = message.Decode(contentOf(t, files[3], got.Number(message.TagBody)))
			if bad != nil {
				t.Error(bad)
			}
		}
		message.CloseAll(files)
		p.pid1.Send(m.Encode())
		seen <- got
	}()
	return seen
}

func contentOf(t *testing.T, f *os.File, length uint64) []byte {
	b, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<30))
	if err != nil || uint64(len(b)) != length {
		t.Errorf("a memfd of %d bytes, announced were %d: %v", len(b), length, err)
	}
	return b
}

func null(t *testing.T) [3]*os.File {
	t.Helper()
	f, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return [3]*os.File{f, f, f}
}

// A launch is the same message in a datagram and, when it is long, in a memfd.
func TestLaunchShortAndLong(t *testing.T) {
	for _, size := range []int{1, 40 << 10, 48 << 10, 70 << 10, 1 << 20} {
		p := play(t)
		l := sandbox.Launch{Argv: []string{"prog", strings.Repeat("x", size)}, Env: []string{"A=1", "B="}, Cwd: "/srv/site", Files: null(t)}
		seen := p.answers(t, message.Message{Kind: message.KindStarted})
		if err := p.Launch(l); err != nil {
			t.Fatal(err)
		}
		want := message.Message{Kind: message.KindLaunch}
		want.String(message.TagArg, l.Argv[0]).String(message.TagArg, l.Argv[1]).String(message.TagEnv, "A=1").String(message.TagEnv, "B=")
		want.String(message.TagCwd, l.Cwd)
		if got := await(t, seen); !bytes.Equal(got.Encode(), want.Encode()) {
			t.Errorf("%d bytes: another launch arrived", size)
		}
	}
}

func TestLaunchThatDoesNotStart(t *testing.T) {
	failed := message.Message{Kind: message.KindFailed}
	failed.String(message.TagStep, "exec").Uint32(message.TagErrno, uint32(syscall.ENOENT)).String(message.TagReason, "not found")
	launch := sandbox.Launch{Argv: []string{"x"}, Cwd: "/", Files: null(t)}
	p := play(t)
	p.answers(t, failed)
	var f *sandbox.Failure
	if err := p.Launch(launch); !errors.As(err, &f) || *f != (sandbox.Failure{Step: "exec", Errno: int(syscall.ENOENT), Reason: "not found", Launch: true}) {
		t.Errorf("%#v", f)
	}
	p = play(t)
	p.answers(t, message.Message{Kind: message.KindEmpty})
	if err := p.Launch(launch); err == nil || !strings.Contains(err.Error(), "answered 11") {
		t.Errorf("another answer: %v", err)
	}
	p = play(t)
	p.pid1.Close()
	if err := p.Launch(launch); err == nil {
		t.Error("launched by nobody")
	}
}

// Events are told in order; what is none is an error, and descriptors from a cell
// are closed.
func TestEvents(t *testing.T) {
	withoutCollector(t)
	p, files := play(t), null(t)
	before := descriptors(t)
	exited := message.Message{Kind: message.KindExited}
	exited.Uint32(message.TagStatus, 3<<8).Uint64(message.TagCPU, 1500).Uint64(message.TagMaxRSS, 4096)
	for _, m := range []message.Message{exited, {Kind: message.KindEmpty}, {Kind: message.KindReady}} {
		p.pid1.Send(m.Encode(), files[:]...)
	}
	p.pid1.Send([]byte("garbage"), files[:]...)
	p.pid1.Close()
	e, err := p.Next()
	if err != nil || e.Empty || !e.Status.Exited() || e.Status.ExitStatus() != 3 || e.CPU != 1500*time.Microsecond || e.MaxRSS != 4096 {
		t.Errorf("%+v, %v", e, err)
	}
	if e, err := p.Next(); err != nil || !e.Empty || e.Status != 0 {
		t.Errorf("%+v, %v", e, err)
	}
	for range 2 {
		if e, err := p.Next(); err == nil || err == io.EOF {
			t.Errorf("%+v, %v", e, err)
		}
	}
	if _, err := p.Next(); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
	settles(t, before-1) // pid1 is closed
}

func TestSignalMessages(t *testing.T) {
	p := play(t)
	for _, tree := range []bool{false, true} {
		if err := p.Signal(15, tree); err != nil {
			t.Fatal(err)
		}
		b, _, err := p.pid1.Receive(make([]byte, 100))
		if err != nil {
			t.Fatal(err)
		}
		m, err := message.Decode(b)
		if err != nil || m.Kind != message.KindSignal || m.Number(message.TagSignal) != 15 || (m.Number(message.TagTree) == 1) != tree {
			t.Errorf("%x: %v", b, err)
		}
	}
	p.pid1.Close()
	if err := p.Signal(15, true); err != nil {
		t.Errorf("an ended cell is no error: %v", err)
	}
}

// Kill ends the process, Gone waits for it, and Close does both, once.
func TestKillAndGone(t *testing.T) {
	p := play(t)
	gone := make(chan struct{})
	go func() { p.Gone(); close(gone) }()
	select {
	case <-gone:
		t.Fatal("gone while it runs")
	default:
	}
	p.Kill()
	await(t, gone)
	<-p.gone
	p.Kill() // of nobody
	p.Gone()
	p.Cell.Close()
	p.Cell.Close()
	p.Kill()
	p.Gone()

	p = play(t)
	closed := make(chan struct{})
	go func() { p.Cell.Close(); close(closed) }()
	await(t, closed)
	await(t, p.gone)
}

// A tree is named for good: not by a pid alone, which is used again.
func TestTreeNamesOneProcess(t *testing.T) {
	p := play(t)
	tree := p.Tree
	if tree.PID != p.cmd.Process.Pid || tree.Birth == 0 {
		t.Fatalf("%+v", tree)
	}
	again := tree
	again.Birth++
	done := make(chan string, 4)
	for name, other := range map[string]sandbox.Tree{"another birth": again, "no birth": {PID: tree.PID}, "no process": {PID: 1 << 30, Birth: 1}, "nothing": {}} {
		go func() { other.AwaitGone(time.Hour); done <- name }()
	}
	for range 4 {
		await(t, done)
	}
	go func() { tree.AwaitGone(0); done <- "no patience" }()
	await(t, done)
	go func() { tree.AwaitGone(time.Hour); done <- "it" }()
	p.Kill()
	if got := await(t, done); got != "it" {
		t.Error(got)
	}
}
