/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a rewritten kernel, the process that launches it and the arbiter's page agree on.
 *
 * A rewritten kernel "K" is the entry "K" GSR_SUFFIX. It has K's parameters and one more at the
 * end, struct gsr_launch by value (align 16); in front of that, if K names texture or surface
 * references, a handle (u64) for each. It is launched with any number of thread blocks in x (the
 * workers; y = z = 1), K's block size and K's dynamic shared memory, behind which the twin may need
 * more (gsr_dynamic_shared()). Offsets below are written into PTX by the rewriter, so they are
 * fixed by assertion.
 *
 * What a worker does. Thread 0 starts for all and fetches first, then the first warp to finish
 * does, in a resumable twin thread 0; the others wait at a barrier and read the result from shared
 * memory. The thread that fetched nothing leaves for all.
 *  1. Start: claim a position. By rank: the worker claims a place on its SM, a clear bit of the
 *     lower half of control.sm[%smid], the lowest one, but with GSR_LAUNCH_WHOLE another one is
 *     tried first, so that not all compete for it. The task's first worker on the SM also claims a
 *     rank for it, a clear bit of control.ranks below the relay / 1024, rounded up, and stores
 *     it with GSR_RANK_KNOWN to the upper half of the word, where later workers read it.
 *     position = rank * 1024 + place * weight. By index (GSR_LAUNCH_BY_INDEX, of twins made with
 *     gsr_options.modes): the worker claims a clear bit of control.sm (64 a word) below relay /
 *     weight. position = index * weight. The search for a rank or an index starts at launch.first +
 *     %ctaid.x and wraps. If none is free the position is one that no window includes. So a window
 *     counts the SMs, or the workers, that are there. The worker that sets control.started stamps
 *     stat.start_ns and stores the relay's window to stat.seen_limit.
 *  2. Scheduling point: load the window and its expiry (16 bytes, one L2 access) from
 *     control.copy[%ctaid.x & last_copy]. With GSR_LAUNCH_WHOLE the launcher has initialised the
 *     copies; else a worker that starts fills its copy from control.relay and control.next_poll. If
 *     %globaltimer is past the expiry, swap that for now + poll_ns; the worker that wins takes
 *     control.relay into its copy. If control.next_poll is past, too, and the swap succeeds there,
 *     it gives the copies new expiries, from now + poll_ns on, poll_ns / 4 apart, and reads the
 *     window from the page (launch.window, host memory). If that has changed, it goes to
 *     control.relay and all copies, and its lower half to stat.seen_limit. A worker whose position
 *     the window excludes leaves early. In the middle of a block-task a worker gives only its
 *     own copy a new expiry. With GSR_LAUNCH_NO_WINDOW the position is one that no window
 *     excludes.
 *  3. Fetch n block-tasks from a counter: i = atom.add(control.counter[k].next, n); at the end of
 *     all counters: leave. n stays if the last fetch took about fetch_ns and the end is far. Else
 *     it aims at fetch_ns of work by the measured time of the last fetch: a power of two, at most
 *     launch.fetch_max, half of an even share of what is left, and four times the last n.
 *     With launch.ranges there are no counters: the grid is cut into launch.workers ranges of
 *     ceil(total / workers) block-tasks. A worker claims one (a bit of ranges.taken) and takes the
 *     n from it: first the range of its own number (position / weight), then those of workers that
 *     the window excludes, as SMGuard remaps them, then any that is free; if there is none it
 *     leaves. A worker that leaves early stores where it stands to ranges.next and gives the range
 *     back.
 *     A resumable twin first resumes a record that waits, if there is one. It fetches new
 *     block-tasks one at a time and takes a free record for each; if none is free this block-task
 *     runs to its end. One that restarts runs the record's block-task from its beginning, and
 *     without polls once it has done so GSR_RESTARTS_MAX times.
 *  4. Run the body for these, then 2. A resumable twin also polls, as in 2, in loops and barriers
 *     of the body. If it must leave, all threads save their state to the record, which waits then,
 *     and the worker leaves early; its block-task is not counted as run.
 *  5. Leave: clear the bit. By rank, the last worker on the SM swaps its word for 0 and clears the
 *     rank's bit, unless another worker has come to the SM, which then keeps the rank. Then, with
 *     release semantics, done = atom.add(control.done, block-tasks that this worker ran). The
 *     worker that brings it to launch.blocks stamps stat.end_ns, stores stat.finished = seq, then
 *     opens the gate by a release: control.gate = seq. The block's other threads wait for it at a
 *     barrier and end with it.
 *     With GSR_LAUNCH_TOGETHER a worker that found nothing more to do ends when none on its SM
 *     still runs: an SM serves its oldest warps first, so blocks of others that came to its
 *     place would stand still behind those.
 *     A worker that left early adds 1 to control.left after everything else and stores the sum to
 *     stat.left, unless another one is doing so (control.telling), which then looks again. With
 *     launch.ranges all workers are added, and those that found nothing to do store the sum, too,
 *     if a range may be free: then launched - left workers are there that may take it.
 *
 * The launcher zeroes the control block before a slot is used again, and only when stat.retired ==
 * seq and all its wings have retired, so no worker of an earlier task can touch it. It initialises
 * relay to the window at launch, and with GSR_LAUNCH_WHOLE the copies, too (gsr_control_init()).
 */
