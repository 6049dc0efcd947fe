// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Launches. A managed launch looks up its function and shape (cached), chooses a form (choose.c)
 * and becomes a task (submit.c), or passes. Under GSCHED_LEASE_FREE this path makes no system call,
 * takes no lock but that of the table of streams, and allocates nothing, except for a twin of a
 * kernel that names texture or surface references.
 */
#include "launch/blocks.h"
#include "launch/candidate.h"
#include "launch/direct.h"
#include "launch/raise.h"
#include "launch/timing.h"

#define GRAPH_LAUNCHES	8	/* what a graph counts as in the driver's queue */

/* A launch that is no twin does not go too far ahead of those that may need a wing. */
static void stay_near(struct gi_client *c, const struct gi_launch *l)
{
	if (gi_tasks_far_ahead(c, l->graph ? GRAPH_LAUNCHES : 1))
		gi_tasks_wait_ahead(c);
}

/* Makes the driver's own call for a launch that passes, and sometimes times it. */
static CUresult forward_passing(const struct gi_launch *l, struct gi_ctx *cx, struct gi_client *c,
				const struct gi_candidate *k)
{
	struct gi_timed of = { k->fn, k->graph, k->shape, k->blocks, NULL, 0 };
	bool due;
	uint64_t ns;

	if (!gi_learns_time(l, k))
		return gi_forward(l);
	ns = atomic_load_explicit(&k->shape->predicted_ns, memory_order_relaxed);
	if (ns)
		gi_count_leased(c, ns, gi_usage(c, ns, k->blocks, k->shape->original_m));
	due = gi_timing_due(k->shape, GI_TIMED_EVERY) &&
	      !atomic_load_explicit(&gi_hot.captures, memory_order_relaxed) &&
	      !(k->fn && atomic_load_explicit(&k->fn->is_primary, memory_order_relaxed));
	atomic_fetch_add_explicit(&k->shape->launches, 1, memory_order_relaxed);
	return due ? gi_timing_launch(c, cx, l, gi_forward, &of) : gi_forward(l);
}

/*
 * Whether the launch needs no pacing. If so, it is counted in c->unpaced until uncount_unpaced(),
 * after the driver's call, and the arbiter's flags are checked again after counting it. So once the
 * arbiter has set its flags, a launch is visible either in that count or on the device.
 */
static bool count_unpaced(struct gi_client *c, bool shared)
{
	if (gi_needs_pacing(c, shared))
		return false;
	atomic_fetch_add(&c->unpaced, 1);
	if (!gi_needs_pacing(c, shared))
		return true;
	atomic_fetch_sub(&c->unpaced, 1);
	return false;
}

/*
 * The same for a launch that need not be tracked while the program's activity is reported: pace.h.
 * Clients of an MPS band come here; without MPS such launches are direct.
 */
static bool may_go_untracked(const struct gi_client *c)
{
	const uint32_t flags = gi_load(&c->arb->header.flags);

	return flags & GSCHED_ARB_REPORT && !(flags & (GSCHED_ARB_CLOSED | GSCHED_ARB_PACED)) &&
	       !atomic_load_explicit(&gi_hot.captures, memory_order_relaxed) &&
	       gi_may_skip_tracking(c);
}

static bool count_untracked(struct gi_client *c)
{
	if (!may_go_untracked(c))
		return false;
	atomic_fetch_add(&c->unpaced, 1);
	if (may_go_untracked(c)) {
		atomic_fetch_add(&c->untracked, 1);
		return true;
	}
	atomic_fetch_sub(&c->unpaced, 1);
	return false;
}

static CUresult uncount_unpaced(struct gi_client *c, CUresult rc)
{
	atomic_fetch_sub(&c->unpaced, 1);
	return rc;
}

/*
 * The driver loads a library's kernel when it becomes part of a graph, and waits for the context
 * meanwhile. So load it first, outside of the capture.
 */
static void load_captured(const struct gi_launch *l, struct gi_ctx *cx, const struct gi_client *c)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	if (!l->fn || gi_direct(c))
		return;
	gi_real.cuThreadExchangeStreamCaptureMode(&mode);
	gi_func_put(gi_func_get(l->fn, cx));
	gi_real.cuThreadExchangeStreamCaptureMode(&mode);
}

/*
 * Makes a launch without the arbiter and without a slot: only time slices and the client's share of
 * time govern it.
 */
static CUresult pass_on(const struct gi_launch *l, struct gi_ctx *cx, struct gi_client *c,
			const struct gi_candidate *k)
{
	__atomic_fetch_add(&c->cl->header.passed, 1, __ATOMIC_RELAXED);
	if (gi_blocks_asked(c) && !atomic_load_explicit(&gi_hot.captures, memory_order_relaxed))
		return gi_blocks_launch(c, cx, l, gi_forward);
	return forward_passing(l, cx, c, k);
}

