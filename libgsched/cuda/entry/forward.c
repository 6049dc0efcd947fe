// SPDX-License-Identifier: LGPL-2.1-or-later
/* Calls that are not managed jump into the driver (trampoline.S), which the first call opens. */
#include "base/base.h"

extern void *gi_slots[];
void *gi_bind(unsigned long index) __attribute__((visibility("hidden")));

static const char *const forwarded[] = {
#define FORWARD(name) #name,
#include "entry/symbols.def"
#undef FORWARD
};

static CUresult no_driver(void)
{
	return CUDA_ERROR_NOT_INITIALIZED;
}

/* Called by the trampolines: resolves forwarded symbol @index, and stores it for later calls. */
void *gi_bind(unsigned long index)
{
	void *fn = gi_driver_symbol(forwarded[index]);

	if (!fn)
		return no_driver;
	__atomic_store_n(&gi_slots[index], fn, __ATOMIC_RELEASE);
	return fn;
}
