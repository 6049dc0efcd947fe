// SPDX-License-Identifier: GPL-2.0-only
/*
 * Triggers on gpu.pressure, as PSI has them. Attributes of configfs cannot be polled, so the file
 * to write and to poll is /dev/gsched: "FD some|full THRESHOLD WINDOW", where FD is gpu.pressure of
 * a group, open for reading. Who was allowed to open that may know when its launches wait. poll(2)
 * returns POLLPRI once when launches waited for THRESHOLD us within the last WINDOW us, at most
 * once a window, and POLLERR when the group is gone.
 *
 * One open file of /dev/gsched has one trigger, and is no client. The groups are looked at by a
 * work item of the device, ten times in the shortest window, while somebody waits or has waited
 * within a window; at other times a trigger costs nothing.
 */
#include <linux/cred.h>
#include <linux/dcache.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/kstrtox.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/timekeeping.h>
#include <linux/workqueue.h>

#include "internal.h"

/* PSI's */
#define WINDOW_MIN_US	500000
#define WINDOW_MAX_US	10000000
#define LOOKS_A_WINDOW	10

/**
 * struct gsched_trigger - what one file waits for
 * @node: in gsched_device.triggers, until @group is gone (lock)
 * @client: the file
 * @dev: the device, a reference
 * @group: NULL: it is gone (lock)
 * @kind: GSC_PRESSURE_*
 * @threshold: of time waited, ns
 * @window: ns
 * @sliding: what was waited in the last @window (lock)
 * @grown_ns: that, at the last look (lock)
 * @fired: when it last did (lock)
 * @event: to be told by poll (lock)
 */
struct gsched_trigger {
	struct list_head node;
	struct gsched_client *client;
	struct gsched_device *dev;
	struct gsched_group *group;
	int kind;
	u64 threshold, window;
	struct gsc_window sliding;
	u64 grown_ns;
	u64 fired;
	bool event;
};

static void look(struct gsched_trigger *trigger, u64 now)
{
	u64 waited = gsc_pressure_ns(trigger->group->core, trigger->kind, now);
	u64 grown = gsc_window_grown(&trigger->sliding, trigger->window, waited, now);

	trigger->grown_ns = grown;
	if (grown < trigger->threshold || now < trigger->fired + trigger->window)
		return;
	trigger->fired = now;
	trigger->event = true;
	wake_up_interruptible_poll(&trigger->client->wait, EPOLLPRI);
}

void gsched_triggers_look(struct work_struct *work)
{
	struct gsched_device *dev =
		container_of(to_delayed_work(work), struct gsched_device, trigger_work);
	struct gsched_trigger *trigger;
	u64 now = gsched_lock(dev), window = U64_MAX;
	bool again = dev->core.root.pressure.waiting;

	list_for_each_entry(trigger, &dev->triggers, node) {
		look(trigger, now);
		again |= trigger->grown_ns != 0;
		window = min(window, trigger->window);
	}
	dev->triggers_looked_at = again && window != U64_MAX;
	if (dev->triggers_looked_at)
		schedule_delayed_work(&dev->trigger_work,
				      nsecs_to_jiffies(window / LOOKS_A_WINDOW));
	gsched_unlock(dev, now);
}

/* After every decision: somebody may have begun to wait */
void gsched_triggers_kick(struct gsched_device *dev)
{
	lockdep_assert_held(&dev->lock);
	if (list_empty(&dev->triggers) || dev->triggers_looked_at ||
	    !dev->core.root.pressure.waiting)
		return;
	dev->triggers_looked_at = true;
	schedule_delayed_work(&dev->trigger_work, 0);
}

/* The group goes away */
void gsched_triggers_drop(struct gsched_group *group)
{
	struct gsched_trigger *trigger, *next;

	lockdep_assert_held(&group->dev->lock);
	list_for_each_entry_safe(trigger, next, &group->dev->triggers, node) {
		if (trigger->group != group)
			continue;
		list_del_init(&trigger->node);
		group->dev->n_triggers--;
		trigger->group = NULL;
		wake_up_interruptible_poll(&trigger->client->wait, EPOLLPRI | EPOLLERR);
	}
}

static struct gsched_group *group_at(struct gsched_device *dev, const struct dentry *dir)
{
	struct gsched_group *group;

	lockdep_assert_held(&dev->lock);
	list_for_each_entry(group, &dev->groups, node)
		if (READ_ONCE(group->cg.cg_item.ci_dentry) == dir)
			return group;
	return NULL;
}

/*
 * Add it to the group whose directory is @dir. EINVAL no such group here; ENOSPC, unless the opener
 * of the file is an administrator: the device has as many triggers as it may have
 */
