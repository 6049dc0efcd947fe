// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Texture and surface references of modules. The driver uses what is bound to a reference when the
 * kernel is launched. A twin's wings are launched later, when the program may have bound something
 * else. So twins get handles of texture and surface objects (rewriter/gsr.h). An object is created
 * at the first launch after a change of the binding, and lives until the next change and until the
 * tasks that use it have ended. Bindings are recorded here; the sampling is queried from the
 * driver. If a binding is unknown, or no object can be created, the original is launched.
 */
#include <stdlib.h>
#include <string.h>
#include "code/code.h"

struct object {
	CUcontext context;
	uint64_t handle;
	bool surface;
	unsigned int users;	/* tasks, and the reference while the object is current */
	CUDA_RESOURCE_DESC resource;
	CUDA_TEXTURE_DESC texture;
};

struct reference {
	struct reference *next;
	void *handle;		/* CUtexref or CUsurfref */
	struct gi_image *image;
	struct gi_ctx *cx;
	bool surface, bound;
	bool unusable;		/* no object can be created for it in this state */
	bool stale;		/* its sampling may have changed since the object was created */
	CUDA_RESOURCE_DESC resource;
	struct object *object;	/* NULL: not created since the binding changed */
	char name[];
};

struct gi_bound {
	unsigned int n;
	struct object *object[];
};

/* Innermost; the driver's calls under it do not wait for the GPU */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct reference *references;

static struct reference *find_reference(const void *handle)
{
	struct reference *r;

	for (r = references; r && r->handle != handle; r = r->next)
		;
	return r;
}

/* @gone: its context is or will be destroyed, or workers may still use the object. */
static void put_object(struct object *o, bool gone)
{
	CUcontext before = NULL;

	if (!o || --o->users)
		return;
	if (!gone) {
		gi_real.cuCtxGetCurrent(&before);
		if (before != o->context)
			gone = gi_real.cuCtxSetCurrent(o->context);
		if (!gone && o->surface)
			gi_real.cuSurfObjectDestroy(o->handle);
		else if (!gone)
			gi_real.cuTexObjectDestroy(o->handle);
		if (before != o->context)
			gi_real.cuCtxSetCurrent(before);
	}
	free(o);
}

static void drop_object(struct reference *r)
{
	put_object(r->object, false);
	r->object = NULL;
	r->unusable = r->stale = false;
}

/* Removes it from the list. */
static void drop_reference(struct reference **p, bool gone)
{
	struct reference *r = *p;

	*p = r->next;
	put_object(r->object, gone);
	free(r);
}

/* ---- objects ---- */

/* A driver without the query function does not have the property, so the default is right. */
static bool query_ok(CUresult rc)
{
	return !rc || rc == CUDA_ERROR_NOT_FOUND;
}

static bool read_sampling(CUtexref t, CUDA_TEXTURE_DESC *d)
{
	int i, anisotropy = 0;

	for (i = 0; i < 3; i++)
		if (gi_real.cuTexRefGetAddressMode(&d->addressMode[i], t, i))
			return false;
	if (gi_real.cuTexRefGetFilterMode(&d->filterMode, t) ||
	    gi_real.cuTexRefGetFlags(&d->flags, t) ||
	    !query_ok(gi_real.cuTexRefGetMaxAnisotropy(&anisotropy, t)) ||
	    !query_ok(gi_real.cuTexRefGetMipmapFilterMode(&d->mipmapFilterMode, t)) ||
	    !query_ok(gi_real.cuTexRefGetMipmapLevelBias(&d->mipmapLevelBias, t)) ||
	    !query_ok(gi_real.cuTexRefGetMipmapLevelClamp(&d->minMipmapLevelClamp,
							  &d->maxMipmapLevelClamp, t)) ||
	    !query_ok(gi_real.cuTexRefGetBorderColor(d->borderColor, t)))
		return false;
	d->maxAnisotropy = (unsigned int)anisotropy;
	return true;
}

/*
 * An array is read in its own format. If the program has set another one since it was bound, the
 * format is unknown.
 */
static bool read_format(CUtexref t, CUDA_RESOURCE_DESC *d)
{
	CUDA_ARRAY3D_DESCRIPTOR a;
	CUarray_format format;
	int channels;

	if (d->resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY)
		return true;
	if (gi_real.cuTexRefGetFormat(&format, &channels, t))
		return false;
	switch (d->resType) {
	case CU_RESOURCE_TYPE_LINEAR:
		d->res.linear.format = format;
		d->res.linear.numChannels = (unsigned int)channels;
		return true;
	case CU_RESOURCE_TYPE_PITCH2D:
		return format == d->res.pitch2D.format &&
		       (unsigned int)channels == d->res.pitch2D.numChannels;
	default:
		return !gi_real.cuArray3DGetDescriptor_v2(&a, d->res.array.hArray) &&
		       a.Format == format && a.NumChannels == (unsigned int)channels;
	}
}

/* Describes an object for the current state; NULL: the state is unknown. */
static struct object *describe_object(const struct reference *r)
{
	struct object *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->context = r->cx->handle;
	o->surface = r->surface;
	o->users = 1;
	memcpy(&o->resource, &r->resource, sizeof(o->resource));
	if (r->surface ||
	    (read_sampling(r->handle, &o->texture) && read_format(r->handle, &o->resource)))
		return o;
	gi_debug("not known how the reference %s is read", r->name);
	free(o);
	return NULL;
}

/* Padding is 0 in both; otherwise an object is created needlessly. */
static bool same_object(const struct object *a, const struct object *b)
{
	/* NOLINTBEGIN(bugprone-suspicious-memory-comparison) */
	return !memcmp(&a->resource, &b->resource, sizeof(a->resource)) &&
	       !memcmp(&a->texture, &b->texture, sizeof(a->texture));
	/* NOLINTEND(bugprone-suspicious-memory-comparison) */
}

