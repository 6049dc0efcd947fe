/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Facts about a module, its functions and its kernels. The analyses read the program; they write
 * what they learn to struct gsr_fn, to marks of instructions (gsr_insn.unread, .retries, .all_arrive)
 * and to struct gsr_block, and change no instruction.
 */
#ifndef GSR_ANALYSIS_H
#define GSR_ANALYSIS_H

#include "rewriter/ptx/arena.h"
#include "rewriter/ptx/semantics.h"

struct gsr_block {
	struct gsr_stmt *first, *last;
	unsigned int *succ, n_succ;	/* block numbers; n_blocks is the exit */
	unsigned int ipdom;		/* immediate post-dominator; GSR_NO_BLOCK if the exit cannot be reached */
	unsigned int depth;		/* of ipdoms up to the exit; GSR_NO_BLOCK likewise */
	bool reachable;
	bool varying;			/* its branch may split a block of threads */
	bool splits_warp;		/* it may split a warp */
	bool split;			/* part of the threads may come by while others pass it */
	bool split_warp;		/* part of a warp */
};

#define GSR_NO_BLOCK	(~0u)

struct gsr_cfg {
	struct gsr_block *blocks;
	unsigned int n_blocks;
	const char *error;		/* a branch to nowhere */
};

/* What is known of one function */
struct gsr_fn {
	struct gsr_function *f;
	struct gsr_cfg cfg;
	bool graph;			/* there is one */
	const char *refusal;		/* NULL: fine by itself */
	struct gsr_fn **refs;		/* functions called or named */
	unsigned int n_refs, room_refs;
	struct gsr_var **vars;		/* module-scope .shared variables named */
	unsigned int n_vars, room_vars;
	struct gsr_var **globals;	/* module-scope .global and .const variables named */
	unsigned int n_globals, room_globals;
	struct gsr_var **textures;	/* texture and surface references named */
	unsigned int n_textures, room_textures;
	unsigned int barriers;		/* of the block of threads, any kind */
	bool reads_ids;
	bool loads_ids;			/* now from shared memory, but for a kernel's own text */
	bool indirect;			/* has indirect calls */
	bool address_taken;		/* by code, not by an initializer */
	bool takes_address;		/* its code takes the address of a function */
	bool constants;			/* has instructions of constant memory */
	bool shares;			/* its variables are reached through the table now */
	bool cp_async;
	bool matrices;			/* exchanges matrices among all lanes of a warp */
	bool bulk;			/* bulk copies, which another proxy makes */
	bool mbarriers;			/* makes or unmakes some, not noted yet */
	bool mbarriers_listed;		/* they are in the list now */
	bool alloca;
	bool spins;			/* has an instruction of which loops that wait for other blocks are made */
	bool shared;			/* uses shared memory */
	bool exits;			/* has an exit instruction */
	bool keeps_shared;		/* declares shared variables itself */
	bool ends;			/* exits.c: it, or what it calls, may end the thread, and it stays a function */
	bool exits_rewritten;		/* exit sets a flag and returns now */
	bool holds;			/* it, or what it calls, has barriers without a thread count, and it stays a function */
	bool swbarrier;			/* its plain barriers become a software barrier (swbarrier.c) */
	bool swbarrier_inserted;
	bool not_inlinable;		/* cannot become part of a kernel */
	bool warpsync;			/* it, or what it calls, has software warp syncs (warpsync.c) */
	bool warpsync_inserted;
	bool plain;			/* has barriers without a thread count */
	bool counted;			/* with one */
	bool small;			/* inline.c: a few simple instructions */
	unsigned int devirtualised;	/* direct calls of it that replaced calls through pointers */
	bool resume_checked;		/* resume.c: of a device function, */
	const char *resume_obstacle;	/* why block-tasks of kernels that call it cannot be left; NULL nothing */
	bool lines;			/* has line information */
	struct gsr_stmt **unresolved;	/* calls through pointers that are not made here */
	unsigned int n_unresolved, room_unresolved;
	unsigned int translated;	/* instructions inserted for them */
	struct gsr_fnptr *fnptr;		/* the best variable slot that holds its address at first; or NULL */
	const char *warp_sync;		/* name of a warp-synchronous instruction, NULL none */

