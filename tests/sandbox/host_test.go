package sandbox_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"codespace/policy"
	"codespace/sandbox"
	"codespace/sandbox/message"
	"codespace/tests/need"

	"golang.org/x/sys/unix"
)

// soon bounds what has to happen at all, on a machine that may be busy.
const soon = 30 * time.Second

func TestMain(m *testing.M) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, "cannot become a subreaper:", err)
		os.Exit(1)
	}
	code := m.Run()
	if left := children(); len(left) > 0 {
		fmt.Fprintln(os.Stderr, "still running after the tests:", left)
		code = 1
	}
	os.Exit(code)
}

// children are the processes whose parent is this one, zombies too.
func children() []int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	var pids []int
	for _, name := range stats {
		b, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		if parent, _ := strconv.Atoi(f[1]); parent == os.Getpid() {
			pid, _ := strconv.Atoi(string(b[:bytes.IndexByte(b, ' ')]))
			pids = append(pids, pid)
		}
	}
	return pids
}

// reap waits until no process is left that a dead helper left to this one. It is
// called when nothing else of this process's runs.
func reap(t *testing.T) {
	t.Helper()
	for pids := children(); len(pids) > 0; pids = children() {
		for _, pid := range pids {
			awaitPID(t, pid)
			var status unix.WaitStatus
			unix.Wait4(pid, &status, unix.WNOHANG, nil)
		}
	}
}

func awaitPID(t *testing.T, pid int) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	awaitPIDFD(t, fd)
}

func awaitPIDFD(t *testing.T, fd int) {
	t.Helper()
	if n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(soon.Milliseconds())); n != 1 {
		info, _ := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd))
		var pid string
		for line := range strings.Lines(string(info)) {
			if v, is := strings.CutPrefix(line, "Pid:"); is {
				pid = strings.TrimSpace(v)
			}
		}
		for _, name := range []string{"cmdline", "stat", "wchan", "syscall", "stack"} { // why it is
			b, _ := os.ReadFile(filepath.Join("/proc", pid, name))
			t.Logf("%s: %s", name, bytes.ReplaceAll(b, []byte{0}, []byte(" ")))
		}
		t.Fatalf("still running: %s", info)
	}
}

// program is one running codespace-helper, with the ends of its protocol and of
// the lifeline.
type program struct {
	t        *testing.T
	cmd      *exec.Cmd
	socket   *os.File
	lifeline *os.File
	stage    string
	prefix   string // of the ids of its sandboxes
	stderr   bytes.Buffer
	gone     chan struct{}
	once     sync.Once
}

var started atomic.Int64

// launchHelper starts a helper, behind a command that execs its arguments if one
// is given. When the test ends it must end by itself and leave nothing.
func launchHelper(t *testing.T, wrap ...string) *program {
	t.Helper()
	binary := need.Binary(t, "codespace-helper")
	need.UserNamespaces(t)
	base, err := os.MkdirTemp("/tmp", "codespace-sandbox-test-")
	if err == nil {
		err = os.Chmod(base, 0o711) // the sandbox's user walks through it to its view
	}
	p := &program{t: t, stage: filepath.Join(base, "stage"), prefix: fmt.Sprintf("test-%d-%d", os.Getpid(), started.Add(1)), gone: make(chan struct{})}
	if err == nil {
		err = os.Mkdir(p.stage, 0o711)
	}
	ours, theirs, perr := message.Pair()
	lifeline, hangup, lerr := os.Pipe()
	if err != nil || perr != nil || lerr != nil {
		t.Fatal(err, perr, lerr)
	}
	args := append(wrap, binary, "serve", p.stage)
	p.cmd = exec.Command(args[0], args[1:]...)
	p.cmd.Env = []string{}
	p.cmd.Stderr = &p.stderr
	p.cmd.ExtraFiles = []*os.File{theirs, lifeline}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	p.socket, p.lifeline = ours, hangup
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	lifeline.Close()
	go func() { p.cmd.Wait(); close(p.gone) }()
	t.Cleanup(p.end)
	return p
}

// end waits for a helper whose runner is gone, and looks at what it left.
func (p *program) end() {
	p.once.Do(func() {
		p.socket.Close()
		p.await(p.gone)
		p.lifeline.Close()
		if state := p.cmd.ProcessState; state.Exited() && state.ExitCode() != 0 || p.stderr.Len() > 0 {
			p.t.Errorf("the helper ended with %v: %s", state, &p.stderr)
		}
		p.leftovers()
	})
}

