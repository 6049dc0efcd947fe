// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A program of the driver API that knows nothing of gsched: app PTX-FILE STEP... Each step launches
 * in one way and prints its name and a hash of the device's memory; the same hashes are expected
 * however it is run.
 */
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "app.h"

CUdevice dev;
CUcontext ctx;
char *image;
static bool graphs;	/* launches are graphs, which gsched does not rewrite: of few blocks */

void check(CUresult rc, const char *what)
{
	if (!rc)
		return;
	fprintf(stderr, "%s: error %d\n", what, rc);
	exit(1);
}
static void load_file(const char *path)
{
	FILE *f = fopen(path, "r");

	image = calloc(1, 1 << 20);
	if (!f || !fread(image, 1, (1 << 20) - 1, f))
		check(CUDA_ERROR_FILE_NOT_FOUND, path);
	else
		fclose(f);
}

CUdeviceptr buffer(size_t words)
{
	CUdeviceptr p;

	DO(cuMemAlloc(&p, words * 4));
	DO(cuMemsetD32(p, 12345, words));
	return p;
}

uint64_t hash_of(CUdeviceptr p, size_t words)
{
	uint32_t *host = malloc(words * 4);
	uint64_t h = 14695981039346656037ull;
	size_t i;

	DO(cuMemcpyDtoH(host, p, words * 4));
	for (i = 0; i < words; i++)
		h = (h ^ host[i]) * 1099511628211ull;
	free(host);
	DO(cuMemFree(p));
	return h;
}

void show(const char *step, uint64_t h)
{
	printf("%s %016llx\n", step, (unsigned long long)h);
	fflush(stdout);
}

void say(const char *what)
{
	printf("%s\n", what);
	fflush(stdout);
}

void stop_at(const char *what)
{
	char c;

	say(what);
	if (read(0, &c, 1) != 1)
		exit(1);
}

void launch_graph(CUfunction f, unsigned int blocks, CUstream s, void **params)
{
	CUstream capture;
	CUgraphExec exec;
	CUgraph graph;

	DO(cuStreamCreate(&capture, CU_STREAM_NON_BLOCKING));
	DO(cuStreamBeginCapture(capture, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	DO(cuLaunchKernel(f, blocks, 1, 1, THREADS, 1, 1, 0, capture, params, NULL));
	DO(cuStreamEndCapture(capture, &graph));
	DO(cuGraphInstantiate(&exec, graph, 0));
	DO(cuGraphDestroy(graph));
	DO(cuGraphLaunch(exec, s));
	/* it goes when it has run */
	DO(cuGraphExecDestroy(exec));
	DO(cuStreamDestroy(capture));
}

void launch_work(CUfunction f, CUstream s, CUdeviceptr p, uint32_t n, uint32_t seed)
{
	void *params[] = { &p, &n, &seed };

	if (graphs)
		launch_graph(f, FEW, s, params);
	else
		DO(cuLaunchKernel(f, BLOCKS, 1, 1, THREADS, 1, 1, 0, s, params, NULL));
}

static void plain(CUmodule m, uint32_t rounds)
{
	CUdeviceptr p = buffer(BLOCKS * THREADS);
	CUfunction f;
	CUstream s;
	uint32_t i;

	DO(cuModuleGetFunction(&f, m, "work"));
	DO(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	for (i = 0; i < rounds; i++)
		launch_work(f, s, p, N, i);
	DO(cuStreamSynchronize(s));
	show("plain", hash_of(p, BLOCKS * THREADS));
	DO(cuStreamDestroy(s));
}

/* The first launches of many kernels: of one each of as many modules */
static void kinds(void)
{
	CUdeviceptr p = buffer(BLOCKS * THREADS);
	CUmodule m[20];
	CUfunction f;
	uint32_t i;

	for (i = 0; i < 20; i++) {
		DO(cuModuleLoadData(&m[i], image));
		DO(cuModuleGetFunction(&f, m[i], "work"));
		launch_work(f, NULL, p, N, i);
	}
	DO(cuCtxSynchronize());
	show("kinds", hash_of(p, BLOCKS * THREADS));
	for (i = 0; i < 20; i++)
		DO(cuModuleUnload(m[i]));
}

/*
 * Blocks that take long; @until_told: as often as it takes for a byte to come on standard input,
 * then eight times.
 */
static void slow(CUmodule m, bool until_told)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };
	CUdeviceptr p = buffer(BLOCKS * THREADS);
	CUfunction f;
	uint32_t i;

	DO(cuModuleGetFunction(&f, m, "work"));
	while (until_told && !poll(&in, 1, 0)) {
		launch_work(f, NULL, p, 20 * N, 1);
		DO(cuCtxSynchronize());
	}
	DO(cuMemsetD32(p, 12345, BLOCKS * THREADS));
	for (i = 0; i < 8; i++) {
		launch_work(f, NULL, p, 20 * N, i);
		DO(cuCtxSynchronize());
	}
	show("slow", hash_of(p, BLOCKS * THREADS));
}

/* Many launches that are over at once. */
static void tiny(CUmodule m)
{
	CUdeviceptr p = buffer(BLOCKS * THREADS);
	uint32_t n = 1, seed = 8;
	void *params[] = { &p, &n, &seed };
	CUfunction f;
	int i;

	DO(cuModuleGetFunction(&f, m, "work"));
	for (i = 0; i < 300; i++) {
		DO(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
		DO(cuCtxSynchronize());
	}
	show("tiny", hash_of(p, BLOCKS * THREADS));
}

/* Launches a grid of one block until a byte comes on standard input, then a long one. */
static void tiny_until_told(CUmodule m)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };
	CUdeviceptr p = buffer(BLOCKS * THREADS);
	uint32_t n = 1, seed = 1;
	void *params[] = { &p, &n, &seed };
	CUfunction f;
	CUstream s;
	char c;

	DO(cuModuleGetFunction(&f, m, "work"));
	DO(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	do {
		DO(cuLaunchKernel(f, 1, 1, 1, THREADS, 1, 1, 0, s, params, NULL));
		DO(cuStreamSynchronize(s));
	} while (!poll(&in, 1, 0));
	if (read(0, &c, 1) != 1)
		exit(1);
	DO(cuMemsetD32(p, 12345, BLOCKS * THREADS));
	launch_work(f, s, p, N, 2);
	DO(cuCtxSynchronize());
	show("tiny-until-told", hash_of(p, BLOCKS * THREADS));
}

/* Launches until a byte comes on standard input. */
static void steady(CUmodule m)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };
	CUdeviceptr p = buffer(BLOCKS * THREADS);
	CUfunction f;
	char c;

	DO(cuModuleGetFunction(&f, m, "work"));
	do {
		launch_work(f, NULL, p, N, 1);
		DO(cuCtxSynchronize());
	} while (!poll(&in, 1, 0));
	if (read(0, &c, 1) != 1)
		exit(1);
	DO(cuMemsetD32(p, 12345, BLOCKS * THREADS));
	launch_work(f, NULL, p, N, 2);
	DO(cuCtxSynchronize());
	show("steady", hash_of(p, BLOCKS * THREADS));
}

