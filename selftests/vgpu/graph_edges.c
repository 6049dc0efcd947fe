// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Driver API: what nodes a graph has and how they depend on each other; user objects, which graphs
 * hold references to
 */
#include <stdlib.h>
#include <string.h>
#include "graph.h"

/*
 * Lists: @i-th of what was found, if the caller's @list has room; then their number, or what fits
 */
static void give(CUgraphNode *list, size_t room, size_t i, CUgraphNode n)
{
	if (list && i < room)
		list[i] = n;
}

static void give_count(bool listed, size_t *n, size_t found)
{
	if (!listed || *n > found)
		*n = found;
}

static CUresult list_nodes(CUgraph g, CUgraphNode *list, size_t *n, bool roots)
{
	CUresult r = n ? vg_enter_graph(g) : CUDA_ERROR_INVALID_VALUE;
	size_t i = 0;

	if (r)
		return r;
	for (struct CUgraphNode_st *o = g->nodes; o; o = o->next)
		if (!roots || !o->deps.n)
			give(list, *n, i++, o);
	for (size_t rest = i; list && rest < *n; rest++)
		list[rest] = NULL;
	give_count(list, n, i);
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuGraphGetNodes(CUgraph g, CUgraphNode *nodes, size_t *n)
{
	return list_nodes(g, nodes, n, false);
}

CUDADRV_API CUresult cuGraphGetRootNodes(CUgraph g, CUgraphNode *nodes, size_t *n)
{
	return list_nodes(g, nodes, n, true);
}

/* Edges have no data here but the default, which is all zero */
CUDADRV_API CUresult cuGraphGetEdges_v2(CUgraph g, CUgraphNode *from, CUgraphNode *to,
					CUgraphEdgeData *data, size_t *n)
{
	CUresult r = n && !from == !to && (from || !data) ? vg_enter_graph(g) :
		     CUDA_ERROR_INVALID_VALUE;
	size_t i = 0;

	if (r)
		return r;
	for (struct CUgraphNode_st *o = g->nodes; o; o = o->next)
		for (size_t d = 0; d < o->deps.n; d++, i++) {
			give(from, *n, i, o->deps.at[d]);
			give(to, *n, i, o);
		}
	for (size_t rest = i; from && rest < *n; rest++)
		from[rest] = to[rest] = NULL;
	if (data)
		memset(data, 0, *n * sizeof(*data));
	give_count(from, n, i);
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuGraphGetEdges(CUgraph g, CUgraphNode *from, CUgraphNode *to, size_t *n)
{
	return cuGraphGetEdges_v2(g, from, to, NULL, n);
}

static CUresult list_neighbours(CUgraphNode node, CUgraphNode *list, CUgraphEdgeData *data,
				size_t *n, bool dependents)
{
	CUresult r = n && (list || !data) ? vg_enter_node(node) : CUDA_ERROR_INVALID_VALUE;
	size_t i = 0;

	if (r)
		return r;
	for (; !dependents && i < node->deps.n; i++)
		give(list, *n, i, node->deps.at[i]);
	for (struct CUgraphNode_st *o = node->graph->nodes; dependents && o; o = o->next)
		if (vg_nodes_has(&o->deps, node))
			give(list, *n, i++, o);
	for (size_t rest = i; list && rest < *n; rest++)
		list[rest] = NULL;
	if (data)
		memset(data, 0, *n * sizeof(*data));
	give_count(list, n, i);
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *list,
						   CUgraphEdgeData *data, size_t *n)
{
	return list_neighbours(node, list, data, n, false);
}

CUDADRV_API CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *list, size_t *n)
{
	return list_neighbours(node, list, NULL, n, false);
}

CUDADRV_API CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode *list,
						     CUgraphEdgeData *data, size_t *n)
{
	return list_neighbours(node, list, data, n, true);
}

CUDADRV_API CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *list, size_t *n)
{
	return list_neighbours(node, list, NULL, n, true);
}

/* Adding and removing edges: all of them or none */

static bool edge_ok(CUgraph g, CUgraphNode from, CUgraphNode to, const CUgraphEdgeData *data)
{
	static const CUgraphEdgeData plain;

	return vg_handle_is(from, VG_NODE) && vg_handle_is(to, VG_NODE) && from->graph == g &&
	       to->graph == g && from != to && (!data || !memcmp(data, &plain, sizeof(plain)));
}

static CUresult change(CUgraph g, const CUgraphNode *from, const CUgraphNode *to,
		       const CUgraphEdgeData *data, size_t n, bool add)
{
	CUresult r = vg_enter_graph(g);
	size_t i;

	if (r || !n)
		return r ? r : vg_leave(CUDA_SUCCESS);
	for (i = 0; from && to && i < n; i++)
		if (!edge_ok(g, from[i], to[i], data ? data + i : NULL) ||
		    vg_nodes_has(&to[i]->deps, from[i]) == add)
			break;
	if (i < n)
		return vg_leave(CUDA_ERROR_INVALID_VALUE);
	for (i = 0; i < n; i++)
		if (!add)
			vg_nodes_del(&to[i]->deps, from[i]);
		else if (!vg_nodes_add(&to[i]->deps, from[i]))
			r = CUDA_ERROR_OUT_OF_MEMORY;
	return vg_leave(r);
}

