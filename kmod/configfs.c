// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/kernel/config/gsched/<device>/: the quota groups. A device's directory is its root group;
 * mkdir makes a group below, rmdir drops one: processes that were put into it are then in the group
 * above; those of its cgroup belong to whatever group is still bound to them, the root at last.
 *
 * The files capsm.* and gpu.* are the core's (gsc_file_name); cgroup and procs are bind.c's,
 * owner is owner.c's. Beside the devices there is the file features.
 */
#include <linux/bitops.h>
#include <linux/build_bug.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "internal.h"

static const struct config_item_type group_type;

static struct gsched_group *to_group(struct config_item *item)
{
	return container_of(to_config_group(item), struct gsched_group, cg);
}

static ssize_t file_show(struct config_item *item, enum gsc_file file, char *page)
{
	struct gsched_group *group = to_group(item);
	u64 now = gsched_lock(group->dev);
	int len;

	/* charges what runs, so that the numbers are of this moment */
	gsc_tick(&group->dev->core, now);
	gsc_commit(&group->dev->core, now);
	gsc_device_count(&group->dev->core, now);
	len = gsc_group_show(group->core, file, page, GSCHED_CONFIGFS_MAX);
	gsched_unlock(group->dev, now);
	return len;
}

static ssize_t file_store(struct config_item *item, enum gsc_file file, const char *page,
			  size_t count)
{
	struct gsched_group *group = to_group(item);
	struct gsched_device *dev = group->dev;
	u64 now;
	int ret;

	if (strlen(page) != count)
		return -EINVAL;
	now = gsched_lock(dev);
	ret = gsc_group_store(group->core, file, page, now);
	gsched_unlock(dev, now);
	return ret ?: count;
}

/* configfs does not say which attribute a show is for, so there is one function for each */
#define CORE_FILE(id, file) \
	static ssize_t id##_show(struct config_item *item, char *page) \
	{ \
		return file_show(item, file, page); \
	} \
	static ssize_t id##_store(struct config_item *item, const char *page, size_t count) \
	{ \
		return file_store(item, file, page, count); \
	}

CORE_FILE(max, GSC_FILE_CAPSM_MAX)
CORE_FILE(min, GSC_FILE_CAPSM_MIN)
CORE_FILE(reserve, GSC_FILE_CAPSM_RESERVE)
CORE_FILE(weight, GSC_FILE_GPU_WEIGHT)
CORE_FILE(priority, GSC_FILE_GPU_PRIORITY)
CORE_FILE(band, GSC_FILE_GPU_BAND)
CORE_FILE(latency, GSC_FILE_GPU_LATENCY)
CORE_FILE(memory_max, GSC_FILE_MEMORY_MAX)
CORE_FILE(current, GSC_FILE_CAPSM_CURRENT)
CORE_FILE(plan, GSC_FILE_CAPSM_PLAN)
CORE_FILE(stat, GSC_FILE_GPU_STAT)
CORE_FILE(pressure, GSC_FILE_GPU_PRESSURE)
CORE_FILE(events, GSC_FILE_GPU_EVENTS)
CORE_FILE(preemption, GSC_FILE_GPU_PREEMPTION)
CORE_FILE(memory_current, GSC_FILE_MEMORY_CURRENT)
CORE_FILE(memory_peak, GSC_FILE_MEMORY_PEAK)

static ssize_t procs_show(struct config_item *item, char *page)
{
	return gsched_bind_show_pids(to_group(item), page);
}

static ssize_t procs_store(struct config_item *item, const char *page, size_t count)
{
	int ret = strlen(page) == count ? gsched_bind_store_pid(to_group(item), page) : -EINVAL;

	return ret ?: count;
}

static ssize_t cgroup_show(struct config_item *item, char *page)
{
	return gsched_bind_show_cgroup(to_group(item), page);
}

static ssize_t cgroup_store(struct config_item *item, const char *page, size_t count)
{
	int ret = strlen(page) == count ? gsched_bind_store_cgroup(to_group(item), page) : -EINVAL;

	return ret ?: count;
}

