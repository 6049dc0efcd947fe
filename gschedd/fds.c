// SPDX-License-Identifier: LGPL-2.1-or-later
/* Packets with descriptors, over SOCK_SEQPACKET. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "gschedd.h"

#define SCM_MAX_FD	253	/* the kernel's bound */

union control {
	struct cmsghdr align;
	char buf[CMSG_SPACE(sizeof(int) * GSP_MAX_FDS)];
};

/* Those for which there is no room the kernel would close, in this thread. */
union all_control {
	struct cmsghdr align;
	char buf[CMSG_SPACE(sizeof(int) * SCM_MAX_FD)];
};

void close_all(const int *fds, unsigned int n)
{
	while (n--)
		close(fds[n]);
}

/* Memory files, as all have that are of use, are closed at once. */
void close_foreign(const int *fds, unsigned int n)
{
	while (n--)
		if (fcntl(fds[n], F_GET_SEALS) >= 0)
			close(fds[n]);
		else
			close_later(fds[n]);
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
	union all_control control;
	struct iovec iov = { .iov_base = data, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.buf,
			      .msg_controllen = sizeof(control.buf) };
	struct cmsghdr *cm;
	int got[SCM_MAX_FD];
	unsigned int n_got;
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
		n_got = (cm->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(got, CMSG_DATA(cm), n_got * sizeof(int));
		*n_fds = n_got < GSP_MAX_FDS ? n_got : GSP_MAX_FDS;
		memcpy(fds, got, *n_fds * sizeof(int));
		if (n_got > GSP_MAX_FDS) {
			*flags |= MSG_CTRUNC;
			close_foreign(got + GSP_MAX_FDS, n_got - GSP_MAX_FDS);
		}
	}
	return n;
}
