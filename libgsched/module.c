// SPDX-License-Identifier: LGPL-2.1-or-later
/* The kernel module as arbiter: /dev/gsched. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "transport.h"

static int module_info(struct gsched *g, struct gsched_info *req)
{
	return ioctl(g->fd, GSCHED_IOC_INFO, req) ? -1 : 0;
}

static int module_attach(struct gsched *g, struct gsched_attach *req)
{
	if (ioctl(g->fd, GSCHED_IOC_ATTACH, req))
		return -1;
	return gsched_map_pages(g, req, g->fd, g->fd);
}

static int module_submit(struct gsched *g, struct gsched_submit *req, bool async)
{
	return ioctl(g->fd, GSCHED_IOC_SUBMIT, req) ? -1 : 0;
}

static int module_complete(struct gsched *g, struct gsched_complete *req)
{
	return ioctl(g->fd, GSCHED_IOC_COMPLETE, req) ? -1 : 0;
}

static int module_report(struct gsched *g, struct gsched_report *req, bool wait)
{
	return ioctl(g->fd, GSCHED_IOC_REPORT, req) ? -1 : 0;
}

/*
 * Reads exactly one event, so that none is left that poll(2) would not know of: the buffer grows
 * only for one that does not fit into a smaller one.
 */
static ssize_t read_event(int fd, void *buf)
{
	size_t size = sizeof(struct gsched_event);
	ssize_t n;

	while ((n = read(fd, buf, size)) < 0) {
		if (errno == EINVAL && size < GSCHED_EVENT_SIZE_MAX)
			size += 8;
		else if (errno != EINTR)
			break;
	}
	return n;
}

/*
 * The descriptor is O_NONBLOCK, which affects read(2) only: SUBMIT waits unless its flag says not
 * to.
 */
static int module_event(struct gsched *g, struct gsched_event *event)
{
	_Alignas(8) char buf[GSCHED_EVENT_SIZE_MAX];
	ssize_t n;
	int rc;

	do {
		n = read_event(g->fd, buf);
		if (n < 0)
			return errno == EAGAIN ? 0 : -1;
		if (!n) {
			errno = EPIPE;
			return -1;
		}
		rc = gsched_event_parse(buf, (size_t)n, event);
	} while (!rc);
	return rc;
}

static int module_admin(struct gsched *g, enum gsched_admin what, const char *device,
			const char *group, const char *file, const char *value, char *buf,
			size_t size)
{
	return gsched_files_admin(GSCHED_CONFIGFS, GSCHED_SYSFS, what, device, group, file,
				  value, buf, size);
}

static int module_device_del(struct gsched *g, struct gsched_device_del *req)
{
	return ioctl(g->fd, GSCHED_IOC_DEVICE_DEL, req) ? -1 : 0;
}

static char *module_status(struct gsched *g)
{
	return gsched_files_status(GSCHED_CONFIGFS, GSCHED_SYSFS);
}

static void module_close(struct gsched *g)
{
	gsched_fd_close(g->fd);
}

static const struct gsched_transport module_transport = {
	.backend = GSCHED_BACKEND_MODULE,
	.info = module_info,
	.attach = module_attach,
	.submit = module_submit,
	.complete = module_complete,
	.report = module_report,
	.event = module_event,
	.admin = module_admin,
	.device_del = module_device_del,
	.status = module_status,
	.close = module_close,
};

int gsched_module_open(struct gsched *g)
{
	int fd = open(GSCHED_DEVICE_NODE, O_RDWR | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return -1;
	g->ops = &module_transport;
	g->fd = g->poll_fd = gsched_fd_mark(fd);
	return 0;
}
