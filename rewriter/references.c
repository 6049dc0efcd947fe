// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Texture and surface references by name. A twin has no references of its own: what the program has bound to them may change
 * between the launch of a task and that of its wings. It gets handles of objects, as parameters in front of struct gsr_launch,
 * which whoever launches it makes of what is bound then.
 */
#include <string.h>
#include "rewrite.h"

bool gsr_is_reference(const struct gsr_var *v)
{
	return !strcmp(v->space, "tex") || !strcmp(v->type, "texref") || !strcmp(v->type, "surfref") || !strcmp(v->type, "samplerref");
}

static bool of_surface(const struct gsr_var *v)
{
	return !strcmp(v->type, "surfref");
}

const char *gsr_reference_use(struct gsr_pass *p, const struct gsr_insn *insn, const struct gsr_operand *top,
			      const struct gsr_operand *o, const struct gsr_var *v)
{
	const char *what = of_surface(v) ? "surface" : "texture";
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
		fine = of_surface(v);
		break;
	default:
		break;
	}
	if (!fine || strcmp(v->space, "global") != 0 || v->n_dims || top->kind != GSR_OPND_ADDR || top->indexed || top->ival ||
	    o != &top->items[0])
		return gsr_sprintf(p->arena, "%s reference %s, named by %s", what, v->name, insn->name);
	/* there a handle says nothing of how it is sampled */
	if (strstr(p->m->target, "texmode_independent"))
		return gsr_sprintf(p->arena, "%s reference %s, with samplers apart", what, v->name);
	return NULL;
}

unsigned int gsr_references_used(const struct gsr_closure *c)
{
	unsigned int i, n = 0;

	for (i = 0; i < c->n; i++)
		n += c->fns[i]->n_textures;
	return n;
}

unsigned int gsr_references(struct gsr_pass *p, struct gsr_fn *fn, struct gsr_kernel *k)
{
	struct gsr_reference *list = gsr_alloc_array(p->arena, fn->n_textures + 1, sizeof(*list));
	unsigned int i, which, inserted = 0;
	struct gsr_operand *o;
	struct gsr_stmt *s;

	k->references = list;
	k->n_references = fn->n_textures;
	for (i = 0; i < fn->n_textures; i++)
		list[i] = (struct gsr_reference){ .name = fn->textures[i]->name, .surface = of_surface(fn->textures[i]) };
	for (s = fn->f->first; s && fn->n_textures; s = s->next) {
		for (i = 0; s->kind == GSR_STMT_INSN && i < s->insn->n_opnds; i++) {
			o = s->insn->opnds[i].kind == GSR_OPND_ADDR ? &s->insn->opnds[i].items[0] : NULL;
			if (!o || o->kind != GSR_OPND_SYM)
				continue;
			for (which = 0; which < fn->n_textures && list[which].name != o->name; which++)
				;
			if (which == fn->n_textures)
				continue;
			gsr_insert(p, fn->f, s, gsr_sprintf(p->arena, "ld.param.u64 %%#t%u, [#references+%u];", inserted, 8 * which));
			*o = (struct gsr_operand){
				.kind = GSR_OPND_REG,
				.name = gsr_intern_str(p->arena, gsr_expand(p, gsr_sprintf(p->arena, "%%#t%u", inserted))),
			};
			inserted++;
		}
	}
	if (inserted)
		gsr_insert(p, fn->f, fn->f->first, gsr_sprintf(p->arena, ".reg .b64 %%#t<%u>;", inserted));
	return inserted;
}
