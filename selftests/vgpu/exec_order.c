// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Which access comes before which: vector clocks. A thread knows of each other thread of its block
 * up to which of its moments that one's accesses come before its own. Moments are counted by what
 * orders: barriers, fences. Most blocks use barriers of all threads only, after which all know the
 * same: base[]. What a thread knows beyond that lies in a row of its own (or, of its warp's lanes
 * only, in a small one) that the next such barrier makes stale.
 *
 * A strong write after a fence, or a release, leaves at its address what the writer knew; a strong
 * read takes it up. Between blocks this is done for whole blocks, which orders more than PTX does:
 * a missing fence there may go unseen.
 */
#include <stdlib.h>
#include "exec_race.h"

struct xorder *order_new(unsigned int threads, struct vgpu_watch *watch,
			 const unsigned int ctaid[3])
{
	struct xorder *o = calloc(1, sizeof(*o));
	unsigned int i;

	if (!o)
		return NULL;
	o->n = threads;
	o->stamp = 1;
	o->clock = calloc(threads, 4 * sizeof(*o->clock));
	o->row = calloc(threads, sizeof(*o->row));
	o->warp = calloc((threads + LANES - 1) / LANES, sizeof(*o->warp));
	if (!o->clock || !o->row || !o->warp || !watch_block(watch, o, ctaid)) {
		order_free(o);
		return NULL;
	}
	o->base = o->clock + threads;
	o->fence = o->base + threads;
	o->row_stamp = o->fence + threads;
	for (i = 0; i < threads; i++)
		o->clock[i] = 1;
	o->epoch = 1;
	return o;
}

void order_free(struct xorder *o)
{
	unsigned int i;

	if (!o)
		return;
	for (i = 0; o->row && i < o->n; i++)
		free(o->row[i]);
	for (i = 0; o->warp && i < (o->n + LANES - 1) / LANES; i++)
		free(o->warp[i].row);
	for (i = 0; i < BARRIERS; i++)
		free(o->arrived[i]);
	for (i = 0; i < o->n_places; i++)
		free(o->place[i].row);
	free(o->place);
	free(o->clock);
	free(o->row);
	free(o->warp);
	free(o->seen);
	free(o);
}

static uint32_t (*lanes_of(const struct xorder *o, unsigned int warp))[LANES]
{
	return o->warp[warp].stamp == o->stamp ? o->warp[warp].row : NULL;
}

uint32_t order_known(const struct xorder *o, unsigned int t, unsigned int of)
{
	uint32_t c = o->base[of];

	if (o->row_stamp[t] == o->stamp)
		return o->row[t][of] > c ? o->row[t][of] : c;
	if (t / LANES == of / LANES && lanes_of(o, t / LANES)) {
		uint32_t w = o->warp[t / LANES].row[t % LANES][of % LANES];

		return w > c ? w : c;
	}
	return c;
}

static void join(uint32_t *to, const uint32_t *from, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		to[i] = to[i] > from[i] ? to[i] : from[i];
}

/* Of the block's threads, of one warp's lanes: as many as there are */
static unsigned int lanes(const struct xorder *o, unsigned int warp)
{
	return o->n - warp * LANES < LANES ? o->n - warp * LANES : LANES;
}

/* The thread's own row, with all that it knows beyond base[] */
static uint32_t *row_of(struct xorder *o, unsigned int t)
{
	unsigned int w = t / LANES;

	if (o->row_stamp[t] == o->stamp)
		return o->row[t];
	if (!o->row[t])
		o->row[t] = malloc(o->n * sizeof(**o->row));
	if (!o->row[t]) {
		o->lost = true;
		return NULL;
	}
	memset(o->row[t], 0, o->n * sizeof(**o->row));
	if (lanes_of(o, w))
		memcpy(o->row[t] + (size_t)w * LANES, o->warp[w].row[t % LANES],
		       lanes(o, w) * sizeof(uint32_t));
	o->row_stamp[t] = o->stamp;
	return o->row[t];
}

static void join_thread(struct xorder *o, uint32_t *to, unsigned int t)
{
	unsigned int w = t / LANES;

	if (o->row_stamp[t] == o->stamp)
		join(to, o->row[t], o->n);
	else if (lanes_of(o, w))
		join(to + (size_t)w * LANES, o->warp[w].row[t % LANES], lanes(o, w));
}

/* Every thread of the block has met every other */
static void all_met(struct xorder *o)
{
	unsigned int i;

	for (i = 0; i < o->n; i++)
		o->base[i] = o->clock[i]++;
	o->stamp++;
}

static uint32_t *arrivals(struct xorder *o, unsigned int id)
{
	if (!o->arrived[id])
		o->arrived[id] = malloc(o->n * sizeof(**o->arrived));
	if (!o->arrived[id]) {
		o->lost = true;
		return NULL;
	}
	if (!o->arrived_any[id])
		memset(o->arrived[id], 0, o->n * sizeof(**o->arrived));
	o->arrived_any[id] = true;
	return o->arrived[id];
}