CUDADRV_API CUresult cuGraphAddDependencies_v2(CUgraph g, const CUgraphNode *from,
					       const CUgraphNode *to,
					       const CUgraphEdgeData *data, size_t n)
{
	return change(g, from, to, data, n, true);
}

CUDADRV_API CUresult cuGraphAddDependencies(CUgraph g, const CUgraphNode *from,
					    const CUgraphNode *to, size_t n)
{
	return change(g, from, to, NULL, n, true);
}

CUDADRV_API CUresult cuGraphRemoveDependencies_v2(CUgraph g, const CUgraphNode *from,
						  const CUgraphNode *to,
						  const CUgraphEdgeData *data, size_t n)
{
	return change(g, from, to, data, n, false);
}

CUDADRV_API CUresult cuGraphRemoveDependencies(CUgraph g, const CUgraphNode *from,
					       const CUgraphNode *to, size_t n)
{
	return change(g, from, to, NULL, n, false);
}

/* User objects */

static void user_put(struct CUuserObject_st *u, unsigned int n)
{
	u->refs -= n;
	if (u->refs)
		return;
	vg_handle_del(u);
	u->destroy(u->ptr);	/* may make no call of the API, so the lock may be held */
	free(u);
}

bool vg_users_copy(struct vg_users *to, const struct vg_users *from)
{
	*to = (struct vg_users) { 0 };
	if (!from->n)
		return true;
	to->at = malloc(from->n * sizeof(CUuserObject));
	if (!to->at)
		return false;
	to->n = from->n;
	memcpy(to->at, from->at, from->n * sizeof(CUuserObject));
	for (size_t i = 0; i < to->n; i++)
		to->at[i]->refs++;
	return true;
}

void vg_users_drop(struct vg_users *u)
{
	for (size_t i = 0; i < u->n; i++)
		user_put(u->at[i], 1);
	free(u->at);
	*u = (struct vg_users) { 0 };
}

CUDADRV_API CUresult cuUserObjectCreate(CUuserObject *out, void *ptr, CUhostFn destroy,
					unsigned int refs, unsigned int flags)
{
	struct CUuserObject_st *u;
	CUresult r = out && destroy && refs && refs <= INT32_MAX &&
		     flags == CU_USER_OBJECT_NO_DESTRUCTOR_SYNC ? vg_enter() :
		     CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	u = calloc(1, sizeof(*u));
	if (!u || !vg_handle_add(u, VG_USER_OBJECT)) {
		free(u);
		return vg_leave(CUDA_ERROR_OUT_OF_MEMORY);
	}
	*u = (struct CUuserObject_st) { refs, ptr, destroy };
	*out = u;
	return vg_leave(CUDA_SUCCESS);
}

static CUresult enter_user(CUuserObject u, unsigned int count)
{
	CUresult r = count && count <= INT32_MAX ? vg_enter() : CUDA_ERROR_INVALID_VALUE;

	if (!r && !vg_handle_is(u, VG_USER_OBJECT))
		r = vg_leave(CUDA_ERROR_INVALID_VALUE);
	return r;
}

CUDADRV_API CUresult cuUserObjectRetain(CUuserObject u, unsigned int count)
{
	CUresult r = enter_user(u, count);

	if (r)
		return r;
	u->refs += count;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuUserObjectRelease(CUuserObject u, unsigned int count)
{
	CUresult r = enter_user(u, count);

	if (r)
		return r;
	if (count > u->refs)
		return vg_leave(CUDA_ERROR_INVALID_VALUE);
	user_put(u, count);
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuGraphRetainUserObject(CUgraph g, CUuserObject u, unsigned int count,
					     unsigned int flags)
{
	CUresult r = flags & ~(unsigned int)CU_GRAPH_USER_OBJECT_MOVE ? CUDA_ERROR_INVALID_VALUE :
		     enter_user(u, count);
	struct CUuserObject_st **at;

	if (r)
		return r;
	if (!vg_handle_is(g, VG_GRAPH) || (flags && count > u->refs))
		return vg_leave(CUDA_ERROR_INVALID_VALUE);
	at = realloc(g->users.at, (g->users.n + count) * sizeof(CUuserObject));
	if (!at)
		return vg_leave(CUDA_ERROR_OUT_OF_MEMORY);
	g->users.at = at;
	for (unsigned int i = 0; i < count; i++)
		g->users.at[g->users.n++] = u;
	if (!flags)
		u->refs += count;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuGraphReleaseUserObject(CUgraph g, CUuserObject u, unsigned int count)
{
	CUresult r = enter_user(u, count);
	size_t held = 0, kept = 0;

	if (r)
		return r;
	for (size_t i = 0; vg_handle_is(g, VG_GRAPH) && i < g->users.n; i++)
		held += g->users.at[i] == u;
	if (held < count)
		return vg_leave(CUDA_ERROR_INVALID_VALUE);
	held = count;
	for (size_t i = 0; i < g->users.n; i++)
		if (g->users.at[i] != u || !held)
			g->users.at[kept++] = g->users.at[i];
		else
			held--;
	g->users.n = kept;
	user_put(u, count);
	return vg_leave(CUDA_SUCCESS);
}
