// SPDX-License-Identifier: LGPL-2.1-or-later
/* cuInit() and cuGetProcAddress(), which returns the driver's function, unless it is managed. */
#include <string.h>
#include "process/process.h"

#define KNOWN_VERSION	13050	/* of CUDA: entry/managed.h has what is new up to it */

struct entry {
	const char *name, *symbol;
	int since;
	void *plain, *ptsz;		/* ours */
	void *const *real;		/* the driver's plain one */
};

#define REAL(symbol)	((void *const *)&gi_real.symbol)
#define ENTRY_PLAIN(name, symbol, since) { #name, #symbol, since, symbol, symbol, REAL(symbol) },
#define ENTRY_PTDS(name, symbol, since) \
	{ #name, #symbol, since, symbol, symbol##_ptds, REAL(symbol) },
#define ENTRY_PTSZ(name, symbol, since) \
	{ #name, #symbol, since, symbol, symbol##_ptsz, REAL(symbol) },
static const struct entry entries[] = {
#define MANAGED(name, suffix, since, stream) ENTRY_##stream(name, name##suffix, since)
#include "entry/managed.h"
#undef MANAGED
	/* from this version on, the name means another function */
	ENTRY_PLAIN(cuGraphInstantiate, cuGraphInstantiateWithFlags, 12000)
};

/* Whether @name is the entry's symbol; *@own: that of the per-thread default stream. */
static bool is_symbol(const struct entry *e, const char *name, bool *own)
{
	size_t n = strlen(e->symbol);

	if (strncmp(name, e->symbol, n))
		return false;
	*own = e->ptsz != e->plain && (!strcmp(name + n, "_ptsz") || !strcmp(name + n, "_ptds"));
	return *own || !name[n];
}

/*
 * By its name without a version, the latest up to @version; or by its symbol, "cuMemFree_v2" or
 * "cuLaunchKernel_ptsz".
 */
static void *find_managed(const char *name, int version, cuuint64_t flags)
{
	bool own = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, symbols_own;
	const struct entry *best = NULL;
	unsigned int i;

	for (i = 0; i < sizeof(entries) / sizeof(*entries); i++) {
		if (gi_driver_lacks(*entries[i].real))
			continue;
		if (entries[i].since <= version && !strcmp(entries[i].name, name)) {
			best = &entries[i];
		} else if (!best && is_symbol(&entries[i], name, &symbols_own)) {
			best = &entries[i];
			own = own || symbols_own;
		}
	}
	if (!best)
		return NULL;
	return own ? best->ptsz : best->plain;
}

/*
 * A name may mean another function from a version on that is not known here, perhaps with other
 * parameters: then that of the driver is @fn, which it returned for @version.
 */
static bool is_newer(const char *name, void *fn, int version, cuuint64_t flags)
{
	void *known = NULL;

	return version > KNOWN_VERSION &&
	       (gi_real.cuGetProcAddress(name, &known, KNOWN_VERSION, flags) || known != fn);
}

/* Replaces what the driver returned, if it is managed. */
static void replace_managed(const char *name, void **fn, int version, cuuint64_t flags)
{
	void *own;

	if (!name || !fn || !*fn || is_newer(name, *fn, version, flags))
		return;
	own = find_managed(name, version, flags);
	if (own)
		*fn = own;
}

CUresult cuGetProcAddress(const char *name, void **fn, int version, cuuint64_t flags)
{
	CUresult rc;

	GI_ENTER();
	rc = gi_real.cuGetProcAddress(name, fn, version, flags);
	if (!rc)
		replace_managed(name, fn, version, flags);
	return rc;
}

CUresult cuGetProcAddress_v2(const char *name, void **fn, int version, cuuint64_t flags,
			     CUdriverProcAddressQueryResult *status)
{
	CUresult rc;

	GI_ENTER();
	rc = gi_real.cuGetProcAddress_v2(name, fn, version, flags, status);
	if (!rc)
		replace_managed(name, fn, version, flags);
	return rc;
}

CUresult cuInit(unsigned int flags)
{
	if (!gi_begin())
		return CUDA_ERROR_NO_DEVICE;
	gi_ask_for_queues();
	return gi_real.cuInit(flags);
}
