// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Calls that wait for the context's work with its lock held. A kernel spins; one thread makes the
 * call, another one launches. The launch returns while the kernel spins if and only if the call
 * does not hold the lock.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>
#include "test-driver.h"

static CUstream s1, s2;
static CUdeviceptr memory;
static CUgraph graph;
static void *pinned;
static atomic_int at_call, called, launched;
static CUresult call_result, launch_result;
static CUresult (*call)(void);

static CUresult mem_free(void)
{
	return cuMemFree(memory);
}

static CUresult free_host(void)
{
	return cuMemFreeHost(pinned);
}

static CUresult set_limit(void)
{
	return cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096);
}

static CUresult mem_alloc(void)
{
	return cuMemAlloc(&memory, 64);
}

static CUresult get_function(void)
{
	CUfunction f;

	return cuModuleGetFunction(&f, module, "big");
}

static CUresult instantiate(void)
{
	CUgraphExec exec;

	return cuGraphInstantiate(&exec, graph, 0);
}

/* On the legacy stream, behind the kernel */
static CUresult copy_out(void)
{
	uint32_t word;

	return cuMemcpyDtoH(&word, memory, sizeof(word));
}

/* To pageable memory */
static CUresult copy_out_async(void)
{
	uint32_t word;

	return cuMemcpyDtoHAsync(&word, memory, sizeof(word), s1);
}

static CUresult copy_within(void)
{
	return cuMemcpyDtoD(memory, memory + 16, 4);
}

static CUresult unload(void)
{
	CUmodule m = module;

	module = NULL;
	return cuModuleUnload(m);
}

static CUresult stream_sync(void)
{
	return cuStreamSynchronize(s1);
}

static CUresult ctx_sync(void)
{
	return cuCtxSynchronize();
}

/* The 1025th operation behind the kernel */
static CUresult fill_queue(void)
{
	CUresult r = CUDA_SUCCESS;

	for (int i = 0; i < 1025 && !r; i++)
		r = cuStreamWriteValue32(s1, at(9), 1, 0);
	return r;
}

static void *call_main(void *arg)
{
	cuCtxSetCurrent(ctx);
	atomic_store(&at_call, 1);
	call_result = call();
	atomic_store(&called, 1);
	return NULL;
}

static void start_call(pthread_t *t)
{
	pthread_create(t, NULL, call_main, NULL);
	while (!atomic_load(&at_call))
		usleep(100);
	/* so that the call has begun: too little shows nothing wrong, too much neither */
	usleep(20000);
}

static void *launch_main(void *arg)
{
	cuCtxSetCurrent(ctx);
	launch_result = cuMemsetD32Async(at(5), 1, 1, s2);
	atomic_store(&launched, 1);
	return NULL;
}

