// SPDX-License-Identifier: LGPL-2.1-or-later
/* The states of control blocks (task.h). Blocks are cleaned ahead, so no launch waits for it. */
#include "task/task.h"

bool gi_control_claim(struct gi_ctx *cx, unsigned int slot)
{
	uint64_t bit = 1ull << slot;

	if (atomic_fetch_and(&cx->clean, ~bit) & bit)
		return true;
	gi_illegal("control block %u is launched with, and is not clean", slot);
	return false;
}

bool gi_control_release(struct gi_ctx *cx, unsigned int slot)
{
	uint64_t bit = 1ull << slot;

	if (!(atomic_load(&cx->clean) & bit) && !(atomic_fetch_or(&cx->dirty, bit) & bit))
		return true;
	gi_illegal("control block %u is given back, and was not in use", slot);
	return false;
}

bool gi_controls_due(const struct gi_ctx *cx)
{
	return atomic_load(&cx->dirty) || cx->cleaning;
}

void gi_controls_clean(struct gi_ctx *cx)
{
	CUstreamBatchMemOpParams op = { 0 };
	uint64_t dirty = atomic_load(&cx->dirty), mask;

	if (cx->cleaning && gi_load(&cx->words->cleaned) == cx->clean_ticket) {
		atomic_fetch_or(&cx->clean, cx->cleaning);
		cx->cleaning = 0;
	}
	if (cx->cleaning || !dirty || cx->broken)
		return;
	for (mask = dirty; mask;) {
		unsigned int first = __builtin_ctzll(mask), n = 0;

		while (first + n < GSCHED_SLOTS && mask & (1ull << (first + n)))
			mask &= ~(1ull << (first + n++));
		if (gi_real.cuMemcpyHtoDAsync_v2(cx->control + first * sizeof(struct gsr_control),
						 &cx->blank[first], n * sizeof(struct gsr_control),
						 cx->clean_stream))
			return;
	}
	op.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	op.writeValue.address = cx->words_dev + offsetof(struct gi_words, cleaned);
	op.writeValue.value = ++cx->clean_ticket;
	if (gi_real.cuStreamBatchMemOp_v2(cx->clean_stream, 1, &op, 0))
		return;
	cx->cleaning = dirty;
	atomic_fetch_and(&cx->dirty, ~dirty);
}
