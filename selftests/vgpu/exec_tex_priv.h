/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VGPU_EXEC_TEX_PRIV_H
#define VGPU_EXEC_TEX_PRIV_H

#include "exec_priv.h"
#include "exec_tex.h"

enum query { Q_WIDTH, Q_HEIGHT, Q_DEPTH, Q_ARRAY_SIZE, Q_NORMALIZED, Q_LEVELS, Q_SAMPLES };
enum outside { OUT_TRAP, OUT_CLAMP, OUT_ZERO };

struct xtex {
	unsigned int dims;		/* 1, 2, 3 */
	bool layered, fp_coords;
	enum xtype type;		/* of the result, or of what is stored */
	unsigned int n;			/* elements of the result */
	unsigned int component;		/* tld4 */
	enum outside outside;		/* suld, sust, sured */
	enum xop op;			/* sured */
	enum query query;
	unsigned int reference;		/* which of the kernel's, + 1; 0: by handle */
	int32_t handle, coord[4], value[4];	/* coord[3]: the layer */
	int32_t resident;		/* predicate */
};

xfn x_tex, x_tld4, x_suld, x_sust, x_sured, x_txq, x_suq;

#endif /* VGPU_EXEC_TEX_PRIV_H */
