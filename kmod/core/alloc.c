// SPDX-License-Identifier: GPL-2.0-only
/*
 * The allocator: apportions the device's SMs among the active tasks of one band, under every
 * group's max and min.
 *
 * Ranks are served from the highest down. Within one rank capacity is divided at each group, from
 * the root down, among those below it (child groups by gpu.weight, clients with the default weight)
 * by weighted max-min: everyone gets the same level times its weight, but no less than it must and
 * no more than it can use.
 *
 * A client's share is not divided: all its tasks have the same window, in which their streams or
 * the hardware put them in order. What it needs is what its largest task needs, for most programs
 * queue their kernels on one stream; SMs that would be idle then are given to those who have more
 * than one task, up to the sum. Tasks are granted in the order of their arrival and never one while
 * an earlier one has nothing: it may wait for that one on the GPU.
 *
 * The unit here is the whole SM; slots freed here and there are of no use to a kernel with another
 * shared-memory carve-out. Only a max that is no whole number of SMs leads to less, at the very
 * end.
 *
 * An opaque task that runs keeps what it has. It counts for its own rank and those below, up to the
 * max above it; others are served as if it were gone, since their kernels are launched at once and
 * get its SMs as it ends. The next one of its client gets no more than it would if nothing opaque
 * ran, so a queue of them starves nobody.
 *
 * capsm.reserve is a demand that no task has, and guaranteed (standby.c). In the end those who can
 * be evicted in time share what nobody else may have of it.
 */
#include "decide.h"

#define LEVEL_SHIFT	16

/* The groups with active tasks or holds below, by depth */
struct tree {
	struct gsc_group *first[GSC_DEPTH_MAX], *last[GSC_DEPTH_MAX];
	int depth;		/* deepest level with a group */
};

static void enter(struct gsc_contest *contest, struct gsc_share *share)
{
	share->next = NULL;
	share->got = 0;
	if (contest->first)
		contest->last->next = share;
	else
		contest->first = share;
	contest->last = share;
	contest->lo += share->lo;
	contest->hi += share->hi;
	contest->firm += share->firm;
	contest->weights += share->weight;
}

static u32 at_level(const struct gsc_share *share, u64 level)
{
	u64 part = (level * share->weight) >> LEVEL_SHIFT;

	if (part > share->hi)
		part = share->hi;
	return part < share->lo ? share->lo : (u32)part;
}

/* What all have at a level; how many could have more, and their weights */
struct reading {
	u64 sum, weights;
	u32 n;
};

/* Gives each what it has there */
static void read_level(const struct gsc_contest *contest, u64 level, struct reading *at)
{
	u64 sum = 0, weights = 0;
	struct gsc_share *share;
	u32 n = 0;

	for (share = contest->first; share; share = share->next) {
		share->got = at_level(share, level);
		sum += share->got;
		if (share->got == share->hi)
			continue;
		weights += share->weight;
		n++;
	}
	*at = (struct reading){ sum, weights, n };
}

/* The next level above @low at which anybody has more, @high at most */
static u64 next_step(const struct gsc_contest *contest, u64 low, u64 high)
{
	const struct gsc_share *share;
	u64 more;

	for (share = contest->first; share; share = share->next) {
		more = (u64)at_level(share, low) + 1;
		if (more <= share->hi)
			high = min(high, div_u64((more << LEVEL_SHIFT) + share->weight - 1,
						 share->weight));
	}
	return high;
}

/*
 * The highest level at which all together have @amount at most, which is less than they can use.
 * The next one is guessed from what is missing and the weights of those who can have more; near
 * the end, and after a guess that was too high or changed nothing, it is the next at which anybody
 * has more. Halving bounds the number of rounds. True: they were given just @amount
 */
static noinline bool find_level(const struct gsc_contest *contest, u64 amount, u64 *found)
{
	/* at @high everyone has all it can use */
	u64 low = 0, high = ((u64)contest->hi << LEVEL_SHIFT) + 1, level;
	struct reading at = { contest->lo, contest->weights, 0 }, next;
	bool missed = false, step;
	u32 n = 0;

	while (high - low > 1 && at.sum != amount) {
		step = false;
		level = (low + high) / 2;
		if (n++ % 4 < 3) {
			step = missed || amount - at.sum < at.n;
			level = step || !at.weights ? high :
				low + div64_u64(((amount - at.sum) << LEVEL_SHIFT) +
						at.weights - 1, at.weights);
			level = step ? next_step(contest, low, high) : min(level, high - 1);
		}
		read_level(contest, level, &next);
		if (next.sum == amount)
			return true;
		missed = next.sum > amount || next.sum == at.sum;
		if (next.sum > amount) {
			high = level;
			low = step ? high - 1 : low;
		} else {
			low = level;
			at = next;
		}
	}
	*found = low;
	return false;
}

