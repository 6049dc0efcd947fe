// SPDX-License-Identifier: GPL-2.0-only
/*
 * Turns. Sliced mode: of the lower bands that have work only one at a time may launch, since two
 * busy bands with the shortest slice only switch. The turn's holder has an open gate; it gives the
 * turn up when it is idle, or when its time is over and an equal has work. The next one's gate
 * opens once the holder's work in flight has drained. Temporal mode: one band has windows.
 */
#include "decide.h"

#define TURN_NS		30000000ULL	/* at the mean weight */
#define TURN_NS_MIN	10000000ULL
#define TURN_NS_MAX	100000000ULL

void gsc_turn_forget(struct gsc_device *dev, const struct gsc_band *band, struct gsc_band *heir)
{
	if (dev->turn == band)
		dev->turn = heir;
	if (dev->drain == band)
		dev->drain = heir;
}

/*
 * Whose turn is next among equals goes by virtual time (WFQ), since the length of a turn has
 * limits: a band of a small weight has shorter turns only down to TURN_NS_MIN, and then fewer. What
 * a band did not use while it had no work is lost. Nobody else may launch while it drains, so that
 * counts as its turn, too.
 */
static u64 start_tag(const struct gsc_device *dev, const struct gsc_band *band)
{
	return max(band->vtime, dev->vtime);
}

static bool comes_before(const struct gsc_device *dev, const struct gsc_band *band,
			 const struct gsc_band *other)
{
	u64 a = start_tag(dev, band), b = start_tag(dev, other);

	if (band->priority != other->priority)
		return band->priority > other->priority;
	return a != b ? a < b : band->served < other->served;
}

/*
 * The most important band that has work besides @turn, which may be NULL; of equals the one whose
 * turn it is
 */
static struct gsc_band *next_holder(const struct gsc_device *dev, const struct gsc_band *turn)
{
	struct gsc_band *band, *best = NULL;

	list_for_each_entry(band, &dev->bands, node) {
		if (!gsc_contends(band) || band == turn)
			continue;
		if (!best || comes_before(dev, band, best))
			best = band;
	}
	return best;
}

static u64 turn_length(const struct gsc_device *dev, const struct gsc_band *holder)
{
	const struct gsc_band *band;
	u64 sum = 0, ns;
	u32 n = 0;

	list_for_each_entry(band, &dev->bands, node) {
		if (!gsc_contends(band) || band->priority != holder->priority)
			continue;
		sum += band->weight;
		n++;
	}
	/* a weight times n is less than 2^40: in microseconds nothing overflows */
	ns = div64_u64(TURN_NS / 1000 * holder->weight * n, max(sum, (u64)1)) * 1000;
	return min(max(ns, TURN_NS_MIN), TURN_NS_MAX);
}

/* What @length, at most GSC_DRAIN_NS, adds to the virtual time: centuries until that wraps */
static u64 charge_of(const struct gsc_band *band, u64 length)
{
	return div64_u64(length * GSC_BAND_WEIGHT_SCALE, max_t(u64, band->weight, 1));
}

/* Its turns are shorter than its weight: after another one it would still not be ahead of @rival */
static bool is_behind(const struct gsc_device *dev, const struct gsc_band *band,
		      const struct gsc_band *rival)
{
	return rival->priority == band->priority &&
	       band->vtime + charge_of(band, turn_length(dev, band)) <= start_tag(dev, rival);
}

static void begin_turn(struct gsc_device *dev, struct gsc_band *band)
{
	u64 length;

	dev->turn = band;
	if (!band)
		return;
	length = turn_length(dev, band);
	dev->turn_end = dev->now + length;
	dev->vtime = start_tag(dev, band);
	band->vtime = dev->vtime + charge_of(band, length);
	band->served = ++dev->turns;
}

/*
 * After @last, which gave its turn up for an equal and has drained since: that equal, if it still
 * wants it
 */
static struct gsc_band *holder_after(const struct gsc_device *dev, const struct gsc_band *last)
{
	struct gsc_band *next = next_holder(dev, dev->turn), *other;

	if (!last || next != last)
		return next;
	other = next_holder(dev, last);
	return other && other->priority == last->priority ? other : next;
}

static void begin_drain(struct gsc_device *dev)
{
	dev->drain = dev->turn;
	dev->drain_until = dev->now + GSC_DRAIN_NS;
}

