package seccomp_test

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

// row is one expectation: what the filter answers to one call.
type row struct {
	what string
	data data
	want answer
}

// expectations are the written rows, one row for each call that is answered
// whole, and all of them again with the high half of every argument filled.
func expectations(debug bool) []row {
	rows := writtenRows(debug)
	add := func(nr uint32, want answer) {
		rows = append(rows, row{fmt.Sprintf("call %d", nr), call(nr), want})
	}
	for _, nr := range reached {
		add(nr, allow)
	}
	for _, nr := range refused {
		add(nr, eperm)
	}
	for _, nr := range tracing {
		add(nr, either(debug, allow, eperm))
	}
	for nr := uint32(457); nr < 600; nr++ {
		add(nr, enosys)
	}
	for _, r := range rows {
		for i := range r.data.args {
			r.data.args[i] |= 0xdeadbeef << 32
		}
		rows = append(rows, row{r.what + ", high bits", r.data, r.want})
	}
	return rows
}

// call is a call of this architecture; arguments not given are all ones.
func call(nr uint32, args ...uint64) data {
	d := data{nr: nr, arch: native}
	for i := range d.args {
		d.args[i] = 0xffffffff
	}
	copy(d.args[:], args)
	return d
}

func either(debug bool, with, without answer) answer {
	if debug {
		return with
	}
	return without
}

func writtenRows(debug bool) []row {
	var rows []row
	for _, group := range [][]row{
		foreignRows, absentRows, cloneRows, terminalRows, socketRows, familyRows(), deviceRows, setIDRows,
		personalityRows(debug), prctlRows(debug), limitRows(),
	} {
		rows = append(rows, group...)
	}
	return rows
}

// foreignRows are E03, and the numbers of E06 that look like x32 but are not.
var foreignRows = []row{
	{"i386 getpid", data{nr: 20, arch: 0x40000003}, kill},
	{"i386 read", data{nr: 3, arch: 0x40000003}, kill},
	{"arm", data{nr: 0, arch: 0x40000028}, kill},
	{"aarch64", data{nr: 0, arch: 0xc00000b7}, kill},
	{"no architecture", data{}, kill},
	{"unknown architecture", data{arch: 0xffffffff}, kill},
	{"x32 read", call(0x40000000), kill},
	{"x32 ioctl", call(0x40000000 | 514), kill},
	{"x32 to the end", call(0xfffffffe), kill},
	{"negative", call(0x80000000), kill},
	{"below the x32 bit", call(0x3fffffff), enosys},
	{"-1, what a tracer skips a call with", call(0xffffffff), enosys},
}

// absentRows are E05, and calls whose users fall back on ENOSYS.
var absentRows = []row{
	{"clone3", call(unix.SYS_CLONE3), enosys},
	{"open_tree", call(unix.SYS_OPEN_TREE), enosys},
	{"move_mount", call(unix.SYS_MOVE_MOUNT), enosys},
	{"fsopen", call(unix.SYS_FSOPEN), enosys},
	{"fsconfig", call(unix.SYS_FSCONFIG), enosys},
	{"fsmount", call(unix.SYS_FSMOUNT), enosys},
	{"fspick", call(unix.SYS_FSPICK), enosys},
	{"mount_setattr", call(unix.SYS_MOUNT_SETATTR), enosys},
	{"get_mempolicy", call(unix.SYS_GET_MEMPOLICY), enosys},
	{"io_setup", call(unix.SYS_IO_SETUP), enosys},
	{"process_madvise", call(unix.SYS_PROCESS_MADVISE), enosys},
	{"map_shadow_stack", call(unix.SYS_MAP_SHADOW_STACK), enosys},
	{"in the gap before 424", call(400), enosys},
}

