// SPDX-License-Identifier: LGPL-2.1-or-later
/* gschedctl device */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ctl.h"
#include "ctl_change.h"
#include "ctl_json.h"

static bool force;

static const struct argp_option delete_options[] = {
	{ "force", 'f', NULL, 0, "Send its clients away: they go on unmanaged", 0 },
	{ 0 },
};

static error_t delete_option(int key, char *arg, struct argp_state *state)
{
	if (key != 'f')
		return ARGP_ERR_UNKNOWN;
	force = true;
	return 0;
}

const struct argp ctl_device_delete_options = {
	.options = delete_options, .parser = delete_option,
};

/* The device's UUID, from the status. */
static bool device_uuid(struct gsched *g, const char *name, unsigned char *uuid)
{
	cJSON *status = ctl_read_status(g);
	const cJSON *device = status ? ctl_find_device(status, name, "") : NULL;
	unsigned int n = 0;

	for (const char *p = ctl_text(device, "uuid"); *p && n < 16;
	     p += *p == '-' || !p[1] ? 1 : 2)
		if (*p != '-' && sscanf(p, "%2hhx", &uuid[n++]) != 1)
			break;
	if (device && n != 16)
		ctl_error("device %s: the arbiter says no UUID of it; arbiter and gschedctl are of "
			  "different versions",
			  name);
	cJSON_Delete(status);
	return n == 16;
}

/* False after printing that --device names another device than the command. */
static bool is_the_one(const struct ctl *ctl, const char *name)
{
	if (!ctl->device || !strcmp(ctl->device, name))
		return true;
	ctl_error("device %s: --device names another one, %s; leave one of them out", name,
		  ctl->device);
	return false;
}

int ctl_device_delete(struct ctl *ctl, int argc, char **argv)
{
	const char *name = argv[0];
	unsigned char uuid[16];
	int rc = CTL_FAIL;
	struct gsched *g;

	if (!is_the_one(ctl, name))
		return CTL_USAGE;
	g = ctl_open(ctl);
	if (!g)
		return CTL_FAIL;
	if (!device_uuid(g, name, uuid))
		goto close;
	if (!gsched_device_delete(g, uuid, force))
		rc = 0;
	else
		ctl_error("device %s: %s; %s", name, strerror(errno),
			  errno == EPERM ? "run gschedctl as root or as gschedd's user" :
			  force ? "delete its groups first" :
			  "delete its groups first, and end its programs or use --force");
close:
	gsched_close(g);
	return rc;
}

int ctl_device_set(struct ctl *ctl, int argc, char **argv)
{
	if (!strchr(argv[0], '=')) {
		if (!is_the_one(ctl, argv[0]))
			return CTL_USAGE;
		ctl->device = *argv++;
		argc--;
	}
	if (!argc) {
		ctl_error("device set: write FILE=VALUE, such as policy=ffs");
		return CTL_USAGE;
	}
	return ctl_set(ctl, CTL_SET_DEVICE, NULL, argc, argv);
}
