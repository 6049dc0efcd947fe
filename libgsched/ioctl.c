// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The process's ioctl(). Calls of libcuda come here because this library is preloaded before the C
 * library. slice.c examines those to the resource manager and forwards all others.
 */
#include <stdarg.h>
#include <sys/ioctl.h>
#include "slice.h"

__attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...)
{
	va_list ap;
	void *arg;

	/* the kernel takes one argument word, whether the caller passed one or not */
	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	return gsched_slice_ioctl(fd, request, arg);
}
