/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The passes that change the program. They rely on the facts of analysis/; a pass that changes a
 * function in a way that a later pass depends on rebuilds its graph (gsr_graph()). Functions that
 * insert code return the number of instructions inserted, unless another meaning is given.
 */
#ifndef GSR_TRANSFORM_H
#define GSR_TRANSFORM_H

#include "rewriter/analysis/analysis.h"
#include "task.h"

/* alias.c: replaces aliases in calls by the functions that they name; before gsr_analyse() */
void gsr_resolve_aliases(struct gsr_module *m);

/* inline.c: inlines the functions of that kind into the kernel @fn; a refusal or NULL */
const char *gsr_inline(struct gsr_pass *p, struct gsr_fn *fn, enum gsr_inline which);
/* There are such functions, and all can be inlined */
bool gsr_can_inline(struct gsr_pass *p, const struct gsr_closure *c, enum gsr_inline which);
/* Decides which functions of devirtualised calls can be inlined; inlines the short ones */
void gsr_inline_prepare(struct gsr_pass *p);
void gsr_inline_small(struct gsr_pass *p);
/* The function itself forbids inlining; or it does, or is recursive */
bool gsr_stays_function(const struct gsr_facts *has);
bool gsr_not_inlinable(struct gsr_pass *p, struct gsr_fn *fn);

/*
 * exits.c: exits in functions that are not inlined. gsr_exits_prepare() sets gsr_plan.may_exit and
 * keeps_barriers; gsr_exits() converts one such function, or a kernel that calls some.
 */
#define GSR_ENDED_SIZE	1024u	/* shared memory: a byte per thread */
void gsr_exits_prepare(struct gsr_pass *p);
unsigned int gsr_exits(struct gsr_pass *p, struct gsr_fn *fn);
struct gsr_stmt *gsr_call_begins(struct gsr_stmt *call);	/* its first st.param, or itself */
/* Is the statement a st.param to, or a ld.param from, a variable that the call names? */
bool gsr_call_passes(const struct gsr_stmt *s, enum gsr_opcode op, const struct gsr_insn *call);

/*
 * swbarrier.c: sets gsr_plan.swbarrier and may_exit; then converts one of these functions, or a
 * kernel. Adds to *@sites the barriers converted.
 */
#define GSR_SWBARRIER_SIZE	16u	/* shared memory */
void gsr_swbarrier_prepare(struct gsr_pass *p);
unsigned int gsr_swbarrier_insert(struct gsr_pass *p, struct gsr_fn *fn, unsigned int *sites);
extern const char gsr_swbarrier_init[];	/* a format: two registers */

/*
 * warpsync.c: sets gsr_plan.warpsync and may_exit; then converts one of these functions, or a
 * kernel: its warp-synchronous instructions, its exits, or both. If no function needs it, the
 * kernel declares the shared memory for itself (own).
 */
enum gsr_warpsync { GSR_WARPSYNC_LANES = 1, GSR_WARPSYNC_EXITS = 2 };
void gsr_warpsync_prepare(struct gsr_pass *p);
unsigned int gsr_warpsync_insert(struct gsr_pass *p, struct gsr_fn *fn, enum gsr_warpsync what,
				 unsigned int *sites);
unsigned int gsr_warpsync_size(const struct gsr_function *entry);	/* bytes of shared memory */
extern const char gsr_warpsync_init[];	/* a format: %s is the variable */

/* devirtualise.c: replaces the calls in gsr_facts.unresolved, or refuses the functions */
void gsr_devirtualise(struct gsr_pass *p);

/* globals.c: replaces uses of the module's variables by loads from the table of addresses */
unsigned int gsr_globals(struct gsr_pass *p, struct gsr_fn *fn);
void gsr_globals_list(struct gsr_pass *p, const struct gsr_closure *c, struct gsr_kernel *k);
/* The description, the table and, by index, the copy of each variable (NULL: none) */
void gsr_globals_finish(struct gsr_pass *p, struct gsr_rewrite *out, struct gsr_var **copies,
			struct gsr_var *table);

/* references.c: texture and surface references become parameters */
unsigned int gsr_references(struct gsr_pass *p, struct gsr_fn *fn, struct gsr_kernel *k);

/*
 * The sites of a kernel: barriers that became jumps to the meeting at the end of the body. Site i
 * continues at label $#site_i; a thread on its way to the meeting has i in %#s.
 */
