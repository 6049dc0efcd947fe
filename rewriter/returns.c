// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Returns of the kernel become jumps to the end of its body. Where threads may return while others still use barrier 0,
 * that barrier becomes a reduction "somebody is still in the body": threads in the body vote true, those at the end vote
 * false and come again until nobody voted true. So the finished keep taking part, and the last round is the end's barrier.
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

static struct gsr_operand *names(struct gsr_insn *insn, unsigned int i)
{
	return &insn->opnds[i];
}

/*
 * bar.red with a vote of the kernel's own: all votes are added to a word that only grows, between two rounds of barrier 0.
 * The first round parts reading the word before from adding; the second adding from reading the sum.
 */
static unsigned int convert_red(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *s)
{
	static const char round_text[] = "setp.eq.u32 %#q0, 0, 0; barrier.red.or.pred %#q1, 0, %#q0;";
	struct gsr_insn *insn = s->insn;
	struct gsr_operand vote = *names(insn, insn->n_opnds - 1);
	bool and = gsr_insn_has(insn, "and"), popc = gsr_insn_has(insn, "popc");
	struct gsr_stmt *last;
	unsigned int n;

	n = gsr_insert(p, f, s, "ld.volatile.shared.u32 %#q2, [#task+84];");
	n += gsr_insert(p, f, s, round_text);
	n += gsr_insert(p, f, s, "red.shared.add.u32 [#task+84], 1;");
	/* only those that vote add: for "and" those that vote false */
	last = s->prev;
	last->insn->guard = vote.name;
	last->insn->guard_negated = vote.negated != and;
	n += gsr_insert(p, f, s, round_text);
	n += gsr_insert(p, f, s, "ld.volatile.shared.u32 %#q3, [#task+84];");
	n += gsr_insert(p, f, s, popc ? "sub.u32 %#q2, %#q3, %#q2;" :
			and ? "setp.eq.u32 %#q0, %#q3, %#q2;" : "setp.ne.u32 %#q0, %#q3, %#q2;");
	s->prev->insn->opnds[0] = *names(insn, 0);
	gsr_remove(f, s);
	return n - 1;
}

unsigned int gsr_convert_barriers(struct gsr_pass *p, struct gsr_function *f)
{
	struct gsr_stmt *s, *next;
	struct gsr_barrier b;
	unsigned int n = 0;
	bool any = false;

	for (s = f->first; s; s = next) {
		next = s->next;
		if (s->kind != GSR_STMT_INSN || !gsr_barrier_of(f, s->insn, &b) || b.warp || b.cluster || b.counted || b.id != 0)
			continue;
		any = true;
		if (b.red) {
			n += convert_red(p, f, s);
			continue;
		}
		n += gsr_insert(p, f, s, "setp.eq.u32 %#q0, 0, 0; barrier.red.or.pred %#q1, 0, %#q0;");
		s->prev->insn->guard = s->insn->guard;
		s->prev->insn->guard_negated = s->insn->guard_negated;
		gsr_remove(f, s);
		n--;
	}
	if (any)
		gsr_insert(p, f, f->first, ".reg .pred %#q0, %#q1; .reg .b32 %#q2, %#q3;");
	return n;
}
