// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The program's streams: a table of them, the order of their work, and their priorities.
 *
 * A task is several calls of the driver: the launch, and the done gate behind it. Work that another
 * thread enqueued between the two would not wait for the wings. So these calls exclude each other:
 * a task's calls hold the stream exclusively, all others share it. Stream order reaches further:
 * work in the legacy stream waits for that in all blocking streams of the context, and vice versa.
 * Calls that neither read nor write the program's data (events and waits for them) are correct on
 * either side of a task, and are not held.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include "device/device.h"

#define BUCKETS		256
/* A word counts the calls that share a stream; TASK: a task holds it exclusively, or waits to */
#define TASK		(1u << 31)
/* most wait: a call may wait for the GPU, and the GPU for something this thread has yet to do */
#define PATIENCE_NS	20000000
#define LEGACY_NS	1000000	/* for an event with no work before it to complete */
#define SYNC_ENTRY_NS	10000000	/* for a call to get to the driver's check for captures */

struct gi_stream {
	struct gi_stream *next;
	CUstream handle;
	struct gi_ctx *cx;
	bool blocking;			/* ordered with the legacy stream */
	bool counted_wait;		/* has waited: counted in gi_streams_waiting */
	bool capturing;			/* a capture began here: counted in gi_hot.captures */
	/* priorities: what the program asked for, and what the stream has; within the device's */
	int asked, given;
	_Atomic uint32_t calls;
};

_Atomic bool gi_green;
_Atomic unsigned int gi_streams_waiting;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* innermost; protects the table */
static struct gi_stream *buckets[BUCKETS];
static struct gi_stream *spare;		/* never freed: another thread's call may still use one */
static pthread_key_t waits_key;	/* set: the thread's own default stream is counted as waiting */
static bool waits_end;			/* the key exists */
static _Atomic int enqueuing;		/* calls under way that enqueue work */
static _Atomic bool enqueue_held;		/* such calls must wait */

/* ---- the table ---- */

static struct gi_stream **bucket_of(CUstream handle)
{
	return &buckets[gi_hash(handle) % BUCKETS];
}

/* @lock is held. */
static struct gi_stream *find_stream(CUstream handle)
{
	struct gi_stream *s;

	for (s = *bucket_of(handle); s && s->handle != handle; s = s->next)
		;
	return s;
}

/* What a stream that the program asked to have @asked gets in a group with a priority. */
int gi_lift_priority(const struct gi_ctx *cx, int asked)
{
	const int levels = cx->least - cx->greatest + 1, upper = (levels + 1) / 2,
		  rank = cx->least - asked;

	if (levels < 2)
		return asked;
	/*
	 * Rounded up: the first step above the least priority, the only one that most programs use,
	 * is a step here too.
	 */
	return cx->least - (levels - upper) - (rank * (upper - 1) + levels - 2) / (levels - 1);
}

static int clamp_priority(const struct gi_ctx *cx, int asked)
{
	return asked > cx->least ? cx->least : asked < cx->greatest ? cx->greatest : asked;
}

/* Counts the stream in gi_hot, or, with -1, no longer. @lock is held. */
static void count_priority(const struct gi_stream *s, int n)
{
	if (s->given != s->asked)
		atomic_fetch_add(&gi_hot.raised, n);
	if (s->given != gi_lift_priority(s->cx, s->asked))
		atomic_fetch_add(&gi_hot.unraised, n);
}

/* @lock is held. */
static void set_priority(struct gi_stream *s, int asked, int given)
{
	count_priority(s, -1);
	s->asked = asked;
	s->given = given;
	count_priority(s, 1);
}

/* The hardware prefers it to streams of programs without a priority. */
static bool is_preferred(const struct gi_stream *s)
{
	return s->given != s->asked ||
	       (s->given == s->cx->greatest && s->cx->greatest < s->cx->least);
}

/*
 * @lock is held. If the handle is in the table, another thread was faster, or the destruction of an
 * earlier stream with this handle was not seen.
 */
