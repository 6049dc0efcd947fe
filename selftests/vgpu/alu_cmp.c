// SPDX-License-Identifier: LGPL-2.1-or-later
/* Comparison and selection: setp, set, selp, slct, testp. */
#include <math.h>
#include "exec_priv.h"

static inline double flushed(const struct xinsn *in, uint64_t v)
{
	float f = as_f32(v);

	return (in->flags & F_FTZ) && fabsf(f) < 0x1p-126f ? 0 : f;
}

/* Lanes of @m whose operands compare as @cmp says */
#define INT_CMP(name, T) \
static uint32_t name(const uint64_t *A, const uint64_t *B, uint32_t m, unsigned int cmp) \
{ \
	uint32_t lt = 0, eq = 0; \
	if (m == FULL) { \
		for (unsigned int i = 0; i < LANES; i++) { \
			lt |= (uint32_t)((T)A[i] < (T)B[i]) << i; \
			eq |= (uint32_t)((T)A[i] == (T)B[i]) << i; \
		} \
	} else { \
		for (uint32_t k = m; k; k &= k - 1) { \
			unsigned int i = (unsigned int)__builtin_ctz(k); \
			lt |= (uint32_t)((T)A[i] < (T)B[i]) << i; \
			eq |= (uint32_t)((T)A[i] == (T)B[i]) << i; \
		} \
	} \
	switch (cmp) { \
	case X_EQ: return eq; \
	case X_NE: return ~eq; \
	case X_LT: return lt; \
	case X_LE: return lt | eq; \
	case X_GT: return ~(lt | eq); \
	default: return ~lt; \
	} \
}
INT_CMP(cmp_u16, uint16_t)
INT_CMP(cmp_u32, uint32_t)
INT_CMP(cmp_u64, uint64_t)
INT_CMP(cmp_s16, int16_t)
INT_CMP(cmp_s32, int32_t)
INT_CMP(cmp_s64, int64_t)

static uint32_t cmp_float(const struct xinsn *in, const uint64_t *A, const uint64_t *B, uint32_t m,
			  enum xtype t)
{
	uint32_t r = 0;

	for (; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);
		double a, b;
		bool v, un;

		if (t == T_F64) {
			a = as_f64(A[i]);
			b = as_f64(B[i]);
		} else if (t == T_F32) {
			a = flushed(in, A[i]);
			b = flushed(in, B[i]);
		} else {
			a = half_to_f64((uint16_t)A[i], t == T_BF16);
			b = half_to_f64((uint16_t)B[i], t == T_BF16);
		}
		un = isnan(a) || isnan(b);
		switch (in->cmp) {
		case X_EQ: v = a == b; break;
		case X_NE: v = !un && a != b; break;
		case X_LT: v = a < b; break;
		case X_LE: v = a <= b; break;
		case X_GT: v = a > b; break;
		case X_GE: v = a >= b; break;
		case X_EQU: v = un || a == b; break;
		case X_NEU: v = un || a != b; break;
		case X_LTU: v = un || a < b; break;
		case X_LEU: v = un || a <= b; break;
		case X_GTU: v = un || a > b; break;
		case X_GEU: v = un || a >= b; break;
		case X_NUM: v = !un; break;
		default: v = un;
		}
		r |= (uint32_t)v << i;
	}
	return r;
}

static uint32_t compare(const struct xinsn *in, const uint64_t *A, const uint64_t *B, uint32_t m,
			enum xtype t)
{
	switch (t) {
	case T_U16: case T_B16: return cmp_u16(A, B, m, in->cmp);
	case T_U32: case T_B32: return cmp_u32(A, B, m, in->cmp);
	case T_U64: case T_B64: return cmp_u64(A, B, m, in->cmp);
	case T_S16: return cmp_s16(A, B, m, in->cmp);
	case T_S32: return cmp_s32(A, B, m, in->cmp);
	case T_S64: return cmp_s64(A, B, m, in->cmp);
	default: return cmp_float(in, A, B, m, t);
	}
}

static uint32_t combine(unsigned int op, uint32_t a, uint32_t b)
{
	return op == A_AND ? a & b : op == A_OR ? a | b : a ^ b;
}

