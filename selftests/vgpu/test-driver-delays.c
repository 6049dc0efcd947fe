// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Pauses at the entry and the exit of driver calls: nanosleep is ours, so they are counted and take
 * no time
 */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include "test-driver.h"

#define KEPT 64

static __thread long pauses[KEPT];
static __thread unsigned int n_pauses;

__attribute__((visibility("default"))) int nanosleep(const struct timespec *t,
						     struct timespec *left)
{
	if (n_pauses < KEPT)
		pauses[n_pauses] = t->tv_nsec;
	n_pauses++;
	return 0;
}

static void *calls(void *out)
{
	int n;

	n_pauses = 0;
	for (int i = 0; i < KEPT / 2; i++)
		cuDeviceGetCount(&n);
	memcpy(out, pauses, sizeof(pauses));
	return (void *)(uintptr_t)n_pauses;
}

static bool none(void)
{
	int n;

	OK(cuInit(0));
	OK(cuDeviceGetCount(&n));
	CHECK(!n_pauses);
	return true;
}

/* Two threads one after the other, so that each run of the test numbers them alike */
static bool threads(long out[2][KEPT])
{
	OK(cuInit(0));
	for (int i = 0; i < 2; i++) {
		pthread_t t;
		void *n;

		pthread_create(&t, NULL, calls, out[i]);
		pthread_join(t, &n);
		CHECK((uintptr_t)n == KEPT);
	}
	return true;
}

static bool in_range(void)
{
	bool differ = false, rise = false;
	long out[2][KEPT];

	CHECK(threads(out));
	for (int i = 0; i < 2 * KEPT; i++) {
		CHECK(out[0][i % KEPT] >= 0 && out[i / KEPT][i % KEPT] <= 500000);
		differ |= out[0][i % KEPT] != out[1][i % KEPT];
		rise |= out[i / KEPT][i % KEPT] > 250000;
	}
	CHECK(differ && rise);
	return true;
}

static long (*shared)[2][KEPT];
static unsigned int round_;

static bool keep(void)
{
	return threads(shared[round_]);
}

static bool compare(void)
{
	CHECK(!memcmp(shared[0], shared[1], sizeof(*shared)));
	CHECK(memcmp(shared[0], shared[2], sizeof(*shared)));
	return true;
}

static bool refused(void)
{
	IS(NO_DEVICE, cuInit(0));
	return true;
}

void delays_tests(void)
{
	driver_test("", none, "no call pauses without VGPU_DELAYS");
	driver_test("VGPU_DELAYS=7:500", in_range,
		    "VGPU_DELAYS: two pauses a call, in their range, for each thread its own");
	shared = test_shared(3 * sizeof(*shared));
	driver_test("VGPU_DELAYS=7:500", keep, "VGPU_DELAYS with a seed");
	round_ = 1;
	driver_test("VGPU_DELAYS=7:500", keep, "VGPU_DELAYS with the same seed");
	round_ = 2;
	driver_test("VGPU_DELAYS=8:500", keep, "VGPU_DELAYS with another seed");
	ok(compare(), "VGPU_DELAYS: a seed's pauses are always the same, another "
	       "one's are others");
	driver_test("VGPU_DELAYS=7:soon", refused, "VGPU_DELAYS that is no number is refused");
}