static struct gi_stream *add_stream(const struct gi_stream *model)
{
	struct gi_stream *s = find_stream(model->handle);

	if (!s) {
		s = spare ? spare : malloc(sizeof(*s));
		if (!s)
			return NULL;
		if (s == spare)
			spare = s->next;
		s->next = *bucket_of(model->handle);
		*bucket_of(model->handle) = s;
		atomic_store(&s->calls, 0);
		s->counted_wait = false;
		s->capturing = false;
	} else {
		count_priority(s, -1);
	}
	s->handle = model->handle;
	s->cx = model->cx;
	s->blocking = model->blocking;
	s->asked = model->asked;
	s->given = model->given;
	count_priority(s, 1);
	if (s->counted_wait)
		atomic_fetch_sub(&gi_streams_waiting, 1);
	s->counted_wait = false;
	return s;
}

/*
 * Adds a stream whose creation was not seen. NULL: there is none, or it belongs to a context
 * without launches.
 */
static struct gi_stream *learn_stream(CUstream handle)
{
	struct gi_stream model = { .handle = handle }, *s;
	unsigned int flags = 0;
	CUcontext context;

	if (gi_real.cuStreamGetFlags(handle, &flags) || gi_real.cuStreamGetCtx(handle, &context))
		return NULL;
	pthread_mutex_lock(&gi_lock);
	model.cx = gi_ctx_find(context);
	pthread_mutex_unlock(&gi_lock);
	if (!model.cx)
		return NULL;
	model.blocking = !(flags & CU_STREAM_NON_BLOCKING);
	gi_real.cuStreamGetPriority(handle, &model.given);
	model.asked = model.given;
	pthread_mutex_lock(&lock);
	s = add_stream(&model);
	pthread_mutex_unlock(&lock);
	return s;
}

static struct gi_stream *get_stream(CUstream handle)
{
	struct gi_stream *s;

	pthread_mutex_lock(&lock);
	s = find_stream(handle);
	pthread_mutex_unlock(&lock);
	return s ? s : learn_stream(handle);
}

/* @lock is held. */
static void remove_at(struct gi_stream **at)
{
	struct gi_stream *s = *at;

	*at = s->next;
	count_priority(s, -1);
	if (s->counted_wait)
		atomic_fetch_sub(&gi_streams_waiting, 1);
	s->counted_wait = false;
	s->next = spare;
	spare = s;
}

bool gi_stream_ending(CUstream handle)
{
	struct gi_stream **at;
	bool capturing = false;

	pthread_mutex_lock(&lock);
	for (at = bucket_of(handle); *at && (*at)->handle != handle; at = &(*at)->next)
		;
	if (*at) {
		capturing = (*at)->capturing;
		remove_at(at);
	}
	pthread_mutex_unlock(&lock);
	return capturing;
}

void gi_streams_forget(struct gi_ctx *cx)
{
	struct gi_stream **at;
	unsigned int i;

	pthread_mutex_lock(&lock);
	if (cx->counted_wait)
		atomic_fetch_sub(&gi_streams_waiting, 1);
	cx->counted_wait = false;
	for (i = 0; i < BUCKETS; i++)
		for (at = &buckets[i]; *at;) {
			if ((*at)->cx != cx) {
				at = &(*at)->next;
				continue;
			}
			if ((*at)->capturing)
				atomic_fetch_sub(&gi_hot.captures, 1);
			remove_at(at);
		}
	pthread_mutex_unlock(&lock);
}

void gi_stream_reset(void)
{
	static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
	unsigned int i;

	memcpy(&lock, &unlocked, sizeof(lock));
	for (i = 0; i < BUCKETS; i++)
		buckets[i] = NULL;
	spare = NULL;
	atomic_store(&gi_hot.captures, 0);
	atomic_store(&gi_hot.raised, 0);
	atomic_store(&gi_hot.unraised, 0);
	atomic_store(&enqueuing, 0);
	atomic_store(&enqueue_held, false);
	atomic_store(&gi_hot.ordered, false);
	atomic_store(&gi_streams_waiting, 0);
	if (waits_end)
		pthread_setspecific(waits_key, NULL);
}

