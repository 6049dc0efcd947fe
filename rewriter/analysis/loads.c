// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Loads that give all threads of a thread block the same value: weak loads of one address, in a
 * kernel whose threads order their accesses by plain barriers alone.
 *
 * Let all threads execute a load of one address, and let another thread's store lie between the
 * loads of two of them. The kernel has no data race, so the store is ordered behind one load and in
 * front of the other. Only barriers order it. But all threads pass as many barriers in front of the
 * load, as none of these is where part of the thread block may bypass it; so a store that is
 * ordered behind one thread's load is so behind all. Warp-wide instructions order lanes of one
 * warp, which execute each of them on the same side of the load.
 *
 * So nothing is assumed where threads could be ordered otherwise: by barriers with counts,
 * mbarriers, the program's functions, or loops with atomics whose results are read or loads that
 * see what others write. Without a loop a thread cannot wait for another, and what is ordered by
 * chance is a race in another run. For shared memory only such loops on shared memory count. Where
 * a loop may wait for other blocks, a load of global memory counts if the kernel stores nothing
 * through its pointer.
 *
 * Programs do have benign races on flags: some thread stores "done" while others look whether it is
 * set. Such a word is read and written through the same pointer or by the same name. So a load of
 * global memory is not assumed to be alike if a store goes through a pointer that it uses.
 *
 * In: a kernel with its graph. Out: enum gsr_loads for gsr_uniform(). Assumes gsr_find_retries().
 */
#include <string.h>
#include "analysis.h"

enum gsr_loads gsr_loads_alike(struct gsr_arena *scratch, const struct gsr_fn *fn, bool *may_wait)
{
	const struct gsr_stmt *s;
	unsigned int waits;
	bool local = false;

	*may_wait = false;
	if (!fn->f->entry || gsr_calls_own(fn) || fn->has.indirect || fn->has.counted ||
	    fn->has.mbarriers || fn->has.alloca)
		return GSR_LOADS_VARY;
	for (s = fn->f->first; s; s = s->next)
		local |= s->kind == GSR_STMT_INSN && s->insn->op == GSR_OP_CVTA &&
			 gsr_insn_has(s->insn, "local");
	waits = gsr_loop_waits(scratch, &fn->graph.cfg, true);
	gsr_arena_reset(scratch);
	if (waits & 1u << GSR_WAIT_BLOCK)
		return GSR_LOADS_VARY;
	*may_wait = waits & 1u << GSR_WAIT_ALL;
	/* a generic address of local memory is each thread's own */
	return local ? GSR_LOADS_NAMED : GSR_LOADS_ALL;
}

/* ---- pointers by the parameters that they come from ---- */

#define ROOTS_MAX	64u
#define ROUNDS_MAX	32u	/* instructions mostly stand behind those whose results they use */

/*
 * The parameters and variables that a value may come from, a bit for each. What memory holds in
 * less than 64 bits is no pointer, but may be a part of one; otherwise it is an offset, and an
 * address with it is in what the pointer beside it leads to.
 */
struct from {
	uint64_t pointers, parts;
};

struct roots {
	const struct gsr_defuse *d;
	struct from *regs;
	const struct gsr_operand *at[ROOTS_MAX];
	unsigned int n_at;
	uint64_t names;			/* which of them are variables of the module */
	bool changed;
};

static bool same_place(const struct gsr_operand *a, const struct gsr_operand *b)
{
	unsigned int i;

	if (a->kind != b->kind || a->name != b->name)
		return false;
	/* a variable is one place, whatever the offset */
	if (a->kind == GSR_OPND_SYM)
		return true;
	if (a->ival != b->ival || a->n_items != b->n_items)
		return false;
	for (i = 0; i < a->n_items; i++)
		if (!same_place(&a->items[i], &b->items[i]))
			return false;
	return true;
}

/* The last bit stands for all parameters that have none of their own */
static uint64_t root_of(struct roots *r, const struct gsr_operand *at)
{
	unsigned int i;

	for (i = 0; i < r->n_at; i++)
		if (same_place(r->at[i], at))
			return 1ull << i;
	if (r->n_at < ROOTS_MAX - 1)
		r->at[r->n_at++] = at;
	return 1ull << i;
}

static struct from roots_of(struct roots *r, const struct gsr_operand *o)
{
	struct from from = { 0 }, item;
	unsigned int i;

	if (o->kind == GSR_OPND_REG)
		from = r->regs[gsr_reg_slot(r->d, o->name)];
	if (o->kind == GSR_OPND_SYM) {
		from.pointers = root_of(r, o);
		r->names |= from.pointers;
	}
	for (i = 0; i < o->n_items; i++) {
		item = roots_of(r, &o->items[i]);
		from.pointers |= item.pointers;
		from.parts |= item.parts;
	}
	return from;
}

static void add_roots(struct roots *r, const struct gsr_operand *o, struct from from)
{
	unsigned int i;

	if (o->kind == GSR_OPND_REG) {
		struct from *reg = &r->regs[gsr_reg_slot(r->d, o->name)];

		r->changed |= (reg->pointers | from.pointers) != reg->pointers ||
			      (reg->parts | from.parts) != reg->parts;
		reg->pointers |= from.pointers;
		reg->parts |= from.parts;
	}
	for (i = 0; i < o->n_items; i++)
		add_roots(r, &o->items[i], from);
}

static unsigned int width(const struct gsr_insn *insn)
{
	return insn->n_mods ? gsr_type_size(insn->mods[insn->n_mods - 1]) : 0;
}

static bool is_high(const struct gsr_operand *o)
{
	return o->kind == GSR_OPND_INT && (uint64_t)o->ival >> 32;
}

