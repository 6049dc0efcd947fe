// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * When a launch wakes the agent (libgsched/cuda/process/agent.c): if the agent is idle, or if it
 * would nap for longer than the task takes while others may wait for the task's end. Without a
 * driver. The program's thread and the agent run in lockstep: the agent sleeps in ppoll() until the
 * test lets it go on, and the test moves the clock.
 */
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "launch/blocks.h"
#include "launch/candidate.h"
#include "launch/timing.h"
#include "libgsched/transport.h"
#include "process/process.h"
#include "selftests/tap.h"

#define SMS	8
#define US	1000ull
#define MS	1000000ull
#define LONG	(1000 * MS)	/* ts of a sleep without end */

static struct gsched_arb_page arb;
static struct gsched_cl_page cl;
static struct gi_words words;
static struct gi_func fn;
static struct gi_shape shape;
static sem_t asleep, go;
static _Atomic uint64_t clock_ns = 1000 * MS;
static _Atomic bool over;
static uint64_t nap_ns;		/* how long the agent would sleep now */

/* The linker puts these in the place of the C library's */
int __wrap_clock_gettime(clockid_t id, struct timespec *ts);
int __wrap_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *ts, const sigset_t *mask);

int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	uint64_t ns = atomic_fetch_add(&clock_ns, atomic_load(&over) ? US : 0);

	ts->tv_sec = (time_t)(ns / 1000000000);
	ts->tv_nsec = (long)(ns % 1000000000);
	return 0;
}

int __wrap_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *ts, const sigset_t *mask)
{
	if (!atomic_load(&over)) {
		nap_ns = ts ? (uint64_t)ts->tv_sec * 1000000000 + (uint64_t)ts->tv_nsec : LONG;
		sem_post(&asleep);
		sem_wait(&go);
	}
	return poll(fds, n, 0);
}

/* ---- an arbiter that grants the device, and a driver that does nothing ---- */

static int submit(struct gsched *g, struct gsched_submit *req, bool async)
{
	req->window = SMS * GSCHED_CAPSM;
	return 0;
}

static int complete(struct gsched *g, struct gsched_complete *req)
{
	return 0;
}

static int report(struct gsched *g, struct gsched_report *req, bool wait)
{
	return 0;
}

static const struct gsched_transport transport = {
	.submit = submit, .complete = complete, .report = report,
};
static struct gsched arbiter = {
	.ops = &transport, .fd = -1, .poll_fd = -1, .attach.size = sizeof(struct gsched_attach),
	.arb = &arb, .cl = &cl,
};
static struct gi_client client = {
	.arb = &arb, .cl = &cl, .sms = SMS, .g = &arbiter, .mps = true, .activity = ~0u,
};
static struct gi_ctx cx = { .client = &client, .words = &words, .prepared = GI_PREPARED };

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

static CUresult mem_op_rc;

static CUresult mem_op(CUstream stream, unsigned int n, CUstreamBatchMemOpParams *op,
		       unsigned int flags)
{
	return mem_op_rc;
}

static CUresult forward(const struct gi_launch *l)
{
	return CUDA_SUCCESS;
}

/* ---- the test ---- */

/* The agent wakes, makes a pass, and sleeps again */
static void agent_passes(void)
{
	sem_post(&go);
	sem_wait(&asleep);
}

/* How often the agent was woken since it fell asleep; it is still to see that */
static uint64_t wakes(void)
{
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): main() has made it */
	struct pollfd p = { .fd = client.tasks->wake, .events = POLLIN };
	uint64_t n = 0;

	if (poll(&p, 1, 0) != 1 || read(p.fd, &n, sizeof(n)) != sizeof(n) ||
	    write(p.fd, &n, sizeof(n)) != sizeof(n))
		return 0;
	return n;
}

/* A task that will take @predicted_ns, 0: nobody knows; whether this wakes the agent */
static bool launch_wakes(uint32_t lease, uint64_t predicted_ns)
{
	const struct gi_launch l = { .grid = { 4, 1, 1 }, .block = { 32, 1, 1 },
				     .forward = forward };
	const struct gi_candidate k = { .fn = &fn, .shape = &shape, .blocks = 4,
				     .leased = SMS * GSCHED_CAPSM };
	uint64_t before = wakes();
	bool refused = false;

	arb.header.lease = lease;
	shape.predicted_ns = predicted_ns;
	shape.samples = GI_TIMED_FIRST;
	shape.launches = 1;
	shape.original_m = 32;
	if (gi_launch_task(&l, &cx, &client, &k, &refused) || refused)
		ok(false, "a launch");
	return wakes() > before;
}

