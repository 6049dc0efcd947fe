// SPDX-License-Identifier: LGPL-2.1-or-later
/* Times of originals: timing.h. */
#include <stdlib.h>
#include "launch/flights.h"
#include "launch/timing.h"

struct gi_timings {
	pthread_mutex_t lock;		/* launches only try it */
	_Atomic unsigned int flying;	/* copy of flights.flying, readable without the lock */
	struct gi_flights flights;
	struct gi_timed of[GI_FLIGHTS];
};

bool gi_timings_new(struct gi_client *c)
{
	c->timings = calloc(1, sizeof(*c->timings));
	if (!c->timings)
		return false;
	pthread_mutex_init(&c->timings->lock, NULL);
	return true;
}

/*
 * The time between events includes waiting, so the minimum is the better estimate. A longer time
 * raises it only slowly.
 */
static void update_minimum(_Atomic uint64_t *to, uint64_t x)
{
	uint64_t had = atomic_load_explicit(to, memory_order_relaxed);

	atomic_store_explicit(to, had && had < x ? (7 * had + x) / 8 : x, memory_order_relaxed);
}

static void learn_times(const struct gi_client *c, const struct gi_timed *of, uint64_t ns)
{
	uint64_t room = (uint64_t)c->sms * of->shape->original_m;

	if (!ns || !room)
		return;
	update_minimum(&of->shape->predicted_ns, ns);
	update_minimum(&of->shape->block_ns, ns * room / (of->blocks > room ? of->blocks : room));
	atomic_fetch_add(&of->shape->samples, 1);
}

/* For the report of the task's end, if that is still to come */
static void tell_slot(const struct gi_timed *of, uint64_t ns)
{
	if (!of->slot)
		return;
	atomic_store_explicit(&of->slot->timed_ns, ns, memory_order_relaxed);
	atomic_store_explicit(&of->slot->timed_seq, of->seq, memory_order_release);
}

/* Called with the lock held. */
static void forget_oldest(struct gi_timings *t, const struct gi_timed *of)
{
	gi_flight_forget(&t->flights);
	gi_graph_put(of->graph);
	gi_func_put(of->fn);
}

/* Called with the lock held and the capture mode relaxed. */
static void reap_flights(struct gi_client *c)
{
	struct gi_timings *t = c->timings;
	uint64_t ns;
	int i;

	for (i = gi_flight_poll(&t->flights, &ns); i >= 0; i = gi_flight_poll(&t->flights, &ns)) {
		learn_times(c, &t->of[i], ns);
		tell_slot(&t->of[i], ns);
		forget_oldest(t, &t->of[i]);
	}
	atomic_store(&t->flying, t->flights.flying);
}

CUresult gi_timing_launch(struct gi_client *c, struct gi_ctx *cx, const struct gi_launch *l,
			  CUresult (*forward)(const struct gi_launch *l), const struct gi_timed *of)
{
	/* another thread may begin a capture at any moment; our calls must not invalidate it */
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	struct gi_timings *t = c->timings;
	CUresult rc;
	int i;

	if (pthread_mutex_trylock(&t->lock))
		return forward(l);
	gi_real.cuThreadExchangeStreamCaptureMode(&mode);
	reap_flights(c);
	i = gi_flight_begin(&t->flights, cx, l->stream);
	gi_real.cuThreadExchangeStreamCaptureMode(&mode);
	rc = forward(l);
	gi_real.cuThreadExchangeStreamCaptureMode(&mode);
	if (i >= 0 && !rc && gi_flight_end(&t->flights, l->stream)) {
		t->of[i] = *of;
		gi_func_hold(of->fn);
		gi_graph_hold(of->graph);
		atomic_store(&t->flying, t->flights.flying);
	}
	gi_real.cuThreadExchangeStreamCaptureMode(&mode);
	pthread_mutex_unlock(&t->lock);
	return rc;
}

void gi_timings_poll(struct gi_client *c)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	struct gi_timings *t = c->timings;
	CUcontext before = NULL;

	if (!atomic_load(&t->flying) || pthread_mutex_trylock(&t->lock))
		return;
	gi_real.cuThreadExchangeStreamCaptureMode(&mode);
	gi_real.cuCtxGetCurrent(&before);
	if (t->flights.flying && !gi_real.cuCtxSetCurrent(t->flights.cx->handle)) {
		reap_flights(c);
		gi_real.cuCtxSetCurrent(before);
	}
	gi_real.cuThreadExchangeStreamCaptureMode(&mode);
	pthread_mutex_unlock(&t->lock);
}

void gi_timings_drop(struct gi_client *c)
{
	struct gi_timings *t = c->timings;

	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	while (t->flights.flying)
		forget_oldest(t, &t->of[t->flights.first]);
	atomic_store(&t->flying, 0);
	gi_flights_drop(&t->flights);
	pthread_mutex_unlock(&t->lock);
}
