/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The process's sessions with arbiters, one a device; its contexts and streams.
 *
 * gi_lock protects the tables: clients, contexts, images, names, functions, the twin worker's
 * queue. It is never held across a call of the driver that may wait for the GPU, nor while an
 * arbiter is asked. A client's lock protects its contexts' streams and the tasks that run: the
 * agent thread holds it during a pass, launches do not take it. Order: client lock, then gi_lock.
 */
#ifndef GI_DEVICE_H
#define GI_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <gsched.h>
#include <linux/gsched.h>
#include "base/base.h"
#include "libgsched/follow.h"
#include "rewriter/gsr.h"

#define GI_WING_STREAMS		16
#define GI_QUEUES_LEAST		4		/* of the hardware, for twins */
#define GI_RECONNECT_NS		1000000000	/* between two looks for an arbiter, when it went */

struct gi_pacer;	/* launch/pace.h */
struct gi_blocks;	/* launch/blocks.h */
struct gi_timings;	/* launch/timing.h */
struct gi_tasks;	/* task/task.h */

/* Words that streams write and the agent reads: pinned memory. */
struct gi_words {
	uint32_t begun[GI_WING_STREAMS], done[GI_WING_STREAMS];
	uint32_t cleaned;
	uint32_t sample;		/* written by the host: launch/pace.c */
};

/* Device memory for the suspended block-tasks of one task: task/save.c. */
struct gi_save {
	CUdeviceptr memory;
	size_t size;
	enum { GI_SAVE_FREE, GI_SAVE_TAKEN, GI_SAVE_LOST } state;
	bool zeroed;			/* the header is, or will be by its stream's order */
};

enum gi_prepared { GI_UNPREPARED, GI_PREPARED, GI_PREPARE_FAILED };

struct gi_ctx {
	struct gi_ctx *next;		/* gi_lock */
	CUcontext handle;
	CUdevice dev;
	_Atomic(struct gi_client *) client;	/* set once; NULL: nothing here is managed yet */
	_Atomic int prepared;		/* enum gi_prepared: what follows, down to the streams, for tasks in slots */
	bool owns_pages;		/* the pages are registered through it */
	CUdeviceptr arb, cl, control;
	CUdeviceptr ranges;		/* GSCHED_SLOTS areas; 0 none */
	struct gsr_control *blank;	/* pinned: GSCHED_SLOTS clean control blocks, and a struct gsr_save */
	struct gi_words *words;		/* pinned; NULL until somebody needs them */
	CUdeviceptr words_dev;
	bool broken;			/* client lock: the driver calls it dead */
	CUstream clean_stream, wing_stream[GI_WING_STREAMS];
	uint32_t wing_ticket[GI_WING_STREAMS];
	uint64_t stood_behind[GI_WING_STREAMS];	/* client lock: gi_stream_id() of the last such gate */
	/* Control blocks by slot, each in one of these at most (task/control.c) */
	_Atomic uint64_t clean, dirty;
	uint64_t cleaning;		/* client lock */
	uint32_t clean_ticket;
	int least, greatest;		/* stream priorities */
	_Atomic uint32_t legacy_calls, blocking_calls;	/* stream.c */
	_Atomic bool per_thread;	/* threads' own default streams are used, which no handle names */
	pthread_mutex_t save_lock;	/* innermost */
	struct gi_save save[GSCHED_SLOTS];	/* save_lock */
	size_t saved, save_max;		/* save_lock: bytes in them, and at most */
};

struct gi_client {
	/* what a direct launch looks at, in one cache line (launch/direct.h) */
	const struct gsched_arb_page *arb;
	struct gsched_cl_page *cl;
	_Atomic uint32_t unpaced;	/* launches of which no event is left, until the driver has them */
	_Atomic bool gone;		/* the arbiter went away */
	_Atomic bool exiting;		/* the process exits: launches go straight to the driver */
	_Atomic bool stop;		/* the process exits: no agent, so nothing that waits for one */
	bool always_resumable;		/* for tests, and who wants soon more than much */
	_Atomic uint32_t unlooked;	/* direct launches while activity is reported; none beyond */
	_Atomic uint32_t look;		/* ... this number, before one is looked at (launch/pace.h) */

