package seccomp

import "syscall"

// patching is all that a patch helper may ask of the kernel once it is locked down: what
// is done to files beneath a directory handle, a socket that it has, and what the Go
// runtime needs to run at all. There is no call in it that makes a socket, starts a
// program or reaches another process. What openat2 may open is Landlock's to say.
var patching = group("patching", Allow, []call{
	{"openat2", "every name beneath the root"},
	{"fstat", "what was opened"},
	{"read", "contents, requests"},
	{"pread64", "the runtime reads the processor limit of its cgroup again"},
	{"write", "contents"},
	{"close", "descriptors"},
	{"mkdirat", "directories of new files"},
	{"renameat2", "putting a file in place and back"},
	{"unlinkat", "what was replaced; directories that were made in vain"},
	{"fchmod", "the mode of the file before"},
	{"fchown", "its owner and group"},
	{"fsync", "files and directories"},
	{"recvmsg", "requests"},
	{"sendmsg", "answers"},
	{"munmap", "likewise"},
	{"madvise", "likewise"},
	{"futex", "threads of the runtime"},
	{"sigaltstack", "each thread's signal stack"},
	{"rt_sigprocmask", "each thread's signal mask"},
	{"rt_sigreturn", "the end of a signal's handler"},
	{"gettid", "a thread's own number"},
	{"getpid", "its own number"},
	{"epoll_create1", "the runtime's timers"},
	{"eventfd2", "likewise"},
	{"epoll_ctl", "likewise"},
	{"epoll_pwait", "likewise"},
	{"nanosleep", "the runtime's monitor"},
	{"sched_yield", "the runtime's locks"},
	{"sched_getaffinity", "how many processors there are"},
	{"clock_gettime", "where the vDSO cannot"},
	{"getrandom", "names of temporaries"},
	{"restart_syscall", "a call that a stop interrupted"},
	{"exit", "a thread ends"},
	{"exit_group", "the end"},
},
	Rule{Name: "mmap", Group: "patching", Action: Allow, Reason: "memory of the runtime, which holds no code",
		When: []Match{{Arg: 2, Mask: syscall.PROT_EXEC, Value: 0}}},
	Rule{Name: "clone", Group: "patching", Action: Allow, Reason: "threads of the runtime, no processes",
		When: []Match{{Arg: 0, Mask: syscall.CLONE_THREAD, Value: syscall.CLONE_THREAD}}},
	Rule{Name: "tgkill", Group: "patching", Action: Allow, Reason: "the runtime preempts its threads; no other signal",
		When: []Match{is(2, uint32(syscall.SIGURG))}})

// CompilePatch turns the filter of a patch helper into a program.
func CompilePatch() ([]byte, error) {
	p, err := compile(patching)
	return p.Allow, err
}
