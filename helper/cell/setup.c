/* setup.c: the steps that turn a cloned child into a cell. The table at the end
 * is the order: mounts, placement, limits, user map, capabilities,
 * no_new_privs, seccomp. A step that fails is reported by name, index and errno
 * and the process ends: nothing is ever run in a half-made cell. */
#include "cell.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/magic.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The new mount API by its numbers (include/uapi/linux/mount.h): libc declares
 * some, none or all of it, and the kernel's header conflicts with libc's. */
#define ATTR_RDONLY 0x1u
#define ATTR_NOSUID 0x2u
#define ATTR_NODEV 0x4u
#define ATTR_NOEXEC 0x8u
#define NEW_FSOPEN_CLOEXEC 0x1u
#define NEW_FSMOUNT_CLOEXEC 0x1u
#define FSCONFIG_STRING 1u
#define FSCONFIG_CREATE 6u
#define MOVE_EMPTY_SOURCE 0x4u
#define WHOLE_TREE 0x8000u

struct attributes {
	uint64_t set, clear, propagation, userns;
};

struct cell {
	const struct config *config;
	struct wish wish;
	int sock, proc, master, terminal, workspace; /* -1 where there is none */
	const char *at; /* what the failing step was working on */
};

/* Signals the factory ignores must not stay ignored in a command. */
static int step_signals(struct cell *c)
{
	struct sigaction act = { .sa_handler = SIG_DFL };
	sigset_t none;
	int s;

	(void)c;
	for (s = 1; s < NSIG; s++)
		if (s != SIGKILL && s != SIGSTOP)
			sigaction(s, &act, NULL); /* the two that libc keeps answer EINVAL */
	sigemptyset(&none);
	return sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Nothing of the factory's stays open: 0..2 are the view's /dev/null, 3 the
 * cell's socket. */
static int step_descriptors(struct cell *c)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), fd;

	if (null < 0)
		return -1;
	for (fd = 0; fd < 3; fd++)
		if (null != fd && dup2(null, fd) < 0)
			return -1;
	if (c->sock != 3) {
		if (dup3(c->sock, 3, O_CLOEXEC) < 0)
			return -1;
		c->sock = 3;
	}
	return (int)syscall(SYS_close_range, 4u, ~0u, 0u);
}

static int step_session(struct cell *c)
{
	(void)c;
	umask(022);
	return prctl(PR_SET_NAME, "cell") || setsid() < 0 ? -1 : 0;
}

