// SPDX-License-Identifier: GPL-2.0-only
/* The core's helpers are the kernel's here; selftests/core/shim.c has the same cases for others. */
#include "kunit.h"

static struct kunit *running;

#define EXPECT(condition) KUNIT_EXPECT_TRUE(running, condition)
#include "shim-cases.h"

#define SHIM_CASE(check) \
	static void shim_##check(struct kunit *test) \
	{ \
		running = test; \
		check_##check(); \
	}

SHIM_CASE(scnprintf)
SHIM_CASE(numbers)
SHIM_CASE(lists)
SHIM_CASE(sorting)

static struct kunit_case cases[] = {
	KUNIT_CASE(shim_scnprintf),
	KUNIT_CASE(shim_numbers),
	KUNIT_CASE(shim_lists),
	KUNIT_CASE(shim_sorting),
	{}
};

static struct kunit_suite suite = {
	.name = "gsched-shim",
	.test_cases = cases,
};

kunit_test_suite(suite);
