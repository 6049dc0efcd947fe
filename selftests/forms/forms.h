/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Small programs of the driver API, each of one form or feature: `drv NAME`. Each checks its own
 * results, prints the same every time, and ends with 0, with 1 and a message, or with FORM_SKIP.
 */
#ifndef SELFTESTS_FORMS_H
#define SELFTESTS_FORMS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "libgsched/cuda/base/cudadrv.h"

#define FORM_SKIP 77

struct form {
	const char *name;
	void (*run)(void);
};

/* of each area, ended by one without a name */
extern const struct form launch_forms[], stream_forms[], context_forms[], module_forms[],
	memory_forms[], graph_forms[], algorithm_forms[], waiting_forms[], process_forms[], pool_forms[];

void form_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
void form_expect(CUresult rc, CUresult want, const char *what);
#define DO(call) form_expect(call, CUDA_SUCCESS, #call)
#define IS(result, call) form_expect(call, CUDA_ERROR_##result, #call)
#define CHECK(what) \
	do { \
		if (!(what)) \
			form_fail("%s:%d: not so: %s", __FILE__, __LINE__, #what); \
	} while (0)

/*
 * $FORMS_SCALE: what a real GPU takes more of everything, blocks and rounds, for its kernels to be
 * as long. 1 on a simulated one
 */
extern unsigned int form_scale;
extern CUdevice form_device;
extern CUcontext form_context; /* the primary one */
extern CUmodule form_module; /* of kernels.ptx */
extern const char *form_image; /* its text */

void form_begin(void); /* device, context, module */
void form_read_image(void); /* the text alone: for programs that do the rest themselves */
CUfunction form_function(const char *name);

/*
 * Words on the device, and what they should be. Of a scaled buffer every form_scale-th word is
 * followed on the host.
 */
struct words {
	CUdeviceptr at;
	uint32_t *want;
	size_t n;
	unsigned int stride;
};

#define THREADS 64u
#define FEW 8u /* blocks */
#define ROUNDS 60u
extern unsigned int form_blocks; /* more than a device hosts at once */

static inline uint32_t mix(uint32_t x, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		x = x * 1664525u + 1013904223u + (x >> 13);
	return x;
}

struct words words_new(size_t n); /* on the device, each 12345 */
struct words words_at(CUdeviceptr at, size_t n);
void words_expect(struct words *w, const uint32_t *values);
uint64_t words_check(struct words *w); /* reads back, compares, frees nothing: a hash of all */
void words_show(const char *what, struct words *w); /* and prints it, and frees */
uint64_t hash_of(const void *data, size_t size);

/* Kernel `work` over the whole buffer, on the device and on the host */
void work_launch(CUfunction f, CUstream s, const struct words *w, uint32_t n, uint32_t seed);
void work_expect(struct words *w, uint32_t n, uint32_t seed);
void work(CUfunction f, CUstream s, struct words *w, uint32_t n, uint32_t seed);

/* A word that kernel `hold` waits for */
struct flag {
	volatile uint32_t *host;
	CUdeviceptr at;
};
struct flag flag_new(void);
void flag_set(const struct flag *f);
void flag_free(struct flag *f);
void hold(CUstream s, const struct flag *f);

void launch(CUfunction f, unsigned int blocks, unsigned int threads, CUstream s, void **params);
#define LAUNCH(f, blocks, threads, s, ...) launch(f, blocks, threads, s, (void *[]){ __VA_ARGS__ })

#endif
