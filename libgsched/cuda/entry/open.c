// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * dlopen() and dlmopen() of the driver. A program that opens its SONAME gets this library, which is
 * loaded already; but Numba opens libcuda.so, and others a versioned name or a path, perhaps that
 * of a link. The C library's functions are reached by a jump (trampoline.S), because they use their
 * caller's run path.
 *
 * A library that was loaded with RTLD_DEEPBIND, such as Taichi's, finds the C library's dlopen()
 * first. So a second library, which is empty and needs this one, is called libcuda.so and always
 * loaded: the linker itself then finds it by that name. A path is not seen there.
 *
 * Not seen: libraries in another link-map namespace that are linked against the driver, or open it
 * there. They have a C library of their own.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"
#include "entry/open.h"

#define SONAME	"libcuda.so.1"
#define PLAIN	"libcuda.so"

static bool is_driver(const char *name)
{
	const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
	const size_t len = strlen(PLAIN);

	/* also the stub of a toolkit, which is no driver */
	if (!strncmp(base, PLAIN, len) && (!base[len] || base[len] == '.'))
		return !slash || !access(name, R_OK);
	return slash && gi_driver_is(name);
}

gi_dlopen_fn *gi_dlopen(struct gi_dlopen_args *args)
{
	if (args->name && is_driver(args->name))
		args->name = SONAME;
	else if (args->name && strchr(args->name, '/') &&
		 !(args->flags & (RTLD_DEEPBIND | RTLD_NOLOAD)) &&
		 gi_has_driver_variables(args->name))
		args->flags |= RTLD_DEEPBIND;
	return gi_dlopen_real();
}

/* The file lies beside this library. Without it dlopen() is still seen elsewhere. */
__attribute__((constructor)) static void load_plain(void)
{
	char path[PATH_MAX];
	const char *slash;
	Dl_info self;

	if (!dladdr((void *)is_driver, &self) || !(slash = strrchr(self.dli_fname, '/')))
		return;
	if (snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - self.dli_fname), self.dli_fname,
		     PLAIN) >= (int)sizeof(path))
		return;
	/* an error must not be left for the program's dlerror() */
	if (!access(path, R_OK) && !gi_dlopen_real()(path, RTLD_NOW | RTLD_LOCAL))
		dlerror();
}

/* This library is in the first namespace only: one process has one connection to an arbiter. */
gi_dlmopen_fn *gi_dlmopen(struct gi_dlmopen_args *args)
{
	if (args->name && is_driver(args->name)) {
		args->name = SONAME;
		args->space = LM_ID_BASE;
	}
	return gi_dlmopen_real();
}
