// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The agent, one thread per process and device. It makes passes over the tasks (task/pass.c), sets
 * the process's time slice and reports activity as the arbiter's page asks, and reconnects after
 * the arbiter has gone away. Where the program has closed our descriptors it sees the last tasks
 * through and ends, and the program goes on unmanaged.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "libgsched/transport.h"
#include "launch/timing.h"
#include "process/process.h"

/* keep polling after the last task, so the next need not wake us */
#define LINGER_NS	20000000
#define NAP_NS		1000000		/* most time between two passes while there is work */
#define ACTIVE_NS	500000		/* the same for a busy band that others wait for */

#define LOST	"the program has closed descriptors that it did not open"

/* false: another agent has taken over */
static bool lose(struct gi_client *c)
{
	if (atomic_exchange(&c->lost, true))
		return false;
	gi_client_gone(c, LOST);
	return true;
}

static void read_events(struct gi_client *c)
{
	struct gsched_event_info ev;
	int rc;

	if (atomic_load(&c->gone))
		return;
	/* windows are read from the page; an event only wakes the agent */
	while ((rc = gsched_event_read(c->g, &ev)) > 0)
		if (ev.type == GSCHED_EVENT_GONE)
			gi_client_gone(c, "the device was removed");
	if (rc < 0)
		gi_client_gone(c, "the arbiter is gone");
}

/*
 * Tries to reconnect after the arbiter died or took the device away. The new arbiter has other
 * pages, so all users of the old ones must be done: launches that began before, and their tasks.
 * The old pages stay mapped and pinned, since others (a lost task, for one) may still access them,
 * and unpinning waits for the device.
 */
static void try_reconnect(struct gi_client *c, uint64_t now, uint64_t *next_try)
{
	if (now < *next_try)
		return;
	*next_try = now + GI_RECONNECT_NS;
	/* launches that enter from here on see c->gone */
	if (atomic_load(&c->inside) || gi_slots_busy(c->tasks))
		return;
	atomic_store(&c->tasks->stuck_at, 0);
	/* what the new page asks for from the start comes without an event */
	if (!gi_client_reconnect(c))
		return;
	gi_slots_report_lost(c);
	gi_agent_wake(c);
}

/*
 * Whether something waits that only the arbiter can end: launches held back, an empty window. Then
 * an arbiter that is alive but stopped has to be detected.
 */
static bool depends_on_arbiter(const struct gi_client *c)
{
	const struct gi_tasks *t = c->tasks;
	uint64_t mask;

	if (atomic_load(&c->pacer->held_launches))
		return true;
	for (mask = gi_slots_in_flight(t); mask; mask &= mask - 1) {
		unsigned int i = __builtin_ctzll(mask);

		if (gi_load(&c->cl->slot[i].tier) == GSCHED_TIER_BLOCK &&
		    !gi_load(&c->arb->slot[i].window))
			return true;
	}
	return false;
}

/*
 * A real-time thread may spin until its kernel has ended, on the one processor that both may use.
 * With the priority that it inherits the agent would not run meanwhile, and launch no wing.
 */
static void come_before_spinners(void)
{
	struct sched_param param;
	int policy;

	if (pthread_getschedparam(pthread_self(), &policy, &param) ||
	    (policy != SCHED_FIFO && policy != SCHED_RR))
		return;
	param.sched_priority++;
	pthread_setschedparam(pthread_self(), policy, &param);
}

