// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Variables of the module. A twin is in a module of its own and shares the original's variables: it
 * loads their addresses from a table in constant memory, which the loader of the twins fills
 * (gsr_fill_addresses()). Constants are read at their generic address, which is in global memory.
 *
 * In: functions that name variables, in ways that variables.c accepts. Out: loads from the table in
 * place of names, the table, and the list in the kernel's description. Assumes that the marks of
 * interned names are free.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "rewriter/ptx/lex.h"
#include "transform.h"

#define COPY_MAX	65536u
#define MARK_GLOBAL	(3UL << 40)
#define MARK_INDEX	0xffffffffUL

/*
 * May the twins have a copy of their own, for when the driver does not find the original (the
 * assembler leaves out what its optimised code does not need)? If nobody can change it: no other
 * module sees it, and no kernel writes it.
 */
static bool copied(struct gsr_pass *p, const struct gsr_var *v)
{
	struct gsr_lexer lx;
	struct gsr_token t;

	if (!v->init || v->linkage || v->attrs || gsr_var_size(v) > COPY_MAX)
		return false;
	/* addresses in it would be those of other copies */
	gsr_lex_init(&lx, v->init, strlen(v->init));
	while ((t = gsr_lex_next(&lx)).kind != GSR_TOK_END)
		if (t.kind == GSR_TOK_IDENT || t.kind == GSR_TOK_BAD)
			return false;
	return !strcmp(v->space, "const") || gsr_never_written(p, v);
}

static unsigned int index_of(struct gsr_pass *p, struct gsr_var *v)
{
	unsigned int i;

	for (i = 0; i < p->n_globals; i++)
		if (p->globals[i].var == v)
			return i;
	p->globals = gsr_grow(p->arena, p->globals, p->n_globals, &p->room_globals,
			      sizeof(*p->globals));
	/* asked now: none of its uses has been replaced yet */
	p->globals[p->n_globals].copied = copied(p, v);
	p->globals[p->n_globals].var = v;
	return p->n_globals++;
}

static struct gsr_var *copy_of(struct gsr_pass *p, const struct gsr_var *v, unsigned int i)
{
	struct gsr_var *copy = gsr_alloc(p->arena, sizeof(*copy));

	*copy = *v;
	copy->space = gsr_intern_str(p->arena, "global");
	copy->name = gsr_intern_str(p->arena, gsr_expand(p, gsr_sprintf(p->arena, "#copy_%u", i)));
	return copy;
}

/* The slot whose function's number @v stands for; NULL: @v is a variable */
static const struct gsr_fnptr *fnptr_of(const struct gsr_pass *p, const struct gsr_var *v)
{
	const struct gsr_fnptr *slot = strcmp(v->space, "number") ? NULL : p->fnptrs;

	while (slot && slot->number != v)
		slot = slot->next;
	return slot;
}

void gsr_globals_finish(struct gsr_pass *p, struct gsr_rewrite *out, struct gsr_var **copies,
			struct gsr_var *table)
{
	size_t room = (strlen(p->prefix.name) + 32) * (size_t)p->n_globals + 4, at = 1;
	char *init = gsr_alloc(p->arena, room);
	unsigned int i;
	bool any = false;

	*init = '{';
	out->variables = gsr_alloc_array(p->arena, p->n_globals + 1, sizeof(*out->variables));
	out->n_variables = p->n_globals;
	for (i = 0; i < p->n_globals; i++) {
		const struct gsr_fnptr *slot = fnptr_of(p, p->globals[i].var);
		const struct gsr_var *v = slot ? slot->in : p->globals[i].var;
		struct gsr_variable *d = &out->variables[i];

		d->name = v->name;
		d->space = !strcmp(v->space, "const") ? GSR_SPACE_CONST : GSR_SPACE_GLOBAL;
		d->size = gsr_var_size(v);
		d->copied = p->globals[i].copied;
		d->function = slot ? slot->fn->f->name : NULL;
		d->offset = slot ? slot->offset : 0;
		any |= d->copied;
		copies[i] = d->copied ? copy_of(p, v, i) : NULL;
		if (d->copied)
			at += (size_t)snprintf(init + at, room - at, "%sgeneric(%s)", i ? ", " : "",
					       copies[i]->name);
		else
			at += (size_t)snprintf(init + at, room - at, "%s0", i ? ", " : "");
	}
	snprintf(init + at, room - at, "}");
	out->addresses = gsr_expand(p, "#addresses");
	*table = (struct gsr_var){
		.space = "const",
		.linkage = "visible",
		.align = 8,
		.type = "u64",
		.name = out->addresses,
		.dims = { p->n_globals },
		.n_dims = 1,
		.init = any ? init : NULL,
	};
}

