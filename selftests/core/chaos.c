// SPDX-License-Identifier: GPL-2.0-only
/*
 * Policy chaos: nobody starves, windows shrink to nothing and grow, and only the seed decides.
 */
#include "world.h"

#define SMS	16
#define CLIENTS	3

static struct gsc_device dev;
static struct gsc_client client[CLIENTS];
static u64 timer, zeroes, grows, parts, hash;

static void op_set_window(struct gsc_task *task, enum gsc_change why)
{
	u64 now = task->window;

	zeroes += !now;
	parts += now && now < SMS * SM;
	grows += why == GSC_GROW;
	hash = (hash ^ now ^ (u64)why << 60) * 0x100000001B3ULL;
}

static void op_arm_timer(struct gsc_device *d, u64 when)
{
	timer = when;
}

static const struct gsc_ops ops = {
	.new_task = op_new_task, .set_window = op_set_window, .arm_timer = op_arm_timer,
};

static u32 attach_flags = GSCHED_ATTACH_MPS;

static int start(u64 seed, s32 mode, int clients)
{
	int ret;

	memset(&dev, 0, sizeof(dev));
	memset(client, 0, sizeof(client));
	timer = zeroes = grows = parts = hash = 0;
	gsc_device_init(&dev, &ops, SMS);
	dev.seed = seed;
	ret = gsc_device_set_policy(&dev, "chaos", MS);
	gsc_device_set_mode(&dev, mode, MS);
	for (int c = 0; c < clients; c++)
		gsc_client_attach(&client[c], &dev.root, attach_flags, 0, MS);
	return ret;
}

/* Nothing happens but the timer: each client's task has capacity at some time within @ticks */
static bool all_served(u64 seed, s32 mode, int clients, int ticks)
{
	bool served[CLIENTS] = { 0 }, fine = true;
	struct gsched_submit req;

	if (start(seed, mode, clients))
		return false;
	for (int c = 0; c < clients; c++) {
		req = make_submit(0, 1, c == 1 ? GSCHED_TIER_LAUNCH : GSCHED_TIER_BLOCK, 1000);
		gsc_submit(&client[c], &req, 2 * MS);
	}
	for (int i = 0; i < ticks && fine; i++) {
		fine = timer && !gsc_check(&dev);
		gsc_tick(&dev, timer);
		for (int c = 0; c < clients; c++)
			served[c] |= task_at(&client[c], 0)->window != 0;
		/* what is opaque has to end, in temporal mode most of all */
		if (clients > 1 && task_at(&client[1], 0)->state == GSC_TASK_RUNNING) {
			struct gsched_complete end = make_complete(0, 1);

			gsc_complete(&client[1], &end, timer);
		}
	}
	for (int c = 0; c < clients; c++)
		fine &= served[c];
	return fine;
}

int main(void)
{
	bool fine = true, alone = true, turns = true, reaches = true, bands = true, evicted = true;
	u64 seed, first;

	for (seed = 1; seed <= 200; seed++) {
		alone &= all_served(seed, GSCHED_MODE_SPATIAL, 1, 64);
		fine &= all_served(seed, GSCHED_MODE_SPATIAL, CLIENTS, 64);
		turns &= all_served(seed, GSCHED_MODE_TEMPORAL, CLIENTS, 200);
	}
	ok(alone, "a task alone on the device runs by and by, without any event but the timer");
	ok(fine, "so does each of several");
	ok(turns, "and each in turn, without MPS");
	for (seed = 1; seed <= 20; seed++) {
		all_served(seed, GSCHED_MODE_SPATIAL, 1, 400);
		reaches &= zeroes > 10 && grows > 10 && parts > 10;
	}
	attach_flags = GSCHED_ATTACH_SLICE;
	for (seed = 1; seed <= 200; seed++)
		bands &= all_served(seed, -1, CLIENTS, 200) && dev.mode == GSCHED_MODE_SLICED &&
			 dev.n_bands == CLIENTS;
	ok(bands, "each of several bands runs by and by, with windows of its own");
	attach_flags = 0;
	for (seed = 1; seed <= 200; seed++)
		evicted &= all_served(seed, -1, CLIENTS, 400) && dev.mode == GSCHED_MODE_TEMPORAL;
	ok(evicted, "and where no slice can be set");
	attach_flags = GSCHED_ATTACH_MPS;
	ok(reaches, "its window shrinks to nothing and to parts, and grows");
	all_served(7, GSCHED_MODE_SPATIAL, CLIENTS, 400);
	first = hash;
	all_served(8, GSCHED_MODE_SPATIAL, CLIENTS, 400);
	ok(hash != first, "another seed, other windows");
	all_served(7, GSCHED_MODE_SPATIAL, CLIENTS, 400);
	ok(hash == first, "the same seed, the same windows");
	start(1, GSCHED_MODE_SPATIAL, 1);
	ok(client[0].lease == GSCHED_LEASE_NONE, "no launch goes by unseen");
	gsc_device_set_policy(&dev, "hpf", 3 * MS);
	ok(client[0].lease == GSCHED_LEASE_FREE && !timer, "and under hpf all is as before");
	return done();
}
