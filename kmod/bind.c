// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whoever may write a group's procs by its owner and mode (delegation: chown of the directory and
 * of procs) is held to what cgroup v2 demands for a move: the process is the writer's, and so is
 * the common ancestor of the group that it leaves and the one that it comes to. Nobody gets out of
 * a limit that way which somebody else set. From the root group, where no limit is but the
 * device's, everybody may come. CAP_SYS_ADMIN overrides.
 *
 * Which group a process belongs to: the one bound to it or to its nearest bound ancestor (procs),
 * else the one bound to the leader of its session, who may have ended, else the one bound to the
 * deepest cgroup v2 subtree that the process is in (cgroup), else the root group.
 *
 * Nobody tells a module of a fork. A process whose ancestors have ended is known by its session,
 * which only descendants of the leader are in, unless it has begun one of its own. Then its cgroup
 * alone tells where it comes from. So it does of one that has more than ANCESTORS_MAX ancestors up
 * to the one that is bound.
 */
#include <linux/cgroup.h>
#include <linux/cred.h>
#include <linux/dcache.h>
#include <linux/fs.h>
#include <linux/kernfs.h>
#include <linux/kstrtox.h>
#include <linux/nsproxy.h>
#include <linux/pid.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "internal.h"

/* Every client's are looked at with the lock held, and anybody may fork in a long chain */
#define ANCESTORS_MAX	256

/**
 * struct gsched_binding - a process bound to a group
 * @node: in gsched_device.bindings (lock)
 * @by_pid: in gsched_device.binding_of (lock)
 * @group: where to (lock)
 * @pid: the process; a reference
 * @user: who bound it, as gsched_current_user()
 */
struct gsched_binding {
	struct list_head node;
	struct hlist_node by_pid;
	struct gsched_group *group;
	struct pid *pid;
	kuid_t user;
};

static void binding_free(struct gsched_binding *binding)
{
	list_del(&binding->node);
	hash_del(&binding->by_pid);
	put_pid(binding->pid);
	kfree(binding);
}

static struct gsched_binding *find(struct gsched_device *dev, const struct pid *pid)
{
	struct gsched_binding *binding;

	hash_for_each_possible(dev->binding_of, binding, by_pid, (unsigned long)pid)
		if (binding->pid == pid)
			return binding;
	return NULL;
}

static struct gsched_group *by_process(struct gsched_device *dev, struct task_struct *task)
{
	const struct pid *session = task_session(task);
	struct gsched_binding *binding;
	int left = ANCESTORS_MAX;

	if (list_empty(&dev->bindings))
		return NULL;
	/* the parent of the first process is the idle task, number 0 */
	for (task = task->group_leader; task->pid && left--;
	     task = rcu_dereference(task->real_parent)->group_leader) {
		binding = find(dev, task_tgid(task));
		if (binding)
			return binding->group;
	}
	binding = find(dev, session);
	return binding ? binding->group : NULL;
}

/*
 * Do they have the same path? Whoever restarts a service removes its cgroup and makes another one,
 * which is meant, too. In version 2 nothing is renamed, and the root is never removed.
 */
static bool is_same_path(struct cgroup *a, struct cgroup *b)
{
	for (; a != b; a = cgroup_parent(a), b = cgroup_parent(b))
		if (!a || !b || strcmp(a->kn->name, b->kn->name))
			return false;
	return true;
}

static struct gsched_group *by_cgroup(struct gsched_device *dev, struct task_struct *task)
{
	struct cgroup *cgroup = task_dfl_cgroup(task);
	struct gsched_group *group, *best = NULL;

	list_for_each_entry(group, &dev->bound, bound) {
		if (!is_same_path(cgroup_ancestor(cgroup, group->cgroup->level), group->cgroup))
			continue;
		if (!best || group->cgroup->level > best->cgroup->level)
			best = group;
	}
	return best;
}

/* Never NULL. A process that is gone belongs to the root. */
struct gsc_group *gsched_bind_resolve(struct gsched_device *dev, struct pid *pid)
{
	struct gsched_group *group = NULL;
	struct task_struct *task;

	lockdep_assert_held(&dev->lock);
	rcu_read_lock();
	task = pid_task(pid, PIDTYPE_TGID);
	if (task) {
		group = by_process(dev, task);
		if (!group)
			group = by_cgroup(dev, task);
	}
	rcu_read_unlock();
	return group ? group->core : &dev->core.root;
}

/* Bindings changed: move every client whose group is another one now */
void gsched_bind_apply(struct gsched_device *dev, u64 now)
{
	struct gsc_client *core, *next;
	struct gsc_group *group;

	lockdep_assert_held(&dev->lock);
	list_for_each_entry_safe(core, next, &dev->core.clients, node) {
		group = gsched_bind_resolve(dev, gsched_client_of(core)->pid);
		if (group != core->home)
			gsc_client_move(core, group, now);
	}
}

