// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Devirtualisation: calls through pointers that come from memory or parameters. Such a pointer
 * belongs to the original: a number without meaning in the twins' module. As code keeps function
 * addresses in registers (escape.c), a program can load one only from a variable that held it at
 * first, a table of its own or a virtual table of C++ (fnptrs.c). The loader of the twins supplies
 * these numbers (gsr_fill_addresses()). The pointer is compared with them and the twins' own
 * function is called: by a direct call if the call sequence can be duplicated, else through the
 * twins' own address.
 *
 * In: gsr_facts.unresolved (escape.c) and gsr_pass.fnptrs. Out: functions with comparisons and
 * direct calls, or refusals. Assumes that no graph exists yet.
 */
#include <string.h>
#include "transform.h"
#include "rewriter/transform/devirtualise.ptx.h"

#define CANDIDATES_MAX	64u
#define DIRECT_MAX	8u	/* candidates that are called directly */
#define VARS_MAX	32u	/* parameters and results of such a call */
#define SCOPE_MAX	256u	/* statements in the scope of such a call */

static const char unknown[] = "indirect call of unknown functions";

static void count_arguments(const struct gsr_insn *call, unsigned int *rets, unsigned int *args)
{
	bool behind = false;
	unsigned int i;

	*rets = *args = 0;
	for (i = 0; i < call->n_opnds; i++)
		if (call->opnds[i].kind != GSR_OPND_LIST)
			behind = true;
		else
			*(behind ? args : rets) = call->opnds[i].n_items;
}

/* May a call of this shape mean the slot's function? True for one slot of each function only */
static bool is_candidate(const struct gsr_fnptr *slot, unsigned int rets, unsigned int args)
{
	const struct gsr_function *f = slot->fn->f;

	return slot->fn->fnptr == slot && f->body && !f->entry && f->n_rets == rets &&
	       f->n_params == args;
}

static struct gsr_operand *pointer_operand(struct gsr_insn *call)
{
	unsigned int i;

	for (i = 0; i < call->n_opnds; i++)
		if (call->opnds[i].kind == GSR_OPND_REG)
			return &call->opnds[i];
	return NULL;
}

/*
 * The pseudo variable that names the function's number in the table of addresses. Later passes
 * treat it as any other variable.
 */
static struct gsr_var *number_of(struct gsr_pass *p, struct gsr_fnptr *slot)
{
	if (!slot->number) {
		slot->number = gsr_alloc(p->arena, sizeof(*slot->number));
		*slot->number = (struct gsr_var){
			.space = "number",
			.name = gsr_intern_str(
				p->arena,
				gsr_expand(p, gsr_sprintf(p->arena, "#number_%u", ++p->unique))),
		};
	}
	return slot->number;
}

/*
 * A call sequence that can be duplicated: from the first st.param to the last ld.param in its scope
 */
struct sequence {
	struct gsr_stmt *call, *first, *last;
	struct gsr_var *vars[VARS_MAX];		/* as the call names them: results first */
	unsigned int n;
};

static bool passes_parameter(const struct gsr_stmt *s, enum gsr_opcode op,
			     const struct gsr_insn *call)
{
	return s && (s->kind == GSR_STMT_VAR || s->kind == GSR_STMT_DIRECTIVE ||
		     gsr_call_passes(s, op, call));
}

static bool names_parameter(const struct gsr_operand *o, const struct sequence *q)
{
	unsigned int i;

	for (i = 0; o->name && i < q->n; i++)
		if (q->vars[i]->name == o->name)
			return true;
	for (i = 0; i < o->n_items; i++)
		if (names_parameter(&o->items[i], q))
			return true;
	return false;
}

/* The .param variable declared in front of the call, in the scope that begins with @open */
static struct gsr_var *find_param(const struct gsr_stmt *open, const struct gsr_stmt *call,
				  const char *name)
{
	const struct gsr_stmt *s;

	for (s = open; s != call; s = s->next)
		if (s->kind == GSR_STMT_VAR && s->var->name == name &&
		    !strcmp(s->var->space, "param"))
			return s->var;
	return NULL;
}