struct gsr_sites {
	unsigned int n;
	bool red;			/* some are reductions: %#v is their operand and result */
	unsigned int warps;		/* warp-wide sites, with mask %#w; from GSR_SITE_WARP on */
};
#define GSR_SITE_WARP	0x10000u

/* dependents.c: removes what lets a dependent launch begin early */
void gsr_drop_triggers(struct gsr_function *f);

/*
 * scopes.c: removes inner scopes and renames what they declare, with @all also what the function
 * declares itself, so that each name is declared once
 */
void gsr_flatten(struct gsr_pass *p, struct gsr_function *f, bool all);
/* Does an inner scope declare a name again that is declared further out? */
bool gsr_hides_names(struct gsr_pass *p, const struct gsr_function *f);

/*
 * Where the threads of a twin that is not resumable find the ids of their block-task. Resumable
 * twins keep them in shared memory.
 */
#define GSR_IDS_ALL	3
struct gsr_ids {
	unsigned int held;		/* in %#cx, %#cy, %#cz: 0: none, 1: x, 2: x and y, 3: all */
	bool shared;			/* in shared memory too, for functions */
	bool alone;			/* warps share nothing: each advances by itself */
	bool aside;			/* alternate between GSR_TASK_CTAID and GSR_TASK_ASIDE */
};
/* blockids.c. @held: gets which ids to hold in registers; NULL: all are read from shared memory */
unsigned int gsr_blockids(struct gsr_pass *p, struct gsr_function *f, struct gsr_ids *held,
			  const char **refusal);

/* returns.c. In front of the reduction @s: the thread's operand; and its result from the sum */
void gsr_contribute(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *s,
		    const char *reg);
unsigned int gsr_outcome(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *s,
			 const char *reg);
/* @resumable: each site gets a label at which a restored thread starts */
unsigned int gsr_convert_barriers(struct gsr_pass *p, struct gsr_function *f,
				  struct gsr_sites *sites, bool resumable);
unsigned int gsr_convert_warps(struct gsr_pass *p, struct gsr_fn *fn, struct gsr_sites *sites);
unsigned int gsr_meeting(struct gsr_pass *p, struct gsr_function *f, const struct gsr_sites *sites,
			 int id);
extern const char gsr_sum_up[];		/* a format: %d is the barrier */
/*
 * The barrier of the meeting, which votes: threads that voted "in the body" fall through; if none
 * did, all jump to label @done
 */
unsigned int gsr_vote(struct gsr_pass *p, struct gsr_function *f, bool red, int id,
		      const char *done);
/* A binary search that jumps to label $#@to_N, N = %#s in [@first, @end) */
unsigned int gsr_dispatch(struct gsr_pass *p, struct gsr_function *f, const char *to,
			  unsigned int first, unsigned int end);
/* Replaces returns by jumps to the end of the body; *@returns: how many */
void gsr_returns(struct gsr_pass *p, struct gsr_function *f, unsigned int *returns);

/*
 * mbarriers.c: lists the mbarriers that the kernel initialises, so that thread 0 can invalidate
 * them between two block-tasks
 */
#define GSR_MBARRIERS_MAX	120
const char *gsr_mbarriers_refusal(struct gsr_pass *p, const struct gsr_closure *c);
unsigned int gsr_mbarriers(struct gsr_pass *p, struct gsr_fn *fn);
extern const char gsr_mbarriers_none[], gsr_mbarriers_down[];

/*
 * fragment.c: parses text, in which '#' stands for the prefix, and inserts its statements in front
 * of @at (NULL: at the end)
 */
unsigned int gsr_insert(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at,
			const char *text);
/*
 * Inserts text as one statement, unparsed, as no later pass looks at it. @text must be a constant:
 * its expansion is cached by address, across modules.
 */
unsigned int gsr_insert_text(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at,
			     const char *text);
/* The same for text that differs from call to call, which is not cached */
unsigned int gsr_insert_format(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at,
			       const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void gsr_insert_behind(struct gsr_function *f, struct gsr_stmt *at, struct gsr_stmt *s);
/* Replaces the guard of a statement by a branch around it */
unsigned int gsr_unguard(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *s);
struct gsr_stmt *gsr_stmt_copy(struct gsr_arena *a, const struct gsr_stmt *s);
const char *gsr_expand(struct gsr_pass *p, const char *text);

#endif /* GSR_TRANSFORM_H */
