// SPDX-License-Identifier: LGPL-2.1-or-later
/* Contexts: several, the primary one, the stack of them, their end with work in flight */
#include <pthread.h>
#include "forms.h"

#define CONTEXTS 3

/* A context of its own, with all that a form needs; current afterwards */
struct place {
	CUcontext ctx;
	CUmodule module;
	CUfunction f;
	struct words w;
};

static struct place place_new(const char *name)
{
	struct place p;

	DO(cuCtxCreate(&p.ctx, NULL, 0, form_device));
	DO(cuModuleLoadData(&p.module, form_image));
	DO(cuModuleGetFunction(&p.f, p.module, name));
	p.w = words_new(form_blocks * THREADS);
	return p;
}

static void ctx_several(void)
{
	struct place p[CONTEXTS];

	form_begin();
	for (int i = 0; i < CONTEXTS; i++)
		p[i] = place_new("work");
	for (uint32_t k = 0; k < 5; k++) {
		for (uint32_t i = 0; i < CONTEXTS; i++) {
			DO(cuCtxSetCurrent(p[i].ctx));
			work(p[i].f, NULL, &p[i].w, ROUNDS, i + k);
		}
	}
	for (int i = 0; i < CONTEXTS; i++) {
		DO(cuCtxSetCurrent(p[i].ctx));
		DO(cuCtxSynchronize());
		words_show("ctx-several", &p[i].w);
		DO(cuCtxDestroy(p[i].ctx));
	}
}

static void ctx_primary(void)
{
	struct words w;
	unsigned int flags;
	int active;

	form_begin();
	for (uint32_t k = 0; k < 3; k++) {
		w = words_new(form_blocks * THREADS);
		work(form_function("work"), NULL, &w, ROUNDS, k);
		work(form_function("work"), NULL, &w, ROUNDS, k + 1);
		words_show("ctx-primary", &w);
		DO(cuDevicePrimaryCtxRelease(form_device));
		DO(cuDevicePrimaryCtxGetState(form_device, &flags, &active));
		CHECK(!active);
		DO(cuDevicePrimaryCtxRetain(&form_context, form_device));
		DO(cuCtxSetCurrent(form_context));
		DO(cuModuleLoadData(&form_module, form_image));
	}
}

static void ctx_primary_reset(void)
{
	struct words w;

	form_begin();
	for (uint32_t k = 0; k < 3; k++) {
		w = words_new(form_blocks * THREADS);
		work(form_function("work"), NULL, &w, ROUNDS, k);
		words_show("ctx-primary-reset", &w);
		/* work is in flight when everything goes */
		w = words_new(form_blocks * THREADS);
		work(form_function("work"), NULL, &w, ROUNDS, k);
		work(form_function("work"), NULL, &w, ROUNDS, k);
		DO(cuDevicePrimaryCtxReset(form_device));
		DO(cuDevicePrimaryCtxRetain(&form_context, form_device));
		DO(cuCtxSetCurrent(form_context));
		DO(cuModuleLoadData(&form_module, form_image));
	}
}

/* What was retained before a reset does not count behind it */
static void ctx_primary_reset_release(void)
{
	struct words w;

	form_begin();
	for (uint32_t k = 0; k < 4; k++) {
		w = words_new(form_blocks * THREADS);
		work(form_function("work"), NULL, &w, ROUNDS, k);
		work(form_function("work"), NULL, &w, ROUNDS, k + 1);
		words_show("ctx-primary-reset-release", &w);
		if (k)
			DO(cuDevicePrimaryCtxRelease(form_device));
		else
			DO(cuDevicePrimaryCtxReset(form_device));
		DO(cuDevicePrimaryCtxRetain(&form_context, form_device));
		DO(cuCtxSetCurrent(form_context));
		DO(cuModuleLoadData(&form_module, form_image));
	}
}

