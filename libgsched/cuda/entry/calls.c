// SPDX-License-Identifier: LGPL-2.1-or-later
/* The driver's calls that launch, create streams, capture, or destroy contexts. */
#include "entry/waits.h"
#include "entry/entry.h"
#include "launch/direct.h"
#include "launch/raise.h"

/* ---- launches ---- */

/* One that was not direct: as it may have to get a priority, or for other reasons. */
static CUresult launch(const struct gi_launch *l, uint32_t not)
{
	struct gi_client *c = gi_direct_begin(not, GI_BY_CALLER, NULL);
	struct gi_raised raised;

	if (!c)
		return gi_launch(l);
	l = gi_raise(l, gi_last.cx, &raised);
	return gi_direct_end(c, l->forward(l));
}

static CUresult forward_kernel(const struct gi_launch *l)
{
	return gi_real.cuLaunchKernel(l->fn, l->grid[0], l->grid[1], l->grid[2], l->block[0],
				      l->block[1], l->block[2], l->shared, l->stream,
				      l->params, l->extra);
}

static GI_INLINE enum gi_priority by_of(CUstream stream)
{
	return gi_is_default(stream) ? GI_BY_LAUNCH : GI_BY_STREAM;
}

static __attribute__((noinline)) CUresult
launch_kernel(CUfunction fn, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
	      unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void **params,
	      void **extra)
{
	const struct gi_shape_of of = { fn, { gx, gy, gz }, { bx, by, bz }, shared };
	struct gi_client *c = gi_direct_begin(0, by_of(stream), &of);
	struct gi_launch l = {
		.fn = fn, .grid = { gx, gy, gz }, .block = { bx, by, bz }, .shared = shared,
		.stream = stream, .params = params, .extra = extra, .forward = forward_kernel,
	};

	if (c)
		return gi_direct_end(c, gi_hot.launch_kernel(fn, gx, gy, gz, bx, by, bz, shared,
							     stream, params, extra));
	GI_ENTER();
	return launch(&l, 0);
}

CUresult cuLaunchKernel(CUfunction fn, unsigned int gx, unsigned int gy, unsigned int gz,
			unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
			CUstream stream, void **params, void **extra)
{
	struct gi_client *c = gi_direct_begin(0, by_of(stream), NULL);

	if (!c)
		return launch_kernel(fn, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
	return gi_direct_end(c, gi_hot.launch_kernel(fn, gx, gy, gz, bx, by, bz, shared, stream,
						     params, extra));
}

CUresult cuLaunchKernel_ptsz(CUfunction fn, unsigned int gx, unsigned int gy, unsigned int gz,
			     unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
			     CUstream stream, void **params, void **extra)
{
	return cuLaunchKernel(fn, gx, gy, gz, bx, by, bz, shared, per_thread(stream),
			      params, extra);
}

static CUresult forward_ex(const struct gi_launch *l)
{
	CUlaunchConfig config = *l->config;

	config.hStream = l->stream;
	return gi_real.cuLaunchKernelEx(&config, l->fn, l->params, l->extra);
}

static __attribute__((noinline)) CUresult
launch_ex(const CUlaunchConfig *config, CUfunction fn, void **params, void **extra, CUstream stream)
{
	struct gi_launch l = {
		.fn = fn, .stream = stream, .params = params, .extra = extra, .config = config,
		.forward = forward_ex,
	};

	l.grid[0] = config->gridDimX;
	l.grid[1] = config->gridDimY;
	l.grid[2] = config->gridDimZ;
	l.block[0] = config->blockDimX;
	l.block[1] = config->blockDimY;
	l.block[2] = config->blockDimZ;
	l.shared = config->sharedMemBytes;
	gi_launch_attributes(&l);
	return launch(&l, 0);
}

static __attribute__((noinline)) struct gi_client *
begin_short_ex(const CUlaunchConfig *config, CUfunction fn)
{
	const struct gi_shape_of of = {
		fn, { config->gridDimX, config->gridDimY, config->gridDimZ },
		{ config->blockDimX, config->blockDimY, config->blockDimZ }, config->sharedMemBytes,
	};

	return gi_direct_begin(0, by_of(config->hStream), &of);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction fn, void **params, void **extra)
{
	struct gi_client *c = gi_direct_begin(0, config && !config->numAttrs ?
						 by_of(config->hStream) : GI_BY_LAUNCH, NULL);

	if (c)
		return gi_direct_end(c, gi_hot.launch_kernel_ex(config, fn, params, extra));
	if (config && !config->numAttrs) {
		c = begin_short_ex(config, fn);
		if (c)
			return gi_direct_end(c, gi_hot.launch_kernel_ex(config, fn, params, extra));
	}
	GI_ENTER();
	if (!config)
		return gi_real.cuLaunchKernelEx(config, fn, params, extra);
	return launch_ex(config, fn, params, extra, config->hStream);
}

CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction fn, void **params,
			       void **extra)
{
	GI_ENTER();
	if (!config)
		return gi_real.cuLaunchKernelEx_ptsz(config, fn, params, extra);
	return launch_ex(config, fn, params, extra, per_thread(config->hStream));
}

