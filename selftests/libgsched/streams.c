// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Streams of the program under the interposer on vgpu: what several threads put into them, and
 * their priorities.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "arbiter.h"
#include "run.h"
#include "selftests/vgpu/sched.h"

#define TIMES	16	/* as streams-app.c */
#define APP program, "selftests/libgsched/kernels.ptx"

static char program[] = BUILD "/test/libgsched/streams-app";

static struct fake f;
static _Atomic bool evicting;

/*
 * Each task is evicted as soon as it has begun, and let on some time after its workers have left:
 * half done, its stream is empty
 */
static void *evict(void *arg)
{
	const uint64_t whole = FAKE_SMS * GSCHED_CAPSM;
	unsigned int i, rounds[GSCHED_SLOTS] = { 0 };
	uint32_t evicted[GSCHED_SLOTS] = { 0 };

	for (; evicting; usleep(50)) {
		for (i = 0; i < GSCHED_SLOTS && f.cl; i++) {
			struct gsched_cl_slot *line = &f.cl->slot[i];
			uint32_t seq = line->seq;

			if (!seq || line->retired == seq || !line->start_ns)
				continue;
			if (evicted[i] != seq) {
				evicted[i] = seq;
				rounds[i] = 0;
				fake_window(&f, i, 0);
			} else if (f.arb->slot[i].window != whole && line->left >= line->launched &&
				   ++rounds[i] > 20) {
				fake_window(&f, i, whole);
				fake_event(&f, GSCHED_EVENT_GROW, i, seq, whole);
			}
		}
	}
	return NULL;
}

/* A run whose tasks are evicted, each once */
static void run_evicted(char *const what[], struct run *r)
{
	pthread_t thread;

	evicting = true;
	pthread_create(&thread, NULL, evict, NULL);
	run(true, what, r);
	evicting = false;
	pthread_join(thread, NULL);
}

static void begin(uint32_t lease, uint32_t flags)
{
	fake_start(&f);
	f.rewriter = real_rewriter;
	f.lease = lease;
	f.flags = flags;
}

/*
 * A launch of tier block is several calls, and others' come at any time between them: with pauses
 * in the driver between them, what they do still happens before the task or after it.
 */
static void order(uint32_t flags, char *const *what)
{
	struct run alone, r;

	run(false, what, &alone);
	ok(!alone.status && strstr(alone.text, ": 0 torn"), "the program alone");
	setenv("VGPU_DELAYS", "1:500", 1);
	begin(GSCHED_LEASE_NONE, flags);
	run_evicted(what, &r);
	unsetenv("VGPU_DELAYS");
	same(&r, &alone, "threads with streams in common");
	ok(f.cl && f.cl->header.managed[GSCHED_TIER_BLOCK] > 50 && f.cl->header.wings,
	   "by twins (%llu launches) and wings (%llu)",
	   (unsigned long long)(f.cl ? f.cl->header.managed[GSCHED_TIER_BLOCK] : 0),
	   (unsigned long long)(f.cl ? f.cl->header.wings : 0));
	fake_stop(&f);
}

static void orders(void)
{
	static char *const all[] = {
		APP, "kernels", "kernels-legacy", "copies", "copies-blocking", "copies-legacy",
		"copies-thread", "batches", "batches-legacy", "functions", NULL,
	};
	static char *const few[] = { APP, "kernels-original", NULL };

	order(0, all);
	/* launches that the arbiter need not know of, and whose thread blocks are timed */
	order(GSCHED_ARB_PASS | GSCHED_ARB_REPORT | GSCHED_ARB_TIMED, few);
}

/* A kernel may have failed before its launch, of several calls, is over: the launch has not. */
static void failed_meanwhile(void)
{
	static char *const what[] = { APP, "kernels", "fails", NULL };
	struct run alone, r;

	run(false, what, &alone);
	ok(!alone.status && strstr(alone.text, "700 700 700"), "a kernel that fails");
	for (unsigned int i = 1; i <= 3; i++) {
		char delays[16];

		snprintf(delays, sizeof(delays), "%u:5000", i);
		setenv("VGPU_DELAYS", delays, 1);
		begin(GSCHED_LEASE_NONE, 0);
		run(true, what, &r);
		same(&r, &alone, "a kernel that fails at once");
		ok(f.cl && f.cl->header.managed[GSCHED_TIER_BLOCK], "as a twin");
		fake_stop(&f);
	}
	unsetenv("VGPU_DELAYS");
}

