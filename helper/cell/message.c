/* message.c: reading and writing messages, then the sockets that carry them.
 * The parsers use no globals and no system calls: the fuzzer and the sanitizer
 * build drive them directly. */
#include "cell.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

struct header {
	uint32_t magic;
	uint16_t kind, version;
};

struct field_header {
	uint16_t tag, zero;
	uint32_t len;
};

int message_open(struct message *m, const void *buf, size_t len)
{
	struct header h;

	if (len < sizeof h)
		return -1;
	memcpy(&h, buf, sizeof h);
	if (h.magic != CELL_MAGIC || h.version != CELL_VERSION)
		return -1;
	m->kind = h.kind;
	m->at = (const unsigned char *)buf + sizeof h;
	m->end = (const unsigned char *)buf + len;
	return 0;
}

/* 1: a field; 0: the end; -1: malformed. */
int message_next(struct message *m, struct field *f)
{
	struct field_header h;

	if (m->at == m->end)
		return 0;
	if ((size_t)(m->end - m->at) < sizeof h)
		return -1;
	memcpy(&h, m->at, sizeof h);
	m->at += sizeof h;
	if (h.zero != 0 || h.len > (size_t)(m->end - m->at))
		return -1;
	f->tag = h.tag;
	f->len = h.len;
	f->data = m->at;
	m->at += h.len;
	return 1;
}

const char *field_string(const struct field *f)
{
	if (f->len == 0 || memchr(f->data, 0, f->len) != f->data + f->len - 1)
		return NULL;
	return (const char *)f->data;
}

int field_u32(const struct field *f, uint32_t *v)
{
	if (f->len != sizeof *v)
		return -1;
	memcpy(v, f->data, sizeof *v);
	return 0;
}

int field_u64(const struct field *f, uint64_t *v)
{
	if (f->len != sizeof *v)
		return -1;
	memcpy(v, f->data, sizeof *v);
	return 0;
}

static int config_path(const char **list, size_t *n, const struct field *f)
{
	if (*n == MAX_PATHS || !(list[*n] = field_string(f)) || list[*n][0] != '/')
		return -1;
	(*n)++;
	return 0;
}

static int config_field(struct config *c, const struct field *f)
{
	switch (f->tag) {
	case TAG_WORKSPACE:
		c->workspace = field_string(f);
		return c->workspace && c->workspace[0] == '/' ? 0 : -1;
	case TAG_MASK:
		return config_path(c->mask, &c->masks, f);
	case TAG_READONLY:
		return config_path(c->readonly, &c->readonlys, f);
	case TAG_PROGRAM: /* struct sock_filter is 8 bytes; the kernel takes 1..4096 of them */
		if (c->programs == 2 || f->len == 0 || f->len % 8 || f->len > 4096 * 8)
			return -1;
		c->program[c->programs].code = f->data;
		c->program[c->programs++].bytes = f->len;
		return 0;
	case TAG_RLIMIT:
		if (c->rlimits == MAX_RLIMITS || f->len != sizeof c->rlimit[0])
			return -1;
		memcpy(&c->rlimit[c->rlimits++], f->data, sizeof c->rlimit[0]);
		return 0;
	case TAG_PROCESSES:
		return field_u64(f, &c->processes);
	case TAG_SHM:
		return field_u64(f, &c->shm);
	case TAG_ROOT:
		if (f->len != sizeof c->root)
			return -1;
		memcpy(&c->root, f->data, sizeof c->root);
		return 0;
	}
	return -1;
}

/* A configuration without a workspace or without both filters is refused: a
 * cell that could not be locked down must not exist. */
int config_parse(struct config *c, const void *buf, size_t len)
{
	struct message m;
	struct field f;
	int r;

	memset(c, 0, sizeof *c);
	if (message_open(&m, buf, len) || m.kind != KIND_CONFIG)
		return -1;
	while ((r = message_next(&m, &f)) == 1)
		if (config_field(c, &f))
			return -1;
	if (r < 0 || !c->workspace || c->programs != 2 || !c->processes || !c->shm || !c->root.inode)
		return -1;
	return 0;
}

static int launch_field(struct launch *l, const struct field *f)
{
	const char *s;

	if (f->tag == TAG_BODY) /* one of no bytes would be none */
		return field_u64(f, &l->body) || !l->body ? -1 : 0;
	if (!(s = field_string(f)))
		return -1;
	switch (f->tag) {
	case TAG_ARG:
		l->argv[l->argc++] = (char *)s;
		return 0;
	case TAG_ENV:
		l->envp[l->envc++] = (char *)s;
		return 0;
	case TAG_CWD:
		l->cwd = s; /* "." is the workspace, by descriptor */
		return s[0] == '/' || !strcmp(s, ".") ? 0 : -1;
	}
	return -1;
}

/* The vectors are sized by a first pass, so a message cannot ask for more
 * memory than a small multiple of its own length. */
