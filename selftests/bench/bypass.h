/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a benchmark and the interposer of bypass.c share, in the file $BENCH_SWITCH. */
#ifndef BENCH_BYPASS_H
#define BENCH_BYPASS_H

#include <stdint.h>

struct bench_switch {
	uint64_t bypass;			/* set by the benchmark: launches go to the driver */
	uint64_t bypassed;			/* so many did */
	uint64_t present;			/* set by the interposer */
};

#endif /* BENCH_BYPASS_H */
