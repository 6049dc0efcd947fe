/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The code that the program has loaded: images, their kernels and twins, texture references, and
 * the initial values of variables.
 */
#ifndef GI_CODE_H
#define GI_CODE_H

#include "code/tune.h"
#include "code/tuning.h"
#include "device/device.h"

struct gi_bound;
struct gi_func;

/* The forms of a kernel besides the original, each in a module of its own */
enum gi_form_id { GI_TWIN, GI_RESUMABLE, GI_FORMS };

/* One kernel in one form, as the rewriting service made it. Lives as long as the image; gi_lock */
struct gi_rewritten {
	struct gi_rewritten *next;
	enum gi_form_id id;
	struct gsr_rewrite desc;	/* of this kernel, or empty */
	char *ptx;			/* a module with only the twin; NULL: there is none */
	bool too_long;
	struct gi_loaded *loaded;	/* the module in contexts */
	char name[];			/* the kernel's */
};

/* A module that cuLibraryGetModule() returned in one context; gi_lock */
struct gi_module {
	struct gi_module *next;		/* hash chain */
	void *handle;
	struct gi_image *image;
	struct gi_ctx *cx;
};

/*
 * A module or library that the program has loaded; protected by gi_lock. The table of images holds
 * a reference until it is unloaded, and so does each of its names.
 */
struct gi_image {
	_Atomic unsigned int refs;
	struct gi_image *next;		/* hash chain */
	void *handle;			/* CUmodule or CUlibrary */
	bool library;
	CUcontext context;		/* of a module; NULL for a library */
	const void *raw;		/* image of a library loaded before there was a context */
	void *raw_copy;			/* ... if it had to be copied */
	/* input of rewriting: gsr_image_source(); kept while a form may be needed */
	char *source;
	size_t source_size;
	/* NEW: not described yet; NONE: no kernel has a twin */
	enum { GI_IMAGE_NEW, GI_IMAGE_READY, GI_IMAGE_NONE } state;
	struct gsr_rewrite desc;	/* READY: what all kernels are */
	char why[288];			/* NONE */
	struct gi_rewritten *rewritten;
	unsigned int arch;		/* architecture to rewrite for */
	bool asked;			/* its description is, or was, a job of the worker */
	bool named;			/* the program has obtained the handle of one of its
					 * kernels */
	bool rewritable;		/* it is counted in gi_hot.rewritable */
	bool functions;			/* its variables may hold addresses of functions */
	struct gi_initial *initial;	/* initial values of variables */
	bool initial_lost;		/* an initial value could not be recorded */
	struct gi_image *next_job;
};

/*
 * One form of a kernel in one context, with a limit on registers or 0. Created by the worker, freed
 * by unloading. gi_lock.
 */
struct gi_loaded {
	struct gi_loaded *next;
	struct gi_ctx *cx;
	unsigned int max_regs;
	CUmodule module;		/* NULL: it did not load */
	bool *missing;			/* by variable of @desc: not found; NULL: no variables */
};

/*
 * A kernel's handle that the program has obtained; protected by gi_lock. The table holds a
 * reference, and so does each function made from it.
 */
struct gi_name {
	_Atomic unsigned int refs;
	struct gi_name *next;		/* hash chain */
	void *handle;			/* CUfunction or CUkernel */
	uint64_t number;		/* not 0; unique even if the handle is reused */
	bool is_kernel;
	/* the handle's lifetime is this context's; NULL: the image's */
	struct gi_ctx *cx;
	struct gi_image *image;
	/* last cuFuncSetCacheConfig(), -1: none; gi_attribute_lock */
	CUfunc_cache cache;
	bool opaque;			/* it uses clusters: never use the twin */
	char name[];
};

#define GI_SHAPE_BUCKETS	32	/* a power of 2 */

/*
 * What was learnt from launches of one kernel with one shape. Keys never change; nodes live as long
 * as the function.
 */
