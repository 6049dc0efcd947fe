// SPDX-License-Identifier: LGPL-2.1-or-later
// Small programs of the runtime API, each of one form or feature, as those of the driver API
// (forms.h): rt NAME
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>
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

	DO(cudaGetDriverEntryPointByVersion("cuLaunchKernel", &fn, 12000, cudaEnableDefault, &found));
	CHECK(found == cudaDriverEntryPointSuccess && fn);
	launch = (decltype(launch))fn;
	DO(cudaGetFuncBySymbol(&f, (const void *)work));
	for (i = 0; i < TURNS; i++) {
		void *params[] = { &w.at, &n, &i };

		CHECK(launch(f, blocks, 1, 1, THREADS, 1, 1, 0, nullptr, params, nullptr) == CUDA_SUCCESS);
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
