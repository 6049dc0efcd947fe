// SPDX-License-Identifier: LGPL-2.1-or-later
/* The scheduler: every decision is driven by hand, no clock and no second thread. */
#include <string.h>
#include "sched.h"
#include "selftests/tap.h"

static const struct vg_config plain = {
	.sms = 4, .sm_threads = 512, .sm_blocks = 16, .sm_regs = 65536,
	.sm_smem = 100 << 10, .cc = 90, .timeslice_ns = 1000, .switch_ns = 200, .mem = 1 << 20,
};
static struct vg_device dev;

static void join(unsigned int proc, uint64_t key)
{
	vg_sched_join(&dev, proc, key);
	dev.proc[proc].used = 1;
}

/* The processes are clients of one MPS server */
static void setup(struct vg_config c, unsigned int procs)
{
	memset(&dev, 0, sizeof(dev));
	vg_sched_init(&dev, &c);
	for (unsigned int i = 0; i < procs; i++)
		join(i, 1);
}

/* Each has a group of its own */
static void setup_groups(struct vg_config c, unsigned int procs)
{
	setup(c, 0);
	for (unsigned int i = 0; i < procs; i++)
		join(i, VG_NO_MPS);
}

static struct vg_need need(uint32_t threads, uint32_t smem)
{
	struct vg_need n = { .threads = threads, .regs = threads * 16, .smem = smem };

	n.carveout = vg_sched_carveout(&dev.config, &n, -1);
	return n;
}

static int submit(uint32_t proc, uint32_t threads, uint64_t blocks, int priority)
{
	struct vg_need n = need(threads, 0);

	return vg_sched_submit(&dev, proc, &n, blocks, priority);
}

/* May the process's blocks step? Wakes are looked at by the tests that are about them. */
static bool turn(uint32_t proc, uint64_t now)
{
	vg_procs wake;

	return vg_sched_turn(&dev, proc, now, &wake);
}

static uint32_t group_of(uint32_t proc)
{
	return dev.proc[proc].group;
}

static unsigned int held(int e)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < dev.config.sms; i++)
		n += dev.entry[e].held[i];
	return n;
}

/* One block of @e on @sm is taken up and ends; then what can be placed is */
static vg_procs end_one(int e, unsigned int sm)
{
	while (vg_sched_take(&dev, e) >= 0)
		;
	vg_sched_done(&dev, e, sm);
	return vg_sched_dispatch(&dev);
}

static bool sums_right(void)
{
	static struct vg_device copy;

	copy = dev;
	vg_sched_repair(&copy);
	return !memcmp(copy.entry, dev.entry, sizeof(dev.entry)) && ({
		bool same = true;

		for (unsigned int p = 0; p < VG_PROCS_MAX; p++)
			same &= copy.proc[p].kernels == dev.proc[p].kernels;

		for (unsigned int p = 0; p < VG_GROUPS_MAX; p++)
			for (unsigned int i = 0; i < dev.config.sms; i++) {
				const struct vg_sm *a = &copy.sm[p][i], *b = &dev.sm[p][i];

				same &= a->blocks == b->blocks && a->threads == b->threads &&
					a->regs == b->regs && a->smem == b->smem;
			}
		/* cppcheck-suppress constStatement ; the expression's value */
		same;
	});
}

static bool fit(void)
{
	struct vg_need n;

	setup(plain, 1);
	n = need(128, 0);
	CHECK(vg_sched_fit(&plain, &n) == 4);
	n = need(32, 0);
	CHECK(vg_sched_fit(&plain, &n) == 16);
	n = need(32, 30 << 10);
	CHECK(vg_sched_fit(&plain, &n) == 3);
	n.regs = 40000;
	CHECK(vg_sched_fit(&plain, &n) == 1);
	n = need(544, 0);
	CHECK(vg_sched_fit(&plain, &n) == 0);
	n = need(32, 101 << 10);
	CHECK(vg_sched_fit(&plain, &n) == 0);
	return true;
}

