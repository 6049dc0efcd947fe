/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Inside vgpu's libcuda: objects behind the handles, and the calls between its files.
 *
 * One lock (vg.lock) protects everything here but what says otherwise. The engine, one thread for
 * each device that has contexts, is the device's side: it moves the streams on, runs blocks and
 * copies. A stream is a queue of operations; its head is what runs. API calls append and, if they
 * are synchronous, wait on vg.changed.
 */
#ifndef VGPU_VGPU_H
#define VGPU_VGPU_H

#define CUDADRV_NO_ALIASES
#define CUDADRV_API __attribute__((visibility("default")))
#include "libgsched/cuda/base/cudadrv.h"
#include "rewriter/gsr.h"
#include "calls.h"
#include "exec.h"
#include "shm.h"

#define VG_LEAST_PRIORITY	0
#define VG_GREATEST_PRIORITY	(-5)
#define VG_GPUS_MAX		8
/* dynamic shared memory without the opt-in attribute */
#define VG_STATIC_DYNAMIC_SHARED (48u << 10)

enum vg_type { VG_NONE, VG_CONTEXT, VG_MODULE, VG_FUNCTION, VG_LIBRARY, VG_LINK, VG_STREAM,
	       VG_EVENT, VG_TEXREF, VG_SURFREF, VG_GRAPH, VG_NODE, VG_EXEC,
	       VG_USER_OBJECT, VG_POOL, VG_MEMORY, VG_TYPES };

/*
 * One point of a stream that others wait for: an event record. Counted: op, event and waiting ops
 * hold it
 */
struct vg_mark {
	unsigned int refs;
	bool done;
	uint64_t time_ns;
};

enum vg_op_kind {
	VG_OP_KERNEL, VG_OP_COPY, VG_OP_COPY2D, VG_OP_SET, VG_OP_ALLOC, VG_OP_FREE,
	VG_OP_RECORD, VG_OP_WAIT_EVENT, VG_OP_WAIT_VALUE, VG_OP_WRITE_VALUE, VG_OP_HOST, VG_OP_FENCE, VG_OP_GRAPH,
};

struct vg_op {
	struct vg_op *next;
	struct CUstream_st *stream;
	enum vg_op_kind kind;
	uint64_t seq;			/* order of issue in the process */
	bool *done;			/* set when done: a caller that waits */
	struct vg_step *step;		/* it is a node of a graph that runs: not in its stream's
					 * queue */
	union {
		struct {
			struct vgpu_launch launch;
			struct CUfunc_st *function;
			uint64_t function_id;	/* its handle may be another function's by now */
			void *params;
			uint64_t *references;	/* handles of objects, by the kernel's number */
			unsigned int n_references;
			struct vg_need need;
			int priority;
			int entry;		/* in the shared queue, -1 not yet */
			uint64_t taken, done;	/* blocks */
		} kernel;
		struct { void *dst; const void *src; size_t size; void *staged; } copy;
		struct { char *dst; const char *src; size_t dst_pitch, src_pitch, dst_plane,
			 src_plane, width, height, depth; } copy2d;
		struct { char *dst; size_t pitch, width, height; uint32_t value;
			 unsigned int element; } set;
		struct { struct vg_graph_mem *mem; size_t size; } alloc;
		struct { CUdeviceptr ptr; } free;
		struct vg_mark *mark;		/* RECORD, WAIT_EVENT */
		struct { uint64_t addr, value; unsigned int flags, bytes; } value;
		struct { CUhostFn fn; CUstreamCallback callback; void *user; bool running; } host;
		struct vg_run *run;		/* GRAPH */
	};
};

/* A list of nodes: without duplicates, the nodes belong to their graph */
struct vg_nodes {
	struct CUgraphNode_st **at;
	size_t n;
};

struct CUstream_st {
	struct CUctx_st *ctx;
	struct CUstream_st *next;	/* ctx->streams */
	struct vg_op *head, *tail;
	unsigned int n_ops;		/* in the queue */
	unsigned int flags;		/* CU_STREAM_NON_BLOCKING */
	int priority;
	uint64_t id;
	unsigned int connection;	/* the hardware queue that its kernels go through, if there
					 * are fewer than streams */
	bool dying;			/* destroyed with work left: goes when it is empty */
	struct vg_capture *capture;	/* NULL: what is issued runs */
	struct vg_nodes tail_nodes;	/* captures: what the next node depends on */
};

