// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Uses of the module's variables and of texture and surface references that the twins can replace
 * (globals.c, references.c).
 *
 * In: an instruction and the operand that names a variable. Out: a refusal or NULL. Assumes
 * nothing.
 */
#include <string.h>
#include "analysis.h"

/* a[3]: the index counts elements */
static bool element(const struct gsr_operand *o, const struct gsr_var *v)
{
	return o->items[1].kind == GSR_OPND_INT && v->n_dims == 1;
}

static bool eight_bytes(const struct gsr_insn *insn)
{
	return insn->n_mods && gsr_type_size(insn->mods[insn->n_mods - 1]) == 8;
}

const char *gsr_global_use(struct gsr_pass *p, const struct gsr_insn *insn,
			   const struct gsr_operand *top, const struct gsr_operand *o,
			   const struct gsr_var *v)
{
	bool address = top->kind == GSR_OPND_ADDR && o == &top->items[0], fine;

	switch (insn->op) {
	case GSR_OP_MOV:
	case GSR_OP_CVTA:
		fine = insn->n_opnds == 2 && top == &insn->opnds[1] && eight_bytes(insn) &&
		       (o == top || (address && top->indexed && element(top, v)));
		break;
	case GSR_OP_ST:
		fine = (o == top && top == &insn->opnds[insn->n_opnds - 1] &&
			gsr_insn_has(insn, "param") && eight_bytes(insn)) ||
		       (address && (top->indexed ? element(top, v) : top->n_items == 1));
		break;
	case GSR_OP_TEX:
	case GSR_OP_TLD4:
	case GSR_OP_TXQ:
	case GSR_OP_SULD:
	case GSR_OP_SUST:
	case GSR_OP_SURED:
	case GSR_OP_SUQ:
	case GSR_OP_MULTIMEM:
		fine = false;
		break;
	default:
		fine = address && (top->indexed ? element(top, v) : top->n_items == 1);
	}
	return fine ? NULL :
	       gsr_sprintf(p->arena, "variable %s named by %s in a way we do not know", v->name,
			   insn->name);
}

const char *gsr_constant_use(struct gsr_pass *p, const struct gsr_insn *insn)
{
	if (insn->op == GSR_OP_ISSPACEP &&
	    (gsr_insn_has(insn, "const") || (p->constants && gsr_insn_has(insn, "global"))))
		return "tells constant memory from global memory (isspacep)";
	if (!gsr_insn_has(insn, "const"))
		return NULL;
	if (insn->op != GSR_OP_LD && insn->op != GSR_OP_CVTA)
		return gsr_sprintf(p->arena, "constant memory used by %s", insn->name);
	return p->constants ? NULL : "constant memory of no variable";
}

const char *gsr_globals_room(struct gsr_pass *p, const struct gsr_closure *c)
{
	unsigned int i, n = p->n_globals;

	for (i = 0; i < c->n; i++)
		n += c->fns[i]->has.globals.n;
	return n > GSR_VARIABLES_MAX ?
	       gsr_sprintf(p->arena, "more than %u variables of the module", GSR_VARIABLES_MAX) :
	       NULL;
}

const char *gsr_reference_use(struct gsr_pass *p, const struct gsr_insn *insn,
			      const struct gsr_operand *top, const struct gsr_operand *o,
			      const struct gsr_var *v)
{
	const char *what = gsr_is_surface(v) ? "surface" : "texture";
	bool fine = false;

	if (!strcmp(v->type, "samplerref"))
		return gsr_sprintf(p->arena, "sampler reference %s", v->name);
	switch (insn->op) {
	case GSR_OP_TEX:
	case GSR_OP_TLD4:
	case GSR_OP_TXQ:
		fine = !strcmp(v->type, "texref");
		break;
	case GSR_OP_SULD:
	case GSR_OP_SUST:
	case GSR_OP_SURED:
	case GSR_OP_SUQ:
		fine = gsr_is_surface(v);
		break;
	default:
		break;
	}
	if (!fine || strcmp(v->space, "global") != 0 || v->n_dims || top->kind != GSR_OPND_ADDR ||
	    top->indexed || top->ival || o != &top->items[0])
		return gsr_sprintf(p->arena, "%s reference %s, named by %s", what, v->name,
				   insn->name);
	/* there a handle says nothing of how it is sampled */
	if (strstr(p->m->target, "texmode_independent"))
		return gsr_sprintf(p->arena, "%s reference %s, with samplers apart", what, v->name);
	return NULL;
}

unsigned int gsr_references_used(const struct gsr_closure *c)
{
	unsigned int i, n = 0;

	for (i = 0; i < c->n; i++)
		n += c->fns[i]->has.textures.n;
	return n;
}
