// SPDX-License-Identifier: LGPL-2.1-or-later
/* Driver API: allocating, registering and asking about memory */
#include <stdio.h>
#include <string.h>
#include "pool.h"

CUDADRV_API CUresult cuMemGetInfo_v2(size_t *left, size_t *total)
{
	struct vg_device *d;
	struct CUctx_st *ctx;
	uint64_t used = 0;
	CUresult r = left && total ? vg_enter_ctx(&ctx) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	d = ctx->gpu->device;
	vg_shm_lock(d);
	for (uint32_t i = 0; i < VG_PROCS_MAX; i++)
		used += d->proc[i].mem;
	vg_shm_unlock(d);
	*total = d->config.mem;
	*left = d->config.mem - used;
	return vg_leave(CUDA_SUCCESS);
}

/* A call that no graph can stand for */
static CUresult enter_unsafe(struct CUctx_st **ctx)
{
	CUresult r = vg_enter_ctx(ctx);

	if (!r && (r = vg_capture_unsafe()))
		vg_leave(r);
	return r;
}

/* Needs no context: Numba frees when it has none any more, and its tests ask for success. */
static CUresult enter_free(void)
{
	CUresult r = vg_enter();

	if (!r && (r = vg_capture_unsafe()))
		vg_leave(r);
	return r;
}

static CUresult alloc(CUdeviceptr *ptr, size_t size, enum vg_mem kind, unsigned int flags)
{
	struct CUctx_st *ctx;
	CUresult r = enter_unsafe(&ctx);

	if (r)
		return r;
	r = vg_may_wait(kind == VG_MEM_HOST ? VG_HOLDER_MEM_HOST_ALLOC : VG_HOLDER_MEM_ALLOC, ctx);
	return vg_leave(r ? r : vg_mem_alloc(ctx, size, kind, flags, ptr));
}

CUDADRV_API CUresult cuMemAlloc_v2(CUdeviceptr *ptr, size_t size)
{
	return alloc(ptr, size, VG_MEM_DEVICE, 0);
}

CUDADRV_API CUresult cuMemAllocPitch_v2(CUdeviceptr *ptr, size_t *pitch, size_t width,
					size_t height, unsigned int element)
{
	size_t row = (width + 511) & ~(size_t)511, size;
	CUresult r;

	if (!pitch || !width || !height || (element != 4 && element != 8 && element != 16) ||
	    row < width || __builtin_mul_overflow(row, height, &size))
		return CUDA_ERROR_INVALID_VALUE;
	r = alloc(ptr, size, VG_MEM_DEVICE, 0);
	if (!r)
		*pitch = row;
	return r;
}

CUDADRV_API CUresult cuMemAllocManaged(CUdeviceptr *ptr, size_t size, unsigned int flags)
{
	if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)
		return CUDA_ERROR_INVALID_VALUE;
	return alloc(ptr, size, VG_MEM_MANAGED, flags);
}

static CUresult free_now(CUdeviceptr ptr)
{
	CUresult r;

	if (vg_pool_of(ptr)) {
		r = vg_pool_free(ptr, NULL);
		return r || vg_pool_freed(ptr) ? r : CUDA_ERROR_INVALID_VALUE;
	}
	if (!vg_graph_mem_find(ptr))
		return vg_mem_free(ptr, false);
	r = vg_graph_mem_free(ptr);
	return r || vg_graph_mem_freed(ptr) ? r : CUDA_ERROR_INVALID_VALUE;
}

CUDADRV_API CUresult cuMemFree_v2(CUdeviceptr ptr)
{
	const struct vg_region *region;
	CUresult r = enter_free();

	if (r)
		return r;
	if (!ptr)
		return vg_leave(CUDA_SUCCESS);
	region = vg_region_find(ptr);
	if (!region || region->base != ptr)
		return vg_leave(CUDA_ERROR_INVALID_VALUE);
	/* managed memory may be any context's work's */
	r = vg_wait_held(VG_HOLDER_MEM_FREE, region->kind == VG_MEM_DEVICE ? region->ctx : NULL);
	return vg_leave(r ? r : free_now(ptr));
}

CUDADRV_API CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr ptr)
{
	const struct vg_region *region;
	struct CUctx_st *ctx;
	CUresult r = vg_enter_ctx(&ctx);

	if (r)
		return r;
	region = vg_region_find(ptr);
	if (!region)
		return vg_leave(CUDA_ERROR_NOT_FOUND);
	if (base)
		*base = region->base;
	if (size)
		*size = region->size;
	return vg_leave(CUDA_SUCCESS);
}

