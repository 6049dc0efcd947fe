// SPDX-License-Identifier: LGPL-2.1-or-later
/* gschedctl group list, gschedctl device list: one line each, or the same as JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ctl_json.h"
#include "ctl_table.h"

#define OPTION_JSON	256

static const struct argp_option options[] = {
	{ "output", 'o', "table|json", 0, "How to print it (default: table)", 0 },
	{ "json", OPTION_JSON, NULL, 0, "The same as --output=json", 0 },
	{ 0 },
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct ctl *ctl = state->input;

	if (key != 'o' && key != OPTION_JSON)
		return ARGP_ERR_UNKNOWN;
	ctl->json = key == OPTION_JSON || !strcmp(arg, "json");
	if (!ctl->json && strcmp(arg, "table"))
		argp_error(state, "--output %s: it is table or json", arg);
	return 0;
}

const struct argp ctl_output_options = { .options = options, .parser = parse_option };

/* Copies @keys (separated by spaces) of @from unchanged. */
static cJSON *some_of(const cJSON *from, const char *keys)
{
	cJSON *to = cJSON_CreateObject();
	char key[32];
	size_t len;

	for (; *keys; keys += len + (keys[len] == ' ')) {
		len = strcspn(keys, " ");
		snprintf(key, sizeof(key), "%.*s", (int)len, keys);
		if (ctl_list(from, key))
			cJSON_AddItemToObject(to, key, cJSON_Duplicate(ctl_list(from, key), true));
	}
	return to;
}

/* The number of clients of the device, or of its @group. */
static int clients_of(const cJSON *device, const char *group)
{
	const cJSON *c;
	int n = 0;

	cJSON_ArrayForEach(c, ctl_list(device, "clients"))
		n += !group || !strcmp(group, ctl_string(c, "group"));
	return n;
}

static cJSON *list_groups(const cJSON *device)
{
	cJSON *list = cJSON_CreateArray(), *o;
	const cJSON *g;

	cJSON_ArrayForEach(g, ctl_list(device, "groups")) {
		o = some_of(g, "path capsm.max capsm.min capsm.reserve gpu.weight "
			    "gpu.priority gpu.band gpu.latency_target_us memory.max cgroup owner "
			    "capsm.current memory.current memory.peak");
		cJSON_AddNumberToObject(o, "clients", clients_of(device, ctl_string(g, "path")));
		cJSON_AddItemToArray(list, o);
	}
	return list;
}

static cJSON *list_devices(const cJSON *status, const char *only)
{
	cJSON *list = cJSON_CreateArray(), *o;
	const cJSON *d;

	cJSON_ArrayForEach(d, ctl_list(status, "devices")) {
		if (only && strcmp(only, ctl_string(d, "name")))
			continue;
		o = some_of(d, "name uuid sms mode policy switch_us max_overhead max_slowdown");
		cJSON_AddNumberToObject(o, "groups", cJSON_GetArraySize(ctl_list(d, "groups")));
		cJSON_AddNumberToObject(o, "clients", clients_of(d, NULL));
		cJSON_AddItemToArray(list, o);
	}
	return list;
}

static void print_groups(const cJSON *list)
{
	struct libscols_table *t = ctl_table("GROUP >MAX >MIN >RESERVE >WEIGHT >PRIORITY "
					     "BAND >TARGET_US >MEMORY_MAX >CURRENT >MEMORY "
					     ">CLIENTS CGROUP");
	const cJSON *g;

	cJSON_ArrayForEach(g, list) {
		const char *path = ctl_string(g, "path");
		char limit[CTL_BYTES_SIZE], memory[CTL_BYTES_SIZE];

		ctl_row(t, *path ? path : "/", ctl_text(g, "capsm.max"), ctl_text(g, "capsm.min"),
			ctl_text(g, "capsm.reserve"), ctl_text(g, "gpu.weight"),
			ctl_text(g, "gpu.priority"), ctl_text(g, "gpu.band"),
			ctl_text(g, "gpu.latency_target_us"),
			ctl_bytes(ctl_text(g, "memory.max"), limit), ctl_text(g, "capsm.current"),
			ctl_bytes(ctl_text(g, "memory.current"), memory), ctl_text(g, "clients"),
			ctl_text(g, "cgroup"));
	}
	ctl_table_print(t, "");
}

static void print_devices(const cJSON *list)
{
	struct libscols_table *t = ctl_table("DEVICE >SMS MODE POLICY >SWITCH_US >MAX_OVERHEAD "
					     ">MAX_SLOWDOWN "
					     ">GROUPS >CLIENTS UUID");
	const cJSON *d;

	cJSON_ArrayForEach(d, list)
		ctl_row(t, ctl_text(d, "name"), ctl_text(d, "sms"), ctl_text(d, "mode"),
			ctl_text(d, "policy"), ctl_text(d, "switch_us"),
			ctl_text(d, "max_overhead"), ctl_text(d, "max_slowdown"),
			ctl_text(d, "groups"), ctl_text(d, "clients"),
			ctl_text(d, "uuid"));
	ctl_table_print(t, "");
}

/* Prints {@key: @list}, or the list as a table; frees @list. */
static void print_list(const struct ctl *ctl, const char *key, cJSON *list,
		       void (*table)(const cJSON *list))
{
	cJSON *root = cJSON_CreateObject();

	if (!ctl->json)
		table(list);
	cJSON_AddItemToObject(root, key, list);
	if (ctl->json)
		ctl_print_json(root);
	cJSON_Delete(root);
}

int ctl_group_list(struct ctl *ctl, int argc, char **argv)
{
	struct gsched *g = ctl_open(ctl);
	cJSON *status = g ? ctl_read_status(g) : NULL;
	const cJSON *device = status ? ctl_find_device(status, ctl->device, "") : NULL;
	int rc = device ? 0 : CTL_FAIL;

	if (device)
		print_list(ctl, "groups", list_groups(device), print_groups);
	cJSON_Delete(status);
	gsched_close(g);
	return rc;
}

int ctl_device_list(struct ctl *ctl, int argc, char **argv)
{
	struct gsched *g = ctl_open(ctl);
	cJSON *status = g ? ctl_read_status(g) : NULL;
	int rc = status ? 0 : CTL_FAIL;

	if (status)
		print_list(ctl, "devices", list_devices(status, ctl->device), print_devices);
	cJSON_Delete(status);
	gsched_close(g);
	return rc;
}
