/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The real driver: found once, opened by absolute path, its functions in gi_real by symbol. If the
 * driver lacks a function, the pointer is a stub that returns CUDA_ERROR_NOT_FOUND, so no pointer
 * is ever NULL.
 */
#ifndef GI_DRIVER_H
#define GI_DRIVER_H

#define CUDADRV_NO_ALIASES
#define CUDADRV_API __attribute__((visibility("default")))
#include "cudadrv.h"
#include <stdbool.h>

struct CUmemDecompressParams_st;
struct CUDA_FABRIC_COPY_BATCH_OP_st;

/* Managed functions that are not in cudafuncs.h because no program uses them */
#define GI_MORE_FUNCTIONS(X) \
	X(cuMemBatchDecompressAsync, , 12060, PTSZ, (struct CUmemDecompressParams_st *, size_t, \
						     unsigned int, size_t *, CUstream)) \
	X(cuMemDiscardBatchAsync, , 13000, PTSZ, (CUdeviceptr *, size_t *, size_t, \
						  unsigned long long, CUstream)) \
	X(cuMemDiscardAndPrefetchBatchAsync, , 13000, PTSZ, (CUdeviceptr *, size_t *, size_t, \
		CUmemLocation *, size_t *, size_t, unsigned long long, CUstream)) \
	X(cuLaunchHostFunc, _v2, 13010, PTSZ, (CUstream, CUhostFn, void *, unsigned int)) \
	X(cuMemcpyWithAttributesAsync, , 13020, PTSZ, (CUdeviceptr, CUdeviceptr, size_t, \
		CUmemcpyAttributes *, CUstream)) \
	X(cuMemcpy3DWithAttributesAsync, , 13020, PTSZ, (CUDA_MEMCPY3D_BATCH_OP *, \
		unsigned long long, CUstream)) \
	X(cuFabricCpyBatchAsync, , 13050, PTSZ, (size_t, struct CUDA_FABRIC_COPY_BATCH_OP_st *, \
		unsigned long long, CUstream)) \
	X(cuStreamBeginRecaptureToGraph, , 13030, PTSZ, (CUstream, CUstreamCaptureMode, CUgraph, \
		CUgraphRecaptureCallback, void *))

#define GI_FN_PLAIN(symbol, params)
#define GI_FN_PTSZ(symbol, params) CUresult (*symbol##_ptsz) params;
#define GI_FN_PTDS(symbol, params) CUresult (*symbol##_ptds) params;
#define CUFN(name, suffix, since, stream, params) CUresult (*name##suffix) params; \
	GI_FN_##stream(name##suffix, params)
struct gi_real {
#include "cudafuncs.h"
	GI_MORE_FUNCTIONS(CUFN)
};
#undef CUFN
#undef GI_FN_PLAIN
#undef GI_FN_PTSZ
#undef GI_FN_PTDS

#define GI_FN_PLAIN(symbol, params)
#define GI_FN_PTSZ(symbol, params) CUDADRV_API CUresult symbol##_ptsz params;
#define GI_DECLARE(name, suffix, since, stream, params) \
	CUDADRV_API CUresult name##suffix params; GI_FN_##stream(name##suffix, params)
GI_MORE_FUNCTIONS(GI_DECLARE)
#undef GI_DECLARE
#undef GI_FN_PLAIN
#undef GI_FN_PTSZ

extern struct gi_real gi_real;

/* Opens the driver unless it is open; false: there is none. Any thread. */
bool gi_driver(void);
/* @fn is the stub of a function that the driver lacks. */
bool gi_driver_lacks(const void *fn);
/* The driver's function @name, or the stub if it lacks it; NULL: there is no driver. */
void *gi_driver_symbol(const char *name);

/* Whether @path is the driver's file, by whatever name. Does not open the driver. */
bool gi_driver_is(const char *path);

/* The C library's dlopen() and dlmopen() */
typedef void *gi_dlopen_fn(const char *name, int flags);
typedef void *gi_dlmopen_fn(long space, const char *name, int flags);
gi_dlopen_fn *gi_dlopen_real(void);
gi_dlmopen_fn *gi_dlmopen_real(void);

#endif /* GI_DRIVER_H */
