// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Which form a launch gets: the twin, the resumable twin, or the original; and whether an original
 * may pass without the arbiter.
 */
#include "launch/candidate.h"
#include "launch/timing.h"

/* a kernel of more waves of blocks runs only when its twin exists */
#define TRIED_WAVES	2

/*
 * The resumable form costs a little more and is another module to load. It is used only for long
 * block-tasks, and only while another client may have to wait for them.
 */
static bool wants_resumable(struct gi_client *c, const struct gi_launch *l, struct gi_func *fn,
			    struct gi_shape *shape, unsigned int *m)
{
	const struct gsched_arb_header *h = &c->arb->header;
	bool temporal = gi_load(&h->mode) == GSCHED_MODE_TEMPORAL;

	/*
	 * In spatial mode the arbiter decides whether the SMs held for a newcomer cost more than
	 * this form.
	 */
	if (!temporal && !(gi_load(&h->flags) & GSCHED_ARB_RESUMABLE) && !c->always_resumable)
		return false;
	/* a more important client may be idle now and come while the kernel runs */
	if (!c->always_resumable &&
	    (gi_block_ns(shape) < GI_RESUME_NS ||
	     (gi_load(&h->lease) == GSCHED_LEASE_FREE &&
	      gi_load(&h->top_priority) <= gi_load(&h->priority))))
		return false;
	if (!gi_form_ask(fn, GI_RESUMABLE) ||
	    (fn->form[GI_RESUMABLE].warp_rows && l->block[0] % 32))
		return false;
	/* where it cannot suspend everywhere, block-tasks may be long: the hold is needed anyway */
	if (!temporal && !fn->form[GI_RESUMABLE].everywhere && !c->always_resumable)
		return false;
	*m = gi_form_m(fn, shape, GI_RESUMABLE);
	if (*m && !gi_save_records(c, gi_save_stride(&fn->form[GI_RESUMABLE], l->block, l->shared),
				   *m))
		return false;
	/* a lower occupancy would cost more than the form is worth */
	return *m && *m >= gi_form_m(fn, shape, GI_TWIN);
}

