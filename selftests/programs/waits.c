/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the driver waits for, measured: libgsched/cuda/entry/waits.h says what is done about it.
 *
 *	waits calls|blocking [NAME...]
 *	waits queues
 *	waits context [N]
 *	waits events
 *
 * calls: each call is made while a stream that it has nothing to do with is kept busy for HOLD_MS,
 * by a kernel that spins ("kernel") or by a memory operation that waits for a word ("gate").
 * Printed: how long the call takes, and how long another thread's launch on a third stream takes
 * meanwhile, both in ms; about HOLD_MS: it waits for the busy stream, the latter then for a lock of
 * the driver. blocking: the same, and the busy stream is one that the legacy stream is ordered
 * with.
 *
 * queues: a gate on one stream, an empty kernel on each of STREAMS others: how many of them stand
 * behind the gate, by the priorities of both. CUDA_DEVICE_MAX_CONNECTIONS is the environment's.
 *
 * context: a context is made and destroyed N times: ms each.
 *
 * events: what two events measure of kernels between them that last some us, one and BURST, which
 * were all queued before the first could begin.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "selftests/programs/drv.h"

#define HOLD_MS		150
#define STREAMS		47
#define BYTES		(1u << 20)
#define BURST		50
#define ROUNDS		21
#define LONG_LINES	10000

#define PTX(more) \
	".version 7.0\n.target sm_70\n.address_size 64\n" \
	".visible .entry nothing()\n{\n\tret;\n}\n" more
#define SPIN \
	".visible .entry spin(.param .u64 flag)\n{\n\t.reg .pred %p;\n\t.reg .u32 %v;\n" \
	"\t.reg .u64 %a;\n" \
	"\tld.param.u64 %a, [flag];\n" \
	"again:\n\tld.volatile.global.u32 %v, [%a];\n\tsetp.eq.u32 %p, %v, 0;\n\t@%p bra again;\n" \
	"\tret;\n}\n"
#define LAST \
	".visible .entry last(.param .u64 ns)\n{\n\t.reg .pred %p;\n\t.reg .u64 %a, %b, %n;\n" \
	"\tld.param.u64 %n, [ns];\n\tmov.u64 %a, %globaltimer;\n\tadd.u64 %a, %a, %n;\n" \
	"again:\n\tmov.u64 %b, %globaltimer;\n\tsetp.lt.u64 %p, %b, %a;\n\t@%p bra again;\n" \
	"\tret;\n}\n"
static const char ptx[] = PTX(SPIN LAST), other_ptx[] = PTX("");

static CUcontext context;
static CUmodule module;
static CUfunction nothing, spin, last;
static CUstream busy, side, own;
static void *cubin;		/* of other_ptx */
static volatile unsigned int *flag;
static CUdeviceptr flag_dev;

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static void launch(CUfunction f, CUstream stream)
{
	void *params[] = { &flag_dev };

	DO(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
}

/* ---- calls ---- */

#define RANGE	(2u << 20)

static const CUmemAllocationProp memory_of = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE },
};
static const CUmemAccessDesc readable = {
	.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE },
	.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
};

/* What a call works on; made anew for each */
static struct {
	CUdeviceptr device, second, more;
	void *host, *pinned, *more_pinned, *pages;
	CUarray array, more_array;
	CUmodule module, cubin_module, loaded, of_library;
	CUlibrary library, cubin_library, more_library;
	CUkernel kernel;
	CUfunction function;
	CUstream stream, more_stream;
	CUevent event;
	CUgraph graph;
	CUgraphExec exec;
	CUcontext context;
	CUdeviceptr range, mapped, pooled;
	CUmemGenericAllocationHandle part, spare;
	CUmemoryPool pool;
} on;

static const CUDA_ARRAY_DESCRIPTOR array_of = {
	.Width = 256, .Height = 256, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 4,
};

