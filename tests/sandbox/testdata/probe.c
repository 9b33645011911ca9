/* probe.c: what a shell cannot try.
 *
 *   probe spend MEGABYTES MILLISECONDS   of memory and of processor time
 *   probe bind NAME                      an abstract socket, held until input ends
 *   probe connect NAME                   to it
 *   probe make KEY | find KEY            a System V shared memory segment
 *   probe fork COUNT                     processes that wait; prints how many it got
 *
 * Prints one line: what it has, or the errno that kept it from having it. */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static int say(int failed, const char *done)
{
	if (failed)
		printf("errno %d\n", errno);
	else
		printf("%s\n", done);
	fflush(stdout);
	return failed != 0;
}

static void hold(void)
{
	char c;

	while (read(0, &c, 1) > 0)
		;
}

static int spend(size_t megabytes, long milliseconds)
{
	volatile char *p = malloc(megabytes << 20); /* so that it is really written */
	size_t i;

	if (!p)
		return say(1, "");
	for (i = 0; i < megabytes << 20; i += 4096)
		p[i] = 1;
	while (clock() < milliseconds * (CLOCKS_PER_SEC / 1000))
		;
	free((void *)p);
	return say(0, "spent");
}

static int abstract(const char *name, int bound)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), failed;
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));

	strncpy(a.sun_path + 1, name, sizeof a.sun_path - 2);
	if (!bound)
		return say(connect(s, (struct sockaddr *)&a, len), "connected");
	failed = say(bind(s, (struct sockaddr *)&a, len) || listen(s, 5), "bound");
	hold();
	return failed;
}

static int segment(key_t key, int made)
{
	int failed = say(shmget(key, 4096, made ? IPC_CREAT | IPC_EXCL | 0666 : 0) < 0, made ? "made" : "found");

	if (made)
		hold();
	return failed;
}

/* Children that are of no group of their parent's and ignore what they can. */
static void forks(int count)
{
	int got = 0, s;

	for (; got < count; got++) {
		pid_t pid = fork();

		if (pid < 0)
			break;
		if (pid > 0)
			continue;
		setsid();
		for (s = 1; s < NSIG; s++)
			signal(s, SIG_IGN);
		for (;;)
			pause();
	}
	printf("%d\n", got);
	fflush(stdout);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";

	if (!strcmp(what, "spend") && argc > 3)
		return spend((size_t)atol(argv[2]), atol(argv[3]));
	if (!strcmp(what, "bind") || !strcmp(what, "connect"))
		return abstract(argv[2], !strcmp(what, "bind"));
	if (!strcmp(what, "make") || !strcmp(what, "find"))
		return segment((key_t)atoi(argv[2]), !strcmp(what, "make"));
	if (!strcmp(what, "fork"))
		forks(atoi(argv[2]));
	return 2;
}
