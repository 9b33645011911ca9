package sandbox_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codespace/policy"
	"codespace/sandbox"
	"codespace/tests/need"

	"golang.org/x/sys/unix"
)

// refused tries a plan, which must fail at that step, with that in the reason, and
// leave nothing in the helper.
func (h *helper) refused(p sandbox.Plan, step, reason string) *sandbox.Failure {
	h.t.Helper()
	b, err := h.try(p)
	var f *sandbox.Failure
	if !errors.As(err, &f) || f.Step != step || !strings.Contains(f.Reason, reason) {
		h.t.Fatalf("%s: %v, want step %q with %q", p.Root.Path, err, step, reason)
	}
	if mounts := read(h.t, "/proc/"+pid(h)+"/mountinfo"); strings.Contains(mounts, b.plan.ID) {
		h.t.Errorf("a mount of a refused sandbox is left in the helper: %s", mounts)
	}
	if entries := read(h.t, "/proc/"+pid(h)+"/mountinfo"); strings.Count(entries, h.stage) > 1 {
		h.t.Errorf("more than the stage is left: %s", entries)
	}
	if groups := h.groups(); len(groups) > 0 {
		h.t.Errorf("cgroups of a refused sandbox: %q", groups)
	}
	return f
}

// What stands at the root's path must be the directory the runner saw.
func TestReplacedWorkspaceIsRefused(t *testing.T) {
	replace := map[string]func(t *testing.T, dir string) error{
		"another directory": func(t *testing.T, dir string) error {
			return errors.Join(os.Rename(dir, dir+".old"), os.Mkdir(dir, 0o755))
		},
		"a link to it": func(t *testing.T, dir string) error {
			return errors.Join(os.Rename(dir, dir+".old"), os.Symlink(dir+".old", dir))
		},
		"a link above it": func(t *testing.T, dir string) error {
			above := filepath.Dir(dir)
			return errors.Join(os.Rename(above, above+".old"), os.Symlink(above+".old", above))
		},
		"a file": func(t *testing.T, dir string) error {
			return errors.Join(os.Remove(dir), os.WriteFile(dir, nil, 0o644))
		},
		"nothing": func(t *testing.T, dir string) error { return os.Remove(dir) },
	}
	h := startHelper(t)
	for name, with := range replace {
		t.Run(name, func(t *testing.T) {
			dir := workspace(t)
			p := h.plan(dir)
			if err := with(t, dir); err != nil {
				t.Fatal(err)
			}
			reason := "cannot open workspace root"
			if name == "another directory" {
				reason = "was replaced"
			}
			h.refused(p, "workspace", reason)
		})
	}
	h.prepare(h.plan(workspace(t))) // the control, by the same helper
}

// A workspace is shown at its own path, whatever that is.
func TestWorkspacePaths(t *testing.T) {
	h := startHelper(t)
	deep := strings.Repeat("/"+strings.Repeat("d", 90), 38)
	for _, name := range []string{"plain", "with space", " ", "new\nline", "tab\there", `back\slash`, `\040`, `quote"'$(id)`, "ünïcödé 漢字", "-rf", "...", ".hidden", "\x01\x7f", "usr", deep} {
		dir := filepath.Join(t.TempDir(), name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "in"), "seen")
		b := h.prepare(h.plan(dir))
		b.says(dir+"|seen", `printf '%s|' "$(pwd)"; cat in; echo written >out`)
		if got := read(t, filepath.Join(dir, "out")); got != "written" {
			t.Errorf("%.40q: the host sees %q", name, got)
		}
		if err := h.Release(t.Context(), b.plan.ID); err != nil {
			t.Error(err)
		}
	}
}

