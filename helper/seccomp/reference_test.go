package seccomp_test

import "golang.org/x/sys/unix"

const native = 0xc000003e // AUDIT_ARCH_X86_64

// reference is the wanted filter, written a second time and slowly: it shares
// neither table nor library with the package.
func reference(debug bool, d data) answer {
	if d.arch != native {
		return kill
	}
	if d.nr >= 0x40000000 && d.nr != 0xffffffff {
		return kill
	}
	var a [6]uint32
	for i := range a {
		a[i] = uint32(d.args[i])
	}
	if decide := decisions[d.nr]; decide != nil {
		return decide(debug, a)
	}
	switch {
	case contains(reached, d.nr), debug && contains(tracing, d.nr):
		return allow
	case contains(refused, d.nr), contains(tracing, d.nr):
		return eperm
	}
	return enosys
}

func contains(list []uint32, nr uint32) bool {
	for _, n := range list {
		if n == nr {
			return true
		}
	}
	return false
}

// decisions are the calls whose arguments matter.
var decisions = map[uint32]func(debug bool, a [6]uint32) answer{
	unix.SYS_CLONE: func(_ bool, a [6]uint32) answer {
		if a[0]&(unix.CLONE_NEWNS|unix.CLONE_NEWCGROUP|unix.CLONE_NEWUTS|unix.CLONE_NEWIPC|
			unix.CLONE_NEWUSER|unix.CLONE_NEWPID|unix.CLONE_NEWNET) != 0 {
			return eperm
		}
		return allow
	},
	unix.SYS_IOCTL: func(_ bool, a [6]uint32) answer {
		switch a[1] {
		case unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCCONS, unix.TIOCSETD:
			return eperm
		}
		if a[1] >= 0x4b00 && a[1] <= 0x4bff || a[1] >= 0x5600 && a[1] <= 0x56ff {
			return eperm
		}
		return allow
	},
	unix.SYS_SOCKETPAIR: func(_ bool, a [6]uint32) answer {
		if a[0] == unix.AF_UNIX {
			return allow
		}
		return enosys
	},
	unix.SYS_PRLIMIT64: func(_ bool, a [6]uint32) answer {
		switch {
		case a[0] == 0:
			return allow
		case a[0]%(1<<22) != 0:
			return eperm
		}
		return enosys
	},
	unix.SYS_CHMOD:       func(_ bool, a [6]uint32) answer { return setID(a[1]) },
	unix.SYS_FCHMOD:      func(_ bool, a [6]uint32) answer { return setID(a[1]) },
	unix.SYS_CREAT:       func(_ bool, a [6]uint32) answer { return setID(a[1]) },
	unix.SYS_FCHMODAT:    func(_ bool, a [6]uint32) answer { return setID(a[2]) },
	unix.SYS_FCHMODAT2:   func(_ bool, a [6]uint32) answer { return setID(a[2]) },
	unix.SYS_OPEN:        func(_ bool, a [6]uint32) answer { return open(a[1], a[2]) },
	unix.SYS_OPENAT:      func(_ bool, a [6]uint32) answer { return open(a[2], a[3]) },
	unix.SYS_MKNOD:       func(_ bool, a [6]uint32) answer { return mknod(a[1]) },
	unix.SYS_MKNODAT:     func(_ bool, a [6]uint32) answer { return mknod(a[2]) },
	unix.SYS_SOCKET:      func(_ bool, a [6]uint32) answer { return socket(a[0], a[1], a[2]) },
	unix.SYS_PERSONALITY: func(debug bool, a [6]uint32) answer { return personality(debug, a[0]) },
	unix.SYS_PRCTL:       func(debug bool, a [6]uint32) answer { return prctl(debug, a[0], a[1]) },
}

func setID(mode uint32) answer {
	if mode&(unix.S_ISUID|unix.S_ISGID) != 0 {
		return eperm
	}
	return allow
}

func open(flags, mode uint32) answer {
	if flags&(unix.O_CREAT|unix.O_TMPFILE&^unix.O_DIRECTORY) != 0 {
		return setID(mode)
	}
	return allow
}

