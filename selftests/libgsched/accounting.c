// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What the interposer tells of launches, or counts in its page: how many there were, their blocks,
 * the time and the capacity that they took, and what they are charged under a share of time. Under
 * app.c on vgpu, with the stand-in arbiter.
 */
#include <dirent.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "managed.h"

/* Nobody is told of launches under a lease, unless they last; the page counts them. */
static void counted(void)
{
	static char *const what[] = { "slow", "tiny", NULL };
	struct gsched_cl_header *h;
	struct run r;

	fake_begin(GSCHED_LEASE_FREE);
	run(true, what, &r);
	fake_wait(&f, &f.detached, 1);
	ok(f.cl != NULL, "attached");
	if (!f.cl) {
		fake_stop(&f);
		return;
	}
	h = &f.cl->header;
	ok(!r.status && h->passed && h->leased_tasks + f.completes == h->managed[0] + h->managed[2],
	   "every launch is counted (%llu) or told of (%u)",
	   (unsigned long long)(h->passed + h->leased_tasks), f.completes);
	ok(h->leased_ns && h->leased_usage >= h->leased_ns / 32 &&
	   h->leased_usage <= h->leased_ns * f.sms, "with its time (%llu ns, %llu CapSM-ns)",
	   (unsigned long long)h->leased_ns, (unsigned long long)h->leased_usage);
	fake_stop(&f);
}

/* Waits for the agent to see the end of each task */
static bool all_accounted(void)
{
	const struct gsched_cl_header *h = &f.cl->header;

	for (unsigned int i = 0; i < PATIENCE_MS; i++, usleep(1000))
		if (__atomic_load_n(&h->leased_tasks, __ATOMIC_ACQUIRE) +
		    __atomic_load_n(&f.completes, __ATOMIC_ACQUIRE) >= h->managed[GSCHED_TIER_BLOCK])
			return true;
	return false;
}

/* A graph is as wide as its widest kernel, and takes what its launches took. */
static void profile(const char *step, unsigned int blocks)
{
	char name[16];
	char *const what[] = { name, NULL }, *const behind[] = { "plain", name, NULL };
	uint64_t ns, usage, used;
	struct run alone, r;

	snprintf(name, sizeof(name), "%s", step);
	start(&alone, false, what);
	tell(&alone, "1");
	finish(&alone);
	fake_begin(GSCHED_LEASE_NONE);
	start(&r, true, what);
	tell(&r, "1");
	finish(&r);
	same(&r, &alone, name);
	ok(f.submits == 40 && f.last_submit.tier == GSCHED_TIER_LAUNCH &&
	   f.last_submit.blocks == blocks && f.last_submit.blocks_per_sm == 8,
	   "%s graph: %llu blocks, %u an SM", name,
	   (unsigned long long)f.last_submit.blocks, f.last_submit.blocks_per_sm);
	ok(f.last_submit.predicted_ns, "and takes %llu ns",
	   (unsigned long long)f.last_submit.predicted_ns);
	ok(f.timed_originals, "the arbiter is told how long it took (%u of %u times)",
	   f.timed_originals, f.completes);
	fake_stop(&f);

	/* nobody is asked: timed now and then, and the page has what they took */
	fake_begin(GSCHED_LEASE_FREE);
	start(&r, true, behind);
	if (!ok(says(&r, "ready\n") && f.cl, "%s graph, under a lease", name)) {
		fake_stop(&f);
		return;
	}
	ok(all_accounted(), "what was launched before is counted, or told of");
	ns = f.cl->header.leased_ns;
	usage = f.cl->header.leased_usage;
	tell(&r, "1");
	finish(&r);
	ns = f.cl->header.leased_ns - ns;
	usage = f.cl->header.leased_usage - usage;
	used = ns * (blocks < 64 ? blocks : 64) / 8;
	ok(f.cl->header.passed >= 40 && !f.cl->header.managed[GSCHED_TIER_LAUNCH],
	   "its launches pass (%llu)",
	   (unsigned long long)f.cl->header.passed);
	ok(ns && usage > used * 9 / 10 && usage < used * 11 / 10,
	   "with time and capacity: %llu ns, %llu CapSM-ns",
	   (unsigned long long)ns, (unsigned long long)usage);
	fake_stop(&f);
}