/*
 * Replaces @before, unless it is the same. Old versions of the runtime repeat all settings before
 * each launch.
 */
static struct object *make_object(const struct reference *r, struct object *before)
{
	struct object *o = describe_object(r);
	unsigned long long handle = 0;
	CUresult rc;

	if (o && before && same_object(o, before)) {
		free(o);
		return before;
	}
	put_object(before, false);
	if (!o)
		return NULL;
	rc = o->surface ? gi_real.cuSurfObjectCreate(&handle, &o->resource) :
			  gi_real.cuTexObjectCreate(&handle, &o->resource, &o->texture, NULL);
	if (rc) {
		gi_debug("no object for the reference %s (error %d)", r->name, rc);
		free(o);
		return NULL;
	}
	o->handle = handle;
	return o;
}

static struct object *take_object(const struct gi_func *fn, const struct gsr_reference *wanted)
{
	struct reference *r;

	for (r = references; r; r = r->next)
		if (r->image == fn->named->image && r->cx == fn->cx &&
		    r->surface == wanted->surface && !strcmp(r->name, wanted->name))
			break;
	if (!r || !r->bound || r->unusable)
		return NULL;
	if (!r->object || r->stale)
		r->object = make_object(r, r->object);
	r->stale = false;
	r->unusable = !r->object;
	if (r->object)
		r->object->users++;
	return r->object;
}

struct gi_bound *gi_bound_take(const struct gi_func *fn, const struct gi_form *form)
{
	const struct gsr_kernel *k = &form->kernel;
	struct gi_bound *b = calloc(1, sizeof(*b) + k->n_references * sizeof(*b->object));

	if (!b)
		return NULL;
	pthread_mutex_lock(&lock);
	while (b->n < k->n_references && (b->object[b->n] = take_object(fn, &k->references[b->n])))
		b->n++;
	pthread_mutex_unlock(&lock);
	if (b->n == k->n_references)
		return b;
	gi_debug("%s: not known what is bound to %s: the original", k->name,
		 k->references[b->n].name);
	gi_bound_put(b, false);
	return NULL;
}

void gi_bound_put(struct gi_bound *b, bool lost)
{
	if (!b)
		return;
	pthread_mutex_lock(&lock);
	while (b->n)
		put_object(b->object[--b->n], lost);
	pthread_mutex_unlock(&lock);
	free(b);
}

void gi_bound_handles(const struct gi_bound *b, void *to)
{
	unsigned int i;

	for (i = 0; i < b->n; i++)
		memcpy((char *)to + i * sizeof(uint64_t), &b->object[i]->handle, sizeof(uint64_t));
}

void gi_references_drop(const struct gi_image *image, const struct gi_ctx *cx, bool gone)
{
	struct reference **p = &references;

	pthread_mutex_lock(&lock);
	while (*p) {
		if ((*p)->image == image || (*p)->cx == cx)
			drop_reference(p, gone);
		else
			p = &(*p)->next;
	}
	pthread_mutex_unlock(&lock);
}

void gi_references_reset(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	memcpy(&lock, &fresh, sizeof(lock));
	references = NULL;
}

/* ---- calls of the program ---- */

void gi_reference_new(void *handle, CUmodule module, const char *name, bool surface)
{
	struct gi_ctx *cx = gi_current();
	struct gi_image *image;
	struct reference **p, *r;

	pthread_mutex_lock(&gi_lock);
	pthread_mutex_lock(&lock);
	image = cx && cx->client ? gi_image_find(module) : NULL;
	for (p = &references; *p && (*p)->handle != handle; p = &(*p)->next)
		;
	r = *p;
	/* the driver reuses the handle of a reference that is gone */
	if (r && (r->image != image || r->cx != cx || r->surface != surface ||
		  strcmp(r->name, name) != 0)) {
		drop_reference(p, true);
		r = NULL;
	}
	if (image && !r)
		r = calloc(1, sizeof(*r) + strlen(name) + 1);
	if (image && r && !r->handle) {
		r->handle = handle;
		r->image = image;
		r->cx = cx;
		r->surface = surface;
		strcpy(r->name, name);
		r->next = references;
		references = r;
	}
	pthread_mutex_unlock(&lock);
	pthread_mutex_unlock(&gi_lock);
}

/* Recording is atomic with the call, so launches see both or neither. */
void gi_reference_begin(void)
{
	pthread_mutex_lock(&lock);
}

CUresult gi_reference_bound(void *handle, CUresult rc, const CUDA_RESOURCE_DESC *resource)
{
	struct reference *r = rc ? NULL : find_reference(handle);

	if (r) {
		drop_object(r);
		r->bound = resource;
		if (resource)
			r->resource = *resource;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

/* The next launch queries the sampling. */
CUresult gi_reference_sampled(void *handle, CUresult rc)
{
	struct reference *r = rc ? NULL : find_reference(handle);

	if (r) {
		r->stale = true;
		r->unusable = false;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

/*
 * No object may be created for a destroyed array. Linear memory is freed by cuMemFree() and not
 * seen here, but then cuTexObjectCreate() fails.
 */
void gi_reference_unbind(CUresourcetype type, const void *array)
{
	struct reference *r;

	pthread_mutex_lock(&lock);
	for (r = references; r; r = r->next) {
		const CUDA_RESOURCE_DESC *d = &r->resource;

		if (!r->bound || d->resType != type ||
		    array != (type == CU_RESOURCE_TYPE_ARRAY ?
			      (void *)d->res.array.hArray :
			      (void *)d->res.mipmap.hMipmappedArray))
			continue;
		drop_object(r);
		r->bound = false;
	}
	pthread_mutex_unlock(&lock);
}
