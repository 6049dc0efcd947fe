// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Blocks that wait for each other, for the host or for another launch: barriers of the whole grid,
 * a lock, a scan that looks back, a kernel that stays
 */
#include <unistd.h>
#include "forms.h"

#define TURNS 6u

static CUdeviceptr zeroed(size_t words)
{
	CUdeviceptr p;

	DO(cuMemAlloc(&p, words * 4));
	DO(cuMemsetD32(p, 0, words));
	return p;
}

/* Words of both sides, the same at first */
struct pair {
	uint32_t *host, *got;
	CUdeviceptr at;
	size_t n;
};

static struct pair pair_new(size_t n)
{
	struct pair p = { .host = malloc(n * 4), .got = malloc(n * 4), .n = n };

	if (!p.host || !p.got)
		abort();
	for (size_t i = 0; i < n; i++)
		p.host[i] = mix((uint32_t)i, 2);
	DO(cuMemAlloc(&p.at, n * 4));
	DO(cuMemcpyHtoD(p.at, p.host, n * 4));
	return p;
}

static void pair_check(const struct pair *p)
{
	DO(cuMemcpyDtoH(p->got, p->at, p->n * 4));
	CHECK(!memcmp(p->got, p->host, p->n * 4));
}

static void pair_show(const char *what, struct pair *p)
{
	pair_check(p);
	printf("%s %08x\n", what, p->host[0]);
	DO(cuMemFree(p->at));
	free(p->host);
	free(p->got);
}

/* What kernels rounds_whole and rounds_counted do */
static void rounds_expect(struct pair *p, uint32_t n, uint32_t rounds)
{
	for (uint32_t r = 0; r < rounds; r++) {
		for (size_t i = 0; i < p->n; i++)
			p->got[i] = mix(p->host[i] + p->host[(i + THREADS + 1) % p->n], n);
		memcpy(p->host, p->got, p->n * 4);
	}
}

static uint32_t sms(void)
{
	int n;

	DO(cuDeviceGetAttribute(&n, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, form_device));
	return (uint32_t)n;
}

/* Blocks that the device holds at once; the form is skipped where it has no cooperative launches */
static uint32_t most(CUfunction f)
{
	int n;

	DO(cuDeviceGetAttribute(&n, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, form_device));
	if (!n) {
		printf("no cooperative launches\n");
		exit(FORM_SKIP);
	}
	DO(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, THREADS, 0));
	return (uint32_t)n * sms();
}

static void whole(CUfunction f, uint32_t blocks, CUstream s, struct pair *p, bool ex)
{
	CUlaunchAttribute a = { .id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1 };
	CUlaunchConfig c = {
		.gridDimX = blocks, .gridDimY = 1, .gridDimZ = 1, .blockDimX = THREADS,
		.blockDimY = 1, .blockDimZ = 1, .hStream = s, .attrs = &a, .numAttrs = 1,
	};
	uint32_t n = ROUNDS, rounds = 3;
	void *params[] = { &p->at, &n, &rounds };

	if (ex)
		DO(cuLaunchKernelEx(&c, f, params, NULL));
	else
		DO(cuLaunchCooperativeKernel(f, blocks, 1, 1, THREADS, 1, 1, 0, s, params));
	rounds_expect(p, n, rounds);
}

static void grid_sync(void)
{
	struct pair p;
	CUfunction f;
	uint32_t blocks;

	form_begin();
	f = form_function("rounds_whole");
	blocks = most(f);
	p = pair_new((size_t)blocks * THREADS);
	for (uint32_t k = 0; k < TURNS; k++) {
		whole(f, blocks, NULL, &p, k & 1);
		pair_check(&p);
	}
	pair_show("grid-sync", &p);
}

/* Two streams, each grid takes more than half of the device: one waits for the other as a whole */
static void grid_sync_streams(void)
{
	struct pair p[2];
	CUstream s[2];
	CUfunction f;
	uint32_t blocks;

	form_begin();
	f = form_function("rounds_whole");
	blocks = most(f) * 2 / 3 + 1;
	for (int i = 0; i < 2; i++) {
		p[i] = pair_new((size_t)blocks * THREADS);
		DO(cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING));
	}
	for (uint32_t k = 0; k < TURNS; k++)
		for (int i = 0; i < 2; i++)
			whole(f, blocks, s[i], &p[i], false);
	for (int i = 0; i < 2; i++)
		DO(cuStreamSynchronize(s[i]));
	pair_check(&p[0]);
	pair_show("grid-sync-streams", &p[1]);
}