/* A copy of the driver in a namespace of its own, which under gsched is what is linked */
static void apart(void)
{
	void *lib = dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW);

	printf("%s\n", lib && dlsym(lib, "cuLaunchKernel") == (void *)cuLaunchKernel ?
			"the library that is linked" : "another library");
}

/* As steady(); what a launch returns does not matter, nor what it computes */
static void careless(CUmodule m)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };
	CUdeviceptr p = buffer(BLOCKS * THREADS);
	uint32_t n = N, seed = 1;
	void *params[] = { &p, &n, &seed };
	CUfunction f;

	DO(cuModuleGetFunction(&f, m, "work"));
	do {
		cuLaunchKernel(f, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL);
		DO(cuCtxSynchronize());
	} while (!poll(&in, 1, 0));
}

/*
 * One wave of blocks that meet in their middle; that many are resident at once on the whole device
 * only.
 */
static void meets(CUmodule m)
{
	CUdeviceptr out = buffer(2 * 64 * THREADS), count = buffer(1);
	uint32_t n = 20 * N;
	void *params[] = { &out, &count, &n };
	CUfunction f;

	DO(cuMemsetD32(count, 0, 1));
	DO(cuModuleGetFunction(&f, m, "meets"));
	for (int i = 0; i < 4; i++) {
		DO(cuLaunchKernel(f, 64, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL));
		DO(cuCtxSynchronize());
	}
	show("meets", hash_of(out, 2 * 64 * THREADS) + hash_of(count, 1));
}

/* Two waves of blocks, until a byte comes on standard input */
static void waves(CUmodule m)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };
	CUdeviceptr p = buffer(BLOCKS * THREADS);
	uint32_t n = N, seed = 1;
	void *params[] = { &p, &n, &seed };
	CUfunction f;
	char c;

	DO(cuModuleGetFunction(&f, m, "work"));
	do {
		DO(cuLaunchKernel(f, 2 * 64, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL));
		DO(cuCtxSynchronize());
	} while (!poll(&in, 1, 0));
	if (read(0, &c, 1) != 1)
		exit(1);
}

