package sandbox_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"codespace/policy"
	"codespace/sandbox"

	"golang.org/x/sys/unix"
)

// A sandbox is prepared, a cell made, a command launched; what it wrote is on the
// host, as the workspace's owner.
func TestPrepareCellLaunch(t *testing.T) {
	h := startHelper(t)
	dir := workspace(t)
	b := h.prepare(h.plan(dir))
	if b.receipt.Digest == "" || !layers(b.receipt, "seccomp") || !layers(b.receipt, "capabilities: none") {
		t.Errorf("%+v", b.receipt)
	}
	c := b.cell(true)
	if c.Receipt.Digest != b.receipt.Digest || c.PID == 0 {
		t.Errorf("%+v", c)
	}
	cmd, err := b.launch(c, []string{"sh", "-c", `echo "$@"; pwd; id -u; echo $$; cat >in; echo done >&2`, "sh", "a b", "", "é\n"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a b  é", "", dir, "1000", "2"} {
		if got := cmd.line(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	fmt.Fprint(cmd.stdin, "from outside")
	cmd.stdin.Close()
	if got := cmd.line(); got != "done" {
		t.Errorf("%q", got)
	}
	cmd.exit()
	if got := read(t, filepath.Join(dir, "in")); got != "from outside" {
		t.Errorf("the file holds %q", got)
	}
	var root, file unix.Stat_t
	if err := errors.Join(unix.Stat(dir, &root), unix.Stat(filepath.Join(dir, "in"), &file)); err != nil || file.Uid != root.Uid || file.Gid != root.Gid {
		t.Errorf("owner %d:%d of a file in a workspace of %d:%d, %v", file.Uid, file.Gid, root.Uid, root.Gid, err)
	}
}

// Exit status, signal and usage are the argv's own, whatever its children do.
func TestStatusAndUsage(t *testing.T) {
	h := startHelper(t)
	dir := workspace(t)
	probe(t, dir)
	b := h.prepare(h.plan(dir))
	for script, want := range map[string]string{
		"exit 0": "exit 0", "exit 7": "exit 7", "exit 255": "exit 255", "kill -9 $$": "killed", "kill -TERM $$": "terminated", "kill -SEGV $$": "segmentation fault",
		"(exit 9) & wait; exit 3": "exit 3", "(sleep 0.1; exit 9) & exit 4": "exit 4",
	} {
		c := b.start(true, script)
		exited, _ := c.exit()
		got := fmt.Sprint("exit ", exited.Status.ExitStatus())
		if exited.Status.Signaled() {
			got = exited.Status.Signal().String()
		}
		if got != want {
			t.Errorf("%s: %s", script, got)
		}
		c.Close()
	}
	c := b.start(true, "exec ./probe spend 64 200")
	exited, empty := c.exit()
	if exited.CPU < 150*time.Millisecond || exited.CPU > time.Minute || exited.MaxRSS < 64<<20 || exited.MaxRSS > 256<<20 || empty.CPU < exited.CPU {
		t.Errorf("64 MiB and 200 ms are told as %+v, then %+v", exited, empty)
	}
	if spent := c.Leaf.Spent(); c.Leaf.Memory != "" && spent.PeakMemory < 64<<20 {
		t.Errorf("64 MiB are counted as %+v", spent)
	}
}

func TestLaunchThatFails(t *testing.T) {
	h := startHelper(t)
	dir := workspace(t)
	write(t, filepath.Join(dir, "text"), "text")
	write(t, filepath.Join(dir, "script"), "#!/absent\n")
	write(t, filepath.Join(dir, "binary"), "\x7fELF nothing")
	os.Chmod(filepath.Join(dir, "script"), 0o755)
	os.Chmod(filepath.Join(dir, "binary"), 0o755)
	b := h.prepare(h.plan(dir))
	for argv0, want := range map[string]sandbox.Failure{
		"absent":           {Step: "exec", Errno: int(syscall.ENOENT), Reason: "not found"},
		"./absent":         {Step: "exec", Errno: int(syscall.ENOENT), Reason: "not found"},
		"":                 {Step: "exec", Errno: int(syscall.ENOENT), Reason: "not found"},
		"./text":           {Step: "exec", Errno: int(syscall.EACCES), Reason: "not executable"},
		"./script":         {Step: "exec", Errno: int(syscall.ENOENT), Reason: "missing interpreter"},
		"./binary":         {Step: "exec", Errno: int(syscall.ENOEXEC), Reason: "bad format"},
		"/usr":             {Step: "exec", Errno: int(syscall.EACCES), Reason: "is a directory"},
		"nul\x00is inside": {Step: "launch", Errno: int(syscall.EPROTO), Reason: "malformed"},
	} {
		want.Launch = true
		var f *sandbox.Failure
		c := b.cell(true)
		if _, err := b.launch(c, []string{argv0}); !errors.As(err, &f) || *f != want {
			t.Errorf("%q: %v", argv0, err)
		}
		c.Gone() // by itself
	}
	var f *sandbox.Failure
	long := strings.Repeat("x", 200<<10) // longer than one argument may be (execve(2))
	if _, err := b.launch(b.cell(true), []string{"true", long}); !errors.As(err, &f) || f.Reason != "too long" {
		t.Errorf("an argument of 200 KiB: %v", err)
	}
	b.says("5000 131071\n", `echo $# ${#1}`, append([]string{"sh", strings.Repeat("x", 131071)}, make([]string, 4999)...)...)
}

// A signal reaches the argv's process group, or every process.
func TestSignalsPass(t *testing.T) {
	h := startHelper(t)
	b := h.prepare(h.plan(workspace(t)))
	const script = `trap "echo caught" USR1
		setsid sh -c 'trap "echo also" USR1; echo ready; while :; do sleep 1000 & wait; done' &
		echo ready; while :; do sleep 1000 & wait; done`
	c := b.start(true, script)
	c.line()
	c.line()
	c.Signal(int(unix.SIGUSR1), false)
	if got := c.line(); got != "caught" {
		t.Errorf("to the group: %q", got)
	}
	c.Signal(int(unix.SIGUSR1), true)
	if got := map[string]bool{c.line(): true, c.line(): true}; !got["caught"] || !got["also"] {
		t.Errorf("to the tree: %v", got)
	}
	c.Signal(int(unix.SIGKILL), true)
	if exited, _ := c.exit(); exited.Status.Signal() != unix.SIGKILL {
		t.Errorf("killed, it says %v", exited.Status)
	}
	c = b.start(true, `echo ready; kill -STOP $$; exit 5`) // a stopped one is continued by what ends it
	c.line()
	c.Signal(int(unix.SIGTERM), true)
	if exited, _ := c.exit(); exited.Status.Signal() != unix.SIGTERM {
		t.Errorf("stopped and ended, it says %v", exited.Status)
	}
}

// What a request asks for beyond the plan, or of no sandbox, is refused, and the
// sandbox goes on.
func TestRequestsRefused(t *testing.T) {
	h := startHelper(t)
	dir := workspace(t)
	b := h.prepare(h.plan(dir, func(w *policy.Workspace) { w.Access = policy.AccessRead }))
	var f *sandbox.Failure
	if _, err := h.Cell(t.Context(), b.plan.ID, sandbox.Wish{Writable: true}); !errors.As(err, &f) || f.Step != "cell" {
		t.Errorf("write access to a read-only workspace: %v", err)
	}
	if _, err := h.Cell(t.Context(), "absent", sandbox.Wish{}); !errors.As(err, &f) || !strings.Contains(f.Reason, "no sandbox") {
		t.Errorf("a cell of no sandbox: %v", err)
	}
	if _, err := h.Prepare(t.Context(), b.plan); !errors.As(err, &f) || f.Errno != int(syscall.EEXIST) {
		t.Errorf("a second sandbox of one id: %v", err)
	}
	if err := h.Release(t.Context(), "absent"); err != nil {
		t.Errorf("what is gone is no error: %v", err)
	}
	if got, status := b.run(false, "echo works"); got != "works\n" || status != 0 {
		t.Errorf("%q, %d", got, status)
	}
}
