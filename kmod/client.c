// SPDX-License-Identifier: GPL-2.0-only
/* A client: attach, submit, complete, detach, and the events it reads. */
#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/nospec.h>
#include <linux/pid.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "internal.h"
#include "trace.h"

static atomic64_t next_id;
/* kmalloc() has no sizes between 256 and 512 bytes, and between 4 and 8 KiB */
static struct kmem_cache *slots, *clients;

struct gsched_slot *gsched_slot_alloc(gfp_t gfp)
{
	return kmem_cache_zalloc(slots, gfp);
}

/* May be NULL */
void gsched_slot_free(struct gsched_slot *slot)
{
	if (slot)
		kmem_cache_free(slots, slot);
}

int gsched_clients_init(void)
{
	slots = KMEM_CACHE(gsched_slot, 0);
	if (!slots)
		return -ENOMEM;
	clients = KMEM_CACHE(gsched_client, 0);
	if (clients)
		return 0;
	kmem_cache_destroy(slots);
	return -ENOMEM;
}

void gsched_clients_exit(void)
{
	kmem_cache_destroy(clients);
	kmem_cache_destroy(slots);
}

/* Memory of a client that has used all its slots */
u32 gsched_client_bytes(void)
{
	return sizeof(struct gsched_client) + gsched_pages_bytes() +
	       GSCHED_SLOTS * sizeof(struct gsched_slot);
}

struct gsched_client *gsched_client_new(void)
{
	struct gsched_client *client = kmem_cache_zalloc(clients, GFP_KERNEL_ACCOUNT);

	if (!client)
		return NULL;
	kobject_init(&client->kobj, &gsched_client_ktype);
	mutex_init(&client->mutex);
	init_waitqueue_head(&client->wait);
	return client;
}

/* Last reference gone: from gsched_client_ktype */
void gsched_client_free(struct gsched_client *client)
{
	u32 i;

	for (i = 0; i < GSCHED_SLOTS; i++)
		if (client->core.task[i])
			gsched_slot_free(gsched_slot_of(client->core.task[i]));
	gsched_pages_free(client);
	put_pid(client->pid);
	if (client->dev)
		gsched_device_put(client->dev);
	kmem_cache_free(clients, client);
}

/*
 * The directory is named by the pid; a second connection of a process gets "<pid>-<id>". So does
 * one whose number was another process's that is gone and left its descriptor to somebody else.
 */
static bool pid_is_taken(const struct gsched_client *client)
{
	struct gsc_client *core;

	list_for_each_entry(core, &client->dev->core.clients, node) {
		const struct gsched_client *other = gsched_client_of(core);

		if (other != client && other->plain && other->core.pid == client->core.pid)
			return true;
	}
	return false;
}

static int enter_core(struct gsched_client *client, const struct gsched_attach *req)
{
	struct gsched_device *dev = client->dev;
	bool admin = capable(CAP_SYS_ADMIN);
	u64 now = gsched_lock(dev);
	struct gsc_group *group = gsched_bind_resolve(dev, client->pid);
	int ret = -ENOENT;

	/* A previous attach may have failed after this point and left its state, but no tasks. */
	memset(&client->core, 0, sizeof(client->core));
	client->core.arb_page = client->arb;
	client->core.cl_page = client->cl;
	client->core.pid = pid_nr(client->pid);
	client->core.user = __kuid_val(gsched_current_user());
	if (!dev->dying)
		ret = gsc_group_room(group, client->core.user, admin, dev->clients_max);
	if (!ret)
		ret = gsc_client_attach(&client->core, group, req->flags, req->channel_group, now);
	if (!ret) {
		/*
		 * It is not attached yet: no EVENT_BAND, the caller reads the page after mapping
		 * it.
		 */
		gsc_commit(&dev->core, now);
		client->plain = !pid_is_taken(client);
	}
	gsched_unlock(dev, now);
	return ret;
}

static void leave_core(struct gsched_client *client)
{
	struct gsched_device *dev = client->dev;
	u64 now = gsched_lock(dev);
	bool was_there = client->attached;

	/* gsched_client_live() reads it without the lock */
	WRITE_ONCE(client->attached, false);
	/* Expelled while its kernels may still run: let them use the whole device. */
	if (client->gone)
		gsc_client_expel(&client->core, now);
	else
		gsc_client_detach(&client->core, now);
	if (was_there) {
		trace_gsched_detach(client);
		gsched_nl_client(client, GSCHED_NL_CLIENT_DEL);
	} else {
		gsched_nl_changed();
	}
	client->band_pending = false;
	gsched_unlock(dev, now);
}

