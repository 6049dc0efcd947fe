// SPDX-License-Identifier: LGPL-2.1-or-later
/* See managed.h */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "managed.h"

struct fake f;

static char device[64];
static pthread_t stirrer;
static _Atomic bool stirring;
static unsigned int seed = 1;

void device_begin(const char *test)
{
	snprintf(device, sizeof(device), "/dev/shm/gsched-%s-%d", test, (int)getpid());
	setenv("VGPU_NAME", device + strlen("/dev/shm/"), 1);
	setenv("VGPU_SMS", "8", 1);
	/* as many streams with gates as there are */
	setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
}

void device_end(void)
{
	char second[80];

	snprintf(second, sizeof(second), "%s.1", device);
	unlink(device);
	unlink(second);
}

void fake_begin(uint32_t lease)
{
	fake_start(&f);
	f.rewriter = real_rewriter;
	f.sms = 8;
	f.lease = lease;
}

static void *stir(void *arg)
{
	while (stirring) {
		unsigned int i;

		for (i = 0; i < GSCHED_SLOTS && f.cl; i++) {
			struct gsched_cl_slot *line = &f.cl->slot[i];
			uint32_t seq = line->seq;

			if (!seq || line->retired == seq)
				continue;
			fake_window(&f, i, rand_r(&seed) % (f.sms + 1) * GSCHED_CAPSM);
			fake_event(&f, GSCHED_EVENT_EVICT, i, seq, f.arb->slot[i].window);
		}
		usleep(rand_r(&seed) % 3000);
	}
	return NULL;
}

void stir_begin(void)
{
	stirring = true;
	pthread_create(&stirrer, NULL, stir, NULL);
}

void stir_end(void)
{
	stirring = false;
	pthread_join(stirrer, NULL);
}

bool becomes(const uint32_t *word, uint32_t least)
{
	unsigned int i;

	for (i = 0; i < PATIENCE_MS && __atomic_load_n(word, __ATOMIC_ACQUIRE) < least; i++)
		usleep(1000);
	return __atomic_load_n(word, __ATOMIC_ACQUIRE) >= least;
}

bool becomes_64(const __u64 *word, uint64_t least)
{
	unsigned int i;

	for (i = 0; i < PATIENCE_MS && __atomic_load_n(word, __ATOMIC_ACQUIRE) < least; i++)
		usleep(1000);
	return __atomic_load_n(word, __ATOMIC_ACQUIRE) >= least;
}

struct gsched_cl_slot *running_slot(void)
{
	unsigned int i;

	for (i = 0; i < GSCHED_SLOTS; i++)
		if (f.cl->slot[i].seq && f.cl->slot[i].retired != f.cl->slot[i].seq)
			return &f.cl->slot[i];
	return NULL;
}
