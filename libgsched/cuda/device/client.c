// SPDX-License-Identifier: LGPL-2.1-or-later
/* A process's connections to arbiters, one per device. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "libgsched/proto.h"
#include "libgsched/transport.h"
#include "device/device.h"

#define MPS_PIPE	"/tmp/nvidia-mps"	/* the driver's own default */
#define MPS_QUEUES	"4"

pthread_mutex_t gi_lock = PTHREAD_MUTEX_INITIALIZER;
struct gi_hot gi_hot = { .generation = 1 };

/*
 * The first client, and mostly the only one, lies on the page of gi_hot: in .data, as it is not all
 * zeros
 */
static struct gi_client first = { .dev = -1 };
static bool first_taken;	/* gi_lock; also by a process that this one was forked from */
bool (*gi_client_made)(struct gi_client *c);

static struct gi_client *clients;
/* written under gi_lock: clients that are not added yet */
static struct gi_client *clients_begun;

uint64_t gi_usage(const struct gi_client *c, uint64_t ns, uint64_t blocks, unsigned int m)
{
	uint64_t full = (uint64_t)c->sms * m;

	return ns * (blocks < full ? blocks : full) / m;
}

void gi_client_gone(struct gi_client *c, const char *why)
{
	if (!atomic_exchange(&c->gone, true))
		gi_why(c, "%s: running unmanaged", why);
}

/* Returns a connection that is attached to the device; NULL: none is available. */
static struct gsched *attach_device(struct gi_client *c, unsigned int *sms)
{
	struct gsched_attach_opts opts = { .size = sizeof(opts) };
	struct gsched_device_info info;
	struct gsched *g = gsched_open(NULL);
	struct gsched_slice slice;
	int mps = 0;

	if (!g) {
		gi_debug("no arbiter: %s%s", strerror(errno), errno == EACCES ?
			 "; be in the group of /dev/gsched: usermod -aG gsched USER, "
			 "then log in again" : "");
		return NULL;
	}
	gi_real.cuDeviceGetAttribute(&mps, CU_DEVICE_ATTRIBUTE_MPS_ENABLED, c->dev);
	c->mps = mps;
	c->activity = UINT_MAX;
	c->reported_prioritised = false;
	c->reported_block_us = 0;
	c->slice.groups = 0;
	opts.mps = mps;
	if (mps)
		opts.channel_group = gsched_slice_mps_group();
	else
		opts.slice = !gsched_slice_get((const uint8_t *)c->gpu.bytes, &slice);
	if (gsched_attach_with(g, (const unsigned char *)c->uuid.bytes, &opts, &info)) {
		gi_debug("the arbiter does not take this device: %s", strerror(errno));
		gsched_close(g);
		return NULL;
	}
	*sms = info.sms;
	return g;
}

static void use_connection(struct gi_client *c, struct gsched *g)
{
	c->g = g;
	c->arb = gsched_arb_page(g, NULL);
	c->cl = gsched_cl_page(g, NULL);
}

/*
 * Reconnects after the arbiter died or took the device away. The new arbiter has other pages, so
 * all users of the old ones must be done: launches that began before, and their tasks. The old
 * pages stay mapped and pinned, since others may still read them, and unpinning waits for the
 * device.
 */
bool gi_client_reconnect(struct gi_client *c)
{
	struct gsched *g, *old = c->g;
	unsigned int sms;
	bool good;

	g = attach_device(c, &sms);
	if (!g)
		return false;
	pthread_mutex_lock(&c->lock);
	pthread_mutex_lock(&gi_lock);
	good = sms == c->sms && !c->stop;
	if (good) {
		use_connection(c, g);
		good = gi_contexts_follow(c);
		if (!good)
			use_connection(c, old);
	}
	if (good) {
		old->arb = NULL;
		old->cl = NULL;
		atomic_store(&c->gone, false);
	}
	pthread_mutex_unlock(&gi_lock);
	pthread_mutex_unlock(&c->lock);
	gsched_close(good ? old : g);
	if (good) {
		gi_memory_attached(c, false);
		gi_debug("managed again");
	}
	return good;
}

static void disconnect_client(struct gi_client *c)
{
	gsched_close(c->g);
	c->g = NULL;
	c->arb = NULL;
	c->cl = NULL;
}

static bool connect_client(struct gi_client *c)
{
	struct gsched *g = attach_device(c, &c->sms);

	if (!g)
		return false;
	use_connection(c, g);
	if (c->sms && c->sms <= GSCHED_SMS_MAX)
		return true;
	disconnect_client(c);
	return false;
}

/*
 * By default, a client of an MPS server has two hardware queues for all its streams, and work in a
 * queue is blocked by a done gate there. Each queue costs a context 27 ms and 8 MB on an H200, so
 * few are requested, and gi_client.queues bounds the number of gates. Without MPS, no stream was
 * observed to be blocked by a gate, and none are requested.
 */
