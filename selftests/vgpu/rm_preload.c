// SPDX-License-Identifier: LGPL-2.1-or-later
/* libvgpu-rm.so: the kernel's side of vgpu's control calls. See rm.h */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include "rm.h"

#define EXPORT __attribute__((visibility("default")))

static atomic_int registered = -1;
static _Atomic(vgpu_rm_handler) answer;

EXPORT void vgpu_rm_register(int fd, vgpu_rm_handler handler)
{
	atomic_store(&registered, -1);
	atomic_store(&answer, handler);
	atomic_store(&registered, fd);
}

EXPORT int ioctl(int fd, unsigned long request, ...)
{
	static _Atomic(int (*)(int, unsigned long, ...)) next;
	vgpu_rm_handler handler;
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (fd >= 0 && fd == atomic_load(&registered)) {
		handler = atomic_load(&answer);
		if (handler)
			return handler(request, arg);
	}
	if (!next)
		next = (int (*)(int, unsigned long, ...))dlsym(RTLD_NEXT, "ioctl");
	return next(fd, request, arg);
}

/* As that of /dev/nvidiactl */
EXPORT int fstat(int fd, struct stat *st)
{
	static _Atomic(int (*)(int, struct stat *)) next;
	int r;

	if (!next)
		next = (int (*)(int, struct stat *))dlsym(RTLD_NEXT, "fstat");
	r = next(fd, st);
	if (!r && fd == atomic_load(&registered)) {
		st->st_mode = S_IFCHR | 0666;
		st->st_rdev = makedev(195, 255);
		st->st_size = 0;
	}
	return r;
}

EXPORT int fstat64(int fd, struct stat64 *st)
{
	_Static_assert(sizeof(struct stat) == sizeof(struct stat64),
		       "one layout on 64-bit systems");
	return fstat(fd, (struct stat *)st);
}
