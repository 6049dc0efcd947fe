// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The driver API of vgpu: device, contexts, modules, memory, launches and their errors, entry
 * points
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "test-api.h"

static bool before_init(void)
{
	CUdeviceptr p;
	CUcontext c;
	int n;

	IS(NOT_INITIALIZED, cuDeviceGetCount(&n));
	IS(NOT_INITIALIZED, cuMemAlloc(&p, 4));
	IS(NOT_INITIALIZED, cuCtxGetCurrent(&c));
	OK(cuDriverGetVersion(&n));
	CHECK(n == 13000);
	IS(INVALID_VALUE, cuInit(1));
	OK(cuInit(0));
	IS(INVALID_CONTEXT, cuMemAlloc(&p, 4));
	return true;
}

static bool device(void)
{
	CUuuid a, b;
	CUdevice d;
	char name[64];
	size_t total;
	int v;

	OK(cuDeviceGetCount(&v));
	CHECK(v == 1);
	OK(cuDeviceGet(&d, 0));
	IS(INVALID_DEVICE, cuDeviceGet(&d, 1));
	OK(cuDeviceGetName(name, sizeof(name), 0));
	CHECK(strstr(name, "vgpu"));
	OK(cuDeviceGetUuid(&a, 0));
	OK(cuDeviceGetUuid(&b, 0));
	CHECK(!memcmp(&a, &b, 16));
	OK(cuDeviceTotalMem(&total, 0));
	CHECK(total == 64 << 20);
	OK(cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
	CHECK(v == 1);
	OK(cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
	CHECK(v == 9);
	OK(cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_MPS_ENABLED, 0));
	CHECK(v == 1);
	OK(cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 0));
	CHECK(v == 1);
	IS(INVALID_VALUE, cuDeviceGetAttribute(&v, (CUdevice_attribute)9999, 0));
	IS(INVALID_DEVICE, cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 3));
	return true;
}

static bool contexts(void)
{
	CUcontext c, other, top;
	unsigned int flags;
	CUdeviceptr p;
	int active, least, greatest;

	OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	CHECK(active);
	OK(cuCtxCreate(&other, NULL, 0, 0));
	OK(cuCtxGetCurrent(&c));
	CHECK(c == other);
	OK(cuMemAlloc(&p, 100));
	OK(cuCtxPopCurrent(&top));
	CHECK(top == other);
	OK(cuCtxGetCurrent(&c));
	CHECK(c == ctx);
	OK(cuCtxPushCurrent(other));
	OK(cuCtxDestroy(other));
	OK(cuCtxGetCurrent(&c));
	CHECK(c == ctx);
	IS(INVALID_CONTEXT, cuCtxPushCurrent(other));
	IS(INVALID_CONTEXT, cuCtxDestroy(other));
	IS(INVALID_VALUE, cuMemFree(p));	/* it went with its context */
	OK(cuCtxCreate(&other, NULL, 0, 0));
	OK(cuCtxAttach(&c, 0));
	CHECK(c == other);
	IS(INVALID_VALUE, cuCtxAttach(&c, 1));
	OK(cuCtxDetach(other));
	OK(cuMemAlloc(&p, 100));
	OK(cuCtxPopCurrent(&top));
	OK(cuCtxSetCurrent(NULL));
	OK(cuMemFree(p));
	OK(cuCtxSetCurrent(ctx));
	OK(cuCtxPushCurrent(other));
	OK(cuCtxDetach(other));
	IS(INVALID_CONTEXT, cuCtxDetach(other));
	OK(cuCtxGetCurrent(&c));
	CHECK(c == ctx);
	IS(INVALID_CONTEXT, cuCtxAttach(&c, 0));
	IS(INVALID_CONTEXT, cuCtxSetCurrent((CUcontext)&c));
	OK(cuCtxGetStreamPriorityRange(&least, &greatest));
	CHECK(least == 0 && greatest == -5);
	return true;
}