struct CUevent_st {
	struct CUctx_st *ctx;
	struct CUevent_st *next;
	unsigned int flags;
	struct vg_mark *mark;		/* the last record, NULL none yet */
	uint64_t captured;		/* the capture that the last record is part of, 0: it was
					 * not captured */
	struct vg_nodes nodes;		/* captured: what a wait for it depends on */
};

struct CUctx_st {
	struct CUctx_st *next;
	struct vg_gpu *gpu;
	bool primary, alive, green;
	bool held;			/* a call that waits has its lock: see calls.h */
	unsigned int refs, flags;
	uint64_t handle_id;		/* of all contexts that had this handle, which one */
	uint64_t id;
	CUfunc_cache cache_config;
	struct vg_mark *awaited[8];	/* events that streams wait for which are yet to be made */
	unsigned int n_awaited;
	unsigned int n_streams;		/* made so far, if connections are counted */
	struct CUstream_st *streams;	/* the legacy default stream is the last */
	struct CUstream_st *legacy;
	struct CUevent_st *events;
	struct CUmod_st *modules;
	size_t limit[16];
	uint32_t rm_group, rm_memory;	/* handles in rm.c, 0 none */
};

/* A CUfunction and a CUkernel are the same here, as launches take either */
struct CUfunc_st {
	struct CUfunc_st *next;
	struct CUmod_st *module;
	uint64_t id;
	const struct vgpu_kernel *kernel;
	const struct vgpu_kernel_info *info;
	struct CUfunc_st **on;		/* a library's on its first device: the same one on each of
					 * them, NULL: it is the only one */
	unsigned int max_dynamic_shared;
	bool loaded;
	int carveout;			/* CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, -1
					 * default */
	CUfunc_cache cache_config;
	struct vg_old_launch *old;	/* oldlaunch.c: NULL until set */
};

/* A module, or a library: which is a module that belongs to no context */
struct CUmod_st {
	struct CUmod_st *next;
	struct CUctx_st *ctx;		/* NULL: a library's */
	struct vg_gpu *gpu;
	struct vgpu_module *image;
	struct CUfunc_st *functions;
	struct CUlib_st *library;
	struct vg_reference *references;
};

struct CUlib_st {
	struct CUlib_st *next;
	struct CUmod_st *module[VG_GPUS_MAX];	/* on each device; handles of kernels are the first
						 * one's functions */
};

/* A device that this process sees */
struct vg_gpu {
	unsigned int number;		/* as CUDA counts them in this process */
	unsigned int index;		/* on the machine */
	struct vg_device *device;
	struct vg_config config;
	uint32_t proc;			/* our slot, if the engine runs */
	pthread_t thread;
	bool running, entered;		/* entered: it has tried to get a slot */
	/* what a kernel's fault left: every later call returns it */
	CUresult sticky;
	struct CUctx_st *primary;
	_Atomic unsigned int kicks;	/* the engine should look at the streams */
	uint64_t quiet;			/* mem.c: how new the regions are that the engine may still
					 * look at */
};

struct vg_state {
	pthread_mutex_t lock;
	pthread_cond_t changed;		/* an operation ended */
	struct vg_gpu gpu[VG_GPUS_MAX];
	unsigned int n_gpus;
	unsigned int connections;	/* $CUDA_DEVICE_MAX_CONNECTIONS; 0: each stream has its
					 * own */
	uint64_t key;			/* our channel group's: see vg_key_from_env() */
	int server;			/* its MPS server's pidfd, -1 none */
	bool initialized;
	bool ended;			/* the process exits: calls fail from now on */
	uint64_t seed;			/* $VGPU_SEED: the order of warps and lanes; 0: in turn */
	bool shuffle;			/* $VGPU_SHUFFLE: blocks start in an order by the seed */
	struct CUctx_st *contexts;
	struct CUlib_st *libraries;
	struct vg_capture *captures;
	uint64_t seq, ids;
};
extern struct vg_state vg;

/* graph.c */
void vg_nodes_clear(struct vg_nodes *l);

/* vgpu.c: handles, errors */
bool vg_handle_add(const void *p, enum vg_type type);
void vg_handle_del(const void *p);
bool vg_handle_is(const void *p, enum vg_type type);
/*
 * An object behind a new handle, zeroed but for what is set here. NULL: no memory. As with NVIDIA's
 * driver the next one of a type has the handle of the one that went last.
 */
