/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Inside vgpu's libcuda: objects behind the handles, and the calls between its files.
 *
 * One lock (vg.lock) protects everything here but what says otherwise. The engine, one thread a process, is the device's
 * side: it moves the streams on, runs blocks and copies. A stream is a queue of operations; its head is what runs. API
 * calls append and, if they are synchronous, wait on vg.changed.
 */
#ifndef VGPU_VGPU_H
#define VGPU_VGPU_H

#define CUDADRV_NO_ALIASES
#define CUDADRV_API __attribute__((visibility("default")))
#include "libgsched/cuda/cudadrv.h"
#include "rewriter/gsr.h"
#include "exec.h"
#include "shm.h"

#define VG_LEAST_PRIORITY	0
#define VG_GREATEST_PRIORITY	(-5)
#define VG_STATIC_DYNAMIC_SHARED (48u << 10)	/* dynamic shared memory without the opt-in attribute */

enum vg_type { VG_NONE, VG_CONTEXT, VG_MODULE, VG_FUNCTION, VG_LIBRARY, VG_LINK, VG_STREAM, VG_EVENT, VG_TEXREF, VG_SURFREF };

/* One point of a stream that others wait for: an event record. Counted: op, event and waiting ops hold it */
struct vg_mark {
	unsigned int refs;
	bool done;
	uint64_t time_ns;
};

enum vg_op_kind {
	VG_OP_KERNEL, VG_OP_COPY, VG_OP_COPY2D, VG_OP_SET, VG_OP_FREE, VG_OP_RECORD, VG_OP_WAIT_EVENT, VG_OP_WAIT_VALUE,
	VG_OP_WRITE_VALUE, VG_OP_HOST, VG_OP_FENCE,
};

struct vg_op {
	struct vg_op *next;
	struct CUstream_st *stream;
	enum vg_op_kind kind;
	uint64_t seq;			/* order of issue in the process */
	bool *done;			/* set when done: a caller that waits */
	union {
		struct {
			struct vgpu_launch launch;
			struct CUfunc_st *function;
			void *params;
			uint64_t *references;	/* handles of objects, by the kernel's number */
			unsigned int n_references;
			struct vg_need need;
			int priority;
			int entry;		/* in the shared queue, -1 not yet */
			uint64_t taken, done;	/* blocks */
		} kernel;
		struct { void *dst; const void *src; size_t size; void *staged; } copy;
		struct { char *dst; const char *src; size_t dst_pitch, src_pitch, dst_plane, src_plane, width, height, depth; } copy2d;
		struct { char *dst; size_t pitch, width, height; uint32_t value; unsigned int element; } set;
		struct { CUdeviceptr ptr; } free;
		struct vg_mark *mark;		/* RECORD, WAIT_EVENT */
		struct { uint64_t addr, value; unsigned int flags, bytes; } value;
		struct { CUhostFn fn; CUstreamCallback callback; void *user; bool running; } host;
	};
};

struct CUstream_st {
	struct CUctx_st *ctx;
	struct CUstream_st *next;	/* ctx->streams */
	struct vg_op *head, *tail;
	unsigned int flags;		/* CU_STREAM_NON_BLOCKING */
	int priority;
	uint64_t id;
	bool dying;			/* destroyed with work left: goes when it is empty */
};

struct CUevent_st {
	struct CUctx_st *ctx;
	struct CUevent_st *next;
	unsigned int flags;
	struct vg_mark *mark;		/* the last record, NULL none yet */
};

struct CUctx_st {
	struct CUctx_st *next;
	bool primary, alive;
	unsigned int refs, flags;
	uint64_t id;
	CUfunc_cache cache_config;
	struct CUstream_st *streams;	/* the legacy default stream is the last */
	struct CUstream_st *legacy;
	struct CUevent_st *events;
	struct CUmod_st *modules;
	size_t limit[16];
};

/* A CUfunction and a CUkernel are the same here, as launches take either */
struct CUfunc_st {
	struct CUfunc_st *next;
	struct CUmod_st *module;
	const struct vgpu_kernel *kernel;
	const struct vgpu_kernel_info *info;
	unsigned int max_dynamic_shared;
	int carveout;			/* CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, -1 default */
	CUfunc_cache cache_config;
};

/* A module, or a library: which is a module that belongs to no context */
struct CUmod_st {
	struct CUmod_st *next;
	struct CUctx_st *ctx;		/* NULL: a library's */
	struct vgpu_module *image;
	struct CUfunc_st *functions;
	struct CUlib_st *library;
	struct vg_reference *references;
};

struct CUlib_st {
	struct CUlib_st *next;
	struct CUmod_st *module;
};

