// SPDX-License-Identifier: LGPL-2.1-or-later
/* What calls of the program require of its launches. */
#include "launch/direct.h"
#include "launch/launch.h"

enum meaning { HARMLESS, OPAQUE, DEPENDENT };

/*
 * What an attribute requires: nothing, the original, or that nothing is enqueued between this
 * launch and its neighbours.
 */
static enum meaning meaning_of(const CUlaunchAttribute *a)
{
	switch (a->id) {
	case CU_LAUNCH_ATTRIBUTE_IGNORE:
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		return HARMLESS;
	case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
		return a->value.cooperative ? OPAQUE : HARMLESS;
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
		return a->value.clusterDim.x * a->value.clusterDim.y * a->value.clusterDim.z > 1 ?
		       OPAQUE : HARMLESS;
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
	case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
		return OPAQUE;
	default:
		/* dependent launches, events in launches, unknown attributes */
		return DEPENDENT;
	}
}

void gi_launch_attributes(struct gi_launch *l)
{
	const CUlaunchConfig *config = l->config;
	enum meaning most = HARMLESS;
	unsigned int i;

	for (i = 0; i < config->numAttrs && config->attrs; i++) {
		const CUlaunchAttribute *a = &config->attrs[i];

		if (meaning_of(a) > most)
			most = meaning_of(a);
		if (a->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
			l->follows = a->value.programmaticStreamSerializationAllowed;
	}
	l->dependent = most == DEPENDENT;
	l->opaque = most >= OPAQUE;
}

void gi_launch_event_wait(CUstream stream)
{
	const struct gi_ctx *cx = gi_current_now();

	if (cx && cx->client && cx->client->tasks && !gi_direct(cx->client) &&
	    gi_stream_count_wait(stream) && !atomic_load(&gi_hot.captures))
		gi_gate_spare_queue(cx->client);
}
