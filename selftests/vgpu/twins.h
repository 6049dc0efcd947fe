/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Originals against their rewritten twins: the same launch, once block by block in a shuffled
 * order, once by workers on simulated SMs that are interleaved in small slices while the window
 * changes, shrinks to nothing, moves and grows, and wings replace those who left. Memory, counts
 * and gates must come out the same. Everything follows from the seed.
 *
 * One launch at a time: the state of the run is global, as the interpreter's hooks are.
 */
#ifndef VGPU_TWINS_H
#define VGPU_TWINS_H

#include "exec.h"
#include "rewriter/gsr.h"
#include "test-rewrite.h"

/* A PTX module: its kernels, and their twins */
struct twins {
	struct gsr_rewrite rw;
	struct vgpu_module *orig, *twin;
	bool modes;		/* the twins know all of GSR_LAUNCH_BY_* and static ranges */
};

struct twins_stats {
	unsigned long long runs, workers, left, wings, changes, late, resumable, suspended,
		by_index, ranges;
};
extern struct twins_stats twins_stats;

extern uint64_t twins_slices_max;	/* of a run of a twin: beyond, it hangs */
/* thread-instructions of an original: beyond, it does not end */
extern uint64_t twins_steps_max;

/*
 * The interpreter's hooks: simulated time, bounds of memory, the letter of PTX. Once, before
 * anything else.
 */
void twins_init(void);

/*
 * Only the originals; twins_rewrite() adds the twins. False: @why says what is wrong. twins_close()
 * in any case.
 */
bool twins_load(struct twins *f, const char *text, size_t size, char *why, size_t why_size);
bool twins_rewrite(struct twins *f, const char *text, size_t size, const struct gsr_options *o,
		   char *why, size_t why_size);
/*
 * To see that broken twins are caught: blank out the @n-th barrier, reduction or relaxed store of
 * f->rw.ptx; the line comes back. False: it has fewer.
 */
bool twins_drop(struct twins *f, unsigned int n, char *what, size_t size);
/* Again from f->rw.ptx, after it was changed */
bool twins_reload(struct twins *f, char *why, size_t size);
void twins_close(struct twins *f);

/* What the rewriter says of a kernel; NULL there is none of that name */
const struct gsr_kernel *twins_described(const struct twins *f, const char *kernel);

/*
 * The original by itself: @n runs with blocks and threads in other orders must leave the same
 * memory, or the launch is no fair one. @done: thread-instructions of the first run.
 */
bool twins_fair(const struct twins *f, const struct test_launch *t, uint64_t seed, unsigned int n,
		uint64_t *done, char *why, size_t size);

/* One launch, original and twin, one seed */
bool twins_compare(const struct twins *f, const struct test_launch *t, uint64_t seed, char *why,
		   size_t size);

#endif /* VGPU_TWINS_H */
