// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * One kernel of the corpus on the device: the original, then its twin again and again under a
 * launcher as rewriter/abi.h wants it, which also plays the arbiter: it moves the window at random
 * while the twin runs, and launches wings for the workers that left. Memory, counts and gates must
 * come out as the original leaves them.
 *
 * Nothing here waits inside the driver for a kernel: it looks again and again until the time is
 * over.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include "libgsched/cuda/code/tuning.h"
#include "gpu-run.h"

#define NOT_SEEN	0xdeadbeef
#define WINGS_MAX	300	/* of one run: then the window is given whole */

/* One run of the twin */
struct run {
	unsigned int grid[3], workers, full;
	unsigned int changes;	/* of the window, before it is whole for good */
	bool any_order;		/* not the interposer's */
	bool stays;		/* the window includes all workers from the start */
	bool relay;		/* the relay is written with the window, by launch and wings */
	bool free;		/* the driver may wait for the device, to make room: nothing may
				 * hold up the stream */
};

static uint64_t rng;

static unsigned int roll(unsigned int n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return n ? (unsigned int)(((rng * 0x2545f4914f6cdd1dull) >> 33) % n) : 0;
}

/* ---- the original ---- */

static bool run_original(struct gpu *g, const unsigned int grid[3])
{
	CUresult rc;

	if (!gpu_buffers_reset(g))
		return false;
	rc = gpu_launch(g, g->pair.original, grid, g->stream);
	if (rc) {
		if (!g->r->why[0])
			gpu_fails(g, "launch of the original", rc);
		return false;
	}
	return gpu_settle(g, g->stream, "the original", gpu_deadline(g));
}

/* ---- the twin ---- */

static uint64_t any_window(const struct gpu *g)
{
	switch (roll(6)) {
	case 0:
	case 1:
		return 0;
	case 2:
		return g->sms * GSCHED_CAPSM;
	case 3:	/* parts of SMs */
		return roll(g->sms * GSCHED_CAPSM);
	default:
		return (1 + roll(g->sms)) * GSCHED_CAPSM;
	}
}

/* The done gate */
static bool gate(struct gpu *g)
{
	GPU_TRY(cuStreamWaitValue32(g->stream, g->control + offsetof(struct gsr_control, gate),
				    g->seq, CU_STREAM_WAIT_VALUE_EQ));
	GPU_TRY(cuStreamWriteValue32(g->stream, g->stat_dev + offsetof(struct gsched_cl_slot,
								       retired), g->seq, 0));
	return true;
}

/* How a worker comes to its position; the first as the interposer does by itself */
static uint32_t any_mode(void)
{
	return roll(3) ? 0 : GSR_LAUNCH_BY_INDEX;
}

static bool start(struct gpu *g, struct run *run, uint64_t window)
{
	const uint64_t whole = gpu_whole(g);
	const uint64_t relay = run->relay ? window : whole;
	unsigned int grid[3] = { run->workers, 1, 1 };
	CUresult rc;

	if (!gpu_buffers_reset(g))
		return false;
	gsr_control_init(g->control_copy, relay);
	GPU_TRY(cuMemcpyHtoD(g->control, g->control_copy, sizeof(struct gsr_control)));
	if (g->arg.ranges)
		GPU_TRY(cuMemsetD8(g->ranges, 0, sizeof(struct gsr_ranges)));
	GPU_TRY(cuCtxSynchronize());
	memset(&g->page->stat, 0, sizeof(g->page->stat));
	g->page->stat.launched = run->workers;
	g->page->stat.blocks = (uint64_t)run->grid[0] * run->grid[1] * run->grid[2];
	g->page->stat.seen_limit = NOT_SEEN;
	g->page->go = run->free ? g->seq + 1 : 0;
	gpu_set_window(g, window);
	g->page->stat.seq = ++g->seq;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	g->arg.seq = g->seq;
	g->arg.first = 0;
	memcpy(g->arg.grid, run->grid, sizeof(g->arg.grid));
	if (run->any_order) {
		gsr_launch_order(&g->arg, g->arg.ranges || g->pair.desc->waits ? GSR_ORDER_STRICT :
				 roll(2), 1 + roll(g->arg.workers), roll(20));
		g->arg.last_copy = (1u << roll(6)) - 1;
	} else {
		gi_order(&g->arg, g->arg.ranges || g->pair.desc->waits, 0);
	}
	GPU_TRY(cuStreamWaitValue32(g->stream, g->page_dev + offsetof(__typeof__(*g->page), go),
				    g->seq, CU_STREAM_WAIT_VALUE_EQ));
	if (relay == whole && (!run->any_order || roll(2)))
		g->arg.flags |= GSR_LAUNCH_WHOLE;
	rc = gpu_launch(g, g->pair.twin, grid, g->stream);
	g->arg.flags &= ~GSR_LAUNCH_WHOLE;
	if (rc) {
		__atomic_store_n(&g->page->go, g->seq, __ATOMIC_RELEASE);
		if (!g->r->why[0])
			gpu_fails(g, "launch of the twin", rc);
		return false;
	}
	g->r->launched += run->workers;
	if (g->o->one_launch)
		GPU_TRY(cuCtxSynchronize());
	return g->o->sanitizer || gate(g);
}

