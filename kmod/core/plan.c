// SPDX-License-Identifier: GPL-2.0-only
/*
 * An allocation that somebody else has computed: a daemon with models of what kernels take on how
 * many SMs (C-Laius 5 to 8), for which there is no place in a kernel. A plan gives a group a number
 * of CapSM that inside a band is both its capsm.min and its capsm.max, or one number for each,
 * within its own; groups without one share the rest by weight, as under ffs. It is installed as a
 * whole, in one decision.
 *
 * Beyond that groups with a latency target come first, so one with a min of 0 takes what it wants
 * up to its max, while it has something to run. Where the plan says "!" the min is a capsm.reserve,
 * too (standby.c), and others do not have it meanwhile, however soon they would be gone.
 *
 * A plan has a time to live. Whoever makes plans renews them; one that has died or hangs does not,
 * and when the time is over the policy that was there before takes over.
 */
#include "decide.h"

#define PLAN_MS_MAX	60000

/* A plan that is read, and who knows groups by their paths */
struct reader {
	struct gsc_device *dev;
	const char *at;
	struct gsc_group *(*find)(void *arg, const char *path, size_t len);
	void *arg;
};

/* One "path=min-max" of it, or "path=number", which is both; with "!" behind it @keeps */
struct entry {
	struct gsc_group *group;
	u32 min, max;
	bool keeps;
};

#define NUMBER_MAX	32

/* A number before any of @end: what follows; NULL: none */
static const char *next_number(const char *text, const char *end, u32 sms, u32 *units)
{
	char number[NUMBER_MAX];
	size_t len;

	for (len = 0; text[len] && !strchr(end, text[len]); len++)
		if (len == sizeof(number) - 1)
			return NULL;
	memcpy(number, text, len);
	number[len] = 0;
	return gsc_parse_units(number, sms, 0, units) ? NULL : text + len;
}

/* 1: the next one is in @entry; 0 there is none; -EINVAL; -ENOENT no such group */
static int next_entry(struct reader *reader, struct entry *entry)
{
	const char *path = reader->at, *end;
	u32 sms = reader->dev->sms;

	while (*path == ' ')
		path++;
	if (!*path || (*path == '\n' && !path[1]))
		return 0;
	for (end = path; *end && *end != '='; end++)
		if (*end == ' ' || *end == '\n')
			return -EINVAL;
	if (!*end || end == path)
		return -EINVAL;
	entry->group = reader->find(reader->arg, path, (size_t)(end - path));
	if (!entry->group)
		return -ENOENT;
	if (!entry->group->parent)
		return -EINVAL;
	end = next_number(end + 1, "-!\n ", sms, &entry->min);
	entry->max = entry->min;
	if (end && *end == '-')
		end = next_number(end + 1, "!\n ", sms, &entry->max);
	if (!end || !entry->max || entry->max < entry->min)
		return -EINVAL;
	entry->keeps = *end == '!';
	end += entry->keeps;
	if (*end && *end != ' ' && *end != '\n')
		return -EINVAL;
	reader->at = end;
	return 1;
}

/*
 * Each group once, none below another, the minima together no more than the device. Returns their
 * number
 */
static int check_entries(const struct reader *text)
{
	u64 stamp = ++text->dev->stamp, sum = 0;
	struct reader reader = *text;
	const struct gsc_group *up;
	struct entry entry;
	int ret, n = 0;

	while ((ret = next_entry(&reader, &entry)) > 0) {
		if (entry.group->plan_checked == stamp)
			return -EINVAL;
		entry.group->plan_checked = stamp;
		sum += entry.min;
		n++;
	}
	if (ret)
		return ret;
	if (!n || sum > (u64)reader.dev->sms * GSCHED_CAPSM)
		return -EINVAL;
	for (reader = *text; next_entry(&reader, &entry) > 0;)
		for (up = entry.group->parent; up; up = up->parent)
			if (up->plan_checked == stamp)
				return -EINVAL;
	return n;
}

