// SPDX-License-Identifier: GPL-2.0-only
/* Since 6.7, and in 6.1 since 6.1.68: multicast groups that take a capability */
#include <net/genetlink.h>

int mcast_cap(void)
{
	return GENL_MCAST_CAP_SYS_ADMIN;
}
