/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * gschedctl: one file per family of commands. Commands use libgsched, so they work with either
 * backend; the module's events come by netlink.
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
 * Commands get the arguments after their name and options, and return the exit status: CTL_FAIL or
 * CTL_USAGE after printing the error.
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
int ctl_qos(struct ctl *ctl, int argc, char **argv);

/* Options of single commands */
extern const struct argp ctl_run_options, ctl_device_delete_options, ctl_output_options,
	ctl_watch_options, ctl_monitor_options, ctl_simulate_options, ctl_qos_options;

/*
 * Connects to an arbiter that has the requested device; NULL after printing what is missing and
 * what to do.
 */
struct gsched *ctl_open(struct ctl *ctl);
/*
 * The two parts of ctl_open(): prints errno's meaning, followed by @or_else; and checks that the
 * requested device exists, else prints that.
 */
void ctl_no_arbiter(const struct ctl *ctl, const char *or_else);
/* Where gsched_open() looks for the arbiter last: gschedd's socket or the module's device node. */
const char *ctl_arbiter_path(const struct ctl *ctl);
bool ctl_has_device(const struct ctl *ctl, struct gsched *g);
/* Prints @s; characters that a terminal should not get appear as \xNN. */
void ctl_put_safely(FILE *to, const char *s);
/* Prints to stderr; characters of foreign names that a terminal should not get appear as \xNN. */
void ctl_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/*
 * "/" and "/a" as in a file system become "" and "a" for the library; NULL after an error about an
 * empty name.
 */
const char *ctl_group_path(const char *name);
/* Creates @path and all groups above it. */
int ctl_group_create_all(struct gsched *g, const char *device, const char *path);

/*
 * Sets the environment for the MPS server that a program of @group uses (NULL: of the group that
 * @pid is in; 0: the caller), if its band has one. Prints why not; -1: --strict forbids to
 * continue.
 */
int ctl_band(const struct ctl *ctl, struct gsched *g, const char *group, int pid, bool strict);
/*
 * The band named by a group's file, or by that of an ancestor; "": none. -1 with errno. Both
 * backends.
 */
int ctl_group_band(struct gsched *g, const char *device, const char *group, char *band,
		   size_t size);

#endif /* GSCHEDCTL_H */
