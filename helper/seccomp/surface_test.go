package seccomp_test

import (
	"testing"

	"golang.org/x/sys/unix"
)

// The surface, a second time and in the order of the numbers: who widens the
// profile says so here too. Calls whose arguments matter are in
// reference_test.go.

var reached = []uint32{
	unix.SYS_READ, unix.SYS_WRITE, unix.SYS_CLOSE, unix.SYS_STAT, unix.SYS_FSTAT, unix.SYS_LSTAT,
	unix.SYS_POLL, unix.SYS_LSEEK, unix.SYS_MMAP, unix.SYS_MPROTECT, unix.SYS_MUNMAP, unix.SYS_BRK,
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_PREAD64, unix.SYS_PWRITE64,
	unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_ACCESS, unix.SYS_PIPE, unix.SYS_SELECT, unix.SYS_SCHED_YIELD,
	unix.SYS_MREMAP, unix.SYS_MSYNC, unix.SYS_MINCORE, unix.SYS_MADVISE, unix.SYS_SHMGET, unix.SYS_SHMAT,
	unix.SYS_SHMCTL, unix.SYS_DUP, unix.SYS_DUP2, unix.SYS_PAUSE, unix.SYS_NANOSLEEP, unix.SYS_GETITIMER,
	unix.SYS_ALARM, unix.SYS_SETITIMER, unix.SYS_GETPID, unix.SYS_SENDFILE, unix.SYS_CONNECT, unix.SYS_ACCEPT,
	unix.SYS_SENDTO, unix.SYS_RECVFROM, unix.SYS_SENDMSG, unix.SYS_RECVMSG, unix.SYS_SHUTDOWN, unix.SYS_BIND,
	unix.SYS_LISTEN, unix.SYS_GETSOCKNAME, unix.SYS_GETPEERNAME, unix.SYS_SETSOCKOPT, unix.SYS_GETSOCKOPT,
	unix.SYS_FORK, unix.SYS_VFORK, unix.SYS_EXECVE, unix.SYS_EXIT, unix.SYS_WAIT4, unix.SYS_KILL, unix.SYS_UNAME,
	unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMCTL, unix.SYS_SHMDT, unix.SYS_MSGGET, unix.SYS_MSGSND,
	unix.SYS_MSGRCV, unix.SYS_MSGCTL, unix.SYS_FCNTL, unix.SYS_FLOCK, unix.SYS_FSYNC, unix.SYS_FDATASYNC,
	unix.SYS_TRUNCATE, unix.SYS_FTRUNCATE, unix.SYS_GETDENTS, unix.SYS_GETCWD, unix.SYS_CHDIR, unix.SYS_FCHDIR,
	unix.SYS_RENAME, unix.SYS_MKDIR, unix.SYS_RMDIR, unix.SYS_LINK, unix.SYS_UNLINK,
	unix.SYS_SYMLINK, unix.SYS_READLINK, unix.SYS_CHOWN, unix.SYS_FCHOWN,
	unix.SYS_LCHOWN, unix.SYS_UMASK, unix.SYS_GETTIMEOFDAY, unix.SYS_GETRLIMIT, unix.SYS_GETRUSAGE,
	unix.SYS_SYSINFO, unix.SYS_TIMES, unix.SYS_GETUID, unix.SYS_GETGID, unix.SYS_SETUID, unix.SYS_SETGID,
	unix.SYS_GETEUID, unix.SYS_GETEGID, unix.SYS_SETPGID, unix.SYS_GETPPID, unix.SYS_GETPGRP, unix.SYS_SETSID,
	unix.SYS_SETREUID, unix.SYS_SETREGID, unix.SYS_GETGROUPS, unix.SYS_SETRESUID, unix.SYS_GETRESUID,
	unix.SYS_SETRESGID, unix.SYS_GETRESGID, unix.SYS_GETPGID, unix.SYS_GETSID, unix.SYS_CAPGET, unix.SYS_CAPSET,
	unix.SYS_RT_SIGPENDING, unix.SYS_RT_SIGTIMEDWAIT, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_SIGSUSPEND,
	unix.SYS_SIGALTSTACK, unix.SYS_UTIME, unix.SYS_STATFS, unix.SYS_FSTATFS, unix.SYS_GETPRIORITY,
	unix.SYS_SETPRIORITY, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_GETPARAM, unix.SYS_SCHED_SETSCHEDULER,
	unix.SYS_SCHED_GETSCHEDULER, unix.SYS_SCHED_GET_PRIORITY_MAX, unix.SYS_SCHED_GET_PRIORITY_MIN,
	unix.SYS_SCHED_RR_GET_INTERVAL, unix.SYS_MLOCK, unix.SYS_MUNLOCK, unix.SYS_MLOCKALL, unix.SYS_MUNLOCKALL,
	unix.SYS_ARCH_PRCTL, unix.SYS_SETRLIMIT, unix.SYS_SYNC, unix.SYS_GETTID, unix.SYS_READAHEAD, unix.SYS_SETXATTR,
	unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_GETXATTR, unix.SYS_LGETXATTR, unix.SYS_FGETXATTR,
	unix.SYS_LISTXATTR, unix.SYS_LLISTXATTR, unix.SYS_FLISTXATTR, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR,
	unix.SYS_FREMOVEXATTR, unix.SYS_TKILL, unix.SYS_TIME, unix.SYS_FUTEX, unix.SYS_SCHED_SETAFFINITY,
	unix.SYS_SCHED_GETAFFINITY, unix.SYS_EPOLL_CREATE, unix.SYS_GETDENTS64, unix.SYS_SET_TID_ADDRESS,
	unix.SYS_RESTART_SYSCALL, unix.SYS_SEMTIMEDOP, unix.SYS_FADVISE64, unix.SYS_TIMER_CREATE,
	unix.SYS_TIMER_SETTIME, unix.SYS_TIMER_GETTIME, unix.SYS_TIMER_GETOVERRUN, unix.SYS_TIMER_DELETE,
	unix.SYS_CLOCK_GETTIME, unix.SYS_CLOCK_GETRES, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_EXIT_GROUP,
	unix.SYS_EPOLL_WAIT, unix.SYS_EPOLL_CTL, unix.SYS_TGKILL, unix.SYS_UTIMES, unix.SYS_MQ_OPEN,
	unix.SYS_MQ_UNLINK, unix.SYS_MQ_TIMEDSEND, unix.SYS_MQ_TIMEDRECEIVE, unix.SYS_MQ_NOTIFY,
	unix.SYS_MQ_GETSETATTR, unix.SYS_WAITID, unix.SYS_IOPRIO_SET, unix.SYS_IOPRIO_GET, unix.SYS_INOTIFY_INIT,
	unix.SYS_INOTIFY_ADD_WATCH, unix.SYS_INOTIFY_RM_WATCH, unix.SYS_MKDIRAT, unix.SYS_FCHOWNAT,
	unix.SYS_FUTIMESAT, unix.SYS_NEWFSTATAT, unix.SYS_UNLINKAT, unix.SYS_RENAMEAT, unix.SYS_LINKAT,
	unix.SYS_SYMLINKAT, unix.SYS_READLINKAT, unix.SYS_FACCESSAT, unix.SYS_PSELECT6,
	unix.SYS_PPOLL, unix.SYS_SET_ROBUST_LIST, unix.SYS_SPLICE, unix.SYS_TEE, unix.SYS_SYNC_FILE_RANGE,
	unix.SYS_UTIMENSAT, unix.SYS_EPOLL_PWAIT, unix.SYS_SIGNALFD, unix.SYS_TIMERFD_CREATE, unix.SYS_EVENTFD,
	unix.SYS_FALLOCATE, unix.SYS_TIMERFD_SETTIME, unix.SYS_TIMERFD_GETTIME, unix.SYS_ACCEPT4, unix.SYS_SIGNALFD4,
	unix.SYS_EVENTFD2, unix.SYS_EPOLL_CREATE1, unix.SYS_DUP3, unix.SYS_PIPE2, unix.SYS_INOTIFY_INIT1,
	unix.SYS_PREADV, unix.SYS_PWRITEV, unix.SYS_RT_TGSIGQUEUEINFO, unix.SYS_RECVMMSG, unix.SYS_SYNCFS,
	unix.SYS_SENDMMSG, unix.SYS_GETCPU, unix.SYS_SCHED_SETATTR, unix.SYS_SCHED_GETATTR, unix.SYS_RENAMEAT2,
	unix.SYS_SECCOMP, unix.SYS_GETRANDOM, unix.SYS_MEMFD_CREATE, unix.SYS_EXECVEAT, unix.SYS_MEMBARRIER,
	unix.SYS_MLOCK2, unix.SYS_COPY_FILE_RANGE, unix.SYS_PREADV2, unix.SYS_PWRITEV2, unix.SYS_PKEY_MPROTECT,
	unix.SYS_PKEY_ALLOC, unix.SYS_PKEY_FREE, unix.SYS_STATX, unix.SYS_RSEQ, unix.SYS_PIDFD_SEND_SIGNAL,
	unix.SYS_PIDFD_OPEN, unix.SYS_CLOSE_RANGE, unix.SYS_FACCESSAT2, unix.SYS_EPOLL_PWAIT2,
	unix.SYS_LANDLOCK_CREATE_RULESET, unix.SYS_LANDLOCK_ADD_RULE, unix.SYS_LANDLOCK_RESTRICT_SELF,
	unix.SYS_FUTEX_WAITV,
}

