// SPDX-License-Identifier: GPL-2.0-only
/*
 * What was demanded, used, granted and promised: integrals of capacity over time.
 *
 * A client demands what the largest of its tasks could use, whatever quotas say, as it is charged
 * for the largest of them. That and what it used is added up in the client, where it costs a
 * multiplication, and brought to its groups before statistics are read (gsc_client_count()) and
 * before its groups change.
 *
 * A group promises its capsm.min while a client in it or below has a task, or what groups below it
 * promise if that is more. What a plan gives is not counted.
 */
#include "decide.h"

void gsc_client_flush(struct gsc_client *client)
{
	const struct gsc_counts *counts = &client->counts;
	struct gsc_group *group;
	int i;

	for (group = client->group; group; group = group->parent) {
		gsc_sum_add_units(&group->stats.demanded, client->demanded);
		gsc_sum_add_units(&group->stats.capsm, client->used);
		gsc_sum_add(&group->stats.granted, client->granted_ns, GSCHED_CAPSM);
		group->stats.counts.tasks += counts->tasks;
		group->stats.counts.cancelled += counts->cancelled;
		for (i = 0; i < GSC_CHANGES; i++)
			group->stats.counts.changes[i] += counts->changes[i];
	}
	client->counts = (struct gsc_counts){ 0 };
	client->demanded = 0;
	client->used = 0;
	client->granted_ns = 0;
}

void gsc_demand_charge_long(struct gsc_client *client, u64 ns)
{
	struct gsc_group *group;

	gsc_client_flush(client);
	for (group = client->group; group; group = group->parent)
		gsc_sum_add(&group->stats.demanded, ns, client->demand);
}

void gsc_used_charge_long(struct gsc_client *client, u64 ns, u32 units)
{
	struct gsc_group *group;

	gsc_client_flush(client);
	for (group = client->group; group; group = group->parent) {
		gsc_sum_add(&group->stats.capsm, ns, units);
		gsc_sum_add(&group->stats.granted, ns, GSCHED_CAPSM);
	}
}

/* The largest of its tasks ended */
void gsc_demand_shrink(struct gsc_client *client)
{
	const struct gsc_task *task;
	u32 largest = 0;

	list_for_each_entry(task, &client->tasks, peer) {
		largest = max(largest, task->demand);
		if (largest == client->demand)
			return;
	}
	client->demand = largest;
}

static u32 promise_of(const struct gsc_group *group)
{
	u32 most = min(group->dev->sms * GSCHED_CAPSM, group->max);

	if (!group->n_demanding)
		return 0;
	return (u32)min_t(u64, max_t(u64, group->min, group->promised_below), most);
}

static void settle(struct gsc_group *group)
{
	u64 now = group->dev->now;

	if (group->promise)
		gsc_sum_add(&group->stats.promised, now - group->promised_since, group->promise);
	group->promised_since = now;
}

static void update(struct gsc_group *group)
{
	u32 promise = promise_of(group);

	if (promise == group->promise)
		return;
	settle(group);
	if (group->parent)
		group->parent->promised_below += (u64)promise - group->promise;
	group->promise = promise;
}

void gsc_promise_update(struct gsc_group *group)
{
	for (; group; group = group->parent)
		update(group);
}

void gsc_promise_begin(struct gsc_client *client)
{
	struct gsc_group *group;

	for (group = client->home; group; group = group->parent) {
		group->n_demanding++;
		if (group->min || group->promised_below)
			update(group);
	}
}

void gsc_promise_end(struct gsc_client *client)
{
	struct gsc_group *group;

	for (group = client->home; group; group = group->parent) {
		group->n_demanding--;
		if (group->promise)
			update(group);
	}
}

void gsc_promise_settle(struct gsc_device *dev)
{
	struct gsc_client *client;
	struct gsc_group *group;

	list_for_each_entry(client, &dev->clients, node)
		for (group = client->n_tasks ? client->home : NULL; group; group = group->parent)
			settle(group);
}
