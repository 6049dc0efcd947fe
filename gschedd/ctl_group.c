// SPDX-License-Identifier: LGPL-2.1-or-later
/* gschedctl group, gschedctl device */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ctl.h"

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
	fprintf(stderr, "gschedctl: group %s: ", *group ? group : "/");
	if (file)
		fprintf(stderr, "%s: ", file);
	if (value)
		fprintf(stderr, "\"%s\": ", value);
	fprintf(stderr, "%s%s%s\n", what, remedy ? "; " : "", remedy ? remedy : "");
	return CTL_FAIL;
}

int ctl_group_create(struct gsched *g, const char *device, const char *path)
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

/* "/" and "/a" as in a file system; the library takes "" and "a" */
static const char *group_path(const char *name)
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

int ctl_group(struct ctl *ctl, int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "", *group = argc > 2 ? group_path(argv[2]) : NULL;
	struct gsched *g;
	int rc;

	if (!strcmp(what, "set")) {
		if (argc < 4)
			return CTL_USAGE;
		for (int i = 3; i < argc; i++)
			if (!strchr(argv[i], '=') || argv[i][0] == '=') {
				ctl_error("group set: %s: write FILE=VALUE", argv[i]);
				return CTL_USAGE;
			}
	} else if (!strcmp(what, "get") ? argc != 4 : !strcmp(what, "show") ? argc > 3 :
		   (strcmp(what, "create") && strcmp(what, "delete")) || argc != 3) {
		return CTL_USAGE;
	}
	g = ctl_open(ctl);
	if (!g)
		return CTL_FAIL;
	if (!strcmp(what, "create"))
		rc = gsched_group_create(g, ctl->device, group) ? ctl_group_error(group, NULL, NULL) : 0;
	else if (!strcmp(what, "delete"))
		rc = gsched_group_delete(g, ctl->device, group) ? ctl_group_error(group, NULL, NULL) : 0;
	else if (!strcmp(what, "set"))
		rc = set(ctl, g, group, argc - 3, argv + 3);
	else if (!strcmp(what, "get"))
		rc = get(ctl, g, group, argv[3]);
	else if (group)
		rc = show(ctl, g, group);
	else
		rc = ctl_groups_each(ctl, g, show);
	gsched_close(g);
	return rc;
}

/* The UUID that the status gives for the device. */
static bool device_uuid(struct gsched *g, const char *name, unsigned char *uuid)
{
	char *raw = gsched_status(g);
	cJSON *root = raw ? cJSON_Parse(raw) : NULL;
	const cJSON *d, *key, *text;
	unsigned int n = 0;

	cJSON_ArrayForEach(d, cJSON_GetObjectItemCaseSensitive(root, "devices")) {
		key = cJSON_GetObjectItemCaseSensitive(d, "name");
		text = cJSON_GetObjectItemCaseSensitive(d, "uuid");
		if (!cJSON_IsString(key) || strcmp(key->valuestring, name) || !cJSON_IsString(text))
			continue;
		for (const char *p = text->valuestring; *p && n < 16; p += *p == '-' ? 1 : 2)
			if (*p != '-' && sscanf(p, "%2hhx", &uuid[n++]) != 1)
				break;
	}
	cJSON_Delete(root);
	free(raw);
	return n == 16;
}

static int delete_device(struct ctl *ctl, const char *name, bool force)
{
	struct gsched *g = ctl_open(ctl);
	unsigned char uuid[16];
	int rc = 0;

	if (!g)
		return CTL_FAIL;
	if (!device_uuid(g, name, uuid)) {
		ctl_error("device %s: there is none; see gschedctl status", name);
		rc = CTL_FAIL;
	} else if (gsched_device_delete(g, uuid, force)) {
		ctl_error("device %s: %s; %s", name, strerror(errno), errno == EPERM ? "run gschedctl as root or as gschedd's user" :
			  force ? "delete its groups first" : "delete its groups first, and end its programs or use --force");
		rc = CTL_FAIL;
	}
	gsched_close(g);
	return rc;
}

/* What helps against errno of writing @file of a device */
static const char *device_remedy(const char *file)
{
	static const struct {
		const char *file, *takes;
	} known[] = {
		{ "mode", "mode is auto, spatial or temporal" },
		{ "policy", "policy is hpf or ffs" },
		{ "switch_us", "switch_us is 10 to 10000: what a switch between bands costs, in microseconds" },
		{ "max_overhead", "max_overhead is 5 to 500: per mille of the time that may go into switching" },
		{ "max_slowdown", "max_slowdown is 100 to 1000: per cent of its best time that a kernel may take on SMs held for it" },
		{ "clients_max", "clients_max is a number" },
	};

	if (errno == EPERM || errno == EACCES)
		return "run gschedctl as root or as gschedd's user";
	if (errno == ENODEV)
		return "see gschedctl status for the devices";
	for (size_t i = 0; errno != ENOENT && i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(file, known[i].file))
			return known[i].takes;
	return "the files are mode, policy, switch_us, max_overhead, max_slowdown and clients_max";
}

int ctl_device(struct ctl *ctl, int argc, char **argv)
{
	struct gsched *g;
	int first = 2, rc = 0;

	if (argc >= 3 && argc <= 4 && !strcmp(argv[1], "delete") && (argc == 3 || !strcmp(argv[3], "--force")))
		return delete_device(ctl, argv[2], argc == 4);
	if (argc < 3 || strcmp(argv[1], "set"))
		return CTL_USAGE;
	if (!strchr(argv[2], '=')) {
		ctl->device = argv[2];
		first = 3;
	}
	if (first == argc)
		return CTL_USAGE;
	for (int i = first; i < argc; i++)
		if (!strchr(argv[i], '=') || argv[i][0] == '=') {
			ctl_error("device set: %s: write FILE=VALUE", argv[i]);
			return CTL_USAGE;
		}
	g = ctl_open(ctl);
	if (!g)
		return CTL_FAIL;
	for (int i = first; i < argc && !rc; i++) {
		char *value = strchr(argv[i], '=');

		*value++ = '\0';
		if (!gsched_device_set(g, ctl->device, argv[i], value))
			continue;
		ctl_error("device %s: %s: \"%s\": %s; %s", ctl->device ? ctl->device : "(first)", argv[i], value,
			  strerror(errno), device_remedy(argv[i]));
		rc = CTL_FAIL;
	}
	gsched_close(g);
	return rc;
}