/* Forget the processes that are gone, with all of the session that they led */
static void prune(struct gsched_device *dev)
{
	struct gsched_binding *binding, *next;

	lockdep_assert_held(&dev->lock);
	rcu_read_lock();
	list_for_each_entry_safe(binding, next, &dev->bindings, node)
		if (!pid_has_task(binding->pid, PIDTYPE_TGID) &&
		    !pid_has_task(binding->pid, PIDTYPE_SID))
			binding_free(binding);
	rcu_read_unlock();
}

/*
 * sysfs and configfs do not say who opened the file that is written. A set-user-ID program that was
 * given it as its standard output must not lend its rights to whoever did.
 */
bool gsched_writer_acts_for_itself(void)
{
	const struct cred *cred = current_cred();

	return uid_eq(cred->uid, cred->euid) && gid_eq(cred->gid, cred->egid);
}

/*
 * Whom shares, places, groups and bindings are counted for. Anybody may have thousands of users in
 * a user namespace (subuid(5)): they count as the one who made it. Each user of a namespace that
 * root made counts for itself.
 */
kuid_t gsched_current_user(void)
{
	const struct cred *cred = current_cred();
	const struct user_namespace *ns;
	kuid_t user = cred->euid;

	for (ns = cred->user_ns; ns->parent; ns = ns->parent)
		if (!uid_eq(ns->owner, GLOBAL_ROOT_UID))
			user = ns->owner;
	return user;
}

/* Who may signal a process may also bind it */
static bool may_bind(struct task_struct *task)
{
	const struct cred *mine = current_cred(), *cred;
	bool may;

	if (capable(CAP_SYS_ADMIN))
		return true;
	rcu_read_lock();
	cred = __task_cred(task);
	may = uid_eq(mine->euid, cred->suid) || uid_eq(mine->euid, cred->uid);
	rcu_read_unlock();
	return may;
}

/* Does the directory of the group, or of one above it, belong to the writer? */
static bool is_own(struct gsched_group *group)
{
	struct config_item *item;

	for (item = &group->cg.cg_item; item; item = item->ci_parent) {
		if (uid_eq(d_inode(item->ci_dentry)->i_uid, current_fsuid()))
			return true;
		if (item == &group->dev->root.cg.cg_item)
			break;
	}
	return false;
}

static struct gsched_group *group_of(struct gsched_device *dev, struct gsc_group *core)
{
	return core->parent ? container_of(core, struct gsched_group, own) : &dev->root;
}

/*
 * May the writer move what is in @from to @to? @to's file is being written, so its directory and
 * those above it stay, which the common ancestor is one of.
 */
static bool may_move(struct gsched_device *dev, struct gsc_group *from, struct gsched_group *to)
{
	struct gsc_group *common = to->core;

	lockdep_assert_held(&dev->lock);
	if (!from->parent || from == to->core)
		return true;
	while (common->depth > from->depth)
		common = common->parent;
	while (from->depth > common->depth)
		from = from->parent;
	for (; common != from; common = common->parent)
		from = from->parent;
	return is_own(group_of(dev, common));
}

/* The process of a number as the writer sees it, 0 itself. EINVAL, ESRCH, EPERM. */
static struct pid *pid_of(const char *text)
{
	struct task_struct *task;
	struct pid *pid;
	int nr, ret;

	ret = kstrtoint(text, 10, &nr);
	if (ret)
		return ERR_PTR(-EINVAL);
	if (nr < 0)
		return ERR_PTR(-EINVAL);
	if (!nr)
		return get_pid(task_tgid(current));
	rcu_read_lock();
	task = pid_task(find_vpid(nr), PIDTYPE_PID);
	if (!task)
		pid = ERR_PTR(-ESRCH);
	else if (!may_bind(task))
		pid = ERR_PTR(-EPERM);
	else
		pid = get_pid(task_tgid(task));
	rcu_read_unlock();
	return pid ?: ERR_PTR(-ESRCH);
}

static bool has_room(struct gsched_device *dev, kuid_t user)
{
	struct gsched_binding *binding;
	u32 mine = 0, all = 0;

	list_for_each_entry(binding, &dev->bindings, node) {
		mine += uid_eq(binding->user, user);
		all++;
	}
	return gsc_share_has_room(mine, all, GSCHED_BINDINGS_MAX);
}

/*
 * EACCES: the common ancestor of its group and the new one is not the writer's; EDQUOT: the writer
 * has its share of bindings
 */
