// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What may wait for other threads: a loop that looks at memory until somebody else has changed it.
 * semantics.c says what such loops are made of. An atomic whose result nobody reads is none of that;
 * compilers write `atom` for these, too.
 */
#include <string.h>
#include "rewrite.h"

/* The registers that atomics write: by name, a hash table */
struct result {
	const char *name;
	bool read;
};

struct results {
	struct result *slots;
	unsigned int mask;
};

static struct result *slot_of(const struct results *r, const char *name)
{
	unsigned int i = (unsigned int)((uintptr_t)name >> 4) & r->mask;

	while (r->slots[i].name && r->slots[i].name != name)
		i = (i + 1) & r->mask;
	return &r->slots[i];
}

static const char *result_of(const struct gsr_insn *insn)
{
	return insn->op == GSR_OP_ATOM && insn->n_opnds && insn->opnds[0].kind == GSR_OPND_REG ? insn->opnds[0].name : NULL;
}

static void read_by(const struct results *r, const struct gsr_operand *o)
{
	unsigned int i;

	if (o->kind == GSR_OPND_REG || o->kind == GSR_OPND_SYM)
		slot_of(r, o->name)->read = true;
	for (i = 0; i < o->n_items; i++)
		read_by(r, &o->items[i]);
}

void gsr_find_unread(struct gsr_pass *p, struct gsr_function *f)
{
	struct results r = { .mask = 3 };
	unsigned int n = 0, i;
	struct gsr_stmt *s;

	for (s = f->first; s; s = s->next)
		n += s->kind == GSR_STMT_INSN && result_of(s->insn);
	if (!n)
		return;
	while (r.mask < 2 * n)
		r.mask = 2 * r.mask + 1;
	r.slots = gsr_alloc_array(p->arena, (size_t)r.mask + 1, sizeof(*r.slots));
	for (s = f->first; s; s = s->next)
		if (s->kind == GSR_STMT_INSN && result_of(s->insn))
			slot_of(&r, result_of(s->insn))->name = result_of(s->insn);
	/* a name that is not in the table has the slot where it would be, which stays nobody's */
	for (s = f->first; s; s = s->next) {
		if (s->kind != GSR_STMT_INSN)
			continue;
		if (s->insn->guard)
			slot_of(&r, s->insn->guard)->read = true;
		for (i = result_of(s->insn) ? 1 : 0; i < s->insn->n_opnds; i++)
			read_by(&r, &s->insn->opnds[i]);
	}
	for (s = f->first; s; s = s->next)
		if (s->kind == GSR_STMT_INSN && result_of(s->insn))
			s->insn->unread = !slot_of(&r, result_of(s->insn))->read;
}

/*
 * In functions anywhere: who calls them in a loop is not looked for. A loop's text lies between where it jumps back from and
 * to.
 */
bool gsr_waits(struct gsr_pass *p, const struct gsr_closure *c)
{
	const struct gsr_cfg *cfg = &c->fns[0]->cfg;
	unsigned int i, k, reach = 0;
	unsigned int *back = gsr_alloc_array(p->arena, cfg->n_blocks + 1, sizeof(*back));
	struct gsr_stmt *s;

	for (i = 1; i < c->n; i++)
		if (c->fns[i]->waits)
			return true;
	for (i = 0; i < cfg->n_blocks; i++)
		for (k = 0; k < cfg->blocks[i].n_succ; k++)
			if (cfg->blocks[i].succ[k] <= i)
				back[cfg->blocks[i].succ[k]] = i + 1;
	for (i = 0; i < cfg->n_blocks; i++) {
		reach = back[i] > reach ? back[i] : reach;
		for (s = cfg->blocks[i].first; i < reach && s; s = s->next) {
			if (s->kind == GSR_STMT_INSN && gsr_may_wait(s->insn) == GSR_WAIT_ALL)
				return true;
			if (s == cfg->blocks[i].last)
				break;
		}
	}
	return false;
}
