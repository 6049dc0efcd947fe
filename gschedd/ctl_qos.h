/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The planner's report on a device, which gschedctl qos writes and gschedctl status reads. It is a
 * file beside gschedd's socket, because arbiters know a plan but not its reasons.
 */
#ifndef GSCHEDCTL_QOS_H
#define GSCHEDCTL_QOS_H

#include <cjson/cJSON.h>
#include "ctl.h"
#include "qos.h"

#define CTL_QOS_FRESH_NS	3000000000ULL	/* an older report: its planner died */

/* Writes the report. 0 or -errno */
int ctl_qos_report(const struct ctl *ctl, const char *device, const struct qos *q, uint64_t now);
void ctl_qos_report_end(const struct ctl *ctl, const char *device);
/* The report of a running planner; NULL: there is none. The caller frees it. */
cJSON *ctl_qos_read(const struct ctl *ctl, const char *device);
/* @device: of the status, with the report added as "qos" */
void ctl_qos_print(const cJSON *device);

#endif /* GSCHEDCTL_QOS_H */
