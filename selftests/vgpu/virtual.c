// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Driver API: virtual memory management. A range of addresses is reserved, memory is created, and
 * parts of it are mapped into the range; kernels may use what cuMemSetAccess allows. Memory is a
 * file without a name, so that it can be mapped twice, and handed to other processes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "vgpu.h"

#define GRANULE	((size_t)2 << 20)

struct memory {
	unsigned int handles, mappings;
	size_t size;
	int fd;
	CUmemAllocationProp prop;
	const struct vg_gpu *charged;	/* NULL: the host's, or another process's */
	uint32_t object;		/* of vg_charge() */
};

struct range {
	struct range *next;
	uint64_t base, size;
};

struct mapping {
	struct mapping *next;
	struct memory *memory;
	uint64_t base, size;
	CUmemAccess_flags access;
};

static struct range *ranges;
static struct mapping *mappings;

static struct memory *memory_of(CUmemGenericAllocationHandle handle)
{
	struct memory *m = (struct memory *)(uintptr_t)handle;

	return vg_handle_is(m, VG_MEMORY) ? m : NULL;
}

static void memory_put(struct memory *m)
{
	if (!m->handles)
		vg_handle_del(m);
	if (m->handles || m->mappings)
		return;
	close(m->fd);
	if (m->charged)
		vg_uncharge(m->charged, m->size, m->object);
	vg_object_free(VG_MEMORY, m);
}

static bool aligned(uint64_t a, uint64_t b)
{
	return a % GRANULE == 0 && b % GRANULE == 0;
}

static bool on_device(const CUmemAllocationProp *p)
{
	return p->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
}

static CUresult check_prop(const CUmemAllocationProp *p)
{
	if (!p || p->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (on_device(p) && (p->location.id < 0 || (unsigned int)p->location.id >= vg.n_gpus))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!on_device(p) && p->location.type != CU_MEM_LOCATION_TYPE_HOST &&
	    p->location.type != CU_MEM_LOCATION_TYPE_HOST_NUMA &&
	    p->location.type != CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT)
		return CUDA_ERROR_INVALID_VALUE;
	if (p->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	return CUDA_SUCCESS;
}

CUDADRV_API CUresult cuMemGetAllocationGranularity(size_t *granularity,
						   const CUmemAllocationProp *prop,
						   CUmemAllocationGranularity_flags option)
{
	CUresult r = granularity && option <= CU_MEM_ALLOC_GRANULARITY_RECOMMENDED ? vg_enter() :
		     CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	r = check_prop(prop);
	if (!r)
		*granularity = GRANULE;
	return vg_leave(r);
}

/* Ranges */

static struct range *range_around(uint64_t base, uint64_t size)
{
	struct range *r = ranges;

	while (r && (base < r->base || base - r->base >= r->size ||
		     size > r->size - (base - r->base)))
		r = r->next;
	return r;
}

static void *take_range(size_t size, size_t align, CUdeviceptr want)
{
	uint64_t at;
	char *p;

	if (want && want % align == 0) {
		p = mmap((void *)(uintptr_t)want, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS |
			 MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
		if (p == (void *)(uintptr_t)want)
			return p;
		if (p != MAP_FAILED)
			munmap(p, size);
	}
	p = mmap(NULL, size + align, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	at = ((uintptr_t)p + align - 1) / align * align;
	if (at > (uintptr_t)p)
		munmap(p, at - (uintptr_t)p);
	munmap((char *)(uintptr_t)at + size, (uintptr_t)p + align - at);
	return (void *)(uintptr_t)at;
}

CUDADRV_API CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t align,
					 CUdeviceptr want, unsigned long long flags)
{
	struct range *range;
	CUresult r = ptr && size && aligned(size, 0) && !(align & (align - 1)) && !flags ?
		     vg_enter() : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	range = calloc(1, sizeof(*range));
	if (!range)
		return vg_leave(CUDA_ERROR_OUT_OF_MEMORY);
	range->base = (uintptr_t)take_range(size, align < GRANULE ? GRANULE : align, want);
	if (!range->base) {
		free(range);
		return vg_leave(CUDA_ERROR_OUT_OF_MEMORY);
	}
	range->size = size;
	range->next = ranges;
	ranges = range;
	*ptr = range->base;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
	CUresult r = vg_enter();
	struct range **p = &ranges, *range;

	if (r)
		return r;
	while (*p && ((*p)->base != ptr || (*p)->size != size))
		p = &(*p)->next;
	range = *p;
	for (const struct mapping *m = mappings; m && range; m = m->next)
		if (range_around(m->base, m->size) == range)
			range = NULL;
	if (!range)
		return vg_leave(CUDA_ERROR_INVALID_VALUE);
	*p = range->next;
	munmap((void *)(uintptr_t)range->base, range->size);
	free(range);
	return vg_leave(CUDA_SUCCESS);
}

/* Memory */

static CUresult memory_new(const CUmemAllocationProp *prop, size_t size, int fd,
			   const struct vg_gpu *gpu, uint32_t object,
			   CUmemGenericAllocationHandle *handle)
{
	struct memory *m = vg_object_new(VG_MEMORY, sizeof(*m));

	if (!m)
		return CUDA_ERROR_OUT_OF_MEMORY;
	m->handles = 1;
	m->size = size;
	m->fd = fd;
	m->prop = *prop;
	m->charged = gpu;
	m->object = object;
	*handle = (uintptr_t)m;
	return CUDA_SUCCESS;
}

static CUresult create(CUmemGenericAllocationHandle *handle, size_t size,
		       const CUmemAllocationProp *prop)
{
	struct vg_gpu *gpu = on_device(prop) ? &vg.gpu[prop->location.id] : NULL;
	CUresult r = gpu ? vg_engine_start(gpu) : CUDA_SUCCESS;
	uint32_t object = 0;
	int fd;

	if (r)
		return r;
	if (gpu && !vg_charge(gpu, size, &object))
		return CUDA_ERROR_OUT_OF_MEMORY;
	fd = memfd_create("vgpu", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, (off_t)size))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	if (!r)
		r = memory_new(prop, size, fd, gpu, object, handle);
	if (r && fd >= 0)
		close(fd);
	if (r && gpu)
		vg_uncharge(gpu, size, object);
	return r;
}

CUDADRV_API CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
				 const CUmemAllocationProp *prop, unsigned long long flags)
{
	CUresult r = handle && size && aligned(size, 0) && !flags ? vg_enter() :
		     CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	r = check_prop(prop);
	return vg_leave(r ? r : create(handle, size, prop));
}

