// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Modules and libraries: every load is the driver's; ours is to keep the PTX and to know which kernels came from where.
 * An image is only ours while the call lasts, so its PTX is copied out at once; a library loaded before there is a
 * context keeps its image if the program promised to (CU_LIBRARY_BINARY_IS_PRESERVED), else a copy of it.
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

static struct gi_image *images;		/* gi_lock */

struct gi_image *gi_image_find(const void *handle)
{
	struct gi_image *i;

	for (i = images; i; i = i->next)
		if (handle && (i->handle == handle || i->module == handle))
			break;
	return i;
}

struct gi_image *gi_image_next(struct gi_image *image)
{
	return image ? image->next : images;
}

/* There is nothing to rewrite. */
static void give_up(struct gi_image *image, const char *why)
{
	unsigned int i;

	for (i = 0; i < GI_FORMS; i++) {
		image->form[i].state = GI_IMAGE_NONE;
		snprintf(image->form[i].why, sizeof(image->form[i].why), "%s", why);
	}
}

void gi_image_loaded(void *handle, bool library, const void *data, size_t max, bool preserved)
{
	struct gi_ctx *cx = gi_current();
	struct gi_image *image;
	struct gsr_error err;
	size_t size;

	if (!handle || (cx && !cx->client))
		return;
	image = calloc(1, sizeof(*image));
	if (!image)
		return;
	image->handle = handle;
	image->library = library;
	if (!library)
		gi_real.cuCtxGetCurrent(&image->context);
	err.message[0] = 0;
	image->ptx = gi_linked_ptx(data, max, &image->ptx_size);
	if (image->ptx) {
		gi_debug("image: linked by the program from PTX");
	} else if (cx) {
		if (gsr_image_ptx(data, max, cx->client->arch, &image->ptx, &image->ptx_size, &err)) {
			give_up(image, err.message[0] ? err.message : "no PTX in the image");
			gi_debug("image: %s", image->form[GI_TWIN].why);
		}
	} else if (preserved) {
		image->raw = data;
	} else {
		/* what is read later has no length but its own; a file's wrapper would point anywhere */
		size = max != SIZE_MAX && gsr_image_kind(data, max) == GSR_IMAGE_WRAPPER ? 0 : gsr_image_size(data, max);
		if (size && size <= COPY_MAX)
			image->raw_copy = calloc(1, size + 1);
		if (image->raw_copy)
			memcpy(image->raw_copy, data, size);
		image->raw = image->raw_copy;
		if (!image->raw)
			give_up(image, "loaded before there was a context");
	}
	image->functions = image->ptx ? gi_names_functions(image->ptx) : image->raw != NULL;
	pthread_mutex_lock(&gi_lock);
	image->next = images;
	images = image;
	if (cx && image->form[GI_TWIN].state == GI_IMAGE_NEW && !gi_direct(cx->client))
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

void gi_image_drop(struct gi_image *image, bool gone)
{
	struct gi_image **p;
	unsigned int i;

	for (p = &images; *p; p = &(*p)->next) {
		if (*p != image)
			continue;
		*p = image->next;
		break;
	}
	gi_funcs_drop(image, NULL);
	gi_initial_drop(image, NULL);
	gi_references_drop(image, NULL, gone);
	for (i = 0; i < GI_FORMS; i++) {
		gsr_rewrite_free(&image->form[i].desc);
		free(image->form[i].twins);
	}
	free(image->ptx);
	free(image->raw_copy);
	free(image);
}

void gi_images_drop(CUcontext context)
{
	struct gi_image *image, *next;

	for (image = images; image; image = next) {
		next = image->next;
		if (!image->context || image->context != context)
			continue;
		gi_twin_settle(image, NULL, true);
		gi_image_drop(image, true);
	}
}

void gi_image_kernel(void *kernel, bool is_kernel, const void *image, const char *name)
{
	pthread_mutex_lock(&gi_lock);
	gi_name_add(kernel, is_kernel, gi_image_find(image), name);
	pthread_mutex_unlock(&gi_lock);
}

void gi_image_module(const void *library, void *module)
{
	struct gi_ctx *cx = gi_current();
	struct gi_image *image;

	pthread_mutex_lock(&gi_lock);
	image = gi_image_find(library);
	if (image) {
		image->module = module;
		image->module_cx = cx;
	}
	pthread_mutex_unlock(&gi_lock);
}

void gi_images_leave(struct gi_ctx *cx)
{
	struct gi_image *image;

	gi_funcs_drop(NULL, cx);
	gi_references_drop(NULL, cx, true);
	for (image = images; image; image = image->next) {
		gi_initial_drop(image, cx);
		if (image->module_cx == cx)
			image->module_cx = NULL;
	}
}

void gi_image_reset(void)
{
	images = NULL;
}