	/* with all that it calls */
	bool any_plain;			/* barriers without a thread count */
	const char *any_warp_sync;
	bool any_counted;		/* barriers with a thread count */
	bool any_exit;
	bool any_texture;		/* texture and surface references by name */
	bool plain_divergent;		/* such a barrier where not all threads need to come by */
	unsigned long mark;
};

struct gsr_shared_var {
	struct gsr_var *var;
	bool copied;			/* the twins have a copy of their own */
};

/* A place where a variable holds a function's address at first */
struct gsr_fnptr {
	struct gsr_fnptr *next;
	struct gsr_var *in;
	uint64_t offset;
	struct gsr_fn *fn;
	bool known;			/* no kernel writes there */
	struct gsr_var *number;		/* stands for the word that is there; NULL: nobody asks for it */
};

#define GSR_PREFIX	"__gsr_"

struct gsr_pass {
	struct gsr_arena *arena;
	struct gsr_arena *scratch;	/* for a while: who uses it resets it. Nothing is interned there */
	struct gsr_module *m;
	struct gsr_fn *fns;
	unsigned int n_fns;
	struct gsr_fn **walk;		/* room for all of them */
	const char *prefix;		/* of all names we make: occurs nowhere in the input; GSR_PREFIX if that does not */
	unsigned long mark;		/* last number given to a walk over fns */
	bool constants;			/* the module has .const variables */
	struct gsr_shared_var *globals;	/* the table of addresses */
	unsigned int n_globals, room_globals;
	const char **named;		/* variables that other variables' initializers name */
	unsigned int n_named, room_named;
	struct gsr_fnptr *fnptrs, *last_fnptr;
	bool fnptrs_escape;		/* function addresses are also in memory other than fnptrs */
	unsigned int unique;		/* last number given to a name */
	unsigned int look;		/* options: resumable twins look so often */
	bool modes;			/* twins know all ways to a position, and static ranges */
	unsigned int warpsync_size;	/* shared memory of software warp syncs in functions; 0: none */
};

/* A walk over all that an entry needs: itself first. In the arena. */
struct gsr_closure {
	struct gsr_fn **fns;
	unsigned int n;
};

/* cfg.c */
void gsr_cfg_build(struct gsr_arena *a, struct gsr_arena *scratch, struct gsr_function *f, struct gsr_cfg *cfg);
/*
 * What lies between branches and their post-dominators: grows by gsr_region_add(); found[] lists
 * the blocks
 */
struct gsr_region {
	const struct gsr_cfg *cfg;
	unsigned int *up, *found, n;
};
void gsr_region_init(struct gsr_arena *a, const struct gsr_cfg *cfg, struct gsr_region *r);
void gsr_region_add(struct gsr_region *r, unsigned int branch);
bool gsr_insn_branches(const struct gsr_insn *insn);	/* bra, brx, ret, exit */

/*
 * uniform.c: sets gsr_block.varying and split or, for warps, splits_warp and split_warp; keeps
 * nothing in @scratch
 */
void gsr_uniform(struct gsr_arena *scratch, struct gsr_function *f, struct gsr_cfg *cfg, bool warp);

/* analyse.c: scans all functions; calls through pointers are not resolved yet (devirtualise.c) */
void gsr_analyse(struct gsr_pass *p);
/* Its blocks, edges and branches, and where its barriers stand; again if it has changed */
void gsr_graph(struct gsr_pass *p, struct gsr_fn *fn);
struct gsr_closure gsr_closure(struct gsr_pass *p, struct gsr_fn *entry);
const char *gsr_refusal(struct gsr_pass *p, const struct gsr_closure *c, struct gsr_kernel *k);
bool gsr_ends(const struct gsr_closure *c);		/* threads may end in functions that stay functions */
/* @fn may call @to, and names @v */
void gsr_reference(struct gsr_pass *p, struct gsr_fn *fn, struct gsr_fn *to, struct gsr_var *v);
struct gsr_fn *gsr_fn_of(const struct gsr_pass *p, const char *name);	/* the module's; NULL none. Until gsr_analyse() ends */

/* spin.c */
bool gsr_may_spin(struct gsr_pass *p, const struct gsr_closure *c);	/* the kernel may wait for other blocks */
void gsr_find_retries(struct gsr_pass *p, struct gsr_function *f, const struct gsr_cfg *cfg);	/* and .retries */
void gsr_find_unread(struct gsr_pass *p, struct gsr_function *f);	/* sets gsr_insn.unread */

