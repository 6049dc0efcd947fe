// SPDX-License-Identifier: LGPL-2.1-or-later
/* Pacing of launches: pace.h. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "launch/blocks.h"
#include "launch/launch.h"

#define BOUND_US	20	/* poll interval for our own events */
#define BOUND_NS	1000000000	/* most wait for work in flight, which may need it */
#define LET_GO_MAX	14	/* halved so often, it is no longer than a poll */
#define GATE_LAUNCHES	4	/* so many that went without an end in between: a gate */
#define GATES_MAX	3	/* each of so many halves the waits of the process from then on */
#define STUCK_NS	100000000	/* work in flight for so long may wait for other streams */
#define STUCK_FACTOR	2	/* and for so many times what it is known to take */
#define MARK_NS		200000	/* host time after which a batch that only reports is closed */
#define TAIL_NS		500000	/* GPU time that may follow the last event of such a batch */
#define IN_FLIGHT_NS	2000000	/* work in flight under a share; also the bucket's depth */
#define LAUNCHES_MAX	4096	/* in a batch */
#define WATCH_NS	10000000	/* the GPU waits no longer for a launch that is measured */
#define SAMPLE_EVERY	16	/* one batch in so many holds one launch, to learn its time */
#define EVENT_NS	1500	/* overhead measured by two events around one launch (H200) */
#define UNTRACKED_MAX	(1 << 30)	/* direct launches from one tracked launch to the next */
#define SPARE_NS	(IN_FLIGHT_NS / 2)	/* in the bucket: it is not all used */
#define SPARE_BATCH	4	/* launches in a batch, then */
#define MEAN_LAUNCHES	256	/* over so many, and more, goes the mean */
#define OVERLAP_SAMPLES	3	/* of a kernel that overlaps others, which then gets no event */
#define UNRECORDED	UINT64_MAX	/* instead of a batch: its time is charged already */

bool gi_pace_new(struct gi_client *c)
{
	c->pacer = calloc(1, sizeof(*c->pacer));
	if (c->pacer)
		pthread_mutex_init(&c->pacer->lock, NULL);
	return c->pacer;
}

/* ---- GPU times of launches ---- */

/* Handles do not identify code: the driver reuses them. 0: unknown, and not to be learnt. */
static uint64_t key_of(const struct gi_launch *l, const struct gi_graph *graph,
		       const struct gi_func *fn)
{
	uint64_t key = graph ? graph->key : fn ? fn->number : 0;

	if (!key)
		return 0;
	key *= 0x9e3779b97f4a7c15ull;
	key = (key ^ (uint64_t)l->grid[0] << 32 ^ (uint64_t)l->grid[1] << 16 ^ l->grid[2]) *
	      0x9e3779b97f4a7c15ull;
	return key ? key : 1;
}

static uint64_t remembered_ns(struct gi_pacer *p, uint64_t key)
{
	struct gi_known *k = gi_known_find(&p->known, key);

	return k ? k->ns : 0;
}

/* Whether its time is known well enough. @overlaps: then it is not measured again. */
static bool is_learnt(struct gi_pacer *p, uint64_t key, bool overlaps)
{
	struct gi_known *k = gi_known_find(&p->known, key);

	return k && k->seen >= (overlaps ? OVERLAP_SAMPLES : 1);
}

/* An event between the launch and its neighbour on the stream would keep them from overlapping. */
static bool overlaps_neighbour(const struct gi_launch *l, const struct gi_func *fn)
{
	return l->dependent ||
	       (fn && atomic_load_explicit(&fn->is_primary, memory_order_relaxed));
}

/* If it takes much longer than known the next batch is a sample, too, as it may do more now. */
static void learn_time(struct gi_pacer *p, uint64_t key, uint64_t ns)
{
	struct gi_known *k = gi_known_find(&p->known, key);

	if (!k)
		return;
	ns = ns > 2 * EVENT_NS ? ns - EVENT_NS : ns / 2 + 1;
	if (gi_known_much_longer(k, ns))
		p->sample_turns = 0;
	gi_known_update(k, ns);
	k->seen++;
}

