// SPDX-License-Identifier: LGPL-2.1-or-later
/* Driver API: modules, libraries, functions and what can be asked about them */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "vgpu.h"

/* Options that matter here: where the caller wants the message */
static void error_log(unsigned int n, CUjit_option *options, void **values, const char *text)
{
	char *buf = NULL;
	size_t size = 0;

	for (unsigned int i = 0; i < n; i++) {
		if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
			buf = values[i];
		if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
			size = (uintptr_t)values[i];
	}
	if (buf && size)
		snprintf(buf, size, "%s", text);
}

static CUresult image_error(enum gsr_status status)
{
	switch (status) {
	case GSR_ERR_NO_PTX:
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	case GSR_ERR_SYNTAX:
		return CUDA_ERROR_INVALID_PTX;
	case GSR_ERR_NOMEM:
		return CUDA_ERROR_OUT_OF_MEMORY;
	default:
		return CUDA_ERROR_INVALID_IMAGE;
	}
}

static void module_free(struct CUmod_st *m)
{
	while (m->functions) {
		struct CUfunc_st *f = m->functions;

		m->functions = f->next;
		free(f->on);
		free(f->old);
		vg_object_free(VG_FUNCTION, f);
	}
	vg_references_drop(m);
	vg_regions_drop(m);
	if (m->image)
		vgpu_module_free(m->image);
	vg_object_free(VG_MODULE, m);
}

static bool add_functions(struct CUmod_st *m)
{
	unsigned int n = vgpu_module_kernels(m->image, NULL, 0);
	struct vgpu_kernel **list = calloc(n + 1, sizeof(*list));
	bool ok = list;

	if (ok)
		vgpu_module_kernels(m->image, list, n);
	while (ok && n--) {	/* from the last, so that the list has the module's order */
		struct CUfunc_st *f = vg_object_new(VG_FUNCTION, sizeof(*f));

		ok = f;
		if (!ok)
			break;
		f->module = m;
		f->id = ++vg.ids;
		f->kernel = list[n];
		f->info = vgpu_kernel_info(list[n]);
		f->max_dynamic_shared = f->info->static_shared < VG_STATIC_DYNAMIC_SHARED ?
					VG_STATIC_DYNAMIC_SHARED - f->info->static_shared : 0;
		f->carveout = -1;
		f->cache_config = CU_FUNC_CACHE_PREFER_NONE;
		f->next = m->functions;
		m->functions = f;
	}
	free(list);
	return ok;
}

/* PTX text, fat binary or its wrapper, or what cuLinkComplete gave. @size SIZE_MAX: not known */
static CUresult load(struct vg_gpu *gpu, const void *image, size_t size, unsigned int n,
		     CUjit_option *options, void **values, struct CUmod_st **out)
{
	struct gsr_error e = { 0 };
	enum gsr_status status;
	struct CUmod_st *m;
	char text[600] = "";
	size_t ptx_size;
	char *ptx;

	status = vg_linked_ptx(image, size, &ptx, &ptx_size) ? GSR_OK :
		 gsr_image_ptx(image, size, gpu->config.cc, &ptx, &ptx_size, &e);
	if (status) {
		vg_say("image refused: %s", e.message);
		error_log(n, options, values, e.message);
		return image_error(status);
	}
	m = vg_object_new(VG_MODULE, sizeof(*m));
	if (m)
		m->image = vgpu_module_load(ptx, ptx_size, text, sizeof(text));
	free(ptx);
	if (!m)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!m->image) {
		vg_say("PTX refused: %s", text);
		error_log(n, options, values, text);
		vg_object_free(VG_MODULE, m);
		return CUDA_ERROR_INVALID_PTX;
	}
	m->gpu = gpu;
	if (!add_functions(m)) {
		module_free(m);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*out = m;
	return CUDA_SUCCESS;
}

