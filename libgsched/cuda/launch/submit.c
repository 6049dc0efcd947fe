// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A launch as a task: claims a slot, fills the slot's line in the client's page and checks the
 * lease. Then it enqueues the twin, behind the preparation of its control block and in front of its
 * done gate, or the original; from then on the agent owns the slot.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "launch/blocks.h"
#include "launch/candidate.h"
#include "launch/timing.h"

/* ---- parameters ---- */

/* Room for all of the twin's parameters and pointers to them */
static bool params_room(struct gi_slot *s, const struct gi_func *fn)
{
	const bool handles = s->form->kernel.n_references;
	const size_t end = s->form->launch_offset + sizeof(struct gsr_launch),
		     at = (end + sizeof(void *) - 1) / sizeof(void *) * sizeof(void *),
		     need = at + (fn->n_params + handles + 1) * sizeof(void *);
	unsigned int i;

	if (s->params_room < need) {
		char *more = realloc(s->params, need < 4096 ? 4096 : need);

		if (!more)
			return false;
		s->params = more;
		s->params_room = need < 4096 ? 4096 : need;
	}
	s->pointers = (void **)(s->params + at);
	for (i = 0; i < fn->n_params; i++)
		s->pointers[i] = s->params + fn->params[i].offset;
	if (handles)
		s->pointers[i++] = s->params + s->form->kernel.references_offset;
	s->pointers[i] = s->params + s->form->launch_offset;
	return true;
}

/*
 * Packs the program's parameters followed by ours. false: they do not match the kernel's
 * declaration.
 */
static bool pack_params(struct gi_slot *s, const struct gi_func *fn, void **params, void **extra)
{
	const void *buffer = NULL;
	size_t size = 0;
	unsigned int i;

	if (!params_room(s, fn))
		return false;
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

CUresult gi_forward(const struct gi_launch *l)
{
	struct gi_stream_guard guard = gi_stream_lock_shared(l->stream);
	CUresult rc = l->forward(l);

	gi_stream_unlock_shared(&guard);
	return rc;
}

CUresult gi_launch_unmanaged(const struct gi_launch *l, struct gi_ctx *cx)
{
	if (cx && cx->client && cx->client->cl)
		__atomic_fetch_add(&cx->client->cl->header.unmanaged, 1, __ATOMIC_RELAXED);
	return gi_forward(l);
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
		rc = gi_real.cuLaunchKernelEx(&config, s->form->function, s->pointers, NULL);
	} else {
		rc = gi_real.cuLaunchKernel(s->form->function, s->launched, 1, 1, l->block[0],
					    l->block[1], l->block[2], dynamic, l->stream,
					    s->pointers, NULL);
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

/* @every: one launch of its shape in so many is timed */
static CUresult launch_original(const struct gi_launch *l, struct gi_slot *s, unsigned int every)
{
	struct gi_client *c = s->cx->client;
	struct gi_timed of = { s->fn, s->graph, s->shape, s->blocks, s, s->seq };
	CUstreamBatchMemOpParams op = { 0 };
	CUresult rc;

	if (s->retires_at_launch) {
		rc = gi_forward(l);
		if (!rc)
			gi_store(&c->cl->slot[s - c->tasks->slot].retired, s->seq);
		return rc;
	}
	if (s->shape && gi_timing_due(s->shape, every))
		rc = gi_timing_launch(c, s->cx, l, gi_forward, &of);
	else
		rc = gi_forward(l);
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
 * What the kernel needs is free already: it is launched first, and the program waits for its end
 * while the arbiter is told. Not if the driver's call is what waits.
 */
static bool is_held(const struct gi_client *c)
{
	return gi_load(&c->arb->header.flags) & GSCHED_ARB_HELD && !c->launch_blocking;
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
		.poll_clocks = GI_POLL_CLOCKS,
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
	gi_order(&s->arg, s->arg.ranges || (s->form && s->form->kernel.waits),
		 gi_block_ns(s->shape));
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

CUresult gi_launch_task(const struct gi_launch *l, struct gi_ctx *cx, struct gi_client *c,
			const struct gi_candidate *k, bool *refused)
{
	const struct gi_form *form = k->form;
	struct gi_bound *bound = k->bound;
	struct gi_shape *shape = k->shape;
	struct gi_func *fn = k->fn;
	const struct gsched_arb_slot *window;
	struct gi_slot *s;
	_Atomic int *inside = NULL;
	bool launched = false, failed = false, clean = false, held, own;
	uint32_t lease;
	CUresult rc;
	int slot;

	slot = gi_ctx_prepare(cx) ? gi_slot_claim(c, cx, form) : -1;
	if (slot < 0) {
		gi_bound_put(bound, false);
		*refused = form;
		return form ? CUDA_ERROR_NOT_READY : gi_launch_unmanaged(l, cx);
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
	held = lease == GSCHED_LEASE_NOTIFY && !form && is_held(c);
	if (lease == GSCHED_LEASE_NOTIFY && !held)
		/* before the launch, so that eviction overlaps the driver's call */
		s->submitted = notify(c, s, slot, &lease);
	if (lease != GSCHED_LEASE_FREE && lease != GSCHED_LEASE_NOTIFY) {
		if (!submit_and_wait(c, s, slot)) {
			gi_slot_unclaim(c, slot, false);
			return gi_launch_unmanaged(l, cx);
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
		/* its registers may not all fit, and what is spilled needs memory for each thread */
		own = gi_own_memory(true);
		rc = clean ? launch_twin(l, s, slot, &launched, &failed) : CUDA_ERROR_NOT_READY;
		gi_own_memory(own);
		if (rc && inside)
			gi_twin_launch_end(inside);
	} else {
		rc = launch_original(l, s, held ? GI_TIMED_HELD : GI_TIMED_ASKED);
	}
	if (held && !rc)
		s->submitted = notify(c, s, slot, &lease);
	if (rc) {
		if (s->submitted)
			gsched_complete(c->g, slot, s->seq, 0, true);
		/*
		 * launched without its gate: neither context nor slot is usable any more. The
		 * launch itself did not fail if its kernel did.
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
