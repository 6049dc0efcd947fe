// SPDX-License-Identifier: LGPL-2.1-or-later
/* gschedctl client: the files of one process's client on a device. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "ctl.h"
#include "ctl_change.h"
#include "ctl_files.h"

static bool pid_valid(const char *text)
{
	char *end;
	long pid;

	errno = 0;
	pid = strtol(text, &end, 10);
	if (*text >= '1' && *text <= '9' && !*end && !errno && pid <= INT32_MAX)
		return true;
	ctl_error("client %s: give the number of a process that gschedctl status shows", text);
	return false;
}

int ctl_client_set(struct ctl *ctl, int argc, char **argv)
{
	if (!pid_valid(argv[0]))
		return CTL_USAGE;
	return ctl_set(ctl, CTL_SET_CLIENT, argv[0], argc - 1, argv + 1);
}

int ctl_client_get(struct ctl *ctl, int argc, char **argv)
{
	char value[CTL_VALUE_MAX];
	int rc = CTL_FAIL;
	struct gsched *g;

	if (!pid_valid(argv[0]))
		return CTL_USAGE;
	g = ctl_open(ctl);
	if (!g)
		return CTL_FAIL;
	if (gsched_client_get(g, ctl->device, atoi(argv[0]), argv[1], value, sizeof(value))) {
		ctl_client_error(argv[0], argv[1], NULL);
	} else {
		fputs(value, stdout);
		rc = 0;
	}
	gsched_close(g);
	return rc;
}
