// SPDX-License-Identifier: LGPL-2.1-or-later
/* The scheduler: every decision is driven by hand, no clock and no second thread. Then death, with real processes. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "shm.h"
#include "tap.h"

static const struct vg_config plain = {
	.sms = 4, .sm_threads = 512, .sm_blocks = 16, .sm_regs = 65536, .sm_smem = 100 << 10, .mps = 1, .cc = 90,
	.timeslice_ns = 1000, .mem = 1 << 20,
};
static struct vg_device dev;

static void setup(struct vg_config c, unsigned int procs)
{
	memset(&dev, 0, sizeof(dev));
	vg_sched_init(&dev, &c);
	for (unsigned int i = 0; i < procs; i++)
		dev.proc[i].used = 1;
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
			for (unsigned int i = 0; i < dev.config.sms; i++) {
				const struct vg_sm *a = &copy.sm[p][i], *b = &dev.sm[p][i];

				same &= a->blocks == b->blocks && a->threads == b->threads && a->regs == b->regs && a->smem == b->smem;
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
	CHECK(dev.entry[e].held[0] == 2 && dev.entry[e].held[1] == 2 && dev.entry[e].held[2] == 1 && dev.entry[e].held[3] == 1);
	CHECK(vg_sched_take(&dev, e) == 0 && vg_sched_take(&dev, e) == 0 && vg_sched_take(&dev, e) == 1);
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

static bool carveout(void)
{
	struct vg_config c = plain;
	struct vg_need small, large;
	int a, b;

	c.carveout = 1;
	setup(c, 2);
	small = need(64, 0);
	large = need(64, 20 << 10);
	CHECK(small.carveout == 0 && large.carveout == 100 << 10);
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
	CHECK(!vg_sched_has_work(&dev, 0));
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
	CHECK(dev.entry[a].fresh[1] == 1 && dev.entry[a].placed == 4 && dev.sm[0][1].threads == 512);
	dev.entry[a].fresh[2] = dev.entry[a].held[2] = 0;	/* held by nobody: placed again */
	vg_sched_repair(&dev);
	CHECK(dev.entry[a].placed == 3 && dev.sm[0][2].blocks == 0);
	CHECK(vg_sched_dispatch(&dev) == 1 && held(a) == 4);
	return true;
}

static bool time_slices(void)
{
	struct vg_config c = plain;
	vg_procs wake;
	int a, b;

	c.mps = 0;
	setup(c, 3);
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
	/* whoever is out of work is passed over at once */
	vg_sched_remove(&dev, b);
	CHECK(vg_sched_turn(&dev, 0, 2100, &wake));
	CHECK(vg_sched_turn(&dev, 0, 9000, &wake) && !wake);
	/* and one that dies in its turn */
	submit(2, 512, 1, 0);
	vg_sched_dispatch(&dev);
	CHECK(!vg_sched_turn(&dev, 0, 20000, &wake) && wake == 4);
	vg_sched_reap(&dev, 2);
	CHECK(vg_sched_turn(&dev, 0, 20001, &wake));
	CHECK(sums_right());
	return true;
}

/* Random kernels of random processes: never above an SM, nothing lost, everything ends */
static bool random_walk(void)
{
	uint64_t x = 88172645463325252ULL;
	int live[64], n = 0;

	for (int mode = 0; mode < 2; mode++) {
		struct vg_config c = plain;

		c.mps = mode;
		c.carveout = 1;
		setup(c, 4);
		n = 0;
		for (int step = 0; step < 20000 || n; step++) {
			uint32_t r;

			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			r = (uint32_t)(x >> 20);
			if (step < 20000 && n < 64 && r % 4 == 0) {
				struct vg_need k = need(32 * (1 + r / 4 % 16), (r >> 8) % 5 * 9000);

				live[n] = vg_sched_submit(&dev, (r >> 12) % 4, &k, 1 + (r >> 14) % 40, -(int)((r >> 20) % 6));
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
			for (unsigned int p = 0; p < VG_PROCS_MAX; p++)
				for (unsigned int i = 0; i < c.sms; i++) {
					const struct vg_sm *sm = &dev.sm[p][i];

					CHECK(sm->blocks <= c.sm_blocks && sm->threads <= c.sm_threads && sm->regs <= c.sm_regs &&
					      sm->smem <= c.sm_smem);
				}
			if (step % 256 == 0)
				CHECK(sums_right());
			CHECK(step < 200000);
		}
		for (unsigned int p = 0; p < VG_PROCS_MAX; p++)
			for (unsigned int i = 0; i < c.sms; i++)
				CHECK(!dev.sm[p][i].blocks && !dev.sm[p][i].threads && !dev.sm[p][i].smem);
	}
	return true;
}

/* The shared object, with processes that die */

static char name[64];

static struct vg_device *map(void)
{
	char err[256];
	struct vg_device *d = vg_shm_map(name, &plain, err, sizeof(err));

	if (!d)
		printf("# %s\n", err);
	return d;
}

/* A child that takes a slot, fills the device and then does what @how says; it has done so when the pipe is read */
static pid_t child(const char *how)
{
	int ready[2];
	char c;
	pid_t pid;

	if (pipe(ready))
		return -1;
	pid = fork();
	if (!pid) {
		struct vg_device *d = map();
		struct vg_need n = { .threads = 512 };
		int slot = d ? vg_shm_enter(d) : -1;

		if (slot < 0)
			_exit(1);
		vg_shm_lock(d);
		vg_sched_submit(d, (uint32_t)slot, &n, 100, 0);
		vg_sched_dispatch(d);
		if (strcmp(how, "die in the lock"))
			vg_shm_unlock(d);
		if (!strcmp(how, "leave"))
			vg_shm_leave(d, (uint32_t)slot);
		if (write(ready[1], "", 1) != 1)
			_exit(1);
		if (!strcmp(how, "leave"))
			_exit(0);
		for (;;)
			pause();
	}
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1)
		printf("# the child did not start\n");
	close(ready[0]);
	return pid;
}

