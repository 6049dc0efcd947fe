// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The number of workers an SM that libgsched/cuda/code/tune.c comes to, for kernels whose time is a
 * function of it.
 */
#include <stdlib.h>
#include "libgsched/cuda/code/tune.h"
#include "selftests/tap.h"

#define FULL 32

static uint64_t state = 88172645463325252ull;

static double noise(double by)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return 1 + by * ((double)(state >> 11) / (double)(1ull << 53) - 0.5);
}

typedef double (*model_fn)(unsigned int workers, uint32_t launch);

static double busy(unsigned int workers, uint32_t launch)
{
	return 1e6 * FULL / workers + 0 * launch;
}

static double flat(unsigned int workers, uint32_t launch)
{
	return 1e6 + 0 * (workers + launch);
}

/* best at 20, 15 % better than with all */
static double thrashes(unsigned int workers, uint32_t launch)
{
	double off = ((double)workers - 20) / 12;

	return 1e6 * (0.85 + 0.15 * off * off) + 0 * launch;
}

/* what is worth having, but only just: 7/8 and no fewer */
static double dips(unsigned int workers, uint32_t launch)
{
	return (workers == 28 ? 0.95e6 : 1e6) + 0 * launch;
}

/* every second launch has ten times as much to do; and one in seven */
static double alternates(unsigned int workers, uint32_t launch)
{
	return 1e6 * FULL / workers * (launch % 2 ? 10 : 1) * (launch % 7 ? 1 : 3);
}

/* levels of a graph: a hump every 12 launches */
static double levels(unsigned int workers, uint32_t launch)
{
	static const double size[12] = { 0.01, 0.05, 0.3, 2, 8, 15, 9, 3, 1, 0.3, 0.1, 0.02 };

	return busy(workers, 0) * size[launch % 12];
}

static struct result {
	unsigned int best, trials, launches;
} run(model_fn model, double by, unsigned int full, unsigned int batch, unsigned int most)
{
	struct gi_tune t = { 0 };
	struct result r = { 0 };
	unsigned int workers[64], i;

	while (r.launches < most && (gi_tune_tries(&t) || r.launches < 64)) {
		/* as many as a program queues before the first is over */
		for (i = 0; i < batch; i++)
			workers[i] = gi_tune_workers(&t, full, r.launches + i);
		for (i = 0; i < batch; i++) {
			r.trials += workers[i] != gi_tune_workers(&t, full, 0);
			gi_tune_took(&t, full, workers[i],
				     (uint64_t)(model(workers[i], r.launches + i) * noise(by)));
		}
		r.launches += batch;
	}
	r.best = gi_tune_workers(&t, full, 1);
	return r;
}

