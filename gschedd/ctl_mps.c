// SPDX-License-Identifier: LGPL-2.1-or-later
/* gschedctl status: MPS servers, and programs on the GPU that do not run under gsched. */
#include <stdio.h>
#include <string.h>
#include "ctl_json.h"
#include "ctl_mps.h"
#include "ctl_table.h"

void ctl_print_unmanaged(const cJSON *device)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(device, "unmanaged"), *p;
	struct libscols_table *t;

	if (!cJSON_IsArray(list) || !cJSON_GetArraySize(list))
		return;
	puts("  not managed (no gsched in them; they run with the driver's time slice):");
	t = ctl_table(">PID COMMAND >MEMORY >BUSY");
	cJSON_ArrayForEach(p, list) {
		char memory[32] = "-", busy[32];

		if (cJSON_GetObjectItemCaseSensitive(p, "mib"))
			snprintf(memory, sizeof(memory), "%.0f MiB", ctl_number(p, "mib"));
		snprintf(busy, sizeof(busy), "%.0f %%", ctl_number(p, "busy_percent"));
		ctl_row(t, ctl_text(p, "pid"), ctl_text(p, "comm"), memory, busy);
	}
	ctl_table_print(t, "  ");
}

void ctl_print_mps(const cJSON *root)
{
	const cJSON *mps = cJSON_GetObjectItemCaseSensitive(root, "mps"), *s;

	if (!mps)
		return;
	printf("MPS servers (%s)%s\n", ctl_string(mps, "program"),
	       *ctl_string(mps, "library") ? ""
					   : ": libgsched-mps.so is not installed, they run with "
					     "the driver's time slice");
	cJSON_ArrayForEach(s, cJSON_GetObjectItemCaseSensitive(mps, "servers")) {
		const char *reason = ctl_string(s, "reason");

		printf("  band %s, uid %.0f: %s, ", ctl_string(s, "band"), ctl_number(s, "uid"),
		       ctl_string(s, "state"));
		if (cJSON_GetObjectItemCaseSensitive(s, "pid"))
			printf("pid %.0f, ", ctl_number(s, "pid"));
		printf("%d programs, started %.0f times, died %.0f times, its server %.0f%s%s\n",
		       cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(s, "programs")),
		       ctl_number(s, "starts"), ctl_number(s, "deaths"),
		       ctl_number(s, "server_deaths"), *reason ? "; last: " : "", reason);
	}
}

static bool is_client(const cJSON *devices, double pid)
{
	const cJSON *device, *c;

	cJSON_ArrayForEach(device, devices)
		cJSON_ArrayForEach(c, cJSON_GetObjectItemCaseSensitive(device, "clients"))
			if (ctl_number(c, "pid") == pid)
				return true;
	return false;
}

void ctl_take_from_daemon(cJSON *root, cJSON *daemon)
{
	static const char *const keys[] = { "rewrites", "mps" };
	const cJSON *on = cJSON_GetObjectItemCaseSensitive(daemon, "processes"), *of_device, *p;
	const cJSON *devices = cJSON_GetObjectItemCaseSensitive(root, "devices");
	cJSON *device, *list, *item;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		item = cJSON_DetachItemFromObjectCaseSensitive(daemon, keys[i]);
		if (item)
			cJSON_AddItemToObject(root, keys[i], item);
	}
	cJSON_ArrayForEach(device, devices) {
		of_device = cJSON_GetObjectItemCaseSensitive(on, ctl_string(device, "uuid"));
		if (!of_device)
			continue;
		list = cJSON_AddArrayToObject(device, "unmanaged");
		cJSON_ArrayForEach(p, of_device)
			if (!is_client(devices, ctl_number(p, "pid")))
				cJSON_AddItemToArray(list, cJSON_Duplicate(p, true));
	}
}
