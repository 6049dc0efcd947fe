/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Facts about a module, its functions and its kernels. The analyses read the program. They write
 * what they learn to parts of struct gsr_fn (.has, .any, .graph), to marks of instructions
 * (gsr_insn.unread, .retries, .all_arrive) and to struct gsr_block, and change no instruction.
 *
 * A "plain" barrier is a barrier of the thread block without a thread count.
 */
#ifndef GSR_ANALYSIS_H
#define GSR_ANALYSIS_H

#include "rewriter/ptx/arena.h"
#include "rewriter/ptx/semantics.h"
#include "defuse.h"

/* A basic block; "thread block" is always written out */
struct gsr_block {
	struct gsr_stmt *first, *last;
	unsigned int *succ, n_succ;	/* numbers of blocks; n_blocks is the exit */
	unsigned int ipdom;		/* post-dominator; GSR_NO_BLOCK: the exit is unreachable */
	unsigned int depth;		/* in the post-dominator tree; GSR_NO_BLOCK likewise */
	bool reachable;
	bool varying;			/* its branch may diverge within the thread block */
	bool splits_warp;		/* its branch may diverge within a warp */
	bool split;			/* part of the thread block may bypass it */
	bool split_warp;		/* part of a warp may bypass it */
	/* likewise, and in a kernel finish before the others come by (barriers.c) */
	bool left, left_warp;
};

#define GSR_NO_BLOCK	(~0u)

struct gsr_cfg {
	struct gsr_block *blocks;
	unsigned int n_blocks;
	const char *error;		/* a branch without a target; NULL: none */
};

/*
 * loads.c: which weak loads of one address give all threads of a block the same value: none, those
 * that name their memory, all; but for gsr_insn.stored. As long as no thread bypasses a plain
 * barrier.
 */
enum gsr_loads { GSR_LOADS_VARY, GSR_LOADS_NAMED, GSR_LOADS_ALL };

/* Lists that hold nothing twice, in the arena (analyse.c) */
struct gsr_fns {
	struct gsr_fn **at;
	unsigned int n, room;
};
struct gsr_vars {
	struct gsr_var **at;
	unsigned int n, room;
};
void gsr_fns_add(struct gsr_arena *a, struct gsr_fns *l, struct gsr_fn *fn);
void gsr_vars_add(struct gsr_arena *a, struct gsr_vars *l, struct gsr_var *v);

/*
 * What the text of a function has and names. gsr_analyse() scans all functions once. gsr_inline()
 * adds what it copies to a kernel; a pass that converts all there is of something clears its field.
 */
struct gsr_facts {
	struct gsr_fns refs;		/* functions that it calls or takes the address of */
	struct gsr_vars vars;		/* .shared variables of the module */
	struct gsr_vars globals;	/* .global and .const variables of the module */
	struct gsr_vars textures;	/* texture and surface references */
	struct {
		struct gsr_stmt **at;
		unsigned int n, room;
	} unresolved;			/* calls of pointers that it did not take (escape.c) */
	unsigned int barriers;		/* barriers of the thread block, of any kind */
	bool plain;			/* plain barriers */
	bool counted;			/* barriers with a thread count */
	const char *warp_sync;		/* the name of a warp-synchronous instruction; NULL: none */
	bool ids;			/* %ctaid or %nctaid */
	bool indirect;			/* indirect calls */
	bool takes_address;		/* it takes the address of a function */
	bool address_taken;		/* code, and not only an initializer, takes its address */
	bool dynamic_size;		/* it reads the size of dynamic shared memory */
	bool constants;			/* instructions for constant memory */
	bool shared;			/* instructions for shared memory, or shared variables */
	bool shared_access;		/* accesses shared memory at its own addresses */
	bool keeps_shared;		/* shared variables declared in it */
	bool cp_async;
	bool matrices;			/* matrix instructions, which all lanes of a warp execute */
	bool bulk;			/* bulk copies, which use the asynchronous proxy */
	bool mbarriers;			/* mbarrier.init or inval that is not listed yet */
	bool alloca;
	bool spins;			/* instructions that loops which poll memory are made of */
	bool exits;			/* exit instructions */
	bool lines;			/* line information */
};

/*
 * What any function of the closure has: gsr_barriers_prepare(), from the facts as they are then.
 * Later passes do not change it, but where plain barriers become software ones.
 */
struct gsr_summary {
	bool plain, counted, exit, texture;
	const char *warp_sync;
};

