/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* gschedctl: changes to groups and devices, all of them or none. */
#ifndef GSCHEDCTL_CHANGE_H
#define GSCHEDCTL_CHANGE_H

#include "ctl.h"

enum ctl_change_kind { CTL_CREATE_GROUP, CTL_SET_GROUP, CTL_SET_DEVICE, CTL_SET_CLIENT };

struct ctl_change {
	enum ctl_change_kind kind;
	unsigned int line;		/* of the file that it is from */
	const char *device;		/* NULL: the first */
	const char *group, *file, *value;
	/* of ctl_apply() */
	char *old;			/* what the file had; of procs, the process's group */
	bool done;
};

/*
 * Make all of @changes, or none: when the arbiter refuses one, those before it are taken back. A
 * file that cannot be read is written last, its value having been checked. @from: the file that
 * they are from, NULL the command line. Returns CTL_FAIL after saying which was refused and why.
 */
int ctl_apply(struct ctl *ctl, struct gsched *g, struct ctl_change *changes, size_t n,
	      const char *from);

/* FILE=VALUE arguments for one group or device */
int ctl_set(struct ctl *ctl, enum ctl_change_kind kind, const char *group, size_t n, char **args);

#endif /* GSCHEDCTL_CHANGE_H */
