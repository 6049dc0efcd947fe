// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The twins' table of addresses, for those who load them.
 *
 * In: the description of a rewrite, and functions that find the original's variables. Out: the
 * table that the twins' module expects. Assumes that both modules are loaded in one context.
 */
#include "gsr.h"

void gsr_fill_addresses(const struct gsr_rewrite *rw, gsr_find_fn *find, gsr_first_fn *first,
			void *arg, uint64_t *table, bool *missing)
{
	unsigned int i;

	for (i = 0; i < rw->n_variables; i++) {
		const struct gsr_variable *v = &rw->variables[i];
		uint64_t word = 0, size = 0;
		bool found = find(arg, v->name, &word, &size) && word &&
			     (!v->size || size == v->size);

		/* a function is never number 0: that is the null pointer */
		if (found && v->function)
			found = first(arg, v->name, v->offset, &word) && word;
		if (found)
			table[i] = word;
		missing[i] = !found && !v->copied;
	}
}

const struct gsr_variable *gsr_missing_variable(const struct gsr_rewrite *rw,
						const struct gsr_kernel *k, const bool *missing)
{
	unsigned int i;

	for (i = 0; i < k->n_variables; i++)
		if (missing[k->variables[i]])
			return &rw->variables[k->variables[i]];
	return NULL;
}
