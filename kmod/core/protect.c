// SPDX-License-Identifier: GPL-2.0-only
/*
 * What protects a client's recurring kernels from long block-tasks of less important clients in its
 * band: SMs that are held free between two of its kernels, or block-tasks that can be left in their
 * middle (the resumable form of a kernel). Both cost the others part of their throughput:
 *  - a hold its SMs, all the time; what comes less often than the longest hold cannot have one;
 *  - the form what it is slower by, and the SMs from each eviction until their workers are back.
 *    The newcomer waits for the eviction, which counts as lost in its period.
 * The form is taken where it costs a third less, and then kept for some time: now and then a
 * request waits for workers that are slow to leave. On an H200 a request each ms beside
 * block-tasks of 5 ms had a p99 of 1.9 ms and the others lost 21 % where 6 % were expected; a hold
 * gave 80 us for 24 % (docs/measurements/2026-11-23-programs-h200.md). Clients below are told by
 * GSCHED_ARB_RESUMABLE and take the form at their next launch. Until then, and where a kernel has
 * no such form, the hold goes on.
 *
 * What lost capacity costs a kernel goes by rounds of one block-task an SM, as those that share an
 * SM slow each other down: 8448 block-tasks of 5 ms, 8 on an SM, took 64 rounds on 132 SMs, 72 on
 * 118 and 73 on 117 (H100). One of fewer than 100 costs more than an SM, so a hold gives up the SMs
 * worth one.
 */
#include "decide.h"

/*
 * Until the capacity of an eviction is used again: workers save and leave, a wing is launched. With
 * this, and GSC_MIDWAY_NS until workers in the middle of block-tasks are gone, a request each ms on
 * 20 SMs beside block-tasks of 1 ms costs 15.8 %; measured were 16.8 (H200)
 */
#define RETURN_NS	200000ULL
/* Shorter block-tasks end nearly as soon as they are saved, and few kernels are worth the form */
#define LONG_NS		400000ULL
#define RARE_NS		1000000000ULL
#define KEEP_NS		1000000000ULL	/* shortest time between two changes */
/*
 * Per mille that the form is slower by, at least: between 16 over a corpus of kernels and 82
 * for one with block-tasks of 1 ms (H200, docs/measurements/2026-11-22-gathers-h200.md and
 * 2026-11-22-workers-h200.md)
 */
#define FORM_COST	40
#define FORM_COST_MAX	500
#define MEASURED	3	/* kernels of each form until the measured cost is believed */

/* Of more rounds one costs less than an SM */
#define ROUNDS_MAX	100

/* Rounds that the block-tasks of @task take with @units less than the device */
static u64 rounds(const struct gsc_task *task, u32 units)
{
	u32 left = task->client->dev->sms * GSCHED_CAPSM - units;
	/* an hour's kernel has less than 2^48 block-tasks; beyond nothing overflows */
	u64 work = min(task->blocks, 1ULL << 48) * GSCHED_CAPSM;

	return div64_u64(work - 1, max_t(u32, left, 1)) + 1;
}

/* Per mille of its throughput that @task loses without @units */
static u32 cost_of_units(const struct gsc_task *task, u32 units)
{
	u32 all = task->client->dev->sms * GSCHED_CAPSM;
	u64 before = rounds(task, 0), with;

	if (units >= all)
		return 1000;
	if (before > ROUNDS_MAX)
		return (u32)div_u64((u64)units * 1000, max_t(u32, all, 1));
	with = rounds(task, units);
	return (u32)div64_u64((with - before) * 1000, with);
}

static u64 plain_block_ns(const struct gsc_task *task)
{
	return task->midway ? task->client->block_ns : task->block_ns;
}

/* The longest block-tasks below @client in its band: what its kernels would wait for */
static const struct gsc_task *longest_below(const struct gsc_client *client)
{
	const struct gsc_task *task, *longest = NULL;

	list_for_each_entry(task, &client->band->tasks, node) {
		if (!gsc_is_block(task) || task->client->group->priority >= client->group->priority)
			continue;
		if (!longest || plain_block_ns(task) > plain_block_ns(longest))
			longest = task;
	}
	return longest;
}

u32 gsc_protect_units(const struct gsc_client *client, u32 units)
{
	u32 sms = gsc_sms(units), fewer, least;
	const struct gsc_task *below;
	u64 with;

	if (!units || client->group->latency_us || sms >= client->dev->sms)
		return units;
	below = longest_below(client);
	if (!below || plain_block_ns(below) < LONG_NS)
		return units;
	with = rounds(below, sms * GSCHED_CAPSM);
	if (with > ROUNDS_MAX)
		return units;
	/* and no fewer than its blocks fit on at once: size.c */
	least = max(sms - sms / 4, client->sizes.least);
	for (fewer = sms - 1; fewer >= least; fewer--)
		if (rounds(below, fewer * GSCHED_CAPSM) < with)
			return fewer * GSCHED_CAPSM;
	return units;
}