CUDADRV_API CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	CUresult r = vg_enter();
	struct memory *m = r ? NULL : memory_of(handle);

	if (r)
		return r;
	if (!m)
		return vg_leave(CUDA_ERROR_INVALID_VALUE);
	m->handles--;
	memory_put(m);
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
							    CUmemGenericAllocationHandle handle)
{
	CUresult r = prop ? vg_enter() : CUDA_ERROR_INVALID_VALUE;
	struct memory *m = r ? NULL : memory_of(handle);

	if (r)
		return r;
	if (!m)
		return vg_leave(CUDA_ERROR_INVALID_VALUE);
	*prop = m->prop;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle,
						  CUmemAllocationHandleType type,
						  unsigned long long flags)
{
	CUresult r = out && !flags ? vg_enter() : CUDA_ERROR_INVALID_VALUE;
	struct memory *m = r ? NULL : memory_of(handle);
	int fd;

	if (r)
		return r;
	if (!m || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
	    !(m->prop.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
		return vg_leave(CUDA_ERROR_INVALID_VALUE);
	fd = dup(m->fd);
	if (fd < 0)
		return vg_leave(CUDA_ERROR_OPERATING_SYSTEM);
	*(int *)out = fd;
	return vg_leave(CUDA_SUCCESS);
}

/* Which device's it is the descriptor does not say: the current context's */
CUDADRV_API CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *os,
						    CUmemAllocationHandleType type)
{
	CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
				     .requestedHandleTypes = type,
				     .location.type = CU_MEM_LOCATION_TYPE_DEVICE };
	struct CUctx_st *ctx;
	struct stat st;
	CUresult r = handle && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ?
		     vg_enter_ctx(&ctx) : CUDA_ERROR_INVALID_VALUE;
	int fd;

	if (r)
		return r;
	if (fstat((int)(uintptr_t)os, &st) || !st.st_size || !aligned((uint64_t)st.st_size, 0))
		return vg_leave(CUDA_ERROR_INVALID_VALUE);
	fd = dup((int)(uintptr_t)os);
	if (fd < 0)
		return vg_leave(CUDA_ERROR_OPERATING_SYSTEM);
	prop.location.id = (int)ctx->gpu->number;
	r = memory_new(&prop, (size_t)st.st_size, fd, NULL, 0, handle);
	if (r)
		close(fd);
	return vg_leave(r);
}

/* Mappings */

CUDADRV_API CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
			      CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	CUresult r = size && aligned(ptr, size) && aligned(offset, 0) && !flags ? vg_enter() :
		     CUDA_ERROR_INVALID_VALUE;
	struct memory *memory = r ? NULL : memory_of(handle);
	struct mapping *m;

	if (r)
		return r;
	if (!memory || offset > memory->size || size > memory->size - offset ||
	    !range_around(ptr, size))
		return vg_leave(CUDA_ERROR_INVALID_VALUE);
	for (m = mappings; m; m = m->next)
		if (ptr < m->base + m->size && m->base < ptr + size)
			return vg_leave(CUDA_ERROR_INVALID_VALUE);
	m = calloc(1, sizeof(*m));
	if (!m || mmap((void *)(uintptr_t)ptr, size, PROT_READ | PROT_WRITE, MAP_SHARED |
		       MAP_FIXED, memory->fd, (off_t)offset) == MAP_FAILED) {
		free(m);
		return vg_leave(CUDA_ERROR_OUT_OF_MEMORY);
	}
	*m = (struct mapping) { mappings, memory, ptr, size, CU_MEM_ACCESS_FLAGS_PROT_NONE };
	mappings = m;
	memory->mappings++;
	return vg_leave(CUDA_SUCCESS);
}