int gsched_bind_store_pid(struct gsched_group *group, const char *text)
{
	struct gsched_device *dev = group->dev;
	struct gsched_binding *binding, *old;
	bool admin = capable(CAP_SYS_ADMIN);
	struct pid *pid;
	int ret = 0;
	u64 now;

	if (!gsched_writer_acts_for_itself())
		return -EPERM;
	pid = pid_of(text);
	if (IS_ERR(pid))
		return PTR_ERR(pid);
	binding = kzalloc(sizeof(*binding), GFP_KERNEL_ACCOUNT);
	if (!binding) {
		put_pid(pid);
		return -ENOMEM;
	}
	binding->group = group;
	binding->pid = pid;
	binding->user = gsched_current_user();
	now = gsched_lock(dev);
	prune(dev);
	old = find(dev, pid);
	if (!admin && !may_move(dev, gsched_bind_resolve(dev, pid), group))
		ret = -EACCES;
	else if (!admin && !old && !has_room(dev, binding->user))
		ret = -EDQUOT;
	if (!ret) {
		if (old)
			binding_free(old);
		list_add(&binding->node, &dev->bindings);
		hash_add(dev->binding_of, &binding->by_pid, (unsigned long)pid);
		gsched_bind_apply(dev, now);
	}
	gsched_unlock(dev, now);
	if (ret) {
		put_pid(pid);
		kfree(binding);
	}
	return ret;
}

/* One number a line, as the reader sees them. EFBIG: configfs has no more room */
ssize_t gsched_bind_show_pids(struct gsched_group *group, char *page)
{
	struct gsched_device *dev = group->dev;
	struct gsched_binding *binding;
	ssize_t len = 0;
	u64 now;

	now = gsched_lock(dev);
	prune(dev);
	list_for_each_entry(binding, &dev->bindings, node) {
		pid_t nr = pid_vnr(binding->pid);

		if (binding->group != group || !nr || !pid_has_task(binding->pid, PIDTYPE_TGID))
			continue;
		if (len >= GSCHED_CONFIGFS_MAX - 16) {
			len = -EFBIG;
			break;
		}
		len += scnprintf(page + len, GSCHED_CONFIGFS_MAX - len, "%d\n", nr);
	}
	gsched_unlock(dev, now);
	return len;
}

static void bind_cgroup(struct gsched_group *group, struct cgroup *cgroup)
{
	if (group->cgroup)
		list_del(&group->bound);
	if (cgroup)
		list_add(&group->bound, &group->dev->bound);
	group->cgroup = cgroup;
}

/*
 * EPERM not an administrator, who alone says whose processes the cgroup has; ENOENT no such cgroup;
 * EBUSY another group has it. An empty line unbinds.
 */
int gsched_bind_store_cgroup(struct gsched_group *group, const char *text)
{
	struct gsched_device *dev = group->dev;
	struct cgroup *cgroup = NULL, *old = NULL;
	struct gsched_group *other;
	char *copy, *path;
	int ret = 0;
	u64 now;

	if (!capable(CAP_SYS_ADMIN) || !gsched_writer_acts_for_itself())
		return -EPERM;
	copy = kstrdup(text, GFP_KERNEL);
	if (!copy)
		return -ENOMEM;
	path = strim(copy);
	if (*path == '/')
		cgroup = cgroup_get_from_path(path);
	else if (*path)
		cgroup = ERR_PTR(-EINVAL);
	kfree(copy);
	if (IS_ERR(cgroup))
		return PTR_ERR(cgroup);
	now = gsched_lock(dev);
	list_for_each_entry(other, &dev->bound, bound)
		if (other != group && cgroup && is_same_path(other->cgroup, cgroup))
			ret = -EBUSY;
	if (!ret) {
		old = group->cgroup;
		bind_cgroup(group, cgroup);
		gsched_bind_apply(dev, now);
	}
	gsched_unlock(dev, now);
	if (ret)
		old = cgroup;
	if (old)
		cgroup_put(old);
	return ret;
}

/*
 * The path as the reader's /proc/<pid>/cgroup would have it, or an empty line: like what is
 * written, relative to the root of its cgroup namespace.
 */
ssize_t gsched_bind_show_cgroup(struct gsched_group *group, char *page)
{
	struct gsched_device *dev = group->dev;
	struct cgroup *cgroup;
	ssize_t len = 0;

	spin_lock_bh(&dev->lock);
	cgroup = group->cgroup;
	if (cgroup)
		cgroup_get(cgroup);
	spin_unlock_bh(&dev->lock);
	if (cgroup) {
		if (cgroup_path_ns(cgroup, page, GSCHED_CONFIGFS_MAX - 1,
				   current->nsproxy->cgroup_ns) > 0)
			len = strnlen(page, GSCHED_CONFIGFS_MAX - 1);
		cgroup_put(cgroup);
	}
	page[len++] = '\n';
	return len;
}

/*
 * The group goes away. Processes that were put into it are in the one above: who was delegated that
 * may remove the group, but does not get out of what limits both. A top group's are free.
 */
void gsched_bind_drop(struct gsched_group *group)
{
	struct gsc_group *up = group->core->parent;
	struct gsched_binding *binding, *next;
	struct cgroup *cgroup = group->cgroup;

	lockdep_assert_held(&group->dev->lock);
	list_for_each_entry_safe(binding, next, &group->dev->bindings, node) {
		if (binding->group != group)
			continue;
		if (up && up->parent)
			binding->group = group_of(group->dev, up);
		else
			binding_free(binding);
	}
	bind_cgroup(group, NULL);
	if (cgroup)
		cgroup_put(cgroup);
}