/* Grids that fit the device at once. */
static void small(CUmodule m)
{
	CUdeviceptr p = buffer(BLOCKS * THREADS);
	uint32_t n = N, seed = 8;
	void *params[] = { &p, &n, &seed };
	CUfunction f;
	int i;

	DO(cuModuleGetFunction(&f, m, "work"));
	for (i = 0; i < 10; i++)
		DO(cuLaunchKernel(f, 4, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL));
	DO(cuCtxSynchronize());
	show("small", hash_of(p, BLOCKS * THREADS));
}

/* Each launch reads what the one before wrote. */
static void chain(CUmodule m)
{
	CUdeviceptr p = buffer(2 * BLOCKS * THREADS);
	uint32_t blocks = BLOCKS, n = N, i;
	void *a[] = { &p, &blocks, &n }, *b[] = { &p, &blocks };
	CUfunction f, g;

	DO(cuModuleGetFunction(&f, m, "chain"));
	DO(cuModuleGetFunction(&g, m, "copyback"));
	for (i = 0; i < 6; i++) {
		DO(cuLaunchKernel(f, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, a, NULL));
		DO(cuLaunchKernel(g, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, b, NULL));
	}
	DO(cuCtxSynchronize());
	show("chain", hash_of(p, 2 * BLOCKS * THREADS));
}

/* The packed form of the parameters, a 2-D grid, dynamic shared memory. */
static void packed(CUmodule m)
{
	struct {
		CUdeviceptr out;
		uint32_t width, n;
		uint8_t small;
		uint64_t big;
	} args = { buffer(16 * 12 * THREADS), 17, N, 9, 0x123456789abcdefull };
	size_t size = sizeof(args);
	void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, &args, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
			  CU_LAUNCH_PARAM_END };
	CUfunction f;
	int i;

	DO(cuModuleGetFunction(&f, m, "tile"));
	DO(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 2 * THREADS * 4));
	for (i = 0; i < 3; i++)
		DO(cuLaunchKernel(f, 16, 12, 1, THREADS, 1, 1, THREADS * 4, NULL, NULL, extra));
	DO(cuCtxSynchronize());
	show("packed", hash_of(args.out, 16 * 12 * THREADS));
}

/* The limit of dynamic shared memory is all that the device has, of which a launch uses less */
static void most(CUmodule m)
{
	CUdeviceptr p = buffer(BLOCKS * THREADS);
	uint32_t width = 17, n = N;
	uint8_t small = 9;
	uint64_t big = 0x123456789abcdefull;
	void *params[] = { &p, &width, &n, &small, &big };
	CUfunction f;
	int bytes, i;

	DO(cuDeviceGetAttribute(&bytes, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0));
	DO(cuModuleGetFunction(&f, m, "tile"));
	for (i = 0; i < 6; i++) {
		/* before there is a twin, and again */
		if (i % 3 == 0)
			DO(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
					      bytes));
		DO(cuLaunchKernel(f, BLOCKS, 1, 1, THREADS, 1, 1, 64 << 10, NULL, params, NULL));
	}
	DO(cuCtxSynchronize());
	show("most", hash_of(p, BLOCKS * THREADS));
}

/* Two blocks fill the shared memory of an SM */
static void tight(CUmodule m)
{
	CUdeviceptr p = buffer(BLOCKS * THREADS);
	uint32_t n = N, d = 0, i, bytes;
	void *params[] = { &p, &n, &d };
	int all, reserved;
	CUfunction f;

	DO(cuDeviceGetAttribute(&all, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 0));
	DO(cuDeviceGetAttribute(&reserved, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 0));
	bytes = (uint32_t)(all / 2 - reserved) - (48 << 10);
	DO(cuModuleGetFunction(&f, m, "full"));
	DO(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)bytes));
	for (i = 0; i < 3; i++)
		DO(cuLaunchKernel(f, BLOCKS, 1, 1, THREADS, 1, 1, bytes, NULL, params, NULL));
	DO(cuCtxSynchronize());
	show("tight", hash_of(p, BLOCKS * THREADS));
}

