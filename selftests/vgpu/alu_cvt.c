// SPDX-License-Identifier: LGPL-2.1-or-later
/* cvt between every integer and floating-point type. */
#include <fenv.h>
#include <math.h>
#include "exec_priv.h"

static int64_t int_value(uint64_t v, enum xtype t)
{
	switch (t) {
	case T_U8: case T_B8: return (uint8_t)v;
	case T_U16: case T_B16: return (uint16_t)v;
	case T_U32: case T_B32: return (uint32_t)v;
	case T_S8: return (int8_t)v;
	case T_S16: return (int16_t)v;
	case T_S32: return (int32_t)v;
	default: return (int64_t)v;
	}
}

/*
 * The same value, held to the destination's bits: a wider register then has the extension PTX asks
 * for
 */
static uint64_t int_store(uint64_t v, enum xtype t)
{
	return (uint64_t)int_value(v, t);
}

static __int128 lowest(enum xtype t)
{
	return xtype_signed(t) ? -((__int128)1 << (xtype_size(t) * 8 - 1)) : 0;
}

static __int128 highest(enum xtype t)
{
	return ((__int128)1 << (xtype_size(t) * 8 - (xtype_signed(t) ? 1 : 0))) - 1;
}

static enum xresult int_to_int(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	enum xtype to = (enum xtype)in->type, from = (enum xtype)in->type2;
	uint64_t *d = dst(x, in->o[0]);
	const uint64_t *A = src(x, in->o[1]);

	for (; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);
		int64_t v = int_value(A[i], from);

		if (in->flags & F_SAT) {
			__int128 w = from == T_U64 ? (__int128)(uint64_t)v : v;

			w = w < lowest(to) ? lowest(to) : w > highest(to) ? highest(to) : w;
			v = (int64_t)w;
		}
		d[i] = int_store((uint64_t)v, to);
	}
	return X_NEXT;
}

/* The common ones, plain */
static enum xresult zext32(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	uint64_t *d = dst(x, in->o[0]);
	const uint64_t *A = src(x, in->o[1]);

	FOR_LANES(m, d[i] = (uint32_t)A[i]);
	return X_NEXT;
}

static enum xresult sext32(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	uint64_t *d = dst(x, in->o[0]);
	const uint64_t *A = src(x, in->o[1]);

	FOR_LANES(m, d[i] = (uint64_t)(int64_t)(int32_t)A[i]);
	return X_NEXT;
}

static double float_value(uint64_t v, enum xtype t, bool ftz)
{
	float f;

	switch (t) {
	case T_F64: return as_f64(v);
	case T_F16: return half_to_f64((uint16_t)v, false);
	case T_BF16: return half_to_f64((uint16_t)v, true);
	default:
		f = as_f32(v);
		return ftz && fabsf(f) < 0x1p-126f ? copysign(0, (double)f) : (double)f;
	}
}

static double to_integral(double v, enum xrnd r)
{
	switch (r) {
	case R_RZI: return trunc(v);
	case R_RMI: return floor(v);
	case R_RPI: return ceil(v);
	default: return nearbyint(v);
	}
}

static enum xresult float_to_int(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	enum xtype to = (enum xtype)in->type, from = (enum xtype)in->type2;
	double lo = (double)lowest(to), hi = (double)highest(to);
	uint64_t *d = dst(x, in->o[0]);
	const uint64_t *A = src(x, in->o[1]);

	for (; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);
		double v = to_integral(float_value(A[i], from, in->flags & F_FTZ),
				       (enum xrnd)in->rnd);
		uint64_t r;

		/* clamped to the destination's range; NaN is 0 */
		if (v != v)
			r = 0;
		else if (v <= lo)
			r = (uint64_t)lowest(to);
		else if (v >= hi)
			r = (uint64_t)highest(to);
		else
			r = v < 0 ? (uint64_t)(int64_t)v : (uint64_t)v;
		d[i] = int_store(r, to);
	}
	return X_NEXT;
}

static const int host_mode[] = {
	[R_NONE] = FE_TONEAREST, [R_RN] = FE_TONEAREST, [R_RZ] = FE_TOWARDZERO,
	[R_RM] = FE_DOWNWARD, [R_RP] = FE_UPWARD,
};

/* 64-bit integers do not fit a double: keep what is lost in the last bit */
static double int_odd(uint64_t v, bool is_signed)
{
	bool minus = is_signed && (int64_t)v < 0;
	uint64_t a = minus ? 0 - v : v;

	if (a >> 53) {
		unsigned int s = 11 - (unsigned int)__builtin_clzll(a);

		a = (a >> s | ((a & ((1ull << s) - 1)) != 0)) << s;
	}
	return minus ? -(double)a : (double)a;
}

static enum xresult int_to_float(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	enum xtype to = (enum xtype)in->type, from = (enum xtype)in->type2;
	uint64_t *d = dst(x, in->o[0]);
	const uint64_t *A = src(x, in->o[1]);

	if (in->rnd <= R_RP)
		fesetround(host_mode[in->rnd]);
	for (; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);
		int64_t v = int_value(A[i], from);
		bool u64 = from == T_U64;

		if (to == T_F64)
			d[i] = f64_bits(u64 ? (double)(uint64_t)v : (double)v);
		else if (to == T_F32)
			d[i] = f32_bits(u64 ? (float)(uint64_t)v : (float)v);
		else
			d[i] = half_from_f64(int_odd((uint64_t)v, !u64), to == T_BF16,
					     (enum xrnd)in->rnd);
		if (in->flags & F_SAT) {
			bool pos = u64 ? v != 0 : v > 0;

			d[i] = !pos ? 0 : to == T_F64 ? f64_bits(1) : to == T_F32 ? f32_bits(1) :
			       to == T_F16 ? 0x3c00 : 0x3f80;
		}
	}
	fesetround(FE_TONEAREST);
	return X_NEXT;
}