/* Nor is it another graph's once it has been changed, or another one has its handle */
static void changed_graphs(void)
{
	static const struct { char *said; unsigned int blocks; } stages[] = {
		{ "made\n", 4 }, { "updated\n", 192 }, { "set\n", 16 }, { "set again\n", 8 },
	};
	static char *const update[] = { "updated", NULL };
	unsigned int i;
	struct run r;

	fake_begin(GSCHED_LEASE_NONE);
	start(&r, true, update);
	for (i = 0; i < sizeof(stages) / sizeof(*stages); i++) {
		says(&r, stages[i].said);
		ok(f.last_submit.blocks == stages[i].blocks, "a graph, %.*s: %llu blocks",
		   (int)strlen(stages[i].said) - 1, stages[i].said,
		   (unsigned long long)f.last_submit.blocks);
		tell(&r, "1");
	}
	finish(&r);
	ok(!r.status, "it ends as it should");
	fake_stop(&f);
}

/*
 * What was learnt of a launch is not said of another one that has its handle. @what: whose handle
 * it is, or what it goes with
 */
static void reused(char *step, const char *what)
{
	char *const steps_of[] = { step, NULL };
	uint64_t ns[3] = { 0 };
	unsigned int i;
	struct run r;

	fake_begin(GSCHED_LEASE_FREE);
	f.flags = GSCHED_ARB_ALONE;
	f.share = GSCHED_SHARE_ALL / 2;
	start(&r, true, steps_of);
	for (i = 0; i < 3; i++) {
		ok(says(&r, i == 0 ? "learnt\n" : i == 1 ? "short\n" : "long\n") && f.cl,
		   "%s, a share of time: %s", what, i == 2 ? "by the same handle long" : "short");
		/* what is in flight is charged when it has ended */
		usleep(20000);
		ns[i] = f.cl ? f.cl->header.paced_ns : 0;
		tell(&r, "1");
	}
	finish(&r);
	ok(!r.status && ns[2] - ns[1] > 8 * (ns[1] - ns[0]),
	   "%s: launches are charged what they take: %llu ns, %llu ns", what,
	   (unsigned long long)(ns[1] - ns[0]), (unsigned long long)(ns[2] - ns[1]));
	fake_stop(&f);
}

static void graphs(void)
{
	profile("wide", 192);
	profile("narrow", 4);
	changed_graphs();
	reused("reused", "a graph");
	reused("graph", "a kernel in a graph");
	reused("module", "a module's kernel");
	reused("library's", "a library's kernel");
	reused("context", "a context's kernel");
}

/*
 * Nothing stands behind a kernel that others may overlap: no word marks its end, and for the
 * arbiter it is over at once.
 */