static bool modules(void)
{
	char log[200] = "";
	CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
	void *values[] = { log, (void *)sizeof(log) };
	static const char elf[64] = "\177ELF\2\1\1";
	size_t offset, size;
	const char *name;
	CUdeviceptr p;
	CUfunction f;
	CUmodule m;
	uint32_t v;
	unsigned int n;

	IS(NOT_FOUND, cuModuleGetFunction(&f, module, "none"));
	IS(INVALID_HANDLE, cuModuleGetFunction(&f, (CUmodule)&m, "spin"));
	OK(cuModuleGetFunctionCount(&n, module));
	CHECK(n == 8);
	OK(cuFuncGetName(&name, k_add));
	CHECK(!strcmp(name, "add"));
	OK(cuFuncGetModule(&m, k_add));
	CHECK(m == module);
	OK(cuFuncGetParamInfo(k_add, 2, &offset, &size));
	CHECK(offset == 16 && size == 4);
	IS(INVALID_VALUE, cuFuncGetParamInfo(k_add, 3, &offset, &size));
	OK(cuModuleGetGlobal(&p, &size, module, "counter"));
	CHECK(size == 4);
	OK(cuMemcpyDtoH(&v, p, 4));
	CHECK(v == 5);
	v = 6;
	OK(cuMemcpyHtoD(p, &v, 4));
	IS(NOT_FOUND, cuModuleGetGlobal(&p, &size, module, "nothing"));
	IS(NO_BINARY_FOR_GPU, cuModuleLoadData(&m, elf));
	IS(INVALID_PTX,
	   cuModuleLoadDataEx(&m, ".version 7.0\n.target sm_50\n.address_size 64\n"
			      ".visible .entry k( { ret; }\n", 2, options, values));
	CHECK(strstr(log, ":4:"));
	IS(FILE_NOT_FOUND, cuModuleLoad(&m, "/nonexistent.ptx"));
	IS(INVALID_VALUE, cuModuleLoadData(&m, NULL));
	OK(cuModuleLoadData(&m, kernels));
	OK(cuModuleGetFunction(&f, m, "set"));
	OK(cuModuleUnload(m));
	IS(INVALID_HANDLE, cuModuleUnload(m));
	IS(INVALID_HANDLE, run(f, 1, 1, NULL, NULL));
	return true;
}

static bool libraries(void)
{
	CUlibrary lib;
	CUkernel k;
	CUmodule m;
	CUdeviceptr p = at(0);
	uint32_t v = 77;
	int regs;

	OK(cuLibraryLoadData(&lib, kernels, NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryGetKernel(&k, lib, "set"));
	IS(NOT_FOUND, cuLibraryGetKernel(&k, lib, "no"));
	OK(cuLibraryGetKernel(&k, lib, "set"));
	OK(cuKernelGetAttribute(&regs, CU_FUNC_ATTRIBUTE_NUM_REGS, k, 0));
	CHECK(regs >= 16);
	/* a kernel handle is as good as a function's */
	OK(run((CUfunction)k, 1, 1, NULL, (void *[]){ &p, &v }));
	OK(cuCtxSynchronize());
	CHECK(host[0] == 77);
	OK(cuLibraryGetModule(&m, lib));
	OK(cuLibraryUnload(lib));
	IS(INVALID_HANDLE, cuLibraryUnload(lib));
	return true;
}

static bool launches(void)
{
	CUdeviceptr d, p = at(0);
	uint32_t in[256], out[256], v = 1000;
	size_t size = 20;
	struct { CUdeviceptr out, in; uint32_t v; } packed;
	void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE,
			  &size, CU_LAUNCH_PARAM_END };
	void *params[] = { &d, &d, &v };
	CUlaunchAttribute attr = { .id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = -3 };
	CUlaunchConfig c = { .gridDimX = 2, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 128,
			     .blockDimY = 1, .blockDimZ = 1, .attrs = &attr, .numAttrs = 1 };
	CUfunction big, bound;
	int n;

	for (unsigned int i = 0; i < 256; i++)
		in[i] = i * i;
	OK(cuMemAlloc(&d, sizeof(in)));
	OK(cuMemcpyHtoD(d, in, sizeof(in)));
	OK(run(k_add, 2, 128, NULL, params));
	packed.out = packed.in = d;
	packed.v = 5;
	OK(cuLaunchKernel(k_add, 4, 1, 1, 64, 1, 1, 0, NULL, NULL, extra));
	OK(cuLaunchKernelEx(&c, k_add, params, NULL));
	OK(cuMemcpyDtoH(out, d, sizeof(out)));
	for (unsigned int i = 0; i < 256; i++)
		CHECK(out[i] == i * i + 2005);
	IS(INVALID_VALUE, run(k_add, 0, 32, NULL, params));
	IS(INVALID_VALUE, run(k_add, 1, 0, NULL, params));
	IS(INVALID_VALUE, run(k_add, 1, 1025, NULL, params));
	IS(INVALID_VALUE, cuLaunchKernel(k_add, 1, 65536, 1, 32, 1, 1, 0, NULL, params, NULL));
	IS(INVALID_VALUE, cuLaunchKernel(k_add, 1, 1, 1, 1, 1, 65, 0, NULL, params, NULL));
	IS(INVALID_VALUE, cuLaunchKernel(k_add, 1, 1, 1, 32, 1, 1, 49153, NULL, params, NULL));
	IS(INVALID_VALUE, run(k_add, 1, 32, NULL, NULL));
	size = 19;
	IS(LAUNCH_OUT_OF_RESOURCES, cuLaunchKernel(k_add, 4, 1, 1, 64, 1, 1, 0, NULL, NULL, extra));
	IS(INVALID_HANDLE, run(NULL, 1, 32, NULL, params));
	IS(INVALID_HANDLE, run(k_add, 1, 32, (CUstream)&d, params));
	attr.value.priority = 3;
	IS(INVALID_VALUE, cuLaunchKernelEx(&c, k_add, params, NULL));
	OK(cuModuleGetFunction(&bound, module, "bound"));
	IS(LAUNCH_OUT_OF_RESOURCES, run(bound, 1, 65, NULL, (void *[]){ &p }));
	OK(cuFuncGetAttribute(&n, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, bound));
	CHECK(n == 64);
	/* more than 48 KiB of shared memory only for those who ask */
	OK(cuModuleGetFunction(&big, module, "big"));
	IS(INVALID_VALUE, cuLaunchKernel(big, 1, 1, 1, 32, 1, 1, 20000, NULL,
					 (void *[]){ &p }, NULL));
	OK(cuFuncSetAttribute(big, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 20000));
	OK(cuLaunchKernel(big, 1, 1, 1, 32, 1, 1, 20000, NULL, (void *[]){ &p }, NULL));
	IS(INVALID_VALUE, cuFuncSetAttribute(big, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
					     100000));
	OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, big, 32, 0));
	CHECK(n == 2);
	OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, k_add, 128, 0));
	CHECK(n == 4);
	OK(cuOccupancyMaxPotentialBlockSize(&n, &n, k_add, NULL, 0, 0));
	OK(cuCtxSynchronize());
	OK(cuMemFree(d));
	return true;
}

