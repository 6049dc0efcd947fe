// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Driver API: copies and sets. Each call exists for the legacy and for the per-thread default
 * stream; synchronous ones wait for their operation. Pageable host memory is staged on the way in
 * and waited for on the way out, as the driver does.
 */
#include <stdlib.h>
#include <string.h>
#include "vgpu.h"

/* What each end has to be */
enum end { ANY, HOST, DEVICE };

static bool end_ok(enum end end, uint64_t addr, size_t size)
{
	if (end == DEVICE)
		return vg_region_covers(addr, size);
	return addr != 0;
}

/* A call that is asynchronous waits without the context's lock, if it does: for pageable memory */
static CUresult finish(struct CUstream_st *s, struct vg_op *op, bool wait, bool sync)
{
	struct CUctx_st *ctx = s->ctx;
	CUresult r;

	if (!wait)
		return vg_leave(vg_push(s, op));
	if (!sync || !vg_holds(VG_HOLDER_MEMCPY))
		return vg_leave(vg_push_wait(s, op));
	vg_hold(ctx, true);
	r = vg_push_wait(s, op);
	vg_hold(ctx, false);
	return vg_leave(r);
}

static CUresult enter(CUstream stream, bool own, struct CUstream_st **s)
{
	struct CUctx_st *ctx;
	CUresult r = vg_enter_ctx(&ctx);

	if (!r && (r = vg_stream_get(stream, own, ctx, s)))
		vg_leave(r);
	return r;
}

/*
 * The host does not wait for what stays on its device, in synchronous calls either. Between devices
 * it does here: that is a way to order the copy with later work of both.
 */
static bool on_device(const struct CUstream_st *s, uint64_t addr)
{
	const struct vg_region *region = vg_region_find(addr);

	return region && region->kind == VG_MEM_DEVICE && region->gpu == s->ctx->gpu;
}

static CUresult copy(uint64_t dst, enum end dst_end, uint64_t src, enum end src_end, size_t size,
		     CUstream stream, bool own, bool wait)
{
	struct CUstream_st *s;
	struct vg_op *op;
	CUresult r = enter(stream, own, &s);
	const bool sync = wait;

	if (r)
		return r;
	if (!size)
		return vg_leave(CUDA_SUCCESS);
	if (!end_ok(dst_end, dst, size) || !end_ok(src_end, src, size))
		return vg_leave(CUDA_ERROR_INVALID_VALUE);
	op = vg_op_new(VG_OP_COPY);
	if (!op)
		return vg_leave(CUDA_ERROR_OUT_OF_MEMORY);
	op->copy.dst = (void *)(uintptr_t)dst;
	op->copy.src = (const void *)(uintptr_t)src;
	op->copy.size = size;
	if (on_device(s, dst) && on_device(s, src))
		wait = false;
	else if (!vg_region_covers(dst, size) && !s->capture)
		wait = true;
	if (!wait && !s->capture && !vg_region_covers(src, size)) {
		op->copy.staged = malloc(size);
		if (!op->copy.staged) {
			vg_op_free(op);
			return vg_leave(CUDA_ERROR_OUT_OF_MEMORY);
		}
		memcpy(op->copy.staged, op->copy.src, size);
	}
	return finish(s, op, wait, sync);
}

#define H(p) ((uint64_t)(uintptr_t)(p))

#define COPY(name, DST, dst_end, dst, SRC, src_end, src) \
	CUDADRV_API CUresult name##_v2(DST, SRC, size_t size) \
	{ \
		return copy(dst, dst_end, src, src_end, size, NULL, false, true); \
	} \
	CUDADRV_API CUresult name##_v2_ptds(DST, SRC, size_t size) \
	{ \
		return copy(dst, dst_end, src, src_end, size, NULL, true, true); \
	} \
	CUDADRV_API CUresult name##Async_v2(DST, SRC, size_t size, CUstream stream) \
	{ \
		return copy(dst, dst_end, src, src_end, size, stream, false, false); \
	} \
	CUDADRV_API CUresult name##Async_v2_ptsz(DST, SRC, size_t size, CUstream stream) \
	{ \
		return copy(dst, dst_end, src, src_end, size, stream, true, false); \
	}