var refused = []uint32{
	unix.SYS_SYSLOG, unix.SYS_SETGROUPS, unix.SYS_SETFSUID, unix.SYS_SETFSGID, unix.SYS_USELIB, unix.SYS_USTAT,
	unix.SYS_SYSFS, unix.SYS_VHANGUP, unix.SYS_MODIFY_LDT, unix.SYS_PIVOT_ROOT, unix.SYS__SYSCTL,
	unix.SYS_ADJTIMEX, unix.SYS_CHROOT, unix.SYS_ACCT, unix.SYS_SETTIMEOFDAY, unix.SYS_MOUNT, unix.SYS_UMOUNT2,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_REBOOT, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
	unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_INIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_QUOTACTL,
	unix.SYS_NFSSERVCTL, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_REMAP_FILE_PAGES, unix.SYS_CLOCK_SETTIME,
	unix.SYS_MBIND, unix.SYS_SET_MEMPOLICY, unix.SYS_KEXEC_LOAD, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_KEYCTL, unix.SYS_MIGRATE_PAGES, unix.SYS_UNSHARE, unix.SYS_VMSPLICE, unix.SYS_MOVE_PAGES,
	unix.SYS_PERF_EVENT_OPEN, unix.SYS_FANOTIFY_INIT, unix.SYS_FANOTIFY_MARK, unix.SYS_NAME_TO_HANDLE_AT,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_CLOCK_ADJTIME, unix.SYS_SETNS, unix.SYS_KCMP, unix.SYS_FINIT_MODULE,
	unix.SYS_KEXEC_FILE_LOAD, unix.SYS_BPF, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER,
	unix.SYS_IO_URING_REGISTER, unix.SYS_PIDFD_GETFD, unix.SYS_QUOTACTL_FD, unix.SYS_MEMFD_SECRET,
	unix.SYS_SET_MEMPOLICY_HOME_NODE,
}

