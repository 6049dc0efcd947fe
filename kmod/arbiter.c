// SPDX-License-Identifier: GPL-2.0-only
/*
 * Between the core and the rest: its actions (events, tracepoints, netlink, the timer), and the
 * lock around every event. The actions run inside a call of the core and may not call it again.
 * gsched_unlock() commits: the core decides once for all events under one lock.
 */
#include <linux/hrtimer.h>
#include <linux/pid.h>
#include <linux/poll.h>
#include <linux/spinlock.h>
#include <linux/sysfs.h>
#include <linux/timekeeping.h>

#include "internal.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

static const u32 event_of[] = {
	[GSC_GRANT] = GSCHED_EVENT_GRANT,
	[GSC_EVICT] = GSCHED_EVENT_EVICT,
	[GSC_GROW] = GSCHED_EVENT_GROW,
};

static const enum gsched_nl_event nl_event_of[] = {
	[GSC_GRANT] = GSCHED_NL_GRANT,
	[GSC_EVICT] = GSCHED_NL_EVICT,
	[GSC_GROW] = GSCHED_NL_GROW,
};

/*
 * One event per slot, with the newest window. The type is relative to what user space has read: an
 * unread grant stays a grant, an unread grow followed by an evict that still leaves more than the
 * known limit stays a grow, and the other way around.
 */
static void queue_event(struct gsched_client *client, const struct gsc_task *task, u32 type)
{
	struct gsched_slot *slot = gsched_slot_of(task);
	struct gsched_event *event = &slot->event;

	if (test_bit(task->slot, client->pending) && event->seq == task->seq) {
		if (event->type == GSCHED_EVENT_GRANT)
			type = GSCHED_EVENT_GRANT;
		else if (event->type == GSCHED_EVENT_GROW &&
			 task->window > slot->known_limit)
			type = GSCHED_EVENT_GROW;
		else if (event->type == GSCHED_EVENT_EVICT &&
			 task->window < slot->known_limit)
			type = GSCHED_EVENT_EVICT;
	}
	*event = (struct gsched_event) {
		.size = sizeof(*event),
		.type = type,
		.slot = task->slot,
		.seq = task->seq,
		.window = task->window,
		.time_ns = client->dev->core.now,
	};
	set_bit(task->slot, client->pending);
}

static void set_window(struct gsc_task *task, enum gsc_change why)
{
	struct gsched_client *client = gsched_client_of(task->client);

	lockdep_assert_held(&client->dev->lock);
	if (why == GSC_GRANT)
		trace_gsched_grant(client, task);
	else if (why == GSC_EVICT)
		trace_gsched_evict(client, task);
	else
		trace_gsched_grow(client, task);
	gsched_nl_task(task, nl_event_of[why]);
	if (!test_bit(task->slot, client->in_submit))
		queue_event(client, task, event_of[why]);
	wake_up_interruptible_poll(&client->wait, EPOLLIN | EPOLLRDNORM);
}

static void set_lease(struct gsc_client *core, u32 old)
{
	struct gsched_client *client = gsched_client_of(core);

	lockdep_assert_held(&client->dev->lock);
	trace_gsched_lease(client, old, core->lease);
}

static void arm_timer(struct gsc_device *core, u64 when)
{
	gsched_device_of(core)->core_when = when;
}

static void done(struct gsc_task *task)
{
	struct gsched_client *client = gsched_client_of(task->client);

	lockdep_assert_held(&client->dev->lock);
	trace_gsched_done(client, task);
	gsched_nl_task(task, GSCHED_NL_DONE);
	clear_bit(task->slot, client->pending);
}

static void set_band(struct gsc_client *core, const struct gsc_arb *old)
{
	struct gsched_client *client = gsched_client_of(core);

	lockdep_assert_held(&client->dev->lock);
	if (old->slice_us != core->arb.slice_us || old->flags != core->arb.flags) {
		trace_gsched_band(client);
		/* CLIENT_ADD has the initial values. */
		if (client->attached)
			gsched_nl_client(client, GSCHED_NL_BAND);
	}
	/* During attach the caller has not mapped the page yet and reads it then. */
	if (!client->attached)
		return;
	client->band_ns = client->dev->core.now;
	WRITE_ONCE(client->band_pending, true);
	wake_up_interruptible_poll(&client->wait, EPOLLIN | EPOLLRDNORM);
}

static void policy_changed(struct gsc_device *core)
{
	struct gsched_device *dev = gsched_device_of(core);
	char why[160];

	gsc_policy_why(core, why, sizeof(why));
	if (core->faulty)
		pr_warn_ratelimited("%s: policy %s\n", dev_name(&dev->dev), why);
	trace_gsched_policy(dev, why);
	gsched_nl_device(dev, GSCHED_NL_POLICY);
}

static bool is_gone(const struct gsc_client *core)
{
	const struct gsched_client *client = container_of(core, struct gsched_client, core);

	return !pid_has_task(client->pid, PIDTYPE_TGID);
}

/*
 * A submit brings memory that is charged to its process. What is adopted is charged to nobody: the
 * process that runs here is not the one that launched it.
 */
static struct gsc_task *new_task(struct gsc_client *core, u32 nr)
{
	struct gsched_client *client = gsched_client_of(core);
	struct gsched_slot *slot = client->spare;

	client->spare = NULL;
	if (!slot)
		slot = gsched_slot_alloc(GFP_NOWAIT | __GFP_NOWARN);
	return slot ? &slot->core : NULL;
}

const struct gsc_ops gsched_core_ops = {
	.new_task = new_task,
	.set_window = set_window,
	.set_lease = set_lease,
	.arm_timer = arm_timer,
	.done = done,
	.set_band = set_band,
	.policy_changed = policy_changed,
	.is_gone = is_gone,
};

static void program_timer(struct gsched_device *dev)
{
	if (dev->core_when == dev->armed)
		return;
	dev->armed = dev->core_when;
	if (dev->armed)
		hrtimer_start(&dev->timer, ns_to_ktime(dev->armed), HRTIMER_MODE_ABS_SOFT);
	else
		hrtimer_try_to_cancel(&dev->timer);
}

/* Returns the time of the event. The lock is also taken by the timer, in softirq. */
u64 gsched_lock(struct gsched_device *dev)
	__acquires(&dev->lock)
{
	spin_lock_bh(&dev->lock);
	return ktime_get_ns();
}

void gsched_unlock(struct gsched_device *dev, u64 now)
	__releases(&dev->lock)
{
	gsc_commit(&dev->core, now);
	program_timer(dev);
	if (trace_gsched_decision_enabled() && dev->core.decisions != dev->decisions_traced)
		trace_gsched_decision(dev, ktime_get_ns() - now);
	dev->decisions_traced = dev->core.decisions;
	if (dev->events && dev->core.n_events != dev->events_notified) {
		dev->events_notified = dev->core.n_events;
		sysfs_notify_dirent(dev->events);
	}
	gsched_triggers_kick(dev);
	WARN_ON_ONCE(IS_ENABLED(CONFIG_PROVE_LOCKING) && gsc_check(&dev->core));
	spin_unlock_bh(&dev->lock);
}

enum hrtimer_restart gsched_device_expired(struct hrtimer *timer)
{
	struct gsched_device *dev = container_of(timer, struct gsched_device, timer);
	u64 now = gsched_lock(dev);

	dev->armed = 0;
	if (dev->core_when && dev->core_when <= now) {
		dev->core_when = 0;
		gsc_tick(&dev->core, now);
	}
	gsched_unlock(dev, now);
	return HRTIMER_NORESTART;
}
