/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The corpus on a device: what the process that counts (gpu.c) and the one that runs a kernel
 * (gpu-run.c) share
 */
#ifndef REWRITER_GPU_H
#define REWRITER_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "libgsched/cuda/base/cudadrv.h"
#include "rewriter/abi.h"
#include "rewriter/gsr.h"
#include "selftests/vgpu/test-rewrite.h"

#define ANY_LIMIT	(~0u)

struct gpu_options {
	const char *corpus, *kernel, *dump;
	unsigned int rounds, scale, timeout_s, arch;
	uint64_t seed;
	bool full;			/* sizes for a real device */
	bool real;			/* only kernels that have such sizes */
	bool resumable, restart;	/* the latter only with the former */
	const char *tool;		/* of compute-sanitizer: leave out what it is wrong about;
					 * or NULL */
	bool one_launch;		/* at a time: the driver is not asked about a stream while
					 * something runs */
	bool sanitizer;			/* all in one process; nothing on the device waits for what
					 * is queued later */
	uint32_t limit;			/* GSR_LAUNCH_BY_*; ANY_LIMIT: in rounds by chance */
	bool ranges;			/* static ones, where the kernel does with them */
	bool overhead;
	unsigned int pairs, target_ms;	/* of overhead */
	/* what is timed in place of the interposer's choice; 0, -1: that */
	unsigned int fetch_ns;
	int order;
	bool simulated;			/* the device */
	bool tune;			/* the number of workers, before that is measured */
	bool link;			/* compile twins by cuLinkComplete() */
};

/* What the twin costs: original and twin side by side */
struct gpu_timing {
	unsigned int pairs;
	uint64_t blocks;
	float median_ms[2], p99_ms[2];	/* original, twin */
	float overhead, low, high;	/* of the pairs' ratios: median and quartiles, less 1 */
	float drift;			/* second half of the originals against the first */
	float block_us;			/* of a block-task, as the original runs it */
	unsigned int evictions;
	float evict_us, evict_max_us;	/* median and most */
};

/*
 * In memory that both processes map; written by the one that runs, read by the other when that has
 * ended
 */
struct gpu_report {
	uint64_t beats;			/* goes up while there is progress */
	char stage[160];		/* what it is doing: which round, original or twin */
	char why[2048];
	char note[256];
	bool done, good;
	char device[128];		/* of the probe */
	unsigned int arch, sms, driver;
	int regs[2], per_sm[2], local[2];	/* original, twin */
	int workers_per_sm;	/* of per_sm[1], as timed */
	unsigned int cap;		/* the twin was compiled again for so many registers, 0
					 * not */
	unsigned int scale, runs, wings, changes, evicted;
	uint64_t launched, left, twin_ns;
	uint64_t load_ns[2];		/* the driver's, compilation included; the twins are all of
					 * a file's */
	uint64_t rewrite_ns;		/* of the file */
	unsigned int lines;		/* of the file */
	unsigned int resume_points;
	struct gpu_timing timing;
};

/* gpu-module.c */
struct gpu_pair {
	CUfunction original, twin;
	CUmodule module;		/* the original's */
	bool modes;			/* the twin knows all of GSR_LAUNCH_BY_* and static
					 * ranges */
	CUmodule twins, capped;		/* capped: or NULL */
	const struct gsr_kernel *desc;
	struct gsr_rewrite rw;		/* @desc points into it */
	bool scalable;			/* more of the same blocks in z leave the same memory */
};

/*
 * The kernel and its twin, loaded into the current context; the twin compiled again for the
 * original's registers if it would host fewer blocks, as the interposer does. false: @r->why.
 */
bool gpu_load(const char *path, const struct test_launch *t, const struct gpu_options *o,
	      struct gpu_pair *out, struct gpu_report *r);
void gpu_unload(struct gpu_pair *pair);
unsigned int gpu_arch_of(const char *path);	/* of a file's .target; 0: cannot be read */
const char *gpu_error(CUresult rc);

/*
 * gpu-table.c: a line a kernel, and what they make together. false: @path cannot be written (- is
 * the standard output)
 */
struct gpu_row {
	char file[64], kernel[128];
	unsigned int threads, scale;
	struct gpu_report r;
};
bool gpu_table(const char *path, const struct gpu_row *rows, unsigned int n,
	       const struct gpu_report *device, const struct gpu_options *o);
bool gpu_json(const char *path, const struct gpu_row *rows, unsigned int n,
	      const struct gpu_report *device, const struct gpu_options *o);

/*
 * gpu-tools.c: why compute-sanitizer's @tool is not to be run on a kernel of the file @path; NULL:
 * it is
 */
bool gpu_tool_known(const char *tool);
const char *gpu_tool_leaves_out(const char *tool, const char *path, const char *kernel);

/*
 * gpu-run.c: in a process of its own, or with @o->sanitizer one kernel after the other as long as
 * all is well
 */
void gpu_probe(struct gpu_report *r);
void gpu_run(const char *path, const struct test_launch *t, const struct gpu_options *o,
	     struct gpu_report *r);

#endif /* REWRITER_GPU_H */