void gsc_protect_submitted(struct gsc_task *task)
{
	struct gsc_client *client = task->client;

	task->midway = gsc_is_block(task) && client->arb.flags & GSCHED_ARB_RESUMABLE &&
		       task->block_ns && task->block_ns <= GSC_LEAVE_NS;
	/* of a task in the resumable form only the time to leave is told */
	if (gsc_is_block(task) && task->block_ns && !task->midway)
		client->block_ns = task->block_ns;
}

/* Capacity times time of a block-task, in either form */
void gsc_protect_measure(const struct gsc_task *ended)
{
	struct gsc_forms *forms = &ended->client->forms;
	u64 usage = div64_u64(ended->usage, ended->blocks);
	u64 *had = &forms->usage[ended->midway];

	if (!gsc_is_block(ended) || !usage)
		return;
	if (forms->blocks != ended->blocks)
		memset(forms, 0, sizeof(*forms));
	forms->blocks = ended->blocks;
	*had = *had ? *had - *had / 4 + usage / 4 : usage;
	forms->n[ended->midway] = min_t(u32, forms->n[ended->midway] + 1, MEASURED);
}

static u32 form_cost(const struct gsc_client *client)
{
	const struct gsc_forms *forms = &client->forms;
	u64 plain = forms->usage[false], resumable = forms->usage[true];

	if (forms->n[false] < MEASURED || forms->n[true] < MEASURED || !plain)
		return FORM_COST;
	if (resumable <= plain)
		return FORM_COST;
	/* 2^54: a factor of 1000 does not overflow */
	plain = min(plain, 1ULL << 54);
	resumable = min(resumable - plain, plain);
	return min_t(u64, max_t(u64, div64_u64(resumable * 1000, plain), FORM_COST), FORM_COST_MAX);
}

static bool worth_it(const struct gsc_client *client)
{
	u32 form = client->resume_cost, hold = client->hold_cost;

	return client->resumes ? form * 5 <= hold * 4 : form * 3 <= hold * 2;
}

static u32 cost_of_hold(const struct gsc_client *client, const struct gsc_task *below, u32 units)
{
	u64 longest = gsc_hold_ns_max(client);

	if (client->resumes)
		longest = longest * 4 / 5;
	if (client->interval > longest)
		return 1000;
	return cost_of_units(below, gsc_protect_units(client, units));
}

static u32 cost_of_form(const struct gsc_client *client, const struct gsc_task *below, u32 units,
			u64 ran)
{
	u64 away = min(ran + RETURN_NS, client->interval);
	u32 rounds = cost_of_units(below, (u32)div64_u64(away * units, client->interval));

	/* block-tasks that are left wait for that time only, also in the last round */
	return form_cost(below->client) +
	       min_t(u32, rounds, div64_u64(away * 1000, client->interval)) +
	       (u32)div64_u64(GSC_MIDWAY_NS * 1000, client->interval);
}

void gsc_protect(struct gsc_client *client, u64 ran, u32 units)
{
	const struct gsc_task *below = longest_below(client);
	struct gsc_device *dev = client->dev;
	u64 longest = below ? plain_block_ns(below) : 0;
	bool resumes;

	/* nobody is there at the moment: that says nothing about the next time */
	if (!longest || !client->interval)
		return;
	if (gsc_is_recurring(client) && client->sizes.n_requests < GSC_SIZE_LEARNED &&
	    !client->resumes)
		return;
	/* an hour's kernel is long enough, and nothing overflows */
	ran = min(ran, RARE_NS);
	units = min(units, dev->sms * GSCHED_CAPSM);
	client->hold_cost = cost_of_hold(client, below, units);
	client->resume_cost = cost_of_form(client, below, units, ran);
	resumes = longest >= LONG_NS && client->interval <= RARE_NS && worth_it(client);
	if (resumes)
		client->resumes_until = dev->now + max(KEEP_NS, 4 * client->interval);
	if (resumes == client->resumes ||
	    (client->resumes_since && dev->now - client->resumes_since < KEEP_NS))
		return;
	gsc_protect_set(client, resumes);
}

void gsc_protect_set(struct gsc_client *client, bool resumes)
{
	list_del_init(&client->resuming);
	if (resumes)
		list_add_tail(&client->resuming, &client->dev->resuming);
	client->resumes = resumes;
	client->resumes_since = client->dev->now;
	client->dev->bands_stale = true;
}

void gsc_protect_expire(struct gsc_device *dev)
{
	struct gsc_client *client, *next;

	list_for_each_entry_safe(client, next, &dev->resuming, resuming)
		if (client->resumes_until <= dev->now)
			gsc_protect_set(client, false);
}

/* Few clients resume, so their list is walked and not that of the band's members */
u32 gsc_top_resuming(const struct gsc_band *band)
{
	const struct gsc_client *client;
	u32 top = 0;

	list_for_each_entry(client, &gsc_band_device(band)->resuming, resuming)
		if (client->band == band)
			top = max(top, client->group->priority);
	return top;
}
