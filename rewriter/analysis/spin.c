// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Spin detection: loops that poll memory until another thread changes it. semantics.c says which
 * instructions such loops are made of. An atomic whose result is not read is not one of them;
 * compilers emit `atom` for these, too.
 *
 * In: functions and their graphs. Out: gsr_insn.unread and .retries, and whether a kernel may wait
 * for other blocks. Assumes that gsr_facts.spins is set.
 */
#include <string.h>
#include "analysis.h"

/* A register that atomics write. Its number, from 1, is its name's mark meanwhile */
struct result {
	const char *name;
	unsigned long mark;		/* the name's before and behind */
	bool read;
};

struct results {
	struct result *at;
	unsigned int n;
};

static struct result *result_named(const struct results *r, const char *name)
{
	unsigned long m = *gsr_intern_mark(name);

	return m && m <= r->n && r->at[m - 1].name == name ? &r->at[m - 1] : NULL;
}

static const char *result_of(const struct gsr_stmt *s)
{
	return s->kind == GSR_STMT_INSN && s->insn->op == GSR_OP_ATOM && s->insn->n_opnds &&
			       s->insn->opnds[0].kind == GSR_OPND_REG ?
		       s->insn->opnds[0].name :
		       NULL;
}

static void add_result(struct results *r, const char *name)
{
	if (!name || result_named(r, name))
		return;
	r->at[r->n++] = (struct result){ .name = name, .mark = *gsr_intern_mark(name) };
	*gsr_intern_mark(name) = r->n;
}

static void mark_read(const struct results *r, const char *name)
{
	struct result *result = result_named(r, name);

	if (result)
		result->read = true;
}

static void mark_all_read(const struct results *r, const struct gsr_operand *o)
{
	unsigned int i;

	if (gsr_names_register(o))
		mark_read(r, o->name);
	for (i = 0; i < o->n_items; i++)
		mark_all_read(r, &o->items[i]);
}

void gsr_find_unread(struct gsr_pass *p, struct gsr_function *f)
{
	struct results r = { 0 };
	unsigned int n = 0, i;
	struct gsr_stmt *s;

	for (s = f->first; s; s = s->next)
		n += result_of(s) != NULL;
	if (!n)
		return;
	r.at = gsr_alloc_array(p->scratch, n, sizeof(*r.at));
	for (s = f->first; s; s = s->next)
		add_result(&r, result_of(s));
	for (s = f->first; s; s = s->next) {
		if (s->kind != GSR_STMT_INSN)
			continue;
		if (s->insn->guard)
			mark_read(&r, s->insn->guard);
		for (i = result_of(s) ? 1 : 0; i < s->insn->n_opnds; i++)
			mark_all_read(&r, &s->insn->opnds[i]);
	}
	for (s = f->first; s; s = s->next)
		if (result_of(s))
			s->insn->unread = !result_named(&r, result_of(s))->read;
	while (r.n--)
		*gsr_intern_mark(r.at[r.n].name) = r.at[r.n].mark;
	gsr_arena_reset(p->scratch);
}

/*
 * Compare-and-swap retry loops
 *
 *	again: ... atom.cas R, [a], C, new; setp.ne p, C, R; mov C, R; @p bra again;
 *
 * do not wait for other threads. An iteration fails only if another thread has stored to the word
 * since this thread last read it, and the next iteration expects the new value. So if the other
 * threads stand still, the second iteration succeeds at the latest. The values read must not be
 * live behind the loop: they could be a lock's state, tested by a loop around this one.
 *
 * The loop's one block is executed symbolically.
 */
struct value {
	const char *name;		/* a register */
	const char *begins;		/* holds that register's initial value; or NULL */
	bool result;			/* holds the value that the atomic read */
};

struct round {
	struct value *values;
	unsigned int n;
	const char *compared;		/* register whose initial value the atomic compares */
	const char *predicate;		/* is true if the iteration failed (if @equal: succeeded) */
	bool equal;
};

static struct value *value_of(struct round *r, const char *name)
{
	unsigned int i;

