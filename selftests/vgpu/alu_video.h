/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VGPU_ALU_VIDEO_H
#define VGPU_ALU_VIDEO_H

#include "exec_priv.h"

enum vop { VO_ADD, VO_SUB, VO_ABSDIFF, VO_MIN, VO_MAX, VO_SHL, VO_SHR, VO_SET, VO_AVRG, VO_MAD };

/* A part of a 32-bit word: bits from @at; 32 bits from 0 the whole */
struct xpart {
	uint8_t at, bits;
};

struct xvideo {
	enum vop op;
	enum xcmp cmp;
	enum xop second;		/* of the result and c: A_ADD, A_MIN, A_MAX, A_NONE */
	bool dsigned, asigned, bsigned, sat, wrap;
	struct xpart d, a, b;		/* scalar: d of 32 bits: no merge */
	bool minus_ab, minus_c, plus_one;	/* vmad */
	uint8_t shift;
	uint8_t lanes;			/* 2, 4: SIMD */
	uint8_t mask, asel[4], bsel[4];	/* SIMD: results that count; where elements come from in
					 * b:a */
};

xfn x_video;

#endif /* VGPU_ALU_VIDEO_H */
