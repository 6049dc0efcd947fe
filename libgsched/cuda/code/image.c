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
#include "state.h"

#define COPY_MAX	(64u << 20)
#define DRAIN_NS	60000000000ull

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

/* @max: bytes at @data, SIZE_MAX if only the image itself says. */
static void track(void *handle, bool library, const void *data, size_t max, bool preserved)
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
	if (cx && image->form[GI_TWIN].state == GI_IMAGE_NEW)
		gi_twin_image(image, cx->client->arch);
	pthread_mutex_unlock(&gi_lock);
}

static void track_file(void *handle, bool library, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *map;

	if (fd < 0)
		return;
	if (!fstat(fd, &st) && st.st_size > 0) {
		map = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (map != MAP_FAILED) {
			track(handle, library, map, st.st_size, false);
			munmap(map, st.st_size);
		}
	}
	close(fd);
}

/* gi_lock held; its tasks are over and no job is left. @gone: so is its context, or they are not */
static void drop(struct gi_image *image, bool gone)
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
		drop(image, true);
	}
}

/* Before the driver unloads it: tasks end first, they may still need wings. */
static void untrack(void *handle)
{
	struct gi_image *image;
	struct gi_ctx *cx;
	bool over = true;

	pthread_mutex_lock(&gi_lock);
	image = gi_image_find(handle);
	pthread_mutex_unlock(&gi_lock);
	if (!image)
		return;
	cx = gi_current();
	if (cx && cx->client)
		over = gi_drain(cx->client, NULL, image, DRAIN_NS);
	pthread_mutex_lock(&gi_lock);
	/* twins that still run stay loaded */
	gi_twin_settle(image, NULL, !cx || !over);
	drop(image, !cx || !over);
	pthread_mutex_unlock(&gi_lock);
}

static void name(void *kernel, bool is_kernel, const void *image, const char *text)
{
	pthread_mutex_lock(&gi_lock);
	gi_name_add(kernel, is_kernel, gi_image_find(image), text);
	pthread_mutex_unlock(&gi_lock);
}

void gi_image_reset(void)
{
	images = NULL;
}

/* ---- the driver's calls ---- */

CUresult cuModuleLoad(CUmodule *module, const char *path)
{
	struct gi_client *c;
	CUresult rc;

	GI_ENTER();
	c = gi_gate_close_current();
	rc = gi_real.cuModuleLoad(module, path);
	if (c)
		gi_gate_open(c);
	if (!rc)
		track_file(*module, false, path);
	return rc;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	struct gi_client *c;
	CUresult rc;

	GI_ENTER();
	c = gi_gate_close_current();
	rc = gi_real.cuModuleLoadData(module, image);
	if (c)
		gi_gate_open(c);
	if (!rc)
		track(*module, false, image, SIZE_MAX, false);
	return rc;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int n, CUjit_option *options, void **values)
{
	struct gi_client *c;
	CUresult rc;

	GI_ENTER();
	c = gi_gate_close_current();
	rc = gi_real.cuModuleLoadDataEx(module, image, n, options, values);
	if (c)
		gi_gate_open(c);
	if (!rc)
		track(*module, false, image, SIZE_MAX, false);
	return rc;
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
	struct gi_client *c;
	CUresult rc;

	GI_ENTER();
	c = gi_gate_close_current();
	rc = gi_real.cuModuleLoadFatBinary(module, image);
	if (c)
		gi_gate_open(c);
	if (!rc)
		track(*module, false, image, SIZE_MAX, false);
	return rc;
}

CUresult cuModuleUnload(CUmodule module)
{
	struct gi_client *c;
	CUresult rc;

	GI_ENTER();
	c = gi_gate_close_current();
	untrack(module);
	rc = gi_real.cuModuleUnload(module);
	if (c)
		gi_gate_open(c);
	return rc;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *text)
{
	CUresult rc;

	GI_ENTER();
	rc = gi_real.cuModuleGetFunction(function, module, text);
	if (!rc) {
		struct gi_ctx *cx;

		name(*function, false, module, text);
		cx = gi_current();
		if (cx && cx->client)
			gi_func_get(*function, cx);	/* the twin is on its way before the first launch */
	}
	return rc;
}

CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned int n, CUmodule module)
{
	unsigned int i, count = 0;
	const char *text;
	CUresult rc;

	GI_ENTER();
	rc = gi_real.cuModuleEnumerateFunctions(functions, n, module);
	if (rc || gi_real.cuModuleGetFunctionCount(&count, module))
		return rc;
	for (i = 0; i < n && i < count; i++)
		if (!gi_real.cuFuncGetName(&text, functions[i]))
			name(functions[i], false, module, text);
	return rc;
}

