/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* gschedctl monitor: between the two ways to an arbiter's events and who prints them. */
#ifndef GSCHEDCTL_MONITOR_H
#define GSCHEDCTL_MONITOR_H

#include <cjson/cJSON.h>
#include "ctl.h"

/*
 * @device: only its lines are needed, NULL all. @tasks: also those of tasks. line() gets each
 * object and event and returns false to end. pause() is called when there is nothing to read, and
 * again when there was nothing for as long as it says: in ms, -1 for ever, or -2 to end. lost() is
 * called when events were lost.
 */
struct monitor {
	const char *device;
	bool tasks;
	bool (*line)(const cJSON *o);
	int (*pause)(void);
	void (*lost)(void);
};

#define MONITOR_END	(-2)

/* Until line() or pause() has said no more. The exit status; says what is wrong. */
int ctl_monitor_events(struct gsched *g, const struct monitor *to);
/* Waits until @fd is readable; false: pause() has said no more. */
bool ctl_monitor_wait(const struct monitor *to, int fd);

int ctl_netlink_monitor(const struct monitor *to);

#endif /* GSCHEDCTL_MONITOR_H */
