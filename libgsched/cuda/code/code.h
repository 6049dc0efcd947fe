/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the program loaded: images, their kernels, twins, texture references and first values of
 * variables.
 */
#ifndef GI_CODE_H
#define GI_CODE_H

#include "code/tune.h"
#include "code/tuning.h"
#include "device/device.h"

struct gi_bound;
struct gi_func;

/* What a kernel can be launched as beside the original. Each is a module of its own. */
enum gi_form_id { GI_TWIN, GI_RESUMABLE, GI_FORMS };

/* The rewriter's answer to an image. */
struct gi_rewritten {
	enum { GI_IMAGE_NEW, GI_IMAGE_READY, GI_IMAGE_NONE } state;
	struct gsr_rewrite desc;	/* READY: the kernels' descriptions */
	char *twins;			/* READY: their PTX */
	char why[288];			/* NONE */
	struct gi_loaded *loaded;	/* the twins' modules */
};

/* What cuLibraryGetModule gave in one context. gi_lock. */
struct gi_module {
	struct gi_module *next;		/* hash chain */
	void *handle;
	struct gi_image *image;
	struct gi_ctx *cx;
};

/*
 * A module or library that the program loaded. gi_lock. The table of images has a reference until
 * it is unloaded, and each of its names has one.
 */
struct gi_image {
	_Atomic unsigned int refs;
	struct gi_image *next;		/* hash chain */
	void *handle;			/* CUmodule or CUlibrary */
	bool library;
	CUcontext context;		/* a module's; NULL a library's */
	const void *raw;		/* library loaded before there was a context: its image */
	void *raw_copy;			/* ... if we had to copy it */
	char *ptx;			/* what to rewrite; kept while a form may yet be asked for */
	size_t ptx_size;
	struct gi_rewritten form[GI_FORMS];
	unsigned int arch;		/* to rewrite for */
	bool named;			/* the program has the handle of a kernel of it, or had */
	bool rewritable;		/* it counts in gi_hot.rewritable */
	bool functions;			/* its variables may hold addresses of functions */
	struct gi_initial *initial;	/* what they held at first */
	bool initial_lost;		/* no memory for one of these */
	struct gi_image *next_job;
};

/*
 * One form of a kernel in one context; max_regs 0: as the compiler likes. Made by the worker, freed
 * by unload. gi_lock
 */
struct gi_loaded {
	struct gi_loaded *next;
	struct gi_ctx *cx;
	const struct gsr_kernel *kernel;
	unsigned int max_regs;
	CUmodule module;		/* NULL: did not load */
	bool *missing;			/* by variable of the image's desc: it was not found; NULL there are none */
};

/*
 * A kernel's handle as the program got it. gi_lock. The table has a reference, and so has each
 * function made of it.
 */
struct gi_name {
	_Atomic unsigned int refs;
	struct gi_name *next;		/* hash chain */
	void *handle;			/* CUfunction or CUkernel */
	uint64_t number;		/* not 0; the handle's next kernel has another one */
	bool is_kernel;
	struct gi_ctx *cx;		/* the handle goes with it; NULL: with the image */
	struct gi_image *image;
	CUfunc_cache cache;		/* last cuFuncSetCacheConfig, -1 none; gi_attribute_lock */
	bool opaque;			/* clusters: never use the twin */
	char name[];
};

struct gi_param {
	size_t offset, size;
};

#define GI_SHAPE_BUCKETS	32	/* a power of 2 */

/*
 * What was learnt of launches of one kernel with one shape. Keys never change; nodes live as long
 * as the function.
 */
struct gi_shape {
	struct gi_shape *next;
	uint64_t blocks;
	uint32_t threads, shared;
	unsigned int original_m;		/* blocks per SM of the original */
	_Atomic unsigned int m[GI_FORMS];	/* of the forms plus 1, 0 not asked yet */
	_Atomic uint64_t predicted_ns, block_ns;	/* alone on the whole device; 0 unknown */
	_Atomic uint32_t launches, samples;
	struct gi_tune tune;			/* of the TWIN form's workers; times: agent */
};

