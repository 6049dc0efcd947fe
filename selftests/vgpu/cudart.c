// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Runtime API: finding the driver, errors, what nvcc's code registers at start, and launches.
 * Modules are loaded as libraries when something of them is first used.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cudart.h"

#define BUCKETS 1024

struct fat {
	struct fat *next;
	void *image;
	CUlibrary library;
	CUresult status;		/* of loading it */
	bool loaded;
	struct managed *managed;
};

/* a kernel or a variable, by the address of its shadow on the host */
struct symbol {
	struct symbol *next;
	const void *host;
	struct fat *fat;
	const char *name;
	bool function;
	CUkernel kernel;
	CUdeviceptr ptr[RT_DEVICES];	/* a variable: on each device */
	size_t size;
};

struct managed {
	struct managed *next;
	void **pointer;			/* through which the host uses it */
	const char *name;
};

struct rt_driver rt_driver[2];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static cudaError_t start_error;
static struct { CUcontext ctx; bool retained; } primaries[RT_DEVICES];
static __thread int device;		/* whose context the thread gets if it has none */
static struct fat *fats;
static struct symbol *symbols[BUCKETS];
static __thread cudaError_t last_error;

void rt_remember(cudaError_t e)
{
	if (e != cudaSuccess && e != cudaErrorNotReady)
		last_error = e;
}

cudaError_t rt_error(CUresult r)
{
	switch (r) {
	case CUDA_ERROR_NOT_INITIALIZED:
		return rt_fail(cudaErrorInitializationError);
	case CUDA_ERROR_DEINITIALIZED:
		return rt_fail(cudaErrorCudartUnloading);
	default:	/* the same numbers */
		return rt_fail((cudaError_t)r);
	}
}

static CUresult (*get)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

static void start(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	CUdriverProcAddressQueryResult status;
	CUresult r;

	start_error = cudaErrorInsufficientDriver;
	if (!driver) {
		fprintf(stderr, "vgpu runtime: %s\n", dlerror());
		return;
	}
	*(void **)&get = dlsym(driver, "cuGetProcAddress_v2");
	if (!get) {
		fprintf(stderr, "vgpu runtime: this libcuda.so.1 has no cuGetProcAddress_v2\n");
		return;
	}
	for (int own = 0; own < 2; own++) {
		cuuint64_t flags = own ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM :
				   CU_GET_PROC_ADDRESS_LEGACY_STREAM;

#define X(name, symbol) \
		r = get(#name, (void **)&rt_driver[own].p_##name, RT_DRIVER_VERSION, \
			flags, &status); \
		if (r || !rt_driver[own].p_##name) { \
			fprintf(stderr, "vgpu runtime: the driver has no %s\n", #name); \
			return; \
		}
		RT_DRIVER(X)
#undef X
	}
	start_error = (cudaError_t)rt_driver[0].p_cuInit(0);
}

cudaError_t rt_ready(void)
{
	pthread_once(&once, start);
	return rt_fail(start_error);
}

/*
 * @own: of a program that was compiled for default streams of its threads. Flags and results have
 * the driver's numbers
 */
static cudaError_t entry_point(const char *symbol, void **fn, unsigned int version,
			       unsigned long long flags, CUdriverProcAddressQueryResult *found,
			       bool own)
{
	CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
	cudaError_t e = symbol && fn ? rt_ready() : rt_fail(cudaErrorInvalidValue);
	CUresult r;

	if (e)
		return e;
	if (!flags)
		flags = own ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM :
			CU_GET_PROC_ADDRESS_LEGACY_STREAM;
	r = get(symbol, fn, (int)version, flags, &status);
	if (found)
		*found = status;
	return rt_error(r);
}

RT_BOTH(cudaGetDriverEntryPointByVersion, _ptsz,
	(const char *symbol, void **fn, unsigned int version, unsigned long long flags,
	CUdriverProcAddressQueryResult *found), entry_point(symbol, fn, version, flags, found, own))
RT_BOTH(cudaGetDriverEntryPoint, _ptsz, (const char *symbol, void **fn, unsigned long long flags,
	CUdriverProcAddressQueryResult *found), entry_point(symbol, fn, RT_DRIVER_VERSION, flags,
							    found, own))

CUresult rt_primary(int dev, CUcontext *ctx)
{
	CUresult r = CUDA_SUCCESS;

	if (dev < 0 || dev >= RT_DEVICES)
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&lock);
	if (!primaries[dev].retained)
		r = rt_driver[0].p_cuDevicePrimaryCtxRetain(&primaries[dev].ctx, dev);
	primaries[dev].retained = !r;
	*ctx = primaries[dev].ctx;
	pthread_mutex_unlock(&lock);
	return r;
}