/* ---- order ---- */

/* Waits between two polls of a word, which others hold for a few calls of the driver. */
static void spin_or_sleep(unsigned int round)
{
	int cancel;

	if (round < 50) {
		sched_yield();
		return;
	}
	cancel = gi_cancel_disable();
	usleep(20);
	gi_cancel_restore(cancel);
}

static void share_word(_Atomic uint32_t *word)
{
	unsigned int round;

	while (atomic_fetch_add(word, 1) & TASK) {
		atomic_fetch_sub(word, 1);
		for (round = 0; atomic_load(word) & TASK; round++)
			spin_or_sleep(round);
	}
}

static bool take_word(_Atomic uint32_t *word, uint64_t until)
{
	unsigned int round;

	for (round = 0; atomic_fetch_or(word, TASK) & TASK; round++) {
		if (round && gi_now() > until)
			return false;
		spin_or_sleep(round);
	}
	for (round = 0; atomic_load(word) != TASK; round++) {
		if (round && gi_now() > until) {
			atomic_fetch_and(word, ~TASK);
			return false;
		}
		spin_or_sleep(round);
	}
	return true;
}

/*
 * The words that guard enqueueing into @stream. Any call takes the stream's own word, if other
 * threads can name the stream at all. Other calls on a blocking stream also share the word of all
 * blocking streams, which tasks on the legacy stream take. A task on a blocking stream also takes
 * the legacy stream's word, whose work it would have to wait for.
 */
static struct gi_stream_guard words_of(CUstream stream, bool task)
{
	struct gi_stream_guard guard = { 0 };
	struct gi_stream *s;
	struct gi_ctx *cx;

	if (gi_is_default(stream)) {
		cx = gi_current_now();
		if (!cx)
			return guard;
		if (stream == CU_STREAM_PER_THREAD) {
			if (!atomic_load_explicit(&cx->per_thread, memory_order_relaxed))
				atomic_store(&cx->per_thread, true);
			guard.word[0] = task ? &cx->legacy_calls : &cx->blocking_calls;
		} else {
			guard.word[0] = &cx->legacy_calls;
			guard.word[1] = task ? &cx->blocking_calls : NULL;
		}
		return guard;
	}
	s = get_stream(stream);
	if (!s)
		return guard;
	guard.word[0] = &s->calls;
	if (s->blocking)
		guard.word[1] = task ? &s->cx->legacy_calls : &s->cx->blocking_calls;
	return guard;
}

static void begin_enqueue(void)
{
	unsigned int round;

	for (round = 0;; round++) {
		atomic_fetch_add(&enqueuing, 1);
		if (!atomic_load(&enqueue_held))
			return;
		atomic_fetch_sub(&enqueuing, 1);
		spin_or_sleep(round);
	}
}

struct gi_stream_guard gi_stream_lock_shared(CUstream stream)
{
	struct gi_stream_guard guard = { 0 };
	unsigned int i;

	if (!atomic_load_explicit(&gi_hot.ordered, memory_order_relaxed))
		return guard;
	begin_enqueue();
	guard = words_of(stream, false);
	guard.counted = true;
	for (i = 0; i < 2 && guard.word[i]; i++)
		share_word(guard.word[i]);
	return guard;
}

void gi_stream_unlock_shared(const struct gi_stream_guard *guard)
{
	unsigned int i;

	for (i = 0; i < 2 && guard->word[i]; i++)
		atomic_fetch_sub(guard->word[i], 1);
	if (guard->counted)
		atomic_fetch_sub(&enqueuing, 1);
}

