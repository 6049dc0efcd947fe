// SPDX-License-Identifier: GPL-2.0-only
/* Core time of one decision: submit and complete with 2, 8 and 64 clients that all run a kernel. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kmod/core/core.h"

#define SMS	132

static void op_set_window(struct gsc_task *task, enum gsc_change why) { }
static void op_set_lease(struct gsc_client *client, u32 lease) { }
static void op_arm_timer(struct gsc_device *dev, u64 when) { }
static void op_done(struct gsc_task *task) { }
static const struct gsc_ops ops = { op_set_window, op_set_lease, op_arm_timer, op_done, NULL };

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* Client 0 is more important and runs short kernels; the others share what it leaves */
static int measure(unsigned int n, u64 rounds)
{
	struct gsc_client *client = calloc(n, sizeof(*client));
	struct gsc_device *dev = calloc(1, sizeof(*dev));
	struct gsc_group *group = calloc(n, sizeof(*group));
	struct gsched_submit submit = { .seq = 1, .tier = GSCHED_TIER_BLOCK, .blocks_per_sm = 8, .blocks = 100000 };
	struct gsched_complete complete = { .seq = 1 };
	u64 now = 1, before;
	double time;
	int rc = 1;

	if (!client || !dev || !group || gsc_device_init(dev, &ops, SMS))
		goto out;
	for (unsigned int i = 0; i < n; i++) {
		if (gsc_group_init(&group[i], &dev->root) ||
		    gsc_client_attach(&client[i], &group[i], GSCHED_ATTACH_MPS, 0, now))
			goto out;
		if (i && gsc_submit(&client[i], &submit, now))
			goto out;
	}
	if (gsc_group_store(&group[0], GSC_FILE_GPU_PRIORITY, "10", now))
		goto out;
	submit.blocks = 8;
	before = dev->decisions;
	time = seconds();
	for (u64 i = 0; i < rounds; i++) {
		if (gsc_submit(&client[0], &submit, now += 1000) || gsc_complete(&client[0], &complete, now += 1000))
			goto out;
	}
	time = seconds() - time;
	before = dev->decisions - before;
	printf("core: %2u clients: %9.0f decisions/s, %6.0f ns per decision\n", n, (double)before / time,
	       time * 1e9 / (double)before);
	rc = 0;
out:
	free(client);
	free(dev);
	free(group);
	return rc;
}

int main(void)
{
	return measure(2, 300000) || measure(8, 100000) || measure(64, 10000);
}
