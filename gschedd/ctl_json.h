/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* gschedctl: the arbiter's status, as JSON. */
#ifndef GSCHEDCTL_JSON_H
#define GSCHEDCTL_JSON_H

#include <cjson/cJSON.h>
#include "ctl.h"

/*
 * A value as text, also numbers and lists; "-": there is none. The call may overwrite the result of
 * the sixteenth call before.
 */
const char *ctl_text(const cJSON *o, const char *key);
const char *ctl_string(const cJSON *o, const char *key);	/* "": there is none */
double ctl_number(const cJSON *o, const char *key);	/* 0: there is none */
const cJSON *ctl_list(const cJSON *o, const char *key);

/* The @device's policy as it was set; while a plan is in force, the one that decides after it. */
const char *ctl_policy_set(const cJSON *device);

void ctl_print_json(const cJSON *o);

/* The arbiter's status; NULL after printing the error. The caller frees it. */
cJSON *ctl_read_status(struct gsched *g);
/* The device of this name, NULL: the first. NULL after printing the existing ones, after @where. */
const cJSON *ctl_find_device(const cJSON *status, const char *name, const char *where);

#endif /* GSCHEDCTL_JSON_H */
