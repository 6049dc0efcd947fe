// SPDX-License-Identifier: GPL-2.0-only
/* Groups: the tree of quota holders, down to users and clients. */
#include "decide.h"

static void group_setup(struct gsc_group *group, struct gsc_device *dev)
{
	group->dev = dev;
	group->max = GSC_MAX_UNLIMITED;
	group->weight = GSC_WEIGHT_DEFAULT;
	group->standby = GSC_STANDBY_AUTO;
	group->memory.max = GSC_MEMORY_UNLIMITED;
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
	INIT_LIST_HEAD(&dev->leaving);
	dev->param[GSC_PARAM_SWITCH_US] = GSC_SWITCH_US_DEFAULT;
	dev->param[GSC_PARAM_MAX_OVERHEAD] = GSC_MAX_OVERHEAD_DEFAULT;
	dev->param[GSC_PARAM_MAX_SLOWDOWN] = GSC_MAX_SLOWDOWN_DEFAULT;
	group_setup(&dev->root, dev);
	dev->root.delays = &dev->delays;
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

void gsc_group_set_min(struct gsc_group *group, u32 units)
{
	group->dev->n_limits += (units != 0) - (group->min != 0);
	group->min = units;
}

void gsc_group_set_max(struct gsc_group *group, u32 units)
{
	group->dev->n_limits += (units != GSC_MAX_UNLIMITED) - (group->max != GSC_MAX_UNLIMITED);
	group->max = units;
}

int gsc_group_exit(struct gsc_group *group)
{
	if (!group->dev)
		return 0;
	if (!group->parent || group->clients || !list_empty(&group->children))
		return -EBUSY;
	gsc_standby_set(group, GSC_STANDBY_AUTO);
	gsc_group_set_min(group, 0);
	gsc_group_set_max(group, GSC_MAX_UNLIMITED);
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

static void place(struct gsc_client *client, struct gsc_group *parent)
{
	const struct gsc_group *own = &client->own;

	place_below(&client->own, parent);
	client->seat = &client->own;
	if (parent == client->home && own->max == GSC_MAX_UNLIMITED &&
	    own->weight == GSC_WEIGHT_DEFAULT)
		client->seat = client->home;
}

static bool is_alone(const struct gsc_client *client)
{
	return list_empty(&client->peers);
}

/* The client in whose @sharing the group of its user is; not for one that is alone */
static struct gsc_client *holder_of(const struct gsc_client *client)
{
	return container_of(client->own.parent, struct gsc_client, sharing);
}

/*
 * A user weighs as much as the heaviest client: a second one adds nothing, and one alone has its
 * own weight.
 */
static void weigh_user(struct gsc_client *holder)
{
	struct gsc_group *user = &holder->sharing;
	struct gsc_client *client = holder;

	user->weight = 0;
	do {
		if (client->own.weight > user->weight) {
			user->weight = client->own.weight;
			holder->n_heaviest = 0;
		}
		holder->n_heaviest += client->own.weight == user->weight;
		client = list_next_entry(client, peers);
	} while (client != holder);
}

/* The group of the user of @holder, who has several clients there, is in @holder from now on */
static void hold_user(struct gsc_client *holder)
{
	struct gsc_group *user = &holder->sharing;
	struct gsc_client *client = holder;

	memset(user, 0, sizeof(*user));
	group_setup(user, holder->dev);
	place_below(user, holder->home);
	do {
		place(client, user);
		client = list_next_entry(client, peers);
	} while (client != holder);
	weigh_user(holder);
}

static struct gsc_client *find_peer(const struct gsc_client *client)
{
	struct gsc_client *other;

	list_for_each_entry(other, &client->dev->clients, node)
		if (other != client && other->home == client->home && other->user == client->user &&
		    !gsc_is_server(other))
			return other;
	return NULL;
}

/* The clients of a user in a group compete for one share if there are several */
static void join_user(struct gsc_client *client)
{
	struct gsc_client *peer = find_peer(client), *holder;
	bool second;

	if (!peer)
		return;
	second = is_alone(peer);
	list_add_tail(&client->peers, &peer->peers);
	if (second) {
		hold_user(peer);
		return;
	}
	holder = holder_of(peer);
	place(client, &holder->sharing);
	if (client->own.weight == holder->sharing.weight)
		holder->n_heaviest++;
	else if (client->own.weight > holder->sharing.weight)
		weigh_user(holder);
}

static struct gsc_client *middle_peer(struct gsc_client *client)
{
	struct gsc_client *middle = client, *other;
	bool odd = true;

	list_for_each_entry(other, &client->peers, peers) {
		if (odd)
			middle = list_next_entry(middle, peers);
		odd = !odd;
	}
	return middle;
}

/*
 * Constant time, but where the user's group is in @client or it is the last of the heaviest. The
 * group moves to the client in the middle, as a band does: see rehome().
 */
static void leave_user(struct gsc_client *client)
{
	struct gsc_client *holder, *middle, *peer;

	if (is_alone(client))
		return;
	holder = holder_of(client);
	middle = holder == client ? middle_peer(client) : NULL;
	peer = list_next_entry(client, peers);
	list_del_init(&client->peers);
	if (is_alone(peer))
		place(peer, peer->home);
	else if (middle)
		hold_user(middle);
	else if (client->own.weight == holder->sharing.weight && !--holder->n_heaviest)
		weigh_user(holder);
}

void gsc_client_follow(struct gsc_client *client)
{
	follow(client);
	if (gsc_is_server(client))
		return;
	place(client, client->own.parent);
	if (!is_alone(client))
		weigh_user(holder_of(client));
}

void gsc_client_seat(struct gsc_client *client, struct gsc_group *home)
{
	struct gsc_group *own = &client->own;

	if (!client->group) {
		memset(own, 0, sizeof(*own));
		group_setup(own, home->dev);
		own->delays = &client->delays;
		memset(own->delays, 0, sizeof(*own->delays));
		client->priority_max = U32_MAX;
	}
	INIT_LIST_HEAD(&client->peers);
	client->home = home;
	client->group = own;
	home->clients++;
	gsc_memory_charge(client);
	place(client, home);
	follow(client);
	if (!gsc_is_server(client))
		join_user(client);
}

void gsc_client_unseat(struct gsc_client *client)
{
	client->home->clients--;
	gsc_memory_uncharge(client);
	leave_user(client);
	client->home = NULL;
}
