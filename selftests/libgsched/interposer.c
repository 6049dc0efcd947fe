// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The interposer under app.c on vgpu, with the stand-in arbiter: whatever the arbiter does, the
 * program's results are those of a run alone. Run from the root of the tree.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/wait.h>
#include <unistd.h>
#include "libgsched/transport.h"
#include "arbiter.h"
#include "run.h"

static char *const steps[] = { "plain", "small", "chain", "packed", "extended", "library",
			       "threads", "second", "burst", "forked", "wrong", NULL };

static struct run expected, expected_long;

static struct fake f;
static _Atomic bool stirring;
static unsigned int seed = 1;

/* Windows of running tasks change all the time, to anything, and never stay closed. */
static void *stir(void *arg)
{
	while (stirring) {
		unsigned int i;

		for (i = 0; i < GSCHED_SLOTS && f.cl; i++) {
			struct gsched_cl_slot *line = &f.cl->slot[i];
			uint32_t seq = line->seq;

			if (!seq || line->retired == seq)
				continue;
			fake_window(&f, i, rand_r(&seed) % (f.sms + 1) * GSCHED_CAPSM);
			fake_event(&f, GSCHED_EVENT_EVICT, i, seq, f.arb->slot[i].window);
		}
		usleep(rand_r(&seed) % 3000);
	}
	return NULL;
}

static void fake_begin(uint32_t lease)
{
	fake_start(&f);
	f.rewrite_err = ENOTCONN;
	f.sms = 8;
	f.lease = lease;
}

static void no_arbiter(void)
{
	struct run r;

	setenv("GSCHED_SOCKET", "/nonexistent/socket", 1);
	setenv("GSCHED_BACKEND", "daemon", 1);
	run(true, steps, &r);
	same(&r, &expected, "no arbiter");
}

static void leases(void)
{
	static const struct { uint32_t lease; const char *name; } lease[] = {
		{ GSCHED_LEASE_FREE, "lease free" }, { GSCHED_LEASE_NOTIFY, "lease notify" },
		{ GSCHED_LEASE_NONE, "lease none" },
	};
	unsigned int i;
	struct run r;

	for (i = 0; i < 3; i++) {
		fake_begin(lease[i].lease);
		run(true, steps, &r);
		same(&r, &expected, lease[i].name);
		fake_wait(&f, &f.detached, 1);
		ok(f.cl && f.cl->header.managed[GSCHED_TIER_BLOCK] > 0,
		   "%s: launches of tier block", lease[i].name);
		ok(f.cl && (lease[i].lease == GSCHED_LEASE_FREE ? f.cl->header.passed :
			    f.cl->header.managed[GSCHED_TIER_LAUNCH]),
		   "%s: launches of tier launch", lease[i].name);
		if (lease[i].lease == GSCHED_LEASE_FREE)
			/* told of tasks that last, perhaps: that depends on the time */
			ok(!f.submits, "lease free: the arbiter is not asked");
		if (lease[i].lease == GSCHED_LEASE_NOTIFY)
			ok(!f.submits && f.async_submits, "lease notify: the arbiter is told");
		if (lease[i].lease == GSCHED_LEASE_NONE)
			ok(f.submits && !f.async_submits, "lease none: the arbiter is asked");
		if (lease[i].lease != GSCHED_LEASE_FREE)
			ok(f.completes >= f.submits + f.async_submits,
			   "%s: every task is completed (%u of %u)", lease[i].name, f.completes,
			   f.submits + f.async_submits);
		fake_stop(&f);
	}
}

static void windows(void)
{
	static char *const what[] = { "long", "chain", "packed", "threads", NULL };
	struct run alone, r;
	pthread_t thread;
	static const char *const modes[] = { "", "rank", "worker", "rank", "worker" };
	char name[64];
	int i;

	run(false, what, &alone);
	for (i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "random windows%s%s%s", *modes[i] ? ", limit by " : "",
			 modes[i], i > 2 ? ", static" : "");
		setenv("GSCHED_LIMIT_BY", modes[i], 1);
		setenv("GSCHED_DISPATCH", i > 2 ? "static" : i > 1 ? "queue" : "", 1);
		fake_begin(i ? GSCHED_LEASE_NONE : GSCHED_LEASE_FREE);
		stirring = true;
		pthread_create(&thread, NULL, stir, NULL);
		run(true, what, &r);
		stirring = false;
		pthread_join(thread, NULL);
		same(&r, &alone, name);
		ok(f.cl && f.cl->header.wings > 0, "%s: %llu wings", name,
		   (unsigned long long)(f.cl ? f.cl->header.wings : 0));
		ok(f.cl && !strstr(f.cl->header.why, "GSCHED_") &&
		   !strstr(f.cl->header.why, "ranges"), "%s: understood", name);
		fake_stop(&f);
	}
	unsetenv("GSCHED_DISPATCH");
	unsetenv("GSCHED_LIMIT_BY");
	setenv("GSCHED_CLASS", "H_M", 1);
	fake_begin(GSCHED_LEASE_NONE);
	f.features |= GSCHED_FEATURE_CORUN;
	run(true, what, &r);
	ok(f.last_submit.size == sizeof(f.last_submit) &&
	   f.last_submit.intensity == GSCHED_INTENSITY_H_M, "the arbiter is told of GSCHED_CLASS");
	fake_stop(&f);
	setenv("GSCHED_CLASS", "high", 1);
	fake_begin(GSCHED_LEASE_FREE);
	f.features |= GSCHED_FEATURE_CORUN;
	run(true, what, &r);
	ok(f.cl && strstr(f.cl->header.why, "GSCHED_CLASS=high: neither unknown, L_C and so on nor "
			  "H_M; taken for unknown"),
	   "of one that there is not its page tells: %s", f.cl ? f.cl->header.why : "");
	fake_stop(&f);
	unsetenv("GSCHED_CLASS");
	setenv("GSCHED_LIMIT_BY", "sms", 1);
	fake_begin(GSCHED_LEASE_FREE);
	run(true, what, &r);
	same(&r, &alone, "limit by what there is not");
	ok(f.cl && strstr(f.cl->header.why, "GSCHED_LIMIT_BY=sms: neither rank nor worker"),
	   "and the page says so: %s", f.cl ? f.cl->header.why : "");
	fake_stop(&f);
	unsetenv("GSCHED_LIMIT_BY");
	unsetenv("GSCHED_DISPATCH");
	setenv("GSCHED_WORKERS", "many", 1);
	fake_begin(GSCHED_LEASE_FREE);
	run(true, what, &r);
	same(&r, &alone, "a number of workers that is none");
	ok(f.cl && strstr(f.cl->header.why, "GSCHED_WORKERS=many: not a number from 1 to 32"),
	   "and the page says so: %s", f.cl ? f.cl->header.why : "");
	fake_stop(&f);
	unsetenv("GSCHED_WORKERS");
}

