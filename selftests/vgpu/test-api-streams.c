// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The driver API of vgpu: order within and between streams. Kernels that wait for a word stand in
 * for long ones.
 */
#include <stdlib.h>
#include <unistd.h>
#include "test-api.h"

static CUstream blocking, other, free1, free2;

/*
 * Words of pinned memory: 0 the flag that spin waits for, 1 the counter of stamps, from 2 on the
 * stamps
 */
static void clear(void)
{
	memset((void *)host, 0, 4096);
}

static bool order(void)
{
	uint32_t v = 7, back = 0;
	CUdeviceptr d;

	clear();
	OK(cuMemAlloc(&d, 4));
	OK(spin(free1, 0, 1, 32));
	OK(cuMemcpyHtoDAsync(d, &v, 4, free1));
	v = 8;	/* pageable memory was staged: this comes too late */
	OK(stamp(free1, 1, 2, 32));
	OK(stamp(free1, 1, 3, 32));
	IS(NOT_READY, cuStreamQuery(free1));
	host[0] = 1;
	OK(cuMemcpyDtoHAsync(&back, d, 4, free1));
	CHECK(back == 7);
	OK(cuStreamSynchronize(free1));
	OK(cuStreamQuery(free1));
	CHECK(host[2] == 0 && host[3] == 1);
	OK(cuMemFree(d));
	return true;
}

/* Kernels of two streams are resident together: the first waits for the second */
static bool together(void)
{
	clear();
	OK(spin(free1, 0, 1, 32));
	OK(set(free2, 0, 1));
	OK(cuStreamSynchronize(free1));
	return true;
}

