// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A program that allocates device memory and knows nothing of gsched. Standard input has an order a
 * line: a letter and a number of MiB. It answers each with a line: the letter and CUDA's result.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "libgsched/cuda/base/cudadrv.h"

#define MIB	(1024.0 * 1024)
#define MOST	64

static CUdeviceptr taken[MOST], managed;	/* the last ones allocated */
static unsigned int n_taken;
static CUstream stream;
static CUdevice dev;
static CUcontext ctx, second;
static CUmemGenericAllocationHandle handle;
static CUarray array;

static CUresult take(size_t size)
{
	CUresult rc = cuMemAlloc(&taken[n_taken % MOST], size);

	n_taken += !rc;
	return rc;
}

static CUresult take_async(size_t size)
{
	CUdeviceptr p;
	CUresult rc = cuMemAllocAsync(&p, size, stream);

	if (!rc)
		rc = cuMemFreeAsync(p, stream);
	return rc ? rc : cuStreamSynchronize(stream);
}

static CUresult create(size_t size)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = dev },
	};

	return cuMemCreate(&handle, size, &prop, 0);
}

static CUresult make_array(size_t size)
{
	const CUDA_ARRAY_DESCRIPTOR desc = {
		.Width = 1024, .Height = size / 4096, .Format = CU_AD_FORMAT_FLOAT,
		.NumChannels = 1,
	};

	return cuArrayCreate(&array, &desc);
}

static CUresult host(size_t size)
{
	void *p;
	CUresult rc = cuMemHostAlloc(&p, size, 0);

	return rc ? rc : cuMemFreeHost(p);
}

static _Atomic unsigned int given, refused;

/* Allocates and frees in every way that takes memory at once, as far as there is any */
static void *allocates(void *arg)
{
	const size_t size = (size_t)(1 + (uintptr_t)arg) * 2 * (size_t)MIB;
	CUdeviceptr a, m;
	CUresult rc;

	cuCtxSetCurrent(ctx);
	for (unsigned int i = 0; i < 200; i++) {
		rc = i & 1 ? cuMemAlloc(&a, size) : cuMemAllocManaged(&m, size,
								      CU_MEM_ATTACH_GLOBAL);
		given += !rc;
		refused += rc == CUDA_ERROR_OUT_OF_MEMORY;
		if (!rc)
			cuMemFree(i & 1 ? a : m);
	}
	return NULL;
}

static CUresult threads(void)
{
	pthread_t thread[4];

	given = refused = 0;
	for (unsigned int i = 0; i < 4; i++)
		if (pthread_create(&thread[i], NULL, allocates, (void *)(uintptr_t)i))
			exit(1);
	for (unsigned int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	return given + refused == 4 * 200 && given ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}

/* The child of a fork has no memory on the device, and may not use CUDA. */
static CUresult fork_child(void)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid)
		_exit(!cuMemAlloc(&taken[0], 1));
	waitpid(pid, &status, 0);
	return status ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

/* A kernel that is long enough for a twin to be worth while */
static CUresult launches(void)
{
	static CUdeviceptr p;
	uint32_t n = 3600, seed = 3;
	void *params[] = { &p, &n, &seed };
	static CUfunction work;
	CUresult rc = CUDA_SUCCESS;
	CUmodule m;

	if (!work) {
		p = taken[0];
		rc = cuModuleLoad(&m, "selftests/libgsched/kernels.ptx");
		rc = rc ? rc : cuModuleGetFunction(&work, m, "work");
	}
	for (unsigned int i = 0; i < 5 && !rc; i++)
		rc = cuLaunchKernel(work, 192, 1, 1, 64, 1, 1, 0, stream, params, NULL);
	return rc ? rc : cuStreamSynchronize(stream);
}

static CUresult obey(char order, size_t size)
{
	size_t left, total;

	switch (order) {
	case 'a': return take(size);
	case 'f': return cuMemFree(taken[--n_taken % MOST]);
	case 's': return take_async(size);
	case 'c': return create(size);
	case 'C': return cuMemRelease(handle);
	case 'y': return make_array(size);
	case 'Y': return cuArrayDestroy(array);
	case 'm': return cuMemAllocManaged(&managed, size, CU_MEM_ATTACH_GLOBAL);
	case 'M': return cuMemFree(managed);
	case 'h': return host(size);
	case 'x': return cuCtxCreate(&second, NULL, 0, dev);
	case 'X': return cuCtxDestroy(second);
	case 'o': return fork_child();
	case 't': return threads();
	case 'k': return launches();
	case 'i':
		if (cuMemGetInfo(&left, &total))
			return CUDA_ERROR_UNKNOWN;
		printf("%g of %g, ", left / MIB, total / MIB);
		if (cuDeviceTotalMem(&total, dev))
			return CUDA_ERROR_UNKNOWN;
		printf("%g ", total / MIB);
		return CUDA_SUCCESS;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

int main(int argc, char **argv)
{
	bool primary = argc > 1;
	char line[64];
	CUresult rc;

	rc = cuInit(0);
	rc = rc ? rc : cuDeviceGet(&dev, 0);
	if (!rc && primary)
		rc = cuDevicePrimaryCtxRetain(&ctx, dev);
	else if (!rc)
		rc = cuCtxCreate(&ctx, NULL, 0, dev);
	if (!rc && primary)
		rc = cuCtxSetCurrent(ctx);
	printf("context %d\n", rc);
	fflush(stdout);
	if (rc || cuStreamCreate(&stream, 0))
		return 1;
	while (fgets(line, sizeof(line), stdin) && *line != 'q') {
		rc = obey(*line, (size_t)(atof(line + 1) * MIB));
		printf("%c %d\n", *line, rc);
		fflush(stdout);
	}
	return 0;
}
