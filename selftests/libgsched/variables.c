// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A program whose kernel uses variables of its module, which it reads and writes, too: variables
 * PTX-FILE. Grids that fill the device and grids that do not take turns, so that under gsched the
 * twin and the original do. Prints hashes of all that is there; they are the same however it is
 * run.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "libgsched/cuda/base/cudadrv.h"

#define BLOCKS	192
#define THREADS	64
#define ROUNDS	12
#define N	150

static char image[1 << 20];

static void check(CUresult rc, const char *what)
{
	if (!rc)
		return;
	fprintf(stderr, "%s: error %d\n", what, rc);
	exit(1);
}
#define DO(call) check(call, #call)

struct program {
	CUmodule module;
	CUlibrary library;	/* instead of the module */
	CUfunction step;
};

static CUdeviceptr variable(const struct program *p, const char *name, size_t size)
{
	CUdeviceptr at;
	size_t bytes;

	if (p->library)
		DO(cuLibraryGetGlobal(&at, &bytes, p->library, name));
	else
		DO(cuModuleGetGlobal(&at, &bytes, p->module, name));
	if (bytes != size)
		check(CUDA_ERROR_INVALID_VALUE, name);
	return at;
}

static uint64_t hash_of(uint64_t h, CUdeviceptr at, size_t size)
{
	uint8_t *host = malloc(size);
	size_t i;

	DO(cuMemcpyDtoH(host, at, size));
	for (i = 0; i < size; i++)
		h = (h ^ host[i]) * 1099511628211ull;
	free(host);
	return h;
}

static void run(const struct program *p, const char *name)
{
	CUdeviceptr total = variable(p, "total", BLOCKS * THREADS * 4),
		factors = variable(p, "factors", 64);
	CUdeviceptr managed = variable(p, "rounds", THREADS * 4), out;
	uint32_t host[16], n = N, r, i;
	void *params[] = { &n, &out };

	DO(cuMemAlloc(&out, BLOCKS * THREADS * 4));
	DO(cuMemsetD32(out, 0, BLOCKS * THREADS));
	for (r = 0; r < ROUNDS; r++) {
		unsigned int blocks = r % 3 == 2 ? 4 : BLOCKS;
		uint64_t h;

		/* the first rounds use what the module came with */
		for (i = 0; r > 1 && i < 16; i++)
			host[i] = r * 100 + i;
		if (r > 1)
			DO(cuMemcpyHtoD(factors, host, sizeof(host)));
		DO(cuLaunchKernel(p->step, blocks, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL));
		DO(cuCtxSynchronize());
		h = hash_of(14695981039346656037ull, total, BLOCKS * THREADS * 4);
		h = hash_of(h, out, BLOCKS * THREADS * 4);
		h = hash_of(h, managed, THREADS * 4);
		printf("%s %u %016llx\n", name, r, (unsigned long long)h);
		/* and the host writes what kernels do */
		DO(cuMemsetD32(total + r * 4, r, THREADS));
	}
	DO(cuMemFree(out));
}

int main(int argc, char **argv)
{
	FILE *f = argc == 2 ? fopen(argv[1], "r") : NULL;
	struct program p = { 0 }, q = { 0 };
	CUkernel kernel;
	CUcontext ctx;
	CUdevice dev;

	if (!f || !fread(image, 1, sizeof(image) - 1, f))
		return 2;
	fclose(f);
	DO(cuInit(0));
	DO(cuDeviceGet(&dev, 0));
	DO(cuDevicePrimaryCtxRetain(&ctx, dev));
	DO(cuCtxSetCurrent(ctx));
	DO(cuModuleLoadData(&p.module, image));
	DO(cuModuleGetFunction(&p.step, p.module, "step"));
	run(&p, "module");
	/* variables of its own */
	DO(cuLibraryLoadData(&q.library, image, NULL, NULL, 0, NULL, NULL, 0));
	DO(cuLibraryGetKernel(&kernel, q.library, "step"));
	DO(cuKernelGetFunction(&q.step, kernel));
	run(&q, "library");
	run(&p, "module again");
	DO(cuLibraryUnload(q.library));
	DO(cuModuleUnload(p.module));
	DO(cuDevicePrimaryCtxRelease(dev));
	return 0;
}