COPY(cuMemcpyHtoD, CUdeviceptr d, DEVICE, d, const void *h, HOST, H(h))
COPY(cuMemcpyDtoH, void *h, HOST, H(h), CUdeviceptr d, DEVICE, d)
COPY(cuMemcpyDtoD, CUdeviceptr d, DEVICE, d, CUdeviceptr e, DEVICE, e)

CUDADRV_API CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t size)
{
	return copy(dst, ANY, src, ANY, size, NULL, false, true);
}

CUDADRV_API CUresult cuMemcpy_ptds(CUdeviceptr dst, CUdeviceptr src, size_t size)
{
	return copy(dst, ANY, src, ANY, size, NULL, true, true);
}

CUDADRV_API CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
	return copy(dst, ANY, src, ANY, size, stream, false, false);
}

CUDADRV_API CUresult cuMemcpyAsync_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t size,
					CUstream stream)
{
	return copy(dst, ANY, src, ANY, size, stream, true, false);
}

static CUresult copy_peer(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx,
			  size_t size, CUstream stream, bool own, bool wait)
{
	CUresult r = vg_enter();

	if (r)
		return r;
	if (!vg_handle_is(dst_ctx, VG_CONTEXT) || !vg_handle_is(src_ctx, VG_CONTEXT))
		return vg_leave(CUDA_ERROR_INVALID_CONTEXT);
	/* behind what either context has to do */
	if (wait)
		r = vg_wait_ctx(dst_ctx);
	if (wait && !r)
		r = vg_wait_ctx(src_ctx);
	vg_leave(r);
	return r ? r : copy(dst, DEVICE, src, DEVICE, size, stream, own, wait);
}

CUDADRV_API CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext dc, CUdeviceptr src, CUcontext sc,
				  size_t size)
{
	return copy_peer(dst, dc, src, sc, size, NULL, false, true);
}

CUDADRV_API CUresult cuMemcpyPeer_ptds(CUdeviceptr dst, CUcontext dc, CUdeviceptr src, CUcontext sc,
				       size_t size)
{
	return copy_peer(dst, dc, src, sc, size, NULL, true, true);
}

CUDADRV_API CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dc, CUdeviceptr src, CUcontext sc,
				       size_t size, CUstream stream)
{
	return copy_peer(dst, dc, src, sc, size, stream, false, false);
}

CUDADRV_API CUresult cuMemcpyPeerAsync_ptsz(CUdeviceptr dst, CUcontext dc, CUdeviceptr src,
					    CUcontext sc, size_t size, CUstream stream)
{
	return copy_peer(dst, dc, src, sc, size, stream, true, false);
}

/* Rows and planes. One side of a copy: where it begins, how far apart its rows and planes are */
struct side {
	CUmemorytype type;
	const void *host;
	CUdeviceptr device;
	size_t x, y, z, pitch, height;
	CUarray array;
};

static CUresult place(const struct side *p, size_t width, size_t rows, size_t planes, char **at,
		      size_t *pitch, size_t *plane)
{
	uint64_t base;
	size_t extent, rows_of_plane = p->height ? p->height : rows;

	if (p->type == CU_MEMORYTYPE_ARRAY)
		return vg_array_place(p->array, (const size_t[]){ p->x, p->y, p->z }, width, rows,
				      planes, at, pitch, plane);
	if (p->type != CU_MEMORYTYPE_HOST && p->type != CU_MEMORYTYPE_DEVICE &&
	    p->type != CU_MEMORYTYPE_UNIFIED)
		return CUDA_ERROR_INVALID_VALUE;
	*pitch = p->pitch ? p->pitch : width;
	if (*pitch < width + p->x || rows_of_plane < rows ||
	    __builtin_mul_overflow(*pitch, rows_of_plane, plane) ||
	    __builtin_mul_overflow(*plane, p->z + planes, &extent))
		return CUDA_ERROR_INVALID_VALUE;
	base = p->type == CU_MEMORYTYPE_HOST ? H(p->host) : p->device;
	if (!base)
		return CUDA_ERROR_INVALID_VALUE;
	base += p->z * *plane + p->y * *pitch + p->x;
	extent = (planes - 1) * *plane + (rows - 1) * *pitch + width;
	if (p->type == CU_MEMORYTYPE_DEVICE && !vg_region_covers(base, extent))
		return CUDA_ERROR_INVALID_VALUE;
	*at = (char *)(uintptr_t)base;
	return CUDA_SUCCESS;
}

