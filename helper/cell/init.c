/* init.c: PID 1 of a cell. It waits for one launch, starts the argv, passes
 * signals on, reaps, and tells the argv's own wait status before the namespaces
 * are torn down. When its peer is gone, or when it ends for any other reason,
 * the kernel ends every process of the cell with it. */
#include "cell.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Why an exec failed, in words the runner turns into a message. */
struct failure {
	const char *step, *reason;
	int error;
};

static struct {
	int terminal, workspace;
} ours;
static unsigned char inbox[INBOX_BYTES];
static char path[PATH_MAX];

static int try_exec(const char *file, const struct launch *l, struct failure *f)
{
	struct stat st;

	f->error = 0; /* what PID 1 sees if this one succeeds */
	execve(file, l->argv, l->envp);
	f->error = errno;
	f->reason = "failed";
	switch (errno) {
	case ENOENT:
	case ENOTDIR:
		f->reason = "not found";
		if (stat(file, &st) == 0)
			f->reason = "missing interpreter";
		break;
	case EACCES:
		f->reason = "not executable";
		if (stat(file, &st) == 0 && S_ISDIR(st.st_mode))
			f->reason = "is a directory";
		break;
	case ENOEXEC:
		f->reason = "bad format";
		break;
	case E2BIG:
		f->reason = "too long";
		break;
	}
	return strcmp(f->reason, "not found");
}

static const char *search_path(const struct launch *l)
{
	size_t i;

	for (i = 0; i < l->envc; i++)
		if (!strncmp(l->envp[i], "PATH=", 5))
			return l->envp[i] + 5;
	return "";
}

/* Returns only on failure. Like execvp, but a file that is there and cannot run
 * is reported as itself instead of as "not found". */
static void exec_argv(const struct launch *l, struct failure *f)
{
	const char *p = search_path(l), *end;
	struct failure seen = { "exec", "not found", ENOENT };
	int n;

	f->step = "exec";
	if (strchr(l->argv[0], '/') || !l->argv[0][0]) {
		try_exec(l->argv[0], l, f);
		return;
	}
	for (; *p; p = *end ? end + 1 : end) {
		end = strchrnul(p, ':');
		n = snprintf(path, sizeof path, "%.*s/%s", (int)(end - p), p, l->argv[0]);
		if (end == p || n >= (int)sizeof path)
			continue;
		if (try_exec(path, l, f) && f->error != EACCES)
			return;
		if (f->error == EACCES && seen.error == ENOENT)
			seen = *f;
	}
	*f = seen;
}

/* Runs in the vforked child: shares memory with PID 1, which is suspended. */
static void child(const struct launch *l, const int *fds, struct failure *f)
{
	sigset_t none;
	int i;

	f->step = "descriptors";
	for (i = 0; i < 3; i++)
		if (dup2(ours.terminal < 0 ? fds[i] : ours.terminal, i) < 0)
			goto bad;
	f->step = "session";
	if (setsid() < 0 || (ours.terminal >= 0 && ioctl(0, TIOCSCTTY, 0)))
		goto bad;
	f->step = "cwd";
	if (fchdir(ours.workspace) || (strcmp(l->cwd, ".") && chdir(l->cwd)))
		goto bad;
	f->step = "descriptors";
	if (syscall(SYS_close_range, 3u, ~0u, 0u))
		goto bad;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	exec_argv(l, f);
	_exit(127);
bad:
	f->error = errno;
	f->reason = "failed";
	_exit(127);
}

static pid_t spawn(const struct launch *l, const int *fds, struct failure *f)
{
	pid_t pid = vfork();

	if (pid == 0)
		child(l, fds, f);
	if (pid < 0) {
		f->step = "fork";
		f->error = errno;
		f->reason = "failed";
	}
	return pid;
}