// Outside /tmp as well, and nothing beside a workspace is seen.
func TestWorkspaceElsewhere(t *testing.T) {
	base, err := os.MkdirTemp("/var/tmp", "codespace-sandbox-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	dir, beside := filepath.Join(base, "workspace"), filepath.Join(base, "secret")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, beside, "secret")
	h := startHelper(t)
	b := h.prepare(h.plan(dir))
	b.says("workspace\n", `ls -A ..`)
	if out, status := b.run(true, `cat "$1"; cd ..; echo x >new`, "sh", beside); status == 0 || strings.Contains(out, "secret\n") {
		t.Errorf("%d: %s", status, out)
	}
}

// A registered path may hold the workspace, and the workspace another: each keeps
// its own access.
func TestMountsAroundTheWorkspace(t *testing.T) {
	h := startHelper(t)
	outer := filepath.Join(t.TempDir(), "outer")
	dir := filepath.Join(outer, "workspace")
	inner, other := filepath.Join(dir, "inner"), filepath.Join(t.TempDir(), "other file")
	if err := os.MkdirAll(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{filepath.Join(outer, "file"), filepath.Join(dir, "file"), filepath.Join(inner, "file"), other} {
		write(t, file, "seen ")
	}
	b := h.prepare(h.plan(dir, func(w *policy.Workspace) {
		w.Mounts = []policy.Mount{{Path: inner}, {Path: outer}, {Path: other}}
	}))
	b.says("seen seen seen seen ", `cat ../file file inner/file "$1"`, "sh", other)
	b.says("written\n", "echo written >new; cat new")
	for _, path := range []string{"../new", "../file", "inner/new", "inner/file", other} {
		if out, status := b.run(true, `echo x >"$1"`, "sh", path); status == 0 || !strings.Contains(out, "Read-only file system") {
			t.Errorf("%s was written: %s", path, out)
		}
	}
	alone := h.prepare(h.plan(dir)) // the control: without them
	alone.says("seen seen ", `cat file inner/file; cat ../file "$1" 2>/dev/null; echo x >inner/new`, "sh", other)
}

// A registered path that is not there is no sandbox without it.
func TestAbsentMountIsRefused(t *testing.T) {
	h := startHelper(t)
	p := h.plan(workspace(t), func(w *policy.Workspace) { w.Mounts = []policy.Mount{{Path: "/absent/path"}} })
	h.refused(p, "mount", "/absent/path")
	p = h.plan(workspace(t), func(w *policy.Workspace) { w.Caches = []policy.Cache{{Name: "npm", Target: "/home/sandbox/.npm"}} })
	h.refused(p, "cache", "/state/caches")
}

// A mount below the workspace would show what nobody registered.
func TestMountBelowIsRefused(t *testing.T) {
	need.Root(t)
	unshare := need.Command(t, "unshare")
	for _, name := range []string{"below", "with space", "new\nline", `back\slash`} {
		dir := workspace(t)
		below := filepath.Join(dir, name)
		if err := os.Mkdir(below, 0o755); err != nil {
			t.Fatal(err)
		}
		const script = `mount -t tmpfs none "$0" && exec "$@"` // in a mount namespace of the helper's own
		h := startHelper(t, unshare, "--mount", "sh", "-c", script, below)
		h.refused(h.plan(dir), "mount below the workspace", name)
		beside := dir + "r" // begins with the same letters
		if err := os.Mkdir(beside, 0o755); err != nil {
			t.Fatal(err)
		}
		h.prepare(h.plan(beside))
	}
	dir := workspace(t) // a workspace that is a mount itself is none below one
	h := startHelper(t, unshare, "--mount", "sh", "-c", `mount --bind "$0" "$0" && exec "$@"`, dir)
	h.prepare(h.plan(dir)).says("", "echo x >file")
}

// A helper once went on in the mount namespace of a sandbox it had built, as far as
// /proc told: it refused workspaces for that sandbox's mounts and did not see the
// host's.
func TestHelperStaysWhereItIs(t *testing.T) {
	for range 20 {
		h := startHelper(t)
		dir := workspace(t)
		if err := os.Mkdir(filepath.Join(dir, "inner"), 0o755); err != nil {
			t.Fatal(err)
		}
		h.prepare(h.plan(dir, func(w *policy.Workspace) { w.Mounts = []policy.Mount{{Path: filepath.Join(dir, "inner")}} }))
		if mounts := read(t, "/proc/"+pid(h)+"/mountinfo"); !strings.Contains(mounts, h.stage) {
			t.Fatalf("the helper's root is a sandbox's, which has %d mounts", strings.Count(mounts, "\n"))
		}
		h.prepare(h.plan(dir))
		h.Helper.Close()
		h.end()
	}
}

// overlay mounts an overlay file system on the host and returns a directory in it.
func overlay(t *testing.T) string {
	t.Helper()
	base := t.TempDir()
	for _, d := range []string{"lower", "upper", "work", "merged"} {
		if err := os.Mkdir(filepath.Join(base, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	merged := filepath.Join(base, "merged")
	options := "lowerdir=" + base + "/lower,upperdir=" + base + "/upper,workdir=" + base + "/work"
	err := unix.Mount("overlay", merged, "overlay", 0, options)
	need.Feature(t, "overlayfs", err == nil, "cannot mount one")
	t.Cleanup(func() {
		if err := unix.Unmount(merged, 0); err != nil {
			t.Error(err)
		}
	})
	dir := filepath.Join(merged, "workspace")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// overlayfs cannot be id-mapped: a workspace there is refused with what stands in
// the way and what helps, and that helps.
func TestOverlayWorkspace(t *testing.T) {
	need.Root(t)
	dir := overlay(t)
	h := startHelper(t)
	f := h.refused(h.plan(dir), "id-mapped mount", "0x794c7630")
	r := f.Remedy()
	if f.Errno != int(unix.EINVAL) || r.Knob != "id-mapped mounts" || !strings.Contains(r.Fix, `identity = "owner"`) || !strings.Contains(r.Show, "findmnt") {
		t.Errorf("%+v: %+v", f, r)
	}
	if err := os.Chown(dir, 54321, 54321); err != nil {
		t.Fatal(err)
	}
	owner := h.plan(dir)
	owner.Identity.HostUID, owner.Identity.HostGID = 54321, 54321
	b := h.prepare(owner)
	b.says("1000\n", "id -u; echo x >file")
	if !layers(b.receipt, "identity: the workspace owner's uid (weaker") {
		t.Errorf("%q", b.receipt.Layers)
	}
}

// The umask that codespace was started with changes nothing of a view.
func TestUmask(t *testing.T) {
	listing := ""
	for _, umask := range []string{"022", "077", "000"} {
		h := startHelper(t, "/bin/sh", "-c", "umask "+umask+`; exec "$@"`, "sh")
		out, status := h.prepare(h.plan(workspace(t))).run(true, `cat /etc/passwd; ls -ld / /home /home/sandbox /var /etc /etc/passwd /tmp /dev /dev/pts | cut -c1-10; umask`)
		if status != 0 || listing != "" && out != listing {
			t.Errorf("umask %s: %d, %s", umask, status, out)
		}
		listing = out
	}
}
