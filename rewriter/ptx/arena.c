// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The arena: chunks that grow up to 2 MiB, and a hash table of interned strings, whose text lies in
 * the chunks, too.
 *
 * In: sizes and strings. Out: zeroed memory, and one copy of each string. Assumes that an escape is
 * set (gsr_arena_escape()).
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "arena.h"

#define CHUNK_FIRST	(16u << 10)
#define HUGE_PAGE	((size_t)2 << 20)
#define CHUNK_MAX	HUGE_PAGE

struct chunk {
	struct chunk *next;
	size_t used, size;
	max_align_t data[];
};

struct gsr_arena {
	struct chunk *chunks;
	size_t next_size;
	jmp_buf *escape;
	struct gsr_interned **table;	/* malloc'd, n_table is a power of two */
	size_t n_table, n_interned;
};

struct gsr_arena *gsr_arena_new(void)
{
	struct gsr_arena *a = calloc(1, sizeof(*a));

	if (a)
		a->next_size = CHUNK_FIRST;
	return a;
}

void gsr_arena_free(struct gsr_arena *a)
{
	struct chunk *c, *next;

	if (!a)
		return;
	for (c = a->chunks; c; c = next) {
		next = c->next;
		free(c);
	}
	free(a->table);
	free(a);
}

/* Keeps the largest chunk for the next use */
void gsr_arena_reset(struct gsr_arena *a)
{
	struct chunk *c, *next, *largest = NULL;

	for (c = a->chunks; c; c = next) {
		next = c->next;
		if (!largest || c->size > largest->size) {
			free(largest);
			largest = c;
		} else {
			free(c);
		}
	}
	a->chunks = largest;
	if (largest) {
		largest->next = NULL;
		largest->used = 0;
	}
}

void gsr_arena_escape(struct gsr_arena *a, jmp_buf *escape)
{
	a->escape = escape;
}

static void out_of_memory(struct gsr_arena *a)
{
	if (!a->escape)
		abort();
	longjmp(*a->escape, 1);
}

void gsr_huge_pages(void *p, size_t size)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)p / page * page;

	/* of the whole mapping: mremap() cannot move one that is split, and realloc() would copy */
	if (size >= HUGE_PAGE)
		madvise((void *)start, ((uintptr_t)p + size + page - 1) / page * page - start,
			MADV_HUGEPAGE);
}

/* A chunk for at least @size bytes of data */
static struct chunk *new_chunk(size_t size)
{
	struct chunk *c;
	size_t all;

	if (size > SIZE_MAX - sizeof(*c) - HUGE_PAGE)
		return NULL;
	all = sizeof(*c) + size;
	if (all >= HUGE_PAGE) {
		all = (all + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
		c = aligned_alloc(HUGE_PAGE, all);
		if (c)
			gsr_huge_pages(c, all);
	} else {
		c = malloc(all);
	}
	if (c) {
		c->used = 0;
		c->size = all - sizeof(*c);
	}
	return c;
}

static struct chunk *add_chunk(struct gsr_arena *a, size_t size)
{
	size_t want = a->next_size - sizeof(struct chunk);
	struct chunk *c = new_chunk(size > want ? size : want);

	if (!c)
		out_of_memory(a);
	/* a chunk of a single allocation must not hide the free end of the first one */
	if (a->chunks && size > want) {
		c->next = a->chunks->next;
		a->chunks->next = c;
	} else {
		c->next = a->chunks;
		a->chunks = c;
	}
	if (a->next_size < CHUNK_MAX)
		a->next_size *= 2;
	return c;
}

/* Not zeroed; at the free end of the first chunk if it fits: gsr_vsprintf() relies on that */
static inline void *take_memory(struct gsr_arena *a, size_t size)
{
	struct chunk *c = a->chunks;
	void *p;

	if (size > SIZE_MAX / 2)
		out_of_memory(a);
	size = (size + 15) & ~(size_t)15;
	if (!c || c->size - c->used < size)
		c = add_chunk(a, size);
	p = (char *)c->data + c->used;
	c->used += size;
	return p;
}

void *gsr_alloc(struct gsr_arena *a, size_t size)
{
	return memset(take_memory(a, size), 0, size);
}

void *gsr_alloc_array(struct gsr_arena *a, size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes))
		out_of_memory(a);
	return gsr_alloc(a, bytes);
}

