// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The process's ioctl(): libcuda's calls lead here because this library is preloaded before the C library. slice.c looks at
 * those to the resource manager and passes every other on.
 */
#include <stdarg.h>
#include <sys/ioctl.h>
#include "slice.h"

__attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...)
{
	va_list ap;
	void *arg;

	/* the kernel takes one word, whether the caller gave one or not */
	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	return gsched_slice_ioctl(fd, request, arg);
}
