// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Matrix multiply-accumulate of a warp: mma.sync with the fragments of the PTX ISA, wmma with
 * fragments of our own, as PTX leaves those open. What hardware leaves open we fix: products are
 * exact; f16, bf16, tf32 and f8 sums are kept in double, the accumulator first and then in the
 * order of k, and rounded once; f64 is a chain of fused multiply-adds.
 */
#include <math.h>
#include "exec_mma.h"

#define ELEMENTS	8192	/* 32 x 256 */

struct matrix {
	union {
		double f[ELEMENTS];
		int32_t i[ELEMENTS];
	};
};

static bool is_int(enum mtype t)
{
	return t >= M_S32;
}

unsigned int mtype_bits(enum mtype t)
{
	static const uint8_t bits[] = {
		[M_F16] = 16, [M_BF16] = 16, [M_TF32] = 32, [M_F32] = 32, [M_F64] = 64,
		[M_E4M3] = 8, [M_E5M2] = 8,
		[M_S32] = 32, [M_S8] = 8, [M_U8] = 8, [M_S4] = 4, [M_U4] = 4, [M_B1] = 1,
	};

	return t ? bits[t] : 32;
}

double mtype_to_f64(uint64_t v, enum mtype t)
{
	switch (t) {
	case M_F64: return as_f64(v);
	case M_F32: return as_f32(v);
	case M_TF32: return as_f32(v & ~0x1fffull);
	case M_F16:
	case M_BF16: return half_to_f64((uint16_t)v, t == M_BF16);
	default: return mini_to_f64((uint8_t)v, t == M_E4M3 ? &mini_e4m3 : &mini_e5m2);
	}
}

static int32_t to_int(uint64_t v, enum mtype t)
{
	switch (t) {
	case M_S8: return (int8_t)v;
	case M_U8: return (uint8_t)v;
	case M_S4: return (int32_t)((v & 15) ^ 8) - 8;
	case M_U4: return v & 15;
	case M_B1: return v & 1;
	default: return (int32_t)v;
	}
}

uint64_t mtype_from_f64(double v, enum mtype t)
{
	float f;

	switch (t) {
	case M_F64: return f64_bits(v);
	case M_F16: return half_from_f64(v, false, R_RN);
	case M_BF16: return half_from_f64(v, true, R_RN);
	default:
		f = (float)v;
		return f != f ? 0x7fffffff : f32_bits(f);
	}
}

/* Elements in a register */
static unsigned int per_reg(enum mtype t)
{
	return mtype_bits(t) == 64 ? 1 : 32 / mtype_bits(t);
}

/* mma.m8n8k4 of f16: four products, each of a quad and the quad 16 lanes on */
static void place_884(const struct xmma *mm, enum mmatrix which, unsigned int lane, unsigned int i,
		      unsigned int *row, unsigned int *col)
{
	unsigned int high = lane < 16 ? 0 : 4, q = lane % 4;

	if (which == MAT_A) {
		*row = (mm->a_col ? i : q) + high;
		*col = mm->a_col ? q : i;
	} else if (which == MAT_B) {
		*row = mm->b_row ? q : i;
		*col = (mm->b_row ? i : q) + high;
	} else if ((which == MAT_C ? mm->ct : mm->dt) == M_F16) {
		*row = q + high;
		*col = i;
	} else {
		*row = (lane & 1) + (i & 2) + high;
		*col = (i & 4) + (lane & 2) + (i & 1);
	}
}

/* Which element of its matrix is the @i-th of a lane's fragment? */
static void place(const struct xmma *mm, enum mmatrix which, unsigned int lane, unsigned int i,
		  unsigned int *row, unsigned int *col)
{
	unsigned int g = lane >> 2, t = lane & 3, per, r, linear, each, width;

	if (mm->wmma) {
		width = which == MAT_A ? mm->k : mm->n;
		each = (which == MAT_A ? mm->m * mm->k : which == MAT_B ? mm->k * mm->n :
			mm->m * mm->n) / LANES;
		/* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): no shape has a side of 0 */
		linear = lane * each + i % each;
		*row = linear / width;
		*col = linear % width;
		return;
	}
	if (mm->quads) {
		place_884(mm, which, lane, i, row, col);
		return;
	}
	if (which >= MAT_C) {
		*row = g + 8 * (i >> 1);
		*col = 2 * t + (i & 1);
		return;
	}
	per = per_reg(which == MAT_A ? mm->at : mm->bt);
	r = i / per;
	i = i % per + t * per;
	if (which == MAT_B) {
		*row = r * 4 * per + i;
		*col = g;
	} else if (mm->m == 8) {
		*row = g;
		*col = i;
	} else {
		*row = g + 8 * (r & 1);
		*col = (r >> 1) * 4 * per + i;
	}
}

