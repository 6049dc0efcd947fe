// SPDX-License-Identifier: LGPL-2.1-or-later
/* As much of a CUDA driver as gschedd asks for its devices: three of them, with 100, 101 and 102 SMs. */
#include <string.h>

#define EXPORT	__attribute__((visibility("default")))

EXPORT int cuInit(unsigned int flags);
EXPORT int cuDeviceGetCount(int *count);
EXPORT int cuDeviceGet(int *dev, int i);
EXPORT int cuDeviceGetUuid(unsigned char *uuid, int dev);
EXPORT int cuDeviceGetAttribute(int *value, int attribute, int dev);

static int ready;

int cuInit(unsigned int flags)
{
	ready = 1;
	return flags ? 1 : 0;
}

int cuDeviceGetCount(int *count)
{
	*count = 3;
	return ready ? 0 : 3;
}

int cuDeviceGet(int *dev, int i)
{
	*dev = i + 10;
	return ready ? 0 : 3;
}

int cuDeviceGetUuid(unsigned char *uuid, int dev)
{
	memset(uuid, 0, 16);
	memcpy(uuid, "\xa1\xa2\xa3\xa4", 4);
	uuid[15] = dev - 10;
	return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int dev)
{
	*value = 100 + dev - 10;
	return attribute == 16 ? 0 : 1;
}
