// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * wgmma: each warp of a warpgroup makes its 16 rows of D by itself, so the four need not meet here.
 * It is done when it is issued: fences, commits and waits have nothing left to do. A is in
 * registers, with the fragments of mma.m16n8k16, or in shared memory like B, where a descriptor
 * says how: both by k ("K-major") or transposed. Sums as in exec_mma.c.
 */
#include <math.h>
#include "exec_mma.h"

/* A matrix descriptor: where it begins, the two strides, the pattern of the banks */
struct smem {
	uint64_t start, leading, stride;
	unsigned int swizzle;		/* bytes: 0, 32, 64, 128 */
};

static struct smem described(uint64_t d)
{
	static const uint8_t spans[] = { 0, 128, 64, 32 };

	return (struct smem){ (d & 0x3fff) << 4, (d >> 16 & 0x3fff) << 4, (d >> 32 & 0x3fff) << 4,
			      spans[d >> 62] };
}

/*
 * The byte of element (@outer, @k): outer is the row of A or the column of B. In units of a core
 * matrix, 8 rows of 16 bytes: along the rows of a swizzle span the pattern repeats every 8 of them,
 * and the chunks of 16 bytes trade places by the row.
 */
static uint64_t place(const struct smem *s, unsigned int outer, unsigned int k,
		      unsigned int size, bool trans)
{
	unsigned int run = trans ? outer : k, line = trans ? k : outer;	/* contiguous, and across */
	uint64_t byte = (uint64_t)run * size, at;

	if (!s->swizzle) {
		/*
		 * 16 bytes by 8 lines each; leading: to the next along k, stride: to the next along
		 * the other side
		 */
		uint64_t along = byte / 16, across = line / 8;

		at = s->start + byte % 16 + line % 8 * 16 +
			(trans ? along * s->stride + across * s->leading :
			 along * s->leading + across * s->stride);
		return at;
	}
	/*
	 * lines of a span each; a span's neighbour along the run is leading bytes on, the next 8
	 * lines stride bytes
	 */
	at = s->start + byte % s->swizzle + (byte / s->swizzle) * s->leading +
	     line % 8 * s->swizzle + line / 8 * s->stride;
	return at ^ (at >> 3 & (s->swizzle - 16));
}

static bool element(struct xctx *x, const struct xinsn *in, const struct smem *s,
		    unsigned int outer, unsigned int k, enum mtype t, bool trans, uint64_t *v)
{
	unsigned int size = mtype_bits(t) / 8;
	const void *p = mem_ptr(x, in, S_SHARED, 0, place(s, outer, k, size, trans), size,
				size, false);

	*v = 0;
	if (p)
		memcpy(v, p, size);
	return p;
}

static bool load_a(struct xctx *x, const struct xinsn *in, const struct xwgmma *g, double (*a)[32])
{
	unsigned int per = 32 / mtype_bits(g->at), lane, r, j, row, k;
	struct smem s;
	uint64_t v;

	if (g->a_regs) {
		for (lane = 0; lane < LANES; lane++)
			for (r = 0; r < 4; r++)
				for (j = 0; j < per; j++) {
					v = src(x, g->a[r])[lane] >> (j * mtype_bits(g->at));
					a[lane / 4 + 8 * (r & 1)][(r >> 1) * 4 * per + lane % 4 *
								  per + j] = mtype_to_f64(v, g->at);
				}
		return true;
	}
	s = described(src(x, g->a[0])[0]);
	for (row = 0; row < 16; row++)
		for (k = 0; k < g->k; k++) {
			if (!element(x, in, &s, x->w->id % 4 * 16 + row, k, g->at, g->a_trans, &v))
				return false;
			a[row][k] = mtype_to_f64(v, g->at);
		}
	return true;
}

/* wgmma.fence, .commit_group, .wait_group */
enum xresult x_wgmma_order(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	return mma_ready(x, in, m);
}

enum xresult x_wgmma(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	const struct xwgmma *g = in->ext;
	double a[16][32], b[32], sum;
	unsigned int row, col, k;
	enum xresult r = mma_ready(x, in, m);
	bool add;
	struct smem s;
	uint64_t v;

	if (r != X_NEXT)
		return r;
	if (x->b->n_warps % 4)
		return exec_fault(x, in, "a block of %u warps has no whole warpgroups",
				  x->b->n_warps);
	add = pred(x, g->scale_d) & 1;
	if (src(x, g->b)[0] >> 49 & 7 || (!g->a_regs && src(x, g->a[0])[0] >> 49 & 7))
		return exec_fault(x, in, "matrix descriptor with a base offset: not simulated");
	if (!load_a(x, in, g, a))
		return X_FAULT;
	s = described(src(x, g->b)[0]);
	for (col = 0; col < g->n; col++) {
		for (k = 0; k < g->k; k++) {
			if (!element(x, in, &s, col, k, g->bt, g->b_trans, &v))
				return X_FAULT;
			b[k] = mtype_to_f64(v, g->bt) * g->scale_b;
		}
		for (row = 0; row < 16; row++) {
			unsigned int lane = row % 8 * 4 + col % 8 / 2,
				i = col / 8 * 4 + row / 8 * 2 + col % 2;
			bool half = g->dt == M_F16;
			uint64_t *d = dst(x, g->d[half ? i / 2 : i]) + lane;
			unsigned int shift = half ? i % 2 * 16 : 0;

			sum = add ? mtype_to_f64(*d >> shift, g->dt) : 0;
			for (k = 0; k < g->k; k++)
				sum = fma(a[row][k] * g->scale_a, b[k], sum);
			if (half)
				*d = (*d & ~(0xffffull << shift)) |
				     mtype_from_f64(sum, g->dt) << shift;
			else
				*d = mtype_from_f64(sum, g->dt);
		}
	}
	return X_NEXT;
}
