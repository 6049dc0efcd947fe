// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The agent: one thread a process and device. It finishes tasks whose done gate has opened, tells the arbiter, learns from
 * the GPU's stamps, launches wings where a task may have more workers than it has, and cleans control blocks ahead. It sets
 * the process's time slice and reports activity as the arbiter's page asks.
 * A pass holds the client's lock; nothing in it waits for the GPU.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "libgsched/slice.h"
#include "state.h"

#define LINGER_NS	20000000	/* keep looking so long after the last task: the next one need not wake us */
#define WING_GAP_MIN	100000
#define WING_GAP_MAX	10000000
#define STALL_NS	5000000		/* a stream that has not begun a wing by then stands behind something */
#define HEALTH_NS	1000000000
#define NAP_NS		50000
#define TELL_NS		1000000		/* a leased task that runs so long is told to the arbiter: gpu.stat is about such */
#define NAP_SHORT_NS	5000000
#define ACTIVE_NS	500000		/* between two looks at whether a band that others wait for is still busy */

/* ---- windows and wings ---- */

static void follow_window(struct gi_client *c, struct gi_slot *s, unsigned int i, uint64_t now)
{
	uint64_t window = gi_load(&c->arb->slot[i].window);

	if (window == s->window)
		return;
	s->integral += (now - s->window_since) * gi_places(c, s->window, s->m);
	s->window = window;
	s->window_since = now;
	s->wing_gap = 0;
	s->next_wing = 0;
}

static bool stream_idle(const struct gi_ctx *cx, unsigned int k)
{
	return gi_load(&cx->words->done[k]) == cx->wing_ticket[k];
}

