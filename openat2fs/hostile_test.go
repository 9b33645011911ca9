package openat2fs_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"codespace/openat2fs"
	"codespace/tests/need"

	"golang.org/x/sys/unix"
)

// everyWay tries to get at the content of a path in every way there is.
func (g *ground) everyWay(name string) map[string]func() error {
	p, ctx := path(g.t, name), context.Background()
	return map[string]func() error{
		"read":  func() error { _, err := g.root.Read(ctx, p, openat2fs.Range{}); return err },
		"lines": func() error { _, err := g.root.Read(ctx, p, openat2fs.Range{StartLine: 1}); return err },
		"load":  func() error { _, _, err := g.root.Load(ctx, p, nil); return err },
		"dir": func() error {
			dir, leaf, err := p.Split()
			must(g.t, err)
			d, err := g.root.OpenDir(ctx, dir)
			if err != nil {
				return err
			}
			defer d.Close()
			_, _, err = d.Load(ctx, leaf, nil)
			return err
		},
	}
}

func TestLinks(t *testing.T) {
	g := newGround(t, openat2fs.Limits{})
	g.write("dir/file", "inside")
	for name, target := range map[string]string{
		"leaf": filepath.Join(g.outside, "canary"), "inside": "dir/file", "dangling": "nowhere", "loop": "loop", "root": "/", "up": "..",
		"ancestor": g.outside, "sibling": "dir", "magic": "/proc/self/root", "magicfd": "/proc/self/fd/0", "magiccwd": "/proc/self/cwd",
	} {
		g.link(name, target)
	}
	for _, name := range []string{"leaf", "inside", "dangling", "loop", "root", "up", "magic", "magicfd", "magiccwd", "ancestor/canary",
		"sibling/file", "root/etc/passwd", "up/outside/canary", "magic/etc/passwd", "magiccwd/go.mod", "loop/loop"} {
		for way, call := range g.everyWay(name) {
			if content, err := os.ReadFile(g.at(name)); way == "read" && name == "leaf" && string(content) != canary {
				t.Errorf("control: an open by path does not follow: %q, %v", content, err)
			}
			t.Run(name+" "+way, func(t *testing.T) { g.refused(openat2fs.SymlinkRejected, call) })
		}
	}
	st, err := g.root.Stat(context.Background(), path(t, "leaf"))
	must(t, err)
	if st.Kind != openat2fs.Link {
		t.Errorf("leaf is a %s", st.Kind)
	}
	g.refused(openat2fs.SymlinkRejected, func() error { _, err := g.root.Stat(context.Background(), path(t, "ancestor/canary")); return err })
	found, err := g.root.Find(context.Background(), openat2fs.Query{})
	must(t, err)
	for _, p := range found.Paths {
		if strings.Contains(p.String(), "/") && p != path(t, "dir/file") {
			t.Errorf("find followed a link: %v", p)
		}
	}
}

func TestSpecialFiles(t *testing.T) { newGround(t, openat2fs.Limits{}).specials() }

// specials makes one of each kind that anybody can make, and tries to read it.
func (g *ground) specials() {
	must(g.t, syscall.Mkfifo(g.at("fifo"), 0o666))
	must(g.t, os.Mkdir(g.at("directory"), 0o755))
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(g.t, err)
	defer unix.Close(fd)
	d, err := os.Open(g.dir) // the path of a socket has at most 107 bytes
	must(g.t, err)
	defer d.Close()
	must(g.t, unix.Bind(fd, &unix.SockaddrUnix{Name: fmt.Sprintf("/proc/self/fd/%d/socket", d.Fd())}))
	for _, kind := range []openat2fs.Kind{openat2fs.FIFO, openat2fs.Directory, openat2fs.Socket} {
		g.special(string(kind), kind)
	}
	for _, name := range []string{"fifo/x", "socket/x"} {
		for _, call := range g.everyWay(name) {
			g.refused(openat2fs.PathNotDirectory, call)
		}
	}
}

