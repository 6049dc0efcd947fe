// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Kernels: what a handle stands for, its twin in the current context, and what was learnt of its launches. Lookups go
 * through a small cache per thread; the tables change under gi_lock and bump gi_generation when something leaves them.
 */
#include <stdlib.h>
#include <string.h>
#include "code/code.h"

#define BUCKETS		1024
#define CACHED		512	/* of a thread: frameworks launch hundreds of kernels in turns */
#define SHAPES_MAX	256

static struct gi_name *names[BUCKETS];		/* gi_lock */
static struct gi_func *funcs[BUCKETS];		/* gi_lock */

static __thread struct {
	void *handle;
	struct gi_ctx *cx;
	struct gi_func *fn;
	unsigned int generation;
} cache[CACHED];

static unsigned int hash(const void *p)
{
	return ((uintptr_t)p * 0x9e3779b97f4a7c15ull) >> 40;
}

struct gi_name *gi_name_find(const void *handle)
{
	struct gi_name *n;

	for (n = names[hash(handle) % BUCKETS]; n; n = n->next)
		if (n->handle == handle)
			break;
	return n;
}

void gi_name_add(void *handle, bool is_kernel, struct gi_image *image, const char *name)
{
	struct gi_name *n;

	if (!handle || !image || gi_name_find(handle))
		return;
	n = malloc(sizeof(*n) + strlen(name) + 1);
	if (!n)
		return;
	*n = (struct gi_name){ .handle = handle, .is_kernel = is_kernel, .image = image, .cache = -1 };
	strcpy(n->name, name);
	n->next = names[hash(handle) % BUCKETS];
	names[hash(handle) % BUCKETS] = n;
}

void gi_name_function(CUkernel kernel, CUfunction function)
{
	struct gi_name *named;

	pthread_mutex_lock(&gi_lock);
	named = gi_name_find(kernel);
	if (named)
		gi_name_add(function, false, named->image, named->name);
	pthread_mutex_unlock(&gi_lock);
}

static void free_func(struct gi_func *fn)
{
	struct gi_shape *shape = atomic_load(&fn->shapes);

	while (shape) {
		struct gi_shape *next = shape->next;

		free(shape);
		shape = next;
	}
	free((void *)fn->params);
	free(fn);
}

/* Everything of @image, or of @cx. Their tasks are over. */
void gi_funcs_drop(struct gi_image *image, struct gi_ctx *cx)
{
	unsigned int i;

	for (i = 0; i < BUCKETS; i++) {
		struct gi_func **p = &funcs[i];
		struct gi_name **n = &names[i];

		while (*p) {
			struct gi_func *fn = *p;

			if ((image && fn->named && fn->named->image == image) || (cx && fn->cx == cx)) {
				*p = fn->next;
				free_func(fn);
			} else {
				p = &fn->next;
			}
		}
		while (image && *n) {
			struct gi_name *name = *n;

			if (name->image != image) {
				n = &name->next;
				continue;
			}
			*n = name->next;
			free(name);
		}
	}
	atomic_fetch_add(&gi_generation, 1);
}

static struct gi_func *add(void *handle, struct gi_ctx *cx)
{
	struct gi_func *fn = calloc(1, sizeof(*fn));
	struct gi_name *named = gi_name_find(handle);
	bool twins = named && !named->opaque && named->image->form[GI_TWIN].state != GI_IMAGE_NONE;
	unsigned int i;

	if (!fn)
		return NULL;
	fn->handle = handle;
	fn->cx = cx;
	fn->named = named;
	fn->original = handle;
	/* a kernel's handle: questions want the function in this context */
	if (named && named->is_kernel && gi_real.cuKernelGetFunction(&fn->original, handle))
		fn->original = handle;
	fn->opaque = named && named->opaque;
	/* loading a twin compiles it, and launches wait for that: only for kernels that want one */
	for (i = 0; i < GI_FORMS; i++)
		atomic_store(&fn->form[i].state, twins ? GI_TWIN_UNASKED : GI_TWIN_NONE);
	if (named && !fn->opaque && !twins && cx->client)
		gi_why(cx->client, "%s: tier launch: %s", named->name, named->image->form[GI_TWIN].why);
	fn->next = funcs[hash(handle) % BUCKETS];
	funcs[hash(handle) % BUCKETS] = fn;
	return fn;
}

