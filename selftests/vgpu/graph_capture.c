// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Driver API: streams that capture. What is issued to one becomes a node that depends on the
 * stream's nodes before it; an event recorded in a capture brings a stream that waits for it into
 * the capture. A call that a graph cannot stand for is refused and, where it concerns the capture
 * itself, invalidates it: all of its streams refuse work until it is ended.
 */
#include <stdlib.h>
#include <string.h>
#include "graph.h"
#include "pool.h"

static __thread CUstreamCaptureMode thread_mode;	/* cuThreadExchangeStreamCaptureMode */

#define BOTH(name, params, call) \
	CUDADRV_API CUresult name params \
	{ \
		const bool own = false; \
		return call; \
	} \
	CUDADRV_API CUresult name##_ptsz params \
	{ \
		const bool own = true; \
		return call; \
	}

static const void *this_thread(void)
{
	return &thread_mode;
}

static CUresult invalidate(struct vg_capture *c, CUresult r)
{
	c->invalid = true;
	return r;
}

static struct vg_capture *find(uint64_t id)
{
	struct vg_capture *c = vg.captures;

	while (c && c->id != id)
		c = c->next;
	return c;
}

bool vg_graph_captured(const struct CUgraph_st *g)
{
	for (const struct vg_capture *c = vg.captures; c; c = c->next)
		if (c->graph == g)
			return true;
	return false;
}

void vg_capture_forget(const struct CUgraphNode_st *n)
{
	if (!vg_graph_captured(n->graph))
		return;
	for (struct CUctx_st *ctx = vg.contexts; ctx; ctx = ctx->next) {
		for (struct CUstream_st *s = ctx->streams; s; s = s->next)
			vg_nodes_del(&s->tail_nodes, n);
		for (struct CUevent_st *e = ctx->events; e; e = e->next)
			vg_nodes_del(&e->nodes, n);
	}
	for (struct vg_capture *c = vg.captures; c; c = c->next)
		vg_nodes_del(&c->before, n);
}

/* What calls ask before they do anything */

CUresult vg_capture_unsafe(void)
{
	CUresult r = CUDA_SUCCESS;

	if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return r;
	for (struct vg_capture *c = vg.captures; c; c = c->next)
		if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
		    (c->thread == this_thread() ||
		     (thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL && c->mode == thread_mode)))
			r = invalidate(c, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	return r;
}

