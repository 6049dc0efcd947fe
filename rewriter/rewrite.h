/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Inside the rewriter. rewrite.c reads as the list of passes; each pass is one file:
 *   cfg.c        basic blocks, edges, post-dominators
 *   semantics.c  what each instruction does: who shares its result, whether it may wait
 *   uniform.c    which registers hold the same value in all threads of a block, which branches may split a block
 *   analyse.c    what each function uses and references; why a kernel cannot be rewritten
 *   waits.c      loops that may wait for other blocks
 *   barriers.c   barriers, early returns and warp-synchronous instructions: which form the kernel's end takes
 *   pointers.c   where addresses of functions and of literals go
 *   places.c     where variables hold addresses of functions at first
 *   indirect.c   calls through pointers from memory
 *   blockids.c   %ctaid and %nctaid become loads
 *   globals.c    variables of the module are reached through a table of addresses
 *   references.c texture and surface references by name become handles
 *   phases.c     barriers in functions that stay functions, where threads may be finished
 *   gathers.c    instructions of some lanes of a warp, or in such functions, where lanes may be finished
 *   inline.c     device functions that cannot stay what they are, and short ones that were called through pointers
 *   ranges.c     which barriers a register may mean
 *   alignment.c  kernels that look at the low bits of shared addresses
 *   own.c        the twins' own shared variables
 *   mbarriers.c  what a block leaves in shared memory
 *   scopes.c     inner scopes, and names that are unique
 *   exits.c      threads that end in functions which stay functions return from all of them
 *   returns.c    returns become jumps; barriers of kernels with early returns meet at one place
 *   liveness.c, resume.c, suspend.c, anew.c, strip.c, unroll.c  block-tasks that are left in their middle
 *   loop.c       the worker's life around the body
 *   queue.c      dynamic dispatch: what a fetch brings
 *   static.c     static ranges in place of that
 */
#ifndef GSR_REWRITE_H
#define GSR_REWRITE_H

#include "arena.h"
#include "ptx.h"

