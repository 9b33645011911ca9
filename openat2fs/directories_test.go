package openat2fs_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"

	"codespace/openat2fs"
)

func TestDirectories(t *testing.T) {
	g := newGround(t, openat2fs.Limits{})
	var want []string
	for i := range 3000 { // more than one call of the kernel's gives
		want = append(want, fmt.Sprintf("a directory with a name that takes some room %04d", i))
		must(t, os.Mkdir(g.at(want[i]), 0o755))
	}
	must(t, os.WriteFile(g.at("file"), nil, 0o644))
	must(t, os.Symlink(g.outside, g.at("link")))
	must(t, os.Mkdir(g.at("..."), 0o755))
	want = append(want, "...")
	slices.Sort(want)
	root, err := g.root.OpenDir(context.Background(), openat2fs.Path{})
	must(t, err)
	defer root.Close()
	for range 2 { // it begins anew
		names, entries, err := root.Directories(context.Background(), 5000)
		must(t, err)
		var got []string
		for _, name := range names {
			got = append(got, name.String())
		}
		slices.Sort(got)
		if !slices.Equal(got, want) || entries != len(want)+2 {
			t.Errorf("%d names of %d entries, not %d of %d", len(got), entries, len(want), len(want)+2)
		}
	}
	if names, _, err := root.Directories(context.Background(), 7); err != nil || len(names) != 7 {
		t.Errorf("at most 7 are %d: %v", len(names), err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := root.Directories(ctx, 7); err == nil {
		t.Error("an ended context is not honoured")
	}
}

func TestIdentityOfMovedDirectory(t *testing.T) {
	g := newGround(t, openat2fs.Limits{})
	must(t, os.Mkdir(g.at("dir"), 0o755))
	path, err := openat2fs.ParsePath("dir")
	must(t, err)
	dir, err := g.root.OpenDir(context.Background(), path)
	must(t, err)
	defer dir.Close()
	must(t, os.Rename(g.at("dir"), g.at("moved")))
	must(t, os.Mkdir(g.at("dir"), 0o755))
	is, err := dir.Identity()
	must(t, err)
	if is != identity(t, g.at("moved")) || is == identity(t, g.at("dir")) {
		t.Errorf("it is %v", is)
	}
	if st, err := os.Stat(fmt.Sprintf("/proc/self/fd/%d", dir.Fd())); err != nil || !os.SameFile(st, stat(t, g.at("moved"))) {
		t.Errorf("the handle's number leads elsewhere: %v", err)
	}
}

func stat(t *testing.T, path string) os.FileInfo {
	t.Helper()
	st, err := os.Stat(path)
	must(t, err)
	return st
}
