// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A worker's position, by which the window includes or excludes it: claimed when the worker starts,
 * released when it leaves.
 * The PTX is in position.ptx.
 *
 * In: a place in the loop. Out: the code there, executed by thread 0. The claim expects nothing;
 * the release expects the control block in %#d0. Assumes the registers that loop.c declares.
 */
#include "runtime.h"
#include "rewriter/runtime/position.ptx.h"

unsigned int gsr_position_claim(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at,
				bool resumable, bool shared)
{
	unsigned int n = gsr_insert_text(p, f, at, load_launch);

	if (p->modes)
		n += gsr_insert_text(p, f, at, start_modes);
	n += gsr_insert_text(p, f, at, claim_place);
	n += gsr_insert_text(p, f, at, claim_rank);
	if (p->modes)
		n += gsr_insert_text(p, f, at, by_index);
	n += gsr_insert_text(p, f, at, claim_number);
	n += gsr_insert_text(p, f, at, p->modes ? claim_bit : claim_rank_bit);
	n += gsr_insert_text(p, f, at, next_number);
	if (p->modes)
		n += gsr_insert_text(p, f, at, is_index);
	n += gsr_insert_text(p, f, at, publish_rank);
	n += gsr_insert_text(p, f, at, position);
	if (p->modes)
		n += gsr_insert_text(p, f, at, index_position);
	if (!p->modes)
		n += gsr_insert_text(p, f, at, ignore_window);
	n += gsr_insert_text(p, f, at, positioned);
	if (resumable || shared)
		n += gsr_insert_text(p, f, at, init_grid);
	n += gsr_insert_text(p, f, at, init_copy);
	if (resumable)
		n += gsr_insert_text(p, f, at, init_records);
	if (p->modes)
		n += gsr_insert_text(p, f, at, first_range);
	return n + gsr_insert_text(p, f, at, init_batch);
}

unsigned int gsr_position_release(struct gsr_pass *p, struct gsr_function *f)
{
	unsigned int n = gsr_insert_text(p, f, NULL, load_position_bit);

	if (p->modes)
		n += gsr_insert_text(p, f, NULL, vacate_index);
	return n + gsr_insert_text(p, f, NULL, vacate);
}
