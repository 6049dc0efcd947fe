// SPDX-License-Identifier: LGPL-2.1-or-later
/* Driver API: what nodes do: adding them to graphs, asking for their parameters, changing them */
#include <stdlib.h>
#include <string.h>
#include "graph.h"
#include "pool.h"

CUresult vg_node_kernel(struct CUgraphNode_st *n, const CUDA_KERNEL_NODE_PARAMS *p)
{
	struct vg_op *op;
	CUresult r;

	if (!p->func == !p->kern)
		return CUDA_ERROR_INVALID_VALUE;
	r = vg_kernel_new(p->func ? (const void *)p->func : p->kern, p,
			  n->op ? n->op->kernel.priority : VG_LEAST_PRIORITY,
			  n->op && n->op->kernel.need.whole, &op);
	if (!r)
		vg_node_set_op(n, op);
	return r;
}

CUresult vg_node_memcpy(struct CUgraphNode_st *n, const CUDA_MEMCPY3D *p)
{
	struct vg_op *op;
	CUresult r = vg_copy_new(p, &op);

	if (r)
		return r;
	vg_node_set_op(n, op);
	n->copy = *p;
	return CUDA_SUCCESS;
}

CUresult vg_node_memset(struct CUgraphNode_st *n, const CUDA_MEMSET_NODE_PARAMS *p)
{
	struct vg_op *op;
	CUresult r;

	if (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4)
		return CUDA_ERROR_INVALID_VALUE;
	r = vg_set_new(p, &op);
	if (r)
		return r;
	vg_node_set_op(n, op);
	n->set = *p;
	return CUDA_SUCCESS;
}

CUresult vg_node_host(struct CUgraphNode_st *n, const CUDA_HOST_NODE_PARAMS *p)
{
	struct vg_op *op = p->fn ? vg_op_new(VG_OP_HOST) : NULL;

	if (!op)
		return p->fn ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
	op->host.fn = p->fn;
	op->host.user = p->userData;
	vg_node_set_op(n, op);
	return CUDA_SUCCESS;
}

static CUmemorytype memory_of(const void *p)
{
	const struct vg_region *r = vg_region_find((uintptr_t)p);

	return r && r->kind != VG_MEM_HOST && r->kind != VG_MEM_REGISTERED ? CU_MEMORYTYPE_DEVICE :
	       CU_MEMORYTYPE_HOST;
}

void vg_node_describe(struct CUgraphNode_st *n)
{
	const struct vg_op *op = n->op;
	CUDA_MEMCPY3D *c = &n->copy;

	if (op->kind == VG_OP_SET) {
		n->set = (CUDA_MEMSET_NODE_PARAMS) {
			(uintptr_t)op->set.dst, op->set.pitch, op->set.value, op->set.element,
				op->set.width, op->set.height,
		};
		return;
	}
	if (op->kind == VG_OP_COPY) {
		*c = (CUDA_MEMCPY3D) { .srcHost = op->copy.src, .dstHost = op->copy.dst,
				       .WidthInBytes = op->copy.size, .Height = 1,
				       .Depth = 1 };
	} else {
		*c = (CUDA_MEMCPY3D) {
			.srcHost = op->copy2d.src, .srcPitch = op->copy2d.src_pitch,
			.srcHeight = op->copy2d.src_plane / op->copy2d.src_pitch,
				.dstHost = op->copy2d.dst,
			.dstPitch = op->copy2d.dst_pitch,
				.dstHeight = op->copy2d.dst_plane / op->copy2d.dst_pitch,
			.WidthInBytes = op->copy2d.width, .Height = op->copy2d.height,
				.Depth = op->copy2d.depth,
		};
	}
	c->srcMemoryType = memory_of(c->srcHost);
	c->dstMemoryType = memory_of(c->dstHost);
	if (c->srcMemoryType == CU_MEMORYTYPE_DEVICE) {
		c->srcDevice = (uintptr_t)c->srcHost;
		c->srcHost = NULL;
	}
	if (c->dstMemoryType == CU_MEMORYTYPE_DEVICE) {
		c->dstDevice = (uintptr_t)c->dstHost;
		c->dstHost = NULL;
	}
}

/* Adding: a node is made, then filled; if it cannot be filled it goes again */