/* Notes a kernel's first launch, which may load code and wait for the GPU: it is not measured. */
static bool is_new(struct gi_pacer *p, uint64_t key)
{
	if (gi_known_find(&p->known, key))
		return false;
	if (key)
		gi_known_add(&p->known, key);
	return true;
}

/* Queries of events must not invalidate a capture that another thread may be making. */
struct capture_mode {
	CUstreamCaptureMode mode;
	bool changed;
};

static void relax_capture(struct capture_mode *m)
{
	/* even if there is no capture now: another thread may begin one at any moment */
	if (m->changed)
		return;
	m->mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	m->changed = !gi_real.cuThreadExchangeStreamCaptureMode(&m->mode);
}

static void restore_capture(struct capture_mode *m)
{
	if (m->changed)
		gi_real.cuThreadExchangeStreamCaptureMode(&m->mode);
}

/* ---- batches ---- */

static struct gi_batch *batch_at(struct gi_pacer *p, unsigned int i)
{
	return &p->batch[(p->first + i) % GI_BATCHES];
}

/* The open batch; if there is none, the last one in flight, whose end may be moved. */
static struct gi_batch *last_batch(struct gi_pacer *p)
{
	return batch_at(p, p->open ? p->pending : p->pending - 1);
}

static void drop_events(struct gi_batch *b)
{
	unsigned int i;

	if (b->cx && b->begin)
		gi_real.cuEventDestroy_v2(b->begin);
	for (i = 0; b->cx && i < b->events; i++)
		gi_real.cuEventDestroy_v2(b->end[i]);
	memset(b, 0, sizeof(*b));
}

/* An error of the driver means that the context is unusable and has nothing in flight. */
static bool on_device(const struct gi_batch *b)
{
	unsigned int i;

	for (i = 0; i < b->streams; i++)
		if (gi_real.cuEventQuery(b->end[i]) == CUDA_ERROR_NOT_READY)
			return true;
	return false;
}

/* GPU time from @from to the last end of @b, in ns; negative: unknown. */
static int64_t span_ns(CUevent from, const struct gi_batch *b)
{
	int64_t most = -1;
	unsigned int i;
	float ms;

	for (i = 0; i < b->streams; i++)
		if (!gi_real.cuEventElapsedTime(&ms, from, b->end[i]) && ms >= 0 && ms < 1e7 &&
		    (int64_t)(ms * 1e6) > most)
			most = ms * 1e6;
	return most;
}

/* Since the batch began or the batch before it ended, whichever is later. */
static uint64_t span_of(const struct gi_pacer *p, const struct gi_batch *b)
{
	const struct gi_batch *before = &p->batch[(p->first + GI_BATCHES - 1) % GI_BATCHES];
	int64_t ns = span_ns(b->begin, b), after;
	unsigned int i;

	for (i = 0; p->ended && before->cx == b->cx && i < before->streams && ns > 0; i++) {
		after = span_ns(before->end[i], b);
		if (after >= 0 && after < ns)
			ns = after;
	}
	/* launches behind the last event count as remembered */
	return (ns > 0 ? (uint64_t)ns : 0) + b->tail_ns;
}

static void average(uint64_t *mean, uint64_t ns)
{
	*mean = *mean ? (3 * *mean + ns) / 4 : ns + 1;
}

/* The GPU time of a batch is no more than its launches take together. */
static void charge_batch(struct gi_client *c, struct gi_pacer *p, const struct gi_batch *b)
{
	uint64_t span = span_of(p, b), ns = span;
	int64_t one;

	if (!b->unmeasured && b->expected_ns < ns)
		ns = b->expected_ns;
	/* what waited for the program took as long as the program did */
	if (b->sample && !p->let_go) {
		one = span_ns(b->begin, b);
		if (one > 0)
			learn_time(p, b->sample, one);
	}
	if (b->launches) {
		average(&p->average_ns, ns / b->launches);
		average(&p->span_ns, span / b->launches);
	}
	if (b->launches && b->drawn) {
		p->mean_ns = p->mean_ns ? (MEAN_LAUNCHES * p->mean_ns + ns) /
					  (MEAN_LAUNCHES + b->launches) : p->average_ns;
		p->mean_ns += !p->mean_ns;	/* 0 would be unknown */
	}
	if (p->balance_at)
		p->balance_ns -= ns;
	__atomic_fetch_add(&c->cl->header.paced_ns, ns, __ATOMIC_RELAXED);
}

