/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of the core share with each other and with nobody else. */
#ifndef GSCHED_CORE_DECIDE_H
#define GSCHED_CORE_DECIDE_H

#include "core.h"

/* device.c */
void gsc_advance(struct gsc_device *dev, u64 now);
void gsc_decide(struct gsc_device *dev);
void gsc_hold_drop(struct gsc_client *client);

/* task.c */
void gsc_client_charge(struct gsc_client *client);
void gsc_task_end(struct gsc_task *task);
void gsc_tasks_apply(struct gsc_device *dev);

/* policy.c: dev->tasks by falling rank, first come first among equals */
void gsc_sort(struct gsc_device *dev);

/* alloc.c: task->want of every task to client->alloc and task->alloc, client->hold_units to client->hold_got */
void gsc_allocate(struct gsc_device *dev);

/* window.c: client->alloc to client->base, for clients with tasks of tier block */
void gsc_place(struct gsc_device *dev);

static inline bool gsc_is_block(const struct gsc_task *task)
{
	return task->tier == GSCHED_TIER_BLOCK;
}

/* What cannot be taken back before it ends */
static inline bool gsc_is_fixed(const struct gsc_task *task)
{
	return !gsc_is_block(task) && task->state == GSC_TASK_RUNNING;
}

/*
 * What runs first of a client's tasks runs for sure: those behind it may stand in the same stream. So of its opaque tasks
 * only that one counts for what it was granted.
 */
static inline bool gsc_is_head(const struct gsc_task *task)
{
	return task->peer.prev == &task->client->tasks;
}

static inline u32 gsc_limit(const struct gsc_task *task)
{
	return GSCHED_WINDOW_LIMIT(task->window);
}

/* Capacity of one worker */
static inline u32 gsc_weight(const struct gsc_task *task)
{
	return GSCHED_CAPSM / task->blocks_per_sm;
}

static inline u32 gsc_sms(u32 units)
{
	return units / GSCHED_CAPSM + (units % GSCHED_CAPSM != 0);
}

#endif /* GSCHED_CORE_DECIDE_H */