/* ---- uses ---- */

struct uses {
	struct gsr_pass *p;
	struct gsr_fn *fn;
	unsigned int *index;		/* in the table, of each of fn's variables */
	struct gsr_stmt *s;
	unsigned int inserted, fresh;
};

static const struct gsr_var *variable(const struct uses *u, const struct gsr_operand *o,
				      unsigned int *index)
{
	unsigned long m;

	if (o->kind != GSR_OPND_SYM)
		return NULL;
	m = *gsr_intern_mark(o->name);
	if ((m & ~MARK_INDEX) != MARK_GLOBAL || (m & MARK_INDEX) >= u->fn->has.globals.n ||
	    u->fn->has.globals.at[m & MARK_INDEX]->name != o->name)
		return NULL;
	*index = u->index[m & MARK_INDEX];
	return u->fn->has.globals.at[m & MARK_INDEX];
}

static const char *entry_of(const struct uses *u, unsigned int index)
{
	return gsr_sprintf(u->p->arena, "[#addresses+%u]", 8 * index);
}

static int64_t scale(const struct gsr_operand *o, const struct gsr_var *v)
{
	return o->items[1].ival * (int64_t)gsr_type_size(v->type) * (v->vec ? v->vec : 1);
}

/* mov.u64 %rd1, v; cvta.global.u64 %rd1, v+4: the load takes its place */
static bool becomes_load(struct uses *u)
{
	struct gsr_insn *insn = u->s->insn;
	const struct gsr_operand *o = insn->n_opnds == 2 ? &insn->opnds[1] : NULL;
	const struct gsr_var *v;
	struct gsr_operand *to;
	unsigned int i, n, index;
	struct gsr_stmt *s;
	int64_t offset;

	if (!o || (insn->op != GSR_OP_MOV && insn->op != GSR_OP_CVTA) ||
	    insn->opnds[0].kind != GSR_OPND_REG)
		return false;
	v = variable(u, o->kind == GSR_OPND_ADDR && o->indexed ? &o->items[0] : o, &index);
	if (!v)
		return false;
	offset = o->kind == GSR_OPND_ADDR ? scale(o, v) : o->ival;
	n = gsr_insert(u->p, u->fn->f, u->s,
		       gsr_sprintf(u->p->arena, "ld.const.u64 %%#g, %s;", entry_of(u, index)));
	if (offset)
		n += gsr_insert(
			u->p, u->fn->f, u->s,
			gsr_sprintf(u->p->arena, "add.s64 %%#g, %%#g, %lld;", (long long)offset));
	for (s = u->s->prev, i = n; i; s = s->prev, i--) {
		to = s->insn->opnds;
		to[0] = insn->opnds[0];
		if (s->insn->op == GSR_OP_ADD)
			to[1] = insn->opnds[0];
		s->insn->guard = insn->guard;
		s->insn->guard_negated = insn->guard_negated;
	}
	/* the statement stays: a block of the graph may begin or end with it */
	u->s->insn = u->s->prev->insn;
	gsr_remove(u->fn->f, u->s->prev);
	u->inserted += n - 1;
	return true;
}