static bool wing(struct gpu *g, const struct run *run, unsigned int workers)
{
	unsigned int grid[3] = { workers, 1, 1 };

	g->arg.first = g->page->stat.launched - gpu_load32(&g->page->stat.left);
	if (run->relay)
		GPU_TRY(cuStreamWriteValue64(g->wings,
					     g->control + offsetof(struct gsr_control, relay),
					     g->page->window, 0));
	GPU_TRY(gpu_launch(g, g->pair.twin, grid, g->wings));
	if (g->o->one_launch)
		GPU_TRY(cuCtxSynchronize());
	g->page->stat.launched += workers;
	g->r->launched += workers;
	g->r->wings++;
	return true;
}

/* What a hung twin leaves behind; the device may not even answer */
static void tell(struct gpu *g, const struct run *run)
{
	const struct gsched_cl_slot *s = &g->page->stat;
	uint64_t until = gpu_now() + 1000000000;
	size_t n = strlen(g->r->why);
	CUresult rc;

	n += (size_t)snprintf(g->r->why + n, sizeof(g->r->why) - n,
			      "; window 0x%llx, seq %u, launched %u, left %u, seen 0x%x, started "
			      "%llu, ended %llu, finished %u, retired %u",
			      (unsigned long long)g->page->window, s->seq, s->launched, s->left,
			      s->seen_limit, (unsigned long long)s->start_ns,
			      (unsigned long long)s->end_ns, s->finished, s->retired);
	rc = cuMemcpyDtoHAsync(g->control_copy, g->control, sizeof(*g->control_copy), g->aside);
	while (!rc && (rc = cuStreamQuery(g->aside)) == CUDA_ERROR_NOT_READY && gpu_now() < until)
		rc = CUDA_SUCCESS;
	if (n >= sizeof(g->r->why))
		return;
	if (rc || gpu_now() >= until)
		snprintf(g->r->why + n, sizeof(g->r->why) - n, "; control block: %s",
			 rc ? gpu_error(rc) : "not to be read");
	else
		snprintf(g->r->why + n, sizeof(g->r->why) - n,
			 "; relay 0x%llx, not fetched %llu, done %llu of %u, gate %u, left %u",
			 (unsigned long long)g->control_copy->relay,
			 (unsigned long long)launch_unclaimed(&g->arg, g->control_copy),
			 (unsigned long long)g->control_copy->done,
			 run->grid[0] * run->grid[1] * run->grid[2], g->control_copy->gate,
			 g->control_copy->left);
}

/* Nothing waits and nothing is taken */
static bool saves_taken_back(struct gpu *g)
{
	static const struct gsr_save none;
	struct gsr_save *s = g->save_copy;
	unsigned int i;

	if (!g->save_size)
		return true;
	GPU_TRY(cuMemcpyDtoH(s, g->save, sizeof(*s)));
	if (!memcmp(s, &none, sizeof(none)))
		return true;
	for (i = 0; i < GSR_SMS_MAX && !s->taken[i] && !s->waiting[i]; i++)
		;
	snprintf(g->r->why, sizeof(g->r->why),
		 "at the end %u block-tasks wait; SM %u: records taken 0x%x, waiting 0x%x",
		 s->waiting_count, i, i < GSR_SMS_MAX ? s->taken[i] : 0, i < GSR_SMS_MAX ?
		 s->waiting[i] : 0);
	return false;
}

