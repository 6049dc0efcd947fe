/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How many workers an SM gets. As many as fit is best for most kernels, but workers that never leave fill an SM better than
 * blocks that come and go, and where all of them together need more of a cache than there is, fewer are faster. Nothing but time tells: so for
 * each shape of a launch the next smaller number has its turns beside the best one so far, and takes its place if it is
 * faster.
 */
#ifndef GI_TUNE_H
#define GI_TUNE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Zero at first. What launches read is atomic, the rest is of whoever tells the times */
struct gi_tune {
	_Atomic uint32_t pick;		/* best, trial << 8; 0 not begun, no trial: settled */
	uint32_t pairs, wins, settled;
	uint64_t sum[2], waiting[2][2];	/* of the best's and the trial's times; those that have no partner yet */
	uint8_t n_waiting[2];
};

/* Workers an SM for launch number @launch of the shape, at most @full. @alone: nobody disturbs what is measured. Any thread. */
unsigned int gi_tune_workers(const struct gi_tune *t, unsigned int full, uint32_t launch, bool alone);

/* A launch with @workers an SM had the device for itself and took @ns. One thread at a time. */
void gi_tune_took(struct gi_tune *t, unsigned int full, unsigned int workers, uint64_t ns);

/* Is there a trial, or may there be one? */
bool gi_tune_tries(const struct gi_tune *t);

/*
 * The share of an SM's shared memory to ask for (CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT), so that the L1 cache has what @workers
 * blocks leave; 0: leave it to the driver, who goes by how many fit. @shared: bytes of a block, @reserved: what the system takes with
 * each, @sm: bytes an SM has at most.
 */
unsigned int gi_tune_carveout(unsigned int full, unsigned int workers, unsigned int shared, unsigned int reserved, unsigned int sm);

#endif /* GI_TUNE_H */
