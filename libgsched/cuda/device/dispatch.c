// SPDX-License-Identifier: LGPL-2.1-or-later
/* How tasks are dispatched (rewriter/abi.h: GSR_LAUNCH_*, struct gsr_ranges), and their class. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "device/device.h"

#define WORKERS_MAX	32u	/* most blocks resident on an SM */

/*
 * Returns the index of $NAME in @words. 0 if it is not set, or is not in @words, which is reported
 * in the client's page.
 */
static unsigned int env_choice(struct gi_client *c, const char *name, const char *const *words,
			       unsigned int n)
{
	const char *text = getenv(name);
	unsigned int i;

	if (!text || !*text)
		return 0;
	for (i = 0; i < n; i++)
		if (!strcmp(text, words[i]))
			return i;
	gi_why(c, "%s=%s: neither %s%s%s%s nor %s; taken for %s", name, text, words[0],
	       n > 2 ? ", " : "", n > 2 ? words[1] : "", n > 3 ? " and so on" : "",
	       words[n - 1], words[0]);
	return 0;
}

static bool modes;

static void read_modes(void)
{
	const char *limit = getenv("GSCHED_LIMIT_BY"), *source = getenv("GSCHED_DISPATCH");

	modes = (limit && *limit && strcmp(limit, "rank")) ||
		(source && *source && strcmp(source, "queue"));
}

bool gi_needs_modes(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_modes);
	return modes;
}

void gi_dispatch(struct gi_client *c)
{
	static const char *const limits[] = { "rank", "worker" },
		*const sources[] = { "queue", "static" };
	/* in the order of GSCHED_INTENSITY_* */
	static const char *const classes[] = { "unknown", "L_C", "M_C", "H_C", "M_M", "H_M" };
	static const uint32_t flags[] = { 0, GSR_LAUNCH_BY_INDEX };
	const char *workers = getenv("GSCHED_WORKERS");

	c->dispatch = gi_needs_modes() ? flags[env_choice(c, "GSCHED_LIMIT_BY", limits, 2)] : 0;
	c->ranges = gi_needs_modes() && env_choice(c, "GSCHED_DISPATCH", sources, 2);
	c->intensity = env_choice(c, "GSCHED_CLASS", classes, GSCHED_INTENSITY__MAX + 1);
	c->workers = gi_env("GSCHED_WORKERS", 0);
	if (workers && *workers && (!c->workers || c->workers > WORKERS_MAX)) {
		gi_why(c, "GSCHED_WORKERS=%s: not a number from 1 to %u; as many as are "
		       "fastest are taken", workers, WORKERS_MAX);
		c->workers = 0;
	}
}

/* ---- static ranges: one area a slot, made with the context ---- */

size_t gi_ranges_size(const struct gi_client *c)
{
	return (sizeof(struct gsr_ranges) + sizeof(uint64_t) * 32 * c->sms + 127) / 128 * 128;
}

bool gi_ranges_new(struct gi_ctx *cx)
{
	if (!cx->client->ranges ||
	    !gi_real.cuMemAlloc_v2(&cx->ranges, GSCHED_SLOTS * gi_ranges_size(cx->client)))
		return true;
	cx->ranges = 0;
	return false;
}
