// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Twins share the original's variables through a table of addresses in their module
 * (rewriter/gsr.h), which is filled here before a twin is launched. The copies use a stream of
 * their own, so they do not wait for the program's work.
 */
#include <stdlib.h>
#include "code/code.h"

struct original {
	struct gi_image *image;
	struct gi_ctx *cx;		/* the current context */
	const struct gsr_rewrite *desc;
	const struct gsr_kernel *kernel;
};

/* @name is a string of the description, so pointers are compared. */
static bool is_needed(const struct original *o, const char *name)
{
	unsigned int i;

	for (i = 0; i < o->kernel->n_variables; i++)
		if (o->desc->variables[o->kernel->variables[i]].name == name)
			return true;
	return false;
}

/* Managed variables of a library need a call of their own. */
static bool find_address(void *arg, const char *name, uint64_t *address, uint64_t *size)
{
	const struct original *o = arg;
	const struct gi_image *image = o->image;
	CUdeviceptr at = 0;
	size_t bytes = 0;
	CUresult rc;

	if (!is_needed(o, name))
		return false;
	if (image->library) {
		rc = gi_real.cuLibraryGetGlobal(&at, &bytes, image->handle, name);
		if (rc)
			rc = gi_real.cuLibraryGetManaged(&at, &bytes, image->handle, name);
	} else {
		rc = gi_real.cuModuleGetGlobal_v2(&at, &bytes, image->handle, name);
	}
	*address = at;
	*size = bytes;
	return !rc;
}

static bool read_initial(void *arg, const char *name, uint64_t offset, uint64_t *word)
{
	struct original *o = arg;
	uint64_t at, size;

	return find_address(o, name, &at, &size) &&
	       gi_initial(o->image, o->cx, name, at, size, offset, word);
}

bool gi_share(struct gi_image *image, struct gi_ctx *cx, const struct gsr_rewrite *desc,
	      const struct gsr_kernel *k, CUmodule twin, bool **missing)
{
	size_t size = desc->n_variables * sizeof(uint64_t), room;
	struct original original = { .image = image, .cx = cx, .desc = desc, .kernel = k };
	CUdeviceptr at;
	CUstream stream;
	uint64_t *table;
	bool good;

	*missing = NULL;
	if (!k->n_variables)
		return true;
	if (gi_real.cuModuleGetGlobal_v2(&at, &room, twin, desc->addresses) || room != size ||
	    gi_real.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING))
		return false;
	table = malloc(size);
	*missing = calloc(desc->n_variables, sizeof(**missing));
	good = table && *missing && !gi_real.cuMemcpyDtoHAsync_v2(table, at, size, stream) &&
	       !gi_real.cuStreamSynchronize(stream);
	if (good) {
		gsr_fill_addresses(desc, find_address, read_initial, &original, table, *missing);
		good = !gi_real.cuMemcpyHtoDAsync_v2(at, table, size, stream) &&
		       !gi_real.cuStreamSynchronize(stream);
	}
	gi_real.cuStreamDestroy_v2(stream);
	free(table);
	if (!good) {
		free(*missing);
		*missing = NULL;
	}
	return good;
}
