// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * gschedctl showconf, gschedctl setconf: prints the settings of devices and groups, and applies
 * them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ctl_files.h"
#include "ctl_json.h"
#include "ctl_parse.h"
#include "ctl_scope.h"

#define TEXT_MAX	(1 << 20)

/* ---- showconf ---- */

static int show_group(struct gsched *g, const char *device, const char *group)
{
	char value[CTL_VALUE_MAX];

	printf("\n[group %s %s]\n", device, *group ? group : "/");
	for (const struct ctl_file *f = ctl_group_files; f->name; f++) {
		/* processes are not settings; the root group has neither owner nor cgroup */
		if (!f->takes || !strcmp(f->name, "procs") ||
		    (!*group && (!strcmp(f->name, "owner") || !strcmp(f->name, "cgroup"))))
			continue;
		if (!gsched_group_get(g, device, group, f->name, value, sizeof(value))) {
			value[strcspn(value, "\n")] = '\0';
			/* an empty one would unbind programs from one that run makes */
			if (!strcmp(f->name, "cgroup") &&
			    (!*value || ctl_scope_made(group, value)))
				continue;
			printf("%s=%s\n", f->name, value);
		} else if (errno != ENOENT) {	/* ENOENT: an arbiter without this file */
			return ctl_group_error("", group, f->name, NULL);
		}
	}
	return 0;
}

static int show_device(struct gsched *g, const cJSON *device)
{
	const char *name = ctl_string(device, "name");
	const cJSON *group;
	int rc = 0;

	printf("[device %s]\n", name);
	for (const struct ctl_file *f = ctl_device_files; f->name; f++)
		/* a plan expires by itself; the policy is the one from before it */
		if (!strcmp(f->name, "policy"))
			printf("%s=%s\n", f->name, ctl_policy_set(device));
		else if (!f->valid && ctl_list(device, f->name))
			printf("%s=%s\n", f->name, ctl_text(device, f->name));
	cJSON_ArrayForEach(group, ctl_list(device, "groups"))
		if (!rc)
			rc = show_group(g, name, ctl_string(group, "path"));
	return rc;
}

int ctl_showconf(struct ctl *ctl, int argc, char **argv)
{
	struct gsched *g = ctl_open(ctl);
	cJSON *status = g ? ctl_read_status(g) : NULL;
	const cJSON *d, *devices = ctl_list(status, "devices");
	int rc = status ? 0 : CTL_FAIL;

	cJSON_ArrayForEach(d, devices) {
		if (rc || (ctl->device && strcmp(ctl->device, ctl_string(d, "name"))))
			continue;
		if (d != devices->child && !ctl->device)
			putchar('\n');
		rc = show_device(g, d);
	}
	cJSON_Delete(status);
	gsched_close(g);
	return rc;
}

/* ---- setconf ---- */

/* The whole file, NUL-terminated; NULL after printing the error. */
static char *read_text(const char *path, const char *name, size_t *size)
{
	bool is_stdin = !strcmp(path, "-");
	FILE *f = is_stdin ? stdin : fopen(path, "r");
	char *text = malloc(TEXT_MAX + 1);

	*size = f && text ? fread(text, 1, TEXT_MAX + 1, f) : 0;
	if (!f || !text || ferror(f)) {
		ctl_error("%s: %s", name, strerror(errno));
	} else if (*size > TEXT_MAX) {
		ctl_error("%s: more than %d bytes: this is no text of settings", name, TEXT_MAX);
	} else {
		text[*size] = '\0';
		if (!is_stdin)
			fclose(f);
		return text;
	}
	if (f && !is_stdin)
		fclose(f);
	free(text);
	return NULL;
}

/* Checks that the devices exist; with --device, skips the sections of others. */
static int choose_devices(const struct ctl *ctl, struct gsched *g, struct ctl_parsed *parsed,
			  const char *name)
{
	cJSON *status = ctl_read_status(g);
	char where[256];
	size_t kept = 0;
	int rc = status ? 0 : CTL_FAIL;

	for (size_t i = 0; i < parsed->n && !rc; i++) {
		if (ctl->device && strcmp(ctl->device, parsed->changes[i].device))
			continue;
		snprintf(where, sizeof(where), "%.200s:%u: ", name, parsed->changes[i].line);
		if (!ctl_find_device(status, parsed->changes[i].device, where))
			rc = CTL_FAIL;
		parsed->changes[kept++] = parsed->changes[i];
	}
	parsed->n = kept;
	cJSON_Delete(status);
	return rc;
}

int ctl_setconf(struct ctl *ctl, int argc, char **argv)
{
	const char *name = strcmp(argv[0], "-") ? argv[0] : "standard input";
	struct ctl_parsed parsed;
	struct gsched *g;
	int rc = CTL_FAIL;
	size_t size;
	char *text = read_text(argv[0], name, &size);

	if (!text)
		return CTL_FAIL;
	ctl_parse(text, size, &parsed);
	if (parsed.error) {
		ctl_error("%s:%u: %s%s%s", name, parsed.line, parsed.what, *parsed.what ? ": " : "",
			  parsed.error);
		goto free_text;
	}
	g = ctl_open(ctl);
	if (g && !choose_devices(ctl, g, &parsed, name))
		rc = ctl_apply(ctl, g, parsed.changes, parsed.n, name);
	gsched_close(g);
free_text:
	free(parsed.changes);
	free(text);
	return rc;
}
