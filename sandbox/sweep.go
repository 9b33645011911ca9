package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// GroupName is the name of the sandbox's cgroup.
func (p Plan) GroupName() string { return groupName(p.ID) }

func groupName(id string) string { return "codespace-" + id }

// RemoveGroups removes, below each of the cgroup directories dirs, the cgroup of
// the sandbox id and those of ids that begin with id and a dash, with the leaves
// in them. Only directories of the cgroup file system can be there, so nothing is
// ever followed. Processes that are left in them are killed.
func RemoveGroups(dirs []string, id string) error {
	var errs []error
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		for _, e := range entries {
			if e.Name() == groupName(id) || strings.HasPrefix(e.Name(), groupName(id)+"-") {
				errs = append(errs, removeGroup(filepath.Join(dir, e.Name())))
			}
		}
	}
	return errors.Join(errs...)
}

func removeGroup(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			put(filepath.Join(dir, e.Name()), "cgroup.kill", 1) // absent on v1
			syscall.Rmdir(filepath.Join(dir, e.Name()))
		}
	}
	if err := syscall.Rmdir(dir); err != nil && err != syscall.ENOENT {
		return &fs.PathError{Op: "rmdir", Path: dir, Err: err}
	}
	return nil
}

// Groups returns the cgroup directories in which this process's sandboxes are
// made, one for each hierarchy of this host (/proc/self/cgroup).
func Groups() []string {
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	var dirs []string
	for line := range strings.Lines(strings.TrimSpace(string(b))) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		for _, base := range []string{strings.TrimPrefix(f[1], "name="), "unified", ""} {
			if f[1] != "" && base != strings.TrimPrefix(f[1], "name=") {
				continue
			}
			if d := filepath.Join("/sys/fs/cgroup", base, f[2]); exists(d, "cgroup.procs") {
				dirs = append(dirs, d)
				break
			}
		}
	}
	return dirs
}
