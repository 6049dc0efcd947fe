// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The module that holds the twins: which items of the input go along, and what is declared beside
 * them.
 *
 * In: the closures of the twins, after all passes. Out: a module. Assumes that every shared
 * variable and function that a twin needs is listed in its closure.
 */
#include <string.h>
#include "assemble.h"

static struct gsr_item *append_item(struct gsr_pass *p, struct gsr_module *out,
				    enum gsr_item_kind kind)
{
	struct gsr_item *i = gsr_alloc(p->arena, sizeof(*i));

	i->kind = kind;
	if (out->last)
		out->last->next = i;
	else
		out->first = i;
	out->last = i;
	return i;
}

static bool is_shared(const struct gsr_var *v)
{
	return !strcmp(v->space, "shared");
}

bool gsr_is_file(const struct gsr_item *i)
{
	return i->kind == GSR_ITEM_DIRECTIVE && !strncmp(i->text, ".file", 5);
}

/*
 * .debug_str holds the names of inlined functions, which .loc refers to. The other debugging
 * sections are dropped, as they describe code that is not in the module.
 */
bool gsr_is_debug_str(const struct gsr_item *i)
{
	return i->kind == GSR_ITEM_DIRECTIVE && !strncmp(i->text, ".section", 8) &&
	       strstr(i->text, ".debug_str") &&
	       strcspn(i->text, "{") > (size_t)(strstr(i->text, ".debug_str") - i->text);
}

void gsr_drop_stale_lines(struct gsr_function *f, bool files, bool names)
{
	struct gsr_stmt *s, *next;

	for (s = f->first; s; s = next) {
		next = s->next;
		if (s->kind == GSR_STMT_DIRECTIVE && !strncmp(s->text, ".loc", 4) &&
		    (!files || (!names && strstr(s->text, "function_name"))))
			gsr_remove(f, s);
	}
}

/*
 * Declares the twins' shared variables at module scope. If dynamic shared memory must stay aligned,
 * they follow all others of the module, which are moved to the front for that: shared variables
 * have no initializers, so their order is free.
 */
static void add_shared(struct gsr_pass *p, const struct gsr_common *common, struct gsr_module *out)
{
	struct gsr_var **vars;
	struct gsr_item *i;
	unsigned int n, k;

	for (i = p->m->first; i && common->wide; i = i->next)
		if (i->kind == GSR_ITEM_VAR && is_shared(i->var) && *gsr_intern_mark(i->var->name))
			append_item(p, out, GSR_ITEM_VAR)->var = i->var;
	if (common->dynamic)
		append_item(p, out, GSR_ITEM_VAR)->var = gsr_own_dynamic(p);
	if (!common->needed)
		return;
	vars = gsr_own_module(p, &common->own, common->wide, &n);
	for (k = 0; k < n; k++)
		append_item(p, out, GSR_ITEM_VAR)->var = vars[k];
}

static void add_globals(struct gsr_pass *p, struct gsr_rewrite *rw, struct gsr_module *out)
{
	struct gsr_var *table = gsr_alloc(p->arena, sizeof(*table));
	struct gsr_var **copies =
		gsr_alloc_array(p->arena, p->n_globals + 1, sizeof(struct gsr_var *));
	unsigned int i;

	if (!p->n_globals)
		return;
	gsr_globals_finish(p, rw, copies, table);
	for (i = 0; i < p->n_globals; i++)
		if (copies[i])
			append_item(p, out, GSR_ITEM_VAR)->var = copies[i];
	append_item(p, out, GSR_ITEM_VAR)->var = table;
}

/*
 * A devirtualised call names its function, which the input may define behind the caller: so such
 * functions are declared first.
 */
static void declare_devirtualised(struct gsr_pass *p, struct gsr_module *out)
{
	const struct gsr_fnptr *slot;

	for (slot = p->fnptrs; slot; slot = slot->next) {
		const struct gsr_item *i = p->m->first;
		struct gsr_function *f;

		if (!slot->number || !*gsr_intern_mark(slot->fn->f->name))
			continue;
		while (i &&
		       (i->kind != GSR_ITEM_FUNCTION || i->function->name != slot->fn->f->name))
			i = i->next;
		if (!i || !i->function->body)
			continue;
		f = append_item(p, out, GSR_ITEM_FUNCTION)->function =
			gsr_alloc(p->arena, sizeof(*f));
		*f = *i->function;
		f->body = false;
		f->first = f->last = NULL;
	}
}

/*
 * Collects the items that the twins need, in the order of the input, which declares before use.
 * Names of items that are needed carry the mark 1.
 */
void gsr_assemble(struct gsr_pass *p, const struct gsr_common *common, struct gsr_rewrite *rw,
		  const struct gsr_closure *all, unsigned int n_all, struct gsr_module *out)
{
	unsigned int k, c, v;
	struct gsr_item *i;

	for (i = p->m->first; i; i = i->next) {
		if (i->kind == GSR_ITEM_FUNCTION)
			*gsr_intern_mark(i->function->name) = 0;
		else if (i->kind == GSR_ITEM_VAR)
			*gsr_intern_mark(i->var->name) = 0;
	}
	for (c = 0; c < n_all; c++)
		for (k = 0; k < all[c].n; k++) {
			*gsr_intern_mark(all[c].fns[k]->f->name) = 1;
			for (v = 0; v < all[c].fns[k]->has.vars.n; v++)
				*gsr_intern_mark(all[c].fns[k]->has.vars.at[v]->name) = 1;
		}
	add_shared(p, common, out);
	add_globals(p, rw, out);
	declare_devirtualised(p, out);
	for (i = p->m->first; i; i = i->next) {
		if (i->kind == GSR_ITEM_DIRECTIVE &&
		    (!strncmp(i->text, ".pragma", 7) ||
		     (common->lines && (gsr_is_file(i) || gsr_is_debug_str(i)))))
			append_item(p, out, GSR_ITEM_DIRECTIVE)->text = i->text;
		else if (i->kind == GSR_ITEM_VAR && *gsr_intern_mark(i->var->name) &&
			 !(common->wide && is_shared(i->var)))
			append_item(p, out, GSR_ITEM_VAR)->var = i->var;
		/* an entry is renamed: its forward declaration is useless */
		else if (i->kind == GSR_ITEM_FUNCTION && *gsr_intern_mark(i->function->name) &&
			 (i->function->body || !i->function->entry))
			append_item(p, out, GSR_ITEM_FUNCTION)->function = i->function;
	}
}