static CUresult node_batch(struct CUgraphNode_st *n, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p)
{
	struct vg_op *op;
	CUresult r = CUDA_ERROR_INVALID_VALUE;

	if (!p->count || p->count > 256 || !p->paramArray || p->flags)
		return r;
	op = vg_values_new(p->count, p->paramArray, &r);
	if (!r)
		vg_node_set_op(n, op);
	return r;
}

static CUresult node_event(struct CUgraphNode_st *n, CUevent event)
{
	n->event = event;
	return vg_handle_is(event, VG_EVENT) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult node_child(struct CUgraphNode_st *n, CUgraph child)
{
	CUresult r = vg_handle_is(child, VG_GRAPH) && child != n->graph ? CUDA_SUCCESS :
		     CUDA_ERROR_INVALID_VALUE;

	if (!r && vg_graph_has_memory(child))
		r = CUDA_ERROR_NOT_SUPPORTED;
	if (!r)
		r = vg_graph_clone(child, &n->child);
	if (!r)
		n->child->owner = n;
	return r;
}

static CUresult fill(struct CUgraphNode_st *n, CUgraphNodeType type, const void *p)
{
	switch (type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return vg_node_kernel(n, p);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return vg_node_memcpy(n, p);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return vg_node_memset(n, p);
	case CU_GRAPH_NODE_TYPE_HOST:
		return vg_node_host(n, p);
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return node_child(n, *(const CUgraph *)p);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return node_event(n, *(const CUevent *)p);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return node_batch(n, p);
	default:
		return CUDA_SUCCESS;
	}
}

static CUresult add(CUgraphNode *out, CUgraph g, const CUgraphNode *deps, size_t n_deps,
		    CUgraphNodeType type, const void *p)
{
	struct CUgraphNode_st *n;
	CUresult r = out && p ? vg_enter_graph(g) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	r = vg_node_new(g, type, deps, n_deps, &n);
	if (r)
		return vg_leave(r);
	r = fill(n, type, p);
	if (r)
		vg_node_free(n);
	else
		*out = n;
	return vg_leave(r);
}

CUDADRV_API CUresult cuGraphAddKernelNode_v2(CUgraphNode *out, CUgraph g,
					     const CUgraphNode *deps, size_t n,
					     const CUDA_KERNEL_NODE_PARAMS_v2 *p)
{
	return add(out, g, deps, n, CU_GRAPH_NODE_TYPE_KERNEL, p);
}

CUDADRV_API CUresult cuGraphAddKernelNode(CUgraphNode *out, CUgraph g,
					  const CUgraphNode *deps, size_t n,
					  const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
	CUDA_KERNEL_NODE_PARAMS_v2 p2 = { 0 };

	if (p)
		memcpy(&p2, p, sizeof(*p));
	return add(out, g, deps, n, CU_GRAPH_NODE_TYPE_KERNEL, p ? &p2 : NULL);
}

CUDADRV_API CUresult cuGraphAddMemcpyNode(CUgraphNode *out, CUgraph g, const CUgraphNode *deps,
					  size_t n, const CUDA_MEMCPY3D *p, CUcontext ctx)
{
	return add(out, g, deps, n, CU_GRAPH_NODE_TYPE_MEMCPY, p);
}

CUDADRV_API CUresult cuGraphAddMemsetNode(CUgraphNode *out, CUgraph g,
					  const CUgraphNode *deps, size_t n,
					  const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx)
{
	return add(out, g, deps, n, CU_GRAPH_NODE_TYPE_MEMSET, p);
}

CUDADRV_API CUresult cuGraphAddHostNode(CUgraphNode *out, CUgraph g,
					const CUgraphNode *deps, size_t n,
					const CUDA_HOST_NODE_PARAMS *p)
{
	return add(out, g, deps, n, CU_GRAPH_NODE_TYPE_HOST, p);
}

CUDADRV_API CUresult cuGraphAddChildGraphNode(CUgraphNode *out, CUgraph g, const CUgraphNode *deps,
					      size_t n, CUgraph child)
{
	return add(out, g, deps, n, CU_GRAPH_NODE_TYPE_GRAPH, &child);
}

CUDADRV_API CUresult cuGraphAddEmptyNode(CUgraphNode *out, CUgraph g,
					 const CUgraphNode *deps, size_t n)
{
	return add(out, g, deps, n, CU_GRAPH_NODE_TYPE_EMPTY, "");
}

CUDADRV_API CUresult cuGraphAddEventRecordNode(CUgraphNode *out, CUgraph g, const CUgraphNode *deps,
					       size_t n, CUevent event)
{
	return add(out, g, deps, n, CU_GRAPH_NODE_TYPE_EVENT_RECORD, &event);
}

CUDADRV_API CUresult cuGraphAddEventWaitNode(CUgraphNode *out, CUgraph g, const CUgraphNode *deps,
					     size_t n, CUevent event)
{
	return add(out, g, deps, n, CU_GRAPH_NODE_TYPE_WAIT_EVENT, &event);
}

CUDADRV_API CUresult cuGraphAddBatchMemOpNode(CUgraphNode *out, CUgraph g,
					      const CUgraphNode *deps, size_t n,
					      const CUDA_BATCH_MEM_OP_NODE_PARAMS *p)
{
	return add(out, g, deps, n, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, p);
}

CUDADRV_API CUresult cuGraphAddNode_v2(CUgraphNode *out, CUgraph g, const CUgraphNode *deps,
				       const CUgraphEdgeData *data, size_t n, CUgraphNodeParams *p)
{
	static const CUgraphEdgeData plain;
	const CUDA_KERNEL_NODE_PARAMS_v3 *k;
	const CUDA_MEMSET_NODE_PARAMS_v2 *m;

	if (!p || p->reserved0[0] || p->reserved0[1] || p->reserved0[2] || p->reserved2)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; data && i < n; i++)
		if (memcmp(data + i, &plain, sizeof(plain)))
			return vg_unsimulated("cuGraphAddNode with programmatic edges");
	switch (p->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		k = &p->kernel;
		return add(out, g, deps, n, p->type,
			   &(CUDA_KERNEL_NODE_PARAMS){ k->func, k->gridDimX, k->gridDimY,
						       k->gridDimZ,
			   k->blockDimX, k->blockDimY, k->blockDimZ, k->sharedMemBytes,
			   k->kernelParams, k->extra, k->kern, k->ctx });
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return p->memcpy.flags ? CUDA_ERROR_INVALID_VALUE :
		       add(out, g, deps, n, p->type, &p->memcpy.copyParams);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		m = &p->memset;
		return add(out, g, deps, n, p->type,
			   &(CUDA_MEMSET_NODE_PARAMS){ m->dst, m->pitch, m->value, m->elementSize,
						       m->width, m->height });
	case CU_GRAPH_NODE_TYPE_HOST:
		return add(out, g, deps, n, p->type,
			   &(CUDA_HOST_NODE_PARAMS){ p->host.fn, p->host.userData });
	case CU_GRAPH_NODE_TYPE_GRAPH:
		if (p->graph.ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE)
			return vg_unsimulated("cuGraphAddNode of a child graph that is moved");
		return add(out, g, deps, n, p->type, &p->graph.graph);
	case CU_GRAPH_NODE_TYPE_EMPTY:
		return add(out, g, deps, n, p->type, "");
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return add(out, g, deps, n, p->type, &p->eventWait.event);
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return add(out, g, deps, n, p->type, &p->eventRecord.event);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return add(out, g, deps, n, p->type, &p->memOp);
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		return vg_unsimulated("cuGraphAddNode of a conditional node");
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		return cuGraphAddMemAllocNode(out, g, deps, n, (void *)&p->alloc);
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		return cuGraphAddMemFreeNode(out, g, deps, n, p->free.dptr);
	case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
	case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
		return vg_unsimulated("cuGraphAddNode of an external semaphore");
	}
	return CUDA_ERROR_INVALID_VALUE;
}

