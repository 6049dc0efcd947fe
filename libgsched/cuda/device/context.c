// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Contexts: the client's pages as mapped on the GPU, control blocks, the agent's streams. A context
 * is known from the first launch or load in it, prepared for its first task, and released before
 * the program destroys it (process/ending.c).
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "device/device.h"

#define AWAIT_US	500	/* poll interval while another thread attaches */

static struct gi_ctx *contexts;			/* gi_lock */

__thread struct gi_last gi_last;

/* Registers both pages once per client, as portable memory, which all its contexts can access. */
static bool register_pages(struct gi_client *c, struct gi_ctx *cx)
{
	const unsigned int flags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
	void *arb = (void *)c->arb;
	struct gi_ctx *other;
	CUresult rc;

	for (other = contexts; other; other = other->next)
		if (other->client == c && other->owns_pages)
			return true;
	rc = gi_real.cuMemHostRegister_v2(arb, sizeof(*c->arb),
					  flags | CU_MEMHOSTREGISTER_READ_ONLY);
	if (rc)
		rc = gi_real.cuMemHostRegister_v2(arb, sizeof(*c->arb), flags);
	if (rc) {
		gi_why(c, "the driver does not pin the arbiter's page (error %d): "
		       "running unmanaged", rc);
		return false;
	}
	rc = gi_real.cuMemHostRegister_v2(c->cl, sizeof(*c->cl), flags);
	if (rc) {
		gi_real.cuMemHostUnregister(arb);
		gi_why(c, "the driver does not pin the client's page (error %d): running unmanaged",
		       rc);
		return false;
	}
	cx->owns_pages = true;
	return true;
}

static void unregister_pages(struct gi_client *c, struct gi_ctx *cx)
{
	if (!cx->owns_pages)
		return;
	gi_real.cuMemHostUnregister((void *)c->arb);
	gi_real.cuMemHostUnregister(c->cl);
	cx->owns_pages = false;
}

/* Undoes prepare_context(). */
static void release_resources(struct gi_ctx *cx)
{
	unsigned int i;

	for (i = 0; i < GI_WING_STREAMS; i++) {
		if (cx->wing_stream[i])
			gi_real.cuStreamDestroy_v2(cx->wing_stream[i]);
		cx->wing_stream[i] = NULL;
	}
	if (cx->clean_stream)
		gi_real.cuStreamDestroy_v2(cx->clean_stream);
	if (cx->recall_stream)
		gi_real.cuStreamDestroy_v2(cx->recall_stream);
	if (cx->control)
		gi_real.cuMemFree_v2(cx->control);
	if (cx->ranges)
		gi_real.cuMemFree_v2(cx->ranges);
	if (cx->blank)
		gi_real.cuMemFreeHost(cx->blank);
	cx->clean_stream = cx->recall_stream = NULL;
	cx->control = cx->ranges = 0;
	cx->blank = NULL;
	cx->recall = NULL;
	if (cx->client)
		unregister_pages(cx->client, cx);
}

/* Unregistering waits for all contexts, also of other devices; destroying this one does not. */
bool gi_ctx_shares_pages(const struct gi_ctx *cx)
{
	const struct gi_ctx *other;

	for (other = contexts; other; other = other->next)
		if (other != cx && other->client == cx->client)
			return cx->owns_pages;
	return false;
}

void gi_ctx_unregister(struct gi_ctx *cx)
{
	unregister_pages(cx->client, cx);
}

/* gi_lock held */
static CUresult make_words(struct gi_ctx *cx)
{
	CUresult rc;
	void *host;

	if (cx->words)
		return CUDA_SUCCESS;
	rc = gi_real.cuMemHostAlloc(&host, sizeof(*cx->words), CU_MEMHOSTALLOC_DEVICEMAP);
	if (rc)
		return rc;
	rc = gi_real.cuMemHostGetDevicePointer_v2(&cx->words_dev, host, 0);
	if (rc) {
		gi_real.cuMemFreeHost(host);
		return rc;
	}
	memset(host, 0, sizeof(*cx->words));
	gi_store(&cx->words, host);
	return CUDA_SUCCESS;
}

