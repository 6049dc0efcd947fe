// SPDX-License-Identifier: GPL-2.0-only
/*
 * The files of a group and the parameters of a device: names, ranges, and text to numbers and back.
 * Formats follow cgroup v2.
 */
#include "decide.h"

#define FRACTION_DIGITS	10	/* 1/1024 = 0.0009765625 */

const char *const gsc_file_name[GSC_FILE_COUNT] = {
	[GSC_FILE_CAPSM_MAX] = "capsm.max",
	[GSC_FILE_CAPSM_MIN] = "capsm.min",
	[GSC_FILE_CAPSM_RESERVE] = "capsm.reserve",
	[GSC_FILE_GPU_WEIGHT] = "gpu.weight",
	[GSC_FILE_GPU_PRIORITY] = "gpu.priority",
	[GSC_FILE_GPU_BAND] = "gpu.band",
	[GSC_FILE_GPU_LATENCY] = "gpu.latency_target_us",
	[GSC_FILE_MEMORY_MAX] = "memory.max",
	[GSC_FILE_CAPSM_CURRENT] = "capsm.current",
	[GSC_FILE_CAPSM_PLAN] = "capsm.plan",
	[GSC_FILE_GPU_STAT] = "gpu.stat",
	[GSC_FILE_GPU_PRESSURE] = "gpu.pressure",
	[GSC_FILE_GPU_EVENTS] = "gpu.events",
	[GSC_FILE_GPU_PREEMPTION] = "gpu.preemption",
	[GSC_FILE_MEMORY_CURRENT] = "memory.current",
	[GSC_FILE_MEMORY_PEAK] = "memory.peak",
};

const char *const gsc_param_name[GSC_PARAM_COUNT] = {
	[GSC_PARAM_SWITCH_US] = "switch_us",
	[GSC_PARAM_MAX_OVERHEAD] = "max_overhead",
	[GSC_PARAM_MAX_SLOWDOWN] = "max_slowdown",
};

static const struct {
	u32 least, most;
} param_range[GSC_PARAM_COUNT] = {
	[GSC_PARAM_SWITCH_US] = { 10, 10000 },
	[GSC_PARAM_MAX_OVERHEAD] = { 5, 500 },
	[GSC_PARAM_MAX_SLOWDOWN] = { 100, 1000 },
};

bool gsc_file_writable(enum gsc_file file)
{
	return file < GSC_FILE_CAPSM_CURRENT;
}

int gsc_file_find(const char *name)
{
	int i;

	for (i = 0; i < GSC_FILE_COUNT; i++)
		if (!strcmp(gsc_file_name[i], name))
			return i;
	return -ENOENT;
}

int gsc_param_find(const char *name)
{
	int i;

	for (i = 0; i < GSC_PARAM_COUNT; i++)
		if (!strcmp(gsc_param_name[i], name))
			return i;
	return -ENOENT;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_end(const char *text)
{
	return !text[0] || (text[0] == '\n' && !text[1]);
}

/* At least one digit; at most @most. NULL: not so. Else what follows */
const char *gsc_parse_number(const char *text, u64 most, u64 *value)
{
	if (!is_digit(*text))
		return NULL;
	for (*value = 0; is_digit(*text); text++) {
		*value = *value * 10 + (u64)(*text - '0');
		if (*value > most)
			return NULL;
	}
	return text;
}

static int parse_plain(const char *text, u32 least, u32 most, u32 *to)
{
	u64 value;

	text = gsc_parse_number(text, most, &value);
	if (!text || !is_end(text) || value < least)
		return -EINVAL;
	*to = (u32)value;
	return 0;
}

/* CapSM with a decimal fraction, rounded to the nearest unit */
int gsc_parse_units(const char *text, u32 sms, u32 least, u32 *to)
{
	u64 whole, fraction = 0, scale = 1;

	text = gsc_parse_number(text, sms, &whole);
	if (!text)
		return -EINVAL;
	if (*text == '.') {
		if (!is_digit(*++text))
			return -EINVAL;
		for (; is_digit(*text); text++) {
			/*
			 * digits beyond these cannot change the result's rounding by more than a
			 * tie
			 */
			if (scale >= 1000000000000ULL)
				continue;
			fraction = fraction * 10 + (u64)(*text - '0');
			scale *= 10;
		}
	}
	if (!is_end(text))
		return -EINVAL;
	whole = whole * GSCHED_CAPSM + div64_u64(fraction * GSCHED_CAPSM + scale / 2, scale);
	if (whole < least || whole > (u64)sms * GSCHED_CAPSM)
		return -EINVAL;
	*to = (u32)whole;
	return 0;
}

static bool is_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	return !strncmp(text, word, len) && is_end(text + len);
}