CUresult vg_read_file(const char *name, char **data, size_t *size)
{
	FILE *f = fopen(name, "re");
	char *p = NULL, *more;
	size_t n = 0, max = 0, got;

	if (!f)
		return CUDA_ERROR_FILE_NOT_FOUND;
	do {
		if (max - n < 65536) {
			max = 2 * max + 65536;
			more = realloc(p, max + 1);
			if (!more) {
				free(p);
				fclose(f);
				return CUDA_ERROR_OUT_OF_MEMORY;
			}
			p = more;
		}
		got = fread(p + n, 1, max - n, f);
		n += got;
	} while (got);
	fclose(f);
	p[n] = '\0';
	*data = p;
	*size = n;
	return CUDA_SUCCESS;
}

static CUresult module_load(CUmodule *module, const void *image, size_t size, unsigned int n,
			    CUjit_option *options, void **values)
{
	struct CUctx_st *ctx;
	struct CUmod_st *m;
	CUresult r;

	r = vg_enter_ctx(&ctx);
	if (r)
		return r;
	r = vg_may_wait(VG_HOLDER_MODULE_LOAD, ctx);
	if (r)
		return vg_leave(r);
	r = load(ctx->gpu, image, size, n, options, values, &m);
	if (r)
		return vg_leave(r);
	m->ctx = ctx;
	m->next = ctx->modules;
	ctx->modules = m;
	*module = m;
	return vg_leave(CUDA_SUCCESS);
}

static _Atomic unsigned int loading;

bool vg_modules_loading(void)
{
	return loading;
}

static CUresult module_new(CUmodule *module, const void *image, size_t size, unsigned int n,
			   CUjit_option *options, void **values)
{
	CUresult r;

	if (!module || !image || (n && (!options || !values)))
		return CUDA_ERROR_INVALID_VALUE;
	loading++;
	vg_pause_load();
	r = module_load(module, image, size, n, options, values);
	loading--;
	return r;
}

CUDADRV_API CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int n,
					CUjit_option *options, void **values)
{
	return module_new(module, image, SIZE_MAX, n, options, values);
}

CUDADRV_API CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	return module_new(module, image, SIZE_MAX, 0, NULL, NULL);
}

CUDADRV_API CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
	return module_new(module, image, SIZE_MAX, 0, NULL, NULL);
}

CUDADRV_API CUresult cuModuleLoad(CUmodule *module, const char *name)
{
	char *data;
	size_t size;
	CUresult r = name ? vg_read_file(name, &data, &size) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	r = module_new(module, data, size, 0, NULL, NULL);
	free(data);
	return r;
}

CUDADRV_API CUresult cuModuleUnload(CUmodule module)
{
	struct CUmod_st **p;
	CUresult r = vg_enter();

	if (r)
		return r;
	if (!vg_handle_is(module, VG_MODULE) || module->library)
		return vg_leave(CUDA_ERROR_INVALID_HANDLE);
	r = vg_wait_held(VG_HOLDER_MODULE_UNLOAD, module->ctx);
	for (p = &module->ctx->modules; *p && *p != module; p = &(*p)->next)
		;
	if (*p)
		*p = module->next;
	module_free(module);
	return vg_leave(r);
}

void vg_modules_drop(struct CUctx_st *ctx)
{
	while (ctx->modules) {
		struct CUmod_st *m = ctx->modules;

		ctx->modules = m->next;
		module_free(m);
	}
}

/*
 * Do functions get to the device when they are first asked for or launched, and not with their
 * module?
 */
static bool lazy(void)
{
	return vg_holds(VG_HOLDER_MODULE_GET_FUNCTION) || vg_holds(VG_HOLDER_LAUNCH);
}

CUDADRV_API CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
	CUresult r = mode ? vg_enter() : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*mode = lazy() ? CU_MODULE_LAZY_LOADING : CU_MODULE_EAGER_LOADING;
	return vg_leave(CUDA_SUCCESS);
}

static struct CUfunc_st *function(struct CUmod_st *m, const char *name)
{
	struct CUfunc_st *f = m->functions;

	while (f && strcmp(f->info->name, name))
		f = f->next;
	return f;
}

