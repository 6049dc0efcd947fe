/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory of vgpu that is not freed where it is allocated: pools (pool.c), memory of graphs
 * (graph_memory.c). vg.lock protects all of it.
 */
#ifndef VGPU_POOL_H
#define VGPU_POOL_H

#include "vgpu.h"

struct CUgraphNode_st;
struct CUgraph_st;
struct CUgraphExec_st;

/* The current pool of a device. NULL: out of memory */
CUmemoryPool vg_pool_current(struct vg_gpu *gpu);
/* The pool that @ptr was allocated from, NULL none */
CUmemoryPool vg_pool_of(CUdeviceptr ptr);
void vg_pool_props(CUmemoryPool pool, CUmemPoolProps *props);
/* A stream-ordered free of @ptr is issued to @s, which is known not to capture */
CUresult vg_pool_free(CUdeviceptr ptr, const struct CUstream_st *s);
/* Its turn has come. false: it is not a pool's */
bool vg_pool_freed(CUdeviceptr ptr);

/*
 * Memory of graphs: its addresses last as long as the nodes that name it, the memory behind them
 * from a launch's allocation to its free. Counted: operations, and itself while it is allocated.
 */
struct vg_graph_mem {
	struct vg_graph_mem *next;
	unsigned int refs;
	CUdeviceptr base;
	size_t size;
	const struct CUctx_st *ctx;	/* gone, maybe */
	const struct vg_gpu *gpu;
	CUmemPoolProps props;
	bool live;			/* the device has allocated it */
	bool owed;			/* what is launched by now leaves it allocated */
	bool reserved;			/* counts as the process's memory */
	uint32_t object;		/* of vg_charge(), if reserved */
	bool instantiated;
};

struct vg_graph_mem *vg_graph_mem_find(CUdeviceptr ptr);
void vg_graph_mem_get(struct vg_graph_mem *m);
void vg_graph_mem_put(struct vg_graph_mem *m);
void vg_graph_mem_allocated(struct vg_graph_mem *m);	/* by the engine */
/* by the engine, or at once. false: it is not a graph's */
bool vg_graph_mem_freed(CUdeviceptr ptr);
CUresult vg_graph_mem_free(CUdeviceptr ptr);	/* a free is issued that no graph makes */
void vg_graph_mem_drop(const struct CUctx_st *ctx);
/* For a graph with location and size of @p, whose address it sets */
CUresult vg_node_alloc(struct CUgraphNode_st *n, struct CUctx_st *ctx,
		       CUDA_MEM_ALLOC_NODE_PARAMS *p);
CUresult vg_node_free_memory(struct CUgraphNode_st *n, CUdeviceptr ptr);
bool vg_graph_has_memory(const struct CUgraph_st *g);
/* At most one executable graph at a time. @on: one more, or one fewer */
CUresult vg_graph_mem_instantiate(const struct CUgraph_st *g, bool on);
CUresult vg_graph_mem_launch(const struct CUgraphExec_st *exec);

#endif /* VGPU_POOL_H */