static bool breadth_first(void)
{
	int e;

	setup(plain, 1);
	e = submit(0, 128, 6, 0);
	CHECK(vg_sched_dispatch(&dev) == 1);
	CHECK(dev.entry[e].held[0] == 2 && dev.entry[e].held[1] == 2 && dev.entry[e].held[2] == 1 &&
	      dev.entry[e].held[3] == 1);
	CHECK(vg_sched_take(&dev, e) == 0 && vg_sched_take(&dev, e) == 0 &&
	      vg_sched_take(&dev, e) == 1);
	CHECK(sums_right());
	return true;
}

static bool leftover(void)
{
	int a, b;

	setup(plain, 2);
	a = submit(0, 128, 20, 0);	/* 16 fit */
	b = submit(1, 32, 1, 0);
	CHECK(vg_sched_dispatch(&dev) == 1);
	CHECK(held(a) == 16 && held(b) == 0);
	/* freed places go to the kernel at the head, small as the other one is */
	for (int i = 0; i < 4; i++) {
		CHECK(end_one(a, 3) == 1);
		CHECK(held(a) == 16 && held(b) == 0);
	}
	/* all its blocks are placed: the next one's turn */
	CHECK(end_one(a, 2) == 2);
	CHECK(held(a) == 15 && held(b) == 1 && dev.entry[b].held[2] == 1);
	CHECK(sums_right());
	return true;
}

static bool head_of_line(void)
{
	int a, b;

	setup(plain, 2);
	a = submit(0, 512, 5, 0);	/* whole SMs: four placed, the fifth waits */
	b = submit(1, 32, 1, 0);
	vg_sched_dispatch(&dev);
	CHECK(held(a) == 4 && held(b) == 0);
	end_one(a, 1);
	CHECK(held(a) == 4 && held(b) == 0);
	end_one(a, 0);
	CHECK(held(a) == 3 && held(b) == 1 && dev.entry[b].held[0] == 1);
	return true;
}

static bool priorities(void)
{
	int a, b, c;

	setup(plain, 3);
	a = submit(0, 512, 10, 0);
	vg_sched_dispatch(&dev);
	b = submit(1, 512, 2, 0);
	c = submit(2, 512, 2, -5);
	CHECK(vg_sched_dispatch(&dev) == 0);	/* nothing is taken from resident blocks */
	CHECK(end_one(a, 0) == 4 && held(c) == 1 && held(a) == 3);
	CHECK(end_one(a, 1) == 4 && held(c) == 2 && held(a) == 2);
	CHECK(end_one(a, 2) == 1 && held(a) == 2 && held(b) == 0);
	return true;
}

/* A cooperative grid goes whole, and holds back what comes behind it */
static bool whole(void)
{
	struct vg_need n;
	int a, b, c;

	setup(plain, 2);
	n = need(64, 0);
	n.whole = 1;
	a = submit(0, 64, 3, 0);
	b = vg_sched_submit(&dev, 0, &n, (uint64_t)plain.sms * vg_sched_fit(&plain, &n) - 2, 0);
	c = submit(1, 64, 1, 0);
	vg_sched_dispatch(&dev);
	CHECK(held(a) == 3 && held(b) == 0 && held(c) == 0);
	end_one(a, 0);
	CHECK(held(a) == 2 && held(b) == plain.sms * vg_sched_fit(&plain, &n) - 2 && held(c) == 0);
	end_one(a, 1);
	CHECK(held(c) == 1);
	return true;
}

static bool carveout(void)
{
	struct vg_config c = plain;
	struct vg_need small, large;
	int a, b;

	c.carveout = 1;
	setup(c, 2);
	small = need(64, 0);
	large = need(64, 20 << 10);
	CHECK(small.carveout == 8 << 10 && large.carveout == 100 << 10);
	a = vg_sched_submit(&dev, 0, &small, 4, 0);	/* one on each SM */
	b = vg_sched_submit(&dev, 1, &large, 1, 0);
	vg_sched_dispatch(&dev);
	CHECK(held(a) == 4 && held(b) == 0);	/* room, but of another kind */
	end_one(a, 2);
	CHECK(held(b) == 1 && dev.entry[b].held[2] == 1);
	c.carveout = 0;
	setup(c, 2);
	a = vg_sched_submit(&dev, 0, &small, 4, 0);
	b = vg_sched_submit(&dev, 1, &large, 1, 0);
	vg_sched_dispatch(&dev);
	CHECK(held(a) == 4 && held(b) == 1);
	CHECK(vg_sched_carveout(&c, &large, 50) == 64 << 10);
	return true;
}

