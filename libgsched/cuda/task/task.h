/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tasks. A launch needs one of its client's GSCHED_SLOTS slots. The state of a slot says who owns
 * it; only the owner writes its fields and changes its state. Only slot.c changes states, by these
 * transitions (gi_slot_claim() and so on):
 *
 *	FREE --claim--> CLAIMED --run--> RUNNING --drain--> DRAINING --finish--> FREE
 *
 *	CLAIMED --unclaim--> FREE, --lose--> LOST;  RUNNING, DRAINING --give_up--> FREE
 *
 *	state     owner                      its lock      the task
 *	FREE      none; a launch claims it   none          none
 *	CLAIMED   the launching thread       none          is being launched
 *	RUNNING   the holder of the client's the client's  is on the device
 *	          lock, usually the agent
 *	DRAINING  the same                   the client's  is complete, but some wings are not
 *	LOST      none, for good             none          has no done gate; unusable context
 */
#ifndef GI_TASK_H
#define GI_TASK_H

#include "code/code.h"

enum gi_slot_state {
	GI_SLOT_FREE,
	GI_SLOT_CLAIMED,
	GI_SLOT_RUNNING,
	GI_SLOT_DRAINING,
	GI_SLOT_LOST,
};

/* How the work of a stream is ordered with that of other streams */
enum gi_order { GI_ORDER_NONE, GI_ORDER_BLOCKING, GI_ORDER_LEGACY };

struct gi_slot {
	_Atomic uint32_t state;		/* enum gi_slot_state */
	uint32_t seq;
	uint64_t stream;		/* for the arbiter: tasks of one stream run in order */
	struct gi_ctx *cx;
	struct gi_func *fn;
	const struct gi_form *form;	/* what was launched; NULL: the original */
	struct gi_shape *shape;
	struct gi_graph *graph;		/* NULL: a kernel, or an unknown graph */
	struct gi_save *save;		/* NULL: block-tasks cannot be suspended */
	struct gi_bound *bound;		/* what a twin's references are bound to; NULL: none */
	unsigned int tier, m, weight;
	unsigned int block[3], shared;
	uint64_t blocks;
	uint32_t launched;		/* workers, wings included */
	struct gsr_launch arg;
	char *params;			/* packed, then struct gsr_launch, then @pointers; kept
					 * between tasks */
	size_t params_room;
	void **pointers;		/* to the twin's parameters: only the driver knows where
					 * in a buffer one that is aligned to more than 16 bytes
					 * would lie */
	bool submitted;
	bool retires_at_launch;		/* nothing may follow it: it retires once launched */
	bool tuned;			/* @m is what gi_tune_workers() said */
	/* what the original took on the GPU, of the task of this number: launch/timing.c */
	_Atomic uint64_t timed_ns;
	_Atomic uint32_t timed_seq;
	uint32_t generation;		/* of the arbiter's slot, at launch */
	uint64_t launch_ns, predicted_ns;	/* CLOCK_MONOTONIC; the time if it ran alone */
	/* time integral of the window, in workers */
	uint64_t window, window_since, integral;
	/* wings */
	uint32_t wings, wing_ticket[GI_WING_STREAMS];
	uint32_t wing_count[GI_WING_STREAMS];
	uint64_t next_wing, wing_gap;
	/* all workers were told to leave, so that a wing has a stream; once more at @next_recall */
	bool recalled;
	uint64_t next_recall;
	uint64_t ran;			/* of a task that drains: GPU time, 0 unknown */
	enum gi_order order;
	uint32_t closed;		/* wing streams where something waits for the wing's end */
	uint32_t free_wings;		/* mask of wing streams: this wing ignores the window */
	_Atomic bool unlimited;		/* such a wing runs: the task ends without another one */
};

/* A client's tasks */
struct gi_tasks {
	_Atomic uint64_t free;		/* mask of the FREE slots, which launches search: slot.c */
	_Atomic uint64_t gated;		/* slots whose task has a done gate */
	_Atomic int ahead;		/* launches without one since such a task was waited for */
	/* twin launches under way, on blocking (and legacy) streams and on others: gate.c */
	_Atomic int launching_ordered, launching_unordered;
	/* driver calls that hold launches back: all of them, or those on ordered streams: gate.c */
	_Atomic int quiescing, legacy_copies, blocking_copies, legacy_barriers;
	_Atomic int overdue;		/* launches that have been held back for long */
	_Atomic int released;		/* > 0: ignore windows, so that tasks end */
	_Atomic bool idle;		/* the agent sleeps until woken */
	_Atomic uint64_t next_pass;	/* when it wakes by itself at the latest; 0: soon */
	_Atomic bool unattended;	/* the agent has ended */
	int wake;			/* eventfd */
	_Atomic uint64_t finished;	/* number of finished tasks, which shows progress */
	/* a running task of tier launch known to the arbiter: (slot + 1) << 32 | blocks; 0: none */
	_Atomic uint64_t cover;
	/* @finished + 1 when a launch waited in vain for a slot */
	_Atomic uint64_t stuck_at;
	struct gi_slot slot[GSCHED_SLOTS];
};

