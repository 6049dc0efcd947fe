// SPDX-License-Identifier: GPL-2.0-only
/*
 * Shortest remaining time among equals (FLEP 5.2.1, figure 6). Priorities count as under hpf, which
 * gives every task its wish; of clients of one priority the one whose kernel has the least to do
 * comes first and takes all that it wants, instead of sharing by gpu.weight. That keeps the mean
 * slowdown small, and lets a long kernel wait for as long as there are shorter ones: hpf has no
 * such rule, for its users rely on getting a part.
 *
 * T_e is what the client predicts, T_r that without what the kernel has had so far, as time of all
 * that it can fill. One that runs longer than predicted is taken to be twice as long, as often as
 * needed; a kernel of unknown length begins at UNKNOWN_NS. What a kernel took beyond its prediction
 * is added to that of its client's next one: whoever claims less than the truth comes first once
 * and waits for it then, however it mixes claims. A factor instead would be brought down by a few
 * short kernels that keep their word, and one late completion would count for many.
 *
 * A kernel that runs is preempted only if T_r(running) > T_r(new) + overhead: until workers see
 * their new window and their block-tasks end, as measured, and between bands the switch
 * (switch_us).
 */
#include "decide.h"

#define UNKNOWN_NS	1000000ULL
/* until a granted kernel begins, and until its end is told: no fault of a prediction */
#define NOTICE_NS	50000ULL
/* longest time to a look at whether a kernel is longer than expected */
#define LOOK_NS		1000000000ULL
/* places among clients of one priority; the rest share the last one */
#define EQUALS_MAX	65536U

/* Clients in order */
struct line {
	struct gsc_client *first, *last;
};

static u32 priority_of(const struct gsc_client *client)
{
	return client->group->priority;
}

static const struct gsc_task *head_of(const struct gsc_client *client)
{
	return list_first_entry(&client->tasks, struct gsc_task, peer);
}

static bool has_capacity(const struct gsc_client *client)
{
	return head_of(client)->state == GSC_TASK_RUNNING && head_of(client)->window;
}

static u64 predicted(const struct gsc_task *task)
{
	return min(task->predicted_ns ? task->predicted_ns : UNKNOWN_NS, U64_MAX / 8);
}

static u64 had_so_far(const struct gsc_task *task)
{
	u64 had = div_u64(task->usage, gsc_packed(task, task->demand));

	return min(had + min(task->before_ns, U64_MAX / 8), U64_MAX / 8);
}

static u64 remaining(struct gsc_client *client)
{
	const struct gsc_task *task = head_of(client);
	u64 expected = predicted(task) + client->data.srt.overrun_ns, had;

	gsc_client_charge(client);
	had = had_so_far(task);
	while (expected <= had)
		expected *= 2;
	return expected - had;
}

static void ended(struct gsc_task *task, bool ran)
{
	u64 word = predicted(task) + NOTICE_NS, had = had_so_far(task);
	struct gsc_client *client = task->client;
	u64 over = had - min(had, word);

	/* what is withdrawn waited for nothing */
	client->data.srt.overrun_ns = ran ? over : max(over, client->data.srt.overrun_ns);
}

/* What a preemption of @client would cost; U64_MAX: an opaque kernel cannot be preempted */
static u64 overhead_of(const struct gsc_client *client)
{
	const struct gsc_task *task = head_of(client);

	if (!gsc_is_block(task))
		return U64_MAX / 4;
	return gsc_evict_ns(task) + min(task->block_ns, U64_MAX / 8);
}

static bool overtakes(const struct gsc_client *client, const struct gsc_client *before)
{
	const struct gsc_srt_client *a = &client->data.srt, *b = &before->data.srt;

	if (priority_of(client) != priority_of(before))
		return priority_of(client) > priority_of(before);
	return a->left < b->bar;
}

/* Of @before and those in front of it none is overtaken */
static bool is_behind_all(const struct gsc_client *client, const struct gsc_client *before)
{
	if (priority_of(before) != priority_of(client))
		return priority_of(before) > priority_of(client);
	/* in front of its equals are only more important ones */
	return client->data.srt.left >= before->data.srt.top_bar;
}

static void note_bar(struct gsc_client *client)
{
	const struct gsc_client *before = client->data.srt.prev;
	struct gsc_srt_client *data = &client->data.srt;

	data->top_bar = data->bar;
	if (before && priority_of(before) == priority_of(client))
		data->top_bar = max(data->bar, before->data.srt.top_bar);
}

static void append(struct line *line, struct gsc_client *client)
{
	client->data.srt.next = NULL;
	client->data.srt.prev = line->last;
	if (line->last)
		line->last->data.srt.next = client;
	else
		line->first = client;
	line->last = client;
}

static void move_before(struct line *line, struct gsc_client *client, struct gsc_client *before)
{
	struct gsc_srt_client *data = &client->data.srt;

	data->prev->data.srt.next = data->next;
	if (data->next)
		data->next->data.srt.prev = data->prev;
	else
		line->last = data->prev;
	data->next = before;
	data->prev = before->data.srt.prev;
	before->data.srt.prev = client;
	if (data->prev)
		data->prev->data.srt.next = client;
	else
		line->first = client;
}

/*
 * In the order of the last decision, new ones last; then each before the first one that it
 * overtakes
 */
