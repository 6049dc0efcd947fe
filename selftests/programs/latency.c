/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A latency-sensitive program: one short kernel every period, each waited for. Writes "start_ns latency_ns" a line to --log,
 * prints one JSON line. SIGTERM ends it early.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include "common.h"

static volatile sig_atomic_t stop;

static void on_term(int sig)
{
	(void)sig;
	stop = 1;
}

static bool write_log(const char *path, unsigned int n, const uint64_t *start, const uint64_t *took)
{
	FILE *f = fopen(path, "we");

	if (f) {
		for (unsigned int i = 0; i < n; i++)
			fprintf(f, "%llu %llu\n", (unsigned long long)start[i], (unsigned long long)took[i]);
		if (!fclose(f))
			return true;
	}
	perror(path);
	return false;
}

int main(int argc, char **argv)
{
	enum { BLOCKS, THREADS, ITERS, REQUESTS, PERIOD, CALIBRATE, HIGH, LOG };
	static const struct option options[] = {
		{ "blocks", required_argument, NULL, BLOCKS }, { "threads", required_argument, NULL, THREADS },
		{ "iters", required_argument, NULL, ITERS }, { "requests", required_argument, NULL, REQUESTS },
		{ "period-us", required_argument, NULL, PERIOD }, { "calibrate-us", required_argument, NULL, CALIBRATE },
		{ "high-priority", no_argument, NULL, HIGH }, { "log", required_argument, NULL, LOG },
		{ 0 },
	};
	unsigned int blocks = 8, threads = 256, iters = 1000, requests = 1000, period = 1000, us = 0, high = 0, n;
	struct sigaction sa = { .sa_handler = on_term };
	struct timespec at;
	struct dev_buf *out;
	uint64_t *start, *took;
	const char *log = NULL;
	bool logged;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case BLOCKS: blocks = number(optarg, "blocks"); break;
		case THREADS: threads = number(optarg, "threads"); break;
		case ITERS: iters = number(optarg, "iters"); break;
		case REQUESTS: requests = number(optarg, "requests"); break;
		case PERIOD: period = number(optarg, "period-us"); break;
		case CALIBRATE: us = number(optarg, "calibrate-us"); break;
		case HIGH: high = 1; break;
		case LOG: log = optarg; break;
		default: return 2;
		}
	}
	sigaction(SIGTERM, &sa, NULL);
	dev_init(argv[0], (int)high);
	if (us) {
		printf("%u\n", calibrate(blocks, threads, us));
		return 0;
	}
	start = calloc(requests + 1u, sizeof(*start));
	took = calloc(requests + 1u, sizeof(*took));
	if (!start || !took)
		abort();
	out = dev_alloc((size_t)blocks * 4);
	dev_launch(blocks, 1, threads, out, iters, 0);
	dev_sync();
	clock_gettime(CLOCK_MONOTONIC, &at);
	for (n = 0; n < requests && !stop; n++) {
		start[n] = now_ns();
		dev_launch(blocks, 1, threads, out, iters, n + 1);
		dev_sync();
		took[n] = now_ns() - start[n];
		at.tv_nsec += (long)(period % 1000000u) * 1000;
		at.tv_sec += period / 1000000u;
		if (at.tv_nsec >= 1000000000) {
			at.tv_nsec -= 1000000000;
			at.tv_sec++;
		}
		/* behind schedule: start afresh instead of a burst, as a closed-loop client would */
		if (now_ns() > (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec)
			clock_gettime(CLOCK_MONOTONIC, &at);
		else
			while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR && !stop)
				;
	}
	logged = !log || write_log(log, n, start, took);
	free(start);
	free(took);
	if (!logged)
		return 1;
	printf("{\"requests\":%u,\"checksum\":\"%016llx\"}\n", n, (unsigned long long)checksum(out, (size_t)blocks * 4));
	return 0;
}
