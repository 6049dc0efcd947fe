// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where on the device: windows of whole SMs for the tasks of tier block. They never overlap. A base moves only if there is
 * no other way, for a worker outside the new window has to leave. Opaque tasks are not placed: they run on SMs that no
 * window covers, wherever the hardware finds them.
 *
 * dev->placed keeps the order of the windows on the device, which never changes; the sum of the footprints is at most the
 * device (the allocator), so the order can always be kept.
 */
#include "decide.h"

static void unplace(struct gsc_task *task)
{
	if (!list_empty(&task->place))
		list_del_init(&task->place);
}

/*
 * Keep the order, move as little as possible: a window that grows goes up if there is room, else down, else pushes its upper
 * neighbours; those pushed over the end push back.
 */
static void settle(struct gsc_device *dev)
{
	struct gsc_task *task, *next;
	u32 end = 0, top;

	list_for_each_entry(task, &dev->placed, place) {
		next = list_next_entry(task, place);
		top = list_entry_is_head(next, &dev->placed, place) ? dev->sms : next->base;
		if (task->base + task->sms > top)
			task->base = top - min(top, task->sms);
		task->base = max(task->base, end);
		end = task->base + task->sms;
	}
	top = dev->sms;
	list_for_each_entry_reverse(task, &dev->placed, place) {
		if (task->base + task->sms > top)
			task->base = top - min(top, task->sms);
		top = task->base;
	}
}

/* The place where it was, else the first gap that is large enough, else the largest gap and the others move */
static void insert(struct gsc_device *dev, struct gsc_task *new)
{
	u32 end = 0, top, old = GSCHED_WINDOW_BASE(new->window) / GSCHED_CAPSM, best_size = 0, best_base = 0;
	struct list_head *after = &dev->placed, *best = &dev->placed, *next;
	struct gsc_task *task;
	bool was = new->state == GSC_TASK_RUNNING, fits = false;

	for (;;) {
		next = after->next;
		top = next == &dev->placed ? dev->sms : list_entry(next, struct gsc_task, place)->base;
		if (was && old >= end && old + new->sms <= top) {
			best = after;
			best_base = old;
			fits = true;
			break;
		}
		if (!fits && (top - end >= new->sms || top - end > best_size)) {
			best = after;
			best_base = end;
			best_size = top - end;
			fits = best_size >= new->sms;
		}
		if (next == &dev->placed)
			break;
		task = list_entry(next, struct gsc_task, place);
		end = task->base + task->sms;
		after = next;
	}
	new->base = best_base;
	list_add(&new->place, best);
	if (!fits)
		settle(dev);
}

void gsc_place(struct gsc_device *dev)
{
	struct gsc_task *task;

	list_for_each_entry(task, &dev->tasks, node) {
		task->sms = gsc_sms(task->alloc);
		task->base = GSCHED_WINDOW_BASE(task->window) / GSCHED_CAPSM;
		if (!task->alloc)
			unplace(task);
	}
	settle(dev);
	list_for_each_entry(task, &dev->tasks, node)
		if (gsc_is_block(task) && task->alloc && list_empty(&task->place))
			insert(dev, task);
}
