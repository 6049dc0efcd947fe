// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Instantiated graphs: how much of the device their widest kernel covers, and how long they take.
 * Concurrent nodes are not added up.
 */
#include <stdlib.h>
#include <string.h>
#include "code/code.h"

#define BUCKETS		256
#define NODES_MAX	4096	/* a larger graph counts as wide as the device */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* protects the table; innermost */
static struct gi_graph *table[BUCKETS];

static struct gi_graph **bucket_of(CUgraphExec exec)
{
	return &table[gi_hash(exec) % BUCKETS];
}

static uint64_t mix_hash(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 29;
}

static CUfunction function_of(const CUDA_KERNEL_NODE_PARAMS_v2 *p)
{
	return p->func ? p->func : (CUfunction)p->kern;
}

/* Hash of what decides how many blocks of a node fit an SM. */
static uint64_t block_digest(const CUDA_KERNEL_NODE_PARAMS_v2 *p)
{
	/* the number tells apart kernels with one handle */
	uint64_t hash = mix_hash((uintptr_t)function_of(p), gi_name_number(function_of(p)));

	hash = mix_hash(hash, p->sharedMemBytes);
	return mix_hash(hash, (uint64_t)p->blockDimX << 32 | p->blockDimY << 16 | p->blockDimZ);
}

/* Hash of a kernel node without its parameters. */
static uint64_t digest_of(const CUDA_KERNEL_NODE_PARAMS_v2 *p)
{
	uint64_t hash = mix_hash(block_digest(p), (uint64_t)p->gridDimX << 32 | p->gridDimY);

	return mix_hash(hash, p->gridDimZ);
}

/* How many blocks fit an SM, 0: unknown. */
static int blocks_per_sm(const CUDA_KERNEL_NODE_PARAMS_v2 *p)
{
	int m;

	if (!function_of(p) ||
	    gi_real.cuOccupancyMaxActiveBlocksPerMultiprocessor(&m, function_of(p),
			(int)(p->blockDimX * p->blockDimY * p->blockDimZ), p->sharedMemBytes) ||
	    m < 1)
		return 0;
	return m < 32 ? m : 32;
}

/* Answers of the driver while the nodes of a graph are read: most have few kernels. */
#define ANSWERS	64
struct answer {
	uint64_t block_digest;
	int m;
};

/*
 * Sets its blocks and how many fit an SM; 0 blocks: unknown. @answers: ANSWERS of them, at first
 * zero; or NULL.
 */
static void fill_kernel(struct gi_graph_kernel *k, const CUDA_KERNEL_NODE_PARAMS_v2 *p,
			struct answer *answers)
{
	const uint64_t digest = block_digest(p);
	struct answer *known = answers ? &answers[digest % ANSWERS] : NULL;

	k->digest = digest_of(p);
	k->m = known && known->block_digest == digest ? known->m : blocks_per_sm(p);
	if (known)
		*known = (struct answer){ digest, k->m };
	k->blocks = k->m ? (uint64_t)p->gridDimX * p->gridDimY * p->gridDimZ : 0;
}

/* Derives the widest kernel and the key from the kernels. */
static void update_summary(struct gi_graph *g)
{
	size_t i;

	g->blocks = g->known ? 1 : UINT32_MAX;
	g->shape.original_m = 1;
	g->key = mix_hash(g->number, 0);
	for (i = 0; i < g->n_kernels; i++) {
		const struct gi_graph_kernel *k = &g->kernels[i];

		g->key = mix_hash(g->key, k->digest);
		if (!k->blocks) {
			g->blocks = UINT32_MAX;
			g->shape.original_m = 1;
		} else if (g->blocks < UINT32_MAX &&
			   (!i || k->blocks * g->shape.original_m > g->blocks * k->m)) {
			g->blocks = k->blocks;
			g->shape.original_m = k->m;
		}
	}
}

/*
 * Reads the kernel nodes. @before: an earlier state, from which unchanged nodes are copied; or
 * NULL.
 */
static void read_nodes(struct gi_graph *g, CUgraph graph, const struct gi_graph *before)
{
	struct answer answers[ANSWERS] = { 0 };
	CUDA_KERNEL_NODE_PARAMS_v2 p;
	CUgraphNodeType type;
	CUgraphNode *nodes;
	size_t n = 0, i;

	if (gi_real.cuGraphGetNodes(graph, NULL, &n) || n > NODES_MAX)
		return;
	nodes = calloc(n ? n : 1, sizeof(*nodes));
	g->kernels = calloc(n ? n : 1, sizeof(*g->kernels));
	g->known = nodes && g->kernels && !gi_real.cuGraphGetNodes(graph, nodes, &n);
	for (i = 0; g->known && i < n; i++) {
		struct gi_graph_kernel *k = &g->kernels[g->n_kernels];
		const struct gi_graph_kernel *was = NULL;

		/* a child graph may contain any kernel */
		if (gi_real.cuGraphNodeGetType(nodes[i], &type) ||
		    type == CU_GRAPH_NODE_TYPE_GRAPH || type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
			g->known = false;
			g->n_kernels = 0;
			break;
		}
		if (type != CU_GRAPH_NODE_TYPE_KERNEL)
			continue;
		if (before && g->n_kernels < before->n_kernels)
			was = &before->kernels[g->n_kernels];
		k->node = was ? was->node : nodes[i];
		g->n_kernels++;
		memset(&p, 0, sizeof(p));
		if (gi_real.cuGraphKernelNodeGetParams_v2(nodes[i], &p))
			continue;
		if (was && was->digest == digest_of(&p))
			*k = *was;
		else
			fill_kernel(k, &p, answers);
	}
	free(nodes);
}

