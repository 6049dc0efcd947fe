// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whose processes belong to which group, and whose rights count: pids that are reused or gone,
 * kernel threads, and administrators of a user namespace, who are none here.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/kthread.h>
#include <linux/pid.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/user_namespace.h>

#include "kunit.h"

#define STRANGER	KUIDT_INIT(1000)

/* A group without a directory: enough for bindings, not for a client to be told of */
static struct gsched_group *make_group(struct kunit *test)
{
	struct gsched_device *dev = test->priv;
	struct gsched_group *group = kunit_kzalloc(test, sizeof(*group), GFP_KERNEL);
	u64 now;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, group);
	group->core = &group->own;
	group->dev = dev;
	now = gsched_lock(dev);
	KUNIT_EXPECT_EQ(test, gsc_group_init(&group->own, &dev->core.root), 0);
	gsched_unlock(dev, now);
	return group;
}

static void drop_group(struct kunit *test, struct gsched_group *group)
{
	struct gsched_device *dev = test->priv;
	u64 now = gsched_lock(dev);

	gsched_bind_drop(group);
	KUNIT_EXPECT_EQ(test, gsc_group_exit(&group->own), 0);
	gsched_unlock(dev, now);
}

static struct gsc_group *resolve(struct gsched_device *dev, struct pid *pid)
{
	u64 now = gsched_lock(dev);
	struct gsc_group *group = gsched_bind_resolve(dev, pid);

	gsched_unlock(dev, now);
	return group;
}

/* The walk up from a kernel thread ends at the idle task */
static void nearest_bound_ancestor_counts(struct kunit *test)
{
	struct gsched_device *dev = test->priv;
	struct gsched_group *group = make_group(test);
	struct pid *self = task_tgid(current);

	KUNIT_EXPECT_PTR_EQ(test, resolve(dev, self), &dev->core.root);
	/* the parent of all kernel threads */
	KUNIT_EXPECT_EQ(test, gsched_bind_store_pid(group, "2"), 0);
	KUNIT_EXPECT_PTR_EQ(test, resolve(dev, self), &group->own);
	KUNIT_EXPECT_PTR_EQ(test, resolve(dev, find_pid_ns(1, &init_pid_ns)), &dev->core.root);
	/* 0 is the writer */
	KUNIT_EXPECT_EQ(test, gsched_bind_store_pid(&dev->root, "0"), 0);
	KUNIT_EXPECT_PTR_EQ(test, resolve(dev, self), &dev->core.root);
	KUNIT_EXPECT_EQ(test, gsched_bind_store_pid(group, "0"), 0);
	KUNIT_EXPECT_PTR_EQ(test, resolve(dev, self), &group->own);
	drop_group(test, group);
	KUNIT_EXPECT_PTR_EQ(test, resolve(dev, self), &dev->core.root);
}

static void numbers_that_no_process_has(struct kunit *test)
{
	struct gsched_device *dev = test->priv;

	KUNIT_EXPECT_EQ(test, gsched_bind_store_pid(&dev->root, ""), -EINVAL);
	KUNIT_EXPECT_EQ(test, gsched_bind_store_pid(&dev->root, "x"), -EINVAL);
	KUNIT_EXPECT_EQ(test, gsched_bind_store_pid(&dev->root, "-1"), -EINVAL);
	KUNIT_EXPECT_EQ(test, gsched_bind_store_pid(&dev->root, "-2147483648"), -EINVAL);
	KUNIT_EXPECT_EQ(test, gsched_bind_store_pid(&dev->root, "2147483648"), -EINVAL);
	KUNIT_EXPECT_EQ(test, gsched_bind_store_pid(&dev->root, "2147483647"), -ESRCH);
	KUNIT_EXPECT_TRUE(test, list_empty(&dev->bindings));
}

static int wait_for_stop(void *arg)
{
	while (!kthread_should_stop())
		schedule_timeout_interruptible(1);
	return 0;
}

static void process_that_is_gone(struct kunit *test)
{
	struct gsched_device *dev = test->priv;
	struct gsched_client *client = gsched_kunit_client(test);
	struct gsched_group *group = make_group(test);
	u64 until = ktime_get_ns() + 30 * NSEC_PER_SEC;
	char *page = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL), nr[16];
	struct task_struct *task = kthread_run(wait_for_stop, NULL, "gsched-kunit");

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, page);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, task);
	client->pid = get_task_pid(task, PIDTYPE_PID);
	snprintf(nr, sizeof(nr), "%d\n", pid_nr(client->pid));
	KUNIT_EXPECT_EQ(test, gsched_bind_store_pid(group, nr), 0);
	gsched_bind_show_pids(group, page);
	KUNIT_EXPECT_STREQ(test, page, nr);
	KUNIT_EXPECT_PTR_EQ(test, resolve(dev, client->pid), &group->own);
	KUNIT_EXPECT_FALSE(test, gsched_core_ops.is_gone(&client->core));

	/* its number may be another's soon, its struct pid is not */
	kthread_stop(task);
	while (!gsched_core_ops.is_gone(&client->core) && ktime_get_ns() < until)
		cond_resched();
	KUNIT_EXPECT_TRUE(test, gsched_core_ops.is_gone(&client->core));
	KUNIT_EXPECT_PTR_EQ(test, resolve(dev, client->pid), &dev->core.root);
	KUNIT_EXPECT_EQ(test, gsched_bind_store_pid(group, nr), -ESRCH);
	KUNIT_EXPECT_EQ(test, gsched_bind_show_pids(group, page), 0);
	KUNIT_EXPECT_TRUE(test, list_empty(&dev->bindings));
	drop_group(test, group);
	gsched_kunit_close(client);
}