static bool find_sequence(struct gsr_stmt *call, struct sequence *q)
{
	const struct gsr_insn *insn = call->insn;
	struct gsr_stmt *s, *open = call->prev;
	unsigned int i, k, steps = 0;

	*q = (struct sequence){ .call = call, .first = call, .last = call };
	/* a scope that holds other scopes was not made for the call */
	for (; open && open->kind != GSR_STMT_OPEN; open = open->prev)
		if (open->kind == GSR_STMT_CLOSE || ++steps > SCOPE_MAX)
			return false;
	if (!open || insn->guard)
		return false;
	for (i = 0; i < insn->n_opnds; i++)
		for (k = 0; insn->opnds[i].kind == GSR_OPND_LIST && k < insn->opnds[i].n_items;
		     k++) {
			if (q->n == VARS_MAX)
				return false;
			q->vars[q->n] = find_param(open, call, insn->opnds[i].items[k].name);
			if (!q->vars[q->n++])
				return false;
		}
	for (s = call->prev; passes_parameter(s, GSR_OP_ST, insn); s = s->prev)
		if (s->kind == GSR_STMT_INSN)
			q->first = s;
	for (s = call->next; passes_parameter(s, GSR_OP_LD, insn); s = s->next)
		if (s->kind == GSR_STMT_INSN)
			q->last = s;
	for (s = open->next; s && s->kind != GSR_STMT_CLOSE; s = s->next) {
		if (s == q->first)
			s = q->last->next;
		if (!s || s->kind == GSR_STMT_CLOSE)
			break;
		if (s->kind == GSR_STMT_OPEN || ++steps > SCOPE_MAX ||
		    (s->kind == GSR_STMT_INSN && s->insn->op == GSR_OP_CALL))
			return false;
		for (i = 0; s->kind == GSR_STMT_INSN && i < s->insn->n_opnds; i++)
			if (names_parameter(&s->insn->opnds[i], q))
				return false;
	}
	return s != NULL;
}

/* The variables of a direct call must be declared like the function's formal ones */
static bool same_layout(const struct gsr_var *given, const struct gsr_var *formal)
{
	return !strcmp(formal->space, "param") && !strcmp(given->type, formal->type) &&
	       given->align == formal->align && given->vec == formal->vec &&
	       given->n_dims == formal->n_dims &&
	       !memcmp(given->dims, formal->dims, given->n_dims * sizeof(*given->dims));
}

static bool matches_signature(const struct sequence *q, const struct gsr_function *f)
{
	unsigned int i;

	for (i = 0; i < q->n; i++)
		if (!same_layout(q->vars[i],
				 i < f->n_rets ? &f->rets[i] : &f->params[i - f->n_rets]))
			return false;
	return true;
}

/* call (r), %rd1, (a, b), prototype; becomes call (r), f, (a, b); */
static void make_direct(struct gsr_insn *call, struct gsr_fn *to)
{
	struct gsr_operand *o = pointer_operand(call);
	unsigned int n = (unsigned int)(o - call->opnds) + 1;

	*o = (struct gsr_operand){ .kind = GSR_OPND_SYM, .name = to->f->name };
	call->n_opnds = n + (n < call->n_opnds && call->opnds[n].kind == GSR_OPND_LIST);
	call->devirtualised = true;
	to->done.devirtualised++;
}

/*
 * Removes a prototype that was declared for this call only: a loop that declares one is not
 * unrolled.
 */
static void drop_prototype(struct gsr_function *f, const struct gsr_stmt *call)
{
	const char *name = call->insn->opnds[call->insn->n_opnds - 1].name;
	struct gsr_stmt *s;

	for (s = call->prev; s->kind != GSR_STMT_OPEN; s = s->prev)
		if (s->kind == GSR_STMT_DIRECTIVE && name &&
		    !strncmp(s->text, name, strlen(name)) &&
		    strchr(" \t\r\n:", s->text[strlen(name)])) {
			gsr_remove(f, s);
			return;
		}
}

/* Sets %#vp if the pointer is the function's number */
static unsigned int insert_comparison(struct gsr_pass *p, struct gsr_fn *fn, struct gsr_stmt *at,
				      struct gsr_fnptr *slot, const struct gsr_operand *pointer)
{
	unsigned int n = gsr_insert(p, fn->f, at,
				    gsr_sprintf(p->arena, compare, number_of(p, slot)->name));

	at->prev->insn->opnds[2] = *pointer;
	gsr_reference(p, fn, slot->fn, number_of(p, slot));
	return n;
}

/* Inserts a direct call of @to in front of @at, in a scope with variables of its own */
static unsigned int insert_direct_call(struct gsr_pass *p, struct gsr_fn *fn, struct gsr_stmt *at,
				       const struct sequence *q, struct gsr_fn *to)
{
	const struct gsr_stmt *s;
	unsigned int i, n = 0;

	gsr_insert(p, fn->f, at, "{}");
	at = at->prev;
	for (i = 0; i < q->n; i++) {
		const struct gsr_stmt decl = { .kind = GSR_STMT_VAR,
					       .line = q->call->line,
					       .var = q->vars[i] };

		gsr_insert_behind(fn->f, at->prev, gsr_stmt_copy(p->arena, &decl));
	}
	for (s = q->first;; s = s->next) {
		if (s->kind == GSR_STMT_INSN ||
		    (s->kind == GSR_STMT_DIRECTIVE && s->text[0] == '.'))
			gsr_insert_behind(fn->f, at->prev, gsr_stmt_copy(p->arena, s));
		n += s->kind == GSR_STMT_INSN;
		if (s == q->call)
			make_direct(at->prev->insn, to);
		if (s == q->last)
			return n;
	}
}

