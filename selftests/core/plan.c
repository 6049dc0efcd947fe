// SPDX-License-Identifier: GPL-2.0-only
/*
 * Policy plan: allocations that somebody else computed, what is refused, and what comes after them.
 */
#include "unit.h"

/* "0" to "7": group[i]; "/": the root; "s": below group[7] */
static struct gsc_group sub;

static struct gsc_group *find(void *arg, const char *path, size_t len)
{
	EXPECT(arg == &dev);
	if (len != 1)
		return NULL;
	if (*path == '/')
		return &dev.root;
	if (*path == 's')
		return &sub;
	return *path >= '0' && *path < '8' ? &group[*path - '0'] : NULL;
}

static int plan(const char *text)
{
	int ret = gsc_device_plan(&dev, text, find, &dev, clock_ns);

	gsc_commit(&dev, clock_ns);
	checked();
	return ret;
}

static bool told(const char *text)
{
	char buf[128];

	if (gsc_plan_show(&dev, buf, sizeof(buf)) == (int)strlen(text) && !strcmp(buf, text))
		return true;
	printf("# \"%s\", not \"%s\"\n", buf, text);
	return false;
}

static u32 sms_of(int c)
{
	return client[c].window / SM;
}

static void start(void)
{
	memset(&sub, 0, sizeof(sub));
	attach(3);
	EXPECT(!gsc_group_init(&sub, &group[7]));
	for (int c = 0; c < 3; c++)
		EXPECT(submit_block_ns(c, 0, BLOCK, 100000, 0, 100 * US) == 0);
}

/* All at once: one decision, and each group what it was given */
static void in_one_commit(void)
{
	u64 decisions;

	start();
	EXPECT(sms_of(0) == 44 && sms_of(1) == 44 && sms_of(2) == 44 && told("none"));
	decisions = dev.decisions;
	EXPECT(!plan("500 0=20 1=100.5\n"));
	EXPECT(dev.decisions == decisions + 1 && !strcmp(dev.policy->name, "plan"));
	EXPECT(sms_of(0) == 20 && client[1].window % (SM * SMS) % SM == 512 && sms_of(1) == 100 &&
	       sms_of(2) == 11);
	EXPECT(shows(&group[0], GSC_FILE_CAPSM_PLAN, "20\n") &&
	       shows(&group[1], GSC_FILE_CAPSM_PLAN, "100.5\n") &&
	       shows(&group[2], GSC_FILE_CAPSM_PLAN, "none\n"));
	EXPECT(told("2 groups for 500 ms more, then hpf"));
	/*
	 * what one does not use the others do not get while it is another's; the rest is shared by
	 * weight
	 */
	EXPECT(!plan("500 2=100"));
	EXPECT(sms_of(2) == 100 && sms_of(0) == 16 && sms_of(1) == 16);
	EXPECT(shows(&group[0], GSC_FILE_CAPSM_PLAN, "none\n"));
	/* an idle group's part is not wasted, and there at once when it comes */
	EXPECT(!complete(2, 0));
	EXPECT(sms_of(0) == 66 && sms_of(1) == 66);
	EXPECT(!submit_block_ns(2, 0, BLOCK, 100000, 0, 100 * US));
	EXPECT(sms_of(2) == 100);
}

/* A min and a max: what others leave is shared, up to the max */
static void ranges(void)
{
	char text[256];

	start();
	EXPECT(!plan("500 0=20 1=30.5-100 2=40-132"));
	EXPECT(shows(&group[1], GSC_FILE_CAPSM_PLAN, "30.5-100\n") &&
	       shows(&group[2], GSC_FILE_CAPSM_PLAN, "40-132\n"));
	gsc_client_why(&client[1], text, sizeof(text));
	EXPECT(!strcmp(text, "the plan gives its group 31 to 100 of 132 SMs"));
	EXPECT(sms_of(0) == 20 && sms_of(1) == 56 && sms_of(2) == 56);
	EXPECT(!complete(2, 0));
	EXPECT(sms_of(0) == 20 && sms_of(1) == 100);
	EXPECT(!submit_block_ns(2, 0, BLOCK, 100000, 0, 100 * US));
	EXPECT(!plan("500 0=80 1=12-132 2=40-132"));
	EXPECT(sms_of(0) == 80 && sms_of(1) == 12 && sms_of(2) == 40);
}

