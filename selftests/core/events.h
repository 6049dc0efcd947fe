/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Events of the core, from a seed or from bytes. After each one every invariant must hold, and what
 * the actions told must be what the core believes; likewise after one commit for several. At the
 * end all is given back.
 */
#ifndef SELFTESTS_CORE_EVENTS_H
#define SELFTESTS_CORE_EVENTS_H

#include "world.h"

#define CLIENTS	12
#define GROUPS	14
#define SEQS	1000000

static struct gsc_device *dev;
static struct gsc_group *group;
static struct gsc_client *client;
static struct gsc_delays delays[GROUPS];
static bool group_live[GROUPS];
static u64 clock_ns, rng, trace, told_timer;
static const char *failure;

/* What the caller of the core knows from the actions alone */
static struct {
	bool live;
	u32 seq;
	u32 window;
	u32 lease;
} shadow[CLIENTS][GSCHED_SLOTS];
static u32 shadow_lease[CLIENTS];
static struct gsc_arb shadow_arb[CLIENTS];
/* unit-ns charged to ended tasks; what was granted */
static u64 usage_ended[CLIENTS], usage_most[CLIENTS], usage_time;
static u32 n_shared;
static u32 n_grant, n_evict, n_grow, n_done, n_hold, n_wait;
/* turns given; events with slices, with lower bands, with a band that drains */
static u32 n_turn, n_sliced, n_lower, n_drain;
static u32 n_sized;	/* clients of which a smaller size was in force, over all events */
static u32 n_midway;	/* clients told to be resumable, over all events */
/* when a client last changed between hold and eviction in the middle */
static u64 changed_at[CLIENTS];
static bool was_midway[CLIENTS];
static bool batches;	/* several events to a commit */
static bool paged;	/* clients have pages, to which they write as they like */
static struct gsched_arb_page arb_page[CLIENTS];
static struct gsched_cl_page cl_page[CLIENTS];
static u32 n_adopted;
static bool pauses;	/* now and then nothing happens for a second */
/* running tasks that were without capacity because their band's gate was closed */
static u32 n_emptied;
static bool was_closed[CLIENTS];	/* the gate, after the last event */
static u32 granted_now[CLIENTS];	/* grants during this event */
/* of the plan that was set last: for which groups, and the most they may have */
static u32 plan_max[GROUPS];
static u32 n_planned, n_expired;	/* over all events, plans in force; plans that expired */
static bool was_planned;

/* Where the events come from instead of the seed; with none left there is nothing but 0 */
static const u8 *bytes, *bytes_end;

static u64 next_byte(void)
{
	return bytes < bytes_end ? *bytes++ : 0;
}

static u64 next_random(void)
{
	u64 value = 0;
	int i;

	if (bytes) {
		for (i = 0; i < 8; i++)
			value = value << 8 | next_byte();
		return value;
	}
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng * 0x2545F4914F6CDD1DULL >> 11;
}

static u32 below(u32 n)
{
	u64 value;

	if (!bytes)
		return (u32)(next_random() % n);
	/* few bytes for an event: a change of one changes little else */
	value = next_byte();
	if (n > 256)
		value = value << 8 | next_byte();
	if (n > 65536)
		value = value << 8 | next_byte();
	return (u32)(value % n);
}

static void mix(u64 value)
{
	trace = (trace ^ value) * 0x100000001B3ULL;
}

static void fail(const char *why)
{
	if (!failure)
		failure = why;
}

static int index_of(const struct gsc_client *c)
{
	return (int)(c - client);
}