CUDADRV_API CUresult cuModuleGetFunction(CUfunction *f, CUmodule module, const char *name)
{
	CUresult r = f && name ? vg_enter() : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	if (!vg_handle_is(module, VG_MODULE))
		return vg_leave(CUDA_ERROR_INVALID_HANDLE);
	*f = function(module, name);
	return vg_leave(*f ? vg_function_load(*f, VG_HOLDER_MODULE_GET_FUNCTION) :
			CUDA_ERROR_NOT_FOUND);
}

/* Is @name in $VGPU_HIDE? There the assembler left it out, as if no code needed it. */
static bool left_out(const char *name)
{
	const char *at = getenv("VGPU_HIDE");
	size_t n = strlen(name);

	while (at && *at) {
		if (!strncmp(at, name, n) && (at[n] == ',' || !at[n]))
			return true;
		at = strchr(at, ',');
		at += at ? 1 : 0;
	}
	return false;
}

/* Any variable of the module, whether .visible or not: so does NVIDIA's driver */
static CUresult global(struct CUmod_st *m, CUdeviceptr *ptr, size_t *bytes, const char *name)
{
	size_t size;
	void *p = vgpu_module_global(m->image, name, &size);

	if (!p || left_out(name))
		return CUDA_ERROR_NOT_FOUND;
	/* kernels reach it without this; copies look here */
	if (size && !vg_region_find((uintptr_t)p)) {
		struct vg_region region = { .base = (uintptr_t)p, .size = size,
					    .kind = VG_MEM_GLOBAL,
					    .ctx = m->ctx ? m->ctx : vg_current(), .owner = m };
		CUresult r = vg_region_add(&region);

		if (r)
			return r;
	}
	if (ptr)
		*ptr = (uintptr_t)p;
	if (bytes)
		*bytes = size;
	return CUDA_SUCCESS;
}

CUDADRV_API CUresult cuModuleGetGlobal_v2(CUdeviceptr *ptr, size_t *bytes, CUmodule module,
					  const char *name)
{
	CUresult r = name ? vg_enter() : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	if (!vg_handle_is(module, VG_MODULE))
		return vg_leave(CUDA_ERROR_INVALID_HANDLE);
	return vg_leave(global(module, ptr, bytes, name));
}

static unsigned int list_functions(const struct CUmod_st *m, void **list, unsigned int max)
{
	unsigned int n = 0;

	for (struct CUfunc_st *f = m->functions; f; f = f->next, n++)
		if (list && n < max)
			list[n] = f;
	return n;
}

