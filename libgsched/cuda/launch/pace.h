/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Pacing: launches wait for their band's turn, stay within a share of the device's time, or have a
 * bound on the work in flight; and the arbiter learns whether the program has work on the GPU.
 * Nothing of it costs anything while the arbiter's page asks for none of it.
 *
 * Launches are counted in batches. A batch ends with an event on each stream it used, so what is in
 * flight and what it took is known without a word per launch. A batch is closed when it holds about
 * half of the work that may be in flight. The driver is asked something only where one begins or
 * ends: most launches go into an open one.
 *
 * Where only activity is reported, most launches are direct (direct.h) and leave no event. One in
 * some dozens is looked at, and the first after each look of the agent's, so that there is an event
 * behind nearly all that is on the GPU; a thread waits for the rest before the band counts as idle.
 */
#ifndef GI_PACE_H
#define GI_PACE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "device/device.h"

#define GI_BATCHES		4	/* the bound on work in flight is two; the last one's end is kept for its time */
#define GI_BATCH_STREAMS	8	/* streams of a batch with an event of their own; more close the batch */
#define GI_PACE_KERNELS		2048	/* launches whose GPU time is remembered */
#define GI_PACE_WAYS		8	/* places that one of them may have */

struct gi_func;
struct gi_graph;
struct gi_launch;

struct gi_batch {
	struct gi_ctx *cx;		/* its events are this context's; NULL: none were made */
	CUevent begin, end[GI_BATCH_STREAMS];
	uint64_t stream[GI_BATCH_STREAMS];	/* gi_stream_id() */
	unsigned int events, streams;	/* events made; streams used */
	unsigned int launches, target;	/* target: launches until it is closed */
	unsigned int entered;		/* of them those that have yet to leave: it is not over before */
	uint64_t number;		/* never 0 */
	uint64_t opened_ns;		/* host clock */
	uint64_t unmarked_ns;		/* of launches behind its last event, or about that: */
	uint64_t tail_ns;		/* ... sum of the remembered GPU times */
	uint64_t expected_ns;		/* sum of the remembered GPU times, 0 if one is not known */
	bool unknown;			/* of one launch at least the time is not known */
	uint64_t sample;		/* key of its only launch, which is measured; 0 none */
	uint32_t ticket;		/* its launch waits on the GPU until this is in gi_words.sample; 0: it does not */
};

struct gi_pacer {
	pthread_mutex_t lock;		/* everything below but the atomics; nothing waits under it */
	uint64_t batches;		/* opened so far */
	struct gi_batch batch[GI_BATCHES];
	unsigned int first, pending;	/* batches in flight, @first the oldest; the open one is behind them */
	bool open, ended;		/* the batch behind them is open; the one before @first has ended and has its events */
	uint32_t tickets;
	unsigned int turns;		/* batches opened: every so many hold one launch, as a sample */
	uint64_t average_ns;		/* GPU time of a launch; 0 not known */
	/* the share of the device's time, as a bucket of GPU time */
	int64_t balance_ns;
	uint64_t balance_at;		/* host clock; 0: no share was in force */
	struct gi_pace_known {
		uint64_t key, ns;	/* ns 0: seen, not measured yet */
		unsigned int samples;
	} known[GI_PACE_KERNELS];
	unsigned int displaced;		/* of @known: they take turns */
	_Atomic unsigned int in_flight;	/* pending and open batches, for the agent */
	_Atomic unsigned int held;	/* launches that wait */
	_Atomic unsigned int dropping;	/* threads that destroy a context wait for @unknown */
	_Atomic uint64_t last_ns;	/* host clock of the last launch that was looked at */
	_Atomic uint64_t unseen_until;	/* host clock: launches without an event last so long */
	_Atomic uint64_t waiting_since;	/* host clock: the GPU waits for a launch that is measured, 0: it does not */
	uint32_t *waiting_word;
	_Atomic bool watching;		/* the agent is at the word */
	_Atomic bool unknown;		/* what was launched and not looked at may still run */
	_Atomic uint32_t settled;	/* gi_client.unlooked: so many of them have ended */
	uint32_t unlooked;		/* the agent's: how many there were, ... */
	uint64_t unlooked_at;		/* ... and since when: host clock */
};

bool gi_pace_new(struct gi_client *c);			/* makes c->pacer */

/*
 * Around the driver's call of a launch that the arbiter wants paced. enter waits as long as it has to
 * and returns the number of the batch that the launch is in, 0 none, for leave, in the same thread.
 * @graph: what is known of it, NULL nothing, or it is none. @fn: the kernel, NULL it is none, or
 * not known. @shared: the group's share of time counts, as no window holds this launch, which is
 * the original's.
 */
uint64_t gi_pace_enter(struct gi_client *c, struct gi_ctx *cx, const struct gi_launch *l,
		       const struct gi_graph *graph, const struct gi_func *fn, bool shared);
void gi_pace_leave(struct gi_client *c, struct gi_ctx *cx, const struct gi_launch *l, uint64_t batch,
		   bool launched);

/*
 * Let the GPU go on if a measured launch takes too long. The agent, before anything that may wait
 * for the driver.
 */
void gi_pace_watch(struct gi_client *c, uint64_t now);

/*
 * From now on activity is reported: launches until here were not looked at. The agent; locks
 * nothing.
 */
void gi_pace_begin(struct gi_client *c);

/* Account for what has ended, also if no launch follows. The agent; @now UINT64_MAX: none will. */
void gi_pace_look(struct gi_client *c, uint64_t now);

/* What the arbiter is told: GSCHED_ACTIVITY_*. The agent, which has just looked. */
unsigned int gi_pace_activity(struct gi_client *c, uint64_t now);

/* The context is about to be destroyed: its batches go, and their events. */
void gi_pace_drop(struct gi_client *c, struct gi_ctx *cx);

#endif /* GI_PACE_H */
