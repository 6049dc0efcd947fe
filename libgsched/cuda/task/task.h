/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tasks. A launch needs one of its client's GSCHED_SLOTS slots. The state of a slot says who owns it:
 * only the owner writes its fields and moves it on. Only slot.c changes states, by these transitions
 * (gi_slot_claim() and so on):
 *
 *	FREE --claim--> CLAIMED --run--> RUNNING --drain--> DRAINING --finish--> FREE
 *
 *	CLAIMED --unclaim--> FREE, --lose--> LOST;  RUNNING, DRAINING --give_up--> FREE
 *
 *	state     owner                      its lock      the task
 *	FREE      nobody: a launch claims    none          there is none
 *	CLAIMED   the launching thread       none          is being launched
 *	RUNNING   who holds the client's     the client's  is on the device
 *	          lock, as a rule the agent
 *	DRAINING  the same                   the client's  is complete, but not all of its wings are
 *	LOST      nobody, for good           none          has no done gate: its context is beyond use
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

/* How a stream's work is ordered with other streams' */
enum gi_order { GI_ORDER_NONE, GI_ORDER_BLOCKING, GI_ORDER_LEGACY };

struct gi_slot {
	_Atomic uint32_t state;		/* enum gi_slot_state */
	uint32_t seq;
	uint64_t stream;		/* for the arbiter: tasks of one run in order */
	struct gi_ctx *cx;
	struct gi_func *fn;
	const struct gi_form *form;	/* what was launched; NULL: the original */
	struct gi_shape *shape;
	struct gi_graph *graph;		/* NULL: a kernel, or not known */
	struct gi_save *save;		/* NULL: block-tasks are not suspended */
	struct gi_bound *bound;		/* what is bound to the kernel's references; NULL: it has none, or is the original */
	unsigned int tier, m, weight;
	unsigned int block[3], shared;
	uint64_t blocks;
	uint32_t launched;		/* workers, wings included */
	struct gsr_launch arg;
	char *params;			/* packed, with room for struct gsr_launch; kept between tasks */
	size_t params_room;
	bool submitted;
	bool leads;			/* nothing stands behind it: over once launched */
	bool alone;			/* nobody disturbs what it takes, so far */
	uint32_t generation;		/* of the arbiter's slot at launch */
	uint64_t launch_ns, predicted_ns;	/* CLOCK_MONOTONIC; alone */
	/* time integral of the window, in workers */
	uint64_t window, window_since, integral;
	/* wings */
	uint32_t wings, wing_ticket[GI_WING_STREAMS];
	uint32_t wing_count[GI_WING_STREAMS];
	uint64_t next_wing, wing_gap;
	enum gi_order order;
	uint32_t free_wings;		/* by wing stream: the one there ignores the window */
	_Atomic bool unlimited;		/* one of these runs: the task ends without another wing */
};

/* A client's tasks */
struct gi_tasks {
	_Atomic uint64_t free;		/* the slots that are FREE, for launches to find one: slot.c */
	_Atomic uint64_t gated;		/* slots whose task has a done gate */
	/*
	 * gate.c: launches of twins under way, on blocking and other streams; what holds them
	 * back; those that were held back for long
	 */
	_Atomic int launching, aside, closed, copies, own_copies, barriers, overdue;
	_Atomic int released;		/* windows are ignored, so that tasks end */
	_Atomic bool idle;		/* the agent sleeps until woken */
	_Atomic bool unattended;	/* the agent has ended */
	int wake;			/* eventfd */
	_Atomic uint64_t finished;	/* tasks finished: progress */
	/* a running task of tier launch that the arbiter knows of: slot + 1, its blocks; 0 none */
	_Atomic uint64_t cover;
	_Atomic uint64_t stuck_at;	/* finished when a launch waited in vain for a slot; +1 */
	struct gi_slot slot[GSCHED_SLOTS];
};