static CUresult forward_cooperative(const struct gi_launch *l)
{
	return gi_real.cuLaunchCooperativeKernel(l->fn, l->grid[0], l->grid[1], l->grid[2],
						 l->block[0], l->block[1], l->block[2], l->shared,
						 l->stream, l->params);
}

CUresult cuLaunchCooperativeKernel(CUfunction fn, unsigned int gx, unsigned int gy, unsigned int gz,
				   unsigned int bx, unsigned int by, unsigned int bz,
				   unsigned int shared, CUstream stream, void **params)
{
	struct gi_launch l = {
		.fn = fn, .grid = { gx, gy, gz }, .block = { bx, by, bz }, .shared = shared,
		.stream = stream, .params = params, .opaque = true, .cooperative = true,
		.forward = forward_cooperative,
	};

	GI_ENTER();
	return gi_launch(&l);
}

CUresult cuLaunchCooperativeKernel_ptsz(CUfunction fn, unsigned int gx, unsigned int gy,
					unsigned int gz, unsigned int bx, unsigned int by,
					unsigned int bz, unsigned int shared, CUstream stream,
					void **params)
{
	return cuLaunchCooperativeKernel(fn, gx, gy, gz, bx, by, bz, shared,
					 per_thread(stream), params);
}

static CUresult forward_graph(const struct gi_launch *l)
{
	return gi_real.cuGraphLaunch((CUgraphExec)l->call, l->stream);
}

/* A graph is scheduled whole, like a kernel that cannot be rewritten. */
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
	struct gi_client *c = gi_direct_begin(GSCHED_ARB_TIMED, GI_BY_STREAM, NULL);
	struct gi_launch l = {
		.grid = { 1, 1, 1 }, .block = { 1, 1, 1 }, .stream = stream, .opaque = true,
		.graph = exec, .forward = forward_graph, .call = exec,
	};

	if (c)
		return gi_direct_end(c, gi_real.cuGraphLaunch(exec, stream));
	GI_ENTER();
	return launch(&l, GSCHED_ARB_TIMED);
}

CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream)
{
	return cuGraphLaunch(exec, per_thread(stream));
}

/* ---- streams ---- */

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
	GI_ENTER();
	return gi_stream_create(stream, flags, 0, true);
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
	GI_ENTER();
	return gi_stream_create(stream, flags, priority, false);
}

CUresult cuStreamGetPriority(CUstream stream, int *priority)
{
	GI_ENTER();
	if (priority && gi_stream_requested(stream, priority))
		return CUDA_SUCCESS;
	return gi_real.cuStreamGetPriority(stream, priority);
}

CUresult cuStreamGetPriority_ptsz(CUstream stream, int *priority)
{
	return cuStreamGetPriority(per_thread(stream), priority);
}

/* Among the attributes of a stream is its priority, which is mapped as that of a new stream is. */
CUresult cuStreamGetAttribute(CUstream stream, CUstreamAttrID id, CUstreamAttrValue *value)
{
	CUresult rc;

	GI_ENTER();
	rc = gi_real.cuStreamGetAttribute(stream, id, value);
	if (!rc && id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
		gi_stream_requested(stream, &value->priority);
	return rc;
}

CUresult cuStreamGetAttribute_ptsz(CUstream stream, CUstreamAttrID id, CUstreamAttrValue *value)
{
	return cuStreamGetAttribute(per_thread(stream), id, value);
}

CUresult cuStreamSetAttribute(CUstream stream, CUstreamAttrID id, const CUstreamAttrValue *value)
{
	GI_ENTER();
	if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY && value && !gi_is_default(stream))
		return gi_stream_set_priority(stream, value->priority);
	return gi_real.cuStreamSetAttribute(stream, id, value);
}

CUresult cuStreamSetAttribute_ptsz(CUstream stream, CUstreamAttrID id,
				   const CUstreamAttrValue *value)
{
	return cuStreamSetAttribute(per_thread(stream), id, value);
}

CUresult cuStreamCopyAttributes(CUstream to, CUstream from)
{
	CUresult rc;

	GI_ENTER();
	rc = gi_real.cuStreamCopyAttributes(to, from);
	if (!rc)
		gi_stream_copied(to, from);
	return rc;
}

