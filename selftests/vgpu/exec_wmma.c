// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Matrices between memory and registers: wmma.load, wmma.store, ldmatrix, stmatrix; and movmatrix.
 */
#include "exec_mma.h"

static uint64_t address(const struct xctx *x, const struct xinsn *in, unsigned int lane)
{
	const uint64_t *row = src(x, in->o[0]);

	return (in->a32 ? (uint32_t)row[lane] : row[lane]) + (uint64_t)in->imm;
}

static enum mtype type_of(const struct xmma *mm)
{
	return mm->which == MAT_A ? mm->at : mm->which == MAT_B ? mm->bt : mm->which == MAT_C ?
	       mm->ct : mm->dt;
}

/* Where the @i-th element of a lane's fragment lies, in bits from the matrix */
static uint64_t bit_of(const struct xctx *x, const struct xmma *mm, unsigned int lane,
		       unsigned int i)
{
	bool by_col = mm->which == MAT_B ? !mm->b_row : mm->a_col;
	unsigned int rows = mm->which == MAT_B ? mm->k : mm->m, cols = mm->which == MAT_A ? mm->k :
			    mm->n, row, col;
	uint64_t stride = mm->stride == NO_OPND ? (by_col ? rows : cols) :
			  (uint32_t)src(x, mm->stride)[lane];

	mma_place(mm, mm->which, lane, i, &row, &col);
	return (by_col ? col * stride + row : row * stride + col) * mtype_bits(type_of(mm));
}

enum xresult x_wmma_load(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	const struct xmma *mm = in->ext;
	unsigned int bits = mtype_bits(type_of(mm)), per = bits == 64 ? 1 : 32 / bits, lane, r, j;
	size_t size = bits < 8 ? 1 : bits / 8;
	enum xresult res = mma_ready(x, in, m);

	for (lane = 0; res == X_NEXT && lane < LANES; lane++)
		for (r = 0; r < mm->regs[mm->which]; r++) {
			uint64_t v = 0;

			for (j = 0; j < per; j++) {
				uint64_t bit = bit_of(x, mm, lane, r * per + j), e = 0;
				const void *p = mem_ptr(x, in, (enum xspace)in->space, lane,
							address(x, in, lane) + bit / 8, size,
							size, false);

				if (!p)
					return X_FAULT;
				memcpy(&e, p, size);
				if (bits < 8)
					e = e >> bit % 8 & ((1u << bits) - 1);
				v |= e << (j * bits);
			}
			dst(x, mm->row[mm->first[mm->which] + r])[lane] = v;
		}
	return res;
}

enum xresult x_wmma_store(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	const struct xmma *mm = in->ext;
	unsigned int bits = mtype_bits(mm->dt), per = bits == 64 ? 1 : 32 / bits, lane, r, j;
	enum xresult res = mma_ready(x, in, m);

	for (lane = 0; res == X_NEXT && lane < LANES; lane++)
		for (r = 0; r < mm->regs[MAT_D]; r++)
			for (j = 0; j < per; j++) {
				uint64_t v = src(x, mm->row[mm->first[MAT_D] + r])[lane] >>
					(j * bits);
				void *p = mem_ptr(x, in, (enum xspace)in->space, lane,
						  address(x, in, lane) +
						  bit_of(x, mm, lane, r * per + j) / 8, bits / 8,
						  bits / 8, true);

				if (!p)
					return X_FAULT;
				memcpy(p, &v, bits / 8);
			}
	return res;
}

/* The rows of 8x8 matrices of 16 bits: lane i has the address of row i % 8 of matrix i / 8 */
static enum xresult rows(struct xctx *x, const struct xinsn *in, uint32_t m, bool store)
{
	uint16_t e[4][8][8], *p[LANES];
	const struct xrows *regs = in->ext;
	unsigned int lane, k;
	enum xresult res = mma_ready(x, in, m);

	if (res != X_NEXT)
		return res;
	for (lane = 0; lane < 8 * regs->n; lane++) {
		p[lane] = mem_ptr(x, in, in->space ? S_SHARED : S_NONE, lane, address(x, in, lane),
				  16, 16, store);
		if (!p[lane])
			return X_FAULT;
		if (!store)
			memcpy(e[lane / 8][lane % 8], p[lane], 16);
	}
	for (lane = 0; lane < LANES; lane++)
		for (k = 0; k < regs->n; k++) {
			unsigned int r = lane / 4, c = lane % 4 * 2;
			uint16_t *lo = in->mode ? &e[k][c][r] : &e[k][r][c],
				*hi = in->mode ? &e[k][c + 1][r] : &e[k][r][c + 1];

			if (store) {
				uint64_t v = src(x, regs->row[k])[lane];

				*lo = (uint16_t)v;
				*hi = (uint16_t)(v >> 16);
			} else {
				dst(x, regs->row[k])[lane] = *lo | (uint32_t)*hi << 16;
			}
		}
	for (lane = 0; store && lane < 8 * regs->n; lane++)
		memcpy(p[lane], e[lane / 8][lane % 8], 16);
	return X_NEXT;
}

enum xresult x_ldmatrix(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	return rows(x, in, m, false);
}

enum xresult x_stmatrix(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	return rows(x, in, m, true);
}

enum xresult x_movmatrix(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	uint16_t e[8][8];
	unsigned int lane;
	enum xresult res = mma_ready(x, in, m);

	if (res != X_NEXT)
		return res;
	for (lane = 0; lane < LANES; lane++) {
		uint64_t v = src(x, in->o[1])[lane];

		e[lane / 4][lane % 4 * 2] = (uint16_t)v;
		e[lane / 4][lane % 4 * 2 + 1] = (uint16_t)(v >> 16);
	}
	for (lane = 0; lane < LANES; lane++)
		dst(x, in->o[0])[lane] = e[lane % 4 * 2][lane / 4] |
					 (uint32_t)e[lane % 4 * 2 + 1][lane / 4] << 16;
	return X_NEXT;
}
