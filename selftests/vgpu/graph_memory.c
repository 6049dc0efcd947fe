// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Driver API: memory that graphs allocate and free. An address belongs to its allocation node as
 * long as that exists in a graph or an executable one; kernels may use it from the launch's
 * allocation on until the free, in whatever graph or stream that is. No two allocations share
 * memory.
 */
#include <stdlib.h>
#include <string.h>
#include "graph.h"
#include "pool.h"

/* Of a device, in bytes */
static struct account {
	cuuint64_t used, used_high, reserved, reserved_high;
} accounts[VG_GPUS_MAX];

static struct vg_graph_mem *all;

static struct account *account(const struct vg_graph_mem *m)
{
	return &accounts[m->gpu->number];
}

struct vg_graph_mem *vg_graph_mem_find(CUdeviceptr ptr)
{
	struct vg_graph_mem *m = all;

	while (m && m->base != ptr)
		m = m->next;
	return m;
}

void vg_graph_mem_get(struct vg_graph_mem *m)
{
	m->refs++;
}

static void unreserve(struct vg_graph_mem *m)
{
	if (!m->reserved)
		return;
	account(m)->reserved -= m->size;
	vg_uncharge(m->gpu, m->size, m->object);
	m->reserved = false;
}

static CUresult reserve(struct vg_graph_mem *m)
{
	struct account *a = account(m);

	if (m->reserved)
		return CUDA_SUCCESS;
	if (!vg_charge(m->gpu, m->size, &m->object))
		return CUDA_ERROR_OUT_OF_MEMORY;
	m->reserved = true;
	a->reserved += m->size;
	if (a->reserved > a->reserved_high)
		a->reserved_high = a->reserved;
	return CUDA_SUCCESS;
}

void vg_graph_mem_put(struct vg_graph_mem *m)
{
	struct vg_graph_mem **p = &all;

	if (--m->refs)
		return;
	while (*p != m)
		p = &(*p)->next;
	*p = m->next;
	unreserve(m);
	vg_region_del(m->base);
	vg_pages_give(NULL, (void *)(uintptr_t)m->base, m->size, 0);
	free(m);
}

void vg_graph_mem_allocated(struct vg_graph_mem *m)
{
	struct account *a = account(m);

	if (m->live)	/* freed and allocated again by the launch, with the same memory */
		return;
	m->live = true;
	m->refs++;
	vg_region_absent(m->base, false);
	a->used += m->size;
	if (a->used > a->used_high)
		a->used_high = a->used;
}

static void end(struct vg_graph_mem *m)
{
	if (!m->live)
		return;
	m->live = false;
	vg_region_absent(m->base, true);
	account(m)->used -= m->size;
	vg_graph_mem_put(m);
}

bool vg_graph_mem_freed(CUdeviceptr ptr)
{
	struct vg_graph_mem *m = vg_graph_mem_find(ptr);

	if (m)
		end(m);
	return m;
}

CUresult vg_graph_mem_free(CUdeviceptr ptr)
{
	struct vg_graph_mem *m = vg_graph_mem_find(ptr);

	if (!m || !m->owed)
		return CUDA_ERROR_INVALID_VALUE;
	m->owed = false;
	return CUDA_SUCCESS;
}

void vg_graph_mem_drop(const struct CUctx_st *ctx)
{
	for (struct vg_graph_mem *m = all, *next; m; m = next) {
		next = m->next;
		if (m->ctx != ctx)
			continue;
		unreserve(m);
		m->owed = false;
		end(m);
	}
}

/* Nodes */

static struct vg_graph_mem *allocates(const struct CUgraphNode_st *n)
{
	return n->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && n->op ? n->op->alloc.mem : NULL;
}

static struct vg_graph_mem *frees(const struct CUgraphNode_st *n)
{
	return n->type == CU_GRAPH_NODE_TYPE_MEM_FREE && n->op ?
	       vg_graph_mem_find(n->op->free.ptr) : NULL;
}

