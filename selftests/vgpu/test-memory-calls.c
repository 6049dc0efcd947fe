// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Device memory through the control calls. This program defines ioctl(), so it is what a preloaded
 * library is to libcuda's calls: it keeps account of the objects of memory and refuses some.
 * libvgpu-rm.so is preloaded.
 */
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "rm.h"
#include "test-api.h"

#define MIB	((size_t)1 << 20)
#define GRANULE	VG_MEMORY_GRANULE
#define MANY	3000u
#define THREADS	4u

/* What stands between libcuda and the kernel; libcuda's lock is held in its calls */

static struct {
	uint32_t root, handle;
	uint64_t size;
} objects[MANY + 64];
static unsigned int n_objects;
static _Atomic uint64_t live;		/* bytes of all objects */
static atomic_uint taken, given, refuse;	/* calls; how many of the next ones are refused */
static atomic_bool wrong;		/* a call was made that the driver's libcuda would not make */
static uint32_t device_object;
static int control_fd = -1;

static int (*next_ioctl(void))(int, unsigned long, ...)
{
	static _Atomic(int (*)(int, unsigned long, ...)) next;

	if (!next)
		next = (int (*)(int, unsigned long, ...))dlsym(RTLD_NEXT, "ioctl");
	return next;
}

static int take(int fd, struct nv_alloc_rights *a)
{
	const struct nv_memory_params *p = (const void *)(uintptr_t)a->params;
	int r;

	taken++;
	if (!p || a->params_size || !p->size || p->size % GRANULE || a->parent != device_object)
		wrong = true;
	if (refuse) {
		refuse--;
		a->status = NV_ERR_NO_MEMORY;
		return 0;
	}
	r = next_ioctl()(fd, NV_IOCTL_ALLOC_RIGHTS, a);
	if (r || a->status || !p || n_objects == sizeof(objects) / sizeof(objects[0])) {
		wrong = true;
		return r;
	}
	objects[n_objects].root = a->root;
	objects[n_objects].handle = a->object;
	objects[n_objects++].size = p->size;
	live += p->size;
	return r;
}

static int give(int fd, struct nv_free *f)
{
	int r = next_ioctl()(fd, NV_IOCTL_FREE, f);
	unsigned int i = 0;

	while (i < n_objects && (objects[i].root != f->root || objects[i].handle != f->object))
		i++;
	if (r || f->status)
		wrong = true;
	if (r || f->status || i == n_objects)
		return r;
	given++;
	live -= objects[i].size;
	objects[i] = objects[--n_objects];
	return r;
}

__attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...)
{
	struct nv_alloc_rights *a;
	va_list ap;
	void *arg;
	int r;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	a = arg;
	if (request == NV_IOCTL_FREE)
		return give(fd, arg);
	if (request != NV_IOCTL_ALLOC_RIGHTS)
		return next_ioctl()(fd, request, arg);
	if (a->class == NV01_MEMORY_LOCAL_USER)
		return take(fd, a);
	r = next_ioctl()(fd, request, arg);
	if (a->class == NV01_DEVICE_0)
		device_object = a->object;
	control_fd = fd;
	return r;
}

/* Memory of the context is there besides @bytes, and no call was wrong */
static bool counted(uint64_t bytes)
{
	if (live != VG_CONTEXT_MEMORY + bytes || wrong)
		printf("# %llu bytes live, %llu expected%s\n", (unsigned long long)live,
		       (unsigned long long)(VG_CONTEXT_MEMORY + bytes),
		       wrong ? ", a call was wrong" : "");
	return live == VG_CONTEXT_MEMORY + bytes && !wrong;
}

static const CUmemAllocationProp prop = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
};
static const CUDA_ARRAY_DESCRIPTOR flat = { 1024, 1024, CU_AD_FORMAT_FLOAT, 1 };
static const CUDA_ARRAY3D_DESCRIPTOR deep = { 256, 256, 4, CU_AD_FORMAT_FLOAT, 4, 0 };

/* The device works: memory can be allocated, written and read */
static bool usable(void)
{
	uint32_t word = 0;
	CUdeviceptr p;

	OK(cuMemAlloc(&p, 4096));
	OK(cuMemsetD32(p, 77, 1024));
	OK(cuMemcpyDtoH(&word, p + 4092, 4));
	CHECK(word == 77);
	OK(cuMemFree(p));
	return true;
}

