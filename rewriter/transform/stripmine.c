// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Strip-mining of counted loops in resumable twins. The inner loop runs a fixed number of
 * iterations in a form that the assembler optimises well; the outer loop checks whether to leave.
 * The counter i has one write in the loop, i += step, in the block that ends it with "continue
 * while i ? bound":
 *
 *	HEAD: check; stop = bound
 *	      if (i ? bound and bound - i > rounds * step) stop = i + rounds * step
 *	inner: BODY; i += step; if (i ? stop) goto inner
 *	      if (i ? bound) { charge the instructions executed; goto HEAD }
 *
 * stop lies between i and bound, so the inner loop never steps over a value of i at which the
 * original would have ended. A step in a register, as in loops over a grid or thread block, is
 * taken to be an upward one; with another one bound is never far, and the loop is not cut.
 *
 * In: a point at a loop's head. Out: the two loops, or false if the loop has another form. Assumes
 * that the loop is contiguous in the text (gsr_point.head and last). Does not rebuild the graph.
 */
#include <string.h>
#include "resume.h"
#include "rewriter/transform/stripmine.ptx.h"

#define SHORT	8	/* assumed trip count of a loop, for its weight */

struct counted {
	struct gsr_insn *add, *cmp;
	const char *type;		/* of the comparison: "s32" */
	const char *op;			/* "ne" */
	const char *by;			/* a register; NULL: @step */
	int64_t step;
	unsigned int bits;
};

static bool is_reg(const struct gsr_operand *o, const char *name)
{
	return o->kind == GSR_OPND_REG && !o->negated && !o->component && !o->selector &&
	       o->name == name;
}

static bool names_reg(const struct gsr_operand *o, const char *name)
{
	unsigned int i;

	if ((o->kind == GSR_OPND_REG || o->kind == GSR_OPND_SYM) && o->name == name)
		return true;
	for (i = 0; i < o->n_items; i++)
		if (names_reg(&o->items[i], name))
			return true;
	return false;
}

bool gsr_insn_names(const struct gsr_insn *insn, const char *name)
{
	unsigned int i;

	if (insn->guard == name)
		return true;
	for (i = 0; i < insn->n_opnds; i++)
		if (names_reg(&insn->opnds[i], name))
			return true;
	return false;
}

/* An instruction may write its first operand, unless that is an address; a call, all it names */
static bool may_write(const struct gsr_insn *insn, const char *name)
{
	return insn->op == GSR_OP_CALL ? gsr_insn_names(insn, name) :
					 insn->n_opnds && insn->opnds[0].kind != GSR_OPND_ADDR &&
						 names_reg(&insn->opnds[0], name);
}

static unsigned int bits_of(const char *type)
{
	if (type[0] != 's' && type[0] != 'u' && type[0] != 'b')
		return 0;
	return !strcmp(type + 1, "32") ? 32 : !strcmp(type + 1, "64") ? 64 : 0;
}

static bool is_increment(const struct gsr_insn *i, const char *counter, struct counted *c)
{
	const struct gsr_operand *by = &i->opnds[2];

	if ((i->op != GSR_OP_ADD && i->op != GSR_OP_SUB) || i->guard || i->n_mods != 1 ||
	    i->n_opnds != 3 || bits_of(i->mods[0]) != c->bits || !is_reg(&i->opnds[0], counter))
		return false;
	if (i->op == GSR_OP_ADD && is_reg(by, counter))
		by = &i->opnds[1];
	else if (!is_reg(&i->opnds[1], counter))
		return false;
	if (by->kind == GSR_OPND_REG && i->op == GSR_OP_ADD) {
		c->by = by->name;
		c->step = 1;
		return is_reg(by, by->name) && by->name != counter;
	}
	if (by->kind != GSR_OPND_INT)
		return false;
	c->step = i->op == GSR_OP_ADD ? by->ival : -by->ival;
	if (c->bits == 32)
		c->step = (int32_t)c->step;
	return c->step && c->step > -(1 << 20) && c->step < 1 << 20;
}

/* Does stepping bring i closer to the bound of "continue while i OP bound"? */
static bool approaches_bound(const char *op, int64_t step)
{
	if (!strcmp(op, "ne"))
		return true;
	if (!strcmp(op, "lt") || !strcmp(op, "le") || !strcmp(op, "lo") || !strcmp(op, "ls"))
		return step > 0;
	if (!strcmp(op, "gt") || !strcmp(op, "ge") || !strcmp(op, "hi") || !strcmp(op, "hs"))
		return step < 0;
	return false;
}

