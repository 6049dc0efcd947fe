// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Calls through pointers that come from memory or parameters. Such a pointer is the original's: a number that means nothing in the twins'
 * module. Where code keeps addresses of functions in registers, variables are the only place where a program can get one
 * from, tables of its own as well as C++'s tables of virtual functions; so it is the number that was in one of them at first.
 * Who loads the twins tells these (gsr_fill_addresses); the call compares the pointer with them, and calls the twins' own function.
 */
#include <string.h>
#include "rewrite.h"

#define CANDIDATES_MAX	64u

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

static unsigned int translate(struct gsr_pass *p, struct gsr_fn *fn, struct gsr_stmt *call)
{
	struct gsr_stmt *at = gsr_call_begins(call);
	struct gsr_operand *to = target(call->insn);
	struct gsr_place *place;
	unsigned int n, rets, args;

	count(call->insn, &rets, &args);
	n = gsr_insert(p, fn->f, at, "mov.u64 %#vf, 0;");
	for (place = p->places; place; place = place->next) {
		if (!candidate(place, rets, args))
			continue;
		n += gsr_insert(p, fn->f, at, gsr_sprintf(p->arena, "mov.u64 %%#va, %s; setp.eq.u64 %%#vp, %%#va, %%#va;",
							  number(p, place)->name));
		at->prev->insn->opnds[2] = *to;
		n += gsr_insert(p, fn->f, at, gsr_sprintf(p->arena, "@%%#vp mov.u64 %%#vf, %s;", place->fn->f->name));
		gsr_reference(p, fn, place->fn, number(p, place));
	}
	*to = (struct gsr_operand){ .kind = GSR_OPND_REG, .name = gsr_intern_str(p->arena, gsr_expand(p, "%#vf")) };
	return n;
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
