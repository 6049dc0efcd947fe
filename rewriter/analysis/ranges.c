// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Value ranges: an interval for the value of a register, from the instructions that write it, as
 * far as is needed to tell which barriers a kernel uses.
 *
 * In: a function with its graph and an instruction. Out: a set of barriers, which may be too large.
 * Assumes that register names are unique in the function.
 */
#include <stdlib.h>
#include <string.h>
#include "analysis.h"

#define DEPTH_MAX	10
#define LOOKS_MAX	400	/* at instructions, for one register */

struct range {
	int64_t lo, hi;
};

struct looker {
	const struct gsr_defuse *d;
	unsigned int threads;		/* most of a block */
	unsigned int looks;
};

static const struct range any = { INT32_MIN, UINT32_MAX };

/* .maxntid 256, 1, 1 and .reqntid bound the number of threads of a block by their product */
unsigned int gsr_threads_of(const struct gsr_function *entry)
{
	unsigned long n = 1024, product, v;
	unsigned int i;

	for (i = 0; i < entry->n_perf; i++) {
		const char *s = entry->perf[i];
		char *end;

		if (strncmp(s, ".maxntid", 8) != 0 && strncmp(s, ".reqntid", 8) != 0)
			continue;
		for (product = 1, s += 8; *s; s = *end == ',' ? end + 1 : end) {
			v = strtoul(s, &end, 0);
			if (end == s)
				break;
			product *= v && v <= 1024 ? v : 1;
		}
		n = product < n ? product : n;
	}
	return (unsigned int)n;
}

static struct range range_of(struct looker *l, const struct gsr_operand *o, unsigned int depth);

static struct range sum(struct range a, struct range b)
{
	struct range r = { a.lo + b.lo, a.hi + b.hi };

	/* it may have wrapped around */
	return r.lo < 0 || r.hi > INT32_MAX ? any : r;
}

static struct range product(struct range a, struct range b)
{
	struct range r;

	if (a.lo < 0 || b.lo < 0 || a.hi > 0xffff || b.hi > 0x7fff)
		return any;
	r.lo = a.lo * b.lo;
	r.hi = a.hi * b.hi;
	return r;
}

static struct range result(struct looker *l, const struct gsr_insn *i, unsigned int depth)
{
	struct range a = any, b = any, c = any;

	if (i->n_opnds > 1)
		a = range_of(l, &i->opnds[1], depth);
	if (i->n_opnds > 2)
		b = range_of(l, &i->opnds[2], depth);
	switch (i->op) {
	case GSR_OP_MOV:
		return i->n_opnds == 2 ? a : any;
	case GSR_OP_CVT:
		return a.lo >= 0 && a.hi <= INT16_MAX && !gsr_insn_has(i, "u8") &&
				       !gsr_insn_has(i, "s8") ?
			       a :
			       any;
	case GSR_OP_SELP:
		return (struct range){ a.lo < b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi };
	case GSR_OP_ADD:
		return sum(a, b);
	case GSR_OP_SHR:
		return a.lo >= 0 && a.hi <= INT32_MAX && b.lo == b.hi && b.lo >= 0 && b.lo < 32 ?
		       (struct range){ a.lo >> b.lo, a.hi >> b.lo } : any;
	case GSR_OP_SHL:
		return b.lo == b.hi && b.lo >= 0 && b.lo < 15 ?
			       product(a, (struct range){ 1LL << b.lo, 1LL << b.lo }) :
			       any;
	case GSR_OP_AND:
		if (a.lo >= 0 && (b.lo < 0 || a.hi < b.hi))
			return (struct range){ 0, a.hi };
		return b.lo >= 0 ? (struct range){ 0, b.hi } : any;
	case GSR_OP_MUL:
		return gsr_insn_has(i, "hi") ? any : product(a, b);
	case GSR_OP_MAD:
		if (i->n_opnds > 3)
			c = range_of(l, &i->opnds[3], depth);
		return gsr_insn_has(i, "hi") ? any : sum(product(a, b), c);
	case GSR_OP_REM:
		return a.lo >= 0 && b.lo > 0 ?
			       (struct range){ 0, a.hi < b.hi - 1 ? a.hi : b.hi - 1 } :
			       any;
	case GSR_OP_DIV:
		return a.lo >= 0 && b.lo == b.hi && b.lo > 0 && !gsr_insn_has(i, "f32") ?
			       (struct range){ a.lo / b.lo, a.hi / b.lo } :
			       any;
	case GSR_OP_SHFL:
		/* another lane's, or its own */
		return i->opnds[0].kind == GSR_OPND_REG || i->opnds[0].kind == GSR_OPND_PAIR ? a :
											       any;
	default:
		return any;
	}
}

static struct range range_of(struct looker *l, const struct gsr_operand *o, unsigned int depth)
{
	struct range r = { 0, 0 }, one;
	unsigned int reg, i, k;
	bool found = false;

	if (o->kind == GSR_OPND_INT)
		return (struct range){ o->ival, o->ival };
	if (o->kind != GSR_OPND_REG || o->negated || o->selector)
		return any;
	if (!strcmp(o->name, "%tid"))
		return (struct range){ 0, l->threads - 1 };
	if (!strcmp(o->name, "%ntid"))
		return (struct range){ 1, l->threads };
	if (!strcmp(o->name, "%laneid"))
		return (struct range){ 0, 31 };
	if (o->component || depth > DEPTH_MAX)
		return any;
	reg = gsr_reg_number(l->d, o->name);
	if (reg == GSR_NO_REG)
		return any;
	for (i = l->d->regs[reg].first; i < l->d->regs[reg].end; i++) {
		const struct gsr_insn *insn = l->d->insns[l->d->mentions[i]];
		const struct gsr_operand *to = gsr_defined_by(insn);

		/* which names it twice: once is enough */
		if (i > l->d->regs[reg].first && l->d->mentions[i] == l->d->mentions[i - 1])
			continue;
		if (!to)
			continue;
		for (k = 0; k < to->n_items; k++)
			if (to->items[k].name == o->name && (to->kind != GSR_OPND_PAIR || k))
				return any;
		if (to->kind == GSR_OPND_PAIR ? to->items[0].name != o->name : to->name != o->name)
			continue;
		if (++l->looks > LOOKS_MAX)
			return any;
		one = result(l, insn, depth + 1);
		if (one.lo < 0 || one.hi > INT32_MAX)
			return any;
		r.lo = !found || one.lo < r.lo ? one.lo : r.lo;
		r.hi = !found || one.hi > r.hi ? one.hi : r.hi;
		found = true;
	}
	return found ? r : any;
}

unsigned int gsr_barriers_used(const struct gsr_function *entry, const struct gsr_fn *fn,
			       const struct gsr_insn *insn)
{
	struct looker l = { .d = fn->graph.defuse, .threads = gsr_threads_of(entry) };
	unsigned int at = gsr_insn_has(insn, "red"), ids = 0;
	struct range r;
	int64_t i;

	if (insn->n_opnds <= at)
		return 1;
	gsr_defuse_enter(l.d);
	r = range_of(&l, &insn->opnds[at], 0);
	/* others than 0 to 15 do not exist */
	for (i = r.lo < 0 ? 0 : r.lo; i <= r.hi && i < 16; i++)
		ids |= 1u << i;
	return ids;
}
