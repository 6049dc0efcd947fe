// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The driver's calls for memory, and others that are managed only because they may wait for the
 * GPU: entry/waits.h lists them, and task/gate.c describes what precedes them.
 */
#include <string.h>
#include "entry/entry.h"
#include "entry/waits.h"

#define WAITS(symbol, params, ...) \
	CUresult symbol params \
	{ \
		GI_ENTER(); \
		return GI_CALL(symbol, __VA_ARGS__); \
	}

CUresult cuMemFree_v2(CUdeviceptr p)
{
	struct gi_waiting w;
	struct gi_managed *m;
	CUresult rc;

	GI_ENTER();
	m = gi_managed_freeing(p);
	gi_wait_begin_memory(&w, p);
	rc = gi_real.cuMemFree_v2(p);
	gi_wait_end(&w);
	gi_managed_freed(m, !rc);
	return rc;
}

CUresult cuMemAllocManaged(CUdeviceptr *p, size_t size, unsigned int flags)
{
	GI_ENTER();
	return gi_managed_alloc(gi_current(), p, size, flags);
}

/* What a memory.max leaves is all there is. */
CUresult cuMemGetInfo_v2(size_t *left, size_t *total)
{
	struct gi_ctx *cx;
	uint64_t most, room;
	CUresult rc;

	GI_ENTER();
	rc = gi_real.cuMemGetInfo_v2(left, total);
	cx = rc ? NULL : gi_current();
	if (!cx || !gi_memory_limits(cx->client, &most, &room))
		return rc;
	if (left && *left > room)
		*left = room;
	if (total && *total > most)
		*total = most;
	return rc;
}

CUresult cuDeviceTotalMem_v2(size_t *total, CUdevice dev)
{
	struct gi_client *c;
	uint64_t most, room;
	CUresult rc;

	GI_ENTER();
	rc = gi_real.cuDeviceTotalMem_v2(total, dev);
	for (c = rc ? NULL : gi_client_next(NULL); c && c->dev != dev; c = gi_client_next(c))
		;
	if (c && gi_memory_limits(c, &most, &room) && *total > most)
		*total = most;
	return rc;
}

WAITS(cuMemFreeHost, (void *p), p)
WAITS(cuMemHostUnregister, (void *p), p)
WAITS(cuCtxSetLimit, (CUlimit limit, size_t value), limit, value)

/* ---- graphs ---- */

/* @call: by which the driver instantiates @graph */
#define INSTANTIATE(exec, graph, flags, call) ({ \
	struct gi_lifted lifted_ = gi_nodes_lift(graph, \
			(flags) & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY && \
			gi_priorities_lifted(gi_current())); \
	CUresult rc_ = call; \
	gi_nodes_restore(&lifted_); \
	if (!rc_ && (exec)) \
		gi_graph_made(*(exec), graph, lifted_.lifted); \
	rc_; \
})

CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *node, char *log,
			    size_t size)
{
	GI_ENTER();
	return INSTANTIATE(exec, graph, 0, gi_real.cuGraphInstantiate(exec, graph, node, log,
								      size));
}

CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *node, char *log,
			       size_t size)
{
	GI_ENTER();
	return INSTANTIATE(exec, graph, 0, gi_real.cuGraphInstantiate_v2(exec, graph, node, log,
									 size));
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
	GI_ENTER();
	return INSTANTIATE(exec, graph, flags,
			   gi_real.cuGraphInstantiateWithFlags(exec, graph, flags));
}

/* The nodes' priorities are mapped as they were for the instance: they may not change. */
#define UPDATE(exec, graph, call) ({ \
	struct gi_lifted lifted_ = gi_nodes_lift(graph, gi_graph_lifted(exec)); \
	CUresult rc_ = call; \
	gi_nodes_restore(&lifted_); \
	if (!rc_) \
		gi_graph_updated(exec, graph); \
	rc_; \
})

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *node,
			   CUgraphExecUpdateResult *result)
{
	GI_ENTER();
	return UPDATE(exec, graph, gi_real.cuGraphExecUpdate(exec, graph, node, result));
}

CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
	GI_ENTER();
	return UPDATE(exec, graph, gi_real.cuGraphExecUpdate_v2(exec, graph, info));
}

/* @params: of any version, since their beginnings are the same. @size: size of this version. */
static void kernel_set(CUgraphExec exec, CUgraphNode node, const void *params, size_t size)
{
	CUDA_KERNEL_NODE_PARAMS_v2 p = { 0 };

	memcpy(&p, params, size);
	gi_graph_kernel_set(exec, node, &p);
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
					const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
	CUresult rc;

	GI_ENTER();
	rc = gi_real.cuGraphExecKernelNodeSetParams(exec, node, p);
	if (!rc)
		kernel_set(exec, node, p, sizeof(*p));
	return rc;
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
					   const CUDA_KERNEL_NODE_PARAMS_v2 *p)
{
	CUresult rc;

	GI_ENTER();
	rc = gi_real.cuGraphExecKernelNodeSetParams_v2(exec, node, p);
	if (!rc)
		kernel_set(exec, node, p, sizeof(*p));
	return rc;
}

CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *p)
{
	CUresult rc;

	GI_ENTER();
	rc = gi_real.cuGraphExecNodeSetParams(exec, node, p);
	if (!rc && p->type == CU_GRAPH_NODE_TYPE_KERNEL)
		kernel_set(exec, node, &p->kernel, sizeof(CUDA_KERNEL_NODE_PARAMS_v2));
	return rc;
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
	GI_ENTER();
	gi_graph_gone(exec);
	return gi_real.cuGraphExecDestroy(exec);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph,
				      CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	GI_ENTER();
	return INSTANTIATE(exec, graph, params ? params->flags : 0,
			   gi_real.cuGraphInstantiateWithParams(exec, graph, params));
}

CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *exec, CUgraph graph,
					   CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	GI_ENTER();
	return INSTANTIATE(exec, graph, params ? params->flags : 0,
			   gi_real.cuGraphInstantiateWithParams_ptsz(exec, graph, params));
}

/* ---- synchronous copies and sets: on the legacy stream, or the thread's own ---- */

#define SYNC(symbol, params, ...) \
	CUresult symbol params \
	{ \
		GI_ENTER(); \
		return GI_CALL_ON(CU_STREAM_LEGACY, symbol, , __VA_ARGS__); \
	} \
	CUresult symbol##_ptds params \
	{ \
		GI_ENTER(); \
		return GI_CALL_ON(CU_STREAM_PER_THREAD, symbol, _ptds, __VA_ARGS__); \
	}

static bool is_host(CUdeviceptr p)
{
	CUmemorytype type = 0;

	return p && !gi_real.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p) &&
	       type == CU_MEMORYTYPE_HOST;
}

/* Copies within the device are only queued: as in entry/shared.c. */
#define QUEUED_ON(stream, symbol, own, ...) \
	struct gi_stream_guard guard = gi_stream_lock_shared(stream); \
	CUresult rc = gi_real.symbol##own(__VA_ARGS__); \
\
	gi_stream_unlock_shared(&guard); \
	return rc;

#define QUEUED(symbol, params, ...) \
	CUresult symbol params \
	{ \
		GI_ENTER(); \
		QUEUED_ON(CU_STREAM_LEGACY, symbol, , __VA_ARGS__) \
	} \
	CUresult symbol##_ptds params \
	{ \
		GI_ENTER(); \
		QUEUED_ON(CU_STREAM_PER_THREAD, symbol, _ptds, __VA_ARGS__) \
	}

/* So are sets, except those of host memory. @p: the first parameter. */
#define SET(symbol, params, ...) \
	CUresult symbol params \
	{ \
		GI_ENTER(); \
		if (gi_wait_needed() && is_host(p)) \
			return GI_CALL_ON(CU_STREAM_LEGACY, symbol, , __VA_ARGS__); \
		QUEUED_ON(CU_STREAM_LEGACY, symbol, , __VA_ARGS__) \
	} \
	CUresult symbol##_ptds params \
	{ \
		GI_ENTER(); \
		if (gi_wait_needed() && is_host(p)) \
			return GI_CALL_ON(CU_STREAM_PER_THREAD, symbol, _ptds, __VA_ARGS__); \
		QUEUED_ON(CU_STREAM_PER_THREAD, symbol, _ptds, __VA_ARGS__) \
	}