/*
 * ranges.c: which barriers the instruction of @f, called by @entry, may be of: bit i for barrier i
 */
unsigned int gsr_barriers_used(const struct gsr_function *entry, const struct gsr_function *f, const struct gsr_insn *insn);
unsigned int gsr_threads_of(const struct gsr_function *entry);	/* of a block, at most */
/*
 * barriers.c: sets gsr_insn.all_arrive where the mask is made by activemask or match and every lane of
 * it is guaranteed to arrive: all of them come to the instruction, no loop leads there again without
 * making the mask again, and no thread ends before.
 */
void gsr_find_complete_masks(struct gsr_pass *p);
/*
 * How the kernel ends. Returns a refusal or NULL. *@wants: functions that must become part of the
 * kernel first, then ask again.
 */
struct gsr_end {
	bool early;			/* threads may be finished while others use barriers */
	bool warps;			/* lanes may be finished while others of the warp wait for it */
	bool warpsync;			/* likewise, with masks of some lanes too: instead of warps */
	bool rows;			/* right only if each row of a block is made of whole warps */
	int id;				/* the barrier of our own */
};
enum gsr_inline { GSR_INLINE_NONE, GSR_INLINE_EXITS, GSR_INLINE_BARRIERS, GSR_INLINE_WARPS, GSR_INLINE_SMALL, GSR_INLINE_TEXTURES };
const char *gsr_barriers(const struct gsr_closure *c, struct gsr_end *end, enum gsr_inline *wants);
void gsr_barriers_prepare(struct gsr_pass *p);		/* the facts "with all that it calls" */
bool gsr_divergent(const struct gsr_fn *fn);		/* for gsr_graph(): plain barriers that part of the threads may pass by */
/*
 * Lanes may come in part to a call of what waits for finished ones, or, in a function, to such an
 * instruction
 */
bool gsr_lanes_part(const struct gsr_fn *fn);
bool gsr_part_masks(const struct gsr_function *f);	/* it has instructions that are not for all lanes */

/* Functions that the instruction may call, one after another, from *@k 0 on; NULL: no more */
struct gsr_fn *gsr_callee(const struct gsr_fn *fn, const struct gsr_insn *insn, unsigned int *k);

/* escape.c */
/*
 * A refusal or NULL; finds calls through pointers that come from memory, and whether addresses go
 * there
 */
const char *gsr_track_fnptrs(struct gsr_pass *p, struct gsr_fn *fn);
bool gsr_never_written(struct gsr_pass *p, const struct gsr_var *v);

/* fnptrs.c */
void gsr_fnptrs_read(struct gsr_pass *p, struct gsr_var *v);	/* of functions in the variable's initializer; and notes what it names */
void gsr_fnptrs_choose(struct gsr_pass *p);		/* each function's */

/* variables.c: uses of the module's variables and of texture and surface references */
/* What is wrong with @o, of @insn's operand @top, naming @v; NULL: nothing */
const char *gsr_global_use(struct gsr_pass *p, const struct gsr_insn *insn, const struct gsr_operand *top,
			   const struct gsr_operand *o, const struct gsr_var *v);
const char *gsr_constant_use(struct gsr_pass *p, const struct gsr_insn *insn);
const char *gsr_globals_room(struct gsr_pass *p, const struct gsr_closure *c);
const char *gsr_reference_use(struct gsr_pass *p, const struct gsr_insn *insn, const struct gsr_operand *top,
			      const struct gsr_operand *o, const struct gsr_var *v);	/* as gsr_global_use() */
unsigned int gsr_references_used(const struct gsr_closure *c);
/*
 * params.c: which registers of a kernel hold generic addresses of parameters. NULL: it takes none.
 * *@refusal is left as it is, or says why it cannot be told.
 */
struct gsr_based;
struct gsr_based *gsr_find_based(struct gsr_arena *a, const struct gsr_function *f, const char **refusal);
bool gsr_is_based(struct gsr_based *t, const char *name);	/* @t may be NULL */

/*
 * alignment.c: what the kernel computes may depend on more than the declared alignment of shared
 * memory
 */
bool gsr_alignment_matters(const struct gsr_closure *c);

#endif /* GSR_ANALYSIS_H */