static bool begin(CUresult (*f)(void))
{
	CHECK(prepare());
	OK(cuStreamCreate(&s1, CU_STREAM_DEFAULT));
	OK(cuStreamCreate(&s2, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc(&memory, 64));
	OK(cuMemAllocHost(&pinned, 64));
	OK(cuGraphCreate(&graph, 0));
	OK(spin(s1, 0, 1, 32));
	call = f;
	return true;
}

/* The call waits; then so does a launch. What asks for no context goes on */
static bool held(CUresult (*f)(void))
{
	pthread_t a, b;
	CUcontext c;
	int n;

	CHECK(begin(f));
	start_call(&a);
	pthread_create(&b, NULL, launch_main, NULL);
	usleep(20000);
	CHECK(!atomic_load(&called) && !atomic_load(&launched));
	OK(cuDeviceGetCount(&n));
	OK(cuCtxGetCurrent(&c));
	host[0] = 1;
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	OK(call_result);
	OK(launch_result);
	OK(cuCtxSynchronize());
	CHECK(host[5] == 1);
	return true;
}

/* The call waits, the launch does not */
static bool waits(CUresult (*f)(void))
{
	pthread_t a, b;

	CHECK(begin(f));
	start_call(&a);
	pthread_create(&b, NULL, launch_main, NULL);
	pthread_join(b, NULL);
	CHECK(!atomic_load(&called));
	host[0] = 1;
	pthread_join(a, NULL);
	OK(call_result);
	OK(launch_result);
	return true;
}

/* Neither does */
static bool passes(CUresult (*f)(void))
{
	CHECK(begin(f));
	call_main(NULL);
	launch_main(NULL);
	OK(call_result);
	OK(launch_result);
	host[0] = 1;
	OK(cuCtxSynchronize());
	return true;
}

#define TEST(kind, f) static bool f##_##kind(void) { return kind(f); }
TEST(held, mem_free)
TEST(held, free_host)
TEST(held, set_limit)
TEST(held, unload)
TEST(held, mem_alloc)
TEST(held, get_function)
TEST(held, instantiate)
TEST(held, copy_out)
TEST(held, fill_queue)
TEST(waits, mem_free)
TEST(waits, copy_out)
TEST(waits, copy_out_async)
TEST(passes, copy_within)
TEST(waits, unload)
TEST(waits, stream_sync)
TEST(waits, ctx_sync)
TEST(passes, set_limit)
TEST(passes, mem_alloc)
TEST(passes, get_function)
TEST(passes, instantiate)
TEST(passes, fill_queue)

/* A context of its own has a lock of its own */
static bool other_context(void)
{
	CUcontext other;
	CUdeviceptr p;
	pthread_t a;

	CHECK(begin(set_limit));
	start_call(&a);
	OK(cuCtxCreate(&other, NULL, 0, 0));
	OK(cuMemAlloc(&p, 64));
	OK(cuMemsetD32(p, 1, 1));
	CHECK(!atomic_load(&called));
	host[0] = 1;
	pthread_join(a, NULL);
	OK(call_result);
	return true;
}

/* A function is loaded once: by its first launch, if it was asked for as a kernel of a library */
static bool first_launch(void)
{
	CUfunctionLoadingState state;
	CUmoduleLoadingMode mode;
	CUlibrary library;
	CUkernel k;
	CUdeviceptr p;
	uint32_t v = 1;

	CHECK(prepare());
	OK(cuLibraryLoadData(&library, kernels, NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryGetKernel(&k, library, "set"));
	OK(cuModuleGetLoadingMode(&mode));
	CHECK(mode == CU_MODULE_LAZY_LOADING);
	OK(cuFuncIsLoaded(&state, (CUfunction)k));
	CHECK(state == CU_FUNCTION_LOADING_STATE_UNLOADED);
	p = at(3);
	OK(run((CUfunction)k, 1, 1, NULL, (void *[]){ &p, &v }));
	OK(cuFuncIsLoaded(&state, (CUfunction)k));
	CHECK(state == CU_FUNCTION_LOADING_STATE_LOADED);
	OK(cuStreamCreate(&s1, CU_STREAM_NON_BLOCKING));
	OK(spin(s1, 0, 1, 32));
	OK(run((CUfunction)k, 1, 1, NULL, (void *[]){ &p, &v }));
	host[0] = 1;
	OK(cuCtxSynchronize());
	return true;
}

static bool refused(void)
{
	IS(NO_DEVICE, cuInit(0));
	return true;
}

void locks_tests(void)
{
	driver_test("VGPU_LOCKS=1", mem_free_held,
		    "VGPU_LOCKS=1: cuMemFree holds the context while it waits");
	driver_test("VGPU_LOCKS=1", free_host_held, "VGPU_LOCKS=1: cuMemFreeHost does");
	driver_test("VGPU_LOCKS=1", set_limit_held, "VGPU_LOCKS=1: cuCtxSetLimit does");
	driver_test("VGPU_LOCKS=1", copy_out_held,
		    "VGPU_LOCKS=1: a synchronous copy to the host does");
	driver_test("VGPU_LOCKS=1", copy_out_async_waits,
		    "VGPU_LOCKS=1: an asynchronous copy to pageable memory waits and "
		    "holds nothing");
	driver_test("VGPU_LOCKS=1", copy_within_passes,
		    "VGPU_LOCKS=1: a copy within the device does not wait");
	driver_test("VGPU_LOCKS=cuModuleUnload", unload_held,
		    "VGPU_LOCKS by name: cuModuleUnload does");
	driver_test("VGPU_LOCKS=1", fill_queue_held,
		    "VGPU_LOCKS=1: what goes behind 1024 operations does");
	driver_test("VGPU_LOCKS=cuMemFree,cuMemAlloc", mem_alloc_held,
		    "VGPU_LOCKS by name: cuMemAlloc does");
	driver_test("VGPU_LOCKS=cuModuleGetFunction", get_function_held,
		    "VGPU_LOCKS by name: a function's first use does");
	driver_test("VGPU_LOCKS=all", instantiate_held, "VGPU_LOCKS=all: cuGraphInstantiate");
	driver_test("VGPU_LOCKS=cuLaunchKernel", first_launch,
		    "VGPU_LOCKS by name: a first launch loads");
	driver_test("VGPU_LOCKS=all", stream_sync_waits,
		    "VGPU_LOCKS=all: cuStreamSynchronize holds nothing");
	driver_test("VGPU_LOCKS=all", ctx_sync_waits,
		    "VGPU_LOCKS=all: cuCtxSynchronize holds nothing");
	driver_test("VGPU_LOCKS=1", other_context, "VGPU_LOCKS=1: another context's calls go on");
	driver_test("VGPU_LOCKS=1", mem_alloc_passes, "VGPU_LOCKS=1: cuMemAlloc does not wait");
	driver_test("VGPU_LOCKS=1", get_function_passes,
		    "VGPU_LOCKS=1: functions are loaded with their module");
	driver_test("VGPU_LOCKS=1", instantiate_passes,
		    "VGPU_LOCKS=1: cuGraphInstantiate does not wait");
	driver_test("VGPU_LOCKS=none", mem_free_waits,
		    "without it cuMemFree waits and holds nothing");
	driver_test("VGPU_LOCKS=none", copy_out_waits,
		    "without it a synchronous copy waits and holds nothing");
	driver_test("VGPU_LOCKS=none", unload_waits,
		    "without it cuModuleUnload waits and holds nothing");
	driver_test("VGPU_LOCKS=none", set_limit_passes, "without it cuCtxSetLimit does not wait");
	driver_test("VGPU_LOCKS=none", fill_queue_passes, "without it a queue is never full");
	driver_test("VGPU_LOCKS=cuMemFree,cuNothing", refused,
		    "VGPU_LOCKS with a name that is none is refused");
}
