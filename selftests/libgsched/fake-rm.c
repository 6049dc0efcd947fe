// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A resource manager for tests of libgsched/slice.c: it is the next definition of ioctl() behind
 * the wrapper, and the descriptors it is told of are the driver's control node.
 */
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "fake-rm.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT struct fake_rm fake_rm;

struct control {
	unsigned int client, object, cmd, flags;
	unsigned long long params;
	unsigned int size, status;
};

static void answer(struct control *c)
{
	unsigned long long us;

	c->status = 0;
	if (c->cmd == 0xa06c0103) {
		memcpy(&us, (const void *)(unsigned long)c->params, sizeof(us));
		fake_rm.sets++;
		if (fake_rm.refuse && us != 2048) {
			c->status = fake_rm.refuse;
			return;
		}
		fake_rm.last_group = c->object;
		fake_rm.last_us = us;
	} else if (c->cmd == 0x20801210) {
		unsigned int mode[8];

		memcpy(mode, (const void *)(unsigned long)c->params, sizeof(mode));
		fake_rm.modes++;
		if (fake_rm.refuse_mode && mode[3] != 2) {
			c->status = fake_rm.refuse_mode;
			return;
		}
		fake_rm.mode_object = c->object;
		fake_rm.mode_group = mode[1];
		fake_rm.last_mode = mode[3];
	} else if (c->cmd == 0x2080014a) {
		unsigned char *gid = (unsigned char *)(unsigned long)c->params;
		unsigned int sixteen = 16;

		fake_rm.gids++;
		memcpy(gid + 8, &sixteen, sizeof(sixteen));
		memset(gid + 12, c->object & 0xff, 16);
	} else {
		c->status = 0x56;
	}
}

EXPORT int ioctl(int fd, unsigned long request, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	fake_rm.calls++;
	if (!fake_rm.control[fd & 63] || (request & 0xff00) != 'F' << 8)
		return syscall(SYS_ioctl, fd, request, arg);
	if ((request & 0xff) == 0x2a)
		answer(arg);
	return 0;
}

EXPORT int fstat(int fd, struct stat *st)
{
	memset(st, 0, sizeof(*st));
	if (!fake_rm.control[fd & 63])
		return syscall(SYS_newfstatat, fd, "", st, 0x1000 /* AT_EMPTY_PATH */);
	st->st_mode = S_IFCHR;
	st->st_rdev = makedev(195, 255);
	return 0;
}
