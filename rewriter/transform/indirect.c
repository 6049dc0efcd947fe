// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Calls through pointers that come from memory or parameters. Such a pointer is the original's: a
 * number that means nothing in the twins' module. Where code keeps addresses of functions in
 * registers, variables are the only place where a program can get one from, tables of its own as
 * well as C++'s tables of virtual functions; so it is the number that was in one of them at first.
 * Who loads the twins tells these (gsr_fill_addresses); the pointer is compared with them, and the
 * twins' own function is called: directly, where the call can be written once for each.
 *
 * In: gsr_fn.unknown (pointers.c) and places. Out: functions whose calls are comparisons and
 * direct calls, or refusals. Assumes that no graph was made yet.
 */
#include <string.h>
#include "transform.h"

#define CANDIDATES_MAX	64u
#define DIRECT_MAX	8u	/* of them, to be called directly */
#define VARS_MAX	32u	/* for one such call */
#define SCOPE_MAX	256u	/* statements around it */

static const char unknown[] = "indirect call of unknown functions";

static void count(const struct gsr_insn *call, unsigned int *rets, unsigned int *args)
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

/* May such a call mean the function of that place? Each function once */
static bool candidate(const struct gsr_place *place, unsigned int rets, unsigned int args)
{
	const struct gsr_function *f = place->fn->f;

	return place->fn->place == place && f->body && !f->entry && f->n_rets == rets && f->n_params == args;
}

static struct gsr_operand *target(struct gsr_insn *call)
{
	unsigned int i;

	for (i = 0; i < call->n_opnds; i++)
		if (call->opnds[i].kind == GSR_OPND_REG)
			return &call->opnds[i];
	return NULL;
}

/* A name for the word in the table of addresses that gets the number: to the passes behind it is a variable's */
static struct gsr_var *number(struct gsr_pass *p, struct gsr_place *place)
{
	if (!place->number) {
		place->number = gsr_alloc(p->arena, sizeof(*place->number));
		*place->number = (struct gsr_var){
			.space = "number",
			.name = gsr_intern_str(p->arena, gsr_expand(p, gsr_sprintf(p->arena, "#number_%u", ++p->unique))),
		};
	}
	return place->number;
}

/* What a call consists of, if it can be written several times: from the first st.param to the last ld.param, in a scope made for it */
struct sequence {
	struct gsr_stmt *call, *first, *last;
	struct gsr_var *vars[VARS_MAX];		/* as the call names them: what is returned comes first */
	unsigned int n;
};

static bool part_of(const struct gsr_stmt *s, enum gsr_opcode op, const struct gsr_insn *call)
{
	return s && (s->kind == GSR_STMT_VAR || s->kind == GSR_STMT_DIRECTIVE || gsr_call_passes(s, op, call));
}

static bool names(const struct gsr_operand *o, const struct sequence *q)
{
	unsigned int i;

	for (i = 0; o->name && i < q->n; i++)
		if (q->vars[i]->name == o->name)
			return true;
	for (i = 0; i < o->n_items; i++)
		if (names(&o->items[i], q))
			return true;
	return false;
}

/* Declared in front of the call in the scope that begins with @open */
static struct gsr_var *declared(const struct gsr_stmt *open, const struct gsr_stmt *call, const char *name)
{
	const struct gsr_stmt *s;

	for (s = open; s != call; s = s->next)
		if (s->kind == GSR_STMT_VAR && s->var->name == name && !strcmp(s->var->space, "param"))
			return s->var;
	return NULL;
}

static bool in_one_piece(struct gsr_stmt *call, struct sequence *q)
{
	const struct gsr_insn *insn = call->insn;
	struct gsr_stmt *s, *open = call->prev;
	unsigned int i, k, steps = 0;

	*q = (struct sequence){ .call = call, .first = call, .last = call };
	/* one with others in it was not made for a call */
	for (; open && open->kind != GSR_STMT_OPEN; open = open->prev)
		if (open->kind == GSR_STMT_CLOSE || ++steps > SCOPE_MAX)
			return false;
	if (!open || insn->guard)
		return false;
	for (i = 0; i < insn->n_opnds; i++)
		for (k = 0; insn->opnds[i].kind == GSR_OPND_LIST && k < insn->opnds[i].n_items; k++) {
			if (q->n == VARS_MAX)
				return false;
			q->vars[q->n] = declared(open, call, insn->opnds[i].items[k].name);
			if (!q->vars[q->n++])
				return false;
		}
	for (s = call->prev; part_of(s, GSR_OP_ST, insn); s = s->prev)
		if (s->kind == GSR_STMT_INSN)
			q->first = s;
	for (s = call->next; part_of(s, GSR_OP_LD, insn); s = s->next)
		if (s->kind == GSR_STMT_INSN)
			q->last = s;
	for (s = open->next; s && s->kind != GSR_STMT_CLOSE; s = s->next) {
		if (s == q->first)
			s = q->last->next;
		if (!s || s->kind == GSR_STMT_CLOSE)
			break;
		if (s->kind == GSR_STMT_OPEN || ++steps > SCOPE_MAX || (s->kind == GSR_STMT_INSN && s->insn->op == GSR_OP_CALL))
			return false;
		for (i = 0; s->kind == GSR_STMT_INSN && i < s->insn->n_opnds; i++)
			if (names(&s->insn->opnds[i], q))
				return false;
	}
	return s != NULL;
}

