// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The driver's calls that put something other than kernels into a stream that reads or writes the
 * program's data: they are not to come between the calls of another thread's task
 * (device/stream.c).
 */
#include "entry/entry.h"

#define SHARED(symbol, params, args) \
	CUresult symbol params \
	{ \
		struct gi_turn turn; \
		CUresult rc; \
\
		GI_ENTER(); \
		turn = gi_stream_share(stream); \
		rc = gi_real.symbol args; \
		gi_stream_unshare(&turn); \
		return rc; \
	} \
\
	CUresult symbol##_ptsz params \
	{ \
		stream = per_thread(stream); \
		return symbol args; \
	}

SHARED(cuMemcpyAsync, (CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream stream),
       (dst, src, n, stream))
SHARED(cuMemcpyPeerAsync, (CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t n,
       CUstream stream),
       (dst, to, src, from, n, stream))
SHARED(cuMemcpyHtoDAsync_v2, (CUdeviceptr dst, const void *src, size_t n, CUstream stream),
       (dst, src, n, stream))
SHARED(cuMemcpyDtoHAsync_v2, (void *dst, CUdeviceptr src, size_t n, CUstream stream),
       (dst, src, n, stream))
SHARED(cuMemcpyDtoDAsync_v2, (CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream stream),
       (dst, src, n, stream))
SHARED(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D *copy, CUstream stream), (copy, stream))
SHARED(cuMemcpy3DAsync_v2, (const CUDA_MEMCPY3D *copy, CUstream stream), (copy, stream))
SHARED(cuMemcpyHtoAAsync_v2, (CUarray dst, size_t at, const void *src, size_t n, CUstream stream),
       (dst, at, src, n, stream))
SHARED(cuMemcpyAtoHAsync_v2, (void *dst, CUarray src, size_t at, size_t n, CUstream stream),
       (dst, src, at, n, stream))
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
SHARED(cuLaunchHostFunc, (CUstream stream, CUhostFn fn, void *user), (stream, fn, user))
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
SHARED(cuStreamBatchMemOp, (CUstream stream, unsigned int n, CUstreamBatchMemOpParams *ops,
       unsigned int flags),
       (stream, n, ops, flags))
SHARED(cuStreamBatchMemOp_v2, (CUstream stream, unsigned int n, CUstreamBatchMemOpParams *ops,
       unsigned int flags),
       (stream, n, ops, flags))
