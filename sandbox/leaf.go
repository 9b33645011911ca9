package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"time"
)

// Leaf is the cgroup of one cell: its directory in each hierarchy that counts,
// "" where this host gives none. On a unified host all three are one directory.
type Leaf struct {
	Memory  string `json:"memory,omitempty"`
	PIDs    string `json:"pids,omitempty"`
	Unified string `json:"unified,omitempty"` // cgroup.kill, cgroup.freeze
}

// Spent is what a leaf counted, zero where it cannot be known.
type Spent struct {
	OOMKills   int64
	PeakMemory int64 // bytes
	PeakPIDs   int64
	CPU        time.Duration // user plus system
}

// LeafOf finds the directories beside a sandbox's own cgroups, given as
// libcontainer reports them: by controller, "" for the unified one.
func LeafOf(paths map[string]string, name string) Leaf {
	beside := func(controller string) string {
		p := paths[controller]
		if p == "" {
			return ""
		}
		p = filepath.Join(filepath.Dir(p), name)
		if err := os.Mkdir(p, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return ""
		}
		return p
	}
	l := Leaf{Unified: beside("")}
	if _, v1 := paths["memory"]; v1 {
		l.Memory, l.PIDs = beside("memory"), beside("pids")
		return l
	}
	if l.Unified != "" && exists(l.Unified, "memory.max") {
		l.Memory = l.Unified
	}
	if l.Unified != "" && exists(l.Unified, "pids.max") {
		l.PIDs = l.Unified
	}
	return l
}

// Limit sets the leaf's limits: bytes of memory without any swap, and pids.
func (l Leaf) Limit(memory, pids int64) error {
	if l.Memory != "" && exists(l.Memory, "memory.max") {
		if err := put(l.Memory, "memory.max", memory); err != nil {
			return err
		}
		if err := put(l.Memory, "memory.swap.max", 0); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	} else if l.Memory != "" {
		if err := put(l.Memory, "memory.limit_in_bytes", memory); err != nil {
			return err
		}
		// Absent where the kernel does not account swap; then there is none to limit.
		if err := put(l.Memory, "memory.memsw.limit_in_bytes", memory); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if l.PIDs == "" {
		return nil
	}
	return put(l.PIDs, "pids.max", pids)
}

// Add moves a process into the leaf.
func (l Leaf) Add(pid int) error {
	for _, dir := range l.dirs() {
		if err := put(dir, "cgroup.procs", int64(pid)); err != nil {
			return err
		}
	}
	return nil
}

// Kill ends every process in the leaf where the kernel can (cgroup.kill, 5.14).
func (l Leaf) Kill() {
	if l.Unified != "" {
		put(l.Unified, "cgroup.kill", 1)
	}
}

// Spent reads what the leaf counted. Call it before Remove.
func (l Leaf) Spent() Spent {
	var s Spent
	switch l.Memory {
	case "":
	case l.Unified:
		s.OOMKills, s.PeakMemory = keyed(l.Memory, "memory.events", "oom_kill"), number(l.Memory, "memory.peak")
	default:
		s.OOMKills, s.PeakMemory = keyed(l.Memory, "memory.oom_control", "oom_kill"), number(l.Memory, "memory.max_usage_in_bytes")
	}
	if l.PIDs != "" {
		s.PeakPIDs = number(l.PIDs, "pids.peak")
	}
	if l.Unified != "" {
		s.CPU = time.Duration(keyed(l.Unified, "cpu.stat", "usage_usec")) * time.Microsecond
	}
	return s
}

// Remove deletes the leaf. Its processes must be gone; the kernel may take a
// moment to notice, which it says with EBUSY.
func (l Leaf) Remove() error {
	var errs []error
	for _, dir := range l.dirs() {
		errs = append(errs, rmdir(dir))
	}
	return errors.Join(errs...)
}

func (l Leaf) dirs() []string {
	var out []string
	for _, d := range []string{l.Unified, l.Memory, l.PIDs} {
		if d != "" && (len(out) == 0 || d != l.Unified) {
			out = append(out, d)
		}
	}
	return out
}

func exists(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}