/* What a reset makes good again is set up again, also where a kernel had failed. */
static void reset_after_failure(void)
{
	static char *const what[] = { APP, "reset", NULL };
	struct run alone, r;

	run(false, what, &alone);
	ok(!alone.status && strstr(alone.text, "8 launches"), "a reset after a kernel that fails");
	begin(GSCHED_LEASE_NONE, 0);
	run(true, what, &r);
	same(&r, &alone, "a reset after a kernel that fails");
	ok(f.cl && f.cl->header.managed[GSCHED_TIER_BLOCK] > 20, "twins before and behind it: %llu",
	   f.cl ? (unsigned long long)f.cl->header.managed[GSCHED_TIER_BLOCK] : 0);
	fake_stop(&f);
}

/*
 * Under MPS the driver does not get to the end of a failed assertion while a stream waits for a
 * word, such as for the end of the twin that failed.
 */
static void failed_assertion(void)
{
	static char *const what[] = { APP, "asserts", NULL };
	struct run alone, r;

	run(false, what, &alone);
	ok(!alone.status && strstr(alone.text, "710 710 710"), "a kernel's assertion");
	begin(GSCHED_LEASE_NONE, 0);
	run(true, what, &r);
	same(&r, &alone, "a kernel's assertion");
	ok(f.cl && f.cl->header.managed[GSCHED_TIER_BLOCK] > 1, "as a twin");
	fake_stop(&f);
}

/*
 * In a group with a priority the program's own keep their order, above all that programs without
 * one have
 */
static void priorities(void)
{
	static char *const what[] = { APP, "priorities", NULL };
	static const char lifted[] =
		"1: 0 0 -3\n0: 0 0 -3\n-1: -1 -1 -4\n-2: -2 -2 -4\n-3: -3 -3 -5\n-4: -4 -4 -5\n"
		"-5: -5 -5 -5\n-6: -5 -5 -5\nnone: 0 0 -3\nset: -2 -2 -4\nout of range: 1\n"
		"copied: -2 -2 -4\ndefault: 0 0 0\ngreen: -1 -1 -4\n";
	struct run alone, r;

	run(false, what, &alone);
	begin(GSCHED_LEASE_FREE, 0);
	run(true, what, &r);
	same(&r, &alone, "priorities in a group without one");
	fake_stop(&f);
	begin(GSCHED_LEASE_FREE, GSCHED_ARB_ALONE | GSCHED_ARB_PRIVATE);
	f.priority = 7;
	run(true, what, &r);
	same(&r, &alone, "priorities where nobody else is in the band");
	fake_stop(&f);
	begin(GSCHED_LEASE_FREE, 0);
	f.priority = 7;
	run(true, what, &r);
	if (!ok(!r.status && !strcmp(r.text, lifted),
		"priorities in a group with one: as asked, and lifted in their order"))
		printf("# %s", r.text);
	fake_stop(&f);
}

static bool is_over(pid_t pid)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid;
}

