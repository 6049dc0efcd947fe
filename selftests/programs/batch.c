/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A batch program: kernels that fill the GPU, one after another. Prints one JSON line. */
#include "common.h"

int main(int argc, char **argv)
{
	enum { BLOCKS, THREADS, ITERS, KERNELS, CALIBRATE, HIGH, WAVE, PER_SM };
	static const struct option options[] = {
		{ "blocks", required_argument, NULL, BLOCKS }, { "threads", required_argument, NULL, THREADS },
		{ "iters", required_argument, NULL, ITERS }, { "kernels", required_argument, NULL, KERNELS },
		{ "calibrate-us", required_argument, NULL, CALIBRATE }, { "high-priority", no_argument, NULL, HIGH },
		{ "print-wave", no_argument, NULL, WAVE }, { "print-blocks-per-sm", no_argument, NULL, PER_SM },
		{ 0 },
	};
	unsigned int blocks = 4096, threads = 256, iters = 1000, kernels = 10, us = 0, high = 0, wave = 0;
	struct dev_buf *out;
	uint64_t begin, end, first;
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
		default: return 2;
		}
	}
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
	out = dev_alloc((size_t)blocks * 4);
	/* the first launch loads the kernel: outside the measured time, inside the result */
	first = now_ns();
	dev_launch(blocks, 1, threads, out, iters, 0);
	dev_sync();
	begin = now_ns();
	for (unsigned int k = 1; k <= kernels; k++) {
		dev_launch(blocks, 1, threads, out, iters, k);
		dev_sync();
	}
	end = now_ns();
	printf("{\"begin_ns\":%llu,\"end_ns\":%llu,\"first_ns\":%llu,\"kernels\":%u,\"blocks\":%u,\"checksum\":\"%016llx\"}\n",
	       (unsigned long long)begin, (unsigned long long)end, (unsigned long long)(begin - first), kernels, blocks,
	       (unsigned long long)checksum(out, (size_t)blocks * 4));
	return 0;
}
