// SPDX-License-Identifier: GPL-2.0-only
/*
 * Opaque launches that nobody has to be asked about, in a band with several clients
 * (GSCHED_ARB_PASS). Such a launch is submitted for two reasons: windows of others make room for
 * it, and it waits for those who are more important. Without windows, among equals, and where the
 * hardware serves the more important ones first by itself, neither applies, and a submit costs a
 * program with thousands of short kernels many times what its launches cost.
 */
#include "decide.h"

/* a client that had a window is expected to have one again for so long */
#define KEEP_NS		1000000000ULL
/* ... if the hardware has it make room, and it runs its kernels of short blocks as they are */
#define KEEP_YIELDING_NS	100000000ULL

static void look_at(struct gsc_device *dev, u64 when)
{
	dev->pass_timer = gsc_earlier(dev->pass_timer, when);
}

/* Then its windows matter to nobody until another one joins */
static bool is_alone(const struct gsc_client *client)
{
	return list_is_singular(&client->band->members);
}

/* A task comes that has a window, or is to get one */
void gsc_pass_window(struct gsc_client *client)
{
	client->window_seen = client->dev->now;
	if (client->has_windows)
		return;
	client->has_windows = true;
	client->dev->n_windows++;
	/* what may pass changes with the first one, and with the second for the first */
	if (client->band->n_windows++ > 1 || is_alone(client))
		return;
	client->dev->bands_stale = true;
	look_at(client->dev, client->dev->now + KEEP_NS);
}

void gsc_pass_join(struct gsc_client *client)
{
	client->band->n_windows += client->has_windows;
	client->dev->n_windows += client->has_windows;
	if (client->band->n_windows)
		look_at(client->dev, client->dev->now);
}

void gsc_pass_leave(struct gsc_client *client)
{
	client->band->n_windows -= client->has_windows;
	client->dev->n_windows -= client->has_windows;
	if (!client->dev->n_windows)
		client->dev->pass_timer = 0;
}

static bool has_window_task(const struct gsc_client *client)
{
	const struct gsc_task *task;

	list_for_each_entry(task, &client->tasks, peer)
		if (gsc_is_block(task))
			return true;
	return false;
}

static u64 keep_ns(const struct gsc_client *client)
{
	return client->arb.flags & GSCHED_ARB_YIELDS ? KEEP_YIELDING_NS : KEEP_NS;
}

void gsc_pass_yields(struct gsc_client *client)
{
	if (client->has_windows)
		look_at(client->dev, client->dev->now + KEEP_YIELDING_NS);
}

void gsc_pass_expire(struct gsc_device *dev)
{
	struct gsc_client *client;
	u64 until;

	dev->pass_timer = 0;
	list_for_each_entry(client, &dev->clients, node) {
		if (!client->has_windows || is_alone(client))
			continue;
		until = has_window_task(client) ? dev->now : client->window_seen;
		until += keep_ns(client);
		if (until > dev->now) {
			look_at(dev, until);
			continue;
		}
		client->has_windows = false;
		client->band->n_windows--;
		dev->n_windows--;
		dev->bands_stale = true;
	}
}

/* Of @client and any other in its band, are the launches of the more important one served first? */
static bool is_ordered(const struct gsc_client *client, const struct gsc_ranks *ranks)
{
	if (client->dev->policy->equals)
		return true;
	return gsc_is_below_ordered(client, ranks) &&
	       (client->prioritised || client->group->priority == ranks->least);
}

bool gsc_may_pass(const struct gsc_client *client, const struct gsc_ranks *ranks)
{
	const struct gsc_device *dev = client->dev;
	const struct gsc_band *band = client->band;

	if (dev->mode == GSCHED_MODE_TEMPORAL || !dev->policy->passes || band->n_clients < 2 ||
	    band->promised || band->standby || band->n_windows != client->has_windows)
		return false;
	return is_ordered(client, ranks);
}
