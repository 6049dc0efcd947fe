// SPDX-License-Identifier: GPL-2.0-only
/*
 * gpu.pressure and gpu.events: how much a group's launches wait, and what was done to them.
 *
 * Pressure is that of PSI (Documentation/accounting/psi.rst), of clients in place of tasks: "some"
 * is the time in which at least one client of the group waits for capacity, "full" that in which
 * one does and none runs. A client waits while a task of it is not granted, or runs without a
 * window left, or while it reports that launches wait for its band's turn or for its share of time;
 * it runs while it has capacity or reports work on the GPU.
 *
 * The averages are those of the kernel's load: every two seconds the part of them that was spent
 * waiting is one sample, in fixed point with FIXED_SHIFT binary digits. There is no timer: whenever
 * the state of a group changes, and when the file is read, the samples that are due are taken,
 * which are all equal but for the first one.
 */
#include "decide.h"

#define PERIOD_NS	2000000000ULL
#define FIXED_SHIFT	11
#define FIXED_ONE	2048U		/* 1 with so many binary digits behind the point */

/* FIXED_ONE * exp(-2 s / window) */
static const u32 decay[GSC_PRESSURE_WINDOWS] = { 1677, 1981, 2034 };

static const char *const window_name[GSC_PRESSURE_WINDOWS] = { "avg10", "avg60", "avg300" };
static const char *const kind_name[GSC_PRESSURE_KINDS] = { "some", "full" };

static const char *const event_name[GSC_EVENT_COUNT] = {
	[GSC_EVENT_THROTTLED] = "throttled",
	[GSC_EVENT_GATED] = "gated",
	[GSC_EVENT_OVERDUE] = "overdue",
	[GSC_EVENT_LATE] = "late",
	[GSC_EVENT_REFUSED] = "refused",
	[GSC_EVENT_MEMORY] = "memory_max",
};

static u32 power(u32 base, u64 n)
{
	u64 result = FIXED_ONE, factor = base;

	for (; n; n >>= 1) {
		if (n & 1)
			result = (result * factor + FIXED_ONE / 2) >> FIXED_SHIFT;
		factor = (factor * factor + FIXED_ONE / 2) >> FIXED_SHIFT;
	}
	return (u32)result;
}

/* @average after samples whose decay is @kept of FIXED_ONE; per cent in fixed point */
static u32 average_of(u32 average, u32 kept, u32 sample)
{
	u64 sum = (u64)average * kept + (u64)sample * (FIXED_ONE - kept);

	/* towards the sample, which would not be reached otherwise */
	if (sample >= average)
		sum += FIXED_ONE - 1;
	return (u32)(sum >> FIXED_SHIFT);
}

static void add_samples(u32 *average, u32 sample, u64 n)
{
	int i;

	for (i = 0; n && i < GSC_PRESSURE_WINDOWS; i++)
		average[i] = average_of(average[i], n == 1 ? decay[i] : power(decay[i], n), sample);
}

static u32 sample_of(u64 ns)
{
	return (u32)div64_u64(ns * 100 * FIXED_ONE, PERIOD_NS);
}

static bool holds(const struct gsc_pressure *pressure, int kind)
{
	return pressure->waiting && (kind == GSC_PRESSURE_SOME || !pressure->running);
}

/* The time up to @now is spent in the present state */
static noinline void pass(struct gsc_pressure *pressure, u64 now)
{
	u64 first = pressure->period_end, last;
	int kind;

	if (now < first) {
		for (kind = 0; kind < GSC_PRESSURE_KINDS && holds(pressure, kind); kind++) {
			pressure->total_ns[kind] += now - pressure->since;
			pressure->part_ns[kind] += now - pressure->since;
		}
		pressure->since = now;
		return;
	}
	last = first + div64_u64(now - first, PERIOD_NS) * PERIOD_NS;
	for (kind = 0; kind < GSC_PRESSURE_KINDS; kind++) {
		bool on = holds(pressure, kind);

		if (on)
			pressure->total_ns[kind] += now - pressure->since;
		pressure->part_ns[kind] += on ? first - pressure->since : 0;
		add_samples(pressure->average[kind], sample_of(pressure->part_ns[kind]), 1);
		add_samples(pressure->average[kind], on ? 100 * FIXED_ONE : 0,
			    div64_u64(last - first, PERIOD_NS));
		pressure->part_ns[kind] = on ? now - last : 0;
	}
	pressure->since = now;
	pressure->period_end = last + PERIOD_NS;
}

void gsc_pressure_set(struct gsc_client *client, bool waits, bool runs)
{
	u32 waiting = waits - client->waits, running = runs - client->runs;
	struct gsc_group *group;

	for (group = client->home; group; group = group->parent) {
		/* while nobody waits time adds nothing, whoever runs */
		if (group->pressure.waiting || waits)
			pass(&group->pressure, client->dev->now);
		group->pressure.waiting += waiting;
		group->pressure.running += running;
	}
	client->waits = waits;
	client->runs = runs;
}

void gsc_pressure_leave(struct gsc_client *client)
{
	if (client->waits || client->runs)
		gsc_pressure_set(client, false, false);
}

u64 gsc_pressure_ns(const struct gsc_group *group, int kind, u64 now)
{
	struct gsc_pressure pressure = group->pressure;

	pass(&pressure, now > pressure.since ? now : pressure.since);
	return pressure.total_ns[kind];
}

/* Windows follow each other; of the one before counts the part that is not older than a window. */
u64 gsc_window_grown(struct gsc_window *window, u64 size, u64 waited, u64 now)
{
	u64 grown = waited - window->begin_ns, age = now - window->begin;

	if (age < size)
		/* in us, as ns multiplied by ns would overflow */
		return grown + div64_u64(div_u64(window->before_ns, 1000) *
					 div_u64(size - age, 1000), div_u64(size, 1000)) * 1000;
	window->begin = now;
	window->begin_ns = waited;
	window->before_ns = min(grown, size);
	return grown;
}

int gsc_pressure_show(const struct gsc_group *group, char *buf, size_t size)
{
	struct gsc_pressure pressure = group->pressure;
	int len = 0, kind, i;
	u32 average;

	pass(&pressure, group->dev->now);
	for (kind = 0; kind < GSC_PRESSURE_KINDS; kind++) {
		len += scnprintf(buf + len, size - (size_t)len, "%s", kind_name[kind]);
		for (i = 0; i < GSC_PRESSURE_WINDOWS; i++) {
			average = pressure.average[kind][i];
			len += scnprintf(buf + len, size - (size_t)len, " %s=%u.%02u",
					 window_name[i], average >> FIXED_SHIFT,
					 (average & (FIXED_ONE - 1)) * 100 >> FIXED_SHIFT);
		}
		len += scnprintf(buf + len, size - (size_t)len, " total=%llu\n",
				 (unsigned long long)div_u64(pressure.total_ns[kind], 1000));
	}
	return len;
}

void gsc_event(struct gsc_group *group, enum gsc_event event)
{
	group->dev->n_events++;
	for (; group; group = group->parent)
		group->stats.events[event]++;
}

int gsc_events_show(const struct gsc_group *group, char *buf, size_t size)
{
	const struct gsc_stats *stats = &group->stats;
	int len, i;

	len = scnprintf(buf, size, "evictions %llu\n",
			(unsigned long long)stats->counts.changes[GSC_EVICT]);
	for (i = 0; i < GSC_EVENT_COUNT; i++)
		len += scnprintf(buf + len, size - (size_t)len, "%s %llu\n", event_name[i],
				 (unsigned long long)stats->events[i]);
	return len;
}