/* The device's words once all is over */
static bool finish(struct gpu *g, const struct run *run)
{
	const uint64_t total = (uint64_t)run->grid[0] * run->grid[1] * run->grid[2];
	const struct gsched_cl_slot *s = &g->page->stat;
	struct gsr_control *c = g->control_copy;
	unsigned int i;

	GPU_TRY(cuMemcpyDtoH(c, g->control, sizeof(*c)));
	if (c->done != total || c->gate != g->seq || s->finished != g->seq ||
	    s->retired != g->seq || (g->arg.ranges ? c->counter[0].next :
				     launch_unclaimed(&g->arg, c))) {
		snprintf(g->r->why, sizeof(g->r->why),
			 "not fetched %llu, done %llu of %llu, gate %u, finished %u, "
			 "retired %u, seq %u", (unsigned long long)launch_unclaimed(&g->arg, c),
			 (unsigned long long)c->done, (unsigned long long)total, c->gate,
			 s->finished, s->retired, g->seq);
		return false;
	}
	for (i = 0; i < GSR_SMS_MAX; i++)
		if (c->sm[i] || c->ranks[i / 64]) {
			snprintf(g->r->why, sizeof(g->r->why),
				 "places 0x%llx of word %u, ranks 0x%llx are still taken",
				 (unsigned long long)c->sm[i], i,
				 (unsigned long long)c->ranks[i / 64]);
			return false;
		}
	/*
	 * resumable twins and those with ranges count everyone who leaves, and tell while
	 * block-tasks wait
	 */
	if (s->left > c->left || (s->left != c->left && !g->save_size && !g->arg.ranges) ||
	    c->left > s->launched || s->seen_limit == NOT_SEEN || !s->start_ns || !s->end_ns ||
	    (s->left && (run->stays || g->arg.flags & GSR_LAUNCH_NO_WINDOW) && !g->arg.ranges)) {
		snprintf(g->r->why, sizeof(g->r->why),
			 "left %u (counted %u) of %u workers, seen limit 0x%x, started %llu, ended "
			 "%llu, flags %u", s->left, c->left, s->launched, s->seen_limit,
			 (unsigned long long)s->start_ns, (unsigned long long)s->end_ns,
			 g->arg.flags);
		return false;
	}
	g->r->left += s->left;
	g->r->evicted += s->left > 0;
	return saves_taken_back(g);
}

/* A time before the next change: now and then at once, else some part of the twin's own time */
static uint64_t delay(const struct gpu *g)
{
	uint64_t most = g->r->twin_ns + g->r->twin_ns / 4;

	if (!roll(4))
		return roll(3000);
	return 1000 + roll(most < 100000000 ? (unsigned int)most : 100000000);
}

