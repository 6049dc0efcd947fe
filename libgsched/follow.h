/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A client's time slices are as its arbiter asks. */
#ifndef GSCHED_FOLLOW_H
#define GSCHED_FOLLOW_H

#include <gsched.h>
#include <linux/gsched.h>
#include "libgsched/slice.h"

/* What was asked last, and the channel groups that had it; zero at first */
struct gsched_slice_asked {
	uint32_t us;
	bool block_end;
	unsigned int groups;
};

/*
 * Set slices of @us on the device, left as @block_end says (slice.h), unless that is what they are;
 * what came of it goes into the client's page and to the arbiter (@g NULL: there is none any more) and
 * into @now. false: nothing had to be done.
 */
bool gsched_slice_follow(struct gsched_slice_asked *last, const uint8_t uuid[16], uint32_t us,
			 bool block_end, struct gsched *g, struct gsched_cl_header *h,
			 struct gsched_slice *now);

#endif /* GSCHED_FOLLOW_H */
