/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Options and clocks of the example programs. */
#ifndef PROGRAMS_COMMON_H
#define PROGRAMS_COMMON_H

#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "dev.h"

static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline unsigned int number(const char *text, const char *option)
{
	char *end;
	unsigned long v = strtoul(text, &end, 0);

	if (*text < '0' || *text > '9' || *end || v > 0xffffffffu) {
		fprintf(stderr, "--%s: not a number: %s\n", option, text);
		exit(2);
	}
	return (unsigned int)v;
}

/* FNV-1a over the whole of a buffer on the device */
static inline uint64_t checksum(const struct dev_buf *buf, size_t bytes)
{
	unsigned char *host = (unsigned char *)malloc(bytes);
	uint64_t h = 14695981039346656037u;

	if (!host)
		abort();
	dev_read(host, buf, bytes);
	for (size_t i = 0; i < bytes; i++)
		h = (h ^ host[i]) * 1099511628211u;
	free(host);
	return h;
}

/* iters for which one block takes about @us while @blocks of them run at once */
static inline unsigned int calibrate(unsigned int blocks, unsigned int threads, unsigned int us)
{
	struct dev_buf *buf = dev_alloc((size_t)blocks * 4);
	unsigned int iters = 1000;
	uint64_t best = UINT64_MAX;

	for (int round = 0; round < 6; round++) {
		uint64_t t0, t;

		best = UINT64_MAX;
		for (int i = 0; i < 7; i++) {
			t0 = now_ns();
			dev_launch(blocks, 1, threads, buf, iters, 1);
			dev_sync();
			t = now_ns() - t0;
			if (t < best)
				best = t;
		}
		/* the launch itself takes some us: measure where it does not matter */
		if (best > 20000000)
			break;
		iters *= best < 2000000 ? 10 : 3;
	}
	return (unsigned int)((double)iters * us * 1e3 / (double)best + 0.5);
}

#endif