/* Any other: its address in a register of our own, loaded before */
static void replace(struct uses *u, struct gsr_operand *o)
{
	const struct gsr_var *v;
	unsigned int index, i;
	int64_t offset;

	if (o->kind == GSR_OPND_ADDR && o->indexed && (v = variable(u, &o->items[0], &index))) {
		o->ival = scale(o, v);
		o->indexed = false;
		o->n_items = 1;
	}
	for (i = 0; i < o->n_items; i++)
		replace(u, &o->items[i]);
	if (!variable(u, o, &index))
		return;
	u->inserted += gsr_insert(
		u->p, u->fn->f, u->s,
		gsr_sprintf(u->p->arena, "ld.const.u64 %%#g%u, %s;", u->fresh, entry_of(u, index)));
	offset = o->ival;
	if (offset)
		u->inserted += gsr_insert(u->p, u->fn->f, u->s,
					  gsr_sprintf(u->p->arena, "add.s64 %%#g%u, %%#g%u, %lld;",
						      u->fresh, u->fresh, (long long)offset));
	*o = (struct gsr_operand){
		.kind = GSR_OPND_REG,
		.name = gsr_intern_str(
			u->p->arena,
			gsr_expand(u->p, gsr_sprintf(u->p->arena, "%%#g%u", u->fresh))),
	};
	u->fresh++;
}

/*
 * Constant memory becomes global memory that does not change while the kernel runs. With modifiers
 * that do not go together with .nc it is plain global memory.
 */
static void constant(struct uses *u)
{
	struct gsr_insn *insn = u->s->insn;
	unsigned int i;

	for (i = 0; i < insn->n_mods && strcmp(insn->mods[i], "const"); i++)
		;
	if (i == insn->n_mods)
		return;
	if (insn->op == GSR_OP_CVTA) {
		insn->op = GSR_OP_MOV;
		insn->name = gsr_intern_str(u->p->arena, "mov");
		gsr_set_mod(insn, 0, insn->mods[insn->n_mods - 1]);
		insn->n_mods = 1;
		return;
	}
	gsr_set_mod(insn, i, gsr_intern_str(u->p->arena, "global"));
	if (i || insn->n_mods == GSR_MODS_MAX || (insn->n_mods > 2 && insn->mods[1][0] != 'v'))
		return;
	memmove(insn->mods + 2, insn->mods + 1, (insn->n_mods - 1) * sizeof(*insn->mods));
	gsr_set_mod(insn, 1, gsr_intern_str(u->p->arena, "nc"));
	insn->n_mods++;
}

unsigned int gsr_globals(struct gsr_pass *p, struct gsr_fn *fn)
{
	struct uses u = { .p = p, .fn = fn };
	struct gsr_stmt *next;
	unsigned int i;

	u.index = gsr_alloc_array(p->arena, fn->has.globals.n + 1, sizeof(*u.index));
	for (i = 0; i < fn->has.globals.n; i++) {
		u.index[i] = index_of(p, fn->has.globals.at[i]);
		*gsr_intern_mark(fn->has.globals.at[i]->name) = MARK_GLOBAL | i;
	}
	for (u.s = fn->f->first; u.s; u.s = next) {
		next = u.s->next;
		if (u.s->kind != GSR_STMT_INSN || becomes_load(&u))
			continue;
		constant(&u);
		for (i = 0; i < u.s->insn->n_opnds; i++)
			replace(&u, &u.s->insn->opnds[i]);
	}
	if (u.fresh)
		gsr_insert(p, fn->f, fn->f->first,
			   gsr_sprintf(p->arena, ".reg .b64 %%#g<%u>;", u.fresh));
	for (i = 0; i < fn->has.globals.n; i++)
		*gsr_intern_mark(fn->has.globals.at[i]->name) = 0;
	return u.inserted;
}

/* Which entries of the table a kernel needs, each once */
void gsr_globals_list(struct gsr_pass *p, const struct gsr_closure *c, struct gsr_kernel *k)
{
	unsigned int i, j, n, most = 0, *list;

	for (i = 0; i < c->n; i++)
		most += c->fns[i]->has.globals.n;
	k->variables = list = gsr_alloc_array(p->arena, most + 1, sizeof(*list));
	for (i = 0; i < c->n; i++)
		for (j = 0; j < c->fns[i]->has.globals.n; j++) {
			unsigned int index = index_of(p, c->fns[i]->has.globals.at[j]);

			for (n = 0; n < k->n_variables && list[n] != index; n++)
				;
			list[n] = index;
			k->n_variables += n == k->n_variables;
		}
}
