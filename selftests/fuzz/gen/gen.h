/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Random kernels that are valid: whatever the order of blocks and of threads within what PTX
 * allows, they leave the same memory. A kernel is a tree of statements, which prints itself as PTX
 * and from which the reducer takes away.
 *
 * How it stays valid. A thread writes global memory only in its own stretch of `out`, and by
 * atomics that commute, one kind a cell, to `acc`; it reads `in` anywhere. Shared memory is written
 * in phases between barriers, one thread a cell; its atomic cells are read between barriers.
 * Statements know where they stand: threads of a block all together (LEVEL_BLOCK: barriers may
 * stand here), warps (LEVEL_WARP: shuffles and votes), or anyhow (LEVEL_THREAD). Branches on
 * registers that hold the same value in the whole block (%u) or warp (%w) keep the level, all
 * others go to LEVEL_THREAD; %u and %w are written only at their own level. A kernel with early
 * exits has no statement that waits for a count, and those that wait for lanes tell who is there:
 * whoever is there comes to them, at any time, or ends before.
 */
#ifndef FUZZ_GEN_H
#define FUZZ_GEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "selftests/vgpu/test-rewrite.h"

/* What a node is, for weights and for counting what was generated */
#define GEN_FEATURES(X) \
	X(alu, 30) X(alu64, 10) X(alu_float, 8) X(alu_double, 4) X(alu16, 4) X(pred, 6) \
	X(guarded, 6) \
	X(store, 14) X(load, 8) X(vector, 5) X(readback, 4) X(atomic, 8) X(cas, 2) X(local, 5) \
	X(special, 4) \
	X(if_thread, 10) X(if_warp, 4) X(if_block, 5) X(loop_thread, 7) X(loop_warp, 2) \
	X(loop_block, 6) X(branch_out, 5) \
	X(switch, 3) X(scope, 1) X(ret, 6) X(ret_block, 2) X(end, 10) X(call, 6) X(call_block, 3) \
	X(recurse, 3) X(recurse_block, 3) X(indirect, 3) \
	X(phase, 14) X(shared_bits, 2) X(shared_atomic, 5) X(shared_sum, 3) X(barrier, 4) \
	X(barrier_red, 3) X(barrier_named, 2) \
	X(split, 3) X(arrive, 3) X(shuffle, 5) X(vote, 5) X(redux, 2) X(match, 1) X(apart, 5) \
	X(gather, 8) X(tile, 3) \
	X(part, 1) X(chain, 1) X(async, 2) X(global_var, 4) X(const_var, 3) X(global_load, 3) \
	X(generic, 1)

enum gen_feature {
#define X(name, weight) GEN_##name,
	GEN_FEATURES(X)
#undef X
	GEN_FEATURE_COUNT
};

extern const char *const gen_feature_name[GEN_FEATURE_COUNT];
extern const unsigned int gen_feature_weight[GEN_FEATURE_COUNT];	/* defaults */

struct gen_options {
	unsigned int weight[GEN_FEATURE_COUNT];
};
void gen_options_init(struct gen_options *o);
/* "shuffle=0"; false: no such name */
bool gen_options_weight(struct gen_options *o, const char *name_is_n);

struct gen_line {
	struct gen_line *next;
	bool off;
	char text[];
};

struct gen_text {
	struct gen_line *first, *last;
};

/* text[0] child[0] text[1] child[1] text[2]; a leaf has text[0] only */
struct gen_node {
	struct gen_node *next;
	int feature;			/* -1 none */
	bool compound;
	bool off, flat;			/* gone; only its children are left */
	bool fixed;			/* not taken away: what others need */
	const char *only_with;		/* gone where nothing else names this register */
	struct gen_text text[3];
	struct gen_node *child[2];
};

struct gen_kernel {
	struct gen_node *module;	/* declarations, functions, the entry */
	struct test_launch launch;
	unsigned int count[GEN_FEATURE_COUNT];
	uint64_t seed;
	void *memory;			/* private */
};

/* The same seed and options, the same kernel. NULL: out of memory */
struct gen_kernel *gen_kernel_new(uint64_t seed, const struct gen_options *o);
void gen_kernel_free(struct gen_kernel *k);
char *gen_print(const struct gen_kernel *k);			/* PTX, malloc'd */
/* a line as selftests/rewriter/corpus/README describes it */
void gen_print_launch(const struct gen_kernel *k, FILE *f);

/*
 * Shrink: take away what can go while @fails() says that what is left, printed, still fails.
 * Returns the number of trials. @fails must refuse what is no valid launch.
 */
typedef bool gen_fails(struct gen_kernel *k, const char *ptx, void *arg);
unsigned int gen_reduce(struct gen_kernel *k, gen_fails *fails, void *arg);

#endif /* FUZZ_GEN_H */
