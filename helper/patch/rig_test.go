package patch

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"codespace/openat2fs"
	"codespace/runner/patching"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// memory is a directory in memory, where there is one: nothing is waited for there.
func memory(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "codespace-patch-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// rig is a directory and helpers of it, in this process and not locked down.
type rig struct {
	t    testing.TB
	dir  string
	root *openat2fs.Root
}

func newRig(t testing.TB, dir string) *rig {
	t.Helper()
	fd, err := syscall.Open(dir, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	must(t, err)
	root, err := openat2fs.Adopt(fd, openat2fs.Limits{})
	must(t, err)
	t.Cleanup(func() { root.Close() })
	return &rig{t, dir, root}
}

// helper is a new one, which knows nothing of others.
func (r *rig) helper() *Helper {
	return &Helper{root: r.root, limits: patching.Limits{Files: patching.MaxFiles, FileBytes: patching.MaxFileBytes}, uid: os.Geteuid(), groups: []int{os.Getegid()}, directories: 2000,
		dirs: map[string]*openat2fs.Dir{}}
}

// end is the end of a helper, however it ended.
func (h *Helper) end() {
	for _, d := range h.dirs {
		d.Close()
	}
	h.dirs = map[string]*openat2fs.Dir{}
}

// settled has a new helper settle what others have left.
func (r *rig) settled(p patching.Planned) patching.Outcome {
	r.t.Helper()
	h := r.helper()
	defer h.end()
	o, err := h.settle(context.Background(), p, errInterrupted)
	must(r.t, err)
	return o
}

func (r *rig) at(name string) string { return filepath.Join(r.dir, name) }

// tree is all files and directories, with what they hold.
func (r *rig) tree() map[string]string {
	r.t.Helper()
	all := map[string]string{}
	must(r.t, filepath.WalkDir(r.dir, func(at string, d fs.DirEntry, err error) error {
		if err != nil || at == r.dir {
			return err
		}
		name, err := filepath.Rel(r.dir, at)
		if err != nil {
			return err
		}
		if all[name] = d.Type().String(); d.Type().IsRegular() {
			content, err := os.ReadFile(at)
			all[name] = fmt.Sprintf("%q", content)
			return err
		}
		return nil
	}))
	return all
}

// lay puts a tree there and nothing else.
func (r *rig) lay(files map[string]string) {
	r.t.Helper()
	entries, err := os.ReadDir(r.dir)
	must(r.t, err)
	for _, e := range entries {
		must(r.t, os.RemoveAll(r.at(e.Name())))
	}
	for name, content := range files {
		must(r.t, os.MkdirAll(filepath.Dir(r.at(name)), 0o755))
		must(r.t, os.WriteFile(r.at(name), []byte(content), 0o644))
	}
}

// differs says how two trees differ, "" if they do not.
func differs(got, want map[string]string) string {
	names := slices.Sorted(maps.Keys(got))
	for name := range want {
		if _, there := got[name]; !there {
			names = append(names, name)
		}
	}
	var all []string
	for _, name := range names {
		if got[name] != want[name] {
			all = append(all, fmt.Sprintf("%q is %.100s, want %.100s", name, got[name], want[name]))
		}
	}
	return strings.Join(all, "; ")
}
