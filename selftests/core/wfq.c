// SPDX-License-Identifier: GPL-2.0-only
/*
 * Policy wfq over long runs: programs that launch kernels for ever, on a device that works off what
 * windows allow. The clock is moved from event to event.
 */
#include "unit.h"

#define SECOND	(1000 * MS)

/*
 * A program: kernels of @work (time on the whole device), @queued of them at once, @gap between the
 * end of one and the next
 */
struct program {
	u64 work, gap, block_ns;
	u32 queued, blocks;
	u32 tier;
	/* state */
	u64 left;		/* unit-ns of the first kernel */
	u64 next;		/* when it submits again, 0 not waiting for that */
	u32 seq, ended;		/* submitted, ended */
	u64 done;		/* unit-ns in all */
	u64 stood, longest;	/* since when it has tasks and no capacity; the longest such time */
};

static struct program program[8];
static int n_programs;

static u64 rate_of(int c)
{
	struct program *p = &program[c];
	const struct gsc_task *t = task(c, p->ended % GSCHED_SLOTS);

	if (p->seq == p->ended || t->state != GSC_TASK_RUNNING)
		return 0;
	return min_t(u64, t->window, (u64)p->blocks * SM);
}

static void launch(int c)
{
	struct program *p = &program[c];
	struct gsched_submit req = make_submit(p->seq % GSCHED_SLOTS, p->seq + 1,
					       p->tier, p->blocks);

	if (p->seq == p->ended)
		p->left = p->work * SMS * SM;
	req.block_ns = p->block_ns;
	EXPECT(gsc_submit(&client[c], &req, clock_ns) != -EINVAL);
	p->seq++;
}

/* It goes on as before, or for the first time */
static void start(int c)
{
	while (program[c].seq - program[c].ended < program[c].queued)
		launch(c);
}

static void ends(int c)
{
	struct program *p = &program[c];
	struct gsched_complete req = make_complete(p->ended % GSCHED_SLOTS, p->ended + 1);

	EXPECT(!gsc_complete(&client[c], &req, clock_ns));
	p->ended++;
	p->left = p->work * SMS * SM;
	if (!p->gap)
		launch(c);
	else
		p->next = clock_ns + p->gap;
}

/* No more kernels; those that are there vanish */
static void stop(int c)
{
	struct program *p = &program[c];

	p->next = 0;
	for (; p->ended < p->seq; p->ended++) {
		struct gsched_complete req = make_complete(p->ended % GSCHED_SLOTS, p->ended + 1);

		EXPECT(!gsc_complete(&client[c], &req, clock_ns));
	}
}

static void note_standing(struct program *p, u64 rate)
{
	if (rate || p->seq == p->ended)
		p->stood = 0;
	else if (!p->stood)
		p->stood = clock_ns;
	else
		p->longest = max(p->longest, clock_ns - p->stood);
}

static void run(u64 ns)
{
	u64 until = clock_ns + ns, next, rate[8] = { 0 };

	while (clock_ns < until && good) {
		next = until;
		if (dev.timer)
			next = min(next, max(dev.timer, clock_ns));
		for (int c = 0; c < n_programs; c++) {
			rate[c] = rate_of(c);
			note_standing(&program[c], rate[c]);
			if (rate[c])
				next = min(next, clock_ns +
					   (program[c].left + rate[c] - 1) / rate[c]);
			if (program[c].next)
				next = min(next, program[c].next);
		}
		for (int c = 0; c < n_programs; c++) {
			u64 part = min(rate[c] * (next - clock_ns), program[c].left);

			program[c].left -= part;
			program[c].done += part;
		}
		clock_ns = next;
		for (int c = 0; c < n_programs; c++) {
			if (rate[c] && !program[c].left)
				ends(c);
			if (program[c].next && program[c].next <= clock_ns) {
				program[c].next = 0;
				launch(c);
			}
		}
		if (dev.timer && dev.timer <= clock_ns)
			gsc_tick(&dev, clock_ns);
	}
	gsc_tick(&dev, clock_ns);
	checked();
	EXPECT(!dev.faulty);
	gsc_device_count(&dev, clock_ns);
}