/* Below the first one; never freed */
static struct user_namespace below = {
	.ns.count = REFCOUNT_INIT(1),
	.parent = &init_user_ns,
	.level = 1,
};

/* The cases go on as a user who has all capabilities in a namespace of its own */
static const struct cred *become(struct kunit *test, kuid_t uid, kuid_t euid)
{
	struct cred *cred = prepare_creds();

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, cred);
	cred->uid = uid;
	cred->euid = euid;
	cred->suid = euid;
	cred->fsuid = euid;
	put_user_ns(cred->user_ns);
	cred->user_ns = get_user_ns(&below);
	cred->cap_effective = CAP_FULL_SET;
	return override_creds(cred);
}

static void become_again(const struct cred *old)
{
	const struct cred *cred = current_cred();

	revert_creds(old);
	put_cred(cred);
	/* the last reference to the namespace goes by RCU, and the module must be there then */
	rcu_barrier();
}

/* Users of a namespace count as the one who made it, if that is not root */
static void users_of_a_namespace_are_one(struct kunit *test)
{
	const struct cred *old = become(test, KUIDT_INIT(100003), KUIDT_INIT(100003));
	kuid_t as_root_made = gsched_current_user(), as_made;

	below.owner = STRANGER;
	as_made = gsched_current_user();
	below.owner = GLOBAL_ROOT_UID;
	become_again(old);
	KUNIT_EXPECT_EQ(test, __kuid_val(as_root_made), 100003);
	KUNIT_EXPECT_EQ(test, __kuid_val(as_made), __kuid_val(STRANGER));
}

static void namespace_root_is_no_administrator(struct kunit *test)
{
	struct gsched_device *dev = test->priv;
	struct gsched_device_add add = {
		.size = sizeof(add),
		.name = "other",
		.sms = 1,
	};
	struct gsched_device_del del = { .size = sizeof(del) };
	const struct cred *old = become(test, STRANGER, STRANGER);

	KUNIT_EXPECT_EQ(test, gsched_device_add(&add), -EPERM);
	KUNIT_EXPECT_EQ(test, gsched_device_del(&del), -EPERM);
	KUNIT_EXPECT_EQ(test, gsched_bind_store_cgroup(&dev->root, "/"), -EPERM);
	KUNIT_EXPECT_EQ(test, gsched_bind_store_pid(&dev->root, "1"), -EPERM);
	KUNIT_EXPECT_EQ(test, gsched_bind_store_pid(&dev->root, "0"), 0);
	become_again(old);
}

static void namespace_root_has_a_users_share(struct kunit *test)
{
	struct gsched_device *dev = test->priv;
	struct gsched_client *a = gsched_kunit_client(test), *b = gsched_kunit_client(test);
	const struct cred *old;
	u64 now = gsched_lock(dev);

	dev->clients_max = 2;
	gsched_unlock(dev, now);
	old = become(test, STRANGER, STRANGER);
	KUNIT_EXPECT_EQ(test, gsched_kunit_attach(a), 0);
	KUNIT_EXPECT_EQ(test, gsched_kunit_attach(b), -EDQUOT);
	become_again(old);
	/* by its number in the first namespace, in which below has none */
	KUNIT_EXPECT_EQ(test, a->core.user, __kuid_val(STRANGER));
	KUNIT_EXPECT_TRUE(test, uid_eq(a->uid, STRANGER));
	KUNIT_EXPECT_EQ(test, a->core.pid, pid_nr(task_tgid(current)));
	KUNIT_EXPECT_EQ(test, gsched_kunit_attach(b), 0);
	KUNIT_EXPECT_EQ(test, b->core.user, 0);
	gsched_kunit_close(a);
	gsched_kunit_close(b);
}

/* A set-user-ID program does not lend its rights to whoever gave it a file to write to */
static void set_user_id_writes_nothing(struct kunit *test)
{
	struct gsched_device *dev = test->priv;
	const struct cred *old;

	KUNIT_EXPECT_TRUE(test, gsched_writer_acts_for_itself());
	old = become(test, STRANGER, GLOBAL_ROOT_UID);
	KUNIT_EXPECT_FALSE(test, gsched_writer_acts_for_itself());
	KUNIT_EXPECT_EQ(test, gsched_bind_store_pid(&dev->root, "0"), -EPERM);
	KUNIT_EXPECT_EQ(test, gsched_bind_store_cgroup(&dev->root, "/"), -EPERM);
	become_again(old);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(nearest_bound_ancestor_counts),
	KUNIT_CASE(numbers_that_no_process_has),
	KUNIT_CASE(process_that_is_gone),
	KUNIT_CASE(users_of_a_namespace_are_one),
	KUNIT_CASE(namespace_root_is_no_administrator),
	KUNIT_CASE(namespace_root_has_a_users_share),
	KUNIT_CASE(set_user_id_writes_nothing),
	{}
};

static struct kunit_suite suite = {
	.name = "gsched-bind",
	.init = gsched_kunit_init,
	.exit = gsched_kunit_exit,
	.test_cases = cases,
};

kunit_test_suite(suite);
