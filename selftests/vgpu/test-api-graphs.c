// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The driver API of vgpu: graphs, captured and built by hand, and how launches of them are ordered.
 * The errors of captures, of edges and of cycles are those that an H200 gives with driver 580.159.
 */
#include <pthread.h>
#include "test-api.h"

static CUstream s1, s2, blocking;
static CUdeviceptr buf;		/* 64 words */

static bool clear(void)
{
	memset((void *)host, 0, 4096);
	/* s1 and s2 are not ordered with it */
	return !cuMemsetD32(buf, 0, 64) && !cuCtxSynchronize();
}

/* out[i] = in[i] + v, 32 words of buf */
static CUresult add(CUstream s, unsigned int out, unsigned int in, uint32_t v)
{
	CUdeviceptr o = buf + 4 * out, i = buf + 4 * in;

	return run(k_add, 1, 32, s, (void *[]){ &o, &i, &v });
}

static CUDA_KERNEL_NODE_PARAMS kernel(CUfunction f, void **params)
{
	return (CUDA_KERNEL_NODE_PARAMS) { f, 1, 1, 1, 32, 1, 1, 0, params, NULL, NULL, NULL };
}

static CUresult stamp_node(CUgraphNode *n, CUgraph g, const CUgraphNode *deps, size_t n_deps,
			   unsigned int word)
{
	CUdeviceptr counter = at(1), out = at(word);
	CUDA_KERNEL_NODE_PARAMS p = kernel(k_stamp, (void *[]){ &counter, &out });

	return cuGraphAddKernelNode(n, g, deps, n_deps, &p);
}

static bool chain_ops(CUstream s, uint32_t *back)
{
	OK(cuMemsetD32Async(buf, 5, 32, s));
	OK(add(s, 0, 0, 3));
	OK(cuMemcpyDtoDAsync(buf + 128, buf, 128, s));
	OK(add(s, 32, 0, 100));
	OK(cuMemcpyDtoHAsync(back, buf + 128, 128, s));
	return true;
}

