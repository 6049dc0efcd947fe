// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What a twin costs when nobody evicts it: the original and the twin in turns, timed by the
 * device's events, launched and gated as the interposer does it. Each turn's order is the other's
 * reversed, and each pair gives one ratio, so that clocks that drift do not count. Then how long it
 * takes from a window of nothing to the last worker's leaving.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "libgsched/cuda/code/tune.h"
#include "libgsched/cuda/code/tuning.h"
#include "gpu-run.h"

#define WARM_UP		3	/* pairs */
#define LONG_NS		50000	/* shorter ones cannot be caught in their middle */
#define EVICTIONS	9
#define TUNING_MAX	200	/* launches */

struct bench {
	struct gpu *g;
	unsigned int grid[3], workers, per_sm, shared;
	int sm_shared, reserved;
	struct gi_tune tune;
	uint64_t blocks, block_ns;
	bool reset;		/* buffers must hold what they held at first */
	CUevent begin, end;
	float *ms[2], *ratio;
};

static int by_value(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return x < y ? -1 : x > y;
}

/* Of a sorted array */
static float quantile(const float *v, unsigned int n, double q)
{
	double at = q * (n - 1);
	unsigned int i = (unsigned int)at;

	return i + 1 < n ? (float)(v[i] + (v[i + 1] - v[i]) * (at - i)) : v[n - 1];
}

static bool prepare(struct bench *b, bool twin)
{
	struct gpu *g = b->g;
	unsigned int i;

	for (i = 0; b->reset && i < g->buffers; i++)
		GPU_TRY(cuMemcpyDtoDAsync(g->buffer[i].at, g->buffer[i].first_dev,
					  g->buffer[i].size, g->stream));
	gpu_set_window(g, gpu_whole(g));
	memset(&g->page->stat, 0, sizeof(g->page->stat));
	g->page->stat.seq = ++g->seq;
	g->page->go = 0;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!twin)
		return true;
	g->arg.seq = g->seq;
	memcpy(g->arg.grid, b->grid, sizeof(g->arg.grid));
	g->arg.weight = GSCHED_CAPSM / b->per_sm;
	g->arg.workers = g->sms * b->per_sm;
	if (g->o->order < 0)
		gi_order(&g->arg, g->arg.ranges || g->pair.desc->waits, b->block_ns);
	else
		gsr_launch_order(&g->arg, g->o->order, g->arg.workers,
				 (unsigned int)((uint64_t)g->arg.fetch_ns / (b->block_ns + 1)));
	g->arg.flags |= GSR_LAUNCH_WHOLE;
	gsr_control_init(g->control_copy, gpu_whole(g));
	GPU_TRY(cuMemcpyHtoDAsync(g->control, g->control_copy, sizeof(struct gsr_control),
				  g->stream));
	if (g->arg.ranges)
		GPU_TRY(cuMemsetD8Async(g->ranges, 0, sizeof(struct gsr_ranges), g->stream));
	return true;
}

/* As the interposer: the wait and the word behind it in one call */
static bool gate(struct gpu *g)
{
	CUstreamBatchMemOpParams op[2];

	memset(op, 0, sizeof(op));
	op[0].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
	op[0].waitValue.address = g->control + offsetof(struct gsr_control, gate);
	op[0].waitValue.value = g->seq;
	op[0].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
	op[1].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	op[1].writeValue.address = g->stat_dev + offsetof(struct gsched_cl_slot, retired);
	op[1].writeValue.value = g->seq;
	GPU_TRY(cuStreamBatchMemOp(g->stream, 2, op, 0));
	return true;
}

/* All is queued before the device may begin, so that the time of the calls does not count */
static bool enqueue(struct bench *b, bool twin)
{
	unsigned int workers[3] = { b->workers, 1, 1 };
	struct gpu *g = b->g;

	if (!prepare(b, twin))
		return false;
	GPU_TRY(cuStreamWaitValue32(g->stream, g->page_dev + offsetof(__typeof__(*g->page), go),
				    g->seq, CU_STREAM_WAIT_VALUE_EQ));
	GPU_TRY(cuEventRecord(b->begin, g->stream));
	GPU_TRY(gpu_launch(g, twin ? g->pair.twin : g->pair.original, twin ? workers : b->grid,
			   g->stream));
	if (twin && !gate(g))
		return false;
	GPU_TRY(cuEventRecord(b->end, g->stream));
	return true;
}

static bool time_one(struct bench *b, bool twin, float *ms)
{
	struct gpu *g = b->g;
	bool good = enqueue(b, twin);

	/* also when it failed: the stream must not be left waiting */
	__atomic_store_n(&g->page->go, g->seq, __ATOMIC_RELEASE);
	if (!good || !gpu_settle(g, g->stream, twin ? "the twin" : "the original", gpu_deadline(g)))
		return false;
	GPU_TRY(cuEventElapsedTime(ms, b->begin, b->end));
	g->r->beats++;
	if (!twin || g->arg.ranges || !g->page->stat.left)
		return true;
	snprintf(g->r->why, sizeof(g->r->why), "%u of %u workers left a window of the whole device",
		 g->page->stat.left, b->workers);
	return false;
}

