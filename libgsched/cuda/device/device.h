/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The process's connections to arbiters, one per device; its contexts and streams.
 *
 * gi_lock protects the tables: clients, contexts, images, names, functions, the twin worker's
 * queue. It is never held across a call of the driver that may wait for the GPU, nor while waiting
 * for an arbiter. A client's lock protects its contexts' streams and the running tasks: the agent
 * holds it during a pass; launches do not take it. Lock order: client lock, then gi_lock.
 */
#ifndef GI_DEVICE_H
#define GI_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <gsched.h>
#include <linux/gsched.h>
#include "base/base.h"
#include "libgsched/follow.h"
#include "libgsched/memory.h"
#include "rewriter/gsr.h"

#define GI_WING_STREAMS		16
#define GI_QUEUES_LEAST		4		/* hardware queues that twins need */
/* between two attempts to reconnect to an arbiter */
#define GI_RECONNECT_NS		1000000000

struct gi_pacer;	/* launch/pace.h */
struct gi_blocks;	/* launch/blocks.h */
struct gi_timings;	/* launch/timing.h */
struct gi_tasks;	/* task/task.h */

/* Words in pinned memory that streams write and the agent reads. */
struct gi_words {
	uint32_t begun[GI_WING_STREAMS], done[GI_WING_STREAMS];
	uint32_t cleaned;
	uint32_t sample;		/* written by the host: launch/pace.c */
};

/* The beginning of a control block for workers that shall leave: no window, and no other to come */
struct gi_recall {
	uint64_t relay, next_poll;
};

/* Device memory for the suspended block-tasks of one task: task/save.c. */
struct gi_save {
	CUdeviceptr memory;
	size_t size;
	enum { GI_SAVE_FREE, GI_SAVE_TAKEN, GI_SAVE_LOST } state;
	/* the header is zero, at least in the order of its stream */
	bool zeroed;
};

enum gi_prepared { GI_UNPREPARED, GI_PREPARED, GI_PREPARE_FAILED };

struct gi_ctx {
	struct gi_ctx *next;		/* gi_lock */
	CUcontext handle;
	CUdevice dev;
	_Atomic(struct gi_client *) client;	/* set once; NULL: nothing here is managed yet */
	_Atomic int prepared;		/* enum gi_prepared, of the fields down to wing_stream */
	bool owns_pages;		/* the pages were registered in this context */
	bool ending;			/* gi_lock: about to be destroyed */
	bool counted_wait;		/* stream.c: its legacy stream is in gi_streams_waiting */
	CUdeviceptr arb, cl, control;
	CUdeviceptr ranges;		/* GSCHED_SLOTS areas; 0: none */
	/* pinned: GSCHED_SLOTS clean blocks, then a struct gsr_save */
	struct gsr_control *blank;
	struct gi_recall *recall;	/* pinned, behind these */
	struct gi_words *words;		/* pinned; NULL until needed */
	CUdeviceptr words_dev;
	/* client lock: the driver reports the context as unusable */
	bool broken;
	CUstream clean_stream, recall_stream, wing_stream[GI_WING_STREAMS];
	int wing_priority;		/* of these */
	uint32_t wing_ticket[GI_WING_STREAMS];
	/* client lock: gi_stream_id() of the stream whose done gate last blocked the wing stream */
	uint64_t blocked_by[GI_WING_STREAMS];
	/* masks of slots; the state of a slot's control block is in at most one (task/control.c) */
	_Atomic uint64_t clean, dirty;
	uint64_t cleaning;		/* client lock */
	uint32_t clean_ticket;
	int least, greatest;		/* stream priorities */
	_Atomic uint32_t legacy_calls, blocking_calls;	/* stream.c */
	/* per-thread default streams are used, which have no handle */
	_Atomic bool per_thread;
	pthread_mutex_t save_lock;	/* innermost lock */
	struct gi_save save[GSCHED_SLOTS];	/* save_lock */
	size_t saved;			/* save_lock: their total size in bytes */
};

struct gi_client {
	/* read by a direct launch: one cache line (launch/direct.h) */
	const struct gsched_arb_page *arb;
	struct gsched_cl_page *cl;
	_Atomic uint32_t unpaced;	/* calls under way whose launches leave no event */
	_Atomic bool gone;		/* the arbiter has gone away */
	_Atomic bool lost;		/* for good: the program has closed our descriptors */
	_Atomic bool exiting;		/* the process exits: launches go straight to the driver */
	/* the process exits: there is no agent, so do not wait for it */
	_Atomic bool stop;
	bool always_resumable;		/* use resumable twins wherever possible */
	bool launch_blocking;		/* CUDA_LAUNCH_BLOCKING: each launch waits for its kernel */
	_Atomic bool untimed;		/* a launch came that is not measured: launch/blocks.h */
	_Atomic uint32_t untracked;	/* untracked launches, counted while activity is reported */
	/* the next launch is tracked once @untracked reaches this */
	_Atomic uint32_t track_at;

