// SPDX-License-Identifier: LGPL-2.1-or-later
/* The twins' table of addresses, for those who load them. */
#include "gsr.h"

void gsr_fill_addresses(const struct gsr_rewrite *rw, gsr_find_fn *find, void *arg, uint64_t *table, bool *missing)
{
	unsigned int i;

	for (i = 0; i < rw->n_variables; i++) {
		const struct gsr_variable *v = &rw->variables[i];
		uint64_t address = 0, size = 0;
		bool found = find(arg, v->name, &address, &size) && address && (!v->size || size == v->size);

		if (found)
			table[i] = address;
		missing[i] = !found && !v->copied;
	}
}

const char *gsr_missing_variable(const struct gsr_rewrite *rw, const struct gsr_kernel *k, const bool *missing)
{
	unsigned int i;

	for (i = 0; i < k->n_variables; i++)
		if (missing[k->variables[i]])
			return rw->variables[k->variables[i]].name;
	return NULL;
}
