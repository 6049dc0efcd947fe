/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The worker's state: the layout of the shared variable PREFIX "task" of a twin. The runtime writes
 * it, and the passes make the body read its ids from there.
 */
#ifndef GSR_TASK_H
#define GSR_TASK_H

/* Offsets */
#define GSR_TASK_CTAID		0	/* u32[4]; .w: twice the block-tasks from this one on, 0 leave, + 1 if in GSR_TASK_ASIDE */
#define GSR_TASK_RESUME		2	/* .w of one that is gone on with in its middle, in resumable twins; others there: 1 */
#define GSR_TASK_NCTAID		16	/* u32[4] */
#define GSR_TASK_TOTAL		32	/* u64 */
#define GSR_TASK_RAN		40	/* u64 */
#define GSR_TASK_INDEX		48	/* u64: about where the last fetch was; of a static range the next one */
#define GSR_TASK_NEAR		56	/* u64: from which one on each fetch is reckoned anew; of a static range the end */
#define GSR_TASK_POSITION	64	/* u32 */
#define GSR_TASK_BIT		68	/* u32: our bit in a word of control.sm, 64 none */
#define GSR_TASK_TIME		72	/* u32: %globaltimer of the last fetch */
#define GSR_TASK_COUNT		76	/* u32: block-tasks asked for then */
#define GSR_TASK_EARLY		80	/* u32: the window excluded us */
#define GSR_TASK_WARPS		84	/* u32: of the block, less one */
#define GSR_TASK_WORD		88	/* u32: offset of that word in struct gsr_control */
#define GSR_TASK_COME		92	/* u32: warps that have come to the end of the fetch */
#define GSR_TASK_ASIDE		96	/* u32[4] */
#define GSR_TASK_REST		112	/* u32: position of what is left of the last fetch, which another column holds */
#define GSR_TASK_REST_COUNT	116	/* u32 */
#define GSR_TASK_RELAY		120	/* u32: offset in struct gsr_control of the window that we look at; 0, at the first look, the relay itself */
#define GSR_TASK_COUNTER	124	/* u32: the one it is from */
#define GSR_TASK_RANGE		124	/* u32: number of the static range; in the upper half how often we have looked for one */
#define GSR_TASK_SIZE		128
/* of resumable twins */
#define GSR_TASK_RECORD		96	/* u64: address of the record of what runs */
#define GSR_TASK_RECORD_SM	104	/* u32 */
#define GSR_TASK_RECORD_MASK	108	/* u32: its bit there; 0 none */
#define GSR_TASK_FLAG		112	/* u32: 1: all threads are to leave */
#define GSR_TASK_LOOK		116	/* u32: 2: the first warp is to look whether it is time to poll; 1 as in FLAG */
#define GSR_TASK_DEADLINE	120	/* u32: %clock when it is */

#define GSR_STR_(x)		#x
#define GSR_STR(x)		GSR_STR_(x)

#endif /* GSR_TASK_H */
