// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Driver API: executable graphs. A launch is one operation of its stream; while that is the
 * stream's head, the operations of the nodes run as their dependencies allow. Launches of one
 * executable graph run one after the other.
 */
#include <stdlib.h>
#include <string.h>
#include "graph.h"
#include "pool.h"

/* A launch, from the graph to steps */

static size_t count_steps(const struct CUgraph_st *g, size_t *edges)
{
	size_t steps = 0;

	for (const struct CUgraphNode_st *n = g->nodes; n; n = n->next) {
		*edges += n->deps.n;
		if (n->child) {
			steps += 2 + count_steps(n->child, edges);
			*edges += 2 * n->child->n + 1;
			continue;
		}
		steps++;
		for (const struct vg_op *op = n->op; op && op->next; op = op->next) {
			steps++;
			*edges += 1;
		}
	}
	return steps;
}

static struct vg_step *add_step(struct vg_run *run, struct vg_op *op)
{
	struct vg_step *step = &run->steps[run->n++];

	step->run = run;
	step->op = op;
	if (op) {
		op->step = step;
		op->next = NULL;
	}
	return step;
}

static void add_edge(struct vg_run *run, struct vg_step *from, struct vg_step *to)
{
	struct vg_edge *e = &run->edges[run->n_edges++];

	*e = (struct vg_edge) { from->after, to };
	from->after = e;
	to->pending++;
}

/*
 * An event's node takes part in what the event means from the launch on, not only once the node
 * runs. NULL: nothing to do
 */
static struct vg_op *event_op(const struct CUgraphNode_st *n, CUresult *r)
{
	bool wait = n->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT;
	struct vg_mark *m;
	struct vg_op *op;

	if (!vg_handle_is(n->event, VG_EVENT) || (wait && !n->event->mark))
		return NULL;
	op = vg_op_new(wait ? VG_OP_WAIT_EVENT : VG_OP_RECORD);
	m = wait ? n->event->mark : calloc(1, sizeof(*m));
	if (!op || !m) {
		*r = CUDA_ERROR_OUT_OF_MEMORY;
		free(op);
		if (!wait)
			free(m);
		return NULL;
	}
	m->refs++;
	op->mark = m;
	return op;
}

static CUresult add_steps(struct vg_run *run, const struct CUgraph_st *g, struct vg_step *begin)
{
	CUresult r = CUDA_SUCCESS;

	for (struct CUgraphNode_st *n = g->nodes; n; n = n->next) {
		struct vg_op *op = n->event ? event_op(n, &r) : vg_op_clone(n->op), *next;

		if (r || (n->op && !op))
			return CUDA_ERROR_OUT_OF_MEMORY;
		next = op ? op->next : NULL;
		n->first = n->last = add_step(run, op);
		n->first->event = n->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD && op ?
				  n->event : NULL;
		while ((op = next)) {
			struct vg_step *before = n->last;

			next = op->next;
			n->last = add_step(run, op);
			add_edge(run, before, n->last);
		}
		if (n->child) {
			r = add_steps(run, n->child, n->first);
			n->last = add_step(run, NULL);
			add_edge(run, n->first, n->last);
			for (const struct CUgraphNode_st *c = n->child->nodes; !r && c; c = c->next)
				add_edge(run, c->last, n->last);
			if (r)
				return r;
		}
	}
	for (const struct CUgraphNode_st *n = g->nodes; n; n = n->next) {
		for (size_t i = 0; i < n->deps.n; i++)
			add_edge(run, n->deps.at[i]->last, n->first);
		if (!n->deps.n)
			add_edge(run, begin, n->first);
	}
	return CUDA_SUCCESS;
}

/*
 * Their modules may have been unloaded since. A graph whose kernels are on several devices is not
 * simulated
 */
static bool functions_live(const struct CUgraph_st *g, const struct vg_gpu *gpu)
{
	for (const struct CUgraphNode_st *n = g->nodes; n; n = n->next) {
		if (n->type == CU_GRAPH_NODE_TYPE_KERNEL && n->op &&
		    (!vg_handle_is(n->op->kernel.function, VG_FUNCTION) ||
								      n->op->kernel.function->id !=
		     n->op->kernel.function_id || n->op->kernel.function->module->gpu != gpu))
			return false;
		if (n->child && !functions_live(n->child, gpu))
			return false;
	}
	return true;
}

static CUresult new_run(const struct CUgraphExec_st *exec, int priority, struct vg_run **out)
{
	struct vg_run *run = calloc(1, sizeof(*run));
	size_t edges = 0, steps = count_steps(exec->graph, &edges);
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

	if (!run)
		return r;
	run->steps = calloc(steps + 1, sizeof(*run->steps));
	run->edges = calloc(edges + exec->graph->n + 1, sizeof(*run->edges));
	run->mark = calloc(1, sizeof(*run->mark));
	if (run->mark)
		run->mark->refs = 1;
	if (run->steps && run->edges && run->mark &&
	    vg_users_copy(&run->users, &exec->graph->users))
		/* the first step is the launch itself */
		r = add_steps(run, exec->graph, add_step(run, NULL));
	if (r) {
		vg_run_free(run);
		return r;
	}
	run->left = run->n;
	for (size_t i = 0; i < run->n; i++) {
		struct vg_op *op = run->steps[i].op;
		struct CUevent_st *e = run->steps[i].event;

		if (op && op->kind == VG_OP_KERNEL &&
		    !(exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY))
			op->kernel.priority = priority;
		if (!e || !op)
			continue;
		op->mark->refs++;
		vg_mark_put(e->mark);
		e->mark = op->mark;
		e->captured = 0;
	}
	*out = run;
	return CUDA_SUCCESS;
}