void *vg_object_new(enum vg_type type, size_t size);
void vg_object_free(enum vg_type type, void *p);	/* its handle may be gone already */
uint64_t vg_now(void);
CUresult vgpuDependents(unsigned int *kernel, unsigned int *other);	/* launch.c */
CUresult vg_unsimulated(const char *name);	/* says so on stderr */
void vg_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* device.c */
/* by the environment; false: said on stderr why there is none */
bool vg_devices_init(void);
/* of the machine's; NULL: this process does not see it */
struct vg_gpu *vg_gpu_at(unsigned int index);
void vg_uuid(unsigned int index, unsigned char uuid[16]);
void vg_uuid_text(unsigned int index, char text[41]);	/* GPU-... */
/* arguments of a call that asks about a device */
CUresult vg_check_device(const void *out, CUdevice dev);

/* context.c */
struct CUctx_st *vg_current(void);		/* NULL: there is none, or it is destroyed */
bool vg_current_gone(void);			/* the latter */

/* rm.c: control calls for a context that comes, or goes; the lock is held */
bool vg_rm_open(struct CUctx_st *ctx);		/* false: its memory is refused */
void vg_rm_close(struct CUctx_st *ctx);
/* for device memory. *@object: to be given with it, 0 none. false: it is refused */
bool vg_rm_take(const struct vg_gpu *gpu, uint64_t size, uint32_t *object);
void vg_rm_give(const struct vg_gpu *gpu, uint32_t object);
/* the process has left the device: no more answers */
void vg_rm_stop(void);
void vg_rm_child(void);

/* stream.c: the lock is held */
CUresult vg_stream_get(CUstream handle, bool per_thread, struct CUctx_st *ctx,
		       struct CUstream_st **out);
struct CUstream_st *vg_stream_new(struct CUctx_st *ctx, unsigned int flags, int priority);
void vg_stream_free(struct CUstream_st *s);
struct vg_op *vg_op_new(enum vg_op_kind kind);
void vg_op_free(struct vg_op *op);
/* Queue it, or capture it if that is what the stream does; it is freed if that fails */
CUresult vg_push(struct CUstream_st *s, struct vg_op *op);
/* and wait until it is done; no stream that captures */
CUresult vg_push_wait(struct CUstream_st *s, struct vg_op *op);
CUresult vg_wait_stream(struct CUstream_st *s);
CUresult vg_wait_ctx(struct CUctx_st *ctx);	/* NULL: all */
bool vg_passed(uint64_t seq);			/* what was issued up to @seq has ended */
bool vg_op_ready(const struct vg_op *op);
void vg_op_finish(struct vg_op *op);		/* the head of its stream is done */
bool vg_value_reached(const struct vg_op *op);
void vg_mark_put(struct vg_mark *m);

/* engine.c */
extern __thread struct vg_gpu *vg_here;		/* on the thread of an engine: its device */
CUresult vg_engine_start(struct vg_gpu *gpu);
void vg_engine_stop(void);			/* all of them */
void vg_kick(void);

/* mem.c: regions of device-accessible memory; the lock is held */
enum vg_mem { VG_MEM_DEVICE, VG_MEM_MANAGED, VG_MEM_HOST, VG_MEM_REGISTERED, VG_MEM_GLOBAL };
struct vg_region {
	uint64_t base, size, id;
	enum vg_mem kind;
	bool readonly;
	bool absent;			/* addresses without memory: nothing may access them */
	unsigned int flags;
	uint32_t object;		/* of vg_charge(), if it goes with the region */
	struct CUctx_st *ctx;		/* NULL: it was mapped */
	const struct vg_gpu *gpu;	/* DEVICE: no other one's kernels may use it */
	const void *owner;		/* goes with it: a context, a module; a pool's block, a
					 * graph's memory, a mapping */
};
const struct vg_region *vg_region_find(uint64_t addr);
bool vg_region_covers(uint64_t addr, size_t size);
CUresult vg_region_add(const struct vg_region *r);
void vg_region_del(uint64_t base);
void vg_region_absent(uint64_t base, bool absent);
void vg_region_quiet(void);			/* by an engine, between two blocks */
CUresult vg_mem_alloc(struct CUctx_st *ctx, size_t size, enum vg_mem kind, unsigned int flags,
		      CUdeviceptr *out);
CUresult vg_mem_free(CUdeviceptr ptr, bool host);
/*
 * All device memory is taken and given back by these two. *@object is its object in rm.c. false: so
 * much is not left, or the call is refused
 */
bool vg_charge(const struct vg_gpu *gpu, size_t size, uint32_t *object);
void vg_uncharge(const struct vg_gpu *gpu, size_t size, uint32_t object);
/* Memory alone, charged to @gpu if there is one. NULL: there is none left */
void *vg_pages_take(const struct vg_gpu *gpu, size_t size, uint32_t *object);
void vg_pages_give(const struct vg_gpu *gpu, void *p, size_t size, uint32_t object);
void vg_regions_drop(const void *owner);	/* it goes, with its memory */
bool vg_access_ok(uint64_t addr, size_t size, bool write);
void vg_access_why(uint64_t addr, size_t size, char *buf, size_t n);

