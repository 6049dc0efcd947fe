// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * MPS servers of bands, which gschedd runs whichever arbiter decides. Each call uses a connection
 * of its own, because the answer may take seconds.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "transport.h"
#include "proto.h"

static int copy_in(char *to, size_t size, const char *from)
{
	size_t len = from ? strlen(from) : 0;

	if (len >= size) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(to, from ? from : "", len + 1);
	return 0;
}

static int send_request(int fd, const struct gsp_header *head, struct gsp_band *body)
{
	_Alignas(8) char buf[sizeof(*head) + GSP_BODY_MAX];
	struct gsp_header reply;
	unsigned int n_fds = 0;
	long n;

	memcpy(buf, head, sizeof(*head));
	memcpy(buf + sizeof(*head), body, sizeof(*body));
	if (gsched_socket_send(fd, buf, sizeof(*head) + sizeof(*body), NULL, 0))
		return -1;
	n = gsched_socket_answer(fd, buf, sizeof(buf), NULL, &n_fds);
	if (n < (long)sizeof(reply)) {
		errno = n < 0 ? errno : EPIPE;
		return -1;
	}
	memcpy(&reply, buf, sizeof(reply));
	if (n == (long)(sizeof(reply) + sizeof(*body)))
		memcpy(body, buf + sizeof(reply), sizeof(*body));
	else if (!reply.err)
		reply.err = EPROTO;
	errno = (int)reply.err;
	return reply.err ? -1 : 0;
}

int gsched_band(const struct gsched_band_opts *opts, struct gsched_band_info *info)
{
	struct gsp_header head = { .type = GSP_BAND, .cookie = 1 };
	struct gsp_band body = { .size = sizeof(body) };
	const char *path, *env;
	int fd, rc, err;

	if (opts->size < sizeof(*opts) || info->size < sizeof(*info)) {
		errno = EINVAL;
		return -1;
	}
	memset((char *)info + sizeof(info->size), 0, sizeof(*info) - sizeof(info->size));
	body.pid = (uint32_t)opts->pid;
	body.flags = (opts->band ? GSP_BAND_BY_NAME : 0) | (opts->no_start ? GSP_BAND_NO_START : 0);
	if (copy_in(body.device, sizeof(body.device), opts->device) ||
	    copy_in(body.path, sizeof(body.path), opts->group) ||
	    copy_in(body.band, sizeof(body.band), opts->band))
		return -1;
	env = secure_getenv("GSCHED_SOCKET");
	path = opts->socket ? opts->socket : env && *env ? env : GSP_SOCKET_DEFAULT;
	fd = gsched_socket_connect(path);
	if (fd < 0) {
		if (errno != ETIMEDOUT)
			errno = ENOTCONN;
		return -1;
	}
	rc = send_request(fd, &head, &body);
	err = errno;
	if (rc && err == ETIMEDOUT && !*body.reason)
		gsched_socket_avoid(path);
	close(fd);
	/*
	 * the sizes are fixed by the protocol; strings from gschedd are not trusted to be
	 * terminated
	 */
	_Static_assert(sizeof(info->band) == sizeof(body.band) &&
		       sizeof(info->pipe) == sizeof(body.pipe) &&
		       sizeof(info->log) == sizeof(body.log) &&
		       sizeof(info->reason) == sizeof(body.reason), "sizes");
	memcpy(info->band, body.band, sizeof(info->band) - 1);
	memcpy(info->pipe, body.pipe, sizeof(info->pipe) - 1);
	memcpy(info->log, body.log, sizeof(info->log) - 1);
	memcpy(info->reason, body.reason, sizeof(info->reason) - 1);
	errno = err;
	return rc;
}
