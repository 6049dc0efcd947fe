/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* gschedctl: changes of groups and devices, all or none. */
#ifndef GSCHEDCTL_CHANGE_H
#define GSCHEDCTL_CHANGE_H

#include "ctl.h"

enum ctl_change_kind { CTL_CREATE_GROUP, CTL_SET_GROUP, CTL_SET_DEVICE, CTL_SET_CLIENT };

struct ctl_change {
	enum ctl_change_kind kind;
	unsigned int line;		/* line number in the file that it comes from */
	const char *device;		/* NULL: the first */
	const char *group, *file, *value;
	/* used by ctl_apply() */
	char *old;			/* the file's former value; of procs, the process's group */
	bool done;
};

/*
 * Makes all of @changes, or none: when the arbiter refuses one, those before it are reverted. A
 * file that cannot be read is written last, after its value has been checked. @from: the file that
 * they come from; NULL: the command line. Returns CTL_FAIL after printing which was refused and
 * why.
 */
int ctl_apply(struct ctl *ctl, struct gsched *g, struct ctl_change *changes, size_t n,
	      const char *from);

/* Applies FILE=VALUE arguments to one group or device. */
int ctl_set(struct ctl *ctl, enum ctl_change_kind kind, const char *group, size_t n, char **args);

#endif /* GSCHEDCTL_CHANGE_H */
