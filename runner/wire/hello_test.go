package wire_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"codespace/runner"
	"codespace/runner/wire"
	"codespace/tests/need"
)

// forbidden is a handler that fails the test when it is asked anything.
func forbidden(t *testing.T) wire.Handler {
	h := idle()
	h.Exec = func(_ context.Context, _ runner.ExecRequest, files []*os.File) (runner.ExecResult, error) {
		t.Error("an exec was executed")
		closeFiles(files)
		return runner.ExecResult{}, nil
	}
	h.Subscribe = func(func(runner.Ended)) { t.Error("a stranger was let in") }
	return h
}

// Whatever greets wrongly is told why and does no work, even with a perfect
// request right behind the greeting.
func TestServerRefusesGreeting(t *testing.T) {
	hello := func(from, to string) []byte { return packed(strings.Replace(goodHello, from, to, 1)) }
	cases := map[string]struct {
		greeting []byte
		reason   string
	}{
		"older version":     {hello(`"version":1`, `"version":0`), "protocol version 0, not 1"},
		"newer version":     {hello(`"version":1`, `"version":2,"news":[1]`), "protocol version 2, not 1"},
		"wrong magic":       {hello(`codespace-runner`, `codespace-helper`), "magic"},
		"other registry":    {hello(digest, "sha256:dead"), "registry digest"},
		"request at once":   {packed(goodExec, goodArgv...), "not a greeting"},
		"garbage":           {[]byte("GET /mcp HTTP/1.1\r\n\r\n"), "more than 4096"},
		"huge length":       {[]byte("\xff\xff\xff\xff\x00\x00\x00\x00"), "more than 4096"},
		"16 MiB of hello":   {[]byte("\x01\x00\x00\x00\x00\x00\x00\x00"), "more than 4096"},
		"header too long":   {[]byte("\x00\x00\x00\x08\x00\x00\x00\x05abcd"), "header of 5 bytes"},
		"length below 4":    {[]byte("\x00\x00\x00\x03\x00\x00\x00\x00"), "frame of 3"},
		"no JSON":           {packed("hello"), "not a greeting"},
		"greeting and body": {packed(goodHello, 'x'), "not a greeting"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			path, served := serve(t, wire.Peer{Digest: digest}, forbidden(t))
			r := dialRaw(t, path).send(append(c.greeting, packed(goodExec, goodArgv...)...))
			if answer := r.frame(); !strings.Contains(answer, `"kind":"refused"`) || !strings.Contains(answer, c.reason) {
				t.Errorf("answered %s", answer)
			}
			if err := await(t, served); err == nil || !strings.Contains(err.Error(), c.reason) {
				t.Errorf("served: %v", err)
			}
		})
	}
}

func TestClientRefusesGreeting(t *testing.T) {
	cases := map[string]struct {
		greeting []byte
		reason   string
	}{
		"older version":  {packed(strings.Replace(goodHello, `"version":1`, `"version":0`, 1)), "protocol version 0"},
		"newer version":  {packed(strings.Replace(goodHello, `"version":1`, `"version":2`, 1)), "protocol version 2"},
		"newer refusal":  {packed(`{"kind":"refused","magic":"codespace-runner","version":2,"reason":"too old"}`), "refused: too old"},
		"wrong magic":    {packed(`{"kind":"hello","magic":"x","version":1}`), "magic"},
		"garbage":        {[]byte("SSH-2.0-OpenSSH_9.2\r\n"), "more than 4096"},
		"answer at once": {packed(`{"kind":"answer","id":1}`), "magic"},
		"nothing":        {nil, "EOF"},
		"half":           {packed(goodHello)[:30], "EOF"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			path := pretend(t, func(r raw) {
				r.frame()
				r.send(c.greeting)
			})
			_, err := wire.Dial(t.Context(), path, digest, nil)
			var fault *runner.Fault
			if !errors.As(err, &fault) || fault.Code != runner.RunnerUnavailable || fault.Retryable {
				t.Fatalf("dialled: %v", err)
			}
			if !strings.Contains(err.Error(), c.reason) || strings.Contains(fault.Error(), path) {
				t.Errorf("dialled: %v", err)
			}
		})
	}
}