static void dependents(void)
{
	static char *const what[] = { "dependent", NULL };
	struct run alone, r;
	unsigned int i;

	start(&alone, false, what);
	tell(&alone, "1");
	finish(&alone);
	fake_begin(GSCHED_LEASE_NONE);
	start(&r, true, what);
	ok(says(&r, "held\n") && f.cl, "a kernel that another may overlap");
	for (i = 0; f.cl && i < 2000 && running_slot(); i++)
		usleep(1000);
	ok(f.cl && !running_slot() && f.cl->header.managed[GSCHED_TIER_LAUNCH] == 2,
	   "the second time it is asked for, and nothing is put behind it");
	ok(f.cl && f.cl->header.passed == 2, "and the overlapping ones are counted");
	tell(&r, "1");
	finish(&r);
	same(&r, &alone, "dependent launches");
	fake_stop(&f);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/*
 * With a share of time nothing comes between launches that may overlap, once it is known what they
 * take, and that is what they are charged.
 */
static void charged(void)
{
	static char *const what[] = { "dependents", NULL };
	static const char *const stages[] = { "learning: ", "dependent: ", "independent: " };
	unsigned int i, behind[2] = { 0 };
	uint64_t ns[3] = { 0 }, begun = 0, took[3];
	const char *said;
	struct run r;
	bool known;

	fake_begin(GSCHED_LEASE_FREE);
	f.flags = GSCHED_ARB_ALONE;
	f.share = GSCHED_SHARE_ALL / 2;
	start(&r, true, what);
	for (i = 0; i < 3; i++) {
		ok(says(&r, stages[i]) && f.cl, "launches under a share of time, %.*s",
		   (int)strlen(stages[i]) - 2, stages[i]);
		took[i] = now_ns() - begun;
		usleep(20000);
		ns[i] = f.cl ? f.cl->header.paced_ns : 0;
		begun = now_ns();
		tell(&r, "1");
	}
	finish(&r);
	said = strstr(r.text, "dependent: ");
	known = said && sscanf(said, "dependent: %u behind a kernel, %u not", &behind[0],
			       &behind[1]) == 2;
	ok(known && behind[0] > 10 && !behind[1],
	   "nothing comes between them: %u behind a kernel, %u not", behind[0], behind[1]);
	ns[2] -= ns[1];
	ns[1] -= ns[0];
	ok(!r.status && ns[1] > ns[2] / 3 && ns[1] < ns[2] * 3,
	   "and they are charged as others are: %llu ns, %llu ns",
	   (unsigned long long)ns[1], (unsigned long long)ns[2]);
	/* what is saved up and what may be owed are 2 ms each */
	ok(ns[1] < took[1] / 2 + 5000000, "which keeps them to their share: %llu ns of %llu",
	   (unsigned long long)ns[1], (unsigned long long)took[1]);
	fake_stop(&f);
}

/*
 * A kernel ends when the host says so, which it does once twelve others that it launches meanwhile
 * have ended. Each would be held for a second otherwise, and the kernel be on the GPU as long.
 */
static void fed_by_the_host(void)
{
	static char *const twice[] = { "beside", "beside", NULL };
	uint64_t ns = UINT64_MAX;
	struct run r;

	fake_begin(GSCHED_LEASE_FREE);
	f.flags = GSCHED_ARB_ALONE;
	f.share = GSCHED_SHARE_ALL / 4;
	run(true, twice, &r);
	if (f.cl)
		ns = f.cl->header.paced_ns;
	ok(!r.status && ns < 8000000000, "a kernel that waits for others is not held up by its "
	   "share of time: charged %llu ns", (unsigned long long)ns);
	fake_stop(&f);
}

/* The program's agent; 0: it has none */
static pid_t agent_of(pid_t pid)
{
	char path[64], name[32];
	struct dirent *task;
	pid_t agent = 0;
	FILE *file;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	while (tasks && !agent && (task = readdir(tasks))) {
		snprintf(path, sizeof(path), "/proc/%d/task/%.16s/comm", (int)pid, task->d_name);
		file = fopen(path, "re");
		if (file && fgets(name, sizeof(name), file) && !strcmp(name, "gsched-agent\n"))
			agent = (pid_t)strtol(task->d_name, NULL, 10);
		if (file)
			fclose(file);
	}
	if (tasks)
		closedir(tasks);
	return agent;
}

/* How often the program's agent has slept; 0: it has none */
static unsigned long naps(pid_t pid)
{
	char path[64], line[128];
	unsigned long n = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)agent_of(pid));
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, "voluntary_ctxt_switches:", 24))
			n = strtoul(line + 24, NULL, 10);
	if (file)
		fclose(file);
	return n;
}