static ssize_t owner_show(struct config_item *item, char *page)
{
	return gsched_owner_show(to_group(item), page);
}

static ssize_t owner_store(struct config_item *item, const char *page, size_t count)
{
	int ret = strlen(page) == count ? gsched_owner_store(to_group(item), page) : -EINVAL;

	return ret ?: count;
}

#define FILE_PROCS	GSC_FILE_COUNT
#define FILE_CGROUP	(GSC_FILE_COUNT + 1)
#define FILE_OWNER	(GSC_FILE_COUNT + 2)
#define FILE_COUNT	(GSC_FILE_COUNT + 3)

/* Names and modes of the core's files are filled in by gsched_configfs_init() */
static struct configfs_attribute attrs[FILE_COUNT] = {
	[GSC_FILE_CAPSM_MAX] = { .show = max_show, .store = max_store },
	[GSC_FILE_CAPSM_MIN] = { .show = min_show, .store = min_store },
	[GSC_FILE_CAPSM_RESERVE] = { .show = reserve_show, .store = reserve_store },
	[GSC_FILE_GPU_WEIGHT] = { .show = weight_show, .store = weight_store },
	[GSC_FILE_GPU_PRIORITY] = { .show = priority_show, .store = priority_store },
	[GSC_FILE_GPU_BAND] = { .show = band_show, .store = band_store },
	[GSC_FILE_GPU_LATENCY] = { .show = latency_show, .store = latency_store },
	[GSC_FILE_MEMORY_MAX] = { .show = memory_max_show, .store = memory_max_store },
	[GSC_FILE_CAPSM_CURRENT] = { .show = current_show, .store = current_store },
	[GSC_FILE_CAPSM_PLAN] = { .show = plan_show, .store = plan_store },
	[GSC_FILE_GPU_STAT] = { .show = stat_show, .store = stat_store },
	[GSC_FILE_GPU_PRESSURE] = { .show = pressure_show, .store = pressure_store },
	[GSC_FILE_GPU_EVENTS] = { .show = events_show, .store = events_store },
	[GSC_FILE_GPU_PREEMPTION] = { .show = preemption_show, .store = preemption_store },
	[GSC_FILE_MEMORY_CURRENT] = { .show = memory_current_show, .store = memory_current_store },
	[GSC_FILE_MEMORY_PEAK] = { .show = memory_peak_show, .store = memory_peak_store },
	[FILE_PROCS] = {
		.ca_name = "procs", .ca_mode = 0644, .show = procs_show, .store = procs_store,
	},
	[FILE_CGROUP] = {
		.ca_name = "cgroup", .ca_mode = 0644, .show = cgroup_show, .store = cgroup_store,
	},
	[FILE_OWNER] = {
		.ca_name = "owner", .ca_mode = 0644, .show = owner_show, .store = owner_store,
	},
};

static struct configfs_attribute *attr_list[FILE_COUNT + 1];

static bool has_room(struct gsched_device *dev, kuid_t user)
{
	struct gsched_group *group;
	u32 mine = 0, all = 0;

	list_for_each_entry(group, &dev->groups, node) {
		mine += uid_eq(group->user, user);
		all++;
	}
	return gsc_share_has_room(mine, all, GSCHED_GROUPS_MAX);
}

/* EDQUOT the maker has its share of groups; EINVAL nested too deep; ENOENT the device goes */
static int enter(struct gsched_group *group, struct gsched_group *parent)
{
	struct gsched_device *dev = parent->dev;
	bool admin = capable(CAP_SYS_ADMIN);
	u64 now = gsched_lock(dev);
	int ret = 0;

	if (dev->dying)
		ret = -ENOENT;
	else if (!admin && !has_room(dev, group->user))
		ret = -EDQUOT;
	ret = ret ?: gsc_group_init(group->core, parent->core);
	if (!ret) {
		list_add_tail(&group->node, &dev->groups);
		gsched_nl_group(group, GSCHED_NL_GROUP_ADD);
	}
	gsched_unlock(dev, now);
	return ret;
}

static struct config_group *group_make(struct config_group *parent_cg, const char *name)
{
	struct gsched_group *parent = to_group(&parent_cg->cg_item);
	struct gsched_group *group;
	int ret;