	for (i = 0; i < r->n; i++)
		if (r->values[i].name == name)
			return &r->values[i];
	r->values[r->n] = (struct value){ .name = name, .begins = name };
	return &r->values[r->n++];
}

static void forget_value(struct round *r, const struct gsr_operand *o)
{
	unsigned int i;

	if (o->kind == GSR_OPND_REG) {
		struct value *v = value_of(r, o->name);

		v->begins = NULL;
		v->result = false;
		if (r->predicate == o->name)
			r->predicate = NULL;
	}
	for (i = 0; i < o->n_items; i++)
		forget_value(r, &o->items[i]);
}

static bool is_register(const struct gsr_operand *o)
{
	return o->kind == GSR_OPND_REG && !o->component && !o->selector && !o->negated;
}

/* setp.ne p, compared, result, in either order: tells whether the swap failed */
static bool tells_failure(struct round *r, const struct gsr_insn *insn)
{
	const struct gsr_operand *o = insn->opnds;
	const struct value *a, *b;

	if (insn->op != GSR_OP_SETP || insn->guard || insn->n_mods != 2 || insn->n_opnds != 3 ||
	    insn->mods[1][0] == 'f' || (!gsr_insn_has(insn, "ne") && !gsr_insn_has(insn, "eq")) ||
	    !is_register(&o[0]) || !is_register(&o[1]) || !is_register(&o[2]))
		return false;
	a = value_of(r, o[1].name);
	b = value_of(r, o[2].name);
	return (a->result && r->compared && b->begins == r->compared) ||
	       (b->result && r->compared && a->begins == r->compared);
}

static void step_insn(struct round *r, const struct gsr_insn *insn, const struct gsr_insn *cas)
{
	struct value from = { 0 }, *to;
	const char *ends = NULL;

	if (insn == cas) {
		r->compared = is_register(&insn->opnds[2]) ?
				      value_of(r, insn->opnds[2].name)->begins :
				      NULL;
		from.result = true;
	} else if (insn->op == GSR_OP_MOV && !insn->guard && insn->n_opnds == 2 &&
		   is_register(&insn->opnds[1])) {
		from = *value_of(r, insn->opnds[1].name);
	} else if (tells_failure(r, insn)) {
		ends = insn->opnds[0].name;
		r->equal = gsr_insn_has(insn, "eq");
	}
	if (insn->n_opnds && insn->opnds[0].kind != GSR_OPND_ADDR && !gsr_insn_branches(insn))
		forget_value(r, &insn->opnds[0]);
	if (ends)
		r->predicate = ends;
	if (from.name || from.result) {
		to = value_of(r, insn->opnds[0].name);
		to->begins = from.begins;
		to->result = from.result;
	}
}

static bool reads_changed(const struct round *r, const struct gsr_operand *o)
{
	unsigned int i;

	for (i = 0; o->kind == GSR_OPND_REG && i < r->n; i++)
		if (r->values[i].name == o->name && !r->values[i].begins)
			return true;
	for (i = 0; i < o->n_items; i++)
		if (reads_changed(r, &o->items[i]))
			return true;
	return false;
}

/* Is any register that the block writes read outside it? */
static bool is_live_outside(const struct round *r, const struct gsr_function *f,
			    const struct gsr_block *b)
{
	const struct gsr_stmt *s;
	bool inside = false, in;
	unsigned int i;

	for (s = f->first; s; s = s->next) {
		inside |= s == b->first;
		in = inside;
		inside &= s != b->last;
		if (in || s->kind != GSR_STMT_INSN)
			continue;
		for (i = 0; i < r->n; i++)
			if (r->values[i].name == s->insn->guard && !r->values[i].begins)
				return true;
		for (i = gsr_has_result(s->insn); i < s->insn->n_opnds; i++)
			if (reads_changed(r, &s->insn->opnds[i]))
				return true;
	}
	return false;
}

static unsigned int count_names(const struct gsr_operand *o)
{
	unsigned int i, n = o->kind == GSR_OPND_REG;

	for (i = 0; i < o->n_items; i++)
		n += count_names(&o->items[i]);
	return n;
}

