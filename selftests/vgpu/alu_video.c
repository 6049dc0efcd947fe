// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Video instructions: on parts of words, and on pairs and quads of parts. Everything fits 64 bits
 * before it is cut off.
 */
#include "alu_video.h"

static int64_t part(uint64_t v, struct xpart p, bool is_signed)
{
	v = v >> p.at & (p.bits == 32 ? 0xffffffff : (1u << p.bits) - 1);
	return is_signed && v >> (p.bits - 1) & 1 ? (int64_t)v - (1ll << p.bits) : (int64_t)v;
}

static int64_t clamp(int64_t v, unsigned int bits, bool is_signed)
{
	int64_t lo = is_signed ? -(1ll << (bits - 1)) : 0, hi = (1ll << (bits - is_signed)) - 1;

	return v < lo ? lo : v > hi ? hi : v;
}

static bool compares(enum xcmp cmp, int64_t a, int64_t b)
{
	switch (cmp) {
	case X_EQ: return a == b;
	case X_NE: return a != b;
	case X_LT: return a < b;
	case X_LE: return a <= b;
	case X_GT: return a > b;
	default: return a >= b;
	}
}

static int64_t primary(const struct xvideo *v, int64_t a, int64_t b)
{
	switch (v->op) {
	case VO_ADD: return a + b;
	case VO_SUB: return a - b;
	case VO_ABSDIFF: return a < b ? b - a : a - b;
	case VO_MIN: return a < b ? a : b;
	case VO_MAX: return a > b ? a : b;
	case VO_AVRG: return a + b >= 0 ? (a + b + 1) >> 1 : (a + b) >> 1;
	case VO_SET: return compares(v->cmp, a, b);
	default:
		b = v->wrap ? b & 31 : b > 32 ? 32 : b;
		return v->op == VO_SHL ? (int64_t)((uint64_t)a << b) : a >> b;
	}
}

static uint32_t multiply(const struct xvideo *v, uint32_t a, uint32_t b, uint32_t c)
{
	bool is_signed = v->asigned || v->bsigned || v->minus_ab || v->minus_c;
	__int128 r = (__int128)part(a, v->a, v->asigned) * part(b, v->b, v->bsigned);
	unsigned int lsb = v->plus_one || v->minus_ab || v->minus_c;
	int64_t low;

	if (v->minus_ab)
		r = ~r;
	if (v->minus_c)
		c = ~c;
	r += (is_signed ? (__int128)(int32_t)c : (__int128)c) + lsb;
	low = (int64_t)(r >> v->shift);
	return (uint32_t)(v->sat ? clamp(low, 32, is_signed) : low);
}

static uint32_t scalar(const struct xvideo *v, uint32_t a, uint32_t b, uint32_t c)
{
	int64_t t = primary(v, part(a, v->a, v->asigned), part(b, v->b, v->bsigned));
	int64_t third = v->dsigned ? (int32_t)c : (int64_t)c;
	uint32_t mask;

	if (v->sat)
		t = clamp(t, v->d.bits, v->dsigned);
	switch (v->second) {
	case A_ADD: t += third; break;
	case A_MIN: t = t < third ? t : third; break;
	case A_MAX: t = t > third ? t : third; break;
	default: break;
	}
	if (v->d.bits == 32)
		return (uint32_t)t;
	mask = ((1u << v->d.bits) - 1) << v->d.at;
	return ((uint32_t)t << v->d.at & mask) | (c & ~mask);
}

static uint32_t simd(const struct xvideo *v, uint32_t a, uint32_t b, uint32_t c)
{
	uint8_t bits = 32 / v->lanes;
	uint64_t both = (uint64_t)b << 32 | a;
	uint32_t d = v->second == A_ADD ? c : 0, mask = (1u << bits) - 1;
	unsigned int i;

	for (i = 0; i < v->lanes; i++) {
		int64_t t = primary(v, part(both >> (v->asel[i] * bits), (struct xpart){ 0, bits },
					    v->asigned),
				    part(both >> (v->bsel[i] * bits), (struct xpart){ 0, bits },
					 v->bsigned));

		if (v->sat)
			t = clamp(t, bits, v->dsigned);
		if (v->second == A_ADD)
			d += v->mask >> i & 1 ? (uint32_t)t : 0;
		else
			d |= (v->mask >> i & 1 ? (uint32_t)t & mask : c >> (i * bits) &
			      mask) << (i * bits);
	}
	return d;
}

enum xresult x_video(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	const struct xvideo *v = in->ext;
	uint64_t *d = dst(x, in->o[0]);
	const uint64_t *A = src(x, in->o[1]), *B = src(x, in->o[2]), *C = src(x, in->o[3]);

	FOR_LANES(m, uint32_t a = (uint32_t)A[i]; uint32_t b = (uint32_t)B[i];
		  uint32_t c = (uint32_t)C[i];
		  d[i] = v->lanes ? simd(v, a, b, c) : v->op == VO_MAD ? multiply(v, a, b, c) :
		  scalar(v, a, b, c));
	return X_NEXT;
}
