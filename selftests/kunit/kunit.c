// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests of what the module has around the core, for kernels with KUnit: timer, lock, pages,
 * processes, credentials. They call its functions, which it exports for them (exports.c) when it is
 * built with CONFIG_GSCHED_KUNIT_TEST=m. All cases run in kernel threads, as administrators.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "kunit.h"

static const u8 kunit_uuid[GSCHED_UUID_SIZE] = "gsched-kunit";

int gsched_kunit_init(struct kunit *test)
{
	struct gsched_device_add req = {
		.size = sizeof(req),
		.name = "kunit",
		.sms = KUNIT_SMS,
	};
	int ret;

	memcpy(req.uuid, kunit_uuid, sizeof(req.uuid));
	ret = gsched_device_add(&req);
	if (ret)
		return ret;
	test->priv = gsched_device_get(kunit_uuid);
	return test->priv ? 0 : -ENODEV;
}

void gsched_kunit_exit(struct kunit *test)
{
	struct gsched_device_del req = { .size = sizeof(req) };

	if (!test->priv)
		return;
	gsched_device_put(test->priv);
	memcpy(req.uuid, kunit_uuid, sizeof(req.uuid));
	KUNIT_EXPECT_EQ(test, gsched_device_del(&req), 0);
}

struct gsched_client *gsched_kunit_client(struct kunit *test)
{
	struct gsched_client *client = gsched_client_new();

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, client);
	return client;
}

int gsched_kunit_attach(struct gsched_client *client)
{
	struct gsched_attach req = {
		.size = sizeof(req),
		.flags = GSCHED_ATTACH_MPS,
	};

	memcpy(req.uuid, kunit_uuid, sizeof(req.uuid));
	return gsched_client_attach(client, &req);
}

/* As the file's release does */
void gsched_kunit_close(struct gsched_client *client)
{
	gsched_client_detach(client);
	kobject_put(&client->kobj);
}

int gsched_kunit_submit(struct gsched_client *client, u32 slot, u32 seq)
{
	struct gsched_submit req = {
		.size = sizeof(req),
		.flags = GSCHED_SUBMIT_NOWAIT,
		.slot = slot,
		.seq = seq,
		.tier = GSCHED_TIER_BLOCK,
		.blocks_per_sm = 1,
		.blocks = 8,
	};

	return gsched_client_submit(client, &req);
}

MODULE_DESCRIPTION("KUnit tests of gsched");
MODULE_AUTHOR("The gsched authors");
MODULE_LICENSE("GPL");
