// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Administration of the module: groups are directories in configfs, a device's settings are files
 * in sysfs.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "transport.h"

static int write_file(const char *path, const char *value)
{
	int fd, err;
	size_t len;
	ssize_t n;

	if (!value) {
		errno = EINVAL;
		return -1;
	}
	len = strlen(value);
	fd = open(path, O_WRONLY | O_CLOEXEC | O_TRUNC);
	if (fd < 0)
		return -1;
	/* a single write(2), since the kernel takes a value whole or not at all */
	n = write(fd, value, len);
	err = n < 0 ? errno : n != (ssize_t)len ? EIO : 0;
	close(fd);
	errno = err;
	return err ? -1 : 0;
}

static int read_file(const char *path, char *buf, size_t size)
{
	size_t done = 0;
	int fd, err = 0;
	ssize_t n;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	for (;;) {
		if (done == size) {
			err = ERANGE;
			break;
		}
		n = read(fd, buf + done, size - done);
		if (n < 0) {
			err = errno;
			break;
		}
		if (!n) {
			buf[done] = 0;
			break;
		}
		done += n;
	}
	close(fd);
	errno = err;
	return err ? -1 : 0;
}

/* The first device by name, for callers that do not name one. */
static int first_device(const char *configfs, char *name, size_t size)
{
	DIR *dir = opendir(configfs);
	struct dirent *e;

	if (!dir)
		return -1;
	name[0] = 0;
	while ((e = readdir(dir))) {
		struct stat st;

		if (e->d_name[0] == '.' || strlen(e->d_name) >= size ||
		    (name[0] && strcmp(e->d_name, name) >= 0))
			continue;
		if (!fstatat(dirfd(dir), e->d_name, &st, 0) && S_ISDIR(st.st_mode))
			strcpy(name, e->d_name);
	}
	closedir(dir);
	if (name[0])
		return 0;
	errno = ENODEV;
	return -1;
}

int gsched_files_admin(const char *configfs, const char *sysfs, enum gsched_admin what,
		       const char *device, const char *group, const char *file, const char *value,
		       char *buf, size_t size)
{
	char first[NAME_MAX + 1], path[PATH_MAX];
	int n;

	if (!device) {
		if (first_device(configfs, first, sizeof(first)))
			return -1;
		device = first;
	}
	if (what == GSCHED_ADMIN_CLIENT || what == GSCHED_ADMIN_CLIENT_GET)
		n = snprintf(path, sizeof(path), "%s/%s/tasks/%s/%s", sysfs, device, group, file);
	else if (what == GSCHED_ADMIN_DEVICE)
		n = snprintf(path, sizeof(path), "%s/%s/%s", sysfs, device, file);
	else
		n = snprintf(path, sizeof(path), "%s/%s%s%s%s%s", configfs, device,
			     *group ? "/" : "", group, file ? "/" : "", file ? file : "");
	if (n >= (int)sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	/* a file that clients do not have is ENOENT, as with the daemon */
	if (what == GSCHED_ADMIN_CLIENT && access(path, F_OK)) {
		n = snprintf(path, sizeof(path), "%s/%s/tasks/%s", sysfs, device, group);
		errno = n < (int)sizeof(path) && access(path, F_OK) ? ESRCH : ENOENT;
		return -1;
	}
	switch (what) {
	case GSCHED_ADMIN_CREATE:
		return mkdir(path, 0755);
	case GSCHED_ADMIN_DELETE:
		return rmdir(path);
	case GSCHED_ADMIN_SET:
	case GSCHED_ADMIN_DEVICE:
	case GSCHED_ADMIN_CLIENT:
		return write_file(path, value);
	case GSCHED_ADMIN_GET:
	case GSCHED_ADMIN_CLIENT_GET:
		return read_file(path, buf, size);
	}
	errno = EINVAL;
	return -1;
}