/* As the interposer chooses it */
static bool use_workers(struct bench *b, unsigned int per_sm)
{
	unsigned int full = (unsigned int)b->g->r->per_sm[1];
	unsigned int carveout = gi_tune_carveout(full, per_sm, b->shared, (unsigned int)b->reserved,
						 (unsigned int)b->sm_shared);
	struct gpu *g = b->g;

	GPU_TRY(cuFuncSetAttribute(g->pair.twin, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
				   carveout ? (int)carveout : CU_SHAREDMEM_CARVEOUT_DEFAULT));
	b->per_sm = per_sm;
	b->workers = g->sms * per_sm;
	if (b->workers > b->blocks)
		b->workers = (unsigned int)b->blocks;
	return true;
}

static bool tune(struct bench *b)
{
	unsigned int full = (unsigned int)b->g->r->per_sm[1], i;
	struct gpu *g = b->g;
	CUdevice dev;
	float ms;
	int shared;

	GPU_TRY(cuCtxGetDevice(&dev));
	GPU_TRY(cuFuncGetAttribute(&shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, g->pair.twin));
	GPU_TRY(cuDeviceGetAttribute(&b->sm_shared,
				     CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
				     dev));
	if (cuDeviceGetAttribute(&b->reserved, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK,
				 dev))
		b->reserved = 0;
	b->shared = (unsigned int)shared +
		    (unsigned int)gsr_dynamic_shared(g->pair.desc, g->t->dynamic);
	for (i = 0; g->o->tune && !g->o->resumable && i < TUNING_MAX && gi_tune_tries(&b->tune);
	     i++) {
		snprintf(g->r->stage, sizeof(g->r->stage),
			 "choosing the number of workers, launch %u", i);
		if (!use_workers(b, gi_tune_workers(&b->tune, full, i)) || !time_one(b, true, &ms))
			return false;
		gi_tune_took(&b->tune, full, b->per_sm, (uint64_t)((double)ms * 1e6));
	}
	g->r->workers_per_sm = (int)gi_tune_workers(&b->tune, full, 0);
	return use_workers(b, (unsigned int)g->r->workers_per_sm);
}

/* As many blocks in z as make it last, where that leaves the same memory */
static bool choose_grid(struct bench *b)
{
	struct gpu *g = b->g;
	uint64_t target = (uint64_t)g->o->target_ms * 1000000, z = 1;
	unsigned int full = g->sms * (unsigned int)g->r->per_sm[1], i;
	float ms = 0;

	memcpy(b->grid, g->t->grid, sizeof(b->grid));
	for (i = 0; i < 3; i++)
		if (!time_one(b, false, &ms))
			return false;
	if (g->pair.scalable && !b->reset && ms > 0 && (double)ms * 1e6 < (double)target)
		z = (uint64_t)((double)target / ((double)ms * 1e6)) + 1;
	z = z < 65535 ? z : 65535;
	b->grid[2] = g->t->grid[2] > 1 ? g->t->grid[2] : (unsigned int)z;
	b->blocks = (uint64_t)b->grid[0] * b->grid[1] * b->grid[2];
	if (!time_one(b, false, &ms))
		return false;
	/* as the interposer has it from launches before */
	b->block_ns = (uint64_t)((double)ms * 1e6 * (b->blocks < full ? (double)b->blocks : full) /
				 (double)b->blocks);
	return true;
}

static bool measure(struct bench *b, unsigned int n)
{
	struct gpu_timing *out = &b->g->r->timing;
	unsigned int i, k, full;
	float halves[2];

	for (i = 0; i < WARM_UP + n; i++) {
		float ms[2];
		bool first = i & 1;

		snprintf(b->g->r->stage, sizeof(b->g->r->stage), "timing, pair %u", i);
		if (!time_one(b, first, &ms[first]) || !time_one(b, !first, &ms[!first]))
			return false;
		if (i < WARM_UP)
			continue;
		for (k = 0; k < 2; k++)
			b->ms[k][i - WARM_UP] = ms[k];
		b->ratio[i - WARM_UP] = ms[1] / ms[0];
	}
	/* the original against itself: its first half and its second */
	for (k = 0; k < 2; k++) {
		unsigned int half = n / 2 ? n / 2 : 1, from = k ? n - half : 0;

		qsort(b->ms[0] + from, half, sizeof(float), by_value);
		halves[k] = quantile(b->ms[0] + from, half, 0.5);
	}
	out->drift = halves[1] / halves[0] - 1;
	for (k = 0; k < 2; k++) {
		qsort(b->ms[k], n, sizeof(float), by_value);
		out->median_ms[k] = quantile(b->ms[k], n, 0.5);
		out->p99_ms[k] = quantile(b->ms[k], n, 0.99);
	}
	qsort(b->ratio, n, sizeof(float), by_value);
	out->overhead = quantile(b->ratio, n, 0.5) - 1;
	out->low = quantile(b->ratio, n, 0.25) - 1;
	out->high = quantile(b->ratio, n, 0.75) - 1;
	out->pairs = n;
	out->blocks = b->blocks;
	full = b->g->sms * (unsigned int)b->g->r->per_sm[0];
	out->block_us = out->median_ms[0] * 1000 * (float)(b->blocks < full ? b->blocks : full) /
			(float)b->blocks;
	return true;
}