static bool is_retry(struct gsr_arena *scratch, const struct gsr_function *f,
		     const struct gsr_block *b, const struct gsr_insn *cas)
{
	const struct gsr_insn *last = b->last->kind == GSR_STMT_INSN ? b->last->insn : NULL;
	struct round r = { 0 };
	const struct value *v;
	const struct gsr_stmt *s;
	unsigned int i, n = 0;

	if (!last || last->op != GSR_OP_BRA || !last->guard || cas->guard || cas->n_opnds != 4 ||
	    !is_register(&cas->opnds[0]))
		return false;
	for (s = b->first; s != b->last; s = s->next)
		for (i = 0; s->kind == GSR_STMT_INSN && i < s->insn->n_opnds; i++)
			n += count_names(&s->insn->opnds[i]);
	r.values = gsr_alloc_array(scratch, n + 1, sizeof(*r.values));
	for (s = b->first; s != b->last; s = s->next) {
		if (s->kind != GSR_STMT_INSN)
			continue;
		/* nor may values leave it through memory */
		if (s->insn != cas && (s->insn->op == GSR_OP_ST || s->insn->op == GSR_OP_ATOM ||
				       s->insn->op == GSR_OP_RED || s->insn->op == GSR_OP_CALL))
			return false;
		step_insn(&r, s->insn, cas);
	}
	if (!r.compared || r.predicate != last->guard || r.equal != last->guard_negated)
		return false;
	v = value_of(&r, r.compared);
	return v->result && !is_live_outside(&r, f, b);
}

void gsr_find_retries(struct gsr_pass *p, struct gsr_function *f, const struct gsr_cfg *cfg)
{
	const struct gsr_stmt *s;
	unsigned int i, k;

	for (i = 0; i < cfg->n_blocks; i++) {
		const struct gsr_block *b = &cfg->blocks[i];

		for (k = 0; k < b->n_succ && b->succ[k] != i; k++)
			;
		if (k == b->n_succ || !b->reachable)
			continue;
		for (s = b->first; s != b->last; s = s->next)
			if (s->kind == GSR_STMT_INSN && s->insn->op == GSR_OP_ATOM &&
			    gsr_insn_has(s->insn, "cas"))
				s->insn->retries = is_retry(p->scratch, f, b, s->insn);
		gsr_arena_reset(p->scratch);
	}
}

/* A fence alone, or time, tells a thread nothing of others */
static bool reads(const struct gsr_insn *insn)
{
	return insn->op != GSR_OP_FENCE && insn->op != GSR_OP_MEMBAR &&
	       insn->op != GSR_OP_NANOSLEEP;
}

unsigned int gsr_loop_waits(struct gsr_arena *a, const struct gsr_cfg *cfg, bool reading)
{
	unsigned int *back = gsr_alloc_array(a, cfg->n_blocks + 1, sizeof(*back));
	unsigned int i, k, reach = 0, found = 0;
	struct gsr_stmt *s;

	for (i = 0; i < cfg->n_blocks; i++)
		for (k = 0; k < cfg->blocks[i].n_succ; k++)
			if (cfg->blocks[i].succ[k] <= i)
				back[cfg->blocks[i].succ[k]] = i + 1;
	for (i = 0; i < cfg->n_blocks; i++) {
		reach = back[i] > reach ? back[i] : reach;
		for (s = cfg->blocks[i].first; i < reach && s; s = s->next) {
			if (s->kind == GSR_STMT_INSN && (!reading || reads(s->insn)))
				found |= 1u << gsr_may_wait(s->insn);
			if (s == cfg->blocks[i].last)
				break;
		}
	}
	return found;
}

/* In a function such an instruction counts anywhere, as call sites are not examined */
bool gsr_may_spin(struct gsr_pass *p, const struct gsr_closure *c)
{
	unsigned int i;

	for (i = 1; i < c->n; i++)
		if (c->fns[i]->has.spins)
			return true;
	return gsr_loop_waits(p->arena, &c->fns[0]->graph.cfg, false) & 1u << GSR_WAIT_ALL;
}
