// SPDX-License-Identifier: GPL-2.0-only
/*
 * What one user can take from others: shares by user, limits, tasks that nobody completes. One
 * behaviour a test.
 */
#include "unit.h"

#define CROWD	99

static struct gsc_client crowd[CROWD];

/* @n more clients of @user in @g, which all want the device */
static void hog(int n, struct gsc_group *g, u32 user, u32 flags)
{
	struct gsched_submit req = make_submit(0, 1, BLOCK, 100000);

	memset(crowd, 0, sizeof(crowd));
	for (int i = 0; i < n; i++) {
		crowd[i].user = user;
		EXPECT(!gsc_client_attach(&crowd[i], g, flags, 0, clock_ns));
		gsc_submit(&crowd[i], &req, clock_ns);
	}
	checked();
}

static u32 limit(const struct gsc_client *c)
{
	return task_at(c, 0)->window;
}

static u32 crowd_limit(int n)
{
	u32 sum = 0;

	for (int i = 0; i < n; i++)
		sum += limit(&crowd[i]);
	return sum;
}

static void descriptors_are_no_shares(void)
{
	attach(1);
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	hog(CROWD, &dev.root, 1000, GSCHED_ATTACH_MPS);
	EXPECT_WINDOW(task(0, 0), 66);
	EXPECT(crowd_limit(CROWD) == 66 * SM);
	/* another user in the root group: each has a third */
	client[1].user = 1001;
	EXPECT(!gsc_client_attach(&client[1], &dev.root, GSCHED_ATTACH_MPS, 0, clock_ns));
	EXPECT(submit(1, 0, BLOCK, 100000) == 0);
	EXPECT(limit(&client[0]) == 44 * SM && limit(&client[1]) == 44 * SM &&
	       crowd_limit(CROWD) == 44 * SM);
	/* a second client of that user has a half of the third, and leaves it again */
	client[2].user = 1001;
	EXPECT(!gsc_client_attach(&client[2], &dev.root, GSCHED_ATTACH_MPS, 0, clock_ns));
	EXPECT(submit(2, 0, BLOCK, 100000) == 0);
	EXPECT(limit(&client[0]) == 44 * SM && limit(&client[1]) == 22 * SM &&
	       limit(&client[2]) == 22 * SM);
	gsc_client_detach(&client[1], clock_ns);
	checked();
	EXPECT(limit(&client[0]) == 44 * SM && limit(&client[2]) == 44 * SM);
	/* what one client of a user leaves goes to the user's others first */
	for (int i = 0; i < CROWD - 2; i++)
		gsc_client_detach(&crowd[i], clock_ns);
	checked();
	EXPECT(limit(&crowd[CROWD - 1]) == 22 * SM && limit(&client[0]) == 44 * SM);
	gsc_client_detach(&crowd[CROWD - 1], clock_ns);
	checked();
	EXPECT(limit(&crowd[CROWD - 2]) == 44 * SM && limit(&client[0]) == 44 * SM);
}

static void users_share_a_group(void)
{
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "90"));
	hog(8, &group[0], 1000, GSCHED_ATTACH_MPS);
	client[0].user = 1001;
	attach(1);
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT(limit(&client[0]) == 45 * SM && crowd_limit(8) == 45 * SM);
	/* each group counts for itself: the user's other clients are elsewhere */
	gsc_client_move(&crowd[0], &group[1], clock_ns);
	checked();
	EXPECT(limit(&crowd[0]) == 66 * SM && limit(&client[0]) == 33 * SM);
	EXPECT(shows(&group[0], GSC_FILE_CAPSM_CURRENT, "66\n") &&
	       shows(&group[1], GSC_FILE_CAPSM_CURRENT, "66\n"));
}

/* The same in time: a band's weight is what its clients are of their users' */
static void bands_weigh_by_user(void)
{
	const u32 own = GSCHED_ATTACH_SLICE;
	u64 sum = 0;

	EXPECT(!gsc_client_attach(&client[0], &group[0], own, 0, clock_ns));
	hog(10, &dev.root, 1000, own);
	client[1].user = 1001;
	EXPECT(!gsc_client_attach(&client[1], &dev.root, own, 0, clock_ns));
	checked();
	for (int i = 0; i < 10; i++)
		sum += crowd[i].band->weight;
	EXPECT(sum == 100 * GSC_BAND_WEIGHT_SCALE);
	EXPECT(client[0].band->weight == sum && client[1].band->weight == sum);
	/* a group's weight is its users' together */
	gsc_client_move(&client[1], &group[0], clock_ns);
	checked();
	EXPECT(client[0].band->weight == sum / 2 && client[1].band->weight == sum / 2);
}

