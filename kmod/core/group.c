// SPDX-License-Identifier: GPL-2.0-only
/* Groups: the tree of quota holders, down to users and clients. */
#include "decide.h"

static void group_setup(struct gsc_group *group, struct gsc_device *dev)
{
	group->dev = dev;
	group->max = GSC_MAX_UNLIMITED;
	group->weight = GSC_WEIGHT_DEFAULT;
	group->standby = GSC_STANDBY_AUTO;
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
	if (!parent || !parent->dev || parent->depth + 1 >= GSC_GROUP_DEPTH_MAX)
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
	gsc_standby_set(group, GSC_STANDBY_AUTO);
	list_del_init(&group->sibling);
	group->parent = NULL;
	group->dev = NULL;
	return 0;
}

static void place_below(struct gsc_group *group, struct gsc_group *parent)
{
	group->parent = parent;
	group->depth = parent->depth + 1;
}

static void follow(struct gsc_client *client)
{
	client->own.priority = min(client->home->priority, client->priority_max);
	client->own.latency_us = client->home->latency_us;
}

void gsc_clients_follow(struct gsc_group *home)
{
	struct gsc_client *client;

	list_for_each_entry(client, &home->dev->clients, node)
		if (client->home == home)
			follow(client);
}

static bool is_of(const struct gsc_client *client, const struct gsc_group *home, u32 user)
{
	return client->home == home && client->user == user && !gsc_is_server(client);
}

static void place(struct gsc_client *client, struct gsc_group *parent)
{
	const struct gsc_group *own = &client->own;

	place_below(&client->own, parent);
	client->seat = &client->own;
	if (parent == client->home && own->max == GSC_MAX_UNLIMITED && own->weight == GSC_WEIGHT_DEFAULT)
		client->seat = client->home;
}

/*
 * The clients of @user in @home compete for one share if there are several. A user's weight is that
 * of the heaviest client: a second one adds nothing, and one alone has its own.
 */
static void seat_user(struct gsc_group *home, u32 user)
{
	struct gsc_client *client, *first = NULL;
	struct gsc_group *sharing = NULL;
	u32 units = 0, weight = 0, n = 0;

	list_for_each_entry(client, &home->dev->clients, node) {
		if (!is_of(client, home, user))
			continue;
		first = first ? first : client;
		weight = max(weight, client->own.weight);
		units += client->own.current_units;
		n++;
	}
	if (n > 1) {
		sharing = &first->sharing;
		memset(sharing, 0, sizeof(*sharing));
		group_setup(sharing, home->dev);
		place_below(sharing, home);
		sharing->weight = weight;
		sharing->current_units = units;
	}
	list_for_each_entry(client, &home->dev->clients, node)
		if (is_of(client, home, user))
			place(client, sharing ? sharing : home);
}

void gsc_client_follow(struct gsc_client *client)
{
	follow(client);
	seat_user(client->home, client->user);
}

void gsc_client_seat(struct gsc_client *client, struct gsc_group *home)
{
	struct gsc_group *own = &client->own;

	if (!client->group) {
		memset(own, 0, sizeof(*own));
		group_setup(own, home->dev);
		client->priority_max = U32_MAX;
	}
	client->home = home;
	client->group = own;
	home->clients++;
	place(client, home);
	follow(client);
	seat_user(home, client->user);
}

void gsc_client_unseat(struct gsc_client *client)
{
	struct gsc_group *home = client->home;

	home->clients--;
	client->home = NULL;
	seat_user(home, client->user);
}
