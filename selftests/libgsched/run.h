/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A program on the simulated GPU, with or without the interposer, and what it says. */
#ifndef SELFTESTS_LIBGSCHED_RUN_H
#define SELFTESTS_LIBGSCHED_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/types.h>
#include "selftests/tap.h"

#ifndef BUILD
#define BUILD "build"
#endif

/* For what comes in milliseconds by itself, on a host that is busy with other things */
#define PATIENCE_MS	60000

struct run {
	pid_t pid;
	int out, in;
	char text[8192];
	size_t len;
	int status;
};

/*
 * @preload: under the interposer. The environment has the rest. @what: app's steps, or a program
 * with a path.
 */
void start(struct run *r, bool preload, char *const *what);
void finish(struct run *r);				/* its end, awaited */
const char *run(bool preload, char *const *what, struct run *r);	/* both */
void tell(struct run *r, const char *bytes);		/* on its standard input */
/* Waits until it has said so; false: it ended before that, or is silent for a minute */
bool says(struct run *r, const char *text);
/* The same for what it has not said yet; @from: r->len before it was asked */
bool answers(struct run *r, size_t from, const char *text);
/* Did @r end well, with the results of @as? */
static inline bool same(const struct run *r, const struct run *as, const char *what)
{
	if (ok(!r->status && !strcmp(r->text, as->text), "%s: results as alone", what))
		return true;
	printf("# status %x\n# got:\n%s# expected:\n%s", r->status, r->text, as->text);
	return false;
}

#endif
