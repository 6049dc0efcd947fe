/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The cut inside vgpu: exec.c (this interface) interprets PTX, sched.c decides which block runs on
 * which simulated SM and when, api*.c is the driver API. The device's global memory is the
 * process's own address space: a device pointer is a host pointer (as under UVA), so pinned host
 * memory needs no translation.
 */
#ifndef VGPU_EXEC_H
#define VGPU_EXEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vgpu_module;
struct vgpu_kernel;
struct vgpu_block;

/*
 * Load PTX: parse (rewriter/ptx.h), check every instruction, lay out variables. NULL: message in
 * @err, by name and line.
 */
struct vgpu_module *vgpu_module_load(const char *ptx, size_t size, char *err, size_t err_size);
void vgpu_module_free(struct vgpu_module *m);
/* NULL none */
struct vgpu_kernel *vgpu_module_kernel(struct vgpu_module *m, const char *name);
unsigned int vgpu_module_kernels(struct vgpu_module *m, struct vgpu_kernel **list,
				 unsigned int max);
/* .global and .const variables */
void *vgpu_module_global(struct vgpu_module *m, const char *name, size_t *size);
void *vgpu_module_globals(struct vgpu_module *m, size_t *size);	/* all of them, in one piece */

/* Texture and surface references by name: of a surface? false: the module has none of this name */
bool vgpu_module_reference(const struct vgpu_module *m, const char *name, bool *surface);

/*
 * Parameters begin at byte 0x210 of a constant bank (sm_90). So one that is aligned to more than 16
 * bytes does not have the offset that it would have in a buffer, of which the driver knows nothing.
 */
#define VGPU_PARAMS_FROM	0x210

/* What occupancy and launches need to know of a kernel */
struct vgpu_kernel_info {
	const char *name;
	unsigned int n_params;
	size_t param_size;
	struct { size_t offset, size; } param[256];
	unsigned int n_references;	/* texture and surface references that it names */
	const char *reference[256];
	unsigned int regs;		/* per thread: max live 32-bit registers, at most 255, at
					 * least 16 */
	unsigned int static_shared, local_size, max_threads;
};
const struct vgpu_kernel_info *vgpu_kernel_info(const struct vgpu_kernel *k);

struct vgpu_launch {
	const struct vgpu_kernel *kernel;
	unsigned int grid[3], block[3];
	size_t dynamic_shared;
	const void *params;		/* param_size bytes, packed at the kernel's offsets; lives
					 * as long as its blocks */
	uint64_t params_at;		/* their generic address, beside VGPU_PARAMS_FROM and what
					 * the grid adds: below 2^39 */
	const uint64_t *references;	/* handles of objects (exec_tex.h), 0 none; lives as long as
					 * params */
	uint64_t grid_id;
	unsigned int nsmid;
	uint64_t seed;			/* not 0: warps and diverged threads take turns at random */
	uint64_t workspace;		/* a cooperative grid's, for its barriers: what %envreg1 and
					 * %envreg2 have; 0 none */
	struct vgpu_watch *watch;	/* for VGPU_CHECK_GRID: of all blocks that run at once; NULL
					 * none. Outlives them */
};

struct vgpu_watch *vgpu_watch_new(void);	/* NULL: out of memory */
void vgpu_watch_free(struct vgpu_watch *w);

/*
 * One resident block. @smid: what %smid reads. NULL: out of memory. Not thread-safe: one runner a
 * block at a time.
 */
struct vgpu_block *vgpu_block_new(const struct vgpu_launch *launch, const unsigned int ctaid[3],
				  unsigned int smid);
void vgpu_block_free(struct vgpu_block *b);

enum vgpu_result { VGPU_RUNNING, VGPU_DONE, VGPU_FAULT };
/*
 * Run about @steps thread-instructions (warp-wise: 32 a step of a full warp). VGPU_RUNNING: call
 * again. VGPU_FAULT: message in vgpu_block_error(): illegal address, unknown instruction, trap, or
 * a deadlock at a barrier with who waits where. *@done is what was executed.
 */