/*
 * Accounts for batches that have ended. Called with the lock held. Events may be queried whatever
 * context is current.
 */
static void reap_batches(struct gi_client *c, struct gi_pacer *p)
{
	while (p->pending && !batch_at(p, 0)->entered && !on_device(batch_at(p, 0))) {
		charge_batch(c, p, batch_at(p, 0));
		p->first = (p->first + 1) % GI_BATCHES;
		p->pending--;
		p->ended = true;
		if (p->let_go >= GATE_LAUNCHES && p->gates < GATES_MAX)
			p->gates++;
		p->let_go = 0;
		atomic_store(&p->in_flight, p->pending + p->open);
	}
}

static bool record_end(struct gi_batch *b, CUstream stream, uint64_t id)
{
	unsigned int i;

	for (i = 0; i < b->streams && b->stream[i] != id; i++)
		;
	if (i == GI_BATCH_STREAMS)
		return false;
	if (i == b->events) {
		if (gi_real.cuEventCreate(&b->end[i], CU_EVENT_DEFAULT))
			return false;
		b->events++;
	}
	if (gi_real.cuEventRecord(b->end[i], stream))
		return false;
	b->stream[i] = id;
	if (i == b->streams)
		b->streams++;
	return true;
}

static uint64_t bound_ns(const struct gi_client *c, bool shared)
{
	const struct gsched_arb_header *h = &c->arb->header;
	uint64_t ns = 0;

	if (shared && gi_time_share(h) < GSCHED_SHARE_ALL)
		ns = IN_FLIGHT_NS;
	if (gi_load(&h->flags) & GSCHED_ARB_PACED &&
	    (!ns || gi_load(&h->in_flight_us) * 1000ull < ns))
		ns = gi_load(&h->in_flight_us) * 1000ull;
	return ns;
}

/*
 * A launch that needs more local memory than the context has waits for the GPU, so the GPU must not
 * wait for the launch. Graphs last so long that host time does not matter.
 */
static bool may_wait_for(const struct gi_func *fn)
{
	int local = -1;

	return fn && !gi_real.cuFuncGetAttribute(&local, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
						 fn->original) && !local;
}

/*
 * Makes the batch hold one launch, to learn its time. On an idle GPU the first event would complete
 * before the launch arrives, and the difference would be host time. So event and launch wait on the
 * GPU until the launch has been made.
 */
static void start_sample(struct gi_client *c, struct gi_batch *b, const struct gi_launch *l,
			 uint64_t key, const struct gi_func *fn, uint64_t now)
{
	struct gi_pacer *p = c->pacer;
	CUstreamBatchMemOpParams op = { 0 };

	b->sample = key;
	b->target = 1;
	if (p->pending || !b->cx->words || !may_wait_for(fn))
		return;
	op.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
	op.waitValue.address = b->cx->words_dev + offsetof(struct gi_words, sample);
	op.waitValue.value = p->tickets + 1;
	op.waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
	if (gi_real.cuStreamBatchMemOp_v2(l->stream, 1, &op, 0))
		return;
	b->ticket = ++p->tickets;
	p->waiting_word = &b->cx->words->sample;
	atomic_store(&p->waiting_since, now);
	/* the launch may wait for the GPU, by itself or for a lock, until the agent ends this wait */
	if (atomic_load(&c->tasks->idle))
		gi_agent_wake(c);
}

/*
 * Whatever a measured launch waits for, the GPU must not wait long for it. The agent calls this
 * without a lock, since it must not wait for that launch either.
 */
void gi_pace_watch(struct gi_client *c, uint64_t now)
{
	struct gi_pacer *p = c->pacer;
	uint64_t since;

	/* the word is freed with its context, which forget_word() synchronises */
	atomic_store(&p->watching, true);
	since = atomic_load(&p->waiting_since);
	if (since && now > since + WATCH_NS)
		gi_store(p->waiting_word, p->tickets);
	atomic_store(&p->watching, false);
}

