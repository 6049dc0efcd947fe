/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * gschedctl: one file a family of commands. All of it goes through libgsched, so either backend
 * will do; the module's events come by netlink.
 */
#ifndef GSCHEDCTL_H
#define GSCHEDCTL_H

#include <argp.h>
#include <gsched.h>

struct ctl {
	const char *device;		/* NULL: the first */
	struct gsched_open_opts open;
	bool json;			/* with ctl_output_options */
};

#define CTL_FAIL	1
#define CTL_USAGE	2

/*
 * Each gets the arguments behind its name and options, and returns the exit status: CTL_FAIL or
 * CTL_USAGE after saying what is wrong.
 */
int ctl_run(struct ctl *ctl, int argc, char **argv);
int ctl_group_create(struct ctl *ctl, int argc, char **argv);
int ctl_group_set(struct ctl *ctl, int argc, char **argv);
int ctl_group_list(struct ctl *ctl, int argc, char **argv);
int ctl_group_get(struct ctl *ctl, int argc, char **argv);
int ctl_group_show(struct ctl *ctl, int argc, char **argv);
int ctl_group_delete(struct ctl *ctl, int argc, char **argv);
int ctl_client_set(struct ctl *ctl, int argc, char **argv);
int ctl_client_get(struct ctl *ctl, int argc, char **argv);
int ctl_device_list(struct ctl *ctl, int argc, char **argv);
int ctl_device_set(struct ctl *ctl, int argc, char **argv);
int ctl_device_delete(struct ctl *ctl, int argc, char **argv);
int ctl_showconf(struct ctl *ctl, int argc, char **argv);
int ctl_setconf(struct ctl *ctl, int argc, char **argv);
int ctl_simulate(struct ctl *ctl, int argc, char **argv);
int ctl_status(struct ctl *ctl, int argc, char **argv);
int ctl_watch(struct ctl *ctl, int argc, char **argv);
int ctl_monitor(struct ctl *ctl, int argc, char **argv);
int ctl_metrics(struct ctl *ctl, int argc, char **argv);

/* The options that only some commands have */
extern const struct argp ctl_run_options, ctl_device_delete_options, ctl_output_options,
	ctl_watch_options, ctl_monitor_options, ctl_simulate_options;

/*
 * A connection to an arbiter that has the device asked for; NULL after saying what is missing and
 * what to do.
 */
struct gsched *ctl_open(struct ctl *ctl);
/*
 * The two halves of it: what errno says, with @or_else behind it; and whether there is the device
 * asked for, else says so.
 */
void ctl_no_arbiter(const char *or_else);
bool ctl_has_device(const struct ctl *ctl, struct gsched *g);
/* On stderr; what no terminal should get, of names that somebody else chose, as \xNN */
void ctl_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/*
 * "/" and "/a" as in a file system, "" and "a" to the library; NULL after saying that it is empty
 */
const char *ctl_group_path(const char *name);
/* @path and every group above it */
int ctl_group_create_all(struct gsched *g, const char *device, const char *path);

/*
 * Set the environment of the MPS server that a program of @group uses (NULL: of the group that @pid
 * is in; 0 the caller), if its band has one. Says why not; -1: and --strict forbids to go on.
 */
int ctl_band(const struct ctl *ctl, struct gsched *g, const char *group, int pid, bool strict);
/*
 * The band that a group's file, or that of one above it, names; "" none. -1: with errno. Both
 * backends
 */
int ctl_group_band(struct gsched *g, const char *device, const char *group, char *band,
		   size_t size);

#endif /* GSCHEDCTL_H */
