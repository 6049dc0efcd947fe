// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Block ids in grids up to the hardware's limits. A twin's worker begins far inside of the grid,
 * because the counter of block-tasks stands there, and runs to its end or stops at a number: the
 * ids it sees must be those that 128-bit arithmetic gives.
 */
#include <stdlib.h>
#include <string.h>
#include "exec.h"
#include "rewriter/gsr.h"
#include "test-exec.h"
#include "uapi/linux/gsched.h"

#define MOST	64

static const char kernel[] =
	".version 8.6\n.target sm_75\n.address_size 64\n"
	".visible .entry ids (.param .u64 log)\n{\n"
	".reg .u64 %rd<4>; .reg .u32 %r<10>;\n"
	"ld.param.u64 %rd1, [log];\n"
	"mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.z;\n"
	"mov.u32 %r4, %nctaid.x; mov.u32 %r5, %nctaid.y; mov.u32 %r6, %nctaid.z;\n"
	"atom.global.add.u32 %r7, [%rd1], 1;\n"
	"mul.wide.u32 %rd2, %r7, 32;\n"
	"add.u64 %rd2, %rd2, %rd1;\n"
	"st.global.v4.u32 [%rd2+32], {%r1, %r2, %r3, %r4};\n"
	"st.global.v2.u32 [%rd2+48], {%r5, %r6};\n"
	"ret;\n}\n";

struct log {
	uint32_t n, pad[7];
	uint32_t ids[MOST][8];
};

static uint64_t ticks;

static uint64_t timer(void)
{
	return ticks += 10000;
}

static void run(struct vgpu_kernel *k, const struct gsr_kernel *g, const uint32_t grid[3],
		uint64_t first, unsigned int n)
{
	uint64_t total = (uint64_t)grid[0] * grid[1] * grid[2], window = GSCHED_CAPSM, i;
	struct gsr_control *control = aligned_alloc(128, (sizeof(*control) + 127) & ~(size_t)127);
	struct gsched_cl_slot stat = { .seq = 1 };
	struct vgpu_launch l = { .kernel = k, .grid = { 1, 1, 1 }, .block = { 1, 1, 1 },
				 .nsmid = 1 };
	uint8_t params[512] = { 0 };
	static struct log log;
	struct gsr_launch a = {
		.control = (uintptr_t)control, .window = (uintptr_t)&window,
		.stat = (uintptr_t)&stat,
		.grid = { grid[0], grid[1], grid[2] }, .seq = 1, .weight = GSCHED_CAPSM,
		.poll_quarter = 1, .fetch_ns = 20000, .fetch_max = 8, .workers = 132,
	};
	uintptr_t to = (uintptr_t)&log;
	unsigned int sm[3] = { 0 };
	enum vgpu_result r = VGPU_RUNNING;
	struct vgpu_block *b;
	bool good = total >= first + n;

	if (!control)
		return;
	memset(&log, 0, sizeof(log));
	memset(control, 0, sizeof(*control));
	/* the others have done the rest */
	gsr_launch_order(&a, GSR_ORDER_STRICT, a.workers, a.fetch_max);
	control->counter[0].next = first;
	control->done = total - n;
	control->relay = window;
	memcpy(params, &to, sizeof(to));
	memcpy(params + g->launch_offset, &a, sizeof(a));
	l.params = params;
	b = vgpu_block_new(&l, sm, 0);
	while (b && r == VGPU_RUNNING && log.n < n)
		r = vgpu_block_run(b, 1, NULL);
	while (b && r == VGPU_RUNNING && first + n == total)
		r = vgpu_block_run(b, 1000, NULL);
	if (r == VGPU_FAULT) {
		printf("# %s\n", vgpu_block_error(b));
		good = false;
	}
	for (i = 0; i < n && good; i++) {
		unsigned __int128 at = (unsigned __int128)first + i;
		const uint32_t *id = log.ids[i];

		if (i + 1 == n && first + n != total)
			break;	/* it may not have been written whole */
		good = id[0] == (uint32_t)(at % grid[0]) &&
		       id[1] == (uint32_t)(at / grid[0] % grid[1]) &&
		       id[2] == (uint32_t)(at / grid[0] / grid[1]) && id[3] == grid[0] &&
		       id[4] == grid[1] && id[5] == grid[2];
		if (!good)
			printf("# block-task %llu: %u %u %u of %u %u %u\n",
			       (unsigned long long)first + i, id[0], id[1], id[2], id[3],
			       id[4], id[5]);
	}
	if (first + n == total)
		good = good && r == VGPU_DONE && control->gate == 1 && control->done == total &&
		       stat.finished == 1;
	ok(good, "%u x %u x %u blocks, %u from %llu", grid[0], grid[1], grid[2], n,
	   (unsigned long long)first);
	vgpu_block_free(b);
	free(control);
}

int main(void)
{
	static const uint32_t grids[][3] = {
		{ 0x7fffffff, 1, 1 }, { 0x3fffffff, 2, 1 }, { 0x15555555, 3, 2 }, { 1, 32767, 65535 },
		{ 32768, 65535, 1 }, { 3, 10922, 65535 }, { 3, 1, 65535 }, { 1, 65535, 1 },
	};
	struct gsr_rewrite rw;
	struct vgpu_module *m;
	struct vgpu_kernel *k;
	struct gsr_error err;
	char why[512] = "";
	unsigned int i;

	vgpu_globaltimer = timer;
	if (gsr_rewrite_ptx(kernel, strlen(kernel), NULL, &rw, &err) != GSR_OK || !rw.ptx) {
		ok(false, "rewritten: %s", err.message);
		return done();
	}
	m = vgpu_module_load(rw.ptx, rw.ptx_size, why, sizeof(why));
	k = m ? vgpu_module_kernel(m, "ids" GSR_SUFFIX) : NULL;
	if (!ok(k, "loaded %s", why))
		return done();
	for (i = 0; i < sizeof(grids) / sizeof(grids[0]); i++) {
		const uint32_t *g = grids[i];
		uint64_t total = (uint64_t)g[0] * g[1] * g[2], row = g[0],
			plane = (uint64_t)g[0] * g[1];

		run(k, &rw.kernels[0], g, total - 40, 40);
		run(k, &rw.kernels[0], g, 0, 30);
		run(k, &rw.kernels[0], g, total / 2 - 7, 30);
		/* over the end of a row, of a plane */
		if (row > 20 && row < total)
			run(k, &rw.kernels[0], g, row - 20, 40);
		if (plane > 20 && plane < total)
			run(k, &rw.kernels[0], g, plane - 20, 40);
	}
	vgpu_module_free(m);
	gsr_rewrite_free(&rw);
	return done();
}