static bool finishing(void)
{
	int a, b;

	setup(plain, 1);
	a = submit(0, 512, 2, 0);
	vg_sched_dispatch(&dev);
	end_one(a, 0);
	end_one(a, 1);
	CHECK(dev.entry[a].done == 2 && held(a) == 0);
	vg_sched_remove(&dev, a);
	CHECK(!vg_sched_has_work(&dev, dev.proc[0].group));
	b = submit(0, 512, 4, 0);
	CHECK(vg_sched_dispatch(&dev) == 1 && held(b) == 4);
	return true;
}

static bool full_queue(void)
{
	setup(plain, 1);
	for (int i = 0; i < VG_KERNELS_MAX; i++)
		CHECK(submit(0, 32, 1, 0) >= 0);
	CHECK(submit(0, 32, 1, 0) == -1);
	return true;
}

static bool reaping(void)
{
	int a, b;

	setup(plain, 2);
	a = submit(0, 512, 100, 0);
	b = submit(1, 512, 2, 0);
	vg_sched_dispatch(&dev);
	CHECK(held(a) == 4 && held(b) == 0);
	vg_sched_reap(&dev, 0);
	CHECK(vg_sched_dispatch(&dev) == 2 && held(b) == 2 && !dev.entry[a].used);
	CHECK(sums_right());
	return true;
}

/* Someone died in the middle of a placement: whatever was half done is made whole */
static bool repairing(void)
{
	int a;

	setup(plain, 2);
	a = submit(0, 512, 100, 0);
	vg_sched_dispatch(&dev);
	dev.sm[0][1].threads += 77;	/* the SM's sum was changed, the block not held yet */
	dev.entry[a].fresh[1]++;
	vg_sched_repair(&dev);
	CHECK(dev.entry[a].fresh[1] == 1 && dev.entry[a].placed == 4 &&
	      dev.sm[0][1].threads == 512);
	dev.entry[a].fresh[2] = dev.entry[a].held[2] = 0;	/* held by nobody: placed again */
	vg_sched_repair(&dev);
	CHECK(dev.entry[a].placed == 3 && dev.sm[0][2].blocks == 0);
	CHECK(vg_sched_dispatch(&dev) == 1 && held(a) == 4);
	/* a turn that may be half begun is begun again */
	dev.active = group_of(1);
	dev.alone = 1;
	vg_sched_repair(&dev);
	CHECK(dev.active == VG_NOBODY && !dev.alone && turn(0, 1000));
	return true;
}

static void slice(uint32_t proc, uint64_t ns, uint64_t now)
{
	vg_sched_set_slice(&dev, group_of(proc), ns, now);
}

static bool time_slices(void)
{
	struct vg_config c = plain;
	vg_procs wake;
	int a, b;

	c.switch_ns = 0;
	setup_groups(c, 3);
	a = submit(0, 512, 100, 0);
	CHECK(vg_sched_dispatch(&dev) == 1);
	CHECK(vg_sched_turn(&dev, 0, 1000, &wake) && !wake);
	b = submit(1, 512, 3, 0);
	/* the other process has the device to itself in its turn: its blocks are placed at once */
	CHECK(vg_sched_dispatch(&dev) == 2 && held(a) == 4 && held(b) == 3);
	CHECK(!vg_sched_turn(&dev, 1, 1500, &wake) && !wake);
	CHECK(vg_sched_turn(&dev, 0, 1999, &wake));
	CHECK(!vg_sched_turn(&dev, 0, 2000, &wake) && wake == 2);
	CHECK(vg_sched_turn(&dev, 1, 2000, &wake));
	/* a group without work is passed over at once */
	vg_sched_remove(&dev, b);
	CHECK(vg_sched_update(&dev, 2100) == 1);
	CHECK(vg_sched_turn(&dev, 0, 2100, &wake));
	CHECK(vg_sched_turn(&dev, 0, 9000, &wake) && !wake);
	/* and one that dies in its turn */
	submit(2, 512, 1, 0);
	vg_sched_dispatch(&dev);
	vg_sched_update(&dev, 9001);
	CHECK(!vg_sched_turn(&dev, 0, 20000, &wake) && wake == 4);
	vg_sched_reap(&dev, 2);
	CHECK(vg_sched_turn(&dev, 0, 20001, &wake));
	CHECK(sums_right());
	return true;
}