/* A direct call has to name variables that are declared as the function's are */
static bool alike(const struct gsr_var *given, const struct gsr_var *formal)
{
	return !strcmp(formal->space, "param") && !strcmp(given->type, formal->type) && given->align == formal->align &&
	       given->vec == formal->vec && given->n_dims == formal->n_dims &&
	       !memcmp(given->dims, formal->dims, given->n_dims * sizeof(*given->dims));
}

static bool fits(const struct sequence *q, const struct gsr_function *f)
{
	unsigned int i;

	for (i = 0; i < q->n; i++)
		if (!alike(q->vars[i], i < f->n_rets ? &f->rets[i] : &f->params[i - f->n_rets]))
			return false;
	return true;
}

/* call (r), %rd1, (a, b), prototype; becomes call (r), f, (a, b); */
static void make_direct(struct gsr_insn *call, struct gsr_fn *to)
{
	struct gsr_operand *o = target(call);
	unsigned int n = (unsigned int)(o - call->opnds) + 1;

	*o = (struct gsr_operand){ .kind = GSR_OPND_SYM, .name = to->f->name };
	call->n_opnds = n + (n < call->n_opnds && call->opnds[n].kind == GSR_OPND_LIST);
	call->chosen = true;
	to->chosen++;
}

/* A prototype that was declared for the call alone. In a loop nothing would be copied with it */
static void drop_prototype(struct gsr_function *f, const struct gsr_stmt *call)
{
	const char *name = call->insn->opnds[call->insn->n_opnds - 1].name;
	struct gsr_stmt *s;

	for (s = call->prev; s->kind != GSR_STMT_OPEN; s = s->prev)
		if (s->kind == GSR_STMT_DIRECTIVE && name && !strncmp(s->text, name, strlen(name)) &&
		    strchr(" \t\r\n:", s->text[strlen(name)])) {
			gsr_remove(f, s);
			return;
		}
}

/* %#vp: is the pointer the function's number? */
static unsigned int compare(struct gsr_pass *p, struct gsr_fn *fn, struct gsr_stmt *at, struct gsr_place *place,
			    const struct gsr_operand *pointer)
{
	unsigned int n = gsr_insert(p, fn->f, at, gsr_sprintf(p->arena, "mov.u64 %%#va, %s; setp.eq.u64 %%#vp, %%#va, %%#va;",
							      number(p, place)->name));

	at->prev->insn->opnds[2] = *pointer;
	gsr_reference(p, fn, place->fn, number(p, place));
	return n;
}

/* A direct call of the function in front of @at, with variables of its own */
static unsigned int call_directly(struct gsr_pass *p, struct gsr_fn *fn, struct gsr_stmt *at, const struct sequence *q,
				  struct gsr_fn *to)
{
	const struct gsr_stmt *s;
	unsigned int i, n = 0;

	gsr_insert(p, fn->f, at, "{}");
	at = at->prev;
	for (i = 0; i < q->n; i++) {
		const struct gsr_stmt decl = { .kind = GSR_STMT_VAR, .line = q->call->line, .var = q->vars[i] };

		gsr_insert_behind(fn->f, at->prev, gsr_stmt_copy(p->arena, &decl));
	}
	for (s = q->first;; s = s->next) {
		if (s->kind == GSR_STMT_INSN || (s->kind == GSR_STMT_DIRECTIVE && s->text[0] == '.'))
			gsr_insert_behind(fn->f, at->prev, gsr_stmt_copy(p->arena, s));
		n += s->kind == GSR_STMT_INSN;
		if (s == q->call)
			make_direct(at->prev->insn, to);
		if (s == q->last)
			return n;
	}
}

