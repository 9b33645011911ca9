package patch

import (
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"codespace/runner/patching"
)

// confine gives up, for every thread and for good, all that a patch does not need.
func confine(s *patching.Setup, root int) error {
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"limits", limit},
		{"identity", func() error { return become(s.UID, s.GID) }},
		{"capabilities", dropCapabilities},
		{"no_new_privs", func() error { return everywhere(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1) }},
		{"landlock", func() error { return landlock(root) }},
		{"seccomp", func() error { return filter(s.Filter) }},
	} {
		if err := step.do(); err != nil {
			return &patching.Fault{Code: "SANDBOX_UNAVAILABLE", Message: fmt.Sprintf("the patch helper cannot lock itself down: %s: %v", step.name, err),
				Next: "codespace doctor says what this host lacks; nothing was changed", Details: map[string]any{"step": "patch helper " + step.name}}
		}
	}
	return nil
}

// everywhere makes a system call in every thread.
func everywhere(call, a, b uintptr) error {
	if _, _, errno := syscall.AllThreadsSyscall6(call, a, b, 0, 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// openFiles is enough for a directory handle of every file of a patch.
const openFiles = 4096

// ownFiles are descriptors besides those of directories, at most.
const ownFiles = 64

func limit() error {
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &now); err != nil {
		return err
	}
	most := min(now.Max, openFiles)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: most, Max: most}); err != nil {
		return err
	}
	return unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1, Max: 1}) // 1 also keeps a piped core_pattern away
}

func become(uid, gid int) error {
	if uid < 0 {
		return nil
	}
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if err := everywhere(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c); err != nil && err != unix.EINVAL { // that this kernel does not know
			return err
		}
	}
	if err := syscall.Setgroups(nil); err != nil {
		return err
	}
	if err := syscall.Setresgid(gid, gid, gid); err != nil {
		return err
	}
	return syscall.Setresuid(uid, uid, uid)
}

// Not on a stack, which moves: everywhere takes addresses as numbers.
var (
	capabilityHeader = unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	noCapabilities   [2]unix.CapUserData
)

func dropCapabilities() error {
	return everywhere(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&capabilityHeader)), uintptr(unsafe.Pointer(&noCapabilities[0])))
}

// Rights by the version of Landlock's interface (landlock(7)). What is handled and not
// granted is refused.
const (
	handledFiles = 1<<13 - 1                                       // ABI 1
	refer        = unix.LANDLOCK_ACCESS_FS_REFER                   // ABI 2
	truncate     = unix.LANDLOCK_ACCESS_FS_TRUNCATE                // ABI 3
	network      = 3                                               // ABI 4: bind and connect
	ioctlDevice  = unix.LANDLOCK_ACCESS_FS_IOCTL_DEV               // ABI 5
	scopes       = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | 1<<1 // ABI 6: and signals
	grantedFiles = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR |
		unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR
)

// landlock leaves files beneath the root, and nothing else. On a kernel without it the
// filter leaves files by openat2, which are those of the owner: the helper's own code asks
// for names beneath the root alone.
func landlock(root int) error {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno == unix.ENOSYS || errno == unix.EOPNOTSUPP { // not built in, or not switched on
		return nil
	}
	if errno != 0 {
		return errno
	}
	rules := unix.LandlockRulesetAttr{Handled_access_fs: handledFiles}
	granted := uint64(grantedFiles)
	for _, since := range []struct {
		abi uintptr
		add func()
	}{
		{2, func() { rules.Handled_access_fs |= refer; granted |= refer }},
		{3, func() { rules.Handled_access_fs |= truncate; granted |= truncate }},
		{4, func() { rules.Handled_access_net = network }},
		{5, func() { rules.Handled_access_fs |= ioctlDevice }},
		{6, func() { rules.Scoped = scopes }},
	} {
		if abi >= since.abi {
			since.add()
		}
	}
	return restrict(rules, unix.LandlockPathBeneathAttr{Allowed_access: granted, Parent_fd: int32(root)})
}

func restrict(rules unix.LandlockRulesetAttr, beneath unix.LandlockPathBeneathAttr) error {
	set, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&rules)), unsafe.Sizeof(rules), 0)
	if errno != 0 { // close-on-exec always
		return errno
	}
	defer unix.Close(int(set))
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, set, unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&beneath)), 0, 0, 0); errno != 0 {
		return errno
	}
	return everywhere(unix.SYS_LANDLOCK_RESTRICT_SELF, set, 0)
}

// filter loads the system-call filter for all threads at once.
func filter(program []byte) error {
	const instruction = 8 // sizeof(struct sock_filter)
	count := len(program) / instruction
	if count == 0 || len(program)%instruction != 0 || count > unix.BPF_MAXINSNS {
		return fmt.Errorf("a filter of %d bytes", len(program))
	}
	prog := unix.SockFprog{Len: uint16(count), Filter: (*unix.SockFilter)(unsafe.Pointer(&program[0]))}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(program)
	switch {
	case errno != 0:
		return errno
	case thread != 0:
		return fmt.Errorf("thread %d has another filter", thread)
	}
	return nil
}
