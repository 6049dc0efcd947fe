// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A pass over a client's tasks finishes those whose done gate has opened, reports them to the
 * arbiter, learns from the GPU's time stamps, launches wings for tasks that may have more workers
 * than they have, and cleans control blocks ahead of their use. It holds the client's lock and
 * never waits for the GPU or for the arbiter. Most passes are the agent's (process/agent.c).
 */
#include <unistd.h>
#include "libgsched/transport.h"
#include "task/task.h"

#define HEALTH_NS	1000000000
#define OUTLIER		4
#define NAP_NS		50000
/* a leased task that lasts so long is submitted, for gpu.stat */
#define SUBMIT_NS		1000000
#define NAP_SHORT_NS	5000000

/* ---- ends ---- */

/* A kernel that stood still among others' workers counts as OUTLIER times the average at most */
static void update_average(_Atomic uint64_t *to, uint64_t x)
{
	uint64_t had = atomic_load_explicit(to, memory_order_relaxed);

	if (had && x > OUTLIER * had)
		x = OUTLIER * had;
	atomic_store_explicit(to, had ? (3 * had + x) / 4 : x, memory_order_relaxed);
}

/*
 * @workers: as many were allowed on average. With fewer SMs than all a kernel takes longer in
 * proportion, unless it has fewer blocks than workers.
 */
static void learn_workers(const struct gi_client *c, struct gi_slot *s, uint64_t ran,
			  uint64_t workers)
{
	uint64_t all = (uint64_t)c->sms * s->m;

	if (!s->tuned || (workers < all && s->blocks < all))
		return;
	gi_tune_took(&s->shape->tune, gi_form_m(s->fn, s->shape, GI_TWIN), s->m,
		     ran * workers / all);
}

/* Updates the shape's estimates of twins. Returns the GPU time of the run, 0 if unknown. */
static uint64_t learn_times(struct gi_client *c, struct gi_slot *s,
			    const struct gsched_cl_slot *line, uint64_t now)
{
	uint64_t start = gi_load(&line->start_ns), end = gi_load(&line->end_ns), ran, span, workers;

	if (s->tier != GSCHED_TIER_BLOCK)
		return atomic_load_explicit(&s->timed_seq, memory_order_acquire) == s->seq ?
			atomic_load_explicit(&s->timed_ns, memory_order_relaxed) : 0;
	if (!start || end <= start || end - start > 3600000000000ull)
		return 0;
	ran = end - start;
	span = now - s->launch_ns;
	workers = s->integral + (now - s->window_since) * gi_window_workers(c, s->window, s->m);
	workers = span ? workers / span : 0;
	if (!workers)
		workers = 1;
	learn_workers(c, s, ran, workers);
	if (workers > s->blocks)
		workers = s->blocks;
	/* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): a launch without blocks gets no slot */
	update_average(&s->shape->block_ns, ran * workers / s->blocks);
	update_average(&s->shape->predicted_ns,
		       ran * workers / (s->blocks < c->sms * s->m ? s->blocks : c->sms * s->m));
	atomic_fetch_add(&s->shape->samples, 1);
	return ran;
}

static void report_end(struct gi_client *c, const struct gi_slot *s, unsigned int i)
{
	uint64_t ns = s->ran ? s->ran : s->predicted_ns;

	/* a launch under a lease that is still valid is only counted */
	if (!atomic_load(&c->gone) &&
	    (s->submitted || gi_load(&c->arb->header.lease) != GSCHED_LEASE_FREE ||
	     gi_load(&c->arb->slot[i].generation) != s->generation)) {
		gsched_complete(c->g, i, s->seq, s->ran, false);
	} else {
		__atomic_fetch_add(&c->cl->header.leased_tasks, 1, __ATOMIC_RELAXED);
		gi_count_leased(c, ns, gi_usage(c, ns, s->blocks, s->m));
	}
}

