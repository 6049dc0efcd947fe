// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The 8-, 6- and 4-bit floating-point formats: conversions between pairs of them and f32, f16x2,
 * bf16x2; and cvt.pack.
 */
#include <math.h>
#include "exec_priv.h"

const struct mini mini_e4m3 = { .mant = 3, .bias = 7, .max = 0x7e, .nan = 0x7f, .sign = 0x80 };
const struct mini mini_e5m2 = { .mant = 2, .bias = 15, .max = 0x7b, .nan = 0x7f, .inf = 0x7c,
				.sign = 0x80 };
static const struct mini mini_e2m3 = { .mant = 3, .bias = 1, .max = 0x1f, .sign = 0x20 };
static const struct mini mini_e3m2 = { .mant = 2, .bias = 3, .max = 0x1f, .sign = 0x20 };
static const struct mini mini_e2m1 = { .mant = 1, .bias = 1, .max = 0x7, .sign = 0x8 };

double mini_to_f64(uint8_t v, const struct mini *f)
{
	unsigned int bits = v & (f->sign - 1u), e = bits >> f->mant,
		m = bits & ((1u << f->mant) - 1);
	double r;

	if (f->inf && bits == f->inf)
		r = INFINITY;
	else if (f->nan && bits > f->max)
		r = NAN;
	else
		r = ldexp(e ? m | 1u << f->mant : m, (int)(e ? e : 1) - f->bias - f->mant);
	return v & f->sign ? -r : r;
}

/*
 * To nearest even, .satfinite: what is above the greatest number becomes it. Formats without a NaN
 * have the greatest number for it
 */
static uint8_t mini_from_f64(double v, const struct mini *f)
{
	uint8_t sign = signbit(v) ? f->sign : 0;
	double a = fabs(v), q;
	unsigned int bits;
	int e;

	if (v != v)
		return f->nan ? f->nan : f->max;
	if (a >= mini_to_f64(f->max, f))
		return sign | f->max;
	frexp(a, &e);
	e -= 1;
	if (e < 1 - f->bias || a == 0)
		e = 1 - f->bias;
	q = nearbyint(ldexp(a, f->mant - e));
	bits = (unsigned int)q;
	/* a carry out of the mantissa raises the exponent by itself */
	if (bits >> f->mant)
		bits += (unsigned int)(e + f->bias - 1) << f->mant;
	return sign | (uint8_t)bits;
}

static const struct mini *format(enum xtype t)
{
	switch (t) {
	case T_E4M3X2: return &mini_e4m3;
	case T_E5M2X2: return &mini_e5m2;
	case T_E2M3X2: return &mini_e2m3;
	case T_E3M2X2: return &mini_e3m2;
	default: return &mini_e2m1;
	}
}

/* Powers of two; 0xff is NaN */
static uint8_t ue8m0_from(double v, bool up, bool satfinite)
{
	double a = fabs(v);
	int e;

	if (v != v)
		return 0xff;
	if (a > 0x1p127)
		return isinf(a) || up ? (satfinite ? 0xfe : 0xff) : 0xfe;
	if (a <= 0x1p-127)
		return 0;
	/* a is f * 2^e, f in [0.5, 1) */
	e = frexp(a, &e) == 0.5 || !up ? (frexp(a, &e), e - 1) : (frexp(a, &e), e);
	return (uint8_t)(e + 127);
}

static double relu(const struct xinsn *in, double v)
{
	return (in->flags & F_RELU) && v < 0 ? 0 : v;
}

static uint64_t pack(const struct xinsn *in, double a, double b)
{
	enum xtype to = (enum xtype)in->type;

	if (to == T_UE8M0X2)
		return (uint64_t)ue8m0_from(a, in->rnd == R_RP, in->flags & F_SATFINITE) << 8 |
		       ue8m0_from(b, in->rnd == R_RP, in->flags & F_SATFINITE);
	return (uint64_t)mini_from_f64(relu(in, a), format(to)) << (to == T_E2M1X2 ? 4 : 8) |
	       mini_from_f64(relu(in, b), format(to));
}