/* "!": what the plan gives a group is kept for it */
static void kept_free(void)
{
	start();
	EXPECT(!complete(0, 0));
	EXPECT(!plan("60000 0=80 1=20-132 2=30-132"));
	EXPECT(sms_of(1) == 66 && sms_of(2) == 66);
	EXPECT(!plan("60000 0=80! 1=20-132 2=30-132"));
	EXPECT(shows(&group[0], GSC_FILE_CAPSM_PLAN, "80!\n"));
	EXPECT(sms_of(1) == 22 && sms_of(2) == 30);
	EXPECT(!complete(2, 0));
	EXPECT(sms_of(1) == 52);
	EXPECT(!submit_block_ns(0, 0, BLOCK, 100000, 0, 100 * US));
	EXPECT(sms_of(0) == 80 && sms_of(1) == 52);
	EXPECT(!plan("60000 0=80-100! 1=20-132"));
	EXPECT(shows(&group[0], GSC_FILE_CAPSM_PLAN, "80-100!\n"));
	EXPECT(sms_of(0) == 80 && sms_of(1) == 52);
	EXPECT(!complete(0, 0));
	EXPECT(sms_of(1) == 52);
	/* nothing changes for others when it begins or ends, also where the plan gives away all */
	EXPECT(!plan("60000 0=80! 1=52-132"));
	EXPECT(sms_of(1) == 52);
	n_evict = n_grow = 0;
	EXPECT(!submit_block_ns(0, 0, BLOCK, 100000, 0, 100 * US) && !complete(0, 0));
	EXPECT(sms_of(1) == 52 && !n_evict && !n_grow);
	EXPECT(!plan("none"));
	EXPECT(sms_of(1) == 132);
}

/* Beyond what all are given at least, groups with a target come first */
static void targets_first(void)
{
	start();
	EXPECT(!store(&group[1], GSC_FILE_GPU_LATENCY, "1000"));
	EXPECT(!plan("60000 0=20-132 1=0-132"));
	EXPECT(sms_of(0) == 20 && sms_of(1) == 112 && sms_of(2) == 0);
	EXPECT(!plan("60000 1=0-132"));
	EXPECT(sms_of(0) == 0 && sms_of(1) == 132 && sms_of(2) == 0);
	EXPECT(!complete(1, 0));
	EXPECT(sms_of(0) == 66 && sms_of(2) == 66);
	EXPECT(!submit_block_ns(1, 0, BLOCK, 100000, 0, 100 * US));
	EXPECT(!plan("60000 0=0-132 1=0-100.5"));
	EXPECT(shows(&group[1], GSC_FILE_CAPSM_PLAN, "0-100.5\n"));
	EXPECT(client[1].window % (SM * SMS) % SM == 512 && sms_of(1) == 100);
	EXPECT(!store(&group[1], GSC_FILE_GPU_LATENCY, "0"));
	EXPECT(sms_of(0) == 44 && sms_of(1) == 44 && sms_of(2) == 44);
	/* and those below one */
	gsc_client_move(&client[1], &sub, clock_ns);
	EXPECT(!store(&group[7], GSC_FILE_GPU_LATENCY, "1000"));
	EXPECT(!plan("60000 7=0-132"));
	EXPECT(sms_of(0) == 0 && sms_of(1) == 132 && sms_of(2) == 0);
}

static void words(void)
{
	char text[256];

	start();
	EXPECT(!plan("500 0=20"));
	gsc_client_why(&client[0], text, sizeof(text));
	EXPECT(!strcmp(text, "the plan gives its group 20 of 132 SMs"));
	gsc_client_why(&client[1], text, sizeof(text));
	EXPECT(!strcmp(text, "the plan does not name its group: it shares what is left"));
}

/* A group's own limits hold, and policies that set priorities do not count meanwhile */
static void limits_hold(void)
{
	start();
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MAX, "10") &&
	       !store(&group[1], GSC_FILE_CAPSM_MIN, "30"));
	EXPECT(!store(&group[2], GSC_FILE_GPU_PRIORITY, "50"));
	EXPECT(!plan("500 0=20 1=40"));
	EXPECT(sms_of(0) == 10 && sms_of(1) == 40 && sms_of(2) == 82);
	/*
	 * alone in its band it still has no more than the plan says, and no lease that says
	 * otherwise
	 */
	gsc_client_detach(&client[0], clock_ns);
	gsc_client_detach(&client[2], clock_ns);
	EXPECT(sms_of(1) == 40 && client[1].lease == GSCHED_LEASE_NONE);
	EXPECT(!plan("none"));
	EXPECT(sms_of(1) == 132 && client[1].lease == GSCHED_LEASE_FREE);
}

/* Nobody renews it: the policy from before decides, by the timer alone */
static void it_expires(void)
{
	u64 began = clock_ns;

	start();
	EXPECT(!gsc_device_set_policy(&dev, "ffs", clock_ns) &&
	       !store(&group[2], GSC_FILE_GPU_WEIGHT, "200"));
	n_policies = 0;
	EXPECT(!plan("500 0=20"));
	EXPECT(n_policies == 1);
	EXPECT(sms_of(0) == 20 && dev.timer <= began + 500 * MS);
	clock_ns = began + 400 * MS;
	gsc_tick(&dev, clock_ns);
	EXPECT(!plan("500 0=30"));
	clock_ns = began + 899 * MS;
	gsc_tick(&dev, clock_ns);
	checked();
	EXPECT(sms_of(0) == 30 && told("1 groups for 1 ms more, then ffs"));
	/* a plan that follows another one is no other policy */
	EXPECT(n_policies == 1);
	clock_ns = began + 900 * MS;
	EXPECT(dev.timer && dev.timer <= clock_ns);
	gsc_tick(&dev, clock_ns);
	checked();
	EXPECT(!strcmp(dev.policy->name, "ffs") && sms_of(0) == 33 && sms_of(2) == 66);
	EXPECT(n_policies == 2 && !n_replaced);
	EXPECT(told("expired without another one: ffs decides again") &&
	       shows(&group[0], GSC_FILE_CAPSM_PLAN, "none\n"));
	EXPECT(!plan("500 0=30"));
	EXPECT(sms_of(0) == 30 && told("1 groups for 500 ms more, then ffs"));
	/* who sets a policy means that one */
	EXPECT(!gsc_device_set_policy(&dev, "wfq", clock_ns));
	checked();
	clock_ns += 600 * MS;
	gsc_tick(&dev, clock_ns);
	EXPECT(!strcmp(dev.policy->name, "wfq") && told("none"));
	EXPECT(gsc_device_set_policy(&dev, "plan", clock_ns) == -EINVAL);
}

