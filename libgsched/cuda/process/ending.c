// SPDX-License-Identifier: LGPL-2.1-or-later
/* What has to be done before the driver unloads code or destroys a context. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "launch/blocks.h"
#include "launch/timing.h"
#include "process/process.h"

#define CONTEXT_NS	5000000000ull	/* after which a context's tasks are given up */
#define IMAGE_NS	60000000000ull	/* ... and those of a module or library */

/* Drains tasks on all devices, whether the calling thread has a context or not. */
static bool drain_all(struct gi_image *image, uint64_t until)
{
	struct gi_client *c;
	bool over = true;

	pthread_mutex_lock(&gi_lock);
	c = gi_client_next(NULL);
	pthread_mutex_unlock(&gi_lock);
	for (; c; c = gi_client_next(c)) {
		uint64_t now = gi_now();

		gi_timings_drop(c);
		if (c->tasks)
			over = gi_tasks_drain(c, NULL, image, until > now ? until - now : 0) &&
			       over;
	}
	return over && gi_now() < until;
}

/* Tasks end first, because they may still need wings. */
void gi_unloading(void *handle)
{
	struct gi_image *image = gi_image_take(handle);
	uint64_t until = gi_now() + IMAGE_NS;
	bool over = true;
	int cancel;

	if (!image)
		return;
	cancel = gi_cancel_disable();
	/* a launch that looked up a function earlier may have no task yet */
	do {
		over = drain_all(image, until) && over;
	} while (over && gi_now() < until && !gi_image_unused(image) && !usleep(50));
	/* twins that may still run stay loaded */
	gi_image_drop(image, !over);
	gi_cancel_restore(cancel);
}

/*
 * Waits for the context's tasks, or gives them up after a while. Our memory, streams and registered
 * pages are freed with the context, because freeing pinned memory waits for all contexts of all
 * devices. Only if other contexts use these pages, they are registered again first.
 */
static void tear_down_context(struct gi_ctx *cx)
{
	struct gi_client *c = cx->client;
	int cancel = gi_cancel_disable();
	struct gi_waiting w = { 0 };
	CUcontext before = NULL;
	bool entered, shared;

	if (c) {
		gi_tasks_drain(c, cx, NULL, CONTEXT_NS);
		gi_pace_drop(c, cx);
		gi_blocks_drop(c, cx);
		gi_timings_drop(c);
	}
	gi_real.cuCtxGetCurrent(&before);
	entered = !gi_real.cuCtxSetCurrent(cx->handle);
	pthread_mutex_lock(&gi_lock);
	gi_funcs_drop(NULL, cx);
	pthread_mutex_unlock(&gi_lock);
	/* no lock held: it waits for the twin worker, and that for a task that may need a pass */
	gi_twin_unload(NULL, cx, !entered);
	pthread_mutex_lock(&gi_lock);
	shared = c && entered && gi_ctx_shares_pages(cx);
	pthread_mutex_unlock(&gi_lock);
	if (c && entered)
		gi_wait_begin(&w, shared ? GI_WAITS_ALL : GI_WAITS_DEVICE, NULL);
	if (c)
		pthread_mutex_lock(&c->lock);
	pthread_mutex_lock(&gi_lock);
	gi_images_drop_context(cx);
	/* another context may have been added */
	shared = c && entered && gi_ctx_shares_pages(cx);
	gi_ctx_forget(cx);
	pthread_mutex_unlock(&gi_lock);
	if (c)
		pthread_mutex_unlock(&c->lock);
	if (entered)
		gi_save_release(cx);
	gi_managed_forget(cx->handle);
	if (shared) {
		/* the driver waits here for other contexts' tasks, which may need wings */
		gi_ctx_unregister(cx);
		pthread_mutex_lock(&c->lock);
		pthread_mutex_lock(&gi_lock);
		if (!gi_contexts_follow(c))
			gi_client_gone(c, "the pages' registration went with a context");
		pthread_mutex_unlock(&gi_lock);
		pthread_mutex_unlock(&c->lock);
	}
	gi_wait_end(&w);
	gi_real.cuCtxSetCurrent(before);
	free(cx);
	gi_cancel_restore(cancel);
}

static void tear_down_handle(CUcontext handle)
{
	struct gi_ctx *cx;

	pthread_mutex_lock(&gi_lock);
	cx = gi_ctx_find(handle);
	pthread_mutex_unlock(&gi_lock);
	if (cx)
		tear_down_context(cx);
}

void gi_ctx_ending(CUcontext handle)
{
	tear_down_handle(handle);
	gi_images_drop(handle);
}

/*
 * Primary contexts are counted: our part is torn down before the driver's last release. A reset
 * ends what was retained before it. Too low a count costs time only: contexts are set up again. One
 * that a kernel has spoiled can be reset, but not retained, nor asked for its state.
 */
#define DEVICES	64
static int retained[DEVICES];			/* gi_lock */
static CUcontext primary[DEVICES];		/* the latest; gi_lock */

void gi_primary_retained(CUdevice dev, CUcontext handle)
{
	if (dev < 0 || dev >= DEVICES)
		return;
	pthread_mutex_lock(&gi_lock);
	retained[dev]++;
	primary[dev] = handle;
	pthread_mutex_unlock(&gi_lock);
}

bool gi_primary_ending(CUdevice dev, bool reset)
{
	CUcontext handle, known;
	bool last_one, held;
	unsigned int flags;
	int active = 0;

	if (dev < 0 || dev >= DEVICES)
		return false;
	pthread_mutex_lock(&gi_lock);
	last_one = reset || retained[dev] <= 1;
	if (reset)
		retained[dev] = 0;
	else if (retained[dev])
		retained[dev]--;
	known = primary[dev];
	pthread_mutex_unlock(&gi_lock);
	if (!last_one || (!gi_real.cuDevicePrimaryCtxGetState(dev, &flags, &active) && !active))
		return false;
	held = !gi_real.cuDevicePrimaryCtxRetain(&handle, dev);
	if (!held)
		handle = known;
	if (!handle)
		return false;
	tear_down_handle(handle);
	if (held)
		gi_real.cuDevicePrimaryCtxRelease_v2(dev);
	pthread_mutex_lock(&gi_lock);
	primary[dev] = handle;
	pthread_mutex_unlock(&gi_lock);
	return true;
}

void gi_primary_ended(CUdevice dev)
{
	unsigned int flags;
	CUcontext handle;
	int active = 0;

	pthread_mutex_lock(&gi_lock);
	handle = primary[dev];
	pthread_mutex_unlock(&gi_lock);
	if (!gi_real.cuDevicePrimaryCtxGetState(dev, &flags, &active) && !active)
		gi_images_drop(handle);
}

void gi_primary_reset(void)
{
	memset(retained, 0, sizeof(retained));
	memset(primary, 0, sizeof(primary));
}