static void op_set_window(struct gsc_task *task, enum gsc_change why)
{
	int c = index_of(task->client);
	u32 old = shadow[c][task->slot].window, now = task->window;

	mix((u64)why + 1);
	mix((u64)c * GSCHED_SLOTS + task->slot);
	if (task->state == GSC_TASK_WAITING) {
		if (why != GSC_EVICT || !task->adopted || !paged)
			fail("a task that waits has a window");
		return;
	}
	mix(now);
	if (why == GSC_GRANT) {
		if (shadow[c][task->slot].live || !now)
			fail("granted twice, or nothing");
		shadow[c][task->slot].live = true;
		shadow[c][task->slot].seq = task->seq;
		granted_now[c]++;
		n_grant++;
	} else {
		if (!shadow[c][task->slot].live || shadow[c][task->slot].seq != task->seq)
			fail("a window before its grant");
		if (old == now)
			fail("a window that did not change");
		if (task->tier != GSCHED_TIER_BLOCK)
			fail("an opaque task's window changed");
		if ((why == GSC_GROW) != (now > old))
			fail("evict and grow confused");
		n_evict += why == GSC_EVICT;
		n_grow += why == GSC_GROW;
	}
	shadow[c][task->slot].window = now;
}

static void op_set_lease(struct gsc_client *c, u32 old)
{
	mix(100 + c->lease);
	shadow_lease[index_of(c)] = c->lease;
}

static void op_set_band(struct gsc_client *c, const struct gsc_arb *old)
{
	const struct gsc_arb *arb = &c->arb;

	mix(300 + arb->flags);
	mix(arb->slice_us ^ (u64)arb->share << 32);
	if (!memcmp(&shadow_arb[index_of(c)], arb, sizeof(*arb)))
		fail("the words of a band did not change");
	shadow_arb[index_of(c)] = *arb;
}

static void op_arm_timer(struct gsc_device *d, u64 when)
{
	mix(when);
	if (when == told_timer)
		fail("the timer did not change");
	told_timer = when;
	n_hold += when != 0;
}

static void op_done(struct gsc_task *task)
{
	int c = index_of(task->client);

	mix(200 + task->seq);
	usage_ended[c] += task->usage;
	if (shadow[c][task->slot].live != (task->granted != 0))
		fail("done before its grant");
	shadow[c][task->slot].live = false;
	shadow[c][task->slot].window = 0;
	n_done++;
}

static const struct gsc_ops ops = {
	.new_task = op_new_task,
	.set_window = op_set_window, .set_lease = op_set_lease, .arm_timer = op_arm_timer,
	.done = op_done, .set_band = op_set_band,
};

/* Bands alternate in time: windows of one band must fit the device together */
static void compare_shadow(void)
{
	u32 sum[CLIENTS] = { 0 }, *of_band, most;
	int c, slot;

	for (c = 0; c < CLIENTS; c++) {
		if (!client[c].dev)
			continue;
		if (shadow_lease[c] != client[c].lease)
			fail("lease not told");
		if (memcmp(&shadow_arb[c], &client[c].arb, sizeof(shadow_arb[c])))
			fail("band not told");
		most = 0;
		for (slot = 0; slot < GSCHED_SLOTS; slot++) {
			const struct gsc_task *task = task_at(&client[c], (u32)slot);
			u32 w = shadow[c][slot].window;

			if (shadow[c][slot].live != (task->state == GSC_TASK_RUNNING))
				fail("grant not told");
			n_wait += task->state == GSC_TASK_WAITING;
			if (!shadow[c][slot].live)
				continue;
			if (w != task->window)
				fail("window not told");
			if (task->tier == GSCHED_TIER_BLOCK)
				most = max(most, w);
		}
		of_band = &sum[index_of(container_of(client[c].band, struct gsc_client, own_band))];
		*of_band += (most + SM - 1) / SM;
		if (*of_band > dev->sms)
			fail("windows exceed the device");
	}
	if (told_timer != dev->armed)
		fail("timer not told");
}

