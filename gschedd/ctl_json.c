// SPDX-License-Identifier: LGPL-2.1-or-later
/* gschedctl: reads JSON. A key that a backend does not have reads as "-", "" or 0. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ctl_json.h"

const char *ctl_text(const cJSON *o, const char *key)
{
	static char buf[16][256];
	static unsigned int next;
	const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key), *i;
	char *b = buf[next++ % 16];
	size_t used = 0;

	if (cJSON_IsString(v))
		return *v->valuestring ? v->valuestring : "-";
	if (cJSON_IsNumber(v)) {
		snprintf(b, sizeof(buf[0]), "%.15g", v->valuedouble);
		return b;
	}
	*b = '\0';
	if (cJSON_IsArray(v))
		cJSON_ArrayForEach(i, v)
			if (cJSON_IsNumber(i) && used < sizeof(buf[0]) - 16)
				used += snprintf(b + used, sizeof(buf[0]) - used, "%s%.0f",
						 used ? "," : "", i->valuedouble);
	return *b ? b : "-";
}

const char *ctl_string(const cJSON *o, const char *key)
{
	const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);

	return cJSON_IsString(v) ? v->valuestring : "";
}

const char *ctl_policy_set(const cJSON *device)
{
	static const char then[] = ", then ";
	const char *policy = ctl_string(device, "policy");
	const char *after = strstr(ctl_string(device, "planned"), then);

	return after && !strcmp(policy, "plan") ? after + sizeof(then) - 1 : policy;
}

double ctl_number(const cJSON *o, const char *key)
{
	const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);

	return cJSON_IsNumber(v) ? v->valuedouble : 0;
}

const cJSON *ctl_list(const cJSON *o, const char *key)
{
	return cJSON_GetObjectItemCaseSensitive(o, key);
}

void ctl_print_json(const cJSON *o)
{
	char *text = cJSON_PrintUnformatted(o);

	puts(text ? text : "{}");
	free(text);
}