static int step_propagation(struct cell *c)
{
	(void)c;
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

/* The sandbox's own /proc is unmasked, because the kernel lets a user namespace
 * mount a new one only while a fully visible one is there
 * (fs/namespace.c, mount_too_revealing). Take the new one, detached, then drop
 * the old one, then attach: no unmasked proc is left for a command. */
static int step_proc(struct cell *c)
{
	int fs = (int)syscall(SYS_fsopen, "proc", NEW_FSOPEN_CLOEXEC), mnt;
	struct statfs st;

	c->at = "/proc";
	if (fs < 0 || syscall(SYS_fsconfig, fs, FSCONFIG_STRING, "hidepid", "ptraceable", 0) || syscall(SYS_fsconfig, fs, FSCONFIG_CREATE, NULL, NULL, 0))
		return -1;
	mnt = (int)syscall(SYS_fsmount, fs, NEW_FSMOUNT_CLOEXEC, ATTR_NOSUID | ATTR_NODEV | ATTR_NOEXEC);
	close(fs);
	if (mnt < 0 || umount2("/proc", MNT_DETACH) || syscall(SYS_move_mount, mnt, "", AT_FDCWD, "/proc", MOVE_EMPTY_SOURCE))
		return -1;
	close(mnt);
	c->proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (c->proc < 0 || fstatfs(c->proc, &st))
		return -1;
	errno = EBADF;
	return st.f_type == PROC_SUPER_MAGIC ? 0 : -1;
}

static int read_only(const char *path)
{
	if (mount(path, path, NULL, MS_BIND | MS_REC, NULL))
		return errno == ENOENT ? 0 : -1;
	return mount(NULL, path, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
}

static int hide(const char *path)
{
	struct stat st;

	if (lstat(path, &st))
		return errno == ENOENT ? 0 : -1;
	if (S_ISDIR(st.st_mode))
		return mount("tmpfs", path, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=555");
	return mount("/dev/null", path, NULL, MS_BIND, NULL);
}

static int step_masks(struct cell *c)
{
	size_t i;

	for (i = 0; i < c->config->readonlys; i++)
		if (read_only(c->at = c->config->readonly[i]))
			return -1;
	for (i = 0; i < c->config->masks; i++)
		if (hide(c->at = c->config->mask[i]))
			return -1;
	return 0;
}

static int step_devices(struct cell *c)
{
	char options[64];

	c->at = "/dev/pts";
	if (mount("devpts", c->at, "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620"))
		return -1;
	c->at = "/dev/shm";
	snprintf(options, sizeof options, "mode=1777,size=%llu", (unsigned long long)c->config->shm);
	return mount("tmpfs", c->at, "tmpfs", MS_NOSUID | MS_NODEV, options);
}

/* A pseudo-terminal of the cell's own devpts, 24 by 80. The peer is opened through
 * the master (TIOCGPTPEER, Linux 4.13), not by a name that could be swapped. */
static int step_terminal(struct cell *c)
{
	const struct winsize size = { .ws_row = 24, .ws_col = 80 };
	int unlocked = 0;

	if (c->wish.terminal != 1)
		return 0;
	c->at = "/dev/ptmx";
	c->master = open(c->at, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (c->master < 0 || ioctl(c->master, TIOCSPTLCK, &unlocked) || ioctl(c->master, TIOCSWINSZ, &size))
		return -1;
	c->terminal = ioctl(c->master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	return c->terminal < 0 ? -1 : 0;
}

/* What an earlier command did to the directories above it must not make another
 * directory the workspace: what is at its path is opened once, must be the one
 * that was registered, and is where the command starts. */
static int step_workspace(struct cell *c)
{
	struct attributes attr = { .set = ATTR_RDONLY };
	struct stat st;

	c->at = c->config->workspace;
	c->workspace = open(c->at, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (c->workspace < 0 || fstat(c->workspace, &st))
		return -1;
	if (st.st_dev != c->config->root.device || st.st_ino != c->config->root.inode) {
		errno = ESTALE;
		return -1;
	}
	if (c->wish.writable == 1)
		return 0;
	return (int)syscall(SYS_mount_setattr, c->workspace, "", AT_EMPTY_PATH | WHOLE_TREE, &attr, sizeof attr);
}

/* The helper moves this process into its cgroup meanwhile and says so; only
 * then can the cgroup become the root of the cell's own namespace. */
static int step_cgroup(struct cell *c)
{
	unsigned char buf[64];
	int fds[MAX_FDS], nfds;
	struct message m;
	long n = channel_receive(c->sock, buf, sizeof buf, fds, &nfds);

	if (n == 0)
		_exit(1); /* the helper is gone: so is this cell */
	if (n < 0 || nfds || message_open(&m, buf, (size_t)n) || m.kind != KIND_PLACED) {
		errno = EPROTO;
		return -1;
	}
	return unshare(CLONE_NEWCGROUP);
}

/* A hard limit of the daemon's below ours stays: raising one takes a
 * capability over the host that nothing here has. */
static int limit(int resource, uint64_t value)
{
	struct rlimit now;

	if (getrlimit(resource, &now))
		return -1;
	if (now.rlim_max < value)
		value = now.rlim_max;
	now.rlim_cur = now.rlim_max = value;
	return setrlimit(resource, &now);
}

static int write_proc(struct cell *c, const char *name, const char *text)
{
	int fd = openat(c->proc, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n;

	c->at = name;
	if (fd < 0)
		return -1;
	n = write(fd, text, strlen(text));
	close(fd);
	return n == (ssize_t)strlen(text) ? 0 : -1;
}

static int step_limits(struct cell *c)
{
	size_t i;

	for (i = 0; i < c->config->rlimits; i++)
		if (limit((int)c->config->rlimit[i].resource, c->config->rlimit[i].limit))
			return -1;
	/* EACCES: the daemon's own is higher already, and lowering takes a capability */
	return write_proc(c, "1/oom_score_adj", "500") && errno != EACCES ? -1 : 0;
}

/* The last user namespace: its creator becomes an ordinary uid, every mount
 * below is locked, and RLIMIT_NPROC set behind it counts this cell alone. */
static int step_user(struct cell *c)
{
	if (unshare(CLONE_NEWUSER))
		return -1;
	if (write_proc(c, "1/setgroups", "deny") || write_proc(c, "1/uid_map", "1000 0 1") || write_proc(c, "1/gid_map", "1000 0 1"))
		return -1;
	c->at = NULL;
	return limit(RLIMIT_NPROC, c->config->processes);
}

static int step_capabilities(struct cell *c)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct none[2] = { { 0 }, { 0 } };
	const unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED |
		SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
	int cap;

	(void)c;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) || prctl(PR_SET_SECUREBITS, bits))
		return -1;
	for (cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0))
			return -1;
	return (int)syscall(SYS_capset, &head, none);
}

static int step_privileges(struct cell *c)
{
	(void)c;
	close(c->proc);
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -1 : 0;
}

static int step_seccomp(struct cell *c)
{
	struct sock_fprog prog;
	size_t i;

	for (i = 0; i < c->config->programs; i++) {
		prog.len = (unsigned short)(c->config->program[i].bytes / sizeof(struct sock_filter));
		prog.filter = (struct sock_filter *)c->config->program[i].code;
		if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &prog))
			return -1;
	}
	return 0;
}

static const struct step {
	const char *name;
	int (*run)(struct cell *);
} steps[] = {
	{ "signals", step_signals },
	{ "descriptors", step_descriptors },
	{ "session", step_session },
	{ "propagation", step_propagation },
	{ "proc", step_proc },
	{ "proc masks", step_masks },
	{ "devices", step_devices },
	{ "terminal", step_terminal },
	{ "workspace", step_workspace },
	{ "cgroup", step_cgroup },
	{ "limits", step_limits },
	{ "user namespace", step_user },
	{ "capabilities", step_capabilities },
	{ "no new privileges", step_privileges },
	{ "seccomp", step_seccomp },
};

void cell_setup(int sock, const struct config *config, struct wish w)
{
	struct cell c = { .config = config, .wish = w, .sock = sock, .proc = -1, .master = -1, .terminal = -1, .workspace = -1 };
	struct draft ready;
	size_t i;

	for (i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		c.at = NULL;
		errno = 0;
		if (steps[i].run(&c)) {
			channel_fail(c.sock, steps[i].name, (int)i, errno, c.at ? c.at : "");
			_exit(1);
		}
	}
	draft_open(&ready, KIND_READY);
	if (channel_send(c.sock, &ready, &c.master, c.master >= 0))
		_exit(1);
	if (c.master >= 0)
		close(c.master);
	cell_init(c.sock, c.terminal, c.workspace);
}