/* Called before the context and its word are destroyed. */
static void forget_word(struct gi_pacer *p, const struct gi_ctx *cx)
{
	if (!cx->words || p->waiting_word != &cx->words->sample)
		return;
	atomic_store(&p->waiting_since, 0);
	while (atomic_load(&p->watching))
		sched_yield();
}

/*
 * Called after the launch, successful or not. Without the GPU-side wait, a measurement is valid
 * only if the first event has not completed by now.
 */
static void judge_sample(struct gi_batch *b, struct capture_mode *mode)
{
	if (!b->sample || b->ticket)
		return;
	relax_capture(mode);
	if (!b->begin || gi_real.cuEventQuery(b->begin) != CUDA_ERROR_NOT_READY)
		b->sample = 0;
}

/* Called only after the event behind the launch is recorded: a kernel may end before that. */
static void release_sample(struct gi_pacer *p, struct gi_batch *b)
{
	if (!b->ticket)
		return;
	atomic_store(&p->waiting_since, 0);
	gi_store(&b->cx->words->sample, b->ticket);
	b->ticket = 0;
}

/* What the bucket holds beside the work in flight, at its last refill. */
static int64_t balance_left(struct gi_pacer *p)
{
	uint64_t flying = 0;
	unsigned int i;

	for (i = 0; i < p->pending + p->open; i++)
		flying += batch_at(p, i)->launches * p->average_ns;
	return p->balance_ns - (int64_t)flying;
}

static void open_batch(struct gi_client *c, struct gi_ctx *cx, const struct gi_launch *l,
		       uint64_t key, const struct gi_func *fn, uint64_t bound, uint64_t now)
{
	struct gi_pacer *p = c->pacer;
	struct gi_batch *b = batch_at(p, p->pending);
	/* kernels that take longer than known must not exceed a share */
	uint64_t each = p->balance_at ? p->span_ns : p->average_ns;

	if (b->cx != cx)
		drop_events(b);
	b->cx = cx;
	b->number = ++p->batches;
	b->streams = 0;
	b->launches = 0;
	b->entered = 0;
	b->unmarked_ns = 0;
	b->tail_ns = 0;
	b->expected_ns = 0;
	b->unmeasured = false;
	b->opened_ns = now;
	b->target = LAUNCHES_MAX;
	if (bound)
		b->target = each ? bound / 2 / each + 1 : 1;
	if (b->target > LAUNCHES_MAX)
		b->target = LAUNCHES_MAX;
	if (p->balance_at && balance_left(p) > SPARE_NS && b->target > SPARE_BATCH)
		b->target = SPARE_BATCH;
	b->drawn = (int32_t)(p->spared - atomic_load(&c->untracked)) <= 0;
	b->sample = 0;
	b->ticket = 0;
	if (!is_new(p, key) &&
	    (!is_learnt(p, key, overlaps_neighbour(l, fn)) ||
	     (bound && p->sample_turns++ % SAMPLE_EVERY == 0)))
		start_sample(c, b, l, key, fn, now);
	if (!b->begin && gi_real.cuEventCreate(&b->begin, CU_EVENT_DEFAULT))
		b->begin = NULL;
	if (b->begin && gi_real.cuEventRecord(b->begin, l->stream)) {
		gi_real.cuEventDestroy_v2(b->begin);
		b->begin = NULL;
	}
	p->open = true;
	atomic_store(&p->in_flight, p->pending + 1);
}

static void close_batch(struct gi_pacer *p)
{
	struct gi_batch *b = batch_at(p, p->pending);

	p->open = false;
	/* without an event and with no launch under way there is nothing to wait for */
	if (b->streams || b->entered)
		p->pending++;
	atomic_store(&p->in_flight, p->pending);
}

/* ---- waiting ---- */

/* Launches that were not tracked take what tracked ones do on average. */
static void charge_untracked(struct gi_client *c, struct gi_pacer *p)
{
	uint32_t untracked = atomic_load(&c->untracked);
	uint64_t ns = (uint64_t)(untracked - p->charged) * p->mean_ns;

	p->charged = untracked;
	p->balance_ns -= (int64_t)ns;
	__atomic_fetch_add(&c->cl->header.paced_ns, ns, __ATOMIC_RELAXED);
}