static bool contexts(void)
{
	unsigned int flags;
	CUcontext c, primary;
	CUdeviceptr p;
	int active;

	OK(cuInit(0));
	CHECK(!taken);
	refuse = 1;
	IS(OUT_OF_MEMORY, cuCtxCreate(&c, NULL, 0, 0));
	refuse = 1;
	IS(OUT_OF_MEMORY, cuDevicePrimaryCtxRetain(&primary, 0));
	OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	CHECK(!active && taken == 2 && !given && !live);
	OK(cuCtxGetCurrent(&c));
	CHECK(!c);
	OK(cuDevicePrimaryCtxRetain(&primary, 0));
	CHECK(counted(0));
	OK(cuCtxCreate(&c, NULL, 0, 0));
	CHECK(counted(VG_CONTEXT_MEMORY));
	/* what is left allocated goes with the context */
	OK(cuMemAlloc(&p, 3 * MIB));
	OK(cuMemAllocAsync(&p, MIB, NULL));
	CHECK(counted(VG_CONTEXT_MEMORY + 6 * MIB) && usable());
	OK(cuCtxDestroy(c));
	CHECK(counted(0));
	OK(cuDevicePrimaryCtxRelease(0));
	CHECK(!live && !n_objects);
	return true;
}

static bool allocations(void)
{
	CUarray array, array3d;
	CUdeviceptr a, b, c;
	size_t pitch;

	OK(cuMemAlloc(&a, 1));
	CHECK(counted(2 * MIB));
	OK(cuMemAlloc(&b, 2 * MIB + 1));
	CHECK(counted(6 * MIB));
	OK(cuMemAllocPitch(&c, &pitch, 1000, 2048, 4));
	CHECK(counted(8 * MIB));
	OK(cuMemFree(a));
	CHECK(counted(6 * MIB));
	OK(cuArrayCreate(&array, &flat));
	CHECK(counted(10 * MIB));
	OK(cuArray3DCreate(&array3d, &deep));
	CHECK(counted(14 * MIB));
	OK(cuArrayDestroy(array));
	OK(cuArrayDestroy(array3d));
	CHECK(counted(6 * MIB));
	/* freed in stream order */
	OK(cuMemFreeAsync(b, NULL));
	OK(cuCtxSynchronize());
	CHECK(counted(2 * MIB));
	OK(cuMemFree(c));
	return counted(0);
}

