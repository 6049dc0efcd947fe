// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The states of slots and of their control blocks (libgsched/cuda/task/), without a driver: each
 * transition from each state. Those that the diagram in task.h does not have are refused, or abort
 * where the interposer checks itself.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "task/task.h"
#include "selftests/tap.h"

#define ROUNDS	20000
#define MOST	16	/* tasks at a time */
#define SEQ	7

static struct gsched_arb_page arb;
static struct gsched_cl_page cl;
static struct gi_client client = { .arb = &arb, .cl = &cl, .sms = 8 };
static struct gi_words words;
static struct gsr_control blank[GSCHED_SLOTS];
static struct gi_ctx cx = { .client = &client, .words = &words, .blank = blank };
static struct gi_func fn;
static struct gi_graph graph;

static const char *const names[] = { "FREE", "CLAIMED", "RUNNING", "DRAINING", "LOST" };
#define STATES	(sizeof(names) / sizeof(names[0]))
#define IN(state)	(1u << GI_SLOT_##state)

static CUresult exchange_mode(CUstreamCaptureMode *mode)
{
	return CUDA_SUCCESS;
}

/* ---- transitions ---- */

static bool locked(bool (*move)(struct gi_client *, unsigned int), unsigned int slot)
{
	bool done;

	pthread_mutex_lock(&client.lock);
	done = move(&client, slot);
	pthread_mutex_unlock(&client.lock);
	return done;
}

static bool run(unsigned int slot)
{
	return gi_slot_run(&client, slot);
}

static bool unclaim(unsigned int slot)
{
	return gi_slot_unclaim(&client, slot, false);
}

static bool lose(unsigned int slot)
{
	return gi_slot_lose(&client, slot);
}

static bool drain(unsigned int slot)
{
	return locked(gi_slot_drain, slot);
}

static bool finish(unsigned int slot)
{
	return locked(gi_slot_finish, slot);
}

static bool give_up(unsigned int slot)
{
	return locked(gi_slot_give_up, slot);
}

static const struct transition {
	const char *name;
	bool (*move)(unsigned int slot);
	unsigned int from;
	enum gi_slot_state to;
} transitions[] = {
	{ "run", run, IN(CLAIMED), GI_SLOT_RUNNING },
	{ "unclaim", unclaim, IN(CLAIMED), GI_SLOT_FREE },
	{ "lose", lose, IN(CLAIMED), GI_SLOT_LOST },
	{ "drain", drain, IN(RUNNING), GI_SLOT_DRAINING },
	{ "finish", finish, IN(DRAINING), GI_SLOT_FREE },
	{ "give_up", give_up, IN(RUNNING) | IN(DRAINING), GI_SLOT_FREE },
};
#define TRANSITIONS	(sizeof(transitions) / sizeof(transitions[0]))

static struct gi_slot *slot_at(unsigned int slot)
{
	return &client.tasks->slot[slot];
}

static void afresh(void)
{
	if (client.tasks)
		gi_tasks_free(&client);
	if (!gi_tasks_new(&client))
		abort();
	memset(&cl, 0, sizeof(cl));
	memset(cx.save, 0, sizeof(cx.save));
	atomic_store(&cx.clean, ~0ull);
	atomic_store(&cx.dirty, 0);
	cx.cleaning = 0;
}

/* As a launch does, with all that a task has */
static int claim(bool twin)
{
	int slot = gi_slot_claim(&client, &cx, twin);
	struct gi_slot *s;

	if (slot < 0)
		return slot;
	s = slot_at(slot);
	s->seq = SEQ;
	s->cx = &cx;
	s->fn = gi_func_hold(&fn);
	s->graph = gi_graph_hold(&graph);
	s->bound = NULL;
	s->save = &cx.save[slot];
	s->save->state = GI_SAVE_TAKEN;
	atomic_fetch_or(&client.tasks->gated, 1ull << slot);
	return slot;
}

