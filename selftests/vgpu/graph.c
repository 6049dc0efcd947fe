// SPDX-License-Identifier: LGPL-2.1-or-later
/* Driver API: graphs, their nodes, clones of them */
#include <stdlib.h>
#include <string.h>
#include "graph.h"
#include "pool.h"

bool vg_nodes_has(const struct vg_nodes *l, const struct CUgraphNode_st *n)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->at[i] == n)
			return true;
	return false;
}

bool vg_nodes_add(struct vg_nodes *l, struct CUgraphNode_st *n)
{
	struct CUgraphNode_st **at;

	if (vg_nodes_has(l, n))
		return true;
	at = realloc(l->at, (l->n + 1) * sizeof(CUgraphNode));
	if (!at)
		return false;
	l->at = at;
	l->at[l->n++] = n;
	return true;
}

bool vg_nodes_copy(struct vg_nodes *to, const struct vg_nodes *from)
{
	vg_nodes_clear(to);
	for (size_t i = 0; i < from->n; i++)
		if (!vg_nodes_add(to, from->at[i]))
			return false;
	return true;
}

void vg_nodes_del(struct vg_nodes *l, const struct CUgraphNode_st *n)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->at[i] == n) {
			memmove(l->at + i, l->at + i + 1, (l->n - i - 1) * sizeof(CUgraphNode));
			l->n--;
			return;
		}
}

void vg_nodes_clear(struct vg_nodes *l)
{
	free(l->at);
	*l = (struct vg_nodes) { 0 };
}

/* Nodes */

struct vg_op *vg_op_clone(const struct vg_op *op)
{
	struct vg_op *first = NULL, **last = &first;

	for (; op; op = op->next) {
		struct vg_op *c = vg_op_new(op->kind);

		if (!c)
			break;
		*c = *op;
		c->next = NULL;
		if (c->kind == VG_OP_ALLOC)
			vg_graph_mem_get(c->alloc.mem);
		if (c->kind == VG_OP_KERNEL) {
			size_t size = op->kernel.function->info->param_size + 16;

			c->kernel.references = NULL;
			c->kernel.launch.watch = NULL;
			c->kernel.params = malloc(size);
			if (c->kernel.params)
				memcpy(c->kernel.params, op->kernel.params, size);
			if (!c->kernel.params || !vg_kernel_arm(c)) {
				vg_op_free(c);
				break;
			}
		}
		*last = c;
		last = &c->next;
	}
	if (!op)
		return first;
	while (first) {
		struct vg_op *c = first;

		first = c->next;
		vg_op_free(c);
	}
	return NULL;
}

void vg_node_set_op(struct CUgraphNode_st *n, struct vg_op *op)
{
	while (n->op) {
		struct vg_op *old = n->op;

		n->op = old->next;
		vg_op_free(old);
	}
	free(n->params);
	n->params = NULL;
	n->op = op;
}

CUresult vg_node_copy(struct CUgraphNode_st *to, const struct CUgraphNode_st *from)
{
	struct vg_op *op = vg_op_clone(from->op);
	struct CUgraph_st *child = NULL;
	CUresult r = from->op && !op ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;

	if (!r && from->child)
		r = vg_graph_clone(from->child, &child);
	if (r) {
		while (op) {
			struct vg_op *next = op->next;

			vg_op_free(op);
			op = next;
		}
		return r;
	}
	vg_node_set_op(to, op);
	if (to->child)
		vg_graph_free(to->child);
	to->child = child;
	if (child)
		child->owner = to;
	to->event = from->event;
	to->copy = from->copy;
	to->set = from->set;
	return CUDA_SUCCESS;
}

CUresult vg_node_new(struct CUgraph_st *g, CUgraphNodeType type, const CUgraphNode *deps,
		     size_t n_deps, struct CUgraphNode_st **out)
{
	struct CUgraphNode_st *n;

	if (n_deps && !deps)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < n_deps; i++) {
		if (!vg_handle_is(deps[i], VG_NODE) || deps[i]->graph != g)
			return CUDA_ERROR_INVALID_VALUE;
		for (size_t j = 0; j < i; j++)
			if (deps[j] == deps[i])
				return CUDA_ERROR_INVALID_VALUE;
	}
	n = vg_object_new(VG_NODE, sizeof(*n));
	if (!n)
		return CUDA_ERROR_OUT_OF_MEMORY;
	n->type = type;
	n->id = ++vg.ids;
	for (size_t i = 0; i < n_deps; i++)
		if (!vg_nodes_add(&n->deps, deps[i]))
			goto no_memory;
	n->graph = g;
	*g->end = n;
	g->end = &n->next;
	g->n++;
	*out = n;
	return CUDA_SUCCESS;
no_memory:
	vg_nodes_clear(&n->deps);
	vg_object_free(VG_NODE, n);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static void release(struct CUgraphNode_st *n)
{
	vg_capture_forget(n);
	vg_node_set_op(n, NULL);
	if (n->child)
		vg_graph_free(n->child);
	vg_nodes_clear(&n->deps);
	vg_object_free(VG_NODE, n);
}