static bool created(void)
{
	CUmemGenericAllocationHandle memory, imported;
	CUdeviceptr p;
	int fd;

	OK(cuMemCreate(&memory, 3 * GRANULE, &prop, 0));
	CHECK(counted(3 * GRANULE));
	OK(cuMemExportToShareableHandle(&fd, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	OK(cuMemImportFromShareableHandle(&imported, (void *)(uintptr_t)fd,
					  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	close(fd);
	OK(cuMemAddressReserve(&p, 3 * GRANULE, 0, 0, 0));
	OK(cuMemMap(p, 3 * GRANULE, 0, memory, 0));
	OK(cuMemRelease(memory));
	CHECK(counted(3 * GRANULE));	/* it is mapped */
	OK(cuMemUnmap(p, 3 * GRANULE));
	CHECK(counted(0));
	OK(cuMemRelease(imported));
	OK(cuMemAddressFree(p, 3 * GRANULE));
	return counted(0);
}

static bool not_the_devices(void)
{
	unsigned int before = taken;
	static char own[8192];
	CUdeviceptr managed;
	void *a, *b;

	OK(cuMemAllocManaged(&managed, 4 * MIB, CU_MEM_ATTACH_GLOBAL));
	OK(cuMemHostAlloc(&a, 4 * MIB, CU_MEMHOSTALLOC_DEVICEMAP));
	OK(cuMemAllocHost(&b, 4 * MIB));
	OK(cuMemHostRegister(own, sizeof(own), 0));
	CHECK(taken == before && counted(0));
	OK(cuMemHostUnregister(own));
	OK(cuMemFreeHost(a));
	OK(cuMemFreeHost(b));
	OK(cuMemFree(managed));
	CHECK(taken == before);
	return counted(0);
}

/* Memory that a pool keeps is still the process's */
static bool pools(void)
{
	CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				 .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
	cuuint64_t all = UINT64_MAX;
	unsigned int before;
	CUmemoryPool pool;
	CUdeviceptr p, q;

	OK(cuMemPoolCreate(&pool, &props));
	OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
	OK(cuMemAllocFromPoolAsync(&p, 3 * MIB, pool, NULL));
	CHECK(counted(4 * MIB));
	OK(cuMemFreeAsync(p, NULL));
	OK(cuCtxSynchronize());
	CHECK(counted(4 * MIB));
	before = taken;
	OK(cuMemAllocFromPoolAsync(&p, 3 * MIB, pool, NULL));
	CHECK(taken == before && counted(4 * MIB));
	OK(cuMemFreeAsync(p, NULL));
	OK(cuCtxSynchronize());
	OK(cuMemPoolTrimTo(pool, 0));
	CHECK(counted(0));
	/* a refusal makes pools give back what they keep */
	OK(cuMemAllocFromPoolAsync(&p, 3 * MIB, pool, NULL));
	OK(cuMemFreeAsync(p, NULL));
	OK(cuCtxSynchronize());
	refuse = 1;
	OK(cuMemAlloc(&q, MIB));
	CHECK(counted(2 * MIB));
	OK(cuMemFree(q));
	/* the pool goes with its memory */
	OK(cuMemAllocFromPoolAsync(&p, 3 * MIB, pool, NULL));
	OK(cuMemPoolDestroy(pool));
	CHECK(counted(4 * MIB));
	OK(cuMemFreeAsync(p, NULL));
	OK(cuCtxSynchronize());
	return counted(0);
}

static bool graphs(void)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = {
		.poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			       .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } },
		.bytesize = 3 * MIB,
	};
	CUgraphNode node, end;
	CUgraphExec exec;
	CUgraph graph;

	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
	OK(cuGraphAddMemFreeNode(&end, graph, &node, 1, params.dptr));
	OK(cuGraphInstantiate(&exec, graph, 0));
	CHECK(counted(0));
	refuse = 1;
	IS(OUT_OF_MEMORY, cuGraphLaunch(exec, NULL));
	CHECK(counted(0));
	OK(cuGraphLaunch(exec, NULL));
	OK(cuCtxSynchronize());
	CHECK(counted(4 * MIB));
	OK(cuDeviceGraphMemTrim(0));
	CHECK(counted(0));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	return counted(0);
}

/* @call is refused: nothing but its result says so */
#define REFUSED(call) \
	do { \
		size_t left, now, total; \
		unsigned int before = taken; \
		OK(cuMemGetInfo(&left, &total)); \
		refuse = 1; \
		IS(OUT_OF_MEMORY, call); \
		OK(cuMemGetInfo(&now, &total)); \
		CHECK(now == left && taken == before + 1 && counted(0) && usable()); \
	} while (0)

static bool refusals(void)
{
	CUmemGenericAllocationHandle memory;
	CUmemoryPool pool;
	CUarray array;
	CUdeviceptr p;
	size_t pitch;

	OK(cuDeviceGetDefaultMemPool(&pool, 0));
	REFUSED(cuMemAlloc(&p, MIB));
	REFUSED(cuMemAllocPitch(&p, &pitch, 1000, 10, 4));
	REFUSED(cuArrayCreate(&array, &flat));
	REFUSED(cuArray3DCreate(&array, &deep));
	REFUSED(cuMemCreate(&memory, GRANULE, &prop, 0));
	REFUSED(cuMemAllocAsync(&p, MIB, NULL));
	REFUSED(cuMemAllocFromPoolAsync(&p, MIB, pool, NULL));
	OK(cuCtxSynchronize());
	return true;
}

/* Freed in another order than allocated */
static bool many(void)
{
	static CUdeviceptr p[MANY];

	for (unsigned int i = 0; i < MANY; i++)
		OK(cuMemAlloc(&p[i], 256));
	CHECK(counted(MANY * GRANULE) && n_objects == MANY + 1);
	for (unsigned int i = 0; i < MANY; i++)
		OK(cuMemFree(p[i * 7 % MANY]));
	return counted(0);
}

static void *allocate(void *arg)
{
	CUdeviceptr p[8];
	CUresult r = cuCtxSetCurrent(ctx);

	for (unsigned int i = 0; i < 50 && !r; i++) {
		for (unsigned int j = 0; j < 8 && !r; j++)
			r = cuMemAlloc(&p[j], 4096 * (j + 1));
		for (unsigned int j = 0; j < 8 && !r; j++)
			r = j % 2 ? cuMemFreeAsync(p[j], NULL) : cuMemFree(p[j]);
	}
	*(CUresult *)arg = r;
	return NULL;
}

static bool threads(void)
{
	CUresult result[THREADS];
	pthread_t thread[THREADS];

	for (unsigned int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&thread[i], NULL, allocate, &result[i]));
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (unsigned int i = 0; i < THREADS; i++)
		OK(result[i]);
	OK(cuCtxSynchronize());
	return counted(0);
}