/* The window that a client's tasks share, from what they were told; 0 none has one */
static u64 window_of(int c)
{
	u64 w = 0;

	for (int s = 0; client[c].dev && s < GSCHED_SLOTS; s++) {
		const struct gsc_task *task = task_at(&client[c], (u32)s);

		if (!shadow[c][s].live || task->tier != GSCHED_TIER_BLOCK || !shadow[c][s].window)
			continue;
		if (w && w != shadow[c][s].window)
			fail("a client with two windows");
		n_shared += w != 0;
		w = shadow[c][s].window;
	}
	return w;
}

/*
 * Streams: a task must not have capacity, nor be granted, while one that came before it has nothing
 */
static void check_order(int c)
{
	for (int a = 0; a < GSCHED_SLOTS; a++) {
		const struct gsc_task *x = task_at(&client[c], (u32)a);

		if (x->state == GSC_TASK_NONE || shadow[c][a].window)
			continue;
		for (int b = 0; b < GSCHED_SLOTS; b++) {
			const struct gsc_task *y = task_at(&client[c], (u32)b);

			if (y->state == GSC_TASK_NONE || (s32)(y->id - x->id) <= 0 ||
			    !shadow[c][b].live)
				continue;
			if (x->state == GSC_TASK_WAITING)
				fail("granted before one that came earlier");
			if (y->tier == GSCHED_TIER_BLOCK && shadow[c][b].window)
				fail("capacity while an earlier one has none");
		}
	}
}

/* Before an event: what has been granted since the last one can be charged by it, and no more */
static void grant_usage(void)
{
	u64 now = max(clock_ns, dev->now);

	for (int c = 0; c < CLIENTS; c++)
		if (client[c].dev)
			usage_most[c] += client[c].current_units * (now - usage_time);
	usage_time = now;
}

static void check_usage(void)
{
	for (int c = 0; c < CLIENTS; c++) {
		u64 usage = usage_ended[c];
		bool block = true;

		for (int s = 0; s < GSCHED_SLOTS && client[c].dev; s++) {
			if (task_at(&client[c], (u32)s)->state == GSC_TASK_NONE)
				continue;
			usage += task_at(&client[c], (u32)s)->usage;
			block &= task_at(&client[c], (u32)s)->tier == GSCHED_TIER_BLOCK;
		}
		if (usage > usage_most[c])
			fail("charged more than was granted");
		if (client[c].dev && block && client[c].current_units != window_of(c))
			fail("counts for more or less than its window");
	}
}

/* The alternative to the allocator: no tree, each limit by itself */
static void check_quotas(void)
{
	for (int g = 0; g < GROUPS; g++) {
		u64 sum[CLIENTS] = { 0 }, most = group[g].max;

		if (!group_live[g])
			continue;
		if (dev->policy == &gsc_policy_plan)
			most = min(most, (u64)plan_max[g]);
		for (int c = 0; c < CLIENTS; c++) {
			const struct gsc_group *up = client[c].dev ? client[c].group : NULL;
			int home;

			while (up && up != &group[g])
				up = up->parent;
			if (!up)
				continue;
			home = index_of(container_of(client[c].band, struct gsc_client, own_band));
			sum[home] += window_of(c);
			if (sum[home] > most)
				fail("above max");
		}
	}
}

/*
 * From what clients were told alone: of those that may launch and have work, no two are in
 * different lower bands
 */
static void check_gates(void)
{
	const struct gsc_band *open = NULL;
	u32 tiny = 0;

	for (int c = 0; c < CLIENTS; c++) {
		const struct gsc_band *band = client[c].dev ? client[c].band : NULL;

		if (!band || client[c].activity == GSCHED_ACTIVITY_IDLE)
			continue;
		tiny += client[c].activity == GSCHED_ACTIVITY_BUSY && shadow_arb[c].slice_us == 1;
		if (!band->lower || dev->n_lower < 2 || shadow_arb[c].flags & GSCHED_ARB_CLOSED)
			continue;
		if (open && open != band)
			fail("two open gates");
		open = band;
	}
	if (tiny > 1)
		fail("two busy bands that only switch");
	n_turn = (u32)dev->turns;
	n_sliced += dev->mode == GSCHED_MODE_SLICED;
	n_lower += dev->n_lower > 1;
	n_drain += dev->drain != NULL;
}