static enum xresult from_f32(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	uint64_t *d = dst(x, in->o[0]);
	const uint64_t *A = src(x, in->o[1]), *B = src(x, in->o[2]);

	FOR_LANES(m, d[i] = pack(in, as_f32(A[i]), as_f32(B[i])));
	return X_NEXT;
}

static enum xresult from_half(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	bool bf = in->type2 == T_BF16X2;
	uint64_t *d = dst(x, in->o[0]);
	const uint64_t *A = src(x, in->o[1]);

	FOR_LANES(m, d[i] = pack(in, half_to_f64((uint16_t)(A[i] >> 16), bf),
				 half_to_f64((uint16_t)A[i], bf)));
	return X_NEXT;
}

static double wide(const struct xinsn *in, uint8_t v)
{
	if (in->type2 == T_UE8M0X2)
		return v == 0xff ? NAN : ldexp(1, v - 127);
	return relu(in, mini_to_f64(v, format((enum xtype)in->type2)));
}

static enum xresult to_half(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	unsigned int shift = in->type2 == T_E2M1X2 ? 4 : 8, mask = (1u << shift) - 1;
	bool bf = in->type == T_BF16X2;
	uint64_t *d = dst(x, in->o[0]);
	const uint64_t *A = src(x, in->o[1]);

	FOR_LANES(m, d[i] = (uint32_t)half_from_f64(wide(in, A[i] >> shift & mask), bf,
						    R_RN) << 16 |
		  half_from_f64(wide(in, A[i] & mask), bf, R_RN));
	return X_NEXT;
}

static bool is_mini(enum xtype t)
{
	return t >= T_E4M3X2 && t <= T_UE8M0X2;
}

xfn *alu_mini_select(const struct xmods *md)
{
	enum xtype to = md->t[0], from = md->t[1];
	bool sat = md->flags & F_SATFINITE;

	if (md->n_types != 2 || md->flags & ~(unsigned int)(F_SATFINITE | F_RELU))
		return NULL;
	if (to == T_UE8M0X2) {
		if ((md->rnd != R_RZ && md->rnd != R_RP) || md->flags & F_RELU)
			return NULL;
		return from == T_F32 ? from_f32 : from == T_BF16X2 ? from_half : NULL;
	}
	if (md->rnd != R_RN)
		return NULL;
	if (from == T_UE8M0X2)
		return to == T_BF16X2 && !md->flags ? to_half : NULL;
	if (is_mini(from))
		return to == T_F16X2 && !sat ? to_half : NULL;
	if (!is_mini(to) || !sat)
		return NULL;
	return from == T_F32 ? from_f32 : from == T_F16X2 && (to == T_E4M3X2 || to == T_E5M2X2) ?
	       from_half : NULL;
}

static int64_t clamped(int32_t v, unsigned int bits, bool is_signed)
{
	int64_t lo = is_signed ? -(1ll << (bits - 1)) : 0, hi = (1ll << (bits - is_signed)) - 1;

	return v < lo ? lo : v > hi ? hi : v;
}

/*
 * cvt.pack.sat: a above b, both clamped to imm bits; what is left of the word comes from the lower
 * bits of c
 */
enum xresult x_cvt_pack(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	unsigned int bits = (unsigned int)in->imm;
	uint64_t mask = (1ull << bits) - 1, *d = dst(x, in->o[0]);
	const uint64_t *A = src(x, in->o[1]), *B = src(x, in->o[2]), *C = src(x, in->o[3]);
	bool s = in->mode;

	FOR_LANES(m, d[i] = (uint32_t)(((uint64_t)clamped((int32_t)A[i], bits, s) & mask) << bits |
				       ((uint64_t)clamped((int32_t)B[i], bits, s) & mask) |
				       (bits == 16 ? 0 : C[i] << (2 * bits))));
	return X_NEXT;
}
