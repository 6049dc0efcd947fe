/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Internal to the command gsrewrite */
#ifndef GSREWRITE_H
#define GSREWRITE_H

#include "rewriter/gsr.h"

struct cJSON;

#define GSR_SECTION_WHOLE	".nv_fatbin"		/* linked modules */
#define GSR_SECTION_UNITS	"__nv_relfatbin"	/* the units of a relocatable program */

/* elf.c: finds a section in an executable or object; false: none, or not an ELF file */
bool gsr_elf_section(const unsigned char *p, size_t size, const char *name, size_t *off,
		     size_t *len);
/* The next fat binary of a section, from *pos on, which is advanced; false: no more */
bool gsr_next_fatbin(const unsigned char *section, size_t len, size_t *pos, struct gsr_unit *out);

/*
 * registers.c: the register counts of @n kernels of a PTX text in @out, -1 if not known. *@by: the
 * tool that counted; @why: the reason if it could not, else empty.
 */
void gsr_registers(const char *ptx, const char *const *kernels, unsigned int n, int *out,
		   const char **by, char *why, size_t size);

/* json.c: the caller frees it; NULL: out of memory */
struct cJSON *gsr_rewrite_json(const struct gsr_rewrite *rw);

/* explain.c: @ptx is the input of the rewrite @rw. False or NULL: out of memory */
bool gsr_explain(const char *ptx, const struct gsr_rewrite *rw);
char *gsr_explain_json(const char *ptx, const struct gsr_rewrite *rw);	/* malloc'd */

#endif /* GSREWRITE_H */
