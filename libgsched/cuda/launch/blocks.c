// SPDX-License-Identifier: LGPL-2.1-or-later
/* Times of thread blocks: blocks.h. */
#include <stdlib.h>
#include <string.h>
#include "code/code.h"
#include "launch/blocks.h"
#include "launch/launch.h"

#define KERNELS		256	/* whose least time is remembered */
#define BUCKETS		32	/* by the power of two of a block's time in us, rounded up */
#define SAMPLES		64	/* until there is an answer */
#define TAIL		64	/* the part of the time in which blocks may be longer than the answer */
#define STRIDE		16	/* launches from one sample to the next, on average, and at least between two looks at its end */

struct gi_blocks {
	_Atomic unsigned int countdown;	/* launches until the next look */
	_Atomic bool other;		/* a launch in this round was not measured */
	_Atomic uint32_t us;		/* the answer, 0 not known */
	pthread_mutex_t lock;		/* everything below; launches do not wait for it */
	struct gi_ctx *cx;		/* whose events these are */
	CUevent begin, end;
	bool flying;			/* they are around a launch */
	uint64_t key, waves;		/* of that launch */
	uint32_t random;
	struct { uint64_t key, ns; } known[KERNELS];	/* ns 0: seen once, perhaps with its code's loading */
	uint64_t time[BUCKETS];
	unsigned int samples;
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

static uint64_t key_of(const struct gi_launch *l)
{
	uint64_t key = (uintptr_t)l->fn;
	unsigned int i;

	for (i = 0; i < 3; i++)
		key = (key ^ ((uint64_t)l->grid[i] << 32 | l->block[i])) * 0x9e3779b97f4a7c15ull;
	return key | 1;
}

static unsigned int stride(struct gi_blocks *b)
{
	b->random ^= b->random << 13;
	b->random ^= b->random >> 17;
	b->random ^= b->random << 5;
	return 1 + b->random % (2 * STRIDE);
}

static bool new_events(struct gi_blocks *b, struct gi_ctx *cx)
{
	if (b->cx == cx)
		return true;
	if (b->cx) {
		gi_real.cuEventDestroy_v2(b->begin);
		gi_real.cuEventDestroy_v2(b->end);
	}
	b->cx = NULL;
	if (gi_real.cuEventCreate(&b->begin, CU_EVENT_DEFAULT))
		return false;
	if (gi_real.cuEventCreate(&b->end, CU_EVENT_DEFAULT)) {
		gi_real.cuEventDestroy_v2(b->begin);
		return false;
	}
	b->cx = cx;
	return true;
}

/* How often the SMs are filled with the launch's blocks; 0 not known */
static uint64_t waves(const struct gi_client *c, struct gi_ctx *cx, const struct gi_launch *l)
{
	uint64_t blocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2], room;
	struct gi_func *fn = gi_func_get(l->fn, cx);
	int m = 0;

	if (fn)
		gi_real.cuOccupancyMaxActiveBlocksPerMultiprocessor(&m, fn->original, (int)(l->block[0] * l->block[1] *
								    l->block[2]), l->shared);
	gi_func_put(fn);
	room = (uint64_t)c->sms * (unsigned int)(m < 0 ? 0 : m);
	return room ? (blocks + room - 1) / room : 0;
}

/* The arbiter acts on the answer, so the agent tells it at once. */
static void answer(struct gi_client *c, struct gi_blocks *b, uint32_t us)
{
	if (atomic_exchange(&b->us, us) != us && atomic_load(&c->tasks->idle))
		gi_agent_wake(c);
}

static void end_round(struct gi_client *c, struct gi_blocks *b)
{
	uint64_t all = 0, longer = 0;
	int i;

	for (i = 0; i < BUCKETS; i++)
		all += b->time[i];
	for (i = BUCKETS - 1; i > 0 && (longer + b->time[i]) * TAIL <= all; i--)
		longer += b->time[i];
	answer(c, b, atomic_exchange(&b->other, false) ? 0 : 1u << i);
	memset(b->time, 0, sizeof(b->time));
	b->samples = 0;
}

static void account(struct gi_client *c, struct gi_blocks *b)
{
	unsigned int at = b->key >> 32 & (KERNELS - 1), i = 0;
	uint64_t ns, us;
	float ms;

	if (gi_real.cuEventElapsedTime(&ms, b->begin, b->end) || ms < 0 || ms > 1e6 || !b->waves)
		return;
	ns = (uint64_t)(ms * 1e6f) + 1;
	if (b->known[at].key != b->key) {
		b->known[at].key = b->key;
		b->known[at].ns = 0;
		return;
	}
	if (b->known[at].ns && b->known[at].ns < ns)
		ns = (15 * b->known[at].ns + ns) / 16;
	b->known[at].ns = ns;
	for (us = ns / b->waves / 1000; us >> i && i < BUCKETS - 1; i++)
		;
	b->time[i] += ns;
	if (++b->samples == SAMPLES)
		end_round(c, b);
}

CUresult gi_blocks_launch(struct gi_client *c, struct gi_ctx *cx, const struct gi_launch *l)
{
	struct gi_blocks *b = c->blocks;
	bool sampled;
	CUresult rc;

	if (!l->fn || l->opaque || l->dependent) {
		gi_blocks_other(c);
		return l->forward(l);
	}
	if (atomic_fetch_sub_explicit(&b->countdown, 1, memory_order_relaxed) - 1 < 2 * STRIDE ||
	    pthread_mutex_trylock(&b->lock))
		return l->forward(l);
	atomic_store_explicit(&b->countdown, stride(b), memory_order_relaxed);
	if (b->flying && gi_real.cuEventQuery(b->end) == CUDA_ERROR_NOT_READY) {
		pthread_mutex_unlock(&b->lock);
		return l->forward(l);
	}
	if (b->flying)
		account(c, b);
	b->flying = false;
	sampled = new_events(b, cx) && !gi_real.cuEventRecord(b->begin, l->stream);
	rc = l->forward(l);
	if (sampled && !rc && !gi_real.cuEventRecord(b->end, l->stream)) {
		b->flying = true;
		b->key = key_of(l);
		b->waves = waves(c, cx, l);
	}
	pthread_mutex_unlock(&b->lock);
	return rc;
}

void gi_blocks_other(struct gi_client *c)
{
	atomic_store(&c->blocks->other, true);
	answer(c, c->blocks, 0);
}

uint32_t gi_blocks_us(struct gi_client *c)
{
	return atomic_load(&c->blocks->us);
}

void gi_blocks_drop(struct gi_client *c, struct gi_ctx *cx)
{
	struct gi_blocks *b = c->blocks;

	pthread_mutex_lock(&b->lock);
	if (b->cx == cx) {
		gi_real.cuEventDestroy_v2(b->begin);
		gi_real.cuEventDestroy_v2(b->end);
		b->cx = NULL;
		b->flying = false;
	}
	pthread_mutex_unlock(&b->lock);
}
