package sandbox

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
)

// HostRoot reports whether this process is root of the initial user namespace,
// which alone can give a sandbox host ids of its own. Root inside a container's
// user namespace is not.
func HostRoot() bool { return hostRoot() }

var hostRoot = sync.OnceValue(func() bool {
	b, err := os.ReadFile("/proc/self/uid_map")
	if err != nil || os.Geteuid() != 0 {
		return false
	}
	return strings.Join(strings.Fields(string(b)), " ") == "0 0 4294967295"
})

// Starter is the identity of a sandbox that has no ids of its own on a host: the
// starting user's.
func Starter() Identity { return Identity{HostUID: -1, HostGID: -1, StartingUID: startingUID()} }

// startingUID is this process's uid as the user namespace around its own names
// it, -1 if that cannot be told.
func startingUID() int {
	b, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return -1
	}
	for line := range strings.Lines(string(b)) {
		var inside, outside, count int
		if n, _ := fmt.Sscan(line, &inside, &outside, &count); n == 3 && os.Geteuid() >= inside && os.Geteuid()-inside < count {
			return outside + os.Geteuid() - inside
		}
	}
	return -1
}

// Remedy is what stands in the way of a failed step: the kernel knob or host
// setting, the command that shows it and what to do.
type Remedy struct {
	Knob string `json:"knob"` // "user.max_user_namespaces"
	Show string `json:"show"` // a command that prints its state
	Fix  string `json:"fix"`
}

// Remedy names what is in the way of a failure, as far as this host tells.
func (f *Failure) Remedy() Remedy {
	errno := syscall.Errno(f.Errno)
	switch {
	case strings.Contains(f.Step, "user namespace"):
		return diagnoseUserNamespace(errno)
	case f.Step == "identity":
		return Remedy{"a user namespace whose root is the host's root", "cat /proc/self/uid_map",
			"start codespace as the host's root or as an ordinary user: a sandbox never has host uid 0"}
	case f.Step == "id-mapped mount":
		return Remedy{"id-mapped mounts", "findmnt -T <root> -o FSTYPE,TARGET",
			"move the workspace to a file system that can be id-mapped (ext4, xfs, btrfs, tmpfs), or set identity = \"owner\" for it"}
	case f.Step == "proc" || strings.Contains(f.Reason, `"/proc"`) || strings.Contains(f.Reason, "to rootfs at \"/proc"):
		return Remedy{"a masked /proc", "grep ' /proc' /proc/self/mountinfo",
			"inside a container: start it with an unmasked /proc (docker: --security-opt systempaths=unconfined, kubernetes: procMount: Unmasked)"}
	case strings.Contains(f.Reason, "cgroup"):
		return Remedy{"the cgroup file system", "grep cgroup /proc/self/mountinfo",
			"mount /sys/fs/cgroup, writable by root or with a delegated subtree"}
	case errno == syscall.EPERM || errno == syscall.ENOSYS:
		return Remedy{"a seccomp filter or security module on this process", "grep -E 'Seccomp|NoNewPrivs' /proc/self/status; cat /proc/self/attr/current",
			"allow the namespace and mount calls for this process (docker: --security-opt seccomp=unconfined --cap-add SYS_ADMIN)"}
	case errno == syscall.EMFILE || errno == syscall.ENFILE:
		return Remedy{"RLIMIT_NOFILE", "ulimit -n; cat /proc/sys/fs/file-nr", "raise the limit or stop idle workspaces"}
	case errno == syscall.ENOMEM || errno == syscall.EAGAIN:
		return Remedy{"memory or process limits of this host", "ulimit -u; free -m", "free memory or raise the limit"}
	}
	return Remedy{}
}

func diagnoseUserNamespace(errno syscall.Errno) Remedy {
	const limit = "/proc/sys/user/max_user_namespaces"
	switch {
	case errno == syscall.ENOSPC || sysctl(limit) == "0":
		return Remedy{"user.max_user_namespaces", "cat " + limit, "set it to a positive number: sysctl user.max_user_namespaces=15000"}
	case sysctl("/proc/sys/kernel/unprivileged_userns_clone") == "0":
		return Remedy{"kernel.unprivileged_userns_clone", "sysctl kernel.unprivileged_userns_clone", "sysctl kernel.unprivileged_userns_clone=1, or start as root"}
	case sysctl("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
		return Remedy{"kernel.apparmor_restrict_unprivileged_userns", "sysctl kernel.apparmor_restrict_unprivileged_userns",
			"give codespace-helper an AppArmor profile with the userns permission, or start as root"}
	}
	return Remedy{"user namespaces (seccomp filter, security module or kernel build)", "unshare -Ur true; grep Seccomp /proc/self/status",
		"allow unshare(CLONE_NEWUSER) for this process"}
}

func sysctl(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func (r Remedy) String() string {
	if r.Knob == "" {
		return "run 'codespace version' and report this step"
	}
	return fmt.Sprintf("in the way: %s (see it with: %s); %s", r.Knob, r.Show, r.Fix)
}
