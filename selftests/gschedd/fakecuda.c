// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * As much of a CUDA driver as gschedd asks for its devices: three of them, with 100, 101 and 102
 * SMs. Its own order is the PCI bus's backwards, unless CUDA_DEVICE_ORDER says otherwise. Each is a
 * MIG device: the older call tells the UUID of a GPU. With $FAKECUDA_HANGS its start does not end,
 * and a file of that name says that it began; with $FAKECUDA_FAILS it returns that error, or ends
 * by the signal of that number if it is negative.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT	__attribute__((visibility("default")))

EXPORT int cuInit(unsigned int flags);
EXPORT int cuDeviceGetCount(int *count);
EXPORT int cuDeviceGet(int *dev, int i);
EXPORT int cuDeviceGetUuid(unsigned char *uuid, int dev);
EXPORT int cuDeviceGetUuid_v2(unsigned char *uuid, int dev);
EXPORT int cuDeviceGetAttribute(int *value, int attribute, int dev);

static int ready;

int cuInit(unsigned int flags)
{
	const char *hangs = getenv("FAKECUDA_HANGS"), *fails = getenv("FAKECUDA_FAILS");

	if (fails && atoi(fails) < 0)
		raise(-atoi(fails));
	if (fails)
		return atoi(fails);
	if (hangs && open(hangs, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) >= 0)
		for (;;)
			pause();
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
	const char *order = getenv("CUDA_DEVICE_ORDER");

	*dev = 10 + (order && !strcmp(order, "PCI_BUS_ID") ? i : 2 - i);
	return ready ? 0 : 3;
}

int cuDeviceGetUuid(unsigned char *uuid, int dev)
{
	memset(uuid, 0xee, 16);
	return 0;
}

int cuDeviceGetUuid_v2(unsigned char *uuid, int dev)
{
	memset(uuid, 0, 16);
	memcpy(uuid, "\xa1\xa2\xa3\xa4", 4);
	uuid[15] = dev - 10;
	return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int dev)
{
	*value = attribute == 16 ? 90 + dev : attribute == 33 ? dev : 0;
	return attribute == 16 || attribute == 33 || attribute == 34 || attribute == 50 ? 0 : 1;
}
