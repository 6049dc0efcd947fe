// SPDX-License-Identifier: LGPL-2.1-or-later
/* Whether a program has work on the GPU, as the arbiter is told: pace.h. */
#include <pthread.h>
#include <unistd.h>
#include "launch/blocks.h"
#include "launch/pace.h"
#include "task/task.h"

#define WAIT_CONTEXTS	16	/* of a process on one device */
#define UNPACED_NAPS	50000	/* of GI_HOLD_US: most wait for untracked launches to return */

/*
 * The wait must not disturb a stream capture, so it begins after the end of captures. false: the
 * context is, or will be, destroyed. Otherwise that waits for the end of this.
 */
static bool wait_in_context(struct gi_client *c, CUcontext handle)
{
	const struct gi_ctx *cx;
	uint64_t began;
	bool there;

	for (;;) {
		began = gi_sync_begin();
		pthread_mutex_lock(&gi_lock);
		cx = gi_ctx_find(handle);
		there = cx && cx->client == c && !cx->ending && !atomic_load(&c->exiting);
		if (there && began)
			c->pacer->waiting_in = handle;
		pthread_mutex_unlock(&gi_lock);
		if (!there) {
			gi_sync_end(began);
			return false;
		}
		if (began)
			break;
		usleep(GI_HOLD_US);
	}
	if (!gi_real.cuCtxSetCurrent(handle))
		gi_real.cuCtxSynchronize();
	gi_sync_end(began);
	gi_real.cuCtxSetCurrent(NULL);
	pthread_mutex_lock(&gi_lock);
	c->pacer->waiting_in = NULL;
	pthread_mutex_unlock(&gi_lock);
	return true;
}

/* Untracked launches left no event. A thread waits for all contexts that the client has now. */
static void *wait_for_untracked(void *arg)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUcontext contexts[WAIT_CONTEXTS];
	struct gi_client *c = arg;
	unsigned int n = 0, i;
	uint32_t untracked;
	struct gi_ctx *cx;
	bool whole;

	gi_real.cuThreadExchangeStreamCaptureMode(&mode);
	pthread_mutex_lock(&gi_lock);
	for (cx = gi_ctx_next(NULL); cx && n < WAIT_CONTEXTS; cx = gi_ctx_next(cx))
		if (cx->client == c && !cx->ending)
			contexts[n++] = cx->handle;
	pthread_mutex_unlock(&gi_lock);
	/*
	 * A first launch may take long, since it loads code. Every launch counted by the end of
	 * this loop is on the GPU.
	 */
	for (i = 0; untracked = atomic_load(&c->untracked),
	     atomic_load(&c->unpaced) && i < UNPACED_NAPS; i++)
		usleep(GI_HOLD_US);
	whole = !atomic_load(&c->unpaced);
	for (i = 0; i < n; i++)
		whole = wait_in_context(c, contexts[i]) && whole;
	/* otherwise the next thread waits for the rest */
	if (whole)
		atomic_store(&c->pacer->untracked_done, untracked);
	atomic_store(&c->pacer->waiting_untracked, false);
	gi_agent_wake(c);
	return NULL;
}

static void start_untracked_wait(struct gi_client *c)
{
	pthread_t thread;

	if (atomic_exchange(&c->pacer->waiting_untracked, true))
		return;
	if (pthread_create(&thread, NULL, wait_for_untracked, c))
		atomic_store(&c->pacer->waiting_untracked, false);
	else
		pthread_detach(thread);
}

void gi_pace_stop(struct gi_client *c, uint64_t timeout_ns)
{
	uint64_t until = gi_now() + timeout_ns;

	while (atomic_load(&c->pacer->waiting_untracked) && gi_now() < until)
		usleep(GI_HOLD_US);
}

void gi_pace_begin(struct gi_client *c)
{
	if (__atomic_load_n(&c->cl->header.passed, __ATOMIC_RELAXED) || atomic_load(&c->unpaced))
		start_untracked_wait(c);
}

/*
 * Whether an untracked launch may be on the GPU. If none came since the last look, or block times
 * are wanted, the next launch will be tracked, so the result cannot change unnoticed. @soon: bands
 * take turns, so do not delay until it is clear that no further launch follows.
 */
static bool untracked_on_gpu(struct gi_client *c, bool soon, uint64_t now)
{
	struct gi_pacer *p = c->pacer;
	uint32_t untracked = atomic_load(&c->untracked);
	/* from when there is a share its balance is to be known */
	bool sample = gi_blocks_look(c, now) ||
		      (gi_time_share(&c->arb->header) < GSCHED_SHARE_ALL &&
		       (int32_t)(atomic_load(&c->track_at) - untracked) > GI_SPARE_MAX);

	if (untracked != p->last_untracked) {
		p->last_untracked = untracked;
		p->last_untracked_at = now;
		if (!soon && !sample)
			return true;
	}
	atomic_store(&c->track_at, untracked);
	if (atomic_load(&c->unpaced))
		return true;
	untracked = atomic_load(&c->untracked);
	if (untracked == atomic_load(&p->untracked_done))
		return false;
	if (soon || now - p->last_untracked_at > GI_IDLE_NS)
		start_untracked_wait(c);
	return true;
}

/*
 * Whether a task in a slot is or may be on the GPU. @evicted: a task is not, because its window is
 * empty and all of its workers have left.
 */
static bool slots_on_gpu(const struct gi_client *c, bool *evicted)
{
	uint64_t mask;

	*evicted = false;
	for (mask = gi_slots_in_flight(c->tasks); mask; mask &= mask - 1) {
		unsigned int i = __builtin_ctzll(mask);
		const struct gsched_cl_slot *line = &c->cl->slot[i];

		if (gi_load(&line->tier) != GSCHED_TIER_BLOCK || gi_load(&c->arb->slot[i].window) ||
		    gi_load(&line->left) < gi_load(&line->launched))
			return true;
		*evicted = true;
	}
	return false;
}

unsigned int gi_pace_activity(struct gi_client *c, uint64_t now)
{
	const uint32_t turns = GSCHED_ARB_CLOSED | GSCHED_ARB_PACED;
	struct gi_pacer *p = c->pacer;
	bool evicted, direct;

	direct = untracked_on_gpu(c, gi_load(&c->arb->header.flags) & turns, now);
	if (slots_on_gpu(c, &evicted) || direct || atomic_load(&p->waiting_untracked))
		return GSCHED_ACTIVITY_BUSY;
	/* an event behind an evicted task completes only when its done gate opens */
	if (atomic_load(&p->in_flight) && !evicted)
		return GSCHED_ACTIVITY_BUSY;
	if (atomic_load(&p->held_launches) || evicted)
		return GSCHED_ACTIVITY_WAITING;
	return now < atomic_load(&p->last_ns) + GI_IDLE_NS || now < atomic_load(&p->unrecorded_until) ?
		GSCHED_ACTIVITY_BUSY : GSCHED_ACTIVITY_IDLE;
}