/* A kernel node */
struct gi_graph_kernel {
	CUgraphNode node;		/* of the graph that the instantiated one was made of */
	uint64_t digest;		/* of the kernel's number, grid, block, shared memory */
	uint64_t blocks;		/* 0: not known */
	int m;				/* blocks an SM hosts */
};

/*
 * An instantiated graph. The table has a reference until it is destroyed or its kernels change,
 * each launch has one.
 */
struct gi_graph {
	struct gi_graph *next;
	CUgraphExec exec;
	_Atomic unsigned int users;
	uint64_t number;		/* no other instantiation has it */
	uint64_t key;			/* of number and kernels: times go by it */
	uint64_t blocks;		/* of its widest kernel; UINT32_MAX: wide as the device */
	struct gi_shape shape;		/* original_m: of that kernel; the times are the graph's */
	bool known;			/* @kernels are all there are */
	struct gi_graph_kernel *kernels;	/* whoever has the table's reference */
	size_t n_kernels;
};

/* LATER: it is rewritten, and loaded when the program's work pauses */
enum gi_twin { GI_TWIN_NONE, GI_TWIN_UNASKED, GI_TWIN_QUEUED, GI_TWIN_LATER, GI_TWIN_READY };

/* One form of a kernel in one context. */
struct gi_form {
	_Atomic int state;		/* enum gi_twin; READY publishes what follows */
	CUfunction function;
	size_t launch_offset;
	bool warp_rows;			/* needs a block whose x is a multiple of 32 */
	struct gsr_kernel kernel;	/* numbers only: its strings are the image's */
	bool everywhere;		/* RESUMABLE: no loop is without a point where it can be left */
	int shared;			/* static, bytes */
	_Atomic unsigned int carveout;	/* as we set it (gi_tune_carveout()), 0 as it was */
};

/*
 * A kernel in one context. It stays while it has users: launches from their look-up on, tasks, jobs
 * of the twin worker. Its memory is only ever used for other functions, so that a stale cache may
 * be counted as a user before it is found to be stale.
 */
struct gi_func {
	_Atomic unsigned int users;
	_Atomic bool dropped;		/* it is in no table: the last user frees it */
	struct gi_func *next;		/* hash chain, gi_lock; or of spare ones */
	void *handle;			/* the driver uses it again for another kernel */
	uint64_t number;		/* its name's, or of its own: what is learnt goes by it */
	struct gi_ctx *cx;
	struct gi_name *named;		/* NULL: its image is unknown */
	CUfunction original;		/* for questions about the original */
	struct gi_form form[GI_FORMS];
	const struct gi_param *params;	/* the same in all forms; published by the twin's state */
	unsigned int n_params;
	size_t param_size;
	_Atomic bool waited;		/* a launch has waited for the twin since it was asked for */
	_Atomic uint32_t late;		/* launches that found a form at GI_TWIN_LATER */
	_Atomic uint64_t next_look;	/* ... and whether the program pauses, not before */
	_Atomic bool is_primary;	/* it has been followed by launches that may overlap it */
	bool opaque;
	_Atomic bool own_carveout;	/* the program says how much shared memory an SM has */
	_Atomic(struct gi_shape *) shapes[GI_SHAPE_BUCKETS];	/* hash chains */
	_Atomic unsigned int n_shapes;
	_Atomic bool resident;		/* said that a launch of it has to be resident as a whole */
	enum gi_form_id job;		/* gi_lock: the form that is asked for */
	struct gi_func *next_job;	/* gi_lock */
};

/* ---- graph.c ---- */