/* pool.c: the lock is held */
void vg_pools_sync(void);		/* the host has waited for work */
bool vg_pools_short(void);		/* memory is short. false: there was nothing to give */
void vg_pools_drop(const struct CUctx_st *ctx);

/* module.c */
/* a kernel's: on the current device */
CUresult vg_function_get(const void *handle, struct CUfunc_st **out);
/* for its first use, by @call */
CUresult vg_function_load(struct CUfunc_st *f, enum vg_holder call);
void vg_modules_drop(struct CUctx_st *ctx);

/* malloc'd, a NUL behind it */
CUresult vg_read_file(const char *name, char **data, size_t *size);
bool vg_modules_loading(void);			/* some thread loads a module */

/* link.c: the PTX in what cuLinkComplete gave, malloc'd; false: it is something else */
bool vg_linked_ptx(const void *image, size_t max, char **ptx, size_t *size);

/* texture.c */
void vg_texobjects_reap(void);			/* those that were destroyed and are unused */
void vg_arrays_drop(struct CUctx_st *ctx);
CUresult vg_array_place(CUarray array, const size_t at[3], size_t width, size_t rows, size_t planes,
			char **base, size_t *pitch, size_t *plane);

/* Its handle; 0: *@r says why not. @texture NULL: a surface. The lock is held */
uint64_t vg_object(const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *texture,
		   CUresult *r);

/* reference.c */
void vg_references_drop(struct CUmod_st *m);
/* What is bound to the kernel's now. false: out of memory */
bool vg_references_take(const struct CUfunc_st *f, uint64_t **handles);
void vg_references_put(uint64_t *handles, unsigned int n);

/* launch.c */
CUresult vg_kernel_new(const void *handle, const CUDA_KERNEL_NODE_PARAMS *p, int priority,
		       bool cooperative, struct vg_op **out);
bool vg_kernel_arm(struct vg_op *op);	/* what each launch has of its own. false: out of memory */
struct vg_need vg_function_need(const struct CUfunc_st *f, unsigned int threads, size_t dynamic);

/* copy.c: operations of checked parameters. *@out NULL and success: there is nothing to do */
CUresult vg_copy_new(const CUDA_MEMCPY3D *c, struct vg_op **out);
CUresult vg_set_new(const CUDA_MEMSET_NODE_PARAMS *p, struct vg_op **out);

/* streams.c */
struct vg_op *vg_values_new(unsigned int n, const CUstreamBatchMemOpParams *p, CUresult *r);

/* graph_exec.c: the lock is held */
bool vg_run_ready(const struct vg_op *op);
/* its first nodes may run; one without nodes is over */
void vg_run_start(struct vg_op *op);
bool vg_run_started(const struct vg_op *op);
/* no node starts any more. false: host functions of it still run */
bool vg_run_abort(struct vg_op *op);
void vg_run_free(struct vg_run *run);
void vg_step_finish(struct vg_step *step);
/*
 * What of a stream may run now: its head, or nodes of the graph that is its head. NULL: no (more)
 */
struct vg_op *vg_runnable(const struct CUstream_st *s, const struct vg_op *after);

/* graph_capture.c: all with the lock held */
/* the stream captures */
CUresult vg_capture_op(struct CUstream_st *s, struct vg_op *op);
CUresult vg_capture_record(struct CUstream_st *s, struct CUevent_st *e, bool external);
/* The stream captures, or the event is of a capture */
CUresult vg_capture_wait(struct CUstream_st *s, struct CUevent_st *e, bool external);
CUresult vg_capture_unsafe(void);	/* may this thread make a call that no capture can see? */
CUresult vg_capture_forbids(struct CUstream_st *s);	/* may @s be waited for or asked? */
CUresult vg_capture_implicit(const struct CUstream_st *s);	/* may the legacy stream be used? */
CUresult vg_capture_ctx(const struct CUctx_st *ctx);	/* may the whole context be waited for? */
CUresult vg_capture_event(const struct CUevent_st *e);	/* may it be waited for or asked? */
CUresult vg_capture_alloc(struct CUstream_st *s, CUDA_MEM_ALLOC_NODE_PARAMS *p);
CUresult vg_capture_free(struct CUstream_st *s, CUdeviceptr ptr);
void vg_capture_drop(struct CUstream_st *s);	/* the stream goes */

#endif /* VGPU_VGPU_H */
