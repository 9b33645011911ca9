package openat2fs_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"testing"

	"codespace/openat2fs"
)

func name(t testing.TB, text string) openat2fs.Name {
	t.Helper()
	n, err := openat2fs.ParseName(text)
	must(t, err)
	return n
}

// replace writes a file as a patch does.
func replace(t testing.TB, d *openat2fs.Dir, target, content string) {
	t.Helper()
	temp, err := d.CreateTemp(openat2fs.TempName())
	must(t, err)
	_, err = temp.Write([]byte(content))
	must(t, err)
	must(t, temp.SetMode(0o644))
	must(t, temp.Sync())
	must(t, temp.Close())
	must(t, openat2fs.Rename(temp.Place, openat2fs.Place{Dir: d, Name: name(t, target)}, openat2fs.Replace))
	must(t, d.Sync())
}

func TestReplace(t *testing.T) {
	g := newGround(t, openat2fs.Limits{})
	ctx := context.Background()
	d, made, err := g.root.MakeDirs(ctx, path(t, "a/b/c"), 0o755)
	must(t, err)
	defer d.Close()
	if len(made) != 3 || made[0] != path(t, "a") || made[2] != path(t, "a/b/c") || d.Path() != path(t, "a/b/c") {
		t.Errorf("made %v, at %v", made, d.Path())
	}
	again, made, err := g.root.MakeDirs(ctx, path(t, "a/b/c"), 0o755)
	must(t, err)
	again.Close()
	if len(made) != 0 {
		t.Errorf("made again: %v", made)
	}
	replace(t, d, "f", "one")
	replace(t, d, "f", "two")
	content, st, err := d.Load(ctx, name(t, "f"), nil)
	must(t, err)
	if string(content) != "two" || st.Mode != 0o644 || openat2fs.VersionOf(content) != version("two") {
		t.Errorf("%q, %+v", content, st)
	}
	at := func(n string) openat2fs.Place { return openat2fs.Place{Dir: d, Name: name(t, n)} }
	g.write("a/b/c/g", "three")
	if err := openat2fs.Rename(at("f"), at("g"), openat2fs.Keep); !errors.Is(err, fs.ErrExist) {
		t.Errorf("kept: %v", err)
	}
	must(t, openat2fs.Rename(at("f"), at("g"), openat2fs.Exchange))
	if page, err := g.read("a/b/c/f", openat2fs.Range{}); err != nil || string(page.Content) != "three" {
		t.Errorf("exchanged: %q, %v", page.Content, err)
	}
	must(t, d.Unlink(name(t, "f")))
	must(t, d.Unlink(name(t, "g")))
	g.refused(openat2fs.FileNotFound, func() error { return d.Unlink(name(t, "f")) })
	parent, err := g.root.OpenDir(ctx, path(t, "a/b"))
	must(t, err)
	defer parent.Close()
	must(t, parent.Rmdir(name(t, "c")))
	if _, err := d.CreateTemp(openat2fs.TempName()); codeOf(err) != openat2fs.FileNotFound {
		t.Errorf("in a removed directory: %v", err)
	}
}

func TestTempsAreHiddenAndHarmless(t *testing.T) {
	g := newGround(t, openat2fs.Limits{})
	d, err := g.root.OpenDir(context.Background(), openat2fs.Path{})
	must(t, err)
	defer d.Close()
	temp, err := d.CreateTemp(openat2fs.TempName())
	must(t, err)
	defer temp.Close()
	must(t, temp.SetOwner(os.Geteuid(), os.Getegid()))
	must(t, temp.SetMode(0o7755))
	st, err := d.Stat(temp.Name)
	must(t, err)
	if st.Mode != 0o755 {
		t.Errorf("mode %o", st.Mode)
	}
	g.write(".codespace-tmp-short", "")
	if got := texts(g.find(openat2fs.Query{})); len(got) != 1 || got[0] != ".codespace-tmp-short" {
		t.Errorf("find shows %q", got)
	}
	if got := texts(g.find(openat2fs.Query{Temporaries: true})); len(got) != 1 || got[0] != temp.Name.String() {
		t.Errorf("the temporaries are %q", got)
	}
}