/* Whether the share permits a launch that leaves at most a debt of @debt. In-flight work counts. */
static bool share_affords(struct gi_client *c, struct gi_pacer *p, int64_t debt, uint64_t now)
{
	uint32_t share = gi_time_share(&c->arb->header);
	uint64_t passed;

	if (share >= GSCHED_SHARE_ALL) {
		p->balance_at = 0;
		return true;
	}
	if (!p->balance_at) {
		p->balance_at = now;
		p->balance_ns = 0;
		p->charged = atomic_load(&c->untracked);
		p->spared = p->charged;
	}
	passed = now - p->balance_at;
	p->balance_at = now;
	/* more than a minute fills the bucket anyway, and this avoids an overflow */
	if (passed > 60000000000ull)
		passed = 60000000000ull;
	p->balance_ns += (int64_t)(passed * share / GSCHED_SHARE_ALL);
	charge_untracked(c, p);
	if (p->balance_ns > IN_FLIGHT_NS)
		p->balance_ns = IN_FLIGHT_NS;
	return balance_left(p) + debt >= 0;
}

/*
 * How many launches need not be tracked. While the program uses less than its share, as many as
 * what it has to spare is enough for by their mean time. The next batch is drawn at random, since
 * programs repeat themselves, and stays due then if launches are tracked before that for another
 * reason: they are not typical, and do not count for the mean. Called with the lock held.
 */
static uint32_t may_go_untracked(const struct gi_client *c, struct gi_pacer *p)
{
	uint32_t untracked = atomic_load(&c->untracked), n;
	int32_t left = (int32_t)(p->spared - untracked);
	int64_t spare;

	if (gi_time_share(&c->arb->header) >= GSCHED_SHARE_ALL)
		return UNTRACKED_MAX;
	spare = balance_left(p) - SPARE_NS;
	/* with two batches in flight the GPU is behind: then their times count */
	if (!p->balance_at || p->open || p->pending > 1 || !p->mean_ns || spare <= 0) {
		p->spared = untracked;
		return 0;
	}
	if (left > 0)
		return (uint32_t)left;
	n = spare / (int64_t)p->mean_ns > GI_SPARE_MAX ? GI_SPARE_MAX :
	    (uint32_t)(spare / (int64_t)p->mean_ns);
	if (n < SPARE_BATCH)
		return 0;
	n = n / 2 + (uint32_t)(p->batches * 2654435761u >> 16) % (n / 2);
	p->spared = untracked + n;
	return n;
}

/* Batches may end out of order when a kernel stays on the GPU. */
static unsigned int count_unfinished(struct gi_pacer *p)
{
	unsigned int i, n = 0;

	for (i = 0; i < p->pending; i++)
		n += on_device(batch_at(p, i));
	return n;
}

/*
 * Whether a kernel in flight may be waiting for what this launch starts or for what the program
 * does behind it, as one that the host feeds until it tells it to end. Then holding launches saves
 * nothing: the time that passes is charged. What waits in the launch's own stream is not that
 * kernel, or would have to end first.
 */
static bool holds_up(const struct gi_pacer *p, const struct gi_ctx *cx, const struct gi_launch *l,
		     uint64_t now)
{
	bool stuck = false;
	uint64_t id = 0;
	unsigned int i, k;

	for (i = 0; i < p->pending; i++) {
		const struct gi_batch *b = &p->batch[(p->first + i) % GI_BATCHES];
		uint64_t age = now - b->opened_ns;

		if (age < STUCK_NS || !on_device(b))
			continue;
		stuck = stuck || b->unmeasured || age / STUCK_FACTOR > b->expected_ns;
		id = id ? id : gi_stream_id(cx, l->stream);
		for (k = 0; k < b->streams && b->cx == cx; k++)
			if (b->stream[k] == id &&
			    gi_real.cuEventQuery(b->end[k]) == CUDA_ERROR_NOT_READY)
				return false;
	}
	return stuck;
}

/*
 * Whether the launch has waited long enough for work in flight that may need it. While none of that
 * work ends, each launch that goes halves the wait of the next: a kernel or a host function may
 * have the program make many launches before it lets any of them run (nvbench), and again later.
 * Not for kernels known to take so long. Called with the lock held.
 */
