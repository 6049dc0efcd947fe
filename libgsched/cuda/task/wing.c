// SPDX-License-Identifier: LGPL-2.1-or-later
/* Windows and wings, the workers launched later for a task that may have more than it has. */
#include <string.h>
#include "task/task.h"

#define WING_GAP_MIN	100000
#define WING_GAP_MAX	10000000
/* a wing that has not begun by then is stuck in its hardware queue */
#define STALL_NS	5000000
/* the workers of all wings leave if one worker of so many is missing, so often at most */
#define RECALL_PART	16
#define RECALL_PAUSE	100000000
#define RECALL_AGAIN	2000000

void gi_follow_window(struct gi_client *c, struct gi_slot *s, unsigned int i, uint64_t now)
{
	uint64_t window = gi_load(&c->arb->slot[i].window);

	if (window == s->window)
		return;
	s->integral += (now - s->window_since) * gi_window_workers(c, s->window, s->m);
	s->window = window;
	s->window_since = now;
	s->wing_gap = 0;
	s->next_wing = 0;
}

void gi_tasks_release(struct gi_client *c)
{
	atomic_fetch_add(&c->tasks->released, 1);
	gi_agent_wake(c);
}

static bool stream_idle(const struct gi_ctx *cx, unsigned int k)
{
	return gi_load(&cx->words->done[k]) == cx->wing_ticket[k];
}

/* Prefers one that has not been blocked by a done gate of the task's stream */
static unsigned int idle_stream(const struct gi_slot *s)
{
	unsigned int k, idle = GI_WING_STREAMS;

	for (k = 0; k < GI_WING_STREAMS; k++) {
		if (!stream_idle(s->cx, k))
			continue;
		if (s->cx->blocked_by[k] != s->stream)
			return k;
		idle = idle < k ? idle : k;
	}
	return idle;
}

/*
 * Returns an idle wing stream, GI_WING_STREAMS if there is none. While a task runs nothing is
 * queued behind its wings: that would wait in a hardware queue, and block others there. So the
 * driver is asked which of them have ended.
 */
static unsigned int pick_stream(struct gi_slot *s)
{
	unsigned int k = idle_stream(s);

	if (k < GI_WING_STREAMS)
		return k;
	for (k = 0; k < GI_WING_STREAMS; k++)
		if (gi_real.cuStreamQuery(s->cx->wing_stream[k]) == CUDA_SUCCESS)
			gi_store(&s->cx->words->done[k], s->cx->wing_ticket[k]);
	return idle_stream(s);
}

/* @wide: of 64 bits, else of 32 */
static void set_write(CUstreamBatchMemOpParams *op, CUdeviceptr address, uint64_t value, bool wide)
{
	op->writeValue.operation = wide ? CU_STREAM_MEM_OP_WRITE_VALUE_64 :
					  CU_STREAM_MEM_OP_WRITE_VALUE_32;
	op->writeValue.address = address;
	op->writeValue.value64 = value;
}

/*
 * The streams of wings keep the priority of their creation; if the client's group has another one
 * by now, the launch has it.
 */
static CUresult launch_workers(const struct gi_slot *s, CUstream stream, unsigned int workers)
{
	const unsigned int dynamic = gi_form_dynamic(s->form, s->shared);
	CUlaunchAttribute attr = {
		.id = CU_LAUNCH_ATTRIBUTE_PRIORITY,
		.value.priority = gi_stream_priority(s->cx, s->cx->least),
	};
	CUlaunchConfig config = {
		.gridDimX = workers, .gridDimY = 1, .gridDimZ = 1, .blockDimX = s->block[0],
		.blockDimY = s->block[1], .blockDimZ = s->block[2], .sharedMemBytes = dynamic,
		.hStream = stream, .attrs = &attr, .numAttrs = 1,
	};

	if (attr.value.priority == s->cx->wing_priority ||
	    gi_driver_lacks((const void *)gi_real.cuLaunchKernelEx))
		return gi_real.cuLaunchKernel(s->form->function, workers, 1, 1, s->block[0],
					      s->block[1], s->block[2], dynamic, stream,
					      s->pointers, NULL);
	return gi_real.cuLaunchKernelEx(&config, s->form->function, s->pointers, NULL);
}