struct gi_shape {
	struct gi_shape *next;
	uint64_t blocks;
	uint32_t threads, shared;
	unsigned int original_m;		/* blocks per SM of the original */
	/* the same of each form, plus 1; 0: not known yet */
	_Atomic unsigned int m[GI_FORMS];
	_Atomic uint64_t predicted_ns, block_ns;	/* alone on the device; 0: unknown */
	_Atomic uint32_t launches, samples;
	_Atomic uint32_t timed_at;		/* @launches when it was last due to be timed */
	struct gi_tune tune;			/* of the twin's workers; written by the agent */
};

/* A kernel and how it is launched */
struct gi_shape_of {
	void *fn;
	uint32_t grid[3], block[3], shared;
};

/* One that is too short to have to run as a twin. One cache line */
struct gi_short {
	struct gi_shape_of of;
	uint32_t generation;
	const struct gi_ctx *cx;
	uint32_t left;			/* launches before it is looked up again */
	uint32_t ns;			/* of a launch: what gi_count_leased() counts */
	uint64_t usage;
} __attribute__((aligned(64)));

/* The last context and kernel that a handle was looked up as */
struct gi_cached {
	void *handle;
	struct gi_ctx *cx;
	struct gi_func *fn;
	unsigned int generation;
};

#define GI_CACHED	512	/* frameworks alternate between hundreds of kernels */
#define GI_SHORTS	64	/* a power of two */

/*
 * What a thread knows of the kernels that it launches. Allocated, as a thread's stack holds all
 * thread-local variables: some have 16 KiB in all.
 */
struct gi_caches {
	struct gi_short shorts[GI_SHORTS];	/* launch/short.c */
	struct gi_cached funcs[GI_CACHED];	/* gi_func_get() */
};

extern __thread struct gi_caches *gi_caches __attribute__((tls_model("initial-exec")));
struct gi_caches *gi_caches_get(void);			/* makes them; NULL: no memory */

/* A kernel node of a graph */
struct gi_graph_kernel {
	CUgraphNode node;		/* in the graph that was instantiated */
	/* hash of the kernel's number, grid, block, shared memory */
	uint64_t digest;
	uint64_t blocks;		/* 0: unknown */
	int m;				/* blocks that fit an SM */
};

/*
 * An instantiated graph. The table holds a reference until the graph is destroyed or its kernels
 * change; each launch holds one.
 */
struct gi_graph {
	struct gi_graph *next;
	CUgraphExec exec;
	_Atomic unsigned int users;
	uint64_t number;		/* unique for each instantiation */
	/* hash of @number and the kernels, which identifies times */
	uint64_t key;
	uint64_t blocks;		/* of its widest kernel; UINT32_MAX: the whole device */
	struct gi_shape shape;		/* times of the graph; original_m of that kernel */
	bool known;			/* @kernels is complete */
	bool lifted;			/* its nodes' priorities were mapped: nodes.c */
	struct gi_graph_kernel *kernels;	/* owned by the holder of the table's reference */
	size_t n_kernels;
	size_t sought;			/* the same: where the next node is expected */
};

/* LATER: rewritten; to be loaded when the program's work pauses */
enum gi_twin { GI_TWIN_NONE, GI_TWIN_UNASKED, GI_TWIN_QUEUED, GI_TWIN_LATER, GI_TWIN_READY };

/* One form of a kernel in one context. */
struct gi_form {
	_Atomic int state;		/* enum gi_twin; READY publishes the rest */
	CUfunction function;
	size_t launch_offset;
	bool warp_rows;			/* blockDim.x must be a multiple of 32 */
	struct gsr_kernel kernel;	/* its strings belong to the image */
	bool everywhere;		/* RESUMABLE: every loop has a point to suspend at */
	int shared;			/* static shared memory, bytes */
	_Atomic unsigned int carveout;	/* last set (gi_tune_carveout()); 0: the default */
};

/* Bytes of dynamic shared memory to launch the form with, where the program gives @dynamic */
static inline unsigned int gi_form_dynamic(const struct gi_form *form, unsigned int dynamic)
{
	return (unsigned int)gsr_dynamic_shared(&form->kernel, dynamic);
}

/*
 * A kernel in one context. It is kept while it has users: launches from their lookup on, tasks,
 * jobs of the twin worker. Its memory is type-stable (reused for functions only), so that a thread
 * with a stale cache may count itself as a user before it notices that the entry is stale.
 */
