// SPDX-License-Identifier: LGPL-2.1-or-later
/* Times of thread blocks: blocks.h. */
#include <stdlib.h>
#include <string.h>
#include "code/code.h"
#include "launch/blocks.h"
#include "launch/flights.h"
#include "launch/known.h"
#include "launch/launch.h"

#define BUCKETS		32	/* of the histogram: powers of two of us, rounded up */
#define SAMPLES		256	/* in a round, after which there is an answer, */
#define LONG_SAMPLES	4	/* or so many */
#define LONG_NS		200000000	/* ... with this much time in total */
#define TAIL		64	/* 1/TAIL of the time may be in blocks longer than the answer */
#define STRIDE_NS	10000000	/* host time from one sample to the next, */
#define STRIDE		16	/* or launches, on average, without an answer or with new kernels */
#define STRIDE_MAX	(1 << 30)
#define NEW_SAMPLES	8	/* consecutive ones of known kernels until none is new */
#define SOON_MAX	1024	/* samples of a round that come so soon, at most */
#define UNMEASURED_NS	1000000000	/* no samples for so long after such a launch */
#define SEEN		3	/* launches of a kernel before its minimum counts */

struct gi_blocks {
	_Atomic uint32_t due;		/* the next sample: launches_of() then */
	_Atomic uint64_t sampled_at;	/* host clock of the last sample */
	_Atomic uint64_t unmeasured_at;	/* ... of the last launch that was not measured */
	_Atomic uint32_t us;		/* the answer; 0: unknown */
	pthread_mutex_t lock;		/* protects all below; launches only try it */
	unsigned int new_samples;	/* until none of the kernels is new */
	struct gi_flights flights;	/* samples in flight */
	struct sample {
		uint64_t key, waves;
	} of[GI_FLIGHTS];
	uint32_t random;
	struct gi_known_table known;
	uint64_t time[BUCKETS], all;
	uint64_t all_before;		/* of the round before */
	unsigned int samples, soon;
};

bool gi_blocks_new(struct gi_client *c)
{
	c->blocks = calloc(1, sizeof(*c->blocks));
	if (!c->blocks)
		return false;
	pthread_mutex_init(&c->blocks->lock, NULL);
	c->blocks->random = 1;
	return true;
}

/* Handles do not identify a kernel: the driver reuses them. */
static uint64_t key_of(const struct gi_launch *l, const struct gi_func *fn)
{
	uint64_t key = fn->number * 0x9e3779b97f4a7c15ull;
	unsigned int i;

	for (i = 0; i < 3; i++)
		key = (key ^ ((uint64_t)l->grid[i] << 32 | l->block[i])) * 0x9e3779b97f4a7c15ull;
	return key | 1;
}

static uint32_t launches_of(const struct gi_client *c)
{
	return (uint32_t)__atomic_load_n(&c->cl->header.passed, __ATOMIC_RELAXED);
}

static void set_next(const struct gi_client *c, uint32_t stride, uint64_t now)
{
	atomic_store(&c->blocks->sampled_at, now);
	atomic_store(&c->blocks->due, launches_of(c) + stride);
}

/* At random, since programs repeat themselves. Called with the lock held, at a sample. */
static uint32_t draw_stride(struct gi_blocks *b)
{
	if ((atomic_load(&b->us) && !b->new_samples) || b->soon == SOON_MAX)
		return STRIDE_MAX;
	b->soon++;
	b->random ^= b->random << 13;
	b->random ^= b->random >> 17;
	b->random ^= b->random << 5;
	return 1 + b->random % (2 * STRIDE);
}

/* The number of waves in which the launch's blocks fill the SMs; 0: unknown. */
static uint64_t waves_of(const struct gi_client *c, const struct gi_launch *l,
			 const struct gi_func *fn)
{
	uint64_t blocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2], room;
	int threads = (int)(l->block[0] * l->block[1] * l->block[2]), m = 0;

	gi_real.cuOccupancyMaxActiveBlocksPerMultiprocessor(&m, fn->original, threads, l->shared);
	room = (uint64_t)c->sms * (unsigned int)(m < 0 ? 0 : m);
	return room ? (blocks + room - 1) / room : 0;
}

/* Wakes the agent, which reports the new answer at once. */
static void publish_answer(struct gi_client *c, struct gi_blocks *b, uint32_t us)
{
	if (atomic_exchange(&b->us, us) == us)
		return;
	gi_debug("thread blocks take up to %u us", us);
	if (atomic_load(&c->tasks->idle))
		gi_agent_wake(c);
}

static void begin_round(struct gi_blocks *b)
{
	memset(b->time, 0, sizeof(b->time));
	b->all = 0;
	b->samples = 0;
	b->soon = 0;
}

static void end_round(struct gi_client *c, struct gi_blocks *b)
{
	uint64_t longer = 0;
	int i;

	for (i = BUCKETS - 1; i > 0 && (longer + b->time[i]) * TAIL <= b->all; i--)
		longer += b->time[i];
	publish_answer(c, b, 1u << i);
	/* a launch that was not measured may have come meanwhile */
	if (atomic_load(&c->untimed))
		publish_answer(c, b, 0);
	b->all_before = b->all;
	begin_round(b);
}

/*
 * Whether a round need not go on: so much time is in blocks that take longer than the answer that
 * the rest of the round would not make up for it.
 */