/* Host memory */

static CUresult host_alloc(void **p, size_t size, unsigned int flags)
{
	CUdeviceptr ptr = 0;
	CUresult r;

	if (!p || (flags & ~7u))
		return CUDA_ERROR_INVALID_VALUE;
	r = alloc(&ptr, size, VG_MEM_HOST, flags | CU_MEMHOSTALLOC_DEVICEMAP);
	if (!r)
		*p = (void *)(uintptr_t)ptr;
	return r;
}

CUDADRV_API CUresult cuMemAllocHost_v2(void **p, size_t size)
{
	return host_alloc(p, size, 0);
}

CUDADRV_API CUresult cuMemHostAlloc(void **p, size_t size, unsigned int flags)
{
	return host_alloc(p, size, flags);
}

CUDADRV_API CUresult cuMemFreeHost(void *p)
{
	CUresult r = enter_free();

	if (r)
		return r;
	r = vg_wait_held(VG_HOLDER_MEM_FREE_HOST, NULL);
	return vg_leave(r ? r : vg_mem_free((uintptr_t)p, true));
}

/* Can every page be read, and written unless @readonly? A driver finds that out by pinning them. */
static bool mapped(uint64_t addr, size_t size, bool readonly)
{
	FILE *f = fopen("/proc/self/maps", "re");
	uint64_t end = addr + size;
	char line[512];

	if (!f)
		return true;
	while (addr < end && fgets(line, sizeof(line), f)) {
		unsigned long long low, high;
		char perms[5];

		if (sscanf(line, "%llx-%llx %4s", &low, &high, perms) != 3 || high <= addr)
			continue;
		if (low > addr || perms[0] != 'r' || (perms[1] != 'w' && !readonly))
			break;
		addr = high;
	}
	fclose(f);
	return addr >= end;
}

CUDADRV_API CUresult cuMemHostRegister_v2(void *p, size_t size, unsigned int flags)
{
	struct vg_region region = { .base = (uintptr_t)p, .size = size, .kind = VG_MEM_REGISTERED,
				    .flags = flags | CU_MEMHOSTREGISTER_DEVICEMAP };
	struct CUctx_st *ctx;
	CUresult r;

	if (!p || !size || (flags & ~15u) || (uintptr_t)p + size < (uintptr_t)p)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CU_MEMHOSTREGISTER_IOMEMORY)
		return vg_unsimulated("cuMemHostRegister of I/O memory");
	r = enter_unsafe(&ctx);
	if (r)
		return r;
	region.ctx = ctx;
	region.owner = ctx;
	region.readonly = flags & CU_MEMHOSTREGISTER_READ_ONLY;
	if (!mapped(region.base, size, region.readonly))
		return vg_leave(CUDA_ERROR_INVALID_VALUE);
	return vg_leave(vg_region_add(&region));
}