static CUresult rows_new(const struct side *dst, const struct side *src, size_t width,
			 size_t height, size_t depth, struct vg_op **out)
{
	struct vg_op *op;
	char *from = NULL, *to = NULL;
	CUresult r;

	*out = NULL;
	if (!width || !height || !depth)
		return CUDA_SUCCESS;
	op = vg_op_new(VG_OP_COPY2D);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = place(dst, width, height, depth, &to, &op->copy2d.dst_pitch, &op->copy2d.dst_plane);
	if (!r)
		r = place(src, width, height, depth, &from, &op->copy2d.src_pitch,
			  &op->copy2d.src_plane);
	if (r) {
		vg_op_free(op);
		return r;
	}
	op->copy2d.dst = to;
	op->copy2d.src = from;
	op->copy2d.width = width;
	op->copy2d.height = height;
	op->copy2d.depth = depth;
	*out = op;
	return CUDA_SUCCESS;
}

static CUresult copy_rows(const struct side *dst, const struct side *src, size_t width,
			  size_t height, size_t depth, CUstream stream, bool own, bool wait)
{
	struct CUstream_st *s;
	struct vg_op *op;
	CUresult r = enter(stream, own, &s);
	const bool sync = wait;

	if (r)
		return r;
	r = rows_new(dst, src, width, height, depth, &op);
	if (r || !op)
		return vg_leave(r);
	/* pageable memory on either side: wait, which staging row by row would come to */
	if (!s->capture && (!vg_region_find(H(op->copy2d.dst)) ||
			    !vg_region_find(H(op->copy2d.src))))
		wait = true;
	return finish(s, op, wait, sync);
}

static CUresult copy2d(const CUDA_MEMCPY2D *c, CUstream stream, bool own, bool wait)
{
	struct side dst, src;

	if (!c)
		return CUDA_ERROR_INVALID_VALUE;
	dst = (struct side) { c->dstMemoryType, c->dstHost, c->dstDevice, c->dstXInBytes, c->dstY,
			      0, c->dstPitch, 0, c->dstArray };
	src = (struct side) { c->srcMemoryType, c->srcHost, c->srcDevice, c->srcXInBytes, c->srcY,
			      0, c->srcPitch, 0, c->srcArray };
	/* the plane of a 2-D copy is whatever it needs */
	dst.height = dst.y + c->Height;
	src.height = src.y + c->Height;
	return copy_rows(&dst, &src, c->WidthInBytes, c->Height, 1, stream, own, wait);
}

static void sides(const CUDA_MEMCPY3D *c, struct side *dst, struct side *src)
{
	*dst = (struct side) { c->dstMemoryType, c->dstHost, c->dstDevice, c->dstXInBytes, c->dstY,
			       c->dstZ, c->dstPitch,
			       c->dstHeight, c->dstArray };
	*src = (struct side) { c->srcMemoryType, c->srcHost, c->srcDevice, c->srcXInBytes, c->srcY,
			       c->srcZ, c->srcPitch,
			       c->srcHeight, c->srcArray };
}

CUresult vg_copy_new(const CUDA_MEMCPY3D *c, struct vg_op **out)
{
	struct side dst, src;

	sides(c, &dst, &src);
	return rows_new(&dst, &src, c->WidthInBytes, c->Height, c->Depth, out);
}

static CUresult copy3d(const CUDA_MEMCPY3D *c, CUstream stream, bool own, bool wait)
{
	struct side dst, src;

	if (!c)
		return CUDA_ERROR_INVALID_VALUE;
	sides(c, &dst, &src);
	return copy_rows(&dst, &src, c->WidthInBytes, c->Height, c->Depth, stream, own, wait);
}

#define ROWS(name, TYPE, call) \
	CUDADRV_API CUresult name(const TYPE *c) \
	{ \
		return call(c, NULL, false, true); \
	} \
	CUDADRV_API CUresult name##_ptds(const TYPE *c) \
	{ \
		return call(c, NULL, true, true); \
	}
#define ROWS_ASYNC(name, TYPE, call) \
	CUDADRV_API CUresult name(const TYPE *c, CUstream stream) \
	{ \
		return call(c, stream, false, false); \
	} \
	CUDADRV_API CUresult name##_ptsz(const TYPE *c, CUstream stream) \
	{ \
		return call(c, stream, true, false); \
	}

