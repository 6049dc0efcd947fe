// SPDX-License-Identifier: LGPL-2.1-or-later
/* gschedctl group */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ctl.h"
#include "ctl_change.h"
#include "ctl_files.h"
#include "ctl_json.h"

int ctl_group_create_all(struct gsched *g, const char *device, const char *path)
{
	char *above = strdup(path);
	int rc = 0;

	if (!above)
		return -1;
	for (char *p = above; !rc && (p = strchr(p, '/')); *p++ = '/') {
		*p = '\0';
		if (*above && gsched_group_create(g, device, above) && errno != EEXIST)
			rc = -1;
	}
	free(above);
	if (!rc && gsched_group_create(g, device, path) && errno != EEXIST)
		rc = -1;
	return rc;
}

const char *ctl_group_path(const char *name)
{
	if (!*name) {
		ctl_error("the name of the group is empty; the root group is /");
		return NULL;
	}
	while (*name == '/')
		name++;
	return name;
}

static int print_file(struct ctl *ctl, struct gsched *g, const char *group, const char *file)
{
	char buf[CTL_VALUE_MAX];

	if (gsched_group_get(g, ctl->device, group, file, buf, sizeof(buf)))
		return ctl_group_error("", group, file, NULL);
	fputs(buf, stdout);
	return 0;
}

/*
 * Prints every file that the user may read, one per line; files of several lines are indented below
 * their name.
 */
static int show_group(struct ctl *ctl, struct gsched *g, const char *group, const char *file)
{
	char buf[CTL_VALUE_MAX];
	bool there = false;

	for (const struct ctl_file *f = ctl_group_files; f->name; f++) {
		char *line, *save = NULL;
		int err = gsched_group_get(g, ctl->device, group, f->name, buf, sizeof(buf)) ?
			errno : 0;

		/* a backend without this file, or the group does not exist */
		if (err == ENOENT)
			continue;
		if (err && err != EPERM && err != EACCES)
			return ctl_group_error("", group, f->name, NULL);
		if (!there)
			printf("%s\n", *group ? group : "/");
		there = true;
		/* not for this user */
		if (err)
			continue;
		line = strtok_r(buf, "\n", &save);
		if (!save || !*save) {
			printf("  %-21s %s\n", f->name, line ? line : "");
			continue;
		}
		printf("  %s\n", f->name);
		for (; line; line = strtok_r(NULL, "\n", &save))
			printf("    %s\n", line);
	}
	if (there)
		return 0;
	errno = ENOENT;
	return ctl_group_error("", group, NULL, NULL);
}

typedef int group_fn(struct ctl *ctl, struct gsched *g, const char *group, const char *file);

/* Calls @fn for a group; NULL: for every group of the device. */
static int with_groups(struct ctl *ctl, const char *name, group_fn *fn, const char *file)
{
	const char *group = name ? ctl_group_path(name) : NULL;
	const cJSON *device, *o, *path;
	struct gsched *g;
	cJSON *status;
	int rc = CTL_FAIL;

	if (name && !group)
		return CTL_USAGE;
	g = ctl_open(ctl);
	status = g && !name ? ctl_read_status(g) : NULL;
	device = status ? ctl_find_device(status, ctl->device, "") : NULL;
	if (g && name)
		rc = fn(ctl, g, group, file);
	else if (device)
		rc = 0;
	cJSON_ArrayForEach(o, ctl_list(device, "groups")) {
		path = cJSON_GetObjectItemCaseSensitive(o, "path");
		if (!rc && cJSON_IsString(path))
			rc = fn(ctl, g, path->valuestring, file);
	}
	cJSON_Delete(status);
	gsched_close(g);
	return rc;
}

static int create_group(struct ctl *ctl, struct gsched *g, const char *group, const char *file)
{
	if (gsched_group_create(g, ctl->device, group))
		return ctl_group_error("", group, NULL, NULL);
	return 0;
}

static int delete_group(struct ctl *ctl, struct gsched *g, const char *group, const char *file)
{
	if (!*group) {
		ctl_error("group /: the root group stays; delete those below it by their names");
		return CTL_FAIL;
	}
	if (!gsched_group_delete(g, ctl->device, group))
		return 0;
	/* not by ctl_group_error(), which says how to make it */
	if (errno == ENOENT) {
		ctl_error("group %s: no such group; see gschedctl group list", group);
		return CTL_FAIL;
	}
	return ctl_group_error("", group, NULL, NULL);
}

int ctl_group_create(struct ctl *ctl, int argc, char **argv)
{
	return with_groups(ctl, argv[0], create_group, NULL);
}

int ctl_group_delete(struct ctl *ctl, int argc, char **argv)
{
	return with_groups(ctl, argv[0], delete_group, NULL);
}

int ctl_group_show(struct ctl *ctl, int argc, char **argv)
{
	return with_groups(ctl, argc ? argv[0] : NULL, show_group, NULL);
}

int ctl_group_get(struct ctl *ctl, int argc, char **argv)
{
	return with_groups(ctl, argv[0], print_file, argv[1]);
}

int ctl_group_set(struct ctl *ctl, int argc, char **argv)
{
	const char *group = ctl_group_path(argv[0]);

	return group ? ctl_set(ctl, CTL_SET_GROUP, group, argc - 1, argv + 1) : CTL_USAGE;
}
