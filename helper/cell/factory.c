/* factory.c: the roles this binary plays before its Go runtime starts, chosen by
 * argv[1] in a constructor so that none of them costs a runtime:
 *
 *   factory  PID 1 of a sandbox: clones one cell per request
 *   hold     keeps a user namespace alive until its standard input ends
 *   serve    the helper itself: enters its own mount namespace (and, unless
 *            started as the host's root, a user namespace), then goes on to Go
 */
#include "cell.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HELPER 3 /* the factory's socket to the helper */
#define IMAGE 4  /* the descriptor it was exec'ed from */
#define LIFELINE 5 /* a pipe whose writer is the gateway: hung up when that is gone */

/* What "serve" could not do, for the Go side to report: 0 or an errno. */
int helper_namespace_errno;
const char *helper_namespace_step = "";
int helper_in_user_namespace;

static struct config config;

static void refuse(const char *step, int error)
{
	channel_fail(HELPER, step, 0, error, "");
	_exit(1);
}

static void read_config(void)
{
	static unsigned char buf[4096];
	int fds[MAX_FDS], nfds;
	struct message m;
	struct field f;
	uint64_t len = 0;
	const void *body;
	struct draft ready;
	long n = channel_receive(HELPER, buf, sizeof buf, fds, &nfds);

	if (n <= 0)
		_exit(0);
	if (nfds != 1 || message_open(&m, buf, (size_t)n) || m.kind != KIND_CONFIG ||
	    message_next(&m, &f) != 1 || f.tag != TAG_BODY || field_u64(&f, &len) || len > 1 << 20)
		refuse("factory configuration", EPROTO);
	body = channel_body(fds[0], len);
	if (!body)
		refuse("factory configuration", errno);
	if (config_parse(&config, body, (size_t)len))
		refuse("factory configuration", EINVAL);
	close(fds[0]);
	draft_open(&ready, KIND_READY);
	if (channel_send(HELPER, &ready, NULL, 0))
		_exit(0);
}

/* fork with new namespaces and a pidfd; clone3 because clone cannot give both
 * an exit signal and every flag (clone3(2)). */
static pid_t clone_cell(int *pidfd)
{
	struct clone_args a = {
		.flags = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_PIDFD,
		.pidfd = (uint64_t)(uintptr_t)pidfd,
		.exit_signal = SIGCHLD,
	};

	return (pid_t)syscall(SYS_clone3, &a, sizeof a);
}

static void make_cell(struct wish w)
{
	int pair[2], fds[2], pidfd = -1;
	struct draft d;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
		channel_fail(HELPER, "cell socket", 0, errno, "");
		return;
	}
	pid = clone_cell(&pidfd);
	if (pid == 0) {
		close(HELPER);
		close(LIFELINE);
		close(pair[0]);
		cell_setup(pair[1], &config, w);
	}
	if (pid < 0) {
		channel_fail(HELPER, "cell namespaces", 0, errno, "");
	} else {
		draft_open(&d, KIND_CLONED);
		fds[0] = pair[0];
		fds[1] = pidfd;
		/* ETOOMANYREFS: sandboxes of one uid share what may be in flight (unix(7)).
		 * The child sees its socket closed and ends. */
		if (channel_send(HELPER, &d, fds, 2))
			channel_fail(HELPER, "cell descriptors", 0, errno, "");
		close(pidfd);
	}
	close(pair[0]);
	close(pair[1]);
}

/* Waits for a request. The gateway's end is watched too: a runner or helper that is
 * stopped cannot pass it on. */
static void await_request(void)
{
	struct pollfd on[2] = { { .fd = HELPER, .events = POLLIN }, { .fd = LIFELINE } };

	do {
		if (poll(on, 2, -1) < 0 && errno != EINTR)
			_exit(1);
		if (on[1].revents)
			_exit(0);
	} while (!on[0].revents);
}

/* Serves until the helper or the gateway is gone; as PID 1 of the sandbox its end
 * is the end of every cell. */
static void factory(void)
{
	struct sigaction reap = { .sa_handler = SIG_IGN, .sa_flags = SA_NOCLDWAIT };
	static unsigned char buf[4096];
	struct rlimit files;
	int fds[MAX_FDS], nfds;
	struct wish w;
	struct message m;
	struct field f;
	long n;

	close(IMAGE);
	sigaction(SIGCHLD, &reap, NULL);
	if (!getrlimit(RLIMIT_NOFILE, &files)) { /* also bounds descriptors in flight */
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		refuse("factory", errno);
	read_config();
	for (;;) {
		await_request();
		n = channel_receive(HELPER, buf, sizeof buf, fds, &nfds);
		if (n <= 0)
			_exit(0);
		if (nfds || message_open(&m, buf, (size_t)n) || m.kind != KIND_CELL ||
		    message_next(&m, &f) != 1 || f.tag != TAG_WRITABLE || field_u32(&f, &w.writable) ||
		    message_next(&m, &f) != 1 || f.tag != TAG_TERMINAL || field_u32(&f, &w.terminal))
			refuse("factory request", EPROTO);
		make_cell(w);
	}
}

static void hold(void)
{
	char c;

	while (read(0, &c, 1) > 0)
		;
	_exit(0);
}

static int write_file(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = write(fd, text, strlen(text));
	close(fd);
	return n == (ssize_t)strlen(text) ? 0 : -1;
}

/* True for root of the initial user namespace: only it can map other ids. */
static int host_root(void)
{
	unsigned inside = 1, outside = 1, count = 0;
	FILE *f = fopen("/proc/self/uid_map", "re");

	if (!f)
		return 0;
	if (fscanf(f, "%u %u %u", &inside, &outside, &count) != 3)
		count = 0;
	fclose(f);
	return geteuid() == 0 && inside == 0 && outside == 0 && count == 4294967295u;
}

static int own_user_namespace(void)
{
	char uid[32], gid[32];

	snprintf(uid, sizeof uid, "0 %u 1", geteuid());
	snprintf(gid, sizeof gid, "0 %u 1", getegid());
	if (unshare(CLONE_NEWUSER))
		return -1;
	helper_in_user_namespace = 1;
	helper_namespace_step = "user namespace map";
	return write_file("/proc/self/setgroups", "deny") || write_file("/proc/self/uid_map", uid) || write_file("/proc/self/gid_map", gid) ? -1 : 0;
}

/* Fails softly: the helper starts, and answers every Prepare with what it saw. */
static void serve(void)
{
	umask(022); /* a view is made of directories that its user must read */
	fcntl(HELPER, F_SETFD, FD_CLOEXEC); /* the protocol, by the same number here */
	fcntl(HELPER + 1, F_SETFD, FD_CLOEXEC); /* the lifeline */
	helper_namespace_step = "user namespace";
	if (!host_root() && own_user_namespace())
		goto failed;
	helper_namespace_step = "mount namespace";
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL))
		goto failed;
	return;
failed:
	helper_namespace_errno = errno;
}

__attribute__((constructor)) static void role(int argc, char **argv)
{
	if (argc < 2)
		return;
	if (!strcmp(argv[1], "factory"))
		factory();
	if (!strcmp(argv[1], "hold"))
		hold();
	if (!strcmp(argv[1], "serve"))
		serve();
}
