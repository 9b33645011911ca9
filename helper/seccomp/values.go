package seccomp

import (
	"slices"
	"syscall"
)

// Numbers the syscall package does not have, from linux/prctl.h.
const (
	prGetSpeculation = 52
	prSetSpeculation = 53
	prSetMM          = 35
	ambientClearAll  = 4
)

// refusedValues makes up the second program: values of calls that otherwise
// pass. For ioctl it is the only barrier; elsewhere the first program refuses
// them too, but with ENOSYS, and a value that is known to be refused says EPERM.
func refusedValues() []Rule {
	return slices.Concat(terminals, namespaces, sockets, devices, setIDs(), privileges, personalities(), otherProcesses())
}

// terminals: what reaches past a terminal's own data to whoever shares it.
var terminals = []Rule{
	never("ioctl", "TIOCSTI types into the terminal", is(1, syscall.TIOCSTI)),
	never("ioctl", "TIOCLINUX pastes into the console", is(1, syscall.TIOCLINUX)),
	never("ioctl", "TIOCCONS takes the console's output", is(1, syscall.TIOCCONS)),
	never("ioctl", "TIOCSETD loads a line discipline: old kernel code", is(1, syscall.TIOCSETD)),
	never("ioctl", "KDSKBENT and its like, linux/kd.h: keys, fonts and lights of the console", Match{1, 0xffffff00, 0x4b00}),
	never("ioctl", "VT_ACTIVATE and its like, linux/vt.h: which console is seen", Match{1, 0xffffff00, 0x5600}),
}

var namespaces = []Rule{
	never("clone", "CLONE_NEWNS", flag(0, syscall.CLONE_NEWNS)),
	never("clone", "CLONE_NEWCGROUP", flag(0, syscall.CLONE_NEWCGROUP)),
	never("clone", "CLONE_NEWUTS", flag(0, syscall.CLONE_NEWUTS)),
	never("clone", "CLONE_NEWIPC", flag(0, syscall.CLONE_NEWIPC)),
	never("clone", "CLONE_NEWUSER gives capabilities over a fresh kernel surface", flag(0, syscall.CLONE_NEWUSER)),
	never("clone", "CLONE_NEWPID", flag(0, syscall.CLONE_NEWPID)),
	never("clone", "CLONE_NEWNET", flag(0, syscall.CLONE_NEWNET)),
}

// eitherInternet matches AF_INET (2) and AF_INET6 (10), which differ in one bit.
var eitherInternet = Match{0, ^uint32(syscall.AF_INET ^ syscall.AF_INET6), syscall.AF_INET & syscall.AF_INET6}

// sockets: the families below 64 that are not in filtered.go, in blocks of
// numbers that share their high bits; then raw sockets and netlink's protocols
// below 32 but NETLINK_ROUTE (0), likewise.
var sockets = []Rule{
	never("socket", "AF_UNSPEC", is(0, 0)),
	never("socket", "AX.25", is(0, 3)),
	never("socket", "IPX, AppleTalk, NET/ROM, bridge", Match{0, ^uint32(3), 4}),
	never("socket", "ATM, X.25", Match{0, ^uint32(1), 8}),
	never("socket", "ROSE", is(0, 11)),
	never("socket", "DECnet, NETBEUI, security, key management", Match{0, ^uint32(3), 12}),
	never("socket", "packets of the link layer", is(0, 17)),
	never("socket", "Ash, Econet", Match{0, ^uint32(1), 18}),
	never("socket", "ATM, RDS, SNA, IrDA", Match{0, ^uint32(3), 20}),
	never("socket", "PPPoX, Wanpipe, LLC, InfiniBand, MPLS, CAN, TIPC, Bluetooth", Match{0, ^uint32(7), 24}),
	never("socket", "AF_ALG, AF_VSOCK, AF_XDP and their like, and families to come", Match{0, ^uint32(31), 32}),

	never("socket", "raw local sockets", local, raw),
	never("socket", "raw internet sockets", eitherInternet, raw),

	never("socket", "netlink: unused", netlink, is(2, 1)),
	never("socket", "netlink: user sockets, firewall", netlink, Match{2, ^uint32(1), 2}),
	never("socket", "netlink: socket diagnosis, netfilter log, IPsec, SELinux", netlink, Match{2, ^uint32(3), 4}),
	never("socket", "netlink: iSCSI, audit, routing, connector, netfilter", netlink, Match{2, ^uint32(7), 8}),
	never("socket", "netlink: device events and the families after it", netlink, Match{2, ^uint32(15), 16}),
}

