package sandbox_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"codespace/policy"
	"codespace/sandbox"
	"codespace/tests/need"

	"golang.org/x/sys/unix"
)

// changes are ways to change a workspace that has file and dir in it.
var changes = []string{
	"echo x >file", "echo x >>file", ": >new", "mkdir new", "rm file", "mv file new", "ln file new", "ln -s file new", "rmdir dir",
	"chmod 600 file", "touch file", "echo x >dir/new", "mkfifo new",
}

func changeable(t *testing.T) string {
	t.Helper()
	dir := workspace(t)
	write(t, filepath.Join(dir, "file"), "as it was")
	if err := os.Mkdir(filepath.Join(dir, "dir"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A command with read access changes nothing, in a workspace that may be written
// and in one that may not. The control is the same command with write access.
func TestReadAccessIsReadOnly(t *testing.T) {
	for _, access := range []policy.Access{policy.AccessWrite, policy.AccessRead} {
		h := startHelper(t)
		dir := changeable(t)
		b := h.prepare(h.plan(dir, func(w *policy.Workspace) { w.Access = access }))
		all := ""
		for _, change := range changes {
			all += fmt.Sprintf("( %s ) 2>&1 || echo refused\n", change)
		}
		out, _ := b.run(false, all)
		if got := strings.Count(out, "refused\n"); got != len(changes) || strings.Count(out, "Read-only file system") != len(changes) {
			t.Errorf("%s: %d of %d changes were refused: %s", access, got, len(changes), out)
		}
		if got, _ := b.run(false, "cat file; cat dir/new new; mount -o remount,rw,bind . && echo remounted; exit 0"); !strings.HasPrefix(got, "as it was") || strings.Contains(got, "remounted") {
			t.Errorf("%s: %s", access, got)
		}
		if entries, _ := os.ReadDir(dir); len(entries) != 2 {
			t.Errorf("%s: %v", access, entries)
		}
		if access == policy.AccessRead {
			continue
		}
		for _, change := range changes {
			fresh := h.prepare(h.plan(changeable(t)))
			if out, status := fresh.run(true, change); status != 0 {
				t.Errorf("not shown: with write access %q fails: %s", change, out)
			}
			if err := h.Release(t.Context(), fresh.plan.ID); err != nil {
				t.Error(err)
			}
		}
	}
}

// A command writes where it may and nowhere else.
func TestWhatCanBeWritten(t *testing.T) {
	h := startHelper(t)
	b := h.prepare(h.plan(workspace(t)))
	for _, dir := range []string{".", "/tmp", "/var/tmp", "/home/sandbox", "/dev/shm"} {
		b.says("", `echo x >"$1/new" && rm "$1/new"`, "sh", dir)
	}
	for _, dir := range []string{"/", "/usr", "/usr/bin", "/etc", "/dev", "/proc", "/proc/sys/kernel", "/home", "/var", "/run", "/root", "/sys", ".."} {
		if out, status := b.run(true, `echo x >"$1/new"`, "sh", dir); status == 0 {
			t.Errorf("%s was written: %s", dir, out)
		}
	}
}

// Two sandboxes of one helper see nothing of each other's. The controls are the
// command itself, and a second command of the same sandbox for what a sandbox
// shares among its commands.
func TestSandboxesAreApart(t *testing.T) {
	h := startHelper(t)
	one, two := workspace(t), workspace(t)
	probe(t, one)
	probe(t, two)
	a, b := h.prepare(h.plan(one)), h.prepare(h.plan(two))
	name := fmt.Sprintf("codespace-probe-%d", os.Getpid())
	holds := a.start(true, `name=$1; exec 3<&0
		echo x | tee /tmp/$name /dev/shm/$name ~/$name >/dev/null
		sleep 1000 $name 2>/dev/null & sh -c "sleep 1000; : $name" &
		./probe bind $name <&3 & ./probe make 77 <&3 & wait`, "sh", name)
	said := map[string]bool{holds.line(): true, holds.line(): true}
	if !said["bound"] || !said["made"] {
		t.Fatalf("not shown: %v", said)
	}
	attempts := []struct {
		script       string
		shared, seen string // what a command of the same sandbox and of another print
	}{
		{`cat /tmp/$1 2>&1`, "x", "No such file"},
		{`cat ~/$1 2>&1`, "x", "No such file"},
		{`./probe connect $1`, "connected", fmt.Sprint("errno ", int(unix.ECONNREFUSED))},
		{`cat /dev/shm/$1 2>&1`, "No such file", "No such file"},
		{`./probe find 77`, fmt.Sprint("errno ", int(unix.ENOENT)), fmt.Sprint("errno ", int(unix.ENOENT))},
		{`grep -l "[s]leep.1000; : $1" /proc/[0-9]*/cmdline | wc -l`, "0", "0"},
		{`kill -0 -1 2>&1 && echo somebody || echo nobody`, "nobody", "nobody"},
	}
	for _, try := range attempts {
		for _, from := range []struct {
			box
			want string
		}{{a, try.shared}, {b, try.seen}} {
			if out, _ := from.run(true, try.script, "sh", name); !strings.Contains(out, from.want) {
				t.Errorf("%s, from %s: %q, want %q", try.script, from.plan.ID, out, from.want)
			}
		}
	}
	if len(marked("sleep 1000; : "+name)) == 0 {
		t.Error("not shown: the host does not see the process either")
	}
	own := a.start(true, `: "sleep 1000; : mine"; ./probe make 78 </dev/null; echo x >/dev/shm/mine
		./probe find 78; cat /dev/shm/mine; grep -l "[s]leep.1000; : mine" /proc/[0-9]*/cmdline | wc -l`)
	said = map[string]bool{own.line(): true, own.line(): true, own.line(): true, own.line(): true}
	if !said["made"] || !said["found"] || !said["x"] || said["0"] {
		t.Errorf("not shown: a command does not see its own: %v", said)
	}
	if err := h.Release(t.Context(), a.plan.ID); err != nil {
		t.Error(err)
	}
	holds.Gone() // with its sandbox
	if left := marked(name); len(left) > 0 {
		t.Errorf("left of a released sandbox: %q", left)
	}
	b.says("still here\n", "echo still here")
}

// The device nodes are what their names say, and no other can be made.
func TestDeviceNodes(t *testing.T) {
	h := startHelper(t)
	b := h.prepare(h.plan(workspace(t)))
	b.says("fd\nfull\nnull\nptmx\npts\nrandom\nshm\nstderr\nstdin\nstdout\ntty\nurandom\nzero\n", "ls /dev")
	b.says("1:3 1:5 1:7 1:8 1:9 5:0 \n", `for n in null zero full random urandom tty; do printf '%d:%d ' $(stat -c '0x%t 0x%T' /dev/$n); done; echo`)
	b.says("4\n", "head -c 4 /dev/zero | wc -c; : >/dev/null")
	b.says("16\n", "head -c 16 /dev/urandom | wc -c")
	if out, status := b.run(true, "echo x >/dev/full"); status == 0 {
		t.Errorf("/dev/full took it: %s", out)
	}
	for _, node := range []string{"mknod n c 1 3", "mknod n b 8 0", "mknod /tmp/n c 1 1"} {
		if out, status := b.run(true, node); status == 0 {
			t.Errorf("%s: %s", node, out)
		}
	}
	b.says("", "mkfifo n") // the control
}

// A host whose /dev/null is something else gets no sandbox.
func TestReplacedDeviceIsRefused(t *testing.T) {
	need.Root(t)
	unshare := need.Command(t, "unshare")
	fake := filepath.Join(t.TempDir(), "null")
	write(t, fake, "")
	for node, script := range map[string]string{
		"/dev/null": `mount --bind "$0" /dev/null && exec "$@"`, // a file
		"/dev/full": `mount --bind /dev/zero /dev/full && exec "$@"`,
		"/dev/tty":  `mount --bind /dev/null /dev/tty && exec "$@"`,
	} {
		h := startHelper(t, unshare, "--mount", "sh", "-c", script, fake)
		_, err := h.try(h.plan(workspace(t)))
		var f *sandbox.Failure
		if !errors.As(err, &f) || f.Step != "devices" || !strings.Contains(f.Reason, node) {
			t.Errorf("%s: %v", node, err)
		}
	}
	h := startHelper(t, unshare, "--mount", "sh", "-c", `exec "$@"`, fake) // the control
	h.prepare(h.plan(workspace(t)))
}

// Where the operator wants limits that this host cannot set, nothing runs.
func TestStrictEnforcement(t *testing.T) {
	h := startHelper(t)
	lax := h.prepare(h.plan(workspace(t)))
	strict := func(w *policy.Workspace) { w.Enforcement = policy.Strict }
	b, err := h.try(h.plan(workspace(t), strict))
	var f *sandbox.Failure
	switch enforced := layers(lax.receipt, "cgroup: memory limit"); {
	case enforced && (err != nil || !layers(b.receipt, "enforcement: strict")):
		t.Errorf("%+v, %v", b.receipt, err)
	case !enforced && (!errors.As(err, &f) || f.Step != "cgroup" || f.Remedy().Knob == ""):
		t.Errorf("%+v, %v", b.receipt, err)
	case !enforced && !layers(lax.receipt, "cgroup: none for memory"):
		t.Errorf("a limit that is not set is not told: %+v", lax.receipt)
	}
}

// Where there is a cgroup the limits of the plan hold.
func TestLimitsHold(t *testing.T) {
	h := startHelper(t)
	dir := workspace(t)
	probe(t, dir)
	b := h.prepare(h.plan(dir, func(w *policy.Workspace) { w.Limits.Memory, w.Limits.PIDs, w.Limits.OpenFiles = 64<<20, 20, 32 }))
	b.says("32\n", "ulimit -n")
	c := b.start(true, "exec ./probe fork 200")
	if got := c.line(); got != "19" { // and the argv itself
		t.Errorf("with 20 processes allowed it got %s more", got)
	}
	c.Close()
	if !layers(b.receipt, "cgroup: memory limit") {
		return
	}
	c = b.start(true, "exec ./probe spend 256 1")
	exited, _ := c.exit()
	if exited.Status.Signal() != syscall.SIGKILL || c.Leaf.Spent().OOMKills == 0 {
		t.Errorf("256 MiB of 64: %v, %+v", exited.Status, c.Leaf.Spent())
	}
	b.says("spent\n", "./probe spend 32 1") // the control
}