/*
 * From what clients were told alone: a band drains while its gate is closed. Its rewritten kernels
 * have no window, nothing is granted, nobody may launch unseen.
 */
static void check_closed(void)
{
	for (int c = 0; c < CLIENTS; c++) {
		bool closed = client[c].dev && shadow_arb[c].flags & GSCHED_ARB_CLOSED;

		if (closed && shadow_lease[c] != GSCHED_LEASE_NONE)
			fail("a lease behind a closed gate");
		if (closed && was_closed[c] && granted_now[c])
			fail("a grant behind a closed gate");
		for (int s = 0; closed && s < GSCHED_SLOTS; s++) {
			if (!shadow[c][s].live ||
			    task_at(&client[c], (u32)s)->tier != GSCHED_TIER_BLOCK)
				continue;
			if (shadow[c][s].window)
				fail("a window behind a closed gate");
			n_emptied++;
		}
		was_closed[c] = closed;
		granted_now[c] = 0;
	}
}

static struct gsc_group *any_group(void)
{
	int g = (int)below(GROUPS);

	return group_live[g] ? &group[g] : &dev->root;
}

static void event_submit(struct gsc_client *c)
{
	static const u64 sizes[] = { 1, 4, 8, 16, 100, 100000, U64_MAX };
	struct gsched_submit req = make_submit(below(4), 1 + below(SEQS), below(3),
					       sizes[below(7)]);
	int ret;

	if (!below(40))
		req.slot = below(GSCHED_SLOTS + 4);
	req.blocks_per_sm = 1 + below(32);
	req.predicted_ns = below(2) ? below(2 * MS) : 0;
	req.block_ns = below(2) ? below(2 * MS) : 0;
	req.intensity = below(GSCHED_INTENSITY__MAX + 1);
	if (!below(50))
		req.blocks = 0;
	ret = batches && !paged && !below(3) ? gsc_adopt(c, &req, clock_ns + MS - below(10 * MS), clock_ns) :
	      gsc_submit(c, &req, clock_ns);
	mix((u64)-ret);
	if (!ret && task_at(c, req.slot)->state != GSC_TASK_RUNNING)
		fail("0 without a grant");
	if (ret == QUEUED && task_at(c, req.slot)->state != GSC_TASK_WAITING)
		fail("queued without waiting");
}

/*
 * The client and its GPU write to its page: mostly what they should, now and then anything. Without
 * a lease there should be no new launch, but a stranger may say so
 */
static void event_hint(struct gsc_client *c)
{
	struct gsched_cl_page *page = &cl_page[index_of(c)];
	struct gsched_cl_slot *hint = &page->slot[below(4)];

	switch (below(8)) {
	case 0:
		hint->finished = hint->seq;
		break;
	case 1:
		hint->retired = hint->seq;
		break;
	case 2:
		((u32 *)hint)[below(sizeof(*hint) / sizeof(u32))] = (u32)next_random();
		break;
	case 3:
		hint->seen_limit = (u32)arb_page[index_of(c)].slot[hint - page->slot].window;
		hint->left += below(500);
		break;
	case 4:
		/* a kernel that was submitted begins */
		hint->seq = task_at(c, (u32)(hint - page->slot))->seq;
		hint->launched = below(5000);
		hint->left = 0;
		hint->start_ns = clock_ns;
		break;
	default:
		if (arb_page[index_of(c)].header.lease == GSCHED_LEASE_NONE && below(20))
			return;
		hint->blocks = below(3) ? below(2000) : next_random();
		hint->tier = below(3);
		hint->launched = below(5000);
		hint->predicted_ns = below(2) ? below(2 * MS) : 0;
		hint->start_ns = clock_ns;
		hint->end_ns = below(2) ? clock_ns + below(2 * MS) : 0;
		hint->seq = 1 + below(SEQS);
	}
}