void gi_graph_made(CUgraphExec exec, CUgraph graph);	/* instantiated; its context is current */
/* Its nodes, or one of them, were changed; the same */
void gi_graph_updated(CUgraphExec exec, CUgraph graph);
void gi_graph_kernel_set(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *p);
void gi_graph_gone(CUgraphExec exec);			/* before it is destroyed */
struct gi_graph *gi_graph_get(CUgraphExec exec);	/* NULL: not known */
struct gi_graph *gi_graph_hold(struct gi_graph *g);	/* NULL allowed, as for put */
void gi_graph_put(struct gi_graph *g);
void gi_graph_reset(void);				/* after fork */

/* ---- image.c ---- */

/*
 * The program loaded it. @max: bytes at @data, SIZE_MAX if only the image itself says; @preserved:
 * it stays where it is
 */
void gi_image_loaded(void *handle, bool library, const void *data, size_t max, bool preserved);
void gi_image_file(void *handle, bool library, const char *path);
void gi_image_kernel(void *kernel, bool is_kernel, const void *image, const char *name);	/* one of its kernels' handles */
void gi_image_module(const void *library, void *module);	/* what cuLibraryGetModule gave, in the current context */
struct gi_image *gi_image_find(const void *handle);	/* gi_lock held */
struct gi_image *gi_image_next(struct gi_image *image);	/* gi_lock held; NULL: the first */
/* gi_lock held. The context of a library's module */
struct gi_ctx *gi_image_context(const struct gi_image *image, const void *module);
/*
 * An image is unloaded in two steps, without locks. From the first on no launch finds its
 * functions. Those that did before, and their tasks, still use them. The second frees what is ours.
 * @gone: make no driver calls, as its context is destroyed or its tasks may still run.
 */
struct gi_image *gi_image_take(const void *handle);	/* NULL: not known */
bool gi_image_unused(const struct gi_image *image);	/* by launches, tasks and the worker */
void gi_image_drop(struct gi_image *image, bool gone);
void gi_image_put(struct gi_image *image);
void gi_image_count(struct gi_image *image);		/* gi_lock; it was named, or its twin's state changed */
void gi_images_drop(CUcontext context);			/* no lock held: they went with it */
void gi_images_leave(struct gi_ctx *cx);		/* gi_lock held: all of it that is in the context, but not the twins */
void gi_image_reset(void);				/* after fork */

/* ---- link.c ---- */

/* Machine code that was linked at run time, its PTX (malloc'd); NULL: it was not */
char *gi_linked_ptx(const void *image, size_t max, size_t *ptx_size);
/* What goes into a link, and what comes out of it; NULL: nothing does any more */
void gi_link_data(CUlinkState state, const void *data, size_t size);
void gi_link_file(CUlinkState state, const char *path);
void gi_link_ends(CUlinkState state, const void *code, size_t size);
void gi_link_reset(void);				/* after fork */

/* ---- func.c ---- */

/*
 * gi_lock held. What the value stood for before is gone, unless that is the same. @image NULL: it
 * is not known. @cx: the context that it goes with; NULL: it goes with the image
 */
void gi_name_add(void *handle, bool is_kernel, struct gi_image *image, const char *name,
		 struct gi_ctx *cx);
struct gi_name *gi_name_find(const void *handle);	/* gi_lock held */
uint64_t gi_name_number(const void *handle);		/* takes gi_lock. 0: its image is unknown */
void gi_name_function(CUkernel kernel, CUfunction function);	/* what cuKernelGetFunction gave */
/* With the caller for a user; the context is current, no lock is held */
struct gi_func *gi_func_get(void *handle, struct gi_ctx *cx);
struct gi_func *gi_func_hold(struct gi_func *fn);	/* one more user; NULL is none */
void gi_func_put(struct gi_func *fn);
/*
 * NULL: no memory, or it has too many. blocks may be another number of about that size; the rest is
 * as asked
 */
struct gi_shape *gi_shape_get(struct gi_func *fn, uint64_t blocks, uint32_t threads, uint32_t shared);
unsigned int gi_form_m(struct gi_func *fn, struct gi_shape *shape, enum gi_form_id id);
/*
 * What is set on a kernel is set on its twins. The lock makes notes of it and the driver's calls
 * one; it comes before gi_lock
 */