/* Launches that need no barrier, before, beside and behind those that do */
static void grid_sync_between(void)
{
	struct pair p;
	struct words w;
	CUfunction f, g;
	CUstream s;
	uint32_t blocks;

	form_begin();
	f = form_function("rounds_whole");
	g = form_function("work");
	blocks = most(f);
	p = pair_new((size_t)blocks * THREADS);
	w = words_new((size_t)form_blocks * THREADS);
	/* the stream does not wait for what filled them */
	DO(cuCtxSynchronize());
	DO(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	for (uint32_t k = 0; k < TURNS; k++) {
		work(g, s, &w, ROUNDS, k);
		whole(f, blocks, NULL, &p, false);
		work(g, s, &w, ROUNDS, k + 100);
	}
	DO(cuCtxSynchronize());
	pair_show("grid-sync-between", &p);
	words_show("grid-sync-between", &w);
}

static void grid_too_large(void)
{
	struct pair p;
	uint32_t n = 1, rounds = 1;
	CUfunction f;

	form_begin();
	f = form_function("rounds_whole");
	p = pair_new(THREADS);
	IS(COOPERATIVE_LAUNCH_TOO_LARGE,
	   cuLaunchCooperativeKernel(f, most(f) + 1, 1, 1, THREADS, 1, 1, 0, NULL,
				     (void *[]){ &p.at, &n, &rounds }));
	whole(f, 1, NULL, &p, false);
	pair_show("grid-too-large", &p);
}

/* A grid that its program has made just as large as the device holds */
static void block_barrier(void)
{
	uint32_t n = ROUNDS, rounds = 3, blocks;
	CUdeviceptr arrived;
	struct pair p;
	CUfunction f;

	form_begin();
	f = form_function("rounds_counted");
	blocks = sms();
	p = pair_new((size_t)blocks * THREADS);
	arrived = zeroed(1);
	for (uint32_t k = 0; k < TURNS; k++) {
		DO(cuMemsetD32(arrived, 0, 1));
		LAUNCH(f, blocks, THREADS, NULL, &p.at, &arrived, &n, &rounds);
		rounds_expect(&p, n, rounds);
		pair_check(&p);
	}
	pair_show("block-barrier", &p);
}

static void spin_lock(void)
{
	uint32_t n = 4, blocks = FEW, want[3] = { 0 }, got[3];
	CUdeviceptr lock, sums;
	CUfunction f;

	form_begin();
	f = form_function("locked");
	lock = zeroed(1);
	sums = zeroed(3);
	for (uint32_t k = 0; k < TURNS; k++) {
		LAUNCH(f, blocks, THREADS, NULL, &lock, &sums, &n);
		for (uint32_t i = 0; i < blocks * THREADS; i++) {
			want[0] += mix(i, n);
			want[1] ^= mix(i, n);
			want[2]++;
		}
		DO(cuMemcpyDtoH(got, sums, sizeof(got)));
		CHECK(!memcmp(got, want, sizeof(got)));
	}
	printf("spin-lock %08x %u\n", got[0], got[2]);
}

static void look_back(void)
{
	CUdeviceptr state, next;
	struct pair p;
	CUfunction f;

	form_begin();
	f = form_function("scan_once");
	p = pair_new((size_t)form_blocks * THREADS);
	state = zeroed((size_t)form_blocks * 2);
	next = zeroed(1);
	for (uint32_t k = 0; k < TURNS; k++) {
		DO(cuMemsetD32(state, 0, (size_t)form_blocks * 2));
		DO(cuMemsetD32(next, 0, 1));
		LAUNCH(f, form_blocks, THREADS, NULL, &p.at, &state, &next);
		for (size_t i = 1; i < p.n; i++)
			p.host[i] += p.host[i - 1];
		pair_check(&p);
	}
	pair_show("look-back", &p);
}

/* A kernel that stays and answers what the host asks, with copies by another stream between */
static void persistent(void)
{
	uint32_t n = ROUNDS, blocks;
	CUstream kernel, copies;
	CUdeviceptr arrived;
	struct flag mail;
	struct pair p;
	CUfunction f;

	form_begin();
	f = form_function("serve");
	blocks = sms();
	p = pair_new((size_t)blocks * THREADS);
	arrived = zeroed(1);
	mail = flag_new();
	DO(cuStreamCreate(&kernel, CU_STREAM_NON_BLOCKING));
	DO(cuStreamCreate(&copies, CU_STREAM_NON_BLOCKING));
	LAUNCH(f, blocks, THREADS, kernel, &mail.at, &arrived, &p.at, &n);
	for (uint32_t turn = 1; turn <= 40; turn++) {
		mail.host[0] = turn;
		while (mail.host[1] != turn)
			;
		DO(cuMemcpyDtoHAsync(p.got, p.at, p.n * 4, copies));
		DO(cuStreamSynchronize(copies));
		for (size_t i = 0; i < p.n; i++)
			p.host[i] = mix(p.host[i] ^ turn, n);
		CHECK(!memcmp(p.got, p.host, p.n * 4));
		IS(NOT_READY, cuStreamQuery(kernel));
	}
	mail.host[0] = UINT32_MAX;
	DO(cuStreamSynchronize(kernel));
	pair_show("persistent", &p);
}

/* A kernel that waits for what a later launch in another stream does */
static void waits_for_launch(void)
{
	CUdeviceptr word;
	uint32_t one = 1;
	struct words w;
	CUfunction f;
	CUstream s[2];

	/* a kernel that is loaded at its first launch could wait for the one that waits for it */
	setenv("CUDA_MODULE_LOADING", "EAGER", 1);
	form_begin();
	f = form_function("set");
	w = words_new((size_t)form_blocks * THREADS);
	word = zeroed(1);
	for (int i = 0; i < 2; i++)
		DO(cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING));
	for (uint32_t k = 0; k < TURNS; k++) {
		DO(cuMemsetD32(word, 0, 1));
		DO(cuCtxSynchronize());
		LAUNCH(form_function("hold"), 1, 1, s[0], &word);
		work(form_function("work"), s[1], &w, ROUNDS, k);
		LAUNCH(f, 1, 1, s[1], &word, &one);
		DO(cuStreamSynchronize(s[0]));
		DO(cuStreamSynchronize(s[1]));
	}
	words_show("waits-for-launch", &w);
}