static bool chain(void)
{
	uint32_t direct[32] = { 0 }, back[32] = { 0 };
	CUstreamCaptureStatus status;
	CUgraphExec exec;
	CUgraph g;
	size_t n;

	CHECK(clear());
	CHECK(chain_ops(s1, direct));
	OK(cuStreamSynchronize(s1));
	CHECK(direct[0] == 108 && direct[31] == 108);
	CHECK(clear());
	OK(cuStreamBeginCapture(s1, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuStreamIsCapturing(s1, &status));
	CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
	CHECK(chain_ops(s1, back));
	OK(cuStreamEndCapture(s1, &g));
	OK(cuStreamSynchronize(s1));
	CHECK(back[0] == 0);	/* nothing ran */
	OK(cuGraphGetNodes(g, NULL, &n));
	CHECK(n == 5);
	OK(cuGraphGetRootNodes(g, NULL, &n));
	CHECK(n == 1);
	OK(cuGraphInstantiate(&exec, g, 0));
	OK(cuGraphDestroy(g));
	OK(cuGraphUpload(exec, s1));
	OK(cuGraphLaunch(exec, s1));
	OK(cuStreamSynchronize(s1));
	CHECK(!memcmp(direct, back, sizeof(back)));
	/* again and again, each launch after the one before */
	OK(cuGraphExecDestroy(exec));
	CHECK(clear());
	OK(cuStreamBeginCapture(s1, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	OK(add(s1, 0, 0, 1));
	OK(add(s1, 0, 0, 2));
	OK(cuStreamEndCapture(s1, &g));
	OK(cuGraphInstantiate(&exec, g, 0));
	for (int i = 0; i < 100; i++)
		OK(cuGraphLaunch(exec, i % 2 ? s1 : s2));
	OK(cuCtxSynchronize());
	OK(cuMemcpyDtoH(back, buf, 128));
	CHECK(back[0] == 300 && back[31] == 300);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(g));
	return true;
}

/* One branch waits for a word that the other one writes: they are resident together */
static bool fork_join(void)
{
	CUgraphNode from[8], to[8];
	CUgraphExec exec;
	CUevent fork, join;
	CUgraph g;
	size_t n = 8;

	CHECK(clear());
	OK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
	OK(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
	OK(cuStreamBeginCapture(s1, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(stamp(s1, 1, 2, 32));
	OK(cuEventRecord(fork, s1));
	OK(cuStreamWaitEvent(s2, fork, 0));
	OK(spin(s1, 0, 1, 32));
	OK(set(s2, 0, 1));
	OK(stamp(s2, 1, 3, 32));
	OK(cuEventRecord(join, s2));
	OK(cuStreamWaitEvent(s1, join, 0));
	OK(stamp(s1, 1, 4, 32));
	OK(cuStreamEndCapture(s1, &g));
	OK(cuGraphGetEdges(g, from, to, NULL, &n));
	CHECK(n == 5);
	OK(cuGraphInstantiate(&exec, g, 0));
	OK(cuGraphLaunch(exec, s1));
	OK(stamp(s1, 1, 5, 32));	/* the stream's order: behind every node */
	OK(cuStreamSynchronize(s1));
	CHECK(host[2] == 0 && host[3] == 1 && host[4] == 2 && host[5] == 3);
	/* an event of a capture that is over means nothing until it is recorded again */
	IS(INVALID_VALUE, cuEventQuery(fork));
	IS(INVALID_VALUE, cuEventSynchronize(fork));
	IS(INVALID_VALUE, cuStreamWaitEvent(s2, fork, 0));
	OK(cuEventRecord(fork, s2));
	OK(cuEventSynchronize(fork));
	OK(cuEventDestroy(fork));
	OK(cuEventDestroy(join));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(g));
	return true;
}

static void note(void *word)
{
	*(volatile uint32_t *)word = 1 + host[1];
}

static bool diamond(void)
{
	CUDA_HOST_NODE_PARAMS hp = { note, (void *)&host[10] }, hq;
	CUDA_KERNEL_NODE_PARAMS kp;
	CUgraphNode a, b, c, d, list[8];
	CUgraphNodeType type;
	CUgraphExec exec;
	CUgraph g;
	size_t n;

	CHECK(clear());
	OK(cuGraphCreate(&g, 0));
	OK(stamp_node(&a, g, NULL, 0, 2));
	OK(stamp_node(&b, g, &a, 1, 3));
	OK(cuGraphAddHostNode(&c, g, &b, 1, &hp));
	OK(stamp_node(&d, g, (CUgraphNode[]){ a, c }, 2, 4));
	n = 8;
	OK(cuGraphGetNodes(g, list, &n));
	CHECK(n == 4 && list[0] == a && list[3] == d && !list[4]);
	n = 1;
	OK(cuGraphNodeGetDependencies(d, list, NULL, &n));
	CHECK(n == 1 && list[0] == a);
	OK(cuGraphNodeGetDependentNodes(a, NULL, NULL, &n));
	CHECK(n == 2);
	OK(cuGraphNodeGetType(c, &type));
	CHECK(type == CU_GRAPH_NODE_TYPE_HOST);
	OK(cuGraphHostNodeGetParams(c, &hq));
	CHECK(hq.fn == note && hq.userData == hp.userData);
	OK(cuGraphKernelNodeGetParams(b, &kp));
	CHECK(kp.func == k_stamp && kp.blockDimX == 32 &&
	      *(CUdeviceptr *)kp.kernelParams[1] == at(3));
	OK(cuGraphInstantiate(&exec, g, 0));
	OK(cuGraphLaunch(exec, s1));
	OK(cuStreamSynchronize(s1));
	CHECK(host[2] == 0 && host[3] == 1 && host[10] == 3 && host[4] == 2);
	/* without the node between, the last one depends on the first alone */
	OK(cuGraphRemoveDependencies(g, &a, &b, NULL, 1));
	IS(INVALID_VALUE, cuGraphRemoveDependencies(g, &a, &b, NULL, 1));
	OK(cuGraphDestroyNode(c));
	IS(INVALID_VALUE, cuGraphNodeGetType(c, &type));
	OK(cuGraphGetEdges(g, NULL, NULL, NULL, &n));
	CHECK(n == 1);
	OK(cuGraphGetRootNodes(g, NULL, &n));
	CHECK(n == 2);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(g));
	return true;
}

/* A graph in a graph, launched into a capture too; clones */
static bool children(void)
{
	CUgraphNode a, b, c, d, inner, found;
	CUgraphNodeType type;
	CUgraphExec exec;
	CUgraph g, in, own, clone;
	size_t n;

	CHECK(clear());
	OK(cuGraphCreate(&in, 0));
	OK(stamp_node(&inner, in, NULL, 0, 3));
	OK(stamp_node(&b, in, &inner, 1, 4));
	OK(cuGraphCreate(&g, 0));
	OK(stamp_node(&a, g, NULL, 0, 2));
	OK(cuGraphAddChildGraphNode(&c, g, &a, 1, in));
	OK(cuGraphDestroy(in));
	OK(cuGraphAddEmptyNode(&d, g, &c, 1));
	OK(stamp_node(&b, g, &d, 1, 5));
	OK(cuGraphChildGraphNodeGetGraph(c, &own));
	IS(INVALID_VALUE, cuGraphDestroy(own));
	OK(cuGraphGetNodes(own, NULL, &n));
	CHECK(n == 2);
	OK(cuGraphClone(&clone, g));
	OK(cuGraphNodeFindInClone(&found, c, clone));
	OK(cuGraphNodeGetType(found, &type));
	CHECK(found != c && type == CU_GRAPH_NODE_TYPE_GRAPH);
	IS(INVALID_VALUE, cuGraphNodeFindInClone(&found, c, g));
	OK(cuGraphDestroy(g));
	OK(cuGraphInstantiate(&exec, clone, 0));
	OK(cuGraphDestroy(clone));
	OK(cuGraphLaunch(exec, s1));
	OK(cuStreamSynchronize(s1));
	CHECK(host[2] == 0 && host[3] == 1 && host[4] == 2 && host[5] == 3);
	CHECK(clear());
	OK(cuStreamBeginCapture(s1, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuGraphLaunch(exec, s1));
	OK(stamp(s1, 1, 6, 32));
	OK(cuStreamEndCapture(s1, &g));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphInstantiate(&exec, g, 0));
	OK(cuGraphLaunch(exec, s1));
	OK(cuStreamSynchronize(s1));
	CHECK(host[5] == 3 && host[6] == 4);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(g));
	return true;
}

static bool capture_adds(CUgraph *g, uint32_t v, uint32_t fill)
{
	OK(cuStreamBeginCapture(s1, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuMemsetD32Async(buf, fill, 32, s1));
	OK(add(s1, 0, 0, v));
	OK(cuMemcpyDtoHAsync((void *)(host + 64), buf, 4, s1));
	OK(cuStreamEndCapture(s1, g));
	return true;
}

static uint32_t launched(CUgraphExec exec)
{
	host[64] = 0;
	return cuGraphLaunch(exec, s1) || cuStreamSynchronize(s1) ? UINT32_MAX : host[64];
}

static bool updates(void)
{
	uint32_t v = 1000;
	CUdeviceptr p = buf;
	CUDA_KERNEL_NODE_PARAMS kp = kernel(k_add, (void *[]){ &p, &p, &v });
	CUgraphNodeParams any = { .type = CU_GRAPH_NODE_TYPE_KERNEL };
	CUDA_HOST_NODE_PARAMS hp = { note, NULL };
	CUDA_MEMSET_NODE_PARAMS mp;
	CUDA_MEMCPY3D cp;
	CUgraphExecUpdateResultInfo info;
	CUgraphNode nodes[4], extra;
	CUgraphExec exec;
	CUgraph g, other;
	size_t n = 4;

	CHECK(clear());
	CHECK(capture_adds(&g, 7, 1));
	OK(cuGraphInstantiate(&exec, g, 0));
	CHECK(launched(exec) == 8);
	CHECK(capture_adds(&other, 9, 2));
	OK(cuGraphExecUpdate(exec, other, &info));
	CHECK(info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS && !info.errorNode);
	CHECK(launched(exec) == 11);
	/* one node at a time, named by the graph that it was instantiated from */
	OK(cuGraphGetNodes(g, nodes, &n));
	CHECK(n == 3);
	OK(cuGraphExecKernelNodeSetParams(exec, nodes[1], &kp));
	CHECK(launched(exec) == 1002);
	v = 2000;
	memcpy(&any.kernel, &kp, sizeof(kp));
	OK(cuGraphExecNodeSetParams(exec, nodes[1], &any));
	CHECK(launched(exec) == 2002);
	v = 1000;
	OK(cuGraphExecKernelNodeSetParams(exec, nodes[1], &kp));
	OK(cuGraphMemsetNodeGetParams(nodes[0], &mp));
	CHECK(mp.dst == buf && mp.value == 1 && mp.elementSize == 4 && mp.width == 32 &&
	      mp.height == 1);
	mp.value = 5;
	OK(cuGraphExecMemsetNodeSetParams(exec, nodes[0], &mp, ctx));
	CHECK(launched(exec) == 1005);
	OK(cuGraphMemcpyNodeGetParams(nodes[2], &cp));
	CHECK(cp.srcMemoryType == CU_MEMORYTYPE_DEVICE && cp.srcDevice == buf &&
	      cp.WidthInBytes == 4);
	cp.srcDevice = buf + 128;
	OK(cuGraphExecMemcpyNodeSetParams(exec, nodes[2], &cp, ctx));
	CHECK(launched(exec) == 0);
	IS(INVALID_VALUE, cuGraphExecHostNodeSetParams(exec, nodes[1], &hp));
	IS(INVALID_VALUE, cuGraphExecKernelNodeSetParams(exec, nodes[0], &kp));
	/* of the graph, the next executable one has it */
	OK(cuGraphKernelNodeSetParams(nodes[1], &kp));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphInstantiate(&exec, g, 0));
	CHECK(launched(exec) == 1001);
	/* another shape is refused and changes nothing */
	OK(cuGraphAddEmptyNode(&extra, other, NULL, 0));
	IS(GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, other, &info));
	CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
	IS(INVALID_VALUE, cuGraphExecKernelNodeSetParams(exec, extra, &kp));
	CHECK(launched(exec) == 1001);
	OK(cuGraphDestroy(other));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(g));
	return true;
}