bool gi_tasks_new(struct gi_client *c);			/* makes c->tasks */
void gi_tasks_free(struct gi_client *c);

/* ---- slot.c ---- */

/*
 * The transitions. One that the slot's state does not allow is a bug of ours: it is refused (false)
 * and the slot stays as it is; builds with sanitizers abort.
 */

/* A slot for a launch, of a twin or not; -1: there is none, also after a while. */
int gi_slot_claim(struct gi_client *c, const struct gi_ctx *cx, bool twin);
bool gi_slot_run(struct gi_client *c, unsigned int slot);	/* the task is on the device */
/* Is one of tier launch on the device, with as many blocks? For launches that need nothing else. */
bool gi_slot_covers(const struct gi_client *c, uint64_t blocks);
/* Nothing of the task is on the device. @lost: its stream may still write to its save area */
bool gi_slot_unclaim(struct gi_client *c, unsigned int slot, bool lost);
bool gi_slot_lose(struct gi_client *c, unsigned int slot);	/* launched, but for its done gate */
bool gi_slot_drain(struct gi_client *c, unsigned int slot);	/* the done gate has opened */
bool gi_slot_finish(struct gi_client *c, unsigned int slot);	/* and all wings have ended */
/* The task will not end: its workers may still use what it has, which is not used again */
bool gi_slot_give_up(struct gi_client *c, unsigned int slot);

static inline enum gi_slot_state gi_slot_state(const struct gi_slot *s)
{
	return atomic_load(&s->state);
}

/* Slots that are not FREE, as of now */
static inline uint64_t gi_slots_taken(const struct gi_tasks *t)
{
	return ~atomic_load(&t->free);
}

/* Those of @slots whose state is one of @states, a bit each, as of now */
static inline uint64_t gi_slots_in(const struct gi_tasks *t, uint64_t slots, unsigned int states)
{
	uint64_t found = 0;

	for (; slots; slots &= slots - 1)
		if (states >> gi_slot_state(&t->slot[__builtin_ctzll(slots)]) & 1)
			found |= slots & -slots;
	return found;
}

/* Slots that are RUNNING or DRAINING, as of now */
static inline uint64_t gi_slots_in_flight(const struct gi_tasks *t)
{
	return gi_slots_in(t, gi_slots_taken(t), 1u << GI_SLOT_RUNNING | 1u << GI_SLOT_DRAINING);
}

/* Slots that a task may be in, as of now; none that is claimed later */
static inline uint64_t gi_slots_busy(const struct gi_tasks *t)
{
	uint64_t taken = gi_slots_taken(t);

	return taken & ~gi_slots_in(t, taken, 1u << GI_SLOT_LOST);
}

void gi_slots_say_lost(struct gi_client *c);		/* in the page, if there are any */

/* How a task is told to the arbiter */
void gi_to_task(struct gsched_task *task, const struct gi_client *c, const struct gi_slot *s, unsigned int slot);

/* ---- control.c ---- */

/*
 * A slot also has a control block in each context, for twins. Its state is apart from the slot's, since
 * an original may have the slot while the block is cleaned:
 *
 *	clean --use--> in use --used--> dirty --clean--> cleaning --clean--> clean
 *
 * use: the thread that has claimed the slot. used: the slot's owner, when no worker is left; the block
 * of a task that was lost or given up stays in use. clean: under the client's lock, all that are dirty
 * at once; so the states are masks (struct gi_ctx), and "in use" is in none of them.
 */
bool gi_control_use(struct gi_ctx *cx, unsigned int slot);
bool gi_control_used(struct gi_ctx *cx, unsigned int slot);
bool gi_controls_due(const struct gi_ctx *cx);		/* is there something to clean? */
void gi_controls_clean(struct gi_ctx *cx);		/* the context is current */

/* ---- pass.c ---- */

/*
 * Finish what is over, tell the arbiter, launch wings, clean control blocks. The client's lock is
 * held.
 */