ROWS(cuMemcpy2D_v2, CUDA_MEMCPY2D, copy2d)
ROWS(cuMemcpy2DUnaligned_v2, CUDA_MEMCPY2D, copy2d)
ROWS(cuMemcpy3D_v2, CUDA_MEMCPY3D, copy3d)
ROWS_ASYNC(cuMemcpy2DAsync_v2, CUDA_MEMCPY2D, copy2d)
ROWS_ASYNC(cuMemcpy3DAsync_v2, CUDA_MEMCPY3D, copy3d)

/* Between contexts, of which the memory says enough */
static CUresult copy3d_peer(const CUDA_MEMCPY3D_PEER *c, CUstream stream, bool own, bool wait)
{
	CUDA_MEMCPY3D plain;
	CUresult r = c ? vg_enter() : CUDA_ERROR_INVALID_VALUE;

	_Static_assert(sizeof(plain) == sizeof(*c), "alike but for the contexts");
	if (r)
		return r;
	if (!vg_handle_is(c->dstContext, VG_CONTEXT) || !vg_handle_is(c->srcContext, VG_CONTEXT))
		return vg_leave(CUDA_ERROR_INVALID_CONTEXT);
	if (wait)
		r = vg_wait_ctx(c->dstContext);
	if (wait && !r)
		r = vg_wait_ctx(c->srcContext);
	vg_leave(r);
	memcpy(&plain, c, sizeof(plain));
	return r ? r : copy3d(&plain, stream, own, wait);
}

ROWS(cuMemcpy3DPeer, CUDA_MEMCPY3D_PEER, copy3d_peer)
ROWS_ASYNC(cuMemcpy3DPeerAsync, CUDA_MEMCPY3D_PEER, copy3d_peer)

/* Batches: one after the other, each in stream order */
static CUresult batch(CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t n, size_t *failed,
		      CUstream stream, bool own)
{
	CUresult r = to && from && sizes && n ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;

	for (size_t i = 0; i < n && !r; i++) {
		r = copy(to[i], ANY, from[i], ANY, sizes[i], stream, own, false);
		if (r && failed)
			*failed = i;
	}
	return r;
}

static bool side_of(const CUmemcpy3DOperand *o, struct side *side)
{
	if (o->type != CU_MEMCPY_OPERAND_TYPE_POINTER)
		return false;
	*side = (struct side) {
		.type = CU_MEMORYTYPE_UNIFIED, .device = o->op.ptr.ptr,
		.pitch = o->op.ptr.rowLength, .height = o->op.ptr.layerHeight,
	};
	return true;
}

static CUresult batch3d(CUDA_MEMCPY3D_BATCH_OP *ops, size_t n, size_t *failed, CUstream stream,
			bool own)
{
	CUresult r = ops && n ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	struct side dst, src;

	for (size_t i = 0; i < n && !r; i++) {
		const CUextent3D *e = &ops[i].extent;

		if (!side_of(&ops[i].dst, &dst) || !side_of(&ops[i].src, &src))
			r = vg_unsimulated("cuMemcpy3DBatchAsync of arrays");
		else
			r = copy_rows(&dst, &src, e->width, e->height, e->depth, stream, own,
				      false);
		if (r && failed)
			*failed = i;
	}
	return r;
}

#define BATCHES(own_, own) \
	CUDADRV_API CUresult cuMemcpyBatchAsync##own_(CUdeviceptr *to, CUdeviceptr *from, \
		size_t *sizes, size_t n, CUmemcpyAttributes *as, size_t *at, size_t n_as, \
		size_t *failed, CUstream stream) \
	{ \
		return batch(to, from, sizes, n, failed, stream, own); \
	} \
	CUDADRV_API CUresult cuMemcpyBatchAsync_v2##own_(CUdeviceptr *to, CUdeviceptr *from, \
		size_t *sizes, size_t n, CUmemcpyAttributes *as, size_t *at, size_t n_as, \
		CUstream stream) \
	{ \
		return batch(to, from, sizes, n, NULL, stream, own); \
	} \
	CUDADRV_API CUresult cuMemcpy3DBatchAsync##own_(size_t n, CUDA_MEMCPY3D_BATCH_OP *ops, \
		size_t *failed, unsigned long long flags, CUstream stream) \
	{ \
		return batch3d(ops, n, failed, stream, own); \
	} \
	CUDADRV_API CUresult cuMemcpy3DBatchAsync_v2##own_(size_t n, CUDA_MEMCPY3D_BATCH_OP *ops, \
		unsigned long long flags, CUstream stream) \
	{ \
		return batch3d(ops, n, NULL, stream, own); \
	}