/*
 * Weighted max-min; what is left by rounding goes to the first in the list. Without enough for all
 * that must be, lo is shared. The contest is over then.
 */
static void divide(struct gsc_contest *contest, u32 amount)
{
	struct gsc_share *share;
	struct reading at;
	u64 level;

	if (contest->lo > amount) {
		for (share = contest->first; share; share = share->next) {
			share->hi = share->lo;
			share->lo = share->firm;
		}
		contest->hi = contest->lo;
		contest->lo = contest->firm;
	}
	share = contest->first;
	if (contest->hi <= amount || !share) {
		for (; share; share = share->next)
			share->got = share->hi;
	} else if (!share->next) {
		share->got = max(min(share->hi, amount), share->lo);
	} else if (!find_level(contest, amount, &level)) {
		read_level(contest, level, &at);
		for (; share && at.sum < amount; share = share->next)
			if (at_level(share, level + 1) > share->got) {
				share->got++;
				at.sum++;
			}
	}
	*contest = (struct gsc_contest){ NULL };
}

static void tree_add(struct gsc_band *band, struct tree *tree, struct gsc_group *group, u64 stamp)
{
	struct gsc_device *dev = group->dev;
	u32 max, depth;

	for (; group && group->run.seen != stamp; group = group->parent) {
		group->run.seen = stamp;
		group->run.used = 0;
		group->run.held = 0;
		group->run.demand = 0;
		group->run.reserve = 0;
		group->run.claim = 0;
		max = gsc_group_max(group);
		group->run.cap = max == GSC_MAX_UNLIMITED ? dev->sms : min(gsc_sms(max), dev->sms);
		if (max != GSC_MAX_UNLIMITED && max % GSCHED_CAPSM)
			band->fractional = true;
		if (gsc_group_min(group) || gsc_standby_units(group))
			band->guarantees = true;
		group->run.next_level = NULL;
		group->run.below = NULL;
		depth = group->depth;
		if (tree->first[depth])
			tree->last[depth]->run.next_level = group;
		else
			tree->first[depth] = group;
		tree->last[depth] = group;
		tree->depth = max_t(int, tree->depth, depth);
	}
}

/* Less than one worker is of no use */
static bool can_run(const struct gsc_task *task)
{
	const struct gsc_group *group;

	for (group = task->client->seat; group; group = group->parent)
		if (gsc_is_block(task) && gsc_group_max(group) < gsc_weight(task))
			return false;
	return true;
}

void gsc_exclude(struct gsc_band *band)
{
	struct gsc_client *client;
	struct gsc_task *task;
	bool closed;

	list_for_each_entry(client, &band->active, active) {
		closed = false;
		list_for_each_entry(task, &client->tasks, peer) {
			closed |= !can_run(task);
			if (!closed)
				continue;
			task->want = 0;
			task->need = 0;
		}
	}
}

static void prepare_client(struct gsc_client *client)
{
	client->run.next = NULL;
	client->run.need = 0;
	client->run.full = 0;
	client->run.use = 0;
	client->run.fixed = 0;
	client->run.fair = 0;
	client->alloc = 0;
	client->run.closed = false;
}

static void prepare_task(struct gsc_task *task)
{
	struct gsc_client *client = task->client;
	u32 sms;

	if (client->run.closed)
		task->want = 0;
	if (!task->want) {
		client->run.closed = !task->chained;
		return;
	}
	if (gsc_is_fixed(task)) {
		/* it asks for no more; behind others, for nothing of its own */
		if (!gsc_is_head(task))
			return;
		task->want = task->window;
		client->run.fixed = gsc_sms(task->want);
	}
	sms = gsc_sms(task->want);
	client->run.use = min(client->run.use + sms, client->dev->sms);
	client->run.full = max(client->run.full, sms);
	client->run.need = max(client->run.need, gsc_sms(min(task->need, task->want)));
}

