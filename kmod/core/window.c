// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where on the device: for each client with tasks of tier block a window of whole SMs. Windows
 * never overlap. A base moves only if there is no other way, for a worker outside the new window
 * has to leave. Opaque tasks are not placed: they run on SMs that no window covers, wherever the
 * hardware finds them, or in their client's window. Bands alternate in time: windows of two bands
 * may overlap.
 *
 * band->placed keeps the order of the windows on the device, which never changes; the sum of the
 * footprints is at most the device (the allocator), so the order can always be kept.
 */
#include "decide.h"

/*
 * Keep the order, move as little as possible: a window that grows goes up if there is room, else
 * down, else pushes its upper neighbours; those pushed over the end push back.
 */
static void settle(struct gsc_band *band)
{
	struct gsc_device *dev = gsc_band_device(band);
	struct gsc_client *client, *next;
	u32 end = 0, top;

	list_for_each_entry(client, &band->placed, place) {
		next = list_next_entry(client, place);
		top = list_entry_is_head(next, &band->placed, place) ? dev->sms : next->base;
		if (client->base + client->sms > top)
			client->base = top - min(top, client->sms);
		client->base = max(client->base, end);
		end = client->base + client->sms;
	}
	if (end <= dev->sms)
		return;
	top = dev->sms;
	list_for_each_entry_reverse(client, &band->placed, place) {
		if (client->base + client->sms > top)
			client->base = top - min(top, client->sms);
		top = client->base;
	}
}

/*
 * The place where it was, else the first gap that is large enough, else the largest gap and the
 * others move
 */
static void insert(struct gsc_band *band, struct gsc_client *new)
{
	struct gsc_device *dev = gsc_band_device(band);
	u32 end = 0, top, old = GSCHED_WINDOW_BASE(new->window) / GSCHED_CAPSM, best_size = 0, best_base = 0;
	struct list_head *after = &band->placed, *best = &band->placed, *next;
	struct gsc_client *client;
	bool fits = false;

	for (;;) {
		next = after->next;
		top = next == &band->placed ? dev->sms : list_entry(next, struct gsc_client, place)->base;
		if (new->window && old >= end && old + new->sms <= top) {
			best = after;
			best_base = old;
			fits = true;
			break;
		}
		if (!fits && (top - end >= new->sms || top - end > best_size)) {
			best = after;
			best_base = end;
			best_size = top - end;
			fits = best_size >= new->sms;
		}
		if (next == &band->placed)
			break;
		client = list_entry(next, struct gsc_client, place);
		end = client->base + client->sms;
		after = next;
	}
	new->base = best_base;
	list_add(&new->place, best);
	if (!fits)
		settle(band);
}

/*
 * The policy's own idea of where, in the same order. Without it, or where it is wrong, all stay
 * where they are
 */
static void choose(struct gsc_band *band)
{
	struct gsc_device *dev = gsc_band_device(band);
	struct gsc_client *client, *next;
	u32 lo = 0, hi, base;

	list_for_each_entry(client, &band->placed, place) {
		next = list_next_entry(client, place);
		hi = (list_entry_is_head(next, &band->placed, place) ? dev->sms : next->base) - client->sms;
		base = dev->policy->place(dev, client, lo, hi);
		if (base < lo || base > hi) {
			gsc_policy_replace(dev, "place() put a window outside the room that it has");
			return;
		}
		client->base = base;
		lo = base + client->sms;
	}
}

void gsc_place(struct gsc_band *band)
{
	struct gsc_client *client;
	struct gsc_task *task;
	u32 new = 0;

	list_for_each_entry(client, &band->active, active) {
		if (!client->n_tasks && list_empty(&client->place))
			continue;
		client->sms = client->n_tasks && client->windowed ? gsc_sms(client->alloc) : 0;
		client->base = GSCHED_WINDOW_BASE(client->window) / GSCHED_CAPSM;
		if (client->sms)
			new += list_empty(&client->place);
		else if (!list_empty(&client->place))
			list_del_init(&client->place);
	}
	settle(band);
	list_for_each_entry(task, &band->tasks, node) {
		if (!new)
			break;
		if (!task->client->sms || !list_empty(&task->client->place))
			continue;
		insert(band, task->client);
		new--;
	}
	if (gsc_band_device(band)->policy->place)
		choose(band);
}
