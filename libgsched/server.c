// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Preloaded into an MPS server (and into the control daemon, which has no channel groups and is
 * left alone). One thread is the arbiter's client on every GPU on which the server has a channel
 * group, and sets the time slice that the arbiter asks for. Without an arbiter the server works the
 * same.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include <gsched.h>
#include <linux/gsched.h>
#include "follow.h"
#include "transport.h"

#define DEVICES		64
#define RETRY_MS	1000	/* poll interval for an arbiter, or for new channel groups */

struct device {
	uint8_t uuid[16];
	struct gsched *g;
	const struct gsched_arb_page *arb;
	struct gsched_cl_page *cl;
	struct gsched_slice_asked asked;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* protects n_seen, seen, runs */
static uint8_t seen[DEVICES][16];
static unsigned int n_seen;
static bool thread_runs;

/* Without an arbiter, return to the driver's default, which starves no process. */
static void detach_device(struct device *d)
{
	struct gsched_slice now;

	gsched_close(d->g);
	d->g = NULL;
	gsched_slice_set(d->uuid, 0, false, &now);
}

static void attach_device(struct device *d)
{
	const struct gsched_attach_opts opts = {
		.size = sizeof(opts), .mps = true, .slice = true, .server = true,
		.channel_group = gsched_slice_mps_group(),
	};

	d->g = gsched_open(NULL);
	if (!d->g)
		return;
	if (gsched_attach_with(d->g, d->uuid, &opts, NULL)) {
		gsched_close(d->g);
		d->g = NULL;
		return;
	}
	d->arb = gsched_arb_page(d->g, NULL);
	d->cl = gsched_cl_page(d->g, NULL);
	d->asked.groups = 0;
}

static void apply_slice(struct device *d)
{
	uint32_t us = __atomic_load_n(&d->arb->header.slice_us, __ATOMIC_ACQUIRE);
	bool block_end = __atomic_load_n(&d->arb->header.flags, __ATOMIC_ACQUIRE) &
			 GSCHED_ARB_BLOCK_END;
	struct gsched_slice now;

	gsched_slice_follow(&d->asked, d->uuid, us, block_end, d->g, &d->cl->header, &now);
}

/* Windows concern the server's clients. Here only the page and the end of the connection matter. */
static void read_events(struct device *d)
{
	struct gsched_event_info event;
	bool gone = false;
	int rc;

	while ((rc = gsched_event_read(d->g, &event)) > 0)
		gone = gone || event.type == GSCHED_EVENT_GONE;
	if (rc < 0 || gone)
		detach_device(d);
}

static void *slice_thread(void *arg)
{
	struct device device[DEVICES] = { 0 };
	struct pollfd fds[DEVICES];
	unsigned int n = 0, i;

	pthread_setname_np(pthread_self(), "gsched-slice");
	for (;;) {
		pthread_mutex_lock(&lock);
		for (; n < n_seen; n++)
			memcpy(device[n].uuid, seen[n], sizeof(seen[n]));
		pthread_mutex_unlock(&lock);
		for (i = 0; i < n; i++) {
			if (!device[i].g)
				attach_device(&device[i]);
			if (device[i].g)
				apply_slice(&device[i]);
			fds[i] = (struct pollfd){ .fd = device[i].g ? gsched_fd(device[i].g) : -1,
						  .events = POLLIN };
		}
		poll(fds, n, RETRY_MS);
		for (i = 0; i < n; i++)
			if (device[i].g && fds[i].revents)
				read_events(&device[i]);
		for (i = 0; i < n; i++)
			if (device[i].g && gsched_check(device[i].g))
				detach_device(&device[i]);
	}
	return arg;
}

static void group_seen(const uint8_t uuid[16])
{
	sigset_t all, before;
	unsigned int i;
	pthread_t thread;

	pthread_mutex_lock(&lock);
	for (i = 0; i < n_seen && memcmp(seen[i], uuid, sizeof(seen[i])); i++)
		;
	if (i == n_seen && n_seen < DEVICES)
		memcpy(seen[n_seen++], uuid, sizeof(seen[0]));
	if (!thread_runs) {
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		thread_runs = !pthread_create(&thread, NULL, slice_thread, NULL);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		if (thread_runs)
			pthread_detach(thread);
	}
	pthread_mutex_unlock(&lock);
}

/* A child that continues as a server does not have this thread. */
static void after_fork(void)
{
	static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;

	memcpy(&lock, &unlocked, sizeof(lock));
	n_seen = 0;
	thread_runs = false;
}

__attribute__((constructor)) static void start(void)
{
	pthread_atfork(NULL, NULL, after_fork);
	gsched_slice_seen = group_seen;
}
