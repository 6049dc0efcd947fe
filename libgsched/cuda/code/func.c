// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Kernels: what a handle stands for, its twins in the current context, and what was learnt from its
 * launches. Lookups go through a small cache per thread. The tables change under gi_lock, and bump
 * gi_hot.generation when an entry is removed.
 *
 * A lookup first counts itself as a user of the cached function, then compares generations. The
 * thread that drops a function first bumps the generation, then looks for users. So one of the two
 * sees the other.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "code/code.h"

#define BUCKETS		1024
/* per function; beyond that, grids of similar size share a shape, up to twice as many shapes */
#define SHAPES_MAX	256

static struct gi_name *names[BUCKETS];		/* gi_lock */
static struct gi_func *funcs[BUCKETS];		/* gi_lock */
static pthread_mutex_t spare_lock = PTHREAD_MUTEX_INITIALIZER;	/* innermost */
static struct gi_func *spare;			/* spare_lock */
static uint64_t numbers;			/* gi_lock: the last number given */
pthread_mutex_t gi_attribute_lock = PTHREAD_MUTEX_INITIALIZER;

__thread struct gi_caches *gi_caches;
static pthread_key_t caches_key;
static bool caches_freed;		/* the key exists */

static void free_caches(void *of_thread)
{
	gi_caches = NULL;
	free(of_thread);
}

static void make_key(void)
{
	caches_freed = !pthread_key_create(&caches_key, free_caches);
}

struct gi_caches *gi_caches_get(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct gi_caches *made;

	if (gi_caches)
		return gi_caches;
	pthread_once(&once, make_key);
	made = caches_freed ? aligned_alloc(_Alignof(struct gi_caches), sizeof(*made)) : NULL;
	if (!made)
		return NULL;
	memset(made, 0, sizeof(*made));
	if (pthread_setspecific(caches_key, made)) {
		free(made);
		return NULL;
	}
	gi_caches = made;
	return made;
}

struct gi_name *gi_name_find(const void *handle)
{
	struct gi_name *n;

	for (n = names[gi_hash(handle) % BUCKETS]; n; n = n->next)
		if (n->handle == handle)
			break;
	return n;
}

uint64_t gi_name_number(const void *handle)
{
	const struct gi_name *n;
	uint64_t number;

	pthread_mutex_lock(&gi_lock);
	n = gi_name_find(handle);
	number = n ? n->number : 0;
	pthread_mutex_unlock(&gi_lock);
	return number;
}

static void name_put(struct gi_name *n)
{
	if (!n || atomic_fetch_sub(&n->refs, 1) != 1)
		return;
	gi_image_put(n->image);
	free(n);
}

/* ---- functions ---- */

/* The function has no user and is in no table. spare_lock held. */
static void free_func(struct gi_func *fn)
{
	unsigned int i;

	for (i = 0; i < GI_SHAPE_BUCKETS; i++) {
		struct gi_shape *shape = atomic_load(&fn->shapes[i]);

		while (shape) {
			struct gi_shape *next = shape->next;

			free(shape);
			shape = next;
		}
	}
	name_put(fn->named);
	atomic_store(&fn->dropped, false);
	fn->next = spare;
	spare = fn;
}

static void free_unused(struct gi_func *fn)
{
	pthread_mutex_lock(&spare_lock);
	/*
	 * Another thread may have freed it, and it may have become another function. Only an
	 * unused function that was dropped is freed here, whichever it is.
	 */
	if (atomic_load(&fn->dropped) && !atomic_load(&fn->users))
		free_func(fn);
	pthread_mutex_unlock(&spare_lock);
}

struct gi_func *gi_func_hold(struct gi_func *fn)
{
	if (fn)
		atomic_fetch_add(&fn->users, 1);
	return fn;
}

void gi_func_put(struct gi_func *fn)
{
	if (fn && atomic_fetch_sub(&fn->users, 1) == 1 && atomic_load(&fn->dropped))
		free_unused(fn);
}

static struct gi_func *new_func(void)
{
	struct gi_func *fn;

	pthread_mutex_lock(&spare_lock);
	fn = spare;
	if (fn)
		spare = fn->next;
	pthread_mutex_unlock(&spare_lock);
	if (!fn)
		return calloc(1, sizeof(*fn));
	/* the count of users is kept, since a thread with a stale cache may be counted in it */
	memset((char *)fn + offsetof(struct gi_func, next), 0,
	       sizeof(*fn) - offsetof(struct gi_func, next));
	return fn;
}