/*
 * Two graphs in flight: one waits for a word that the other one writes. One graph twice: one after
 * the other
 */
static bool in_flight(void)
{
	CUgraphExec waits, writes;
	CUgraph g;

	CHECK(clear());
	OK(cuStreamBeginCapture(s1, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(spin(s1, 0, 1, 32));
	OK(stamp(s1, 1, 2, 32));
	OK(cuStreamEndCapture(s1, &g));
	OK(cuGraphInstantiate(&waits, g, 0));
	OK(cuGraphDestroy(g));
	OK(cuStreamBeginCapture(s1, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(stamp(s1, 1, 3, 32));
	OK(set(s1, 0, 1));
	OK(cuStreamEndCapture(s1, &g));
	OK(cuGraphInstantiate(&writes, g, 0));
	OK(cuGraphDestroy(g));
	OK(cuGraphLaunch(waits, s1));
	IS(NOT_READY, cuStreamQuery(s1));
	OK(cuGraphLaunch(writes, s2));
	OK(cuStreamSynchronize(s1));
	OK(cuStreamSynchronize(s2));
	CHECK(host[3] == 0 && host[2] == 1);
	/*
	 * the same one on both streams: the second launch waits for the first, and both outlive
	 * what they were made of
	 */
	CHECK(clear());
	OK(cuGraphLaunch(waits, s1));
	OK(cuGraphLaunch(waits, s2));
	OK(cuGraphExecDestroy(waits));
	IS(INVALID_VALUE, cuGraphLaunch(waits, s1));
	IS(INVALID_VALUE, cuGraphExecDestroy(waits));
	OK(stamp(s2, 1, 4, 32));
	IS(NOT_READY, cuStreamQuery(s2));
	host[0] = 1;
	OK(cuStreamSynchronize(s2));
	CHECK(host[2] == 1 && host[4] == 2);
	OK(cuGraphExecDestroy(writes));
	return true;
}

/* Nodes of events outside the graph, of memory operations, and of a batch of them */
static bool outside(void)
{
	CUstreamBatchMemOpParams ops[2] = { { 0 } };
	CUgraphNode nodes[8];
	CUgraphNodeType type;
	CUgraphExec exec;
	CUevent before, after;
	CUgraph g;
	size_t n = 8;

	CHECK(clear());
	OK(cuEventCreate(&before, CU_EVENT_DISABLE_TIMING));
	OK(cuEventCreate(&after, CU_EVENT_DISABLE_TIMING));
	ops[0].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
	ops[0].waitValue.address = at(5);
	ops[0].waitValue.value = 1;
	ops[1].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	ops[1].writeValue.address = at(6);
	ops[1].writeValue.value = 77;
	OK(cuStreamBeginCapture(s1, CU_STREAM_CAPTURE_MODE_RELAXED));
	OK(cuStreamWaitEvent(s1, before, CU_EVENT_WAIT_EXTERNAL));
	OK(cuStreamBatchMemOp(s1, 2, ops, 0));
	OK(cuEventRecordWithFlags(after, s1, CU_EVENT_RECORD_EXTERNAL));
	OK(cuStreamEndCapture(s1, &g));
	OK(cuGraphGetNodes(g, nodes, &n));
	CHECK(n == 3);
	OK(cuGraphNodeGetType(nodes[0], &type));
	CHECK(type == CU_GRAPH_NODE_TYPE_WAIT_EVENT);
	OK(cuGraphNodeGetType(nodes[1], &type));
	CHECK(type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
	OK(cuGraphNodeGetType(nodes[2], &type));
	CHECK(type == CU_GRAPH_NODE_TYPE_EVENT_RECORD);
	OK(cuGraphInstantiate(&exec, g, 0));
	OK(spin(s2, 0, 1, 32));
	OK(cuEventRecord(before, s2));
	OK(cuGraphLaunch(exec, s1));
	OK(cuStreamWaitEvent(s2, after, 0));
	OK(stamp(s2, 1, 2, 32));
	host[5] = 1;
	IS(NOT_READY, cuEventQuery(after));
	CHECK(host[6] == 0);
	host[0] = 1;
	OK(cuEventSynchronize(after));
	CHECK(host[6] == 77);
	OK(cuStreamSynchronize(s2));
	OK(cuEventDestroy(before));
	OK(cuEventDestroy(after));
	OK(cuGraphLaunch(exec, s1));	/* nodes of events that are gone do nothing */
	OK(cuStreamSynchronize(s1));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(g));
	return true;
}

static bool to_graph(void)
{
	CUgraphNodeParams np = { .type = CU_GRAPH_NODE_TYPE_EMPTY };
	CUstreamCaptureStatus status;
	const CUgraphEdgeData *data;
	const CUgraphNode *deps;
	CUgraphNode a, b, list[4];
	CUgraph g, same;
	cuuint64_t id;
	size_t n;

	OK(cuGraphCreate(&g, 0));
	OK(cuGraphAddNode(&a, g, NULL, NULL, 0, &np));
	np.reserved2 = 1;
	IS(INVALID_VALUE, cuGraphAddNode(&b, g, NULL, NULL, 0, &np));
	OK(cuGraphAddEmptyNode(&b, g, NULL, 0));
	OK(cuStreamBeginCaptureToGraph(s1, g, &a, NULL, 1, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuStreamGetCaptureInfo(s1, &status, &id, &same, &deps, &data, &n));
	CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE && id && same == g && n == 1 &&
	      deps[0] == a);
	IS(INVALID_VALUE, cuGraphDestroy(g));
	OK(cuStreamUpdateCaptureDependencies(s1, &b, NULL, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
	OK(stamp(s1, 1, 2, 32));
	OK(cuStreamGetCaptureInfo(s1, &status, NULL, NULL, &deps, NULL, &n));
	CHECK(n == 1);
	n = 4;
	OK(cuGraphNodeGetDependencies(deps[0], list, NULL, &n));
	CHECK(n == 2 && list[0] == a && list[1] == b);
	OK(cuStreamEndCapture(s1, &same));
	CHECK(same == g);
	IS(ILLEGAL_STATE, cuStreamUpdateCaptureDependencies(s1, &b, NULL, 1, 0));
	OK(cuGraphDestroy(g));
	return true;
}

/* What a stream is after @call, and how its capture ends */
static bool invalidated(void)
{
	CUstreamCaptureStatus status;
	CUgraph g = (CUgraph)&status;

	OK(cuStreamIsCapturing(s1, &status));
	CHECK(status == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
	IS(STREAM_CAPTURE_INVALIDATED, stamp(s1, 1, 2, 32));
	IS(STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s1, &g));
	CHECK(!g);
	OK(cuStreamIsCapturing(s1, &status));
	CHECK(status == CU_STREAM_CAPTURE_STATUS_NONE);
	return true;
}

static void callback(CUstream s, CUresult r, void *user)
{
}

/* Calls that no capture allows, and those that only a relaxed one does */
static bool forbidden(void)
{
	CUevent outside_event;
	CUdeviceptr p = 0;
	CUgraph g;

	OK(cuEventCreate(&outside_event, 0));
	OK(cuEventRecord(outside_event, s2));
	OK(cuEventSynchronize(outside_event));
	for (unsigned int mode = 0; mode < 3; mode++) {
#define REFUSED(result, call) \
		do { \
			OK(cuStreamBeginCapture(s1, (CUstreamCaptureMode)mode)); \
			OK(stamp(s1, 1, 2, 32)); \
			IS(result, call); \
			CHECK(invalidated()); \
		} while (0)
#define UNSAFE(call) \
		do { \
			if (mode < 2) { \
				REFUSED(STREAM_CAPTURE_UNSUPPORTED, call); \
				break; \
			} \
			OK(cuStreamBeginCapture(s1, (CUstreamCaptureMode)mode)); \
			OK(call); \
			OK(cuStreamEndCapture(s1, &g)); \
			OK(cuGraphDestroy(g)); \
		} while (0)
		REFUSED(STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(s1));
		REFUSED(STREAM_CAPTURE_UNSUPPORTED, cuStreamQuery(s1));
		REFUSED(STREAM_CAPTURE_UNSUPPORTED, cuCtxSynchronize());
		REFUSED(STREAM_CAPTURE_UNSUPPORTED, cuStreamAddCallback(s1, callback, NULL, 0));
		REFUSED(STREAM_CAPTURE_ISOLATION, cuStreamWaitEvent(s1, outside_event, 0));
		UNSAFE(cuMemAlloc(&p, 64));
		UNSAFE(cuMemFree(p));
		UNSAFE(cuEventQuery(outside_event));
		UNSAFE(cuEventSynchronize(outside_event));
		UNSAFE(cuStreamSynchronize(s2));
		UNSAFE(cuStreamQuery(s2));
		UNSAFE(cuStreamSynchronize(NULL));
		/*
		 * a synchronous set is only an operation of the legacy stream, which no
		 * non-blocking stream concerns
		 */
		OK(cuStreamBeginCapture(s1, (CUstreamCaptureMode)mode));
		OK(cuMemsetD8(buf, 0, 4));
		OK(cuStreamEndCapture(s1, NULL));
	}
	IS(ILLEGAL_STATE, cuEventRecordWithFlags(outside_event, s2, CU_EVENT_RECORD_EXTERNAL));
	IS(ILLEGAL_STATE, cuStreamWaitEvent(s2, outside_event, CU_EVENT_WAIT_EXTERNAL));
	OK(cuEventDestroy(outside_event));
	return true;
}

static CUresult of_thread;

static void *thread_ends(void *arg)
{
	cuCtxSetCurrent(ctx);
	of_thread = cuStreamEndCapture(s1, NULL);
	return NULL;
}

static void *thread_allocates(void *arg)
{
	CUdeviceptr p;

	cuCtxSetCurrent(ctx);
	of_thread = cuMemAlloc(&p, 64);
	if (!of_thread)
		cuMemFree(p);
	return NULL;
}

/* While s1 captures, another thread does @what */
static bool elsewhere(CUstreamCaptureMode mode, void *(*what)(void *))
{
	pthread_t t;

	OK(cuStreamBeginCapture(s1, mode));
	CHECK(!pthread_create(&t, NULL, what, NULL) && !pthread_join(t, NULL));
	return true;
}

static bool out_of_turn(void)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUstreamCaptureStatus status;
	CUdeviceptr p;
	CUevent e;
	CUgraph g;

	OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	IS(ILLEGAL_STATE, cuStreamEndCapture(s1, &g));
	IS(STREAM_CAPTURE_UNSUPPORTED, cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL));
	IS(INVALID_VALUE, cuStreamBeginCapture(s1, (CUstreamCaptureMode)3));
	OK(cuStreamBeginCapture(s1, CU_STREAM_CAPTURE_MODE_GLOBAL));
	IS(ILLEGAL_STATE, cuStreamBeginCapture(s1, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	CHECK(mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
	OK(cuMemAlloc(&p, 64));
	OK(cuMemFree(p));
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	CHECK(mode == CU_STREAM_CAPTURE_MODE_RELAXED);
	OK(cuStreamEndCapture(s1, NULL));
	/* a stream that was forked off and did not come back; one that is ended for another */
	OK(cuStreamBeginCapture(s1, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(stamp(s1, 1, 2, 32));
	OK(cuEventRecord(e, s1));
	OK(cuStreamWaitEvent(s2, e, 0));
	OK(stamp(s2, 1, 2, 32));
	IS(STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(s1, &g));
	OK(cuStreamIsCapturing(s2, &status));
	CHECK(!g && status == CU_STREAM_CAPTURE_STATUS_NONE);
	OK(cuStreamBeginCapture(s1, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuEventRecord(e, s1));
	OK(cuStreamWaitEvent(s2, e, 0));
	IS(STREAM_CAPTURE_UNMATCHED, cuStreamEndCapture(s2, &g));
	CHECK(invalidated());
	/* two captures do not mix */
	OK(cuStreamBeginCapture(s1, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuStreamBeginCapture(s2, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuEventRecord(e, s2));
	IS(STREAM_CAPTURE_MERGE, cuStreamWaitEvent(s1, e, 0));
	CHECK(invalidated());
	IS(STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s2, &g));
	/* the legacy stream cannot be used while a blocking stream captures */
	OK(cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
	IS(STREAM_CAPTURE_IMPLICIT, stamp(NULL, 1, 2, 32));
	IS(STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(blocking, &g));
	/* an event that is part of a capture cannot be asked */
	OK(cuStreamBeginCapture(s1, CU_STREAM_CAPTURE_MODE_RELAXED));
	OK(cuEventRecord(e, s1));
	IS(CAPTURED_EVENT, cuEventQuery(e));
	CHECK(invalidated());
	/*
	 * only a relaxed capture may be ended by another thread, but it ends; a global one forbids
	 * it to allocate
	 */
	CHECK(elsewhere(CU_STREAM_CAPTURE_MODE_GLOBAL, thread_ends));
	CHECK(of_thread == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
	IS(ILLEGAL_STATE, cuStreamEndCapture(s1, &g));
	CHECK(elsewhere(CU_STREAM_CAPTURE_MODE_RELAXED, thread_ends));
	CHECK(of_thread == CUDA_SUCCESS);
	CHECK(elsewhere(CU_STREAM_CAPTURE_MODE_GLOBAL, thread_allocates));
	CHECK(of_thread == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	CHECK(invalidated());
	CHECK(elsewhere(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, thread_allocates));
	CHECK(of_thread == CUDA_SUCCESS);
	OK(cuStreamEndCapture(s1, NULL));
	OK(cuEventDestroy(e));
	return true;
}

static bool wrong(void)
{
	CUDA_KERNEL_NODE_PARAMS kp = kernel(k_set, NULL);
	CUDA_MEMSET_NODE_PARAMS mp = { buf, 0, 1, 3, 4, 1 };
	CUgraphNode a, b, c;
	CUgraphExec exec;
	CUgraph g, other;

	IS(INVALID_VALUE, cuGraphCreate(NULL, 0));
	IS(INVALID_VALUE, cuGraphCreate(&g, 1));
	OK(cuGraphCreate(&g, 0));
	OK(cuGraphCreate(&other, 0));
	OK(cuGraphAddEmptyNode(&a, g, NULL, 0));
	OK(cuGraphAddEmptyNode(&b, g, &a, 1));
	IS(INVALID_VALUE, cuGraphAddEmptyNode(&c, other, &a, 1));
	IS(INVALID_VALUE, cuGraphAddEmptyNode(&c, g, NULL, 1));
	IS(INVALID_VALUE, cuGraphAddKernelNode(&c, g, NULL, 0, &kp));	/* no parameters */
	IS(INVALID_VALUE, cuGraphAddMemsetNode(&c, g, NULL, 0, &mp, ctx));
	IS(INVALID_VALUE, cuGraphAddDependencies(g, &a, &b, NULL, 1));	/* is there */
	IS(INVALID_VALUE, cuGraphAddDependencies(g, &a, &a, NULL, 1));
	IS(INVALID_VALUE, cuGraphInstantiate(&exec, g, 64));
	OK(cuGraphAddDependencies(g, &b, &a, NULL, 1));
	IS(INVALID_VALUE, cuGraphInstantiate(&exec, g, 0));		/* a cycle */
	IS(INVALID_VALUE, cuGraphInstantiate(&exec, NULL, 0));
	IS(INVALID_VALUE, cuGraphLaunch(NULL, s1));
	IS(INVALID_VALUE, cuGraphDestroy(NULL));
	OK(cuGraphDestroy(g));
	IS(INVALID_VALUE, cuGraphDestroy(g));
	/* nothing to do is done at once */
	OK(cuGraphInstantiate(&exec, other, 0));
	OK(cuGraphLaunch(exec, s1));
	OK(cuStreamSynchronize(s1));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(other));
	return true;
}

/* A context that is destroyed takes its captures with it */
static bool context_gone(void)
{
	CUstream a, b;
	CUcontext c;
	CUevent e;

	OK(cuCtxCreate(&c, NULL, 0, 0));
	OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&e, 0));
	OK(cuStreamBeginCapture(b, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuMemsetD32Async(buf, 1, 4, b));
	OK(cuEventRecord(e, b));
	OK(cuStreamWaitEvent(a, e, 0));
	OK(cuCtxDestroy(c));
	OK(cuCtxSetCurrent(ctx));
	OK(cuStreamSynchronize(s1));	/* no capture forbids it */
	/* nor does one of a stream that is destroyed */
	OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
	OK(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuStreamDestroy(a));
	OK(cuStreamSynchronize(s1));
	return true;
}

static void gone(void *word)
{
	++*(volatile uint32_t *)word;
}

/* A user object lives as long as a graph, an executable graph or a launch that has it */
static bool user_objects(void)
{
	CUuserObject u;
	CUgraphExec exec;
	CUgraph g;

	CHECK(clear());
	IS(INVALID_VALUE, cuUserObjectCreate(&u, (void *)&host[9], gone, 1, 0));
	OK(cuUserObjectCreate(&u, (void *)&host[9], gone, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
	OK(cuStreamBeginCapture(s1, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(spin(s1, 0, 1, 32));
	OK(cuStreamEndCapture(s1, &g));
	OK(cuGraphRetainUserObject(g, u, 1, CU_GRAPH_USER_OBJECT_MOVE));
	OK(cuGraphInstantiate(&exec, g, 0));
	OK(cuGraphDestroy(g));
	OK(cuGraphLaunch(exec, s1));
	OK(cuGraphExecDestroy(exec));
	CHECK(host[9] == 0);
	host[0] = 1;
	OK(cuStreamSynchronize(s1));
	CHECK(host[9] == 1);
	return true;
}

void graphs_tests(void)
{
	if (cuStreamCreate(&s1, CU_STREAM_NON_BLOCKING) ||
	    cuStreamCreate(&s2, CU_STREAM_NON_BLOCKING) || cuStreamCreate(&blocking, 0) ||
	    cuMemAlloc(&buf, 256)) {
		ok(false, "graphs: streams and memory");
		return;
	}
	ok(chain(), "graphs: what was captured does what it does directly, a "
	       "hundred times too");
	ok(fork_join(), "graphs: branches of one run together and join");
	ok(diamond(), "graphs: nodes added one by one, a host function among them, "
	       "and asked for");
	ok(children(), "graphs: graphs in graphs, and clones");
	ok(updates(), "graphs: updates of executable ones");
	ok(in_flight(), "graphs: two in flight; launches of one in order, though "
	       "it is destroyed");
	ok(outside(), "graphs: events outside, waits and writes of values");
	ok(to_graph(), "graphs: captures into one, and their dependencies");
	ok(forbidden(), "captures: what they forbid invalidates them");
	ok(out_of_turn(), "captures: wrong beginnings, ends, threads and mixtures");
	ok(context_gone(), "captures: they go with their stream or context");
	ok(wrong(), "graphs: wrong arguments, a cycle, an empty one");
	ok(user_objects(), "graphs: user objects go with the last that has them");
	cuMemFree(buf);
	cuStreamDestroy(s1);
	cuStreamDestroy(s2);
	cuStreamDestroy(blocking);
}
