// SPDX-License-Identifier: LGPL-2.1-or-later
/* Runtime API: stream capture and graphs */
#include <string.h>
#include "cudart.h"

RT_BOTH(cudaStreamBeginCapture, _ptsz, (cudaStream_t s, CUstreamCaptureMode mode),
	RT_CALL(own, cuStreamBeginCapture, s, mode))
RT_BOTH(cudaStreamBeginCaptureToGraph, _ptsz,
	(cudaStream_t s, cudaGraph_t g, const cudaGraphNode_t *deps, const CUgraphEdgeData *data,
	 size_t n, CUstreamCaptureMode mode),
	RT_CALL(own, cuStreamBeginCaptureToGraph, s, g, deps, data, n, mode))
RT_BOTH(cudaStreamEndCapture, _ptsz, (cudaStream_t s, cudaGraph_t *g),
	RT_CALL(own, cuStreamEndCapture, s, g))
RT_BOTH(cudaStreamGetCaptureInfo, _ptsz,
	(cudaStream_t s, CUstreamCaptureStatus *status, cuuint64_t *id, cudaGraph_t *g,
	 const cudaGraphNode_t **deps, const CUgraphEdgeData **data, size_t *n),
	RT_CALL(own, cuStreamGetCaptureInfo, s, status, id, g, deps, data, n))
RT_BOTH(cudaStreamUpdateCaptureDependencies, _ptsz,
	(cudaStream_t s, cudaGraphNode_t *deps, const CUgraphEdgeData *data, size_t n,
	 unsigned int flags),
	RT_CALL(own, cuStreamUpdateCaptureDependencies, s, deps, data, n, flags))

RT_FN(cudaGraphCreate, (cudaGraph_t *g, unsigned int flags))
{
	return RT_CALL(0, cuGraphCreate, g, flags);
}

RT_FN(cudaGraphDestroy, (cudaGraph_t g))
{
	return RT_CALL(0, cuGraphDestroy, g);
}

RT_FN(cudaGraphClone, (cudaGraph_t *clone, cudaGraph_t g))
{
	return RT_CALL(0, cuGraphClone, clone, g);
}

/* Parameters: the driver's, from the runtime's */

static cudaError_t kernel(const struct cudaKernelNodeParams *p, CUDA_KERNEL_NODE_PARAMS *out)
{
	CUkernel k = NULL;
	cudaError_t e = p ? rt_kernel(p->func, &k) : rt_fail(cudaErrorInvalidValue);

	if (e)
		return e;
	*out = (CUDA_KERNEL_NODE_PARAMS) {
		NULL, p->gridDim.x, p->gridDim.y, p->gridDim.z, p->blockDim.x, p->blockDim.y,
			p->blockDim.z, p->sharedMemBytes,
		p->kernelParams, p->extra, k, NULL,
	};
	return cudaSuccess;
}

static cudaError_t set(const struct cudaMemsetParams *p, CUDA_MEMSET_NODE_PARAMS *out,
		       CUcontext *ctx)
{
	cudaError_t e = p ? rt_context() : rt_fail(cudaErrorInvalidValue);

	if (e)
		return e;
	*out = (CUDA_MEMSET_NODE_PARAMS) { (CUdeviceptr)(uintptr_t)p->dst, p->pitch, p->value,
					   p->elementSize, p->width, p->height };
	return rt_error(rt_driver[0].p_cuCtxGetCurrent(ctx));
}

static cudaError_t copy(const struct cudaMemcpy3DParms *p, CUDA_MEMCPY3D *out, CUcontext *ctx)
{
	cudaError_t e = rt_context();

	if (!e)
		e = rt_copy3d(p, out);
	return e ? e : rt_error(rt_driver[0].p_cuCtxGetCurrent(ctx));
}

static struct cudaMemcpy3DParms line(void *dst, const void *src, size_t size,
				     enum cudaMemcpyKind kind)
{
	return (struct cudaMemcpy3DParms) {
		.srcPtr = { (void *)(uintptr_t)src, size, size, 1 },
			.dstPtr = { dst, size, size, 1 }, .extent = { size, 1, 1 },
		.kind = kind,
	};
}

/* Nodes */

