// SPDX-License-Identifier: GPL-2.0-only
/* The core's helpers of userspace; under KUnit the same cases hold for the kernel's. */
#include "world.h"

static bool good;

#define EXPECT(x) do { \
	if (!(x)) { \
		printf("# %s:%d: %s\n", __FILE__, __LINE__, #x); \
		good = false; \
	} \
} while (0)

#include "selftests/kunit/shim-cases.h"

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	{ "scnprintf", check_scnprintf }, { "numbers", check_numbers }, { "lists", check_lists },
	{ "sorting", check_sorting },
};

int main(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++) {
		good = true;
		tests[i].run();
		ok(good, "%s", tests[i].name);
	}
	return done();
}
