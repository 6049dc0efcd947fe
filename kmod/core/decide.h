/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of the core share with each other and with nobody else. */
#ifndef GSCHED_CORE_DECIDE_H
#define GSCHED_CORE_DECIDE_H

#include "core.h"

/* device.c */
void gsc_advance(struct gsc_device *dev, u64 now);
void gsc_mark(struct gsc_device *dev, u64 now);		/* an event: the next commit decides */
void gsc_hold_drop(struct gsc_client *client);

/* group.c: the groups of a client and of its user in client->home */
void gsc_client_seat(struct gsc_client *client, struct gsc_group *home);
/* it is off dev->clients, or goes elsewhere */
void gsc_client_unseat(struct gsc_client *client);

/*
 * memory.c. What @client holds counts in its group and those above: from when it comes into a group
 * until it goes.
 */
void gsc_memory_charge(struct gsc_client *client);
void gsc_memory_uncharge(struct gsc_client *client);
/* @asks: -EDQUOT, and nothing changes, if it would be more than it is, and than a limit allows */
int gsc_memory_set(struct gsc_client *client, u64 bytes, bool asks);
bool gsc_memory_limited(const struct gsc_group *group);
/* Least limit from @group up, and what is left below all of them; both U64_MAX without any */
void gsc_memory_room(const struct gsc_group *group, u64 *max, u64 *room);
/* attributes that they take from it changed */
void gsc_clients_follow(struct gsc_group *home);
void gsc_client_follow(struct gsc_client *client);	/* its own did */
void gsc_group_set_min(struct gsc_group *group, u32 units);
void gsc_group_set_max(struct gsc_group *group, u32 units);

/* task.c */
/* Adds @ns times @units; of a sum of times the units are GSCHED_CAPSM */
void gsc_sum_add(struct gsc_sum *sum, u64 ns, u32 units);
void gsc_sum_add_units(struct gsc_sum *sum, u64 unit_ns);
void gsc_client_charge_ns(struct gsc_client *client, u64 ns);
void gsc_task_end(struct gsc_task *task);
void gsc_hold_start(struct gsc_client *client);	/* after client->ended, if that is worth it */
/*
 * In all bands those that give way come first, then those that gain by it, then what each counts
 * for
 */
void gsc_tasks_evict(struct gsc_band *band);
void gsc_tasks_grant(struct gsc_band *band);
void gsc_tasks_measure(struct gsc_band *band);	/* task->room of new ones */

/* page.c: what a client's pages say; nothing where it has none */
void gsc_page_attach(struct gsc_client *client);
/* a GPU that reads on uses @window */
void gsc_page_detach(struct gsc_client *client, u32 window);
void gsc_page_window(struct gsc_task *task);		/* its window changed */
void gsc_page_empty(struct gsc_client *client, u32 slot);	/* its task ended */
void gsc_page_waits(struct gsc_task *task);		/* it was not granted */
/* the lease, or what the header says beside it */
void gsc_page_lease(struct gsc_client *client);
/* what a leased launch may use may have changed */
void gsc_page_quota(struct gsc_client *client);
void gsc_page_band(struct gsc_client *client);		/* client->arb changed */
/* before its slot is used for @seq */
void gsc_page_submit(struct gsc_task *task, u32 seq, u64 now);
void gsc_page_reap(struct gsc_device *dev);		/* adopted tasks that are over */
/* all that nobody completes although they are over */
void gsc_page_reap_old(struct gsc_device *dev);
/* adopts what clients launched under leases that ended */
void gsc_page_scan(struct gsc_device *dev);
void gsc_page_refresh(struct gsc_device *dev);		/* the windows of empty slots */
u64 gsc_page_poll(struct gsc_device *dev);		/* when to look again, 0 never */
/*
 * Workers of @task that have not left, as far as its page knows, and that its window has excluded.
 * False: its page does not say that it has begun
 */
bool gsc_page_workers(const struct gsc_task *task, u32 *present, u32 *left);
bool gsc_page_is_over(const struct gsc_task *task);	/* its page says so */
/* Its page says that it has seen its window, and that @n left since @before had */
bool gsc_page_has_left(const struct gsc_task *task, u32 before, u32 n);
/*
 * A task that its client launched under a lease: it runs already, since @since, as the client says;
 * before it attached or after @now counts as @now. As gsc_submit()
 */
