/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The passes that change the program. They rely on the facts of analysis/; a pass that changes a
 * function in a way that a later one asks about makes its graph again (gsr_graph()).
 */
#ifndef GSR_TRANSFORM_H
#define GSR_TRANSFORM_H

#include "rewriter/analysis/analysis.h"
#include "task.h"

/* alias.c: calls of an alias become calls of what it stands for; before gsr_analyse() */
void gsr_resolve_aliases(struct gsr_module *m);

/* inline.c: calls of such functions give way to their bodies; a refusal or NULL */
const char *gsr_inline(struct gsr_pass *p, struct gsr_fn *fn, enum gsr_inline which);
bool gsr_can_inline(struct gsr_pass *p, const struct gsr_closure *c, enum gsr_inline which);	/* there is something, and it can */

/*
 * inline.c: which of the functions that devirtualise.c made direct calls of can become part of kernels;
 * and where short ones do
 */
void gsr_inline_prepare(struct gsr_pass *p);
void gsr_inline_small(struct gsr_pass *p);

/*
 * inline.c: it cannot become part of a kernel; because it stays what it is, or also because it is
 * recursive
 */
bool gsr_stays_function(const struct gsr_fn *fn);
bool gsr_not_inlinable(struct gsr_pass *p, struct gsr_fn *fn);

/*
 * exits.c: sets gsr_fn.ends and holds; then, for each such function and for kernels that call them,
 * the instructions inserted
 */
#define GSR_ENDED_SIZE	1024u	/* bytes of shared memory: one a thread */
void gsr_exits_prepare(struct gsr_pass *p);
unsigned int gsr_exits(struct gsr_pass *p, struct gsr_fn *fn);
struct gsr_stmt *gsr_call_begins(struct gsr_stmt *call);	/* where its parameters are passed */
/* Is the statement a st.param to, or a ld.param from, a variable that the call names? */
bool gsr_call_passes(const struct gsr_stmt *s, enum gsr_opcode op, const struct gsr_insn *call);

/*
 * swbarrier.c: sets gsr_fn.swbarrier, and ends; then, for each of these and kernels, the instructions
 * inserted
 */
#define GSR_SWBARRIER_SIZE	16u	/* bytes of shared memory */
void gsr_swbarrier_prepare(struct gsr_pass *p);
unsigned int gsr_swbarrier_insert(struct gsr_pass *p, struct gsr_fn *fn, unsigned int *sites);
extern const char gsr_swbarrier_init[];

/*
 * warpsync.c: sets gsr_fn.warpsync, and ends; then, for each of these and kernels, the instructions
 * inserted. A kernel of which no function takes part has the words for itself, declared in it.
 */
enum gsr_warpsync { GSR_WARPSYNC_LANES = 1, GSR_WARPSYNC_EXITS = 2 };
void gsr_warpsync_prepare(struct gsr_pass *p);
unsigned int gsr_warpsync_insert(struct gsr_pass *p, struct gsr_fn *fn, enum gsr_warpsync what, unsigned int *sites);
unsigned int gsr_warpsync_size(const struct gsr_function *entry);	/* bytes of shared memory, declared in it by gsr_own_declare() */
extern const char gsr_warpsync_init[], gsr_warpsync_init_own[];

/* devirtualise.c: makes the calls in gsr_fn.unresolved right, or refuses the functions */
void gsr_devirtualise(struct gsr_pass *p);

/* globals.c */
unsigned int gsr_globals(struct gsr_pass *p, struct gsr_fn *fn);	/* returns the instructions inserted */
void gsr_globals_list(struct gsr_pass *p, const struct gsr_closure *c, struct gsr_kernel *k);
/* The description, the table and, by its index, the copy of each variable (NULL none) */
void gsr_globals_finish(struct gsr_pass *p, struct gsr_rewrite *out, struct gsr_var **copies, struct gsr_var *table);

/* references.c */
unsigned int gsr_references(struct gsr_pass *p, struct gsr_fn *fn, struct gsr_kernel *k);	/* instructions inserted */

/*
 * Barriers that were converted: site i is where $#site_i stands, a thread that goes to the meeting
 * has i in %#s
 */
