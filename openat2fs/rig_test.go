package openat2fs_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"codespace/openat2fs"
)

// TestMain fails the package for a descriptor that a test left open.
func TestMain(m *testing.M) {
	if r, w, err := os.Pipe(); err == nil { // the runtime's poller opens its own, once
		r.Close()
		w.Close()
	}
	before := descriptors()
	code := m.Run()
	if after := descriptors(); code == 0 && after > before {
		println("descriptors left open: before", before, "after", after)
		code = 1
	}
	os.Exit(code)
}

func descriptors() int {
	all, _ := os.ReadDir("/proc/self/fd")
	return len(all)
}

// atMost is how long anything hostile may take to be answered.
const atMost = 100 * time.Millisecond

// ground is a workspace, and a directory beside it that nothing may touch.
type ground struct {
	t       testing.TB
	dir     string
	outside string
	root    *openat2fs.Root
	links   int // made by linkable
}

const canary = "CANARY: this lies outside"

func newGround(t testing.TB, limits openat2fs.Limits) *ground {
	t.Helper()
	return newGroundIn(t, t.TempDir(), limits)
}

func newGroundIn(t testing.TB, top string, limits openat2fs.Limits) *ground {
	t.Helper()
	top, err := filepath.EvalSymlinks(top)
	must(t, err)
	g := &ground{t: t, dir: filepath.Join(top, "workspace"), outside: filepath.Join(top, "outside")}
	must(t, os.Mkdir(g.dir, 0o755))
	must(t, os.Mkdir(g.outside, 0o755))
	must(t, os.WriteFile(filepath.Join(g.outside, "canary"), []byte(canary), 0o644))
	g.root = open(t, g.dir, limits)
	return g
}

func open(t testing.TB, dir string, limits openat2fs.Limits) *openat2fs.Root {
	t.Helper()
	root, err := openat2fs.Open(dir, identity(t, dir), limits)
	must(t, err)
	t.Cleanup(func() { root.Close() })
	return root
}

func identity(t testing.TB, dir string) openat2fs.Identity {
	t.Helper()
	var st syscall.Stat_t
	must(t, syscall.Stat(dir, &st))
	return openat2fs.Identity{Device: st.Dev, Inode: st.Ino}
}

func (g *ground) at(name string) string { return filepath.Join(g.dir, name) }

func (g *ground) write(name, content string) {
	g.t.Helper()
	must(g.t, os.MkdirAll(filepath.Dir(g.at(name)), 0o755))
	must(g.t, os.WriteFile(g.at(name), []byte(content), 0o644))
}

func (g *ground) link(name, target string) {
	g.t.Helper()
	must(g.t, os.Symlink(target, g.at(name)))
}

func (g *ground) read(name string, asked openat2fs.Range) (openat2fs.Page, error) {
	g.t.Helper()
	return g.root.Read(context.Background(), path(g.t, name), asked)
}

// untouched fails where anything outside the workspace has changed.
func (g *ground) untouched() {
	g.t.Helper()
	all, err := os.ReadDir(g.outside)
	must(g.t, err)
	content, err := os.ReadFile(filepath.Join(g.outside, "canary"))
	must(g.t, err)
	if len(all) != 1 || string(content) != canary {
		g.t.Errorf("outside the workspace: %d entries, canary %q", len(all), content)
	}
}

func path(t testing.TB, name string) openat2fs.Path {
	t.Helper()
	p, err := openat2fs.ParsePath(name)
	must(t, err)
	return p
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func codeOf(err error) openat2fs.Code {
	var e *openat2fs.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// soon wants an answer within atMost, the third time at the latest: the machine
// may be busy with something else.
func soon(t testing.TB, call func()) {
	t.Helper()
	took := time.Duration(0)
	for range 3 {
		start := time.Now()
		call()
		if took = time.Since(start); took < atMost {
			return
		}
	}
	t.Errorf("took %v", took)
}

// refused wants a code, soon, and no word of what lies outside.
func (g *ground) refused(code openat2fs.Code, call func() error) *openat2fs.Error {
	g.t.Helper()
	var err error
	soon(g.t, func() { err = call() })
	var e *openat2fs.Error
	if !errors.As(err, &e) || e.Code != code {
		g.t.Errorf("got %v (%s), want %s", err, codeOf(err), code)
		return &openat2fs.Error{}
	}
	if strings.Contains(e.Error(), g.outside) || strings.Contains(e.Error(), g.dir) {
		g.t.Errorf("names a host path: %v", e)
	}
	return e
}
