// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Integer arithmetic. Sums and low products need no type: what stands above a type's bits is never
 * read.
 */
#include "exec_priv.h"

/* Handlers of one, two, three sources; e uses a, b, c */
#define H1(name, e) \
static enum xresult name(struct xctx *x, const struct xinsn *in, uint32_t m) \
{ \
	uint64_t *d = dst(x, in->o[0]); \
	const uint64_t *A = src(x, in->o[1]); \
	FOR_LANES(m, uint64_t a = A[i]; d[i] = (uint64_t)(e)); \
	return X_NEXT; \
}
#define H2(name, e) \
static enum xresult name(struct xctx *x, const struct xinsn *in, uint32_t m) \
{ \
	uint64_t *d = dst(x, in->o[0]); \
	const uint64_t *A = src(x, in->o[1]), *B = src(x, in->o[2]); \
	FOR_LANES(m, uint64_t a = A[i]; uint64_t b = B[i]; d[i] = (uint64_t)(e)); \
	return X_NEXT; \
}
#define H3(name, e) \
static enum xresult name(struct xctx *x, const struct xinsn *in, uint32_t m) \
{ \
	uint64_t *d = dst(x, in->o[0]); \
	const uint64_t *A = src(x, in->o[1]), *B = src(x, in->o[2]), *C = src(x, in->o[3]); \
	FOR_LANES(m, uint64_t a = A[i]; uint64_t b = B[i]; uint64_t c = C[i]; \
		  d[i] = (uint64_t)(e)); \
	return X_NEXT; \
}

typedef unsigned __int128 u128;
typedef __int128 s128;

H2(add_any, a + b)
H2(sub_any, a - b)
H2(mul_any, a * b)
H3(mad_any, a * b + c)
H1(neg_any, 0 - a)
H2(mul_u32, (uint32_t)((uint32_t)a * (uint32_t)b))
H2(wide_s16, (int32_t)(int16_t)a * (int16_t)b)
H2(wide_u16, (uint32_t)(uint16_t)a * (uint16_t)b)
H2(wide_s32, (int64_t)(int32_t)a * (int32_t)b)
H2(wide_u32, (uint64_t)(uint32_t)a * (uint32_t)b)
H3(madw_s16, (uint32_t)((int32_t)(int16_t)a * (int16_t)b) + c)
H3(madw_u16, (uint32_t)(uint16_t)a * (uint16_t)b + c)
H3(madw_s32, (uint64_t)((int64_t)(int32_t)a * (int32_t)b) + c)
H3(madw_u32, (uint64_t)(uint32_t)a * (uint32_t)b + c)
H2(hi_s16, ((int32_t)(int16_t)a * (int16_t)b) >> 16)
H2(hi_u16, ((uint32_t)(uint16_t)a * (uint16_t)b) >> 16)
H2(hi_s32, ((int64_t)(int32_t)a * (int32_t)b) >> 32)
H2(hi_u32, ((uint64_t)(uint32_t)a * (uint32_t)b) >> 32)
H2(hi_s64, ((s128)(int64_t)a * (int64_t)b) >> 64)
H2(hi_u64, ((u128)a * b) >> 64)
H3(madh_s16, (uint64_t)(((int32_t)(int16_t)a * (int16_t)b) >> 16) + c)
H3(madh_u16, (((uint32_t)(uint16_t)a * (uint16_t)b) >> 16) + c)
H3(madh_s32, (uint64_t)(((int64_t)(int32_t)a * (int32_t)b) >> 32) + c)
H3(madh_u32, (((uint64_t)(uint32_t)a * (uint32_t)b) >> 32) + c)
H3(madh_s64, (uint64_t)(((s128)(int64_t)a * (int64_t)b) >> 64) + c)
H3(madh_u64, (uint64_t)(((u128)a * b) >> 64) + c)

static inline int64_t clamp_s32(int64_t v)
{
	return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v;
}