static uint64_t float_store(const struct xinsn *in, double v, enum xtype to)
{
	bool integral = in->rnd >= R_RNI;
	float f;

	if (integral)
		v = to_integral(v, (enum xrnd)in->rnd);
	if (in->flags & F_SAT)
		v = v > 0 ? (v < 1 ? v : 1) : 0;
	if ((in->flags & F_RELU) && v < 0)
		v = 0;
	if (in->flags & F_SATFINITE) {
		double max = to == T_TF32 ? 0x1.ffcp127 : to == T_F16 || to == T_F16X2 ?
			     65504 : 0x1.fep127;

		v = v > max ? max : v < -max ? -max : v;
	}
	switch (to) {
	case T_F64:
		return f64_bits(v);
	case T_F32:
		f = (float)v;
		if ((in->flags & F_FTZ) && fabsf(f) < 0x1p-126f)
			f = copysignf(0, f);
		return f != f ? 0x7fffffff : f32_bits(f);
	case T_TF32: {
		/* 10 bits of mantissa, ties away or to even */
		uint32_t u = f32_bits((float)v), lost;

		if (v != v)
			return 0x7fffffff;
		if (isinf(v))
			return u;
		lost = u & 0x1fff;
		u &= ~0x1fffu;
		if (in->rnd == R_RNA ? lost >= 0x1000 : in->rnd == R_RZ ? 0 : lost > 0x1000 ||
		    (lost == 0x1000 && u & 0x2000))
			u += 0x2000;
		return u;
	}
	default:
		return half_from_f64(v, to == T_BF16 || to == T_BF16X2,
				     integral ? R_RN : (enum xrnd)in->rnd);
	}
}

static enum xresult float_to_float(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	enum xtype to = (enum xtype)in->type, from = (enum xtype)in->type2;
	uint64_t *d = dst(x, in->o[0]);
	const uint64_t *A = src(x, in->o[1]);
	bool mode = in->rnd > R_RN && in->rnd <= R_RP && to == T_F32;

	if (mode)
		fesetround(host_mode[in->rnd]);
	for (; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);

		d[i] = float_store(in, float_value(A[i], from, in->flags & F_FTZ), to);
	}
	if (mode)
		fesetround(FE_TONEAREST);
	return X_NEXT;
}

/* cvt.rn.f16x2.f32 d, a, b: a is the upper half */
static enum xresult float_to_pair(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	enum xtype to = (enum xtype)in->type;
	uint64_t *d = dst(x, in->o[0]);
	const uint64_t *A = src(x, in->o[1]), *B = src(x, in->o[2]);

	for (; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);

		d[i] = float_store(in, float_value(A[i], T_F32, false), to) << 16 |
		       float_store(in, float_value(B[i], T_F32, false), to);
	}
	return X_NEXT;
}

xfn *alu_cvt_select(const struct xmods *md)
{
	enum xtype to = md->t[0], from = md->t[1];
	bool fi = xtype_int(from) || (from >= T_B8 && from <= T_B64), ti = xtype_int(to);
	bool ff = from == T_F16 || from == T_BF16 || from == T_F32 || from == T_F64;
	bool tf = to == T_F16 || to == T_BF16 || to == T_F32 || to == T_F64;

	if (md->n_types != 2)
		return NULL;
	/* only where f32 becomes narrower */
	if (md->flags & (F_RELU | F_SATFINITE) &&
	    (from != T_F32 || !(to == T_F16 || to == T_BF16 || to == T_F16X2 || to == T_BF16X2 ||
				to == T_TF32) || md->flags & (F_SAT | F_FTZ)))
		return NULL;
	if (to == T_F16X2 || to == T_BF16X2)
		return from == T_F32 && (md->rnd == R_RN || md->rnd == R_RZ) ? float_to_pair : NULL;
	if (to == T_TF32)
		return from == T_F32 && (md->rnd == R_RNA || md->rnd == R_RN || md->rnd == R_RZ) ?
		       float_to_float : NULL;
	if (fi && ti) {
		if (md->rnd || md->flags & ~(unsigned int)F_SAT)
			return NULL;
		if (!md->flags && (to == T_U32 ? xtype_size(from) >= 4 : xtype_size(to) == 8 &&
				   from == T_U32))
			return zext32;
		return !md->flags && to == T_S64 && from == T_S32 ? sext32 : int_to_int;
	}
	if (ff && ti)
		return md->rnd >= R_RNI ? float_to_int : NULL;
	if (fi && tf)
		return md->rnd >= R_RN && md->rnd <= R_RP ? int_to_float : NULL;
	if (ff && tf) {
		/* narrowing says how it rounds */
		if (xtype_size(to) < xtype_size(from) && !md->rnd)
			return NULL;
		return md->rnd != R_RNA ? float_to_float : NULL;
	}
	return NULL;
}
