// SPDX-License-Identifier: GPL-2.0-only
/*
 * Complementary kernels share the device, others have it one after another (Slate III.B, table I).
 * Priorities mean nothing. Clients with tasks stand in line, by when they became active. The first
 * one has the device, and beside it the first one behind it whose kernel the table pairs with its
 * own: both share by gpu.weight. SMs that the two leave idle, since their kernels are small, go to
 * the others: Slate's kernels all fill the device, so the table says nothing about such.
 *
 * Slate runs a kernel to its end before the next one. Here a client that has had the device for a
 * turn goes to the end of the line if somebody behind it gets nothing, or too little: so nobody
 * waits for more than a turn of each of the others. A turn is so long that the overhead of
 * switching, switch_us and a block-task, stays below max_overhead. An opaque kernel that runs then
 * is not waited for: the hardware divides the SMs until it ends.
 *
 * The class comes with each task from its client (struct gsched_submit.intensity); the kernel that
 * came first stands for the client's others. One of an unknown class has the device for itself:
 * nothing says that it may share.
 *
 * Of table I as it is printed rows are the kernel that runs and columns the one that comes. It is
 * not symmetric: M_M runs beside H_C and H_C beside H_M, but not the other way round.
 */
#include "decide.h"

#define TURN_NS_MAX	500000000ULL
#define BLOCK_NS_MAX	20000000ULL

#define N_CLASSES	(GSCHED_INTENSITY__MAX + 1)

static const bool complementary[N_CLASSES][N_CLASSES] = {
	[GSCHED_INTENSITY_L_C] = {
		[GSCHED_INTENSITY_L_C] = true, [GSCHED_INTENSITY_M_C] = true,
		[GSCHED_INTENSITY_M_M] = true, [GSCHED_INTENSITY_H_M] = true,
	},
	[GSCHED_INTENSITY_M_C] = {
		[GSCHED_INTENSITY_L_C] = true, [GSCHED_INTENSITY_M_C] = true,
		[GSCHED_INTENSITY_H_M] = true,
	},
	[GSCHED_INTENSITY_H_C] = {
		[GSCHED_INTENSITY_H_M] = true,
	},
	[GSCHED_INTENSITY_M_M] = {
		[GSCHED_INTENSITY_L_C] = true, [GSCHED_INTENSITY_H_C] = true,
	},
	[GSCHED_INTENSITY_H_M] = {
		[GSCHED_INTENSITY_L_C] = true, [GSCHED_INTENSITY_M_C] = true,
	},
};

static const char *const class_name[N_CLASSES] = {
	[GSCHED_INTENSITY_UNKNOWN] = "unknown",
	[GSCHED_INTENSITY_L_C] = "L_C",
	[GSCHED_INTENSITY_M_C] = "M_C",
	[GSCHED_INTENSITY_H_C] = "H_C",
	[GSCHED_INTENSITY_M_M] = "M_M",
	[GSCHED_INTENSITY_H_M] = "H_M",
};

static const struct gsc_task *head_of(const struct gsc_client *client)
{
	return list_first_entry(&client->tasks, struct gsc_task, peer);
}

static bool may_pair(const struct gsc_client *first, const struct gsc_client *other)
{
	return complementary[head_of(first)->intensity][head_of(other)->intensity];
}

static u64 turn_ns(const struct gsc_client *client)
{
	const struct gsc_device *dev = client->dev;
	u64 cost = (u64)dev->param[GSC_PARAM_SWITCH_US] * 1000 +
		   min(head_of(client)->block_ns, BLOCK_NS_MAX);

	return min(div_u64(cost * 1000, dev->param[GSC_PARAM_MAX_OVERHEAD]), TURN_NS_MAX);
}

/* To the end of the line */
static void line_up(struct gsc_client *client)
{
	client->data.corun.place = ++client->dev->stamp;
	client->data.corun.since = 0;
}

/* Clients that became active since the last decision line up */
static void collect(struct gsc_band *band)
{
	u64 last = band->data.corun.round;
	struct gsc_corun_client *data;
	struct gsc_task *task;

	band->data.corun.round = ++gsc_band_device(band)->stamp;
	list_for_each_entry(task, &band->tasks, node) {
		data = &task->client->data.corun;
		if (data->round == band->data.corun.round)
			continue;
		if (!data->place || data->round != last)
			line_up(task->client);
		data->round = band->data.corun.round;
	}
}

