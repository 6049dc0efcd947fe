/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the tests of the core share: TAP, and a device whose actions are kept. Each test includes it
 * once.
 */
#ifndef SELFTESTS_CORE_WORLD_H
#define SELFTESTS_CORE_WORLD_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "kmod/core/core.h"
#include "kmod/core/decide.h"
#include "selftests/tap.h"

#define US	1000ULL
#define MS	1000000ULL
#define SM	GSCHED_CAPSM

static inline struct gsched_submit make_submit(u32 slot, u32 seq, u32 tier, u64 blocks)
{
	return (struct gsched_submit){
		.size = sizeof(struct gsched_submit), .slot = slot, .seq = seq, .tier = tier,
		.blocks_per_sm = 8, .blocks = blocks,
	};
}

static inline struct gsched_complete make_complete(u32 slot, u32 seq)
{
	return (struct gsched_complete){ .size = sizeof(struct gsched_complete), .slot = slot,
					 .seq = seq };
}

/* Memory for the tasks of each client that a test has: it stays there as clients come and go */
static struct kept {
	const struct gsc_client *client;
	struct gsc_task task[GSCHED_SLOTS];
	struct kept *next;
} *kept;

static inline struct gsc_task *op_new_task(struct gsc_client *client, u32 slot)
{
	struct kept *k = kept;

	while (k && k->client != client)
		k = k->next;
	if (!k) {
		k = calloc(1, sizeof(*k));
		if (!k)
			exit(1);
		k->client = client;
		k->next = kept;
		kept = k;
	}
	k->task[slot] = (struct gsc_task){ 0 };
	return &k->task[slot];
}

/* What the slot has or had last, which may be nothing */
static inline struct gsc_task *task_at(const struct gsc_client *client, u32 slot)
{
	static struct gsc_task none;

	return client->task[slot] ? client->task[slot] : &none;
}

/*
 * The tests look at what each event leads to, so each is committed at once. With @later set, the
 * caller commits; a submit then answers for a task that waits.
 */
static bool later;

static inline int committed(struct gsc_device *dev, u64 now, int ret)
{
	if (!later && !ret)
		gsc_commit(dev, now);
	return ret;
}

/* What the tests take for the answer to a submit: 0 granted, QUEUED, or an error */
#define QUEUED	1

static inline int answer(const struct gsc_task *task)
{
	return gsc_task_state(task) == GSCHED_STATE_QUEUED ? QUEUED : 0;
}

static inline int submit_committed(struct gsc_client *client, const struct gsched_submit *req,
				   u64 now)
{
	int ret = committed(client->dev, now, gsc_submit(client, req, now));

	return ret ? ret : answer(client->task[req->slot]);
}
#define gsc_submit submit_committed

static inline int adopt_committed(struct gsc_client *client, const struct gsched_submit *req,
				  u64 since, u64 now)
{
	int ret = committed(client->dev, now, gsc_adopt(client, req, since, now));

	return ret ? ret : answer(client->task[req->slot]);
}
#define gsc_adopt adopt_committed

static inline int complete_committed(struct gsc_client *client, const struct gsched_complete *req,
				     u64 now)
{
	return committed(client->dev, now, gsc_complete(client, req, now));
}
#define gsc_complete complete_committed

static inline int attach_committed(struct gsc_client *client, struct gsc_group *group, u32 flags,
				   u64 channel_group, u64 now)
{
	return committed(group->dev, now,
			 gsc_client_attach(client, group, flags, channel_group, now));
}
#define gsc_client_attach attach_committed

static inline void detach_committed(struct gsc_client *client, u64 now)
{
	struct gsc_device *dev = client->dev;

	gsc_client_detach(client, now);
	if (dev)
		committed(dev, now, 0);
}
#define gsc_client_detach detach_committed

static inline void move_committed(struct gsc_client *client, struct gsc_group *group, u64 now)
{
	gsc_client_move(client, group, now);
	committed(client->dev, now, 0);
}
#define gsc_client_move move_committed

static inline int report_committed(struct gsc_client *client, struct gsched_report *req,
				   u64 now)
{
	return committed(client->dev, now, gsc_client_report(client, req, now));
}
#define gsc_client_report report_committed

static inline void tick_committed(struct gsc_device *dev, u64 now)
{
	gsc_tick(dev, now);
	committed(dev, now, 0);
}
#define gsc_tick tick_committed

static inline int store_committed(struct gsc_group *group, enum gsc_file file, const char *text,
				  u64 now)
{
	return committed(group->dev, now, gsc_group_store(group, file, text, now));
}
#define gsc_group_store store_committed

static inline int mode_committed(struct gsc_device *dev, s32 mode, u64 now)
{
	return committed(dev, now, gsc_device_set_mode(dev, mode, now));
}
#define gsc_device_set_mode mode_committed

static inline int policy_committed(struct gsc_device *dev, const char *name, u64 now)
{
	return committed(dev, now, gsc_device_set_policy(dev, name, now));
}
#define gsc_device_set_policy policy_committed

static inline int param_committed(struct gsc_device *dev, enum gsc_param param, const char *text,
				  u64 now)
{
	return committed(dev, now, gsc_device_set_param(dev, param, text, now));
}
#define gsc_device_set_param param_committed

#endif /* SELFTESTS_CORE_WORLD_H */
