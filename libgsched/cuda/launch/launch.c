// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Launches. A managed launch looks up its function and shape (cached), claims a slot, fills the
 * slot's line in the client's page and checks the lease. Then it enqueues the twin, behind the
 * preparation of its control block and in front of its done gate, or the original; from then on the
 * agent owns the slot. Under GSCHED_LEASE_FREE this path makes no system call, takes no lock but
 * that of the table of streams, and allocates nothing, except for a twin of a kernel that names
 * texture or surface references.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "launch/blocks.h"
#include "launch/direct.h"
#include "launch/raise.h"
#include "launch/timing.h"

/* a kernel of more waves of blocks runs only when its twin exists */
#define TRIED_WAVES	2

/* ---- parameters ---- */

/*
 * Packs the program's parameters followed by ours. false: they do not match the kernel's
 * declaration.
 */
static bool pack_params(struct gi_slot *s, const struct gi_func *fn, void **params, void **extra)
{
	size_t need = s->form->launch_offset + sizeof(struct gsr_launch), size = 0;
	const void *buffer = NULL;
	unsigned int i;

	if (s->params_room < need) {
		char *more = realloc(s->params, need < 4096 ? 4096 : need);

		if (!more)
			return false;
		s->params = more;
		s->params_room = need < 4096 ? 4096 : need;
	}
	if (params) {
		for (i = 0; i < fn->n_params; i++)
			memcpy(s->params + fn->params[i].offset, params[i], fn->params[i].size);
	} else if (extra) {
		for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
			if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
				buffer = extra[1];
			else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
				size = *(size_t *)extra[1];
			else
				return false;
		}
		if (size != fn->param_size || (fn->param_size && !buffer))
			return false;
		if (fn->param_size)
			memcpy(s->params, buffer, fn->param_size);
	} else if (fn->n_params) {
		return false;
	}
	if (s->bound)
		gi_bound_handles(s->bound, s->params + s->form->kernel.references_offset);
	memcpy(s->params + s->form->launch_offset, &s->arg, sizeof(s->arg));
	return true;
}

/* ---- enqueueing ---- */

/* Makes the driver's own call, never between the calls of another thread's twin launch. */
static CUresult forward_shared(const struct gi_launch *l)
{
	struct gi_stream_guard guard = gi_stream_lock_shared(l->stream);
	CUresult rc = l->forward(l);

	gi_stream_unlock_shared(&guard);
	return rc;
}

/*
 * The caller keeps other threads from enqueueing between these calls. *@launched: the twin was
 * enqueued, even if an error is returned. *@failed: that error is of the kernels, perhaps of this
 * one already, and every later call returns it, too.
 */