static bool run_list(void)
{
	struct vg_config c = plain;
	vg_procs wake;
	int b;

	c.switch_ns = 0;
	setup_groups(c, 3);
	slice(0, 1000, 0);
	slice(1, 300, 0);
	slice(2, 50, 0);
	/* the order of their kernels does not matter */
	submit(2, 512, 100, 0);
	CHECK(turn(2, 10));
	b = submit(1, 512, 100, 0);
	submit(0, 512, 100, 0);
	vg_sched_dispatch(&dev);
	vg_sched_update(&dev, 10);
	CHECK(turn(2, 59) && !turn(0, 59) && !turn(1, 59));
	CHECK(!vg_sched_turn(&dev, 1, 60, &wake) && wake == 1);
	CHECK(turn(0, 60) && turn(0, 1059) && !turn(0, 1060));
	CHECK(turn(1, 1060) && turn(1, 1359) && !turn(1, 1360));
	CHECK(turn(2, 1360) && turn(2, 1409) && !turn(2, 1410));
	CHECK(turn(0, 1410));
	/* without work the second group is not in the round */
	vg_sched_remove(&dev, b);
	CHECK(vg_sched_update(&dev, 2410) == 4 && turn(2, 2410));
	CHECK(!turn(2, 2460) && turn(0, 2460));
	/* it comes again at its place: behind the first one, whichever has the turn */
	submit(1, 512, 100, 0);
	vg_sched_update(&dev, 2500);
	CHECK(!turn(1, 2500) && turn(0, 3459) && !turn(0, 3460) && turn(1, 3460));
	return true;
}

static bool switches(void)
{
	int b;

	setup_groups(plain, 2);
	submit(0, 512, 100, 0);
	CHECK(turn(0, 1000));	/* nothing was there before */
	b = submit(1, 512, 100, 0);
	vg_sched_update(&dev, 1000);
	CHECK(!turn(0, 2000) && !turn(1, 2000));
	/* nobody's blocks step in the middle of a switch; the slice begins behind it */
	CHECK(!turn(0, 2199) && !turn(1, 2199));
	CHECK(turn(1, 2200) && turn(1, 3199) && !turn(1, 3200));
	CHECK(!turn(0, 3399) && turn(0, 3400));
	/* alone, one slice after another without a switch */
	vg_sched_remove(&dev, b);
	for (uint64_t t = 3400; t < 20000; t += 100)
		CHECK(turn(0, t));
	/* idle in between: it was still the last one */
	vg_sched_remove(&dev, 0);
	CHECK(!vg_sched_update(&dev, 20000) && dev.active == VG_NOBODY);
	submit(0, 512, 100, 0);
	CHECK(turn(0, 30000));
	vg_sched_remove(&dev, 0);
	vg_sched_update(&dev, 30001);
	submit(1, 512, 100, 0);
	CHECK(!turn(1, 40000) && turn(1, 40200));
	return true;
}

static bool feeding(void)
{
	int a;

	setup_groups(plain, 2);
	a = submit(0, 512, 1, 0);
	CHECK(turn(0, 1000));
	submit(1, 512, 1, 0);
	dev.proc[0].feeding = 1;
	vg_sched_remove(&dev, a);
	CHECK(!vg_sched_update(&dev, 1100) && !turn(1, 1100));
	a = submit(0, 512, 1, 0);
	dev.proc[0].feeding = 0;
	CHECK(!vg_sched_update(&dev, 1200) && turn(0, 1200));
	vg_sched_remove(&dev, a);
	CHECK(vg_sched_update(&dev, 1300) == 2);
	/* a process that dies so does not keep the turn */
	dev.proc[0].feeding = 1;
	CHECK(vg_sched_has_work(&dev, group_of(0)));
	vg_sched_reap(&dev, 0);
	CHECK(!vg_sched_has_work(&dev, group_of(0)) && !dev.proc[0].feeding);
	return true;
}

