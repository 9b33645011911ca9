package seccomp

import "syscall"

// Numbers the syscall package does not have, from linux/prctl.h,
// linux/personality.h and linux/sched.h.
const (
	prSetChildSubreaper = 36
	prGetChildSubreaper = 37
	prSetNoNewPrivs     = 38
	prGetNoNewPrivs     = 39
	prSetTHPDisable     = 41
	prGetTHPDisable     = 42
	prCapAmbient        = 47
	prSetVMA            = 0x53564d41
	prSetPtracer        = 0x59616d61
	ambientIsSet        = 1

	perLinux32      = 0x0000008
	uname26         = 0x0020000
	addrNoRandomize = 0x0040000
	asksOnly        = 0x80000000 // only 0xffffffff, which reads, is so large

	netlinkRoute = 0
	protoICMPv6  = 58

	// Without CLONE_NEWTIME: its bit is part of the exit signal for clone.
	newNamespaces = syscall.CLONE_NEWNS | syscall.CLONE_NEWCGROUP | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC |
		syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET
)

// What socket and socketpair are asked for.
var (
	local     = is(0, syscall.AF_UNIX)
	internet  = is(0, syscall.AF_INET)
	internet6 = is(0, syscall.AF_INET6)
	netlink   = is(0, syscall.AF_NETLINK)
	stream    = socketType(syscall.SOCK_STREAM)
	datagram  = socketType(syscall.SOCK_DGRAM)
	packets   = socketType(syscall.SOCK_SEQPACKET)
	raw       = socketType(syscall.SOCK_RAW)
)

// filtered calls pass with the listed arguments only.
var filtered = []Rule{
	only("clone", "threads and processes without a new namespace", Match{0, newNamespaces, 0}),
	only("socketpair", "pipes in both directions: Node's child_process, multiprocessing", local),
	only("prlimit64", "ulimit and getrlimit of the caller itself", is(0, 0)),

	only("mknod", "mkfifo", fileType(1, syscall.S_IFIFO)),
	only("mknod", "a socket's name, made by archivers", fileType(1, syscall.S_IFSOCK)),
	only("mknod", "a regular file, made by archivers", fileType(1, syscall.S_IFREG)),
	only("mknod", "a regular file: no type means that", fileType(1, 0)),
	only("mknodat", "mkfifo of glibc and Go", fileType(2, syscall.S_IFIFO)),
	only("mknodat", "a socket's name, made by archivers", fileType(2, syscall.S_IFSOCK)),
	only("mknodat", "a regular file, made by archivers", fileType(2, syscall.S_IFREG)),
	only("mknodat", "a regular file: no type means that", fileType(2, 0)),

	only("socket", "local stream", local, stream),
	only("socket", "local datagram", local, datagram),
	only("socket", "local sequenced packets", local, packets),
	only("socket", "TCP, unnamed", internet, stream, is(2, 0)),
	only("socket", "TCP", internet, stream, is(2, syscall.IPPROTO_TCP)),
	only("socket", "UDP, unnamed", internet, datagram, is(2, 0)),
	only("socket", "UDP", internet, datagram, is(2, syscall.IPPROTO_UDP)),
	only("socket", "ping without privilege", internet, datagram, is(2, syscall.IPPROTO_ICMP)),
	only("socket", "TCP over IPv6, unnamed", internet6, stream, is(2, 0)),
	only("socket", "TCP over IPv6", internet6, stream, is(2, syscall.IPPROTO_TCP)),
	only("socket", "UDP over IPv6, unnamed", internet6, datagram, is(2, 0)),
	only("socket", "UDP over IPv6", internet6, datagram, is(2, syscall.IPPROTO_UDP)),
	only("socket", "ping over IPv6 without privilege", internet6, datagram, is(2, protoICMPv6)),
	only("socket", "addresses and routes: getifaddrs, Go's net.Interfaces", netlink, raw, is(2, netlinkRoute)),
	only("socket", "addresses and routes: libnl", netlink, datagram, is(2, netlinkRoute)),

	only("personality", "the default", is(0, 0)),
	only("personality", "uname shows i686", is(0, perLinux32)),
	only("personality", "uname shows 2.6", is(0, uname26)),
	only("personality", "uname shows both", is(0, uname26|perLinux32)),
	only("personality", "reads the present one", is(0, 0xffffffff)),

	only("prctl", "names a thread; the cell's own PID 1", is(0, syscall.PR_SET_NAME)),
	only("prctl", "reads a thread's name", is(0, syscall.PR_GET_NAME)),
	only("prctl", "agents hide their memory", is(0, syscall.PR_SET_DUMPABLE)),
	only("prctl", "reads whether memory is hidden", is(0, syscall.PR_GET_DUMPABLE)),
	only("prctl", "a child ends with its parent: Node, supervisors", is(0, syscall.PR_SET_PDEATHSIG)),
	only("prctl", "reads the signal of a parent's end", is(0, syscall.PR_GET_PDEATHSIG)),
	only("prctl", "programs that tighten themselves", is(0, prSetNoNewPrivs)),
	only("prctl", "reads whether privileges can be gained: sandboxes, sudo", is(0, prGetNoNewPrivs)),
	only("prctl", "programs that tighten themselves, before seccomp(2)", is(0, syscall.PR_SET_SECCOMP)),
	only("prctl", "reads whether a filter is on: sandboxes", is(0, syscall.PR_GET_SECCOMP)),
	only("prctl", "reads the bounding set: libcap", is(0, syscall.PR_CAPBSET_READ)),
	only("prctl", "reads the keep-capabilities flag: libcap", is(0, syscall.PR_GET_KEEPCAPS)),
	only("prctl", "reads the secure bits: libcap", is(0, syscall.PR_GET_SECUREBITS)),
	only("prctl", "reads one ambient capability: libcap", is(0, prCapAmbient), is(1, ambientIsSet)),
	only("prctl", "timers may be late: event loops", is(0, syscall.PR_SET_TIMERSLACK)),
	only("prctl", "reads how late timers may be", is(0, syscall.PR_GET_TIMERSLACK)),
	only("prctl", "supervisors inherit orphans, within the cell", is(0, prSetChildSubreaper)),
	only("prctl", "reads whether orphans are inherited", is(0, prGetChildSubreaper)),
	only("prctl", "Go, Android and malloc name their mappings", is(0, prSetVMA)),
	only("prctl", "databases refuse huge pages", is(0, prSetTHPDisable)),
	only("prctl", "reads whether huge pages are refused: jemalloc", is(0, prGetTHPDisable)),
}

// only allows a call while all matches hold.
func only(name, reason string, when ...Match) Rule {
	return Rule{Name: name, Group: "filtered", Action: Allow, Reason: reason, When: when}
}

// socketType matches the type argument of socket, whatever its two flags.
func socketType(value uint32) Match {
	return Match{1, ^uint32(syscall.SOCK_NONBLOCK | syscall.SOCK_CLOEXEC), value}
}

// fileType matches the kind in a mode argument, of which the kernel reads 16 bits.
func fileType(arg uint, kind uint32) Match {
	return Match{arg, syscall.S_IFMT, kind}
}
