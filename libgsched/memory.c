// SPDX-License-Identifier: LGPL-2.1-or-later
/* See memory.h */
#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <linux/gsched.h>
#include "memory.h"

#define DEVICES		64

struct device {
	uint8_t uuid[16];
	uint64_t bytes;
	bool seen;			/* something was allocated */
};

struct gsched_held {
	uint32_t client, object, parent;
	struct device *dev;
	uint64_t size;
	struct gsched_held *next;	/* of those that are being freed */
};

__thread bool gsched_memory_own;
int (*gsched_memory_changed)(const uint8_t uuid[16], uint64_t bytes, bool asks);

/*
 * Protects all below. Held while a change is told, since the arbiter must hear of changes in their
 * order.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct device devices[DEVICES];
static unsigned int n_devices;
static void *tree;			/* of struct gsched_held, by client and object */

/* NULL: too many. The lock is held. */
static struct device *find_device(const uint8_t *uuid)
{
	unsigned int i;

	for (i = 0; i < n_devices; i++)
		if (!memcmp(devices[i].uuid, uuid, sizeof(devices[i].uuid)))
			return &devices[i];
	if (n_devices == DEVICES)
		return NULL;
	memcpy(devices[n_devices].uuid, uuid, sizeof(devices[0].uuid));
	devices[n_devices].bytes = 0;
	devices[n_devices].seen = false;
	return &devices[n_devices++];
}

static int tell(const struct device *dev, uint64_t bytes, bool asks)
{
	return gsched_memory_changed ? gsched_memory_changed(dev->uuid, bytes, asks) : 0;
}

bool gsched_memory_charge(const uint8_t uuid[16], uint64_t size)
{
	struct device *dev;
	bool charged = true;

	pthread_mutex_lock(&lock);
	dev = find_device(uuid);
	if (dev) {
		dev->seen = true;
		charged = size <= GSCHED_MEMORY_MAX - dev->bytes &&
			  !tell(dev, dev->bytes + size, !gsched_memory_own);
		if (charged)
			dev->bytes += size;
	}
	pthread_mutex_unlock(&lock);
	return charged;
}

bool gsched_memory_seen(const uint8_t uuid[16])
{
	struct device *dev;
	bool seen;

	pthread_mutex_lock(&lock);
	dev = find_device(uuid);
	seen = dev && dev->seen;
	pthread_mutex_unlock(&lock);
	return seen;
}

static void uncharge(struct device *dev, uint64_t size)
{
	dev->bytes -= size < dev->bytes ? size : dev->bytes;
	tell(dev, dev->bytes, false);
}

void gsched_memory_uncharge(const uint8_t uuid[16], uint64_t size)
{
	struct device *dev;

	pthread_mutex_lock(&lock);
	dev = find_device(uuid);
	if (dev)
		uncharge(dev, size);
	pthread_mutex_unlock(&lock);
}

uint64_t gsched_memory_lock(const uint8_t uuid[16])
{
	struct device *dev;

	pthread_mutex_lock(&lock);
	dev = find_device(uuid);
	return dev ? dev->bytes : 0;
}

void gsched_memory_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

/* ---- objects ---- */

static int compare(const void *a, const void *b)
{
	const struct gsched_held *x = a, *y = b;

	if (x->client != y->client)
		return x->client < y->client ? -1 : 1;
	return x->object < y->object ? -1 : x->object > y->object;
}

/* The lock is held. One that cannot be recorded is given back, as nobody will see it freed. */
static void insert(struct gsched_held *held)
{
	struct gsched_held **found = tsearch(held, &tree, compare);

	if (found && *found == held)
		return;
	uncharge(held->dev, held->size);
	free(held);
}

void gsched_memory_add(uint32_t client, uint32_t parent, uint32_t object, const uint8_t uuid[16],
		       uint64_t size)
{
	struct gsched_held *held = malloc(sizeof(*held));

	if (!held) {
		gsched_memory_uncharge(uuid, size);
		return;
	}
	pthread_mutex_lock(&lock);
	*held = (struct gsched_held){
		.client = client, .object = object, .parent = parent, .dev = find_device(uuid),
		.size = size,
	};
	if (held->dev)
		insert(held);
	else
		free(held);
	pthread_mutex_unlock(&lock);
}

struct doomed {
	uint32_t client, object;
	struct gsched_held *first;
};

static void collect(const void *node, VISIT visit, void *arg)
{
	struct gsched_held *held = *(struct gsched_held *const *)node;
	struct doomed *d = arg;

	if ((visit != postorder && visit != leaf) || held->client != d->client ||
	    (d->object != d->client && held->object != d->object && held->parent != d->object))
		return;
	held->next = d->first;
	d->first = held;
}

struct gsched_held *gsched_memory_remove(uint32_t client, uint32_t object, bool all)
{
	const struct gsched_held key = { .client = client, .object = object };
	struct doomed doomed = { client, object, NULL };
	struct gsched_held **found, *held;

	pthread_mutex_lock(&lock);
	if (all) {
		twalk_r(tree, collect, &doomed);
	} else {
		found = tfind(&key, &tree, compare);
		if (found) {
			doomed.first = *found;
			doomed.first->next = NULL;
		}
	}
	for (held = doomed.first; held; held = held->next)
		tdelete(held, &tree, compare);
	pthread_mutex_unlock(&lock);
	return doomed.first;
}

void gsched_memory_removed(struct gsched_held *held, bool freed)
{
	struct gsched_held *next;

	if (!held)
		return;
	pthread_mutex_lock(&lock);
	for (; held; held = next) {
		next = held->next;
		if (!freed) {
			insert(held);
			continue;
		}
		uncharge(held->dev, held->size);
		free(held);
	}
	pthread_mutex_unlock(&lock);
}

/* The memory is the parent's. Nothing is freed, as another thread may have been in malloc(). */
static void after_fork(void)
{
	static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;

	memcpy(&lock, &unlocked, sizeof(lock));
	n_devices = 0;
	tree = NULL;
}

__attribute__((constructor)) static void start(void)
{
	pthread_atfork(NULL, NULL, after_fork);
}
