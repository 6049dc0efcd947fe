// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * As much of libnvidia-ml.so.1 as gschedd asks: one GPU, that of the tests' devices, with the
 * processes that stand in the file $FAKENVML_PIDS: a line has a pid, its MiB, "mps" for an MPS
 * client and "busy N" for one that has N percent of the GPU's time. Without that file it hangs, as
 * a driver may. $FAKENVML_UUID: of another GPU.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT	__attribute__((visibility("default")))
#define NOT_FOUND	6
#define INSUFFICIENT	7
#define UUID		"GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"

struct info {
	unsigned int pid;
	unsigned long long bytes;
	unsigned int gpu_instance, compute_instance;
};

struct sample {
	unsigned int pid;
	unsigned long long time_us;
	unsigned int sm, memory, encoder, decoder;
};

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlShutdown(void);
EXPORT int nvmlDeviceGetCount_v2(unsigned int *n);
EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, void **device);
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned int *n,
						   struct info *infos);
EXPORT int nvmlDeviceGetMPSComputeRunningProcesses_v3(void *device, unsigned int *n,
						      struct info *infos);
EXPORT int nvmlDeviceGetProcessUtilization(void *device, struct sample *samples, unsigned int *n,
					   unsigned long long since_us);
EXPORT int nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int size);

static int gpu;

static void hang_without_file(void)
{
	const char *path = getenv("FAKENVML_PIDS");

	while (!path || access(path, R_OK))
		pause();
}

int nvmlInit_v2(void)
{
	hang_without_file();
	return 0;
}

int nvmlShutdown(void)
{
	return 0;
}

int nvmlDeviceGetCount_v2(unsigned int *n)
{
	hang_without_file();
	*n = 1;
	return 0;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
	const char *known = getenv("FAKENVML_UUID");

	*device = &gpu;
	return strcmp(uuid, known ? known : UUID) ? NOT_FOUND : 0;
}

static int list(void *device, unsigned int *n, struct info *infos, int mps)
{
	unsigned int room = *n, pid, mib;
	FILE *f = fopen(getenv("FAKENVML_PIDS"), "r");
	char line[64];

	*n = 0;
	if (!f || device != &gpu) {
		if (f)
			fclose(f);
		return NOT_FOUND;
	}
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%u %u", &pid, &mib) != 2 || !strstr(line, "mps") != !mps)
			continue;
		if (*n < room)
			infos[*n] = (struct info){ .pid = pid,
						   .bytes = (unsigned long long)mib << 20 };
		++*n;
	}
	fclose(f);
	return *n > room ? INSUFFICIENT : 0;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned int *n, struct info *infos)
{
	return list(device, n, infos, 0);
}

int nvmlDeviceGetMPSComputeRunningProcesses_v3(void *device, unsigned int *n, struct info *infos)
{
	return list(device, n, infos, 1);
}

int nvmlDeviceGetProcessUtilization(void *device, struct sample *samples, unsigned int *n,
				    unsigned long long since_us)
{
	unsigned int room = *n, pid, percent;
	FILE *f = fopen(getenv("FAKENVML_PIDS"), "r");
	char line[64];

	*n = 0;
	while (f && fgets(line, sizeof(line), f)) {
		const char *busy = strstr(line, "busy");

		if (!busy || sscanf(line, "%u", &pid) != 1 ||
		    sscanf(busy, "busy %u", &percent) != 1)
			continue;
		if (*n < room)
			samples[*n] = (struct sample){ .pid = pid, .time_us = since_us + 1,
						       .sm = percent };
		++*n;
	}
	if (f)
		fclose(f);
	return *n ? 0 : NOT_FOUND;
}

int nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int size)
{
	snprintf(name, size, "/opt/far/away%u", pid % 10);
	return 0;
}