static void report(struct gsc_client *c, u32 activity)
{
	struct gsched_report req = {
		.size = sizeof(req), .flags = GSCHED_REPORT_ACTIVITY, .activity = activity,
	};

	if (c->activity == activity)
		return;
	EXPECT(!gsc_client_report(c, &req, clock_ns));
	checked();
}

/* One that has an open gate is busy, the others wait. Returns whether its gate is open */
static bool follow_gate(struct gsc_client *c)
{
	bool open = !(c->arb.flags & GSCHED_ARB_CLOSED);

	report(c, open ? GSCHED_ACTIVITY_BUSY : GSCHED_ACTIVITY_WAITING);
	return open;
}

/*
 * Below somebody important bands take turns: by user likewise, however short a turn would have to
 * be
 */
static void turns_go_by_user(void)
{
	const int n = 50;
	u64 one = 0, many = 0, before;

	EXPECT(!store(&group[0], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT(!gsc_client_attach(&client[0], &group[0], GSCHED_ATTACH_SLICE, 0, clock_ns));
	hog(n, &dev.root, 1000, GSCHED_ATTACH_SLICE);
	client[1].user = 1001;
	EXPECT(!gsc_client_attach(&client[1], &dev.root, GSCHED_ATTACH_SLICE, 0, clock_ns));
	for (int i = 0; i < n; i++)
		report(&crowd[i], GSCHED_ACTIVITY_WAITING);
	report(&client[1], GSCHED_ACTIVITY_WAITING);
	for (int step = 0; step < 2000; step++) {
		bool open, any = false;

		/* the first time those whose gate was closed drain */
		for (int twice = 0; twice < 2; twice++) {
			open = follow_gate(&client[1]);
			for (int i = 0; i < n; i++)
				any = follow_gate(&crowd[i]) || (i && any);
		}
		EXPECT(!(open && any));
		before = clock_ns;
		clock_ns = dev.timer;
		one += open ? clock_ns - before : 0;
		many += any ? clock_ns - before : 0;
		gsc_tick(&dev, clock_ns);
	}
	EXPECT(one > 1000 * MS && one < many * 11 / 10 && many < one * 11 / 10);
}

static void room_for_others(void)
{
	EXPECT(gsc_group_room(&group[2], 1000, false, 8) == 0);
	hog(4, &dev.root, 1000, GSCHED_ATTACH_MPS);
	EXPECT(gsc_group_room(&group[2], 1000, false, 8) == -EDQUOT);
	EXPECT(gsc_group_room(&group[2], 1000, true, 8) == 0);
	EXPECT(gsc_group_room(&group[2], 1001, false, 8) == 0);
	EXPECT(gsc_group_room(&group[2], 1001, true, 4) == -ENOSPC);
	EXPECT(gsc_group_room(&group[2], 1001, false, 4) == -ENOSPC);
	EXPECT(gsc_group_room(&group[2], 1001, false, 0) == -ENOSPC);
	EXPECT(group[2].stats.events[GSC_EVENT_REFUSED] == 4 &&
	       dev.root.stats.events[GSC_EVENT_REFUSED] == 4);
}

static void places_follow_memory(void)
{
	const u64 gib = 1ULL << 30;
	const u32 each = 40 << 10;

	EXPECT(gsc_clients_default(8 * gib, each) == 204);
	EXPECT(gsc_clients_default(16 * gib, each) == 409);
	EXPECT(gsc_clients_default(16 * gib, 2 * each) == 204);
	EXPECT(gsc_clients_default(0, each) == GSC_CLIENTS_LEAST);
	EXPECT(gsc_clients_default(gib, each) == GSC_CLIENTS_LEAST);
	EXPECT(gsc_clients_default(64 * gib, each) == GSC_CLIENTS_MOST);
	EXPECT(gsc_clients_default(U64_MAX, 1) == GSC_CLIENTS_MOST);
}

/* An opaque kernel on the whole device that is never completed: equals wait for half a second */
static void who_never_completes_is_overdue(void)
{
	attach(3);
	EXPECT(submit(0, 0, LAUNCH, 100000) == 0);
	EXPECT(submit(0, 1, BLOCK, 100000) == 0);
	clock_ns += 10000 * MS;
	EXPECT(submit(1, 0, BLOCK, 100000) == QUEUED);
	clock_ns += 100 * MS;
	EXPECT(submit(2, 0, BLOCK, 100000) == QUEUED);
	EXPECT(dev.timer == clock_ns + 400 * MS);
	clock_ns += 399 * MS;
	gsc_tick(&dev, clock_ns);
	EXPECT(task(1, 0)->state == GSC_TASK_WAITING);
	clock_ns += MS;
	gsc_tick(&dev, clock_ns);
	checked();
	EXPECT_WINDOW(task(1, 0), 66);
	EXPECT_WINDOW(task(2, 0), 66);
	EXPECT(dev.timer == clock_ns + 20 * MS);
	/* its client has no more until it ends after all */
	EXPECT(!task(0, 1)->window);
	EXPECT(submit(0, 2, BLOCK, 8) == QUEUED);
	EXPECT(complete(0, 0) == 0);
	EXPECT(task(0, 1)->window == 44 * SM && task(1, 0)->window == 44 * SM);
	/* the slot's next task is none */
	EXPECT(submit(0, 0, LAUNCH, 100000) == 0 && !task(0, 0)->overdue);
}

/*
 * It may be a kernel that polls what a later launch of its program writes: that is granted after
 * all
 */
static void who_never_completes_may_wait_for_what_follows(void)
{
	attach(2);
	EXPECT(submit(0, 0, LAUNCH, 100000) == 0);
	EXPECT(submit(1, 0, LAUNCH, 100000) == QUEUED);
	clock_ns += 500 * MS;
	gsc_tick(&dev, clock_ns);
	EXPECT(task(0, 0)->overdue && task(1, 0)->state == GSC_TASK_RUNNING);
	/* an equal again, after half a second */
	EXPECT(submit(0, 1, LAUNCH, 8) == QUEUED);
	clock_ns += 499 * MS;
	gsc_tick(&dev, clock_ns);
	EXPECT(task(0, 1)->state == GSC_TASK_WAITING);
	clock_ns += MS;
	gsc_tick(&dev, clock_ns);
	checked();
	EXPECT(task(0, 0)->chained && task(0, 1)->state == GSC_TASK_RUNNING);
	/* the equal's kernel may wait for this client's on the device: it holds nobody up either */
	EXPECT(task(1, 0)->overdue);
	EXPECT(submit(0, 2, LAUNCH, 8) == 0);
	EXPECT(submit(0, 3, BLOCK, 100000) == 0 && task(0, 3)->window == 132 * SM);
	EXPECT(complete(0, 0) == 0 && complete(0, 1) == 0 && complete(0, 2) == 0 &&
	       complete(0, 3) == 0);
	EXPECT(submit(0, 0, LAUNCH, 8) == 0 && !task(0, 0)->chained);
}

/* Beside one that is more important and never idle, too: it shares what the first one keeps */
static void who_waits_for_what_follows_goes_on_below_others(void)
{
	attach(2);
	EXPECT(!store(&group[0], GSC_FILE_GPU_PRIORITY, "1"));
	EXPECT(submit(1, 0, LAUNCH, 8) == 0);
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT(submit(1, 1, LAUNCH, 100000) == QUEUED);
	clock_ns += 500 * MS;
	gsc_tick(&dev, clock_ns);
	checked();
	EXPECT(task(1, 1)->state == GSC_TASK_RUNNING && task(1, 1)->window == 8 * SM);
	EXPECT(submit(1, 2, LAUNCH, 1) == 0);
	/* and no more once that has ended */
	EXPECT(complete(1, 0) == 0 && complete(1, 1) == 0 && complete(1, 2) == 0);
	EXPECT(submit(1, 3, LAUNCH, 1) == QUEUED);
}

/*
 * More important, and usually short: it may be unable to begin, as kernels below fill the SMs that
 * wait for those that it keeps away
 */
static void who_takes_a_hundred_times_as_long_is_overdue(void)
{
	for (int usual = 1; usual >= 0; usual--) {
		setup();
		attach(2);
		EXPECT(!store(&group[0], GSC_FILE_GPU_PRIORITY, "1"));
		EXPECT(submit(1, 0, LAUNCH, 132) == 0);
		EXPECT(submit(1, 1, BLOCK, 100000) == 0);
		EXPECT(submit_block_ns(0, 0, LAUNCH, 100000, usual * 19 * MS, 0) == 0);
		EXPECT(!task(1, 1)->window);
		clock_ns += 1999 * MS;
		gsc_tick(&dev, clock_ns);
		EXPECT(!task(0, 0)->overdue && !task(1, 1)->window);
		clock_ns += MS;
		gsc_tick(&dev, clock_ns);
		checked();
		EXPECT(task(0, 0)->overdue == usual);
		EXPECT(!usual == !task(1, 1)->window);
		EXPECT(complete(0, 0) == 0);
		EXPECT_WINDOW(task(1, 1), 132);
	}
}

static void lower_ranks_wait_for_an_opaque_task(void)
{
	attach(2);
	EXPECT(!store(&group[0], GSC_FILE_GPU_PRIORITY, "1"));
	EXPECT(submit(0, 0, LAUNCH, 100000) == 0);
	EXPECT(submit(1, 0, BLOCK, 8) == QUEUED);
	EXPECT(dev.timer == dev.pass_timer);
	clock_ns += 10000 * MS;
	gsc_tick(&dev, clock_ns);
	EXPECT(task(1, 0)->state == GSC_TASK_WAITING);
	/* it is an equal from here on */
	EXPECT(!store(&group[1], GSC_FILE_GPU_PRIORITY, "1"));
	EXPECT(task(1, 0)->state == GSC_TASK_RUNNING);
}

static int client_store(int c, enum gsc_file file, const char *text, bool raise)
{
	int ret = gsc_client_store(&client[c], file, text, raise, clock_ns);

	gsc_commit(&dev, clock_ns);
	checked();
	return ret;
}

static bool client_shows(int c, enum gsc_file file, const char *text)
{
	char buf[64];
	int len = gsc_client_show(&client[c], file, buf, sizeof(buf));

	return len == (int)strlen(text) && !strcmp(buf, text);
}

static void a_client_has_a_max(void)
{
	attach(2);
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "50"));
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT(submit(1, 0, BLOCK, 100000) == 0);
	EXPECT(client_shows(0, GSC_FILE_CAPSM_MAX, "max\n") && limit(&client[0]) == 50 * SM);
	EXPECT(client_store(0, GSC_FILE_CAPSM_MAX, "10", false) == 0);
	EXPECT(limit(&client[0]) == 10 * SM && limit(&client[1]) == 122 * SM);
	EXPECT(client[0].arb.share == GSCHED_SHARE_ALL * 10ull / SMS);
	EXPECT(client_shows(0, GSC_FILE_CAPSM_MAX, "10\n") &&
	       shows(&group[0], GSC_FILE_CAPSM_MAX, "50\n"));
	/* the owner goes down only; nobody goes above the group's */
	EXPECT(client_store(0, GSC_FILE_CAPSM_MAX, "11", false) == -EPERM);
	EXPECT(client_store(0, GSC_FILE_CAPSM_MAX, "max", false) == -EPERM);
	EXPECT(client_store(0, GSC_FILE_CAPSM_MAX, "9.5", false) == 0);
	EXPECT(client_store(0, GSC_FILE_CAPSM_MAX, "100", true) == 0);
	EXPECT(client_shows(0, GSC_FILE_CAPSM_MAX, "100\n") && limit(&client[0]) == 50 * SM);
	EXPECT(client_store(0, GSC_FILE_CAPSM_MAX, "0", true) == -EINVAL);
	EXPECT(client_store(0, GSC_FILE_CAPSM_MAX, "133", true) == -EINVAL);
	EXPECT(client_store(0, GSC_FILE_CAPSM_MAX, "", true) == -EINVAL);
	/* it goes where the client goes, and ends with it */
	EXPECT(client_store(0, GSC_FILE_CAPSM_MAX, "7", true) == 0);
	gsc_client_move(&client[0], &group[2], clock_ns);
	checked();
	EXPECT(limit(&client[0]) == 7 * SM);
	gsc_client_detach(&client[0], clock_ns);
	EXPECT(!gsc_client_attach(&client[0], &group[0], GSCHED_ATTACH_MPS, 0, clock_ns));
	EXPECT(client_shows(0, GSC_FILE_CAPSM_MAX, "max\n"));
}

