// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A program whose kernels call functions through its own tables: tables PTX-FILE. It takes pointers
 * out of variables, gives them to kernels in parameters, buffers and constant memory, and changes a
 * table, before the first launch and between launches. Prints hashes of what is computed; they are
 * the same however it is run. With "aside" as a second argument it gets at the variables by a way
 * that gsched does not follow; with "early", before the first launch, while streams are captured or
 * wait.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "libgsched/cuda/base/cudadrv.h"

#define BLOCKS	192
#define THREADS	64
#define ROUNDS	9
#define N	60

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
	CUfunction step, turns;
};

static CUdeviceptr variable(const struct program *p, const char *name)
{
	CUdeviceptr at;

	/* who does not need the size does not ask for it */
	if (p->library)
		DO(cuLibraryGetGlobal(&at, NULL, p->library, name));
	else
		DO(cuModuleGetGlobal(&at, NULL, p->module, name));
	return at;
}

static uint64_t word(CUdeviceptr at, unsigned int index)
{
	uint64_t w;

	DO(cuMemcpyDtoH(&w, at + 8 * index, 8));
	return w;
}

static void report(const char *name, unsigned int round, CUdeviceptr at)
{
	static uint8_t host[BLOCKS * THREADS * 4];
	uint64_t h = 14695981039346656037ull;
	size_t i;

	DO(cuMemcpyDtoH(host, at, sizeof(host)));
	for (i = 0; i < sizeof(host); i++)
		h = (h ^ host[i]) * 1099511628211ull;
	printf("%s %u %016llx\n", name, round, (unsigned long long)h);
}

static void run(const struct program *p, const char *name)
{
	CUdeviceptr ops = variable(p, "ops"), table = variable(p, "table"),
		late = variable(p, "d_late"), out, memory;
	uint64_t add = word(ops, 0), mul = word(variable(p, "d_mul"), 0), sub = word(ops, 2),
		w[4] = { sub, add, mul, 0 };
	uint32_t n = N, r, swap;
	void *params[] = { &n, &out, w, &memory }, *turns[] = { &n, &out, &swap };

	w[3] = word(late, 0);
	DO(cuMemcpyHtoD(table, w, sizeof(w)));
	DO(cuMemAlloc(&memory, 16));
	DO(cuMemcpyHtoD(memory, w + 2, 16));
	/* what is there at first is nowhere any more */
	DO(cuMemcpyHtoD(ops, w, 24));
	DO(cuMemcpyHtoD(late, &add, 8));
	DO(cuMemAlloc(&out, BLOCKS * THREADS * 4));
	DO(cuMemsetD32(out, 5, BLOCKS * THREADS));
	for (r = 0; r < ROUNDS; r++) {
		DO(cuLaunchKernel(p->step, r % 3 == 2 ? 4 : BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL,
				  params, NULL));
		DO(cuCtxSynchronize());
		report(name, r, out);
		add = w[r % 3];
		w[r % 3] = w[3];
		w[3] = add;
		DO(cuMemcpyHtoD(ops, w, 24));
	}
	for (r = 0; r < 6; r++) {
		swap = r % 2;
		DO(cuLaunchKernel(p->turns, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, turns, NULL));
	}
	DO(cuCtxSynchronize());
	report(name, r, out);
	DO(cuMemFree(memory));
	DO(cuMemFree(out));
}

/* No work of the program has to end for a variable's address, and no capture is disturbed. */
static void early(const struct program *p)
{
	CUgraph graph = NULL;
	uint32_t *word;
	CUstream s;
	void *mem;

	alarm(60);
	DO(cuMemHostAlloc(&mem, 4, CU_MEMHOSTALLOC_DEVICEMAP));
	word = mem;
	*word = 0;
	DO(cuStreamCreate(&s, CU_STREAM_DEFAULT));
	DO(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	variable(p, "ops");
	DO(cuStreamEndCapture(s, &graph));
	DO(cuGraphDestroy(graph));
	DO(cuStreamWaitValue32(s, (CUdeviceptr)(uintptr_t)word, 1, CU_STREAM_WAIT_VALUE_EQ));
	variable(p, "d_mul");
	__atomic_store_n(word, 1, __ATOMIC_RELEASE);
	DO(cuStreamSynchronize(s));
	DO(cuStreamDestroy(s));
	DO(cuMemFreeHost(mem));
}

int main(int argc, char **argv)
{
	FILE *f = argc > 1 ? fopen(argv[1], "r") : NULL;
	struct program p = { 0 }, q = { 0 };
	CUkernel kernel;
	CUcontext ctx;
	CUdevice dev;

	if (!f || !fread(image, 1, sizeof(image) - 1, f))
		return 2;
	fclose(f);
	DO(cuInit(0));
	DO(cuDeviceGet(&dev, 0));
	/* a library that there is no context for yet */
	DO(cuLibraryLoadData(&q.library, image, NULL, NULL, 0, NULL, NULL, 0));
	DO(cuDevicePrimaryCtxRetain(&ctx, dev));
	DO(cuCtxSetCurrent(ctx));
	DO(cuLibraryGetKernel(&kernel, q.library, "step"));
	DO(cuKernelGetFunction(&q.step, kernel));
	DO(cuLibraryGetKernel(&kernel, q.library, "turns"));
	DO(cuKernelGetFunction(&q.turns, kernel));
	if (argc > 2 && !strcmp(argv[2], "aside")) {
		CUlibrary library = q.library;

		DO(cuFuncGetModule(&q.module, q.step));
		q.library = NULL;
		run(&q, "aside");
		DO(cuLibraryUnload(library));
		return 0;
	}
	DO(cuModuleLoadData(&p.module, image));
	DO(cuModuleGetFunction(&p.step, p.module, "step"));
	DO(cuModuleGetFunction(&p.turns, p.module, "turns"));
	if (argc > 2) {
		early(&p);
		early(&q);
	}
	run(&p, "module");
	run(&q, "library");
	DO(cuLibraryUnload(q.library));
	DO(cuModuleUnload(p.module));
	DO(cuDevicePrimaryCtxRelease(dev));
	return 0;
}
