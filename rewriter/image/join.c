// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The PTX of an image as one module: that of a relocatable program's units is joined.
 *
 * In: an image, or the source of one (select.c). Out: the text of one module. Assumes nothing of
 * either: a source may come from a stranger.
 */
#include <stdlib.h>
#include <string.h>
#include "fatbin.h"

/* Marks PTX of a program that has, or may have, other units: the analysis looks for this name */
static enum gsr_status add_other_units(char **ptx, size_t *size, struct gsr_error *err)
{
	static const char note[] = "\n.global .b8 " GSR_OTHER_UNITS ";\n";
	char *grown = realloc(*ptx, *size + sizeof(note));

	if (!grown) {
		free(*ptx);
		*ptx = NULL;
		*size = 0;
		return gsr_image_fail(err, GSR_ERR_NOMEM, "out of memory");
	}
	memcpy(grown + *size, note, sizeof(note));
	*ptx = grown;
	*size += sizeof(note) - 1;
	return GSR_OK;
}

static enum gsr_status join_units(const char *source, size_t max, char **ptx, size_t *size,
				  struct gsr_error *err)
{
	struct gsr_units_header head;
	struct gsr_unit *texts;
	enum gsr_status status;
	size_t at = sizeof(head), n;
	unsigned int i;

	memcpy(&head, source, sizeof(head));
	if (!head.n || head.n > GSR_UNITS_MAX || head.others > 1)
		return gsr_image_fail(err, GSR_ERR_FORMAT, "malformed list of units");
	texts = calloc(head.n, sizeof(*texts));
	if (!texts)
		return gsr_image_fail(err, GSR_ERR_NOMEM, "out of memory");
	for (i = 0; i < head.n && at < max; i++) {
		n = strnlen(source + at, max - at);
		texts[i] = (struct gsr_unit){ source + at, n };
		at += n + 1;
	}
	/* each text has its NUL, and nothing follows the last one */
	status = i == head.n && at == max ?
		 gsr_link_ptx(texts, head.n, ptx, size, err) :
		 gsr_image_fail(err, GSR_ERR_FORMAT, "malformed list of units");
	free(texts);
	if (status == GSR_OK && head.others)
		status = add_other_units(ptx, size, err);
	return status;
}

/* Takes @source, which may be NULL. */
static enum gsr_status join_source(enum gsr_status status, char *source, char **ptx, size_t *size,
				   struct gsr_error *err)
{
	size_t n = *size;

	if (status != GSR_OK || gsr_image_kind(source, n) != GSR_IMAGE_UNITS) {
		*ptx = source;
		return status;
	}
	*ptx = NULL;
	*size = 0;
	status = join_units(source, n, ptx, size, err);
	free(source);
	return status;
}

enum gsr_status gsr_program_ptx(const void *linked, size_t linked_max, const struct gsr_unit *units,
				unsigned int n_units, unsigned int arch, char **ptx, size_t *size,
				struct gsr_error *err)
{
	char *source;
	enum gsr_status status = gsr_program_source(linked, linked_max, units, n_units, arch,
						    &source, size, err);

	return join_source(status, source, ptx, size, err);
}

enum gsr_status gsr_image_ptx(const void *image, size_t max, unsigned int arch, char **ptx,
			      size_t *size, struct gsr_error *err)
{
	enum gsr_status status;
	char *source;

	if (max != SIZE_MAX && gsr_image_kind(image, max) == GSR_IMAGE_UNITS) {
		*ptx = NULL;
		*size = 0;
		if (err)
			memset(err, 0, sizeof(*err));
		return join_units(image, max, ptx, size, err);
	}
	status = gsr_image_source(image, max, arch, &source, size, err);
	return join_source(status, source, ptx, size, err);
}