/* The most that any task of tier block was launched with, in blocks an SM */
static unsigned int workers_seen(const char *choice, const struct run *alone, char *const what[])
{
	unsigned int i, most = 0;
	struct run r;

	setenv("GSCHED_WORKERS", choice, 1);
	fake_begin(GSCHED_LEASE_FREE);
	run(true, what, &r);
	same(&r, alone, "workers chosen");
	for (i = 0; f.cl && i < GSCHED_SLOTS; i++)
		if (f.cl->slot[i].tier == GSCHED_TIER_BLOCK && f.cl->slot[i].launched > most)
			most = f.cl->slot[i].launched;
	fake_stop(&f);
	unsetenv("GSCHED_WORKERS");
	return most;
}

static void workers(void)
{
	static char *const what[] = { "long", NULL };
	unsigned int one, two, all;
	struct run alone;

	run(false, what, &alone);
	one = workers_seen("1", &alone, what);
	two = workers_seen("2", &alone, what);
	all = workers_seen("32", &alone, what);
	ok(one && two == 2 * one && all > two,
	   "as many workers as somebody chose, and no more than fit: %u, %u, %u", one, two, all);
}

/* A library is unloaded while its tasks run, evicted and grown. What is freed is overwritten. */
static void unloaded(void)
{
	static char *const what[] = { "unloads", NULL };
	struct run alone, r;
	pthread_t thread;

	setenv("VGPU_DEVICES", "2", 1);
	setenv("VGPU_LOCKS", "1", 1);
	setenv("MALLOC_PERTURB_", "165", 1);
	run(false, what, &alone);
	fake_begin(GSCHED_LEASE_NONE);
	stirring = true;
	pthread_create(&thread, NULL, stir, NULL);
	run(true, what, &r);
	stirring = false;
	pthread_join(thread, NULL);
	same(&r, &alone, "unloaded while tasks run");
	ok(f.cl && f.cl->header.managed[GSCHED_TIER_BLOCK] > 0, "and they are of tier block");
	fake_stop(&f);
	unsetenv("MALLOC_PERTURB_");
	unsetenv("VGPU_LOCKS");
	unsetenv("VGPU_DEVICES");
}

/*
 * Calls of the driver that hold the context's lock while they wait for a task, and the task
 * needs a wing to end
 */
static void locks(void)
{
	static char *const copies[] = { "copies", NULL }, *const waits[] = { "waits", NULL };
	static const struct { char *const *what; const char *locks; } cases[] = {
		{ copies, "cuMemcpy" }, { waits, "1" }, { steps, "1" },
	};
	struct run alone, r;
	pthread_t thread;
	char name[64];
	unsigned int i;

	for (i = 0; i < 3; i++) {
		run(false, cases[i].what, &alone);
		snprintf(name, sizeof(name), "%s with VGPU_LOCKS=%s", cases[i].what[0],
			 cases[i].locks);
		setenv("VGPU_LOCKS", cases[i].locks, 1);
		fake_begin(GSCHED_LEASE_NONE);
		stirring = true;
		pthread_create(&thread, NULL, stir, NULL);
		run(true, cases[i].what, &r);
		stirring = false;
		pthread_join(thread, NULL);
		same(&r, &alone, name);
		ok(f.cl && f.cl->header.wings > 0, "%s: %llu wings", name,
		   (unsigned long long)(f.cl ? f.cl->header.wings : 0));
		fake_stop(&f);
		unsetenv("VGPU_LOCKS");
	}
}

/* What was granted nothing gets the whole device. */
static void open_windows(void)
{
	unsigned int slot;

	pthread_mutex_lock(&f.lock);
	f.closed = false;
	for (slot = 0; slot < GSCHED_SLOTS; slot++)
		fake_window(&f, slot, f.sms * GSCHED_CAPSM);
	pthread_mutex_unlock(&f.lock);
	fake_event(&f, GSCHED_EVENT_GROW, f.last_submit.slot, f.last_submit.seq,
		   f.sms * GSCHED_CAPSM);
}

/*
 * Tasks that are granted nothing, each behind it a call that waits for it with the context's
 * lock: they end all the same, once the call has had enough of waiting.
 */
static void starved(void)
{
	static char *const what[] = { "waits", NULL };
	unsigned int slot;
	struct run alone, r;

	run(false, what, &alone);
	setenv("VGPU_LOCKS", "1", 1);
	setenv("GSCHED_QUIET_MS", "50", 1);
	fake_begin(GSCHED_LEASE_NONE);
	f.closed = true;
	start(&r, true, what);
	/* each waits for the one before; no limit but the program's own */
	for (slot = 0; slot < 9 && !fake_wait(&f, &f.submits, 18); slot++)
		;
	ok(f.submits >= 18, "starved around calls that wait for them: one after the other");
	open_windows();
	finish(&r);
	same(&r, &alone, "starved");
	fake_stop(&f);
	unsetenv("GSCHED_QUIET_MS");
	unsetenv("VGPU_LOCKS");
}

/*
 * Copies that hold the context's lock, one after the other by four threads, some of them begun
 * before the program's first task: that does not get in front of them, nor do they keep launches
 * out for ever.
 */