CUDADRV_API CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule module)
{
	CUresult r = count ? vg_enter() : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	if (!vg_handle_is(module, VG_MODULE))
		return vg_leave(CUDA_ERROR_INVALID_HANDLE);
	*count = list_functions(module, NULL, 0);
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuModuleEnumerateFunctions(CUfunction *list, unsigned int n, CUmodule module)
{
	CUresult r = list ? vg_enter() : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	if (!vg_handle_is(module, VG_MODULE))
		return vg_leave(CUDA_ERROR_INVALID_HANDLE);
	list_functions(module, (void **)list, n);
	return vg_leave(CUDA_SUCCESS);
}

/*
 * Libraries: need no context. Each device has the library's module for itself; nobody may unload
 * one of these
 */

static unsigned int current_gpu(void)
{
	const struct CUctx_st *ctx = vg_current();

	return ctx ? ctx->gpu->number : 0;
}

static void library_drop(struct CUlib_st *l)
{
	for (unsigned int i = 0; i < vg.n_gpus; i++)
		if (l->module[i])
			module_free(l->module[i]);
}

/* The functions of the first module know those of the others */
static bool join(struct CUlib_st *l)
{
	struct CUfunc_st *on[VG_GPUS_MAX] = { NULL };

	for (unsigned int i = 0; i < vg.n_gpus; i++)
		on[i] = l->module[i]->functions;
	while (on[0]) {
		on[0]->on = malloc(sizeof(on));
		if (!on[0]->on)
			return false;
		memcpy(on[0]->on, on, sizeof(on));
		for (unsigned int i = 0; i < vg.n_gpus; i++)
			on[i] = on[i]->next;
	}
	return true;
}

static CUresult library_load(struct CUlib_st *l, const void *image, size_t size,
			     CUjit_option *options, void **values, unsigned int n)
{
	CUresult r = CUDA_SUCCESS;

	for (unsigned int i = 0; i < vg.n_gpus && !r; i++) {
		r = load(&vg.gpu[i], image, size, n, options, values, &l->module[i]);
		if (!r)
			l->module[i]->library = l;
	}
	if (!r && vg.n_gpus > 1 && !join(l))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	if (r)
		library_drop(l);
	return r;
}

static CUresult library_new(CUlibrary *library, const void *image, size_t size,
			    CUjit_option *options, void **values, unsigned int n)
{
	struct CUlib_st *l;
	CUresult r;

	if (!library || !image || (n && (!options || !values)))
		return CUDA_ERROR_INVALID_VALUE;
	r = vg_enter();
	if (r)
		return r;
	l = vg_object_new(VG_LIBRARY, sizeof(*l));
	if (!l)
		return vg_leave(CUDA_ERROR_OUT_OF_MEMORY);
	r = library_load(l, image, size, options, values, n);
	if (r) {
		vg_object_free(VG_LIBRARY, l);
		return vg_leave(r);
	}
	l->next = vg.libraries;
	vg.libraries = l;
	*library = l;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *options,
				       void **values, unsigned int n, CUlibraryOption *lib_options,
				       void **lib_values, unsigned int lib_n)
{
	return library_new(library, code, SIZE_MAX, options, values, n);
}

CUDADRV_API CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *name,
					   CUjit_option *options, void **values, unsigned int n,
					   CUlibraryOption *lib_options, void **lib_values,
					   unsigned int lib_n)
{
	char *data;
	size_t size;
	CUresult r = name ? vg_read_file(name, &data, &size) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	r = library_new(library, data, size, options, values, n);
	free(data);
	return r;
}

CUDADRV_API CUresult cuLibraryUnload(CUlibrary library)
{
	struct CUlib_st **p;
	CUresult r = vg_enter();

	if (r)
		return r;
	if (!vg_handle_is(library, VG_LIBRARY))
		return vg_leave(CUDA_ERROR_INVALID_HANDLE);
	r = vg_wait_held(VG_HOLDER_LIBRARY_UNLOAD, NULL);
	for (p = &vg.libraries; *p && *p != library; p = &(*p)->next)
		;
	if (*p)
		*p = library->next;
	library_drop(library);
	vg_object_free(VG_LIBRARY, library);
	return vg_leave(r);
}

CUDADRV_API CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
	CUresult r = kernel && name ? vg_enter() : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	if (!vg_handle_is(library, VG_LIBRARY))
		return vg_leave(CUDA_ERROR_INVALID_HANDLE);
	*kernel = (CUkernel)function(library->module[0], name);
	return vg_leave(*kernel ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND);
}

