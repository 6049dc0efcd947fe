// SPDX-License-Identifier: LGPL-2.1-or-later
/* A process's connections to arbiters, one a device; and what becomes of them in a child. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "libgsched/slice.h"
#include "libgsched/transport.h"
#include "state.h"

pthread_mutex_t gi_lock = PTHREAD_MUTEX_INITIALIZER;
_Atomic unsigned int gi_generation = 1;
_Atomic int gi_captures;
_Atomic bool gi_green;

static struct gi_client *clients;

uint64_t gi_env(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);
	unsigned long long v;
	char *end;

	if (!text || !*text)
		return otherwise;
	errno = 0;
	v = strtoull(text, &end, 10);
	return errno || *end ? otherwise : v;
}

/* Why something is not managed: for gschedctl status. The last reason stays. */
void gi_why(struct gi_client *c, const char *fmt, ...)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	char text[sizeof(c->cl->header.why)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	gi_debug("%s", text);
	if (!c || !c->cl)
		return;
	pthread_mutex_lock(&lock);
	/* a reader may look at any time: it always finds an end */
	c->cl->header.why[0] = 0;
	memcpy(c->cl->header.why + 1, text + 1, sizeof(text) - 1);
	__atomic_store_n(&c->cl->header.why[0], text[0], __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
}

/* The arbiter adds these up when it cares: launches that only the page tells of. */
void gi_leased(struct gi_client *c, uint64_t ns, uint64_t blocks, unsigned int m)
{
	struct gsched_cl_header *h = &c->cl->header;
	uint64_t full = (uint64_t)c->sms * m;

	__atomic_fetch_add(&h->leased_tasks, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&h->leased_ns, ns, __ATOMIC_RELAXED);
	__atomic_fetch_add(&h->leased_usage, ns * (blocks < full ? blocks : full) / m, __ATOMIC_RELAXED);
}

void gi_client_gone(struct gi_client *c, const char *why)
{
	if (!atomic_exchange(&c->gone, true))
		gi_why(c, "%s: running unmanaged", why);
}

/* A connection that is attached to the device; NULL there is none to be had. */
static struct gsched *join(struct gi_client *c, unsigned int *sms)
{
	struct gsched_attach_opts opts = { .size = sizeof(opts) };
	struct gsched_device_info info;
	struct gsched *g = gsched_open(NULL);
	struct gsched_slice slice;
	int mps = 0;

	if (!g) {
		gi_debug("no arbiter: %s", strerror(errno));
		return NULL;
	}
	gi_real.cuDeviceGetAttribute(&mps, CU_DEVICE_ATTRIBUTE_MPS_ENABLED, c->dev);
	c->mps = mps;
	c->activity = UINT_MAX;
	c->told_prioritised = false;
	c->slice_groups = 0;
	opts.mps = mps;
	if (mps)
		opts.channel_group = gsched_slice_mps_group();
	else
		opts.slice = !gsched_slice_get((const uint8_t *)c->uuid.bytes, &slice);
	if (gsched_attach_with(g, (const unsigned char *)c->uuid.bytes, &opts, &info)) {
		gi_debug("the arbiter does not take this device: %s", strerror(errno));
		gsched_close(g);
		return NULL;
	}
	*sms = info.sms;
	return g;
}

static void use(struct gi_client *c, struct gsched *g)
{
	c->g = g;
	c->arb = gsched_arb_page(g, NULL);
	c->cl = gsched_cl_page(g, NULL);
}

/*
 * The arbiter died or took the device away; is there one now? Its pages are other ones, so whoever uses the old ones must
 * be done: the launches that began before it went, and their tasks. The old pages stay mapped and pinned: others may still
 * look at them, and unpinning waits for the device.
 */
void gi_client_reconnect(struct gi_client *c, uint64_t now)
{
	struct gsched *g, *old = c->g;
	unsigned int sms;
	bool good;

	if (now < c->next_try)
		return;
	c->next_try = now + GI_RECONNECT_NS;
	/* who comes in from here on finds us gone */
	if (atomic_load(&c->inside) || atomic_load(&c->free_mask) != ~0ull)
		return;
	g = join(c, &sms);
	if (!g)
		return;
	pthread_mutex_lock(&c->lock);
	pthread_mutex_lock(&gi_lock);
	good = sms == c->sms && !c->stop;
	if (good) {
		use(c, g);
		good = gi_contexts_follow(c);
		if (!good)
			use(c, old);
	}
	if (good) {
		old->arb = NULL;
		old->cl = NULL;
		atomic_store(&c->stuck_at, 0);
		atomic_store(&c->gone, false);
	}
	pthread_mutex_unlock(&gi_lock);
	pthread_mutex_unlock(&c->lock);
	gsched_close(good ? old : g);
	if (!good)
		return;
	gi_debug("managed again");
	/* what the new page asked for when it was made comes with no event */
	gi_agent_wake(c);
}

static bool connect_client(struct gi_client *c)
{
	struct gsched *g = join(c, &c->sms);

	if (!g)
		return false;
	use(c, g);
	if (!c->sms || c->sms > GSCHED_SMS_MAX)
		goto close;
	c->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->wake < 0)
		goto close;
	if (!gi_agent_start(c))
		return true;
	close(c->wake);
close:
	gsched_close(c->g);
	c->g = NULL;
	c->arb = NULL;
	c->cl = NULL;
	return false;
}

/* The child of a fork has no CUDA and no threads: it starts anew, and must not keep the parent's connections open. */
static void after_fork(void)
{
	static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
	struct gi_client *c;

	memcpy(&gi_lock, &unlocked, sizeof(gi_lock));
	for (c = clients; c; c = c->next) {
		if (!c->g)
			continue;
		close(c->wake);
		gsched_abandon(c->g);
	}
	clients = NULL;
	atomic_fetch_add(&gi_generation, 1);
	atomic_store(&gi_captures, 0);
	gi_context_reset();
	gi_image_reset();
	gi_link_reset();
	gi_func_reset();
	gi_twin_reset();
	gi_references_reset();
}

/* The driver goes away in exit: the agents must not call it any more. */
static void at_exit(void)
{
	struct gi_client *c;

	pthread_mutex_lock(&gi_lock);
	c = clients;
	pthread_mutex_unlock(&gi_lock);
	for (; c; c = c->next) {
		if (!c->g)
			continue;
		pthread_mutex_lock(&c->lock);
		c->stop = true;
		pthread_mutex_unlock(&c->lock);
		gi_agent_wake(c);
	}
}

static void hooks(void)
{
	pthread_atfork(NULL, NULL, after_fork);
	atexit(at_exit);
}

struct gi_client *gi_client_get(CUdevice dev)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct gi_client *c;
	int major = 0, minor = 0;

	for (c = clients; c; c = c->next)
		if (c->dev == dev)
			return c;
	pthread_once(&once, hooks);
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->dev = dev;
	pthread_mutex_init(&c->lock, NULL);
	gi_pace_init(&c->pacer);
	atomic_store(&c->free_mask, ~0ull);
	gi_real.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, dev);
	gi_real.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, dev);
	c->arch = major * 10 + minor;
	gi_real.cuDeviceGetAttribute(&c->sm_shared, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, dev);
	gi_real.cuDeviceGetAttribute(&c->reserved, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, dev);
	if (gi_real.cuDeviceGetUuid_v2(&c->uuid, dev) && gi_real.cuDeviceGetUuid(&c->uuid, dev))
		gi_debug("device without a UUID");
	else if (connect_client(c))
		gi_dispatch(c);
	c->next = clients;
	gi_store(&clients, c);
	return c;
}