// setIDRows are every way to a file that runs as its owner, and what looks like it.
var setIDRows = []row{
	{"openat2", call(unix.SYS_OPENAT2), enosys},
	{"chmod 0755", call(unix.SYS_CHMOD, 0, 0o755), allow},
	{"chmod 1777", call(unix.SYS_CHMOD, 0, 0o1777), allow},
	{"chmod 4755", call(unix.SYS_CHMOD, 0, 0o4755), eperm},
	{"chmod 2755", call(unix.SYS_CHMOD, 0, 0o2755), eperm},
	{"chmod 6755", call(unix.SYS_CHMOD, 0, 0o6755), eperm},
	{"fchmod 0600", call(unix.SYS_FCHMOD, 3, 0o600), allow},
	{"fchmod 4600", call(unix.SYS_FCHMOD, 3, 0o4600), eperm},
	{"fchmod 2600", call(unix.SYS_FCHMOD, 3, 0o2600), eperm},
	{"fchmodat 0644", call(unix.SYS_FCHMODAT, 0, 0, 0o644), allow},
	{"fchmodat 4644", call(unix.SYS_FCHMODAT, 0, 0, 0o4644), eperm},
	{"fchmodat 2644", call(unix.SYS_FCHMODAT, 0, 0, 0o2644), eperm},
	{"fchmodat2 0644", call(unix.SYS_FCHMODAT2, 0, 0, 0o644), allow},
	{"fchmodat2 4644", call(unix.SYS_FCHMODAT2, 0, 0, 0o4644), eperm},
	{"fchmodat2 2644", call(unix.SYS_FCHMODAT2, 0, 0, 0o2644), eperm},
	{"creat 0666", call(unix.SYS_CREAT, 0, 0o666), allow},
	{"creat 4777", call(unix.SYS_CREAT, 0, 0o4777), eperm},
	{"creat 2777", call(unix.SYS_CREAT, 0, 0o2777), eperm},
	{"open to read, any third register", call(unix.SYS_OPEN, 0, unix.O_RDONLY), allow},
	{"open to create 0666", call(unix.SYS_OPEN, 0, unix.O_WRONLY|unix.O_CREAT, 0o666), allow},
	{"open to create 4777", call(unix.SYS_OPEN, 0, unix.O_WRONLY|unix.O_CREAT, 0o4777), eperm},
	{"open to create 2777", call(unix.SYS_OPEN, 0, unix.O_WRONLY|unix.O_CREAT, 0o2777), eperm},
	{"open a nameless file 4777", call(unix.SYS_OPEN, 0, unix.O_WRONLY|unix.O_TMPFILE, 0o4777), eperm},
	{"open a nameless file 2777", call(unix.SYS_OPEN, 0, unix.O_WRONLY|unix.O_TMPFILE, 0o2777), eperm},
	{"openat a directory, any fourth register", call(unix.SYS_OPENAT, 0, 0, unix.O_DIRECTORY), allow},
	{"openat to create 0600", call(unix.SYS_OPENAT, 0, 0, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, 0o600), allow},
	{"openat to create 4777", call(unix.SYS_OPENAT, 0, 0, unix.O_RDWR|unix.O_CREAT, 0o4777), eperm},
	{"openat to create 2777", call(unix.SYS_OPENAT, 0, 0, unix.O_RDWR|unix.O_CREAT, 0o2777), eperm},
	{"openat a nameless file 0600", call(unix.SYS_OPENAT, 0, 0, unix.O_RDWR|unix.O_TMPFILE, 0o600), allow},
	{"openat a nameless file 4777", call(unix.SYS_OPENAT, 0, 0, unix.O_RDWR|unix.O_TMPFILE, 0o4777), eperm},
	{"openat a nameless file 2777", call(unix.SYS_OPENAT, 0, 0, unix.O_RDWR|unix.O_TMPFILE, 0o2777), eperm},
	{"open to create a nameless file 0600", call(unix.SYS_OPEN, 0, unix.O_WRONLY|unix.O_TMPFILE|unix.O_CREAT, 0o600), allow},
	{"open a nameless file 0600", call(unix.SYS_OPEN, 0, unix.O_WRONLY|unix.O_TMPFILE, 0o600), allow},
	{"openat to create a nameless file 0600", call(unix.SYS_OPENAT, 0, 0, unix.O_WRONLY|unix.O_TMPFILE|unix.O_CREAT, 0o600), allow},
	{"open to read 6777", call(unix.SYS_OPEN, 0, unix.O_RDONLY, 0o6777), allow},
	{"openat to read 6777", call(unix.SYS_OPENAT, 0, 0, unix.O_RDONLY, 0o6777), allow},
	{"open to create 6777", call(unix.SYS_OPEN, 0, unix.O_CREAT, 0o6777), eperm},
	{"openat to create 6777", call(unix.SYS_OPENAT, 0, 0, unix.O_CREAT, 0o6777), eperm},
	{"mknod a file 4777", call(unix.SYS_MKNOD, 0, unix.S_IFREG|0o4777), eperm},
	{"mknod a file 2777", call(unix.SYS_MKNOD, 0, unix.S_IFREG|0o2777), eperm},
	{"mknodat a file 4777", call(unix.SYS_MKNODAT, 0, 0, unix.S_IFREG|0o4777), eperm},
	{"mknodat a file 2777", call(unix.SYS_MKNODAT, 0, 0, unix.S_IFREG|0o2777), eperm},
}

