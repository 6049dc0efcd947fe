// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Buffers with guards around them, parameters, launches; and how to wait for the device without
 * waiting in the driver.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "gpu-run.h"

/* bytes before and behind each buffer that nobody may write; textures want the alignment */
#define GUARD		512
#define GUARD_BYTE	0xa5

uint64_t gpu_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/*
 * A little rest, if there is nothing to do for some time: the simulated device runs on the same
 * processors
 */
void gpu_rest(uint64_t ns)
{
	struct timespec ts = { .tv_nsec = 2000 };

	if (ns > 30000)
		nanosleep(&ts, NULL);
	else
		sched_yield();
}

bool gpu_fails(struct gpu *g, const char *what, CUresult rc)
{
	if (rc)
		snprintf(g->r->why, sizeof(g->r->why), "%s: %s", what, gpu_error(rc));
	return rc != CUDA_SUCCESS;
}

bool gpu_settle(struct gpu *g, CUstream stream, const char *what, uint64_t deadline)
{
	CUresult rc;

	while ((rc = cuStreamQuery(stream)) == CUDA_ERROR_NOT_READY) {
		if (gpu_now() > deadline) {
			snprintf(g->r->why, sizeof(g->r->why), "%s hangs: not over after %u s",
				 what, g->o->timeout_s);
			return false;
		}
		gpu_rest(100000);
	}
	return !gpu_fails(g, what, rc);
}

uint64_t gpu_deadline(const struct gpu *g)
{
	return gpu_now() + g->o->timeout_s * 1000000000ull;
}

/* ---- memory ---- */

static bool buffer_room(struct gpu *g, struct gpu_buffer *b, size_t size)
{
	b->size = size;
	b->first = malloc(size);
	b->result = malloc(size);
	b->now = malloc(size);
	g->buffers++;
	return b->first && b->result && b->now;
}

/* Those that the driver finds: original and twin must leave them alike */
static bool variables_new(struct gpu *g)
{
	const struct gsr_rewrite *rw = &g->pair.rw;
	unsigned int i;

	for (i = 0; i < rw->n_variables && g->buffers < GPU_BUFFERS_MAX; i++) {
		struct gpu_buffer *b = &g->buffer[g->buffers];
		size_t size;

		if (cuModuleGetGlobal(&b->at, &size, g->pair.module, rw->variables[i].name))
			continue;
		b->variable = true;
		if (!buffer_room(g, b, size))
			return false;
		GPU_TRY(cuMemcpyDtoH(b->first, b->at, size));
	}
	return true;
}

/* A buffer as a run of floats */
static bool texture_new(struct gpu *g, struct gpu_buffer *b, size_t size)
{
	CUDA_RESOURCE_DESC from = { .resType = CU_RESOURCE_TYPE_LINEAR };
	CUDA_TEXTURE_DESC how = { 0 };

	from.res.linear.devPtr = b->at + b->guard;
	from.res.linear.format = CU_AD_FORMAT_FLOAT;
	from.res.linear.numChannels = 1;
	from.res.linear.sizeInBytes = size;
	GPU_TRY(cuTexObjectCreate(&b->texture, &from, &how, NULL));
	return true;
}

bool gpu_buffers_new(struct gpu *g)
{
	unsigned int i;

	for (i = 0; i < g->t->n_params; i++) {
		const struct test_param *p = &g->t->params[i];
		struct gpu_buffer *b = &g->buffer[g->buffers];

		if (p->kind == PARAM_TEXTURE && g->buffers &&
		    !texture_new(g, b - 1, g->t->params[i - 1].size))
			return false;
		if (p->kind != PARAM_BUFFER)
			continue;
		/* a sanitizer has guards of its own, and sees who reads there */
		b->guard = g->o->sanitizer ? 0 : GUARD;
		if (!buffer_room(g, b, p->size + 2 * b->guard))
			return false;
		memset(b->first, GUARD_BYTE, b->size);
		launch_fill(p, b->first + b->guard);
		GPU_TRY(cuMemAlloc(&b->at, b->size));
	}
	return gpu_references_new(g) && variables_new(g);
}

bool gpu_buffers_reset(struct gpu *g)
{
	unsigned int i;

	for (i = 0; i < g->buffers; i++)
		GPU_TRY(cuMemcpyHtoD(g->buffer[i].at, g->buffer[i].first, g->buffer[i].size));
	for (i = 0; i < g->buffers; i++)
		if (g->buffer[i].array)
			GPU_TRY(cuMemcpyHtoA(g->buffer[i].array, 0,
					     g->buffer[i].first + g->buffer[i].guard,
					     g->buffer[i].size - 2 * g->buffer[i].guard));
	/* a copy from pageable memory ends later than its call, and no-one waits for it */
	GPU_TRY(cuStreamSynchronize(NULL));
	return true;
}

bool gpu_buffers_release(struct gpu *g)
{
	unsigned int i;

	if (!gpu_references_release(g))
		return false;
	for (i = 0; i < g->buffers; i++) {
		if (g->buffer[i].array)
			GPU_TRY(cuArrayDestroy(g->buffer[i].array));
		if (g->buffer[i].texture)
			GPU_TRY(cuTexObjectDestroy(g->buffer[i].texture));
		if (!g->buffer[i].variable)
			GPU_TRY(cuMemFree(g->buffer[i].at));
		if (g->buffer[i].first_dev)
			GPU_TRY(cuMemFree(g->buffer[i].first_dev));
	}
	return true;
}