static bool memory(void)
{
	size_t left, again, total, size;
	CUdeviceptr p, q, base;
	unsigned int type, flags;
	char buf[64], back[64];
	void *h;
	int managed;

	OK(cuMemGetInfo(&left, &total));
	OK(cuMemAlloc(&p, 1 << 20));
	OK(cuMemGetInfo(&again, &total));
	CHECK(again == left - (1 << 20));
	IS(OUT_OF_MEMORY, cuMemAlloc(&q, 64 << 20));
	IS(INVALID_VALUE, cuMemAlloc(&q, 0));
	OK(cuMemGetAddressRange(&base, &size, p + 4321));
	CHECK(base == p && size == 1 << 20);
	for (int i = 0; i < 64; i++)
		buf[i] = (char)i;
	OK(cuMemcpyHtoD(p + (1 << 20) - 64, buf, 64));
	IS(INVALID_VALUE, cuMemcpyHtoD(p + (1 << 20) - 63, buf, 64));
	IS(INVALID_VALUE, cuMemcpyDtoH(back, (CUdeviceptr)(uintptr_t)buf, 64));
	OK(cuMemcpyDtoD(p, p + (1 << 20) - 64, 64));
	OK(cuMemcpy((CUdeviceptr)(uintptr_t)back, p, 64));
	CHECK(!memcmp(buf, back, 64));
	OK(cuMemsetD32(p, 0x01020304, 4));
	OK(cuMemsetD8Async(p + 1, 9, 2, NULL));
	OK(cuMemcpyDtoH(back, p, 16));
	CHECK(back[0] == 4 && back[1] == 9 && back[2] == 9 && back[3] == 1 && back[15] == 1);
	IS(INVALID_VALUE, cuMemsetD32(p + 2, 0, 1));
	OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p + 5));
	CHECK(type == CU_MEMORYTYPE_DEVICE);
	IS(INVALID_VALUE, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
						(CUdeviceptr)(uintptr_t)buf));
	IS(INVALID_VALUE, cuMemFree(p + 8));
	OK(cuMemFree(p));
	IS(INVALID_VALUE, cuMemFree(p));
	OK(cuMemGetInfo(&again, &total));
	CHECK(again == left);
	OK(cuMemAllocManaged(&p, 100, CU_MEM_ATTACH_GLOBAL));
	OK(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p));
	CHECK(managed);
	OK(cuMemFree(p));
	OK(cuMemHostAlloc(&h, 100, CU_MEMHOSTALLOC_PORTABLE));
	OK(cuMemHostGetFlags(&flags, h));
	CHECK(flags & CU_MEMHOSTALLOC_PORTABLE);
	IS(INVALID_VALUE, cuMemFree((CUdeviceptr)(uintptr_t)h));
	OK(cuMemFreeHost(h));
	return true;
}

