/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The state that the processes on one simulated GPU share, and the decisions on it: which block
 * goes to which SM, and whose blocks may step. Nothing here reads a clock, locks or waits (shm.c
 * does): the caller holds the device's lock, so tests drive every decision by hand.
 *
 * Leftover dispatch, as MPS does it: kernels queue in the order of stream priority, then of launch.
 * Only the first one with blocks left places blocks; the next ones get what it leaves over once all
 * of its blocks are placed.
 *
 * Processes of one channel group share the SMs in space. A group is one process without MPS, or an
 * MPS server with its clients. Groups share the device in time: each has the whole device (a plane
 * of SMs) to itself in its turns. The run list is in the order of creation. A turn ends with the
 * group's time slice or when the group has no work, in the middle of kernels if need be; the next
 * turn goes to the next group in the list that has work. If that is another group than the one that
 * ran last, nobody's blocks step for the time of a switch.
 */
#ifndef VGPU_SCHED_H
#define VGPU_SCHED_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VG_SMS_MAX	256
#define VG_PROCS_MAX	32
#define VG_GROUPS_MAX	VG_PROCS_MAX
#define VG_KERNELS_MAX	256	/* kernels with unfinished blocks, of all processes */

struct vg_config {
	uint32_t sms, sm_threads, sm_blocks, sm_regs, sm_smem;
	uint32_t carveout;	/* 1: SMs with resident blocks take only kernels of the same
				 * carve-out */
	uint32_t cc;		/* 90 */
	uint32_t __pad;		/* shapes are compared by bytes */
	uint64_t timeslice_ns;	/* of a group whose slice nobody has set */
	uint64_t switch_ns;	/* what a switch from one group to another takes */
	uint64_t mem;
};

/* What one block takes of its SM */
struct vg_need {
	uint32_t threads, regs, smem;
	uint32_t carveout;	/* the split of L1 and shared memory that the kernel wants, bytes */
	uint32_t whole;		/* a cooperative grid: its blocks are placed all at once */
	uint32_t unused;	/* instead of padding */
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
	uint32_t group;		/* in vg_device.group */
	uint32_t feeding;	/* the engine is about to submit: the group has work, if not yet a
				 * kernel */
	uint32_t kernels;	/* entries in use */
	uint64_t mem;		/* device memory allocated */
};

/*
 * A channel group. It exists as long as a process is in it, so there is no count that a dying
 * process could leave wrong.
 */
struct vg_group {
	uint64_t id;		/* order of creation, from 1: the place in the run list. Never used
				 * twice */
	uint64_t key;		/* of its MPS server, VG_NO_MPS: one process without MPS */
	uint64_t slice_ns;
};
#define VG_NO_MPS 0

struct vg_device {
	uint32_t magic, size;
	pthread_mutex_t lock;	/* robust */
	struct vg_config config;
	uint64_t tickets, groups;	/* given out so far */
	uint32_t active;	/* the group whose turn it is, VG_NOBODY none */
	uint32_t alone;		/* no other group had work at the last look: its slices follow each
				 * other */
	uint64_t ran_last;	/* the id of the group that had the last turn, 0 none */
	uint64_t ready_at;	/* end of the switch to the active group */
	uint64_t turn_start;	/* when the active group's blocks first stepped, 0: not yet */
	uint64_t slice_end;
	struct vg_proc proc[VG_PROCS_MAX];
	struct vg_group group[VG_GROUPS_MAX];
	struct vg_entry entry[VG_KERNELS_MAX];
	struct vg_sm sm[VG_GROUPS_MAX][VG_SMS_MAX];	/* a plane a group */
};
#define VG_NOBODY UINT32_MAX

/*
 * A slice begins with the first look of a process of the group after the switch, as the host's
 * scheduler may be late with the engine thread. A turn that nobody begins within this time goes to
 * the next group.
 */
#define VG_BEGIN_NS 5000000u

/* Bits of processes: which have to be woken */
typedef uint32_t vg_procs;
_Static_assert(VG_PROCS_MAX <= 32, "one bit a process, and a group");

/* not the mutexes */
void vg_sched_init(struct vg_device *d, const struct vg_config *config);

/* The most blocks of this need on one SM, 0 if it never fits */
unsigned int vg_sched_fit(const struct vg_config *c, const struct vg_need *need);
/*
 * The carve-out that an SM gets for this kernel: @percent of its memory as the program asked, -1:
 * for the most blocks
 */
uint32_t vg_sched_carveout(const struct vg_config *c, const struct vg_need *need, int percent);

/* A kernel came to the head of its stream. Its entry, or -1: the queue is full. */
int vg_sched_submit(struct vg_device *d, uint32_t proc, const struct vg_need *need, uint64_t blocks,
		    int priority);
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

/* Put a process into the group of @key, or into a new one. The caller then marks its slot used. */
void vg_sched_join(struct vg_device *d, uint32_t proc, uint64_t key);
bool vg_sched_has_work(const struct vg_device *d, uint32_t group);
/*
 * End a turn that is over and begin the next. To be called when work came or went and when
 * slice_end has passed. Returns the processes of the group whose turn begins.
 */
vg_procs vg_sched_update(struct vg_device *d, uint64_t now);
/*
 * May @proc's blocks step at @now? Begins its group's slice if need be; *@wake:
 * vg_sched_update()'s.
 */
bool vg_sched_turn(struct vg_device *d, uint32_t proc, uint64_t now, vg_procs *wake);
/*
 * The group's slice from its next turn on; a running one that is longer ends earlier. Wakes as
 * above.
 */
vg_procs vg_sched_set_slice(struct vg_device *d, uint32_t group, uint64_t ns, uint64_t now);
/* End the group's turn, if it has it and another group has work. Wakes as above. */
vg_procs vg_sched_preempt(struct vg_device *d, uint32_t group, uint64_t now);

#endif /* VGPU_SCHED_H */
