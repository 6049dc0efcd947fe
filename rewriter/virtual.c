// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Virtual functions. A pointer that is loaded from memory is the original's: a number that means nothing in the twins' module. If the
 * only memory of the module that functions' addresses come from are C++'s tables of virtual functions, it is one of theirs; nobody writes these
 * tables, so what stands there says of each function which number it has in the original. The call compares the pointer with
 * these, and calls the twins' own function.
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

/* May such a call mean the slot's function? Each function once */
static bool candidate(const struct gsr_slot *slot, unsigned int rets, unsigned int args)
{
	const struct gsr_function *f = slot->fn->f;

	return !slot->again && f->body && f->n_rets == rets && f->n_params == args;
}

static struct gsr_operand *target(struct gsr_insn *call)
{
	unsigned int i;

	for (i = 0; i < call->n_opnds; i++)
		if (call->opnds[i].kind == GSR_OPND_REG)
			return &call->opnds[i];
	return NULL;
}

static unsigned int translate(struct gsr_pass *p, struct gsr_fn *fn, struct gsr_stmt *call)
{
	struct gsr_stmt *at = gsr_call_begins(call);
	struct gsr_operand *to = target(call->insn);
	unsigned int n, i, rets, args;

	count(call->insn, &rets, &args);
	n = gsr_insert(p, fn->f, at, "mov.u64 %#vf, 0;");
	for (i = 0; i < p->n_slots; i++) {
		if (!candidate(&p->slots[i], rets, args))
			continue;
		n += gsr_insert(p, fn->f, at, gsr_sprintf(p->arena, "ld.global.u64 %%#va, [%s+%u]; setp.eq.u64 %%#vp, %%#va, %%#va;",
							  p->slots[i].table->name, 8 * p->slots[i].index));
		at->prev->insn->opnds[2] = *to;
		n += gsr_insert(p, fn->f, at, gsr_sprintf(p->arena, "@%%#vp mov.u64 %%#vf, %s;", p->slots[i].fn->f->name));
		gsr_reference(p, fn, p->slots[i].fn, p->slots[i].table);
	}
	*to = (struct gsr_operand){ .kind = GSR_OPND_REG, .name = gsr_intern_str(p->arena, gsr_expand(p, "%#vf")) };
	return n;
}

static const char *refusal(const struct gsr_pass *p, const struct gsr_fn *fn)
{
	unsigned int i, k, n, rets, args;

	for (i = 0; i < fn->n_unknown; i++) {
		count(fn->unknown[i]->insn, &rets, &args);
		for (k = n = 0; k < p->n_slots && n <= CANDIDATES_MAX && !p->loose; k++)
			n += candidate(&p->slots[k], rets, args);
		if (p->loose || !n)
			return unknown;
		if (n > CANDIDATES_MAX)
			return "call of a virtual function that may be one of too many";
	}
	return NULL;
}

void gsr_virtual(struct gsr_pass *p, struct gsr_fn *fn)
{
	unsigned int i;

	if (!fn->n_unknown || fn->refusal)
		return;
	fn->refusal = refusal(p, fn);
	if (fn->refusal)
		return;
	for (i = 0; i < fn->n_unknown; i++)
		fn->translated += translate(p, fn, fn->unknown[i]);
	gsr_insert(p, fn->f, fn->f->first, ".reg .b64 %#vf, %#va; .reg .pred %#vp;");
}
