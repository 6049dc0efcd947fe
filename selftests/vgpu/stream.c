// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Streams as queues of operations: order, the default stream's rules, waiting. The engine runs what
 * stands at the heads.
 */
#include <stdlib.h>
#include "pool.h"

struct vg_op *vg_op_new(enum vg_op_kind kind)
{
	struct vg_op *op = calloc(1, sizeof(*op));

	if (op)
		op->kind = kind;
	return op;
}

void vg_mark_put(struct vg_mark *m)
{
	if (m && !--m->refs)
		free(m);
}

void vg_op_free(struct vg_op *op)
{
	switch (op->kind) {
	case VG_OP_KERNEL:
		free(op->kernel.params);
		vg_references_put(op->kernel.references, op->kernel.n_references);
		vgpu_watch_free(op->kernel.launch.watch);
		break;
	case VG_OP_COPY:
		free(op->copy.staged);
		break;
	case VG_OP_RECORD:
	case VG_OP_WAIT_EVENT:
		vg_mark_put(op->mark);
		break;
	case VG_OP_ALLOC:
		if (op->alloc.mem)
			vg_graph_mem_put(op->alloc.mem);
		break;
	case VG_OP_GRAPH:
		vg_run_free(op->run);
		break;
	default:
		break;
	}
	free(op);
}

struct CUstream_st *vg_stream_new(struct CUctx_st *ctx, unsigned int flags, int priority)
{
	struct CUstream_st *s = vg_object_new(VG_STREAM, sizeof(*s));

	if (!s)
		return NULL;
	s->ctx = ctx;
	s->flags = flags;
	s->priority = priority;
	s->id = ++vg.ids;
	if (vg.connections)
		s->connection = ctx->n_streams++ % vg.connections;
	s->next = ctx->streams;
	ctx->streams = s;
	return s;
}

void vg_stream_free(struct CUstream_st *s)
{
	struct CUstream_st **p = &s->ctx->streams;

	vg_capture_drop(s);
	while (*p && *p != s)
		p = &(*p)->next;
	if (*p)
		*p = s->next;
	vg_object_free(VG_STREAM, s);
}

/* A thread's own default stream in one context */
struct per_thread {
	struct per_thread *next;
	uint64_t ctx_id;
	struct CUstream_st *stream;
};
static __thread struct per_thread *per_thread;

static struct CUstream_st *per_thread_stream(struct CUctx_st *ctx)
{
	struct per_thread *t;

	for (t = per_thread; t; t = t->next)
		if (t->ctx_id == ctx->id)
			return t->stream;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->ctx_id = ctx->id;
	t->stream = vg_stream_new(ctx, 0, VG_LEAST_PRIORITY);
	if (!t->stream) {
		free(t);
		return NULL;
	}
	t->next = per_thread;
	per_thread = t;
	return t->stream;
}

CUresult vg_stream_get(CUstream handle, bool own, struct CUctx_st *ctx, struct CUstream_st **out)
{
	CUresult r;

	if (!handle)
		handle = own ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
	if (handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
		if (!ctx)
			return CUDA_ERROR_INVALID_CONTEXT;
		*out = handle == CU_STREAM_LEGACY ? ctx->legacy : per_thread_stream(ctx);
		return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	}
	do {
		if (!vg_handle_is(handle, VG_STREAM) || handle->dying)
			return CUDA_ERROR_INVALID_HANDLE;
	} while (vg_await(handle->ctx, &r));
	*out = handle;
	return r;
}

static void queue(struct CUstream_st *s, struct vg_op *op)
{
	op->stream = s;
	op->seq = ++vg.seq;
	if (s->tail)
		s->tail->next = op;
	else
		s->head = op;
	s->tail = op;
	s->n_ops++;
}

static void free_all(struct vg_op *op)
{
	while (op) {
		struct vg_op *next = op->next;

		vg_op_free(op);
		op = next;
	}
}

CUresult vg_push(struct CUstream_st *s, struct vg_op *op)
{
	CUresult r;

	if (s->capture)
		return vg_capture_op(s, op);
	r = vg_capture_implicit(s);
	if (!r)
		r = vg_wait_room(s);
	if (r) {
		free_all(op);
		return r;
	}
	while (op) {
		struct vg_op *next = op->next;

		op->next = NULL;
		queue(s, op);
		op = next;
	}
	vg_kick();
	return CUDA_SUCCESS;
}

CUresult vg_push_wait(struct CUstream_st *s, struct vg_op *op)
{
	CUresult r = s->capture ? vg_capture_forbids(s) : vg_capture_implicit(s);
	const struct vg_gpu *gpu = s->ctx->gpu;
	bool done = false;

	if (r) {
		free_all(op);
		return r;
	}
	/* cppcheck-suppress autoVariables ; waited for below */
	op->done = &done;
	queue(s, op);
	vg_kick();
	while (!done)
		pthread_cond_wait(&vg.changed, &vg.lock);
	return gpu->sticky;
}

static bool passed(const struct CUstream_st *s, uint64_t seq)
{
	return !s->head || s->head->seq > seq;
}

