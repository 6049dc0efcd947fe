/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the interposer keeps, and who owns it.
 *
 * gi_lock protects the tables: clients, contexts, images, names, functions, the twin worker's queue. It is never held
 * across a call of the driver that may wait for the GPU. A client's lock protects its contexts' streams and the tasks
 * that run: the agent thread holds it during a pass, launches do not take it. Order: client lock, then gi_lock.
 *
 * A launch takes a slot out of free_mask and owns it until it puts the bit into running_mask; from there the agent owns
 * it until it puts it back into free_mask.
 */
#ifndef GI_STATE_H
#define GI_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <gsched.h>
#include <linux/gsched.h>
#include "base/driver.h"
#include "launch/pace.h"
#include "rewriter/gsr.h"
#include "code/tune.h"
#include "code/tuning.h"

#define GI_WING_STREAMS		16
#define GI_RECONNECT_NS		1000000000	/* between two looks for an arbiter, when it went */

struct gi_client;
struct gi_ctx;
struct gi_func;
struct gi_bound;

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

/* A module or library that the program loaded. gi_lock. */
struct gi_image {
	struct gi_image *next;
	void *handle;			/* CUmodule or CUlibrary; NULL once unloaded */
	void *module;			/* what cuLibraryGetModule gave for it, */
	struct gi_ctx *module_cx;	/* in this context */
	bool library;
	CUcontext context;		/* a module's; NULL a library's */
	const void *raw;		/* library loaded before there was a context: its image */
	void *raw_copy;			/* ... if we had to copy it */
	char *ptx;			/* what to rewrite; kept while a form may yet be asked for */
	size_t ptx_size;
	struct gi_rewritten form[GI_FORMS];
	unsigned int arch;		/* to rewrite for */
	bool functions;			/* its variables may hold addresses of functions */
	struct gi_initial *initial;	/* what they held at first */
	bool initial_lost;		/* no memory for one of these */
	struct gi_image *next_job;
};

/* One form of an image in one context; max_regs 0: as the compiler likes. Worker only, freed by unload. */
struct gi_loaded {
	struct gi_loaded *next;
	struct gi_ctx *cx;
	unsigned int max_regs;
	CUmodule module;		/* NULL: did not load */
	bool *missing;			/* by variable of the image's desc: it was not found; NULL there are none */
};

/* A kernel's handle as the program got it, in any context. gi_lock. */
struct gi_name {
	struct gi_name *next;		/* hash chain */
	void *handle;			/* CUfunction or CUkernel */
	bool is_kernel;
	struct gi_image *image;
	CUfunc_cache cache;		/* last cuFuncSetCacheConfig, -1 none */
	bool opaque;			/* clusters: never use the twin */
	char name[];
};

struct gi_param {
	size_t offset, size;
};

/* What was learnt of launches of one kernel with one shape. Keys never change; nodes live as long as the function. */
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

enum gi_twin { GI_TWIN_NONE, GI_TWIN_UNASKED, GI_TWIN_QUEUED, GI_TWIN_READY };

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

/* A kernel in one context. */
struct gi_func {
	struct gi_func *next;		/* hash chain, gi_lock */
	void *handle;
	struct gi_ctx *cx;
	struct gi_name *named;		/* NULL: its image is unknown */
	CUfunction original;		/* for questions about the original */
	struct gi_form form[GI_FORMS];
	const struct gi_param *params;	/* the same in all forms; published by the twin's state */
	unsigned int n_params;
	size_t param_size;
	_Atomic bool waited;		/* a launch has waited for the twin once */
	_Atomic bool code_loaded;	/* the original's */
	bool opaque;
	_Atomic bool own_carveout;	/* the program says how much shared memory an SM has */
	_Atomic(struct gi_shape *) shapes;
	enum gi_form_id job;		/* gi_lock: the form that is asked for */
	struct gi_func *next_job;	/* gi_lock */
};

