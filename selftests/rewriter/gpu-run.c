// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * One kernel of the corpus on the device: the original, then its twin again and again under a launcher as rewriter/abi.h
 * wants it, which also plays the arbiter: it moves the window at random while the twin runs, and launches wings for the
 * workers that left. Memory, counts and gates must come out as the original leaves them.
 *
 * Nothing here waits inside the driver for a kernel: it looks again and again until the time is over.
 */
#include <linux/gsched.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include "gpu.h"

#define BUFFERS_MAX	(LAUNCH_PARAMS_MAX + 64)
#define GUARD		256	/* bytes before and behind each buffer that nobody may touch */
#define GUARD_BYTE	0xa5
#define NOT_SEEN	0xdeadbeef
#define WINGS_MAX	300	/* of one run: then the window is given whole */
#define POLL_NS		2000	/* the interposer's */
#define FETCH_NS	10000
#define FETCH_MAX	256

struct buffer {
	CUdeviceptr at;		/* of the first guard */
	size_t size;		/* with the guards */
	size_t guard;		/* 0: a variable of the module */
	uint8_t *first, *result, *now;
};

struct gpu {
	struct gpu_report *r;
	const struct test_launch *t;
	const struct gpu_options *o;
	struct gpu_pair pair;
	struct buffer buffer[BUFFERS_MAX];	/* of the parameters, then the module's variables */
	unsigned int buffers, sms;
	CUstream stream, wings, aside;
	CUdeviceptr control, page_dev, stat_dev;
	struct {
		uint64_t window;
		uint8_t pad[120];
		struct gsched_cl_slot stat;
		uint32_t go;	/* the stream waits for it: launch and gate are queued before the twin starts */
	} *page;
	struct gsr_control *control_copy;	/* pinned */
	struct gsr_launch arg;
	uint8_t *params;
	uint32_t seq;
};

/* One run of the twin */
struct run {
	unsigned int grid[3], workers, full;
	unsigned int changes;	/* of the window, before it is whole for good */
	bool relay;		/* the relay is written with the window, by launch and wings */
	bool first;		/* the driver may wait for the device, to make room: nothing may hold up the stream */
};

static uint64_t rng;

