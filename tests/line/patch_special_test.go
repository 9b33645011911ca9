package line_test

import (
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"codespace/tests/need"
)

// quick measures how long refusals take, which may not wait for anybody.
type quick struct{ worst time.Duration }

// patch is session.patch, in bounded time.
func (q *quick) patch(t testing.TB, s *session, text string) answer {
	t.Helper()
	began := time.Now()
	a := s.patch(text, nil)
	took := time.Since(began)
	q.worst = max(q.worst, took)
	if took > time.Second {
		t.Errorf("it took %v", took)
	}
	return a
}

// TestPatchesOfSpecialFiles has everything that is no regular file at, above and
// behind the paths of patches.
func TestPatchesOfSpecialFiles(t *testing.T) {
	dir := workspace(t)
	outside := outsiders(t)
	s := start(t, dir)
	s.patch(around("*** Add File: warm\n"), nil).applied(t)
	var q quick
	for _, sp := range specials() {
		t.Run(sp.name, func(t *testing.T) {
			lay(t, dir, disk{"plain": "a\n", "other": "a\n"}, nil)
			sp.make(t, filepath.Join(dir, "x"), outside)
			cases := map[string]string{
				"*** Update File: x\n" + swap:                      sp.code,
				"*** Delete File: x\n":                             sp.code,
				"*** Update File: x\n*** Move to: y\n":             sp.code,
				"*** Update File: plain\n*** Move to: x\n" + swap:  sp.code,
				"*** Add File: x\n+b\n":                            sp.code,
				"*** Add File: x/b/c\n+b\n":                        sp.code,
				"*** Update File: x/canary\n@@\n-canary\n+b\n":     sp.code,
				"*** Delete File: x/canary\n":                      sp.code,
				"*** Update File: plain\n*** Move to: x/b\n":       sp.code,
				"*** Update File: x/canary\n*** Move to: stolen\n": sp.code,
			}
			if sp.name == "directory" {
				maps.Copy(cases, map[string]string{"*** Update File: plain\n*** Move to: x\n" + swap: "MOVE_DESTINATION_EXISTS", "*** Add File: x\n+b\n": "ADD_FILE_EXISTS"})
				maps.DeleteFunc(cases, func(hunk, _ string) bool { return strings.Contains(hunk, "x/") })
			}
			for hunk, code := range cases {
				untouched(t, above(dir), func() {
					a := q.patch(t, s, around("*** Update File: other\n"+swap+hunk)).refused(t, code)
					if strings.Contains(a.said, "canary\n") || a.text("operation_id") != "" {
						t.Errorf("%q: %s", hunk, a.said)
					}
				})
			}
		})
	}
	t.Logf("the slowest refusal took %v", q.worst)
	if got := contents(t, outside+"/canary"); got != "canary\n" {
		t.Errorf("the canary is %q", got)
	}
}

// outsiders is a directory with a canary that no patch may reach.
func outsiders(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, disk{"canary": "canary\n"})
	return dir
}

// above is a directory that holds the temporary directories of a test: workspaces
// and what is outside.
func above(dir string) string { return filepath.Dir(filepath.Dir(dir)) }

// A name inside and a name outside of one file are parted by a patch: the outside
// keeps what it had.
func TestPatchOfAHardLink(t *testing.T) {
	dir, outside := workspace(t), outsiders(t)
	s := start(t, dir)
	canary := filepath.Join(outside, "canary")
	for name, c := range map[string]struct {
		hunk  string
		after disk
	}{
		"update": {"*** Update File: x\n@@\n-canary\n+changed\n", disk{"x": "changed\n"}},
		"delete": {"*** Delete File: x\n", disk{}},
		"move":   {"*** Update File: x\n*** Move to: y\n@@\n-canary\n+changed\n", disk{"y": "changed\n"}},
		"rename": {"*** Update File: x\n*** Move to: y\n", disk{"y": "canary\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			empty(t, dir)
			must(t, os.Link(canary, filepath.Join(dir, "x")))
			before := lstat(t, canary)
			s.patch(around(c.hunk), nil).applied(t)
			same(t, seen(t, dir, false), laid(c.after, nil))
			after := lstat(t, canary)
			if contents(t, canary) != "canary\n" || after.Nlink != 1 || after.Ino != before.Ino || after.Mtim != before.Mtim || after.Mode != before.Mode {
				t.Errorf("the file outside is %q, %+v, was %+v", contents(t, canary), after, before)
			}
		})
	}
}