enum vgpu_result vgpu_block_run(struct vgpu_block *b, uint64_t steps, uint64_t *done);
const char *vgpu_block_error(const struct vgpu_block *b);
/* Of what kind it is */
enum vgpu_fault {
	VGPU_FAULT_NONE, VGPU_FAULT_LAUNCH, VGPU_FAULT_ADDRESS, VGPU_FAULT_MISALIGNED,
	VGPU_FAULT_INSTRUCTION, VGPU_FAULT_TRAP,
	VGPU_FAULT_ASSERT, VGPU_FAULT_DEADLOCK, VGPU_FAULT_SYNC, VGPU_FAULT_RACE,
};
enum vgpu_fault vgpu_block_fault(const struct vgpu_block *b);
/* Warps that have ended: a GPU gives their places away */
unsigned int vgpu_block_ended(const struct vgpu_block *b);

/* Bytes that malloc in kernels may give out at once, of all kernels of the process */
extern size_t vgpu_heap_limit;

/* %globaltimer: given by the scheduler so that tests can drive it */
extern uint64_t (*vgpu_globaltimer)(void);
/* Bounds of what a kernel may touch; NULL: anything. Returns false for an illegal access. */
extern bool (*vgpu_access_ok)(uint64_t addr, size_t size, bool write);
/* What is to be said of an illegal one: ", behind the ..."; NULL nothing */
extern void (*vgpu_access_why)(uint64_t addr, size_t size, char *buf, size_t n);

/*
 * What is checked beyond the faults that hardware has too (addresses, traps, deadlocks). Programs
 * get it by the environment variable VGPU_CHECK: "all", "none" or names with commas. A report is a
 * fault: it ends the launch, and names the kernel, the lines of the PTX, the threads and the block.
 *   sync lanes of one warp wait for one barrier at different instructions, .aligned or not, which
 *   hangs on hardware; or
 *           the guard of an .aligned one differs among them.
 *   race two threads of a block touch a place in shared memory, at least one by a plain write, and
 *   no barrier (of all
 *           threads, of some, of lanes), atomic after a fence, mbarrier or other release orders the
 *           two. Volatile, relaxed and atomic accesses make no race among themselves. Two writes of
 *           the same value are borne with.
 *   grid the same in global memory, among all threads of the blocks that share a struct vgpu_watch.
 *   memory allocations of the driver API lie apart, and freed ones are told for what they are.
 *   letter (not in "all") what PTX forbids and hardware bears: threads went past an .aligned
 *   barrier, or an instruction whose
 *           mask names them, while lanes of their warp wait there, in code that these will come to
 *           as well. Compilers make such code of early returns that share the end of the function
 *           with the others.
 * Beside it, $VGPU_SEED lets warps and lanes take turns at random, as launches with a seed do, and
 * $VGPU_SHUFFLE=1 starts the blocks of a grid in an order by the seed, which programs that wait for
 * lower blocks do not bear. Registers, local and shared memory hold garbage at first, always, which
 * follows from the launch's seed.
 */
enum {
	VGPU_CHECK_SYNC = 1 << 0, VGPU_CHECK_LETTER = 1 << 1, VGPU_CHECK_RACE = 1 << 2,
	VGPU_CHECK_GRID = 1 << 3, VGPU_CHECK_MEMORY = 1 << 4,
	VGPU_CHECK_ALL = VGPU_CHECK_SYNC | VGPU_CHECK_RACE | VGPU_CHECK_GRID | VGPU_CHECK_MEMORY,
};
extern unsigned int vgpu_checks;	/* of blocks made from now on */
bool vgpu_checks_parse(const char *text, unsigned int *checks);	/* false: an unknown name */

#endif /* VGPU_EXEC_H */