static void early(void)
{
	static char *const what[] = { "early", NULL };
	struct run alone, r;
	unsigned int i;
	char delays[16];

	run(false, what, &alone);
	setenv("VGPU_LOCKS", "cuMemcpy", 1);
	for (i = 1; i <= 3; i++) {
		snprintf(delays, sizeof(delays), "%u:20000", i);
		setenv("VGPU_DELAYS", delays, 1);
		fake_begin(GSCHED_LEASE_NONE);
		f.closed = true;
		start(&r, true, what);
		ok(fake_wait(&f, &f.submits, 2),
		   "copies before the first task: it is granted nothing");
		usleep(100000);
		open_windows();
		finish(&r);
		same(&r, &alone, "copies before the first task");
		fake_stop(&f);
	}
	unsetenv("VGPU_DELAYS");
	unsetenv("VGPU_LOCKS");
}

/* A task is evicted as the program exits, and something that runs later in exit waits for it. */
static void left(void)
{
	static char *const what[] = { "leave", NULL };
	struct run alone, r;

	run(false, what, &alone);
	fake_begin(GSCHED_LEASE_NONE);
	f.closed = true;
	run(true, what, &r);
	same(&r, &alone, "a task evicted at exit");
	fake_wait(&f, &f.detached, 1);
	ok(f.cl && f.cl->header.wings, "it ends by wings");
	fake_stop(&f);
}

/* Evicted whole, then let go on. */
static void evicted(void)
{
	static char *const what[] = { "long", NULL };
	struct run r;

	fake_begin(GSCHED_LEASE_NONE);
	f.closed = true;
	start(&r, true, what);
	ok(fake_wait(&f, &f.submits, 1), "granted a window of nothing");
	usleep(100000);
	ok(!f.completes, "nothing runs");
	open_windows();
	finish(&r);
	same(&r, &expected_long, "evicted and resumed");
	fake_stop(&f);
}

/* Waits for a word of a page to become what it should */
static bool becomes(const uint32_t *word, uint32_t least)
{
	unsigned int i;

	for (i = 0; i < PATIENCE_MS && __atomic_load_n(word, __ATOMIC_ACQUIRE) < least; i++)
		usleep(1000);
	return __atomic_load_n(word, __ATOMIC_ACQUIRE) >= least;
}

static bool becomes_64(const __u64 *word, uint64_t least)
{
	unsigned int i;

	for (i = 0; i < PATIENCE_MS && __atomic_load_n(word, __ATOMIC_ACQUIRE) < least; i++)
		usleep(1000);
	return __atomic_load_n(word, __ATOMIC_ACQUIRE) >= least;
}

static bool resumable_launched(unsigned int least)
{
	unsigned int i;

	for (i = 0; i < PATIENCE_MS; i++, usleep(1000))
		if (f.cl && __atomic_load_n(&f.cl->header.resumable, __ATOMIC_ACQUIRE) >= least)
			return true;
	return false;
}

static struct gsched_cl_slot *running_slot(void)
{
	unsigned int i;

	for (i = 0; i < GSCHED_SLOTS; i++)
		if (f.cl->slot[i].seq && f.cl->slot[i].retired != f.cl->slot[i].seq)
			return &f.cl->slot[i];
	return NULL;
}

/*
 * Block-tasks that cannot end are left in their middle, and found again when all others are done
 * and their workers gone.
 */
static void suspended(void)
{
	static char *const what[] = { "held", NULL };
	struct gsched_cl_slot *line;
	struct run alone, r;
	unsigned int slot;

	start(&alone, false, what);
	tell(&alone, "12");
	finish(&alone);
	fake_begin(GSCHED_LEASE_NONE);
	start(&r, true, what);
	ok(resumable_launched(1), "long block-tasks, somebody else there: the resumable "
	   "form is launched");
	tell(&r, "1");
	ok(says(&r, "held\n"), "eight block-tasks are in their middle, the others done");
	line = running_slot();
	ok(line != NULL, "their task runs");
	if (!line) {
		kill(r.pid, SIGKILL);
		finish(&r);
		fake_stop(&f);
		return;
	}
	slot = line - f.cl->slot;
	ok(f.last_submit.block_ns && f.last_submit.block_ns < 100000,
	   "the arbiter is told how soon it gives way: %llu ns",
	   (unsigned long long)f.last_submit.block_ns);
	fake_window(&f, slot, 0);
	ok(becomes(&line->left, 8), "evicted, their workers leave");
	tell(&r, "2");
	ok(line->finished != line->seq, "nothing of it runs");
	/* two SMs' worth: less than the workers that have ended for want of work */
	fake_window(&f, slot, 2 * GSCHED_CAPSM);
	fake_event(&f, GSCHED_EVENT_GROW, slot, line->seq, f.arb->slot[slot].window);
	finish(&r);
	same(&r, &alone, "resumed");
	ok(f.cl->header.wings > 0, "by wings: %llu", (unsigned long long)f.cl->header.wings);
	fake_stop(&f);
}

/*
 * A task that waits behind another on its stream gets no wing, however wide its window has become.
 */
static void queued(void)
{
	static char *const what[] = { "behind", NULL };
	unsigned int slot[GSCHED_SLOTS], n = 0, i;
	struct gsched_cl_slot *line;
	struct run alone, r;
	uint32_t launched;
	uint64_t wings;

	start(&alone, false, what);
	tell(&alone, "12");
	finish(&alone);
	fake_begin(GSCHED_LEASE_NONE);
	f.window = 2 * GSCHED_CAPSM;
	start(&r, true, what);
	ok(fake_wait(&f, &f.submits, 1), "tasks of two SMs");
	f.arb->header.contended = 1;
	tell(&r, "1");
	ok(says(&r, "held\n"), "a task is held in its middle, another one behind it");
	for (i = 0; i < GSCHED_SLOTS; i++)
		if (f.cl->slot[i].seq && f.cl->slot[i].retired != f.cl->slot[i].seq)
			slot[n++] = i;
	if (!ok(n == 2, "both have a slot")) {
		kill(r.pid, SIGKILL);
		finish(&r);
		fake_stop(&f);
		return;
	}
	/* the one that runs has been stamped */
	i = f.cl->slot[slot[1]].start_ns != 0;
	line = &f.cl->slot[slot[!i]];
	/* the program may still be about to launch it */
	ok(line->tier != GSCHED_TIER_BLOCK || becomes(&line->launched, 64),
	   "as many workers as fit the device, whatever the window");
	launched = line->launched;
	wings = f.cl->header.wings;
	fake_window(&f, slot[!i], 8 * GSCHED_CAPSM);
	fake_window(&f, slot[i], 4 * GSCHED_CAPSM);
	fake_event(&f, GSCHED_EVENT_GROW, slot[i], f.cl->slot[slot[i]].seq,
		   f.arb->slot[slot[i]].window);
	ok(becomes_64(&f.cl->header.wings, wings + 1), "both windows grow: a wing comes");
	tell(&r, "2");
	finish(&r);
	same(&r, &alone, "one task behind the other");
	/* it had as many workers as block-tasks from the start */
	ok(line->launched == launched, "none for the one that had not begun");
	fake_stop(&f);
}

