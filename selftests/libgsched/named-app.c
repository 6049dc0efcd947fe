// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Prints how many devices there are, by a function of a library that it opens or by variables of
 * its own, which named-exports exports. It is not linked against the driver.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include "named.h"

int (*cuInit)(unsigned int flags);
int (*cuDeviceGetCount)(int *count);

static int by_library(const char *path, const char *function)
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	int (*devices)(void) = lib ? (int (*)(void))dlsym(lib, function) : NULL;

	return devices ? devices() : -2;
}

/* As the driver gives them, by cuGetProcAddress() */
static int by_variables(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW), *fn[2];
	int (*get)(const char *name, void **fn, int version, uint64_t flags);
	int n;

	get = driver ? (int (*)(const char *, void **, int, uint64_t))
		       dlsym(driver, "cuGetProcAddress") : NULL;
	if (!get || get("cuInit", &fn[0], 11030, 0) || get("cuDeviceGetCount", &fn[1], 11030, 0))
		return -1;
	cuInit = (int (*)(unsigned int))fn[0];
	cuDeviceGetCount = (int (*)(int *))fn[1];
	return cuInit(0) || cuDeviceGetCount(&n) ? -1 : n;
}

int main(int argc, char **argv)
{
	printf("%d\n", argc == 3 ? by_library(argv[1], argv[2]) : by_variables());
	return 0;
}
