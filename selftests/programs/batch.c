/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A batch program: kernels that fill the GPU, one after another. Prints one JSON line. --log: a
 * line "start_ns took_ns" for each kernel, and SIGTERM ends the program after the kernel that runs.
 */
#include "run.h"

#define LOG_MAX	(1u << 20)	/* kernels that a log may have */

int main(int argc, char **argv)
{
	enum { BLOCKS, THREADS, ITERS, KERNELS, CALIBRATE, HIGH, WAVE, PER_SM, LOG, START };
	static const struct option options[] = {
		{ "blocks", required_argument, NULL, BLOCKS },
		{ "threads", required_argument, NULL, THREADS },
		{ "iters", required_argument, NULL, ITERS },
		{ "kernels", required_argument, NULL, KERNELS },
		{ "calibrate-us", required_argument, NULL, CALIBRATE },
		{ "high-priority", no_argument, NULL, HIGH },
		{ "print-wave", no_argument, NULL, WAVE },
		{ "print-blocks-per-sm", no_argument, NULL, PER_SM },
		{ "log", required_argument, NULL, LOG },
		{ "start", required_argument, NULL, START },
		{ 0 },
	};
	unsigned int blocks = 4096, threads = 256, iters = 1000, kernels = 10, us = 0, high = 0,
		wave = 0, k;
	const char *log_path = NULL, *start_path = NULL;
	uint64_t begin, end, first, *start = NULL, *took = NULL;
	struct dev_buf *out;
	bool logged;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case BLOCKS: blocks = number(optarg, "blocks"); break;
		case THREADS: threads = number(optarg, "threads"); break;
		case ITERS: iters = number(optarg, "iters"); break;
		case KERNELS: kernels = number(optarg, "kernels"); break;
		case CALIBRATE: us = number(optarg, "calibrate-us"); break;
		case HIGH: high = 1; break;
		case WAVE: wave = 1; break;
		case PER_SM: wave = 2; break;
		case LOG: log_path = optarg; break;
		case START: start_path = optarg; break;
		default: return 2;
		}
	}
	if (log_path)
		stop_on_term();
	dev_init(argv[0], (int)high);
	if (wave) {
		/* blocks that the device, or an SM of it, hosts at once */
		printf("%u\n", (wave == 1 ? dev_sms() : 1) * dev_blocks_per_sm(threads));
		return 0;
	}
	if (us) {
		printf("%u\n", calibrate(dev_sms() * dev_blocks_per_sm(threads), threads, us));
		return 0;
	}
	if (log_path) {
		kernels = kernels < LOG_MAX ? kernels : LOG_MAX;
		start = calloc(kernels + 1u, sizeof(*start));
		took = calloc(kernels + 1u, sizeof(*took));
		if (!start || !took)
			abort();
	}
	out = dev_alloc((size_t)blocks * 4);
	/* the first launch loads the kernel: outside the measured time, inside the result */
	first = now_ns();
	dev_launch(blocks, 1, threads, out, iters, 0);
	dev_sync();
	wait_for_start(start_path);
	begin = now_ns();
	end = begin;
	for (k = 0; k < kernels && !stop; k++) {
		if (start)
			start[k] = end;
		dev_launch(blocks, 1, threads, out, iters, k + 1);
		dev_sync();
		end = now_ns();
		if (took)
			took[k] = end - start[k];
	}
	logged = !log_path || write_log(log_path, k, start, took, NULL);
	free(start);
	free(took);
	if (!logged)
		return 1;
	printf("{\"begin_ns\":%llu,\"end_ns\":%llu,\"first_ns\":%llu,"
	       "\"kernels\":%u,\"blocks\":%u,\"checksum\":\"%016llx\"}\n",
	       (unsigned long long)begin, (unsigned long long)end,
	       (unsigned long long)(begin - first), k, blocks,
	       (unsigned long long)checksum(out, (size_t)blocks * 4));
	return 0;
}
