// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/class/gsched/<device>/: uuid, sms, mode, mode_current, policy, policy_fault, plan,
 * switch_us, max_overhead, max_slowdown, clients_max, unmanaged_busy, stat, events, and
 * tasks/<pid>/ for every client. Tables are in debugfs (debugfs.c).
 *
 * mode and policy read as the list of what can be written, with the setting in brackets.
 * mode_current is the mode in force: sliced is what auto comes to if every band can have its slice.
 * policy_fault says which policy hpf has replaced and why, else nothing. plan takes an allocation
 * (gsc_device_plan()), which policy plan is in force for, and reads as what became of it.
 */
#include <linux/capability.h>
#include <linux/device.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "compat.h"
#include "internal.h"

static const char *const mode_name[] = {
	[GSCHED_MODE_TEMPORAL] = "temporal",
	[GSCHED_MODE_SPATIAL] = "spatial",
	[GSCHED_MODE_SLICED] = "sliced",
};

static const char *const lease_name[] = {
	[GSCHED_LEASE_NONE] = "none",
	[GSCHED_LEASE_NOTIFY] = "notify",
	[GSCHED_LEASE_FREE] = "free",
};

struct class gsched_class = {
	.name = "gsched",
};

static struct gsched_device *to_device(struct device *kdev)
{
	return container_of(kdev, struct gsched_device, dev);
}

static ssize_t sms_show(struct device *kdev, struct device_attribute *attr, char *page)
{
	return sysfs_emit(page, "%u\n", to_device(kdev)->core.sms);
}
static DEVICE_ATTR_RO(sms);

static ssize_t uuid_show(struct device *kdev, struct device_attribute *attr, char *page)
{
	return sysfs_emit(page, "%pU\n", to_device(kdev)->uuid);
}
static DEVICE_ATTR_RO(uuid);

static ssize_t mode_show(struct device *kdev, struct device_attribute *attr, char *page)
{
	struct gsched_device *dev = to_device(kdev);
	s32 set, mode;
	int len;

	spin_lock_bh(&dev->lock);
	set = dev->core.mode_set;
	spin_unlock_bh(&dev->lock);
	len = sysfs_emit(page, set < 0 ? "[auto]" : "auto");
	for (mode = 0; mode < ARRAY_SIZE(mode_name); mode++)
		if (mode != GSCHED_MODE_SLICED)
			len += sysfs_emit_at(page, len, mode == set ? " [%s]" : " %s",
					     mode_name[mode]);
	return len + sysfs_emit_at(page, len, "\n");
}

static ssize_t mode_store(struct device *kdev, struct device_attribute *attr, const char *page,
			  size_t count)
{
	struct gsched_device *dev = to_device(kdev);
	int mode = -1, ret;
	u64 now;

	if (strlen(page) != count)
		return -EINVAL;
	if (!sysfs_streq(page, "auto")) {
		mode = __sysfs_match_string(mode_name, ARRAY_SIZE(mode_name), page);
		if (mode < 0)
			return mode;
	}
	now = gsched_lock(dev);
	ret = gsc_device_set_mode(&dev->core, mode, now);
	gsched_unlock(dev, now);
	return ret ?: count;
}
static DEVICE_ATTR_RW(mode);

static ssize_t mode_current_show(struct device *kdev, struct device_attribute *attr, char *page)
{
	struct gsched_device *dev = to_device(kdev);
	u32 mode;

	spin_lock_bh(&dev->lock);
	mode = dev->core.mode;
	spin_unlock_bh(&dev->lock);
	return sysfs_emit(page, "%s\n", mode_name[mode]);
}
static DEVICE_ATTR_RO(mode_current);

static ssize_t policy_show(struct device *kdev, struct device_attribute *attr, char *page)
{
	struct gsched_device *dev = to_device(kdev);
	const struct gsc_policy *const *policy, *current_policy;
	int len = 0;

	spin_lock_bh(&dev->lock);
	current_policy = dev->core.policy;
	spin_unlock_bh(&dev->lock);
	for (policy = gsc_policies; *policy; policy++)
		len += sysfs_emit_at(page, len, *policy == current_policy ? "%s[%s]" : "%s%s",
				     len ? " " : "", (*policy)->name);
	return len + sysfs_emit_at(page, len, "\n");
}

