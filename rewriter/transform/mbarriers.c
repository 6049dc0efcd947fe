// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * mbarrier objects that the kernel leaves in shared memory at the end of a block-task. They must be
 * invalidated before that memory is used again, so the twin keeps a list of the mbarriers that it
 * initialises, and thread 0 invalidates them between two block-tasks.
 *
 * The list is a shared variable: the number of addresses, then the addresses. The PTX is in
 * mbarriers.ptx.
 *
 * In: functions that initialise mbarriers. Out: the same with updates of the list. Assumes that the
 * loop inserts the invalidation; an address of an unknown form is refused
 * (gsr_mbarriers_refusal()).
 */
#include <stdlib.h>
#include <string.h>
#include "transform.h"
#include "rewriter/transform/mbarriers.ptx.h"

/* Bits of a register by its declaration; 0 unknown, or more than one of the name */
static unsigned int register_bits(const struct gsr_function *f, const char *name)
{
	unsigned int found = 0, i;
	const struct gsr_stmt *s;
	size_t n = strlen(name), d = n;

	while (d && name[d - 1] >= '0' && name[d - 1] <= '9')
		d--;
	for (i = 0, s = f->first; s; s = s->next) {
		const struct gsr_var *v = s->kind == GSR_STMT_VAR ? s->var : NULL;

		if (!v || strcmp(v->space, "reg") != 0 ||
		    (v->range ? strncmp(v->name, name, d) != 0 || v->name[d] || d == n ||
					strtoul(name + d, NULL, 10) >= v->range :
				strcmp(v->name, name) != 0))
			continue;
		found = i++ && found != gsr_type_size(v->type) * 8 ? 0 : gsr_type_size(v->type) * 8;
	}
	return found;
}

static bool is_op(const struct gsr_stmt *s, const char *what)
{
	return s->kind == GSR_STMT_INSN && s->insn->op == GSR_OP_MBARRIER &&
	       gsr_insn_has(s->insn, what);
}

/*
 * Its address in %#m: a text in which %%r stands for its base. NULL: an address of a form we do not
 * know
 */
static const char *place_text(struct gsr_pass *p, const struct gsr_function *f,
			      const struct gsr_insn *insn)
{
	const struct gsr_operand *addr = insn->n_opnds ? &insn->opnds[0] : NULL, *base;
	bool shared = gsr_insn_has(insn, "shared") || gsr_insn_has(insn, "shared::cta");
	unsigned int bits;

	if (!addr || addr->kind != GSR_OPND_ADDR || addr->indexed || addr->n_items != 1)
		return NULL;
	base = &addr->items[0];
	if (base->kind == GSR_OPND_SYM)
		return gsr_sprintf(p->arena, "mov.u32 %%#m, %s; add.u32 %%#m, %%#m, %lld;",
				   base->name, (long long)addr->ival);
	if (base->kind != GSR_OPND_REG)
		return NULL;
	bits = register_bits(f, base->name);
	if (bits == 32 && shared)
		return gsr_sprintf(p->arena, "add.u32 %%#m, %s, %lld;", base->name,
				   (long long)addr->ival);
	if (bits != 64)
		return NULL;
	return gsr_sprintf(p->arena, "add.u64 %%#l, %s, %lld;%s cvt.u32.u64 %%#m, %%#l;",
			   base->name, (long long)addr->ival,
			   shared ? "" : " cvta.to.shared.u64 %#l, %#l;");
}

const char *gsr_mbarriers_refusal(struct gsr_pass *p, const struct gsr_closure *c)
{
	const struct gsr_stmt *s;
	unsigned int i;

	for (i = 0; i < c->n; i++)
		for (s = c->fns[i]->f->first; s && c->fns[i]->has.mbarriers; s = s->next)
			if ((is_op(s, "init") || is_op(s, "inval")) &&
			    !place_text(p, c->fns[i]->f, s->insn))
				return "mbarrier at an address of a form that is not known";
	return NULL;
}

/* Behind a guard of its own, so that only the thread that makes the object notes it */
static unsigned int insert_note(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *s,
				unsigned int label, const char *text)
{
	unsigned int n = 0;
	struct gsr_stmt *from;
	unsigned int i;

	if (s->insn->guard) {
		n += gsr_insert(p, f, s, gsr_sprintf(p->arena, "bra $#note_%u;", label));
		s->prev->insn->guard = s->insn->guard;
		s->prev->insn->guard_negated = !s->insn->guard_negated;
	}
	from = s->prev;
	n += gsr_insert(p, f, s, place_text(p, f, s->insn));
	/* names without % were read as symbols */
	for (from = from ? from->next : f->first; from != s; from = from->next)
		for (i = 0; i < from->insn->n_opnds; i++)
			if (s->insn->opnds[0].items[0].kind == GSR_OPND_REG &&
			    from->insn->opnds[i].name &&
			    !strcmp(from->insn->opnds[i].name, s->insn->opnds[0].items[0].name))
				from->insn->opnds[i].kind = GSR_OPND_REG;
	n += gsr_insert(p, f, s, text);
	if (s->insn->guard)
		gsr_insert(p, f, s, gsr_sprintf(p->arena, "$#note_%u:", label));
	return n;
}

unsigned int gsr_mbarriers(struct gsr_pass *p, struct gsr_fn *fn)
{
	struct gsr_function *f = fn->f;
	unsigned int n = 0, l;
	struct gsr_stmt *s;

	for (s = f->first; s; s = s->next) {
		l = p->unique + 1;
		if (!is_op(s, "init") && !is_op(s, "inval"))
			continue;
		p->unique = l;
		n += insert_note(p, f, s, l,
				 is_op(s, "init") ? note_made :
						   gsr_sprintf(p->arena, note_gone, l));
	}
	gsr_insert(p, f, f->first, ".reg .pred %#mp; .reg .b32 %#m, %#n, %#o, %#k; .reg .b64 %#l;");
	fn->has.mbarriers = false;
	fn->done.mbarriers = true;
	return n;
}
