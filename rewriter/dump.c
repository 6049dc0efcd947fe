// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Dumps: the text of a kernel between two passes, with the functions and variables of the input
 * that it uses. All kernels of a module make one text: the first begins it with the directives of
 * the module, and an item that several kernels use is written with the first of them.
 *
 * In: a module in any state between two passes. Out: text. Changes nothing, marks of names
 * included: the passes may rely on them.
 */
#include <stdlib.h>
#include <string.h>
#include "dump.h"

static bool lists_var(const struct gsr_vars *l, const struct gsr_item *i)
{
	unsigned int k;

	for (k = 0; k < l->n; k++)
		if (l->at[k] == i->var)
			return true;
	return false;
}

static bool is_used(const struct gsr_closure *c, const struct gsr_item *i)
{
	unsigned int k;

	/* line information refers to these by number */
	if (i->kind == GSR_ITEM_DIRECTIVE)
		return !strncmp(i->text, ".file", 5);
	for (k = 0; k < c->n; k++) {
		const struct gsr_fn *fn = c->fns[k];

		if (i->kind == GSR_ITEM_FUNCTION && i->function->name == fn->f->name)
			return true;
		if (i->kind == GSR_ITEM_VAR && (lists_var(&fn->has.vars, i) ||
						lists_var(&fn->has.globals, i) ||
						lists_var(&fn->has.textures, i)))
			return true;
	}
	return false;
}

static bool is_written(const struct gsr_dump *d, const struct gsr_item *i)
{
	unsigned int k;

	for (k = 0; k < d->n_written; k++)
		if (d->written[k] == i)
			return true;
	return false;
}

bool gsr_dump(struct gsr_dump *d, const struct gsr_pass *p, const struct gsr_closure *c)
{
	struct gsr_module part = *p->m;
	const struct gsr_item *i;
	unsigned int n_items = 0;
	bool first = !d->written;
	const char *begin;
	size_t size;
	char *text;

	part.first = part.last = NULL;
	for (i = p->m->first; i; i = i->next)
		n_items++;
	if (first)
		d->written = gsr_alloc_array(p->arena, n_items + 1, sizeof(*d->written));
	for (i = p->m->first; i; i = i->next) {
		struct gsr_item *copy;

		if (!is_used(c, i) || is_written(d, i))
			continue;
		d->written[d->n_written++] = i;
		copy = gsr_memdup(p->arena, i, sizeof(*i));
		copy->next = NULL;
		if (part.last)
			part.last->next = copy;
		else
			part.first = copy;
		part.last = copy;
	}
	text = gsr_print(&part, &size);
	if (!text)
		return false;
	/* an empty line follows the module's directives */
	begin = first ? text : strstr(text, "\n\n") + 2;
	d->write(d->arg, begin, size - (size_t)(begin - text));
	free(text);
	return true;
}