struct gi_func {
	_Atomic unsigned int users;
	_Atomic bool dropped;		/* it is in no table; its last user frees it */
	struct gi_func *next;		/* hash chain, gi_lock; or list of spare functions */
	void *handle;			/* the driver may reuse it for another kernel */
	uint64_t number;		/* of its name, or its own; identifies what is learnt */
	struct gi_ctx *cx;
	struct gi_name *named;		/* NULL: its image is unknown */
	CUfunction original;		/* to query attributes of the original */
	struct gi_form form[GI_FORMS];
	/* of all forms; the image's, published by the twin's state */
	const struct gsr_param *params;
	unsigned int n_params;
	size_t param_size;
	_Atomic bool waited;		/* a launch has waited for the twin since the request */
	_Atomic uint32_t late;		/* launches that found a form at GI_TWIN_LATER */
	/* ... when to check again whether the program pauses */
	_Atomic uint64_t next_pause_poll;
	_Atomic uint64_t not_before;	/* ... or to ask for a form again */
	_Atomic bool is_primary;	/* launches that may overlap it have followed it */
	bool opaque;
	_Atomic bool own_carveout;	/* the program has chosen the carveout */
	_Atomic(struct gi_shape *) shapes[GI_SHAPE_BUCKETS];	/* hash chains */
	_Atomic unsigned int n_shapes;
	_Atomic bool resident;		/* reported: a launch has to be resident as a whole */
	_Atomic bool fewer;		/* reported: an SM hosts fewer blocks of the twin */
	enum gi_form_id job;		/* gi_lock: the requested form */
	struct gi_func *next_job;	/* gi_lock */
};

/* ---- nodes.c ---- */

/* Kernel nodes of a graph whose priorities are mapped for the time of one call of the driver */
struct gi_lifted {
	bool lifted;
	struct gi_lifted_node {
		CUgraphNode node;
		int asked;
	} *nodes;
	size_t n, room;
};

/* @lift false: nothing is changed. The context is current; nobody else uses the graph. */
struct gi_lifted gi_nodes_lift(CUgraph graph, bool lift);
void gi_nodes_restore(struct gi_lifted *l);

/* ---- graph.c ---- */

/*
 * The program has instantiated @graph; its context is current. @lifted: with the priorities of its
 * nodes, which were mapped.
 */
void gi_graph_made(CUgraphExec exec, CUgraph graph, bool lifted);
bool gi_graph_lifted(CUgraphExec exec);
/* The program has updated all nodes, or one kernel node; the context is current. */
void gi_graph_updated(CUgraphExec exec, CUgraph graph);
void gi_graph_kernel_set(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *p);
void gi_graph_gone(CUgraphExec exec);			/* before it is destroyed */
struct gi_graph *gi_graph_get(CUgraphExec exec);	/* NULL: unknown */
struct gi_graph *gi_graph_hold(struct gi_graph *g);	/* NULL is allowed here and in put */
void gi_graph_put(struct gi_graph *g);
void gi_graph_reset(void);				/* after fork */

/* ---- image.c ---- */

/*
 * The program has loaded an image. @max: bytes at @data, or SIZE_MAX if only the image itself has
 * its size. @preserved: the program keeps it in memory.
 */
void gi_image_loaded(void *handle, bool library, const void *data, size_t max, bool preserved);
void gi_image_file(void *handle, bool library, const char *path);
/* The program has obtained the handle of one of the image's kernels. */
void gi_image_kernel(void *kernel, bool is_kernel, const void *image, const char *name);
/* cuLibraryGetModule() returned @module in the current context. */
void gi_image_module(const void *library, void *module);
struct gi_image *gi_image_find(const void *handle);	/* gi_lock held */
struct gi_image *gi_image_next(struct gi_image *image);	/* gi_lock held; NULL: the first */
/* The context of a library's module. gi_lock held. */
struct gi_ctx *gi_image_context(const struct gi_image *image, const void *module);
/*
 * An image is unloaded in two steps, with no lock held. After the first, no launch finds its
 * functions; earlier launches and their tasks still use them. The second frees our resources.
 * @gone: the context is destroyed or tasks may still run: make no driver calls.
 */
