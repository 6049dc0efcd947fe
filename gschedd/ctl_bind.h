/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* gschedctl run: the devices on which a program is bound to its group. */
#ifndef GSCHEDCTL_BIND_H
#define GSCHEDCTL_BIND_H

#include <cjson/cJSON.h>
#include <sys/types.h>
#include "ctl.h"

#define CTL_DEVICES_MAX	64

struct ctl_devices {
	const char *name[CTL_DEVICES_MAX];	/* if only NULL: the first device */
	unsigned int n;
	/* own the names; may be NULL */
	cJSON *status;
	char *list;
};

/*
 * The devices named by --device, separated by commas, else @all of the arbiter's devices or the
 * first. false after printing the error; ctl_devices_put() is needed in either case.
 */
bool ctl_devices_get(struct ctl_devices *devices, const struct ctl *ctl, struct gsched *g,
		     bool all);
void ctl_devices_put(struct ctl_devices *devices);

/*
 * Binds @pid (0: this process) to @group on those of @devices that have it, or on none of them, and
 * keeps these in @devices. Prints where the group does not exist. @create: creates it on each.
 * Returns CTL_FAIL after printing the error.
 */
int ctl_bind(struct ctl *ctl, struct gsched *g, struct ctl_devices *devices, const char *group,
	     bool create, pid_t pid);

/* ctl_band() for a group on several devices: the first device that names a band decides. */
int ctl_bind_band(const struct ctl *ctl, struct gsched *g, const struct ctl_devices *devices,
		  const char *group, pid_t pid, bool strict);

#endif /* GSCHEDCTL_BIND_H */
