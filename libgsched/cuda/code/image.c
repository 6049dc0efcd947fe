// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Modules and libraries. The driver loads them; the interposer keeps the PTX, and records which
 * kernels belong to which image. The image's memory is valid only during the call, so its PTX is
 * copied at once. A library that is loaded before there is a context keeps its image if the program
 * promised to preserve it (CU_LIBRARY_BINARY_IS_PRESERVED), else a copy of it.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "code/code.h"

#define COPY_MAX	(64u << 20)
#define BUCKETS		256

static struct gi_image *images[BUCKETS];	/* gi_lock */
static struct gi_module *modules[BUCKETS];	/* gi_lock */

static struct gi_image *find_image(const void *handle)
{
	struct gi_image *i;

	for (i = images[gi_hash(handle) % BUCKETS]; i; i = i->next)
		if (i->handle == handle)
			break;
	return i;
}

static const struct gi_module *module_find(const void *handle)
{
	const struct gi_module *m;

	for (m = modules[gi_hash(handle) % BUCKETS]; m; m = m->next)
		if (m->handle == handle)
			break;
	return m;
}

struct gi_image *gi_image_find(const void *handle)
{
	struct gi_image *i = handle ? find_image(handle) : NULL;
	const struct gi_module *m = handle && !i ? module_find(handle) : NULL;

	return m ? m->image : i;
}

struct gi_ctx *gi_image_context(const struct gi_image *image, const void *module)
{
	const struct gi_module *m = module_find(module);

	return m && m->image == image ? m->cx : NULL;
}

struct gi_image *gi_image_next(struct gi_image *image)
{
	unsigned int i = image ? gi_hash(image->handle) % BUCKETS + 1 : 0;

	if (image && image->next)
		return image->next;
	while (i < BUCKETS && !images[i])
		i++;
	return i < BUCKETS ? images[i] : NULL;
}

/* Removes from a hash chain: by handle, by image or by context. gi_lock held. */
static void unlink_modules(struct gi_module **p, const void *handle, const struct gi_image *image,
			   const struct gi_ctx *cx)
{
	struct gi_module *m;

	while ((m = *p)) {
		if (!(handle && m->handle == handle) && !(image && m->image == image) &&
		    !(cx && m->cx == cx)) {
			p = &m->next;
			continue;
		}
		*p = m->next;
		free(m);
	}
}

/* gi_lock held. */
static void modules_drop(const struct gi_image *image, const struct gi_ctx *cx)
{
	unsigned int i;

	for (i = 0; i < BUCKETS; i++)
		unlink_modules(&modules[i], NULL, image, cx);
}

/* Marks an image that cannot be rewritten. */
static void mark_unusable(struct gi_image *image, const char *why)
{
	image->state = GI_IMAGE_NONE;
	snprintf(image->why, sizeof(image->why), "%s", why);
}

void gi_image_loaded(void *handle, bool library, const void *data, size_t max, bool preserved)
{
	struct gi_ctx *cx = gi_current();
	struct gi_image *image, *stale;
	struct gsr_error err;
	size_t size;

	/* a handle is reused only after its old image is gone */
	stale = gi_image_take(handle);
	if (stale)
		gi_image_drop(stale, true);
	if (!handle || (cx && !cx->client))
		return;
	image = calloc(1, sizeof(*image));
	if (!image)
		return;
	atomic_store(&image->refs, 1);
	image->handle = handle;
	image->library = library;
	if (!library)
		gi_real.cuCtxGetCurrent(&image->context);
	err.message[0] = 0;
	image->source = gi_linked_source(data, max, &image->source_size);
	if (image->source) {
		gi_debug("image: linked by the program from PTX");
	} else if (cx) {
		if (gsr_image_source(data, max, cx->client->arch, &image->source,
				     &image->source_size, &err)) {
			mark_unusable(image, err.message[0] ? err.message : "no PTX in the image");
			gi_debug("image: %s", image->why);
		}
	} else if (preserved) {
		image->raw = data;
	} else {
		/*
		 * The copy is read later without a known length, so the image must have its size in
		 * itself. The pointer in a file's wrapper would not be valid.
		 */
		size = max != SIZE_MAX && gsr_image_kind(data, max) == GSR_IMAGE_WRAPPER ? 0 :
		       gsr_image_size(data, max);
		if (size && size <= COPY_MAX)
			image->raw_copy = calloc(1, size + 1);
		if (image->raw_copy)
			memcpy(image->raw_copy, data, size);
		image->raw = image->raw_copy;
		if (!image->raw)
			mark_unusable(image, "loaded before there was a context");
	}
	image->functions = image->source ? gi_names_functions(image->source, image->source_size) :
			   image->raw != NULL;
	pthread_mutex_lock(&gi_lock);
	image->next = images[gi_hash(handle) % BUCKETS];
	images[gi_hash(handle) % BUCKETS] = image;
	if (cx && image->state == GI_IMAGE_NEW && !gi_direct(cx->client))
		gi_twin_image(image, cx->client->arch);
	pthread_mutex_unlock(&gi_lock);
}