/*
 * The clients with tasks, by rank, as all tasks of a client have the same. @several: some of them
 * have one rank
 */
static struct gsc_client *line_up(const struct gsc_band *band, bool *several)
{
	struct gsc_client *first = NULL, *last = NULL, *client;
	struct gsc_task *task;

	*several = false;
	list_for_each_entry(task, &band->tasks, node) {
		client = task->client;
		if (gsc_is_head(task)) {
			prepare_client(client);
			client->run.rank = task->rank;
			if (!last)
				first = client;
			else
				last->run.next = client;
			*several |= last && last->run.rank == task->rank;
			last = client;
		}
		prepare_task(task);
	}
	return first;
}

/* What capsm.reserve keeps for groups of the band's clients, whether they have tasks or not */
static void prepare_claims(struct gsc_band *band, struct tree *tree, u64 stamp)
{
	struct gsc_client *client;
	struct gsc_group *group;
	u32 claim;

	list_for_each_entry(client, &band->members, member) {
		if (gsc_is_server(client))
			continue;
		for (group = client->home; group && group->run.standby_seen != stamp;
		     group = group->parent) {
			group->run.standby_seen = stamp;
			claim = gsc_standby_claim(band, group);
			if (!claim)
				continue;
			tree_add(band, tree, group, stamp);
			group->run.claim = claim;
			band->claims = true;
			band->guarantees = true;
			band->lend_ns = min(band->lend_ns, gsc_standby_limit_ns(group));
		}
	}
}

static void reset(struct gsc_band *band)
{
	band->stamp = ++gsc_band_device(band)->stamp;
	band->fractional = false;
	band->guarantees = false;
	band->claims = false;
	band->kept_free = 0;
	band->evicts = false;
	band->lend_ns = U64_MAX;
}

static void prepare(struct gsc_band *band, struct tree *tree, struct gsc_client *first, bool holds)
{
	struct gsc_client *client;
	u64 stamp = band->stamp;

	memset(tree->first, 0, sizeof(tree->first));
	tree->depth = 0;
	for (client = first; client; client = client->run.next)
		tree_add(band, tree, client->seat, stamp);
	if (gsc_standby_is_used(gsc_band_device(band)))
		prepare_claims(band, tree, stamp);
	if (!band->n_holds)
		return;
	list_for_each_entry(client, &band->active, active) {
		client->hold_got = 0;
		if (holds && client->hold_units)
			tree_add(band, tree, client->seat, stamp);
	}
}

/*
 * What each group's subtree is guaranteed: its min or capsm.reserve, or what its children are
 * guaranteed if that is more, as far as it has a use for it; and what it claims, use or not. Where
 * the sum is more than there is, all are scaled down alike. Claims leave one SM, or whoever is not
 * guaranteed anything might wait for ever.
 */
static void guarantee(struct tree *tree, struct gsc_client *first)
{
	struct gsc_group_run *run, *up;
	struct gsc_client *client;
	struct gsc_group *group;
	int depth;
	u32 need;

	for (client = first; client; client = client->run.next) {
		run = &client->seat->run;
		run->demand = min(run->demand + client->run.full, client->dev->sms);
	}
	for (depth = tree->depth; depth >= 0; depth--)
		for (group = tree->first[depth]; group; group = group->run.next_level) {
			run = &group->run;
			run->asked = run->demand;
			run->claimed_below = false;
			run->leaves_one = false;
			run->kept_free = 0;
		}
	for (depth = tree->depth; depth >= 0; depth--) {
		for (group = tree->first[depth]; group; group = group->run.next_level) {
			run = &group->run;
			need = gsc_sms(max(gsc_group_min(group), gsc_standby_units(group)));
			/*
			 * its direct tasks are in demand already; its children were added by
			 * themselves
			 */
			run->asked = min(run->asked, run->cap);
			run->demand = min(run->demand, run->cap);
			if (run->leaves_one)
				run->demand = max(run->asked, min(run->demand, run->cap - 1));
			run->demand = max(run->demand, min(run->claim, run->cap));
			run->reserve = min(max(run->contest.hi, need), run->demand);
			run->share.lo = 0;
			run->share.firm = 0;
			run->share.hi = run->reserve;
			run->share.weight = run->reserve;
			if (!group->parent)
				continue;
			up = &group->parent->run;
			up->asked = min(up->asked + run->asked, group->dev->sms);
			up->demand = min(up->demand + run->demand, group->dev->sms);
			if (run->claimed_below || run->claim > run->asked)
				up->claimed_below = true;
			/* who makes a plan leaves to others what they need */
			if (run->leaves_one ||
			    (run->claim > run->asked && !gsc_is_planned(group)))
				up->leaves_one = true;
			if (run->reserve)
				enter(&up->contest, &run->share);
		}
	}
	for (depth = 0; depth <= tree->depth; depth++) {
		for (group = tree->first[depth]; group; group = group->run.next_level) {
			run = &group->run;
			if (group->parent)
				run->reserve = run->reserve ? run->share.got : 0;
			divide(&run->contest, run->leaves_one ? min(run->reserve, run->cap - 1) :
								run->reserve);
		}
	}
}

