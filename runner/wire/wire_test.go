package wire_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"codespace/runner"
	"codespace/runner/wire"
)

const digest = "sha256:feed"

// patience bounds every wait of a test that only a bug makes long.
const patience = 20 * time.Second

// idle is a handler that does nothing.
func idle() wire.Handler {
	return wire.Handler{
		Exec: func(_ context.Context, _ runner.ExecRequest, files []*os.File) (runner.ExecResult, error) {
			closeFiles(files)
			return runner.ExecResult{}, nil
		},
		Read:      func(context.Context, runner.ReadRequest) (runner.ReadResult, error) { return runner.ReadResult{}, nil },
		Status:    func(context.Context, string) (runner.Status, error) { return runner.Status{}, nil },
		Terminate: func(context.Context, string) error { return nil },
		Signal:    func(context.Context, string, int) error { return nil },
		Support:   func(context.Context, string) (runner.Support, error) { return runner.Support{}, nil },
		Subscribe: func(func(runner.Ended)) {},
	}
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

func listen(t testing.TB) (*net.UnixListener, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, path
}

// serve runs a server and returns where, and how it ends.
func serve(t testing.TB, peer wire.Peer, h wire.Handler) (string, <-chan error) {
	t.Helper()
	l, path := listen(t)
	return path, serveOn(t, t.Context(), l, peer, h)
}

// serveOn does not outlive the test: other tests count descriptors.
func serveOn(t testing.TB, ctx context.Context, l *net.UnixListener, peer wire.Peer, h wire.Handler) <-chan error {
	served, gone := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(gone)
		served <- wire.Serve(ctx, l, peer, h)
	}()
	t.Cleanup(func() { await(t, gone) })
	return served
}

// pretend is a runner that plays script to its one connection. It does not
// outlive the test either.
func pretend(t testing.TB, script func(raw)) string {
	t.Helper()
	l, path := listen(t)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		socket, err := l.AcceptUnix()
		l.Close()
		if err != nil {
			return
		}
		defer socket.Close()
		socket.SetDeadline(time.Now().Add(patience))
		script(raw{t, socket})
	}()
	t.Cleanup(func() {
		l.Close()
		await(t, gone)
	})
	return path
}

// connect serves h to a client of its own.
func connect(t testing.TB, h wire.Handler, onEnded func(runner.Ended)) *wire.Client {
	t.Helper()
	path, served := serve(t, wire.Peer{PID: os.Getpid(), Digest: digest}, h)
	c, err := wire.Dial(t.Context(), path, digest, onEnded)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		<-c.Done()
		await(t, served)
	})
	return c
}

func await[T any](t testing.TB, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatal("nothing happened")
		panic("unreachable")
	}
}

// raw is a peer that keeps to no protocol.
type raw struct {
	t      testing.TB
	socket *net.UnixConn
}

func dialRaw(t testing.TB, path string) raw {
	t.Helper()
	socket, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	socket.SetDeadline(time.Now().Add(patience))
	return raw{t, socket}
}

// packed is a frame as documented, built by hand.
func packed(header string, body ...byte) []byte {
	p := binary.BigEndian.AppendUint32(nil, uint32(4+len(header)+len(body)))
	p = binary.BigEndian.AppendUint32(p, uint32(len(header)))
	return append(append(p, header...), body...)
}

const (
	goodHello = `{"kind":"hello","magic":"codespace-runner","version":1,"digest":"` + digest + `"}`
	goodExec  = `{"kind":"exec","id":1,"payload":{"process_id":"proc_1","workspace_id":"w","policy_digest":"","access":"read","argv":null}}`
)

var goodArgv = []byte("\x00\x00\x00\x04true")

func (r raw) send(p []byte) raw {
	r.socket.Write(p) // a peer that hangs up early is what many tests are about
	return r
}

// frame returns the next frame's header, or the error instead.
func (r raw) frame() string {
	var prefix [8]byte
	if _, err := io.ReadFull(r.socket, prefix[:]); err != nil {
		return err.Error()
	}
	rest := make([]byte, binary.BigEndian.Uint32(prefix[:4])-4)
	if _, err := io.ReadFull(r.socket, rest); err != nil {
		return err.Error()
	}
	return string(rest[:binary.BigEndian.Uint32(prefix[4:])])
}

// greeted is a raw client whose handshake is done.
func greeted(t testing.TB, path string) raw {
	t.Helper()
	r := dialRaw(t, path).send(packed(goodHello))
	if h := r.frame(); h[:14] != `{"kind":"hello` {
		t.Fatalf("greeted with %s", h)
	}
	return r
}

func code(err error) runner.Code {
	var fault *runner.Fault
	if errors.As(err, &fault) {
		return fault.Code
	}
	return ""
}

func uncertain(err error) bool {
	var u *wire.Uncertain
	return errors.As(err, &u)
}

// descriptors counts this process's own, the one that counts included.
func descriptors(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
