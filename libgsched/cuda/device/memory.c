// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Device memory: what the process holds is reported to the arbiter, which is asked first where a
 * memory.max holds. libgsched/memory.c counts all but managed memory, which is counted here, in
 * full, as all of it may be moved to the device.
 */
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include "libgsched/transport.h"
#include "device/device.h"

struct gi_managed {
	CUdeviceptr p;
	size_t size;
	struct gi_client *client;
	CUcontext context;
	struct gi_managed *next;		/* of those that end with a context */
};

static pthread_mutex_t managed_lock = PTHREAD_MUTEX_INITIALIZER;
static void *managed;			/* a tree by address */
static _Atomic bool any_managed;	/* there was such memory */

/* ---- the arbiter ---- */

static struct gi_client *client_on(const uint8_t uuid[16])
{
	struct gi_client *c;

	for (c = gi_client_next(NULL); c; c = gi_client_next(c))
		if (c->g && !memcmp(c->gpu.bytes, uuid, sizeof(c->gpu.bytes)))
			return c;
	return NULL;
}

static bool is_limited(const struct gi_client *c)
{
	return gi_load(&c->arb->header.flags) & GSCHED_ARB_LIMITED;
}

/* Without an arbiter, or one that answers, nothing is refused. */
int gi_memory_changed(const uint8_t uuid[16], uint64_t bytes, bool asks)
{
	struct gi_client *c = client_on(uuid);
	int err = errno, rc = 0, cancel;

	if (!c)
		return 0;
	/* the caller has a lock */
	cancel = gi_cancel_disable();
	/* while counted here, the client keeps its arbiter and its pages, alive or dead */
	atomic_fetch_add(&c->inside, 1);
	if (!atomic_load(&c->gone) && gsched_memory(c->g, bytes, asks && is_limited(c), NULL))
		rc = errno == EDQUOT;
	if (rc)
		gi_why(c, "memory.max does not allow %llu bytes of device memory",
		       (unsigned long long)bytes);
	atomic_fetch_sub(&c->inside, 1);
	gi_cancel_restore(cancel);
	errno = err;
	return rc;
}

void gi_memory_attached(struct gi_client *c, bool first)
{
	uint64_t held;

	if (!c->g)
		return;
	held = gsched_memory_lock((const uint8_t *)c->gpu.bytes);
	if (first && is_limited(c) && gsched_memory(c->g, held, true, NULL) && errno == EDQUOT)
		c->no_room = true;
	gsched_memory(c->g, held, false, NULL);
	gsched_memory_unlock();
}

/*
 * The driver has made the process's first context on a device before there was a client to ask the
 * arbiter with, so that is refused afterwards.
 */
bool gi_memory_admits(CUcontext context)
{
	CUcontext before = NULL;
	struct gi_ctx *cx;

	gi_real.cuCtxGetCurrent(&before);
	if (before != context)
		gi_real.cuCtxSetCurrent(context);
	cx = gi_current_now();
	if (before != context)
		gi_real.cuCtxSetCurrent(before);
	if (!cx || !cx->client || !atomic_exchange(&cx->client->no_room, false))
		return true;
	gi_why(cx->client, "memory.max has no room for a context");
	return false;
}

void gi_memory_check(struct gi_client *c)
{
	if (c->memory_checked || !is_limited(c))
		return;
	c->memory_checked = true;
	if (!gsched_memory_seen((const uint8_t *)c->gpu.bytes))
		gi_why(c, "memory.max does not hold: the driver's allocations are not seen");
}

bool gi_memory_limits(struct gi_client *c, uint64_t *most, uint64_t *room)
{
	struct gsched_memory_info info = { .size = sizeof(info) };
	uint64_t held;
	int rc = -1, cancel;

	if (!c || !c->g || atomic_load(&c->exiting))
		return false;
	cancel = gi_cancel_disable();
	atomic_fetch_add(&c->inside, 1);
	if (!atomic_load(&c->gone) && is_limited(c)) {
		held = gsched_memory_lock((const uint8_t *)c->gpu.bytes);
		rc = gsched_memory(c->g, held, false, &info);
		gsched_memory_unlock();
	}
	atomic_fetch_sub(&c->inside, 1);
	gi_cancel_restore(cancel);
	if (rc || info.max == UINT64_MAX)
		return false;
	*most = info.max;
	*room = info.room;
	return true;
}

/* ---- managed memory ---- */

static int compare(const void *a, const void *b)
{
	const struct gi_managed *x = a, *y = b;

	return x->p < y->p ? -1 : x->p > y->p;
}

static void forget(struct gi_managed *m)
{
	gsched_memory_uncharge((const uint8_t *)m->client->gpu.bytes, m->size);
	free(m);
}

CUresult gi_managed_alloc(struct gi_ctx *cx, CUdeviceptr *p, size_t size, unsigned int flags)
{
	struct gi_client *c = cx ? cx->client : NULL;
	struct gi_managed *m, **found = NULL;
	CUresult rc;

	/* the driver has the right error for a size that none can be */
	if (!c || !c->g || size > GSCHED_MEMORY_MAX)
		return gi_real.cuMemAllocManaged(p, size, flags);
	m = malloc(sizeof(*m));
	if (!m || !gsched_memory_charge((const uint8_t *)c->gpu.bytes, size)) {
		free(m);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	rc = gi_real.cuMemAllocManaged(p, size, flags);
	if (!rc) {
		*m = (struct gi_managed){ .p = *p, .size = size, .client = c, .context = cx->handle };
		pthread_mutex_lock(&managed_lock);
		found = tsearch(m, &managed, compare);
		pthread_mutex_unlock(&managed_lock);
		atomic_store(&any_managed, true);
	}
	if (!found || *found != m) {
		gsched_memory_uncharge((const uint8_t *)c->gpu.bytes, size);
		free(m);
	}
	return rc;
}

struct gi_managed *gi_managed_freeing(CUdeviceptr p)
{
	struct gi_managed key = { .p = p }, **found, *m = NULL;

	if (!atomic_load_explicit(&any_managed, memory_order_relaxed))
		return NULL;
	pthread_mutex_lock(&managed_lock);
	found = tfind(&key, &managed, compare);
	if (found) {
		m = *found;
		tdelete(m, &managed, compare);
	}
	pthread_mutex_unlock(&managed_lock);
	return m;
}

void gi_managed_freed(struct gi_managed *m, bool freed)
{
	if (!m)
		return;
	if (!freed) {
		pthread_mutex_lock(&managed_lock);
		freed = !tsearch(m, &managed, compare);
		pthread_mutex_unlock(&managed_lock);
	}
	if (freed)
		forget(m);
}

struct ending {
	CUcontext context;
	struct gi_managed *first;
};

static void collect(const void *node, VISIT visit, void *arg)
{
	struct gi_managed *m = *(struct gi_managed *const *)node;
	struct ending *e = arg;

	if ((visit != postorder && visit != leaf) || m->context != e->context)
		return;
	m->next = e->first;
	e->first = m;
}

void gi_managed_forget(CUcontext context)
{
	struct ending ending = { .context = context };
	struct gi_managed *m;

	pthread_mutex_lock(&managed_lock);
	twalk_r(managed, collect, &ending);
	for (m = ending.first; m; m = m->next)
		tdelete(m, &managed, compare);
	pthread_mutex_unlock(&managed_lock);
	while ((m = ending.first)) {
		ending.first = m->next;
		forget(m);
	}
}

void gi_memory_reset(void)
{
	static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;

	memcpy(&managed_lock, &unlocked, sizeof(managed_lock));
	managed = NULL;
	any_managed = false;
}