static void take(struct gsc_client *client, u32 sms, bool hold)
{
	struct gsc_group *group;

	for (group = client->seat; group; group = group->parent) {
		group->run.used += sms;
		group->run.held += hold ? sms : 0;
	}
}

enum contest_kind {
	CONTEST_FAIR,	/* what each needs, as if nothing opaque ran */
	CONTEST_KEEP,	/* what each needs */
	CONTEST_SPARE,	/* what would be idle */
	CONTEST_LEND,	/* what is claimed, among those who can be evicted in time */
	CONTEST_HOLD,	/* for holds */
};

static u32 unfilled(const struct gsc_group *group, enum contest_kind kind)
{
	const struct gsc_group_run *run = &group->run;
	u32 due = kind == CONTEST_LEND ? min(run->reserve, run->asked) : run->reserve;

	return due - min(due, run->used - run->held);
}

/*
 * What lower ranks may have to take inside @group for some guarantee, its own or one above it, to
 * be met
 */
static u32 owed(const struct gsc_group *group)
{
	u32 served = group->run.used - group->run.held, most = 0;
	const struct gsc_group *up;

	for (up = group; up; up = up->parent)
		most = max(most, unfilled(up, CONTEST_HOLD));
	return min(most, group->run.demand - min(group->run.demand, served));
}

/*
 * With the clients entered at their groups: find what each group can take, then divide it from the
 * root down. A hold uses up a max, but fills no guarantee: it gets what is left beside them.
 */
static void contend(struct gsc_band *band, struct tree *tree, enum contest_kind kind)
{
	bool hold = kind == CONTEST_HOLD;
	struct gsc_group *root = &gsc_band_device(band)->root, *group;
	u32 room, firm;
	int depth;

	for (depth = tree->depth; depth >= 0; depth--) {
		for (group = tree->first[depth]; group; group = group->run.next_level) {
			struct gsc_group_run *run = &group->run;
			const struct gsc_contest *below = &run->contest;

			room = run->cap - min(run->cap, run->used);
			/*
			 * what lower ranks are guaranteed is claimed here too, though only they
			 * will take it
			 */
			firm = 0;
			if (band->guarantees)
				firm = hold ? owed(group) : unfilled(group, kind);
			firm = max(firm, below->firm);
			run->beside = hold ? firm - below->firm : 0;
			run->share.firm = firm;
			run->share.hi = max(firm, min(room, below->hi + run->beside));
			run->share.lo = max(firm, min(below->lo, run->share.hi));
			run->share.weight = group->weight;
			if (group->parent)
				enter(&group->parent->run.contest, &run->share);
		}
	}
	root->run.share.got = root->run.share.hi;
	for (depth = 0; depth <= tree->depth; depth++)
		for (group = tree->first[depth]; group; group = group->run.next_level)
			divide(&group->run.contest,
			       group->run.share.got - min(group->run.share.got, group->run.beside));
}

static void enter_client(struct gsc_client *client, u32 lo, u32 hi)
{
	client->run.share.firm = 0;
	client->run.share.lo = lo;
	client->run.share.hi = max(lo, min(hi, client->dev->sms));
	client->run.share.weight = GSC_WEIGHT_DEFAULT;
	enter(&client->seat->run.contest, &client->run.share);
}

