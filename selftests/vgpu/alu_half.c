// SPDX-License-Identifier: LGPL-2.1-or-later
/* f16 and bf16, single and in pairs. Computed in double so that every result is rounded once. */
#include <math.h>
#include "exec_priv.h"

double half_to_f64(uint16_t h, bool bf)
{
	int mant = bf ? 7 : 10, bias = bf ? 127 : 15, emax = bf ? 255 : 31;
	int e = (h & 0x7fff) >> mant;
	uint32_t f = h & ((1u << mant) - 1);
	double v;

	if (e == emax)
		v = f ? NAN : INFINITY;
	else
		v = ldexp(e ? f | 1u << mant : f, (e ? e : 1) - bias - mant);
	return h & 0x8000 ? -v : v;
}

uint16_t half_from_f64(double v, bool bf, enum xrnd rnd)
{
	int mant = bf ? 7 : 10, bias = bf ? 127 : 15, emax = bf ? 255 : 31;
	uint16_t sign = signbit(v) ? 0x8000 : 0, inf = (uint16_t)(emax << mant);
	double a = fabs(v), scaled, whole, rest;
	bool up = false;
	uint32_t bits;
	int e;

	if (v != v)
		return 0x7fff;
	if (isinf(v))
		return sign | inf;
	if (a == 0)
		return sign;
	frexp(a, &e);
	e -= 1;
	if (e < 1 - bias)
		e = 1 - bias;
	/* in units of the last place: exact, a power of two apart */
	scaled = ldexp(a, mant - e);
	whole = floor(scaled);
	rest = scaled - whole;
	bits = (uint32_t)(whole > 0x10000 ? 0x10000 : whole);
	switch (rnd) {
	case R_RZ: break;
	case R_RM: up = sign && rest > 0; break;
	case R_RP: up = !sign && rest > 0; break;
	case R_RNA: up = rest >= 0.5; break;
	default: up = rest > 0.5 || (rest == 0.5 && (bits & 1));
	}
	bits += up;
	/* a carry out of the mantissa raises the exponent by itself */
	if (bits >> mant)
		bits += (uint32_t)(e + bias - 1) << mant;
	if (bits >= inf) {
		bool to_inf = rnd == R_RM ? sign : rnd == R_RP ? !sign : rnd != R_RZ;

		return sign | (to_inf ? inf : inf - 1);
	}
	return sign | (uint16_t)bits;
}

/* a * b + c with the inexactness kept in the last bit, so that a later rounding is the only one */
static double fma_odd(double a, double b, double c)
{
	double p = a * b, s = p + c, t = s - p, err = (p - (s - t)) + (c - t);
	uint64_t u = f64_bits(s);

	if (err != 0 && isfinite(s) && !(u & 1))
		u += (err > 0) == (s > 0) ? 1 : -1ull;
	return as_f64(u);
}

static inline double flush(double v, bool bf, bool ftz)
{
	return ftz && fabs(v) < (bf ? 0x1p-126 : 0x1p-14) ? copysign(0, v) : v;
}

static uint16_t one(const struct xinsn *in, uint16_t a, uint16_t b, uint16_t c, bool bf)
{
	bool ftz = in->flags & F_FTZ;
	double p = flush(half_to_f64(a, bf), bf, ftz), q = flush(half_to_f64(b, bf), bf, ftz);
	double r = flush(half_to_f64(c, bf), bf, ftz), v;

	switch (in->op) {
	case 0: v = fma_odd(p, 1, q); break;
	case 1: v = fma_odd(p, 1, -q); break;
	case 2: v = p * q; break;
	case 3: v = fma_odd(p, q, r); break;
	case 4:
	case 5:
		a = in->op == 4 ? a & 0x7fff : a ^ 0x8000;
		return ftz && !(a & (bf ? 0x7f80 : 0x7c00)) ? a & 0x8000 : a;
	case 6:
	case 7:
		if (in->flags & F_ABS) {
			p = fabs(p);
			q = fabs(q);
		}
		if (p != p || q != q)
			v = in->flags & F_NAN ? NAN : p != p ? q : p;
		else if (p == q)
			v = !!signbit(p) == (in->op == 7) ? q : p;
		else
			v = (p < q) == (in->op == 7) ? q : p;
		if ((in->flags & F_XORSIGN) && v == v)
			v = (a ^ b) & 0x8000 ? -fabs(v) : fabs(v);
		break;
	case 8: v = exp2(p); break;
	default: v = tanh(p);
	}
	if (in->flags & F_SAT)
		v = v > 0 ? (v < 1 ? v : 1) : 0;
	if ((in->flags & F_RELU) && v < 0)
		v = 0;
	a = half_from_f64(v, bf, R_RN);
	return ftz && !(a & (bf ? 0x7f80 : 0x7c00)) ? a & 0x8000 : a;
}

#define HALF(name, number) \
static enum xresult name(struct xctx *x, const struct xinsn *in, uint32_t m) \
{ \
	bool bf = in->type == T_BF16 || in->type == T_BF16X2, two = in->type == T_F16X2 || \
		  in->type == T_BF16X2; \
	uint64_t *d = dst(x, in->o[0]); \
	const uint64_t *A = src(x, in->o[1]), *B = src(x, in->o[2]), *C = src(x, in->o[3]); \
	struct xinsn op = *in; \
	op.op = number; \
	for (; m; m &= m - 1) { \
		unsigned int i = (unsigned int)__builtin_ctz(m); \
		uint64_t a = A[i], b = B[i], c = C[i], \
			v = one(&op, (uint16_t)a, (uint16_t)b, (uint16_t)c, bf); \
		if (two) \
			v |= (uint64_t)one(&op, (uint16_t)(a >> 16), (uint16_t)(b >> 16), \
					   (uint16_t)(c >> 16), bf) << 16; \
		d[i] = v; \
	} \
	return X_NEXT; \
}
HALF(h_add, 0)
HALF(h_sub, 1)
HALF(h_mul, 2)
HALF(h_fma, 3)
HALF(h_abs, 4)
HALF(h_neg, 5)
HALF(h_min, 6)
HALF(h_max, 7)
HALF(h_ex2, 8)
HALF(h_tanh, 9)

xfn *alu_half_select(enum gsr_opcode op, const struct xmods *md)
{
	if (md->n_types != 1 || md->rnd > R_RN)
		return NULL;
	switch (op) {
	case GSR_OP_ADD: return h_add;
	case GSR_OP_SUB: return h_sub;
	case GSR_OP_MUL: return h_mul;
	case GSR_OP_FMA: return h_fma;
	case GSR_OP_ABS: return h_abs;
	case GSR_OP_NEG: return h_neg;
	case GSR_OP_MIN: return h_min;
	case GSR_OP_MAX: return h_max;
	case GSR_OP_EX2: return md->flags & F_APPROX || md->t[0] == T_BF16 || md->t[0] == T_BF16X2 ?
		h_ex2 : NULL;
	case GSR_OP_TANH: return md->flags & F_APPROX ? h_tanh : NULL;
	default: return NULL;
	}
}