bool vg_graph_has_memory(const struct CUgraph_st *g)
{
	for (const struct CUgraphNode_st *n = g->nodes; n; n = n->next)
		if (n->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
		    n->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
			return true;
	return false;
}

static bool freed_in(const struct CUgraph_st *g, const struct vg_graph_mem *m)
{
	for (const struct CUgraphNode_st *n = g->nodes; n; n = n->next)
		if (frees(n) == m)
			return true;
	return false;
}

static bool allocated_in(const struct CUgraph_st *g, const struct vg_graph_mem *m)
{
	for (const struct CUgraphNode_st *n = g->nodes; n; n = n->next)
		if (allocates(n) == m)
			return true;
	return false;
}

CUresult vg_node_alloc(struct CUgraphNode_st *n, struct CUctx_st *ctx,
		       CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
	struct vg_region region = { .kind = VG_MEM_DEVICE, .ctx = ctx, .gpu = ctx->gpu,
				    .absent = true };
	struct vg_graph_mem *m = calloc(1, sizeof(*m));
	struct vg_op *op = vg_op_new(VG_OP_ALLOC);

	if (!m || !op)
		goto no_memory;
	m->size = (p->bytesize + 511) & ~(size_t)511;
	m->ctx = ctx;
	m->gpu = ctx->gpu;
	m->props = p->poolProps;
	m->refs = 1;
	m->base = (uintptr_t)vg_pages_take(NULL, m->size, &m->object);
	if (!m->base)
		goto no_memory;
	region.base = m->base;
	region.size = p->bytesize;
	region.owner = m;
	if (vg_region_add(&region)) {
		vg_pages_give(NULL, (void *)(uintptr_t)m->base, m->size, 0);
		goto no_memory;
	}
	m->next = all;
	all = m;
	op->alloc.mem = m;
	op->alloc.size = p->bytesize;
	vg_node_set_op(n, op);
	p->dptr = m->base;
	return CUDA_SUCCESS;
no_memory:
	free(m);
	free(op);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult vg_node_free_memory(struct CUgraphNode_st *n, CUdeviceptr ptr)
{
	const struct vg_graph_mem *m = vg_graph_mem_find(ptr);
	struct vg_op *op;

	if (!m || freed_in(n->graph, m))
		return CUDA_ERROR_INVALID_VALUE;
	op = vg_op_new(VG_OP_FREE);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	op->free.ptr = ptr;
	vg_node_set_op(n, op);
	return CUDA_SUCCESS;
}

CUDADRV_API CUresult cuGraphAddMemAllocNode(CUgraphNode *out, CUgraph g, const CUgraphNode *deps,
					    size_t n_deps, CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
	struct CUgraphNode_st *n;
	struct CUctx_st *ctx;
	CUresult r = out && p ? vg_enter_ctx(&ctx) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	if (!vg_handle_is(g, VG_GRAPH) || !p->bytesize || (p->accessDescCount && !p->accessDescs) ||
	    p->poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED || p->poolProps.handleTypes)
		return vg_leave(CUDA_ERROR_INVALID_VALUE);
	if (p->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
	    p->poolProps.location.id != (int)ctx->gpu->number)
		return vg_leave(vg_unsimulated("a graph's memory that is not on its device"));
	r = vg_node_new(g, CU_GRAPH_NODE_TYPE_MEM_ALLOC, deps, n_deps, &n);
	if (r)
		return vg_leave(r);
	r = vg_node_alloc(n, ctx, p);
	if (r)
		vg_node_free(n);
	else
		*out = n;
	return vg_leave(r);
}

CUDADRV_API CUresult cuGraphAddMemFreeNode(CUgraphNode *out, CUgraph g, const CUgraphNode *deps,
					   size_t n_deps, CUdeviceptr ptr)
{
	struct CUgraphNode_st *n;
	CUresult r = out ? vg_enter_graph(g) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	r = vg_node_new(g, CU_GRAPH_NODE_TYPE_MEM_FREE, deps, n_deps, &n);
	if (r)
		return vg_leave(r);
	r = vg_node_free_memory(n, ptr);
	if (r)
		vg_node_free(n);
	else
		*out = n;
	return vg_leave(r);
}

CUDADRV_API CUresult cuGraphMemAllocNodeGetParams(CUgraphNode n, CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
	CUresult r = p ? vg_enter_node(n) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	if (!allocates(n))
		return vg_leave(CUDA_ERROR_INVALID_VALUE);
	*p = (CUDA_MEM_ALLOC_NODE_PARAMS) { .poolProps = n->op->alloc.mem->props,
					    .bytesize = n->op->alloc.size,
					    .dptr = n->op->alloc.mem->base };
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuGraphMemFreeNodeGetParams(CUgraphNode n, CUdeviceptr *ptr)
{
	CUresult r = ptr ? vg_enter_node(n) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	if (n->type != CU_GRAPH_NODE_TYPE_MEM_FREE)
		return vg_leave(CUDA_ERROR_INVALID_VALUE);
	*ptr = n->op->free.ptr;
	return vg_leave(CUDA_SUCCESS);
}

/* Executable graphs */

CUresult vg_graph_mem_instantiate(const struct CUgraph_st *g, bool on)
{
	for (const struct CUgraphNode_st *n = g->nodes; on && n; n = n->next)
		if (allocates(n) && allocates(n)->instantiated)
			return CUDA_ERROR_NOT_SUPPORTED;
	for (const struct CUgraphNode_st *n = g->nodes; n; n = n->next)
		if (allocates(n))
			allocates(n)->instantiated = on;
	return CUDA_SUCCESS;
}

CUresult vg_graph_mem_launch(const struct CUgraphExec_st *exec)
{
	const struct CUgraph_st *g = exec->graph;
	CUresult r = CUDA_SUCCESS;

	for (const struct CUgraphNode_st *n = g->nodes; n; n = n->next) {
		const struct vg_graph_mem *m = allocates(n);

		if (m && m->owed &&
		    !(exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH))
			return CUDA_ERROR_INVALID_VALUE;
		m = frees(n);
		if (n->type == CU_GRAPH_NODE_TYPE_MEM_FREE &&
		    (!m || (!m->owed && !allocated_in(g, m))))
			return CUDA_ERROR_INVALID_VALUE;
	}
	for (const struct CUgraphNode_st *n = g->nodes; !r && n; n = n->next)
		if (allocates(n))
			r = reserve(allocates(n));
	for (const struct CUgraphNode_st *n = g->nodes; !r && n; n = n->next) {
		if (allocates(n))
			allocates(n)->owed = !freed_in(g, allocates(n));
		else if (frees(n))
			frees(n)->owed = false;
	}
	return r;
}

/* What it takes of a device */

CUDADRV_API CUresult cuDeviceGraphMemTrim(CUdevice dev)
{
	CUresult r = vg_check_device(&dev, dev);

	if (r || (r = vg_enter()))
		return r;
	/* a launch that is queued has allocated nothing yet, and will */
	for (struct vg_graph_mem *m = vg_passed(vg.seq) ? all : NULL; m; m = m->next)
		if (m->gpu == &vg.gpu[dev] && !m->live)
			unreserve(m);
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuDeviceGetGraphMemAttribute(CUdevice dev, CUgraphMem_attribute attribute,
						  void *value)
{
	CUresult r = vg_check_device(value, dev);

	if (r || (r = vg_enter()))
		return r;
	switch (attribute) {
	case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
		*(cuuint64_t *)value = accounts[dev].used;
		break;
	case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
		*(cuuint64_t *)value = accounts[dev].used_high;
		break;
	case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
		*(cuuint64_t *)value = accounts[dev].reserved;
		break;
	case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
		*(cuuint64_t *)value = accounts[dev].reserved_high;
		break;
	default:
		r = CUDA_ERROR_INVALID_VALUE;
	}
	return vg_leave(r);
}

CUDADRV_API CUresult cuDeviceSetGraphMemAttribute(CUdevice dev, CUgraphMem_attribute attribute,
						  void *value)
{
	CUresult r = vg_check_device(value, dev);

	if (r || (r = vg_enter()))
		return r;
	if (*(cuuint64_t *)value)
		r = CUDA_ERROR_INVALID_VALUE;
	else if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
		accounts[dev].used_high = accounts[dev].used;
	else if (attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
		accounts[dev].reserved_high = accounts[dev].reserved;
	else
		r = CUDA_ERROR_INVALID_VALUE;
	return vg_leave(r);
}