static void ctx_push_pop(void)
{
	struct place p[2];
	CUcontext c;

	form_begin();
	for (int i = 0; i < 2; i++) {
		p[i] = place_new("work");
		DO(cuCtxPopCurrent(&c));
		CHECK(c == p[i].ctx);
	}
	for (uint32_t k = 0; k < 4; k++) {
		DO(cuCtxPushCurrent(p[0].ctx));
		work(p[0].f, NULL, &p[0].w, ROUNDS, k);
		DO(cuCtxPushCurrent(p[1].ctx));
		work(p[1].f, NULL, &p[1].w, ROUNDS, k + 10);
		DO(cuCtxPopCurrent(&c));
		CHECK(c == p[1].ctx);
		work(p[0].f, NULL, &p[0].w, ROUNDS, k + 20);
		DO(cuCtxPopCurrent(&c));
		DO(cuCtxGetCurrent(&c));
		CHECK(c == form_context);
	}
	for (int i = 0; i < 2; i++) {
		DO(cuCtxPushCurrent(p[i].ctx));
		DO(cuCtxSynchronize());
		words_show("ctx-push-pop", &p[i].w);
		DO(cuCtxDestroy(p[i].ctx));
	}
}

/* A context goes while its work runs; the primary one goes on */
static void ctx_destroy_busy(void)
{
	struct place p;
	struct words w;
	CUfunction f;

	form_begin();
	f = form_function("work");
	w = words_new(form_blocks * THREADS);
	for (uint32_t k = 0; k < 4; k++) {
		p = place_new("work");
		for (uint32_t i = 0; i < 4; i++)
			work(p.f, NULL, &p.w, ROUNDS, i);
		DO(cuCtxDestroy(p.ctx));
		free(p.w.want);
		DO(cuCtxSetCurrent(form_context));
		work(f, NULL, &w, ROUNDS, k);
	}
	DO(cuCtxSynchronize());
	words_show("ctx-destroy-busy", &w);
}

/*
 * Contexts one after the other with another kernel each: handles come again and mean something
 * else
 */
static void ctx_recreate(void)
{
	struct place p;
	uint32_t n = ROUNDS;

	form_begin();
	for (uint32_t k = 0; k < 8; k++) {
		p = place_new(k % 2 ? "bump" : "work");
		for (uint32_t i = 0; i < 3; i++) {
			if (k % 2) {
				LAUNCH(p.f, form_blocks, THREADS, NULL, &p.w.at, &n);
				for (size_t t = 0; t < p.w.n; t++)
					p.w.want[t] += mix((uint32_t)t, n);
			} else {
				work(p.f, NULL, &p.w, ROUNDS, i);
			}
		}
		words_show("ctx-recreate", &p.w);
		DO(cuModuleUnload(p.module));
		DO(cuCtxDestroy(p.ctx));
	}
}

/* The context that was used first goes, and kernels run on in the other */
static void ctx_first_goes(void)
{
	struct place first, second;

	form_begin();
	first = place_new("work");
	work(first.f, NULL, &first.w, ROUNDS, 1);
	words_show("ctx-first-goes", &first.w);
	second = place_new("work");
	work(second.f, NULL, &second.w, ROUNDS, 2);
	DO(cuCtxSynchronize());
	DO(cuCtxDestroy(first.ctx));
	DO(cuCtxSetCurrent(second.ctx));
	for (uint32_t i = 0; i < 4; i++)
		work(second.f, NULL, &second.w, ROUNDS, i);
	words_show("ctx-first-goes", &second.w);
	DO(cuCtxDestroy(second.ctx));
}

static void *in_own_context(void *arg)
{
	struct place *p = arg;

	*p = place_new("work");
	for (uint32_t i = 0; i < 6; i++) {
		work(p->f, NULL, &p->w, ROUNDS, i);
		DO(cuCtxSynchronize());
	}
	words_check(&p->w);
	DO(cuCtxDestroy(p->ctx));
	return NULL;
}

static void ctx_threads(void)
{
	struct place p[2];
	pthread_t t[2];

	form_begin();
	for (int i = 0; i < 2; i++)
		if (pthread_create(&t[i], NULL, in_own_context, &p[i]))
			abort();
	for (int i = 0; i < 2; i++) {
		pthread_join(t[i], NULL);
		free(p[i].w.want);
	}
	puts("ctx-threads");
}