/* The pointer becomes the twins' own function's, or null */
static unsigned int look_up(struct gsr_pass *p, struct gsr_fn *fn, struct gsr_stmt *call, struct gsr_place *const *among,
			    unsigned int n_among)
{
	struct gsr_stmt *at = gsr_call_begins(call);
	struct gsr_operand *to = target(call->insn);
	unsigned int i, n;

	n = gsr_insert(p, fn->f, at, "mov.u64 %#vf, 0;");
	for (i = 0; i < n_among; i++) {
		n += compare(p, fn, at, among[i], to);
		n += gsr_insert(p, fn->f, at, gsr_sprintf(p->arena, "@%%#vp mov.u64 %%#vf, %s;", among[i]->fn->f->name));
		among[i]->fn->taken = fn->takes = true;
	}
	*to = (struct gsr_operand){ .kind = GSR_OPND_REG, .name = gsr_intern_str(p->arena, gsr_expand(p, "%#vf")) };
	return n;
}

/*
 * A switch of direct calls, which the assembler can make part of the caller. Of the last one, where no others are left, the call itself
 * is made: a pointer that is nobody's has stopped the kernel by then.
 */
static unsigned int translate(struct gsr_pass *p, struct gsr_fn *fn, struct gsr_stmt *call)
{
	struct gsr_place *direct[CANDIDATES_MAX], *others[CANDIDATES_MAX], *place;
	unsigned int n_direct = 0, n_others = 0, n_fit = 0, n = 0, i, rets, args, label = ++p->unique;
	const struct gsr_operand pointer = *target(call->insn);
	struct sequence q;
	bool whole = in_one_piece(call, &q);

	count(call->insn, &rets, &args);
	for (place = p->places; place && whole; place = place->next)
		n_fit += candidate(place, rets, args) && fits(&q, place->fn->f);
	for (place = p->places; place; place = place->next) {
		if (!candidate(place, rets, args))
			continue;
		if (whole && n_fit <= DIRECT_MAX && fits(&q, place->fn->f))
			direct[n_direct++] = place;
		else
			others[n_others++] = place;
	}
	if (!n_others)
		drop_prototype(fn->f, call);
	for (i = 0; i < n_direct; i++) {
		n += compare(p, fn, q.first, direct[i], &pointer);
		if (i + 1 == n_direct && !n_others) {
			n += gsr_insert(p, fn->f, q.first, "@!%#vp trap;");
			make_direct(call->insn, direct[i]->fn);
			break;
		}
		n += gsr_insert(p, fn->f, q.first, gsr_sprintf(p->arena, "@!%%#vp bra $#other_%u_%u;", label, i));
		n += call_directly(p, fn, q.first, &q, direct[i]->fn);
		n += gsr_insert(p, fn->f, q.first, gsr_sprintf(p->arena, "bra $#called_%u; $#other_%u_%u:", label, label, i));
	}
	if (n_direct + n_others > 1 && n_direct)
		gsr_insert(p, fn->f, q.last->next, gsr_sprintf(p->arena, "$#called_%u:", label));
	return n_others ? n + look_up(p, fn, call, others, n_others) : n;
}

static const char *refusal(const struct gsr_pass *p, const struct gsr_fn *fn)
{
	const struct gsr_place *place;
	unsigned int i, n, rets, args;

	for (i = 0; i < fn->n_unknown; i++) {
		if (p->loose)
			return unknown;
		count(fn->unknown[i]->insn, &rets, &args);
		for (n = 0, place = p->places; place; place = place->next) {
			if (!candidate(place, rets, args))
				continue;
			if (!place->known)
				return gsr_sprintf(p->arena, "indirect call of functions that kernels may have replaced in %s", place->in->name);
			n++;
		}
		if (!n)
			return unknown;
		if (n > CANDIDATES_MAX)
			return "indirect call of one of too many functions";
	}
	return NULL;
}

void gsr_indirect(struct gsr_pass *p)
{
	bool chosen = false;
	unsigned int i, k;

	for (k = 0; k < p->n_fns; k++) {
		struct gsr_fn *fn = &p->fns[k];

		if (!fn->n_unknown || fn->refusal)
			continue;
		if (!chosen && !p->loose)
			gsr_places_choose(p);
		chosen = true;
		fn->refusal = refusal(p, fn);
		if (fn->refusal)
			continue;
		for (i = 0; i < fn->n_unknown; i++)
			fn->translated += translate(p, fn, fn->unknown[i]);
		gsr_insert(p, fn->f, fn->f->first, ".reg .b64 %#vf, %#va; .reg .pred %#vp;");
	}
}
