/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VGPU_TAP_H
#define VGPU_TAP_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* one count for all files of a test */
__attribute__((weak)) unsigned int tap_n, tap_bad;

static inline bool tap_ok(bool good, const char *name)
{
	tap_bad += !good;
	printf("%sok %u - %s\n", good ? "" : "not ", ++tap_n, name);
	fflush(stdout);
	return good;
}

static inline void tap_skip(const char *name, const char *why)
{
	printf("ok %u - %s # SKIP %s\n", ++tap_n, name, why);
}

static inline int tap_end(void)
{
	printf("1..%u\n", tap_n);
	return tap_bad ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Inside a test function that returns bool */
#define CHECK(c) \
	do { \
		if (!(c)) { \
			printf("# %s:%d: %s\n", __FILE__, __LINE__, #c); \
			return false; \
		} \
	} while (0)

#endif /* VGPU_TAP_H */