/* gi_lock held */
static bool prepare_context(struct gi_ctx *cx)
{
	const size_t bytes = GSCHED_SLOTS * sizeof(struct gsr_control);
	struct gi_client *c = cx->client;
	CUstreamBatchMemOpParams op = { 0 };
	void *host;
	int i;
	CUresult rc;

	if (!register_pages(c, cx))
		return false;
	rc = gi_real.cuMemHostGetDevicePointer_v2(&cx->arb, (void *)c->arb, 0);
	rc = rc ? rc : gi_real.cuMemHostGetDevicePointer_v2(&cx->cl, c->cl, 0);
	rc = rc ? rc : gi_real.cuMemAlloc_v2(&cx->control, bytes);
	rc = rc ? rc : gi_real.cuMemHostAlloc(&host, bytes + sizeof(struct gsr_save) +
					      sizeof(*cx->recall), CU_MEMHOSTALLOC_PORTABLE);
	if (rc)
		goto fail;
	cx->blank = host;
	memset(cx->blank, 0, bytes + sizeof(struct gsr_save));
	for (i = 0; i < GSCHED_SLOTS; i++)
		gsr_control_init(&cx->blank[i], c->sms * GSCHED_CAPSM);
	cx->recall = (void *)((char *)host + bytes + sizeof(struct gsr_save));
	*cx->recall = (struct gi_recall){ .next_poll = UINT64_MAX };
	rc = make_words(cx);
	rc = rc ? rc : gi_real.cuStreamCreateWithPriority(&cx->clean_stream,
							  CU_STREAM_NON_BLOCKING, cx->least);
	/* what is sent through it must not wait in a hardware queue behind a wing */
	rc = rc ? rc : gi_real.cuStreamCreateWithPriority(&cx->recall_stream,
							  CU_STREAM_NON_BLOCKING, cx->greatest);
	/*
	 * Wings must not queue behind blocks of less important programs, whose priority is below
	 * that of the tasks' streams. They yield to streams that the program itself prefers.
	 */
	cx->wing_priority = gi_stream_priority(cx, cx->least);
	for (i = 0; i < GI_WING_STREAMS && !rc; i++)
		rc = gi_real.cuStreamCreateWithPriority(&cx->wing_stream[i],
							CU_STREAM_NON_BLOCKING,
							cx->wing_priority);
	if (rc)
		goto fail;
	/* clean all blocks, and check that streams can write words at all */
	rc = gi_real.cuMemcpyHtoDAsync_v2(cx->control, cx->blank, bytes, cx->clean_stream);
	op.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	op.writeValue.address = cx->words_dev + offsetof(struct gi_words, cleaned);
	op.writeValue.value = cx->clean_ticket = 1;
	rc = rc ? rc : gi_real.cuStreamBatchMemOp_v2(cx->clean_stream, 1, &op, 0);
	if (rc)
		goto fail;
	cx->cleaning = ~0ull;
	if (!gi_ranges_new(cx))
		gi_why(c, "no device memory for static ranges: block-tasks are handed "
		       "out by a counter");
	return true;

fail:
	gi_why(c, "setting up a context failed (error %d): its launches are not managed", rc);
	release_resources(cx);
	return false;
}

/*
 * Done only when a task needs it: streams, pinned memory and registered pages cost a program some
 * tenths of a second, and most programs need none of them. These calls must not become part of a
 * capture.
 */
bool gi_ctx_prepare(struct gi_ctx *cx)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	int state = atomic_load_explicit(&cx->prepared, memory_order_acquire);

	if (state != GI_UNPREPARED)
		return state == GI_PREPARED;
	gi_real.cuThreadExchangeStreamCaptureMode(&mode);
	pthread_mutex_lock(&gi_lock);
	if (cx->prepared == GI_UNPREPARED) {
		bool own = gi_own_memory(true);

		atomic_store_explicit(&cx->prepared,
				      prepare_context(cx) ? GI_PREPARED : GI_PREPARE_FAILED,
				      memory_order_release);
		gi_own_memory(own);
	}
	pthread_mutex_unlock(&gi_lock);
	gi_real.cuThreadExchangeStreamCaptureMode(&mode);
	return cx->prepared == GI_PREPARED;
}

void gi_ctx_words(struct gi_ctx *cx)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	if (gi_load(&cx->words))
		return;
	gi_real.cuThreadExchangeStreamCaptureMode(&mode);
	pthread_mutex_lock(&gi_lock);
	make_words(cx);
	pthread_mutex_unlock(&gi_lock);
	gi_real.cuThreadExchangeStreamCaptureMode(&mode);
}

/* gi_lock held */
static void set_up_context(struct gi_ctx *cx, struct gi_client *c)
{
	gi_real.cuCtxGetStreamPriorityRange(&cx->least, &cx->greatest);
	cx->client = c;
	/* invalidates the threads' cached lookups, which have no client */
	atomic_fetch_add(&gi_hot.generation, 1);
}

/*
 * Sets up contexts that were created while there was no arbiter. Older contexts keep everything but
 * the addresses of the pages; the old pages stay registered until their context is destroyed.
 */
