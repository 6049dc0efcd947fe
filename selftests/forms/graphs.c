// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Graphs: captured and explicit, launched often, updated, with nodes of all kinds, beside other
 * work
 */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>
#include "forms.h"

#define TIMES 6u

/* What a graph form needs: a stream, a kernel, words, and parameters of a launch over them */
struct scene {
	CUstream s;
	CUfunction f;
	struct words w;
	uint32_t n, seed;
	void *params[3];
	CUDA_KERNEL_NODE_PARAMS kernel;
};

static void scene_begin(struct scene *c)
{
	form_begin();
	DO(cuStreamCreate(&c->s, CU_STREAM_NON_BLOCKING));
	c->f = form_function("work");
	c->w = words_new(form_blocks * THREADS);
	c->n = ROUNDS * form_scale;
	c->seed = 1;
	c->params[0] = &c->w.at;
	c->params[1] = &c->n;
	c->params[2] = &c->seed;
	c->kernel = (CUDA_KERNEL_NODE_PARAMS){
		.func = c->f,
		.gridDimX = form_blocks,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = THREADS,
		.blockDimY = 1,
		.blockDimZ = 1,
		.kernelParams = c->params,
	};
	DO(cuCtxSynchronize());
}

static CUgraphExec instantiate(CUgraph g)
{
	CUgraphExec e;

	DO(cuGraphInstantiate(&e, g, 0));
	DO(cuGraphDestroy(g));
	return e;
}

static void capture_begin(struct scene *c)
{
	DO(cuStreamBeginCapture(c->s, CU_STREAM_CAPTURE_MODE_GLOBAL));
}

static CUgraphExec capture_end(struct scene *c)
{
	CUgraph g;

	DO(cuStreamEndCapture(c->s, &g));
	return instantiate(g);
}

/* Two kernels of seeds 1 and 2 */
static CUgraphExec capture(struct scene *c)
{
	capture_begin(c);
	work_launch(c->f, c->s, &c->w, c->n, 1);
	work_launch(c->f, c->s, &c->w, c->n, 2);
	return capture_end(c);
}

static void expect_capture(struct scene *c)
{
	work_expect(&c->w, c->n, 1);
	work_expect(&c->w, c->n, 2);
}

static void graph_capture(void)
{
	struct scene c;
	CUgraphExec e;

	scene_begin(&c);
	e = capture(&c);
	for (uint32_t i = 0; i < TIMES; i++) {
		/* with launches of its own before and behind */
		work(c.f, c.s, &c.w, ROUNDS, i);
		DO(cuGraphLaunch(e, c.s));
		expect_capture(&c);
	}
	DO(cuStreamSynchronize(c.s));
	DO(cuGraphExecDestroy(e));
	words_show("graph-capture", &c.w);
}

static void graph_launch_many(void)
{
	struct scene c;
	CUgraphExec e;

	scene_begin(&c);
	c.w.n = FEW * THREADS;
	c.n = 1;
	e = capture(&c);
	for (uint32_t i = 0; i < 500; i++) {
		DO(cuGraphLaunch(e, c.s));
		expect_capture(&c);
	}
	DO(cuStreamSynchronize(c.s));
	words_show("graph-launch-many", &c.w);
}

/* A chain of kernel nodes, each with other parameters */
static void graph_explicit(void)
{
	struct scene c;
	CUgraphNode node[5];
	CUgraphExec e;
	CUgraph g;

	scene_begin(&c);
	DO(cuGraphCreate(&g, 0));
	for (unsigned int i = 0; i < 5; i++) {
		c.seed = i;
		DO(cuGraphAddKernelNode(&node[i], g, i ? &node[i - 1] : NULL, !!i, &c.kernel));
	}
	e = instantiate(g);
	for (uint32_t k = 0; k < TIMES; k++) {
		DO(cuGraphLaunch(e, c.s));
		for (uint32_t i = 0; i < 5; i++)
			work_expect(&c.w, c.n, i);
	}
	DO(cuStreamSynchronize(c.s));
	words_show("graph-explicit", &c.w);
}