/* All tasks end, and the agent sees that: none is in flight when it sleeps again */
static void tasks_end(void)
{
	for (unsigned int i = 0; i < GSCHED_SLOTS; i++)
		cl.slot[i].retired = cl.slot[i].seq;
	agent_passes();
	agent_passes();
	if (gi_slots_taken(client.tasks))
		ok(false, "the tasks end");
}

static void among_others(void)
{
	static const struct {
		uint32_t lease;
		uint64_t after_ns, predicted_ns;
		bool woken;
		const char *what;
	} cases[] = {
		{ GSCHED_LEASE_NOTIFY, 0, 0, true, "it may be short" },
		{ GSCHED_LEASE_NOTIFY, 0, 100 * US, true, "it is short" },
		{ GSCHED_LEASE_NONE, 0, 100 * US, true, "it is short, and was granted" },
		{ GSCHED_LEASE_NOTIFY, 0, 5 * MS, false, "the nap ends before the task" },
		{ GSCHED_LEASE_NOTIFY, 950 * US, 100 * US, false, "the nap is nearly over" },
		{ GSCHED_LEASE_NOTIFY, 850 * US, 100 * US, true, "the nap is not quite over" },
		{ GSCHED_LEASE_FREE, 0, 100 * US, false, "nobody waits for its end" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t nap = nap_ns;
		bool woken;

		clock_ns += cases[i].after_ns;
		woken = launch_wakes(cases[i].lease, cases[i].predicted_ns);
		ok(nap == MS && woken == cases[i].woken,
		   "a task while the agent naps: %s: it is %swoken", cases[i].what,
		   cases[i].woken ? "" : "not ");
		tasks_end();
	}
}

/* The agent looks after a task that is in flight often enough for others, too */
static void more_tasks(void)
{
	bool first = launch_wakes(GSCHED_LEASE_NOTIFY, 100 * US);

	ok(first && !launch_wakes(GSCHED_LEASE_NOTIFY, 100 * US),
	   "two tasks in one nap: it is woken once");
	agent_passes();
	ok(nap_ns <= 50 * US, "then it looks again when they may have ended: in %llu us",
	   (unsigned long long)(nap_ns / US));
	ok(!launch_wakes(GSCHED_LEASE_NOTIFY, 100 * US), "until then a third one does not wake it");
	tasks_end();
}

/* The pages are not registered while the context that they were registered in is destroyed */
static void unmarked(void)
{
	mem_op_rc = CUDA_ERROR_INVALID_VALUE;
	launch_wakes(GSCHED_LEASE_NOTIFY, 100 * US);
	mem_op_rc = CUDA_SUCCESS;
	agent_passes();
	agent_passes();
	ok(!gi_slots_taken(client.tasks), "a launch whose end cannot be marked keeps no slot");
	tasks_end();
}

static void idle(void)
{
	clock_ns += 30 * MS;
	agent_passes();
	ok(nap_ns == LONG, "nothing was launched for long: it sleeps until it is woken");
	ok(launch_wakes(GSCHED_LEASE_FREE, 5 * MS), "which every task does");
	agent_passes();
	ok(nap_ns <= MS, "it naps");
	tasks_end();
}

int main(void)
{
	pthread_mutex_init(&client.lock, NULL);
	pthread_mutex_init(&cx.save_lock, NULL);
	sem_init(&asleep, 0, 0);
	sem_init(&go, 0, 0);
	gi_real.cuThreadExchangeStreamCaptureMode = exchange_mode;
	gi_real.cuCtxGetCurrent = get_current;
	gi_real.cuCtxSetCurrent = set_current;
	gi_real.cuStreamBatchMemOp_v2 = mem_op;
	if (!gi_tasks_new(&client) || !gi_pace_new(&client) || !gi_blocks_new(&client) ||
	    !gi_timings_new(&client) || gi_agent_start(&client))
		return 1;
	sem_wait(&asleep);
	among_others();
	more_tasks();
	unmarked();
	idle();
	atomic_store(&over, true);
	sem_post(&go);
	gi_agent_stop(&client, 1000 * MS);
	return done();
}
