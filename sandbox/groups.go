package sandbox

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Where cgroup hierarchies are mounted by convention, and where libcontainer looks.
const (
	cgroupMount = "/sys/fs/cgroup"
	hybridMount = "/sys/fs/cgroup/unified"
)

// group is where one controller's cgroups of this process's sandboxes are made.
type group struct {
	controller string // "" for cgroup.kill
	version    string // "v1", "v2"
	dir, mount string
	problem    problem
}

// problem is why no cgroup with a controller can be made.
type problem string

const (
	groupAbsent   problem = "no cgroup file system is mounted"
	groupPartial  problem = "none of them is for devices, and without that one no other can be used"
	groupHidden   problem = "something else is mounted over it"
	groupReadOnly problem = "it is mounted read-only"
	groupForeign  problem = "this user may not write there"
	groupUnlisted problem = "the controller is not enabled there"
	groupBusy     problem = "it holds processes, so its controllers cannot be passed on"
)

// hierarchies are the cgroup mounts and this process's place in them.
type hierarchies struct {
	kind   string // "v2", "v1", "hybrid", "none"
	mounts []mounted
	own    map[string]string // /proc/self/cgroup: path by controller, "" for v2
}

func readHierarchies(all []mounted) hierarchies {
	b, _ := os.ReadFile("/proc/self/cgroup") // then there are none
	return hierarchiesOf(all, string(b))
}

func hierarchiesOf(all []mounted, own string) hierarchies {
	h := hierarchies{kind: "none", own: map[string]string{}}
	v1, v2, alone := false, false, false
	for _, m := range all {
		controllers := slices.ContainsFunc(m.options, func(o string) bool { return o == "memory" || o == "pids" || o == "cpu" })
		v1 = v1 || m.kind == "cgroup" && controllers
		v2 = v2 || m.kind == "cgroup2"
		alone = alone || m.kind == "cgroup2" && m.point == cgroupMount // then libcontainer takes no other
		if m.kind == "cgroup" || m.kind == "cgroup2" {
			h.mounts = append(h.mounts, m)
		}
	}
	switch {
	case alone:
		h.kind = "v2"
	case v1 && v2:
		h.kind = "hybrid"
	case v1:
		h.kind = "v1"
	case v2:
		h.kind = "v2"
	}
	for line := range strings.Lines(own) {
		if f := strings.SplitN(strings.TrimSpace(line), ":", 3); len(f) == 3 {
			for _, c := range strings.Split(f[1], ",") {
				h.own[c] = f[2]
			}
		}
	}
	return h
}

// of finds where a controller's cgroups are made: on v1 below this process's own,
// on v2 beside it, because one that holds processes passes no controller on
// (cgroups(7)); libcontainer does the same.
func (h hierarchies) of(controller string) group {
	g := group{controller: controller, problem: groupAbsent}
	for _, m := range h.mounts {
		switch {
		case h.kind == "v2":
			if m.kind == "cgroup2" && m.point == cgroupMount {
				g.version, g.mount, g.dir = "v2", m.point, filepath.Join(m.point, filepath.Dir(h.own[""]))
			}
		case m.kind == "cgroup2" && controller == "" && m.point == hybridMount:
			g.version, g.mount, g.dir = "v2", m.point, hybridMount
		case m.kind == "cgroup" && controller != "" && slices.Contains(m.options, controller):
			g.version, g.mount, g.dir = "v1", m.point, inMount(m, h.own[controller])
		}
	}
	if g.dir != "" {
		g.problem = g.look()
	}
	return g
}

// inMount is a cgroup's directory: a mount may show a part of the hierarchy only.
func inMount(m mounted, path string) string {
	if below, err := filepath.Rel(m.root, path); err == nil {
		path = below
	}
	return filepath.Join(m.point, path)
}

// isGroup reports whether a directory is one of a cgroup file system.
func isGroup(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && (st.Type == unix.CGROUP_SUPER_MAGIC || st.Type == unix.CGROUP2_SUPER_MAGIC)
}