void gi_pass(struct gi_client *c);
bool gi_reap(struct gi_client *c);			/* a pass, unless another thread is at it: false */
void gi_agent_wake(struct gi_client *c);
uint64_t gi_tasks_due(struct gi_client *c, uint64_t now, uint64_t most);	/* how long until something may be, ns */
bool gi_drain(struct gi_client *c, struct gi_ctx *cx, struct gi_image *image, uint64_t timeout_ns);

/* ---- wing.c ---- */

void gi_tasks_release(struct gi_client *c);		/* until tasks->released is lowered */
void gi_follow_window(struct gi_client *c, struct gi_slot *s, unsigned int slot, uint64_t now);
void gi_wing(struct gi_client *c, struct gi_slot *s, unsigned int slot, uint64_t now);	/* one more, if there is room for it */
bool gi_wings_over(const struct gi_slot *s, struct gsched_cl_slot *line);

/* ---- gate.c ---- */

/* What a call of the driver waits for with the context's lock held */
enum gi_waits {
	GI_WAITS_STREAM,		/* what is queued on a stream before it */
	GI_WAITS_DEVICE,		/* all of the context's work */
	GI_WAITS_ALL,			/* that of all contexts, with the locks of all */
};

struct gi_waiting {
	struct gi_client *c;		/* NULL: there is nothing to undo */
	uint64_t closed;		/* bit: the place behind @c in the list of clients */
	enum gi_waits how;
	enum gi_order order;
	uint64_t released;		/* the same */
	bool early;			/* the program had no twin when it began */
};

/* Around such a call, in the current context. @stream: of GI_WAITS_STREAM */
void gi_wait_begin(struct gi_waiting *w, enum gi_waits how, CUstream stream);
void gi_wait_end(struct gi_waiting *w);
bool gi_wait_needed(void);				/* false: the program has had no twin,
	and GI_WAITS_STREAM is for nothing */

/*
 * Around the launch of a twin; waits while the gate is closed to it. What enter returns is for
 * leave.
 */
_Atomic int *gi_gate_enter(struct gi_client *c, struct gi_slot *s, CUstream stream);
void gi_gate_leave(_Atomic int *inside);
/*
 * Until it is opened no launch is under way and no task may need a wing. false: that did not come
 * to pass in GI_QUIET_NS
 */
bool gi_gate_close(struct gi_client *c);
bool gi_tasks_quiet(struct gi_client *c, uint64_t timeout_ns);	/* the same, for those there are */
void gi_gate_open(struct gi_client *c);
/*
 * The same, and nothing is in the context's streams or put there. false: not within @ns, and
 * nothing is closed
 */
bool gi_gate_idle(struct gi_ctx *cx, uint64_t ns);
void gi_gate_busy(struct gi_ctx *cx);
/*
 * The task in @slot, whose stream is set, gets a done gate. false: then its wings might not come
 * through
 */
bool gi_gate_take(struct gi_client *c, unsigned int slot);
/*
 * Another stream is about to wait for an event: returns when the gates leave it a queue, after a
 * second at most
 */
void gi_gate_spare(struct gi_client *c);

/* ---- save.c ---- */

size_t gi_save_stride(const struct gi_form *form, const struct gi_slot *s);
void gi_save_take(struct gi_slot *s, size_t size);	/* sets s->save; the context is current */
void gi_save_put(struct gi_slot *s, bool lost);		/* @lost: workers may still touch it */
void gi_save_release(struct gi_ctx *cx);		/* before the context goes */

/* ---- window.c ---- */

/* How many workers of weight 1024 / @m fit into @window */
unsigned int gi_places(const struct gi_client *c, uint64_t window, unsigned int m);
void gi_ranges_use(struct gi_slot *s, unsigned int slot);	/* s->arg is filled but for them */
CUresult gi_ranges_zero(const struct gi_slot *s, CUstream stream);	/* in front of the launch */

#endif /* GI_TASK_H */
