// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kernels that stand still beside workers, and who makes way for them.
 *
 * An SM serves its oldest warps first. Blocks of one kernel hold up younger ones of another only
 * until they end, but workers stay for as long as their kernel runs: where three or four of the
 * eight blocks of 256 threads that fit an SM are workers that compute without a pause, blocks that
 * came later get nothing at all until those have left (docs/measurements/2026-11-26-age-h100.md).
 * Windows keep the workers of clients on different SMs, but cannot keep the hardware from placing
 * blocks wherever there is room.
 *
 * So a kernel that takes longer than it should is helped: the workers of others leave. They come
 * back at once, and are then younger than it. But what is less important stays away until it has
 * ended, for LATE_NS_MAX at most. A kernel of unknown length, or that usually takes longer, is late
 * after LATE_NS_MAX, and then less important workers come back at once, too. Under a plan a kernel
 * with a latency target is late when that is at risk. One that was helped is late again when it
 * has taken twice as long: by standing still no kernel takes much more than twice its time.
 *
 * How long a kernel should take is what its client says, so equals make way only for a small part
 * of the time: nobody gains by a lie.
 */
#include "decide.h"

#define LATE_FACTOR	3		/* of its usual time, and */
#define LATE_NS		200000ULL	/* that: a kernel is late */
#define LATE_NS_MAX	20000000ULL	/* late at the latest; longest time that others stay away */
#define AWAY_NS		100000ULL	/* until workers whose block-tasks take no time have left */
#define EQUAL_PAUSE	32		/* then equals do not make way for so many times as long */

/* Equals under the policy; the list of tasks is in this order, too */
static u32 level_under(const struct gsc_policy *policy, const struct gsc_task *task)
{
	return policy->equals ? 0 : task->client->group->priority;
}

static u32 level_of(const struct gsc_task *task)
{
	return level_under(task->client->dev->policy, task);
}

static bool has_target(const struct gsc_task *task)
{
	return task->client->dev->policy == &gsc_policy_plan && task->client->group->latency_us;
}

static u64 began(const struct gsc_task *task)
{
	return max(task->granted, task->client->last_end);
}

/* With all that it can use; 0 unknown, or longer than LATE_NS_MAX */
static u64 usual_ns(const struct gsc_task *task)
{
	u64 usual = max(gsc_size_ns(task->client), task->predicted_ns);

	return usual > LATE_NS_MAX ? 0 : usual;
}

/*
 * When it has had @needed ns of all that it can use, if its window stays. A kernel with a part of
 * the device takes longer, and is not late for that
 */
static u64 had_at(const struct gsc_task *task, u64 needed, u64 now)
{
	u64 had;

	gsc_client_charge(task->client);
	had = div_u64(task->usage, gsc_packed(task, task->demand));
	if (had >= needed || !task->window)
		return now;
	return now + div_u64((needed - had) * max(task->demand, task->window), task->window);
}

/* What the target leaves for a kernel that takes @usual */
static u64 spare_ns(const struct gsc_task *task, u64 usual)
{
	u64 target = (u64)task->client->group->latency_us * 1000;

	return max(target - min(usual, target), target / 4);
}

/* It waits for no other task, and ends */
static bool can_be_late(const struct gsc_task *task)
{
	return task->state == GSC_TASK_RUNNING && gsc_is_head(task) && !task->overdue &&
	       !task->chained;
}

/* How long it may take until it is late. @targeted: its latency target counts */
static u64 needed_ns(const struct gsc_task *task, bool targeted)
{
	u64 usual = usual_ns(task), needed = LATE_FACTOR * usual + LATE_NS;

	if (!usual)
		return LATE_NS_MAX;
	return targeted ? min(needed, usual + spare_ns(task, usual) / 2) : needed;
}

/* When it is late for the first time, or again */
static u64 late_at(const struct gsc_task *task, enum gsc_help_kind kind, u64 now)
{
	u64 needed = needed_ns(task, kind == GSC_HELP_TARGET), late = began(task) + needed;

	if (task->late_again)
		late = task->late_again;
	else if (kind != GSC_HELP_RANK && usual_ns(task))
		late = had_at(task, needed, now);
	return kind == GSC_HELP_EQUAL ? max(late, task->client->band->equals_again) : late;
}

static bool is_promised(const struct gsc_group *group)
{
	if (!group->dev->n_limits)
		return false;
	while (group && !group->min)
		group = group->parent;
	return group;
}

static bool makes_way(const struct gsc_task *other, const struct gsc_task *task,
		      enum gsc_help_kind kind)
{
	if (other->client == task->client || is_promised(other->client->group))
		return false;
	if (kind == GSC_HELP_RANK || level_of(other) != level_of(task))
		return level_of(other) < level_of(task);
	if (kind == GSC_HELP_TARGET)
		return !has_target(other) && !gsc_is_fixed(other);
	return gsc_is_block(other) && (has_target(task) || !has_target(other));
}