#ifndef GSR_ABI_H
#define GSR_ABI_H

#include <stddef.h>
#include <stdint.h>

#define GSR_SUFFIX		"__gsched"
#define GSR_ABI_VERSION		32	/* part of every cache key: also for other twins */
#define GSR_SMS_MAX		1024
#define GSR_RANGES_MAX		(32 * GSR_SMS_MAX)
#define GSR_COUNTERS		16
#define GSR_BLOCKS_MAX		0x7fffffffu	/* of a grid: block-tasks have numbers of 31 bits */
#define GSR_RELAY_COPIES	32
#define GSR_RANK_KNOWN		0x80000000u

/* struct gsr_launch: the extra parameter */
struct gsr_launch {
	/* what a twin reads by one load stands together, aligned */
	uint64_t control;	/* device address of struct gsr_control */
	uint64_t stat;		/* device address of the task's struct gsched_cl_slot */
	/* device address of the gsched_arb_slot.window word of the task's slot */
	uint64_t window;
	uint32_t grid[3];	/* the original grid: what %nctaid reads */
	uint32_t last_warp;	/* warps of a thread block, less one */
	/* capacity units of one worker: 1024 / blocks per SM, rounded down */
	uint32_t weight;
	uint32_t flags;		/* GSR_LAUNCH_* */
	/* ns of a fetch that keeps its size: gsr_launch_order() */
	uint32_t fetch_least, fetch_most;
	/* workers of a full launch: for the even share; with ranges how many there are, not 0 */
	uint32_t workers;
	uint32_t poll_quarter;	/* ns: of poll_ns, the least time between two reads of the page */
	/* device address of struct gsr_save, one a task; 0: block-tasks are not suspended */
	uint64_t save;
	uint32_t save_stride;	/* bytes of a record, a multiple of 16: gsr_save_stride() */
	uint32_t save_per_sm;	/* records an SM: blocks per SM, at most 32 */
	uint32_t save_sms;	/* SMs that have records: above every %smid */
	/*
	 * SMs, with GSR_LAUNCH_BY_INDEX workers, of the task that are there already, as far as the
	 * launcher knows
	 */
	uint32_t first;
	/* device address of struct gsr_ranges, one a task; 0: the counters */
	uint64_t ranges;
	/*
	 * The order in which block-tasks are fetched (gsr_launch_order()). They lie in rows of
	 * 2^row_shift * counters, and so many rows as a column is deep are a stripe. Counter N has
	 * columns N, N + counters, ... of the first stripe, then those of the second, and so on;
	 * each fetch stays in a column. Position P of counter N is block-task
	 * ((P & stripe_mask) | (P & row_mask) << row_shift | (P >> column_shift & width_mask)) *
	 * counters + N. What is behind the @positions of each counter that lie in stripes is dealt
	 * in turns, one by one. In strict order there is one counter and one column, the grid.
	 */
	/* in ids: from row to row, or in strict order to the next block-task */
	uint32_t step[3];
	uint32_t positions;
	/* counters is a power of two; last_counter that less one */
	uint32_t last_counter, counters;
	uint32_t rows, row_mask;
	uint32_t row_shift, column_shift;
	uint32_t width_mask, stripe_mask;
	uint32_t fetch_first;	/* block-tasks of a worker's first fetch, a power of two */
	struct {
		uint32_t factor, shift;	/* n / grid[i] is (2n * factor >> 32) >> shift, n < 2^31 */
	} divide[2];
	uint32_t last_copy;	/* of the relay's, a power of two less one: gsr_launch_order() */
	uint32_t blocks;	/* of the grid */
	uint32_t seq;		/* the task's number */
	float fetch_ns;		/* work to aim at in one fetch; whole */
	float fetch_max;	/* most block-tasks of one fetch; whole */
	/* batch size: blocks / 2 workers; -counters / 2 workers */
	float half, share;
	/* block-tasks of each counter; -3 workers / counters */
	float each, ahead;
	uint32_t half_column;	/* bits of a float: half of the rows of a column; 0: no columns */
	/* clocks of an SM between two polls in the middle of a block-task, at least */
	uint32_t poll_clocks;
};

/* The same in all launches of a task, but for GSR_LAUNCH_NO_WINDOW and GSR_LAUNCH_WHOLE */
#define GSR_LAUNCH_NO_WINDOW	0x80000000u	/* ignore the window: never leave early */
/* Only of twins that were made with gsr_options.modes, and so gsr_launch.ranges */
/* the window counts workers, not the SMs that the task is on */
#define GSR_LAUNCH_BY_INDEX	4u
/* a task's first launch, with the whole device for its window: no place is worse than another */
#define GSR_LAUNCH_WHOLE	16u
/* not by index: workers leave an SM together when the work is at its end */
#define GSR_LAUNCH_TOGETHER	8u

