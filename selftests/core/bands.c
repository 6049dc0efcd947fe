// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bands: membership, modes, slices, shares, what clients are told. Turns are in turns.c. One
 * behaviour a test.
 */
#include "unit.h"

#define OWN	GSCHED_ATTACH_SLICE
#define CLIENT	GSCHED_ATTACH_MPS
#define SERVER	(GSCHED_ATTACH_MPS | GSCHED_ATTACH_SLICE | GSCHED_ATTACH_SERVER)
#define ALONE	(GSCHED_ARB_ALONE | GSCHED_ARB_PRIVATE)
#define LOWER	(ALONE | REPORT | GSCHED_ARB_TIMED)
#define REPORT	GSCHED_ARB_REPORT

static void join(int c, u32 flags, u64 channel_group)
{
	EXPECT(!gsc_client_attach(&client[c], &group[c], flags, channel_group, clock_ns));
	checked();
}

static void leave(int c)
{
	gsc_client_detach(&client[c], clock_ns);
	checked();
	memset(&client[c], 0, sizeof(client[c]));
}

/* @n processes without MPS, each with a priority of its own group */
static void processes(int n, const char *const *priority)
{
	for (int i = 0; i < n; i++) {
		if (priority)
			EXPECT(!store(&group[i], GSC_FILE_GPU_PRIORITY, priority[i]));
		join(i, OWN, 0);
	}
}

static void report(int c, u32 activity)
{
	struct gsched_report req = { .size = sizeof(req), .flags = GSCHED_REPORT_ACTIVITY,
				     .activity = activity };

	EXPECT(!gsc_client_report(&client[c], &req, clock_ns));
	checked();
}

static void report_slice(int c, u32 slice_us, u32 error)
{
	struct gsched_report req = { .size = sizeof(req), .flags = GSCHED_REPORT_SLICE,
				     .slice_us = slice_us, .slice_error = error };

	EXPECT(!gsc_client_report(&client[c], &req, clock_ns));
	checked();
}

static void streams(int c, u32 prioritised)
{
	struct gsched_report req = { .size = sizeof(req), .flags = GSCHED_REPORT_STREAMS,
				     .prioritised = prioritised };

	EXPECT(!gsc_client_report(&client[c], &req, clock_ns));
	checked();
}

#define EXPECT_SLICE(c, us) do { \
	if (client[c].arb.slice_us != (us)) { \
		printf("# %s:%d: slice of client %d: %u us, not %u\n", __FILE__, __LINE__, (c), \
		       client[c].arb.slice_us, (u32)(us)); \
		good = false; \
	} \
} while (0)

static void who_shares_a_band(void)
{
	join(0, CLIENT, 0);
	join(1, CLIENT, 0);
	EXPECT(client[0].band == client[1].band && dev.n_bands == 1);
	join(2, CLIENT, 7);
	join(3, CLIENT, 7);
	join(4, CLIENT, 8);
	EXPECT(client[2].band == client[3].band && client[2].band != client[0].band &&
	       client[4].band != client[2].band);
	join(5, OWN, 0);
	join(6, OWN, 0);
	join(7, OWN, 9);
	EXPECT(client[5].band != client[6].band && client[5].band != client[0].band &&
	       dev.n_bands == 6);
	EXPECT(client[7].arb.bands == 6);
}

static void modes(void)
{
	EXPECT(dev.mode == GSCHED_MODE_TEMPORAL);
	join(0, 0, 0);
	EXPECT(dev.mode == GSCHED_MODE_SPATIAL && client[0].lease == GSCHED_LEASE_FREE);
	join(1, 0, 0);
	EXPECT(dev.mode == GSCHED_MODE_TEMPORAL && client[0].lease == GSCHED_LEASE_NONE);
	EXPECT_SLICE(1, 0);
	leave(0);
	EXPECT(dev.mode == GSCHED_MODE_SPATIAL);
	leave(1);
	join(0, OWN, 0);
	join(1, OWN, 0);
	EXPECT(dev.mode == GSCHED_MODE_SLICED);
	EXPECT(client[0].lease == GSCHED_LEASE_FREE && client[1].lease == GSCHED_LEASE_FREE);
	EXPECT(!gsc_device_set_mode(&dev, GSCHED_MODE_SPATIAL, clock_ns));
	checked();
	EXPECT(dev.n_bands == 1 && client[0].band == client[1].band &&
	       client[0].lease == GSCHED_LEASE_NONE);
	EXPECT_SLICE(0, 0);
	EXPECT(!gsc_device_set_mode(&dev, -1, clock_ns));
	checked();
	EXPECT(dev.mode == GSCHED_MODE_SLICED && dev.n_bands == 2);
	EXPECT(gsc_device_set_mode(&dev, GSCHED_MODE_SLICED, clock_ns) == -EINVAL);
}

/* Each band has the whole device: they alternate in time */
static void each_band_has_the_device(void)
{
	processes(2, NULL);
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT(submit(1, 0, BLOCK, 100000) == 0);
	EXPECT(task(0, 0)->window == ALL && task(1, 0)->window == ALL && n_evict == 0);
	EXPECT(!store(&dev.root, GSC_FILE_CAPSM_MAX, "40"));
	EXPECT_WINDOW(task(0, 0), 40);
	EXPECT_WINDOW(task(1, 0), 40);
	EXPECT(shows(&dev.root, GSC_FILE_CAPSM_CURRENT, "80\n"));
}

/* Clients of one band share in space while another band has all of it */
static void leases_and_windows_are_of_the_band(void)
{
	EXPECT(!store(&group[1], GSC_FILE_GPU_PRIORITY, "10"));
	join(0, CLIENT, 7);
	join(1, CLIENT, 7);
	join(2, OWN, 0);
	EXPECT(dev.mode == GSCHED_MODE_SLICED);
	EXPECT(client[0].lease == GSCHED_LEASE_NONE && client[1].lease == GSCHED_LEASE_NOTIFY &&
	       client[2].lease == GSCHED_LEASE_FREE);
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT(submit(1, 0, BLOCK, 8) == 0);
	EXPECT(submit(2, 0, BLOCK, 100000) == 0);
	EXPECT_WINDOW(task(0, 0), 124);
	EXPECT_WINDOW(task(1, 0), 8);
	EXPECT(task(2, 0)->window == ALL);
}