static bool preserved(CUlibraryOption *options, void **values, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n && options && values; i++)
		if (options[i] == CU_LIBRARY_BINARY_IS_PRESERVED)
			return values[i] != NULL;
	return false;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jit, void **jit_values, unsigned int n_jit,
			   CUlibraryOption *options, void **values, unsigned int n)
{
	struct gi_client *c;
	CUresult rc;

	GI_ENTER();
	c = gi_gate_close_current();
	rc = gi_real.cuLibraryLoadData(library, code, jit, jit_values, n_jit, options, values, n);
	if (c)
		gi_gate_open(c);
	if (!rc)
		track(*library, true, code, SIZE_MAX, preserved(options, values, n));
	return rc;
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *jit, void **jit_values,
			       unsigned int n_jit, CUlibraryOption *options, void **values, unsigned int n)
{
	struct gi_client *c;
	CUresult rc;

	GI_ENTER();
	c = gi_gate_close_current();
	rc = gi_real.cuLibraryLoadFromFile(library, path, jit, jit_values, n_jit, options, values, n);
	if (c)
		gi_gate_open(c);
	if (!rc)
		track_file(*library, true, path);
	return rc;
}

CUresult cuLibraryUnload(CUlibrary library)
{
	struct gi_client *c;
	CUresult rc;

	GI_ENTER();
	c = gi_gate_close_current();
	untrack(library);
	rc = gi_real.cuLibraryUnload(library);
	if (c)
		gi_gate_open(c);
	return rc;
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *text)
{
	CUresult rc;

	GI_ENTER();
	rc = gi_real.cuLibraryGetKernel(kernel, library, text);
	if (!rc)
		name(*kernel, true, library, text);
	return rc;
}

CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int n, CUlibrary library)
{
	unsigned int i, count = 0;
	const char *text;
	CUresult rc;

	GI_ENTER();
	rc = gi_real.cuLibraryEnumerateKernels(kernels, n, library);
	if (rc || gi_real.cuLibraryGetKernelCount(&count, library))
		return rc;
	for (i = 0; i < n && i < count; i++)
		if (!gi_real.cuKernelGetName(&text, kernels[i]))
			name(kernels[i], true, library, text);
	return rc;
}

CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
	struct gi_image *image;
	struct gi_ctx *cx;
	CUresult rc;

	GI_ENTER();
	rc = gi_real.cuLibraryGetModule(module, library);
	if (rc)
		return rc;
	cx = gi_current();
	pthread_mutex_lock(&gi_lock);
	image = gi_image_find(library);
	if (image) {
		image->module = *module;
		image->module_cx = cx;
	}
	pthread_mutex_unlock(&gi_lock);
	return CUDA_SUCCESS;
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
	struct gi_name *named;
	CUresult rc;

	GI_ENTER();
	rc = gi_real.cuKernelGetFunction(function, kernel);
	if (rc)
		return rc;
	pthread_mutex_lock(&gi_lock);
	named = gi_name_find(kernel);
	if (named)
		gi_name_add(*function, false, named->image, named->name);
	pthread_mutex_unlock(&gi_lock);
	return CUDA_SUCCESS;
}

/* ---- attributes: what is set on a kernel is set on its twins ---- */

struct setting {
	CUfunction_attribute attribute;
	CUfunc_cache cache;
	int value;
	bool is_cache;
};

static void apply(struct gi_func *fn, void *arg)
{
	const struct setting *set = arg;
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

static void apply_to(void *handle, struct setting *set)
{
	struct gi_name *named;

	pthread_mutex_lock(&gi_lock);
	named = gi_name_find(handle);
	if (named && set->is_cache)
		named->cache = set->cache;
	else if (named && set->attribute >= CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET && set->value)
		named->opaque = true;
	pthread_mutex_unlock(&gi_lock);
	gi_func_each(handle, apply, set);
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
	struct setting set = { .attribute = attribute, .value = value };
	CUresult rc;

	GI_ENTER();
	rc = gi_real.cuFuncSetAttribute(function, attribute, value);
	if (!rc)
		apply_to(function, &set);
	return rc;
}

CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache cache)
{
	struct setting set = { .is_cache = true, .cache = cache };
	CUresult rc;

	GI_ENTER();
	rc = gi_real.cuFuncSetCacheConfig(function, cache);
	if (!rc)
		apply_to(function, &set);
	return rc;
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice dev)
{
	struct setting set = { .attribute = attribute, .value = value };
	CUresult rc;

	GI_ENTER();
	rc = gi_real.cuKernelSetAttribute(attribute, value, kernel, dev);
	if (!rc)
		apply_to(kernel, &set);
	return rc;
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache cache, CUdevice dev)
{
	struct setting set = { .is_cache = true, .cache = cache };
	CUresult rc;

	GI_ENTER();
	rc = gi_real.cuKernelSetCacheConfig(kernel, cache, dev);
	if (!rc)
		apply_to(kernel, &set);
	return rc;
}
