// SPDX-License-Identifier: LGPL-2.1-or-later
/* Driver API: changing an executable graph. Launches that were made before go on as they are. */
#include <stdlib.h>
#include <string.h>
#include "graph.h"

/* The executable graph's own of the node @id of the graph that it was made of */
static struct CUgraphNode_st *find(const struct CUgraph_st *g, uint64_t id)
{
	for (struct CUgraphNode_st *n = g->nodes; n; n = n->next) {
		struct CUgraphNode_st *in_child = NULL;

		if (n->origin == id)
			return n;
		if (n->child)
			in_child = find(n->child, id);
		if (in_child)
			return in_child;
	}
	return NULL;
}

static CUresult enter(CUgraphExec exec, CUgraphNode node, CUgraphNodeType type,
		      struct CUgraphNode_st **n)
{
	CUresult r = vg_enter();

	if (r)
		return r;
	*n = vg_handle_is(exec, VG_EXEC) && vg_handle_is(node, VG_NODE) ?
	     find(exec->graph, node->id) : NULL;
	if (*n && (*n)->type == type)
		return CUDA_SUCCESS;
	vg_leave(r);
	return CUDA_ERROR_INVALID_VALUE;
}

CUDADRV_API CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
						       const CUDA_KERNEL_NODE_PARAMS_v2 *p)
{
	struct CUgraphNode_st *n;
	CUresult r = p ? enter(exec, node, CU_GRAPH_NODE_TYPE_KERNEL, &n) :
		     CUDA_ERROR_INVALID_VALUE;

	return r ? r : vg_leave(vg_node_kernel(n, p));
}

CUDADRV_API CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
						    const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
	CUDA_KERNEL_NODE_PARAMS_v2 p2 = { 0 };

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&p2, p, sizeof(*p));
	return cuGraphExecKernelNodeSetParams_v2(exec, node, &p2);
}

CUDADRV_API CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
						    const CUDA_MEMCPY3D *p, CUcontext ctx)
{
	struct CUgraphNode_st *n;
	CUresult r = p ? enter(exec, node, CU_GRAPH_NODE_TYPE_MEMCPY, &n) :
		     CUDA_ERROR_INVALID_VALUE;

	return r ? r : vg_leave(vg_node_memcpy(n, p));
}

CUDADRV_API CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
						    const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx)
{
	struct CUgraphNode_st *n;
	CUresult r = p ? enter(exec, node, CU_GRAPH_NODE_TYPE_MEMSET, &n) :
		     CUDA_ERROR_INVALID_VALUE;

	return r ? r : vg_leave(vg_node_memset(n, p));
}

CUDADRV_API CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
						  const CUDA_HOST_NODE_PARAMS *p)
{
	struct CUgraphNode_st *n;
	CUresult r = p ? enter(exec, node, CU_GRAPH_NODE_TYPE_HOST, &n) : CUDA_ERROR_INVALID_VALUE;

	return r ? r : vg_leave(vg_node_host(n, p));
}

CUDADRV_API CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node,
					      CUgraphNodeParams *p)
{
	CUDA_KERNEL_NODE_PARAMS k;

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	if (p->type != CU_GRAPH_NODE_TYPE_KERNEL)
		return vg_unsimulated("cuGraphExecNodeSetParams of nodes that are no kernels");
	memcpy(&k, &p->kernel, sizeof(k));
	return cuGraphExecKernelNodeSetParams_v2(exec, node, &k);
}

/*
 * Nodes are paired in the order that they were made in, as a capture that does the same again makes
 * them
 */
static CUgraphExecUpdateResult same_shape(struct CUgraph_st *a, struct CUgraph_st *b,
					  CUgraphExecUpdateResultInfo *info)
{
	struct CUgraphNode_st *n, *m;

	if (vg_graph_number(a) != vg_graph_number(b))
		return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
	for (n = a->nodes, m = b->nodes; n; n = n->next, m = m->next) {
		CUgraphExecUpdateResult r = CU_GRAPH_EXEC_UPDATE_SUCCESS;
		size_t found = 0;

		info->errorNode = m;
		if (n->type != m->type)
			return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
		for (size_t i = 0; i < n->deps.n; i++)
			for (size_t j = 0; j < m->deps.n; j++)
				found += n->deps.at[i]->index == m->deps.at[j]->index;
		if (found != n->deps.n || n->deps.n != m->deps.n)
			return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
		if (n->op && m->op && n->op->kind != m->op->kind &&
		    n->type != CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
			return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
		if ((n->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC &&
		     n->op->alloc.mem != m->op->alloc.mem) ||
		    (n->type == CU_GRAPH_NODE_TYPE_MEM_FREE && n->op->free.ptr != m->op->free.ptr))
			return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
		if (n->child)
			r = same_shape(n->child, m->child, info);
		if (r)
			return r;
	}
	info->errorNode = NULL;
	return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

/* @to stays the graph of its nodes' origins: what they do, and not who they are, becomes @from's */
static void adopt(struct CUgraph_st *to, struct CUgraph_st *from)
{
	struct CUgraphNode_st *n, *m;

	for (n = to->nodes, m = from->nodes; n; n = n->next, m = m->next) {
		struct vg_op *op = m->op;

		m->op = NULL;
		vg_node_set_op(n, op);
		n->event = m->event;
		n->copy = m->copy;
		n->set = m->set;
		if (n->child)
			adopt(n->child, m->child);
	}
}

CUDADRV_API CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph g,
					  CUgraphExecUpdateResultInfo *info)
{
	CUresult r = info ? vg_enter_graph(g) : CUDA_ERROR_INVALID_VALUE;
	struct CUgraph_st *clone;
	struct vg_users users;

	if (r)
		return r;
	if (!vg_handle_is(exec, VG_EXEC))
		return vg_leave(CUDA_ERROR_INVALID_VALUE);
	*info = (CUgraphExecUpdateResultInfo) { 0 };
	info->result = same_shape(exec->graph, g, info);
	if (info->result)
		return vg_leave(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	r = vg_graph_clone(g, &clone);	/* so that it is all or nothing */
	if (r) {
		info->result = CU_GRAPH_EXEC_UPDATE_ERROR;
		return vg_leave(r);
	}
	adopt(exec->graph, clone);
	users = exec->graph->users;
	exec->graph->users = clone->users;
	clone->users = users;
	vg_graph_free(clone);
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph g, CUgraphNode *node,
				       CUgraphExecUpdateResult *result)
{
	CUgraphExecUpdateResultInfo info = { 0 };
	CUresult r = node && result ? cuGraphExecUpdate_v2(exec, g, &info) :
		     CUDA_ERROR_INVALID_VALUE;

	if (!r || r == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE) {
		*node = info.errorNode;
		*result = info.result;
	}
	return r;
}
