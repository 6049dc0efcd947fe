// SPDX-License-Identifier: GPL-2.0-only
/* The policies there are, and what they share. */
#include "decide.h"

static int compare(void *priv, const struct list_head *a, const struct list_head *b)
{
	const struct gsc_task *x = list_entry(a, struct gsc_task, node);
	const struct gsc_task *y = list_entry(b, struct gsc_task, node);

	if (x->rank != y->rank)
		return x->rank < y->rank ? 1 : -1;
	/* among equals by arrival; the number wraps around */
	return (s32)(x->id - y->id) > 0 ? 1 : -1;
}

void gsc_sort(struct gsc_band *band)
{
	const struct gsc_task *task, *last = NULL;

	list_for_each_entry(task, &band->tasks, node) {
		if (last && compare(NULL, &last->node, &task->node) > 0) {
			list_sort(NULL, &band->tasks, compare);
			return;
		}
		last = task;
	}
}

const struct gsc_policy *gsc_policy_find(const char *name)
{
	static const struct gsc_policy *const known[] = {
		&gsc_policy_hpf,
		&gsc_policy_ffs,
#ifdef GSC_CHAOS
		&gsc_policy_chaos,
#endif
		NULL
	};
	const struct gsc_policy *const *policy;

	for (policy = known; *policy; policy++)
		if (!strcmp((*policy)->name, name))
			break;
	return *policy;
}