/* Static shared memory is full; then dynamic shared memory beside it */
static void full(CUmodule m)
{
	CUdeviceptr p = buffer(BLOCKS * THREADS);
	CUlaunchConfig config = {
		.gridDimX = BLOCKS, .gridDimY = 1, .gridDimZ = 1, .blockDimX = THREADS,
		.blockDimY = 1, .blockDimZ = 1,
	};
	uint32_t n = N, d = 0;
	void *params[] = { &p, &n, &d };
	CUfunction f;
	int i;

	DO(cuModuleGetFunction(&f, m, "full"));
	for (i = 0; i < 6; i++) {
		if (i == 3) {
			d = 27;
			DO(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
					      (int)(4 * d)));
		}
		DO(cuLaunchKernel(f, BLOCKS, 1, 1, THREADS, 1, 1, 4 * d, NULL, params, NULL));
	}
	config.sharedMemBytes = 4 * d;
	DO(cuLaunchKernelEx(&config, f, params, NULL));
	DO(cuCtxSynchronize());
	show("full", hash_of(p, BLOCKS * THREADS));
}

static void extended(CUmodule m)
{
	CUdeviceptr p = buffer(BLOCKS * THREADS);
	CUlaunchAttribute attr = { .id = CU_LAUNCH_ATTRIBUTE_PRIORITY };
	CUlaunchConfig config = {
		.gridDimX = BLOCKS, .gridDimY = 1, .gridDimZ = 1, .blockDimX = THREADS,
		.blockDimY = 1, .blockDimZ = 1, .attrs = &attr, .numAttrs = 1,
	};
	uint32_t n = N, seed = 3;
	void *params[] = { &p, &n, &seed };
	CUfunction f;

	DO(cuModuleGetFunction(&f, m, "work"));
	DO(cuLaunchKernelEx(&config, f, params, NULL));
	DO(cuLaunchKernelEx(&config, f, params, NULL));
	DO(cuCtxSynchronize());
	show("extended", hash_of(p, BLOCKS * THREADS));
}

static void library(void)
{
	CUdeviceptr p = buffer(BLOCKS * THREADS);
	CUlibrary lib;
	CUkernel k;
	CUfunction f;
	int i;

	DO(cuLibraryLoadData(&lib, image, NULL, NULL, 0, NULL, NULL, 0));
	DO(cuLibraryGetKernel(&k, lib, "work"));
	DO(cuKernelGetFunction(&f, k));
	for (i = 0; i < 3; i++)
		launch_work(f, NULL, p, N, i);
	launch_work((CUfunction)k, NULL, p, N, 9);
	DO(cuCtxSynchronize());
	DO(cuLibraryUnload(lib));
	show("library", hash_of(p, BLOCKS * THREADS));
}

/* Of the library, on the current context, and not waited for */
static CUdeviceptr launch_library(CUlibrary *lib)
{
	CUdeviceptr p = buffer(BLOCKS * THREADS);
	CUkernel k;
	CUfunction f;
	int i;

	DO(cuLibraryLoadData(lib, image, NULL, NULL, 0, NULL, NULL, 0));
	DO(cuLibraryGetKernel(&k, *lib, "work"));
	DO(cuKernelGetFunction(&f, k));
	launch_work(f, NULL, p, N, 0);
	DO(cuCtxSynchronize());
	for (i = 0; i < 12; i++)
		launch_work(f, NULL, p, 2 * N, i);
	return p;
}

/*
 * Unloaded while its kernels run: by a thread without a context, then by one whose context is on
 * another device
 */
static void unloads(void)
{
	CUcontext other;
	CUdeviceptr p;
	CUlibrary lib;
	uint64_t h;

	p = launch_library(&lib);
	DO(cuCtxSetCurrent(NULL));
	DO(cuLibraryUnload(lib));
	DO(cuCtxSetCurrent(ctx));
	h = hash_of(p, BLOCKS * THREADS);
	DO(cuCtxCreate(&other, NULL, 0, 1));
	p = launch_library(&lib);
	DO(cuCtxSetCurrent(ctx));
	DO(cuLibraryUnload(lib));
	DO(cuCtxSetCurrent(other));
	h = h * 31 + hash_of(p, BLOCKS * THREADS);
	DO(cuCtxDestroy(other));
	DO(cuCtxSetCurrent(ctx));
	show("unloads", h);
}

struct job {
	CUfunction f;
	CUdeviceptr p;
	CUstream s;
};

static void *thread(void *arg)
{
	struct job *j = arg;
	int i;

	DO(cuCtxSetCurrent(ctx));
	for (i = 0; i < 5; i++)
		launch_work(j->f, j->s, j->p, N, i);
	DO(cuStreamSynchronize(j->s));
	return NULL;
}

