// SPDX-License-Identifier: LGPL-2.1-or-later
/* To be preloaded before libvgpu-rm.so: every time slice that is set becomes $TEST_SLICE_US */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include "rm.h"

__attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...)
{
	int (*next)(int, unsigned long, ...) =
		(int (*)(int, unsigned long, ...))dlsym(RTLD_NEXT, "ioctl");
	const struct nv_control *c;
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	c = arg;
	if (request == NV_IOCTL_CONTROL && c->cmd == NVA06C_CTRL_CMD_SET_TIMESLICE)
		*(uint64_t *)(uintptr_t)c->params =
			strtoull(getenv("TEST_SLICE_US") ?: "1000", NULL, 10);
	return next(fd, request, arg);
}
