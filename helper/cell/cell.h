/* cell.h: the factory, the cell and the messages between them and the helper.
 *
 * A message is one SEQPACKET datagram (or, for a long launch, one sealed
 * memfd): a header, then fields. All integers are in host order: both ends
 * are the same machine and the same build.
 *
 *   header := magic u32 | kind u16 | version u16
 *   field  := tag u16 | zero u16 | length u32 | length bytes
 *
 * Strings carry their terminating NUL and no other. The Go side is message.go.
 */
#ifndef CODESPACE_CELL_H
#define CODESPACE_CELL_H

#include <stddef.h>
#include <stdint.h>

#define CELL_MAGIC 0x4c4c4543u /* "CELL" */
#define CELL_VERSION 1
#define INBOX_BYTES (72 * 1024)
#define MAX_FDS 4
#define MAX_PATHS 64
#define MAX_RLIMITS 16

enum kind {
	KIND_CONFIG = 1, /* helper -> factory, once; the body lies in a memfd */
	KIND_READY = 2,  /* factory -> helper, cell -> helper; with a terminal's master */
	KIND_CELL = 3,   /* helper -> factory: make one */
	KIND_CLONED = 4, /* factory -> helper, with the cell's socket and pidfd */
	KIND_PLACED = 5, /* helper -> cell: you are in your cgroup */
	KIND_FAILED = 6, /* any -> its peer: step, index, errno, reason */
	KIND_LAUNCH = 7, /* runner -> cell, with stdin, stdout, stderr unless it has a terminal */
	KIND_STARTED = 8, /* cell -> runner: the argv's own image runs */
	KIND_SIGNAL = 9,  /* runner -> cell */
	KIND_EXITED = 10, /* cell -> runner: the argv's own wait status */
	KIND_EMPTY = 11,  /* cell -> runner: no process is left but PID 1 */
};

enum tag {
	TAG_STEP = 1,   /* string */
	TAG_INDEX = 2,  /* u32 */
	TAG_ERRNO = 3,  /* u32 */
	TAG_REASON = 4, /* string */
	TAG_WORKSPACE = 5, /* string: its path in the view */
	TAG_MASK = 6,      /* string, repeated: hidden in /proc */
	TAG_READONLY = 7,  /* string, repeated: read-only in /proc */
	TAG_PROGRAM = 8,   /* bytes, repeated: struct sock_filter[] in load order */
	TAG_RLIMIT = 9,    /* u64 resource, u64 limit (soft and hard) */
	TAG_PROCESSES = 10, /* u64: RLIMIT_NPROC, set last */
	TAG_SHM = 11,       /* u64: bytes of /dev/shm */
	TAG_WRITABLE = 12,  /* u32: 1 if the workspace may be written */
	TAG_ARG = 13,       /* string, repeated */
	TAG_ENV = 14,       /* string, repeated */
	TAG_CWD = 15,       /* string */
	TAG_BODY = 16,      /* u64: the launch's real message is in the memfd */
	TAG_STATUS = 17,    /* u32: wait status */
	TAG_CPU = 18,       /* u64: microseconds, user plus system, of all reaped */
	TAG_MAXRSS = 19,    /* u64: bytes, of the largest reaped process */
	TAG_SIGNAL = 20,    /* u32 */
	TAG_TREE = 21,      /* u32: 1 every process, 0 the argv's process group */
	TAG_ROOT = 23,      /* u64 device, u64 inode of the workspace */
	TAG_TERMINAL = 22,  /* u32: 1 if the command gets a pseudo-terminal */
};

struct message {
	uint16_t kind;
	const unsigned char *at, *end;
};

struct field {
	uint16_t tag;
	uint32_t len;
	const unsigned char *data;
};

struct draft {
	size_t len;
	unsigned char bytes[4096];
};

struct rlimit_field {
	uint64_t resource, limit;
};

struct program {
	const void *code;
	uint32_t bytes;
};

/* What every cell of one sandbox is made from. Strings point into the body. */
struct config {
	const char *workspace;
	const char *mask[MAX_PATHS];
	const char *readonly[MAX_PATHS];
	size_t masks, readonlys, programs, rlimits;
	struct program program[2];
	struct rlimit_field rlimit[MAX_RLIMITS];
	uint64_t processes, shm;
	struct root_field {
		uint64_t device, inode;
	} root;
};

struct launch {
	char **argv, **envp;
	size_t argc, envc;
	const char *cwd;
	uint64_t body;
};

/* message.c: parsing is bounded by the buffer and never trusts a length. */
int message_open(struct message *m, const void *buf, size_t len);
int message_next(struct message *m, struct field *f);
const char *field_string(const struct field *f);
int field_u32(const struct field *f, uint32_t *v);
int field_u64(const struct field *f, uint64_t *v);
int config_parse(struct config *c, const void *buf, size_t len);
int launch_parse(struct launch *l, const void *buf, size_t len);
void launch_free(struct launch *l);
void draft_open(struct draft *d, uint16_t kind);
void draft_bytes(struct draft *d, uint16_t tag, const void *p, uint32_t len);
void draft_u32(struct draft *d, uint16_t tag, uint32_t v);
void draft_u64(struct draft *d, uint16_t tag, uint64_t v);
void draft_string(struct draft *d, uint16_t tag, const char *s);

/* message.c, second half: the sockets. */
int channel_send(int sock, const struct draft *d, const int *fds, int nfds);
long channel_receive(int sock, void *buf, size_t cap, int *fds, int *nfds);
void channel_fail(int sock, const char *step, int index, int error, const char *reason);
const void *channel_body(int memfd, uint64_t len);

/* What one cell is asked to be. */
struct wish {
	uint32_t writable, terminal;
};

/* setup.c: the steps that lock a cell down. Returns only when all are done;
 * a failing step is reported on sock and ends the process. */
void cell_setup(int sock, const struct config *c, struct wish w);

/* init.c: PID 1 of a cell, from the end of setup to the end of the tree.
 * terminal is the command's side of its pseudo-terminal, -1 if it has none;
 * workspace is where it starts. */
void cell_init(int sock, int terminal, int workspace) __attribute__((noreturn));

#endif
