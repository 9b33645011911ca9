package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
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
	var groups []string
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		for _, e := range entries {
			if e.Name() == groupName(id) || strings.HasPrefix(e.Name(), groupName(id)+"-") {
				groups = append(groups, filepath.Join(dir, e.Name()))
			}
		}
	}
	for _, g := range groups { // first: only v2 can, and its processes are those of v1's groups too
		put(g, "cgroup.kill", 1)
	}
	for _, g := range groups {
		errs = append(errs, removeGroup(g))
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
			rmdir(filepath.Join(dir, e.Name()))
		}
	}
	return rmdir(dir)
}

// rmdir removes one cgroup directory. Its processes are ending: until the kernel
// has let go of them it answers EBUSY, and v1 has no event for that.
func rmdir(dir string) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range busyTries {
		err := syscall.Rmdir(dir)
		if err == nil || err == syscall.ENOENT {
			return nil
		}
		if err != syscall.EBUSY {
			return &fs.PathError{Op: "rmdir", Path: dir, Err: err}
		}
		<-tick.C
	}
	return &fs.PathError{Op: "rmdir", Path: dir, Err: syscall.EBUSY}
}

const busyTries = 400 // of 5 ms: two seconds

// Groups returns the cgroup directories in which this process's sandboxes are
// made, one for each hierarchy of this host (/proc/self/cgroup).
func (Host) Groups() []string {
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
		if f[1] == "" && exists("/sys/fs/cgroup", "cgroup.controllers") {
			// Alone, v2 lets no cgroup have processes and children with limits:
			// libcontainer goes beside its own (cgroups/fs2, defaultDirPath).
			f[2] = filepath.Dir(f[2])
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

// Weigh gives a sandbox's cgroups half the share of the processors that others have,
// the daemon among them, where this process may.
func (h Host) Weigh(group string) {
	for _, dir := range h.Groups() {
		put(filepath.Join(dir, group), "cpu.shares", 512) // of 1024 by default (v1)
		put(filepath.Join(dir, group), "cpu.weight", 50)  // of 100 (v2)
	}
}
