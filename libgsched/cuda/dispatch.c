// SPDX-License-Identifier: LGPL-2.1-or-later
/* How a program's tasks are dispatched (rewriter/abi.h, GSR_LAUNCH_*), and how many workers a window then holds. */
#include <stdlib.h>
#include <string.h>
#include "state.h"

/* $NAME as one of @words, by number; the first if it is not set, or is none of them, which the client's page then says */
static unsigned int choice(struct gi_client *c, const char *name, const char *const *words, unsigned int n)
{
	const char *text = getenv(name);
	unsigned int i;

	if (!text || !*text)
		return 0;
	for (i = 0; i < n; i++)
		if (!strcmp(text, words[i]))
			return i;
	gi_why(c, "%s=%s: neither %s%s%s nor %s; taken for %s", name, text, words[0], n > 2 ? ", " : "", n > 2 ? words[1] : "",
	       words[n - 1], words[0]);
	return 0;
}

uint32_t gi_dispatch(struct gi_client *c)
{
	static const char *const limits[] = { "sm", "rank", "worker" };
	static const uint32_t flags[] = { 0, GSR_LAUNCH_BY_RANK, GSR_LAUNCH_BY_INDEX };

	return flags[choice(c, "GSCHED_LIMIT_BY", limits, 3)];
}

/* As the workers themselves reckon, SM by SM */
unsigned int gi_places(const struct gi_client *c, uint64_t window, unsigned int m)
{
	uint64_t base = c->dispatch & (GSR_LAUNCH_BY_RANK | GSR_LAUNCH_BY_INDEX) ? 0 : GSCHED_WINDOW_BASE(window);
	uint64_t end = base + GSCHED_WINDOW_LIMIT(window), whole = (uint64_t)c->sms * GSCHED_CAPSM;
	unsigned int weight = GSCHED_CAPSM / m, first, last, sm, bit, n = 0;

	if (end > whole)
		end = whole;
	if (base >= end)
		return 0;
	if (c->dispatch & GSR_LAUNCH_BY_INDEX)
		return end / weight < c->sms * m ? end / weight : c->sms * m;
	first = base / GSCHED_CAPSM;
	last = (end - 1) / GSCHED_CAPSM;
	for (sm = first; sm <= last; sm++) {
		if (sm > first && sm < last) {
			n += m * (last - first - 1);
			sm = last - 1;
			continue;
		}
		for (bit = 0; bit < m; bit++) {
			uint64_t p = (uint64_t)sm * GSCHED_CAPSM + bit * weight;

			n += base <= p && p + weight <= end;
		}
	}
	return n;
}