static int add_to(struct gsched_device *dev, struct gsched_trigger *trigger,
		  const struct dentry *dir, bool admin)
{
	u64 now = gsched_lock(dev);
	int ret = -EINVAL;

	trigger->group = group_at(dev, dir);
	if (trigger->group && dev->n_triggers >= GSCHED_TRIGGERS_MAX && !admin)
		ret = -ENOSPC;
	else if (trigger->group)
		ret = 0;
	if (!ret) {
		trigger->dev = dev;
		trigger->sliding.begin = now;
		trigger->sliding.begin_ns =
			gsc_pressure_ns(trigger->group->core, trigger->kind, now);
		list_add_tail(&trigger->node, &dev->triggers);
		dev->n_triggers++;
	}
	gsched_unlock(dev, now);
	return ret;
}

/* @file is gpu.pressure of a group of some device. EINVAL it is not. */
static int add(struct gsched_trigger *trigger, struct file *file, bool admin)
{
	struct dentry *dentry = file->f_path.dentry, *dir;
	struct gsched_device *dev;
	int ret = -EINVAL;
	u32 nr = 0;

	/* the name cannot change: configfs renames nothing */
	if (!(file->f_mode & FMODE_READ) ||
	    strcmp(dentry->d_name.name, gsc_file_name[GSC_FILE_GPU_PRESSURE]))
		return -EINVAL;
	dir = dget_parent(dentry);
	while (ret == -EINVAL && (dev = gsched_device_nth(nr++))) {
		ret = add_to(dev, trigger, dir, admin);
		if (ret)
			gsched_device_put(dev);
	}
	dput(dir);
	return ret;
}

static int parse(char *text, struct gsched_trigger *trigger, u32 *fd)
{
	u32 threshold, window;
	char *word[4];
	int i;

	text = strim(text);
	for (i = 0; i < ARRAY_SIZE(word); i++) {
		word[i] = strsep(&text, " ");
		if (!word[i])
			return -EINVAL;
	}
	if (text || kstrtou32(word[0], 10, fd) || kstrtou32(word[2], 10, &threshold) ||
	    kstrtou32(word[3], 10, &window))
		return -EINVAL;
	if (!strcmp(word[1], "some"))
		trigger->kind = GSC_PRESSURE_SOME;
	else if (!strcmp(word[1], "full"))
		trigger->kind = GSC_PRESSURE_FULL;
	else
		return -EINVAL;
	if (window < WINDOW_MIN_US || window > WINDOW_MAX_US || !threshold || threshold > window)
		return -EINVAL;
	trigger->threshold = (u64)threshold * NSEC_PER_USEC;
	trigger->window = (u64)window * NSEC_PER_USEC;
	return 0;
}

static int create(struct gsched_client *client, char *text, bool admin)
{
	struct gsched_trigger *trigger;
	struct file *file;
	u32 fd;
	int ret;

	lockdep_assert_held(&client->mutex);
	if (client->used || client->trigger)
		return -EBUSY;
	trigger = kzalloc(sizeof(*trigger), GFP_KERNEL_ACCOUNT);
	if (!trigger)
		return -ENOMEM;
	trigger->client = client;
	ret = parse(text, trigger, &fd);
	if (ret)
		goto err_free;
	file = fget(fd);
	if (!file) {
		ret = -EBADF;
		goto err_free;
	}
	ret = add(trigger, file, admin);
	fput(file);
	if (ret)
		goto err_free;
	/* Publish it: pairs with gsched_poll(). */
	smp_store_release(&client->trigger, trigger);
	return 0;

err_free:
	kfree(trigger);
	return ret;
}

/*
 * @text is changed. EINVAL no such words, numbers out of range, FD is not gpu.pressure of a group;
 * EBADF no such FD; EBUSY the file has a trigger, or is a client's; ENOSPC too many; ENOMEM.
 */
int gsched_trigger_create(struct gsched_client *client, char *text, bool admin)
{
	int ret;

	mutex_lock(&client->mutex);
	ret = create(client, text, admin);
	mutex_unlock(&client->mutex);
	return ret;
}

__poll_t gsched_trigger_poll(struct gsched_trigger *trigger)
{
	__poll_t events = 0;

	spin_lock_bh(&trigger->dev->lock);
	if (!trigger->group)
		events |= EPOLLERR | EPOLLPRI;
	if (trigger->event)
		events |= EPOLLPRI;
	trigger->event = false;
	spin_unlock_bh(&trigger->dev->lock);
	return events;
}

/* The file is closed */
void gsched_trigger_free(struct gsched_trigger *trigger)
{
	struct gsched_device *dev;

	if (!trigger)
		return;
	dev = trigger->dev;
	spin_lock_bh(&dev->lock);
	if (trigger->group) {
		list_del(&trigger->node);
		dev->n_triggers--;
	}
	spin_unlock_bh(&dev->lock);
	kfree(trigger);
	gsched_device_put(dev);
}