static bool find_counter(const struct gsr_point *pt, struct counted *c)
{
	const struct gsr_insn *back = pt->last->insn, *i;
	const char *counter = NULL, *bound = NULL;
	struct gsr_stmt *s;
	bool own_block = true;

	memset(c, 0, sizeof(*c));
	if (!back->guard || back->guard_negated)
		return false;
	/* backwards through the last block: the comparison, and the addition before it */
	for (s = pt->last->prev; s && s != pt->head; s = s->prev) {
		i = s->kind == GSR_STMT_INSN ? s->insn : NULL;
		if (s->kind == GSR_STMT_LABEL || s->kind == GSR_STMT_OPEN ||
		    s->kind == GSR_STMT_CLOSE || (i && gsr_insn_branches(i)))
			own_block = false;
		if (!i || !own_block)
			continue;
		if (!c->cmp && may_write(i, back->guard)) {
			if (i->op != GSR_OP_SETP || i->guard || i->n_mods != 2 || i->n_opnds != 3 ||
			    !is_reg(&i->opnds[0], back->guard) ||
			    i->opnds[1].kind != GSR_OPND_REG ||
			    (i->opnds[2].kind != GSR_OPND_REG &&
			     i->opnds[2].kind != GSR_OPND_INT) ||
			    i->opnds[2].negated || i->opnds[2].component)
				return false;
			c->cmp = s->insn;
			c->op = i->mods[0];
			c->type = i->mods[1];
			c->bits = bits_of(c->type);
			counter = i->opnds[1].name;
			bound = i->opnds[2].kind == GSR_OPND_REG ? i->opnds[2].name : NULL;
			if (!c->bits || !is_reg(&i->opnds[1], counter) || counter == bound)
				return false;
		} else if (c->cmp && !c->add && is_increment(i, counter, c)) {
			c->add = s->insn;
		} else if (counter && may_write(i, counter)) {
			return false;
		}
	}
	if (!c->add || !c->cmp || !approaches_bound(c->op, c->step))
		return false;
	/*
	 * Nothing else in the loop may write the counter, the bound or the step, use the
	 * predicate, or branch to the head.
	 */
	for (s = pt->head; s != pt->last; s = s->next) {
		i = s->kind == GSR_STMT_INSN ? s->insn : NULL;
		if (!i || i == c->add || i == c->cmp)
			continue;
		if (may_write(i, counter) || (bound && may_write(i, bound)) ||
		    (c->by && may_write(i, c->by)) || gsr_insn_names(i, back->guard) ||
		    (i->op == GSR_OP_BRA && i->opnds[0].name == pt->head->label))
			return false;
	}
	return (!bound || (!may_write(c->add, bound) && !may_write(c->cmp, bound))) &&
	       (!c->by || !may_write(c->cmp, c->by));
}

unsigned int gsr_stripmine_rounds(const struct gsr_point *pt, unsigned int look)
{
	struct counted c;
	unsigned int rounds;

	/* a join has no loop */
	if (!pt->insns || look / pt->weight < 2 || !find_counter(pt, &c))
		return 0;
	rounds = look / pt->weight;
	/*
	 * The assembler unrolls loops 4 or 16 times: a multiple of that leaves no remainder, which
	 * costs 4 % of a tight loop.
	 */
	return rounds & (rounds >= 16 ? ~15u : rounds >= 4 ? ~3u : ~0u);
}

bool gsr_stripmine(struct gsr_pass *p, struct gsr_function *f, struct gsr_point *pt,
		   unsigned int number, unsigned int look, unsigned int *inserted)
{
	struct counted c;
	const char *bound, *counter;
	unsigned int rounds;
	int64_t distance;
	struct gsr_operand stop = { .kind = GSR_OPND_REG };
	struct gsr_stmt *behind;

	rounds = gsr_stripmine_rounds(pt, look);
	if (!rounds || !find_counter(pt, &c))
		return false;
	distance = (c.step < 0 ? -c.step : c.step) * rounds;
	bound = c.cmp->opnds[2].kind == GSR_OPND_INT ?
			gsr_sprintf(p->arena, "%lld", (long long)c.cmp->opnds[2].ival) :
			c.cmp->opnds[2].name;
	counter = c.cmp->opnds[1].name;
	behind = pt->last->next;
	/* the check will be inserted in front of this, behind the head's label */
	*inserted += gsr_insert(
		p, f, pt->at->next,
		c.by ? gsr_sprintf(p->arena, bound_rounds_by, number, c.bits, c.op, c.type, counter,
				   bound, c.by, rounds) :
		       gsr_sprintf(p->arena, bound_rounds, number, c.bits, c.op, c.type, counter,
				   bound, c.step > 0 ? bound : counter,
				   c.step > 0 ? counter : bound, (long long)distance,
				   (long long)(c.step > 0 ? distance : -distance)));
	*inserted += gsr_insert(p, f, behind,
				gsr_sprintf(p->arena, charge_rounds, c.op, c.type,
					    pt->last->insn->guard, counter, bound,
					    rounds * pt->weight, pt->head->label));
	pt->weight *= rounds < SHORT ? rounds : SHORT;
	stop.name = gsr_intern_str(p->arena,
				   gsr_expand(p, gsr_sprintf(p->arena, "%%#stop_%u", number)));
	c.cmp->opnds[2] = stop;
	pt->last->insn->opnds[0].name = gsr_intern_str(
		p->arena, gsr_expand(p, gsr_sprintf(p->arena, "$#inner_%u", number)));
	return true;
}