	/* names stand in flat text files */
	if (strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:@-") !=
	    strlen(name))
		return ERR_PTR(-EINVAL);
	group = kzalloc(sizeof(*group), GFP_KERNEL_ACCOUNT);
	if (!group)
		return ERR_PTR(-ENOMEM);
	group->core = &group->own;
	group->own.delays = &group->delays;
	group->user = gsched_current_user();
	group->dev = parent->dev;
	config_group_init_type_name(&group->cg, name, &group_type);
	ret = enter(group, parent);
	if (ret) {
		group->dev = NULL;
		config_group_put(&group->cg);
		return ERR_PTR(ret);
	}
	get_device(&group->dev->dev);
	return &group->cg;
}

/* rmdir: there are no groups below it any more */
static void group_drop(struct config_group *parent, struct config_item *item)
{
	struct gsched_group *group = to_group(item);
	struct gsched_device *dev = group->dev;
	u64 now = gsched_lock(dev);

	gsched_nl_group(group, GSCHED_NL_GROUP_DEL);
	gsched_bind_drop(group);
	gsched_triggers_drop(group);
	list_del(&group->node);
	gsched_bind_apply(dev, now);
	WARN_ON_ONCE(gsc_group_exit(group->core));
	gsched_unlock(dev, now);
	config_item_put(item);
}

static void group_release(struct config_item *item)
{
	struct gsched_group *group = to_group(item);
	struct gsched_device *dev = group->dev;

	/* the root is a part of its device */
	if (!dev || group != &dev->root)
		kfree(group);
	if (dev)
		gsched_device_put(dev);
}

static struct configfs_item_operations group_item_ops = {
	.release = group_release,
};

static struct configfs_group_operations group_group_ops = {
	.make_group = group_make,
	.drop_item = group_drop,
};

static const struct config_item_type group_type = {
	.ct_owner = THIS_MODULE,
	.ct_item_ops = &group_item_ops,
	.ct_group_ops = &group_group_ops,
	.ct_attrs = attr_list,
};

/* GSCHED_FEATURE_* in lower case, for scripts */
static ssize_t gsched_features_show(struct config_item *item, char *page)
{
	static const struct { u64 bit; const char *name; } feature[] = {
		{ GSCHED_FEATURE_LEASE, "lease" },
		{ GSCHED_FEATURE_FORCE, "force" },
		{ GSCHED_FEATURE_BANDS, "bands" },
		{ GSCHED_FEATURE_MEMORY, "memory" },
	};
	ssize_t len = 0;
	int i;

	BUILD_BUG_ON(ARRAY_SIZE(feature) != HWEIGHT64(GSCHED_FEATURES));
	for (i = 0; i < ARRAY_SIZE(feature); i++)
		len += scnprintf(page + len, GSCHED_CONFIGFS_MAX - len, "%s%s", len ? " " : "",
				 feature[i].name);
	return len + scnprintf(page + len, GSCHED_CONFIGFS_MAX - len, "\n");
}
CONFIGFS_ATTR_RO(gsched_, features);

static struct configfs_attribute *subsystem_attrs[] = {
	&gsched_attr_features,
	NULL
};

static const struct config_item_type subsystem_type = {
	.ct_owner = THIS_MODULE,
	.ct_attrs = subsystem_attrs,
};

static struct configfs_subsystem subsystem = {
	.su_group = {
		.cg_item = {
			.ci_namebuf = "gsched",
			.ci_type = &subsystem_type,
		},
	},
};

/* "a/b", or "/" for the root. Returns the length, as scnprintf. */
int gsched_group_path(const struct gsched_device *dev, const struct gsc_group *core, char *buf,
		      size_t size)
{
	struct gsched_group *group;
	int len = 0;

	lockdep_assert_held(&dev->lock);
	if (!core->parent)
		return scnprintf(buf, size, "/");
	if (core->parent->parent)
		len = gsched_group_path(dev, core->parent, buf, size);
	group = container_of(core, struct gsched_group, own);
	return len + scnprintf(buf + len, size - len, "%s%s", len ? "/" : "",
			       config_item_name(&group->cg.cg_item));
}

