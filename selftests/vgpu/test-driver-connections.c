// SPDX-License-Identifier: LGPL-2.1-or-later
/* Streams that share a hardware queue: what waits at its head holds the others back */
#include "test-driver.h"

static CUstream s[3];

static bool begin(void)
{
	CHECK(prepare());
	for (int i = 0; i < 3; i++)
		OK(cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING));
	return true;
}

/* A stream's second kernel waits for its first one; another stream's does not */
static bool apart(unsigned int other)
{
	CHECK(begin());
	OK(spin(s[0], 0, 1, 32));
	OK(set(s[0], 1, 1));
	OK(set(s[other], 2, 1));
	OK(cuStreamSynchronize(s[other]));
	CHECK(host[2] == 1 && !host[1]);
	host[0] = 1;
	OK(cuCtxSynchronize());
	CHECK(host[1] == 1);
	return true;
}

/* Here it does: each kernel counts those before it */
static bool held_back(unsigned int other)
{
	CHECK(begin());
	OK(spin(s[0], 0, 1, 32));
	OK(stamp(s[0], 10, 1, 1));
	OK(stamp(s[other], 10, 2, 1));
	IS(NOT_READY, cuStreamQuery(s[other]));
	host[0] = 1;
	OK(cuCtxSynchronize());
	CHECK(host[1] == 0 && host[2] == 1);
	return true;
}

static bool one_held(void)
{
	return held_back(1);
}

static bool two_held(void)
{
	return held_back(2);
}

static bool two_apart(void)
{
	return apart(1);
}

static bool all_apart(void)
{
	return apart(2);
}

/* Kernels of different streams run at once, as each of them can begin */
static bool at_once(void)
{
	CHECK(begin());
	OK(spin(s[0], 0, 1, 32));
	OK(set(s[1], 0, 1));
	OK(cuCtxSynchronize());
	return true;
}

/* A wait at the head */
static bool waits(void)
{
	CUevent e;

	CHECK(begin());
	OK(cuStreamWaitValue32(s[0], at(0), 1, CU_STREAM_WAIT_VALUE_GEQ));
	OK(stamp(s[0], 10, 1, 1));
	OK(cuEventCreate(&e, 0));
	OK(cuEventRecord(e, s[0]));
	OK(cuStreamWaitEvent(s[1], e, 0));
	OK(stamp(s[2], 10, 2, 1));
	IS(NOT_READY, cuStreamQuery(s[2]));
	host[0] = 1;
	OK(cuCtxSynchronize());
	CHECK(host[1] == 0 && host[2] == 1);
	return true;
}

/* Copies have a queue of their own: this one ends what the others wait for */
static bool copies(void)
{
	CHECK(begin());
	OK(spin(s[0], 0, 1, 32));
	OK(set(s[0], 1, 1));
	host[5] = 1;
	OK(cuMemcpyAsync(at(0), at(5), 4, s[1]));
	OK(cuCtxSynchronize());
	CHECK(host[1] == 1);
	return true;
}

void connections_tests(void)
{
	driver_test("CUDA_DEVICE_MAX_CONNECTIONS=1", one_held,
		    "one connection: a kernel that waits holds other streams back");
	driver_test("CUDA_DEVICE_MAX_CONNECTIONS=1", at_once,
		    "one connection: kernels that can begin run at once");
	driver_test("CUDA_DEVICE_MAX_CONNECTIONS=1", waits,
		    "one connection: waits hold other streams back");
	driver_test("CUDA_DEVICE_MAX_CONNECTIONS=1", copies, "one connection: copies go past it");
	driver_test("CUDA_DEVICE_MAX_CONNECTIONS=2", two_apart,
		    "two connections: streams take turns at them, these have two");
	driver_test("CUDA_DEVICE_MAX_CONNECTIONS=2", two_held, "two connections: these share one");
	driver_test("", all_apart, "by default no stream holds another one back");
	driver_test("CUDA_DEVICE_MAX_CONNECTIONS=many", all_apart,
		    "CUDA_DEVICE_MAX_CONNECTIONS that is no number changes nothing");
}