void *gsr_grow_full(struct gsr_arena *a, void *at, unsigned int n, unsigned int *room, size_t size)
{
	void *grown;

	*room = *room ? *room * 2 : 4;
	grown = gsr_alloc_array(a, *room, size);
	return n ? memcpy(grown, at, n * size) : grown;
}

void *gsr_memdup(struct gsr_arena *a, const void *from, size_t size)
{
	return size ? memcpy(take_memory(a, size), from, size) : NULL;
}

char *gsr_alloc_text(struct gsr_arena *a, size_t n)
{
	return take_memory(a, n + 1);
}

char *gsr_strndup(struct gsr_arena *a, const char *s, size_t n)
{
	char *p = gsr_alloc_text(a, n);

	memcpy(p, s, n);
	p[n] = 0;
	return p;
}

struct text {
	char *at;
	size_t n, room;			/* n may exceed room: it counts what did not fit */
};

static void put_chars(struct text *t, const char *s, size_t n)
{
	if (t->n < t->room && n < t->room - t->n)
		memcpy(t->at + t->n, s, n);
	t->n += n;
}

static void put_number(struct text *t, unsigned long long v, bool minus)
{
	char digits[24], *d = digits + sizeof(digits);

	do
		*--d = (char)('0' + v % 10);
	while (v /= 10);
	if (minus)
		*--d = '-';
	put_chars(t, d, (size_t)(digits + sizeof(digits) - d));
}

static void put_signed(struct text *t, long long v)
{
	put_number(t, v < 0 ? 0 - (unsigned long long)v : (unsigned long long)v, v < 0);
}

#define ARGS_MAX	9

union argument {
	const char *s;
	long long v;
};

static union argument next_argument(char conversion, va_list *ap)
{
	union argument a;

	if (conversion == 's')
		a.s = va_arg(*ap, const char *);
	else if (conversion == 'u')
		a.v = va_arg(*ap, unsigned int);
	else
		a.v = va_arg(*ap, int);
	return a;
}

static void put_argument(struct text *t, char conversion, union argument a)
{
	char c = (char)a.v;

	if (conversion == 's')
		put_chars(t, a.s, strlen(a.s));
	else if (conversion == 'c')
		put_chars(t, &c, 1);
	else
		put_signed(t, a.v);
}

/* f points to %1$u, with s, u or d at its end */
static bool is_numbered(const char *f)
{
	return f[1] >= '1' && f[1] <= '0' + ARGS_MAX && f[2] == '$' && f[3] &&
	       strchr("sud", f[3]);
}

/* The arguments of a text that numbers all of them; false: it does not */
static bool numbered_arguments(const char *fmt, va_list *ap, union argument *args)
{
	char conversion[ARGS_MAX] = { 0 };
	unsigned int i, n = 0;
	const char *f;

	for (f = strchr(fmt, '%'); f; f = strchr(f, '%')) {
		if (f[1] == '%') {
			f += 2;
			continue;
		}
		if (!is_numbered(f))
			return false;
		i = (unsigned int)(f[1] - '1');
		conversion[i] = f[3];
		n = i + 1 > n ? i + 1 : n;
		f += 4;
	}
	for (i = 0; i < n; i++) {
		if (!conversion[i])
			return false;
		args[i] = next_argument(conversion[i], ap);
	}
	return true;
}

/*
 * vsnprintf(), which takes ten times as long for a text with a conversion in each register's name.
 * Handles %s, %u, %d, %c, numbered ones (%1$s) and %%, which is nearly all that our texts use;
 * falls back to vsnprintf() for others.
 */
