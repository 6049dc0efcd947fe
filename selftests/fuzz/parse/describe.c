// SPDX-License-Identifier: LGPL-2.1-or-later
/* The description of a rewrite: what is taken is, written again, the same bytes. */
#include "rewriter/gsr.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gsr_rewrite rw;
	struct gsr_error err;
	uint8_t *again;
	size_t n;

	if (gsr_read_description(data, size, &rw, &err) != GSR_OK) {
		MUST(!rw.kernels && !rw.ptx, "nothing is left");
		MUST(err.status != GSR_OK && err.message[0], "status %d", err.status);
		return 0;
	}
	again = gsr_describe(&rw, &n);
	MUST(again && n == size && !memcmp(again, data, n), "%zu bytes of %zu", n, size);
	free(again);
	gsr_rewrite_free(&rw);
	return 0;
}
