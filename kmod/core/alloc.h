/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the allocator notes of groups and clients while it shares out a band's SMs (alloc.c), and
 * band.c while it counts what bands are worth. Part of core.h; nothing here outlives the next run,
 * and but for alloc.c only what shows or checks the last run looks at it.
 */
#ifndef GSCHED_CORE_ALLOC_H
#define GSCHED_CORE_ALLOC_H

/* One of those that share what their parent gets. In whole SMs. */
struct gsc_share {
	struct gsc_share *next;
	u32 lo, hi;			/* least and most it can take */
	/* of lo, what is guaranteed; the rest yields where there is not enough */
	u32 firm;
	u32 weight, got;
};

/* Those that share; what they must and can have together; their weights */
struct gsc_contest {
	struct gsc_share *first, *last;
	u32 lo, hi, firm;
	u64 weights;
};

/* In SMs, of the run whose stamp is in @seen */
struct gsc_group_run {
	u64 seen;
	u64 standby_seen;		/* the last run that looked at gsc_group.standby */
	struct gsc_group *next_level;	/* next active group of the same depth */
	struct gsc_client *below;	/* trim_all(): the least important client below it */
	struct gsc_contest contest;	/* who shares its capacity */
	struct gsc_share share;		/* as one who shares its parent's */
	u32 cap, used, held;		/* max; taken so far; of that, by holds */
	/* wanted below; guaranteed below; of its part, what no hold may take */
	u32 demand, reserve, beside;
	/*
	 * capsm.reserve: claimed by itself in this run; wanted by tasks below, which @demand
	 * exceeds by what is claimed for nobody; of the claims, what nobody has
	 */
	u32 claim, asked, kept_free;
	/* some group below claims for nobody; one SM is left for others */
	bool claimed_below, leaves_one;
};

struct gsc_client_run {
	u64 seen;
	struct gsc_client *next;	/* of those with tasks, by rank */
	/* trim_all(): its group at the level that is looked at; the next client below that */
	struct gsc_group *above;
	struct gsc_client *below;
	u32 rank;
	struct gsc_share share;
	/*
	 * in SMs: for its largest task, for all side by side, for an opaque one that runs; as if
	 * nothing opaque ran
	 */
	u32 need, use, fixed, fair;
	/* what its largest task wants, which may be more than it needs */
	u32 full;
	/*
	 * units: the window of its tasks of tier block; what it counts for, that or what its opaque
	 * tasks are granted out of what it got
	 */
	u32 window, units;
	bool closed;			/* a task that can have nothing came by */
};

struct gsc_group_tally {
	u64 seen;			/* the last band that counted its capsm.min */
	u64 weights;			/* of its users, or of a user's clients */
	u32 active;			/* clients here and below */
};

#endif /* GSCHED_CORE_ALLOC_H */