static bool set_while_running(void)
{
	struct vg_config c = plain;

	c.switch_ns = 0;
	setup_groups(c, 2);
	submit(0, 512, 100, 0);
	submit(1, 512, 100, 0);
	CHECK(turn(0, 1000));
	slice(0, 5000, 1500);	/* longer: from the next turn on */
	CHECK(turn(0, 1999) && !turn(0, 2000));
	CHECK(turn(1, 2000));
	slice(1, 600, 2100);	/* shorter: this turn too, counted from its beginning */
	CHECK(turn(1, 2599) && !turn(1, 2600));
	CHECK(turn(0, 2600) && turn(0, 7599));
	/* and over, if that is past */
	CHECK(vg_sched_set_slice(&dev, group_of(0), 100, 7599) == 2);
	CHECK(!turn(0, 7599) && turn(1, 7599));
	slice(0, 700, 7600);	/* another group's leaves the running one alone */
	CHECK(turn(1, 8198) && !turn(1, 8199));
	CHECK(turn(0, 8199) && turn(0, 8898) && !turn(0, 8899));
	return true;
}

static bool solo(void)
{
	struct vg_config c = plain;

	c.switch_ns = 0;
	setup_groups(c, 2);
	submit(0, 512, 100, 0);
	CHECK(turn(0, 1000) && dev.alone);
	/* nobody looks for long; the other one's kernel comes in the middle of the seventh slice */
	submit(1, 512, 100, 0);
	vg_sched_update(&dev, 7700);
	CHECK(!dev.alone && dev.slice_end == 8000);
	CHECK(turn(0, 7999) && !turn(1, 7999) && !turn(0, 8000) && turn(1, 8000));
	return true;
}

#define PLAY_NS		44000000u
#define TICKS		(PLAY_NS / 100)

/* On a clock of 100 ns each process steps at every tick that it may: how often each did */
static void play(unsigned int procs, uint64_t from, unsigned int *ran)
{
	memset(ran, 0, procs * sizeof(*ran));
	for (uint64_t t = from; t < from + PLAY_NS; t += 100)
		for (unsigned int p = 0; p < procs; p++)
			ran[p] += turn(p, t);
}

static bool starvation(void)
{
	struct vg_config c = plain;
	unsigned int ran[3];
	uint64_t t = 1000;

	c.timeslice_ns = 2000000;
	c.switch_ns = 200000;
	setup_groups(c, 3);
	submit(0, 512, 100, 0);
	submit(1, 512, 100, 0);
	play(3, t, ran);
	/* a tenth goes into switches */
	CHECK(ran[0] + ran[1] > TICKS / 100 * 88 && ran[0] + ran[1] < TICKS / 100 * 93);
	CHECK(ran[0] > TICKS / 100 * 40 && ran[1] > TICKS / 100 * 40 && !ran[2]);
	t += PLAY_NS;
	slice(0, 1000, t);
	slice(1, 1000, t);
	play(3, t, ran);
	CHECK(ran[0] + ran[1] < TICKS / 100 && ran[0] && ran[1]);
	/* a long one beside a tiny one has nearly all, and the tiny one does not wait for ever */
	t += PLAY_NS;
	slice(0, 10000000, t);
	play(3, t, ran);
	CHECK(ran[0] > TICKS / 100 * 94 && ran[1] && ran[1] < TICKS / 1000);
	return true;
}

static bool nobody_begins(void)
{
	uint64_t end;

	setup_groups(plain, 2);
	submit(0, 512, 100, 0);
	submit(1, 512, 100, 0);
	CHECK(turn(0, 1000) && !turn(0, 2000));
	end = 2200 + VG_BEGIN_NS;
	CHECK(!turn(0, end - 1) && !turn(0, end) && !turn(1, end));
	CHECK(turn(0, end + 200));
	return true;
}