static void threads(CUmodule m)
{
	pthread_t t[4];
	struct job j[4];
	uint64_t h = 0;
	CUfunction f;
	int i;

	DO(cuModuleGetFunction(&f, m, "work"));
	for (i = 0; i < 4; i++) {
		j[i] = (struct job){ .f = f, .p = buffer(BLOCKS * THREADS) };
		DO(cuStreamCreate(&j[i].s, CU_STREAM_NON_BLOCKING));
	}
	DO(cuCtxSynchronize());
	for (i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, thread, &j[i]);
	for (i = 0; i < 4; i++) {
		pthread_join(t[i], NULL);
		h = h * 31 + hash_of(j[i].p, BLOCKS * THREADS);
		DO(cuStreamDestroy(j[i].s));
	}
	show("threads", h);
}

/* A context of its own: made, used, destroyed. */
static void second(void)
{
	CUdeviceptr p;
	CUcontext other;
	CUmodule m;
	CUfunction f;
	int i;

	DO(cuCtxCreate(&other, NULL, 0, dev));
	DO(cuModuleLoadData(&m, image));
	DO(cuModuleGetFunction(&f, m, "work"));
	p = buffer(BLOCKS * THREADS);
	for (i = 0; i < 3; i++)
		launch_work(f, NULL, p, N, i);
	DO(cuCtxSynchronize());
	show("second", hash_of(p, BLOCKS * THREADS));
	DO(cuModuleUnload(m));
	DO(cuCtxDestroy(other));
	DO(cuCtxSetCurrent(ctx));
}

/* A green context, and pauses after it, in which nothing is on the GPU */
static void green(CUmodule m)
{
	CUdeviceptr p = buffer(BLOCKS * THREADS);
	CUgreenCtx some;
	CUcontext other;
	CUmodule own;
	CUfunction f;
	int i;

	DO(cuGreenCtxCreate(&some, NULL, dev, 1));
	DO(cuCtxFromGreenCtx(&other, some));
	DO(cuCtxSetCurrent(other));
	DO(cuModuleLoadData(&own, image));
	DO(cuModuleGetFunction(&f, own, "work"));
	for (i = 0; i < 3; i++)
		launch_work(f, NULL, p, N, i);
	DO(cuCtxSynchronize());
	DO(cuCtxSetCurrent(ctx));
	DO(cuGreenCtxDestroy(some));
	DO(cuModuleGetFunction(&f, m, "work"));
	for (i = 3; i < 30; i++) {
		launch_work(f, NULL, p, N, i);
		if (i % 5)
			continue;
		DO(cuCtxSynchronize());
		usleep(10000);
	}
	DO(cuCtxSynchronize());
	show("green", hash_of(p, BLOCKS * THREADS));
}

