/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The driver's calls that wait for the GPU, load code or could be thought to: X(symbol, what is
 * done about it, why). What the kinds mean is said in task/task.h; with GI_UNLESS_FREE nothing
 * is done under a free lease, when nobody evicts. Calls that end a context drain its tasks first
 * (process/ending.c). Not managed: the forms with 32-bit pointers, and any call that queues work
 * on a stream that has no room for it.
 */
#ifndef GI_WAITS_H
#define GI_WAITS_H

#include "process/process.h"

#define GI_WAITS_TABLE(X) \
	/* memory that goes: the driver waits until the GPU can no longer use it */ \
	X(cuMemFree_v2, GI_WAITS_DEVICE, "waits for the context") \
	X(cuMemFreeHost, GI_WAITS_DEVICE | GI_ALL_DEVICES, "waits for all contexts") \
	X(cuMemHostUnregister, GI_WAITS_DEVICE | GI_ALL_DEVICES, "waits for all contexts") \
	X(cuArrayDestroy, GI_WAITS_DEVICE, "waits for the context") \
	X(cuMipmappedArrayDestroy, GI_WAITS_DEVICE, "waits for the context") \
	/* memory that comes: from what was freed on a stream, or by mapping it, \
		which waits on some drivers */ \
	X(cuMemAlloc_v2, GI_MAY_WAIT | GI_UNLESS_FREE, "takes back what streams have freed") \
	X(cuMemAllocPitch_v2, GI_MAY_WAIT | GI_UNLESS_FREE, "as cuMemAlloc") \
	X(cuMemAllocManaged, GI_MAY_WAIT | GI_UNLESS_FREE, "as cuMemAlloc") \
	X(cuMemAllocHost_v2, GI_MAY_WAIT | GI_UNLESS_FREE | GI_ALL_DEVICES, \
	  "maps pages into all contexts") \
	X(cuMemHostAlloc, GI_MAY_WAIT | GI_UNLESS_FREE | GI_ALL_DEVICES, \
	  "maps pages into all contexts") \
	X(cuMemHostRegister_v2, GI_MAY_WAIT | GI_UNLESS_FREE | GI_ALL_DEVICES, \
	  "maps pages into all contexts") \
	X(cuArrayCreate_v2, GI_MAY_WAIT | GI_UNLESS_FREE, "as cuMemAlloc") \
	X(cuArray3DCreate_v2, GI_MAY_WAIT | GI_UNLESS_FREE, "as cuMemAlloc") \
	X(cuMemPoolTrimTo, GI_MAY_WAIT, "unmaps memory") \
	/* code */ \
	X(cuModuleLoad, GI_MAY_WAIT, "loads code") \
	X(cuModuleLoadData, GI_MAY_WAIT, "loads code") \
	X(cuModuleLoadDataEx, GI_MAY_WAIT, "loads code") \
	X(cuModuleLoadFatBinary, GI_MAY_WAIT, "loads code") \
	X(cuModuleUnload, GI_WAITS_DEVICE, "waits for the context") \
	X(cuModuleGetFunction, GI_MAY_WAIT, "loads the function if that was put off") \
	X(cuModuleEnumerateFunctions, GI_MAY_WAIT, "as cuModuleGetFunction") \
	X(cuLibraryLoadData, GI_MAY_WAIT, "loads code") \
	X(cuLibraryLoadFromFile, GI_MAY_WAIT, "loads code") \
	X(cuLibraryUnload, GI_WAITS_DEVICE | GI_ALL_DEVICES, "waits for all contexts") \
	X(cuLibraryGetModule, GI_MAY_WAIT, "loads the library into the context") \
	X(cuLibraryGetGlobal, GI_MAY_WAIT, "loads the library into the context") \
	X(cuLibraryGetManaged, GI_MAY_WAIT, "loads the library into the context") \
	X(cuLibraryGetKernel, GI_WAITS_NOT, "looks up a name") \
	X(cuKernelGetFunction, GI_MAY_WAIT, "loads the function into the context") \
	X(cuFuncLoad, GI_MAY_WAIT, "loads the function; so does its first launch, \
	  before which we call it") \
	X(cuModuleGetGlobal_v2, GI_WAITS_NOT, "variables are there from the module's load on") \
	/* graphs: their kernels' functions are loaded, and memory for the graph is allocated */ \
	X(cuGraphInstantiate, GI_MAY_WAIT, "loads functions") \
	X(cuGraphInstantiate_v2, GI_MAY_WAIT, "loads functions") \
	X(cuGraphInstantiateWithFlags, GI_MAY_WAIT, "loads functions") \
	X(cuGraphInstantiateWithParams, GI_MAY_WAIT, "loads functions") \
	X(cuGraphExecDestroy, GI_MAY_WAIT | GI_UNLESS_FREE, "frees memory") \
	/* contexts and streams */ \
	X(cuCtxSetLimit, GI_WAITS_DEVICE, "memory of all SMs is allocated anew") \
	X(cuStreamDestroy_v2, GI_WAITS_NOT, "the stream goes when its work is done") \
	X(cuEventDestroy_v2, GI_WAITS_NOT, "the event goes when it is over") \
	X(cuStreamSynchronize, GI_WAITS_NOT, "holds no lock while it waits") \
	X(cuCtxSynchronize, GI_WAITS_NOT, "holds no lock while it waits") \
	X(cuEventSynchronize, GI_WAITS_NOT, "holds no lock while it waits") \
	/* copies to and from the host, of arrays, and in two and three dimensions, \
		which may be that */ \
	X(cuMemcpy, GI_WAITS_STREAM, "ends when the copy has") \
	X(cuMemcpyHtoD_v2, GI_WAITS_STREAM, \
	  "waits for the stream if it is larger than a staging buffer, or pinned") \
	X(cuMemcpyDtoH_v2, GI_WAITS_STREAM, "ends when the copy has") \
	X(cuMemcpy2D_v2, GI_WAITS_STREAM, "ends when the copy has") \
	X(cuMemcpy2DUnaligned_v2, GI_WAITS_STREAM, "ends when the copy has") \
	X(cuMemcpy3D_v2, GI_WAITS_STREAM, "ends when the copy has") \
	X(cuMemcpyHtoA_v2, GI_WAITS_STREAM, "as cuMemcpyHtoD") \
	X(cuMemcpyAtoH_v2, GI_WAITS_STREAM, "ends when the copy has") \
	X(cuMemcpyPeer, GI_WAITS_STREAM, \
	  "behind the work of both contexts; only ours is looked at") \
	/* within the device: they wait for what is queued before them on some drivers */ \
	X(cuMemcpyDtoD_v2, GI_WAITS_STREAM | GI_UNLESS_FREE, "returns when it is queued, mostly") \
	X(cuMemcpyDtoA_v2, GI_WAITS_STREAM | GI_UNLESS_FREE, "as cuMemcpyDtoD") \
	X(cuMemcpyAtoD_v2, GI_WAITS_STREAM | GI_UNLESS_FREE, "as cuMemcpyDtoD") \
	X(cuMemcpyAtoA_v2, GI_WAITS_STREAM | GI_UNLESS_FREE, "as cuMemcpyDtoD") \
	X(cuMemsetD8_v2, GI_WAITS_STREAM | GI_UNLESS_FREE, "waits if the memory is the host's") \
	X(cuMemsetD16_v2, GI_WAITS_STREAM | GI_UNLESS_FREE, "as cuMemsetD8") \
	X(cuMemsetD32_v2, GI_WAITS_STREAM | GI_UNLESS_FREE, "as cuMemsetD8") \
	X(cuMemsetD2D8_v2, GI_WAITS_STREAM | GI_UNLESS_FREE, "as cuMemsetD8") \
	X(cuMemsetD2D16_v2, GI_WAITS_STREAM | GI_UNLESS_FREE, "as cuMemsetD8") \
	X(cuMemsetD2D32_v2, GI_WAITS_STREAM | GI_UNLESS_FREE, "as cuMemsetD8") \
	/* if they copy pageable memory, which they stage or wait for; entry/memory.c looks */ \
	X(cuMemcpyAsync, GI_WAITS_STREAM, "waits for the stream, with pageable memory") \
	X(cuMemcpyHtoDAsync_v2, GI_WAITS_STREAM, "the same") \
	X(cuMemcpyDtoHAsync_v2, GI_WAITS_STREAM, "the same") \
	X(cuMemcpy2DAsync_v2, GI_WAITS_STREAM, "the same") \
	X(cuMemcpy3DAsync_v2, GI_WAITS_STREAM, "the same") \
	X(cuMemcpyHtoAAsync_v2, GI_WAITS_STREAM, "the same") \
	X(cuMemcpyAtoHAsync_v2, GI_WAITS_STREAM, "the same")

enum {
#define X(symbol, how, why) GI_WAITS_##symbol = (how),
	GI_WAITS_TABLE(X)
#undef X
};

/*
 * The driver's @symbol##@own, managed as the table says of @symbol. @stream: what the call is
 * ordered by
 */
#define GI_CALL_ON(stream, symbol, own, ...) ({ \
	struct gi_waiting waiting_; \
	CUresult rc_; \
	gi_wait_begin(&waiting_, GI_WAITS_##symbol, stream); \
	rc_ = gi_real.symbol##own(__VA_ARGS__); \
	gi_wait_end(&waiting_); \
	rc_; \
})
#define GI_CALL(symbol, ...) GI_CALL_ON(NULL, symbol, , __VA_ARGS__)

#endif /* GI_WAITS_H */
