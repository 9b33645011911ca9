/* under: loads filter programs as a cell does, then runs a command or probes.
 *
 *     under ALLOW DENY command [argument...]
 *     under ALLOW DENY            one line for each probe: name, errno or signal
 *     under - -                   the same without a filter: the control
 *
 * A probe runs in a child of its own, so that none disturbs the next. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

static void fail(const char *what)
{
	perror(what);
	exit(125);
}

static void load(const char *path)
{
	static struct sock_filter code[BPF_MAXINSNS];
	struct sock_fprog program = {.filter = code};
	FILE *file = fopen(path, "re");

	if (!file)
		fail(path);
	program.len = fread(code, sizeof code[0], BPF_MAXINSNS, file);
	fclose(file);
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
		fail("seccomp");
}

/* terminal gives the caller a session with a terminal of its own. */
static int terminal(void)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY), slave;

	if (master < 0 || grantpt(master) || unlockpt(master))
		fail("posix_openpt");
	slave = open(ptsname(master), O_RDWR | O_NOCTTY);
	if (slave < 0 || setsid() < 0 || ioctl(slave, TIOCSCTTY, 0))
		fail("TIOCSCTTY");
	return slave;
}

static long tiocsti(void)
{
	return ioctl(terminal(), TIOCSTI, "x");
}

static long tiocsti_high(void)
{
	return syscall(SYS_ioctl, terminal(), TIOCSTI | 1UL << 40, "x");
}

static long window_size(void)
{
	struct winsize size = {.ws_row = 24, .ws_col = 80};

	return ioctl(terminal(), TIOCSWINSZ, &size);
}

static long unshare_user(void)
{
	return unshare(CLONE_NEWUSER);
}

static long wait_for(long child)
{
	if (child == 0)
		_exit(0);
	return child < 0 ? -1 : waitpid((pid_t)child, NULL, 0);
}

static long clone_user(void)
{
	return wait_for(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
}

static long clone_user_high(void)
{
	return wait_for(syscall(SYS_clone, 1UL << 40 | CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
}

static long clone3_null(void)
{
	return syscall(SYS_clone3, NULL, 0);
}

static long plain_fork(void)
{
	return wait_for(fork());
}

static void *nothing(void *argument)
{
	return argument;
}

static long thread(void)
{
	pthread_t id;

	errno = pthread_create(&id, NULL, nothing, NULL);
	if (errno)
		return -1;
	errno = pthread_join(id, NULL);
	return errno ? -1 : 0;
}

static long socket_packet(void)
{
	return socket(AF_PACKET, SOCK_RAW, 0);
}

static long socket_uevent(void)
{
	return socket(AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT);
}

static long socket_uevent_high(void)
{
	return syscall(SYS_socket, AF_NETLINK | 1UL << 40, SOCK_RAW | 1UL << 40, NETLINK_KOBJECT_UEVENT);
}

static long socket_raw(void)
{
	return socket(AF_INET, SOCK_RAW, 1);
}

static long socket_tcp(void)
{
	return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static long socket_udp(void)
{
	return socket(AF_INET6, SOCK_DGRAM, 17);
}

static long socket_pair(void)
{
	int ends[2];

	return socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
}

static long addresses(void)
{
	struct ifaddrs *list;

	return getifaddrs(&list);
}

static long no_randomize(void)
{
	return personality(ADDR_NO_RANDOMIZE);
}

static long trace_me(void)
{
	return ptrace(PTRACE_TRACEME, 0, NULL, NULL);
}

static long tracer_any(void)
{
	return prctl(PR_SET_PTRACER, -1L, 0, 0, 0);
}

static long keyring(void)
{
	return syscall(SYS_keyctl, 0 /* KEYCTL_GET_KEYRING_ID */, -1, 1);
}

static long io_uring(void)
{
	return syscall(SYS_io_uring_setup, 1, NULL);
}

static long mount_api(void)
{
	return syscall(SYS_fsopen, "tmpfs", 0);
}

static long mount_tmpfs(void)
{
	return mount("none", "/nowhere", "tmpfs", 0, NULL);
}

static long device(void)
{
	return mknod("device", S_IFCHR | 0600, makedev(1, 3));
}

static long fifo(void)
{
	return mkfifo("fifo", 0600);
}

static long limits_of_parent(void)
{
	return prlimit(getppid(), RLIMIT_NOFILE, NULL, NULL);
}

static long limits_of_self(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit);
}

static long name(void)
{
	return prctl(PR_SET_NAME, "under", 0, 0, 0);
}

static long newest(void)
{
	return syscall(600);
}

static long i386_getpid(void)
{
	long result;

	__asm__ volatile("int $0x80" : "=a"(result) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
	return result;
}

static long x32_getpid(void)
{
	return syscall(0x40000000 | SYS_getpid);
}

static const struct probe {
	const char *name;
	long (*run)(void);
} probes[] = {
	{"tiocsti", tiocsti},
	{"tiocsti_high", tiocsti_high},
	{"window_size", window_size},
	{"unshare_user", unshare_user},
	{"clone_user", clone_user},
	{"clone_user_high", clone_user_high},
	{"clone3_null", clone3_null},
	{"fork", plain_fork},
	{"thread", thread},
	{"socket_packet", socket_packet},
	{"socket_uevent", socket_uevent},
	{"socket_uevent_high", socket_uevent_high},
	{"socket_raw", socket_raw},
	{"socket_tcp", socket_tcp},
	{"socket_udp", socket_udp},
	{"socket_pair", socket_pair},
	{"addresses", addresses},
	{"no_randomize", no_randomize},
	{"trace_me", trace_me},
	{"tracer_any", tracer_any},
	{"keyring", keyring},
	{"io_uring", io_uring},
	{"mount_api", mount_api},
	{"mount_tmpfs", mount_tmpfs},
	{"device", device},
	{"fifo", fifo},
	{"limits_of_parent", limits_of_parent},
	{"limits_of_self", limits_of_self},
	{"name", name},
	{"newest", newest},
	{"i386_getpid", i386_getpid},
	{"x32_getpid", x32_getpid},
};

static void probe(const struct probe *p)
{
	int status;
	pid_t child = fork();

	if (child < 0)
		fail("fork");
	if (child == 0) {
		errno = 0;
		_exit(p->run() < 0 ? errno : 0);
	}
	if (waitpid(child, &status, 0) < 0)
		fail("waitpid");
	if (WIFSIGNALED(status))
		printf("%s signal %d\n", p->name, WTERMSIG(status));
	else
		printf("%s errno %d\n", p->name, WEXITSTATUS(status));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 125;
	if (strcmp(argv[1], "-")) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
			fail("no_new_privs");
		load(argv[1]);
		load(argv[2]);
	}
	if (argc > 3) {
		execvp(argv[3], argv + 3);
		fail(argv[3]);
	}
	for (size_t i = 0; i < sizeof probes / sizeof probes[0]; i++)
		probe(&probes[i]);
	return 0;
}