void vg_run_free(struct vg_run *run)
{
	for (size_t i = 0; i < run->n; i++) {
		struct vg_op *op = run->steps[i].op;

		if (op && op->kind == VG_OP_RECORD)
			op->mark->done = true;	/* an aborted run never came to it */
		if (op)
			vg_op_free(op);
	}
	if (run->mark)
		run->mark->done = true;
	vg_mark_put(run->mark);
	vg_mark_put(run->before);
	vg_users_drop(&run->users);
	free(run->steps);
	free(run->edges);
	free(run);
}

/* Running: by the engine */

bool vg_run_ready(const struct vg_op *op)
{
	return !op->run->before || op->run->before->done;
}

struct vg_op *vg_runnable(const struct CUstream_st *s, const struct vg_op *after)
{
	const struct vg_step *step;

	if (!s->head || s->head->kind != VG_OP_GRAPH)
		return after ? NULL : s->head;
	step = after ? after->step->next : s->head->run->active;
	return step ? step->op : NULL;
}

static void activate(struct vg_step *step)
{
	struct vg_run *run = step->run;
	struct vg_step **p = &run->active;

	while (*p)
		p = &(*p)->next;
	*p = step;
	step->next = NULL;
	step->op->stream = run->op->stream;
	step->op->seq = run->op->seq;
}

/* Steps without an operation end as soon as they could begin; @step is over or is such a one */
static void release(struct vg_step *step)
{
	struct vg_step *todo = step, *next;

	for (step->next = NULL; todo; todo = next) {
		next = todo->next;
		todo->run->left--;
		for (const struct vg_edge *e = todo->after; e; e = e->next) {
			if (--e->to->pending)
				continue;
			if (e->to->op) {
				activate(e->to);
			} else {
				e->to->next = next;
				next = e->to;
			}
		}
	}
}

bool vg_run_started(const struct vg_op *op)
{
	return op->run->started;
}

void vg_run_start(struct vg_op *op)
{
	struct vg_run *run = op->run;

	run->op = op;
	run->started = true;
	release(run->steps);
	if (!run->left)
		vg_op_finish(op);
}

void vg_step_finish(struct vg_step *step)
{
	struct vg_run *run = step->run;
	struct vg_step **p = &run->active;

	while (*p != step)
		p = &(*p)->next;
	*p = step->next;
	if (run->aborted)
		run->left--;
	else
		release(step);
	if (!run->left)
		vg_op_finish(run->op);
	else
		pthread_cond_broadcast(&vg.changed);	/* an event may have been recorded */
}

bool vg_run_abort(struct vg_op *op)
{
	struct vg_run *run = op->run;
	struct vg_step **p = &run->active;

	run->aborted = true;
	run->left = 0;
	while (*p) {
		const struct vg_op *o = (*p)->op;

		if (o->kind == VG_OP_HOST && o->host.running) {
			run->left++;
			p = &(*p)->next;
		} else {
			*p = (*p)->next;
		}
	}
	if (run->left)
		return false;
	vg_op_finish(op);
	return true;
}

/* Executable graphs */

static bool acyclic(struct CUgraph_st *g)
{
	size_t done = 0, before;

	for (struct CUgraphNode_st *n = g->nodes; n; n = n->next)
		n->seen = false;
	do {
		before = done;
		for (struct CUgraphNode_st *n = g->nodes; n; n = n->next) {
			size_t i = 0;

			while (!n->seen && i < n->deps.n && n->deps.at[i]->seen)
				i++;
			if (n->seen || i < n->deps.n)
				continue;
			n->seen = true;
			done++;
		}
	} while (done > before);
	return done == g->n;
}

static CUresult instantiate(CUgraphExec *out, CUgraph g, unsigned long long flags)
{
	struct CUgraphExec_st *exec;
	CUresult r;

	if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH)
		return vg_unsimulated("cuGraphInstantiate for launches by the device");
	if (!acyclic(g))
		return CUDA_ERROR_INVALID_VALUE;
	r = vg_current() ? vg_may_wait(VG_HOLDER_GRAPH_INSTANTIATE, vg_current()) : CUDA_SUCCESS;
	if (r)
		return r;
	exec = vg_object_new(VG_EXEC, sizeof(*exec));
	if (!exec)
		return CUDA_ERROR_OUT_OF_MEMORY;
	exec->flags = flags;
	r = vg_graph_clone(g, &exec->graph);
	if (r) {
		vg_object_free(VG_EXEC, exec);
		return r;
	}
	r = vg_graph_mem_instantiate(exec->graph, true);
	if (r) {
		vg_graph_free(exec->graph);
		vg_object_free(VG_EXEC, exec);
		return r;
	}
	*out = exec;
	return CUDA_SUCCESS;
}

