// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A program may close descriptors that it did not open, all above 2, say, and what it opens next
 * gets their numbers. So each of ours is marked, and is looked at before it is read, written or
 * closed: the signal of F_SETSIG belongs to the open file, and is sent only with O_ASYNC. Not so
 * before a launch is submitted: that would be one more system call, and a file of the program's
 * refuses what is asked of it by ioctl(2) or sendmsg(2).
 */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>
#include "transport.h"

#define MARK	SIGURG

static _Atomic bool unmarked;	/* marks do not work here: every descriptor counts as ours */

int gsched_fd_mark(int fd)
{
	if (fd >= 0 && (fcntl(fd, F_SETSIG, MARK) || fcntl(fd, F_GETSIG) != MARK))
		atomic_store(&unmarked, true);
	return fd;
}

bool gsched_fd_ours(int fd)
{
	return fd < 0 || atomic_load_explicit(&unmarked, memory_order_relaxed) ||
	       fcntl(fd, F_GETSIG) == MARK;
}

void gsched_fd_close(int fd)
{
	if (fd >= 0 && gsched_fd_ours(fd))
		close(fd);
}