/* The first in the line, or, behind @first, the first one that may run beside it; NULL none */
static struct gsc_client *front(const struct gsc_band *band, const struct gsc_client *first)
{
	struct gsc_client *best = NULL;
	struct gsc_task *task;

	list_for_each_entry(task, &band->tasks, node) {
		if (first && (task->client == first || !may_pair(first, task->client)))
			continue;
		if (!best || task->client->data.corun.place < best->data.corun.place)
			best = task->client;
	}
	return best;
}

static u64 turn_end(const struct gsc_client *client)
{
	return client->data.corun.since + turn_ns(client);
}

static void begin_turn(struct gsc_client *client, u64 now)
{
	struct gsc_corun_client *data = &client->data.corun;

	data->chosen = true;
	if (!data->since)
		data->since = now;
}

/* Somebody has no turn */
static bool others_wait(const struct gsc_band *band)
{
	const struct gsc_task *task;

	list_for_each_entry(task, &band->tasks, node)
		if (!task->client->data.corun.chosen)
			return true;
	return false;
}

static void choose(struct gsc_band *band, u64 now)
{
	struct gsc_client *first = front(band, NULL), *other = first ? front(band, first) : NULL;
	struct gsc_client *client;

	list_for_each_entry(client, &band->active, active)
		client->data.corun.chosen = false;
	if (first)
		begin_turn(first, now);
	if (other)
		begin_turn(other, now);
	/* a kernel of another class ends a pair, and with it a turn */
	list_for_each_entry(client, &band->active, active)
		if (!client->data.corun.chosen)
			client->data.corun.since = 0;
}

/* Turns that are over while somebody waits; true: the line has changed */
static bool end_turns(struct gsc_band *band, u64 now)
{
	struct gsc_client *client;
	bool ended = false;

	if (!others_wait(band))
		return false;
	list_for_each_entry(client, &band->active, active) {
		if (!client->n_tasks || !client->data.corun.chosen || turn_end(client) > now)
			continue;
		line_up(client);
		ended = true;
	}
	return ended;
}

static void order(struct gsc_band *band, u64 now)
{
	struct gsc_client *client;
	struct gsc_task *task;
	bool waiting;

	band->again = 0;
	collect(band);
	choose(band, now);
	if (end_turns(band, now))
		choose(band, now);
	waiting = others_wait(band);
	list_for_each_entry(task, &band->tasks, node) {
		client = task->client;
		task->rank = client->data.corun.chosen;
		task->want = task->demand;
		task->need = task->want;
		if (task->rank && waiting)
			band->again = gsc_earlier(band->again, turn_end(client));
	}
	gsc_sort(band);
}

/* Its place in the line is of one band and one group */
static void moved(struct gsc_client *client)
{
	client->data.corun = (struct gsc_corun_client){ 0 };
}

static const struct gsc_client *partner_of(const struct gsc_client *client)
{
	const struct gsc_client *other;

	list_for_each_entry(other, &client->band->members, member)
		if (other != client && other->n_tasks && other->data.corun.chosen)
			return other;
	return NULL;
}

static int why(const struct gsc_client *client, char *buf, size_t size)
{
	const struct gsc_client *other;
	const char *name;

	if (!client->n_tasks || !client->data.corun.place)
		return scnprintf(buf, size, "%s", "");
	name = class_name[head_of(client)->intensity];
	other = partner_of(client);
	if (!client->data.corun.chosen)
		return scnprintf(buf, size, "its kernel (%s) waits for its turn: %s", name,
				 "it is no complement of what runs, or another one is");
	if (!other)
		return scnprintf(buf, size,
				 "its kernel (%s) runs alone: no other one is a complement", name);
	return scnprintf(buf, size, "its kernel (%s) runs beside one of %u (%s), its complement",
			 name, other->pid, class_name[head_of(other)->intensity]);
}

const struct gsc_policy gsc_policy_corun = {
	.name = "corun",
	.order = order,
	.moved = moved,
	.epoch_us = gsc_fair_epoch_us,
	.why = why,
	.equals = true,
};