static void event_complete(struct gsc_client *c)
{
	struct gsched_complete req = make_complete(below(4), 1);

	if (below(40))
		req.seq = task_at(c, req.slot)->seq;
	if (!below(10))
		req.flags = GSCHED_COMPLETE_CANCEL;
	req.ran_ns = below(3) ? below(2 * MS) : 0;
	mix((u64)-gsc_complete(c, &req, clock_ns));
}

static void event_client_store(struct gsc_client *c, bool whole)
{
	char text[32];

	switch (below(4)) {
	case 0:
		snprintf(text, sizeof(text), whole ? "%u" : "%u.%u", below(dev->sms + 2),
			 below(1000));
		gsc_client_store(c, GSC_FILE_CAPSM_MAX, text, below(2), clock_ns);
		break;
	case 1:
		gsc_client_store(c, GSC_FILE_CAPSM_MAX, "max", true, clock_ns);
		gsc_client_store(c, GSC_FILE_GPU_PRIORITY, "max", true, clock_ns);
		break;
	case 2:
		snprintf(text, sizeof(text), "%u", below(10002));
		gsc_client_store(c, GSC_FILE_GPU_WEIGHT, text, below(2), clock_ns);
		break;
	default:
		snprintf(text, sizeof(text), "%u", below(4) * 10);
		gsc_client_store(c, GSC_FILE_GPU_PRIORITY, text, below(2), clock_ns);
	}
	committed(dev, clock_ns, 0);
}

static void event_store(bool whole)
{
	struct gsc_group *g = any_group();
	char text[32];

	switch (below(8)) {
	case 7:
		snprintf(text, sizeof(text), "%u", below(2) ? below(20000) : 0);
		gsc_group_store(g, GSC_FILE_GPU_LATENCY, text, clock_ns);
		gsc_group_store(g, GSC_FILE_MEMORY_MAX, clock_ns & 1 ? "max" : text, clock_ns);
		break;
	case 6:
		snprintf(text, sizeof(text), "%s", below(2) ? "inference" : "");
		gsc_group_store(g, GSC_FILE_GPU_BAND, text, clock_ns);
		break;
	case 0:
		snprintf(text, sizeof(text), whole ? "%u" : "%u.%u", below(dev->sms + 2),
			 below(1000));
		gsc_group_store(g, GSC_FILE_CAPSM_MAX, text, clock_ns);
		break;
	case 1:
		gsc_group_store(g, GSC_FILE_CAPSM_MAX, "max", clock_ns);
		break;
	case 2:
		snprintf(text, sizeof(text), "%u", below(2) ? below(dev->sms + 2) : 0);
		gsc_group_store(g, GSC_FILE_CAPSM_MIN, text, clock_ns);
		/*
		 * less often: a number ends holds, and what is asked for below is that there are
		 * some
		 */
		if (!below(12))
			gsc_group_store(g, GSC_FILE_CAPSM_RESERVE,
					below(2) ? "auto" : text, clock_ns);
		break;
	case 3:
		snprintf(text, sizeof(text), "%u", below(10002));
		gsc_group_store(g, GSC_FILE_GPU_WEIGHT, text, clock_ns);
		break;
	default:
		snprintf(text, sizeof(text), "%u", below(4) * 10);
		gsc_group_store(g, GSC_FILE_GPU_PRIORITY, text, clock_ns);
	}
}

