// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The identity of a connection's peer, as reported by the kernel. Root and gschedd's own user are
 * administrators, but not the root of a container: a process in a user namespace that it created
 * may have uid 0 of the host and still be confined. So an administrator must also be in gschedd's
 * user namespace. This is checked on the process; a second socket for administrators would not
 * help, because a file's mode admits that uid 0 too.
 *
 * The process is identified by a pidfd of the connection (Linux 6.5). Before that there is only the
 * pid at the time of connect, which may have been reused if the connection was not accepted at
 * once.
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

int peer_gone(int fd, pid_t pid)
{
	struct pollfd ended = { .events = POLLIN };
	bool gone;

	if (pid <= 0)
		return 0;
	ended.fd = peer_pidfd(fd, pid, false);
	if (ended.fd < 0)
		return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? -errno : -ESRCH;
	gone = poll(&ended, 1, 0);
	close(ended.fd);
	return gone ? -ESRCH : 0;
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
	/* if the process has not ended after the check, the pid was its pid all the time */
	peer->admin = ended.fd >= 0 && in_our_namespace(cred.pid) && !poll(&ended, 1, 0);
	if (ended.fd >= 0)
		close(ended.fd);
	/* nor does it own what root owns, and no processes are started for it */
	if (!peer->admin)
		peer->uid = NOBODY;
	return 0;
}
