// SPDX-License-Identifier: GPL-2.0-only
/*
 * Opaque tasks that nobody completes. Such a task keeps what it was granted, as it cannot be
 * evicted, and a client of equal rank would wait for it for ever. After GSC_PATIENCE_NS of such
 * waiting it is overdue: the core then serves the others as if it were gone. If it does run, the
 * hardware divides the SMs, as it would have without gsched. Its client gets nothing more in this
 * band until it ends.
 *
 * Unless the client has a task that waits for as long: the opaque one may be a kernel that polls
 * what a later launch in another stream writes, and would never end. It is then chained: until it
 * ends, its client is served as if it were gone, and opaque tasks of the client share what it keeps
 * where they would get nothing.
 *
 * A more important one, too, is overdue in the end, if it takes a hundred times as long as it
 * should and keeps all from somebody below: it may be unable to begin, since kernels that wait for
 * those below fill the SMs.
 *
 * Rewritten kernels need none of this: equals get their part of the SMs at once, by eviction.
 */
#include "decide.h"

#define STUCK_NS	2000000000ULL	/* and a hundred times as long as it should take */

static const struct gsc_task *first_waiting(const struct gsc_client *client)
{
	const struct gsc_task *task;

	list_for_each_entry(task, &client->tasks, peer)
		if (task->state == GSC_TASK_WAITING)
			return task;
	return NULL;
}

/* What others may keep from the client: its first task, or the first behind a chained one */
static const struct gsc_task *head_of(const struct gsc_client *client)
{
	const struct gsc_task *head;

	if (list_empty(&client->tasks))
		return NULL;
	head = list_first_entry(&client->tasks, struct gsc_task, peer);
	return head->chained ? first_waiting(client) : head;
}

/* Whether its first task, or the next one behind an opaque one, runs and has no window */
static bool has_nothing(const struct gsc_client *client)
{
	const struct gsc_task *task;
	unsigned int left = 2;

	list_for_each_entry(task, &client->tasks, peer) {
		if (gsc_is_block(task))
			return task->state == GSC_TASK_RUNNING && !task->window;
		if (!--left)
			break;
	}
	return false;
}

/* When a task that keeps all from one below it takes too long to be just late; 0: never */
static u64 stuck_at(const struct gsc_band *band, const struct gsc_task *task)
{
	const struct gsc_client *client;

	if (!task->predicted_ns || task->predicted_ns > STUCK_NS / 100)
		return 0;
	list_for_each_entry(client, &band->active, active)
		if (client != task->client && has_nothing(client))
			return task->granted + STUCK_NS;
	return 0;
}

/* When whoever waits longest for what @task keeps runs out of patience; 0: nobody waits */
static u64 due_at(const struct gsc_band *band, const struct gsc_task *task)
{
	const struct gsc_client *client;
	const struct gsc_task *head;
	u64 since = U64_MAX;

	list_for_each_entry(client, &band->active, active) {
		head = head_of(client);
		if (head && head->state == GSC_TASK_WAITING && head->want &&
		    head->rank >= task->rank)
			since = min(since, head->submitted);
	}
	return since == U64_MAX ? 0 : max(since, task->granted) + GSC_PATIENCE_NS;
}

/* When the first one that waits behind @task, of its client, runs out of patience; 0: none waits */
static u64 chained_at(const struct gsc_task *task)
{
	const struct gsc_task *next = first_waiting(task->client);

	return next ? max(task->granted, next->submitted) + GSC_PATIENCE_NS : 0;
}

void gsc_watch(struct gsc_band *band)
{
	struct gsc_client *client;
	struct gsc_task *task;
	u64 due;

	band->watch = 0;
	if (!band->n_opaque)
		return;
	list_for_each_entry(client, &band->active, active) {
		if (list_empty(&client->tasks))
			continue;
		task = list_first_entry(&client->tasks, struct gsc_task, peer);
		if (!gsc_is_fixed(task) || !task->want)
			continue;
		due = task->chained ? 0 : chained_at(task);
		if (due && due <= client->dev->now)
			task->chained = true;
		else
			band->watch = gsc_earlier(band->watch, due);
		due = task->overdue ? client->dev->now :
		      gsc_earlier(due_at(band, task), stuck_at(band, task));
		if (due && due <= client->dev->now) {
			if (!task->overdue)
				gsc_event(client->group, GSC_EVENT_OVERDUE);
			task->overdue = true;
			task->want = 0;
		} else {
			band->watch = gsc_earlier(band->watch, due);
		}
	}
}
