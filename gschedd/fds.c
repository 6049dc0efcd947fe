// SPDX-License-Identifier: LGPL-2.1-or-later
/* Packets with descriptors, over SOCK_SEQPACKET. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "gschedd.h"

union control {
	struct cmsghdr align;
	char buf[CMSG_SPACE(sizeof(int) * GSP_MAX_FDS)];
};

void close_all(const int *fds, unsigned int n)
{
	while (n--)
		close(fds[n]);
}

int send_fds(int sock, const void *data, size_t len, const int *fds, unsigned int n_fds, int flags)
{
	union control control = { 0 };
	struct iovec iov = { .iov_base = (void *)data, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (n_fds) {
		struct cmsghdr *cm;

		msg.msg_control = control.buf;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		cm = CMSG_FIRSTHDR(&msg);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		memcpy(CMSG_DATA(cm), fds, sizeof(int) * n_fds);
	}
	return sendmsg(sock, &msg, flags | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

ssize_t recv_fds(int sock, void *data, size_t len, int *fds, unsigned int *n_fds, int *flags)
{
	union control control;
	struct iovec iov = { .iov_base = data, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.buf,
			      .msg_controllen = sizeof(control.buf) };
	struct cmsghdr *cm;
	ssize_t n;

	*n_fds = 0;
	do
		n = recvmsg(sock, &msg, *flags | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	*flags = msg.msg_flags;
	for (cm = CMSG_FIRSTHDR(&msg); cm; cm = CMSG_NXTHDR(&msg, cm)) {
		if (cm->cmsg_level != SOL_SOCKET || cm->cmsg_type != SCM_RIGHTS)
			continue;
		*n_fds = (cm->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds, CMSG_DATA(cm), *n_fds * sizeof(int));
	}
	return n;
}
