/* filter CALLS PROGRAM [ARGUMENT...]: installs a seccomp filter and becomes the
 * program. CALLS are letters: u denies unshare and clone with CLONE_NEWUSER (and
 * hides clone3, whose flags no filter can read), m denies mount, n denies nothing:
 * the same filter without the obstacle. A denied call answers EPERM. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define IS(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (yes), (no))
#define HAS(bits, yes, no) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (bits), (yes), (no))
#define ANSWER(what) BPF_STMT(BPF_RET | BPF_K, (what))
#define DENY ANSWER(SECCOMP_RET_ERRNO | EPERM)
#define ALLOW ANSWER(SECCOMP_RET_ALLOW)

static const struct sock_filter namespaces[] = {
	LOAD(nr),
	IS(SYS_clone3, 0, 1), ANSWER(SECCOMP_RET_ERRNO | ENOSYS),
	IS(SYS_unshare, 1, 0), IS(SYS_clone, 0, 3),
	LOAD(args[0]), HAS(CLONE_NEWUSER, 0, 1), DENY,
	ALLOW,
};

static const struct sock_filter mounts[] = { LOAD(nr), IS(SYS_mount, 0, 1), DENY, ALLOW };

static const struct sock_filter nothing[] = { LOAD(nr), ALLOW };

static int install(const struct sock_filter *code, size_t bytes)
{
	struct sock_fprog p = { .len = (unsigned short)(bytes / sizeof *code), .filter = (struct sock_filter *)code };

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p);
}

int main(int argc, char **argv)
{
	int failed;

	if (argc < 3 || strspn(argv[1], "umn") != strlen(argv[1])) {
		fprintf(stderr, "usage: filter u|m|n PROGRAM [ARGUMENT...]\n");
		return 2;
	}
	failed = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (!failed && strchr(argv[1], 'u'))
		failed = install(namespaces, sizeof namespaces);
	if (!failed && strchr(argv[1], 'm'))
		failed = install(mounts, sizeof mounts);
	if (!failed && strchr(argv[1], 'n'))
		failed = install(nothing, sizeof nothing);
	if (!failed)
		execvp(argv[2], argv + 2);
	perror("filter");
	return 2;
}
