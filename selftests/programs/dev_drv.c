/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Driver-API form: loads kernels.ptx from the directory of the program. Needs no CUDA toolkit to
 * build.
 */
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "selftests/programs/drv.h"
#include "dev.h"

struct dev_buf { CUdeviceptr ptr; };
struct dev_graph { CUgraphExec exec; };

static CUdevice device;
static CUstream stream;
static CUfunction work;

void dev_init(const char *argv0, int high_priority)
{
	char path[4096], self[4096];
	int least, greatest;
	CUcontext ctx;
	CUmodule module;
	char *ptx;

	snprintf(self, sizeof(self), "%s", argv0);
	snprintf(path, sizeof(path), "%s/kernels.ptx", dirname(self));
	ptx = read_text(path);
	check(cuInit(0), "cuInit");
	check(cuDeviceGet(&device, 0), "cuDeviceGet");
	check(cuDevicePrimaryCtxRetain(&ctx, device), "cuDevicePrimaryCtxRetain");
	check(cuCtxSetCurrent(ctx), "cuCtxSetCurrent");
	check(cuModuleLoadData(&module, ptx), "cuModuleLoadData");
	free(ptx);
	check(cuModuleGetFunction(&work, module, "work"), "cuModuleGetFunction");
	check(cuCtxGetStreamPriorityRange(&least, &greatest), "cuCtxGetStreamPriorityRange");
	if (high_priority)
		check(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, greatest),
		      "cuStreamCreateWithPriority");
	else
		check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
}

unsigned int dev_sms(void)
{
	int sms;

	check(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device),
	      "cuDeviceGetAttribute");
	return (unsigned int)sms;
}

unsigned int dev_blocks_per_sm(unsigned int threads)
{
	int n;

	check(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, work, (int)threads, 0), "occupancy");
	return (unsigned int)n;
}

struct dev_buf *dev_alloc(size_t bytes)
{
	struct dev_buf *buf = malloc(sizeof(*buf));

	if (!buf)
		abort();
	check(cuMemAlloc(&buf->ptr, bytes), "cuMemAlloc");
	check(cuMemsetD8(buf->ptr, 0, bytes), "cuMemsetD8");
	/* which returns before it is done, and our stream does not wait for the default one */
	check(cuCtxSynchronize(), "cuCtxSynchronize");
	return buf;
}

void dev_read(void *host, const struct dev_buf *buf, size_t bytes)
{
	dev_sync();
	check(cuMemcpyDtoH(host, buf->ptr, bytes), "cuMemcpyDtoH");
}

void dev_launch(unsigned int grid_x, unsigned int grid_y, unsigned int threads, struct dev_buf *out,
		unsigned int iters, unsigned int seed)
{
	void *params[] = { &out->ptr, &iters, &seed };

	check(cuLaunchKernel(work, grid_x, grid_y, 1, threads, 1, 1, 0, stream, params, NULL),
	      "cuLaunchKernel");
}

void dev_sync(void)
{
	check(cuStreamSynchronize(stream), "cuStreamSynchronize");
}

void dev_capture_begin(void)
{
	check(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
	      "cuStreamBeginCapture");
}

struct dev_graph *dev_capture_end(void)
{
	struct dev_graph *graph = malloc(sizeof(*graph));
	CUgraph captured;

	if (!graph)
		abort();
	check(cuStreamEndCapture(stream, &captured), "cuStreamEndCapture");
	check(cuGraphInstantiate(&graph->exec, captured, 0), "cuGraphInstantiate");
	check(cuGraphDestroy(captured), "cuGraphDestroy");
	return graph;
}

void dev_graph_launch(struct dev_graph *graph)
{
	check(cuGraphLaunch(graph->exec, stream), "cuGraphLaunch");
}

void dev_graph_free(struct dev_graph *graph)
{
	check(cuGraphExecDestroy(graph->exec), "cuGraphExecDestroy");
	free(graph);
}