bool gpu_buffers_read(struct gpu *g, bool reference)
{
	unsigned int i;

	for (i = 0; i < g->buffers; i++) {
		const struct gpu_buffer *b = &g->buffer[i];
		uint8_t *to = reference ? b->result : b->now;

		GPU_TRY(cuMemcpyDtoH(to, b->at, b->size));
		if (b->array)
			GPU_TRY(cuMemcpyAtoH(to + b->guard, b->array, 0, b->size - 2 * b->guard));
	}
	return true;
}

bool gpu_buffers_same(struct gpu *g)
{
	unsigned int i, bad = 0;
	size_t k, first = 0;

	if (!gpu_buffers_read(g, false))
		return false;
	for (i = 0; i < g->buffers && !bad; i++) {
		const struct gpu_buffer *b = &g->buffer[i];

		if (!memcmp(b->now, b->result, b->size))
			continue;
		for (k = 0; k < b->size; k++)
			if (b->now[k] != b->result[k] && !bad++)
				first = k;
		if (bad)
			snprintf(g->r->why, sizeof(g->r->why),
				 "buffer %u of %zu bytes differs in %u bytes, first at %lld: "
				 "0x%02x, original 0x%02x", i, b->size - 2 * b->guard, bad,
				 (long long)(first - b->guard), b->now[first], b->result[first]);
	}
	return !bad;
}

/* Nothing is proved by a kernel that leaves all as it was */
bool gpu_buffers_changed(struct gpu *g)
{
	unsigned int i;

	for (i = 0; i < g->buffers; i++)
		if (memcmp(g->buffer[i].first, g->buffer[i].result, g->buffer[i].size))
			return true;
	snprintf(g->r->why, sizeof(g->r->why), "the original changes nothing");
	return !g->buffers;
}

/* Does the kernel read what it writes? Seen by what it leaves: a filled buffer changed. */
bool gpu_buffers_inout(const struct gpu *g)
{
	unsigned int i, b = 0;

	for (i = 0; i < g->t->n_params; i++) {
		if (g->t->params[i].kind != PARAM_BUFFER)
			continue;
		if (g->t->params[i].fill != FILL_ZERO &&
		    memcmp(g->buffer[b].first, g->buffer[b].result, g->buffer[b].size))
			return true;
		b++;
	}
	for (; b < g->buffers; b++)
		if (memcmp(g->buffer[b].first, g->buffer[b].result, g->buffer[b].size))
			return true;
	return false;
}

/* ---- parameters ---- */

/* The driver's own word on how large they are */
static bool pack(struct gpu *g, CUfunction f)
{
	unsigned int i, b = 0;
	size_t offset, room, k;

	for (i = 0; i < g->t->n_params; i++) {
		const struct test_param *p = &g->t->params[i];
		CUdeviceptr at;

		GPU_TRY(cuFuncGetParamInfo(f, i, &offset, &room));
		if (offset + room > PARAMS_MAX) {
			snprintf(g->r->why, sizeof(g->r->why), "parameter %u of %zu bytes at %zu",
				 i, room, offset);
			return false;
		}
		if (p->kind == PARAM_BUFFER) {
			at = g->buffer[b].at + g->buffer[b].guard;
			b++;
			memcpy(g->params + offset, &at, room < 8 ? room : 8);
		} else if (p->kind == PARAM_TEXTURE && b) {
			memcpy(g->params + offset, &g->buffer[b - 1].texture, room < 8 ? room : 8);
		} else if (p->kind == PARAM_VALUE) {
			memcpy(g->params + offset, &p->value, room < 8 ? room : 8);
		}
		for (k = 0; p->kind == PARAM_BYTES && k < room; k++)
			g->params[offset + k] = (uint8_t)(k * 7 + 1);
		g->pointers[i] = g->params + offset;
	}
	if (f == g->pair.twin) {
		if (g->references && !gpu_references_pack(g, i++))
			return false;
		GPU_TRY(cuFuncGetParamInfo(f, i, &offset, &room));
		if (offset + room > PARAMS_MAX || room != sizeof(g->arg)) {
			snprintf(g->r->why, sizeof(g->r->why),
				 "the driver has %zu bytes at %zu for the launch", room, offset);
			return false;
		}
		memcpy(g->params + offset, &g->arg, sizeof(g->arg));
		g->pointers[i] = g->params + offset;
	}
	return true;
}

CUresult gpu_launch(struct gpu *g, CUfunction f, const unsigned int grid[3], CUstream stream)
{
	const size_t dynamic = f == g->pair.twin ?
		gsr_dynamic_shared(g->pair.desc, g->t->dynamic) : g->t->dynamic;
	const unsigned int *b = g->t->block_dim;

	if (!pack(g, f))
		return CUDA_ERROR_INVALID_VALUE;
	return cuLaunchKernel(f, grid[0], grid[1], grid[2], b[0], b[1], b[2],
			      (unsigned int)dynamic, stream, g->pointers, NULL);
}

/* Not the device's: what hangs there must not hold us up */
void gpu_buffers_free(struct gpu *g)
{
	unsigned int i;

	for (i = 0; i < g->buffers; i++) {
		free(g->buffer[i].first);
		free(g->buffer[i].result);
		free(g->buffer[i].now);
	}
}