extern pthread_mutex_t gi_attribute_lock;
void gi_func_attribute(void *handle, CUfunction_attribute attribute, int value);
void gi_func_cache_config(void *handle, CUfunc_cache cache);
void gi_funcs_drop(struct gi_image *image, struct gi_ctx *cx);	/* gi_lock held; of either */
void gi_func_reset(void);				/* after fork */

/* ---- twin.c ---- */

void gi_twin_image(struct gi_image *image, unsigned int arch);	/* gi_lock held: rewrite it in the background */
bool gi_twin_wait(struct gi_func *fn);			/* true: the twin is there */
bool gi_form_ask(struct gi_func *fn, enum gi_form_id id);	/* true: it is there; else it was asked for now or before */
/* gi_lock held: jobs that wait, for either */
void gi_twin_cancel(const struct gi_image *image, const struct gi_ctx *cx);
/*
 * No lock held: of either, whose functions were dropped, no job is left, and the twins' modules are
 * unloaded unless the context is @destroyed.
 */
void gi_twin_settle(struct gi_image *image, struct gi_ctx *cx, bool destroyed);
void gi_twin_reset(void);				/* after fork */

/*
 * A hook, set by process/: loading code waits for the device, and so waits for a pause between
 * tasks first (task/gate.c). begin returns false if there was none in GI_QUIET_NS; end follows in
 * any case.
 */
#define GI_QUIET_NS		10000000000ull
extern struct gi_pause {
	bool (*begin)(struct gi_client *c);
	void (*end)(struct gi_client *c);
	/*
	 * of all the program's work in the current context, for @ns at most; false: there was none,
	 * no end follows
	 */
	bool (*idle)(struct gi_ctx *cx, uint64_t ns);
	void (*busy)(struct gi_ctx *cx);
} gi_twin_pause;

/*
 * ---- reference.c: what is bound to the kernel's references now; the context is current. NULL: not
 * known, the original is launched ----
 */

struct gi_bound *gi_bound_take(const struct gi_func *fn, const struct gi_form *form);
void gi_bound_put(struct gi_bound *b, bool lost);	/* @lost: workers may still use it */
void gi_bound_handles(const struct gi_bound *b, void *to);
void gi_reference_new(void *handle, CUmodule module, const char *name, bool surface);
/* The program's call and what is noted of it are one: begin, the call, then what it did (@rc) */
void gi_reference_begin(void);
CUresult gi_reference_bound(void *handle, CUresult rc, const CUDA_RESOURCE_DESC *resource);	/* NULL: nothing, or not known */
CUresult gi_reference_sampled(void *handle, CUresult rc);	/* in another way */
void gi_reference_unbind(CUresourcetype type, const void *array);	/* it goes */
void gi_references_drop(const struct gi_image *image, const struct gi_ctx *cx, bool gone);	/* of either */
void gi_references_reset(void);				/* after fork */

/*
 * ---- share.c: fill the table of @twin, a module with @k's alone that is loaded into the current
 * context, @cx. @missing is malloc'd, NULL without variables ----
 */

bool gi_share(struct gi_image *image, struct gi_ctx *cx, const struct gsr_rewrite *desc,
	      const struct gsr_kernel *k, CUmodule twin, bool **missing);

/* ---- initial.c ---- */

bool gi_names_functions(const char *ptx);		/* variables hold addresses, of functions perhaps */
/*
 * The word that was at @offset in the image's variable, which is at @at in @cx, the current
 * context, before anybody wrote to it
 */
bool gi_initial(struct gi_image *image, const struct gi_ctx *cx, const char *name, CUdeviceptr at, size_t size, uint64_t offset,
		uint64_t *word);
void gi_initial_asked(void *handle, const char *name, CUdeviceptr at, size_t size);	/* the program gets its address */
void gi_initial_drop(struct gi_image *image, const struct gi_ctx *cx);	/* gi_lock held: of the context; NULL: all */

#endif /* GI_CODE_H */