// look asks the kernel about the directory.
func (g group) look() problem {
	if !isGroup(g.dir) {
		return groupHidden
	}
	switch err := unix.Faccessat(unix.AT_FDCWD, g.dir, unix.W_OK|unix.X_OK, unix.AT_EACCESS); {
	case err == unix.EROFS:
		return groupReadOnly
	case err != nil:
		return groupForeign
	case g.version == "v1" || g.controller == "":
		return ""
	case !lists(g.dir, "cgroup.controllers", g.controller):
		return groupUnlisted
	case !lists(g.dir, "cgroup.subtree_control", g.controller) && exists(g.dir, "cgroup.events") && lists(g.dir, "cgroup.procs", ""):
		return groupBusy
	}
	return ""
}

// lists reports whether a file holds a word, any if it is "".
func lists(dir, name, word string) bool {
	b, _ := os.ReadFile(filepath.Join(dir, name))
	words := strings.Fields(string(b))
	return slices.Contains(words, word) || word == "" && len(words) > 0
}

const (
	noGroups   = "no cgroup file system"
	devicesDir = cgroupMount + "/devices"
)

// remedy says how a problem goes away.
func (g group) remedy() Remedy {
	show := "ls -ld " + g.dir + "; grep cgroup /proc/self/mountinfo"
	switch g.problem {
	case groupAbsent:
		return Remedy{noGroups, "grep cgroup /proc/self/mountinfo", "as root: mount -t cgroup2 none " + cgroupMount}
	case groupPartial:
		return Remedy{"no cgroup file system for devices", "grep cgroup /proc/self/mountinfo", "as root: mkdir -p " + devicesDir + " && mount -t cgroup -o devices none " + devicesDir}
	case groupHidden:
		return Remedy{noGroups, "findmnt -R " + cgroupMount, "as root: umount " + cgroupMount + " (what hides it), or mount -t cgroup2 none " + cgroupMount}
	case groupReadOnly:
		return Remedy{"a read-only cgroup file system", show,
			"as root: mount -o remount,bind,rw " + g.mount + " (docker: --privileged, or --cgroupns private -v /sys/fs/cgroup:/sys/fs/cgroup:rw)"}
	case groupForeign:
		if g.version == "v2" {
			return Remedy{"no cgroup of this user's own", show, "systemd-run --user --scope -p Delegate=yes codespace ..., or start codespace as root"}
		}
		return Remedy{"no cgroup of this user's own", show, "start codespace as root: v1 cgroups are not given to users"}
	case groupUnlisted:
		return Remedy{"the cgroup controller " + g.controller, "cat " + g.dir + "/cgroup.controllers",
			"enable it in the cgroups above, as root: echo +" + g.controller + " > .../cgroup.subtree_control (systemd: Delegate=yes)"}
	case groupBusy:
		return Remedy{"processes in " + g.dir, "cat " + g.dir + "/cgroup.procs", "start codespace in a cgroup of its own: systemd-run --scope -p Delegate=yes codespace ..."}
	}
	return Remedy{}
}

// Groupless reports whether sandboxes here must do without any cgroup, because no
// cgroup file system is there that libcontainer would find its way in.
func (Host) Groupless() bool {
	_, none := readHierarchies(readMounts()).none()
	return none
}

// none is the hierarchy for whose sake a sandbox does without all of them.
func (h hierarchies) none() (group, bool) {
	g, is := h.broken(false)
	return g, is && !isGroup(g.mount) // where only this process's own is not seen, libcontainer may make it
}

// usable is where a controller's cgroups are made, if any are.
func (h hierarchies) usable(controller string) group {
	if g, none := h.none(); none {
		return g
	}
	return h.of(controller)
}

// broken is a hierarchy that is not there or, if strict, that root may not write:
// libcontainer takes both for faults, and the helper lets it do without
// (helper/container, groups.go). One without a controller may be either on v1, but
// for devices, which libcontainer insists on.
func (h hierarchies) broken(strict bool) (group, bool) {
	switch {
	case h.of("devices").dir != "":
	case h.kind == "v1", h.kind == "hybrid":
		return group{problem: groupPartial}, true
	default:
		return group{problem: groupAbsent}, true
	}
	for _, c := range slices.Sorted(maps.Keys(h.own)) {
		g := h.of(c)
		if h.kind != "v2" && (c == "" || strings.HasPrefix(c, "name=")) {
			continue
		}
		if g.dir != "" && (g.problem == groupHidden || strict && g.problem == groupReadOnly) {
			return g, true
		}
	}
	return group{}, false
}
