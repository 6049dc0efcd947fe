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
#define COPY_WORKERS	128	/* workers that poll one copy of the relay: about 5 a us */

_Static_assert(GSR_COUNTERS == 1 << COUNTERS_SHIFT, "as many");

/*
 * Expects the batch size in %#5. Falls through with the first @ids ids of the first block-task in
 * %#2, %#3, %#4 and the number fetched in %#6, or jumps to $#stop.
 */
unsigned int gsr_queue_take(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at,
			    bool resumable, unsigned int ids)
{
	unsigned int n = 0;

	if (p->modes)
		n += gsr_insert_text(p, f, at, from_range);
	if (resumable)
		n += gsr_insert_text(p, f, at, add_lane);
	if (resumable)
		n += gsr_insert_text(p, f, at, load_counter);
	n += gsr_insert_text(p, f, at, choose_counter);
	n += gsr_insert_text(p, f, at, fetch_from_counter);
	n += gsr_insert_text(p, f, at, locate_in_column);
	if (!resumable)
		n += gsr_insert_text(p, f, at, keep_rest);
	if (p->modes)
		n += gsr_insert_text(p, f, at, "$#located:\n");
	if (p->modes || ids)
		n += gsr_insert_text(p, f, at, ids_of_number);
	if (ids > 1)
		n += gsr_insert_text(p, f, at, first_row);
	if (p->modes || ids)
		n += gsr_insert_text(p, f, at, unless_first_row);
	return n;
}

unsigned int gsr_queue_seldom(struct gsr_pass *p, struct gsr_function *f, bool resumable,
			      unsigned int ids)
{
	unsigned int n = 0;

	if (!resumable) {
		n += gsr_insert_text(p, f, NULL, take_rest);
		n += gsr_insert_text(p, f, NULL, compute_batch);
		if (p->modes)
			n += gsr_insert_text(p, f, NULL, batch_of_range);
		n += gsr_insert_text(p, f, NULL, bound_by_share);
		if (p->modes)
			n += gsr_insert_text(p, f, NULL, "$#rounded:\n");
		n += gsr_insert_text(p, f, NULL, round_batch);
	}
	if (p->modes || ids)
		n += gsr_insert_text(p, f, NULL, ids > 1 ? divide_by_x : column_of_row);
	if (ids > 1)
		n += gsr_insert_text(p, f, NULL, divide_by_y);
	if (p->modes || ids)
		n += gsr_insert_text(p, f, NULL, "bra $#ids;\n");
	n += gsr_insert_text(p, f, NULL, behind_stripes);
	/*
	 * Here again, so that the loop over counters has one way in: else ptxas 13.0 moves local
	 * arrays of bodies to registers (40 to 65).
	 */
	n += gsr_insert_text(p, f, NULL, fetch_from_counter);
	return n + gsr_insert_text(p, f, NULL, "bra $#locate;\n");
}

static unsigned int log2_floor(uint64_t n)
{
	return n ? 63 - (unsigned int)__builtin_clzll(n) : 0;
}

void gsr_launch_order(struct gsr_launch *a, enum gsr_order order, unsigned int workers,
		      unsigned int depth)
{
	/* a larger grid has no twin */
	const uint64_t grid = (uint64_t)a->grid[0] * a->grid[1] * a->grid[2];
	const uint32_t total = grid < GSR_BLOCKS_MAX ? (uint32_t)grid : GSR_BLOCKS_MAX;
	unsigned int width = log2_floor(workers),
		     rows = log2_floor((depth ? depth : UNKNOWN_DEPTH) * 3ull / 2), i, bits;
	uint64_t step = 1;
	float column;

	for (a->last_copy = GSR_RELAY_COPIES - 1;
	     a->last_copy && (a->last_copy + 1) * COPY_WORKERS > workers;)
		a->last_copy /= 2;
	for (i = 0; i < 2; i++) {
		for (bits = 0; (uint64_t)1 << bits < a->grid[i];)
			bits++;
		a->divide[i].factor =
			(uint32_t)((((uint64_t)1 << (31 + bits)) + a->grid[i] - 1) / a->grid[i]);
		a->divide[i].shift = bits;
	}
	a->blocks = total;
	a->fetch_first = 1;
	a->counters = 1;
	a->positions = a->rows = total;
	a->row_mask = 0x7fffffff;
	a->row_shift = 0;
	a->column_shift = 31;
	a->width_mask = a->stripe_mask = 0;
	a->half_column = 0;
	/* 31 bits, with room for what workers at the end add in vain */
	if (order == GSR_ORDER_STRIPES) {
		const unsigned int shift = width < COUNTERS_SHIFT ? width : COUNTERS_SHIFT;

		a->counters = 1u << shift;
		/* what is behind the stripes is dealt one by one, so it should not be much */
		while (rows && total >> (width + rows) < STRIPES_LEAST)
			rows--;
		a->positions = total >> (width + rows) << (width + rows - shift);
		a->rows = 1u << rows;
		a->row_mask = a->rows - 1;
		a->row_shift = width - shift;
		a->column_shift = rows;
		a->width_mask = (1u << a->row_shift) - 1;
		a->stripe_mask = ~((1u << (rows + a->row_shift)) - 1);
		column = (float)a->rows / 2;
		memcpy(&a->half_column, &column, sizeof(column));
		if (depth)
			a->fetch_first = a->rows;
		step = (uint64_t)1 << width;
	}
	a->last_counter = a->counters - 1;
	a->fetch_least = (uint32_t)a->fetch_ns / 2;
	a->fetch_most = 2 * (uint32_t)a->fetch_ns;
	a->each = (float)total / (float)a->counters;
	a->ahead = -3 * (float)a->workers / (float)a->counters;
	a->share = a->workers ? 3 / (2 * a->ahead) : 0;
	a->half = -a->share * a->each;
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