/* How control flows. gsr_graph() replaces all of it: valid until the text changes */
struct gsr_graph {
	bool valid;			/* built once; whoever changes the text builds it again */
	struct gsr_cfg cfg;
	struct gsr_defuse *defuse;
	enum gsr_loads loads;		/* those that are taken to be alike */
	bool divergent;			/* a plain barrier that part of a thread block may bypass */
};

/*
 * Decisions for all kernels at once, as they share functions: by passes over the module, before the
 * first kernel is rewritten. Those for one kernel are in struct twin (rewrite.c).
 */
struct gsr_plan {
	bool small;			/* to be inlined in place of calls of pointers (inline.c) */
	bool may_exit;			/* not inlined, and its closure exits threads (exits.c) */
	bool keeps_barriers;		/* not inlined, and its closure has plain barriers */
	bool swbarrier;			/* plain barriers become software ones (swbarrier.c) */
	bool warpsync;			/* its closure has software warp syncs (warpsync.c) */
};

/* What passes did to it. They convert, or check, each function once, for all kernels */
struct gsr_done {
	bool ids;			/* it reads block ids from shared memory */
	bool globals;			/* it reaches variables through the table of addresses */
	bool mbarriers;			/* it keeps the list of mbarriers */
	bool exits;			/* exit sets a flag and returns (exits.c) */
	bool swbarrier, warpsync;	/* as planned */
	unsigned int translated;	/* number of instructions inserted for calls of pointers */
	unsigned int devirtualised;	/* direct calls of it that replaced indirect ones */
	bool resume_checked;		/* .resume_obstacle is valid */
	const char *resume_obstacle;	/* why kernels that call it are not resumable; or NULL */
};

/* A function, which may be a kernel. "Its closure": it and all that it may call */
struct gsr_fn {
	struct gsr_function *f;
	const char *refusal;		/* the first reason not to rewrite kernels that use it */
	struct gsr_fnptr *fnptr;	/* a slot that holds its address at first; or NULL */
	unsigned long mark;		/* of the last gsr_closure() that came here */
	struct gsr_facts has;
	struct gsr_summary any;
	struct gsr_graph graph;
	struct gsr_plan plan;
	struct gsr_done done;
};

/* A variable of the original that the twins use: a word of the table of addresses */
struct gsr_shared_var {
	struct gsr_var *var;
	bool copied;			/* the twins have a copy, if it is not found */
};

/* A slot of a variable that holds a function's address at first */
struct gsr_fnptr {
	struct gsr_fnptr *next;
	struct gsr_var *in;
	uint64_t offset;
	struct gsr_fn *fn;
	bool known;			/* no kernel writes the variable */
	struct gsr_var *number;		/* pseudo variable of its word in the table; or NULL */
};

/*
 * What the names of all that is inserted begin with: nothing in the input does. Registers and
 * labels, which are most of a twin's text, have a short one behind a '$'; the empty one if no '$'
 * of the input is followed by a digit or a lower-case letter.
 */
struct gsr_prefix {
	const char *name, *local;
};

extern const struct gsr_prefix gsr_usual_prefix[2];	/* tried first, in this order */

/* The state of a rewrite, shared by all passes */
struct gsr_pass {
	struct gsr_arena *arena;
	struct gsr_arena *scratch;	/* temporary: its user resets it, and interns nothing */
	struct gsr_module *m;
	struct gsr_fn *fns;
	unsigned int n_fns;
	struct gsr_fn **walk;		/* scratch list with room for all functions */
	struct gsr_prefix prefix;
	unsigned long mark;		/* number of the last walk: gsr_fn.mark; names in escape.c */
	bool constants;			/* the module has .const variables */
	struct gsr_shared_var *globals;	/* the table of addresses */
	unsigned int n_globals, room_globals;
	const char **named;		/* names that occur in initializers */
	unsigned int n_named, room_named;
	struct gsr_fnptr *fnptrs, *last_fnptr;
	bool fnptrs_escape;		/* function addresses may be in memory other than .fnptrs */
	unsigned int unique;		/* the last number used to make a name unique */
	unsigned int look;		/* gsr_options.look */
	bool modes;			/* gsr_options.modes */
	unsigned int warpsync_size;	/* bytes for software warp syncs in functions; or 0 */
};

/* The closure of a kernel, itself first. In the arena */
struct gsr_closure {
	struct gsr_fn **fns;
	unsigned int n;
};

/* cfg.c */
void gsr_cfg_build(struct gsr_arena *a, struct gsr_arena *scratch, struct gsr_function *f,
		   struct gsr_cfg *cfg);
