// SPDX-License-Identifier: LGPL-2.1-or-later
/* Runtime API: memory pools, and memory that graphs allocate. The structures are the driver's. */
#include "cudart.h"

RT_FN(cudaDeviceGetDefaultMemPool, (CUmemoryPool *pool, int device))
{
	return RT_CALL(0, cuDeviceGetDefaultMemPool, pool, device);
}

RT_FN(cudaDeviceGetMemPool, (CUmemoryPool *pool, int device))
{
	return RT_CALL(0, cuDeviceGetMemPool, pool, device);
}

RT_FN(cudaDeviceSetMemPool, (int device, CUmemoryPool pool))
{
	return RT_CALL(0, cuDeviceSetMemPool, device, pool);
}

RT_FN(cudaMemPoolCreate, (CUmemoryPool *pool, const CUmemPoolProps *props))
{
	return RT_CALL(0, cuMemPoolCreate, pool, props);
}

RT_FN(cudaMemPoolDestroy, (CUmemoryPool pool))
{
	return RT_CALL(0, cuMemPoolDestroy, pool);
}

RT_FN(cudaMemPoolTrimTo, (CUmemoryPool pool, size_t keep))
{
	return RT_CALL(0, cuMemPoolTrimTo, pool, keep);
}

RT_FN(cudaMemPoolSetAttribute, (CUmemoryPool pool, CUmemPool_attribute which, void *value))
{
	return RT_CALL(0, cuMemPoolSetAttribute, pool, which, value);
}

RT_FN(cudaMemPoolGetAttribute, (CUmemoryPool pool, CUmemPool_attribute which, void *value))
{
	return RT_CALL(0, cuMemPoolGetAttribute, pool, which, value);
}

RT_FN(cudaMemPoolSetAccess, (CUmemoryPool pool, const CUmemAccessDesc *map, size_t n))
{
	return RT_CALL(0, cuMemPoolSetAccess, pool, map, n);
}

RT_FN(cudaMemPoolGetAccess, (CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *l))
{
	return RT_CALL(0, cuMemPoolGetAccess, flags, pool, l);
}

static cudaError_t from_pool(void **p, size_t size, CUmemoryPool pool, cudaStream_t stream,
			     bool own)
{
	CUdeviceptr d = 0;
	cudaError_t e = p ? RT_CALL(own, cuMemAllocFromPoolAsync, &d, size, pool, stream) :
			rt_fail(cudaErrorInvalidValue);

	if (!e)
		*p = (void *)(uintptr_t)d;
	return e;
}
RT_BOTH(cudaMallocFromPoolAsync, _ptsz,
	(void **p, size_t size, CUmemoryPool pool, cudaStream_t stream),
	from_pool(p, size, pool, stream, own))

RT_FN(cudaGraphAddMemAllocNode, (cudaGraphNode_t *n, cudaGraph_t g, const cudaGraphNode_t *deps,
				 size_t n_deps, CUDA_MEM_ALLOC_NODE_PARAMS *p))
{
	return RT_CALL(0, cuGraphAddMemAllocNode, n, g, deps, n_deps, p);
}

RT_FN(cudaGraphMemAllocNodeGetParams, (cudaGraphNode_t n, CUDA_MEM_ALLOC_NODE_PARAMS *p))
{
	return RT_CALL(0, cuGraphMemAllocNodeGetParams, n, p);
}

RT_FN(cudaGraphAddMemFreeNode, (cudaGraphNode_t *n, cudaGraph_t g, const cudaGraphNode_t *deps,
				size_t n_deps, void *p))
{
	return RT_CALL(0, cuGraphAddMemFreeNode, n, g, deps, n_deps, (CUdeviceptr)(uintptr_t)p);
}

RT_FN(cudaGraphMemFreeNodeGetParams, (cudaGraphNode_t n, void *p))
{
	return RT_CALL(0, cuGraphMemFreeNodeGetParams, n, p);
}

RT_FN(cudaDeviceGraphMemTrim, (int device))
{
	return RT_CALL(0, cuDeviceGraphMemTrim, device);
}

RT_FN(cudaDeviceGetGraphMemAttribute, (int device, CUgraphMem_attribute which, void *value))
{
	return RT_CALL(0, cuDeviceGetGraphMemAttribute, device, which, value);
}

RT_FN(cudaDeviceSetGraphMemAttribute, (int device, CUgraphMem_attribute which, void *value))
{
	return RT_CALL(0, cuDeviceSetGraphMemAttribute, device, which, value);
}