static void a_client_has_a_priority(void)
{
	attach(2);
	EXPECT(!store(&group[0], GSC_FILE_GPU_PRIORITY, "50"));
	EXPECT(!store(&group[1], GSC_FILE_GPU_PRIORITY, "20"));
	EXPECT(client_shows(0, GSC_FILE_GPU_PRIORITY, "max\n"));
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT(submit(1, 0, BLOCK, 100000) == QUEUED);
	EXPECT(client_store(0, GSC_FILE_GPU_PRIORITY, "20\n", false) == 0);
	EXPECT(limit(&client[0]) == 66 * SM && limit(&client[1]) == 66 * SM);
	EXPECT(client_store(0, GSC_FILE_GPU_PRIORITY, "21", false) == -EPERM);
	EXPECT(client_store(0, GSC_FILE_GPU_PRIORITY, "max", false) == -EPERM);
	EXPECT(client_store(0, GSC_FILE_GPU_PRIORITY, "10", false) == 0);
	EXPECT(limit(&client[0]) == 0 && limit(&client[1]) == SMS * SM);
	/* above the group's it counts for the group's */
	EXPECT(client_store(1, GSC_FILE_GPU_PRIORITY, "99", true) == 0);
	EXPECT(client[1].group->priority == 20 && client_shows(1, GSC_FILE_GPU_PRIORITY, "99\n"));
	EXPECT(!store(&group[1], GSC_FILE_GPU_PRIORITY, "99"));
	EXPECT(client[1].group->priority == 99);
	EXPECT(!store(&group[0], GSC_FILE_GPU_PRIORITY, "5"));
	EXPECT(client[0].group->priority == 5);
	EXPECT(client_store(0, GSC_FILE_GPU_PRIORITY, "100", true) == -EINVAL);
	EXPECT(client_store(0, GSC_FILE_GPU_PRIORITY, "maxi", true) == -EINVAL);
	EXPECT(client_store(0, GSC_FILE_GPU_BAND, "x", true) == -ENOENT);
	EXPECT(client_store(0, GSC_FILE_CAPSM_MIN, "1", true) == -ENOENT);
}

