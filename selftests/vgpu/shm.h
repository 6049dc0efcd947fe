/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The device as one process sees it: the shared memory object /dev/shm/$VGPU_NAME, its lock, waking
 * each other, and noticing processes that died. A process has one slot; its engine thread calls
 * vg_shm_enter() and holds the slot's robust mutex until vg_shm_leave() or until it dies, however
 * that happens.
 */
#ifndef VGPU_SHM_H
#define VGPU_SHM_H

#include "sched.h"

/*
 * The device's shape, from the environment of the first process on it:
 *  VGPU_DEVICES (1) how many there are, each with its own SMs, memory, processes and turns, all of
 *  one shape; VGPU_NAME name of the object, of another device's VGPU_NAME.1 and so on; VGPU_SMS
 *  (8); VGPU_SM_THREADS (512), VGPU_SM_BLOCKS (16), VGPU_SM_SHARED_KB (100): of one SM;
 *  VGPU_CARVEOUT (1): SMs keep their split of shared memory until they are empty; VGPU_TIMESLICE_US
 *  (20000): the slice of a channel group until it is set; VGPU_SWITCH_US (200): what a switch
 *  between groups takes; VGPU_CC (90); VGPU_MEM_MB (2048).
 * false: *err says which one is wrong.
 */
bool vg_config_from_env(struct vg_config *c, char *err, size_t err_size);
bool vg_devices_from_env(unsigned int *n, unsigned int max, char *err, size_t err_size);
/*
 * Which channel group this process is in, from its environment: *@key for vg_shm_enter(). VGPU_MPS
 * 0: its own. 1 (the default): the one of the MPS server of CUDA_MPS_PIPE_DIRECTORY
 * (/tmp/nvidia-mps), whether that server runs or not. auto: that one if its control daemon answers,
 * as on a real system, else its own. VGPU_RM_REFUSE and VGPU_MPS_SERVER: see rm.h.
 */
bool vg_key_from_env(uint64_t *key, char *err, size_t err_size);
/*
 * The MPS pipe directory by the environment, and a connection to the control daemon there, or -1
 * with errno.
 */
const char *vg_mps_directory(void);
int vg_mps_connect(const char *directory);
/* A pidfd of the server that the control daemon there has for its clients. -1: none */
int vg_mps_server(void);

/* Map the device, making it if need be. NULL: *err */
struct vg_device *vg_shm_map(const char *name, const struct vg_config *config, char *err,
			     size_t err_size);
void vg_shm_unmap(struct vg_device *d);
/* by $VGPU_NAME, or of the user */
const char *vg_shm_name(unsigned int index, char *buf, size_t size);

/*
 * Takes a slot for this process, in the channel group of @key: the slot's number, or -1 if all are
 * taken. By the thread that will live as long as the process.
 */
int vg_shm_enter(struct vg_device *d, uint64_t key);
void vg_shm_leave(struct vg_device *d, uint32_t proc);	/* the same thread */

uint64_t vg_shm_now(void);	/* ns of CLOCK_MONOTONIC, as all times of sched.h */
void vg_shm_lock(struct vg_device *d);
void vg_shm_unlock(struct vg_device *d);
/*
 * Give what dead processes held to those that wait for it. The lock is held; whoever takes the lock
 * after one that died with it does the same.
 */
void vg_shm_reap_dead(struct vg_device *d, uint32_t self);

void vg_shm_wake(struct vg_device *d, vg_procs who);
uint32_t vg_shm_wakes(struct vg_device *d, uint32_t proc);
/* Sleep until the slot's count of wakes differs from @seen, at most @ns. */
void vg_shm_wait(struct vg_device *d, uint32_t proc, uint32_t seen, uint64_t ns);

#endif /* VGPU_SHM_H */
