// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The interposer under app.c on vgpu, with the stand-in arbiter: whatever the arbiter does, the
 * program's results are those of a run alone. Run from the root of the tree.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "libgsched/transport.h"
#include "managed.h"

static char *const steps[] = { "plain", "small", "chain", "packed", "extended", "library",
			       "threads", "second", "burst", "forked", "wrong", NULL };

static struct run expected, expected_long;

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

/* Do all lines of the page that were used state a task? */
static bool states_all(void)
{
	unsigned int i, n = 0;

	for (i = 0; f.cl && i < GSCHED_SLOTS; i++) {
		const struct gsched_cl_slot *line = &f.cl->slot[i];

		if (!line->seq)
			continue;
		n++;
		if (!line->blocks_per_sm || line->blocks_per_sm > 32 || !line->blocks ||
		    line->intensity != GSCHED_INTENSITY_H_M || !line->launch_ns ||
		    !line->stream)
			return false;
	}
	return n;
}

static void windows(void)
{
	static char *const what[] = { "long", "chain", "packed", "threads", NULL };
	struct run alone, r;
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
		stir_begin();
		run(true, what, &r);
		stir_end();
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
	run(true, what, &r);
	ok(f.last_submit.size == sizeof(f.last_submit) &&
	   f.last_submit.intensity == GSCHED_INTENSITY_H_M, "the arbiter is told of GSCHED_CLASS");
	fake_stop(&f);
	fake_begin(GSCHED_LEASE_FREE);
	run(true, what, &r);
	ok(states_all(), "a launch under a lease states what a SUBMIT would");
	fake_stop(&f);
	setenv("GSCHED_CLASS", "high", 1);
	fake_begin(GSCHED_LEASE_FREE);
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

static void all_of_tier_block(char *step, const char *name)
{
	char *const what[] = { step, NULL };
	struct run alone, r;

	run(false, what, &alone);
	fake_begin(GSCHED_LEASE_NONE);
	stir_begin();
	run(true, what, &r);
	stir_end();
	same(&r, &alone, name);
	ok(f.cl && f.cl->header.managed[GSCHED_TIER_BLOCK] &&
	   !f.cl->header.managed[GSCHED_TIER_LAUNCH],
	   "%s: %llu launches of tier block, %llu others", name,
	   (unsigned long long)(f.cl ? f.cl->header.managed[GSCHED_TIER_BLOCK] : 0),
	   (unsigned long long)(f.cl ? f.cl->header.managed[GSCHED_TIER_LAUNCH] : 0));
	fake_stop(&f);
}

static void shared_memory(void)
{
	/* the twins have their words behind dynamic shared memory */
	all_of_tier_block("full", "static shared memory is full");
	all_of_tier_block("most", "the limit is all shared memory that there is");
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

	setenv("VGPU_DEVICES", "2", 1);
	setenv("VGPU_LOCKS", "1", 1);
	setenv("MALLOC_PERTURB_", "165", 1);
	run(false, what, &alone);
	fake_begin(GSCHED_LEASE_NONE);
	stir_begin();
	run(true, what, &r);
	stir_end();
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
	char name[64];
	unsigned int i;

	for (i = 0; i < 3; i++) {
		run(false, cases[i].what, &alone);
		snprintf(name, sizeof(name), "%s with VGPU_LOCKS=%s", cases[i].what[0],
			 cases[i].locks);
		setenv("VGPU_LOCKS", cases[i].locks, 1);
		fake_begin(GSCHED_LEASE_NONE);
		stir_begin();
		run(true, cases[i].what, &r);
		stir_end();
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

static bool resumable_launched(unsigned int least)
{
	unsigned int i;

	for (i = 0; i < PATIENCE_MS; i++, usleep(1000))
		if (f.cl && __atomic_load_n(&f.cl->header.resumable, __ATOMIC_ACQUIRE) >= least)
			return true;
	return false;
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

	start(&alone, false, what);
	tell(&alone, "1");
	finish(&alone);
	fake_begin(GSCHED_LEASE_NONE);
	stir_begin();
	start(&r, true, what);
	ok(resumable_launched(1), "long blocks: in the resumable form");
	tell(&r, "1");
	finish(&r);
	stir_end();
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

/* Waits until the ends of @n launches are told or, as of those not told of in time, counted. */
static bool ended(uint64_t n)
{
	for (unsigned int i = 0; f.cl && i < PATIENCE_MS; i++, usleep(1000))
		if (__atomic_load_n(&f.cl->header.leased_tasks, __ATOMIC_ACQUIRE) +
		    __atomic_load_n(&f.completes, __ATOMIC_ACQUIRE) >= n)
			return true;
	return false;
}

/* 300 launches of kernels whose SMs are kept free, if @held. How many times of them are told. */
static unsigned int times_told(bool held, char *const what[], const struct run *alone)
{
	/* not if the launch waits for its kernel */
	const bool later = held && !getenv("CUDA_LAUNCH_BLOCKING");
	unsigned int told;
	struct run r;

	fake_begin(GSCHED_LEASE_NOTIFY);
	f.flags = held ? GSCHED_ARB_HELD : 0;
	f.mode = GSCHED_MODE_SPATIAL;
	f.top_priority = 1;
	start(&r, true, what);
	/* a program that ends takes along what the arbiter has not read in time */
	fake_wait(&f, &f.attached_count, 1);
	ok(ended(300 + !later), "each ends, and the arbiter hears of it");
	tell(&r, "1");
	finish(&r);
	fake_wait(&f, &f.detached, 1);
	same(&r, alone, later ? "300 launches that are told later" : "300 that are told first");
	/* on a busy machine it does not read in time: it is asked, or not told any more */
	told = f.submits + f.async_submits;
	ok(f.cl && told - f.cancels + f.cl->header.leased_tasks == 300 && f.async_submits > 100 &&
	   f.cancels == !later, "%u are told, %u of them cancelled", told, f.cancels);
	fake_stop(&f);
	return f.timed_originals;
}

/*
 * Where its SMs are kept free a kernel is launched before the arbiter is told, as is seen from one
 * that the driver refuses; and few are timed. Not if the launch waits for its kernel.
 */
static void told_behind(void)
{
	static char *const what[] = { "tiny", "wrong", "stop", NULL };
	struct run alone;
	unsigned int i, tries, times;

	start(&alone, false, what);
	tell(&alone, "1");
	finish(&alone);
	for (i = 0; i < 3; i++) {
		if (i == 2)
			setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
		/* one in 8, or in 128; on a busy machine some are lost */
		for (tries = 0, times = 0; tries < 5 && (i == 1 ? !tries : times < 30); tries++)
			times = times_told(i, what, &alone);
		ok(i == 1 ? times <= 6 : times >= 30, "the times of %u are told", times);
	}
	unsetenv("CUDA_LAUNCH_BLOCKING");
}

/*
 * A kernel that is known to be short is not looked up, but as soon as the arbiter asks for its
 * launches they come, and a long launch of the same kernel is another matter.
 */
static void known_short(void)
{
	static char *const what[] = { "tiny-until-told", NULL };
	uint64_t passed, leased;
	struct run alone, r;

	start(&alone, false, what);
	tell(&alone, "1");
	finish(&alone);
	fake_begin(GSCHED_LEASE_NONE);
	f.flags = GSCHED_ARB_PASS;
	f.mode = GSCHED_MODE_SPATIAL;
	f.top_priority = 1;
	start(&r, true, what);
	fake_wait(&f, &f.attached_count, 1);
	ok(f.cl && becomes_64(&f.cl->header.passed, 300) && !f.submits,
	   "300 launches of a short kernel pass, %u are submitted", f.submits);
	leased = f.cl ? f.cl->header.leased_ns : 0;
	passed = f.cl ? f.cl->header.passed : 0;
	ok(f.cl && becomes_64(&f.cl->header.passed, passed + 300) &&
	   f.cl->header.leased_ns - leased >= 300 * 1000,
	   "the time of each is counted");
	if (f.arb)
		__atomic_store_n(&f.arb->header.flags, 0, __ATOMIC_SEQ_CST);
	ok(fake_wait(&f, &f.submits, 1), "the arbiter wants to know: one is submitted");
	passed = f.cl ? f.cl->header.passed : 0;
	ok(fake_wait(&f, &f.submits, 100) && f.cl && f.cl->header.passed == passed,
	   "and so is every other one");
	if (f.arb)
		__atomic_store_n(&f.arb->header.flags, GSCHED_ARB_PASS, __ATOMIC_SEQ_CST);
	ok(f.cl && becomes_64(&f.cl->header.passed, passed + 300), "they may pass again, and do");
	tell(&r, "1");
	finish(&r);
	same(&r, &alone, "short launches, then a long one");
	ok(f.cl && f.cl->header.managed[GSCHED_TIER_BLOCK] == 1, "which is a twin");
	fake_stop(&f);
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
	static char *const what[] = { "one_by_one", "stop", NULL };
	struct run alone, r;
	unsigned int i, told;

	start(&alone, false, what);
	tell(&alone, "1");
	finish(&alone);
	for (i = 0; i < 2; i++) {
		fake_begin(i ? GSCHED_LEASE_NONE : GSCHED_LEASE_NOTIFY);
		f.mode = GSCHED_MODE_SPATIAL;
		start(&r, true, what);
		fake_wait(&f, &f.attached_count, 1);
		ended(200);
		tell(&r, "1");
		finish(&r);
		same(&r, &alone, "two hundred kernels, one by one");
		/* on a busy machine it does not read in time, and is asked then */
		told = f.submits + f.async_submits;
		ok(told == 200 && (f.async_submits > 0) == !i,
		   "of them the arbiter is told of %u%s", told, i ? ", and asked" : "");
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

/* A twin that halves how many blocks an SM hosts: the original, where nobody needs a window */
static void fewer(void)
{
	static const char why[] = "full: blocks per SM: 1 of the twin, 2 of the original: tier "
				  "launch while the program is alone in its band";
	static char *const what[] = { "tight", NULL };
	static const struct {
		const char *name;
		uint32_t lease, flags, share;
		bool twin;
	} cases[] = {
		{ "alone on the device", GSCHED_LEASE_FREE, 0, 8, false },
		{ "alone in its band", GSCHED_LEASE_NOTIFY, GSCHED_ARB_ALONE, 8, false },
		{ "beside others", GSCHED_LEASE_NOTIFY, 0, 8, true },
		{ "under a quota", GSCHED_LEASE_FREE, 0, 4, true },
	};
	struct run alone, r;
	unsigned int i;

	run(false, what, &alone);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		fake_begin(cases[i].lease);
		f.flags = cases[i].flags;
		f.window = cases[i].share * GSCHED_CAPSM;
		run(true, what, &r);
		same(&r, &alone, cases[i].name);
		ok(f.cl && !f.cl->header.managed[GSCHED_TIER_BLOCK] == !cases[i].twin,
		   "half of the blocks fit, %s: %s", cases[i].name,
		   cases[i].twin ? "twins" : "originals");
		ok(f.cl && strstr(f.cl->header.why, why), "the page says it: %s",
		   f.cl ? f.cl->header.why : "");
		fake_stop(&f);
	}
}

static void refused(void)
{
	static char *const what[] = { "long", NULL };
	static const int errs[] = { ENOEXEC, 0 };
	unsigned int i;
	struct run r;

	for (i = 0; i < 2; i++) {
		fake_begin(GSCHED_LEASE_NONE);
		f.rewriter = NULL;
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

/* A program that opens the driver in a namespace of its own is managed there, too. */
static void apart(void)
{
	static char *const what[] = { "apart", NULL };
	struct run r;

	run(true, what, &r);
	ok(!r.status && strstr(r.text, "linked"),
	   "dlmopen() of the driver gives the interposer: %s", r.text);
#ifndef __SANITIZE_ADDRESS__	/* a copy of the simulated one would bring a copy of ASan */
	run(false, what, &r);
	ok(!r.status && strstr(r.text, "another"), "and a copy of it otherwise");
#endif
}

int main(void)
{
	static char *const what[] = { "long", NULL };

	device_begin("interposer");
	run(false, steps, &expected);
	run(false, what, &expected_long);
	if (!ok(!expected.status && !expected_long.status, "the program alone")) {
		device_end();
		return done();
	}
	no_arbiter();
	leases();
	windows();
	shared_memory();
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
	silent();
	slow_attach();
	resident();
	fewer();
	first_launch();
	first_launches();
	tried();
	direct();
	among_equals();
	told_behind();
	known_short();
	covered();
	covered_no_more();
	refused();
	drivers();
	apart();
	device_end();
	return done();
}
