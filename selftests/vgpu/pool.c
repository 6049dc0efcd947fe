// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Driver API: memory pools and stream-ordered allocation. A block that is freed in a stream can be
 * allocated again in that stream at once, and elsewhere when the stream has come to the free.
 * Between the two a kernel that uses it faults. Unused blocks above the pool's threshold go back
 * when the host waits for work, and when memory is short.
 */
#include <stdlib.h>
#include <string.h>
#include "pool.h"

struct block {
	struct block *next;
	CUdeviceptr base;
	size_t capacity, size;
	struct CUctx_st *ctx;
	bool used, present;		/* present: kernels may access it */
	uint32_t object;		/* of vg_charge() */
	unsigned int pending;		/* frees that their streams have not come to */
	uint64_t stream;		/* the id of the one that freed it last */
};

struct CUmemPoolHandle_st {
	struct CUmemPoolHandle_st *next;
	struct vg_gpu *gpu;		/* NULL: of host or managed memory that is nobody's */
	enum vg_mem kind;
	CUmemPoolProps props;
	bool is_default;
	bool dying;			/* destroyed, and blocks are used */
	int reuse[3];			/* attributes from REUSE_FOLLOW_EVENT_DEPENDENCIES on */
	cuuint64_t threshold, used, used_high, reserved, reserved_high;
	struct block *blocks;
};

static struct CUmemPoolHandle_st *pools;
static CUmemoryPool current[VG_GPUS_MAX];

/* Blocks */

static struct block *find(CUdeviceptr ptr, CUmemoryPool *pool)
{
	for (*pool = pools; *pool; *pool = (*pool)->next)
		for (struct block *b = (*pool)->blocks; b; b = b->next)
			if (b->base == ptr)
				return b;
	return NULL;
}

static void hide(struct block *b)
{
	if (b->present)
		vg_region_del(b->base);
	b->present = false;
}

static CUresult show(CUmemoryPool pool, struct block *b, size_t size)
{
	struct vg_region r = { .base = b->base, .size = size, .kind = pool->kind, .ctx = b->ctx,
			       .gpu = pool->kind == VG_MEM_DEVICE ? pool->gpu : NULL, .owner = b };
	CUresult err;

	if (pool->kind == VG_MEM_HOST)
		r.flags = CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE;
	err = b->present ? CUDA_SUCCESS : vg_region_add(&r);
	if (err)
		return CUDA_ERROR_OUT_OF_MEMORY;
	b->present = true;
	b->size = size;
	return CUDA_SUCCESS;
}

static const struct vg_gpu *charged(const struct CUmemPoolHandle_st *pool)
{
	return pool->kind == VG_MEM_DEVICE ? pool->gpu : NULL;
}

static void release(CUmemoryPool pool, struct block **p)
{
	struct block *b = *p;

	*p = b->next;
	hide(b);
	pool->reserved -= b->capacity;
	vg_pages_give(charged(pool), (void *)(uintptr_t)b->base, b->capacity, b->object);
	free(b);
}

static bool trim(CUmemoryPool pool, cuuint64_t keep)
{
	bool any = false;

	for (struct block **p = &pool->blocks; *p && pool->reserved > keep;) {
		if ((*p)->used || (*p)->pending) {
			p = &(*p)->next;
			continue;
		}
		release(pool, p);
		any = true;
	}
	return any;
}

static void reap(void)
{
	for (struct CUmemPoolHandle_st **p = &pools, *pool; (pool = *p);) {
		if (pool->dying)
			trim(pool, 0);
		if (!pool->dying || pool->blocks) {
			p = &pool->next;
			continue;
		}
		*p = pool->next;
		vg_object_free(VG_POOL, pool);
	}
}

void vg_pools_sync(void)
{
	for (struct CUmemPoolHandle_st *pool = pools; pool; pool = pool->next)
		trim(pool, pool->threshold);
}

bool vg_pools_short(void)
{
	bool any = false;

	for (struct CUmemPoolHandle_st *pool = pools; pool; pool = pool->next)
		any |= trim(pool, 0);
	return any;
}