int gsc_adopt(struct gsc_client *client, const struct gsched_submit *req, u64 since, u64 now);

/* delay.c: how long it takes until evicted workers are gone */
static inline bool gsc_delay_is_measured(const struct gsc_task *task)
{
	return !list_empty(&task->leaving);
}

void gsc_delay_begin(struct gsc_task *task, u32 from);	/* its window shrank; it has a page */
/* Of tasks that are measured: its window is about to grow; it ends */
void gsc_delay_grow(struct gsc_task *task);
void gsc_delay_end(struct gsc_task *task, bool ran);
void gsc_delay_look(struct gsc_device *dev);		/* at the pages of all that are measured */
u64 gsc_delay_poll(const struct gsc_device *dev);	/* when to look again, 0 never */
int gsc_delay_show(const struct gsc_delays *delays, char *buf, size_t size);	/* NULL: none */

/* demand.c: what was demanded and promised */
/* Within these it does not overflow: NS_MAX multiplied by the largest device, and the sum */
#define GSC_DEMAND_NS_MAX	BIT_ULL(40)
#define GSC_DEMANDED_MAX	BIT_ULL(62)
void gsc_demand_charge_long(struct gsc_client *client, u64 ns);
void gsc_demand_shrink(struct gsc_client *client);	/* its largest task left the list */
void gsc_used_charge_long(struct gsc_client *client, u64 ns, u32 units);
void gsc_client_flush(struct gsc_client *client);	/* before its groups change, or are read */
/* A client's first task begins; its last one ended */
void gsc_promise_begin(struct gsc_client *client);
void gsc_promise_end(struct gsc_client *client);
void gsc_promise_update(struct gsc_group *group);	/* its quotas changed */
void gsc_promise_settle(struct gsc_device *dev);	/* before statistics are read */

/* size.c: how many SMs a client's recurring kernels need to be fast enough */
/* longest hold without a latency target; what comes less often than that does not recur */
#define GSC_HOLD_NS_MAX		20000000ULL
/*
 * A task ended that can fill @whole SMs like those of @blocks blocks, which are the largest lately
 */
void gsc_size_learn(struct gsc_client *client, const struct gsc_task *ended, u32 whole, u64 blocks);
#define GSC_SIZE_LEARNED	512	/* requests until the size counts as known */
/* ... and no other one is being tried */
bool gsc_size_is_known(const struct gsc_client *client);
/* for its next request; 0: all it wants */
u32 gsc_size_units(const struct gsc_client *client);
u64 gsc_size_ns(const struct gsc_client *client);		/* time on that many; 0 unknown */
u64 gsc_size_best_ns(const struct gsc_client *client);

/* protect.c: hold, or block-tasks that are left in their middle */
/* block_ns of a task in the resumable form is at most this */
#define GSC_LEAVE_NS		20000ULL
void gsc_protect_submitted(struct gsc_task *task);
void gsc_protect_measure(const struct gsc_task *ended);
/* A kernel ended that ran for @ran; @units: what would be held for the next one */
void gsc_protect(struct gsc_client *client, u64 ran, u32 units);
/*
 * Of @units that @client's kernels need, those that it is given from long block-tasks below: up to
 * a quarter less where that saves those a round, and no latency target was asked for
 */
u32 gsc_protect_units(const struct gsc_client *client, u32 units);
void gsc_protect_set(struct gsc_client *client, bool resumes);
void gsc_protect_expire(struct gsc_device *dev);
u32 gsc_top_resuming(const struct gsc_band *band);	/* as in struct gsc_ranks */
/* Somebody more important in its band is better served by the resumable form than by a hold */
static inline bool gsc_is_resumable(const struct gsc_client *client, u32 top_resuming)
{
	return !client->dev->policy->equals && client->group->priority < top_resuming;
}

/* standby.c: capsm.reserve */
#define GSC_STANDBY_NS_MAX	1000000000ULL	/* longest hold of a client with a latency target */
/* until workers in the middle of block-tasks are gone, measured */
#define GSC_MIDWAY_NS	80000ULL
void gsc_standby_set(struct gsc_group *group, u32 units);
bool gsc_standby_is_auto(const struct gsc_client *client);	/* no group above it has a number */
/* A number of capsm.reserve, 0 if it has none */
static inline u32 gsc_standby_units(const struct gsc_group *group)
{
	return group->standby == GSC_STANDBY_AUTO ? 0 : group->standby;
}