/* A launch that needs neither a twin nor a slot; at most it waits for its band's turn. */
static CUresult launch_direct(const struct gi_launch *l, struct gi_ctx *cx, struct gi_client *c)
{
	static const struct gi_candidate none;
	struct gi_graph *graph;
	struct gi_func *fn;
	uint64_t batch;
	CUresult rc;

	if (count_unpaced(c, true))	/* another stream is being captured */
		return uncount_unpaced(c, pass_on(l, cx, c, &none));
	fn = l->fn ? gi_func_get(l->fn, cx) : NULL;
	graph = l->graph ? gi_graph_get(l->graph) : NULL;
	batch = gi_pace_enter(c, cx, l, graph, fn, true);
	rc = pass_on(l, cx, c, &none);
	gi_pace_leave(c, cx, l, batch, !rc, true);
	gi_graph_put(graph);
	gi_func_put(fn);
	return rc;
}

/*
 * A programmatic dependent launch overlaps its primary only if nothing is enqueued between them.
 * Primaries are learnt: the thread's previous kernel on the stream was one. Memory of functions is
 * reused for functions only, so a stale pointer in @before is harmless.
 */
static void note_order(const struct gi_launch *l, const struct gi_ctx *cx, struct gi_func *fn)
{
	static __thread struct {
		const struct gi_ctx *cx;
		CUstream stream;
		struct gi_func *fn;
	} before;

	if (l->follows && before.fn && before.cx == cx && before.stream == l->stream)
		atomic_store_explicit(&before.fn->is_primary, true, memory_order_relaxed);
	before.cx = cx;
	before.stream = l->stream;
	before.fn = fn;
}

/*
 * Launches the chosen form, within the band's turn and the share of time. The share counts where
 * the original runs, since no window limits it.
 */
static CUresult launch_chosen(const struct gi_launch *l, struct gi_ctx *cx, struct gi_client *c,
			      const struct gi_candidate *k, bool *refused)
{
	const bool passing = l->dependent || (!k->form && gi_may_pass(c, l, k));
	uint64_t batch = 0;
	CUresult rc;
	bool pace;

	*refused = false;
	if (!k->form)
		stay_near(c, l);
	if (passing && count_unpaced(c, !k->form))
		return uncount_unpaced(c, pass_on(l, cx, c, k));
	if (passing && count_untracked(c)) {
		__atomic_fetch_add(&c->cl->header.passed, 1, __ATOMIC_RELAXED);
		return uncount_unpaced(c, forward_passing(l, cx, c, k));
	}
	pace = passing || gi_needs_pacing(c, !k->form);
	if (pace)
		batch = gi_pace_enter(c, cx, l, k->graph, k->fn, !k->form);
	rc = passing ? pass_on(l, cx, c, k) : gi_launch_task(l, cx, c, k, refused);
	if (pace)
		gi_pace_leave(c, cx, l, batch, !rc, passing);
	return rc;
}

/* Its next launches of this shape need not be looked up. */
static bool is_short(const struct gi_client *c, const struct gi_launch *l,
		     const struct gi_candidate *k)
{
	uint64_t ns;

	if (k->form || !k->fn || !k->shape || l->dependent || l->opaque || l->raised ||
	    l->lowered || (l->config && l->config->numAttrs) || gi_counts_priority(c))
		return false;
	ns = atomic_load_explicit(&k->shape->predicted_ns, memory_order_relaxed);
	return ns && ns < GI_LONG_NS;
}

static CUresult launch_managed(const struct gi_launch *l, struct gi_ctx *cx, struct gi_client *c)
{
	CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
	struct gi_candidate k;
	struct gi_raised raised;
	bool refused;
	CUresult rc;

	if (atomic_load_explicit(&gi_hot.captures, memory_order_relaxed) &&
	    (gi_real.cuStreamIsCapturing(l->stream, &capture) ||
	     capture != CU_STREAM_CAPTURE_STATUS_NONE)) {
		load_captured(l, cx, c);
		l = gi_unraise(l, &raised);
		return l->forward(l);
	}
	if (!l->grid[0] || !l->grid[1] || !l->grid[2])
		return l->forward(l);
	if (gi_direct(c))
		return launch_direct(l, cx, c);
	l = gi_raise(l, cx, &raised);
	gi_choose(l, cx, c, &k);
	note_order(l, cx, k.fn);
	rc = launch_chosen(l, cx, c, &k, &refused);
	if (refused) {
		k.form = NULL;
		k.bound = NULL;
		rc = launch_chosen(l, cx, c, &k, &refused);
	}
	if (!rc && is_short(c, l, &k))
		gi_short_note(l, cx, k.shape, k.blocks);
	gi_graph_put(k.graph);
	gi_func_put(k.fn);
	return rc;
}

CUresult gi_launch(const struct gi_launch *l)
{
	struct gi_ctx *cx = gi_current_now();
	struct gi_client *c = cx ? cx->client : NULL;
	CUresult rc;
	int cancel;

	if (!c || atomic_load_explicit(&c->exiting, memory_order_relaxed))
		return l->forward(l);
	/* it takes locks, holds slots and streams, and calls the driver meanwhile */
	cancel = gi_cancel_disable();
	/* while counted here, the client keeps its arbiter and its pages, alive or dead */
	atomic_fetch_add(&c->inside, 1);
	if (!atomic_load(&c->gone)) {
		rc = launch_managed(l, cx, c);
	} else {
		stay_near(c, l);
		rc = gi_launch_unmanaged(l, cx);
	}
	atomic_fetch_sub(&c->inside, 1);
	gi_cancel_restore(cancel);
	return rc;
}
