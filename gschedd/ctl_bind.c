// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * gschedctl run: binds a program to its group on each device that has the group, because it may use
 * every GPU.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ctl.h"
#include "ctl_bind.h"
#include "ctl_change.h"
#include "ctl_files.h"
#include "ctl_json.h"

/* "gpu0, gpu1": the @devices whose @there equals @which; malloc'd. */
static char *names_of(const struct ctl_devices *devices, const bool *there, bool which)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	for (unsigned int i = 0; i < devices->n; i++)
		if (there[i] == which)
			fprintf(f, "%s%s", ftell(f) ? ", " : "", devices->name[i]);
	fclose(f);
	return text;
}

static bool add_device(struct ctl_devices *devices, const char *name)
{
	if (devices->n == CTL_DEVICES_MAX) {
		ctl_error("more than %d devices: name some with --device", CTL_DEVICES_MAX);
		return false;
	}
	devices->name[devices->n++] = name;
	return true;
}

/* Adds the devices of the list @names, in that order. */
static bool add_named(struct ctl_devices *devices, const char *names)
{
	char *save = NULL, *word;

	devices->list = strdup(names);
	if (!devices->list)
		return false;
	for (word = strtok_r(devices->list, ",", &save); word; word = strtok_r(NULL, ",", &save))
		if (!ctl_find_device(devices->status, word, "") || !add_device(devices, word))
			return false;
	if (!devices->n)
		ctl_error("--device: the name is empty");
	return devices->n;
}

bool ctl_devices_get(struct ctl_devices *devices, const struct ctl *ctl, struct gsched *g,
		     bool all)
{
	const cJSON *device;
	bool good = true;

	*devices = (struct ctl_devices){ .n = 0 };
	/* for one device the status is not needed, and it takes a while */
	if (!ctl->device && (!all || gsched_devices(g) <= 1))
		return add_device(devices, NULL);
	devices->status = ctl_read_status(g);
	if (!devices->status)
		return false;
	if (ctl->device)
		return add_named(devices, ctl->device);
	cJSON_ArrayForEach(device, ctl_list(devices->status, "devices"))
		good = good && add_device(devices, ctl_string(device, "name"));
	return good && (devices->n || add_device(devices, NULL));
}

void ctl_devices_put(struct ctl_devices *devices)
{
	cJSON_Delete(devices->status);
	free(devices->list);
}

/* Keeps the @devices that have the group, prints which do not, and fails if none has it. */
static int keep_those_with(struct ctl_devices *devices, struct gsched *g, const char *group)
{
	bool there[CTL_DEVICES_MAX];
	char value[CTL_VALUE_MAX], *with, *without;
	unsigned int n = 0;

	for (unsigned int i = 0; i < devices->n; i++) {
		/* any other error is reported when the program is bound */
		there[i] = !gsched_group_get(g, devices->name[i], group, "gpu.weight", value,
					     sizeof(value)) || errno != ENOENT;
		n += there[i];
	}
	if (n == devices->n)
		return 0;
	with = names_of(devices, there, true);
	without = names_of(devices, there, false);
	if (!n)
		ctl_error("group %s: no such group on %s; make it: gschedctl group create, or run "
			  "--create", group, without ? without : "any device");
	else
		ctl_error("group %s is on %s only: on %s the program is not in it", group,
			  with ? with : "?", without ? without : "?");
	free(with);
	free(without);
	if (!n)
		return CTL_FAIL;
	for (unsigned int i = n = 0; i < devices->n; i++)
		if (there[i])
			devices->name[n++] = devices->name[i];
	devices->n = n;
	return 0;
}

int ctl_bind(struct ctl *ctl, struct gsched *g, struct ctl_devices *devices, const char *group,
	     bool create, pid_t pid)
{
	struct ctl_change change[CTL_DEVICES_MAX];
	char text[16];

	/* before the groups above it are made */
	if (ctl_path_fault(group)) {
		errno = create ? EINVAL : ENOENT;
		return ctl_group_error("", group, NULL, NULL);
	}
	for (unsigned int i = 0; create && i < devices->n; i++)
		if (ctl_group_create_all(g, devices->name[i], group))
			return ctl_group_error("", group, NULL, NULL);
	if (devices->n > 1 && keep_those_with(devices, g, group))
		return CTL_FAIL;
	snprintf(text, sizeof(text), "%d", (int)pid);
	if (devices->n == 1) {
		if (gsched_group_set(g, devices->name[0], group, "procs", text))
			return ctl_group_error("", group, "procs", text);
		return 0;
	}
	for (unsigned int i = 0; i < devices->n; i++)
		change[i] = (struct ctl_change){
			.kind = CTL_SET_GROUP, .device = devices->name[i], .group = group,
			.file = "procs", .value = text,
		};
	return ctl_apply(ctl, g, change, devices->n, NULL);
}

int ctl_bind_band(const struct ctl *ctl, struct gsched *g, const struct ctl_devices *devices,
		  const char *group, pid_t pid, bool strict)
{
	struct ctl at = *ctl;
	char band[64] = "", other[64];
	const char *chosen;

	/* a program has a single MPS server for all devices */
	at.device = devices->name[0];
	for (unsigned int i = 0; group && devices->n > 1 && i < devices->n && !*band; i++)
		if (!ctl_group_band(g, devices->name[i], group, band, sizeof(band)) && *band)
			at.device = devices->name[i];
	if (ctl_band(&at, g, group, pid, strict))
		return CTL_FAIL;
	chosen = getenv("GSCHED_BAND");
	for (unsigned int i = 0; chosen && group && devices->n > 1 && i < devices->n; i++)
		if (!ctl_group_band(g, devices->name[i], group, other, sizeof(other)) &&
		    strcmp(other, chosen))
			ctl_error("group %s: its band is %s on %s and %s on %s; the program is in "
				  "%s on both", group, chosen, at.device,
				  *other ? other : "none", devices->name[i], chosen);
	return 0;
}
