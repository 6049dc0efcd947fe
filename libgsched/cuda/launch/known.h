/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What kernels take by themselves, from times that others on the GPU may have made longer: the
 * minimum of each. It follows slowly if the kernel takes a little more.
 */
#ifndef GI_KNOWN_H
#define GI_KNOWN_H

#include <stdbool.h>
#include <stdint.h>

#define GI_KNOWN	2048	/* entries of a table */
#define GI_KNOWN_WAYS	8	/* its associativity */

struct gi_known {
	uint64_t key;			/* 0: unused */
	uint64_t ns;			/* 0: no time yet */
	uint64_t longer_ns;		/* minimum of the last consecutive much longer times */
	unsigned int longer;		/* how many these are */
	unsigned int seen;		/* the user's */
};

struct gi_known_table {
	struct gi_known of[GI_KNOWN];
	unsigned int next_victim;	/* evictions: chooses the next victim */
};

/* NULL: not seen yet, or evicted; or @key is 0. */
struct gi_known *gi_known_find(struct gi_known_table *t, uint64_t key);

/* A new entry, perhaps in another one's place. @key is in no entry, and not 0. */
struct gi_known *gi_known_add(struct gi_known_table *t, uint64_t key);

/* Such a time says nothing yet. */
bool gi_known_much_longer(const struct gi_known *k, uint64_t ns);

/*
 * Updates the minimum with a new time and returns it. A time of at least twice the minimum means
 * that the kernel was interrupted, unless this happens several times in a row: then the kernel may
 * do more than before.
 */
uint64_t gi_known_update(struct gi_known *k, uint64_t ns);

#endif /* GI_KNOWN_H */