/* Kernels side by side between two that wait for all */
static void graph_fork(void)
{
	struct scene c;
	CUgraphExec e;
	CUstream side[3];
	CUevent forked, joined;
	struct words v[3];

	scene_begin(&c);
	DO(cuEventCreate(&forked, CU_EVENT_DISABLE_TIMING));
	DO(cuEventCreate(&joined, CU_EVENT_DISABLE_TIMING));
	for (int i = 0; i < 3; i++) {
		v[i] = words_new((size_t)FEW * form_scale * THREADS);
		DO(cuStreamCreate(&side[i], CU_STREAM_NON_BLOCKING));
	}
	DO(cuCtxSynchronize());
	capture_begin(&c);
	work_launch(c.f, c.s, &c.w, c.n, 1);
	DO(cuEventRecord(forked, c.s));
	for (uint32_t i = 0; i < 3; i++) {
		DO(cuStreamWaitEvent(side[i], forked, 0));
		work_launch(c.f, side[i], &v[i], c.n, i);
		DO(cuEventRecord(joined, side[i]));
		DO(cuStreamWaitEvent(c.s, joined, 0));
	}
	work_launch(c.f, c.s, &c.w, c.n, 2);
	e = capture_end(&c);
	for (uint32_t k = 0; k < TIMES; k++) {
		DO(cuGraphLaunch(e, c.s));
		expect_capture(&c);
		for (uint32_t i = 0; i < 3; i++)
			work_expect(&v[i], c.n, i);
	}
	DO(cuStreamSynchronize(c.s));
	for (int i = 0; i < 3; i++)
		words_show("side", &v[i]);
	words_show("graph-fork", &c.w);
}

