/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* TAP: ok("what", condition) for each result, done() at the end. */
#ifndef SELFTESTS_LIBGSCHED_TAP_H
#define SELFTESTS_LIBGSCHED_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

static int tap_n, tap_failed;

static inline bool ok(bool good, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static inline bool ok(bool good, const char *fmt, ...)
{
	va_list ap;

	printf("%sok %d - ", good ? "" : "not ", ++tap_n);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
	tap_failed += !good;
	return good;
}

static inline void skip(const char *what, const char *why)
{
	printf("ok %d - %s # SKIP %s\n", ++tap_n, what, why);
}

static inline int done(void)
{
	printf("1..%d\n", tap_n);
	return tap_failed ? 1 : 0;
}

#endif
