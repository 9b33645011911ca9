package sandbox

import (
	"os"
	"slices"
	"strings"
	"syscall"
)

// The remedies. A failure and a finding about the same obstacle give the same
// one, so that what doctor says and what a command's error says agree.

var (
	rootOfNamespace = Remedy{"a user namespace whose root is the host's root", "cat /proc/self/uid_map",
		"start codespace as the host's root or as an ordinary user: a sandbox never has host uid 0"}
	noIDMapping = Remedy{"id-mapped mounts", "findmnt -n -o FSTYPE,TARGET -T <root>",
		"move the workspace to a file system that can be id-mapped (ext4, xfs, btrfs, tmpfs), or set identity = \"owner\" for it"}
	noClone = Remedy{"kernel.unprivileged_userns_clone", "sysctl kernel.unprivileged_userns_clone",
		"as root: sysctl -w kernel.unprivileged_userns_clone=1, or start codespace as root"}
	appArmorRestricts = Remedy{"kernel.apparmor_restrict_unprivileged_userns", "sysctl kernel.apparmor_restrict_unprivileged_userns",
		"as root: give codespace-helper an AppArmor profile with the rule userns, or sysctl -w kernel.apparmor_restrict_unprivileged_userns=0; or start codespace as root"}
	maskedProc = Remedy{"a masked /proc", "grep ' /proc' /proc/self/mountinfo",
		"start this container with an unmasked /proc (docker: --security-opt systempaths=unconfined; kubernetes: procMount: Unmasked; podman: --security-opt unmask=ALL)"}
	readOnlyProc = Remedy{"a read-only /proc", "grep ' /proc ' /proc/self/mountinfo", "as root: mount -o remount,rw /proc"}
	filterDenies = Remedy{"a seccomp filter on this process", "grep -E 'Seccomp|NoNewPrivs' /proc/self/status",
		"start it without the filter (docker: --security-opt seccomp=unconfined --cap-add SYS_ADMIN; systemd: no SystemCallFilter= and RestrictNamespaces=)"}
	noAdmin = Remedy{"CAP_SYS_ADMIN", "grep CapEff /proc/self/status",
		"give this root the capability (docker: --cap-add SYS_ADMIN), or start codespace as an ordinary user"}
	confined = Remedy{"the security module's profile of this process", "cat /proc/self/attr/current",
		"start it unconfined (docker: --security-opt apparmor=unconfined --security-opt label=disable), or permit it userns and mount"}
	inChroot  = Remedy{"a chroot", "grep ' / ' /proc/self/mountinfo", "start codespace outside of it, or enter the directory by pivot_root: nobody in a chroot may make a user namespace"}
	oldKernel = Remedy{"a kernel older than 5.12", "uname -r", "run a newer kernel"}
	nested    = Remedy{"too many user namespaces inside each other", "lsns -t user", "start codespace outside of the other sandbox (the kernel allows 32)"}
)

// namespaceKinds are the kinds of namespace a sandbox is made of, by their files
// in /proc/self/ns and, with mnt first, by the names of their limits.
var namespaceKinds = []string{"mnt", "pid", "net", "ipc", "uts", "cgroup"}

func limitFile(kind string) string { return "/proc/sys/user/max_" + kind + "_namespaces" }

// limitOf is the remedy for a limit of namespaces: user.max_user_namespaces and
// its kin (namespaces(7)).
func limitOf(kind string) Remedy {
	return Remedy{"user.max_" + kind + "_namespaces", "cat " + limitFile(kind),
		"as root: sysctl -w user.max_" + kind + "_namespaces=15000, or end whoever makes so many"}
}

// spentNamespace is the first kind of which none may be made, "" if there is none.
func (h host) spentNamespace() string {
	for _, kind := range append([]string{"user"}, namespaceKinds...) {
		if sysctl(limitFile(kind)) == "0" {
			return kind
		}
	}
	return ""
}

// userNamespaces says why none can be made, or none with rights in it.
func (h host) userNamespaces(errno syscall.Errno) Remedy {
	switch {
	case errno == syscall.ENOSPC || sysctl(limitFile("user")) == "0":
		return limitOf("user")
	case errno == syscall.EUSERS:
		return nested
	case errno == syscall.EROFS:
		return readOnlyProc
	}
	if r := h.forbidden(); r.Knob != "" {
		return r
	}
	if h.confinement() != "" {
		return confined
	}
	return Remedy{"user namespaces (seccomp filter, security module or kernel build)", "unshare -Ur true; cat /proc/self/attr/current; zgrep CONFIG_USER_NS /proc/config.gz",
		"allow this process to make user namespaces (in a chroot nobody may)"}
}

// forbidden is what keeps this process from making user namespaces by a rule
// that can be read.
func (h host) forbidden() Remedy {
	switch {
	case h.denies("unshare", "clone"):
		return filterDenies
	case h.chrooted():
		return inChroot
	case hostRoot():
		return Remedy{}
	case sysctl("/proc/sys/kernel/unprivileged_userns_clone") == "0":
		return noClone
	case sysctl("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
		return appArmorRestricts
	}
	return Remedy{}
}

// denies reports whether a filter refuses one of these calls.
func (h host) denies(calls ...string) bool {
	return slices.ContainsFunc(calls, func(c string) bool { return slices.Contains(h.denied, c) })
}

// chrooted finds a chroot into a directory; one into a mount point looks like any
// root.
func (h host) chrooted() bool { return len(h.mounts) > 0 && rootKind(h.mounts) == "" }

func (h host) filtered() bool { return h.status["Seccomp"] == "2" }

// calls says why a call of setting up was refused.
func (h host) calls() Remedy {
	rule := h.forbidden()
	switch {
	case len(h.denied) > 0, len(h.absent) > 0 && h.filtered():
		return filterDenies
	case len(h.absent) > 0:
		return oldKernel
	case os.Geteuid() == 0 && !h.admin:
		return noAdmin
	case rule.Knob != "":
		return rule
	case h.confinement() != "":
		return confined
	case h.filtered():
		return filterDenies
	}
	return Remedy{"a seccomp filter or security module on this process", "cat /proc/self/attr/current; cat /sys/kernel/security/lsm", "allow the namespace and mount calls for this process"}
}

// proc says why no new /proc could be mounted.
func (h host) proc() Remedy {
	v := viewOfProc(h.mounts)
	switch {
	case v.whole && len(h.denied) > 0:
		return filterDenies
	case v.readOnly && len(v.masks) == 0:
		return readOnlyProc
	}
	return maskedProc
}

// cgroup says why a cgroup could not be made, or not with what the reason names.
func (h host) cgroup(reason string) Remedy {
	if g, is := h.groups.broken(hostRoot()); is {
		return g.remedy()
	}
	for _, c := range []string{"cpu", "pids", "memory"} {
		g := h.groups.usable(c)
		if g.problem != "" && (strings.Contains(reason, "/"+c+".") || c == "memory") {
			return g.remedy()
		}
	}
	return Remedy{"the cgroup file system", "grep cgroup /proc/self/mountinfo; cat /proc/self/cgroup",
		"mount /sys/fs/cgroup, writable by root or with a delegated subtree"}
}