static u32 room_above(const struct gsc_client *client)
{
	const struct gsc_group *group;
	u32 room = U32_MAX;

	for (group = client->seat; group; group = group->parent)
		room = min(room, group->run.cap - min(group->run.cap, group->run.used));
	return room;
}

/* A window that nobody else has a use for does not shrink: its workers may be anywhere in it */
static u32 spare_use(const struct gsc_client *client)
{
	u32 use = max(client->run.use, gsc_sms(client->window));

	return use - min(use, gsc_sms(client->alloc));
}

/* Among the clients of one rank, from @from up to @end. Whoever takes no part gets nothing */
static void contest_clients(struct gsc_band *band, struct tree *tree, struct gsc_client *from,
			    const struct gsc_client *end, enum contest_kind kind)
{
	struct gsc_client *client;

	for (client = from; client != end; client = client->run.next) {
		client->run.share.got = 0;
		if (!client->run.need)
			continue;
		if (kind == CONTEST_LEND && !gsc_standby_may_borrow(band, client))
			continue;
		if (kind == CONTEST_SPARE || kind == CONTEST_LEND)
			enter_client(client, 0, spare_use(client));
		else
			enter_client(client, kind == CONTEST_KEEP ? client->run.fixed : 0,
				     client->run.need);
	}
	contend(band, tree, kind);
}

/*
 * The only client of its rank, where nothing is guaranteed: it has what a contest would give it, up
 * to @room. Returns how much
 */
static inline u32 serve_lone(struct gsc_client *client, u32 room, bool spare)
{
	u32 want, got;

	if (!client->run.need)
		return 0;
	want = spare ? spare_use(client) : max(client->run.fixed, client->run.need);
	got = min(want, room);
	client->alloc += got * GSCHED_CAPSM;
	client->run.fair += spare ? got : min(client->run.need, room);
	return got;
}

/* Several clients, or something is guaranteed: the same for those from @from to @end */
static noinline void serve_several(struct gsc_band *band, struct tree *tree,
				   struct gsc_client *from, const struct gsc_client *end,
				   enum contest_kind kind)
{
	/* without opaque tasks each has a fair part anyway */
	bool fair = kind == CONTEST_KEEP && band->n_opaque;
	struct gsc_client *client;
	u32 got;

	if (fair) {
		contest_clients(band, tree, from, end, CONTEST_FAIR);
		for (client = from; client != end; client = client->run.next)
			client->run.fair = client->run.share.got;
	}
	contest_clients(band, tree, from, end, kind);
	for (client = from; client != end; client = client->run.next) {
		got = client->run.share.got;
		client->alloc += got * GSCHED_CAPSM;
		if (!fair)
			client->run.fair += got;
		take(client, got, false);
	}
}

/* Serve the clients of one rank, @from being the first. Returns the first of the next rank */
static struct gsc_client *serve_rank(struct gsc_band *band, struct tree *tree,
				     struct gsc_client *from, enum contest_kind kind)
{
	struct gsc_client *end = from->run.next;

	while (end && end->run.rank == from->run.rank)
		end = end->run.next;
	if (end == from->run.next && !band->guarantees)
		take(from, serve_lone(from, room_above(from), kind != CONTEST_KEEP), false);
	else
		serve_several(band, tree, from, end, kind);
	return end;
}

/* Returns how many there are */
static u32 serve_holds(struct gsc_band *band, struct tree *tree, u32 rank)
{
	bool lone = band->n_holds == 1 && !band->guarantees;
	u64 stamp = ++gsc_band_device(band)->stamp;
	struct gsc_client *client;
	u32 has, sms, n = 0;

	list_for_each_entry(client, &band->active, active) {
		if (!client->hold_units || client->hold_rank != rank)
			continue;
		has = client->n_tasks ? gsc_sms(client->alloc) : 0;
		sms = gsc_sms(client->hold_units);
		sms -= min(sms, has);
		client->run.seen = stamp;
		n++;
		if (lone)
			client->run.share.got = min(sms, room_above(client));
		else
			enter_client(client, 0, sms);
	}
	if (!lone)
		contend(band, tree, CONTEST_HOLD);
	list_for_each_entry(client, &band->active, active) {
		if (client->run.seen != stamp)
			continue;
		client->hold_got = client->run.share.got * GSCHED_CAPSM;
		take(client, client->run.share.got, true);
	}
	return n;
}