func (g *ground) special(name string, kind openat2fs.Kind) {
	g.t.Helper()
	for _, call := range g.everyWay(name) {
		if e := g.refused(openat2fs.SpecialFileRejected, call); e.Reason != string(kind) {
			g.t.Errorf("%s: reason %q", name, e.Reason)
		}
	}
	all, err := g.root.Versions(context.Background(), []openat2fs.Path{path(g.t, name)})
	if err != nil || all[0].Version != "" || all[0].Stat.Kind != kind || all[0].Err != nil {
		g.t.Errorf("%s: %+v, %v", name, all, err)
	}
}

func TestDevices(t *testing.T) { newGround(t, openat2fs.Limits{}).devices() }

// devices: opening the second would start a countdown to a reboot.
func (g *ground) devices() {
	err := unix.Mknod(g.at("null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3)))
	need.Feature(g.t, "mknod", err == nil, "no device may be made here")
	must(g.t, unix.Mknod(g.at("watchdog"), unix.S_IFCHR|0o666, int(unix.Mkdev(10, 130))))
	must(g.t, unix.Mknod(g.at("disk"), unix.S_IFBLK|0o666, int(unix.Mkdev(7, 0))))
	for _, name := range []string{"null", "watchdog", "disk"} {
		g.special(name, openat2fs.Device)
	}
}

// TestMountWithoutDevices: where files are opened in one step, everything else is
// refused just the same.
func TestMountWithoutDevices(t *testing.T) {
	inMountNamespace(t, func(t *testing.T) {
		dir := t.TempDir()
		must(t, unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NODEV, ""))
		defer unix.Unmount(dir, unix.MNT_DETACH)
		g := newGroundIn(t, dir, openat2fs.Limits{})
		defer g.root.Close()
		g.write("f", "inside")
		g.link("leaf", filepath.Join(g.outside, "canary"))
		if page, err := g.read("f", openat2fs.Range{}); err != nil || string(page.Content) != "inside" {
			t.Errorf("%q, %v", page.Content, err)
		}
		for _, call := range g.everyWay("leaf") {
			g.refused(openat2fs.SymlinkRejected, call)
		}
		g.specials()
		g.devices()
	})
}

// TestHardLinkIsAFile: another name of an outside file is the workspace's own.
// Nothing tells it from any other file, so that it is read; writing makes a new
// file, and the outside name keeps the old one.
func TestHardLinkIsAFile(t *testing.T) {
	g := newGround(t, openat2fs.Limits{})
	must(t, os.Link(filepath.Join(g.outside, "canary"), g.at("hard")))
	page, err := g.read("hard", openat2fs.Range{})
	must(t, err)
	if string(page.Content) != canary || page.Stat.Links != 2 {
		t.Errorf("%q, %d links", page.Content, page.Stat.Links)
	}
	d, err := g.root.OpenDir(context.Background(), openat2fs.Path{})
	must(t, err)
	defer d.Close()
	replace(t, d, "hard", "new")
	g.untouched()
}

// inMountNamespace runs do where mounts are nobody else's: on a thread of its own,
// which ends with it.
func inMountNamespace(t *testing.T, do func(t *testing.T)) {
	need.Root(t)
	done := make(chan error, 1)
	go func() {
		defer close(done)      // also where do ends the goroutine
		runtime.LockOSThread() // never unlocked: the thread is not used again
		err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS)
		if err == nil {
			err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
		}
		if err == nil {
			do(t)
		}
		done <- err
	}()
	err := <-done
	need.Feature(t, "mount-namespace", err == nil, "root may not have one here")
}