/* The only slot that was used, in @state */
static unsigned int reach(enum gi_slot_state state)
{
	int slot;

	afresh();
	if (state == GI_SLOT_FREE)
		return 0;
	slot = claim(false);
	if (slot < 0 || (state == GI_SLOT_LOST && !lose(slot)) ||
	    ((state == GI_SLOT_RUNNING || state == GI_SLOT_DRAINING) && !run(slot)) ||
	    (state == GI_SLOT_DRAINING && !drain(slot)))
		abort();
	return slot;
}

/* What the masks say is what the state says. */
static bool is_in(unsigned int slot, enum gi_slot_state state)
{
	uint64_t bit = 1ull << slot;
	bool flies = state == GI_SLOT_RUNNING || state == GI_SLOT_DRAINING;

	return gi_slot_state(slot_at(slot)) == state &&
	       gi_slots_taken(client.tasks) == (state == GI_SLOT_FREE ? 0 : bit) &&
	       gi_slots_in_flight(client.tasks) == (flies ? bit : 0);
}

/* In a child: did @action abort, or else, where nothing checks, was it refused? */
static bool caught(bool (*action)(const void *), const void *arg)
{
	int status, null;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		null = open("/dev/null", O_WRONLY | O_CLOEXEC);
		if (null >= 0)
			dup2(null, STDERR_FILENO);
		_exit(action(arg));
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return false;
#ifdef GI_CHECKED
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
#else
	return WIFEXITED(status) && !WEXITSTATUS(status);
#endif
}

struct attempt {
	const struct transition *t;
	unsigned int slot;
	enum gi_slot_state state;
	unsigned int users;
};

/* true: something came of it */
static bool attempt(const void *arg)
{
	const struct attempt *a = arg;

	return a->t->move(a->slot) || !is_in(a->slot, a->state) || fn.users != a->users;
}

static void each(void)
{
	unsigned int state, i;

	for (state = 0; state < STATES; state++)
		for (i = 0; i < TRANSITIONS; i++) {
			const struct transition *t = &transitions[i];
			struct attempt a = { t, reach(state), state, fn.users };

			if (t->from >> state & 1)
				ok(is_in(a.slot, state) && t->move(a.slot) && is_in(a.slot, t->to),
				   "%s: %s to %s", t->name, names[state], names[t->to]);
			else
				ok(caught(attempt, &a), "%s: not from %s", t->name, names[state]);
		}
}

#ifdef GI_CHECKED
static bool unlocked(const void *slot)
{
	return gi_slot_drain(&client, *(const unsigned int *)slot);
}

static void lock(void)
{
	unsigned int slot = reach(GI_SLOT_RUNNING);

	ok(caught(unlocked, &slot), "without the client's lock no task is ended");
}
#else
static void lock(void)
{
	/* not looked at */
}
#endif

/* A mask that says that a slot is free does not make it so. */
static bool claim_taken(const void *arg)
{
	atomic_fetch_or(&client.tasks->free, 1);
	return claim(false) != 1 || gi_slot_state(slot_at(0)) != GI_SLOT_RUNNING;
}

static void claims(void)
{
	uint64_t seen = 0;
	int i, slot, bad = 0;

	reach(GI_SLOT_RUNNING);
	ok(caught(claim_taken, NULL), "claim: not from RUNNING");
	afresh();
	for (i = 0; i < GSCHED_SLOTS; i++) {
		slot = claim(i % 2);
		bad += slot < 0 || seen >> slot & 1 ||
		       gi_slot_state(slot_at(slot)) != GI_SLOT_CLAIMED;
		seen |= slot < 0 ? 0 : 1ull << slot;
	}
	ok(!bad && !~seen, "claim: FREE to CLAIMED, each slot once");
	ok(claim(false) == -1 && claim(true) == -1, "and then there is none");
	ok(unclaim(9) && claim(true) == 9, "but one that was given back");
	lose(9);
	ok(claim(false) == -1, "one that is lost is never claimed again");

	afresh();
	atomic_store(&cx.clean, 0x30);
	ok(claim(true) == 4 && claim(false) == 0 && claim(true) == 5 && claim(true) == -1,
	   "a twin has a slot with a clean control block, an original another");
	atomic_store(&cx.clean, ~0ull);
	ok(claim(false) == 1, "or one of those if there is no other");
}