/* The highest rank of a hold below @below */
static s64 next_hold(const struct gsc_band *band, s64 below)
{
	const struct gsc_client *client;
	s64 rank = -1;

	list_for_each_entry(client, &band->active, active)
		if (client->hold_units && client->hold_rank < below)
			rank = max(rank, (s64)client->hold_rank);
	return rank;
}

/* What the first task that wants something needs: with less than that the client cannot go on */
static u32 least_use(const struct gsc_client *client)
{
	const struct gsc_task *task;

	list_for_each_entry(task, &client->tasks, peer)
		if (task->want && gsc_is_block(task))
			return gsc_weight(task);
	return 1;
}

/* A max of 1.5: the last client of the group that stays useful gives up the half */
static void trim(const struct gsc_group *group)
{
	u32 sum = 0, excess, max = gsc_group_max(group);
	struct gsc_client *client;

	for (client = group->run.below; client; client = client->run.below)
		sum += client->alloc;
	if (sum <= max)
		return;
	excess = sum - max;
	for (client = group->run.below; client; client = client->run.below)
		if (client->alloc && client->alloc >= excess + least_use(client)) {
			client->alloc -= excess;
			return;
		}
	/* nobody stays useful with less: the last ones wait */
	for (client = group->run.below; client && excess; client = client->run.below) {
		excess -= min(excess, client->alloc);
		client->alloc = 0;
	}
}

/* Level by level, and in each every client once: at the group there that it is below */
static void trim_all(struct tree *tree, struct gsc_client *first)
{
	struct gsc_client *client;
	struct gsc_group *group;
	int depth;

	for (client = first; client; client = client->run.next)
		client->run.above = client->seat;
	for (depth = tree->depth; depth >= 0; depth--) {
		/* each before those that are more important */
		for (client = first; client; client = client->run.next) {
			if ((int)client->run.above->depth > depth)
				client->run.above = client->run.above->parent;
			group = client->run.above;
			if ((int)group->depth < depth)
				continue;
			client->run.below = group->run.below;
			group->run.below = client;
		}
		for (group = tree->first[depth]; group; group = group->run.next_level)
			if (gsc_group_max(group) % GSCHED_CAPSM &&
			    gsc_group_max(group) != GSC_MAX_UNLIMITED)
				trim(group);
	}
}

/* Of what its client got; @kept: what a chained one keeps that they share */
static u32 from_alloc(const struct gsc_task *task, u32 kept)
{
	const struct gsc_client *client = task->client;

	if (!task->want)
		return 0;
	if (gsc_is_block(task))
		return client->alloc >= gsc_weight(task) ? client->alloc : 0;
	return max(min(min(task->want, client->run.fair * GSCHED_CAPSM), client->alloc),
		   min(task->want, kept));
}

/*
 * What a client has to its tasks: the same to all, in order, up to the first that can have nothing.
 * False: none of them has anything
 */
static bool assign(struct gsc_client *client)
{
	const struct gsc_task *head = list_first_entry(&client->tasks, struct gsc_task, peer);
	u32 kept = gsc_is_fixed(head) && head->chained ? head->window : 0;
	u32 window = 0, opaque = 0, units = 0, part;
	bool open = client->alloc || kept, fed = false;
	struct gsc_task *task;

	list_for_each_entry(task, &client->tasks, peer) {
		if (gsc_is_fixed(task)) {
			task->alloc = task->want ? task->window : 0;
			fed |= task->alloc != 0;
		} else {
			task->alloc = open ? from_alloc(task, kept) : 0;
			open = task->alloc;
			fed |= open;
		}
		part = gsc_new_window(task);
		client->band->evicts |= part < task->window;
		if (gsc_is_block(task)) {
			window = window ? window : part;
			continue;
		}
		opaque += min(part, client->alloc - min(opaque, client->alloc));
		if (gsc_is_head(task))
			units = part;
	}
	client->run.window = window;
	client->run.units = max(units, max(opaque, window));
	return fed;
}

