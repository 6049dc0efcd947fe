// SPDX-License-Identifier: LGPL-2.1-or-later
/* Memory pools, memory of graphs, virtual memory management */
#include <pthread.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "forms.h"

#define TURNS 6u

static CUfunction kernel;
static size_t words;

static CUstream stream_new(void)
{
	CUstream s;

	DO(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	return s;
}

static CUmemPoolProps on_device(void)
{
	return (CUmemPoolProps) { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				  .location = { CU_MEM_LOCATION_TYPE_DEVICE, form_device } };
}

static CUmemoryPool pool_new(cuuint64_t kept)
{
	const CUmemPoolProps props = on_device();
	CUmemoryPool pool;

	DO(cuMemPoolCreate(&pool, &props));
	DO(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &kept));
	return pool;
}

static cuuint64_t attribute(CUmemoryPool pool, CUmemPool_attribute which)
{
	cuuint64_t value;

	DO(cuMemPoolGetAttribute(pool, which, &value));
	return value;
}

static void begin(void)
{
	form_begin();
	kernel = form_function("work");
	words = (size_t)form_blocks * THREADS;
}

/* What is in memory of its own, which is not on the device yet */
static struct words new_at(CUdeviceptr at)
{
	struct words w = { .at = at, .n = words, .want = malloc(words * 4), .stride = form_scale };

	if (!w.want)
		abort();
	for (size_t i = 0; i < words; i++)
		w.want[i] = 12345;
	return w;
}

/* Filled, worked on, read back: all in the order of @s, and nothing is waited for */
static void fill(CUstream s, struct words *w, uint32_t seed, uint32_t *back)
{
	DO(cuMemsetD32Async(w->at, 12345, words, s));
	work(kernel, s, w, ROUNDS, seed);
	work(kernel, s, w, ROUNDS, seed + 1);
	DO(cuMemcpyDtoHAsync(back, w->at, words * 4, s));
}

static void compare(const char *what, const struct words *w, const uint32_t *back)
{
	for (size_t k = 0; k < words; k += w->stride)
		CHECK(back[k] == w->want[k]);
	printf("%s %016llx\n", what, (unsigned long long)hash_of(back, words * 4));
	free(w->want);
}

static uint32_t *pinned(size_t pieces)
{
	void *p;

	DO(cuMemAllocHost(&p, pieces * words * 4));
	return p;
}

/* Allocated, used and freed in one stream, which nobody waits for: mostly the same memory */
static void pool_reuse(void)
{
	CUmemoryPool pool;
	struct words w[TURNS];
	uint32_t *back;
	CUdeviceptr p;
	CUstream s;

	begin();
	s = stream_new();
	pool = pool_new(UINT64_MAX);
	back = pinned(TURNS);
	for (uint32_t i = 0; i < TURNS; i++) {
		DO(cuMemAllocFromPoolAsync(&p, words * 4, pool, s));
		w[i] = new_at(p);
		fill(s, &w[i], i, back + i * words);
		DO(cuMemFreeAsync(p, s));
	}
	DO(cuStreamSynchronize(s));
	for (uint32_t i = 0; i < TURNS; i++)
		compare("pool-reuse", &w[i], back + i * words);
	CHECK(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0);
	CHECK(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) >= words * 4);
	DO(cuMemPoolDestroy(pool));
}