static int attach(struct gsched_client *client, struct gsched_attach *req)
{
	struct gsched_device *dev;
	int ret;

	lockdep_assert_held(&client->mutex);
	if (client->used || client->trigger)
		return -EBUSY;
	dev = gsched_device_get(req->uuid);
	if (!dev)
		return -ENOENT;
	ret = gsched_pages_alloc(client);
	if (ret)
		goto err_device;
	client->dev = dev;
	client->pid = get_pid(task_tgid(current));
	client->uid = current_euid();
	client->gid = current_egid();
	client->id = atomic64_inc_return(&next_id);
	ret = enter_core(client, req);
	if (ret)
		goto err_pages;
	if (client->plain)
		ret = kobject_add(&client->kobj, dev->tasks, "%u", client->core.pid);
	else
		ret = kobject_add(&client->kobj, dev->tasks, "%u-%llu", client->core.pid,
				  client->id);
	if (ret)
		goto err_core;
	client->used = true;

	req->client_id = client->id;
	gsched_pages_offsets(req);
	spin_lock_bh(&dev->lock);
	req->sms = dev->core.sms;
	req->mode = dev->core.mode;
	req->priority = client->core.group->priority;
	/* Publish the fully set up client: pairs with gsched_client_live(). */
	smp_store_release(&client->attached, true);
	trace_gsched_attach(client);
	gsched_nl_client(client, GSCHED_NL_CLIENT_ADD);
	spin_unlock_bh(&dev->lock);
	return 0;

err_core:
	leave_core(client);
err_pages:
	put_pid(client->pid);
	client->pid = NULL;
	client->dev = NULL;
	gsched_pages_free(client);
err_device:
	gsched_device_put(dev);
	return ret;
}

int gsched_client_attach(struct gsched_client *client, struct gsched_attach *req)
{
	int ret;

	if (req->flags & ~GSCHED_ATTACH__ALL || req->__reserved)
		return -EOPNOTSUPP;
	mutex_lock(&client->mutex);
	ret = attach(client, req);
	mutex_unlock(&client->mutex);
	return ret;
}

/* Releases all capacity. Pages and object live until the last mapping and reference are gone. */
static void detach(struct gsched_client *client, bool gone)
{
	mutex_lock(&client->mutex);
	if (client->attached) {
		kobject_del(&client->kobj);
		WRITE_ONCE(client->gone, gone);
		leave_core(client);
		wake_up_all(&client->wait);
	}
	mutex_unlock(&client->mutex);
}

void gsched_client_detach(struct gsched_client *client)
{
	detach(client, false);
}

/* Detaches on behalf of DEVICE_DEL: the client reads EVENT_GONE, all its calls fail with ENODEV. */
void gsched_client_expel(struct gsched_client *client)
{
	detach(client, true);
}

/* The errno of calls on a file whose client is not attached */
int gsched_client_dead(const struct gsched_client *client)
{
	return READ_ONCE(client->gone) ? -ENODEV : -ENOTCONN;
}

/* What the caller is told of its task, so that events are relative to that */
static void answer(const struct gsc_task *task, struct gsched_submit *req)
{
	req->state = gsc_task_state(task);
	req->window = task->window;
	gsched_slot_of(task)->known_limit = task->window;
}

static bool has_to_wait(const struct gsched_submit *req, int ret)
{
	return !ret && req->state == GSCHED_STATE_QUEUED && !(req->flags & GSCHED_SUBMIT_NOWAIT);
}

/* The first half of a submit, up to the decision: req->state. Errors leave no trace */
static int submit_begin(struct gsched_client *client, struct gsched_submit *req, u64 now)
{
	u32 slot = req->slot;
	int ret;

	lockdep_assert_held(&client->dev->lock);
	if (!client->attached)
		return gsched_client_dead(client);
	if (test_bit(slot, client->in_submit))
		return -EBUSY;
	__set_bit(slot, client->in_submit);
	ret = gsc_submit(&client->core, req, now);
	if (!ret) {
		gsc_commit(&client->dev->core, now);
		answer(client->core.task[slot], req);
	}
	if (!has_to_wait(req, ret))
		__clear_bit(slot, client->in_submit);
	return ret;
}

/* Takes the lock so that a decision in progress is seen either not at all or completely. */
static bool submit_is_over(struct gsched_client *client, u32 slot, u32 seq)
{
	const struct gsc_task *task = client->core.task[slot];
	bool over;

	spin_lock_bh(&client->dev->lock);
	over = !client->attached || task->state != GSC_TASK_WAITING || task->seq != seq;
	spin_unlock_bh(&client->dev->lock);
	return over;
}

/* The second half: after the wait. @interrupted: a signal came. */
static int submit_end(struct gsched_client *client, struct gsched_submit *req, bool interrupted,
		      u64 now)
{
	const struct gsc_task *task = client->core.task[req->slot];
	struct gsched_complete cancel = {
		.size = sizeof(cancel),
		.flags = GSCHED_COMPLETE_CANCEL,
		.slot = req->slot,
		.seq = req->seq,
	};

	lockdep_assert_held(&client->dev->lock);
	__clear_bit(req->slot, client->in_submit);
	if (!client->attached)
		return gsched_client_dead(client);
	/* The grant is capacity of clients that the same DEVICE_DEL expelled: do not use it. */
	if (client->dev->dying)
		return -ENODEV;
	if (task->state == GSC_TASK_NONE || task->seq != req->seq)
		return -ENOENT;		/* another thread withdrew it */
	if (task->state == GSC_TASK_RUNNING) {
		answer(task, req);
		return 0;
	}
	if (WARN_ON_ONCE(!interrupted))
		return -EINTR;
	gsc_complete(&client->core, &cancel, now);
	return -EINTR;
}

