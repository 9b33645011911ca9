package sandbox

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The layers, each judged by what the kernel shows.

func (h host) surveyUserNamespaces() Finding {
	limit := sysctl(limitFile("user"))
	switch r := h.forbidden(); {
	case limit == "0":
		return lacks(limitOf("user"), "none may be made")
	case r == appArmorRestricts:
		return Finding{State: weaker, Strength: "only for programs whose AppArmor profile permits it", Remedy: r}
	case r.Knob != "":
		return lacks(r, "none may be made")
	case limit == "":
		return lacks(Remedy{"a kernel without user namespaces", "zgrep CONFIG_USER_NS /proc/config.gz", "run a kernel with CONFIG_USER_NS"}, "the kernel has none")
	}
	return has("may be made, at most " + limit)
}

func (h host) surveyNamespaces() Finding {
	for _, kind := range namespaceKinds {
		if _, err := os.Stat("/proc/self/ns/" + kind); err != nil {
			return lacks(Remedy{"a kernel without " + kind + " namespaces", "ls /proc/self/ns", "run a kernel that has them"}, "no "+kind)
		}
		if sysctl(limitFile(kind)) == "0" {
			return lacks(limitOf(kind), "no "+kind+" namespace may be made")
		}
	}
	if hostRoot() && !h.admin {
		return lacks(noAdmin, "this root may not make any")
	}
	return has("mount pid net ipc uts cgroup, new for each sandbox")
}

func (h host) surveyMounts() Finding {
	switch {
	case len(h.denied) > 0:
		return lacks(filterDenies, "a filter answers EPERM to "+strings.Join(h.denied, ", "))
	case len(h.absent) > 0:
		return lacks(h.calls(), "there is no "+strings.Join(h.absent, ", "))
	}
	return has("an allow-listed view, mounted by descriptor")
}

func (h host) surveyProc() Finding {
	v := viewOfProc(h.mounts)
	switch {
	case v.whole:
		return has("a new one for each command")
	case len(v.masks) > 0:
		return lacks(maskedProc, "the kernel permits no new one while this is mounted over: "+few(v.masks))
	case v.readOnly:
		return lacks(readOnlyProc, "the kernel permits no new one while this one is read-only")
	}
	return lacks(Remedy{"no /proc", "ls /proc", "as root: mount -t proc proc /proc"}, "there is none")
}

func (h host) surveyIdentity() Finding {
	uid := startingUID()
	switch {
	case hostRoot():
		return has("a host uid of its own for each workspace, never 0")
	case uid == 0:
		return lacks(rootOfNamespace, "a sandbox would have uid 0 of the namespace around this one, which may be the host")
	case uid < 0:
		return lacks(Remedy{"no /proc", "cat /proc/self/uid_map", "as root: mount -t proc proc /proc"}, "the starting user's uid cannot be told")
	}
	return Finding{State: weaker, Strength: "the starting user's uid " + strconv.Itoa(uid) + ", shared with that user's processes",
		Remedy: Remedy{"not started as root", "id -u", "start codespace as root: each workspace then has a host uid of its own"}}
}

// unmappable are file systems that cannot be id-mapped, by statfs(2)'s type
// (those without FS_ALLOW_IDMAP).
var unmappable = map[int64]string{unix.OVERLAYFS_SUPER_MAGIC: "overlayfs", unix.NFS_SUPER_MAGIC: "nfs", unix.V9FS_MAGIC: "9p", unix.SMB2_SUPER_MAGIC: "smb", 0xff534d42: "cifs"}

func (h host) surveyIDMapping() Finding {
	var st unix.Statfs_t
	switch err := unix.Statfs(".", &st); {
	case !hostRoot():
		return Finding{State: unused, Strength: "the sandbox has the uid that owns the files"}
	case !kernelAtLeast(5, 12):
		return lacks(oldKernel, "the kernel has no id-mapped mounts")
	case err == nil && unmappable[int64(st.Type)] != "":
		return lacks(noIDMapping, "the current directory lies on "+unmappable[int64(st.Type)]+", which cannot be id-mapped")
	}
	return has("files keep their owner on disk (ext4, xfs, btrfs, tmpfs)")
}