void vg_node_free(struct CUgraphNode_st *n)
{
	struct CUgraph_st *g = n->graph;
	struct CUgraphNode_st **p;

	for (p = &g->nodes; *p != n; p = &(*p)->next)
		;
	*p = n->next;
	if (g->end == &n->next)
		g->end = p;
	g->n--;
	for (struct CUgraphNode_st *o = g->nodes; o; o = o->next)
		vg_nodes_del(&o->deps, n);
	release(n);
}

/* Graphs */

struct CUgraph_st *vg_graph_new(void)
{
	struct CUgraph_st *g = vg_object_new(VG_GRAPH, sizeof(*g));

	if (!g)
		return NULL;
	g->end = &g->nodes;
	return g;
}

void vg_graph_free(struct CUgraph_st *g)
{
	struct CUgraphNode_st *n, *next;

	for (n = g->nodes; n; n = next) {
		next = n->next;
		release(n);
	}
	vg_users_drop(&g->users);
	vg_object_free(VG_GRAPH, g);
}

size_t vg_graph_number(struct CUgraph_st *g)
{
	size_t i = 0;

	for (struct CUgraphNode_st *n = g->nodes; n; n = n->next)
		n->index = i++;
	return i;
}

CUresult vg_graph_clone(const struct CUgraph_st *from, struct CUgraph_st **out)
{
	struct CUgraphNode_st **of, *c;
	struct CUgraph_st *g = vg_graph_new();
	CUresult r = CUDA_SUCCESS;
	size_t i = 0;

	of = calloc(from->n + 1, sizeof(CUgraphNode));
	if (!g || !of || !vg_users_copy(&g->users, &from->users))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	for (struct CUgraphNode_st *n = from->nodes; !r && n; n = n->next) {
		r = vg_node_new(g, n->type, NULL, 0, &c);
		if (r)
			break;
		c->origin = n->id;
		r = vg_node_copy(c, n);
		n->index = i;
		of[i++] = c;
	}
	for (const struct CUgraphNode_st *n = from->nodes; !r && n; n = n->next)
		for (size_t d = 0; !r && d < n->deps.n; d++)
			if (!vg_nodes_add(&of[n->index]->deps, of[n->deps.at[d]->index]))
				r = CUDA_ERROR_OUT_OF_MEMORY;
	free(of);
	if (r) {
		if (g)
			vg_graph_free(g);
		return r;
	}
	*out = g;
	return CUDA_SUCCESS;
}

CUDADRV_API CUresult cuGraphCreate(CUgraph *graph, unsigned int flags)
{
	CUresult r = graph && !flags ? vg_enter() : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*graph = vg_graph_new();
	return vg_leave(*graph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult vg_enter_graph(CUgraph g)
{
	CUresult r = vg_enter();

	if (r || vg_handle_is(g, VG_GRAPH))
		return r;
	vg_leave(r);
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult vg_enter_node(CUgraphNode n)
{
	CUresult r = vg_enter();

	if (r || vg_handle_is(n, VG_NODE))
		return r;
	vg_leave(r);
	return CUDA_ERROR_INVALID_VALUE;
}

CUDADRV_API CUresult cuGraphDestroy(CUgraph g)
{
	CUresult r = vg_enter_graph(g);

	if (r)
		return r;
	if (g->owner || vg_graph_captured(g))
		return vg_leave(CUDA_ERROR_INVALID_VALUE);
	vg_graph_free(g);
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuGraphClone(CUgraph *clone, CUgraph g)
{
	CUresult r = clone ? vg_enter_graph(g) : CUDA_ERROR_INVALID_VALUE;

	if (!r && vg_graph_has_memory(g))
		return vg_leave(CUDA_ERROR_NOT_SUPPORTED);
	return r ? r : vg_leave(vg_graph_clone(g, clone));
}

CUDADRV_API CUresult cuGraphNodeFindInClone(CUgraphNode *node, CUgraphNode original, CUgraph clone)
{
	CUresult r = node ? vg_enter_graph(clone) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	for (struct CUgraphNode_st *n = clone->nodes; vg_handle_is(original, VG_NODE) && n;
	     n = n->next)
		if (n->origin == original->id) {
			*node = n;
			return vg_leave(CUDA_SUCCESS);
		}
	return vg_leave(CUDA_ERROR_INVALID_VALUE);
}

CUDADRV_API CUresult cuGraphDestroyNode(CUgraphNode n)
{
	CUresult r = vg_enter_node(n);

	if (r)
		return r;
	if (n->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || n->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
		return vg_leave(CUDA_ERROR_NOT_SUPPORTED);
	vg_node_free(n);
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuGraphNodeGetType(CUgraphNode n, CUgraphNodeType *type)
{
	CUresult r = type ? vg_enter_node(n) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*type = n->type;
	return vg_leave(CUDA_SUCCESS);
}
