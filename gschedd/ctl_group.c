// SPDX-License-Identifier: LGPL-2.1-or-later
/* gschedctl group */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ctl.h"
#include "ctl_json.h"

#define VALUE_MAX	4096

/* The files of a group and what each takes. */
static const struct {
	const char *name, *takes;	/* takes NULL: read-only */
} files[] = {
	{ "capsm.max", "write max or a number of SMs, above 0 and not above the device's (1.5 is possible)" },
	{ "capsm.min", "write a number of SMs, not above the device's (1.5 is possible)" },
	{ "gpu.weight", "write a number from 1 to 10000" },
	{ "gpu.priority", "write a number from 0 to 99, the higher one more important" },
	{ "gpu.band", "write a name of up to 31 of a-z, 0-9, '_', '-', or nothing for the parent's" },
	{ "gpu.latency_target_us", "write a number of microseconds up to 10000000, 0 for none" },
	{ "cgroup", "write the path of a cgroup v2 directory, or nothing to unbind; the root group takes none" },
	{ "procs", "write the number of a running process" },
	{ "owner", "write a user's number; the root group has none" },
	{ "capsm.current", NULL },
	{ "gpu.stat", NULL },
};
#define N_FILES	(sizeof(files) / sizeof(files[0]))

static const char *takes(const char *file)
{
	for (size_t i = 0; file && i < N_FILES; i++)
		if (!strcmp(file, files[i].name))
			return files[i].takes ? files[i].takes : "it can only be read";
	return NULL;
}

int ctl_group_error(const char *group, const char *file, const char *value)
{
	int err = errno;
	const char *what = strerror(err), *remedy = NULL;

	switch (err) {
	case EINVAL:
		remedy = file ? takes(file) : "a name is letters, digits, '_', '-', '.', and '/' between levels; it must not "
			"be that of a file, and levels are limited";
		break;
	case ENOENT:
		if (file && !takes(file)) {
			what = "no such file";
			remedy = "see gschedctl group show";
		} else {
			what = "no such group";
			remedy = "make it: gschedctl group create";
		}
		break;
	case ENODEV:
		what = "no such device";
		remedy = "see gschedctl status; give gschedd devices with --device or --driver";
		break;
	case EACCES:
	case EROFS:
		remedy = file && takes(file) ? takes(file) : "run gschedctl as root";
		break;
	case EPERM:
		remedy = file && !strcmp(file, "procs") ?
			"run gschedctl as root, or have root make you the group's owner (group set NAME owner=UID)" :
			"run gschedctl as root or as gschedd's user";
		break;
	case EBUSY:
		remedy = file && !strcmp(file, "gpu.band") ?
			"a running process cannot change its band: move the programs in it and below it out first, or end "
			"them and start them again afterwards" :
			"end or move its clients and delete the groups below it first";
		break;
	case ESRCH:
		remedy = "give the number of a running process";
		break;
	case ENOSPC:
		remedy = "delete what is not used";
		break;
	case EPIPE:
		what = "the arbiter has gone";
		remedy = "start gschedd";
		break;
	case ENAMETOOLONG:
		remedy = "use a shorter one";
		break;
	}
	ctl_error("group %s: %s%s%s%s%s%s%s%s", *group ? group : "/", file ? file : "", file ? ": " : "", value ? "\"" : "",
		  value ? value : "", value ? "\": " : "", what, remedy ? "; " : "", remedy ? remedy : "");
	return CTL_FAIL;
}

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
	while (*name == '/')
		name++;
	return name;
}

static int set(struct ctl *ctl, struct gsched *g, const char *group, int n, char **args)
{
	for (int i = 0; i < n; i++) {
		char *value = strchr(args[i], '=');

		*value++ = '\0';
		if (gsched_group_set(g, ctl->device, group, args[i], value))
			return ctl_group_error(group, args[i], value);
	}
	return 0;
}