H2(add_sat, clamp_s32((int64_t)(int32_t)a + (int32_t)b))
H2(sub_sat, clamp_s32((int64_t)(int32_t)a - (int32_t)b))
H3(mad_sat, clamp_s32((((int64_t)(int32_t)a * (int32_t)b) >> 32) + (int32_t)c))

static inline int64_t s24(uint64_t v)
{
	return (int32_t)((uint32_t)v << 8) >> 8;
}

static inline uint64_t u24(uint64_t v)
{
	return v & 0xffffff;
}

H2(mul24_slo, s24(a) * s24(b))
H2(mul24_ulo, u24(a) * u24(b))
H2(mul24_shi, (s24(a) * s24(b)) >> 16)
H2(mul24_uhi, (u24(a) * u24(b)) >> 16)
H3(mad24_slo, (uint64_t)(s24(a) * s24(b)) + c)
H3(mad24_ulo, u24(a) * u24(b) + c)
H3(mad24_shi, (uint64_t)((s24(a) * s24(b)) >> 16) + c)
H3(mad24_uhi, ((u24(a) * u24(b)) >> 16) + c)
H3(mad24_sat, clamp_s32(((s24(a) * s24(b)) >> 16) + (int32_t)c))

/* Division by zero: all ones; the remainder is the dividend. The least integer by -1 wraps. */
#define DIV(n, T, U, S) \
static inline uint64_t div_##n(T a, T b) \
{ \
	return !b ? ~0ull : (S) && b == (T)~(T)0 ? (uint64_t)(T)(0 - (U)a) : (uint64_t)(T)(a / b); \
} \
static inline uint64_t rem_##n(T a, T b) \
{ \
	return !b ? (uint64_t)a : (S) && b == (T)~(T)0 ? 0 : (uint64_t)(T)(a % b); \
} \
H2(h_div_##n, div_##n((T)a, (T)b)) \
H2(h_rem_##n, rem_##n((T)a, (T)b)) \
H2(h_min_##n, (T)a < (T)b ? (T)a : (T)b) \
H2(h_max_##n, (T)a > (T)b ? (T)a : (T)b) \
H3(h_sad_##n, ((T)a < (T)b ? (U)(T)b - (U)(T)a : (U)(T)a - (U)(T)b) + c)
DIV(u16, uint16_t, uint16_t, 0)
DIV(u32, uint32_t, uint32_t, 0)
DIV(u64, uint64_t, uint64_t, 0)
DIV(s16, int16_t, uint16_t, 1)
DIV(s32, int32_t, uint32_t, 1)
DIV(s64, int64_t, uint64_t, 1)
H1(abs_s16, (int16_t)a < 0 ? 0 - a : a)
H1(abs_s32, (int32_t)a < 0 ? 0 - a : a)
H1(abs_s64, (int64_t)a < 0 ? 0 - a : a)

/* Two 16-bit halves */
#define X2(T, e) __extension__ ({ uint32_t r_ = 0; for (unsigned int h_ = 0; h_ < 32; h_ += 16) { \
	T p = (T)(a >> h_); T q = (T)(b >> h_); r_ |= (uint32_t)(uint16_t)(e) << h_; } r_; })
H2(add_x2, X2(uint16_t, p + q))
H2(min_u16x2, X2(uint16_t, p < q ? p : q))
H2(max_u16x2, X2(uint16_t, p > q ? p : q))
H2(min_s16x2, X2(int16_t, p < q ? p : q))
H2(max_s16x2, X2(int16_t, p > q ? p : q))

H2(minr_s16x2, X2(int16_t, (p = p < q ? p : q) < 0 ? 0 : p))
H2(maxr_s16x2, X2(int16_t, (p = p > q ? p : q) < 0 ? 0 : p))

static inline int32_t relu(int32_t v)
{
	return v < 0 ? 0 : v;
}
H2(minr_s32, relu((int32_t)a < (int32_t)b ? (int32_t)a : (int32_t)b))
H2(maxr_s32, relu((int32_t)a > (int32_t)b ? (int32_t)a : (int32_t)b))

/* The carry flag: addc, subc, madc read it, .cc writes it. Subtraction keeps the borrow in it. */
static enum xresult carry_op(struct xctx *x, const struct xinsn *in, uint32_t m, bool mul,
			     bool sub, bool read)
{
	bool wide = in->size == 8, write = in->flags & F_CC;
	uint64_t *d = dst(x, in->o[0]);
	const uint64_t *A = src(x, in->o[1]), *B = src(x, in->o[2]),
		*C = mul ? src(x, in->o[3]) : NULL;
	uint32_t carry = x->w->carry;

	for (; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);
		uint64_t a = A[i], b = B[i], c;
		u128 r;

		if (mul) {
			if (in->flags & F_HI)
				a = in->type == T_S64 ?
				    (uint64_t)(((s128)(int64_t)a * (int64_t)b) >> 64) :
				    in->type == T_S32 ? (uint64_t)(((int64_t)(int32_t)a *
								    (int32_t)b) >> 32) :
				    wide ? (uint64_t)(((u128)a * b) >> 64) :
					    ((uint64_t)(uint32_t)a * (uint32_t)b) >> 32;
			else
				a *= b;
			b = C[i];
		}
		if (!wide) {
			a = (uint32_t)a;
			b = (uint32_t)b;
		}
		c = read ? carry >> i & 1 : 0;
		r = sub ? (u128)a - b - c : (u128)a + b + c;
		d[i] = (uint64_t)r;
		if (write) {
			bool out = r >> (wide ? 64 : 32) & 1;

			carry = (carry & ~(1u << i)) | (uint32_t)out << i;
		}
	}
	x->w->carry = carry;
	return X_NEXT;
}

static enum xresult add_cc(struct xctx *x, const struct xinsn *in,
			   uint32_t m) { return carry_op(x, in, m, false, false, false); }
static enum xresult sub_cc(struct xctx *x, const struct xinsn *in,
			   uint32_t m) { return carry_op(x, in, m, false, true, false); }
static enum xresult mad_cc(struct xctx *x, const struct xinsn *in,
			   uint32_t m) { return carry_op(x, in, m, true, false, false); }
static enum xresult addc(struct xctx *x, const struct xinsn *in,
			 uint32_t m) { return carry_op(x, in, m, false, false, true); }
static enum xresult subc(struct xctx *x, const struct xinsn *in,
			 uint32_t m) { return carry_op(x, in, m, false, true, true); }
static enum xresult madc(struct xctx *x, const struct xinsn *in,
			 uint32_t m) { return carry_op(x, in, m, true, false, true); }

/* 0: 16 bits, 1: 32, 2: 64; + 3 signed. -1 other */
static int shape(enum xtype t)
{
	switch (t) {
	case T_U16: return 0;
	case T_U32: return 1;
	case T_U64: return 2;
	case T_S16: return 3;
	case T_S32: return 4;
	case T_S64: return 5;
	default: return -1;
	}
}

#define BY_SHAPE(n) ((xfn *const[]){ h_##n##_u16, h_##n##_u32, h_##n##_u64, h_##n##_s16, \
				     h_##n##_s32, h_##n##_s64 })

static xfn *mul_select(const struct xmods *md, int s, bool add)
{
	static xfn *const hi[2][6] = { { hi_u16, hi_u32, hi_u64, hi_s16, hi_s32, hi_s64 },
				       { madh_u16, madh_u32, madh_u64, madh_s16, madh_s32,
					 madh_s64 } };
	static xfn *const wide[2][6] = { { wide_u16, wide_u32, NULL, wide_s16, wide_s32, NULL },
					 { madw_u16, madw_u32, NULL, madw_s16, madw_s32, NULL } };

	switch (md->flags & (F_LO | F_HI | F_WIDE | F_SAT | F_CC)) {
	case F_LO: return add ? mad_any : s % 3 == 1 ? mul_u32 : mul_any;
	case F_HI: return hi[add][s];
	case F_WIDE: return wide[add][s];
	case F_HI | F_SAT: return add && md->t[0] == T_S32 ? mad_sat : NULL;
	case F_LO | F_CC:
	case F_HI | F_CC: return add && s % 3 ? mad_cc : NULL;
	default: return NULL;
	}
}

static xfn *mul24_select(const struct xmods *md, bool add)
{
	bool s = md->t[0] == T_S32;

	if (!s && md->t[0] != T_U32)
		return NULL;
	switch (md->flags) {
	case F_LO: return add ? (s ? mad24_slo : mad24_ulo) : s ? mul24_slo : mul24_ulo;
	case F_HI: return add ? (s ? mad24_shi : mad24_uhi) : s ? mul24_shi : mul24_uhi;
	case F_HI | F_SAT: return add && s ? mad24_sat : NULL;
	default: return NULL;
	}
}

static xfn *x2_select(enum gsr_opcode op, bool s)
{
	switch (op) {
	case GSR_OP_ADD: return add_x2;
	case GSR_OP_MIN: return s ? min_s16x2 : min_u16x2;
	case GSR_OP_MAX: return s ? max_s16x2 : max_u16x2;
	default: return NULL;
	}
}

xfn *alu_int_select(enum gsr_opcode op, const struct xmods *md)
{
	int s = shape(md->t[0]);
	bool long_enough = s % 3 > 0;

	if (md->flags & F_RELU) {
		if (md->flags != F_RELU || md->n_types != 1)
			return NULL;
		if (md->t[0] == T_S32)
			return op == GSR_OP_MIN ? minr_s32 : maxr_s32;
		return md->t[0] != T_S16X2 ? NULL : op == GSR_OP_MIN ? minr_s16x2 : maxr_s16x2;
	}
	if (md->t[0] == T_U16X2 || md->t[0] == T_S16X2)
		return md->flags ? NULL : x2_select(op, md->t[0] == T_S16X2);
	if (s < 0 || md->n_types != 1)
		return NULL;
	switch (op) {
	case GSR_OP_ADD:
	case GSR_OP_SUB:
		if (md->flags & F_SAT)
			return md->t[0] != T_S32 || md->flags & F_CC ? NULL : op == GSR_OP_ADD ?
			       add_sat : sub_sat;
		if (md->flags & F_CC)
			return !long_enough ? NULL : op == GSR_OP_ADD ? add_cc : sub_cc;
		return op == GSR_OP_ADD ? add_any : sub_any;
	case GSR_OP_ADDC: return long_enough ? addc : NULL;
	case GSR_OP_SUBC: return long_enough ? subc : NULL;
	case GSR_OP_MUL: return mul_select(md, s, false);
	case GSR_OP_MAD: return mul_select(md, s, true);
	case GSR_OP_MADC: return long_enough && md->flags & (F_LO | F_HI) ? madc : NULL;
	case GSR_OP_MUL24: return mul24_select(md, false);
	case GSR_OP_MAD24: return mul24_select(md, true);
	case GSR_OP_SAD: return BY_SHAPE(sad)[s];
	case GSR_OP_DIV: return BY_SHAPE(div)[s];
	case GSR_OP_REM: return BY_SHAPE(rem)[s];
	case GSR_OP_MIN: return BY_SHAPE(min)[s];
	case GSR_OP_MAX: return BY_SHAPE(max)[s];
	case GSR_OP_ABS: return s < 3 ? NULL : (xfn *const[]){ abs_s16, abs_s32, abs_s64 }[s - 3];
	case GSR_OP_NEG: return s < 3 ? NULL : neg_any;
	default: return NULL;
	}
}
