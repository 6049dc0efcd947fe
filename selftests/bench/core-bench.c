// SPDX-License-Identifier: GPL-2.0-only
/*
 * What decisions of the core cost: decisions, mean and longest time of every case, or of the one
 * that is named.
 * selftests/bench/core-counts counts the instructions of measured().
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kmod/core/core.h"

#define SMS	132

static void op_set_window(struct gsc_task *task, enum gsc_change why) { }
static void op_set_lease(struct gsc_client *client, u32 old) { }
static void op_arm_timer(struct gsc_device *dev, u64 when) { }
static void op_done(struct gsc_task *task) { }
static struct gsc_task (*tasks)[GSCHED_SLOTS];	/* of each client */
static const struct gsc_client *clients;

static struct gsc_task *op_new_task(struct gsc_client *client, u32 slot)
{
	return &tasks[client - clients][slot];
}

static const struct gsc_ops ops = {
	.new_task = op_new_task,
	.set_window = op_set_window, .set_lease = op_set_lease, .arm_timer = op_arm_timer,
	.done = op_done,
};

struct bench {
	struct gsc_device dev;
	struct gsc_group *group;
	struct gsc_client *client;
	unsigned int n;
	u64 now;
	u32 flags;			/* GSCHED_ATTACH_* of all clients */
	bool timed;
	u64 worst;			/* ns of the longest commit while @timed is set */
};

/* One row: @n clients, of which @active have a kernel; what measured() does with them */
struct bench_case {
	const char *name;
	unsigned int n, active;
	void (*prepare)(struct bench *b);
	void (*measured)(struct bench *b);
	unsigned int rounds;
	const char *policy;		/* NULL hpf; plan: with a part of the device for each group */
	bool apart;			/* each client has a band of its own */
};

static void fail(const char *what)
{
	fprintf(stderr, "core-bench: %s\n", what);
	exit(1);
}

static void submit(struct bench *b, unsigned int client, u32 slot, u64 blocks)
{
	struct gsched_submit req = {
		.slot = slot, .seq = 1, .tier = GSCHED_TIER_BLOCK, .blocks_per_sm = 8,
		.blocks = blocks,
	};

	if (gsc_submit(&b->client[client], &req, b->now))
		fail("a submit was refused");
}

static void complete(struct bench *b, unsigned int client, u32 slot)
{
	struct gsched_complete req = { .slot = slot, .seq = 1 };

	if (gsc_complete(&b->client[client], &req, b->now))
		fail("a complete was refused");
}

static u64 ns_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000000000 + (u64)t.tv_nsec;
}

static void commit(struct bench *b)
{
	u64 from;

	if (!b->timed) {
		gsc_commit(&b->dev, b->now);
		return;
	}
	from = ns_now();
	gsc_commit(&b->dev, b->now);
	from = ns_now() - from;
	if (from > b->worst)
		b->worst = from;
}

/* A kernel of client 0 begins and ends: two decisions */
static void short_kernel(struct bench *b)
{
	b->now += 1000;
	submit(b, 0, 0, 8);
	commit(b);
	b->now += 1000;
	complete(b, 0, 0);
	commit(b);
}

/* The kernels of all clients are found in their pages at once, as a quota is about to change */
static void adopt(struct bench *b)
{
	b->now += 1000;
	for (unsigned int i = 0; i < b->n; i++)
		for (u32 slot = 0; slot < GSCHED_SLOTS; slot++)
			submit(b, i, slot, 100000);
	commit(b);
}

/* And all are over as the arbiter looks the next time */
static void reap(struct bench *b)
{
	b->now += 1000;
	for (unsigned int i = 0; i < b->n; i++)
		for (u32 slot = 0; slot < GSCHED_SLOTS; slot++)
			complete(b, i, slot);
	commit(b);
}

static void attach(struct bench *b, unsigned int client)
{
	if (gsc_client_attach(&b->client[client], &b->group[client], b->flags, 0, b->now))
		fail("an attach was refused");
}

/* The last client goes and comes back: two decisions about all bands */
static void come_and_go(struct bench *b)
{
	struct gsc_client *last = &b->client[b->n - 1];

	b->now += 1000;
	gsc_client_detach(last, b->now);
	commit(b);
	memset(last, 0, sizeof(*last));
	b->now += 1000;
	attach(b, b->n - 1);
	commit(b);
}