static ssize_t policy_store(struct device *kdev, struct device_attribute *attr, const char *page,
			    size_t count)
{
	struct gsched_device *dev = to_device(kdev);
	char name[GSCHED_NAME_SIZE];
	int ret;
	u64 now;

	if (strlen(page) != count || strscpy(name, page, sizeof(name)) < 0)
		return -EINVAL;
	now = gsched_lock(dev);
	ret = gsc_device_set_policy(&dev->core, strim(name), now);
	gsched_unlock(dev, now);
	return ret ?: count;
}
static DEVICE_ATTR_RW(policy);

static ssize_t policy_fault_show(struct device *kdev, struct device_attribute *attr, char *page)
{
	struct gsched_device *dev = to_device(kdev);
	int len;

	spin_lock_bh(&dev->lock);
	len = gsc_policy_why(&dev->core, page, PAGE_SIZE - 1);
	spin_unlock_bh(&dev->lock);
	return len + sysfs_emit_at(page, len, "\n");
}
static DEVICE_ATTR_RO(policy_fault);

static ssize_t plan_show(struct device *kdev, struct device_attribute *attr, char *page)
{
	struct gsched_device *dev = to_device(kdev);
	u64 now = gsched_lock(dev);
	int len;

	gsc_tick(&dev->core, now);
	gsc_commit(&dev->core, now);
	len = gsc_plan_show(&dev->core, page, PAGE_SIZE - 1);
	gsched_unlock(dev, now);
	return len + sysfs_emit_at(page, len, "\n");
}

static ssize_t plan_store(struct device *kdev, struct device_attribute *attr, const char *page,
			  size_t count)
{
	struct gsched_device *dev = to_device(kdev);
	int ret;
	u64 now;

	if (strlen(page) != count)
		return -EINVAL;
	now = gsched_lock(dev);
	ret = gsc_device_plan(&dev->core, page, gsched_group_find, dev, now);
	gsched_unlock(dev, now);
	return ret ?: count;
}
static DEVICE_ATTR_RW(plan);

static ssize_t param_show(struct device *kdev, enum gsc_param param, char *page)
{
	struct gsched_device *dev = to_device(kdev);
	int len;

	spin_lock_bh(&dev->lock);
	len = gsc_device_show_param(&dev->core, param, page, PAGE_SIZE);
	spin_unlock_bh(&dev->lock);
	return len;
}

static ssize_t param_store(struct device *kdev, enum gsc_param param, const char *page,
			   size_t count)
{
	struct gsched_device *dev = to_device(kdev);
	int ret;
	u64 now;

	if (strlen(page) != count)
		return -EINVAL;
	now = gsched_lock(dev);
	ret = gsc_device_set_param(&dev->core, param, page, now);
	gsched_unlock(dev, now);
	return ret ?: count;
}

/* The parameters of the core: gsc_param_name */
#define PARAM(_name, _param) \
	static ssize_t _name##_show(struct device *kdev, struct device_attribute *attr, \
				    char *page) \
	{ \
		return param_show(kdev, _param, page); \
	} \
	static ssize_t _name##_store(struct device *kdev, struct device_attribute *attr, \
				     const char *page, size_t count) \
	{ \
		return param_store(kdev, _param, page, count); \
	} \
	static DEVICE_ATTR_RW(_name)

PARAM(switch_us, GSC_PARAM_SWITCH_US);
PARAM(max_overhead, GSC_PARAM_MAX_OVERHEAD);
PARAM(max_slowdown, GSC_PARAM_MAX_SLOWDOWN);

/* Written by gschedd, which sees the programs on the GPU */
static ssize_t unmanaged_busy_show(struct device *kdev, struct device_attribute *attr, char *page)
{
	struct gsched_device *dev = to_device(kdev);
	bool busy;

	spin_lock_bh(&dev->lock);
	busy = dev->core.unmanaged_busy;
	spin_unlock_bh(&dev->lock);
	return sysfs_emit(page, "%d\n", busy);
}

static ssize_t unmanaged_busy_store(struct device *kdev, struct device_attribute *attr,
				    const char *page, size_t count)
{
	struct gsched_device *dev = to_device(kdev);
	bool busy;
	int ret = strlen(page) == count ? kstrtobool(page, &busy) : -EINVAL;
	u64 now;

	if (ret)
		return ret;
	now = gsched_lock(dev);
	gsc_device_set_unmanaged(&dev->core, busy, now);
	gsched_unlock(dev, now);
	return count;
}