bool gi_tasks_new(struct gi_client *c);			/* makes c->tasks */
void gi_tasks_free(struct gi_client *c);

/* ---- slot.c ---- */

/*
 * The transitions. A transition that the slot's state does not allow is a bug of the interposer: it
 * returns false and leaves the slot alone; builds with sanitizers abort.
 */

/* Claims a slot for a launch. -1: none was free, even after a wait. */
int gi_slot_claim(struct gi_client *c, const struct gi_ctx *cx, bool twin);
bool gi_slot_run(struct gi_client *c, unsigned int slot);	/* the task is on the device */
/* A submitted task of tier launch with at least @blocks blocks is running. */
bool gi_slot_covers(const struct gi_client *c, uint64_t blocks);
/* Nothing of the task is on the device. @lost: its stream may still write to its save area. */
bool gi_slot_unclaim(struct gi_client *c, unsigned int slot, bool lost);
/* It was launched without its done gate. */
bool gi_slot_lose(struct gi_client *c, unsigned int slot);
bool gi_slot_drain(struct gi_client *c, unsigned int slot);	/* the done gate has opened */
bool gi_slot_finish(struct gi_client *c, unsigned int slot);	/* all wings have ended too */
/* The task will not end. Its workers may still use its resources, so these are not reused. */
bool gi_slot_give_up(struct gi_client *c, unsigned int slot);

static inline enum gi_slot_state gi_slot_state(const struct gi_slot *s)
{
	return atomic_load(&s->state);
}

/*
 * Counts launches without a done gate while there are tasks with one. Whether they are too many
 * then: gate.c. Of 1021 calls that the driver queues a twin takes three, and events may come with
 * other launches.
 */
#define GI_AHEAD	128

static inline bool gi_tasks_far_ahead(const struct gi_client *c, unsigned int launches)
{
	struct gi_tasks *t = c->tasks;

	return atomic_load_explicit(&t->gated, memory_order_relaxed) &&
	       atomic_fetch_add_explicit(&t->ahead, launches, memory_order_relaxed) +
	       (int)launches > GI_AHEAD;
}

/* Slots that are not FREE; a snapshot, as are the next ones. */
static inline uint64_t gi_slots_taken(const struct gi_tasks *t)
{
	return ~atomic_load(&t->free);
}

/* Those of @slots whose state is in @states, a mask. */
static inline uint64_t gi_slots_in(const struct gi_tasks *t, uint64_t slots, unsigned int states)
{
	uint64_t found = 0;

	for (; slots; slots &= slots - 1)
		if (states >> gi_slot_state(&t->slot[__builtin_ctzll(slots)]) & 1)
			found |= slots & -slots;
	return found;
}

/* Slots that are RUNNING or DRAINING. */
static inline uint64_t gi_slots_in_flight(const struct gi_tasks *t)
{
	return gi_slots_in(t, gi_slots_taken(t), 1u << GI_SLOT_RUNNING | 1u << GI_SLOT_DRAINING);
}

/* Slots that may have a task; slots claimed later are not included. */
static inline uint64_t gi_slots_busy(const struct gi_tasks *t)
{
	uint64_t taken = gi_slots_taken(t);

	return taken & ~gi_slots_in(t, taken, 1u << GI_SLOT_LOST);
}

void gi_slots_report_lost(struct gi_client *c);		/* reports lost slots, if any */

/* Describes a task for the arbiter. */
void gi_describe_task(struct gsched_task *task, const struct gi_client *c, const struct gi_slot *s,
		      unsigned int slot);

/* ---- control.c ---- */

/*
 * For twins, a slot also has a control block in each context. Its state is separate from the
 * slot's, since an original may use the slot while the block is being cleaned:
 *
 *	clean --claim--> in use --release--> dirty --clean--> cleaning --clean--> clean
 *
 * claim: by the thread that has claimed the slot. release: by the slot's owner, when no worker is
 * left; the block of a task that was lost or given up stays in use. clean: under the client's lock,
 * for all dirty blocks at once. The states are masks (struct gi_ctx); a block in use is in none.
 */
bool gi_control_claim(struct gi_ctx *cx, unsigned int slot);
bool gi_control_release(struct gi_ctx *cx, unsigned int slot);
bool gi_controls_due(const struct gi_ctx *cx);		/* some blocks need cleaning */
void gi_controls_clean(struct gi_ctx *cx);		/* the context is current */

/* ---- pass.c ---- */

/*
 * Finishes ended tasks and reports them to the arbiter, launches wings, cleans control blocks. The
 * client's lock is held.
 */
void gi_pass(struct gi_client *c);
bool gi_reap(struct gi_client *c);			/* a pass; false: the lock is taken */
void gi_agent_wake(struct gi_client *c);
/* Called once for a client when the descriptor that wakes its agent is not ours any more */
extern void (*gi_agent_lost)(struct gi_client *c);
/* How long until the next pass may have something to do, in ns, at most @most. */
uint64_t gi_tasks_due(struct gi_client *c, uint64_t now, uint64_t most);
/* Waits for the tasks of @cx, or of @image; false: they did not end in time, and were given up. */
bool gi_tasks_drain(struct gi_client *c, struct gi_ctx *cx, struct gi_image *image,
		    uint64_t timeout_ns);

