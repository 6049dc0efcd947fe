// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Save areas: device memory where resumable twins keep suspended block-tasks (struct gsr_save and
 * its records). A task has an area for itself while it runs, wings included; the context keeps it
 * for later tasks. No area is freed before the context is destroyed, because freeing waits for the
 * device. If no area is available, the task's block-tasks are not suspended.
 *
 * The areas of a context take at most 1/SHARE of the device's memory. Where the records of a full
 * launch are more than that, there are fewer on each SM, and where one on each is more, the form is
 * not used.
 */
#include <stddef.h>
#include "task/task.h"

#define SHARE	32

size_t gi_save_stride(const struct gi_form *form, const unsigned int block[3], size_t shared)
{
	return gsr_save_stride(&form->kernel, (size_t)block[0] * block[1] * block[2], shared);
}

unsigned int gi_save_records(struct gi_client *c, size_t stride, unsigned int most)
{
	size_t room = c->memory / SHARE, n;

	n = room > sizeof(struct gsr_save) ?
		    (room - sizeof(struct gsr_save)) / stride / c->sms :
		    0;
	if (!n)
		gi_why(c,
		       "block-tasks are too large to suspend: %zu MiB for one on each SM, more "
		       "than 1/%d of the device's memory",
		       (stride * c->sms) >> 20, SHARE);
	return n < most ? (unsigned int)n : most;
}

/*
 * Returns the smallest free area that is large enough, else an entry without memory, else NULL.
 * save_lock is held.
 */
static struct gi_save *find_area(struct gi_ctx *cx, size_t size)
{
	struct gi_save *best = NULL, *unused = NULL;
	unsigned int i;
	size_t most;

	for (i = 0; i < GSCHED_SLOTS; i++) {
		struct gi_save *save = &cx->save[i];

		if (save->state == GI_SAVE_FREE && !save->size)
			unused = save;
		else if (save->state == GI_SAVE_FREE && save->size >= size &&
			 (!best || save->size < best->size))
			best = save;
	}
	if (best || !unused)
		return best;
	most = cx->client->memory / SHARE;
	return size > most || cx->saved > most - size ? NULL : unused;
}

/* Another stream may be captured meanwhile, by any thread: this must not end its capture. */
static bool allocate(struct gi_save *save, size_t size)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUresult rc;

	gi_real.cuThreadExchangeStreamCaptureMode(&mode);
	rc = gi_real.cuMemAlloc_v2(&save->memory, size);
	gi_real.cuThreadExchangeStreamCaptureMode(&mode);
	return !rc;
}

void gi_save_take(struct gi_slot *s, size_t size)
{
	struct gi_ctx *cx = s->cx;
	struct gi_save *save;
	bool fresh;

	pthread_mutex_lock(&cx->save_lock);
	save = find_area(cx, size);
	fresh = save && !save->size;
	if (save)
		save->state = GI_SAVE_TAKEN;
	if (fresh) {
		save->size = size;
		save->zeroed = false;
		cx->saved += size;
	}
	pthread_mutex_unlock(&cx->save_lock);
	if (fresh && !allocate(save, size)) {
		pthread_mutex_lock(&cx->save_lock);
		*save = (struct gi_save){ .state = GI_SAVE_FREE };
		cx->saved -= size;
		pthread_mutex_unlock(&cx->save_lock);
		save = NULL;
	}
	s->save = save;
	if (!save)
		gi_why(cx->client, "no device memory (%zu MiB) to suspend block-tasks in",
		       size >> 20);
}

void gi_save_put(struct gi_slot *s, bool lost)
{
	struct gi_save *save = s->save;

	if (!save)
		return;
	s->save = NULL;
	pthread_mutex_lock(&s->cx->save_lock);
	save->state = lost ? GI_SAVE_LOST : GI_SAVE_FREE;
	pthread_mutex_unlock(&s->cx->save_lock);
}

void gi_save_release(struct gi_ctx *cx)
{
	unsigned int i;

	for (i = 0; i < GSCHED_SLOTS; i++)
		if (cx->save[i].memory)
			gi_real.cuMemFree_v2(cx->save[i].memory);
}