static bool after(const char *how, bool kill_it)
{
	struct vg_device *d = map();
	struct vg_need n = { .threads = 512 };
	int slot, e;
	pid_t pid;

	CHECK(d);
	slot = vg_shm_enter(d);
	CHECK(slot >= 0);
	pid = child(how);
	CHECK(pid > 0);
	if (kill_it)
		kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	vg_shm_lock(d);	/* repairs what was left by one that died inside */
	vg_shm_reap_dead(d, (uint32_t)slot);
	e = vg_sched_submit(d, (uint32_t)slot, &n, 4, 0);
	vg_sched_dispatch(d);
	CHECK(d->entry[e].placed == 4);
	for (uint32_t i = 0; i < VG_PROCS_MAX; i++)
		CHECK(d->proc[i].used == (i == (uint32_t)slot));
	vg_shm_unlock(d);
	vg_shm_leave(d, (uint32_t)slot);
	vg_shm_unmap(d);
	return true;
}

static bool leaves(void)
{
	return after("leave", false);
}

static bool killed(void)
{
	return after("sit", true);
}

static bool killed_inside(void)
{
	return after("die in the lock", true);
}

/* Alone again, a device takes the new shape; in use, it keeps its own */
static bool shape(void)
{
	struct vg_config other = plain;
	struct vg_device *d, *e;
	char err[256];
	int slot;

	d = map();
	CHECK(d);
	slot = vg_shm_enter(d);
	other.sms = 9;
	e = vg_shm_map(name, &other, err, sizeof(err));
	CHECK(e && e->config.sms == 4);
	vg_shm_leave(d, (uint32_t)slot);
	vg_shm_unmap(e);
	e = vg_shm_map(name, &other, err, sizeof(err));
	CHECK(e && e->config.sms == 9);
	vg_shm_unmap(e);
	vg_shm_unmap(d);
	return true;
}

static bool environment(void)
{
	static const char *const bad[][2] = {
		{ "VGPU_SMS", "0" }, { "VGPU_SMS", "-1" }, { "VGPU_SMS", "many" }, { "VGPU_SMS", "257" }, { "VGPU_MPS", "2" },
		{ "VGPU_SM_BLOCKS", "33" }, { "VGPU_TIMESLICE_US", "1e3" }, { "VGPU_SM_THREADS", "99999999999999999999" },
	};
	struct vg_config c;
	char err[256];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		setenv(bad[i][0], bad[i][1], 1);
		CHECK(!vg_config_from_env(&c, err, sizeof(err)) && strstr(err, bad[i][0]));
		unsetenv(bad[i][0]);
	}
	setenv("VGPU_SMS", "3", 1);
	setenv("VGPU_MPS", "0", 1);
	CHECK(vg_config_from_env(&c, err, sizeof(err)) && c.sms == 3 && !c.mps && c.sm_threads == 512);
	unsetenv("VGPU_SMS");
	unsetenv("VGPU_MPS");
	return true;
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	snprintf(name, sizeof(name), "/vgpu-test-sched-%d", (int)getpid());
	tap_ok(fit(), "how many blocks fit an SM");
	tap_ok(breadth_first(), "blocks go to the emptiest SM");
	tap_ok(leftover(), "the next kernel gets what the first leaves over");
	tap_ok(head_of_line(), "a kernel whose blocks do not fit holds back later ones");
	tap_ok(priorities(), "blocks of higher priority go first, resident ones stay");
	tap_ok(carveout(), "SMs with another carve-out take no block until they are empty");
	tap_ok(finishing(), "a finished kernel leaves nothing");
	tap_ok(full_queue(), "a full queue refuses");
	tap_ok(reaping(), "a dead process's places go to the living");
	tap_ok(repairing(), "sums are right again after a death inside the lock");
	tap_ok(time_slices(), "without MPS processes take turns");
	tap_ok(random_walk(), "random kernels: no SM is overfull, nothing is lost");
	tap_ok(environment(), "wrong variables are named");
	tap_ok(leaves(), "shared: a process that leaves gives everything back");
	tap_ok(killed(), "shared: a killed process's blocks are given back");
	tap_ok(killed_inside(), "shared: one that is killed inside the lock too");
	tap_ok(shape(), "shared: the device changes shape only when nobody uses it");
	shm_unlink(name);
	return tap_end();
}
