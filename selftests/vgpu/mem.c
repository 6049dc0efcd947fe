// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Device-accessible memory: which regions there are, and the allocations behind them. A device
 * pointer is a host pointer. The engine reads the list at every access of a kernel, without a lock:
 * so a list is never changed but replaced, and the old one goes when the engine is between two
 * blocks. Writers hold vg.lock.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "vgpu.h"

#define LARGE	(64u << 10)	/* from here on allocations have mappings of their own */

struct list {
	struct list *retired;
	uint64_t generation;
	uint64_t until;			/* the generation that replaced it */
	size_t n;
	struct vg_region r[];	/* by address */
};

static struct list empty;
static _Atomic(struct list *) current = &empty;
static struct list *retired;
static uint64_t generations;

static size_t first_above(const struct list *l, uint64_t addr)
{
	size_t low = 0, high = l->n;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (l->r[mid].base > addr)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

static const struct vg_region *lookup(const struct list *l, uint64_t addr)
{
	size_t i = first_above(l, addr);

	return i && addr - l->r[i - 1].base < l->r[i - 1].size ? &l->r[i - 1] : NULL;
}

const struct vg_region *vg_region_find(uint64_t addr)
{
	return lookup(atomic_load(&current), addr);
}

bool vg_region_covers(uint64_t addr, size_t size)
{
	while (size) {	/* adjacent regions count together, as pages do */
		const struct vg_region *r = vg_region_find(addr);
		uint64_t left;

		if (!r)
			return false;
		left = r->base + r->size - addr;
		if (left >= size)
			return true;
		addr += left;
		size -= left;
	}
	return true;
}

static void publish(struct list *l)
{
	struct list *old;

	l->generation = ++generations;
	old = atomic_exchange(&current, l);
	if (old != &empty) {
		old->until = l->generation;
		old->retired = retired;
		retired = old;
	}
}

void vg_region_quiet(void)
{
	uint64_t all = vg_here->quiet = generations;

	for (unsigned int i = 0; i < vg.n_gpus; i++)
		if (vg.gpu[i].running && vg.gpu[i].quiet < all)
			all = vg.gpu[i].quiet;
	for (struct list **p = &retired, *l; (l = *p);) {
		if (l->until > all) {
			p = &l->retired;
			continue;
		}
		*p = l->retired;
		free(l);
	}
}

CUresult vg_region_add(const struct vg_region *r)
{
	struct list *old = atomic_load(&current), *l;
	size_t i = first_above(old, r->base);

	if ((i && old->r[i - 1].base + old->r[i - 1].size > r->base) ||
	    (i < old->n && r->base + r->size > old->r[i].base))
		return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	l = malloc(sizeof(*l) + (old->n + 1) * sizeof(l->r[0]));
	if (!l)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(l->r, old->r, i * sizeof(l->r[0]));
	l->r[i] = *r;
	l->r[i].id = ++vg.ids;
	memcpy(l->r + i + 1, old->r + i, (old->n - i) * sizeof(l->r[0]));
	l->n = old->n + 1;
	publish(l);
	return CUDA_SUCCESS;
}

void vg_region_del(uint64_t base)
{
	struct list *old = atomic_load(&current), *l;
	size_t i = first_above(old, base);

	if (!i || old->r[i - 1].base != base)
		return;
	i--;
	l = malloc(sizeof(*l) + old->n * sizeof(l->r[0]));
	if (!l)
		abort();
	memcpy(l->r, old->r, i * sizeof(l->r[0]));
	memcpy(l->r + i, old->r + i + 1, (old->n - i - 1) * sizeof(l->r[0]));
	l->n = old->n - 1;
	publish(l);
}

void vg_region_absent(uint64_t base, bool absent)
{
	const struct vg_region *r = vg_region_find(base);
	struct list *old = atomic_load(&current), *l;

	if (!r || r->base != base)
		return;
	l = malloc(sizeof(*l) + old->n * sizeof(l->r[0]));
	if (!l)
		abort();
	memcpy(l->r, old->r, old->n * sizeof(l->r[0]));
	l->r[r - old->r].absent = absent;
	l->n = old->n;
	publish(l);
}

/* By the engine only, at every access: the last region found is tried first */
bool vg_access_ok(uint64_t addr, size_t size, bool write)
{
	static __thread uint64_t generation;
	static __thread struct vg_region last;
	struct list *now = atomic_load_explicit(&current, memory_order_acquire);
	const struct vg_region *r;

	if (now->generation != generation || addr - last.base >= last.size) {
		r = lookup(now, addr);
		if (!r || (r->gpu && r->gpu != vg_here))
			return false;
		generation = now->generation;
		last = *r;
	}
	return last.size - (addr - last.base) >= size && !(write && last.readonly) && !last.absent;
}

/*
 * With VGPU_CHECK_MEMORY an allocation has a mapping of its own between two parts that nobody may
 * touch, and what is freed keeps its addresses until 1024 more have been.
 */
#define APART	(64u << 10)
#define FREED	1024

static struct {
	uint64_t base, size;
} freed[FREED];
static unsigned int n_freed;

static size_t pages(size_t size)
{
	return (size + 4095) & ~(size_t)4095;
}

static void *take_apart(size_t size)
{
	char *p = mmap(NULL, pages(size) + 2 * APART, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS |
		       MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	if (mprotect(p + APART, pages(size), PROT_READ | PROT_WRITE)) {
		munmap(p, pages(size) + 2 * APART);
		return NULL;
	}
	return p + APART;
}

static void give_apart(void *p, size_t size)
{
	unsigned int at = n_freed++ % FREED;

	if (freed[at].size)
		munmap((char *)(uintptr_t)freed[at].base - APART,
		       pages(freed[at].size) + 2 * APART);
	freed[at].base = (uintptr_t)p;
	freed[at].size = size;
	/* the memory goes, its addresses stay */
	if (mmap(p, pages(size), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
		 -1, 0) == MAP_FAILED)
		abort();
}

void vg_access_why(uint64_t addr, size_t size, char *buf, size_t n)
{
	const struct list *l = atomic_load(&current);
	const struct vg_region *r;
	size_t i;

	for (i = 0; i < FREED; i++)
		if (freed[i].size && addr - freed[i].base < freed[i].size) {
			snprintf(buf, n, ", in the %llu bytes at 0x%llx, which were freed",
				 (unsigned long long)freed[i].size,
				 (unsigned long long)freed[i].base);
			return;
		}
	i = first_above(l, addr);
	r = i ? &l->r[i - 1] : NULL;
	if (r && r->gpu && r->gpu != vg_here && addr - r->base < r->size) {
		snprintf(buf, n, ", in the %llu bytes at 0x%llx, which are device %u's",
			 (unsigned long long)r->size, (unsigned long long)r->base, r->gpu->number);
		return;
	}
	if (r && r->absent && addr - r->base < r->size)
		snprintf(buf, n, ", in the %llu bytes at 0x%llx, which no graph has allocated",
			 (unsigned long long)r->size, (unsigned long long)r->base);
	else if (r && addr - r->base < r->size + APART)
		snprintf(buf, n, ", %s the %llu bytes at 0x%llx",
			 addr - r->base >= r->size ? "behind" : size > r->size - (addr - r->base) ?
			 "across the end of" : "in, which may not be written,",
			 (unsigned long long)r->size, (unsigned long long)r->base);
	else if (i < l->n && l->r[i].base - addr <= APART)
		snprintf(buf, n, ", before the %llu bytes at 0x%llx",
			 (unsigned long long)l->r[i].size, (unsigned long long)l->r[i].base);
	else
		snprintf(buf, n, ", where nothing is allocated");
}

static void *take_pages(size_t size)
{
	void *p;

	if (vgpu_checks & VGPU_CHECK_MEMORY)
		return take_apart(size);
	if (size >= LARGE) {
		p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS |
			 MAP_NORESERVE, -1, 0);
		return p == MAP_FAILED ? NULL : p;
	}
	/*
	 * 512: what CUDA aligns to. Zeroed, so that a kernel that reads too much is wrong the same
	 * way every time
	 */
	p = aligned_alloc(512, (size + 511) & ~(size_t)511);
	if (p)
		memset(p, 0, (size + 511) & ~(size_t)511);
	return p;
}

static void give_pages(void *p, size_t size)
{
	if (vgpu_checks & VGPU_CHECK_MEMORY)
		give_apart(p, size);
	else if (size >= LARGE)
		munmap(p, size);
	else
		free(p);
}

static void uncharge(const struct vg_gpu *g, size_t size)
{
	vg_shm_lock(g->device);
	g->device->proc[g->proc].mem -= size;
	vg_shm_unlock(g->device);
}

static bool charge(const struct vg_gpu *g, size_t size, uint32_t *object)
{
	uint64_t used = 0;
	bool ok;

	vg_shm_lock(g->device);
	for (uint32_t i = 0; i < VG_PROCS_MAX; i++)
		used += g->device->proc[i].mem;
	ok = size <= g->config.mem && used <= g->config.mem - size;
	if (ok)
		g->device->proc[g->proc].mem += size;
	vg_shm_unlock(g->device);
	if (ok && !vg_rm_take(g, size, object)) {
		uncharge(g, size);
		ok = false;
	}
	return ok;
}

bool vg_charge(const struct vg_gpu *g, size_t size, uint32_t *object)
{
	return charge(g, size, object) || (vg_pools_short() && charge(g, size, object));
}

void vg_uncharge(const struct vg_gpu *g, size_t size, uint32_t object)
{
	vg_rm_give(g, object);
	uncharge(g, size);
}

void *vg_pages_take(const struct vg_gpu *gpu, size_t size, uint32_t *object)
{
	void *p;

	*object = 0;
	if (gpu && !vg_charge(gpu, size, object))
		return NULL;
	p = take_pages(size);
	if (!p && gpu)
		vg_uncharge(gpu, size, *object);
	return p;
}

void vg_pages_give(const struct vg_gpu *gpu, void *p, size_t size, uint32_t object)
{
	give_pages(p, size);
	if (gpu)
		vg_uncharge(gpu, size, object);
}

CUresult vg_mem_alloc(struct CUctx_st *ctx, size_t size, enum vg_mem kind, unsigned int flags,
		      CUdeviceptr *out)
{
	struct vg_region r = { .size = size, .kind = kind, .flags = flags, .ctx = ctx, .owner = ctx,
			       .gpu = kind == VG_MEM_DEVICE ? ctx->gpu : NULL };
	CUresult err;
	void *p;

	if (!size || !out)
		return CUDA_ERROR_INVALID_VALUE;
	if (kind == VG_MEM_DEVICE && !vg_charge(ctx->gpu, size, &r.object))
		return CUDA_ERROR_OUT_OF_MEMORY;
	p = take_pages(size);
	r.base = (uintptr_t)p;
	err = p ? vg_region_add(&r) : CUDA_ERROR_OUT_OF_MEMORY;
	if (err) {
		if (p)
			give_pages(p, size);
		if (kind == VG_MEM_DEVICE)
			vg_uncharge(ctx->gpu, size, r.object);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*out = r.base;
	return CUDA_SUCCESS;
}

/* @host: by cuMemFreeHost. Only whole allocations */
CUresult vg_mem_free(CUdeviceptr ptr, bool host)
{
	const struct vg_region *r = vg_region_find(ptr);
	struct vg_region copy;

	if (!r || r->base != ptr || r->owner != r->ctx || r->kind == VG_MEM_REGISTERED ||
	    r->kind == VG_MEM_GLOBAL || host != (r->kind == VG_MEM_HOST))
		return CUDA_ERROR_INVALID_VALUE;
	copy = *r;
	vg_region_del(ptr);
	give_pages((void *)(uintptr_t)copy.base, copy.size);
	if (copy.kind == VG_MEM_DEVICE)
		vg_uncharge(copy.gpu, copy.size, copy.object);
	return CUDA_SUCCESS;
}

void vg_regions_drop(const void *owner)
{
	struct list *l = atomic_load(&current);
	size_t i = l->n;

	while (i--) {
		struct vg_region r = l->r[i];

		if (r.owner != owner)
			continue;
		vg_region_del(r.base);
		if (r.kind != VG_MEM_REGISTERED && r.kind != VG_MEM_GLOBAL)
			give_pages((void *)(uintptr_t)r.base, r.size);
		if (r.kind == VG_MEM_DEVICE)
			vg_uncharge(r.gpu, r.size, r.object);
		l = atomic_load(&current);	/* what stands before i did not move */
	}
}
