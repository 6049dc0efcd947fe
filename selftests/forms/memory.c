// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Memory: copies, memset, pinned, mapped, registered and managed memory, stream-ordered allocation
 */
#include <sys/mman.h>
#include <unistd.h>
#include "forms.h"

#define TURNS 6u

static CUstream stream_new(void)
{
	CUstream s;

	DO(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	return s;
}

static uint32_t *host_new(size_t n)
{
	uint32_t *p = calloc(n, 4);

	if (!p)
		abort();
	return p;
}

/* There and back by synchronous copies, which wait for the kernels before them */
static void copy_sync(void)
{
	struct words w;
	uint32_t *host;
	CUfunction f;

	form_begin();
	f = form_function("work");
	w = words_new(form_blocks * THREADS);
	w.stride = 1;
	host = host_new(w.n);
	for (uint32_t i = 0; i < TURNS; i++) {
		work_launch(f, NULL, &w, ROUNDS, i);
		work_expect(&w, ROUNDS, i);
		DO(cuMemcpyDtoH(host, w.at, w.n * 4));
		for (size_t k = 0; k < w.n; k++) {
			CHECK(host[k] == w.want[k]);
			host[k] = w.want[k] = (uint32_t)k * i;
		}
		DO(cuMemcpyHtoD(w.at, host, w.n * 4));
	}
	free(host);
	words_show("copy-sync", &w);
}

static void copy_async(void)
{
	uint32_t *host[TURNS];
	struct words w;
	CUfunction f;
	CUstream s;
	void *p;

	form_begin();
	f = form_function("work");
	s = stream_new();
	w = words_new(form_blocks * THREADS);
	for (uint32_t i = 0; i < TURNS; i++) {
		DO(cuMemAllocHost(&p, w.n * 4));
		host[i] = p;
	}
	DO(cuCtxSynchronize());
	for (uint32_t i = 0; i < TURNS; i++) {
		work(f, s, &w, ROUNDS, 2 * i);
		DO(cuMemcpyDtoHAsync(host[i], w.at, w.n * 4, s));
		DO(cuMemsetD8Async(w.at, 0, w.n * 4, s));
		DO(cuMemcpyHtoDAsync(w.at, host[i], w.n * 4, s));
	}
	DO(cuStreamSynchronize(s));
	for (uint32_t i = 0; i < TURNS; i++) {
		printf("%016llx\n", (unsigned long long)hash_of(host[i], w.n * 4));
		DO(cuMemFreeHost(host[i]));
	}
	words_show("copy-async", &w);
}

/* Several copies in one call, in the order of their stream */
static void copy_batch(void)
{
	CUmemcpyAttributes how = { .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM };
	CUdeviceptr to[2], from[2], other;
	size_t sizes[2], first = 0;
	struct words w;
	CUfunction f;
	CUstream s;

	form_begin();
	f = form_function("work");
	s = stream_new();
	w = words_new(form_blocks * THREADS);
	DO(cuMemAlloc(&other, w.n * 4));
	DO(cuCtxSynchronize());
	sizes[0] = sizes[1] = w.n * 2;
	for (uint32_t i = 0; i < TURNS; i++) {
		work(f, s, &w, ROUNDS, i);
		for (int k = 0; k < 2; k++) {
			from[k] = w.at + (size_t)k * w.n * 2;
			to[k] = other + (size_t)k * w.n * 2;
		}
		DO(cuMemcpyBatchAsync_v2(to, from, sizes, 2, &how, &first, 1, s));
		DO(cuMemsetD8Async(w.at, 0, w.n * 4, s));
		DO(cuMemcpyBatchAsync_v2(from, to, sizes, 2, &how, &first, 1, s));
	}
	DO(cuStreamSynchronize(s));
	DO(cuMemFree(other));
	words_show("copy-batch", &w);
}

static void copy_2d(void)
{
	enum { WIDTH = 48, HEIGHT = 192 };
	CUDA_MEMCPY2D c = { .WidthInBytes = WIDTH * 4, .Height = HEIGHT };
	CUdeviceptr padded;
	uint32_t *host;
	struct words w;
	size_t pitch;
	CUfunction f;

	form_begin();
	f = form_function("work");
	w = words_new(WIDTH * HEIGHT);
	w.stride = 1;
	host = host_new(w.n);
	DO(cuMemAllocPitch(&padded, &pitch, WIDTH * 4, HEIGHT, 4));
	for (uint32_t i = 0; i < TURNS; i++) {
		work_launch(f, NULL, &w, ROUNDS, i);
		work_expect(&w, ROUNDS, i);
		c.srcMemoryType = CU_MEMORYTYPE_DEVICE;
		c.srcDevice = w.at;
		c.srcPitch = WIDTH * 4;
		c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
		c.dstDevice = padded;
		c.dstPitch = pitch;
		DO(cuMemcpy2DAsync(&c, NULL));
		c.srcDevice = padded;
		c.srcPitch = pitch;
		c.dstMemoryType = CU_MEMORYTYPE_HOST;
		c.dstHost = host;
		c.dstPitch = WIDTH * 4;
		DO(cuMemcpy2D(&c));
		CHECK(!memcmp(host, w.want, w.n * 4));
	}
	DO(cuMemFree(padded));
	free(host);
	words_show("copy-2d", &w);
}

static void copy_device(void)
{
	struct words w, v;
	CUfunction f;
	CUstream s;

	form_begin();
	f = form_function("work");
	s = stream_new();
	w = words_new(form_blocks * THREADS);
	v = words_new(form_blocks * THREADS);
	DO(cuCtxSynchronize());
	for (uint32_t i = 0; i < TURNS; i++) {
		work(f, s, &w, ROUNDS, i);
		DO(cuMemcpyDtoDAsync(v.at, w.at, w.n * 4, s));
		memcpy(v.want, w.want, w.n * 4);
		work(f, s, &v, ROUNDS, i);
		DO(cuMemcpyAsync(w.at, v.at, w.n * 4, s));
		memcpy(w.want, v.want, w.n * 4);
	}
	DO(cuStreamSynchronize(s));
	words_show("copy-device", &v);
	words_show("and back", &w);
}

static void sets(void)
{
	struct words w;
	CUfunction f;
	CUstream s;

	form_begin();
	f = form_function("work");
	s = stream_new();
	w = words_new(form_blocks * THREADS);
	w.stride = 1;
	DO(cuCtxSynchronize());
	for (uint32_t i = 1; i < TURNS; i++) {
		work_launch(f, s, &w, ROUNDS, i);
		DO(cuMemsetD32Async(w.at, i, w.n, s));
		DO(cuMemsetD8Async(w.at, (unsigned char)i, w.n, s));
		DO(cuMemsetD16Async(w.at + w.n, (unsigned short)(i * 257), w.n / 4, s));
		DO(cuMemsetD2D32Async(w.at + 2 * w.n, 64, i * 5, 8, w.n / 64, s));
		for (size_t k = 0; k < w.n; k++) {
			w.want[k] = k < w.n / 4 ? i * 0x1010101 : i;
			if (k < w.n / 4 + w.n / 8 && k >= w.n / 4)
				w.want[k] = i * 0x1010101;
			if (k >= w.n / 2 && (k - w.n / 2) / 16 < w.n / 64 && (k - w.n / 2) % 16 < 8)
				w.want[k] = i * 5;
		}
		work_launch(f, s, &w, ROUNDS, i);
		work_expect(&w, ROUNDS, i);
	}
	DO(cuStreamSynchronize(s));
	words_show("sets", &w);
}

/* Kernels that work on host memory */
static void mapped(const char *what, void *p, CUdeviceptr at, size_t n)
{
	struct words w = words_at(at, n);
	CUfunction f = form_function("work");

	for (uint32_t i = 0; i < TURNS; i++) {
		work(f, NULL, &w, ROUNDS, i);
		DO(cuCtxSynchronize());
		CHECK(*(volatile uint32_t *)p == w.want[0]);
	}
	for (size_t i = 0; i < n; i += w.stride)
		CHECK(((volatile uint32_t *)p)[i] == w.want[i]);
	printf("%s %016llx\n", what, (unsigned long long)hash_of(p, n * 4));
	free(w.want);
}

static void host_mapped(void)
{
	size_t n;
	CUdeviceptr at;
	void *p;

	form_begin();
	n = form_blocks * THREADS;
	DO(cuMemHostAlloc(&p, n * 4, CU_MEMHOSTALLOC_DEVICEMAP));
	DO(cuMemHostGetDevicePointer(&at, p, 0));
	mapped("host-mapped", p, at, n);
	DO(cuMemFreeHost(p));
}

static void host_registered(void)
{
	size_t n;
	CUdeviceptr at;
	void *p;

	form_begin();
	n = form_blocks * THREADS;
	p = mmap(NULL, n * 4, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED);
	DO(cuMemHostRegister(p, n * 4, CU_MEMHOSTREGISTER_DEVICEMAP));
	DO(cuMemHostGetDevicePointer(&at, p, 0));
	mapped("host-registered", p, at, n);
	DO(cuMemHostUnregister(p));
	munmap(p, n * 4);
}

static void managed(void)
{
	CUdeviceptr at;

	form_begin();
	DO(cuMemAllocManaged(&at, form_blocks * THREADS * 4, CU_MEM_ATTACH_GLOBAL));
	mapped("managed", (void *)(uintptr_t)at, at,
	       form_blocks * THREADS); /* NOLINT(performance-no-int-to-ptr) */
	DO(cuMemFree(at));
}

static void alloc_async(void)
{
	uint32_t *host;
	struct words w;
	CUfunction f;
	CUstream s;
	CUdeviceptr p;
	void *pinned;

	form_begin();
	f = form_function("work");
	s = stream_new();
	DO(cuMemAllocHost(&pinned, form_blocks * THREADS * 4));
	host = pinned;
	for (uint32_t i = 0; i < TURNS; i++) {
		DO(cuMemAllocAsync(&p, form_blocks * THREADS * 4, s));
		DO(cuMemsetD32Async(p, 12345, form_blocks * THREADS, s));
		w = (struct words){ .at = p,
				    .n = form_blocks * THREADS,
				    .want = host_new(form_blocks * THREADS),
				    .stride = form_scale };
		for (size_t k = 0; k < w.n; k++)
			w.want[k] = 12345;
		work(f, s, &w, ROUNDS, i);
		work(f, s, &w, ROUNDS, i + 1);
		DO(cuMemcpyDtoHAsync(host, p, w.n * 4, s));
		DO(cuMemFreeAsync(p, s));
		DO(cuStreamSynchronize(s));
		for (size_t k = 0; k < w.n; k += w.stride)
			CHECK(host[k] == w.want[k]);
		printf("alloc-async %016llx\n", (unsigned long long)hash_of(host, w.n * 4));
		free(w.want);
	}
	DO(cuMemFreeHost(pinned));
}

/* Had in one stream, used and freed in another, which waits for it by events */
static void alloc_across(void)
{
	CUstream s[2];
	CUdeviceptr p;
	struct words w;
	uint32_t *host;
	CUfunction f;
	CUevent e;
	void *pinned;

	form_begin();
	f = form_function("work");
	s[0] = stream_new();
	s[1] = stream_new();
	DO(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	DO(cuMemAllocHost(&pinned, form_blocks * THREADS * 4));
	host = pinned;
	for (uint32_t i = 0; i < TURNS; i++) {
		CUstream had = s[i % 2], used = s[!(i % 2)];

		DO(cuMemAllocAsync(&p, form_blocks * THREADS * 4, had));
		DO(cuMemsetD32Async(p, 12345, form_blocks * THREADS, had));
		w = (struct words){ .at = p,
				    .n = form_blocks * THREADS,
				    .want = host_new(form_blocks * THREADS),
				    .stride = form_scale };
		for (size_t k = 0; k < w.n; k++)
			w.want[k] = 12345;
		work(f, had, &w, ROUNDS, i);
		DO(cuEventRecord(e, had));
		DO(cuStreamWaitEvent(used, e, 0));
		work(f, used, &w, ROUNDS, i + 1);
		DO(cuMemcpyDtoHAsync(host, p, w.n * 4, used));
		DO(cuMemFreeAsync(p, used));
		DO(cuStreamSynchronize(used));
		for (size_t k = 0; k < w.n; k += w.stride)
			CHECK(host[k] == w.want[k]);
		printf("alloc-across %016llx\n", (unsigned long long)hash_of(host, w.n * 4));
		free(w.want);
	}
	DO(cuMemFreeHost(pinned));
}

/* Managed memory that the program moves itself, or gives to one stream */
static void managed_moved(const char *what, bool prefetch)
{
	CUmemLocation here = { .type = CU_MEM_LOCATION_TYPE_DEVICE },
		      there = { .type = CU_MEM_LOCATION_TYPE_HOST };
	size_t n;
	struct words w;
	CUdeviceptr at;
	CUfunction f;
	CUstream s;

	form_begin();
	here.id = form_device;
	f = form_function("work");
	n = form_blocks * THREADS;
	s = stream_new();
	DO(cuMemAllocManaged(&at, n * 4, prefetch ? CU_MEM_ATTACH_GLOBAL : CU_MEM_ATTACH_HOST));
	if (prefetch)
		DO(cuMemAdvise(at, n * 4, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, here));
	else
		DO(cuStreamAttachMemAsync(s, at, 0, CU_MEM_ATTACH_SINGLE));
	DO(cuStreamSynchronize(s));
	w = words_at(at, n);
	DO(cuCtxSynchronize());
	for (uint32_t i = 0; i < TURNS; i++) {
		if (prefetch)
			DO(cuMemPrefetchAsync(at, n * 4, here, 0, s));
		work(f, s, &w, ROUNDS, i);
		if (prefetch)
			DO(cuMemPrefetchAsync(at, n * 4, there, 0, s));
		DO(cuStreamSynchronize(s));
		for (size_t k = 0; k < n; k += w.stride)
			CHECK(((volatile uint32_t *)(uintptr_t)at)[k] == /* NOLINT */
			      w.want[k]);
	}
	words_show(what, &w);
}

static void managed_prefetch(void)
{
	managed_moved("managed-prefetch", true);
}

static void managed_attach(void)
{
	managed_moved("managed-attach", false);
}

/*
 * Memory of others is freed and had while kernels run. The driver may wait for them, and nobody
 * for the driver
 */
static void free_busy(void)
{
	CUdeviceptr other[TURNS];
	struct words w;
	CUfunction f;
	CUstream s;
	void *p;

	form_begin();
	f = form_function("work");
	s = stream_new();
	w = words_new(form_blocks * THREADS);
	for (uint32_t i = 0; i < TURNS; i++)
		DO(cuMemAlloc(&other[i], 1 << 20));
	DO(cuCtxSynchronize());
	for (uint32_t i = 0; i < TURNS; i++) {
		work(f, s, &w, 4 * ROUNDS, i);
		DO(cuMemFree(other[i]));
		work(f, s, &w, 4 * ROUNDS, i);
		DO(cuMemAlloc(&other[i], 1 << 20));
		DO(cuMemHostAlloc(&p, 1 << 16, 0));
		DO(cuMemFreeHost(p));
		DO(cuMemFree(other[i]));
	}
	DO(cuStreamSynchronize(s));
	words_show("free-busy", &w);
}

static void pointers(void)
{
	unsigned int type;
	CUdeviceptr base;
	struct words w;
	size_t size, left, total;
	CUcontext ctx;

	form_begin();
	w = words_new(form_blocks * THREADS);
	work(form_function("work"), NULL, &w, ROUNDS, 1);
	DO(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, w.at + 100));
	DO(cuPointerGetAttribute(&ctx, CU_POINTER_ATTRIBUTE_CONTEXT, w.at));
	DO(cuMemGetAddressRange(&base, &size, w.at + 100));
	DO(cuMemGetInfo(&left, &total));
	CHECK(type == CU_MEMORYTYPE_DEVICE && ctx == form_context && base == w.at &&
	      size == w.n * 4 && left && left <= total);
	work(form_function("work"), NULL, &w, ROUNDS, 2);
	words_show("pointers", &w);
}

/* More memory than there is: the error, and that all goes on */
static void out_of_memory(void)
{
	CUdeviceptr p;
	struct words w;
	size_t left, total;

	form_begin();
	w = words_new(form_blocks * THREADS);
	DO(cuMemGetInfo(&left, &total));
	IS(OUT_OF_MEMORY, cuMemAlloc(&p, total * 2));
	work(form_function("work"), NULL, &w, ROUNDS, 1);
	words_show("out-of-memory", &w);
}

const struct form memory_forms[] = {
	{ "copy-sync", copy_sync },
	{ "copy-async", copy_async },
	{ "copy-batch", copy_batch },
	{ "copy-2d", copy_2d },
	{ "copy-device", copy_device },
	{ "sets", sets },
	{ "host-mapped", host_mapped },
	{ "host-registered", host_registered },
	{ "managed", managed },
	{ "managed-prefetch", managed_prefetch },
	{ "managed-attach", managed_attach },
	{ "alloc-async", alloc_async },
	{ "alloc-across", alloc_across },
	{ "free-busy", free_busy },
	{ "pointers", pointers },
	{ "out-of-memory", out_of_memory },
	{ 0 },
};