/* Drops functions that were removed from the table. gi_lock held. */
static void drop_all(struct gi_func *list)
{
	struct gi_func *fn;

	if (!list)
		return;
	atomic_fetch_add(&gi_hot.generation, 1);
	while ((fn = list)) {
		list = fn->next;
		atomic_store(&fn->dropped, true);
		free_unused(fn);
	}
}

static bool func_matches(const struct gi_func *fn, const void *handle, const struct gi_image *image,
			 const struct gi_ctx *cx)
{
	return (handle && fn->handle == handle) ||
	       (image && fn->named && fn->named->image == image) || (cx && fn->cx == cx);
}

/* Moves the matching functions of a hash chain to the list. gi_lock held. */
static void unlink_funcs(struct gi_func **p, const void *handle, const struct gi_image *image,
			 const struct gi_ctx *cx, struct gi_func **list)
{
	struct gi_func *fn;

	while ((fn = *p)) {
		if (!func_matches(fn, handle, image, cx)) {
			p = &fn->next;
			continue;
		}
		*p = fn->next;
		fn->next = *list;
		*list = fn;
	}
}

void gi_funcs_drop(struct gi_image *image, struct gi_ctx *cx)
{
	struct gi_func *list = NULL;
	unsigned int i;

	for (i = 0; i < BUCKETS; i++) {
		struct gi_name **n = &names[i];

		unlink_funcs(&funcs[i], NULL, image, cx, &list);
		while (*n) {
			struct gi_name *name = *n;

			if (!(image && name->image == image) && !(cx && name->cx == cx)) {
				n = &name->next;
				continue;
			}
			*n = name->next;
			name_put(name);
		}
	}
	drop_all(list);
}

/* ---- names ---- */

/* Drops what the handle stood for. gi_lock held. */
static void forget_handle(const void *handle)
{
	struct gi_name **p = &names[gi_hash(handle) % BUCKETS];
	struct gi_func *list = NULL;

	while (*p && (*p)->handle != handle)
		p = &(*p)->next;
	if (*p) {
		struct gi_name *n = *p;

		*p = n->next;
		name_put(n);
	}
	unlink_funcs(&funcs[gi_hash(handle) % BUCKETS], handle, NULL, NULL, &list);
	drop_all(list);
}

void gi_name_add(void *handle, bool is_kernel, struct gi_image *image, const char *name,
		 struct gi_ctx *cx)
{
	struct gi_name *n;

	if (!handle)
		return;
	n = gi_name_find(handle);
	if (n && n->image == image && !strcmp(n->name, name)) {
		/* the handle is used in several contexts */
		if (n->cx != cx)
			n->cx = NULL;
		return;
	}
	forget_handle(handle);
	n = image ? malloc(sizeof(*n) + strlen(name) + 1) : NULL;
	if (!n)
		return;
	*n = (struct gi_name){
		.refs = 1, .handle = handle, .number = ++numbers, .is_kernel = is_kernel, .cx = cx,
		.image = image, .cache = -1,
	};
	atomic_fetch_add(&image->refs, 1);
	strcpy(n->name, name);
	n->next = names[gi_hash(handle) % BUCKETS];
	names[gi_hash(handle) % BUCKETS] = n;
	/* from now on it can be launched */
	image->named = true;
	gi_image_recount(image);
}

void gi_name_function(CUkernel kernel, CUfunction function)
{
	struct gi_ctx *cx = gi_current();
	struct gi_name *named;

	pthread_mutex_lock(&gi_lock);
	named = gi_name_find(kernel);
	gi_name_add(function, false, named ? named->image : NULL, named ? named->name : "", cx);
	pthread_mutex_unlock(&gi_lock);
}

/* ---- lookups ---- */

/* gi_lock held. */
static struct gi_func *find_func(const void *handle, const struct gi_ctx *cx)
{
	struct gi_func *fn;

	for (fn = funcs[gi_hash(handle) % BUCKETS]; fn; fn = fn->next)
		if (fn->handle == handle && fn->cx == cx)
			break;
	return fn;
}

/* gi_lock held. */
static struct gi_func *add_func(void *handle, struct gi_ctx *cx, CUfunction original)
{
	struct gi_func *fn = new_func();
	struct gi_name *named = gi_name_find(handle);
	bool twins = named && !named->opaque && named->image->state != GI_IMAGE_NONE;
	unsigned int i;