/* A kernel whose workers can leave */
static bool has_workers(const struct gsc_task *task)
{
	return gsc_is_block(task) && task->window && !is_promised(task->client->group);
}

/* Clients with workers */
struct workers {
	const struct gsc_client *first;
	bool several;
};

static void note_worker(struct workers *workers, const struct gsc_client *client)
{
	workers->several |= workers->first && workers->first != client;
	workers->first = client;
}

static bool has_others(const struct workers *workers, const struct gsc_client *client)
{
	return workers->several || (workers->first && workers->first != client);
}

/* Who could help a task: the lowest level with workers, those of its own level */
struct helpers {
	const struct gsc_policy *policy;
	enum gsc_help_kind first_kind, last_kind;	/* that the policy knows */
	bool targets;			/* latency targets count */
	u32 lowest, level;
	const struct gsc_task *first;	/* of its own level */
	bool counted;			/* those of its own level were looked at */
	struct workers targeted, untargeted;
};

/* False: nobody has workers */
static bool find_lowest(const struct gsc_band *band, struct helpers *helpers)
{
	const struct gsc_task *task;

	list_for_each_entry_reverse(task, &band->tasks, node)
		if (has_workers(task)) {
			helpers->lowest = level_under(helpers->policy, task);
			return true;
		}
	helpers->lowest = U32_MAX;
	return false;
}

static void find_equals(const struct gsc_band *band, struct helpers *helpers)
{
	const struct gsc_task *task = helpers->first;
	struct workers *to;

	helpers->counted = true;
	helpers->targeted = (struct workers){ NULL, false };
	helpers->untargeted = (struct workers){ NULL, false };
	/* more than several would change nothing */
	while (!helpers->untargeted.several && !list_entry_is_head(task, &band->tasks, node) &&
	       level_under(helpers->policy, task) == helpers->level) {
		to = helpers->targets && has_target(task) ? &helpers->targeted :
							    &helpers->untargeted;
		if (has_workers(task))
			note_worker(to, task->client);
		task = list_next_entry(task, node);
	}
}

static bool can_help(const struct gsc_band *band, const struct gsc_task *task,
		     struct helpers *helpers, enum gsc_help_kind kind)
{
	if (kind == GSC_HELP_RANK)
		return helpers->level > helpers->lowest;
	if (kind == GSC_HELP_TARGET && !has_target(task))
		return false;
	if (!helpers->counted)
		find_equals(band, helpers);
	if (kind == GSC_HELP_TARGET)
		return helpers->untargeted.first;
	return has_others(&helpers->untargeted, task->client) ||
	       (helpers->targets && has_target(task) &&
		has_others(&helpers->targeted, task->client));
}

static void come_again(struct gsc_task *task, u64 now)
{
	task->late_again = now + max(now - min(began(task), now), LATE_NS);
	task->late_from = task->late_again;
}

/* band->again for @task, which others can help and which is late at @late */
static void note_late(struct gsc_band *band, struct gsc_task *task, u64 late, u64 now)
{
	/* workers that were granted only now are younger than its blocks */
	if (late <= now) {
		come_again(task, now);
		late = task->late_again;
	}
	band->again = gsc_earlier(band->again, late);
}

static void init_helpers(struct helpers *helpers, const struct gsc_policy *policy)
{
	helpers->policy = policy;
	helpers->targets = policy == &gsc_policy_plan;
	helpers->first_kind = helpers->targets ? GSC_HELP_TARGET :
			      policy->equals ? GSC_HELP_EQUAL : GSC_HELP_RANK;
	/* under srt a longer one waits for shorter ones */
	helpers->last_kind = policy == &gsc_policy_srt ? GSC_HELP_RANK : GSC_HELP_EQUAL;
	helpers->first = NULL;
}

/*
 * The first one in the order of ranks that is late and can be helped, and how; or, with @how NULL,
 * notes when there will be one
 */
static struct gsc_task *find_helpable(struct gsc_band *band, enum gsc_help_kind *how, u64 now)
{
	struct helpers helpers;
	bool helped;
	const struct gsc_help *help = &band->help;
	struct gsc_task *task;
	u32 level, kind;
	u64 late;

	init_helpers(&helpers, gsc_band_device(band)->policy);
	if (!find_lowest(band, &helpers) && !help->until)
		return NULL;
	list_for_each_entry(task, &band->tasks, node) {
		level = level_under(helpers.policy, task);
		if (!helpers.first || level != helpers.level) {
			helpers.level = level;
			helpers.first = task;
			helpers.counted = false;
		}
		if (!can_be_late(task))
			continue;
		helped = help->until && help->id == task->id;
		kind = helped ? GSC_HELP_TARGET : helpers.first_kind;
		for (; kind <= helpers.last_kind; kind++) {
			/* who makes way already has no workers */
			if (!(helped && help->kind == kind) &&
			    !can_help(band, task, &helpers, kind))
				continue;
			late = late_at(task, kind, now);
			if (!how) {
				note_late(band, task, late, now);
			} else if (now >= late) {
				*how = kind;
				return task;
			}
		}
	}
	return NULL;
}