/* Does @ctx work, as far as the runtime can tell? */
static bool usable(CUcontext ctx)
{
	bool good = true;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < RT_DEVICES; i++)
		if (primaries[i].ctx == ctx)
			good = primaries[i].retained;
	pthread_mutex_unlock(&lock);
	return good;
}

cudaError_t rt_context(void)
{
	CUcontext ctx = NULL;
	CUresult r;

	if (rt_ready())
		return start_error;
	r = rt_driver[0].p_cuCtxGetCurrent(&ctx);
	if (r || (ctx && usable(ctx)))
		return rt_error(r);
	return rt_set_device(device);
}

cudaError_t rt_set_device(int dev)
{
	CUcontext ctx;
	CUresult r;

	if (rt_ready())
		return start_error;
	r = rt_primary(dev, &ctx);
	if (!r)
		r = rt_driver[0].p_cuCtxSetCurrent(ctx);
	if (!r)
		device = dev;
	return rt_error(r);
}

int rt_device(void)
{
	CUdevice current;

	return !start_error && !rt_driver[0].p_cuCtxGetDevice(&current) ? current : device;
}

/* Registration: called by constructors, before main. Nothing here touches the driver. */

void **__cudaRegisterFatBinary(void *image);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
			    int limit, void *tid, void *bid, dim3 *block, dim3 *grid, int *warp);
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext,
		       size_t size, int constant, int global);
void __cudaRegisterManagedVar(void **handle, void **pointer, char *device, const char *name,
			      int ext, size_t size, int constant, int global);
char __cudaInitModule(void **handle);
unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
					 struct CUstream_st *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);

static size_t bucket(const void *p)
{
	return (size_t)(((uintptr_t)p * 0x9e3779b97f4a7c15ULL) >> 54);
}

RT_API void **__cudaRegisterFatBinary(void *image)
{
	struct fat *f = calloc(1, sizeof(*f));

	if (!f)
		abort();
	f->image = image;
	pthread_mutex_lock(&lock);
	f->next = fats;
	fats = f;
	pthread_mutex_unlock(&lock);
	return (void **)f;
}

RT_API void __cudaRegisterFatBinaryEnd(void **handle)
{
}

RT_API void __cudaUnregisterFatBinary(void **handle)
{
	struct fat *f = (struct fat *)handle, **p;

	pthread_mutex_lock(&lock);
	for (p = &fats; *p && *p != f; p = &(*p)->next)
		;
	if (!*p) {
		pthread_mutex_unlock(&lock);
		return;
	}
	*p = f->next;
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct symbol **s = &symbols[i]; *s;) {
			struct symbol *dead = *s;

			if (dead->fat != f) {
				s = &dead->next;
				continue;
			}
			*s = dead->next;
			free(dead);
		}
	while (f->managed) {
		struct managed *m = f->managed;

		f->managed = m->next;
		free(m);
	}
	pthread_mutex_unlock(&lock);
	if (f->library && !start_error)
		rt_driver[0].p_cuLibraryUnload(f->library);
	free(f);
}

static void add_symbol(void **handle, const void *host, const char *name, bool function,
		       size_t size)
{
	struct symbol *s = calloc(1, sizeof(*s));

	if (!s)
		abort();
	s->host = host;
	s->fat = (struct fat *)handle;
	s->name = name;
	s->function = function;
	s->size = size;
	pthread_mutex_lock(&lock);
	s->next = symbols[bucket(host)];
	symbols[bucket(host)] = s;
	pthread_mutex_unlock(&lock);
}

RT_API void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
				   int limit, void *tid, void *bid, dim3 *block,
				   dim3 *grid, int *warp)
{
	add_symbol(handle, host, name, true, 0);
}

RT_API void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext,
			      size_t size, int constant, int global)
{
	add_symbol(handle, host, name, false, size);
}

RT_API void __cudaRegisterManagedVar(void **handle, void **pointer, char *device, const char *name,
				     int ext, size_t size, int constant, int global)
{
	struct fat *f = (struct fat *)handle;
	struct managed *m = calloc(1, sizeof(*m));

	if (!m)
		abort();
	m->pointer = pointer;
	m->name = name;
	add_symbol(handle, pointer, name, false, size);
	m->next = f->managed;
	f->managed = m;
}

/* With the lock held */
static CUresult load(struct fat *f)
{
	if (f->loaded)
		return f->status;
	f->loaded = true;
	f->status = rt_driver[0].p_cuLibraryLoadData(&f->library, f->image, NULL, NULL,
						     0, NULL, NULL, 0);
	for (struct managed *m = f->managed; m && !f->status; m = m->next) {
		CUdeviceptr ptr;
		size_t size;

		f->status = rt_driver[0].p_cuLibraryGetManaged(&ptr, &size, f->library, m->name);
		if (!f->status)
			*m->pointer = (void *)(uintptr_t)ptr;
	}
	return f->status;
}

