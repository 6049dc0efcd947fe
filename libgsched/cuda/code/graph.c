// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What is known of instantiated graphs: how much of the device their widest kernel covers, and how
 * long they take. Nodes that run side by side are not added up.
 */
#include <stdlib.h>
#include "code/code.h"

#define BUCKETS		256
#define NODES_MAX	4096	/* a larger graph is taken for as wide as the device */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* the table; innermost */
static struct gi_graph *table[BUCKETS];

static struct gi_graph **bucket_of(CUgraphExec exec)
{
	return &table[gi_hash(exec) % BUCKETS];
}

/* Blocks of a kernel node, and in *@m how many an SM hosts; 0: not known */
static uint64_t blocks_of(CUgraphNode node, int *m)
{
	CUDA_KERNEL_NODE_PARAMS_v2 p = { 0 };
	CUfunction f;

	if (gi_real.cuGraphKernelNodeGetParams_v2(node, &p))
		return 0;
	f = p.func ? p.func : (CUfunction)p.kern;
	if (!f || gi_real.cuOccupancyMaxActiveBlocksPerMultiprocessor(m, f,
			(int)(p.blockDimX * p.blockDimY * p.blockDimZ), p.sharedMemBytes) || *m < 1)
		return 0;
	if (*m > 32)
		*m = 32;
	return (uint64_t)p.gridDimX * p.gridDimY * p.gridDimZ;
}

/* The widest node; false: not known */
static bool measure(struct gi_graph *g, CUgraph graph)
{
	CUgraphNodeType type;
	CUgraphNode *nodes;
	bool known = true;
	uint64_t blocks;
	size_t n = 0, i;
	int m;

	g->blocks = 0;
	g->shape.original_m = 1;
	if (gi_real.cuGraphGetNodes(graph, NULL, &n) || n > NODES_MAX)
		return false;
	nodes = calloc(n ? n : 1, sizeof(*nodes));
	if (!nodes || gi_real.cuGraphGetNodes(graph, nodes, &n))
		known = false;
	for (i = 0; known && i < n; i++) {
		known = !gi_real.cuGraphNodeGetType(nodes[i], &type);
		/* graphs in it may hold any kernel */
		if (known && (type == CU_GRAPH_NODE_TYPE_GRAPH ||
			      type == CU_GRAPH_NODE_TYPE_CONDITIONAL))
			known = false;
		if (!known || type != CU_GRAPH_NODE_TYPE_KERNEL)
			continue;
		blocks = blocks_of(nodes[i], &m);
		known = blocks;
		if (known && blocks * g->shape.original_m > g->blocks * m) {
			g->blocks = blocks;
			g->shape.original_m = m;
		}
	}
	free(nodes);
	return known;
}

void gi_graph_made(CUgraphExec exec, CUgraph graph)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	struct gi_graph *g = calloc(1, sizeof(*g));
	struct gi_graph **bucket = bucket_of(exec);

	if (!g)
		return;
	gi_real.cuThreadExchangeStreamCaptureMode(&mode);
	g->exec = exec;
	atomic_store(&g->users, 1);
	if (!measure(g, graph)) {
		g->blocks = UINT32_MAX;
		g->shape.original_m = 1;
	} else if (!g->blocks) {
		g->blocks = 1;
	}
	gi_real.cuThreadExchangeStreamCaptureMode(&mode);
	/* what could not be destroyed through us may have had the handle */
	gi_graph_gone(exec);
	pthread_mutex_lock(&lock);
	g->next = *bucket;
	*bucket = g;
	pthread_mutex_unlock(&lock);
}

void gi_graph_gone(CUgraphExec exec)
{
	struct gi_graph **p, *g = NULL;

	pthread_mutex_lock(&lock);
	for (p = bucket_of(exec); *p && (*p)->exec != exec; p = &(*p)->next)
		;
	if (*p) {
		g = *p;
		*p = g->next;
	}
	pthread_mutex_unlock(&lock);
	gi_graph_put(g);
}

struct gi_graph *gi_graph_get(CUgraphExec exec)
{
	struct gi_graph *g;

	pthread_mutex_lock(&lock);
	for (g = *bucket_of(exec); g && g->exec != exec; g = g->next)
		;
	gi_graph_hold(g);
	pthread_mutex_unlock(&lock);
	return g;
}

struct gi_graph *gi_graph_hold(struct gi_graph *g)
{
	if (g)
		atomic_fetch_add(&g->users, 1);
	return g;
}

void gi_graph_put(struct gi_graph *g)
{
	if (g && atomic_fetch_sub(&g->users, 1) == 1)
		free(g);
}

void gi_graph_reset(void)
{
	static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
	unsigned int i;

	lock = unlocked;
	for (i = 0; i < BUCKETS; i++)
		table[i] = NULL;
}
