/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A kernel's text between two passes, for gsr_options.dump */
#ifndef GSR_DUMP_H
#define GSR_DUMP_H

#include "rewriter/analysis/analysis.h"

struct gsr_dump {
	const char *pass;		/* NULL: nothing is dumped */
	void (*write)(void *arg, const char *text, size_t size);
	void *arg;
	const struct gsr_item **written;
	unsigned int n_written;
};

/* Writes the first of @c and what of its closure was not written yet; false: out of memory */
bool gsr_dump(struct gsr_dump *d, const struct gsr_pass *p, const struct gsr_closure *c);

#endif /* GSR_DUMP_H */
