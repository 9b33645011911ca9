/* parsers.c: mutated messages through the parsers of message.c, to be built with
 * sanitizers.
 *
 *   parsers COUNT SEED < valid messages, each with its length as u32 before it
 *   parsers overrun    reads a byte too many: the sanitizer must say so
 *   parsers overflow   adds beyond what an int holds: likewise
 *
 * Each message is parsed in a block of exactly its size, and everything a parser
 * returns is read. Prints how many were parsed and how many of them accepted. */
#include "../cell.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SEEDS 64
#define MAX_BYTES (64 * 1024)

struct bytes {
	unsigned char *data;
	size_t len;
};

static struct bytes seeds[MAX_SEEDS];
static size_t nseeds;
static uint64_t state;
static volatile unsigned sink; /* what was read, so that it is */

/* xorshift64*: the same messages for the same seed everywhere. */
static uint64_t rnd(uint64_t below)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (state * 2685821657736338717u >> 11) % below;
}

static void *block(size_t len)
{
	void *p = malloc(len);

	if (!p)
		abort();
	memset(p, 0, len);
	return p;
}

static void read_seeds(void)
{
	uint32_t len;

	while (nseeds < MAX_SEEDS && fread(&len, sizeof len, 1, stdin) == 1) {
		if (len > MAX_BYTES)
			abort();
		seeds[nseeds].data = block(len);
		seeds[nseeds].len = len;
		if (fread(seeds[nseeds++].data, 1, len, stdin) != len)
			abort();
	}
}

static void put32(struct bytes *m, size_t at, uint32_t v)
{
	if (at + sizeof v <= m->len)
		memcpy(m->data + at, &v, sizeof v);
}

/* The offset of a random field's header, found as a parser would. */
static size_t some_field(const struct bytes *m)
{
	size_t at = 8, found = 8;
	uint32_t len;

	while (at + 8 <= m->len) {
		if (!rnd(4))
			return at;
		found = at;
		memcpy(&len, m->data + at + 4, sizeof len);
		if (len > m->len)
			break;
		at += 8 + len;
	}
	return found;
}

static void edit_length(struct bytes *m)
{
	static const uint32_t odd[] = { 0, 1, 7, 8, 9, 15, 16, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffff8 };
	size_t at = some_field(m) + 4;
	uint32_t now = 0;

	if (at + 4 <= m->len)
		memcpy(&now, m->data + at, sizeof now);
	switch (rnd(3)) {
	case 0:
		put32(m, at, odd[rnd(sizeof odd / sizeof odd[0])]);
		break;
	case 1:
		put32(m, at, now + (uint32_t)rnd(9) - 4);
		break;
	default:
		put32(m, at, (uint32_t)(m->len - at) + (uint32_t)rnd(17) - 8);
	}
}

/* Two messages, each cut anywhere or at a field, one behind the other. */
static void splice(struct bytes *m, const struct bytes *other)
{
	size_t keep = rnd(2) ? rnd(m->len + 1) : some_field(m);
	size_t from = rnd(2) ? rnd(other->len + 1) : some_field(other), rest;

	if (keep > m->len)
		keep = m->len;
	if (from > other->len)
		from = other->len;
	rest = other->len - from;
	if (keep + rest > MAX_BYTES)
		rest = MAX_BYTES - keep;
	memcpy(m->data + keep, other->data + from, rest);
	m->len = keep + rest;
}

static void mutate(struct bytes *m)
{
	size_t at = m->len ? rnd(m->len) : 0;

	switch (rnd(7)) {
	case 0:
		m->len = rnd(m->len + 1);
		break;
	case 1:
		if (m->len)
			m->data[at] ^= (unsigned char)(1u << rnd(8));
		break;
	case 2:
		if (m->len)
			m->data[at] = (unsigned char)rnd(256);
		break;
	case 3:
		edit_length(m);
		break;
	case 4:
		splice(m, &seeds[rnd(nseeds)]);
		break;
	case 5: /* another tag */
		at = some_field(m);
		if (at + 2 <= m->len)
			m->data[at] = (unsigned char)rnd(24);
		break;
	default: /* the last byte of a message is where strings end */
		if (m->len)
			m->data[m->len - 1] = (unsigned char)rnd(3);
	}
}

static void taste(const void *p, size_t len)
{
	const unsigned char *b = p;
	unsigned sum = 0;

	while (len--)
		sum += *b++;
	sink += sum;
}

static int try_launch(const void *block, size_t len)
{
	struct launch l;
	size_t i;

	if (launch_parse(&l, block, len))
		return 0;
	for (i = 0; i < l.argc; i++)
		taste(l.argv[i], strlen(l.argv[i]) + 1);
	for (i = 0; i < l.envc; i++)
		taste(l.envp[i], strlen(l.envp[i]) + 1);
	if (l.argv[l.argc] || l.envp[l.envc])
		abort();
	if (l.cwd)
		taste(l.cwd, strlen(l.cwd) + 1);
	launch_free(&l);
	return 1;
}

static int try_config(const void *block, size_t len)
{
	struct config c;
	size_t i;

	if (config_parse(&c, block, len))
		return 0;
	taste(c.workspace, strlen(c.workspace) + 1);
	for (i = 0; i < c.masks; i++)
		taste(c.mask[i], strlen(c.mask[i]) + 1);
	for (i = 0; i < c.readonlys; i++)
		taste(c.readonly[i], strlen(c.readonly[i]) + 1);
	for (i = 0; i < c.programs; i++)
		taste(c.program[i].code, c.program[i].bytes);
	for (i = 0; i < c.rlimits; i++)
		sink += (unsigned)c.rlimit[i].resource;
	return 1;
}

int main(int argc, char **argv)
{
	static unsigned char room[MAX_BYTES];
	struct bytes m = { room, 0 };
	unsigned long i, count, launches = 0, configs = 0;

	if (argc == 2 && !strcmp(argv[1], "overrun")) {
		taste(block(16), 17);
		return 0;
	}
	if (argc == 2 && !strcmp(argv[1], "overflow")) {
		volatile int most = 0x7fffffff; /* not for a compiler to fold */

		most = most + argc;
		return most == 0;
	}
	if (argc != 3)
		return 2;
	count = strtoul(argv[1], NULL, 10);
	state = strtoul(argv[2], NULL, 10);
	read_seeds();
	for (i = 0; i < count && nseeds; i++) {
		const struct bytes *seed = &seeds[i % nseeds];
		uint64_t changes = rnd(4);
		void *exact;

		memcpy(room, seed->data, m.len = seed->len);
		while (changes--)
			mutate(&m);
		exact = block(m.len);
		memcpy(exact, room, m.len);
		launches += (unsigned long)try_launch(exact, m.len);
		configs += (unsigned long)try_config(exact, m.len);
		free(exact);
	}
	for (i = 0; i < nseeds; i++)
		free(seeds[i].data);
	printf("%lu messages, %lu launches and %lu configurations accepted\n", count, launches, configs);
	return 0;
}
