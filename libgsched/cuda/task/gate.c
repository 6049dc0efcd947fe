// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Quiescing before calls of the driver that wait for the GPU while holding the context's lock:
 * loading code, freeing memory, synchronous copies. An evicted task needs a wing to end, and the
 * agent could not launch it during such a call, which would be a deadlock. So the interposer first
 * waits itself, without the driver's lock. entry/waits.h lists these calls.
 *
 * Before a call that waits for the device, twin launches are held back, and tasks that may need a
 * wing are waited for. Before a copy on a stream, only an event on that stream is waited for. Work
 * that other threads could still enqueue before the copy is held back from then until it ends:
 * - On the legacy stream, a copy runs after the work of all blocking streams: launches on these are
 *   held back and their tasks waited for. Its event is a barrier to them from the moment it is
 *   recorded (legacy_barriers).
 * - On a blocking stream, a copy runs after the legacy stream only: launches there are held back;
 *   if there is a task or a barrier there, launches on the blocking streams are too.
 * - Other streams are assumed to be used by one thread at a time.
 * A launch that was held back for long precedes calls that begin later; otherwise several threads
 * that copy all the time could starve it. Where even that does not help the original is launched,
 * which needs no wing: what the call waits for may wait for what the launching thread does next.
 *
 * A launch, too, waits with the lock held while the driver's queue is full (on the legacy stream;
 * others let wings pass). So few launches go behind tasks that may need a wing: 64 twins, as there
 * are slots, and GI_AHEAD others, copies and memsets included; GATED_AHEAD more if none has begun.
 */
#include <unistd.h>
#include "task/task.h"

#define SPINS		50
#define NAP_US		20
#define SPARE_NS	1000000000
#define GATED_NS	100000000	/* most wait for tasks that do not begin though they may */
#define GATED_AHEAD	512	/* then so many launches more: the driver's queue has 1024 */
#define HELD_NS		1000000000	/* most time that a launch is held back */
#define OVERDUE_NS	1000000	/* a launch held back for so long precedes later calls */

static _Atomic bool twins_launched;	/* before that, no call has anything to wait for */
static _Atomic int early_calls;		/* copies begun before that, which no twin may precede */

/* No lock is needed: at worst a task that has just finished is counted. */
static bool may_need_wing(const struct gi_client *c, unsigned int i)
{
	return gi_load(&c->cl->slot[i].tier) == GSCHED_TIER_BLOCK &&
	       gi_load(&c->cl->slot[i].retired) != gi_load(&c->cl->slot[i].seq) &&
	       !atomic_load(&c->tasks->slot[i].unlimited);
}

/* Whether a task on a stream of at least @least may need a wing */
static bool wings_needed(const struct gi_client *c, enum gi_order least)
{
	uint64_t mask;

	for (mask = gi_slots_in_flight(c->tasks); mask; mask &= mask - 1) {
		unsigned int i = __builtin_ctzll(mask);

		if (c->tasks->slot[i].order >= least && may_need_wing(c, i))
			return true;
	}
	return false;
}

bool gi_tasks_evicted(const struct gi_client *c)
{
	uint64_t mask;

	for (mask = gi_slots_in_flight(c->tasks); mask; mask &= mask - 1) {
		unsigned int i = __builtin_ctzll(mask);
		const struct gsched_cl_slot *line = &c->cl->slot[i];

		if (may_need_wing(c, i) && gi_load(&line->start_ns) &&
		    (!gi_load(&c->arb->slot[i].window) ||
		     gi_load(&line->left) >= gi_load(&line->launched)))
			return true;
	}
	return false;
}

static bool any_begun(const struct gi_client *c)
{
	uint64_t mask;

	for (mask = gi_slots_in_flight(c->tasks); mask; mask &= mask - 1)
		if (gi_load(&c->cl->slot[__builtin_ctzll(mask)].start_ns))
			return true;
	return false;
}

