// SPDX-License-Identifier: GPL-2.0-only
/*
 * How the cost of events about bands and users grows with the number of clients. The core is
 * compiled a second time for this test (core.mk), so that each basic block that runs is counted:
 * the numbers are the same on every machine, however busy it is.
 */
#include "world.h"

#define SMS	132
#define FEW	500U
#define MANY	(8 * FEW)
#define OWN	GSCHED_ATTACH_SLICE
#define CLIENT	GSCHED_ATTACH_MPS

static u64 steps;

void __sanitizer_cov_trace_pc(void);

/* gcc calls it in every basic block of the core */
void __sanitizer_cov_trace_pc(void)
{
	steps++;
}

static const struct gsc_ops ops = { .new_task = op_new_task };

static struct gsc_device dev;
static struct gsc_group group[MANY];
static struct gsc_client client[MANY];
static u64 clock_ns;
static u32 n;			/* clients of this run */

static void need(bool good, const char *what)
{
	if (good)
		return;
	printf("Bail out! %s\n", what);
	exit(1);
}

static void setup(u32 clients)
{
	memset(&dev, 0, sizeof(dev));
	memset(group, 0, sizeof(group));
	memset(client, 0, sizeof(client));
	n = clients;
	clock_ns = MS;
	need(!gsc_device_init(&dev, &ops, SMS), "no device");
	for (u32 i = 0; i < n; i++)
		need(!gsc_group_init(&group[i], &dev.root), "no group");
}

static void attach(u32 i, struct gsc_group *to, u32 flags, u64 channel_group)
{
	need(!gsc_client_attach(&client[i], to, flags, channel_group, clock_ns), "no client");
}

static void decide(void)
{
	gsc_commit(&dev, clock_ns);
}

static void one_band(void)
{
	for (u32 i = 0; i < n; i++)
		attach(i, &group[i], CLIENT, 0);
	decide();
}

/* All of one user in one group */
static void one_user(void)
{
	for (u32 i = 0; i < n; i++)
		attach(i, &dev.root, CLIENT, 0);
	decide();
}

static void leave_in_order(void)
{
	for (u32 i = 0; i < n; i++)
		gsc_client_detach(&client[i], clock_ns);
	decide();
}

static void leave_in_reverse(void)
{
	for (u32 i = n; i--;)
		gsc_client_detach(&client[i], clock_ns);
	decide();
}

/* First every second one, then the others in reverse */
static void leave_mixed(void)
{
	for (u32 i = 0; i < n; i += 2)
		gsc_client_detach(&client[i], clock_ns);
	for (u32 i = n; i--;)
		if (i % 2)
			gsc_client_detach(&client[i], clock_ns);
	decide();
}

static void apart(void)
{
	for (u32 i = 0; i < n; i++)
		attach(i, &group[i], OWN, 0);
	decide();
}

/* Bands of two, whose clients do not come one after the other */
static void in_pairs(void)
{
	for (u32 i = 0; i < n; i++)
		attach(i, &group[i], CLIENT, 1 + (i < n / 2 ? i : n - 1 - i));
	decide();
}

/* In each pair the one that came last is busy */
static void in_busy_pairs(void)
{
	struct gsched_submit req = make_submit(0, 1, GSCHED_TIER_BLOCK, 8);

	in_pairs();
	for (u32 i = n / 2; i < n; i++)
		need(gsc_submit(&client[i], &req, clock_ns) == QUEUED, "no task");
	decide();
}

static void set_mode(s32 mode)
{
	need(!gsc_device_set_mode(&dev, mode, clock_ns), "no such mode");
	decide();
}

static void to_temporal(void)
{
	set_mode(GSCHED_MODE_TEMPORAL);
}

static void to_spatial(void)
{
	set_mode(GSCHED_MODE_SPATIAL);
}

static void to_automatic(void)
{
	set_mode(-1);
}

static void temporal(void)
{
	in_busy_pairs();
	to_temporal();
}

static void set_target(u32 i, const char *target)
{
	need(!gsc_group_store(&group[i], GSC_FILE_GPU_LATENCY, target, clock_ns), "no target");
}

/* A target of every band that is just below what the shortest slices of all others come to */
static void with_targets(void)
{
	char target[16];

	apart();
	snprintf(target, sizeof(target), "%u", (n - 1) * GSC_SLICE_LEAST_US - 1);
	for (u32 i = 0; i < n; i++)
		set_target(i, target);
}

/* Targets that can be reached, all different */
static void with_various_targets(void)
{
	char target[16];

	apart();
	for (u32 i = 0; i < n; i++) {
		snprintf(target, sizeof(target), "%u", (n - 1) * 1000 + i);
		set_target(i, target);
	}
}

