/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The def-use index of a function: its registers by number, and for each the instructions that
 * define and use it. gsr_graph() builds it with the graph, and it is valid as long. Its numbers
 * are found by marks of names; gsr_only_writer() is for the few registers that are asked for where
 * marks mean something else, or before there is a graph.
 */
#ifndef GSR_DEFUSE_H
#define GSR_DEFUSE_H

#include "rewriter/ptx/arena.h"
#include "rewriter/ptx/semantics.h"

#define GSR_NO_REG	(~0u)

/*
 * Whatever an operand names: a special register, a variable or a label is one that no instruction
 * defines. An instruction defines at most the registers of gsr_defined_by().
 */
struct gsr_reg {
	const char *name;
	const struct gsr_insn *def;	/* the last one that defines it; NULL none */
	unsigned int n_defs;
	unsigned int first, end;	/* its mentions: from .mentions[first] on */
};

struct gsr_defuse {
	struct gsr_insn **insns;	/* all instructions, in the order of the text */
	unsigned int n_insns;
	struct gsr_reg *regs;
	unsigned int n_regs;
	unsigned int *mentions;		/* numbers of instructions that name a register */
};

struct gsr_defuse *gsr_defuse_build(struct gsr_arena *a, const struct gsr_function *f);

/* Makes gsr_reg_number() valid, until the marks of names are used for something else */
void gsr_defuse_enter(const struct gsr_defuse *d);

/* GSR_NO_REG: the function does not name it */
static inline unsigned int gsr_reg_number(const struct gsr_defuse *d, const char *name)
{
	unsigned long m = *gsr_intern_mark(name);

	return m && m <= d->n_regs && d->regs[m - 1].name == name ? (unsigned int)m - 1 :
								   GSR_NO_REG;
}

/* For tables of n_regs + 1 elements: the last one is for all that the function does not name */
static inline unsigned int gsr_reg_slot(const struct gsr_defuse *d, const char *name)
{
	unsigned int reg = gsr_reg_number(d, name);

	return reg != GSR_NO_REG ? reg : d->n_regs;
}

static inline bool gsr_names_register(const struct gsr_operand *o)
{
	/* inserted text names registers without a '%' as it would variables */
	return o->kind == GSR_OPND_REG || o->kind == GSR_OPND_SYM;
}

#endif /* GSR_DEFUSE_H */
