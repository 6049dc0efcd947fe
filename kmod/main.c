// SPDX-License-Identifier: GPL-2.0-only
/* Load and unload. */
#include <linux/module.h>

#include "internal.h"

static int __init gsched_init(void)
{
	int ret;

	ret = gsched_clients_init();
	if (ret)
		return ret;
	ret = gsched_netlink_init();
	if (ret)
		goto err_clients;
	ret = gsched_devices_init();
	if (ret)
		goto err_netlink;
	gsched_debugfs_init();
	ret = gsched_configfs_init();
	if (ret)
		goto err_debugfs;
	ret = gsched_chardev_init();
	if (ret)
		goto err_configfs;
	return 0;

err_configfs:
	gsched_configfs_exit();
err_debugfs:
	gsched_debugfs_exit();
	gsched_devices_exit();
err_netlink:
	gsched_netlink_exit();
err_clients:
	gsched_clients_exit();
	return ret;
}

static void __exit gsched_exit(void)
{
	gsched_chardev_exit();
	gsched_devices_exit();
	gsched_configfs_exit();
	gsched_debugfs_exit();
	/* last: its events are sent while all else goes */
	gsched_netlink_exit();
	gsched_clients_exit();
}

module_init(gsched_init);
module_exit(gsched_exit);

MODULE_DESCRIPTION("Quotas, priorities and preemption for programs that share a GPU");
MODULE_AUTHOR("The gsched authors");
MODULE_LICENSE("GPL");