static void server_owns_the_slice_and_nothing_else(void)
{
	struct gsched_submit req = make_submit(0, 1, BLOCK, 8);

	join(0, SERVER, 7);
	EXPECT(dev.n_bands == 0 && client[0].lease == GSCHED_LEASE_NONE);
	EXPECT(gsc_submit(&client[0], &req, clock_ns) == -EINVAL && !client[0].n_tasks);
	join(1, OWN, 0);
	EXPECT(dev.n_bands == 1 && dev.mode == GSCHED_MODE_SPATIAL &&
	       client[1].lease == GSCHED_LEASE_FREE);
	join(2, CLIENT, 7);
	EXPECT(dev.n_bands == 2 && client[2].lease == GSCHED_LEASE_FREE);
	EXPECT_SLICE(0, 2048);
	EXPECT_SLICE(1, 2048);
	EXPECT_SLICE(2, 0);
	join(3, CLIENT, 7);
	EXPECT(client[2].lease == GSCHED_LEASE_NONE && !client[0].arb.flags);
	EXPECT_SLICE(0, 2730);
	leave(0);
	/* its clients go on with the driver's slice */
	EXPECT(dev.mode == GSCHED_MODE_SLICED && !gsc_band_owner(client[2].band));
	EXPECT_SLICE(2, 0);
	EXPECT_SLICE(3, 0);
	EXPECT_SLICE(1, 1365);
}

