// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A share of the device's time (libgsched/cuda/launch/pace.c): who gets how much, and how many
 * launches are tracked. The GPU is a queue; the test moves the clock, launches as the interposer
 * does, and looks as the agent does.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "code/code.h"
#include "launch/blocks.h"
#include "launch/direct.h"
#include "launch/launch.h"
#include "selftests/tap.h"

#define US	1000ull
#define MS	1000000ull
#define LOOK_NS	(500 * US)	/* of the agent */
#define CALL_NS	(2 * US)	/* a launch takes the host at least so long */
#define EVENT_NS	1500	/* an event takes the GPU so long */
#define HOLD_NS	(5 * US)	/* and it waits so long for a launch that is to be measured */
#define KERNELS	64

static struct gsched_arb_page arb = { .header.flags = GSCHED_ARB_PRIVATE | GSCHED_ARB_REPORT };
static struct gsched_cl_page cl;
static struct gi_tasks tasks = { .wake = -1 };
static struct gi_client client = { .arb = &arb, .cl = &cl, .sms = 8, .tasks = &tasks };
static struct gi_words words;
static struct gi_ctx cx = { .client = &client, .words = &words };
static struct gi_func fn[KERNELS];
static uint64_t clock_ns, looked_ns, gpu_end, gpu_ns, tracked;

/* The linker puts these in the place of the C library's, and of one that asks the driver */
int __wrap_clock_gettime(clockid_t id, struct timespec *ts);
int __wrap_usleep(useconds_t us);
void __wrap_gi_ctx_words(struct gi_ctx *of);

int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	ts->tv_sec = (time_t)(clock_ns / 1000000000);
	ts->tv_nsec = (long)(clock_ns % 1000000000);
	return 0;
}

static void look(void)
{
	if (clock_ns < looked_ns + LOOK_NS)
		return;
	looked_ns = clock_ns;
	gi_pace_poll(&client, clock_ns);
	gi_pace_activity(&client, clock_ns);
}

int __wrap_usleep(useconds_t us)
{
	clock_ns += us * US;
	return 0;
}

void __wrap_gi_ctx_words(struct gi_ctx *of)
{
}

/* ---- the driver; an event is the time when what was enqueued before it is over ---- */

static CUresult exchange_mode(CUstreamCaptureMode *mode)
{
	return CUDA_SUCCESS;
}

static CUresult attribute(int *value, CUfunction_attribute of, CUfunction function)
{
	*value = 0;
	return CUDA_SUCCESS;
}