bool gi_tasks_gated(const struct gi_client *c)
{
	uint64_t mask;

	if (any_begun(c))
		return false;
	for (mask = gi_slots_in_flight(c->tasks); mask; mask &= mask - 1)
		if (gi_load(&c->arb->slot[__builtin_ctzll(mask)].window))
			return true;
	return false;
}

static bool is_quiescent(struct gi_client *c)
{
	return !atomic_load(&c->tasks->launching_ordered) &&
		!atomic_load(&c->tasks->launching_unordered) && !wings_needed(c, GI_ORDER_NONE);
}

/* Launches or calls may be held back meanwhile, for as long as this thread says */
static void nap(void)
{
	int cancel = gi_cancel_disable();

	usleep(NAP_US);
	gi_cancel_restore(cancel);
}

static void spin_or_sleep(unsigned int *round)
{
	if (++*round > SPINS)
		nap();
}

bool gi_tasks_wait_quiescent(struct gi_client *c, uint64_t ns)
{
	uint64_t start = gi_now();
	unsigned int round = 0;

	while (!is_quiescent(c)) {
		/* without the agent there are no wings: waiting would not help */
		if (atomic_load(&c->stop) || gi_now() - start > ns)
			return false;
		spin_or_sleep(&round);
	}
	return true;
}

void gi_tasks_wait_ahead(struct gi_client *c)
{
	struct gi_tasks *t = c->tasks;
	uint32_t seq[GSCHED_SLOTS];
	unsigned int round = 0, i;
	uint64_t mask = gi_slots_in_flight(t), start = gi_now(), waited;
	int ahead = 0;

	for (i = 0; i < GSCHED_SLOTS; i++)
		seq[i] = gi_load(&c->cl->slot[i].seq);
	/* tasks of a broken context are given up */
	while ((mask &= gi_slots_in_flight(t))) {
		i = __builtin_ctzll(mask);
		if (gi_load(&c->cl->slot[i].seq) != seq[i] || !may_need_wing(c, i)) {
			mask &= mask - 1;
			continue;
		}
		/* it may wait for what this thread does next, unless it waits for the arbiter */
		if (gi_tasks_evicted(c))
			start = gi_now();
		waited = gi_now() - start;
		if (atomic_load(&c->stop))
			break;
		/* many launches, if a host function or another kernel holds up the stream */
		if (waited > SPARE_NS || (waited > GATED_NS && gi_tasks_gated(c))) {
			ahead = any_begun(c) ? 0 : -GATED_AHEAD;
			break;
		}
		spin_or_sleep(&round);
	}
	atomic_store(&t->ahead, ahead);
}

/* The agent has stopped: waiting would not help. */
static bool agent_stopped(const struct gi_client *c)
{
	return atomic_load(&c->stop);
}

static enum gi_order stream_order(CUstream stream)
{
	unsigned int flags = 0;

	if (!stream || stream == CU_STREAM_LEGACY)
		return GI_ORDER_LEGACY;
	if (stream == CU_STREAM_PER_THREAD || gi_real.cuStreamGetFlags(stream, &flags) ||
	    !(flags & CU_STREAM_NON_BLOCKING))
		return GI_ORDER_BLOCKING;
	return GI_ORDER_NONE;
}

static bool held_back(const struct gi_tasks *t, enum gi_order order)
{
	if (order == GI_ORDER_NONE)
		return false;
	return atomic_load(&t->legacy_copies) ||
	       (atomic_load(&t->blocking_copies) &&
		(order == GI_ORDER_LEGACY || atomic_load(&t->legacy_barriers)));
}