RT_FN(cudaGraphAddKernelNode, (cudaGraphNode_t *out, cudaGraph_t g,
			       const cudaGraphNode_t *deps, size_t n,
			       const struct cudaKernelNodeParams *p))
{
	CUDA_KERNEL_NODE_PARAMS k;
	cudaError_t e = kernel(p, &k);

	return e ? e : RT_CALL(0, cuGraphAddKernelNode, out, g, deps, n, &k);
}

RT_FN(cudaGraphAddMemcpyNode, (cudaGraphNode_t *out, cudaGraph_t g,
			       const cudaGraphNode_t *deps, size_t n,
			       const struct cudaMemcpy3DParms *p))
{
	CUDA_MEMCPY3D c;
	CUcontext ctx;
	cudaError_t e = copy(p, &c, &ctx);

	return e ? e : RT_CALL(0, cuGraphAddMemcpyNode, out, g, deps, n, &c, ctx);
}

RT_FN(cudaGraphAddMemcpyNode1D, (cudaGraphNode_t *out, cudaGraph_t g, const cudaGraphNode_t *deps,
				 size_t n, void *dst, const void *src, size_t size,
				 enum cudaMemcpyKind kind))
{
	struct cudaMemcpy3DParms p = line(dst, src, size, kind);

	return cudaGraphAddMemcpyNode(out, g, deps, n, &p);
}

RT_FN(cudaGraphAddMemsetNode, (cudaGraphNode_t *out, cudaGraph_t g,
			       const cudaGraphNode_t *deps, size_t n,
			       const struct cudaMemsetParams *p))
{
	CUDA_MEMSET_NODE_PARAMS m;
	CUcontext ctx;
	cudaError_t e = set(p, &m, &ctx);

	return e ? e : RT_CALL(0, cuGraphAddMemsetNode, out, g, deps, n, &m, ctx);
}

RT_FN(cudaGraphAddHostNode, (cudaGraphNode_t *out, cudaGraph_t g,
			     const cudaGraphNode_t *deps, size_t n,
			     const struct cudaHostNodeParams *p))
{
	return p ? RT_CALL(0, cuGraphAddHostNode, out, g, deps, n,
			   &(CUDA_HOST_NODE_PARAMS){ p->fn, p->userData }) :
	       rt_fail(cudaErrorInvalidValue);
}

RT_FN(cudaGraphAddChildGraphNode, (cudaGraphNode_t *out, cudaGraph_t g, const cudaGraphNode_t *deps,
				   size_t n, cudaGraph_t child))
{
	return RT_CALL(0, cuGraphAddChildGraphNode, out, g, deps, n, child);
}

RT_FN(cudaGraphAddEmptyNode, (cudaGraphNode_t *out, cudaGraph_t g,
			      const cudaGraphNode_t *deps, size_t n))
{
	return RT_CALL(0, cuGraphAddEmptyNode, out, g, deps, n);
}

RT_FN(cudaGraphAddEventRecordNode, (cudaGraphNode_t *out, cudaGraph_t g,
				    const cudaGraphNode_t *deps, size_t n, cudaEvent_t event))
{
	return RT_CALL(0, cuGraphAddEventRecordNode, out, g, deps, n, event);
}

RT_FN(cudaGraphAddEventWaitNode, (cudaGraphNode_t *out, cudaGraph_t g, const cudaGraphNode_t *deps,
				  size_t n, cudaEvent_t event))
{
	return RT_CALL(0, cuGraphAddEventWaitNode, out, g, deps, n, event);
}

RT_FN(cudaGraphAddDependencies, (cudaGraph_t g, const cudaGraphNode_t *from,
				 const cudaGraphNode_t *to, const CUgraphEdgeData *data, size_t n))
{
	return RT_CALL(0, cuGraphAddDependencies, g, from, to, data, n);
}

RT_FN(cudaGraphDestroyNode, (cudaGraphNode_t node))
{
	return RT_CALL(0, cuGraphDestroyNode, node);
}

RT_FN(cudaGraphNodeGetType, (cudaGraphNode_t node, CUgraphNodeType *type))
{
	return RT_CALL(0, cuGraphNodeGetType, node, type);
}

RT_FN(cudaGraphGetNodes, (cudaGraph_t g, cudaGraphNode_t *nodes, size_t *n))
{
	return RT_CALL(0, cuGraphGetNodes, g, nodes, n);
}