/* Waits for the launch, runs it, and answers Started or Failed. */
static pid_t launch(int sock)
{
	int fds[MAX_FDS], nfds, i, streams = ours.terminal < 0 ? 3 : 0;
	struct failure f = { 0 };
	struct launch l;
	struct draft d;
	const void *body;
	pid_t pid;
	long n = channel_receive(sock, inbox, sizeof inbox, fds, &nfds);

	if (n <= 0)
		_exit(0);
	if (launch_parse(&l, inbox, (size_t)n) || nfds != streams + (l.body != 0)) {
		channel_fail(sock, "launch", 0, EPROTO, "malformed");
		_exit(1);
	}
	if (l.body) {
		uint64_t len = l.body;

		launch_free(&l);
		if (!(body = channel_body(fds[streams], len)) || launch_parse(&l, body, (size_t)len) || l.body) {
			channel_fail(sock, "launch", 1, EPROTO, "malformed");
			_exit(1);
		}
	}
	pid = spawn(&l, fds, &f);
	if (f.step && f.error) {
		channel_fail(sock, f.step, 0, f.error, f.reason);
		_exit(1);
	}
	for (i = 0; i < nfds; i++)
		close(fds[i]);
	close(ours.workspace);
	if (ours.terminal >= 0)
		close(ours.terminal); /* the last process to let go of it hangs it up */
	draft_open(&d, KIND_STARTED);
	if (channel_send(sock, &d, NULL, 0))
		_exit(0);
	return pid;
}

static void report(int sock, uint16_t kind, int status)
{
	struct rusage u;
	struct draft d;

	getrusage(RUSAGE_CHILDREN, &u);
	draft_open(&d, kind);
	draft_u32(&d, TAG_STATUS, (uint32_t)status);
	draft_u64(&d, TAG_CPU, (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000 + (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec));
	draft_u64(&d, TAG_MAXRSS, (uint64_t)u.ru_maxrss * 1024);
	if (channel_send(sock, &d, NULL, 0))
		_exit(0);
}

/* Reaps what has ended. Ends the cell when nothing is left to reap. Returns the
 * argv's pid while that still names it. */
static pid_t reap(int sock, pid_t argv)
{
	static int argv_status;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != argv)
			continue;
		argv = 0;
		argv_status = status;
		report(sock, KIND_EXITED, status);
	}
	if (pid < 0 && errno == ECHILD) {
		report(sock, KIND_EMPTY, argv_status);
		_exit(0);
	}
	return argv;
}

static void pass_signal(const unsigned char *buf, size_t len, pid_t argv)
{
	uint32_t sig = 0, tree = 0;
	struct message m;
	struct field f;
	int r;

	if (message_open(&m, buf, len) || m.kind != KIND_SIGNAL)
		_exit(1);
	while ((r = message_next(&m, &f)) == 1)
		if (f.tag == TAG_SIGNAL ? field_u32(&f, &sig) : f.tag != TAG_TREE || field_u32(&f, &tree))
			_exit(1);
	if (r < 0 || sig == 0 || sig >= NSIG)
		_exit(1);
	if (tree || argv)
		kill(tree ? -1 : -argv, (int)sig);
	if (tree) /* a stopped process cannot act on a signal */
		kill(-1, SIGCONT);
}

void cell_init(int sock, int terminal, int workspace)
{
	struct pollfd on[2] = { { .fd = sock, .events = POLLIN }, { .events = POLLIN } };
	struct signalfd_siginfo drop[8];
	int fds[MAX_FDS], nfds;
	sigset_t chld;
	pid_t argv;
	long n;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, NULL);
	on[1].fd = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
	if (on[1].fd < 0)
		_exit(1);
	ours.terminal = terminal;
	ours.workspace = workspace;
	argv = launch(sock);
	for (;;) {
		if (poll(on, 2, -1) < 0 && errno != EINTR)
			_exit(1);
		if (on[1].revents) {
			n = read(on[1].fd, drop, sizeof drop);
			argv = reap(sock, argv);
		}
		if (!on[0].revents)
			continue;
		n = channel_receive(sock, inbox, sizeof inbox, fds, &nfds);
		if (n <= 0 || nfds)
			_exit(0);
		pass_signal(inbox, (size_t)n, argv);
	}
}
