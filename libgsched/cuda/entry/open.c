// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * dlopen() of the driver. A program that opens its SONAME gets this library, which is loaded
 * already; but Numba opens libcuda.so, and others an absolute path. The C library's dlopen() is
 * reached by a jump (trampoline.S), because it uses its caller's run path.
 */
#include <string.h>
#include <unistd.h>
#include "base/base.h"
#include "entry/open.h"

static bool is_driver(const char *name)
{
	const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;

	if (strcmp(base, "libcuda.so") && strcmp(base, "libcuda.so.1"))
		return false;
	return !slash || !access(name, R_OK);
}

gi_dlopen_fn *gi_dlopen(const char **name)
{
	if (*name && is_driver(*name))
		*name = "libcuda.so.1";
	return gi_dlopen_real();
}
