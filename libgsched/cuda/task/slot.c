// SPDX-License-Identifier: LGPL-2.1-or-later
/* Slots, from the launch's side: taken, given back unused, told to the arbiter. */
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "task/task.h"

bool gi_tasks_new(struct gi_client *c)
{
	c->tasks = calloc(1, sizeof(*c->tasks));
	if (!c->tasks)
		return false;
	atomic_store(&c->tasks->free_mask, ~0ull);
	c->tasks->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->tasks->wake >= 0)
		return true;
	free(c->tasks);
	c->tasks = NULL;
	return false;
}

void gi_tasks_free(struct gi_client *c)
{
	close(c->tasks->wake);
	free(c->tasks);
	c->tasks = NULL;
}

/*
 * For a twin (@twin) only one with a clean control block: what is still being cleaned must not be written to meanwhile, and a
 * free slot stays clean until it is claimed. Originals take the others first.
 */
static int claim(struct gi_client *c, const struct gi_ctx *cx, bool twin)
{
	uint64_t mask = atomic_load(&c->tasks->free_mask), clean, pick;
	int slot;

	for (;;) {
		clean = atomic_load_explicit(&cx->clean, memory_order_acquire);
		pick = mask & (twin ? clean : ~clean);
		if (!pick && !twin)
			pick = mask;
		if (!pick)
			return -1;
		slot = __builtin_ctzll(pick);
		if (!atomic_compare_exchange_weak(&c->tasks->free_mask, &mask, mask & ~(1ull << slot)))
			continue;
		/* a whole task of another thread may have been in it since we looked */
		if (!twin || atomic_load_explicit(&cx->clean, memory_order_acquire) & (1ull << slot))
			return slot;
		mask = atomic_fetch_or(&c->tasks->free_mask, 1ull << slot) | 1ull << slot;
	}
}

/*
 * All slots are taken, or none is clean yet: the queue is as deep as it gets, so the program waits as it would for a full
 * hardware queue. Not for ever: the tasks in the slots may wait for something this thread has yet to do.
 */
int gi_slot_claim(struct gi_client *c, const struct gi_ctx *cx, bool twin)
{
	uint64_t finished, start, patience;
	int slot = claim(c, cx, twin);

	if (slot >= 0)
		return slot;
	patience = gi_env("GSCHED_SLOT_WAIT_MS", 1000) * 1000000;
	finished = atomic_load(&c->tasks->finished);
	if (atomic_load(&c->tasks->stuck_at) == finished + 1)
		return -1;
	for (start = gi_now(); !atomic_load(&c->gone);) {
		if (!gi_reap(c))
			gi_agent_wake(c);
		slot = claim(c, cx, twin);
		if (slot >= 0)
			return slot;
		if (finished != atomic_load(&c->tasks->finished)) {
			finished = atomic_load(&c->tasks->finished);
			start = gi_now();
		} else if (gi_now() - start > patience) {
			atomic_store(&c->tasks->stuck_at, finished + 1);
			gi_why(c, "64 tasks in flight and none ends: further launches are not managed");
			break;
		}
		usleep(20);
	}
	return -1;
}

void gi_slot_free(struct gi_client *c, unsigned int slot)
{
	atomic_fetch_and(&c->tasks->gated, ~(1ull << slot));
	atomic_fetch_or(&c->tasks->free_mask, 1ull << slot);
}

void gi_slot_unclaim(struct gi_client *c, unsigned int slot, uint32_t seq, bool lost)
{
	gi_save_put(&c->tasks->slot[slot], lost);
	gi_bound_put(c->tasks->slot[slot].bound, false);
	gi_graph_put(c->tasks->slot[slot].graph);
	gi_func_put(c->tasks->slot[slot].fn);
	gi_store(&c->cl->slot[slot].retired, seq);
	gi_slot_free(c, slot);
}

void gi_to_task(struct gsched_task *task, const struct gi_slot *s, unsigned int slot)
{
	*task = (struct gsched_task){
		.slot = slot, .seq = s->seq, .tier = s->tier, .blocks_per_sm = s->m, .blocks = s->blocks,
		.predicted_ns = s->predicted_ns,
		.block_ns = s->shape ? atomic_load_explicit(&s->shape->block_ns, memory_order_relaxed) : 0,
	};
	/* how long others wait at most for this one to give way */
	if (s->save && s->form->everywhere)
		task->block_ns = GI_LEAVE_NS;
}
