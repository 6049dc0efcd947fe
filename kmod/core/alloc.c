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
}

static u32 at_level(const struct gsc_share *share, u64 level)
{
	u64 part = (level * share->weight) >> LEVEL_SHIFT;

	if (part > share->hi)
		part = share->hi;
	return part < share->lo ? share->lo : (u32)part;
}

static u64 sum_at_level(const struct gsc_contest *contest, u64 level)
{
	const struct gsc_share *share;
	u64 sum = 0;

	for (share = contest->first; share; share = share->next)
		sum += at_level(share, level);
	return sum;
}

/*
 * A level above @low, where @missing are left. @step: the next one at which anybody has more, as it
 * also is where that may be all; else one at which about so many more are had
 */
static u64 raise(const struct gsc_contest *contest, u64 low, u64 high, u64 missing, bool *step)
{
	const struct gsc_share *share;
	u64 next = high, weights = 0;
	u32 at, n = 0;

	for (share = contest->first; share; share = share->next) {
		at = at_level(share, low);
		if (at == share->hi)
			continue;
		weights += share->weight;
		n++;
		next = min(next, div_u64(((u64)(at + 1) << LEVEL_SHIFT) + share->weight - 1,
					 share->weight));
	}
	*step |= missing < n;
	if (*step || !weights)
		return next;
	low += div64_u64((missing << LEVEL_SHIFT) + weights - 1, weights);
	*step = low <= next;
	return *step ? next : min(low, high - 1);
}

/*
 * Weighted max-min; what is left by rounding goes to the first in the list. Without enough for all
 * that must be, lo is shared
 */
