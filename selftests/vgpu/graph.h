/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Graphs of vgpu: their nodes, executable graphs, captures. vg.lock protects all of it. A node
 * holds the operation that it stands for as a template, which is never queued: a launch runs
 * copies. An executable graph owns a clone of the graph that it was made of; a launch owns
 * everything that it needs, so that either may go while it runs.
 */
#ifndef VGPU_GRAPH_H
#define VGPU_GRAPH_H

#include "vgpu.h"

struct CUuserObject_st {
	unsigned int refs;
	void *ptr;
	CUhostFn destroy;
};

/* References to user objects, one entry each */
struct vg_users {
	struct CUuserObject_st **at;
	size_t n;
};

struct CUgraphNode_st {
	struct CUgraph_st *graph;
	struct CUgraphNode_st *next;	/* in the graph, in the order that they were made in */
	CUgraphNodeType type;
	uint64_t id, origin;		/* origin: of the node that this one is a clone of, 0
					 * none */
	struct vg_nodes deps;
	struct vg_op *op;		/* template; several, by ->next, of a batch of memory
					 * operations; NULL: nothing to do */
	struct CUevent_st *event;	/* EVENT_RECORD, WAIT_EVENT */
	struct CUgraph_st *child;	/* GRAPH */
	CUDA_MEMCPY3D copy;		/* MEMCPY: as it was given */
	CUDA_MEMSET_NODE_PARAMS set;	/* MEMSET */
	/* KERNEL: pointers into the template's parameters, for who asks */
	void **params;
	size_t index;			/* scratch: position in the graph */
	bool seen;			/* scratch: of a walk */
	struct vg_step *first, *last;	/* scratch: of a launch */
};

struct CUgraph_st {
	struct CUgraphNode_st *nodes, **end;
	size_t n;
	struct CUgraphNode_st *owner;	/* it is the graph of a child node, or of an executable
					 * graph (which is no node) */
	struct vg_users users;
};

struct vg_capture {
	struct vg_capture *next;
	uint64_t id;
	struct CUgraph_st *graph;
	struct CUstream_st *origin;
	const void *thread;		/* that began it */
	CUstreamCaptureMode mode;
	bool invalid, borrowed;		/* borrowed: the graph is the caller's */
	struct vg_nodes before;		/* of a borrowed graph: what it was begun behind */
};

struct CUgraphExec_st {
	struct CUgraph_st *graph;
	unsigned long long flags;
	struct vg_mark *last;		/* the last launch: the next one waits for it */
};

/* One operation of a launch */
struct vg_step {
	struct vg_run *run;
	struct vg_op *op;		/* NULL: only joins others */
	struct CUevent_st *event;	/* that a RECORD is of: used before the launch is queued */
	struct vg_step *next;		/* run->active */
	struct vg_edge *after;		/* what waits for it */
	unsigned int pending;		/* what it waits for */
};
struct vg_edge {
	struct vg_edge *next;
	struct vg_step *to;
};

/* One launch */
struct vg_run {
	struct vg_op *op;		/* the stream's operation */
	struct vg_step *steps, *active;	/* active: neither over nor waiting for others of the
					 * graph */
	size_t n, left;
	struct vg_edge *edges;
	size_t n_edges;
	bool started, aborted;
	struct vg_mark *before, *mark;	/* the launch of the same executable graph before, NULL
					 * none; this one */
	struct vg_users users;
};

/* graph.c */
bool vg_nodes_has(const struct vg_nodes *l, const struct CUgraphNode_st *n);
/* unless it is there. false: out of memory */
bool vg_nodes_add(struct vg_nodes *l, struct CUgraphNode_st *n);
bool vg_nodes_copy(struct vg_nodes *to, const struct vg_nodes *from);
void vg_nodes_del(struct vg_nodes *l, const struct CUgraphNode_st *n);
struct CUgraph_st *vg_graph_new(void);
void vg_graph_free(struct CUgraph_st *g);
CUresult vg_graph_clone(const struct CUgraph_st *from, struct CUgraph_st **out);
size_t vg_graph_number(struct CUgraph_st *g);	/* sets every node's index; their number */
CUresult vg_node_new(struct CUgraph_st *g, CUgraphNodeType type, const CUgraphNode *deps, size_t n,
		     struct CUgraphNode_st **out);
void vg_node_free(struct CUgraphNode_st *n);	/* and out of its graph */
/* what it does, not where it is */
CUresult vg_node_copy(struct CUgraphNode_st *to, const struct CUgraphNode_st *from);
void vg_node_set_op(struct CUgraphNode_st *n, struct vg_op *op);
struct vg_op *vg_op_clone(const struct vg_op *op);	/* with all that follow it */
CUresult vg_enter_graph(CUgraph g);	/* vg_enter, and it is one */
CUresult vg_enter_node(CUgraphNode n);

/* graph_edges.c */
bool vg_users_copy(struct vg_users *to, const struct vg_users *from);
void vg_users_drop(struct vg_users *u);

/* graph_params.c: fill a node that was just made, or change it */
CUresult vg_node_kernel(struct CUgraphNode_st *n, const CUDA_KERNEL_NODE_PARAMS *p);
CUresult vg_node_memcpy(struct CUgraphNode_st *n, const CUDA_MEMCPY3D *p);
CUresult vg_node_memset(struct CUgraphNode_st *n, const CUDA_MEMSET_NODE_PARAMS *p);
CUresult vg_node_host(struct CUgraphNode_st *n, const CUDA_HOST_NODE_PARAMS *p);
/* A captured operation's parameters, as the calls that ask for them give them */
void vg_node_describe(struct CUgraphNode_st *n);

/* graph_capture.c */
bool vg_graph_captured(const struct CUgraph_st *g);
void vg_capture_forget(const struct CUgraphNode_st *n);		/* the node goes */
/* a graph is launched into a capture */
CUresult vg_capture_graph(struct CUstream_st *s, const struct CUgraph_st *g);

#endif /* VGPU_GRAPH_H */
