package seccomp

// signals are handled, sent and waited for; none leaves the pid namespace.
var signals = group("signals", Allow, []call{
	{"rt_sigaction", "everywhere, the cell's own PID 1"},
	{"rt_sigprocmask", "everywhere, the cell's own PID 1"},
	{"rt_sigreturn", "the return of every handler"},
	{"rt_sigpending", "bash, Python's signal module"},
	{"rt_sigtimedwait", "sigwait of servers and supervisors"},
	{"rt_sigqueueinfo", "sigqueue"},
	{"rt_tgsigqueueinfo", "pthread_sigqueue"},
	{"rt_sigsuspend", "shells waiting for a child"},
	{"sigaltstack", "stack overflow handlers of Go, Java, Rust"},
	{"pause", "shells, test programs"},
	{"signalfd", "old event loops"},
	{"signalfd4", "event loops, the cell's own PID 1"},
})

// identity reads ids and sets those that are the caller's own already: without
// capabilities the kernel refuses the rest.
var identity = group("identity", Allow, []call{
	{"getuid", "everywhere"},
	{"getgid", "everywhere"},
	{"geteuid", "everywhere"},
	{"getegid", "everywhere"},
	{"getresuid", "bash, OpenSSH"},
	{"getresgid", "bash, OpenSSH"},
	{"getgroups", "id, Python, test -r"},
	{"setuid", "programs that drop to the user they are"},
	{"setgid", "programs that drop to the user they are"},
	{"setreuid", "programs that drop to the user they are"},
	{"setregid", "programs that drop to the user they are"},
	{"setresuid", "bash at start; programs that drop to the user they are"},
	{"setresgid", "bash at start; programs that drop to the user they are"},
	{"capget", "libcap users: ping, tar, node"},
	{"capset", "libcap users drop what they do not have"},
})
