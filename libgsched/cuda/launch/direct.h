/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The direct launch, which is what most are (gi_direct()): nobody is asked, there is no slot,
 * nothing is set up. Between two launches a program fills the caches with things of its own, so
 * that what this costs it is the cache lines that it touches, not the instructions: it looks at one
 * line each of gi_hot, the thread's last context, the client and both pages, and lies in one piece
 * itself.
 *
 * Where the program's activity is reported, most launches are direct all the same. Now and then one
 * is looked at, which is paced as all of them are where turns are taken: pace.h.
 */
#ifndef GI_DIRECT_H
#define GI_DIRECT_H

#include "device/device.h"

#define GI_LOOKED	(GSCHED_ARB_REPORT | GSCHED_ARB_TIMED)

/* Where launches are looked at now and then: not this one */
static inline bool gi_needs_no_look(const struct gi_client *c)
{
	return (int32_t)(atomic_load(&c->look) - atomic_load(&c->unlooked)) > 0;
}

/*
 * Without MPS what competes with the program does so in time only. In an MPS band nobody has to
 * know of a launch either, where it is alone or the arbiter gives leave, as long as no kernel of the
 * program has a twin, which a window could hold. There one in GI_HEED_EVERY is for gi_launch() all
 * the same, which notes whether the hardware prefers its stream.
 */
#define GI_HEED_EVERY	128

static inline bool gi_is_unheeded(const struct gi_client *c, uint32_t flags)
{
	if (flags & GSCHED_ARB_PRIVATE)
		return true;
	if (atomic_load_explicit(&gi_hot.rewritable, memory_order_relaxed))
		return false;
	return gi_load(&c->arb->header.lease) == GSCHED_LEASE_FREE || flags & GSCHED_ARB_ALONE ||
	       (flags & GSCHED_ARB_PASS && gi_load(&c->cl->header.passed) % GI_HEED_EVERY);
}

/* @not: flags of the arbiter's under which it is none */
static inline bool gi_may_be_direct(const struct gi_client *c, uint32_t not)
{
	const struct gsched_arb_header *h = &c->arb->header;
	const uint32_t flags = gi_load(&h->flags);

	if (flags & (GSCHED_ARB_CLOSED | GSCHED_ARB_PACED | not) || !gi_is_unheeded(c, flags) ||
	    gi_time_share(h) < GSCHED_SHARE_ALL)
		return false;
	return !(flags & GI_LOOKED) || gi_needs_no_look(c);
}

/*
 * Around the driver's own call. NULL: the launch is for gi_launch(). The launch is counted until
 * the call is over, and whether the arbiter has come to want something is seen after that: so who
 * asks the program for its activity either finds it here or on the device.
 */
static inline struct gi_client *gi_direct_begin(uint32_t not)
{
	struct gi_client *c;
	CUcontext handle;

	if (!__atomic_load_n(&gi_hot.begun, __ATOMIC_ACQUIRE) ||
	    atomic_load_explicit(&gi_hot.captures, memory_order_relaxed) ||
	    atomic_load_explicit(&gi_hot.ordered, memory_order_relaxed) || gi_hot.current(&handle) ||
	    handle != gi_last.handle ||
	    atomic_load_explicit(&gi_hot.generation, memory_order_acquire) != gi_last.generation)
		return NULL;
	c = gi_last.client;
	/* an arbiter's pages stay mapped when it is gone, so nothing has to be held for that */
	if (!c || atomic_load_explicit(&c->gone, memory_order_relaxed) ||
	    atomic_load_explicit(&c->exiting, memory_order_relaxed) ||
	    atomic_load_explicit(&c->stop, memory_order_relaxed) || c->always_resumable ||
	    !gi_may_be_direct(c, not))
		return NULL;
	atomic_fetch_add(&c->unpaced, 1);
	if (!gi_may_be_direct(c, not)) {
		atomic_fetch_sub(&c->unpaced, 1);
		return NULL;
	}
	if (gi_load(&c->arb->header.flags) & GI_LOOKED)
		atomic_fetch_add(&c->unlooked, 1);
	__atomic_fetch_add(&c->cl->header.passed, 1, __ATOMIC_RELAXED);
	return c;
}

static inline CUresult gi_direct_end(struct gi_client *c, CUresult rc)
{
	atomic_fetch_sub(&c->unpaced, 1);
	return rc;
}

#endif /* GI_DIRECT_H */
