package sandbox

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A seccomp filter is found by what it answers. Each call below is one that
// building a sandbox needs, with arguments that the kernel refuses before it looks
// at privileges and never acts on; EPERM or ENOSYS then came from a filter, or from
// a kernel without the call.
const (
	anyNamespace = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	noSuchFlags  = ^uintptr(0) >> 1
	noFD         = ^uintptr(0)
)

var setupCalls = map[string]func() unix.Errno{
	"unshare":       func() unix.Errno { return raw(unix.SYS_UNSHARE, anyNamespace|unix.CLONE_PTRACE) },
	"clone":         func() unix.Errno { return cloneNothing() },
	"clone3":        func() unix.Errno { return raw(unix.SYS_CLONE3) },
	"mount":         func() unix.Errno { return raw(unix.SYS_MOUNT) },
	"umount2":       func() unix.Errno { return raw(unix.SYS_UMOUNT2, 0, noSuchFlags) },
	"open_tree":     func() unix.Errno { return raw(unix.SYS_OPEN_TREE, noFD) },
	"fsconfig":      func() unix.Errno { return raw(unix.SYS_FSCONFIG, noFD) },
	"mount_setattr": func() unix.Errno { return raw(unix.SYS_MOUNT_SETATTR, noFD, 0, noSuchFlags) },
	"seccomp":       func() unix.Errno { return raw(unix.SYS_SECCOMP, noSuchFlags) },
}

// rootCalls look at privileges first: only with CAP_SYS_ADMIN do they tell
// anything.
var rootCalls = map[string]func() unix.Errno{
	"fsopen":     func() unix.Errno { return raw(unix.SYS_FSOPEN) },
	"fsmount":    func() unix.Errno { return raw(unix.SYS_FSMOUNT, noFD, noSuchFlags) },
	"move_mount": func() unix.Errno { return raw(unix.SYS_MOVE_MOUNT, noFD, 0, noFD, 0, noSuchFlags) },
	"pivot_root": func() unix.Errno { return raw(unix.SYS_PIVOT_ROOT) },
}

func raw(call uintptr, args ...uintptr) unix.Errno {
	var a [6]uintptr
	copy(a[:], args)
	_, _, errno := unix.RawSyscall6(call, a[0], a[1], a[2], a[3], a[4], a[5])
	return errno
}

// cloneNothing asks for a child in ways that contradict each other, three times
// over (clone(2)): there is none, and if there were it would end here.
func cloneNothing() unix.Errno {
	pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, anyNamespace|unix.CLONE_FS|unix.CLONE_SIGHAND|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno == 0 && pid == 0 {
		unix.RawSyscall(unix.SYS_EXIT_GROUP, 1, 0, 0)
	}
	if errno == 0 {
		unix.Wait4(int(pid), nil, 0, nil)
	}
	return errno
}

// refusedCalls are the calls that answered EPERM, and those that answered ENOSYS,
// each sorted by name.
func refusedCalls(admin bool) (denied, absent []string) {
	calls := maps.Clone(setupCalls)
	if admin {
		maps.Copy(calls, rootCalls)
	}
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		switch calls[name]() {
		case unix.EPERM:
			denied = append(denied, name)
		case unix.ENOSYS:
			absent = append(absent, name)
		}
	}
	return denied, absent
}

// kernelAtLeast compares with uname(2)'s release; one that cannot be read counts
// as old.
func kernelAtLeast(major, minor int) bool {
	a, b := release()
	return cmp.Or(cmp.Compare(a, major), cmp.Compare(b, minor)) >= 0
}

func release() (major, minor int) {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return 0, 0
	}
	f := strings.FieldsFunc(unix.ByteSliceToString(u.Release[:]), func(c rune) bool { return c < '0' || c > '9' })
	if len(f) < 2 {
		return 0, 0
	}
	major, _ = strconv.Atoi(f[0])
	minor, _ = strconv.Atoi(f[1])
	return major, minor
}

// landlockABI is the version of Landlock's interface, 0 where there is none
// (landlock_create_ruleset(2)).
func landlockABI() int {
	v, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// openat2Works opens the root without following links.
func openat2Works() error {
	fd, err := unix.Openat2(unix.AT_FDCWD, "/", &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS})
	if err == nil {
		unix.Close(fd)
	}
	return err
}
