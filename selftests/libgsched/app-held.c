// SPDX-License-Identifier: LGPL-2.1-or-later
/* Steps of app.c with kernels that stay on the device until a test lets them end */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "app.h"

/*
 * What the kernel `held` has for the host: the flag, and how often each block ended, began, and
 * looked at the flag
 */
struct held {
	CUfunction f;
	CUdeviceptr out, at;
	uint32_t *words, blocks;
};

static void held_new(struct held *h, CUmodule m, uint32_t blocks)
{
	void *mem;

	h->blocks = blocks;
	h->out = buffer((size_t)blocks * THREADS);
	DO(cuModuleGetFunction(&h->f, m, "held"));
	DO(cuMemHostAlloc(&mem, 4 * (3 * blocks + 1), CU_MEMHOSTALLOC_DEVICEMAP));
	DO(cuMemHostGetDevicePointer(&h->at, mem, 0));
	h->words = mem;
	memset(mem, 0, 4 * (3 * blocks + 1));
}

static uint32_t held_count(const struct held *h, unsigned int what, uint32_t block)
{
	return __atomic_load_n(&h->words[1 + what * h->blocks + block], __ATOMIC_ACQUIRE);
}
enum { ENDED, BEGAN, LOOKED };

static void held_flag(const struct held *h, uint32_t flag)
{
	__atomic_store_n(&h->words[0], flag, __ATOMIC_RELEASE);
}

static void held_launch(const struct held *h, uint32_t free)
{
	uint32_t n = 10 * N;
	CUdeviceptr counts = h->at + 4, flag = h->at, out = h->out;
	void *params[] = { &out, &flag, &counts, &free, &n };

	DO(cuLaunchKernel(h->f, h->blocks, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL));
}

/* Until each block from @first on has looked at the flag again */
static void held_move(const struct held *h, uint32_t first)
{
	uint32_t before[BLOCKS] = { 0 }, i;

	for (i = first; i < h->blocks; i++)
		before[i] = held_count(h, LOOKED, i);
	for (i = first; i < h->blocks; i++)
		while (held_count(h, LOOKED, i) == before[i])
			usleep(100);
}

/* On the device, "held", until a byte comes */
static void held_until_told(const struct held *h)
{
	char c;

	held_move(h, 0);
	say("held");
	if (read(0, &c, 1) != 1)
		exit(1);
	held_flag(h, 1);
}

/*
 * Launches until a byte comes on standard input; then one whose last blocks wait until another byte
 * comes. So block-tasks are in their middle for as long as a test wants them to be; to a '?' it
 * answers when all of them have moved on. @behind: each launch has another one behind it on the
 * same memory.
 */
void held(CUmodule m, bool behind)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };
	unsigned int i, began = 0, ended = 0;
	CUfunction work;
	struct held h;
	char c;

	DO(cuModuleGetFunction(&work, m, "work"));
	held_new(&h, m, BLOCKS);
	do {
		held_launch(&h, BLOCKS);
		if (behind)
			launch_work(work, NULL, h.out, N, 1);
		DO(cuCtxSynchronize());
	} while (!poll(&in, 1, 0));
	if (read(0, &c, 1) != 1)
		exit(1);
	DO(cuMemsetD32(h.out, 12345, BLOCKS * THREADS));
	DO(cuCtxSynchronize());
	memset(h.words, 0, 4 * (3 * BLOCKS + 1));
	held_launch(&h, BLOCKS - HELD);
	if (behind)
		launch_work(work, NULL, h.out, N, 1);
	for (i = 0; i < BLOCKS - HELD; i++)
		while (!held_count(&h, ENDED, i))
			usleep(100);
	held_move(&h, BLOCKS - HELD);
	say("held");
	while (read(0, &c, 1) == 1 && c == '?') {
		held_move(&h, BLOCKS - HELD);
		say("moving");
	}
	held_flag(&h, 1);
	DO(cuCtxSynchronize());
	for (i = 0; i < BLOCKS; i++) {
		began += held_count(&h, BEGAN, i) == 1;
		ended += held_count(&h, ENDED, i) == 1;
	}
	printf("%u began once, %u ended once\n", began, ended);
	show("held", hash_of(h.out, BLOCKS * THREADS));
	DO(cuMemFreeHost(h.words));
}

