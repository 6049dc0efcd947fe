// SPDX-License-Identifier: LGPL-2.1-or-later
/* gschedctl: changes of groups and devices, all or none. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "ctl_change.h"
#include "ctl_files.h"
#include "ctl_json.h"

#define WHERE_MAX	256

static const struct ctl_file *device_file(const struct ctl_change *c)
{
	return c->kind == CTL_SET_DEVICE ? ctl_file_find(ctl_device_files, c->file) : NULL;
}

/* What cannot be read back is written last, when all else is done. */
static bool is_final(const struct ctl_file *file)
{
	return file->valid || !strcmp(file->name, "plan");
}

/* In this order: a plan may be refused, the others have been checked. */
static int turn_of(const struct ctl_change *c)
{
	const struct ctl_file *file = device_file(c);

	return !file || !is_final(file) ? 0 : file->valid ? 2 : 1;
}

/* The group that a process is bound to; the root's path if none. */
static char *group_of(const cJSON *device, const char *pid)
{
	double number = strtod(pid, NULL);
	const cJSON *group, *p;

	if (!number)
		number = getpid();
	cJSON_ArrayForEach(group, ctl_list(device, "groups"))
		cJSON_ArrayForEach(p, ctl_list(group, "procs"))
			if (cJSON_IsNumber(p) && p->valuedouble == number)
				return strdup(ctl_string(group, "path"));
	return strdup("");
}

/* The file's value; NULL: it cannot be read, or does not exist. */
static char *read_old(struct gsched *g, const struct ctl_change *c)
{
	char value[CTL_VALUE_MAX], *old = NULL;
	const struct ctl_file *file = device_file(c);
	const cJSON *device;
	cJSON *status;

	/* the status has the mode in force, which may differ from the setting, and no plan's text */
	if (file && is_final(file))
		return NULL;
	if (c->kind == CTL_SET_GROUP && strcmp(c->file, "procs"))
		return gsched_group_get(g, c->device, c->group, c->file, value, sizeof(value)) ?
			NULL : strdup(value);
	if (c->kind == CTL_SET_CLIENT)
		return gsched_client_get(g, c->device, atoi(c->group), c->file, value,
					 sizeof(value)) ? NULL : strdup(value);
	status = ctl_read_status(g);
	device = ctl_list(status, "devices");
	for (device = device ? device->child : NULL; device; device = device->next)
		if (!c->device || !strcmp(c->device, ctl_string(device, "name")))
			break;
	if (device && c->kind == CTL_SET_GROUP)
		old = group_of(device, c->value);
	else if (device && !strcmp(c->file, "policy"))
		old = strdup(ctl_policy_set(device));
	else if (device && cJSON_GetObjectItemCaseSensitive(device, c->file))
		old = strdup(ctl_text(device, c->file));
	cJSON_Delete(status);
	return old;
}

/* An empty value is written as an empty line, because the kernel ignores writes of 0 bytes. */
static const char *line_of(const char *value)
{
	return *value ? value : "\n";
}

static int apply_change(struct gsched *g, struct ctl_change *c)
{
	int rc = -1;

	switch (c->kind) {
	case CTL_CREATE_GROUP:
		rc = gsched_group_create(g, c->device, c->group);
		if (rc && errno == EEXIST)
			return 0;
		break;
	case CTL_SET_GROUP:
		c->old = read_old(g, c);
		rc = gsched_group_set(g, c->device, c->group, c->file, line_of(c->value));
		break;
	case CTL_SET_CLIENT:
		c->old = read_old(g, c);
		rc = gsched_client_set(g, c->device, atoi(c->group), c->file, c->value);
		break;
	case CTL_SET_DEVICE:
		c->old = read_old(g, c);
		rc = gsched_device_set(g, c->device, c->file, line_of(c->value));
		break;
	}
	c->done = !rc;
	return rc;
}

