/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The module that holds the twins */
#ifndef GSR_ASSEMBLE_H
#define GSR_ASSEMBLE_H

#include "rewriter/runtime/runtime.h"

/* Shared variables that the twins have at module scope */
struct gsr_common {
	struct gsr_own own;		/* what some twin needs there */
	bool needed;			/* some twin needs any */
	bool wide;			/* they are aligned to GSR_ALIGNED */
	bool dynamic;			/* some twin names dynamic shared memory */
	bool lines;			/* line information is kept */
};

/* Fills @out, whose header is that of the input; and @rw's variables, the table of addresses */
void gsr_assemble(struct gsr_pass *p, const struct gsr_common *common, struct gsr_rewrite *rw,
		  const struct gsr_closure *all, unsigned int n_all, struct gsr_module *out);

/* Directives that .loc refers to: .file, and the section with the names of inlined functions */
bool gsr_is_file(const struct gsr_item *i);
bool gsr_is_debug_str(const struct gsr_item *i);

/* Drops .loc directives that refer to files or names that the module lacks */
void gsr_drop_stale_lines(struct gsr_function *f, bool files, bool names);

#endif /* GSR_ASSEMBLE_H */
