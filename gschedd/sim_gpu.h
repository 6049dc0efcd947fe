/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * gschedctl simulate: the device. SMs hold thread blocks; a block of a kernel of which an SM hosts
 * M takes an M-th of it. Two kinds of launches share it:
 * - Preemptible ones have workers in their window of SMs only. A worker fetches block-tasks until
 *   none is left or its SM is outside the window. It asks at the end of each block-task. Where room
 *   becomes free inside the window, a worker starts (a wing).
 * - Opaque ones have a block for each block-task, on any SM with room. Until all blocks of one have
 *   started, no launch behind it gets anything: leftover dispatch, as the hardware does.
 * Without MPS one program at a time has the device. With time slices it changes in the middle of
 * block-tasks, which go on later: a program keeps the device until its slice is over and another
 * one has work, or until it has none. Then comes the next one in turn.
 *
 * Launches are served in the order in which they came. The time of a block-task is always the same:
 * neither its neighbours on the SM nor on the device slow it down.
 */
#ifndef GSCHED_SIM_GPU_H
#define GSCHED_SIM_GPU_H

#include "sim_queue.h"
#include "sim.h"

/* 1 of an SM, divisible by all numbers of blocks that an SM may host */
#define SIM_SM_ROOM	144403552893600ULL

struct sim_launch {
	const struct sim_kernel *kernel;
	uint32_t owner;			/* index of its program */
	uint64_t arrived, started;	/* when its first block-task began */
	uint64_t block_ns;
	uint64_t left, running;		/* block-tasks: not fetched yet; that run */
	bool opaque;
	uint64_t window;		/* as workers see it */
	uint32_t *workers;		/* on each SM, while it is on the device */
	/* the owner's */
	uint32_t slot, seq;		/* slot GSCHED_SLOTS: not submitted yet */
	uint32_t told, seen;		/* changes of its window, in all and that arrived */
	uint32_t events;		/* that are about it and still to come */
	bool granted, over;
	struct sim_launch *next;	/* of the same program */
	/* the device's */
	struct sim_launch *device_next, *device_prev;
};

struct sim_gpu {
	struct sim_queue *queue;
	uint32_t sms;
	uint64_t *room;			/* free on each SM */
	uint32_t *new;			/* scratch: blocks that start on each SM */
	struct sim_launch *first, *last;	/* in the order in which they came */
	uint64_t running;		/* block-tasks */
	double *used;			/* of each program, SMs times ns */
	bool changed;			/* there may be room for something that waits */
	/* one program at a time has the device, where they do not share it by MPS */
	bool exclusive;
	uint32_t owner;			/* UINT32_MAX nobody yet */
	uint64_t switch_ns, ready;	/* a switch takes; the last one is over */
	uint32_t n_programs;
	bool sliced;
	uint64_t *slice;		/* of each program, ns */
	uint64_t n_switches;
	uint64_t slice_end;		/* for which SIM_EV_SLICE comes, 0 none */
	struct sim_queue paused;	/* SIM_EV_BLOCKS, with what is left of them as time */
};

/* 0, or -1 without memory. @queue is the caller's */
int sim_gpu_init(struct sim_gpu *gpu, struct sim_queue *queue, uint32_t sms, uint32_t n_programs);
void sim_gpu_free(struct sim_gpu *gpu);

/* It is on the device from now on, until sim_gpu_blocks_end() says that it is over. -1 no memory */
int sim_gpu_launch(struct sim_gpu *gpu, struct sim_launch *launch);
void sim_gpu_window(struct sim_gpu *gpu, struct sim_launch *launch, uint64_t window);
/* SIM_EV_BLOCKS came. True: the launch is over and off the device */
bool sim_gpu_blocks_end(struct sim_gpu *gpu, struct sim_launch *launch, uint32_t sm, uint32_t n,
			uint64_t now);
/* After all that happened at @now: what waits starts where there is room */
void sim_gpu_fill(struct sim_gpu *gpu, uint64_t now);
/* SIM_EV_SLICE came */
void sim_gpu_slice(struct sim_gpu *gpu, uint64_t value);
/* The run ends: takes back what SIM_EV_BLOCKS, which is still to come, counted for beyond @now */
void sim_gpu_cut(struct sim_gpu *gpu, const struct sim_event *event, uint64_t now);

#endif /* GSCHED_SIM_GPU_H */