/* The same memory whatever happens to long blocks. */
static void resumed(void)
{
	static char *const what[] = { "slow-until-told", NULL };
	struct run alone, r;
	pthread_t thread;

	start(&alone, false, what);
	tell(&alone, "1");
	finish(&alone);
	fake_begin(GSCHED_LEASE_NONE);
	stirring = true;
	pthread_create(&thread, NULL, stir, NULL);
	start(&r, true, what);
	ok(resumable_launched(1), "long blocks: in the resumable form");
	tell(&r, "1");
	finish(&r);
	stirring = false;
	pthread_join(thread, NULL);
	same(&r, &alone, "the same under random windows");
	fake_stop(&f);
}

/* Nobody else there: what costs more is not for a program that is alone. */
static void alone_is_plain(void)
{
	static char *const what[] = { "slow", NULL };
	struct run r;

	fake_begin(GSCHED_LEASE_FREE);
	run(true, what, &r);
	ok(!r.status && f.cl && f.cl->header.managed[GSCHED_TIER_BLOCK] && !f.cl->header.resumable,
	   "lease free: the plain twin, however long the blocks");
	fake_stop(&f);
}

static void death(void)
{
	static char *const what[] = { "long", NULL };
	struct run r;

	/* with its task shut out of the device */
	fake_begin(GSCHED_LEASE_NONE);
	f.closed = true;
	start(&r, true, what);
	fake_wait(&f, &f.submits, 1);
	usleep(50000);
	fake_stop(&f);
	finish(&r);
	same(&r, &expected_long, "the arbiter dies with a task evicted");
	ok(strstr(f.cl->header.why, "unmanaged") != NULL, "and the page says why: %s",
	   f.cl->header.why);

	/* with a launch that waits for its grant */
	fake_begin(GSCHED_LEASE_NONE);
	f.hold_grants = true;
	start(&r, true, what);
	fake_wait(&f, &f.submits, 1);
	fake_stop(&f);
	finish(&r);
	same(&r, &expected_long, "the arbiter dies with a launch waiting");

	/* refusals */
	fake_begin(GSCHED_LEASE_NONE);
	f.submit_err = EINVAL;
	run(true, what, &r);
	same(&r, &expected_long, "the arbiter refuses every launch");
	fake_stop(&f);
	fake_begin(GSCHED_LEASE_FREE);
	f.attach_err = ENOENT;
	run(true, what, &r);
	same(&r, &expected_long, "the arbiter does not know the device");
	fake_stop(&f);

	/* a program killed while its task runs */
	fake_begin(GSCHED_LEASE_NONE);
	start(&r, true, what);
	fake_wait(&f, &f.submits, 3);
	kill(r.pid, SIGKILL);
	finish(&r);
	ok(fake_wait(&f, &f.detached, 1), "a killed program's connection closes");
	fake_stop(&f);
}

/* The arbiter dies, and another one comes; then it takes the device away, and gives it back. */
static void restarted(void)
{
	static char *const what[] = { "steady", NULL };
	struct gsched_cl_page *before;
	struct run alone, r;

	start(&alone, false, what);
	tell(&alone, "1");
	finish(&alone);
	fake_begin(GSCHED_LEASE_NONE);
	start(&r, true, what);
	ok(fake_wait(&f, &f.submits, 3), "the arbiter is asked");
	ok(f.last_submit.stream != 0, "and told the stream");
	fake_stop(&f);
	before = f.cl;
	ok(becomes_64(&before->header.unmanaged, 3), "it dies: launches go on unmanaged");
	fake_restart(&f);
	ok(fake_wait(&f, &f.attached_count, 1) && fake_wait(&f, &f.submits, 3),
	   "it comes back: it is asked again");
	before = f.cl;
	fake_event(&f, GSCHED_EVENT_GONE, 0, 0, 0);
	ok(fake_wait(&f, &f.attached_count, 2),
	   "told that the device is gone, the program looks for it again");
	ok(becomes_64(&before->header.unmanaged, 1), "and meanwhile runs unmanaged");
	ok(f.cl && becomes_64(&f.cl->header.managed[GSCHED_TIER_BLOCK], 2),
	   "the twins serve the new connection");
	tell(&r, "1");
	finish(&r);
	same(&r, &alone, "connected again");
	fake_stop(&f);
}

/* A task that nobody can wait for keeps its slot, not the program from a new arbiter */
static void lost(void)
{
	static const char why[] = "1 of 64 slots for tasks are out of use";
	static char *const what[] = { "careless", NULL };
	struct gsched_cl_page *before;
	struct run r;

	setenv("VGPU_FAIL_WAIT", "1", 1);
	fake_begin(GSCHED_LEASE_NONE);
	start(&r, true, what);
	ok(fake_wait(&f, &f.submits, 4) && strstr(f.cl->header.why, why),
	   "a kernel was launched without its done gate, and the page says so");
	ok(f.cl && f.last_submit.slot && f.cl->slot[0].retired == f.cl->slot[0].seq,
	   "its slot is not used again, and for the arbiter the task is over");
	fake_stop(&f);
	before = f.cl;
	ok(becomes_64(&before->header.unmanaged, 3), "the arbiter dies: launches go on unmanaged");
	fake_restart(&f);
	ok(fake_wait(&f, &f.attached_count, 1) && fake_wait(&f, &f.submits, 3) &&
	   f.last_submit.slot,
	   "it comes back: it is asked again, not with that slot");
	ok(f.cl && strstr(f.cl->header.why, why), "its page says so, too");
	ok(f.cl && becomes_64(&f.cl->header.managed[GSCHED_TIER_BLOCK], 2),
	   "the others serve twins");
	tell(&r, "1");
	finish(&r);
	ok(!r.status, "it ends as it should");
	fake_stop(&f);
	unsetenv("VGPU_FAIL_WAIT");
}

