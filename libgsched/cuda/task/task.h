/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tasks: a launch takes a slot out of free_mask and owns it until it puts the bit into running; from there whoever holds
 * the client's lock and makes a pass owns it, the agent as a rule, until the pass puts it back into free_mask.
 */
#ifndef GI_TASK_H
#define GI_TASK_H

#include "code/code.h"

/* How a stream's work is ordered with other streams' */
enum gi_order { GI_ORDER_NONE, GI_ORDER_BLOCKING, GI_ORDER_LEGACY };

/* A task in flight: written by the launch, then by the agent. */
struct gi_slot {
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
	bool submitted, completed, timed;
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
	CUevent begin, end;		/* of begin_cx */
	struct gi_ctx *event_cx;
};

/* A client's tasks */
struct gi_tasks {
	_Atomic uint64_t free_mask, running;
	_Atomic uint64_t gated;		/* slots whose task has a done gate */
	/*
	 * gate.c: launches of twins under way, on blocking and other streams; what holds them
	 * back
	 */
	_Atomic int launching, aside, closed, copies, own_copies, barriers;
	_Atomic int released;		/* windows are ignored, so that tasks end */
	_Atomic bool idle;		/* the agent sleeps until woken */
	_Atomic bool unattended;	/* the agent has ended */
	int wake;			/* eventfd */
	_Atomic uint64_t finished;	/* tasks finished: progress */
	_Atomic uint64_t stuck_at;	/* finished when a launch waited in vain for a slot; +1 */
	struct gi_slot slot[GSCHED_SLOTS];
};

bool gi_tasks_new(struct gi_client *c);			/* makes c->tasks */
void gi_tasks_free(struct gi_client *c);

/* ---- slot.c ---- */

/* A slot for a launch, of a twin or not; -1: there is none, also after a while. */
int gi_slot_claim(struct gi_client *c, const struct gi_ctx *cx, bool twin);
/* Nothing of the task is on the device. @lost: workers may still touch its save area */
void gi_slot_free(struct gi_client *c, unsigned int slot);
void gi_slot_unclaim(struct gi_client *c, unsigned int slot, uint32_t seq, bool lost);
/* How a task is told to the arbiter */
void gi_to_task(struct gsched_task *task, const struct gi_slot *s, unsigned int slot);

/* ---- pass.c ---- */

/* Finish what is over, tell the arbiter, launch wings, clean control blocks. The client's lock is held. */
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
/* Until it is opened no launch is under way and no task may need a wing. false: that did not come to pass in GI_QUIET_NS */
bool gi_gate_close(struct gi_client *c);
bool gi_tasks_quiet(struct gi_client *c, uint64_t timeout_ns);	/* the same, for those there are */
void gi_gate_open(struct gi_client *c);
/* The same, and nothing is in the context's streams or put there. false: not within @ns, and nothing is closed */
bool gi_gate_idle(struct gi_ctx *cx, uint64_t ns);
void gi_gate_busy(struct gi_ctx *cx);
/* The task in @slot, whose stream is set, gets a done gate. false: then its wings might not come through */
bool gi_gate_take(struct gi_client *c, unsigned int slot);

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
