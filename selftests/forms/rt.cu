// SPDX-License-Identifier: LGPL-2.1-or-later
// Small programs of the runtime API, each of one form or feature, as those of the driver API
// (forms.h): rt NAME
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>
#include <sys/wait.h>
#include <unistd.h>
#include <cooperative_groups.h>
#include <cuda.h>

#define THREADS 64u
#define TURNS 6u

static unsigned int scale = 1, blocks, rounds;

#define CHECK(what) \
	do { \
		if (!(what)) { \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what); \
			exit(1); \
		} \
	} while (0)

#define DO(call) \
	do { \
		cudaError_t e_ = (call); \
		if (e_) { \
			fprintf(stderr, "%s: %s\n", #call, cudaGetErrorName(e_)); \
			exit(1); \
		} \
	} while (0)

__host__ __device__ static uint32_t mix(uint32_t x, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		x = x * 1664525u + 1013904223u + (x >> 13);
	return x;
}

__global__ void work(uint32_t *out, uint32_t n, uint32_t seed)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

	out[i] = mix(out[i] ^ seed ^ i, n);
}

template <class T, unsigned int N> __global__ void templated(T *out)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

	out[i] = out[i] * (T)31 + (T)(i % N);
}

__device__ uint32_t counter = 5;
__constant__ uint32_t weights[64];
__managed__ uint32_t managed_counter = 9;

__global__ void variables(uint32_t *out)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

	out[i] += weights[threadIdx.x & 63];
	if (!threadIdx.x) {
		atomicAdd(&counter, 1);
		atomicAdd(&managed_counter, 2);
	}
}