	struct gi_client *next;		/* gi_lock */
	CUdevice dev;
	CUuuid uuid;
	CUuuid gpu;			/* of a MIG device its GPU's, as channel groups have it */
	unsigned int sms, arch;
	int sm_shared, reserved;	/* bytes of shared memory of an SM, and of a block besides its own */
	unsigned int workers;		/* an SM at most, as somebody chose; 0: as many as are fastest */
	uint32_t dispatch;		/* GSR_LAUNCH_*, of all its tasks */
	bool ranges;			/* they have static ranges */
	unsigned int intensity;		/* GSCHED_INTENSITY_* of its kernels, as somebody says */
	unsigned int queues;		/* of the hardware, for its streams: gates are fewer */
	struct gsched *g;		/* NULL: there is no arbiter for it */
	struct gi_tasks *tasks;		/* this and the next three: there if there is an arbiter */
	struct gi_pacer *pacer;
	struct gi_blocks *blocks;
	struct gi_timings *timings;
	_Atomic uint32_t inside;	/* launches that may use the arbiter and its pages */
	pthread_mutex_t lock;
	_Atomic unsigned int prioritised;	/* launches in a row on streams of the greatest priority, up to GI_PRIORITISED */
	bool mps;			/* its channel group is the MPS server's, which sets the time slice itself */
	/* the agent's: what the arbiter was told last */
	struct gsched_slice_asked slice;
	bool told_prioritised;
	uint32_t told_block_us;
	unsigned int activity;		/* ~0 not at all */
} __attribute__((aligned(64)));

extern pthread_mutex_t gi_lock;

/* What every launch looks at, in one cache line */
struct gi_hot {
	bool begun;				/* there is a driver (process.h) */
	_Atomic bool ordered;			/* there may be tasks: gi_stream_share() waits for them */
	_Atomic int captures;			/* of streams, under way or about to begin */
	_Atomic unsigned int generation;	/* changes whenever a cached lookup may be stale */
	_Atomic int rewritable;			/* images with kernels that have, or may get, twins */
	CUresult (*current)(CUcontext *context);	/* gi_real.cuCtxGetCurrent, once it has begun */
} __attribute__((aligned(64)));

extern struct gi_hot gi_hot;

/* ---- client.c ---- */

/*
 * The first thread that looks for a device's client makes it: begin (NULL: it is there, or another
 * thread is at it), make, which waits for the arbiter, and add
 */
struct gi_client *gi_client_begin(CUdevice dev);	/* gi_lock held */
void gi_client_make(struct gi_client *c);		/* no lock held */
void gi_client_add(struct gi_client *c);		/* gi_lock held */
struct gi_client *gi_client_find(CUdevice dev);		/* gi_lock held; NULL: not added yet */
bool gi_client_awaited(CUdevice dev);			/* begun and not added; no lock held */
struct gi_client *gi_client_next(struct gi_client *c);	/* NULL: the first; they stay: no lock */
void gi_client_gone(struct gi_client *c, const char *why);
/* Is there an arbiter again? The agent; nobody uses the client's pages any more. */
bool gi_client_reconnect(struct gi_client *c);
void gi_used(struct gi_client *c, uint64_t ns, uint64_t blocks, unsigned int m);	/* and nobody was told */
void gi_client_reset(void);				/* after fork */

/* Why something of the client's is not managed */
#define gi_why(c, ...)	gi_report((c)->cl, __VA_ARGS__)

/*
 * A hook, set by process/: a client was made, and has what rooms above keep for it. false: it
 * cannot be used. No lock held
 */
extern bool (*gi_client_made)(struct gi_client *c);

/* The share of the device's time; an arbiter that knows of none leaves the word 0. */
#define gi_time_share(h) (gi_load(&(h)->share) ? gi_load(&(h)->share) : GSCHED_SHARE_ALL)

/*
 * What competes with the program does so in time only, and it has no quota: then no launch needs a
 * twin, a slot or anybody's word.
 */
static inline bool gi_direct(const struct gi_client *c)
{
	const struct gsched_arb_header *h = &c->arb->header;

	return gi_load(&h->flags) & GSCHED_ARB_PRIVATE && gi_time_share(h) >= GSCHED_SHARE_ALL && !c->always_resumable;
}

/* ---- context.c ---- */

/* What gi_current() found last, good while the generation is the same */
struct gi_last {
	CUcontext handle;
	unsigned int generation;
	struct gi_ctx *cx;
	struct gi_client *client;
};