/* U64_MAX unknown, or it cannot be evicted */
u64 gsc_eviction_ns(const struct gsc_task *task);
/* what is evicted in that time is no obstacle */
u64 gsc_standby_limit_ns(const struct gsc_group *group);
/* SMs, after order() */
u32 gsc_standby_claim(const struct gsc_band *band, const struct gsc_group *group);
bool gsc_standby_may_borrow(const struct gsc_band *band, const struct gsc_client *client);

/* pressure.c */
/* Its tasks or its activity may have changed: @waits some of it waits for capacity */
void gsc_pressure_set(struct gsc_client *client, bool waits, bool runs);
static inline void gsc_pressure_update(struct gsc_client *client)
{
	bool waits = client->activity == GSCHED_ACTIVITY_WAITING;
	bool runs = client->activity == GSCHED_ACTIVITY_BUSY || client->current_units;

	/* tasks are granted in the order of their arrival */
	if (client->n_tasks)
		waits |= !client->current_units ||
			 list_last_entry(&client->tasks, struct gsc_task, peer)->state ==
				 GSC_TASK_WAITING;
	if (waits != client->waits || runs != client->runs)
		gsc_pressure_set(client, waits, runs);
}

void gsc_pressure_leave(struct gsc_client *client);	/* before it leaves its group */
int gsc_pressure_show(const struct gsc_group *group, char *buf, size_t size);
void gsc_event(struct gsc_group *group, enum gsc_event event);
int gsc_events_show(const struct gsc_group *group, char *buf, size_t size);

/* plan.c */
void gsc_plan_expire(struct gsc_device *dev);		/* while one is in force */
static inline bool gsc_has_plan(const struct gsc_device *dev)
{
	return dev->policy == &gsc_policy_plan;
}

/* Some group or client may have less than the device, or more than others leave it */
static inline bool gsc_is_limited(const struct gsc_device *dev)
{
	return dev->n_limits || gsc_has_plan(dev);
}

static inline bool gsc_is_planned(const struct gsc_group *group)
{
	const struct gsc_device *dev = group->dev;

	return gsc_has_plan(dev) && group->data.plan.round == dev->data.plan.round;
}

static inline u32 gsc_group_max(const struct gsc_group *group)
{
	return gsc_is_planned(group) ? min(group->max, group->data.plan.max) : group->max;
}

static inline u32 gsc_group_min(const struct gsc_group *group)
{
	return gsc_is_planned(group) ? max(group->min, group->data.plan.min) : group->min;
}

/*
 * What a client is told depends on which priorities the others of its band have. These numbers, of
 * one walk over the members, say enough for each of them: the client itself is never above or below
 * itself. As nobody is less important than priority 0, 0 also stands for no such client.
 */
struct gsc_ranks {
	u32 least;			/* lowest gpu.priority of a client */
	u32 top_unordered;		/* highest of one without prioritised streams */
	u32 top_resuming;		/* highest of one with @resumes set */
};

/* Is everybody above @client served first by the hardware? Also true where nobody is above it */
static inline bool gsc_is_below_ordered(const struct gsc_client *client,
					const struct gsc_ranks *ranks)
{
	return client->group->priority >= ranks->top_unordered;
}

/* Any group may claim a capsm.reserve */
static inline bool gsc_standby_is_used(const struct gsc_device *dev)
{
	return (dev->n_standby || gsc_has_plan(dev)) && dev->mode != GSCHED_MODE_TEMPORAL;
}

/* files.c. NULL: no number up to @most; else what follows. 0 or -EINVAL */
const char *gsc_parse_number(const char *text, u64 most, u64 *value);
int gsc_parse_units(const char *text, u32 sms, u32 least, u32 *to);

/* pass.c: launches without a window that nobody is asked about */
void gsc_pass_yields(struct gsc_client *client);	/* GSCHED_ARB_YIELDS was set */
void gsc_pass_window(struct gsc_client *client);	/* a task with a window was submitted */
void gsc_pass_join(struct gsc_client *client);
void gsc_pass_leave(struct gsc_client *client);
void gsc_pass_expire(struct gsc_device *dev);		/* at dev->pass_timer */
bool gsc_may_pass(const struct gsc_client *client, const struct gsc_ranks *ranks);