BATCHES(, false)
BATCHES(_ptsz, true)

/* Sets: elementSize bytes each, width elements a row */
CUresult vg_set_new(const CUDA_MEMSET_NODE_PARAMS *p, struct vg_op **out)
{
	size_t row, extent;
	struct vg_op *op;

	*out = NULL;
	if (!p->width || !p->height)
		return CUDA_SUCCESS;
	if (__builtin_mul_overflow(p->width, (size_t)p->elementSize, &row) ||
	    (p->height > 1 && p->pitch < row) ||
	    __builtin_mul_overflow(p->height - 1, p->pitch, &extent) ||
	    __builtin_add_overflow(extent, row, &extent) || p->dst % p->elementSize ||
	    !vg_region_covers(p->dst, extent))
		return CUDA_ERROR_INVALID_VALUE;
	op = vg_op_new(VG_OP_SET);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	op->set.dst = (char *)(uintptr_t)p->dst;
	op->set.pitch = p->pitch;
	op->set.value = p->value;
	op->set.element = p->elementSize;
	op->set.width = p->width;
	op->set.height = p->height;
	*out = op;
	return CUDA_SUCCESS;
}

static CUresult set(CUdeviceptr dst, size_t pitch, uint32_t value, unsigned int element,
		    size_t width, size_t height, CUstream stream, bool own, bool wait)
{
	const CUDA_MEMSET_NODE_PARAMS p = { dst, pitch, value, element, width, height };
	struct CUstream_st *s;
	struct vg_op *op;
	CUresult r = enter(stream, own, &s);

	if (r)
		return r;
	r = vg_set_new(&p, &op);
	return r || !op ? vg_leave(r) : finish(s, op, wait && !on_device(s, dst), wait);
}

#define SET(bits, TYPE) \
	CUDADRV_API CUresult cuMemsetD##bits##_v2(CUdeviceptr d, TYPE v, size_t n) \
	{ \
		return set(d, 0, v, bits / 8, n, 1, NULL, false, true); \
	} \
	CUDADRV_API CUresult cuMemsetD##bits##_v2_ptds(CUdeviceptr d, TYPE v, size_t n) \
	{ \
		return set(d, 0, v, bits / 8, n, 1, NULL, true, true); \
	} \
	CUDADRV_API CUresult cuMemsetD##bits##Async(CUdeviceptr d, TYPE v, size_t n, \
						    CUstream stream) \
	{ \
		return set(d, 0, v, bits / 8, n, 1, stream, false, false); \
	} \
	CUDADRV_API CUresult cuMemsetD##bits##Async_ptsz(CUdeviceptr d, TYPE v, size_t n, \
							 CUstream stream) \
	{ \
		return set(d, 0, v, bits / 8, n, 1, stream, true, false); \
	} \
	CUDADRV_API CUresult cuMemsetD2D##bits##_v2(CUdeviceptr d, size_t pitch, TYPE v, \
						    size_t w, size_t h) \
	{ \
		return set(d, pitch, v, bits / 8, w, h, NULL, false, true); \
	} \
	CUDADRV_API CUresult cuMemsetD2D##bits##_v2_ptds(CUdeviceptr d, size_t pitch, TYPE v, \
							 size_t w, size_t h) \
	{ \
		return set(d, pitch, v, bits / 8, w, h, NULL, true, true); \
	} \
	CUDADRV_API CUresult cuMemsetD2D##bits##Async(CUdeviceptr d, size_t pitch, TYPE v, \
						      size_t w, size_t h, CUstream stream) \
	{ \
		return set(d, pitch, v, bits / 8, w, h, stream, false, false); \
	} \
	CUDADRV_API CUresult cuMemsetD2D##bits##Async_ptsz(CUdeviceptr d, size_t pitch, TYPE v, \
							   size_t w, size_t h, CUstream stream) \
	{ \
		return set(d, pitch, v, bits / 8, w, h, stream, true, false); \
	}

SET(8, unsigned char)
SET(16, unsigned short)
SET(32, unsigned int)