static void end_drain(struct gsc_device *dev)
{
	u64 left = dev->drain_until - min(dev->drain_until, dev->now);

	dev->drain->vtime += charge_of(dev->drain, GSC_DRAIN_NS - left);
	dev->drain = NULL;
}

/* Returns the band that the turn would go to */
static struct gsc_band *update_holder(struct gsc_device *dev)
{
	const struct gsc_band *last = dev->turn ? NULL : dev->drain;
	struct gsc_band *rival;

	if (dev->drain && (!dev->drain->lower || dev->drain->activity != GSCHED_ACTIVITY_BUSY ||
			   dev->drain_until <= dev->now))
		end_drain(dev);
	if (dev->turn && !gsc_contends(dev->turn))
		dev->turn = NULL;
	rival = holder_after(dev, last);
	if (dev->turn && rival && dev->turn_end <= dev->now && is_behind(dev, dev->turn, rival)) {
		begin_turn(dev, dev->turn);
	} else if (dev->turn && rival &&
		   (rival->priority > dev->turn->priority ||
		    (rival->priority == dev->turn->priority && dev->turn_end <= dev->now))) {
		if (dev->turn->activity == GSCHED_ACTIVITY_BUSY)
			begin_drain(dev);
		dev->turn = NULL;
		if (!dev->drain)
			begin_turn(dev, rival);
	} else if (!dev->turn && !dev->drain) {
		begin_turn(dev, rival);
	}
	return next_holder(dev, dev->turn);
}

void gsc_turns_update(struct gsc_device *dev)
{
	struct gsc_band *band, *rival;
	u32 contenders = 0;

	dev->turn_timer = 0;
	list_for_each_entry(band, &dev->bands, node) {
		/*
		 * the first lower band reports already, so its work in flight is known when a
		 * second one attaches
		 */
		band->flags = band->lower ? GSCHED_ARB_REPORT : 0;
		contenders += gsc_contends(band);
	}
	if (dev->n_lower < 2) {
		dev->drain = NULL;
		if (dev->mode != GSCHED_MODE_TEMPORAL)
			dev->turn = NULL;
		return;
	}
	rival = update_holder(dev);
	if (dev->drain)
		dev->turn_timer = dev->drain_until;
	else if (dev->turn && rival && rival->priority == dev->turn->priority)
		dev->turn_timer = dev->turn_end;
	list_for_each_entry(band, &dev->bands, node) {
		if (!band->lower)
			continue;
		if (contenders && band != dev->turn)
			band->flags |= GSCHED_ARB_CLOSED;
		if (contenders > 1)
			band->flags |= GSCHED_ARB_PACED;
	}
}

/*
 * A band drains while its gate is closed: its tasks have empty windows, so the workers of rewritten
 * kernels exit at the end of their block-tasks. An opaque task that runs cannot be evicted and
 * keeps its capacity.
 */
void gsc_turn_sliced(struct gsc_device *dev)
{
	struct gsc_band *band;
	struct gsc_task *task;

	list_for_each_entry(band, &dev->busy, busy)
		if (gsc_band_closed(band))
			list_for_each_entry(task, &band->tasks, node)
				if (!gsc_is_fixed(task))
					task->want = 0;
}

/* Of the tasks that want something and have the band's highest rank: does one run? */
static bool runs(const struct gsc_band *band)
{
	const struct gsc_task *top = gsc_first_wanting(band), *task;

	list_for_each_entry(task, &band->tasks, node)
		if (task->want && task->rank == top->rank && task->state == GSC_TASK_RUNNING)
			return true;
	return false;
}

/*
 * Is @band to have the device rather than @other? Rank, then who has it, then who has something
 * running, then who came first
 */
static bool precedes(const struct gsc_device *dev, const struct gsc_band *band,
		     const struct gsc_band *other)
{
	const struct gsc_task *a = gsc_first_wanting(band), *b = gsc_first_wanting(other);
	bool a_runs, b_runs;

	if (a->rank != b->rank)
		return a->rank > b->rank;
	a_runs = runs(band);
	b_runs = runs(other);
	if (a_runs && b_runs && (band == dev->turn || other == dev->turn))
		return band == dev->turn;
	if (a_runs != b_runs)
		return a_runs;
	return (s32)(a->id - b->id) < 0;
}

static void leave_device(const struct gsc_band *band)
{
	struct gsc_task *task;

	list_for_each_entry(task, &band->tasks, node)
		task->want = 0;
}

