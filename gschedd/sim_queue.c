// SPDX-License-Identifier: LGPL-2.1-or-later
/* gschedctl simulate: events in order of time, as a binary heap. */
#include <stdlib.h>
#include "sim_queue.h"

static bool is_before(const struct sim_event *a, const struct sim_event *b)
{
	return a->time != b->time ? a->time < b->time : a->order < b->order;
}

static bool make_room(struct sim_queue *queue)
{
	size_t size = queue->size ? 2 * queue->size : 64;
	struct sim_event *heap;

	if (queue->n < queue->size)
		return true;
	heap = realloc(queue->heap, size * sizeof(*heap));
	if (!heap) {
		queue->failed = true;
		return false;
	}
	queue->heap = heap;
	queue->size = size;
	return true;
}

static void heap_insert(struct sim_queue *queue, struct sim_event new)
{
	size_t i, up;

	for (i = queue->n++; i; i = up) {
		up = (i - 1) / 2;
		if (!is_before(&new, &queue->heap[up]))
			break;
		queue->heap[i] = queue->heap[up];
	}
	queue->heap[i] = new;
}

void sim_queue_add(struct sim_queue *queue, const struct sim_event *event)
{
	struct sim_event new = *event;

	if (!make_room(queue))
		return;
	new.order = queue->added++;
	heap_insert(queue, new);
}

void sim_queue_move(struct sim_queue *queue, enum sim_event_type type, struct sim_queue *to)
{
	size_t n = queue->n;

	queue->n = 0;
	for (size_t i = 0; i < n; i++) {
		struct sim_event ev = queue->heap[i];

		if (ev.type == type)
			sim_queue_add(to, &ev);
		else
			heap_insert(queue, ev);
	}
}

const struct sim_event *sim_queue_first(const struct sim_queue *queue)
{
	return queue->n ? queue->heap : NULL;
}

struct sim_event sim_queue_take(struct sim_queue *queue)
{
	struct sim_event first = queue->heap[0], last = queue->heap[--queue->n];
	size_t i = 0, down;

	for (; (down = 2 * i + 1) < queue->n; i = down) {
		if (down + 1 < queue->n && is_before(&queue->heap[down + 1], &queue->heap[down]))
			down++;
		if (!is_before(&queue->heap[down], &last))
			break;
		queue->heap[i] = queue->heap[down];
	}
	queue->heap[i] = last;
	return first;
}

void sim_queue_free(struct sim_queue *queue)
{
	free(queue->heap);
	*queue = (struct sim_queue){ 0 };
}
