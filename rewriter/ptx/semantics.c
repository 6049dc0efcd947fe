// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Semantics of instructions, in one table by opcode: whether there is a result, among which threads
 * that is uniform, whether the instruction may wait for other threads, which operands are addresses
 * in shared memory. An opcode that the table does not list has no uniform result and does not wait,
 * and what it accesses in shared memory stands in brackets.
 *
 * In: an instruction and its function. Out: one of these properties. Assumes, where a lane mask or
 * barrier number is in a register, that gsr_find_writers() has seen the function as it is now.
 */
#include "semantics.h"

enum result {
	NO_RESULT,			/* the first operand may be written, and read, too */
	READS,				/* all operands are read only */
	FIRST,				/* the first operand is a result and nothing else */
	FIRST_IF_RED,			/* likewise, of bar.red only; others only read */
	FIRST_OF_MATRIX,		/* likewise, of a matrix load or product, not of a store */
};

enum shared {				/* the result is the same in ... */
	BY_NOBODY,
	BY_OPERANDS,			/* threads with the same operands */
	BY_LANES,			/* the lanes of its mask */
	BY_LANES_IF_ALL,		/* likewise, of match.all only */
	BY_LANES_OF_ONE,		/* likewise, if all read one lane */
	BY_COUNTED,			/* the threads that the barrier counts */
	BY_READERS,			/* threads with the same address, unless that memory is
					 * written */
};

enum waits {
	NO_WAIT,
	WAITS,				/* memory may change during it */
	WAITS_IF_COHERENT,		/* a load that observes writes of other threads */
	WAITS_IF_READ,			/* an atomic whose result is read */
	WAITS_IF_REDUCING,		/* multimem: only ld_reduce is a load */
	WAITS_IN_BLOCK,			/* mbarriers: they lie in shared memory */
};

enum addresses {			/* in shared memory, if it names that space */
	IN_BRACKETS,
	UNLESS_TO,			/* cvta: its source, unless it converts to that space */
	DESCRIPTORS,			/* wgmma: of matrices in shared memory, which it does not
					 * name */
};

static const struct {
	unsigned char result, shared, waits, addresses;
	bool lanes;			/* the last operand is its lane mask */
} table[GSR_OP_COUNT] = {
	[GSR_OP_ADD ... GSR_OP_DP2A] = { FIRST, BY_OPERANDS },
	[GSR_OP_ADDC ... GSR_OP_MADC] = { FIRST },	/* they read the carry flag, too */
	[GSR_OP_TESTP ... GSR_OP_SHR] = { FIRST, BY_OPERANDS },
	[GSR_OP_VADD ... GSR_OP_VSET4] = { FIRST, BY_OPERANDS },
	[GSR_OP_MOV] = { FIRST, BY_OPERANDS },
	[GSR_OP_PRMT] = { FIRST, BY_OPERANDS },
	[GSR_OP_CVT] = { FIRST, BY_OPERANDS },
	[GSR_OP_CVTA] = { FIRST, BY_OPERANDS, .addresses = UNLESS_TO },
	[GSR_OP_MAPA] = { FIRST, BY_OPERANDS },
	[GSR_OP_GETCTARANK] = { FIRST, BY_OPERANDS },
	[GSR_OP_ISSPACEP] = { FIRST, BY_OPERANDS },
	[GSR_OP_CREATEPOLICY] = { FIRST },

	[GSR_OP_SHFL] = { FIRST, BY_LANES_OF_ONE, .lanes = true },
	[GSR_OP_VOTE] = { FIRST, BY_LANES, .lanes = true },
	[GSR_OP_MATCH] = { FIRST, BY_LANES_IF_ALL, .lanes = true },
	[GSR_OP_REDUX] = { FIRST, BY_LANES, .lanes = true },
	[GSR_OP_ELECT] = { FIRST, .lanes = true },
	[GSR_OP_ACTIVEMASK] = { FIRST },
	[GSR_OP_BAR] = { FIRST_IF_RED, BY_COUNTED },
	[GSR_OP_BARRIER] = { FIRST_IF_RED, BY_COUNTED },

	[GSR_OP_LD] = { FIRST, BY_READERS, WAITS_IF_COHERENT },
	[GSR_OP_LDU] = { FIRST },
	[GSR_OP_ATOM] = { FIRST, .waits = WAITS_IF_READ },
	[GSR_OP_MULTIMEM] = { .waits = WAITS_IF_REDUCING },
	[GSR_OP_MBARRIER] = { .waits = WAITS_IN_BLOCK },
	[GSR_OP_NANOSLEEP] = { READS, .waits = WAITS },
	[GSR_OP_MEMBAR] = { .waits = WAITS },
	[GSR_OP_FENCE] = { .waits = WAITS },

	[GSR_OP_BRX] = { READS },
	[GSR_OP_STACKRESTORE] = { READS },

	[GSR_OP_TEX ... GSR_OP_TXQ] = { FIRST },
	[GSR_OP_SULD] = { FIRST },
	[GSR_OP_SUQ] = { FIRST },
	[GSR_OP_MMA] = { FIRST },
	[GSR_OP_LDMATRIX] = { FIRST },
	[GSR_OP_MOVMATRIX] = { FIRST },
	[GSR_OP_WMMA] = { FIRST_OF_MATRIX },
	[GSR_OP_WGMMA] = { .addresses = DESCRIPTORS },
};

