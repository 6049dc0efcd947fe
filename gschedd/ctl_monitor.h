/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* gschedctl monitor: between the two ways to an arbiter's events and who prints them. */
#ifndef GSCHEDCTL_MONITOR_H
#define GSCHEDCTL_MONITOR_H

#include <cjson/cJSON.h>
#include "ctl.h"

/*
 * @device: only its lines are needed, NULL all. @tasks: also those of tasks. line() gets each
 * object and event and returns false to end; pause() is called when there is nothing to read, lost()
 * when events were lost.
 */
struct monitor {
	const char *device;
	bool tasks;
	bool (*line)(const cJSON *o);
	void (*pause)(void);
	void (*lost)(void);
};

/* Until line() has said no more. The exit status; says what is wrong. */
int ctl_netlink_monitor(const struct monitor *to);

#endif /* GSCHEDCTL_MONITOR_H */