static bool waited_enough(struct gi_pacer *p, uint64_t since, uint64_t now)
{
	const struct gi_batch *b = batch_at(p, 0);

	if (now - since <= (uint64_t)BOUND_NS >> (p->let_go + p->gates))
		return false;
	if (p->pending && p->let_go < LET_GO_MAX &&
	    (b->unmeasured || (now - b->opened_ns) / STUCK_FACTOR > b->expected_ns))
		p->let_go++;
	return true;
}

/*
 * @open_since: since when only work in flight and the share hold this launch back; 0: something
 * else does
 */
static bool may_go(struct gi_client *c, struct gi_pacer *p, const struct gi_ctx *cx,
		   const struct gi_launch *l, bool shared, int64_t debt, uint64_t bound,
		   uint64_t now, uint64_t *open_since, useconds_t *nap)
{
	*nap = GI_HOLD_US;
	if (gi_load(&c->arb->header.flags) & GSCHED_ARB_CLOSED) {
		*open_since = 0;
		return false;
	}
	*nap = BOUND_US;
	if (!*open_since)
		*open_since = now;
	if (shared && !share_affords(c, p, debt, now))
		return p->pending &&
		       (waited_enough(p, *open_since, now) || holds_up(p, cx, l, now));
	/* the open batch is one of the two that may be in flight */
	return !bound || p->pending < 2 || p->open || count_unfinished(p) < 2 ||
	       waited_enough(p, *open_since, now) || holds_up(p, cx, l, now);
}

/*
 * Whether the open batch takes no more launches. It must be able to end once the program is held
 * back. A kernel whose time is to be learnt gets a batch of its own: among others, only the time of
 * the whole batch could be charged, including the pauses in it.
 */
static bool batch_is_full(struct gi_pacer *p, const struct gi_ctx *cx, uint64_t key,
			  bool overlapping, uint64_t bound)
{
	const struct gi_batch *b = batch_at(p, p->pending);

	return b->cx != cx || (bound && !b->begin) || b->launches >= b->target ||
	       b->streams + b->entered >= GI_BATCH_STREAMS ||
	       (bound && b->launches && gi_known_find(&p->known, key) &&
		!is_learnt(p, key, overlapping));
}

/* Counts the launch in the last batch. Called with the lock held. */
static uint64_t join_batch(struct gi_client *c, struct gi_ctx *cx, const struct gi_launch *l,
			   uint64_t key, const struct gi_func *fn, uint64_t bound, uint64_t now)
{
	struct gi_pacer *p = c->pacer;
	struct gi_batch *b;
	uint64_t ns;

	atomic_store(&p->last_ns, now);
	if (!p->open && p->pending < GI_BATCHES - 1)
		open_batch(c, cx, l, key, fn, bound, now);
	b = last_batch(p);
	if (b->cx != cx)
		return 0;
	ns = remembered_ns(p, key);
	b->launches++;
	b->entered++;
	b->expected_ns += ns;
	b->unmarked_ns += ns ? ns : TAIL_NS;
	b->tail_ns += ns;
	b->unmeasured = b->unmeasured || !ns;
	return b->number;
}

/*
 * Whether to record no event for a launch, and to charge the remembered time. Such a launch waits
 * for its share of time only; while bands take turns it has events as others do.
 */
static bool goes_unrecorded(const struct gi_client *c, struct gi_pacer *p, uint64_t key,
			    bool overlapping, bool shared)
{
	const struct gsched_arb_header *h = &c->arb->header;

	return overlapping && shared && gi_time_share(h) < GSCHED_SHARE_ALL &&
	       !(gi_load(&h->flags) & GSCHED_ARB_PACED) && is_learnt(p, key, true);
}

static void charge_unrecorded(struct gi_client *c, struct gi_pacer *p, uint64_t key, uint64_t now)
{
	uint64_t ns = remembered_ns(p, key), from = atomic_load(&p->unrecorded_until);

	if (p->balance_at)
		p->balance_ns -= (int64_t)ns;
	__atomic_fetch_add(&c->cl->header.paced_ns, ns, __ATOMIC_RELAXED);
	atomic_store(&p->last_ns, now);
	atomic_store(&p->unrecorded_until, (from > now ? from : now) + ns);
}