/* A channel group of its own, unknown, or one of a few; MPS, or not; an MPS server now and then */
static void event_attach(struct gsc_client *c)
{
	u32 flags = below(8) ? GSCHED_ATTACH_SLICE : 0;
	u64 channel_group = below(4) ? below(4) : 100 + below(1000);

	if (channel_group < 3 && below(30))
		flags |= GSCHED_ATTACH_MPS;
	if (channel_group < 3 && !below(6))
		flags |= GSCHED_ATTACH_SERVER;
	c->user = below(2);
	if (paged) {
		memset(&arb_page[index_of(c)], 0, sizeof(arb_page[0]));
		memset(&cl_page[index_of(c)], 0, sizeof(cl_page[0]));
		c->arb_page = &arb_page[index_of(c)];
		c->cl_page = &cl_page[index_of(c)];
	}
	gsc_client_attach(c, any_group(), flags, channel_group, clock_ns);
}

/* That memory.max was what refused it, by what the groups show */
static bool asks_too_much(const struct gsc_client *c, const struct gsched_report *req)
{
	const struct gsc_group *g;

	for (g = c->home; g; g = g->parent)
		if (g->memory.current_bytes - c->memory + req->memory > g->memory.max)
			return req->flags & GSCHED_REPORT_ASKS && req->memory > c->memory;
	return false;
}

static void event_report(struct gsc_client *c)
{
	struct gsched_report req = { .size = sizeof(req), .flags = GSCHED_REPORT_ACTIVITY,
				     .activity = below(3) };
	int ret;

	if (!below(20)) {
		req.flags |= GSCHED_REPORT_SLICE;
		req.slice_us = below(3000);
		req.slice_error = below(10) ? 0 : below(2) ? EIO : EOPNOTSUPP;
	}
	if (!below(10)) {
		req.flags |= GSCHED_REPORT_STREAMS;
		req.prioritised = below(2);
	}
	if (!below(5)) {
		req.flags |= GSCHED_REPORT_BLOCKS;
		req.block_us = below(3) ? 1u << below(8) : 0;
	}
	/* no draws of its own: nothing else depends on memory */
	if (!(clock_ns & 3)) {
		req.flags |= GSCHED_REPORT_MEMORY | (clock_ns & 4 ? GSCHED_REPORT_ASKS : 0);
		req.memory = (clock_ns >> 3) % 30000;
	}
	if (!below(100))
		req.activity = 3;
	ret = gsc_client_report(c, &req, clock_ns);
	if (ret == -EDQUOT ? !asks_too_much(c, &req) : ret != (req.activity == 3 ? -EINVAL : 0))
		fail("a report was refused, or a wrong one taken");
}

static void event_device(void)
{
	char text[16];

	switch (below(6)) {
	case 0:
		gsc_device_set_mode(dev, (s32)below(4) - 1, clock_ns);
		break;
	case 1:
		snprintf(text, sizeof(text), "%u", below(11000));
		gsc_device_set_param(dev, GSC_PARAM_SWITCH_US, text, clock_ns);
		break;
	case 2:
		snprintf(text, sizeof(text), "%u", below(510));
		gsc_device_set_param(dev, GSC_PARAM_MAX_OVERHEAD, text, clock_ns);
		break;
	case 3:
		snprintf(text, sizeof(text), "%u", below(1100));
		gsc_device_set_param(dev, GSC_PARAM_MAX_SLOWDOWN, text, clock_ns);
		break;
	default:
		gsc_device_set_mode(dev, -1, clock_ns);
	}
}

/* A path is the group's number */
static struct gsc_group *find_group(void *arg, const char *path, size_t len)
{
	u32 g = 0;
	size_t i;

	for (i = 0; i < len; i++)
		g = g * 10 + (u32)(path[i] - '0');
	return g < GROUPS && group_live[g] ? &group[g] : NULL;
}