bool gi_stream_lock(struct gi_stream_guard *guard, CUstream stream)
{
	uint64_t until;

	begin_enqueue();
	until = gi_now() + PATIENCE_NS;
	*guard = words_of(stream, true);
	guard->counted = true;
	if (!guard->word[0] || take_word(guard->word[0], until)) {
		if (!guard->word[1] || take_word(guard->word[1], until))
			return true;
		if (guard->word[0])
			atomic_fetch_and(guard->word[0], ~TASK);
	}
	atomic_fetch_sub(&enqueuing, 1);
	return false;
}

void gi_stream_unlock(const struct gi_stream_guard *guard)
{
	unsigned int i;

	for (i = 0; i < 2 && guard->word[i]; i++)
		atomic_fetch_and(guard->word[i], ~TASK);
	if (guard->counted)
		atomic_fetch_sub(&enqueuing, 1);
}

/* ---- idle streams ---- */

/*
 * @lock is held. The threads' own default streams have no handles, but work in the legacy stream
 * waits for theirs. Used for nothing else, because it orders work that the program may not want
 * ordered.
 */
static bool legacy_idle(struct gi_ctx *cx)
{
	uint64_t until = gi_now() + LEGACY_NS;
	unsigned int round = 0;
	CUevent event;
	bool idle;

	if (gi_real.cuStreamQuery(CU_STREAM_LEGACY) == CUDA_ERROR_NOT_READY)
		return false;
	if (!atomic_load(&cx->per_thread))
		return true;
	if (gi_real.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING))
		return false;
	idle = !gi_real.cuEventRecord(event, CU_STREAM_LEGACY);
	while (idle && gi_real.cuEventQuery(event) == CUDA_ERROR_NOT_READY) {
		idle = gi_now() < until;
		spin_or_sleep(round++);
	}
	gi_real.cuEventDestroy_v2(event);
	return idle;
}

/*
 * The table is locked meanwhile, so none of its streams is destroyed, and no capture begins, which
 * querying the stream would invalidate.
 */
bool gi_streams_idle(struct gi_ctx *cx)
{
	struct gi_stream *s;
	unsigned int i;
	bool idle;

	pthread_mutex_lock(&lock);
	idle = !atomic_load(&gi_hot.captures) && legacy_idle(cx);
	for (i = 0; i < BUCKETS && idle; i++)
		for (s = buckets[i]; s && idle; s = s->next)
			if (s->cx == cx)
				idle = gi_real.cuStreamQuery(s->handle) != CUDA_ERROR_NOT_READY;
	pthread_mutex_unlock(&lock);
	return idle;
}

/*
 * cuCtxSynchronize() fails and invalidates the captures that exist when it is called; one that
 * begins while it waits is safe. When the driver has made that check cannot be observed, so a
 * capture that begins shortly after such a call waits for some time.
 */
static _Atomic uint64_t sync_began;	/* the latest one's time, 0: it has returned */

uint64_t gi_sync_begin(void)
{
	uint64_t began = 0;

	pthread_mutex_lock(&lock);
	if (!atomic_load(&gi_hot.captures)) {
		began = gi_now();
		atomic_store(&sync_began, began);
	}
	pthread_mutex_unlock(&lock);
	return began;
}

void gi_sync_end(uint64_t began)
{
	atomic_compare_exchange_strong(&sync_began, &began, 0);
}

void gi_capture_note(CUstream stream, bool capturing)
{
	struct gi_stream *s;

	pthread_mutex_lock(&lock);
	s = gi_is_default(stream) ? NULL : find_stream(stream);
	if (s)
		s->capturing = capturing;
	pthread_mutex_unlock(&lock);
}

void gi_capture_begins(void)
{
	unsigned int round = 0;
	uint64_t began;

	pthread_mutex_lock(&lock);
	atomic_fetch_add(&gi_hot.captures, 1);
	pthread_mutex_unlock(&lock);
	while ((began = atomic_load(&sync_began)) && gi_now() - began < SYNC_ENTRY_NS)
		spin_or_sleep(round++);
}