struct gi_image *gi_image_take(const void *handle);	/* NULL: unknown */
bool gi_image_unused(const struct gi_image *image);	/* by launches, tasks and the worker */
void gi_image_drop(struct gi_image *image, bool gone);
void gi_image_put(struct gi_image *image);
/* Updates gi_hot.rewritable; gi_lock held. */
void gi_image_recount(struct gi_image *image);
/* Modules of a destroyed context; no lock held. */
void gi_images_drop(CUcontext context);
/* Drops what images have in the context, except the twins. gi_lock held. */
void gi_images_drop_context(struct gi_ctx *cx);
void gi_image_reset(void);				/* after fork */

/* ---- link.c ---- */

/*
 * The PTX of machine code that was linked at run time, as gsr_image_source() returns it; NULL: it
 * was not linked.
 */
char *gi_linked_source(const void *image, size_t max, size_t *source_size);
/* Input of a link, and its result; @code NULL: the link ended without one. */
void gi_link_data(CUlinkState state, const void *data, size_t size);
void gi_link_file(CUlinkState state, const char *path);
void gi_link_ends(CUlinkState state, const void *code, size_t size);
void gi_link_reset(void);				/* after fork */

/* ---- func.c ---- */

/*
 * Adds a name; gi_lock held. Whatever the handle stood for before is gone, unless it is the same
 * kernel. @image NULL: unknown. @cx: the context that limits the handle's lifetime; NULL: the image
 * does.
 */
void gi_name_add(void *handle, bool is_kernel, struct gi_image *image, const char *name,
		 struct gi_ctx *cx);
struct gi_name *gi_name_find(const void *handle);	/* gi_lock held */
uint64_t gi_name_number(const void *handle);		/* takes gi_lock. 0: its image is unknown */
/* cuKernelGetFunction() returned @function. */
void gi_name_function(CUkernel kernel, CUfunction function);
/* Makes the caller a user. The context is current, no lock is held. */
struct gi_func *gi_func_get(void *handle, struct gi_ctx *cx);
struct gi_func *gi_func_hold(struct gi_func *fn);	/* one more user; NULL is allowed */
void gi_func_put(struct gi_func *fn);
/*
 * NULL: out of memory, or the function has too many shapes. The shape's blocks may differ from
 * @blocks, in a similar magnitude; the rest is as requested.
 */
struct gi_shape *gi_shape_get(struct gi_func *fn, uint64_t blocks, uint32_t threads,
			      uint32_t shared);
unsigned int gi_form_m(struct gi_func *fn, struct gi_shape *shape, enum gi_form_id id);
/*
 * Attributes set on a kernel are set on its twins. The lock makes recording them atomic with the
 * driver's calls. Lock order: gi_attribute_lock, then gi_lock.
 */
extern pthread_mutex_t gi_attribute_lock;
void gi_func_attribute(void *handle, CUfunction_attribute attribute, int value);
void gi_func_cache_config(void *handle, CUfunc_cache cache);
void gi_funcs_drop(struct gi_image *image, struct gi_ctx *cx);	/* of either; gi_lock held */
void gi_func_reset(void);				/* after fork */

/* ---- rewritten.c: for the twin worker, which works on one image at a time; no lock held ---- */

/* LATER: the service is not there or has no room; it is worth asking again */
enum gi_answer { GI_ANSWER_NO, GI_ANSWER_YES, GI_ANSWER_LATER };
/* Has the image described, unless it is already. Its state stays NEW if the service is not there */
void gi_image_describe(struct gi_image *image);
/*
 * The kernel's form, from the service if it is not here yet. YES: *@form; else @why. The form lives
 * as long as the image.
 */
enum gi_answer gi_image_kernel_form(struct gi_image *image, unsigned int arch, const char *kernel,
				    enum gi_form_id id, struct gi_rewritten **form, char *why,
				    size_t size);
void gi_rewritten_free(struct gi_image *image);		/* all of this, with the last reference */

/* ---- twin.c ---- */

