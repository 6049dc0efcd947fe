// SPDX-License-Identifier: LGPL-2.1-or-later
/* Times of kernels: known.h. */
#include <stddef.h>
#include "launch/known.h"

#define LONGER	4	/* consecutive much longer times that raise the minimum */

static struct gi_known *set_of(struct gi_known_table *t, uint64_t key)
{
	return &t->of[key >> 40 & (GI_KNOWN - 1) & ~(GI_KNOWN_WAYS - 1)];
}

struct gi_known *gi_known_find(struct gi_known_table *t, uint64_t key)
{
	struct gi_known *k = set_of(t, key);
	unsigned int i;

	for (i = 0; key && i < GI_KNOWN_WAYS; i++)
		if (k[i].key == key)
			return &k[i];
	return NULL;
}

struct gi_known *gi_known_add(struct gi_known_table *t, uint64_t key)
{
	struct gi_known *k = set_of(t, key);
	unsigned int i;

	for (i = 0; i < GI_KNOWN_WAYS && k[i].key; i++)
		;
	if (i == GI_KNOWN_WAYS)
		i = t->next_victim++ % GI_KNOWN_WAYS;
	k[i] = (struct gi_known){ .key = key };
	return &k[i];
}

bool gi_known_much_longer(const struct gi_known *k, uint64_t ns)
{
	return k->ns && ns >= 2 * k->ns;
}

uint64_t gi_known_update(struct gi_known *k, uint64_t ns)
{
	if (gi_known_much_longer(k, ns)) {
		k->longer_ns = k->longer++ && k->longer_ns < ns ? k->longer_ns : ns;
		if (k->longer < LONGER)
			return k->ns;
		ns = k->longer_ns;
	} else if (k->ns && k->ns < ns) {
		ns = (15 * k->ns + ns) / 16;
	}
	k->longer = 0;
	k->ns = ns;
	return ns;
}
