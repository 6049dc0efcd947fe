/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Applies the time slices that a client's arbiter asks for. */
#ifndef GSCHED_FOLLOW_H
#define GSCHED_FOLLOW_H

#include <gsched.h>
#include <linux/gsched.h>
#include "libgsched/slice.h"

/* What was asked last, and the number of channel groups then; zero-initialised */
struct gsched_slice_asked {
	uint32_t us;
	bool block_end;
	unsigned int groups;
};

/*
 * Sets slices of @us on the device, with the preemption mode for @block_end (slice.h), unless they
 * are in force already. The result goes into the client's page, to the arbiter (@g NULL: there is
 * none any more) and to @now. false: nothing had to be done.
 */
bool gsched_slice_follow(struct gsched_slice_asked *last, const uint8_t uuid[16], uint32_t us,
			 bool block_end, struct gsched *g, struct gsched_cl_header *h,
			 struct gsched_slice *now);

#endif /* GSCHED_FOLLOW_H */