/* Replaces the pointer by the address of the twins' own function, or null if it is unknown */
static unsigned int insert_lookup(struct gsr_pass *p, struct gsr_fn *fn, struct gsr_stmt *call,
				  struct gsr_fnptr *const *among, unsigned int n_among)
{
	struct gsr_stmt *at = gsr_call_begins(call);
	struct gsr_operand *to = pointer_operand(call->insn);
	unsigned int i, n;

	n = gsr_insert(p, fn->f, at, begin_lookup);
	for (i = 0; i < n_among; i++) {
		n += insert_comparison(p, fn, at, among[i], to);
		n += gsr_insert(p, fn->f, at,
				gsr_sprintf(p->arena, take_if_equal, among[i]->fn->f->name));
		among[i]->fn->has.address_taken = fn->has.takes_address = true;
	}
	*to = (struct gsr_operand){ .kind = GSR_OPND_REG,
				    .name = gsr_intern_str(p->arena, gsr_expand(p, "%#vf")) };
	return n;
}

/*
 * Inserts a switch of direct calls, which the assembler can inline. If all candidates are called
 * directly, the original call becomes that of the last one, behind a trap for unknown pointers.
 */
static unsigned int devirtualise_call(struct gsr_pass *p, struct gsr_fn *fn, struct gsr_stmt *call)
{
	struct gsr_fnptr *direct[CANDIDATES_MAX], *others[CANDIDATES_MAX], *slot;
	unsigned int n_direct = 0, n_others = 0, n_fit = 0, n = 0, i, rets, args,
		     label = ++p->unique;
	const struct gsr_operand pointer = *pointer_operand(call->insn);
	struct sequence q;
	bool whole = find_sequence(call, &q);

	count_arguments(call->insn, &rets, &args);
	for (slot = p->fnptrs; slot && whole; slot = slot->next)
		n_fit += is_candidate(slot, rets, args) && matches_signature(&q, slot->fn->f);
	for (slot = p->fnptrs; slot; slot = slot->next) {
		if (!is_candidate(slot, rets, args))
			continue;
		if (whole && n_fit <= DIRECT_MAX && matches_signature(&q, slot->fn->f))
			direct[n_direct++] = slot;
		else
			others[n_others++] = slot;
	}
	if (!n_others)
		drop_prototype(fn->f, call);
	for (i = 0; i < n_direct; i++) {
		n += insert_comparison(p, fn, q.first, direct[i], &pointer);
		if (i + 1 == n_direct && !n_others) {
			n += gsr_insert(p, fn->f, q.first, trap_if_unknown);
			make_direct(call->insn, direct[i]->fn);
			break;
		}
		n += gsr_insert(p, fn->f, q.first, gsr_sprintf(p->arena, unless_equal, label, i));
		n += insert_direct_call(p, fn, q.first, &q, direct[i]->fn);
		n += gsr_insert(p, fn->f, q.first,
				gsr_sprintf(p->arena, next_candidate, label, i));
	}
	if (n_direct + n_others > 1 && n_direct)
		gsr_insert(p, fn->f, q.last->next, gsr_sprintf(p->arena, end_of_switch, label));
	return n_others ? n + insert_lookup(p, fn, call, others, n_others) : n;
}

static const char *refusal_of(const struct gsr_pass *p, const struct gsr_fn *fn)
{
	const struct gsr_fnptr *slot;
	unsigned int i, n, rets, args;

	for (i = 0; i < fn->has.unresolved.n; i++) {
		if (p->fnptrs_escape)
			return unknown;
		count_arguments(fn->has.unresolved.at[i]->insn, &rets, &args);
		for (n = 0, slot = p->fnptrs; slot; slot = slot->next) {
			if (!is_candidate(slot, rets, args))
				continue;
			if (!slot->known)
				return gsr_sprintf(
					p->arena,
					"indirect call of functions that kernels may have "
					"replaced in %s",
					slot->in->name);
			n++;
		}
		if (!n)
			return unknown;
		if (n > CANDIDATES_MAX)
			return "indirect call of one of too many functions";
	}
	return NULL;
}

void gsr_devirtualise(struct gsr_pass *p)
{
	bool chosen = false;
	unsigned int i, k;

	for (k = 0; k < p->n_fns; k++) {
		struct gsr_fn *fn = &p->fns[k];

		if (!fn->has.unresolved.n || fn->refusal)
			continue;
		if (!chosen && !p->fnptrs_escape)
			gsr_fnptrs_choose(p);
		chosen = true;
		fn->refusal = refusal_of(p, fn);
		if (fn->refusal)
			continue;
		for (i = 0; i < fn->has.unresolved.n; i++)
			fn->done.translated += devirtualise_call(p, fn, fn->has.unresolved.at[i]);
		gsr_insert(p, fn->f, fn->f->first, declarations);
	}
}