static bool arbitrate(struct gpu *g, struct run *run)
{
	const uint64_t whole = gpu_whole(g), begin = gpu_now();
	uint64_t deadline = begin + g->o->timeout_s * 1000000000ull, next = begin + delay(g), t,
		seen_at = begin;
	unsigned int answered = 0, wings = 0, changes = 0, seen = 0;

	__atomic_store_n(&g->page->go, g->seq, __ATOMIC_RELEASE);
	while (gpu_load32(&g->page->stat.finished) != g->seq) {
		unsigned int left = gpu_load32(&g->page->stat.left);
		CUresult rc;

		t = gpu_now();
		if (t > deadline) {
			snprintf(g->r->why, sizeof(g->r->why),
				 "the twin hangs: not finished after %u s, %u changes of the "
				 "window, %u wings", g->o->timeout_s, changes, wings);
			return false;
		}
		if (changes < run->changes && wings < WINGS_MAX) {
			if (t >= next) {
				gpu_set_window(g, any_window(g));
				g->r->changes++;
				changes++;
				next = t + delay(g);
			}
		} else if (t >= next && g->page->window != whole) {
			gpu_set_window(g, whole);
			g->r->changes++;
		}
		if (left != seen) {
			seen = left;
			seen_at = t;
		}
		/* for who left, not one by one; at once if nobody is there any more */
		if (left != answered && g->page->window >= g->arg.weight &&
		    (left == g->page->stat.launched || t - seen_at > roll(100000))) {
			unsigned int n = roll(3) ? left - answered : 1 + roll(run->full);

			if (!wing(g, run, n < run->full ? n : run->full))
				return false;
			answered = left;
			wings++;
		}
		rc = cuStreamQuery(g->stream);
		if (!rc || rc == CUDA_ERROR_NOT_READY)
			rc = cuStreamQuery(g->wings);
		if (rc && rc != CUDA_ERROR_NOT_READY) {
			gpu_fails(g, "the twin", rc);
			return false;
		}
		gpu_rest(next > t ? next - t : run->changes ? 0 : 100000);
	}
	if (!g->r->twin_ns)
		g->r->twin_ns = gpu_now() - begin;
	if (g->o->sanitizer && !gate(g))
		return false;
	return gpu_settle(g, g->stream, "the done gate", deadline) &&
	       gpu_settle(g, g->wings, "a wing", deadline);
}

static bool run_twin(struct gpu *g, struct run *run, uint64_t window)
{
	if (!start(g, run, window))
		return false;
	if (!arbitrate(g, run)) {
		tell(g, run);
		return false;
	}
	g->r->runs++;
	return finish(g, run) && gpu_buffers_same(g);
}

/* ---- all of one kernel ---- */

void gpu_defaults(struct gpu *g)
{
	g->arg.poll_quarter = GI_POLL_NS / 4;
	g->arg.fetch_ns = g->o->fetch_ns ? (float)g->o->fetch_ns : GI_FETCH_NS;
	g->arg.fetch_max = GI_FETCH_MAX;
	g->arg.workers = g->sms * (unsigned int)g->r->per_sm[1];
	g->arg.poll_clocks = GI_POLL_CLOCKS;
	g->arg.flags = g->o->limit == ANY_LIMIT ? 0 : g->o->limit;
	g->arg.save = g->save;
	g->arg.ranges = g->o->ranges && !g->pair.desc->waits ? g->ranges : 0;
}

static bool rounds(struct gpu *g, const unsigned int grid[3], const char *what)
{
	const uint64_t whole = gpu_whole(g), total = (uint64_t)grid[0] * grid[1] * grid[2];
	struct run run = { .grid = { grid[0], grid[1], grid[2] } };
	unsigned int most = g->sms * (unsigned int)g->r->per_sm[1], i;

	run.full = most < total ? most : (unsigned int)total;
	for (i = 0; i <= g->o->rounds; i++) {
		uint64_t window = whole;

		/*
		 * the first as the interposer launches it, and left alone: twice, the second tells
		 * how long it takes
		 */
		rng = (g->o->seed + i) * 0x9e3779b97f4a7c15ull + 0x1234567;
		roll(2);
		run.workers = run.full;
		run.changes = 0;
		run.relay = true;
		run.any_order = i;
		run.stays = !i;
		gpu_defaults(g);
		if (i && g->o->limit == ANY_LIMIT && g->pair.modes)
			g->arg.flags = any_mode();
		if (i && !roll(3) && g->pair.modes && !g->pair.desc->waits) {
			g->arg.ranges = g->ranges;
			g->arg.workers = run.full;
		}
		if (i && roll(12) == 0) {
			g->arg.flags |= GSR_LAUNCH_NO_WINDOW;
			run.changes = roll(4);
		} else if (i) {
			/* few workers have more to do, so that there is something to evict */
			run.workers = roll(3) ? run.full : roll(2) ? 1 + roll(run.full) :
				      1 + roll(run.full < 4 ? run.full : 4);
			run.changes = 1 + roll(12);
			run.relay = roll(2);
			window = roll(3) ? whole : any_window(g);
			g->arg.save = roll(8) ? g->save : 0;
			if (roll(2)) {
				g->arg.poll_quarter = 1 + roll(1250);
				g->arg.poll_clocks = roll(5000);
				g->arg.fetch_ns = 500 + roll(20000);
				g->arg.fetch_max = 1 + roll(16);
			}
		}
		snprintf(g->r->stage, sizeof(g->r->stage), "%s, round %u (--seed %llu --rounds 1)",
			 what, i, (unsigned long long)(i ? g->o->seed + i - 1 : g->o->seed));
		g->r->beats++;
		/* a sanitizer may wait for the end of each launch */
		run.free = !i || g->o->sanitizer;
		if (!run_twin(g, &run, window))
			return false;
		if (i)
			continue;
		run.free = g->o->sanitizer;
		g->r->twin_ns = 0;
		if (!run_twin(g, &run, window))
			return false;
	}
	return true;
}