// TestWritesFollowNoLink: a link is never written through, made into, or entered.
func TestWritesFollowNoLink(t *testing.T) {
	g := newGround(t, openat2fs.Limits{})
	ctx := context.Background()
	g.link("dir", g.outside)
	g.link("leaf", g.outside+"/canary")
	g.link("dangling", g.outside+"/new")
	for _, p := range []string{"dir", "dir/sub", "leaf/sub", "dangling", "dangling/sub"} {
		g.refused(openat2fs.SymlinkRejected, func() error { _, _, err := g.root.MakeDirs(ctx, path(t, p), 0o755); return err })
		g.refused(openat2fs.SymlinkRejected, func() error { _, err := g.root.OpenDir(ctx, path(t, p)); return err })
	}
	d, err := g.root.OpenDir(ctx, openat2fs.Path{})
	must(t, err)
	defer d.Close()
	if err := d.Mkdir(name(t, "dangling"), 0o755); !errors.Is(err, fs.ErrExist) {
		t.Errorf("mkdir: %v", err)
	}
	for _, leaf := range []string{"leaf", "dangling", "dir"} {
		replace(t, d, leaf, "replaced")
	}
	g.link("gone", g.outside+"/canary")
	must(t, d.Unlink(name(t, "gone")))
	g.untouched()
	for _, zero := range []error{d.Mkdir(openat2fs.Name{}, 0o755), d.Unlink(openat2fs.Name{}), d.Rmdir(openat2fs.Name{})} {
		if zero == nil {
			t.Error("no name is a name")
		}
	}
}

func TestClosed(t *testing.T) {
	g := newGround(t, openat2fs.Limits{})
	g.write("f", "x")
	d, err := g.root.OpenDir(context.Background(), openat2fs.Path{})
	must(t, err)
	must(t, g.root.Close())
	if _, _, err := d.Load(context.Background(), name(t, "f"), nil); err != nil {
		t.Errorf("a Dir outlives its Root: %v", err)
	}
	must(t, d.Close())
	for _, err := range []error{d.Close(), g.root.Close(), d.Sync()} {
		g.refused(openat2fs.FileOperationFailed, func() error { return err })
	}
	g.refused(openat2fs.FileOperationFailed, func() error { _, err := g.read("f", openat2fs.Range{}); return err })
}

func TestOpen(t *testing.T) {
	g := newGround(t, openat2fs.Limits{})
	right := identity(t, g.dir)
	g.link("link", g.outside)
	g.write("file", "")
	for _, c := range []struct {
		dir  string
		want openat2fs.Identity
		code openat2fs.Code
	}{
		{g.dir, openat2fs.Identity{Device: right.Device, Inode: right.Inode + 1}, openat2fs.FileOperationFailed},
		{g.dir, openat2fs.Identity{}, openat2fs.FileOperationFailed},
		{g.outside, right, openat2fs.FileOperationFailed},
		{g.at("link"), identity(t, g.outside), openat2fs.SymlinkRejected},
		{g.at("file"), identity(t, g.at("file")), openat2fs.PathNotDirectory},
		{g.at("none"), right, openat2fs.FileNotFound},
	} {
		g.refused(c.code, func() error { _, err := openat2fs.Open(c.dir, c.want, openat2fs.Limits{}); return err })
	}
	// The handle stays the directory that was checked, whatever its path becomes.
	g.write("f", "right")
	must(t, os.Rename(g.dir, g.dir+"-moved"))
	must(t, os.Symlink(g.outside, g.dir))
	if page, err := g.read("f", openat2fs.Range{}); err != nil || string(page.Content) != "right" {
		t.Errorf("%q, %v", page.Content, err)
	}
}