/* The worker's state in shared memory: offsets in PREFIX "task" */
#define GSR_TASK_CTAID		0	/* u32[4]; .w: twice the block-tasks from this one on, 0 leave, + 1 if in GSR_TASK_ASIDE */
#define GSR_TASK_RESUME		2	/* .w of one that is gone on with in its middle, in resumable twins; others there: 1 */
#define GSR_TASK_NCTAID		16	/* u32[4] */
#define GSR_TASK_TOTAL		32	/* u64 */
#define GSR_TASK_RAN		40	/* u64 */
#define GSR_TASK_INDEX		48	/* u64: about where the last fetch was; of a static range the next one */
#define GSR_TASK_NEAR		56	/* u64: from which one on each fetch is reckoned anew; of a static range the end */
#define GSR_TASK_POSITION	64	/* u32 */
#define GSR_TASK_BIT		68	/* u32: our bit in a word of control.sm, 64 none */
#define GSR_TASK_TIME		72	/* u32: %globaltimer of the last fetch */
#define GSR_TASK_COUNT		76	/* u32: block-tasks asked for then */
#define GSR_TASK_EARLY		80	/* u32: the window excluded us */
#define GSR_TASK_WARPS		84	/* u32: of the block, less one */
#define GSR_TASK_WORD		88	/* u32: offset of that word in struct gsr_control */
#define GSR_TASK_COME		92	/* u32: warps that have come to the end of the fetch */
#define GSR_TASK_ASIDE		96	/* u32[4] */
#define GSR_TASK_REST		112	/* u32: position of what is left of the last fetch, which another column holds */
#define GSR_TASK_REST_COUNT	116	/* u32 */
#define GSR_TASK_RELAY		120	/* u32: offset in struct gsr_control of the window that we look at; 0, at the first look, the relay itself */
#define GSR_TASK_COUNTER	124	/* u32: the one it is from */
#define GSR_TASK_RANGE		124	/* u32: number of the static range; in the upper half how often we have looked for one */
#define GSR_TASK_SIZE		128
/* of resumable twins */
#define GSR_TASK_RECORD		96	/* u64: address of the record of what runs */
#define GSR_TASK_RECORD_SM	104	/* u32 */
#define GSR_TASK_RECORD_MASK	108	/* u32: its bit there; 0 none */
#define GSR_TASK_FLAG		112	/* u32: 1: all threads are to leave */
#define GSR_TASK_LOOK		116	/* u32: 2: the first warp is to look whether it is time to poll; 1 as in FLAG */
#define GSR_TASK_DEADLINE	120	/* u32: %clock when it is */

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
	bool taken;			/* code takes its address */
	bool takes;			/* takes the address of a function */
	bool constants;			/* has instructions of constant memory */
	bool shares;			/* its variables are reached through the table now */
	bool cp_async;
	bool matrices;			/* exchanges matrices among all lanes of a warp */
	bool bulk;			/* bulk copies, which another proxy makes */
	bool mbarriers;			/* makes or unmakes some, not noted yet */
	bool noted;			/* they are noted */
	bool alloca;
	bool waits;			/* may wait for other blocks, in a loop */
	bool shared;			/* uses shared memory */
	bool exits;			/* has an exit instruction */
	bool keeps_shared;		/* declares shared variables itself */
	bool ends;			/* exits.c: it, or what it calls, may end the thread, and it stays a function */
	bool ends_softly;		/* by returning, now */
	bool holds;			/* it, or what it calls, has barriers without a thread count, and it stays a function */
	bool phases;			/* phases.c: these become phases */
	bool phased;			/* they are */
	bool stuck;			/* cannot become part of a kernel */
	bool gathers;			/* gathers.c: lanes gather in it, or in what it calls, and threads that end say so */
	bool gathered;			/* that is inserted */
	bool plain;			/* has barriers without a thread count */
	bool counted;			/* with one */
	bool small;			/* inline.c: a few simple instructions */
	unsigned int chosen;		/* direct calls of it in place of ones through pointers */
	bool resume_checked;		/* resume.c: of a device function, */
	const char *resume_obstacle;	/* why block-tasks of kernels that call it cannot be left; NULL nothing */
	bool lines;			/* has line information */
	struct gsr_stmt **unknown;	/* calls through pointers that are not made here */
	unsigned int n_unknown, room_unknown;
	unsigned int translated;	/* instructions inserted for them */
	struct gsr_place *place;	/* where a variable holds its address at first, the best one; NULL none, or not asked for */
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
struct gsr_place {
	struct gsr_place *next;
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
	struct gsr_place *places, *last_place;
	bool loose;			/* addresses of functions lie elsewhere in memory */
	const char **aliases;		/* pairs: what stands for what */
	unsigned int n_aliases, n_alias_names, room_aliases;
	unsigned int unique;		/* last number given to a name */
	unsigned int look;		/* options: resumable twins look so often */
	bool modes;			/* twins know all ways to a position, and static ranges */
	unsigned int gathers_size;	/* bytes that functions share where lanes gather; 0 there are none */
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

/* analyse.c */
void gsr_analyse(struct gsr_pass *p);
/* Its blocks, edges and branches, and where its barriers stand; again if it has changed */
void gsr_graph(struct gsr_pass *p, struct gsr_fn *fn);
struct gsr_closure gsr_closure(struct gsr_pass *p, struct gsr_fn *entry);
const char *gsr_refusal(struct gsr_pass *p, const struct gsr_closure *c, struct gsr_kernel *k);
/* The same for static shared memory, if there are @more bytes */
const char *gsr_shared_room(struct gsr_pass *p, const struct gsr_closure *c, unsigned int more);
bool gsr_ends(const struct gsr_closure *c);		/* threads may end in functions that stay functions */
/* @fn may call @to, and names @v */
void gsr_reference(struct gsr_pass *p, struct gsr_fn *fn, struct gsr_fn *to, struct gsr_var *v);
struct gsr_fn *gsr_fn_of(const struct gsr_pass *p, const char *name);	/* the module's; NULL none. Until gsr_analyse() ends */
unsigned int gsr_type_size(const char *type);		/* bytes of "u32"; 0 unknown */

/* semantics.c: the one answer to what an instruction does */
bool gsr_has_result(const struct gsr_insn *insn);	/* its first operand, which is nothing else */
struct gsr_operand *gsr_mask_of(const struct gsr_insn *insn);	/* which lanes are meant; NULL none */
/* Where all that execute it together have the same result */
enum gsr_uniform {
	GSR_VARIES,			/* nowhere that is known */
	GSR_UNIFORM_OPERANDS,		/* wherever all its operands are the same */
	GSR_UNIFORM_WARP,		/* in a warp, whatever its operands */
	GSR_UNIFORM_COUNTED,		/* in a warp where the barrier and the count are the same */
	GSR_UNIFORM_BLOCK,		/* in a block, whatever its operands */
};
enum gsr_uniform gsr_result_uniform(const struct gsr_function *f, const struct gsr_insn *insn);
/* In a loop it may wait for other threads: of its block, or any */
enum gsr_wait { GSR_WAIT_NONE, GSR_WAIT_BLOCK, GSR_WAIT_ALL };
enum gsr_wait gsr_may_wait(const struct gsr_insn *insn);

/* waits.c */
bool gsr_waits(struct gsr_pass *p, const struct gsr_closure *c);	/* the kernel may wait for other blocks */
void gsr_find_retries(struct gsr_pass *p, struct gsr_function *f, const struct gsr_cfg *cfg);	/* and .retries */
void gsr_find_unread(struct gsr_pass *p, struct gsr_function *f);	/* sets gsr_insn.unread */

/*
 * barriers.c. What is asked of an instruction that names a register for the lanes or the barrier
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
bool gsr_barrier_of(const struct gsr_function *f, const struct gsr_insn *insn, struct gsr_barrier *b);
/*
 * ranges.c: which barriers the instruction of @f, called by @entry, may be of: bit i for barrier i
 */
unsigned int gsr_barriers_used(const struct gsr_function *entry, const struct gsr_function *f, const struct gsr_insn *insn);
unsigned int gsr_threads_of(const struct gsr_function *entry);	/* of a block, at most */
/* Its name if it waits for lanes that need not come; else NULL */
const char *gsr_warp_sync(const struct gsr_function *f, const struct gsr_insn *insn);
/*
 * Where a mask is made by activemask or match, all its lanes come to the instruction, and no loop
 * leads there again without making it anew, nobody ends before: nothing is waited for that does not
 * come. @calls: threads may end in what the function calls.
 */
void gsr_settle_active(struct gsr_pass *p, struct gsr_fn *fn, bool calls);
bool gsr_counts_warps(const struct gsr_insn *insn);	/* then it is a barrier with a thread count */
/*
 * How the kernel ends. Returns a refusal or NULL. *@wants: functions that must become part of the
 * kernel first, then ask again.
 */
struct gsr_end {
	bool early;			/* threads may be finished while others use barriers */
	bool warps;			/* lanes may be finished while others of the warp wait for it */
	bool gathers;			/* likewise, and not only for the whole of it: instead of warps */
	bool rows;			/* right only if each row of a block is made of whole warps */
	int id;				/* the barrier of our own */
};
enum gsr_inline { GSR_INLINE_NONE, GSR_INLINE_EXITS, GSR_INLINE_BARRIERS, GSR_INLINE_WARPS, GSR_INLINE_SMALL, GSR_INLINE_TEXTURES };
const char *gsr_barriers(const struct gsr_closure *c, struct gsr_end *end, enum gsr_inline *wants);
void gsr_barriers_prepare(struct gsr_pass *p);		/* the facts "with all that it calls" */
bool gsr_divergent(const struct gsr_fn *fn);		/* for gsr_graph(): plain barriers that part of the threads may pass by */
bool gsr_full_mask(const struct gsr_function *f, const struct gsr_insn *insn);	/* is it for all lanes? */
bool gsr_constant_mask(const struct gsr_function *f, const struct gsr_insn *insn);
/*
 * Lanes may come in part to a call of what waits for finished ones, or, in a function, to such an
 * instruction
 */
bool gsr_lanes_part(const struct gsr_fn *fn);
bool gsr_part_masks(const struct gsr_function *f);	/* it has instructions that are not for all lanes */

/* Functions that the instruction may call, one after another, from *@k 0 on; NULL: no more */
struct gsr_fn *gsr_callee(const struct gsr_fn *fn, const struct gsr_insn *insn, unsigned int *k);

/* inline.c: calls of such functions give way to their bodies; a refusal or NULL */
const char *gsr_inline(struct gsr_pass *p, struct gsr_fn *fn, enum gsr_inline which);
bool gsr_can_inline(struct gsr_pass *p, const struct gsr_closure *c, enum gsr_inline which);	/* there is something, and it can */

/*
 * inline.c: which of the functions that indirect.c made direct calls of can become part of kernels;
 * and where short ones do
 */
void gsr_inline_prepare(struct gsr_pass *p);
void gsr_inline_small(struct gsr_pass *p);

/*
 * inline.c: it cannot become part of a kernel; because it stays what it is, or also because it is
 * recursive
 */
bool gsr_stays(const struct gsr_fn *fn);
bool gsr_is_stuck(struct gsr_pass *p, struct gsr_fn *fn);

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
 * phases.c: sets gsr_fn.phases, and ends; then, for each of these and kernels, the instructions
 * inserted
 */
#define GSR_PHASES_SIZE	16u	/* bytes of shared memory */
void gsr_phases_prepare(struct gsr_pass *p);
unsigned int gsr_phases(struct gsr_pass *p, struct gsr_fn *fn, unsigned int *sites);
extern const char gsr_phases_ready[];

/*
 * gathers.c: sets gsr_fn.gathers, and ends; then, for each of these and kernels, the instructions
 * inserted. A kernel of which no function takes part has the words for itself, declared in it.
 */
enum gsr_gather { GSR_GATHER_LANES = 1, GSR_GATHER_ENDS = 2 };
void gsr_gathers_prepare(struct gsr_pass *p);
unsigned int gsr_gathers(struct gsr_pass *p, struct gsr_fn *fn, enum gsr_gather what, unsigned int *sites);
unsigned int gsr_gathers_size(const struct gsr_function *entry);	/* bytes of shared memory, declared in it by gsr_own_declare() */
extern const char gsr_gathers_ready[], gsr_gathers_ready_own[];

/* pointers.c */
/*
 * A refusal or NULL; finds calls through pointers that come from memory, and whether addresses go
 * there
 */
const char *gsr_function_pointers(struct gsr_pass *p, struct gsr_fn *fn);
bool gsr_never_written(struct gsr_pass *p, const struct gsr_var *v);

/* places.c */
void gsr_places(struct gsr_pass *p, struct gsr_var *v);	/* of functions in the variable's initializer; and notes what it names */
void gsr_places_choose(struct gsr_pass *p);		/* each function's */

/* indirect.c: makes the calls in gsr_fn.unknown right, or refuses the functions */
void gsr_indirect(struct gsr_pass *p);

/* globals.c */
bool gsr_is_global(const struct gsr_var *v);		/* .global or .const */
uint64_t gsr_var_size(const struct gsr_var *v);
/* What is wrong with @o, of @insn's operand @top, naming @v; NULL: nothing */
const char *gsr_global_use(struct gsr_pass *p, const struct gsr_insn *insn, const struct gsr_operand *top,
			   const struct gsr_operand *o, const struct gsr_var *v);
const char *gsr_constant_use(struct gsr_pass *p, const struct gsr_insn *insn);
const char *gsr_globals_room(struct gsr_pass *p, const struct gsr_closure *c);
unsigned int gsr_globals(struct gsr_pass *p, struct gsr_fn *fn);	/* returns the instructions inserted */
void gsr_globals_list(struct gsr_pass *p, const struct gsr_closure *c, struct gsr_kernel *k);
/* The description, the table and, by its index, the copy of each variable (NULL none) */
void gsr_globals_finish(struct gsr_pass *p, struct gsr_rewrite *out, struct gsr_var **copies, struct gsr_var *table);

/* references.c */
bool gsr_is_reference(const struct gsr_var *v);		/* of a texture, surface or sampler */
const char *gsr_reference_use(struct gsr_pass *p, const struct gsr_insn *insn, const struct gsr_operand *top,
			      const struct gsr_operand *o, const struct gsr_var *v);	/* as gsr_global_use() */
unsigned int gsr_references_used(const struct gsr_closure *c);
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
 * blockids.c, returns.c, loop.c: change the function; return the number of instructions inserted.
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
/* What a block leaves behind that must be gone before the next block-task */
struct gsr_left {
	bool cp_async, bulk, mbarriers, alloca, phases;
	const char *gathers;		/* what makes them ready; NULL there are none */
};
/* @resume: of a resumable twin, else NULL */
struct gsr_resume;
unsigned int gsr_loop(struct gsr_pass *p, struct gsr_function *f, const struct gsr_sites *sites, const struct gsr_left *left,
		      const struct gsr_ids *ids, int id, const struct gsr_resume *resume);
/*
 * mbarriers.c: between two block-tasks thread 0 makes invalid what the kernel made, of at most so
 * many
 */
#define GSR_MBARRIERS_MAX	120
#define GSR_STR_(x)		#x
#define GSR_STR(x)		GSR_STR_(x)
const char *gsr_mbarriers_refusal(struct gsr_pass *p, const struct gsr_closure *c);
unsigned int gsr_mbarriers(struct gsr_pass *p, struct gsr_fn *fn);
extern const char gsr_mbarriers_none[], gsr_mbarriers_down[];

/*
 * alignment.c: what the kernel computes may depend on more than the declared alignment of shared
 * memory
 */
bool gsr_alignment_matters(const struct gsr_closure *c);

/* own.c: which shared variables of its own a twin needs */
#define GSR_OWN_MAX	6
#define GSR_ALIGNED	1024u	/* shared addresses stay the same modulo this */
struct gsr_own {
	bool mbarriers, ended, phases, gathers;
	unsigned int own_gathers;	/* bytes of those that the kernel has for itself */
	bool aligned;			/* alignment matters */
	bool inside;			/* no function names them: the kernel can declare them itself */
};
/* @wide: the module's are aligned */
unsigned int gsr_own_bytes(const struct gsr_pass *p, const struct gsr_own *own, bool wide);
void gsr_own_declare(struct gsr_pass *p, struct gsr_function *f, const struct gsr_own *own);
struct gsr_var **gsr_own_module(struct gsr_pass *p, const struct gsr_own *own, bool wide, unsigned int *n);

/*
 * Polls the window (loop.c), also by other threads than thread 0; goes on behind the text if it excludes this worker, else at label
 * @inside. @tag makes names. Comes with the control block in %#d0, its first two words in %#d1 and %#d2, and the time in %#d5.
 */
unsigned int gsr_look(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at, const char *tag, const char *inside);
/*
 * queue.c: how many block-tasks are fetched from the counters, and which; by the thread that
 * fetches
 */
extern const char gsr_queue_rest[], gsr_queue_count[];
unsigned int gsr_queue_take(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at, bool resumable);
unsigned int gsr_queue_seldom(struct gsr_pass *p, struct gsr_function *f, bool resumable);
/*
 * static.c: where block-tasks come from if the grid is cut into ranges; by the thread that fetches
 */
extern const char gsr_static_take[], gsr_static_leave[], gsr_static_waits[];
extern const char gsr_not_first[];	/* sets %#p0 unless thread 0 */

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
void gsr_remove(struct gsr_function *f, struct gsr_stmt *s);
/* A guarded statement is jumped over, and has no guard any more */
unsigned int gsr_unguard(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *s);
struct gsr_stmt *gsr_stmt_copy(struct gsr_arena *a, const struct gsr_stmt *s);
const char *gsr_expand(struct gsr_pass *p, const char *text);

/* parse.c: the statements of a body, in @a. NULL: not PTX, which is a bug of ours */
struct gsr_function *gsr_parse_body(struct gsr_arena *a, const char *text, struct gsr_error *err);

#endif /* GSR_REWRITE_H */
