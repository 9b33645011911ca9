/* locked.c: a process that has locked itself down as a cell's PID 1 does, but for
 * what its second argument leaves out, and then waits for the end of its input.
 *
 *   locked FILTERS LEFT-OUT [UID]
 *
 * A UID is taken by root; without one the caller's stays and the capabilities to
 * work with come from a user namespace. */
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void check(int failed, const char *what)
{
	if (failed) {
		perror(what);
		exit(1);
	}
}

static void filter(void)
{
	struct sock_filter allow[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	struct sock_fprog prog = { 1, allow };

	check(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog), "seccomp");
}

static void capabilities(unsigned keep)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { { 0, keep, 0 }, { 0, 0, 0 } };

	check((int)syscall(SYS_capset, &head, data), "capset");
}

int main(int argc, char **argv)
{
	int filters = atoi(argv[1]), cap;
	const char *left_out = argv[2];
	char c;

	if (argc < 4)
		check(unshare(CLONE_NEWUSER), "unshare");
	if (strcmp(left_out, "NoNewPrivs"))
		check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs");
	while (filters-- > 0)
		filter();
	for (cap = 0; strcmp(left_out, "CapBnd") && prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		check(prctl(PR_CAPBSET_DROP, cap, 0, 0, 0), "bounding set");
	check(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0), "keep capabilities");
	if (argc > 3)
		check(setresuid((uid_t)atoi(argv[3]), (uid_t)atoi(argv[3]), (uid_t)atoi(argv[3])), "setresuid");
	capabilities(strcmp(left_out, "CapPrm") ? 0 : 1);
	check(printf("ready\n") < 0 || fflush(stdout), "stdout");
	while (read(0, &c, 1) > 0)
		;
	return 0;
}
