/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* gschedctl: what the arbiter says of itself, as JSON. */
#ifndef GSCHEDCTL_JSON_H
#define GSCHEDCTL_JSON_H

#include <cjson/cJSON.h>
#include "ctl.h"

/*
 * A value as text, numbers and lists too; "-" if there is none. One of the last sixteen results may
 * be overwritten by a call.
 */
const char *ctl_text(const cJSON *o, const char *key);
const char *ctl_string(const cJSON *o, const char *key);	/* "" if there is none */
double ctl_number(const cJSON *o, const char *key);	/* 0 if there is none */
const cJSON *ctl_list(const cJSON *o, const char *key);

void ctl_print_json(const cJSON *o);

/* The arbiter's status; NULL after saying why not. The caller frees it. */
cJSON *ctl_read_status(struct gsched *g);
/* The device of this name, NULL the first; NULL after saying which there are, with @where in front.
 */
const cJSON *ctl_find_device(const cJSON *status, const char *name, const char *where);

#endif /* GSCHEDCTL_JSON_H */