/* From a window of nothing to the last worker's leaving; -1: it was over before */
static bool evict_one(struct bench *b, float *us)
{
	struct gpu *g = b->g;
	unsigned int wing[3] = { b->workers, 1, 1 };
	uint64_t deadline = gpu_deadline(g), begin, from, to;
	bool good = enqueue(b, true);

	*us = -1;
	g->page->stat.launched = b->workers;
	__atomic_store_n(&g->page->go, g->seq, __ATOMIC_RELEASE);
	if (!good)
		return false;
	while (!__atomic_load_n(&g->page->stat.start_ns, __ATOMIC_ACQUIRE) && gpu_now() < deadline)
		;
	begin = gpu_now();
	while (gpu_now() - begin < (uint64_t)(g->r->timing.median_ms[1] * 400000))
		;
	from = gpu_now();
	gpu_set_window(g, 0);
	do {
		to = gpu_now();
	} while (gpu_load32(&g->page->stat.left) < b->workers &&
		 gpu_load32(&g->page->stat.finished) != g->seq && to < deadline);
	if (gpu_load32(&g->page->stat.left) == b->workers)
		*us = (float)(to - from) / 1000;
	gpu_set_window(g, gpu_whole(g));
	if (gpu_load32(&g->page->stat.finished) != g->seq) {
		g->arg.flags &= ~GSR_LAUNCH_WHOLE;
		GPU_TRY(cuStreamWriteValue64(g->wings,
					     g->control + offsetof(struct gsr_control, relay),
					     gpu_whole(g), 0));
		GPU_TRY(gpu_launch(g, g->pair.twin, wing, g->wings));
	}
	g->r->beats++;
	return gpu_settle(g, g->stream, "a twin that was evicted", deadline) &&
	       gpu_settle(g, g->wings, "its wing", deadline);
}

static bool evict(struct bench *b)
{
	struct gpu_timing *out = &b->g->r->timing;
	float us[EVICTIONS], one;
	unsigned int i, n = 0;

	if (out->median_ms[1] * 1e6 < LONG_NS)
		return true;
	for (i = 0; i < EVICTIONS; i++) {
		snprintf(b->g->r->stage, sizeof(b->g->r->stage), "eviction %u", i);
		if (!evict_one(b, &one))
			return false;
		if (one >= 0)
			us[n++] = one;
	}
	if (n) {
		qsort(us, n, sizeof(us[0]), by_value);
		out->evict_us = quantile(us, n, 0.5);
		out->evict_max_us = us[n - 1];
	}
	out->evictions = n;
	return gpu_buffers_same(b->g);
}

bool gpu_time(struct gpu *g)
{
	struct bench b = { .g = g, .per_sm = (unsigned int)g->r->per_sm[1] };
	unsigned int n = g->o->pairs, i;
	bool good;

	snprintf(g->r->stage, sizeof(g->r->stage), "timing");
	b.reset = gpu_buffers_inout(g) || !g->pair.scalable;
	if (!gpu_buffers_reset(g))
		return false;
	for (i = 0; b.reset && i < g->buffers; i++) {
		GPU_TRY(cuMemAlloc(&g->buffer[i].first_dev, g->buffer[i].size));
		GPU_TRY(cuMemcpyHtoD(g->buffer[i].first_dev, g->buffer[i].first,
				     g->buffer[i].size));
	}
	GPU_TRY(cuEventCreate(&b.begin, CU_EVENT_DEFAULT));
	GPU_TRY(cuEventCreate(&b.end, CU_EVENT_DEFAULT));
	gpu_defaults(g);
	for (i = 0; i < 2; i++)
		b.ms[i] = calloc(n, sizeof(float));
	b.ratio = calloc(n, sizeof(float));
	good = b.ms[0] && b.ms[1] && b.ratio && choose_grid(&b) && tune(&b) && measure(&b, n) &&
	       gpu_buffers_same(g) && evict(&b);
	for (i = 0; i < 2; i++)
		free(b.ms[i]);
	free(b.ratio);
	return good;
}
