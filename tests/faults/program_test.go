package faults_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"codespace/tests/need"

	"golang.org/x/sys/unix"
)

// place is where one test works: a workspace and a state directory of its own.
type place struct {
	workspace, state string
	bin              string // directory of the programs
}

func newPlace(t testing.TB) place {
	t.Helper()
	need.UserNamespaces(t)
	dir := t.TempDir()
	p := place{workspace: filepath.Join(dir, "ws"), state: filepath.Join(dir, "state")}
	p.bin = filepath.Dir(need.Binary(t, "codespace"))
	for _, d := range []string{p.workspace, p.state} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// codespace is the command line of a verb with the flags every test gives.
func (p place) codespace(verb string, more ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(p.bin, "codespace"), append([]string{verb, "-w", p.workspace}, more...)...)
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+p.state)
	return cmd
}

// run is codespace run of a command, to its end.
func (p place) run(t testing.TB, argv ...string) *program {
	t.Helper()
	r := start(t, p.codespace("run", append([]string{"--"}, argv...)...))
	r.wait(t, time.Minute)
	return r
}

// file is a path in the workspace.
func (p place) file(name string) string { return filepath.Join(p.workspace, name) }

func (p place) has(name string) bool {
	_, err := os.Lstat(p.file(name))
	return err == nil
}

// buffer is a bytes.Buffer that may be read while it is written.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// program is one that was started here. It is killed when its test ends.
type program struct {
	cmd            *exec.Cmd
	stdout, stderr buffer
	over           chan struct{}
}

// start starts a program and collects what it writes, unless the command says
// where that goes.
func start(t testing.TB, cmd *exec.Cmd) *program {
	t.Helper()
	p := &program{cmd: cmd, over: make(chan struct{})}
	if cmd.Stdout == nil {
		cmd.Stdout = &p.stdout
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &p.stderr
	}
	cmd.WaitDelay = time.Second // a process that is left must not hold this test
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		cmd.Wait()
		close(p.over)
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-p.over
	})
	return p
}

func (p *program) pid() int { return p.cmd.Process.Pid }

func (p *program) ended() bool {
	select {
	case <-p.over:
		return true
	default:
		return false
	}
}

// wait returns the exit status as a shell has it: 128 and the signal's number
// for one that a signal ended.
func (p *program) wait(t testing.TB, limit time.Duration) int {
	t.Helper()
	select {
	case <-p.over:
	case <-time.After(limit):
		t.Errorf("%v still runs after %v; stderr: %s", p.cmd.Args, limit, &p.stderr)
		for _, q := range append(below(p.pid()), process{pid: p.pid()}) {
			unix.Kill(q.pid, unix.SIGKILL)
		}
		<-p.over
	}
	return p.status()
}

func (p *program) status() int {
	w := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if w.Signaled() {
		return 128 + int(w.Signal())
	}
	return w.ExitStatus()
}

func touch(t testing.TB, name string) {
	t.Helper()
	if err := os.WriteFile(name, nil, 0o644); err != nil {
		t.Fatal(err)
	}
}