bool gsr_insn_branches(const struct gsr_insn *insn);	/* bra, brx, ret, exit */
/* The predecessors of block i, or of the exit, are at[start[i]] up to at[start[i + 1]] */
struct gsr_preds {
	unsigned int *start, *at;
};
struct gsr_preds gsr_preds(struct gsr_arena *a, const struct gsr_cfg *cfg);
/*
 * The blocks between branches and their post-dominators: grows by gsr_region_add(). found[] lists
 * them.
 */
struct gsr_region {
	const struct gsr_cfg *cfg;
	unsigned int *up, *found, n;
};
void gsr_region_init(struct gsr_arena *a, const struct gsr_cfg *cfg, struct gsr_region *r);
void gsr_region_add(struct gsr_region *r, unsigned int branch);

/* loads.c */
enum gsr_loads gsr_loads_alike(struct gsr_arena *scratch, const struct gsr_fn *fn, bool *waits);
/*
 * Sets gsr_insn.stored of loads by which all threads look at one word, if anything is stored
 * through the same pointer. With @waits, in a kernel that may wait for other blocks, stores through
 * pointers that are not known count, too. true: it has set some. Assumes .one_address.
 */
bool gsr_find_stored(struct gsr_arena *scratch, const struct gsr_fn *fn, bool waits);

/*
 * uniform.c: divergence, if the loads of @g->loads are alike. Sets gsr_block.varying and split, or
 * with @warp splits_warp and split_warp, and gsr_insn.one_address; leaves nothing in @scratch that
 * is needed.
 */
void gsr_uniform(struct gsr_arena *scratch, const struct gsr_function *f, struct gsr_graph *g,
		 bool warp);

/* analyse.c: scans all functions, before calls through pointers are resolved (devirtualise.c) */
void gsr_analyse(struct gsr_pass *p);
/*
 * Builds the graph, the def-use index and divergence; to be called again when a pass has changed
 * the function
 */
void gsr_graph(struct gsr_pass *p, struct gsr_fn *fn);
void gsr_need_graph(struct gsr_pass *p, struct gsr_fn *fn);	/* unless there is one */
struct gsr_closure gsr_closure(struct gsr_pass *p, struct gsr_fn *entry);
/* Why the kernel cannot be rewritten, as far as the scan can tell; or NULL */
const char *gsr_refusal(struct gsr_pass *p, const struct gsr_closure *c, struct gsr_kernel *k);
/* It may call functions of the program; external ones (vprintf) order and end no threads */
bool gsr_calls_own(const struct gsr_fn *fn);
/* Threads of the kernel may exit in functions that are not inlined */
bool gsr_functions_exit(const struct gsr_closure *c);
/* Notes that @fn may call @to and names @v */
void gsr_reference(struct gsr_pass *p, struct gsr_fn *fn, struct gsr_fn *to, struct gsr_var *v);
/* The function of that name, or NULL. Valid during gsr_analyse() only */
struct gsr_fn *gsr_fn_of(const struct gsr_pass *p, const char *name);

/*
 * spin.c. A bit for each enum gsr_wait of instructions in loops; with @reading, of those that read.
 * A loop is taken to be all text between the target and the source of a back edge.
 */
unsigned int gsr_loop_waits(struct gsr_arena *a, const struct gsr_cfg *cfg, bool reading);
/* May a thread block of the kernel poll for what another writes? */
bool gsr_may_spin(struct gsr_pass *p, const struct gsr_closure *c);
void gsr_find_retries(struct gsr_pass *p, struct gsr_function *f, const struct gsr_cfg *cfg);
void gsr_find_unread(struct gsr_pass *p, struct gsr_function *f);

/*
 * ranges.c: which barriers the instruction of @fn, called by @entry, may use: bit i for barrier i;
 * and an upper bound of the threads of a thread block
 */
unsigned int gsr_barriers_used(const struct gsr_function *entry, const struct gsr_fn *fn,
			       const struct gsr_insn *insn);
unsigned int gsr_threads_of(const struct gsr_function *entry);

/*
 * barriers.c: sets gsr_insn.all_arrive if the mask comes from activemask or match and every lane of
 * it is guaranteed to arrive: all of them reach the instruction, no loop leads there again without
 * making the mask again, and no thread exits before.
 */