/* ---- wing.c ---- */

void gi_tasks_release(struct gi_client *c);		/* raises tasks->released */
void gi_follow_window(struct gi_client *c, struct gi_slot *s, unsigned int slot, uint64_t now);
/* Launches one more wing, if there is room for it. */
void gi_wing(struct gi_client *c, struct gi_slot *s, unsigned int slot, uint64_t now);
bool gi_wings_ended(struct gi_slot *s, struct gsched_cl_slot *line);

/* ---- gate.c ---- */

/* What a call of the driver waits for while it holds the context's lock */
enum gi_waits {
	GI_WAITS_STREAM,		/* the work queued on a stream before it */
	GI_WAITS_DEVICE,		/* all work of the context */
	GI_WAITS_ALL,			/* all work of all contexts, holding the locks of all */
};

struct gi_waiting {
	struct gi_client *c;		/* NULL: nothing to undo */
	uint64_t quiesced;		/* mask: @c and its successors in the list of clients */
	enum gi_waits how;
	enum gi_order order;
	uint64_t released;		/* mask, likewise */
	bool early;			/* the program had launched no twin when the call began */
	int cancel;			/* if @c is not NULL */
};

/* Bracket such a call, in the current context. @stream: for GI_WAITS_STREAM. */
void gi_wait_begin(struct gi_waiting *w, enum gi_waits how, CUstream stream);
/* The same before memory is freed, of whichever device it is: GI_WAITS_DEVICE. */
void gi_wait_begin_memory(struct gi_waiting *w, CUdeviceptr at);
void gi_wait_end(struct gi_waiting *w);
/* false: no twin was launched yet, so GI_WAITS_STREAM has nothing to wait for. */
bool gi_wait_needed(void);

/*
 * Bracket the launch of a twin. begin waits while such launches are held back, and returns the
 * argument for end; NULL: this takes too long, and the original is to be launched, without end.
 */
_Atomic int *gi_twin_launch_begin(struct gi_client *c, struct gi_slot *s, CUstream stream);
void gi_twin_launch_end(_Atomic int *inside);
/*
 * Holds twin launches back until gi_tasks_resume(), and waits until none is under way and no task
 * may need a wing. false: that did not happen within GI_QUIESCE_NS.
 */
bool gi_tasks_quiesce(struct gi_client *c);
/* Only waits for that, @timeout_ns at most. */
bool gi_tasks_wait_quiescent(struct gi_client *c, uint64_t timeout_ns);
void gi_tasks_resume(struct gi_client *c);
/* Whether a task that has begun, and may need a wing, has no window or no workers */
bool gi_tasks_evicted(const struct gi_client *c);
/*
 * Whether none in flight has begun, though one has a window: a host function or another kernel,
 * which may wait for this program, holds them up
 */
bool gi_tasks_gated(const struct gi_client *c);
/*
 * After gi_tasks_far_ahead(): waits for the tasks that have a done gate now, as long as one is
 * evicted, else for a second at most, or a tenth of one if they are gated.
 */
void gi_tasks_wait_ahead(struct gi_client *c);
void gi_stay_near(void);	/* both, before a call that enqueues something else */
/*
 * Quiesces a context: holds twin launches back, and waits until the context's streams are empty and
 * nothing can be enqueued. false: this took longer than @ns, and nothing is held back.
 */
bool gi_tasks_quiesce_context(struct gi_ctx *cx, uint64_t ns);
void gi_tasks_resume_context(struct gi_ctx *cx);
/*
 * Reserves a hardware queue for the done gate of the task in @slot, whose stream is set. false:
 * wings might not get through with this gate.
 */
bool gi_gate_reserve(struct gi_client *c, unsigned int slot);
/*
 * Called before another stream waits for an event. Returns when the done gates leave it a hardware
 * queue, after a second at most.
 */
void gi_gate_spare_queue(struct gi_client *c);

/* ---- save.c ---- */

size_t gi_save_stride(const struct gi_form *form, const unsigned int block[3], size_t shared);
/* Records an SM that there may be, of @most; 0: not one, and it says so */
unsigned int gi_save_records(struct gi_client *c, size_t stride, unsigned int most);
void gi_save_take(struct gi_slot *s, size_t size);	/* sets s->save; the context is current */
void gi_save_put(struct gi_slot *s, bool lost);		/* @lost: workers may still use it */
void gi_save_release(struct gi_ctx *cx);		/* before the context is destroyed */

/* ---- window.c ---- */

/* How many workers of weight 1024 / @m fit into @window. */
unsigned int gi_window_workers(const struct gi_client *c, uint64_t window, unsigned int m);
void gi_ranges_use(struct gi_slot *s, unsigned int slot);	/* the rest of s->arg is filled */
CUresult gi_ranges_zero(const struct gi_slot *s, CUstream stream);	/* before the launch */

#endif /* GI_TASK_H */
