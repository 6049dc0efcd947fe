// SPDX-License-Identifier: LGPL-2.1-or-later
/* Runtime API: memory */
#include <string.h>
#include "cudart.h"

#define D(p) ((CUdeviceptr)(uintptr_t)(p))

RT_FN(cudaMalloc, (void **p, size_t size))
{
	CUdeviceptr d = 0;
	cudaError_t e;

	if (!p)
		return rt_fail(cudaErrorInvalidValue);
	e = size ? RT_CALL(0, cuMemAlloc, &d, size) : rt_context();
	*p = e ? NULL : (void *)(uintptr_t)d;
	return e;
}

RT_FN(cudaMallocPitch, (void **p, size_t *pitch, size_t width, size_t height))
{
	CUdeviceptr d = 0;
	cudaError_t e = p && pitch ? RT_CALL(0, cuMemAllocPitch, &d, pitch, width, height, 4) :
			rt_fail(cudaErrorInvalidValue);

	if (!e)
		*p = (void *)(uintptr_t)d;
	return e;
}

RT_FN(cudaMalloc3D, (struct cudaPitchedPtr *p, struct cudaExtent extent))
{
	cudaError_t e = p ? cudaMallocPitch(&p->ptr, &p->pitch, extent.width,
					    extent.height * extent.depth) :
			rt_fail(cudaErrorInvalidValue);

	if (!e) {
		p->xsize = extent.width;
		p->ysize = extent.height;
	}
	return e;
}

RT_FN(cudaMallocManaged, (void **p, size_t size, unsigned int flags))
{
	CUdeviceptr d = 0;
	cudaError_t e = p ? RT_CALL(0, cuMemAllocManaged, &d, size, flags) :
			rt_fail(cudaErrorInvalidValue);

	if (!e)
		*p = (void *)(uintptr_t)d;
	return e;
}

RT_FN(cudaFree, (void *p))
{
	return p ? RT_CALL(0, cuMemFree, D(p)) : rt_context();
}

RT_FN(cudaHostAlloc, (void **p, size_t size, unsigned int flags))
{
	return RT_CALL(0, cuMemHostAlloc, p, size, flags & 7);
}

RT_FN(cudaMallocHost, (void **p, size_t size))
{
	return RT_CALL(0, cuMemHostAlloc, p, size, 0);
}

RT_FN(cudaFreeHost, (void *p))
{
	return p ? RT_CALL(0, cuMemFreeHost, p) : rt_context();
}

RT_FN(cudaHostRegister, (void *p, size_t size, unsigned int flags))
{
	return RT_CALL(0, cuMemHostRegister, p, size, flags);
}

RT_FN(cudaHostUnregister, (void *p))
{
	return RT_CALL(0, cuMemHostUnregister, p);
}

RT_FN(cudaHostGetDevicePointer, (void **d, void *p, unsigned int flags))
{
	CUdeviceptr ptr = 0;
	cudaError_t e = d ? RT_CALL(0, cuMemHostGetDevicePointer, &ptr, p, flags) :
			rt_fail(cudaErrorInvalidValue);

	if (!e)
		*d = (void *)(uintptr_t)ptr;
	return e;
}

RT_FN(cudaHostGetFlags, (unsigned int *flags, void *p))
{
	return RT_CALL(0, cuMemHostGetFlags, flags, p);
}

RT_FN(cudaMemGetInfo, (size_t *left, size_t *total))
{
	return RT_CALL(0, cuMemGetInfo, left, total);
}

static cudaError_t malloc_async(void **p, size_t size, cudaStream_t stream, bool own)
{
	CUdeviceptr d = 0;
	cudaError_t e = p ? RT_CALL(own, cuMemAllocAsync, &d, size, stream) :
			rt_fail(cudaErrorInvalidValue);

	if (!e)
		*p = (void *)(uintptr_t)d;
	return e;
}
RT_BOTH(cudaMallocAsync, _ptsz, (void **p, size_t size, cudaStream_t stream),
	malloc_async(p, size, stream, own))
RT_BOTH(cudaFreeAsync, _ptsz, (void *p, cudaStream_t stream),
	RT_CALL(own, cuMemFreeAsync, D(p), stream))