/* What gsched_group_path() needs for all of it, 1792 bytes at most */
size_t gsched_group_path_size(const struct gsc_group *core)
{
	size_t size = core->parent ? 0 : 2;
	struct gsched_group *group;

	for (; core->parent; core = core->parent) {
		group = container_of(core, struct gsched_group, own);
		size += strlen(config_item_name(&group->cg.cg_item)) + 1;
	}
	return size;
}

/* From the end of the path up: however long it is, no copy is needed */
static bool has_path(const struct gsc_group *core, const char *path, size_t len)
{
	struct gsched_group *group;
	const char *name;
	size_t n;

	if (!core->parent)
		return len == 1 && *path == '/';
	for (; core->parent; core = core->parent) {
		group = container_of(core, struct gsched_group, own);
		name = config_item_name(&group->cg.cg_item);
		n = strlen(name);
		if (len < n || memcmp(path + len - n, name, n))
			return false;
		len -= n;
		if (!core->parent->parent)
			break;
		if (!len || path[--len] != '/')
			return false;
	}
	return !len;
}

/* The group of a path as gsched_group_path() makes it; for gsc_device_plan(). NULL there is none */
struct gsc_group *gsched_group_find(void *arg, const char *path, size_t len)
{
	struct gsched_device *dev = arg;
	struct gsched_group *group;

	lockdep_assert_held(&dev->lock);
	list_for_each_entry(group, &dev->groups, node)
		if (has_path(group->core, path, len))
			return group->core;
	return NULL;
}

int gsched_configfs_add(struct gsched_device *dev)
{
	struct gsched_group *root = &dev->root;
	u64 now;
	int ret;

	root->core = &dev->core.root;
	root->dev = dev;
	get_device(&dev->dev);
	config_group_init_type_name(&root->cg, dev_name(&dev->dev), &group_type);
	/* the files of sysfs are there already, and a plan looks for groups */
	now = gsched_lock(dev);
	list_add_tail(&root->node, &dev->groups);
	gsched_unlock(dev, now);
	ret = configfs_register_group(&subsystem.su_group, &root->cg);
	if (!ret)
		return 0;
	now = gsched_lock(dev);
	list_del(&root->node);
	gsched_unlock(dev, now);
	config_group_put(&root->cg);
	return ret;
}

/*
 * configfs_unregister_group() does not lock the directory itself. A lookup in the middle of it may
 * leave an attribute there, and then the directory's dentry is never freed (seen on 6.1).
 */
static void forbid_lookups(struct config_group *group)
{
	struct inode *dir = d_inode(group->cg_item.ci_dentry);

	inode_lock(dir);
	dir->i_flags |= S_DEAD;
	inode_unlock(dir);
}

void gsched_configfs_del(struct gsched_device *dev)
{
	u64 now;

	forbid_lookups(&dev->root.cg);
	configfs_unregister_group(&dev->root.cg);
	now = gsched_lock(dev);
	gsched_bind_drop(&dev->root);
	gsched_triggers_drop(&dev->root);
	list_del(&dev->root.node);
	gsched_unlock(dev, now);
	/* without a trigger nobody schedules it again */
	cancel_delayed_work_sync(&dev->trigger_work);
	config_group_put(&dev->root.cg);
}

int gsched_configfs_init(void)
{
	int i;

	for (i = 0; i < FILE_COUNT; i++) {
		if (i < GSC_FILE_COUNT) {
			attrs[i].ca_name = gsc_file_name[i];
			/* what others do at this moment is nobody's business */
			attrs[i].ca_mode = gsc_file_writable(i) ? 0644 : 0400;
		}
		attrs[i].ca_owner = THIS_MODULE;
		attr_list[i] = &attrs[i];
	}
	config_group_init(&subsystem.su_group);
	mutex_init(&subsystem.su_mutex);
	return configfs_register_subsystem(&subsystem);
}

void gsched_configfs_exit(void)
{
	configfs_unregister_subsystem(&subsystem);
}
