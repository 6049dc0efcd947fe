/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The device memory that this process holds.
 *
 * libcuda allocates each piece of it by a call to NVIDIA's resource manager, whatever function of
 * CUDA needs it: buffers, pools, arrays, physical memory for mappings, what a context itself needs.
 * The wrapper around ioctl() (slice.h) sees these calls. So all is counted, in the driver's
 * granularity (2 MiB), and an allocation can be refused as if the device had no more memory, which
 * libcuda passes on as CUDA_ERROR_OUT_OF_MEMORY. Managed memory is not allocated like this: whoever
 * sees its allocation counts it.
 *
 * Any thread may call these functions. Sizes are bytes.
 */
#ifndef GSCHED_MEMORY_H
#define GSCHED_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* An object of the resource manager that holds memory, and those that are freed with it */
struct gsched_held;

/*
 * Told what the process holds on a device from now on, in the order of the changes; NULL: nobody.
 * @asks: before an allocation; not 0: it is refused. Called with a lock held, by a thread that is
 * inside libcuda: must not call CUDA.
 */
extern int (*gsched_memory_changed)(const uint8_t uuid[16], uint64_t bytes, bool asks);

/*
 * While it is set, what this thread makes libcuda allocate is what gsched itself needs: counted,
 * and not refused. Else a program that has all that it may have could not be managed.
 */
extern __thread bool gsched_memory_own __attribute__((tls_model("initial-exec")));

/* Counts @size bytes more; false: refused, and not counted. */
bool gsched_memory_charge(const uint8_t uuid[16], uint64_t size);
void gsched_memory_uncharge(const uint8_t uuid[16], uint64_t size);
/* Whether any allocation was seen: another driver may make other calls. */
bool gsched_memory_seen(const uint8_t uuid[16]);
/* What is held. No change is made or told before unlock. */
uint64_t gsched_memory_lock(const uint8_t uuid[16]);
void gsched_memory_unlock(void);

/* For slice.c: an object with @size bytes, already charged, is there. */
void gsched_memory_add(uint32_t client, uint32_t parent, uint32_t object, const uint8_t uuid[16],
		       uint64_t size);
/* It is about to be freed. @all: with all objects of which it is the parent or the client */
struct gsched_held *gsched_memory_remove(uint32_t client, uint32_t object, bool all);
/* Uncharges what @held has if it was @freed, else records it again. */
void gsched_memory_removed(struct gsched_held *held, bool freed);

#endif /* GSCHED_MEMORY_H */