/* The least priority that a kernel on the GPU has until the program ends; 100: unknown */
static int least_priority(pid_t pid)
{
	char path[64];
	const struct vg_device *d;
	int fd, least = -100;
	unsigned int i;

	snprintf(path, sizeof(path), "/dev/shm/%s", getenv("VGPU_NAME"));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	d = mmap(NULL, sizeof(*d), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (d == MAP_FAILED)
		return 100;
	while (!is_over(pid)) {
		for (i = 0; i < VG_KERNELS_MAX; i++) {
			const volatile struct vg_entry *e = &d->entry[i];
			int priority = e->priority;

			if (e->used && e->total && priority > least)
				least = priority;
		}
		usleep(20);
	}
	munmap((void *)d, sizeof(*d));
	return least;
}

/* In a group with a priority wings are not queued behind blocks of programs without one. */
static void wings(void)
{
	static char *const what[] = { APP, "kernels", NULL };
	pthread_t thread;
	struct run r;
	int least, i;

	for (i = 0; i < 2; i++) {
		begin(GSCHED_LEASE_NONE, 0);
		f.priority = i ? 7 : 0;
		evicting = true;
		start(&r, true, what);
		pthread_create(&thread, NULL, evict, NULL);
		least = least_priority(r.pid);
		evicting = false;
		pthread_join(thread, NULL);
		finish(&r);
		ok(!r.status && f.cl && f.cl->header.wings && least == (i ? -3 : 0),
		   "%s a priority: %llu wings, the least has %d", i ? "with" : "without",
		   f.cl ? (unsigned long long)f.cl->header.wings : 0, least);
		fake_stop(&f);
	}
}

/* The app's kernels for a GPU that the rewriter does not rewrite for, in the test's directory */
static char *old_kernels(void)
{
	static char path[128];
	FILE *from = fopen("selftests/libgsched/kernels.ptx", "re"), *to;
	char line[512];

	snprintf(path, sizeof(path), "%s/old.ptx", f.dir);
	to = fopen(path, "we");
	while (from && to && fgets(line, sizeof(line), from))
		fputs(strncmp(line, ".target", 7) ? line : ".target sm_60\n", to);
	if (!from || !to || fclose(from) || fclose(to))
		abort();
	return path;
}

/*
 * Launches in default streams, whose priority no program can set, and those with one of their own,
 * as twins and as originals
 */
static void default_streams(void)
{
	static const struct {
		char *step;
		uint32_t lease, flags;
		int without, with;
		bool old;
	} cases[] = {
		{ "default-null", GSCHED_LEASE_NONE, 0, 0, -3, false },
		{ "default-thread", GSCHED_LEASE_NONE, 0, 0, -3, false },
		{ "default-ex", GSCHED_LEASE_NONE, 0, -1, -4, false },
		{ "default-cooperative", GSCHED_LEASE_NONE, 0, 0, -3, false },
		{ "default-old", GSCHED_LEASE_NONE, 0, 0, -3, false },
		{ "default-null", GSCHED_LEASE_NONE, 0, 0, -3, true },
		{ "default-late", GSCHED_LEASE_FREE, GSCHED_ARB_ALONE, 0, -3, true },
	};
	struct run alone, r;
	unsigned int i;
	int least;

	for (i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		bool with = i % 2;
		char *argv[] = { APP, cases[i / 2].step, NULL };

		run(false, argv, &alone);
		begin(cases[i / 2].lease, cases[i / 2].flags);
		f.priority = with ? 7 : 0;
		if (cases[i / 2].old)
			argv[1] = old_kernels();
		start(&r, true, argv);
		least = least_priority(r.pid);
		finish(&r);
		same(&r, &alone, argv[2]);
		ok(f.cl && least == (with ? cases[i / 2].with : cases[i / 2].without),
		   "%s%s, %s a priority: the least has %d", argv[2],
		   cases[i / 2].old ? ", no twins" : "", with ? "with" : "without", least);
		if (cases[i / 2].old)
			unlink(argv[1]);
		if (cases[i / 2].flags)
			ok(f.cl && f.cl->header.passed && !f.submits && !f.async_submits,
			   "and nobody is told");
		fake_stop(&f);
	}
}

/* A capture is over when its stream is destroyed: twins are loaded again. */
static void capture_dropped(void)
{
	static char *const what[] = { APP, "dropped", NULL };
	struct run alone, r;

	run(false, what, &alone);
	begin(GSCHED_LEASE_NONE, 0);
	run(true, what, &r);
	same(&r, &alone, "a capture that goes with its stream");
	ok(f.cl && f.cl->header.managed[GSCHED_TIER_BLOCK], "twins afterwards");
	fake_stop(&f);
}

/* A task that needs more memory of ours ends no capture. */
static void captured_beside(void)
{
	static char *const what[] = { APP, "captured-beside", NULL };
	struct run alone, r;

	run(false, what, &alone);
	ok(strstr(alone.text, "captured-beside: 0"), "a capture beside launches");
	setenv("GSCHED_RESUMABLE_ALWAYS", "1", 1);
	begin(GSCHED_LEASE_NONE, 0);
	run(true, what, &r);
	unsetenv("GSCHED_RESUMABLE_ALWAYS");
	same(&r, &alone, "a capture beside launches");
	ok(f.cl && f.cl->header.resumable > 2, "in the resumable form: %u",
	   f.cl ? (unsigned int)f.cl->header.resumable : 0);
	fake_stop(&f);
}

/* Kernels of graphs that have priorities of their own; the program sees those that it gave them. */
static void graphs(void)
{
	static char *const what[] = { APP, "captured", NULL };
	struct run alone, r;
	int least, i;

	run(false, what, &alone);
	ok(strstr(alone.text, "captured: -2\ninstantiated: -2 -2\nupdated: -2\n"), "a graph");
	for (i = 0; i < 4; i++) {
		begin(i & 1 ? GSCHED_LEASE_FREE : GSCHED_LEASE_NONE, i & 1 ? GSCHED_ARB_ALONE : 0);
		f.priority = i < 2 ? 0 : 7;
		start(&r, true, what);
		least = least_priority(r.pid);
		finish(&r);
		same(&r, &alone, "a graph whose kernels have priorities");
		ok(least == (i < 2 ? -2 : -4), "%s a priority: the least has %d",
		   i < 2 ? "without" : "with", least);
		fake_stop(&f);
	}
}

/*
 * The group gets a priority, or loses it, while the program runs: streams that it created before
 * keep theirs, and what it launches there has the right one all the same. The program sees nothing
 * of it.
 */
static void late_priorities(void)
{
	static const struct {
		char *step;
		uint32_t lease, flags;
		bool old;
	} cases[] = {
		{ "late-kernel", GSCHED_LEASE_NONE, 0, false },
		{ "late-ex", GSCHED_LEASE_NONE, 0, false },
		{ "late-cooperative", GSCHED_LEASE_NONE, 0, false },
		{ "late-wings", GSCHED_LEASE_NONE, 0, false },
		{ "late-kernel", GSCHED_LEASE_FREE, GSCHED_ARB_ALONE, true },
		{ "late-ex", GSCHED_LEASE_FREE, GSCHED_ARB_ALONE, true },
		{ "late-graph", GSCHED_LEASE_NONE, 0, false },
		{ "late-graph", GSCHED_LEASE_FREE, GSCHED_ARB_ALONE, true },
	};
	struct run alone, r;
	pthread_t thread;
	unsigned int i;
	int least;

	for (i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		const uint32_t before = i % 2 ? 7 : 0;
		bool wings = !strcmp(cases[i / 2].step, "late-wings");
		char *argv[] = { APP, cases[i / 2].step, NULL };

		start(&alone, false, argv);
		tell(&alone, "1");
		finish(&alone);
		begin(cases[i / 2].lease, cases[i / 2].flags);
		f.priority = before;
		if (cases[i / 2].old)
			argv[1] = old_kernels();
		start(&r, true, argv);
		ok(says(&r, "ready\n"), "%s%s", argv[2], cases[i / 2].old ? ", no twins" : "");
		__atomic_store_n(&f.arb->header.priority, 7 - before, __ATOMIC_RELEASE);
		evicting = wings;
		pthread_create(&thread, NULL, evict, NULL);
		tell(&r, "1");
		least = least_priority(r.pid);
		evicting = false;
		pthread_join(thread, NULL);
		finish(&r);
		same(&r, &alone, argv[2]);
		ok(f.cl && (!wings || f.cl->header.wings) && least == (before ? 0 : -3),
		   "%s a priority: the least has %d", before ? "lost" : "got", least);
		if (cases[i / 2].old)
			unlink(argv[1]);
		if (cases[i / 2].flags)
			ok(f.cl && f.cl->header.passed && !f.submits && !f.async_submits,
			   "and nobody is told");
		fake_stop(&f);
	}
}

/*
 * Where all streams share one queue of the hardware a wing would stand behind its own task's gate
 */
static void queues(void)
{
	static char *const what[] = { APP, "kernels", NULL };
	struct run r;

	setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1", 1);
	begin(GSCHED_LEASE_NONE, 0);
	run(true, what, &r);
	unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
	ok(!r.status && f.cl && !f.cl->header.managed[GSCHED_TIER_BLOCK] &&
	   f.cl->header.managed[GSCHED_TIER_LAUNCH],
	   "one queue of the hardware: originals, in tier launch");
	ok(f.cl && strstr(f.cl->header.why, "CUDA_DEVICE_MAX_CONNECTIONS=1: tier launch"),
	   "and the page says why: %s", f.cl ? f.cl->header.why : "");
	fake_stop(&f);
}

/*
 * Four streams in four hardware queues: with a done gate in each no wing would come through. So
 * some tasks have none, and are of tier launch: no window holds them, and they count for the share
 * of time. The first step has the twin loaded before there are threads.
 */
static void gates(void)
{
	static char app[] = BUILD "/test/libgsched/app";
	static char *const what[] = { app, "selftests/libgsched/kernels.ptx", "plain", "threads",
				      NULL };
	struct run alone, r;

	setenv("CUDA_DEVICE_MAX_CONNECTIONS", "4", 1);
	run(false, what, &alone);
	begin(GSCHED_LEASE_NONE, 0);
	f.share = GSCHED_SHARE_ALL / 2;
	run_evicted(what, &r);
	unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
	same(&r, &alone, "four streams in four hardware queues");
	ok(f.cl && f.cl->header.paced_ns, "tasks without a gate are charged: %llu ns",
	   (unsigned long long)(f.cl ? f.cl->header.paced_ns : 0));
	ok(f.cl && f.cl->header.wings && f.cl->header.managed[GSCHED_TIER_BLOCK] &&
		   f.cl->header.managed[GSCHED_TIER_LAUNCH],
	   "some tasks have gates and wings, others are of tier launch: %llu, %llu",
	   (unsigned long long)(f.cl ? f.cl->header.managed[GSCHED_TIER_BLOCK] : 0),
	   (unsigned long long)(f.cl ? f.cl->header.managed[GSCHED_TIER_LAUNCH] : 0));
	fake_stop(&f);
}

/*
 * The arbiter dies, and two tasks that have done gates are evicted. Streams that wait for them
 * would take the last hardware queue, and the wings of the second task would not come.
 */
static void waits_without_arbiter(char *how)
{
	char *const what[] = { APP, how, NULL };
	struct run alone, r;

	setenv("CUDA_DEVICE_MAX_CONNECTIONS", "4", 1);
	start(&alone, false, what);
	tell(&alone, "1");
	finish(&alone);
	begin(GSCHED_LEASE_NONE, 0);
	f.closed = true;
	start(&r, true, what);
	says(&r, "ready\n");
	ok(f.submits == 2, "two tasks with gates, and no place to run");
	fake_stop(&f);
	tell(&r, "1");
	finish(&r);
	unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
	same(&r, &alone, how);
}

/* A default stream that has waited takes one hardware queue, whichever threads used it. */
static void threads_that_waited(void)
{
	static char *const what[] = { APP, "waiters", NULL };
	struct run alone, r;

	setenv("CUDA_DEVICE_MAX_CONNECTIONS", "4", 1);
	run(false, what, &alone);
	begin(GSCHED_LEASE_NONE, 0);
	run(true, what, &r);
	unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
	same(&r, &alone, "default streams of many threads");
	ok(f.cl && f.cl->header.managed[GSCHED_TIER_BLOCK] == 5, "twins afterwards: %llu of 5",
	   f.cl ? (unsigned long long)f.cl->header.managed[GSCHED_TIER_BLOCK] : 0);
	fake_stop(&f);
}

/* Wings wait for whatever their context waits for, which may be the end of their own task. */
static void context_waits(void)
{
	static char *const what[] = { APP, "context-waits", NULL };
	struct run alone, r;
	uint64_t wings = 0;

	run(false, what, &alone);
	ok(strstr(alone.text, "8 launches"), "a context that waits for an event");
	/* on a busy machine a run may be over before anything is evicted */
	for (unsigned int i = 0; i < 5 && !wings; i++) {
		begin(GSCHED_LEASE_NONE, 0);
		run_evicted(what, &r);
		same(&r, &alone, "evicted meanwhile");
		wings = f.cl ? f.cl->header.wings : 0;
		fake_stop(&f);
	}
	ok(wings, "with %llu wings", (unsigned long long)wings);
}

/*
 * Hardware queues cost time at the start, and memory: asked for where there are few, of an MPS
 * server
 */
static void queues_asked(void)
{
	static char *const what[] = { APP, "queues", NULL };
	char pipe[] = "/tmp/streams-XXXXXX", control[64];
	struct run r;
	FILE *made;

	if (!mkdtemp(pipe))
		abort();
	snprintf(control, sizeof(control), "%s/control", pipe);
	setenv("CUDA_MPS_PIPE_DIRECTORY", pipe, 1);
	begin(GSCHED_LEASE_NONE, 0);
	run(true, what, &r);
	ok(!strcmp(r.text, "none\n"), "without MPS no hardware queues are asked for: %s", r.text);
	made = fopen(control, "w");
	if (!made || fclose(made))
		abort();
	run(true, what, &r);
	ok(!strcmp(r.text, "4\n"), "a program of an MPS server has four: %s", r.text);
	setenv("CUDA_DEVICE_MAX_CONNECTIONS", "8", 1);
	run(true, what, &r);
	ok(!strcmp(r.text, "8\n"), "or what it asks for itself: %s", r.text);
	unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
	fake_stop(&f);
	run(true, what, &r);
	ok(!strcmp(r.text, "none\n"), "without an arbiter none are: %s", r.text);
	unsetenv("CUDA_MPS_PIPE_DIRECTORY");
	unlink(control);
	rmdir(pipe);
}

static bool becomes(uint32_t activity)
{
	unsigned int i;

	for (i = 0; i < 10000 && __atomic_load_n(&f.last_report.activity,
						 __ATOMIC_ACQUIRE) != activity; i++)
		usleep(1000);
	return f.last_report.activity == activity;
}

/* A launch that waits, for the gate or for its grant, keeps no other thread from what it does */
static void waiting(void)
{
	static char *const what[] = { APP, "waiting", NULL };
	unsigned int submits;
	struct run r;

	begin(GSCHED_LEASE_FREE, GSCHED_ARB_ALONE | GSCHED_ARB_PRIVATE | GSCHED_ARB_REPORT);
	start(&r, true, what);
	ok(says(&r, "ready\n"), "two contexts");
	__atomic_fetch_or(&f.arb->header.flags, GSCHED_ARB_CLOSED, __ATOMIC_RELEASE);
	tell(&r, "1");
	ok(becomes(GSCHED_ACTIVITY_WAITING), "a launch waits for its band's turn");
	tell(&r, "2");
	ok(says(&r, "destroyed\n"), "and a context can be destroyed");
	__atomic_fetch_and(&f.arb->header.flags, ~GSCHED_ARB_CLOSED, __ATOMIC_RELEASE);
	finish(&r);
	ok(!r.status, "the launch goes on");
	fake_stop(&f);

	begin(GSCHED_LEASE_NONE, GSCHED_ARB_REPORT);
	start(&r, true, what);
	ok(says(&r, "ready\n"), "two contexts");
	pthread_mutex_lock(&f.lock);
	f.hold_grants = true;
	submits = f.submits;
	pthread_mutex_unlock(&f.lock);
	tell(&r, "1");
	ok(fake_wait(&f, &f.submits, submits + 1), "a launch waits for its grant");
	tell(&r, "2");
	ok(says(&r, "destroyed\n"), "and a context can be destroyed");
	fake_grant(&f);
	finish(&r);
	ok(!r.status, "the launch goes on");
	fake_stop(&f);
}

/* All tasks may have the whole device from now on */
static void open_windows(void)
{
	const uint64_t whole = FAKE_SMS * GSCHED_CAPSM;
	unsigned int i;

	pthread_mutex_lock(&f.lock);
	f.closed = false;
	pthread_mutex_unlock(&f.lock);
	for (i = 0; i < GSCHED_SLOTS; i++) {
		fake_window(&f, i, whole);
		if (f.cl->slot[i].seq)
			fake_event(&f, GSCHED_EVENT_GROW, i, f.cl->slot[i].seq, whole);
	}
}

/* A thread that is cancelled in one of its calls leaves nothing behind that others wait for. */
static void cancelled(char *how)
{
	char *const what[] = { APP, how, NULL };
	struct run alone, r;

	start(&alone, false, what);
	tell(&alone, "1");
	finish(&alone);
	begin(GSCHED_LEASE_NONE, 0);
	f.closed = true;
	f.hold_rewrites = !strcmp(how, "cancelled-launching");
	start(&r, true, what);
	ok(says(&r, "ready\n"), "%s: a thread is cancelled", how);
	fake_rewrite(&f);
	open_windows();
	tell(&r, "1");
	finish(&r);
	same(&r, &alone, how);
	fake_stop(&f);
}

/* A launch is not held back for ever by a call that waits for what it is to release. */
static void held_back(void)
{
	static char *const what[] = { APP, "unloading", NULL };
	struct run alone, r;

	run(false, what, &alone);
	ok(strstr(alone.text, "unloading: 5 launches"), "a launch while a module is unloaded");
	begin(GSCHED_LEASE_NONE, 0);
	run(true, what, &r);
	same(&r, &alone, "a launch while a module is unloaded");
	ok(f.cl && f.cl->header.managed[GSCHED_TIER_BLOCK] == 4 &&
	   f.cl->header.managed[GSCHED_TIER_LAUNCH] == 2, "it is the original: %llu, %llu",
	   f.cl ? (unsigned long long)f.cl->header.managed[GSCHED_TIER_BLOCK] : 0,
	   f.cl ? (unsigned long long)f.cl->header.managed[GSCHED_TIER_LAUNCH] : 0);
	fake_stop(&f);
}

/*
 * Under CUDA_LAUNCH_BLOCKING a launch ends when its kernel does, however often that is evicted. The
 * simulated driver does not wait, but twins have to end.
 */
static void blocking_launches(void)
{
	static char *const what[] = { APP, "blocking-launches", NULL };
	struct run r;

	setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
	begin(GSCHED_LEASE_NONE, 0);
	run_evicted(what, &r);
	unsetenv("CUDA_LAUNCH_BLOCKING");
	ok(!r.status && !strcmp(r.text, "blocking-launches: 0 early\n"),
	   "launches that wait for their kernels: %s", r.text);
	ok(f.cl && f.cl->header.wings && f.cl->header.managed[GSCHED_TIER_BLOCK] == TIMES,
	   "all are twins: %llu",
	   f.cl ? (unsigned long long)f.cl->header.managed[GSCHED_TIER_BLOCK] : 0);
	fake_stop(&f);
}

/* The arbiter hears that a program is idle only when nothing of it runs in any stream */
static void busy(char *how)
{
	char *const what[] = { APP, how, NULL };
	struct run r;

	begin(GSCHED_LEASE_FREE, GSCHED_ARB_ALONE | GSCHED_ARB_PRIVATE | GSCHED_ARB_REPORT);
	start(&r, true, what);
	ok(says(&r, "ready\n") && fake_wait(&f, &f.reports, 1), "the arbiter is told");
	tell(&r, "1");
	ok(says(&r, "alone\n"), "one kernel is left, in a thread's own stream or another context");
	/* long enough for the agent to say so if it took it for over */
	usleep(300000);
	ok(f.last_report.activity == GSCHED_ACTIVITY_BUSY, "and the program is busy (%u)",
	   f.last_report.activity);
	tell(&r, "1");
	finish(&r);
	ok(!r.status, "it ends");
	fake_stop(&f);
}

/*
 * To know when the program is idle somebody waits for launches that nobody looked at, in all of its
 * contexts: whoever destroys one of these does not wait for what runs in another.
 */
static void busy_elsewhere(void)
{
	static char *const what[] = { APP, "apart", NULL };
	struct run r;

	begin(GSCHED_LEASE_FREE, GSCHED_ARB_ALONE | GSCHED_ARB_PRIVATE);
	start(&r, true, what);
	ok(says(&r, "ready\n") && !f.reports, "a kernel that waits for its program");
	__atomic_fetch_or(&f.arb->header.flags, GSCHED_ARB_REPORT, __ATOMIC_RELEASE);
	fake_event(&f, GSCHED_EVENT_BAND, 0, 0, 0);
	ok(becomes(GSCHED_ACTIVITY_BUSY), "somebody asks");
	/* until that has been waited for that is over */
	usleep(200000);
	tell(&r, "1");
	ok(says(&r, "destroyed\n"), "another context can be destroyed");
	finish(&r);
	ok(!r.status, "it ends");
	fake_stop(&f);
}

/* Whoever asks in the middle of a launch that nobody looked at hears of its kernel all the same */
static void busy_after_a_slow_launch(void)
{
	static char *const what[] = { APP, "slow-launch", NULL };
	struct run r;

	setenv("VGPU_DELAYS", "1:300000", 1);
	begin(GSCHED_LEASE_FREE, GSCHED_ARB_ALONE | GSCHED_ARB_PRIVATE);
	start(&r, true, what);
	ok(says(&r, "ready\n") && !f.reports, "nobody asks");
	tell(&r, "1");
	usleep(20000);
	__atomic_fetch_or(&f.arb->header.flags, GSCHED_ARB_REPORT, __ATOMIC_RELEASE);
	fake_event(&f, GSCHED_EVENT_BAND, 0, 0, 0);
	ok(fake_wait(&f, &f.reports, 1) && says(&r, "launched\n"),
	   "somebody asks before it is launched");
	/* long enough for the agent to say so if it took it for idle */
	usleep(400000);
	ok(f.last_report.activity == GSCHED_ACTIVITY_BUSY, "and the program is busy (%u)",
	   f.last_report.activity);
	ok(says(&r, "over\n"), "until its kernel is over");
	tell(&r, "1");
	finish(&r);
	unsetenv("VGPU_DELAYS");
	fake_stop(&f);
}

/*
 * Where activity is reported most launches leave no event; it is known all the same. In an MPS
 * band, which is not private, some launches have slots: their times are learnt.
 */
static void busy_with_untracked_launches(uint32_t flags)
{
	static char *const what[] = { APP, "untracked", NULL };
	const struct gsched_cl_header *h;
	struct run r;

	begin(GSCHED_LEASE_FREE, flags | GSCHED_ARB_ALONE | GSCHED_ARB_REPORT);
	start(&r, true, what);
	ok(says(&r, "ready\n"), "many launches");
	tell(&r, "1");
	ok(says(&r, "launched\n") && becomes(GSCHED_ACTIVITY_BUSY), "it is busy");
	/* long enough for the agent to say so if it took it for idle */
	usleep(400000);
	ok(f.last_report.activity == GSCHED_ACTIVITY_BUSY && !strstr(r.text, "over"),
	   "and stays so while a kernel runs that was not looked at (%u)", f.last_report.activity);
	h = &f.cl->header;
	ok((flags ? h->passed == 2004 : h->passed > 1500) && h->paced_ns < 1000000000,
	   "launches: %llu", (unsigned long long)h->passed);
	ok(says(&r, "over\n") && becomes(GSCHED_ACTIVITY_IDLE), "then it is idle");
	tell(&r, "1");
	finish(&r);
	ok(!r.status, "and ends as it should");
	fake_stop(&f);
}

static bool becomes_longer(unsigned int us)
{
	unsigned int i;

	for (i = 0; i < 10000 && __atomic_load_n(&f.block_us, __ATOMIC_ACQUIRE) < us; i++)
		usleep(1000);
	return f.block_us >= us;
}

static bool becomes_unknown(void)
{
	unsigned int i;

	for (i = 0; i < 10000 && __atomic_load_n(&f.block_us, __ATOMIC_ACQUIRE); i++)
		usleep(1000);
	return !f.block_us;
}

/*
 * How long thread blocks take is told where the arbiter asks for it, until something cannot be
 * measured
 */
static void thread_blocks(void)
{
	static char *const what[] = { APP, "blocks", NULL };
	unsigned int brief;
	struct run r;

	begin(GSCHED_LEASE_FREE, GSCHED_ARB_ALONE | GSCHED_ARB_PRIVATE | GSCHED_ARB_REPORT |
	      GSCHED_ARB_TIMED);
	start(&r, true, what);
	ok(says(&r, "ready\n") && !f.block_reports, "nothing is known at first");
	tell(&r, "1");
	ok(says(&r, "short\n") && fake_wait(&f, &f.block_reports, 1),
	   "it is, after some hundred short kernels");
	brief = f.block_us;
	ok(brief, "thread blocks of up to %u us", brief);
	tell(&r, "1");
	ok(says(&r, "long\n") && becomes_longer(8 * brief),
	   "the same kernel can take far longer");
	tell(&r, "1");
	ok(says(&r, "graph\n") && becomes_unknown(), "a graph: not known");
	tell(&r, "1");
	finish(&r);
	ok(!r.status, "it ends");
	fake_stop(&f);

	begin(GSCHED_LEASE_FREE, GSCHED_ARB_ALONE | GSCHED_ARB_PRIVATE | GSCHED_ARB_REPORT);
	start(&r, true, what);
	for (int i = 0; i < 4; i++) {
		says(&r, i == 3 ? "graph\n" : i == 2 ? "long\n" : i ? "short\n" : "ready\n");
		tell(&r, "1");
	}
	finish(&r);
	ok(!r.status && !f.block_reports, "where nobody asks nothing is told");
	fake_stop(&f);
}

int main(void)
{
	char shm[64];

	snprintf(shm, sizeof(shm), "/dev/shm/gsched-streams-%d", (int)getpid());
	setenv("VGPU_NAME", shm + strlen("/dev/shm/"), 1);
	setenv("VGPU_SMS", "8", 1);
	orders();
	failed_meanwhile();
	failed_assertion();
	reset_after_failure();
	priorities();
	default_streams();
	graphs();
	capture_dropped();
	captured_beside();
	late_priorities();
	wings();
	queues();
	gates();
	waits_without_arbiter("chain");
	waits_without_arbiter("chain-values");
	waits_without_arbiter("chain-batches");
	threads_that_waited();
	context_waits();
	queues_asked();
	waiting();
	cancelled("cancelled-freeing");
	cancelled("cancelled-launching");
	held_back();
	blocking_launches();
	busy("busy");
	busy("busy-contexts");
	busy_elsewhere();
	thread_blocks();
	busy_after_a_slow_launch();
	busy_with_untracked_launches(GSCHED_ARB_PRIVATE);
	busy_with_untracked_launches(0);
	unlink(shm);
	return done();
}