/* "max", or a number of CapSM */
static int parse_quota(const char *text, u32 sms, u32 least, u32 *to)
{
	if (!is_word(text, "max"))
		return gsc_parse_units(text, sms, least, to);
	*to = GSC_MAX_UNLIMITED;
	return 0;
}

/* "auto", or a number of CapSM */
static int parse_standby(const char *text, u32 sms, u32 *to)
{
	if (!is_word(text, "auto"))
		return gsc_parse_units(text, sms, 0, to);
	*to = GSC_STANDBY_AUTO;
	return 0;
}

/* "max", or a number of bytes, with a binary unit as cgroup v2 takes it */
static int parse_bytes(const char *text, u64 *to)
{
	static const char units[] = "KkMmGgTt";
	u32 shift = 0;
	u64 value;

	if (is_word(text, "max")) {
		*to = GSC_MEMORY_UNLIMITED;
		return 0;
	}
	text = gsc_parse_number(text, GSCHED_MEMORY_MAX, &value);
	if (!text)
		return -EINVAL;
	if (*text && strchr(units, *text))
		shift = 10 * (u32)((strchr(units, *text++) - units) / 2 + 1);
	if (!is_end(text) || value > GSCHED_MEMORY_MAX >> shift)
		return -EINVAL;
	*to = value << shift;
	return 0;
}

static void store_priority(struct gsc_group *group, u32 priority)
{
	struct gsc_client *client;

	if (group->priority == priority)
		return;
	group->priority = priority;
	list_for_each_entry(client, &group->dev->clients, node)
		if (client->home == group)
			gsc_hold_drop(client);
}

const char *gsc_group_band(const struct gsc_group *group)
{
	while (!group->band[0] && group->parent)
		group = group->parent;
	return group->band;
}

static bool has_clients(const struct gsc_group *group)
{
	const struct gsc_client *client;
	const struct gsc_group *up;

	list_for_each_entry(client, &group->dev->clients, node)
		for (up = client->group; up; up = up->parent)
			if (up == group)
				return true;
	return false;
}

static int store_band(struct gsc_group *group, const char *text)
{
	char name[sizeof(group->band)] = "";
	size_t len;

	for (len = 0; !is_end(text + len); len++) {
		char c = text[len];

		if (len + 1 >= sizeof(name) ||
		    !(is_digit(c) || (c >= 'a' && c <= 'z') || c == '_' || c == '-'))
			return -EINVAL;
		name[len] = c;
	}
	if (!strcmp(name, group->band))
		return 0;
	if (has_clients(group))
		return -EBUSY;
	memcpy(group->band, name, sizeof(name));
	return 0;
}

