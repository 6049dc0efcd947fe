/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* gschedctl monitor: the interface between sources of events and their consumers. */
#ifndef GSCHEDCTL_MONITOR_H
#define GSCHEDCTL_MONITOR_H

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>
#include "ctl.h"

/*
 * A consumer of events. @device: it needs only that device's; NULL: all. @tasks: also those of
 * tasks. line() is called for each object and event; false: stop. pause() is called when there is
 * nothing to read. It returns the time in ms after which it is called again if nothing has come;
 * -1: never, MONITOR_END: stop. lost() is called when events were lost.
 */
struct monitor {
	const char *device;
	bool tasks;
	bool (*line)(const cJSON *o);
	int (*pause)(void);
	void (*lost)(void);
};

#define MONITOR_END	(-2)

/* Runs until line() or pause() stops it. Returns the exit status; prints errors. */
int ctl_monitor_events(struct gsched *g, const struct monitor *to);
/* Waits until @fd is readable; false: pause() has returned MONITOR_END. */
bool ctl_monitor_wait(const struct monitor *to, int fd);

int ctl_netlink_monitor(const struct monitor *to);
/* Passes the objects of the @n dumps to line(). Not 0: not all of them. Prints nothing. */
int ctl_netlink_dump(const struct monitor *to, const uint8_t *cmds, size_t n);
/* Adds bands and tasks to the module's status. */
void ctl_netlink_status(cJSON *root);

#endif /* GSCHEDCTL_MONITOR_H */
