// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Steps of app.c with launches that depend on each other, or with handles that are used again: those
 * of graphs, and of what has kernels
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "app.h"

/* Groups of launches, those behind the first @dependent on it and each other */
static void launch_groups(CUfunction f, CUstream s, void **params, bool dependent)
{
	CUlaunchAttribute attr = { .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION };
	CUlaunchConfig config = {
		.gridDimX = HELD, .gridDimY = 1, .gridDimZ = 1,
		.blockDimX = THREADS, .blockDimY = 1, .blockDimZ = 1,
		.hStream = s, .attrs = &attr, .numAttrs = dependent,
	};

	attr.value.programmaticStreamSerializationAllowed = 1;
	for (int i = 0; i < 40; i++) {
		DO(cuLaunchKernel(f, HELD / 2, 1, 1, THREADS, 1, 1, 0, s, params, NULL));
		for (int k = 0; k < 3; k++)
			DO(cuLaunchKernelEx(&config, f, params, NULL));
		DO(cuStreamSynchronize(s));
	}
}

/* Says what dependent launches stood behind, where they stood behind anything in their stream */
void dependents(CUmodule m)
{
	static const char *const stages[] = { "learning", "dependent", "independent" };
	CUdeviceptr p = buffer(BLOCKS * THREADS);
	unsigned int behind[2] = { 0 }, i;
	CUresult (*count)(unsigned int *, unsigned int *);
	uint32_t n = N, seed = 3;
	void *params[] = { &p, &n, &seed }, *fn;
	CUfunction f;
	CUstream s;
	char c;

	DO(cuGetProcAddress("vgpuDependents", &fn, 12000, 0, NULL));
	memcpy(&count, &fn, sizeof(count));
	DO(cuModuleGetFunction(&f, m, "work"));
	DO(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	for (i = 0; i < 3; i++) {
		unsigned int before[2] = { behind[0], behind[1] };

		launch_groups(f, s, params, i < 2);
		DO(count(&behind[0], &behind[1]));
		printf("%s: %u behind a kernel, %u not\n", stages[i], behind[0] - before[0],
		       behind[1] - before[1]);
		fflush(stdout);
		if (read(0, &c, 1) != 1)
			exit(1);
	}
	DO(cuStreamDestroy(s));
}

/* Two kernels, of one block and of @blocks */
static CUgraph pair(CUfunction f, unsigned int blocks, void **params)
{
	CUstream capture;
	CUgraph graph;

	DO(cuStreamCreate(&capture, CU_STREAM_NON_BLOCKING));
	DO(cuStreamBeginCapture(capture, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	DO(cuLaunchKernel(f, 1, 1, 1, THREADS, 1, 1, 0, capture, params, NULL));
	DO(cuLaunchKernel(f, blocks, 1, 1, THREADS, 1, 1, 0, capture, params, NULL));
	DO(cuStreamEndCapture(capture, &graph));
	DO(cuStreamDestroy(capture));
	return graph;
}

static void launch_times(CUgraphExec exec, unsigned int times)
{
	while (times--) {
		DO(cuGraphLaunch(exec, NULL));
		DO(cuCtxSynchronize());
	}
}

/* A graph that is instantiated once and launched often, when a byte has come on standard input */
void replay(CUmodule m, unsigned int blocks)
{
	CUdeviceptr p = buffer(BLOCKS * THREADS);
	uint32_t n = N, seed = 3;
	void *params[] = { &p, &n, &seed };
	CUgraphExec exec;
	CUgraph graph;
	CUfunction f;

	DO(cuModuleGetFunction(&f, m, "work"));
	graph = pair(f, blocks, params);
	DO(cuGraphInstantiate(&exec, graph, 0));
	DO(cuGraphDestroy(graph));
	stop_at("ready");
	launch_times(exec, 40);
	DO(cuGraphExecDestroy(exec));
	show("replay", hash_of(p, BLOCKS * THREADS));
}

/*
 * A graph of few blocks that becomes one of many, by another graph; then of fewer, by one of its
 * nodes, in two ways
 */
void updated(CUmodule m)
{
	CUdeviceptr p = buffer(BLOCKS * THREADS);
	uint32_t n = N, seed = 3;
	void *params[] = { &p, &n, &seed };
	CUgraphNodeParams any = { .type = CU_GRAPH_NODE_TYPE_KERNEL };
	CUgraphExecUpdateResultInfo info;
	CUDA_KERNEL_NODE_PARAMS kernel;
	CUgraph graph, wide;
	CUgraphNode nodes[2];
	CUgraphExec exec;
	CUfunction f;
	size_t two = 2;

	DO(cuModuleGetFunction(&f, m, "work"));
	graph = pair(f, HELD / 2, params);
	wide = pair(f, BLOCKS, params);
	DO(cuGraphInstantiate(&exec, graph, 0));
	launch_times(exec, 1);
	stop_at("made");
	DO(cuGraphExecUpdate(exec, wide, &info));
	launch_times(exec, 1);
	stop_at("updated");
	DO(cuGraphGetNodes(graph, nodes, &two));
	DO(cuGraphKernelNodeGetParams(nodes[1], &kernel));
	kernel.gridDimX = FEW;
	DO(cuGraphExecKernelNodeSetParams(exec, nodes[1], &kernel));
	launch_times(exec, 1);
	stop_at("set");
	any.kernel.func = kernel.func;
	any.kernel.gridDimX = HELD;
	any.kernel.gridDimY = any.kernel.gridDimZ = any.kernel.blockDimY = any.kernel.blockDimZ = 1;
	any.kernel.blockDimX = THREADS;
	any.kernel.kernelParams = params;
	DO(cuGraphExecNodeSetParams(exec, nodes[1], &any));
	launch_times(exec, 1);
	stop_at("set again");
	DO(cuGraphDestroy(graph));
	DO(cuGraphDestroy(wide));
	DO(cuGraphExecDestroy(exec));
	show("updated", hash_of(p, BLOCKS * THREADS));
}

/* A short graph that is launched often; then a long one, which has the handle that the first had */
void reused(CUmodule m)
{
	CUdeviceptr p = buffer(BLOCKS * THREADS);
	uint32_t n = 1, seed = 3;
	void *params[] = { &p, &n, &seed };
	CUgraphExec exec, other;
	CUgraph graph;
	CUfunction f;

	DO(cuModuleGetFunction(&f, m, "work"));
	graph = pair(f, FEW, params);
	DO(cuGraphInstantiate(&exec, graph, 0));
	DO(cuGraphDestroy(graph));
	launch_times(exec, 100);
	stop_at("learnt");
	launch_times(exec, 20);
	stop_at("short");
	DO(cuGraphExecDestroy(exec));
	n = 60 * N;
	graph = pair(f, FEW, params);
	DO(cuGraphInstantiate(&other, graph, 0));
	DO(cuGraphDestroy(graph));
	launch_times(other, 20);
	stop_at(other == exec ? "long" : "another handle");
	DO(cuGraphExecDestroy(other));
	show("reused", hash_of(p, BLOCKS * THREADS));
}

struct owned {
	enum owner owner;
	CUmodule module;
	CUlibrary library;
	CUcontext context;
	CUfunction f;
};

static void owned_new(struct owned *o, enum owner owner)
{
	CUkernel kernel;

	*o = (struct owned){ .owner = owner };
	if (owner == OF_CONTEXT)
		DO(cuCtxCreate(&o->context, NULL, 0, dev));
	if (owner == OF_LIBRARY) {
		DO(cuLibraryLoadData(&o->library, image, NULL, NULL, 0, NULL, NULL, 0));
		DO(cuLibraryGetKernel(&kernel, o->library, "work"));
		o->f = (CUfunction)kernel;
	} else {
		DO(cuModuleLoadData(&o->module, image));
		DO(cuModuleGetFunction(&o->f, o->module, "work"));
	}
}

static void owned_drop(struct owned *o)
{
	if (o->owner == OF_LIBRARY)
		DO(cuLibraryUnload(o->library));
	else if (o->owner == OF_CONTEXT)
		DO(cuCtxDestroy(o->context));
	else
		DO(cuModuleUnload(o->module));
	DO(cuCtxSetCurrent(ctx));
}

/* The graph @exec, NULL the kernel itself */
static void launch_owned(const struct owned *o, CUgraphExec exec, void **params, unsigned int times)
{
	if (exec) {
		launch_times(exec, times);
		return;
	}
	while (times--) {
		DO(cuLaunchKernel(o->f, FEW, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL));
		DO(cuCtxSynchronize());
	}
}

/*
 * A short kernel that is launched often; then a long one, which has the handle that the first had
 * until what it went with was no more. Of a graph: the graph stays, and is given the other one.
 */
void renewed(enum owner owner)
{
	CUgraphExecUpdateResultInfo info;
	CUgraphExec exec = NULL;
	CUdeviceptr p = 0;
	uint32_t n = 1, seed = 3;
	void *params[] = { &p, &n, &seed };
	struct owned o;
	CUfunction before;
	CUgraph graph;
	int i;

	owned_new(&o, owner);
	before = o.f;
	p = buffer(BLOCKS * THREADS);
	if (owner == OF_GRAPH) {
		graph = pair(o.f, FEW, params);
		DO(cuGraphInstantiate(&exec, graph, 0));
		DO(cuGraphDestroy(graph));
	}
	launch_owned(&o, exec, params, 100);
	stop_at("learnt");
	launch_owned(&o, exec, params, 20);
	stop_at("short");
	for (i = 0; i < 8 && (!i || o.f != before); i++) {
		owned_drop(&o);
		owned_new(&o, owner);
	}
	if (owner == OF_CONTEXT)
		p = buffer(BLOCKS * THREADS);
	n = 60 * N;
	if (owner == OF_GRAPH) {
		graph = pair(o.f, FEW, params);
		DO(cuGraphExecUpdate(exec, graph, &info));
		DO(cuGraphDestroy(graph));
	}
	launch_owned(&o, exec, params, 20);
	stop_at(o.f == before ? "long" : "another handle");
	if (exec)
		DO(cuGraphExecDestroy(exec));
	owned_drop(&o);
	say("renewed");
}