int launch_parse(struct launch *l, const void *buf, size_t len)
{
	struct message m;
	struct field f;
	size_t n = 0;
	int r;

	memset(l, 0, sizeof *l);
	if (message_open(&m, buf, len) || m.kind != KIND_LAUNCH)
		return -1;
	while ((r = message_next(&m, &f)) == 1)
		n++;
	if (r < 0)
		return -1;
	l->argv = calloc(n + 1, sizeof *l->argv);
	l->envp = calloc(n + 1, sizeof *l->envp);
	if (!l->argv || !l->envp || message_open(&m, buf, len))
		goto bad;
	while ((r = message_next(&m, &f)) == 1)
		if (launch_field(l, &f))
			goto bad;
	if (l->body ? l->argc || l->envc || l->cwd : !l->argc || !l->cwd)
		goto bad;
	return 0;
bad:
	launch_free(l);
	return -1;
}

void launch_free(struct launch *l)
{
	free(l->argv);
	free(l->envp);
	memset(l, 0, sizeof *l);
}

void draft_open(struct draft *d, uint16_t kind)
{
	struct header h = { CELL_MAGIC, kind, CELL_VERSION };

	memcpy(d->bytes, &h, sizeof h);
	d->len = sizeof h;
}

/* A field that does not fit is left out whole: only reasons can be long. */
void draft_bytes(struct draft *d, uint16_t tag, const void *p, uint32_t len)
{
	struct field_header h = { tag, 0, len };

	if (sizeof h + len > sizeof d->bytes - d->len)
		return;
	memcpy(d->bytes + d->len, &h, sizeof h);
	memcpy(d->bytes + d->len + sizeof h, p, len);
	d->len += sizeof h + len;
}

void draft_u32(struct draft *d, uint16_t tag, uint32_t v)
{
	draft_bytes(d, tag, &v, sizeof v);
}

void draft_u64(struct draft *d, uint16_t tag, uint64_t v)
{
	draft_bytes(d, tag, &v, sizeof v);
}

void draft_string(struct draft *d, uint16_t tag, const char *s)
{
	draft_bytes(d, tag, s, (uint32_t)strlen(s) + 1);
}

union ancillary {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(MAX_FDS * sizeof(int))];
};

int channel_send(int sock, const struct draft *d, const int *fds, int nfds)
{
	union ancillary box = { 0 };
	struct iovec io = { (void *)d->bytes, d->len };
	struct msghdr h = { .msg_iov = &io, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (nfds > 0) {
		h.msg_control = box.bytes;
		h.msg_controllen = CMSG_SPACE((size_t)nfds * sizeof(int));
		c = CMSG_FIRSTHDR(&h);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN((size_t)nfds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, (size_t)nfds * sizeof(int));
	}
	while (sendmsg(sock, &h, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			return -1;
	return 0;
}

/* The message's length, 0 when the peer is gone, -1 on an error. Descriptors
 * arrive close-on-exec; a truncated message or descriptor list is an error and
 * leaves none open. */
long channel_receive(int sock, void *buf, size_t cap, int *fds, int *nfds)
{
	union ancillary box = { 0 };
	struct iovec io = { buf, cap };
	struct msghdr h = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = box.bytes, .msg_controllen = sizeof box };
	struct cmsghdr *c;
	ssize_t n;

	*nfds = 0;
	while ((n = recvmsg(sock, &h, MSG_CMSG_CLOEXEC)) < 0)
		if (errno != EINTR)
			return errno == ECONNRESET ? 0 : -1;
	for (c = CMSG_FIRSTHDR(&h); c; c = CMSG_NXTHDR(&h, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		*nfds = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fds, CMSG_DATA(c), (size_t)*nfds * sizeof(int));
	}
	if (!(h.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return n;
	while (*nfds > 0)
		close(fds[--*nfds]);
	errno = EMSGSIZE;
	return -1;
}

void channel_fail(int sock, const char *step, int index, int error, const char *reason)
{
	struct draft d;

	draft_open(&d, KIND_FAILED);
	draft_string(&d, TAG_STEP, step);
	draft_u32(&d, TAG_INDEX, (uint32_t)index);
	draft_u32(&d, TAG_ERRNO, (uint32_t)error);
	draft_string(&d, TAG_REASON, reason);
	channel_send(sock, &d, NULL, 0);
}

/* Maps a long message. Only a memfd sealed against change is accepted, so what
 * was checked stays what is used. */
const void *channel_body(int memfd, uint64_t len)
{
	const int need = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	off_t size = lseek(memfd, 0, SEEK_END);
	int seals = fcntl(memfd, F_GET_SEALS);
	void *p;

	if (seals < 0 || (seals & need) != need || size <= 0 || (uint64_t)size != len) {
		errno = EINVAL;
		return NULL;
	}
	p = mmap(NULL, (size_t)len, PROT_READ, MAP_PRIVATE, memfd, 0);
	return p == MAP_FAILED ? NULL : p;
}