/* The policy gives turns. False: it broke its contract and was replaced */
static bool turn_of_policy(struct gsc_device *dev)
{
	struct gsc_band *band, *owner = dev->policy->turn(dev, dev->now);
	bool found = false, wanted = false;

	list_for_each_entry(band, &dev->busy, busy) {
		if (!gsc_first_wanting(band))
			continue;
		wanted = true;
		found |= band == owner;
	}
	if (wanted ? !found : !!owner) {
		gsc_policy_replace(dev, "turn() gave the device to no band that wants it");
		return false;
	}
	dev->turn = owner;
	if (!owner)
		return true;
	list_for_each_entry(band, &dev->busy, busy)
		if (band != owner)
			leave_device(band);
	return true;
}

static bool is_equal(const struct gsc_band *band, const struct gsc_band *owner)
{
	const struct gsc_task *first = band == owner ? NULL : gsc_first_wanting(band);

	return first && first->rank == gsc_first_wanting(owner)->rank;
}

/* Of equal bands without anything granted, the task that came first */
static const struct gsc_task *fence_for(const struct gsc_device *dev, const struct gsc_band *owner)
{
	const struct gsc_task *fence = NULL, *task;
	const struct gsc_band *band;

	list_for_each_entry(band, &dev->busy, busy) {
		if (!is_equal(band, owner))
			continue;
		task = gsc_first_wanting(band);
		if (task->state == GSC_TASK_WAITING && (!fence || (s32)(task->id - fence->id) < 0))
			fence = task;
	}
	return fence;
}

/* Has it waited longer for a turn? One that came during the last turn precedes the turn's holder */
static bool waits_longer(const struct gsc_band *band, const struct gsc_band *other)
{
	const struct gsc_task *a = gsc_first_wanting(band), *b = gsc_first_wanting(other);

	if (band->served != other->served)
		return band->served < other->served;
	if (a->state != b->state)
		return a->state == GSC_TASK_WAITING;
	return (s32)(a->id - b->id) < 0;
}

/* The equal band that waits longest for a turn */
static struct gsc_band *equal_of(const struct gsc_device *dev, const struct gsc_band *owner)
{
	struct gsc_band *band, *best = NULL;

	list_for_each_entry(band, &dev->busy, busy)
		if (is_equal(band, owner) && (!best || waits_longer(band, best)))
			best = band;
	return best;
}

/* An equal waits until the task that runs has ended, or for GSC_PATIENCE_NS: it may never end */
static u64 patience_end(const struct gsc_device *dev, const struct gsc_band *equal)
{
	return max(dev->turn_end, gsc_first_wanting(equal)->submitted + GSC_PATIENCE_NS);
}

static void give_turn(struct gsc_device *dev, struct gsc_band *owner)
{
	if (owner == dev->turn)
		return;
	dev->turn = owner;
	dev->turn_end = dev->now + GSC_PATIENCE_NS;
	if (owner)
		owner->served = ++dev->turns;
}

/*
 * Temporal mode: one band at a time. A task that came after one of an equal band does not prolong
 * the turn, so a long queue of kernels starves nobody; nor does one that runs for long, or is never
 * completed.
 */
bool gsc_turn_temporal(struct gsc_device *dev)
{
	struct gsc_band *band, *owner = NULL, *equal;
	const struct gsc_task *fence;
	struct gsc_task *task;

	dev->turn_timer = 0;
	if (dev->policy->turn)
		return turn_of_policy(dev);
	list_for_each_entry(band, &dev->busy, busy)
		if (gsc_first_wanting(band) && (!owner || precedes(dev, band, owner)))
			owner = band;
	equal = owner ? equal_of(dev, owner) : NULL;
	if (equal && owner == dev->turn && patience_end(dev, equal) <= dev->now) {
		owner = equal;
		equal = equal_of(dev, owner);
	}
	give_turn(dev, owner);
	if (!owner)
		return true;
	if (equal)
		dev->turn_timer = patience_end(dev, equal);
	fence = fence_for(dev, owner);
	list_for_each_entry(band, &dev->busy, busy)
		if (band != owner)
			leave_device(band);
	if (!fence)
		return true;
	list_for_each_entry(task, &owner->tasks, node)
		if (task->state == GSC_TASK_WAITING && (s32)(task->id - fence->id) > 0)
			task->want = 0;
	return true;
}