/*
 * Fast path: most launches join an open batch that has room. The driver is not queried for it, so
 * work that has ended since the last query still counts as in flight. 0: take the slow path.
 */
static uint64_t join_open_batch(struct gi_client *c, struct gi_ctx *cx, const struct gi_launch *l,
				uint64_t key, const struct gi_func *fn, bool shared)
{
	struct gi_pacer *p = c->pacer;
	uint64_t bound, now, batch = 0;

	if (pthread_mutex_trylock(&p->lock))
		return 0;
	if (p->open && !(gi_load(&c->arb->header.flags) & GSCHED_ARB_CLOSED)) {
		bound = bound_ns(c, shared);
		now = gi_now();
		if (!batch_is_full(p, cx, key, false, bound) &&
		    (!shared || share_affords(c, p, 0, now)))
			batch = join_batch(c, cx, l, key, fn, bound, now);
	}
	pthread_mutex_unlock(&p->lock);
	return batch;
}

uint64_t gi_pace_enter(struct gi_client *c, struct gi_ctx *cx, const struct gi_launch *l,
		       const struct gi_graph *graph, const struct gi_func *fn, bool shared)
{
	uint64_t key = key_of(l, graph, fn), bound, now, since = 0, open_since = 0, batch = 0;
	const struct gi_func *original = shared ? fn : NULL;
	const bool overlapping = overlaps_neighbour(l, original);
	struct capture_mode mode = { 0 };
	struct gi_pacer *p = c->pacer;
	useconds_t nap;
	bool goes, unseen;

	if (!overlapping && !atomic_load(&c->gone) && !atomic_load(&c->stop))
		batch = join_open_batch(c, cx, l, key, original, shared);
	if (batch)
		return batch;
	gi_ctx_words(cx);
	for (;;) {
		/* while this launch waits, a capture may begin, and the flags may change */
		relax_capture(&mode);
		pthread_mutex_lock(&p->lock);
		bound = bound_ns(c, shared);
		now = gi_now();
		reap_batches(c, p);
		unseen = goes_unrecorded(c, p, key, overlapping, shared);
		if (p->open && !unseen && batch_is_full(p, cx, key, overlapping, bound))
			close_batch(p);
		/*
		 * A held launch does not overlap its predecessor, so rather let several go in a row
		 * on credit and then make one wait long.
		 */
		goes = atomic_load(&c->gone) || atomic_load(&c->stop) ||
		       may_go(c, p, cx, l, shared, l->dependent && !since ? IN_FLIGHT_NS : 0,
			      bound, now, &open_since, &nap);
		if (goes && unseen) {
			charge_unrecorded(c, p, key, now);
			batch = UNRECORDED;
		} else if (goes) {
			batch = join_batch(c, cx, l, key, original, bound, now);
		} else if (p->open) {
			close_batch(p);
		}
		pthread_mutex_unlock(&p->lock);
		if (goes)
			break;
		if (!since) {
			since = now;
			atomic_fetch_add(&p->held_launches, 1);
			gi_agent_wake(c);
		}
		usleep(nap);
	}
	restore_capture(&mode);
	if (since) {
		atomic_fetch_sub(&p->held_launches, 1);
		__atomic_fetch_add(&c->cl->header.held_ns, now - since, __ATOMIC_RELAXED);
	}
	return batch;
}

/*
 * An event is recorded only on the stream of the launch that was just made: any other stream may
 * have been destroyed. false: there should be one, but the batch has events on too many others.
 */
static bool record_tail(struct gi_pacer *p, struct gi_batch *b, CUstream stream, uint64_t id,
			struct capture_mode *mode)
{
	bool full = b->launches >= b->target || atomic_load(&p->last_ns) - b->opened_ns > MARK_NS,
		known = false, good = true;
	bool open = p->open && b == last_batch(p);
	unsigned int i;

	for (i = 0; i < b->streams && !known; i++)
		known = b->stream[i] == id;
	if (full || !open || !known || b->unmarked_ns >= TAIL_NS) {
		relax_capture(mode);
		good = record_end(b, stream, id);
		if (good) {
			b->unmarked_ns = 0;
			b->tail_ns = 0;
		}
	}
	if (open && (full || b->streams == GI_BATCH_STREAMS))
		close_batch(p);
	return good;
}

