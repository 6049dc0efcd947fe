// SPDX-License-Identifier: LGPL-2.1-or-later
/* What the driver API's tests begin with: a context, the kernels, pinned memory */
#include "test-api.h"

CUcontext ctx;
CUmodule module;
CUfunction k_spin, k_stamp, k_set, k_add, k_wild;
volatile uint32_t *host;

bool prepare(void)
{
	void *p;

	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&ctx, 0));
	OK(cuCtxSetCurrent(ctx));
	OK(cuModuleLoadData(&module, kernels));
	OK(cuModuleGetFunction(&k_spin, module, "spin"));
	OK(cuModuleGetFunction(&k_stamp, module, "stamp"));
	OK(cuModuleGetFunction(&k_set, module, "set"));
	OK(cuModuleGetFunction(&k_add, module, "add"));
	OK(cuModuleGetFunction(&k_wild, module, "wild"));
	OK(cuMemHostAlloc(&p, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
	memset(p, 0, 4096);
	host = p;
	return true;
}

CUresult run(CUfunction f, unsigned int blocks, unsigned int threads, CUstream s, void **params)
{
	return cuLaunchKernel(f, blocks, 1, 1, threads, 1, 1, 0, s, params, NULL);
}