void gi_ask_for_queues(void)
{
	const char *socket = getenv("GSCHED_SOCKET"), *pipe = getenv("CUDA_MPS_PIPE_DIRECTORY");
	char control[PATH_MAX];

	if (snprintf(control, sizeof(control), "%s/control", pipe && *pipe ? pipe : MPS_PIPE) >=
		    (int)sizeof(control) || access(control, F_OK))
		return;
	if (!access(GSCHED_DEVICE_NODE, F_OK) ||
	    !access(socket && *socket ? socket : GSP_SOCKET_DEFAULT, F_OK))
		setenv("CUDA_DEVICE_MAX_CONNECTIONS", MPS_QUEUES, 0);
}

/*
 * A done gate blocks all streams of its hardware queue, and so does a wait for an event behind a
 * gate. A task's wings need a queue without either. With four or more queues, no stream was
 * observed to be blocked by another stream's gate (programs/waits.c); with fewer, half or all of
 * them were.
 */
static void count_queues(struct gi_client *c)
{
	uint64_t queues = gi_env("CUDA_DEVICE_MAX_CONNECTIONS", GSCHED_SLOTS);

	c->queues = queues > GSCHED_SLOTS ? GSCHED_SLOTS : queues;
	if (c->queues < GI_QUEUES_LEAST)
		gi_why(c, "CUDA_DEVICE_MAX_CONNECTIONS=%llu: tier launch, as wings need %d",
		       (unsigned long long)queues, GI_QUEUES_LEAST);
}

/*
 * For a MIG device, the newer call returns the device's own UUID, as the arbiter uses it, and the
 * older one that of its GPU.
 */
static bool read_uuids(struct gi_client *c)
{
	if (gi_real.cuDeviceGetUuid(&c->gpu, c->dev) && gi_real.cuDeviceGetUuid_v2(&c->gpu, c->dev))
		return false;
	if (gi_real.cuDeviceGetUuid_v2(&c->uuid, c->dev))
		c->uuid = c->gpu;
	return true;
}

static struct gi_client *find_in_list(struct gi_client *c, CUdevice dev)
{
	while (c && c->dev != dev)
		c = c->next;
	return c;
}

struct gi_client *gi_client_find(CUdevice dev)
{
	return find_in_list(clients, dev);
}

struct gi_client *gi_client_begin(CUdevice dev)
{
	struct gi_client *c;

	if (find_in_list(clients, dev) || find_in_list(clients_begun, dev))
		return NULL;
	c = first_taken ? aligned_alloc(_Alignof(struct gi_client), sizeof(*c)) : &first;
	if (!c)
		return NULL;
	first_taken = true;
	memset(c, 0, sizeof(*c));
	c->dev = dev;
	pthread_mutex_init(&c->lock, NULL);
	c->next = clients_begun;
	gi_store(&clients_begun, c);
	return c;
}

void gi_client_make(struct gi_client *c)
{
	int major = 0, minor = 0;

	c->always_resumable = gi_env("GSCHED_RESUMABLE_ALWAYS", 0);
	c->launch_blocking = gi_env("CUDA_LAUNCH_BLOCKING", 0);
	gi_real.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, c->dev);
	gi_real.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, c->dev);
	c->arch = major * 10 + minor;
	gi_real.cuDeviceTotalMem_v2(&c->memory, c->dev);
	gi_real.cuDeviceGetAttribute(&c->sm_shared,
				     CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
				     c->dev);
	gi_real.cuDeviceGetAttribute(&c->reserved,
				     CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, c->dev);
	if (!read_uuids(c))
		gi_debug("device without a UUID");
	else if (connect_client(c))
		gi_dispatch(c);
	if (c->g)
		count_queues(c);
	if (!gi_client_made(c) && c->g)
		disconnect_client(c);
}

void gi_client_add(struct gi_client *c)
{
	struct gi_client **p;

	for (p = &clients_begun; *p != c; p = &(*p)->next)
		;
	gi_store(p, c->next);
	c->next = clients;
	gi_store(&clients, c);
	gi_memory_attached(c, true);
}

bool gi_client_awaited(CUdevice dev)
{
	bool awaited;

	if (!gi_load(&clients_begun))
		return false;
	pthread_mutex_lock(&gi_lock);
	awaited = find_in_list(clients_begun, dev);
	pthread_mutex_unlock(&gi_lock);
	return awaited;
}

struct gi_client *gi_client_next(struct gi_client *c)
{
	return c ? c->next : gi_load(&clients);
}

void gi_client_reset(void)
{
	static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;

	memcpy(&gi_lock, &unlocked, sizeof(gi_lock));
	clients = NULL;
	clients_begun = NULL;
	atomic_fetch_add(&gi_hot.generation, 1);
}
