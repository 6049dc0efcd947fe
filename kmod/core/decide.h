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
void gsc_task_charge(struct gsc_task *task);
void gsc_task_end(struct gsc_task *task);
void gsc_tasks_apply(struct gsc_device *dev);

/* alloc.c: task->want of every task to task->alloc, client->hold_units to client->hold_got */
void gsc_allocate(struct gsc_device *dev);

/* window.c: task->alloc to task->base, for tasks of tier block */
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
