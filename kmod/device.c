// SPDX-License-Identifier: GPL-2.0-only
/* The device table: which GPUs there are, from DEVICE_ADD to DEVICE_DEL. */
#include <linux/capability.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "internal.h"

static DEFINE_MUTEX(gsched_devices_mutex);
static LIST_HEAD(devices);		/* gsched_device.node (gsched_devices_mutex) */
static u32 device_count;		/* (gsched_devices_mutex); read without it */

static struct gsched_device *find(const u8 *uuid)
{
	struct gsched_device *dev;

	lockdep_assert_held(&gsched_devices_mutex);
	list_for_each_entry(dev, &devices, node)
		if (!memcmp(dev->uuid, uuid, GSCHED_UUID_SIZE))
			return dev;
	return NULL;
}

static bool name_is_taken(const char *name)
{
	struct gsched_device *dev;

	lockdep_assert_held(&gsched_devices_mutex);
	list_for_each_entry(dev, &devices, node)
		if (!strcmp(dev_name(&dev->dev), name))
			return true;
	return false;
}

static bool name_is_good(const char *name)
{
	size_t len = strnlen(name, GSCHED_NAME_SIZE);

	return len && len < GSCHED_NAME_SIZE &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") == len;
}

static void device_release(struct device *kdev)
{
	struct gsched_device *dev = container_of(kdev, struct gsched_device, dev);

	/* whoever has a reference may commit, which may arm it: calls of expelled clients, dumps */
	hrtimer_cancel(&dev->timer);
	kfree(dev);
}

static struct gsched_device *device_new(const struct gsched_device_add *req)
{
	struct gsched_device *dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	int ret;

	if (!dev)
		return ERR_PTR(-ENOMEM);
	device_initialize(&dev->dev);
	dev->dev.class = &gsched_class;
	dev->dev.groups = gsched_device_groups;
	dev->dev.release = device_release;
	spin_lock_init(&dev->lock);
	INIT_LIST_HEAD(&dev->groups);
	INIT_LIST_HEAD(&dev->bound);
	INIT_LIST_HEAD(&dev->bindings);
	hash_init(dev->binding_of);
	INIT_LIST_HEAD(&dev->triggers);
	INIT_DELAYED_WORK(&dev->trigger_work, gsched_triggers_look);
	hrtimer_init(&dev->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	dev->timer.function = gsched_device_expired;
	memcpy(dev->uuid, req->uuid, sizeof(dev->uuid));
	dev->clients_max = gsc_clients_default((u64)totalram_pages() << PAGE_SHIFT,
					       gsched_client_bytes());
	ret = dev_set_name(&dev->dev, "%s", req->name);
	if (!ret)
		ret = gsc_device_init(&dev->core, &gsched_core_ops, req->sms);
	if (ret) {
		put_device(&dev->dev);
		return ERR_PTR(ret);
	}
	return dev;
}

/* Wake who polls the file, or nobody any more; takes over the reference */
static void set_events(struct gsched_device *dev, struct kernfs_node *events)
{
	struct kernfs_node *old;

	spin_lock_bh(&dev->lock);
	old = dev->events;
	dev->events = events;
	spin_unlock_bh(&dev->lock);
	sysfs_put(old);
}

static int publish(struct gsched_device *dev)
{
	int ret;

	lockdep_assert_held(&gsched_devices_mutex);
	if (find(dev->uuid) || name_is_taken(dev_name(&dev->dev)))
		return -EEXIST;
	ret = device_add(&dev->dev);
	if (ret)
		return ret;
	dev->tasks = kobject_create_and_add("tasks", &dev->dev.kobj);
	if (!dev->tasks) {
		ret = -ENOMEM;
		goto err_device;
	}
	ret = gsched_configfs_add(dev);
	if (ret)
		goto err_tasks;
	set_events(dev, sysfs_get_dirent(dev->dev.kobj.sd, "events"));
	gsched_debugfs_add(dev);
	list_add_tail(&dev->node, &devices);
	WRITE_ONCE(device_count, device_count + 1);
	gsched_nl_device(dev, GSCHED_NL_DEVICE_ADD);
	return 0;

err_tasks:
	kobject_put(dev->tasks);
err_device:
	device_del(&dev->dev);
	return ret;
}

int gsched_device_add(const struct gsched_device_add *req)
{
	struct gsched_device *dev;
	int ret;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (req->flags || req->__reserved)
		return -EOPNOTSUPP;
	if (!req->sms || req->sms > GSCHED_SMS_MAX || !name_is_good(req->name))
		return -EINVAL;
	dev = device_new(req);
	if (IS_ERR(dev))
		return PTR_ERR(dev);
	mutex_lock(&gsched_devices_mutex);
	ret = publish(dev);
	mutex_unlock(&gsched_devices_mutex);
	if (ret)
		put_device(&dev->dev);
	return ret;
}

/* No client can attach and no group can be made once this said yes */
static bool retire(struct gsched_device *dev)
{
	u64 now = gsched_lock(dev);
	bool dying = !dev->core.n_clients && list_empty(&dev->core.root.children);

	dev->dying = dying;
	gsched_unlock(dev, now);
	return dying;
}

static int withdraw(struct gsched_device *dev)
{
	lockdep_assert_held(&gsched_devices_mutex);
	if (!retire(dev))
		return -EBUSY;
	list_del(&dev->node);
	WRITE_ONCE(device_count, device_count - 1);
	gsched_nl_device(dev, GSCHED_NL_DEVICE_DEL);
	gsched_debugfs_del(dev);
	gsched_configfs_del(dev);
	set_events(dev, NULL);
	kobject_put(dev->tasks);
	device_del(&dev->dev);
	put_device(&dev->dev);
	return 0;
}

static struct gsched_client *first_client(struct gsched_device *dev)
{
	struct gsched_client *client = NULL;

