/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Resumable twins: the points at which a block-task can be suspended in its middle, the state that
 * its threads hold there (resume.c), and the code that saves and restores it (suspend.c).
 */
#ifndef GSR_RESUME_H
#define GSR_RESUME_H

#include "rewriter/analysis/liveness.h"
#include "transform.h"

/* Recomputes a live register in place of saving it */
struct gsr_remat {
	const struct gsr_insn *insn;
	bool ids;			/* from ids of threads or blocks */
};

struct gsr_point {
	struct gsr_stmt *at;		/* the barrier, or what a loop checks behind */
	bool warp;			/* the lanes of a warp must decide together */
	const char **regs;		/* live registers, which are saved */
	const struct gsr_var **vars;	/* their declarations */
	bool *based;			/* by register: a parameter's address (params.c) */
	unsigned int n_regs, words;	/* words: 32-bit words that the registers take */
	struct gsr_stmt *head, *last;	/* of a contiguous loop: its label and its back edge */
	unsigned int insns;		/* instructions of that loop; 0: not contiguous */
	struct gsr_remat *remat;	/* NULL: all live registers are saved (remat.c) */
	unsigned int n_remat;
	unsigned int weight;		/* instructions charged to a thread here */
	/*
	 * A loop whose lanes come apart: number of the join, where those that left it wait for the
	 * others; 0: none. A join is in front of @at, not behind it.
	 */
	unsigned int join;
	bool is_join;
	unsigned int block;		/* of a loop's head, or of a join */
	unsigned int reconv;		/* on the way out, from 1 on; 0: none */
};

/* A natural loop. It has sites if it has barriers */
struct gsr_loop {
	unsigned int head;
	unsigned int *blocks, n;	/* the head first */
	unsigned int edge;		/* head of the list of its back edges, from 1 on */
	unsigned int sites;
	unsigned int weight;		/* of one iteration */
};

/* A reconvergence point behind loops (reconverge.c) */
struct gsr_reconv {
	struct gsr_stmt *at;		/* in front of it */
	unsigned int join;		/* number of the join behind it, 0: none */
};

/* In front of @at lanes come to a loop, and note their mask for the reconvergence point */
struct gsr_entry {
	struct gsr_stmt *at;
	unsigned int reconv;		/* from 0 on */
};

/* A variable whose contents are saved: shared (one per block) or local (one per thread) */
struct gsr_saved {
	const char *name;
	unsigned int size, align;
	unsigned int offset;		/* in the record; local: words into the thread's part */
};

/*
 * Values of %#s besides the number of a point and -1, where all threads pass the meeting before
 * they enter the body: at its start, or to resume in its middle
 */
#define GSR_RESUME_START	-2
#define GSR_RESUME_BACK		-3

struct gsr_resume {
	/*
	 * the sites first, in the order of gsr_convert_barriers(); if in_place, only those outside
	 * loops
	 */
	struct gsr_point *points;
	unsigned int n_sites, n_points;
	struct gsr_reconv *reconvs;
	struct gsr_entry *entries;
	unsigned int n_reconvs, n_entries;
	struct gsr_saved *shared, *local;
	unsigned int n_shared, n_local;
	const char *dynamic;		/* a name of dynamic shared memory, or NULL */
	bool behind;			/* $#me stands behind that (own.c) */
	unsigned int fixed;		/* bytes of a record in front of dynamic shared memory */
	unsigned int words;		/* of 32 bits per thread; the first: its point */
	int id;				/* the twin's own barrier */
	bool early, cp_async;
	bool red;			/* some sites are reductions */
	bool in_place;			/* all threads reach each point, and vote there */
	bool restart;			/* nothing is saved: the block-task begins again */
	bool commits;			/* likewise, but not if a thread has finished it */
	unsigned int look;		/* instructions between two checks of a thread */
};

/*
 * The plan, with @restart of points from where the block-task begins again; and in *@note which
 * loops have no point, or NULL. Returns NULL, with the reason in *@note, if the kernel can be left
 * between block-tasks only. Must run before the kernel's barriers are converted.
 */
struct gsr_resume *gsr_resume_plan(struct gsr_pass *p, struct gsr_fn *fn,
				   const struct gsr_closure *c, bool early, int id, bool restart,
				   bool *rows, const char **note);

/* Do lanes of a warp execute it together? Matrix instructions exchange data among all lanes. */
bool gsr_needs_lanes(const struct gsr_insn *insn);
/* The statement behind a block's label */
struct gsr_stmt *gsr_start_of(const struct gsr_block *b);

/*
 * reconverge.c: finds the reconvergence points behind the plan's points. @calls_wait: lanes may
 * wait in functions that the kernel calls. The graph knows which branches split a warp.
 */
void gsr_find_reconvs(struct gsr_pass *p, const struct gsr_fn *fn, struct gsr_resume *r,
		      const struct gsr_loop *loops, unsigned int n_loops, bool calls_wait);

/*
 * remat.c: gsr_remat() adds to @pt->remat what recomputes the register @name; false: it must be
 * saved. The names of the kernel's def-use index are entered (gsr_defuse_enter()).
 * gsr_remat_insert() inserts what the loop needs behind @pt->at, gsr_remat_redo() all at the end
 * of the function, for a block-task that is resumed.
 */
#define GSR_REMAT_MAX	32
bool gsr_remat(const struct gsr_closure *c, const char *name, struct gsr_point *pt);
unsigned int gsr_remat_insert(struct gsr_pass *p, struct gsr_function *f,
			      const struct gsr_point *pt);
unsigned int gsr_remat_redo(struct gsr_pass *p, struct gsr_function *f, const struct gsr_point *pt);

/* stripmine.c: does the instruction name the register? */
bool gsr_insn_names(const struct gsr_insn *insn, const char *name);

/*
 * stripmine.c, unroll.c: short loops check once in many iterations. gsr_stripmine_rounds() returns
 * the iterations between two checks, 0 if the loop is not a counted one; gsr_stripmine() false.
 */
unsigned int gsr_stripmine_rounds(const struct gsr_point *pt, unsigned int look);
bool gsr_stripmine(struct gsr_pass *p, struct gsr_function *f, struct gsr_point *pt,
		   unsigned int number, unsigned int look, unsigned int *inserted);
unsigned int gsr_loop_text(const struct gsr_cfg *cfg, const unsigned int *blocks, unsigned int n,
			   struct gsr_stmt **last);
unsigned int gsr_unroll(struct gsr_pass *p, struct gsr_function *f, struct gsr_point *pt,
			unsigned int number);

#endif /* GSR_RESUME_H */
