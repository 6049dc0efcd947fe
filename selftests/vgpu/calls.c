// SPDX-License-Identifier: LGPL-2.1-or-later
/* Entry and exit of driver calls: the library's lock, the contexts' locks, pauses. See calls.h */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "vgpu.h"

static const struct { const char *name; bool each; } holders[] = {
#define X(id, name, each) { name, each },
	VG_HOLDERS(X)
#undef X
};
#define N_HOLDERS (sizeof(holders) / sizeof(holders[0]))

static unsigned int held_by;		/* bits: calls of $VGPU_LOCKS */
static bool launches_block;
static useconds_t load_us;
static bool delays;
static uint64_t delay_seed, delay_max;	/* us */

static bool parse_locks(const char *s)
{
	size_t i, n;

	held_by = 0;
	if (!strcmp(s, "none") || !strcmp(s, "0") || !*s)
		return true;
	for (i = 0; i < N_HOLDERS; i++)
		if (!strcmp(s, "all") || (!strcmp(s, "1") && holders[i].each))
			held_by |= 1u << i;
	if (held_by)
		return true;
	for (; *s; s += n + (s[n] == ',')) {
		n = strcspn(s, ",");
		for (i = 0; i < N_HOLDERS; i++)
			if (strlen(holders[i].name) == n && !strncmp(s, holders[i].name, n))
				break;
		if (i == N_HOLDERS)
			return false;
		held_by |= 1u << i;
	}
	return true;
}

static bool parse_delays(const char *s)
{
	char *end;

	delays = *s;
	if (!delays)
		return true;
	delay_seed = strtoull(s, &end, 0);
	delay_max = 200;
	if (end == s || (*end && *end != ':'))
		return false;
	if (*end == ':') {
		s = end + 1;
		delay_max = strtoull(s, &end, 0);
		if (end == s || *end || delay_max > 1000000)
			return false;
	}
	return true;
}

static bool parse_load(const char *s)
{
	char *end;
	unsigned long us = strtoul(s, &end, 0);

	load_us = (useconds_t)us;
	return !*end && us <= 1000000;
}

void vg_pause_load(void)
{
	if (load_us)
		usleep(load_us);
}

bool vg_launches_block(void)
{
	return launches_block;
}

bool vg_calls_init(void)
{
	const char *locks = getenv("VGPU_LOCKS") ?: "none", *pauses = getenv("VGPU_DELAYS") ?: "";
	const char *blocking = getenv("CUDA_LAUNCH_BLOCKING");

	launches_block = blocking && atoi(blocking);

	if (!parse_locks(locks)) {
		vg_say("$VGPU_LOCKS is \"%s\": give 1, all, none, or names of calls with commas",
		       locks);
		return false;
	}
	if (!parse_delays(pauses)) {
		vg_say("$VGPU_DELAYS is \"%s\": give SEED or SEED:MAX_US, at most a second",
		       pauses);
		return false;
	}
	if (!parse_load(getenv("VGPU_LOAD_US") ?: "")) {
		vg_say("$VGPU_LOAD_US is \"%s\": give microseconds, at most a second",
		       getenv("VGPU_LOAD_US"));
		return false;
	}
	return true;
}

/* splitmix64 */
static uint64_t next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static void delay(void)
{
	static atomic_uint threads;
	static __thread bool known;
	static __thread uint64_t state;
	struct timespec t = { 0 };

	if (!known) {
		uint64_t n = delay_seed + atomic_fetch_add(&threads, 1);

		state = next(&n);
		known = true;
	}
	t.tv_nsec = (long)(next(&state) % (delay_max + 1) * 1000);
	if (t.tv_nsec == 1000000000)
		t = (struct timespec){ .tv_sec = 1 };
	nanosleep(&t, NULL);
}

CUresult vg_enter_any(void)
{
	if (__builtin_expect(delays, false))
		delay();
	pthread_mutex_lock(&vg.lock);
	return CUDA_SUCCESS;
}

/* With no context current there is no device to ask about a fault, but the only one */
static CUresult state(const struct CUctx_st *ctx)
{
	if (!vg.initialized)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (vg.ended)
		return CUDA_ERROR_DEINITIALIZED;
	return ctx ? ctx->gpu->sticky : vg.n_gpus == 1 ? vg.gpu[0].sticky : CUDA_SUCCESS;
}

CUresult vg_enter_device(void)
{
	CUresult r;

	vg_enter_any();
	r = state(vg_current());
	return r ? vg_leave(r) : r;
}

bool vg_await(const struct CUctx_st *ctx, CUresult *r)
{
	bool waited = ctx->held;

	while (ctx->held)
		pthread_cond_wait(&vg.changed, &vg.lock);
	*r = state(ctx);
	return waited;
}

CUresult vg_enter(void)
{
	const struct CUctx_st *ctx = vg_current();
	CUresult r;

	r = vg_enter_device();
	if (!r && ctx)
		vg_await(ctx, &r);
	return r ? vg_leave(r) : r;
}

CUresult vg_enter_ctx(struct CUctx_st **ctx)
{
	CUresult r = vg_enter();

	if (r)
		return r;
	*ctx = vg_current();
	if (!*ctx)
		return vg_leave(vg_current_gone() ? CUDA_ERROR_CONTEXT_IS_DESTROYED :
				CUDA_ERROR_INVALID_CONTEXT);
	if (!(*ctx)->alive)
		return vg_leave(CUDA_ERROR_CONTEXT_IS_DESTROYED);
	return CUDA_SUCCESS;
}

CUresult vg_leave(CUresult r)
{
	pthread_mutex_unlock(&vg.lock);
	if (__builtin_expect(delays, false))
		delay();
	return r;
}

bool vg_holds(enum vg_holder call)
{
	return held_by & 1u << call;
}

void vg_hold(struct CUctx_st *ctx, bool held)
{
	for (struct CUctx_st *c = vg.contexts; c; c = c->next)
		if (!ctx || c == ctx)
			c->held = held;
	pthread_cond_broadcast(&vg.changed);
}

CUresult vg_wait_held(enum vg_holder call, struct CUctx_st *ctx)
{
	bool others = true;
	CUresult r;

	if (!vg_holds(call))
		return vg_wait_ctx(ctx);
	/* all or none, so that two calls that hold several do not wait for each other */
	while (others) {
		others = false;
		for (struct CUctx_st *c = vg.contexts; c && !others; c = c->next)
			others = (!ctx || c == ctx) && vg_await(c, &r);
	}
	vg_hold(ctx, true);
	r = vg_wait_ctx(ctx);
	vg_hold(ctx, false);
	return r;
}

CUresult vg_may_wait(enum vg_holder call, struct CUctx_st *ctx)
{
	return vg_holds(call) ? vg_wait_held(call, ctx) : CUDA_SUCCESS;
}

CUresult vg_wait_room(struct CUstream_st *s)
{
	CUresult r;

	if (!vg_holds(VG_HOLDER_FULL) || s->n_ops < VG_QUEUE_MAX)
		return CUDA_SUCCESS;
	vg_hold(s->ctx, true);
	while (s->n_ops >= VG_QUEUE_MAX)
		pthread_cond_wait(&vg.changed, &vg.lock);
	r = s->ctx->gpu->sticky;
	vg_hold(s->ctx, false);
	return r;
}