	spin_lock_bh(&dev->lock);
	if (!list_empty(&dev->core.clients)) {
		client = gsched_client_of(
			list_first_entry(&dev->core.clients, struct gsc_client, node));
		/* whoever is in the list has its file's reference */
		kobject_get(&client->kobj);
	}
	spin_unlock_bh(&dev->lock);
	return client;
}

/*
 * Send all clients away, and let none come. A client's mutex is outside of the table's, so that is
 * not held.
 */
static int expel_all(const u8 *uuid)
{
	struct gsched_device *dev = gsched_device_get(uuid);
	struct gsched_client *client;
	int ret = 0;
	u64 now;

	if (!dev)
		return -ENOENT;
	now = gsched_lock(dev);
	if (list_empty(&dev->core.root.children))
		dev->dying = true;
	else
		ret = -EBUSY;
	gsched_unlock(dev, now);
	while (!ret && (client = first_client(dev))) {
		gsched_client_expel(client);
		kobject_put(&client->kobj);
	}
	gsched_device_put(dev);
	return ret;
}

int gsched_device_del(const struct gsched_device_del *req)
{
	struct gsched_device *dev;
	int ret;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (req->flags & ~GSCHED_DEVICE_DEL__ALL)
		return -EOPNOTSUPP;
	if (req->flags & GSCHED_DEVICE_DEL_FORCE) {
		ret = expel_all(req->uuid);
		if (ret)
			return ret;
	}
	mutex_lock(&gsched_devices_mutex);
	dev = find(req->uuid);
	ret = dev ? withdraw(dev) : -ENOENT;
	mutex_unlock(&gsched_devices_mutex);
	return ret;
}

struct gsched_device *gsched_device_get(const u8 *uuid)
{
	struct gsched_device *dev;

	mutex_lock(&gsched_devices_mutex);
	dev = find(uuid);
	if (dev)
		get_device(&dev->dev);
	mutex_unlock(&gsched_devices_mutex);
	return dev;
}

/* In the order in which they were added, from 0; NULL there are not so many */
struct gsched_device *gsched_device_nth(u32 nr)
{
	struct gsched_device *dev, *found = NULL;

	mutex_lock(&gsched_devices_mutex);
	list_for_each_entry(dev, &devices, node)
		if (!nr--) {
			found = dev;
			get_device(&dev->dev);
			break;
		}
	mutex_unlock(&gsched_devices_mutex);
	return found;
}

void gsched_device_put(struct gsched_device *dev)
{
	put_device(&dev->dev);
}

u32 gsched_device_count(void)
{
	return READ_ONCE(device_count);
}

int gsched_devices_init(void)
{
	return class_register(&gsched_class);
}

/* Open files and user-made groups hold the module, so every device can go */
void gsched_devices_exit(void)
{
	struct gsched_device *dev, *next;

	mutex_lock(&gsched_devices_mutex);
	list_for_each_entry_safe(dev, next, &devices, node)
		WARN_ON(withdraw(dev));
	mutex_unlock(&gsched_devices_mutex);
	class_unregister(&gsched_class);
}