_Atomic int *gi_twin_launch_begin(struct gi_client *c, struct gi_slot *s, CUstream stream)
{
	struct gi_tasks *t = c->tasks;
	bool overdue = false;
	uint64_t since = 0;
	_Atomic int *inside;

	s->order = stream_order(stream);
	for (;;) {
		inside = s->order == GI_ORDER_NONE ? &t->launching_unordered :
						     &t->launching_ordered;
		atomic_fetch_add(inside, 1);
		if (!atomic_load(&t->quiescing) && !held_back(t, s->order))
			break;
		atomic_fetch_sub(inside, 1);
		if (!since)
			since = gi_now();
		/* other threads' calls could starve this launch */
		if (!overdue && gi_now() - since > OVERDUE_NS) {
			overdue = true;
			atomic_fetch_add(&t->overdue, 1);
		}
		inside = NULL;
		if (gi_now() - since > HELD_NS)
			break;
		nap();
	}
	if (overdue)
		atomic_fetch_sub(&t->overdue, 1);
	return inside;
}

/* Lets launches that such calls have held back for long go first. */
static void yield_to_overdue(struct gi_client *c)
{
	uint64_t until;

	if (!atomic_load(&c->tasks->overdue))
		return;
	/* bounded, because it may wait for this thread in another way */
	for (until = gi_now() + SPARE_NS; gi_now() < until;) {
		if (!atomic_load(&c->tasks->overdue) || agent_stopped(c))
			return;
		nap();
	}
}

void gi_twin_launch_end(_Atomic int *inside)
{
	atomic_fetch_sub(inside, 1);
}

bool gi_tasks_quiesce(struct gi_client *c)
{
	atomic_fetch_add(&c->tasks->quiescing, 1);
	return gi_tasks_wait_quiescent(c, GI_QUIESCE_NS);
}

void gi_tasks_resume(struct gi_client *c)
{
	atomic_fetch_sub(&c->tasks->quiescing, 1);
}

bool gi_tasks_quiesce_context(struct gi_ctx *cx, uint64_t ns)
{
	struct gi_client *c = cx->client;
	uint64_t start = gi_now(), took;

	atomic_fetch_add(&c->tasks->quiescing, 1);
	if (gi_tasks_wait_quiescent(c, ns)) {
		took = gi_now() - start;
		if (gi_streams_hold(cx, took < ns ? ns - took : 0))
			return true;
	}
	atomic_fetch_sub(&c->tasks->quiescing, 1);
	return false;
}

void gi_tasks_resume_context(struct gi_ctx *cx)
{
	gi_streams_release();
	atomic_fetch_sub(&cx->client->tasks->quiescing, 1);
}

/*
 * Wings may be queued behind the done gates of their hardware queue, and behind streams that wait
 * for events there, so one queue must have neither. The slot counts as having a gate until it is
 * free. Two concurrent callers may both be refused. Also refused are the first twins while copies
 * are under way that began when there was no twin to wait for: such a copy could still be enqueued
 * behind the twin on its stream.
 */
bool gi_gate_reserve(struct gi_client *c, unsigned int slot)
{
	uint64_t stream = c->tasks->slot[slot].stream, seen[GSCHED_SLOTS], mask;
	unsigned int waiting = atomic_load(&gi_streams_waiting), n = 0, i;

		/* either a copy sees this store, or its count is seen below */
	if (!atomic_load_explicit(&twins_launched, memory_order_relaxed))
		atomic_store(&twins_launched, true);
	if (atomic_load(&early_calls))
		return false;
	mask = atomic_fetch_or(&c->tasks->gated, 1ull << slot) & ~(1ull << slot);
	if ((unsigned int)__builtin_popcountll(mask) + 1 + waiting < c->queues)
		return true;
	for (; mask; mask &= mask - 1) {
		uint64_t other = c->tasks->slot[__builtin_ctzll(mask)].stream;

		if (other == stream)
			return true;
		for (i = 0; i < n && seen[i] != other; i++)
			;
		if (i == n)
			seen[n++] = other;
	}
	if (n + 1 + waiting < c->queues)
		return true;
	atomic_fetch_and(&c->tasks->gated, ~(1ull << slot));
	return false;
}