CUDADRV_API CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph g,
						 unsigned long long flags)
{
	CUresult r = out && !(flags & ~15ull) && !(flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) ?
		     vg_enter_graph(g) : CUDA_ERROR_INVALID_VALUE;

	return r ? r : vg_leave(instantiate(out, g, flags));
}

/* The forms before CUDA 12: a graph that cannot be instantiated has no log here */
CUDADRV_API CUresult cuGraphInstantiate_v2(CUgraphExec *out, CUgraph g, CUgraphNode *error,
					   char *log, size_t size)
{
	if (error)
		*error = NULL;
	if (log && size)
		*log = '\0';
	return cuGraphInstantiateWithFlags(out, g, 0);
}

CUDADRV_API CUresult cuGraphInstantiate(CUgraphExec *out, CUgraph g, CUgraphNode *error, char *log,
					size_t size)
{
	return cuGraphInstantiate_v2(out, g, error, log, size);
}

static CUresult instantiate_params(CUgraphExec *out, CUgraph g, CUDA_GRAPH_INSTANTIATE_PARAMS *p)
{
	CUresult r = out && p && !(p->flags & ~15ull) ? vg_enter_graph(g) :
		     CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	r = instantiate(out, g, p->flags);
	p->hErrNode_out = NULL;
	p->result_out = !r ? CUDA_GRAPH_INSTANTIATE_SUCCESS : r == CUDA_ERROR_INVALID_VALUE ?
			CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE : CUDA_GRAPH_INSTANTIATE_ERROR;
	return vg_leave(r);
}

CUDADRV_API CUresult cuGraphInstantiateWithParams(CUgraphExec *out, CUgraph g,
						  CUDA_GRAPH_INSTANTIATE_PARAMS *p)
{
	return instantiate_params(out, g, p);
}

CUDADRV_API CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *out, CUgraph g,
						       CUDA_GRAPH_INSTANTIATE_PARAMS *p)
{
	return instantiate_params(out, g, p);
}

static CUresult enter_exec(CUgraphExec exec)
{
	CUresult r = vg_enter();

	if (r || vg_handle_is(exec, VG_EXEC))
		return r;
	vg_leave(r);
	return CUDA_ERROR_INVALID_VALUE;
}

static CUresult enter_stream(CUgraphExec exec, CUstream stream, bool own, struct CUstream_st **s)
{
	CUresult r = enter_exec(exec);

	if (!r && (r = vg_stream_get(stream, own, vg_current(), s)))
		vg_leave(r);
	return r;
}

static CUresult launch(CUgraphExec exec, CUstream stream, bool own)
{
	struct CUstream_st *s;
	struct vg_run *run;
	struct vg_op *op;
	CUresult r = enter_stream(exec, stream, own, &s);

	if (r)
		return r;
	if (s->capture)
		return vg_leave(vg_capture_graph(s, exec->graph));
	if (!functions_live(exec->graph, s->ctx->gpu))
		return vg_leave(CUDA_ERROR_INVALID_HANDLE);
	r = vg_capture_implicit(s);
	if (r)
		return vg_leave(r);
	op = vg_op_new(VG_OP_GRAPH);
	if (!op)
		return vg_leave(CUDA_ERROR_OUT_OF_MEMORY);
	r = vg_graph_mem_launch(exec);
	if (!r)
		r = new_run(exec, s->priority, &run);
	if (r) {
		free(op);
		return vg_leave(r);
	}
	op->run = run;
	run->before = exec->last;
	exec->last = run->mark;
	exec->last->refs++;
	return vg_leave(vg_push(s, op));
}

CUDADRV_API CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
	return launch(exec, stream, false);
}

CUDADRV_API CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream)
{
	return launch(exec, stream, true);
}

/* There is nothing to upload */
static CUresult upload(CUgraphExec exec, CUstream stream, bool own)
{
	struct CUstream_st *s;
	CUresult r = enter_stream(exec, stream, own, &s);

	return r ? r : vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuGraphUpload(CUgraphExec exec, CUstream stream)
{
	return upload(exec, stream, false);
}

CUDADRV_API CUresult cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream)
{
	return upload(exec, stream, true);
}

CUDADRV_API CUresult cuGraphExecDestroy(CUgraphExec exec)
{
	CUresult r = enter_exec(exec);

	if (r)
		return r;
	vg_graph_mem_instantiate(exec->graph, false);
	vg_graph_free(exec->graph);
	vg_mark_put(exec->last);
	vg_object_free(VG_EXEC, exec);
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t *flags)
{
	CUresult r = flags ? enter_exec(exec) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*flags = exec->flags;
	return vg_leave(CUDA_SUCCESS);
}