static bool owner_dies(void)
{
	setup_groups(plain, 3);
	slice(1, 1000000, 0);
	submit(1, 512, 100, 0);
	CHECK(turn(1, 1000));
	submit(0, 512, 100, 0);
	submit(2, 512, 100, 0);
	CHECK(!turn(0, 1500));
	vg_sched_reap(&dev, 1);
	/* the next one in the list, behind the dead one's place */
	CHECK(vg_sched_update(&dev, 1600) == 4 && !turn(2, 1600) && turn(2, 1800));
	CHECK(!turn(2, 2800) && turn(0, 3000) && !turn(0, 4000) && turn(2, 4200));
	/*
	 * a new process in the dead one's slot has a new group, the last in the list, with a slice
	 * of its own
	 */
	join(1, VG_NO_MPS);
	CHECK(dev.group[group_of(1)].slice_ns == 1000);
	submit(1, 512, 100, 0);
	CHECK(!turn(2, 5200) && turn(1, 5400) && !turn(1, 6400) && turn(0, 6600));
	CHECK(sums_right());
	return true;
}

static bool preempting(void)
{
	struct vg_config c = plain;

	c.switch_ns = 0;
	setup_groups(c, 2);
	submit(0, 512, 100, 0);
	CHECK(turn(0, 1000));
	CHECK(!vg_sched_preempt(&dev, group_of(0), 1100) && turn(0, 1100));
	submit(1, 512, 100, 0);
	vg_sched_update(&dev, 1200);
	CHECK(!vg_sched_preempt(&dev, group_of(1), 1300) && turn(0, 1300));
	CHECK(vg_sched_preempt(&dev, group_of(0), 1400) == 2 && turn(1, 1400) && !turn(0, 1400));
	return true;
}

/* 0 and 1 are clients of one server, 2 of another, 3 is without MPS */
static bool planes(void)
{
	int a, b, e, f;

	setup(plain, 0);
	join(0, 7);
	join(1, 7);
	join(2, 8);
	join(3, VG_NO_MPS);
	CHECK(group_of(0) == group_of(1) && group_of(0) != group_of(2) &&
	      group_of(2) != group_of(3));
	a = submit(0, 512, 3, 0);
	b = submit(1, 512, 3, 0);
	e = submit(2, 512, 6, 0);
	f = submit(3, 512, 6, 0);
	CHECK(vg_sched_dispatch(&dev) == 15);
	CHECK(held(a) == 3 && held(b) == 1 && held(e) == 4 && held(f) == 4);
	CHECK(turn(0, 1000) && turn(1, 1000) && !turn(2, 1000) && !turn(3, 1000));
	CHECK(!turn(0, 2000) && !turn(1, 2000) && turn(2, 2200));
	CHECK(!turn(2, 3200) && turn(3, 3400));
	/* the first plane's turn again: both are woken */
	CHECK(vg_sched_update(&dev, 4400) == 3 && turn(1, 4600) && turn(0, 4600));
	/* one slice for both, from the first look on */
	CHECK(turn(0, 5599) && !turn(0, 5600) && !turn(1, 5600));
	/* a client dies in its turn: the other one goes on in it, with the places of both */
	CHECK(turn(2, 5800) && !turn(2, 6800) && turn(3, 7000) && !turn(3, 8000) && turn(0, 8200));
	vg_sched_reap(&dev, 0);
	CHECK(vg_sched_dispatch(&dev) == 2 && held(b) == 3 && turn(1, 8300) && turn(1, 9199) &&
	      !turn(1, 9200));
	CHECK(sums_right());
	return true;
}

static bool joining(void)
{
	uint32_t g;

	setup(plain, 0);
	join(0, 7);
	g = group_of(0);
	slice(0, 123, 0);
	join(1, 7);
	vg_sched_reap(&dev, 0);
	join(2, 7);
	CHECK(group_of(2) == g && dev.group[g].slice_ns == 123);
	vg_sched_reap(&dev, 1);
	vg_sched_reap(&dev, 2);
	join(3, 7);
	CHECK(dev.group[group_of(3)].slice_ns == 1000 && dev.group[group_of(3)].id == 2);
	vg_sched_reap(&dev, 3);
	for (unsigned int i = 0; i < VG_PROCS_MAX; i++)
		join(i, VG_NO_MPS);
	for (unsigned int i = 0; i < VG_PROCS_MAX; i++)
		for (unsigned int j = 0; j < i; j++)
			CHECK(group_of(i) != group_of(j));
	return true;
}

