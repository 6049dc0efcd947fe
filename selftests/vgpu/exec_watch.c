// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What the blocks of one launch share for the sake of finding races in global memory: who touched
 * each word last, and what a block knew when it left a value at an address for others to see.
 */
#include <stdlib.h>
#include "exec_race.h"

#define PAGE_SHIFT	10
#define PAGE_CELLS	(1u << (PAGE_SHIFT - 2))

struct page {
	uint64_t number;
	struct page *next;
	struct cell cell[PAGE_CELLS];
};

struct left {
	uint64_t addr;
	struct left *next;
	uint32_t by, version;		/* who left something last: again the same is not looked
					 * at */
	uint32_t *row, n;		/* epoch of each block */
};

#define BUCKETS	4096

struct vgpu_watch {
	struct page *page[BUCKETS];
	struct left *left[BUCKETS];
	unsigned int (*ctaid)[3];
	uint32_t n, room;
	uint64_t memory;
	bool lost;			/* too much to follow */
};

struct vgpu_watch *vgpu_watch_new(void)
{
	return calloc(1, sizeof(struct vgpu_watch));
}

void vgpu_watch_free(struct vgpu_watch *w)
{
	unsigned int i;

	if (!w)
		return;
	for (i = 0; i < BUCKETS; i++) {
		struct page *p, *p_next;
		struct left *l, *l_next;

		for (p = w->page[i]; p; p = p_next) {
			p_next = p->next;
			free(p);
		}
		for (l = w->left[i]; l; l = l_next) {
			l_next = l->next;
			free(l->row);
			free(l);
		}
	}
	free(w->ctaid);
	free(w);
}

static unsigned int bucket(uint64_t v)
{
	return (unsigned int)(v * 0x9e3779b97f4a7c15ull >> 52) % BUCKETS;
}

static bool grow(uint32_t **row, uint32_t *n, uint32_t want)
{
	uint32_t room = *n ? *n : 16;
	uint32_t *r;

	if (want <= *n)
		return true;
	while (room < want)
		room *= 2;
	r = realloc(*row, room * sizeof(*r));
	if (!r)
		return false;
	memset(r + *n, 0, (room - *n) * sizeof(*r));
	*row = r;
	*n = room;
	return true;
}

bool watch_block(struct vgpu_watch *w, struct xorder *o, const unsigned int ctaid[3])
{
	if (!w || w->lost)
		return true;
	if (w->n == WATCH_BLOCKS) {
		w->lost = true;
		return true;
	}
	if (w->n + 1 >= w->room) {
		uint32_t room = w->room ? w->room * 2 : 64;
		unsigned int (*c)[3] = realloc(w->ctaid, room * sizeof(*c));

		if (!c)
			return false;
		w->ctaid = c;
		w->room = room;
	}
	o->watch = w;
	o->id = ++w->n;
	memcpy(w->ctaid[o->id], ctaid, sizeof(w->ctaid[0]));
	return true;
}

const unsigned int *watch_ctaid(const struct vgpu_watch *w, uint32_t block)
{
	return w->ctaid[block];
}

struct cell *watch_cell(struct xorder *o, uint64_t addr)
{
	struct vgpu_watch *w = o->watch;
	uint64_t number = addr >> PAGE_SHIFT;
	struct page *p = o->page;

	if (!w || w->lost)
		return NULL;
	if (!p || p->number != number) {
		struct page **at = &w->page[bucket(number)];

		for (p = *at; p && p->number != number; p = p->next)
			;
		if (!p) {
			p = w->memory < WATCH_MEMORY ? calloc(1, sizeof(*p)) : NULL;
			if (!p) {
				w->lost = true;
				return NULL;
			}
			w->memory += sizeof(*p);
			p->number = number;
			p->next = *at;
			*at = p;
		}
		o->page = p;
	}
	return &p->cell[addr >> 2 & (PAGE_CELLS - 1)];
}

static struct left *left_at(struct vgpu_watch *w, uint64_t addr)
{
	struct left *l;

	for (l = w->left[bucket(addr)]; l && l->addr != addr; l = l->next)
		;
	return l;
}

static bool publish(struct xorder *o, struct left *l)
{
	uint32_t i;

	if (!grow(&l->row, &l->n, o->id + 1 > o->n_seen ? o->id + 1 : o->n_seen))
		return false;
	for (i = 0; i < o->n_seen; i++)
		l->row[i] = l->row[i] > o->seen[i] ? l->row[i] : o->seen[i];
	l->row[o->id] = o->fenced;
	l->by = o->id;
	l->version = o->version;
	return true;
}

void watch_publish(struct xorder *o, uint64_t addr)
{
	struct vgpu_watch *w = o->watch;
	struct left *l;

	if (!w || w->lost)
		return;
	l = left_at(w, addr);
	if (!l && w->memory < WATCH_MEMORY) {
		l = calloc(1, sizeof(*l));
		if (l) {
			l->addr = addr;
			l->next = w->left[bucket(addr)];
			w->left[bucket(addr)] = l;
			w->memory += sizeof(*l) + w->n * sizeof(*l->row);
		}
	}
	if (!l || ((l->by != o->id || l->version != o->version) && !publish(o, l)))
		w->lost = true;
}

void watch_acquire(struct xorder *o, uint64_t addr)
{
	struct vgpu_watch *w = o->watch;
	const struct left *l;
	bool more = false;
	uint32_t i;

	if (!w || w->lost)
		return;
	l = left_at(w, addr);
	if (!l || (l->by == o->id && l->version == o->version))
		return;
	if (!grow(&o->seen, &o->n_seen, l->n)) {
		w->lost = true;
		return;
	}
	for (i = 0; i < l->n; i++) {
		more |= l->row[i] > o->seen[i];
		o->seen[i] = l->row[i] > o->seen[i] ? l->row[i] : o->seen[i];
	}
	o->version += more;
}
