// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Some calls of the driver wait until the device is idle and hold the context's lock meanwhile: loading code, freeing memory. A
 * task that was evicted needs a wing to end, and the agent could not launch it: nothing would ever move. So around such calls
 * launches are held back, and tasks that may need a wing are waited for first.
 */
#include <unistd.h>
#include "task/task.h"

static bool quiet(struct gi_client *c)
{
	uint64_t mask;

	if (atomic_load(&c->tasks->launching))
		return false;
	/* read without the lock: at worst a slot that was just finished is looked at once more */
	for (mask = atomic_load(&c->tasks->running); mask; mask &= mask - 1) {
		unsigned int i = __builtin_ctzll(mask);

		if (gi_load(&c->cl->slot[i].tier) == GSCHED_TIER_BLOCK &&
		    gi_load(&c->cl->slot[i].retired) != gi_load(&c->cl->slot[i].seq))
			return false;
	}
	return true;
}

void gi_gate_enter(struct gi_client *c)
{
	for (;;) {
		atomic_fetch_add(&c->tasks->launching, 1);
		if (!atomic_load(&c->tasks->closed))
			return;
		atomic_fetch_sub(&c->tasks->launching, 1);
		while (atomic_load(&c->tasks->closed))
			usleep(20);
	}
}

void gi_gate_leave(struct gi_client *c)
{
	atomic_fetch_sub(&c->tasks->launching, 1);
}

bool gi_gate_close(struct gi_client *c)
{
	uint64_t until = gi_now() + GI_QUIET_NS;
	unsigned int round;

	atomic_fetch_add(&c->tasks->closed, 1);
	for (round = 0; !quiet(c); round++) {
		if (gi_now() > until)
			return false;
		if (round > 50)
			usleep(20);
	}
	return true;
}

void gi_gate_open(struct gi_client *c)
{
	atomic_fetch_sub(&c->tasks->closed, 1);
}

struct gi_client *gi_gate_close_current(void)
{
	struct gi_ctx *cx = gi_current();
	struct gi_client *c = cx ? cx->client : NULL;

	if (c)
		gi_gate_close(c);
	return c;
}