static void line_up(struct gsc_band *band, struct line *line)
{
	struct gsc_client *client, *next, *before, *target;
	struct gsc_srt_client *data;
	struct gsc_task *task;

	list_for_each_entry(task, &band->tasks, node) {
		if (!gsc_is_head(task))
			continue;
		client = task->client;
		data = &client->data.srt;
		data->left = remaining(client);
		data->overhead = overhead_of(client);
		data->runs = has_capacity(client);
		data->bar = data->left - (data->runs ? min(data->overhead, data->left) : 0);
		append(line, client);
	}
	for (client = line->first; client; client = next) {
		next = client->data.srt.next;
		target = NULL;
		for (before = client->data.srt.prev; before && !is_behind_all(client, before);
		     before = before->data.srt.prev)
			if (overtakes(client, before))
				target = before;
		if (target)
			move_before(line, client, target);
		for (; client != next; client = client->data.srt.next)
			note_bar(client);
	}
}

/* When @client, which runs, is found to be longer than was expected at @now */
static u64 longer_at(const struct gsc_client *client, u64 now)
{
	return now + min(client->data.srt.left, LOOK_NS);
}

/* By place. Returns when a look is due whether one that runs is longer than predicted, 0 never */
static u64 set_ranks(const struct line *line, u64 now)
{
	struct gsc_client *client, *before = NULL;
	u64 again = 0;
	u32 place = 0;

	for (client = line->first; client; client = client->data.srt.next) {
		place = before && priority_of(before) == priority_of(client) ?
				min(place + 1, EQUALS_MAX - 1) : 0;
		client->data.srt.rank = (priority_of(client) + 1) * EQUALS_MAX - 1 - place;
		/* then another one is shorter */
		if (place == 1 && before->data.srt.runs)
			again = gsc_earlier(again, longer_at(before, now));
		before = client;
	}
	return again;
}

static void order(struct gsc_band *band, u64 now)
{
	struct line line = { NULL, NULL };
	struct gsc_task *task;
	bool sized = false;
	u64 again;

	line_up(band, &line);
	again = set_ranks(&line, now);
	list_for_each_entry(task, &band->tasks, node) {
		gsc_ask(task, task->client->data.srt.rank);
		sized |= task->client->sizes.tried != 0;
	}
	gsc_sort(band);
	if (sized)
		gsc_limit_needs(band);
	gsc_make_way(band, now);
	band->again = gsc_earlier(band->again, again);
}

static u64 switch_ns(const struct gsc_device *dev)
{
	return (u64)dev->param[GSC_PARAM_SWITCH_US] * 1000;
}

static struct gsc_client *first_client(const struct gsc_band *band)
{
	const struct gsc_task *first = gsc_first_wanting(band);

	return first ? first->client : NULL;
}

static struct gsc_band *turn(struct gsc_device *dev, u64 now)
{
	struct gsc_client *first, *owner = NULL, *best = NULL;
	const struct gsc_srt_client *data;
	struct gsc_band *band;

	list_for_each_entry(band, &dev->busy, busy) {
		first = first_client(band);
		if (first && band == dev->turn)
			owner = first;
		else if (first && (!best || priority_of(first) > priority_of(best) ||
				   (priority_of(first) == priority_of(best) &&
				    first->data.srt.left < best->data.srt.left)))
			best = first;
	}
	if (!owner || !best)
		return owner ? owner->band : best ? best->band : NULL;
	data = &owner->data.srt;
	if (priority_of(best) != priority_of(owner))
		return priority_of(best) > priority_of(owner) ? best->band : owner->band;
	if (best->data.srt.left + (data->runs ? data->overhead + switch_ns(dev) : 0) < data->left)
		return best->band;
	owner->band->again = gsc_earlier(owner->band->again, longer_at(owner, now));
	return owner->band;
}

static unsigned long long us(u64 ns)
{
	return div_u64(ns, 1000);
}

/*
 * Of its priority in its band, or on the device where bands take turns: the one with the least to
 * do but @client
 */
static const struct gsc_client *shortest(const struct gsc_client *client)
{
	const struct gsc_client *other, *least = NULL;

	list_for_each_entry(other, &client->dev->clients, node) {
		if (other == client || !other->n_tasks || priority_of(other) != priority_of(client))
			continue;
		if (other->band != client->band && client->dev->mode != GSCHED_MODE_TEMPORAL)
			continue;
		if (!least || other->data.srt.left < least->data.srt.left)
			least = other;
	}
	return least;
}

static int why(const struct gsc_client *client, char *buf, size_t size)
{
	const struct gsc_srt_client *data = &client->data.srt;
	const struct gsc_client *other;
	u64 cost;

	if (!client->n_tasks || !data->left)
		return scnprintf(buf, size, "%s", "");
	other = shortest(client);
	if (!other)
		return scnprintf(buf, size, "no other program of its priority has a kernel");
	if (!has_capacity(client))
		return scnprintf(
			buf, size,
			"its kernel has %llu us to go and waits for shorter ones, since %llu us",
			us(data->left), us(client->dev->now - head_of(client)->submitted));
	if (data->left <= other->data.srt.left)
		return scnprintf(buf, size, "its kernel has the least to go: %llu us",
				 us(data->left));
	cost = data->overhead;
	if (client->dev->mode == GSCHED_MODE_TEMPORAL)
		cost += switch_ns(client->dev);
	if (!gsc_is_block(head_of(client)))
		return scnprintf(
			buf, size,
			"its kernel cannot be preempted; a shorter one waits or has the rest");
	return scnprintf(
		buf, size,
		"its kernel has %llu us to go; another one has %llu, but a preemption costs %llu",
		us(data->left), us(other->data.srt.left), us(cost));
}

static u64 hold(struct gsc_device *dev, const struct gsc_task *ended, u64 now)
{
	return gsc_policy_hpf.hold(dev, ended, now);
}

const struct gsc_policy gsc_policy_srt = {
	.name = "srt",
	.order = order,
	.granted = gsc_late_watch,
	.ended = ended,
	.hold = hold,
	.turn = turn,
	.why = why,
};
