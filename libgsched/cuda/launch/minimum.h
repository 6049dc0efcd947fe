/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a kernel takes by itself, from times that others on the GPU may have made longer: the
 * minimum. It follows slowly if the kernel takes a little more.
 */
#ifndef GI_MINIMUM_H
#define GI_MINIMUM_H

#include <stdbool.h>
#include <stdint.h>

#define GI_LONGER	4	/* consecutive much longer times that raise the minimum */

struct gi_minimum {
	uint64_t ns;			/* 0: no time yet */
	uint64_t longer_ns;		/* minimum of the last consecutive much longer times */
	unsigned int longer;		/* how many these are */
};

/* Such a time says nothing yet. */
static inline bool gi_is_much_longer(const struct gi_minimum *m, uint64_t ns)
{
	return m->ns && ns >= 2 * m->ns;
}

/*
 * Updates the minimum with a new time and returns it. A time of at least twice the minimum means
 * that the kernel was interrupted, unless this happens GI_LONGER times in a row: then the kernel
 * may do more than before.
 */
static inline uint64_t gi_minimum_update(struct gi_minimum *m, uint64_t ns)
{
	if (gi_is_much_longer(m, ns)) {
		m->longer_ns = m->longer++ && m->longer_ns < ns ? m->longer_ns : ns;
		if (m->longer < GI_LONGER)
			return m->ns;
		ns = m->longer_ns;
	} else if (m->ns && m->ns < ns) {
		ns = (15 * m->ns + ns) / 16;
	}
	m->longer = 0;
	m->ns = ns;
	return ns;
}

#endif /* GI_MINIMUM_H */
