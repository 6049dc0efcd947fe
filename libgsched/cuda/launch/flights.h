/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Launches between two events each, for their time on the GPU: a few of one context at a time, which
 * end in the order in which they began. The owner has a lock, and keeps what a flight is about in an
 * array of its own, by the flight's number.
 */
#ifndef GI_FLIGHTS_H
#define GI_FLIGHTS_H

#include "device/device.h"

#define GI_FLIGHTS	8	/* that may be on the GPU */

struct gi_flights {
	struct gi_ctx *cx;		/* whose events these are */
	CUevent begin[GI_FLIGHTS], end[GI_FLIGHTS];
	unsigned int first, flying;	/* a ring: those on the GPU */
};

/*
 * The first event, in front of a launch. The flight's number; -1: none is free. The calling thread's
 * capture mode is relaxed, here and below.
 */
int gi_flight_begin(struct gi_flights *f, struct gi_ctx *cx, CUstream stream);

/* The second one, behind it; without, the flight is none. */
bool gi_flight_end(struct gi_flights *f, CUstream stream);

/* The oldest one if it has ended, or -1. *@ns: how long it took, 0 if that is not known */
int gi_flight_over(const struct gi_flights *f, uint64_t *ns);
void gi_flight_forget(struct gi_flights *f);	/* the oldest one */

/* All of them, and the events. Their context is not destroyed yet. */
void gi_flights_drop(struct gi_flights *f);

#endif /* GI_FLIGHTS_H */
