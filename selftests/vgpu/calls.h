/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What every driver call does at its entry and its exit, and how a driver call gets in the way of
 * others.
 *
 * NVIDIA's driver has a lock for each context. Some calls wait for the context's work and hold it
 * meanwhile, so every other call on the context waits for that work too, on whichever thread:
 * launches, queries, copies. $VGPU_LOCKS says which calls do so here: "none" (the default), "1" for
 * those that NVIDIA's driver makes wait each time, "all", or names of the table with commas. Calls
 * that only wait (cuStreamSynchronize, cuCtxSynchronize, cuEventSynchronize) hold nothing.
 *
 * $VGPU_DELAYS=SEED[:MAX_US] makes calls pause for up to MAX_US (200) microseconds at entry and
 * exit. A thread's pauses follow from the seed and from how many threads made a call before its
 * first.
 */
#ifndef VGPU_CALLS_H
#define VGPU_CALLS_H

#include <stdbool.h>
#include "libgsched/cuda/base/cudadrv.h"

/* X(id, name, each time?) */
#define VG_HOLDERS(X) \
	X(CTX_DESTROY, "cuCtxDestroy", true)		/* and the release of a primary one */ \
	X(CTX_SET_LIMIT, "cuCtxSetLimit", true) \
	X(MODULE_UNLOAD, "cuModuleUnload", false)	/* waits, and launches go on */ \
	X(LIBRARY_UNLOAD, "cuLibraryUnload", false)	/* the same, in each context */ \
	X(MEM_FREE, "cuMemFree", true) \
	X(MEM_FREE_HOST, "cuMemFreeHost", true) \
	X(MEM_HOST_UNREGISTER, "cuMemHostUnregister", true) \
	X(ARRAY_DESTROY, "cuArrayDestroy", true) \
	X(MEMCPY, "cuMemcpy", true)			/* synchronous copies and sets \
		of the host's memory */ \
	X(FULL, "full", \
	  true)				/* whatever queues work behind VG_QUEUE_MAX operations */ \
	X(MODULE_LOAD, "cuModuleLoad", true)		/* and its other forms */ \
	X(MODULE_GET_FUNCTION, "cuModuleGetFunction", \
	  false)	/* cuKernelGetFunction, cuFuncLoad */ \
	X(LAUNCH, "cuLaunchKernel", \
	  false)		/* of a function that nothing has loaded yet */ \
	X(GRAPH_INSTANTIATE, "cuGraphInstantiate", false) \
	X(MEM_ALLOC, "cuMemAlloc", false)		/* managed memory too */ \
	X(MEM_HOST_ALLOC, "cuMemHostAlloc", false)

#define VG_QUEUE_MAX 1024	/* operations that a stream takes before its next one waits */

enum vg_holder {
#define X(id, name, each) VG_HOLDER_##id,
	VG_HOLDERS(X)
#undef X
};

struct CUctx_st;
struct CUstream_st;

/* From the environment. false: said on stderr what is wrong */
bool vg_calls_init(void);
/* $CUDA_LAUNCH_BLOCKING: a launch returns when its kernel has ended */
bool vg_launches_block(void);
void vg_pause_load(void);			/* $VGPU_LOAD_US: what it takes to compile a module */

/* All of them pause and take vg.lock; with an error they have unlocked it again */
CUresult vg_enter_any(void);			/* in whatever state the library is */
/* initialized and no sticky error: it needs no context's lock */
CUresult vg_enter_device(void);
/* the same, and nobody holds the current context, if there is one */
CUresult vg_enter(void);
CUresult vg_enter_ctx(struct CUctx_st **ctx);	/* the same, and a current context */
CUresult vg_leave(CUresult r);			/* unlock, return @r */
/*
 * The call is on @ctx too. true: it waited, so what was looked up is to be looked up again; *@r:
 * sticky error
 */
bool vg_await(const struct CUctx_st *ctx, CUresult *r);

/* Wait for what @ctx (NULL: any) has to do, holding it if the call is one of $VGPU_LOCKS */
CUresult vg_wait_held(enum vg_holder call, struct CUctx_st *ctx);
/* The same, but if it is not of $VGPU_LOCKS it does not wait at all */
CUresult vg_may_wait(enum vg_holder call, struct CUctx_st *ctx);
CUresult vg_wait_room(struct CUstream_st *s);	/* the stream takes one more operation */
bool vg_holds(enum vg_holder call);
void vg_hold(struct CUctx_st *ctx, bool held);	/* NULL: all; nobody else holds it */

#endif /* VGPU_CALLS_H */
