/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Inside gsrewrite, the command */
#ifndef GSREWRITE_H
#define GSREWRITE_H

#include "gsr.h"

#define GSR_SECTION_WHOLE	".nv_fatbin"		/* what is ready to load */
#define GSR_SECTION_UNITS	"__nv_relfatbin"	/* the units of a relocatable program */

/* elf.c: a section's place in an executable or object; false: it has none, or is none */
bool gsr_elf_section(const unsigned char *p, size_t size, const char *name, size_t *off, size_t *len);
/* The fat binaries of a section: from *pos on, which moves; false: no more */
bool gsr_next_fatbin(const unsigned char *section, size_t len, size_t *pos, struct gsr_unit *out);

#endif /* GSREWRITE_H */