// tracing is reached with debug and refused without.
var tracing = []uint32{unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV}

// TestSurface counts what E01 counts: calls that answer all-ones arguments with
// anything but the filter's errno.
func TestSurface(t *testing.T) {
	const ceiling, moby = 270, 282 // moby: Docker's default profile, counted the same way
	ones := [6]uint64{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}
	for _, debug := range []bool{false, true} {
		f := compiled(t, debug)
		count := 0
		for nr := range uint32(471) {
			if f.answer(t, data{nr: nr, arch: native, args: ones}) == allow {
				count++
			}
		}
		t.Logf("debug %v: %d of the calls 0..470 reach the kernel; %d and %d instructions",
			debug, count, len(f.allow.code), len(f.deny.code))
		if count > ceiling || count >= moby {
			t.Errorf("debug %v: %d calls reach the kernel, want at most %d", debug, count, ceiling)
		}
	}
}

// TestCellsInit: what the cell's PID 1 needs, which the filter holds too; it
// also has to load Deny below Allow.
func TestCellsInit(t *testing.T) {
	needs := []uint32{
		unix.SYS_POLL, unix.SYS_PPOLL, unix.SYS_READ, unix.SYS_WRITE, unix.SYS_CLOSE, unix.SYS_RECVMSG, unix.SYS_SENDMSG,
		unix.SYS_SIGNALFD4, unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_VFORK,
		unix.SYS_EXECVE, unix.SYS_WAIT4, unix.SYS_WAITID, unix.SYS_DUP2, unix.SYS_DUP3, unix.SYS_CLOSE_RANGE,
		unix.SYS_SETSID, unix.SYS_KILL, unix.SYS_EXIT_GROUP, unix.SYS_CHDIR, unix.SYS_FSTAT, unix.SYS_NEWFSTATAT,
		unix.SYS_GETRUSAGE, unix.SYS_FCNTL, unix.SYS_MMAP, unix.SYS_MUNMAP, unix.SYS_SECCOMP,
	}
	for _, debug := range []bool{false, true} {
		f := compiled(t, debug)
		for _, nr := range needs {
			if got := f.answer(t, call(nr)); got != allow {
				t.Errorf("debug %v: call %d: %v", debug, nr, got)
			}
		}
	}
}
