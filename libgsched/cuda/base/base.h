/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The lowest layer, for all others: the driver, the environment, the clock, and messages. */
#ifndef GI_BASE_H
#define GI_BASE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>
#include <linux/gsched.h>
#include "base/driver.h"

static inline uint64_t gi_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* For words that the GPU or another process reads or writes */
#define gi_load(p)	__atomic_load_n((p), __ATOMIC_ACQUIRE)
#define gi_store(p, v)	__atomic_store_n((p), (v), __ATOMIC_RELEASE)

/* Hash of a handle, for tables of up to 2^24 buckets. */
static inline unsigned int gi_hash(const void *handle)
{
	return ((uintptr_t)handle * 0x9e3779b97f4a7c15ull) >> 40;
}

/*
 * Around what may be a cancellation point (pthreads(7)), where the thread holds something that
 * others wait for. Returns the argument for gi_cancel_restore().
 */
static inline int gi_cancel_disable(void)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static inline void gi_cancel_restore(int before)
{
	pthread_setcancelstate(before, &before);
}

/* A number from the environment; @otherwise if it is not set, or is not a number. */
uint64_t gi_env(const char *name, uint64_t otherwise);

/* Writes a line to standard error if $GSCHED_DEBUG is set; otherwise nothing is ever printed. */
void gi_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/*
 * Records why something is not managed, for gschedctl status. The last reason stays. @page may be
 * NULL.
 */
void gi_report(struct gsched_cl_page *page, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Reports a state that only a bug of the interposer can cause. Builds with sanitizers (GI_CHECKED)
 * print it and abort; others only print it under $GSCHED_DEBUG, and the caller does what is safe.
 */
void gi_illegal(const char *fmt, ...) __attribute__((format(printf, 1, 2), cold));

#endif /* GI_BASE_H */
