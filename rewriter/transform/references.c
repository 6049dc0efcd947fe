// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Texture and surface references by name. A twin has no references of its own: what the program
 * has bound to them may change between the launch of a task and that of its wings. It gets handles
 * of objects, as parameters in front of struct gsr_launch, which whoever launches it makes of what
 * is bound then.
 *
 * In: a kernel that names references, in ways that variables.c accepts. Out: the same with
 * handles, and their list in its description. Assumes that functions with references have become
 * part of the kernel.
 */
#include <string.h>
#include "transform.h"

unsigned int gsr_references(struct gsr_pass *p, struct gsr_fn *fn, struct gsr_kernel *k)
{
	const struct gsr_vars *used = &fn->has.textures;
	struct gsr_reference *list = gsr_alloc_array(p->arena, used->n + 1, sizeof(*list));
	unsigned int i, which, inserted = 0;
	struct gsr_operand *o;
	struct gsr_stmt *s;

	k->references = list;
	k->n_references = used->n;
	for (i = 0; i < used->n; i++)
		list[i] = (struct gsr_reference){ .name = used->at[i]->name,
						  .surface = gsr_is_surface(used->at[i]) };
	for (s = fn->f->first; s && used->n; s = s->next) {
		for (i = 0; s->kind == GSR_STMT_INSN && i < s->insn->n_opnds; i++) {
			o = s->insn->opnds[i].kind == GSR_OPND_ADDR ? &s->insn->opnds[i].items[0] :
								      NULL;
			if (!o || o->kind != GSR_OPND_SYM)
				continue;
			for (which = 0; which < used->n && list[which].name != o->name;
			     which++)
				;
			if (which == used->n)
				continue;
			gsr_insert(p, fn->f, s,
				   gsr_sprintf(p->arena, "ld.param.u64 %%#t%u, [#references+%u];",
					       inserted, 8 * which));
			*o = (struct gsr_operand){
				.kind = GSR_OPND_REG,
				.name = gsr_intern_str(
					p->arena,
					gsr_expand(p, gsr_sprintf(p->arena, "%%#t%u", inserted))),
			};
			inserted++;
		}
	}
	if (inserted)
		gsr_insert(p, fn->f, fn->f->first,
			   gsr_sprintf(p->arena, ".reg .b64 %%#t<%u>;", inserted));
	return inserted;
}
