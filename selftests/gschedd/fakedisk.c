// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Preloaded: a disk that syncs nothing while the file $FAKEDISK_HANGS exists, and a clock that is an
 * hour fast while $FAKEDISK_FAST does.
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

__attribute__((visibility("default"))) int fdatasync(int fd)
{
	const char *hangs = getenv("FAKEDISK_HANGS");

	while (hangs && !access(hangs, F_OK))
		usleep(1000);
	return (int)syscall(SYS_fdatasync, fd);
}

static long ahead(void)
{
	const char *fast = getenv("FAKEDISK_FAST");

	return fast && !access(fast, F_OK) ? 3600 : 0;
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *to)
{
	int rc = (int)syscall(SYS_clock_gettime, clock, to);

	if (!rc && clock == CLOCK_REALTIME)
		to->tv_sec += ahead();
	return rc;
}

__attribute__((visibility("default"))) time_t time(time_t *to)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (to)
		*to = now.tv_sec;
	return now.tv_sec;
}