static void make(void)
{
	cuuint64_t keep = UINT64_MAX;
	CUgraphNode node;
	CUDA_KERNEL_NODE_PARAMS_v2 params = {
		.func = nothing, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1,
		.blockDimX = 1, .blockDimY = 1, .blockDimZ = 1,
	};

	memset(&on, 0, sizeof(on));
	DO(cuMemAlloc_v2(&on.device, BYTES));
	DO(cuMemAlloc_v2(&on.second, BYTES));
	on.host = calloc(1, BYTES);
	on.pages = aligned_alloc(4096, BYTES);
	DO(cuMemHostAlloc(&on.pinned, BYTES, 0));
	DO(cuArrayCreate_v2(&on.array, &array_of));
	DO(cuModuleLoadData(&on.module, other_ptx));
	DO(cuLibraryLoadData(&on.library, other_ptx, NULL, NULL, 0, NULL, NULL, 0));
	DO(cuLibraryGetKernel(&on.kernel, on.library, "nothing"));
	DO(cuModuleLoadData(&on.cubin_module, cubin));
	DO(cuLibraryLoadData(&on.cubin_library, cubin, NULL, NULL, 0, NULL, NULL, 0));
	DO(cuStreamCreate(&on.stream, CU_STREAM_NON_BLOCKING));
	DO(cuEventCreate(&on.event, 0));
	DO(cuGraphCreate(&on.graph, 0));
	DO(cuGraphAddKernelNode_v2(&node, on.graph, NULL, 0, &params));
	DO(cuMemAddressReserve(&on.range, 2 * RANGE, 0, 0, 0));
	DO(cuMemCreate(&on.part, RANGE, &memory_of, 0));
	DO(cuMemCreate(&on.spare, RANGE, &memory_of, 0));
	DO(cuMemMap(on.range, RANGE, 0, on.part, 0));
	on.mapped = on.range;
	DO(cuMemSetAccess(on.range, RANGE, &readable, 1));
	DO(cuDeviceGetDefaultMemPool(&on.pool, 0));
	DO(cuMemPoolSetAttribute(on.pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
}

static void unmake(void)
{
	/* what a call took away is NULL; some errors are expected */
	if (on.device)
		cuMemFree_v2(on.device);
	cuMemFree_v2(on.second);
	if (on.more)
		cuMemFree_v2(on.more);
	if (on.more_pinned)
		cuMemFreeHost(on.more_pinned);
	if (on.more_array)
		cuArrayDestroy(on.more_array);
	if (on.more_library)
		cuLibraryUnload(on.more_library);
	if (on.more_stream)
		cuStreamDestroy_v2(on.more_stream);
	if (on.pinned)
		cuMemFreeHost(on.pinned);
	if (on.array)
		cuArrayDestroy(on.array);
	if (on.module)
		cuModuleUnload(on.module);
	if (on.loaded)
		cuModuleUnload(on.loaded);
	if (on.library)
		cuLibraryUnload(on.library);
	cuLibraryUnload(on.cubin_library);
	cuModuleUnload(on.cubin_module);
	if (on.stream)
		cuStreamDestroy_v2(on.stream);
	if (on.event)
		cuEventDestroy_v2(on.event);
	if (on.exec)
		cuGraphExecDestroy(on.exec);
	cuGraphDestroy(on.graph);
	if (on.context)
		cuCtxDestroy_v2(on.context);
	DO(cuCtxSetCurrent(context));
	if (on.mapped)
		cuMemUnmap(on.range, RANGE);
	cuMemUnmap(on.range + RANGE, RANGE);
	if (on.part)
		cuMemRelease(on.part);
	cuMemRelease(on.spare);
	cuMemAddressFree(on.range, 2 * RANGE);
	if (on.pooled)
		cuMemFreeAsync(on.pooled, own);
	cuStreamSynchronize(own);
	cuMemHostUnregister(on.pages);
	free(on.host);
	free(on.pages);
}

static size_t stack = 2048;
static cuuint64_t nothing_kept;

/* A kernel that nothing has launched yet becomes part of a graph */
static CUresult capture(void)
{
	CUgraph graph;

	DO(cuStreamBeginCapture_v2(on.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	launch((CUfunction)on.kernel, on.stream);
	DO(cuStreamEndCapture(on.stream, &graph));
	return cuGraphDestroy(graph);
}

/* A kernel that takes long to compile, and that nobody has compiled before; @again: the last one */
static char *long_ptx(bool again)
{
	static char text[LONG_LINES * 48 + 512];
	unsigned int from = (unsigned int)(now_ms() * 1e3) & 0x7fffff, i;
	char *p = text;

	if (again && text[0])
		return text;
	p += sprintf(p, ".version 7.0\n.target sm_70\n.address_size 64\n"
		     ".visible .entry long(.param .u64 to)\n{\n\t.reg .f32 %%f;\n\t.reg .u64 %%a;\n"
		     "\tld.param.u64 %%a, [to];\n\tld.global.f32 %%f, [%%a];\n");
	for (i = 0; i < LONG_LINES; i++)
		p += sprintf(p, "\tfma.rn.f32 %%f, %%f, %%f, 0f%08x;\n", 0x3f000000 + from + i);
	sprintf(p, "\tst.global.f32 [%%a], %%f;\n\tret;\n}\n");
	return text;
}

/* Compiles it, and loads nothing */
static CUresult link_ptx(char *text)
{
	CUlinkState state;
	size_t size;
	void *code;
	CUresult rc;

	DO(cuLinkCreate_v2(0, NULL, NULL, &state));
	rc = cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, text, strlen(text) + 1, "long", 0, NULL,
			      NULL) ?: cuLinkComplete(state, &code, &size);
	DO(cuLinkDestroy(state));
	return rc;
}

#define TAKEN(handle, call) ({ CUresult rc_ = call; (handle) = 0; rc_; })

/* X(name, what comes before the stream is busy, the call) */
#define CALLS(X) \
	X(cuMemAlloc, 0, cuMemAlloc_v2(&on.more, BYTES)) \
	X(cuMemAlloc_large, 0, cuMemAlloc_v2(&on.more, 256 << 20)) \
	X(cuMemFree, 0, TAKEN(on.device, cuMemFree_v2(on.device))) \
	X(cuMemAllocManaged, 0, cuMemAllocManaged(&on.more, BYTES, 1)) \
	X(cuMemHostAlloc, 0, cuMemHostAlloc(&on.more_pinned, BYTES, 0)) \
	X(cuMemFreeHost, 0, TAKEN(on.pinned, cuMemFreeHost(on.pinned))) \
	X(cuMemHostRegister, 0, cuMemHostRegister_v2(on.pages, BYTES, 0)) \
	X(cuMemHostUnregister, cuMemHostRegister_v2(on.pages, BYTES, 0), \
	  cuMemHostUnregister(on.pages)) \
	X(cuArrayCreate, 0, cuArrayCreate_v2(&on.more_array, &array_of)) \
	X(cuArrayDestroy, 0, TAKEN(on.array, cuArrayDestroy(on.array))) \
	X(cuModuleLoadData, 0, cuModuleLoadData(&on.loaded, other_ptx)) \
	X(cuModuleGetFunction, 0, cuModuleGetFunction(&on.function, on.module, "nothing")) \
	X(first_launch, cuModuleGetFunction(&on.function, on.module, "nothing"), \
	  (launch(on.function, own), 0)) \
	X(cuFuncLoad, cuModuleGetFunction(&on.function, on.module, "nothing"), \
	  cuFuncLoad(on.function)) \
	X(cuModuleLoadData_cubin, 0, cuModuleLoadData(&on.loaded, cubin)) \
	X(cuModuleGetFunction_cubin, 0, \
	  cuModuleGetFunction(&on.function, on.cubin_module, "nothing")) \
	X(first_launch_cubin, cuModuleGetFunction(&on.function, on.cubin_module, "nothing"), \
	  (launch(on.function, own), 0)) \
	X(first_launch_kernel, 0, (launch((CUfunction)on.kernel, own), 0)) \
	X(first_launch_kernel_cubin, cuLibraryGetKernel(&on.kernel, on.cubin_library, "nothing"), \
	  (launch((CUfunction)on.kernel, own), 0)) \
	X(capture_kernel_cubin, cuLibraryGetKernel(&on.kernel, on.cubin_library, "nothing"), \
	  capture()) \
	X(cuModuleUnload, 0, TAKEN(on.module, cuModuleUnload(on.module))) \
	X(cuLibraryLoadData, 0, cuLibraryLoadData(&on.more_library, other_ptx, NULL, NULL, \
						  0, NULL, NULL, 0)) \
	X(cuLibraryGetKernel, 0, cuLibraryGetKernel(&on.kernel, on.library, "nothing")) \
	X(cuLibraryGetModule, 0, cuLibraryGetModule(&on.of_library, on.library)) \
	X(cuKernelGetFunction, 0, cuKernelGetFunction(&on.function, on.kernel)) \
	X(cuLibraryUnload, 0, TAKEN(on.library, cuLibraryUnload(on.library))) \
	X(cuModuleLoadData_long, 0, cuModuleLoadData(&on.loaded, long_ptx(false))) \
	X(cuModuleLoadData_long_again, 0, cuModuleLoadData(&on.loaded, long_ptx(true))) \
	X(cuLinkComplete_long, 0, link_ptx(long_ptx(false))) \
	X(cuLinkComplete_long_again, 0, link_ptx(long_ptx(true))) \
	X(cuGraphInstantiate, 0, cuGraphInstantiateWithFlags(&on.exec, on.graph, 0)) \
	X(cuGraphLaunch, cuGraphInstantiateWithFlags(&on.exec, on.graph, 0), \
	  cuGraphLaunch(on.exec, own)) \
	X(cuGraphExecDestroy, cuGraphInstantiateWithFlags(&on.exec, on.graph, 0), \
	  TAKEN(on.exec, cuGraphExecDestroy(on.exec))) \
	X(cuStreamCreate, 0, cuStreamCreate(&on.more_stream, CU_STREAM_NON_BLOCKING)) \
	X(cuStreamCreateWithPriority, 0, \
	  cuStreamCreateWithPriority(&on.more_stream, CU_STREAM_NON_BLOCKING, -1)) \
	X(cuStreamDestroy, 0, TAKEN(on.stream, cuStreamDestroy_v2(on.stream))) \
	X(cuStreamDestroy_busy, (launch(spin, on.stream), 0), \
	  TAKEN(on.stream, cuStreamDestroy_v2(on.stream))) \
	X(cuEventDestroy, cuEventRecord(on.event, busy), \
	  TAKEN(on.event, cuEventDestroy_v2(on.event))) \
	X(cuStreamSynchronize_busy, 0, cuStreamSynchronize(busy)) \
	X(cuStreamSynchronize_own, (launch(nothing, own), 0), cuStreamSynchronize(own)) \
	X(cuCtxSynchronize, 0, cuCtxSynchronize()) \
	X(cuCtxCreate, 0, cuCtxCreate_v2(&on.context, 0, 0)) \
	X(cuCtxSetLimit_stack, 0, cuCtxSetLimit(CU_LIMIT_STACK_SIZE, (stack += 1024))) \
	X(cuCtxSetLimit_heap, 0, cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 16 << 20)) \
	X(cuMemcpyHtoD_16, 0, cuMemcpyHtoD_v2(on.device, on.host, 16)) \
	X(cuMemcpyHtoD_1M, 0, cuMemcpyHtoD_v2(on.device, on.host, BYTES)) \
	X(cuMemcpyDtoH_16, 0, cuMemcpyDtoH_v2(on.host, on.device, 16)) \
	X(cuMemcpyDtoH_1M, 0, cuMemcpyDtoH_v2(on.host, on.device, BYTES)) \
	X(cuMemcpyDtoD, 0, cuMemcpyDtoD_v2(on.second, on.device, BYTES)) \
	X(cuMemsetD8, 0, cuMemsetD8_v2(on.device, 1, BYTES)) \
	X(cuMemsetD8_pinned, 0, cuMemsetD8_v2((CUdeviceptr)on.pinned, 1, BYTES)) \
	X(cuMemcpyDtoH_pinned, 0, cuMemcpyDtoH_v2(on.pinned, on.device, BYTES)) \
	X(cuMemcpyHtoD_pinned, 0, cuMemcpyHtoD_v2(on.device, on.pinned, BYTES)) \
	X(cuMemcpyHtoDAsync_16, 0, cuMemcpyHtoDAsync_v2(on.device, on.host, 16, own)) \
	X(cuMemcpyHtoDAsync_1M, 0, cuMemcpyHtoDAsync_v2(on.device, on.host, BYTES, own)) \
	X(cuMemcpyHtoDAsync_pinned, 0, cuMemcpyHtoDAsync_v2(on.device, on.pinned, BYTES, own)) \
	X(cuMemcpyDtoHAsync_1M, 0, cuMemcpyDtoHAsync_v2(on.host, on.device, BYTES, own)) \
	X(cuMemcpyDtoHAsync_busy, 0, cuMemcpyDtoHAsync_v2(on.host, on.device, BYTES, busy)) \
	X(cuMemcpyHtoDAsync_busy, 0, cuMemcpyHtoDAsync_v2(on.device, on.host, BYTES, busy)) \
	X(cuMemCreate, cuMemRelease(on.spare), cuMemCreate(&on.spare, RANGE, &memory_of, 0)) \
	X(cuMemMap, 0, cuMemMap(on.range + RANGE, RANGE, 0, on.spare, 0)) \
	X(cuMemSetAccess, cuMemMap(on.range + RANGE, RANGE, 0, on.spare, 0), \
	  cuMemSetAccess(on.range + RANGE, RANGE, &readable, 1)) \
	X(cuMemUnmap, 0, TAKEN(on.mapped, cuMemUnmap(on.range, RANGE))) \
	X(cuMemRelease, TAKEN(on.mapped, cuMemUnmap(on.range, RANGE)), \
	  TAKEN(on.part, cuMemRelease(on.part))) \
	X(cuMemAllocAsync, 0, cuMemAllocAsync(&on.pooled, 64 << 20, own)) \
	X(cuMemFreeAsync, cuMemAllocAsync(&on.pooled, 64 << 20, own), \
	  TAKEN(on.pooled, cuMemFreeAsync(on.pooled, own))) \
	X(cuMemPoolTrimTo, (cuMemAllocAsync(&on.pooled, 64 << 20, own), \
			    cuMemFreeAsync(on.pooled, own), \
			    TAKEN(on.pooled, cuStreamSynchronize(own))), \
	  cuMemPoolTrimTo(on.pool, 0)) \
	X(cuStreamSynchronize_trims, (cuMemPoolSetAttribute(on.pool, \
					 CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &nothing_kept), \
					cuMemAllocAsync(&on.pooled, 64 << 20, own), \
					TAKEN(on.pooled, cuMemFreeAsync(on.pooled, own))), \
	  cuStreamSynchronize(own))

#define X(name, before, call) \
	static CUresult before_##name(void) { return before; } \
	static CUresult call_##name(void) { return call; }
CALLS(X)
#undef X

static const struct call {
	const char *name;
	CUresult (*before)(void), (*call)(void);
} calls[] = {
#define X(name, b, c) { #name, before_##name, call_##name },
	CALLS(X)
#undef X
};

static _Atomic int step;	/* 1: the stream is busy, 2: the measurement is over */
static double launched_ms;

static void *release(void *unused)
{
	usleep(HOLD_MS * 1000);
	*flag = 1;
	return unused;
}

static void *launch_beside(void *unused)
{
	double start;

	DO(cuCtxSetCurrent(context));
	launch(nothing, side);
	DO(cuStreamSynchronize(side));
	while (!step)
		usleep(100);
	usleep(20000);
	start = now_ms();
	launch(nothing, side);
	launched_ms = now_ms() - start;
	return unused;
}

static void measure(const struct call *c, bool gate, double *own_ms, double *other_ms)
{
	CUstreamBatchMemOpParams op = { 0 };
	pthread_t release_thread, launch_thread;
	double start;
	CUresult rc;

	make();
	*flag = 0;
	step = 0;
	if (pthread_create(&launch_thread, NULL, launch_beside, NULL))
		abort();
	usleep(5000);
	op.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
	op.waitValue.address = flag_dev;
	op.waitValue.value = 1;
	check(c->before(), c->name);
	if (gate)
		DO(cuStreamBatchMemOp_v2(busy, 1, &op, 0));
	else
		launch(spin, busy);
	if (pthread_create(&release_thread, NULL, release, NULL))
		abort();
	usleep(5000);
	step = 1;
	start = now_ms();
	rc = c->call();
	*own_ms = now_ms() - start;
	if (rc)
		fprintf(stderr, "%s: error %d\n", c->name, (int)rc);
	DO(cuCtxSetCurrent(context));
	pthread_join(launch_thread, NULL);
	*other_ms = launched_ms;
	pthread_join(release_thread, NULL);
	DO(cuCtxSynchronize());
	unmake();
}

static int all_calls(int argc, char **argv)
{
	double ms[4];
	unsigned int i;
	int k;

	printf("%-28s %9s %9s %9s %9s\n", "call", "kernel", "launch", "gate", "launch");
	for (i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		for (k = 2; k < argc && strcmp(argv[k], calls[i].name); k++)
			;
		if (argc > 2 && k == argc)
			continue;
		measure(&calls[i], false, &ms[0], &ms[1]);
		measure(&calls[i], true, &ms[2], &ms[3]);
		printf("%-28s %9.2f %9.2f %9.2f %9.2f\n", calls[i].name, ms[0], ms[1],
		       ms[2], ms[3]);
		fflush(stdout);
	}
	return 0;
}

/* ---- queues ---- */

static unsigned int behind(int gate_priority, int priority)
{
	CUstreamBatchMemOpParams op = { 0 };
	CUstream gate, stream[STREAMS];
	unsigned int i, n = 0;

	*flag = 0;
	DO(cuStreamCreateWithPriority(&gate, CU_STREAM_NON_BLOCKING, gate_priority));
	for (i = 0; i < STREAMS; i++)
		DO(cuStreamCreateWithPriority(&stream[i], CU_STREAM_NON_BLOCKING, priority));
	op.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
	op.waitValue.address = flag_dev;
	op.waitValue.value = 1;
	DO(cuStreamBatchMemOp_v2(gate, 1, &op, 0));
	for (i = 0; i < STREAMS; i++)
		launch(nothing, stream[i]);
	usleep(50000);
	for (i = 0; i < STREAMS; i++)
		n += cuStreamQuery(stream[i]) == CUDA_ERROR_NOT_READY;
	*flag = 1;
	DO(cuCtxSynchronize());
	for (i = 0; i < STREAMS; i++)
		DO(cuStreamDestroy_v2(stream[i]));
	DO(cuStreamDestroy_v2(gate));
	return n;
}

static int queues(void)
{
	static const int priority[] = { 0, -1, -5 };
	unsigned int i, j;

	for (i = 0; i < 3; i++)
		for (j = 0; j < 3; j++)
			printf("gate %d, streams %d: %u of %d wait\n", priority[i], priority[j],
			       behind(priority[i], priority[j]), STREAMS);
	return 0;
}

/* ---- events ---- */

static int by_value(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

/* us between two events around @n kernels of @ns each; none if @ns is ~0 */
static float between(uint64_t ns, unsigned int n)
{
	CUstreamBatchMemOpParams op = { 0 };
	void *params[] = { &ns };
	float ms, all[ROUNDS];
	CUevent begin, end;
	unsigned int i, k;

	DO(cuEventCreate(&begin, CU_EVENT_DEFAULT));
	DO(cuEventCreate(&end, CU_EVENT_DEFAULT));
	op.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
	op.waitValue.address = flag_dev;
	op.waitValue.value = 1;
	for (k = 0; k < ROUNDS; k++) {
		*flag = 0;
		DO(cuStreamBatchMemOp_v2(own, 1, &op, 0));
		DO(cuEventRecord(begin, own));
		for (i = 0; i < n && ns != UINT64_MAX; i++)
			DO(cuLaunchKernel(ns ? last : nothing, 1, 1, 1, 1, 1, 1, 0, own,
					  ns ? params : NULL, NULL));
		DO(cuEventRecord(end, own));
		*flag = 1;
		DO(cuStreamSynchronize(own));
		DO(cuEventElapsedTime(&ms, begin, end));
		all[k] = ms * 1000;
	}
	DO(cuEventDestroy_v2(begin));
	DO(cuEventDestroy_v2(end));
	qsort(all, ROUNDS, sizeof(*all), by_value);
	return all[ROUNDS / 2];
}

static int events(void)
{
	static const unsigned int us[] = { 0, 2, 5, 10, 20, 50 };
	unsigned int i;

	printf("nothing: %.2f us\n", between(UINT64_MAX, 0));
	for (i = 0; i < sizeof(us) / sizeof(*us); i++)
		printf("kernel of %u us: %.2f us, %d of them %.2f us each\n", us[i],
		       between(us[i] * 1000, 1), BURST, between(us[i] * 1000, BURST) / BURST);
	return 0;
}

static int contexts(unsigned long n)
{
	CUdevice device;
	CUcontext made;
	double start;

	DO(cuDeviceGet(&device, 0));
	while (n--) {
		start = now_ms();
		DO(cuCtxCreate_v2(&made, 0, device));
		printf("created %.1f ms", now_ms() - start);
		start = now_ms();
		DO(cuCtxDestroy_v2(made));
		printf(", destroyed %.1f ms\n", now_ms() - start);
	}
	return 0;
}

static void compile(void)
{
	CUlinkState link;
	size_t size;
	void *image;

	DO(cuLinkCreate_v2(0, NULL, NULL, &link));
	DO(cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, (void *)other_ptx, sizeof(other_ptx),
			    "other", 0, NULL, NULL));
	DO(cuLinkComplete(link, &image, &size));
	cubin = malloc(size);
	if (!cubin)
		abort();
	memcpy(cubin, image, size);
	DO(cuLinkDestroy(link));
}

int main(int argc, char **argv)
{
	static const char *const modes[] = { "calls", "blocking", "queues", "context", "events" };
	const unsigned int n_modes = sizeof(modes) / sizeof(*modes);
	unsigned int mode;

	double start = now_ms();
	CUdevice device;
	void *host;

	for (mode = 0; mode < n_modes && (argc < 2 || strcmp(argv[1], modes[mode])); mode++)
		;
	if (mode == n_modes) {
		fprintf(stderr, "usage: waits calls|blocking [NAME...] | queues | context "
			"[N] | events\n");
		return 2;
	}
	DO(cuInit(0));
	if (mode == 3)
		return contexts(argc > 2 ? strtoul(argv[2], NULL, 10) : 3);
	DO(cuDeviceGet(&device, 0));
	DO(cuDevicePrimaryCtxRetain(&context, device));
	DO(cuCtxSetCurrent(context));
	fprintf(stderr, "context after %.0f ms\n", now_ms() - start);
	DO(cuModuleLoadData(&module, ptx));
	DO(cuModuleGetFunction(&nothing, module, "nothing"));
	DO(cuModuleGetFunction(&spin, module, "spin"));
	DO(cuModuleGetFunction(&last, module, "last"));
	DO(cuMemHostAlloc(&host, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
	DO(cuMemHostGetDevicePointer_v2(&flag_dev, host, 0));
	flag = host;
	compile();
	DO(cuStreamCreate(&busy, mode == 1 ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
	DO(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
	DO(cuStreamCreate(&own, CU_STREAM_NON_BLOCKING));
	*flag = 1;
	launch(spin, busy);
	launch(nothing, side);
	launch(nothing, own);
	DO(cuCtxSynchronize());
	return mode == 2 ? queues() : mode == 4 ? events() : all_calls(argc, argv);
}
