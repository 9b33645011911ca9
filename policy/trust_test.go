package policy_test

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"codespace/policy"
	"codespace/tests/need"
)

// TestFileThatOthersCanWriteIsRefused first loads a safe file, then spoils it in
// one way.
func TestFileThatOthersCanWriteIsRefused(t *testing.T) {
	cases := []struct {
		name  string
		spoil func(h host, path string) error
		parts []string
	}{
		{"group-writable", func(_ host, p string) error { return os.Chmod(p, 0o664) }, []string{"mode 0664", "chmod go-w"}},
		{"world-writable", func(_ host, p string) error { return os.Chmod(p, 0o602) }, []string{"mode 0602"}},
		{"directory of the group", func(h host, _ string) error { return os.Chmod(h.path("etc"), 0o775) }, []string{"etc with mode 0775", "chmod go-w"}},
		{"directory of the world", func(h host, _ string) error { return os.Chmod(h.dir, 0o777) }, []string{"with mode 0777"}},
		{"symlink", func(h host, p string) error {
			return first(os.Rename(p, p+".real"), os.Symlink(p+".real", p))
		}, []string{"a symbolic link", "name the file"}},
		{"symlinked directory", func(h host, _ string) error {
			return first(os.Rename(h.path("etc"), h.path("real")), os.Symlink("real", h.path("etc")))
		}, []string{"a symbolic link in", "real/config.toml"}},
		{"directory", func(_ host, p string) error { return first(os.Remove(p), os.Mkdir(p, 0o755)) }, []string{"a directory"}},
		{"pipe", func(_ host, p string) error { return first(os.Remove(p), syscall.Mkfifo(p, 0o600)) }, []string{"a pipe"}},
		{"missing", func(_ host, p string) error { return os.Remove(p) }, []string{"no such file"}},
		{"second name", func(h host, p string) error { return os.Link(p, h.path("site/config")) }, []string{"2 names"}},
		{"ten megabytes", func(_ host, p string) error { return os.Truncate(p, 10<<20) }, []string{"10485760 bytes", "at most 1048576 bytes"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := newHost(t)
			path := h.write(minimal)
			if _, err := policy.Load(path); err != nil {
				t.Fatal(err)
			}
			h.must(c.spoil(h, path))
			_, err := policy.Load(path)
			if err == nil {
				t.Fatal("accepted")
			}
			says(t, err.Error(), append(c.parts, "cannot load registry: "+path+": found ", "allowed: ")...)
		})
	}
}

func TestFileOfAnotherUserIsRefused(t *testing.T) {
	need.Root(t)
	h := newHost(t)
	path := h.write(minimal)
	for _, owned := range []string{path, h.path("etc"), h.dir} {
		h.must(os.Chown(owned, 4321, 4321))
		_, err := policy.Load(path)
		if err == nil {
			t.Fatalf("accepted with %s of another user", owned)
		}
		says(t, err.Error(), "owned by uid 4321", "chown")
		h.must(os.Chown(owned, 0, 0))
	}
}

func TestStickyDirectoryOfRootIsTrusted(t *testing.T) {
	h := newHost(t)
	path := h.write(minimal)
	h.must(os.Chmod(h.path("etc"), 0o777|os.ModeSticky))
	_, err := policy.Load(path)
	if trusted := os.Geteuid() == 0; trusted != (err == nil) {
		t.Errorf("got %v", err)
	}
}

func TestRelativePathIsTakenFromTheCurrentDirectory(t *testing.T) {
	h := newHost(t)
	h.write(minimal)
	t.Chdir(h.path("etc"))
	if _, err := policy.Load("config.toml"); err != nil {
		t.Error(err)
	}
	if _, err := policy.Load(""); err == nil {
		t.Error("accepted a directory")
	}
}

func TestFileOfTheGreatestSizeIsRead(t *testing.T) {
	h := newHost(t)
	text := strings.ReplaceAll(minimal, "$DIR", h.dir)
	padding := 1<<20 - len(text)
	h.load(text + "#" + strings.Repeat("x", padding-1))
	_, err := policy.Load(h.write(text + "#" + strings.Repeat("x", padding)))
	if err == nil {
		t.Fatal("accepted one byte more")
	}
	says(t, err.Error(), "1048577 bytes")
}

// first is the first error of a sequence that stops at none.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
