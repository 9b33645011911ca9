package line_test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"codespace/tests/need"
)

// touch makes a file where it runs, which tells where that was.
var touch = []string{"--", "touch", "made"}

func TestRootsThatAreRefused(t *testing.T) {
	dir := workspace(t)
	write(t, dir, map[string]string{"file": ""})
	home, err := os.UserHomeDir()
	must(t, err)
	for _, root := range []string{dir + "/absent", dir + "/file", "/", home, "/usr", "/etc", "/proc", "/sys", "/dev", "/tmp", "/home", "/run", "/bin"} {
		if r := run(t, root, touch...).wants(t, 125); !strings.HasPrefix(r.stderr, "codespace: cannot use workspace") || r.stdout != "" {
			t.Errorf("%q: stdout %q, stderr %q", root, r.stdout, r.stderr)
		}
		if w := wire(t, "-w", root); !absent(root + "/made") {
			t.Errorf("%q: it ran", root)
		} else if _, code := w.end(); code != 1 || !strings.Contains(w.stderr.String(), "cannot use workspace") {
			t.Errorf("%q: mcp ends with %d and says %q", root, code, w.stderr.String())
		}
	}
	if !absent(dir + "/absent") {
		t.Error("the missing directory was made")
	}
}

// An unset variable in a script must not mean wherever that script is.
func TestRootWithoutName(t *testing.T) {
	dir := workspace(t)
	for _, args := range [][]string{{"-w", ""}, {"-w", dir, "--mount", ""}} {
		cmd := command(t, args[1], append(args[2:], touch...)...)
		cmd.Dir = dir
		if r := finish(t, cmd).wants(t, 125); !absent(dir + "/made") {
			t.Errorf("%q: it ran; stderr %q", args, r.stderr)
			must(t, os.Remove(dir+"/made"))
		}
	}
}

func TestRootThatItsUserCannotWrite(t *testing.T) {
	for _, mode := range []os.FileMode{0o555, 0o655, 0o000} {
		dir := workspace(t)
		must(t, os.Chmod(dir, mode))
		r := run(t, dir, touch...).wants(t, 125)
		must(t, os.Chmod(dir, 0o755))
		if !strings.Contains(r.stderr, "SANDBOX_UNAVAILABLE") || !strings.Contains(r.stderr, "writable") || !absent(dir+"/made") {
			t.Errorf("mode %v: made: %v, stderr %q", mode, !absent(dir+"/made"), r.stderr)
		}
	}
}

func TestRootOfRootForAPlainUser(t *testing.T) {
	need.PlainUser(t)
	need.Feature(t, "srv", lstat(t, "/srv").Uid == 0, "/srv is not root's")
	if r := run(t, "/srv", touch...).wants(t, 125); !strings.Contains(r.stderr, "not writable") {
		t.Errorf("stderr %q", r.stderr)
	}
}

// A link to a directory is that directory.
func TestRootThatIsALink(t *testing.T) {
	dir := workspace(t)
	link := dir + ".link"
	must(t, os.Symlink(dir, link))
	if r := run(t, link, "--", "sh", "-c", "touch made; pwd -P").wants(t, 0); r.stdout != dir+"\n" || absent(dir+"/made") {
		t.Errorf("it ran in %q", r.stdout)
	}
}

// A root that is another one than it was serves nothing, and certainly not what
// it leads to now.
func TestRootReplacedWithinASession(t *testing.T) {
	dir, other := workspace(t), workspace(t)
	s := start(t, dir)
	s.says("touch", "first")
	moved := dir + ".moved"
	must(t, os.Rename(dir, moved))
	must(t, os.Symlink(other, dir))
	s.refusesRoot("link", other, moved)
	must(t, os.Remove(dir))
	s.refusesRoot("gone", other, moved)
	write(t, dir[:len(dir)-3], map[string]string{"ws": ""})
	s.refusesRoot("no directory", other, moved)
	must(t, os.Remove(dir))
	must(t, os.Mkdir(dir, 0o755))
	s.says("touch", "second") // a new directory of that name is the workspace
	must(t, os.Remove(dir+"/second"))
	must(t, os.Remove(dir))
	must(t, os.Rename(moved, dir))
	if out := s.says("ls"); out != "first\n" {
		t.Errorf("back in its place the workspace holds %q", out)
	}
}

func (s *session) refusesRoot(why string, elsewhere ...string) {
	s.t.Helper()
	a := s.exec("touch", "made").refused(s.t, "SANDBOX_UNAVAILABLE")
	if !strings.Contains(a.text("message"), "workspace root") || !strings.Contains(a.text("message"), why) {
		s.t.Errorf("%s: %v", why, a.fields)
	}
	for _, dir := range elsewhere {
		if !absent(dir + "/made") {
			s.t.Errorf("%s: it ran in %s", why, dir)
		}
	}
}

func TestRootBeneathAParentThatBecameALink(t *testing.T) {
	top := t.TempDir()
	write(t, top, map[string]string{"a/ws/mine": "", "b/ws/theirs": ""})
	s := start(t, top+"/a/ws")
	s.says("ls", "mine")
	must(t, os.Rename(top+"/a", top+"/c"))
	must(t, os.Symlink("b", top+"/a"))
	s.refusesRoot("link", top+"/b/ws", top+"/c/ws")
}

// A mount below the root would show what nobody registered.
func TestMountBelowTheRoot(t *testing.T) {
	need.Root(t)
	dir := workspace(t)
	must(t, os.Mkdir(dir+"/below", 0o755))
	inner := command(t, dir, append([]string{"--json"}, touch...)...)
	line := `mount -t tmpfs none "$0" && exec "$@"`
	cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-c", line, dir + "/below"}, inner.Args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	r := finish(t, cmd).wants(t, 125)
	rec := r.record(t)
	if rec.Error.Code != "PATH_ESCAPE" || rec.Error.Details["reason"] != "mount" || rec.Error.Details["path"] != "below" || !absent(dir+"/made") {
		t.Errorf("made: %v, stderr %q", !absent(dir+"/made"), r.stderr)
	}
	run(t, dir, touch...).wants(t, 0) // the control: here it is not mounted
}
