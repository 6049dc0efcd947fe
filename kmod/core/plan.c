// SPDX-License-Identifier: GPL-2.0-only
/*
 * An allocation that somebody else has computed: a daemon with models of what kernels take on how
 * many SMs (C-Laius 5 to 8), for which there is no place in a kernel. A plan gives groups a number
 * of CapSM each, which inside a band is both their capsm.max and their capsm.min, within their own;
 * groups without one share the rest by weight, as under ffs. It is installed as a whole, in one
 * decision.
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

/* One "path=number" of it */
struct entry {
	struct gsc_group *group;
	u32 units;
};

/* 1: the next one is in @entry; 0 there is none; -EINVAL; -ENOENT no such group */
static int next_entry(struct reader *reader, struct entry *entry)
{
	const char *path = reader->at, *end;
	char number[32];
	size_t len;

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
	path = end + 1;
	for (len = 0; path[len] && path[len] != ' ' && path[len] != '\n'; len++)
		;
	if (len >= sizeof(number))
		return -EINVAL;
	memcpy(number, path, len);
	number[len] = 0;
	reader->at = path + len;
	return gsc_parse_units(number, reader->dev->sms, 1, &entry->units) ? -EINVAL : 1;
}

/* Each group once, none below another, together no more than the device. Returns their number */
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
		sum += entry.units;
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
	dev->plan_round = ++dev->stamp;
	dev->plan_until = dev->now + ms * 1000000;
	dev->n_planned = (u32)n;
	dev->plan_expired = false;
	while (next_entry(&reader, &entry) > 0) {
		entry.group->plan_units = entry.units;
		entry.group->plan_round = dev->plan_round;
	}
	if (dev->policy != &gsc_policy_plan) {
		dev->plan_before = dev->policy;
		gsc_policy_start(dev, &gsc_policy_plan);
	}
	dev->bands_stale = true;
	return 0;
}

void gsc_plan_expire(struct gsc_device *dev)
{
	if (dev->policy == &gsc_policy_plan && dev->plan_until <= dev->now)
		end_plan(dev, true);
}

int gsc_plan_show(const struct gsc_device *dev, char *buf, size_t size)
{
	unsigned long long ms = div_u64(dev->plan_until - min(dev->plan_until, dev->now), 1000000);

	if (dev->policy == &gsc_policy_plan)
		return scnprintf(buf, size, "%u groups for %llu ms more, then %s",
				 dev->n_planned, ms, dev->plan_before->name);
	if (dev->plan_expired)
		return scnprintf(buf, size, "expired without another one: %s decides again",
				 dev->policy->name);
	return scnprintf(buf, size, "none");
}

static void order(struct gsc_band *band, u64 now)
{
	gsc_policy_ffs.order(band, now);
}

static int why(const struct gsc_client *client, char *buf, size_t size)
{
	const struct gsc_group *group;

	for (group = client->home; group; group = group->parent)
		if (gsc_group_plan(group) != GSC_MAX_UNLIMITED)
			return scnprintf(buf, size, "the plan gives its group %u of %u SMs",
					 gsc_sms(gsc_group_plan(group)), client->dev->sms);
	return scnprintf(buf, size, "the plan does not name its group: it shares what is left");
}

const struct gsc_policy gsc_policy_plan = {
	.name = "plan",
	.order = order,
	.granted = gsc_late_watch,
	.epoch_us = gsc_fair_epoch_us,
	.why = why,
	.equals = true,
};
