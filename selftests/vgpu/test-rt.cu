/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A program of the runtime API as nvcc builds it: what vgpu's libcudart has to stand in for. Prints TAP. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" // programs still call them
#include <cstdio>
#include <cstring>

__device__ int device_var = 1;
__constant__ int constant_var[4];
__managed__ int managed_var;

template <class T> __global__ void fill(T *p, T v)
{
	p[blockIdx.x * blockDim.x + threadIdx.x] = v + constant_var[1] + device_var + managed_var;
}

__global__ void wild(int *p)
{
	*p = 1;
}

__global__ void shared(int *out)
{
	extern __shared__ int s[];

	s[threadIdx.x] = threadIdx.x;
	__syncthreads();
	out[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}

static unsigned int n, bad;

static void ok(bool good, const char *name)
{
	bad += !good;
	printf("%sok %u - %s\n", good ? "" : "not ", ++n, name);
}

static bool variables()
{
	int v[4] = { 10, 20, 30, 40 }, back = 0, *p, h[128];
	size_t size;
	void *address;

	managed_var = 100;
	if (cudaMemcpyToSymbol(constant_var, v, sizeof(v)) || cudaMemcpyToSymbol(device_var, v, 4) ||
	    cudaMemcpyFromSymbol(&back, constant_var, 4, 8) || back != 30 || cudaGetSymbolSize(&size, constant_var) || size != 16 ||
	    cudaGetSymbolAddress(&address, device_var) || cudaMalloc(&p, sizeof(h)))
		return false;
	fill<int><<<2, 64>>>(p, 5);
	if (cudaGetLastError() || cudaMemcpy(h, p, sizeof(h), cudaMemcpyDeviceToHost) || cudaFree(p))
		return false;
	for (int i = 0; i < 128; i++)
		if (h[i] != 5 + 20 + 10 + 100)
			return false;
	return cudaMemcpyToSymbol(constant_var, v, 4, 16) == cudaErrorInvalidValue && cudaGetLastError() == cudaErrorInvalidValue &&
	       cudaGetLastError() == cudaSuccess && cudaMemcpyToSymbol(v, v, 4) == cudaErrorInvalidSymbol;
}

static bool properties()
{
	cudaDeviceProp p;
	int sms, blocks, device, count;
	cudaFuncAttributes a;
	cudaSharedMemConfig banks;

	return !cudaDeviceSetSharedMemConfig(cudaSharedMemBankSizeEightByte) &&
	       !cudaFuncSetSharedMemConfig(shared, cudaSharedMemBankSizeEightByte) &&
	       !cudaDeviceGetSharedMemConfig(&banks) && banks == cudaSharedMemBankSizeFourByte &&
	       !cudaGetDeviceCount(&count) && count == 1 && !cudaGetDevice(&device) && !device &&
	       !cudaGetDeviceProperties(&p, 0) &&
	       strstr(p.name, "vgpu") && p.major == 9 && p.warpSize == 32 && p.maxThreadsPerBlock == 512 &&
	       p.sharedMemPerMultiprocessor == 100 << 10 && p.mpsEnabled == 1 &&
	       !cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0) && sms == p.multiProcessorCount &&
	       !cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, fill<int>, 64, 0) && blocks == 8 &&
	       !cudaFuncGetAttributes(&a, shared) && a.maxThreadsPerBlock == 512 && a.maxDynamicSharedSizeBytes == 48 << 10 &&
	       a.numRegs >= 16 && cudaSetDevice(1) == cudaErrorInvalidDevice && cudaGetLastError() == cudaErrorInvalidDevice;
}

static bool streams()
{
	cudaStream_t s;
	cudaEvent_t begin, end;
	cudaLaunchConfig_t config = {};
	int *p, *host;
	float ms = -1;

	if (cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking) || cudaEventCreate(&begin) || cudaEventCreate(&end) ||
	    cudaHostAlloc(&host, 64 * sizeof(int), cudaHostAllocMapped) || cudaHostGetDevicePointer(&p, host, 0))
		return false;
	config.gridDim = 1;
	config.blockDim = 64;
	config.dynamicSmemBytes = 256;
	config.stream = s;
	if (cudaEventRecord(begin, s) || cudaLaunchKernelEx(&config, shared, p) || cudaEventRecord(end, s) ||
	    cudaStreamSynchronize(s) || cudaEventElapsedTime(&ms, begin, end) || ms < 0)
		return false;
	for (int i = 0; i < 64; i++)
		if (host[i] != 63 - i)
			return false;
	return !cudaEventDestroy(begin) && !cudaEventDestroy(end) && !cudaStreamDestroy(s) && !cudaFreeHost(host);
}

static bool rows()
{
	char a[6][8], b[6][8];
	char *p;
	size_t pitch;

	for (int i = 0; i < 48; i++)
		a[i / 8][i % 8] = (char)i;
	memset(b, 0, sizeof(b));
	if (cudaMallocPitch(&p, &pitch, 8, 6) || cudaMemcpy2D(p, pitch, a, 8, 8, 6, cudaMemcpyHostToDevice) ||
	    cudaMemset2D(p, pitch, 0, 4, 6) || cudaMemcpy2D(b, 8, p, pitch, 8, 6, cudaMemcpyDefault) || cudaFree(p))
		return false;
	for (int i = 0; i < 48; i++)
		if (b[i / 8][i % 8] != (i % 8 < 4 ? 0 : (char)i))
			return false;
	return true;
}

static bool pointers()
{
	cudaPointerAttributes a;
	int local, *p;

	return !cudaMalloc(&p, 4) && !cudaPointerGetAttributes(&a, p) && a.type == cudaMemoryTypeDevice && a.devicePointer == p &&
	       !cudaFree(p) && !cudaMallocManaged(&p, 4) && !cudaPointerGetAttributes(&a, p) && a.type == cudaMemoryTypeManaged &&
	       !cudaFree(p) && !cudaPointerGetAttributes(&a, &local) && a.type == cudaMemoryTypeUnregistered;
}

static bool mistakes()
{
	fill<int><<<0, 32>>>(nullptr, 1);
	if (cudaPeekAtLastError() != cudaErrorInvalidConfiguration || cudaGetLastError() != cudaErrorInvalidConfiguration)
		return false;
	fill<int><<<1, 2000>>>(nullptr, 1);
	if (cudaGetLastError() != cudaErrorInvalidConfiguration)
		return false;
	if (cudaGraphDebugDotPrint(nullptr, "", 0) != cudaErrorNotSupported || cudaGetLastError() != cudaErrorNotSupported)
		return false;
	return !strcmp(cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress") &&
	       !strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "memory allocation");
}

static bool fault()
{
	int *p;

	wild<<<1, 1>>>((int *)0x100000);
	return cudaDeviceSynchronize() == cudaErrorIllegalAddress && cudaMalloc(&p, 4) == cudaErrorIllegalAddress;
}

int main()
{
	int *p;

	ok(variables(), "variables: device, constant, managed");
	ok(properties(), "properties, attributes, occupancy");
	ok(streams(), "streams, events, cudaLaunchKernelEx, mapped memory");
	ok(rows(), "copies of rows");
	ok(pointers(), "what a pointer is");
	ok(mistakes(), "errors are the runtime's own");
	ok(!cudaDeviceReset() && variables(), "kernels and variables outlive a reset");
	ok(fault(), "a fault is told and sticks");
	ok(!cudaDeviceReset() && !cudaMalloc(&p, 4), "a reset ends it");
	printf("1..%u\n", n);
	return bad != 0;
}
