// SPDX-License-Identifier: LGPL-2.1-or-later
/* gschedctl: tables on stdout. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ctl.h"
#include "ctl_table.h"

struct libscols_table *ctl_table(const char *columns)
{
	struct libscols_table *table = scols_new_table();
	char name[32];
	size_t len;

	/* never truncate to the terminal's width: it wraps lines */
	scols_table_set_termforce(table, SCOLS_TERMFORCE_NEVER);
	/* it would encode backslashes, too; cells are made safe before */
	scols_table_enable_noencoding(table, 1);
	for (; *columns; columns += len + (columns[len] == ' ')) {
		bool right = *columns == '>';

		columns += right;
		len = strcspn(columns, " ");
		snprintf(name, sizeof(name), "%.*s", (int)len, columns);
		scols_table_new_column(table, name, 0, right ? SCOLS_FL_RIGHT : 0);
	}
	return table;
}

void ctl_row_of(struct libscols_table *table, const char *const *cells)
{
	struct libscols_line *line = table ? scols_table_new_line(table, NULL) : NULL;

	for (size_t i = 0; line && i < scols_table_get_ncols(table); i++) {
		char *text = NULL;
		size_t size;
		FILE *f = open_memstream(&text, &size);

		if (!f)
			return;
		ctl_put_safely(f, cells[i]);
		/* the text is the line's from now on */
		if (fclose(f) || scols_line_refer_data(line, i, text))
			free(text);
	}
}

const char *ctl_bytes(const char *text, char buf[CTL_BYTES_SIZE])
{
	static const char units[] = "KMGT";
	char *end;
	double value = strtod(text, &end);
	size_t n = 0;

	if (end == text || *end) {
		snprintf(buf, CTL_BYTES_SIZE, "%s", text);
		return buf;
	}
	/* from 1023.5 on "%.0f" would print 1024 */
	for (; n < sizeof(units) - 1 && value >= 1023.5; n++)
		value /= 1024;
	snprintf(buf, CTL_BYTES_SIZE, "%.*f%.1s", value < 9.95 && value != (int)value, value,
		 n ? &units[n - 1] : "");
	return buf;
}

void ctl_table_print(struct libscols_table *table, const char *indent)
{
	char *text = NULL, *line, *save = NULL;

	if (table && !scols_print_table_to_string(table, &text) && text)
		for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
			printf("%s%s\n", indent, line);
	free(text);
	scols_unref_table(table);
}
