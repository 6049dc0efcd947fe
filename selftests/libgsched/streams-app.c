// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A program of the driver API that knows nothing of gsched: streams-app PTX-FILE STEP... Its
 * threads use the same streams without waiting for each other, in ways whose result does not depend
 * on who comes first.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "libgsched/cuda/base/cudadrv.h"

#define BLOCKS	192
#define THREADS	64
#define WORDS	(BLOCKS * THREADS)
#define BYTES	(4 * WORDS)
#define ROUNDS	60
#define TIMES	16

static CUdevice dev;
static CUcontext ctx;
static CUfunction work;
static CUdeviceptr memory;
static char image[1 << 20];

static void check(CUresult rc, const char *what)
{
	if (!rc)
		return;
	fprintf(stderr, "%s: error %d\n", what, rc);
	exit(1);
}
#define DO(call) check(call, #call)

static void launch(CUstream s)
{
	uint32_t n = ROUNDS, seed = 7;
	void *params[] = { &memory, &n, &seed };

	DO(cuLaunchKernel(work, BLOCKS, 1, 1, THREADS, 1, 1, 0, s, params, NULL));
}

/* What word @i becomes by one launch */
static uint32_t next(uint32_t x, uint32_t i)
{
	x ^= 7 ^ i;
	for (uint32_t n = 0; n < ROUNDS; n++)
		x = x * 1664525u + 1013904223u + (x >> 13);
	return x;
}

/* How many launches all of the words have seen; -1: some more than others */
static int launches_seen(const uint32_t *words)
{
	static int known;
	static uint32_t after[TIMES + 1][WORDS];
	int k;

	if (!known) {
		for (k = 0; k < TIMES; k++)
			for (uint32_t i = 0; i < WORDS; i++)
				after[k + 1][i] = next(after[k][i], i);
		known = 1;
	}
	if (!words)
		return 0;
	for (k = 0; k <= TIMES; k++)
		if (!memcmp(after[k], words, sizeof(after[k])))
			return k;
	return -1;
}


/*
 * In four streams in turn, each of which waits for the one before: for an event, or, @how else, for
 * a word. The third comes when told to.
 */
static void chain(const char *how)
{
	CUdeviceptr word = memory - 4;
	CUstreamBatchMemOpParams op = { 0 };
	static uint32_t words[WORDS];
	CUstream s[4];
	CUevent e;

	DO(cuMemsetD32(word, 0, 1));
	for (unsigned int i = 0; i < 4; i++)
		DO(cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING));
	for (unsigned int i = 0; i < TIMES; i++) {
		if (i == 2) {
			puts("ready");
			fflush(stdout);
			getchar();
		}
		if (i && !strcmp(how, "chain-values")) {
			DO(cuStreamWriteValue32(s[(i - 1) % 4], word, i, 0));
			DO(cuStreamWaitValue32(s[i % 4], word, i, CU_STREAM_WAIT_VALUE_GEQ));
		} else if (i && !strcmp(how, "chain-batches")) {
			op.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
			op.waitValue.address = word;
			op.waitValue.value = i;
			op.waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
			DO(cuStreamWriteValue32(s[(i - 1) % 4], word, i, 0));
			DO(cuStreamBatchMemOp(s[i % 4], 1, &op, 0));
		} else if (i) {
			DO(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
			DO(cuEventRecord(e, s[(i - 1) % 4]));
			DO(cuStreamWaitEvent(s[i % 4], e, 0));
			DO(cuEventDestroy(e));
		}
		launch(s[i % 4]);
	}
	DO(cuCtxSynchronize());
	DO(cuMemcpyDtoH(words, memory, BYTES));
	printf("chain: %d launches\n", launches_seen(words));
	for (unsigned int i = 0; i < 4; i++)
		DO(cuStreamDestroy(s[i]));
}

struct waiter {
	CUstream stream;
	CUevent event;
};

static void *waits_once(void *waiter)
{
	struct waiter *w = waiter;

	DO(cuCtxSetCurrent(ctx));
	DO(cuStreamWaitEvent(w->stream, w->event, 0));
	DO(cuStreamSynchronize(w->stream));
	return NULL;
}

/* Many threads, one after the other, whose default streams wait for an event; then launches */
static void waiters(CUstream s)
{
	static uint32_t words[WORDS];
	struct waiter w;
	pthread_t thread;

	DO(cuEventCreate(&w.event, CU_EVENT_DISABLE_TIMING));
	launch(s);
	for (int i = 0; i < 20; i++) {
		DO(cuEventRecord(w.event, s));
		w.stream = i % 2 ? CU_STREAM_PER_THREAD : NULL;
		pthread_create(&thread, NULL, waits_once, &w);
		pthread_join(thread, NULL);
	}
	for (int i = 0; i < 4; i++)
		launch(s);
	DO(cuCtxSynchronize());
	DO(cuEventDestroy(w.event));
	DO(cuMemcpyDtoH(words, memory, BYTES));
	printf("waiters: %d launches\n", launches_seen(words));
}