/* One band that cannot set its slice costs the others nothing but the driver's slice for it */
static void a_stranger_without_slices_changes_no_mode(void)
{
	join(0, OWN, 0);
	join(1, OWN, 0);
	join(2, 0, 0);
	EXPECT(dev.mode == GSCHED_MODE_SLICED);
	EXPECT_SLICE(0, 2048);
	EXPECT(client[0].lease == GSCHED_LEASE_FREE && client[2].lease == GSCHED_LEASE_FREE);
	EXPECT(!store(&group[0], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT_SLICE(0, 1000000);
	report_slice(1, 0, EIO);
	EXPECT(dev.mode == GSCHED_MODE_SLICED && client[0].lease == GSCHED_LEASE_FREE);
	/* the most important one without is no better off by what the others can */
	EXPECT(!store(&group[0], GSC_FILE_GPU_PRIORITY, "0"));
	EXPECT(!store(&group[2], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT(dev.mode == GSCHED_MODE_TEMPORAL);
	EXPECT(!gsc_device_set_policy(&dev, "ffs", clock_ns));
	EXPECT(dev.mode == GSCHED_MODE_SLICED);
}

static void refused_slices_are_temporal(void)
{
	processes(2, NULL);
	EXPECT_SLICE(0, 2048);
	report_slice(0, 2048, 0);
	EXPECT(dev.mode == GSCHED_MODE_SLICED && client[0].slice_us == 2048);
	report_slice(0, 0, EIO);
	EXPECT(dev.mode == GSCHED_MODE_SLICED);
	report_slice(1, 0, EIO);
	EXPECT(dev.mode == GSCHED_MODE_TEMPORAL && client[1].slice_error == EIO);
	EXPECT_SLICE(0, 0);
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT(submit(1, 0, BLOCK, 8) == QUEUED);
	/* the driver's own slice is set again, which it does not refuse */
	report_slice(1, 2048, 0);
	EXPECT(dev.mode == GSCHED_MODE_TEMPORAL);
	leave(1);
	join(1, OWN, 0);
	EXPECT(dev.mode == GSCHED_MODE_SLICED);
	/* a channel group that was not seen can come later */
	report_slice(1, 0, EOPNOTSUPP);
	EXPECT(dev.mode == GSCHED_MODE_TEMPORAL);
	report_slice(1, 2048, 0);
	EXPECT(dev.mode == GSCHED_MODE_SLICED);
}

/* A task that nobody completes does not keep an equal from running for ever, in either direction */
static void temporal_turns_end(void)
{
	join(0, 0, 0);
	join(1, 0, 0);
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT(submit(0, 1, LAUNCH, 100000) == 0);
	clock_ns += 100 * MS;
	EXPECT(submit(1, 0, BLOCK, 100000) == QUEUED);
	EXPECT(dev.timer == clock_ns + 500 * MS);
	clock_ns += 499 * MS;
	gsc_tick(&dev, clock_ns);
	EXPECT(task(0, 0)->window == ALL);
	clock_ns += MS;
	gsc_tick(&dev, clock_ns);
	checked();
	EXPECT(task(1, 0)->window == ALL);
	EXPECT_WINDOW(task(0, 0), 0);
	/* the other's tasks are old, and wait for as long */
	EXPECT(dev.timer == clock_ns + 500 * MS);
	clock_ns += 500 * MS;
	gsc_tick(&dev, clock_ns);
	checked();
	EXPECT(task(0, 0)->window == ALL);
	EXPECT_WINDOW(task(1, 0), 0);
	/* three take turns in order */
	join(2, 0, 0);
	EXPECT(submit(2, 0, BLOCK, 100000) == QUEUED);
	for (int i = 0; i < 6; i++) {
		clock_ns = dev.timer;
		gsc_tick(&dev, clock_ns);
		checked();
		EXPECT(task((i + 1) % 3, 0)->window == ALL);
	}
	/* nobody waits: no timer */
	leave(1);
	leave(2);
	EXPECT(task(0, 0)->window == ALL && !dev.timer);
	/* who is less important waits as long as it takes */
	EXPECT(!store(&group[0], GSC_FILE_GPU_PRIORITY, "1"));
	join(1, 0, 0);
	EXPECT(submit(1, 0, BLOCK, 8) == QUEUED && !dev.timer);
}

static void temporal_one_band_at_a_time(void)
{
	join(0, CLIENT, 7);
	join(1, CLIENT, 7);
	join(2, 0, 0);
	EXPECT(dev.mode == GSCHED_MODE_TEMPORAL);
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT(submit(2, 0, BLOCK, 8) == QUEUED);
	EXPECT(submit(1, 0, BLOCK, 100000) == QUEUED);
	EXPECT(!store(&group[2], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT_WINDOW(task(2, 0), 8);
	EXPECT_WINDOW(task(0, 0), 0);
	EXPECT(complete(2, 0) == 0);
	EXPECT(task(0, 0)->window == 66 * SM && task(1, 0)->window == 66 * SM);
}

static bool passes(int c)
{
	return client[c].arb.flags & GSCHED_ARB_PASS;
}

/* The others' windows are to make room for a launch, and for a while after the last one, too. */
static void equals_without_windows_pass(void)
{
	join(0, CLIENT, 7);
	EXPECT(!passes(0));
	join(1, CLIENT, 7);
	join(2, SERVER, 7);
	EXPECT(passes(0) && passes(1) && !passes(2));
	EXPECT(submit(0, 0, LAUNCH, 8) == 0 && complete(0, 0) == 0);
	EXPECT(passes(0) && passes(1));
	EXPECT(submit(0, 0, BLOCK, 8) == 0);
	EXPECT(passes(0) && !passes(1));
	EXPECT(submit(1, 0, BLOCK, 8) == 0 && complete(1, 0) == 0);
	EXPECT(!passes(0) && !passes(1));
	/* one that runs for long counts for all of it; the other one has had none for a second */
	clock_ns += 1500 * MS;
	gsc_tick(&dev, clock_ns);
	gsc_commit(&dev, clock_ns);
	checked();
	EXPECT(passes(0) && !passes(1));
	EXPECT(complete(0, 0) == 0);
	EXPECT(!passes(1) && dev.timer);
	while (dev.timer) {
		clock_ns = dev.timer;
		gsc_tick(&dev, clock_ns);
		gsc_commit(&dev, clock_ns);
		checked();
	}
	EXPECT(passes(0) && passes(1));
}

/* A window that was there before the others came, one that leaves, and one that changes its band */
static void windows_of_those_who_come_and_go(void)
{
	join(0, CLIENT, 7);
	EXPECT(submit(0, 0, BLOCK, 8) == 0);
	join(1, CLIENT, 7);
	EXPECT(passes(0) && !passes(1));
	leave(0);
	join(2, CLIENT, 7);
	EXPECT(passes(1) && passes(2) && !dev.timer);
}

static void others_do_not_pass(void)
{
	join(0, CLIENT, 7);
	join(1, CLIENT, 7);
	EXPECT(passes(0) && passes(1));
	/* it waits for nobody, but those below wait for it */
	EXPECT(!store(&group[0], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT(!passes(0) && !passes(1));
	/* the hardware sees to that by itself */
	streams(0, 1);
	EXPECT(passes(0) && passes(1));
	streams(0, 0);
	EXPECT(!passes(0) && !passes(1));
	EXPECT(!gsc_device_set_policy(&dev, "ffs", clock_ns));
	checked();
	EXPECT(passes(0) && passes(1));
	EXPECT(!store(&group[1], GSC_FILE_CAPSM_MIN, "4"));
	EXPECT(!passes(0) && !passes(1));
	EXPECT(!store(&group[1], GSC_FILE_CAPSM_MIN, "0") &&
	       !store(&group[1], GSC_FILE_CAPSM_MAX, "8"));
	EXPECT(passes(0) && passes(1));
	EXPECT(!gsc_device_set_mode(&dev, GSCHED_MODE_TEMPORAL, clock_ns));
	checked();
	EXPECT(!passes(0) && !passes(1));
}

static void reports_are_checked(void)
{
	struct gsched_report req = { .size = sizeof(req), .flags = GSCHED_REPORT_ACTIVITY };

	EXPECT(gsc_client_report(&client[0], &req, clock_ns) == -EINVAL);
	join(0, OWN, 0);
	req.activity = GSCHED_ACTIVITY_BUSY + 1;
	EXPECT(gsc_client_report(&client[0], &req, clock_ns) == -EINVAL);
	req.activity = GSCHED_ACTIVITY_BUSY;
	req.slice_error = 4096;
	EXPECT(gsc_client_report(&client[0], &req, clock_ns) == -EINVAL);
	req.slice_error = 0;
	/* nobody asked */
	EXPECT(!gsc_client_report(&client[0], &req, clock_ns) &&
	       client[0].activity == GSCHED_ACTIVITY_IDLE);
}

static void alone_has_the_drivers_slice(void)
{
	join(0, OWN, 0);
	EXPECT_SLICE(0, 0);
	EXPECT(n_band == 1 && client[0].arb.bands == 1 && client[0].arb.share == GSCHED_SHARE_ALL &&
	       client[0].arb.flags == ALONE);
}

static void top_runs_whole_and_the_lower_gives_way(void)
{
	static const char *const priority[] = { "50", "0" };

	processes(2, priority);
	EXPECT_SLICE(0, 1000000);
	EXPECT_SLICE(1, 1);
	/* the activity of a lower band is known before a second one makes it count */
	EXPECT(client[0].arb.flags == ALONE && client[1].arb.flags == LOWER);
	EXPECT(!store(&group[1], GSC_FILE_GPU_PRIORITY, "60"));
	EXPECT_SLICE(0, 1);
	EXPECT_SLICE(1, 1000000);
	EXPECT(client[0].arb.flags == LOWER && client[1].arb.flags == ALONE);
}

static void several_tops_have_the_drivers_slice(void)
{
	static const char *const priority[] = { "50", "50", "0" };

	processes(3, priority);
	EXPECT_SLICE(0, 2048);
	EXPECT_SLICE(1, 2048);
	EXPECT_SLICE(2, 1);
}

/* hpf: n times the driver's slice is shared by weight, so equals wait no longer than without us */
static void equals_have_the_drivers_slice_by_weight(void)
{
	EXPECT(!store(&group[1], GSC_FILE_GPU_WEIGHT, "300"));
	processes(2, NULL);
	EXPECT_SLICE(0, 1024);
	EXPECT_SLICE(1, 3072);
	join(2, OWN, 0);
	EXPECT_SLICE(0, 1228);
	EXPECT_SLICE(1, 3686);
	leave(2);
	/* the cost of switching is for ffs to weigh */
	EXPECT(!gsc_device_set_param(&dev, GSC_PARAM_SWITCH_US, "1000", clock_ns));
	EXPECT(!gsc_device_set_param(&dev, GSC_PARAM_MAX_OVERHEAD, "100", clock_ns));
	EXPECT_SLICE(0, 1024);
	EXPECT_SLICE(1, 3072);
	EXPECT(!store(&group[0], GSC_FILE_GPU_WEIGHT, "1"));
	EXPECT_SLICE(0, 500);
	EXPECT_SLICE(1, 4082);
	EXPECT(!store(&group[0], GSC_FILE_GPU_WEIGHT, "300"));
	EXPECT_SLICE(0, 2048);
	EXPECT_SLICE(1, 2048);
}

static void ffs_shares_an_epoch_by_weight(void)
{
	EXPECT(!gsc_device_set_policy(&dev, "ffs", clock_ns));
	EXPECT(!store(&group[1], GSC_FILE_GPU_WEIGHT, "300"));
	processes(2, NULL);
	/* two switches of 190 us in 5 % of the epoch */
	EXPECT_SLICE(0, 1900);
	EXPECT_SLICE(1, 5700);
	EXPECT(!gsc_device_set_param(&dev, GSC_PARAM_SWITCH_US, "100", clock_ns));
	EXPECT_SLICE(0, 1000);
	EXPECT(!gsc_device_set_param(&dev, GSC_PARAM_MAX_OVERHEAD, "100\n", clock_ns));
	EXPECT_SLICE(0, 500);
	EXPECT_SLICE(1, 1500);
	/* not below the shortest slice in which work gets done */
	EXPECT(!store(&group[0], GSC_FILE_GPU_WEIGHT, "1"));
	EXPECT_SLICE(0, 500);
	/* a second band of the group halves what each is worth */
	EXPECT(!store(&group[0], GSC_FILE_GPU_WEIGHT, "300"));
	EXPECT_SLICE(0, 1000);
	EXPECT(!gsc_client_attach(&client[2], &group[0], OWN, 0, clock_ns));
	EXPECT_SLICE(0, 750);
	EXPECT_SLICE(2, 750);
	EXPECT_SLICE(1, 1500);
	checked();
}

static void weight_is_of_the_groups_of_a_band(void)
{
	join(0, SERVER, 7);
	for (int c = 1; c <= 3; c++)
		join(c, CLIENT, 7);
	join(4, OWN, 0);
	EXPECT(client[1].band->weight == 3 * client[4].band->weight);
	EXPECT_SLICE(0, 3072);
	EXPECT_SLICE(4, 1024);
}

/* Servers do not count, and their own flags are always empty */
static void alone_is_the_only_client_of_a_band(void)
{
	join(0, SERVER, 7);
	EXPECT(!client[0].arb.flags);
	join(1, CLIENT, 7);
	join(2, OWN, 0);
	EXPECT(client[1].arb.flags == GSCHED_ARB_ALONE && client[2].arb.flags == ALONE &&
	       !client[0].arb.flags);
	n_band = 0;
	join(3, CLIENT, 7);
	EXPECT(client[1].arb.flags == GSCHED_ARB_PASS && client[3].arb.flags == GSCHED_ARB_PASS &&
	       client[2].arb.flags == ALONE && !client[0].arb.flags);
	/* all four were told: their slices changed, or the flag */
	EXPECT(n_band == 4);
	leave(1);
	EXPECT(client[3].arb.flags == GSCHED_ARB_ALONE);
	EXPECT(!gsc_device_set_mode(&dev, GSCHED_MODE_SPATIAL, clock_ns));
	checked();
	EXPECT(client[3].arb.flags == GSCHED_ARB_PASS && client[2].arb.flags == GSCHED_ARB_PASS);
	EXPECT(!gsc_device_set_mode(&dev, GSCHED_MODE_TEMPORAL, clock_ns));
	checked();
	EXPECT(client[3].arb.flags == GSCHED_ARB_ALONE && client[2].arb.flags == GSCHED_ARB_ALONE &&
	       !client[0].arb.flags);
}

static void latency_target_bounds_the_others(void)
{
	processes(3, NULL);
	EXPECT_SLICE(1, 2048);
	EXPECT(!store(&group[0], GSC_FILE_GPU_LATENCY, "4000"));
	EXPECT_SLICE(0, 2048);
	EXPECT_SLICE(1, 2000);
	EXPECT_SLICE(2, 2000);
	EXPECT(!store(&group[0], GSC_FILE_GPU_LATENCY, "100"));
	EXPECT_SLICE(1, 500);
	EXPECT(!store(&group[0], GSC_FILE_GPU_LATENCY, "0"));
	EXPECT_SLICE(1, 2048);
}

/* All hold, in whatever order the bands came, and equals stay equals */
static void several_latency_targets(void)
{
	processes(3, NULL);
	for (int c = 0; c < 3; c++)
		EXPECT(!store(&group[c], GSC_FILE_GPU_LATENCY, "2048"));
	for (int c = 0; c < 3; c++)
		EXPECT_SLICE(c, 1024);
	/* the slice of the one with the tightest target is as long as the others' allow */
	EXPECT(!store(&group[0], GSC_FILE_GPU_LATENCY, "3000"));
	EXPECT(!store(&group[2], GSC_FILE_GPU_LATENCY, "1500"));
	EXPECT(!store(&group[1], GSC_FILE_GPU_LATENCY, "2000"));
	EXPECT_SLICE(0, 750);
	EXPECT_SLICE(1, 750);
	EXPECT_SLICE(2, 1250);
	EXPECT(!store(&group[1], GSC_FILE_GPU_LATENCY, "0"));
	EXPECT_SLICE(0, 750);
	EXPECT_SLICE(1, 750);
	EXPECT_SLICE(2, 2048);
	/* what cannot be reached does not keep others from theirs */
	EXPECT(!store(&group[2], GSC_FILE_GPU_LATENCY, "1"));
	EXPECT(!store(&group[1], GSC_FILE_GPU_LATENCY, "1100"));
	EXPECT_SLICE(0, 500);
	EXPECT_SLICE(1, 500);
	EXPECT_SLICE(2, 600);
}

/* The target holds although a slice is the shortest: the other one is cut by more */
static void latency_target_beside_the_shortest_slice(void)
{
	EXPECT(!store(&group[2], GSC_FILE_GPU_WEIGHT, "10"));
	EXPECT(!store(&group[0], GSC_FILE_GPU_LATENCY, "2000"));
	processes(3, NULL);
	EXPECT_SLICE(0, 2925);
	EXPECT_SLICE(1, 1500);
	EXPECT_SLICE(2, 500);
}

/* Two busy bands that both give way at once would only switch */
static void two_busy_lower_bands_get_time(void)
{
	static const char *const priority[] = { "50", "0", "0" };

	processes(3, priority);
	EXPECT(client[0].arb.flags == ALONE);
	EXPECT(client[1].arb.flags == LOWER && client[2].arb.flags == LOWER);
	report(1, GSCHED_ACTIVITY_BUSY);
	EXPECT_SLICE(1, 1);
	report(2, GSCHED_ACTIVITY_BUSY);
	EXPECT_SLICE(0, 1000000);
	EXPECT_SLICE(1, 2048);
	EXPECT_SLICE(2, 2048);
	EXPECT(!store(&group[0], GSC_FILE_GPU_LATENCY, "800"));
	EXPECT_SLICE(1, 800);
	EXPECT(!store(&group[0], GSC_FILE_GPU_LATENCY, "20"));
	EXPECT_SLICE(1, 500);
	EXPECT(!store(&group[0], GSC_FILE_GPU_LATENCY, "0"));
	report(2, GSCHED_ACTIVITY_WAITING);
	EXPECT_SLICE(1, 1);
	EXPECT_SLICE(2, 1);
}

static void promised_capacity_bounds_the_top(void)
{
	static const char *const priority[] = { "50", "0", "0" };

	/* a quarter of the device */
	EXPECT(!store(&group[1], GSC_FILE_CAPSM_MIN, "33"));
	processes(3, priority);
	EXPECT_SLICE(1, 2000);
	EXPECT_SLICE(0, 6000);
	EXPECT_SLICE(2, 1);
	EXPECT(!store(&group[0], GSC_FILE_GPU_LATENCY, "1000"));
	EXPECT_SLICE(1, 1000);
	EXPECT_SLICE(0, 3000);
	EXPECT(!store(&group[0], GSC_FILE_GPU_LATENCY, "0"));
	/* an eighth beside it */
	EXPECT(!store(&group[2], GSC_FILE_CAPSM_MIN, "16.5"));
	EXPECT_SLICE(1, 2666);
	EXPECT_SLICE(2, 1333);
	EXPECT_SLICE(0, 6665);
	/* more than there is */
	EXPECT(!store(&group[1], GSC_FILE_CAPSM_MIN, "132"));
	EXPECT(client[0].arb.slice_us >= 500 && client[0].arb.slice_us < 1000);
}

static void blocks(int c, u32 block_us)
{
	struct gsched_report req = { .size = sizeof(req), .flags = GSCHED_REPORT_BLOCKS,
				     .block_us = block_us };

	EXPECT(!gsc_client_report(&client[c], &req, clock_ns));
	checked();
}

/*
 * The GPU waits for the ends of thread blocks when it leaves a lower band, if all of them are short
 */
static void short_blocks_are_waited_for(void)
{
	static const char *const priority[] = { "50", "0" };
	char text[200];

	processes(2, priority);
	blocks(0, 10);
	EXPECT(!client[0].block_us);
	blocks(1, 64);
	EXPECT(client[1].arb.flags == (LOWER | GSCHED_ARB_BLOCK_END) &&
	       client[0].arb.flags == ALONE);
	gsc_band_why(client[1].band, text, sizeof(text));
	EXPECT(strstr(text, "gives way at the ends of thread blocks: slice 1 us"));
	blocks(1, 128);
	EXPECT(client[1].arb.flags == LOWER);
	blocks(1, 0);
	EXPECT(client[1].arb.flags == LOWER);
	blocks(1, 1);
	EXPECT(client[1].arb.flags & GSCHED_ARB_BLOCK_END);
	/* with a part of the time for itself it is not left at once; what it said is forgotten */
	EXPECT(!store(&group[1], GSC_FILE_CAPSM_MIN, "20"));
	EXPECT(client[1].arb.flags == (ALONE | REPORT) && !client[1].block_us);
	EXPECT(!store(&group[1], GSC_FILE_CAPSM_MIN, "0"));
	EXPECT(client[1].arb.flags == LOWER);
	blocks(1, 1);
	EXPECT(!store(&group[1], GSC_FILE_GPU_PRIORITY, "60"));
	EXPECT(client[1].arb.flags == ALONE && client[0].arb.flags == LOWER);
}

/* In a band with an MPS server, of all clients; the server is told */
static void one_with_long_blocks_is_enough(void)
{
	join(0, CLIENT, 7);
	join(1, SERVER, 7);
	join(2, CLIENT, 7);
	join(3, SERVER, 8);
	join(4, CLIENT, 8);
	EXPECT(!store(&group[4], GSC_FILE_GPU_PRIORITY, "50"));
	EXPECT(client[0].arb.flags & GSCHED_ARB_TIMED && client[2].arb.flags & GSCHED_ARB_TIMED);
	EXPECT(!client[1].arb.flags && !(client[4].arb.flags & GSCHED_ARB_TIMED));
	blocks(0, 32);
	EXPECT(!client[1].arb.flags);
	blocks(2, 32);
	EXPECT(client[1].arb.flags == GSCHED_ARB_BLOCK_END && client[1].arb.slice_us == 1);
	EXPECT(!(client[0].arb.flags & GSCHED_ARB_BLOCK_END) && !client[3].arb.flags);
	blocks(0, 1000);
	EXPECT(!client[1].arb.flags);
	gsc_client_detach(&client[0], clock_ns);
	checked();
	EXPECT(client[1].arb.flags == GSCHED_ARB_BLOCK_END);
}

static bool is_private(int c)
{
	return client[c].arb.flags & GSCHED_ARB_PRIVATE;
}

static void a_band_is_private_while_slices_keep_it_apart(void)
{
	struct gsched_report refused = { .size = sizeof(refused), .flags = GSCHED_REPORT_SLICE,
					 .slice_error = EIO };

	join(0, OWN, 0);
	EXPECT(is_private(0));
	join(1, CLIENT, 7);
	EXPECT(is_private(0) && !is_private(1));
	join(2, OWN, 0);
	EXPECT(is_private(0) && is_private(2));
	/* eviction is what is left then, and windows do it */
	EXPECT(!gsc_client_report(&client[2], &refused, clock_ns));
	EXPECT(is_private(0) && !is_private(2));
	EXPECT(!gsc_client_report(&client[0], &refused, clock_ns));
	EXPECT(dev.mode == GSCHED_MODE_TEMPORAL && !is_private(0) && !is_private(2));
	leave(0);
	join(0, OWN, 0);
	leave(2);
	EXPECT(is_private(0));
	/* whoever shares the device in space may find the others in its way */
	EXPECT(!gsc_device_set_mode(&dev, GSCHED_MODE_SPATIAL, clock_ns));
	EXPECT(!is_private(0));
	EXPECT(!gsc_device_set_mode(&dev, -1, clock_ns));
	EXPECT(is_private(0));
	EXPECT(!gsc_device_set_policy(&dev, "chaos", clock_ns));
	EXPECT(!is_private(0));
	checked();
}

static bool yields(int c)
{
	return client[c].arb.flags & GSCHED_ARB_YIELDS;
}

static void the_hardware_serves_prioritised_streams(void)
{
	EXPECT(!store(&group[0], GSC_FILE_GPU_PRIORITY, "50"));
	EXPECT(!store(&group[1], GSC_FILE_GPU_PRIORITY, "10"));
	for (int c = 0; c < 4; c++)
		join(c, CLIENT, 7);
	EXPECT(!yields(0) && !yields(1) && !yields(2) && !yields(3));
	streams(0, 1);
	EXPECT(!yields(0) && yields(1) && !yields(2) && !yields(3));
	streams(1, 1);
	EXPECT(yields(1) && yields(2) && yields(3));
	/* one stream without is enough */
	streams(0, 0);
	EXPECT(!yields(1) && !yields(2));
	streams(0, 1);
	leave(1);
	EXPECT(yields(2) && yields(3));
	/* nobody is more important any more */
	leave(0);
	EXPECT(!yields(2) && !yields(3));
}

/* One that runs its kernels as they are from now on will have no window */
static void windows_are_over_sooner_where_the_hardware_makes_room(void)
{
	EXPECT(!store(&group[0], GSC_FILE_GPU_PRIORITY, "50"));
	join(0, CLIENT, 7);
	join(1, CLIENT, 7);
	EXPECT(submit(1, 0, BLOCK, 8) == 0 && !passes(0));
	clock_ns += 200 * MS;
	streams(0, 1);
	EXPECT(yields(1) && !passes(0) && dev.timer);
	EXPECT(complete(1, 0) == 0 && !passes(0));
	for (int i = 0; i < 2; i++) {
		clock_ns += 100 * MS;
		gsc_tick(&dev, clock_ns);
		gsc_commit(&dev, clock_ns);
		checked();
	}
	EXPECT(passes(0) && passes(1));
}

static void ffs_knows_no_priorities(void)
{
	static const char *const priority[] = { "50", "0", "0" };

	EXPECT(!gsc_device_set_policy(&dev, "ffs", clock_ns));
	processes(3, priority);
	for (int c = 0; c < 3; c++)
		EXPECT_SLICE(c, 3800);
	EXPECT(!dev.n_lower && client[1].arb.flags == ALONE);
	EXPECT(!gsc_device_set_policy(&dev, "hpf", clock_ns));
	EXPECT_SLICE(0, 1000000);
	EXPECT(dev.n_lower == 2);
	checked();
}

static void ffs_shares_a_band_by_weight(void)
{
	EXPECT(!gsc_device_set_policy(&dev, "ffs", clock_ns));
	EXPECT(!store(&group[0], GSC_FILE_GPU_PRIORITY, "50"));
	EXPECT(!store(&group[1], GSC_FILE_GPU_WEIGHT, "300"));
	attach(2);
	EXPECT(client[0].lease == GSCHED_LEASE_NONE);
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT(submit(1, 0, BLOCK, 100000) == 0);
	EXPECT_WINDOW(task(0, 0), 33);
	EXPECT_WINDOW(task(1, 0), 99);
}

static void share_of_the_time(void)
{
	static struct gsc_group sub[2];

	memset(sub, 0, sizeof(sub));
	EXPECT(!gsc_group_init(&sub[0], &group[0]) && !gsc_group_init(&sub[1], &group[0]));
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "66"));
	EXPECT(!store(&sub[1], GSC_FILE_CAPSM_MAX, "16.5"));
	EXPECT(!gsc_client_attach(&client[0], &sub[0], OWN, 0, clock_ns));
	EXPECT(!gsc_client_attach(&client[1], &sub[1], OWN, 0, clock_ns));
	EXPECT(!gsc_client_attach(&client[2], &group[2], OWN, 0, clock_ns));
	checked();
	EXPECT(client[0].arb.share == GSCHED_SHARE_ALL / 2 &&
	       client[0].arb.flags == (ALONE | REPORT));
	EXPECT(client[1].arb.share == GSCHED_SHARE_ALL / 8 &&
	       client[1].arb.flags == (ALONE | REPORT));
	EXPECT(client[2].arb.share == GSCHED_SHARE_ALL && client[2].arb.flags == ALONE);
	report(0, GSCHED_ACTIVITY_BUSY);
	EXPECT(client[0].arb.share == GSCHED_SHARE_ALL / 2);
	report(1, GSCHED_ACTIVITY_WAITING);
	EXPECT(client[0].arb.share == GSCHED_SHARE_ALL / 4 &&
	       client[1].arb.share == GSCHED_SHARE_ALL / 8);
	report(1, GSCHED_ACTIVITY_IDLE);
	EXPECT(client[0].arb.share == GSCHED_SHARE_ALL / 2);
	/* without a max there is nothing to report for */
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "max"));
	EXPECT(client[0].arb.share == GSCHED_SHARE_ALL && client[0].arb.flags == ALONE &&
	       client[0].activity == GSCHED_ACTIVITY_IDLE);
	for (int c = 0; c < 2; c++)
		leave(c);
	EXPECT(!gsc_group_exit(&sub[0]) && !gsc_group_exit(&sub[1]));
}

/* The band lives in one of its members: with tasks in it, that one leaves */
static void band_outlives_the_member_it_lives_in(void)
{
	join(0, CLIENT, 7);
	join(1, CLIENT, 7);
	join(2, CLIENT, 7);
	join(3, OWN, 0);
	EXPECT(client[2].band == &client[0].own_band);
	for (int c = 0; c < 3; c++)
		EXPECT(submit(c, 0, BLOCK, 44) == 0);
	leave(0);
	EXPECT(client[2].band == client[1].band);
	EXPECT(client[1].band == &client[2].own_band && dev.n_bands == 2);
	EXPECT_WINDOW(task(1, 0), 44);
	EXPECT_WINDOW(task(2, 0), 44);
	EXPECT(submit(1, 1, BLOCK, 100000) == 0);
	join(0, CLIENT, 7);
	EXPECT(client[0].band == &client[2].own_band);
	leave(2);
	EXPECT(client[0].band == client[1].band && client[1].band == &client[0].own_band);
	leave(1);
	EXPECT(client[0].band == &client[0].own_band);
	leave(0);
	EXPECT(dev.n_bands == 1);
}

/* A client that moves takes the attributes of its band with it */
static void move_changes_the_band(void)
{
	EXPECT(!store(&group[2], GSC_FILE_GPU_PRIORITY, "50"));
	processes(2, NULL);
	EXPECT_SLICE(1, 2048);
	gsc_client_move(&client[1], &group[2], clock_ns);
	checked();
	EXPECT_SLICE(0, 1);
	EXPECT_SLICE(1, 1000000);
	gsc_client_move(&client[1], &group[0], clock_ns);
	checked();
	/* two bands of one group, each with half of its weight */
	EXPECT(client[0].band->weight == client[1].band->weight &&
	       client[0].band->weight == 50 * GSC_BAND_WEIGHT_SCALE);
	EXPECT_SLICE(0, 2048);
}

static bool says(int c, const char *part)
{
	char text[256];
	int len = gsc_band_why(client[c].band, text, sizeof(text));

	if (len == (int)strlen(text) && strstr(text, part))
		return true;
	printf("# \"%s\" does not say \"%s\"\n", text, part);
	return false;
}

static bool is_called(int c, const char *name)
{
	char text[GSC_BAND_NAME_SIZE];

	gsc_band_name(client[c].band, text, sizeof(text));
	if (!strcmp(text, name))
		return true;
	printf("# \"%s\", not \"%s\"\n", text, name);
	return false;
}

/*
 * After gpu.band, the MPS server, what its clients say of their channel group, or the process: in
 * this order
 */
static void names(void)
{
	char small[4];

	for (int c = 0; c < 5; c++)
		client[c].pid = 100 + (u32)c;
	join(0, OWN, 0);
	join(1, CLIENT, 7);
	join(2, CLIENT, 0);
	EXPECT(is_called(0, "pid-100") && is_called(1, "mps-00000007") && is_called(2, "mps"));
	join(3, SERVER, 7);
	EXPECT(is_called(1, "mps-103") && is_called(3, "mps-103"));
	EXPECT(!store(&group[4], GSC_FILE_GPU_BAND, "inference"));
	join(4, CLIENT, 7);
	EXPECT(is_called(1, "inference") && is_called(0, "pid-100"));
	EXPECT(gsc_band_name(client[4].band, small, sizeof(small)) == 3 && !strcmp(small, "inf"));
}

static void why(void)
{
	char small[8];

	join(0, OWN, 0);
	EXPECT(says(0, "the only band"));
	EXPECT(gsc_band_why(client[0].band, small, sizeof(small)) == 7 &&
	       !strcmp(small, "the onl"));
	join(1, OWN, 0);
	EXPECT(says(0, "equals: shares the time by weight with 1 other, slice 2048 us"));
	EXPECT(!store(&group[0], GSC_FILE_GPU_PRIORITY, "50"));
	EXPECT(says(0, "top band: runs whole until it is idle") &&
	       says(1, "gives way at once: slice 1 us"));
	EXPECT(!store(&group[1], GSC_FILE_CAPSM_MIN, "33"));
	EXPECT(says(0, "slice 6000 us, bounded by capsm.min") &&
	       says(1, "capsm.min keeps it a part of the time: slice 2000 us"));
	EXPECT(!store(&group[1], GSC_FILE_CAPSM_MIN, "0"));
	join(2, CLIENT, 7);
	EXPECT(says(1, "takes turns with 1 other") &&
	       says(2, "the driver's slice, since its MPS server is not attached"));
	report(1, GSCHED_ACTIVITY_BUSY);
	report(2, GSCHED_ACTIVITY_WAITING);
	EXPECT(says(1, "has the turn") && says(2, "waits for its turn"));
	clock_ns = dev.timer;
	gsc_tick(&dev, clock_ns);
	EXPECT(says(1, "its work drains"));
	report_slice(1, 0, EOPNOTSUPP);
	EXPECT(says(1, "the driver's slice, since its program cannot set one (errno 95); asked for: gives way at once"));
	report_slice(0, 0, EIO);
	EXPECT(says(1, "no channel group was seen (another driver?)") &&
	       says(0, "the driver refused it (errno 5)"));
	EXPECT(says(2, "the slice of another band cannot be set"));
	EXPECT(!gsc_device_set_mode(&dev, GSCHED_MODE_TEMPORAL, clock_ns));
	EXPECT(says(0, "mode temporal is set"));
	EXPECT(!gsc_device_set_mode(&dev, GSCHED_MODE_SPATIAL, clock_ns));
	EXPECT(says(0, "mode spatial is set"));
}

static void forced_modes_regroup(void)
{
	join(0, CLIENT, 7);
	join(1, CLIENT, 7);
	join(2, OWN, 0);
	for (int c = 0; c < 3; c++)
		EXPECT(submit(c, 0, BLOCK, 66) == 0);
	EXPECT_WINDOW(task(2, 0), 66);
	EXPECT(!gsc_device_set_mode(&dev, GSCHED_MODE_SPATIAL, clock_ns));
	checked();
	for (int c = 0; c < 3; c++)
		EXPECT(task(c, 0)->window == 44 * SM);
	EXPECT(!gsc_device_set_mode(&dev, GSCHED_MODE_TEMPORAL, clock_ns));
	checked();
	EXPECT(dev.n_bands == 3);
	EXPECT(task(0, 0)->window == 66 * SM);
	EXPECT(!task(1, 0)->window && !task(2, 0)->window);
	EXPECT(!gsc_device_set_mode(&dev, -1, clock_ns));
	checked();
	for (int c = 0; c < 3; c++)
		EXPECT(task(c, 0)->window == 66 * SM);
}

static void band_names(void)
{
	static const char *const bad[] = { "A", "a b", "a.b", "a/b", "a\n\n", "\n\n", " ",
					   "abcdefghijabcdefghijabcdefghij12" };
	static struct gsc_group sub;

	memset(&sub, 0, sizeof(sub));
	EXPECT(!gsc_group_init(&sub, &group[0]));
	EXPECT(shows(&sub, GSC_FILE_GPU_BAND, "\n"));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		EXPECT(store(&group[0], GSC_FILE_GPU_BAND, bad[i]) == -EINVAL);
	EXPECT(!store(&group[0], GSC_FILE_GPU_BAND, "abcdefghijabcdefghijabcdefg_-01\n"));
	EXPECT(!store(&group[0], GSC_FILE_GPU_BAND, "serving"));
	EXPECT(shows(&group[0], GSC_FILE_GPU_BAND, "serving\n") &&
	       shows(&sub, GSC_FILE_GPU_BAND, "serving\n"));
	EXPECT(!store(&sub, GSC_FILE_GPU_BAND, "other"));
	EXPECT(shows(&sub, GSC_FILE_GPU_BAND, "other\n"));
	EXPECT(!store(&sub, GSC_FILE_GPU_BAND, "\n") && !store(&sub, GSC_FILE_GPU_BAND, ""));
	EXPECT(shows(&sub, GSC_FILE_GPU_BAND, "serving\n"));
	EXPECT(!gsc_client_attach(&client[0], &sub, CLIENT, 0, clock_ns));
	EXPECT(store(&sub, GSC_FILE_GPU_BAND, "x") == -EBUSY &&
	       store(&group[0], GSC_FILE_GPU_BAND, "x") == -EBUSY);
	EXPECT(store(&dev.root, GSC_FILE_GPU_BAND, "x") == -EBUSY &&
	       !store(&group[1], GSC_FILE_GPU_BAND, "x"));
	EXPECT(!store(&group[0], GSC_FILE_GPU_BAND, "serving"));
	EXPECT(shows(&group[0], GSC_FILE_GPU_BAND, "serving\n"));
	leave(0);
	EXPECT(!store(&group[0], GSC_FILE_GPU_BAND, ""));
	EXPECT(!gsc_group_exit(&sub));
}

static void numbers_and_parameters(void)
{
	char buf[16];

	EXPECT(!store(&group[0], GSC_FILE_GPU_LATENCY, "10000000") &&
	       shows(&group[0], GSC_FILE_GPU_LATENCY, "10000000\n"));
	EXPECT(store(&group[0], GSC_FILE_GPU_LATENCY, "10000001") == -EINVAL &&
	       store(&group[0], GSC_FILE_GPU_LATENCY, "") == -EINVAL);
	EXPECT(gsc_param_find("switch_us") == GSC_PARAM_SWITCH_US &&
	       gsc_param_find("max_overhead") == GSC_PARAM_MAX_OVERHEAD);
	EXPECT(gsc_param_find("switch") == -ENOENT && gsc_param_find("") == -ENOENT);
	EXPECT(gsc_device_show_param(&dev, GSC_PARAM_SWITCH_US, buf, sizeof(buf)) == 4 &&
	       !strcmp(buf, "190\n"));
	EXPECT(gsc_device_show_param(&dev, GSC_PARAM_MAX_OVERHEAD, buf, sizeof(buf)) == 3 &&
	       !strcmp(buf, "50\n"));
	EXPECT(gsc_device_set_param(&dev, GSC_PARAM_SWITCH_US, "9", clock_ns) == -EINVAL);
	EXPECT(gsc_device_set_param(&dev, GSC_PARAM_SWITCH_US, "10001", clock_ns) == -EINVAL);
	EXPECT(gsc_device_set_param(&dev, GSC_PARAM_MAX_OVERHEAD, "4", clock_ns) == -EINVAL);
	EXPECT(gsc_device_set_param(&dev, GSC_PARAM_MAX_OVERHEAD, "501", clock_ns) == -EINVAL);
	EXPECT(gsc_device_set_param(&dev, GSC_PARAM_MAX_OVERHEAD, "5 ", clock_ns) == -EINVAL);
	EXPECT(gsc_device_set_param(&dev, GSC_PARAM_COUNT, "50", clock_ns) == -EINVAL);
	EXPECT(dev.param[GSC_PARAM_SWITCH_US] == 190 && dev.param[GSC_PARAM_MAX_OVERHEAD] == 50);
	EXPECT(!gsc_device_set_param(&dev, GSC_PARAM_SWITCH_US, "10000", clock_ns) &&
	       dev.param[GSC_PARAM_SWITCH_US] == 10000);
	EXPECT(!gsc_device_set_param(&dev, GSC_PARAM_MAX_OVERHEAD, "5", clock_ns));
	/* no slice is longer than that of a band that runs whole */
	EXPECT(!gsc_device_set_policy(&dev, "ffs", clock_ns));
	processes(2, NULL);
	EXPECT_SLICE(0, 1000000);
	EXPECT(gsc_device_show_param(&dev, GSC_PARAM_COUNT, buf, sizeof(buf)) == -EINVAL);
}

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	TEST(who_shares_a_band), TEST(modes), TEST(each_band_has_the_device),
	TEST(leases_and_windows_are_of_the_band),
	TEST(server_owns_the_slice_and_nothing_else), TEST(refused_slices_are_temporal),
	TEST(a_stranger_without_slices_changes_no_mode),
	TEST(temporal_turns_end), TEST(temporal_one_band_at_a_time),
	TEST(equals_without_windows_pass), TEST(windows_of_those_who_come_and_go),
	TEST(others_do_not_pass),
	TEST(reports_are_checked), TEST(alone_has_the_drivers_slice),
	TEST(top_runs_whole_and_the_lower_gives_way),
	TEST(several_tops_have_the_drivers_slice), TEST(equals_have_the_drivers_slice_by_weight),
	TEST(ffs_shares_an_epoch_by_weight),
	TEST(weight_is_of_the_groups_of_a_band), TEST(alone_is_the_only_client_of_a_band),
	TEST(a_band_is_private_while_slices_keep_it_apart),
	TEST(latency_target_bounds_the_others), TEST(several_latency_targets),
	TEST(latency_target_beside_the_shortest_slice),
	TEST(two_busy_lower_bands_get_time), TEST(promised_capacity_bounds_the_top),
	TEST(the_hardware_serves_prioritised_streams),
	TEST(windows_are_over_sooner_where_the_hardware_makes_room),
	TEST(short_blocks_are_waited_for),
	TEST(one_with_long_blocks_is_enough), TEST(ffs_knows_no_priorities),
	TEST(ffs_shares_a_band_by_weight), TEST(share_of_the_time),
	TEST(band_outlives_the_member_it_lives_in), TEST(move_changes_the_band),
	TEST(names), TEST(why),
	TEST(forced_modes_regroup), TEST(band_names), TEST(numbers_and_parameters),
};

int main(void)
{
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		good = true;
		setup();
		tests[i].run();
		ok(good, "%s", tests[i].name);
	}
	return done();
}