RT_FN(cudaMemAdvise, (const void *p, size_t size, CUmem_advise advice, CUmemLocation where))
{
	return RT_CALL(0, cuMemAdvise, D(p), size, advice, where);
}
RT_BOTH(cudaMemPrefetchAsync, _ptsz, (const void *p, size_t size, CUmemLocation where,
				      unsigned int flags, cudaStream_t stream),
	RT_CALL(own, cuMemPrefetchAsync, D(p), size, where, flags, stream))

RT_FN(cudaPointerGetAttributes, (struct cudaPointerAttributes *out, const void *p))
{
	CUpointer_attribute which[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
					CU_POINTER_ATTRIBUTE_IS_MANAGED,
					CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
					CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
					CU_POINTER_ATTRIBUTE_HOST_POINTER };
	unsigned int type = 0, managed = 0;
	int device = -2;
	CUdeviceptr d = 0;
	void *host = NULL;
	void *data[] = { &type, &managed, &device, &d, &host };
	cudaError_t e = out && p ? RT_CALL(0, cuPointerGetAttributes, 5, which, data, D(p)) :
			rt_fail(cudaErrorInvalidValue);

	if (e)
		return e;
	memset(out, 0, sizeof(*out));
	out->type = managed ? cudaMemoryTypeManaged : (enum cudaMemoryType)type;
	out->device = type ? device : -2;
	out->devicePointer = (void *)(uintptr_t)d;
	out->hostPointer = type ? host : (void *)(uintptr_t)p;
	return cudaSuccess;
}

/*
 * Copies. The kind says which ends are on the device; cudaMemcpyDefault leaves that to the driver.
 */

static cudaError_t copy(void *dst, const void *src, size_t size, enum cudaMemcpyKind kind, bool own)
{
	if (!size)
		return rt_context();
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return RT_CALL(own, cuMemcpyHtoD, D(dst), src, size);
	case cudaMemcpyDeviceToHost:
		return RT_CALL(own, cuMemcpyDtoH, dst, D(src), size);
	case cudaMemcpyDeviceToDevice:
		return RT_CALL(own, cuMemcpyDtoD, D(dst), D(src), size);
	case cudaMemcpyHostToHost:
	case cudaMemcpyDefault:
		return RT_CALL(own, cuMemcpy, D(dst), D(src), size);
	default:
		return rt_fail(cudaErrorInvalidMemcpyDirection);
	}
}

static cudaError_t copy_async(void *dst, const void *src, size_t size, enum cudaMemcpyKind kind,
			      cudaStream_t stream, bool own)
{
	if (!size)
		return rt_context();
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return RT_CALL(own, cuMemcpyHtoDAsync, D(dst), src, size, stream);
	case cudaMemcpyDeviceToHost:
		return RT_CALL(own, cuMemcpyDtoHAsync, dst, D(src), size, stream);
	case cudaMemcpyDeviceToDevice:
		return RT_CALL(own, cuMemcpyDtoDAsync, D(dst), D(src), size, stream);
	case cudaMemcpyHostToHost:
	case cudaMemcpyDefault:
		return RT_CALL(own, cuMemcpyAsync, D(dst), D(src), size, stream);
	default:
		return rt_fail(cudaErrorInvalidMemcpyDirection);
	}
}
RT_BOTH(cudaMemcpy, _ptds, (void *dst, const void *src, size_t size, enum cudaMemcpyKind kind),
	copy(dst, src, size, kind, own))
RT_BOTH(cudaMemcpyAsync, _ptsz, (void *dst, const void *src, size_t size, enum cudaMemcpyKind kind,
				 cudaStream_t stream),
	copy_async(dst, src, size, kind, stream, own))

static cudaError_t ends(int dst_device, CUcontext *dst, int src_device, CUcontext *src)
{
	cudaError_t e = rt_context();
	CUresult r;

	if (e)
		return e;
	r = rt_primary(dst_device, dst);
	return rt_error(r ? r : rt_primary(src_device, src));
}

