// SPDX-License-Identifier: LGPL-2.1-or-later
/* The driver API of vgpu: memory pools, and memory that graphs allocate */
#include "test-api.h"

#define MIB ((size_t)1 << 20)

static CUstream s1, s2;

static cuuint64_t attribute(CUmemoryPool pool, CUmemPool_attribute which)
{
	cuuint64_t value = 0;

	return cuMemPoolGetAttribute(pool, which, &value) ? UINT64_MAX : value;
}

static CUmemPoolProps here(void)
{
	return (CUmemPoolProps) { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				  .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
}

static bool default_pool(void)
{
	CUmemLocation device = { CU_MEM_LOCATION_TYPE_DEVICE, 0 };
	CUmemPoolProps props = here();
	CUmemoryPool pool, own, now;
	cuuint64_t kept = MIB;
	CUdeviceptr p;

	OK(cuDeviceGetDefaultMemPool(&pool, 0));
	OK(cuDeviceGetMemPool(&now, 0));
	CHECK(now == pool);
	OK(cuMemGetDefaultMemPool(&now, &device, CU_MEM_ALLOCATION_TYPE_PINNED));
	CHECK(now == pool);
	OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &kept));
	CHECK(attribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) == MIB);
	kept = 0;
	OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &kept));
	IS(INVALID_VALUE, cuMemPoolSetAttribute(NULL, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &kept));
	IS(INVALID_DEVICE, cuDeviceGetDefaultMemPool(&pool, 99));
	IS(INVALID_VALUE, cuMemPoolDestroy(pool));
	OK(cuMemPoolCreate(&own, &props));
	OK(cuDeviceSetMemPool(0, own));
	OK(cuMemAllocAsync(&p, 4096, s1));
	CHECK(attribute(own, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 4096);
	OK(cuPointerGetAttribute(&now, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
	CHECK(now == own);
	OK(cuMemPoolDestroy(own));	/* goes with the last of its memory */
	IS(INVALID_VALUE, cuMemPoolTrimTo(own, 0));
	OK(cuDeviceGetMemPool(&now, 0));
	CHECK(now == pool);
	OK(cuMemsetD8Async(p, 1, 4096, s1));
	OK(cuMemFreeAsync(p, s1));
	OK(cuStreamSynchronize(s1));
	IS(INVALID_VALUE, cuMemFreeAsync(p, s1));
	return true;
}

/* Freed in a stream that is not there yet: again at once in that one, elsewhere not before */
static bool reuse(void)
{
	CUmemPoolProps props = here();
	CUdeviceptr p, q, other;
	cuuint64_t kept = UINT64_MAX;
	CUmemoryPool pool;
	int no = 0;

	memset((void *)host, 0, 4096);
	OK(cuMemPoolCreate(&pool, &props));
	OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &kept));
	OK(cuMemAllocFromPoolAsync(&p, MIB, pool, s1));
	OK(spin(s1, 0, 1, 32));
	OK(cuMemsetD32Async(p, 7, MIB / 4, s1));
	OK(cuMemcpyDtoHAsync((void *)(host + 4), p + MIB - 4, 4, s1));
	OK(cuMemFreeAsync(p, s1));
	IS(INVALID_VALUE, cuMemFreeAsync(p, s1));
	CHECK(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0);
	OK(cuMemAllocFromPoolAsync(&other, MIB, pool, s2));
	CHECK(other != p);
	OK(cuMemAllocFromPoolAsync(&q, MIB, pool, s1));
	CHECK(q == p);
	OK(cuMemsetD32Async(q, 8, MIB / 4, s1));
	OK(cuMemcpyDtoHAsync((void *)(host + 5), q + MIB - 4, 4, s1));
	OK(cuMemFreeAsync(q, s1));
	host[0] = 1;
	OK(cuStreamSynchronize(s1));
	CHECK(host[4] == 7 && host[5] == 8);
	CHECK(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 2 * MIB);
	CHECK(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 2 * MIB);
	/* the free is over: in any stream, unless the pool says not */
	OK(cuMemAllocFromPoolAsync(&q, MIB, pool, s2));
	CHECK(q == p);
	OK(cuMemFreeAsync(q, s1));
	OK(cuStreamSynchronize(s1));
	OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &no));
	OK(cuMemAllocFromPoolAsync(&q, MIB, pool, s2));
	CHECK(q != p);
	OK(cuMemFreeAsync(q, s2));
	OK(cuMemFree(other));
	OK(cuStreamSynchronize(s2));
	CHECK(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 3 * MIB);
	OK(cuMemPoolTrimTo(pool, 2 * MIB));
	CHECK(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 2 * MIB);
	kept = 0;
	OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &kept));
	OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &kept));
	OK(cuStreamSynchronize(s1));
	CHECK(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 0);
	CHECK(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) == 3 * MIB);
	CHECK(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 0);
	OK(cuMemPoolDestroy(pool));
	return true;
}

