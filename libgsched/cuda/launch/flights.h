/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Flights: launches bracketed by two events, for their time on the GPU. A few launches of one
 * context may be in flight, and they are reaped in the order in which they began. The caller
 * provides the lock, and keeps its own data about each flight in an array indexed by the flight's
 * number.
 */
#ifndef GI_FLIGHTS_H
#define GI_FLIGHTS_H

#include "device/device.h"

#define GI_FLIGHTS	8	/* most flights at a time */

struct gi_flights {
	struct gi_ctx *cx;		/* the context of the events */
	CUevent begin[GI_FLIGHTS], end[GI_FLIGHTS];
	unsigned int first, flying;	/* ring of those in flight: the oldest, and how many */
};

/*
 * Records the first event, before the launch. Returns the flight's number, or -1 if none is free.
 * Here and below, the calling thread's capture mode is relaxed.
 */
int gi_flight_begin(struct gi_flights *f, struct gi_ctx *cx, CUstream stream);

/* Records the second event, after the launch. Without this call the flight does not count. */
bool gi_flight_end(struct gi_flights *f, CUstream stream);

/* The oldest flight if it has ended, or -1. *@ns: how long it took, 0 if unknown. */
int gi_flight_poll(const struct gi_flights *f, uint64_t *ns);
void gi_flight_forget(struct gi_flights *f);	/* removes the oldest flight */

/* Forgets all flights and destroys the events, whose context must still exist. */
void gi_flights_drop(struct gi_flights *f);

#endif /* GI_FLIGHTS_H */