static bool is_outdated(const struct gi_blocks *b)
{
	uint32_t us = atomic_load(&b->us);
	uint64_t longer = 0;
	int i;

	for (i = BUCKETS - 1; us && i > __builtin_ctz(us); i--)
		longer += b->time[i];
	return longer * TAIL > (b->all > b->all_before ? b->all : b->all_before);
}

/* @ns: 0 if unknown. */
static void add_sample(struct gi_client *c, struct gi_blocks *b, const struct sample *of,
		       uint64_t ns)
{
	struct gi_known *k;
	unsigned int i = 0;
	uint64_t us;

	if (!ns || atomic_load(&c->untimed))
		return;
	k = gi_known_find(&b->known, of->key);
	if (!k)
		k = gi_known_add(&b->known, of->key);
	if (k->seen < SEEN)
		b->new_samples = NEW_SAMPLES;
	else if (b->new_samples)
		b->new_samples--;
	/* the first time may include loading the code */
	if (!k->seen++)
		return;
	ns = gi_known_update(k, ns);
	if (k->seen < SEEN)
		return;
	for (us = ns / of->waves / 1000; us >> i && i < BUCKETS - 1; i++)
		;
	b->time[i] += ns;
	b->all += ns;
	if (++b->samples == SAMPLES || (b->samples >= LONG_SAMPLES && b->all >= LONG_NS) ||
	    is_outdated(b))
		end_round(c, b);
}

static void reap_samples(struct gi_client *c, struct gi_blocks *b)
{
	uint64_t ns;
	int i;

	for (i = gi_flight_poll(&b->flights, &ns); i >= 0; i = gi_flight_poll(&b->flights, &ns)) {
		add_sample(c, b, &b->of[i], ns);
		gi_flight_forget(&b->flights);
	}
}

/* Completes flight @i after its launch. Called with the lock held. */
static void finish_sample(struct gi_client *c, struct gi_ctx *cx, const struct gi_launch *l, int i)
{
	struct gi_func *fn = gi_func_get(l->fn, cx);
	struct gi_blocks *b = c->blocks;

	b->of[i] = (struct sample){ fn ? key_of(l, fn) : 0, fn ? waves_of(c, l, fn) : 0 };
	gi_func_put(fn);
	if (!b->of[i].waves || !gi_flight_end(&b->flights, l->stream))
		gi_blocks_unmeasured(c);
}

/* While launches that are not measured come, a sample would be of no use. With the lock held. */
static bool may_sample(struct gi_client *c, struct gi_blocks *b, uint64_t now)
{
	if (!atomic_load(&c->untimed))
		return true;
	atomic_store(&c->untimed, false);
	if (now < atomic_load(&b->unmeasured_at) + UNMEASURED_NS) {
		atomic_store(&c->untimed, true);
		return false;
	}
	begin_round(b);
	return true;
}

CUresult gi_blocks_launch(struct gi_client *c, struct gi_ctx *cx, const struct gi_launch *l,
			  CUresult (*forward)(const struct gi_launch *l))
{
	/* another thread may begin a capture at any moment; our calls must not invalidate it */
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	struct gi_blocks *b = c->blocks;
	uint64_t now;
	CUresult rc;
	int i = -1;

	if (!l->fn) {
		gi_blocks_unmeasured(c);
		return forward(l);
	}
	if (gi_blocks_left(c) || pthread_mutex_trylock(&b->lock))
		return forward(l);
	now = gi_now();
	set_next(c, draw_stride(b), now);
	gi_real.cuThreadExchangeStreamCaptureMode(&mode);
	reap_samples(c, b);
	if (may_sample(c, b, now))
		i = gi_flight_begin(&b->flights, cx, l->stream);
	gi_real.cuThreadExchangeStreamCaptureMode(&mode);
	rc = forward(l);
	gi_real.cuThreadExchangeStreamCaptureMode(&mode);
	if (i >= 0 && !rc)
		finish_sample(c, cx, l, i);
	gi_real.cuThreadExchangeStreamCaptureMode(&mode);
	pthread_mutex_unlock(&b->lock);
	return rc;
}

uint32_t gi_blocks_left(const struct gi_client *c)
{
	int32_t left = (int32_t)(atomic_load(&c->blocks->due) - launches_of(c));

	return left > 0 ? (uint32_t)left : 0;
}

bool gi_blocks_look(struct gi_client *c, uint64_t now)
{
	if (!gi_blocks_asked(c) || now < atomic_load(&c->blocks->sampled_at) + STRIDE_NS)
		return false;
	atomic_store(&c->blocks->due, launches_of(c));
	return true;
}

void gi_blocks_unmeasured(struct gi_client *c)
{
	uint64_t now = gi_now();

	set_next(c, STRIDE_MAX, now);
	atomic_store(&c->blocks->unmeasured_at, now);
	atomic_store(&c->untimed, true);
	publish_answer(c, c->blocks, 0);
}

uint32_t gi_blocks_us(struct gi_client *c)
{
	return atomic_load(&c->blocks->us);
}

void gi_blocks_drop(struct gi_client *c, struct gi_ctx *cx)
{
	struct gi_blocks *b = c->blocks;

	pthread_mutex_lock(&b->lock);
	if (b->flights.cx == cx)
		gi_flights_drop(&b->flights);
	pthread_mutex_unlock(&b->lock);
}