bool gsr_has_result(const struct gsr_insn *insn)
{
	switch (table[insn->op].result) {
	case FIRST:
		return true;
	case FIRST_IF_RED:
		return gsr_insn_has(insn, "red");
	case FIRST_OF_MATRIX:
		return gsr_insn_has(insn, "load") || gsr_insn_has(insn, "mma");
	default:
		return false;
	}
}

const struct gsr_operand *gsr_defined_by(const struct gsr_insn *insn)
{
	if (!insn->n_opnds || insn->opnds[0].kind == GSR_OPND_ADDR)
		return NULL;
	switch (table[insn->op].result) {
	case READS:
		return NULL;
	case FIRST_IF_RED:
		return gsr_insn_has(insn, "red") ? &insn->opnds[0] : NULL;
	default:
		return &insn->opnds[0];
	}
}

bool gsr_synchronises(const struct gsr_insn *insn)
{
	return table[insn->op].lanes || insn->op == GSR_OP_BAR || insn->op == GSR_OP_BARRIER;
}

struct gsr_operand *gsr_mask_of(const struct gsr_insn *insn)
{
	if (table[insn->op].lanes)
		return insn->n_opnds > 1 ? &insn->opnds[insn->n_opnds - 1] : NULL;
	if (insn->op == GSR_OP_BAR || insn->op == GSR_OP_BARRIER)
		return gsr_insn_has(insn, "warp") && insn->n_opnds ? &insn->opnds[0] : NULL;
	return NULL;
}

static bool entry_param(const struct gsr_function *f, const struct gsr_operand *addr)
{
	unsigned int i;

	if (!f->entry || addr->kind != GSR_OPND_ADDR || addr->n_items != 1)
		return false;
	/* only an entry's parameters have addresses in registers: those of calls go by name */
	if (addr->items[0].kind == GSR_OPND_REG)
		return true;
	if (addr->items[0].kind != GSR_OPND_SYM)
		return false;
	for (i = 0; i < f->n_params; i++)
		if (!strcmp(f->params[i].name, addr->items[0].name))
			return true;
	return false;
}

static bool reads_constant(const struct gsr_function *f, const struct gsr_insn *insn)
{
	if (insn->n_opnds < 2)
		return false;
	return gsr_insn_has(insn, "nc") || gsr_insn_has(insn, "const") ||
	       (gsr_insn_has(insn, "param") && entry_param(f, &insn->opnds[1]));
}

/* .cv and .cg are weak in PTX, but observe writes of other SMs: chained scans poll with them */
static bool is_coherent(const struct gsr_insn *insn)
{
	static const char *const mods[] = { "volatile", "relaxed", "acquire", "mmio", "cv", "cg" };
	unsigned int i;

	for (i = 0; i < sizeof(mods) / sizeof(mods[0]); i++)
		if (gsr_insn_has(insn, mods[i]))
			return true;
	return false;
}