/*
 * One more stream is about to wait for an event, which may take the last hardware queue; then wings
 * of tasks that have gates would not get through. So wait for tasks to end, even if the arbiter is
 * gone, since they then need wings to end. Once the stream is counted in gi_streams_waiting, gates
 * are refused instead.
 */
void gi_gate_spare_queue(struct gi_client *c)
{
	uint64_t until = gi_now() + SPARE_NS, gated;

	while ((gated = atomic_load(&c->tasks->gated)) && gi_now() < until) {
		if ((unsigned int)__builtin_popcountll(gated) + atomic_load(&gi_streams_waiting) <
		    c->queues)
			return;
		if (!gi_reap(c))
			gi_agent_wake(c);
		nap();
	}
}

/*
 * Waits until the work queued on @stream so far has ended, or no task may need a wing. There is no
 * time limit, because the driver's call would wait for the same.
 */
static void wait_stream(struct gi_client *c, CUstream stream)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	unsigned int round = 0;
	CUevent event;

	if (!wings_needed(c, GI_ORDER_NONE))
		return;
	gi_real.cuThreadExchangeStreamCaptureMode(&mode);
	if (!gi_real.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING)) {
		if (!gi_real.cuEventRecord(event, stream))
			while (!agent_stopped(c) && wings_needed(c, GI_ORDER_NONE) &&
			       gi_real.cuEventQuery(event) == CUDA_ERROR_NOT_READY)
				spin_or_sleep(&round);
		gi_real.cuEventDestroy_v2(event);
	}
	gi_real.cuThreadExchangeStreamCaptureMode(&mode);
}

/* Captured work does not run yet. */
static bool is_captured(CUstream stream)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

	return atomic_load(&gi_hot.captures) && stream && stream != CU_STREAM_LEGACY &&
	       (gi_real.cuStreamIsCapturing(stream, &status) ||
		status != CU_STREAM_CAPTURE_STATUS_NONE);
}

/* Its end has something to undo, so the thread must come there. */
static void has_to_end(struct gi_waiting *w, struct gi_client *c)
{
	w->c = c;
	if (c)
		w->cancel = gi_cancel_disable();
}

static void wait_stream_begin(struct gi_waiting *w, struct gi_client *c, CUstream stream)
{
	struct gi_tasks *t = c->tasks;
	unsigned int round = 0;

	if (is_captured(stream))
		return;
	w->order = stream_order(stream);
	if (w->order == GI_ORDER_NONE) {
		wait_stream(c, stream);
		return;
	}
	has_to_end(w, c);
	yield_to_overdue(c);
	if (w->order == GI_ORDER_LEGACY) {
		atomic_fetch_add(&t->legacy_barriers, 1);
		while (atomic_load(&t->blocking_copies) && !agent_stopped(c))
			spin_or_sleep(&round);
	}
	wait_stream(c, stream);
	atomic_fetch_add(w->order == GI_ORDER_LEGACY ? &t->legacy_copies : &t->blocking_copies, 1);
	while (atomic_load(&t->launching_ordered) && !agent_stopped(c))
		spin_or_sleep(&round);
	if (w->order == GI_ORDER_LEGACY || atomic_load(&t->legacy_barriers) ||
	    wings_needed(c, GI_ORDER_LEGACY))
		while (wings_needed(c, GI_ORDER_BLOCKING) && !agent_stopped(c))
			spin_or_sleep(&round);
}

static void wait_stream_end(struct gi_waiting *w)
{
	struct gi_tasks *t = w->c->tasks;

	if (w->order == GI_ORDER_LEGACY) {
		atomic_fetch_sub(&t->legacy_copies, 1);
		atomic_fetch_sub(&t->legacy_barriers, 1);
	} else {
		atomic_fetch_sub(&t->blocking_copies, 1);
	}
}

