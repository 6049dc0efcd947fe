/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How a benchmark drives the example programs: a start file, SIGTERM for the end, a log of times.
 */
#ifndef PROGRAMS_RUN_H
#define PROGRAMS_RUN_H

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>
#include "common.h"

static volatile sig_atomic_t stop;

static void on_term(int sig)
{
	(void)sig;
	stop = 1;
}

static void stop_on_term(void)
{
	struct sigaction sa = { .sa_handler = on_term };

	sigaction(SIGTERM, &sa, NULL);
}

/* Everything is loaded: say so and wait until @path exists, for three minutes at most. */
static void wait_for_start(const char *path)
{
	const struct timespec ms = { .tv_nsec = 1000000 };
	uint64_t until = now_ns() + 180000000000u;

	if (!path)
		return;
	printf("{\"ready\":true}\n");
	fflush(stdout);
	while (access(path, F_OK) && !stop) {
		if (now_ns() > until) {
			fprintf(stderr, "--start: %s did not appear in 180 s\n", path);
			exit(1);
		}
		nanosleep(&ms, NULL);
	}
}

/* "start_ns took_ns" a line, and when the request arrived if @arrival is given */
static bool write_log(const char *path, size_t n, const uint64_t *start, const uint64_t *took,
		      const uint64_t *arrival)
{
	FILE *f = fopen(path, "we");

	if (f) {
		for (size_t i = 0; i < n; i++) {
			fprintf(f, "%llu %llu", (unsigned long long)start[i],
				(unsigned long long)took[i]);
			if (arrival)
				fprintf(f, " %llu", (unsigned long long)arrival[i]);
			putc('\n', f);
		}
		if (!fclose(f))
			return true;
	}
	perror(path);
	return false;
}

#endif
