// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What a pass over a client's tasks (libgsched/cuda/task/pass.c) learns from the time of a task
 * that has ended, when it reports the end, and how many workers a wing has: without a driver, and
 * with an arbiter that is gone or never asked.
 */
#include <pthread.h>
#include <string.h>
#include "task/task.h"
#include "selftests/tap.h"

#define SMS	8
#define M	8		/* workers an SM that fit */
#define ALL	(SMS * M)
#define SEQ	7
#define RAN_NS	100000ull

static struct gsched_arb_page arb;
static struct gsched_cl_page cl;
static struct gi_client client = { .arb = &arb, .cl = &cl, .sms = SMS, .gone = true };
static struct gi_words words;
static struct gsr_control blank[GSCHED_SLOTS];
static struct gi_ctx cx = { .client = &client, .words = &words, .blank = blank };
static struct gi_func fn;
static struct gi_shape shape;
static uint64_t ran_ns = RAN_NS;

static CUresult exchange_mode(CUstreamCaptureMode *mode)
{
	return CUDA_SUCCESS;
}

static CUresult get_current(CUcontext *ctx)
{
	*ctx = NULL;
	return CUDA_SUCCESS;
}

static CUresult set_current(CUcontext ctx)
{
	return CUDA_SUCCESS;
}

/* A slot with a control block, which nobody cleans here after the task before */
static int claim(void)
{
	int i;

	atomic_store(&cx.clean, ~0ull);
	atomic_store(&cx.dirty, 0);
	i = gi_slot_claim(&client, &cx, true);
	gi_control_claim(&cx, (unsigned int)i);
	return i;
}

/* A task of @blocks with @m workers an SM on @sms of the SMs began, runs for ran_ns and ends */
static void run_task(unsigned int sms, unsigned int m, uint64_t blocks, bool tuned)
{
	int i = claim();
	struct gi_slot *s = &client.tasks->slot[i];
	uint64_t now = gi_now();

	s->seq = SEQ;
	s->cx = &cx;
	s->fn = gi_func_hold(&fn);
	s->shape = &shape;
	s->save = NULL;
	s->graph = NULL;
	s->bound = NULL;
	s->tier = GSCHED_TIER_BLOCK;
	s->m = m;
	s->blocks = blocks;
	s->tuned = tuned;
	s->integral = 0;
	s->window = sms * GSCHED_CAPSM;
	s->window_since = now - ran_ns;
	s->launch_ns = now - ran_ns;
	arb.slot[i].window = s->window;
	cl.slot[i].start_ns = 1000;
	cl.slot[i].end_ns = 1000 + ran_ns;
	gi_slot_run(&client, i);
	cl.slot[i].retired = SEQ;
	gi_reap(&client);
	if (gi_slots_taken(client.tasks))
		gi_slot_give_up(&client, i);
}

static void afresh(void)
{
	memset(&shape, 0, sizeof(shape));
	shape.m[GI_TWIN] = M + 1;
	/* the first time begins a trial of the next smaller number */
	run_task(SMS, M, 10 * ALL, true);
}

/* What the tuning knows of one task: nothing, or how long it would have taken on all SMs */
static bool learnt(unsigned int which, uint64_t ns)
{
	return shape.tune.n_unpaired[which] == (ns != 0) &&
	       shape.tune.n_unpaired[!which] == 0 && (!ns || shape.tune.unpaired[which][0] == ns);
}

static unsigned int n_wings, wing_workers;
static struct gi_form form;
static char params[sizeof(struct gsr_launch)];

static CUresult mem_op(CUstream stream, unsigned int n, CUstreamBatchMemOpParams *op,
		       unsigned int flags)
{
	return CUDA_SUCCESS;
}

static CUresult launch(CUfunction f, unsigned int x, unsigned int y, unsigned int z,
		       unsigned int block_x, unsigned int block_y, unsigned int block_z,
		       unsigned int shared, CUstream stream, void **args, void **extra)
{
	n_wings++;
	wing_workers = x;
	return CUDA_SUCCESS;
}

/* One that runs with @m workers an SM on the whole device, of which @left have left */
static int begin(unsigned int m, bool tuned, uint32_t left)
{
	int i = claim();
	struct gi_slot *s = &client.tasks->slot[i];

	s->seq = SEQ;
	s->cx = &cx;
	s->fn = gi_func_hold(&fn);
	s->form = &form;
	s->params = params;
	s->shape = &shape;
	s->save = NULL;
	s->graph = NULL;
	s->bound = NULL;
	s->tier = GSCHED_TIER_BLOCK;
	s->m = m;
	s->arg = (struct gsr_launch){ .weight = GSCHED_CAPSM / m, .workers = m * SMS };
	s->blocks = 10 * ALL;
	s->tuned = tuned;
	s->launched = m * SMS;
	s->wings = 0;
	s->next_wing = 0;
	s->wing_gap = 0;
	s->launch_ns = gi_now();
	s->window_since = s->launch_ns;
	cl.slot[i].seq = SEQ;
	cl.slot[i].retired = 0;
	cl.slot[i].left = left;
	cl.slot[i].start_ns = 1000;
	cl.slot[i].end_ns = 1000 + RAN_NS;
	gi_slot_run(&client, i);
	return i;
}

