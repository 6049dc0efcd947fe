// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Unrolls short loops of resumable twins, so that the check whether to leave, which stands once in
 * all copies, is rare. Only for loops that are contiguous in the text, end in their only back edge
 * and contain no other loop.
 *
 * In: a point at the head of such a loop. Out: the copies, each with its own labels. Assumes the
 * same as stripmine.c.
 */
#include <string.h>
#include "resume.h"

#define INSNS		160	/* between two checks */
#define COPIES_MAX	12

static bool is_line(const struct gsr_stmt *s)
{
	return s->kind == GSR_STMT_DIRECTIVE &&
	       (!strncmp(s->text, ".loc", 4) || !strncmp(s->text, ".pragma", 7));
}

/*
 * The number of instructions of the loop of @blocks, its head first; 0: not of that kind. *@last:
 * its back edge
 */
unsigned int gsr_loop_text(const struct gsr_cfg *cfg, const unsigned int *blocks,
			   unsigned int n_blocks, struct gsr_stmt **last)
{
	unsigned int head = blocks[0], i, end = head, n = 0;
	const struct gsr_stmt *s;

	/* contiguous: all blocks from the head to the last */
	for (i = 0; i < n_blocks; i++) {
		if (blocks[i] < head)
			return 0;
		end = blocks[i] > end ? blocks[i] : end;
	}
	if (end - head + 1 != n_blocks)
		return 0;
	*last = cfg->blocks[end].last;
	if ((*last)->kind != GSR_STMT_INSN || (*last)->insn->op != GSR_OP_BRA ||
	    !(*last)->insn->n_opnds || cfg->blocks[head].first->kind != GSR_STMT_LABEL ||
	    (*last)->insn->opnds[0].name != cfg->blocks[head].first->label)
		return 0;
	for (s = cfg->blocks[head].first; s != *last; s = s->next) {
		if (s->kind == GSR_STMT_INSN && s->insn->op == GSR_OP_BRX)
			return 0;
		if (s->kind == GSR_STMT_DIRECTIVE && !is_line(s))
			return 0;
		n += s->kind == GSR_STMT_INSN;
	}
	return n + 1;
}

/* Labels of the loop are marked with their number, from 1 */
static const char *renamed(struct gsr_pass *p, const char *name, unsigned int n_labels,
			   unsigned int point, unsigned int copy)
{
	unsigned long m = *gsr_intern_mark(name);

	if (!m || m > n_labels)
		return name;
	return gsr_intern_str(p->arena, gsr_expand(p, gsr_sprintf(p->arena, "$#round_%u_%u_%lu",
								  point, copy, m)));
}

unsigned int gsr_unroll(struct gsr_pass *p, struct gsr_function *f, struct gsr_point *pt,
			unsigned int number)
{
	struct gsr_stmt *head = pt->head, *last = pt->last, *s, *at, *back;
	unsigned int copies, j, n = 0, labels = 0;
	struct gsr_operand to_head;

	if (!pt->insns || pt->insns > INSNS / 2)
		return 0;
	copies = INSNS / pt->insns;
	copies = copies > COPIES_MAX ? COPIES_MAX : copies;
	pt->weight *= copies;
	for (s = f->first; s; s = s->next)
		if (s->kind == GSR_STMT_LABEL)
			*gsr_intern_mark(s->label) = 0;
	for (s = head; s != last; s = s->next)
		if (s->kind == GSR_STMT_LABEL)
			*gsr_intern_mark(s->label) = ++labels;
	to_head = last->insn->opnds[0];
	at = last;
	back = last;
	for (j = 1; j < copies; j++) {
		for (s = head;; s = s->next) {
			struct gsr_stmt *c;

			/* flattened: what is declared is known in all copies */
			if (!is_line(s) && s->kind != GSR_STMT_VAR) {
				c = gsr_stmt_copy(p->arena, s);
				if (s->kind == GSR_STMT_LABEL)
					c->label = renamed(p, s->label, labels, number, j);
				else if (s->kind == GSR_STMT_INSN && s->insn->op == GSR_OP_BRA)
					/* the head's label is number 1 */
					c->insn->opnds[0].name =
						*gsr_intern_mark(s->insn->opnds[0].name) == 1 ?
							renamed(p, head->label, labels, number,
								j + 1) :
							renamed(p, s->insn->opnds[0].name, labels,
								number, j);
				gsr_insert_behind(f, at, c);
				at = c;
				n += c->kind == GSR_STMT_INSN;
			}
			if (s == last)
				break;
		}
		back = at;
	}
	/* from each copy to the next; the last goes back to the head */
	for (s = last->next;; s = s->next) {
		if (s->kind == GSR_STMT_INSN && s->insn->op == GSR_OP_BRA &&
		    s->insn->opnds[0].name == renamed(p, head->label, labels, number, copies))
			s->insn->opnds[0].name = to_head.name;
		if (s == back)
			break;
	}
	for (s = head; s != last; s = s->next)
		if (s->kind == GSR_STMT_INSN && s->insn->op == GSR_OP_BRA &&
		    s->insn->opnds[0].name == head->label)
			s->insn->opnds[0].name = renamed(p, head->label, labels, number, 1);
	/* the branch back of all but the last becomes one out */
	gsr_insert(p, f, back->next, gsr_sprintf(p->arena, "$#rounds_%u:\n", number));
	for (j = 1, s = last; j < copies; j++) {
		struct gsr_stmt *next = s->next;

		if (s->insn->guard) {
			s->insn->guard_negated = !s->insn->guard_negated;
			s->insn->opnds[0].name = gsr_intern_str(
				p->arena,
				gsr_expand(p, gsr_sprintf(p->arena, "$#rounds_%u", number)));
		} else {
			gsr_remove(f, s);
			n--;
		}
		/* that of the next copy: just before the label of the one behind it */
		for (s = next; s != back &&
			       !(s->next->kind == GSR_STMT_LABEL && j + 1 < copies &&
				 s->next->label == renamed(p, head->label, labels, number, j + 1));
		     s = s->next)
			;
	}
	return n;
}