static bool rows(void)
{
	unsigned char src[4][10], dst[4][16];
	CUDA_MEMCPY2D c = { 0 };
	CUdeviceptr p;
	size_t pitch;

	for (int y = 0; y < 4; y++)
		for (int x = 0; x < 10; x++)
			src[y][x] = (unsigned char)(16 * y + x);
	memset(dst, 0xff, sizeof(dst));
	OK(cuMemAllocPitch(&p, &pitch, 10, 4, 4));
	CHECK(pitch >= 10);
	c.srcMemoryType = CU_MEMORYTYPE_HOST;
	c.srcHost = src;
	c.srcPitch = 10;
	c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	c.dstDevice = p;
	c.dstPitch = pitch;
	c.WidthInBytes = 10;
	c.Height = 4;
	OK(cuMemcpy2D(&c));
	memset(&c, 0, sizeof(c));
	c.srcMemoryType = CU_MEMORYTYPE_DEVICE;
	c.srcDevice = p;
	c.srcPitch = pitch;
	c.srcXInBytes = 2;
	c.srcY = 1;
	c.dstMemoryType = CU_MEMORYTYPE_HOST;
	c.dstHost = dst;
	c.dstPitch = 16;
	c.dstXInBytes = 3;
	c.WidthInBytes = 5;
	c.Height = 3;
	OK(cuMemcpy2D(&c));
	for (int y = 0; y < 4; y++)
		for (int x = 0; x < 16; x++)
			CHECK(dst[y][x] == (y < 3 && x >= 3 &&
					    x < 8 ? 16 * (y + 1) + x - 1 : 0xff));
	c.Height = 5;
	IS(INVALID_VALUE, cuMemcpy2D(&c));
	OK(cuMemFree(p));
	return true;
}

static bool registering(void)
{
	char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CUdeviceptr d;

	CHECK(p != MAP_FAILED);
	IS(INVALID_VALUE, cuMemHostGetDevicePointer(&d, p, 0));
	OK(cuMemHostRegister(p, 4096, CU_MEMHOSTREGISTER_DEVICEMAP));
	IS(HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(p, 8192, 0));
	OK(cuMemHostGetDevicePointer(&d, p + 8, 0));
	CHECK(d == (CUdeviceptr)(uintptr_t)(p + 8));
	OK(cuMemHostUnregister(p));
	IS(HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(p));
	/* a read-only mapping is taken only as such */
	CHECK(!mprotect(p, 4096, PROT_READ));
	IS(INVALID_VALUE, cuMemHostRegister(p, 4096, CU_MEMHOSTREGISTER_DEVICEMAP));
	OK(cuMemHostRegister(p, 4096, CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY));
	OK(cuMemHostUnregister(p));
	munmap(p, 8192);
	IS(INVALID_VALUE, cuMemHostRegister(p, 4096, 0));
	IS(INVALID_VALUE, cuMemHostRegister(p, 4096, 0x100));
	return true;
}

/* What a call says on stderr */
static CUresult heard(CUresult (*f)(void), char *text, size_t size)
{
	int old = dup(2), pipe_fd[2];
	ssize_t n;
	CUresult r;

	if (pipe(pipe_fd))
		return CUDA_ERROR_UNKNOWN;
	dup2(pipe_fd[1], 2);
	r = f();
	fflush(stderr);
	dup2(old, 2);
	close(old);
	close(pipe_fd[1]);
	n = read(pipe_fd[0], text, size - 1);
	close(pipe_fd[0]);
	text[n > 0 ? n : 0] = '\0';
	return r;
}