int gsched_client_submit(struct gsched_client *client, struct gsched_submit *req)
{
	struct gsched_slot *spare = NULL;
	struct gsched_device *dev;
	bool interrupted;
	u64 now;
	int ret;

	if (req->flags & ~GSCHED_SUBMIT__ALL)
		return -EOPNOTSUPP;
	if (!gsched_client_live(client))
		return gsched_client_dead(client);
	if (req->slot >= GSCHED_SLOTS)
		return -EINVAL;
	req->slot = array_index_nospec(req->slot, GSCHED_SLOTS);
	if (!READ_ONCE(client->core.task[req->slot])) {
		spare = gsched_slot_alloc(GFP_KERNEL_ACCOUNT);
		if (!spare)
			return -ENOMEM;
	}
	dev = client->dev;
	now = gsched_lock(dev);
	client->spare = spare;
	ret = submit_begin(client, req, now);
	spare = client->spare;
	client->spare = NULL;
	gsched_unlock(dev, now);
	gsched_slot_free(spare);
	trace_gsched_submit(client, req, ret);
	if (!has_to_wait(req, ret))
		return ret;
	interrupted = wait_event_interruptible(client->wait,
					       submit_is_over(client, req->slot, req->seq));
	now = gsched_lock(dev);
	ret = submit_end(client, req, interrupted, now);
	gsched_unlock(dev, now);
	return ret;
}

int gsched_client_complete(struct gsched_client *client, struct gsched_complete *req)
{
	struct gsched_device *dev;
	int ret;
	u64 now;

	if (req->flags & ~GSCHED_COMPLETE__ALL)
		return -EOPNOTSUPP;
	if (!gsched_client_live(client))
		return gsched_client_dead(client);
	if (req->slot >= GSCHED_SLOTS)
		return -EINVAL;
	req->slot = array_index_nospec(req->slot, GSCHED_SLOTS);
	dev = client->dev;
	now = gsched_lock(dev);
	ret = client->attached ? gsc_complete(&client->core, req, now) : gsched_client_dead(client);
	if (!ret) {
		clear_bit(req->slot, client->pending);
		/* Another thread may be waiting for the grant of the cancelled task. */
		if (test_bit(req->slot, client->in_submit))
			wake_up_interruptible(&client->wait);
	}
	gsched_unlock(dev, now);
	return ret;
}

int gsched_client_report(struct gsched_client *client, struct gsched_report *req)
{
	struct gsched_device *dev;
	int ret;
	u64 now;

	if (req->flags & ~GSCHED_REPORT__ALL || req->__reserved)
		return -EOPNOTSUPP;
	if (!gsched_client_live(client))
		return gsched_client_dead(client);
	dev = client->dev;
	now = gsched_lock(dev);
	ret = client->attached ? gsc_client_report(&client->core, req, now) :
				 gsched_client_dead(client);
	gsched_unlock(dev, now);
	return ret;
}

/*
 * Dequeues the event of the lowest slot that has one, then EVENT_BAND. After the client was
 * expelled, EVENT_GONE once. False: no event.
 */
bool gsched_client_event(struct gsched_client *client, struct gsched_event *event)
{
	bool found = true;
	u32 slot;

	spin_lock_bh(&client->dev->lock);
	/* written under the mutex, before attached is cleared under the lock */
	if (!client->attached && READ_ONCE(client->gone)) {
		bool read_before = client->gone_read;

		WRITE_ONCE(client->gone_read, true);
		spin_unlock_bh(&client->dev->lock);
		*event = (struct gsched_event) {
			.size = sizeof(*event),
			.type = GSCHED_EVENT_GONE,
			.time_ns = ktime_get_ns(),
		};
		return !read_before;
	}
	slot = find_first_bit(client->pending, GSCHED_SLOTS);
	if (slot < GSCHED_SLOTS) {
		struct gsched_slot *from = gsched_slot_of(client->core.task[slot]);

		*event = from->event;
		from->known_limit = event->window;
		clear_bit(slot, client->pending);
	} else if (client->band_pending) {
		*event = (struct gsched_event) {
			.size = sizeof(*event),
			.type = GSCHED_EVENT_BAND,
			.time_ns = client->band_ns,
		};
		WRITE_ONCE(client->band_pending, false);
	} else {
		found = false;
	}
	spin_unlock_bh(&client->dev->lock);
	return found;
}

/* Requeues an event that could not be copied to user space, unless its task has ended. */
void gsched_client_event_back(struct gsched_client *client, const struct gsched_event *event)
{
	const struct gsc_task *task;

	spin_lock_bh(&client->dev->lock);
	task = gsc_task_in(&client->core, event->slot);
	if (event->type == GSCHED_EVENT_GONE)
		WRITE_ONCE(client->gone_read, false);
	else if (event->type == GSCHED_EVENT_BAND)
		WRITE_ONCE(client->band_pending, client->attached);
	else if (task && task->seq == event->seq)
		set_bit(event->slot, client->pending);
	spin_unlock_bh(&client->dev->lock);
}