static bool limits(void)
{
	CUmemPoolProps props = here();
	cuuint64_t kept = UINT64_MAX;
	size_t left, after, total;
	CUmemoryPool pool;
	CUdeviceptr p, q;

	props.maxSize = 2 * MIB;
	OK(cuMemPoolCreate(&pool, &props));
	OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &kept));
	OK(cuMemAllocFromPoolAsync(&p, MIB, pool, s1));
	IS(OUT_OF_MEMORY, cuMemAllocFromPoolAsync(&q, 2 * MIB, pool, s1));
	OK(cuMemFreeAsync(p, s1));
	OK(cuStreamSynchronize(s1));
	/* what it keeps makes room */
	OK(cuMemAllocFromPoolAsync(&q, 2 * MIB, pool, s1));
	OK(cuMemFreeAsync(q, s1));
	OK(cuStreamSynchronize(s1));
	/* for others too */
	OK(cuMemGetInfo(&left, &total));
	OK(cuMemAlloc(&p, left + MIB));
	OK(cuMemFree(p));
	OK(cuMemGetInfo(&after, &total));
	CHECK(after == left + 2 * MIB);
	OK(cuMemPoolDestroy(pool));
	IS(INVALID_VALUE, cuMemAllocFromPoolAsync(&p, MIB, pool, s1));
	IS(INVALID_VALUE, cuMemAllocFromPoolAsync(&p, MIB, NULL, s1));
	IS(INVALID_VALUE, cuMemAllocAsync(&p, 0, s1));
	props.location.id = 99;
	IS(INVALID_VALUE, cuMemPoolCreate(&pool, &props));
	return true;
}

static bool access(void)
{
	CUmemAccessDesc d = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
			      CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUmemPoolProps props = here();
	CUmemAccess_flags flags;
	CUmemoryPool pool;
	CUdeviceptr p;
	unsigned int type;

	OK(cuMemPoolCreate(&pool, &props));
	OK(cuMemPoolGetAccess(&flags, pool, &d.location));
	CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	OK(cuMemPoolSetAccess(pool, &d, 1));
	d.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	IS(INVALID_VALUE, cuMemPoolSetAccess(pool, &d, 1));
	d.location.id = 99;
	IS(INVALID_DEVICE, cuMemPoolSetAccess(pool, &d, 1));
	OK(cuMemPoolDestroy(pool));
	props.location.type = CU_MEM_LOCATION_TYPE_HOST;
	OK(cuMemPoolCreate(&pool, &props));
	OK(cuMemAllocFromPoolAsync(&p, 4096, pool, s1));
	OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
	CHECK(type == CU_MEMORYTYPE_HOST);
	OK(cuMemsetD32Async(p, 9, 1024, s1));
	OK(cuStreamSynchronize(s1));
	CHECK(((uint32_t *)(uintptr_t)p)[1023] == 9);
	OK(cuMemFreeAsync(p, s1));
	OK(cuMemPoolDestroy(pool));
	return true;
}

static cuuint64_t of_graphs(CUgraphMem_attribute which)
{
	cuuint64_t value = 0;

	return cuDeviceGetGraphMemAttribute(0, which, &value) ? UINT64_MAX : value;
}

/* out[i] = in[i] + v, a warp */
static CUresult add(CUstream s, CUdeviceptr out, CUdeviceptr in, uint32_t v)
{
	return run(k_add, 1, 32, s, (void *[]){ &out, &in, &v });
}