CUresult vg_wait_stream(struct CUstream_st *s)
{
	uint64_t seq = vg.seq, id = s->id;
	const struct vg_gpu *gpu = s->ctx->gpu;
	CUresult r = vg_capture_forbids(s);

	if (r)
		return r;
	while (vg_handle_is(s, VG_STREAM) && s->id == id && !passed(s, seq))
		pthread_cond_wait(&vg.changed, &vg.lock);
	vg_pools_sync();
	return gpu->sticky;
}

static bool ctx_passed(const struct CUctx_st *ctx, uint64_t seq)
{
	for (const struct CUstream_st *s = ctx->streams; s; s = s->next)
		if (!passed(s, seq))
			return false;
	return true;
}

bool vg_passed(uint64_t seq)
{
	for (const struct CUctx_st *c = vg.contexts; c; c = c->next)
		if (!ctx_passed(c, seq))
			return false;
	return true;
}

CUresult vg_wait_ctx(struct CUctx_st *ctx)
{
	const struct CUctx_st *asked = ctx ? ctx : vg_current();
	const struct vg_gpu *gpu = asked ? asked->gpu : &vg.gpu[0];
	uint64_t seq = vg.seq;

	for (;;) {
		bool done = true;

		for (struct CUctx_st *c = vg.contexts; c; c = c->next)
			if ((!ctx || c == ctx) && !ctx_passed(c, seq))
				done = false;
		if (done) {
			vg_pools_sync();
			return gpu->sticky;
		}
		pthread_cond_wait(&vg.changed, &vg.lock);
	}
}

bool vg_value_reached(const struct vg_op *op)
{
	uint64_t want = op->value.value, now;
	int64_t diff;

	if (op->value.bytes == 4) {
		now = __atomic_load_n((const uint32_t *)(uintptr_t)op->value.addr,
				      __ATOMIC_ACQUIRE);
		diff = (int32_t)((uint32_t)now - (uint32_t)want);
		want = (uint32_t)want;
	} else {
		now = __atomic_load_n((const uint64_t *)(uintptr_t)op->value.addr,
				      __ATOMIC_ACQUIRE);
		diff = (int64_t)(now - want);
	}
	switch (op->value.flags & 3) {
	case CU_STREAM_WAIT_VALUE_GEQ:
		return diff >= 0;
	case CU_STREAM_WAIT_VALUE_EQ:
		return now == want;
	case CU_STREAM_WAIT_VALUE_AND:
		return now & want;
	default:
		return op->value.bytes == 4 ? (uint32_t)~(now | want) : ~(now | want);
	}
}

/* Copy engines have queues of their own, and nothing goes to the device for a fence */
static bool passes_connections(const struct vg_op *op)
{
	return op->kind == VG_OP_COPY || op->kind == VG_OP_COPY2D || op->kind == VG_OP_FENCE;
}

static bool begun(const struct vg_op *op)
{
	switch (op->kind) {
	case VG_OP_KERNEL:
		return op->kernel.entry >= 0;
	case VG_OP_HOST:
		return op->host.running;
	case VG_OP_GRAPH:
		return vg_run_started(op);
	default:
		return false;
	}
}

/* A connection is a queue: what other streams put into it earlier begins before @op */
static bool first_of_connection(const struct vg_op *op)
{
	const struct CUstream_st *s = op->stream;

	for (const struct CUstream_st *o = s->ctx->streams; o; o = o->next) {
		const struct vg_op *first = o != s && o->connection == s->connection ?
					    o->head : NULL;

		while (first && (passes_connections(first) || begun(first)))
			first = first->next;
		if (first && first->seq < op->seq)
			return false;
	}
	return true;
}

/* The head of a stream: does anything outside its stream hold it back? */
bool vg_op_ready(const struct vg_op *op)
{
	const struct CUstream_st *s = op->stream, *legacy = s->ctx->legacy;

	if (op->step) {
		;	/* the graph was ready */
	} else if (s == legacy) {
		for (const struct CUstream_st *o = s->ctx->streams; o; o = o->next)
			if (o != s && !(o->flags & CU_STREAM_NON_BLOCKING) &&
			    !passed(o, op->seq - 1))
				return false;
	} else if (!(s->flags & CU_STREAM_NON_BLOCKING) && legacy && !passed(legacy, op->seq - 1)) {
		return false;
	}
	if (vg.connections && !op->step && !passes_connections(op) && !first_of_connection(op))
		return false;
	if (op->kind == VG_OP_WAIT_EVENT)
		return op->mark->done;
	if (op->kind == VG_OP_GRAPH)
		return vg_run_ready(op);
	if (op->kind == VG_OP_WAIT_VALUE)
		return vg_value_reached(op);
	return true;
}

void vg_op_finish(struct vg_op *op)
{
	struct CUstream_st *s = op->stream;

	if (op->kind == VG_OP_RECORD) {
		op->mark->time_ns = vg_now();
		op->mark->done = true;
		if (vg.n_gpus > 1)
			vg_kick();	/* streams of other devices may wait for it */
	}
	if (op->step) {
		vg_step_finish(op->step);
		return;
	}
	s->head = op->next;
	s->n_ops--;
	if (!s->head)
		s->tail = NULL;
	if (op->done)
		*op->done = true;
	vg_op_free(op);
	if (s->dying && !s->head)
		vg_stream_free(s);
	pthread_cond_broadcast(&vg.changed);
}
