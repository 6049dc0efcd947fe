/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Semantics of single declarations and instructions. Nothing here depends on the surrounding code,
 * except constants in registers that have only one writer (barrier.c).
 */
#ifndef GSR_SEMANTICS_H
#define GSR_SEMANTICS_H

#include "ptx.h"

/* type.c */
unsigned int gsr_type_size(const char *type);		/* bytes of "u32"; 0 unknown */
unsigned int gsr_var_align(const struct gsr_var *v);	/* bytes: as declared, else its type's */
uint64_t gsr_var_size(const struct gsr_var *v);		/* bytes; UINT64_MAX / 2 if it overflows */
bool gsr_is_global(const struct gsr_var *v);		/* .global or .const */
bool gsr_is_reference(const struct gsr_var *v);		/* of a texture, surface or sampler */
bool gsr_is_surface(const struct gsr_var *v);		/* a surface reference */

/* semantics.c */
/* is its first operand a result, and nothing but that? */
bool gsr_has_result(const struct gsr_insn *insn);
/* the operand whose registers it may write, at most this one; NULL none */
const struct gsr_operand *gsr_defined_by(const struct gsr_insn *insn);
/* may it be a barrier, or have a lane mask? */
bool gsr_synchronises(const struct gsr_insn *insn);
/* its lane mask; NULL none */
struct gsr_operand *gsr_mask_of(const struct gsr_insn *insn);
/* Among which of the threads that execute it converged its result is uniform */
enum gsr_uniform {
	GSR_VARIES,			/* none are known */
	GSR_UNIFORM_OPERANDS,		/* those that have all operands the same */
	GSR_UNIFORM_WARP,		/* the warp, whatever the operands */
	GSR_UNIFORM_LANE,		/* the warp, if operand 2 is the same and operand 3 is 31 */
	GSR_UNIFORM_COUNTED,		/* the warp, if barrier and thread count are the same */
	GSR_UNIFORM_BLOCK,		/* the thread block, whatever the operands */
	/* those that have the same address, if weak loads of that memory are known to be alike */
	GSR_UNIFORM_SHARED, GSR_UNIFORM_GLOBAL, GSR_UNIFORM_GENERIC,
};
enum gsr_uniform gsr_result_uniform(const struct gsr_function *f, const struct gsr_insn *insn);
/* Which threads it may wait for if it is in a loop: those of its thread block, or any */
enum gsr_wait { GSR_WAIT_NONE, GSR_WAIT_BLOCK, GSR_WAIT_ALL };
enum gsr_wait gsr_may_wait(const struct gsr_insn *insn);

/* does it name the shared space? also isspacep, or a fence */
bool gsr_names_shared(const struct gsr_insn *insn);
/* does it access shared memory, or make generic what is an address in it? */
bool gsr_addresses_shared(const struct gsr_insn *insn);

/*
 * barrier.c. A lane mask or barrier number in a register is known if the register has one writer,
 * which moves a constant to it. gsr_find_writers() collects these writers; it has to be called
 * again when the function's registers have changed.
 */
/* the register that holds its lane mask or barrier number; NULL none */
const char *gsr_asks_for(const struct gsr_insn *insn);
void gsr_find_writers(struct gsr_arena *a, struct gsr_function *f);
struct gsr_barrier {
	bool sync, red, arrive, warp, cluster;
	bool counted;			/* a thread count is given */
	int id;				/* -1: not known */
};
bool gsr_barrier_of(const struct gsr_function *f, const struct gsr_insn *insn,
		    struct gsr_barrier *b);
/* The only writer of a register; NULL: there are several, or it is guarded */
const struct gsr_insn *gsr_only_writer(const struct gsr_function *f, const char *name);
/* Its name if it synchronises lanes that may not all arrive; else NULL */
const char *gsr_warp_sync(const struct gsr_function *f, const struct gsr_insn *insn);
/* of what gsr_warp_sync() names: is it a barrier with a thread count? */
bool gsr_counts_warps(const struct gsr_insn *insn);
/* is its mask known to be all lanes? */
bool gsr_full_mask(const struct gsr_function *f, const struct gsr_insn *insn);
/* is its mask known? */
bool gsr_constant_mask(const struct gsr_function *f, const struct gsr_insn *insn);

#endif /* GSR_SEMANTICS_H */
