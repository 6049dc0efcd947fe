/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The driver's calls that wait for the GPU while holding the context's lock: X(symbol, what they
 * wait for, what was measured). task/task.h explains the kinds. Measured on an H200, driver 580
 * (selftests/programs/waits.c, docs/measurements/2026-11-23-waits-h200.md; pools and addresses on
 * an H100, 2026-11-26-calls-h100.md); "as": assumed, not measured separately. cuMemFree is in
 * entry/memory.c: it waits for the memory's context, whichever is current. Some calls are not
 * listed because they do not wait: allocation and registration of memory, those of memory pools and
 * of addresses apart from memory, cuModuleGetFunction, cuFuncLoad and the first launch of a
 * module's function, cuGraphInstantiate, cuGraphExecDestroy, cuStreamDestroy, cuEventDestroy,
 * copies and sets within the device. Others are not, because they hold no lock: synchronisation,
 * asynchronous copies of pageable memory to the host. Calls that end a context drain its tasks
 * first (process/ending.c). The variants with 32-bit pointers are not managed.
 */
#ifndef GI_WAITS_H
#define GI_WAITS_H

#include "process/process.h"

#define GI_WAITS_TABLE(X) \
	/* memory */ \
	X(cuMemFreeHost, GI_WAITS_ALL, "for all contexts") \
	X(cuMemHostUnregister, GI_WAITS_ALL, "for all contexts") \
	X(cuArrayDestroy, GI_WAITS_ALL, "for its context, which need not be the current one") \
	X(cuMipmappedArrayDestroy, GI_WAITS_ALL, "as cuArrayDestroy") \
	/* code; a library is loaded into a context when something in it is first used there */ \
	X(cuModuleLoad, GI_WAITS_DEVICE, "for the context") \
	X(cuModuleLoadData, GI_WAITS_DEVICE, "as cuModuleLoad") \
	X(cuModuleLoadDataEx, GI_WAITS_DEVICE, "as cuModuleLoad") \
	X(cuModuleLoadFatBinary, GI_WAITS_DEVICE, "as cuModuleLoad") \
	X(cuModuleUnload, GI_WAITS_DEVICE, "for the context; launches go on") \
	X(cuLibraryUnload, GI_WAITS_ALL, "as cuModuleUnload, where it is loaded") \
	X(cuLibraryGetModule, GI_WAITS_DEVICE, "loads") \
	X(cuLibraryGetGlobal, GI_WAITS_DEVICE, "as cuLibraryGetModule") \
	X(cuLibraryGetManaged, GI_WAITS_DEVICE, "as cuLibraryGetModule") \
	X(cuKernelGetFunction, GI_WAITS_DEVICE, "loads; so does a kernel's first launch, \
	  before which we call it") \
	/* itself it does not wait */ \
	X(cuCtxWaitEvent, GI_WAITS_ALL, "wings that are launched after it wait for the event") \
	X(cuCtxSetLimit, GI_WAITS_DEVICE, "for the context, for the stack; not for the heap") \
	/* copies to and from the host, copies of arrays, and copies in two and three dimensions, \
		which may be either: measured for cuMemcpyHtoD and DtoH, of all sizes, pageable or \
		pinned */ \
	X(cuMemcpy, GI_WAITS_STREAM, "as cuMemcpyDtoH") \
	X(cuMemcpyHtoD_v2, GI_WAITS_STREAM, "for what is before it in the legacy stream's order") \
	X(cuMemcpyDtoH_v2, GI_WAITS_STREAM, "the same") \
	X(cuMemcpy2D_v2, GI_WAITS_STREAM, "as cuMemcpyDtoH") \
	X(cuMemcpy2DUnaligned_v2, GI_WAITS_STREAM, "as cuMemcpyDtoH") \
	X(cuMemcpy3D_v2, GI_WAITS_STREAM, "as cuMemcpyDtoH") \
	X(cuMemcpyHtoA_v2, GI_WAITS_STREAM, "as cuMemcpyHtoD") \
	X(cuMemcpyAtoH_v2, GI_WAITS_STREAM, "as cuMemcpyDtoH") \
	X(cuMemcpyPeer, GI_WAITS_ALL, "as cuMemcpyDtoH, in both contexts") \
	X(cuMemcpy3DPeer, GI_WAITS_ALL, "as cuMemcpyPeer") \
	/* sets of host memory; sets of device memory return when they are queued */ \
	X(cuMemsetD8_v2, GI_WAITS_STREAM, "the same") \
	X(cuMemsetD16_v2, GI_WAITS_STREAM, "as cuMemsetD8") \
	X(cuMemsetD32_v2, GI_WAITS_STREAM, "as cuMemsetD8") \
	X(cuMemsetD2D8_v2, GI_WAITS_STREAM, "as cuMemsetD8") \
	X(cuMemsetD2D16_v2, GI_WAITS_STREAM, "as cuMemsetD8") \
	X(cuMemsetD2D32_v2, GI_WAITS_STREAM, "as cuMemsetD8") \
	/* of pageable memory: these wait without the lock, but are kept apart from tasks like \
		synchronous copies */ \
	X(cuMemcpyAsync, GI_WAITS_STREAM, "as cuMemcpyDtoHAsync") \
	X(cuMemcpyWithAttributesAsync, GI_WAITS_STREAM, "as cuMemcpyDtoHAsync") \
	X(cuMemcpyHtoDAsync_v2, GI_WAITS_STREAM, "as cuMemcpyDtoHAsync") \
	X(cuMemcpyDtoHAsync_v2, GI_WAITS_STREAM, "for the stream, if pageable; launches go on") \
	X(cuMemcpy2DAsync_v2, GI_WAITS_STREAM, "as cuMemcpyDtoHAsync") \
	X(cuMemcpy3DAsync_v2, GI_WAITS_STREAM, "as cuMemcpyDtoHAsync") \
	X(cuMemcpy3DPeerAsync, GI_WAITS_STREAM, "as cuMemcpyDtoHAsync") \
	X(cuMemcpyBatchAsync, GI_WAITS_STREAM, "as cuMemcpyDtoHAsync") \
	X(cuMemcpyBatchAsync_v2, GI_WAITS_STREAM, "as cuMemcpyDtoHAsync") \
	X(cuMemcpy3DWithAttributesAsync, GI_WAITS_STREAM, "as cuMemcpyDtoHAsync") \
	X(cuMemcpy3DBatchAsync, GI_WAITS_STREAM, "as cuMemcpyDtoHAsync") \
	X(cuMemcpy3DBatchAsync_v2, GI_WAITS_STREAM, "as cuMemcpyDtoHAsync") \
	X(cuMemcpyHtoAAsync_v2, GI_WAITS_STREAM, "as cuMemcpyDtoHAsync") \
	X(cuMemcpyAtoHAsync_v2, GI_WAITS_STREAM, "as cuMemcpyDtoHAsync")

enum {
#define X(symbol, how, why) GI_WAITS_##symbol = (how),
	GI_WAITS_TABLE(X)
#undef X
};

/*
 * Calls the driver's @symbol##@own, managed as the table says for @symbol. @stream: the stream that
 * orders the call.
 */
#define GI_CALL_ON(stream, symbol, own, ...) ({ \
	struct gi_waiting waiting_; \
	CUresult rc_; \
	gi_wait_begin(&waiting_, (enum gi_waits)GI_WAITS_##symbol, stream); \
	rc_ = gi_real.symbol##own(__VA_ARGS__); \
	gi_wait_end(&waiting_); \
	rc_; \
})
#define GI_CALL(symbol, ...) GI_CALL_ON(NULL, symbol, , __VA_ARGS__)

#endif /* GI_WAITS_H */