RT_FN(cudaMemcpyPeer, (void *dst, int dst_device, const void *src, int src_device, size_t size))
{
	CUcontext to = NULL, from = NULL;
	cudaError_t e = ends(dst_device, &to, src_device, &from);

	return e ? e : rt_error(rt_driver[0].p_cuMemcpyPeer(D(dst), to, D(src), from, size));
}

RT_FN(cudaMemcpyPeerAsync, (void *dst, int dst_device, const void *src, int src_device, size_t size,
			    cudaStream_t stream))
{
	CUcontext to = NULL, from = NULL;
	cudaError_t e = ends(dst_device, &to, src_device, &from);

	return e ? e : rt_error(rt_driver[0].p_cuMemcpyPeerAsync(D(dst), to, D(src), from,
								 size, stream));
}

/* A part of a variable */
static cudaError_t part(const void *symbol, size_t offset, size_t size, char **p)
{
	CUdeviceptr d = 0;
	size_t whole;
	cudaError_t e = rt_variable(symbol, &d, &whole);

	if (e)
		return e;
	if (offset > whole || size > whole - offset)
		return rt_fail(cudaErrorInvalidValue);
	*p = (char *)(uintptr_t)d + offset;
	return cudaSuccess;
}

static cudaError_t to_symbol(const void *symbol, const void *src, size_t size, size_t offset,
			     enum cudaMemcpyKind kind, cudaStream_t stream, bool own, bool async)
{
	char *p = NULL;
	cudaError_t e = part(symbol, offset, size, &p);

	if (e)
		return e;
	return async ? copy_async(p, src, size, kind, stream, own) : copy(p, src, size, kind, own);
}

static cudaError_t from_symbol(void *dst, const void *symbol, size_t size, size_t offset,
			       enum cudaMemcpyKind kind, cudaStream_t stream, bool own, bool async)
{
	char *p = NULL;
	cudaError_t e = part(symbol, offset, size, &p);

	if (e)
		return e;
	return async ? copy_async(dst, p, size, kind, stream, own) : copy(dst, p, size, kind, own);
}
RT_BOTH(cudaMemcpyToSymbol, _ptds, (const void *symbol, const void *src, size_t size, size_t offset,
				    enum cudaMemcpyKind kind),
	to_symbol(symbol, src, size, offset, kind, NULL, own, false))
RT_BOTH(cudaMemcpyToSymbolAsync, _ptsz,
	(const void *symbol, const void *src, size_t size, size_t offset, enum cudaMemcpyKind kind,
	 cudaStream_t stream),
	to_symbol(symbol, src, size, offset, kind, stream, own, true))
RT_BOTH(cudaMemcpyFromSymbol, _ptds, (void *dst, const void *symbol, size_t size, size_t offset,
				      enum cudaMemcpyKind kind),
	from_symbol(dst, symbol, size, offset, kind, NULL, own, false))
RT_BOTH(cudaMemcpyFromSymbolAsync, _ptsz,
	(void *dst, const void *symbol, size_t size, size_t offset, enum cudaMemcpyKind kind,
	 cudaStream_t stream),
	from_symbol(dst, symbol, size, offset, kind, stream, own, true))

RT_FN(cudaGetSymbolAddress, (void **p, const void *symbol))
{
	CUdeviceptr d = 0;
	cudaError_t e = p ? rt_variable(symbol, &d, NULL) : rt_fail(cudaErrorInvalidValue);

	if (!e)
		*p = (void *)(uintptr_t)d;
	return e;
}

RT_FN(cudaGetSymbolSize, (size_t *size, const void *symbol))
{
	return size ? rt_variable(symbol, NULL, size) : rt_fail(cudaErrorInvalidValue);
}

/* Rows and planes */

static CUmemorytype side(enum cudaMemcpyKind kind, bool dst)
{
	if (kind == cudaMemcpyDefault)
		return CU_MEMORYTYPE_UNIFIED;
	if (kind == cudaMemcpyHostToHost ||
	    kind == (dst ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice))
		return CU_MEMORYTYPE_HOST;
	return CU_MEMORYTYPE_DEVICE;
}