/*
 * Who shares the GPU in time only has no twin, no slot and nothing set up for them: its launches
 * are counted, no more. With a quota, or when somebody may come into its band, it has.
 */
static void direct(void)
{
	static char *const what[] = { "steady", NULL };
	uint64_t passed;
	unsigned int i;
	struct run alone, r;

	fake_begin(GSCHED_LEASE_FREE);
	f.flags = GSCHED_ARB_ALONE | GSCHED_ARB_PRIVATE;
	run(true, steps, &r);
	same(&r, &expected, "a band of its own");
	ok(f.cl && f.cl->header.passed && !f.cl->header.managed[GSCHED_TIER_BLOCK] &&
	   !f.cl->header.managed[GSCHED_TIER_LAUNCH] && !f.rewrites && !f.submits,
	   "its launches pass, and nothing is rewritten (%u requests)", f.rewrites);
	fake_stop(&f);

	fake_begin(GSCHED_LEASE_FREE);
	f.flags = GSCHED_ARB_ALONE | GSCHED_ARB_PRIVATE;
	start(&r, true, what);
	fake_wait(&f, &f.attached_count, 1);
	ok(f.cl && becomes_64(&f.cl->header.passed, 3), "launches pass");
	for (i = 0; f.arb && i < GSCHED_SLOTS; i++)
		fake_window(&f, i, 2 * GSCHED_CAPSM);
	if (f.arb)
		f.arb->header.share = GSCHED_SHARE_ALL / 4;
	ok(f.cl && becomes_64(&f.cl->header.managed[GSCHED_TIER_BLOCK], 3), "a quota: twins");
	for (i = 0; f.arb && i < GSCHED_SLOTS; i++)
		fake_window(&f, i, 8 * GSCHED_CAPSM);
	if (f.arb)
		f.arb->header.share = GSCHED_SHARE_ALL;
	passed = f.cl ? f.cl->header.passed : 0;
	ok(f.cl && becomes_64(&f.cl->header.passed, passed + 3), "no quota: they pass again");
	if (f.arb)
		f.arb->header.flags = GSCHED_ARB_ALONE;
	passed = f.cl ? f.cl->header.managed[GSCHED_TIER_BLOCK] : 0;
	ok(f.cl && becomes_64(&f.cl->header.managed[GSCHED_TIER_BLOCK], passed + 3),
	   "somebody may come: twins");
	tell(&r, "1");
	finish(&r);
	start(&alone, false, what);
	tell(&alone, "1");
	finish(&alone);
	same(&r, &alone, "one way and the other");
	fake_stop(&f);
}

/*
 * In a band with others short kernels are submitted, each: windows make room for them, and they
 * wait for those who are more important. Among equals without windows neither is for anything.
 */
static void among_equals(void)
{
	static char *const what[] = { "tiny", NULL };
	struct run alone, r;
	unsigned int i;

	run(false, what, &alone);
	for (i = 0; i < 2; i++) {
		fake_begin(GSCHED_LEASE_NONE);
		f.flags = i ? GSCHED_ARB_PASS : 0;
		f.mode = GSCHED_MODE_SPATIAL;
		/* a running kernel does not cover the next one then */
		f.top_priority = 1;
		run(true, what, &r);
		same(&r, &alone, i ? "300 launches among equals" :
		     "300 launches in a band with others");
		ok(f.cl && (i ? f.cl->header.passed >= 300 && !f.submits : f.submits == 300),
		   "of them %u are submitted", f.submits);
		fake_stop(&f);
	}
}

/*
 * Where windows depend on knowing of a program's short kernels, a kernel that is on the device
 * stands for those behind it, but not where somebody more important may have to come first.
 */
static void covered(void)
{
	static char *const what[] = { "covered", NULL };
	struct run alone, r;
	unsigned int i;

	start(&alone, false, what);
	tell(&alone, "1");
	finish(&alone);
	for (i = 0; i < 2; i++) {
		fake_begin(GSCHED_LEASE_NONE);
		f.mode = GSCHED_MODE_SPATIAL;
		f.top_priority = i;
		start(&r, true, what);
		tell(&r, "1");
		finish(&r);
		same(&r, &alone, i ? "behind one, somebody is more important" :
		     "forty launches behind one");
		ok(i ? f.submits == 46 : f.submits < 40,
		   "of 46 launches %u are submitted", f.submits);
		fake_stop(&f);
	}
}

/* A kernel that has ended stands for nothing, though the agent may not have seen that yet. */
static void covered_no_more(void)
{
	static char *const what[] = { "one_by_one", NULL };
	struct run alone, r;
	unsigned int i, told;

	run(false, what, &alone);
	for (i = 0; i < 2; i++) {
		fake_begin(i ? GSCHED_LEASE_NONE : GSCHED_LEASE_NOTIFY);
		f.mode = GSCHED_MODE_SPATIAL;
		run(true, what, &r);
		same(&r, &alone, "two hundred kernels, one by one");
		told = i ? f.submits : f.async_submits;
		ok(told == 200, "of them the arbiter is told of %u%s", told, i ? ", and asked" : "");
		fake_stop(&f);
	}
}

/*
 * The arbiter is stopped while the program's gate is closed, or its task has no window: it runs on
 * unmanaged.
 */
