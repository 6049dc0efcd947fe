// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The device memory of a process (libgsched/memory.c), as the wrapper around ioctl() sees it
 * allocated and freed: what is counted, what is refused, and what is told of it.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "fake-rm.h"
#include "libgsched/memory.h"
#include "selftests/tap.h"

#define ROOT		0xc1d00001u
#define OTHER		0xc1d00002u	/* another client of the resource manager */
#define DEVICE		0x5c000002u
#define SUBDEVICE	0x5c000003u
#define SECOND		0x5c000004u	/* another GPU */
#define SECOND_SUB	0x5c000005u
#define MEMORY		0x40
#define MIB		(1ull << 20)
#define NO_MEMORY	0x51

static int node;
static uint8_t gpu[16], second[16];
static uint64_t told, most = UINT64_MAX;
static unsigned int n_told, n_asked;

static int changed(const uint8_t uuid[16], uint64_t bytes, bool asks)
{
	n_told++;
	n_asked += asks;
	if (asks && bytes > most)
		return -1;
	if (!memcmp(uuid, gpu, 16))
		told = bytes;
	return 0;
}

static uint64_t held(const uint8_t uuid[16])
{
	uint64_t bytes = gsched_memory_lock(uuid);

	gsched_memory_unlock();
	return bytes;
}

/* ---- what libcuda does ---- */

struct params {
	uint32_t head[12];
	uint64_t range[2], size;
	uint8_t tail[56];
};
_Static_assert(sizeof(struct params) == 128, "as the driver has it");

/* @driver: the status that it answers with. Returns what libcuda sees. */
static uint32_t alloc(uint32_t root, uint32_t parent, uint32_t object, uint32_t class,
		      uint64_t size, uint32_t driver)
{
	struct params p = { .size = size };
	uint32_t a[12] = { root, parent, object, class, [10] = driver };
	uint64_t at = (uintptr_t)&p;

	memcpy(a + 4, &at, sizeof(at));
	if (ioctl(node, _IOC(_IOC_READ | _IOC_WRITE, 'F', 0x2b, 48), a))
		return UINT32_MAX;
	return a[10];
}

/* The older form of the same call */
static uint32_t alloc32(uint32_t object, uint64_t size)
{
	struct params p = { .size = size };
	uint32_t a[8] = { ROOT, DEVICE, object, MEMORY };
	uint64_t at = (uintptr_t)&p;

	memcpy(a + 4, &at, sizeof(at));
	if (ioctl(node, _IOC(_IOC_READ | _IOC_WRITE, 'F', 0x2b, 32), a))
		return UINT32_MAX;
	return a[7];
}

static void free_object(uint32_t root, uint32_t object, uint32_t driver)
{
	uint32_t a[4] = { root, DEVICE, object, driver };

	ioctl(node, _IOC(_IOC_READ | _IOC_WRITE, 'F', 0x29, 16), a);
}

static void set_up(void)
{
	alloc(ROOT, ROOT, DEVICE, 0x80, 0, 0);
	alloc(ROOT, DEVICE, SUBDEVICE, 0x2080, 0, 0);
	alloc(ROOT, ROOT, SECOND, 0x80, 0, 0);
	alloc(ROOT, SECOND, SECOND_SUB, 0x2080, 0, 0);
	alloc(OTHER, OTHER, DEVICE, 0x80, 0, 0);
	alloc(OTHER, DEVICE, SUBDEVICE, 0x2080, 0, 0);
	memset(gpu, SUBDEVICE & 0xff, sizeof(gpu));
	memset(second, SECOND_SUB & 0xff, sizeof(second));
}

static void counts(void)
{
	unsigned int calls = fake_rm.calls;

	ok(!alloc(ROOT, DEVICE, 0x100, MEMORY, 2 * MIB, 0), "memory is allocated");
	ok(fake_rm.calls > calls && held(gpu) == 2 * MIB && told == 2 * MIB && n_asked == 1,
	   "it is asked for, and counted");
	ok(!alloc32(0x101, 4 * MIB), "by the older form of the call, too");
	ok(held(gpu) == 6 * MIB && told == 6 * MIB, "it is counted");
	ok(!alloc(ROOT, SECOND, 0x102, MEMORY, 8 * MIB, 0), "on another GPU");
	ok(held(second) == 8 * MIB && held(gpu) == 6 * MIB, "each counts its own");
	ok(!alloc(OTHER, DEVICE, 0x100, MEMORY, MIB, 0), "the same handle of another client");
	ok(held(gpu) == 7 * MIB, "is another object");
	ok(!alloc(ROOT, DEVICE, 0x103, 0x3e, 64 * MIB, 0), "host memory is allocated");
	ok(!alloc(ROOT, DEVICE, 0x104, 0x50a0, 64 * MIB, 0), "and addresses");
	ok(held(gpu) == 7 * MIB, "neither counts");
	ok(!alloc(ROOT, 0x77, 0x105, MEMORY, MIB, 0), "memory of a device that was not seen");
	ok(held(gpu) == 7 * MIB, "is not counted, but given");
	free_object(ROOT, 0x105, 0);
	free_object(ROOT, 0x100, 0);
	ok(held(gpu) == 5 * MIB && told == 5 * MIB, "what is freed no longer counts");
	free_object(ROOT, 0x100, 0);
	free_object(ROOT, 0x103, 0);
	ok(held(gpu) == 5 * MIB, "nor does it twice");
	free_object(ROOT, 0x101, 0x1f);
	ok(held(gpu) == 5 * MIB, "if the driver does not free it, it counts");
	free_object(ROOT, 0x101, 0);
	ok(held(gpu) == MIB, "until it does");
}

