/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* TAP and files for the rewriter's tests */
#ifndef REWRITER_TEST_H
#define REWRITER_TEST_H

#include <glob.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "rewriter/ptx/ptx.h"

#define CORPUS "selftests/rewriter/corpus/"

static int tap_n, tap_failed;

__attribute__((format(printf, 2, 3))) static inline bool ok(bool good, const char *fmt, ...)
{
	va_list ap;

	printf("%sok %d - ", good ? "" : "not ", ++tap_n);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	tap_failed += !good;
	return good;
}

static inline int done(void)
{
	printf("1..%d\n", tap_n);
	return tap_failed != 0;
}

/* The file, NUL-terminated; the test cannot go on without it */
static inline char *slurp(const char *path, size_t *size)
{
	FILE *f = fopen(path, "r");
	char *p = malloc(16 << 20);
	size_t n = f && p ? fread(p, 1, (16 << 20) - 1, f) : 0;

	if (!n) {
		printf("Bail out! %s: cannot read; run in the top directory\n", path);
		exit(1);
	}
	fclose(f);
	p[n] = 0;
	*size = n;
	return p;
}

static inline glob_t corpus(const char *pattern)
{
	glob_t g = { 0 };

	if (glob(pattern, 0, NULL, &g)) {
		printf("Bail out! %s: no such file; run in the top directory\n", pattern);
		exit(1);
	}
	return g;
}

#endif