/* Device memory for the suspended block-tasks of one task: save.c. */
struct gi_save {
	CUdeviceptr memory;
	size_t size;
	enum { GI_SAVE_FREE, GI_SAVE_TAKEN, GI_SAVE_LOST } state;
	bool zeroed;			/* the header is, or will be by its stream's order */
};

/* A task in flight: written by the launch, then by the agent. */
struct gi_slot {
	uint32_t seq;
	uint64_t stream;		/* for the arbiter: tasks of one run in order */
	struct gi_ctx *cx;
	struct gi_func *fn;
	const struct gi_form *form;	/* what was launched; NULL: the original */
	struct gi_shape *shape;
	struct gi_save *save;		/* NULL: block-tasks are not suspended */
	struct gi_bound *bound;		/* what is bound to the kernel's references; NULL: it has none, or is the original */
	unsigned int tier, m, weight;
	unsigned int block[3], shared;
	uint64_t blocks;
	uint32_t launched;		/* workers, wings included */
	struct gsr_launch arg;
	char *params;			/* packed, with room for struct gsr_launch; kept between tasks */
	size_t params_room;
	bool submitted, completed, timed;
	bool alone;			/* nobody disturbs what it takes, so far */
	uint32_t generation;		/* of the arbiter's slot at launch */
	uint64_t launch_ns, predicted_ns;	/* CLOCK_MONOTONIC; alone */
	/* time integral of the window, in workers */
	uint64_t window, window_since, integral;
	/* wings */
	uint32_t wings, wing_ticket[GI_WING_STREAMS];
	uint32_t wing_count[GI_WING_STREAMS];
	uint64_t next_wing, wing_gap;
	CUevent begin, end;		/* of begin_cx */
	struct gi_ctx *event_cx;
};

/* Words that streams write and the agent reads: pinned memory. */
struct gi_words {
	uint32_t begun[GI_WING_STREAMS], done[GI_WING_STREAMS];
	uint32_t cleaned;
	uint32_t sample;		/* written by the host: pace.c */
};

struct gi_ctx {
	struct gi_ctx *next;		/* gi_lock */
	CUcontext handle;
	CUdevice dev;
	struct gi_client *client;	/* NULL: nothing here is managed */
	bool owns_pages;		/* the pages are registered through it */
	CUdeviceptr arb, cl, control;
	CUdeviceptr ranges;		/* GSCHED_SLOTS areas; 0 none */
	struct gsr_control *blank;	/* pinned: GSCHED_SLOTS clean control blocks, and a struct gsr_save */
	struct gi_words *words;		/* pinned */
	CUdeviceptr words_dev;
	bool broken;			/* client lock: the driver calls it dead */
	CUstream clean_stream, wing_stream[GI_WING_STREAMS];
	uint32_t wing_ticket[GI_WING_STREAMS];
	/* Slots by their control block; a slot is in one of them at most. In none: a task has it, or was given up */
	_Atomic uint64_t clean, dirty;
	uint64_t cleaning;		/* client lock */
	uint32_t clean_ticket;
	int greatest;			/* stream priority */
	pthread_mutex_t save_lock;	/* innermost */
	struct gi_save save[GSCHED_SLOTS];	/* save_lock */
	size_t saved, save_max;		/* save_lock: bytes in them, and at most */
};

