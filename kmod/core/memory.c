// SPDX-License-Identifier: GPL-2.0-only
/*
 * Device memory: what clients say that they hold, and the limits of their groups. As in cgroup v2,
 * a group's limit is one for all below it, and a new limit takes nothing from those who hold more.
 */
#include "decide.h"

bool gsc_memory_limited(const struct gsc_group *group)
{
	for (; group; group = group->parent)
		if (group->memory.max != GSC_MEMORY_UNLIMITED)
			return true;
	return false;
}

void gsc_memory_room(const struct gsc_group *group, u64 *max, u64 *room)
{
	const struct gsc_memory *memory;

	*max = GSC_MEMORY_UNLIMITED;
	*room = GSC_MEMORY_UNLIMITED;
	for (; group; group = group->parent) {
		memory = &group->memory;
		if (memory->max == GSC_MEMORY_UNLIMITED)
			continue;
		*max = min(*max, memory->max);
		*room = min(*room, memory->max > memory->current_bytes ?
			    memory->max - memory->current_bytes : 0);
	}
}

static void charge(struct gsc_group *group, u64 bytes)
{
	struct gsc_memory *memory;

	for (; group; group = group->parent) {
		memory = &group->memory;
		memory->current_bytes += bytes;
		memory->peak = max(memory->peak, memory->current_bytes);
	}
}

static void uncharge(struct gsc_group *group, u64 bytes)
{
	for (; group; group = group->parent)
		group->memory.current_bytes -= bytes;
}

void gsc_memory_charge(struct gsc_client *client)
{
	charge(client->home, client->memory);
}

void gsc_memory_uncharge(struct gsc_client *client)
{
	uncharge(client->home, client->memory);
}

int gsc_memory_set(struct gsc_client *client, u64 bytes, bool asks)
{
	u64 max, room;

	if (bytes <= client->memory) {
		uncharge(client->home, client->memory - bytes);
	} else {
		gsc_memory_room(client->home, &max, &room);
		if (asks && bytes - client->memory > room) {
			gsc_event(client->group, GSC_EVENT_MEMORY);
			return -EDQUOT;
		}
		charge(client->home, bytes - client->memory);
	}
	client->memory = bytes;
	return 0;
}
