/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The worker's state: the layout of the shared variable PREFIX "task" of a twin. The runtime writes
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
#define GSR_TASK_NCTAID		16	/* u32[4] */
#define GSR_TASK_TOTAL		32	/* u64: block-tasks of the grid */
#define GSR_TASK_RAN		40	/* u64: block-tasks that this worker ran */
/* u64: about where the last fetch was, and from where on each batch size is computed again */
#define GSR_TASK_INDEX		48
#define GSR_TASK_NEAR		56	/* of a static range: next one, end */
#define GSR_TASK_LIMIT		64	/* u32: the least limit that includes it: position + weight */
#define GSR_TASK_BIT		68	/* u32: its bit in a word of control.sm; 64: none */
#define GSR_TASK_TIME		72	/* u32: %globaltimer of the last fetch */
#define GSR_TASK_COUNT		76	/* u32: its batch size */
#define GSR_TASK_EARLY		80	/* u32: the window excluded this worker */
#define GSR_TASK_WARPS		84	/* u32: warps of the thread block, less one */
#define GSR_TASK_WORD		88	/* u32: offset of the word of GSR_TASK_BIT in gsr_control */
#define GSR_TASK_COME		92	/* u32: warps that have finished the last block-task */
#define GSR_TASK_ASIDE		96	/* u32[4] */
/* u32: what is left of the last fetch in another column: its position, and how many */
#define GSR_TASK_REST		112
#define GSR_TASK_REST_COUNT	116
/*
 * u32: offset in gsr_control of this worker's copy of the window; 0: the relay, at the first poll
 */
#define GSR_TASK_RELAY		120
#define GSR_TASK_COUNTER	124	/* u32: the counter to fetch from */
/* u32: number of the static range; in the upper half how often this worker has looked for one */
#define GSR_TASK_RANGE		124
#define GSR_TASK_SIZE		128
/* In resumable twins */
#define GSR_TASK_RECORD		96	/* u64: address of the record of the block-task that runs */
#define GSR_TASK_RECORD_SM	104	/* u32 */
#define GSR_TASK_RECORD_MASK	108	/* u32: its bit there; 0: there is no record */
#define GSR_TASK_FLAG		112	/* u32: 1: all threads must leave */
#define GSR_TASK_LOOK		116	/* u32: 2: the first warp must poll; 1: as FLAG */
#define GSR_TASK_DEADLINE	120	/* u32: %clock of the next poll */

#define GSR_STR_(x)		#x
#define GSR_STR(x)		GSR_STR_(x)

#endif /* GSR_TASK_H */