/* Removes it from the table, whose reference passes to the caller. */
static struct gi_graph *take_graph(CUgraphExec exec)
{
	struct gi_graph **p, *g;

	pthread_mutex_lock(&lock);
	for (p = bucket_of(exec); *p && (*p)->exec != exec; p = &(*p)->next)
		;
	g = *p;
	if (g)
		*p = g->next;
	pthread_mutex_unlock(&lock);
	return g;
}

static void insert_graph(struct gi_graph *g)
{
	struct gi_graph **bucket = bucket_of(g->exec);

	pthread_mutex_lock(&lock);
	g->next = *bucket;
	*bucket = g;
	pthread_mutex_unlock(&lock);
}

static struct gi_graph *new_graph(CUgraphExec exec, uint64_t number)
{
	struct gi_graph *g = calloc(1, sizeof(*g));

	if (g) {
		g->exec = exec;
		g->number = number;
		atomic_store(&g->users, 1);
	}
	return g;
}

void gi_graph_made(CUgraphExec exec, CUgraph graph, bool lifted)
{
	static _Atomic uint64_t numbers;
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	struct gi_graph *g = new_graph(exec, atomic_fetch_add(&numbers, 1) + 1);

	/* the handle may be that of a graph whose destruction was not seen */
	gi_graph_gone(exec);
	if (!g)
		return;
	g->lifted = lifted;
	gi_real.cuThreadExchangeStreamCaptureMode(&mode);
	read_nodes(g, graph, NULL);
	gi_real.cuThreadExchangeStreamCaptureMode(&mode);
	update_summary(g);
	insert_graph(g);
}

/*
 * As long as its kernels and grids are the same, it stays the same graph and keeps its times. Else
 * it becomes a new one; earlier launches keep the old one.
 */
void gi_graph_updated(CUgraphExec exec, CUgraph graph)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	struct gi_graph *before = take_graph(exec), *g;

	if (!before) {
		gi_graph_made(exec, graph, false);
		return;
	}
	g = new_graph(exec, before->number);
	if (g) {
		g->lifted = before->lifted;
		gi_real.cuThreadExchangeStreamCaptureMode(&mode);
		read_nodes(g, graph, before);
		gi_real.cuThreadExchangeStreamCaptureMode(&mode);
		update_summary(g);
	}
	if (g && g->key != before->key) {
		insert_graph(g);
		gi_graph_put(before);
	} else {
		insert_graph(before);
		gi_graph_put(g);
	}
}

/*
 * The node's index among the kernels; n_kernels: it is none of them. Programs that set all nodes do
 * it in their order, so the search begins behind the last one.
 */
static size_t place_of(struct gi_graph *g, CUgraphNode node)
{
	size_t i = g->sought, n;

	for (n = 0; n < g->n_kernels; n++, i++) {
		if (i >= g->n_kernels)
			i = 0;
		if (g->kernels[i].node == node) {
			g->sought = i + 1;
			return i;
		}
	}
	return g->n_kernels;
}

void gi_graph_kernel_set(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *p)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	struct gi_graph *before = take_graph(exec), *g = NULL;
	size_t i = before ? place_of(before, node) : 0;

	if (!before)
		return;
	if (i < before->n_kernels && before->kernels[i].digest != digest_of(p))
		g = new_graph(exec, before->number);
	if (!g) {
		insert_graph(before);
		return;
	}
	g->known = true;
	g->lifted = before->lifted;
	g->kernels = before->kernels;
	g->n_kernels = before->n_kernels;
	g->sought = before->sought;
	before->kernels = NULL;
	gi_real.cuThreadExchangeStreamCaptureMode(&mode);
	fill_kernel(&g->kernels[i], p, NULL);
	gi_real.cuThreadExchangeStreamCaptureMode(&mode);
	update_summary(g);
	insert_graph(g);
	gi_graph_put(before);
}

void gi_graph_gone(CUgraphExec exec)
{
	gi_graph_put(take_graph(exec));
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

bool gi_graph_lifted(CUgraphExec exec)
{
	struct gi_graph *g = gi_graph_get(exec);
	bool lifted = g && g->lifted;

	gi_graph_put(g);
	return lifted;
}

struct gi_graph *gi_graph_hold(struct gi_graph *g)
{
	if (g)
		atomic_fetch_add(&g->users, 1);
	return g;
}

void gi_graph_put(struct gi_graph *g)
{
	if (!g || atomic_fetch_sub(&g->users, 1) > 1)
		return;
	free(g->kernels);
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