/* Its result may be a pointer whose upper half was a value of its own */
static bool joins_parts(const struct gsr_insn *insn)
{
	const struct gsr_operand *last = &insn->opnds[insn->n_opnds - 1];

	switch (insn->op) {
	case GSR_OP_MOV:
		return last->kind == GSR_OPND_VEC;
	case GSR_OP_SHL:
		return last->kind != GSR_OPND_INT || last->ival >= 32;
	case GSR_OP_MUL:
	case GSR_OP_MAD:
		return is_high(&insn->opnds[1]) ||
		       (insn->n_opnds > 2 && is_high(&insn->opnds[2]));
	case GSR_OP_BFI:
		return true;
	default:
		return false;
	}
}

/* What a parameter or variable holds at one offset */
static bool loads_from_name(const struct gsr_insn *insn)
{
	const struct gsr_operand *at = &insn->opnds[1];

	return insn->op == GSR_OP_LD &&
	       (gsr_insn_has(insn, "param") ||
		(at->kind == GSR_OPND_ADDR && at->n_items == 1 &&
		 at->items[0].kind == GSR_OPND_SYM));
}

static struct from root_of_name(struct roots *r, const struct gsr_insn *insn)
{
	struct from from = { .pointers = root_of(r, &insn->opnds[1]) };

	r->names |= gsr_insn_has(insn, "param") ? 0 : from.pointers;
	return from;
}

static struct from result_of(struct roots *r, const struct gsr_insn *insn)
{
	struct from from = { 0 }, o;
	unsigned int i;

	if (loads_from_name(insn)) {
		from = root_of_name(r, insn);
	} else {
		for (i = 1; i < insn->n_opnds; i++) {
			o = roots_of(r, &insn->opnds[i]);
			from.pointers |= o.pointers;
			from.parts |= o.parts;
		}
	}
	if ((insn->op == GSR_OP_LD || insn->op == GSR_OP_ATOM) && width(insn) < 8)
		return (struct from){ .parts = from.pointers | from.parts };
	if (joins_parts(insn))
		from.pointers |= from.parts;
	return from;
}

/* false: it would take too long */
static bool find_roots(struct gsr_arena *a, struct roots *r)
{
	unsigned int rounds = 0, k;

	gsr_defuse_enter(r->d);
	r->regs = gsr_alloc_array(a, r->d->n_regs + 1, sizeof(*r->regs));
	do {
		r->changed = false;
		for (k = 0; k < r->d->n_insns; k++) {
			struct gsr_insn *insn = r->d->insns[k];

			if (insn->n_opnds >= 2 && gsr_has_result(insn))
				add_roots(r, &insn->opnds[0], result_of(r, insn));
		}
	} while (r->changed && ++rounds < ROUNDS_MAX);
	return !r->changed;
}

static const struct gsr_operand *written_to(const struct gsr_stmt *s)
{
	const struct gsr_insn *insn = s->kind == GSR_STMT_INSN ? s->insn : NULL;

	if (!insn || insn->n_opnds < 2 || gsr_insn_has(insn, "shared") ||
	    gsr_insn_has(insn, "shared::cta") || gsr_insn_has(insn, "local") ||
	    gsr_insn_has(insn, "param"))
		return NULL;
	if (insn->op == GSR_OP_ST || insn->op == GSR_OP_RED)
		return &insn->opnds[0];
	return insn->op == GSR_OP_ATOM ? &insn->opnds[1] : NULL;
}

static const struct gsr_operand *read_from(const struct gsr_stmt *s)
{
	return s->kind == GSR_STMT_INSN && s->insn->one_address ? &s->insn->opnds[1] : NULL;
}

/* The pointers that may lead there; or, if there is none, what the address is made of */
static uint64_t roots_of_address(struct roots *r, const struct gsr_operand *at)
{
	struct from from = roots_of(r, at);

	return from.pointers & ~r->names ? from.pointers : from.pointers | from.parts;
}

/* Where the kernel stores. *@unknown: or loads, through a pointer of which nothing is known */
static uint64_t find_written(struct roots *r, const struct gsr_fn *fn, bool *unknown)
{
	const struct gsr_operand *to, *from;
	const struct gsr_stmt *s;
	uint64_t written = 0;

	for (s = fn->f->first; s; s = s->next) {
		to = written_to(s);
		from = read_from(s);
		if (to)
			written |= roots_of_address(r, to);
		/* a pointer may lead to a variable, too */
		*unknown |= (to || from) && !(roots_of_address(r, to ? to : from) & ~r->names);
		/* matrices and copies have stores of their own */
		*unknown |= s->kind == GSR_STMT_INSN && s->insn->op == GSR_OP_CP &&
			    gsr_insn_has(s->insn, "bulk");
	}
	return written;
}

bool gsr_find_stored(struct gsr_arena *scratch, const struct gsr_fn *fn, bool waits)
{
	struct roots r = { .d = fn->graph.defuse };
	bool unknown = false, any = false, all;
	uint64_t written = 0;
	struct gsr_stmt *s;

	for (s = fn->f->first; s && !read_from(s); s = s->next)
		;
	if (!s)
		return false;
	all = !find_roots(scratch, &r);
	if (!all)
		written = find_written(&r, fn, &unknown);
	for (all |= waits && unknown; s; s = s->next)
		if (read_from(s) && !s->insn->stored &&
		    (all || roots_of_address(&r, read_from(s)) & written)) {
			s->insn->stored = true;
			any = true;
		}
	gsr_arena_reset(scratch);
	return any;
}
