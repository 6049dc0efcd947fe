// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Driver API: launches whose shape and parameters the function keeps between calls (CUDA 2), and
 * cooperative ones on several devices
 */
#include <stdlib.h>
#include <string.h>
#include "vgpu.h"

#define PARAMS	4096

struct vg_old_launch {
	unsigned int block[3], shared, size;
	char params[PARAMS];
};

/* Entered; returns with the function's state, or left */
static CUresult enter(const void *handle, struct vg_old_launch **old)
{
	struct CUfunc_st *f;
	CUresult r = vg_enter();

	if (r)
		return r;
	r = vg_function_get(handle, &f);
	if (!r && !f->old)
		f->old = calloc(1, sizeof(*f->old));
	if (!r && !f->old)
		r = CUDA_ERROR_OUT_OF_MEMORY;
	if (r) {
		vg_leave(r);
		return r;
	}
	*old = f->old;
	return CUDA_SUCCESS;
}

CUDADRV_API CUresult cuFuncSetBlockShape(CUfunction f, int x, int y, int z)
{
	struct vg_old_launch *old;
	CUresult r = x > 0 && y > 0 && z > 0 ? enter(f, &old) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	old->block[0] = (unsigned int)x;
	old->block[1] = (unsigned int)y;
	old->block[2] = (unsigned int)z;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuFuncSetSharedSize(CUfunction f, unsigned int bytes)
{
	struct vg_old_launch *old;
	CUresult r = enter(f, &old);

	if (r)
		return r;
	old->shared = bytes;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuParamSetSize(CUfunction f, unsigned int bytes)
{
	struct vg_old_launch *old;
	CUresult r = bytes <= PARAMS ? enter(f, &old) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	old->size = bytes;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuParamSetv(CUfunction f, int offset, void *value, unsigned int bytes)
{
	struct vg_old_launch *old;
	CUresult r;

	if (offset < 0 || offset > PARAMS || bytes > PARAMS - (unsigned int)offset || !value)
		return CUDA_ERROR_INVALID_VALUE;
	r = enter(f, &old);
	if (r)
		return r;
	memcpy(old->params + offset, value, bytes);
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuParamSeti(CUfunction f, int offset, unsigned int value)
{
	return cuParamSetv(f, offset, &value, sizeof(value));
}

CUDADRV_API CUresult cuParamSetf(CUfunction f, int offset, float value)
{
	return cuParamSetv(f, offset, &value, sizeof(value));
}

CUDADRV_API CUresult cuLaunchGridAsync(CUfunction f, int width, int height, CUstream stream)
{
	struct vg_old_launch *at, old;
	size_t size;
	void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, old.params, CU_LAUNCH_PARAM_BUFFER_SIZE,
			  &size, CU_LAUNCH_PARAM_END };
	CUresult r = width > 0 && height > 0 ? enter(f, &at) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	old = *at;
	size = old.size;
	vg_leave(CUDA_SUCCESS);
	return cuLaunchKernel(f, (unsigned int)width, (unsigned int)height, 1, old.block[0],
			      old.block[1], old.block[2], old.shared, stream, NULL, extra);
}

CUDADRV_API CUresult cuLaunchGrid(CUfunction f, int width, int height)
{
	return cuLaunchGridAsync(f, width, height, NULL);
}

CUDADRV_API CUresult cuLaunch(CUfunction f)
{
	return cuLaunchGrid(f, 1, 1);
}

/* The launches do not wait for each other here, and have no barrier in common */
CUDADRV_API CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *list, unsigned int n,
							  unsigned int flags)
{
	const unsigned int apart = CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_PRE_LAUNCH_SYNC |
				   CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_POST_LAUNCH_SYNC;
	CUresult r = list && n && !(flags & ~apart) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	CUcontext context;

	if (!r && n > 1 && flags != apart)
		return vg_unsimulated("cuLaunchCooperativeKernelMultiDevice with synchronisation");
	for (unsigned int i = 0; i < n && !r; i++) {
		const CUDA_LAUNCH_PARAMS *p = &list[i];

		if (!p->hStream || p->hStream == CU_STREAM_LEGACY ||
		    p->hStream == CU_STREAM_PER_THREAD)
			return CUDA_ERROR_INVALID_VALUE;
		r = cuStreamGetCtx(p->hStream, &context);
		r = r ? r : cuCtxPushCurrent_v2(context);
		if (r)
			break;
		r = cuLaunchCooperativeKernel(p->function, p->gridDimX, p->gridDimY, p->gridDimZ,
					      p->blockDimX, p->blockDimY, p->blockDimZ,
					      p->sharedMemBytes, p->hStream, p->kernelParams);
		cuCtxPopCurrent_v2(&context);
	}
	return r;
}
