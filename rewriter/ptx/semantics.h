/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What declarations and instructions mean, one by one: no fact here needs a look at the program
 * around them, except the constant in a register that one instruction alone writes (barrier.c).
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

/* semantics.c: the one answer to what an instruction does */
/* its first operand, which is nothing else */
bool gsr_has_result(const struct gsr_insn *insn);
/* which lanes are meant; NULL none */
struct gsr_operand *gsr_mask_of(const struct gsr_insn *insn);
/* Where all that execute it together have the same result */
enum gsr_uniform {
	GSR_VARIES,			/* nowhere that is known */
	GSR_UNIFORM_OPERANDS,		/* wherever all its operands are the same */
	GSR_UNIFORM_WARP,		/* in a warp, whatever its operands */
	GSR_UNIFORM_COUNTED,		/* in a warp where the barrier and the count are the same */
	GSR_UNIFORM_BLOCK,		/* in a block, whatever its operands */
	/* wherever its address is the same, if weak loads of that memory are known to be alike */
	GSR_UNIFORM_SHARED, GSR_UNIFORM_GLOBAL, GSR_UNIFORM_GENERIC,
};
enum gsr_uniform gsr_result_uniform(const struct gsr_function *f, const struct gsr_insn *insn);
/* In a loop it may wait for other threads: of its block, or any */
enum gsr_wait { GSR_WAIT_NONE, GSR_WAIT_BLOCK, GSR_WAIT_ALL };
enum gsr_wait gsr_may_wait(const struct gsr_insn *insn);

/*
 * barrier.c. What is asked of an instruction that names a register for the lanes or the barrier
 * that it means is known once the writers of such registers were looked for; again when the
 * function's registers have changed.
 */
const char *gsr_asks_for(const struct gsr_insn *insn);	/* the register; NULL none */
void gsr_find_writers(struct gsr_arena *a, struct gsr_function *f);
struct gsr_barrier {
	bool sync, red, arrive, warp, cluster;
	bool counted;			/* a thread count is given */
	int id;				/* -1: in a register */
};
bool gsr_barrier_of(const struct gsr_function *f, const struct gsr_insn *insn,
		    struct gsr_barrier *b);
/* The instruction that alone writes the register, always; NULL: several, or a guarded one */
const struct gsr_insn *gsr_only_writer(const struct gsr_function *f, const char *name);
/* Its name if it waits for lanes that need not come; else NULL */
const char *gsr_warp_sync(const struct gsr_function *f, const struct gsr_insn *insn);
/* then it is a barrier with a thread count */
bool gsr_counts_warps(const struct gsr_insn *insn);
/* is it for all lanes? */
bool gsr_full_mask(const struct gsr_function *f, const struct gsr_insn *insn);
bool gsr_constant_mask(const struct gsr_function *f, const struct gsr_insn *insn);

#endif /* GSR_SEMANTICS_H */
