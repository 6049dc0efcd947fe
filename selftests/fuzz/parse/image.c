// SPDX-License-Identifier: LGPL-2.1-or-later
/* Module images and executables: the architecture, then the image. Never more than what was given is read. */
#include "rewriter/gsrewrite.h"
#include "fuzz.h"

static void one(const uint8_t *image, size_t size, unsigned int arch)
{
	struct gsr_error err;
	enum gsr_status status;
	size_t n;
	char *ptx;

	/* a wrapper is a pointer into the program that registers it */
	if (gsr_image_kind(image, size) == GSR_IMAGE_WRAPPER)
		return;
	MUST(gsr_image_size(image, size) <= size, "%zu of %zu bytes", gsr_image_size(image, size), size);
	status = gsr_image_ptx(image, size, arch, &ptx, &n, &err);
	if (status == GSR_OK)
		MUST(ptx && strlen(ptx) == n, "%zu bytes", n);
	else
		MUST(!ptx && !n && err.status == status && !strncmp(err.message, "<image>: ", 9), "status %d", status);
	free(ptx);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t off, len, n;

	if (!size)
		return 0;
	one(data + 1, size - 1, data[0] + 1u);
	if (gsr_elf_fatbin(data + 1, size - 1, &off, &len)) {
		MUST(off <= size - 1 && len <= size - 1 - off, "[%zu, +%zu)", off, len);
		/* a section of its own size, so that reading behind it shows */
		n = len ? len : 1;
		uint8_t *copy = malloc(n);

		if (!copy)
			abort();
		memcpy(copy, data + 1 + off, len);
		one(copy, len, data[0] + 1u);
		free(copy);
	}
	return 0;
}