static size_t format_text(char *out, size_t room, const char *fmt, va_list ap)
{
	struct text t = { .at = out, .room = room };
	union argument args[ARGS_MAX];
	const char *f = fmt, *end;
	bool numbered = false;
	va_list own, start;
	int n;

	va_copy(own, ap);
	va_copy(start, ap);
	for (;; f = end) {
		end = strchrnul(f, '%');
		if (*end && end[1] == '%') {
			put_chars(&t, f, (size_t)(++end - f));
			end++;
			continue;
		}
		put_chars(&t, f, (size_t)(end - f));
		if (!*end)
			break;
		f = end;
		end += 2;
		if (f[1] == 's' || f[1] == 'u' || f[1] == 'd' || f[1] == 'c') {
			put_argument(&t, f[1], next_argument(f[1], &own));
			continue;
		}
		if (!numbered && is_numbered(f))
			numbered = numbered_arguments(fmt, &own, args);
		if (numbered) {
			put_argument(&t, f[3], args[f[1] - '1']);
			end = f + 4;
			continue;
		}
		n = vsnprintf(out, room, fmt, start);
		t.n = n < 0 ? SIZE_MAX : (size_t)n;
		break;
	}
	va_end(start);
	va_end(own);
	if (t.n < room)
		out[t.n] = 0;
	return t.n;
}

char *gsr_vsprintf(struct gsr_arena *a, const char *fmt, va_list ap)
{
	struct chunk *c = a->chunks;
	size_t room = c ? c->size - c->used : 0, n;
	va_list again;
	char *p;

	va_copy(again, ap);
	n = format_text(c ? (char *)c->data + c->used : NULL, room, fmt, ap);
	if (n == SIZE_MAX)
		out_of_memory(a);
	p = take_memory(a, n + 1);
	if (n >= room)
		format_text(p, n + 1, fmt, again);
	va_end(again);
	return p;
}

char *gsr_sprintf(struct gsr_arena *a, const char *fmt, ...)
{
	va_list ap;
	char *p;

	va_start(ap, fmt);
	p = gsr_vsprintf(a, fmt, ap);
	va_end(ap);
	return p;
}

/*
 * Names that differ in the last digit only get neighbouring buckets, as they are looked up one
 * after the other
 */
static uint32_t hash_bytes(const char *s, size_t n)
{
	uint32_t h = 0;

	while (n--)
		h = h * 31 + (unsigned char)*s++;
	return h;
}

static void grow_table(struct gsr_arena *a)
{
	size_t n = a->n_table ? a->n_table * 2 : 256, i;
	struct gsr_interned **table = calloc(n, sizeof(*table)), *e, *next;

	if (!table)
		out_of_memory(a);
	for (i = 0; i < a->n_table; i++) {
		for (e = a->table[i]; e; e = next) {
			next = e->next;
			e->next = table[e->hash & (n - 1)];
			table[e->hash & (n - 1)] = e;
		}
	}
	free(a->table);
	a->table = table;
	a->n_table = n;
}

const char *gsr_intern(struct gsr_arena *a, const char *s, size_t n)
{
	uint32_t h = hash_bytes(s, n);
	struct gsr_interned *e;

	if (n > UINT32_MAX / 2)
		out_of_memory(a);
	if (a->n_interned >= a->n_table)
		grow_table(a);
	for (e = a->table[h & (a->n_table - 1)]; e; e = e->next)
		if (e->hash == h && e->len == n && !memcmp(e->text, s, n))
			return e->text;
	e = gsr_alloc(a, sizeof(*e) + n + 1);
	e->hash = h;
	e->len = (uint32_t)n;
	memcpy(e->text, s, n);
	e->next = a->table[h & (a->n_table - 1)];
	a->table[h & (a->n_table - 1)] = e;
	a->n_interned++;
	return e->text;
}

const char *gsr_intern_str(struct gsr_arena *a, const char *s)
{
	return gsr_intern(a, s, strlen(s));
}
