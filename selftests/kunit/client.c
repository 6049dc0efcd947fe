// SPDX-License-Identifier: GPL-2.0-only
/* Slots of a client: which numbers there are, and where the memory for them comes from. */
#include <linux/limits.h>
#include <linux/mm.h>
#include <linux/nospec.h>

#include "kunit.h"

static int end_task(struct gsched_client *client, u32 slot, u32 seq)
{
	struct gsched_complete req = {
		.size = sizeof(req),
		.slot = slot,
		.seq = seq,
	};

	return gsched_client_complete(client, &req);
}

static void slots_are_bounded(struct kunit *test)
{
	static const u32 wrong[] = { GSCHED_SLOTS, GSCHED_SLOTS + 1, S32_MAX, 1U << 31, U32_MAX };
	static const u32 right[] = { 0, 1, GSCHED_SLOTS - 1 };
	struct gsched_client *client = gsched_kunit_client(test);
	u32 i;

	KUNIT_EXPECT_EQ(test, gsched_kunit_attach(client), 0);
	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		KUNIT_EXPECT_EQ(test, gsched_kunit_submit(client, wrong[i], 1), -EINVAL);
		KUNIT_EXPECT_EQ(test, end_task(client, wrong[i], 1), -EINVAL);
		/* where a CPU guesses that the test of the bound passed */
		KUNIT_EXPECT_EQ(test, array_index_nospec(wrong[i], GSCHED_SLOTS), 0);
	}
	for (i = 0; i < ARRAY_SIZE(right); i++) {
		KUNIT_EXPECT_EQ(test, gsched_kunit_submit(client, right[i], 1), 0);
		KUNIT_EXPECT_TRUE(test, gsc_task_in(&client->core, right[i]));
		KUNIT_EXPECT_EQ(test, array_index_nospec(right[i], GSCHED_SLOTS), right[i]);
		KUNIT_EXPECT_EQ(test, end_task(client, right[i], 1), 0);
	}
	gsched_kunit_close(client);
}

static void slot_is_allocated_once(struct kunit *test)
{
	struct gsched_client *client = gsched_kunit_client(test);
	const struct gsc_task *first;

	KUNIT_EXPECT_EQ(test, gsched_kunit_attach(client), 0);
	KUNIT_EXPECT_PTR_EQ(test, client->core.task[5], NULL);
	KUNIT_EXPECT_EQ(test, gsched_kunit_submit(client, 5, 1), 0);
	first = client->core.task[5];
	KUNIT_EXPECT_EQ(test, end_task(client, 5, 1), 0);
	KUNIT_EXPECT_EQ(test, gsched_kunit_submit(client, 5, 2), 0);
	KUNIT_EXPECT_PTR_EQ(test, client->core.task[5], first);
	/* a call that fails leaves none behind for the next one */
	KUNIT_EXPECT_EQ(test, gsched_kunit_submit(client, 6, 0), -EINVAL);
	KUNIT_EXPECT_PTR_EQ(test, client->core.task[6], NULL);
	KUNIT_EXPECT_PTR_EQ(test, client->spare, NULL);
	gsched_kunit_close(client);
}

/* In a commit, with the lock held: what is adopted was not allocated before */
static void adopted_task_needs_no_spare(struct kunit *test)
{
	struct gsched_client *client = gsched_kunit_client(test);
	struct gsched_device *dev = test->priv;
	struct gsched_slot *spare;
	struct gsc_task *task;
	u64 now;

	KUNIT_EXPECT_EQ(test, gsched_kunit_attach(client), 0);
	spare = gsched_slot_alloc(GFP_KERNEL);
	now = gsched_lock(dev);
	client->spare = spare;
	task = gsched_core_ops.new_task(&client->core, 0);
	if (spare)
		KUNIT_EXPECT_PTR_EQ(test, gsched_slot_of(task), spare);
	KUNIT_EXPECT_PTR_EQ(test, client->spare, NULL);
	gsched_slot_free(gsched_slot_of(task));
	task = gsched_core_ops.new_task(&client->core, 0);
	gsched_unlock(dev, now);
	/* none now is an answer, too */
	if (task) {
		KUNIT_EXPECT_PTR_EQ(test, memchr_inv(task, 0, sizeof(*task)), NULL);
		gsched_slot_free(gsched_slot_of(task));
	}
	gsched_kunit_close(client);
}

static void places_follow_memory(struct kunit *test)
{
	struct gsched_device *dev = test->priv;

	KUNIT_EXPECT_GE(test, gsched_client_bytes(), gsched_pages_bytes() +
			GSCHED_SLOTS * sizeof(struct gsc_task));
	KUNIT_EXPECT_EQ(test, dev->clients_max,
			gsc_clients_default((u64)totalram_pages() << PAGE_SHIFT,
					    gsched_client_bytes()));
}

static struct kunit_case cases[] = {
	KUNIT_CASE(slots_are_bounded),
	KUNIT_CASE(slot_is_allocated_once),
	KUNIT_CASE(adopted_task_needs_no_spare),
	KUNIT_CASE(places_follow_memory),
	{}
};

static struct kunit_suite suite = {
	.name = "gsched-client",
	.init = gsched_kunit_init,
	.exit = gsched_kunit_exit,
	.test_cases = cases,
};

kunit_test_suite(suite);