/* Of others: root only */
static DEVICE_ATTR_ADMIN_RW(unmanaged_busy);

/* Fewer than there are: nobody is sent away, nobody comes */
static ssize_t clients_max_show(struct device *kdev, struct device_attribute *attr, char *page)
{
	return sysfs_emit(page, "%u\n", READ_ONCE(to_device(kdev)->clients_max));
}

static ssize_t clients_max_store(struct device *kdev, struct device_attribute *attr,
				 const char *page, size_t count)
{
	struct gsched_device *dev = to_device(kdev);
	u32 value;
	int ret = strlen(page) == count ? kstrtou32(page, 10, &value) : -EINVAL;

	if (ret)
		return ret;
	spin_lock_bh(&dev->lock);
	WRITE_ONCE(dev->clients_max, value);
	spin_unlock_bh(&dev->lock);
	return count;
}
static DEVICE_ATTR_RW(clients_max);

static ssize_t stat_show(struct device *kdev, struct device_attribute *attr, char *page)
{
	struct gsched_device *dev = to_device(kdev);
	u32 clients, adopted;
	u64 decisions;

	spin_lock_bh(&dev->lock);
	clients = dev->core.n_clients;
	adopted = dev->core.n_adopted;
	decisions = dev->core.decisions;
	spin_unlock_bh(&dev->lock);
	return sysfs_emit(page, "clients %u\nadopted %u\ndecisions %llu\n", clients, adopted,
			  decisions);
}
static DEVICE_ATTR_ADMIN_RO(stat);

/*
 * gpu.events of the root group. poll(2) tells when a number has grown: configfs has no such thing
 */
static ssize_t events_show(struct device *kdev, struct device_attribute *attr, char *page)
{
	struct gsched_device *dev = to_device(kdev);
	u64 now = gsched_lock(dev);
	int len;

	gsc_device_count(&dev->core, now);
	len = gsc_group_show(&dev->core.root, GSC_FILE_GPU_EVENTS, page, PAGE_SIZE);
	gsched_unlock(dev, now);
	return len;
}
static DEVICE_ATTR_ADMIN_RO(events);

static struct attribute *device_attrs[] = {
	&dev_attr_uuid.attr,
	&dev_attr_sms.attr,
	&dev_attr_mode.attr,
	&dev_attr_mode_current.attr,
	&dev_attr_policy.attr,
	&dev_attr_policy_fault.attr,
	&dev_attr_plan.attr,
	&dev_attr_switch_us.attr,
	&dev_attr_max_overhead.attr,
	&dev_attr_max_slowdown.attr,
	&dev_attr_clients_max.attr,
	&dev_attr_unmanaged_busy.attr,
	&dev_attr_stat.attr,
	&dev_attr_events.attr,
	NULL
};

static const struct attribute_group device_group = {
	.attrs = device_attrs,
};

const struct attribute_group *gsched_device_groups[] = {
	&device_group,
	NULL
};

/* tasks/<pid>/: the owner's files, as in /proc with hidepid=1: they tell when its kernels run */

struct client_attr {
	struct attribute attr;
	ssize_t (*show)(struct gsched_client *client, char *page);
	ssize_t (*store)(struct gsched_client *client, const char *page, size_t count);
};

static ssize_t comm_show(struct gsched_client *client, char *page)
{
	struct task_struct *task = get_pid_task(client->pid, PIDTYPE_TGID);
	char comm[TASK_COMM_LEN] = "";

	if (task) {
		get_task_comm(comm, task);
		put_task_struct(task);
	}
	return sysfs_emit(page, "%s\n", comm);
}

/* "a/b", or "/" for the root */
static ssize_t group_show(struct gsched_client *client, char *page)
{
	int len;

	spin_lock_bh(&client->dev->lock);
	len = gsched_group_path(client->dev, client->core.home, page, PAGE_SIZE - 1);
	spin_unlock_bh(&client->dev->lock);
	return len + sysfs_emit_at(page, len, "\n");
}

static ssize_t lease_show(struct gsched_client *client, char *page)
{
	u32 lease;

	spin_lock_bh(&client->dev->lock);
	lease = client->core.lease;
	spin_unlock_bh(&client->dev->lock);
	return sysfs_emit(page, "%s\n", lease < ARRAY_SIZE(lease_name) ? lease_name[lease] : "?");
}