void gi_pace_leave(struct gi_client *c, struct gi_ctx *cx, const struct gi_launch *l,
		   uint64_t batch, bool launched, bool passed)
{
	struct gi_pacer *p = c->pacer;
	struct capture_mode mode = { 0 };
	/* all batches may be another context's; tasks are seen in their slots */
	bool tracked = batch || !launched || !passed;
	struct gi_batch *b;
	uint32_t untracked;
	unsigned int i;

	pthread_mutex_lock(&p->lock);
	/* the batch may have been dropped with its context */
	for (i = 0, b = NULL; batch && i < p->pending + p->open && !b; i++)
		if (batch_at(p, i)->number == batch)
			b = batch_at(p, i);
	if (b) {
		b->entered--;
		judge_sample(b, &mode);
		if (launched)
			tracked = record_tail(p, b, l->stream, gi_stream_id(cx, l->stream),
					      &mode) || !passed;
		else
			b->launches--;
		release_sample(p, b);
	}
	untracked = may_go_untracked(c, p);
	pthread_mutex_unlock(&p->lock);
	restore_capture(&mode);
	if (!tracked)
		atomic_fetch_add(&c->untracked, 1);
	if (gi_blocks_asked(c) && gi_blocks_left(c) < untracked)
		untracked = gi_blocks_left(c);
	if (gi_load(&c->arb->header.flags) & GSCHED_ARB_REPORT)
		atomic_store(&c->track_at, atomic_load(&c->untracked) + untracked);
	if (atomic_load(&c->tasks->idle))
		gi_agent_wake(c);
}

void gi_pace_poll(struct gi_client *c, uint64_t now)
{
	struct gi_pacer *p = c->pacer;
	uint64_t last;

	/* a waiting launch queries the events itself */
	if (!atomic_load(&p->in_flight) || pthread_mutex_trylock(&p->lock))
		return;
	reap_batches(c, p);
	/* no launch followed: the work behind the last event is at most MARK_NS of launches */
	last = atomic_load(&p->last_ns);
	if (p->open && now > last && now - last > GI_IDLE_NS)
		close_batch(p);
	reap_batches(c, p);
	pthread_mutex_unlock(&p->lock);
}

/* Keeps the batches of other contexts, in their order. Called with the lock held. */
static void forget_context(struct gi_pacer *p, const struct gi_ctx *cx)
{
	bool open = p->open && batch_at(p, p->pending)->cx != cx;
	unsigned int i, n = 0, all = p->pending + p->open;

	/* the one before the first is the one that ended last */
	if (batch_at(p, GI_BATCHES - 1)->cx == cx)
		p->ended = false;
	for (i = 0; i < GI_BATCHES; i++)
		if (p->batch[i].cx == cx)
			drop_events(&p->batch[i]);
	for (i = 0; i < all; i++) {
		struct gi_batch *b = batch_at(p, i), *to = batch_at(p, n);

		if (!b->cx)
			continue;
		if (b != to) {
			drop_events(to);
			*to = *b;
			memset(b, 0, sizeof(*b));
		}
		n++;
	}
	p->open = open;
	p->pending = n - open;
}

void gi_pace_drop(struct gi_client *c, struct gi_ctx *cx)
{
	struct gi_pacer *p = c->pacer;

	/*
	 * There the thread waits for the same work that destroying the context would; work in other
	 * contexts may last until the program ends it.
	 */
	pthread_mutex_lock(&gi_lock);
	for (cx->ending = true; p->waiting_in == cx->handle;) {
		pthread_mutex_unlock(&gi_lock);
		usleep(GI_HOLD_US);
		pthread_mutex_lock(&gi_lock);
	}
	pthread_mutex_unlock(&gi_lock);
	pthread_mutex_lock(&p->lock);
	forget_word(p, cx);
	if (p->open && batch_at(p, p->pending)->cx == cx)
		close_batch(p);
	reap_batches(c, p);
	forget_context(p, cx);
	atomic_store(&p->in_flight, p->pending + p->open);
	pthread_mutex_unlock(&p->lock);
}