/* Do mappings fill the range, without one that only begins or only ends in it? */
static bool filled(uint64_t base, uint64_t size)
{
	uint64_t found = 0;

	for (const struct mapping *m = mappings; m; m = m->next) {
		if (m->base >= base + size || base >= m->base + m->size)
			continue;
		if (m->base < base || m->base + m->size > base + size)
			return false;
		found += m->size;
	}
	return size && found == size;
}

CUDADRV_API CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	CUresult r = vg_enter();

	if (r)
		return r;
	if (!filled(ptr, size))
		return vg_leave(CUDA_ERROR_INVALID_VALUE);
	for (struct mapping **p = &mappings, *m; (m = *p);) {
		if (m->base < ptr || m->base >= ptr + size) {
			p = &m->next;
			continue;
		}
		if (m->access)
			vg_region_del(m->base);
		if (mmap((void *)(uintptr_t)m->base, m->size, PROT_NONE, MAP_PRIVATE |
			 MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
			abort();
		*p = m->next;
		m->memory->mappings--;
		memory_put(m->memory);
		free(m);
	}
	return vg_leave(CUDA_SUCCESS);
}

static CUresult set_access(struct mapping *m, CUmemAccess_flags access)
{
	const CUmemAllocationProp *p = &m->memory->prop;
	struct vg_region r = { .base = m->base, .size = m->size, .owner = m,
			       .kind = on_device(p) ? VG_MEM_DEVICE : VG_MEM_HOST,
			       .gpu = on_device(p) ? &vg.gpu[p->location.id] : NULL,
			       .readonly = access == CU_MEM_ACCESS_FLAGS_PROT_READ };
	CUresult err = CUDA_SUCCESS;

	if (m->access == access)	/* kernels may be using it */
		return err;
	if (m->access)
		vg_region_del(m->base);
	if (access)
		err = vg_region_add(&r);
	m->access = err ? CU_MEM_ACCESS_FLAGS_PROT_NONE : access;
	return err;
}

/* No device can access another's memory, nor the host a device's */
static CUresult check_access(const struct mapping *m, const CUmemAccessDesc *d)
{
	const CUmemLocation *l = &m->memory->prop.location;

	if (d->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
	    d->flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
	    d->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		return CUDA_ERROR_INVALID_VALUE;
	if (d->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return l->type == CU_MEM_LOCATION_TYPE_DEVICE ? CUDA_ERROR_NOT_SUPPORTED :
		       CUDA_SUCCESS;
	if (d->location.id < 0 || (unsigned int)d->location.id >= vg.n_gpus)
		return CUDA_ERROR_INVALID_DEVICE;
	return l->type != CU_MEM_LOCATION_TYPE_DEVICE || l->id == d->location.id ? CUDA_SUCCESS :
	       CUDA_ERROR_INVALID_DEVICE;
}

CUDADRV_API CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc,
				    size_t n)
{
	CUresult r = desc && n ? vg_enter() : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	if (!filled(ptr, size))
		return vg_leave(CUDA_ERROR_INVALID_VALUE);
	for (const struct mapping *m = mappings; m; m = m->next)
		for (size_t i = 0; !r && i < n && m->base >= ptr && m->base < ptr + size; i++)
			r = check_access(m, &desc[i]);
	for (struct mapping *m = mappings; m; m = m->next)
		for (size_t i = 0; !r && i < n && m->base >= ptr && m->base < ptr + size; i++)
			if (desc[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE)
				r = set_access(m, desc[i].flags);
	return vg_leave(r);
}

static struct mapping *mapping_at(CUdeviceptr ptr)
{
	struct mapping *m = mappings;

	while (m && ptr - m->base >= m->size)
		m = m->next;
	return m;
}

CUDADRV_API CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location,
				    CUdeviceptr ptr)
{
	CUresult r = flags && location ? vg_enter() : CUDA_ERROR_INVALID_VALUE;
	const struct mapping *m = r ? NULL : mapping_at(ptr);

	if (r)
		return r;
	if (!m)
		return vg_leave(CUDA_ERROR_INVALID_VALUE);
	*flags = location->type == CU_MEM_LOCATION_TYPE_DEVICE &&
		 (!on_device(&m->memory->prop) || location->id == m->memory->prop.location.id) ?
		 m->access : CU_MEM_ACCESS_FLAGS_PROT_NONE;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
	CUresult r = handle ? vg_enter() : CUDA_ERROR_INVALID_VALUE;
	const struct mapping *m = r ? NULL : mapping_at((uintptr_t)addr);

	if (r)
		return r;
	if (!m)
		return vg_leave(CUDA_ERROR_INVALID_VALUE);
	if (!m->memory->handles && !vg_handle_add(m->memory, VG_MEMORY))
		return vg_leave(CUDA_ERROR_OUT_OF_MEMORY);
	m->memory->handles++;
	*handle = (uintptr_t)m->memory;
	return vg_leave(CUDA_SUCCESS);
}