struct gi_client {
	struct gi_client *next;		/* gi_lock */
	CUdevice dev;
	CUuuid uuid;
	unsigned int sms, arch;
	int sm_shared, reserved;	/* bytes of shared memory of an SM, and of a block besides its own */
	unsigned int workers;		/* an SM at most, as somebody chose; 0: as many as are fastest */
	uint32_t dispatch;		/* GSR_LAUNCH_*, of all its tasks */
	bool ranges;			/* they have static ranges */
	struct gsched *g;		/* NULL: there is no arbiter for it */
	const struct gsched_arb_page *arb;
	struct gsched_cl_page *cl;
	_Atomic bool gone;		/* the arbiter went away */
	_Atomic uint32_t inside;	/* launches that may use the arbiter and its pages */
	uint64_t next_try;		/* agent: to reach an arbiter again */
	pthread_mutex_t lock;
	pthread_t agent;
	_Atomic bool stop;		/* the process exits: no agent, so nothing that waits for one */
	int wake;			/* eventfd */
	_Atomic bool idle;		/* the agent sleeps until woken */
	_Atomic uint64_t free_mask, running;
	_Atomic int launching, closed;	/* gate.c */
	_Atomic uint64_t finished;	/* tasks finished: progress */
	_Atomic uint64_t stuck_at;	/* finished when a launch waited in vain for a slot; +1 */
	struct gi_slot slot[GSCHED_SLOTS];
	uint64_t busy_until;		/* agent: keep polling */
	bool mps;			/* its channel group is the MPS server's, which sets the time slice itself */
	uint32_t slice_us;		/* agent: the time slice that was asked for last, as in the arbiter's page */
	unsigned int slice_groups;	/* agent: channel groups that had it */
	_Atomic unsigned int prioritised;	/* launches in a row on streams of the greatest priority, up to GI_PRIORITISED */
	bool told_prioritised;		/* agent */
	unsigned int activity;		/* agent: as reported last; ~0 not at all */
	struct gi_pacer pacer;
};

extern pthread_mutex_t gi_lock;
extern _Atomic unsigned int gi_generation;	/* changes whenever a cached lookup may be stale */
extern _Atomic int gi_captures;		/* stream captures under way */
extern _Atomic bool gi_green;		/* the program partitions the device itself: no twins */

static inline uint64_t gi_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

#define gi_load(p)	__atomic_load_n((p), __ATOMIC_ACQUIRE)
#define gi_store(p, v)	__atomic_store_n((p), (v), __ATOMIC_RELEASE)

/* gate.c */
#define GI_QUIET_NS		10000000000ull
void gi_gate_enter(struct gi_client *c);	/* around a managed launch; waits while the gate is closed */
void gi_gate_leave(struct gi_client *c);
/* Until it is opened no launch is under way and no task may need a wing. false: that did not come to pass in GI_QUIET_NS */
bool gi_gate_close(struct gi_client *c);
void gi_gate_open(struct gi_client *c);
struct gi_client *gi_gate_close_current(void);	/* the current context's, if it has one; else NULL */

