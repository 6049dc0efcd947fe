// SPDX-License-Identifier: LGPL-2.1-or-later
/* Driver API: streams, events, memory operations on streams, host functions */
#include <stdlib.h>
#include <string.h>
#include "vgpu.h"

/* A call and its twin for the per-thread default stream; @own says which one runs */
#define BOTH(name, params, call) \
	CUDADRV_API CUresult name params \
	{ \
		const bool own = false; \
		return call; \
	} \
	CUDADRV_API CUresult name##_ptsz params \
	{ \
		const bool own = true; \
		return call; \
	}

static CUresult enter(CUstream stream, bool own, struct CUstream_st **s)
{
	struct CUctx_st *ctx;
	CUresult r;

	/* a stream's handle carries its context; the default streams are the current one's */
	if (stream && stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD) {
		r = vg_enter();
		ctx = NULL;
	} else {
		r = vg_enter_ctx(&ctx);
	}
	if (!r && (r = vg_stream_get(stream, own, ctx, s)))
		vg_leave(r);
	return r;
}

static CUresult push(struct CUstream_st *s, struct vg_op *op)
{
	if (!op)
		return vg_leave(CUDA_ERROR_OUT_OF_MEMORY);
	return vg_leave(vg_push(s, op));
}

static CUresult push_wait_for(struct CUstream_st *s, struct vg_mark *mark)
{
	struct vg_op *op = vg_op_new(VG_OP_WAIT_EVENT);

	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	op->mark = mark;
	mark->refs++;
	return vg_push(s, op);
}

static CUresult await_context(struct CUstream_st *s)
{
	CUresult r = CUDA_SUCCESS;

	for (unsigned int i = 0; i < s->ctx->n_awaited && !r; i++)
		r = push_wait_for(s, s->ctx->awaited[i]);
	return r;
}

CUDADRV_API CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
	struct CUctx_st *ctx;
	CUresult r = stream && !(flags & ~(unsigned int)CU_STREAM_NON_BLOCKING) ?
		     vg_enter_ctx(&ctx) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	if (priority > VG_LEAST_PRIORITY)
		priority = VG_LEAST_PRIORITY;
	if (priority < VG_GREATEST_PRIORITY)
		priority = VG_GREATEST_PRIORITY;
	*stream = vg_stream_new(ctx, flags, priority);
	return vg_leave(*stream ? await_context(*stream) : CUDA_ERROR_OUT_OF_MEMORY);
}

CUDADRV_API CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
	return cuStreamCreateWithPriority(stream, flags, VG_LEAST_PRIORITY);
}

