// SPDX-License-Identifier: LGPL-2.1-or-later
/* Driver API: launches, with CUDA's own errors for what cannot run, and occupancy */
#include <stdlib.h>
#include <string.h>
#include "vgpu.h"

/* Registers are given out by the warp, in units of 256; shared memory in units of 128 bytes */
struct vg_need vg_function_need(const struct CUfunc_st *f, unsigned int threads, size_t dynamic)
{
	unsigned int warps = (threads + 31) / 32;
	struct vg_need need = {
		.threads = warps * 32,
		.regs = warps * ((f->info->regs * 32 + 255) & ~255u),
		.smem = (uint32_t)((f->info->static_shared + dynamic + 127) & ~(size_t)127),
	};

	need.carveout = vg_sched_carveout(&f->module->gpu->config, &need, f->carveout);
	return need;
}

static bool shape_ok(const struct vg_config *c, const unsigned int grid[3],
		     const unsigned int block[3])
{
	unsigned int max = c->sm_threads < 1024 ? c->sm_threads : 1024;
	uint64_t threads = (uint64_t)block[0] * block[1] * block[2];

	if (!grid[0] || !grid[1] || !grid[2] || grid[0] > 0x7fffffff || grid[1] > 65535 ||
	    grid[2] > 65535)
		return false;
	if (!threads || block[0] > 1024 || block[1] > 1024 || block[2] > 64 || threads > 1024)
		return false;
	if (threads > max) {
		vg_say("a block of %u threads is launched, this device takes %u: set "
		       "VGPU_SM_THREADS", (unsigned int)threads, max);
		return false;
	}
	return true;
}

/* The parameter buffer from either form of arguments */
static CUresult pack(const struct vgpu_kernel_info *info, void **params, void **extra, void **out)
{
	const void *buffer = NULL;
	size_t size = 0;
	char *p;

	for (; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
		if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
			buffer = extra[1];
		else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
			size = *(size_t *)extra[1];
		else
			return CUDA_ERROR_INVALID_VALUE;
	}
	if ((params && buffer) || (info->n_params && !params && !buffer))
		return CUDA_ERROR_INVALID_VALUE;
	/*
	 * as NVIDIA's driver has it, for a larger one too; what lies before the first parameter is
	 * not counted, but where that lies is not looked at, either (H200, driver 580)
	 */
	if (buffer && size != info->param_size - (info->n_params ? info->param[0].offset : 0))
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	p = calloc(1, info->param_size + 16);
	if (!p)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (buffer)
		memcpy(p, buffer, size);
	for (unsigned int i = 0; !buffer && i < info->n_params; i++) {
		if (!params[i]) {
			free(p);
			return CUDA_ERROR_INVALID_VALUE;
		}
		memcpy(p + info->param[i].offset, params[i], info->param[i].size);
	}
	*out = p;
	return CUDA_SUCCESS;
}

/*
 * The words of grid-wide barriers, one a cooperative launch by turns: more of them than launches
 * can be on their way. Each barrier leaves its word as it was, but for the highest bit.
 */
#define WORKSPACES	4096

static bool workspace(uint64_t *at)
{
	static struct { uint32_t size, barrier; } spaces[WORKSPACES];
	static unsigned int n;
	const struct vg_region region = { .base = (uintptr_t)spaces, .size = sizeof(spaces),
					  .kind = VG_MEM_GLOBAL };
	unsigned int i = n % WORKSPACES;

	if (!n && vg_region_add(&region))
		return false;
	n++;
	spaces[i].size = sizeof(spaces[i]);
	spaces[i].barrier = 0;
	*at = (uintptr_t)&spaces[i];
	return true;
}