static void submit(u32 i, u32 slot, u32 tier, u64 blocks)
{
	struct gsched_submit req = make_submit(slot, 1, tier, blocks);

	need(gsc_submit(&client[i], &req, clock_ns) == QUEUED, "no task");
}

static void all_run(u32 tier)
{
	for (u32 i = 0; i < n; i++)
		submit(i, 0, tier, 100000);
	decide();
}

/* What each decision costs while all have a kernel: the last client has one more */
static void one_more(void)
{
	submit(n - 1, 1, GSCHED_TIER_BLOCK, 8);
	decide();
}

static void opaque_kernels(void)
{
	one_band();
	all_run(GSCHED_TIER_LAUNCH);
}

/* Each has waited for the others for longer than they are patient */
static void overdue_kernels(void)
{
	opaque_kernels();
	clock_ns += 1000 * MS;
}

static void set_all(enum gsc_file file, const char *text)
{
	for (u32 i = 0; i < n; i++)
		need(!gsc_group_store(&group[i], file, text, clock_ns), "no such value");
}

static void with_fractions(void)
{
	one_band();
	set_all(GSC_FILE_CAPSM_MAX, "1.5");
	all_run(GSCHED_TIER_BLOCK);
}

static void with_guarantees(void)
{
	one_band();
	set_all(GSC_FILE_CAPSM_MIN, "0.01");
	all_run(GSCHED_TIER_BLOCK);
}

static void with_reserves(void)
{
	one_band();
	set_all(GSC_FILE_CAPSM_RESERVE, "1");
	all_run(GSCHED_TIER_BLOCK);
}

static void under(const char *policy)
{
	need(!gsc_device_set_policy(&dev, policy, clock_ns), "no such policy");
	one_band();
	all_run(GSCHED_TIER_BLOCK);
}

static void under_ffs(void)
{
	under("ffs");
}

static void under_wfq(void)
{
	under("wfq");
}

static void under_srt(void)
{
	under("srt");
}

static void under_corun(void)
{
	under("corun");
}

static const struct {
	const char *name;
	void (*prepare)(void);
	void (*measured)(void);
} cases[] = {
	{ "a band's clients detach in the order of their arrival", one_band, leave_in_order },
	{ "a band's clients detach in reverse order", one_band, leave_in_reverse },
	{ "a band's clients detach in mixed order", one_band, leave_mixed },
	{ "a user's clients detach in the order of their arrival", one_user, leave_in_order },
	{ "a user's clients detach in reverse order", one_user, leave_in_reverse },
	{ "bands of one client detach", apart, leave_in_order },
	{ "bands of one client become one", apart, to_spatial },
	{ "bands of two clients become bands of one", in_pairs, to_temporal },
	{ "busy bands of two clients become bands of one", in_busy_pairs, to_temporal },
	{ "busy bands of two clients are made again", in_busy_pairs, to_automatic },
	{ "busy bands of one client become bands of two", temporal, to_automatic },
	{ "one band becomes bands of one", one_band, to_temporal },
	{ "targets below the shortest slices", with_targets, decide },
	{ "targets that differ", with_various_targets, decide },
	{ "opaque kernels of all", opaque_kernels, one_more },
	{ "overdue kernels of all", overdue_kernels, one_more },
	{ "each group has a max with a fraction", with_fractions, one_more },
	{ "each group has a guarantee", with_guarantees, one_more },
	{ "each group has a reserve", with_reserves, one_more },
	{ "a decision under ffs", under_ffs, one_more },
	{ "a decision under wfq", under_wfq, one_more },
	{ "a decision under srt", under_srt, one_more },
	{ "a decision under corun", under_corun, one_more },
};

static u64 measure(size_t i, u32 clients)
{
	u64 measured;

	setup(clients);
	cases[i].prepare();
	clock_ns += MS;
	steps = 0;
	cases[i].measured();
	measured = steps;
	/* quadratic itself */
	need(n > FEW || !gsc_check(&dev), "an invariant does not hold");
	return measured;
}

/* Eight times as many clients: 8 times the steps, or 11 with a sort; 64 where each looks at each */
int main(void)
{
	later = true;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		u64 few = measure(i, FEW), many = measure(i, MANY);

		printf("# %" PRIu64 " steps with %u clients, %" PRIu64 " with %u\n",
		       (uint64_t)few, FEW, (uint64_t)many, MANY);
		ok(few >= FEW && many < 12 * few, "%s", cases[i].name);
	}
	return done();
}
