/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What programs of the driver API share: each ends with a message where something fails. */
#ifndef PROGRAMS_DRV_H
#define PROGRAMS_DRV_H

#include <stdio.h>
#include <stdlib.h>

#include "libgsched/cuda/base/cudadrv.h"

static inline void check(CUresult r, const char *what)
{
	const char *text = NULL;

	if (r == CUDA_SUCCESS)
		return;
	cuGetErrorString(r, &text);
	fprintf(stderr, "%s: %s (%d)\n", what, text ? text : "unknown error", (int)r);
	exit(1);
}
#define DO(call) check(call, #call)

/* The file, NUL-terminated; the caller frees it */
static inline char *read_text(const char *path)
{
	FILE *f = fopen(path, "re");
	char *text = NULL;
	size_t size = 0, n;

	if (!f) {
		perror(path);
		exit(1);
	}
	do {
		text = realloc(text, size + 65537);
		if (!text)
			abort();
		n = fread(text + size, 1, 65536, f);
		size += n;
	} while (n);
	text[size] = '\0';
	fclose(f);
	return text;
}

#endif