static enum gsr_uniform of_load(const struct gsr_function *f, const struct gsr_insn *insn)
{
	if (reads_constant(f, insn))
		return GSR_UNIFORM_OPERANDS;
	if (is_coherent(insn) || gsr_insn_has(insn, "param") || gsr_insn_has(insn, "local"))
		return GSR_VARIES;
	if (gsr_insn_has(insn, "shared") || gsr_insn_has(insn, "shared::cta"))
		return GSR_UNIFORM_SHARED;
	if (gsr_insn_has(insn, "global"))
		return GSR_UNIFORM_GLOBAL;
	return gsr_insn_has(insn, "shared::cluster") ? GSR_VARIES : GSR_UNIFORM_GENERIC;
}

/*
 * The result is the same in the lanes of the mask. Other lanes of the warp may execute it with
 * another mask, so it is uniform in the warp only if the mask is known to be full.
 */
static enum gsr_uniform over_mask(const struct gsr_function *f, const struct gsr_insn *insn)
{
	return gsr_insn_has(insn, "sync") && gsr_full_mask(f, insn) ? GSR_UNIFORM_WARP : GSR_VARIES;
}

enum gsr_uniform gsr_result_uniform(const struct gsr_function *f, const struct gsr_insn *insn)
{
	struct gsr_barrier b;

	switch (table[insn->op].shared) {
	case BY_OPERANDS:
		return GSR_UNIFORM_OPERANDS;
	case BY_LANES:
		return over_mask(f, insn);
	case BY_LANES_IF_ALL:
		return gsr_insn_has(insn, "all") ? over_mask(f, insn) : GSR_VARIES;
	case BY_LANES_OF_ONE:
		/* shfl.idx d, a, lane, 31, mask */
		return !gsr_insn_has(insn, "idx") || insn->n_opnds < 5 ||
				       over_mask(f, insn) == GSR_VARIES ?
			       GSR_VARIES :
			       GSR_UNIFORM_LANE;
	case BY_COUNTED:
		gsr_barrier_of(f, insn, &b);
		return !b.red ? GSR_VARIES : b.counted ? GSR_UNIFORM_COUNTED : GSR_UNIFORM_BLOCK;
	case BY_READERS:
		return of_load(f, insn);
	default:
		return GSR_VARIES;
	}
}

bool gsr_names_shared(const struct gsr_insn *insn)
{
	return gsr_insn_has(insn, "shared") || gsr_insn_has(insn, "shared::cta") ||
	       gsr_insn_has(insn, "shared::cluster");
}

bool gsr_addresses_shared(const struct gsr_insn *insn)
{
	unsigned int i;

	switch (table[insn->op].addresses) {
	case UNLESS_TO:
		return gsr_names_shared(insn) && !gsr_insn_has(insn, "to");
	case DESCRIPTORS:
		return true;
	default:
		for (i = gsr_names_shared(insn) ? 0 : insn->n_opnds; i < insn->n_opnds; i++)
			if (insn->opnds[i].kind == GSR_OPND_ADDR)
				return true;
		return false;
	}
}

enum gsr_wait gsr_may_wait(const struct gsr_insn *insn)
{
	bool may = false, block = false;

	switch (table[insn->op].waits) {
	case WAITS:
		may = true;
		break;
	case WAITS_IF_COHERENT:
		may = is_coherent(insn);
		break;
	case WAITS_IF_READ:
		may = insn->n_opnds && insn->opnds[0].kind != GSR_OPND_SINK && !insn->unread &&
		      !insn->retries;
		break;
	case WAITS_IF_REDUCING:
		may = gsr_insn_has(insn, "ld_reduce");
		break;
	case WAITS_IN_BLOCK:
		may = gsr_insn_has(insn, "test_wait") || gsr_insn_has(insn, "try_wait");
		block = true;
		break;
	default:
		break;
	}
	block = block || (may && (gsr_names_shared(insn) || gsr_insn_has(insn, "cta")));
	return !may ? GSR_WAIT_NONE : block ? GSR_WAIT_BLOCK : GSR_WAIT_ALL;
}