static void *agent_main(void *arg)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	struct gi_client *c = arg;
	uint64_t last = gi_now(), next_try = 0, n;
	bool lost = atomic_load(&c->lost);

	pthread_setname_np(pthread_self(), "gsched-agent");
	prctl(PR_SET_TIMERSLACK, 1000);
	come_before_spinners();
	gi_real.cuThreadExchangeStreamCaptureMode(&mode);
	for (;;) {
		struct pollfd fds[] = { { .fd = c->tasks->wake, .events = POLLIN },
					{ .fd = gsched_fd(c->g), .events = POLLIN } };
		struct timespec ts = { 0 };
		uint64_t now = gi_now();
		bool idle = false;

		if (lost)
			fds[0].fd = -1;
		if (atomic_load(&c->gone))
			fds[1].fd = -1;
		if (gi_slots_in_flight(c->tasks) ||
		    (!lost && c->activity != UINT_MAX && c->activity != GSCHED_ACTIVITY_IDLE))
			last = now;
		if (now - last > LINGER_NS) {
			/*
			 * A thread that launches after this store wakes the agent; a launch before
			 * it is seen below.
			 */
			atomic_store(&c->tasks->idle, true);
			idle = !gi_slots_in_flight(c->tasks) &&
			       !atomic_load(&c->pacer->in_flight) &&
			       !atomic_load(&c->pacer->waiting_since) &&
			       !atomic_load(&c->pacer->held_launches);
		}
		/* as for idle: a launch after this store sees it, an earlier one is seen below */
		atomic_store(&c->tasks->next_pass, now + NAP_NS);
		ts.tv_nsec = gi_tasks_due(c, now, c->activity <= GSCHED_ACTIVITY_BUSY &&
					  c->activity != GSCHED_ACTIVITY_IDLE ? ACTIVE_NS : NAP_NS);
		/* nothing wakes the agent when there is an arbiter again */
		if (idle && atomic_load(&c->gone))
			ts = (struct timespec){ .tv_sec = GI_RECONNECT_NS / 1000000000 };
		if (gi_slots_in_flight(c->tasks))
			atomic_store(&c->tasks->next_pass, 0);
		if (lost && idle && !atomic_load(&c->inside)) {
			atomic_store(&c->exiting, true);
			break;
		}
		ppoll(fds, 2, idle && !atomic_load(&c->gone) ? NULL : &ts, NULL);
		if (!lost && (!gsched_fd_ours(c->tasks->wake) || !gsched_intact(c->g))) {
			if (!lose(c))
				return NULL;
			lost = true;
			continue;
		}
		atomic_store(&c->tasks->idle, false);
		atomic_store(&c->tasks->next_pass, 0);
		if (fds[0].revents && read(c->tasks->wake, &n, sizeof(n)) < 0 && errno != EAGAIN)
			break;
		if (fds[1].revents)
			read_events(c);
		if (!atomic_load(&c->gone) && depends_on_arbiter(c) && gsched_check(c->g))
			gi_client_gone(c, "the arbiter does not answer");
		gi_pace_watch(c, gi_now());
		gi_timings_poll(c);
		pthread_mutex_lock(&c->lock);
		if (c->stop) {
			pthread_mutex_unlock(&c->lock);
			break;
		}
		gi_pass(c);
		gi_pace_poll(c, gi_now());
		gi_band_update(c);
		pthread_mutex_unlock(&c->lock);
		if (atomic_load(&c->gone) && !lost)
			try_reconnect(c, gi_now(), &next_try);
	}
	gi_pace_poll(c, UINT64_MAX);
	atomic_store(&c->tasks->unattended, true);
	return NULL;
}

/* The one before sleeps until one of its descriptors becomes ready, which may be never. */
void gi_agent_replace(struct gi_client *c)
{
	gi_client_gone(c, LOST);
	if (!gi_agent_start(c))
		return;
	atomic_store(&c->exiting, true);
	atomic_store(&c->tasks->unattended, true);
}

void gi_agent_stop(struct gi_client *c, uint64_t timeout_ns)
{
	uint64_t until = gi_now() + timeout_ns;

	atomic_store(&c->stop, true);
	gi_agent_wake(c);
	while (!atomic_load(&c->tasks->unattended) && gi_now() < until)
		usleep(50);
}

int gi_agent_start(struct gi_client *c)
{
	sigset_t all, before;
	pthread_t thread;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&thread, NULL, agent_main, c);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!rc)
		pthread_detach(thread);
	return rc ? -1 : 0;
}
