// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Replaces reads of %ctaid and %nctaid by loads of the values that the loop stored in shared
 * memory. In a kernel %nctaid is read from the parameters and, unless the twin is resumable, %ctaid
 * from registers.
 *
 * In: a function that reads the ids. Out: the same without such reads, and which ids the kernel
 * holds in registers; or a refusal. Assumes that the loop writes the ids as task.h says.
 */
#include <stdio.h>
#include <string.h>
#include "transform.h"
#include "rewriter/transform/blockids.ptx.h"

struct ids {
	struct gsr_pass *p;
	struct gsr_function *f;
	struct gsr_stmt *s;
	struct gsr_ids *ids;		/* held; NULL: in shared memory */
	const char *ctaid, *nctaid;	/* names of the special registers, interned */
	unsigned int inserted, fresh;
	const char *refusal;
};

static const char components[] = "xyzw";

static bool is_id(const struct ids *w, const struct gsr_operand *o)
{
	return o->kind == GSR_OPND_REG && (o->name == w->ctaid || o->name == w->nctaid);
}

/*
 * "[…]" of the word, or of the four, that hold the operand, and their space; NULL: no such
 * component
 */
static const char *place_of(struct ids *w, const struct gsr_operand *o, const char **space)
{
	bool grid = !strcmp(o->name, "%nctaid");
	const char *k = strchr(components, o->component ? o->component : 'x');
	unsigned int at;

	if (!k || o->selector)
		return NULL;
	at = 4 * (unsigned int)(k - components);
	if (grid && w->f->entry && o->component && o->component != 'w') {
		*space = "param";
		return gsr_sprintf(w->p->arena, "[$#x+%u]",
				   (unsigned int)offsetof(struct gsr_launch, grid) + at);
	}
	*space = "shared";
	return gsr_sprintf(w->p->arena, "[$#me+%u]",
			   (grid ? GSR_TASK_NCTAID : GSR_TASK_CTAID) + at);
}

/* The register of a held component, 0 for .w; NULL: it is not held */
static const char *held(struct ids *w, const struct gsr_operand *o, char component)
{
	const char *k = strchr(components, component);
	unsigned int at;

	if (!w->ids || o->name != w->ctaid || o->selector || !k || component == 'w')
		return NULL;
	at = (unsigned int)(k - components) + 1;
	w->ids->held = w->ids->held < at ? at : w->ids->held;
	return gsr_sprintf(w->p->arena, "%%#c%c", component);
}

/* An operand of any other instruction: load it into a register of our own before */
static void replace(struct ids *w, struct gsr_operand *o)
{
	const char *space, *where;
	unsigned int i;

	for (i = 0; i < o->n_items; i++)
		replace(w, &o->items[i]);
	if (!is_id(w, o))
		return;
	where = o->component ? held(w, o, o->component) : NULL;
	if (where) {
		o->name = gsr_intern_str(w->p->arena, gsr_expand(w->p, where));
		o->component = 0;
		return;
	}
	where = o->component ? place_of(w, o, &space) : NULL;
	if (!where) {
		w->refusal = gsr_sprintf(w->p->arena, "%s used in a way we do not know", o->name);
		return;
	}
	w->inserted += gsr_insert(w->p, w->f, w->s,
				  gsr_sprintf(w->p->arena, load_id, space, w->fresh, where));
	o->name = gsr_intern_str(w->p->arena,
				 gsr_expand(w->p, gsr_sprintf(w->p->arena, "%%#i%u", w->fresh)));
	o->component = 0;
	w->fresh++;
}

/*
 * What stands in place of mov.@type @to, @from: a load, or, from registers, a conversion or another
 * mov; NULL as it is
 */
static const char *instead(struct ids *w, const struct gsr_operand *from, const char *type,
			   bool vec)
{
	const char *space, *where = vec ? NULL : held(w, from, from->component);

	if (where)
		return gsr_type_size(type) == 2 ?
			       gsr_sprintf(w->p->arena, convert_held, where) :
			       NULL;
	if (vec && held(w, from, 'z'))
		return gsr_sprintf(w->p->arena, gather_held, type);
	where = place_of(w, from, &space);
	return where ? gsr_sprintf(w->p->arena, load_instead, space, vec ? "v4." : "", type,
				   where) :
		       NULL;
}

/* mov.u32 %r1, %ctaid.x; mov.v4.u32 {…}, %ctaid */
static bool replace_mov(struct ids *w)
{
	struct gsr_insn *insn = w->s->insn;
	const char *type, *text;
	struct gsr_operand *to;
	bool vec;

	if (insn->op != GSR_OP_MOV || insn->n_opnds != 2 || !is_id(w, &insn->opnds[1]) ||
	    !insn->n_mods)
		return false;
	vec = !strcmp(insn->mods[0], "v4");
	if (vec != !insn->opnds[1].component || insn->n_mods != (vec ? 2 : 1))
		return false;
	type = insn->mods[insn->n_mods - 1];
	if (gsr_type_size(type) != 4 && (vec || gsr_type_size(type) != 2))
		return false;
	text = instead(w, &insn->opnds[1], type, vec);
	if (!text)
		return false;
	to = gsr_alloc_array(w->p->arena, 2, sizeof(*to));
	to[0] = insn->opnds[0];
	w->inserted += gsr_insert(w->p, w->f, w->s, text);
	to[1] = w->s->prev->insn->opnds[1];
	w->s->prev->insn->opnds = to;
	w->s->prev->insn->guard = insn->guard;
	w->s->prev->insn->guard_negated = insn->guard_negated;
	/* the statement stays: a block of the graph may begin or end with it */
	w->s->insn = w->s->prev->insn;
	gsr_remove(w->f, w->s->prev);
	return true;
}

unsigned int gsr_blockids(struct gsr_pass *p, struct gsr_function *f, struct gsr_ids *ids,
			  const char **refusal)
{
	struct ids w = { .p = p, .f = f, .ids = ids,
			 .ctaid = gsr_intern_str(p->arena, "%ctaid"),
			 .nctaid = gsr_intern_str(p->arena, "%nctaid") };
	struct gsr_stmt *next;
	unsigned int i;

	for (w.s = f->first; w.s; w.s = next) {
		next = w.s->next;
		if (w.s->kind != GSR_STMT_INSN || replace_mov(&w))
			continue;
		for (i = 0; i < w.s->insn->n_opnds; i++)
			replace(&w, &w.s->insn->opnds[i]);
	}
	if (w.fresh)
		gsr_insert(p, f, f->first, gsr_sprintf(p->arena, declarations, w.fresh));
	*refusal = w.refusal;
	return w.inserted;
}