static void refused(void)
{
	static const char *const bad[] = {
		"", "\n", "500", "500 ", "500\n", "0 0=1", "60001 0=1", "x 0=1", "-1 0=1", "500 0",
		"500 0=", "500 =1", "500 0=x",
		"500 0=0", "500 0=133", "500 0=max", "500 0=1 0=2", "500 0=100 1=33", "500 /=1",
		"500 7=10 s=5", "500 s=5 7=10",
		"500 0=1\n1=2", "500 0=1.2.3", "500 0=1=2", "none 0=1", "5000=1",
		"500 0=00000000000000000000000000000000000001",
		"500 0=20-10", "500 0=-", "500 0=1-", "500 0=-2", "500 0=1-133", "500 0=1-2-3",
		"500 0=0-0", "500 0=1--2", "500 0=1-00000000000000000000000000000000002",
		"500 0=100-132 1=33-132", "500 0=!", "500 0=1!!", "500 0=1!-2", "500 0=1!2",
	};

	start();
	EXPECT(!plan("500 0=20"));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (plan(bad[i]) != -EINVAL) {
			printf("# \"%s\"\n", bad[i]);
			EXPECT(false);
		}
	EXPECT(plan("500 0=1 8=2") == -ENOENT && plan("500 abc=2") == -ENOENT);
	EXPECT(sms_of(0) == 20 && told("1 groups for 500 ms more, then hpf"));
	EXPECT(!plan("60000  s=5   0=100 1=27-132 ") &&
	       told("3 groups for 60000 ms more, then hpf"));
	EXPECT(!gsc_group_exit(&sub));
	EXPECT(!plan("none\n") && told("none"));
	EXPECT(!plan("none"));
}

/* The invariants, whatever comes; and planned groups have what they were given */
static void whatever_comes(void)
{
	u64 rng = 4711;
	u32 seq = 1, given[3] = { 0 }, taken;
	bool planned = false, keeps = false;
	char text[64];

	attach(3);
	for (u32 step = 0; step < 30000 && good; step++) {
		int c;
		u32 slot;

		rng = rng * 6364136223846793005ULL + 1442695040888963407ULL;
		c = (int)(rng >> 33) % 3;
		slot = (u32)(rng >> 40) % 2;
		clock_ns += (rng >> 35) % (300 * US);
		switch ((rng >> 50) % 8) {
		case 0:
			given[0] = 1 + (u32)(rng >> 20) % 60;
			given[1] = 1 + (u32)(rng >> 28) % 60;
			keeps = rng >> 60 & 1;
			snprintf(text, sizeof(text), "%u 0=%u%s 1=%u", 1 + (u32)(rng >> 44) % 5,
				 given[0], keeps ? "!" : "", given[1]);
			EXPECT(!plan(text));
			break;
		case 1:
			gsc_tick(&dev, clock_ns);
			break;
		default:
			if (task(c, slot)->state == GSC_TASK_NONE) {
				struct gsched_submit req = make_submit(slot, seq++, BLOCK, 100000);

				EXPECT(gsc_submit(&client[c], &req, clock_ns) != -EBUSY);
			} else {
				struct gsched_complete req =
					make_complete(slot, task(c, slot)->seq);

				EXPECT(!gsc_complete(&client[c], &req, clock_ns));
			}
		}
		checked();
		planned = !strcmp(dev.policy->name, "plan");
		EXPECT(planned == (dev.policy == &gsc_policy_plan && dev.data.plan.until > dev.now));
		for (c = 0; planned && c < 2; c++)
			EXPECT(sms_of(c) == (client[c].n_tasks ? given[c] : 0));
		taken = keeps ? given[0] : sms_of(0);
		EXPECT(!planned || !client[2].n_tasks || sms_of(2) == SMS - taken - sms_of(1));
	}
}

int main(void)
{
	static const struct { const char *name; void (*run)(void); } tests[] = {
		TEST(in_one_commit), TEST(ranges), TEST(kept_free), TEST(targets_first),
		TEST(words), TEST(limits_hold), TEST(it_expires), TEST(refused),
		TEST(whatever_comes),
	};

	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		good = true;
		setup();
		tests[i].run();
		ok(good, "%s", tests[i].name);
	}
	return done();
}
