/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Graphs in a program of the runtime API as nvcc builds it. Prints TAP. */
#include <cstdio>

__global__ void add(int *p, int v)
{
	p[threadIdx.x] += v;
}

__global__ void times(int *p, int v)
{
	p[threadIdx.x] *= v;
}

static unsigned int n, bad;
static cudaStream_t s, t;
static int *p;

static void ok(bool good, const char *name)
{
	bad += !good;
	printf("%sok %u - %s\n", good ? "" : "not ", ++n, name);
}

static int value(cudaGraphExec_t exec, int times)
{
	int h[32];

	if (cudaMemset(p, 0, sizeof(h)))
		return -1;
	for (int i = 0; i < times; i++)
		if (cudaGraphLaunch(exec, s))
			return -2;
	if (cudaStreamSynchronize(s) || cudaMemcpy(h, p, sizeof(h), cudaMemcpyDeviceToHost) || h[0] != h[31])
		return -3;
	return h[31];
}

/* (p + a) * b, by way of another stream */
static bool capture(cudaGraph_t *graph, int a, int b)
{
	cudaEvent_t e, f;
	cudaStreamCaptureStatus status;
	unsigned long long id = 0;

	if (cudaEventCreateWithFlags(&e, cudaEventDisableTiming) || cudaEventCreateWithFlags(&f, cudaEventDisableTiming) ||
	    cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal))
		return false;
	add<<<1, 32, 0, s>>>(p, a);
	cudaEventRecord(e, s);
	cudaStreamWaitEvent(t, e, 0);
	times<<<1, 32, 0, t>>>(p, b);
	cudaEventRecord(f, t);
	cudaStreamWaitEvent(s, f, 0);
	return !cudaStreamIsCapturing(t, &status) && status == cudaStreamCaptureStatusActive &&
	       !cudaStreamGetCaptureInfo(s, &status, &id) && id && !cudaStreamEndCapture(s, graph) && !cudaEventDestroy(e) &&
	       !cudaEventDestroy(f) && !cudaGetLastError();
}

static bool captured()
{
	cudaGraph_t g, h;
	cudaGraphExec_t exec;
	cudaGraphExecUpdateResultInfo info;
	cudaGraphNode_t nodes[2];
	size_t count = 2;
	int v = 5;
	void *args[] = { &p, &v };
	cudaKernelNodeParams k = { (void *)times, 1, 32, 0, args, NULL };

	if (!capture(&g, 3, 2) || cudaGraphGetNodes(g, nodes, &count) || count != 2 || cudaGraphInstantiate(&exec, g, 0))
		return false;
	if (value(exec, 1) != 6 || value(exec, 3) != 42 || !capture(&h, 1, 4) || cudaGraphExecUpdate(exec, h, &info) ||
	    info.result != cudaGraphExecUpdateSuccess || value(exec, 2) != 20)
		return false;
	return !cudaGraphExecKernelNodeSetParams(exec, nodes[1], &k) && value(exec, 1) == 5 && !cudaGraphExecDestroy(exec) &&
	       !cudaGraphDestroy(g) && !cudaGraphDestroy(h);
}

static void host_times(void *h)
{
	for (int i = 0; i < 32; i++)
		((int *)h)[i] *= 10;
}

static bool built()
{
	int v = 7, *host;
	void *args[] = { &p, &v };
	cudaKernelNodeParams k = { (void *)add, 1, 32, 0, args, NULL };
	cudaMemsetParams m = { p, 0, 1, 4, 32, 1 };
	cudaHostNodeParams f = { host_times, NULL };
	cudaGraphNode_t a, b, c, d, e, x;
	cudaGraphExec_t exec;
	cudaGraph_t g;
	bool good;

	if (cudaMallocHost(&host, 128))
		return false;
	f.userData = host;
	good = !cudaGraphCreate(&g, 0) && !cudaGraphAddMemsetNode(&a, g, NULL, 0, &m) && !cudaGraphAddKernelNode(&b, g, &a, 1, &k) &&
	       !cudaGraphAddMemcpyNode1D(&c, g, &b, 1, host, p, 128, cudaMemcpyDeviceToHost) &&
	       !cudaGraphAddHostNode(&d, g, NULL, 0, &f) && !cudaGraphAddDependencies(g, &c, &d, NULL, 1) &&
	       !cudaGraphAddEmptyNode(&x, g, &d, 1) &&
	       !cudaGraphAddMemcpyNode1D(&e, g, &x, 1, p, host, 128, cudaMemcpyHostToDevice) &&
	       !cudaGraphInstantiateWithFlags(&exec, g, 0) && value(exec, 2) == 80 && host[3] == 80;
	return good && !cudaGraphExecDestroy(exec) && !cudaGraphDestroy(g) && !cudaFreeHost(host);
}

static bool refused()
{
	cudaGraph_t g = (cudaGraph_t)&n;
	void *q;

	return cudaStreamEndCapture(s, &g) == cudaErrorIllegalState && !cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal) &&
	       cudaMalloc(&q, 64) == cudaErrorStreamCaptureUnsupported && !q &&
	       cudaStreamEndCapture(s, &g) == cudaErrorStreamCaptureInvalidated && !g &&
	       cudaGetLastError() == cudaErrorStreamCaptureInvalidated && !cudaMalloc(&q, 64) && !cudaFree(q);
}

int main()
{
	if (cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking) || cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking) ||
	    cudaMalloc(&p, 128)) {
		printf("Bail out! %s\n", cudaGetErrorString(cudaGetLastError()));
		return 1;
	}
	ok(captured(), "a captured graph over two streams, launched, updated");
	ok(built(), "a graph of every common kind of node");
	ok(refused(), "an allocation invalidates a capture");
	cudaFree(p);
	cudaStreamDestroy(s);
	cudaStreamDestroy(t);
	printf("1..%u\n", n);
	return bad != 0;
}
