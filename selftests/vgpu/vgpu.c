// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The state of vgpu's libcuda in one process: handles, messages; cuInit and what goes with the
 * library itself
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "vgpu.h"

struct vg_state vg = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
	.server = -1,
};

/*
 * Live handles, so that a wrong one gives an error and not a crash: open addressing, power-of-two
 * size
 */
static struct { const void *p; enum vg_type type; } *handles;
static size_t n_slots, n_filled;	/* filled: live and deleted ones */
static const char deleted;

uint64_t vg_now(void)
{
	return vg_shm_now();
}

void vg_say(const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fprintf(stderr, "vgpu: %s\n", text);
}

CUresult vg_unsimulated(const char *name)
{
	vg_say("%s is not simulated; it returns CUDA_ERROR_NOT_SUPPORTED", name);
	return CUDA_ERROR_NOT_SUPPORTED;
}

static size_t slot_of(const void *p)
{
	return (size_t)(((uintptr_t)p >> 4) * 0x9e3779b97f4a7c15ULL) & (n_slots - 1);
}

static bool grow(void)
{
	size_t old_n = n_slots, live = 0;
	__typeof__(handles) old = handles, fresh;

	for (size_t i = 0; i < old_n; i++)
		live += old[i].p && old[i].p != &deleted;
	n_slots = 64;
	while (n_slots < 4 * live)
		n_slots *= 2;
	fresh = calloc(n_slots, sizeof(*fresh));
	if (!fresh) {
		n_slots = old_n;
		return false;
	}
	handles = fresh;
	n_filled = live;
	for (size_t i = 0; i < old_n; i++) {
		size_t s;

		if (!old[i].p || old[i].p == &deleted)
			continue;
		for (s = slot_of(old[i].p); handles[s].p; s = (s + 1) & (n_slots - 1))
			;
		handles[s] = old[i];
	}
	free(old);
	return true;
}

bool vg_handle_add(const void *p, enum vg_type type)
{
	size_t s;

	if (2 * (n_filled + 1) > n_slots && !grow())
		return false;
	for (s = slot_of(p); handles[s].p && handles[s].p != &deleted; s = (s + 1) & (n_slots - 1))
		;
	n_filled += !handles[s].p;
	handles[s].p = p;
	handles[s].type = type;
	return true;
}

static size_t find(const void *p)
{
	if (!p || !n_slots)
		return SIZE_MAX;
	for (size_t s = slot_of(p); handles[s].p; s = (s + 1) & (n_slots - 1))
		if (handles[s].p == p)
			return s;
	return SIZE_MAX;
}

void vg_handle_del(const void *p)
{
	size_t s = find(p);

	if (s != SIZE_MAX)
		handles[s].p = &deleted;
}

bool vg_handle_is(const void *p, enum vg_type type)
{
	size_t s = find(p);

	return s != SIZE_MAX && handles[s].type == type;
}

/* Of each type, those that went; the first word is the next one */
static void *spare[VG_TYPES];

void *vg_object_new(enum vg_type type, size_t size)
{
	void *p = spare[type];

	if (p) {
		memcpy(&spare[type], p, sizeof(spare[type]));
		memset(p, 0, size);
	} else {
		p = calloc(1, size);
	}
	if (p && !vg_handle_add(p, type)) {
		vg_object_free(type, p);
		p = NULL;
	}
	return p;
}

void vg_object_free(enum vg_type type, void *p)
{
	vg_handle_del(p);
	memcpy(p, &spare[type], sizeof(spare[type]));
	spare[type] = p;
}

/* A child of fork has neither the engine nor a slot: as with CUDA, it cannot use the device */
static void in_child(void)
{
	pthread_mutex_init(&vg.lock, NULL);
	pthread_cond_init(&vg.changed, NULL);
	vg.initialized = false;
	vg.n_gpus = 0;
	vg_rm_child();
}

/* As the driver does during exit(). Kernels run on */
static void end_calls(void)
{
	if (vg.initialized && vg_modules_loading()) {
		vg_say("the driver shuts down while a thread loads a module: that may crash");
		abort();
	}
	vg_enter_any();
	vg.ended = true;
	vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuInit(unsigned int flags)
{
	static bool registered;
	unsigned long connections;
	char err[512], *end;

	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	vg_enter_any();
	if (vg.initialized)
		return vg_leave(CUDA_SUCCESS);
	if (!vg_key_from_env(&vg.key, err, sizeof(err))) {
		vg_say("%s", err);
		return vg_leave(CUDA_ERROR_NO_DEVICE);
	}
	/* the server's own group is the one that it has for its clients */
	if (vg.key != VG_NO_MPS && strcmp(getenv("VGPU_MPS_SERVER") ?: "0", "1"))
		vg.server = vg_mps_server();
	if (!vg_calls_init() || !vg_devices_init())
		return vg_leave(CUDA_ERROR_NO_DEVICE);
	if (!vgpu_checks_parse(getenv("VGPU_CHECK") ?: "none", &vgpu_checks)) {
		vg_say("$VGPU_CHECK is \"%s\": give all, none, or names of checks with commas",
		       getenv("VGPU_CHECK"));
		return vg_leave(CUDA_ERROR_NO_DEVICE);
	}
	vg.shuffle = strcmp(getenv("VGPU_SHUFFLE") ?: "0", "0");
	vg.seed = strtoull(getenv("VGPU_SEED") ?: vg.shuffle ? "1" : "0", &end, 0);
	if (*end) {
		vg_say("$VGPU_SEED is \"%s\": give a number", getenv("VGPU_SEED"));
		return vg_leave(CUDA_ERROR_NO_DEVICE);
	}
	/* as with CUDA, what is no such number changes nothing */
	connections = strtoul(getenv("CUDA_DEVICE_MAX_CONNECTIONS") ?: "0", &end, 10);
	vg.connections = !*end && connections <= 32 ? (unsigned int)connections : 0;
	vgpu_globaltimer = vg_now;
	vgpu_access_ok = vg_access_ok;
	vgpu_access_why = vg_access_why;
	if (!registered) {
		pthread_atfork(NULL, NULL, in_child);
		atexit(end_calls);
	}
	registered = true;
	vg.initialized = true;
	return vg_leave(CUDA_SUCCESS);
}

__attribute__((destructor)) static void at_exit(void)
{
	if (!vg.initialized)
		return;
	vg_rm_stop();
	vg_engine_stop();
}

CUDADRV_API CUresult cuDriverGetVersion(int *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = CUDA_VERSION;
	return CUDA_SUCCESS;
}

static const struct { CUresult value; const char *name; } results[] = {
#define RESULT(name, value) { name, #name },
	CUDADRV_RESULTS(RESULT)
#undef RESULT
};

CUDADRV_API CUresult cuGetErrorName(CUresult error, const char **name)
{
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	*name = NULL;
	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++)
		if (results[i].value == error) {
			*name = results[i].name;
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_INVALID_VALUE;
}

CUDADRV_API CUresult cuGetErrorString(CUresult error, const char **text)
{
	static char texts[sizeof(results) / sizeof(results[0])][48];

	if (!text)
		return CUDA_ERROR_INVALID_VALUE;
	*text = NULL;
	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
		const char *s = results[i].name;
		size_t n = 0;

		if (results[i].value != error)
			continue;
		/* the name in words */
		s += strncmp(s, "CUDA_ERROR_", 11) ? 5 : 11;
		for (; *s && n < sizeof(texts[i]) - 1; s++, n++)
			texts[i][n] = *s == '_' ? ' ' : (char)(*s | 0x20);
		*text = texts[i];
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}
