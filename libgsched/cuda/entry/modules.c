// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The driver's calls for code: modules and libraries, their kernels and variables, links. Those
 * that load or unload wait for the device (entry/waits.h).
 */
#include <stdint.h>
#include <string.h>
#include "entry/waits.h"

CUresult cuModuleLoad(CUmodule *module, const char *path)
{
	CUresult rc;

	GI_ENTER();
	rc = GI_CALL(cuModuleLoad, module, path);
	if (!rc)
		gi_image_file(*module, false, path);
	return rc;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	CUresult rc;

	GI_ENTER();
	rc = GI_CALL(cuModuleLoadData, module, image);
	if (!rc)
		gi_image_loaded(*module, false, image, SIZE_MAX, false);
	return rc;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int n,
			    CUjit_option *options, void **values)
{
	CUresult rc;

	GI_ENTER();
	rc = GI_CALL(cuModuleLoadDataEx, module, image, n, options, values);
	if (!rc)
		gi_image_loaded(*module, false, image, SIZE_MAX, false);
	return rc;
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
	CUresult rc;

	GI_ENTER();
	rc = GI_CALL(cuModuleLoadFatBinary, module, image);
	if (!rc)
		gi_image_loaded(*module, false, image, SIZE_MAX, false);
	return rc;
}

CUresult cuModuleUnload(CUmodule module)
{
	GI_ENTER();
	gi_unloading(module);
	return GI_CALL(cuModuleUnload, module);
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *text)
{
	CUresult rc;

	GI_ENTER();
	rc = gi_real.cuModuleGetFunction(function, module, text);
	if (!rc) {
		struct gi_ctx *cx;

		gi_image_kernel(*function, false, module, text);
		cx = gi_current();
		if (cx && cx->client)
			gi_func_put(gi_func_get(*function, cx)); /* the first launch will find it */
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
			gi_image_kernel(functions[i], false, module, text);
	return rc;
}

static bool is_preserved(CUlibraryOption *options, void **values, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n && options && values; i++)
		if (options[i] == CU_LIBRARY_BINARY_IS_PRESERVED)
			return values[i] != NULL;
	return false;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jit,
			   void **jit_values, unsigned int n_jit, CUlibraryOption *options,
			   void **values, unsigned int n)
{
	CUresult rc;

	GI_ENTER();
	rc = gi_real.cuLibraryLoadData(library, code, jit, jit_values, n_jit, options, values, n);
	if (!rc)
		gi_image_loaded(*library, true, code, SIZE_MAX, is_preserved(options, values, n));
	return rc;
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *jit,
			       void **jit_values, unsigned int n_jit, CUlibraryOption *options,
			       void **values, unsigned int n)
{
	CUresult rc;

	GI_ENTER();
	rc = gi_real.cuLibraryLoadFromFile(library, path, jit, jit_values, n_jit, options, values,
		     n);
	if (!rc)
		gi_image_file(*library, true, path);
	return rc;
}

CUresult cuLibraryUnload(CUlibrary library)
{
	GI_ENTER();
	gi_unloading(library);
	return GI_CALL(cuLibraryUnload, library);
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *text)
{
	CUresult rc;

	GI_ENTER();
	rc = gi_real.cuLibraryGetKernel(kernel, library, text);
	if (!rc)
		gi_image_kernel(*kernel, true, library, text);
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
			gi_image_kernel(kernels[i], true, library, text);
	return rc;
}

CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
	CUresult rc;

	GI_ENTER();
	rc = GI_CALL(cuLibraryGetModule, module, library);
	if (!rc)
		gi_image_module(library, *module);
	return rc;
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
	CUresult rc;

	GI_ENTER();
	rc = GI_CALL(cuKernelGetFunction, function, kernel);
	if (!rc)
		gi_name_function(kernel, *function);
	return rc;
}

/* ---- attributes of kernels ---- */

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
	CUresult rc;

	GI_ENTER();
	rc = gi_real.cuFuncSetAttribute(function, attribute, value);
	if (!rc)
		gi_func_attribute(function, attribute, value);
	return rc;
}

CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache cache)
{
	CUresult rc;

	GI_ENTER();
	rc = gi_real.cuFuncSetCacheConfig(function, cache);
	if (!rc)
		gi_func_cache_config(function, cache);
	return rc;
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
			      CUdevice dev)
{
	CUresult rc;

	GI_ENTER();
	rc = gi_real.cuKernelSetAttribute(attribute, value, kernel, dev);
	if (!rc)
		gi_func_attribute(kernel, attribute, value);
	return rc;
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache cache, CUdevice dev)
{
	CUresult rc;

	GI_ENTER();
	rc = gi_real.cuKernelSetCacheConfig(kernel, cache, dev);
	if (!rc)
		gi_func_cache_config(kernel, cache);
	return rc;
}

/* ---- variables ---- */

CUresult cuModuleGetGlobal_v2(CUdeviceptr *ptr, size_t *bytes, CUmodule module, const char *name)
{
	size_t size = 0;
	CUresult rc;

	GI_ENTER();
	rc = gi_real.cuModuleGetGlobal_v2(ptr, bytes ? bytes : &size, module, name);
	if (!rc && ptr && name)
		gi_initial_record(module, name, *ptr, bytes ? *bytes : size);
	return rc;
}

CUresult cuLibraryGetGlobal(CUdeviceptr *ptr, size_t *bytes, CUlibrary library, const char *name)
{
	size_t size = 0;
	CUresult rc;

	GI_ENTER();
	rc = GI_CALL(cuLibraryGetGlobal, ptr, bytes ? bytes : &size, library, name);
	if (!rc && ptr && name)
		gi_initial_record(library, name, *ptr, bytes ? *bytes : size);
	return rc;
}

CUresult cuLibraryGetManaged(CUdeviceptr *ptr, size_t *bytes, CUlibrary library, const char *name)
{
	size_t size = 0;
	CUresult rc;

	GI_ENTER();
	rc = GI_CALL(cuLibraryGetManaged, ptr, bytes ? bytes : &size, library, name);
	if (!rc && ptr && name)
		gi_initial_record(library, name, *ptr, bytes ? *bytes : size);
	return rc;
}

/* ---- links at run time ---- */

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size,
			  const char *name, unsigned int n, CUjit_option *options, void **values)
{
	CUresult rc;

	GI_ENTER();
	rc = gi_real.cuLinkAddData_v2(state, type, data, size, name, n, options, values);
	if (!rc && (type == CU_JIT_INPUT_PTX || type == CU_JIT_INPUT_FATBINARY))
		gi_link_data(state, data, type == CU_JIT_INPUT_PTX ? strnlen(data, size) : size);
	return rc;
}

CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path, unsigned int n,
			  CUjit_option *options, void **values)
{
	CUresult rc;

	GI_ENTER();
	rc = gi_real.cuLinkAddFile_v2(state, type, path, n, options, values);
	if (!rc && (type == CU_JIT_INPUT_PTX || type == CU_JIT_INPUT_FATBINARY))
		gi_link_file(state, path);
	return rc;
}

CUresult cuLinkComplete(CUlinkState state, void **code, size_t *size)
{
	bool good;
	CUresult rc;

	GI_ENTER();
	rc = gi_real.cuLinkComplete(state, code, size);
	good = !rc && code && size;
	gi_link_ends(state, good ? *code : NULL, good ? *size : 0);
	return rc;
}

CUresult cuLinkDestroy(CUlinkState state)
{
	GI_ENTER();
	gi_link_ends(state, NULL, 0);
	return gi_real.cuLinkDestroy(state);
}