static CUresult submit_twin(const struct gi_launch *l, struct gi_slot *s, unsigned int i,
			    bool *launched, bool *failed)
{
	const uint64_t whole = s->cx->client->sms * GSCHED_CAPSM;
	const unsigned int dynamic = gi_form_dynamic(s->form, l->shared);
	size_t size = s->form->launch_offset + sizeof(struct gsr_launch);
	void *extra[] = {
		CU_LAUNCH_PARAM_BUFFER_POINTER, s->params, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
		CU_LAUNCH_PARAM_END,
	};
	CUdeviceptr control = s->cx->control + i * sizeof(struct gsr_control);
	struct gsr_launch *arg = (void *)(s->params + s->form->launch_offset);
	CUstreamBatchMemOpParams op[2] = { 0 };
	CUresult rc = CUDA_SUCCESS;

	if (s->window == whole) {
		arg->flags |= GSR_LAUNCH_WHOLE;
	} else {
		op[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
		op[0].writeValue.address = control + offsetof(struct gsr_control, relay);
		op[0].writeValue.value64 = s->window;
		rc = gi_real.cuStreamBatchMemOp_v2(l->stream, 1, op, 0);
	}
	if (!rc && s->save && !s->save->zeroed)
		rc = gi_real.cuMemcpyHtoDAsync_v2(s->save->memory, s->cx->blank + GSCHED_SLOTS,
						  sizeof(struct gsr_save), l->stream);
	rc = rc ? rc : gi_ranges_zero(s, l->stream);
	if (rc)
		return rc;
	if (l->config) {
		CUlaunchConfig config = *l->config;

		config.gridDimX = s->launched;
		config.gridDimY = config.gridDimZ = 1;
		config.sharedMemBytes = dynamic;
		config.hStream = l->stream;
		rc = gi_real.cuLaunchKernelEx(&config, s->form->function, NULL, extra);
	} else {
		rc = gi_real.cuLaunchKernel(s->form->function, s->launched, 1, 1, l->block[0],
					    l->block[1], l->block[2], dynamic, l->stream,
					    NULL, extra);
	}
	if (rc)
		return rc;
	*launched = true;
	if (s->save)
		s->save->zeroed = true;
	memset(op, 0, sizeof(op));
	op[0].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
	op[0].waitValue.address = control + offsetof(struct gsr_control, gate);
	op[0].waitValue.value = s->seq;
	op[0].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
	op[1].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	op[1].writeValue.address = s->arg.stat + offsetof(struct gsched_cl_slot, retired);
	op[1].writeValue.value = s->seq;
	rc = gi_real.cuStreamBatchMemOp_v2(l->stream, 2, op, 0);
	*failed = rc && gi_real.cuStreamQuery(l->stream) == rc;
	return rc;
}

static CUresult launch_twin(const struct gi_launch *l, struct gi_slot *s, unsigned int i,
			    bool *launched, bool *failed)
{
	struct gi_stream_guard guard;
	CUresult rc;

	*launched = *failed = false;
	if (!gi_stream_lock(&guard, l->stream))
		return CUDA_ERROR_NOT_READY;
	rc = submit_twin(l, s, i, launched, failed);
	gi_stream_unlock(&guard);
	return rc;
}

static CUresult launch_original(const struct gi_launch *l, struct gi_slot *s)
{
	struct gi_client *c = s->cx->client;
	struct gi_timed of = { s->fn, s->graph, s->shape, s->blocks, s, s->seq };
	CUstreamBatchMemOpParams op = { 0 };
	CUresult rc;

	if (s->retires_at_launch) {
		rc = forward_shared(l);
		if (!rc)
			gi_store(&c->cl->slot[s - c->tasks->slot].retired, s->seq);
		return rc;
	}
	if (s->shape && gi_timing_due(s->shape, GI_TIMED_ASKED))
		rc = gi_timing_launch(c, s->cx, l, forward_shared, &of);
	else
		rc = forward_shared(l);
	if (rc)
		return rc;
	op.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	op.writeValue.address = s->arg.stat + offsetof(struct gsched_cl_slot, retired);
	op.writeValue.value = s->seq;
	rc = gi_real.cuStreamBatchMemOp_v2(l->stream, 1, &op, 0);
	if (rc) {
		gi_debug("the end of a launch cannot be marked (error %d)", rc);
		/* nobody would ever hear of it: as above */
		gi_store(&c->cl->slot[s - c->tasks->slot].retired, s->seq);
	}
	return CUDA_SUCCESS;
}

/*
 * How many of the @full twin blocks that fit an SM to use. Beside others all: their blocks would
 * come where there is room, and stand still, as an SM serves its oldest warps first.
 */
static unsigned int tuned_m(struct gi_client *c, struct gi_slot *s, unsigned int full)
{
	if (c->workers)
		return c->workers < full ? c->workers : full;
	if (!(gi_load(&c->arb->header.flags) & GSCHED_ARB_ALONE))
		return full;
	s->tuned = true;
	return gi_tune_workers(&s->shape->tune, full,
			       atomic_load_explicit(&s->shape->launches, memory_order_relaxed));
}

static unsigned int carveout_for(const struct gi_client *c, const struct gi_slot *s,
				 enum gi_form_id which)
{
	unsigned int full = gi_form_m(s->fn, s->shape, which);
	unsigned int shared = s->form->shared + gi_form_dynamic(s->form, s->shared);

	if (!(gi_load(&c->arb->header.flags) & GSCHED_ARB_ALONE))
		return gi_tune_common_carveout(full, shared, c->reserved, c->sm_shared);
	return which == GI_TWIN ?
	       gi_tune_carveout(full, s->m, shared, c->reserved, c->sm_shared) : 0;
}

/*
 * Sets the shared memory carveout of the form, unless the program has chosen one. Makes no driver
 * call where nothing changes.
 */
static void set_carveout(const struct gi_client *c, const struct gi_slot *s)
{
	enum gi_form_id which = (enum gi_form_id)(s->form - s->fn->form);
	struct gi_form *form = &s->fn->form[which];
	unsigned int carveout;

	if (atomic_load_explicit(&s->fn->own_carveout, memory_order_relaxed))
		return;
	carveout = carveout_for(c, s, which);
	if (atomic_exchange_explicit(&form->carveout, carveout, memory_order_relaxed) != carveout)
		gi_real.cuFuncSetAttribute(form->function,
					   CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
					   carveout ? (int)carveout :
					   CU_SHAREDMEM_CARVEOUT_DEFAULT);
}

/* ---- the arbiter ---- */

/* Time of a block-task in a full launch, as measured before; 0: unknown. */
static uint64_t block_ns(struct gi_shape *shape)
{
	return shape ? atomic_load_explicit(&shape->block_ns, memory_order_relaxed) : 0;
}

/* Submits the task and waits for the grant. false: there is no arbiter any more, or it refused. */
static bool submit_and_wait(struct gi_client *c, struct gi_slot *s, unsigned int slot)
{
	struct gsched_task task;
	bool retried = false;

	for (;;) {
		gi_describe_task(&task, c, s, slot);
		if (!gsched_submit_stream(c->g, &task, s->stream)) {
			s->window = task.window;
			return true;
		}
		if (errno == EINTR)
			continue;
		/*
		 * The lease was withdrawn after we read it: the arbiter has adopted the task from
		 * the page, with less information.
		 */
		if (errno == EBUSY && !retried) {
			retried = true;
			gsched_complete(c->g, slot, s->seq, 0, true);
			continue;
		}
		if (errno == EPIPE || errno == ENODEV || errno == ENOTCONN || errno == ECONNRESET)
			gi_client_gone(c, "the arbiter is gone");
		else
			gi_why(c, "the arbiter refused a launch: %s", strerror(errno));
		return false;
	}
}

/*
 * Tells the arbiter of the task, under GSCHED_LEASE_NOTIFY. If it has not read for a while, *@lease
 * becomes GSCHED_LEASE_NONE: the launch waits for it.
 */
static bool notify(struct gi_client *c, struct gi_slot *s, unsigned int slot, uint32_t *lease)
{
	struct gsched_task task;

	gi_describe_task(&task, c, s, slot);
	if (!gsched_submit_stream_async(c->g, &task, s->stream))
		return true;
	if (errno == ENOBUFS)
		*lease = GSCHED_LEASE_NONE;
	else
		gi_client_gone(c, "the arbiter is gone");
	return false;
}

/*
 * As many workers as fit the device, also where the window is smaller: the hardware puts them on
 * the emptiest SM first, so fewer would leave room beside them on each SM of the window, where
 * blocks of others could stand still. Those outside the window leave at once.
 */
static uint32_t workers_for(const struct gi_client *c, const struct gi_slot *s)
{
	uint32_t full = c->sms * s->m;

	return s->blocks < full ? s->blocks : full;
}

/*
 * The agent may nap for longer than the task takes. Where others wait for what it has, they would
 * wait for that.
 */
static bool agent_comes_late(const struct gi_client *c, const struct gi_slot *s)
{
	return atomic_load(&c->tasks->idle) ||
	       (gi_load(&c->arb->header.lease) != GSCHED_LEASE_FREE &&
		atomic_load(&c->tasks->next_pass) > s->launch_ns + s->predicted_ns);
}

/*
 * The resumable form costs a little more and is another module to load. It is used only for long
 * block-tasks, and only while another client may have to wait for them.
 */
static bool wants_resumable(struct gi_client *c, const struct gi_launch *l, struct gi_func *fn,
			    struct gi_shape *shape, unsigned int *m)
{
	const struct gsched_arb_header *h = &c->arb->header;
	bool temporal = gi_load(&h->mode) == GSCHED_MODE_TEMPORAL;

	/*
	 * In spatial mode the arbiter decides whether the SMs held for a newcomer cost more than
	 * this form.
	 */
	if (!temporal && !(gi_load(&h->flags) & GSCHED_ARB_RESUMABLE) && !c->always_resumable)
		return false;
	/* a more important client may be idle now and come while the kernel runs */
	if (block_ns(shape) < GI_RESUME_NS ||
	    (gi_load(&h->lease) == GSCHED_LEASE_FREE &&
	     gi_load(&h->top_priority) <= gi_load(&h->priority)))
		return false;
	if (!gi_form_ask(fn, GI_RESUMABLE) ||
	    (fn->form[GI_RESUMABLE].warp_rows && l->block[0] % 32))
		return false;
	/* where it cannot suspend everywhere, block-tasks may be long: the hold is needed anyway */
	if (!temporal && !fn->form[GI_RESUMABLE].everywhere && !c->always_resumable)
		return false;
	*m = gi_form_m(fn, shape, GI_RESUMABLE);
	if (*m && !gi_save_records(c, gi_save_stride(&fn->form[GI_RESUMABLE], l->block, l->shared),
				   *m))
		return false;
	/* a lower occupancy would cost more than the form is worth */
	return *m && *m >= gi_form_m(fn, shape, GI_TWIN);
}

static uint64_t blocks_of(const struct gi_launch *l)
{
	return (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
}

/* It has a twin, or may get one on request. */
static bool has_twin(const struct gi_func *fn)
{
	return atomic_load_explicit(&fn->form[GI_TWIN].state, memory_order_acquire) != GI_TWIN_NONE;
}

/* Hardware priorities make room for the band's more important programs while blocks are short. */
static bool hardware_yields(const struct gi_client *c)
{
	return gi_load(&c->arb->header.flags) & GSCHED_ARB_YIELDS;
}

/*
 * Counts consecutive launches on streams that the hardware prefers. GI_PRIORITISED of them show
 * that others in the band yield to the program by themselves; one launch on another stream starts
 * the count again. @l: of a program that is not alone in its band.
 */
static bool note_priority(struct gi_client *c, const struct gi_launch *l)
{
	unsigned int n = atomic_load_explicit(&c->prioritised, memory_order_relaxed);
	bool first = l->raised || (!l->lowered && gi_stream_preferred(l->stream));

	if (!first && n)
		atomic_store_explicit(&c->prioritised, 0, memory_order_relaxed);
	else if (first && n < GI_PRIORITISED)
		atomic_store_explicit(&c->prioritised, n + 1, memory_order_relaxed);
	return first;
}

/* No other client shares the band. */
static bool alone_in_band(const struct gi_client *c)
{
	const struct gsched_arb_header *h = &c->arb->header;

	return gi_load(&h->lease) == GSCHED_LEASE_FREE || gi_load(&h->flags) & GSCHED_ARB_ALONE;
}

/* Others in the band must know of its launches, for their windows or because they wait for them. */
static bool others_depend_on(const struct gi_client *c)
{
	return !alone_in_band(c) && !(gi_load(&c->arb->header.flags) & GSCHED_ARB_PASS);
}

/*
 * Whether to run the original to learn its time. This is for the first launches of a kernel that is
 * not known to be long and has few waves of blocks, while nobody else is in the band and no quota
 * is set. They end about as soon as a twin could be evicted, and short kernels never wait for a
 * twin.
 */
static bool may_try(const struct gi_client *c, const struct gi_launch *l, struct gi_shape *shape,
		    uint64_t leased)
{
	const struct gsched_arb_header *h = &c->arb->header;

	return gi_load(&h->lease) == GSCHED_LEASE_FREE &&
	       gi_window_workers(c, leased, 1) == c->sms &&
	       gi_time_share(h) >= GSCHED_SHARE_ALL &&
	       blocks_of(l) <= TRIED_WAVES * gi_window_workers(c, leased, shape->original_m) &&
	       atomic_load_explicit(&shape->launches, memory_order_relaxed) < GI_TIMED_FIRST;
}

/*
 * A grid barrier that the program implements itself works only if the whole grid is resident at
 * once. So a kernel whose blocks may wait for each other, and whose grid fits the device, must not
 * be launched with the fewer workers of a window: they would wait for blocks that no worker can
 * start. A larger grid has no such barrier, and its blocks can only wait for lower ones.
 */
static bool must_be_resident(const struct gi_client *c, const struct gi_launch *l,
			     struct gi_func *fn, const struct gi_shape *shape)
{
	if (!fn->form[GI_TWIN].kernel.waits || blocks_of(l) > (uint64_t)c->sms * shape->original_m)
		return false;
	if (!atomic_exchange_explicit(&fn->resident, true, memory_order_relaxed))
		gi_why(c, "%s: tier launch: its blocks may wait for each other, and all fit the "
		       "device at once", fn->form[GI_TWIN].kernel.name);
	return true;
}

/*
 * Chooses the form, NULL for the original. A twin must exist, fit, be long enough, and have more
 * blocks than run at once. *@m: how many of its blocks an SM hosts.
 */
static const struct gi_form *choose_form(struct gi_client *c, const struct gi_launch *l,
					 struct gi_func *fn, struct gi_shape *shape,
					 uint64_t leased, bool first, unsigned int *m)
{
	uint64_t predicted;

	if (!fn || !shape || l->opaque || fn->opaque || c->queues < GI_QUEUES_LEAST ||
	    atomic_load_explicit(&gi_green, memory_order_relaxed))
		return NULL;
	/* a twin's grid has one dimension; the driver reports sizes that are invalid */
	if (l->grid[0] > INT32_MAX || l->grid[1] > UINT16_MAX || l->grid[2] > UINT16_MAX ||
	    blocks_of(l) > GSR_BLOCKS_MAX)
		return NULL;
	if (!has_twin(fn))
		return NULL;
	if (blocks_of(l) <= gi_window_workers(c, leased, shape->original_m))
		return NULL;
	predicted = atomic_load_explicit(&shape->predicted_ns, memory_order_relaxed);
	if (predicted && predicted < GI_LONG_NS)
		return NULL;
	/* hardware priorities make room as fast as a window does, but do not enforce a quota */
	if (hardware_yields(c) && !first && block_ns(shape) &&
	    block_ns(shape) <= GI_SHORT_BLOCK_NS && gi_window_workers(c, leased, 1) == c->sms)
		return NULL;
	if (!predicted && may_try(c, l, shape, leased))
		return NULL;
	if (!gi_twin_wait(fn) || (fn->form[GI_TWIN].warp_rows && l->block[0] % 32))
		return NULL;
	if (must_be_resident(c, l, fn, shape))
		return NULL;
	if (wants_resumable(c, l, fn, shape, m))
		return &fn->form[GI_RESUMABLE];
	*m = gi_form_m(fn, shape, GI_TWIN);
	return *m ? &fn->form[GI_TWIN] : NULL;
}

/* What is known about a launch before it claims a slot */
struct candidate {
	struct gi_func *fn;
	struct gi_graph *graph;
	struct gi_shape *shape;
	const struct gi_form *form;	/* NULL: the original */
	struct gi_bound *bound;
	unsigned int m;
	uint64_t blocks, leased;
};

/* The twin could be launched instead. */
static bool has_choice(const struct gi_launch *l, const struct candidate *k)
{
	return k->fn && k->shape && !l->opaque && !k->fn->opaque && has_twin(k->fn);
}

/*
 * A kernel of at least this size is on the device and known to the arbiter, and no client is more
 * important.
 */
static bool is_covered(const struct gi_client *c, const struct candidate *k)
{
	const struct gsched_arb_header *h = &c->arb->header;

	return gi_load(&h->mode) != GSCHED_MODE_TEMPORAL &&
	       gi_load(&h->top_priority) <= gi_load(&h->priority) && gi_slot_covers(c, k->blocks);
}

/*
 * A launch that needs no window, of a client that is alone in its band or whose launches nobody
 * there depends on. It passes without the arbiter and costs nothing. A kernel that has a twin, but
 * is too short or too small for it, may pass too.
 */
static bool may_pass(const struct gi_client *c, const struct gi_launch *l,
		     const struct candidate *k)
{
	const struct gsched_arb_header *h = &c->arb->header;

	if (others_depend_on(c) && !hardware_yields(c) && !is_covered(c, k))
		return false;
	/* in temporal mode other bands are evicted for clients that submit their tasks */
	return !(has_choice(l, k) && gi_load(&h->mode) == GSCHED_MODE_TEMPORAL &&
		 gi_load(&h->lease) != GSCHED_LEASE_FREE);
}

/* Its GPU time is worth learning: it is a graph, or a kernel that has a twin. */
static bool learns_time(const struct gi_launch *l, const struct candidate *k)
{
	return k->shape && !l->dependent && (k->graph || has_choice(l, k));
}

/* Makes the driver's own call for a launch that passes, and sometimes times it. */
static CUresult forward_passing(const struct gi_launch *l, struct gi_ctx *cx, struct gi_client *c,
				const struct candidate *k)
{
	struct gi_timed of = { k->fn, k->graph, k->shape, k->blocks, NULL, 0 };
	bool due;
	uint64_t ns;

	if (!learns_time(l, k))
		return forward_shared(l);
	ns = atomic_load_explicit(&k->shape->predicted_ns, memory_order_relaxed);
	if (ns)
		gi_count_leased(c, ns, k->blocks, k->shape->original_m);
	due = gi_timing_due(k->shape, GI_TIMED_EVERY) &&
	      !atomic_load_explicit(&gi_hot.captures, memory_order_relaxed) &&
	      !(k->fn && atomic_load_explicit(&k->fn->is_primary, memory_order_relaxed));
	atomic_fetch_add_explicit(&k->shape->launches, 1, memory_order_relaxed);
	return due ? gi_timing_launch(c, cx, l, forward_shared, &of) : forward_shared(l);
}

/* Whether the arbiter wants this launch to wait for a turn, to be bounded, or to be reported. */
static bool needs_pacing(const struct gi_client *c, bool shared)
{
	const struct gsched_arb_header *h = &c->arb->header;

	if (atomic_load_explicit(&c->stop, memory_order_relaxed))
		return false;
	return gi_load(&h->flags) & (GSCHED_ARB_CLOSED | GSCHED_ARB_REPORT | GSCHED_ARB_PACED) ||
	       (shared && gi_time_share(h) < GSCHED_SHARE_ALL);
}

/*
 * Whether the launch needs no pacing. If so, it is counted in c->unpaced until uncount_unpaced(),
 * after the driver's call, and the arbiter's flags are checked again after counting it. So once the
 * arbiter has set its flags, a launch is visible either in that count or on the device.
 */
static bool count_unpaced(struct gi_client *c, bool shared)
{
	if (needs_pacing(c, shared))
		return false;
	atomic_fetch_add(&c->unpaced, 1);
	if (!needs_pacing(c, shared))
		return true;
	atomic_fetch_sub(&c->unpaced, 1);
	return false;
}

/*
 * The same for a launch that need not be tracked while the program's activity is reported: pace.h.
 * Clients of an MPS band come here; without MPS such launches are direct.
 */
static bool may_go_untracked(const struct gi_client *c, bool shared)
{
	const struct gsched_arb_header *h = &c->arb->header;
	const uint32_t flags = gi_load(&h->flags);

	return flags & GSCHED_ARB_REPORT && !(flags & (GSCHED_ARB_CLOSED | GSCHED_ARB_PACED)) &&
	       !(shared && gi_time_share(h) < GSCHED_SHARE_ALL) &&
	       !atomic_load_explicit(&gi_hot.captures, memory_order_relaxed) &&
	       gi_may_skip_tracking(c);
}

static bool count_untracked(struct gi_client *c, bool shared)
{
	if (!may_go_untracked(c, shared))
		return false;
	atomic_fetch_add(&c->unpaced, 1);
	if (may_go_untracked(c, shared)) {
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

static CUresult launch_unmanaged(const struct gi_launch *l, struct gi_ctx *cx)
{
	if (cx && cx->client && cx->client->cl)
		__atomic_fetch_add(&cx->client->cl->header.unmanaged, 1, __ATOMIC_RELAXED);
	return forward_shared(l);
}

/*
 * Somebody more important may have SMs held for its blocks, which go to single free places on other
 * SMs all the same. Who a kernel waits for may need such a place.
 */
static uint32_t leave_together(const struct gi_client *c, const struct gi_slot *s)
{
	const struct gsched_arb_header *h = &c->arb->header;

	if (s->form && s->form->kernel.waits)
		return 0;
	return gi_load(&h->top_priority) > gi_load(&h->priority) ? GSR_LAUNCH_TOGETHER : 0;
}

static void fill_slot(struct gi_client *c, struct gi_ctx *cx, struct gi_slot *s, unsigned int slot,
		      const struct gi_launch *l)
{
	s->weight = GSCHED_CAPSM / s->m;
	s->arg = (struct gsr_launch){
		.control = cx->control + slot * sizeof(struct gsr_control),
		.window = cx->arb + offsetof(struct gsched_arb_page, slot) +
			  slot * sizeof(struct gsched_arb_slot),
		.stat = cx->cl + offsetof(struct gsched_cl_page, slot) +
			slot * sizeof(struct gsched_cl_slot),
		.grid = { l->grid[0], l->grid[1], l->grid[2] },
		.seq = s->seq, .weight = s->weight, .poll_quarter = GI_POLL_NS / 4,
		.fetch_ns = GI_FETCH_NS, .fetch_max = GI_FETCH_MAX, .workers = c->sms * s->m,
		.flags = c->dispatch | leave_together(c, s),
		.last_warp = (l->block[0] * l->block[1] * l->block[2] - 1) / 32,
	};
	gi_ranges_use(s, slot);
	memcpy(s->block, l->block, sizeof(s->block));
	s->shared = l->shared;
	if (s->form && s->form == &s->fn->form[GI_RESUMABLE]) {
		size_t stride = gi_save_stride(s->form, s->block, s->shared);
		unsigned int records = gi_save_records(c, stride, s->m);

		/* a suspended block-task would delay the others of its fetch */
		s->arg.fetch_max = 1;
		gi_save_take(s, sizeof(struct gsr_save) + stride * c->sms * records);
		if (s->save) {
			s->arg.save = s->save->memory;
			s->arg.save_stride = stride;
			s->arg.save_per_sm = records;
			s->arg.save_sms = c->sms;
		}
	}
	gi_order(&s->arg, s->arg.ranges || (s->form && s->form->kernel.waits), block_ns(s->shape));
	s->submitted = false;
	s->retires_at_launch = !s->form && s->fn &&
			       atomic_load_explicit(&s->fn->is_primary, memory_order_relaxed);
	s->integral = 0;
	s->wings = 0;
	s->wing_gap = 0;
	s->next_wing = 0;
	s->recalled = false;
	s->next_recall = 0;
	s->free_wings = 0;
	s->closed = 0;
	atomic_store_explicit(&s->unlimited, false, memory_order_relaxed);
	memset(s->wing_ticket, 0, sizeof(s->wing_ticket));
	memset(s->wing_count, 0, sizeof(s->wing_count));
}

/* Fills the slot in the page, seq last: from then on the arbiter may find the task. */
static void publish_task(const struct gi_client *c, const struct gi_slot *s, unsigned int slot)
{
	struct gsched_cl_slot *line = &c->cl->slot[slot];
	struct gsched_task task;

	gi_describe_task(&task, c, s, slot);
	line->tier = task.tier;
	line->blocks_per_sm = task.blocks_per_sm;
	line->intensity = task.intensity;
	line->blocks = task.blocks;
	line->predicted_ns = task.predicted_ns;
	line->block_ns = task.block_ns;
	line->stream = s->stream;
	line->launch_ns = s->launch_ns;
	line->launched = s->launched;
	line->start_ns = 0;
	line->end_ns = 0;
	line->left = 0;
	line->seen_limit = 0;
	gi_store(&line->seq, s->seq);
	atomic_thread_fence(memory_order_seq_cst);
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

/* Under CUDA_LAUNCH_BLOCKING the driver has waited for the first workers, not for wings. */
static CUresult wait_for_task(CUstream stream)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUresult rc;

	gi_real.cuThreadExchangeStreamCaptureMode(&mode);
	rc = gi_real.cuStreamSynchronize(stream);
	gi_real.cuThreadExchangeStreamCaptureMode(&mode);
	return rc;
}

/*
 * Launches a task of its own: slot, then lease or grant, then launch. *@refused: it cannot be a
 * twin now, and nothing was launched; the candidate's bound references have been released.
 */
static CUresult launch_task(const struct gi_launch *l, struct gi_ctx *cx, struct gi_client *c,
			    const struct candidate *k, bool *refused)
{
	const struct gi_form *form = k->form;
	struct gi_bound *bound = k->bound;
	struct gi_shape *shape = k->shape;
	struct gi_func *fn = k->fn;
	const struct gsched_arb_slot *window;
	struct gi_slot *s;
	_Atomic int *inside = NULL;
	bool launched = false, failed = false, clean = false;
	uint32_t lease;
	CUresult rc;
	int slot;

	slot = gi_ctx_prepare(cx) ? gi_slot_claim(c, cx, form) : -1;
	if (slot < 0) {
		gi_bound_put(bound, false);
		*refused = form;
		return form ? CUDA_ERROR_NOT_READY : launch_unmanaged(l, cx);
	}
	s = &c->tasks->slot[slot];
	if (!++s->seq)
		s->seq = 1;
	s->cx = cx;
	s->stream = gi_stream_id(cx, l->stream);
	s->fn = gi_func_hold(fn);
	s->form = form;
	s->bound = bound;
	s->shape = shape;
	s->graph = gi_graph_hold(k->graph);
	if (form && !gi_gate_reserve(c, slot)) {
		gi_slot_unclaim(c, slot, false);
		*refused = true;
		return CUDA_ERROR_NOT_READY;
	}
	s->blocks = k->blocks;
	s->tier = form ? GSCHED_TIER_BLOCK : GSCHED_TIER_LAUNCH;
	s->m = form ? k->m : shape ? shape->original_m : 1;
	s->tuned = false;
	if (form && form == &fn->form[GI_TWIN])
		s->m = tuned_m(c, s, k->m);
	s->predicted_ns = shape ?
			  atomic_load_explicit(&shape->predicted_ns, memory_order_relaxed) : 0;
	fill_slot(c, cx, s, slot, l);
	if (form && !pack_params(s, fn, l->params, l->extra)) {
		gi_slot_unclaim(c, slot, false);
		*refused = true;
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (gi_blocks_asked(c))
		gi_blocks_unmeasured(c);
	window = &c->arb->slot[slot];
	s->generation = gi_load(&window->generation);
	s->window = gi_load(&window->window);
	if (!s->window)
		s->window = k->leased;
	s->launched = form ? workers_for(c, s) : 0;
	s->launch_ns = gi_now();
	publish_task(c, s, slot);
	lease = gi_load(&c->arb->header.lease);
	if (lease == GSCHED_LEASE_NOTIFY)
		/* before the launch, so that eviction overlaps the driver's call */
		s->submitted = notify(c, s, slot, &lease);
	if (lease != GSCHED_LEASE_FREE && lease != GSCHED_LEASE_NOTIFY) {
		if (!submit_and_wait(c, s, slot)) {
			gi_slot_unclaim(c, slot, false);
			return launch_unmanaged(l, cx);
		}
		s->submitted = true;
		s->launch_ns = gi_now();
	}
	s->window_since = s->launch_ns;
	if (form) {
		inside = gi_twin_launch_begin(c, s, l->stream);
		clean = inside && gi_control_claim(cx, slot);
		if (inside)
			set_carveout(c, s);
		rc = clean ? launch_twin(l, s, slot, &launched, &failed) : CUDA_ERROR_NOT_READY;
		if (rc && inside)
			gi_twin_launch_end(inside);
	} else {
		rc = launch_original(l, s);
	}
	if (rc) {
		if (s->submitted)
			gsched_complete(c->g, slot, s->seq, 0, true);
			/*
			 * launched without its gate: neither context nor slot is usable any more.
			 * The launch itself did not fail if its kernel did.
			 */
		if (launched) {
			gi_slot_lose(c, slot);
			return failed && !c->launch_blocking ? CUDA_SUCCESS : rc;
		}
		if (clean)
			gi_control_release(cx, slot);
			/* if the save area was to be zeroed, the stream may still do it later */
		gi_slot_unclaim(c, slot, s->save && !s->save->zeroed);
			/* the original is tried next, so the program gets the driver's own error */
		*refused = form;
		return rc;
	}
	__atomic_fetch_add(&c->cl->header.managed[s->tier], 1, __ATOMIC_RELAXED);
	if (s->arg.save)
		__atomic_fetch_add(&c->cl->header.resumable, 1, __ATOMIC_RELAXED);
	if (shape)
		atomic_fetch_add_explicit(&shape->launches, 1, memory_order_relaxed);
	gi_slot_run(c, slot);
	if (form)
		gi_twin_launch_end(inside);
	if (agent_comes_late(c, s))
		gi_agent_wake(c);
	return form && c->launch_blocking ? wait_for_task(l->stream) : CUDA_SUCCESS;
}

/*
 * Makes a launch without the arbiter and without a slot: only time slices and the client's share of
 * time govern it.
 */
static CUresult pass_on(const struct gi_launch *l, struct gi_ctx *cx, struct gi_client *c,
			const struct candidate *k)
{
	__atomic_fetch_add(&c->cl->header.passed, 1, __ATOMIC_RELAXED);
	if (gi_blocks_asked(c) && !atomic_load_explicit(&gi_hot.captures, memory_order_relaxed))
		return gi_blocks_launch(c, cx, l, forward_shared);
	return forward_passing(l, cx, c, k);
}

/* A launch that needs neither a twin nor a slot; at most it waits for its band's turn. */
static CUresult launch_direct(const struct gi_launch *l, struct gi_ctx *cx, struct gi_client *c)
{
	static const struct candidate none;
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
			      const struct candidate *k, bool *refused)
{
	const bool passing = l->dependent || (!k->form && may_pass(c, l, k));
	uint64_t batch = 0;
	CUresult rc;
	bool pace;

	*refused = false;
	if (passing && count_unpaced(c, !k->form))
		return uncount_unpaced(c, pass_on(l, cx, c, k));
	if (passing && count_untracked(c, !k->form)) {
		__atomic_fetch_add(&c->cl->header.passed, 1, __ATOMIC_RELAXED);
		return uncount_unpaced(c, forward_passing(l, cx, c, k));
	}
	pace = passing || needs_pacing(c, !k->form);
	if (pace)
		batch = gi_pace_enter(c, cx, l, k->graph, k->fn, !k->form);
	rc = passing ? pass_on(l, cx, c, k) : launch_task(l, cx, c, k, refused);
	if (pace)
		gi_pace_leave(c, cx, l, batch, !rc, passing);
	return rc;
}

static CUresult launch_managed(const struct gi_launch *l, struct gi_ctx *cx, struct gi_client *c)
{
	CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
	struct candidate k = { .blocks = blocks_of(l) };
	struct gi_raised raised;
	bool first = false, refused;
	CUresult rc;
	int slot;

	if (atomic_load_explicit(&gi_hot.captures, memory_order_relaxed) &&
	    (gi_real.cuStreamIsCapturing(l->stream, &capture) ||
	     capture != CU_STREAM_CAPTURE_STATUS_NONE)) {
		load_captured(l, cx, c);
		l = gi_unraise(l, &raised);
		return l->forward(l);
	}
	if (!k.blocks)
		return l->forward(l);
	if (gi_direct(c))
		return launch_direct(l, cx, c);
	l = gi_raise(l, cx, &raised);
	if (l->fn && (!l->dependent || needs_pacing(c, true))) {
		k.fn = gi_func_get(l->fn, cx);
			/*
			 * without a twin, and with no one who depends on its launches, there is
			 * nothing to learn
			 */
		if (k.fn && !l->dependent && (has_twin(k.fn) || others_depend_on(c)))
			k.shape = gi_shape_get(k.fn, k.blocks,
					       l->block[0] * l->block[1] * l->block[2], l->shared);
	}
	note_order(l, cx, k.fn);
	k.graph = l->graph ? gi_graph_get(l->graph) : NULL;
	if (k.graph) {
		k.shape = &k.graph->shape;
		k.blocks = k.graph->blocks < UINT32_MAX ? k.graph->blocks : c->sms;
	}
	/* the window of a free slot shows what the group may use */
	slot = __builtin_ctzll(~gi_slots_taken(c->tasks) | 1ull << 63);
	k.leased = gi_load(&c->arb->slot[slot].window);
	if (!k.leased)
		k.leased = c->sms * GSCHED_CAPSM;
	if (!alone_in_band(c))
		first = note_priority(c, l);
	/* while the time is unknown, do not leave it to the next timed launch to find out */
	if (k.shape && !atomic_load_explicit(&k.shape->predicted_ns, memory_order_relaxed))
		gi_timings_poll(c);
	k.form = choose_form(c, l, k.fn, k.shape, k.leased, first, &k.m);
	if (k.form && k.form->kernel.n_references && !(k.bound = gi_bound_take(k.fn, k.form)))
		k.form = NULL;
	rc = launch_chosen(l, cx, c, &k, &refused);
	if (refused) {
		k.form = NULL;
		k.bound = NULL;
		rc = launch_chosen(l, cx, c, &k, &refused);
	}
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
	rc = atomic_load(&c->gone) ? launch_unmanaged(l, cx) : launch_managed(l, cx, c);
	atomic_fetch_sub(&c->inside, 1);
	gi_cancel_restore(cancel);
	return rc;
}
