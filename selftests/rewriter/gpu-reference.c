// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Texture and surface references: the original's are bound to buffers, the twin gets objects of
 * these, as the interposer makes them. What a surface writes is an array, which stands for its
 * buffer.
 */
#include <stdio.h>
#include <string.h>
#include "gpu-run.h"

static bool bind_array(struct gpu *g, struct gpu_reference *r, const char *name)
{
	struct gpu_buffer *b = r->of;
	CUDA_ARRAY3D_DESCRIPTOR shape = {
		.Width = (b->size - 2 * b->guard) / 4, .Format = CU_AD_FORMAT_UNSIGNED_INT32,
		.NumChannels = 1, .Flags = 2 /* SURFACE_LDST */,
	};
	CUDA_RESOURCE_DESC from = { .resType = CU_RESOURCE_TYPE_ARRAY };
	CUsurfref s;

	if (!b->array)
		GPU_TRY(cuArray3DCreate(&b->array, &shape));
	from.res.array.hArray = b->array;
	GPU_TRY(cuModuleGetSurfRef(&s, g->pair.module, name));
	GPU_TRY(cuSurfRefSetArray(s, b->array, 0));
	GPU_TRY(cuSurfObjectCreate(&r->object, &from));
	return true;
}

/* As a run of floats, or in rows of @width */
static bool bind_memory(struct gpu *g, struct gpu_reference *r, const char *name,
			unsigned int width)
{
	size_t size = r->of->size - 2 * r->of->guard, offset = 0;
	CUDA_ARRAY_DESCRIPTOR rows = { .Width = width, .Format = CU_AD_FORMAT_FLOAT,
				       .NumChannels = 1 };
	CUDA_RESOURCE_DESC from = { .resType = width ? CU_RESOURCE_TYPE_PITCH2D :
				    CU_RESOURCE_TYPE_LINEAR };
	CUDA_TEXTURE_DESC how = { .addressMode = { CU_TR_ADDRESS_MODE_BORDER,
						   CU_TR_ADDRESS_MODE_CLAMP } };
	CUdeviceptr at = r->of->at + r->of->guard;
	CUtexref t;
	int i;

	GPU_TRY(cuModuleGetTexRef(&t, g->pair.module, name));
	for (i = 0; i < 2; i++)
		GPU_TRY(cuTexRefSetAddressMode(t, i, how.addressMode[i]));
	if (width) {
		rows.Height = from.res.pitch2D.height = size / 4 / width;
		from.res.pitch2D.devPtr = at;
		from.res.pitch2D.format = CU_AD_FORMAT_FLOAT;
		from.res.pitch2D.numChannels = 1;
		from.res.pitch2D.width = width;
		from.res.pitch2D.pitchInBytes = 4ul * width;
		how.filterMode = CU_TR_FILTER_MODE_LINEAR;
		GPU_TRY(cuTexRefSetFilterMode(t, how.filterMode));
		GPU_TRY(cuTexRefSetAddress2D(t, &rows, at, 4ul * width));
	} else {
		from.res.linear.devPtr = at;
		from.res.linear.format = CU_AD_FORMAT_FLOAT;
		from.res.linear.numChannels = 1;
		from.res.linear.sizeInBytes = size;
		GPU_TRY(cuTexRefSetFormat(t, CU_AD_FORMAT_FLOAT, 1));
		GPU_TRY(cuTexRefSetAddress(&offset, t, at, size));
	}
	GPU_TRY(cuTexObjectCreate(&r->object, &from, &how, NULL));
	return true;
}

bool gpu_references_new(struct gpu *g)
{
	const struct gsr_kernel *k = g->pair.desc;
	unsigned int i, n;

	for (n = 0; n < k->n_references; n++) {
		const char *name = k->references[n].name;
		struct gpu_reference *r = &g->reference[n];

		for (i = 0; i < g->t->n_refs && strcmp(g->t->refs[i].name, name); i++)
			;
		if (i == g->t->n_refs || n == LAUNCH_REFS_MAX ||
		    g->t->refs[i].buffer >= g->buffers) {
			snprintf(g->r->why, sizeof(g->r->why),
				 "nothing to bind to the reference %s", name);
			return false;
		}
		r->of = &g->buffer[g->t->refs[i].buffer];
		r->surface = k->references[n].surface;
		if (r->surface ? !bind_array(g, r, name) :
		    !bind_memory(g, r, name, g->t->refs[i].width))
			return false;
		g->references++;
	}
	return true;
}

bool gpu_references_release(struct gpu *g)
{
	while (g->references) {
		struct gpu_reference *r = &g->reference[--g->references];

		if (r->surface)
			GPU_TRY(cuSurfObjectDestroy(r->object));
		else
			GPU_TRY(cuTexObjectDestroy(r->object));
	}
	return true;
}

bool gpu_references_pack(struct gpu *g, unsigned int parameter)
{
	size_t offset, room;
	unsigned int i;

	GPU_TRY(cuFuncGetParamInfo(g->pair.twin, parameter, &offset, &room));
	if (room != 8ul * g->references) {
		snprintf(g->r->why, sizeof(g->r->why), "%u references, the driver has %zu bytes",
			 g->references, room);
		return false;
	}
	g->pointers[parameter] = g->params + offset;
	for (i = 0; i < g->references; i++)
		memcpy(g->params + offset + 8ul * i, &g->reference[i].object, 8);
	return true;
}