static CUresult launch_wing(struct gi_slot *s, unsigned int i, unsigned int k, unsigned int workers,
			    uint32_t present, bool no_window)
{
	struct gi_ctx *cx = s->cx;
	struct gsr_launch *arg = (void *)(s->params + s->form->launch_offset);
	CUdeviceptr control = cx->control + i * sizeof(struct gsr_control);
	uint32_t ticket = cx->wing_ticket[k] + 1;
	CUstreamBatchMemOpParams op[4] = { 0 };
	CUresult rc;

	s->arg.first = s->arg.flags & GSR_LAUNCH_BY_INDEX ? present :
							    present * s->weight / GSCHED_CAPSM;
	s->arg.flags &= ~GSR_LAUNCH_NO_WINDOW;
	if (no_window)
		s->arg.flags |= GSR_LAUNCH_NO_WINDOW;
	memcpy(arg, &s->arg, sizeof(*arg));
	set_write(&op[0], cx->words_dev + offsetof(struct gi_words, begun) + k * sizeof(uint32_t),
		  ticket, false);
	set_write(&op[1], control + offsetof(struct gsr_control, relay), s->window, true);
	/* this window goes to the relay directly, so no worker will report having seen it */
	set_write(&op[2], s->arg.stat + offsetof(struct gsched_cl_slot, seen_limit),
		  (uint32_t)s->window, false);
	/* after a recall they look at the page again */
	set_write(&op[3], control + offsetof(struct gsr_control, next_poll), 0, true);
	rc = gi_real.cuStreamBatchMemOp_v2(cx->wing_stream[k], s->recalled ? 4 : 3, op, 0);
	rc = rc ? rc : launch_workers(s, cx->wing_stream[k], workers);
	if (rc)
		return rc;
	s->recalled = false;
	cx->wing_ticket[k] = ticket;
	s->wing_ticket[k] = ticket;
	s->wing_count[k] = workers;
	s->closed &= ~(1u << k);
	s->wings++;
	s->free_wings &= ~(1u << k);
	if (no_window)
		s->free_wings |= 1u << k;
	return CUDA_SUCCESS;
}

static bool wing_begun(const struct gi_slot *s, unsigned int k)
{
	return (int32_t)(gi_load(&s->cx->words->begun[k]) - s->wing_ticket[k]) >= 0;
}

/*
 * Counts the workers of wings that have not begun. Such a wing is queued in hardware behind
 * something else, perhaps its own task's done gate; another wing stream may get through.
 */
static uint32_t workers_stalled(const struct gi_slot *s, uint64_t now)
{
	uint32_t n = 0;
	unsigned int k;

	if (!s->wings || now < s->next_wing + STALL_NS)
		return 0;
	for (k = 0; k < GI_WING_STREAMS; k++)
		if (s->wing_ticket[k] && !wing_begun(s, k)) {
			n += s->wing_count[k];
			s->cx->blocked_by[k] = s->stream;
		}
	return n;
}

static bool recall_pending(const struct gi_ctx *cx)
{
	return gi_real.cuStreamQuery(cx->recall_stream) == CUDA_ERROR_NOT_READY;
}

/* Streams are shared by all tasks: would most of them be free without this one's wings? */
static bool has_most_streams(const struct gi_slot *s)
{
	unsigned int k, n = 0;

	for (k = 0; k < GI_WING_STREAMS; k++)
		n += s->wing_ticket[k] && s->wing_ticket[k] == s->cx->wing_ticket[k];
	return n > GI_WING_STREAMS / 2;
}

/*
 * A wing has its stream until its last worker ends, and a window that grows often leaves a few
 * workers of each. When no stream is left all workers leave, and come back in one wing. They are
 * told by what they look at instead of the page; one of them may just be copying that, and replace
 * it, so they are told again until they have left.
 */
static void recall(struct gi_slot *s, unsigned int i, uint64_t now)
{
	struct gi_ctx *cx = s->cx;

	_Static_assert(offsetof(struct gi_recall, relay) == offsetof(struct gsr_control, relay) &&
		       offsetof(struct gi_recall, next_poll) ==
			       offsetof(struct gsr_control, next_poll),
		       "a control block begins so");
	if (now < s->next_recall || recall_pending(cx))
		return;
	if (gi_real.cuMemcpyHtoDAsync_v2(cx->control + i * sizeof(struct gsr_control), cx->recall,
					 sizeof(*cx->recall), cx->recall_stream))
		return;
	if (!s->recalled)
		gi_debug("no stream for a wing of slot %u: its workers leave and come back", i);
	s->recalled = true;
	s->next_recall = now + RECALL_AGAIN;
}

/* Others came: from now on there is no room for them beside the workers on an SM, as at a launch */
static void fill_sms(const struct gi_client *c, struct gi_slot *s)
{
	s->tuned = false;
	if (s->arg.ranges)
		return;
	s->m = gi_form_m(s->fn, s->shape, GI_TWIN);
	s->weight = GSCHED_CAPSM / s->m;
	s->arg.weight = s->weight;
	s->arg.workers = c->sms * s->m;
}