func TestMountBelow(t *testing.T) {
	inMountNamespace(t, func(t *testing.T) {
		g := newGround(t, openat2fs.Limits{})
		g.write("a", "")
		g.write("file", "")
		for _, name := range []string{"bind", "proc", "deep/bind"} {
			if os.MkdirAll(g.at(name), 0o755) != nil {
				t.Error("cannot make a mount point")
			}
		}
		for name, err := range map[string]error{
			"bind": unix.Mount(g.outside, g.at("bind"), "", unix.MS_BIND, ""),
			"deep": unix.Mount(g.outside, g.at("deep/bind"), "", unix.MS_BIND, ""),
			"file": unix.Mount(filepath.Join(g.outside, "canary"), g.at("file"), "", unix.MS_BIND, ""),
			"proc": unix.Mount("proc", g.at("proc"), "proc", 0, ""),
		} {
			if err != nil {
				t.Errorf("cannot mount %s: %v", name, err)
			}
		}
		if content, _ := os.ReadFile(g.at("bind/canary")); string(content) != canary {
			t.Error("control: the mount is not there")
		}
		for _, name := range []string{"bind/canary", "deep/bind/canary", "file", "proc/self/root/etc/passwd", "proc/version", "bind"} {
			for _, call := range g.everyWay(name) {
				if e := g.refused(openat2fs.PathEscape, call); e.Reason != "mount" {
					t.Errorf("%s: reason %q", name, e.Reason)
				}
			}
		}
		found, err := g.root.Find(context.Background(), openat2fs.Query{})
		if err != nil || !slices.Equal(texts(found), []string{"a", "file"}) || found.Skipped != 3 || found.Truncated {
			t.Errorf("find: %v, %v", found, err)
		}
		for _, name := range []string{"bind", "deep/bind", "file", "proc"} {
			unix.Unmount(g.at(name), unix.MNT_DETACH)
		}
		g.root.Close()
	})
}

func TestNames(t *testing.T) {
	g := newGround(t, openat2fs.Limits{})
	var want []string
	for _, name := range []string{"\xff\xfe", "line\nbreak", " ", "-rf", strings.Repeat("x", 255), "tab\t", "'\"", `back\slash`, "ü", "~", "\x1b[2J", "*", "..."} {
		g.write("d/"+name, name)
		want = append(want, "d/"+name)
		page, err := g.read("d/"+name, openat2fs.Range{})
		if err != nil || string(page.Content) != name {
			t.Errorf("%q: %q, %v", name, page.Content, err)
		}
	}
	slices.Sort(want)
	found, err := g.root.Find(context.Background(), openat2fs.Query{})
	must(t, err)
	if !slices.Equal(texts(found), want) {
		t.Errorf("found %q", texts(found))
	}
}

// TestDeepTrees: as deep as a path can name, and deeper, where only a walk by
// handles gets.
func TestDeepTrees(t *testing.T) {
	g := newGround(t, openat2fs.Limits{})
	ctx := context.Background()
	d, err := g.root.OpenDir(ctx, openat2fs.Path{})
	must(t, err)
	long, err := openat2fs.ParseName(strings.Repeat("l", 255))
	must(t, err)
	deepest := 0
	for ; ; deepest++ {
		must(t, d.Mkdir(long, 0o755))
		below, err := d.Open(long)
		if err != nil {
			break // the path is over its limit
		}
		d.Close()
		d = below
	}
	defer d.Close()
	if deepest != 16 {
		t.Errorf("%d directories of 255 bytes are %d bytes", deepest, deepest*256)
	}
	found, err := g.root.Find(ctx, openat2fs.Query{})
	must(t, err)
	if len(found.Paths) != 0 || !found.Truncated || found.Reason != "length" || found.Next != "" {
		t.Errorf("find: %+v", found)
	}
	g.write(strings.Repeat("a/", 60)+"f", "deep")
	must(t, os.MkdirAll(g.at(strings.Repeat("b/", 250)), 0o755))
	page, err := g.read(strings.Repeat("a/", 60)+"f", openat2fs.Range{})
	if err != nil || string(page.Content) != "deep" {
		t.Errorf("%v", err)
	}
	g.refused(openat2fs.FileNotFound, func() error { _, err := g.read(strings.Repeat("b/", 250)+"f", openat2fs.Range{}); return err })
	g.refused(openat2fs.FileNotFound, func() error { _, err := g.read(strings.Repeat("c/", 255)+"f", openat2fs.Range{}); return err })
}