/* Plans of up to three groups, among them some that are refused and change nothing */
static void event_plan(void)
{
	u32 n = 1 + below(3), most[3], which[3], i, least;
	char text[128];
	int len;

	if (!below(6)) {
		gsc_device_plan(dev, "none", find_group, NULL, clock_ns);
		committed(dev, clock_ns, 0);
		return;
	}
	len = snprintf(text, sizeof(text), "%u", 1 + below(60));
	for (i = 0; i < n; i++) {
		which[i] = below(GROUPS);
		most[i] = 1 + below(dev->sms);
		least = below(most[i] + 1) / n;
		len += snprintf(text + len, sizeof(text) - (size_t)len, " %u=%u-%u%s", which[i],
				least, most[i], below(4) ? "" : "!");
	}
	if (gsc_device_plan(dev, text, find_group, NULL, clock_ns))
		return;
	for (i = 0; i < GROUPS; i++)
		plan_max[i] = U32_MAX;
	for (i = 0; i < n; i++)
		plan_max[which[i]] = most[i] * SM;
	committed(dev, clock_ns, 0);
}

static void event_group(void)
{
	int g = (int)below(GROUPS);

	if (group_live[g]) {
		group_live[g] = gsc_group_exit(&group[g]) != 0;
		return;
	}
	memset(&group[g], 0, sizeof(group[g]));
	memset(&delays[g], 0, sizeof(delays[g]));
	group[g].delays = &delays[g];
	plan_max[g] = U32_MAX;
	group_live[g] = gsc_group_init(&group[g], any_group()) == 0;
}

static void step(bool whole)
{
	struct gsc_client *c = &client[below(CLIENTS)];
	u32 what = below(100);

	clock_ns += below(300 * US);
	if (!below(100))
		clock_ns -= below(MS);
	if (pauses && !below(200))
		clock_ns += below(1500) * MS;
	/*
	 * the core's time at the event that follows; the timer's is below. Nothing recurs over a
	 * second that is skipped
	 */
	if (what >= 94 && dev->timer && below(dev->timer == dev->pass_timer ? 32 : 2) == 1)
		clock_ns = dev->timer;
	grant_usage();
	if (paged && c->dev && below(3))
		event_hint(c);
	if (!c->dev && what < 60) {
		memset(c, 0, sizeof(*c));
		usage_ended[index_of(c)] = usage_most[index_of(c)] = 0;
		memset(&shadow_arb[index_of(c)], 0, sizeof(shadow_arb[0]));
		changed_at[index_of(c)] = 0;
		was_midway[index_of(c)] = was_closed[index_of(c)] = false;
		event_attach(c);
	} else if (c->dev && what < 38) {
		event_submit(c);
	} else if (c->dev && what < 50) {
		event_report(c);
	} else if (c->dev && what < 82) {
		event_complete(c);
	} else if (what < 88) {
		if (c->dev && !below(4))
			event_client_store(c, whole);
		else
			event_store(whole);
	} else if (what < 90) {
		event_group();
	} else if (what < 92 && c->dev) {
		gsc_client_move(c, any_group(), clock_ns);
	} else if (what < 93) {
		gsc_client_detach(c, clock_ns);
	} else if (what == 93 && !below(4)) {
		event_device();
	} else if (what == 93 && !below(3)) {
		event_plan();
	} else {
		gsc_tick(dev, clock_ns);
	}
}

/* Not more often than once a second, however its kernels come */
static void check_protection(int c)
{
	bool midway = client[c].dev && client[c].resumes;

	if (client[c].dev && midway != was_midway[c]) {
		/* in a batch that may be before the commit */
		u64 now = batches ? client[c].resumes_since : dev->now;

		if (changed_at[c] && now - changed_at[c] < 1000 * MS)
			fail("hold and eviction in the middle alternate");
		changed_at[c] = now;
	}
	if (!client[c].dev)
		changed_at[c] = 0;
	was_midway[c] = midway;
	n_midway += client[c].dev && shadow_arb[c].flags & GSCHED_ARB_RESUMABLE;
}