var devices = []Rule{
	never("mknod", "character devices", fileType(1, syscall.S_IFCHR)),
	never("mknod", "block devices", fileType(1, syscall.S_IFBLK)),
	never("mknodat", "character devices", fileType(2, syscall.S_IFCHR)),
	never("mknodat", "block devices", fileType(2, syscall.S_IFBLK)),
}

var privileges = []Rule{
	never("prctl", "keeps capabilities over setuid", is(0, syscall.PR_SET_KEEPCAPS)),
	never("prctl", "drops from the bounding set, which is empty", is(0, syscall.PR_CAPBSET_DROP)),
	never("prctl", "the bits are locked", is(0, syscall.PR_SET_SECUREBITS)),
	never("prctl", "moves the borders of the address space: for checkpointing", is(0, prSetMM)),
	never("prctl", "raises or lowers an ambient capability", is(0, prCapAmbient), Match{1, ^uint32(1), 2}),
	never("prctl", "clears the ambient capabilities, which are empty", is(0, prCapAmbient), is(1, ambientClearAll)),
	never("prctl", "reads a mitigation of the processor", is(0, prGetSpeculation)),
	never("prctl", "switches a mitigation of the processor", is(0, prSetSpeculation)),
}

// personalities: every known bit (linux/personality.h) that no allowed value
// has, unless bit 31 shows that the call only asks. ADDR_NO_RANDOMIZE is in
// tracing.go.
func personalities() []Rule {
	var rules []Rule
	for _, bit := range []struct {
		flag   uint32
		reason string
	}{
		{0x01, "another system's execution domain"},
		{0x02, "another system's execution domain"},
		{0x04, "another system's execution domain"},
		{0x10, "another system's execution domain"},
		{0x0080000, "FDPIC_FUNCPTRS"},
		{0x0100000, "MMAP_PAGE_ZERO makes null pointers of the kernel exploitable"},
		{0x0200000, "ADDR_COMPAT_LAYOUT weakens random addresses"},
		{0x0400000, "READ_IMPLIES_EXEC makes all memory executable"},
		{0x0800000, "ADDR_LIMIT_32BIT weakens random addresses"},
		{0x1000000, "SHORT_INODE"},
		{0x2000000, "WHOLE_SECONDS"},
		{0x4000000, "STICKY_TIMEOUTS"},
		{0x8000000, "ADDR_LIMIT_3GB weakens random addresses"},
	} {
		rules = append(rules, never("personality", bit.reason, Match{0, bit.flag | asksOnly, bit.flag}))
	}
	return rules
}

// otherProcesses: the limits of a process named by its number, one rule for
// each bit such a number can have (PID_MAX_LIMIT is 2^22).
func otherProcesses() []Rule {
	var rules []Rule
	for bit := range 22 {
		rules = append(rules, never("prlimit64", "limits of another process", flag(0, 1<<bit)))
	}
	return rules
}

// never refuses a call while all matches hold.
func never(name, reason string, when ...Match) Rule {
	return Rule{Name: name, Group: "refused values", Action: Deny, Reason: reason, When: when}
}

// flag matches an argument that has all the bits.
func flag(arg uint, bits uint32) Match {
	return Match{arg, bits, bits}
}
