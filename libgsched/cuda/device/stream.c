// SPDX-License-Identifier: LGPL-2.1-or-later
/* Streams: which run in order, which the program captures, and what priority new ones get. */
#include <sys/random.h>
#include "device/device.h"

_Atomic int gi_captures;
_Atomic bool gi_green;

/*
 * A number for the arbiter: equal for launches that run in order, and no address of ours for others to read. Addresses of
 * different things differ, and multiplying by an odd number keeps them so.
 */
uint64_t gi_stream_id(const struct gi_ctx *cx, CUstream stream)
{
	static __thread char mine;
	static _Atomic uint64_t secret;
	uint64_t id = (uintptr_t)stream, odd = atomic_load_explicit(&secret, memory_order_relaxed), none = 0;

	if (!odd) {
		if (getrandom(&odd, sizeof(odd), GRND_NONBLOCK) != sizeof(odd))
			odd = gi_now() * 0x9e3779b97f4a7c15ull;
		if (!atomic_compare_exchange_strong(&secret, &none, odd | 1))
			odd = none;
		odd |= 1;
	}
	if (!stream || stream == CU_STREAM_LEGACY)
		id = (uintptr_t)cx;
	else if (stream == CU_STREAM_PER_THREAD)
		id = (uintptr_t)&mine + ((uint64_t)(uintptr_t)cx << 32);
	return id * odd;
}

/* Those of a more important group take the greatest priority, if the program has no wish of its own */
bool gi_stream_preferred(int *priority)
{
	struct gi_ctx *cx = gi_current();

	if (!cx || !cx->client || atomic_load(&cx->client->gone) || !gi_load(&cx->client->arb->header.priority))
		return false;
	*priority = cx->greatest;
	return true;
}