/* What becomes of what the task had */
static bool released(unsigned int slot, unsigned int save, bool retired, uint64_t finished)
{
	return !fn.users && graph.users == 1 && cx.save[slot].state == save &&
	       cl.slot[slot].retired == (retired ? SEQ : 0) && !atomic_load(&client.tasks->gated) &&
	       atomic_load(&client.tasks->finished) == finished;
}

static void ends(void)
{
	unsigned int slot;

	fn.users = 0;
	graph.users = 1;
	slot = reach(GI_SLOT_CLAIMED);
	ok(unclaim(slot) && released(slot, GI_SAVE_FREE, true, 0), "a launch that is given back");
	slot = reach(GI_SLOT_CLAIMED);
	ok(gi_slot_unclaim(&client, slot, true) && released(slot, GI_SAVE_LOST, true, 0),
	   "one whose save area is still written to");
	slot = reach(GI_SLOT_DRAINING);
	ok(finish(slot) && released(slot, GI_SAVE_FREE, false, 1), "a task that has ended");
	slot = reach(GI_SLOT_RUNNING);
	ok(give_up(slot) && released(slot, GI_SAVE_LOST, true, 1), "one that is given up");
	slot = reach(GI_SLOT_CLAIMED);
	ok(lose(slot) && !fn.users && graph.users == 2 && cx.save[slot].state == GI_SAVE_TAKEN &&
		   gi_slots_taken(client.tasks) == 1ull << slot &&
		   cl.slot[slot].retired == SEQ,
	   "one that is lost keeps what its workers use");
	ok(!gi_slots_busy(client.tasks) && strstr(cl.header.why, "1 of 64 slots"),
	   "nobody waits for it, and the page says so");
	slot = claim(false);
	ok(gi_slots_busy(client.tasks) == 1ull << slot && unclaim(slot), "but for the others");
	graph.users = 1;
}

/* ---- control blocks ---- */

static CUresult copy(CUdeviceptr to, const void *from, size_t size, CUstream stream)
{
	return CUDA_SUCCESS;
}

static CUresult batch(CUstream stream, unsigned int n, CUstreamBatchMemOpParams *ops,
		      unsigned int flags)
{
	return CUDA_SUCCESS;
}

static bool use(const void *slot)
{
	return gi_control_claim(&cx, *(const unsigned int *)slot);
}

static bool used(const void *slot)
{
	return gi_control_release(&cx, *(const unsigned int *)slot);
}

static bool masks(uint64_t clean, uint64_t dirty, uint64_t cleaning)
{
	return cx.clean == clean && cx.dirty == dirty && cx.cleaning == cleaning &&
	       gi_controls_due(&cx) == (dirty || cleaning);
}

static void controls(void)
{
	unsigned int slot = 3;

	gi_real.cuMemcpyHtoDAsync_v2 = copy;
	gi_real.cuStreamBatchMemOp_v2 = batch;
	afresh();
	atomic_store(&cx.clean, 1u << 3);
	ok(caught(used, &slot), "a clean control block is not given back");
	ok(use(&slot) && masks(0, 0, 0), "it is used");
	ok(caught(use, &slot), "but not twice");
	gi_controls_clean(&cx);
	ok(used(&slot) && masks(0, 1u << 3, 0), "given back it is dirty");
	ok(caught(use, &slot) && caught(used, &slot), "and is neither used nor given back then");
	gi_controls_clean(&cx);
	ok(masks(0, 0, 1u << 3) && caught(use, &slot), "it is being cleaned, and not used yet");
	gi_controls_clean(&cx);
	ok(masks(0, 0, 1u << 3), "until the stream says that it is done");
	words.cleaned = cx.clean_ticket;
	gi_controls_clean(&cx);
	ok(masks(1u << 3, 0, 0) && use(&slot), "then it is clean");
}