static void divide(struct gsc_contest *contest, u32 amount)
{
	u64 low = 0, high = 0, sum = 0, least = 0, level, at;
	struct gsc_share *share;
	bool step, over = false;
	u32 n = 0;

	for (share = contest->first; share; share = share->next) {
		share->got = share->hi;
		sum += share->hi;
		least += share->lo;
	}
	if (sum <= amount)
		return;
	if (least > amount) {
		for (share = contest->first; share; share = share->next) {
			share->hi = share->lo;
			share->lo = share->firm;
		}
	}
	share = contest->first;
	if (!share->next) {
		share->got = max(min(share->hi, amount), share->lo);
		return;
	}
	/* there everyone has all it can use, and that is more than there is */
	for (; share; share = share->next)
		high = max(high, (u64)((share->hi << LEVEL_SHIFT) / share->weight + 1));
	sum = sum_at_level(contest, low);
	while (high - low > 1 && sum != amount) {
		/* halving bounds the number of rounds */
		step = over;
		if (n++ % 4 < 3) {
			level = raise(contest, low, high, amount - sum, &step);
		} else {
			level = (low + high) / 2;
			step = false;
		}
		at = sum_at_level(contest, level);
		over = at > amount;
		if (over) {
			high = level;
			low = step ? high - 1 : low;
		} else {
			low = level;
			sum = at;
		}
	}
	for (share = contest->first; share; share = share->next) {
		share->got = at_level(share, low);
		if (sum < amount && at_level(share, low + 1) > share->got) {
			share->got++;
			sum++;
		}
	}
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

static void prepare_client(struct gsc_client *client, u64 stamp)
{
	client->run.seen = stamp;
	client->run.need = 0;
	client->run.full = 0;
	client->run.use = 0;
	client->run.fixed = 0;
	client->run.fair = 0;
	client->alloc = 0;
	client->run.closed = false;
}

static void prepare_task(const struct gsc_band *band, struct gsc_task *task)
{
	struct gsc_client *client = task->client;
	struct gsc_device *dev = client->dev;
	struct gsc_group *group = client->seat;
	u32 sms;

	task->want = min(task->want, dev->sms * GSCHED_CAPSM);
	/* a max that is smaller than a worker is a fraction */
	if (client->run.closed || (band->fractional && !can_run(task)))
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
	client->run.use = min(client->run.use + sms, dev->sms);
	if (sms > client->run.full) {
		group->run.demand = min(group->run.demand + sms - client->run.full, dev->sms);
		client->run.full = sms;
	}
	client->run.need = max(client->run.need, gsc_sms(min(task->need, task->want)));
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
	band->lend_ns = U64_MAX;
}

static void prepare(struct gsc_band *band, struct tree *tree, bool holds)
{
	struct gsc_client *client;
	u64 stamp = band->stamp;
	struct gsc_task *task;

	memset(tree->first, 0, sizeof(tree->first));
	tree->depth = 0;
	list_for_each_entry(task, &band->tasks, node) {
		tree_add(band, tree, task->client->seat, stamp);
		if (task->client->run.seen != stamp)
			prepare_client(task->client, stamp);
		prepare_task(band, task);
	}
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
static void guarantee(struct tree *tree)
{
	struct gsc_group_run *run, *up;
	struct gsc_share *share;
	struct gsc_group *group;
	int depth;
	u32 need;

	for (depth = tree->depth; depth >= 0; depth--)
		for (group = tree->first[depth]; group; group = group->run.next_level) {
			run = &group->run;
			run->contest.first = NULL;
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
			for (share = run->contest.first; share; share = share->next)
				run->reserve += share->hi;
			run->reserve = min(max(run->reserve, need), run->demand);
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

static struct gsc_task *next_task(const struct gsc_band *band, struct gsc_task *task)
{
	task = list_next_entry(task, node);
	return list_entry_is_head(task, &band->tasks, node) ? NULL : task;
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
	struct gsc_device *dev = gsc_band_device(band);
	struct gsc_share *share;
	struct gsc_group *group;
	int depth;

	for (depth = tree->depth; depth >= 0; depth--) {
		for (group = tree->first[depth]; group; group = group->run.next_level) {
			struct gsc_group_run *run = &group->run;
			u32 room = run->cap - min(run->cap, run->used);
			u32 lo = 0, hi = 0, firm = 0, beside;

			for (share = run->contest.first; share; share = share->next) {
				share->hi = max(share->lo, min(share->hi, dev->sms));
				firm += share->firm;
				lo += share->lo;
				hi += share->hi;
			}
			/*
			 * what lower ranks are guaranteed is claimed here too, though only they
			 * will take it
			 */
			run->share.firm = max(firm, hold && band->guarantees ?
							    owed(group) : unfilled(group, kind));
			beside = hold ? run->share.firm - firm : 0;
			run->share.hi = max(run->share.firm, min(room, hi + beside));
			run->share.lo = max(run->share.firm, min(lo, run->share.hi));
			run->beside = beside;
			run->share.weight = group->weight;
			run->share.got = 0;
			if (group->parent && run->share.hi)
				enter(&group->parent->run.contest, &run->share);
		}
	}
	dev->root.run.share.got = dev->root.run.share.hi;
	for (depth = 0; depth <= tree->depth; depth++)
		for (group = tree->first[depth]; group; group = group->run.next_level)
			divide(&group->run.contest,
			       group->run.share.got - min(group->run.share.got, group->run.beside));
}

static void new_contest(struct tree *tree)
{
	struct gsc_group *group;
	int depth;

	for (depth = 0; depth <= tree->depth; depth++)
		for (group = tree->first[depth]; group; group = group->run.next_level)
			group->run.contest.first = NULL;
}

static void enter_client(struct gsc_client *client, u32 lo, u32 hi)
{
	client->run.share.firm = 0;
	client->run.share.lo = lo;
	client->run.share.hi = hi;
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

/*
 * The clients of one rank, @from being the first task of it. Returns the stamp of those that took
 * part
 */
static u64 contest_clients(struct gsc_band *band, struct tree *tree, struct gsc_task *from,
			   enum contest_kind kind)
{
	struct gsc_client *client;
	u64 stamp = ++gsc_band_device(band)->stamp;
	struct gsc_task *task;

	new_contest(tree);
	for (task = from; task && task->rank == from->rank; task = next_task(band, task)) {
		client = task->client;
		if (!client->run.need || client->run.seen == stamp)
			continue;
		if (kind == CONTEST_LEND && !gsc_standby_may_borrow(band, client))
			continue;
		client->run.seen = stamp;
		if (kind == CONTEST_SPARE || kind == CONTEST_LEND)
			enter_client(client, 0, spare_use(client));
		else
			enter_client(client, kind == CONTEST_KEEP ? client->run.fixed : 0,
				     client->run.need);
	}
	contend(band, tree, kind);
	return stamp;
}

/*
 * The only client of its rank, where nothing is guaranteed: it has what a contest would give it, up
 * to @room. Returns how much
 */
static u32 serve_lone(struct gsc_client *client, u32 room, bool spare)
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

/* Several clients, or something is guaranteed: the same for the tasks from @from to @end */
static noinline void serve_several(struct gsc_band *band, struct tree *tree, struct gsc_task *from,
				   const struct gsc_task *end, enum contest_kind kind)
{
	bool spare = kind != CONTEST_KEEP, fixed = false;
	struct gsc_client *client;
	struct gsc_task *task;
	u64 stamp;

	for (task = from; task != end; task = next_task(band, task))
		fixed |= task->client->run.fixed != 0;
	if (fixed && !spare) {
		contest_clients(band, tree, from, CONTEST_FAIR);
		for (task = from; task != end; task = next_task(band, task))
			if (task->client->run.need)
				task->client->run.fair = task->client->run.share.got;
	}
	stamp = contest_clients(band, tree, from, kind);
	for (task = from; task != end; task = next_task(band, task)) {
		client = task->client;
		if (client->run.seen != stamp)
			continue;
		client->run.seen = 0;
		client->alloc += client->run.share.got * GSCHED_CAPSM;
		if (!fixed || spare)
			client->run.fair += client->run.share.got;
		take(client, client->run.share.got, false);
	}
}

/*
 * Serve the clients of one rank, @from being the first task of it. Returns the first of the next
 * rank
 */
static struct gsc_task *serve_rank(struct gsc_band *band, struct tree *tree, struct gsc_task *from,
				   enum contest_kind kind)
{
	bool lone = !band->guarantees;
	struct gsc_task *end = from;

	do {
		lone &= end->client == from->client;
		end = next_task(band, end);
	} while (end && end->rank == from->rank);
	if (lone)
		take(from->client, serve_lone(from->client, room_above(from->client),
					      kind != CONTEST_KEEP), false);
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

	if (!lone)
		new_contest(tree);
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

static bool is_below(const struct gsc_group *group, const struct gsc_group *top)
{
	while (group && group != top)
		group = group->parent;
	return group == top;
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
static void trim(struct gsc_band *band, const struct gsc_group *group)
{
	u64 stamp = ++gsc_band_device(band)->stamp;
	u32 sum = 0, excess, max = gsc_group_max(group);
	struct gsc_client *client;
	struct gsc_task *task;

	list_for_each_entry(client, &band->active, active)
		if (client->n_tasks && is_below(client->group, group))
			sum += client->alloc;
	if (sum <= max)
		return;
	excess = sum - max;
	list_for_each_entry_reverse(task, &band->tasks, node) {
		client = task->client;
		if (client->run.seen == stamp || !client->alloc || !is_below(client->group, group))
			continue;
		client->run.seen = stamp;
		if (client->alloc >= excess + least_use(client)) {
			client->alloc -= excess;
			return;
		}
	}
	/* nobody stays useful with less: the last ones wait */
	list_for_each_entry_reverse(task, &band->tasks, node) {
		client = task->client;
		if (!client->alloc || !is_below(client->group, group))
			continue;
		if (!excess)
			return;
		excess -= min(excess, client->alloc);
		client->alloc = 0;
	}
}

/*
 * What a client has to its tasks: the same to all, in order, up to the first that can have nothing.
 * False: none of them has anything
 */
static bool assign(struct gsc_client *client)
{
	const struct gsc_task *head = list_first_entry(&client->tasks, struct gsc_task, peer);
	u32 kept = gsc_is_fixed(head) && head->chained ? head->window : 0;
	bool open = client->alloc || kept, fed = false;
	struct gsc_task *task;

	list_for_each_entry(task, &client->tasks, peer) {
		if (gsc_is_fixed(task)) {
			task->alloc = task->want ? task->window : 0;
			fed |= task->alloc != 0;
			continue;
		}
		task->alloc = 0;
		if (!open || !task->want)
			open = false;
		else if (!gsc_is_block(task))
			task->alloc = max(min(min(task->want, client->run.fair * GSCHED_CAPSM),
					      client->alloc),
					  min(task->want, kept));
		else if (client->alloc >= gsc_weight(task))
			task->alloc = client->alloc;
		open = open && task->alloc;
		fed |= open;
	}
	return fed;
}

static void serve(struct gsc_band *band, struct tree *tree, bool holds)
{
	const struct gsc_group *root = &gsc_band_device(band)->root;
	struct gsc_task *first = NULL, *task;
	u32 left = holds ? band->n_holds : 0;
	s64 hold = -1, below = (s64)U32_MAX + 1;

	if (!list_empty(&band->tasks))
		first = list_first_entry(&band->tasks, struct gsc_task, node);
	for (task = first;;) {
		if (left && hold < 0)
			hold = next_hold(band, below);
		if (!task && hold < 0)
			break;
		below = max(hold, task ? (s64)task->rank : -1);
		if (task && task->rank == below)
			task = serve_rank(band, tree, task, CONTEST_KEEP);
		if (hold == below) {
			left -= serve_holds(band, tree, (u32)hold);
			hold = -1;
		}
	}
	for (task = first; task && root->run.used < root->run.cap;)
		task = serve_rank(band, tree, task, CONTEST_SPARE);
	for (task = band->claims ? first : NULL; task && root->run.used < root->run.cap;)
		task = serve_rank(band, tree, task, CONTEST_LEND);
}

/*
 * Each rank has one client, at most one holds capacity, and nothing but the device limits anybody:
 * nothing is shared, and no group has to be looked at.
 */
static bool is_flat(const struct gsc_band *band)
{
	const struct gsc_device *dev = gsc_band_device(band);
	const struct gsc_task *task, *last = NULL;

	if (dev->n_limits || gsc_has_plan(dev) || band->n_holds > 1)
		return false;
	list_for_each_entry(task, &band->tasks, node) {
		if (last && last->rank == task->rank && last->client != task->client)
			return false;
		last = task;
	}
	return true;
}

static u32 serve_hold(struct gsc_client *client, u32 room)
{
	u32 has = client->n_tasks ? gsc_sms(client->alloc) : 0, sms = gsc_sms(client->hold_units);
	u32 got = min(sms - min(sms, has), room);

	client->hold_got = got * GSCHED_CAPSM;
	return got;
}

/* The same as serve() where the band is flat */
static void serve_flat(struct gsc_band *band, bool holds)
{
	struct gsc_client *client, *holder = NULL;
	u32 left = gsc_band_device(band)->sms;
	struct gsc_task *task;

	if (band->n_holds)
		list_for_each_entry(client, &band->active, active) {
			client->hold_got = 0;
			if (holds && client->hold_units)
				holder = client;
		}
	client = NULL;
	list_for_each_entry(task, &band->tasks, node) {
		if (!client || task->client != client)
			prepare_client(task->client, band->stamp);
		client = task->client;
		prepare_task(band, task);
	}
	client = NULL;
	list_for_each_entry(task, &band->tasks, node) {
		if (task->client == client)
			continue;
		client = task->client;
		if (holder && holder->hold_rank > task->rank) {
			left -= serve_hold(holder, left);
			holder = NULL;
		}
		left -= serve_lone(client, left, false);
	}
	if (holder)
		left -= serve_hold(holder, left);
	client = NULL;
	list_for_each_entry(task, &band->tasks, node) {
		if (!left)
			return;
		if (task->client == client)
			continue;
		client = task->client;
		left -= serve_lone(client, left, true);
	}
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

static noinline void share_in_tree(struct gsc_band *band, bool holds)
{
	struct gsc_group *group;
	struct tree tree;
	int depth;

	prepare(band, &tree, holds);
	if (band->guarantees)
		guarantee(&tree);
	serve(band, &tree, holds);
	if (band->claims)
		count_kept(band, &tree);
	for (depth = tree.depth; band->fractional && depth >= 0; depth--)
		for (group = tree.first[depth]; group; group = group->run.next_level)
			if (gsc_group_max(group) % GSCHED_CAPSM &&
			    gsc_group_max(group) != GSC_MAX_UNLIMITED)
				trim(band, group);
}

/* Returns how many clients have tasks and got nothing */
static u32 share_out(struct gsc_band *band, bool holds)
{
	struct gsc_client *client;
	u32 starving = 0;

	reset(band);
	if (is_flat(band))
		serve_flat(band, holds);
	else
		share_in_tree(band, holds);
	list_for_each_entry(client, &band->active, active)
		if (client->n_tasks)
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
