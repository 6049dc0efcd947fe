// SPDX-License-Identifier: LGPL-2.1-or-later
/* Driver API: the device and contexts. One device, number 0. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "vgpu.h"

#define STACK_MAX 64

/* A context that was destroyed may stand in the stacks of other threads: its memory stays, its handle may be another's */
static __thread struct { struct CUctx_st *ctx; uint64_t id; } stack[STACK_MAX];
static __thread unsigned int depth;

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

static CUresult check_device(const void *out, CUdevice dev)
{
	CUresult r;

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	r = vg_enter_device();
	if (r)
		return r;
	return vg_leave(dev ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS);
}

CUDADRV_API CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	CUresult r = check_device(device, ordinal);

	if (!r)
		*device = 0;
	return r;
}

CUDADRV_API CUresult cuDeviceGetCount(int *count)
{
	CUresult r = check_device(count, 0);

	if (!r)
		*count = 1;
	return r;
}

CUDADRV_API CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
	CUresult r = check_device(name, dev);

	if (!r && len < 1)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		snprintf(name, (size_t)len, "gsched vgpu (simulated)");
	return r;
}

/* The same for every process on the device, another for every device name */
void vg_uuid(unsigned char uuid[16])
{
	uint64_t hash = 0xcbf29ce484222325ULL;
	char name[256];

	for (const char *s = vg_shm_name(name, sizeof(name)); *s; s++)
		hash = (hash ^ (unsigned char)*s) * 0x100000001b3ULL;
	memcpy(uuid, "vgpu-sim", 8);
	memcpy(uuid + 8, &hash, 8);
}

CUDADRV_API CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
	CUresult r = check_device(uuid, dev);

	if (!r)
		vg_uuid((unsigned char *)uuid->bytes);
	return r;
}

CUDADRV_API CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
	return cuDeviceGetUuid_v2(uuid, dev);
}

CUDADRV_API CUresult cuDeviceGetLuid(char *luid, unsigned int *mask, CUdevice dev)
{
	return CUDA_ERROR_NOT_SUPPORTED;	/* as on every system but Windows */
}

CUDADRV_API CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
	CUresult r = check_device(bytes, dev);

	if (!r)
		*bytes = vg.config.mem;
	return r;
}

static int max_block(void)
{
	return vg.config.sm_threads < 1024 ? (int)vg.config.sm_threads : 1024;
}

CUDADRV_API CUresult cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
{
	static const struct { CUdevice_attribute attrib; int value; } fixed[] = {
		{ CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 0x7fffffff }, { CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535 },
		{ CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535 }, { CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64 },
		{ CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, VG_STATIC_DYNAMIC_SHARED },
		{ CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536 }, { CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32 },
		{ CU_DEVICE_ATTRIBUTE_MAX_PITCH, 0x7fffffff }, { CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1000000 },
		{ CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512 }, { CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32 },
		{ CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, 512 }, { CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1 },
		{ CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1 }, { CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1 },
		{ CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1000000 }, { CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 64 },
		{ CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 1 << 20 }, { CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 1 },
		{ CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1 }, { CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 0xff },
		{ CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1 }, { CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1 },
		{ CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1 }, { CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1 },
		{ CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1 },
		{ CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1, 1 }, { CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 1 },
		{ CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1, 1 },
		{ CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1 },
		{ CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, 1 },
		{ CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST, 1 },
		{ CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 2 },
		{ CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1 },
	};
	CUresult r = check_device(pi, dev);

	if (r)
		return r;
	switch ((int)attrib) {
	case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
		*pi = max_block();
		return CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
		*pi = (int)vg.config.sms;
		return CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
		*pi = (int)vg.config.sm_threads;
		return CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
		*pi = (int)vg.config.sm_blocks;
		return CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
	case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
		*pi = (int)vg.config.sm_regs;
		return CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
		*pi = (int)vg.config.sm_smem;
		return CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
		*pi = (int)vg.config.cc / 10;
		return CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
		*pi = (int)vg.config.cc % 10;
		return CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_MPS_ENABLED:
		*pi = vg.key != VG_NO_MPS;
		return CUDA_SUCCESS;
	}
	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		if (fixed[i].attrib == attrib) {
			*pi = fixed[i].value;
			return CUDA_SUCCESS;
		}
	if (attrib < 1 || attrib >= CU_DEVICE_ATTRIBUTE_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	*pi = 0;	/* what it does not do */
	return CUDA_SUCCESS;
}

CUDADRV_API CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
	CUresult r = major && minor ? check_device(major, dev) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*major = (int)vg.config.cc / 10;
	*minor = (int)vg.config.cc % 10;
	return CUDA_SUCCESS;
}

CUDADRV_API CUresult cuDeviceGetProperties(CUdevprop *p, CUdevice dev)
{
	CUresult r = check_device(p, dev);

	if (r)
		return r;
	*p = (CUdevprop) {
		.maxThreadsPerBlock = max_block(), .maxThreadsDim = { max_block(), max_block(), 64 },
		.maxGridSize = { 0x7fffffff, 65535, 65535 }, .sharedMemPerBlock = VG_STATIC_DYNAMIC_SHARED,
		.totalConstantMemory = 65536, .SIMDWidth = 32, .memPitch = 0x7fffffff,
		.regsPerBlock = (int)vg.config.sm_regs, .clockRate = 1000000, .textureAlign = 512,
	};
	return CUDA_SUCCESS;
}

static const char bus_id[] = "0000:FF:00.0";

