// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Returns of the kernel become jumps to the end of its body. Where threads may return while others still use barrier 0,
 * that barrier becomes a vote "somebody is still in the body", at one place for all: threads in the body vote true and go
 * back to where they came from, those at the end vote false and come again until nobody voted true. So the finished keep
 * taking part, and the last round is the end's barrier.
 */
#include <string.h>
#include "rewrite.h"

unsigned int gsr_returns(struct gsr_pass *p, struct gsr_function *f, unsigned int *returns)
{
	struct gsr_stmt *s;

	*returns = 0;
	for (s = f->first; s; s = s->next) {
		struct gsr_insn *insn = s->kind == GSR_STMT_INSN ? s->insn : NULL;
		struct gsr_operand *to;

		if (!insn || (insn->op != GSR_OP_RET && insn->op != GSR_OP_EXIT))
			continue;
		to = gsr_alloc(p->arena, sizeof(*to));
		to->kind = GSR_OPND_SYM;
		to->name = gsr_intern_str(p->arena, gsr_expand(p, "$#end"));
		insn->op = GSR_OP_BRA;
		insn->name = gsr_intern_str(p->arena, "bra");
		insn->opnds = to;
		insn->n_opnds = 1;
		++*returns;
	}
	return 0;
}

/*
 * A site: note where to go on, meet the others at the end, come back. Each lane of a warp comes to the meeting, from a
 * site or from its return, so the warp is whole there: barriers count warps, and lanes of one that wait at different
 * instructions hang on real devices.
 */
unsigned int gsr_convert_barriers(struct gsr_pass *p, struct gsr_function *f, unsigned int *sites, bool resumable)
{
	struct gsr_stmt *s, *next;
	struct gsr_barrier b;
	unsigned int n = 0;

	*sites = 0;
	for (s = f->first; s; s = next) {
		unsigned int i = *sites;

		next = s->next;
		if (s->kind != GSR_STMT_INSN || !gsr_barrier_of(f, s->insn, &b) || b.warp || b.cluster || b.counted)
			continue;
		if (s->insn->guard) {
			n += gsr_insert(p, f, s, gsr_sprintf(p->arena, "bra $#past_%u;", i));
			s->prev->insn->guard = s->insn->guard;
			s->prev->insn->guard_negated = !s->insn->guard_negated;
		}
		if (resumable)
			gsr_insert(p, f, s, gsr_sprintf(p->arena, "$#again_%u:", i));
		n += gsr_insert(p, f, s, gsr_sprintf(p->arena, "mov.u32 %%#s, %u; bra $#meet; $#site_%u:", i, i));
		if (s->insn->guard)
			gsr_insert(p, f, s, gsr_sprintf(p->arena, "$#past_%u:", i));
		gsr_remove(f, s);
		n--;
		++*sites;
	}
	if (*sites && !resumable)
		gsr_insert(p, f, f->first, ".reg .b32 %#s;");
	return n;
}
