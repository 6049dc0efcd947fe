/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Results of a test program as TAP; one count for all of its files */
#ifndef SELFTESTS_TAP_H
#define SELFTESTS_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

__attribute__((weak)) unsigned int tap_n, tap_failed;

/* One result, by name. Returns @good. */
__attribute__((format(printf, 2, 3))) static inline bool ok(bool good, const char *fmt, ...)
{
	va_list ap;

	printf("%sok %u - ", good ? "" : "not ", ++tap_n);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
	tap_failed += !good;
	return good;
}

static inline void skip(const char *name, const char *why)
{
	printf("ok %u - %s # SKIP %s\n", ++tap_n, name, why);
}

/* At the end: the plan. Returns the exit status. */
static inline int done(void)
{
	printf("1..%u\n", tap_n);
	return tap_failed != 0;
}

/* Inside a test function that returns bool */
#define CHECK(c) \
	do { \
		if (!(c)) { \
			printf("# %s:%d: %s\n", __FILE__, __LINE__, #c); \
			return false; \
		} \
	} while (0)

#endif /* SELFTESTS_TAP_H */
