// SPDX-License-Identifier: LGPL-2.1-or-later
/* Driver API: contexts */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "pool.h"

#define STACK_MAX 64
#define GREEN_DEFAULT_STREAM	1	/* CU_GREEN_CTX_DEFAULT_STREAM */

/*
 * A context that was destroyed may stand in the stacks of other threads: its memory stays, its
 * handle may be another's
 */
static __thread struct { struct CUctx_st *ctx; uint64_t id; } stack[STACK_MAX];
static __thread unsigned int depth;
static struct CUctx_st *green_gone;		/* destroyed green contexts */

static struct CUctx_st *top(void)
{
	return depth ? stack[depth - 1].ctx : NULL;
}

bool vg_current_gone(void)
{
	return depth && stack[depth - 1].ctx->handle_id != stack[depth - 1].id;
}

struct CUctx_st *vg_current(void)
{
	return vg_current_gone() ? NULL : top();
}

static void push(struct CUctx_st *ctx)
{
	stack[depth].ctx = ctx;
	stack[depth++].id = ctx->handle_id;
}

static void ctx_init(struct CUctx_st *ctx, unsigned int flags)
{
	ctx->flags = flags;
	ctx->id = ++vg.ids;
	ctx->alive = true;
	ctx->cache_config = CU_FUNC_CACHE_PREFER_NONE;
	ctx->limit[CU_LIMIT_STACK_SIZE] = 1024;
	ctx->limit[CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20;
	ctx->limit[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20;
	ctx->limit[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
	ctx->limit[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
	ctx->limit[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
}

static CUresult ctx_open(struct CUctx_st *ctx, unsigned int flags)
{
	CUresult r = vg_engine_start(ctx->gpu);

	if (r)
		return r;
	if (!vg_rm_open(ctx))
		return CUDA_ERROR_OUT_OF_MEMORY;
	ctx_init(ctx, flags);
	ctx->legacy = vg_stream_new(ctx, 0, VG_LEAST_PRIORITY);
	if (!ctx->legacy) {
		vg_rm_close(ctx);
		ctx->alive = false;
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	ctx->next = vg.contexts;
	vg.contexts = ctx;
	return CUDA_SUCCESS;
}

static void ctx_close(struct CUctx_st *ctx)
{
	struct CUctx_st **p = &vg.contexts;

	ctx->alive = false;
	vg_wait_held(VG_HOLDER_CTX_DESTROY, ctx);
	while (*p && *p != ctx)
		p = &(*p)->next;
	if (*p)
		*p = ctx->next;
	while (ctx->streams)
		vg_stream_free(ctx->streams);
	ctx->legacy = NULL;
	while (ctx->n_awaited)
		vg_mark_put(ctx->awaited[--ctx->n_awaited]);
	while (ctx->events) {
		struct CUevent_st *e = ctx->events;

		ctx->events = e->next;
		vg_mark_put(e->mark);
		vg_nodes_clear(&e->nodes);
		vg_object_free(VG_EVENT, e);
	}
	vg_modules_drop(ctx);
	vg_arrays_drop(ctx);
	vg_pools_drop(ctx);
	vg_graph_mem_drop(ctx);
	vg_regions_drop(ctx);
	vg_rm_close(ctx);
}

static struct CUctx_st *object(struct vg_gpu *gpu)
{
	struct CUctx_st *ctx = vg_object_new(VG_CONTEXT, sizeof(*ctx));

	if (ctx) {
		ctx->handle_id = ++vg.ids;
		ctx->gpu = gpu;
	}
	return ctx;
}

/* @current: it becomes the thread's */
static CUresult ctx_new(CUcontext *pctx, unsigned int flags, CUdevice dev, bool current)
{
	struct CUctx_st *ctx;
	CUresult r;

	if (!pctx || (flags & ~(unsigned int)CU_CTX_FLAGS_MASK))
		return CUDA_ERROR_INVALID_VALUE;
	r = vg_check_device(pctx, dev);
	if (!r)
		r = vg_enter_device();
	if (r)
		return r;
	if (vg.gpu[dev].sticky)
		return vg_leave(vg.gpu[dev].sticky);
	ctx = depth < STACK_MAX ? object(&vg.gpu[dev]) : NULL;
	if (!ctx)
		return vg_leave(CUDA_ERROR_OUT_OF_MEMORY);
	r = ctx_open(ctx, flags);
	if (r) {
		ctx->handle_id = 0;
		vg_object_free(VG_CONTEXT, ctx);
		return vg_leave(r);
	}
	if (current)
		push(ctx);
	*pctx = ctx;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	return ctx_new(pctx, flags, dev, true);
}

CUDADRV_API CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	return ctx_new(pctx, flags, dev, true);
}

CUDADRV_API CUresult cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *params, int n,
				    unsigned int flags, CUdevice dev)
{
	return n ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY : ctx_new(pctx, flags, dev, true);
}

CUDADRV_API CUresult cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *params, unsigned int flags,
				    CUdevice dev)
{
	if (params && (params->numExecAffinityParams || params->cigParams))
		return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
	return ctx_new(pctx, flags, dev, true);
}

CUDADRV_API CUresult cuCtxDestroy_v2(CUcontext ctx)
{
	vg_enter_any();
	if (!vg.initialized)
		return vg_leave(CUDA_ERROR_NOT_INITIALIZED);
	if (!vg_handle_is(ctx, VG_CONTEXT) || ctx->primary)
		return vg_leave(CUDA_ERROR_INVALID_CONTEXT);
	vg_handle_del(ctx);
	ctx_close(ctx);
	if (vg_current() == ctx)
		depth--;
	ctx->handle_id = 0;
	vg_object_free(VG_CONTEXT, ctx);
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuCtxDestroy(CUcontext ctx)
{
	return cuCtxDestroy_v2(ctx);
}

/* The count of a context that was made begins with 0 here, for one. */
CUDADRV_API CUresult cuCtxAttach(CUcontext *pctx, unsigned int flags)
{
	CUresult r;

	if (!pctx || flags)
		return CUDA_ERROR_INVALID_VALUE;
	r = vg_enter();
	if (r)
		return r;
	*pctx = vg_current();
	if ((*pctx)->primary)
		return vg_leave(CUDA_ERROR_INVALID_CONTEXT);
	(*pctx)->refs++;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuCtxDetach(CUcontext ctx)
{
	CUresult r = vg_enter();

	if (r)
		return r;
	if (!ctx || ctx != vg_current() || ctx->primary)
		return vg_leave(CUDA_ERROR_INVALID_CONTEXT);
	if (ctx->refs) {
		ctx->refs--;
		return vg_leave(CUDA_SUCCESS);
	}
	vg_leave(CUDA_SUCCESS);
	return cuCtxDestroy_v2(ctx);
}

/*
 * A green context is a context here, which has all SMs. Of one that was destroyed the handle is
 * never used again: what NVIDIA's driver does with it corrupts the heap.
 */
CUDADRV_API CUresult cuGreenCtxCreate(CUgreenCtx *green, CUdevResourceDesc desc, CUdevice dev,
				      unsigned int flags)
{
	CUcontext ctx = NULL;
	CUresult r;

	(void)desc;
	if (!green || flags != GREEN_DEFAULT_STREAM)
		return CUDA_ERROR_INVALID_VALUE;
	r = ctx_new(&ctx, 0, dev, false);
	if (r || !ctx)
		return r;
	ctx->green = true;
	*green = (CUgreenCtx)ctx;
	return CUDA_SUCCESS;
}

CUDADRV_API CUresult cuCtxFromGreenCtx(CUcontext *pctx, CUgreenCtx green)
{
	CUcontext ctx = (CUcontext)green;
	CUresult r;

	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	r = vg_enter();
	if (r)
		return r;
	if (!vg_handle_is(ctx, VG_CONTEXT) || !ctx->green)
		return vg_leave(CUDA_ERROR_INVALID_CONTEXT);
	*pctx = ctx;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuGreenCtxStreamCreate(CUstream *stream, CUgreenCtx green, unsigned int flags,
					    int priority)
{
	CUcontext ctx = NULL;
	CUresult r = flags == CU_STREAM_NON_BLOCKING ? cuCtxFromGreenCtx(&ctx, green) :
						       CUDA_ERROR_INVALID_VALUE;

	if (!r && ctx)
		r = cuCtxPushCurrent_v2(ctx);
	if (r)
		return r;
	r = cuStreamCreateWithPriority(stream, flags, priority);
	cuCtxPopCurrent_v2(&ctx);
	return r;
}

CUDADRV_API CUresult cuGreenCtxDestroy(CUgreenCtx green)
{
	struct CUctx_st *ctx = (CUcontext)green;

	vg_enter_any();
	if (!vg.initialized)
		return vg_leave(CUDA_ERROR_NOT_INITIALIZED);
	if (!vg_handle_is(ctx, VG_CONTEXT) || !ctx->green)
		return vg_leave(CUDA_ERROR_INVALID_CONTEXT);
	vg_handle_del(ctx);
	ctx_close(ctx);
	if (vg_current() == ctx)
		depth--;
	ctx->handle_id = 0;
	ctx->next = green_gone;
	green_gone = ctx;
	return vg_leave(CUDA_SUCCESS);
}

static void refuse_gone(const struct CUctx_st *ctx)
{
	const struct CUctx_st *gone;

	for (gone = green_gone; gone; gone = gone->next) {
		if (gone != ctx)
			continue;
		fputs("vgpu: a green context that was destroyed is made current\n", stderr);
		abort();
	}
}

/* Of the device, made if need be; alive or not. NULL: no memory */
static struct CUctx_st *primary_of(CUdevice dev)
{
	struct vg_gpu *gpu = &vg.gpu[dev];

	if (!gpu->primary)
		gpu->primary = object(gpu);
	if (gpu->primary)
		gpu->primary->primary = true;
	return gpu->primary;
}

CUDADRV_API CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
	CUresult r = vg_check_device(pctx, dev);
	struct CUctx_st *ctx;

	if (r)
		return r;
	r = vg_enter_device();
	if (r)
		return r;
	if (vg.gpu[dev].sticky)
		return vg_leave(vg.gpu[dev].sticky);
	ctx = primary_of(dev);
	if (!ctx)
		return vg_leave(CUDA_ERROR_OUT_OF_MEMORY);
	if (!ctx->alive) {
		r = ctx_open(ctx, ctx->flags);
		if (r)
			return vg_leave(r);
	}
	ctx->refs++;
	*pctx = ctx;
	return vg_leave(CUDA_SUCCESS);
}

static CUresult primary_release(CUdevice dev, bool reset)
{
	struct CUctx_st *ctx;
	bool any = false;

	vg_enter_any();
	if (!vg.initialized)
		return vg_leave(CUDA_ERROR_NOT_INITIALIZED);
	if (dev < 0 || (unsigned int)dev >= vg.n_gpus)
		return vg_leave(CUDA_ERROR_INVALID_DEVICE);
	ctx = vg.gpu[dev].primary;
	if (!ctx || !ctx->alive)
		return vg_leave(reset ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT);
	if (reset)
		ctx->refs = 0;
	else if (--ctx->refs)
		return vg_leave(CUDA_SUCCESS);
	ctx_close(ctx);
	for (const struct CUctx_st *c = vg.contexts; c; c = c->next)
		any |= c->gpu == ctx->gpu;
	if (!any)
		ctx->gpu->sticky = CUDA_SUCCESS;	/* the fault went with what it spoiled */
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	return primary_release(dev, false);
}

CUDADRV_API CUresult cuDevicePrimaryCtxRelease(CUdevice dev)
{
	return primary_release(dev, false);
}

CUDADRV_API CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	return primary_release(dev, true);
}

CUDADRV_API CUresult cuDevicePrimaryCtxReset(CUdevice dev)
{
	return primary_release(dev, true);
}

CUDADRV_API CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
	CUresult r = vg_check_device(&dev, dev);
	struct CUctx_st *ctx;

	if (!r && (flags & ~(unsigned int)CU_CTX_FLAGS_MASK))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = vg_enter_device();
	if (r)
		return r;
	ctx = primary_of(dev);
	if (!ctx)
		return vg_leave(CUDA_ERROR_OUT_OF_MEMORY);
	ctx->flags = flags;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags)
{
	return cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

CUDADRV_API CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
	CUresult r = active ? vg_check_device(flags, dev) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	r = vg_enter_device();
	if (r)
		return r;
	*flags = vg.gpu[dev].primary ? vg.gpu[dev].primary->flags : 0;
	*active = vg.gpu[dev].primary && vg.gpu[dev].primary->alive;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
	vg_enter_any();
	if (!vg.initialized)
		return vg_leave(CUDA_ERROR_NOT_INITIALIZED);
	if (!vg_handle_is(ctx, VG_CONTEXT))
		return vg_leave(CUDA_ERROR_INVALID_CONTEXT);
	if (depth == STACK_MAX)
		return vg_leave(CUDA_ERROR_OUT_OF_MEMORY);
	push(ctx);
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuCtxPushCurrent(CUcontext ctx)
{
	return cuCtxPushCurrent_v2(ctx);
}

CUDADRV_API CUresult cuCtxPopCurrent_v2(CUcontext *pctx)
{
	if (!vg.initialized)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!depth)
		return CUDA_ERROR_INVALID_CONTEXT;
	depth--;
	if (pctx)
		*pctx = stack[depth].ctx;
	return CUDA_SUCCESS;
}

CUDADRV_API CUresult cuCtxPopCurrent(CUcontext *pctx)
{
	return cuCtxPopCurrent_v2(pctx);
}

CUDADRV_API CUresult cuCtxSetCurrent(CUcontext ctx)
{
	vg_enter_any();
	if (!vg.initialized)
		return vg_leave(CUDA_ERROR_NOT_INITIALIZED);
	refuse_gone(ctx);
	if (ctx && !vg_handle_is(ctx, VG_CONTEXT))
		return vg_leave(CUDA_ERROR_INVALID_CONTEXT);
	if (depth)
		depth--;
	if (ctx)
		push(ctx);
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuCtxGetCurrent(CUcontext *pctx)
{
	if (!vg.initialized)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	*pctx = top();
	return CUDA_SUCCESS;
}

/* Calls on one context: @ctx NULL the current one */
static CUresult enter(struct CUctx_st **ctx)
{
	CUresult r;

	if (!*ctx)
		return vg_enter_ctx(ctx);
	r = vg_enter();
	if (!r && !vg_handle_is(*ctx, VG_CONTEXT))
		r = vg_leave(CUDA_ERROR_INVALID_CONTEXT);
	return r;
}

CUDADRV_API CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx)
{
	CUresult r;

	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	r = enter(&ctx);
	if (r)
		return r;
	*device = (CUdevice)ctx->gpu->number;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuCtxGetDevice(CUdevice *device)
{
	return cuCtxGetDevice_v2(device, NULL);
}

CUDADRV_API CUresult cuCtxSynchronize_v2(CUcontext ctx)
{
	CUresult r = enter(&ctx);

	if (r)
		return r;
	r = vg_capture_ctx(ctx);
	return vg_leave(r ? r : vg_wait_ctx(ctx));
}

CUDADRV_API CUresult cuCtxSynchronize(void)
{
	return cuCtxSynchronize_v2(NULL);
}

CUDADRV_API CUresult cuCtxGetFlags(unsigned int *flags)
{
	struct CUctx_st *ctx;
	CUresult r = flags ? vg_enter_ctx(&ctx) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*flags = ctx->flags;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuCtxSetFlags(unsigned int flags)
{
	struct CUctx_st *ctx;
	CUresult r = flags & ~(unsigned int)CU_CTX_FLAGS_MASK ? CUDA_ERROR_INVALID_VALUE :
		     vg_enter_ctx(&ctx);

	if (r)
		return r;
	ctx->flags = flags;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuCtxGetId(CUcontext ctx, unsigned long long *id)
{
	CUresult r = id ? enter(&ctx) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*id = ctx->id;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
	CUresult r = version ? enter(&ctx) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*version = 3020;
	return vg_leave(CUDA_SUCCESS);
}

static bool limit_known(CUlimit limit)
{
	return (unsigned int)limit <= CU_LIMIT_MAX_L2_FETCH_GRANULARITY;
}

CUDADRV_API CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	struct CUctx_st *ctx;
	CUresult r = vg_enter_ctx(&ctx);

	if (r)
		return r;
	if (!limit_known(limit))
		return vg_leave(CUDA_ERROR_UNSUPPORTED_LIMIT);
	r = vg_may_wait(VG_HOLDER_CTX_SET_LIMIT, ctx);
	if (r)
		return vg_leave(r);
	ctx->limit[limit] = value;
	if (limit == CU_LIMIT_MALLOC_HEAP_SIZE)
		vgpu_heap_limit = value;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
	struct CUctx_st *ctx;
	CUresult r = value ? vg_enter_ctx(&ctx) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	if (!limit_known(limit))
		return vg_leave(CUDA_ERROR_UNSUPPORTED_LIMIT);
	*value = ctx->limit[limit];
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuCtxGetCacheConfig(CUfunc_cache *config)
{
	struct CUctx_st *ctx;
	CUresult r = config ? vg_enter_ctx(&ctx) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*config = ctx->cache_config;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuCtxSetCacheConfig(CUfunc_cache config)
{
	struct CUctx_st *ctx;
	CUresult r = vg_enter_ctx(&ctx);

	if (r)
		return r;
	ctx->cache_config = config;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuCtxGetSharedMemConfig(CUsharedconfig *config)
{
	struct CUctx_st *ctx;
	CUresult r = config ? vg_enter_ctx(&ctx) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuCtxSetSharedMemConfig(CUsharedconfig config)
{
	struct CUctx_st *ctx;
	CUresult r = vg_enter_ctx(&ctx);

	return r ? r : vg_leave(CUDA_SUCCESS);	/* no effect since Volta */
}

CUDADRV_API CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	struct CUctx_st *ctx;
	CUresult r = vg_enter_ctx(&ctx);

	if (r)
		return r;
	if (least)
		*least = VG_LEAST_PRIORITY;
	if (greatest)
		*greatest = VG_GREATEST_PRIORITY;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuCtxResetPersistingL2Cache(void)
{
	struct CUctx_st *ctx;
	CUresult r = vg_enter_ctx(&ctx);

	return r ? r : vg_leave(CUDA_SUCCESS);
}
