package seccomp

// clocks are read and waited on, never set.
var clocks = group("clocks", Allow, []call{
	{"nanosleep", "sleep"},
	{"clock_nanosleep", "sleep of glibc"},
	{"clock_gettime", "time where the vdso has no answer"},
	{"clock_getres", "Python's time module, benchmarks"},
	{"gettimeofday", "time where the vdso has no answer"},
	{"time", "static binaries without a vdso"},
	{"getitimer", "profilers, bash"},
	{"setitimer", "profilers, Go's pprof"},
	{"alarm", "test drivers, Perl"},
	{"timer_create", "POSIX timers: timeout(1), Go's pprof per thread"},
	{"timer_settime", "POSIX timers: arm"},
	{"timer_gettime", "POSIX timers: time left"},
	{"timer_getoverrun", "POSIX timers: missed expirations"},
	{"timer_delete", "POSIX timers: end"},
	{"timerfd_create", "event loops"},
	{"timerfd_settime", "event loops"},
	{"timerfd_gettime", "event loops"},
})

// waiting is for events on descriptors.
var waiting = group("waiting", Allow, []call{
	{"poll", "everywhere, the cell's own PID 1"},
	{"ppoll", "glibc's poll, the cell's own PID 1"},
	{"select", "shells, Perl, Python"},
	{"pselect6", "make's job server, select of glibc"},
	{"epoll_create", "old event loops"},
	{"epoll_create1", "event loops: libuv, Go, Java"},
	{"epoll_ctl", "event loops: which descriptors"},
	{"epoll_wait", "event loops: libuv, Java"},
	{"epoll_pwait", "event loops: Go, glibc's epoll_wait on new ports"},
	{"epoll_pwait2", "event loops with nanoseconds; older kernels lack it"},
	{"eventfd", "old event loops"},
	{"eventfd2", "event loops: libuv, Go, tokio"},
})
