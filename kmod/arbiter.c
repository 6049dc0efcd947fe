// SPDX-License-Identifier: GPL-2.0-only
/*
 * Between the core and the rest: its actions (pages, events, tracepoints, the timer), and the lock
 * around every event. The actions run inside a call of the core and may not call it again; what has
 * to, waits for gsched_unlock(), which also commits: the core decides once for all events under one
 * lock.
 */
#include <linux/hrtimer.h>
#include <linux/poll.h>
#include <linux/spinlock.h>
#include <linux/sysfs.h>
#include <linux/timekeeping.h>

#include "internal.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

#define ADOPTED_POLL_NS		(1 * NSEC_PER_MSEC)
#define SCAN_ROUNDS		4

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

void gsched_store_window(struct gsched_client *client, u32 slot, u64 window)
{
	struct gsched_arb_slot *to = &client->arb->slot[slot];

	if (to->window == window)
		return;
	/* A single 64-bit store, ordered after the decision's inputs: the GPU reads it at any time. */
	smp_store_release(&to->window, window);
	/* A reader of the new generation sees the new window. */
	smp_store_release(&to->generation, to->generation + 1);
}

/*
 * One event per slot, with the newest window. The type is relative to what user space has read: an
 * unread grant stays a grant, and an unread grow followed by an evict that still leaves more than the
 * known limit stays a grow.
 */
static void queue_event(struct gsched_client *client, const struct gsc_task *task, u32 type)
{
	struct gsched_event *event = &client->event[task->slot];

	if (test_bit(task->slot, client->pending) && event->seq == task->seq) {
		if (event->type == GSCHED_EVENT_GRANT)
			type = GSCHED_EVENT_GRANT;
		else if (event->type == GSCHED_EVENT_GROW &&
			 GSCHED_WINDOW_LIMIT(task->window) > client->known_limit[task->slot])
			type = GSCHED_EVENT_GROW;
	}
	*event = (struct gsched_event) {
		.type = type,
		.slot = task->slot,
		.seq = task->seq,
		.window = task->window,
		.time_ns = client->dev->core.now,
	};
	__set_bit(task->slot, client->pending);
}

