/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A program of the runtime API with two devices. Prints TAP. */
#include <cstdio>
#include <cstring>
#include <pthread.h>

__device__ int counter = 10;

__global__ void bump(int *out)
{
	*out = ++counter;
}

__global__ void wild(int *p)
{
	*p = 1;
}

static unsigned int n, bad;

static void ok(bool good, const char *name)
{
	bad += !good;
	printf("%sok %u - %s\n", good ? "" : "not ", ++n, name);
}

static bool current(int wanted)
{
	int device = -1;

	return !cudaGetDevice(&device) && device == wanted;
}

static bool count()
{
	cudaDeviceProp a, b;
	int devices;

	return !cudaGetDeviceCount(&devices) && devices == 2 && current(0) && cudaSetDevice(2) == cudaErrorInvalidDevice &&
	       cudaGetLastError() == cudaErrorInvalidDevice && current(0) && !cudaGetDeviceProperties(&a, 0) &&
	       !cudaGetDeviceProperties(&b, 1) && memcmp(&a.uuid, &b.uuid, sizeof(a.uuid)) && a.pciBusID != b.pciBusID &&
	       cudaGetDeviceProperties(&a, 2) == cudaErrorInvalidDevice && cudaGetLastError() == cudaErrorInvalidDevice;
}

/* A kernel by its name, on whichever device is current */
static bool kernels()
{
	int *p, got = 0;

	for (int i = 0; i < 2; i++) {
		cudaPointerAttributes a;

		if (cudaSetDevice(i) || !current(i) || cudaMalloc(&p, sizeof(int)) || cudaPointerGetAttributes(&a, p) || a.device != i)
			return false;
		for (int j = 0; j <= i; j++)
			bump<<<1, 1>>>(p);
		if (cudaGetLastError() || cudaMemcpy(&got, p, sizeof(got), cudaMemcpyDeviceToHost) || got != 11 + i || cudaFree(p))
			return false;
		if (cudaMemcpyFromSymbol(&got, counter, sizeof(got)) || got != 11 + i)
			return false;
	}
	return true;
}

static bool peers()
{
	int *p[2], in = 77, out = 0, device = -1;
	cudaStream_t s;

	for (int i = 0; i < 2; i++)
		if (cudaSetDevice(i) || cudaMalloc(&p[i], sizeof(int)))
			return false;
	if (cudaStreamCreate(&s) || cudaSetDevice(0) || cudaStreamGetDevice(s, &device) || device != 1)
		return false;
	if (cudaMemcpy(p[0], &in, sizeof(in), cudaMemcpyDefault) || cudaMemcpyPeer(p[1], 1, p[0], 0, sizeof(in)) ||
	    cudaMemcpy(&out, p[1], sizeof(out), cudaMemcpyDefault) || out != 77)
		return false;
	if (cudaMemset(p[1], 0, sizeof(in)) || cudaMemcpyPeerAsync(p[0], 0, p[1], 1, sizeof(in), s) || cudaStreamSynchronize(s) ||
	    cudaMemcpy(&out, p[0], sizeof(out), cudaMemcpyDefault) || out)
		return false;
	return cudaMemcpyPeer(p[0], 0, p[1], 2, 4) == cudaErrorInvalidDevice && cudaGetLastError() == cudaErrorInvalidDevice;
}

static void *thread(void *good)
{
	int *p;

	*(bool *)good = current(0) && !cudaMalloc(&p, 4) && current(0) && !cudaFree(p) && !cudaSetDevice(1) && current(1);
	return nullptr;
}

/* Another thread begins with device 0, and its choice is its own */
static bool threads()
{
	bool good = false;
	pthread_t t;

	if (cudaSetDevice(1) || pthread_create(&t, nullptr, thread, &good) || pthread_join(t, nullptr) || !good || cudaSetDevice(0))
		return false;
	return !pthread_create(&t, nullptr, thread, &good) && !pthread_join(t, nullptr) && good && current(0);
}

/* A fault and a reset are one device's */
static bool resets()
{
	int *p;

	if (cudaSetDevice(1))
		return false;
	wild<<<1, 1>>>((int *)0x100000);
	if (cudaDeviceSynchronize() != cudaErrorIllegalAddress || cudaSetDevice(0) || cudaMalloc(&p, 4) || cudaDeviceSynchronize())
		return false;
	cudaGetLastError();
	return !cudaSetDevice(1) && cudaMalloc(&p, 4) == cudaErrorIllegalAddress && !cudaDeviceReset() && current(1) &&
	       !cudaMalloc(&p, 4) && current(1);
}

int main()
{
	ok(count(), "how many there are, which one is current");
	ok(kernels(), "kernels and variables on each");
	ok(peers(), "copies between them");
	ok(threads(), "each thread has a device of its own");
	ok(resets(), "a fault is one device's; a reset ends it");
	printf("1..%u\n", n);
	return bad != 0;
}
