// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Handles: the next object of a type has the handle of the one that went last, and is another
 * object
 */
#include <pthread.h>
#include "test-driver.h"

static const char other_kernels[] =
	".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry other(.param .u64 p)\n{\n"
	".reg .b32 %r1; .reg .b64 %rd1;\n"
	"ld.param.u64 %rd1, [p]; mov.u32 %r1, 77; st.global.u32 [%rd1], %r1; ret;\n}\n";

static bool modules(void)
{
	CUmodule first, second;
	CUfunction set_, other;
	CUdeviceptr p;
	uint32_t v = 5;

	CHECK(prepare());
	p = at(1);
	for (int i = 0; i < 3; i++) {
		OK(cuModuleLoadData(&first, kernels));
		OK(cuModuleGetFunction(&set_, first, "set"));
		OK(cuModuleUnload(first));
		OK(cuModuleLoadData(&second, kernels));
		CHECK(second == first);
		OK(cuModuleGetFunction(&other, second, "set"));
		CHECK(other == set_);
		OK(run(other, 1, 1, NULL, (void *[]){ &p, &v }));
		OK(cuCtxSynchronize());
		CHECK(host[1] == 5);
		OK(cuModuleUnload(second));
	}
	/* the last function that goes is the first one of the next module */
	OK(cuModuleLoadData(&first, other_kernels));
	OK(cuModuleGetFunction(&set_, first, "other"));
	OK(cuModuleUnload(first));
	IS(INVALID_HANDLE, run(set_, 1, 1, NULL, (void *[]){ &p }));
	OK(cuModuleLoadData(&second, other_kernels));
	OK(run(set_, 1, 1, NULL, (void *[]){ &p }));
	OK(cuCtxSynchronize());
	CHECK(host[1] == 77);
	return true;
}

static bool libraries(void)
{
	CUlibrary first, second;
	CUkernel a, b;

	CHECK(prepare());
	OK(cuLibraryLoadData(&first, other_kernels, NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryGetKernel(&a, first, "other"));
	OK(cuLibraryUnload(first));
	OK(cuLibraryLoadData(&second, other_kernels, NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryGetKernel(&b, second, "other"));
	CHECK(first == second && a == b);
	return true;
}

/* A graph names a kernel whose function went; another one has its handle now */
static bool graphs(void)
{
	CUDA_KERNEL_NODE_PARAMS kp = { .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1,
				       .blockDimY = 1, .blockDimZ = 1 };
	CUdeviceptr p;
	CUmodule m;
	CUgraph g;
	CUgraphNode n;
	CUgraphExec exec;
	CUfunction f;

	CHECK(prepare());
	p = at(1);
	OK(cuModuleLoadData(&m, other_kernels));
	OK(cuModuleGetFunction(&kp.func, m, "other"));
	kp.kernelParams = (void *[]){ &p };
	OK(cuGraphCreate(&g, 0));
	OK(cuGraphAddKernelNode(&n, g, NULL, 0, &kp));
	OK(cuGraphInstantiate(&exec, g, 0));
	OK(cuGraphLaunch(exec, NULL));
	OK(cuCtxSynchronize());
	CHECK(host[1] == 77);
	OK(cuModuleUnload(m));
	OK(cuModuleLoadData(&m, other_kernels));
	OK(cuModuleGetFunction(&f, m, "other"));
	CHECK(f == kp.func);
	IS(INVALID_HANDLE, cuGraphLaunch(exec, NULL));
	return true;
}

static bool streams(void)
{
	CUstream a, b, c;
	CUevent e, f;

	CHECK(prepare());
	OK(cuStreamCreate(&a, 0));
	OK(cuStreamCreate(&b, 0));
	OK(cuStreamDestroy(a));
	OK(cuStreamDestroy(b));
	OK(cuStreamCreate(&c, CU_STREAM_NON_BLOCKING));
	CHECK(c == b);
	OK(cuStreamCreate(&c, 0));
	CHECK(c == a);
	/* one with work goes with its last operation */
	OK(spin(c, 0, 1, 32));
	OK(cuStreamDestroy(c));
	OK(cuStreamCreate(&a, 0));
	CHECK(a != c);
	host[0] = 1;
	OK(cuCtxSynchronize());
	OK(cuStreamCreate(&b, 0));
	CHECK(b == c);
	OK(cuEventCreate(&e, 0));
	OK(cuEventDestroy(e));
	OK(cuEventCreate(&f, CU_EVENT_DISABLE_TIMING));
	CHECK(e == f);
	return true;
}

static CUcontext shared_ctx;
static pthread_barrier_t barrier;

/* Its current context goes, and another one gets the handle, which is not current here */
static void *left_behind(void *good)
{
	CUdeviceptr p;

	cuCtxSetCurrent(shared_ctx);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	*(bool *)good = cuMemAlloc(&p, 4) == CUDA_ERROR_CONTEXT_IS_DESTROYED &&
			!cuCtxSetCurrent(shared_ctx) && !cuMemAlloc(&p, 4);
	return NULL;
}

static bool contexts(void)
{
	bool good = false;
	CUcontext next;
	pthread_t t;

	CHECK(prepare());
	pthread_barrier_init(&barrier, NULL, 2);
	OK(cuCtxCreate(&shared_ctx, NULL, 0, 0));
	pthread_create(&t, NULL, left_behind, &good);
	pthread_barrier_wait(&barrier);
	OK(cuCtxDestroy(shared_ctx));
	OK(cuCtxCreate(&next, NULL, 0, 0));
	CHECK(next == shared_ctx);
	pthread_barrier_wait(&barrier);
	pthread_join(t, NULL);
	CHECK(good);
	return true;
}

void handles_tests(void)
{
	driver_test("", modules, "handles of modules and functions come back with the next module");
	driver_test("", libraries, "handles of libraries and kernels come back");
	driver_test("", graphs, "a graph does not take another function for its own");
	driver_test("", streams, "handles of streams and events come back");
	driver_test("", contexts, "handles of contexts come back; a thread that had the "
		    "old one has none");
}