/* Has the image described in the background, once. gi_lock held. */
void gi_twin_image(struct gi_image *image, unsigned int arch);
/*
 * Sets on a twin what the original has. A limit of dynamic shared memory gets what the twin needs
 * beside, or as much as the device has.
 */
void gi_twin_set_attribute(const struct gi_func *fn, const struct gsr_kernel *k, CUfunction twin,
			   CUfunction_attribute attribute, int value);
bool gi_twin_wait(struct gi_func *fn);			/* true: the twin is ready */
/* true: the form is ready; else it has been requested. */
bool gi_form_ask(struct gi_func *fn, enum gi_form_id id);
/* Cancels queued jobs of either. gi_lock held. */
void gi_twin_cancel(const struct gi_image *image, const struct gi_ctx *cx);
/*
 * Waits until no job of either is left, and unloads the twins' modules unless the context is
 * @destroyed. Their functions have been dropped. No lock held.
 */
void gi_twin_unload(struct gi_image *image, struct gi_ctx *cx, bool destroyed);
/*
 * For exit, without a lock: no twin is loaded from here on. Waits for the one that is being loaded,
 * at most @timeout_ns: the driver must not shut down meanwhile.
 */
void gi_twin_stop(uint64_t timeout_ns);
void gi_twin_reset(void);				/* after fork */

/*
 * A hook set by process/. Loading code waits for the device, so the tasks are quiesced first
 * (task/gate.c).
 */
#define GI_QUIESCE_NS		10000000000ull
extern struct gi_pause {
	/* false: not quiesced within GI_QUIESCE_NS; tasks_end follows in any case */
	bool (*tasks_begin)(struct gi_client *c);
	void (*tasks_end)(struct gi_client *c);
	/*
	 * The same for all of the program's work in the context, which is current. false: not
	 * quiesced within @ns, and no context_end follows.
	 */
	bool (*context_begin)(struct gi_ctx *cx, uint64_t ns);
	void (*context_end)(struct gi_ctx *cx);
} gi_twin_pause;

/*
 * ---- reference.c: what the kernel's references are bound to; the context is current. NULL:
 * unknown, so the original must be launched ----
 */

struct gi_bound *gi_bound_take(const struct gi_func *fn, const struct gi_form *form);
void gi_bound_put(struct gi_bound *b, bool lost);	/* @lost: workers may still use it */
void gi_bound_handles(const struct gi_bound *b, void *to);
void gi_reference_new(void *handle, CUmodule module, const char *name, bool surface);
/* Recording is atomic with the program's call: begin, the call, then the function for it. */
void gi_reference_begin(void);
/* The call returned @rc; bound to @resource, NULL: to nothing, or unknown. */
CUresult gi_reference_bound(void *handle, CUresult rc, const CUDA_RESOURCE_DESC *resource);
CUresult gi_reference_sampled(void *handle, CUresult rc);	/* its sampling has changed */
/* The array is about to be destroyed. */
void gi_reference_unbind(CUresourcetype type, const void *array);
/* Drops the references of either. */
void gi_references_drop(const struct gi_image *image, const struct gi_ctx *cx, bool gone);
void gi_references_reset(void);				/* after fork */

/*
 * ---- share.c: fills the address table of @twin, a module with only @k's twin, loaded into the
 * current context @cx. @missing is malloc'd; NULL without variables ----
 */

bool gi_share(struct gi_image *image, struct gi_ctx *cx, const struct gsr_rewrite *desc,
	      const struct gsr_kernel *k, CUmodule twin, bool **missing);

/* ---- initial.c ---- */

/* Variables may hold addresses of functions. */
bool gi_names_functions(const char *source, size_t size);
/*
 * Reads the initial value of the word at @offset in the image's variable, which is at @at in the
 * current context @cx.
 */
bool gi_initial(struct gi_image *image, const struct gi_ctx *cx, const char *name, CUdeviceptr at,
		size_t size, uint64_t offset, uint64_t *word);
/* The program is about to get the variable's address. */
void gi_initial_record(void *handle, const char *name, CUdeviceptr at, size_t size);
/* Drops the values in a context; NULL: all. gi_lock held. */
void gi_initial_drop(struct gi_image *image, const struct gi_ctx *cx);

#endif /* GI_CODE_H */