static void after(void)
{
	static char text[32];
	int ret = gsc_check(dev);

	if (ret) {
		snprintf(text, sizeof(text), "invariant %d", ret);
		fail(text);
	}
	if (dev->faulty)
		fail(dev->fault);
	n_adopted += dev->n_adopted;
	n_planned += dev->policy == &gsc_policy_plan;
	n_expired += was_planned && dev->policy != &gsc_policy_plan && dev->plan_expired;
	was_planned = dev->policy == &gsc_policy_plan;
	compare_shadow();
	check_quotas();
	check_gates();
	check_closed();
	check_usage();
	for (int c = 0; c < CLIENTS; c++) {
		check_protection(c);
		if (!client[c].dev)
			continue;
		check_order(c);
		n_sized += client[c].sizes.tried != 0;
	}
}

static void give_back(void)
{
	char buf[16];
	bool again = true;

	/* it would stay in force, and have a timer */
	gsc_device_plan(dev, "none", find_group, NULL, clock_ns);
	gsc_commit(dev, clock_ns);
	for (int c = 0; c < CLIENTS; c++) {
		grant_usage();
		gsc_client_detach(&client[c], clock_ns);
		after();
	}
	for (int i = 0; i < GROUPS && again; i++) {
		again = false;
		for (int g = 0; g < GROUPS; g++) {
			if (!group_live[g])
				continue;
			if (group[g].current_units)
				fail("capacity not given back");
			group_live[g] = gsc_group_exit(&group[g]) != 0;
			again |= group_live[g];
		}
	}
	if (again || !list_empty(&dev->bands) || !list_empty(&dev->clients) ||
	    !list_empty(&dev->root.children) || dev->turn || dev->drain || dev->armed)
		fail("something is left");
	if (n_grant > n_done)
		fail("tasks not ended");
	gsc_group_show(&dev->root, GSC_FILE_CAPSM_CURRENT, buf, sizeof(buf));
	if (strcmp(buf, "0\n"))
		fail("capacity is left");
}

static void begin(u64 seed, const char *policy)
{
	static const u32 sizes[] = { 132, 8, 1, 3, 16, 1024 };
	int g;

	memset(dev, 0, sizeof(*dev));
	memset(group, 0, GROUPS * sizeof(*group));
	memset(client, 0, CLIENTS * sizeof(*client));
	memset(shadow, 0, sizeof(shadow));
	memset(shadow_arb, 0, sizeof(shadow_arb));
	memset(group_live, 0, sizeof(group_live));
	memset(usage_ended, 0, sizeof(usage_ended));
	memset(usage_most, 0, sizeof(usage_most));
	rng = seed * 0x9E3779B97F4A7C15ULL + 1;
	trace = 0xCBF29CE484222325ULL;
	clock_ns = 1000 * MS;
	usage_time = clock_ns;
	told_timer = 0;
	n_shared = 0;
	n_grant = n_evict = n_grow = n_done = n_hold = n_wait = 0;
	n_adopted = n_turn = n_sliced = n_lower = n_drain = n_emptied = n_sized = n_midway = 0;
	memset(changed_at, 0, sizeof(changed_at));
	memset(was_midway, 0, sizeof(was_midway));
	n_planned = n_expired = 0;
	was_planned = false;
	memset(was_closed, 0, sizeof(was_closed));
	memset(granted_now, 0, sizeof(granted_now));
	failure = NULL;
	gsc_device_init(dev, &ops, sizes[seed % 6]);
	dev->seed = seed;
	pauses = seed % 3 == 1;
	paged = batches && seed % 2;
	if (gsc_device_set_policy(dev, policy, clock_ns))
		fail("no such policy");
	for (g = 0; g < GROUPS; g++)
		plan_max[g] = U32_MAX;
}

static bool make_world(void)
{
	dev = calloc(1, sizeof(*dev));
	group = calloc(GROUPS, sizeof(*group));
	client = calloc(CLIENTS, sizeof(*client));
	return dev && group && client;
}

#endif /* SELFTESTS_CORE_EVENTS_H */