/* Calls of this program's own */

static uint32_t raw_alloc(uint32_t root, uint32_t parent, uint32_t *object, uint32_t class,
			  const void *params)
{
	struct nv_alloc_rights a = { .root = root, .parent = parent, .object = *object,
				     .class = class, .params = (uintptr_t)params };

	if (next_ioctl()(control_fd, NV_IOCTL_ALLOC_RIGHTS, &a))
		return UINT32_MAX;
	*object = a.object;
	return a.status;
}

static uint32_t raw_free(uint32_t root, uint32_t object)
{
	struct nv_free f = { .root = root, .object = object };

	return next_ioctl()(control_fd, NV_IOCTL_FREE, &f) ? UINT32_MAX : f.status;
}

static bool statuses(void)
{
	struct nv_memory_params p = { .size = GRANULE };
	struct nv_device_params d = { .device = 0 };
	uint32_t root = 0, device = 0, memory = 0, second = 0, below = 0, subdevice = 0;

	CHECK(raw_alloc(0, 0, &root, NV01_ROOT_CLIENT, NULL) == NV_OK);
	CHECK(raw_alloc(root, root, &device, NV01_DEVICE_0, &d) == NV_OK);
	CHECK(raw_alloc(root, device, &subdevice, NV20_SUBDEVICE_0, NULL) == NV_OK);
	CHECK(raw_alloc(root, root, &memory, NV01_MEMORY_LOCAL_USER,
			&p) == NV_ERR_INVALID_ARGUMENT);
	CHECK(raw_alloc(root, subdevice, &memory, NV01_MEMORY_LOCAL_USER,
			&p) == NV_ERR_INVALID_ARGUMENT);
	CHECK(raw_alloc(root, device + 77, &memory, NV01_MEMORY_LOCAL_USER,
			&p) == NV_ERR_INVALID_OBJECT_HANDLE);
	CHECK(raw_alloc(root, device, &memory, NV01_MEMORY_LOCAL_USER,
			NULL) == NV_ERR_INVALID_ARGUMENT);
	p.size = 0;
	CHECK(raw_alloc(root, device, &memory, NV01_MEMORY_LOCAL_USER,
			&p) == NV_ERR_INVALID_ARGUMENT);
	p.size = GRANULE;
	memory = 0x99;
	CHECK(raw_alloc(root, device, &memory, NV01_MEMORY_LOCAL_USER, &p) == NV_OK);
	CHECK(raw_alloc(root, device, &memory, NV01_MEMORY_LOCAL_USER,
			&p) == NV_ERR_INVALID_ARGUMENT);
	CHECK(raw_alloc(root, memory, &below, NV20_SUBDEVICE_0, NULL) == NV_ERR_INVALID_ARGUMENT);
	CHECK(raw_free(root, memory) == NV_OK);
	CHECK(raw_free(root, memory) == NV_ERR_INVALID_OBJECT_HANDLE);
	/* with the device, and with the client */
	CHECK(raw_alloc(root, device, &memory, NV01_MEMORY_LOCAL_USER, &p) == NV_OK);
	CHECK(raw_free(root, device) == NV_OK);
	CHECK(raw_free(root, memory) == NV_ERR_INVALID_OBJECT_HANDLE);
	CHECK(raw_free(root, subdevice) == NV_ERR_INVALID_OBJECT_HANDLE);
	CHECK(raw_alloc(root, root, &device, NV01_DEVICE_0, &d) == NV_OK);
	CHECK(raw_alloc(root, device, &memory, NV01_MEMORY_LOCAL_USER, &p) == NV_OK);
	CHECK(raw_alloc(root, device, &second, NV01_MEMORY_LOCAL_USER, &p) == NV_OK);
	CHECK(raw_free(root, root) == NV_OK);
	CHECK(raw_free(root, memory) == NV_ERR_INVALID_OBJECT_HANDLE);
	CHECK(raw_free(root, second) == NV_ERR_INVALID_OBJECT_HANDLE);
	return usable();	/* libcuda's own are there */
}

