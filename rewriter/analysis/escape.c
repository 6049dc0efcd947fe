// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Escape analysis of addresses.
 *
 * Functions: the address of a function is a number that is valid in its own module only, as the
 * code that nvcc makes looks it up in a table of the kernel. So the twin must not call a pointer
 * that the original made, nor the original one of the twin: a function that takes the address of
 * another must keep it in registers, and may call through such registers.
 *
 * Variables: a literal whose address is only loaded from, or printed, is never written.
 *
 * In: a function, or a variable. Out: a refusal or NULL, and gsr_facts.unresolved, the calls that
 * devirtualise.c replaces. Assumes that all functions were scanned for references.
 */
#include <string.h>
#include "analysis.h"

#define MARK_HOLDS	(5UL << 40)
#define MARK_INDEX	0xffffffffUL

/* Is the first operand of the instruction its result? */
static bool has_result(const struct gsr_insn *insn)
{
	return insn->n_opnds && insn->opnds[0].kind != GSR_OPND_ADDR && insn->op != GSR_OP_CALL;
}

/* ---- functions ---- */

struct reg {
	const char *function;	/* a function whose address it may hold */
	bool other;		/* it may hold something else */
	bool defined;		/* .function is final: look for other values now */
};

struct flow {
	struct gsr_fn *fn;
	const struct gsr_defuse *d;
	struct reg *regs;	/* by number */
	bool changed;
};

static struct reg *reg_of(const struct flow *w, const struct gsr_operand *o)
{
	unsigned int reg = o->kind == GSR_OPND_REG ? gsr_reg_number(w->d, o->name) : GSR_NO_REG;

	return reg != GSR_NO_REG ? &w->regs[reg] : NULL;
}

/* The function whose address the operand may hold; NULL none */
static const char *function_in(const struct flow *w, const struct gsr_operand *o)
{
	const struct reg *r;
	const char *found;
	unsigned int i;

	if ((r = reg_of(w, o)))
		return r->function;
	if (o->kind == GSR_OPND_SYM)
		for (i = 0; i < w->fn->has.refs.n; i++)
			if (w->fn->has.refs.at[i]->f->name == o->name)
				return o->name;
	for (i = 0; i < o->n_items; i++)
		if ((found = function_in(w, &o->items[i])))
			return found;
	return NULL;
}

/* Does it hold a function's address and nothing else? */
static bool function_only(const struct flow *w, const struct gsr_operand *o)
{
	const struct reg *r = reg_of(w, o);

	if (o->kind == GSR_OPND_SYM)
		return function_in(w, o);
	return r && r->function && !r->other && !o->negated && !o->component;
}

static bool is_copy(const struct gsr_insn *insn)
{
	return (insn->op == GSR_OP_MOV && insn->n_opnds == 2) ||
	       (insn->op == GSR_OP_SELP && insn->n_opnds == 4);
}

static void mark_other(struct flow *w, const struct gsr_operand *o)
{
	struct reg *r = reg_of(w, o);
	unsigned int i;

	if (r && !r->other)
		r->other = w->changed = true;
	for (i = 0; i < o->n_items; i++)
		mark_other(w, &o->items[i]);
}

static void propagate(struct flow *w, const struct gsr_insn *insn)
{
	unsigned int i, sources = insn->op == GSR_OP_SELP ? 2 : 1;
	struct reg *to;

	if (insn->op == GSR_OP_CALL && insn->n_opnds && insn->opnds[0].kind == GSR_OPND_LIST)
		mark_other(w, &insn->opnds[0]);
	if (!has_result(insn))
		return;
	to = reg_of(w, &insn->opnds[0]);
	if (!to || !is_copy(insn)) {
		mark_other(w, &insn->opnds[0]);
		return;
	}
	for (i = 1; i <= sources; i++) {
		const char *f = function_in(w, &insn->opnds[i]);

		if (f && !to->function) {
			to->function = f;
			w->changed = true;
		}
		if (!function_only(w, &insn->opnds[i]) && !to->other && to->defined)
			to->other = w->changed = true;
	}
}

static void propagate_all(struct flow *w)
{
	unsigned int i;

	do {
		w->changed = false;
		for (i = 0; i < w->d->n_insns; i++)
			propagate(w, w->d->insns[i]);
	} while (w->changed);
}

/* The function whose address escapes through the instruction; NULL: none */
static const char *escaping_function(const struct flow *w, const struct gsr_insn *insn)
{
	unsigned int i, first = has_result(insn);
	const char *f;

	for (i = first; i < insn->n_opnds; i++) {
		const struct gsr_operand *o = &insn->opnds[i];

		f = function_in(w, o);
		if (!f)
			continue;
		if (insn->op == GSR_OP_CALL && (o->kind == GSR_OPND_SYM || o->kind == GSR_OPND_REG))
			continue;
		if (is_copy(insn) && (insn->opnds[0].kind == GSR_OPND_REG))
			continue;
		/* compared with each other, or with null */
		if (insn->op == GSR_OP_SETP && i >= 1 && i <= 2 && insn->n_opnds >= 3 &&
		    (insn->opnds[3 - i].kind == GSR_OPND_INT ||
		     function_only(w, &insn->opnds[3 - i])))
			continue;
		return f;
	}
	return NULL;
}

/* The pointer of an indirect call, unless it surely is one that this function took; NULL: none */
static const struct gsr_operand *unknown_pointer(const struct flow *w, const struct gsr_insn *insn)
{
	unsigned int i;

	for (i = 0; insn->op == GSR_OP_CALL && i < insn->n_opnds; i++)
		if (insn->opnds[i].kind == GSR_OPND_REG && !function_only(w, &insn->opnds[i]))
			return &insn->opnds[i];
	return NULL;
}