SYNC(cuMemcpy, (CUdeviceptr to, CUdeviceptr from, size_t size), to, from, size)
SYNC(cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t size), to, from, size)
SYNC(cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t size), to, from, size)
QUEUED(cuMemcpyDtoD_v2, (CUdeviceptr to, CUdeviceptr from, size_t size), to, from, size)
SYNC(cuMemcpyPeer, (CUdeviceptr to, CUcontext there, CUdeviceptr from, CUcontext here,
		    size_t size), to, there, from, here, size)
SYNC(cuMemcpy2D_v2, (const CUDA_MEMCPY2D *copy), copy)
SYNC(cuMemcpy2DUnaligned_v2, (const CUDA_MEMCPY2D *copy), copy)
SYNC(cuMemcpy3D_v2, (const CUDA_MEMCPY3D *copy), copy)
SYNC(cuMemcpy3DPeer, (const CUDA_MEMCPY3D_PEER *copy), copy)
SYNC(cuMemcpyHtoA_v2, (CUarray to, size_t at, const void *from, size_t size), to, at, from, size)
SYNC(cuMemcpyAtoH_v2, (void *to, CUarray from, size_t at, size_t size), to, from, at, size)
QUEUED(cuMemcpyDtoA_v2, (CUarray to, size_t at, CUdeviceptr from, size_t size), to, at, from, size)
QUEUED(cuMemcpyAtoD_v2, (CUdeviceptr to, CUarray from, size_t at, size_t size), to, from, at, size)
QUEUED(cuMemcpyAtoA_v2, (CUarray to, size_t to_at, CUarray from, size_t at, size_t size), to,
     to_at, from, at, size)
SET(cuMemsetD8_v2, (CUdeviceptr p, unsigned char value, size_t n), p, value, n)
SET(cuMemsetD16_v2, (CUdeviceptr p, unsigned short value, size_t n), p, value, n)
SET(cuMemsetD32_v2, (CUdeviceptr p, unsigned int value, size_t n), p, value, n)
SET(cuMemsetD2D8_v2, (CUdeviceptr p, size_t pitch, unsigned char value, size_t width,
		       size_t height), p, pitch, value, width, height)
SET(cuMemsetD2D16_v2, (CUdeviceptr p, size_t pitch, unsigned short value, size_t width,
			size_t height), p, pitch, value, width, height)
SET(cuMemsetD2D32_v2, (CUdeviceptr p, size_t pitch, unsigned int value, size_t width,
			size_t height), p, pitch, value, width, height)

/*
 * ---- asynchronous copies. Those of pageable memory are synchronous. None may come between the
 * calls of another thread's task (entry/shared.c). ----
 */

static bool is_pageable(const void *p)
{
	CUmemorytype type = 0;

	return p && gi_real.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
						  (CUdeviceptr)(uintptr_t)p);
}

static const void *host_end(CUmemorytype type, const void *host, CUdeviceptr unified)
{
	if (type == CU_MEMORYTYPE_HOST)
		return host;
	return type == CU_MEMORYTYPE_UNIFIED ? (const void *)(uintptr_t)unified : NULL;
}

