/* sockets.c: the second half of message.c over a real SEQPACKET pair, to be built
 * with sanitizers. Every buffer has exactly the size it is said to have, and after
 * every case as many descriptors are open as before. Prints the number of cases;
 * the first that goes wrong ends it. */
#include "../cell.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static int cases;

static void expect(int ok, const char *what, long a, long b)
{
	cases++;
	if (ok)
		return;
	fprintf(stderr, "%s: %ld, %ld: %s\n", what, a, b, strerror(errno));
	exit(3);
}

static int open_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void pair(int sock[2])
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock))
		abort();
}

/* More than channel_send would: any number of descriptors, any content. */
static void raw_send(int sock, const void *content, size_t len, int nfds)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(253 * sizeof(int))];
	} box;
	struct iovec io = { (void *)content, len };
	struct msghdr h = { .msg_iov = &io, .msg_iovlen = 1 };
	int fds[253], i, null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	for (i = 0; i < nfds; i++)
		fds[i] = null;
	if (nfds) {
		struct cmsghdr *c;

		memset(&box, 0, sizeof box);
		h.msg_control = box.bytes;
		h.msg_controllen = CMSG_SPACE((size_t)nfds * sizeof(int));
		c = CMSG_FIRSTHDR(&h);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN((size_t)nfds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, (size_t)nfds * sizeof(int));
	}
	if (sendmsg(sock, &h, MSG_NOSIGNAL) != (ssize_t)len)
		abort();
	close(null);
}

/* One message of len bytes and nfds descriptors into a buffer of cap. */
static void receive_one(size_t len, size_t cap, int nfds)
{
	unsigned char *content = malloc(len + 1), *buf = malloc(cap);
	int *fds = malloc(MAX_FDS * sizeof(int)), got = -1, sock[2], before = open_descriptors(), i;
	int fits = len <= cap && nfds <= MAX_FDS;
	long n;

	memset(content, 'x', len + 1);
	pair(sock);
	raw_send(sock[0], content, len, nfds);
	n = channel_receive(sock[1], buf, cap, fds, &got);
	expect(n == (fits ? (long)len : -1), "length received", (long)len, n);
	expect(got == (fits ? nfds : 0), "descriptors received", nfds, got);
	expect(n < 0 || !memcmp(buf, content, (size_t)n), "content", n, 0);
	for (i = 0; i < got; i++) {
		expect(fcntl(fds[i], F_GETFD) == FD_CLOEXEC, "close-on-exec", i, fds[i]);
		close(fds[i]);
	}
	close(sock[0]);
	close(sock[1]);
	expect(open_descriptors() == before, "descriptors left open", (long)len, nfds);
	free(content);
	free(buf);
	free(fds);
}

static void receiving(void)
{
	static const size_t lens[] = { 1, 7, 8, 63, 64, 65, 128, 4096, 60000 };
	static const int counts[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 31, 253 };
	size_t i, j;

	for (i = 0; i < sizeof lens / sizeof lens[0]; i++)
		for (j = 0; j < sizeof counts / sizeof counts[0]; j++) {
			receive_one(lens[i], 64, counts[j]);
			receive_one(lens[i], lens[i], counts[j]);
		}
}

static void ending(void)
{
	int sock[2], fds[MAX_FDS], n, before = open_descriptors();
	struct draft d;
	char buf[8];

	pair(sock);
	close(sock[0]);
	expect(channel_receive(sock[1], buf, sizeof buf, fds, &n) == 0 && n == 0, "peer gone", n, 0);
	draft_open(&d, KIND_READY);
	expect(channel_send(sock[1], &d, NULL, 0) == -1 && errno == EPIPE, "sent to nobody", 0, 0);
	channel_fail(sock[1], "step", 1, 2, "reason");
	close(sock[1]);
	pair(sock);
	raw_send(sock[1], "unread", 6, 1);
	close(sock[0]); /* with something unread: ECONNRESET */
	expect(channel_receive(sock[1], buf, sizeof buf, fds, &n) == 0 && n == 0, "peer gone, reset", n, 0);
	close(sock[1]);
	expect(channel_receive(-1, buf, sizeof buf, fds, &n) == -1 && n == 0, "no socket", n, 0);
	expect(open_descriptors() == before, "descriptors left open", 0, 0);
}

