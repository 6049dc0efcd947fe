/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Matrices: what decode_mma.c makes of the instructions, for exec_mma.c, exec_wmma.c and
 * exec_wgmma.c.
 */
#ifndef VGPU_EXEC_MMA_H
#define VGPU_EXEC_MMA_H

#include "exec_priv.h"

enum mtype {
	M_NONE, M_F16, M_BF16, M_TF32, M_F32, M_F64, M_E4M3, M_E5M2,
	M_S32, M_S8, M_U8, M_S4, M_U4, M_B1,	/* from here integers */
};
unsigned int mtype_bits(enum mtype t);

double mtype_to_f64(uint64_t v, enum mtype t);
uint64_t mtype_from_f64(double v, enum mtype t);

enum mmatrix { MAT_A, MAT_B, MAT_C, MAT_D };

/* mma, wmma.mma; wmma.load and wmma.store use the one matrix they are for */
struct xmma {
	unsigned int m, n, k;
	enum mtype at, bt, ct, dt;
	bool a_col, b_row;		/* not as usual: A by columns, B by rows */
	bool wmma, quads, sat;
	enum xop bitop;			/* of b1: how bits are multiplied */
	enum mmatrix which;		/* wmma.load, wmma.store */
	int32_t stride;			/* row; NO_OPND: the matrix is packed */
	unsigned int regs[4], first[4];	/* of each matrix in row[] */
	int32_t row[40];
};

/* wgmma.mma_async of 64 rows */
struct xwgmma {
	unsigned int n, k;
	enum mtype at, bt, dt;
	bool a_regs, a_trans, b_trans;
	int scale_a, scale_b;		/* 1, -1 */
	int32_t scale_d;		/* predicate: add to what d has */
	int32_t a[4], b;		/* rows: fragments or a descriptor */
	int32_t d[128];
};

/* X_NEXT: all 32 lanes are here */
enum xresult mma_ready(struct xctx *x, const struct xinsn *in, uint32_t m);
void mma_place(const struct xmma *mm, enum mmatrix which, unsigned int lane, unsigned int i,
	       unsigned int *row, unsigned int *col);

xfn x_mma, x_wmma_load, x_wmma_store, x_ldmatrix, x_stmatrix, x_movmatrix, x_wgmma, x_wgmma_order;

#endif /* VGPU_EXEC_MMA_H */