void gsr_find_complete_masks(struct gsr_pass *p);
void gsr_barriers_prepare(struct gsr_pass *p);
/* How finished threads take part in the barriers of the others */
struct gsr_end {
	bool early;			/* threads may finish while others use plain barriers */
	bool warps;			/* lanes may finish while others sync the whole warp */
	bool warpsync;			/* likewise with masks of some lanes; excludes .warps */
	bool rows;			/* valid only if the block's x is a multiple of 32 */
	int id;				/* the twin's own barrier */
};
/* Which functions must be inlined */
enum gsr_inline {
	GSR_INLINE_NONE,
	GSR_INLINE_EXITS,
	GSR_INLINE_BARRIERS,
	GSR_INLINE_WARPS,
	GSR_INLINE_SMALL,
	GSR_INLINE_TEXTURES,
};
/* A refusal or NULL. If *@wants is not NONE, these must be inlined before it is called again */
const char *gsr_barriers(const struct gsr_closure *c, struct gsr_end *end, enum gsr_inline *wants);
/*
 * Sets gsr_block.left and left_warp: whether threads that bypass the block may finish while others
 * are on their way there. Not if on each way to the end is a plain barrier, as there they wait for
 * the others. Assumes both runs of gsr_uniform().
 */
void gsr_find_left(struct gsr_arena *scratch, struct gsr_fn *fn);
/* Part of a thread block may bypass a plain barrier of the closure */
bool gsr_divergent(const struct gsr_fn *fn);
/*
 * Part of a warp may reach a call of a function with warp-synchronous instructions; or, in a
 * function, such an instruction
 */
bool gsr_lanes_part(const struct gsr_fn *fn);
bool gsr_part_masks(const struct gsr_function *f);	/* it has masks of less than a whole warp */
/* Iterates over the functions that the instruction may call; *@k starts as 0. NULL: no more */
struct gsr_fn *gsr_callee(const struct gsr_fn *fn, const struct gsr_insn *insn, unsigned int *k);

/* escape.c: follows function addresses through registers, fills .unresolved; a refusal or NULL */
const char *gsr_track_fnptrs(struct gsr_pass *p, struct gsr_fn *fn);
bool gsr_never_written(struct gsr_pass *p, const struct gsr_var *v);

/* fnptrs.c: reads the variable's initializer; then chooses a slot for each function */
void gsr_fnptrs_read(struct gsr_pass *p, struct gsr_var *v);
void gsr_fnptrs_choose(struct gsr_pass *p);

/*
 * variables.c: uses of the module's variables and of texture and surface references. What is wrong
 * with @o, in @insn's operand @top, which names @v; NULL: nothing.
 */
const char *gsr_global_use(struct gsr_pass *p, const struct gsr_insn *insn,
			   const struct gsr_operand *top, const struct gsr_operand *o,
			   const struct gsr_var *v);
const char *gsr_reference_use(struct gsr_pass *p, const struct gsr_insn *insn,
			      const struct gsr_operand *top, const struct gsr_operand *o,
			      const struct gsr_var *v);
const char *gsr_constant_use(struct gsr_pass *p, const struct gsr_insn *insn);
const char *gsr_globals_room(struct gsr_pass *p, const struct gsr_closure *c);
unsigned int gsr_references_used(const struct gsr_closure *c);

/*
 * params.c: the registers of a kernel that hold generic addresses of its parameters. NULL: there
 * are none. Sets *@refusal if some cannot be told, and leaves it alone otherwise.
 */
struct gsr_based;
struct gsr_based *gsr_find_based(struct gsr_arena *a, const struct gsr_fn *fn,
				 const char **refusal);
/* @t may be NULL; the names of @fn->defuse are entered */
bool gsr_is_based(struct gsr_based *t, const char *name);

/*
 * effects.c: what a thread of the kernel may have done before a statement that it must not do
 * again, where the block-task begins again. gsr_has_effects(): false if there is no such thing.
 */
enum gsr_effect {
	GSR_EFFECT_STORE = 1,		/* it could read what it stored */
	GSR_EFFECT_OTHER = 2,		/* an atomic, a strong store, a function with effects */
};
struct gsr_effects;
struct gsr_effects *gsr_effects(struct gsr_arena *a, const struct gsr_closure *c);
unsigned int gsr_effects_before(const struct gsr_effects *e, unsigned int block,
				const struct gsr_stmt *s);
bool gsr_has_effects(const struct gsr_effects *e);

/* alignment.c: the kernel may rely on more than the declared alignment of shared memory */
bool gsr_alignment_matters(struct gsr_arena *scratch, const struct gsr_closure *c);

/*
 * Whether shared memory is accessed and no variable there has a name: by numbers, from the address
 * where dynamic shared memory begins. Halide's kernels do so.
 */
bool gsr_shared_by_number(const struct gsr_closure *c);

#endif /* GSR_ANALYSIS_H */