	struct gi_client *next;		/* gi_lock */
	CUdevice dev;
	CUuuid uuid;
	CUuuid gpu;			/* UUID of the GPU; differs from @uuid for a MIG device */
	unsigned int sms, arch;
	size_t memory;			/* of the device */
	_Atomic bool no_room;		/* memory.max has none for its first context */
	/* shared memory of an SM, and the reserved part per block */
	int sm_shared, reserved;
	/* at most per SM, as configured; 0: as many as are fastest */
	unsigned int workers;
	uint32_t dispatch;		/* GSR_LAUNCH_* of all tasks */
	bool ranges;			/* tasks have static ranges */
	unsigned int intensity;		/* GSCHED_INTENSITY_* of all kernels, as configured */
	/* hardware queues of its streams; there are fewer done gates */
	unsigned int queues;
	struct gsched *g;		/* NULL: there is no arbiter for it */
	struct gi_tasks *tasks;		/* this and the next three exist if there is an arbiter */
	struct gi_pacer *pacer;
	struct gi_blocks *blocks;
	struct gi_timings *timings;
	_Atomic uint32_t inside;	/* launches that may be using the arbiter and its pages */
	pthread_mutex_t lock;
	/* consecutive launches on gi_stream_preferred() streams, up to GI_PRIORITISED */
	_Atomic unsigned int prioritised;
	/* the MPS server owns the channel group and its time slice */
	bool mps;
	/* the agent's: the last values reported to the arbiter */
	struct gsched_slice_asked slice;
	bool reported_prioritised;
	uint32_t reported_block_us;
	bool memory_checked;		/* gi_memory_check() has looked */
	unsigned int activity;		/* ~0: none was reported */
} __attribute__((aligned(64)));

extern pthread_mutex_t gi_lock;

/* Read by every launch: one cache line */
struct gi_hot {
	bool begun;				/* the driver has been opened (process.h) */
	/* there may be tasks: gi_stream_lock_shared() must wait */
	_Atomic bool ordered;
	_Atomic int captures;			/* stream captures under way or about to begin */
	_Atomic unsigned int generation;	/* changes whenever a cached lookup may be stale */
	/* number of images with kernels that have, or may get, twins */
	_Atomic int rewritable;
	/*
	 * number of the program's streams whose priority is not what it asked for, and not what it
	 * would get in a group with a priority
	 */
	_Atomic int raised, unraised;
	/* what a direct launch calls, of gi_real; valid once @begun is set */
	__typeof__(gi_real.cuCtxGetCurrent) current;
	__typeof__(gi_real.cuLaunchKernel) launch_kernel;
	__typeof__(gi_real.cuLaunchKernelEx) launch_kernel_ex;
} __attribute__((aligned(64)));

extern struct gi_hot gi_hot;

/* ---- client.c ---- */

/*
 * The first thread that needs a device's client creates it in three steps: begin (NULL: it exists,
 * or another thread is creating it), make, which waits for the arbiter, and add.
 */
struct gi_client *gi_client_begin(CUdevice dev);	/* gi_lock held */
void gi_client_make(struct gi_client *c);		/* no lock held */
void gi_client_add(struct gi_client *c);		/* gi_lock held */
struct gi_client *gi_client_find(CUdevice dev);		/* gi_lock held; NULL: not added yet */
bool gi_client_awaited(CUdevice dev);			/* begun, not added yet; no lock held */
struct gi_client *gi_client_next(struct gi_client *c);	/* NULL: the first; never freed: no lock */
void gi_client_gone(struct gi_client *c, const char *why);
/* Reconnects if there is an arbiter again. The agent; nobody uses the client's pages any more. */
bool gi_client_reconnect(struct gi_client *c);
/* Asks the driver for hardware queues, by the environment; before cuInit(). */
void gi_ask_for_queues(void);
/* What a launch of @blocks, of which an SM holds @m, uses in @ns: SMs times ns. */
uint64_t gi_usage(const struct gi_client *c, uint64_t ns, uint64_t blocks, unsigned int m);
void gi_client_reset(void);				/* after fork */

/* Reports why something of the client is not managed. */
#define gi_why(c, ...)	gi_report((c)->cl, __VA_ARGS__)

/*
 * A hook set by process/: creates the state that the upper layers keep for a new client. false: the
 * client cannot be used. Called with no lock held.
 */