/* The whole of an executable graph becomes another one's between launches */
static void graph_update(void)
{
	CUgraphExecUpdateResultInfo info;
	struct scene c;
	CUgraphExec e;
	CUgraph g;

	scene_begin(&c);
	e = capture(&c);
	for (uint32_t k = 0; k < TIMES; k++) {
		DO(cuGraphLaunch(e, c.s));
		if (k)
			work_expect(&c.w, c.n, 10 + k - 1);
		else
			work_expect(&c.w, c.n, 1);
		work_expect(&c.w, c.n, 2);
		capture_begin(&c);
		work_launch(c.f, c.s, &c.w, c.n, 10 + k);
		work_launch(c.f, c.s, &c.w, c.n, 2);
		DO(cuStreamEndCapture(c.s, &g));
		DO(cuGraphExecUpdate(e, g, &info));
		CHECK(info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
		DO(cuGraphDestroy(g));
	}
	DO(cuStreamSynchronize(c.s));
	words_show("graph-update", &c.w);
}

/* The parameters of one node of it, and then its grid */
static void graph_set_params(void)
{
	struct scene c;
	CUgraphNode node;
	CUgraphExec e;
	CUgraph g;

	scene_begin(&c);
	DO(cuGraphCreate(&g, 0));
	DO(cuGraphAddKernelNode(&node, g, NULL, 0, &c.kernel));
	DO(cuGraphInstantiate(&e, g, 0));
	for (uint32_t k = 0; k < TIMES; k++) {
		c.seed = k;
		DO(cuGraphExecKernelNodeSetParams(e, node, &c.kernel));
		DO(cuGraphLaunch(e, c.s));
		work_expect(&c.w, c.n, k);
	}
	DO(cuStreamSynchronize(c.s));
	words_check(&c.w);
	c.w.n /= 2;
	c.kernel.gridDimX /= 2;
	DO(cuGraphExecKernelNodeSetParams(e, node, &c.kernel));
	DO(cuGraphLaunch(e, c.s));
	work_expect(&c.w, c.n, c.seed);
	DO(cuStreamSynchronize(c.s));
	DO(cuGraphDestroy(g));
	words_show("graph-set-params", &c.w);
}

static void add_one(void *user)
{
	++*(uint32_t *)user;
}

/* memset, copies, a host function and a kernel, all of one graph */
static void graph_nodes(void)
{
	CUDA_MEMSET_NODE_PARAMS set = { .value = 7, .elementSize = 4, .height = 1 };
	CUDA_HOST_NODE_PARAMS host = { .fn = add_one };
	CUDA_MEMCPY3D copy = { .Height = 1, .Depth = 1 };
	CUgraphNode node[4];
	uint32_t calls = 0, *back;
	struct scene c;
	CUgraphExec e;
	CUgraph g;
	void *p;

	scene_begin(&c);
	DO(cuMemAllocHost(&p, c.w.n * 4));
	back = p;
	host.userData = &calls;
	set.dst = c.w.at;
	set.width = c.w.n;
	copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
	copy.srcDevice = c.w.at;
	copy.dstMemoryType = CU_MEMORYTYPE_HOST;
	copy.dstHost = back;
	copy.WidthInBytes = c.w.n * 4;
	DO(cuGraphCreate(&g, 0));
	DO(cuGraphAddMemsetNode(&node[0], g, NULL, 0, &set, form_context));
	DO(cuGraphAddKernelNode(&node[1], g, &node[0], 1, &c.kernel));
	DO(cuGraphAddMemcpyNode(&node[2], g, &node[1], 1, &copy, form_context));
	DO(cuGraphAddHostNode(&node[3], g, &node[2], 1, &host));
	e = instantiate(g);
	for (uint32_t k = 0; k < TIMES; k++) {
		memset(back, 0, c.w.n * 4);
		DO(cuGraphLaunch(e, c.s));
		for (size_t i = 0; i < c.w.n; i++)
			c.w.want[i] = 7;
		work_expect(&c.w, c.n, 1);
		DO(cuStreamSynchronize(c.s));
		CHECK(calls == k + 1);
		for (size_t i = 0; i < c.w.n; i += c.w.stride)
			CHECK(back[i] == c.w.want[i]);
	}
	DO(cuMemFreeHost(p));
	words_show("graph-nodes", &c.w);
}

static void graph_child(void)
{
	CUgraphNode node[3], inner[2];
	CUgraph g, child;
	struct scene c;
	CUgraphExec e;

	scene_begin(&c);
	DO(cuGraphCreate(&child, 0));
	for (unsigned int i = 0; i < 2; i++) {
		c.seed = 10 + i;
		DO(cuGraphAddKernelNode(&inner[i], child, i ? &inner[0] : NULL, i, &c.kernel));
	}
	DO(cuGraphCreate(&g, 0));
	c.seed = 1;
	DO(cuGraphAddKernelNode(&node[0], g, NULL, 0, &c.kernel));
	DO(cuGraphAddChildGraphNode(&node[1], g, &node[0], 1, child));
	DO(cuGraphDestroy(child));
	c.seed = 2;
	DO(cuGraphAddKernelNode(&node[2], g, &node[1], 1, &c.kernel));
	e = instantiate(g);
	for (uint32_t k = 0; k < TIMES; k++) {
		DO(cuGraphLaunch(e, c.s));
		work_expect(&c.w, c.n, 1);
		work_expect(&c.w, c.n, 10);
		work_expect(&c.w, c.n, 11);
		work_expect(&c.w, c.n, 2);
	}
	DO(cuStreamSynchronize(c.s));
	words_show("graph-child", &c.w);
}

static void graph_clone(void)
{
	CUgraph g, copy;
	struct scene c;
	CUgraphExec e;

	scene_begin(&c);
	capture_begin(&c);
	work_launch(c.f, c.s, &c.w, c.n, 1);
	work_launch(c.f, c.s, &c.w, c.n, 2);
	DO(cuStreamEndCapture(c.s, &g));
	DO(cuGraphClone(&copy, g));
	DO(cuGraphDestroy(g));
	e = instantiate(copy);
	for (uint32_t k = 0; k < TIMES; k++) {
		DO(cuGraphLaunch(e, c.s));
		expect_capture(&c);
	}
	DO(cuStreamSynchronize(c.s));
	words_show("graph-clone", &c.w);
}

/* An executable graph, and the stream, go while it runs */
static void graph_destroy_busy(void)
{
	struct scene c;
	CUgraphExec e;

	scene_begin(&c);
	for (uint32_t k = 0; k < TIMES; k++) {
		e = capture(&c);
		DO(cuGraphLaunch(e, c.s));
		DO(cuGraphExecDestroy(e));
		expect_capture(&c);
	}
	DO(cuStreamDestroy(c.s));
	DO(cuCtxSynchronize());
	words_show("graph-destroy-busy", &c.w);
}

/* One graph in two streams in turn: it waits for itself */
static void graph_two_streams(void)
{
	struct scene c;
	CUgraphExec e;
	CUstream other;

	scene_begin(&c);
	e = capture(&c);
	DO(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	for (uint32_t k = 0; k < TIMES; k++) {
		DO(cuGraphLaunch(e, k % 2 ? other : c.s));
		expect_capture(&c);
	}
	DO(cuCtxSynchronize());
	words_show("graph-two-streams", &c.w);
}

/* Launches before, in and behind graphs of the default streams' kinds */
static void graph_default_stream(void)
{
	struct scene c;
	CUgraphExec e;

	scene_begin(&c);
	e = capture(&c);
	for (uint32_t k = 0; k < TIMES; k++) {
		work(c.f, NULL, &c.w, ROUNDS, k);
		DO(cuGraphLaunch(e, NULL));
		expect_capture(&c);
	}
	DO(cuCtxSynchronize());
	words_show("graph-default-stream", &c.w);
}

struct other {
	struct words w;
	CUfunction f;
	CUstream s;
	CUfunction set;
	struct flag flag;
	atomic_bool stop;
};

static void *launch_on(void *arg)
{
	struct other *o = arg;

	DO(cuCtxSetCurrent(form_context));
	for (uint32_t i = 1; i < 12 || !atomic_load(&o->stop); i++) {
		work(o->f, o->s, &o->w, ROUNDS, i % 3);
		/* a global capture forbids others to wait by a call */
		LAUNCH(o->set, 1, 1, o->s, &o->flag.at, &i);
		while (*o->flag.host != i)
			usleep(50);
	}
	return NULL;
}

/* One thread captures, in @mode, while another one launches the same kernels */
static void while_capturing(const char *what, CUstreamCaptureMode mode)
{
	struct other o = { 0 };
	struct scene c;
	CUgraphExec e;
	CUgraph g;
	pthread_t t;

	scene_begin(&c);
	o.f = c.f;
	o.set = form_function("set");
	o.flag = flag_new();
	o.w = words_new(form_blocks * THREADS);
	DO(cuStreamCreate(&o.s, CU_STREAM_NON_BLOCKING));
	DO(cuCtxSynchronize());
	if (pthread_create(&t, NULL, launch_on, &o))
		abort();
	for (uint32_t k = 0; k < TIMES; k++) {
		DO(cuStreamBeginCapture(c.s, mode));
		for (uint32_t i = 0; i < 40; i++)
			work_launch(c.f, c.s, &c.w, c.n, 1);
		DO(cuStreamEndCapture(c.s, &g));
		DO(cuGraphDestroy(g));
		e = capture(&c);
		DO(cuGraphLaunch(e, c.s));
		expect_capture(&c);
		DO(cuStreamSynchronize(c.s));
		DO(cuGraphExecDestroy(e));
	}
	atomic_store(&o.stop, true);
	pthread_join(t, NULL);
	words_check(&o.w);
	words_show(what, &c.w);
}

static void capture_global(void)
{
	while_capturing("capture-global", CU_STREAM_CAPTURE_MODE_GLOBAL);
}

static void capture_thread(void)
{
	while_capturing("capture-thread", CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}

/* A kernel's first launch of all is a captured one */
static void capture_first(void)
{
	struct scene c;
	CUgraphExec e;

	scene_begin(&c);
	DO(cuModuleLoadData(&form_module, form_image));
	c.f = form_function("work");
	capture_begin(&c);
	work_launch(c.f, c.s, &c.w, c.n, 1);
	work_launch(c.f, c.s, &c.w, c.n, 2);
	e = capture_end(&c);
	for (uint32_t k = 0; k < TIMES; k++) {
		DO(cuGraphLaunch(e, c.s));
		expect_capture(&c);
	}
	DO(cuStreamSynchronize(c.s));
	words_show("capture-first", &c.w);
}

/* What a capture forbids, and that it is over then */
static void capture_broken(void)
{
	struct scene c;
	CUdeviceptr p;
	CUgraph g = NULL;

	scene_begin(&c);
	capture_begin(&c);
	work_launch(c.f, c.s, &c.w, c.n, 1);
	printf("%d\n", (int)cuStreamSynchronize(c.s));
	printf("%d\n", (int)cuMemAlloc(&p, 4));
	printf("%d\n", (int)cuStreamEndCapture(c.s, &g));
	work(c.f, c.s, &c.w, ROUNDS, 3);
	DO(cuStreamSynchronize(c.s));
	words_show("capture-broken", &c.w);
}

/* Two captures, one behind the other, into a graph that there is already */
static void capture_to_graph(void)
{
	CUstreamCaptureStatus status;
	const CUgraphNode *last;
	CUgraph g, same;
	struct scene c;
	CUgraphNode node;
	CUgraphExec e;
	size_t n;

	scene_begin(&c);
	DO(cuGraphCreate(&g, 0));
	for (uint32_t i = 1; i <= 2; i++) {
		DO(cuStreamBeginCaptureToGraph(c.s, g, i > 1 ? &node : NULL, NULL, i > 1,
					       CU_STREAM_CAPTURE_MODE_GLOBAL));
		work_launch(c.f, c.s, &c.w, c.n, i);
		DO(cuStreamGetCaptureInfo_v2(c.s, &status, NULL, &same, &last, &n));
		CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE && same == g && n == 1);
		node = last[0];
		DO(cuStreamUpdateCaptureDependencies(c.s, &node, NULL, 1,
						     CU_STREAM_SET_CAPTURE_DEPENDENCIES));
		DO(cuStreamEndCapture(c.s, &same));
		CHECK(same == g);
	}
	e = instantiate(g);
	for (uint32_t i = 0; i < TIMES; i++) {
		DO(cuGraphLaunch(e, c.s));
		expect_capture(&c);
	}
	DO(cuStreamSynchronize(c.s));
	DO(cuGraphExecDestroy(e));
	words_show("capture-to-graph", &c.w);
}

/* A capture that never ends: its stream is destroyed, or its context */
static void capture_dropped(void)
{
	CUcontext ctx;
	struct scene c;
	CUmodule m;
	CUstream s;

	scene_begin(&c);
	capture_begin(&c);
	work_launch(c.f, c.s, &c.w, c.n, 1);
	DO(cuStreamDestroy(c.s));
	DO(cuCtxCreate(&ctx, NULL, 0, form_device));
	DO(cuModuleLoadData(&m, form_image));
	DO(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	DO(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	DO(cuCtxDestroy(ctx));
	DO(cuCtxSetCurrent(form_context));
	for (uint32_t i = 0; i < TIMES; i++) {
		work(c.f, NULL, &c.w, ROUNDS, i);
		DO(cuCtxSynchronize());
	}
	words_show("capture-dropped", &c.w);
}

const struct form graph_forms[] = {
	{ "graph-capture", graph_capture },
	{ "graph-launch-many", graph_launch_many },
	{ "graph-explicit", graph_explicit },
	{ "graph-fork", graph_fork },
	{ "graph-update", graph_update },
	{ "graph-set-params", graph_set_params },
	{ "graph-nodes", graph_nodes },
	{ "graph-child", graph_child },
	{ "graph-clone", graph_clone },
	{ "graph-destroy-busy", graph_destroy_busy },
	{ "graph-two-streams", graph_two_streams },
	{ "graph-default-stream", graph_default_stream },
	{ "capture-global", capture_global },
	{ "capture-thread", capture_thread },
	{ "capture-first", capture_first },
	{ "capture-broken", capture_broken },
	{ "capture-to-graph", capture_to_graph },
	{ "capture-dropped", capture_dropped },
	{ 0 },
};
