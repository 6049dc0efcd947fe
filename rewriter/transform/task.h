/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The worker's state: the layout of the shared variable $#me of a twin. The runtime writes
 * it, and the passes make the body read its ids from there.
 */
#ifndef GSR_TASK_H
#define GSR_TASK_H

/* Offsets */
/*
 * u32[4]: the ids; .w: twice the number of block-tasks from this one on, 0: leave; plus 1 if they
 * are in GSR_TASK_ASIDE. In resumable twins .w is 1, or GSR_TASK_RESUME for one that is resumed.
 */
#define GSR_TASK_CTAID		0
#define GSR_TASK_RESUME		2
/* in twins that restart .w is 1 + how often the block-task has begun again, at most so often */
#define GSR_RESTARTS_MAX	8
#define GSR_TASK_NCTAID		16	/* u32[4]; for functions and resumable twins */
#define GSR_TASK_TIME		32	/* u32: %globaltimer of the last fetch */
#define GSR_TASK_COUNT		36	/* u32: its batch size; 0: there was none */
#define GSR_TASK_INDEX		40	/* u32: position of the last fetch; of a range: next one */
#define GSR_TASK_COUNTER	44	/* u32: the counter of the last fetch */
/* u32: number of the static range; in the upper half how often this worker has looked for one */
#define GSR_TASK_RANGE		44
/* u32: what is left of the last fetch in another column: its position, and how many */
#define GSR_TASK_REST		48
#define GSR_TASK_REST_COUNT	52
/* u64: address of its copy of the window, less that of control.copy */
#define GSR_TASK_RELAY		56
#define GSR_TASK_BIT		64	/* u64: its bit in a word of control.sm; 0: none */
#define GSR_TASK_WORD		72	/* u64: address of that word, less that of control.sm */
/*
 * u32: from which GSR_TASK_INDEX on each batch size is computed again; the end of a static range
 */
#define GSR_TASK_NEAR		80
#define GSR_TASK_LIMIT		84	/* u32: least limit that includes it: position + weight */
#define GSR_TASK_RAN		88	/* u32: block-tasks that this worker ran */
#define GSR_TASK_COME		92	/* u32: warps that have finished the last block-task */
#define GSR_TASK_ASIDE		96	/* u32[4] */
#define GSR_TASK_SIZE		128
/* In resumable twins */
#define GSR_TASK_EARLY		92	/* u32: it leaves early */
#define GSR_TASK_RECORD		96	/* u64: address of the record of the block-task that runs */
#define GSR_TASK_RECORD_SM	104	/* u32 */
#define GSR_TASK_RECORD_MASK	108	/* u32: its bit there; 0: there is no record */
#define GSR_TASK_FLAG		112	/* u32: 1: all threads must leave */
#define GSR_TASK_LOOK		116	/* u32: 2: polls are due at times; 1: as FLAG */
#define GSR_TASK_DEADLINE	120	/* u32: %clock of the next poll */
#define GSR_TASK_WON		124	/* u32: new expiry of who has won a swap */

/* The shared variable PREFIX "phases" (swbarrier.c) */
#define GSR_PHASES_NUMBER	4	/* u32: number of the phase */
/*
 * u32[2]: accumulators for reductions in even and odd phases; the thread that ends a phase clears
 * the next one's
 */
#define GSR_PHASES_SUMS		8

/* A warp's words for software warp sync (warpsync.c): one a lane, then */
#define GSR_WARP_EXITED		128	/* u32: lanes that have exited, or do not exist */
#define GSR_WARP_ABSENT		132	/* u32: lanes that do not exist */
#define GSR_WARP_SIZE		136

#endif /* GSR_TASK_H */
