/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Pacing: makes launches wait for their band's turn, keeps them within a share of the device's
 * time, or bounds the work in flight; and tells the arbiter whether the program has work on the
 * GPU. It costs nothing while the arbiter's page asks for none of these.
 *
 * Launches are counted in batches. A batch ends with an event on each stream that it used, so the
 * work in flight and its GPU time are known without an event per launch. A batch is closed when it
 * holds about half of the work that may be in flight. Most launches join an open batch; the driver
 * is queried only where a batch begins or ends.
 *
 * While only activity is reported, launches are direct (direct.h) and record no event, except for
 * the first after a look of the agent that saw no new ones. A thread waits for the others before
 * the band counts as idle. Under a share of time most launches are direct, too, while the program
 * uses less than its share: they are charged what tracked ones take on average.
 */
#ifndef GI_PACE_H
#define GI_PACE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "device/device.h"
#include "launch/known.h"

/* two are the bound on work in flight; the one that ended last is kept for its time stamps */
#define GI_BATCHES		4
#define GI_BATCH_STREAMS	8	/* streams with an event in one batch; the last closes it */
#define GI_HOLD_US		100	/* poll interval for what other threads and processes do */
#define GI_IDLE_NS		2000000	/* idle: so long without a launch and nothing in flight */
#define GI_SPARE_MAX		256	/* direct launches between batches under a share */

struct gi_func;
struct gi_graph;
struct gi_launch;

struct gi_batch {
	struct gi_ctx *cx;		/* context of the events; NULL: none were created */
	CUevent begin, end[GI_BATCH_STREAMS];
	uint64_t stream[GI_BATCH_STREAMS];	/* gi_stream_id() */
	unsigned int events, streams;	/* events created; streams used */
	unsigned int launches, target;	/* target: the batch is closed at this many launches */
	unsigned int entered;		/* launches before gi_pace_leave(); not over until 0 */
	uint64_t number;		/* never 0 */
	bool drawn;			/* it counts for the mean time of a launch */
	uint64_t opened_ns;		/* when it was opened, host clock */
	/* launches behind the last event: GPU time, with an estimate where none is remembered */
	uint64_t unmarked_ns;
	uint64_t tail_ns;		/* the same, with 0 where none is remembered */
	uint64_t expected_ns;		/* sum of the remembered GPU times of all launches */
	bool unmeasured;		/* no time is remembered for at least one launch */
	uint64_t sample;		/* key of its only launch, which is measured; 0: none */
	/* the launch waits on the GPU until gi_words.sample reaches this; 0: it does not wait */
	uint32_t ticket;
};

struct gi_pacer {
	pthread_mutex_t lock;		/* protects the non-atomic fields; never held to wait */
	uint64_t batches;		/* opened so far */
	struct gi_batch batch[GI_BATCHES];
	unsigned int first, pending;	/* batches in flight: the oldest, and how many */
	bool open;			/* the batch behind those in flight is open */
	unsigned int let_go;		/* launches that waited in vain since a batch ended */
	unsigned int gates;		/* times that these were many */
	bool ended;			/* the batch before @first has ended and has its events */
	uint32_t tickets;
	unsigned int sample_turns;	/* counts batches: one in SAMPLE_EVERY is a sample */
	uint64_t average_ns;		/* average GPU time of a launch; 0: unknown */
	uint64_t span_ns;		/* the same, with what others had of it */
	uint64_t mean_ns;		/* the same, over more launches */
	/* the share of the device's time, as a token bucket of GPU time */
	int64_t balance_ns;
	uint64_t balance_at;		/* host clock of the last refill; 0: no share in force */
	uint32_t charged;		/* so many of gi_client.untracked are in it */
	uint32_t spared;		/* at so many of them a batch is due that was drawn */
	struct gi_known_table known;	/* GPU times of launches */
	_Atomic unsigned int in_flight;	/* pending and open batches, read by the agent */
	_Atomic unsigned int held_launches;	/* launches that wait */
	_Atomic uint64_t last_ns;	/* host clock of the last tracked launch */
	/* host clock: estimated end of launches without an event */
	_Atomic uint64_t unrecorded_until;
	/* host clock: since when the GPU waits for a launch that is measured; 0: it does not */
	_Atomic uint64_t waiting_since;
	uint32_t *waiting_word;
	_Atomic bool watching;		/* the agent may be using @waiting_word */
	_Atomic bool waiting_untracked;	/* a thread waits for untracked launches */
	CUcontext waiting_in;		/* gi_lock: in this context now */
	/* the first so many of gi_client.untracked have ended */
	_Atomic uint32_t untracked_done;
	uint32_t last_untracked;	/* the agent's: gi_client.untracked when it last changed, */
	uint64_t last_untracked_at;	/* ... and when that was: host clock */
};

bool gi_pace_new(struct gi_client *c);			/* makes c->pacer */

/* Whether the arbiter wants this launch to wait for a turn, to be bounded, or to be reported. */
static inline bool gi_needs_pacing(const struct gi_client *c, bool shared)
{
	const struct gsched_arb_header *h = &c->arb->header;

	if (atomic_load_explicit(&c->stop, memory_order_relaxed))
		return false;
	return gi_load(&h->flags) & (GSCHED_ARB_CLOSED | GSCHED_ARB_REPORT | GSCHED_ARB_PACED) ||
	       (shared && gi_time_share(h) < GSCHED_SHARE_ALL);
}

/*
 * Bracket the driver's call of a launch that the arbiter wants paced. gi_pace_enter() waits as long
 * as it has to and returns the number of the launch's batch, or that it has none, for
 * gi_pace_leave() in the same thread. @graph: the graph, NULL if it is none or unknown. @fn: the
 * kernel, NULL likewise. @shared: the launch is subject to the group's share of time, because it is
 * an original, which no window confines. @passed: it has no slot.
 */
uint64_t gi_pace_enter(struct gi_client *c, struct gi_ctx *cx, const struct gi_launch *l,
		       const struct gi_graph *graph, const struct gi_func *fn, bool shared);
void gi_pace_leave(struct gi_client *c, struct gi_ctx *cx, const struct gi_launch *l,
		   uint64_t batch, bool launched, bool passed);

/*
 * Lets the GPU continue if a measured launch takes too long to arrive. The agent calls this before
 * anything that may wait for the driver.
 */
void gi_pace_watch(struct gi_client *c, uint64_t now);

/*
 * Activity is reported from now on; earlier launches were not tracked. Called by the agent; takes
 * no lock.
 */
void gi_pace_begin(struct gi_client *c);
/* For exit: waits until no thread of ours waits in a context, at most @timeout_ns. */
void gi_pace_stop(struct gi_client *c, uint64_t timeout_ns);

/* Accounts for ended batches, even if no launch follows. The agent; @now UINT64_MAX: none will. */
void gi_pace_poll(struct gi_client *c, uint64_t now);

/* The GSCHED_ACTIVITY_* to report. Called by the agent right after gi_pace_poll(). */
unsigned int gi_pace_activity(struct gi_client *c, uint64_t now);

/* Drops the batches and events of a context that is about to be destroyed. */
void gi_pace_drop(struct gi_client *c, struct gi_ctx *cx);

#endif /* GI_PACE_H */
