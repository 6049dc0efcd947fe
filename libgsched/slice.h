/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The time slices of this process's own channel groups.
 *
 * The GPU switches between channel groups (one a CUDA context, or one an MPS server) by time slice. libcuda sets each
 * group's slice once, by a control call of NVIDIA's resource manager that needs no privilege (NVA06C_CTRL_CMD_SET_TIMESLICE;
 * NVIDIA's open kernel modules, ctrla06c.h), and just before it the compute preemption mode
 * (NV2080_CTRL_CMD_GR_SET_CTXSW_PREEMPTION_MODE): in the middle of blocks. A wrapper around ioctl() learns descriptor and handles there, so this library
 * can make the same calls later. Nothing else of the driver is touched.
 *
 * Any thread. Times are microseconds. Nothing here allocates, prints or calls the CUDA driver.
 */
#ifndef GSCHED_SLICE_H
#define GSCHED_SLICE_H

#include <stdbool.h>
#include <stdint.h>

/* What a process may do to its groups on one device */
struct gsched_slice {
	unsigned int groups;	/* channel groups seen on the device */
	uint32_t us;		/* slice in force, by the driver's last answer; 0 unknown */
	bool block_end;		/* the GPU switches away at the ends of thread blocks, by the driver's last answer */
	int error;		/* 0; ENODEV no group seen; EIO refused: @status */
	uint32_t status;	/* NV_STATUS of the last refusal */
};

/*
 * The wrapper's body: every ioctl of the process goes through here. Calls that are not the resource manager's are passed on
 * at once; errno is the real call's.
 */
int gsched_slice_ioctl(int fd, unsigned long request, void *arg);

/*
 * Have all groups of the device, those there are and those to come, use slices of @us; 0: what libcuda
 * chose. @block_end: the GPU leaves them at the ends of thread blocks, not in the middle of these; a
 * group whose mode the driver does not change keeps libcuda's, which is no error. Takes about 250 us a
 * group and 700 us for a change of @block_end, as the GPU's firmware is asked. Returns what @to tells:
 * 0, ENODEV, EIO.
 */
int gsched_slice_set(const uint8_t uuid[16], uint32_t us, bool block_end, struct gsched_slice *to);

/* The same without setting anything. */
int gsched_slice_get(const uint8_t uuid[16], struct gsched_slice *to);

/* Called, without a lock, after a group on a device was seen for the first time; from the thread that makes a context. */
extern void (*gsched_slice_seen)(const uint8_t uuid[16]);

/*
 * A number for the channel group that clients of this process's MPS server share: by the server's pipe directory
 * ($CUDA_MPS_PIPE_DIRECTORY) and user. 0: there is no such directory.
 */
uint64_t gsched_slice_mps_group(void);

#endif /* GSCHED_SLICE_H */