static void serve(struct gsc_band *band, struct tree *tree, struct gsc_client *first, bool holds)
{
	const struct gsc_group *root = &gsc_band_device(band)->root;
	u32 left = holds ? band->n_holds : 0;
	s64 hold = -1, below = (s64)U32_MAX + 1;
	struct gsc_client *client;

	for (client = first;;) {
		if (left && hold < 0)
			hold = next_hold(band, below);
		if (!client && hold < 0)
			break;
		below = max(hold, client ? (s64)client->run.rank : -1);
		if (client && client->run.rank == below)
			client = serve_rank(band, tree, client, CONTEST_KEEP);
		if (hold == below) {
			left -= serve_holds(band, tree, (u32)hold);
			hold = -1;
		}
	}
	for (client = first; client && root->run.used < root->run.cap;)
		client = serve_rank(band, tree, client, CONTEST_SPARE);
	for (client = band->claims ? first : NULL; client && root->run.used < root->run.cap;)
		client = serve_rank(band, tree, client, CONTEST_LEND);
}

static u32 serve_hold(struct gsc_client *client, u32 room)
{
	u32 has = client->n_tasks ? gsc_sms(client->alloc) : 0, sms = gsc_sms(client->hold_units);
	u32 got = min(sms - min(sms, has), room);

	client->hold_got = got * GSCHED_CAPSM;
	return got;
}

/*
 * The same as serve() where nothing but the device limits anybody, each rank has one client, and
 * one client at most holds capacity: nothing is shared, and no group has to be looked at
 */
static void serve_flat(struct gsc_band *band, struct gsc_client *first, bool holds)
{
	struct gsc_client *client, *holder = NULL;
	u32 left = gsc_band_device(band)->sms;

	if (band->n_holds)
		list_for_each_entry(client, &band->active, active) {
			client->hold_got = 0;
			if (holds && client->hold_units)
				holder = client;
		}
	for (client = first; client; client = client->run.next) {
		if (holder && holder->hold_rank > client->run.rank) {
			left -= serve_hold(holder, left);
			holder = NULL;
		}
		left -= serve_lone(client, left, false);
	}
	if (holder)
		left -= serve_hold(holder, left);
	for (client = first; client && left; client = client->run.next)
		left -= serve_lone(client, left, true);
}

/* Of the claims, what is not used and not lent */
static void count_kept(struct gsc_band *band, struct tree *tree)
{
	struct gsc_group_run *run;
	struct gsc_group *group;
	u32 own;
	int depth;

	for (depth = tree->depth; depth >= 0; depth--) {
		for (group = tree->first[depth]; group; group = group->run.next_level) {
			run = &group->run;
			own = min(run->reserve, run->claim);
			own -= min(own, run->used - run->held);
			run->kept_free = min(max(run->kept_free, own),
					     run->cap - min(run->cap, run->used));
			if (group->parent)
				group->parent->run.kept_free += run->kept_free;
		}
	}
	band->kept_free = tree->first[0]->run.kept_free;
	/* what is lent is lent by all above */
	for (depth = 1; depth <= tree->depth; depth++)
		for (group = tree->first[depth]; group; group = group->run.next_level)
			group->run.kept_free =
				min(group->run.kept_free, group->parent->run.kept_free);
}

static noinline void share_in_tree(struct gsc_band *band, struct gsc_client *first, bool holds)
{
	struct tree tree;

	prepare(band, &tree, first, holds);
	if (band->guarantees)
		guarantee(&tree, first);
	serve(band, &tree, first, holds);
	if (band->claims)
		count_kept(band, &tree);
	if (band->fractional)
		trim_all(&tree, first);
}

/* Returns how many clients have tasks and got nothing */
static u32 share_out(struct gsc_band *band, bool holds)
{
	struct gsc_client *client, *first;
	u32 starving = 0;
	bool several;

	reset(band);
	first = line_up(band, &several);
	if (!gsc_is_limited(gsc_band_device(band)) && !several && band->n_holds <= 1)
		serve_flat(band, first, holds);
	else
		share_in_tree(band, first, holds);
	for (client = first; client; client = client->run.next)
		starving += !assign(client);
	return starving;
}

void gsc_allocate(struct gsc_band *band)
{
	struct gsc_client *client;
	u32 n = share_out(band, true);

	/* nobody waits for what is only kept free */
	if (!n || !band->n_holds)
		return;
	if (share_out(band, false) < n) {
		list_for_each_entry(client, &band->active, active)
			gsc_hold_drop(client);
	} else {
		share_out(band, true);
	}
}
