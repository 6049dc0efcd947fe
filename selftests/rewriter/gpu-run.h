/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * In the process that runs one kernel: gpu-memory.c, gpu-run.c (memory stays the same) and
 * gpu-time.c (what it costs)
 */
#ifndef REWRITER_GPU_RUN_H
#define REWRITER_GPU_RUN_H

#include <linux/gsched.h>
#include "gpu.h"

#define PARAMS_MAX	32768
#define GPU_BUFFERS_MAX	(LAUNCH_PARAMS_MAX + 64)

struct gpu_buffer {
	CUdeviceptr at;		/* of the first guard */
	CUtexObject texture;	/* of it, or 0 */
	CUarray array;		/* a surface's, which stands for it, or NULL */
	CUdeviceptr first_dev;	/* a copy of what it held at first, or 0 */
	size_t size;		/* with the guards */
	size_t guard;		/* 0 none */
	bool variable;		/* of the module */
	uint8_t *first, *result, *now;
};

/* By the twin's number */
struct gpu_reference {
	struct gpu_buffer *of;
	CUtexObject object;
	bool surface;
};

struct gpu {
	struct gpu_report *r;
	const struct test_launch *t;
	const struct gpu_options *o;
	struct gpu_pair pair;
	/* of the parameters, then the module's variables */
	struct gpu_buffer buffer[GPU_BUFFERS_MAX];
	unsigned int buffers, sms;
	struct gpu_reference reference[LAUNCH_REFS_MAX];
	unsigned int references;
	CUstream stream, wings, aside;
	CUdeviceptr control, page_dev, stat_dev;
	struct {
		uint64_t window;
		uint8_t pad[120];
		struct gsched_cl_slot stat;
		uint32_t go;	/* the stream waits for it: launch and gate are queued before the
				 * twin starts */
	} *page;
	struct gsr_control *control_copy;	/* pinned */
	struct gsr_save *save_copy;		/* pinned */
	struct gsr_launch arg;
	CUdeviceptr save, ranges;
	size_t save_size;			/* 0: block-tasks are not suspended */
	uint8_t *params;
	void *pointers[LAUNCH_PARAMS_MAX + 2];	/* to each in @params; the twin has two more */
	uint32_t seq;
};

uint64_t gpu_now(void);
void gpu_rest(uint64_t ns);
bool gpu_fails(struct gpu *g, const char *what, CUresult rc);
/* false: it failed, or @deadline passed */
bool gpu_settle(struct gpu *g, CUstream stream, const char *what, uint64_t deadline);
uint64_t gpu_deadline(const struct gpu *g);	/* of a run that begins now */

/* Go out with the reason if the driver says no */
#define GPU_TRY(call) \
	do { \
		if (gpu_fails(g, #call, call)) \
			return false; \
	} while (0)

static inline uint32_t gpu_load32(const uint32_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static inline uint64_t gpu_whole(const struct gpu *g)
{
	return g->sms * GSCHED_CAPSM;
}

static inline void gpu_set_window(struct gpu *g, uint64_t window)
{
	__atomic_store_n(&g->page->window, window, __ATOMIC_RELEASE);
}

/* gpu-memory.c */
bool gpu_buffers_new(struct gpu *g);
bool gpu_buffers_reset(struct gpu *g);
bool gpu_buffers_read(struct gpu *g, bool reference);
bool gpu_buffers_changed(struct gpu *g);	/* by the original */
bool gpu_buffers_same(struct gpu *g);
bool gpu_buffers_inout(const struct gpu *g);
bool gpu_buffers_release(struct gpu *g);
void gpu_buffers_free(struct gpu *g);
CUresult gpu_launch(struct gpu *g, CUfunction f, const unsigned int grid[3], CUstream stream);

/* gpu-run.c: the launch parameters that the interposer chooses */
void gpu_defaults(struct gpu *g);

/* gpu-time.c */
bool gpu_time(struct gpu *g);

/* gpu-reference.c */
bool gpu_references_new(struct gpu *g);		/* the buffers are there */
bool gpu_references_release(struct gpu *g);
bool gpu_references_pack(struct gpu *g, unsigned int parameter);

#endif /* REWRITER_GPU_RUN_H */