static void end(int i)
{
	cl.slot[i].retired = SEQ;
	for (unsigned int k = 0; k < GI_WING_STREAMS; k++)
		words.done[k] = cx.wing_ticket[k];
	gi_reap(&client);
}

/* A window of two SMs, of which one has lost its workers */
static void wing_in_a_small_window(bool alone)
{
	unsigned int m = M - 1;
	int i = begin(m, true, (SMS - 1) * m);
	struct gi_slot *s = &client.tasks->slot[i];

	arb.header.flags = alone ? GSCHED_ARB_ALONE : 0;
	arb.slot[i].window = 2 * GSCHED_CAPSM;
	n_wings = 0;
	gi_reap(&client);
	ok(n_wings == 1 && wing_workers == (alone ? SMS * m : ALL) - m,
	   "%s: %u workers come, as many as the device has room for", alone ? "alone" : "among others",
	   wing_workers);
	if (!alone)
		ok(s->m == M && s->arg.weight == GSCHED_CAPSM / M && s->arg.workers == ALL,
		   "and all places of an SM are used");
	end(i);
	ok(!gi_slots_taken(client.tasks), "it ends with its wing");
}

/* The program waits for a wing, too, if it synchronizes its context */
static void a_task_ends_with_its_wings(void)
{
	uint64_t before = cl.header.leased_tasks;
	int i = begin(M, false, M);

	arb.slot[i].window = SMS * GSCHED_CAPSM;
	n_wings = 0;
	gi_reap(&client);
	ok(n_wings == 1 && wing_workers == M, "a whole window: those that are missing come");
	cl.slot[i].retired = SEQ;
	gi_reap(&client);
	ok(gi_slots_taken(client.tasks) && cl.header.leased_tasks == before,
	   "its last block-task is done, its wing is not: the end is not reported");
	end(i);
	ok(!gi_slots_taken(client.tasks) && cl.header.leased_tasks == before + 1, "now it is");
}

/* One that stood still for a hundred times as long */
static void outlier(void)
{
	uint64_t usual;

	afresh();
	run_task(SMS, M, 10 * ALL, false);
	usual = shape.predicted_ns;
	ran_ns = 100 * RAN_NS;
	run_task(SMS, M, 10 * ALL, false);
	ran_ns = RAN_NS;
	ok(usual && shape.predicted_ns > usual && shape.predicted_ns <= 2 * usual,
	   "a task that stood still hardly counts: %llu and %llu ns", (unsigned long long)usual,
	   (unsigned long long)shape.predicted_ns);
}

int main(void)
{
	pthread_mutex_init(&client.lock, NULL);
	pthread_mutex_init(&cx.save_lock, NULL);
	gi_real.cuThreadExchangeStreamCaptureMode = exchange_mode;
	gi_real.cuCtxGetCurrent = get_current;
	gi_real.cuCtxSetCurrent = set_current;
	gi_real.cuStreamBatchMemOp_v2 = mem_op;
	gi_real.cuLaunchKernel = launch;
	if (!gi_tasks_new(&client))
		return 1;
	afresh();
	ok(gi_tune_tries(&shape.tune) && learnt(0, 0) && shape.samples == 1,
	   "a first task begins a trial");
	run_task(SMS, M, 10 * ALL, true);
	ok(learnt(0, RAN_NS), "a task on all SMs counts for its time");
	afresh();
	run_task(SMS, M - 1, 10 * ALL, true);
	ok(learnt(1, RAN_NS), "and so does one of the trial");
	afresh();
	run_task(SMS / 2, M, 10 * ALL, true);
	ok(learnt(0, RAN_NS / 2), "on half of the SMs, for half of it");
	afresh();
	run_task(SMS / 4, M - 1, 10 * ALL, true);
	ok(learnt(1, RAN_NS / 4), "and a trial likewise");
	afresh();
	run_task(SMS / 2, M, ALL, true);
	ok(learnt(0, RAN_NS / 2), "with just as many blocks as workers, too");
	afresh();
	run_task(SMS / 2, M, ALL - 1, true);
	ok(learnt(0, 0), "with fewer its time says nothing of all SMs");
	run_task(SMS, M, ALL - 1, true);
	ok(learnt(0, RAN_NS), "but for one that had all");
	afresh();
	run_task(SMS, M, 10 * ALL, false);
	ok(learnt(0, 0) && shape.samples == 2, "one that was not tuned counts for other estimates only");
	outlier();
	client.gone = false;
	arb.header.lease = GSCHED_LEASE_FREE;
	wing_in_a_small_window(true);
	wing_in_a_small_window(false);
	a_task_ends_with_its_wings();
	gi_tasks_free(&client);
	return done();
}
