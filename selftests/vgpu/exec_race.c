// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Data races: two accesses of different threads to one place, at least one of them a plain write,
 * and nothing orders them. Of each word the last plain write is kept, and the reads and atomics
 * after it of two threads: a race with an older one may go unseen, under this seed. Two plain
 * writes of the same value are borne with, as hardware does.
 */
#include <stdio.h>
#include <stdlib.h>
#include "exec_race.h"

#define WORD	15	/* all its bytes */

/*
 * Memory for cells of blocks that are gone. What is in it bears their serial numbers: it is as good
 * as empty.
 */
static pthread_mutex_t spare_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	struct cell *cells;
	size_t n;
} spare[32];
static uint32_t serial;

static struct cell *cells_take(size_t n, size_t *got, uint32_t *number)
{
	struct cell *c = NULL;
	unsigned int i;

	pthread_mutex_lock(&spare_lock);
	for (i = 0; i < 32 && !c; i++)
		if (spare[i].n >= n && spare[i].n <= 4 * n) {
			c = spare[i].cells;
			*got = spare[i].n;
			spare[i].n = 0;
		}
	if (!++serial)
		serial = 1;
	*number = serial;
	pthread_mutex_unlock(&spare_lock);
	if (c)
		return c;
	*got = n;
	return calloc(n, sizeof(*c));
}

static void cells_give(struct cell *c, size_t n)
{
	unsigned int i;

	pthread_mutex_lock(&spare_lock);
	for (i = 0; i < 32 && spare[i].n; i++)
		;
	if (i < 32 && c) {
		spare[i].cells = c;
		spare[i].n = n;
		c = NULL;
	}
	pthread_mutex_unlock(&spare_lock);
	free(c);
}

bool race_new(struct vgpu_block *b)
{
	unsigned int want = VGPU_CHECK_RACE | VGPU_CHECK_GRID;

	if (!(b->checks & want))
		return true;
	b->order = order_new(b->n_threads, b->checks & VGPU_CHECK_GRID ? b->l.watch :
			     NULL, b->ctaid);
	if (b->checks & VGPU_CHECK_RACE)
		b->cells = cells_take(b->shared_size / 4 + 1, &b->n_cells, &b->serial);
	return b->order && (b->cells || !(b->checks & VGPU_CHECK_RACE));
}

void race_free(struct vgpu_block *b)
{
	order_free(b->order);
	cells_give(b->cells, b->n_cells);
}

static bool ordered(const struct xorder *o, unsigned int t, uint32_t block, const struct access *a)
{
	if (a->block != block)
		return a->block < o->n_seen && o->seen[a->block] >= a->epoch;
	return a->thread == t || order_known(o, t, a->thread) >= a->clock;
}

static const char *does(unsigned int kind, bool now)
{
	if (kind & XA_STRONG)
		return kind & XA_WRITE ? now ? "updates it atomically" : "updated it atomically" :
		       now ? "reads it" : "read it";
	return kind & XA_WRITE ? now ? "writes it" : "wrote it" : now ? "reads it" : "read it";
}

bool race_report(struct xctx *x, const struct xinsn *in)
{
	const struct xsuspect *s = &x->suspect;
	const struct xorder *o = x->b->order;
	char whose[64] = "";

	if (!s->shared && s->block != o->id) {
		const unsigned int *c = watch_ctaid(o->watch, s->block);

		snprintf(whose, sizeof(whose), " of block (%u,%u,%u)", c[0], c[1], c[2]);
	}
	exec_fault_as(x, in, VGPU_FAULT_RACE, "data race on %s 0x%llx: thread %u %s here, thread "
		      "%u%s %s at line %u, and nothing orders the two", s->shared ? "shared" :
		      "global", (unsigned long long)s->addr, s->me, does(s->my_kind, true),
		      s->thread, whose, does(s->kind, false), s->line);
	return false;
}

/* Does the access meet another one that is not ordered with it? */
static const struct access *meets(const struct xorder *o, const struct access *me,
				  const struct cell *c, bool plain_write)
{
	const struct access *a = c->plain;
	unsigned int i;

	for (i = 0; i < (a->bytes == WORD ? 1 : 4); i++)
		if (a[i].bytes & me->bytes && !ordered(o, me->thread, me->block, &a[i]))
			return &a[i];
	a = c->other;
	for (i = 0; plain_write && i < 2; i++)
		if (a[i].bytes & me->bytes && !ordered(o, me->thread, me->block, &a[i]))
			return &a[i];
	return NULL;
}

static void note_write(struct cell *c, const struct access *me)
{
	struct access *a = c->plain;
	unsigned int i;

	for (i = 0; i < 2; i++)
		c->other[i].bytes &= (uint8_t)~me->bytes;
	if (me->bytes == WORD) {
		a[0] = *me;
		a[1].bytes = a[2].bytes = a[3].bytes = 0;
		return;
	}
	for (i = 4; i--;) {
		if (me->bytes >> i & 1)
			a[i] = *me;
		else if (a[0].bytes == WORD)
			a[i] = a[0];
		else
			continue;
		a[i].bytes = (uint8_t)(1 << i);
	}
}

static void note(struct cell *c, const struct access *me)
{
	struct access *o = c->other;

	if (o[0].bytes && (o[0].thread != me->thread || o[0].block != me->block))
		o[1] = o[0];
	o[0] = *me;
}

bool race_access(struct xctx *x, const struct xinsn *in, unsigned int lane, bool shared,
		 uint64_t addr, size_t size, unsigned int kind)
{
	struct vgpu_block *b = x->b;
	struct xorder *o = b->order;
	unsigned int t = x->w->id * LANES + lane;
	bool plain_write = (kind & (XA_WRITE | XA_STRONG)) == XA_WRITE;
	uint64_t at = addr & ~3ull, place = shared ? addr | WIN_SHARED : addr;
	struct access me = { .block = shared ? b->serial : o->id, .epoch = o->epoch,
			     .line = in->line, .thread = (uint16_t)t, .kind = (uint8_t)kind };

	if (o->lost)
		return true;
	if (kind & XA_STRONG && kind & XA_READ)
		order_acquire(o, t, place, shared);
	me.clock = o->clock[t];
	for (; at < addr + size; at += 4) {
		struct cell *c = shared ? b->cells ? &b->cells[at / 4] : NULL : watch_cell(o, at);
		const struct access *other;

		if (!c)
			break;
		if (shared && c->serial != b->serial)
			*c = (struct cell){ .serial = b->serial };
		me.bytes = WORD;
		if (at < addr)
			me.bytes = (uint8_t)(WORD << (addr - at) & WORD);
		if (at + 4 > addr + size)
			me.bytes &= (uint8_t)(WORD >> (at + 4 - addr - size));
		other = meets(o, &me, c, plain_write);
		if (other && !x->suspect.line) {
			x->suspect = (struct xsuspect){ .addr = at, .line = other->line,
							.block = other->block, .me = t,
							.thread = other->thread,
							.kind = other->kind,
							.my_kind = (uint8_t)kind,
							.shared = shared };
			/* the store will tell whether it changes anything */
			if (!(kind & XA_STORE && other < c->other))
				return race_report(x, in);
		}
		if (plain_write)
			note_write(c, &me);
		else
			note(c, &me);
	}
	if (kind & XA_RELEASE)
		order_fence(o, t);
	if (kind & XA_STRONG && kind & XA_WRITE)
		order_publish(o, t, place, shared);
	return true;
}
