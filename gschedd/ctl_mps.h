/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* gschedctl status: the parts that only gschedd knows. */
#ifndef GSCHEDCTL_MPS_H
#define GSCHEDCTL_MPS_H

#include <cjson/cJSON.h>
#include <stdbool.h>

void ctl_print_unmanaged(const cJSON *device);
void ctl_print_mps(const cJSON *root);
/*
 * With the module as arbiter: @root is the module's status, what @daemon alone knows is moved into
 * it.
 */
void ctl_take_from_daemon(cJSON *root, cJSON *daemon);

#endif /* GSCHEDCTL_MPS_H */
