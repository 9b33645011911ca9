package sandbox_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codespace/policy"
	"codespace/sandbox"
	"codespace/tests/need"

	"golang.org/x/sys/unix"
)

func pid(h *helper) string { return fmt.Sprint(h.cmd.Process.Pid) }

// ownerOf is who a file belongs to on disk.
func ownerOf(t *testing.T, path string) [2]uint32 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		t.Error(err)
	}
	return [2]uint32{st.Uid, st.Gid}
}

// cached adds caches to a plan, kept in a state directory of the test's.
func cached(t *testing.T, p sandbox.Plan, targets ...string) (sandbox.Plan, string) {
	t.Helper()
	state := filepath.Join(t.TempDir(), "state")
	for i, target := range targets {
		source := filepath.Join(state, fmt.Sprint("cache-", i))
		if err := os.MkdirAll(source, 0o700); err != nil {
			t.Fatal(err)
		}
		p.Caches = append(p.Caches, sandbox.Bind{Source: source, Target: target})
	}
	return p, state
}

const useCaches = `set -e
	for d in ~/.npm ~/.cache/go-build ~/go/pkg/mod; do
		[ -O $d ] && mkdir -p $d/a && echo x >$d/a/file && echo y >>$d/a/file && stat -c %u:%g $d/a/file
	done
	mkdir ~/.cache/other ~/go/other && echo x >~/.cache/file`

// A cache is the sandbox's user's inside and the state's owner's on disk, whoever
// owns the workspace, and outlives the sandbox.
func TestCachesAreTheUsers(t *testing.T) {
	owners := []int{os.Geteuid()}
	if os.Geteuid() == 0 {
		owners = append(owners, 54321)
	}
	for _, owner := range owners {
		h := startHelper(t)
		dir := workspace(t)
		if err := os.Chown(dir, owner, owner); err != nil && owner != os.Geteuid() {
			t.Fatal(err)
		}
		p, state := cached(t, h.plan(dir), "/home/sandbox/.npm", "/home/sandbox/.cache/go-build", "/home/sandbox/go/pkg/mod")
		b := h.prepare(p)
		if out, status := b.run(true, useCaches); out != strings.Repeat("1000:1000\n", 3) || status != 0 {
			t.Errorf("a workspace of %d: %d, %s", owner, status, out)
		}
		for i := range 3 {
			file := filepath.Join(state, fmt.Sprint("cache-", i), "a/file")
			if got, want := ownerOf(t, file), ownerOf(t, state); got != want {
				t.Errorf("a workspace of %d: the file of a cache belongs to %v, the state to %v", owner, got, want)
			}
		}
		if err := h.Release(t.Context(), b.plan.ID); err != nil {
			t.Error(err)
		}
		p.ID = ""
		h.prepare(p).says("x\ny\n", "cat ~/.npm/a/file")
	}
}

// As the host's root a sandbox has ids of its own: what belongs to the workspace's
// owner is its user's, what belongs to others is not, and what it makes is the
// owner's on disk.
func TestMappedOwner(t *testing.T) {
	need.Root(t)
	h := startHelper(t)
	for _, owner := range []int{0, 54321} {
		dir := workspace(t)
		for name, uid := range map[string]int{".": owner, "mine": owner, "others": owner + 1} {
			file := filepath.Join(dir, name)
			if name != "." {
				write(t, file, "as it was")
			}
			if err := os.Chown(file, uid, uid); err != nil {
				t.Fatal(err)
			}
		}
		p := h.plan(dir)
		if p.Identity.HostUID <= 0 || p.Identity.HostUID == owner {
			need.Feature(t, "host-root", false, "root of a user namespace")
		}
		b := h.prepare(p)
		b.says("1000 1000 65534 ", `echo x >new; for f in mine new others; do printf '%s ' $(stat -c %u $f); done; echo x >>mine`)
		for _, attempt := range []string{"echo x >others", "chmod 777 others", "chown 0 mine", "chown 1001 mine"} {
			if out, status := b.run(true, attempt); status == 0 {
				t.Errorf("owner %d: %s: %s", owner, attempt, out)
			}
		}
		if got := ownerOf(t, filepath.Join(dir, "new")); got != [2]uint32{uint32(owner), uint32(owner)} {
			t.Errorf("what the user of %d made belongs to %v", owner, got)
		}
		c := b.start(true, "read x")
		if got := read(t, fmt.Sprintf("/proc/%d/status", c.PID)); !strings.Contains(got, fmt.Sprintf("Uid:\t%d\t", p.Identity.HostUID)) {
			t.Errorf("on the host it is %s", got)
		}
		if !layers(b.receipt, "identity: host uid of its own, id-mapped workspace") {
			t.Errorf("%q", b.receipt.Layers)
		}
	}
}

// Two workspaces of one owner have two users, and neither can touch the other's
// processes or files by being the same uid.
func TestTwoUsers(t *testing.T) {
	need.Root(t)
	h := startHelper(t)
	a, b := h.prepare(h.plan(workspace(t))), h.prepare(h.plan(workspace(t)))
	one, two := a.start(true, "read x"), b.start(true, "read x")
	uids := map[string]bool{}
	for _, c := range []command{one, two} {
		for _, line := range strings.Split(read(t, fmt.Sprintf("/proc/%d/status", c.PID)), "\n") {
			if strings.HasPrefix(line, "Uid:") {
				uids[line] = true
			}
		}
	}
	if len(uids) != 2 || strings.Contains(fmt.Sprint(uids), "\t0\t") {
		t.Errorf("%v", uids)
	}
}

// Not even by mistake does a sandbox have host uid 0: a helper that was started by
// root of a mere user namespace refuses.
func TestRootOfAUserNamespaceIsRefused(t *testing.T) {
	need.Root(t)
	h := startHelper(t, need.Command(t, "unshare"), "--user", "--map-root-user", "--")
	p := h.plan(workspace(t), func(w *policy.Workspace) {})
	p.Identity = sandbox.Identity{HostUID: -1, HostGID: -1, StartingUID: 0}
	f := h.refused(p, "identity", "host uid 0")
	if f.Remedy().Knob == "" {
		t.Errorf("%+v", f)
	}
}