static void end_plan(struct gsc_device *dev, bool expired)
{
	dev->plan_expired = expired;
	gsc_policy_start(dev, dev->plan_before);
}

int gsc_device_plan(struct gsc_device *dev, const char *text,
		    struct gsc_group *(*find)(void *arg, const char *path, size_t len), void *arg,
		    u64 now)
{
	struct reader reader = { .dev = dev, .find = find, .arg = arg };
	struct gsc_plan_device *plan;
	bool none = !strncmp(text, "none", 4) && (!text[4] || (text[4] == '\n' && !text[5]));
	struct entry entry;
	u64 ms;
	int n;

	if (none) {
		gsc_mark(dev, now);
		if (dev->policy == &gsc_policy_plan)
			end_plan(dev, false);
		return 0;
	}
	reader.at = gsc_parse_number(text, PLAN_MS_MAX, &ms);
	if (!reader.at || !ms || *reader.at != ' ')
		return -EINVAL;
	n = check_entries(&reader);
	if (n < 0)
		return n;
	gsc_mark(dev, now);
	dev->plan_expired = false;
	if (!gsc_has_plan(dev)) {
		dev->plan_before = dev->policy;
		gsc_policy_start(dev, &gsc_policy_plan);
	}
	plan = &dev->data.plan;
	plan->round = ++dev->stamp;
	plan->until = dev->now + ms * 1000000;
	plan->n = (u32)n;
	while (next_entry(&reader, &entry) > 0)
		entry.group->data.plan = (struct gsc_plan_group){
			.round = plan->round, .min = entry.min, .max = entry.max,
			.keeps = entry.keeps,
		};
	dev->bands_stale = true;
	return 0;
}

void gsc_plan_expire(struct gsc_device *dev)
{
	if (dev->data.plan.until <= dev->now)
		end_plan(dev, true);
}

int gsc_plan_show(const struct gsc_device *dev, char *buf, size_t size)
{
	const struct gsc_plan_device *plan = &dev->data.plan;
	unsigned long long ms;

	if (gsc_has_plan(dev)) {
		ms = div_u64(plan->until - min(plan->until, dev->now), 1000000);
		return scnprintf(buf, size, "%u groups for %llu ms more, then %s", plan->n, ms,
				 dev->plan_before->name);
	}
	if (dev->plan_expired)
		return scnprintf(buf, size, "expired without another one: %s decides again",
				 dev->policy->name);
	return scnprintf(buf, size, "none");
}

/* It or a group above it has a latency target */
static bool has_target(const struct gsc_group *group)
{
	while (group && !group->latency_us)
		group = group->parent;
	return group;
}

static void order(struct gsc_band *band, u64 now)
{
	struct gsc_task *task;

	list_for_each_entry(task, &band->tasks, node) {
		task->rank = has_target(task->client->group);
		task->want = task->demand;
		task->need = task->want;
	}
	gsc_sort(band);
	gsc_make_way(band, now);
}

static int why(const struct gsc_client *client, char *buf, size_t size)
{
	const struct gsc_group *group = client->home;
	u32 least, most;

	while (group && !gsc_is_planned(group))
		group = group->parent;
	if (!group)
		return scnprintf(buf, size,
				 "the plan does not name its group: it shares what is left");
	least = gsc_sms(group->data.plan.min);
	most = gsc_sms(group->data.plan.max);
	if (least == most)
		return scnprintf(buf, size, "the plan gives its group %u of %u SMs", least,
				 client->dev->sms);
	return scnprintf(buf, size, "the plan gives its group %u to %u of %u SMs", least, most,
			 client->dev->sms);
}

const struct gsc_policy gsc_policy_plan = {
	.name = "plan",
	.order = order,
	.granted = gsc_late_watch,
	.epoch_us = gsc_fair_epoch_us,
	.why = why,
	.equals = true,
};
