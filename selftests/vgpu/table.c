// SPDX-License-Identifier: LGPL-2.1-or-later
/* Driver API: cuGetProcAddress, and what is asked of a library rather than of a device */
#include <string.h>
#include "vgpu.h"
#include "unsimulated.h"

struct symbol {
	const char *name;	/* as callers ask for it */
	const char *symbol;
	int since;
	void *plain, *per_thread;
};

#define TWIN_PLAIN(symbol) symbol
#define TWIN_PTSZ(symbol) symbol##_ptsz
#define TWIN_PTDS(symbol) symbol##_ptds

/* Versions of one name stand in rising order */
static const struct symbol simulated[] = {
#define CUFN(name, suffix, since, stream, params) \
	{ #name, #name #suffix, since, (void *)name##suffix, (void *)TWIN_##stream(name##suffix) },
#include "libgsched/cuda/base/cudafuncs.h"
#undef CUFN
	/* for tests, which cannot name the library */
	{ "vgpuDependents", "vgpuDependents", 0, (void *)vgpuDependents, (void *)vgpuDependents },
	/* a name that means something else one day */
	{ "cuCtxSetLimit", "cuCtxSetLimit_v9", 90000, (void *)cuDriverGetVersion,
	  (void *)cuDriverGetVersion },
};

#define X(name) CUresult name(void);
VG_UNSIMULATED(X)
#undef X
static const struct symbol unsimulated[] = {
#define X(name) { #name, #name, 0, (void *)name, (void *)name },
	VG_UNSIMULATED(X)
#undef X
};

static const struct symbol *find(const char *name, int version, bool *known)
{
	const struct symbol *best = NULL;

	*known = false;
	for (size_t i = 0; i < sizeof(simulated) / sizeof(simulated[0]); i++) {
		const struct symbol *s = &simulated[i];

		if (!strcmp(s->name, name)) {
			*known = true;
			if (s->since <= version)
				best = s;
		/* "cuMemAlloc_v2": that one, whatever the version */
		} else if (!strcmp(s->symbol, name)) {
			*known = true;
			best = s;
		}
	}
	for (size_t i = 0; !best && i < sizeof(unsimulated) / sizeof(unsimulated[0]); i++)
		if (!strcmp(unsimulated[i].name, name))
			best = &unsimulated[i];
	return best;
}

/* "cuMemcpy_ptds": the symbol of the per-thread default stream, asked for by its own name */
static bool strip_twin(const char *symbol, char *name, size_t size)
{
	size_t n = strlen(symbol);

	if (n < 6 || n >= size || (strcmp(symbol + n - 5, "_ptsz") &&
				   strcmp(symbol + n - 5, "_ptds")))
		return false;
	memcpy(name, symbol, n - 5);
	name[n - 5] = '\0';
	return true;
}

static CUresult lookup(const char *name, void **pfn, int version, cuuint64_t flags,
		       CUdriverProcAddressQueryResult *status)
{
	bool own = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, known;
	const struct symbol *s;
	char base[128];

	if (status)
		*status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	if (!name || !pfn || (flags & ~3ull))
		return CUDA_ERROR_INVALID_VALUE;
	*pfn = NULL;
	s = find(name, version, &known);
	if (!s && !known && strip_twin(name, base, sizeof(base))) {
		s = find(base, version, &known);
		own = true;
		if (s && s->per_thread == s->plain)
			s = NULL;
	}
	if (!s) {
		if (known && status)
			*status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
		return CUDA_ERROR_NOT_FOUND;
	}
	if (status)
		*status = CU_GET_PROC_ADDRESS_SUCCESS;
	*pfn = own ? s->per_thread : s->plain;
	return CUDA_SUCCESS;
}

CUDADRV_API CUresult cuGetProcAddress(const char *name, void **pfn, int version, cuuint64_t flags)
{
	return lookup(name, pfn, version, flags, NULL);
}

CUDADRV_API CUresult cuGetProcAddress_v2(const char *name, void **pfn, int version,
					 cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
	return lookup(name, pfn, version, flags, status);
}

/* What NVIDIA's runtime asks for is undocumented: a stand-in has none of it */
CUDADRV_API CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
	if (!table || !id)
		return CUDA_ERROR_INVALID_VALUE;
	*table = NULL;
	return CUDA_ERROR_NOT_FOUND;
}

CUDADRV_API CUresult cuProfilerStart(void)
{
	return CUDA_SUCCESS;
}

CUDADRV_API CUresult cuProfilerStop(void)
{
	return CUDA_SUCCESS;
}