CUresult cuStreamCopyAttributes_ptsz(CUstream to, CUstream from)
{
	return cuStreamCopyAttributes(per_thread(to), per_thread(from));
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
	GI_ENTER();
	gi_launch_event_wait(stream);
	return gi_real.cuStreamWaitEvent(stream, event, flags);
}

CUresult cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned int flags)
{
	return cuStreamWaitEvent(per_thread(stream), event, flags);
}

/*
 * Waits for a word take a hardware queue, too, until somebody writes it: perhaps a later task. They
 * may come between the calls of another thread's task: what follows waits for both.
 */
#define WAIT_VALUE(symbol, type) \
	CUresult symbol(CUstream stream, CUdeviceptr at, type value, unsigned int flags) \
	{ \
		GI_ENTER(); \
		gi_launch_event_wait(stream); \
		return gi_real.symbol(stream, at, value, flags); \
	} \
\
	CUresult symbol##_ptsz(CUstream stream, CUdeviceptr at, type value, unsigned int flags) \
	{ \
		return symbol(per_thread(stream), at, value, flags); \
	}

WAIT_VALUE(cuStreamWaitValue32, cuuint32_t)
WAIT_VALUE(cuStreamWaitValue32_v2, cuuint32_t)
WAIT_VALUE(cuStreamWaitValue64, cuuint64_t)
WAIT_VALUE(cuStreamWaitValue64_v2, cuuint64_t)

/*
 * Streams of ours, where wings are launched, wait as well. The event may depend on tasks that need
 * wings, so these end first.
 */
CUresult cuCtxWaitEvent(CUcontext context, CUevent event)
{
	GI_ENTER();
	return GI_CALL(cuCtxWaitEvent, context, event);
}

/* The stream is removed from the table before the driver can reuse its handle. */
static CUresult destroy_stream(CUstream stream, CUresult (*call)(CUstream))
{
	bool capturing = gi_stream_ending(stream);
	CUresult rc = call(stream);

	if (capturing && !rc)
		atomic_fetch_sub(&gi_hot.captures, 1);
	return rc;
}

CUresult cuStreamDestroy(CUstream stream)
{
	GI_ENTER();
	return destroy_stream(stream, gi_real.cuStreamDestroy);
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
	GI_ENTER();
	return destroy_stream(stream, gi_real.cuStreamDestroy_v2);
}

/* ---- captures: while there is one, launches check whether they are part of it ---- */

static CUresult capture_begun(CUstream stream, CUresult rc)
{
	if (rc)
		atomic_fetch_sub(&gi_hot.captures, 1);
	else
		gi_capture_note(stream, true);
	return rc;
}

/* Counted before it begins, since calls of other threads in between could invalidate it. */
#define BEGIN(call) ({ \
	gi_capture_begins(); \
	capture_begun(stream, call); \
})

CUresult cuStreamBeginCapture(CUstream stream)
{
	GI_ENTER();
	return BEGIN(gi_real.cuStreamBeginCapture(stream));
}

CUresult cuStreamBeginCapture_ptsz(CUstream stream)
{
	GI_ENTER();
	return BEGIN(gi_real.cuStreamBeginCapture_ptsz(stream));
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
	GI_ENTER();
	return BEGIN(gi_real.cuStreamBeginCapture_v2(stream, mode));
}

CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode)
{
	GI_ENTER();
	return BEGIN(gi_real.cuStreamBeginCapture_v2_ptsz(stream, mode));
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode *nodes,
				     const CUgraphEdgeData *edges, size_t n,
				     CUstreamCaptureMode mode)
{
	GI_ENTER();
	return BEGIN(gi_real.cuStreamBeginCaptureToGraph(stream, graph, nodes, edges, n, mode));
}

CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph, const CUgraphNode *nodes,
					  const CUgraphEdgeData *edges, size_t n,
					  CUstreamCaptureMode mode)
{
	GI_ENTER();
	return BEGIN(gi_real.cuStreamBeginCaptureToGraph_ptsz(stream, graph, nodes,
							      edges, n, mode));
}

CUresult cuStreamBeginRecaptureToGraph(CUstream stream, CUstreamCaptureMode mode, CUgraph graph,
				       CUgraphRecaptureCallback fn, void *user)
{
	GI_ENTER();
	return BEGIN(gi_real.cuStreamBeginRecaptureToGraph(stream, mode, graph, fn, user));
}

CUresult cuStreamBeginRecaptureToGraph_ptsz(CUstream stream, CUstreamCaptureMode mode,
					    CUgraph graph, CUgraphRecaptureCallback fn, void *user)
{
	GI_ENTER();
	return BEGIN(gi_real.cuStreamBeginRecaptureToGraph_ptsz(stream, mode, graph, fn, user));
}