static void a_client_has_a_weight(void)
{
	hog(2, &group[0], 1000, GSCHED_ATTACH_MPS);
	client[0].user = 1001;
	attach(1);
	EXPECT(submit(0, 0, BLOCK, 100000) == 0);
	EXPECT(limit(&client[0]) == 66 * SM && limit(&crowd[0]) == 33 * SM);
	/* among a user's clients */
	EXPECT(!gsc_client_store(&crowd[1], GSC_FILE_GPU_WEIGHT, "50", false, clock_ns));
	gsc_commit(&dev, clock_ns);
	checked();
	EXPECT(limit(&client[0]) == 66 * SM && limit(&crowd[0]) == 44 * SM &&
	       limit(&crowd[1]) == 22 * SM);
	/* a user weighs as much as the heaviest client */
	EXPECT(client_store(0, GSC_FILE_GPU_WEIGHT, "50", false) == 0);
	EXPECT(limit(&client[0]) == 44 * SM && limit(&crowd[0]) + limit(&crowd[1]) == 88 * SM);
	EXPECT(client_store(0, GSC_FILE_GPU_WEIGHT, "51", false) == -EPERM);
	EXPECT(client_store(0, GSC_FILE_GPU_WEIGHT, "200", true) == 0);
	EXPECT(limit(&client[0]) == 88 * SM);
	EXPECT(client_store(0, GSC_FILE_GPU_WEIGHT, "0", true) == -EINVAL);
}

