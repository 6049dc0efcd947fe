// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Decoding of barriers and lane masks: the number of a barrier, whether it has a thread count, the
 * lanes of a mask.
 *
 * In: an instruction and its function. Out: its barrier or mask; for one in a register, the
 * constant that the register's only writer moves there. Assumes that gsr_find_writers() was called
 * since such registers last changed. Without any call no register is known, which is conservative.
 */
#include <string.h>
#include "arena.h"
#include "semantics.h"

/*
 * The writers of registers that hold a lane mask or barrier number: a hash table by name, with
 * linear probing
 */
struct writer {
	const char *name;
	const struct gsr_insn *insn;
	unsigned int times;
};

struct gsr_writers {
	unsigned int mask;
	struct writer slots[];
};

static unsigned int slot_of(const struct gsr_writers *w, const char *name)
{
	unsigned int i = (unsigned int)((uintptr_t)name >> 4) & w->mask;

	while (w->slots[i].name && w->slots[i].name != name)
		i = (i + 1) & w->mask;
	return i;
}

const char *gsr_asks_for(const struct gsr_insn *insn)
{
	bool barrier = insn->op == GSR_OP_BAR || insn->op == GSR_OP_BARRIER;
	const struct gsr_operand *o = gsr_mask_of(insn);

	/* bar.red has its result before its number */
	if (!o && barrier && insn->n_opnds > gsr_insn_has(insn, "red"))
		o = &insn->opnds[gsr_insn_has(insn, "red")];
	return o && o->kind == GSR_OPND_REG ? o->name : NULL;
}

static void note_writer(struct gsr_writers *w, const char *name, const struct gsr_insn *insn,
			unsigned int times)
{
	struct writer *at = name ? &w->slots[slot_of(w, name)] : NULL;

	if (!at || !at->name)
		return;
	at->insn = insn;
	at->times += times;
}

void gsr_find_writers(struct gsr_arena *a, struct gsr_function *f)
{
	unsigned int n = 0, room = 4, k;
	const struct gsr_stmt *s;
	struct gsr_writers *w;
	const char *name;

	for (s = f->first; s; s = s->next)
		n += s->kind == GSR_STMT_INSN && gsr_asks_for(s->insn);
	while (room < 2 * n)
		room *= 2;
	w = gsr_alloc(a, sizeof(*w) + room * sizeof(w->slots[0]));
	w->mask = room - 1;
	for (s = f->first; s; s = s->next) {
		name = s->kind == GSR_STMT_INSN ? gsr_asks_for(s->insn) : NULL;
		if (name)
			w->slots[slot_of(w, name)].name = name;
	}
	for (s = f->first; s; s = s->next) {
		const struct gsr_operand *o = s->kind == GSR_STMT_INSN ? gsr_defined_by(s->insn) :
									 NULL;

		if (!o)
			continue;
		note_writer(w, o->name, s->insn, 1);
		/* elements of a vector count as written twice, as their values are not known */
		for (k = 0; k < o->n_items; k++)
			note_writer(w, o->items[k].name, s->insn, 2);
	}
	f->writers = w;
}

const struct gsr_insn *gsr_only_writer(const struct gsr_function *f, const char *name)
{
	const struct writer *at = f->writers ? &f->writers->slots[slot_of(f->writers, name)] : NULL;

	return at && at->times == 1 && !at->insn->guard ? at->insn : NULL;
}

static const struct gsr_operand *constant_of(const struct gsr_function *f, const char *name)
{
	const struct gsr_insn *i = gsr_only_writer(f, name);

	return i && i->op == GSR_OP_MOV && i->n_opnds > 1 && i->opnds[1].kind == GSR_OPND_INT ?
	       &i->opnds[1] : NULL;
}

bool gsr_barrier_of(const struct gsr_function *f, const struct gsr_insn *insn,
		    struct gsr_barrier *b)
{
	unsigned int at;

	if (insn->op != GSR_OP_BAR && insn->op != GSR_OP_BARRIER)
		return false;
	memset(b, 0, sizeof(*b));
	b->warp = gsr_insn_has(insn, "warp");
	b->cluster = gsr_insn_has(insn, "cluster");
	b->sync = gsr_insn_has(insn, "sync");
	b->red = gsr_insn_has(insn, "red");
	b->arrive = gsr_insn_has(insn, "arrive");
	if (b->warp || b->cluster)
		return true;
	at = b->red ? 1 : 0;
	b->id = -1;
	if (insn->n_opnds > at) {
		const struct gsr_operand *o = &insn->opnds[at];

		if (o->kind == GSR_OPND_REG)
			o = constant_of(f, o->name);
		if (o && o->kind == GSR_OPND_INT && o->ival >= 0 && o->ival < 16)
			b->id = (int)o->ival;
	}
	/* bar.red d, a, [b,] p */
	b->counted = insn->n_opnds > (b->red ? 3u : 1u);
	return true;
}

static const struct gsr_operand *constant_mask(const struct gsr_function *f,
					       const struct gsr_insn *insn)
{
	const struct gsr_operand *mask = gsr_mask_of(insn);

	if (mask && mask->kind == GSR_OPND_REG)
		mask = constant_of(f, mask->name);
	return mask && mask->kind == GSR_OPND_INT ? mask : NULL;
}

bool gsr_full_mask(const struct gsr_function *f, const struct gsr_insn *insn)
{
	const struct gsr_operand *mask = constant_mask(f, insn);

	return mask && (uint32_t)mask->ival == ~0u;
}

bool gsr_constant_mask(const struct gsr_function *f, const struct gsr_insn *insn)
{
	return constant_mask(f, insn);
}

/*
 * Instructions that PTX has whole warps execute (mma, ldmatrix) do not count: no lane may have
 * exited there.
 */
const char *gsr_warp_sync(const struct gsr_function *f, const struct gsr_insn *insn)
{
	struct gsr_barrier b;

	if (insn->all_arrive)
		return NULL;
	/* exited threads take no part in a barrier, unless it waits for a number of threads */
	if (gsr_barrier_of(f, insn, &b))
		return b.warp ? "bar.warp.sync" :
		       b.counted || b.arrive ? "barrier with a thread count" : NULL;
	return gsr_mask_of(insn) && gsr_insn_has(insn, "sync") ? insn->name : NULL;
}

bool gsr_counts_warps(const struct gsr_insn *insn)
{
	return insn->op == GSR_OP_BAR || insn->op == GSR_OP_BARRIER ? !gsr_insn_has(insn, "warp") :
	       false;
}
