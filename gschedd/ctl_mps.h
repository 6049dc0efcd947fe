/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* gschedctl status: the parts that come from gschedd only. */
#ifndef GSCHEDCTL_MPS_H
#define GSCHEDCTL_MPS_H

#include <cjson/cJSON.h>
#include <stdbool.h>

void ctl_print_unmanaged(const cJSON *device);
void ctl_print_mps(const cJSON *root);
/*
 * For the module as arbiter: moves what only @daemon's status has into @root, the module's status.
 */
void ctl_take_from_daemon(cJSON *root, cJSON *daemon);

#endif /* GSCHEDCTL_MPS_H */
