package sandbox

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Host is the host as this process finds it.
type Host struct{}

// Root reports whether this process is root of the initial user namespace,
// which alone can give a sandbox host ids of its own. Root inside a container's
// user namespace is not.
func (Host) Root() bool { return hostRoot() }

var hostRoot = sync.OnceValue(func() bool { return os.Geteuid() == 0 && initialNamespace() })

// initialNamespace reports whether every uid is what it seems.
func initialNamespace() bool {
	b, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && strings.Join(strings.Fields(string(b)), " ") == "0 0 4294967295"
}

// Starter is the identity of a sandbox that has no ids of its own on a host: the
// starting user's.
func (Host) Starter() Identity { return Identity{HostUID: -1, HostGID: -1, StartingUID: startingUID()} }

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
	h, errno := look(), syscall.Errno(f.Errno)
	switch {
	case f.Step == "identity":
		return rootOfNamespace
	case f.Step == "id-mapped mount":
		return noIDMapping
	case strings.Contains(f.Step, "user namespace"):
		return h.userNamespaces(errno)
	case errno == syscall.ENOSPC && h.spentNamespace() != "":
		return limitOf(h.spentNamespace())
	case errno == syscall.EINVAL && h.chrooted():
		return inChroot // such a root is no mount whose propagation could be set
	case f.Step == "proc" || strings.Contains(f.Reason, `"/proc"`):
		return h.proc()
	case strings.Contains(f.Step, "cgroup") || strings.Contains(f.Reason, "cgroup"):
		return h.cgroup(f.Reason)
	case errno == syscall.EPERM || errno == syscall.ENOSYS || errno == syscall.EACCES && h.confinement() != "":
		return h.calls()
	case errno == syscall.EMFILE || errno == syscall.ENFILE:
		return Remedy{"RLIMIT_NOFILE", "ulimit -n; cat /proc/sys/fs/file-nr", "raise the limit (ulimit -n 65536) or stop idle workspaces"}
	case errno == syscall.ENOMEM || errno == syscall.EAGAIN:
		return Remedy{"memory or process limits of this host", "ulimit -u; free -m", "free memory or raise the limit"}
	}
	return Remedy{}
}

func (r Remedy) String() string {
	if r.Knob == "" {
		return "run 'codespace doctor', and report this step if it finds nothing"
	}
	return fmt.Sprintf("in the way: %s (see it with: %s); %s", r.Knob, r.Show, r.Fix)
}

// host is what this process finds around it. It is read anew each time: what is
// in the way may just have been put right.
type host struct {
	status status // of this process
	mounts []mounted
	groups hierarchies
	admin  bool     // CAP_SYS_ADMIN is effective
	denied []string // calls to which a filter answers EPERM
	absent []string // calls that answer ENOSYS
}

func look() host {
	var h host
	h.status, _ = readStatus(os.Getpid()) // without /proc nothing is known, and nothing will work
	h.mounts = readMounts()
	h.groups = readHierarchies(h.mounts)
	effective, err := strconv.ParseUint(h.status["CapEff"], 16, 64)
	h.admin = err == nil && effective&(1<<unix.CAP_SYS_ADMIN) != 0
	h.denied, h.absent = refusedCalls(h.admin && hostRoot())
	if !h.filtered() {
		h.denied = nil // by something else than a filter; only building tells
	}
	return h
}

// confinement is the security module's label of this process, "" where there is
// none or it confines nothing.
func (h host) confinement() string {
	label := sysctl("/proc/self/attr/current")
	if strings.HasPrefix(label, "unconfined") || strings.Contains(label, ":unconfined_t:") {
		return ""
	}
	return strings.Trim(label, "\x00\n")
}

func sysctl(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