static CUresult launch_wing(struct gi_slot *s, unsigned int i, unsigned int k, unsigned int workers,
			    uint32_t present, bool no_window)
{
	struct gi_ctx *cx = s->cx;
	struct gsr_launch *arg = (void *)(s->params + s->form->launch_offset);
	size_t size = s->form->launch_offset + sizeof(*arg);
	void *extra[] = {
		CU_LAUNCH_PARAM_BUFFER_POINTER, s->params, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END,
	};
	uint32_t ticket = cx->wing_ticket[k] + 1;
	CUstreamBatchMemOpParams op[3] = { 0 };
	CUresult rc;

	s->arg.first = present;
	if (no_window)
		s->arg.flags |= GSR_LAUNCH_NO_WINDOW;
	memcpy(arg, &s->arg, sizeof(*arg));
	op[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	op[0].writeValue.address = cx->words_dev + offsetof(struct gi_words, begun) + k * sizeof(uint32_t);
	op[0].writeValue.value = ticket;
	op[1].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
	op[1].writeValue.address = cx->control + i * sizeof(struct gsr_control) + offsetof(struct gsr_control, relay);
	op[1].writeValue.value64 = s->window;
	/* nobody tells of a window that is in the relay before it is seen in the page */
	op[2].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	op[2].writeValue.address = s->arg.stat + offsetof(struct gsched_cl_slot, seen_limit);
	op[2].writeValue.value = GSCHED_WINDOW_LIMIT(s->window);
	rc = gi_real.cuStreamBatchMemOp_v2(cx->wing_stream[k], 3, op, 0);
	rc = rc ? rc : gi_real.cuLaunchKernel(s->form->function, workers, 1, 1, s->block[0], s->block[1], s->block[2],
					      s->shared, cx->wing_stream[k], NULL, extra);
	if (rc)
		return rc;
	op[0].writeValue.address = cx->words_dev + offsetof(struct gi_words, done) + k * sizeof(uint32_t);
	rc = gi_real.cuStreamBatchMemOp_v2(cx->wing_stream[k], 1, op, 0);
	if (rc)
		return rc;
	cx->wing_ticket[k] = ticket;
	s->wing_ticket[k] = ticket;
	s->wing_count[k] = workers;
	s->wings++;
	return CUDA_SUCCESS;
}

/*
 * A wing whose stream has not even begun it stands in a hardware queue behind something else, perhaps behind its own
 * task's gate: do not count its workers, another stream may get through.
 */
static uint32_t workers_stalled(const struct gi_slot *s, uint64_t now)
{
	uint32_t n = 0;
	unsigned int k;

	if (!s->wings || now < s->next_wing + STALL_NS)
		return 0;
	for (k = 0; k < GI_WING_STREAMS; k++)
		if (s->wing_ticket[k] && (int32_t)(gi_load(&s->cx->words->begun[k]) - s->wing_ticket[k]) < 0)
			n += s->wing_count[k];
	return n;
}

/*
 * Workers that found nothing to do are not in @left, except those of a resumable task with block-tasks that wait: then all are
 * counted, so that launched - left is who can take them up. A wing is on a stream of its own: it may come only when the
 * task's launch has begun, or it would run what the program's stream has yet to come to.
 */
static void wing(struct gi_client *c, struct gi_slot *s, unsigned int i, uint64_t now)
{
	struct gsched_cl_slot *line = &c->cl->slot[i];
	bool gone = atomic_load(&c->gone);
	uint32_t left = gi_load(&line->left), full = c->sms * s->m, want, present, stalled, workers;
	unsigned int k;
	CUresult rc;

	if (!gi_load(&line->start_ns) || gi_load(&line->finished) == s->seq || now < s->next_wing)
		return;
	want = gone ? full : gi_places(c, s->window, s->m);
	if (want > s->blocks)
		want = s->blocks;
	stalled = workers_stalled(s, now);
	present = s->launched - stalled;
	present = left > present ? 0 : present - left;
	if (present >= want)
		return;
	/* those that land outside the window leave at once: ask for more each time, up to all the places there are */
	workers = want - present;
	if (s->wing_gap) {
		uint64_t more = (uint64_t)workers * (s->wing_gap / WING_GAP_MIN + 1);

		workers = more > full - present ? full - present : more;
	}
	for (k = 0; k < GI_WING_STREAMS && !stream_idle(s->cx, k); k++)
		;
	if (k == GI_WING_STREAMS)
		return;
	rc = launch_wing(s, i, k, workers, present, gone);
	if (rc) {
		gi_debug("a wing of slot %u does not launch (error %d)", i, rc);
		s->next_wing = now + WING_GAP_MAX;
		return;
	}
	gi_debug("wing of %u workers in slot %u, window %u+%u, present %u of %u", workers, i, GSCHED_WINDOW_BASE(s->window),
		 GSCHED_WINDOW_LIMIT(s->window), present, want);
	s->launched += workers;
	gi_store(&line->launched, s->launched);
	__atomic_fetch_add(&c->cl->header.wings, 1, __ATOMIC_RELAXED);
	s->wing_gap = s->wing_gap ? s->wing_gap * 2 : WING_GAP_MIN;
	if (s->wing_gap > WING_GAP_MAX)
		s->wing_gap = WING_GAP_MAX;
	s->next_wing = now + s->wing_gap;
}

static bool wings_over(const struct gi_slot *s, struct gsched_cl_slot *line)
{
	uint32_t over = s->wings;
	unsigned int k;

	if (!s->wings)
		return true;
	for (k = 0; k < GI_WING_STREAMS; k++)
		if (s->wing_ticket[k] && (int32_t)(gi_load(&s->cx->words->done[k]) - s->wing_ticket[k]) < 0)
			over--;
	gi_store(&line->wings_retired, over);
	return over == s->wings;
}

/* ---- ends ---- */

static void average(_Atomic uint64_t *to, uint64_t x)
{
	uint64_t had = atomic_load_explicit(to, memory_order_relaxed);

	atomic_store_explicit(to, had ? (3 * had + x) / 4 : x, memory_order_relaxed);
}

/* Events also time what a launch waits for between them: the time alone is nearer to the least that was seen. */
static void least(_Atomic uint64_t *to, uint64_t x)
{
	uint64_t had = atomic_load_explicit(to, memory_order_relaxed);

	atomic_store_explicit(to, had && had < x ? (7 * had + x) / 8 : x, memory_order_relaxed);
}

/* What the GPU's clock says of the run, 0 nothing; teaches the shape. */
static uint64_t learn(struct gi_client *c, struct gi_slot *s, const struct gsched_cl_slot *line, uint64_t now)
{
	uint64_t start = gi_load(&line->start_ns), end = gi_load(&line->end_ns), ran, span, workers;
	float ms;

	if (s->tier != GSCHED_TIER_BLOCK) {
		if (!s->timed || gi_real.cuEventElapsedTime(&ms, s->begin, s->end) || !(ms > 0) || ms > 1e6)
			return 0;
		ran = ms * 1e6;
		least(&s->shape->predicted_ns, ran);
		least(&s->shape->block_ns, ran * c->sms * s->m / (s->blocks > c->sms * s->m ? s->blocks : c->sms * s->m));
		atomic_fetch_add(&s->shape->samples, 1);
		return ran;
	}
	if (!start || end <= start || end - start > 3600000000000ull)
		return 0;
	ran = end - start;
	span = now - s->launch_ns;
	workers = s->integral + (now - s->window_since) * gi_places(c, s->window, s->m);
	workers = span ? workers / span : 0;
	if (!workers)
		workers = 1;
	if (workers > s->blocks)
		workers = s->blocks;
	/* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): a launch without blocks gets no slot */
	average(&s->shape->block_ns, ran * workers / s->blocks);
	average(&s->shape->predicted_ns, ran * workers / (s->blocks < c->sms * s->m ? s->blocks : c->sms * s->m));
	atomic_fetch_add(&s->shape->samples, 1);
	if (s->alone && !s->integral && !s->wings && !gi_load(&c->arb->header.contended))
		gi_tune_took(&s->shape->tune, gi_form_m(s->fn, s->shape, GI_TWIN), s->m, ran);
	return ran;
}

static void finish(struct gi_client *c, struct gi_slot *s, unsigned int i, uint64_t now)
{
	struct gsched_cl_slot *line = &c->cl->slot[i];

	if (!s->completed) {
		uint64_t ran = learn(c, s, line, now);

		s->completed = true;
		/* a launch under a lease that is still good is counted, no more */
		if (!atomic_load(&c->gone) &&
		    (s->submitted || gi_load(&c->arb->header.lease) != GSCHED_LEASE_FREE ||
		     gi_load(&c->arb->slot[i].generation) != s->generation))
			gsched_complete(c->g, i, s->seq, ran, false);
		else
			gi_leased(c, ran ? ran : s->predicted_ns, s->blocks, s->m);
	}
	if (!wings_over(s, line))
		return;
	if (s->tier == GSCHED_TIER_BLOCK)
		atomic_fetch_or(&s->cx->dirty, 1ull << i);
	gi_save_put(s, false);
	gi_bound_put(s->bound, false);
	atomic_fetch_and(&c->running, ~(1ull << i));
	atomic_fetch_add(&c->finished, 1);
	atomic_fetch_or(&c->free_mask, 1ull << i);
}

/*
 * A launch under LEASE_FREE told nobody. If it lasts, tell now, when it costs the program nothing: statistics then count
 * it. If the arbiter found it in the page first, the slot's generation has changed.
 */
static void tell(struct gi_client *c, struct gi_slot *s, unsigned int i, uint64_t now)
{
	struct gsched_task task;

	if (s->submitted || s->completed || now - s->launch_ns < TELL_NS || atomic_load(&c->gone) ||
	    gi_load(&c->arb->header.lease) != GSCHED_LEASE_FREE ||
	    gi_load(&c->arb->slot[i].generation) != s->generation)
		return;
	gi_to_task(&task, s, i);
	s->submitted = true;
	gsched_submit_stream_async(c->g, &task, s->stream);
}

/* The context is beyond use (an illegal access, say): its tasks will never retire. */
static void give_up(struct gi_client *c, struct gi_slot *s, unsigned int i)
{
	if (!atomic_load(&c->gone))
		gsched_complete(c->g, i, s->seq, 0, true);
	gi_store(&c->cl->slot[i].retired, s->seq);
	gi_save_put(s, true);
	gi_bound_put(s->bound, true);
	atomic_fetch_and(&c->running, ~(1ull << i));
	atomic_fetch_add(&c->finished, 1);
	atomic_fetch_or(&c->free_mask, 1ull << i);
}

static bool healthy(struct gi_ctx *cx)
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

/* ---- control blocks ---- */

static void clean(struct gi_ctx *cx)
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
		if (gi_real.cuMemcpyHtoDAsync_v2(cx->control + first * sizeof(struct gsr_control), &cx->blank[first],
						 n * sizeof(struct gsr_control), cx->clean_stream))
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

/* ---- passes ---- */

static void pass(struct gi_client *c)
{
	uint64_t running = atomic_load(&c->running), now = gi_now(), mask;
	struct gi_ctx *current = NULL, *cx;
	CUcontext before = NULL;

	if (running)
		gi_real.cuCtxGetCurrent(&before);
	for (mask = running; mask; mask &= mask - 1) {
		unsigned int i = __builtin_ctzll(mask);
		struct gi_slot *s = &c->slot[i];

		if (!current || s->cx != current) {
			current = s->cx;
			if (gi_real.cuCtxSetCurrent(current->handle))
				current->broken = true;
		}
		follow_window(c, s, i, now);
		if (gi_load(&c->cl->slot[i].retired) == s->seq) {
			finish(c, s, i, now);
		} else if (s->cx->broken || (now - s->launch_ns > HEALTH_NS && !healthy(s->cx))) {
			give_up(c, s, i);
		} else {
			tell(c, s, i, now);
			if (s->tier == GSCHED_TIER_BLOCK)
				wing(c, s, i, now);
		}
	}
	/*
	 * Cleaning can be put off, wings cannot: whoever holds gi_lock may be in a call of the driver that waits for a task
	 * which waits for its wing.
	 */
	if (pthread_mutex_trylock(&gi_lock)) {
		if (current)
			gi_real.cuCtxSetCurrent(before);
		return;
	}
	for (cx = gi_ctx_next(NULL); cx; cx = gi_ctx_next(cx)) {
		if (cx->client != c || !(atomic_load(&cx->dirty) || cx->cleaning))
			continue;
		if (!current && !running)
			gi_real.cuCtxGetCurrent(&before);
		if (cx != current && !gi_real.cuCtxSetCurrent(cx->handle))
			current = cx;
		clean(cx);
	}
	pthread_mutex_unlock(&gi_lock);
	if (current)
		gi_real.cuCtxSetCurrent(before);
}

bool gi_agent_reap(struct gi_client *c)
{
	if (pthread_mutex_trylock(&c->lock))
		return false;
	/* also once the agent has stopped: whoever calls may call the driver */
	pass(c);
	pthread_mutex_unlock(&c->lock);
	return true;
}

void gi_agent_wake(struct gi_client *c)
{
	uint64_t one = 1;

	atomic_store(&c->idle, false);
	if (write(c->wake, &one, sizeof(one)) < 0)
		return;
}

static void read_events(struct gi_client *c)
{
	struct gsched_event_info ev;
	int rc;

	if (atomic_load(&c->gone))
		return;
	/* the windows themselves are read from the page: events only say when to look */
	while ((rc = gsched_event_read(c->g, &ev)) > 0)
		if (ev.type == GSCHED_EVENT_GONE)
			gi_client_gone(c, "the device was removed");
	if (rc < 0)
		gi_client_gone(c, "the arbiter is gone");
}

/* ---- the band ---- */

/* The process has one time slice a channel group and sets it itself; under MPS the server does. */
static void follow_slice(struct gi_client *c)
{
	const uint8_t *uuid = (const uint8_t *)c->uuid.bytes;
	struct gsched_cl_header *h = &c->cl->header;
	struct gsched_report_info report = { .size = sizeof(report), .has_slice = true };
	bool gone = atomic_load(&c->gone);
	/* nobody decides any more: what the driver chose starves nobody */
	uint32_t us = gone ? 0 : gi_load(&c->arb->header.slice_us);
	struct gsched_slice now;

	gsched_slice_get(uuid, &now);
	if (c->slice_us == us && c->slice_groups == now.groups)
		return;
	c->slice_us = us;
	c->slice_groups = now.groups;
	gsched_slice_set(uuid, us, &now);
	gi_debug("time slice %u us asked, %u us in force (%u groups, status 0x%x)", us, now.us, now.groups, now.status);
	report.slice_us = now.error ? 0 : now.us;
	report.slice_error = now.error == ENODEV ? EOPNOTSUPP : now.error;
	gi_store(&h->slice_us, report.slice_us);
	gi_store(&h->slice_error, report.slice_error);
	if (now.error == EIO)
		gi_why(c, "the driver refuses a time slice of %u us (status 0x%x)", us, now.status);
	if (!gone)
		gsched_report(c->g, &report);
}

/* Do the others of the band have reason to rely on the hardware's priorities? */
static void follow_streams(struct gi_client *c)
{
	struct gsched_report_info report = { .size = sizeof(report), .has_streams = true };

	report.prioritised = atomic_load(&c->prioritised) == GI_PRIORITISED;
	if (report.prioritised == c->told_prioritised)
		return;
	c->told_prioritised = report.prioritised;
	gsched_report(c->g, &report);
}

static void follow_band(struct gi_client *c)
{
	struct gsched_report_info report = { .size = sizeof(report), .has_activity = true };

	if (!atomic_load(&c->gone))
		follow_streams(c);
	if (!c->mps)
		follow_slice(c);
	if (atomic_load(&c->gone) || !(gi_load(&c->arb->header.flags) & GSCHED_ARB_REPORT)) {
		c->activity = UINT_MAX;
		return;
	}
	if (c->activity == UINT_MAX)
		gi_pace_begin(c);
	report.activity = gi_pace_activity(c, gi_now());
	if (report.activity == c->activity)
		return;
	c->activity = report.activity;
	gi_store(&c->cl->header.activity, report.activity);
	gsched_report(c->g, &report);
}

/* How long until something may be due, ns. */
static uint64_t nap(struct gi_client *c, uint64_t now)
{
	uint64_t mask, best = 1000000, left;
	bool free_lease = gi_load(&c->arb->header.lease) == GSCHED_LEASE_FREE || atomic_load(&c->gone);

	if (c->activity <= GSCHED_ACTIVITY_BUSY && c->activity != GSCHED_ACTIVITY_IDLE)
		best = ACTIVE_NS;
	for (mask = atomic_load(&c->running); mask; mask &= mask - 1) {
		struct gi_slot *s = &c->slot[__builtin_ctzll(mask)];
		uint64_t due = s->launch_ns + s->predicted_ns;

		/* half of what is left, so that the end is met with small steps */
		left = due > now ? (due - now) / 2 : s->predicted_ns ? (now - due) / 8 : 50000;
		/* short kernels: others wait for their capacity, and what was learnt may hold waiting for others */
		if (s->tier != GSCHED_TIER_BLOCK && s->predicted_ns < NAP_SHORT_NS && left > NAP_NS)
			left = NAP_NS;
		if (s->completed)
			left = 100000;
		if (free_lease)
			left = left < 200000 ? 200000 : left;
		if (left < 20000)
			left = 20000;
		/* wings that did not last */
		if (s->tier == GSCHED_TIER_BLOCK && s->next_wing > now && left > s->next_wing - now)
			left = s->next_wing - now;
		if (left < best)
			best = left;
	}
	return best;
}

static void *agent(void *arg)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	struct gi_client *c = arg;
	uint64_t last = gi_now(), n;

	pthread_setname_np(pthread_self(), "gsched-agent");
	prctl(PR_SET_TIMERSLACK, 1000);
	gi_real.cuThreadExchangeStreamCaptureMode(&mode);
	for (;;) {
		struct pollfd fds[] = { { .fd = c->wake, .events = POLLIN }, { .fd = gsched_fd(c->g), .events = POLLIN } };
		struct timespec ts = { 0 };
		uint64_t now = gi_now();
		bool idle = false;

		if (atomic_load(&c->gone))
			fds[1].fd = -1;
		if (atomic_load(&c->running) || (c->activity != UINT_MAX && c->activity != GSCHED_ACTIVITY_IDLE))
			last = now;
		if (now - last > LINGER_NS) {
			/* whoever launches after this store wakes us; whoever did before it is seen here */
			atomic_store(&c->idle, true);
			idle = !atomic_load(&c->running) && !atomic_load(&c->pacer.in_flight) && !atomic_load(&c->pacer.held);
		}
		ts.tv_nsec = nap(c, now);
		/* nobody will wake us when there is an arbiter again */
		if (idle && atomic_load(&c->gone))
			ts = (struct timespec){ .tv_sec = GI_RECONNECT_NS / 1000000000 };
		ppoll(fds, 2, idle && !atomic_load(&c->gone) ? NULL : &ts, NULL);
		atomic_store(&c->idle, false);
		if (fds[0].revents && read(c->wake, &n, sizeof(n)) < 0 && errno != EAGAIN)
			break;
		if (fds[1].revents)
			read_events(c);
		gi_pace_watch(c, gi_now());
		pthread_mutex_lock(&c->lock);
		if (c->stop) {
			pthread_mutex_unlock(&c->lock);
			break;
		}
		pass(c);
		follow_band(c);
		pthread_mutex_unlock(&c->lock);
		if (atomic_load(&c->gone))
			gi_client_reconnect(c, gi_now());
	}
	return NULL;
}

int gi_agent_start(struct gi_client *c)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&c->agent, NULL, agent, c);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!rc)
		pthread_detach(c->agent);
	return rc ? -1 : 0;
}

/* Wait until no task of @cx, or of @image, is in flight. false: they did not end in time. */
bool gi_drain(struct gi_client *c, struct gi_ctx *cx, struct gi_image *image, uint64_t timeout_ns)
{
	uint64_t until = gi_now() + timeout_ns, mask;
	bool busy;

	for (;;) {
		if (!gi_agent_reap(c))
			gi_agent_wake(c);
		busy = false;
		pthread_mutex_lock(&c->lock);
		for (mask = atomic_load(&c->running); mask; mask &= mask - 1) {
			struct gi_slot *s = &c->slot[__builtin_ctzll(mask)];

			if (!((cx && s->cx == cx) || (image && s->fn && s->fn->named && s->fn->named->image == image)))
				continue;
			busy = true;
			if (gi_now() > until)
				give_up(c, s, __builtin_ctzll(mask));
		}
		pthread_mutex_unlock(&c->lock);
		if (!busy)
			return true;
		if (gi_now() > until)
			return false;
		usleep(50);
	}
}