static void refuses(void)
{
	unsigned int calls;

	most = 4 * MIB;
	calls = fake_rm.calls;
	ok(alloc(ROOT, DEVICE, 0x200, MEMORY, 4 * MIB, 0) == NO_MEMORY, "what is refused");
	ok(fake_rm.calls == calls && held(gpu) == MIB, "does not reach the driver, nor count");
	ok(alloc32(0x200, 4 * MIB) == NO_MEMORY, "nor in the older form");
	ok(!alloc(ROOT, DEVICE, 0x200, MEMORY, 3 * MIB, 0), "what fits is given");
	ok(alloc(ROOT, DEVICE, 0x201, MEMORY, 1, 0) == NO_MEMORY, "then no more");
	free_object(ROOT, 0x200, 0);
	ok(alloc(ROOT, DEVICE, 0x201, MEMORY, MIB, NO_MEMORY) == NO_MEMORY,
	   "what the driver itself does not have");
	ok(held(gpu) == MIB && told == MIB, "does not count");
	ok(!gsched_memory_charge(gpu, 4 * MIB) && gsched_memory_charge(gpu, 3 * MIB) &&
	   held(gpu) == 4 * MIB, "managed memory counts, and can be refused");
	most = UINT64_MAX;
	ok(!gsched_memory_charge(gpu, UINT64_MAX) && !gsched_memory_charge(gpu, UINT64_MAX - MIB) &&
	   !gsched_memory_charge(gpu, 1ull << 50) && held(gpu) == 4 * MIB,
	   "what no device has is refused");
	gsched_memory_uncharge(gpu, 3 * MIB);
	ok(held(gpu) == MIB && told == MIB, "and is given back");
	most = UINT64_MAX;
}

static void ends(void)
{
	unsigned int i;

	for (i = 0; i < 1000; i++)
		alloc(ROOT, i & 1 ? DEVICE : SECOND, 0x1000 + i * 7919 % 4001, MEMORY, MIB, 0);
	ok(held(gpu) == 501 * MIB && held(second) == 508 * MIB, "a thousand objects");
	free_object(ROOT, DEVICE, 0);
	ok(held(gpu) == MIB && told == MIB && held(second) == 508 * MIB,
	   "a device that is freed takes its memory with it, and only its own");
	free_object(ROOT, ROOT, 0);
	ok(held(gpu) == MIB && !held(second), "so does a client");
	free_object(OTHER, OTHER, 0);
	ok(!held(gpu), "and the other one");
}

static void forks(void)
{
	int status = -1;
	pid_t pid;

	set_up();
	alloc(ROOT, DEVICE, 0x300, MEMORY, MIB, 0);
	pid = fork();
	if (!pid) {
		n_told = 0;
		free_object(ROOT, 0x300, 0);
		_exit(held(gpu) || n_told);
	}
	waitpid(pid, &status, 0);
	ok(!status && held(gpu) == MIB, "the child of a fork holds nothing, and frees nothing");
}

static void *allocates(void *arg)
{
	uint32_t base = (uint32_t)(uintptr_t)arg, i, round;

	for (round = 0; round < 50; round++) {
		for (i = 0; i < 20; i++)
			alloc(ROOT, DEVICE, base + i, MEMORY, (i + 1) * MIB, 0);
		for (i = 0; i < 20; i++)
			free_object(ROOT, base + i, 0);
	}
	return NULL;
}

static void threads(void)
{
	pthread_t thread[4];
	unsigned int i;

	for (i = 0; i < 4; i++)
		if (pthread_create(&thread[i], NULL, allocates, (void *)(uintptr_t)(i << 16)))
			return;
	for (i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	ok(held(gpu) == MIB && told == MIB, "threads that allocate and free side by side");
}

int main(void)
{
	node = dup(0);
	if (node < 0 || node > 63)
		return 1;
	fake_rm.control[node] = true;
	gsched_memory_changed = changed;
	set_up();
	counts();
	refuses();
	ends();
	forks();
	threads();
	gsched_memory_changed = NULL;
	ok(!alloc(ROOT, DEVICE, 0x400, MEMORY, MIB, 0), "nobody need listen");
	return done();
}
