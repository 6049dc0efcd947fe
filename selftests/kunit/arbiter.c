// SPDX-License-Identifier: GPL-2.0-only
/* The lock around the core, and its timer: what the core asks for and what the hrtimer does. */
#include <linux/bottom_half.h>
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/preempt.h>
#include <linux/timekeeping.h>

#include "kunit.h"

static void lock_keeps_softirqs_out(struct kunit *test)
{
	struct gsched_device *dev = test->priv;
	u64 before = ktime_get_ns(), now;
	unsigned long held;

	now = gsched_lock(dev);
	lockdep_assert_held(&dev->lock);
	/* the timer, which takes the lock in a softirq, cannot interrupt its holder */
	held = softirq_count();
	gsched_unlock(dev, now);
	KUNIT_EXPECT_NE(test, held, 0);
	KUNIT_EXPECT_EQ(test, softirq_count(), 0);
	KUNIT_EXPECT_GE(test, now, before);
	KUNIT_EXPECT_LE(test, now, ktime_get_ns());
}

/* As the core does in a commit */
static void ask_for(struct gsched_device *dev, u64 when)
{
	u64 now = gsched_lock(dev);

	gsched_core_ops.arm_timer(&dev->core, when);
	gsched_unlock(dev, now);
}

static void timer_follows_the_core(struct kunit *test)
{
	struct gsched_device *dev = test->priv;
	u64 hour = ktime_get_ns() + 3600ULL * NSEC_PER_SEC;

	KUNIT_EXPECT_FALSE(test, hrtimer_active(&dev->timer));
	ask_for(dev, hour);
	KUNIT_EXPECT_TRUE(test, hrtimer_active(&dev->timer));
	KUNIT_EXPECT_EQ(test, hrtimer_get_expires_ns(&dev->timer), hour);
	KUNIT_EXPECT_EQ(test, dev->armed, hour);
	/* earlier and later replace each other */
	ask_for(dev, hour - NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, hrtimer_get_expires_ns(&dev->timer), hour - NSEC_PER_SEC);
	ask_for(dev, hour + NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, hrtimer_get_expires_ns(&dev->timer), hour + NSEC_PER_SEC);
	ask_for(dev, 0);
	KUNIT_EXPECT_FALSE(test, hrtimer_active(&dev->timer));
	KUNIT_EXPECT_EQ(test, dev->armed, 0);
}

/* It was put off while its callback waited for the lock */
static void timer_that_comes_early_is_set_again(struct kunit *test)
{
	struct gsched_device *dev = test->priv;
	u64 hour = ktime_get_ns() + 3600ULL * NSEC_PER_SEC;

	ask_for(dev, hour);
	/* as when it has expired: not queued any more */
	hrtimer_cancel(&dev->timer);
	KUNIT_EXPECT_EQ(test, gsched_device_expired(&dev->timer), HRTIMER_NORESTART);
	KUNIT_EXPECT_EQ(test, dev->core_when, hour);
	KUNIT_EXPECT_TRUE(test, hrtimer_active(&dev->timer));
	KUNIT_EXPECT_EQ(test, hrtimer_get_expires_ns(&dev->timer), hour);
	ask_for(dev, 0);
}

static void timer_ticks_the_core_once(struct kunit *test)
{
	struct gsched_device *dev = test->priv;
	u64 now = gsched_lock(dev);

	/* without a commit, which would set the hrtimer, too */
	dev->core_when = now;
	spin_unlock_bh(&dev->lock);
	KUNIT_EXPECT_EQ(test, gsched_device_expired(&dev->timer), HRTIMER_NORESTART);
	KUNIT_EXPECT_EQ(test, dev->core_when, 0);
	KUNIT_EXPECT_GE(test, dev->core.now, now);
	KUNIT_EXPECT_FALSE(test, hrtimer_active(&dev->timer));
}

/* The hrtimer itself, in its softirq; it may come late, but comes */
static void timer_fires(struct kunit *test)
{
	struct gsched_device *dev = test->priv;
	u64 when = ktime_get_ns() + NSEC_PER_MSEC, until = when + 30 * NSEC_PER_SEC;

	ask_for(dev, when);
	while (READ_ONCE(dev->core_when) && ktime_get_ns() < until)
		cond_resched();
	KUNIT_EXPECT_EQ(test, READ_ONCE(dev->core_when), 0);
	hrtimer_cancel(&dev->timer);
	KUNIT_EXPECT_EQ(test, dev->armed, 0);
	KUNIT_EXPECT_GE(test, dev->core.now, when);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(lock_keeps_softirqs_out),
	KUNIT_CASE(timer_follows_the_core),
	KUNIT_CASE(timer_that_comes_early_is_set_again),
	KUNIT_CASE(timer_ticks_the_core_once),
	KUNIT_CASE(timer_fires),
	{}
};

static struct kunit_suite suite = {
	.name = "gsched-arbiter",
	.init = gsched_kunit_init,
	.exit = gsched_kunit_exit,
	.test_cases = cases,
};

kunit_test_suite(suite);
