/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Inside the generator: where a statement is made, and what with. */
#ifndef FUZZ_TREE_H
#define FUZZ_TREE_H

#include "gen.h"

enum level { LEVEL_THREAD, LEVEL_WARP, LEVEL_BLOCK };

/* of `out` a thread: 8 for statements, 8 for what the registers hold at the end */
#define OWN_WORDS	16
#define IN_WORDS	1024
#define CELLS		16	/* of 4 bytes in acc, then CELLS64 of 8 */
#define CELLS64		8
#define LOCAL_WORDS	16
#define SHARED_CELLS	16
#define FUNCS_MAX	6
#define NEST_MAX	8
#define COUNTERS	64	/* registers for loops, beyond those in scopes of their own */

struct func {
	char name[24];
	bool ids;		/* reads %ctaid and the like */
	bool block;		/* has barriers: called by whole blocks only */
	bool recursive;
	unsigned int cost;	/* instructions, roughly */
};

/* What all statements of one kernel know */
struct gen {
	uint64_t rng;
	struct gen_kernel *k;
	const struct gen_options *o;
	unsigned int threads, warps, arch;
	bool full_warps;	/* rows, or a single one, of whole warps */
	bool exits;		/* threads may leave early */
	bool exit_barriers;	/* with other barriers than 0 beside */
	/* wanted in this kernel */
	bool shared, dynamic, cells, local, async, indirect, variables, gathers;
	bool generic;		/* generic addresses of shared memory */
	bool table_const;	/* where the table of functions is */
	bool linear;		/* %lin is %tid.x */
	unsigned int labels, counters;
	struct func func[FUNCS_MAX];
	unsigned int n_funcs;
};

/* Where a statement stands */
struct place {
	struct gen *g;
	struct gen_node **tail;
	const struct func *func;	/* NULL: the kernel */
	unsigned int n_funcs;		/* that may be called from here */
	enum level level;
	unsigned int depth;
	unsigned int times;		/* how often it may run, at most */
	int *left;			/* statements to come */
	unsigned int *cost, most;	/* instructions of a thread so far, roughly, and when to
					 * stop */
	bool *dirty;			/* shared memory was read since the last barrier */
	unsigned int n_out;
	unsigned int out[NEST_MAX];	/* labels that branches may leave loops to, by number */
};

uint64_t gen_roll64(struct gen *g);
unsigned int gen_roll(struct gen *g, unsigned int n);	/* 0 .. n - 1 */
static inline bool gen_once_in(struct gen *g, unsigned int n)
{
	return gen_roll(g, n) == 0;
}

void *gen_alloc(struct gen_kernel *k, size_t size);
const char *gen_text(struct gen *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
struct gen_node *gen_node(struct place *p, int feature);
/* Lines of @n's part @i; several at once, separated by newlines */
void gen_line(struct gen *g, struct gen_node *n, unsigned int i, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
#define L(n, ...) gen_line(p->g, n, 0, __VA_ARGS__)

/* The children of a compound node, at a level that is at most the parent's */
struct place gen_inside(struct place *p, struct gen_node *n, unsigned int child, enum level level);

/* Registers: names in the generator's memory, chosen at random */
const char *gen_r(struct place *p);	/* b32, any value */
const char *gen_u(struct place *p);	/* b32, the same in the block */
const char *gen_w(struct place *p);	/* b32, the same in the warp */
const char *gen_d(struct place *p);	/* b64 */
const char *gen_f(struct place *p);	/* f32 */
const char *gen_g(struct place *p);	/* f64 */
const char *gen_k(struct place *p);	/* b16 */
const char *gen_p(struct place *p);	/* pred */
const char *gen_rv(struct place *p);	/* a b32 register or a constant */

/* statements.c */
void gen_statements(struct place *p, unsigned int n);
/* %q0: a condition over registers of @level's uniformity */
void gen_condition(struct place *p, struct gen_node *n, unsigned int part, enum level level);

/* leaves.c: one statement each, allowed anywhere */
void gen_leaf(struct place *p, enum gen_feature what);
/* sync.c: barriers, shared memory, warps */
void gen_sync(struct place *p, enum gen_feature what);
void gen_clean(struct place *p);	/* a barrier, if shared memory may still be read */
/* functions.c */
void gen_functions(struct place *p);	/* at the module's level */
void gen_call(struct place *p, enum gen_feature what);
/* the table of those that are called through pointers; NULL there are none */
const char *gen_table(struct gen *g);
/* kernel.c */
void gen_registers(struct place *p, bool kernel);

#endif /* FUZZ_TREE_H */
