// SPDX-License-Identifier: LGPL-2.1-or-later
/* The states of slots (see the diagram in task.h), and the description of tasks for the arbiter. */
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "libgsched/transport.h"
#include "task/task.h"

bool gi_tasks_new(struct gi_client *c)
{
	c->tasks = calloc(1, sizeof(*c->tasks));
	if (!c->tasks)
		return false;
	atomic_store(&c->tasks->free, ~0ull);
	c->tasks->wake = gsched_fd_mark(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (c->tasks->wake >= 0)
		return true;
	free(c->tasks);
	c->tasks = NULL;
	return false;
}

void gi_tasks_free(struct gi_client *c)
{
	gsched_fd_close(c->tasks->wake);
	free(c->tasks);
	c->tasks = NULL;
}

#define IN(state)	(1u << GI_SLOT_##state)

/*
 * Whether the slot's state allows a transition from the states @from. The caller owns the slot, so
 * the state does not change meanwhile.
 */
static bool transition_allowed(const struct gi_client *c, unsigned int slot, unsigned int from,
			       const char *what)
{
	uint32_t state = atomic_load_explicit(&c->tasks->slot[slot].state, memory_order_relaxed);

	if (__builtin_expect(from >> state & 1, 1))
		return true;
	gi_illegal("%s of slot %u in state %u", what, slot, state);
	return false;
}

/* The same for states whose owner is the holder of the client's lock. */
static bool transition_allowed_locked(struct gi_client *c, unsigned int slot, unsigned int from,
				      const char *what)
{
#ifdef GI_CHECKED
	if (!pthread_mutex_trylock(&c->lock))
		gi_illegal("%s of slot %u without the client's lock", what, slot);
#endif
	return transition_allowed(c, slot, from, what);
}

static void set_state(struct gi_client *c, unsigned int slot, enum gi_slot_state state)
{
	atomic_store(&c->tasks->slot[slot].state, state);
}

/* From here on any launch may claim the slot. */
static void free_slot(struct gi_client *c, unsigned int slot)
{
	atomic_fetch_and(&c->tasks->gated, ~(1ull << slot));
	set_state(c, slot, GI_SLOT_FREE);
	atomic_fetch_or(&c->tasks->free, 1ull << slot);
}

/*
 * A twin needs a slot with a clean control block: a block that is being cleaned must not be written
 * to. A free slot stays clean until it is claimed. Originals prefer slots that are not clean.
 */
static int claim_slot(struct gi_client *c, const struct gi_ctx *cx, bool twin)
{
	uint64_t mask = atomic_load(&c->tasks->free), clean, pick;
	int slot;

	for (;;) {
		clean = atomic_load_explicit(&cx->clean, memory_order_acquire);
		pick = mask & (twin ? clean : ~clean);
		if (!pick && !twin)
			pick = mask;
		if (!pick)
			return -1;
		slot = __builtin_ctzll(pick);
		if (!atomic_compare_exchange_weak(&c->tasks->free, &mask, mask & ~(1ull << slot)))
			continue;
		/* another thread may have run a whole task in the slot meanwhile */
		if (twin &&
		    !(atomic_load_explicit(&cx->clean, memory_order_acquire) & (1ull << slot))) {
			mask = atomic_fetch_or(&c->tasks->free, 1ull << slot) | 1ull << slot;
			continue;
		}
		/* if the state is wrong, the slot stays out of the mask for good */
		if (!transition_allowed(c, slot, IN(FREE), "a claim"))
			continue;
		atomic_store_explicit(&c->tasks->slot[slot].state, GI_SLOT_CLAIMED,
				      memory_order_relaxed);
		return slot;
	}
}

/*
 * If all slots are taken, or none is clean, the program waits as it would for a full hardware
 * queue. The wait is bounded, unless tasks are evicted: those in the slots may wait for something
 * that this thread has yet to do, most likely if they are gated.
 */
int gi_slot_claim(struct gi_client *c, const struct gi_ctx *cx, bool twin)
{
	uint64_t finished, start, patience;
	int slot = claim_slot(c, cx, twin);

	if (slot >= 0)
		return slot;
	patience = gi_env("GSCHED_SLOT_WAIT_MS", 1000) * 1000000;
	finished = atomic_load(&c->tasks->finished);
	if (atomic_load(&c->tasks->stuck_at) == finished + 1)
		return -1;
	for (start = gi_now(); !atomic_load(&c->gone);) {
		if (!gi_reap(c))
			gi_agent_wake(c);
		slot = claim_slot(c, cx, twin);
		if (slot >= 0)
			return slot;
		if (finished != atomic_load(&c->tasks->finished)) {
			finished = atomic_load(&c->tasks->finished);
			start = gi_now();
		} else if (!atomic_load(&c->stop) && gi_tasks_evicted(c)) {
			start = gi_now();
		} else if (gi_now() - start > (gi_tasks_gated(c) ? patience / 10 : patience)) {
			atomic_store(&c->tasks->stuck_at, finished + 1);
			gi_why(c, "64 tasks in flight and none ends: further launches "
			       "are not managed");
			break;
		}
		usleep(20);
	}
	return -1;
}

/*
 * The arbiter has accounted for a submitted task of tier launch, and treats several such tasks of a
 * client like one. So later ones need not be submitted while this one runs.
 */
static void begin_cover(struct gi_client *c, unsigned int slot)
{
	const struct gi_slot *s = &c->tasks->slot[slot];
	uint64_t blocks = s->blocks < UINT32_MAX ? s->blocks : UINT32_MAX;

	if (s->tier == GSCHED_TIER_LAUNCH && s->submitted)
		atomic_store(&c->tasks->cover, (uint64_t)(slot + 1) << 32 | blocks);
}

static void end_cover(struct gi_client *c, unsigned int slot)
{
	uint64_t cover = atomic_load(&c->tasks->cover);

	if (cover >> 32 == slot + 1)
		atomic_compare_exchange_strong(&c->tasks->cover, &cover, 0);
}

/*
 * A task that has ended covers nothing, though the agent may not have seen that yet: the arbiter
 * would not know of the next launch, so windows could take what that is to run on, and nobody
 * would help it if it stood still.
 */
bool gi_slot_covers(const struct gi_client *c, uint64_t blocks)
{
	uint64_t cover = atomic_load_explicit(&c->tasks->cover, memory_order_relaxed);
	const struct gsched_cl_slot *line;

	if (!cover || blocks > (uint32_t)cover)
		return false;
	line = &c->cl->slot[(cover >> 32) - 1];
	return gi_load(&line->retired) != gi_load(&line->seq);
}

bool gi_slot_run(struct gi_client *c, unsigned int slot)
{
	if (!transition_allowed(c, slot, IN(CLAIMED), "running"))
		return false;
	/* before the agent may end the task */
	begin_cover(c, slot);
	set_state(c, slot, GI_SLOT_RUNNING);
	return true;
}

/*
 * Drops the task's references. @lost, @bound_lost: workers may still use the save area, the bound
 * references.
 */
static void drop_references(struct gi_slot *s, bool lost, bool bound_lost)
{
	gi_save_put(s, lost);
	gi_bound_put(s->bound, bound_lost);
	gi_graph_put(s->graph);
	gi_func_put(s->fn);
}

bool gi_slot_unclaim(struct gi_client *c, unsigned int slot, bool lost)
{
	struct gi_slot *s = &c->tasks->slot[slot];

	if (!transition_allowed(c, slot, IN(CLAIMED), "giving back"))
		return false;
	drop_references(s, lost, false);
	gi_store(&c->cl->slot[slot].retired, s->seq);
	free_slot(c, slot);
	return true;
}

bool gi_slot_lose(struct gi_client *c, unsigned int slot)
{
	if (!transition_allowed(c, slot, IN(CLAIMED), "losing"))
		return false;
	/* the arbiter must not wait for it any longer */
	gi_store(&c->cl->slot[slot].retired, c->tasks->slot[slot].seq);
	gi_func_put(c->tasks->slot[slot].fn);
	set_state(c, slot, GI_SLOT_LOST);
	gi_slots_report_lost(c);
	return true;
}

void gi_slots_report_lost(struct gi_client *c)
{
	uint64_t lost = gi_slots_in(c->tasks, ~0ull, IN(LOST));

	if (lost)
		gi_why(c, "%d of %d slots for tasks are out of use: the driver launched a kernel "
		       "but not its done gate", __builtin_popcountll(lost), GSCHED_SLOTS);
}

bool gi_slot_drain(struct gi_client *c, unsigned int slot)
{
	if (!transition_allowed_locked(c, slot, IN(RUNNING), "draining"))
		return false;
	end_cover(c, slot);
	set_state(c, slot, GI_SLOT_DRAINING);
	return true;
}

bool gi_slot_finish(struct gi_client *c, unsigned int slot)
{
	if (!transition_allowed_locked(c, slot, IN(DRAINING), "finishing"))
		return false;
	drop_references(&c->tasks->slot[slot], false, false);
	atomic_fetch_add(&c->tasks->finished, 1);
	free_slot(c, slot);
	return true;
}

bool gi_slot_give_up(struct gi_client *c, unsigned int slot)
{
	if (!transition_allowed_locked(c, slot, IN(RUNNING) | IN(DRAINING), "giving up"))
		return false;
	end_cover(c, slot);
	gi_store(&c->cl->slot[slot].retired, c->tasks->slot[slot].seq);
	drop_references(&c->tasks->slot[slot], true, true);
	atomic_fetch_add(&c->tasks->finished, 1);
	free_slot(c, slot);
	return true;
}

void gi_describe_task(struct gsched_task *task, const struct gi_client *c, const struct gi_slot *s,
		      unsigned int slot)
{
	*task = (struct gsched_task){
		.slot = slot, .seq = s->seq, .tier = s->tier, .blocks_per_sm = s->m,
		.blocks = s->blocks, .predicted_ns = s->predicted_ns, .intensity = c->intensity,
		.block_ns = s->shape ?
			    atomic_load_explicit(&s->shape->block_ns, memory_order_relaxed) : 0,
	};
	/* the longest time that others wait for this task to give way */
	if (s->save && s->form->everywhere)
		task->block_ns = GI_LEAVE_NS;
}