static unsigned int roll(unsigned int n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return n ? (unsigned int)(((rng * 0x2545f4914f6cdd1dull) >> 33) % n) : 0;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* A little rest, if there is nothing to do for some time: the simulated device runs on the same processors */
static void rest(uint64_t ns)
{
	struct timespec ts = { .tv_nsec = 2000 };

	if (ns > 30000)
		nanosleep(&ts, NULL);
	else
		sched_yield();
}

static uint32_t load(const uint32_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static bool fails(struct gpu *g, const char *what, CUresult rc)
{
	if (rc)
		snprintf(g->r->why, sizeof(g->r->why), "%s: %s", what, gpu_error(rc));
	return rc != CUDA_SUCCESS;
}

#define TRY(call) \
	do { \
		if (fails(g, #call, call)) \
			return false; \
	} while (0)

/* false: it failed, or @deadline passed */
static bool settle(struct gpu *g, CUstream stream, const char *what, uint64_t deadline)
{
	CUresult rc;

	while ((rc = cuStreamQuery(stream)) == CUDA_ERROR_NOT_READY) {
		if (now_ns() > deadline) {
			snprintf(g->r->why, sizeof(g->r->why), "%s hangs: not over after %u s", what, g->o->timeout_s);
			return false;
		}
		rest(100000);
	}
	return !fails(g, what, rc);
}

/* ---- memory ---- */

static bool buffer_room(struct gpu *g, struct buffer *b, size_t size)
{
	b->size = size;
	b->first = malloc(size);
	b->result = malloc(size);
	b->now = malloc(size);
	g->buffers++;
	return b->first && b->result && b->now;
}

/* Those that the driver finds: original and twin must leave them alike */
static bool variables_new(struct gpu *g)
{
	const struct gsr_rewrite *rw = g->pair.rw;
	unsigned int i;

	for (i = 0; i < rw->n_variables && g->buffers < BUFFERS_MAX; i++) {
		struct buffer *b = &g->buffer[g->buffers];
		size_t size;

		if (cuModuleGetGlobal(&b->at, &size, g->pair.module, rw->variables[i].name))
			continue;
		if (!buffer_room(g, b, size))
			return false;
		TRY(cuMemcpyDtoH(b->first, b->at, size));
	}
	return true;
}

static bool buffers_new(struct gpu *g)
{
	unsigned int i;

	for (i = 0; i < g->t->n_params; i++) {
		const struct test_param *p = &g->t->params[i];
		struct buffer *b = &g->buffer[g->buffers];

		if (p->kind != PARAM_BUFFER)
			continue;
		b->guard = GUARD;
		if (!buffer_room(g, b, p->size + 2 * GUARD))
			return false;
		memset(b->first, GUARD_BYTE, b->size);
		launch_fill(p, b->first + GUARD);
		TRY(cuMemAlloc(&b->at, b->size));
	}
	return variables_new(g);
}

static bool buffers_reset(struct gpu *g)
{
	unsigned int i;

	for (i = 0; i < g->buffers; i++)
		TRY(cuMemcpyHtoD(g->buffer[i].at, g->buffer[i].first, g->buffer[i].size));
	return true;
}

static bool buffers_read(struct gpu *g, bool reference)
{
	unsigned int i;

	for (i = 0; i < g->buffers; i++)
		TRY(cuMemcpyDtoH(reference ? g->buffer[i].result : g->buffer[i].now, g->buffer[i].at, g->buffer[i].size));
	return true;
}

static bool buffers_same(struct gpu *g)
{
	unsigned int i, bad = 0;
	size_t k, first = 0;

	if (!buffers_read(g, false))
		return false;
	for (i = 0; i < g->buffers && !bad; i++) {
		const struct buffer *b = &g->buffer[i];

		for (k = 0; k < b->size; k++)
			if (b->now[k] != b->result[k] && !bad++)
				first = k;
		if (bad)
			snprintf(g->r->why, sizeof(g->r->why), "buffer %u of %zu bytes differs in %u bytes, first at %lld: 0x%02x, original 0x%02x",
				 i, b->size - 2 * b->guard, bad, (long long)(first - b->guard), b->now[first], b->result[first]);
	}
	return !bad;
}

/* Nothing is proved by a kernel that leaves all as it was */
static bool buffers_changed(struct gpu *g)
{
	unsigned int i;

	for (i = 0; i < g->buffers; i++)
		if (memcmp(g->buffer[i].first, g->buffer[i].result, g->buffer[i].size))
			return true;
	snprintf(g->r->why, sizeof(g->r->why), "the original changes nothing");
	return !g->buffers;
}

/* Does the kernel read what it writes? Seen by what it leaves: a filled buffer changed. */
static bool buffers_inout(const struct gpu *g)
{
	unsigned int i, b = 0;

	for (i = 0; i < g->t->n_params; i++) {
		if (g->t->params[i].kind != PARAM_BUFFER)
			continue;
		if (g->t->params[i].fill != FILL_ZERO && memcmp(g->buffer[b].first, g->buffer[b].result, g->buffer[b].size))
			return true;
		b++;
	}
	for (; b < g->buffers; b++)
		if (memcmp(g->buffer[b].first, g->buffer[b].result, g->buffer[b].size))
			return true;
	return false;
}

/* ---- parameters ---- */

/* The driver's own word on where they lie; the twin's must agree with its description */
static bool pack(struct gpu *g, CUfunction f, size_t *size)
{
	unsigned int i, b = 0;
	size_t offset, room, k;

	*size = 0;
	for (i = 0; i < g->t->n_params; i++) {
		const struct test_param *p = &g->t->params[i];
		CUdeviceptr at;

		TRY(cuFuncGetParamInfo(f, i, &offset, &room));
		if (offset + room > 4096) {
			snprintf(g->r->why, sizeof(g->r->why), "parameter %u of %zu bytes at %zu", i, room, offset);
			return false;
		}
		if (p->kind == PARAM_BUFFER) {
			at = g->buffer[b++].at + GUARD;
			memcpy(g->params + offset, &at, room < 8 ? room : 8);
		} else if (p->kind == PARAM_VALUE) {
			memcpy(g->params + offset, &p->value, room < 8 ? room : 8);
		}
		for (k = 0; p->kind == PARAM_BYTES && k < room; k++)
			g->params[offset + k] = (uint8_t)(k * 7 + 1);
		*size = offset + room;
	}
	if (f == g->pair.twin) {
		TRY(cuFuncGetParamInfo(f, i, &offset, &room));
		if (offset != g->pair.desc->launch_offset || room != sizeof(g->arg)) {
			snprintf(g->r->why, sizeof(g->r->why), "launch_offset %zu, the driver has %zu bytes at %zu",
				 g->pair.desc->launch_offset, room, offset);
			return false;
		}
		memcpy(g->params + offset, &g->arg, sizeof(g->arg));
		*size = offset + room;
	}
	return true;
}

static CUresult launch(struct gpu *g, CUfunction f, const unsigned int grid[3], CUstream stream)
{
	const unsigned int *b = g->t->block_dim;
	size_t size;
	void *extra[] = {
		CU_LAUNCH_PARAM_BUFFER_POINTER, g->params, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END,
	};

	if (!pack(g, f, &size))
		return CUDA_ERROR_INVALID_VALUE;
	return cuLaunchKernel(f, grid[0], grid[1], grid[2], b[0], b[1], b[2], (unsigned int)g->t->dynamic, stream, NULL,
			      size ? extra : NULL);
}

/* ---- the original ---- */

static bool run_original(struct gpu *g, const unsigned int grid[3])
{
	CUresult rc;

	if (!buffers_reset(g))
		return false;
	rc = launch(g, g->pair.original, grid, g->stream);
	if (rc) {
		if (!g->r->why[0])
			fails(g, "launch of the original", rc);
		return false;
	}
	return settle(g, g->stream, "the original", now_ns() + g->o->timeout_s * 1000000000ull);
}

/* ---- the twin ---- */

static uint64_t any_window(const struct gpu *g)
{
	unsigned int base, n;

	switch (roll(6)) {
	case 0:
	case 1:
		return GSCHED_WINDOW(0, 0);
	case 2:
		return GSCHED_WINDOW(0, g->sms * GSCHED_CAPSM);
	case 3:	/* parts of SMs */
		return GSCHED_WINDOW(roll(g->sms * GSCHED_CAPSM), roll(g->sms * GSCHED_CAPSM));
	default:
		base = roll(g->sms);
		n = 1 + roll(g->sms - base);
		return GSCHED_WINDOW(base * GSCHED_CAPSM, n * GSCHED_CAPSM);
	}
}

static void set_window(struct gpu *g, uint64_t window)
{
	__atomic_store_n(&g->page->window, window, __ATOMIC_RELEASE);
}

static bool start(struct gpu *g, struct run *run, uint64_t window)
{
	const uint64_t whole = GSCHED_WINDOW(0, g->sms * GSCHED_CAPSM);
	const uint64_t relay = run->relay ? window : whole;
	unsigned int grid[3] = { run->workers, 1, 1 };
	CUresult rc;

	if (!buffers_reset(g))
		return false;
	TRY(cuMemsetD8(g->control, 0, sizeof(struct gsr_control)));
	TRY(cuMemcpyHtoD(g->control + offsetof(struct gsr_control, relay), &relay, sizeof(relay)));
	TRY(cuCtxSynchronize());
	memset(&g->page->stat, 0, sizeof(g->page->stat));
	g->page->stat.launched = run->workers;
	g->page->stat.blocks = (uint64_t)run->grid[0] * run->grid[1] * run->grid[2];
	g->page->stat.seen_limit = NOT_SEEN;
	g->page->go = run->first ? g->seq + 1 : 0;
	set_window(g, window);
	g->page->stat.seq = ++g->seq;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	g->arg.seq = g->seq;
	memcpy(g->arg.grid, run->grid, sizeof(g->arg.grid));
	TRY(cuStreamWaitValue32(g->stream, g->page_dev + offsetof(__typeof__(*g->page), go), g->seq, CU_STREAM_WAIT_VALUE_EQ));
	rc = launch(g, g->pair.twin, grid, g->stream);
	if (rc) {
		__atomic_store_n(&g->page->go, g->seq, __ATOMIC_RELEASE);
		if (!g->r->why[0])
			fails(g, "launch of the twin", rc);
		return false;
	}
	g->r->launched += run->workers;
	/* the done gate */
	TRY(cuStreamWaitValue32(g->stream, g->control + offsetof(struct gsr_control, gate), g->seq, CU_STREAM_WAIT_VALUE_EQ));
	TRY(cuStreamWriteValue32(g->stream, g->stat_dev + offsetof(struct gsched_cl_slot, retired), g->seq, 0));
	return true;
}

static bool wing(struct gpu *g, const struct run *run, unsigned int workers)
{
	unsigned int grid[3] = { workers, 1, 1 };

	if (run->relay)
		TRY(cuStreamWriteValue64(g->wings, g->control + offsetof(struct gsr_control, relay), g->page->window, 0));
	TRY(launch(g, g->pair.twin, grid, g->wings));
	g->page->stat.launched += workers;
	g->r->launched += workers;
	g->r->wings++;
	return true;
}

/* What a hung twin leaves behind; the device may not even answer */
static void tell(struct gpu *g, const struct run *run)
{
	const struct gsched_cl_slot *s = &g->page->stat;
	uint64_t until = now_ns() + 1000000000;
	size_t n = strlen(g->r->why);
	CUresult rc;

	n += (size_t)snprintf(g->r->why + n, sizeof(g->r->why) - n,
			      "; window 0x%llx, seq %u, launched %u, left %u, seen 0x%x, started %llu, ended %llu, finished %u, retired %u",
			      (unsigned long long)g->page->window, s->seq, s->launched, s->left, s->seen_limit,
			      (unsigned long long)s->start_ns, (unsigned long long)s->end_ns, s->finished, s->retired);
	rc = cuMemcpyDtoHAsync(g->control_copy, g->control, sizeof(*g->control_copy), g->aside);
	while (!rc && (rc = cuStreamQuery(g->aside)) == CUDA_ERROR_NOT_READY && now_ns() < until)
		rc = CUDA_SUCCESS;
	if (n >= sizeof(g->r->why))
		return;
	if (rc || now_ns() >= until)
		snprintf(g->r->why + n, sizeof(g->r->why) - n, "; control block: %s", rc ? gpu_error(rc) : "not to be read");
	else
		snprintf(g->r->why + n, sizeof(g->r->why) - n, "; relay 0x%llx, next %llu, done %llu of %u, gate %u, left %u",
			 (unsigned long long)g->control_copy->relay, (unsigned long long)g->control_copy->next,
			 (unsigned long long)g->control_copy->done, run->grid[0] * run->grid[1] * run->grid[2],
			 g->control_copy->gate, g->control_copy->left);
}

/* The device's words once all is over */
static bool finish(struct gpu *g, const struct run *run)
{
	const uint64_t total = (uint64_t)run->grid[0] * run->grid[1] * run->grid[2];
	const struct gsched_cl_slot *s = &g->page->stat;
	struct gsr_control *c = g->control_copy;
	unsigned int i;

	TRY(cuMemcpyDtoH(c, g->control, sizeof(*c)));
	if (c->done != total || c->gate != g->seq || s->finished != g->seq || s->retired != g->seq || c->next < total) {
		snprintf(g->r->why, sizeof(g->r->why), "next %llu, done %llu of %llu, gate %u, finished %u, retired %u, seq %u",
			 (unsigned long long)c->next, (unsigned long long)c->done, (unsigned long long)total, c->gate, s->finished,
			 s->retired, g->seq);
		return false;
	}
	for (i = 0; i < GSR_SMS_MAX; i++)
		if (c->sm_slots[i]) {
			snprintf(g->r->why, sizeof(g->r->why), "SM %u: places 0x%x are still taken", i, c->sm_slots[i]);
			return false;
		}
	if (s->left != c->left || s->left > s->launched || s->seen_limit == NOT_SEEN || !s->start_ns || !s->end_ns ||
	    (s->left && (g->arg.flags & GSR_LAUNCH_NO_WINDOW))) {
		snprintf(g->r->why, sizeof(g->r->why), "left %u (counted %u) of %u workers, seen limit 0x%x, started %llu, ended %llu, flags %u",
			 s->left, c->left, s->launched, s->seen_limit, (unsigned long long)s->start_ns,
			 (unsigned long long)s->end_ns, g->arg.flags);
		return false;
	}
	g->r->left += s->left;
	g->r->evicted += s->left > 0;
	return true;
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
	const uint64_t whole = GSCHED_WINDOW(0, g->sms * GSCHED_CAPSM), begin = now_ns();
	uint64_t deadline = begin + g->o->timeout_s * 1000000000ull, next = begin + delay(g), t, seen_at = begin;
	unsigned int answered = 0, wings = 0, changes = 0, seen = 0;

	__atomic_store_n(&g->page->go, g->seq, __ATOMIC_RELEASE);
	while (load(&g->page->stat.finished) != g->seq) {
		unsigned int left = load(&g->page->stat.left);
		CUresult rc;

		t = now_ns();
		if (t > deadline) {
			snprintf(g->r->why, sizeof(g->r->why), "the twin hangs: not finished after %u s, %u changes of the window, %u wings",
				 g->o->timeout_s, changes, wings);
			return false;
		}
		if (changes < run->changes && wings < WINGS_MAX) {
			if (t >= next) {
				set_window(g, any_window(g));
				g->r->changes++;
				changes++;
				next = t + delay(g);
			}
		} else if (t >= next && g->page->window != whole) {
			set_window(g, whole);
			g->r->changes++;
		}
		if (left != seen) {
			seen = left;
			seen_at = t;
		}
		/* for who left, not one by one; at once if nobody is there any more */
		if (left != answered && GSCHED_WINDOW_LIMIT(g->page->window) >= g->arg.weight &&
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
			fails(g, "the twin", rc);
			return false;
		}
		rest(next > t ? next - t : run->changes ? 0 : 100000);
	}
	if (!g->r->twin_ns)
		g->r->twin_ns = now_ns() - begin;
	return settle(g, g->stream, "the done gate", deadline) && settle(g, g->wings, "a wing", deadline);
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
	return finish(g, run) && buffers_same(g);
}

/* ---- all of one kernel ---- */

static bool rounds(struct gpu *g, const unsigned int grid[3], const char *what)
{
	const uint64_t whole = GSCHED_WINDOW(0, g->sms * GSCHED_CAPSM), total = (uint64_t)grid[0] * grid[1] * grid[2];
	struct run run = { .grid = { grid[0], grid[1], grid[2] } };
	unsigned int most = g->sms * (unsigned int)g->r->per_sm[1], i;

	run.full = most < total ? most : (unsigned int)total;
	for (i = 0; i <= g->o->rounds; i++) {
		uint64_t window = whole;

		/* the first as the interposer launches it, and left alone: twice, the second tells how long it takes */
		rng = (g->o->seed + i) * 0x9e3779b97f4a7c15ull + 0x1234567;
		roll(2);
		run.workers = run.full;
		run.changes = 0;
		run.relay = true;
		g->arg.poll_ns = POLL_NS;
		g->arg.fetch_ns = FETCH_NS;
		g->arg.fetch_max = FETCH_MAX;
		g->arg.workers = most;
		g->arg.flags = 0;
		if (i && roll(12) == 0) {
			g->arg.flags = GSR_LAUNCH_NO_WINDOW;
			run.changes = roll(4);
		} else if (i) {
			/* few workers have more to do, so that there is something to evict */
			run.workers = roll(3) ? run.full : roll(2) ? 1 + roll(run.full) : 1 + roll(run.full < 4 ? run.full : 4);
			run.changes = 1 + roll(12);
			run.relay = roll(2);
			window = roll(3) ? whole : any_window(g);
			if (roll(2)) {
				g->arg.poll_ns = 1 + roll(5000);
				g->arg.fetch_ns = 500 + roll(20000);
				g->arg.fetch_max = 1 + roll(16);
			}
		}
		snprintf(g->r->stage, sizeof(g->r->stage), "%s, round %u (--seed %llu --rounds 1)", what, i,
			 (unsigned long long)(i ? g->o->seed + i - 1 : g->o->seed));
		g->r->beats++;
		run.first = !i;
		if (!run_twin(g, &run, window))
			return false;
		if (i)
			continue;
		run.first = false;
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
	if (!run_original(g, grid) || !buffers_same(g))
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

	TRY(cuStreamCreate(&g->stream, CU_STREAM_NON_BLOCKING));
	TRY(cuStreamCreate(&g->wings, CU_STREAM_NON_BLOCKING));
	TRY(cuStreamCreate(&g->aside, CU_STREAM_NON_BLOCKING));
	TRY(cuMemAlloc(&g->control, sizeof(struct gsr_control)));
	TRY(cuMemHostAlloc((void **)&g->page, sizeof(*g->page), CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
	TRY(cuMemHostAlloc((void **)&g->control_copy, sizeof(*g->control_copy), CU_MEMHOSTALLOC_PORTABLE));
	TRY(cuMemHostGetDevicePointer(&page, g->page, 0));
	g->page_dev = page;
	g->stat_dev = page + offsetof(__typeof__(*g->page), stat);
	g->arg.control = g->control;
	g->arg.window = page + offsetof(__typeof__(*g->page), window);
	g->arg.stat = g->stat_dev;
	g->arg.weight = GSCHED_CAPSM / (unsigned int)g->r->per_sm[1];
	return true;
}

static bool all(struct gpu *g, const char *path)
{
	if (fails(g, "context", context(g->r)))
		return false;
	g->sms = g->r->sms;
	snprintf(g->r->stage, sizeof(g->r->stage), "loading");
	if (!gpu_load(path, g->t, g->o, &g->pair, g->r))
		return false;
	if (g->r->per_sm[0] < 1 || g->r->per_sm[1] < 1 || (g->pair.desc->warp_rows && g->t->block_dim[0] % 32)) {
		snprintf(g->r->why, sizeof(g->r->why), "blocks per SM: original %d, twin %d; warp_rows %d", g->r->per_sm[0], g->r->per_sm[1],
			 g->pair.desc->warp_rows);
		return false;
	}
	if (!words_new(g) || !buffers_new(g))
		return false;
	snprintf(g->r->stage, sizeof(g->r->stage), "original");
	g->r->beats++;
	if (!run_original(g, g->t->grid) || !buffers_read(g, true) || !buffers_changed(g) || !rounds(g, g->t->grid, "twin"))
		return false;
	return g->o->scale < 2 || !g->pair.scalable || buffers_inout(g) || scaled(g);
}

void gpu_run(const char *path, const struct test_launch *t, const struct gpu_options *o, struct gpu_report *r)
{
	struct gpu g = { .r = r, .t = t, .o = o, .params = calloc(1, 8192) };
	unsigned int i;

	prctl(PR_SET_TIMERSLACK, 1);
	setenv("CUDA_MODULE_LOADING", "EAGER", 1);
	r->scale = 1;
	r->good = g.params && all(&g, path);
	r->done = true;
	for (i = 0; i < g.buffers; i++) {
		free(g.buffer[i].first);
		free(g.buffer[i].result);
		free(g.buffer[i].now);
	}
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): all below g.buffers are freed, which it loses count of */
	free(g.params);
}
