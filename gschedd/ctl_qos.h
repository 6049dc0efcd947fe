/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * gschedctl qos and gschedctl status: what the planner knows of a device, in a file beside
 * gschedd's socket, since arbiters know plans and not where they come from.
 */
#ifndef GSCHEDCTL_QOS_H
#define GSCHEDCTL_QOS_H

#include <cjson/cJSON.h>
#include "ctl.h"
#include "qos.h"

#define CTL_QOS_FRESH_NS	3000000000ULL	/* an older report is that of a planner that died */

/* -errno */
int ctl_qos_report(const struct ctl *ctl, const char *device, const struct qos *q, uint64_t now);
void ctl_qos_report_end(const struct ctl *ctl, const char *device);
/* The report of a planner that runs, or NULL; to be freed */
cJSON *ctl_qos_read(const struct ctl *ctl, const char *device);
void ctl_qos_print(const cJSON *device);	/* of the status, with the report as "qos" */

#endif /* GSCHEDCTL_QOS_H */