/*
 * Workers that found nothing to do are not counted in @left. The exception is a resumable task with
 * suspended block-tasks: then all are counted, so launched - left is the number of workers that can
 * resume them. A wing has a stream of its own, so it must not be launched before the task's
 * launch has begun: it would run ahead of the program's stream order.
 */
void gi_wing(struct gi_client *c, struct gi_slot *s, unsigned int i, uint64_t now)
{
	struct gsched_cl_slot *line = &c->cl->slot[i];
	bool free = atomic_load(&c->gone) || atomic_load(&c->tasks->released);
	uint32_t left = gi_load(&line->left), full = c->sms * s->m;
	uint32_t window, want, present, stalled, workers;
	unsigned int k;
	CUresult rc;

	for (k = 0; s->free_wings && k < GI_WING_STREAMS; k++)
		if (s->free_wings & 1u << k && wing_begun(s, k))
			atomic_store(&s->unlimited, true);
	if (!gi_load(&line->start_ns) || gi_load(&line->finished) == s->seq || now < s->next_wing)
		return;
	if (s->tuned && !(gi_load(&c->arb->header.flags) & GSCHED_ARB_ALONE)) {
		fill_sms(c, s);
		full = c->sms * s->m;
	}
	window = free ? full : gi_window_workers(c, s->window, s->m);
	want = window < s->blocks ? window : s->blocks;
	stalled = workers_stalled(s, now);
	present = s->launched - stalled;
	present = left > present ? 0 : present - left;
	if (s->recalled && present) {
		recall(s, i, now);
		return;
	}
	/* what is still to be copied would tell the next wing to leave, too */
	if (s->recalled && recall_pending(s->cx))
		return;
	if (present >= want)
		return;
	workers = want - present;
	/* those on SMs outside the window exit at once: only a full device fills those inside */
	if (window < full)
		workers = full - present < s->blocks ? full - present : s->blocks;
	k = pick_stream(s);
	if (k == GI_WING_STREAMS) {
		if (present && (want - present) * RECALL_PART >= want && has_most_streams(s))
			recall(s, i, now);
		s->next_wing = now + WING_GAP_MIN;
		return;
	}
	if (s->recalled)
		s->next_recall = now + RECALL_PAUSE;
	rc = launch_wing(s, i, k, workers, present, free);
	if (rc) {
		gi_debug("a wing of slot %u does not launch (error %d)", i, rc);
		s->next_wing = now + WING_GAP_MAX;
		return;
	}
	gi_debug("wing of %u workers in slot %u, window %u, present %u of %u", workers, i,
		 (unsigned int)s->window, present, want);
	s->launched += workers;
	gi_store(&line->launched, s->launched);
	__atomic_fetch_add(&c->cl->header.wings, 1, __ATOMIC_RELAXED);
	s->wing_gap = s->wing_gap ? s->wing_gap * 2 : WING_GAP_MIN;
	if (s->wing_gap > WING_GAP_MAX)
		s->wing_gap = WING_GAP_MAX;
	s->next_wing = now + s->wing_gap;
}

static void close_wing(struct gi_slot *s, unsigned int k)
{
	CUstreamBatchMemOpParams op = { 0 };
	CUresult rc;

	op.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	op.writeValue.address = s->cx->words_dev + offsetof(struct gi_words, done) +
				k * sizeof(uint32_t);
	op.writeValue.value = s->wing_ticket[k];
	rc = gi_real.cuStreamBatchMemOp_v2(s->cx->wing_stream[k], 1, &op, 0);
	if (!rc)
		s->closed |= 1u << k;
	else if (rc == CUDA_ERROR_DEINITIALIZED)	/* the program ends */
		gi_store(&s->cx->words->done[k], s->wing_ticket[k]);
}

/* Of a task that has ended */
bool gi_wings_ended(struct gi_slot *s, struct gsched_cl_slot *line)
{
	uint32_t over = s->wings;
	unsigned int k;

	if (!s->wings)
		return true;
	/* its control block is not to be written once another task has it */
	if (s->recalled && recall_pending(s->cx))
		return false;
	for (k = 0; k < GI_WING_STREAMS; k++)
		if (s->wing_ticket[k] &&
		    (int32_t)(gi_load(&s->cx->words->done[k]) - s->wing_ticket[k]) < 0) {
			over--;
			if (!(s->closed & 1u << k))
				close_wing(s, k);
		}
	return over == s->wings;
}