/* Many more launches than slots. */
static void burst(CUmodule m)
{
	CUdeviceptr p = buffer(BLOCKS * THREADS);
	CUfunction f;
	CUstream s;
	int i;

	DO(cuModuleGetFunction(&f, m, "work"));
	DO(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	for (i = 0; i < 150; i++)
		launch_work(f, s, p, 1, i);
	DO(cuStreamSynchronize(s));
	show("burst", hash_of(p, BLOCKS * THREADS));
	DO(cuStreamDestroy(s));
}

/*
 * A child that does nothing with CUDA must not disturb its parent. One that goes on with what it
 * had gets errors.
 */
static void forked(CUmodule m)
{
	CUdeviceptr p = buffer(BLOCKS * THREADS);
	uint32_t n = 1, seed = 7;
	void *params[] = { &p, &n, &seed };
	CUfunction f;
	int status;
	pid_t pid;

	DO(cuModuleGetFunction(&f, m, "work"));
	launch_work(f, NULL, p, N, 1);
	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(0);
	waitpid(pid, &status, 0);
	pid = fork();
	if (!pid) {
		printf("child: %d", (int)cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, params,
							NULL));
		printf(" %d", (int)cuMemcpyDtoH(&n, p, 4));
		printf(" %d", (int)cuMemFree(p));
		printf(" %d\n", (int)cuCtxDestroy(ctx));
		fflush(stdout);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	printf("forked: %d\n", status);
	show("forked", hash_of(p, BLOCKS * THREADS));
	plain(m, 2);
}

/* What goes wrong must go wrong in the same way. */
static void wrong(CUmodule m)
{
	CUmodule bad;
	CUfunction f;
	uint64_t h = 0;
	void *params[1] = { &h };

	h = h * 1000 + cuModuleLoadData(&bad, ".version 8.0\n.target sm_75\n.address_size 64\n"
					".visible .entry x( {");
	h = h * 1000 + cuModuleGetFunction(&f, m, "nosuch");
	DO(cuModuleGetFunction(&f, m, "work"));
	h = h * 1000 + cuLaunchKernel(f, 1, 1, 1, 4096, 1, 1, 0, NULL, params, NULL);
	h = h * 1000 + cuLaunchKernel(f, 0, 1, 1, 32, 1, 1, 0, NULL, params, NULL);
	show("wrong", h);
}

/*
 * Copies and sets that wait for what was launched before, on the legacy stream: by several
 * threads at a time
 */
static void *copier(void *arg)
{
	const struct job *j = arg;
	uint32_t i, word;
	uint64_t h = 0;

	DO(cuCtxSetCurrent(ctx));
	for (i = 0; i < 6; i++) {
		launch_work(j->f, NULL, j->p, N, i);
		DO(cuMemcpyDtoH(&word, j->p + 4 * i, 4));
		h = h * 31 + word;
		launch_work(j->f, j->s, j->p, N, i);
		DO(cuMemcpyDtoHAsync(&word, j->p, 4, j->s));
		h = h * 31 + word;
		launch_work(j->f, NULL, j->p, N, i);
		DO(cuMemsetD32(j->p, i, 16));
	}
	return (void *)(uintptr_t)h;
}

static void copies(CUmodule m)
{
	pthread_t t[3];
	struct job j[3];
	uint64_t h = 0;
	CUfunction f;
	void *got;
	int i;

	DO(cuModuleGetFunction(&f, m, "work"));
	for (i = 0; i < 3; i++) {
		j[i] = (struct job){ .f = f, .p = buffer(BLOCKS * THREADS) };
		DO(cuStreamCreate(&j[i].s, CU_STREAM_DEFAULT));
	}
	for (i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, copier, &j[i]);
	for (i = 0; i < 3; i++) {
		pthread_join(t[i], &got);
		h = h * 31 + (uintptr_t)got;
	}
	for (i = 0; i < 3; i++) {
		h = h * 31 + hash_of(j[i].p, BLOCKS * THREADS);
		DO(cuStreamDestroy(j[i].s));
	}
	show("copies", h);
}

/* Two hundred kernels, each launched as soon as the program knows that the one before has ended */
static void one_by_one(CUmodule m)
{
	uint32_t n = N, seed = 3;
	CUdeviceptr out;
	void *params[] = { &out, &n, &seed };
	CUfunction f;

	DO(cuModuleGetFunction(&f, m, "work"));
	DO(cuMemAlloc(&out, BLOCKS * THREADS * 4));
	DO(cuMemsetD8(out, 0, BLOCKS * THREADS * 4));
	for (int i = 0; i < 200; i++) {
		DO(cuLaunchKernel(f, 2, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL));
		DO(cuCtxSynchronize());
	}
	show("one_by_one", hash_of(out, 2 * THREADS));
}

/* Copies by other threads are under way when the program's first tasks are launched. */
static _Atomic bool launched;
static void *early_copier(void *arg)
{
	uint32_t word;

	DO(cuCtxSetCurrent(ctx));
	while (!launched)
		DO(cuMemcpyDtoH(&word, *(CUdeviceptr *)arg, 4));
	return NULL;
}

static void early(CUmodule m)
{
	CUdeviceptr p = buffer(BLOCKS * THREADS), other = buffer(BLOCKS * THREADS);
	pthread_t t[4];
	CUstream s;
	CUfunction f;
	uint32_t i;

	DO(cuModuleGetFunction(&f, m, "work"));
	DO(cuStreamCreate(&s, CU_STREAM_DEFAULT));
	for (i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, early_copier, &other);
	for (i = 0; i < 4; i++)
		launch_work(f, s, p, 5 * N, i);
	launched = true;
	for (i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	DO(cuStreamSynchronize(s));
	show("early", hash_of(p, BLOCKS * THREADS));
	DO(cuStreamDestroy(s));
}

/* A launch, and no other one behind it until a byte comes; and one that the program ends behind */
static void single(CUmodule m)
{
	CUdeviceptr p = buffer(BLOCKS * THREADS);
	uint32_t n = 60 * N, seed = 3;
	void *params[] = { &p, &n, &seed };
	CUfunction f;

	DO(cuModuleGetFunction(&f, m, "work"));
	DO(cuLaunchKernel(f, FEW, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL));
	DO(cuCtxSynchronize());
	stop_at("launched");
	DO(cuLaunchKernel(f, FEW, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL));
	DO(cuCtxSynchronize());
	exit(0);
}

/* Calls that wait for the device, or may, behind a launch each */
static void waits(CUmodule m)
{
	CUdeviceptr p = buffer(BLOCKS * THREADS), q;
	CUlibrary lib;
	CUkernel kernel;
	CUmodule other;
	CUfunction f, g;
	CUgraphExec exec;
	CUgraph graph;
	uint32_t i = 0;
	void *host;

	DO(cuModuleGetFunction(&f, m, "work"));
#define BEHIND(call) do { launch_work(f, NULL, p, N, i++); DO(call); } while (0)
	BEHIND(cuMemAlloc(&q, 1 << 20));
	BEHIND(cuMemFree(q));
	BEHIND(cuMemAllocHost(&host, 4096));
	BEHIND(cuMemFreeHost(host));
	BEHIND(cuMemHostAlloc(&host, 4096, 0));
	BEHIND(cuMemFreeHost(host));
	BEHIND(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
	BEHIND(cuModuleLoadData(&other, image));
	BEHIND(cuModuleGetFunction(&g, other, "chain"));
	BEHIND(cuModuleUnload(other));
	BEHIND(cuLibraryLoadData(&lib, image, NULL, NULL, 0, NULL, NULL, 0));
	BEHIND(cuLibraryGetKernel(&kernel, lib, "chain"));
	BEHIND(cuKernelGetFunction(&g, kernel));
	BEHIND(cuLibraryUnload(lib));
	BEHIND(cuGraphCreate(&graph, 0));
	BEHIND(cuGraphInstantiate(&exec, graph, 0));
	BEHIND(cuGraphExecDestroy(exec));
	BEHIND(cuGraphDestroy(graph));
#undef BEHIND
	show("waits", hash_of(p, BLOCKS * THREADS));
}

/* Streams that are destroyed with work in them */
static void dropped(CUmodule m)
{
	CUdeviceptr p = buffer(BLOCKS * THREADS);
	CUfunction f;
	CUstream s;
	uint32_t i;

	DO(cuModuleGetFunction(&f, m, "work"));
	for (i = 0; i < 20; i++) {
		DO(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
		launch_work(f, s, p, N, i);
		DO(cuStreamDestroy(s));
		DO(cuCtxSynchronize());
	}
	show("dropped", hash_of(p, BLOCKS * THREADS));
}

/* ---- the first call that knows a context, and launches of another thread ---- */

static _Atomic bool first_done;

static void *first_call(void *arg)
{
	CUcontext own;
	CUstream s;

	DO(cuDevicePrimaryCtxRetain(&own, dev));
	DO(cuCtxSetCurrent(own));
	DO(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	first_done = true;
	DO(cuStreamDestroy(s));
	return NULL;
}

/*
 * When a byte comes on standard input; says how many it has made before the call was over, and
 * stays until a byte comes
 */
static void *launches_beside(void *arg)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };
	CUfunction f = arg;
	CUdeviceptr p;
	uint32_t n = 1, seed = 3;
	void *params[] = { &p, &n, &seed };
	int beside = 0;
	char c;

	if (read(0, &c, 1) != 1)
		exit(1);
	DO(cuDevicePrimaryCtxRetain(&ctx, dev));
	DO(cuCtxSetCurrent(ctx));
	p = buffer(BLOCKS * THREADS);
	do {
		DO(cuLaunchKernel(f, 4, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL));
		DO(cuCtxSynchronize());
		beside += !first_done;
	} while (!first_done && beside < 10);
	printf("beside %d\n", beside);
	fflush(stdout);
	while (!poll(&in, 1, 0)) {
		DO(cuLaunchKernel(f, 4, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL));
		DO(cuCtxSynchronize());
	}
	return NULL;
}

/* The library is loaded before there is a context */
static void attaching(void)
{
	pthread_t first, other;
	CUkernel kernel;
	CUlibrary lib;

	DO(cuLibraryLoadData(&lib, image, NULL, NULL, 0, NULL, NULL, 0));
	DO(cuLibraryGetKernel(&kernel, lib, "work"));
	pthread_create(&first, NULL, first_call, NULL);
	pthread_create(&other, NULL, launches_beside, kernel);
	pthread_join(first, NULL);
	pthread_join(other, NULL);
	DO(cuCtxSetCurrent(ctx));
	DO(cuLibraryUnload(lib));
	DO(cuDevicePrimaryCtxRelease(dev));
	DO(cuDevicePrimaryCtxRelease(dev));
}

static CUdeviceptr left;
static CUfunction left_work;

/* At exit, behind what the interposer does then */
static void late(void)
{
	DO(cuCtxSynchronize());
	launch_work(left_work, NULL, left, N, 5);
	DO(cuCtxSynchronize());
	show("leave", hash_of(left, BLOCKS * THREADS));
}

/* The program ends with work on the device */
static void leave(CUmodule m)
{
	left = buffer(BLOCKS * THREADS);
	DO(cuModuleGetFunction(&left_work, m, "work"));
	launch_work(left_work, NULL, left, N, 3);
	exit(0);
}

int main(int argc, char **argv)
{
	CUmodule m;
	int i;

	if (argc < 3)
		return 2;
	load_file(argv[1]);
	DO(cuInit(0));
	if (!strcmp(argv[argc - 1], "leave"))
		atexit(late);
	DO(cuDeviceGet(&dev, 0));
	if (!strcmp(argv[2], "attaching")) {
		attaching();
		return 0;
	}
	DO(cuDevicePrimaryCtxRetain(&ctx, dev));
	DO(cuCtxSetCurrent(ctx));
	DO(cuModuleLoadData(&m, image));
	for (i = 2; i < argc; i++) {
		if (!strcmp(argv[i], "plain"))
			plain(m, 4);
		else if (!strcmp(argv[i], "long"))
			plain(m, 40);
		else if (!strcmp(argv[i], "small"))
			small(m);
		else if (!strcmp(argv[i], "chain"))
			chain(m);
		else if (!strcmp(argv[i], "packed"))
			packed(m);
		else if (!strcmp(argv[i], "most"))
			most(m);
		else if (!strcmp(argv[i], "tight"))
			tight(m);
		else if (!strcmp(argv[i], "full"))
			full(m);
		else if (!strcmp(argv[i], "extended"))
			extended(m);
		else if (!strcmp(argv[i], "library"))
			library();
		else if (!strcmp(argv[i], "unloads"))
			unloads();
		else if (!strcmp(argv[i], "threads"))
			threads(m);
		else if (!strcmp(argv[i], "green"))
			green(m);
		else if (!strcmp(argv[i], "second"))
			second();
		else if (!strcmp(argv[i], "burst"))
			burst(m);
		else if (!strcmp(argv[i], "forked"))
			forked(m);
		else if (!strcmp(argv[i], "held"))
			held(m, false);
		else if (!strcmp(argv[i], "behind"))
			held(m, true);
		else if (!strcmp(argv[i], "asked"))
			asked(m);
		else if (!strcmp(argv[i], "dependent"))
			dependent(m);
		else if (!strcmp(argv[i], "wide"))
			replay(m, BLOCKS);
		else if (!strcmp(argv[i], "narrow"))
			replay(m, HELD / 2);
		else if (!strcmp(argv[i], "careless"))
			careless(m);
		else if (!strcmp(argv[i], "meets"))
			meets(m);
		else if (!strcmp(argv[i], "waves"))
			waves(m);
		else if (!strcmp(argv[i], "dependents"))
			dependents(m);
		else if (!strcmp(argv[i], "updated"))
			updated(m);
		else if (!strcmp(argv[i], "reused"))
			reused(m);
		else if (!strcmp(argv[i], "single"))
			single(m);
		else if (!strcmp(argv[i], "module"))
			renewed(OF_MODULE);
		else if (!strcmp(argv[i], "library's"))
			renewed(OF_LIBRARY);
		else if (!strcmp(argv[i], "context"))
			renewed(OF_CONTEXT);
		else if (!strcmp(argv[i], "graph"))
			renewed(OF_GRAPH);
		else if (!strcmp(argv[i], "graphs"))
			graphs = true;
		else if (!strcmp(argv[i], "beside"))
			beside(m);
		else if (!strcmp(argv[i], "dropped"))
			dropped(m);
		else if (!strcmp(argv[i], "copies"))
			copies(m);
		else if (!strcmp(argv[i], "kinds"))
			kinds();
		else if (!strcmp(argv[i], "covered"))
			covered(m);
		else if (!strcmp(argv[i], "one_by_one"))
			one_by_one(m);
		else if (!strcmp(argv[i], "early"))
			early(m);
		else if (!strcmp(argv[i], "waits"))
			waits(m);
		else if (!strcmp(argv[i], "leave"))
			leave(m);
		else if (!strcmp(argv[i], "tiny"))
			tiny(m);
		else if (!strcmp(argv[i], "tiny-until-told"))
			tiny_until_told(m);
		else if (!strcmp(argv[i], "apart"))
			apart();
		else if (!strcmp(argv[i], "steady"))
			steady(m);
		else if (!strcmp(argv[i], "slow-until-told"))
			slow(m, true);
		else if (!strcmp(argv[i], "slow"))
			slow(m, false);
		else if (!strcmp(argv[i], "wrong"))
			wrong(m);
		else if (!strcmp(argv[i], "stop"))
			stop_at("stopped");
		else
			return 2;
	}
	DO(cuModuleUnload(m));
	DO(cuDevicePrimaryCtxRelease(dev));
	return 0;
}