/* client.c */
struct gi_client *gi_client_get(CUdevice dev);		/* gi_lock held; never NULL unless out of memory */
void gi_why(struct gi_client *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void gi_client_gone(struct gi_client *c, const char *why);
void gi_client_reconnect(struct gi_client *c, uint64_t now);	/* agent, while it is gone */
uint64_t gi_env(const char *name, uint64_t otherwise);
void gi_leased(struct gi_client *c, uint64_t ns, uint64_t blocks, unsigned int m);	/* ended, and nobody was told */

/* context.c */
struct gi_ctx *gi_current(void);			/* of the calling thread; NULL none */
bool gi_contexts_follow(struct gi_client *c);		/* both locks held: to the client's new pages */
struct gi_ctx *gi_ctx_next(struct gi_ctx *cx);		/* gi_lock held; NULL: the first */
void gi_ctx_ending(CUcontext handle);			/* before it is destroyed: tasks end, streams go */
void gi_primary_retained(CUdevice dev);
bool gi_primary_ending(CUdevice dev, bool reset);	/* true: gi_primary_ended() is to follow */
void gi_primary_ended(CUdevice dev);

/* image.c */
struct gi_image *gi_image_find(const void *handle);	/* gi_lock held */
struct gi_image *gi_image_next(struct gi_image *image);	/* gi_lock held; NULL: the first */
void gi_image_reset(void);				/* after fork */
void gi_context_reset(void);				/* after fork */
void gi_images_drop(CUcontext context);			/* gi_lock held: they went with it */

/* link.c: machine code that was linked at run time, its PTX (malloc'd); NULL: it was not */
char *gi_linked_ptx(const void *image, size_t max, size_t *ptx_size);
void gi_link_reset(void);				/* after fork */

/* func.c */
void gi_name_add(void *handle, bool is_kernel, struct gi_image *image, const char *name);
struct gi_name *gi_name_find(const void *handle);	/* gi_lock held */
struct gi_func *gi_func_get(void *handle, struct gi_ctx *cx);
struct gi_shape *gi_shape_get(struct gi_func *fn, uint64_t blocks, uint32_t threads, uint32_t shared);
unsigned int gi_form_m(struct gi_func *fn, struct gi_shape *shape, enum gi_form_id id);
void gi_funcs_drop(struct gi_image *image, struct gi_ctx *cx);	/* gi_lock held; of either */
void gi_func_each(const void *handle, void (*call)(struct gi_func *, void *), void *arg);
void gi_func_reset(void);				/* after fork */

/* twin.c */
void gi_twin_image(struct gi_image *image, unsigned int arch);	/* gi_lock held: rewrite it in the background */
bool gi_twin_wait(struct gi_func *fn);			/* true: the twin is there */
bool gi_form_ask(struct gi_func *fn, enum gi_form_id id);	/* true: it is there; else it was asked for now or before */
/* gi_lock held: no job for either is left, their modules are unloaded unless the context is gone. */
void gi_twin_settle(struct gi_image *image, struct gi_ctx *cx, bool destroyed);
void gi_twin_reset(void);				/* after fork */

/* save.c */
size_t gi_save_stride(const struct gi_form *form, const struct gi_slot *s);
void gi_save_take(struct gi_slot *s, size_t size);	/* sets s->save; the context is current */
void gi_save_put(struct gi_slot *s, bool lost);		/* @lost: workers may still touch it */
void gi_save_release(struct gi_ctx *cx);		/* before the context goes */

/* reference.c: what is bound to the kernel's references now; the context is current. NULL: not known, the original is launched */
struct gi_bound *gi_bound_take(const struct gi_func *fn, const struct gi_form *form);
void gi_bound_put(struct gi_bound *b, bool lost);	/* @lost: workers may still use it */
void gi_bound_handles(const struct gi_bound *b, void *to);
void gi_references_drop(const struct gi_image *image, const struct gi_ctx *cx, bool gone);	/* of either */
void gi_references_reset(void);				/* after fork */

/* share.c: fill the table of @twins, loaded into the current context, @cx. @missing is malloc'd, NULL without variables */
bool gi_share(struct gi_image *image, struct gi_ctx *cx, const struct gsr_rewrite *desc, CUmodule twins, bool **missing);

/* initial.c */
bool gi_names_functions(const char *ptx);		/* variables hold addresses, of functions perhaps */
/* The word that was at @offset in the image's variable, which is at @at in @cx, the current context, before anybody wrote to it */
bool gi_initial(struct gi_image *image, const struct gi_ctx *cx, const char *name, CUdeviceptr at, size_t size, uint64_t offset,
		uint64_t *word);
void gi_initial_drop(struct gi_image *image, const struct gi_ctx *cx);	/* gi_lock held: of the context; NULL: all */

/* launch.c: how a task is told to the arbiter */
void gi_to_task(struct gsched_task *task, const struct gi_slot *s, unsigned int slot);

/* agent.c */
int gi_agent_start(struct gi_client *c);
void gi_agent_wake(struct gi_client *c);
bool gi_agent_reap(struct gi_client *c);		/* finish what is over; false: another thread is at it */
bool gi_drain(struct gi_client *c, struct gi_ctx *cx, struct gi_image *image, uint64_t timeout_ns);

/* dispatch.c */
void gi_dispatch(struct gi_client *c);			/* as the environment says */
bool gi_ranges_new(struct gi_ctx *cx);			/* false: no memory for them, its tasks use the counter */
void gi_ranges_use(struct gi_slot *s, unsigned int slot);	/* s->arg is filled but for them */
CUresult gi_ranges_zero(const struct gi_slot *s, CUstream stream);	/* in front of the launch */
/* How many workers of weight 1024 / @m fit into @window */
unsigned int gi_places(const struct gi_client *c, uint64_t window, unsigned int m);

#endif /* GI_STATE_H */
