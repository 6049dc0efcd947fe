/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * gschedctl: tables on stdout. All of this takes NULL, so memory that ran out shows as a table that
 * is not there.
 */
#ifndef GSCHEDCTL_TABLE_H
#define GSCHEDCTL_TABLE_H

#include <libsmartcols/libsmartcols.h>

/* The columns' names, a space between them; '>' in front of one: it holds numbers */
struct libscols_table *ctl_table(const char *columns);
/* A row, as many texts as there are columns; they are copied */
void ctl_row_of(struct libscols_table *table, const char *const *cells);
#define ctl_row(table, ...)	ctl_row_of(table, (const char *const []){ __VA_ARGS__ })
/* Prints it, each line behind @indent, and frees it */
void ctl_table_print(struct libscols_table *table, const char *indent);

#endif /* GSCHEDCTL_TABLE_H */