void gi_image_file(void *handle, bool library, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *map;

	if (fd < 0)
		return;
	if (!fstat(fd, &st) && st.st_size > 0) {
		map = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (map != MAP_FAILED) {
			gi_image_loaded(handle, library, map, st.st_size, false);
			munmap(map, st.st_size);
		}
	}
	close(fd);
}

static bool has_twins(const struct gi_image *image)
{
	unsigned int i;

	if (image->state == GI_IMAGE_READY) {
		for (i = 0; i < image->desc.n_kernels; i++)
			if (image->desc.kernels[i].tier == GSR_TIER_BLOCK)
				return true;
		return false;
	}
	return image->state == GI_IMAGE_NEW;
}

void gi_image_recount(struct gi_image *image)
{
	const bool rewritable = image->named && has_twins(image);

	if (image->rewritable == rewritable)
		return;
	image->rewritable = rewritable;
	if (rewritable && !atomic_fetch_add(&gi_hot.rewritable, 1))
		gi_debug("the first kernel that may have a twin");
	if (!rewritable)
		atomic_fetch_sub(&gi_hot.rewritable, 1);
}

/* Removes the image from the table, whose reference passes to the caller. gi_lock held. */
static struct gi_image *unlink_image(struct gi_image *image)
{
	struct gi_image **p;

	for (p = &images[gi_hash(image->handle) % BUCKETS]; *p != image; p = &(*p)->next)
		;
	*p = image->next;
	if (image->library)
		modules_drop(image, NULL);
	gi_funcs_drop(image, NULL);
	gi_twin_cancel(image, NULL);
	image->named = false;
	gi_image_recount(image);
	return image;
}

struct gi_image *gi_image_take(const void *handle)
{
	struct gi_image *image;

	pthread_mutex_lock(&gi_lock);
	image = find_image(handle);
	if (image)
		unlink_image(image);
	pthread_mutex_unlock(&gi_lock);
	return image;
}

bool gi_image_unused(const struct gi_image *image)
{
	return atomic_load(&image->refs) == 1;
}

void gi_image_put(struct gi_image *image)
{
	if (atomic_fetch_sub(&image->refs, 1) != 1)
		return;
	gi_initial_drop(image, NULL);
	gi_rewritten_free(image);
	free(image->raw_copy);
	free(image);
}

void gi_image_drop(struct gi_image *image, bool gone)
{
	gi_twin_unload(image, NULL, gone);
	gi_references_drop(image, NULL, gone);
	gi_image_put(image);
}

void gi_images_drop(CUcontext context)
{
	struct gi_image *image;

	do {
		pthread_mutex_lock(&gi_lock);
		image = gi_image_next(NULL);
		while (image && (!image->context || image->context != context))
			image = gi_image_next(image);
		if (image)
			unlink_image(image);
		pthread_mutex_unlock(&gi_lock);
		if (image)
			gi_image_drop(image, true);
	} while (image);
}

void gi_image_kernel(void *kernel, bool is_kernel, const void *image, const char *name)
{
	struct gi_ctx *cx = is_kernel ? NULL : gi_current();
	struct gi_image *of;

	pthread_mutex_lock(&gi_lock);
	of = gi_image_find(image);
	/* a module's functions live as long as it; those of a library's module, as the context */
	gi_name_add(kernel, is_kernel, of, name, of && of->library ? cx : NULL);
	pthread_mutex_unlock(&gi_lock);
}

void gi_image_module(const void *library, void *module)
{
	struct gi_ctx *cx = gi_current();
	struct gi_module **at = &modules[gi_hash(module) % BUCKETS], *m = malloc(sizeof(*m));
	struct gi_image *image;

	pthread_mutex_lock(&gi_lock);
	unlink_modules(at, module, NULL, NULL);
	image = gi_image_find(library);
	if (image && m) {
		*m = (struct gi_module){ .next = *at, .handle = module, .image = image, .cx = cx };
		*at = m;
		m = NULL;
	}
	pthread_mutex_unlock(&gi_lock);
	free(m);
}

void gi_images_drop_context(struct gi_ctx *cx)
{
	struct gi_image *image;

	gi_references_drop(NULL, cx, true);
	modules_drop(NULL, cx);
	for (image = gi_image_next(NULL); image; image = gi_image_next(image))
		gi_initial_drop(image, cx);
}

void gi_image_reset(void)
{
	memset(images, 0, sizeof(images));
	memset(modules, 0, sizeof(modules));
	atomic_store(&gi_hot.rewritable, 0);
}