/* Random kernels of random processes: never above an SM, nothing lost, everything ends */
static bool random_walk(void)
{
	uint64_t x = 88172645463325252ULL;
	int live[64], n = 0;

	for (int mode = 0; mode < 2; mode++) {
		struct vg_config c = plain;

		c.carveout = 1;
		if (mode)
			setup(c, 4);
		else
			setup_groups(c, 4);
		n = 0;
		for (int step = 0; step < 20000 || n; step++) {
			uint32_t r;

			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			r = (uint32_t)(x >> 20);
			if (step < 20000 && n < 64 && r % 4 == 0) {
				struct vg_need k = need(32 * (1 + r / 4 % 16), (r >> 8) % 5 * 9000);

				live[n] = vg_sched_submit(&dev, (r >> 12) % 4, &k,
							  1 + (r >> 14) % 40,
							  -(int)((r >> 20) % 6));
				n += live[n] >= 0;
			} else if (n) {
				int i = (int)(r / 4 % (uint32_t)n), e = live[i];
				unsigned int s = (r >> 16) % c.sms, tries;

				while (vg_sched_take(&dev, e) >= 0)
					;
				for (tries = 0; tries < c.sms && !dev.entry[e].held[s]; tries++)
					s = (s + 1) % c.sms;
				if (dev.entry[e].held[s])
					vg_sched_done(&dev, e, s);
				if (dev.entry[e].done == dev.entry[e].total) {
					vg_sched_remove(&dev, e);
					live[i] = live[--n];
				}
			}
			vg_sched_dispatch(&dev);
			for (unsigned int p = 0; p < VG_GROUPS_MAX; p++)
				for (unsigned int i = 0; i < c.sms; i++) {
					const struct vg_sm *sm = &dev.sm[p][i];

					CHECK(sm->blocks <= c.sm_blocks &&
					      sm->threads <= c.sm_threads &&
					      sm->regs <= c.sm_regs && sm->smem <= c.sm_smem);
				}
			if (step % 256 == 0)
				CHECK(sums_right());
			CHECK(step < 200000);
		}
		for (unsigned int p = 0; p < VG_GROUPS_MAX; p++)
			for (unsigned int i = 0; i < c.sms; i++)
				CHECK(!dev.sm[p][i].blocks && !dev.sm[p][i].threads &&
				      !dev.sm[p][i].smem);
	}
	return true;
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	ok(fit(), "how many blocks fit an SM");
	ok(breadth_first(), "blocks go to the emptiest SM");
	ok(leftover(), "the next kernel gets what the first leaves over");
	ok(head_of_line(), "a kernel whose blocks do not fit holds back later ones");
	ok(priorities(), "blocks of higher priority go first, resident ones stay");
	ok(whole(), "a cooperative grid is placed whole or not at all");
	ok(carveout(), "SMs with another carve-out take no block until they are empty");
	ok(finishing(), "a finished kernel leaves nothing");
	ok(full_queue(), "a full queue refuses");
	ok(reaping(), "a dead process's places go to the living");
	ok(repairing(), "sums are right again after a death inside the lock");
	ok(time_slices(), "without MPS processes take turns");
	ok(run_list(), "three groups take turns in the order of creation, each with its slice; "
	       "idle ones are skipped");
	ok(switches(), "a switch takes its time, and only if the group changes");
	ok(feeding(), "between two kernels of a stream the turn stays");
	ok(set_while_running(), "a new slice counts from the next turn on, a "
	       "shorter one at once");
	ok(solo(), "slices of a group without competition follow each other");
	ok(starvation(), "two busy groups with tiny slices hardly run, one beside a long slice "
	       "does not disturb");
	ok(nobody_begins(), "a turn that no process begins goes to the next group");
	ok(owner_dies(), "a group that dies in its slice leaves the device to the others");
	ok(preempting(), "preemption ends a turn early, if another group has work");
	ok(planes(), "clients of one MPS server share in space, beside processes "
	       "without MPS in time");
	ok(joining(), "groups live as long as a process is in them");
	ok(random_walk(), "random kernels: no SM is overfull, nothing is lost");
	return done();
}
