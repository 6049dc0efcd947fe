// SPDX-License-Identifier: LGPL-2.1-or-later
/* Packets with descriptors over a SOCK_SEQPACKET, and the memfds they carry. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "transport.h"
#include "proto.h"

int gsched_socket_connect(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd, err;

	if (strlen(path) >= sizeof(addr.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(addr.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		err = errno;
		close(fd);
		errno = err;
		return -1;
	}
	return fd;
}

int gsched_socket_send(int fd, const void *buf, size_t size, const int *fds, unsigned int n_fds)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(GSP_MAX_FDS * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	if (n_fds) {
		struct cmsghdr *c;

		msg.msg_control = control.space;
		msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
	}
	do
		n = sendmsg(fd, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -1 : 0;
}

long gsched_socket_recv(int fd, void *buf, size_t size, int *fds, unsigned int *n_fds, int flags)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(GSP_MAX_FDS * sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = buf, .iov_len = size };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = sizeof(control.space),
	};
	unsigned int room = *n_fds, i, n;
	struct cmsghdr *c;
	ssize_t len = recvmsg(fd, &msg, flags | MSG_CMSG_CLOEXEC);

	*n_fds = 0;
	if (len < 0)
		return len;
	for (c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (i = 0; i < n; i++) {
			int got;

			memcpy(&got, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (*n_fds < room)
				fds[(*n_fds)++] = got;
			else
				close(got);
		}
	}
	return len;
}

char *gsched_read_fd(int fd, size_t *size)
{
	struct stat st;
	size_t done = 0;
	char *text;
	ssize_t n;

	if (fstat(fd, &st))
		return NULL;
	if (st.st_size < 0 || st.st_size > (1LL << 32)) {
		errno = EFBIG;
		return NULL;
	}
	text = malloc(st.st_size + 1);
	if (!text)
		return NULL;
	while (done < (size_t)st.st_size) {
		n = pread(fd, text + done, st.st_size - done, done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += n;
	}
	text[done] = 0;
	if (size)
		*size = done;
	return text;
}