/* The whole context waits for a kernel, streams that come later, too. */
static void context_waits(CUstream s)
{
	static uint32_t words[WORDS];
	CUstream later;
	CUevent e;

	DO(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	for (int i = 0; i < 4; i++) {
		launch(s);
		DO(cuEventRecord(e, s));
		DO(cuCtxWaitEvent(ctx, e));
		DO(cuStreamCreate(&later, CU_STREAM_NON_BLOCKING));
		launch(later);
		DO(cuEventRecord(e, later));
		DO(cuStreamWaitEvent(s, e, 0));
		DO(cuStreamDestroy(later));
	}
	DO(cuCtxSynchronize());
	DO(cuEventDestroy(e));
	DO(cuMemcpyDtoH(words, memory, BYTES));
	printf("context-waits: %d launches\n", launches_seen(words));
}

static void *launches(void *stream)
{
	DO(cuCtxSetCurrent(ctx));
	for (int i = 0; i < TIMES; i++)
		launch(stream);
	return NULL;
}

/* To memory of the host; @kind: one of the calls for that, the last one in the legacy stream */
static void copy_by(unsigned int kind, CUdeviceptr to, CUstream s)
{
	CUmemcpyAttributes attributes = { .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM };
	CUDA_MEMCPY3D_PEER peer = {
		.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = memory, .srcContext = ctx,
		.dstMemoryType = CU_MEMORYTYPE_UNIFIED, .dstDevice = to, .dstContext = ctx,
		.WidthInBytes = BYTES, .Height = 1, .Depth = 1,
	};
	CUDA_MEMCPY3D_BATCH_OP op = {
		.src.type = CU_MEMCPY_OPERAND_TYPE_POINTER,
		.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER,
		.extent = { BYTES, 1, 1 }, .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM,
	};
	size_t bytes = BYTES, first = 0;

	op.src.op.ptr.ptr = memory;
	op.dst.op.ptr.ptr = to;
	switch (kind) {
	case 0:
		DO(cuMemcpyBatchAsync(&to, &memory, &bytes, 1, &attributes, &first, 1, s));
		break;
	case 1:
		DO(cuMemcpy3DBatchAsync(1, &op, 0, s));
		break;
	case 2:
		DO(cuMemcpy3DPeerAsync(&peer, s));
		break;
	default:
		DO(cuMemcpy3DPeer(&peer));
	}
}

/* What is copied while another thread launches is what was there before or after a launch */
static void copies_of(const char *step, CUstream from, CUstream to, unsigned int kinds)
{
	unsigned int torn = 0, i;
	pthread_t thread;
	void *pinned;

	DO(cuMemHostAlloc(&pinned, BYTES, 0));
	pthread_create(&thread, NULL, launches, from);
	for (i = 0; i < 8 * TIMES; i++) {
		copy_by(i % kinds, (CUdeviceptr)(uintptr_t)pinned, to);
		DO(cuStreamSynchronize(to));
		torn += launches_seen(pinned) < 0;
	}
	pthread_join(thread, NULL);
	DO(cuCtxSynchronize());
	DO(cuMemFreeHost(pinned));
	printf("%s: %u torn\n", step, torn);
}

/* The same by a kernel, and by copies of two kinds */
static void copies(const char *step, CUstream from, CUstream to, CUfunction kernel)
{
	CUdeviceptr below = memory - BYTES;
	uint32_t blocks = BLOCKS;
	void *params[] = { &below, &blocks }, *pinned;
	pthread_t thread;
	int torn = 0, i;

	DO(cuMemHostAlloc(&pinned, BYTES, 0));
	pthread_create(&thread, NULL, launches, from);
	for (i = 0; i < 2 * TIMES; i++) {
		if (kernel)
			DO(cuLaunchKernel(kernel, BLOCKS, 1, 1, THREADS, 1, 1, 0, to,
					  params, NULL));
		else if (i % 2)
			DO(cuMemcpyDtoDAsync(below, memory, BYTES, to));
		DO(cuMemcpyDtoHAsync(pinned, kernel || i % 2 ? below : memory, BYTES, to));
		DO(cuStreamSynchronize(to));
		torn += launches_seen(pinned) < 0;
	}
	pthread_join(thread, NULL);
	DO(cuCtxSynchronize());
	DO(cuMemFreeHost(pinned));
	printf("%s: %d torn\n", step, torn);
}

/* The same by a kernel whose launch is never that of a twin */
static void original_kernels(const char *step, CUstream s, CUfunction kernel)
{
	CUlaunchAttribute attr = { .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE };
	CUlaunchConfig config = {
		.gridDimX = BLOCKS, .gridDimY = 1, .gridDimZ = 1, .blockDimX = THREADS,
		.blockDimY = 1, .blockDimZ = 1, .hStream = s, .attrs = &attr, .numAttrs = 1,
	};
	CUdeviceptr below = memory - BYTES;
	uint32_t blocks = BLOCKS;
	void *params[] = { &below, &blocks }, *pinned;
	pthread_t thread;
	int torn = 0, i, j;

	DO(cuMemHostAlloc(&pinned, BYTES, 0));
	for (i = 0; i < 8; i++) {
		DO(cuMemsetD32(memory, 0, WORDS));
		DO(cuCtxSynchronize());
		pthread_create(&thread, NULL, launches, s);
		for (j = 0; j < 2 * TIMES; j++) {
			DO(cuLaunchKernelEx(&config, kernel, params, NULL));
			DO(cuMemcpyDtoHAsync(pinned, below, BYTES, s));
			DO(cuStreamSynchronize(s));
			torn += launches_seen(pinned) < 0;
		}
		pthread_join(thread, NULL);
		DO(cuCtxSynchronize());
	}
	DO(cuMemFreeHost(pinned));
	printf("%s: %d torn\n", step, torn);
}

static void hosted(void *torn)
{
	*(int *)torn += launches_seen((uint32_t *)(uintptr_t)memory) < 0;
}

/* The same for functions of the host, which see memory of the host */
static void host_functions(CUstream s)
{
	pthread_t thread;
	int torn = 0, i;

	pthread_create(&thread, NULL, launches, s);
	for (i = 0; i < TIMES; i++) {
		DO(cuLaunchHostFunc(s, hosted, &torn));
		DO(cuStreamSynchronize(s));
	}
	pthread_join(thread, NULL);
	DO(cuCtxSynchronize());
	printf("functions: %d torn\n", torn);
}

static int attribute(CUstream s)
{
	CUstreamAttrValue value = { 0 };

	DO(cuStreamGetAttribute(s, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
	return value.priority;
}

/* As the driver itself says, even if something stands in front of it; its handle is its link map */
static int truth(CUstream s)
{
	CUresult (*get)(CUstream s, CUstreamAttrID id, CUstreamAttrValue *value);
	CUstreamAttrValue value = { 0 };
	const struct link_map *l;
	Dl_info front;

	get = cuStreamGetAttribute;
	if (dladdr((void *)get, &front) && !strstr(front.dli_fname, "vgpu/")) {
		for (l = _r_debug.r_map; l && !strstr(l->l_name, "vgpu/libcuda"); l = l->l_next)
			;
		get = (__typeof__(get))dlsym((void *)l, "cuStreamGetAttribute");
	}
	DO(get(s, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
	return value.priority;
}

/* What it asked for, what it is told in two ways, and what it got */
static void priorities(void)
{
	CUstreamAttrValue value = { 0 };
	CUstream s, other;
	CUgreenCtx green;
	int p, told;

	for (p = 1; p >= -6; p--) {
		DO(cuStreamCreateWithPriority(&s, CU_STREAM_NON_BLOCKING, p));
		DO(cuStreamGetPriority(s, &told));
		printf("%d: %d %d %d\n", p, told, attribute(s), truth(s));
		DO(cuStreamDestroy(s));
	}
	DO(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	DO(cuStreamGetPriority(s, &told));
	printf("none: %d %d %d\n", told, attribute(s), truth(s));
	value.priority = -2;
	DO(cuStreamSetAttribute(s, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
	DO(cuStreamGetPriority(s, &told));
	printf("set: %d %d %d\n", told, attribute(s), truth(s));
	value.priority = 1;
	printf("out of range: %d\n",
	       (int)cuStreamSetAttribute(s, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
	DO(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	DO(cuStreamCopyAttributes(other, s));
	DO(cuStreamGetPriority(other, &told));
	printf("copied: %d %d %d\n", told, attribute(other), truth(other));
	DO(cuStreamDestroy(other));
	DO(cuStreamDestroy(s));
	DO(cuStreamGetPriority(NULL, &told));
	printf("default: %d %d %d\n", told, attribute(NULL), truth(NULL));
	DO(cuGreenCtxCreate(&green, NULL, 0, 1));
	DO(cuGreenCtxStreamCreate(&s, green, CU_STREAM_NON_BLOCKING, -1));
	DO(cuStreamGetPriority(s, &told));
	printf("green: %d %d %d\n", told, attribute(s), truth(s));
	DO(cuStreamDestroy(s));
	DO(cuGreenCtxDestroy(green));
}

/* By the calls of CUDA 2 */
static void launch_old(void)
{
	CUdeviceptr at = memory;

	DO(cuFuncSetBlockShape(work, THREADS, 1, 1));
	DO(cuFuncSetSharedSize(work, 0));
	DO(cuParamSetv(work, 0, &at, sizeof(at)));
	DO(cuParamSeti(work, 8, ROUNDS));
	DO(cuParamSeti(work, 12, 7));
	DO(cuParamSetSize(work, 16));
	DO(cuLaunchGrid(work, BLOCKS, 1));
}

/* By the calls that launch, with a priority that is the launch's and not its stream's */
static void by_default(const char *how)
{
	static uint32_t words[WORDS];
	uint32_t n = ROUNDS, seed = 7;
	void *params[] = { &memory, &n, &seed };
	CUlaunchAttribute attr = { .id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = -1 };
	CUlaunchConfig config = {
		.gridDimX = BLOCKS, .gridDimY = 1, .gridDimZ = 1, .blockDimX = THREADS,
		.blockDimY = 1, .blockDimZ = 1, .attrs = &attr, .numAttrs = 1,
	};

	if (!strcmp(how, "default-late"))
		usleep(300000);	/* until it is known that its kernels have no twins */
	for (int i = 0; i < TIMES; i++) {
		if (!strcmp(how, "default-ex"))
			DO(cuLaunchKernelEx(&config, work, params, NULL));
		else if (!strcmp(how, "default-old"))
			launch_old();
		else if (!strcmp(how, "default-cooperative"))
			DO(cuLaunchCooperativeKernel(work, 64, 1, 1, THREADS, 1, 1, 0, NULL,
						     params));
		else
			launch(!strcmp(how, "default-thread") ? CU_STREAM_PER_THREAD : NULL);
	}
	DO(cuCtxSynchronize());
	DO(cuMemcpyDtoH(words, memory, BYTES));
	printf("%s: %d launches\n", how, launches_seen(words));
}

/* A capture that does not end, but goes with its stream, and then launches */
static void dropped(void)
{
	CUstream s;

	DO(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	DO(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	launch(s);
	DO(cuStreamDestroy(s));
	by_default("default-null");
}

/* Long blocks in two streams at a time, the second ones while a third stream is captured */
static void captured_beside(CUstream s, CUstream other)
{
	uint32_t n = 20000, seed = 7;
	void *params[] = { &memory, &n, &seed };
	CUgraph graph = NULL;
	CUstream third;
	CUresult rc;
	int i;

	DO(cuStreamCreate(&third, CU_STREAM_NON_BLOCKING));
	for (i = 0; i < 8; i++) {
		DO(cuLaunchKernel(work, BLOCKS, 1, 1, THREADS, 1, 1, 0, s, params, NULL));
		DO(cuStreamSynchronize(s));
		usleep(50000);
	}
	DO(cuLaunchKernel(work, BLOCKS, 1, 1, THREADS, 1, 1, 0, s, params, NULL));
	DO(cuStreamBeginCapture(third, CU_STREAM_CAPTURE_MODE_GLOBAL));
	for (i = 0; i < 2; i++)
		DO(cuLaunchKernel(work, BLOCKS, 1, 1, THREADS, 1, 1, 0, other, params, NULL));
	rc = cuStreamEndCapture(third, &graph);
	printf("captured-beside: %d\n", (int)rc);
	if (!rc)
		DO(cuGraphDestroy(graph));
	DO(cuCtxSynchronize());
	DO(cuStreamDestroy(third));
}

static void say(const char *what)
{
	printf("%s\n", what);
	fflush(stdout);
}

static void heard(void)
{
	char c;

	if (read(0, &c, 1) != 1)
		exit(1);
}

/*
 * In streams that were created before the group's priority changed, by launches of any kind;
 * "late-graph": by a graph, in the stream @s. "late-wings": by twins, after one launch before.
 */
static void late(const char *how, CUstream s)
{
	static uint32_t words[WORDS];
	uint32_t n = ROUNDS, seed = 7;
	void *params[] = { &memory, &n, &seed };
	CUlaunchConfig config = {
		.gridDimX = BLOCKS, .gridDimY = 1, .gridDimZ = 1, .blockDimX = THREADS,
		.blockDimY = 1, .blockDimZ = 1, .hStream = s,
	};
	CUgraphExec exec = NULL;
	CUgraph graph;
	int told;

	if (!strcmp(how, "late-graph")) {
		DO(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
		launch(s);
		DO(cuStreamEndCapture(s, &graph));
		DO(cuGraphInstantiateWithFlags(&exec, graph, 0));
	}
	if (!strcmp(how, "late-wings"))
		launch(s);
	DO(cuCtxSynchronize());
	DO(cuMemsetD32(memory, 0, WORDS));
	usleep(300000);	/* until it is known what its kernels are */
	say("ready");
	heard();
	for (int i = 0; i < TIMES; i++) {
		if (exec)
			DO(cuGraphLaunch(exec, s));
		else if (!strcmp(how, "late-ex"))
			DO(cuLaunchKernelEx(&config, work, params, NULL));
		else if (!strcmp(how, "late-cooperative"))
			DO(cuLaunchCooperativeKernel(work, 64, 1, 1, THREADS, 1, 1, 0, s, params));
		else
			launch(s);
	}
	DO(cuCtxSynchronize());
	DO(cuMemcpyDtoH(words, memory, BYTES));
	DO(cuStreamGetPriority(s, &told));
	printf("%s: %d launches, %d\n", how, launches_seen(words), told);
}

static int node_priority(CUgraph graph)
{
	CUkernelNodeAttrValue value;
	CUgraphNode node;
	size_t n = 1;

	DO(cuGraphGetNodes(graph, &node, &n));
	DO(cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
	return value.priority;
}

/* A kernel that was captured in a stream of priority -2, in a child graph, runs in another one */
static void captured(CUstream s)
{
	CUgraphExecUpdateResultInfo info;
	CUgraph graph, parent, child;
	CUgraphNode node;
	CUgraphExec exec;
	CUstream p;

	DO(cuStreamCreateWithPriority(&p, CU_STREAM_NON_BLOCKING, -2));
	DO(cuStreamBeginCapture_v2(p, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	launch(p);
	DO(cuStreamEndCapture(p, &graph));
	printf("captured: %d\n", node_priority(graph));
	DO(cuGraphCreate(&parent, 0));
	DO(cuGraphAddChildGraphNode(&node, parent, NULL, 0, graph));
	DO(cuGraphChildGraphNodeGetGraph(node, &child));
	DO(cuGraphInstantiateWithFlags(&exec, parent,
				       CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY));
	printf("instantiated: %d %d\n", node_priority(graph), node_priority(child));
	for (int i = 0; i < TIMES; i++) {
		DO(cuGraphLaunch(exec, s));
		if (i == TIMES / 2) {
			DO(cuCtxSynchronize());
			DO(cuGraphExecUpdate(exec, parent, &info));
			printf("updated: %d\n", node_priority(child));
		}
	}
	DO(cuCtxSynchronize());
	DO(cuGraphExecDestroy(exec));
	DO(cuGraphDestroy(parent));
	DO(cuGraphDestroy(graph));
	DO(cuStreamDestroy(p));
}

/* A context of its own, which has launched something */
static CUcontext second(void)
{
	CUcontext other;
	CUfunction f;
	CUmodule m;
	CUdeviceptr p;
	uint32_t n = 1, seed = 7;
	void *params[] = { &p, &n, &seed };

	DO(cuCtxCreate(&other, NULL, 0, dev));
	DO(cuModuleLoadData(&m, image));
	DO(cuModuleGetFunction(&f, m, "work"));
	DO(cuMemAlloc(&p, BYTES));
	for (int i = 0; i < 4; i++)
		DO(cuLaunchKernel(f, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL));
	DO(cuCtxSynchronize());
	return other;
}

static void *launches_one(void *stream)
{
	DO(cuCtxSetCurrent(ctx));
	launch(stream);
	return NULL;
}

/* While one thread's launch waits another one destroys a context */
static void waiting(CUstream s)
{
	CUcontext other;
	pthread_t thread;

	launch(s);
	DO(cuCtxSynchronize());
	other = second();
	DO(cuCtxSetCurrent(ctx));
	say("ready");
	heard();
	pthread_create(&thread, NULL, launches_one, s);
	heard();
	DO(cuCtxDestroy(other));
	say("destroyed");
	pthread_join(thread, NULL);
	DO(cuCtxSynchronize());
}

static void *frees_one(void *at)
{
	DO(cuCtxSetCurrent(ctx));
	DO(cuMemFree(*(CUdeviceptr *)at));
	pause();
	return NULL;
}

static void *launches_one_and_pauses(void *stream)
{
	launches_one(stream);
	pause();
	return NULL;
}

/*
 * A thread is cancelled in a call that waits: in one that frees memory while a kernel runs, or in
 * its first launch. Others go on as if it had been cancelled behind that.
 */
static void cancelled(const char *how, CUstream s)
{
	bool frees = !strcmp(how, "cancelled-freeing");
	static uint32_t words[WORDS];
	pthread_t thread;
	CUdeviceptr at;

	alarm(60);
	DO(cuMemAlloc(&at, BYTES));
	if (frees)
		launch(s);
	pthread_create(&thread, NULL, frees ? frees_one : launches_one_and_pauses,
		       frees ? (void *)&at : s);
	usleep(300000);
	pthread_cancel(thread);
	usleep(100000);
	say("ready");
	heard();
	pthread_join(thread, NULL);
	launch(s);
	DO(cuCtxSynchronize());
	if (!frees)
		DO(cuMemFree(at));
	DO(cuMemcpyDtoH(words, memory, BYTES));
	printf("%s: %d launches\n", how, launches_seen(words));
	alarm(0);
}

/* Launches that each wait for their kernel by themselves, if the driver or somebody else does so */
static void blocking_launches(CUstream s)
{
	CUdeviceptr device = memory;
	int early = 0, i;
	void *mem;

	DO(cuMemHostAlloc(&mem, BYTES, CU_MEMHOSTALLOC_DEVICEMAP));
	memset(mem, 0, BYTES);
	memory = (CUdeviceptr)(uintptr_t)mem;
	launch(s);
	DO(cuStreamSynchronize(s));
	for (i = 2; i <= TIMES; i++) {
		launch(s);
		early += launches_seen(mem) != i;
		DO(cuStreamSynchronize(s));
	}
	memory = device;
	DO(cuMemFreeHost(mem));
	printf("blocking-launches: %d early\n", early);
}

static CUfunction held;
static uint32_t *flag;

static void *holds(void *stream)
{
	CUdeviceptr at = (CUdeviceptr)(uintptr_t)flag, counts = at + 4;
	uint32_t free = 0, n = 1;
	void *params[] = { &memory, &at, &counts, &free, &n };

	DO(cuCtxSetCurrent(ctx));
	DO(cuLaunchKernel(held, 4, 1, 1, THREADS, 1, 1, 0, stream, params, NULL));
	/* the stream would go with the thread */
	DO(cuStreamSynchronize(stream));
	return NULL;
}

/* A kernel stays on the GPU, in its thread's own stream, while another thread uses its own */
static void busy(void)
{
	CUstream s = CU_STREAM_PER_THREAD;
	pthread_t thread;
	void *mem;

	DO(cuMemHostAlloc(&mem, 4 * 13, CU_MEMHOSTALLOC_DEVICEMAP));
	memset(mem, 0, 4 * 13);
	flag = mem;
	launch(NULL);
	DO(cuCtxSynchronize());
	say("ready");
	heard();
	pthread_create(&thread, NULL, holds, s);
	while (!__atomic_load_n(&flag[1 + 4], __ATOMIC_ACQUIRE))
		usleep(100);
	for (int i = 0; i < 4; i++) {
		launch(s);
		DO(cuStreamSynchronize(s));
	}
	say("alone");
	heard();
	__atomic_store_n(flag, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	DO(cuCtxSynchronize());
	DO(cuMemFreeHost(mem));
}

static void launch_held(CUfunction f, CUdeviceptr out, uint32_t *words, CUstream s)
{
	CUdeviceptr at = (CUdeviceptr)(uintptr_t)words, counts = at + 4;
	uint32_t free = 0, n = 1;
	void *params[] = { &out, &at, &counts, &free, &n };

	DO(cuLaunchKernel(f, 4, 1, 1, THREADS, 1, 1, 0, s, params, NULL));
}

/* A kernel stays on the GPU in one context, after much work in another one */
static void busy_contexts(CUstream s)
{
	CUcontext other;
	CUdeviceptr out;
	CUfunction f;
	CUmodule m;
	uint32_t *words;
	void *mem;

	DO(cuMemHostAlloc(&mem, 4 * 26, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
	memset(mem, 0, 4 * 26);
	words = mem;
	DO(cuCtxCreate(&other, NULL, 0, dev));
	DO(cuModuleLoadData(&m, image));
	DO(cuModuleGetFunction(&f, m, "held"));
	DO(cuMemAlloc(&out, BYTES));
	DO(cuCtxSetCurrent(ctx));
	say("ready");
	heard();
	launch_held(held, memory, words, s);
	for (int i = 0; i < 100; i++) {
		launch(s);
		usleep(2000);
	}
	DO(cuCtxSetCurrent(other));
	launch_held(f, out, words + 13, NULL);
	DO(cuCtxSetCurrent(ctx));
	__atomic_store_n(words, 1, __ATOMIC_RELEASE);
	DO(cuStreamSynchronize(s));
	say("alone");
	heard();
	__atomic_store_n(words + 13, 1, __ATOMIC_RELEASE);
	DO(cuCtxDestroy(other));
	DO(cuMemFreeHost(mem));
}

/* A context is destroyed while a kernel in another one waits for this thread. */
static void apart(CUstream s)
{
	CUcontext other = second();
	void *mem;

	DO(cuCtxSetCurrent(ctx));
	DO(cuMemHostAlloc(&mem, 4 * 13, CU_MEMHOSTALLOC_DEVICEMAP));
	memset(mem, 0, 4 * 13);
	flag = mem;
	launch_held(held, memory, flag, s);
	say("ready");
	heard();
	alarm(60);
	DO(cuCtxDestroy(other));
	say("destroyed");
	__atomic_store_n(flag, 1, __ATOMIC_RELEASE);
	DO(cuStreamSynchronize(s));
	alarm(0);
	DO(cuMemFreeHost(mem));
}

static void *unloads(void *module)
{
	DO(cuCtxSetCurrent(ctx));
	DO(cuModuleUnload(module));
	return NULL;
}

/*
 * A thread unloads a module, for which the driver waits for all kernels. One of them waits for
 * another thread, which launches something first.
 */
static void unloading(CUstream s, CUstream other)
{
	static uint32_t words[WORDS];
	pthread_t thread;
	CUmodule unused;
	void *mem;
	int i;

	DO(cuModuleLoadData(&unused, image));
	for (i = 0; i < 4; i++) {
		launch(other);
		DO(cuStreamSynchronize(other));
		usleep(50000);
	}
	DO(cuMemHostAlloc(&mem, 4 * 13, CU_MEMHOSTALLOC_DEVICEMAP));
	memset(mem, 0, 4 * 13);
	flag = mem;
	launch_held(held, memory - BYTES, flag, s);
	alarm(60);
	pthread_create(&thread, NULL, unloads, unused);
	usleep(200000);
	launch(other);
	__atomic_store_n(flag, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	DO(cuCtxSynchronize());
	alarm(0);
	DO(cuMemcpyDtoH(words, memory, BYTES));
	printf("unloading: %d launches\n", launches_seen(words));
	DO(cuMemFreeHost(mem));
}

static void one_block(CUstream s, uint32_t rounds)
{
	uint32_t seed = 7;
	void *params[] = { &memory, &rounds, &seed };

	DO(cuLaunchKernel(work, 1, 1, 1, 32, 1, 1, 0, s, params, NULL));
}

/* A launch that takes long, as a first one does, and a kernel that takes longer */
static void slow_launch(CUstream s)
{
	say("ready");
	heard();
	one_block(s, 20000000);
	say("launched");
	DO(cuStreamSynchronize(s));
	say("over");
	heard();
}

/* Many short kernels; behind one of them, on a stream of its own, a long one */
static void untracked(CUstream s, CUstream other)
{
	say("ready");
	heard();
	for (int i = 0; i < 2000; i++) {
		one_block(s, 1);
		if (i % 50 == 49)
			DO(cuStreamSynchronize(s));
	}
	for (int i = 0; i < 3; i++)
		one_block(s, 1);
	one_block(other, 20000000);
	say("launched");
	DO(cuStreamSynchronize(other));
	say("over");
	heard();
}

/* Kernels of one thread block, short ones, then long ones, then a graph */
static void blocks(CUstream s)
{
	CUgraphExec exec;
	CUgraph graph;

	say("ready");
	heard();
	for (int i = 0; i < 8000; i++) {
		one_block(s, 1);
		if (i % 4 == 3)
			DO(cuStreamSynchronize(s));
	}
	say("short");
	heard();
	for (int i = 0; i < 30; i++) {
		one_block(s, 400000);
		DO(cuStreamSynchronize(s));
	}
	say("long");
	heard();
	DO(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	one_block(s, 1);
	DO(cuStreamEndCapture(s, &graph));
	DO(cuGraphInstantiateWithFlags(&exec, graph, 0));
	DO(cuGraphLaunch(exec, s));
	DO(cuStreamSynchronize(s));
	say("graph");
	heard();
	DO(cuGraphExecDestroy(exec));
	DO(cuGraphDestroy(graph));
}

/* A kernel that fails: its launch has not, and each later call has its error. */
static void fails(CUstream s)
{
	CUdeviceptr good = memory;

	memory = 64;
	launch(s);
	memory = good;
	for (int i = 0; i < 2; i++)
		printf("%d ", (int)cuStreamSynchronize(s));
	printf("%d\n", (int)cuMemsetD32(memory, 0, 1));
	exit(0);
}

/*
 * A kernel of a library fails, which spoils the context; after a reset it is launched again. The
 * buffer is where something else was before.
 */
static void reset(void)
{
	static uint32_t words[WORDS];
	CUlibrary library;
	CUkernel kernel;

	DO(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
	DO(cuLibraryGetKernel(&kernel, library, "work"));
	work = (CUfunction)kernel;
	for (int k = 0; k < 3; k++) {
		for (int i = 0; i < 8; i++)
			launch(NULL);
		DO(cuMemcpyDtoH(words, memory, BYTES));
		printf("reset: %d launches\n", launches_seen(words));
		memory = 64;
		launch(NULL);
		printf("reset: %d\n", (int)cuCtxSynchronize());
		DO(cuDevicePrimaryCtxReset(dev));
		DO(cuDevicePrimaryCtxRetain(&ctx, dev));
		DO(cuCtxSetCurrent(ctx));
		DO(cuMemAlloc(&memory, BYTES));
		DO(cuMemsetD32(memory, 0, WORDS));
	}
	exit(0);
}

/* Thread blocks from the fourth on assert that @fail is 0 */
static const char assertion[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".extern .func __assertfail(.param .b64 what, .param .b64 file, .param .b32 line,\n"
	"\t.param .b64 function, .param .b64 size);\n"
	".global .align 1 .b8 word[5] = {119, 111, 114, 100, 0};\n"
	".visible .entry asserts(.param .u32 fail)\n{\n\t.reg .pred %p, %q;\n\t.reg .b32 %r;\n"
	"\t.reg .b64 %d, %one;\n"
	"\tld.param.u32 %r, [fail];\n\tsetp.eq.u32 %p, %r, 0;\n\tmov.u32 %r, %ctaid.x;\n"
	"\tsetp.lt.or.u32 %p, %r, 3, %p;\n\tmov.u32 %r, 100;\n"
	"again:\n\tsub.u32 %r, %r, 1;\n\tsetp.ne.u32 %q, %r, 0;\n\t@%q bra again;\n"
	"\tmov.u64 %d, word;\n\tcvta.global.u64 %d, %d;\n\tmov.u64 %one, 1;\n"
	"\t{\n\t.param .b64 a;\n\t.param .b64 b;\n\t.param .b32 c;\n\t.param .b64 d;\n"
	"\t.param .b64 e;\n\tst.param.b64 [a], %d;\n\tst.param.b64 [b], %d;\n"
	"\tst.param.b32 [c], 1;\n\tst.param.b64 [d], %d;\n\tst.param.b64 [e], %one;\n"
	"\t@!%p call __assertfail, (a, b, c, d, e);\n\t}\n\tret;\n}\n";

static void asserts(CUstream s)
{
	unsigned int fail = 0;
	void *params[] = { &fail };
	CUfunction f;
	CUmodule m;

	DO(cuModuleLoadData(&m, assertion));
	DO(cuModuleGetFunction(&f, m, "asserts"));
	for (int i = 0; i < 8; i++) {
		DO(cuLaunchKernel(f, 1024, 1, 1, 32, 1, 1, 0, s, params, NULL));
		DO(cuStreamSynchronize(s));
		usleep(50000);
	}
	fail = 1;
	DO(cuLaunchKernel(f, 1024, 1, 1, 32, 1, 1, 0, s, params, NULL));
	for (int i = 0; i < 2; i++)
		printf("%d ", (int)cuStreamSynchronize(s));
	printf("%d\n", (int)cuMemsetD32(memory, 0, 1));
	exit(0);
}

int main(int argc, char **argv)
{
	CUstream s, blocking[2];
	CUfunction copyback;
	CUmodule m;
	FILE *f = argc > 2 ? fopen(argv[1], "r") : NULL;

	if (!f || !fread(image, 1, sizeof(image) - 1, f))
		return 2;
	fclose(f);
	DO(cuInit(0));
	DO(cuDeviceGet(&dev, 0));
	DO(cuDevicePrimaryCtxRetain(&ctx, dev));
	DO(cuCtxSetCurrent(ctx));
	DO(cuModuleLoadData(&m, image));
	DO(cuModuleGetFunction(&work, m, "work"));
	DO(cuModuleGetFunction(&held, m, "held"));
	DO(cuModuleGetFunction(&copyback, m, "copyback"));
	DO(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	DO(cuStreamCreate(&blocking[0], CU_STREAM_DEFAULT));
	DO(cuStreamCreate(&blocking[1], CU_STREAM_DEFAULT));
	launches_seen(NULL);
	DO(cuMemAlloc(&memory, 2 * BYTES));
	memory += BYTES;
	for (int i = 2; i < argc; i++) {
		DO(cuMemsetD32(memory, 0, WORDS));
		DO(cuCtxSynchronize());
		if (!strcmp(argv[i], "kernels"))
			copies(argv[i], s, s, copyback);
		else if (!strcmp(argv[i], "kernels-original"))
			original_kernels(argv[i], s, copyback);
		else if (!strcmp(argv[i], "kernels-legacy"))
			copies(argv[i], NULL, NULL, copyback);
		else if (!strcmp(argv[i], "copies"))
			copies(argv[i], s, s, NULL);
		else if (!strcmp(argv[i], "copies-blocking"))
			copies(argv[i], blocking[0], NULL, NULL);
		else if (!strcmp(argv[i], "copies-legacy"))
			copies(argv[i], NULL, blocking[1], NULL);
		else if (!strcmp(argv[i], "copies-thread"))
			copies(argv[i], CU_STREAM_PER_THREAD, CU_STREAM_LEGACY, NULL);
		else if (!strcmp(argv[i], "batches"))
			copies_of(argv[i], s, s, 3);
		else if (!strcmp(argv[i], "batches-legacy"))
			copies_of(argv[i], NULL, blocking[1], 4);
		else if (!strncmp(argv[i], "chain", 5))
			chain(argv[i]);
		else if (!strcmp(argv[i], "context-waits"))
			context_waits(s);
		else if (!strncmp(argv[i], "cancelled-", 10))
			cancelled(argv[i], s);
		else if (!strcmp(argv[i], "waiting"))
			waiting(s);
		else if (!strcmp(argv[i], "apart"))
			apart(s);
		else if (!strcmp(argv[i], "unloading"))
			unloading(s, blocking[0]);
		else if (!strcmp(argv[i], "blocking-launches"))
			blocking_launches(s);
		else if (!strcmp(argv[i], "waiters"))
			waiters(s);
		else if (!strcmp(argv[i], "busy-contexts"))
			busy_contexts(s);
		else if (!strcmp(argv[i], "busy"))
			busy();
		else if (!strcmp(argv[i], "blocks"))
			blocks(s);
		else if (!strcmp(argv[i], "untracked"))
			untracked(s, blocking[0]);
		else if (!strcmp(argv[i], "slow-launch"))
			slow_launch(s);
		else if (!strcmp(argv[i], "reset"))
			reset();
		else if (!strcmp(argv[i], "fails"))
			fails(s);
		else if (!strcmp(argv[i], "asserts"))
			asserts(s);
		else if (!strcmp(argv[i], "queues"))
			puts(getenv("CUDA_DEVICE_MAX_CONNECTIONS") ?: "none");
		else if (!strcmp(argv[i], "functions")) {
			void *mem;

			CUdeviceptr device = memory;

			DO(cuMemHostAlloc(&mem, BYTES, CU_MEMHOSTALLOC_DEVICEMAP));
			memset(mem, 0, BYTES);
			memory = (CUdeviceptr)(uintptr_t)mem;
			host_functions(s);
			DO(cuMemFreeHost(mem));
			memory = device;
		} else if (!strncmp(argv[i], "default-", 8))
			by_default(argv[i]);
		else if (!strncmp(argv[i], "late-", 5))
			late(argv[i], s);
		else if (!strcmp(argv[i], "captured-beside"))
			captured_beside(s, blocking[0]);
		else if (!strcmp(argv[i], "captured"))
			captured(s);
		else if (!strcmp(argv[i], "priorities"))
			priorities();
		else if (!strcmp(argv[i], "dropped"))
			dropped();
		else
			return 2;
		fflush(stdout);
	}
	return 0;
}