/* One that spins until its kernel has ended keeps no processor from the agent */
static void real_time(void)
{
	static const char what[] = "the agent of a program with real-time priority comes before it";
	static char *const single[] = { "single", NULL };
	struct sched_param param = { .sched_priority = 10 }, agent = { 0 };
	pid_t tid;
	struct run r;

	fake_begin(GSCHED_LEASE_FREE);
	f.flags = GSCHED_ARB_ALONE;
	f.share = GSCHED_SHARE_ALL / 2;
	if (sched_setscheduler(0, SCHED_FIFO, &param)) {
		skip(what, "no right to it");
		fake_stop(&f);
		return;
	}
	start(&r, true, single);
	param.sched_priority = 0;
	sched_setscheduler(0, SCHED_OTHER, &param);
	if (says(&r, "launched\n") && f.cl)
		becomes_64(&f.cl->header.paced_ns, 1);
	tid = agent_of(r.pid);
	if (tid)
		sched_getparam(tid, &agent);
	ok(agent.sched_priority == 11 && sched_getscheduler(tid) == SCHED_FIFO, "%s: %d, not 10",
	   what, agent.sched_priority);
	tell(&r, "1");
	finish(&r);
	fake_stop(&f);
}

/* What a launch took is charged when it has ended, whether another one comes or not */
static void charged_at_end(void)
{
	static char *const what[] = { "single", NULL };
	unsigned long slept = 0;
	uint64_t ns = 0;
	struct run r;

	fake_begin(GSCHED_LEASE_FREE);
	f.flags = GSCHED_ARB_ALONE;
	f.share = GSCHED_SHARE_ALL / 2;
	start(&r, true, what);
	ok(says(&r, "launched\n") && f.cl && becomes_64(&f.cl->header.paced_ns, 1),
	   "a single launch is charged when it has ended");
	if (f.cl) {
		ns = f.cl->header.paced_ns;
		usleep(100000);
		slept = naps(r.pid);
		usleep(200000);
		slept = naps(r.pid) - slept;
	}
	ok(slept < 20, "then nobody looks for its end any more: %lu times", slept);
	tell(&r, "1");
	finish(&r);
	fake_wait(&f, &f.detached, 1);
	ok(!r.status && ns && f.cl->header.paced_ns > ns + 1000000,
	   "so is one that the program ends behind: %llu ns, %llu ns", (unsigned long long)ns,
	   (unsigned long long)(f.cl ? f.cl->header.paced_ns - ns : 0));
	fake_stop(&f);
}

struct calls {
	unsigned int all, submits, completes, launches;
};

/* What the arbiter is sent for 300 launches more: nothing else differs */
static struct calls calls_of_tiny(uint32_t lease)
{
	static char *const once[] = { "tiny", NULL }, *const twice[] = { "tiny", "tiny", NULL };
	const struct gsched_cl_header *h;
	struct calls calls = { 0 };
	struct run r;

	for (int i = 0; i < 2; i++) {
		fake_begin(lease);
		run(true, i ? twice : once, &r);
		fake_wait(&f, &f.detached, 1);
		if (!ok(!r.status && f.cl, "ran %s", i ? "twice" : "once"))
			break;
		/* the first run is what comes with any */
		calls.all = f.messages - calls.all;
		calls.submits = f.submits - calls.submits;
		calls.completes = f.completes - calls.completes;
		h = &f.cl->header;
		calls.launches = (unsigned int)(h->passed + h->managed[0] + h->managed[2]) -
				 calls.launches;
		fake_stop(&f);
	}
	return calls;
}

/*
 * Each message is a system call. Under a free lease there is none for a launch, without a lease one
 * for its begin and one for its end. The slack is for reports of what went on meanwhile.
 */
static void calls(void)
{
	struct calls free = calls_of_tiny(GSCHED_LEASE_FREE);
	struct calls none = calls_of_tiny(GSCHED_LEASE_NONE);

	ok(free.launches == 300 && free.all < 30, "%u launches under a free lease: %u calls",
	   free.launches, free.all);
	ok(none.launches == 300 && none.submits == 300 && none.completes <= 300,
	   "%u launches without a lease: %u submits, %u completes", none.launches, none.submits,
	   none.completes);
	ok(none.all - none.submits - none.completes < 30, "and nothing else: %u calls", none.all);
}

int main(void)
{
	device_begin("accounting");
	calls();
	counted();
	graphs();
	dependents();
	charged();
	fed_by_the_host();
	charged_at_end();
	real_time();
	device_end();
	return done();
}