func (p *program) await(done <-chan struct{}) {
	p.t.Helper()
	select {
	case <-done:
	case <-time.After(soon):
		p.t.Fatal("it does not end")
	}
}

// leftovers fails for whatever is left on the host of a helper that is gone.
func (p *program) leftovers() {
	p.t.Helper()
	if b, err := os.ReadFile("/proc/self/mountinfo"); err != nil || bytes.Contains(b, []byte(p.stage)) {
		p.t.Errorf("a mount is left: %v\n%s", err, b)
	}
	if groups := p.groups(); len(groups) > 0 {
		p.t.Errorf("cgroups are left: %q", groups)
	}
	for _, dir := range []string{p.stage, filepath.Dir(p.stage)} {
		if err := unix.Rmdir(dir); err != nil {
			p.t.Errorf("cannot remove %s: %v", dir, err)
		}
	}
}

// groups are the cgroups of its sandboxes.
func (p *program) groups() []string {
	var found []string
	for _, dir := range (sandbox.Host{}).Groups() {
		match, _ := filepath.Glob(filepath.Join(dir, sandbox.Plan{ID: p.prefix + "-*"}.GroupName()))
		found = append(found, match...)
	}
	return found
}

// helper is a program with a client in front of it.
type helper struct {
	*program
	*sandbox.Helper
	made int
}

func startHelper(t *testing.T, wrap ...string) *helper {
	t.Helper()
	p := launchHelper(t, wrap...)
	c, err := sandbox.NewHelper(p.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() }) // before end
	return &helper{program: p, Helper: c}
}

// ids counts the host ids that these tests have taken, above the default range.
var ids atomic.Int64

// plan is a plan of a sandbox for a directory as a runner makes it.
func (p *program) plan(dir string, change ...func(*policy.Workspace)) sandbox.Plan {
	p.t.Helper()
	w := policy.Workspace{
		ID: "w", Root: dir, Access: policy.AccessWrite, Enforcement: policy.BestEffort, Environment: policy.Environment{Name: "host", Kind: policy.KindHost},
		Limits: policy.Limits{Memory: 512 << 20, PIDs: 256, OpenFiles: 512, Processes: 8},
	}
	for _, c := range change {
		c(&w)
	}
	plan := sandbox.NewPlan(policy.Grant{Workspace: w, Digest: "sha256:test"}, "", "/state")
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		p.t.Fatal(err)
	}
	plan.Root = sandbox.Root{Path: dir, Device: st.Dev, Inode: st.Ino}
	plan.Identity = (sandbox.Host{}).Starter()
	plan.Identity.DiskUID, plan.Identity.DiskGID = int(st.Uid), int(st.Gid)
	if (sandbox.Host{}).Root() {
		id := 1_900_100_000 + os.Getpid()%100_000*100 + int(ids.Add(1))%100
		plan.Identity.HostUID, plan.Identity.HostGID = id, id
	}
	return plan
}

// box is a sandbox that stands.
type box struct {
	*helper
	plan    sandbox.Plan
	receipt sandbox.Receipt
}

// try prepares a plan under an id of its own.
func (h *helper) try(p sandbox.Plan) (box, error) {
	h.t.Helper()
	h.made++
	p.ID = fmt.Sprintf("%s-%d", h.prefix, h.made)
	ctx, cancel := context.WithTimeout(h.t.Context(), soon)
	defer cancel()
	r, err := h.Prepare(ctx, p)
	return box{h, p, r}, err
}

func (h *helper) prepare(p sandbox.Plan) box {
	h.t.Helper()
	b, err := h.try(p)
	if err != nil {
		h.t.Fatalf("cannot prepare: %v\n%s", err, &h.stderr)
	}
	return b
}

// cell makes a cell, which is put away with the test.
func (b box) cell(writable bool) *sandbox.Cell {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), soon)
	defer cancel()
	c, err := b.Cell(ctx, b.plan.ID, sandbox.Wish{Writable: writable})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(c.Close) // before the client's end
	return c
}

// workspace is a fresh directory of the user's.
func workspace(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "workspace")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}