/* Memory of the device outlives all contexts, and needs none */
static bool without_context(void)
{
	CUmemGenericAllocationHandle memory;

	OK(cuMemCreate(&memory, GRANULE, &prop, 0));
	CHECK(counted(GRANULE));
	OK(cuDevicePrimaryCtxReset(0));
	CHECK(live == GRANULE);
	refuse = 1;
	IS(OUT_OF_MEMORY, cuDevicePrimaryCtxRetain(&ctx, 0));
	OK(cuMemRelease(memory));
	CHECK(!live && !wrong);
	OK(cuDevicePrimaryCtxRetain(&ctx, 0));
	OK(cuCtxSetCurrent(ctx));
	CHECK(usable());
	return counted(0);
}

/* A process without libvgpu-rm.so */
static bool no_calls(void)
{
	CUmemGenericAllocationHandle memory;

	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&ctx, 0));
	OK(cuCtxSetCurrent(ctx));
	OK(cuMemCreate(&memory, GRANULE, &prop, 0));
	CHECK(usable() && control_fd < 0);
	OK(cuMemRelease(memory));
	return true;
}

static bool without_rm(const char *preload)
{
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		setenv("LD_PRELOAD", preload, 1);
		execl("/proc/self/exe", "test-memory-calls", "no-calls", NULL);
		_exit(127);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
	return true;
}

/* Again, with the kernel's side preloaded */
static void restart(char **argv)
{
	char self[PATH_MAX], path[2 * PATH_MAX], name[64];
	const char *preload = getenv("LD_PRELOAD") ?: "";
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n > 0 ? n : 0] = '\0';
	snprintf(path, sizeof(path), "%s/../vgpu/libvgpu-rm.so:%s", dirname(self), preload);
	snprintf(name, sizeof(name), "vgpu-test-memory-calls-%d", (int)getpid());
	setenv("TEST_MEMORY_CALLS", preload, 1);
	setenv("LD_PRELOAD", path, 1);
	/* ASan insists on being the first library; before the C library is enough */
	setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 0);
	setenv("VGPU_NAME", name, 1);
	setenv("VGPU_SMS", "2", 1);
	setenv("VGPU_MEM_MB", "256", 1);
	setenv("VGPU_MPS", "0", 1);
	execv("/proc/self/exe", argv);
	exit(127);
}

int main(int argc, char **argv)
{
	const char *preload = getenv("TEST_MEMORY_CALLS");
	char shm[96];

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!preload)
		restart(argv);
	if (argc > 1)
		return !no_calls();
	ok(contexts(), "a context has memory; if that is refused there is no context");
	if (!ok(prepare(), "a context"))
		return done();
	ok(allocations(), "allocations and arrays are objects until they are freed");
	ok(created(), "memory of cuMemCreate, until its last mapping goes; what is imported is none");
	ok(not_the_devices(), "managed and host memory is none");
	ok(pools(), "memory that pools keep stays until they give it back");
	ok(graphs(), "memory of graphs");
	ok(refusals(), "a refused allocation fails, and changes nothing else");
	ok(many(), "many of them");
	ok(threads(), "several threads allocate and free");
	ok(statuses(), "the kernel's side: parents, parameters, handles, descendants");
	ok(without_context(), "memory without a context");
	ok(without_rm(preload), "without libvgpu-rm.so there are no calls");
	snprintf(shm, sizeof(shm), "/dev/shm/%s", getenv("VGPU_NAME"));
	unlink(shm);
	return done();
}
