/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* gschedctl run: on which devices a program is in its group. */
#ifndef GSCHEDCTL_BIND_H
#define GSCHEDCTL_BIND_H

#include <cjson/cJSON.h>
#include <sys/types.h>
#include "ctl.h"

#define CTL_DEVICES_MAX	64

struct ctl_devices {
	const char *name[CTL_DEVICES_MAX];	/* NULL, as the only one: the first */
	unsigned int n;
	/* what the names are in; may be NULL */
	cJSON *status;
	char *list;
};

/*
 * Those of --device, names with commas between them, else @all of the arbiter's devices or the
 * first. false after saying why not; ctl_devices_put() is due in either case.
 */
bool ctl_devices_get(struct ctl_devices *devices, const struct ctl *ctl, struct gsched *g,
		     bool all);
void ctl_devices_put(struct ctl_devices *devices);

/*
 * @pid into @group on those of @devices that have it, or none of them; leaves these. It says where
 * the group is not. @create: make it on each. Returns CTL_FAIL after saying why not.
 */
int ctl_bind(struct ctl *ctl, struct gsched *g, struct ctl_devices *devices, const char *group,
	     bool create, pid_t pid);

/* ctl_band() for a group on several devices: the first that names a band decides. */
int ctl_bind_band(const struct ctl *ctl, struct gsched *g, const struct ctl_devices *devices,
		  const char *group, pid_t pid, bool strict);

#endif /* GSCHEDCTL_BIND_H */
