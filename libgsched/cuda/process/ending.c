// SPDX-License-Identifier: LGPL-2.1-or-later
/* Before the driver unloads code or destroys a context. */
#include <string.h>
#include "process/process.h"

#define CONTEXT_NS	5000000000ull	/* until a context's tasks are given up */
#define IMAGE_NS	60000000000ull	/* ... and those of a module or library */

/* Tasks end first, they may still need wings. */
void gi_unloading(void *handle)
{
	struct gi_image *image;
	struct gi_ctx *cx;
	bool over = true;

	pthread_mutex_lock(&gi_lock);
	image = gi_image_find(handle);
	pthread_mutex_unlock(&gi_lock);
	if (!image)
		return;
	cx = gi_current();
	if (cx && cx->client)
		over = gi_drain(cx->client, NULL, image, IMAGE_NS);
	pthread_mutex_lock(&gi_lock);
	/* twins that still run stay loaded */
	gi_twin_settle(image, NULL, !cx || !over);
	gi_image_drop(image, !cx || !over);
	pthread_mutex_unlock(&gi_lock);
}

/* Tasks end (or are given up after a while), then everything of ours in the context is released. */
static void take_down(struct gi_ctx *cx)
{
	struct gi_client *c = cx->client;
	CUcontext before = NULL;

	if (c) {
		gi_drain(c, cx, NULL, CONTEXT_NS);
		gi_pace_drop(c, cx);
		pthread_mutex_lock(&c->lock);
	}
	pthread_mutex_lock(&gi_lock);
	gi_real.cuCtxGetCurrent(&before);
	if (!gi_real.cuCtxSetCurrent(cx->handle)) {
		gi_twin_settle(NULL, cx, false);
		gi_save_release(cx);
		gi_ctx_release(cx);
	} else {
		gi_twin_settle(NULL, cx, true);
	}
	gi_real.cuCtxSetCurrent(before);
	gi_images_leave(cx);
	gi_ctx_forget(cx);
	pthread_mutex_unlock(&gi_lock);
	if (c)
		pthread_mutex_unlock(&c->lock);
}

static void ending(CUcontext handle)
{
	struct gi_ctx *cx;

	pthread_mutex_lock(&gi_lock);
	cx = gi_ctx_find(handle);
	pthread_mutex_unlock(&gi_lock);
	if (cx)
		take_down(cx);
}

void gi_ctx_ending(CUcontext handle)
{
	ending(handle);
	pthread_mutex_lock(&gi_lock);
	gi_images_drop(handle);
	pthread_mutex_unlock(&gi_lock);
}

/* Primary contexts are counted: the last release takes ours down, before the driver does it. */
#define DEVICES	64
static int retained[DEVICES];			/* gi_lock */
static CUcontext primary[DEVICES];

void gi_primary_retained(CUdevice dev)
{
	if (dev < 0 || dev >= DEVICES)
		return;
	pthread_mutex_lock(&gi_lock);
	retained[dev]++;
	pthread_mutex_unlock(&gi_lock);
}

bool gi_primary_ending(CUdevice dev, bool reset)
{
	CUcontext handle = NULL;
	unsigned int flags;
	int active = 0;
	bool last_one;

	if (dev < 0 || dev >= DEVICES)
		return false;
	pthread_mutex_lock(&gi_lock);
	last_one = reset || retained[dev] <= 1;
	if (!reset && retained[dev])
		retained[dev]--;
	pthread_mutex_unlock(&gi_lock);
	if (!last_one || gi_real.cuDevicePrimaryCtxGetState(dev, &flags, &active) || !active)
		return false;
	if (gi_real.cuDevicePrimaryCtxRetain(&handle, dev))
		return false;
	ending(handle);
	gi_real.cuDevicePrimaryCtxRelease_v2(dev);
	primary[dev] = handle;
	return true;
}

void gi_primary_ended(CUdevice dev)
{
	unsigned int flags;
	int active = 0;

	pthread_mutex_lock(&gi_lock);
	if (!gi_real.cuDevicePrimaryCtxGetState(dev, &flags, &active) && !active)
		gi_images_drop(primary[dev]);
	pthread_mutex_unlock(&gi_lock);
}

void gi_primary_reset(void)
{
	memset(retained, 0, sizeof(retained));
}
