package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// GroupPrefix begins the name of every sandbox's cgroup.
const GroupPrefix = "codespace-"

// RemoveGroup removes a sandbox's cgroup and the leaves in it. Only directories
// of the cgroup file system can be there, so nothing is ever followed.
func RemoveGroup(dir string) error {
	if !strings.HasPrefix(filepath.Base(dir), GroupPrefix) {
		return errors.New("cannot remove cgroup: " + dir + " is not a sandbox's")
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
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