static void note_unknown(struct gsr_pass *p, struct gsr_fn *fn, struct gsr_stmt *call)
{
	fn->has.unresolved.at = gsr_grow(p->arena, fn->has.unresolved.at, fn->has.unresolved.n,
				  &fn->has.unresolved.room, sizeof(struct gsr_stmt *));
	fn->has.unresolved.at[fn->has.unresolved.n++] = call;
}

const char *gsr_track_fnptrs(struct gsr_pass *p, struct gsr_fn *fn)
{
	struct flow w = { .fn = fn, .d = gsr_defuse_build(p->scratch, fn->f) };
	const struct gsr_operand *pointer;
	const char *why = NULL, *f;
	struct gsr_stmt *s;
	unsigned int i;

	gsr_defuse_enter(w.d);
	w.regs = gsr_alloc_array(p->scratch, w.d->n_regs + 1, sizeof(*w.regs));
	/* first which registers may hold functions, then which of these may hold other values */
	propagate_all(&w);
	for (i = 0; i < w.d->n_regs; i++)
		w.regs[i].defined = true;
	propagate_all(&w);
	for (s = fn->f->first; s; s = s->next) {
		if (s->kind != GSR_STMT_INSN)
			continue;
		pointer = unknown_pointer(&w, s->insn);
		if ((f = escaping_function(&w, s->insn))) {
			p->fnptrs_escape = true;
			why = why ? why :
				    gsr_sprintf(
					    p->arena,
					    "address of the function %s does not stay in registers",
					    f);
		} else if (pointer && function_in(&w, pointer)) {
			why = why ? why : "indirect call of unknown functions";
		} else if (pointer) {
			note_unknown(p, fn, s);
		}
	}
	gsr_arena_reset(p->scratch);
	return why;
}

/* ---- literals ---- */

struct trace {
	const struct gsr_var *v;
	unsigned long mark;	/* of registers that may hold an address in the variable */
	bool changed;
};

static bool may_hold_address(const struct trace *t, const struct gsr_operand *o)
{
	unsigned int i;

	if (o->kind == GSR_OPND_SYM && o->name == t->v->name)
		return true;
	if (o->kind == GSR_OPND_REG && *gsr_intern_mark(o->name) == t->mark)
		return true;
	for (i = 0; i < o->n_items; i++)
		if (may_hold_address(t, &o->items[i]))
			return true;
	return false;
}

/* Is @s a st.param of an address for a call that only reads through it? */
static bool passed_to_reader(const struct gsr_stmt *s)
{
	const struct gsr_operand *to = &s->insn->opnds[0], *o;
	bool known = false, given = false;
	const struct gsr_stmt *call;
	unsigned int i, k;

	if (!gsr_insn_has(s->insn, "param") || to->kind != GSR_OPND_ADDR || !to->n_items ||
	    !to->items[0].name)
		return false;
	for (call = s->next; call && (call->kind != GSR_STMT_INSN || call->insn->op != GSR_OP_CALL);
	     call = call->next)
		;
	for (i = 0; call && i < call->insn->n_opnds; i++) {
		o = &call->insn->opnds[i];
		known |= o->kind == GSR_OPND_SYM &&
			 (!strcmp(o->name, "vprintf") || !strcmp(o->name, "__assertfail"));
		for (k = 0; o->kind == GSR_OPND_LIST && k < o->n_items; k++)
			given |= o->items[k].name == to->items[0].name;
	}
	return known && given;
}

/* Does the statement not write through, nor leak, an address in the variable? Propagates marks */
static bool only_reads(struct trace *t, const struct gsr_stmt *s)
{
	const struct gsr_insn *insn = s->insn;
	bool used = false;
	unsigned int i;

	for (i = has_result(insn); i < insn->n_opnds; i++)
		used |= may_hold_address(t, &insn->opnds[i]);
	if (!used)
		return true;
	switch (insn->op) {
	case GSR_OP_LD:
	case GSR_OP_LDU:
	case GSR_OP_PREFETCH:
	case GSR_OP_PREFETCHU:
		return true;
	case GSR_OP_ST:
		return insn->n_opnds == 2 && !may_hold_address(t, &insn->opnds[0]) &&
		       passed_to_reader(s);
	case GSR_OP_MOV:
	case GSR_OP_CVTA:
	case GSR_OP_ADD:
	case GSR_OP_SUB:
	case GSR_OP_SELP:
		if (insn->opnds[0].kind != GSR_OPND_REG)
			return false;
		t->changed |= *gsr_intern_mark(insn->opnds[0].name) != t->mark;
		*gsr_intern_mark(insn->opnds[0].name) = t->mark;
		return true;
	default:
		return false;
	}
}

bool gsr_never_written(struct gsr_pass *p, const struct gsr_var *v)
{
	const struct gsr_stmt *s;
	unsigned int i, k;

	for (i = 0; i < p->n_fns; i++) {
		struct trace t = { .v = v };

		for (k = 0; k < p->fns[i].has.globals.n && p->fns[i].has.globals.at[k] != v; k++)
			;
		if (k == p->fns[i].has.globals.n)
			continue;
		t.mark = MARK_HOLDS | (++p->mark & MARK_INDEX);
		do {
			t.changed = false;
			for (s = p->fns[i].f->first; s; s = s->next)
				if (s->kind == GSR_STMT_INSN && !only_reads(&t, s))
					return false;
		} while (t.changed);
	}
	for (i = 0; i < p->n_named; i++)
		if (p->named[i] == v->name)
			return false;
	return true;
}
