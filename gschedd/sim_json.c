// SPDX-License-Identifier: LGPL-2.1-or-later
/* gschedctl simulate: strict reading of JSON objects, by a table of their keys. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "sim_json.h"

bool sim_refuse(struct sim_reader *r, const char *path, const char *fmt, ...)
{
	va_list ap;
	int len;

	if (r->failed)
		return false;
	r->failed = true;
	len = snprintf(r->error, SIM_ERROR_SIZE, "%.200s: %s%s", r->file, path, *path ? ": " : "");
	va_start(ap, fmt);
	if (len >= 0 && len < SIM_ERROR_SIZE)
		vsnprintf(r->error + len, SIM_ERROR_SIZE - len, fmt, ap);
	va_end(ap);
	return false;
}

void sim_path(char to[SIM_PATH_SIZE], const char *path, const char *key)
{
	snprintf(to, SIM_PATH_SIZE, "%.80s%s%.70s", path, *path ? "." : "", key);
}

void sim_path_at(char to[SIM_PATH_SIZE], const char *path, size_t index)
{
	snprintf(to, SIM_PATH_SIZE, "%.120s[%zu]", path, index);
}

static const char *type_name(const cJSON *v)
{
	if (cJSON_IsNumber(v))
		return "a number";
	if (cJSON_IsString(v))
		return "a text";
	if (cJSON_IsBool(v))
		return "true or false";
	if (cJSON_IsObject(v))
		return "an object";
	return cJSON_IsArray(v) ? "a list" : "null";
}

static bool type_fits(const cJSON *v, enum sim_type type)
{
	switch (type) {
	case SIM_NUMBER:
	case SIM_WHOLE:
		return cJSON_IsNumber(v);
	case SIM_TEXT:
		return cJSON_IsString(v);
	case SIM_FLAG:
		return cJSON_IsBool(v);
	case SIM_OBJECT:
		return cJSON_IsObject(v);
	case SIM_ARRAY:
		return cJSON_IsArray(v);
	default:
		return true;
	}
}

static bool number_fits(const cJSON *v, const struct sim_key *key)
{
	double d = v->valuedouble;

	return d >= key->least && d <= key->most && (key->type == SIM_NUMBER || d == floor(d));
}

static bool read_value(struct sim_reader *r, const cJSON *v, const char *path,
		       const struct sim_key *key)
{
	bool number = key->type == SIM_NUMBER || key->type == SIM_WHOLE;

	if (!type_fits(v, key->type) || (number && !number_fits(v, key))) {
		if (number && cJSON_IsNumber(v))
			return sim_refuse(r, path,
					  "%.15g is out of range; write %s, %sfrom %.15g to %.15g",
					  v->valuedouble, key->takes,
					  key->type == SIM_WHOLE ? "a whole number " : "",
					  key->least, key->most);
		return sim_refuse(r, path, "this is %s; write %s", type_name(v), key->takes);
	}
	switch (key->type) {
	case SIM_NUMBER:
		*(double *)key->to = v->valuedouble;
		break;
	case SIM_WHOLE:
		*(uint64_t *)key->to = (uint64_t)v->valuedouble;
		break;
	case SIM_TEXT:
		*(const char **)key->to = v->valuestring;
		break;
	case SIM_FLAG:
		*(bool *)key->to = cJSON_IsTrue(v);
		break;
	default:
		*(const cJSON **)key->to = v;
	}
	return true;
}

static bool unknown_key(struct sim_reader *r, const char *path, const struct sim_key *keys)
{
	char known[300] = "";
	size_t used = 0;

	for (; keys->name; keys++)
		if (used < sizeof(known))
			used += snprintf(known + used, sizeof(known) - used, "%s%s",
					 used ? ", " : "", keys->name);
	return sim_refuse(r, path, "no such key; there are %s", known);
}

static bool is_repeated(const cJSON *o, const cJSON *v)
{
	for (const cJSON *other = o->child; other != v; other = other->next)
		if (!strcmp(other->string, v->string))
			return true;
	return false;
}

bool sim_read_object(struct sim_reader *r, const cJSON *o, const char *path,
		     const struct sim_key *keys)
{
	char at[SIM_PATH_SIZE];
	const struct sim_key *key;
	const cJSON *v;

	if (!cJSON_IsObject(o))
		return sim_refuse(r, path, "this is %s; write an object", type_name(o));
	cJSON_ArrayForEach(v, o) {
		sim_path(at, path, v->string);
		for (key = keys; key->name && strcmp(key->name, v->string); key++)
			;
		if (!key->name)
			return unknown_key(r, at, keys);
		if (is_repeated(o, v))
			return sim_refuse(r, at, "the key is there twice; leave one out");
		if (!read_value(r, v, at, key))
			return false;
	}
	for (key = keys; key->name; key++) {
		sim_path(at, path, key->name);
		if (key->required && !cJSON_GetObjectItemCaseSensitive(o, key->name))
			return sim_refuse(r, at, "the key is missing; write %s", key->takes);
	}
	return true;
}