	if (!fn)
		return NULL;
	if (named)
		atomic_fetch_add(&named->refs, 1);
	fn->handle = handle;
	fn->cx = cx;
	fn->number = named ? named->number : ++numbers;
	fn->named = named;
	fn->original = original;
	fn->opaque = named && named->opaque;
	/* a twin is loaded on demand only, since loading compiles it and launches wait meanwhile */
	for (i = 0; i < GI_FORMS; i++)
		atomic_store(&fn->form[i].state, twins ? GI_TWIN_UNASKED : GI_TWIN_NONE);
	if (named && !fn->opaque && !twins && cx->client)
		gi_why(cx->client, "%s: tier launch: %s", named->name, named->image->why);
	fn->next = funcs[gi_hash(handle) % BUCKETS];
	funcs[gi_hash(handle) % BUCKETS] = fn;
	return fn;
}

/*
 * For a CUkernel, attributes are queried of its function in this context. The driver may load the
 * code for that, and wait for the device.
 */
static CUfunction original_of(void *handle, struct gi_ctx *cx, bool is_kernel)
{
	CUfunction original = handle;

	if (!is_kernel)
		return handle;
	gi_twin_pause.tasks_begin(cx->client);
	if (gi_real.cuKernelGetFunction(&original, handle))
		original = handle;
	gi_twin_pause.tasks_end(cx->client);
	return original;
}

struct gi_func *gi_func_get(void *handle, struct gi_ctx *cx)
{
	unsigned int generation = atomic_load(&gi_hot.generation);
	struct gi_caches *caches = gi_caches_get();
	struct gi_cached *at = caches ? &caches->funcs[gi_hash(handle) % GI_CACHED] : NULL;
	struct gi_func *fn;
	struct gi_name *named;
	CUfunction original;
	bool is_kernel;

	if (at && at->fn && at->handle == handle && at->cx == cx && at->generation == generation) {
		fn = gi_func_hold(at->fn);
		if (atomic_load(&gi_hot.generation) == generation)
			return fn;
		gi_func_put(fn);
	}
	pthread_mutex_lock(&gi_lock);
	fn = find_func(handle, cx);
	if (!fn) {
		named = gi_name_find(handle);
		is_kernel = named && named->is_kernel;
		pthread_mutex_unlock(&gi_lock);
		original = original_of(handle, cx, is_kernel);
		pthread_mutex_lock(&gi_lock);
		fn = find_func(handle, cx);
		if (!fn)
			fn = add_func(handle, cx, original);
	}
	gi_func_hold(fn);
	generation = atomic_load(&gi_hot.generation);
	pthread_mutex_unlock(&gi_lock);
	if (at)
		*at = (struct gi_cached){ handle, cx, fn, generation };
	return fn;
}

/* ---- shapes ---- */

static _Atomic(struct gi_shape *) *bucket_of(struct gi_func *fn, const struct gi_shape *key)
{
	uint64_t h = (key->blocks ^ (uint64_t)key->threads << 32 ^ (uint64_t)key->shared << 40) *
		     0x9e3779b97f4a7c15ull;

	return &fn->shapes[h >> 32 & (GI_SHAPE_BUCKETS - 1)];
}

static struct gi_shape *shape_find(_Atomic(struct gi_shape *) *bucket, const struct gi_shape *key)
{
	struct gi_shape *shape;

	for (shape = atomic_load_explicit(bucket, memory_order_acquire); shape; shape = shape->next)
		if (shape->blocks == key->blocks && shape->threads == key->threads &&
		    shape->shared == key->shared)
			break;
	return shape;
}

