package faults_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// The processes of a codespace, outermost first. Each ends with the one before.
const (
	gateway = iota // codespace mcp or run
	runner         // codespace-runner
	helper         // codespace-helper serve
	factory        // PID 1 of the sandbox
	cell           // PID 1 of a command that runs; others wait for one
	roles
)

var roleNames = [roles]string{"gateway", "runner", "helper", "factory", "cell"}

// anatomy is the pid of each role, 0 for one that is not there.
type anatomy [roles]int

// anatomyOf looks below a gateway.
func anatomyOf(pid int) anatomy {
	a := anatomy{gateway: pid}
	for _, p := range below(pid) { // parents come first
		if p.zombie() {
			continue
		}
		switch name := p.program(); {
		case slices.Contains(p.args, "factory") && p.parent == a[factory] && len(below(p.pid)) == 0:
		case name == "codespace-runner" && p.parent == a[gateway]:
			a[runner] = p.pid
		case name == "codespace-helper" && p.parent == a[runner] && slices.Contains(p.args, "serve"):
			a[helper] = p.pid
		case slices.Contains(p.args, "factory") && p.parent == a[helper]:
			a[factory] = p.pid
		case slices.Contains(p.args, "factory") && p.parent == a[factory]:
			a[cell] = p.pid
		}
	}
	return a
}

// whole is the anatomy of a session whose command runs.
func (s *session) whole(t testing.TB) anatomy {
	t.Helper()
	a := anatomyOf(s.pid())
	if i := slices.Index(a[:], 0); i >= 0 {
		t.Fatalf("cannot find the %s among %v", roleNames[i], below(s.pid()))
	}
	return a
}

// outside returns the processes that do not depend on a role.
func (a anatomy) outside(role int) []int { return a[:role] }

// instanceOf returns the run directory that a gateway holds locked, "" if it has
// none yet.
func instanceOf(pid int) string {
	for _, f := range openFiles(pid) {
		if dir := filepath.Dir(f); filepath.Base(f) == "lock" && instanceName.MatchString(filepath.Base(dir)) {
			return dir
		}
	}
	return ""
}

// openFiles returns what a process's descriptors refer to.
func openFiles(pid int) []string {
	links, _ := filepath.Glob(filepath.Join("/proc", itoa(pid), "fd", "*"))
	var files []string
	for _, l := range links {
		if f, err := os.Readlink(l); err == nil {
			files = append(files, f)
		}
	}
	return files
}
