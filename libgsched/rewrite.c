// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The rewrite service, which gschedd provides whichever arbiter decides. Each call uses a
 * connection of its own, so a long rewrite blocks nothing, and any thread may call it.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <stdlib.h>
#include "transport.h"
#include "proto.h"

static int append(int fd, const void *data, size_t size)
{
	size_t done = 0;

	while (done < size) {
		ssize_t n = write(fd, (const char *)data + done, size - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			errno = n ? errno : ENOSPC;
			return -1;
		}
		done += n;
	}
	return 0;
}

static int image_fd(const void *image, size_t size, const char *kernel)
{
	int fd = memfd_create("gsched-image", MFD_CLOEXEC), err;

	if (fd >= 0 && (append(fd, image, size) || append(fd, kernel, strlen(kernel)))) {
		err = errno;
		close(fd);
		errno = err;
		fd = -1;
	}
	return fd;
}

int gsched_rewrite(const void *image, size_t size, unsigned int arch, char **ptx, size_t *ptx_size,
		   void **description, size_t *description_size)
{
	struct gsched_rewrite_opts opts = { .size = sizeof(opts), .arch = arch };

	return gsched_rewrite_with(image, size, &opts, ptx, ptx_size, description,
				   description_size);
}

int gsched_rewrite_with(const void *image, size_t size, const struct gsched_rewrite_opts *asked,
			char **ptx, size_t *ptx_size, void **description, size_t *description_size)
{
	struct gsched_rewrite_opts opts = { 0 };
	const char *path = secure_getenv("GSCHED_SOCKET"), *kernel;
	struct {
		struct gsp_header head;
		struct gsp_rewrite body;
	} req = {
		.head = { .type = GSP_REWRITE, .cookie = 1 },
		.body = { .size = sizeof(req.body), .image_size = size },
	}, reply;
	_Alignas(8) char buf[sizeof(struct gsp_header) + GSP_BODY_MAX];
	unsigned int n_fds = GSP_MAX_FDS;
	int fds[GSP_MAX_FDS], fd, image_file, err = 0, rc = -1;
	long n;

	*ptx = NULL;
	*description = NULL;
	/* a caller that was built with a shorter struct gets 0 for the rest */
	memcpy(&opts, asked, asked->size < sizeof(opts) ? asked->size : sizeof(opts));
	kernel = opts.kernel ? opts.kernel : "";
	if (asked->size < offsetof(struct gsched_rewrite_opts, kernel) ||
	    strlen(kernel) > GSP_KERNEL_NAME_MAX) {
		errno = EINVAL;
		return -1;
	}
	req.body.arch = opts.arch;
	req.body.name_size = (uint32_t)strlen(kernel);
	req.body.flags = (opts.resumable ? GSP_REWRITE_RESUMABLE : 0) |
			 (opts.modes ? GSP_REWRITE_MODES : 0) |
			 (opts.describe ? GSP_REWRITE_DESCRIBE : 0);
	if (!path || !*path)
		path = GSP_SOCKET_DEFAULT;
	fd = gsched_socket_connect(path);
	if (fd < 0) {
		if (errno != ETIMEDOUT)
			errno = ENOTCONN;
		return -1;
	}
	image_file = image_fd(image, size, kernel);
	if (image_file < 0)
		goto close_fd;
	if (gsched_socket_send(fd, &req, sizeof(req), &image_file, 1)) {
		errno = ENOTCONN;
		goto close_image;
	}
	n = gsched_socket_answer(fd, buf, sizeof(buf), fds, &n_fds);
	if (n < (long)sizeof(reply.head)) {
		errno = n < 0 ? errno : ENOTCONN;
		if (errno == ETIMEDOUT)
			gsched_socket_avoid(path);
		goto close_image;
	}
	memcpy(&reply.head, buf, sizeof(reply.head));
	/* a refusal has only the description, with the reason */
	if (n_fds == 2) {
		*ptx = gsched_read_fd(fds[0], ptx_size);
		*description = gsched_read_fd(fds[1], description_size);
	} else if (n_fds == 1) {
		*description = gsched_read_fd(fds[0], description_size);
	}
	while (n_fds)
		close(fds[--n_fds]);
	if (reply.head.err) {
		err = reply.head.err;
	} else if (!*ptx != opts.describe || !*description) {
		err = EPROTO;
	} else {
		rc = 0;
		goto close_image;
	}
	free(*ptx);
	*ptx = NULL;
	if (err != ENOEXEC) {
		free(*description);
		*description = NULL;
	}
	errno = err;
close_image:
	err = errno;
	close(image_file);
	errno = err;
close_fd:
	err = errno;
	close(fd);
	errno = err;
	return rc;
}