func mknod(mode uint32) answer {
	if setID(mode) != allow {
		return eperm
	}
	switch mode % 0x10000 / 0x1000 {
	case 0, unix.S_IFREG / 0x1000, unix.S_IFIFO / 0x1000, unix.S_IFSOCK / 0x1000:
		return allow
	case unix.S_IFCHR / 0x1000, unix.S_IFBLK / 0x1000:
		return eperm
	}
	return enosys
}

func socket(family, kind, protocol uint32) answer {
	kind &^= unix.SOCK_NONBLOCK | unix.SOCK_CLOEXEC
	switch family {
	case unix.AF_UNIX:
		switch kind {
		case unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_SEQPACKET:
			return allow
		case unix.SOCK_RAW:
			return eperm
		}
		return enosys
	case unix.AF_INET:
		return internet(kind, protocol, unix.IPPROTO_ICMP)
	case unix.AF_INET6:
		return internet(kind, protocol, unix.IPPROTO_ICMPV6)
	case unix.AF_NETLINK:
		if protocol == unix.NETLINK_ROUTE && (kind == unix.SOCK_RAW || kind == unix.SOCK_DGRAM) {
			return allow
		}
		if protocol > 0 && protocol < 32 {
			return eperm
		}
		return enosys
	}
	if family < 64 {
		return eperm
	}
	return enosys
}

func internet(kind, protocol, ping uint32) answer {
	switch {
	case kind == unix.SOCK_STREAM && (protocol == 0 || protocol == unix.IPPROTO_TCP):
		return allow
	case kind == unix.SOCK_DGRAM && (protocol == 0 || protocol == unix.IPPROTO_UDP || protocol == ping):
		return allow
	case kind == unix.SOCK_RAW:
		return eperm
	}
	return enosys
}

func personality(debug bool, persona uint32) answer {
	const (
		addrNoRandomize = 0x0040000
		known           = 0x17 | 0x0ff80000 // but for UNAME26, PER_LINUX32 and ADDR_NO_RANDOMIZE
	)
	switch persona {
	case 0, 0x8, 0x20000, 0x20008, 0xffffffff:
		return allow
	case addrNoRandomize:
		if debug {
			return allow
		}
	}
	bits := uint32(known)
	if !debug {
		bits |= addrNoRandomize
	}
	if persona < 1<<31 && persona&bits != 0 {
		return eperm
	}
	return enosys
}

func prctl(debug bool, option, argument uint32) answer {
	switch option {
	case unix.PR_SET_NAME, unix.PR_GET_NAME, unix.PR_SET_DUMPABLE, unix.PR_GET_DUMPABLE,
		unix.PR_SET_PDEATHSIG, unix.PR_GET_PDEATHSIG, unix.PR_SET_NO_NEW_PRIVS, unix.PR_GET_NO_NEW_PRIVS,
		unix.PR_SET_SECCOMP, unix.PR_GET_SECCOMP, unix.PR_CAPBSET_READ, unix.PR_GET_KEEPCAPS,
		unix.PR_GET_SECUREBITS, unix.PR_SET_TIMERSLACK, unix.PR_GET_TIMERSLACK,
		unix.PR_SET_CHILD_SUBREAPER, unix.PR_GET_CHILD_SUBREAPER, unix.PR_SET_VMA,
		unix.PR_SET_THP_DISABLE, unix.PR_GET_THP_DISABLE:
		return allow
	case unix.PR_SET_KEEPCAPS, unix.PR_CAPBSET_DROP, unix.PR_SET_SECUREBITS, unix.PR_SET_MM,
		unix.PR_GET_SPECULATION_CTRL, unix.PR_SET_SPECULATION_CTRL:
		return eperm
	case unix.PR_SET_PTRACER:
		if debug {
			return allow
		}
		return eperm
	case unix.PR_CAP_AMBIENT:
		switch argument {
		case unix.PR_CAP_AMBIENT_IS_SET:
			return allow
		case unix.PR_CAP_AMBIENT_RAISE, unix.PR_CAP_AMBIENT_LOWER, unix.PR_CAP_AMBIENT_CLEAR_ALL:
			return eperm
		}
	}
	return enosys
}