/*
 * Flat-keyed: what the client has now, limit in 1/1024 CapSM and memory in bytes, then what it had
 * as in gpu.stat
 */
static ssize_t usage_show(struct gsched_client *client, char *page)
{
	struct gsched_device *dev = client->dev;
	u32 running = 0, waiting = 0;
	const struct gsc_task *task;
	u64 limit = 0, now;
	int len;

	now = gsched_lock(dev);
	/* charges what runs, so that the numbers are of this moment */
	gsc_tick(&dev->core, now);
	gsc_commit(&dev->core, now);
	gsc_client_count(&client->core, now);
	list_for_each_entry(task, &client->core.tasks, peer) {
		running += task->state == GSC_TASK_RUNNING;
		waiting += task->state == GSC_TASK_WAITING;
		limit += task->window;
	}
	len = sysfs_emit(page, "id %llu\nrunning %u\nwaiting %u\nlimit %llu\nmemory %llu\n",
			 client->id, running, waiting, limit, client->core.memory);
	len += gsc_group_show(&client->core.own, GSC_FILE_GPU_STAT, page + len, PAGE_SIZE - len);
	gsched_unlock(dev, now);
	return len;
}

static ssize_t preemption_show(struct gsched_client *client, char *page)
{
	struct gsched_device *dev = client->dev;
	u64 now = gsched_lock(dev);
	int len;

	gsc_commit(&dev->core, now);
	len = gsc_group_show(&client->core.own, GSC_FILE_GPU_PREEMPTION, page, PAGE_SIZE);
	gsched_unlock(dev, now);
	return len;
}

/* What the client says of itself: launches by tier, launches it left alone, wings */
static ssize_t managed_show(struct gsched_client *client, char *page)
{
	const struct gsched_cl_header *header = &client->cl->header;

	return sysfs_emit(page, "block %llu\nslice %llu\nlaunch %llu\n",
			  READ_ONCE(header->managed[GSCHED_TIER_BLOCK]),
			  READ_ONCE(header->managed[GSCHED_TIER_SLICE]),
			  READ_ONCE(header->managed[GSCHED_TIER_LAUNCH]));
}

static ssize_t unmanaged_show(struct gsched_client *client, char *page)
{
	return sysfs_emit(page, "%llu\n", READ_ONCE(client->cl->header.unmanaged));
}

static ssize_t resumable_show(struct gsched_client *client, char *page)
{
	return sysfs_emit(page, "%llu\n", READ_ONCE(client->cl->header.resumable));
}

static ssize_t wings_show(struct gsched_client *client, char *page)
{
	return sysfs_emit(page, "%llu\n", READ_ONCE(client->cl->header.wings));
}

static ssize_t band_show(struct gsched_client *client, char *page)
{
	return gsched_band_show(client, page);
}

/*
 * Launches that nobody was asked about, the time that launches were held back, and the GPU time of
 * paced ones
 */
static ssize_t passed_show(struct gsched_client *client, char *page)
{
	return sysfs_emit(page, "%llu\n", READ_ONCE(client->cl->header.passed));
}

static ssize_t held_ns_show(struct gsched_client *client, char *page)
{
	return sysfs_emit(page, "%llu\n", READ_ONCE(client->cl->header.held_ns));
}

static ssize_t paced_ns_show(struct gsched_client *client, char *page)
{
	return sysfs_emit(page, "%llu\n", READ_ONCE(client->cl->header.paced_ns));
}

/* What the client says of itself: printable characters of its header's text */
static ssize_t why_show(struct gsched_client *client, char *page)
{
	const struct gsched_cl_header *header = &client->cl->header;
	int i;

	for (i = 0; i < sizeof(header->why) - 1; i++) {
		char c = READ_ONCE(header->why[i]);

		if (!c)
			break;
		page[i] = c >= ' ' && c <= '~' ? c : '?';
	}
	page[i++] = '\n';
	return i;
}

/*
 * Quotas of the client, inside its group's. The process's owner, to whom the files belong, may only
 * lower them, as with nice.
 */
static ssize_t quota_show(struct gsched_client *client, enum gsc_file file, char *page)
{
	int len;

	spin_lock_bh(&client->dev->lock);
	len = gsc_client_show(&client->core, file, page, PAGE_SIZE);
	spin_unlock_bh(&client->dev->lock);
	return len;
}