RT_API char __cudaInitModule(void **handle)
{
	CUresult r;

	if (rt_context())
		return 0;
	pthread_mutex_lock(&lock);
	r = load((struct fat *)handle);
	pthread_mutex_unlock(&lock);
	rt_error(r);
	return r == CUDA_SUCCESS;
}

static struct symbol *find(const void *host, bool function)
{
	struct symbol *s = symbols[bucket(host)];

	while (s && (s->host != host || s->function != function))
		s = s->next;
	return s;
}

cudaError_t rt_kernel(const void *host, CUkernel *kernel)
{
	cudaError_t e = rt_context();
	CUresult r = CUDA_SUCCESS;
	struct symbol *s;

	if (e)
		return e;
	pthread_mutex_lock(&lock);
	s = find(host, true);
	if (s && !s->kernel) {
		r = load(s->fat);
		if (!r)
			r = rt_driver[0].p_cuLibraryGetKernel(&s->kernel, s->fat->library, s->name);
	}
	if (s)
		*kernel = s->kernel;
	pthread_mutex_unlock(&lock);
	if (!s || r == CUDA_ERROR_NOT_FOUND)
		return rt_fail(cudaErrorInvalidDeviceFunction);
	return rt_error(r);
}

cudaError_t rt_variable(const void *host, CUdeviceptr *ptr, size_t *size)
{
	cudaError_t e = rt_context();
	CUresult r = CUDA_SUCCESS;
	struct symbol *s;
	int dev;

	if (e)
		return e;
	dev = rt_device();
	pthread_mutex_lock(&lock);
	s = find(host, false);
	if (s && !s->ptr[dev]) {
		r = load(s->fat);
		if (!r)
			r = rt_driver[0].p_cuLibraryGetGlobal(&s->ptr[dev], &s->size,
							      s->fat->library, s->name);
	}
	if (s && ptr)
		*ptr = s->ptr[dev];
	if (s && size)
		*size = s->size;
	pthread_mutex_unlock(&lock);
	if (!s || r == CUDA_ERROR_NOT_FOUND)
		return rt_fail(cudaErrorInvalidSymbol);
	return rt_error(r);
}

void rt_forget_context(int dev)
{
	pthread_mutex_lock(&lock);
	primaries[dev].retained = false;
	pthread_mutex_unlock(&lock);
}

/*
 * Launches. <<<>>> pushes its configuration, the stub pops it: they nest when arguments launch
 * something themselves.
 */

struct configuration {
	dim3 grid, block;
	size_t shared;
	cudaStream_t stream;
};
static __thread struct configuration pushed[16];
static __thread unsigned int n_pushed;

RT_API unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
						struct CUstream_st *stream)
{
	if (n_pushed == sizeof(pushed) / sizeof(pushed[0]))
		return 1;
	pushed[n_pushed++] = (struct configuration) { grid, block, shared, stream };
	return 0;
}

RT_API cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
	const struct configuration *c;

	if (!n_pushed)
		return rt_fail(cudaErrorMissingConfiguration);
	c = &pushed[--n_pushed];
	*grid = c->grid;
	*block = c->block;
	*shared = c->shared;
	*(cudaStream_t *)stream = c->stream;
	return cudaSuccess;
}

/* The runtime has an error of its own for a shape that no device takes */
static cudaError_t launched(CUresult r, dim3 g, dim3 b)
{
	int max = 1024;

	rt_driver[0].p_cuDeviceGetAttribute(&max, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
					    rt_device());
	if (r == CUDA_ERROR_INVALID_VALUE && (!g.x || !g.y || !g.z || !b.x || !b.y || !b.z ||
					      g.y > 65535 || g.z > 65535 || g.x > 0x7fffffff ||
					      (uint64_t)b.x * b.y * b.z > (uint64_t)max))
		return rt_fail(cudaErrorInvalidConfiguration);
	return rt_error(r);
}

static cudaError_t launch(CUkernel kernel, dim3 g, dim3 b, void **args, size_t shared,
			  cudaStream_t stream, bool own)
{
	cudaError_t e = rt_context();

	if (e)
		return e;
	if (!kernel)
		return rt_fail(cudaErrorInvalidDeviceFunction);
	if (shared > UINT32_MAX)
		return rt_fail(cudaErrorInvalidValue);
	return launched(rt_driver[own].p_cuLaunchKernel((CUfunction)kernel, g.x, g.y, g.z, b.x, b.y,
							b.z, (unsigned int)shared, stream, args,
							NULL), g, b);
}