static int revert_change(struct gsched *g, const struct ctl_change *c)
{
	if (c->kind == CTL_CREATE_GROUP)
		return gsched_group_delete(g, c->device, c->group);
	if (!c->old) {
		errno = ENODATA;
		return -1;
	}
	if (c->kind == CTL_SET_DEVICE)
		return gsched_device_set(g, c->device, c->file, c->old);
	if (c->kind == CTL_SET_CLIENT)
		return gsched_client_set(g, c->device, atoi(c->group), c->file, c->old);
	if (!strcmp(c->file, "procs"))
		return gsched_group_set(g, c->device, c->old, c->file, c->value);
	return gsched_group_set(g, c->device, c->group, c->file, line_of(c->old));
}

static int print_refused(const struct ctl_change *c, const char *from)
{
	char where[WHERE_MAX] = "";
	int err = errno;

	if (from)
		snprintf(where, sizeof(where), "%.*s:%u: ", WHERE_MAX - 16, from, c->line);
	else if (c->kind == CTL_SET_GROUP && c->device)
		snprintf(where, sizeof(where), "device %.*s: ", WHERE_MAX - 16, c->device);
	errno = err;
	if (c->kind == CTL_SET_DEVICE)
		return ctl_device_error(where, c->device, c->file, c->value);
	if (c->kind == CTL_SET_CLIENT)
		return ctl_client_error(c->group, c->file, c->value);
	return ctl_group_error(where, c->group, c->file, c->value);
}

/* Latest first, because a file may have been written twice. */
static void revert_changes(struct gsched *g, const struct ctl_change *changes, size_t n)
{
	const struct ctl_change *c;
	const char *name;
	bool all = true;

	for (size_t i = n; i--;) {
		c = &changes[i];
		if (!c->done || !revert_change(g, c))
			continue;
		all = false;
		if (c->kind == CTL_SET_DEVICE)
			name = c->device ? c->device : "(first)";
		else
			name = *c->group ? c->group : "/";
		ctl_error("%s %s: %s%scould not be put back: %s",
			  c->kind == CTL_SET_DEVICE ? "device" :
			  c->kind == CTL_SET_CLIENT ? "client" : "group", name,
			  c->file ? c->file : "", c->file ? " " : "", strerror(errno));
	}
	if (all && n > 1)
		ctl_error("nothing was changed");
}

int ctl_apply(struct ctl *ctl, struct gsched *g, struct ctl_change *changes, size_t n,
	      const char *from)
{
	const struct ctl_file *file;
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i++) {
		file = device_file(&changes[i]);
		if (file && file->valid && !file->valid(changes[i].value)) {
			errno = EINVAL;
			rc = print_refused(&changes[i], from);
		}
	}
	for (int turn = 0; turn < 3; turn++)
		for (size_t i = 0; i < n && !rc; i++)
			if (turn_of(&changes[i]) == turn && apply_change(g, &changes[i]))
				rc = print_refused(&changes[i], from);
	if (rc)
		revert_changes(g, changes, n);
	for (size_t i = 0; i < n; i++)
		free(changes[i].old);
	return rc;
}

int ctl_set(struct ctl *ctl, enum ctl_change_kind kind, const char *group, size_t n, char **args)
{
	struct ctl_change *changes;
	struct gsched *g;
	int rc = CTL_FAIL;

	for (size_t i = 0; i < n; i++)
		if (!strchr(args[i], '=') || args[i][0] == '=') {
			ctl_error("%s set: %s: write FILE=VALUE",
				  kind == CTL_SET_DEVICE ? "device" :
				  kind == CTL_SET_CLIENT ? "client" : "group", args[i]);
			return CTL_USAGE;
		}
	changes = calloc(n, sizeof(*changes));
	if (!changes) {
		ctl_error("%s", strerror(errno));
		return CTL_FAIL;
	}
	for (size_t i = 0; i < n; i++) {
		char *value = strchr(args[i], '=');

		*value++ = '\0';
		changes[i] = (struct ctl_change){
			.kind = kind,
			.device = ctl->device,
			.group = group,
			.file = args[i],
			.value = value,
		};
	}
	g = ctl_open(ctl);
	if (g)
		rc = ctl_apply(ctl, g, changes, n, NULL);
	gsched_close(g);
	free(changes);
	return rc;
}
