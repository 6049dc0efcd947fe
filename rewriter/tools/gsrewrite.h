/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Inside gsrewrite, the command */
#ifndef GSREWRITE_H
#define GSREWRITE_H

#include "rewriter/gsr.h"

struct cJSON;

#define GSR_SECTION_WHOLE	".nv_fatbin"		/* what is ready to load */
#define GSR_SECTION_UNITS	"__nv_relfatbin"	/* the units of a relocatable program */

/* elf.c: a section's place in an executable or object; false: it has none, or is none */
bool gsr_elf_section(const unsigned char *p, size_t size, const char *name, size_t *off,
		     size_t *len);
/* The fat binaries of a section: from *pos on, which moves; false: no more */
bool gsr_next_fatbin(const unsigned char *section, size_t len, size_t *pos, struct gsr_unit *out);

/*
 * registers.c: of the @n named kernels of a PTX text, in @out, -1 not known; @by says who counted,
 * @why (empty: all is well) what is in the way.
 */
void gsr_registers(const char *ptx, const char *const *kernels, unsigned int n, int *out,
		   const char **by, char *why, size_t size);

/* json.c: the caller's; NULL: out of memory */
struct cJSON *gsr_rewrite_json(const struct gsr_rewrite *rw);

/* explain.c: of the PTX that @rw was made of. false, NULL: out of memory */
bool gsr_explain(const char *ptx, const struct gsr_rewrite *rw);
char *gsr_explain_json(const char *ptx, const struct gsr_rewrite *rw);	/* malloc'd */

#endif /* GSREWRITE_H */