/* As the second device's would be; here only that asking for it does no harm */
static void peer(void)
{
	CUcontext other;
	struct words w;
	CUdeviceptr there;
	int n, can;

	form_begin();
	DO(cuDeviceGetCount(&n));
	if (n < 2) {
		puts("one device");
		exit(FORM_SKIP);
	}
	w = words_new(form_blocks * THREADS);
	work(form_function("work"), NULL, &w, ROUNDS, 1);
	DO(cuDeviceCanAccessPeer(&can, 0, 1));
	DO(cuDevicePrimaryCtxRetain(&other, 1));
	DO(cuCtxPushCurrent(other));
	DO(cuMemAlloc(&there, w.n * 4));
	DO(cuMemcpyPeer(there, other, w.at, form_context, w.n * 4));
	DO(cuMemcpyPeer(w.at, form_context, there, other, w.n * 4));
	DO(cuMemFree(there));
	DO(cuCtxPopCurrent(NULL));
	words_show("peer", &w);
}

/* Limits that are set before there is work and while there is; what they were is what they are. */
static void ctx_limits(void)
{
	static const CUlimit limits[] = {
		CU_LIMIT_STACK_SIZE, CU_LIMIT_PRINTF_FIFO_SIZE, CU_LIMIT_MALLOC_HEAP_SIZE,
	};
	static const size_t sizes[] = { 4096, 2 << 20, 16 << 20 };
	unsigned int flags;
	struct words w;
	size_t is;

	form_begin();
	w = words_new(form_blocks * THREADS);
	for (uint32_t i = 0; i < 3; i++) {
		DO(cuCtxGetLimit(&is, limits[i]));
		printf("%zu ", is);
		DO(cuCtxSetLimit(limits[i], sizes[i]));
		DO(cuCtxGetLimit(&is, limits[i]));
		printf("%zu\n", is);
		work(form_function("work"), NULL, &w, ROUNDS, i);
		work(form_function("work"), NULL, &w, ROUNDS, i + 1);
	}
	DO(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 8192));
	DO(cuCtxGetFlags(&flags));
	printf("%x\n", flags);
	words_show("ctx-limits", &w);
}

/* What contexts and streams are called, which nobody else's may be */
static void ctx_ids(void)
{
	unsigned long long id[2], again, of[2];
	CUcontext ctx, whose;
	struct words w;
	CUstream s[2];

	form_begin();
	w = words_new(form_blocks * THREADS);
	DO(cuCtxGetId(form_context, &id[0]));
	for (int i = 0; i < 2; i++) {
		DO(cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING));
		DO(cuStreamGetId(s[i], &of[i]));
		DO(cuStreamGetCtx(s[i], &whose));
		CHECK(whose == form_context);
	}
	work(form_function("work"), s[0], &w, ROUNDS, 1);
	DO(cuStreamSynchronize(s[0]));
	work(form_function("work"), s[1], &w, ROUNDS, 2);
	DO(cuStreamGetId(s[0], &again));
	CHECK(of[0] == again && of[0] != of[1]);
	DO(cuCtxCreate(&ctx, NULL, 0, form_device));
	DO(cuCtxGetId(ctx, &id[1]));
	DO(cuCtxGetId(form_context, &again));
	CHECK(id[0] == again && id[0] != id[1]);
	DO(cuCtxDestroy(ctx));
	DO(cuCtxSetCurrent(form_context));
	DO(cuStreamSynchronize(s[1]));
	words_show("ctx-ids", &w);
}

const struct form context_forms[] = {
	{ "ctx-several", ctx_several },
	{ "ctx-primary", ctx_primary },
	{ "ctx-primary-reset", ctx_primary_reset },
	{ "ctx-primary-reset-release", ctx_primary_reset_release },
	{ "ctx-push-pop", ctx_push_pop },
	{ "ctx-destroy-busy", ctx_destroy_busy },
	{ "ctx-recreate", ctx_recreate },
	{ "ctx-first-goes", ctx_first_goes },
	{ "ctx-threads", ctx_threads },
	{ "ctx-limits", ctx_limits },
	{ "ctx-ids", ctx_ids },
	{ "peer", peer },
	{ 0 },
};