static void wait_device_begin(struct gi_waiting *w, struct gi_client *c, unsigned int place)
{
	uint64_t patience;

	yield_to_overdue(c);
	w->quiesced |= 1ull << place;
	atomic_fetch_add(&c->tasks->quiescing, 1);
	if (is_quiescent(c))
		return;
	patience = gi_env("GSCHED_QUIET_MS", GI_QUIESCE_NS / 1000000) * 1000000;
	if (gi_tasks_wait_quiescent(c, patience))
		return;
	/* a more important client has the device: ignore windows, or these tasks would never end */
	w->released |= 1ull << place;
	gi_tasks_release(c);
	gi_debug("tasks did not end in %llu ms, and a call waits for them: no window holds them",
		 (unsigned long long)patience / 1000000);
	gi_tasks_wait_quiescent(c, UINT64_MAX);
}

bool gi_wait_needed(void)
{
	return atomic_load(&twins_launched);
}

/* Whether the client has anything to do before such a call. */
static bool needs_wait(const struct gi_client *c)
{
	return c && c->tasks && !agent_stopped(c);
}

void gi_stay_near(void)
{
	struct gi_ctx *cx = gi_wait_needed() ? gi_current_now() : NULL;

	if (cx && needs_wait(cx->client) && gi_tasks_far_ahead(cx->client, 1))
		gi_tasks_wait_ahead(cx->client);
}

/* New clients are inserted at the head of the list, so places behind @w->c do not change. */
static void wait_all_begin(struct gi_waiting *w)
{
	struct gi_client *c;
	unsigned int place;

	has_to_end(w, gi_client_next(NULL));
	for (c = w->c, place = 0; c && place < 64; c = c->next, place++)
		if (needs_wait(c))
			wait_device_begin(w, c, place);
}

void gi_wait_begin(struct gi_waiting *w, enum gi_waits how, CUstream stream)
{
	struct gi_client *c;
	struct gi_ctx *cx;

	*w = (struct gi_waiting){ .how = how };
	if (how == GI_WAITS_STREAM && !gi_wait_needed()) {
		atomic_fetch_add(&early_calls, 1);
		w->early = !gi_wait_needed();
		if (w->early)
			return;
		atomic_fetch_sub(&early_calls, 1);
	}
	cx = gi_current_now();
	if (how == GI_WAITS_ALL) {
		wait_all_begin(w);
		return;
	}
	c = cx ? cx->client : NULL;
	if (!needs_wait(c))
		return;
	if (how == GI_WAITS_STREAM) {
		wait_stream_begin(w, c, stream);
		return;
	}
	has_to_end(w, c);
	wait_device_begin(w, c, 0);
}

void gi_wait_begin_memory(struct gi_waiting *w, CUdeviceptr at)
{
	struct gi_client *c = gi_client_next(NULL);
	int dev;

	if (!c || !c->next || gi_real.cuPointerGetAttribute(&dev,
			CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at)) {
		gi_wait_begin(w, GI_WAITS_DEVICE, NULL);
		return;
	}
	*w = (struct gi_waiting){ .how = GI_WAITS_DEVICE };
	while (c && c->dev != dev)
		c = gi_client_next(c);
	if (!needs_wait(c))
		return;
	has_to_end(w, c);
	wait_device_begin(w, c, 0);
}

void gi_wait_end(struct gi_waiting *w)
{
	struct gi_client *c;

	if (w->early)
		atomic_fetch_sub(&early_calls, 1);
	if (!w->c)
		return;
	if (w->how == GI_WAITS_STREAM)
		wait_stream_end(w);
	for (c = w->c; c && w->quiesced; c = c->next, w->quiesced >>= 1, w->released >>= 1) {
		if (w->released & 1)
			atomic_fetch_sub(&c->tasks->released, 1);
		if (w->quiesced & 1)
			atomic_fetch_sub(&c->tasks->quiescing, 1);
	}
	gi_cancel_restore(w->cancel);
}