static bool captured(void)
{
	CUgraphNodeType type;
	CUdeviceptr p, q, got;
	CUgraphNode nodes[4];
	CUgraphExec exec, again;
	CUgraph g, clone;
	size_t n = 4;

	memset((void *)host, 0, 4096);
	OK(cuMemAllocAsync(&q, 4096, s1));
	OK(cuStreamBeginCapture(s1, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuMemAllocAsync(&p, 4096, s1));
	IS(INVALID_VALUE, cuMemFreeAsync(q, s1));	/* not the graph's */
	OK(add(s1, p, at(0), 5));
	OK(add(s1, at(0), p, 1));
	OK(cuMemFreeAsync(p, s1));
	IS(INVALID_VALUE, cuMemFreeAsync(p, s1));
	OK(cuStreamEndCapture(s1, &g));
	OK(cuGraphGetNodes(g, nodes, &n));
	CHECK(n == 4);
	OK(cuGraphNodeGetType(nodes[0], &type));
	CHECK(type == CU_GRAPH_NODE_TYPE_MEM_ALLOC);
	OK(cuGraphMemFreeNodeGetParams(nodes[3], &got));
	CHECK(got == p);
	IS(INVALID_VALUE, cuGraphMemFreeNodeGetParams(nodes[0], &got));
	IS(NOT_SUPPORTED, cuGraphClone(&clone, g));
	IS(NOT_SUPPORTED, cuGraphDestroyNode(nodes[3]));
	OK(cuGraphInstantiate(&exec, g, 0));
	IS(NOT_SUPPORTED, cuGraphInstantiate(&again, g, 0));
	for (int i = 0; i < 10; i++)
		OK(cuGraphLaunch(exec, s1));
	OK(cuStreamSynchronize(s1));
	CHECK(host[0] == 60 && host[31] == 60);
	CHECK(of_graphs(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == 0);
	CHECK(of_graphs(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) == 4096);
	CHECK(of_graphs(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) == 4096);
	OK(cuDeviceGraphMemTrim(0));
	CHECK(of_graphs(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) == 0);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphInstantiate(&again, g, 0));
	OK(cuGraphDestroy(g));
	OK(cuGraphLaunch(again, s1));
	OK(cuGraphExecDestroy(again));
	OK(cuStreamSynchronize(s1));
	CHECK(host[0] == 66);
	OK(cuMemFreeAsync(q, s1));
	return true;
}

/* What a graph leaves allocated is freed in a stream, by another graph, or by its next launch */
static bool left_allocated(void)
{
	CUDA_MEM_ALLOC_NODE_PARAMS p = { .poolProps = here(), .bytesize = 4096 };
	CUDA_MEM_ALLOC_NODE_PARAMS got;
	CUgraphExec exec, freeing;
	CUgraphNode a, f;
	CUgraph g, h;

	OK(cuGraphCreate(&g, 0));
	OK(cuGraphAddMemAllocNode(&a, g, NULL, 0, &p));
	OK(cuGraphMemAllocNodeGetParams(a, &got));
	CHECK(got.dptr == p.dptr && got.bytesize == 4096);
	OK(cuGraphCreate(&h, 0));
	OK(cuGraphAddMemFreeNode(&f, h, NULL, 0, p.dptr));
	IS(INVALID_VALUE, cuGraphAddMemFreeNode(&f, h, NULL, 0, p.dptr));
	IS(INVALID_VALUE, cuGraphAddMemFreeNode(&f, g, NULL, 0, at(0)));
	OK(cuGraphInstantiate(&exec, g, 0));
	OK(cuGraphInstantiate(&freeing, h, 0));
	IS(INVALID_VALUE, cuGraphLaunch(freeing, s1));
	IS(INVALID_VALUE, cuMemFreeAsync(p.dptr, s1));
	OK(cuGraphLaunch(exec, s1));
	IS(INVALID_VALUE, cuGraphLaunch(exec, s1));
	OK(cuMemsetD32Async(p.dptr, 3, 1024, s1));
	OK(add(s1, p.dptr, p.dptr, 4));
	OK(cuMemcpyDtoHAsync((void *)host, p.dptr, 4, s1));
	OK(cuMemFreeAsync(p.dptr, s1));
	OK(cuGraphLaunch(exec, s1));
	OK(cuGraphLaunch(freeing, s1));
	OK(cuGraphLaunch(exec, s1));
	OK(cuStreamSynchronize(s1));
	CHECK(host[0] == 7);
	OK(cuMemFree(p.dptr));
	CHECK(of_graphs(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == 0);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphInstantiate(&exec, g, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
	for (int i = 0; i < 3; i++)
		OK(cuGraphLaunch(exec, s1));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(g));
	OK(add(s1, p.dptr, p.dptr, 4));		/* allocated still */
	OK(cuMemFreeAsync(p.dptr, s1));
	OK(cuStreamSynchronize(s1));
	CHECK(of_graphs(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == 0);
	IS(INVALID_VALUE, cuGraphLaunch(freeing, s1));
	OK(cuGraphExecDestroy(freeing));
	OK(cuGraphDestroy(h));
	return true;
}

void pools_tests(void)
{
	if (cuStreamCreate(&s1, CU_STREAM_NON_BLOCKING) ||
	    cuStreamCreate(&s2, CU_STREAM_NON_BLOCKING)) {
		ok(false, "pools: streams");
		return;
	}
	ok(default_pool(), "pools: the default one, the current one, one destroyed in use");
	ok(reuse(), "pools: memory is used again in stream order");
	ok(limits(), "pools: a greatest size; what is kept makes room; wrong arguments");
	ok(access(), "pools: access, and host memory");
	ok(captured(), "graphs: memory of their own, captured");
	ok(left_allocated(), "graphs: memory that outlives a launch");
	cuStreamDestroy(s1);
	cuStreamDestroy(s2);
}