#define HOST_END(copy, end) \
	((copy) ? host_end((copy)->end##MemoryType, (copy)->end##Host, (copy)->end##Device) : NULL)

/* Whether one of @n addresses is pageable host memory. */
static bool any_pageable(const CUdeviceptr *ends, size_t n)
{
	size_t i;

	for (i = 0; ends && i < n; i++)
		if (is_pageable((void *)(uintptr_t)ends[i]))
			return true;
	return false;
}

static bool pageable_operand(const CUmemcpy3DOperand *o)
{
	return o->type == CU_MEMCPY_OPERAND_TYPE_POINTER &&
	       is_pageable((void *)(uintptr_t)o->op.ptr.ptr);
}

static bool any_pageable_operand(const CUDA_MEMCPY3D_BATCH_OP *ops, size_t n)
{
	size_t i;

	for (i = 0; ops && i < n; i++)
		if (pageable_operand(&ops[i].src) || pageable_operand(&ops[i].dst))
			return true;
	return false;
}

/* @waits: one end of the copy is pageable host memory. */
#define ASYNC_ON(stream_, symbol, own, waits, ...) \
	struct gi_stream_guard guard; \
	CUresult rc; \
\
	GI_ENTER(); \
	if (gi_wait_needed() && (waits)) \
		return GI_CALL_ON(stream_, symbol, own, __VA_ARGS__); \
	gi_stay_near(); \
	guard = gi_stream_lock_shared(stream_); \
	rc = gi_real.symbol##own(__VA_ARGS__); \
	gi_stream_unlock_shared(&guard); \
	return rc;

#define PARAMS(...) (__VA_ARGS__, CUstream stream)
#define ASYNC(symbol, params, waits, ...) \
	CUresult symbol PARAMS params \
	{ \
		ASYNC_ON(stream, symbol, , waits, __VA_ARGS__, stream) \
	} \
	CUresult symbol##_ptsz PARAMS params \
	{ \
		ASYNC_ON(per_thread(stream), symbol, _ptsz, waits, __VA_ARGS__, stream) \
	}

ASYNC(cuMemcpyAsync, (CUdeviceptr to, CUdeviceptr from, size_t size),
      is_pageable((void *)to) || is_pageable((void *)from), to, from, size)
ASYNC(cuMemcpyWithAttributesAsync, (CUdeviceptr to, CUdeviceptr from, size_t size,
				    CUmemcpyAttributes *as),
      is_pageable((void *)to) || is_pageable((void *)from), to, from, size, as)
ASYNC(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t size), is_pageable(from), to,
      from, size)
ASYNC(cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t size), is_pageable(to), to, from,
      size)
ASYNC(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D *copy),
      is_pageable(HOST_END(copy, src)) || is_pageable(HOST_END(copy, dst)), copy)
ASYNC(cuMemcpy3DAsync_v2, (const CUDA_MEMCPY3D *copy),
      is_pageable(HOST_END(copy, src)) || is_pageable(HOST_END(copy, dst)), copy)
ASYNC(cuMemcpy3DPeerAsync, (const CUDA_MEMCPY3D_PEER *copy),
      is_pageable(HOST_END(copy, src)) || is_pageable(HOST_END(copy, dst)), copy)
ASYNC(cuMemcpyHtoAAsync_v2, (CUarray to, size_t at, const void *from, size_t size),
      is_pageable(from), to, at, from, size)
ASYNC(cuMemcpyAtoHAsync_v2, (void *to, CUarray from, size_t at, size_t size), is_pageable(to), to,
      from, at, size)
ASYNC(cuMemcpyBatchAsync, (CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t n,
			   CUmemcpyAttributes *as, size_t *as_from, size_t n_as, size_t *failed),
      any_pageable(to, n) || any_pageable(from, n), to, from, sizes, n, as, as_from, n_as, failed)
ASYNC(cuMemcpyBatchAsync_v2, (CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t n,
			      CUmemcpyAttributes *as, size_t *as_from, size_t n_as),
      any_pageable(to, n) || any_pageable(from, n), to, from, sizes, n, as, as_from, n_as)
ASYNC(cuMemcpy3DWithAttributesAsync, (CUDA_MEMCPY3D_BATCH_OP *op, unsigned long long flags),
      any_pageable_operand(op, 1), op, flags)
ASYNC(cuMemcpy3DBatchAsync, (size_t n, CUDA_MEMCPY3D_BATCH_OP *ops, size_t *failed,
			     unsigned long long flags),
      any_pageable_operand(ops, n), n, ops, failed, flags)
ASYNC(cuMemcpy3DBatchAsync_v2, (size_t n, CUDA_MEMCPY3D_BATCH_OP *ops, unsigned long long flags),
      any_pageable_operand(ops, n), n, ops, flags)
