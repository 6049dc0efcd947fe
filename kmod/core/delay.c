// SPDX-License-Identifier: GPL-2.0-only
/*
 * How long evictions take: from the decision that makes a window smaller until the workers outside
 * of it have left.
 *
 * The GPU itself reads the window and tells nobody when its workers are gone. It counts those that
 * left in the client's page, so the core looks there: in each commit, and by a timer that lets as
 * much time pass again as has passed since the decision. So a measured time is too long by less
 * than a factor of two, or FIRST_LOOK_NS, and an eviction costs few looks however long it takes.
 *
 * The page says how many workers there are, not where. The core expects those to leave that do not
 * fit into the new window, or half of those that would be outside of it if all were spread evenly
 * over the old one: blocks of a small grid may stand closer. The measurement ends when so many have
 * left since the decision and the kernel has seen its window, or with the task. An eviction that
 * follows before that counts with the first one, and one that is taken back is not measured. A
 * kernel that has not begun yet has no workers; one without a page, as in the simulator, is not
 * measured at all.
 *
 * The mean of what it takes beside a block-task is what the core expects of the client's evictions
 * instead of a constant (gsc_evict_ns()). Only those teach it that are known to within FINE_NS,
 * which those of long block-tasks are not: there that time means little.
 *
 * All of it is what a client and its GPU say, up to the time that really passed. A client that lies
 * spoils its own numbers, its groups' sums, and what others may expect of its evictions, which is
 * bounded.
 */
#include "decide.h"

#define FIRST_LOOK_NS	24000ULL
#define FINE_NS		50000ULL
#define LEAST_NS	1000ULL

static void stop(struct gsc_task *task)
{
	list_del_init(&task->leaving);
}

/* Buckets are powers of two */
static u32 bucket_of(u64 ns)
{
	u64 limit = GSC_DELAY_FIRST_US * 1000;
	u32 i = 0;

	for (; i < GSC_DELAY_BUCKETS - 1 && ns > limit; i++)
		limit *= 2;
	return i;
}

static void record(struct gsc_task *task, u64 ns)
{
	u32 bucket = bucket_of(ns);
	struct gsc_group *group;

	stop(task);
	for (group = task->client->group; group; group = group->parent) {
		if (!group->delays)
			continue;
		group->delays->n[bucket]++;
		gsc_sum_add(&group->delays->sum, ns, GSCHED_CAPSM);
	}
}

/* Its workers have left since the last look */
static void learn(const struct gsc_task *task)
{
	u64 now = task->client->dev->now, unsure = now - task->looked_at;
	u32 *had = &task->client->evict_ns[task->midway];
	u64 ns = now - task->evicted_at - unsure / 2;

	if (unsure > FINE_NS || !task->block_ns)
		return;
	ns = min(ns - min(ns, task->block_ns), GSC_EVICT_NS_MAX);
	*had = (u32)max(*had ? (7ULL * *had + ns) / 8 : ns, LEAST_NS);
}

/* Of @present workers in the window @from, how many have to leave for the present one */
static u32 expected(const struct gsc_task *task, u32 present, u32 from)
{
	u32 weight = gsc_weight(task), fits = task->window / weight;
	u32 inside = min(present, from / weight), beyond = 0;
	u64 spread = min((u64)inside * GSCHED_CAPSM, (u64)from);

	if (spread > task->window)
		beyond = (u32)div64_u64(inside * (spread - task->window) + 2 * spread - 1,
					2 * spread);
	return max(inside - min(inside, fits), beyond);
}

void gsc_delay_begin(struct gsc_task *task, u32 from)
{
	struct gsc_device *dev = task->client->dev;
	u32 present, left, out = 0;

	if (!gsc_page_workers(task, &present, &left))
		return;
	if (gsc_delay_is_measured(task)) {
		from = task->evicted_from;
		out = left - task->left_before;
	}
	out += expected(task, present, from);
	if (!out)
		return;
	task->leavers = out;
	if (gsc_delay_is_measured(task))
		return;
	task->left_before = left;
	task->evicted_from = from;
	task->evicted_at = dev->now;
	task->looked_at = dev->now;
	task->look_at = dev->now + FIRST_LOOK_NS;
	list_add_tail(&task->leaving, &dev->leaving);
}

static void look(struct gsc_task *task)
{
	u64 now = task->client->dev->now, passed = now - task->evicted_at;

	if (gsc_page_is_over(task)) {
		record(task, passed);
	} else if (gsc_page_has_left(task, task->left_before, task->leavers)) {
		learn(task);
		record(task, passed);
	} else {
		task->looked_at = now;
		if (now >= task->look_at)
			task->look_at = now + passed;
	}
}

void gsc_delay_grow(struct gsc_task *task)
{
	look(task);
	stop(task);
}

void gsc_delay_end(struct gsc_task *task, bool ran)
{
	if (ran)
		record(task, task->client->dev->now - task->evicted_at);
	stop(task);
}

void gsc_delay_look(struct gsc_device *dev)
{
	struct gsc_task *task, *next;

	list_for_each_entry_safe(task, next, &dev->leaving, leaving)
		look(task);
}

u64 gsc_delay_poll(const struct gsc_device *dev)
{
	const struct gsc_task *task;
	u64 when = 0;

	list_for_each_entry(task, &dev->leaving, leaving)
		when = gsc_earlier(task->look_at, when);
	return when;
}

u64 gsc_delay_count(const struct gsc_delays *delays)
{
	u64 count = 0;
	u32 i;

	for (i = 0; i < GSC_DELAY_BUCKETS; i++)
		count += delays->n[i];
	return count;
}

/* Each line counts those of the lines before, as Prometheus does */
int gsc_delay_show(const struct gsc_delays *delays, char *buf, size_t size)
{
	static const struct gsc_delays none;
	u64 count = 0;
	int len;
	u32 i;

	if (!delays)
		delays = &none;
	len = scnprintf(buf, size, "count %llu\ntotal_usec %llu\n",
			(unsigned long long)gsc_delay_count(delays),
			(unsigned long long)delays->sum.us);
	for (i = 0; i < GSC_DELAY_BUCKETS - 1; i++) {
		count += delays->n[i];
		len += scnprintf(buf + len, size - (size_t)len, "le_%llu %llu\n",
				 (unsigned long long)(GSC_DELAY_FIRST_US << i),
				 (unsigned long long)count);
	}
	return len;
}
