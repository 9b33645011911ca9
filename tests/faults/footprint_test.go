package faults_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var instanceName = regexp.MustCompile(`^[0-9a-f]{12}$`)

func itoa(n int) string { return strconv.Itoa(n) }

// footprint is what a running codespace has of the host besides processes: its
// run directory, cgroups named after that, abstract sockets (leases, host ids) and,
// if something went wrong, mounts.
type footprint struct {
	instance string            // directory
	sockets  map[string]string // names by inode
	mounts   map[string]string // lines of mountinfo by id, before
}

func footprintOf(pid int) footprint {
	f := footprint{instance: instanceOf(pid), sockets: map[string]string{}, mounts: mountsByID()}
	names := socketNames()
	for _, p := range append(below(pid), process{pid: pid}) {
		for _, file := range openFiles(p.pid) {
			inode := strings.TrimSuffix(strings.TrimPrefix(file, "socket:["), "]")
			if name, ok := names[inode]; ok {
				f.sockets[inode] = name
			}
		}
	}
	return f
}

// socketNames returns the abstract sockets that are ours by inode (proc_net(5)).
func socketNames() map[string]string {
	names := map[string]string{}
	b, _ := os.ReadFile("/proc/net/unix")
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 8 && strings.HasPrefix(f[7], "@codespace-") {
			names[f[6]] = f[7]
		}
	}
	return names
}

func mountsByID() map[string]string {
	mounts := map[string]string{}
	b, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(b)) {
		id, rest, _ := strings.Cut(line, " ")
		mounts[id] = rest
	}
	return mounts
}

// groupsOf returns the cgroups of an instance, in any hierarchy.
func groupsOf(instance string) []string {
	var found []string
	filepath.WalkDir("/sys/fs/cgroup", func(name string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && strings.HasPrefix(e.Name(), "codespace-"+filepath.Base(instance)) {
			found = append(found, name)
			return fs.SkipDir
		}
		return nil
	})
	return found
}

// left says what is still there.
func (f footprint) left() []string {
	var left []string
	if f.instance != "" {
		if _, err := os.Lstat(f.instance); err == nil {
			left = append(left, f.instance)
		}
		if groups := groupsOf(f.instance); len(groups) > 0 {
			left = append(left, fmt.Sprintf("%s and %d other cgroups", groups[0], len(groups)-1))
		}
	}
	for inode, name := range socketNames() {
		if f.sockets[inode] == name {
			left = append(left, name)
		}
	}
	for id, line := range mountsByID() {
		before, known := f.mounts[id]
		ours := f.instance != "" && strings.Contains(line, filepath.Base(f.instance))
		if ours || known && before != line {
			left = append(left, "mount "+line)
		}
	}
	slices.Sort(left)
	return left
}

// wantNothingLeft fails unless soon nothing of the footprint is there.
func (f footprint) wantNothingLeft(t testing.TB) {
	t.Helper()
	if !within(promised, func() bool { return len(f.left()) == 0 }) {
		t.Errorf("left behind: %s", strings.Join(f.left(), ", "))
	}
}

// wantSomething is the control of wantNothingLeft.
func (f footprint) wantSomething(t testing.TB) {
	t.Helper()
	if f.instance == "" || len(f.sockets) == 0 || len(f.left()) < 2 {
		t.Fatalf("cannot see the footprint of a running codespace: %+v", f)
	}
}

func (f footprint) String() string { return fmt.Sprintf("%s %v", f.instance, f.sockets) }