static bool events(void)
{
	CUevent e, plain;
	float ms;

	clear();
	OK(cuEventCreate(&e, 0));
	OK(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
	OK(cuEventQuery(e));
	IS(INVALID_HANDLE, cuEventElapsedTime(&ms, e, e));
	OK(spin(free1, 0, 1, 32));
	OK(stamp(free1, 1, 2, 32));
	OK(cuEventRecord(e, free1));
	OK(cuStreamWaitEvent(free2, e, 0));
	OK(stamp(free2, 1, 3, 32));
	IS(NOT_READY, cuEventQuery(e));
	IS(NOT_READY, cuStreamQuery(free2));
	IS(NOT_READY, cuEventElapsedTime(&ms, e, e));
	host[0] = 1;
	OK(cuStreamSynchronize(free2));
	CHECK(host[2] == 0 && host[3] == 1);
	OK(cuEventSynchronize(e));
	OK(cuEventRecord(plain, free1));
	OK(cuEventSynchronize(plain));
	IS(INVALID_HANDLE, cuEventElapsedTime(&ms, e, plain));
	OK(cuEventElapsedTime(&ms, e, e));
	CHECK(ms == 0);
	OK(cuEventDestroy(e));
	IS(INVALID_HANDLE, cuEventDestroy(e));
	IS(INVALID_HANDLE, cuEventRecord(e, free1));
	OK(cuEventDestroy(plain));
	return true;
}

static bool values(void)
{
	static const struct { unsigned int flag; uint32_t before, want, after; } cases[] = {
		{ CU_STREAM_WAIT_VALUE_GEQ, 4, 5, 6 },
		{ CU_STREAM_WAIT_VALUE_GEQ, 0xfffffff0u, 2, 2 },
		{ CU_STREAM_WAIT_VALUE_EQ, 4, 5, 5 }, { CU_STREAM_WAIT_VALUE_AND, 5, 2, 6 },
		{ CU_STREAM_WAIT_VALUE_NOR, 0xffffffffu, 0, 0xfffffffeu },
	};
	CUstreamBatchMemOpParams ops[3] = { { 0 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		clear();
		host[10] = cases[i].before;
		OK(cuStreamWaitValue32(free1, at(10), cases[i].want, cases[i].flag));
		OK(stamp(free1, 1, 2, 32));
		/* only that stream waits */
		OK(stamp(free2, 1, 3, 32));
		OK(cuStreamSynchronize(free2));
		IS(NOT_READY, cuStreamQuery(free1));
		OK(cuStreamWriteValue32(free2, at(10), cases[i].after, 0));
		OK(cuStreamSynchronize(free1));
		CHECK(host[3] == 0 && host[2] == 1);
	}
	clear();
	OK(cuStreamWaitValue64(free1, at(10), 1ull << 40, CU_STREAM_WAIT_VALUE_GEQ));
	IS(NOT_READY, cuStreamQuery(free1));
	*(volatile uint64_t *)&host[10] = 1ull << 40;	/* by the host, without any call */
	OK(cuStreamSynchronize(free1));
	ops[0].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
	ops[0].waitValue.address = at(0);
	ops[0].waitValue.value = 1;
	ops[1].memoryBarrier.operation = CU_STREAM_MEM_OP_BARRIER;
	ops[2].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	ops[2].writeValue.address = at(2);
	ops[2].writeValue.value = 99;
	OK(cuStreamBatchMemOp(free1, 3, ops, 0));
	IS(NOT_READY, cuStreamQuery(free1));
	host[0] = 1;
	OK(cuStreamSynchronize(free1));
	CHECK(host[2] == 99);
	ops[2].writeValue.flags = CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER;
	IS(INVALID_VALUE, cuStreamBatchMemOp(free1, 3, ops, 0));
	ops[2].writeValue.flags = 0;
	ops[2].writeValue.address = 0x1000;
	host[2] = 0;
	IS(INVALID_VALUE, cuStreamBatchMemOp(free1, 3, ops, 0));
	IS(INVALID_VALUE, cuStreamWaitValue32(free1, at(0) + 2, 1, 0));
	IS(INVALID_VALUE, cuStreamWaitValue32(free1, 0x1000, 1, 0));
	OK(cuStreamQuery(free1));
	return true;
}

static bool default_stream(void)
{
	/* behind the blocking streams, not behind the others */
	clear();
	OK(spin(blocking, 0, 1, 32));
	OK(stamp(NULL, 1, 2, 32));
	OK(stamp(other, 1, 3, 32));	/* behind the default stream */
	OK(stamp(free1, 1, 4, 32));
	OK(cuStreamSynchronize(free1));
	IS(NOT_READY, cuStreamQuery(NULL));
	IS(NOT_READY, cuStreamQuery(other));
	host[0] = 1;
	OK(cuStreamSynchronize(other));
	CHECK(host[4] == 0 && host[2] == 1 && host[3] == 2);
	/* waiting for the default stream is waiting for all blocking ones */
	clear();
	OK(cuStreamWriteValue32(blocking, at(5), 1, 0));
	OK(cuStreamSynchronize(NULL));
	CHECK(host[5] == 1);
	/* the per-thread default stream is a blocking stream like others */
	clear();
	OK(spin(NULL, 0, 1, 32));
	OK(stamp(CU_STREAM_PER_THREAD, 1, 2, 32));
	OK(stamp(free1, 1, 3, 32));
	OK(cuStreamSynchronize(free1));
	IS(NOT_READY, cuStreamQuery(CU_STREAM_PER_THREAD));
	host[0] = 1;
	OK(cuStreamSynchronize_ptsz(NULL));
	CHECK(host[3] == 0 && host[2] == 1);
	return true;
}

static void note(void *word)
{
	*(volatile uint32_t *)word = 1 + host[1];
}

/* Waits for what another stream does later: it must not stand in that one's way */
static void wait_for(void *word)
{
	while (!*(volatile uint32_t *)word)
		usleep(100);
}

static bool host_functions(void)
{
	clear();
	OK(cuLaunchHostFunc(free1, wait_for, (void *)&host[0]));
	OK(stamp(free1, 1, 2, 32));
	OK(cuLaunchHostFunc(free1, note, (void *)&host[3]));
	OK(set(free2, 0, 1));
	OK(cuStreamSynchronize(free1));
	CHECK(host[2] == 0 && host[3] == 2);
	return true;
}

/* The device finds all that @streams get from here on at once: they wait for word 8 */
static bool hold_back(const CUstream *streams, size_t n)
{
	for (size_t i = 0; i < n; i++)
		OK(cuStreamWaitValue32(streams[i], at(8), 1, CU_STREAM_WAIT_VALUE_EQ));
	return true;
}

/* Let them go, and the device look and step so often that what can run has run */
static bool let_go(void)
{
	host[8] = 1;
	for (uint32_t i = 0; i < 20; i++) {
		OK(cuStreamWriteValue32(other, at(9), i, 0));
		OK(cuStreamSynchronize(other));
	}
	return true;
}

/* One SM, and a block takes all of it */
static bool priorities(void)
{
	CUstream low, high;
	int p;

	clear();
	OK(cuStreamCreateWithPriority(&low, CU_STREAM_NON_BLOCKING, 0));
	OK(cuStreamCreateWithPriority(&high, CU_STREAM_NON_BLOCKING, -9));
	OK(cuStreamGetPriority(high, &p));
	CHECK(p == -5);
	CHECK(hold_back((CUstream[]){ free1, low, high }, 3));
	OK(spin(free1, 0, 1, 512));	/* the place is taken by who came first */
	OK(stamp(low, 1, 2, 512));
	OK(stamp(high, 1, 3, 512));
	CHECK(let_go());
	IS(NOT_READY, cuStreamQuery(high));
	host[0] = 1;
	OK(cuCtxSynchronize());
	CHECK(host[3] == 0 && host[2] == 1);
	OK(cuStreamDestroy(low));
	OK(cuStreamDestroy(high));
	IS(INVALID_HANDLE, cuStreamQuery(high));
	return true;
}

/*
 * The blocks of the first kernel go before those of the second, though one of these would fit
 * beside two of those
 */
static bool leftover(void)
{
	CUdeviceptr flag = at(0);

	clear();
	CHECK(hold_back((CUstream[]){ free1, free2 }, 2));
	OK(run(k_spin, 3, 192, free1, (void *[]){ &flag }));
	OK(stamp(free2, 1, 2, 32));
	CHECK(let_go());
	IS(NOT_READY, cuStreamQuery(free2));
	host[0] = 1;
	OK(cuStreamSynchronize(free2));
	OK(cuStreamSynchronize(free1));
	return true;
}

static bool async_memory(void)
{
	CUdeviceptr p;
	uint32_t v;

	clear();
	OK(cuMemAllocAsync(&p, 64, free1));
	OK(cuMemsetD32Async(p, 6, 16, free1));
	OK(cuMemcpyDtoHAsync(&v, p, 4, free1));
	CHECK(v == 6);
	OK(spin(free1, 0, 1, 32));
	OK(cuMemFreeAsync(p, free1));
	OK(cuMemcpyDtoH(&v, p, 4));	/* not free yet */
	host[0] = 1;
	OK(cuStreamSynchronize(free1));
	IS(INVALID_VALUE, cuMemcpyDtoH(&v, p, 4));
	return true;
}

/* A stream that is destroyed with work left ends its work */
static bool destroyed(void)
{
	CUstream s;

	clear();
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(spin(s, 0, 1, 32));
	OK(stamp(s, 1, 2, 32));
	OK(cuStreamWriteValue32(s, at(3), 1, 0));
	OK(cuStreamDestroy(s));
	IS(INVALID_HANDLE, cuStreamSynchronize(s));
	host[0] = 1;
	OK(cuCtxSynchronize());
	CHECK(host[1] == 1 && host[3] == 1);
	return true;
}

static bool capture(void)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
	CUgraph g;
	cuuint64_t id;
	CUcontext c;

	OK(cuStreamIsCapturing(free1, &status));
	CHECK(status == CU_STREAM_CAPTURE_STATUS_NONE);
	OK(cuStreamGetCaptureInfo_v2(free1, &status, &id, &g, NULL, NULL));
	CHECK(status == CU_STREAM_CAPTURE_STATUS_NONE);
	OK(cuStreamGetCtx(free1, &c));
	CHECK(c == ctx);
	return true;
}

void streams_tests(void)
{
	if (cuStreamCreate(&blocking, 0) || cuStreamCreate(&other, 0) ||
	    cuStreamCreate(&free1, CU_STREAM_NON_BLOCKING) ||
	    cuStreamCreate(&free2, CU_STREAM_NON_BLOCKING)) {
		ok(false, "streams");
		return;
	}
	ok(order(), "streams: what is issued in order runs in order; pageable "
	       "memory is staged");
	ok(together(), "streams: kernels of two streams run together");
	ok(events(), "events order streams");
	ok(values(), "values: waits of every kind hold back their stream only");
	ok(default_stream(), "the default stream and blocking streams wait for each other");
	ok(host_functions(), "host functions run in their stream's order");
	ok(priorities(), "a high-priority stream's block gets the place first");
	ok(leftover(), "a kernel's waiting blocks go before the next kernel's");
	ok(async_memory(), "memory allocated and freed in stream order");
	ok(destroyed(), "a destroyed stream ends its work");
	ok(capture(), "no stream captures");
}