/* Every number of descriptors that fits is sent and comes back. */
static void sending(void)
{
	int sock[2], fds[MAX_FDS], got[MAX_FDS], n, i, k, before = open_descriptors();
	struct draft d;
	char buf[4096];

	pair(sock);
	for (i = 0; i < MAX_FDS; i++)
		fds[i] = sock[0];
	for (k = 0; k <= MAX_FDS; k++) {
		draft_open(&d, KIND_CLONED);
		expect(channel_send(sock[0], &d, fds, k) == 0, "send", k, 0);
		expect(channel_receive(sock[1], buf, sizeof buf, got, &n) == 8 && n == k, "sent and received", k, n);
		while (n > 0)
			close(got[--n]);
	}
	fds[1] = -1;
	expect(channel_send(sock[0], &d, fds, 2) == -1 && errno == EBADF, "a closed descriptor", 0, 0);
	close(sock[0]);
	close(sock[1]);
	expect(open_descriptors() == before, "descriptors left open", 0, 0);
}

static int memfd(size_t len, int seals)
{
	int fd = memfd_create("body", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	size_t i;

	for (i = 0; i < len; i++)
		if (write(fd, "b", 1) != 1)
			abort();
	if (fcntl(fd, F_ADD_SEALS, seals))
		abort();
	return fd;
}

static void body(const char *what, int fd, uint64_t len, int wanted)
{
	const unsigned char *p = channel_body(fd, len);
	uint64_t i = 0;

	expect(!p == !wanted, what, (long)len, wanted);
	while (p && i < len && p[i] == 'b')
		i++;
	expect(!p || i == len, "mapped content", (long)len, (long)i);
	if (p)
		munmap((void *)p, len);
	if (fd >= 0)
		close(fd);
}

static void bodies(void)
{
	const int all = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	int p[2], before = open_descriptors();

	body("sealed", memfd(5000, all), 5000, 1);
	body("sealed for good", memfd(1, all | F_SEAL_SEAL), 1, 1);
	body("unsealed", memfd(100, 0), 100, 0);
	body("may shrink", memfd(100, F_SEAL_GROW | F_SEAL_WRITE), 100, 0);
	body("may grow", memfd(100, F_SEAL_SHRINK | F_SEAL_WRITE), 100, 0);
	body("may be written", memfd(100, F_SEAL_SHRINK | F_SEAL_GROW), 100, 0);
	body("longer than said", memfd(101, all), 100, 0);
	body("shorter than said", memfd(99, all), 100, 0);
	body("empty", memfd(0, all), 0, 0);
	body("empty, said to be long", memfd(0, all), UINT64_MAX, 0);
	body("negative", memfd(100, all), (uint64_t)-100, 0);
	body("a device", open("/dev/zero", O_RDONLY | O_CLOEXEC), 4096, 0);
	body("a file", open("/proc/self/exe", O_RDONLY | O_CLOEXEC), 4096, 0);
	body("nothing", -1, 100, 0);
	if (pipe2(p, O_CLOEXEC))
		abort();
	body("a pipe", p[0], 100, 0);
	close(p[1]);
	expect(open_descriptors() == before, "descriptors left open", 0, 0);
}

/* A field that does not fit is left out whole, and those behind it fit again. */
static void drafts(void)
{
	struct draft *d = malloc(sizeof *d);
	size_t len, i, room = sizeof d->bytes - 8 - 8, last = 0;
	char *text = malloc(5000), *long_text = malloc(70000);
	int sock[2], fds[MAX_FDS], n;
	char buf[4096];

	memset(text, 't', 5000);
	memset(long_text, 't', 70000);
	long_text[69999] = 0;
	for (len = 0; len < 5000; len++) {
		draft_open(d, KIND_FAILED);
		draft_bytes(d, TAG_REASON, text, (uint32_t)len);
		expect(d->len == (len <= room ? 16 + len : 8), "draft", (long)len, (long)d->len);
		draft_u32(d, TAG_ERRNO, 1);
		draft_u64(d, TAG_CPU, 1);
		expect(d->len <= sizeof d->bytes, "draft and more", (long)len, (long)d->len);
	}
	draft_open(d, KIND_FAILED);
	for (i = 0; i < 1000; i++)
		draft_u64(d, TAG_CPU, last = i);
	expect(d->len == 8 + (sizeof d->bytes - 8) / 16 * 16 && last == 999, "a full draft", (long)d->len, 0);
	pair(sock);
	channel_fail(sock[0], "step", -1, -1, long_text);
	expect(channel_receive(sock[1], buf, sizeof buf, fds, &n) > 8, "a failure of a long reason", 0, 0);
	close(sock[0]);
	close(sock[1]);
	free(text);
	free(long_text);
	free(d);
}

int main(void)
{
	receiving();
	ending();
	sending();
	bodies();
	drafts();
	printf("%d cases\n", cases);
	return 0;
}