int gsc_group_store(struct gsc_group *group, enum gsc_file file, const char *text, u64 now)
{
	struct gsc_device *dev = group->dev;
	u64 bytes;
	u32 value;
	int ret;

	switch (file) {
	case GSC_FILE_CAPSM_MAX:
		ret = parse_quota(text, dev->sms, 1, &value);
		if (!ret)
			gsc_group_set_max(group, value);
		break;
	case GSC_FILE_CAPSM_MIN:
		ret = parse_quota(text, dev->sms, 0, &value);
		if (!ret)
			gsc_group_set_min(group, value);
		break;
	case GSC_FILE_CAPSM_RESERVE:
		ret = parse_standby(text, dev->sms, &value);
		if (!ret)
			gsc_standby_set(group, value);
		break;
	case GSC_FILE_GPU_WEIGHT:
		ret = parse_plain(text, 1, GSC_WEIGHT_MAX, &value);
		if (!ret)
			group->weight = value;
		break;
	case GSC_FILE_GPU_PRIORITY:
		ret = parse_plain(text, 0, GSC_PRIORITY_MAX, &value);
		if (!ret)
			store_priority(group, value);
		break;
	case GSC_FILE_GPU_BAND:
		ret = store_band(group, text);
		break;
	case GSC_FILE_GPU_LATENCY:
		ret = parse_plain(text, 0, GSC_LATENCY_US_MAX, &value);
		if (!ret)
			group->latency_us = value;
		break;
	case GSC_FILE_MEMORY_MAX:
		ret = parse_bytes(text, &bytes);
		if (!ret)
			group->memory.max = bytes;
		break;
	default:
		return -EINVAL;
	}
	if (ret)
		return ret;
	gsc_clients_follow(group);
	gsc_mark(dev, now);
	gsc_promise_update(group);
	dev->bands_stale = true;
	return 0;
}

bool gsc_client_has(enum gsc_file file)
{
	return file == GSC_FILE_CAPSM_MAX || file == GSC_FILE_GPU_WEIGHT ||
	       file == GSC_FILE_GPU_PRIORITY;
}

/* "max" is the group's */
static int parse_priority(const char *text, u32 *to)
{
	if (!is_word(text, "max"))
		return parse_plain(text, 0, GSC_PRIORITY_MAX, to);
	*to = U32_MAX;
	return 0;
}

int gsc_client_store(struct gsc_client *client, enum gsc_file file, const char *text, bool raise,
		     u64 now)
{
	struct gsc_device *dev = client->dev;
	u32 value, *to;
	int ret;

	if (!dev || !gsc_client_has(file))
		return -ENOENT;
	if (file == GSC_FILE_CAPSM_MAX) {
		to = &client->own.max;
		ret = parse_quota(text, dev->sms, 1, &value);
	} else if (file == GSC_FILE_GPU_WEIGHT) {
		to = &client->own.weight;
		ret = parse_plain(text, 1, GSC_WEIGHT_MAX, &value);
	} else {
		to = &client->priority_max;
		ret = parse_priority(text, &value);
	}
	if (ret)
		return ret;
	if (value > *to && !raise)
		return -EPERM;
	gsc_mark(dev, now);
	if (file == GSC_FILE_GPU_PRIORITY && value != *to)
		gsc_hold_drop(client);
	if (file == GSC_FILE_CAPSM_MAX)
		gsc_group_set_max(&client->own, value);
	else
		*to = value;
	gsc_client_follow(client);
	dev->bands_stale = true;
	return 0;
}

int gsc_device_set_param(struct gsc_device *dev, enum gsc_param param, const char *text, u64 now)
{
	int ret;

	if (param >= GSC_PARAM_COUNT)
		return -EINVAL;
	ret = parse_plain(text, param_range[param].least, param_range[param].most,
			  &dev->param[param]);
	if (ret)
		return ret;
	gsc_mark(dev, now);
	dev->bands_stale = true;
	return 0;
}

int gsc_device_show_param(const struct gsc_device *dev, enum gsc_param param, char *buf,
			  size_t size)
{
	return param < GSC_PARAM_COUNT ? scnprintf(buf, size, "%u\n", dev->param[param]) : -EINVAL;
}

static int show_quota(u32 units, char *buf, size_t size)
{
	char digits[FRACTION_DIGITS + 1];
	u64 fraction = div_u64((u64)(units % GSCHED_CAPSM) * 10000000000ULL, GSCHED_CAPSM);
	int len = FRACTION_DIGITS;

	if (units == GSC_MAX_UNLIMITED)
		return scnprintf(buf, size, "max\n");
	if (!fraction)
		return scnprintf(buf, size, "%u\n", units / GSCHED_CAPSM);
	scnprintf(digits, sizeof(digits), "%010llu", fraction);
	while (digits[len - 1] == '0')
		digits[--len] = 0;
	return scnprintf(buf, size, "%u.%s\n", units / GSCHED_CAPSM, digits);
}

