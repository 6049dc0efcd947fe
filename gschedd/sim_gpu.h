/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * gschedctl simulate: the device. SMs hold thread blocks; if an SM can host M blocks of a kernel,
 * each takes an M-th of it. Two kinds of launches share the device:
 * - Preemptible ones give ranks to the SMs that they are on, and have workers only inside their
 *   window. A worker fetches block-tasks until none is left or it is outside the window, which it
 *   checks at the end of each block-task. Where an SM with room has a rank inside the window, or
 *   can have one, a worker starts (a wing).
 * - Opaque ones have a block per block-task, on any SM with room. Until all blocks of one have
 *   started, no later launch gets any room: leftover dispatch, as in hardware.
 * Without MPS one program at a time has the device. With time slices the device switches in the
 * middle of block-tasks, which resume later: a program keeps the device until its slice is over and
 * another program has work, or until it has no work. Then the next one in rotation gets it.
 *
 * Launches are served in order of arrival. The time of a block-task is constant: neither its
 * neighbours on the SM nor others on the device slow it down.
 */
#ifndef GSCHED_SIM_GPU_H
#define GSCHED_SIM_GPU_H

#include "sim_queue.h"
#include "sim.h"

/* The capacity of an SM, divisible by all numbers of blocks that an SM may host */
#define SIM_SM_ROOM	144403552893600ULL

struct sim_launch {
	const struct sim_kernel *kernel;
	uint32_t owner;			/* index of its program */
	uint64_t arrived, started;	/* started: when its first block-task began */
	uint64_t block_ns;
	uint64_t left, running;		/* block-tasks: not fetched yet; running */
	bool opaque;
	uint32_t window;		/* as seen by workers */
	/* while it is on the device, per SM: workers; its rank, if there are any; and per rank */
	uint32_t *workers, *rank;
	bool *ranked;			/* an SM has this rank */
	/* used by the owner */
	uint32_t slot, seq;		/* slot GSCHED_SLOTS: not submitted yet */
	uint32_t sent, seen;		/* changes of its window: sent; arrived */
	uint32_t events;		/* pending events that refer to it */
	bool granted, over;
	struct sim_launch *next;	/* of the same program */
	/* used by the device */
	struct sim_launch *device_next, *device_prev;
};

struct sim_gpu {
	struct sim_queue *queue;
	uint32_t sms;
	uint64_t *room;			/* free capacity per SM */
	uint32_t *new;			/* scratch: blocks to start per SM */
	struct sim_launch *first, *last;	/* in order of arrival */
	uint64_t running;		/* block-tasks */
	double *used;			/* per program, SMs times ns */
	bool changed;			/* there may be room for a waiting launch */
	/* without MPS, one program at a time has the device */
	bool exclusive;
	uint32_t owner;			/* UINT32_MAX: none yet */
	uint64_t switch_ns, ready;	/* duration of a switch; end of the last one */
	uint32_t n_programs;
	bool sliced;
	uint64_t *slice;		/* per program, ns */
	uint64_t n_switches;
	uint64_t slice_end;		/* time of the pending SIM_EV_SLICE; 0: none */
	struct sim_queue paused;	/* SIM_EV_BLOCKS, with the remaining time as time */
};

/* 0, or -1: out of memory. The caller owns @queue. */
int sim_gpu_init(struct sim_gpu *gpu, struct sim_queue *queue, uint32_t sms, uint32_t n_programs);
void sim_gpu_free(struct sim_gpu *gpu);

/* Puts it on the device, until sim_gpu_blocks_end() returns true. -1: out of memory. */
int sim_gpu_launch(struct sim_gpu *gpu, struct sim_launch *launch);
void sim_gpu_window(struct sim_gpu *gpu, struct sim_launch *launch, uint32_t window);
/* Handles SIM_EV_BLOCKS. True: the launch has ended and is off the device. */
bool sim_gpu_blocks_end(struct sim_gpu *gpu, struct sim_launch *launch, uint32_t sm, uint32_t n,
			uint64_t now);
/* After all events at @now: starts waiting work where there is room. */
void sim_gpu_fill(struct sim_gpu *gpu, uint64_t now);
/* Handles SIM_EV_SLICE. */
void sim_gpu_slice(struct sim_gpu *gpu, uint64_t value);
/* At the end of the run: subtracts what the pending SIM_EV_BLOCKS counts beyond @now. */
void sim_gpu_cut(struct sim_gpu *gpu, const struct sim_event *event, uint64_t now);

#endif /* GSCHED_SIM_GPU_H */