static void wait_for_host(void *flag)
{
	while (!*(volatile uint32_t *)flag)
		usleep(100);
}

/*
 * A stream in which nothing runs until the host has launched it all, behind a host function, then
 * behind a kernel: as benchmarks do, to measure without the host
 */
static void host_gate(void)
{
	struct words all, few;
	struct flag gate;
	CUfunction f;
	CUstream s;

	form_begin();
	f = form_function("work");
	all = words_new((size_t)form_blocks * THREADS);
	few = words_new((size_t)FEW * THREADS);
	gate = flag_new();
	DO(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	work(f, s, &all, ROUNDS, 1);
	for (int round = 0; round < 3; round++) {
		gate.host[0] = 0;
		if (round % 2)
			DO(cuLaunchHostFunc(s, wait_for_host, (void *)gate.host));
		else
			hold(s, &gate);
		for (uint32_t k = 0; k < 200; k++)
			work(f, s, k % 40 ? &few : &all, 2, k);
		IS(NOT_READY, cuStreamQuery(s));
		gate.host[0] = 1;
		DO(cuStreamSynchronize(s));
	}
	flag_free(&gate);
	words_show("host-gate", &all);
	words_show("few", &few);
}

const struct form waiting_forms[] = {
	{ "grid-sync", grid_sync },
	{ "grid-sync-streams", grid_sync_streams },
	{ "grid-sync-between", grid_sync_between },
	{ "grid-too-large", grid_too_large },
	{ "block-barrier", block_barrier },
	{ "spin-lock", spin_lock },
	{ "look-back", look_back },
	{ "persistent", persistent },
	{ "waits-for-launch", waits_for_launch },
	{ "host-gate", host_gate },
	{ 0 },
};
