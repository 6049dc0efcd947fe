/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tunes the number of workers per SM. As many as fit is best for most kernels. But persistent
 * workers occupy an SM more densely than blocks that come and go, and where together they exceed a
 * cache, fewer are faster. Only measurement shows this: for each shape of a launch, the next
 * smaller number alternates with the best one so far, and replaces it if it is faster.
 */
#ifndef GI_TUNE_H
#define GI_TUNE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Zero-initialised. @pick is read by launches; the rest belongs to the caller of gi_tune_took(). */
struct gi_tune {
	_Atomic uint32_t pick;		/* best, trial << 8; 0: not begun; no trial: settled */
	uint32_t pairs, wins, since_settled;
	/* total times of best and trial; times that have no partner yet */
	uint64_t sum[2], unpaired[2][2];
	uint8_t n_unpaired[2];
};

/* Workers per SM for launch number @launch of the shape, at most @full. Any thread. */
unsigned int gi_tune_workers(const struct gi_tune *t, unsigned int full, uint32_t launch);

/*
 * A launch with @workers per SM took @ns, scaled to all SMs: changes of its windows are accounted
 * for, other disturbances are noise. One thread at a time.
 */
void gi_tune_took(struct gi_tune *t, unsigned int full, unsigned int workers, uint64_t ns);

/* A trial is running or may begin. */
bool gi_tune_tries(const struct gi_tune *t);

/*
 * The shared memory carveout to request (CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT), so
 * that the L1 cache gets what @workers blocks do not use; 0: leave it to the driver, which assumes
 * as many blocks as fit. @shared: bytes per block, @reserved: what the system reserves for each,
 * @sm: most bytes of an SM.
 */
unsigned int gi_tune_carveout(unsigned int full, unsigned int workers, unsigned int shared,
			      unsigned int reserved, unsigned int sm);

/*
 * The same for a kernel that shares the GPU with kernels of other programs. An SM changes its split
 * only when it is idle, and while it has blocks of one kernel it takes no more of another than fit
 * into the split that it has. So all kernels for which 64 KiB are enough ask for that.
 */
unsigned int gi_tune_common_carveout(unsigned int full, unsigned int shared, unsigned int reserved,
				     unsigned int sm);

#endif /* GI_TUNE_H */