static void silent(void)
{
	static char *const what[] = { "steady", NULL };
	struct run alone, r;
	unsigned int i, slot;

	start(&alone, false, what);
	tell(&alone, "1");
	finish(&alone);
	for (i = 0; i < 2; i++) {
		fake_begin(GSCHED_LEASE_FREE);
		f.flags = GSCHED_ARB_ALONE | (i ? 0 : GSCHED_ARB_PRIVATE);
		start(&r, true, what);
		fake_wait(&f, &f.attached_count, 1);
		ok(f.cl && (i ? becomes_64(&f.cl->header.managed[GSCHED_TIER_BLOCK], 1) :
			    becomes_64(&f.cl->header.passed, 1)),
		   "it launches");
		pthread_mutex_lock(&f.lock);
		f.arb->header.flags |= i ? 0 : GSCHED_ARB_CLOSED;
		for (slot = 0; i && slot < GSCHED_SLOTS; slot++)
			fake_window(&f, slot, 0);
		ok(becomes_64(&f.cl->header.unmanaged, 1),
		   "%s and the arbiter is stopped: it goes on", i ? "evicted," : "held,");
		pthread_mutex_unlock(&f.lock);
		tell(&r, "1");
		finish(&r);
		same(&r, &alone, i ? "evicted by one that is stopped" :
		     "held by one that is stopped");
		fake_stop(&f);
	}
}

/*
 * The arbiter takes its time to answer the thread that comes first: launches of others go on. A
 * silence of a second is taken for an arbiter that is stopped: one of three tries has to be faster.
 */
static void slow_attach(void)
{
	static char *const what[] = { "attaching", NULL };
	bool beside = false, managed = false;
	struct run r;
	int i;

	for (i = 0; i < 3 && !managed; i++) {
		fake_begin(GSCHED_LEASE_FREE);
		f.flags = GSCHED_ARB_ALONE | GSCHED_ARB_PRIVATE;
		f.hold_attaches = true;
		start(&r, true, what);
		fake_wait(&f, &f.attaches, 1);
		tell(&r, "1");
		beside = says(&r, "\n") && strstr(r.text, "beside 10\n");
		fake_attach(&f);
		managed = fake_wait(&f, &f.attached_count, 1) && beside &&
			  becomes_64(&f.cl->header.passed, 3);
		tell(&r, "1");
		finish(&r);
		fake_stop(&f);
	}
	ok(beside, "a thread waits for the arbiter: another one launches meanwhile");
	ok(managed, "and is managed from then on, in the context that it had");
	ok(!r.status, "the program ends as it should");
}

/*
 * A kernel's twin takes long: the first launch waits for it, as its original could not be evicted.
 */
static void first_launch(void)
{
	static char *const what[] = { "steady", NULL };
	struct run alone, r;

	start(&alone, false, what);
	tell(&alone, "1");
	finish(&alone);
	setenv("GSCHED_TWIN_WAIT_MS", "100000", 1);
	fake_begin(GSCHED_LEASE_FREE);
	f.hold_rewrites = true;
	start(&r, true, what);
	ok(fake_wait(&f, &f.rewrites, 1), "the twin is asked for");
	fake_rewrite(&f);
	ok(f.cl && becomes_64(&f.cl->header.managed[GSCHED_TIER_BLOCK], 1), "then it is launched");
	ok(f.cl && !f.cl->header.managed[GSCHED_TIER_LAUNCH] && !f.cl->header.passed,
	   "and nothing before it");
	tell(&r, "1");
	finish(&r);
	same(&r, &alone, "a first launch");
	fake_stop(&f);
	unsetenv("GSCHED_TWIN_WAIT_MS");
}

/* Twenty kernels, each of whose twins takes 0.3 s: a program does not wait for all of them. */
static void first_launches(void)
{
	static char *const what[] = { "kinds", NULL };
	struct gsched_cl_header *h;
	struct run alone, r;

	run(false, what, &alone);
	setenv("GSCHED_TWIN_WAIT_MS", "500", 1);
	fake_begin(GSCHED_LEASE_FREE);
	f.rewrite_us = 300000;
	f.window = 2 * GSCHED_CAPSM;
	run(true, what, &r);
	same(&r, &alone, "twenty first launches");
	h = f.cl ? &f.cl->header : NULL;
	ok(h && h->passed + h->managed[GSCHED_TIER_LAUNCH] > 10,
	   "most of them run the original (%llu)",
	   h ? (unsigned long long)(h->passed + h->managed[GSCHED_TIER_LAUNCH]) : 0);
	fake_stop(&f);
	unsetenv("GSCHED_TWIN_WAIT_MS");
}

/*
 * Nor does a kernel of few waves wait while nobody is there: originals run until it is known to be
 * long. With a quota it waits.
 */
static void tried(void)
{
	static char *const what[] = { "waves", NULL };
	unsigned int i;
	struct run r;

	setenv("GSCHED_TWIN_WAIT_MS", "100000", 1);
	for (i = 0; i < 2; i++) {
		fake_begin(GSCHED_LEASE_FREE);
		f.hold_rewrites = true;
		f.window = i ? 2 * GSCHED_CAPSM : 0;
		start(&r, true, what);
		ok(fake_wait(&f, &f.attached_count, 1), "attached");
		if (!i)
			ok(f.cl && becomes_64(&f.cl->header.passed, 1),
			   "two waves of blocks, and nobody there: originals run");
		fake_wait(&f, &f.rewrites, 1);
		fake_rewrite(&f);
		ok(f.cl && becomes_64(&f.cl->header.managed[GSCHED_TIER_BLOCK], 1) &&
			   (!i || !f.cl->header.passed),
		   "%s twins", i ? "with a quota none does before" :
		   "when they are known to be long,");
		tell(&r, "1");
		finish(&r);
		ok(!r.status, "it ends as it should");
		fake_stop(&f);
	}
	unsetenv("GSCHED_TWIN_WAIT_MS");
}

/*
 * A barrier over the grid, under a window that holds fewer blocks: the original is launched, and
 * the page says why.
 */
static void resident(void)
{
	static const char why[] = "meets: tier launch: its blocks may wait for each other, and all "
				  "fit the device at once";
	static char *const what[] = { "meets", NULL };
	struct run alone, r;

	run(false, what, &alone);
	fake_begin(GSCHED_LEASE_FREE);
	f.window = 2 * GSCHED_CAPSM;
	run(true, what, &r);
	same(&r, &alone, "blocks that wait for each other");
	ok(f.cl && f.cl->header.passed && !f.cl->header.managed[GSCHED_TIER_BLOCK],
	   "a quarter of the device: originals");
	ok(f.cl && strstr(f.cl->header.why, why), "the page says why: %s",
	   f.cl ? f.cl->header.why : "");
	fake_stop(&f);
}

