// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Dynamic dispatch: how many block-tasks a worker fetches, and which (struct gsr_launch, "order",
 * in abi.h).
 * The PTX is in queue.ptx.
 *
 * In: a place in the loop. Out: the code there, executed by the thread or warp that fetches.
 * Assumes the registers that loop.c declares.
 */
#include <string.h>
#include "runtime.h"
#include "rewriter/runtime/queue.ptx.h"

#define COUNTERS_SHIFT	4
#define STRIPES_LEAST	8
#define UNKNOWN_DEPTH	8
#define NUMBERS_MAX	(1u << 31)	/* numbers of this and more are wide */
#define COPY_WORKERS	128	/* workers that poll one copy of the relay: about 5 a us */

_Static_assert(GSR_COUNTERS == 1 << COUNTERS_SHIFT, "as many");

/*
 * Expects the batch size in %#r5 and the lane in %#r9. Falls through with the ids of the first
 * block-task in %#r2, %#r3, %#r4 and the number fetched in %#r6, or jumps to $#stop.
 */
unsigned int gsr_queue_take(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at,
			    bool resumable)
{
	unsigned int n = gsr_insert_text(p, f, at, choose_counter);

	n += gsr_insert_text(p, f, at, fetch_from_counter);
	n += gsr_insert_text(p, f, at, locate_in_column);
	if (!resumable)
		n += gsr_insert_text(p, f, at, keep_rest);
	return n + gsr_insert_text(p, f, at, number_block_task);
}

/*
 * Ends where a wide number in %#d2 is still to be divided, and how many block-tasks there are is in
 * %#r6
 */
unsigned int gsr_queue_seldom(struct gsr_pass *p, struct gsr_function *f, bool resumable)
{
	unsigned int n = 0;

	if (!resumable) {
		n += gsr_insert_text(p, f, NULL, take_rest);
		n += gsr_insert_text(p, f, NULL, compute_batch);
		if (p->modes)
			n += gsr_insert_text(p, f, NULL, batch_of_range);
		n += gsr_insert_text(p, f, NULL, bound_by_share);
	}
	n += gsr_insert_text(p, f, NULL, divide_rows);
	n += gsr_insert_text(p, f, NULL, behind_stripes);
	if (!resumable)
		n += gsr_insert_text(p, f, NULL, keep_rest);
	n += gsr_insert_text(p, f, NULL, number_behind);
	if (!resumable)
		n += gsr_insert_text(p, f, NULL, no_rest);
	n += gsr_insert_text(p, f, NULL, next_counter);
	/* here again, so that the loop has one way in */
	n += gsr_insert_text(p, f, NULL, fetch_from_counter);
	n += gsr_insert_text(p, f, NULL, "bra $#locate;\n");
	n += gsr_insert_text(p, f, NULL, fetch_in_order);
	if (p->modes)
		n += gsr_insert_text(p, f, NULL, from_range);
	n += gsr_insert_text(p, f, NULL, from_counter);
	return p->modes ? n + gsr_insert_text(p, f, NULL, number_of_range) : n;
}

static unsigned int log2_floor(uint64_t n)
{
	return n ? 63 - (unsigned int)__builtin_clzll(n) : 0;
}

void gsr_launch_order(struct gsr_launch *a, enum gsr_order order, unsigned int workers,
		      unsigned int depth)
{
	const uint64_t total = (uint64_t)a->grid[0] * a->grid[1] * a->grid[2];
	unsigned int width = log2_floor(workers),
		     rows = log2_floor((depth ? depth : UNKNOWN_DEPTH) * 3ull / 2), i, bits;
	uint64_t step = 1;

	a->flags &= ~GSR_LAUNCH_COLUMNS;
	for (a->last_copy = GSR_RELAY_COPIES - 1;
	     a->last_copy && (a->last_copy + 1) * COPY_WORKERS > workers;)
		a->last_copy /= 2;
	a->fetch_first = 1;
	a->depth = 0;
	for (i = 0; i < 2; i++) {
		for (bits = 0; (uint64_t)1 << bits < a->grid[i];)
			bits++;
		a->divide[i].factor =
			(uint32_t)((((uint64_t)1 << (31 + bits)) + a->grid[i] - 1) / a->grid[i]);
		a->divide[i].shift = bits;
	}
	if (total >= NUMBERS_MAX)
		a->divide[0].factor = 0;
	/* 31 bits, with room for what workers at the end add in vain */
	if (order == GSR_ORDER_STRIPES && total < NUMBERS_MAX) {
		a->flags |= GSR_LAUNCH_COLUMNS;
		a->counter_shift = width < COUNTERS_SHIFT ? width : COUNTERS_SHIFT;
		a->last_counter = (1u << a->counter_shift) - 1;
		/* what is behind the stripes is dealt one by one, so it should not be much */
		while (rows && total >> (width + rows) < STRIPES_LEAST)
			rows--;
		a->positions =
			(uint32_t)(total >> (width + rows) << (width + rows - a->counter_shift));
		a->depth_shift = rows;
		a->depth = 1u << rows;
		a->width_shift = width - a->counter_shift;
		a->width_mask = (1u << a->width_shift) - 1;
		if (depth)
			a->fetch_first = a->depth;
		step = (uint64_t)1 << width;
	}
	a->step[0] = (uint32_t)(step % a->grid[0]);
	step /= a->grid[0];
	a->step[1] = (uint32_t)(step % a->grid[1]);
	a->step[2] = (uint32_t)(step / a->grid[1]);
}

void gsr_control_init(struct gsr_control *c, uint64_t window)
{
	unsigned int i;

	memset(c, 0, sizeof(*c));
	c->relay = window;
	for (i = 0; i < GSR_RELAY_COPIES; i++)
		c->copy[i].window = window;
}
