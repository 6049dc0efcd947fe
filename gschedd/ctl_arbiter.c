// SPDX-License-Identifier: LGPL-2.1-or-later
/* gschedctl: the arbiter and its devices. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ctl.h"
#include "ctl_json.h"
#include "ctl_monitor.h"
#include "libgsched/proto.h"

cJSON *ctl_read_status(struct gsched *g)
{
	char *raw = gsched_status(g);
	cJSON *root;

	if (!raw) {
		ctl_error("status: %s; is the arbiter still there?", strerror(errno));
		return NULL;
	}
	root = cJSON_Parse(raw);
	free(raw);
	if (!strcmp(ctl_string(root, "backend"), "module"))
		ctl_netlink_status(root);
	if (!root)
		ctl_error("status: the arbiter's answer is not JSON; arbiter and gschedctl are of "
			  "different versions");
	return root;
}

const cJSON *ctl_find_device(const cJSON *status, const char *name, const char *where)
{
	const cJSON *devices = ctl_list(status, "devices"), *d;
	size_t size = 0;
	char *names = NULL;
	FILE *f;

	cJSON_ArrayForEach(d, devices)
		if (!name || !strcmp(name, ctl_text(d, "name")))
			return d;
	f = open_memstream(&names, &size);
	if (f) {
		cJSON_ArrayForEach(d, devices)
			fprintf(f, "%s%s", d != devices->child ? ", " : "", ctl_text(d, "name"));
		fclose(f);
	}
	if (size)
		ctl_error("%sdevice %s: there is none of this name; there are: %s", where, name,
			  names);
	else
		ctl_error("%sdevice %s: there are none; start gschedd with --device or --driver",
			  where, name ? name : "(first)");
	free(names);
	return NULL;
}

const char *ctl_arbiter_path(const struct ctl *ctl)
{
	const char *backend = getenv("GSCHED_BACKEND"), *socket = getenv("GSCHED_SOCKET");

	if (ctl->open.backend == GSCHED_BACKEND_MODULE ||
	    (ctl->open.backend == GSCHED_BACKEND_ANY && backend && !strcmp(backend, "module")))
		return GSCHED_DEVICE_NODE;
	if (ctl->open.socket)
		return ctl->open.socket;
	return socket && *socket ? socket : GSP_SOCKET_DEFAULT;
}

void ctl_no_arbiter(const struct ctl *ctl, const char *or_else)
{
	if (errno == EACCES)
		ctl_error("the arbiter may not be used by this user: %s; for /dev/gsched be in its "
			  "group (usermod -aG gsched USER, then log in again), else see the "
			  "permissions of gschedd's socket%s", strerror(errno), or_else);
	else
		ctl_error("no arbiter: %s: %s; load the module (modprobe gsched) or start "
			  "gschedd%s", ctl_arbiter_path(ctl), strerror(errno), or_else);
}

bool ctl_has_device(const struct ctl *ctl, struct gsched *g)
{
	cJSON *status = ctl->device ? ctl_read_status(g) : NULL;
	bool has = !ctl->device || (status && ctl_find_device(status, ctl->device, ""));

	cJSON_Delete(status);
	return has;
}

struct gsched *ctl_open(struct ctl *ctl)
{
	struct gsched *g = gsched_open(&ctl->open);

	if (!g) {
		ctl_no_arbiter(ctl, "");
		return NULL;
	}
	if (ctl_has_device(ctl, g))
		return g;
	gsched_close(g);
	return NULL;
}