static void set_window(struct gsc_task *task, enum gsc_change why)
{
	struct gsched_client *client = gsched_client_of(task->client);

	lockdep_assert_held(&client->dev->lock);
	gsched_store_window(client, task->slot, task->window);
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

static void store_header(struct gsched_client *client)
{
	struct gsched_arb_header *header = &client->arb->header;
	const struct gsc_device *core = &client->dev->core;

	WRITE_ONCE(header->mode, core->mode);
	WRITE_ONCE(header->sms, core->sms);
	WRITE_ONCE(header->contended, client->core.contended);
	WRITE_ONCE(header->priority, client->core.group->priority);
	WRITE_ONCE(header->top_priority, core->top_priority);
}

/* Also called when only what the header says beside it changed */
static void set_lease(struct gsc_client *core, u32 lease)
{
	struct gsched_client *client = gsched_client_of(core);
	struct gsched_device *dev = client->dev;
	u32 old = client->arb->header.lease;

	lockdep_assert_held(&dev->lock);
	store_header(client);
	if (lease == old)
		return;
	trace_gsched_lease(client, old, lease);
	/* A reader of the new lease sees the windows stored before it. */
	smp_store_release(&client->arb->header.lease, lease);
	/*
	 * Full fence against the client's: either the scan below sees a leased launch, or its client
	 * sees the new lease and submits.
	 */
	smp_mb();
	if (old == GSCHED_LEASE_FREE && lease != GSCHED_LEASE_FREE)
		dev->scan = true;
	client->stale = true;
	dev->refresh = true;
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
	__clear_bit(task->slot, client->pending);
	gsched_lease_forget(client, task->slot);
	gsched_store_window(client, task->slot, gsched_lease_window(client));
}

static void set_band(struct gsc_client *core)
{
	struct gsched_client *client = gsched_client_of(core);
	struct gsched_arb_header *header = &client->arb->header;
	const struct gsc_arb *arb = &core->arb;

	lockdep_assert_held(&client->dev->lock);
	if (header->slice_us != arb->slice_us || header->flags != arb->flags) {
		trace_gsched_band(client);
		/* CLIENT_ADD has the initial values. */
		if (client->attached)
			gsched_nl_client(client, GSCHED_NL_BAND);
	}
	WRITE_ONCE(header->slice_us, arb->slice_us);
	WRITE_ONCE(header->bands, arb->bands);
	WRITE_ONCE(header->share, arb->share);
	WRITE_ONCE(header->in_flight_us, arb->in_flight_us);
	/* A reader of the new flags sees the words that belong to them. */
	smp_store_release(&header->flags, arb->flags);
	/* During attach the caller has not mapped the page yet and reads it then. */
	if (!client->bands)
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

const struct gsc_ops gsched_core_ops = {
	.set_window = set_window,
	.set_lease = set_lease,
	.arm_timer = arm_timer,
	.done = done,
	.set_band = set_band,
	.policy_changed = policy_changed,
};

static void refresh_slots(struct gsched_client *client)
{
	u64 leased = gsched_lease_window(client);
	u32 slot;

	client->stale = false;
	for (slot = 0; slot < GSCHED_SLOTS; slot++)
		if (client->core.task[slot].state == GSC_TASK_NONE)
			gsched_store_window(client, slot, leased);
}

static void refresh(struct gsched_device *dev)
{
	struct gsc_client *core;

	list_for_each_entry(core, &dev->core.clients, node) {
		struct gsched_client *client = gsched_client_of(core);

		if (dev->refresh_slots || client->stale)
			refresh_slots(client);
	}
	dev->refresh = false;
	dev->refresh_slots = false;
}

static void program_timer(struct gsched_device *dev, u64 now)
{
	u64 next = dev->core_when;

	if (!dev->adopted && !dev->scan)
		dev->poll_at = 0;
	else if (dev->poll_at <= now)
		dev->poll_at = now + ADOPTED_POLL_NS;
	next = min_not_zero(next, dev->poll_at);
	if (next == dev->armed)
		return;
	dev->armed = next;
	if (next)
		hrtimer_start(&dev->timer, ns_to_ktime(next), HRTIMER_MODE_ABS_SOFT);
	else
		hrtimer_try_to_cancel(&dev->timer);
}

/* Returns the time of the event. The lock is also taken by the timer, in softirq. */
u64 gsched_lock(struct gsched_device *dev)
	__acquires(&dev->lock)
{
	u64 now;

	spin_lock_bh(&dev->lock);
	now = ktime_get_ns();
	if (dev->adopted)
		gsched_lease_reap(dev, now);
	return now;
}

void gsched_unlock(struct gsched_device *dev, u64 now)
	__releases(&dev->lock)
{
	int round;

	gsc_commit(&dev->core, now);
	/*
	 * Adopting tasks may withdraw further leases. The rounds are bounded, since a client can keep
	 * changing its page; the timer does the rest.
	 */
	for (round = 0; dev->scan && round < SCAN_ROUNDS; round++) {
		dev->scan = false;
		gsched_lease_adopt(dev, false, now);
	}
	if (dev->refresh || dev->refresh_slots)
		refresh(dev);
	program_timer(dev, now);
	if (trace_gsched_decision_enabled() && dev->core.decisions != dev->decisions_traced)
		trace_gsched_decision(dev, ktime_get_ns() - now);
	dev->decisions_traced = dev->core.decisions;
	if (dev->events && dev->core.n_events != dev->events_notified) {
		dev->events_notified = dev->core.n_events;
		sysfs_notify_dirent(dev->events);
	}
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
		gsched_lease_reap_ended(dev, now);
		gsc_tick(&dev->core, now);
	}
	gsched_unlock(dev, now);
	return HRTIMER_NORESTART;
}