/* Nobody is told of launches under a lease, unless they last; the page counts them. */
static void counted(void)
{
	static char *const what[] = { "slow", "tiny", NULL };
	struct gsched_cl_header *h;
	struct run r;

	fake_begin(GSCHED_LEASE_FREE);
	run(true, what, &r);
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
	/* what was launched before is accounted for by the agent */
	becomes_64(&f.cl->header.leased_tasks,
		   f.cl->header.managed[GSCHED_TIER_BLOCK] - f.completes);
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

/* How often the program's agent has slept; 0: it has none */
static unsigned long naps(pid_t pid)
{
	char path[64], line[128];
	unsigned long n = 0;
	struct dirent *task;
	bool agent = false;
	FILE *file;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	while (tasks && !n && (task = readdir(tasks))) {
		snprintf(path, sizeof(path), "/proc/%d/task/%.16s/status", (int)pid, task->d_name);
		file = fopen(path, "re");
		while (file && fgets(line, sizeof(line), file)) {
			if (!strncmp(line, "Name:", 5))
				agent = strstr(line, "gsched-agent");
			else if (agent && !strncmp(line, "voluntary_ctxt_switches:", 24))
				n = strtoul(line + 24, NULL, 10);
		}
		if (file)
			fclose(file);
	}
	if (tasks)
		closedir(tasks);
	return n;
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

static void refused(void)
{
	static char *const what[] = { "long", NULL };
	static const int errs[] = { ENOEXEC, 0 };
	unsigned int i;
	struct run r;

	for (i = 0; i < 2; i++) {
		fake_begin(GSCHED_LEASE_NONE);
		f.rewrite_err = errs[i];
		run(true, what, &r);
		same(&r, &expected_long, errs[i] ? "the rewrite service refuses" :
		     "its answer is no description");
		fake_wait(&f, &f.detached, 1);
		ok(f.cl && !f.cl->header.managed[GSCHED_TIER_BLOCK] &&
		   f.cl->header.managed[GSCHED_TIER_LAUNCH], "its kernels run in tier launch");
		ok(f.cl && strstr(f.cl->header.why, "tier launch: gschedd: <description>"),
		   "and the page says why");
		fake_stop(&f);
	}
}

static const char *checksum(const struct run *r)
{
	const char *at = strstr(r->text, "checksum");

	return !r->status && at ? at : NULL;
}

/*
 * Twins share the original's variables with it and with the host. What the driver does not find by
 * name is copied where nobody can change it; otherwise the kernel has no twin.
 */
static void variables(void)
{
	static char *const what[] = { BUILD "/test/libgsched/variables",
				      "selftests/libgsched/variables.ptx", NULL };
	struct run alone, r;
	pthread_t thread;

	run(false, what, &alone);
	fake_begin(GSCHED_LEASE_NONE);
	stirring = true;
	pthread_create(&thread, NULL, stir, NULL);
	run(true, what, &r);
	stirring = false;
	pthread_join(thread, NULL);
	same(&r, &alone, "variables of a module");
	ok(f.cl && f.cl->header.managed[GSCHED_TIER_BLOCK] >= 20 &&
	   f.cl->header.managed[GSCHED_TIER_LAUNCH] >= 10, "original and twin take turns");
	fake_stop(&f);

	setenv("VGPU_HIDE", "$str,$str$1,$str$2", 1);
	fake_begin(GSCHED_LEASE_NONE);
	run(true, what, &r);
	same(&r, &alone, "literals that the driver does not find");
	ok(f.cl && f.cl->header.managed[GSCHED_TIER_BLOCK] >= 20, "have a copy: %s",
	   f.cl ? f.cl->header.why : "");
	fake_stop(&f);

	setenv("VGPU_HIDE", "quiet", 1);
	fake_begin(GSCHED_LEASE_NONE);
	run(true, what, &r);
	same(&r, &alone, "a variable that the driver does not find");
	ok(f.cl && !f.cl->header.managed[GSCHED_TIER_BLOCK] &&
	   !strcmp(f.cl->header.why, "step: tier launch: the driver does not find its "
		   "variable quiet"), "has none: %s",
	   f.cl ? f.cl->header.why : "");
	fake_stop(&f);
	unsetenv("VGPU_HIDE");
}

/*
 * Functions by pointers from the program's tables, which it has changed before a twin was there.
 * Where it got at them by a way that is not followed, and where kernels change them, there is no
 * twin.
 */
static void tables(void)
{
	static char *const what[] = { BUILD "/test/libgsched/tables",
				      "selftests/libgsched/tables.ptx", NULL };
	static char *const aside[] = { BUILD "/test/libgsched/tables",
				       "selftests/libgsched/tables.ptx", "aside", NULL };
	struct run alone, r;
	pthread_t thread;

	run(false, what, &alone);
	fake_begin(GSCHED_LEASE_NONE);
	stirring = true;
	pthread_create(&thread, NULL, stir, NULL);
	run(true, what, &r);
	stirring = false;
	pthread_join(thread, NULL);
	same(&r, &alone, "tables of functions");
	ok(f.cl && f.cl->header.managed[GSCHED_TIER_BLOCK] == 12, "step has a twin: %llu launches",
	   (unsigned long long)(f.cl ? f.cl->header.managed[GSCHED_TIER_BLOCK] : 0));
	ok(f.cl && strstr(f.cl->header.why, "turns: tier launch: indirect call of functions that "
			  "kernels may have replaced in steps"),
	   "turns has none: %s", f.cl ? f.cl->header.why : "");
	fake_stop(&f);

	run(false, aside, &alone);
	fake_begin(GSCHED_LEASE_NONE);
	run(true, aside, &r);
	same(&r, &alone, "tables that it got at by another way");
	ok(f.cl && !f.cl->header.managed[GSCHED_TIER_BLOCK] &&
	   f.cl->header.managed[GSCHED_TIER_LAUNCH] == 15, "no twin");
	fake_stop(&f);
}

/*
 * Texture and surface references: a wing of a task reads what was bound when the task was launched.
 * Where that is not known the original is launched.
 */
static void textures(void)
{
	static char *const what[] = { BUILD "/test/libgsched/textures",
				      "selftests/libgsched/textures.ptx", NULL };
	static char *const proc[] = { BUILD "/test/libgsched/textures",
				      "selftests/libgsched/textures.ptx", "proc", NULL };
	static char *const unbound[] = { BUILD "/test/libgsched/textures",
					 "selftests/libgsched/textures.ptx", "unbound", NULL };
	static char *const odd[] = { BUILD "/test/libgsched/textures",
				     "selftests/libgsched/textures.ptx", "odd", NULL };
	struct run alone, r;
	pthread_t thread;
	int i;

	run(false, what, &alone);
	for (i = 0; i < 4; i++) {
		setenv("GSCHED_RESUMABLE_ALWAYS", i == 3 ? "1" : "0", 1);
		fake_begin(GSCHED_LEASE_NONE);
		stirring = true;
		pthread_create(&thread, NULL, stir, NULL);
		run(true, i == 2 ? proc : what, &r);
		stirring = false;
		pthread_join(thread, NULL);
		same(&r, &alone, i == 2 ? "references, by cuGetProcAddress" :
		     i == 3 ? "references, resumable" : "references");
		ok(f.cl && f.cl->header.managed[GSCHED_TIER_BLOCK] >= 20 && f.cl->header.wings,
		   "by twins (%llu launches) and wings (%llu): %s",
		   (unsigned long long)(f.cl ? f.cl->header.managed[GSCHED_TIER_BLOCK] : 0),
		   (unsigned long long)(f.cl ? f.cl->header.wings : 0),
		   f.cl ? f.cl->header.why : "");
		fake_stop(&f);
	}
	unsetenv("GSCHED_RESUMABLE_ALWAYS");
	for (i = 0; i < 2; i++) {
		run(false, i ? odd : unbound, &alone);
		fake_begin(GSCHED_LEASE_NONE);
		run(true, i ? odd : unbound, &r);
		same(&r, &alone, i ? "a format that is not the array's" :
		     "references that are not bound");
		ok(f.cl && !f.cl->header.managed[GSCHED_TIER_BLOCK] &&
		   f.cl->header.managed[GSCHED_TIER_LAUNCH] >= 4, "the original: %llu launches",
		   (unsigned long long)(f.cl ? f.cl->header.managed[GSCHED_TIER_LAUNCH] : 0));
		fake_stop(&f);
	}
}

/* A program of the runtime API. */
static void runtime(void)
{
	static char *const what[] = {
		/* NOLINTNEXTLINE(bugprone-suspicious-missing-comma): one path */
		BUILD "/programs/batch-rt", "--blocks", "256", "--threads", "64", "--iters", "300",
		"--kernels", "3", NULL,
	};
	struct run alone, r;
	pthread_t thread;

	if (access(what[0], X_OK) || access(BUILD "/vgpu/libcudart.so.13", R_OK)) {
		skip("a program of the runtime API", "not built: no nvcc");
		return;
	}
	run(false, what, &alone);
	fake_begin(GSCHED_LEASE_NONE);
	stirring = true;
	pthread_create(&thread, NULL, stir, NULL);
	run(true, what, &r);
	stirring = false;
	pthread_join(thread, NULL);
	ok(checksum(&alone) && checksum(&r) && !strcmp(checksum(&alone), checksum(&r)),
	   "a program of the runtime API: results as alone");
	ok(f.cl && f.cl->header.managed[GSCHED_TIER_BLOCK] >= 3,
	   "and its launches are of tier block");
	fake_stop(&f);
}

static void drivers(void)
{
	static char *const what[] = { "plain", NULL };
	struct run r;

	setenv("GSCHED_CUDA_DRIVER", "/nonexistent/libcuda.so.1", 1);
	run(true, what, &r);
	ok(WIFEXITED(r.status) && WEXITSTATUS(r.status) == 1 && !r.len,
	   "no driver: cuInit fails, nothing crashes");
	setenv("GSCHED_CUDA_DRIVER", BUILD "/lib/gsched/libcuda.so.1", 1);
	run(true, what, &r);
	ok(WIFEXITED(r.status) && WEXITSTATUS(r.status) == 1, "ourselves for the driver: refused");
	setenv("GSCHED_CUDA_DRIVER", BUILD "/test/libgsched/libbare.so", 1);
	run(true, what, &r);
	ok(WIFEXITED(r.status) && WEXITSTATUS(r.status) == 1,
	   "a driver that lacks nearly everything: errors, no crash");
	unsetenv("GSCHED_CUDA_DRIVER");
}

int main(void)
{
	static char *const what[] = { "long", NULL };
	char shm[64], second[80];

	/* devices of its own: two of these tests may run at a time */
	snprintf(shm, sizeof(shm), "/dev/shm/gsched-interposer-%d", (int)getpid());
	snprintf(second, sizeof(second), "%s.1", shm);
	setenv("VGPU_NAME", shm + strlen("/dev/shm/"), 1);
	setenv("VGPU_SMS", "8", 1);
	/* as many streams with gates as there are */
	setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
	run(false, steps, &expected);
	run(false, what, &expected_long);
	if (!ok(!expected.status && !expected_long.status, "the program alone")) {
		unlink(shm);
		return done();
	}
	no_arbiter();
	leases();
	windows();
	workers();
	unloaded();
	locks();
	starved();
	early();
	left();
	evicted();
	suspended();
	queued();
	resumed();
	alone_is_plain();
	death();
	restarted();
	lost();
	counted();
	graphs();
	dependents();
	charged();
	charged_at_end();
	silent();
	slow_attach();
	resident();
	first_launch();
	first_launches();
	tried();
	direct();
	among_equals();
	covered();
	covered_no_more();
	refused();
	variables();
	tables();
	textures();
	runtime();
	drivers();
	unlink(shm);
	unlink(second);
	return done();
}
