/* SPDX-License-Identifier: GPL-2.0-only */
/* What the tests of the core share: TAP, and a device whose actions are kept. Each test includes it once. */
#ifndef SELFTESTS_CORE_WORLD_H
#define SELFTESTS_CORE_WORLD_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "kmod/core/core.h"

#define US	1000ULL
#define MS	1000000ULL
#define SM	GSCHED_CAPSM

static int tap_n, tap_failed;

static inline void tap(bool good, const char *name)
{
	printf("%sok %d - %s\n", good ? "" : "not ", ++tap_n, name);
	tap_failed += !good;
}

static inline int tap_end(void)
{
	printf("1..%d\n", tap_n);
	return tap_failed != 0;
}

static inline struct gsched_submit make_submit(u32 slot, u32 seq, u32 tier, u64 blocks)
{
	return (struct gsched_submit){
		.size = sizeof(struct gsched_submit), .slot = slot, .seq = seq, .tier = tier,
		.blocks_per_sm = 8, .blocks = blocks,
	};
}

static inline struct gsched_complete make_complete(u32 slot, u32 seq)
{
	return (struct gsched_complete){ .size = sizeof(struct gsched_complete), .slot = slot, .seq = seq };
}

#endif /* SELFTESTS_CORE_WORLD_H */
