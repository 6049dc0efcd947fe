// SPDX-License-Identifier: LGPL-2.1-or-later
/* A library that opens the driver itself, and has variables with the names of its functions. */
#include <dlfcn.h>
#include "named.h"

int (*cuInit)(unsigned int flags);
int (*cuDeviceGetCount)(int *count);

int named_devices(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	int n;

	if (!driver)
		return -1;
	cuInit = (int (*)(unsigned int))dlsym(driver, "cuInit");
	cuDeviceGetCount = (int (*)(int *))dlsym(driver, "cuDeviceGetCount");
	return cuInit(0) || cuDeviceGetCount(&n) ? -1 : n;
}