struct gi_shape *gi_shape_get(struct gi_func *fn, uint64_t blocks, uint32_t threads,
			      uint32_t shared)
{
	struct gi_shape key = { .blocks = blocks, .threads = threads, .shared = shared };
	struct gi_shape *shape, *head;
	_Atomic(struct gi_shape *) *bucket = bucket_of(fn, &key);
	int m = 0;

	shape = shape_find(bucket, &key);
	if (shape)
		return shape;
	/*
	 * For a program that never launches the same grid twice, one shape stands for all grids of
	 * similar size with the same blocks.
	 */
	if (atomic_load_explicit(&fn->n_shapes, memory_order_relaxed) >= SHAPES_MAX && blocks) {
		key.blocks = 1ull << (63 - __builtin_clzll(blocks));
		bucket = bucket_of(fn, &key);
		shape = shape_find(bucket, &key);
		if (shape ||
		    atomic_load_explicit(&fn->n_shapes, memory_order_relaxed) >= 2 * SHAPES_MAX)
			return shape;
	}
	shape = calloc(1, sizeof(*shape));
	if (!shape)
		return NULL;
	shape->blocks = key.blocks;
	shape->threads = threads;
	shape->shared = shared;
	if (gi_real.cuOccupancyMaxActiveBlocksPerMultiprocessor(&m, fn->original, threads,
								shared) || m < 1)
		m = 1;
	shape->original_m = m > 32 ? 32 : m;
	atomic_fetch_add_explicit(&fn->n_shapes, 1, memory_order_relaxed);
	head = atomic_load_explicit(bucket, memory_order_acquire);
	do
		shape->next = head;
	while (!atomic_compare_exchange_weak(bucket, &head, shape));
	return shape;
}

/* Occupancy of the form; 0: it cannot be launched with this shape. */
unsigned int gi_form_m(struct gi_func *fn, struct gi_shape *shape, enum gi_form_id id)
{
	unsigned int m = atomic_load_explicit(&shape->m[id], memory_order_relaxed);
	int got = 0;

	if (m)
		return m - 1;
	if (gi_real.cuOccupancyMaxActiveBlocksPerMultiprocessor(&got, fn->form[id].function,
								shape->threads,
								gi_form_dynamic(&fn->form[id],
										shape->shared)) ||
	    got < 0)
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

static void apply_setting(struct gi_func *fn, const struct setting *set)
{
	unsigned int i;

	if (!set->is_cache && set->attribute >= CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET &&
	    set->value)
		fn->opaque = true;
	if (!set->is_cache && set->attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
		atomic_store(&fn->own_carveout, true);
	for (i = 0; i < GI_FORMS; i++) {
		if (atomic_load(&fn->form[i].state) != GI_TWIN_READY)
			continue;
		if (set->is_cache)
			gi_real.cuFuncSetCacheConfig(fn->form[i].function, set->cache);
		else
			gi_twin_set_attribute(fn, &fn->form[i].kernel, fn->form[i].function,
					      set->attribute, set->value);
	}
}

/*
 * The handle's functions, one per context, as an array of held references; NULL: none. gi_lock
 * held.
 */
static struct gi_func **funcs_of(const void *handle, unsigned int *n)
{
	struct gi_func *fn, **list;

	*n = 0;
	for (fn = funcs[gi_hash(handle) % BUCKETS]; fn; fn = fn->next)
		*n += fn->handle == handle;
	list = *n ? malloc(*n * sizeof(struct gi_func *)) : NULL;
	*n = 0;
	for (fn = list ? funcs[gi_hash(handle) % BUCKETS] : NULL; fn; fn = fn->next)
		if (fn->handle == handle)
			list[(*n)++] = gi_func_hold(fn);
	return list;
}

static void apply_to_handle(void *handle, const struct setting *set)
{
	struct gi_func **list;
	struct gi_name *named;
	unsigned int n;

	pthread_mutex_lock(&gi_attribute_lock);
	pthread_mutex_lock(&gi_lock);
	named = gi_name_find(handle);
	if (named && set->is_cache)
		named->cache = set->cache;
	else if (named && set->attribute >= CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET &&
		 set->value)
		named->opaque = true;
	list = funcs_of(handle, &n);
	pthread_mutex_unlock(&gi_lock);
	while (n--) {
		apply_setting(list[n], set);
		gi_func_put(list[n]);
	}
	free(list);
	pthread_mutex_unlock(&gi_attribute_lock);
}

void gi_func_attribute(void *handle, CUfunction_attribute attribute, int value)
{
	const struct setting set = { .attribute = attribute, .value = value };

	apply_to_handle(handle, &set);
}

void gi_func_cache_config(void *handle, CUfunc_cache cache)
{
	const struct setting set = { .is_cache = true, .cache = cache };

	apply_to_handle(handle, &set);
}

void gi_func_reset(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	memcpy(&spare_lock, &fresh, sizeof(fresh));
	memcpy(&gi_attribute_lock, &fresh, sizeof(fresh));
	spare = NULL;
	memset(names, 0, sizeof(names));
	memset(funcs, 0, sizeof(funcs));
}