static int get(struct ctl *ctl, struct gsched *g, const char *group, const char *file)
{
	char buf[VALUE_MAX];

	if (gsched_group_get(g, ctl->device, group, file, buf, sizeof(buf)))
		return ctl_group_error(group, file, NULL);
	fputs(buf, stdout);
	return 0;
}

/* Every file, one a line; those of several lines indented below their name. */
static int show(struct ctl *ctl, struct gsched *g, const char *group)
{
	char buf[VALUE_MAX];
	int shown = 0;

	printf("%s\n", *group ? group : "/");
	for (size_t i = 0; i < N_FILES; i++) {
		char *line, *save = NULL;

		if (gsched_group_get(g, ctl->device, group, files[i].name, buf, sizeof(buf))) {
			/* a backend without this file, or no such group */
			if (errno == ENOENT && (shown || i + 1 < N_FILES))
				continue;
			return ctl_group_error(group, files[i].name, NULL);
		}
		shown++;
		line = strtok_r(buf, "\n", &save);
		if (!save || !*save) {
			printf("  %-21s %s\n", files[i].name, line ? line : "");
			continue;
		}
		printf("  %s\n", files[i].name);
		for (; line; line = strtok_r(NULL, "\n", &save))
			printf("    %s\n", line);
	}
	return 0;
}

/* @fn for a group, NULL every group of the device */
static int with_groups(struct ctl *ctl, const char *name, int (*fn)(struct ctl *ctl, struct gsched *g, const char *group))
{
	struct gsched *g = ctl_open(ctl);
	cJSON *status = g && !name ? ctl_read_status(g) : NULL;
	const cJSON *device = status ? ctl_find_device(status, ctl->device) : NULL, *o, *path;
	int rc = CTL_FAIL;

	if (g && name)
		rc = fn(ctl, g, ctl_group_path(name));
	else if (device)
		rc = 0;
	cJSON_ArrayForEach(o, ctl_list(device, "groups")) {
		path = cJSON_GetObjectItemCaseSensitive(o, "path");
		if (!rc && cJSON_IsString(path))
			rc = fn(ctl, g, path->valuestring);
	}
	cJSON_Delete(status);
	gsched_close(g);
	return rc;
}

static int create(struct ctl *ctl, struct gsched *g, const char *group)
{
	return gsched_group_create(g, ctl->device, group) ? ctl_group_error(group, NULL, NULL) : 0;
}

static int delete(struct ctl *ctl, struct gsched *g, const char *group)
{
	return gsched_group_delete(g, ctl->device, group) ? ctl_group_error(group, NULL, NULL) : 0;
}

int ctl_group_create(struct ctl *ctl, int argc, char **argv)
{
	return with_groups(ctl, argv[0], create);
}

int ctl_group_delete(struct ctl *ctl, int argc, char **argv)
{
	return with_groups(ctl, argv[0], delete);
}

int ctl_group_show(struct ctl *ctl, int argc, char **argv)
{
	return with_groups(ctl, argc ? argv[0] : NULL, show);
}

int ctl_group_get(struct ctl *ctl, int argc, char **argv)
{
	struct gsched *g = ctl_open(ctl);
	int rc = g ? get(ctl, g, ctl_group_path(argv[0]), argv[1]) : CTL_FAIL;

	gsched_close(g);
	return rc;
}

int ctl_group_set(struct ctl *ctl, int argc, char **argv)
{
	struct gsched *g;
	int rc;

	for (int i = 1; i < argc; i++)
		if (!strchr(argv[i], '=') || argv[i][0] == '=') {
			ctl_error("group set: %s: write FILE=VALUE", argv[i]);
			return CTL_USAGE;
		}
	g = ctl_open(ctl);
	rc = g ? set(ctl, g, ctl_group_path(argv[0]), argc - 1, argv + 1) : CTL_FAIL;
	gsched_close(g);
	return rc;
}