CUDADRV_API CUresult cuMemHostUnregister(void *p)
{
	const struct vg_region *region;
	struct CUctx_st *ctx;
	CUresult r = p ? enter_unsafe(&ctx) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	r = vg_wait_held(VG_HOLDER_MEM_HOST_UNREGISTER, NULL);
	if (r)
		return vg_leave(r);
	region = vg_region_find((uintptr_t)p);
	if (!region || region->base != (uintptr_t)p || region->kind != VG_MEM_REGISTERED)
		return vg_leave(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	vg_region_del(region->base);
	return vg_leave(CUDA_SUCCESS);
}

static bool is_host(const struct vg_region *r)
{
	return r && (r->kind == VG_MEM_HOST || r->kind == VG_MEM_REGISTERED);
}

CUDADRV_API CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *ptr, void *p, unsigned int flags)
{
	struct CUctx_st *ctx;
	CUresult r = ptr && p && !flags ? vg_enter_ctx(&ctx) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	if (!is_host(vg_region_find((uintptr_t)p)))
		return vg_leave(CUDA_ERROR_INVALID_VALUE);
	*ptr = (uintptr_t)p;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuMemHostGetFlags(unsigned int *flags, void *p)
{
	const struct vg_region *region;
	struct CUctx_st *ctx;
	CUresult r = flags && p ? vg_enter_ctx(&ctx) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	region = vg_region_find((uintptr_t)p);
	if (!is_host(region))
		return vg_leave(CUDA_ERROR_INVALID_VALUE);
	*flags = region->flags;
	return vg_leave(CUDA_SUCCESS);
}

/* Managed memory is everywhere at once: nothing to move, nothing to advise */

static CUresult check_managed(CUdeviceptr ptr, size_t size)
{
	struct CUctx_st *ctx;
	CUresult r = size ? vg_enter_ctx(&ctx) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	return vg_leave(vg_region_covers(ptr, size) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUDADRV_API CUresult cuMemAdvise(CUdeviceptr ptr, size_t size, CUmem_advise advice, CUdevice dev)
{
	return check_managed(ptr, size);
}

CUDADRV_API CUresult cuMemAdvise_v2(CUdeviceptr ptr, size_t size, CUmem_advise advice,
				    CUmemLocation where)
{
	return check_managed(ptr, size);
}

CUDADRV_API CUresult cuMemPrefetchAsync(CUdeviceptr ptr, size_t size, CUdevice dev, CUstream stream)
{
	return check_managed(ptr, size);
}

CUDADRV_API CUresult cuMemPrefetchAsync_ptsz(CUdeviceptr ptr, size_t size, CUdevice dev,
					     CUstream stream)
{
	return check_managed(ptr, size);
}

CUDADRV_API CUresult cuMemPrefetchAsync_v2(CUdeviceptr ptr, size_t size, CUmemLocation where,
					   unsigned int flags, CUstream stream)
{
	return check_managed(ptr, size);
}

CUDADRV_API CUresult cuMemPrefetchAsync_v2_ptsz(CUdeviceptr ptr, size_t size, CUmemLocation where,
						unsigned int flags, CUstream stream)
{
	return check_managed(ptr, size);
}

/* Pointer attributes */

static CUresult attribute(void *out, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	const struct vg_region *r = vg_region_find(ptr);

	if (attribute == CU_POINTER_ATTRIBUTE_MAPPED) {
		*(int *)out = r != NULL;
		return CUDA_SUCCESS;
	}
	if (!r)
		return CUDA_ERROR_INVALID_VALUE;
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(CUcontext *)out = r->ctx;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned int *)out = is_host(r) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*(CUdeviceptr *)out = ptr;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		*(void **)out = is_host(r) || r->kind == VG_MEM_MANAGED ? (void *)(uintptr_t)ptr :
				NULL;
		return is_host(r) || r->kind == VG_MEM_MANAGED ? CUDA_SUCCESS :
		       CUDA_ERROR_INVALID_VALUE;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)out = (int)(r->gpu ? r->gpu : r->ctx ? r->ctx->gpu : &vg.gpu[0])->number;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		*(int *)out = 0;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		*(unsigned long long *)out = r->id;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(int *)out = r->kind == VG_MEM_MANAGED;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
		*(int *)out = 0;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		*(cuuint64_t *)out = 0;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		*(int *)out = r->readonly ? CU_MEM_ACCESS_FLAGS_PROT_READ :
			      CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*(CUmemoryPool *)out = vg_pool_of(ptr);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(CUdeviceptr *)out = r->base;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)out = r->size;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

CUDADRV_API CUresult cuPointerGetAttribute(void *data, CUpointer_attribute which, CUdeviceptr ptr)
{
	CUresult r = data ? vg_enter() : CUDA_ERROR_INVALID_VALUE;

	return r ? r : vg_leave(attribute(data, which, ptr));
}

/* The plural form says "no" about unknown pointers instead of failing */
CUDADRV_API CUresult cuPointerGetAttributes(unsigned int n, CUpointer_attribute *which, void **data,
					    CUdeviceptr ptr)
{
	CUresult r = n && which && data ? vg_enter() : CUDA_ERROR_INVALID_VALUE;

	for (unsigned int i = 0; !r && i < n; i++) {
		CUresult one = attribute(data[i], which[i], ptr);

		if (one == CUDA_ERROR_NOT_SUPPORTED)
			return vg_leave(one);
		if (!one)
			continue;
		switch (which[i]) {
		case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
			*(unsigned int *)data[i] = 0;
			break;
		case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
			*(int *)data[i] = -2;
			break;
		default:
			memset(data[i], 0, 8);
			break;
		}
	}
	return r ? r : vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute which,
					   CUdeviceptr ptr)
{
	CUresult r = value ? vg_enter() : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	if (!vg_region_find(ptr) || which != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
		return vg_leave(CUDA_ERROR_INVALID_VALUE);
	return vg_leave(CUDA_SUCCESS);
}