static cudaError_t copy2d(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
			  size_t height, enum cudaMemcpyKind kind, cudaStream_t stream,
			  bool own, bool async)
{
	CUDA_MEMCPY2D c = {
		.srcMemoryType = side(kind, false), .srcHost = src, .srcDevice = D(src),
		.srcPitch = spitch,
		.dstMemoryType = side(kind, true), .dstHost = dst, .dstDevice = D(dst),
		.dstPitch = dpitch, .WidthInBytes = width, .Height = height,
	};

	if ((unsigned int)kind > cudaMemcpyDefault)
		return rt_fail(cudaErrorInvalidMemcpyDirection);
	if (width > dpitch || width > spitch)
		return rt_fail(cudaErrorInvalidPitchValue);
	return async ? RT_CALL(own, cuMemcpy2DAsync, &c, stream) :
	       RT_CALL(own, cuMemcpy2DUnaligned, &c);
}
RT_BOTH(cudaMemcpy2D, _ptds,
	(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
	 enum cudaMemcpyKind kind),
	copy2d(dst, dpitch, src, spitch, width, height, kind, NULL, own, false))
RT_BOTH(cudaMemcpy2DAsync, _ptsz,
	(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
	 enum cudaMemcpyKind kind, cudaStream_t stream),
	copy2d(dst, dpitch, src, spitch, width, height, kind, stream, own, true))

cudaError_t rt_copy3d(const struct cudaMemcpy3DParms *p, CUDA_MEMCPY3D *c)
{
	if (!p || p->srcArray || p->dstArray || !p->srcPtr.ptr || !p->dstPtr.ptr)
		return rt_fail(cudaErrorInvalidValue);
	*c = (CUDA_MEMCPY3D) {
		.srcXInBytes = p->srcPos.x, .srcY = p->srcPos.y, .srcZ = p->srcPos.z,
			.srcMemoryType = side(p->kind, false),
		.srcHost = p->srcPtr.ptr, .srcDevice = D(p->srcPtr.ptr),
			.srcPitch = p->srcPtr.pitch, .srcHeight = p->srcPtr.ysize,
		.dstXInBytes = p->dstPos.x, .dstY = p->dstPos.y, .dstZ = p->dstPos.z,
			.dstMemoryType = side(p->kind, true),
		.dstHost = p->dstPtr.ptr, .dstDevice = D(p->dstPtr.ptr),
			.dstPitch = p->dstPtr.pitch, .dstHeight = p->dstPtr.ysize,
		.WidthInBytes = p->extent.width, .Height = p->extent.height,
			.Depth = p->extent.depth,
	};
	return cudaSuccess;
}

static cudaError_t copy3d(const struct cudaMemcpy3DParms *p, cudaStream_t stream,
			  bool own, bool async)
{
	CUDA_MEMCPY3D c;
	cudaError_t e = rt_copy3d(p, &c);

	if (e)
		return e;
	return async ? RT_CALL(own, cuMemcpy3DAsync, &c, stream) : RT_CALL(own, cuMemcpy3D, &c);
}
RT_BOTH(cudaMemcpy3D, _ptds, (const struct cudaMemcpy3DParms *p), copy3d(p, NULL, own, false))
RT_BOTH(cudaMemcpy3DAsync, _ptsz, (const struct cudaMemcpy3DParms *p, cudaStream_t stream),
	copy3d(p, stream, own, true))

RT_BOTH(cudaMemset, _ptds, (void *p, int value, size_t n),
	RT_CALL(own, cuMemsetD8, D(p), (unsigned char)value, n))
RT_BOTH(cudaMemsetAsync, _ptsz, (void *p, int value, size_t n, cudaStream_t stream),
	RT_CALL(own, cuMemsetD8Async, D(p), (unsigned char)value, n, stream))
RT_BOTH(cudaMemset2D, _ptds, (void *p, size_t pitch, int value, size_t width, size_t height),
	RT_CALL(own, cuMemsetD2D8, D(p), pitch, (unsigned char)value, width, height))
RT_BOTH(cudaMemset2DAsync, _ptsz, (void *p, size_t pitch, int value, size_t width, size_t height,
				   cudaStream_t stream),
	RT_CALL(own, cuMemsetD2D8Async, D(p), pitch, (unsigned char)value, width, height, stream))
