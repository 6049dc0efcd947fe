// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The driver's calls that enqueue something other than kernels which reads or writes the program's
 * data. They must not come between the calls of another thread's task (device/stream.c). Copies
 * that may also wait are in entry/memory.c.
 */
#include "entry/entry.h"

#define SHARED(symbol, params, args) \
	CUresult symbol params \
	{ \
		struct gi_stream_guard guard; \
		CUresult rc; \
\
		GI_ENTER(); \
		gi_stay_near(); \
		guard = gi_stream_lock_shared(stream); \
		rc = gi_real.symbol args; \
		gi_stream_unlock_shared(&guard); \
		return rc; \
	} \
\
	CUresult symbol##_ptsz params \
	{ \
		stream = per_thread(stream); \
		return symbol args; \
	}

SHARED(cuMemcpyPeerAsync, (CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t n,
       CUstream stream),
       (dst, to, src, from, n, stream))
SHARED(cuMemcpyDtoDAsync_v2, (CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream stream),
       (dst, src, n, stream))
SHARED(cuMemBatchDecompressAsync, (struct CUmemDecompressParams_st *params, size_t n,
       unsigned int flags, size_t *failed, CUstream stream),
       (params, n, flags, failed, stream))
SHARED(cuMemDiscardBatchAsync, (CUdeviceptr *at, size_t *sizes, size_t n,
       unsigned long long flags, CUstream stream),
       (at, sizes, n, flags, stream))
SHARED(cuMemDiscardAndPrefetchBatchAsync, (CUdeviceptr *at, size_t *sizes, size_t n,
       CUmemLocation *to, size_t *to_from, size_t n_to, unsigned long long flags, CUstream stream),
       (at, sizes, n, to, to_from, n_to, flags, stream))
SHARED(cuMemsetD8Async, (CUdeviceptr dst, unsigned char value, size_t n, CUstream stream),
       (dst, value, n, stream))
SHARED(cuMemsetD16Async, (CUdeviceptr dst, unsigned short value, size_t n, CUstream stream),
       (dst, value, n, stream))
SHARED(cuMemsetD32Async, (CUdeviceptr dst, unsigned int value, size_t n, CUstream stream),
       (dst, value, n, stream))
SHARED(cuMemsetD2D8Async, (CUdeviceptr dst, size_t pitch, unsigned char value, size_t width,
       size_t height, CUstream stream),
       (dst, pitch, value, width, height, stream))
SHARED(cuMemsetD2D16Async, (CUdeviceptr dst, size_t pitch, unsigned short value, size_t width,
       size_t height, CUstream stream),
       (dst, pitch, value, width, height, stream))
SHARED(cuMemsetD2D32Async, (CUdeviceptr dst, size_t pitch, unsigned int value, size_t width,
       size_t height, CUstream stream),
       (dst, pitch, value, width, height, stream))
SHARED(cuFabricCpyBatchAsync, (size_t n, struct CUDA_FABRIC_COPY_BATCH_OP_st *ops,
       unsigned long long flags, CUstream stream),
       (n, ops, flags, stream))
SHARED(cuLaunchHostFunc, (CUstream stream, CUhostFn fn, void *user), (stream, fn, user))
SHARED(cuLaunchHostFunc_v2, (CUstream stream, CUhostFn fn, void *user, unsigned int mode),
       (stream, fn, user, mode))
SHARED(cuStreamAddCallback, (CUstream stream, CUstreamCallback fn, void *user, unsigned int flags),
       (stream, fn, user, flags))
SHARED(cuStreamWriteValue32, (CUstream stream, CUdeviceptr at, cuuint32_t value,
       unsigned int flags),
       (stream, at, value, flags))
SHARED(cuStreamWriteValue32_v2, (CUstream stream, CUdeviceptr at, cuuint32_t value,
       unsigned int flags),
       (stream, at, value, flags))
SHARED(cuStreamWriteValue64, (CUstream stream, CUdeviceptr at, cuuint64_t value,
       unsigned int flags),
       (stream, at, value, flags))
SHARED(cuStreamWriteValue64_v2, (CUstream stream, CUdeviceptr at, cuuint64_t value,
       unsigned int flags),
       (stream, at, value, flags))

/* Some of them may be waits, which take a hardware queue (entry/calls.c). */
static void note_waits(CUstream stream, unsigned int n, const CUstreamBatchMemOpParams *ops)
{
	unsigned int i;

	for (i = 0; ops && i < n; i++)
		if (ops[i].operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
		    ops[i].operation == CU_STREAM_MEM_OP_WAIT_VALUE_64) {
			gi_launch_event_wait(stream);
			return;
		}
}

#define BATCH(symbol) \
	CUresult symbol(CUstream stream, unsigned int n, CUstreamBatchMemOpParams *ops, \
			unsigned int flags) \
	{ \
		struct gi_stream_guard guard; \
		CUresult rc; \
\
		GI_ENTER(); \
		note_waits(stream, n, ops); \
		gi_stay_near(); \
		guard = gi_stream_lock_shared(stream); \
		rc = gi_real.symbol(stream, n, ops, flags); \
		gi_stream_unlock_shared(&guard); \
		return rc; \
	} \
\
	CUresult symbol##_ptsz(CUstream stream, unsigned int n, CUstreamBatchMemOpParams *ops, \
			       unsigned int flags) \
	{ \
		return symbol(per_thread(stream), n, ops, flags); \
	}

BATCH(cuStreamBatchMemOp)
BATCH(cuStreamBatchMemOp_v2)