static int show_plan(const struct gsc_group *group, char *buf, size_t size)
{
	int len;

	if (!gsc_is_planned(group))
		return scnprintf(buf, size, "none\n");
	len = show_quota(group->data.plan.min, buf, size) - 1;
	if (group->data.plan.max != group->data.plan.min) {
		len += scnprintf(buf + len, size - (size_t)len, "-");
		len += show_quota(group->data.plan.max, buf + len, size - (size_t)len) - 1;
	}
	return len + scnprintf(buf + len, size - (size_t)len, "%s\n",
			       group->data.plan.keeps ? "!" : "");
}

static int show_stat(const struct gsc_stats *stats, char *buf, size_t size)
{
	const struct gsc_counts *counts = &stats->counts;

	return scnprintf(buf, size,
			 "usage_usec %llu\n"
			 "capsm_usec %llu\n"
			 "ran_usec %llu\n"
			 "paced_usec %llu\n"
			 "tasks %llu\n"
			 "grants %llu\n"
			 "evictions %llu\n"
			 "growths %llu\n"
			 "wait_usec %llu\n"
			 "cancelled %llu\n"
			 "demanded_usec %llu\n"
			 "promised_usec %llu\n",
			 stats->granted.us, stats->capsm.us, stats->ran.us, stats->paced.us,
			 counts->tasks, counts->changes[GSC_GRANT], counts->changes[GSC_EVICT],
			 counts->changes[GSC_GROW], stats->wait.us, counts->cancelled,
			 stats->demanded.us, stats->promised.us);
}

int gsc_group_show(const struct gsc_group *group, enum gsc_file file, char *buf, size_t size)
{
	switch (file) {
	case GSC_FILE_CAPSM_MAX:
		return show_quota(group->max, buf, size);
	case GSC_FILE_CAPSM_MIN:
		return show_quota(group->min, buf, size);
	case GSC_FILE_CAPSM_RESERVE:
		if (group->standby == GSC_STANDBY_AUTO)
			return scnprintf(buf, size, "auto\n");
		return show_quota(group->standby, buf, size);
	case GSC_FILE_GPU_WEIGHT:
		return scnprintf(buf, size, "%u\n", group->weight);
	case GSC_FILE_GPU_PRIORITY:
		return scnprintf(buf, size, "%u\n", group->priority);
	case GSC_FILE_GPU_BAND:
		return scnprintf(buf, size, "%s\n", gsc_group_band(group));
	case GSC_FILE_GPU_LATENCY:
		return scnprintf(buf, size, "%u\n", group->latency_us);
	case GSC_FILE_CAPSM_CURRENT:
		return show_quota(group->current_units, buf, size);
	case GSC_FILE_CAPSM_PLAN:
		return show_plan(group, buf, size);
	case GSC_FILE_GPU_STAT:
		return show_stat(&group->stats, buf, size);
	case GSC_FILE_GPU_PRESSURE:
		return gsc_pressure_show(group, buf, size);
	case GSC_FILE_GPU_EVENTS:
		return gsc_events_show(group, buf, size);
	case GSC_FILE_GPU_PREEMPTION:
		return gsc_delay_show(group->delays, buf, size);
	case GSC_FILE_MEMORY_MAX:
		if (group->memory.max == GSC_MEMORY_UNLIMITED)
			return scnprintf(buf, size, "max\n");
		return scnprintf(buf, size, "%llu\n", (unsigned long long)group->memory.max);
	case GSC_FILE_MEMORY_CURRENT:
		return scnprintf(buf, size, "%llu\n",
				 (unsigned long long)group->memory.current_bytes);
	case GSC_FILE_MEMORY_PEAK:
		return scnprintf(buf, size, "%llu\n", (unsigned long long)group->memory.peak);
	default:
		return -EINVAL;
	}
}

int gsc_client_show(const struct gsc_client *client, enum gsc_file file, char *buf, size_t size)
{
	if (!gsc_client_has(file))
		return -ENOENT;
	if (file != GSC_FILE_GPU_PRIORITY)
		return gsc_group_show(&client->own, file, buf, size);
	if (client->priority_max == U32_MAX)
		return scnprintf(buf, size, "max\n");
	return scnprintf(buf, size, "%u\n", client->priority_max);
}