bool vg_kernel_arm(struct vg_op *op)
{
	struct vgpu_launch *l = &op->kernel.launch;

	op->kernel.n_references = op->kernel.function->info->n_references;
	if (!vg_references_take(op->kernel.function, &op->kernel.references))
		return false;
	if (op->kernel.need.whole && !workspace(&l->workspace))
		return false;
	l->params = op->kernel.params;
	l->references = op->kernel.references;
	l->grid_id = ++vg.ids;
	l->seed = vg.seed ? vg.seed * 0x9e3779b97f4a7c15ull + l->grid_id : 0;
	if (vgpu_checks & VGPU_CHECK_GRID)
		l->watch = vgpu_watch_new();
	return l->watch || !(vgpu_checks & VGPU_CHECK_GRID);
}

CUresult vg_kernel_new(const void *handle, const CUDA_KERNEL_NODE_PARAMS *p, int priority,
		       bool cooperative, struct vg_op **out)
{
	const unsigned int grid[3] = { p->gridDimX, p->gridDimY, p->gridDimZ },
		b[3] = { p->blockDimX, p->blockDimY, p->blockDimZ };
	struct CUfunc_st *f;
	struct vg_need need;
	struct vg_op *op;
	int limit;
	CUresult r = vg_function_get(handle, &f);

	if (r)
		return r;
	if (!shape_ok(&f->module->gpu->config, grid, b) ||
	    p->sharedMemBytes > f->max_dynamic_shared)
		return CUDA_ERROR_INVALID_VALUE;
	limit = f->info->max_threads ? (int)f->info->max_threads : 1024;
	need = vg_function_need(f, b[0] * b[1] * b[2], p->sharedMemBytes);
	if (b[0] * b[1] * b[2] > (unsigned int)limit ||
	    !vg_sched_fit(&f->module->gpu->config, &need))
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	need.whole = cooperative;
	if (cooperative && (uint64_t)grid[0] * grid[1] * grid[2] >
	    (uint64_t)vg_sched_fit(&f->module->gpu->config, &need) * f->module->gpu->config.sms)
		return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
	op = vg_op_new(VG_OP_KERNEL);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = pack(f->info, p->kernelParams, p->extra, &op->kernel.params);
	if (r) {
		vg_op_free(op);
		return r;
	}
	op->kernel.function = f;
	op->kernel.function_id = f->id;
	op->kernel.need = need;
	op->kernel.entry = -1;
	op->kernel.priority = priority;
	op->kernel.launch = (struct vgpu_launch) {
		.kernel = f->kernel, .dynamic_shared = p->sharedMemBytes,
			.nsmid = f->module->gpu->config.sms,
	};
	memcpy(op->kernel.launch.grid, grid, sizeof(grid));
	memcpy(op->kernel.launch.block, b, sizeof(b));
	if (!vg_kernel_arm(op)) {
		vg_op_free(op);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*out = op;
	return CUDA_SUCCESS;
}

/* Programmatic dependent launches that came while a kernel was last in their stream, or else */
static unsigned int behind_kernel, behind_other;

CUresult vgpuDependents(unsigned int *kernel, unsigned int *other)
{
	CUresult r = vg_enter();

	*kernel = behind_kernel;
	*other = behind_other;
	return r ? r : vg_leave(CUDA_SUCCESS);
}

/* What a launch may have beside a kernel node's parameters */
struct options {
	const int *priority;
	bool dependent, cooperative;
};

static CUresult launch(const void *handle, const CUDA_KERNEL_NODE_PARAMS *p,
		       const struct options *o, CUstream stream, bool own)
{
	struct CUstream_st *s;
	struct CUctx_st *ctx;
	struct CUfunc_st *f;
	struct vg_op *op;
	CUresult r = vg_enter_ctx(&ctx);

	if (r)
		return r;
	vg_texobjects_reap();
	r = vg_function_get(handle, &f);
	if (!r)
		r = vg_function_load(f, VG_HOLDER_LAUNCH);
	if (!r)
		r = vg_stream_get(stream, own, ctx, &s);
	if (!r && (f->module->gpu != ctx->gpu || s->ctx->gpu != ctx->gpu))
		r = CUDA_ERROR_INVALID_HANDLE;
	if (!r)
		r = vg_kernel_new(handle, p, o->priority ? *o->priority : s->priority,
				  o->cooperative, &op);
	if (!r && o->dependent && s->tail) {
		behind_kernel += s->tail->kind == VG_OP_KERNEL;
		behind_other += s->tail->kind != VG_OP_KERNEL;
	}
	r = r ? r : vg_push(s, op);
	if (!r && vg_launches_block() && !s->capture)
		r = vg_wait_stream(s);
	return vg_leave(r);
}

static CUresult attributes(const CUlaunchConfig *c, struct options *o)
{
	for (unsigned int i = 0; i < c->numAttrs; i++) {
		const CUlaunchAttributeValue *v = &c->attrs[i].value;

		switch (c->attrs[i].id) {
		case CU_LAUNCH_ATTRIBUTE_PRIORITY:
			if (v->priority > VG_LEAST_PRIORITY || v->priority < VG_GREATEST_PRIORITY)
				return CUDA_ERROR_INVALID_VALUE;
			o->priority = &v->priority;
			break;
		case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
			o->cooperative = v->cooperative;
			break;
		case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
			if (v->clusterDim.x > 1 || v->clusterDim.y > 1 || v->clusterDim.z > 1)
				return vg_unsimulated("cuLaunchKernelEx with clusters");
			break;
		case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
			/* it need not be used */
			o->dependent = v->programmaticStreamSerializationAllowed;
			break;
		case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
		case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
			return vg_unsimulated("cuLaunchKernelEx with an event inside the kernel");
		default:	/* hints */
			break;
		}
	}
	return CUDA_SUCCESS;
}

static CUresult launch_ex(const CUlaunchConfig *c, const void *f, void **params,
			  void **extra, bool own)
{
	CUDA_KERNEL_NODE_PARAMS p;
	struct options o = { 0 };
	CUresult r;

	if (!c || (c->numAttrs && !c->attrs))
		return CUDA_ERROR_INVALID_VALUE;
	p = (CUDA_KERNEL_NODE_PARAMS) {
		.gridDimX = c->gridDimX, .gridDimY = c->gridDimY, .gridDimZ = c->gridDimZ,
			.blockDimX = c->blockDimX,
		.blockDimY = c->blockDimY, .blockDimZ = c->blockDimZ,
			.sharedMemBytes = c->sharedMemBytes,
		.kernelParams = params, .extra = extra,
	};
	r = attributes(c, &o);
	return r ? r : launch(f, &p, &o, c->hStream, own);
}

CUDADRV_API CUresult cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
				    unsigned int bx, unsigned int by, unsigned int bz,
				    unsigned int dynamic, CUstream stream, void **params,
				    void **extra)
{
	return launch(f, &(CUDA_KERNEL_NODE_PARAMS){ f, gx, gy, gz, bx, by, bz, dynamic, params,
						     extra, NULL, NULL },
		      &(struct options){ 0 }, stream, false);
}