extern bool (*gi_client_made)(struct gi_client *c);

/* The share of the device's time; an arbiter that does not support shares leaves the word 0. */
#define gi_time_share(h) (gi_load(&(h)->share) ? gi_load(&(h)->share) : GSCHED_SHARE_ALL)

/*
 * Others compete with the program in time only, and it has no quota. So no launch needs a twin, a
 * slot or the arbiter.
 */
static inline bool gi_direct(const struct gi_client *c)
{
	const struct gsched_arb_header *h = &c->arb->header;

	return gi_load(&h->flags) & GSCHED_ARB_PRIVATE && gi_time_share(h) >= GSCHED_SHARE_ALL &&
	       !c->always_resumable;
}

/*
 * Counts a launch that was not submitted; @usage: gi_usage(). The arbiter adds these counters up
 * when it needs them.
 */
static inline void gi_count_leased(struct gi_client *c, uint64_t ns, uint64_t usage)
{
	__atomic_fetch_add(&c->cl->header.leased_ns, ns, __ATOMIC_RELAXED);
	__atomic_fetch_add(&c->cl->header.leased_usage, usage, __ATOMIC_RELAXED);
}

/* ---- context.c ---- */

/* Cache of the last gi_current(), valid while the generation is the same */
struct gi_last {
	CUcontext handle;
	unsigned int generation;
	struct gi_ctx *cx;
	struct gi_client *client;
};

extern __thread struct gi_last gi_last __attribute__((tls_model("initial-exec")));

/*
 * The calling thread's context, NULL if none. The first call on a device attaches to the arbiter.
 * Meanwhile launches of other threads see a context without a client, and their other calls wait.
 */
struct gi_ctx *gi_current(void);
struct gi_ctx *gi_current_now(void);			/* waits for no other thread's attach */
/*
 * Prepares the context for its first task; further calls do nothing. The context is current, no
 * lock is held, and no task of the client may need a wing.
 */
bool gi_ctx_prepare(struct gi_ctx *cx);
/* Allocates cx->words if possible. The context is current, no lock is held. */
void gi_ctx_words(struct gi_ctx *cx);
struct gi_ctx *gi_ctx_find(CUcontext handle);		/* gi_lock held */
struct gi_ctx *gi_ctx_next(struct gi_ctx *cx);		/* gi_lock held; NULL: the first */
/* Adopts the client's new pages; both locks held. */
bool gi_contexts_follow(struct gi_client *c);
/* The pages that other contexts of the client use were registered in this one. gi_lock held. */
bool gi_ctx_shares_pages(const struct gi_ctx *cx);
/* the context is current; waits for all contexts */
void gi_ctx_unregister(struct gi_ctx *cx);
/* Removes it from the table; both locks held. */
void gi_ctx_forget(struct gi_ctx *cx);
void gi_context_reset(void);				/* after fork */

/* ---- memory.c ---- */

int gi_memory_changed(const uint8_t uuid[16], uint64_t bytes, bool asks); /* libgsched/memory.h */
/* Sets gsched_memory_own (libgsched/memory.h), and returns what it was. */
static inline bool gi_own_memory(bool own)
{
	bool before = gsched_memory_own;

	gsched_memory_own = own;
	return before;
}

/* The client has an arbiter, the @first or another one: tell it what the process holds. */
void gi_memory_attached(struct gi_client *c, bool first);
/* Attaches, if nothing on its device has. false: destroy the context, which has just been made. */
bool gi_memory_admits(CUcontext context);
/* Reports once if a memory.max cannot hold. The agent, while there is an arbiter. */
void gi_memory_check(struct gi_client *c);
/* The least memory.max that holds, and what it leaves. false: none does. */
bool gi_memory_limits(struct gi_client *c, uint64_t *most, uint64_t *room);
/* cuMemAllocManaged() in the current context */
CUresult gi_managed_alloc(struct gi_ctx *cx, CUdeviceptr *p, size_t size, unsigned int flags);
struct gi_managed;
/* Bracket cuMemFree(). NULL: not managed memory */
struct gi_managed *gi_managed_freeing(CUdeviceptr p);
void gi_managed_freed(struct gi_managed *m, bool freed);
void gi_managed_forget(CUcontext context);		/* it ends, and its memory with it */
void gi_memory_reset(void);				/* after fork */

/* ---- dispatch.c ---- */

/* Sets the dispatch mode from the environment. */
void gi_dispatch(struct gi_client *c);
/*
 * Whether the environment asked, when first read, for static ranges or for limits by rank or
 * worker. Only then are twins made with support for these, which makes them a third longer.
 */
