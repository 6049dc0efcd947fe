// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Who the peer of a connection is, as the kernel tells it. Root and gschedd's own user
 * administrate, but not the root of a container: whoever makes a user namespace may have the uid 0
 * of the host in it and still be confined. So an administrator is in gschedd's user namespace, too.
 * That is asked of the process and not of a second socket for administrators, since a file's mode
 * lets that same uid 0 through.
 *
 * The process is named by a pidfd of the connection itself (Linux 6.5). Before that there is only
 * the pid at the time of connect, which may be another process's by now if the connection was not
 * accepted at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "gschedd.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD	77
#endif
#define NOBODY		65534

static int peer_pidfd(int fd, pid_t pid, bool waited)
{
	socklen_t len = sizeof(int);
	int pidfd;

	if (!getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len))
		return pidfd;
	if (errno != ENOPROTOOPT || waited || pid <= 0)
		return -1;
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

static bool in_our_namespace(pid_t pid)
{
	struct stat ours, theirs;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	return !stat("/proc/self/ns/user", &ours) && !stat(path, &theirs) &&
	       ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

int peer_identify(int fd, bool waited, struct peer *peer)
{
	socklen_t len = sizeof(struct ucred);
	struct ucred cred;
	struct pollfd ended;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return -errno;
	*peer = (struct peer){ .pid = cred.pid, .uid = cred.uid };
	if (cred.uid && cred.uid != geteuid())
		return 0;
	ended = (struct pollfd){ .fd = peer_pidfd(fd, cred.pid, waited), .events = POLLIN };
	/* the pid was the process's all the time if that has not ended after it was looked at */
	peer->admin = ended.fd >= 0 && in_our_namespace(cred.pid) && !poll(&ended, 1, 0);
	if (ended.fd >= 0)
		close(ended.fd);
	/* nor is it the owner of what root owns, or anybody to start processes for */
	if (!peer->admin)
		peer->uid = NOBODY;
	return 0;
}