CUDADRV_API CUresult cuGraphAddNode(CUgraphNode *out, CUgraph g, const CUgraphNode *deps, size_t n,
				    CUgraphNodeParams *p)
{
	return cuGraphAddNode_v2(out, g, deps, NULL, n, p);
}

/* Asking and changing */

static CUresult enter(CUgraphNode n, CUgraphNodeType type, const void *p)
{
	CUresult r = p ? vg_enter_node(n) : CUDA_ERROR_INVALID_VALUE;

	if (r || n->type == type)
		return r;
	vg_leave(r);
	return CUDA_ERROR_INVALID_VALUE;
}

CUDADRV_API CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode n, CUDA_KERNEL_NODE_PARAMS_v2 *p)
{
	CUresult r = enter(n, CU_GRAPH_NODE_TYPE_KERNEL, p);
	const struct vgpu_kernel_info *info;
	const struct vgpu_launch *l;

	if (r)
		return r;
	info = n->op->kernel.function->info;
	l = &n->op->kernel.launch;
	if (!n->params) {
		n->params = calloc(info->n_params + 1, sizeof(void *));
		if (!n->params)
			return vg_leave(CUDA_ERROR_OUT_OF_MEMORY);
		for (unsigned int i = 0; i < info->n_params; i++)
			n->params[i] = (char *)n->op->kernel.params + info->param[i].offset;
	}
	*p = (CUDA_KERNEL_NODE_PARAMS) {
		n->op->kernel.function, l->grid[0], l->grid[1], l->grid[2], l->block[0],
			l->block[1], l->block[2],
		(unsigned int)l->dynamic_shared, n->params, NULL, NULL, NULL,
	};
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuGraphKernelNodeGetParams(CUgraphNode n, CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
	CUDA_KERNEL_NODE_PARAMS p2;
	CUresult r = p ? cuGraphKernelNodeGetParams_v2(n, &p2) : CUDA_ERROR_INVALID_VALUE;

	if (!r)
		memcpy(p, &p2, sizeof(*p));
	return r;
}

CUDADRV_API CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode n,
						   const CUDA_KERNEL_NODE_PARAMS_v2 *p)
{
	CUresult r = enter(n, CU_GRAPH_NODE_TYPE_KERNEL, p);

	return r ? r : vg_leave(vg_node_kernel(n, p));
}

