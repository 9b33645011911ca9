package sandbox_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	"codespace/policy"
	"codespace/sandbox"
	"codespace/sandbox/message"

	"golang.org/x/sys/unix"
)

// goodPlan is a plan with every field set.
func goodPlan() sandbox.Plan {
	return sandbox.Plan{
		ID: "a-1", Workspace: "site", Digest: "sha256:00",
		Root:     sandbox.Root{Path: "/srv/site", Device: 1 << 40, Inode: 1 << 60},
		Identity: sandbox.Identity{HostUID: 200001, HostGID: 200002, DiskUID: 1000, DiskGID: 1001, StartingUID: 3},
		Writable: true, Debug: true,
		Mounts:   []sandbox.Bind{{Source: "/opt/sdk", Target: "/opt/sdk"}},
		Caches:   []sandbox.Bind{{Source: "/var/lib/codespace/caches/site/npm", Target: "/home/sandbox/.npm"}},
		Limits:   policy.Limits{Wall: time.Minute, Grace: time.Second, Memory: 1 << 26, PIDs: 64, Processes: 4, Output: 1 << 16, OpenFiles: 256, FileSize: 1 << 20},
		Enforce:  policy.Strict,
		TmpBytes: 1 << 26, ShmBytes: 1 << 25,
	}
}

// forbidden is a builder that must not be asked for anything.
func forbidden(t *testing.T) sandbox.Builder {
	return sandbox.Builder{
		Prepare: func(p sandbox.Plan) (sandbox.Receipt, *os.File, error) {
			t.Errorf("asked to prepare %+v", p)
			return sandbox.Receipt{}, nil, errors.New("forbidden")
		},
		Cell: func(id string, w sandbox.Wish) (sandbox.Made, error) {
			t.Errorf("asked for a cell of %s", id)
			return sandbox.Made{}, nil
		},
		Release: func(id string) error {
			t.Errorf("asked to release %s", id)
			return nil
		},
	}
}

// serve runs the helper's side over a real pair and returns the runner's end and
// what the service ends with. It has ended, and closed what it held, when the
// test has.
func serve(t *testing.T, b sandbox.Builder) (*os.File, <-chan error) {
	t.Helper()
	ours, theirs, err := message.Pair()
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() {
		defer close(served)
		served <- sandbox.Serve(theirs, b)
	}()
	t.Cleanup(func() {
		ours.Close()
		for range served {
		}
	})
	return ours, served
}

// connect is serve with a client in front of it.
func connect(t *testing.T, b sandbox.Builder) (*sandbox.Helper, <-chan error) {
	t.Helper()
	ours, served := serve(t, b)
	return client(t, ours), served
}

func client(t *testing.T, ours *os.File) *sandbox.Helper {
	t.Helper()
	h, err := sandbox.NewHelper(ours)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close(); <-h.Done() })
	return h
}

// peer is a helper played by the test, one message at a time.
type peer struct {
	t *testing.T
	*message.Channel
}

// pretend is a client whose helper is played by the test.
func pretend(t *testing.T) (*sandbox.Helper, peer) {
	t.Helper()
	ours, theirs, err := message.Pair()
	if err != nil {
		t.Fatal(err)
	}
	ch, err := message.New(theirs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ch.Close() })
	return client(t, ours), peer{t, ch}
}

// request is the next one, as the format of the protocol has it.
func (p peer) request() (r struct {
	Version int             `json:"version"`
	ID      uint64          `json:"id"`
	Verb    string          `json:"verb"`
	Plan    json.RawMessage `json:"plan"`
	Sandbox string          `json:"sandbox"`
}) {
	p.t.Helper()
	b, files, err := p.Receive(make([]byte, message.MaxBytes))
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil || len(files) != 0 || r.Version != 3 || r.ID == 0 {
		p.t.Errorf("request %s with %d descriptors: %v", b, len(files), err)
	}
	return r
}

// answer answers a request, with n descriptors.
func (p peer) answer(id uint64, n int) {
	p.t.Helper()
	var files []*os.File
	for range n {
		f, err := os.Open(os.DevNull)
		if err != nil {
			p.t.Fatal(err)
		}
		files = append(files, f)
	}
	defer message.CloseAll(files)
	if err := p.Send(fmt.Appendf(nil, `{"id":%d}`, id), files...); err != nil {
		p.t.Error(err)
	}
}

// await returns what comes, or fails the test.
func await[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(20 * time.Second):
		t.Fatal("nothing comes")
		panic("unreachable")
	}
}

// descriptors counts what is open.
func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// settles waits until no more descriptors are open than that. Some are closed
// behind the call that brought them, and that is no event.
func settles(t *testing.T, before int) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(10 * time.Second); descriptors(t) > before; <-tick.C {
		if time.Now().After(end) {
			t.Errorf("%d descriptors before, %d after", before, descriptors(t))
			return
		}
	}
}

// withoutCollector keeps the garbage collector from closing what was forgotten.
func withoutCollector(t *testing.T) {
	old := debug.SetGCPercent(-1)
	t.Cleanup(func() { debug.SetGCPercent(old) })
}

// child is a process that lives until its standard input ends, with its pidfd.
type child struct {
	cmd   *exec.Cmd
	pidfd *os.File
	gone  chan struct{}
}

func start(t *testing.T) child {
	t.Helper()
	fd := -1
	c := child{cmd: exec.Command("cat"), gone: make(chan struct{})}
	c.cmd.SysProcAttr = &unix.SysProcAttr{PidFD: &fd}
	stdin, err := c.cmd.StdinPipe()
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	c.pidfd = os.NewFile(uintptr(fd), "pidfd")
	go func() { c.cmd.Wait(); close(c.gone) }()
	t.Cleanup(func() { stdin.Close(); <-c.gone; c.pidfd.Close() })
	return c
}

func duplicate(t *testing.T, f *os.File) *os.File {
	t.Helper()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fd), f.Name())
}

func deviceOf(info os.FileInfo) string { return fmt.Sprint(info.Sys().(*syscall.Stat_t).Dev) }
