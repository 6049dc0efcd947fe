// SPDX-License-Identifier: LGPL-2.1-or-later
/* Processes in /proc. Any of it may be outdated a moment later, so callers compare start times. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "proc.h"

static ssize_t read_proc(pid_t pid, const char *name, char *buf, size_t size)
{
	char path[64];
	size_t got = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	while (got < size - 1) {
		ssize_t n = read(fd, buf + got, size - 1 - got);

		if (n < 0) {
			int err = errno;

			close(fd);
			return -err;
		}
		if (!n)
			break;
		got += n;
	}
	close(fd);
	buf[got] = '\0';
	return got;
}

int proc_stat(pid_t pid, struct proc_stat *st)
{
	char buf[4096], *open, *close, *uid;
	unsigned long long start;
	ssize_t n;
	int ppid, session;

	memset(st, 0, sizeof(*st));
	if (pid <= 0)
		return -ESRCH;
	n = read_proc(pid, "stat", buf, sizeof(buf));
	if (n < 0)
		return n;
	/* the name may contain anything, even ')' and spaces: it ends at the last ')' */
	open = strchr(buf, '(');
	close = strrchr(buf, ')');
	if (!open || !close || close < open)
		return -EIO;
	*close = '\0';
	for (size_t i = 0; i < sizeof(st->comm) - 1 && open[1 + i]; i++) {
		unsigned char c = open[1 + i];

		st->comm[i] = c < 0x20 || c > 0x7e ? '?' : c;
	}
	if (sscanf(close + 1,
		   " %*c %d %*d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
		   "%*d %*d %*d %llu", &ppid, &session, &start) != 3)
		return -EIO;
	st->ppid = ppid;
	st->session = session;
	st->start = start;

	n = read_proc(pid, "status", buf, sizeof(buf));
	if (n < 0)
		return n;
	uid = strstr(buf, "\nUid:");
	if (!uid)
		return -EIO;
	st->uid = strtoul(uid + 5, NULL, 10);
	return 0;
}

int proc_cgroup(pid_t pid, char *buf, size_t size)
{
	char text[8192] = "", *line, *end;
	ssize_t n = read_proc(pid, "cgroup", text, sizeof(text));

	if (n < 0)
		return n;
	line = !strncmp(text, "0::", 3) ? text : strstr(text, "\n0::");
	if (!line)
		return -ENOENT;
	line += *line == '\n' ? 4 : 3;
	end = strchr(line, '\n');
	if (!end || (size_t)(end - line) >= size)
		return -ENAMETOOLONG;
	memcpy(buf, line, end - line);
	buf[end - line] = '\0';
	return 0;
}