static void set_targets(struct bench *b)
{
	b->now += 1000;
	for (unsigned int i = 0; i < b->n; i++)
		if (gsc_group_store(&b->group[i], GSC_FILE_GPU_LATENCY, "1000", b->now))
			fail("a latency target was refused");
	commit(b);
}

static void set_guarantees(struct bench *b)
{
	for (unsigned int i = 0; i < b->n; i++)
		if (gsc_group_store(&b->group[i], GSC_FILE_CAPSM_MIN, i ? "1" : "8", b->now))
			fail("a guarantee was refused");
	commit(b);
}

/* Client 0 is more important and runs short kernels; the other active ones share what it leaves */
static const struct bench_case cases[] = {
	{ "2-active", 2, 2, NULL, short_kernel, 1000, NULL, false },
	{ "20-active", 20, 20, NULL, short_kernel, 1000, NULL, false },
	{ "64-active", 64, 64, NULL, short_kernel, 1000, NULL, false },
	{ "256-active", 256, 256, NULL, short_kernel, 200, NULL, false },
	{ "10000-active", 10000, 10000, NULL, short_kernel, 10, NULL, false },
	{ "min-2-active", 2, 2, set_guarantees, short_kernel, 1000, NULL, false },
	{ "min-20-active", 20, 20, set_guarantees, short_kernel, 1000, NULL, false },
	{ "256-idle", 256, 0, NULL, short_kernel, 1000, NULL, false },
	{ "10000-idle", 10000, 0, NULL, short_kernel, 1000, NULL, false },
	{ "20-of-256", 256, 20, NULL, short_kernel, 1000, NULL, false },
	{ "20-of-10000", 10000, 20, NULL, short_kernel, 1000, NULL, false },
	{ "1-of-257", 257, 1, NULL, short_kernel, 1000, NULL, false },
	{ "srt-2-active", 2, 2, NULL, short_kernel, 1000, "srt", false },
	{ "srt-20-active", 20, 20, NULL, short_kernel, 1000, "srt", false },
	{ "srt-64-active", 64, 64, NULL, short_kernel, 1000, "srt", false },
	{ "srt-256-active", 256, 256, NULL, short_kernel, 200, "srt", false },
	{ "wfq-2-active", 2, 2, NULL, short_kernel, 1000, "wfq", false },
	{ "wfq-20-active", 20, 20, NULL, short_kernel, 1000, "wfq", false },
	{ "wfq-64-active", 64, 64, NULL, short_kernel, 1000, "wfq", false },
	{ "wfq-256-active", 256, 256, NULL, short_kernel, 200, "wfq", false },
	{ "wfq-10000-active", 10000, 10000, NULL, short_kernel, 10, "wfq", false },
	{ "wfq-20-of-10000", 10000, 20, NULL, short_kernel, 1000, "wfq", false },
	{ "ffs-2-active", 2, 2, NULL, short_kernel, 1000, "ffs", false },
	{ "corun-2-active", 2, 2, NULL, short_kernel, 1000, "corun", false },
	{ "plan-2-active", 2, 2, NULL, short_kernel, 1000, "plan", false },
	{ "plan-20-active", 20, 20, NULL, short_kernel, 1000, "plan", false },
	{ "ffs-20-active", 20, 20, NULL, short_kernel, 1000, "ffs", false },
	{ "ffs-20-of-10000", 10000, 20, NULL, short_kernel, 1000, "ffs", false },
	{ "adopt-16x64", 16, 0, NULL, adopt, 1, NULL, false },
	{ "reap-16x64", 16, 0, adopt, reap, 1, NULL, false },
	{ "adopt-256x64", 256, 0, NULL, adopt, 1, NULL, false },
	{ "reap-256x64", 256, 0, adopt, reap, 1, NULL, false },
	{ "adopt-1024x64", 1024, 0, NULL, adopt, 1, NULL, false },
	{ "attach-256", 256, 0, NULL, come_and_go, 100, NULL, false },
	{ "attach-1000", 1000, 0, NULL, come_and_go, 20, NULL, false },
	{ "attach-4000", 4000, 0, NULL, come_and_go, 5, NULL, false },
	{ "attach-256x64", 256, 0, adopt, come_and_go, 20, NULL, false },
	{ "attach-1024x64", 1024, 0, adopt, come_and_go, 5, NULL, false },
	{ "bands-256", 256, 0, NULL, come_and_go, 100, NULL, true },
	{ "bands-1000", 1000, 0, NULL, come_and_go, 20, NULL, true },
	{ "bands-4000", 4000, 0, NULL, come_and_go, 5, NULL, true },
	{ "targets-1000", 1000, 0, set_targets, come_and_go, 20, NULL, true },
};

