// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Priorities of single launches. In a group with a priority streams get theirs when the program
 * creates them (device/stream.c). A default stream is created by the driver, with the least one, so
 * its launches have theirs as an attribute, and so do those in streams that were created before the
 * group got, or lost, its priority. An attribute that the program gives to a launch, which counts
 * for more than its stream, is mapped as a stream's priority is.
 */
#include <string.h>
#include "launch/raise.h"

static CUresult forward_raised(const struct gi_launch *l)
{
	CUlaunchConfig config = *l->config;

	config.hStream = l->stream;
	return gi_real.cuLaunchKernelEx(&config, l->fn, l->params, l->extra);
}

/* The launch's own priority, as an index into the attributes; their number: it has none. */
static unsigned int find_priority(const CUlaunchConfig *config)
{
	unsigned int i;

	for (i = 0; i < config->numAttrs; i++)
		if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
			break;
	return i;
}

static void copy_config(const struct gi_launch *l, struct gi_raised *to)
{
	CUlaunchAttribute cooperative = {
		.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1,
	};

	if (l->config) {
		to->config = *l->config;
		if (l->config->numAttrs)
			memcpy(to->attr, l->config->attrs,
			       l->config->numAttrs * sizeof(*to->attr));
	} else {
		to->config = (CUlaunchConfig){
			.gridDimX = l->grid[0], .gridDimY = l->grid[1], .gridDimZ = l->grid[2],
			.blockDimX = l->block[0], .blockDimY = l->block[1],
			.blockDimZ = l->block[2], .sharedMemBytes = l->shared,
			.numAttrs = l->cooperative,
		};
		if (l->cooperative)
			to->attr[0] = cooperative;
	}
	to->config.attrs = to->attr;
}

/* @l with the priority @given as its attribute @i, which may be one more than it has. */
static const struct gi_launch *with_priority(const struct gi_launch *l, struct gi_raised *to,
					     unsigned int i, int given)
{
	copy_config(l, to);
	if (i == to->config.numAttrs || (l->cooperative && !l->config))
		i = to->config.numAttrs++;
	memset(&to->attr[i], 0, sizeof(to->attr[i]));
	to->attr[i].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
	to->attr[i].value.priority = given;
	to->l = *l;
	to->l.config = &to->config;
	to->l.forward = forward_raised;
	return &to->l;
}

const struct gi_launch *gi_unraise(const struct gi_launch *l, struct gi_raised *to)
{
	unsigned int n = l->config ? l->config->numAttrs : 0;
	int asked, given;

	if (!atomic_load_explicit(&gi_hot.raised, memory_order_relaxed) || !l->fn ||
	    n >= sizeof(to->attr) / sizeof(to->attr[0]) || (n && !l->config->attrs) ||
	    (n && find_priority(l->config) < n) || gi_is_default(l->stream) ||
	    !gi_stream_given(l->stream, &asked, &given) || asked == given ||
	    gi_driver_lacks((const void *)gi_real.cuLaunchKernelEx))
		return l;
	return with_priority(l, to, n, asked);
}

const struct gi_launch *gi_raise(const struct gi_launch *l, const struct gi_ctx *cx,
				 struct gi_raised *to)
{
	unsigned int n = l->config ? l->config->numAttrs : 0, i;
	int asked = 0, has = 0, given;

	/* a graph cannot be given one, but its stream can */
	if (l->graph && !gi_is_default(l->stream) && gi_streams_differ(cx->client) &&
	    !atomic_load_explicit(&gi_hot.captures, memory_order_relaxed))
		gi_stream_follow(cx, l->stream);
	if (!l->fn || n >= sizeof(to->attr) / sizeof(to->attr[0]) || (n && !l->config->attrs))
		return l;
	i = n ? find_priority(l->config) : 0;
	if (i < n)
		asked = has = l->config->attrs[i].value.priority;
	else if (!gi_is_default(l->stream) &&
		 (!gi_streams_differ(cx->client) || !gi_stream_given(l->stream, &asked, &has)))
		return l;
	given = gi_stream_priority(cx, asked);
	/* the driver refuses what is out of range */
	if (given == has || asked > cx->least || asked < cx->greatest ||
	    gi_driver_lacks((const void *)gi_real.cuLaunchKernelEx))
		return l;
	with_priority(l, to, i, given);
	to->l.raised = given != asked;
	to->l.lowered = given == asked;
	return &to->l;
}
