// SPDX-License-Identifier: GPL-2.0-only
/* Groups: the tree of quota holders. */
#include "decide.h"

static void group_setup(struct gsc_group *group, struct gsc_device *dev)
{
	group->dev = dev;
	group->max = GSC_MAX_UNLIMITED;
	group->weight = GSC_WEIGHT_DEFAULT;
	INIT_LIST_HEAD(&group->sibling);
	INIT_LIST_HEAD(&group->children);
}

int gsc_device_init(struct gsc_device *dev, const struct gsc_ops *ops, u32 sms)
{
	if (!ops || !sms || sms > GSCHED_SMS_MAX)
		return -EINVAL;
	dev->ops = ops;
	dev->policy = &gsc_policy_hpf;
	dev->sms = sms;
	dev->mode = GSCHED_MODE_TEMPORAL;
	dev->mode_set = -1;
	INIT_LIST_HEAD(&dev->clients);
	INIT_LIST_HEAD(&dev->bands);
	INIT_LIST_HEAD(&dev->busy);
	INIT_LIST_HEAD(&dev->resuming);
	dev->param[GSC_PARAM_SWITCH_US] = GSC_SWITCH_US_DEFAULT;
	dev->param[GSC_PARAM_MAX_OVERHEAD] = GSC_MAX_OVERHEAD_DEFAULT;
	dev->param[GSC_PARAM_MAX_SLOWDOWN] = GSC_MAX_SLOWDOWN_DEFAULT;
	group_setup(&dev->root, dev);
	return 0;
}

int gsc_group_init(struct gsc_group *group, struct gsc_group *parent)
{
	if (!parent || !parent->dev || parent->depth + 1 >= GSC_DEPTH_MAX)
		return -EINVAL;
	group_setup(group, parent->dev);
	group->parent = parent;
	group->depth = parent->depth + 1;
	/* one who is important stays so after dividing a group */
	group->priority = parent->priority;
	list_add_tail(&group->sibling, &parent->children);
	return 0;
}

int gsc_group_exit(struct gsc_group *group)
{
	if (!group->dev)
		return 0;
	if (!group->parent || group->clients || !list_empty(&group->children))
		return -EBUSY;
	list_del_init(&group->sibling);
	group->parent = NULL;
	group->dev = NULL;
	return 0;
}
