/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* gschedctl run: a cgroup for what a group's programs start, made by systemd where that is. */
#ifndef GSCHEDCTL_SCOPE_H
#define GSCHEDCTL_SCOPE_H

#include "ctl_bind.h"

/*
 * The calling process into the scope gsched-GROUP-PID.scope of the slice gsched-GROUP.slice, and
 * the slice's cgroup bound to the group on @devices. Changes nothing where that cannot be; takes
 * two seconds at most. @verbose: says in a line what came of it.
 */
void ctl_scope(struct gsched *g, const struct ctl_devices *devices, const char *group,
	       bool verbose);

/* Is @path the cgroup of @group's slice? systemd makes and removes it, so it is no setting. */
bool ctl_scope_made(const char *group, const char *path);

#endif /* GSCHEDCTL_SCOPE_H */