static uint64_t blocks_of(const struct gi_launch *l)
{
	return (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
}

/* It has a twin, or may get one on request. */
static bool has_twin(const struct gi_func *fn)
{
	return atomic_load_explicit(&fn->form[GI_TWIN].state, memory_order_acquire) != GI_TWIN_NONE;
}

/* Hardware priorities make room for the band's more important programs while blocks are short. */
static bool hardware_yields(const struct gi_client *c)
{
	return gi_load(&c->arb->header.flags) & GSCHED_ARB_YIELDS;
}

/*
 * Counts consecutive launches on streams that the hardware prefers. GI_PRIORITISED of them show
 * that others in the band yield to the program by themselves; one launch on another stream starts
 * the count again. @l: of a program that is not alone in its band.
 */
static bool note_priority(struct gi_client *c, const struct gi_launch *l)
{
	unsigned int n = atomic_load_explicit(&c->prioritised, memory_order_relaxed);
	bool first = l->raised || (!l->lowered && gi_stream_preferred(l->stream));

	if (!first && n)
		atomic_store_explicit(&c->prioritised, 0, memory_order_relaxed);
	else if (first && n < GI_PRIORITISED)
		atomic_store_explicit(&c->prioritised, n + 1, memory_order_relaxed);
	return first;
}

/* No other client shares the band. */
static bool alone_in_band(const struct gi_client *c)
{
	const struct gsched_arb_header *h = &c->arb->header;

	return gi_load(&h->lease) == GSCHED_LEASE_FREE || gi_load(&h->flags) & GSCHED_ARB_ALONE;
}

/* Others in the band must know of its launches, for their windows or because they wait for them. */
static bool others_depend_on(const struct gi_client *c)
{
	return !alone_in_band(c) && !(gi_load(&c->arb->header.flags) & GSCHED_ARB_PASS);
}

/*
 * Whether to run the original to learn its time. This is for the first launches of a kernel that is
 * not known to be long and has few waves of blocks, while nobody else is in the band and no quota
 * is set. They end about as soon as a twin could be evicted, and short kernels never wait for a
 * twin.
 */
static bool may_try(const struct gi_client *c, const struct gi_launch *l, struct gi_shape *shape,
		    uint64_t leased)
{
	const struct gsched_arb_header *h = &c->arb->header;

	return gi_load(&h->lease) == GSCHED_LEASE_FREE &&
	       gi_window_workers(c, leased, 1) == c->sms &&
	       gi_time_share(h) >= GSCHED_SHARE_ALL &&
	       blocks_of(l) <= TRIED_WAVES * gi_window_workers(c, leased, shape->original_m) &&
	       atomic_load_explicit(&shape->launches, memory_order_relaxed) < GI_TIMED_FIRST;
}

/*
 * A grid barrier that the program implements itself works only if the whole grid is resident at
 * once. So a kernel whose blocks may wait for each other, and whose grid fits the device, must not
 * be launched with the fewer workers of a window: they would wait for blocks that no worker can
 * start. A larger grid has no such barrier, and its blocks can only wait for lower ones.
 */
static bool must_be_resident(const struct gi_client *c, const struct gi_launch *l,
			     struct gi_func *fn, const struct gi_shape *shape)
{
	if (!fn->form[GI_TWIN].kernel.waits || blocks_of(l) > (uint64_t)c->sms * shape->original_m)
		return false;
	if (!atomic_exchange_explicit(&fn->resident, true, memory_order_relaxed))
		gi_why(c, "%s: tier launch: its blocks may wait for each other, and all fit the "
		       "device at once", fn->form[GI_TWIN].kernel.name);
	return true;
}

/*
 * The twin's own words in shared memory may leave room for fewer blocks on an SM, up to half of
 * them where the original fits exactly. That may cost as much time. So the original runs as long as
 * nobody shares the band and no quota is set, which only a twin keeps while it runs.
 */
static bool prefers_original(struct gi_client *c, struct gi_func *fn, const struct gi_shape *shape,
			     uint64_t leased, unsigned int m)
{
	if (m * 4 >= shape->original_m * 3)
		return false;
	if (!atomic_exchange_explicit(&fn->fewer, true, memory_order_relaxed))
		gi_why(c, "%s: blocks per SM: %u of the twin, %u of the original: tier launch "
		       "while the program is alone in its band and has no quota",
		       fn->form[GI_TWIN].kernel.name, m, shape->original_m);
	return !m || (alone_in_band(c) && gi_window_workers(c, leased, 1) == c->sms);
}

/*
 * Chooses the form, NULL for the original. A twin must exist, fit, be long enough, and have more
 * blocks than run at once. *@m: how many of its blocks an SM hosts.
 */
static const struct gi_form *choose_form(struct gi_client *c, const struct gi_launch *l,
					 struct gi_func *fn, struct gi_shape *shape,
					 uint64_t leased, bool first, unsigned int *m)
{
	unsigned int twin_m;
	uint64_t predicted;

	if (!fn || !shape || l->opaque || fn->opaque || c->queues < GI_QUEUES_LEAST ||
	    atomic_load_explicit(&gi_green, memory_order_relaxed))
		return NULL;
	/* a twin's grid has one dimension; the driver reports sizes that are invalid */
	if (l->grid[0] > INT32_MAX || l->grid[1] > UINT16_MAX || l->grid[2] > UINT16_MAX ||
	    blocks_of(l) > GSR_BLOCKS_MAX)
		return NULL;
	if (!has_twin(fn))
		return NULL;
	if (blocks_of(l) <= gi_window_workers(c, leased, shape->original_m))
		return NULL;
	predicted = atomic_load_explicit(&shape->predicted_ns, memory_order_relaxed);
	if (predicted && predicted < GI_LONG_NS)
		return NULL;
	/* hardware priorities make room as fast as a window does, but do not enforce a quota */
	if (hardware_yields(c) && !first && gi_block_ns(shape) &&
	    gi_block_ns(shape) <= GI_SHORT_BLOCK_NS && gi_window_workers(c, leased, 1) == c->sms)
		return NULL;
	if (!predicted && may_try(c, l, shape, leased))
		return NULL;
	if (!gi_twin_wait(fn) || (fn->form[GI_TWIN].warp_rows && l->block[0] % 32))
		return NULL;
	if (must_be_resident(c, l, fn, shape))
		return NULL;
	twin_m = gi_form_m(fn, shape, GI_TWIN);
	if (prefers_original(c, fn, shape, leased, twin_m))
		return NULL;
	if (wants_resumable(c, l, fn, shape, m))
		return &fn->form[GI_RESUMABLE];
	*m = twin_m;
	return &fn->form[GI_TWIN];
}

/* The twin could be launched instead. */
static bool has_choice(const struct gi_launch *l, const struct gi_candidate *k)
{
	return k->fn && k->shape && !l->opaque && !k->fn->opaque && has_twin(k->fn);
}

/*
 * A kernel of at least this size is on the device and known to the arbiter, and no client is more
 * important.
 */
static bool is_covered(const struct gi_client *c, const struct gi_candidate *k)
{
	const struct gsched_arb_header *h = &c->arb->header;

	return gi_load(&h->mode) != GSCHED_MODE_TEMPORAL &&
	       gi_load(&h->top_priority) <= gi_load(&h->priority) && gi_slot_covers(c, k->blocks);
}

bool gi_may_pass(const struct gi_client *c, const struct gi_launch *l,
		 const struct gi_candidate *k)
{
	const struct gsched_arb_header *h = &c->arb->header;

	if (others_depend_on(c) && !hardware_yields(c) && !is_covered(c, k))
		return false;
	/* in temporal mode other bands are evicted for clients that submit their tasks */
	return !(has_choice(l, k) && gi_load(&h->mode) == GSCHED_MODE_TEMPORAL &&
		 gi_load(&h->lease) != GSCHED_LEASE_FREE);
}

bool gi_learns_time(const struct gi_launch *l, const struct gi_candidate *k)
{
	return k->shape && !l->dependent && (k->graph || has_choice(l, k));
}

void gi_choose(const struct gi_launch *l, struct gi_ctx *cx, struct gi_client *c,
	       struct gi_candidate *k)
{
	bool first = false;
	int slot;

	*k = (struct gi_candidate){ .blocks = blocks_of(l) };
	if (l->fn && (!l->dependent || gi_needs_pacing(c, true))) {
		k->fn = gi_func_get(l->fn, cx);
		/* without a twin and without others who depend on it there is nothing to learn */
		if (k->fn && !l->dependent && (has_twin(k->fn) || others_depend_on(c)))
			k->shape = gi_shape_get(k->fn, k->blocks,
					       l->block[0] * l->block[1] * l->block[2], l->shared);
	}
	k->graph = l->graph ? gi_graph_get(l->graph) : NULL;
	if (k->graph) {
		k->shape = &k->graph->shape;
		k->blocks = k->graph->blocks < UINT32_MAX ? k->graph->blocks : c->sms;
	}
	/* the window of a free slot shows what the group may use */
	slot = __builtin_ctzll(~gi_slots_taken(c->tasks) | 1ull << 63);
	k->leased = gi_load(&c->arb->slot[slot].window);
	if (!k->leased)
		k->leased = c->sms * GSCHED_CAPSM;
	if (!alone_in_band(c))
		first = note_priority(c, l);
	/* while the time is unknown, do not leave it to the next timed launch to find out */
	if (k->shape && !atomic_load_explicit(&k->shape->predicted_ns, memory_order_relaxed))
		gi_timings_poll(c);
	k->form = choose_form(c, l, k->fn, k->shape, k->leased, first, &k->m);
	if (k->form && k->form->kernel.n_references && !(k->bound = gi_bound_take(k->fn, k->form)))
		k->form = NULL;
}