/* Until the workers have left: some block-tasks have just begun */
static u64 away_ns(const struct gsc_band *band, const struct gsc_task *task,
		   enum gsc_help_kind kind)
{
	const struct gsc_task *other;
	u64 longest = 0;

	list_for_each_entry(other, &band->tasks, node)
		if (makes_way(other, task, kind))
			longest = max(longest, min(other->block_ns, LATE_NS_MAX));
	return min(AWAY_NS + 2 * longest, LATE_NS_MAX);
}

static struct gsc_task *find_task(struct gsc_band *band, u32 id)
{
	struct gsc_task *task;

	list_for_each_entry(task, &band->tasks, node)
		if (task->id == id)
			return task;
	return NULL;
}

static void end_help(struct gsc_band *band, u64 now)
{
	struct gsc_help *help = &band->help;
	struct gsc_task *task;

	if (now >= help->until) {
		task = find_task(band, help->id);
		if (task)
			come_again(task, now);
	}
	if (help->kind == GSC_HELP_EQUAL)
		band->equals_again = now + EQUAL_PAUSE * (min(now, help->until) - help->since);
	help->until = 0;
}

static void begin_help(struct gsc_band *band, struct gsc_task *task, enum gsc_help_kind kind,
		       u64 now)
{
	u64 length = LATE_NS_MAX;

	if (kind != GSC_HELP_RANK || !usual_ns(task))
		length = away_ns(band, task, kind);
	band->help.id = task->id;
	band->help.kind = kind;
	band->help.since = now;
	band->help.until = now + length;
	/* the time says nothing about the size that it had */
	task->room = 0;
	if (!task->late)
		gsc_event(task->client->group, GSC_EVENT_LATE);
	task->late = true;
}

/*
 * A kernel is late, and others are helpers, only while they run. Those that are new wait until one
 * that is helped has ended
 */
static bool may_help(const struct gsc_band *band)
{
	return band->n_active > 1 && (band->help.until || band->n_running > 1) &&
	       gsc_band_device(band)->mode != GSCHED_MODE_TEMPORAL;
}

/* It is not late before that, whoever could help */
static u64 late_from(struct gsc_task *task)
{
	if (!task->late_from)
		task->late_from =
			task->granted + needed_ns(task, task->client->group->latency_us);
	return task->late_from;
}

/* U64_MAX: nobody is */
static u64 first_late(struct gsc_band *band)
{
	u32 left = band->n_tasks, rank = 0;
	struct gsc_task *task;
	u64 late = U64_MAX;

	list_for_each_entry(task, &band->tasks, node) {
		/* the last client, which has neither an equal nor anybody below it */
		if (left == task->client->n_tasks && task->rank < rank)
			break;
		if (can_be_late(task))
			late = min(late, late_from(task));
		rank = task->rank;
		left--;
	}
	return late;
}

void gsc_late_watch(struct gsc_band *band, u64 now)
{
	u64 late = band->help.until ? band->help.until : U64_MAX;

	if (!band->help.until && may_help(band))
		late = first_late(band);
	if (late == U64_MAX)
		return;
	/* whom others can help, and exactly when, is looked at when that comes */
	if (late > now)
		band->again = gsc_earlier(band->again, late);
	else
		find_helpable(band, NULL, now);
}

static noinline void make_way(struct gsc_band *band, u64 now)
{
	struct gsc_help *help = &band->help;
	struct gsc_task *task = NULL, *other;
	enum gsc_help_kind kind = GSC_HELP_EQUAL;

	if (help->until && now >= help->until)
		end_help(band, now);
	if (may_help(band))
		task = find_helpable(band, &kind, now);
	if (help->until && (!task || task->id != help->id || kind != help->kind))
		end_help(band, now);
	if (!task)
		return;
	if (!help->until)
		begin_help(band, task, kind, now);
	band->late = task;
	list_for_each_entry(other, &band->tasks, node) {
		if (!makes_way(other, task, kind))
			continue;
		other->want = 0;
		other->need = 0;
	}
}

/* Nobody is late before the time that gsc_late_watch() gave at the last decision */
void gsc_make_way(struct gsc_band *band, u64 now)
{
	bool due = band->again && band->again <= now;

	band->again = 0;
	band->late = NULL;
	if (band->help.until || (due && may_help(band)))
		make_way(band, now);
}