bool gi_streams_hold(struct gi_ctx *cx, uint64_t ns)
{
	uint64_t until = gi_now() + ns;
	unsigned int round;

	atomic_store(&enqueue_held, true);
	for (round = 0; atomic_load(&enqueuing) || !gi_streams_idle(cx); round++) {
		if (gi_now() > until) {
			atomic_store(&enqueue_held, false);
			return false;
		}
		spin_or_sleep(round);
	}
	return true;
}

void gi_streams_release(void)
{
	atomic_store(&enqueue_held, false);
}

/* ---- numbers and priorities ---- */

/*
 * A number for the arbiter, equal for launches that run in order. It is derived from addresses but
 * does not disclose them. Different addresses give different numbers, because multiplication by an
 * odd number is a bijection.
 */
uint64_t gi_stream_id(const struct gi_ctx *cx, CUstream stream)
{
	static __thread char mine;
	static _Atomic uint64_t secret;
	uint64_t multiplier = atomic_load_explicit(&secret, memory_order_relaxed);
	uint64_t id = (uintptr_t)stream, none = 0;

	if (!multiplier) {
		if (getrandom(&multiplier, sizeof(multiplier), GRND_NONBLOCK) != sizeof(multiplier))
			multiplier = gi_now() * 0x9e3779b97f4a7c15ull;
		if (!atomic_compare_exchange_strong(&secret, &none, multiplier | 1))
			multiplier = none;
		multiplier |= 1;
	}
	if (!stream || stream == CU_STREAM_LEGACY)
		id = (uintptr_t)cx;
	else if (stream == CU_STREAM_PER_THREAD)
		id = (uintptr_t)&mine + ((uint64_t)(uintptr_t)cx << 32);
	return id * multiplier;
}

/*
 * In a group with a priority, the program's streams get the upper half of the device's priorities,
 * in the order that it asked for. This is of no use in a band that no other client can join.
 */
int gi_stream_priority(const struct gi_ctx *cx, int asked)
{
	return gi_priorities_lifted(cx) ? gi_lift_priority(cx, clamp_priority(cx, asked)) : asked;
}

bool gi_priorities_lifted(const struct gi_ctx *cx)
{
	const struct gsched_arb_header *h;

	if (!cx || !cx->client || atomic_load(&cx->client->gone))
		return false;
	h = &cx->client->arb->header;
	return gi_load(&h->priority) && !(gi_load(&h->flags) & GSCHED_ARB_PRIVATE);
}

/* The program has created @handle in the current context. */
static void note_stream(CUstream handle, unsigned int flags, int asked, int given)
{
	struct gi_ctx *cx = gi_current();
	struct gi_stream model = { .handle = handle, .cx = cx };

	if (!cx || !cx->client)
		return;
	model.blocking = !(flags & CU_STREAM_NON_BLOCKING);
	model.asked = clamp_priority(cx, asked);
	model.given = clamp_priority(cx, given);
	pthread_mutex_lock(&lock);
	add_stream(&model);
	pthread_mutex_unlock(&lock);
}

CUresult gi_stream_create(CUstream *stream, unsigned int flags, int asked, bool plain)
{
	int given = gi_stream_priority(gi_current(), asked);
	CUresult rc;

	if (plain && given == asked)
		rc = gi_real.cuStreamCreate(stream, flags);
	else
		rc = gi_real.cuStreamCreateWithPriority(stream, flags, given);
	if (!rc)
		note_stream(*stream, flags, asked, given);
	return rc;
}

CUresult gi_green_stream_create(CUstream *stream, CUgreenCtx green, unsigned int flags, int asked)
{
	int given = asked;
	CUcontext context;
	bool entered;
	CUresult rc;

	entered = !gi_real.cuCtxFromGreenCtx(&context, green) &&
		  !gi_real.cuCtxPushCurrent_v2(context);
	if (entered)
		given = gi_stream_priority(gi_current(), asked);
	rc = gi_real.cuGreenCtxStreamCreate(stream, green, flags, given);
	if (!rc && entered)
		note_stream(*stream, flags, asked, given);
	if (entered)
		gi_real.cuCtxPopCurrent_v2(&context);
	return rc;
}

