// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What a pass over a client's tasks (libgsched/cuda/task/pass.c) learns from the time of a task that
 * has ended, for the tuning of workers: without a driver, and with an arbiter that is gone.
 */
#include <pthread.h>
#include <string.h>
#include "task/task.h"
#include "tap.h"

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

static CUresult get_current(CUcontext *ctx)
{
	*ctx = NULL;
	return CUDA_SUCCESS;
}

static CUresult set_current(CUcontext ctx)
{
	return CUDA_SUCCESS;
}

/* A task of @blocks with @m workers an SM on @sms of the SMs began, runs for RAN_NS and ends */
static void run_task(unsigned int sms, unsigned int m, uint64_t blocks, bool tuned)
{
	int i = gi_slot_claim(&client, &cx, true);
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
	s->window_since = now - RAN_NS;
	s->launch_ns = now - RAN_NS;
	arb.slot[i].window = s->window;
	cl.slot[i].start_ns = 1000;
	cl.slot[i].end_ns = 1000 + RAN_NS;
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
	atomic_store(&cx.clean, ~0ull);
	/* the first time begins a trial of the next smaller number */
	run_task(SMS, M, 10 * ALL, true);
}

/* What the tuning knows of one task: nothing, or how long it would have taken on all SMs */
static bool learnt(unsigned int which, uint64_t ns)
{
	return shape.tune.n_unpaired[which] == (ns != 0) &&
	       shape.tune.n_unpaired[!which] == 0 && (!ns || shape.tune.unpaired[which][0] == ns);
}

int main(void)
{
	pthread_mutex_init(&client.lock, NULL);
	pthread_mutex_init(&cx.save_lock, NULL);
	gi_real.cuCtxGetCurrent = get_current;
	gi_real.cuCtxSetCurrent = set_current;
	if (!gi_tasks_new(&client))
		return 1;
	afresh();
	ok(gi_tune_tries(&shape.tune) && learnt(0, 0) && shape.samples == 1, "a first task begins a trial");
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
	gi_tasks_free(&client);
	return done();
}