const sigchld = uint64(unix.SIGCHLD)

var cloneRows = []row{
	{"fork of glibc", call(unix.SYS_CLONE, unix.CLONE_CHILD_SETTID|unix.CLONE_CHILD_CLEARTID|sigchld), allow},
	{"thread of glibc", call(unix.SYS_CLONE, 0x3d0f00), allow},
	{"process of Go", call(unix.SYS_CLONE, unix.CLONE_VFORK|unix.CLONE_VM|unix.CLONE_PIDFD|sigchld), allow},
	{"CLONE_NEWTIME is an exit signal here", call(unix.SYS_CLONE, unix.CLONE_NEWTIME), allow},
	{"CLONE_NEWNS", call(unix.SYS_CLONE, unix.CLONE_NEWNS|sigchld), eperm},
	{"CLONE_NEWCGROUP", call(unix.SYS_CLONE, unix.CLONE_NEWCGROUP|sigchld), eperm},
	{"CLONE_NEWUTS", call(unix.SYS_CLONE, unix.CLONE_NEWUTS|sigchld), eperm},
	{"CLONE_NEWIPC", call(unix.SYS_CLONE, unix.CLONE_NEWIPC|sigchld), eperm},
	{"CLONE_NEWUSER", call(unix.SYS_CLONE, unix.CLONE_NEWUSER|sigchld), eperm},
	{"CLONE_NEWPID", call(unix.SYS_CLONE, unix.CLONE_NEWPID|sigchld), eperm},
	{"CLONE_NEWNET", call(unix.SYS_CLONE, unix.CLONE_NEWNET|sigchld), eperm},
	{"all flags", call(unix.SYS_CLONE), eperm},
}

// terminalRows are F01 and F02, with their neighbours and what a shell needs.
var terminalRows = []row{
	{"TIOCSTI", call(unix.SYS_IOCTL, 0, unix.TIOCSTI), eperm},
	{"TIOCLINUX", call(unix.SYS_IOCTL, 0, unix.TIOCLINUX), eperm},
	{"TIOCCONS", call(unix.SYS_IOCTL, 0, unix.TIOCCONS), eperm},
	{"TIOCSETD", call(unix.SYS_IOCTL, 0, unix.TIOCSETD), eperm},
	{"KDSKBENT", call(unix.SYS_IOCTL, 0, 0x4b47), eperm},
	{"KDSETMODE", call(unix.SYS_IOCTL, 0, 0x4b3a), eperm},
	{"KDFONTOP", call(unix.SYS_IOCTL, 0, 0x4b72), eperm},
	{"VT_ACTIVATE", call(unix.SYS_IOCTL, 0, 0x5606), eperm},
	{"VT_DISALLOCATE", call(unix.SYS_IOCTL, 0, 0x5608), eperm},
	{"TIOCSCTTY, the cell's own PID 1", call(unix.SYS_IOCTL, 0, unix.TIOCSCTTY, 0), allow},
	{"TCGETS", call(unix.SYS_IOCTL, 0, unix.TCGETS), allow},
	{"TIOCSPGRP", call(unix.SYS_IOCTL, 0, unix.TIOCSPGRP), allow},
	{"TIOCSWINSZ", call(unix.SYS_IOCTL, 0, unix.TIOCSWINSZ), allow},
	{"TIOCGETD", call(unix.SYS_IOCTL, 0, unix.TIOCGETD), allow},
	{"TIOCGPTPEER", call(unix.SYS_IOCTL, 0, unix.TIOCGPTPEER), allow},
	{"FIONREAD", call(unix.SYS_IOCTL, 0, 0x541b), allow},
	{"FICLONE", call(unix.SYS_IOCTL, 0, unix.FICLONE), allow},
	{"all ones", call(unix.SYS_IOCTL), allow},
}

const sockFlags = unix.SOCK_NONBLOCK | unix.SOCK_CLOEXEC