/* What one stream freed another one allocates, which has waited for it by an event */
static void pool_across(void)
{
	CUmemoryPool pool;
	struct words w[TURNS];
	uint32_t *back;
	CUdeviceptr p;
	CUstream s[2];
	CUevent e;

	begin();
	s[0] = stream_new();
	s[1] = stream_new();
	DO(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	pool = pool_new(UINT64_MAX);
	back = pinned(TURNS);
	for (uint32_t i = 0; i < TURNS; i++) {
		DO(cuMemAllocFromPoolAsync(&p, words * 4, pool, s[i % 2]));
		w[i] = new_at(p);
		fill(s[i % 2], &w[i], i, back + i * words);
		DO(cuMemFreeAsync(p, s[i % 2]));
		DO(cuEventRecord(e, s[i % 2]));
		DO(cuStreamWaitEvent(s[(i + 1) % 2], e, 0));
		if (i % 3 == 2)
			DO(cuEventSynchronize(e));
	}
	DO(cuCtxSynchronize());
	for (uint32_t i = 0; i < TURNS; i++)
		compare("pool-across", &w[i], back + i * words);
	DO(cuMemPoolDestroy(pool));
}

/* The device's current pool is the program's, which is destroyed while its memory is in use */
static void pool_current(void)
{
	CUmemoryPool pool, first, now;
	struct words w[TURNS];
	CUdeviceptr p[TURNS];
	uint32_t *back;
	CUstream s;

	begin();
	s = stream_new();
	back = pinned(TURNS);
	DO(cuDeviceGetMemPool(&first, form_device));
	pool = pool_new(0);
	DO(cuDeviceSetMemPool(form_device, pool));
	for (uint32_t i = 0; i < TURNS; i++) {
		DO(cuMemAllocAsync(&p[i], words * 4, s));
		DO(cuPointerGetAttribute(&now, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p[i]));
		CHECK(now == pool);
		w[i] = new_at(p[i]);
		fill(s, &w[i], i, back + i * words);
	}
	DO(cuDeviceSetMemPool(form_device, first));
	DO(cuMemPoolDestroy(pool));
	for (uint32_t i = 0; i < TURNS; i++)
		DO(cuMemFreeAsync(p[i], s));
	DO(cuStreamSynchronize(s));
	for (uint32_t i = 0; i < TURNS; i++)
		compare("pool-current", &w[i], back + i * words);
}

/* What is unused goes back, and comes again, while kernels use the rest */
static void pool_trim(void)
{
	CUmemoryPool pool;
	struct words w;
	CUdeviceptr p, q;
	uint32_t *back;
	CUstream s, other;

	begin();
	s = stream_new();
	other = stream_new();
	pool = pool_new(UINT64_MAX);
	back = pinned(1);
	DO(cuMemAllocFromPoolAsync(&p, words * 4, pool, s));
	for (uint32_t i = 0; i < TURNS; i++) {
		w = new_at(p);
		fill(s, &w, i, back);
		DO(cuMemAllocFromPoolAsync(&q, 8 << 20, pool, other));
		DO(cuMemsetD8Async(q, 1, 8 << 20, other));
		DO(cuMemFreeAsync(q, other));
		DO(cuStreamSynchronize(other));
		DO(cuMemPoolTrimTo(pool, i % 2 ? 0 : 4 << 20));
		DO(cuStreamSynchronize(s));
		compare("pool-trim", &w, back);
		CHECK(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) >= words * 4);
	}
	DO(cuMemFree(p));
	DO(cuMemPoolDestroy(pool));
}