/*
 * A device under wfq with @n clients; client i in group i, with programs that fill the device and
 * never pause
 */
static void begin(int n, u32 flags)
{
	setup();
	memset(program, 0, sizeof(program));
	n_programs = n;
	EXPECT(!gsc_device_set_policy(&dev, "wfq", clock_ns));
	for (int c = 0; c < n; c++) {
		program[c] = (struct program){ .work = MS, .queued = 2, .blocks = 100000 };
		EXPECT(!gsc_client_attach(&client[c], &group[c], flags, 0, clock_ns));
	}
}

static void set_weight(int g, u32 weight)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", weight);
	EXPECT(!gsc_group_store(&group[g], GSC_FILE_GPU_WEIGHT, text, clock_ns));
}

static void restart(void)
{
	for (int c = 0; c < n_programs; c++) {
		program[c].done = 0;
		program[c].longest = 0;
	}
}

/* Per mille of the time of the device that programs @from to @to had in @ns */
static double part(int from, int to, u64 ns)
{
	u64 sum = 0;

	for (int c = from; c <= to; c++)
		sum += program[c].done / (SMS * SM);
	return (double)sum * 1000 / (double)ns;
}

/*
 * Of what groups 0 and 1 were charged. That is less than they had: 8 blocks are one CapSM, on
 * however many SMs they are
 */
static double part_of_usage(int g)
{
	return (double)group[g].stats.capsm.us * 1000 /
	       (double)(group[0].stats.capsm.us + group[1].stats.capsm.us);
}

/* The same by the group's usage */
static double part_charged(int g, u64 ns)
{
	return (double)group[g].stats.capsm.us * 1000 / (SMS * (double)ns) * 1000;
}

static bool about(double is, double ought, double error)
{
	if (is >= ought - error && is <= ought + error)
		return true;
	printf("# %.2f per mille of the device, not %.2f\n", is, ought);
	return false;
}

/*
 * Kernels of 50 us to 200 ms, block-tasks up to 10 ms, two to four groups: each has its share to 1
 * % of it, and together all
 */