int main(void)
{
	struct gi_tune t = { 0 };
	struct result r;
	unsigned int i, off;

	r = run(busy, 0.02, FULL, 1, 1000);
	ok(r.best == FULL && r.trials <= 8, "a kernel that needs all workers keeps them: %u, %u "
	   "launches had fewer", r.best, r.trials);
	r = run(thrashes, 0.01, FULL, 1, 1000);
	ok(r.best >= 20 && r.best <= 24,
	   "one that is faster with 20 of 32 comes to %u in %u launches", r.best, r.launches);
	for (i = off = 0; i < 200; i++) {
		r = run(thrashes, 0.1, FULL, 1 + i % 3, 1000);
		off += r.best > 28 || r.best < 16;
	}
	ok(off < 20, "also where other programs disturb it by 10 %%: not %u times in 200", off);
	r = run(thrashes, 0.01, FULL, 16, 1000);
	ok(r.best >= 20 && r.best <= 24, "also when 16 launches are queued at a time: %u in %u",
	   r.best, r.launches);
	r = run(dips, 0.005, FULL, 1, 1000);
	ok(r.best == 28, "a dip at 28: %u", r.best);
	for (i = off = 0; i < 200; i++) {
		r = run(levels, 0.1, FULL, 1 + i % 5, 1000);
		off += r.best != FULL;
	}
	ok(!off, "work that comes in humps misleads it %u times in 200", off);
	for (i = off = 0; i < 200; i++) {
		r = run(alternates, 0.05, FULL, 1 + i % 3, 1000);
		off += r.best != FULL;
	}
	ok(!off, "work that alternates misleads it %u times in 200", off);
	for (i = off = 0; i < 1000; i++) {
		r = run(flat, 0.2, FULL, 1, 1000);
		off += r.best != FULL;
	}
	ok(off < 30, "where the number makes no difference noise of 20 %% changes it %u "
	   "times in 1000", off);
	for (i = off = 0; i < 1000; i++) {
		r = run(busy, 0.3, FULL, 1, 1000);
		off += r.best != FULL;
	}
	ok(off < 10, "noise takes a worker from a kernel that needs it %u times in 1000", off);

	ok(gi_tune_workers(&t, 7, 3) == 7, "without times all that fit");
	for (i = 0; i < 40; i++)
		gi_tune_took(&t, 3, 3, 1000);
	ok(gi_tune_workers(&t, 3, 1) == 3 && gi_tune_tries(&t), "of three nobody is missed");
	for (i = 0; i < 3; i++)
		gi_tune_took(&t, 8, 8, 1000);
	ok(gi_tune_workers(&t, 8, 1) == 7 && gi_tune_workers(&t, 8, 0) == 8 &&
	   gi_tune_workers(&t, 8, 3) == 8, "the trial has its turns");
	gi_tune_took(&t, 8, 5, 1);
	gi_tune_took(&t, 8, 0, 1);
	ok(gi_tune_workers(&t, 8, 1) == 7, "times of other numbers do not count");
	ok(gi_tune_workers(&t, 6, 1) == 6, "and a number above what fits is that");
	for (i = 0; i < 64 && gi_tune_tries(&t); i++)
		gi_tune_took(&t, 8, gi_tune_workers(&t, 8, i),
			     gi_tune_workers(&t, 8, i) == 8 ? 1000 : 1100);
	ok(!gi_tune_tries(&t) && gi_tune_workers(&t, 8, 1) == 8,
	   "one that loses is given up after %u launches", i);
	t = (struct gi_tune){ 0 };
	gi_tune_took(&t, 8, 8, 1000);
	for (i = 0; i < 64 && gi_tune_tries(&t); i++)
		gi_tune_took(&t, 8, gi_tune_workers(&t, 8, i),
			     gi_tune_workers(&t, 8, i) == 8 ? 1000 : 7000);
	ok(!gi_tune_tries(&t) && i <= 4, "one that loses by far after %u", i);
	for (i = 0; i < 5000 && !gi_tune_tries(&t); i++)
		gi_tune_took(&t, 8, 8, 1000);
	ok(i > 1000 && gi_tune_tries(&t), "and has another chance %u launches later", i);

	for (i = off = 0; i < 4; i++) {
		static const struct {
			unsigned int full, shared;
		} kernel[] = { { 8, 128 }, { 32, 128 }, { 8, 2176 }, { 3, 12416 } };
		unsigned int value = gi_tune_common_carveout(kernel[i].full, kernel[i].shared,
							     1024, 233472);
		unsigned int blocks = 233472 / 100 * value / kernel[i].shared;
		unsigned int bytes = blocks * (kernel[i].shared + 1024);

		/* all their blocks fit, and the step is that of 64 KiB */
		if (kernel[i].full * (kernel[i].shared + 1024) > 32768)
			off += value != 0;
		else
			off += blocks < kernel[i].full || bytes <= 32768 ||
			       bytes + kernel[i].shared + 1024 > 65536;
	}
	ok(!off, "kernels of several programs ask for one carveout: %u do not", off);
	ok(!gi_tune_common_carveout(8, 16384, 1024, 233472) &&
	   !gi_tune_common_carveout(8, 0, 1024, 233472) &&
	   !gi_tune_common_carveout(8, 128, 1024, 0),
	   "but for those that need more, or say nothing");
	ok(gi_tune_carveout(32, 28, 128, 1024, 233472) == 1,
	   "28 blocks of 1152 bytes fit into 32 KiB, 32 do not: %u %%",
	   gi_tune_carveout(32, 28, 128, 1024, 233472));
	ok(!gi_tune_carveout(32, 32, 128, 1024, 233472) &&
	   !gi_tune_carveout(24, 20, 128, 1024, 233472) &&
	   !gi_tune_carveout(32, 28, 0, 1024, 233472) &&
	   !gi_tune_carveout(32, 28, 4480, 1024, 233472) && !gi_tune_carveout(32, 28, 128, 1024, 0),
	   "otherwise the driver chooses");
	return done();
}