struct gsr_sites {
	unsigned int n;
	bool red;			/* some are reductions: %#v goes in and out */
	unsigned int warps;		/* of the warp: site GSR_SITE_WARP + i; %#w is the mask of those that wait there */
};
#define GSR_SITE_WARP	0x10000u

/*
 * scopes.c: inner scopes go, what they declare gets names that occur nowhere else; with @all, so do
 * the function's own
 */
void gsr_flatten(struct gsr_pass *p, struct gsr_function *f, bool all);

/*
 * Where a kernel's threads find the ids of their block-task, unless its twin is a resumable one:
 * then in shared memory
 */
#define GSR_IDS_ALL	3
struct gsr_ids {
	unsigned int held;		/* in registers %#cx, %#cy, %#cz: 0 none, 1 x, 2 x and y, 3 all */
	bool shared;			/* in shared memory too, for functions */
	bool alone;			/* warps share nothing, and go on to the next block-task by themselves */
	bool aside;			/* the next are told in GSR_TASK_CTAID and GSR_TASK_ASIDE in turns */
};
/*
 * blockids.c, returns.c: change the function; return the number of instructions inserted.
 * @held: gets what is to be held; NULL: all is read from shared memory.
 * @resumable: the sites can be entered again from where a block-task is restored.
 */
unsigned int gsr_blockids(struct gsr_pass *p, struct gsr_function *f, struct gsr_ids *held, const char **refusal);
/* Of a reduction @s: what this thread adds, and what the sum means; inserted before it */
void gsr_contribute(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *s, const char *reg);
unsigned int gsr_outcome(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *s, const char *reg);
unsigned int gsr_convert_barriers(struct gsr_pass *p, struct gsr_function *f, struct gsr_sites *sites,
				  bool resumable);
unsigned int gsr_convert_warps(struct gsr_pass *p, struct gsr_fn *fn, struct gsr_sites *sites);
unsigned int gsr_meeting(struct gsr_pass *p, struct gsr_function *f, const struct gsr_sites *sites, int id);
extern const char gsr_sum_up[];		/* a format: %d is the barrier */
/*
 * Of the meeting: its barrier, and behind it who votes "in the body" goes on; if nobody does, all
 * go to label @done
 */
unsigned int gsr_vote(struct gsr_pass *p, struct gsr_function *f, bool red, int id, const char *done);
/* To label @to_N, N being %#s, from @first up to, not with, @end: by halves */
unsigned int gsr_dispatch(struct gsr_pass *p, struct gsr_function *f, const char *to, unsigned int first, unsigned int end);
void gsr_returns(struct gsr_pass *p, struct gsr_function *f, unsigned int *returns);
/*
 * mbarriers.c: between two block-tasks thread 0 makes invalid what the kernel made, of at most so
 * many
 */
#define GSR_MBARRIERS_MAX	120
const char *gsr_mbarriers_refusal(struct gsr_pass *p, const struct gsr_closure *c);
unsigned int gsr_mbarriers(struct gsr_pass *p, struct gsr_fn *fn);
extern const char gsr_mbarriers_none[], gsr_mbarriers_down[];

/*
 * fragment.c: statements from text in which '#' stands for the prefix, inserted before @at (NULL:
 * at the end)
 */
unsigned int gsr_insert(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at, const char *text);
/*
 * The same as one statement, for what no pass looks at: not parsed. @text is a constant: what it is
 * laid out as is kept by its address, for all modules to come.
 */
unsigned int gsr_insert_text(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at, const char *text);
/* The same for texts that differ from place to place: these are not kept */
unsigned int gsr_insert_format(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void gsr_insert_behind(struct gsr_function *f, struct gsr_stmt *at, struct gsr_stmt *s);
/* A guarded statement is jumped over, and has no guard any more */
unsigned int gsr_unguard(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *s);
struct gsr_stmt *gsr_stmt_copy(struct gsr_arena *a, const struct gsr_stmt *s);
const char *gsr_expand(struct gsr_pass *p, const char *text);

#endif /* GSR_TRANSFORM_H */
