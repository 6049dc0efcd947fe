/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Data races: exec_order.c knows what is ordered, exec_race.c who touched what last. */
#ifndef VGPU_EXEC_RACE_H
#define VGPU_EXEC_RACE_H

#include "exec_priv.h"

#define PLACES_MAX	1024	/* of one block: addresses of flags, locks, counters */
#define WATCH_BLOCKS	8192	/* of one watch */
#define WATCH_MEMORY	(1ull << 30)

struct xlanes {
	uint32_t (*row)[LANES];		/* what each lane knows of its warp's lanes, from barriers
					 * of lanes */
	uint32_t stamp;			/* stale unless it is the order's */
};

/* What those that left a value at this address knew */
struct xplace {
	uint64_t addr;
	uint32_t *row;
};

struct xorder {
	unsigned int n;			/* threads */
	uint32_t stamp;			/* counts barriers of all threads */
	uint32_t *clock;		/* each thread's moment, from 1 */
	uint32_t *base;			/* known to all */
	uint32_t *fence;		/* its moment at its last fence, 0 none */
	uint32_t **row, *row_stamp;
	struct xlanes *warp;
	uint32_t *arrived[BARRIERS];	/* what those knew that have come to a barrier of some
					 * threads */
	bool arrived_any[BARRIERS];
	struct xplace *place;
	unsigned int n_places, places_room;
	bool lost;			/* too much to follow: nothing is said any more */

	/* Of the block, among those of its watch */
	struct vgpu_watch *watch;	/* NULL none */
	uint32_t id;			/* from 1 */
	uint32_t epoch, fenced;		/* counts fences; the last one's, 0 none */
	uint32_t version;		/* changes with fenced and seen */
	uint32_t *seen, n_seen;		/* epochs of other blocks that come before what this one
					 * does now */
	struct page *page;		/* the last one */
};

struct xorder *order_new(unsigned int threads, struct vgpu_watch *watch,
			 const unsigned int ctaid[3]);
void order_free(struct xorder *o);
uint32_t order_known(const struct xorder *o, unsigned int t, unsigned int of);
void order_publish(struct xorder *o, unsigned int t, uint64_t addr, bool shared);
void order_acquire(struct xorder *o, unsigned int t, uint64_t addr, bool shared);

/*
 * exec_watch.c: what the blocks of a launch share. Of blocks without a watch nothing is known in
 * global memory
 */
struct access {
	uint32_t clock, block, epoch, line;
	uint16_t thread;
	uint8_t bytes, kind;			/* of the word, a bit each, none: no access; XA_* */
};

/* Of 4 bytes of memory */
struct cell {
	struct access plain[4];		/* the last plain write: of the word in the first, or of
					 * each byte */
	struct access other[2];		/* reads and atomics since then, the last of two threads */
	uint32_t serial;		/* in shared memory: of the block all this is about */
};

bool watch_block(struct vgpu_watch *w, struct xorder *o, const unsigned int ctaid[3]);
struct cell *watch_cell(struct xorder *o, uint64_t addr);	/* NULL: too many */
const unsigned int *watch_ctaid(const struct vgpu_watch *w, uint32_t block);
void watch_publish(struct xorder *o, uint64_t addr);
void watch_acquire(struct xorder *o, uint64_t addr);

#endif /* VGPU_EXEC_RACE_H */