func (h host) surveyCapabilities() Finding {
	if _, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, 0, 0, 0, 0); err != nil {
		return lacks(Remedy{"prctl PR_CAPBSET_READ", "capsh --print", "allow prctl for this process"}, "the sets cannot be read: "+err.Error())
	}
	return has("none in any of the five sets, no_new_privs")
}

const actionsFile = "/proc/sys/kernel/seccomp/actions_avail"

func (h host) surveySeccomp() Finding {
	actions := strings.Fields(sysctl(actionsFile))
	for _, want := range []string{"allow", "errno", "kill_process"} {
		if !slices.Contains(actions, want) {
			return lacks(Remedy{"a kernel without the seccomp action " + want, "cat " + actionsFile, "run a kernel with CONFIG_SECCOMP_FILTER, 4.14 or newer"}, "no "+want)
		}
	}
	return has("an allow-list and a deny-list (" + strings.Join(actions, " ") + ")")
}

func (h host) surveyOpenat2() Finding {
	switch err := openat2Works(); {
	case err == nil:
		return has("paths are resolved without links")
	case err == unix.ENOSYS && !kernelAtLeast(5, 6):
		return lacks(oldKernel, "the kernel has none")
	default:
		return lacks(filterDenies, "it answers: "+err.Error())
	}
}

func (h host) surveyLandlock() Finding {
	if abi := landlockABI(); abi > 0 {
		return Finding{State: unused, Strength: fmt.Sprintf("ABI %d, used for patches only so far", abi)}
	}
	return Finding{State: unused, Strength: "the kernel has none, or it is off; used for patches only so far"}
}

func (h host) surveyLimits() Finding {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) == nil && l.Max < 1024 {
		return Finding{State: weaker, Strength: fmt.Sprintf("open files: at most the %d of this process, not 1024", l.Max),
			Remedy: Remedy{"RLIMIT_NOFILE", "ulimit -H -n", "raise the hard limit: ulimit -n 65536 as root, or nofile in limits.conf(5)"}}
	}
	return has("open files, core, locked memory, queues, processes")
}

func (h host) surveyMemory() Finding {
	g := h.groups.usable("memory")
	if g.problem != "" {
		return h.noGroup(g, "not limited, --strict refuses")
	}
	return has("a limit for each command, no swap; " + h.where(g))
}

func (h host) surveyPIDs() Finding {
	if g := h.groups.usable("pids"); g.problem == "" {
		return has("a limit for each command; " + h.where(g))
	}
	return has("RLIMIT_NPROC in a user namespace of each command's own, as exact")
}

func (h host) surveyKill() Finding {
	g := h.groups.usable("")
	switch {
	case g.problem == "" && !kernelAtLeast(5, 14):
		return Finding{State: weaker, Strength: byNamespace, Remedy: Remedy{"a kernel older than 5.14", "uname -r", "run a newer kernel"}}
	case g.problem == groupAbsent && h.groups.kind == "v1":
		return Finding{State: weaker, Strength: byNamespace, Remedy: Remedy{"no v2 cgroup hierarchy", "grep cgroup2 /proc/self/mountinfo",
			"as root: mkdir -p " + hybridMount + " && mount -t cgroup2 none " + hybridMount}}
	case g.problem != "":
		f := h.noGroup(g, byNamespace)
		f.State = weaker
		return f
	}
	return has("cgroup.kill ends a whole tree at once; " + h.where(g))
}

const byNamespace = "a tree is ended by the end of its pid namespace alone"

func (h host) surveyCPU() Finding {
	g := h.groups.usable("cpu")
	switch {
	case g.problem != "":
		return h.noGroup(g, "not limited")
	case !hostRoot():
		return lacks(Remedy{"not started as root", "id -u", "start codespace as root"}, "not limited")
	}
	return has("half the share of a process outside; " + h.where(g))
}

func (h host) where(g group) string { return g.version + " in " + g.dir }

func (h host) noGroup(g group, strength string) Finding {
	seen := string(g.problem)
	if g.dir != "" {
		seen = g.version + " in " + g.dir + ": " + seen
	}
	if strength != "" {
		seen = strength + "; " + seen
	}
	return lacks(g.remedy(), seen)
}