static bool entry_points(void)
{
	static const CUuuid id;
	CUdriverProcAddressQueryResult status;
	const void *table;
	char text[256];
	void *p, *q;

	OK(cuGetProcAddress("cuMemAlloc", &p, 13000, 0, &status));
	CHECK(p == (void *)cuMemAlloc && status == CU_GET_PROC_ADDRESS_SUCCESS);
	OK(cuGetProcAddress("cuMemAlloc_v2", &p, 13000, 0, &status));
	CHECK(p == (void *)cuMemAlloc);
	OK(cuGetProcAddress("cuStreamGetCaptureInfo", &p, 11030, 0, &status));
	CHECK(p == (void *)cuStreamGetCaptureInfo_v2);
	OK(cuGetProcAddress("cuLaunchKernel", &p, 12000,
			    CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status));
	CHECK(p == (void *)cuLaunchKernel_ptsz);
	OK(cuGetProcAddress("cuLaunchKernel_ptsz", &p, 12000, 0, &status));
	CHECK(p == (void *)cuLaunchKernel_ptsz);
	OK(cuGetProcAddress("cuMemcpy", &p, 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
			    &status));
	CHECK(p == (void *)cuMemcpy_ptds);
	IS(NOT_FOUND, cuGetProcAddress("cuLaunchKernelEx", &p, 11000, 0, &status));
	CHECK(!p && status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
	IS(NOT_FOUND, cuGetProcAddress("cuNoSuchThing", &p, 13000, 0, &status));
	CHECK(!p && status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	IS(INVALID_VALUE, cuGetProcAddress("cuInit", &p, 13000, 64, &status));
	IS(NOT_FOUND, cuGetExportTable(&table, &id));
	/* what exists and is not simulated says so, by name, however it is reached */
	OK(cuGetProcAddress("cuGraphConditionalHandleCreate", &q, 13000, 0, &status));
	CHECK(heard((CUresult (*)(void))q, text, sizeof(text)) == CUDA_ERROR_NOT_SUPPORTED &&
	      strstr(text, "cuGraphConditionalHandleCreate"));
	/* FFmpeg does without CUDA where this one is missing */
	OK(cuGetProcAddress("cuGLGetDevices_v2", &q, 13000, 0, &status));
	CHECK(heard((CUresult (*)(void))(void *)cuCtxEnablePeerAccess, text,
		    sizeof(text)) == CUDA_ERROR_NOT_SUPPORTED &&
	      strstr(text, "cuCtxEnablePeerAccess"));
	return true;
}

static bool error_texts(void)
{
	const char *s;

	OK(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &s));
	CHECK(!strcmp(s, "CUDA_ERROR_ILLEGAL_ADDRESS"));
	OK(cuGetErrorString(CUDA_ERROR_ILLEGAL_ADDRESS, &s));
	CHECK(!strcmp(s, "illegal address"));
	OK(cuGetErrorString(CUDA_SUCCESS, &s));
	CHECK(!strcmp(s, "success"));
	IS(INVALID_VALUE, cuGetErrorName((CUresult)12345, &s));
	CHECK(!s);
	return true;
}

int main(int argc, char **argv)
{
	char name[64];

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 1)
		return process_child(argv[1]);
	/* one SM: what is resident is known exactly */
	snprintf(name, sizeof(name), "vgpu-test-api-%d", (int)getpid());
	setenv("VGPU_NAME", name, 1);
	setenv("VGPU_SMS", "1", 1);
	setenv("VGPU_SM_THREADS", "512", 1);
	setenv("VGPU_MEM_MB", "64", 1);
	setenv("VGPU_MPS", "1", 1);
	ok(before_init(), "nothing works before cuInit, nor without a context");
	if (!ok(prepare(), "context, module, functions, pinned memory"))
		return done();
	ok(device(), "the device and its attributes");
	ok(contexts(), "contexts: stack, destruction");
	ok(modules(), "modules, their functions and variables, images that are refused");
	ok(libraries(), "libraries and kernels");
	ok(launches(), "launches, their parameters and their errors; occupancy");
	ok(memory(), "memory: allocation, copies, sets, attributes");
	ok(rows(), "copies of rows");
	ok(registering(), "registering host memory, read-only too");
	ok(entry_points(), "cuGetProcAddress; what is not simulated says so");
	ok(error_texts(), "names and texts of errors");
	textures_tests();
	streams_tests();
	pools_tests();
	virtual_tests();
	graphs_tests();
	process_tests("/proc/self/exe");
	snprintf(name, sizeof(name), "/dev/shm/vgpu-test-api-%d", (int)getpid());
	unlink(name);
	return done();
}
