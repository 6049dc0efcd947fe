/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Inside gsrewrite, the command */
#ifndef GSREWRITE_H
#define GSREWRITE_H

#include "gsr.h"

/* elf.c: where an executable keeps its fat binaries; false: it has none, or is none */
bool gsr_elf_fatbin(const unsigned char *p, size_t size, size_t *off, size_t *len);

#endif /* GSREWRITE_H */
