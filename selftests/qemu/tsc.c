// SPDX-License-Identifier: LGPL-2.1-or-later
/* Prints the frequency of this machine's TSC in kHz, which is the guest's, too. */
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

static unsigned long long now_ns(unsigned long long *tsc)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	*tsc = __rdtsc();
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

int main(void)
{
	unsigned long long from_tsc, to_tsc, from = now_ns(&from_tsc), to;

	do {
		to = now_ns(&to_tsc);
	} while (to - from < 100000000);
	printf("%llu\n", (to_tsc - from_tsc) * 1000000 / (to - from));
	return 0;
}
