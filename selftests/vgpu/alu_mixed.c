// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Arithmetic on mixed and packed floats: f32 with f16 or bf16 operands, pairs of f32; and
 * comparisons of halves.
 */
#include <fenv.h>
#include <math.h>
#include "exec_priv.h"

static const int host_mode[] = {
	[R_NONE] = FE_TONEAREST, [R_RN] = FE_TONEAREST, [R_RZ] = FE_TOWARDZERO,
	[R_RM] = FE_DOWNWARD, [R_RP] = FE_UPWARD,
};

static inline float flush(float v, bool ftz)
{
	return ftz && fabsf(v) < 0x1p-126f ? copysignf(0, v) : v;
}

static inline uint32_t finish(float v, unsigned int flags)
{
	v = flush(v, flags & F_FTZ);
	if (flags & F_SAT)
		v = v > 0 ? (v < 1 ? v : 1) : 0;
	return v != v ? 0x7fffffff : f32_bits(v);
}

static float calculate(unsigned int op, float a, float b, float c)
{
	switch (op) {
	case GSR_OP_ADD: return a + b;
	case GSR_OP_SUB: return a - b;
	case GSR_OP_MUL: return a * b;
	default: return fmaf(a, b, c);
	}
}

/* add.f32.f16 d, a, c: a alone is narrow; fma.f32.f16 d, a, b, c: a and b */
static enum xresult mixed(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	bool bf = in->type2 == T_BF16, wide_b = in->mode != GSR_OP_FMA;
	uint64_t *d = dst(x, in->o[0]);
	const uint64_t *A = src(x, in->o[1]), *B = src(x, in->o[2]), *C = src(x, in->o[3]);

	fesetround(host_mode[in->rnd]);
	for (; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);
		volatile float a = (float)half_to_f64((uint16_t)A[i], bf);
		volatile float b = wide_b ? as_f32(B[i]) : (float)half_to_f64((uint16_t)B[i], bf),
			c = as_f32(C[i]);
		volatile float r = calculate(in->mode, a, b, c);

		d[i] = finish(r, in->flags);
	}
	fesetround(FE_TONEAREST);
	return X_NEXT;
}

static enum xresult packed(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	bool ftz = in->flags & F_FTZ;
	uint64_t *d = dst(x, in->o[0]);
	const uint64_t *A = src(x, in->o[1]), *B = src(x, in->o[2]), *C = src(x, in->o[3]);

	fesetround(host_mode[in->rnd]);
	for (; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m), s;
		uint64_t v = 0;

		for (s = 0; s < 64; s += 32) {
			volatile float a = flush(as_f32(A[i] >> s), ftz),
				b = flush(as_f32(B[i] >> s), ftz);
			volatile float c = flush(as_f32(C[i] >> s), ftz),
				r = calculate(in->mode, a, b, c);

			v |= (uint64_t)finish(r, in->flags) << s;
		}
		d[i] = v;
	}
	fesetround(FE_TONEAREST);
	return X_NEXT;
}

static xfn *const handlers[] = { mixed, packed };

xfn *alu_mixed_select(enum gsr_opcode op, const struct xmods *md)
{
	bool fma = op == GSR_OP_FMA;

	if (md->rnd > R_RP)
		return NULL;
	if (md->t[0] == T_F32X2)
		return md->n_types == 1 && !(md->flags & ~(unsigned int)F_FTZ) &&
		       (!fma || md->rnd) ? handlers[1] : NULL;
	if (md->t[0] != T_F32 || md->n_types != 2 || (md->t[1] != T_F16 && md->t[1] != T_BF16) ||
	    op == GSR_OP_MUL)
		return NULL;
	return !(md->flags & ~(unsigned int)F_SAT) && (!fma || md->rnd) ? handlers[0] : NULL;
}

static bool holds(enum xcmp cmp, double a, double b)
{
	bool un = isnan(a) || isnan(b);

	switch (cmp) {
	case X_EQ: return a == b;
	case X_NE: return !un && a != b;
	case X_LT: return a < b;
	case X_LE: return a <= b;
	case X_GT: return a > b;
	case X_GE: return a >= b;
	case X_EQU: return un || a == b;
	case X_NEU: return un || a != b;
	case X_LTU: return un || a < b;
	case X_LEU: return un || a <= b;
	case X_GTU: return un || a > b;
	case X_GEU: return un || a >= b;
	case X_NUM: return !un;
	default: return un;
	}
}

static double half(const struct xinsn *in, uint64_t v, bool bf)
{
	double d = half_to_f64((uint16_t)v, bf);

	return (in->flags & F_FTZ) && fabs(d) < 0x1p-14 ? 0 : d;
}

static bool bool_op(unsigned int op, bool a, bool c)
{
	return op == A_AND ? a && c : op == A_OR ? a || c : op == A_XOR ? a != c : a;
}

/* Pairs of halves: the lower's answer in p[0], the upper's in p[1] */
enum xresult x_setp_x2(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	const uint64_t *A = src(x, in->o[1]), *B = src(x, in->o[2]);
	uint32_t c = in->op ? pred(x, in->p[2]) : 0, r[2] = { 0, 0 }, k;
	bool bf = in->type == T_BF16X2;

	for (k = m; k; k &= k - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(k), h;

		for (h = 0; h < 2; h++) {
			bool v = holds((enum xcmp)in->cmp, half(in, A[i] >> (16 * h), bf),
				       half(in, B[i] >> (16 * h), bf));

			r[h] |= (uint32_t)bool_op(in->op, v, c >> i & 1) << i;
		}
	}
	pred_set(x, in->p[0], m, r[0]);
	pred_set(x, in->p[1], m, r[1]);
	return X_NEXT;
}

/* set of and to halves: true is 1.0, or all ones */
enum xresult x_set_half(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	enum xtype to = (enum xtype)in->type, from = (enum xtype)in->type2;
	bool two = from == T_F16X2 || from == T_BF16X2, bf = from == T_BF16 || from == T_BF16X2;
	uint64_t yes = to == T_F16 || to == T_F16X2 ? 0x3c00 : to == T_BF16 ||
		       to == T_BF16X2 ? 0x3f80 :
		to == T_F32 ? f32_bits(1) : two || xtype_size(to) == 2 ? 0xffff : 0xffffffff;
	const uint64_t *A = src(x, in->o[1]), *B = src(x, in->o[2]);
	uint64_t *d = dst(x, in->o[0]);
	uint32_t c = in->op ? pred(x, in->p[2]) : 0;

	for (; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);
		bool lo = holds((enum xcmp)in->cmp, half(in, A[i], bf), half(in, B[i], bf));
		bool hi = two && holds((enum xcmp)in->cmp, half(in, A[i] >> 16, bf),
				       half(in, B[i] >> 16, bf));

		lo = bool_op(in->op, lo, c >> i & 1);
		hi = two && bool_op(in->op, hi, c >> i & 1);
		d[i] = (lo ? yes : 0) | (hi ? yes << 16 : 0);
	}
	return X_NEXT;
}