CUresult vg_capture_implicit(const struct CUstream_st *s)
{
	CUresult r = CUDA_SUCCESS;

	if (s != s->ctx->legacy || !vg.captures)
		return r;
	for (const struct CUstream_st *o = s->ctx->streams; o; o = o->next)
		if (o->capture && !(o->flags & CU_STREAM_NON_BLOCKING))
			r = invalidate(o->capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	return r;
}

CUresult vg_capture_forbids(struct CUstream_st *s)
{
	CUresult r;

	if (s->capture)
		return invalidate(s->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	r = vg_capture_implicit(s);
	return r ? r : vg_capture_unsafe();
}

CUresult vg_capture_ctx(const struct CUctx_st *ctx)
{
	CUresult r = CUDA_SUCCESS;

	for (const struct CUstream_st *s = ctx->streams; vg.captures && s; s = s->next)
		if (s->capture)
			r = invalidate(s->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	return r;
}

CUresult vg_capture_event(const struct CUevent_st *e)
{
	struct vg_capture *c = e->captured ? find(e->captured) : NULL;

	if (!e->captured)
		return CUDA_SUCCESS;
	return c ? invalidate(c, CUDA_ERROR_CAPTURED_EVENT) : CUDA_ERROR_INVALID_VALUE;
}

/* Capturing */

static CUgraphNodeType type_of(const struct vg_op *op)
{
	switch (op->kind) {
	case VG_OP_KERNEL:
		return CU_GRAPH_NODE_TYPE_KERNEL;
	case VG_OP_COPY:
	case VG_OP_COPY2D:
		return CU_GRAPH_NODE_TYPE_MEMCPY;
	case VG_OP_SET:
		return CU_GRAPH_NODE_TYPE_MEMSET;
	case VG_OP_HOST:
		return CU_GRAPH_NODE_TYPE_HOST;
	default:
		return CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
	}
}

/* A node behind what the stream has, alone at its end from now on. The caller fills it */
static CUresult append(struct CUstream_st *s, CUgraphNodeType type, struct CUgraphNode_st **out)
{
	CUresult r;

	if (s->capture->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	r = vg_node_new(s->capture->graph, type, s->tail_nodes.at, s->tail_nodes.n, out);
	if (r)
		return r;
	if (!s->tail_nodes.n && !vg_nodes_add(&s->tail_nodes, *out)) {
		vg_node_free(*out);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	s->tail_nodes.at[0] = *out;
	s->tail_nodes.n = 1;
	return CUDA_SUCCESS;
}

CUresult vg_capture_op(struct CUstream_st *s, struct vg_op *op)
{
	struct CUgraphNode_st *n;
	CUresult r = CUDA_SUCCESS;

	if (op->kind == VG_OP_HOST && !op->host.fn)
		r = invalidate(s->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	if (!r)
		r = append(s, type_of(op), &n);
	if (!r) {
		vg_node_set_op(n, op);
		if (n->type == CU_GRAPH_NODE_TYPE_MEMCPY || n->type == CU_GRAPH_NODE_TYPE_MEMSET)
			vg_node_describe(n);
		return r;
	}
	while (op) {
		struct vg_op *next = op->next;

		vg_op_free(op);
		op = next;
	}
	return r;
}

/* Undo append() */
static CUresult take_back(struct CUstream_st *s, struct CUgraphNode_st *n, CUresult r)
{
	struct vg_nodes before = n->deps;

	if (!r)
		return r;
	n->deps = (struct vg_nodes) { 0 };
	vg_node_free(n);
	vg_nodes_clear(&s->tail_nodes);
	s->tail_nodes = before;
	return r;
}

CUresult vg_capture_alloc(struct CUstream_st *s, CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
	struct CUgraphNode_st *n;
	CUresult r = append(s, CU_GRAPH_NODE_TYPE_MEM_ALLOC, &n);

	return r ? r : take_back(s, n, vg_node_alloc(n, s->ctx, p));
}

CUresult vg_capture_free(struct CUstream_st *s, CUdeviceptr ptr)
{
	struct CUgraphNode_st *n;
	CUresult r = append(s, CU_GRAPH_NODE_TYPE_MEM_FREE, &n);

	return r ? r : take_back(s, n, vg_node_free_memory(n, ptr));
}

CUresult vg_capture_graph(struct CUstream_st *s, const struct CUgraph_st *g)
{
	struct CUgraph_st *child;
	struct CUgraphNode_st *n;
	CUresult r;

	if (vg_graph_has_memory(g))
		return CUDA_ERROR_NOT_SUPPORTED;

	r = vg_graph_clone(g, &child);
	if (r)
		return r;
	r = append(s, CU_GRAPH_NODE_TYPE_GRAPH, &n);
	if (r) {
		vg_graph_free(child);
		return r;
	}
	n->child = child;
	child->owner = n;
	return CUDA_SUCCESS;
}

CUresult vg_capture_record(struct CUstream_st *s, struct CUevent_st *e, bool external)
{
	struct CUgraphNode_st *n;
	CUresult r = CUDA_SUCCESS;

	if (s->capture->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (external) {
		r = append(s, CU_GRAPH_NODE_TYPE_EVENT_RECORD, &n);
		if (!r)
			n->event = e;
		return r;
	}
	if (!vg_nodes_copy(&e->nodes, &s->tail_nodes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	e->captured = s->capture->id;
	return r;
}

CUresult vg_capture_wait(struct CUstream_st *s, struct CUevent_st *e, bool external)
{
	struct vg_capture *c = e->captured ? find(e->captured) : NULL;
	struct CUgraphNode_st *n;
	CUresult r;

	if (s->capture && s->capture->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (external && s->capture) {
		r = append(s, CU_GRAPH_NODE_TYPE_WAIT_EVENT, &n);
		if (!r)
			n->event = e;
		return r;
	}
	if (!e->captured && !e->mark)	/* never recorded */
		return CUDA_SUCCESS;
	if (!c)		/* the event is of work outside: the graph would depend on it */
		return s->capture ? invalidate(s->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION) :
		       CUDA_ERROR_INVALID_VALUE;
	if (c->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (s->capture && s->capture != c) {
		invalidate(s->capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
		return invalidate(c, CUDA_ERROR_STREAM_CAPTURE_MERGE);
	}
	if (s == s->ctx->legacy)
		return invalidate(c, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	s->capture = c;
	for (size_t i = 0; i < e->nodes.n; i++)
		if (!vg_nodes_add(&s->tail_nodes, e->nodes.at[i]))
			return CUDA_ERROR_OUT_OF_MEMORY;
	return CUDA_SUCCESS;
}

/* Beginning and ending */

static void walk_back(struct CUgraphNode_st *n)
{
	if (n->seen)
		return;
	n->seen = true;
	for (size_t i = 0; i < n->deps.n; i++)
		walk_back(n->deps.at[i]);
}

/* Has every stream of the capture come back to its origin? */
static bool joined(const struct vg_capture *c)
{
	for (struct CUgraphNode_st *n = c->graph->nodes; n; n = n->next)
		n->seen = false;
	for (size_t i = 0; i < c->origin->tail_nodes.n; i++)
		walk_back(c->origin->tail_nodes.at[i]);
	for (size_t i = 0; i < c->before.n; i++)
		walk_back(c->before.at[i]);
	for (const struct CUctx_st *ctx = vg.contexts; ctx; ctx = ctx->next)
		for (const struct CUstream_st *s = ctx->streams; s; s = s->next)
			for (size_t i = 0; s->capture == c && i < s->tail_nodes.n; i++)
				if (!s->tail_nodes.at[i]->seen)
					return false;
	return true;
}

static void free_streams(struct CUctx_st *ctx, const struct vg_capture *c)
{
	for (struct CUstream_st *s = ctx->streams; s; s = s->next)
		if (s->capture == c) {
			s->capture = NULL;
			vg_nodes_clear(&s->tail_nodes);
		}
}

/* Every stream is free again. The graph stays if it is the caller's or @keep */
static void finish(struct vg_capture *c, bool keep)
{
	struct vg_capture **p = &vg.captures;

	for (struct CUctx_st *ctx = vg.contexts; ctx; ctx = ctx->next)
		free_streams(ctx, c);
	/* which is in no list any more if it is being destroyed */
	free_streams(c->origin->ctx, c);
	while (*p != c)
		p = &(*p)->next;
	*p = c->next;
	if (!keep && !c->borrowed)
		vg_graph_free(c->graph);
	vg_nodes_clear(&c->before);
	free(c);
}

void vg_capture_drop(struct CUstream_st *s)
{
	struct vg_capture *c = s->capture;

	if (!c)
		return;
	if (c->origin == s) {
		finish(c, false);
		return;
	}
	invalidate(c, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
	s->capture = NULL;
	vg_nodes_clear(&s->tail_nodes);
}

static CUresult enter(CUstream stream, bool own, struct CUstream_st **s)
{
	CUresult r = vg_enter();

	if (!r && (r = vg_stream_get(stream, own, vg_current(), s)))
		vg_leave(r);
	return r;
}

static CUresult begin(CUstream stream, bool own, CUgraph graph, const CUgraphNode *deps, size_t n,
		      CUstreamCaptureMode mode)
{
	struct CUstream_st *s;
	struct vg_capture *c;
	CUresult r = (unsigned int)mode > CU_STREAM_CAPTURE_MODE_RELAXED || (n && !deps) ?
		     CUDA_ERROR_INVALID_VALUE : enter(stream, own, &s);

	if (r)
		return r;
	if (s == s->ctx->legacy)
		return vg_leave(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	if (s->capture)
		return vg_leave(CUDA_ERROR_ILLEGAL_STATE);
	for (size_t i = 0; i < n; i++)
		if (!vg_handle_is(deps[i], VG_NODE) || deps[i]->graph != graph)
			return vg_leave(CUDA_ERROR_INVALID_VALUE);
	c = calloc(1, sizeof(*c));
	if (!c)
		return vg_leave(CUDA_ERROR_OUT_OF_MEMORY);
	for (size_t i = 0; i < n; i++)
		if (!vg_nodes_add(&c->before, deps[i]))
			r = CUDA_ERROR_OUT_OF_MEMORY;
	c->borrowed = graph;
	c->graph = graph ? graph : vg_graph_new();
	if (r || !c->graph || !vg_nodes_copy(&s->tail_nodes, &c->before)) {
		if (c->graph && !graph)
			vg_graph_free(c->graph);
		vg_nodes_clear(&s->tail_nodes);
		vg_nodes_clear(&c->before);
		free(c);
		return vg_leave(CUDA_ERROR_OUT_OF_MEMORY);
	}
	c->id = ++vg.ids;
	c->origin = s;
	c->thread = this_thread();
	c->mode = mode;
	c->next = vg.captures;
	vg.captures = c;
	s->capture = c;
	return vg_leave(CUDA_SUCCESS);
}

static CUresult begin_to_graph(CUstream stream, bool own, CUgraph g, const CUgraphNode *deps,
			       size_t n, CUstreamCaptureMode mode)
{
	CUresult r = vg_enter_graph(g);

	if (!r)
		r = vg_leave(vg_graph_captured(g) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS);
	return r ? r : begin(stream, own, g, deps, n, mode);
}
BOTH(cuStreamBeginCapture, (CUstream stream),
     begin(stream, own, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL))
BOTH(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode),
     begin(stream, own, NULL, NULL, 0, mode))
BOTH(cuStreamBeginCaptureToGraph, (CUstream stream, CUgraph g, const CUgraphNode *deps,
				   const CUgraphEdgeData *data, size_t n, CUstreamCaptureMode mode),
     begin_to_graph(stream, own, g, deps, n, mode))

static CUresult end(CUstream stream, bool own, CUgraph *graph)
{
	struct CUstream_st *s;
	struct vg_capture *c;
	CUresult r = enter(stream, own, &s);

	if (r)
		return r;
	c = s->capture;
	if (!c)
		return vg_leave(CUDA_ERROR_ILLEGAL_STATE);
	if (c->origin != s)
		return vg_leave(invalidate(c, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED));
	if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && c->thread != this_thread())
		r = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;	/* but it ends */
	else if (c->invalid)
		r = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	else if (!joined(c))
		r = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
	if (graph)
		*graph = r ? NULL : c->graph;
	finish(c, !r && graph);
	return vg_leave(r);
}
BOTH(cuStreamEndCapture, (CUstream stream, CUgraph *graph), end(stream, own, graph))

static CUresult info(CUstream stream, bool own, CUstreamCaptureStatus *status, cuuint64_t *id,
		     CUgraph *graph, const CUgraphNode **deps,
		     const CUgraphEdgeData **data, size_t *n)
{
	struct CUstream_st *s;
	const struct vg_capture *c;
	CUresult r = status ? enter(stream, own, &s) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	for (const struct CUstream_st *o = s->ctx->streams; s == s->ctx->legacy && o; o = o->next)
		if (o->capture && !(o->flags & CU_STREAM_NON_BLOCKING))
			return vg_leave(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	c = s->capture;
	*status = !c ? CU_STREAM_CAPTURE_STATUS_NONE :
		  c->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED :
		  CU_STREAM_CAPTURE_STATUS_ACTIVE;
	if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
		return vg_leave(CUDA_SUCCESS);
	if (id)
		*id = c->id;
	if (graph)
		*graph = c->graph;
	if (deps)
		*deps = s->tail_nodes.at;
	if (data)
		*data = NULL;	/* all edges are plain */
	if (n)
		*n = s->tail_nodes.n;
	return vg_leave(CUDA_SUCCESS);
}
BOTH(cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus *status),
     info(stream, own, status, NULL, NULL, NULL, NULL, NULL))
BOTH(cuStreamGetCaptureInfo, (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id),
     info(stream, own, status, id, NULL, NULL, NULL, NULL))
BOTH(cuStreamGetCaptureInfo_v2, (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
				 CUgraph *graph, const CUgraphNode **nodes, size_t *n),
     info(stream, own, status, id, graph, nodes, NULL, n))
BOTH(cuStreamGetCaptureInfo_v3, (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
				 CUgraph *graph, const CUgraphNode **nodes,
				 const CUgraphEdgeData **edges, size_t *n),
     info(stream, own, status, id, graph, nodes, edges, n))

static CUresult update(CUstream stream, bool own, const CUgraphNode *nodes, size_t n,
		       unsigned int flags)
{
	struct vg_nodes now = { 0 };
	struct CUstream_st *s;
	CUresult r = flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || (n && !nodes) ?
		     CUDA_ERROR_INVALID_VALUE : enter(stream, own, &s);

	if (r)
		return r;
	if (!s->capture)
		return vg_leave(CUDA_ERROR_ILLEGAL_STATE);
	if (s->capture->invalid)
		return vg_leave(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	if (flags == CU_STREAM_ADD_CAPTURE_DEPENDENCIES && !vg_nodes_copy(&now, &s->tail_nodes))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; !r && i < n; i++)
		if (!vg_handle_is(nodes[i], VG_NODE) || nodes[i]->graph != s->capture->graph)
			r = CUDA_ERROR_INVALID_VALUE;
		else if (!vg_nodes_add(&now, nodes[i]))
			r = CUDA_ERROR_OUT_OF_MEMORY;
	if (r) {
		vg_nodes_clear(&now);
		return vg_leave(r);
	}
	vg_nodes_clear(&s->tail_nodes);
	s->tail_nodes = now;
	return vg_leave(CUDA_SUCCESS);
}
BOTH(cuStreamUpdateCaptureDependencies, (CUstream stream, CUgraphNode *nodes, size_t n,
					 unsigned int flags),
     update(stream, own, nodes, n, flags))
BOTH(cuStreamUpdateCaptureDependencies_v2,
     (CUstream stream, CUgraphNode *nodes, const CUgraphEdgeData *data, size_t n,
					    unsigned int flags),
     update(stream, own, nodes, n, flags))

CUDADRV_API CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	CUstreamCaptureMode old = thread_mode;

	if (!mode || (unsigned int)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	thread_mode = *mode;
	*mode = old;
	return CUDA_SUCCESS;
}