CUDADRV_API CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary library)
{
	CUresult r = count ? vg_enter() : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	if (!vg_handle_is(library, VG_LIBRARY))
		return vg_leave(CUDA_ERROR_INVALID_HANDLE);
	*count = list_functions(library->module[0], NULL, 0);
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuLibraryEnumerateKernels(CUkernel *list, unsigned int n, CUlibrary library)
{
	CUresult r = list ? vg_enter() : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	if (!vg_handle_is(library, VG_LIBRARY))
		return vg_leave(CUDA_ERROR_INVALID_HANDLE);
	list_functions(library->module[0], (void **)list, n);
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
	struct CUctx_st *ctx;
	CUresult r = module ? vg_enter_ctx(&ctx) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	if (!vg_handle_is(library, VG_LIBRARY))
		return vg_leave(CUDA_ERROR_INVALID_HANDLE);
	*module = library->module[ctx->gpu->number];
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuLibraryGetGlobal(CUdeviceptr *ptr, size_t *bytes, CUlibrary library,
					const char *name)
{
	CUresult r = name ? vg_enter() : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	if (!vg_handle_is(library, VG_LIBRARY))
		return vg_leave(CUDA_ERROR_INVALID_HANDLE);
	return vg_leave(global(library->module[current_gpu()], ptr, bytes, name));
}

CUDADRV_API CUresult cuLibraryGetManaged(CUdeviceptr *ptr, size_t *bytes, CUlibrary library,
					 const char *name)
{
	/* each device has the library's variables for itself */
	if (vg.n_gpus > 1)
		return vg_unsimulated("managed memory of a library on several devices");
	return cuLibraryGetGlobal(ptr, bytes, library, name);
}

/* Functions. A CUkernel is a CUfunction. */

CUresult vg_function_get(const void *handle, struct CUfunc_st **out)
{
	struct CUfunc_st *f = (struct CUfunc_st *)(uintptr_t)handle;

	if (!vg_handle_is(handle, VG_FUNCTION))
		return CUDA_ERROR_INVALID_HANDLE;
	*out = f->on ? f->on[current_gpu()] : f;
	return CUDA_SUCCESS;
}

CUresult vg_function_load(struct CUfunc_st *f, enum vg_holder call)
{
	if (f->loaded || !vg_holds(call))
		return CUDA_SUCCESS;
	f->loaded = true;
	return vg_wait_held(call, vg_current());
}

static CUresult enter_function(const void *handle, struct CUfunc_st **f)
{
	CUresult r = vg_enter();

	if (!r && (r = vg_function_get(handle, f)))
		vg_leave(r);
	return r;
}

CUDADRV_API CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
	struct CUctx_st *ctx;
	struct CUfunc_st *f;
	CUresult r = function ? vg_enter_ctx(&ctx) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	r = vg_function_get(kernel, &f);
	if (r)
		return vg_leave(r);
	*function = f;
	return vg_leave(vg_function_load(f, VG_HOLDER_MODULE_GET_FUNCTION));
}

CUDADRV_API CUresult cuKernelGetLibrary(CUlibrary *library, CUkernel kernel)
{
	struct CUfunc_st *f;
	CUresult r = library ? enter_function(kernel, &f) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*library = f->module->library;
	return vg_leave(*library ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}

static int max_threads(const struct CUfunc_st *f)
{
	const struct vg_config *c = &f->module->gpu->config;
	unsigned int n = c->sm_threads < 1024 ? c->sm_threads : 1024;

	if (f->info->max_threads && f->info->max_threads < n)
		n = f->info->max_threads;
	while (n > 32 && !vg_sched_fit(c,
				       &(struct vg_need){ .regs = vg_function_need(f, n, 0).regs }))
		n = (n - 1) & ~31u;
	return (int)n;
}

static CUresult get_attribute(int *pi, CUfunction_attribute attrib, const struct CUfunc_st *f)
{
	switch (attrib) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		*pi = max_threads(f);
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
		*pi = (int)f->info->static_shared;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
		*pi = (int)f->info->local_size;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_NUM_REGS:
		*pi = (int)f->info->regs;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_PTX_VERSION:
	case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
		*pi = (int)f->module->gpu->config.cc;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		*pi = (int)f->max_dynamic_shared;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		*pi = f->carveout;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
	case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
	case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
	case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
	case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
		*pi = 0;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult set_attribute(struct CUfunc_st *f, CUfunction_attribute attrib, int value)
{
	switch (attrib) {
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		if (value < 0 || f->info->static_shared > f->module->gpu->config.sm_smem ||
		    (unsigned int)value > f->module->gpu->config.sm_smem - f->info->static_shared)
			return CUDA_ERROR_INVALID_VALUE;
		f->max_dynamic_shared = (unsigned int)value;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		if (value < -1 || value > 100)
			return CUDA_ERROR_INVALID_VALUE;
		f->carveout = value;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* A kernel's function on a device, @dev -1: on the current one */
static CUresult enter_function_on(const void *handle, CUdevice dev, struct CUfunc_st **f)
{
	CUresult r = enter_function(handle, f);
	const struct CUfunc_st *k = handle;

	if (r || dev == -1)
		return r;
	if (dev < 0 || (unsigned int)dev >= vg.n_gpus)
		return vg_leave(CUDA_ERROR_INVALID_DEVICE);
	if (k->on)
		*f = k->on[dev];
	return CUDA_SUCCESS;
}

static CUresult attribute_on(int *pi, CUfunction_attribute attrib, const void *handle, CUdevice dev)
{
	struct CUfunc_st *f;
	CUresult r = pi ? enter_function_on(handle, dev, &f) : CUDA_ERROR_INVALID_VALUE;

	return r ? r : vg_leave(get_attribute(pi, attrib, f));
}

CUDADRV_API CUresult cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction handle)
{
	return attribute_on(pi, attrib, handle, -1);
}

CUDADRV_API CUresult cuKernelGetAttribute(int *pi, CUfunction_attribute attrib, CUkernel handle,
					  CUdevice dev)
{
	return dev == -1 ? CUDA_ERROR_INVALID_DEVICE : attribute_on(pi, attrib, handle, dev);
}

static CUresult set_attribute_on(const void *handle, CUfunction_attribute attrib, int value,
				 CUdevice dev)
{
	struct CUfunc_st *f;
	CUresult r = enter_function_on(handle, dev, &f);

	return r ? r : vg_leave(set_attribute(f, attrib, value));
}

CUDADRV_API CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attrib, int value)
{
	return set_attribute_on(handle, attrib, value, -1);
}

CUDADRV_API CUresult cuKernelSetAttribute(CUfunction_attribute attrib, int value, CUkernel handle,
					  CUdevice dev)
{
	return dev == -1 ? CUDA_ERROR_INVALID_DEVICE : set_attribute_on(handle, attrib, value, dev);
}

CUDADRV_API CUresult cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache config)
{
	struct CUfunc_st *f;
	CUresult r = enter_function(handle, &f);

	if (r)
		return r;
	f->cache_config = config;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuKernelSetCacheConfig(CUkernel handle, CUfunc_cache config, CUdevice dev)
{
	struct CUfunc_st *f;
	CUresult r = dev == -1 ? CUDA_ERROR_INVALID_DEVICE : enter_function_on(handle, dev, &f);

	if (r)
		return r;
	f->cache_config = config;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuFuncSetSharedMemConfig(CUfunction handle, CUsharedconfig config)
{
	struct CUfunc_st *f;
	CUresult r = enter_function(handle, &f);

	return r ? r : vg_leave(CUDA_SUCCESS);	/* no effect since Volta */
}

CUDADRV_API CUresult cuFuncGetModule(CUmodule *module, CUfunction handle)
{
	struct CUfunc_st *f;
	CUresult r = module ? enter_function(handle, &f) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*module = f->module;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuFuncGetName(const char **name, CUfunction handle)
{
	struct CUfunc_st *f;
	CUresult r = name ? enter_function(handle, &f) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*name = f->info->name;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuKernelGetName(const char **name, CUkernel handle)
{
	return cuFuncGetName(name, (CUfunction)handle);
}

CUDADRV_API CUresult cuFuncGetParamInfo(CUfunction handle, size_t i, size_t *offset, size_t *size)
{
	struct CUfunc_st *f;
	CUresult r = offset ? enter_function(handle, &f) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	if (i >= f->info->n_params)
		return vg_leave(CUDA_ERROR_INVALID_VALUE);
	*offset = f->info->param[i].offset;
	if (size)
		*size = f->info->param[i].size;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuKernelGetParamInfo(CUkernel handle, size_t i, size_t *offset, size_t *size)
{
	return cuFuncGetParamInfo((CUfunction)handle, i, offset, size);
}

CUDADRV_API CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction handle)
{
	struct CUfunc_st *f;
	CUresult r = state ? enter_function(handle, &f) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*state = !lazy() || f->loaded ? CU_FUNCTION_LOADING_STATE_LOADED :
		 CU_FUNCTION_LOADING_STATE_UNLOADED;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuFuncLoad(CUfunction handle)
{
	struct CUfunc_st *f;
	CUresult r = enter_function(handle, &f);

	return r ? r : vg_leave(vg_function_load(f, VG_HOLDER_MODULE_GET_FUNCTION));
}