static void finish_task(struct gi_client *c, struct gi_slot *s, unsigned int i, uint64_t now)
{
	struct gsched_cl_slot *line = &c->cl->slot[i];

	if (gi_slot_state(s) == GI_SLOT_RUNNING) {
		s->ran = learn_times(c, s, line, now);
		if (s->tier == GSCHED_TIER_BLOCK)
			gi_debug("%s ended in slot %u: %u workers with %u wings, %u left early, "
				 "%llu of %llu us",
				 s->fn && s->fn->named ? s->fn->named->name : "?", i, s->launched,
				 s->wings, gi_load(&line->left), (unsigned long long)s->ran / 1000,
				 (unsigned long long)(now - s->launch_ns) / 1000);
		gi_slot_drain(c, i);
	}
	/*
	 * Until the wings have ended the task is not over: the program waits for them, too, if it
	 * synchronizes its context, and may need the arbiter's help for that.
	 */
	if (!gi_wings_ended(s, line))
		return;
	report_end(c, s, i);
	if (s->tier == GSCHED_TIER_BLOCK)
		gi_control_release(s->cx, i);
	gi_slot_finish(c, i);
}

/*
 * A launch under LEASE_FREE was not submitted. If it lasts, submit it now, when that does not delay
 * the program, so that statistics include it. If the arbiter has found it in the page before, the
 * slot's generation has changed.
 */
static void submit_lasting(struct gi_client *c, struct gi_slot *s, unsigned int i, uint64_t now)
{
	struct gsched_task task;

	if (s->submitted || gi_slot_state(s) != GI_SLOT_RUNNING ||
	    now - s->launch_ns < SUBMIT_NS || atomic_load(&c->gone) ||
	    gi_load(&c->arb->header.lease) != GSCHED_LEASE_FREE ||
	    gi_load(&c->arb->slot[i].generation) != s->generation)
		return;
	gi_describe_task(&task, c, s, i);
	/* if it cannot be sent now, the next pass tries again */
	s->submitted = !gsched_submit_stream_async(c->g, &task, s->stream);
}

/* The context is unusable (after an illegal access, say): its tasks will never retire. */
static void give_up_task(struct gi_client *c, struct gi_slot *s, unsigned int i)
{
	if (!atomic_load(&c->gone))
		gsched_complete(c->g, i, s->seq, 0, true);
	gi_slot_give_up(c, i);
}

static bool context_healthy(struct gi_ctx *cx)
{
	CUresult rc;

	if (cx->broken)
		return false;
	rc = gi_real.cuStreamQuery(cx->clean_stream);
	if (rc == CUDA_SUCCESS || rc == CUDA_ERROR_NOT_READY)
		return true;
	gi_why(cx->client, "the context is beyond use (error %d)", rc);
	cx->broken = true;
	return false;
}

/* ---- passes ---- */

void gi_pass(struct gi_client *c)
{
	uint64_t running = gi_slots_in_flight(c->tasks), now = gi_now(), mask;
	struct gi_ctx *current = NULL, *cx;
	CUcontext before = NULL;

	if (running)
		gi_real.cuCtxGetCurrent(&before);
	for (mask = running; mask; mask &= mask - 1) {
		unsigned int i = __builtin_ctzll(mask);
		struct gi_slot *s = &c->tasks->slot[i];

		if (!current || s->cx != current) {
			current = s->cx;
			if (gi_real.cuCtxSetCurrent(current->handle))
				current->broken = true;
		}
		gi_follow_window(c, s, i, now);
		if (gi_load(&c->cl->slot[i].retired) == s->seq) {
			finish_task(c, s, i, now);
		} else if (s->cx->broken ||
			   (now - s->launch_ns > HEALTH_NS && !context_healthy(s->cx))) {
			give_up_task(c, s, i);
		} else {
			submit_lasting(c, s, i, now);
			if (s->tier == GSCHED_TIER_BLOCK)
				gi_wing(c, s, i, now);
		}
	}
	/*
	 * Cleaning can be put off, wings cannot: the holder of gi_lock may be in a call of the
	 * driver that waits for a task which waits for its wing.
	 */
	if (pthread_mutex_trylock(&gi_lock)) {
		if (current)
			gi_real.cuCtxSetCurrent(before);
		return;
	}
	for (cx = gi_ctx_next(NULL); cx; cx = gi_ctx_next(cx)) {
		if (cx->client != c || !gi_controls_due(cx))
			continue;
		if (!current && !running)
			gi_real.cuCtxGetCurrent(&before);
		if (cx != current && !gi_real.cuCtxSetCurrent(cx->handle))
			current = cx;
		gi_controls_clean(cx);
	}
	pthread_mutex_unlock(&gi_lock);
	if (current)
		gi_real.cuCtxSetCurrent(before);
}

