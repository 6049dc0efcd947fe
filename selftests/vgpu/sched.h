/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The state that the processes on one simulated GPU share, and the decisions on it: which block goes to which SM, and
 * whose blocks may step. Nothing here reads a clock, locks or waits (shm.c does): the caller holds the device's lock, so
 * tests drive every decision by hand.
 *
 * Leftover dispatch, as MPS does it: kernels queue in the order of stream priority, then of launch. Only the first one
 * with blocks left places blocks; the next ones get what it leaves over once all of its blocks are placed.
 * Without MPS every process has the whole device (a plane) to itself and the processes' planes take turns.
 */
#ifndef VGPU_SCHED_H
#define VGPU_SCHED_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VG_SMS_MAX	256
#define VG_PROCS_MAX	32
#define VG_KERNELS_MAX	256	/* kernels with unfinished blocks, of all processes */

struct vg_config {
	uint32_t sms, sm_threads, sm_blocks, sm_regs, sm_smem;
	uint32_t carveout;	/* 1: SMs with resident blocks take only kernels of the same carve-out */
	uint32_t mps;
	uint32_t cc;		/* 90 */
	uint64_t timeslice_ns, mem;
};

/* What one block takes of its SM */
struct vg_need {
	uint32_t threads, regs, smem;
	uint32_t carveout;	/* the split of L1 and shared memory that the kernel wants, bytes */
};

struct vg_sm {
	uint32_t blocks, threads, regs, smem, carveout;
};

/* A kernel at the head of its stream */
struct vg_entry {
	uint32_t used;
	uint32_t proc;
	int32_t priority;	/* lower goes first, as CUDA numbers them */
	uint32_t fresh_blocks;
	uint64_t ticket;
	struct vg_need need;
	uint64_t total, placed, done;
	uint16_t fresh[VG_SMS_MAX];	/* placed, not taken up by the owner's engine yet */
	uint16_t held[VG_SMS_MAX];	/* placed and not done */
};

struct vg_proc {
	pthread_mutex_t alive;	/* robust; held by the process's engine for as long as it lives */
	uint32_t used;
	int32_t pid;
	uint32_t wake;		/* futex: counts reasons to look */
	uint32_t __pad;
	uint64_t mem;		/* device memory allocated */
};

struct vg_device {
	uint32_t magic, size;
	pthread_mutex_t lock;	/* robust */
	struct vg_config config;
	uint64_t tickets;
	uint32_t active;	/* without MPS: the process whose blocks step, VG_NOBODY none */
	uint32_t __pad;
	uint64_t slice_end;
	struct vg_proc proc[VG_PROCS_MAX];
	struct vg_entry entry[VG_KERNELS_MAX];
	struct vg_sm sm[VG_PROCS_MAX][VG_SMS_MAX];	/* with MPS only the first plane */
};
#define VG_NOBODY UINT32_MAX

/* Bits of processes: who has to be woken */
typedef uint32_t vg_procs;
_Static_assert(VG_PROCS_MAX <= 32, "one bit a process");

void vg_sched_init(struct vg_device *d, const struct vg_config *config);	/* not the mutexes */

/* The most blocks of this need on one SM, 0 if it never fits */
unsigned int vg_sched_fit(const struct vg_config *c, const struct vg_need *need);
/* The carve-out that an SM gets for this kernel: @percent of its memory as the program asked, -1: for the most blocks */
uint32_t vg_sched_carveout(const struct vg_config *c, const struct vg_need *need, int percent);

/* A kernel came to the head of its stream. Its entry, or -1: the queue is full. */
int vg_sched_submit(struct vg_device *d, uint32_t proc, const struct vg_need *need, uint64_t blocks, int priority);
/* Place what can be placed now. Returns the processes that got blocks. */
vg_procs vg_sched_dispatch(struct vg_device *d);
/* Take up one placed block: its SM, or -1. */
int vg_sched_take(struct vg_device *d, int entry);
/* A block that was taken up ended: its place is free. */
void vg_sched_done(struct vg_device *d, int entry, unsigned int sm);
/* Forget a kernel: finished, or given up with its blocks. */
void vg_sched_remove(struct vg_device *d, int entry);
/* A process is gone, with all that it held. */
void vg_sched_reap(struct vg_device *d, uint32_t proc);
/* After a process died inside the lock: make the sums right again. */
void vg_sched_repair(struct vg_device *d);

bool vg_sched_has_work(const struct vg_device *d, uint32_t proc);
/*
 * May @proc's blocks step at @now? Without MPS this is also what ends time slices: *@wake gets the process whose turn
 * begins, if any.
 */
bool vg_sched_turn(struct vg_device *d, uint32_t proc, uint64_t now, vg_procs *wake);

#endif /* VGPU_SCHED_H */
