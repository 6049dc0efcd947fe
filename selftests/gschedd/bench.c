// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What a SUBMIT from another process costs: round trips of SUBMIT and COMPLETE, one client on the
 * device beside a batch task that is evicted and grows back each time, with and without halt
 * polling.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "harness.h"

#define ROUNDS	2000

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void measure(const char *poll_us)
{
	static uint64_t ns[ROUNDS];
	struct peer_client batch, latency;
	struct gsched_submit all = task(0, 1, 100000), few;
	struct timespec pause = { .tv_nsec = 200000 };
	uint64_t evicted = 0, median, p99;

	daemon_start("--device", DEVICE, "--poll-us", poll_us, NULL);
	attach(&batch, GSCHED_ATTACH_MPS);
	attach(&latency, GSCHED_ATTACH_MPS);
	if (submit(&batch, &all))
		exit(1);
	for (int i = 0; i < ROUNDS; i++) {
		struct gsched_event ev;
		uint64_t from;

		few = task(0, i + 1, 4);
		from = now_ns();
		if (submit(&latency, &few))
			exit(1);
		ns[i] = now_ns() - from;
		if (complete(&latency, 0, i + 1, 0))
			exit(1);
		while (next_event(&batch, &ev, 0))
			evicted++;
		nanosleep(&pause, NULL);
	}
	qsort(ns, ROUNDS, sizeof(ns[0]), by_value);
	median = ns[ROUNDS / 2];
	p99 = ns[ROUNDS * 99 / 100];
	printf("# gschedd, poll %s us: SUBMIT to grant %.1f us median, %.1f us p99 (%llu "
	       "events beside)\n", poll_us, median / 1e3, p99 / 1e3, (unsigned long long)evicted);
	detach(&batch);
	detach(&latency);
	daemon_stop(SIGTERM);
}

int main(void)
{
	measure("0");
	measure("2000");
	return 0;
}