CUresult gi_stream_set_priority(CUstream stream, int asked)
{
	CUstreamAttrValue value = { .priority = asked };
	struct gi_stream *s = get_stream(stream);
	CUresult rc;

	/* the driver refuses what is out of range */
	if (s && asked <= s->cx->least && asked >= s->cx->greatest)
		value.priority = gi_stream_priority(s->cx, asked);
	rc = gi_real.cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
	pthread_mutex_lock(&lock);
	s = rc ? NULL : find_stream(stream);
	if (s)
		set_priority(s, asked, value.priority);
	pthread_mutex_unlock(&lock);
	return rc;
}

bool gi_stream_given(CUstream stream, int *asked, int *given)
{
	struct gi_stream *s = gi_is_default(stream) ? NULL : get_stream(stream);

	if (!s)
		return false;
	pthread_mutex_lock(&lock);
	*asked = s->asked;
	*given = s->given;
	pthread_mutex_unlock(&lock);
	return true;
}

void gi_stream_follow(const struct gi_ctx *cx, CUstream stream)
{
	int asked, given;

	if (gi_stream_given(stream, &asked, &given) && gi_stream_priority(cx, asked) != given)
		gi_stream_set_priority(stream, asked);
}

void gi_stream_copied(CUstream to, CUstream from)
{
	struct gi_stream *s, *like;

	pthread_mutex_lock(&lock);
	s = gi_is_default(to) ? NULL : find_stream(to);
	like = gi_is_default(from) ? NULL : find_stream(from);
	if (s)
		set_priority(s, like ? like->asked : s->cx->least, like ? like->given :
			     s->cx->least);
	pthread_mutex_unlock(&lock);
}

/* The thread's own default stream goes with it. */
static void end_waits(void *counted)
{
	atomic_fetch_sub(&gi_streams_waiting, 1);
}

static void make_waits_key(void)
{
	waits_end = !pthread_key_create(&waits_key, end_waits);
}

/* @lock is held. true: the thread's own default stream is counted for the first time. */
static bool count_own_wait(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_waits_key);
	return waits_end && !pthread_getspecific(waits_key) &&
	       !pthread_setspecific(waits_key, &waits_key);
}

bool gi_stream_count_wait(CUstream stream)
{
	struct gi_stream *s = gi_is_default(stream) ? NULL : get_stream(stream);
	struct gi_ctx *cx = gi_is_default(stream) ? gi_current_now() : NULL;
	bool first = false;

	pthread_mutex_lock(&lock);
	if (s) {
		first = s->handle == stream && !s->counted_wait;
		s->counted_wait = s->counted_wait || first;
	} else if (stream == CU_STREAM_PER_THREAD) {
		first = count_own_wait();
	} else if (cx) {
		first = !cx->counted_wait;
		cx->counted_wait = true;
	}
	if (first)
		atomic_fetch_add(&gi_streams_waiting, 1);
	pthread_mutex_unlock(&lock);
	return first;
}

bool gi_stream_requested(CUstream stream, int *priority)
{
	struct gi_stream *s;
	bool raised;

	if (gi_is_default(stream) || !atomic_load_explicit(&gi_hot.raised, memory_order_relaxed))
		return false;
	pthread_mutex_lock(&lock);
	s = find_stream(stream);
	raised = s && s->given != s->asked;
	if (raised)
		*priority = s->asked;
	pthread_mutex_unlock(&lock);
	return raised;
}

bool gi_stream_preferred(CUstream stream)
{
	struct gi_stream *s = gi_is_default(stream) ? NULL : get_stream(stream);

	return s && is_preferred(s);
}
