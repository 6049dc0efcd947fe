// SPDX-License-Identifier: GPL-2.0-only
/*
 * Leases: a client alone on the device launches without a system call and only notes the launch in
 * its page. When that ends, because someone came or a quota changed, the arbiter reads the pages
 * and submits to the core what it finds running: it adopts the tasks. An adopted task ends when its
 * client says so, or when its page does.
 *
 * All that is read here is a hint: copied once, bounded, and only ever counted against the client
 * that wrote it.
 */
#include <linux/pid.h>
#include <linux/time64.h>

#include "internal.h"

#define HINT_NS_MAX	(3600ULL * NSEC_PER_SEC)
#define HINT_BLOCKS_MAX	BIT_ULL(40)

/* What a leased launch may use: everything up to the smallest max above the client */
u64 gsched_lease_window(const struct gsched_client *client)
{
	const struct gsc_group *group;
	u32 limit = client->dev->core.sms * GSCHED_CAPSM;

	if (client->core.lease == GSCHED_LEASE_NONE)
		return 0;
	for (group = client->core.group; group; group = group->parent)
		limit = min(limit, group->max);
	return GSCHED_WINDOW(0, limit);
}

/* The task in the slot is over, or became an ordinary one */
void gsched_lease_forget(struct gsched_client *client, u32 slot)
{
	lockdep_assert_held(&client->dev->lock);
	if (__test_and_clear_bit(slot, client->adopted))
		client->dev->adopted--;
}

/*
 * Launches that were over before anyone looked: the client counts them, the core believes as much
 * as can be true
 */
void gsched_lease_count(struct gsched_client *client, u64 now)
{
	const struct gsched_cl_header *header = &client->cl->header;
	const struct gsc_leased says = {
		.tasks = READ_ONCE(header->leased_tasks) + READ_ONCE(header->passed),
		.ns = READ_ONCE(header->leased_ns),
		.usage = READ_ONCE(header->leased_usage),
		.paced_ns = READ_ONCE(header->paced_ns),
	};

	lockdep_assert_held(&client->dev->lock);
	gsc_client_leased(&client->core, &says, now);
}

void gsched_lease_count_all(struct gsched_device *dev, u64 now)
{
	struct gsc_client *core;

	lockdep_assert_held(&dev->lock);
	list_for_each_entry(core, &dev->core.clients, node)
		gsched_lease_count(gsched_client_of(core), now);
}

static void end_adopted(struct gsched_client *client, u32 slot, u64 now)
{
	const struct gsched_cl_slot *hint = &client->cl->slot[slot];
	u64 start_ns = READ_ONCE(hint->start_ns), end_ns = READ_ONCE(hint->end_ns);
	struct gsched_complete req = {
		.size = sizeof(req),
		.slot = slot,
		.seq = client->core.task[slot].seq,
	};

	if (start_ns && end_ns > start_ns)
		req.ran_ns = min(end_ns - start_ns, HINT_NS_MAX);
	gsc_complete(&client->core, &req, now);
	gsched_lease_forget(client, slot);
}

static bool is_over(const struct gsched_client *client, u32 slot)
{
	const struct gsched_cl_slot *hint = &client->cl->slot[slot];
	u32 seq = client->core.task[slot].seq;

	/* the stamps are older than retired */
	return smp_load_acquire(&hint->retired) == seq;
}

static void reap_client(struct gsched_client *client, u64 now)
{
	u32 slot;

	for_each_set_bit(slot, client->adopted, GSCHED_SLOTS)
		if (is_over(client, slot) ||
		    READ_ONCE(client->cl->slot[slot].seq) != client->core.task[slot].seq)
			end_adopted(client, slot, now);
}

/* Give back the capacity of adopted tasks that are over */
void gsched_lease_reap(struct gsched_device *dev, u64 now)
{
	struct gsc_client *core;

	lockdep_assert_held(&dev->lock);
	list_for_each_entry(core, &dev->core.clients, node)
		reap_client(gsched_client_of(core), now);
}

/*
 * Tasks whose end the page tells and the client does not: its agent hangs, or its COMPLETE is on
 * the way and will find nothing. Likewise those of a process that is gone, whose descriptor
 * somebody else still has. Called when the core's timer came, so that others do not wait for what
 * is over.
 */
void gsched_lease_reap_ended(struct gsched_device *dev, u64 now)
{
	struct gsc_task *task, *next;
	struct gsc_client *core;

	lockdep_assert_held(&dev->lock);
	list_for_each_entry(core, &dev->core.clients, node)
		list_for_each_entry_safe(task, next, &core->tasks, peer)
			if (gsc_is_old(task, now) &&
			    (!pid_has_task(gsched_client_of(core)->pid, PIDTYPE_TGID) ||
			     is_over(gsched_client_of(core), task->slot)))
				end_adopted(gsched_client_of(core), task->slot, now);
}

static void adopt(struct gsched_client *client, u32 slot, u64 now)
{
	const struct gsched_cl_slot *hint = &client->cl->slot[slot];
	/* the client stores it last: what else is read here is of this task or a later one */
	u32 seq = smp_load_acquire(&hint->seq), tier = READ_ONCE(hint->tier);
	struct gsched_submit req = {
		.size = sizeof(req),
		.flags = GSCHED_SUBMIT_NOWAIT,
		.slot = slot,
		.seq = seq,
		.tier = min_t(u32, tier, GSCHED_TIER_LAUNCH),
		.blocks_per_sm = 1,	/* unknown: it is charged for all that it may have */
		.blocks = clamp_t(u64, READ_ONCE(hint->blocks), 1, HINT_BLOCKS_MAX),
		.predicted_ns = min_t(u64, READ_ONCE(hint->predicted_ns), HINT_NS_MAX),
	};

	if (!seq || seq == client->known[slot] || READ_ONCE(hint->retired) == seq)
		return;
	if (gsc_adopt(&client->core, &req, now))
		return;
	client->known[slot] = seq;
	__set_bit(slot, client->adopted);
	client->dev->adopted++;
}

/* What was launched in the window of the lease and has to wait leaves it */
static void empty_waiting(struct gsched_client *client)
{
	u32 slot;

	for_each_set_bit(slot, client->adopted, GSCHED_SLOTS)
		if (gsc_answer(&client->core.task[slot]))
			gsched_store_window(client, slot, 0);
}

/*
 * One decision for all that is found, before whatever comes next: an opaque task that runs keeps
 * what it has.
 * @all: also of clients that keep their lease, because a quota is about to change
 */
void gsched_lease_adopt(struct gsched_device *dev, bool all, u64 now)
{
	struct gsc_client *core;
	u32 slot;

	lockdep_assert_held(&dev->lock);
	list_for_each_entry(core, &dev->core.clients, node) {
		if (!all && core->lease == GSCHED_LEASE_FREE)
			continue;
		reap_client(gsched_client_of(core), now);
		gsched_lease_count(gsched_client_of(core), now);
		for (slot = 0; slot < GSCHED_SLOTS; slot++)
			if (core->task[slot].state == GSC_TASK_NONE)
				adopt(gsched_client_of(core), slot, now);
	}
	gsc_commit(&dev->core, now);
	list_for_each_entry(core, &dev->core.clients, node)
		empty_waiting(gsched_client_of(core));
}