/* ---- owners ---- */

static _Atomic int owner[GSCHED_SLOTS];
static _Atomic unsigned int wrong, launched, ended;
static _Atomic bool stop;

static void own(unsigned int slot, int from, int to)
{
	if (atomic_exchange(&owner[slot], to) != from)
		wrong++;
}

static void *launches(void *arg)
{
	int me = (int)(intptr_t)arg, i, slot;

	for (i = 0; i < ROUNDS; i++) {
		/* there always is a slot, so that claims make no passes */
		while (launched - ended > MOST)
			sched_yield();
		slot = gi_slot_claim(&client, &cx, i % 3 == 0);
		if (slot < 0) {
			wrong++;
			continue;
		}
		own(slot, 0, me);
		/* plain writes: the state orders them with those of the next owner */
		slot_at(slot)->seq = i;
		slot_at(slot)->fn = gi_func_hold(&fn);
		if (i % 5 == 0) {
			own(slot, me, 0);
			gi_slot_unclaim(&client, slot, false);
			continue;
		}
		own(slot, me, -1);
		launched++;
		gi_slot_run(&client, slot);
	}
	return NULL;
}

static void *passes(void *arg)
{
	uint64_t mask;

	while (!stop || gi_slots_in_flight(client.tasks)) {
		pthread_mutex_lock(&client.lock);
		for (mask = gi_slots_in_flight(client.tasks); mask; mask &= mask - 1) {
			unsigned int slot = __builtin_ctzll(mask);
			bool runs = gi_slot_state(slot_at(slot)) == GI_SLOT_RUNNING;

			if (runs && slot_at(slot)->seq % 7 == 0) {
				gi_slot_drain(&client, slot);
				continue;
			}
			own(slot, -1, 0);
			ended++;
			if (runs)
				gi_slot_give_up(&client, slot);
			else
				gi_slot_finish(&client, slot);
		}
		pthread_mutex_unlock(&client.lock);
	}
	return NULL;
}

static void owners(void)
{
	pthread_t thread[4];
	intptr_t i;

	afresh();
	atomic_store(&cx.clean, 0xffffffff);
	for (i = 0; i < GSCHED_SLOTS; i++) {
		slot_at(i)->cx = &cx;
		slot_at(i)->save = NULL;
	}
	pthread_create(&thread[3], NULL, passes, NULL);
	for (i = 0; i < 3; i++)
		pthread_create(&thread[i], NULL, launches, (void *)(i + 1));
	for (i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	stop = true;
	pthread_join(thread[3], NULL);
	ok(!wrong, "a slot has one owner at a time: %u times another one", wrong);
	ok(launched == ended && launched && ended == client.tasks->finished && !fn.users,
	   "%u tasks launched, %u ended", launched, ended);
	ok(!gi_slots_taken(client.tasks), "and no slot is taken");
}

/* Records of suspended block-tasks: as many as fit */
static void records(void)
{
	const size_t stride = 64 << 20;

	client.memory = 32 * (3 * stride * client.sms + sizeof(struct gsr_save));
	ok(gi_save_records(&client, stride, 4) == 3, "room for three records an SM, not four");
	ok(gi_save_records(&client, stride, 2) == 2, "as many as there are workers");
	ok(gi_save_records(&client, 4 * stride, 4) == 0 &&
	   strstr(cl.header.why, "too large to suspend: 2048 MiB for one on each SM"),
	   "not one: %s", cl.header.why);
	client.memory = 0;
	ok(gi_save_records(&client, stride, 4) == 0, "a device whose memory is not known");
}

int main(void)
{
	setenv("GSCHED_SLOT_WAIT_MS", "1", 1);
	gi_real.cuThreadExchangeStreamCaptureMode = exchange_mode;
	pthread_mutex_init(&client.lock, NULL);
	pthread_mutex_init(&cx.save_lock, NULL);
	each();
	lock();
	claims();
	ends();
	controls();
	owners();
	records();
	gi_tasks_free(&client);
	return done();
}
