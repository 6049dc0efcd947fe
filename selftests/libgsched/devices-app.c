// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A program of two devices that knows nothing of gsched: devices-app PTX-FILE. Standard input has
 * what it is to do, a letter and a device's number for each, and it answers when that is done.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "libgsched/cuda/base/cudadrv.h"

#define DEVICES	2
#define BLOCKS	192
#define HELD	4
#define THREADS	64
#define N	60

static struct gpu {
	CUdevice dev;
	CUcontext ctx;
	CUfunction work, held;
	CUdeviceptr p, spare, words;
	uint32_t *host;			/* the flag that `held` waits for, and its counts */
	pthread_t thread;
	_Atomic bool stop;
	_Atomic unsigned int rounds;
} gpus[DEVICES];

static char image[1 << 20];

static void check(CUresult rc, const char *what)
{
	if (!rc)
		return;
	fprintf(stderr, "%s: error %d\n", what, rc);
	exit(1);
}
#define DO(call) check(call, #call)

static void launch(const struct gpu *g, uint32_t n, uint32_t seed)
{
	CUdeviceptr p = g->p;
	void *params[] = { &p, &n, &seed };

	DO(cuLaunchKernel(g->work, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL));
}

static unsigned long long hash(const struct gpu *g)
{
	static uint32_t host[BLOCKS * THREADS];
	unsigned long long h = 14695981039346656037ull;

	DO(cuMemcpyDtoH(host, g->p, sizeof(host)));
	for (size_t i = 0; i < BLOCKS * THREADS; i++)
		h = (h ^ host[i]) * 1099511628211ull;
	return h;
}

static void *steady(void *arg)
{
	struct gpu *g = arg;

	DO(cuCtxSetCurrent(g->ctx));
	while (!g->stop) {
		launch(g, N, 1);
		DO(cuCtxSynchronize());
		g->rounds++;
	}
	return NULL;
}

static void make(struct gpu *g)
{
	CUmodule m;
	void *host;

	DO(cuCtxCreate(&g->ctx, NULL, 0, g->dev));
	DO(cuModuleLoadData(&m, image));
	DO(cuModuleGetFunction(&g->work, m, "work"));
	DO(cuModuleGetFunction(&g->held, m, "held"));
	DO(cuMemAlloc(&g->p, BLOCKS * THREADS * 4));
	DO(cuMemAlloc(&g->spare, 4096));
	DO(cuMemsetD32(g->p, 12345, BLOCKS * THREADS));
	DO(cuMemHostAlloc(&host, 4 * (3 * HELD + 1), CU_MEMHOSTALLOC_DEVICEMAP));
	DO(cuMemHostGetDevicePointer(&g->words, host, 0));
	g->host = host;
}

/* A few blocks that stay on the device */
static void hold(struct gpu *g)
{
	CUdeviceptr out = g->p, flag = g->words, counts = g->words + 4;
	uint32_t free = 0, n = N;
	void *params[] = { &out, &flag, &counts, &free, &n };

	memset(g->host, 0, 4 * (3 * HELD + 1));
	DO(cuLaunchKernel(g->held, HELD, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL));
	for (unsigned int i = 0; i < HELD; i++)
		while (!__atomic_load_n(&g->host[1 + 2 * HELD + i], __ATOMIC_ACQUIRE))
			usleep(100);
}

/* One call for both devices */
static void launch_both(void)
{
	CUDA_LAUNCH_PARAMS list[DEVICES];
	uint32_t n = N, seed = 5;
	void *params[DEVICES][3];
	CUstream s[DEVICES];

	for (unsigned int i = 0; i < DEVICES; i++) {
		DO(cuCtxSetCurrent(gpus[i].ctx));
		DO(cuStreamCreate(&s[i], CU_STREAM_DEFAULT));
		params[i][0] = &gpus[i].p;
		params[i][1] = &n;
		params[i][2] = &seed;
		list[i] = (CUDA_LAUNCH_PARAMS){
			.function = gpus[i].work, .gridDimX = HELD, .gridDimY = 1, .gridDimZ = 1,
			.blockDimX = THREADS, .blockDimY = 1, .blockDimZ = 1, .hStream = s[i],
			.kernelParams = params[i],
		};
	}
	DO(cuLaunchCooperativeKernelMultiDevice(list, DEVICES, 3));
	for (unsigned int i = 0; i < DEVICES; i++) {
		DO(cuCtxSetCurrent(gpus[i].ctx));
		DO(cuCtxSynchronize());
		DO(cuStreamDestroy(s[i]));
		printf("%016llx ", hash(&gpus[i]));
	}
}

static void obey(char verb, struct gpu *g)
{
	unsigned int i = (unsigned int)(g - gpus), from;

	if (verb != 'n')
		DO(cuCtxSetCurrent(g->ctx));
	switch (verb) {
	case 'n':
		make(g);
		printf("new %u\n", i);
		break;
	case 's':	/* launch all the time */
		g->stop = false;
		pthread_create(&g->thread, NULL, steady, g);
		printf("started %u\n", i);
		break;
	case 'r':	/* some more of these */
		from = g->rounds;
		while (g->rounds - from < 4)
			usleep(100);
		printf("goes on %u\n", i);
		break;
	case 't':	/* no more; what comes out of two */
		g->stop = true;
		pthread_join(g->thread, NULL);
		DO(cuMemsetD32(g->p, 12345, BLOCKS * THREADS));
		launch(g, N, 2);
		launch(g, N, 3);
		DO(cuCtxSynchronize());
		printf("stopped %u %016llx\n", i, hash(g));
		break;
	case 'l':	/* once, for long */
		launch(g, 100 * N, 4);
		printf("launched %u\n", i);
		break;
	case 'w':
		DO(cuCtxSynchronize());
		printf("over %u %016llx\n", i, hash(g));
		break;
	case 'h':
		hold(g);
		printf("held %u\n", i);
		break;
	case 'f':
		__atomic_store_n(&g->host[0], 1, __ATOMIC_RELEASE);
		DO(cuCtxSynchronize());
		printf("freed %u %016llx\n", i, hash(g));
		break;
	case 'm':	/* what the driver waits for all contexts for */
		DO(cuMemFreeHost(g->host));
		printf("unpinned %u\n", i);
		break;
	case 'x':	/* memory of this device, while the other one's context is current */
		DO(cuCtxSetCurrent(gpus[!i].ctx));
		DO(cuMemFree(g->spare));
		printf("freed %u\n", i);
		break;
	case 'p':	/* from this device to the other one, whose context is current */
		DO(cuCtxSetCurrent(gpus[!i].ctx));
		DO(cuMemcpyPeer(gpus[!i].spare, gpus[!i].ctx, g->spare, g->ctx, 4096));
		printf("copied %u\n", i);
		break;
	case 'b':
		launch_both();
		printf("both %u\n", i);
		break;
	case 'd':
		DO(cuCtxDestroy(g->ctx));
		printf("gone %u\n", i);
		break;
	}
	fflush(stdout);
}

int main(int argc, char **argv)
{
	FILE *f = argc == 2 ? fopen(argv[1], "re") : NULL;
	char word[2];

	if (!f || !fread(image, 1, sizeof(image) - 1, f))
		return 2;
	fclose(f);
	DO(cuInit(0));
	for (int i = 0; i < DEVICES; i++)
		DO(cuDeviceGet(&gpus[i].dev, i));
	while (read(0, word, 2) == 2 && word[1] >= '0' && word[1] < '0' + DEVICES)
		obey(word[0], &gpus[word[1] - '0']);
	return 0;
}
