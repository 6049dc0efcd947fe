// SPDX-License-Identifier: LGPL-2.1-or-later
/* Pure functions: no driver, no clock. Tested by selftests/libgsched/tune.c. */
#include "code/tune.h"

#define LEAST		4	/* workers per SM, below which there is nothing to tune */
#define EARLY		4	/* pairs after which a trial that mostly loses is ended, */
#define EARLY_WINS	2	/* ... if it won fewer than this */
#define FAR		2	/* pairs after which it is ended if it takes 1.5 times as long */
#define PAIRS		12
#define WINS		10	/* of PAIRS to win: by chance, 1 in 50 do */
#define SHARED_MAX	128	/* bytes per block */
#define SETTLED_MAX	4096	/* launches until tuning begins again, since data change */
/* shared memory of an SM, in bytes, while several programs share the GPU */
#define COMMON		(64 * 1024)

static unsigned int best_of(uint32_t pick)
{
	return pick & 0xff;
}

static unsigned int trial_of(uint32_t pick)
{
	return pick >> 8 & 0xff;
}

static unsigned int next_lower(unsigned int full, unsigned int workers)
{
	unsigned int step = full / 8 ? full / 8 : 1;

	return workers > step && workers - step >= (full + 1) / 2 ? workers - step : 0;
}

unsigned int gi_tune_workers(const struct gi_tune *t, unsigned int full, uint32_t launch)
{
	uint32_t pick = atomic_load_explicit(&t->pick, memory_order_relaxed);
	unsigned int workers = best_of(pick);

	/*
	 * The Thue-Morse sequence: each aligned group of 2^n launches has equally many of both, and
	 * it does not resonate with a period of the program's.
	 */
	if (trial_of(pick) && __builtin_parity(launch))
		workers = trial_of(pick);
	return workers && workers < full ? workers : full;
}

static void try_next(struct gi_tune *t, unsigned int full, unsigned int best)
{
	t->pairs = t->wins = t->since_settled = 0;
	t->sum[0] = t->sum[1] = 0;
	t->n_unpaired[0] = t->n_unpaired[1] = 0;
	atomic_store_explicit(&t->pick, best | next_lower(full, best) << 8, memory_order_relaxed);
}

static void end_trial(struct gi_tune *t, unsigned int best)
{
	t->since_settled = 0;
	atomic_store_explicit(&t->pick, best, memory_order_relaxed);
}

static void compare_pair(struct gi_tune *t, unsigned int full, unsigned int best,
			 unsigned int trial)
{
	t->pairs++;
	t->wins += t->unpaired[1][0] < t->unpaired[0][0];
	t->sum[0] += t->unpaired[0][0];
	t->sum[1] += t->unpaired[1][0];
	t->unpaired[0][0] = t->unpaired[0][1];
	t->unpaired[1][0] = t->unpaired[1][1];
	t->n_unpaired[0]--;
	t->n_unpaired[1]--;
	if ((t->pairs == EARLY && t->wins < EARLY_WINS) ||
	    (t->pairs == FAR && t->sum[1] > t->sum[0] + t->sum[0] / 2))
		end_trial(t, best);
	if (t->pairs < PAIRS)
		return;
	if (t->wins >= WINS && t->sum[1] < t->sum[0] - t->sum[0] / 64)
		try_next(t, full, trial);
	else
		end_trial(t, best);
}

void gi_tune_took(struct gi_tune *t, unsigned int full, unsigned int workers, uint64_t ns)
{
	uint32_t pick = atomic_load_explicit(&t->pick, memory_order_relaxed);
	unsigned int best = best_of(pick), trial = trial_of(pick), which;

	if (full < LEAST || full > 0xff)
		return;
	if (!best || best > full || (!trial && ++t->since_settled >= SETTLED_MAX)) {
		try_next(t, full, full);
		return;
	}
	if (!trial || (workers != best && workers != trial))
		return;
	which = workers == trial;
	/* times without a partner wait; only the last two are near enough to be paired */
	if (t->n_unpaired[which] == 2) {
		t->unpaired[which][0] = t->unpaired[which][1];
		t->n_unpaired[which] = 1;
	}
	t->unpaired[which][t->n_unpaired[which]++] = ns;
	if (t->n_unpaired[!which])
		compare_pair(t, full, best, trial);
}

bool gi_tune_tries(const struct gi_tune *t)
{
	uint32_t pick = atomic_load_explicit(&t->pick, memory_order_relaxed);

	return !pick || trial_of(pick);
}

/*
 * The smallest carveout that holds @bytes. All GPUs of a generation have these sizes, up to their
 * maximum.
 */
static unsigned int carveout_for(unsigned int bytes, unsigned int sm)
{
	static const unsigned int kib[] = { 8, 16, 32, 64, 100, 132, 164, 196, 228 };
	unsigned int i;

	for (i = 0; i < sizeof(kib) / sizeof(*kib) && kib[i] * 1024 < sm; i++)
		if (kib[i] * 1024 >= bytes)
			return kib[i] * 1024;
	return sm;
}

/*
 * The value to request for a carveout of @bytes. The driver seems to take it as the share of the
 * kernel's own bytes, and to add the reserved bytes of as many blocks (H200, driver 580: with 128
 * bytes a block 1 gives 32 KiB, 2 gives 64, 14 gives everything). Rounded down, so as not to reach
 * the next step.
 */
static unsigned int percent_for(unsigned int bytes, unsigned int shared, unsigned int reserved,
				unsigned int sm)
{
	return (unsigned int)((uint64_t)bytes * shared * 100 / (shared + reserved) / sm);
}

unsigned int gi_tune_carveout(unsigned int full, unsigned int workers, unsigned int shared,
			      unsigned int reserved, unsigned int sm)
{
	unsigned int to = carveout_for(workers * (shared + reserved), sm);

	/* measured for the rewriter's own shared memory only; a wrong value costs occupancy */
	if (!sm || !shared || shared > SHARED_MAX ||
	    to >= carveout_for(full * (shared + reserved), sm))
		return 0;
	return percent_for(to, shared, reserved, sm);
}

unsigned int gi_tune_common_carveout(unsigned int full, unsigned int shared, unsigned int reserved,
				     unsigned int sm)
{
	if (!sm || !shared || carveout_for(full * (shared + reserved), sm) >= COMMON)
		return 0;
	/* between this step and the one below: whichever way the driver rounds, it is this one */
	return percent_for(COMMON / 4 * 3, shared, reserved, sm);
}
