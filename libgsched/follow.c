// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include "libgsched/follow.h"

bool gsched_slice_follow(struct gsched_slice_asked *last, const uint8_t uuid[16], uint32_t us,
			 bool block_end, struct gsched *g, struct gsched_cl_header *h,
			 struct gsched_slice *now)
{
	struct gsched_report_info report = { .size = sizeof(report), .has_slice = true };

	gsched_slice_get(uuid, now);
	if (last->us == us && last->block_end == block_end && last->groups == now->groups)
		return false;
	last->us = us;
	last->block_end = block_end;
	last->groups = now->groups;
	gsched_slice_set(uuid, us, block_end, now);
	report.slice_us = now->error ? 0 : now->us;
	report.slice_error = now->error == ENODEV ? EOPNOTSUPP : now->error;
	__atomic_store_n(&h->slice_us, report.slice_us, __ATOMIC_RELEASE);
	__atomic_store_n(&h->slice_error, report.slice_error, __ATOMIC_RELEASE);
	__atomic_store_n(&h->block_end, now->block_end, __ATOMIC_RELEASE);
	if (g)
		gsched_report(g, &report);
	return true;
}
