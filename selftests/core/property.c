// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random events from a seed, under each policy. `core-property SEED STEPS [POLICY [batches]]`
 * replays one run; with CORE_EVENTS=N in the environment each policy has about N events.
 */
#include "events.h"

static u64 steps_done;

/* Returns the hash of all actions */
static u64 run(u64 seed, u64 steps, const char *policy)
{
	begin(seed, policy);
	for (steps_done = 0; steps_done < steps && !failure; steps_done++) {
		later = batches;
		step(seed % 4 != 3);
		if (batches && below(6) && steps_done + 1 < steps)
			continue;
		gsc_commit(dev, clock_ns);
		after();
	}
	later = false;
	if (!failure)
		give_back();
	if (failure)
		printf("# %s at step %llu; again: core-property %llu %llu %s%s\n", failure,
		       steps_done, seed, steps, policy, batches ? " batches" : "");
	return trace;
}

/* Many seeds under one policy */
static void test_policy(const char *policy, u64 seeds, u64 steps, bool flat)
{
	u64 grants = 0, evicts = 0, grows = 0, holds = 0, waits = 0, shared = 0, seed,
		hash, last = 0;
	u64 turns = 0, sliced = 0, lower = 0, drains = 0, emptied = 0, sized = 0, midway = 0;
	u64 adopted = 0, planned = 0, expired = 0, measured = 0;
	bool fine = true, same = true, differ = true;
	char name[128];

	for (seed = 1; seed <= seeds; seed++) {
		hash = run(seed, steps, policy);
		fine &= !failure;
		grants += n_grant;
		evicts += n_evict;
		grows += n_grow;
		holds += n_hold;
		waits += n_wait;
		shared += n_shared;
		turns += n_turn;
		sliced += n_sliced;
		lower += n_lower;
		drains += n_drain;
		emptied += n_emptied;
		sized += n_sized;
		midway += n_midway;
		adopted += n_adopted;
		planned += n_planned;
		expired += n_expired;
		measured += gsc_delay_count(&dev->delays);
		if (seed <= 6)
			same &= hash == run(seed, steps, policy);
		differ &= hash != last;
		last = hash;
	}
	printf("# %s: %llu grants, %llu evictions, %llu growths, %llu holds, %llu windows shared\n",
	       policy, grants, evicts, grows, holds, shared);
	printf("# %s: %llu turns; after %llu events bands had slices, after %llu several lower "
	       "ones, after %llu one drained\n", policy, turns, sliced, lower, drains);
	printf("# %s: %llu times a running task had no window since its band's gate was closed, "
	       "%llu times a client had a smaller size\n", policy, emptied, sized);
	printf("# %s: %llu times a client was to launch resumable kernels, %llu evictions measured\n",
	       policy, midway, measured);
	printf("# %s: a plan was in force after %llu events, %llu expired\n", policy, planned,
	       expired);
	fine &= planned && expired;
	if (batches) {
		fine &= same && differ && grants && evicts && grows && waits && shared;
		fine &= adopted || gsc_policy_find(policy)->no_leases;
		fine &= measured != 0;
		snprintf(name, sizeof(name),
			 "%s: every invariant after commits of several events, all given back",
			 policy);
		ok(fine && (flat || (holds && turns)), "%s", name);
		return;
	}
	snprintf(name, sizeof(name),
		 "%s: every invariant after every event, all given back at the end", policy);
	ok(fine, "%s", name);
	snprintf(name, sizeof(name), "%s: same seed, same actions", policy);
	ok(same, "%s", name);
	snprintf(name, sizeof(name), "%s: other seed, other actions", policy);
	ok(differ, "%s", name);
	snprintf(name, sizeof(name), "%s: the events reach grants, evictions, growths%s, waiting "
		 "and shared windows", policy, flat ? "" : ", holds, smaller sizes");
	ok(grants && evicts && grows && (flat ? !sized : holds && sized) && waits && shared, "%s", name);
	snprintf(name, sizeof(name), "%s: and bands with slices%s", policy,
		 flat ? ", all equal" : ", several lower ones, turns, drains and windows "
					"closed by them");
	ok(sliced && (flat ? !lower && !emptied : turns && lower && drains && emptied), "%s", name);
	snprintf(name, sizeof(name), "%s: %s", policy, flat ? "no resumable kernels" :
		 "and resumable kernels");
	/* chaos has few pauses in which nobody above has work */
	ok(flat ? !midway : midway != 0, "%s", name);
}

#define STEPS	4000

/* Half of the events one by one, half of them in batches */
static void test_policies(void)
{
	static const struct {
		const char *name;
		u64 seeds;
		bool flat;
	} policies[] = {
		{ "hpf", 64, false }, { "chaos", 24, false }, { "ffs", 24, true },
		{ "wfq", 24, true }, { "srt", 24, false }, { "corun", 24, true },
	};
	const char *events = getenv("CORE_EVENTS");
	u64 seeds;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(policies); i++) {
		seeds = policies[i].seeds;
		if (events)
			seeds = max((u64)strtoull(events, NULL, 0) / STEPS / 2, seeds);
		test_policy(policies[i].name, seeds, STEPS, policies[i].flat);
	}
}

int main(int argc, char **argv)
{
	u64 seed, hash;

	if (!make_world())
		return 1;
	if (argc >= 3) {
		seed = strtoull(argv[1], NULL, 0);
		batches = argc > 4;
		hash = run(seed, strtoull(argv[2], NULL, 0), argc > 3 ? argv[3] : "hpf");
		printf("# seed %llu: hash %016llx, %u grants, %u evictions, %u growths, %u holds\n",
		       seed, hash, n_grant, n_evict, n_grow, n_hold);
		ok(!failure, "replay");
	} else {
		test_policies();
		batches = true;
		test_policies();
	}
	free(dev);
	free(group);
	free(client);
	return done();
}
