package wire_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"codespace/runner"
	"codespace/runner/wire"
)

// This binary is also the runner that the tests spawn: -as ROLE.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "-as" {
		act(os.Args[2])
		return
	}
	os.Exit(m.Run())
}

func act(role string) {
	signal.Ignore(syscall.SIGPIPE)
	switch role {
	case "dying":
		fmt.Fprintln(os.Stderr, "the registry is gone")
		os.Exit(3)
	case "silent":
		never := make(chan os.Signal, 1) // a bare select would be a deadlock to a runtime without cgo
		signal.Notify(never, syscall.SIGUSR1)
		<-never
	}
	l, _, err := wire.Inherited()
	if err != nil {
		log.Fatal(err)
	}
	err = wire.Serve(context.Background(), l, wire.Peer{PID: os.Getppid(), Digest: digest}, childHandler())
	if err != nil {
		log.Fatal(err)
	}
}

// childHandler reports its environment as layers, ends each process at once, and
// takes a signal as the number of descriptors it may still open.
func childHandler() wire.Handler {
	var tell func(runner.Ended)
	h := idle()
	h.Subscribe = func(f func(runner.Ended)) { tell = f }
	h.Support = func(context.Context, string) (runner.Support, error) {
		cwd, err := os.Getwd()
		sid, _ := unix.Getsid(0)
		return runner.Support{Layers: os.Environ(), Reason: cwd, Available: sid == os.Getpid()}, err
	}
	h.Exec = func(_ context.Context, r runner.ExecRequest, files []*os.File) (runner.ExecResult, error) {
		closeFiles(files)
		tell(runner.Ended{ProcessID: r.ProcessID, Workspace: r.Workspace})
		return runner.ExecResult{Started: time.Unix(1, 0)}, nil
	}
	h.Signal = func(_ context.Context, _ string, spare int) error {
		limit := unix.Rlimit{Max: 1024}
		for ; spare > 0; limit.Cur++ {
			if _, err := unix.FcntlInt(uintptr(limit.Cur), unix.F_GETFD, 0); err != nil {
				spare--
			}
		}
		return unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
	}
	return h
}

func program(t *testing.T, role string) wire.Program {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return wire.Program{Path: self, Args: []string{"-as", role}, Dir: dir, Digest: digest, Stderr: os.Stderr}
}

func spawn(t *testing.T, p wire.Program) *wire.Child {
	t.Helper()
	c, err := wire.Spawn(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Kill()
		c.Wait()
		await(t, c.Client.Done())
	})
	return c
}

func TestSpawn(t *testing.T) {
	t.Setenv("SECRET", "x")
	var ended []runner.Ended
	p := program(t, "serving")
	p.OnEnded = func(e runner.Ended) { ended = append(ended, e) }
	c := spawn(t, p)
	support, err := c.Client.Support(t.Context(), "w")
	if err != nil || support.Reason != "/" || !support.Available || strings.Contains(fmt.Sprint(support.Layers), "SECRET") {
		t.Errorf("the runner's surroundings: %+v, %v", support, err)
	}
	_, err = c.Client.Exec(t.Context(), runner.ExecRequest{ProcessID: "proc_1", Workspace: "w"}, nil)
	if err != nil || len(ended) != 1 || ended[0] != (runner.Ended{ProcessID: "proc_1", Workspace: "w"}) {
		t.Errorf("ended %v, %v", ended, err)
	}
	if left, _ := os.ReadDir(p.Dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	c.Client.Close()
	if err := c.Wait(); err != nil {
		t.Errorf("a runner whose gateway is gone: %v", err)
	}
}

func TestSpawnFails(t *testing.T) {
	missing, relative, open, dying, other, silent := program(t, "serving"), program(t, "serving"), program(t, "serving"), program(t, "dying"), program(t, "serving"), program(t, "silent")
	missing.Path = "/nonexistent"
	relative.Path = "runner"
	open.Dir = t.TempDir()
	os.Chmod(open.Dir, 0o755)
	other.Digest = "sha256:dead"
	long := program(t, "serving")
	long.Dir = filepath.Join(long.Dir, strings.Repeat("d", 100))
	os.Mkdir(long.Dir, 0o700)
	cases := map[string]struct {
		program wire.Program
		reason  string
	}{
		"missing":        {missing, "no such file"},
		"relative":       {relative, "not an absolute path"},
		"open directory": {open, "mode 0700"},
		"long path":      {long, "too long"},
		"dying":          {dying, `exit status 3, last words "the registry is gone\n"`},
		"other registry": {other, "registry digest"},
		"silent":         {silent, "signal: killed"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if name == "silent" {
				var cancel func()
				ctx, cancel = context.WithTimeout(ctx, 300*time.Millisecond)
				defer cancel()
			}
			before := descriptors(t)
			_, err := wire.Spawn(ctx, c.program)
			var fault *runner.Fault
			if !errors.As(err, &fault) || fault.Code != runner.RunnerUnavailable {
				t.Fatalf("spawned: %v", err)
			}
			if !strings.Contains(err.Error(), c.reason) || strings.Contains(fault.Error(), "/") {
				t.Errorf("for the operator: %v\nfor clients: %v", err, fault)
			}
			if after := descriptors(t); after != before {
				t.Errorf("%d descriptors before, %d after", before, after)
			}
			if left, _ := filepath.Glob(c.program.Dir + "/runner-*"); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// A stopped runner holds its connection open; only Watch notices.
func TestWatchNoticesStoppedRunner(t *testing.T) {
	c := spawn(t, program(t, "serving"))
	stalled := make(chan struct{})
	c.Client.Watch(time.Millisecond, time.Second, func() { close(stalled) })
	for range 10 {
		if err := c.Client.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-stalled:
		t.Fatal("a live runner was said to be stalled")
	default:
	}
	unix.Kill(c.PID(), unix.SIGSTOP)
	await(t, stalled)
	if err := c.Kill(); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := c.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("the runner ended: %v", err)
	}
	await(t, c.Client.Done())
	if err := c.Kill(); err != nil {
		t.Errorf("killed twice: %v", err)
	}
}

// A runner that can open no more descriptors refuses the request that brings
// some, for a while, and lives on.
func TestRunnerOutOfDescriptors(t *testing.T) {
	c := spawn(t, program(t, "serving"))
	ends := pipes(t, 4)
	for spare := range 4 {
		if err := c.Client.Signal(t.Context(), "", spare); err != nil {
			t.Fatal(err)
		}
		_, err := c.Client.Exec(t.Context(), runner.ExecRequest{Attached: true}, ends)
		var fault *runner.Fault
		if !errors.As(err, &fault) || fault.Code != runner.LimitExceeded || !fault.Retryable {
			t.Errorf("%d to spare: %v", spare, err)
		}
	}
	if err := c.Client.Signal(t.Context(), "", 4); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Client.Exec(t.Context(), runner.ExecRequest{Attached: true}, ends); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