static ssize_t quota_store(struct gsched_client *client, enum gsc_file file, const char *page,
			   size_t count)
{
	struct gsched_device *dev = client->dev;
	bool admin = capable(CAP_SYS_ADMIN);
	int ret = -ENODEV;
	u64 now;

	if (strlen(page) != count)
		return -EINVAL;
	if (!gsched_writer_acts_for_itself())
		return -EPERM;
	now = gsched_lock(dev);
	if (client->attached)
		ret = gsc_client_store(&client->core, file, page, admin, now);
	gsched_unlock(dev, now);
	return ret ?: count;
}

#define QUOTA(_name, _file, _id) \
	static ssize_t _name##_show(struct gsched_client *client, char *page) \
	{ \
		return quota_show(client, _id, page); \
	} \
	static ssize_t _name##_store(struct gsched_client *client, const char *page, size_t count) \
	{ \
		return quota_store(client, _id, page, count); \
	} \
	static struct client_attr client_##_name = { \
		.attr = { .name = _file, .mode = 0600 }, \
		.show = _name##_show, \
		.store = _name##_store, \
	}

QUOTA(max, "capsm.max", GSC_FILE_CAPSM_MAX);
QUOTA(weight, "gpu.weight", GSC_FILE_GPU_WEIGHT);
QUOTA(priority, "gpu.priority", GSC_FILE_GPU_PRIORITY);

#define CLIENT_ATTR(_name) \
	static struct client_attr client_##_name = { \
		.attr = { .name = #_name, .mode = 0400 }, \
		.show = _name##_show, \
	}

CLIENT_ATTR(comm);
CLIENT_ATTR(group);
CLIENT_ATTR(lease);
CLIENT_ATTR(usage);
CLIENT_ATTR(preemption);
CLIENT_ATTR(managed);
CLIENT_ATTR(unmanaged);
CLIENT_ATTR(resumable);
CLIENT_ATTR(wings);
CLIENT_ATTR(band);
CLIENT_ATTR(passed);
CLIENT_ATTR(held_ns);
CLIENT_ATTR(paced_ns);
CLIENT_ATTR(why);

static struct attribute *client_attrs[] = {
	&client_comm.attr,
	&client_group.attr,
	&client_lease.attr,
	&client_usage.attr,
	&client_preemption.attr,
	&client_managed.attr,
	&client_unmanaged.attr,
	&client_resumable.attr,
	&client_wings.attr,
	&client_band.attr,
	&client_passed.attr,
	&client_held_ns.attr,
	&client_paced_ns.attr,
	&client_why.attr,
	&client_max.attr,
	&client_weight.attr,
	&client_priority.attr,
	NULL
};

static const struct attribute_group client_group_all = {
	.attrs = client_attrs,
};

static const struct attribute_group *client_groups[] = {
	&client_group_all,
	NULL
};

static ssize_t client_attr_show(struct kobject *kobj, struct attribute *attr, char *page)
{
	const struct client_attr *client_attr = container_of(attr, struct client_attr, attr);

	return client_attr->show(container_of(kobj, struct gsched_client, kobj), page);
}

static ssize_t client_attr_store(struct kobject *kobj, struct attribute *attr, const char *page,
				 size_t count)
{
	const struct client_attr *client_attr = container_of(attr, struct client_attr, attr);

	if (!client_attr->store)
		return -EIO;
	return client_attr->store(container_of(kobj, struct gsched_client, kobj), page, count);
}

static const struct sysfs_ops client_sysfs_ops = {
	.show = client_attr_show,
	.store = client_attr_store,
};

static void client_get_ownership(GSCHED_OWNED_KOBJECT *kobj, kuid_t *uid, kgid_t *gid)
{
	const struct gsched_client *client = container_of(kobj, struct gsched_client, kobj);

	*uid = client->uid;
	*gid = client->gid;
}

static void client_kobj_release(struct kobject *kobj)
{
	gsched_client_free(container_of(kobj, struct gsched_client, kobj));
}

const struct kobj_type gsched_client_ktype = {
	.release = client_kobj_release,
	.sysfs_ops = &client_sysfs_ops,
	.get_ownership = client_get_ownership,
	.default_groups = client_groups,
};
