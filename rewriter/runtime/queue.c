// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Dynamic dispatch: how many block-tasks a worker fetches, and which (struct gsr_launch, "order",
 * in abi.h).
 * The PTX is in queue.ptx.
 *
 * In: a place in the loop. Out: the code there, executed by the thread or warp that fetches.
 * Assumes the registers that loop.c declares.
 */
#include "runtime.h"
#include "rewriter/runtime/queue.ptx.h"

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
	if (ids)
		n += gsr_insert_text(p, f, at, ids_of_number);
	if (ids)
		n += gsr_insert_text(p, f, at, ids > 1 ? first_row : column_of_row);
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
	if (ids > 1)
		n += gsr_insert_text(p, f, NULL, divide);
	n += gsr_insert_text(p, f, NULL, behind_stripes);
	/*
	 * Here again, so that the loop over counters has one way in: else ptxas 13.0 moves local
	 * arrays of bodies to registers (40 to 65).
	 */
	n += gsr_insert_text(p, f, NULL, fetch_from_counter);
	return n + gsr_insert_text(p, f, NULL, "bra $#locate;\n");
}