static void pool_host(void)
{
	CUmemPoolProps props;
	CUmemAccessDesc access;
	CUmemoryPool pool;
	struct words w;
	CUdeviceptr p;
	CUstream s;

	begin();
	s = stream_new();
	props = on_device();
	props.location = (CUmemLocation){ .type = CU_MEM_LOCATION_TYPE_HOST };
	DO(cuMemPoolCreate(&pool, &props));
	access = (CUmemAccessDesc) { { CU_MEM_LOCATION_TYPE_DEVICE, form_device },
				     CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	DO(cuMemPoolSetAccess(pool, &access, 1));
	for (uint32_t i = 0; i < TURNS; i++) {
		DO(cuMemAllocFromPoolAsync(&p, words * 4, pool, s));
		DO(cuStreamSynchronize(s));
		w = new_at(p);
		for (size_t k = 0; k < words; k++)
			((uint32_t *)(uintptr_t)p)[k] = 12345; /* NOLINT */
		work(kernel, s, &w, ROUNDS, i);
		DO(cuStreamSynchronize(s));
		compare("pool-host", &w, (const uint32_t *)(uintptr_t)p); /* NOLINT */
		DO(cuMemFreeAsync(p, s));
	}
	DO(cuStreamSynchronize(s));
	DO(cuMemPoolDestroy(pool));
}

static void *one_thread(void *seed)
{
	uint32_t *back;
	struct words w;
	CUdeviceptr p;

	DO(cuCtxSetCurrent(form_context));
	back = pinned(1);
	for (uint32_t i = 0; i < TURNS; i++) {
		DO(cuMemAllocAsync(&p, words * 4, CU_STREAM_PER_THREAD));
		w = new_at(p);
		fill(CU_STREAM_PER_THREAD, &w, *(uint32_t *)seed + i, back);
		DO(cuMemFreeAsync(p, CU_STREAM_PER_THREAD));
		DO(cuStreamSynchronize(CU_STREAM_PER_THREAD));
		for (size_t k = 0; k < words; k += w.stride)
			CHECK(back[k] == w.want[k]);
		free(w.want);
	}
	return NULL;
}

/* The default pool, from several threads */
static void pool_threads(void)
{
	uint32_t seeds[4] = { 1, 100, 200, 300 };
	cuuint64_t kept = UINT64_MAX;
	CUmemoryPool pool;
	pthread_t t[4];

	begin();
	DO(cuDeviceGetDefaultMemPool(&pool, form_device));
	DO(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &kept));
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&t[i], NULL, one_thread, &seeds[i]));
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	puts("pool-threads");
}

/* Graphs */

