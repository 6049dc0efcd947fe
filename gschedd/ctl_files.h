/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * gschedctl: the files of groups and devices, their values, and the remedy when the arbiter refuses
 * one.
 */
#ifndef GSCHEDCTL_FILES_H
#define GSCHEDCTL_FILES_H

#include <stdbool.h>

#define CTL_VALUE_MAX	4096

struct ctl_file {
	const char *name;
	const char *takes;	/* NULL: read-only */
	/*
	 * Checks a value without the arbiter, for files that cannot be read, and so cannot be
	 * restored after they are written.
	 */
	bool (*valid)(const char *value);
};

/* Terminated by a name of NULL */
extern const struct ctl_file ctl_group_files[], ctl_device_files[];
const struct ctl_file *ctl_file_find(const struct ctl_file *files, const char *name);

/* How groups may be named, if @path is not such a name, else NULL. The root's path is empty. */
const char *ctl_path_fault(const char *path);

/*
 * Prints what errno means for writing @value to @file, and the remedy, after @where: "", or the
 * position of the line. @file and @value may be NULL; @device NULL: the first. Both return
 * CTL_FAIL.
 */
int ctl_group_error(const char *where, const char *group, const char *file, const char *value);
int ctl_client_error(const char *pid, const char *file, const char *value);
int ctl_device_error(const char *where, const char *device, const char *file, const char *value);

#endif /* GSCHEDCTL_FILES_H */
