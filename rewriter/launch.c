// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What is written before a twin is launched, for those who launch twins: the order in which its
 * block-tasks are fetched (struct gsr_launch, "order", in abi.h) and its control block.
 *
 * Needs nothing of the rewriter: a program that only launches twins gets no parser with it.
 */
#include <string.h>
#include "gsr.h"

#define COUNTERS_SHIFT	4
#define STRIPES_LEAST	8
#define UNKNOWN_DEPTH	8
#define COPY_WORKERS	128	/* workers that poll one copy of the relay: about 5 a us */

_Static_assert(GSR_COUNTERS == 1 << COUNTERS_SHIFT, "as many");

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
	/* of what took less, twice as much is nearer to fetch_ns, as sizes are rounded */
	a->fetch_least = (uint32_t)(a->fetch_ns * 2 / 3);
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
