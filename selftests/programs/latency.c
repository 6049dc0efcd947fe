/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A latency-sensitive program: one short kernel every period, each waited for. Writes a line
 * "start_ns latency_ns" to --log for each, prints one JSON line. SIGTERM ends it early.
 *
 * By default the loop is closed: a request that is behind schedule moves the schedule. --open:
 * requests arrive on schedule whatever became of the earlier ones, --poisson SEED: at random with
 * the same mean. The log then has the arrival at the end of each line. --kernels N: a request is so
 * many kernels, one after another; --graph: launched as one CUDA graph.
 */
#include <math.h>
#include "run.h"

#define SPIN_NS		100000	/* a sleep may end this late: the rest before an arrival is spun */

/*
 * Time from one arrival to the next; @random: state of a xorshift generator, 0 for a fixed period
 */
static uint64_t interarrival_ns(uint64_t *random, unsigned int period_us)
{
	double u;

	if (!*random)
		return (uint64_t)period_us * 1000;
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	u = (double)((*random >> 11) + 1) / 9007199254740993.0;
	return (uint64_t)(-log(u) * period_us * 1e3);
}

static void wait_until(uint64_t due)
{
	uint64_t wake = due - SPIN_NS;
	struct timespec at = { .tv_sec = (time_t)(wake / 1000000000),
			       .tv_nsec = (long)(wake % 1000000000) };

	if (now_ns() < wake)
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR && !stop)
			;
	while (now_ns() < due && !stop)
		;
}

struct load {
	unsigned int blocks, threads, iters, kernels, period_us, requests;
	bool graph;
	struct dev_graph *captured;	/* @graph: the request */
	struct dev_buf *out;
	uint64_t *start, *took, *arrival;	/* of each request so far; @arrival only in an open
						 * loop */
};

static void launch(const struct load *l, unsigned int seed)
{
	for (unsigned int k = 0; k < l->kernels; k++)
		dev_launch(l->blocks, 1, l->threads, l->out, l->iters, seed);
}

static void serve(const struct load *l, unsigned int n)
{
	l->start[n] = now_ns();
	if (l->graph)
		dev_graph_launch(l->captured);
	else
		launch(l, n + 1);
	dev_sync();
	l->took[n] = now_ns() - l->start[n];
}

static unsigned int open_loop(const struct load *l, uint64_t random)
{
	uint64_t due = now_ns() + SPIN_NS;
	unsigned int n;

	for (n = 0; n < l->requests; n++) {
		due += interarrival_ns(&random, l->period_us);
		wait_until(due);
		if (stop)
			break;
		l->arrival[n] = due;
		serve(l, n);
	}
	return n;
}

static unsigned int closed_loop(const struct load *l)
{
	struct timespec at;
	unsigned int n;

	clock_gettime(CLOCK_MONOTONIC, &at);
	for (n = 0; n < l->requests && !stop; n++) {
		serve(l, n);
		at.tv_nsec += (long)(l->period_us % 1000000u) * 1000;
		at.tv_sec += l->period_us / 1000000u;
		if (at.tv_nsec >= 1000000000) {
			at.tv_nsec -= 1000000000;
			at.tv_sec++;
		}
		/*
		 * behind schedule: start afresh instead of a burst, as a closed-loop client would
		 */
		if (now_ns() > (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec)
			clock_gettime(CLOCK_MONOTONIC, &at);
		else
			while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at,
					       NULL) == EINTR && !stop)
				;
	}
	return n;
}

int main(int argc, char **argv)
{
	enum { BLOCKS, THREADS, ITERS, REQUESTS, PERIOD, CALIBRATE, HIGH, LOG, OPEN, POISSON, START,
	       KERNELS, GRAPH };
	static const struct option options[] = {
		{ "blocks", required_argument, NULL, BLOCKS },
		{ "threads", required_argument, NULL, THREADS },
		{ "iters", required_argument, NULL, ITERS },
		{ "requests", required_argument, NULL, REQUESTS },
		{ "period-us", required_argument, NULL, PERIOD },
		{ "calibrate-us", required_argument, NULL, CALIBRATE },
		{ "high-priority", no_argument, NULL, HIGH },
		{ "log", required_argument, NULL, LOG },
		{ "open", no_argument, NULL, OPEN },
		{ "poisson", required_argument, NULL, POISSON },
		{ "start", required_argument, NULL, START },
		{ "kernels", required_argument, NULL, KERNELS },
		{ "graph", no_argument, NULL, GRAPH }, { 0 },
	};
	struct load l = { .blocks = 8, .threads = 256, .iters = 1000, .kernels = 1,
			  .period_us = 1000, .requests = 1000 };
	const char *log_path = NULL, *start_path = NULL;
	unsigned int us = 0, high = 0, n;
	bool logged, open = false;
	uint64_t random = 0;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case BLOCKS: l.blocks = number(optarg, "blocks"); break;
		case THREADS: l.threads = number(optarg, "threads"); break;
		case ITERS: l.iters = number(optarg, "iters"); break;
		case REQUESTS: l.requests = number(optarg, "requests"); break;
		case PERIOD: l.period_us = number(optarg, "period-us"); break;
		case CALIBRATE: us = number(optarg, "calibrate-us"); break;
		case HIGH: high = 1; break;
		case LOG: log_path = optarg; break;
		case OPEN: open = true; break;
		case POISSON: random = 0x9e3779b97f4a7c15u ^ number(optarg, "poisson");
			open = true; break;
		case START: start_path = optarg; break;
		case KERNELS: l.kernels = number(optarg, "kernels"); break;
		case GRAPH: l.graph = true; break;
		default: return 2;
		}
	}
	stop_on_term();
	dev_init(argv[0], (int)high);
	if (us) {
		printf("%u\n", calibrate(l.blocks, l.threads, us));
		return 0;
	}
	l.start = calloc(l.requests + 1u, sizeof(*l.start));
	l.took = calloc(l.requests + 1u, sizeof(*l.took));
	if (open)
		l.arrival = calloc(l.requests + 1u, sizeof(*l.arrival));
	if (!l.start || !l.took || (open && !l.arrival))
		abort();
	l.out = dev_alloc((size_t)l.blocks * 4);
	launch(&l, 0);
	dev_sync();
	if (l.graph) {
		dev_capture_begin();
		launch(&l, 1);
		l.captured = dev_capture_end();
		dev_graph_launch(l.captured);
		dev_sync();
	}
	wait_for_start(start_path);
	n = open ? open_loop(&l, random) : closed_loop(&l);
	logged = !log_path || write_log(log_path, n, l.start, l.took, l.arrival);
	if (l.graph)
		dev_graph_free(l.captured);
	free(l.start);
	free(l.took);
	free(l.arrival);
	if (!logged)
		return 1;
	printf("{\"requests\":%u,\"checksum\":\"%016llx\"}\n", n,
	       (unsigned long long)checksum(l.out, (size_t)l.blocks * 4));
	return 0;
}
