// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Sets the process's time slice as the arbiter's page asks, and reports activity, stream priorities
 * and block times to the arbiter.
 */
#include <errno.h>
#include <limits.h>
#include "launch/blocks.h"
#include "launch/launch.h"

#define TOGETHER_LEAST_US	1000	/* least slice of channel groups that take turns */
#define TOGETHER_MOST_US	2000	/* most: about the driver's own default */

/*
 * Each context has a channel group, and those of one process take turns by their slices. With the
 * shortest slice none of them makes progress, as with two busy bands that have it. With the longest
 * slice one waits until another has no more work. On an H100 a program under CUDA_LAUNCH_BLOCKING
 * made no progress with the shortest slice either, beside another one: it gets the driver's own.
 */
static uint32_t slice_of_each(const struct gi_client *c, uint32_t us, unsigned int groups)
{
	if (us && us < TOGETHER_MOST_US && c->launch_blocking)
		return TOGETHER_MOST_US;
	if (groups < 2 || !us)
		return us;
	if (us < TOGETHER_LEAST_US)
		return TOGETHER_LEAST_US;
	return us > TOGETHER_MOST_US ? TOGETHER_MOST_US : us;
}

/* A process sets the time slice of its channel groups itself; under MPS the server does. */
static void apply_slice(struct gi_client *c)
{
	const uint8_t *uuid = (const uint8_t *)c->gpu.bytes;
	bool gone = atomic_load(&c->gone);
	/* without an arbiter, return to the driver's default, which starves no process */
	const uint32_t asked = gone ? 0 : gi_load(&c->arb->header.slice_us);
	bool block_end = !gone && gi_load(&c->arb->header.flags) & GSCHED_ARB_BLOCK_END;
	uint32_t us = slice_of_each(c, asked, c->slice.groups);
	struct gsched_slice now;

	if (!gsched_slice_follow(&c->slice, uuid, us, block_end, gone ? NULL : c->g,
				 &c->cl->header, &now))
		return;
	/* the number of groups has changed */
	if (slice_of_each(c, asked, now.groups) != us) {
		us = slice_of_each(c, asked, now.groups);
		gsched_slice_follow(&c->slice, uuid, us, block_end, gone ? NULL : c->g,
				    &c->cl->header, &now);
	}
	gi_debug("time slice %u us asked, %u us in force%s (%u groups, status 0x%x)", us, now.us,
		 now.block_end ? " to the ends of blocks" : "", now.groups, now.status);
	if (now.error == EIO)
		gi_why(c, "the driver refuses a time slice of %u us (status 0x%x)", us, now.status);
}

/* Reports whether others in the band may rely on the hardware's stream priorities. */
static void report_streams(struct gi_client *c)
{
	struct gsched_report_info report = { .size = sizeof(report), .has_streams = true };

	report.prioritised = atomic_load(&c->prioritised) == GI_PRIORITISED;
	if (report.prioritised == c->reported_prioritised)
		return;
	c->reported_prioritised = report.prioritised;
	gsched_report(c->g, &report);
}

/* Reports block times: whether the GPU may switch bands at the ends of thread blocks. */
static void report_block_us(struct gi_client *c)
{
	struct gsched_report_info report = { .size = sizeof(report), .has_blocks = true };

	/* while they are not asked for, both sides forget them */
	report.block_us = gi_blocks_asked(c) ? gi_blocks_us(c) : 0;
	if (report.block_us == c->reported_block_us)
		return;
	c->reported_block_us = report.block_us;
	if (gi_blocks_asked(c))
		gsched_report(c->g, &report);
}

void gi_band_update(struct gi_client *c)
{
	struct gsched_report_info report = { .size = sizeof(report), .has_activity = true };

	if (!atomic_load(&c->gone))
		report_streams(c);
	if (!atomic_load(&c->gone))
		report_block_us(c);
	if (!atomic_load(&c->gone))
		gi_memory_check(c);
	if (!c->mps)
		apply_slice(c);
	if (atomic_load(&c->gone) || !(gi_load(&c->arb->header.flags) & GSCHED_ARB_REPORT)) {
		c->activity = UINT_MAX;
		return;
	}
	if (c->activity == UINT_MAX)
		gi_pace_begin(c);
	report.activity = gi_pace_activity(c, gi_now());
	if (report.activity == c->activity)
		return;
	c->activity = report.activity;
	gi_store(&c->cl->header.activity, report.activity);
	gsched_report(c->g, &report);
}