bool gi_reap(struct gi_client *c)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	int cancel;

	if (pthread_mutex_trylock(&c->lock))
		return false;
	cancel = gi_cancel_disable();
	/* a thread of the program: what it or another one captures is not to end by our queries */
	gi_real.cuThreadExchangeStreamCaptureMode(&mode);
	/* allowed even after the agent has stopped: the caller may call the driver */
	gi_pass(c);
	gi_real.cuThreadExchangeStreamCaptureMode(&mode);
	pthread_mutex_unlock(&c->lock);
	gi_cancel_restore(cancel);
	return true;
}

void (*gi_agent_lost)(struct gi_client *c);

void gi_agent_wake(struct gi_client *c)
{
	uint64_t one = 1;
	ssize_t written;
	int cancel;

	atomic_store(&c->tasks->idle, false);
	atomic_store(&c->tasks->next_pass, 0);
	if (!gsched_fd_ours(c->tasks->wake)) {
		if (!atomic_exchange(&c->lost, true))
			gi_agent_lost(c);
		return;
	}
	cancel = gi_cancel_disable();
	written = write(c->tasks->wake, &one, sizeof(one));
	gi_cancel_restore(cancel);
	if (written < 0)
		return;
}

uint64_t gi_tasks_due(struct gi_client *c, uint64_t now, uint64_t most)
{
	uint64_t mask, best = most, left;
	bool free_lease = gi_load(&c->arb->header.lease) == GSCHED_LEASE_FREE ||
			  atomic_load(&c->gone);

	for (mask = gi_slots_in_flight(c->tasks); mask; mask &= mask - 1) {
		struct gi_slot *s = &c->tasks->slot[__builtin_ctzll(mask)];
		uint64_t due = s->launch_ns + s->predicted_ns;

		/* poll at half of the remaining time, to converge on the end in small steps */
		left = due > now ? (due - now) / 2 : s->predicted_ns ? (now - due) / 8 : 50000;
		/* poll often for short kernels: others wait for their capacity */
		if (s->tier != GSCHED_TIER_BLOCK && s->predicted_ns < NAP_SHORT_NS && left > NAP_NS)
			left = NAP_NS;
		if (gi_slot_state(s) == GI_SLOT_DRAINING)
			left = NAP_NS;
		if (free_lease)
			left = left < 200000 ? 200000 : left;
		if (left < 20000)
			left = 20000;
		/* a wing whose workers left early is due again */
		if (s->tier == GSCHED_TIER_BLOCK && s->next_wing > now && left > s->next_wing - now)
			left = s->next_wing - now;
		if (left < best)
			best = left;
	}
	return best;
}

/* Waits until no task of @cx, or of @image, is in flight. false: they did not end in time. */
bool gi_tasks_drain(struct gi_client *c, struct gi_ctx *cx, struct gi_image *image,
		    uint64_t timeout_ns)
{
	uint64_t until = gi_now() + timeout_ns, mask;
	int cancel = gi_cancel_disable();
	bool busy;

	for (;;) {
		if (!gi_reap(c))
			gi_agent_wake(c);
		busy = false;
		pthread_mutex_lock(&c->lock);
		for (mask = gi_slots_in_flight(c->tasks); mask; mask &= mask - 1) {
			struct gi_slot *s = &c->tasks->slot[__builtin_ctzll(mask)];

			if (!((cx && s->cx == cx) ||
			      (image && s->fn && s->fn->named && s->fn->named->image == image)))
				continue;
			busy = true;
			if (gi_now() > until)
				give_up_task(c, s, __builtin_ctzll(mask));
		}
		pthread_mutex_unlock(&c->lock);
		if (!busy || gi_now() > until)
			break;
		usleep(50);
	}
	gi_cancel_restore(cancel);
	return !busy;
}