/*
 * A capture has ended even if it was invalidated, which returns an error, or if another thread
 * ended it. Other errors mean that no capture has ended.
 */
static CUresult capture_ended(CUstream stream, CUresult rc)
{
	if (rc == CUDA_SUCCESS || rc == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED ||
	    rc == CUDA_ERROR_STREAM_CAPTURE_UNJOINED ||
	    rc == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD) {
		gi_capture_note(stream, false);
		atomic_fetch_sub(&gi_hot.captures, 1);
	}
	return rc;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
	GI_ENTER();
	return capture_ended(stream, gi_real.cuStreamEndCapture(stream, graph));
}

CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph)
{
	GI_ENTER();
	return capture_ended(stream, gi_real.cuStreamEndCapture_ptsz(stream, graph));
}

/* ---- contexts ---- */

CUresult cuGreenCtxCreate(CUgreenCtx *green, CUdevResourceDesc desc, CUdevice dev,
			  unsigned int flags)
{
	GI_ENTER();
	atomic_store(&gi_green, true);
	return gi_real.cuGreenCtxCreate(green, desc, dev, flags);
}

CUresult cuGreenCtxStreamCreate(CUstream *stream, CUgreenCtx green, unsigned int flags,
				int priority)
{
	GI_ENTER();
	return gi_green_stream_create(stream, green, flags, priority);
}

/* Its context goes with it, and has a handle of its own. */
CUresult cuGreenCtxDestroy(CUgreenCtx green)
{
	CUcontext context;

	GI_ENTER();
	if (!gi_real.cuCtxFromGreenCtx(&context, green))
		gi_ctx_ending(context);
	return gi_real.cuGreenCtxDestroy(green);
}

static CUresult admit(CUcontext *context, CUresult rc)
{
	if (rc || !context || gi_memory_admits(*context))
		return rc;
	gi_ctx_ending(*context);
	gi_real.cuCtxDestroy_v2(*context);
	*context = NULL;
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuCtxCreate(CUcontext *context, unsigned int flags, CUdevice dev)
{
	GI_ENTER();
	return admit(context, gi_real.cuCtxCreate(context, flags, dev));
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice dev)
{
	GI_ENTER();
	return admit(context, gi_real.cuCtxCreate_v2(context, flags, dev));
}

CUresult cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *params, int n, unsigned int flags,
			CUdevice dev)
{
	GI_ENTER();
	return admit(context, gi_real.cuCtxCreate_v3(context, params, n, flags, dev));
}

CUresult cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *params, unsigned int flags,
			CUdevice dev)
{
	GI_ENTER();
	return admit(context, gi_real.cuCtxCreate_v4(context, params, flags, dev));
}

CUresult cuCtxDestroy(CUcontext context)
{
	GI_ENTER();
	gi_ctx_ending(context);
	return gi_real.cuCtxDestroy(context);
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
	GI_ENTER();
	gi_ctx_ending(context);
	return gi_real.cuCtxDestroy_v2(context);
}

CUresult cuCtxDetach(CUcontext context)
{
	GI_ENTER();
	gi_ctx_ending(context);
	return gi_real.cuCtxDetach(context);
}

static CUresult primary_gone(CUdevice dev, bool reset, CUresult (*call)(CUdevice))
{
	bool ending;
	CUresult rc;

	GI_ENTER();
	ending = gi_primary_ending(dev, reset);
	rc = call(dev);
	if (ending)
		gi_primary_ended(dev);
	return rc;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice dev)
{
	CUresult rc;

	GI_ENTER();
	rc = gi_real.cuDevicePrimaryCtxRetain(context, dev);
	if (rc)
		return rc;
	gi_primary_retained(dev, *context);
	if (gi_memory_admits(*context))
		return CUDA_SUCCESS;
	primary_gone(dev, false, gi_real.cuDevicePrimaryCtxRelease_v2);
	*context = NULL;
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice dev)
{
	GI_ENTER();
	return primary_gone(dev, false, gi_real.cuDevicePrimaryCtxRelease);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	GI_ENTER();
	return primary_gone(dev, false, gi_real.cuDevicePrimaryCtxRelease_v2);
}

CUresult cuDevicePrimaryCtxReset(CUdevice dev)
{
	GI_ENTER();
	return primary_gone(dev, true, gi_real.cuDevicePrimaryCtxReset);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	GI_ENTER();
	return primary_gone(dev, true, gi_real.cuDevicePrimaryCtxReset_v2);
}