void vg_pools_drop(const struct CUctx_st *ctx)
{
	for (struct CUmemPoolHandle_st *pool = pools; pool; pool = pool->next)
		for (struct block **p = &pool->blocks; *p;) {
			if ((*p)->ctx != ctx) {
				p = &(*p)->next;
				continue;
			}
			pool->used -= (*p)->used ? (*p)->capacity : 0;
			release(pool, p);
		}
	reap();
}

static bool fits(const struct CUmemPoolHandle_st *pool, const struct block *b,
		 const struct CUstream_st *s, size_t size)
{
	bool same = b->stream == s->id;

	if (b->used || b->ctx != s->ctx)
		return false;
	/* kernels before the free may still use it, all of it */
	if (b->pending)
		return same && b->pending == 1 && b->present && b->size == size;
	if (!same && !pool->reuse[CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC - 1])
		return false;
	return b->capacity >= size && b->capacity / 2 <= size;
}

static CUresult block_new(CUmemoryPool pool, const struct CUstream_st *s, size_t size,
			  struct block **out)
{
	struct block *b = calloc(1, sizeof(*b));
	void *p = NULL;

	if (!b)
		return CUDA_ERROR_OUT_OF_MEMORY;
	b->capacity = (size + 511) & ~(size_t)511;
	if (b->capacity >= size && !pool->props.maxSize)
		p = vg_pages_take(charged(pool), b->capacity, &b->object);
	else if (b->capacity >= size && b->capacity <= pool->props.maxSize &&
		 pool->reserved <= pool->props.maxSize - b->capacity)
		p = vg_pages_take(charged(pool), b->capacity, &b->object);
	if (!p) {
		free(b);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	b->base = (uintptr_t)p;
	b->ctx = s->ctx;
	b->next = pool->blocks;
	pool->blocks = b;
	pool->reserved += b->capacity;
	if (pool->reserved > pool->reserved_high)
		pool->reserved_high = pool->reserved;
	*out = b;
	return CUDA_SUCCESS;
}

static CUresult alloc(CUmemoryPool pool, size_t size, const struct CUstream_st *s, CUdeviceptr *out)
{
	struct block *b = pool->blocks;
	CUresult r = CUDA_SUCCESS;

	while (b && !fits(pool, b, s, size))
		b = b->next;
	if (!b)
		r = block_new(pool, s, size, &b);
	if (r && trim(pool, 0))
		r = block_new(pool, s, size, &b);
	if (r)
		return r;
	r = show(pool, b, size);
	if (r)
		return r;
	b->used = true;
	pool->used += b->capacity;
	if (pool->used > pool->used_high)
		pool->used_high = pool->used;
	*out = b->base;
	return CUDA_SUCCESS;
}

CUmemoryPool vg_pool_of(CUdeviceptr ptr)
{
	const struct vg_region *region = vg_region_find(ptr);
	CUmemoryPool pool;

	return region && find(region->base, &pool) ? pool : NULL;
}

CUresult vg_pool_free(CUdeviceptr ptr, const struct CUstream_st *s)
{
	CUmemoryPool pool;
	struct block *b = find(ptr, &pool);

	if (!b || !b->used)
		return CUDA_ERROR_INVALID_VALUE;
	b->used = false;
	b->pending++;
	b->stream = s ? s->id : 0;
	pool->used -= b->capacity;
	return CUDA_SUCCESS;
}

bool vg_pool_freed(CUdeviceptr ptr)
{
	CUmemoryPool pool;
	struct block *b = find(ptr, &pool);

	if (!b)
		return false;
	if (!--b->pending && !b->used)
		hide(b);
	reap();
	return true;
}

/* Pools */

static bool known_location(CUmemAllocationType type, const CUmemLocation *l)
{
	if (l->type == CU_MEM_LOCATION_TYPE_DEVICE)
		return l->id >= 0 && (unsigned int)l->id < vg.n_gpus;
	if (l->type == CU_MEM_LOCATION_TYPE_NONE)
		return type == CU_MEM_ALLOCATION_TYPE_MANAGED;
	return l->type == CU_MEM_LOCATION_TYPE_HOST || (l->type == CU_MEM_LOCATION_TYPE_HOST_NUMA &&
		!l->id) || l->type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

static CUmemoryPool pool_new(const CUmemPoolProps *props)
{
	CUmemoryPool pool = vg_object_new(VG_POOL, sizeof(*pool));

	if (!pool)
		return NULL;
	pool->props = *props;
	pool->kind = props->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED ? VG_MEM_MANAGED :
		     props->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? VG_MEM_DEVICE :
		     VG_MEM_HOST;
	if (props->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
		pool->gpu = &vg.gpu[props->location.id];
	for (int i = 0; i < 3; i++)
		pool->reuse[i] = 1;
	pool->next = pools;
	pools = pool;
	return pool;
}

static CUresult enter_pool(CUmemoryPool pool)
{
	CUresult r = vg_enter();

	if (r || (vg_handle_is(pool, VG_POOL) && !pool->dying))
		return r;
	vg_leave(r);
	return CUDA_ERROR_INVALID_VALUE;
}

CUDADRV_API CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
	CUresult r = pool && props ? vg_enter() : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	if ((props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED &&
	     props->allocType != CU_MEM_ALLOCATION_TYPE_MANAGED) ||
	    !known_location(props->allocType, &props->location))
		return vg_leave(CUDA_ERROR_INVALID_VALUE);
	if (props->handleTypes)
		return vg_leave(vg_unsimulated("cuMemPoolCreate for other processes"));
	*pool = pool_new(props);
	return vg_leave(*pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUDADRV_API CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	CUresult r = enter_pool(pool);

	if (r)
		return r;
	if (pool->is_default)
		return vg_leave(CUDA_ERROR_INVALID_VALUE);
	for (int i = 0; i < VG_GPUS_MAX; i++)
		if (current[i] == pool)
			current[i] = NULL;
	pool->dying = true;
	vg_handle_del(pool);
	reap();
	return vg_leave(CUDA_SUCCESS);
}

static CUmemoryPool default_pool(CUmemAllocationType type, const CUmemLocation *l)
{
	const CUmemPoolProps props = { .allocType = type, .location = *l };
	CUmemoryPool pool;

	for (pool = pools; pool; pool = pool->next)
		if (pool->is_default && pool->props.allocType == type &&
		    pool->props.location.type == l->type && pool->props.location.id == l->id)
			return pool;
	pool = pool_new(&props);
	if (pool)
		pool->is_default = true;
	return pool;
}

static CUmemoryPool device_default(int device)
{
	return default_pool(CU_MEM_ALLOCATION_TYPE_PINNED,
			    &(CUmemLocation){ CU_MEM_LOCATION_TYPE_DEVICE, device });
}

CUmemoryPool vg_pool_current(struct vg_gpu *gpu)
{
	return current[gpu->number] ?: device_default((int)gpu->number);
}

void vg_pool_props(CUmemoryPool pool, CUmemPoolProps *props)
{
	*props = pool->props;
}

CUDADRV_API CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice dev)
{
	CUresult r = vg_check_device(pool, dev);

	if (r || (r = vg_enter()))
		return r;
	*pool = device_default(dev);
	return vg_leave(*pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUDADRV_API CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
	CUresult r = vg_check_device(pool, dev);

	if (r || (r = vg_enter()))
		return r;
	*pool = vg_pool_current(&vg.gpu[dev]);
	return vg_leave(*pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUDADRV_API CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
	CUresult r = vg_check_device(&dev, dev);

	if (r || (r = enter_pool(pool)))
		return r;
	if (pool->kind != VG_MEM_DEVICE || pool->gpu != &vg.gpu[dev])
		return vg_leave(CUDA_ERROR_INVALID_VALUE);
	current[dev] = pool;
	return vg_leave(CUDA_SUCCESS);
}

static CUresult get(CUmemoryPool *pool, const CUmemLocation *l, CUmemAllocationType type, bool def)
{
	CUresult r = pool && l ? vg_enter() : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	if ((type != CU_MEM_ALLOCATION_TYPE_PINNED && type != CU_MEM_ALLOCATION_TYPE_MANAGED) ||
	    !known_location(type, l))
		return vg_leave(CUDA_ERROR_INVALID_VALUE);
	if (!def && type == CU_MEM_ALLOCATION_TYPE_PINNED &&
	    l->type == CU_MEM_LOCATION_TYPE_DEVICE)
		*pool = vg_pool_current(&vg.gpu[l->id]);
	else
		*pool = default_pool(type, l);
	return vg_leave(*pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUDADRV_API CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *l,
					    CUmemAllocationType type)
{
	return get(pool, l, type, true);
}

CUDADRV_API CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *l, CUmemAllocationType type)
{
	return get(pool, l, type, false);
}

CUDADRV_API CUresult cuMemSetMemPool(CUmemLocation *l, CUmemAllocationType type, CUmemoryPool pool)
{
	if (!l)
		return CUDA_ERROR_INVALID_VALUE;
	if (l->type != CU_MEM_LOCATION_TYPE_DEVICE || type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return vg_unsimulated("cuMemSetMemPool of other memory than a device's");
	return cuDeviceSetMemPool(l->id, pool);
}

CUDADRV_API CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
	CUresult r = enter_pool(pool);

	if (r)
		return r;
	trim(pool, keep);
	return vg_leave(CUDA_SUCCESS);
}

static CUresult set_high(cuuint64_t *high, cuuint64_t now, cuuint64_t value)
{
	if (value)
		return CUDA_ERROR_INVALID_VALUE;
	*high = now;
	return CUDA_SUCCESS;
}

CUDADRV_API CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
					   void *value)
{
	CUresult r = value ? enter_pool(pool) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	switch (attribute) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		pool->reuse[attribute - 1] = *(int *)value != 0;
		break;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		pool->threshold = *(cuuint64_t *)value;
		break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		r = set_high(&pool->reserved_high, pool->reserved, *(cuuint64_t *)value);
		break;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		r = set_high(&pool->used_high, pool->used, *(cuuint64_t *)value);
		break;
	default:
		r = CUDA_ERROR_INVALID_VALUE;
	}
	return vg_leave(r);
}

CUDADRV_API CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
					   void *value)
{
	CUresult r = value ? enter_pool(pool) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	switch (attribute) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		*(int *)value = pool->reuse[attribute - 1];
		break;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		*(cuuint64_t *)value = pool->threshold;
		break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
		*(cuuint64_t *)value = pool->reserved;
		break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		*(cuuint64_t *)value = pool->reserved_high;
		break;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		*(cuuint64_t *)value = pool->used;
		break;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		*(cuuint64_t *)value = pool->used_high;
		break;
	default:
		r = CUDA_ERROR_INVALID_VALUE;
	}
	return vg_leave(r);
}