/*
 * Idle but for requests on standard input: each a small kernel that is on the device from an 'r' to
 * the next byte.
 */
void asked(CUmodule m)
{
	struct held h;
	char c;

	held_new(&h, m, 4);
	say("ready");
	while (read(0, &c, 1) == 1 && c == 'r') {
		DO(cuMemsetD32(h.out, 12345, 4 * THREADS));
		DO(cuCtxSynchronize());
		held_flag(&h, 0);
		held_launch(&h, 0);
		held_move(&h, 0);
		say("running");
		if (read(0, &c, 1) != 1)
			exit(1);
		held_flag(&h, 1);
		DO(cuCtxSynchronize());
		say("served");
	}
	show("asked", hash_of(h.out, 4 * THREADS));
	DO(cuMemFreeHost(h.words));
}

/* A kernel that stays on the GPU until others, launched after it in another stream, are over. */
void beside(CUmodule m)
{
	CUdeviceptr p = buffer(BLOCKS * THREADS), counts, flag, out;
	uint32_t free = 0, n = N, i;
	void *params[] = { &out, &flag, &counts, &free, &n };
	CUstream s, t;
	CUfunction f;
	struct held h;

	DO(cuModuleGetFunction(&f, m, "work"));
	DO(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	DO(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
	held_new(&h, m, 4);
	DO(cuCtxSynchronize());
	out = h.out;
	flag = h.at;
	counts = h.at + 4;
	launch_graph(h.f, h.blocks, t, params);
	for (i = 0; i < 12; i++)
		launch_work(f, s, p, N, i);
	DO(cuStreamSynchronize(s));
	held_flag(&h, 1);
	DO(cuStreamSynchronize(t));
	show("beside", hash_of(p, BLOCKS * THREADS) ^ hash_of(h.out, 4 * THREADS));
	DO(cuMemFreeHost(h.words));
	DO(cuStreamDestroy(s));
	DO(cuStreamDestroy(t));
}

/* A kernel that is on the device from "held" to a byte, and forty of fewer blocks behind it */
void covered(CUmodule m)
{
	uint32_t n = N, seed = 3, i;
	struct held h;
	void *params[] = { &h.out, &n, &seed };
	CUfunction f;

	DO(cuModuleGetFunction(&f, m, "work"));
	held_new(&h, m, 4);
	/* how long it takes is known then; the agent learns it */
	for (i = 0; i < 5; i++) {
		DO(cuLaunchKernel(f, 2, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL));
		DO(cuCtxSynchronize());
		usleep(20000);
	}
	held_flag(&h, 0);
	held_launch(&h, 0);
	for (i = 0; i < 40; i++)
		DO(cuLaunchKernel(f, 2, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL));
	held_until_told(&h);
	DO(cuCtxSynchronize());
	show("covered", hash_of(h.out, 4 * THREADS));
	DO(cuMemFreeHost(h.words));
}

/*
 * A kernel, and one behind it that may begin before its end. The second time the first is on the
 * device from "held" to a byte.
 */
void dependent(CUmodule m)
{
	CUlaunchAttribute attr = { .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION };
	CUlaunchConfig config = {
		.gridDimX = 4, .gridDimY = 1, .gridDimZ = 1,
		.blockDimX = THREADS, .blockDimY = 1, .blockDimZ = 1,
		.attrs = &attr, .numAttrs = 1,
	};
	uint32_t n = N, seed = 3;
	struct held h;
	void *params[] = { &h.out, &n, &seed };
	CUfunction f;

	attr.value.programmaticStreamSerializationAllowed = 1;
	DO(cuModuleGetFunction(&f, m, "work"));
	held_new(&h, m, 4);
	for (int i = 0; i < 2; i++) {
		held_flag(&h, !i);
		held_launch(&h, 0);
		DO(cuLaunchKernelEx(&config, f, params, NULL));
		if (i)
			held_until_told(&h);
		DO(cuCtxSynchronize());
	}
	show("dependent", hash_of(h.out, 4 * THREADS));
	DO(cuMemFreeHost(h.words));
}