/*
 * late.c, at the end of an order(), with the tasks sorted: takes their wishes from those that make
 * way for a kernel that is late. Sets band->late, clears band->again
 */
void gsc_make_way(struct gsc_band *band, u64 now);
/* As granted(): sets band->again for the next one that will be late */
void gsc_late_watch(struct gsc_band *band, u64 now);

/* watch.c: opaque tasks that are not completed while others wait for what they keep */
void gsc_watch(struct gsc_band *band);

/*
 * From the store of a window until workers act on it, as measured on an H200. What is measured of a
 * client takes its place, up to a bound: a client can make that anything.
 */
#define GSC_EVICT_NS		20000ULL
#define GSC_EVICT_NS_MAX	200000ULL

/* Until the workers of @task are gone, beside a block-task */
static inline u64 gsc_evict_ns(const struct gsc_task *task)
{
	u64 measured = task->client->evict_ns[task->midway];

	return measured ? measured : task->midway ? GSC_MIDWAY_NS : GSC_EVICT_NS;
}

/* policy.c: band->tasks by falling rank, first come first among equals */
void gsc_sort_tasks(struct gsc_band *band);
static inline void gsc_sort(struct gsc_band *band)
{
	if (band->n_tasks > 1)
		gsc_sort_tasks(band);
}

/* For an order(): it wants all that it could use */
static inline void gsc_ask(struct gsc_task *task, u32 rank)
{
	task->rank = rank;
	task->want = task->demand;
	task->need = task->want;
}

/*
 * hpf.c, for an order() with the tasks sorted by falling priority: a client whose kernels are
 * nearly as fast on a part of the device takes no more than that from less important block-tasks. A
 * kernel that runs keeps what it has. Among equals nothing changes, and above opaque tasks: what
 * those have cannot be taken back.
 */
void gsc_limit_needs(struct gsc_band *band);

/*
 * Of the slices of @n bands: the shortest that keeps the overhead of switching below max_overhead
 * per mille
 */
u64 gsc_fair_epoch_us(const struct gsc_device *dev, u32 n);
static inline void gsc_policy_moved(struct gsc_client *client)
{
	if (client->dev->policy->moved)
		client->dev->policy->moved(client);
}

void gsc_policy_start(struct gsc_device *dev, const struct gsc_policy *policy);
/*
 * The policy broke its contract, as @what says: hpf takes its place, and the commit decides once
 * more
 */
void gsc_policy_replace(struct gsc_device *dev, const char *what);
/* Is what order() left of @band as its contract says? If not the policy is replaced: false */
bool gsc_policy_check(const struct gsc_band *band);

/*
 * alloc.c: task->want of every task to client->alloc and task->alloc, client->hold_units to
 * client->hold_got
 */
void gsc_allocate(struct gsc_band *band);
/*
 * After order(), where somebody has a limit: a task that no worker of fits into a max above it
 * wants nothing, nor do those behind it. It gets nothing, so it keeps nobody else from anything
 */
void gsc_exclude(struct gsc_band *band);

/* After that: of the tasks that want something, one of the highest rank; NULL there is none */
static inline struct gsc_task *gsc_first_wanting(const struct gsc_band *band)
{
	struct gsc_task *task;

	list_for_each_entry(task, &band->tasks, node)
		if (task->want)
			return task;
	return NULL;
}

#define GSC_ERRNO_MAX		4095

/* band.c: membership, attributes and mode, what clients are told */
bool gsc_same_band(const struct gsc_client *a, const struct gsc_client *b);
void gsc_band_join(struct gsc_client *client);
void gsc_band_leave(struct gsc_client *client);
void gsc_client_activate(struct gsc_client *client);	/* the next decisions are about it, too */
void gsc_client_deactivate(struct gsc_client *client);
void gsc_bands_rebuild(struct gsc_device *dev);		/* gsc_same_band() changed */
void gsc_bands_update(struct gsc_device *dev);
void gsc_bands_publish(struct gsc_device *dev);
/* the GPU may wait for them when it leaves it */
bool gsc_band_ends_blocks(const struct gsc_band *band);

