// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Module images and executables: the architecture, then the image. Never more than what was given
 * is read.
 */
#include "rewriter/tools/gsrewrite.h"
#include "fuzz.h"

static void one(const uint8_t *image, size_t size, unsigned int arch)
{
	struct gsr_error err;
	enum gsr_status status;
	char *ptx, *source;
	size_t n, m;

	/* a wrapper is a pointer into the program that registers it */
	if (gsr_image_kind(image, size) == GSR_IMAGE_WRAPPER)
		return;
	MUST(gsr_image_size(image, size) <= size, "%zu of %zu bytes",
	     gsr_image_size(image, size), size);
	status = gsr_image_ptx(image, size, arch, &ptx, &n, &err);
	if (status == GSR_OK)
		MUST(ptx && strlen(ptx) == n, "%zu bytes", n);
	else
		MUST(!ptx && !n && err.status == status && !strncmp(err.message, "<image>: ", 9),
		     "status %d", status);
	free(ptx);
	/* what the program does of that, and the service with the result, gives the same */
	if (gsr_image_source(image, size, arch, &source, &n, &err) == GSR_OK) {
		MUST(gsr_image_ptx(source, n, arch, &ptx, &m, &err) == status, "%s", err.message);
		free(ptx);
		free(source);
	}
}

/* All fat binaries of a section, alone and as the units of one program */
static void section(const uint8_t *data, size_t size, const char *name, unsigned int arch)
{
	struct gsr_unit units[64];
	size_t off, len, pos = 0, n;
	struct gsr_error err;
	unsigned int k = 0;
	uint8_t *copy;
	char *ptx;

	if (!gsr_elf_section(data, size, name, &off, &len))
		return;
	MUST(off <= size && len <= size - off, "[%zu, +%zu)", off, len);
	/* in a buffer of its own size, so that reading behind it shows */
	copy = malloc(len ? len : 1);
	if (!copy)
		abort();
	memcpy(copy, data + off, len);
	while (k < 64 && gsr_next_fatbin(copy, len, &pos, &units[k])) {
		MUST(pos <= len, "%zu of %zu", pos, len);
		one(units[k].data, units[k].size, arch);
		k++;
	}
	if (gsr_program_ptx(k ? units[0].data : NULL, k ? units[0].size : 0, units, k, arch, &ptx,
			    &n, &err) == GSR_OK)
		MUST(ptx && strlen(ptx) == n, "%zu bytes", n);
	else
		MUST(!ptx && !n && !strncmp(err.message, "<image>: ", 9), "%s", err.message);
	free(ptx);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	one(data + 1, size - 1, data[0] + 1u);
	section(data + 1, size - 1, GSR_SECTION_WHOLE, data[0] + 1u);
	section(data + 1, size - 1, GSR_SECTION_UNITS, data[0] + 1u);
	return 0;
}
