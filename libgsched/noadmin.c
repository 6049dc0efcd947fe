// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Replaces admin.c and status.c in the interposer: programs that preload it do not administer
 * anything, and must not get a JSON library.
 */
#include <errno.h>
#include "libgsched/transport.h"

int gsched_files_admin(const char *configfs, const char *sysfs, enum gsched_admin what,
		       const char *device, const char *group, const char *file, const char *value,
		       char *buf, size_t size)
{
	errno = EOPNOTSUPP;
	return -1;
}

char *gsched_files_status(const char *configfs, const char *sysfs)
{
	errno = EOPNOTSUPP;
	return NULL;
}