bool gi_needs_modes(void);
size_t gi_ranges_size(const struct gi_client *c);	/* size of a slot's area */
/* false: no memory; tasks use the counter */
bool gi_ranges_new(struct gi_ctx *cx);

/* ---- stream.c ---- */

void gi_capture_begins(void);
/* A capture has begun, or ended, in @stream: with the stream it ends, too. */
void gi_capture_note(CUstream stream, bool capturing);
/* the program uses green contexts: no twins */
extern _Atomic bool gi_green;

uint64_t gi_stream_id(const struct gi_ctx *cx, CUstream stream);	/* for the arbiter */

/* Creates a stream for the program. @plain: by cuStreamCreate(), which has no priority. */
CUresult gi_stream_create(CUstream *stream, unsigned int flags, int asked, bool plain);
/* The same for cuGreenCtxStreamCreate(). */
CUresult gi_green_stream_create(CUstream *stream, CUgreenCtx green, unsigned int flags, int asked);
/* The program is about to destroy it. true: with a capture that is counted in gi_hot.captures. */
bool gi_stream_ending(CUstream handle);
/* Removes the streams of a context. */
void gi_streams_forget(struct gi_ctx *cx);
void gi_stream_reset(void);				/* after fork */

/* Held while a call enqueues work into a stream */
struct gi_stream_guard {
	_Atomic uint32_t *word[2];	/* NULL: none */
	bool counted;			/* gi_streams_hold() waits for it */
};

/*
 * Bracket a call that enqueues work into a stream, so that it does not come between the calls of a
 * task. CU_STREAM_PER_THREAD is the thread's own stream, NULL the legacy one.
 */
struct gi_stream_guard gi_stream_lock_shared(CUstream stream);
void gi_stream_unlock_shared(const struct gi_stream_guard *guard);
/*
 * Bracket the calls of a task. false: an earlier call does not return, so the launch must be made
 * with a single call.
 */
bool gi_stream_lock(struct gi_stream_guard *guard, CUstream stream);
void gi_stream_unlock(const struct gi_stream_guard *guard);

/*
 * Waits until all work in the streams of @cx, which is current, has ended, and keeps other work
 * from being enqueued in any stream. So a call that waits for the context returns at once, until
 * gi_streams_release(). false: the streams were not idle within @ns, or one is being captured, and
 * nothing is held back. One thread at a time.
 */
bool gi_streams_hold(struct gi_ctx *cx, uint64_t ns);
void gi_streams_release(void);
bool gi_streams_idle(struct gi_ctx *cx);		/* a snapshot */

/*
 * Brackets cuCtxSynchronize(), so that it does not invalidate a capture. The time of the call, for
 * gi_sync_end(); 0: a capture is in progress, so the function may not be called.
 */
uint64_t gi_sync_begin(void);
void gi_sync_end(uint64_t began);

/*
 * The number of streams that have waited for an event or a word. Like a done gate, this may block a
 * hardware queue, and it may depend on a task that needs a wing. A thread's own default stream
 * counts once, until the thread ends.
 */
extern _Atomic unsigned int gi_streams_waiting;
/* Counts it; true: the first time. */
bool gi_stream_count_wait(CUstream stream);

static inline bool gi_is_default(CUstream stream)
{
	return !stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

/* The priority to give to a new stream, or a launch, in the context. */
int gi_stream_priority(const struct gi_ctx *cx, int asked);
/* Whether that is another one: the group has a priority, and others can join the band. */
bool gi_priorities_lifted(const struct gi_ctx *cx);
int gi_lift_priority(const struct gi_ctx *cx, int asked);	/* ... what it is then */
/*
 * Whether the client's group got, or lost, a priority after some of the program's streams were
 * created, so that their own may not be gi_stream_priority().
 */
static inline bool gi_streams_differ(const struct gi_client *c)
{
	return atomic_load_explicit(gi_load(&c->arb->header.priority) ? &gi_hot.unraised :
				    &gi_hot.raised, memory_order_relaxed);
}

/* What the program asked for, and what the stream has. false: a default stream, or unknown. */
bool gi_stream_given(CUstream stream, int *asked, int *given);
/* Gives it what it would get if it were created now. It is not captured. */
void gi_stream_follow(const struct gi_ctx *cx, CUstream stream);
/* Gives a stream, not a default one, another priority. */
CUresult gi_stream_set_priority(CUstream stream, int asked);
/* The program has given @to the attributes of @from. */
void gi_stream_copied(CUstream to, CUstream from);
/* false: it has the priority asked for */
bool gi_stream_requested(CUstream stream, int *priority);
/* the hardware prefers it to streams without a priority */
bool gi_stream_preferred(CUstream stream);

#endif /* GI_DEVICE_H */