/* slice.c: band->slice_us of every band */
#define GSC_SLICE_TINY_US	1		/* leaves the GPU as soon as anyone else has work */
#define GSC_SLICE_WHOLE_US	1000000		/* runs until it is idle */
/* thread blocks up to this are waited for at a switch */
#define GSC_BLOCK_END_US	64
#define GSC_SLICE_LEAST_US	500		/* shortest slice in which a band makes progress */
void gsc_slices_update(struct gsc_device *dev);

/*
 * turn.c: dev->turn and band->flags. Both modes set task->want to 0 in bands that may not run now.
 */
/* longest time that the next band waits for work in flight */
#define GSC_DRAIN_NS		200000000ULL
#define GSC_IN_FLIGHT_US	2000		/* work on the GPU of a band whose turn may end */
void gsc_turns_update(struct gsc_device *dev);
void gsc_turn_sliced(struct gsc_device *dev);
bool gsc_turn_temporal(struct gsc_device *dev);		/* false: the policy was replaced */
/* @heir takes its place; NULL nobody */
void gsc_turn_forget(struct gsc_device *dev, const struct gsc_band *band, struct gsc_band *heir);

/* Charge what was used since the last change */
static inline void gsc_client_charge(struct gsc_client *client)
{
	u64 now = client->dev->now, ns = now - client->charged;

	if (!ns)
		return;
	client->charged = now;
	/* 0 without tasks */
	if (ns < GSC_DEMAND_NS_MAX && client->demanded < GSC_DEMANDED_MAX)
		client->demanded += ns * client->demand;
	else
		gsc_demand_charge_long(client, ns);
	if (client->current_units)
		gsc_client_charge_ns(client, ns);
}

static inline bool gsc_is_server(const struct gsc_client *client)
{
	return client->flags & GSCHED_ATTACH_SERVER;
}

static inline u64 gsc_hold_ns_max(const struct gsc_client *client)
{
	return client->group->latency_us ? GSC_STANDBY_NS_MAX : GSC_HOLD_NS_MAX;
}

static inline bool gsc_is_recurring(const struct gsc_client *client)
{
	return client->interval && client->interval <= gsc_hold_ns_max(client);
}

/* Kernels of one request, so far as gaps tell requests apart */
static inline u32 gsc_burst(const struct gsc_client *client)
{
	return max_t(u32, max(client->burst, client->burst_before), 1);
}

static inline bool gsc_contends(const struct gsc_band *band)
{
	return band->lower && band->activity != GSCHED_ACTIVITY_IDLE;
}

static inline struct gsc_device *gsc_band_device(const struct gsc_band *band)
{
	return list_first_entry(&band->members, struct gsc_client, member)->dev;
}

static inline bool gsc_is_block(const struct gsc_task *task)
{
	return task->tier == GSCHED_TIER_BLOCK;
}

/* What cannot be taken back before it ends */
static inline bool gsc_is_fixed(const struct gsc_task *task)
{
	return !gsc_is_block(task) && task->state == GSC_TASK_RUNNING;
}

/* After gsc_allocate() */
static inline u32 gsc_new_window(const struct gsc_task *task)
{
	return gsc_is_fixed(task) ? task->window : task->alloc;
}

/*
 * What runs first of a client's tasks runs for sure: those behind it may stand in the same stream.
 * So of its opaque tasks only that one counts for what it was granted.
 */
static inline bool gsc_is_head(const struct gsc_task *task)
{
	return task->peer.prev == &task->client->tasks;
}

/* It is another band's turn, or the band that had the last one still drains */
static inline bool gsc_band_closed(const struct gsc_band *band)
{
	return band->flags & GSCHED_ARB_CLOSED;
}

/* Capacity of one worker: with less than that it cannot run */
static inline u32 gsc_weight(const struct gsc_task *task)
{
	return GSCHED_CAPSM / task->blocks_per_sm;
}

/* Units that its blocks fill of so many */
static inline u32 gsc_packed(const struct gsc_task *task, u32 limit)
{
	return min(task->packed, limit);
}

/* Of two times, where 0 is never */
static inline u64 gsc_earlier(u64 a, u64 b)
{
	return a && (!b || a < b) ? a : b;
}

static inline u32 gsc_sms(u32 units)
{
	return (u32)(((u64)units + GSCHED_CAPSM - 1) / GSCHED_CAPSM);
}

#endif /* GSCHED_CORE_DECIDE_H */
