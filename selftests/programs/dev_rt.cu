/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runtime-API form: what nvcc makes of <<<>>>. The stream is a plain one, made without gsched in mind. */
#include <cstdio>
#include <cstdlib>
#include "dev.h"
#include "kernels.cuh"

struct dev_buf { unsigned int *ptr; };
struct dev_graph { cudaGraphExec_t exec; };

static cudaStream_t stream;

static void check(cudaError_t r, const char *what)
{
	if (r == cudaSuccess)
		return;
	fprintf(stderr, "%s: %s (%d)\n", what, cudaGetErrorString(r), (int)r);
	exit(1);
}

extern "C" void dev_init(const char *argv0, int high_priority)
{
	int least, greatest;

	(void)argv0;
	check(cudaSetDevice(0), "cudaSetDevice");
	check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
	if (high_priority)
		check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest), "cudaStreamCreateWithPriority");
	else
		check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
}

extern "C" unsigned int dev_sms(void)
{
	int sms;

	check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0), "cudaDeviceGetAttribute");
	return (unsigned int)sms;
}

extern "C" unsigned int dev_blocks_per_sm(unsigned int threads)
{
	int n;

	check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, work, (int)threads, 0), "occupancy");
	return (unsigned int)n;
}

extern "C" struct dev_buf *dev_alloc(size_t bytes)
{
	struct dev_buf *buf = (struct dev_buf *)malloc(sizeof(*buf));

	if (!buf)
		abort();
	check(cudaMalloc((void **)&buf->ptr, bytes), "cudaMalloc");
	check(cudaMemset(buf->ptr, 0, bytes), "cudaMemset");
	/* which returns before it is done, and our stream does not wait for the default one */
	check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
	return buf;
}

extern "C" void dev_read(void *host, const struct dev_buf *buf, size_t bytes)
{
	dev_sync();
	check(cudaMemcpy(host, buf->ptr, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
}

extern "C" void dev_launch(unsigned int grid_x, unsigned int grid_y, unsigned int threads, struct dev_buf *out,
			   unsigned int iters, unsigned int seed)
{
	work<<<dim3(grid_x, grid_y), threads, 0, stream>>>(out->ptr, iters, seed);
	check(cudaGetLastError(), "kernel launch");
}

extern "C" void dev_sync(void)
{
	check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

extern "C" void dev_capture_begin(void)
{
	check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
}

extern "C" struct dev_graph *dev_capture_end(void)
{
	struct dev_graph *graph = (struct dev_graph *)malloc(sizeof(*graph));
	cudaGraph_t captured;

	if (!graph)
		abort();
	check(cudaStreamEndCapture(stream, &captured), "cudaStreamEndCapture");
	check(cudaGraphInstantiate(&graph->exec, captured, 0), "cudaGraphInstantiate");
	check(cudaGraphDestroy(captured), "cudaGraphDestroy");
	return graph;
}

extern "C" void dev_graph_launch(struct dev_graph *graph)
{
	check(cudaGraphLaunch(graph->exec, stream), "cudaGraphLaunch");
}

extern "C" void dev_graph_free(struct dev_graph *graph)
{
	check(cudaGraphExecDestroy(graph->exec), "cudaGraphExecDestroy");
	free(graph);
}