CUDADRV_API CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned int gx, unsigned int gy,
					 unsigned int gz, unsigned int bx, unsigned int by,
					 unsigned int bz, unsigned int dynamic, CUstream stream,
					 void **params, void **extra)
{
	return launch(f, &(CUDA_KERNEL_NODE_PARAMS){ f, gx, gy, gz, bx, by, bz, dynamic, params,
						     extra, NULL, NULL },
		      &(struct options){ 0 }, stream, true);
}

CUDADRV_API CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **params,
				      void **extra)
{
	return launch_ex(config, f, params, extra, false);
}

CUDADRV_API CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction f,
					   void **params, void **extra)
{
	return launch_ex(config, f, params, extra, true);
}

CUDADRV_API CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gx, unsigned int gy,
					       unsigned int gz, unsigned int bx, unsigned int by,
					       unsigned int bz, unsigned int dynamic,
					       CUstream stream, void **params)
{
	return launch(f, &(CUDA_KERNEL_NODE_PARAMS){ f, gx, gy, gz, bx, by, bz, dynamic, params,
						     NULL, NULL, NULL },
		      &(struct options){ .cooperative = true }, stream, false);
}

CUDADRV_API CUresult cuLaunchCooperativeKernel_ptsz(CUfunction f, unsigned int gx, unsigned int gy,
						    unsigned int gz, unsigned int bx,
						    unsigned int by, unsigned int bz,
						    unsigned int dynamic, CUstream stream,
						    void **params)
{
	return launch(f, &(CUDA_KERNEL_NODE_PARAMS){ f, gx, gy, gz, bx, by, bz, dynamic, params,
						     NULL, NULL, NULL },
		      &(struct options){ .cooperative = true }, stream, true);
}