void mma_place(const struct xmma *mm, enum mmatrix which, unsigned int lane, unsigned int i,
	       unsigned int *row, unsigned int *col)
{
	place(mm, which, lane, i, row, col);
}

static enum mtype type_of(const struct xmma *mm, enum mmatrix which)
{
	return which == MAT_A ? mm->at : which == MAT_B ? mm->bt : which == MAT_C ? mm->ct : mm->dt;
}

static unsigned int width_of(const struct xmma *mm, enum mmatrix which)
{
	return which == MAT_A ? mm->k : mm->n;
}

/* Of the lanes of @lanes, into @to */
static void collect(const struct xctx *x, const struct xmma *mm, enum mmatrix which, uint32_t lanes,
		    struct matrix *to)
{
	enum mtype t = type_of(mm, which);
	unsigned int bits = mtype_bits(t), per = per_reg(t), width = width_of(mm, which), r,
		j, row, col;

	for (; lanes; lanes &= lanes - 1) {
		unsigned int lane = (unsigned int)__builtin_ctz(lanes);

		for (r = 0; r < mm->regs[which]; r++) {
			uint64_t v = src(x, mm->row[mm->first[which] + r])[lane];

			for (j = 0; j < per; j++) {
				place(mm, which, lane, r * per + j, &row, &col);
				if (is_int(t))
					to->i[row * width + col] = to_int(v >> (j * bits), t);
				else
					to->f[row * width + col] = mtype_to_f64(v >> (j * bits), t);
			}
		}
	}
}

static void hand_out(struct xctx *x, const struct xmma *mm, uint32_t lanes,
		     const struct matrix *from)
{
	enum mtype t = mm->dt;
	unsigned int bits = mtype_bits(t), per = per_reg(t), r, j, row, col;

	for (; lanes; lanes &= lanes - 1) {
		unsigned int lane = (unsigned int)__builtin_ctz(lanes);

		for (r = 0; r < mm->regs[MAT_D]; r++) {
			uint64_t v = 0;

			for (j = 0; j < per; j++) {
				place(mm, MAT_D, lane, r * per + j, &row, &col);
				v |= (is_int(t) ? (uint32_t)from->i[row * mm->n + col] :
				      mtype_from_f64(from->f[row * mm->n + col], t)) << (j * bits);
			}
			dst(x, mm->row[mm->first[MAT_D] + r])[lane] = v;
		}
	}
}

static int64_t dot_int(const struct xmma *mm, const struct matrix *a, const struct matrix *b,
		       unsigned int row, unsigned int col, int64_t sum)
{
	unsigned int k;

	for (k = 0; k < mm->k; k++) {
		int32_t p = a->i[row * mm->k + k], q = b->i[k * mm->n + col];

		sum += mm->bitop == A_XOR ? p ^ q : mm->bitop == A_AND ? p & q : (int64_t)p * q;
	}
	if (mm->sat)
		sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
	return sum;
}

static double dot(const struct xmma *mm, const struct matrix *a, const struct matrix *b,
		  unsigned int row, unsigned int col, double sum)
{
	unsigned int k;

	for (k = 0; k < mm->k; k++)
		sum = fma(a->f[row * mm->k + k], b->f[k * mm->n + col], sum);
	return sum;
}

static void multiply(const struct xmma *mm, const struct matrix *a, const struct matrix *b,
		     struct matrix *c)
{
	unsigned int row, col;

	for (row = 0; row < mm->m; row++)
		for (col = 0; col < mm->n; col++) {
			unsigned int at = row * mm->n + col;

			if (is_int(mm->dt))
				c->i[at] = (int32_t)(uint32_t)dot_int(mm, a, b, row, col, c->i[at]);
			else
				c->f[at] = dot(mm, a, b, row, col, c->f[at]);
		}
}

/* An instruction of the whole warp: no lane may be missing */
enum xresult mma_ready(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	if (!sync_gather(x, in, m))
		return X_RESCHED;
	return m == FULL ? X_NEXT : exec_fault(x, in, "lanes 0x%x of warp %u are not there",
					       ~m, x->w->id);
}

enum xresult x_mma(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	const struct xmma *mm = in->ext;
	struct matrix a, b, c;
	unsigned int q;
	enum xresult r = mma_ready(x, in, m);

	if (r != X_NEXT)
		return r;
	for (q = 0; q < (mm->quads ? 4 : 1); q++) {
		uint32_t lanes = mm->quads ? 0x000f000fu << (4 * q) : FULL;

		collect(x, mm, MAT_A, lanes, &a);
		collect(x, mm, MAT_B, lanes, &b);
		collect(x, mm, MAT_C, lanes, &c);
		multiply(mm, &a, &b, &c);
		hand_out(x, mm, lanes, &c);
	}
	return X_NEXT;
}