RT_FN(cudaGraphGetRootNodes, (cudaGraph_t g, cudaGraphNode_t *nodes, size_t *n))
{
	return RT_CALL(0, cuGraphGetRootNodes, g, nodes, n);
}

RT_FN(cudaGraphGetEdges, (cudaGraph_t g, cudaGraphNode_t *from, cudaGraphNode_t *to,
			  CUgraphEdgeData *data, size_t *n))
{
	return RT_CALL(0, cuGraphGetEdges, g, from, to, data, n);
}

RT_FN(cudaGraphKernelNodeSetParams, (cudaGraphNode_t node, const struct cudaKernelNodeParams *p))
{
	CUDA_KERNEL_NODE_PARAMS k;
	cudaError_t e = kernel(p, &k);

	return e ? e : RT_CALL(0, cuGraphKernelNodeSetParams, node, &k);
}

/* Executable graphs */

RT_FN(cudaGraphInstantiateWithFlags,
      (cudaGraphExec_t *exec, cudaGraph_t g, unsigned long long flags))
{
	return RT_CALL(0, cuGraphInstantiateWithFlags, exec, g, flags);
}

RT_FN(cudaGraphInstantiate, (cudaGraphExec_t *exec, cudaGraph_t g, unsigned long long flags))
{
	return RT_CALL(0, cuGraphInstantiateWithFlags, exec, g, flags);
}
RT_BOTH(cudaGraphUpload, _ptsz, (cudaGraphExec_t exec, cudaStream_t s),
	RT_CALL(own, cuGraphUpload, exec, s))
RT_BOTH(cudaGraphLaunch, _ptsz, (cudaGraphExec_t exec, cudaStream_t s),
	RT_CALL(own, cuGraphLaunch, exec, s))

RT_FN(cudaGraphExecDestroy, (cudaGraphExec_t exec))
{
	return RT_CALL(0, cuGraphExecDestroy, exec);
}

RT_FN(cudaGraphExecUpdate, (cudaGraphExec_t exec, cudaGraph_t g, CUgraphExecUpdateResultInfo *info))
{
	return RT_CALL(0, cuGraphExecUpdate, exec, g, info);
}

RT_FN(cudaGraphExecKernelNodeSetParams, (cudaGraphExec_t exec, cudaGraphNode_t node,
					 const struct cudaKernelNodeParams *p))
{
	CUDA_KERNEL_NODE_PARAMS k;
	cudaError_t e = kernel(p, &k);

	return e ? e : RT_CALL(0, cuGraphExecKernelNodeSetParams, exec, node, &k);
}

RT_FN(cudaGraphExecMemcpyNodeSetParams, (cudaGraphExec_t exec, cudaGraphNode_t node,
					 const struct cudaMemcpy3DParms *p))
{
	CUDA_MEMCPY3D c;
	CUcontext ctx;
	cudaError_t e = copy(p, &c, &ctx);

	return e ? e : RT_CALL(0, cuGraphExecMemcpyNodeSetParams, exec, node, &c, ctx);
}

RT_FN(cudaGraphExecMemcpyNodeSetParams1D, (cudaGraphExec_t exec, cudaGraphNode_t node, void *dst,
					   const void *src, size_t size, enum cudaMemcpyKind kind))
{
	struct cudaMemcpy3DParms p = line(dst, src, size, kind);

	return cudaGraphExecMemcpyNodeSetParams(exec, node, &p);
}

RT_FN(cudaGraphExecMemsetNodeSetParams, (cudaGraphExec_t exec, cudaGraphNode_t node,
					 const struct cudaMemsetParams *p))
{
	CUDA_MEMSET_NODE_PARAMS m;
	CUcontext ctx;
	cudaError_t e = set(p, &m, &ctx);

	return e ? e : RT_CALL(0, cuGraphExecMemsetNodeSetParams, exec, node, &m, ctx);
}

RT_FN(cudaGraphExecHostNodeSetParams, (cudaGraphExec_t exec, cudaGraphNode_t node,
				       const struct cudaHostNodeParams *p))
{
	return p ? RT_CALL(0, cuGraphExecHostNodeSetParams, exec, node,
			   &(CUDA_HOST_NODE_PARAMS){ p->fn, p->userData }) :
	       rt_fail(cudaErrorInvalidValue);
}
