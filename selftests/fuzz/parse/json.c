// SPDX-License-Identifier: LGPL-2.1-or-later
/* The description of a rewrite: what is taken is printed and taken again, the same. */
#include "rewriter/gsr.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gsr_rewrite rw, back;
	struct gsr_error err;
	char *once, *twice;

	if (gsr_rewrite_from_json((const char *)data, size, &rw, &err) != GSR_OK) {
		MUST(!rw.kernels && !rw.ptx && err.status != GSR_OK && err.message[0], "status %d", err.status);
		return 0;
	}
	once = gsr_rewrite_to_json(&rw);
	MUST(once, "printed");
	MUST(gsr_rewrite_from_json(once, strlen(once), &back, &err) == GSR_OK, "%s in\n%s", err.message, once);
	twice = gsr_rewrite_to_json(&back);
	MUST(twice, "printed again");
	MUST(!strcmp(once, twice), "%s\nand\n%s", once, twice);
	free(once);
	free(twice);
	gsr_rewrite_free(&rw);
	gsr_rewrite_free(&back);
	return 0;
}
