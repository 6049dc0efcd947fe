// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events of the decision core: the policy, the device, whether several events make a commit, then
 * what core-property draws from a seed. Every invariant holds after each commit, what the actions
 * told is what the core believes, and all is given back.
 */
#include "selftests/core/events.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const policies[] = { "hpf", "ffs", "wfq", "srt", "corun", "chaos" };
	const char *policy;

	if (size < 3)
		return 0;
	MUST(dev || make_world(), "no memory");
	policy = policies[data[0] % ARRAY_SIZE(policies)];
	bytes = NULL;
	batches = data[1] & 1;
	later = false;
	begin(data[1] >> 1, policy);
	bytes = data + 2;
	bytes_end = data + size;
	while (bytes < bytes_end && !failure) {
		later = batches;
		step(!(data[1] & 2));
		if (batches && below(6) && bytes < bytes_end)
			continue;
		gsc_commit(dev, clock_ns);
		after();
	}
	later = false;
	if (!failure)
		give_back();
	MUST(!failure, "%s under %s", failure, policy);
	return 0;
}