static void graph_memory(void)
{
	struct words w, want;
	uint32_t *back;
	CUgraphExec exec;
	CUdeviceptr p;
	CUgraph g;
	CUstream s;

	begin();
	s = stream_new();
	back = pinned(1);
	w = words_new(words);
	DO(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	DO(cuMemAllocAsync(&p, words * 4, s));
	want = new_at(p);
	fill(s, &want, 7, back);
	DO(cuMemcpyDtoDAsync(w.at, p, words * 4, s));
	DO(cuMemFreeAsync(p, s));
	DO(cuStreamEndCapture(s, &g));
	DO(cuGraphInstantiate(&exec, g, 0));
	for (uint32_t i = 0; i < TURNS; i++) {
		DO(cuGraphLaunch(exec, s));
		memcpy(w.want, want.want, words * 4);
		work(kernel, s, &w, ROUNDS, i);
	}
	DO(cuStreamSynchronize(s));
	DO(cuGraphExecDestroy(exec));
	DO(cuGraphDestroy(g));
	DO(cuDeviceGraphMemTrim(form_device));
	compare("graph-memory", &want, back);
	words_show("behind it", &w);
}

/* An allocation of one graph, which the program and its kernels use between the launches */
static void graph_left(const char *what, unsigned long long flags, bool by_graph)
{
	CUgraphExec exec, freeing = NULL;
	CUgraph g, h = NULL;
	CUgraphNode n;
	CUDA_MEM_ALLOC_NODE_PARAMS a;
	uint32_t *back;
	struct words w;
	CUstream s;

	begin();
	s = stream_new();
	back = pinned(1);
	a = (CUDA_MEM_ALLOC_NODE_PARAMS){ .poolProps = on_device(), .bytesize = words * 4 };
	DO(cuGraphCreate(&g, 0));
	DO(cuGraphAddMemAllocNode(&n, g, NULL, 0, &a));
	DO(cuGraphInstantiate(&exec, g, flags));
	if (by_graph) {
		DO(cuGraphCreate(&h, 0));
		DO(cuGraphAddMemFreeNode(&n, h, NULL, 0, a.dptr));
		DO(cuGraphInstantiate(&freeing, h, 0));
	}
	for (uint32_t i = 0; i < TURNS; i++) {
		DO(cuGraphLaunch(exec, s));
		w = new_at(a.dptr);
		fill(s, &w, i, back);
		if (by_graph)
			DO(cuGraphLaunch(freeing, s));
		else if (!flags || i == TURNS - 1)
			DO(cuMemFreeAsync(a.dptr, s));
		DO(cuStreamSynchronize(s));
		compare(what, &w, back);
	}
	DO(cuGraphExecDestroy(exec));
	DO(cuGraphDestroy(g));
	if (h) {
		DO(cuGraphExecDestroy(freeing));
		DO(cuGraphDestroy(h));
	}
}

static void graph_memory_stream(void)
{
	graph_left("graph-memory-stream", 0, false);
}

static void graph_memory_graph(void)
{
	graph_left("graph-memory-graph", 0, true);
}

static void graph_memory_auto(void)
{
	graph_left("graph-memory-auto", CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH, false);
}

/* Virtual memory */

static CUmemAllocationProp prop;
static CUmemAccessDesc all;
static size_t granule;

static void begin_virtual(void)
{
	begin();
	prop = (CUmemAllocationProp) { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
				       .location = { CU_MEM_LOCATION_TYPE_DEVICE, form_device } };
	all = (CUmemAccessDesc){ prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	DO(cuMemGetAllocationGranularity(&granule, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	/* one that two pieces have to be joined for */
	while (granule < words * 2)
		granule *= 2;
}

static void map(CUdeviceptr at)
{
	CUmemGenericAllocationHandle piece;

	DO(cuMemCreate(&piece, granule, &prop, 0));
	DO(cuMemMap(at, granule, 0, piece, 0));
	DO(cuMemRelease(piece));
	DO(cuMemSetAccess(at, granule, &all, 1));
}

/* Kernels whose memory is half in one piece, half in the next */
static void virtual_pieces(void)
{
	uint32_t *back;
	struct words w;
	CUdeviceptr at;
	CUstream s;

	begin_virtual();
	s = stream_new();
	back = pinned(1);
	DO(cuMemAddressReserve(&at, 2 * granule, 0, 0, 0));
	for (uint32_t i = 0; i < TURNS; i++) {
		map(at);
		map(at + granule);
		w = new_at(at + granule - words * 2);
		fill(s, &w, i, back);
		DO(cuStreamSynchronize(s));
		compare("virtual-pieces", &w, back);
		DO(cuMemUnmap(at, granule));
		DO(cuMemUnmap(at + granule, granule));
	}
	DO(cuMemAddressFree(at, 2 * granule));
}

/* A range grows at its end, and shrinks, while kernels work at its beginning */
static void virtual_grow(void)
{
	struct words w[TURNS];
	uint32_t *back;
	CUdeviceptr at;
	CUstream s;

	begin_virtual();
	s = stream_new();
	back = pinned(TURNS);
	DO(cuMemAddressReserve(&at, (TURNS + 1) * granule, 0, 0, 0));
	map(at);
	for (uint32_t i = 0; i < TURNS; i++) {
		w[i] = new_at(at + (i + 1) * granule - words * 2);
		map(at + (i + 1) * granule);
		fill(s, &w[i], i, back + i * words);
	}
	DO(cuStreamSynchronize(s));
	for (uint32_t i = 0; i < TURNS; i++)
		compare("virtual-grow", &w[i], back + i * words);
	w[0] = new_at(at);
	fill(s, &w[0], 9, back);
	for (uint32_t i = TURNS; i > 1; i--)
		DO(cuMemUnmap(at + i * granule, granule));
	DO(cuStreamSynchronize(s));
	compare("virtual-grow", &w[0], back);
	DO(cuMemUnmap(at, granule));
	DO(cuMemUnmap(at + granule, granule));
	DO(cuMemAddressFree(at, (TURNS + 1) * granule));
}

/* The same memory at two addresses, and allowed to be read only at one of them */
static void virtual_twice(void)
{
	CUmemGenericAllocationHandle piece, same;
	CUmemAccessDesc readonly;
	uint32_t *back;
	struct words w;
	CUdeviceptr at;
	CUstream s;

	begin_virtual();
	s = stream_new();
	granule *= 2; /* all of it in one piece */
	back = pinned(1);
	DO(cuMemAddressReserve(&at, 2 * granule, 0, 0, 0));
	DO(cuMemCreate(&piece, granule, &prop, 0));
	DO(cuMemMap(at, granule, 0, piece, 0));
	DO(cuMemMap(at + granule, granule, 0, piece, 0));
	DO(cuMemSetAccess(at, 2 * granule, &all, 1));
	DO(cuMemRetainAllocationHandle(&same, (void *)(uintptr_t)at)); /* NOLINT */
	CHECK(same == piece);
	DO(cuMemRelease(same));
	readonly = all;
	readonly.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
	DO(cuMemSetAccess(at + granule, granule, &readonly, 1));
	for (uint32_t i = 0; i < TURNS; i++) {
		w = new_at(at);
		DO(cuMemsetD32Async(w.at, 12345, words, s));
		work(kernel, s, &w, ROUNDS, i);
		work(kernel, s, &w, ROUNDS, i + 1);
		DO(cuMemcpyDtoHAsync(back, at + granule, words * 4, s));
		DO(cuStreamSynchronize(s));
		compare("virtual-twice", &w, back);
	}
	DO(cuMemUnmap(at, 2 * granule));
	DO(cuMemRelease(piece));
	DO(cuMemAddressFree(at, 2 * granule));
}

/* The memory of another process, from a descriptor; it works on it, and its owner looks */
static void virtual_process(void)
{
	CUmemGenericAllocationHandle piece;
	uint32_t *back;
	struct words w;
	CUdeviceptr at;
	int fd = -1, status, pair[2];
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	char byte = 0;
	struct iovec io = { &byte, 1 };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c;
	pid_t child;

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	child = fork();
	CHECK(child >= 0);
	close(pair[child != 0]);
	begin_virtual();
	granule *= 2;
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	if (child) {
		DO(cuMemCreate(&piece, granule, &prop, 0));
		DO(cuMemExportToShareableHandle(&fd, piece,
						CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
		c = CMSG_FIRSTHDR(&m);
		*c = (struct cmsghdr){ CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
		CHECK(sendmsg(pair[0], &m, 0) == 1);
	} else {
		CHECK(recvmsg(pair[1], &m, 0) == 1 && CMSG_FIRSTHDR(&m));
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
		DO(cuMemImportFromShareableHandle(&piece, (void *)(uintptr_t)fd,
						  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	}
	close(fd);
	DO(cuMemAddressReserve(&at, granule, 0, 0, 0));
	DO(cuMemMap(at, granule, 0, piece, 0));
	DO(cuMemRelease(piece));
	DO(cuMemSetAccess(at, granule, &all, 1));
	back = pinned(1);
	w = new_at(at);
	if (!child) {
		fill(NULL, &w, 3, back);
		DO(cuCtxSynchronize());
		CHECK(write(pair[1], &byte, 1) == 1);
		/* memory that is mapped goes with the process */
		exit(0);
	}
	CHECK(read(pair[0], &byte, 1) == 1);
	work_expect(&w, ROUNDS * form_scale, 3);
	work_expect(&w, ROUNDS * form_scale, 4);
	work(kernel, NULL, &w, ROUNDS, 5);
	DO(cuMemcpyDtoH(back, at, words * 4));
	compare("virtual-process", &w, back);
	CHECK(waitpid(child, &status, 0) == child && !status);
	DO(cuMemUnmap(at, granule));
	DO(cuMemAddressFree(at, granule));
}

const struct form pool_forms[] = {
	{ "pool-reuse", pool_reuse },
	{ "pool-across", pool_across },
	{ "pool-current", pool_current },
	{ "pool-trim", pool_trim },
	{ "pool-host", pool_host },
	{ "pool-threads", pool_threads },
	{ "graph-memory", graph_memory },
	{ "graph-memory-stream", graph_memory_stream },
	{ "graph-memory-graph", graph_memory_graph },
	{ "graph-memory-auto", graph_memory_auto },
	{ "virtual-pieces", virtual_pieces },
	{ "virtual-grow", virtual_grow },
	{ "virtual-twice", virtual_twice },
	{ "virtual-process", virtual_process },
	{ NULL, NULL },
};