static void shares_follow_weights(void)
{
	static const struct {
		int n;
		u32 weight[4];
		u64 work[4], block_ns[4];
	} cases[] = {
		{ 2, { 100, 100 }, { 50 * US, 50 * US }, { 0 } },
		{ 2, { 100, 300 }, { MS, 50 * US }, { 5 * US, 0 } },
		{ 2, { 1000, 100 }, { 200 * MS, MS }, { 10 * MS, 20 * US } },
		{ 3, { 100, 200, 700 }, { 300 * US, 17 * MS, 2 * MS }, { 100 * US, 0, MS } },
		{ 3, { 10, 10, 10 }, { 200 * MS, 100 * US, 3 * MS }, { 0, 0, 5 * MS } },
		{ 4, { 1, 2, 3, 4 }, { MS, 500 * US, 70 * MS, 5 * MS }, { 10 * US, 2 * MS, 0, 0 } },
		{ 4, { 10000, 100, 200, 400 }, { MS, MS, MS, MS }, { 0 } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		u64 ns = 60 * SECOND;
		u32 sum = 0;
		double all = 0;

		begin(cases[i].n, GSCHED_ATTACH_MPS);
		for (int c = 0; c < cases[i].n; c++) {
			set_weight(c, cases[i].weight[c]);
			sum += cases[i].weight[c];
			program[c].work = cases[i].work[c];
			program[c].block_ns = cases[i].block_ns[c];
			start(c);
		}
		run(ns);
		for (int c = 0; c < cases[i].n; c++) {
			double ought = 1000. * cases[i].weight[c] / sum;

			EXPECT(about(part(c, c, ns), ought, ought / 100));
			EXPECT(about(part_charged(c, ns), ought, ought / 100));
			all += part(c, c, ns);
		}
		EXPECT(about(all, 1000, 0.1));
	}
}

/*
 * Any two to four groups of one or two processes each: to 1 % of the share and the turn that is not
 * over yet
 */
static void shares_of_any_groups(void)
{
	u64 rng = 88172645463325252ULL, ns = 30 * SECOND;

	for (int round = 0; round < 24 && good; round++) {
		u32 weight[4], r[8], sum = 0, groups;
		u64 quantum = 0;

		begin(0, 0);
		for (int i = 0; i < 8; i++) {
			rng ^= rng << 13;
			rng ^= rng >> 7;
			rng ^= rng << 17;
			r[i] = (u32)(rng >> 32);
		}
		groups = 2 + r[0] % 3;
		for (u32 g = 0; g < groups; g++) {
			weight[g] = 1 + (r[g] >> 8) % 20;
			set_weight((int)g, weight[g]);
			sum += weight[g];
		}
		for (u32 c = 0; c < groups + r[1] % (groups + 1); c++) {
			u32 x = r[c] >> 4;

			program[c] = (struct program){ .queued = 2 + x % 2, .blocks = 100000 };
			program[c].work = (50 * US) << x % 11;
			program[c].block_ns = x % 4 ? (10 * US) << x % 9 : 0;
			quantum = max(quantum, (190 * US + program[c].block_ns) * 1000 / 50);
			EXPECT(!gsc_client_attach(&client[c], &group[c % groups], GSCHED_ATTACH_MPS,
						  0, clock_ns));
			n_programs++;
			start((int)c);
		}
		run(ns);
		for (u32 g = 0; g < groups; g++) {
			double ought = 1000. * weight[g] / sum;

			EXPECT(about(part_charged((int)g, ns), ought,
				     ought / 100 + 1000. * (double)quantum / (double)ns));
		}
		if (!good)
			printf("# round %d\n", round);
	}
}

/* No more evictions than a quantum allows, whatever comes and ends */
static void windows_do_not_flap(void)
{
	u64 ns = 10 * SECOND, quantum = 190 * US * 1000 / 50;

	begin(3, GSCHED_ATTACH_MPS);
	for (int c = 0; c < 3; c++) {
		program[c].work = (50 + 13 * (u64)c) * US;
		start(c);
	}
	n_evict = 0;
	run(ns);
	EXPECT(n_done > 100000 && n_evict > ns / quantum / 8);
	/* both kernels that it has in the queue are told */
	EXPECT(n_evict <= 2 * ns / quantum);
}

/* The least one waits for its turn no longer than the others need for theirs */
static void nobody_starves(void)
{
	u64 quantum = 190 * US * 1000 / 50;

	begin(4, GSCHED_ATTACH_MPS);
	for (int c = 0; c < 4; c++) {
		set_weight(c, c ? 330 : 10);
		start(c);
	}
	run(30 * SECOND);
	EXPECT(program[0].done && program[0].longest < 4 * 100 * quantum);
	for (int c = 1; c < 4; c++)
		EXPECT(program[c].longest < 8 * quantum);
}

/* From its return on it has its share, and the others theirs: nothing is made up for */
static void sleeper_has_no_credit(void)
{
	u64 ns = SECOND;

	for (int returns = 0; returns < 2; returns++) {
		begin(3, GSCHED_ATTACH_MPS);
		for (int c = 0; c < 2 + returns; c++)
			start(c);
		run(2 * SECOND);
		if (returns) {
			stop(2);
			run(20 * SECOND);
		}
		restart();
		start(2);
		run(ns);
		/* two quanta of 3.8 ms */
		for (int c = 0; c < 3; c++)
			EXPECT(about(part(c, c, ns), 1000. / 3, 8));
	}
}

/* Neither had anybody else to give way to: what one used then is not held against it */
static void idle_capacity_is_no_debt(void)
{
	u64 ns = SECOND;

	begin(2, GSCHED_ATTACH_MPS);
	start(0);
	run(20 * SECOND);
	EXPECT(about(part(0, 0, 20 * SECOND), 1000, 0.1));
	restart();
	start(1);
	run(ns);
	EXPECT(about(part(0, 0, ns), 500, 8));
	/* beside a program that wants little */
	stop(1);
	program[1].blocks = 8;
	start(1);
	run(20 * SECOND);
	stop(1);
	program[1].blocks = 100000;
	restart();
	start(1);
	run(ns);
	EXPECT(about(part(0, 0, ns), 500, 8));
}

/*
 * A program that waits for each kernel, for a moment: it has nearly half, for it does not want more
 */
static void synchronous_program(void)
{
	u64 ns = 10 * SECOND;

	begin(2, GSCHED_ATTACH_MPS);
	program[0].queued = 1;
	program[0].gap = 10 * US;
	program[0].work = 500 * US;
	start(0);
	start(1);
	run(ns);
	EXPECT(part(0, 0, ns) > 480 && part(0, 0, ns) < 505);
	EXPECT(about(part(0, 1, ns), 1000, 1));
}

/* It wants less than its share: it has it at once */
static void little_is_had_at_once(void)
{
	begin(3, GSCHED_ATTACH_MPS);
	program[0].blocks = 16;
	program[0].work = 5 * US;
	program[0].queued = 1;
	program[0].gap = 300 * US;
	for (int c = 0; c < 3; c++)
		start(c);
	run(2 * SECOND);
	EXPECT(program[0].ended > 5000 && program[0].longest == 0);
}

/*
 * Three processes of one group have what one of the other has; the smallest one's rest is its
 * siblings'
 */
static void processes_of_a_group_share(void)
{
	u64 ns = 30 * SECOND;

	begin(1, GSCHED_ATTACH_MPS);
	n_programs = 4;
	for (int c = 1; c < 4; c++) {
		program[c] = (struct program){ .work = MS / (u64)c, .queued = 2,
					       .blocks = c == 3 ? 4 : 100000 };
		EXPECT(!gsc_client_attach(&client[c], &group[1], GSCHED_ATTACH_MPS, 0, clock_ns));
	}
	for (int c = 0; c < 4; c++)
		start(c);
	run(ns);
	EXPECT(about(part_of_usage(0), 500, 5));
	EXPECT(program[1].done > program[2].done / 2 && program[2].done > program[1].done / 2 &&
	       program[3].done);
	/* they come and go in turn: the group is the same */
	set_weight(1, 300);
	group[0].stats.capsm = (struct gsc_sum){ 0 };
	group[1].stats.capsm = (struct gsc_sum){ 0 };
	for (int i = 0; i < 200; i++) {
		stop(1 + i % 3);
		run(30 * MS);
		start(1 + i % 3);
		run(20 * MS);
	}
	EXPECT(about(part_of_usage(0), 250, 5));
}

/* Three processes of one user of a group have together what another user's one has. */
static void users_of_a_group_share(void)
{
	u64 ns = 30 * SECOND;

	begin(0, 0);
	for (int c = 0; c < 4; c++) {
		program[c] = (struct program){ .work = MS, .queued = 2, .blocks = 100000 };
		client[c].user = c ? 1000 : 2000;
		EXPECT(!gsc_client_attach(&client[c], &group[0], GSCHED_ATTACH_MPS, 0, clock_ns));
		n_programs++;
	}
	for (int c = 0; c < 4; c++)
		start(c);
	run(ns);
	for (int c = 0; c < 4; c++) {
		const struct gsc_sum *had = &client[c].own.stats.capsm;

		EXPECT(about((double)had->us * 1000 / (SMS * (double)ns) * 1000,
			     c ? 1000. / 6 : 500, 10));
	}
}

/* Child groups divide what their parent has, beside a client of its own with the default weight */
static void groups_are_nested(void)
{
	u64 ns = 30 * SECOND;

	begin(0, 0);
	n_programs = 4;
	EXPECT(!gsc_group_exit(&group[2]) && !gsc_group_exit(&group[3]));
	memset(&group[2], 0, 2 * sizeof(group[2]));
	EXPECT(!gsc_group_init(&group[2], &group[1]) && !gsc_group_init(&group[3], &group[1]));
	set_weight(1, 300);
	set_weight(2, 100);
	set_weight(3, 200);
	for (int c = 0; c < 4; c++) {
		program[c] = (struct program){ .work = MS, .queued = 2, .blocks = 100000 };
		EXPECT(!gsc_client_attach(&client[c], &group[c], GSCHED_ATTACH_MPS, 0, clock_ns));
		start(c);
	}
	run(ns);
	EXPECT(about(part(0, 0, ns), 250, 2.5));
	EXPECT(about(part(1, 1, ns), 750. / 4, 2.5));
	EXPECT(about(part(2, 2, ns), 750. / 4, 2.5));
	EXPECT(about(part(3, 3, ns), 750. / 2, 4));
	/* the weight of one that is idle counts for nobody */
	stop(3);
	restart();
	run(ns);
	EXPECT(about(part(1, 1, ns), 750. / 2, 4));
}

/*
 * Two groups below a small max: what they could not have is no credit against a third one when the
 * max goes
 */
static void lifted_max_is_no_credit(void)
{
	u64 ns = 20 * SECOND;

	begin(0, 0);
	n_programs = 3;
	EXPECT(!gsc_group_exit(&group[1]) && !gsc_group_exit(&group[2]));
	memset(&group[1], 0, 2 * sizeof(group[1]));
	EXPECT(!gsc_group_init(&group[1], &group[3]) && !gsc_group_init(&group[2], &group[3]));
	EXPECT(!gsc_group_store(&group[3], GSC_FILE_CAPSM_MAX, "12", clock_ns));
	for (int c = 0; c < 3; c++) {
		program[c] = (struct program){ .work = MS, .queued = 2, .blocks = 100000 };
		EXPECT(!gsc_client_attach(&client[c], &group[c], GSCHED_ATTACH_MPS, 0, clock_ns));
		start(c);
	}
	run(60 * SECOND);
	EXPECT(about(part(0, 0, 60 * SECOND), 1000. * 120 / 132, 2));
	EXPECT(about(part(1, 1, 60 * SECOND), 1000. * 6 / 132, 2));
	EXPECT(!gsc_group_store(&group[3], GSC_FILE_CAPSM_MAX, "max", clock_ns));
	restart();
	run(ns);
	/* a second or two of the first's time */
	EXPECT(about(part(0, 0, ns), 500, 100));
	EXPECT(about(part(1, 1, ns), 250, 60) && about(part(2, 2, ns), 250, 60));
	restart();
	run(ns);
	EXPECT(about(part(0, 0, ns), 500, 5));
}

/* What a client's own max keeps it from is no credit for a program that comes later */
static void own_max_is_no_credit(void)
{
	u64 ns = SECOND;

	begin(3, GSCHED_ATTACH_MPS);
	EXPECT(!gsc_client_store(&client[2], GSC_FILE_CAPSM_MAX, "4", false, clock_ns));
	start(0);
	start(2);
	run(20 * SECOND);
	restart();
	start(1);
	run(ns);
	for (int c = 0; c < 2; c++)
		EXPECT(about(part(c, c, ns), 1000. * 64 / SMS, 10));
	EXPECT(about(part(2, 2, ns), 1000. * 4 / SMS, 1));
}

/* Opaque kernels cannot be evicted: their launches are rationed */
static void opaque_kernels(void)
{
	u64 ns = 60 * SECOND;

	begin(2, GSCHED_ATTACH_MPS);
	set_weight(1, 300);
	for (int c = 0; c < 2; c++) {
		program[c].tier = LAUNCH;
		program[c].work = c ? 3 * MS : 20 * MS;
		start(c);
	}
	run(ns);
	EXPECT(about(part_of_usage(0), 250, 2.5));
}

/* One band at a time has the device */
static void turns_follow_weights(void)
{
	static const u32 weight[] = { 100, 200, 700 };
	u64 ns = 60 * SECOND;

	begin(3, 0);
	EXPECT(!gsc_device_set_mode(&dev, GSCHED_MODE_TEMPORAL, clock_ns));
	for (int c = 0; c < 3; c++) {
		set_weight(c, weight[c]);
		program[c].work = c == 1 ? 40 * MS : MS;
		start(c);
	}
	n_evict = 0;
	run(ns);
	for (int c = 0; c < 3; c++)
		EXPECT(about(part(c, c, ns), weight[c], weight[c] / 100.));
	EXPECT(n_evict < 4 * ns / (3800 * US));
	/* a band that was idle begins with the others */
	stop(2);
	run(5 * SECOND);
	restart();
	start(2);
	run(10 * SECOND);
	for (int c = 0; c < 3; c++)
		EXPECT(about(part(c, c, 10 * SECOND), weight[c], 10));
	stop(0);
	stop(1);
	restart();
	run(SECOND);
	EXPECT(about(part(2, 2, SECOND), 1000, 0.1));
}

/* A kernel of few blocks, and one with a small max, keep others from the device as much as any */
static void turns_go_by_time(void)
{
	u64 ns = 60 * SECOND;

	begin(3, 0);
	EXPECT(!gsc_device_set_mode(&dev, GSCHED_MODE_TEMPORAL, clock_ns));
	program[0].blocks = 8;
	EXPECT(!gsc_group_store(&group[2], GSC_FILE_CAPSM_MAX, "1", clock_ns));
	for (int c = 0; c < 3; c++)
		start(c);
	run(ns);
	EXPECT(about(part(1, 1, ns), 1000. / 3, 5));
	EXPECT(about(part(0, 0, ns), 1000. / 3 * 8 / SMS, 1));
	EXPECT(about(part(2, 2, ns), 1000. / 3 / SMS, 1));
}

/* As under ffs: by weight, priorities mean nothing */
static void slices_follow_weights(void)
{
	begin(2, GSCHED_ATTACH_SLICE);
	EXPECT(!gsc_group_store(&group[0], GSC_FILE_GPU_PRIORITY, "10", clock_ns));
	set_weight(1, 300);
	EXPECT(dev.mode == GSCHED_MODE_SLICED && !dev.n_lower);
	EXPECT(client[0].arb.slice_us == 1900 && client[1].arb.slice_us == 5700);
}

/* Nothing of an earlier time under the policy counts */
static void chosen_anew(void)
{
	begin(3, GSCHED_ATTACH_MPS);
	for (int c = 0; c < 3; c++)
		start(c);
	for (int i = 0; i < 8; i++) {
		EXPECT(!gsc_device_set_policy(&dev, i % 2 ? "hpf" : "ffs", clock_ns));
		run(SECOND / (u64)(1 + i));
		EXPECT(!gsc_device_set_policy(&dev, "wfq", clock_ns));
		if (i % 3 == 0)
			EXPECT(!gsc_device_set_mode(&dev,
						    i % 2 ? -1 : GSCHED_MODE_TEMPORAL, clock_ns));
		restart();
		run(2 * SECOND);
		for (int c = 0; c < 3; c++)
			EXPECT(about(part(c, c, 2 * SECOND), 1000. / 3, 5));
	}
	gsc_client_move(&client[0], &group[1], clock_ns);
	restart();
	run(2 * SECOND);
	EXPECT(about(part(2, 2, 2 * SECOND), 500, 6));
}

static void says_why(void)
{
	char text[160];

	begin(2, GSCHED_ATTACH_MPS);
	set_weight(1, 300);
	start(0);
	start(1);
	run(SECOND);
	EXPECT(gsc_client_why(&client[1], text, sizeof(text)));
	EXPECT(strstr(text, "its group's share of the band is 75.0 %: ") == text &&
	       strstr(text, " us ahead in virtual time"));
	stop(1);
	EXPECT(gsc_client_why(&client[1], text, sizeof(text)) == 0);
	EXPECT(gsc_client_why(&client[0], text, sizeof(text)));
	EXPECT(strstr(text, "its group's share of the band is 100.0 %, and it wants no more") ==
	       text);
}

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	TEST(shares_follow_weights), TEST(shares_of_any_groups), TEST(windows_do_not_flap),
	TEST(nobody_starves), TEST(sleeper_has_no_credit),
	TEST(idle_capacity_is_no_debt), TEST(synchronous_program), TEST(little_is_had_at_once),
	TEST(processes_of_a_group_share), TEST(users_of_a_group_share), TEST(groups_are_nested),
	TEST(lifted_max_is_no_credit), TEST(own_max_is_no_credit), TEST(opaque_kernels),
	TEST(turns_follow_weights), TEST(turns_go_by_time), TEST(slices_follow_weights),
	TEST(chosen_anew), TEST(says_why),
};

int main(int argc, char **argv)
{
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++) {
		if (argc > 1 && strcmp(argv[1], tests[i].name))
			continue;
		good = true;
		tests[i].run();
		ok(good, "%s", tests[i].name);
	}
	return done();
}
