/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* gschedctl run: a cgroup for the programs of a group and their children, created by systemd. */
#ifndef GSCHEDCTL_SCOPE_H
#define GSCHEDCTL_SCOPE_H

#include "ctl_bind.h"

/*
 * Moves the calling process into the scope gsched-GROUP-PID.scope of the slice gsched-GROUP.slice,
 * and binds the slice's cgroup to the group on @devices. Changes nothing if that is not possible;
 * takes two seconds at most. @verbose: prints the result.
 */
void ctl_scope(struct gsched *g, const struct ctl_devices *devices, const char *group,
	       bool verbose);

/*
 * Whether @path is the cgroup of @group's slice, which systemd manages, so that it is no setting.
 */
bool ctl_scope_made(const char *group, const char *path);

#endif /* GSCHEDCTL_SCOPE_H */
