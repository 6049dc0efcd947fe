/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * gschedctl: tables on stdout. All functions accept NULL, so running out of memory results in a
 * missing table.
 */
#ifndef GSCHEDCTL_TABLE_H
#define GSCHEDCTL_TABLE_H

#include <libsmartcols/libsmartcols.h>

/* @columns: names separated by spaces; one that begins with '>' is right-aligned, for numbers. */
struct libscols_table *ctl_table(const char *columns);
/* Adds a row of as many cells as there are columns; the texts are copied. */
void ctl_row_of(struct libscols_table *table, const char *const *cells);
#define ctl_row(table, ...)	ctl_row_of(table, (const char *const []){ __VA_ARGS__ })
/* A cell for a number of bytes, such as "518M"; another word stays. Returns @buf. */
#define CTL_BYTES_SIZE	32
const char *ctl_bytes(const char *text, char buf[CTL_BYTES_SIZE]);
/* Prints the table, each line after @indent, and frees it. */
void ctl_table_print(struct libscols_table *table, const char *indent);

#endif /* GSCHEDCTL_TABLE_H */
