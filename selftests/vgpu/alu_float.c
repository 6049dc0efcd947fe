// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * f32 and f64. Round to nearest without flush or saturation is plain C; the rest sets the host's
 * rounding mode around a loop whose operands come from memory, so no arithmetic can leave it. f32
 * results that are NaN are the canonical one. The approximate instructions are libm's correctly or
 * almost correctly rounded functions: closer than hardware, not equal to it bit by bit.
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

static inline uint32_t out32(float v)
{
	return v != v ? 0x7fffffff : f32_bits(v);
}

static inline uint32_t finish32(float v, unsigned int flags)
{
	v = flush(v, flags & F_FTZ);
	if (flags & F_SAT)
		v = v > 0 ? (v < 1 ? v : 1) : 0;	/* NaN becomes 0 */
	return out32(v);
}

static inline uint64_t finish64(double v, unsigned int flags)
{
	return f64_bits(v);
}

#define PTRS \
	uint64_t *d = dst(x, in->o[0]); \
	const uint64_t *A = src(x, in->o[1]), *B = src(x, in->o[2]), *C = src(x, in->o[3])

/* p, q, r are the operands */
#define FAST32(name, e) \
static enum xresult name(struct xctx *x, const struct xinsn *in, uint32_t m) \
{ \
	PTRS; \
	FOR_LANES(m, float p = as_f32(A[i]); float q = as_f32(B[i]); float r = as_f32(C[i]); \
		  (void)p; (void)q; (void)r; d[i] = out32(e)); \
	return X_NEXT; \
}
#define SLOW32(name, e) \
static enum xresult name(struct xctx *x, const struct xinsn *in, uint32_t m) \
{ \
	bool ftz = in->flags & F_FTZ, mode = in->rnd > R_RN; \
	PTRS; \
	if (mode) \
		fesetround(host_mode[in->rnd]); \
	for (; m; m &= m - 1) { \
		unsigned int i = (unsigned int)__builtin_ctz(m); \
		float p = flush(as_f32(A[i]), ftz); \
		float q = flush(as_f32(B[i]), ftz); \
		float r = flush(as_f32(C[i]), ftz); \
		(void)p; (void)q; (void)r; \
		d[i] = finish32((e), in->flags); \
	} \
	if (mode) \
		fesetround(FE_TONEAREST); \
	return X_NEXT; \
}
#define FAST64(name, e) \
static enum xresult name(struct xctx *x, const struct xinsn *in, uint32_t m) \
{ \
	PTRS; \
	FOR_LANES(m, double p = as_f64(A[i]); double q = as_f64(B[i]); double r = as_f64(C[i]); \
		  (void)p; (void)q; (void)r; d[i] = f64_bits(e)); \
	return X_NEXT; \
}
#define SLOW64(name, e) \
static enum xresult name(struct xctx *x, const struct xinsn *in, uint32_t m) \
{ \
	PTRS; \
	fesetround(host_mode[in->rnd]); \
	for (; m; m &= m - 1) { \
		unsigned int i = (unsigned int)__builtin_ctz(m); \
		double p = as_f64(A[i]); \
		double q = as_f64(B[i]); \
		double r = as_f64(C[i]); \
		(void)p; (void)q; (void)r; \
		d[i] = f64_bits(e); \
	} \
	fesetround(FE_TONEAREST); \
	return X_NEXT; \
}
#define ALL(name, e, e64) FAST32(name##_fast32, e) SLOW32(name##_slow32, \
							  e) FAST64(name##_fast64, \
								    e64) SLOW64(name##_slow64, e64)
#define PICK(name) { name##_fast32, name##_slow32, name##_fast64, name##_slow64 }

ALL(add, p + q, p + q)
ALL(sub, p - q, p - q)
ALL(mul, p * q, p * q)
ALL(fma, fmaf(p, q, r), fma(p, q, r))
ALL(div, p / q, p / q)
/* div.approx.f32 multiplies with the reciprocal, which is 0 above 2^126 */
static inline float div_approx(float p, float q)
{
	return fabsf(q) > 0x1p126f && isfinite(q) ? p * copysignf(0, q) : p / q;
}
SLOW32(div_approx32, div_approx(p, q))
ALL(rcp, 1 / p, 1 / p)
ALL(sqrt, sqrtf(p), sqrt(p))

SLOW32(rsqrt_32, (float)(1 / sqrt((double)p)))
SLOW64(rsqrt_64, 1 / sqrt(p))
SLOW32(sin_32, sinf(p))
SLOW32(cos_32, cosf(p))
SLOW32(lg2_32, log2f(p))
SLOW32(ex2_32, exp2f(p))
SLOW32(tanh_32, tanhf(p))
/* rcp.approx.ftz.f64, rsqrt.approx.ftz.f64: the upper word only, as hardware gives */
static inline double upper(double v)
{
	uint64_t u = f64_bits(v);

	if ((u & 0x7ff0000000000000) == 0)
		return as_f64(u & 0x8000000000000000);
	return v != v ? as_f64(0x7fffffff00000000) : as_f64(u & 0xffffffff00000000);
}
SLOW64(rcp_approx64, upper(1 / upper(p)))
SLOW64(rsqrt_approx64, upper(1 / sqrt(upper(p))))

/* Sign operations leave NaNs alone */
static enum xresult abs_32(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	uint64_t *d = dst(x, in->o[0]);
	const uint64_t *A = src(x, in->o[1]);

	FOR_LANES(m, d[i] = f32_bits(flush(as_f32(A[i] & 0x7fffffff), in->flags & F_FTZ)));
	return X_NEXT;
}

static enum xresult neg_32(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	uint64_t *d = dst(x, in->o[0]);
	const uint64_t *A = src(x, in->o[1]);

	FOR_LANES(m, d[i] = f32_bits(flush(as_f32(A[i] ^ 0x80000000), in->flags & F_FTZ)));
	return X_NEXT;
}

static enum xresult abs_64(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	uint64_t *d = dst(x, in->o[0]);
	const uint64_t *A = src(x, in->o[1]);

	FOR_LANES(m, d[i] = A[i] & 0x7fffffffffffffff);
	return X_NEXT;
}

static enum xresult neg_64(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	uint64_t *d = dst(x, in->o[0]);
	const uint64_t *A = src(x, in->o[1]);

	FOR_LANES(m, d[i] = A[i] ^ 0x8000000000000000);
	return X_NEXT;
}

/* copysign d, a, b: the sign of a, the rest of b */
static enum xresult copysign_32(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	uint64_t *d = dst(x, in->o[0]);
	const uint64_t *A = src(x, in->o[1]), *B = src(x, in->o[2]);

	FOR_LANES(m, d[i] = (A[i] & 0x80000000) | (B[i] & 0x7fffffff));
	return X_NEXT;
}

static enum xresult copysign_64(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	uint64_t *d = dst(x, in->o[0]);
	const uint64_t *A = src(x, in->o[1]), *B = src(x, in->o[2]);

	FOR_LANES(m, d[i] = (A[i] & 0x8000000000000000) | (B[i] & 0x7fffffffffffffff));
	return X_NEXT;
}

/* One NaN gives the other operand, unless .NaN; -0 is below +0 */
#define MINMAX(name, T, fabs_, is_max) \
static inline T name(T p, T q, unsigned int flags) \
{ \
	bool sign = signbit(p) != signbit(q); \
	T r; \
	if (flags & F_ABS) { \
		p = fabs_(p); \
		q = fabs_(q); \
	} \
	if (p != p || q != q) \
		r = flags & F_NAN ? (T)NAN : p != p ? q : p; \
	else if (p == q) \
		r = !!signbit(p) == (is_max) ? q : p; \
	else \
		r = (p < q) == (is_max) ? q : p; \
	if ((flags & F_XORSIGN) && r == r) \
		r = sign ? -fabs_(r) : fabs_(r); \
	return r; \
}
MINMAX(min32, float, fabsf, 0)
MINMAX(max32, float, fabsf, 1)
MINMAX(min64, double, fabs, 0)
MINMAX(max64, double, fabs, 1)
/* of two or three */
SLOW32(min_32, in->n == 3 ? min32(min32(p, q, in->flags), r, in->flags) : min32(p, q, in->flags))
SLOW32(max_32, in->n == 3 ? max32(max32(p, q, in->flags), r, in->flags) : max32(p, q, in->flags))
FAST64(min_64, min64(p, q, in->flags))
FAST64(max_64, max64(p, q, in->flags))

static xfn *unary_approx(enum gsr_opcode op)
{
	switch (op) {
	case GSR_OP_RSQRT: return rsqrt_32;
	case GSR_OP_SIN: return sin_32;
	case GSR_OP_COS: return cos_32;
	case GSR_OP_LG2: return lg2_32;
	case GSR_OP_EX2: return ex2_32;
	case GSR_OP_TANH: return tanh_32;
	default: return NULL;
	}
}

static xfn *arith(enum gsr_opcode op, const struct xmods *md, bool f64)
{
	static xfn *const fns[][4] = { PICK(add), PICK(sub), PICK(mul), PICK(fma), PICK(div),
				       PICK(rcp), PICK(sqrt) };
	bool slow = md->rnd > R_RN || md->flags & (F_FTZ | F_SAT),
		approx = md->flags & (F_APPROX | F_FULL);
	unsigned int k;

	if (md->rnd > R_RP || (f64 && md->flags & (F_FTZ | F_SAT)) || (approx && md->rnd))
		return NULL;
	switch (op) {
	case GSR_OP_ADD: k = 0; break;
	case GSR_OP_SUB: k = 1; break;
	case GSR_OP_MUL: k = 2; break;
	case GSR_OP_FMA:
	case GSR_OP_MAD: k = 3; break;
	case GSR_OP_DIV: k = 4; break;
	case GSR_OP_RCP: k = 5; break;
	case GSR_OP_SQRT: k = 6; break;
	default: return NULL;
	}
	/* these say how they round, or that they approximate */
	if ((k >= 4 || op == GSR_OP_FMA) && !md->rnd && !approx)
		return NULL;
	if (k < 4 && approx)
		return NULL;
	if (k == 4 && md->flags & F_APPROX)
		return f64 ? NULL : div_approx32;
	return fns[k][2 * f64 + slow];
}

xfn *alu_float_select(enum gsr_opcode op, const struct xmods *md)
{
	bool f64 = md->t[0] == T_F64, plain = !(md->flags & ~(unsigned int)F_FTZ);

	if ((md->t[0] != T_F32 && !f64) || md->n_types != 1)
		return NULL;
	if (f64 && md->flags & F_FTZ) {
		if (md->flags != (F_APPROX | F_FTZ))
			return NULL;
		return op == GSR_OP_RCP ? rcp_approx64 : op == GSR_OP_RSQRT ? rsqrt_approx64 : NULL;
	}
	switch (op) {
	case GSR_OP_ABS: return !plain ? NULL : f64 ? abs_64 : abs_32;
	case GSR_OP_NEG: return !plain ? NULL : f64 ? neg_64 : neg_32;
	case GSR_OP_COPYSIGN: return f64 ? copysign_64 : copysign_32;
	case GSR_OP_MIN: return f64 ? (md->flags ? NULL : min_64) : min_32;
	case GSR_OP_MAX: return f64 ? (md->flags ? NULL : max_64) : max_32;
	case GSR_OP_RSQRT:
		if (f64)
			return md->flags & F_APPROX ? rsqrt_64 : NULL;
		/* fallthrough */
	case GSR_OP_SIN:
	case GSR_OP_COS:
	case GSR_OP_LG2:
	case GSR_OP_EX2:
	case GSR_OP_TANH:
		return f64 || !(md->flags & F_APPROX) ? NULL : unary_approx(op);
	default: return arith(op, md, f64);
	}
}
