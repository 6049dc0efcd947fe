/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The direct launch (gi_direct()), the path of most launches: it does not ask the arbiter, uses no
 * slot and sets nothing up. Between two launches a program fills the caches with its own data, so
 * the cost of this path is the cache lines that it touches, not its instructions. It reads one line
 * each of gi_hot, the thread's last context, the client and both pages, and its code is contiguous.
 *
 * While the program reports its activity, most launches are direct all the same. The first one
 * after a pause is tracked, that is, paced as all launches are while bands take turns: pace.h.
 */
#ifndef GI_DIRECT_H
#define GI_DIRECT_H

#include "code/code.h"
#include "code/tuning.h"
#include "task/task.h"

/* Not inlined, it takes a fifth more instructions */
#define GI_INLINE	inline __attribute__((always_inline))

#define GI_TRACKED	(GSCHED_ARB_REPORT | GSCHED_ARB_TIMED)

/* Where only some launches are tracked: whether the next one may go untracked. */
static inline bool gi_may_skip_tracking(const struct gi_client *c)
{
	return (int32_t)(atomic_load(&c->track_at) - atomic_load(&c->untracked)) > 0;
}

/*
 * Whether the arbiter and the rest of the band need not know of a launch. Without MPS, others
 * compete with the program in time only. In an MPS band this holds while the program is alone there
 * or the arbiter permits it, but not for kernels that may have to run as twins, which a window
 * confines. Under that permission one launch in GI_NOTE_EVERY goes to gi_launch() nevertheless,
 * which notes whether the hardware prefers its stream.
 */
#define GI_NOTE_EVERY	512

/* Consecutive launches that the hardware prefers are being counted, up to GI_PRIORITISED. */
static inline bool gi_counts_priority(const struct gi_client *c)
{
	unsigned int n = atomic_load_explicit(&c->prioritised, memory_order_relaxed);

	return n && n < GI_PRIORITISED;
}

/* Who sees to it that a launch has the priority that it is to have (launch/raise.h) */
enum gi_priority {
	GI_BY_CALLER,
	GI_BY_STREAM,			/* its stream, unless the group's has changed since */
	GI_BY_LAUNCH,			/* nobody: in a group with a priority it must be raised */
};

static GI_INLINE bool
gi_need_not_report(const struct gi_client *c, uint32_t flags, enum gi_priority by)
{
	if (__builtin_expect(flags & GSCHED_ARB_PRIVATE, 1))
		return true;
	if ((by != GI_BY_CALLER && gi_streams_differ(c)) ||
	    (by == GI_BY_LAUNCH && gi_load(&c->arb->header.priority)))
		return false;
	return gi_load(&c->arb->header.lease) == GSCHED_LEASE_FREE || flags & GSCHED_ARB_ALONE ||
	       (flags & GSCHED_ARB_PASS && gi_load(&c->cl->header.passed) % GI_NOTE_EVERY &&
		!gi_counts_priority(c));
}

static GI_INLINE bool
gi_may_be_direct(const struct gi_client *c, uint32_t flags, uint32_t not, enum gi_priority by)
{
	if (flags & not && !atomic_load_explicit(&c->untimed, memory_order_relaxed))
		return false;
	if (flags & (GSCHED_ARB_CLOSED | GSCHED_ARB_PACED) || !gi_need_not_report(c, flags, by))
		return false;
	if (!(flags & GI_TRACKED))
		return gi_time_share(&c->arb->header) >= GSCHED_SHARE_ALL;
	return gi_may_skip_tracking(c);
}

/* ---- short.c ---- */

/* What is known of a short kernel that is launched in the context gi_last; NULL: nothing. */
const struct gi_short *gi_short_find(const struct gi_shape_of *of);

/*
 * The program may have to run some kernels as twins. Not while others compete in time only and it
 * has no quota, nor if none of its kernels can have one.
 */
static GI_INLINE bool gi_may_need_twins(const struct gi_client *c, uint32_t flags)
{
	return atomic_load_explicit(&gi_hot.rewritable, memory_order_relaxed) &&
	       (!__builtin_expect(flags & GSCHED_ARB_PRIVATE, 1) ||
		gi_time_share(&c->arb->header) < GSCHED_SHARE_ALL);
}

/* In temporal mode others are evicted for clients that submit their tasks. */
static inline bool gi_must_submit(const struct gi_client *c)
{
	return gi_load(&c->arb->header.mode) == GSCHED_MODE_TEMPORAL &&
	       gi_load(&c->arb->header.lease) != GSCHED_LEASE_FREE;
}

/*
 * Brackets the driver's own call. @not: GSCHED_ARB_TIMED if the launch makes the times of thread
 * blocks unknown, which has to be noted where they are not yet; else 0. NULL: the launch must go
 * through gi_launch(), or get its priority by gi_raise(). The launch is counted in c->unpaced until
 * the call returns, and the arbiter's flags must be the same after counting it. So once the arbiter
 * has set its flags, a launch is visible either in that count or on the device. @of: the kernel;
 * NULL: unknown, which is cheaper and tried first.
 */
static GI_INLINE struct gi_client *
gi_direct_begin(uint32_t not, enum gi_priority by, const struct gi_shape_of *of)
{
	const struct gi_short *s = NULL;
	struct gi_client *c;
	CUcontext handle;
	uint32_t flags;

	if (!__atomic_load_n(&gi_hot.begun, __ATOMIC_ACQUIRE) ||
	    atomic_load_explicit(&gi_hot.captures, memory_order_relaxed) ||
	    atomic_load_explicit(&gi_hot.ordered, memory_order_relaxed))
		return NULL;
	c = gi_last.client;
	/*
	 * The arbiter's pages stay mapped after its death, and clients are never freed, so no
	 * reference is needed, even if the context is another one by now.
	 */
	if (!c || atomic_load_explicit(&c->gone, memory_order_relaxed) ||
	    atomic_load_explicit(&c->exiting, memory_order_relaxed) ||
	    atomic_load_explicit(&c->stop, memory_order_relaxed) || c->always_resumable)
		return NULL;
	flags = gi_load(&c->arb->header.flags);
	if (gi_may_need_twins(c, flags) && (!of || gi_must_submit(c) || gi_tasks_far_ahead(c, 1)))
		return NULL;
	if (!gi_may_be_direct(c, flags, not, by))
		return NULL;
	if (gi_hot.current(&handle) || handle != gi_last.handle ||
	    atomic_load_explicit(&gi_hot.generation, memory_order_acquire) != gi_last.generation)
		return NULL;
	if (of && gi_may_need_twins(c, flags)) {
		s = gi_short_find(of);
		if (!s)
			return NULL;
	}
	atomic_fetch_add(&c->unpaced, 1);
	if (gi_load(&c->arb->header.flags) != flags) {
		atomic_fetch_sub(&c->unpaced, 1);
		return NULL;
	}
	if (flags & GI_TRACKED)
		atomic_fetch_add(&c->untracked, 1);
	__atomic_fetch_add(&c->cl->header.passed, 1, __ATOMIC_RELAXED);
	if (s)
		gi_count_leased(c, s->ns, s->usage);
	return c;
}

static inline CUresult gi_direct_end(struct gi_client *c, CUresult rc)
{
	atomic_fetch_sub(&c->unpaced, 1);
	return rc;
}

#endif /* GI_DIRECT_H */
