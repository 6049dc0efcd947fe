/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files for the rewriter's tests */
#ifndef REWRITER_TEST_H
#define REWRITER_TEST_H

#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "rewriter/ptx/ptx.h"
#include "selftests/tap.h"

#define CORPUS "selftests/rewriter/corpus/"

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