var socketRows = []row{
	{"unix stream", call(unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM, 0), allow},
	{"unix datagram", call(unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_DGRAM|sockFlags, 0), allow},
	{"unix packets", call(unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0), allow},
	{"unix raw", call(unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_RAW, 0), eperm},
	{"TCP", call(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM|sockFlags, 0), allow},
	{"TCP by name", call(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_TCP), allow},
	{"UDP", call(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0), allow},
	{"UDP by name", call(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDP), allow},
	{"ping", call(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP), allow},
	{"TCP 6", call(unix.SYS_SOCKET, unix.AF_INET6, unix.SOCK_STREAM|sockFlags, 0), allow},
	{"TCP 6 by name", call(unix.SYS_SOCKET, unix.AF_INET6, unix.SOCK_STREAM, unix.IPPROTO_TCP), allow},
	{"UDP 6", call(unix.SYS_SOCKET, unix.AF_INET6, unix.SOCK_DGRAM, 0), allow},
	{"UDP 6 by name", call(unix.SYS_SOCKET, unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_UDP), allow},
	{"ping 6", call(unix.SYS_SOCKET, unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_ICMPV6), allow},
	{"MPTCP", call(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP), enosys},
	{"SCTP", call(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP), enosys},
	{"L2TP", call(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_L2TP), enosys},
	{"SCTP packets", call(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_SEQPACKET, 0), enosys},
	{"DCCP", call(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DCCP, unix.IPPROTO_DCCP), enosys},
	{"raw", call(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_RAW|sockFlags, unix.IPPROTO_ICMP), eperm},
	{"raw 6", call(unix.SYS_SOCKET, unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_RAW), eperm},
	{"unknown flag", call(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM|0x10, 0), enosys},
	{"routes", call(unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE), allow},
	{"routes by datagram", call(unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_DGRAM, unix.NETLINK_ROUTE), allow},
	{"routes by stream", call(unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_STREAM, unix.NETLINK_ROUTE), enosys},
	{"netlink 1", call(unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW, 1), eperm},
	{"netlink firewall", call(unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW, 3), eperm},
	{"netlink diagnosis", call(unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_INET_DIAG), eperm},
	{"netlink netfilter", call(unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER), eperm},
	{"netlink generic", call(unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_GENERIC), eperm},
	{"netlink 32", call(unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW, 32), enosys},
	{"all ones", call(unix.SYS_SOCKET), enosys},
	{"pair of unix sockets", call(unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_STREAM, 0), allow},
	{"pair of internet sockets", call(unix.SYS_SOCKETPAIR, unix.AF_INET, unix.SOCK_STREAM, 0), enosys},
	{"pair of TIPC sockets", call(unix.SYS_SOCKETPAIR, unix.AF_TIPC, unix.SOCK_STREAM, 0), enosys},
}

// familyRows are E07: every other family, every type, both ways to ask.
func familyRows() []row {
	var rows []row
	for family := uint64(0); family <= 64; family++ {
		switch family {
		case unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK:
			continue
		}
		want := eperm
		if family == 64 {
			want = enosys
		}
		for kind := uint64(0); kind <= 15; kind++ {
			what := fmt.Sprintf("family %d type %d", family, kind)
			rows = append(rows,
				row{what, call(unix.SYS_SOCKET, family, kind, 0), want},
				row{what + " as a pair", call(unix.SYS_SOCKETPAIR, family, kind, 0), enosys})
		}
	}
	return rows
}

var deviceRows = []row{
	{"fifo", call(unix.SYS_MKNOD, 0, unix.S_IFIFO|0o644, 0), allow},
	{"socket", call(unix.SYS_MKNOD, 0, unix.S_IFSOCK|0o644, 0), allow},
	{"file", call(unix.SYS_MKNOD, 0, unix.S_IFREG|0o644, 0), allow},
	{"no type", call(unix.SYS_MKNOD, 0, 0o644, 0), allow},
	{"character device", call(unix.SYS_MKNOD, 0, unix.S_IFCHR|0o666, 0x101), eperm},
	{"block device", call(unix.SYS_MKNOD, 0, unix.S_IFBLK|0o666, 0x800), eperm},
	{"directory", call(unix.SYS_MKNOD, 0, unix.S_IFDIR|0o755, 0), enosys},
	{"bits above the mode", call(unix.SYS_MKNOD, 0, 0x10000|unix.S_IFBLK, 0x800), eperm},
	{"fifo at", call(unix.SYS_MKNODAT, 0, 0, unix.S_IFIFO|0o644, 0), allow},
	{"socket at", call(unix.SYS_MKNODAT, 0, 0, unix.S_IFSOCK|0o644, 0), allow},
	{"file at", call(unix.SYS_MKNODAT, 0, 0, unix.S_IFREG|0o644, 0), allow},
	{"no type at", call(unix.SYS_MKNODAT, 0, 0, 0o644, 0), allow},
	{"character device at", call(unix.SYS_MKNODAT, 0, 0, unix.S_IFCHR|0o666, 0x101), eperm},
	{"whiteout at", call(unix.SYS_MKNODAT, 0, 0, unix.S_IFCHR, 0), eperm},
	{"block device at", call(unix.SYS_MKNODAT, 0, 0, unix.S_IFBLK|0o666, 0x800), eperm},
}

