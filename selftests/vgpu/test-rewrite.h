/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How the kernels of the rewriter's corpus are launched: NAME.launch, as
 * selftests/rewriter/corpus/README describes it.
 */
#ifndef VGPU_TEST_REWRITE_H
#define VGPU_TEST_REWRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LAUNCH_PARAMS_MAX 32
#define LAUNCH_REFS_MAX 8

enum test_kind { PARAM_BUFFER, PARAM_VALUE, PARAM_BYTES, PARAM_TEXTURE };
enum test_fill { FILL_ZERO, FILL_WORDS, FILL_FLOATS, FILL_INDEX, FILL_ROWS, FILL_TEXT };

struct test_param {
	enum test_kind kind;
	enum test_fill fill;	/* of a buffer */
	size_t size;		/* of a buffer */
	uint64_t value;		/* of a buffer: what its fill is about */
};

/* What is bound to a texture or surface reference */
struct test_ref {
	char name[64];
	unsigned int buffer;	/* number of the parameters' */
	unsigned int width;	/* of its rows; 0: one row */
};

struct test_launch {
	char kernel[128];
	bool block;		/* must be rewritten */
	unsigned int grid[3], block_dim[3], arch;
	bool ordered;		/* a block waits for those before it: they must begin first */
	unsigned int scale;	/* full sizes: the numbers with a star are multiplied with it */
	size_t dynamic;
	unsigned int n_params;
	struct test_param params[LAUNCH_PARAMS_MAX];
	unsigned int n_refs;
	struct test_ref refs[LAUNCH_REFS_MAX];
};

struct test_launches {
	struct test_launch *launch;
	unsigned int n;
};

/*
 * The launches of NAME.ptx or NAME.sm_NN.ptx, small or full size. False: @why says what is wrong,
 * by file and line
 */
bool launches_read(const char *ptx_path, struct test_launches *all, char *why, size_t size);
bool launches_read_full(const char *ptx_path, struct test_launches *all, char *why, size_t size);
/* What a buffer holds at first: @p->size bytes */
void launch_fill(const struct test_param *p, uint8_t *to);
void launches_free(struct test_launches *all);

/* Block-tasks that no worker has fetched from the counters */
struct gsr_launch;
struct gsr_control;
uint64_t launch_unclaimed(const struct gsr_launch *a, const struct gsr_control *c);

#endif /* VGPU_TEST_REWRITE_H */