static void no_way_into_the_band_of_another(void)
{
	client[1].user = client[2].user = 1001;
	for (int c = 0; c < 3; c++)
		EXPECT(!gsc_client_attach(&client[c], &group[c], GSCHED_ATTACH_MPS, 7, clock_ns));
	gsc_commit(&dev, clock_ns);
	checked();
	EXPECT(client[0].band != client[1].band && client[1].band == client[2].band);
	/* nor when all bands are made anew */
	EXPECT(!gsc_device_set_mode(&dev, GSCHED_MODE_SPATIAL, clock_ns));
	EXPECT(client[0].band == client[1].band);
	EXPECT(!gsc_device_set_mode(&dev, -1, clock_ns));
	gsc_commit(&dev, clock_ns);
	checked();
	EXPECT(client[0].band != client[1].band && client[1].band == client[2].band);
}

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	TEST(descriptors_are_no_shares), TEST(users_share_a_group), TEST(bands_weigh_by_user),
	TEST(turns_go_by_user), TEST(room_for_others), TEST(places_follow_memory),
	TEST(who_never_completes_is_overdue),
	TEST(who_takes_a_hundred_times_as_long_is_overdue),
	TEST(who_never_completes_may_wait_for_what_follows),
	TEST(who_waits_for_what_follows_goes_on_below_others),
	TEST(lower_ranks_wait_for_an_opaque_task),
	TEST(a_client_has_a_max), TEST(a_client_has_a_priority), TEST(a_client_has_a_weight),
	TEST(no_way_into_the_band_of_another),
};

int main(void)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(tests); i++) {
		good = true;
		setup();
		tests[i].run();
		ok(good, "%s", tests[i].name);
	}
	return done();
}
