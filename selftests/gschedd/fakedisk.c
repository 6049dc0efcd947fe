// SPDX-License-Identifier: LGPL-2.1-or-later
/* Preloaded: a disk that syncs nothing while the file $FAKEDISK_HANGS exists. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((visibility("default"))) int fdatasync(int fd)
{
	const char *hangs = getenv("FAKEDISK_HANGS");

	while (hangs && !access(hangs, F_OK))
		usleep(1000);
	return (int)syscall(SYS_fdatasync, fd);
}