func TestDialNobody(t *testing.T) {
	_, err := wire.Dial(t.Context(), t.TempDir()+"/s", digest, nil)
	var fault *runner.Fault
	if !errors.As(err, &fault) || fault.Code != runner.RunnerUnavailable || strings.Contains(fault.Error(), "/") {
		t.Fatal(err)
	}
}

// A runner that never greets does not hold a caller whose context ends.
func TestDialGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	path := pretend(t, func(r raw) {
		r.frame()
		cancel()
		r.frame() // until the client hangs up
	})
	if _, err := wire.Dial(ctx, path, digest, nil); code(err) != runner.RunnerUnavailable {
		t.Fatal(err)
	}
}

// A stranger's pid is refused and does not use up the one connection.
func TestServerRefusesPID(t *testing.T) {
	l, path := listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	served := serveOn(t, ctx, l, wire.Peer{PID: os.Getpid() + 1, Digest: digest}, forbidden(t))
	for range 3 {
		_, err := wire.Dial(t.Context(), path, digest, nil)
		if code(err) != runner.RunnerUnavailable || !strings.Contains(err.Error(), "may not connect") {
			t.Fatal(err)
		}
	}
	cancel()
	if err := await(t, served); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// stranger returns a connection made with another uid. Credentials are the
// thread's, so the thread is given up with them.
func stranger(t *testing.T, path string) raw {
	t.Helper()
	sockets := make(chan int)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		fd, _ := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		unix.RawSyscall(unix.SYS_SETRESUID, 65534, 65534, 65534)
		if err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
			t.Errorf("cannot connect as a stranger: %v", err)
		}
		sockets <- fd
	}()
	f := os.NewFile(uintptr(<-sockets), "stranger")
	defer f.Close()
	socket, err := net.FileConn(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	return raw{t, socket.(*net.UnixConn)}
}

func TestServerRefusesUID(t *testing.T) {
	need.Root(t) // only root can be somebody else
	dir, err := os.MkdirTemp("", "wire")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	os.Chmod(dir, 0o755)
	os.Chmod(path, 0o666)
	served := serveOn(t, t.Context(), l, wire.Peer{Digest: digest}, idle())
	if answer := stranger(t, path).frame(); !strings.Contains(answer, "uid 65534 may not connect") {
		t.Fatalf("answered %s", answer)
	}
	greeted(t, path).socket.Close() // we still may
	if err := await(t, served); err != nil {
		t.Fatal(err)
	}
}

// A second connection finds nobody, whether it comes before or after the first
// has been greeted, and the first does not notice.
func TestSecondConnectionRefused(t *testing.T) {
	l, path := listen(t)
	first, queued := dialRaw(t, path), dialRaw(t, path)
	queued.send(append(packed(goodHello), packed(goodExec, goodArgv...)...))
	h := idle()
	h.Exec = forbidden(t).Exec
	served := serveOn(t, t.Context(), l, wire.Peer{Digest: digest}, h)
	first.send(packed(goodHello))
	if answer := first.frame(); !strings.Contains(answer, `"hello"`) {
		t.Fatal(answer)
	}
	if answer := queued.frame(); strings.HasPrefix(answer, "{") {
		t.Fatalf("the second was answered %s", answer)
	}
	if _, err := wire.Dial(t.Context(), path, digest, nil); code(err) != runner.RunnerUnavailable {
		t.Fatalf("the third dialled: %v", err)
	}
	if answer := first.send(packed(`{"kind":"ping","id":5}`)).frame(); !strings.Contains(answer, `"id":5`) {
		t.Fatalf("the first was answered %s", answer)
	}
	first.socket.Close()
	if err := await(t, served); err != nil {
		t.Fatal(err)
	}
}

func TestServeEndsWithContext(t *testing.T) {
	l, path := listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	served := serveOn(t, ctx, l, wire.Peer{Digest: digest}, idle())
	c, err := wire.Dial(t.Context(), path, digest, nil)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := await(t, served); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	await(t, c.Done())
}