/* Occupancy */

static CUresult blocks_per_sm(const void *handle, int threads, size_t dynamic, int *out)
{
	struct CUfunc_st *f;
	struct vg_need need;
	CUresult r = vg_enter();

	if (r)
		return r;
	r = vg_function_get(handle, &f);
	if (r)
		return vg_leave(r);
	if (threads <= 0 || dynamic > UINT32_MAX / 2)
		return vg_leave(CUDA_ERROR_INVALID_VALUE);
	need = vg_function_need(f, (unsigned int)threads, dynamic);
	*out = threads > 1024 || (f->info->max_threads &&
				  (unsigned int)threads > f->info->max_threads) ? 0 :
	       (int)vg_sched_fit(&f->module->gpu->config, &need);
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *n, CUfunction f,
									  int threads,
									  size_t dynamic,
									  unsigned int flags)
{
	if (!n || (flags & ~(unsigned int)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE))
		return CUDA_ERROR_INVALID_VALUE;
	return blocks_per_sm(f, threads, dynamic, n);
}

CUDADRV_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, CUfunction f, int threads,
								 size_t dynamic)
{
	return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(n, f, threads, dynamic, 0);
}

static CUresult function_sms(const void *handle, int *sms)
{
	struct CUfunc_st *f;
	CUresult r = vg_enter();

	if (r)
		return r;
	r = vg_function_get(handle, &f);
	if (!r)
		*sms = (int)f->module->gpu->config.sms;
	return vg_leave(r);
}

CUDADRV_API CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *min_grid, int *size,
							       CUfunction f,
							       CUoccupancyB2DSize shared_of,
							       size_t dynamic, int limit,
							       unsigned int flags)
{
	int max = 0, best = 0, n = 0, sms = 0, threads;
	CUresult r;

	if (!min_grid || !size)
		return CUDA_ERROR_INVALID_VALUE;
	r = cuFuncGetAttribute(&max, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f);
	if (r)
		return r;
	if (limit > 0 && limit < max)
		max = limit;
	r = function_sms(f, &sms);
	if (r)
		return r;
	*size = 0;
	*min_grid = 0;
	for (threads = max; threads > 0; threads = (threads - 1) & ~31) {
		r = cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&n, f, threads,
									 shared_of ?
									 shared_of(threads) :
									 dynamic, flags);
		if (r)
			return r;
		if (n * threads <= best)
			continue;
		best = n * threads;
		*size = threads;
		*min_grid = n * sms;
	}
	return best ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUDADRV_API CUresult cuOccupancyMaxPotentialBlockSize(int *min_grid, int *size, CUfunction f,
						      CUoccupancyB2DSize shared_of,
						      size_t dynamic, int limit)
{
	return cuOccupancyMaxPotentialBlockSizeWithFlags(min_grid, size, f, shared_of,
							 dynamic, limit, 0);
}

CUDADRV_API CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *dynamic, CUfunction handle,
							     int blocks, int threads)
{
	struct CUfunc_st *f;
	size_t share;
	CUresult r = dynamic && blocks > 0 && threads > 0 ? vg_enter() : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	r = vg_function_get(handle, &f);
	if (r)
		return vg_leave(r);
	share = (f->module->gpu->config.sm_smem / (unsigned int)blocks) & ~(size_t)127;
	*dynamic = share > f->info->static_shared ? share - f->info->static_shared : 0;
	return vg_leave(CUDA_SUCCESS);
}