func personalityRows(debug bool) []row {
	rows := []row{
		{"persona 0", call(unix.SYS_PERSONALITY, 0), allow},
		{"linux32", call(unix.SYS_PERSONALITY, 0x8), allow},
		{"uname26", call(unix.SYS_PERSONALITY, 0x20000), allow},
		{"linux32 and uname26", call(unix.SYS_PERSONALITY, 0x20008), allow},
		{"persona asked", call(unix.SYS_PERSONALITY, 0xffffffff), allow},
		{"ADDR_NO_RANDOMIZE", call(unix.SYS_PERSONALITY, 0x40000), either(debug, allow, eperm)},
		{"READ_IMPLIES_EXEC", call(unix.SYS_PERSONALITY, 0x400000), eperm},
		{"ADDR_NO_RANDOMIZE and READ_IMPLIES_EXEC", call(unix.SYS_PERSONALITY, 0x440000), eperm},
		{"persona 0x100", call(unix.SYS_PERSONALITY, 0x100), enosys},
	}
	for _, bit := range []uint{0, 1, 2, 4, 19, 20, 21, 22, 23, 24, 25, 26, 27} {
		rows = append(rows, row{fmt.Sprintf("persona bit %d", bit), call(unix.SYS_PERSONALITY, 1<<bit), eperm})
	}
	return rows
}

func prctlRows(debug bool) []row {
	rows := []row{
		{"ambient capability asked", call(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_IS_SET), allow},
		{"ambient capability raised", call(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE), eperm},
		{"ambient capability lowered", call(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_LOWER), eperm},
		{"ambient set cleared", call(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL), eperm},
		{"ambient all ones", call(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT), enosys},
		{"PR_SET_PTRACER", call(unix.SYS_PRCTL, unix.PR_SET_PTRACER), either(debug, allow, eperm)},
		{"PR_SCHED_CORE", call(unix.SYS_PRCTL, unix.PR_SCHED_CORE), enosys},
		{"unknown option", call(unix.SYS_PRCTL, 1000), enosys},
		{"all ones", call(unix.SYS_PRCTL), enosys},
	}
	for _, option := range []uint64{1, 2, 3, 4, 7, 15, 16, 21, 22, 23, 27, 29, 30, 36, 37, 38, 39, 41, 42, 0x53564d41} {
		rows = append(rows, row{fmt.Sprintf("prctl %d", option), call(unix.SYS_PRCTL, option), allow})
	}
	for _, option := range []uint64{8, 24, 28, 35, 52, 53} {
		rows = append(rows, row{fmt.Sprintf("prctl %d", option), call(unix.SYS_PRCTL, option), eperm})
	}
	return rows
}

func limitRows() []row {
	rows := []row{
		{"own limits", call(unix.SYS_PRLIMIT64, 0), allow},
		{"limits of all ones", call(unix.SYS_PRLIMIT64), eperm},
		{"beyond process numbers", call(unix.SYS_PRLIMIT64, 1<<22), enosys},
	}
	for bit := range 22 {
		rows = append(rows, row{fmt.Sprintf("limits of %d", 1<<bit), call(unix.SYS_PRLIMIT64, 1<<bit), eperm})
	}
	return rows
}

// TestExpectations: both programs together answer every row, and so does the
// reference that the random test trusts.
func TestExpectations(t *testing.T) {
	for _, debug := range []bool{false, true} {
		f := compiled(t, debug)
		for _, r := range expectations(debug) {
			if got := f.answer(t, r.data); got != r.want {
				t.Errorf("debug %v: %s: %v, want %v", debug, r.what, got, r.want)
			}
			if got := reference(debug, r.data); got != r.want {
				t.Errorf("debug %v: %s: the reference says %v, want %v", debug, r.what, got, r.want)
			}
		}
	}
}