static CUresult create(CUevent *event, unsigned int flags)
{
	uint64_t *at = calloc(1, sizeof(*at));

	*event = (CUevent)at;
	return at ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult destroy(CUevent event)
{
	free(event);
	return CUDA_SUCCESS;
}

static CUresult record(CUevent event, CUstream stream)
{
	gpu_end = (gpu_end > clock_ns ? gpu_end : clock_ns) + EVENT_NS;
	*(uint64_t *)event = gpu_end;
	return CUDA_SUCCESS;
}

static CUresult mem_op(CUstream stream, unsigned int n, CUstreamBatchMemOpParams *op,
		       unsigned int flags)
{
	gpu_end = (gpu_end > clock_ns ? gpu_end : clock_ns) + HOLD_NS;
	return CUDA_SUCCESS;
}

static CUresult query(CUevent event)
{
	return *(uint64_t *)event > clock_ns ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

static CUresult elapsed(float *ms, CUevent from, CUevent to)
{
	*ms = (float)(int64_t)(*(uint64_t *)to - *(uint64_t *)from) / 1e6f;
	return CUDA_SUCCESS;
}

/* ---- the test ---- */

static void launch(unsigned int kernel, uint64_t ns)
{
	const struct gi_launch l = { .fn = (CUfunction)&fn[kernel], .grid = { 8, 1, 1 },
				     .block = { 32, 1, 1 } };
	bool direct = gi_may_be_direct(&client, arb.header.flags, 0, GI_BY_STREAM);
	uint64_t batch = 0;

	look();
	if (!direct)
		batch = gi_pace_enter(&client, &cx, &l, NULL, &fn[kernel], true);
	clock_ns += CALL_NS;
	gpu_end = (gpu_end > clock_ns ? gpu_end : clock_ns) + ns;
	gpu_ns += ns;
	if (direct)
		client.untracked++;
	else
		gi_pace_leave(&client, &cx, &l, batch, true, true);
	tracked += !direct;
}

static void wait_until(uint64_t ns)
{
	while (clock_ns < ns) {
		clock_ns += 100 * US;
		look();
	}
}

/* From when on kernels are others */
static unsigned int kernels;

/*
 * Steps of @n launches for @ms: the first kernel takes @first_ns, the others take @ns and come each
 * @host_ns; then the program waits for the GPU. Returns the part of the GPU's time that it got, in
 * percent.
 */
static double steps(unsigned int ms, unsigned int n, uint64_t first_ns, uint64_t ns,
		    uint64_t host_ns)
{
	uint64_t begin = clock_ns, before = gpu_ns;
	unsigned int i;

	tracked = 0;
	while (clock_ns < begin + ms * MS) {
		for (i = 0; i < n; i++) {
			launch(kernels + (i ? 1 + i % 7 : 0), i ? ns : first_ns);
			clock_ns += host_ns - CALL_NS;
		}
		wait_until(gpu_end + 600 * US);
	}
	return 100.0 * (double)(gpu_ns - before) / (double)(clock_ns - begin);
}

static void set_share(unsigned int percent)
{
	arb.header.share = GSCHED_SHARE_ALL / 100 * percent;
	kernels += 8;
}

static double charged(void)
{
	return (double)cl.header.paced_ns / MS;
}

int main(void)
{
	double part, was, got;
	uint64_t held;
	unsigned int i;

	clock_ns = 1000 * MS;
	gi_real.cuThreadExchangeStreamCaptureMode = exchange_mode;
	gi_real.cuFuncGetAttribute = attribute;
	gi_real.cuEventCreate = create;
	gi_real.cuEventDestroy_v2 = destroy;
	gi_real.cuEventRecord = record;
	gi_real.cuEventQuery = query;
	gi_real.cuEventElapsedTime = elapsed;
	gi_real.cuStreamBatchMemOp_v2 = mem_op;
	for (i = 0; i < KERNELS; i++)
		fn[i].number = i + 1;
	if (!gi_pace_new(&client) || !gi_blocks_new(&client))
		return 1;

	set_share(50);
	part = steps(1000, 300, 20 * US, 5 * US, 20 * US);
	was = charged();
	held = cl.header.held_ns;
	ok(cl.header.held_ns < 5 * MS && tracked < 12000,
	   "less than its share: nothing is held back (%.1f %%)", part);
	part = steps(1000, 300, 20 * US, 5 * US, 20 * US);
	got = (charged() - was) / 10;
	ok(cl.header.held_ns == held && tracked < 6000,
	   "and few launches are tracked (%llu of 45000)", (unsigned long long)tracked);
	ok(got > part * 0.9 && got < part * 1.15, "charged: %.1f %% for %.1f %%", got, part);

	set_share(10);
	part = steps(2000, 300, 20 * US, 5 * US, 20 * US);
	ok(part > 8 && part < 11, "less than it wants: a tenth is %.1f %%, %llu tracked", part,
	   (unsigned long long)tracked);

	/* the first kernel of a step follows a pause, so it is tracked each time */
	set_share(60);
	steps(1000, 100, 1000 * US, 4 * US, 10 * US);
	was = charged();
	part = steps(1000, 100, 1000 * US, 4 * US, 10 * US);
	got = (charged() - was) / 10;
	ok(got > part * 0.85 && got < part * 1.15,
	   "a long kernel after each pause: charged %.1f %% for %.1f %%", got, part);

	set_share(25);
	part = steps(2000, 20, 1000 * US, 1000 * US, CALL_NS);
	ok(part > 24 && part < 26, "kernels of 1 ms: a quarter is %.1f %%", part);
	set_share(50);
	steps(500, 300, 20 * US, 5 * US, 20 * US);
	steps(1000, 100, 500 * US, 500 * US, CALL_NS);
	part = steps(1000, 100, 500 * US, 500 * US, CALL_NS);
	ok(part > 48 && part < 52,
	   "the same kernels now take 500 us: after a second half is %.1f %%", part);
	set_share(0);
	part = steps(100, 100, 500 * US, 500 * US, CALL_NS);
	ok(part > 95 && tracked < 10, "no share: %.1f %%, %llu tracked", part,
	   (unsigned long long)tracked);
	steps(1000, 300, 20 * US, 5 * US, 20 * US);
	ok(tracked > 100 && tracked < 400, "then the first launch after each of 150 pauses: %llu",
	   (unsigned long long)tracked);
	return done();
}
