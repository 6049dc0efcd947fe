// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * malloc and free of kernels: one heap of the process, whose memory every later kernel may use
 * until it is freed.
 */
#include <stdlib.h>
#include "exec_priv.h"

size_t vgpu_heap_limit = 8 << 20;

struct piece {
	struct piece *next;
	size_t size;
	uint8_t *data;
};

static struct piece *pieces;
static size_t used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* 0: the heap is used up. What new memory holds is garbage */
uint64_t heap_alloc(const struct vgpu_block *b, uint64_t size)
{
	struct piece *p;

	if (!size || size > SIZE_MAX / 2)
		return 0;
	size = (size + 15) & ~15ull;
	p = malloc(sizeof(*p));
	if (!p)
		return 0;
	pthread_mutex_lock(&lock);
	p->data = used + size <= vgpu_heap_limit ? aligned_alloc(16, size) : NULL;
	if (p->data) {
		p->size = size;
		p->next = pieces;
		pieces = p;
		used += size;
	}
	pthread_mutex_unlock(&lock);
	if (!p->data) {
		free(p);
		return 0;
	}
	poison_fill(b, p->data, size, b->clock);
	/* cppcheck-suppress memleak ; the list has it */
	return (uintptr_t)p->data;
}

/* false: nothing that was allocated begins there */
bool heap_free(uint64_t addr)
{
	struct piece **p, *found;

	if (!addr)
		return true;
	pthread_mutex_lock(&lock);
	for (p = &pieces; *p && (uintptr_t)(*p)->data != addr; p = &(*p)->next)
		;
	found = *p;
	if (found) {
		*p = found->next;
		used -= found->size;
	}
	pthread_mutex_unlock(&lock);
	if (found) {
		free(found->data);
		free(found);
	}
	return found;
}

bool heap_covers(uint64_t addr, size_t size)
{
	const struct piece *p;
	bool ok = false;

	pthread_mutex_lock(&lock);
	for (p = pieces; p && !ok; p = p->next)
		ok = addr - (uintptr_t)p->data < p->size &&
		     size <= p->size - (addr - (uintptr_t)p->data);
	pthread_mutex_unlock(&lock);
	return ok;
}