/* Groups by their numbers */
static struct gsc_group *find(void *arg, const char *path, size_t len)
{
	return &((struct bench *)arg)->group[atoi(path)];
}

/* The first group has 8 SMs, as it needs; the others at most all, and little for sure */
static void set_plan(struct bench *b)
{
	char text[1024];
	int len = snprintf(text, sizeof(text), "60000 0=8");

	for (unsigned int i = 1; i < b->n; i++)
		len += snprintf(text + len, sizeof(text) - (size_t)len, " %u=1-%d", i, SMS);
	if (gsc_device_plan(&b->dev, text, find, b, b->now))
		fail("a plan was refused");
}

static void setup(struct bench *b, const struct bench_case *c)
{
	memset(b, 0, sizeof(*b));
	b->n = c->n;
	b->now = 1;
	b->flags = c->apart ? GSCHED_ATTACH_SLICE : GSCHED_ATTACH_MPS;
	b->client = calloc(c->n, sizeof(*b->client));
	b->group = calloc(c->n, sizeof(*b->group));
	tasks = calloc(c->n, sizeof(*tasks));
	clients = b->client;
	if (!b->client || !b->group || !tasks || gsc_device_init(&b->dev, &ops, SMS))
		fail("no memory");
	if (c->policy && strcmp(c->policy, "plan") &&
	    gsc_device_set_policy(&b->dev, c->policy, b->now))
		fail("no such policy");
	for (unsigned int i = 0; i < c->n; i++) {
		if (gsc_group_init(&b->group[i], &b->dev.root))
			fail("a group was refused");
		attach(b, i);
		if (i && i < c->active)
			submit(b, i, 0, 100000);
	}
	if (c->policy && !strcmp(c->policy, "plan"))
		set_plan(b);
	if (c->active && gsc_group_store(&b->group[0], GSC_FILE_GPU_PRIORITY, "10", b->now))
		fail("a priority was refused");
	commit(b);
	/* the kernels that run have done so for a while */
	b->now += 50000000;
	gsc_tick(&b->dev, b->now);
	commit(b);
	if (c->prepare)
		c->prepare(b);
}

/* In a function of its own, which callgrind can be told to count */
static __attribute__((noipa)) void measured(struct bench *b, const struct bench_case *c)
{
	for (unsigned int i = 0; i < c->rounds; i++)
		c->measured(b);
}

static void teardown(struct bench *b)
{
	free(b->client);
	free(tasks);
	free(b->group);
}

/* The mean of one run; the longest commit of another one, as asking the time costs something, too */
static void run(const struct bench_case *c)
{
	static struct bench b;
	u64 decisions, from;
	double ns;

	setup(&b, c);
	decisions = b.dev.decisions;
	from = ns_now();
	measured(&b, c);
	ns = (double)(ns_now() - from);
	decisions = b.dev.decisions - decisions;
	teardown(&b);
	setup(&b, c);
	b.timed = true;
	for (unsigned int i = 0; i < c->rounds; i++)
		c->measured(&b);
	printf("core: %-16s %6llu decisions, %9.0f ns each, %9llu at worst, %8.3f ms in all\n",
	       c->name, (unsigned long long)decisions, ns / (double)decisions,
	       (unsigned long long)b.worst, ns / 1e6);
	teardown(&b);
}

int main(int argc, char **argv)
{
	bool found = false;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (argc > 1 && strcmp(argv[1], cases[i].name))
			continue;
		run(&cases[i]);
		found = true;
	}
	return !found;
}