static bool scaled(struct gpu *g)
{
	unsigned int grid[3] = { g->t->grid[0], g->t->grid[1], g->t->grid[2] * g->o->scale };

	if (grid[2] > 65535)
		grid[2] = 65535;
	snprintf(g->r->stage, sizeof(g->r->stage), "original %u times as large", grid[2]);
	g->r->beats++;
	if (!run_original(g, grid) || !gpu_buffers_same(g))
		return false;
	g->r->scale = grid[2];
	return rounds(g, grid, "scaled twin");
}

static CUresult context(struct gpu_report *r)
{
	int major = 0, minor = 0, sms = 0, version = 0;
	CUcontext ctx;
	CUdevice dev;
	CUresult rc;

	setenv("CUDA_MODULE_LOADING", "EAGER", 1);
	rc = cuInit(0);
	if (!rc)
		rc = cuDeviceGet(&dev, 0);
	if (!rc)
		rc = cuDevicePrimaryCtxRetain(&ctx, dev);
	if (!rc)
		rc = cuCtxSetCurrent(ctx);
	if (rc)
		return rc;
	cuDeviceGetName(r->device, sizeof(r->device), dev);
	cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, dev);
	cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, dev);
	cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, dev);
	cuDriverGetVersion(&version);
	r->arch = (unsigned int)(major * 10 + minor);
	r->sms = (unsigned int)sms;
	r->driver = (unsigned int)version;
	return sms > 0 && sms <= GSR_SMS_MAX ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

void gpu_probe(struct gpu_report *r)
{
	CUresult rc = context(r);

	r->good = !rc;
	if (rc)
		snprintf(r->why, sizeof(r->why), "no device: %s", gpu_error(rc));
	r->done = true;
}

static bool words_new(struct gpu *g)
{
	CUdeviceptr page;

	GPU_TRY(cuStreamCreate(&g->stream, CU_STREAM_NON_BLOCKING));
	GPU_TRY(cuStreamCreate(&g->wings, CU_STREAM_NON_BLOCKING));
	GPU_TRY(cuStreamCreate(&g->aside, CU_STREAM_NON_BLOCKING));
	GPU_TRY(cuMemAlloc(&g->control, sizeof(struct gsr_control)));
	GPU_TRY(cuMemAlloc(&g->ranges,
			   sizeof(struct gsr_ranges) + GSR_RANGES_MAX * sizeof(uint64_t)));
	GPU_TRY(cuMemHostAlloc((void **)&g->page, sizeof(*g->page), CU_MEMHOSTALLOC_PORTABLE |
			       CU_MEMHOSTALLOC_DEVICEMAP));
	GPU_TRY(cuMemHostAlloc((void **)&g->control_copy, sizeof(*g->control_copy),
			       CU_MEMHOSTALLOC_PORTABLE));
	GPU_TRY(cuMemHostGetDevicePointer(&page, g->page, 0));
	g->page_dev = page;
	g->stat_dev = page + offsetof(__typeof__(*g->page), stat);
	g->arg.control = g->control;
	g->arg.window = page + offsetof(__typeof__(*g->page), window);
	g->arg.stat = g->stat_dev;
	g->arg.weight = GSCHED_CAPSM / (unsigned int)g->r->per_sm[1];
	g->arg.last_warp = (g->t->block_dim[0] * g->t->block_dim[1] * g->t->block_dim[2] - 1) / 32;
	return true;
}

