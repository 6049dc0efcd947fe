// SPDX-License-Identifier: LGPL-2.1-or-later
/* Generic addresses of parameters and of shared memory are good for one launch */
#include "test-driver.h"

/*
 * tell: the addresses of its parameter v, of static and of dynamic shared memory to *out, and *out
 * + 24 = v by its address, plus what it stored in both shared ones. Bytes of shared memory: s at 0,
 * d behind it. kept: reads from the address given.
 */
static const char text[] =
	".version 7.7\n.target sm_70\n.address_size 64\n.extern .shared .align 16 .b8 d[];\n"
	".visible .entry tell(.param .u64 out, .param .u32 v)\n{\n.shared .align 4 .u32 s;\n"
	".reg .b32 %r<6>; .reg .b64 %rd<8>;\n"
	"ld.param.u64 %rd1, [out];\n"
	"mov.b64 %rd2, v; cvta.param.u64 %rd3, %rd2; st.global.u64 [%rd1], %rd3;\n"
	"mov.u32 %r1, s; cvt.u64.u32 %rd4, %r1; cvta.shared.u64 %rd4, %rd4; "
	"st.global.u64 [%rd1+8], %rd4;\n"
	"mov.u32 %r2, d; cvt.u64.u32 %rd5, %r2; cvta.shared.u64 %rd5, %rd5; "
	"st.global.u64 [%rd1+16], %rd5;\n"
	"mov.u32 %r3, 100; st.shared.u32 [s], %r3; mov.u32 %r4, 1000; st.u32 [%rd5], %r4;\n"
	"ld.u32 %r3, [%rd4]; ld.shared.u32 %r4, [d]; add.u32 %r3, %r3, %r4;\n"
	"cvta.to.param.u64 %rd6, %rd3; ld.param.u32 %r5, [%rd6]; add.u32 %r3, %r3, %r5;\n"
	"ld.u32 %r5, [%rd3]; add.u32 %r3, %r3, %r5;\n"
	"cvta.to.shared.u64 %rd7, %rd4; ld.shared.u32 %r5, [%rd7]; add.u32 %r3, %r3, %r5;\n"
	"st.global.u32 [%rd1+24], %r3; ret;\n}\n"
	".visible .entry kept(.param .u64 out, .param .u64 address)\n{\n.shared .align 4 .u32 s;\n"
	".reg .b32 %r1; .reg .b64 %rd<3>;\n"
	"ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [address]; st.shared.u32 [s], 5; "
	"ld.u32 %r1, [%rd2]; st.global.u32 [%rd1], %r1; ret;\n}\n";

static CUfunction tell, kept;

static bool told(uint64_t addresses[3])
{
	CUdeviceptr out = at(0);
	uint32_t v = 7;

	OK(cuLaunchKernel(tell, 1, 1, 1, 1, 1, 1, 64, NULL, (void *[]){ &out, &v }, NULL));
	OK(cuCtxSynchronize());
	CHECK(host[6] == 100 + 1000 + 7 + 7 + 100);
	memcpy(addresses, (const void *)host, 24);
	return true;
}

static bool begin(void)
{
	CUmodule m;

	CHECK(prepare());
	OK(cuModuleLoadData(&m, text));
	OK(cuModuleGetFunction(&tell, m, "tell"));
	OK(cuModuleGetFunction(&kept, m, "kept"));
	return true;
}

static bool differ(void)
{
	uint64_t a[3], b[3];

	CHECK(begin());
	CHECK(told(a));
	CHECK(told(b));
	for (int i = 0; i < 3; i++)
		CHECK(a[i] != b[i]);
	CHECK(a[2] == a[1] + 16 && b[2] == b[1] + 16);
	return true;
}

/* A graph's kernel has other addresses each time too */
static bool graphs(void)
{
	CUDA_KERNEL_NODE_PARAMS kp = { .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1,
				       .blockDimY = 1, .blockDimZ = 1, .sharedMemBytes = 64 };
	uint64_t a[3], b[3];
	CUgraphExec exec;
	CUgraphNode n;
	CUdeviceptr out;
	uint32_t v = 7;
	CUgraph g;

	CHECK(begin());
	out = at(0);
	kp.func = tell;
	kp.kernelParams = (void *[]){ &out, &v };
	OK(cuGraphCreate(&g, 0));
	OK(cuGraphAddKernelNode(&n, g, NULL, 0, &kp));
	OK(cuGraphInstantiate(&exec, g, 0));
	OK(cuGraphLaunch(exec, NULL));
	OK(cuCtxSynchronize());
	memcpy(a, (const void *)host, sizeof(a));
	OK(cuGraphLaunch(exec, NULL));
	OK(cuCtxSynchronize());
	memcpy(b, (const void *)host, sizeof(b));
	for (int i = 0; i < 3; i++)
		CHECK(a[i] != b[i]);
	return true;
}

static bool is_gone(unsigned int which)
{
	CUdeviceptr out;
	uint64_t a[3];

	CHECK(begin());
	CHECK(told(a));
	out = at(0);
	OK(run(kept, 1, 1, NULL, (void *[]){ &out, &a[which] }));
	CHECK(cuCtxSynchronize() != CUDA_SUCCESS);
	return true;
}

static bool param_gone(void)
{
	return is_gone(0);
}

static bool shared_gone(void)
{
	return is_gone(1);
}

void addresses_tests(void)
{
	driver_test("", differ, "generic addresses of parameters and shared memory work, and "
		    "differ from launch to launch");
	driver_test("", graphs, "those of a graph's kernel do");
	driver_test("", param_gone, "a parameter's address that a later launch uses faults");
	driver_test("", shared_gone, "so does one of shared memory");
}