static void arrive(struct xorder *o, uint32_t *to, unsigned int warp, uint32_t m)
{
	for (; m; m &= m - 1) {
		unsigned int t = warp * LANES + (unsigned int)__builtin_ctz(m);

		join_thread(o, to, t);
		to[t] = o->clock[t]++;
	}
}

void order_arrive(struct xorder *o, unsigned int id, unsigned int warp, uint32_t m)
{
	uint32_t *to = arrivals(o, id);

	if (to)
		arrive(o, to, warp, m);
}

void order_barrier(struct vgpu_block *b, unsigned int id, bool all)
{
	struct xorder *o = b->order;
	unsigned int k, live = 0, here = 0;
	uint32_t *to, m, left;

	for (k = 0; k < b->n_warps; k++) {
		live += (unsigned int)__builtin_popcount(b->warps[k].live);
		here += (unsigned int)__builtin_popcount(sync_here(&b->warps[k], id));
	}
	if (here == (all ? live : b->n_threads) && !o->arrived_any[id]) {
		all_met(o);
		return;
	}
	to = arrivals(o, id);
	if (!to)
		return;
	for (k = 0; k < b->n_warps; k++) {
		const struct xwarp *w = &b->warps[k];

		/* those that have exited count as arrived */
		left = all ? w->all & ~w->live : 0;
		arrive(o, to, k, sync_here(w, id) | left);
	}
	for (k = 0; k < b->n_warps; k++)
		for (m = sync_here(&b->warps[k], id); m; m &= m - 1) {
			uint32_t *row = row_of(o, k * LANES + (unsigned int)__builtin_ctz(m));

			if (row)
				join(row, to, o->n);
		}
	o->arrived_any[id] = false;
}

void order_lanes(struct xorder *o, unsigned int warp, uint32_t m)
{
	struct xlanes *l = &o->warp[warp];
	uint32_t k, sum[LANES] = { 0 };
	bool rows = false;

	for (k = m; k; k &= k - 1)
		rows |= o->row_stamp[warp * LANES + (unsigned int)__builtin_ctz(k)] == o->stamp;
	if (rows) {
		unsigned int first = warp * LANES + (unsigned int)__builtin_ctz(m);
		uint32_t *to = row_of(o, first);

		if (!to)
			return;
		arrive(o, to, warp, m);
		for (k = m & (m - 1); k; k &= k - 1) {
			uint32_t *row = row_of(o, warp * LANES + (unsigned int)__builtin_ctz(k));

			if (row)
				memcpy(row, to, o->n * sizeof(*row));
		}
		return;
	}
	if (!l->row)
		l->row = malloc(LANES * sizeof(*l->row));
	if (!l->row) {
		o->lost = true;
		return;
	}
	if (l->stamp != o->stamp)
		memset(l->row, 0, LANES * sizeof(*l->row));
	l->stamp = o->stamp;
	for (k = m; k; k &= k - 1)
		join(sum, l->row[__builtin_ctz(k)], LANES);
	for (k = m; k; k &= k - 1)
		sum[__builtin_ctz(k)] = o->clock[warp * LANES + (unsigned int)__builtin_ctz(k)]++;
	for (k = m; k; k &= k - 1)
		memcpy(l->row[__builtin_ctz(k)], sum, sizeof(sum));
}

void order_fence(struct xorder *o, unsigned int t)
{
	o->fence[t] = o->clock[t]++;
	o->fenced = o->epoch++;
	o->version++;
}

static struct xplace *place_of(struct xorder *o, uint64_t addr, bool add)
{
	unsigned int i;

	for (i = 0; i < o->n_places; i++)
		if (o->place[i].addr == addr)
			return &o->place[i];
	if (!add)
		return NULL;
	if (o->n_places == o->places_room) {
		unsigned int room = o->places_room ? o->places_room * 2 : 8;
		struct xplace *p = room <= PLACES_MAX ? realloc(o->place, room * sizeof(*p)) : NULL;

		if (!p) {
			o->lost = true;
			return NULL;
		}
		o->place = p;
		o->places_room = room;
	}
	o->place[i] = (struct xplace){ addr, calloc(o->n, sizeof(uint32_t)) };
	if (!o->place[i].row) {
		o->lost = true;
		return NULL;
	}
	o->n_places++;
	return &o->place[i];
}

void order_publish(struct xorder *o, unsigned int t, uint64_t addr, bool shared)
{
	struct xplace *p;
	unsigned int i;

	if (!shared && o->fenced)
		watch_publish(o, addr);
	if (!o->fence[t])
		return;
	p = place_of(o, addr, true);
	if (!p)
		return;
	for (i = 0; i < o->n; i++)
		if (i != t && order_known(o, t, i) > p->row[i])
			p->row[i] = order_known(o, t, i);
	if (o->fence[t] > p->row[t])
		p->row[t] = o->fence[t];
}

void order_acquire(struct xorder *o, unsigned int t, uint64_t addr, bool shared)
{
	const struct xplace *p = place_of(o, addr, false);
	uint32_t *row;

	if (!shared)
		watch_acquire(o, addr);
	if (!p)
		return;
	row = row_of(o, t);
	if (row)
		join(row, p->row, o->n);
}
