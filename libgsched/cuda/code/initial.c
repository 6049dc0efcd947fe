// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Initial values of variables. A twin calls functions by their numbers in the original's module,
 * and these are the values that the program's tables of functions had before the first write
 * (rewriter/gsr.h). No kernel of the module writes them, or there is no twin; the host cannot
 * before it has asked for the variable's address. So they are read when a twin is loaded, or before
 * the program gets the address, whichever comes first.
 */
#include <stdlib.h>
#include <string.h>
#include "code/code.h"

#define VARIABLE_MAX	(64u << 10)	/* larger ones are not read, since the program waits */

struct gi_initial {
	struct gi_initial *next;
	const struct gi_ctx *cx;	/* a library has variables per context; NULL: any */
	void *bytes;			/* NULL: unknown */
	size_t size;
	char name[];
};

/*
 * Whether an initialiser names a symbol. In PTX, '=' occurs only before initialisers. Those with
 * numbers only do not matter.
 */
static bool text_names_functions(const char *ptx)
{
	const char *at, *c;

	for (at = strchr(ptx, '='); at; at = strchr(c, '=')) {
		bool inside = false;	/* inside a number, which may contain letters */

		for (c = at + 1; *c && *c != ';'; c++) {
			bool digit = *c >= '0' && *c <= '9',
				letter = ((*c | 32) >= 'a' && (*c | 32) <= 'z') || *c == '_' ||
					 *c == '$' || *c == '%';

			if (letter && !inside)
				return true;
			inside = digit || (inside && (letter || *c == '.'));
		}
	}
	return false;
}

/* A source may be the texts of several units, each with its NUL. */
bool gi_names_functions(const char *source, size_t size)
{
	const char *at;

	for (at = source; at < source + size; at += strlen(at) + 1)
		if (text_names_functions(at))
			return true;
	return false;
}

/* gi_lock held. */
static struct gi_initial *find_initial(const struct gi_image *image, const struct gi_ctx *cx,
				       const char *name)
{
	struct gi_initial *i;

	for (i = image->initial; i; i = i->next)
		if ((!i->cx || i->cx == cx) && !strcmp(i->name, name))
			break;
	return i;
}

/*
 * Records a value; takes @bytes. gi_lock held. The first caller read it before any write; later
 * callers may not have, so their values are discarded.
 */
static void record_initial(struct gi_image *image, const struct gi_ctx *cx, const char *name,
			   void *bytes, size_t size)
{
	struct gi_initial *i = find_initial(image, cx, name) ? NULL :
			       malloc(sizeof(*i) + strlen(name) + 1);

	if (!i) {
		image->initial_lost |= !find_initial(image, cx, name);
		free(bytes);
		return;
	}
	*i = (struct gi_initial){ .next = image->initial, .cx = cx, .bytes = bytes, .size = size };
	strcpy(i->name, name);
	image->initial = i;
}

/*
 * Copies from the current context @cx without waiting for the program's work. NULL: it failed. The
 * context may have had no task, and so has no stream of ours.
 */
static void *copy_variable(const struct gi_ctx *cx, CUdeviceptr at, size_t size)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	void *bytes = cx && cx->client && size <= VARIABLE_MAX ? malloc(size + 1) : NULL;
	CUstream stream;
	CUresult rc;

	if (!bytes)
		return NULL;
	/* this copy must not become part of a capture */
	gi_real.cuThreadExchangeStreamCaptureMode(&mode);
	rc = gi_real.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
	if (!rc) {
		rc = gi_real.cuMemcpyDtoHAsync_v2(bytes, at, size, stream);
		rc = rc ? rc : gi_real.cuStreamSynchronize(stream);
		gi_real.cuStreamDestroy_v2(stream);
	}
	gi_real.cuThreadExchangeStreamCaptureMode(&mode);
	if (!rc)
		return bytes;
	free(bytes);
	return NULL;
}

bool gi_initial(struct gi_image *image, const struct gi_ctx *cx, const char *name, CUdeviceptr at,
		size_t size, uint64_t offset, uint64_t *word)
{
	const struct gi_ctx *of = image->library ? cx : NULL;
	struct gi_initial *i;
	bool good;
	void *bytes;

	pthread_mutex_lock(&gi_lock);
	i = find_initial(image, of, name);
	pthread_mutex_unlock(&gi_lock);
	if (!i) {
		bytes = copy_variable(cx, at, size);
		pthread_mutex_lock(&gi_lock);
		record_initial(image, of, name, bytes, size);
		i = find_initial(image, of, name);
		pthread_mutex_unlock(&gi_lock);
	}
	good = i && i->bytes && !image->initial_lost && offset + sizeof(*word) <= i->size;
	if (good)
		memcpy(word, (char *)i->bytes + offset, sizeof(*word));
	return good;
}

/* gi_lock held. */
void gi_initial_drop(struct gi_image *image, const struct gi_ctx *cx)
{
	struct gi_initial **p = &image->initial, *i;

	while ((i = *p)) {
		if (cx && i->cx != cx) {
			p = &i->next;
			continue;
		}
		*p = i->next;
		free(i->bytes);
		free(i);
	}
}

/* Whether the variable may hold addresses of functions that twins need. gi_lock held. */
static bool may_hold_functions(const struct gi_image *image, const char *name)
{
	unsigned int i;

	if (image->state != GI_IMAGE_READY)
		return image->state == GI_IMAGE_NEW && image->functions;
	for (i = 0; i < image->desc.n_variables; i++)
		if (image->desc.variables[i].function &&
		    !strcmp(image->desc.variables[i].name, name))
			return true;
	return false;
}

void gi_initial_record(void *handle, const char *name, CUdeviceptr at, size_t size)
{
	struct gi_ctx *cx = NULL, *of = NULL;
	struct gi_image *image;
	bool here, read = false;
	void *bytes;

	pthread_mutex_lock(&gi_lock);
	image = gi_image_find(handle);
	if (image) {
		read = may_hold_functions(image, name);
	} else {
		/* it may be a library's module that was not obtained by cuLibraryGetModule() */
		while ((image = gi_image_next(image)))
			if (image->library && may_hold_functions(image, name))
				record_initial(image, NULL, name, NULL, 0);
	}
	pthread_mutex_unlock(&gi_lock);
	if (!read)
		return;
	cx = gi_current();
	pthread_mutex_lock(&gi_lock);
	image = gi_image_find(handle);
	if (image && image->library)
		of = handle == image->handle ? cx : gi_image_context(image, handle);
	here = image && cx && (image->library ? of == cx : image->context == cx->handle);
	read = image && !find_initial(image, of, name);
	pthread_mutex_unlock(&gi_lock);
	if (!read)
		return;
	bytes = here ? copy_variable(cx, at, size) : NULL;
	pthread_mutex_lock(&gi_lock);
	image = gi_image_find(handle);
	if (image)
		record_initial(image, of, name, bytes, size);
	else
		free(bytes);
	pthread_mutex_unlock(&gi_lock);
}
