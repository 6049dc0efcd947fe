// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Deprecated calls that launch. With the oldest ones a function keeps its shape and parameters from
 * call to call. These are recorded here, because a twin and a launch with a priority of its own
 * need them. As in the driver, threads must not use a function at the same time.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "entry/entry.h"
#include "launch/launch.h"

#define BUCKETS		64
#define PARAMS_MAX	32768	/* the driver takes less */

struct old_launch {
	struct old_launch *next;
	CUfunction fn;			/* may be reused by the driver: it is then set up again */
	unsigned int block[3], shared;
	size_t size;
	char params[PARAMS_MAX];
};

static struct old_launch *table[BUCKETS];	/* never freed */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* innermost; protects the table */

/* NULL: nothing is recorded, and with @add there is no memory. */
static struct old_launch *get_record(CUfunction fn, bool add)
{
	struct old_launch **bucket = &table[gi_hash(fn) % BUCKETS], *r;

	pthread_mutex_lock(&lock);
	for (r = *bucket; r && r->fn != fn; r = r->next)
		;
	if (!r && add && (r = calloc(1, sizeof(*r)))) {
		r->fn = fn;
		r->next = *bucket;
		*bucket = r;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

CUresult cuFuncSetBlockShape(CUfunction fn, int x, int y, int z)
{
	struct old_launch *r;
	CUresult rc;

	GI_ENTER();
	rc = gi_real.cuFuncSetBlockShape(fn, x, y, z);
	if (!rc && (r = get_record(fn, true))) {
		r->block[0] = x;
		r->block[1] = y;
		r->block[2] = z;
	}
	return rc;
}

CUresult cuFuncSetSharedSize(CUfunction fn, unsigned int bytes)
{
	struct old_launch *r;
	CUresult rc;

	GI_ENTER();
	rc = gi_real.cuFuncSetSharedSize(fn, bytes);
	if (!rc && (r = get_record(fn, true)))
		r->shared = bytes;
	return rc;
}

CUresult cuParamSetSize(CUfunction fn, unsigned int bytes)
{
	struct old_launch *r;
	CUresult rc;

	GI_ENTER();
	rc = gi_real.cuParamSetSize(fn, bytes);
	if (!rc && bytes <= PARAMS_MAX && (r = get_record(fn, true)))
		r->size = bytes;
	return rc;
}

static void record_param(CUfunction fn, int offset, const void *value, unsigned int bytes)
{
	struct old_launch *r;

	if (offset >= 0 && offset <= PARAMS_MAX && bytes <= PARAMS_MAX - (unsigned int)offset &&
	    (r = get_record(fn, true)))
		memcpy(r->params + offset, value, bytes);
}

CUresult cuParamSeti(CUfunction fn, int offset, unsigned int value)
{
	CUresult rc;

	GI_ENTER();
	rc = gi_real.cuParamSeti(fn, offset, value);
	if (!rc)
		record_param(fn, offset, &value, sizeof(value));
	return rc;
}

CUresult cuParamSetf(CUfunction fn, int offset, float value)
{
	CUresult rc;

	GI_ENTER();
	rc = gi_real.cuParamSetf(fn, offset, value);
	if (!rc)
		record_param(fn, offset, &value, sizeof(value));
	return rc;
}

CUresult cuParamSetv(CUfunction fn, int offset, void *value, unsigned int bytes)
{
	CUresult rc;

	GI_ENTER();
	rc = gi_real.cuParamSetv(fn, offset, value, bytes);
	if (!rc)
		record_param(fn, offset, value, bytes);
	return rc;
}

static CUresult forward_grid(const struct gi_launch *l)
{
	return gi_real.cuLaunchGridAsync(l->fn, (int)l->grid[0], (int)l->grid[1], l->stream);
}

CUresult cuLaunchGridAsync(CUfunction fn, int width, int height, CUstream stream)
{
	struct old_launch *r;
	void *extra[] = {
		CU_LAUNCH_PARAM_BUFFER_POINTER, NULL, CU_LAUNCH_PARAM_BUFFER_SIZE, NULL,
		CU_LAUNCH_PARAM_END,
	};
	struct gi_launch l = {
		.fn = fn, .stream = stream, .extra = extra, .forward = forward_grid,
	};

	GI_ENTER();
	r = get_record(fn, false);
	/* the driver reports what is missing or wrong */
	if (!r || width <= 0 || height <= 0)
		return gi_real.cuLaunchGridAsync(fn, width, height, stream);
	extra[1] = r->params;
	extra[3] = &r->size;
	memcpy(l.block, r->block, sizeof(l.block));
	l.grid[0] = width;
	l.grid[1] = height;
	l.grid[2] = 1;
	l.shared = r->shared;
	return gi_launch(&l);
}

CUresult cuLaunchGrid(CUfunction fn, int width, int height)
{
	return cuLaunchGridAsync(fn, width, height, NULL);
}

CUresult cuLaunch(CUfunction fn)
{
	return cuLaunchGridAsync(fn, 1, 1, NULL);
}

/* One launch on several devices: a launch of each that contains the next one, which is opaque. */
struct devices {
	CUDA_LAUNCH_PARAMS *list;
	unsigned int n, flags, i;
};

static CUresult launch_devices(const struct devices *d);

static CUresult forward_devices(const struct gi_launch *l)
{
	struct devices next = *(const struct devices *)l->call;

	next.i++;
	return launch_devices(&next);
}

static CUresult launch_devices(const struct devices *d)
{
	const CUDA_LAUNCH_PARAMS *p = d->list + d->i;
	struct gi_launch l = {
		.opaque = true, .cooperative = true, .forward = forward_devices, .call = d,
	};
	CUcontext context;
	CUresult rc;

	if (d->i == d->n || gi_is_default(p->hStream) ||
	    gi_real.cuStreamGetCtx(p->hStream, &context) ||
	    gi_real.cuCtxPushCurrent_v2(context))
		return gi_real.cuLaunchCooperativeKernelMultiDevice(d->list, d->n, d->flags);
	l.grid[0] = p->gridDimX;
	l.grid[1] = p->gridDimY;
	l.grid[2] = p->gridDimZ;
	l.block[0] = p->blockDimX;
	l.block[1] = p->blockDimY;
	l.block[2] = p->blockDimZ;
	l.shared = p->sharedMemBytes;
	l.stream = p->hStream;
	rc = gi_launch(&l);
	gi_real.cuCtxPopCurrent_v2(&context);
	return rc;
}

CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *list, unsigned int n,
					      unsigned int flags)
{
	const struct devices d = { .list = list, .n = list ? n : 0, .flags = flags };

	GI_ENTER();
	return launch_devices(&d);
}
