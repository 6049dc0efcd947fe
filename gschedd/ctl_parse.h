/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The text that showconf prints and setconf takes:
 *
 *	[device NAME]
 *	FILE=VALUE
 *
 *	[group DEVICE GROUP]
 *	FILE=VALUE
 *
 * with / for the root group, optional spaces, empty lines, and lines that begin with '#'.
 */
#ifndef GSCHEDCTL_PARSE_H
#define GSCHEDCTL_PARSE_H

#include "ctl_change.h"

struct ctl_parsed {
	struct ctl_change *changes;	/* a group's section begins with the group's creation */
	size_t n;
	unsigned int line;		/* line number of the error */
	const char *error;		/* NULL: none */
	const char *what;		/* the wrong word, "": the whole line */
};

/*
 * @text has @size bytes and a NUL after them. It is split in place, and @changes point into it. The
 * caller frees @changes in any case.
 */
void ctl_parse(char *text, size_t size, struct ctl_parsed *parsed);

#endif /* GSCHEDCTL_PARSE_H */
