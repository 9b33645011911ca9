package sandbox_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codespace/policy"
	"codespace/sandbox"
	"codespace/tests/need"

	"golang.org/x/sys/unix"
)

// groupless is the command line behind which a helper finds no cgroup file system, in
// a mount namespace of its own. A plain user cannot unmount what is there, only hide it.
func groupless(t *testing.T) []string {
	t.Helper()
	unshare := need.Command(t, "unshare")
	if os.Geteuid() != 0 {
		return []string{unshare, "-Urm", "sh", "-c", `mount -t tmpfs none /sys/fs/cgroup && exec "$@"`, "sh"}
	}
	return []string{unshare, "-m", "sh", "-c", `if mountpoint -q /sys/fs/cgroup; then umount -R /sys/fs/cgroup; fi && exec "$@"`, "sh"}
}

// Where a host has no cgroup at all a sandbox does without: it says which limits do
// not hold, and those that do hold are the plan's.
func TestWithoutCgroups(t *testing.T) {
	h := startHelper(t, groupless(t)...)
	dir := workspace(t)
	probe(t, dir)
	b := h.prepare(h.plan(dir, func(w *policy.Workspace) { w.Limits.PIDs = 20 }))
	for _, want := range []string{"cgroup: none for memory and cpu (not enforced)", "pids: RLIMIT_NPROC of its own user namespace", "enforcement: best-effort"} {
		if !layers(b.receipt, want) {
			t.Errorf("%q is not in %+v", want, b.receipt)
		}
	}
	cells := []command{b.start(true, "exec ./probe fork 200"), b.start(true, "exec ./probe fork 200")}
	for i, c := range cells { // both at once: neither counts the other's
		if got := c.line(); got != "19" { // and the argv itself
			t.Errorf("with 20 processes allowed command %d got %s more", i, got)
		}
		if c.Leaf != (sandbox.Leaf{}) || c.Leaf.Spent() != (sandbox.Spent{}) {
			t.Errorf("%+v has counted %+v", c.Leaf, c.Leaf.Spent())
		}
	}
	for _, c := range cells {
		c.Close()
	}
	marker := fmt.Sprintf("marker-%d-groupless", os.Getpid())
	c := b.stubbornly(marker)
	c.Kill()
	ended(t, c, marker)
	if err := h.Release(t.Context(), b.plan.ID); err != nil {
		t.Error(err)
	}
}

// A cgroup file system that a host mounts while a helper runs reaches the helper, but
// not libcontainer, which has looked before.
func TestCgroupsMountedLater(t *testing.T) {
	need.Root(t)
	path := filepath.Join(t.TempDir(), "now")
	err := unix.Mkfifo(path, 0o600)
	now, openErr := os.OpenFile(path, os.O_RDWR, 0)
	if err := errors.Join(err, openErr); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { now.Close(); reap(t) }) // the shell in the background
	later := `mount --make-rshared /
(read -r _ && mount -t cgroup2 none /sys/fs/cgroup) <"$0" &
exec "$@"`
	h := startHelper(t, append(groupless(t), "sh", "-c", later, path)...)
	h.prepare(h.plan(workspace(t))).says("before\n", "echo before")
	fmt.Fprintln(now)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(soon); !strings.Contains(read(t, "/proc/"+pid(h)+"/mountinfo"), " - cgroup2 "); {
		select {
		case <-tick.C: // there is no event: a mount reaches another namespace
		case <-end:
			t.Fatal("not shown: the helper sees no mount")
		}
	}
	b := h.prepare(h.plan(workspace(t)))
	b.says("after\n", "echo after")
	if !layers(b.receipt, "cgroup: none for memory and cpu (not enforced)") {
		t.Errorf("%+v", b.receipt)
	}
}

func TestStrictWithoutCgroups(t *testing.T) {
	h := startHelper(t, groupless(t)...)
	_, err := h.try(h.plan(workspace(t), func(w *policy.Workspace) { w.Enforcement = policy.Strict }))
	var f *sandbox.Failure
	if !errors.As(err, &f) || f.Step != "cgroup" {
		t.Errorf("strict: %v", err)
	}
	h.prepare(h.plan(workspace(t))).says("works\n", "echo works") // the helper goes on
}
