/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * gschedctl: the files of groups and devices, what each takes, and what helps when the arbiter
 * refuses.
 */
#ifndef GSCHEDCTL_FILES_H
#define GSCHEDCTL_FILES_H

#include <stdbool.h>

#define CTL_VALUE_MAX	4096

struct ctl_file {
	const char *name;
	const char *takes;	/* NULL: it can only be read */
	/*
	 * A value that need not be asked of the arbiter: of files that cannot be read, and so not
	 * be put back once they are written.
	 */
	bool (*valid)(const char *value);
};

/* Both end with a name of NULL */
extern const struct ctl_file ctl_group_files[], ctl_device_files[];
const struct ctl_file *ctl_file_find(const struct ctl_file *files, const char *name);

/*
 * What errno says of writing @value to @file, and the remedy, with @where in front: "", or where
 * the line stands. @file and @value may be NULL, @device NULL is the first. Both return CTL_FAIL.
 */
int ctl_group_error(const char *where, const char *group, const char *file, const char *value);
int ctl_client_error(const char *pid, const char *file, const char *value);
int ctl_device_error(const char *where, const char *device, const char *file, const char *value);

#endif /* GSCHEDCTL_FILES_H */