// A mount below the workspace shows what nobody registered.
func TestPatchesAcrossAMount(t *testing.T) {
	need.Root(t)
	dir, outside := workspace(t), outsiders(t)
	write(t, dir, disk{"m/below": "", "f": "a\n", "file": "a\n", "mounted/x": ""})
	s := open(t, func(cmd *exec.Cmd) {
		line := `mount --bind "$0" "$1/mounted" && mount --bind "$0/canary" "$1/file" && shift && exec "$@"`
		cmd.Args = append([]string{"sh", "-c", line, outside, dir}, cmd.Args...)
		cmd.Path = need.Command(t, "sh")
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	}, "-w", dir)
	var q quick
	for _, hunk := range []string{
		"*** Add File: mounted/n\n", "*** Add File: mounted/d/n\n", "*** Delete File: mounted/canary\n", "*** Update File: mounted/canary\n@@\n-canary\n+b\n",
		"*** Update File: mounted/canary\n*** Move to: stolen\n", "*** Update File: f\n*** Move to: mounted/f\n",
		"*** Delete File: file\n", "*** Update File: file\n@@\n-canary\n+b\n", "*** Update File: file\n*** Move to: stolen\n", "*** Update File: f\n*** Move to: file\n",
	} {
		untouched(t, above(dir), func() {
			a := q.patch(t, s, around(hunk)).refused(t, "PATH_ESCAPE")
			a.below("details").wants(t, fields{"reason": "mount"})
		})
	}
	s.file("read", fields{"path": "mounted/canary"}).refused(t, "PATH_ESCAPE").below("details").wants(t, fields{"reason": "mount"})
	t.Logf("the slowest refusal took %v", q.worst)
	same(t, seen(t, outside, false), laid(disk{"canary": "canary\n"}, nil))
	plain := start(t, dir) // the control: here nothing is mounted
	plain.patch(around("*** Delete File: mounted/x\n*** Update File: file\n"+swap), nil).applied(t)
}

// special makes what is no regular file, and says its own code.
type special struct {
	name string
	code string
	make func(t testing.TB, at, outside string)
}

func specials() []special {
	return []special{
		{"fifo", "SPECIAL_FILE_REJECTED", func(t testing.TB, at, _ string) { must(t, syscall.Mkfifo(at, 0o666)) }},
		{"socket", "SPECIAL_FILE_REJECTED", bound},
		{"directory", "SPECIAL_FILE_REJECTED", func(t testing.TB, at, _ string) { must(t, os.Mkdir(at, 0o755)) }},
		{"link", "SYMLINK_REJECTED", func(t testing.TB, at, outside string) { must(t, os.Symlink(outside+"/canary", at)) }},
		{"link to a directory", "SYMLINK_REJECTED", func(t testing.TB, at, outside string) { must(t, os.Symlink(outside, at)) }},
		{"link inside", "SYMLINK_REJECTED", func(t testing.TB, at, _ string) { must(t, os.Symlink("plain", at)) }},
		{"dangling link", "SYMLINK_REJECTED", func(t testing.TB, at, outside string) { must(t, os.Symlink(outside+"/absent", at)) }},
		{"link to itself", "SYMLINK_REJECTED", func(t testing.TB, at, _ string) { must(t, os.Symlink(filepath.Base(at), at)) }},
		{"link of the kernel", "SYMLINK_REJECTED", func(t testing.TB, at, _ string) { must(t, os.Symlink("/proc/self/root", at)) }},
		{"device", "SPECIAL_FILE_REJECTED", func(t testing.TB, at, _ string) {
			need.Root(t)
			must(t, syscall.Mknod(at, syscall.S_IFCHR|0o666, 1<<8|5))
		}},
	}
}

// bound makes a socket by a path that is short enough for one.
func bound(t testing.TB, at, _ string) {
	short, err := os.MkdirTemp("", "s")
	must(t, err)
	defer os.RemoveAll(short)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: short + "/s", Net: "unix"})
	must(t, err)
	l.SetUnlinkOnClose(false)
	must(t, os.Rename(short+"/s", at))
	t.Cleanup(func() { l.Close() })
}