/* No device can access another's memory: what can be said is only what is so already */
static bool own(const struct CUmemPoolHandle_st *pool, const CUmemLocation *l)
{
	if (pool->kind != VG_MEM_DEVICE)
		return l->type == CU_MEM_LOCATION_TYPE_HOST || known_location(0, l);
	return l->type == CU_MEM_LOCATION_TYPE_DEVICE && l->id == (int)pool->gpu->number;
}

CUDADRV_API CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t n)
{
	CUresult r = map || !n ? enter_pool(pool) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	for (size_t i = 0; !r && i < n; i++) {
		if (!known_location(0, &map[i].location))
			r = CUDA_ERROR_INVALID_DEVICE;
		else if (own(pool, &map[i].location) == !map[i].flags)
			r = map[i].flags ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
	}
	return vg_leave(r);
}

CUDADRV_API CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool,
					CUmemLocation *l)
{
	CUresult r = flags && l ? enter_pool(pool) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	if (!known_location(0, l))
		return vg_leave(CUDA_ERROR_INVALID_VALUE);
	*flags = own(pool, l) ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
	return vg_leave(CUDA_SUCCESS);
}

/* In streams */

/* @pool NULL: the current one of the stream's device */
static CUresult alloc_async(CUdeviceptr *ptr, size_t size, CUmemoryPool pool, CUstream stream,
			    bool per_thread)
{
	CUDA_MEM_ALLOC_NODE_PARAMS p = { .bytesize = size };
	struct CUstream_st *s;
	struct CUctx_st *ctx;
	CUresult r = ptr && size ? vg_enter_ctx(&ctx) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	r = vg_stream_get(stream, per_thread, ctx, &s);
	if (r)
		return vg_leave(r);
	if (!pool)
		pool = vg_pool_current(s->ctx->gpu);
	if (!pool)
		return vg_leave(CUDA_ERROR_OUT_OF_MEMORY);
	if (!vg_handle_is(pool, VG_POOL))
		return vg_leave(CUDA_ERROR_INVALID_VALUE);
	/* no operation of the stream: early is allowed */
	if (!s->capture)
		return vg_leave(alloc(pool, size, s, ptr));
	p.poolProps = pool->props;
	r = vg_capture_alloc(s, &p);
	if (!r)
		*ptr = p.dptr;
	return vg_leave(r);
}

