/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the interpreter's tests share: running a kernel of a PTX text. */
#ifndef VGPU_TEST_EXEC_H
#define VGPU_TEST_EXEC_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "exec.h"
#include "selftests/tap.h"

#define HEAD ".version 9.0\n.target sm_90\n.address_size 64\n"

struct args {
	uint64_t v[16];
};

/* Run a grid to its end, block by block. "" or the first error; "unfinished" after @steps */
static inline const char *run_grid(struct vgpu_kernel *k, unsigned int grid, unsigned int block,
				   size_t dynamic, uint64_t seed, const struct args *a,
				   uint64_t steps)
{
	static char error[1100];
	const struct vgpu_kernel_info *info = vgpu_kernel_info(k);
	uint8_t *params = calloc(1, info->param_size + 16);
	struct vgpu_launch l = { .kernel = k, .grid = { grid, 1, 1 }, .block = { block, 1, 1 },
				 .dynamic_shared = dynamic,
				 .params = params, .grid_id = 7, .nsmid = 4, .seed = seed,
				 .watch = vgpu_checks & VGPU_CHECK_GRID ? vgpu_watch_new() : NULL };
	unsigned int i;

	for (i = 0; i < info->n_params && i < 16; i++)
		memcpy(params + info->param[i].offset, &a->v[i],
		       info->param[i].size < 8 ? info->param[i].size : 8);
	error[0] = 0;
	for (i = 0; i < grid && !error[0]; i++) {
		struct vgpu_block *b = vgpu_block_new(&l, (unsigned int[3]){ i, 0, 0 }, i % 4);
		enum vgpu_result r = vgpu_block_run(b, steps, NULL);

		if (r != VGPU_DONE)
			snprintf(error, sizeof(error), "%s", r == VGPU_FAULT ? vgpu_block_error(b) :
				 "unfinished");
		vgpu_block_free(b);
	}
	vgpu_watch_free(l.watch);
	free(params);
	return error;
}

/* Load, run the first kernel, free */
static inline const char *run_text(const char *ptx, unsigned int grid, unsigned int block,
				   size_t dynamic, uint64_t seed, const struct args *a)
{
	static char err[1100];
	struct vgpu_module *m = vgpu_module_load(ptx, strlen(ptx), err, sizeof(err));
	struct vgpu_kernel *k;

	if (!m)
		return err;
	if (!vgpu_module_kernels(m, &k, 1))
		snprintf(err, sizeof(err), "no kernel");
	else
		snprintf(err, sizeof(err), "%s",
			 run_grid(k, grid, block, dynamic, seed, a, 1ull << 24));
	vgpu_module_free(m);
	return err;
}

#endif /* VGPU_TEST_EXEC_H */
