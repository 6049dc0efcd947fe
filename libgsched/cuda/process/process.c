// SPDX-License-Identifier: LGPL-2.1-or-later
/* The process: its first use of the driver, the child of a fork, and exit. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "libgsched/slice.h"
#include "libgsched/transport.h"
#include "launch/blocks.h"
#include "launch/timing.h"
#include "process/process.h"

#define EXIT_NS		2000000000	/* most wait for tasks at exit */
#define LOAD_EXIT_NS	20000000000	/* for a twin that the driver compiles */
#define AGENT_NS	2000000000	/* ... for the agent, which a busy host may delay */
#define UNTRACKED_NS	100000000	/* ... and for a thread that waits for untracked launches */

/*
 * The child of a fork has no CUDA and no threads. It starts with empty tables, and must not keep
 * the parent's connections open.
 */
static void after_fork(void)
{
	struct gi_client *c;

	for (c = gi_client_next(NULL); c; c = gi_client_next(c)) {
		if (!c->g)
			continue;
		gsched_fd_close(c->tasks->wake);
		gsched_abandon(c->g);
	}
	gi_client_reset();
	gi_memory_reset();
	gi_stream_reset();
	gi_context_reset();
	gi_primary_reset();
	gi_image_reset();
	gi_link_reset();
	gi_func_reset();
	gi_graph_reset();
	gi_twin_reset();
	gi_references_reset();
}

/*
 * The driver shuts down during exit, so the agents have to stop before. Later destructors may still
 * wait for launched work, so first every task is released to end without the agent. No lock is
 * taken, because its holder may be a thread that has stopped.
 */
static void at_exit(void)
{
	struct gi_client *c;

	/* from here on, launches go straight to the driver */
	for (c = gi_client_next(NULL); c; c = gi_client_next(c)) {
		atomic_store(&c->exiting, true);
		if (c->g)
			gi_tasks_release(c);
	}
	gi_twin_stop(LOAD_EXIT_NS);
	for (c = gi_client_next(NULL); c; c = gi_client_next(c)) {
		if (!c->g)
			continue;
		if (!gi_tasks_wait_quiescent(c, EXIT_NS))
			gi_debug("the program ends with tasks that may not");
		if (c->pacer)
			gi_pace_stop(c, UNTRACKED_NS);
		gi_agent_stop(c, AGENT_NS);
	}
}

static void register_handlers(void)
{
	pthread_atfork(NULL, NULL, after_fork);
	atexit(at_exit);
}

static bool client_made(struct gi_client *c)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	/* registered after the driver's handlers, so that ours run first */
	pthread_once(&once, register_handlers);
	if (!c->g)
		return true;
	if (!gi_tasks_new(c))
		return false;
	if (gi_pace_new(c) && gi_blocks_new(c) && gi_timings_new(c) && !gi_agent_start(c))
		return true;
	gi_tasks_free(c);
	return false;
}

/* A new channel group shares the process's time, so wake the agent. Clients are never freed. */
static void group_seen(const uint8_t uuid[16])
{
	struct gi_client *c;

	for (c = gi_client_next(NULL); c; c = gi_client_next(c))
		if (c->g && c->tasks && !memcmp(c->gpu.bytes, uuid, sizeof(c->gpu.bytes)))
			gi_agent_wake(c);
}

static void begin_once(void)
{
	bool found;

	gi_client_made = client_made;
	gi_agent_lost = gi_agent_replace;
	gsched_slice_seen = group_seen;
	gsched_memory_changed = gi_memory_changed;
	gi_twin_pause = (struct gi_pause){
		.tasks_begin = gi_tasks_quiesce, .tasks_end = gi_tasks_resume,
		.context_begin = gi_tasks_quiesce_context, .context_end = gi_tasks_resume_context,
	};
	found = gi_driver();
	gi_hot.current = gi_real.cuCtxGetCurrent;
	gi_hot.launch_kernel = gi_real.cuLaunchKernel;
	gi_hot.launch_kernel_ex = gi_real.cuLaunchKernelEx;
	__atomic_store_n(&gi_hot.begun, found, __ATOMIC_RELEASE);
}

bool gi_begin(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, begin_once);
	return __atomic_load_n(&gi_hot.begun, __ATOMIC_ACQUIRE);
}