__global__ void reverse(uint32_t *out)
{
	extern __shared__ uint32_t shared[];

	shared[threadIdx.x] = out[blockIdx.x * blockDim.x + threadIdx.x];
	__syncthreads();
	out[blockIdx.x * blockDim.x + threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
}

// every block adds what all blocks wrote before
__global__ void together(uint32_t *out, uint32_t n)
{
	cooperative_groups::grid_group grid = cooperative_groups::this_grid();
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, all = gridDim.x * blockDim.x;

	for (uint32_t k = 0; k < n; k++) {
		uint32_t next = out[(i + blockDim.x) % all];

		grid.sync();
		out[i] = mix(out[i] + next, 2);
		grid.sync();
	}
}

struct Words {
	uint32_t *at;
	std::vector<uint32_t> want;

	explicit Words(size_t n) : want(n, 12345)
	{
		DO(cudaMalloc(&at, n * 4));
		DO(cudaMemcpy(at, want.data(), n * 4, cudaMemcpyHostToDevice));
	}

	void launch(cudaStream_t s, uint32_t seed) const
	{
		work<<<(unsigned int)(want.size() / THREADS), THREADS, 0, s>>>(at, rounds, seed);
		DO(cudaGetLastError());
	}

	// of a scaled buffer every scale-th word is followed on the host
	void expect(uint32_t seed)
	{
		for (size_t i = 0; i < want.size(); i += scale)
			want[i] = mix(want[i] ^ seed ^ (uint32_t)i, rounds);
	}

	void run(cudaStream_t s, uint32_t seed)
	{
		launch(s, seed);
		expect(seed);
	}

	void show(const char *what)
	{
		std::vector<uint32_t> got(want.size());
		uint64_t h = 14695981039346656037ull;

		DO(cudaMemcpy(got.data(), at, got.size() * 4, cudaMemcpyDeviceToHost));
		for (size_t i = 0; i < got.size(); i++) {
			CHECK(i % scale || got[i] == want[i]);
			h = (h ^ got[i]) * 1099511628211ull;
		}
		printf("%s %016llx\n", what, (unsigned long long)h);
		DO(cudaFree(at));
	}
};

static void launch()
{
	Words w(blocks * THREADS);

	for (uint32_t i = 0; i < TURNS; i++)
		w.run(nullptr, i);
	w.show("launch");
}

// The driver's own launch, by the address that the runtime gives
static void entry_point()
{
	Words w(blocks * THREADS);
	cudaDriverEntryPointQueryResult found;
	decltype(&cuLaunchKernel) launch;
	uint32_t n = rounds, i;
	cudaFunction_t f;
	void *fn;

	DO(cudaGetDriverEntryPointByVersion("cuLaunchKernel", &fn, 12000, cudaEnableDefault,
					    &found));
	CHECK(found == cudaDriverEntryPointSuccess && fn);
	launch = (decltype(launch))fn;
	DO(cudaGetFuncBySymbol(&f, (const void *)work));
	for (i = 0; i < TURNS; i++) {
		void *params[] = { &w.at, &n, &i };

		CHECK(launch(f, blocks, 1, 1, THREADS, 1, 1, 0, nullptr, params, nullptr) ==
		      CUDA_SUCCESS);
		w.expect(i);
	}
	w.show("entry-point");
}

static void launch_ex()
{
	Words w(blocks * THREADS);
	cudaLaunchConfig_t config = {};

	config.gridDim = blocks;
	config.blockDim = THREADS;
	for (uint32_t i = 0; i < TURNS; i++) {
		DO(cudaLaunchKernelEx(&config, work, w.at, rounds, i));
		w.expect(i);
	}
	w.show("launch-ex");
}

static void launch_by_address()
{
	Words w(blocks * THREADS);

	for (uint32_t i = 0; i < TURNS; i++) {
		void *params[] = { &w.at, &rounds, &i };

		DO(cudaLaunchKernel((const void *)work, dim3(blocks), dim3(THREADS), params, 0,
				    nullptr));
		w.expect(i);
	}
	w.show("launch-by-address");
}

static void cooperative()
{
	std::vector<uint32_t> want(8 * THREADS, 12345);
	Words w(want.size());
	uint32_t n = 5;
	void *params[] = { &w.at, &n };

	DO(cudaLaunchCooperativeKernel((const void *)together, dim3(8), dim3(THREADS), params, 0,
				       nullptr));
	for (uint32_t k = 0; k < n; k++) {
		std::vector<uint32_t> was = want;

		for (size_t i = 0; i < want.size(); i++)
			want[i] = mix(was[i] + was[(i + THREADS) % was.size()], 2);
	}
	w.want = want;
	w.show("cooperative");
}

template <class T, unsigned int N> static void one_template(const char *what)
{
	size_t n = (size_t)blocks * THREADS;
	std::vector<T> want(n, 0), got(n);
	T *p;

	DO(cudaMalloc(&p, n * sizeof(T)));
	DO(cudaMemset(p, 0, n * sizeof(T)));
	for (uint32_t k = 0; k < 3; k++) {
		templated<T, N><<<blocks, THREADS>>>(p);
		for (size_t i = 0; i < n; i++)
			want[i] = (T)(want[i] * (T)31 + (T)(i % N));
	}
	DO(cudaMemcpy(got.data(), p, n * sizeof(T), cudaMemcpyDeviceToHost));
	CHECK(got == want);
	DO(cudaFree(p));
	puts(what);
}

static void templates()
{
	one_template<uint8_t, 3>("uint8_t");
	one_template<uint32_t, 7>("uint32_t");
	one_template<uint64_t, 11>("uint64_t");
	one_template<float, 2>("float");
	one_template<double, 5>("double");
}

static void symbols()
{
	Words w(blocks * THREADS);
	uint32_t v[64], count;

	for (uint32_t k = 0; k < TURNS; k++) {
		for (uint32_t i = 0; i < 64; i++)
			v[i] = i * k;
		DO(cudaMemcpyToSymbol(weights, v, sizeof(v)));
		variables<<<blocks, THREADS>>>(w.at);
		for (uint32_t i = 0; i < w.want.size(); i++)
			w.want[i] += (i & 63) * k;
	}
	DO(cudaMemcpyFromSymbol(&count, counter, 4));
	CHECK(count == 5 + TURNS * blocks);
	DO(cudaDeviceSynchronize());
	CHECK(managed_counter == 9 + 2 * TURNS * blocks);
	w.show("symbols");
}

static void dynamic_shared()
{
	Words w(blocks * THREADS);
	std::vector<uint32_t> was;

	w.run(nullptr, 1);
	for (uint32_t k = 0; k < 3; k++) {
		reverse<<<blocks, THREADS, THREADS * 4>>>(w.at);
		was = w.want;
		for (size_t i = 0; i < was.size(); i++)
			w.want[i] = was[i - i % THREADS + THREADS - 1 - i % THREADS];
	}
	// reversed three times, where only some words are followed
	if (scale == 1) {
		w.show("dynamic-shared");
	} else {
		DO(cudaFree(w.at));
		puts("dynamic-shared");
	}
}

static void streams()
{
	cudaStream_t s[4];
	cudaEvent_t e;
	Words w(blocks * THREADS);

	DO(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
	for (int i = 0; i < 4; i++)
		DO(cudaStreamCreateWithFlags(&s[i], cudaStreamNonBlocking));
	DO(cudaDeviceSynchronize());
	for (uint32_t i = 0; i < 3 * TURNS; i++) {
		DO(cudaStreamWaitEvent(s[i % 4], e, 0));
		w.run(s[i % 4], i);
		DO(cudaEventRecord(e, s[i % 4]));
	}
	DO(cudaDeviceSynchronize());
	w.show("streams");
}

static void per_thread_streams()
{
	std::vector<Words> w;
	std::vector<std::thread> threads;

	for (int i = 0; i < 3; i++)
		w.emplace_back((size_t)blocks * THREADS);
	DO(cudaDeviceSynchronize());
	for (uint32_t i = 0; i < 3; i++) {
		threads.emplace_back([&w, i] {
			for (uint32_t k = 0; k < TURNS; k++)
				w[i].run(cudaStreamPerThread, i + k);
			DO(cudaStreamSynchronize(cudaStreamPerThread));
		});
	}
	for (std::thread &t : threads)
		t.join();
	for (Words &one : w)
		one.show("per-thread-streams");
}

static void add_one(void *user)
{
	++*(uint32_t *)user;
}

static void host_function()
{
	Words w(blocks * THREADS);
	uint32_t calls = 0;

	for (uint32_t i = 0; i < TURNS; i++) {
		w.run(nullptr, i);
		DO(cudaLaunchHostFunc(nullptr, add_one, &calls));
	}
	DO(cudaDeviceSynchronize());
	CHECK(calls == TURNS);
	w.show("host-function");
}

static void graph()
{
	Words w(blocks * THREADS);
	cudaGraphExec_t e;
	cudaStream_t s;
	cudaGraph_t g;

	DO(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	DO(cudaDeviceSynchronize());
	DO(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	w.launch(s, 1);
	w.launch(s, 2);
	DO(cudaStreamEndCapture(s, &g));
	DO(cudaGraphInstantiate(&e, g, 0));
	DO(cudaGraphDestroy(g));
	for (uint32_t i = 0; i < TURNS; i++) {
		DO(cudaGraphLaunch(e, s));
		w.expect(1);
		w.expect(2);
		w.run(s, i);
	}
	DO(cudaStreamSynchronize(s));
	DO(cudaGraphExecDestroy(e));
	w.show("graph");
}

static void malloc_async()
{
	size_t n = (size_t)blocks * THREADS;
	std::vector<uint32_t> got(n);
	cudaStream_t s;
	uint32_t *p;

	DO(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	for (uint32_t k = 0; k < TURNS; k++) {
		DO(cudaMallocAsync((void **)&p, n * 4, s));
		DO(cudaMemsetAsync(p, 0, n * 4, s));
		work<<<blocks, THREADS, 0, s>>>(p, rounds, k);
		DO(cudaMemcpyAsync(got.data(), p, n * 4, cudaMemcpyDeviceToHost, s));
		DO(cudaFreeAsync(p, s));
		DO(cudaStreamSynchronize(s));
		for (size_t i = 0; i < n; i += scale)
			CHECK(got[i] == mix(k ^ (uint32_t)i, rounds));
	}
	puts("malloc-async");
}

static void managed()
{
	size_t n = (size_t)blocks * THREADS;
	uint32_t *p;

	DO(cudaMallocManaged(&p, n * 4));
	for (uint32_t k = 0; k < TURNS; k++) {
		for (size_t i = 0; i < n; i++)
			p[i] = k;
		work<<<blocks, THREADS>>>(p, rounds, 5);
		DO(cudaDeviceSynchronize());
		for (size_t i = 0; i < n; i += scale)
			CHECK(p[i] == mix(k ^ 5 ^ (uint32_t)i, rounds));
	}
	DO(cudaFree(p));
	puts("managed");
}

static void mistakes()
{
	Words w(blocks * THREADS);

	work<<<0, THREADS>>>(w.at, 1, 1);
	printf("%d\n", (int)cudaGetLastError());
	work<<<1, 4096>>>(w.at, 1, 1);
	printf("%d\n", (int)cudaPeekAtLastError());
	printf("%d\n", (int)cudaGetLastError());
	printf("%d\n", (int)cudaGetLastError());
	w.run(nullptr, 1);
	w.show("mistakes");
}

static void device_reset()
{
	for (uint32_t k = 0; k < 3; k++) {
		Words w(blocks * THREADS);

		for (uint32_t i = 0; i < TURNS; i++)
			w.run(nullptr, i + k);
		w.show("device-reset");
		DO(cudaDeviceReset());
	}
}

static void occupancy()
{
	cudaFuncAttributes a;
	int n;

	for (uint32_t k = 0; k < 2; k++) {
		Words w(blocks * THREADS);

		DO(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, work, THREADS, 0));
		DO(cudaFuncGetAttributes(&a, work));
		printf("%d blocks, %d registers, %d threads, %zu bytes\n", n, a.numRegs,
		       a.maxThreadsPerBlock, a.sharedSizeBytes);
		w.run(nullptr, k);
		w.show("occupancy");
	}
}

static cudaStream_t last_stream;

// A global object that frees what it has when the program ends, as those of libraries do
struct Last {
	~Last()
	{
		if (last_stream) {
			cudaStreamSynchronize(last_stream);
			cudaStreamDestroy(last_stream);
		}
	}
} last;

static void exit_object()
{
	Words w(blocks * THREADS);

	DO(cudaStreamCreate(&last_stream));
	for (uint32_t i = 0; i < 4 * TURNS; i++)
		w.launch(last_stream, i);
	puts("exit-object");
}

static void exit_busy()
{
	Words w(blocks * THREADS);

	for (uint32_t i = 0; i < 4 * TURNS; i++)
		w.launch(nullptr, i);
	puts("exit-busy");
}

// ---- what the simulated GPU has not (skipped) ----

// Blocks in clusters, which share a part of the device
static void clusters()
{
	Words w(blocks * THREADS);
	cudaLaunchConfig_t config = {};
	cudaLaunchAttribute attribute = {};

	attribute.id = cudaLaunchAttributeClusterDimension;
	attribute.val.clusterDim.x = 2;
	attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
	config.gridDim = blocks;
	config.blockDim = THREADS;
	config.attrs = &attribute;
	config.numAttrs = 1;
	for (uint32_t i = 0; i < TURNS; i++) {
		DO(cudaLaunchKernelEx(&config, work, w.at, rounds, i));
		w.expect(i);
		w.run(nullptr, i + 1);
	}
	w.show("clusters");
}

// Memory that a graph allocates and frees itself
static void graph_memory()
{
	Words w(blocks * THREADS);
	const size_t size = w.want.size() * 4;
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	cudaStream_t s;
	uint32_t *p;

	DO(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	DO(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
	DO(cudaMallocAsync((void **)&p, size, s));
	DO(cudaMemcpyAsync(p, w.at, size, cudaMemcpyDeviceToDevice, s));
	work<<<blocks, THREADS, 0, s>>>(p, rounds, 7);
	DO(cudaMemcpyAsync(w.at, p, size, cudaMemcpyDeviceToDevice, s));
	DO(cudaFreeAsync(p, s));
	DO(cudaStreamEndCapture(s, &graph));
	DO(cudaGraphInstantiate(&exec, graph, 0));
	for (uint32_t i = 0; i < TURNS; i++) {
		DO(cudaGraphLaunch(exec, s));
		w.expect(7);
		w.run(s, i);
	}
	DO(cudaStreamSynchronize(s));
	DO(cudaGraphExecDestroy(exec));
	DO(cudaGraphDestroy(graph));
	w.show("graph-memory");
}

// A pool of the program's own, whose memory kernels use in one stream without anyone waiting
static void pool()
{
	Words w(blocks * THREADS);
	const size_t size = w.want.size() * 4;
	cudaMemPoolProps props = {};
	cudaMemPool_t pool;
	cudaStream_t s;
	uint64_t kept = UINT64_MAX, used;
	uint32_t *p;

	DO(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	props.allocType = cudaMemAllocationTypePinned;
	props.location.type = cudaMemLocationTypeDevice;
	DO(cudaMemPoolCreate(&pool, &props));
	DO(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &kept));
	for (uint32_t i = 0; i < TURNS; i++) {
		DO(cudaMallocFromPoolAsync((void **)&p, size, pool, s));
		DO(cudaMemcpyAsync(p, w.at, size, cudaMemcpyDeviceToDevice, s));
		work<<<blocks, THREADS, 0, s>>>(p, rounds, i);
		DO(cudaMemcpyAsync(w.at, p, size, cudaMemcpyDeviceToDevice, s));
		DO(cudaFreeAsync(p, s));
		w.expect(i);
	}
	DO(cudaStreamSynchronize(s));
	DO(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
	if (used) {
		fprintf(stderr, "pool: %llu bytes used\n", (unsigned long long)used);
		exit(1);
	}
	DO(cudaMemPoolTrimTo(pool, 0));
	DO(cudaMemPoolDestroy(pool));
	w.show("pool");
}

// Graphs whose kernels run if a value is not 0, which is what the graph sets it to
static void graph_if()
{
	Words w(blocks * THREADS);
	cudaStream_t s;

	DO(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	for (uint32_t value = 0; value < 2; value++) {
		cudaGraphConditionalHandle handle;
		cudaGraphNodeParams p = { cudaGraphNodeTypeConditional };
		cudaGraphExec_t exec;
		cudaGraph_t graph, body;
		cudaGraphNode_t node;

		DO(cudaGraphCreate(&graph, 0));
		DO(cudaGraphConditionalHandleCreate(&handle, graph, value,
						    cudaGraphCondAssignDefault));
		p.conditional.handle = handle;
		p.conditional.type = cudaGraphCondTypeIf;
		p.conditional.size = 1;
		DO(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &p));
		body = p.conditional.phGraph_out[0];
		DO(cudaStreamBeginCaptureToGraph(s, body, nullptr, nullptr, 0,
						 cudaStreamCaptureModeThreadLocal));
		work<<<blocks, THREADS, 0, s>>>(w.at, rounds, 3);
		DO(cudaStreamEndCapture(s, &body));
		DO(cudaGraphInstantiate(&exec, graph, 0));
		for (uint32_t i = 0; i < TURNS; i++) {
			DO(cudaGraphLaunch(exec, s));
			if (value)
				w.expect(3);
			w.run(s, i);
		}
		DO(cudaStreamSynchronize(s));
		DO(cudaGraphExecDestroy(exec));
		DO(cudaGraphDestroy(graph));
	}
	w.show("graph-if");
}

// Another process works on this one's memory.
static void ipc()
{
	cudaIpcMemHandle_t handle;
	int there[2], back[2], status;
	char done = 0;
	pid_t pid;

	CHECK(!pipe(there) && !pipe(back));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		uint32_t *p;

		CHECK(read(there[0], &handle, sizeof(handle)) == sizeof(handle));
		DO(cudaIpcOpenMemHandle((void **)&p, handle, cudaIpcMemLazyEnablePeerAccess));
		work<<<blocks, THREADS>>>(p, rounds, 5);
		DO(cudaDeviceSynchronize());
		DO(cudaIpcCloseMemHandle(p));
		CHECK(write(back[1], &done, 1) == 1);
		_exit(0);
	}
	Words w(blocks * THREADS);

	w.run(nullptr, 1);
	DO(cudaDeviceSynchronize());
	DO(cudaIpcGetMemHandle(&handle, w.at));
	CHECK(write(there[1], &handle, sizeof(handle)) == sizeof(handle));
	CHECK(read(back[0], &done, 1) == 1);
	w.expect(5);
	w.run(nullptr, 2);
	DO(cudaDeviceSynchronize());
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	w.show("ipc");
}

template <class F> static F *driver(const char *name, F *)
{
	cudaDriverEntryPointQueryResult found;
	void *fn;

	DO(cudaGetDriverEntryPointByVersion(name, &fn, 12050, cudaEnableDefault, &found));
	CHECK(found == cudaDriverEntryPointSuccess && fn);
	return (F *)fn;
}

#define CALL(name, ...) CHECK(driver(#name, (decltype(&name))nullptr)(__VA_ARGS__) == CUDA_SUCCESS)

// A stream of a context that has only some of the SMs
static void green()
{
	Words w(blocks * THREADS);
	CUdevResource all, part, rest;
	CUdevResourceDesc desc;
	unsigned int n = 1;
	CUgreenCtx context;
	CUstream s;

	DO(cudaDeviceSynchronize());
	CALL(cuDeviceGetDevResource, 0, &all, CU_DEV_RESOURCE_TYPE_SM);
	CALL(cuDevSmResourceSplitByCount, &part, &n, &all, &rest, 0, 16);
	CALL(cuDevResourceGenerateDesc, &desc, &part, 1);
	CALL(cuGreenCtxCreate, &context, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM);
	CALL(cuGreenCtxStreamCreate, &s, context, CU_STREAM_NON_BLOCKING, 0);
	for (uint32_t i = 0; i < TURNS; i++) {
		w.run(s, i);
		DO(cudaStreamSynchronize(s));
		w.run(nullptr, i + 1);
		DO(cudaDeviceSynchronize());
	}
	DO(cudaStreamDestroy(s));
	CALL(cuGreenCtxDestroy, context);
	w.show("green");
}

// Memory that is mapped piece by piece into a range of addresses, as PyTorch's allocator does
static void virtual_memory()
{
	CUmemAllocationProp prop = {};
	CUmemGenericAllocationHandle piece[2];
	CUmemAccessDesc access = {};
	size_t least;
	CUdeviceptr at;

	DO(cudaFree(nullptr));
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	access.location = prop.location;
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	CALL(cuMemGetAllocationGranularity, &least, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
	CALL(cuMemAddressReserve, &at, 2 * least, 0, 0, 0);
	for (size_t i = 0; i < 2; i++) {
		Words w(blocks * THREADS);

		w.run(nullptr, (uint32_t)i);
		CALL(cuMemCreate, &piece[i], least, &prop, 0);
		CALL(cuMemMap, at + i * least, least, 0, piece[i], 0);
		CALL(cuMemSetAccess, at, (i + 1) * least, &access, 1);
		DO(cudaMemcpy((void *)(at + i * least), w.at, THREADS * 4,
			      cudaMemcpyDeviceToDevice));
		w.run(nullptr, 9);
		DO(cudaMemcpy(w.at, (void *)(at + i * least), THREADS * 4,
			      cudaMemcpyDeviceToDevice));
		work<<<1, THREADS>>>(w.at, rounds, 9);
		w.show("virtual-memory");
	}
	for (size_t i = 0; i < 2; i++) {
		CALL(cuMemUnmap, at + i * least, least);
		CALL(cuMemRelease, piece[i]);
	}
	CALL(cuMemAddressFree, at, 2 * least);
}

static const struct {
	const char *name;
	void (*run)();
} forms[] = {
	{ "launch", launch },
	{ "launch-ex", launch_ex },
	{ "launch-by-address", launch_by_address },
	{ "entry-point", entry_point },
	{ "cooperative", cooperative },
	{ "templates", templates },
	{ "symbols", symbols },
	{ "dynamic-shared", dynamic_shared },
	{ "streams", streams },
	{ "per-thread-streams", per_thread_streams },
	{ "host-function", host_function },
	{ "graph", graph },
	{ "malloc-async", malloc_async },
	{ "managed", managed },
	{ "mistakes", mistakes },
	{ "device-reset", device_reset },
	{ "occupancy", occupancy },
	{ "clusters", clusters },
	{ "pool", pool },
	{ "graph-memory", graph_memory },
	{ "graph-if", graph_if },
	{ "ipc", ipc },
	{ "green", green },
	{ "virtual-memory", virtual_memory },
	{ "exit-object", exit_object },
	{ "exit-busy", exit_busy },
};

int main(int argc, char **argv)
{
	const char *s = getenv("FORMS_SCALE");

	scale = s && atoi(s) > 0 ? atoi(s) : 1;
	blocks = 192 * scale;
	rounds = 60 * scale;
	for (const auto &f : forms) {
		if (argc == 2 && !strcmp(argv[1], "--list")) {
			puts(f.name);
		} else if (argc == 2 && !strcmp(argv[1], f.name)) {
			f.run();
			return 0;
		}
	}
	return argc == 2 && !strcmp(argv[1], "--list") ? 0 : 2;
}
