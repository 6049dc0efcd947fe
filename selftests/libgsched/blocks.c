// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * How often launches of a lower band are measured, and how soon it is known how long thread blocks
 * take (libgsched/cuda/launch/blocks.c). Without a driver: the test moves the clock, launches as
 * the interposer does, and looks as the agent does.
 */
#include <string.h>
#include <time.h>
#include "code/code.h"
#include "launch/blocks.h"
#include "launch/direct.h"
#include "launch/launch.h"
#include "selftests/tap.h"

#define US	1000ull
#define MS	1000000ull
#define LOOK_NS	(500 * US)	/* of the agent */
#define LAUNCH_NS	(25 * US)
#define KERNELS	16

static struct gsched_arb_page arb = {
	.header.flags = GSCHED_ARB_PRIVATE | GSCHED_ARB_TIMED | GSCHED_ARB_REPORT,
};
static struct gsched_cl_page cl;
static struct gi_tasks tasks;
static struct gi_client client = {
	.arb = &arb, .cl = &cl, .sms = 8, .tasks = &tasks, .track_at = 1 << 30,
};
static struct gi_ctx cx = { .client = &client };
static struct gi_func fn[KERNELS];
static uint64_t clock_ns = 1000 * MS, looked_ns, took_ns;
static unsigned int events, grid = 8;

/* The linker puts these in the place of the C library's, and of those that ask the driver */
int __wrap_clock_gettime(clockid_t id, struct timespec *ts);
struct gi_func *__wrap_gi_func_get(void *handle, struct gi_ctx *in);
void __wrap_gi_func_put(struct gi_func *of);

int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	ts->tv_sec = (time_t)(clock_ns / 1000000000);
	ts->tv_nsec = (long)(clock_ns % 1000000000);
	return 0;
}

struct gi_func *__wrap_gi_func_get(void *handle, struct gi_ctx *in)
{
	return handle;
}

void __wrap_gi_func_put(struct gi_func *of)
{
}

/* ---- the driver ---- */

static CUresult exchange_mode(CUstreamCaptureMode *mode)
{
	return CUDA_SUCCESS;
}

static CUresult occupancy(int *m, CUfunction of, int threads, size_t shared)
{
	*m = 1;
	return CUDA_SUCCESS;
}

static CUresult create(CUevent *event, unsigned int flags)
{
	*event = (CUevent)&events;
	return CUDA_SUCCESS;
}

static CUresult record(CUevent event, CUstream stream)
{
	events++;
	return CUDA_SUCCESS;
}

static CUresult query(CUevent event)
{
	return CUDA_SUCCESS;
}

static CUresult elapsed(float *ms, CUevent from, CUevent to)
{
	*ms = (float)took_ns / 1e6f;
	return CUDA_SUCCESS;
}

static CUresult forward(const struct gi_launch *l)
{
	return CUDA_SUCCESS;
}

/* ---- the test ---- */

/* Blocks that take @block_ns; 0: of a graph */
static void launch(unsigned int kernel, uint64_t block_ns)
{
	struct gi_launch l = { .fn = block_ns ? (CUfunction)&fn[kernel] : NULL,
			       .grid = { grid, 1, 1 }, .block = { 32, 1, 1 }, .forward = forward };
	bool direct;

	if (clock_ns >= looked_ns + LOOK_NS) {
		gi_blocks_look(&client, clock_ns);
		looked_ns = clock_ns;
	}
	cl.header.passed++;
	/* samples are read at the next one: all kernels of a phase take the same */
	if (block_ns)
		took_ns = block_ns;
	direct = gi_may_be_direct(&client, arb.header.flags, block_ns ? 0 : GSCHED_ARB_TIMED,
				  GI_BY_STREAM);
	if (!direct || !gi_blocks_left(&client))
		gi_blocks_launch(&client, &cx, &l, forward);
	clock_ns += block_ns > LAUNCH_NS ? block_ns : LAUNCH_NS;
}

/* Samples among @n launches of kernels from @first on */
static unsigned int launches(unsigned int n, unsigned int first, uint64_t block_ns)
{
	unsigned int before = events, i;

	for (i = 0; i < n; i++)
		launch(first + i * 7 % (KERNELS / 2), block_ns);
	return (events - before) / 2;
}

int main(void)
{
	unsigned int n, i, which;
	uint64_t since;

	gi_real.cuThreadExchangeStreamCaptureMode = exchange_mode;
	gi_real.cuOccupancyMaxActiveBlocksPerMultiprocessor = occupancy;
	gi_real.cuEventCreate = create;
	gi_real.cuEventRecord = record;
	gi_real.cuEventQuery = query;
	gi_real.cuEventElapsedTime = elapsed;
	for (i = 0; i < KERNELS; i++)
		fn[i].number = i + 1;
	if (!gi_blocks_new(&client))
		return 1;

	n = launches(6000, 0, 20 * US);
	ok(gi_blocks_us(&client) == 32 && n > 256 && n < 500,
	   "blocks of 20 us: up to 32 us, after %u samples (%u us)", n, gi_blocks_us(&client));
	n = launches(80000, 0, 20 * US);
	ok(gi_blocks_us(&client) == 32 && n > 100 && n <= 200,
	   "then %u samples in 2 s", n);
	since = clock_ns;
	for (i = 0; i < 1000 && gi_blocks_us(&client) < 1024; i++)
		launch(KERNELS - 1, 900 * US);
	ok(gi_blocks_us(&client) == 1024 && clock_ns - since < 100 * MS,
	   "blocks of 900 us come: known after %u ms (%u us)",
	   (unsigned int)((clock_ns - since) / MS), gi_blocks_us(&client));
	launches(120000, 0, 20 * US);
	ok(gi_blocks_us(&client) == 32, "none for 3 s: forgotten (%u us)", gi_blocks_us(&client));

	launch(0, 0);
	ok(!gi_blocks_us(&client) && client.untimed, "a graph: unknown");
	n = launches(30000, 0, 20 * US);
	ok(!gi_blocks_us(&client) && !n, "and no sample for most of a second (%u)", n);
	n = launches(20000, 0, 20 * US);
	ok(gi_blocks_us(&client) == 32 && n > 256,
	   "then as at first, %u samples (%u us)", n, gi_blocks_us(&client));
	for (i = 0, n = events; i < 200000; i++)
		launch(i % 8, i % 10 ? 20 * US : 0);
	ok(!gi_blocks_us(&client) && (events - n) / 2 < 20,
	   "a graph in ten launches: unknown, %u samples in 5 s", (events - n) / 2);
	ok(gi_may_be_direct(&client, arb.header.flags, GSCHED_ARB_TIMED, GI_BY_STREAM),
	   "and graphs are launched directly");

	launches(120000, 0, 20 * US);
	for (i = 0; i < 380000; i++) {
		n = i < 300000 ? events : n;
		/* which of them comes next, and where it is in a table, is as if by chance */
		which = (i * 2654435761u >> 8) % 300 + 1;
		grid = 8 + which * which * 7919 % 100003;
		launch(0, 20 * US);
	}
	n = (events - n) / 2;
	ok(n > 100 && n < 300, "of 300 kernels: %u samples in 2 s", n);
	for (i = 0, n = events; i < 200000; i++) {
		grid = 1000 + i;
		launch(0, 20 * US);
	}
	n = (events - n) / 2;
	ok(n > 1024 && n < 2000, "kernels that are always new: %u samples in 5 s", n);
	return done();
}
