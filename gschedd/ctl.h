/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* gschedctl: one file a family of subcommands. All of it goes through libgsched, so either backend will do. */
#ifndef GSCHEDCTL_H
#define GSCHEDCTL_H

#include <gsched.h>

struct ctl {
	const char *device;		/* NULL: the first */
	struct gsched_open_opts open;
};

#define CTL_FAIL	1
#define CTL_USAGE	2

/* Each returns the exit status; CTL_USAGE makes main() show the usage. argv[0] is the subcommand. */
int ctl_run(struct ctl *ctl, int argc, char **argv);
int ctl_group(struct ctl *ctl, int argc, char **argv);
int ctl_device(struct ctl *ctl, int argc, char **argv);
int ctl_status(struct ctl *ctl, int argc, char **argv);
int ctl_watch(struct ctl *ctl, int argc, char **argv);

/* A connection; NULL after saying why there is none and what to do. */
struct gsched *ctl_open(struct ctl *ctl);
void ctl_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* "group NAME: file = value: what errno says; remedy". @file and @value may be NULL. Returns CTL_FAIL. */
int ctl_group_error(const char *group, const char *file, const char *value);
/* @path and every group above it */
int ctl_group_create(struct gsched *g, const char *device, const char *path);

/*
 * Set the environment of the MPS server that a program of @group uses (NULL: of the group that @pid is in; 0 the caller), if its
 * band has one. Says why not; -1: and --strict forbids to go on.
 */
int ctl_band(const struct ctl *ctl, struct gsched *g, const char *group, int pid, bool strict);

/* @fn for every group of the device, "" first; stops at the first that does not return 0 */
int ctl_groups_each(struct ctl *ctl, struct gsched *g,
		    int (*fn)(struct ctl *ctl, struct gsched *g, const char *group));

#endif /* GSCHEDCTL_H */