/*
 * Records for as many workers as fit. What lies in one is nobody's before it is saved; the head is
 * zero, and is so again at each task's end by itself.
 */
static bool save_new(struct gpu *g)
{
	const unsigned int *b = g->t->block_dim;
	size_t stride = gsr_save_stride(g->pair.desc, (size_t)b[0] * b[1] * b[2], g->t->dynamic);
	unsigned int per_sm = g->r->per_sm[1] < 32 ? (unsigned int)g->r->per_sm[1] : 32;

	g->r->resume_points = g->pair.desc->resume_points;
	if (!g->pair.desc->resume_points)
		return true;
	g->save_size = sizeof(struct gsr_save) + g->sms * per_sm * stride;
	GPU_TRY(cuMemAlloc(&g->save, g->save_size));
	GPU_TRY(cuMemsetD8(g->save, 0xa5, g->save_size));
	GPU_TRY(cuMemsetD8(g->save, 0, sizeof(struct gsr_save)));
	GPU_TRY(cuMemHostAlloc((void **)&g->save_copy, sizeof(*g->save_copy),
			       CU_MEMHOSTALLOC_PORTABLE));
	g->arg.save = g->save;
	g->arg.save_stride = (uint32_t)stride;
	g->arg.save_per_sm = per_sm;
	g->arg.save_sms = g->sms;
	return true;
}

static bool all(struct gpu *g, const char *path)
{
	if (gpu_fails(g, "context", context(g->r)))
		return false;
	g->sms = g->r->sms;
	snprintf(g->r->stage, sizeof(g->r->stage), "loading");
	if (!gpu_load(path, g->t, g->o, &g->pair, g->r))
		return false;
	if (g->r->per_sm[0] < 1 || g->r->per_sm[1] < 1 ||
	    (g->pair.desc->warp_rows && g->t->block_dim[0] % 32)) {
		snprintf(g->r->why, sizeof(g->r->why),
			 "blocks per SM: original %d, twin %d; warp_rows %d", g->r->per_sm[0],
			 g->r->per_sm[1], g->pair.desc->warp_rows);
		return false;
	}
	if (!words_new(g) || !save_new(g) || !gpu_buffers_new(g))
		return false;
	snprintf(g->r->stage, sizeof(g->r->stage), "original");
	g->r->beats++;
	if (!run_original(g, g->t->grid) || !gpu_buffers_read(g, true) || !gpu_buffers_changed(g))
		return false;
	snprintf(g->r->stage, sizeof(g->r->stage), "original again, which must leave the same");
	if (!run_original(g, g->t->grid) || !gpu_buffers_same(g) || !rounds(g, g->t->grid, "twin"))
		return false;
	if (g->o->overhead)
		return gpu_time(g);
	return g->o->scale < 2 || !g->pair.scalable || gpu_buffers_inout(g) || scaled(g);
}

/* So that another kernel may follow in this process */
static bool release(struct gpu *g)
{
	CUstream streams[] = { g->stream, g->wings, g->aside };
	void *host[] = { g->page, g->control_copy, g->save_copy };
	unsigned int i;

	if (!gpu_buffers_release(g))
		return false;
	for (i = 0; i < 3; i++)
		GPU_TRY(cuStreamDestroy(streams[i]));
	for (i = 0; i < 3; i++)
		if (host[i])
			GPU_TRY(cuMemFreeHost(host[i]));
	GPU_TRY(cuMemFree(g->control));
	if (g->save)
		GPU_TRY(cuMemFree(g->save));
	gpu_unload(&g->pair);
	return true;
}

void gpu_run(const char *path, const struct test_launch *t, const struct gpu_options *o,
	     struct gpu_report *r)
{
	struct gpu g = { .r = r, .t = t, .o = o, .params = calloc(1, PARAMS_MAX) };

	prctl(PR_SET_TIMERSLACK, 1);
	r->scale = 1;
	r->good = g.params && all(&g, path) && (!o->sanitizer || release(&g));
	r->done = true;
	gpu_buffers_free(&g);
	free(g.params);
}