CUDADRV_API CUresult cuDeviceGetPCIBusId(char *id, int len, CUdevice dev)
{
	CUresult r = check_device(id, dev);

	if (!r && len < (int)sizeof(bus_id))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		memcpy(id, bus_id, sizeof(bus_id));
	return r;
}

CUDADRV_API CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *id)
{
	CUresult r = check_device(dev, 0);

	if (!r)
		r = id && !strcmp(id, bus_id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
	if (!r)
		*dev = 0;
	return r;
}

CUDADRV_API CUresult cuDeviceCanAccessPeer(int *can, CUdevice dev, CUdevice peer)
{
	CUresult r = check_device(can, dev);

	if (!r && peer)
		r = CUDA_ERROR_INVALID_DEVICE;
	if (!r)
		*can = 0;
	return r;
}

CUDADRV_API CUresult cuDeviceGetExecAffinitySupport(int *pi, CUexecAffinityType type, CUdevice dev)
{
	CUresult r = check_device(pi, dev);

	if (!r)
		*pi = 0;
	return r;
}

/* Contexts */

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
	CUresult r = vg_engine_start();

	if (r)
		return r;
	ctx_init(ctx, flags);
	ctx->legacy = vg_stream_new(ctx, 0, VG_LEAST_PRIORITY);
	if (!ctx->legacy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	ctx->next = vg.contexts;
	vg.contexts = ctx;
	vg_rm_open(ctx);
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
	while (ctx->events) {
		struct CUevent_st *e = ctx->events;

		ctx->events = e->next;
		vg_mark_put(e->mark);
		vg_nodes_clear(&e->nodes);
		vg_object_free(VG_EVENT, e);
	}
	vg_modules_drop(ctx);
	vg_arrays_drop(ctx);
	vg_regions_drop(ctx);
	vg_rm_close(ctx);
}

static struct CUctx_st *object(void)
{
	struct CUctx_st *ctx = vg_object_new(VG_CONTEXT, sizeof(*ctx));

	if (ctx)
		ctx->handle_id = ++vg.ids;
	return ctx;
}

static CUresult ctx_new(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	struct CUctx_st *ctx;
	CUresult r;

	if (!pctx || (flags & ~(unsigned int)CU_CTX_FLAGS_MASK))
		return CUDA_ERROR_INVALID_VALUE;
	r = vg_enter_device();
	if (r)
		return r;
	if (dev)
		return vg_leave(CUDA_ERROR_INVALID_DEVICE);
	ctx = depth < STACK_MAX ? object() : NULL;
	if (!ctx)
		return vg_leave(CUDA_ERROR_OUT_OF_MEMORY);
	r = ctx_open(ctx, flags);
	if (r) {
		ctx->handle_id = 0;
		vg_object_free(VG_CONTEXT, ctx);
		return vg_leave(r);
	}
	push(ctx);
	*pctx = ctx;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	return ctx_new(pctx, flags, dev);
}

CUDADRV_API CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	return ctx_new(pctx, flags, dev);
}

CUDADRV_API CUresult cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *params, int n, unsigned int flags, CUdevice dev)
{
	return n ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY : ctx_new(pctx, flags, dev);
}

CUDADRV_API CUresult cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *params, unsigned int flags, CUdevice dev)
{
	if (params && (params->numExecAffinityParams || params->cigParams))
		return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
	return ctx_new(pctx, flags, dev);
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

CUDADRV_API CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
	CUresult r = check_device(pctx, dev);

	if (r)
		return r;
	r = vg_enter_device();
	if (r)
		return r;
	if (!vg.primary) {
		vg.primary = object();
		if (!vg.primary)
			return vg_leave(CUDA_ERROR_OUT_OF_MEMORY);
		vg.primary->primary = true;
	}
	if (!vg.primary->alive) {
		r = ctx_open(vg.primary, vg.primary->flags);
		if (r)
			return vg_leave(r);
	}
	vg.primary->refs++;
	*pctx = vg.primary;
	return vg_leave(CUDA_SUCCESS);
}

static CUresult primary_release(CUdevice dev, bool reset)
{
	vg_enter_any();
	if (!vg.initialized)
		return vg_leave(CUDA_ERROR_NOT_INITIALIZED);
	if (dev)
		return vg_leave(CUDA_ERROR_INVALID_DEVICE);
	if (!vg.primary || !vg.primary->alive)
		return vg_leave(reset ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT);
	if (reset)
		vg.primary->refs = 0;
	else if (--vg.primary->refs)
		return vg_leave(CUDA_SUCCESS);
	ctx_close(vg.primary);
	if (!vg.contexts)
		vg.sticky = CUDA_SUCCESS;	/* the fault went with what it spoiled */
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
	CUresult r = vg_enter_device();

	if (r)
		return r;
	if (dev || (flags & ~(unsigned int)CU_CTX_FLAGS_MASK))
		return vg_leave(dev ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE);
	if (!vg.primary) {
		vg.primary = object();
		if (!vg.primary)
			return vg_leave(CUDA_ERROR_OUT_OF_MEMORY);
		vg.primary->primary = true;
	}
	vg.primary->flags = flags;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags)
{
	return cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

CUDADRV_API CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
	CUresult r = active ? check_device(flags, dev) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	r = vg_enter_device();
	if (r)
		return r;
	*flags = vg.primary ? vg.primary->flags : 0;
	*active = vg.primary && vg.primary->alive;
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
	*device = 0;
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
	CUresult r = flags & ~(unsigned int)CU_CTX_FLAGS_MASK ? CUDA_ERROR_INVALID_VALUE : vg_enter_ctx(&ctx);

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
