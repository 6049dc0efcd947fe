/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The cut inside vgpu: exec.c (this interface) interprets PTX, sched.c decides which block runs on which simulated SM and
 * when, api*.c is the driver API. The device's global memory is the process's own address space: a device pointer is a
 * host pointer (as under UVA), so pinned host memory needs no translation.
 */
#ifndef VGPU_EXEC_H
#define VGPU_EXEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vgpu_module;
struct vgpu_kernel;
struct vgpu_block;

/* Load PTX: parse (rewriter/ptx.h), check every instruction, lay out variables. NULL: message in @err, by name and line. */
struct vgpu_module *vgpu_module_load(const char *ptx, size_t size, char *err, size_t err_size);
void vgpu_module_free(struct vgpu_module *m);
struct vgpu_kernel *vgpu_module_kernel(struct vgpu_module *m, const char *name);	/* NULL none */
unsigned int vgpu_module_kernels(struct vgpu_module *m, struct vgpu_kernel **list, unsigned int max);
void *vgpu_module_global(struct vgpu_module *m, const char *name, size_t *size);	/* .global and .const variables */

/* What occupancy and launches need to know of a kernel */
struct vgpu_kernel_info {
	const char *name;
	unsigned int n_params;
	size_t param_size;
	struct { size_t offset, size; } param[256];
	unsigned int regs;		/* per thread: max live 32-bit registers, at most 255, at least 16 */
	unsigned int static_shared, local_size, max_threads;
};
const struct vgpu_kernel_info *vgpu_kernel_info(const struct vgpu_kernel *k);

struct vgpu_launch {
	const struct vgpu_kernel *kernel;
	unsigned int grid[3], block[3];
	size_t dynamic_shared;
	const void *params;		/* param_size bytes, packed at the kernel's offsets; lives as long as its blocks */
	uint64_t grid_id;
	unsigned int nsmid;
	uint64_t seed;			/* not 0: warps and diverged threads take turns at random */
};

/* One resident block. @smid: what %smid reads. NULL: out of memory. Not thread-safe: one runner a block at a time. */
struct vgpu_block *vgpu_block_new(const struct vgpu_launch *launch, const unsigned int ctaid[3], unsigned int smid);
void vgpu_block_free(struct vgpu_block *b);

enum vgpu_result { VGPU_RUNNING, VGPU_DONE, VGPU_FAULT };
/*
 * Run about @steps thread-instructions (warp-wise: 32 a step of a full warp). VGPU_RUNNING: call again. VGPU_FAULT: message in
 * vgpu_block_error(): illegal address, unknown instruction, trap, or a deadlock at a barrier with who waits where.
 * *@done is what was executed.
 */
enum vgpu_result vgpu_block_run(struct vgpu_block *b, uint64_t steps, uint64_t *done);
const char *vgpu_block_error(const struct vgpu_block *b);

/* %globaltimer: given by the scheduler so that tests can drive it */
extern uint64_t (*vgpu_globaltimer)(void);
/* Bounds of what a kernel may touch; NULL: anything. Returns false for an illegal access. */
extern bool (*vgpu_access_ok)(uint64_t addr, size_t size, bool write);

/*
 * Hold programs to the letter of PTX: threads of one warp that meet at different .aligned barrier instructions are a fault.
 * Hardware since sm_70 lets them pass. Off by default.
 */
extern bool vgpu_strict;

#endif /* VGPU_EXEC_H */