extern __thread struct gi_last gi_last __attribute__((tls_model("initial-exec")));

/*
 * Of the calling thread; NULL none. The first call on a device attaches to the arbiter. Meanwhile
 * others' launches see a context without a client, and other calls wait.
 */
struct gi_ctx *gi_current(void);
struct gi_ctx *gi_current_now(void);			/* waits for no other thread's attach */
/*
 * Before its first task, as often as you like; it is current, no lock is held, and no task of the
 * client may need a wing
 */
bool gi_ctx_prepare(struct gi_ctx *cx);
void gi_ctx_words(struct gi_ctx *cx);			/* makes cx->words if there is memory; it is current, no lock held */
struct gi_ctx *gi_ctx_find(CUcontext handle);		/* gi_lock held */
struct gi_ctx *gi_ctx_next(struct gi_ctx *cx);		/* gi_lock held; NULL: the first */
bool gi_contexts_follow(struct gi_client *c);		/* both locks held: to the client's new pages */
/* gi_lock held. The pages that other contexts of its client use are registered through it */
bool gi_ctx_shares_pages(const struct gi_ctx *cx);
void gi_ctx_unregister(struct gi_ctx *cx);		/* it is current; waits for all contexts */
void gi_ctx_forget(struct gi_ctx *cx);			/* both locks held: nobody finds it any more */
void gi_context_reset(void);				/* after fork */

/* ---- dispatch.c ---- */

void gi_dispatch(struct gi_client *c);			/* as the environment says */
/*
 * Did the environment ask for static ranges, or for limits by rank or worker, when first asked?
 * Only then twins are made for these: they are a third longer.
 */
bool gi_needs_modes(void);
size_t gi_ranges_size(const struct gi_client *c);	/* of a slot's area */
bool gi_ranges_new(struct gi_ctx *cx);			/* false: no memory for them, its tasks use the counter */

/* ---- stream.c ---- */

void gi_capture_begins(void);
extern _Atomic bool gi_green;				/* the program partitions the device itself: no twins */

uint64_t gi_stream_id(const struct gi_ctx *cx, CUstream stream);	/* for the arbiter */

/* The program's call made @handle in the current context; or is about to destroy it */
void gi_stream_made(CUstream handle, unsigned int flags, int asked, int given);
void gi_stream_ending(CUstream handle);
void gi_streams_leave(const struct gi_ctx *cx);		/* the context goes */
void gi_stream_reset(void);				/* after fork */

/* What a call waits for before it puts work into a stream */
struct gi_turn {
	_Atomic uint32_t *word[2];	/* NULL none */
	bool counted;			/* gi_streams_hold() waits for it */
};

/*
 * Around a call that puts work into a stream: it does not come between those of a task.
 * CU_STREAM_PER_THREAD is the thread's own stream, NULL the legacy one.
 */
struct gi_turn gi_stream_share(CUstream stream);
void gi_stream_unshare(const struct gi_turn *turn);
/*
 * Around the calls of a task. false: a call that began before does not end; the launch has to be a
 * single one
 */
bool gi_stream_take(struct gi_turn *turn, CUstream stream);
void gi_stream_put(const struct gi_turn *turn);

/*
 * Nothing more is put into any stream, and all that was has ended in those of @cx, which is
 * current: until gi_streams_release(), a call that waits for the context returns at once. false:
 * the streams were not idle within @ns or one is being captured, and nothing is held. One thread at
 * a time.
 */
bool gi_streams_hold(struct gi_ctx *cx, uint64_t ns);
void gi_streams_release(void);
bool gi_streams_idle(struct gi_ctx *cx);		/* a look, for now */

/*
 * Streams that have waited for an event: such a wait stands at the head of a hardware queue, as a
 * done gate does, and may be for a task that needs a wing. A default stream counts once a thread,
 * for good.
 */
extern _Atomic unsigned int gi_streams_waiting;
bool gi_stream_waits(CUstream stream);		/* true: it is the first time */

int gi_stream_lift(int asked);				/* the priority that a new stream in the current context gets */
bool gi_stream_asked(CUstream stream, int *priority);	/* false: it has what the program asked for */
bool gi_stream_first(CUstream stream);			/* the hardware prefers it to streams without a priority */

#endif /* GI_DEVICE_H */
