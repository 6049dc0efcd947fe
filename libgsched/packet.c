// SPDX-License-Identifier: LGPL-2.1-or-later
/* Packets with descriptors over SOCK_SEQPACKET, and the memfds that they carry. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include "transport.h"
#include "proto.h"

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/*
 * The hash of the path to avoid, and until when in ms. In one word, which is read and written
 * atomically, because a fork may happen at any time.
 */
static _Atomic uint64_t avoided;

static uint32_t hash_path(const char *path)
{
	uint32_t h = 2166136261u;

	while (*path)
		h = (h ^ (unsigned char)*path++) * 16777619u;
	return h;
}

void gsched_socket_avoid(const char *path)
{
	uint32_t until = (uint32_t)(now_ns() / 1000000) + GSP_AVOID_MS;

	atomic_store(&avoided, (uint64_t)hash_path(path) << 32 | until);
}

static bool is_avoided(const char *path)
{
	uint64_t word = atomic_load(&avoided);
	int32_t left = (int32_t)((uint32_t)word - (uint32_t)(now_ns() / 1000000));

	return word >> 32 == hash_path(path) && left > 0 && left <= GSP_AVOID_MS;
}

void gsched_heard(struct gsched_silence *silence)
{
	silence->since_ns = now_ns();
	silence->probed = false;
}

int gsched_silent(int fd, struct gsched_silence *silence)
{
	struct {
		struct gsp_header head;
		struct gsched_info info;
	} probe = { .head = { .type = GSP_INFO }, .info = { .size = sizeof(probe.info) } };
	uint64_t now = now_ns();

	if (now - silence->since_ns < GSP_PATIENCE_MS * 1000000ull)
		return 0;
	if (silence->probed) {
		errno = ETIMEDOUT;
		return -1;
	}
	silence->since_ns = now;
	silence->probed = true;
	/* a full buffer means the same as no answer; errors show at the next receive */
	send(fd, &probe, sizeof(probe), MSG_DONTWAIT | MSG_NOSIGNAL);
	return 0;
}

int gsched_socket_connect(const char *path)
{
	const struct timeval patience = {
		.tv_sec = GSP_PATIENCE_MS / 1000, .tv_usec = GSP_PATIENCE_MS % 1000 * 1000,
	};
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd, err;

	if (strlen(path) >= sizeof(addr.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if (is_avoided(path)) {
		errno = ETIMEDOUT;
		return -1;
	}
	strcpy(addr.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		/* EAGAIN: the backlog is full, and no connection was accepted in time */
		err = errno == EAGAIN ? ETIMEDOUT : errno;
		if (err == ETIMEDOUT)
			gsched_socket_avoid(path);
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
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.space,
		.msg_controllen = sizeof(control.space),
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

long gsched_socket_answer(int fd, void *buf, size_t size, int *fds, unsigned int *n_fds)
{
	struct gsched_silence silence;
	unsigned int room = *n_fds;
	long n;

	gsched_heard(&silence);
	for (;;) {
		*n_fds = room;
		n = gsched_socket_recv(fd, buf, size, fds, n_fds, 0);
		if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
			if (gsched_silent(fd, &silence))
				return -1;
		} else if (n >= (long)sizeof(struct gsp_header) &&
			   ((struct gsp_header *)buf)->type == GSP_INFO) {
			gsched_heard(&silence);	/* the probe's */
		} else {
			return n;
		}
	}
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