CUDADRV_API CUresult cuStreamDestroy_v2(CUstream stream)
{
	CUresult r = vg_enter();

	if (r)
		return r;
	if (!vg_handle_is(stream, VG_STREAM) || stream->dying || stream == stream->ctx->legacy)
		return vg_leave(CUDA_ERROR_INVALID_HANDLE);
	if (stream->head)
		stream->dying = true;	/* its work goes on */
	else
		vg_stream_free(stream);
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuStreamDestroy(CUstream stream)
{
	return cuStreamDestroy_v2(stream);
}

static CUresult query(CUstream stream, bool own)
{
	struct CUstream_st *s;
	CUresult r = enter(stream, own, &s);

	if (r)
		return r;
	r = vg_capture_forbids(s);
	return vg_leave(r ? r : s->head ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS);
}
BOTH(cuStreamQuery, (CUstream stream), query(stream, own))

static CUresult synchronize(CUstream stream, bool own)
{
	struct CUstream_st *s;
	CUresult r = enter(stream, own, &s);

	if (r)
		return r;
	if (s == s->ctx->legacy) {
		/*
		 * the default stream is behind all blocking ones: an operation on it says when they
		 * are through
		 */
		struct vg_op *op = vg_op_new(VG_OP_FENCE);

		r = vg_capture_forbids(s);
		if (r) {
			free(op);
			return vg_leave(r);
		}
		return vg_leave(op ? vg_push_wait(s, op) : CUDA_ERROR_OUT_OF_MEMORY);
	}
	return vg_leave(vg_wait_stream(s));
}
BOTH(cuStreamSynchronize, (CUstream stream), synchronize(stream, own))

enum property { PRIORITY, FLAGS, ID, CTX, DEVICE };

static CUresult get(CUstream stream, bool own, enum property what, void *out)
{
	struct CUstream_st *s;
	CUresult r = out ? enter(stream, own, &s) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	switch (what) {
	case PRIORITY:
		*(int *)out = s->priority;
		break;
	case FLAGS:
		*(unsigned int *)out = s->flags;
		break;
	case ID:
		*(unsigned long long *)out = s->id;
		break;
	case CTX:
		*(CUcontext *)out = s->ctx;
		break;
	case DEVICE:
		*(CUdevice *)out = (CUdevice)s->ctx->gpu->number;
		break;
	}
	return vg_leave(CUDA_SUCCESS);
}
BOTH(cuStreamGetPriority, (CUstream stream, int *out), get(stream, own, PRIORITY, out))
BOTH(cuStreamGetFlags, (CUstream stream, unsigned int *out), get(stream, own, FLAGS, out))
BOTH(cuStreamGetId, (CUstream stream, unsigned long long *out), get(stream, own, ID, out))
BOTH(cuStreamGetCtx, (CUstream stream, CUcontext *out), get(stream, own, CTX, out))
BOTH(cuStreamGetDevice, (CUstream stream, CUdevice *out), get(stream, own, DEVICE, out))

static CUresult get_ctx2(CUstream stream, bool own, CUcontext *ctx, CUgreenCtx *green)
{
	if (green)
		*green = NULL;
	return get(stream, own, CTX, ctx);
}
BOTH(cuStreamGetCtx_v2, (CUstream stream, CUcontext *ctx, CUgreenCtx *green),
     get_ctx2(stream, own, ctx, green))

/* Attributes: the priority is real, the others are hints that change nothing here */
static CUresult attribute(CUstream stream, bool own, CUstreamAttrID id, CUstreamAttrValue *out,
			  const CUstreamAttrValue *in)
{
	struct CUstream_st *s;
	CUresult r = out || in ? enter(stream, own, &s) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	switch (id) {
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
		if (in && (in->priority > VG_LEAST_PRIORITY || in->priority < VG_GREATEST_PRIORITY))
			return vg_leave(CUDA_ERROR_INVALID_VALUE);
		if (in)
			s->priority = in->priority;
		else
			out->priority = s->priority;
		return vg_leave(CUDA_SUCCESS);
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
	case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
		if (out)
			memset(out, 0, sizeof(*out));
		if (out && id == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY)
			out->syncPolicy = CU_SYNC_POLICY_AUTO;
		return vg_leave(CUDA_SUCCESS);
	default:
		return vg_leave(CUDA_ERROR_INVALID_VALUE);
	}
}
BOTH(cuStreamGetAttribute, (CUstream stream, CUstreamAttrID id, CUstreamAttrValue *v),
     attribute(stream, own, id, v, NULL))
BOTH(cuStreamSetAttribute, (CUstream stream, CUstreamAttrID id, const CUstreamAttrValue *v),
     attribute(stream, own, id, NULL, v))

static CUresult copy_attributes(CUstream dst, CUstream src, bool own)
{
	struct CUstream_st *d, *s;
	CUresult r = enter(src, own, &s);

	if (r)
		return r;
	r = vg_stream_get(dst, own, vg_current(), &d);
	if (!r)
		d->priority = s->priority;
	return vg_leave(r);
}
BOTH(cuStreamCopyAttributes, (CUstream dst, CUstream src), copy_attributes(dst, src, own))

static CUresult attach(CUstream stream, bool own, CUdeviceptr ptr)
{
	struct CUstream_st *s;
	CUresult r = enter(stream, own, &s);

	return r ? r : vg_leave(vg_region_find(ptr) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}
BOTH(cuStreamAttachMemAsync, (CUstream stream, CUdeviceptr ptr, size_t size, unsigned int flags),
     attach(stream, own, ptr))

/* Capture: there is none, so no stream ever captures */

/* Host functions */

static CUresult host(CUstream stream, bool own, CUhostFn fn, CUstreamCallback callback, void *user)
{
	struct CUstream_st *s;
	struct vg_op *op;
	CUresult r = fn || callback ? enter(stream, own, &s) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	op = vg_op_new(VG_OP_HOST);
	if (op) {
		op->host.fn = fn;
		op->host.callback = callback;
		op->host.user = user;
	}
	return push(s, op);
}
BOTH(cuLaunchHostFunc, (CUstream stream, CUhostFn fn, void *user),
     host(stream, own, fn, NULL, user))
BOTH(cuStreamAddCallback, (CUstream stream, CUstreamCallback fn, void *user, unsigned int flags),
     flags ? CUDA_ERROR_INVALID_VALUE : host(stream, own, NULL, fn, user))

/* Waits and writes of values in memory */

static struct vg_op *value_op(enum vg_op_kind kind, CUdeviceptr addr, uint64_t value,
			      unsigned int bytes, unsigned int flags, CUresult *r)
{
	struct vg_op *op;

	*r = CUDA_ERROR_INVALID_VALUE;
	if (!addr || addr % bytes || !vg_region_covers(addr, bytes))
		return NULL;
	if (kind == VG_OP_WAIT_VALUE ? flags & ~(3u | CU_STREAM_WAIT_VALUE_FLUSH) : flags &
	    ~(unsigned int)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER)
		return NULL;
	op = vg_op_new(kind);
	*r = op ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	if (op) {
		op->value.addr = addr;
		op->value.value = value;
		op->value.bytes = bytes;
		op->value.flags = flags;
	}
	return op;
}

static CUresult value(enum vg_op_kind kind, CUstream stream, bool own, CUdeviceptr addr,
		      uint64_t value, unsigned int bytes, unsigned int flags)
{
	struct CUstream_st *s;
	struct vg_op *op;
	CUresult r = enter(stream, own, &s);

	if (r)
		return r;
	op = value_op(kind, addr, value, bytes, flags, &r);
	return op ? push(s, op) : vg_leave(r);
}
#define VALUE(name, kind, bits, suffix) \
	BOTH(cuStream##name##Value##bits##suffix, \
	     (CUstream stream, CUdeviceptr addr, cuuint##bits##_t v, unsigned int flags), \
	     value(kind, stream, own, addr, v, bits / 8, flags))
VALUE(Wait, VG_OP_WAIT_VALUE, 32, )
VALUE(Wait, VG_OP_WAIT_VALUE, 32, _v2)
VALUE(Wait, VG_OP_WAIT_VALUE, 64, )
VALUE(Wait, VG_OP_WAIT_VALUE, 64, _v2)
VALUE(Write, VG_OP_WRITE_VALUE, 32, )
VALUE(Write, VG_OP_WRITE_VALUE, 32, _v2)
VALUE(Write, VG_OP_WRITE_VALUE, 64, )
VALUE(Write, VG_OP_WRITE_VALUE, 64, _v2)

struct vg_op *vg_values_new(unsigned int n, const CUstreamBatchMemOpParams *p, CUresult *r)
{
	struct vg_op *first = NULL, **last = &first, *op;

	*r = CUDA_SUCCESS;
	for (unsigned int i = 0; i < n; i++) {	/* all or none */
		switch (p[i].operation) {
		case CU_STREAM_MEM_OP_WAIT_VALUE_32:
			op = value_op(VG_OP_WAIT_VALUE, p[i].waitValue.address,
				      p[i].waitValue.value, 4, p[i].waitValue.flags, r);
			break;
		case CU_STREAM_MEM_OP_WAIT_VALUE_64:
			op = value_op(VG_OP_WAIT_VALUE, p[i].waitValue.address,
				      p[i].waitValue.value64, 8, p[i].waitValue.flags, r);
			break;
		case CU_STREAM_MEM_OP_WRITE_VALUE_32:
			op = value_op(VG_OP_WRITE_VALUE, p[i].writeValue.address,
				      p[i].writeValue.value, 4, p[i].writeValue.flags, r);
			break;
		case CU_STREAM_MEM_OP_WRITE_VALUE_64:
			op = value_op(VG_OP_WRITE_VALUE, p[i].writeValue.address,
				      p[i].writeValue.value64, 8, p[i].writeValue.flags, r);
			break;
		case CU_STREAM_MEM_OP_BARRIER:
		case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
			op = vg_op_new(VG_OP_FENCE);
			*r = op ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
			break;
		default:
			op = NULL;
			*r = CUDA_ERROR_INVALID_VALUE;
		}
		if (!op)
			break;
		*last = op;
		last = &op->next;
	}
	while (*r && (op = first)) {
		first = op->next;
		vg_op_free(op);
	}
	return first;
}

/* $VGPU_FAIL_WAIT=N: the Nth batch that waits for a word is refused, as if for lack of memory */
static bool refused(unsigned int n, const CUstreamBatchMemOpParams *p)
{
	static unsigned long waits;

	for (unsigned int i = 0; i < n; i++)
		if (p[i].operation == CU_STREAM_MEM_OP_WAIT_VALUE_32)
			return ++waits == strtoul(getenv("VGPU_FAIL_WAIT") ?: "0", NULL, 10);
	return false;
}

/* Writes without a barrier, which the second version of the calls no longer knows */
static bool has_unfenced(unsigned int n, const CUstreamBatchMemOpParams *p)
{
	for (unsigned int i = 0; i < n; i++)
		if ((p[i].operation == CU_STREAM_MEM_OP_WRITE_VALUE_32 ||
		     p[i].operation == CU_STREAM_MEM_OP_WRITE_VALUE_64) && p[i].writeValue.flags)
			return true;
	return false;
}

static CUresult batch(CUstream stream, bool own, unsigned int n, const CUstreamBatchMemOpParams *p,
		      unsigned int flags, bool second)
{
	struct CUstream_st *s;
	struct vg_op *ops;
	CUresult r = n && n <= 256 && p && !flags && !(second && has_unfenced(n, p)) ?
		     enter(stream, own, &s) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	if (refused(n, p))
		return vg_leave(CUDA_ERROR_OUT_OF_MEMORY);
	ops = vg_values_new(n, p, &r);
	return vg_leave(r ? r : vg_push(s, ops));
}
BOTH(cuStreamBatchMemOp, (CUstream stream, unsigned int n, CUstreamBatchMemOpParams *p,
			  unsigned int flags),
     batch(stream, own, n, p, flags, false))
BOTH(cuStreamBatchMemOp_v2, (CUstream stream, unsigned int n, CUstreamBatchMemOpParams *p,
			     unsigned int flags),
     batch(stream, own, n, p, flags, true))

/* Events */

CUDADRV_API CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
	struct CUctx_st *ctx;
	struct CUevent_st *e;
	CUresult r = event && !(flags & ~7u) &&
		     !((flags & CU_EVENT_INTERPROCESS) && !(flags & CU_EVENT_DISABLE_TIMING)) ?
		     vg_enter_ctx(&ctx) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	if (flags & CU_EVENT_INTERPROCESS)
		return vg_leave(vg_unsimulated("cuEventCreate with CU_EVENT_INTERPROCESS"));
	e = vg_object_new(VG_EVENT, sizeof(*e));
	if (!e)
		return vg_leave(CUDA_ERROR_OUT_OF_MEMORY);
	e->ctx = ctx;
	e->flags = flags;
	e->next = ctx->events;
	ctx->events = e;
	*event = e;
	return vg_leave(CUDA_SUCCESS);
}

static CUresult record(CUevent event, CUstream stream, bool own, unsigned int flags)
{
	struct CUstream_st *s;
	struct vg_mark *m;
	struct vg_op *op;
	CUresult r = enter(stream, own, &s);

	if (r)
		return r;
	if (!vg_handle_is(event, VG_EVENT) || event->ctx != s->ctx)
		return vg_leave(CUDA_ERROR_INVALID_HANDLE);
	if (s->capture)
		return vg_leave(vg_capture_record(s, event, flags & CU_EVENT_RECORD_EXTERNAL));
	if (flags & CU_EVENT_RECORD_EXTERNAL)
		return vg_leave(CUDA_ERROR_ILLEGAL_STATE);
	r = vg_capture_implicit(s);
	if (r)
		return vg_leave(r);
	op = vg_op_new(VG_OP_RECORD);
	m = calloc(1, sizeof(*m));
	if (!op || !m) {
		free(op);
		free(m);
		return vg_leave(CUDA_ERROR_OUT_OF_MEMORY);
	}
	m->refs = 2;
	op->mark = m;
	vg_mark_put(event->mark);
	event->mark = m;
	event->captured = 0;
	return push(s, op);
}
BOTH(cuEventRecord, (CUevent event, CUstream stream), record(event, stream, own, 0))
BOTH(cuEventRecordWithFlags, (CUevent event, CUstream stream, unsigned int flags),
     (flags & ~(unsigned int)CU_EVENT_RECORD_EXTERNAL) ? CUDA_ERROR_INVALID_VALUE :
     record(event, stream, own, flags))

static CUresult wait_event(CUstream stream, bool own, CUevent event, unsigned int flags)
{
	struct CUstream_st *s;
	struct vg_op *op;
	CUresult r = flags & ~(unsigned int)CU_EVENT_WAIT_EXTERNAL ? CUDA_ERROR_INVALID_VALUE :
		     enter(stream, own, &s);

	if (r)
		return r;
	if (!vg_handle_is(event, VG_EVENT))
		return vg_leave(CUDA_ERROR_INVALID_HANDLE);
	if (s->capture || event->captured)
		return vg_leave(vg_capture_wait(s, event,
						s->capture && (flags & CU_EVENT_WAIT_EXTERNAL)));
	if (flags)
		return vg_leave(CUDA_ERROR_ILLEGAL_STATE);
	if (!event->mark)	/* never recorded */
		return vg_leave(CUDA_SUCCESS);
	op = vg_op_new(VG_OP_WAIT_EVENT);
	if (op) {
		op->mark = event->mark;
		op->mark->refs++;
	}
	return push(s, op);
}
BOTH(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned int flags),
     wait_event(stream, own, event, flags))

/* All streams of a context wait, those to come, too, and nothing may be captured. */
CUDADRV_API CUresult cuCtxWaitEvent(CUcontext context, CUevent event)
{
	struct CUctx_st *ctx = context;
	struct CUstream_st *s;
	CUresult r = vg_enter_ctx(&ctx);

	if (r)
		return r;
	if (context && !vg_handle_is(context, VG_CONTEXT))
		return vg_leave(CUDA_ERROR_INVALID_CONTEXT);
	ctx = context ? context : ctx;
	if (!vg_handle_is(event, VG_EVENT))
		return vg_leave(CUDA_ERROR_INVALID_HANDLE);
	if (event->captured)
		return vg_leave(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	r = vg_capture_ctx(ctx);
	if (r || !event->mark)
		return vg_leave(r);
	for (s = ctx->streams; s && !r; s = s->next)
		r = push_wait_for(s, event->mark);
	if (!r && ctx->n_awaited == sizeof(ctx->awaited) / sizeof(ctx->awaited[0]))
		r = vg_unsimulated("so many calls of cuCtxWaitEvent");
	if (!r) {
		event->mark->refs++;
		ctx->awaited[ctx->n_awaited++] = event->mark;
	}
	return vg_leave(r);
}

static CUresult enter_event(CUevent event)
{
	CUresult r = vg_enter();

	if (r)
		return r;
	do {
		if (!vg_handle_is(event, VG_EVENT))
			return vg_leave(CUDA_ERROR_INVALID_HANDLE);
	} while (vg_await(event->ctx, &r));
	return r ? vg_leave(r) : r;
}

/* To ask or to wait for what it was recorded behind */
static CUresult enter_asked(CUevent event)
{
	CUresult r = enter_event(event);

	if (r)
		return r;
	r = vg_capture_event(event);
	if (!r)
		r = vg_capture_unsafe();
	return r ? vg_leave(r) : r;
}

CUDADRV_API CUresult cuEventQuery(CUevent event)
{
	CUresult r = enter_asked(event);

	return r ? r : vg_leave(event->mark && !event->mark->done ? CUDA_ERROR_NOT_READY :
				CUDA_SUCCESS);
}

CUDADRV_API CUresult cuEventSynchronize(CUevent event)
{
	CUresult r = enter_asked(event);
	const struct vg_gpu *gpu;
	struct vg_mark *m;

	if (r)
		return r;
	gpu = event->ctx->gpu;
	m = event->mark;
	if (m) {
		m->refs++;
		while (!m->done)
			pthread_cond_wait(&vg.changed, &vg.lock);
		vg_mark_put(m);
		vg_pools_sync();
	}
	return vg_leave(gpu->sticky);
}

CUDADRV_API CUresult cuEventDestroy_v2(CUevent event)
{
	CUresult r = enter_event(event);
	struct CUevent_st **p;

	if (r)
		return r;
	for (p = &event->ctx->events; *p && *p != event; p = &(*p)->next)
		;
	if (*p)
		*p = event->next;
	vg_mark_put(event->mark);
	vg_nodes_clear(&event->nodes);
	vg_object_free(VG_EVENT, event);
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuEventDestroy(CUevent event)
{
	return cuEventDestroy_v2(event);
}

CUDADRV_API CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end)
{
	CUresult r = ms ? vg_enter() : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	if (!vg_handle_is(start, VG_EVENT) || !vg_handle_is(end, VG_EVENT) || !start->mark ||
	    !end->mark || ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING))
		return vg_leave(CUDA_ERROR_INVALID_HANDLE);
	if (!start->mark->done || !end->mark->done)
		return vg_leave(CUDA_ERROR_NOT_READY);
	*ms = (float)((double)((int64_t)(end->mark->time_ns - start->mark->time_ns)) / 1e6);
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
	return cuEventElapsedTime_v2(ms, start, end);
}