bool gi_contexts_follow(struct gi_client *c)
{
	struct gi_ctx *cx, *owned = NULL;
	CUdeviceptr arb, cl;
	CUcontext before = NULL;
	bool good = true;

	gi_real.cuCtxGetCurrent(&before);
	for (cx = contexts; cx; cx = cx->next) {
		if (cx->client == c && cx->owns_pages)
			owned = cx;
		if (cx->client == c)
			cx->owns_pages = false;
	}
	for (cx = contexts; cx && good; cx = cx->next) {
		if (cx->dev != c->dev || cx->broken || (cx->client && cx->client != c) ||
		    gi_real.cuCtxSetCurrent(cx->handle))
			continue;
		if (!cx->client) {
			set_up_context(cx, c);
			continue;
		}
		if (cx->prepared != GI_PREPARED)
			continue;
		good = register_pages(c, cx) &&
		       !gi_real.cuMemHostGetDevicePointer_v2(&arb, (void *)c->arb, 0) &&
		       !gi_real.cuMemHostGetDevicePointer_v2(&cl, c->cl, 0);
		if (good) {
			cx->arb = arb;
			cx->cl = cl;
		}
	}
	for (cx = contexts; cx && !good; cx = cx->next)
		if (cx->client == c && cx->owns_pages && !gi_real.cuCtxSetCurrent(cx->handle))
			unregister_pages(c, cx);
	if (!good && owned)
		owned->owns_pages = true;
	gi_real.cuCtxSetCurrent(before);
	return good;
}

struct gi_ctx *gi_ctx_next(struct gi_ctx *cx)
{
	return cx ? cx->next : contexts;
}

struct gi_ctx *gi_ctx_find(CUcontext handle)
{
	struct gi_ctx *cx;

	for (cx = contexts; cx; cx = cx->next)
		if (cx->handle == handle)
			break;
	return cx;
}

/* gi_lock held. *@made: the device's client, if the caller has to make it. */
static struct gi_ctx *add_context(CUcontext handle, struct gi_client **made)
{
	struct gi_client *c;
	struct gi_ctx *cx;
	CUdevice dev;

	if (gi_real.cuCtxGetDevice(&dev))
		return NULL;
	cx = calloc(1, sizeof(*cx));
	if (!cx)
		return NULL;
	cx->handle = handle;
	cx->dev = dev;
	pthread_mutex_init(&cx->save_lock, NULL);
	*made = gi_client_begin(dev);
	c = gi_client_find(dev);
	if (c && c->g && !atomic_load(&c->gone))
		set_up_context(cx, c);
	cx->next = contexts;
	contexts = cx;
	return cx;
}

/* gi_lock held. Sets up the contexts that were created before their client. */
static void set_up_older_contexts(struct gi_client *c)
{
	CUcontext before = NULL;
	struct gi_ctx *cx;

	if (!c->g || atomic_load(&c->gone))
		return;
	gi_real.cuCtxGetCurrent(&before);
	for (cx = contexts; cx; cx = cx->next)
		if (cx->dev == c->dev && !cx->client && !gi_real.cuCtxSetCurrent(cx->handle))
			set_up_context(cx, c);
	gi_real.cuCtxSetCurrent(before);
}

static struct gi_ctx *look_up_context(CUcontext handle)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	struct gi_client *made = NULL;
	int cancel = gi_cancel_disable();
	struct gi_ctx *cx;

	/* our calls must not become part of a capture */
	gi_real.cuThreadExchangeStreamCaptureMode(&mode);
	pthread_mutex_lock(&gi_lock);
	cx = gi_ctx_find(handle);
	if (!cx)
		cx = add_context(handle, &made);
	pthread_mutex_unlock(&gi_lock);
	if (made) {
		gi_client_make(made);
		pthread_mutex_lock(&gi_lock);
		gi_client_add(made);
		set_up_older_contexts(made);
		/* the context may have been destroyed meanwhile */
		cx = gi_ctx_find(handle);
		pthread_mutex_unlock(&gi_lock);
	}
	gi_real.cuThreadExchangeStreamCaptureMode(&mode);
	gi_cancel_restore(cancel);
	return cx;
}

struct gi_ctx *gi_current_now(void)
{
	unsigned int generation = atomic_load_explicit(&gi_hot.generation, memory_order_acquire);
	CUcontext handle = NULL;
	struct gi_ctx *cx;

	if (gi_real.cuCtxGetCurrent(&handle) || !handle)
		return NULL;
	if (gi_last.handle == handle && gi_last.generation == generation)
		return gi_last.cx;
	cx = look_up_context(handle);
	gi_last.handle = handle;
	gi_last.generation = generation;
	gi_last.cx = cx;
	gi_last.client = cx ? cx->client : NULL;
	return cx;
}

struct gi_ctx *gi_current(void)
{
	struct gi_ctx *cx = gi_current_now();

	while (cx && !cx->client && gi_client_awaited(cx->dev))
		usleep(AWAIT_US);
	return cx;
}

void gi_ctx_forget(struct gi_ctx *cx)
{
	struct gi_ctx **p;

	for (p = &contexts; *p; p = &(*p)->next) {
		if (*p != cx)
			continue;
		*p = cx->next;
		break;
	}
	atomic_fetch_add(&gi_hot.generation, 1);
	gi_streams_forget(cx);
}

void gi_context_reset(void)
{
	contexts = NULL;
	/* a launch looks at the client's pages first, which the child does not have */
	gi_last = (struct gi_last){ 0 };
}