struct gi_func *gi_func_get(void *handle, struct gi_ctx *cx)
{
	unsigned int generation = atomic_load_explicit(&gi_generation, memory_order_acquire);
	unsigned int i = hash(handle) % CACHED;
	struct gi_func *fn;

	if (cache[i].handle == handle && cache[i].cx == cx && cache[i].generation == generation)
		return cache[i].fn;
	pthread_mutex_lock(&gi_lock);
	for (fn = funcs[hash(handle) % BUCKETS]; fn; fn = fn->next)
		if (fn->handle == handle && fn->cx == cx)
			break;
	if (!fn)
		fn = add(handle, cx);
	pthread_mutex_unlock(&gi_lock);
	cache[i].handle = handle;
	cache[i].cx = cx;
	cache[i].fn = fn;
	cache[i].generation = generation;
	return fn;
}

struct gi_shape *gi_shape_get(struct gi_func *fn, uint64_t blocks, uint32_t threads, uint32_t shared)
{
	struct gi_shape *shape, *head = atomic_load_explicit(&fn->shapes, memory_order_acquire);
	unsigned int n = 0;
	int m = 0;

	for (shape = head; shape; shape = shape->next, n++)
		if (shape->blocks == blocks && shape->threads == threads && shape->shared == shared)
			return shape;
	/* a program that never launches the same grid twice: the newest shapes stand for all */
	if (n >= SHAPES_MAX)
		return head;
	shape = calloc(1, sizeof(*shape));
	if (!shape)
		return NULL;
	shape->blocks = blocks;
	shape->threads = threads;
	shape->shared = shared;
	if (gi_real.cuOccupancyMaxActiveBlocksPerMultiprocessor(&m, fn->original, threads, shared) || m < 1)
		m = 1;
	shape->original_m = m > 32 ? 32 : m;
	do
		shape->next = head;
	while (!atomic_compare_exchange_weak(&fn->shapes, &head, shape));
	return shape;
}

/* 0: the form cannot be launched with this shape. */
unsigned int gi_form_m(struct gi_func *fn, struct gi_shape *shape, enum gi_form_id id)
{
	unsigned int m = atomic_load_explicit(&shape->m[id], memory_order_relaxed);
	int got = 0;

	if (m)
		return m - 1;
	if (gi_real.cuOccupancyMaxActiveBlocksPerMultiprocessor(&got, fn->form[id].function, shape->threads,
								shape->shared) || got < 0)
		got = 0;
	if (got > 32)
		got = 32;
	atomic_store_explicit(&shape->m[id], got + 1, memory_order_relaxed);
	return got;
}

/* ---- attributes ---- */

struct setting {
	CUfunction_attribute attribute;
	CUfunc_cache cache;
	int value;
	bool is_cache;
};

static void apply(struct gi_func *fn, const struct setting *set)
{
	unsigned int i;

	if (!set->is_cache && set->attribute >= CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET && set->value)
		fn->opaque = true;
	if (!set->is_cache && set->attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
		atomic_store(&fn->own_carveout, true);
	for (i = 0; i < GI_FORMS; i++) {
		if (atomic_load(&fn->form[i].state) != GI_TWIN_READY)
			continue;
		if (set->is_cache)
			gi_real.cuFuncSetCacheConfig(fn->form[i].function, set->cache);
		else
			gi_real.cuFuncSetAttribute(fn->form[i].function, set->attribute, set->value);
	}
}

static void apply_to(void *handle, const struct setting *set)
{
	struct gi_name *named;
	struct gi_func *fn;

	pthread_mutex_lock(&gi_lock);
	named = gi_name_find(handle);
	if (named && set->is_cache)
		named->cache = set->cache;
	else if (named && set->attribute >= CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET && set->value)
		named->opaque = true;
	for (fn = funcs[hash(handle) % BUCKETS]; fn; fn = fn->next)
		if (fn->handle == handle)
			apply(fn, set);
	pthread_mutex_unlock(&gi_lock);
}

void gi_func_attribute(void *handle, CUfunction_attribute attribute, int value)
{
	const struct setting set = { .attribute = attribute, .value = value };

	apply_to(handle, &set);
}

void gi_func_cache_config(void *handle, CUfunc_cache cache)
{
	const struct setting set = { .is_cache = true, .cache = cache };

	apply_to(handle, &set);
}

void gi_func_reset(void)
{
	memset(names, 0, sizeof(names));
	memset(funcs, 0, sizeof(funcs));
}