static cudaError_t launch_host(const void *f, dim3 g, dim3 b, void **args, size_t shared,
			       cudaStream_t stream, bool own)
{
	CUkernel kernel;
	cudaError_t e = rt_kernel(f, &kernel);

	return e ? e : launch(kernel, g, b, args, shared, stream, own);
}

static cudaError_t launch_ex(const cudaLaunchConfig_t *c, const void *f, void **args, bool own)
{
	CUlaunchConfig config;
	CUkernel kernel;
	cudaError_t e;

	if (!c || c->dynamicSmemBytes > UINT32_MAX)
		return rt_fail(cudaErrorInvalidValue);
	e = rt_kernel(f, &kernel);
	if (e)
		return e;
	config = (CUlaunchConfig) {
		.gridDimX = c->gridDim.x, .gridDimY = c->gridDim.y, .gridDimZ = c->gridDim.z,
			.blockDimX = c->blockDim.x,
		.blockDimY = c->blockDim.y, .blockDimZ = c->blockDim.z,
			.sharedMemBytes = (unsigned int)c->dynamicSmemBytes,
		.hStream = c->stream, .attrs = c->attrs, .numAttrs = c->numAttrs,
	};
	return launched(rt_driver[own].p_cuLaunchKernelEx(&config, (CUfunction)kernel, args, NULL),
			c->gridDim, c->blockDim);
}

static cudaError_t launch_cooperative(const void *f, dim3 g, dim3 b, void **args, size_t shared,
				      cudaStream_t stream, bool own)
{
	CUkernel kernel;
	cudaError_t e = rt_kernel(f, &kernel);

	if (e)
		return e;
	return rt_error(rt_driver[own].p_cuLaunchCooperativeKernel((CUfunction)kernel, g.x, g.y,
								   g.z, b.x, b.y, b.z,
								   (unsigned int)shared,
								   stream, args));
}

RT_FN(__cudaGetKernel, (cudaKernel_t *kernel, const void *f))
{
	return rt_kernel(f, kernel);
}

RT_FN(cudaGetKernel, (cudaKernel_t *kernel, const void *f))
{
	return kernel ? rt_kernel(f, kernel) : rt_fail(cudaErrorInvalidValue);
}

RT_FN(cudaGetFuncBySymbol, (CUfunction *function, const void *f))
{
	CUkernel kernel;
	cudaError_t e = function ? rt_kernel(f, &kernel) : rt_fail(cudaErrorInvalidValue);

	return e ? e : rt_error(rt_driver[0].p_cuKernelGetFunction(function, kernel));
}

RT_BOTH(__cudaLaunchKernel, _ptsz, (cudaKernel_t k, dim3 g, dim3 b, void **args, size_t shared,
				    cudaStream_t stream),
	launch(k, g, b, args, shared, stream, own))
RT_BOTH(cudaLaunchKernel, _ptsz, (const void *f, dim3 g, dim3 b, void **args, size_t shared,
				  cudaStream_t stream),
	launch_host(f, g, b, args, shared, stream, own))
RT_BOTH(cudaLaunchKernelExC, _ptsz, (const cudaLaunchConfig_t *c, const void *f, void **args),
	launch_ex(c, f, args, own))
RT_BOTH(cudaLaunchCooperativeKernel, _ptsz, (const void *f, dim3 g, dim3 b, void **args,
					     size_t shared, cudaStream_t stream),
	launch_cooperative(f, g, b, args, shared, stream, own))

/* Errors */

RT_FN(cudaGetLastError, (void))
{
	cudaError_t e = last_error;

	last_error = cudaSuccess;
	return e;
}

RT_FN(cudaPeekAtLastError, (void))
{
	return last_error;
}

static const struct { cudaError_t value; const char *name; } errors[] = {
#define X(name, value) { name, #name },
	RT_ERRORS(X)
#undef X
};

RT_API const char *cudaGetErrorName(cudaError_t e);
RT_API const char *cudaGetErrorName(cudaError_t e)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i].value == e)
			return errors[i].name;
	return "unrecognized error code";
}

/* The name in words */
RT_API const char *cudaGetErrorString(cudaError_t e);
RT_API const char *cudaGetErrorString(cudaError_t e)
{
	static char texts[sizeof(errors) / sizeof(errors[0])][80];

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		const char *s = errors[i].name + (errors[i].value ? strlen("cudaError") :
						  strlen("cuda"));
		size_t n = 0;

		if (errors[i].value != e)
			continue;
		for (; *s && n < sizeof(texts[i]) - 2; s++) {
			if (n && *s >= 'A' && *s <= 'Z' && s[-1] >= 'a' && s[-1] <= 'z')
				texts[i][n++] = ' ';
			texts[i][n++] = *s >= 'A' && *s <= 'Z' ? (char)(*s | 0x20) : *s;
		}
		return texts[i];
	}
	return "unrecognized error code";
}