static enum xresult h_setp(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	uint32_t r = compare(in, src(x, in->o[1]), src(x, in->o[2]), m, (enum xtype)in->type),
		n = ~r;

	if (in->op) {
		uint32_t c = pred(x, in->p[2]);

		r = combine(in->op, r, c);
		n = combine(in->op, n, c);
	}
	pred_set(x, in->p[0], m, r);
	pred_set(x, in->p[1], m, n);
	return X_NEXT;
}

static enum xresult h_set(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	uint32_t r = compare(in, src(x, in->o[1]), src(x, in->o[2]), m, (enum xtype)in->type2);
	uint64_t yes = in->type == T_F32 ? f32_bits(1) : 0xffffffff;
	uint64_t *d = dst(x, in->o[0]);

	FOR_LANES(m, d[i] = r >> i & 1 ? yes : 0);
	return X_NEXT;
}

static enum xresult h_selp(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	uint32_t p = pred(x, in->p[0]);
	const uint64_t *A = src(x, in->o[1]), *B = src(x, in->o[2]);
	uint64_t *d = dst(x, in->o[0]);

	FOR_LANES(m, d[i] = p >> i & 1 ? A[i] : B[i]);
	return X_NEXT;
}

/* c >= 0 ? a : b; a NaN is not */
static enum xresult h_slct(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	const uint64_t *A = src(x, in->o[1]), *B = src(x, in->o[2]), *C = src(x, in->o[3]);
	uint64_t *d = dst(x, in->o[0]);

	if (in->type2 == T_F32)
		FOR_LANES(m, d[i] = flushed(in, C[i]) >= 0 ? A[i] : B[i]);
	else
		FOR_LANES(m, d[i] = (int32_t)C[i] >= 0 ? A[i] : B[i]);
	return X_NEXT;
}

static enum xresult h_testp(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	uint32_t r = 0, k;

	for (k = m; k; k &= k - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(k);
		uint64_t v = src(x, in->o[1])[i];
		int class = in->type == T_F64 ? fpclassify(as_f64(v)) : fpclassify(as_f32(v));
		bool t;

		switch (in->mode) {
		case 0: t = class != FP_NAN && class != FP_INFINITE; break;
		case 1: t = class == FP_INFINITE; break;
		case 2: t = class != FP_NAN; break;
		case 3: t = class == FP_NAN; break;
		case 4: t = class == FP_NORMAL; break;
		default: t = class == FP_SUBNORMAL;
		}
		r |= (uint32_t)t << i;
	}
	pred_set(x, in->p[0], m, r);
	return X_NEXT;
}

xfn *alu_cmp_select(enum gsr_opcode op, const struct xmods *md)
{
	enum xtype t = md->t[0], cmp = op == GSR_OP_SET ? md->t[1] : t;
	unsigned int size = xtype_size(t);
	bool is_float = cmp == T_F32 || cmp == T_F64 || cmp == T_F16 || cmp == T_BF16;
	bool is_bits = cmp == T_B16 || cmp == T_B32 || cmp == T_B64;

	if (op == GSR_OP_SETP || op == GSR_OP_SET) {
		if (!md->cmp || md->n_types != (op == GSR_OP_SET ? 2 : 1))
			return NULL;
		if (!is_float && md->cmp > (is_bits ? X_NE : X_GE))
			return NULL;
		if (!is_float && ((!xtype_int(cmp) && !is_bits) || xtype_size(cmp) < 2))
			return NULL;
		if (op == GSR_OP_SETP)
			return h_setp;
		return t == T_U32 || t == T_S32 || t == T_F32 ? h_set : NULL;
	}
	switch (op) {
	case GSR_OP_SELP: return md->n_types == 1 && size >= 2 && size <= 8 ? h_selp : NULL;
	case GSR_OP_SLCT:
		return md->n_types == 2 && size >= 2 && size <= 8 &&
		       (md->t[1] == T_S32 || md->t[1] == T_F32) ? h_slct : NULL;
	case GSR_OP_TESTP: return md->n_types == 1 && (t == T_F32 || t == T_F64) ? h_testp : NULL;
	default: return NULL;
	}
}