struct vg_state {
	pthread_mutex_t lock;
	pthread_cond_t changed;		/* an operation ended */
	struct vg_device *device;
	uint32_t proc;			/* our slot */
	struct vg_config config;
	bool initialized;
	CUresult sticky;		/* what a kernel's fault left: every later call returns it */
	uint64_t seed;			/* $VGPU_SEED: the order of warps and lanes; 0: in turn */
	bool shuffle;			/* $VGPU_SHUFFLE: blocks start in an order by the seed */
	struct CUctx_st *contexts, *primary;
	struct CUlib_st *libraries;
	uint64_t seq, ids;
	_Atomic unsigned int kicks;	/* the engine should look at the streams */
};
extern struct vg_state vg;

/* vgpu.c: locks, handles, errors */
CUresult vg_enter(void);			/* lock, initialized and no sticky error; else unlocked with the error */
CUresult vg_enter_ctx(struct CUctx_st **ctx);	/* the same, and a current context */
CUresult vg_leave(CUresult r);			/* unlock, return @r */
bool vg_handle_add(const void *p, enum vg_type type);
void vg_handle_del(const void *p);
bool vg_handle_is(const void *p, enum vg_type type);
uint64_t vg_now(void);
CUresult vg_unsimulated(const char *name);	/* says so on stderr */
void vg_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* context.c */
struct CUctx_st *vg_current(void);

/* stream.c: the lock is held */
CUresult vg_stream_get(CUstream handle, bool per_thread, struct CUctx_st *ctx, struct CUstream_st **out);
struct CUstream_st *vg_stream_new(struct CUctx_st *ctx, unsigned int flags, int priority);
void vg_stream_free(struct CUstream_st *s);
struct vg_op *vg_op_new(enum vg_op_kind kind);
void vg_op_free(struct vg_op *op);
void vg_push(struct CUstream_st *s, struct vg_op *op);
CUresult vg_push_wait(struct CUstream_st *s, struct vg_op *op);	/* and wait until it is done */
CUresult vg_wait_stream(struct CUstream_st *s);
CUresult vg_wait_ctx(struct CUctx_st *ctx);	/* NULL: all */
bool vg_op_ready(const struct vg_op *op);
void vg_op_finish(struct vg_op *op);		/* the head of its stream is done */
bool vg_value_reached(const struct vg_op *op);
void vg_mark_put(struct vg_mark *m);

/* engine.c */
CUresult vg_engine_start(void);
void vg_engine_stop(void);
void vg_kick(void);

/* mem.c: regions of device-accessible memory; the lock is held */
enum vg_mem { VG_MEM_DEVICE, VG_MEM_MANAGED, VG_MEM_HOST, VG_MEM_REGISTERED, VG_MEM_GLOBAL };
struct vg_region {
	uint64_t base, size, id;
	enum vg_mem kind;
	bool readonly;
	unsigned int flags;
	struct CUctx_st *ctx;
	const void *owner;		/* goes with it: a context, a module */
};
const struct vg_region *vg_region_find(uint64_t addr);
bool vg_region_covers(uint64_t addr, size_t size);
CUresult vg_region_add(const struct vg_region *r);
void vg_region_del(uint64_t base);
void vg_region_quiet(void);			/* by the engine, between two blocks */
CUresult vg_mem_alloc(struct CUctx_st *ctx, size_t size, enum vg_mem kind, unsigned int flags, CUdeviceptr *out);
CUresult vg_mem_free(CUdeviceptr ptr, bool host);
void vg_regions_drop(const void *owner);	/* it goes, with its memory */
bool vg_access_ok(uint64_t addr, size_t size, bool write);
void vg_access_why(uint64_t addr, size_t size, char *buf, size_t n);

/* module.c */
CUresult vg_function_get(const void *handle, struct CUfunc_st **out);
void vg_modules_drop(struct CUctx_st *ctx);

CUresult vg_read_file(const char *name, char **data, size_t *size);	/* malloc'd, a NUL behind it */

/* link.c: the PTX in what cuLinkComplete gave, malloc'd; false: it is something else */
bool vg_linked_ptx(const void *image, size_t max, char **ptx, size_t *size);

/* texture.c */
void vg_arrays_drop(struct CUctx_st *ctx);
CUresult vg_array_place(CUarray array, const size_t at[3], size_t width, size_t rows, size_t planes, char **base, size_t *pitch,
			size_t *plane);

/* Its handle; 0: *@r says why not. @texture NULL: a surface. The lock is held */
uint64_t vg_object(const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *texture, CUresult *r);

/* reference.c */
void vg_references_drop(struct CUmod_st *m);
/* What is bound to the kernel's now. false: out of memory */
bool vg_references_take(const struct CUfunc_st *f, uint64_t **handles);
void vg_references_put(uint64_t *handles, unsigned int n);

/* launch.c */
struct vg_need vg_function_need(const struct CUfunc_st *f, unsigned int threads, size_t dynamic);

#endif /* VGPU_VGPU_H */
