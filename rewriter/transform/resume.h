/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Resumable twins: where a block-task can be left in its middle, what its threads hold there (resume.c), and the code that
 * saves and restores it (suspend.c).
 */
#ifndef GSR_RESUME_H
#define GSR_RESUME_H

#include "rewriter/analysis/liveness.h"
#include "transform.h"

struct gsr_point {
	struct gsr_stmt *at;		/* the barrier, or the statement behind which a loop's head is looked at */
	bool warp;			/* lanes must agree */
	const char **regs;		/* that hold a value there */
	const struct gsr_var **vars;	/* their declarations */
	bool *based;			/* an address of a parameter: saved as a distance (params.c) */
	unsigned int n_regs, words;	/* 32-bit words of them */
	struct gsr_stmt *head, *last;	/* a loop that can be written several times over: its label and its branch back */
	unsigned int insns;		/* in it; 0 not such a loop */
	const struct gsr_insn **anew;	/* what makes registers that are not saved */
	unsigned int n_anew;
	unsigned int weight;		/* what a thread has run when it comes here, since the point before: even */
};

/* A variable whose contents go along: shared (the whole block's) or local (each thread's) */
struct gsr_saved {
	const char *name;
	unsigned int size, align;
	unsigned int offset;		/* shared: in the record; local: words into the thread's part */
};

/* What %#s is, beside points and -1, where all threads come by the meeting before they are in the body */
#define GSR_RESUME_START	-2
#define GSR_RESUME_BACK		-3	/* in its middle */

struct gsr_resume {
	struct gsr_point *points;	/* the sites first, in the order of gsr_convert_barriers(); in place those without a loop */
	unsigned int n_sites, n_points;
	struct gsr_saved *shared, *local;
	unsigned int n_shared, n_local;
	const char *dynamic;		/* a name of dynamic shared memory, or NULL */
	unsigned int fixed;		/* bytes of a record before dynamic shared memory */
	unsigned int words;		/* 32-bit words a thread, the first says where it stands */
	int id;				/* our barrier */
	bool early, cp_async;
	bool red;			/* some sites are reductions */
	bool in_place;			/* all threads come to each point, and vote there */
	unsigned int look;		/* a thread looks when it has run more: even */
};

/*
 * NULL and a reason: the kernel can be left between block-tasks only. Otherwise the plan, and in *@note which loops have no
 * point, or NULL. To be asked before anything is changed.
 */
struct gsr_resume *gsr_resume_plan(struct gsr_pass *p, struct gsr_fn *fn, const struct gsr_closure *c, bool early, int id,
				   bool *rows, const char **note);

/* anew.c: registers that are made anew at a point, behind @pt->at. The table is valid until the function changes */
#define GSR_ANEW_MAX	32
struct gsr_anew;
struct gsr_anew *gsr_anew_table(struct gsr_arena *a, const struct gsr_function *f, const struct gsr_closure *c);
bool gsr_anew(struct gsr_anew *t, const char *name, struct gsr_point *pt);
unsigned int gsr_insert_anew(struct gsr_pass *p, struct gsr_function *f, const struct gsr_point *pt);

/* strip.c, unroll.c: short loops look once in many rounds */
unsigned int gsr_strip_rounds(const struct gsr_point *pt, unsigned int look);	/* between two looks; 0: not such a loop */
bool gsr_strip(struct gsr_pass *p, struct gsr_function *f, struct gsr_point *pt, unsigned int number, unsigned int look,
	       unsigned int *inserted);
unsigned int gsr_loop_text(const struct gsr_cfg *cfg, const unsigned int *blocks, unsigned int n, struct gsr_stmt **last);
unsigned int gsr_unroll(struct gsr_pass *p, struct gsr_function *f, struct gsr_point *pt, unsigned int number);

#endif /* GSR_RESUME_H */