static CUresult free_async(CUdeviceptr ptr, CUstream stream, bool per_thread)
{
	const struct vg_region *region;
	struct CUstream_st *s;
	struct CUctx_st *ctx;
	struct vg_op *op;
	CUresult r = vg_enter_ctx(&ctx);

	if (r)
		return r;
	r = vg_stream_get(stream, per_thread, ctx, &s);
	if (r)
		return vg_leave(r);
	if (s->capture)
		return vg_leave(vg_capture_free(s, ptr));
	region = vg_region_find(ptr);
	if (!region || region->base != ptr)
		return vg_leave(CUDA_ERROR_INVALID_VALUE);
	op = vg_op_new(VG_OP_FREE);
	if (!op)
		return vg_leave(CUDA_ERROR_OUT_OF_MEMORY);
	op->free.ptr = ptr;
	if (vg_pool_of(ptr))
		r = vg_pool_free(ptr, s);
	else if (vg_graph_mem_find(ptr))
		r = vg_graph_mem_free(ptr);
	else if (region->kind != VG_MEM_DEVICE || region->owner != region->ctx)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		return vg_leave(vg_push(s, op));
	vg_op_free(op);
	return vg_leave(r);
}

CUDADRV_API CUresult cuMemAllocAsync(CUdeviceptr *ptr, size_t size, CUstream stream)
{
	return alloc_async(ptr, size, NULL, stream, false);
}

CUDADRV_API CUresult cuMemAllocAsync_ptsz(CUdeviceptr *ptr, size_t size, CUstream stream)
{
	return alloc_async(ptr, size, NULL, stream, true);
}

CUDADRV_API CUresult cuMemAllocFromPoolAsync(CUdeviceptr *ptr, size_t size, CUmemoryPool pool,
					     CUstream stream)
{
	return pool ? alloc_async(ptr, size, pool, stream, false) : CUDA_ERROR_INVALID_VALUE;
}

CUDADRV_API CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *ptr, size_t size, CUmemoryPool pool,
						  CUstream stream)
{
	return pool ? alloc_async(ptr, size, pool, stream, true) : CUDA_ERROR_INVALID_VALUE;
}

CUDADRV_API CUresult cuMemFreeAsync(CUdeviceptr ptr, CUstream stream)
{
	return free_async(ptr, stream, false);
}

CUDADRV_API CUresult cuMemFreeAsync_ptsz(CUdeviceptr ptr, CUstream stream)
{
	return free_async(ptr, stream, true);
}