CUDADRV_API CUresult cuGraphKernelNodeSetParams(CUgraphNode n, const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
	CUDA_KERNEL_NODE_PARAMS p2 = { 0 };

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&p2, p, sizeof(*p));
	return cuGraphKernelNodeSetParams_v2(n, &p2);
}

/* Attributes: the priority is real, the others are hints that change nothing here */
CUDADRV_API CUresult cuGraphKernelNodeGetAttribute(CUgraphNode n, CUkernelNodeAttrID id,
						   CUkernelNodeAttrValue *v)
{
	CUresult r = enter(n, CU_GRAPH_NODE_TYPE_KERNEL, v);

	if (r)
		return r;
	memset(v, 0, sizeof(*v));
	if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
		v->priority = n->op->kernel.priority;
	if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
		v->cooperative = n->op->kernel.need.whole;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuGraphKernelNodeSetAttribute(CUgraphNode n, CUkernelNodeAttrID id,
						   const CUkernelNodeAttrValue *v)
{
	CUresult r = enter(n, CU_GRAPH_NODE_TYPE_KERNEL, v);

	if (r)
		return r;
	if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
		if (v->priority > VG_LEAST_PRIORITY || v->priority < VG_GREATEST_PRIORITY)
			return vg_leave(CUDA_ERROR_INVALID_VALUE);
		n->op->kernel.priority = v->priority;
	}
	return vg_leave(CUDA_SUCCESS);
}

#define PARAMS(Kind, KIND, TYPE, get, set) \
	CUDADRV_API CUresult cuGraph##Kind##NodeGetParams(CUgraphNode n, TYPE *p) \
	{ \
		CUresult r = enter(n, CU_GRAPH_NODE_TYPE_##KIND, p); \
		if (r) \
			return r; \
		*p = get; \
		return vg_leave(CUDA_SUCCESS); \
	} \
	CUDADRV_API CUresult cuGraph##Kind##NodeSetParams(CUgraphNode n, const TYPE *p) \
	{ \
		CUresult r = enter(n, CU_GRAPH_NODE_TYPE_##KIND, p); \
		return r ? r : vg_leave(set(n, p)); \
	}

PARAMS(Memcpy, MEMCPY, CUDA_MEMCPY3D, n->copy, vg_node_memcpy)
PARAMS(Memset, MEMSET, CUDA_MEMSET_NODE_PARAMS, n->set, vg_node_memset)
PARAMS(Host, HOST, CUDA_HOST_NODE_PARAMS,
       ((CUDA_HOST_NODE_PARAMS) { n->op->host.fn, n->op->host.user }), vg_node_host)

CUDADRV_API CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode n, CUgraph *g)
{
	CUresult r = enter(n, CU_GRAPH_NODE_TYPE_GRAPH, g);

	if (r)
		return r;
	*g = n->child;
	return vg_leave(CUDA_SUCCESS);
}