/*
 * Where a resumable twin keeps block-tasks that were left in their middle. Zero before the task's
 * first launch, and by itself zero again at the task's end. Behind it the records: number smid *
 * save_per_sm + bit, save_stride bytes each: struct gsr_record, shared memory (the kernel's static,
 * then dynamic), then 32-bit words by [word][thread].
 */
struct gsr_save {
	uint32_t waiting_count;	/* bits set in waiting that nobody has claimed */
	uint8_t pad0[124];
	uint32_t taken[GSR_SMS_MAX];	/* records in use, by SM */
	uint32_t waiting[GSR_SMS_MAX];	/* of these, left by their worker */
};

/*
 * The ranges of a task without a counter. Zero before the task's first launch, but for next, which
 * has launch.workers elements.
 */
struct gsr_ranges {
	uint32_t taken_count;	/* bits set in taken, or fewer */
	uint8_t pad0[124];
	uint64_t taken[GSR_RANGES_MAX / 64];	/* somebody has it, or it is done */
	uint64_t left[GSR_RANGES_MAX / 64];	/* somebody has left it: next says where */
	uint64_t next[];
};

struct gsr_record {
	uint32_t ctaid[4];	/* .w: block-tasks of the fetch, this one included */
};

/*
 * struct gsr_control: device memory, 128-byte aligned, one a slot. Hot words on lines of their own
 */
struct gsr_control {
	uint64_t relay;		/* the window as last read from the page */
	uint64_t next_poll;	/* %globaltimer of the next read */
	uint8_t pad0[112];
	uint32_t exhausted;	/* counters that are at their end, one bit each */
	uint8_t pad1[124];
	uint32_t done;		/* block-tasks done, counted once a worker */
	uint32_t pad_done;
	uint32_t gate;		/* seq when all are done: cuStreamWaitValue32 waits for it */
	uint32_t started;
	uint32_t left;		/* workers that left early */
	uint32_t telling;	/* one of them stores that to stat.left, or is to look again */
	uint8_t pad2[104];
	uint64_t ranks[GSR_SMS_MAX / 64];	/* taken, one bit each */
	/*
	 * By %smid: places taken in the lower half, GSR_RANK_KNOWN | the SM's rank in the upper
	 * half, 0 not yet known. By index: indexes taken, 64 a word
	 */
	uint64_t sm[GSR_SMS_MAX];
	struct {
		uint64_t next;	/* its next position */
		uint8_t pad[120];
	} counter[GSR_COUNTERS];
	/*
	 * Where workers look from their second look on, by %ctaid.x: with one line for all, that
	 * line is what they wait for
	 */
	struct {
		uint64_t window;
		uint64_t until;		/* %globaltimer of the next read of the page */
		uint8_t pad[112];
	} copy[GSR_RELAY_COPIES];
};

#ifdef __cplusplus
#define GSR_ASSERT(c) static_assert(c, #c)
#else
#define GSR_ASSERT(c) _Static_assert(c, #c)
#endif
GSR_ASSERT(sizeof(struct gsr_launch) == 208);
GSR_ASSERT(offsetof(struct gsr_launch, stat) == 8);
GSR_ASSERT(offsetof(struct gsr_launch, grid) == 24);
GSR_ASSERT(offsetof(struct gsr_launch, weight) == 40);
GSR_ASSERT(offsetof(struct gsr_launch, flags) == 44);
GSR_ASSERT(offsetof(struct gsr_launch, save) == 64);
GSR_ASSERT(offsetof(struct gsr_launch, first) == 84);
GSR_ASSERT(offsetof(struct gsr_launch, ranges) == 88);
GSR_ASSERT(offsetof(struct gsr_launch, step) == 96);
GSR_ASSERT(offsetof(struct gsr_launch, fetch_first) == 144);
GSR_ASSERT(offsetof(struct gsr_launch, blocks) == 168);
GSR_ASSERT(offsetof(struct gsr_launch, seq) == 172);
GSR_ASSERT(offsetof(struct gsr_launch, fetch_ns) == 176);
GSR_ASSERT(offsetof(struct gsr_launch, half_column) == 200);
GSR_ASSERT(offsetof(struct gsr_save, waiting) == 4224);
GSR_ASSERT(offsetof(struct gsr_ranges, next) == 8320);
GSR_ASSERT(offsetof(struct gsr_control, exhausted) == 128);
GSR_ASSERT(offsetof(struct gsr_control, done) == 256);
GSR_ASSERT(offsetof(struct gsr_control, gate) == 264);
GSR_ASSERT(offsetof(struct gsr_control, left) == 272);
GSR_ASSERT(offsetof(struct gsr_control, ranks) == 384);
GSR_ASSERT(offsetof(struct gsr_control, sm) == 512);
GSR_ASSERT(offsetof(struct gsr_control, counter) == 8704);
GSR_ASSERT(offsetof(struct gsr_control, copy) == 10752);

#endif /* GSR_ABI_H */
