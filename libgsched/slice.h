/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The time slices of this process's own channel groups.
 *
 * The GPU switches between channel groups (one per CUDA context, or one per MPS server) by time
 * slice. libcuda sets each group's slice once, by an unprivileged control call of NVIDIA's resource
 * manager (NVA06C_CTRL_CMD_SET_TIMESLICE; NVIDIA's open kernel modules, ctrla06c.h), and just
 * before it the compute preemption mode (NV2080_CTRL_CMD_GR_SET_CTXSW_PREEMPTION_MODE): in the
 * middle of blocks. A wrapper around ioctl() records the descriptor and handles of these calls, so
 * that this library can make the same calls later. Nothing else of the driver is touched.
 *
 * Any thread may call these functions. Times are microseconds. Nothing here allocates, prints or
 * calls the CUDA driver.
 */
#ifndef GSCHED_SLICE_H
#define GSCHED_SLICE_H

#include <stdbool.h>
#include <stdint.h>

/* The state of a process's groups on one device */
struct gsched_slice {
	unsigned int groups;	/* channel groups seen on the device */
	uint32_t us;		/* slice in force, by the driver's last answer; 0: unknown */
	bool block_end;		/* in force: the GPU switches away at the ends of thread blocks */
	int error;		/* 0; ENODEV: no group was seen; EIO: refused, see @status */
	uint32_t status;	/* NV_STATUS of the last refusal */
};

/*
 * The body of the wrapper, through which every ioctl of the process goes. Calls to other drivers
 * are forwarded at once; errno is the real call's.
 */
int gsched_slice_ioctl(int fd, unsigned long request, void *arg);

/*
 * Makes all present and future groups of the device use slices of @us; 0: libcuda's choice.
 * @block_end: the GPU switches away from them at the ends of thread blocks, not in the middle. A
 * group whose mode the driver refuses to change keeps libcuda's, which is no error. Takes about 250
 * us per group, and 700 us for a change of @block_end, because the GPU's firmware is involved.
 * Returns @to->error: 0, ENODEV, EIO.
 */
int gsched_slice_set(const uint8_t uuid[16], uint32_t us, bool block_end, struct gsched_slice *to);

/* Returns the state without setting anything. */
int gsched_slice_get(const uint8_t uuid[16], struct gsched_slice *to);

/*
 * Called, without a lock, when a channel group on a device was seen for the first time, by the
 * thread that creates the context.
 */
extern void (*gsched_slice_seen)(const uint8_t uuid[16]);

/*
 * A number for the channel group that clients of this process's MPS server share, derived from the
 * server's pipe directory ($CUDA_MPS_PIPE_DIRECTORY) and user. 0: there is no such directory.
 */
uint64_t gsched_slice_mps_group(void);

#endif /* GSCHED_SLICE_H */
