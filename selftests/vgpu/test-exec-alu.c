// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Arithmetic: integer instructions against C over edge values, and single results worked out by
 * hand.
 */
#include <math.h>
#include "test-eval.h"

typedef unsigned __int128 u128;
typedef __int128 s128;
#define U16(x) ((uint16_t)(x))
#define S16(x) ((int16_t)(x))
#define U32(x) ((uint32_t)(x))
#define S32(x) ((int32_t)(x))
#define S64(x) ((int64_t)(x))

static uint64_t bits_of(uint64_t v, unsigned int pos, unsigned int len,
			unsigned int width_, bool sign)
{
	uint64_t r = 0;
	unsigned int k;
	bool s = false;

	if (!len)
		return 0;
	s = sign && (v >> (pos + len - 1 < width_ ? pos + len - 1 : width_ - 1) & 1);
	for (k = 0; k < width_; k++)
		if (k < len && pos + k < width_ ? v >> (pos + k) & 1 : s)
			r |= 1ull << k;
	return r;
}

static uint64_t insert(uint64_t a, uint64_t b, unsigned int pos, unsigned int len,
		       unsigned int width_)
{
	unsigned int k;

	for (k = 0; k < len && pos + k < width_; k++)
		b = (b & ~(1ull << (pos + k))) | (a >> k & 1) << (pos + k);
	return b;
}

static uint64_t reversed(uint64_t a, unsigned int n)
{
	uint64_t r = 0;

	while (n--) {
		r = r << 1 | (a & 1);
		a >>= 1;
	}
	return r;
}

static uint32_t permute(uint64_t v, uint32_t sel)
{
	uint32_t r = 0;
	unsigned int k;

	for (k = 0; k < 4; k++) {
		uint32_t s = sel >> (4 * k) & 15, b = v >> (8 * (s & 7)) & 255;

		r |= (s & 8 ? (b >> 7) * 255 : b) << (8 * k);
	}
	return r;
}

static uint32_t dot(uint32_t a, uint32_t b, uint32_t c)
{
	unsigned int k;

	for (k = 0; k < 4; k++)
		c += (uint32_t)((int)(int8_t)(a >> 8 * k) * (int)(uint8_t)(b >> 8 * k));
	return c;
}

static int64_t clampi(s128 v, int64_t lo, int64_t hi)
{
	return v < lo ? lo : v > hi ? hi : (int64_t)v;
}

/* X(instruction, widths, what C says) */
#define SWEEP \
X("add.s32 D, A, B;", "rrrr", a + b) X("sub.u16 D, A, B;", "hhhh", a - b) \
X("add.u64 D, A, B;", "dddd", a + b) \
X("add.sat.s32 D, A, B;", "rrrr", clampi((s128)S32(a) + S32(b), INT32_MIN, INT32_MAX)) \
X("sub.sat.s32 D, A, B;", "rrrr", clampi((s128)S32(a) - S32(b), INT32_MIN, INT32_MAX)) \
X("mul.lo.s32 D, A, B;", "rrrr", a * b) X("mul.lo.u64 D, A, B;", "dddd", a * b) \
X("mul.lo.u16 D, A, B;", "hhhh", a * b) \
X("mul.hi.s32 D, A, B;", "rrrr", (uint64_t)((S64(S32(a)) * S32(b)) >> 32)) \
X("mul.hi.u32 D, A, B;", "rrrr", ((uint64_t)U32(a) * U32(b)) >> 32) \
X("mul.hi.s64 D, A, B;", "dddd", (uint64_t)(((s128)S64(a) * S64(b)) >> 64)) \
X("mul.hi.u64 D, A, B;", "dddd", (uint64_t)(((u128)a * b) >> 64)) \
X("mul.wide.s16 D, A, B;", "rhhh", (uint64_t)(S16(a) * S16(b))) \
X("mul.wide.u32 D, A, B;", "drrr", (uint64_t)U32(a) * U32(b)) \
X("mul.wide.s32 D, A, B;", "drrr", (uint64_t)(S64(S32(a)) * S32(b))) \
X("mad.wide.s32 D, A, B, C;", "drrd", (uint64_t)(S64(S32(a)) * S32(b)) + c) \
X("mad.lo.s32 D, A, B, C;", "rrrr", a * b + c) \
X("mad.hi.u32 D, A, B, C;", "rrrr", (((uint64_t)U32(a) * U32(b)) >> 32) + c) \
X("mul24.lo.u32 D, A, B;", "rrrr", (a & 0xffffff) * (b & 0xffffff)) \
X("mul24.hi.s32 D, A, B;", "rrrr", (uint64_t)((S64(a << 40) >> 40) * (S64(b << 40) >> 40) >> 16)) \
X("div.u32 D, A, B;", "rrrr", U32(b) ? U32(a) / U32(b) : ~0ull) \
X("rem.u32 D, A, B;", "rrrr", U32(b) ? U32(a) % U32(b) : a) \
X("div.s32 D, A, B;", "rrrr", S32(b) ? (uint64_t)(S64(S32(a)) / S32(b)) : ~0ull) \
X("rem.s32 D, A, B;", "rrrr", S32(b) ? (uint64_t)(S64(S32(a)) % S32(b)) : a) \
X("div.s64 D, A, B;", "dddd", S64(b) ? (uint64_t)((s128)S64(a) / S64(b)) : ~0ull) \
X("rem.u64 D, A, B;", "dddd", b ? a % b : a) \
X("div.s16 D, A, B;", "hhhh", S16(b) ? (uint64_t)(S16(a) / S16(b)) : ~0ull) \
X("abs.s32 D, A;", "rrrr", S32(a) < 0 ? 0 - a : a) X("neg.s64 D, A;", "dddd", 0 - a) \
X("min.s32 D, A, B;", "rrrr", S32(a) < S32(b) ? a : b) \
X("max.u32 D, A, B;", "rrrr", U32(a) > U32(b) ? a : b) \
X("min.u16 D, A, B;", "hhhh", U16(a) < U16(b) ? a : b) \
X("max.s64 D, A, B;", "dddd", S64(a) > S64(b) ? a : b) \
X("sad.u32 D, A, B, C;", "rrrr", (U32(a) > U32(b) ? a - b : b - a) + c) \
X("sad.s32 D, A, B, C;", "rrrr", (S32(a) > S32(b) ? a - b : b - a) + c) \
X("and.b32 D, A, B;", "rrrr", a & b) X("or.b64 D, A, B;", "dddd", a | b) \
X("xor.b16 D, A, B;", "hhhh", a ^ b) X("not.b32 D, A;", "rrrr", ~a) \
X("cnot.b32 D, A;", "rrrr", !U32(a)) X("shl.b32 D, A, B;", "rrrr", U32(b) > 31 ? 0 : a << U32(b)) \
X("shl.b64 D, A, B;", "ddrr", U32(b) > 63 ? 0 : a << U32(b)) \
X("shr.u32 D, A, B;", "rrrr", U32(b) > 31 ? 0 : U32(a) >> U32(b)) \
X("shr.s32 D, A, B;", "rrrr", (uint64_t)(S64(S32(a)) >> (U32(b) > 31 ? 31 : U32(b)))) \
X("shr.s64 D, A, B;", "ddrr", (uint64_t)(S64(a) >> (U32(b) > 63 ? 63 : U32(b)))) \
X("shr.b16 D, A, B;", "hhrr", U32(b) > 15 ? 0 : U16(a) >> U32(b)) \
X("shf.l.wrap.b32 D, A, B, C;", "rrrr", ((u128)(b << 32 | U32(a)) << (c & 31)) >> 32) \
X("shf.r.clamp.b32 D, A, B, C;", "rrrr", (b << 32 | U32(a)) >> (U32(c) > 32 ? 32 : U32(c))) \
X("lop3.b32 D, A, B, C, 0x96;", "rrrr", a ^ b ^ c) \
X("lop3.b32 D, A, B, C, 0xe8;", "rrrr", (a & b) | (b & c) | (a & c)) \
X("lop3.b32 D, A, B, C, 0xca;", "rrrr", (a & b) | (~a & c)) \
X("popc.b32 D, A;", "rrrr", __builtin_popcount(U32(a))) \
X("popc.b64 D, A;", "rddd", __builtin_popcountll(a)) \
X("clz.b32 D, A;", "rrrr", U32(a) ? __builtin_clz(U32(a)) : 32) \
X("clz.b64 D, A;", "rddd", a ? __builtin_clzll(a) : 64) \
X("brev.b32 D, A;", "rrrr", reversed(a, 32)) X("brev.b64 D, A;", "dddd", reversed(a, 64)) \
X("bfind.u32 D, A;", "rrrr", U32(a) ? 31u - (unsigned int)__builtin_clz(U32(a)) : ~0u) \
X("bfind.s32 D, A;", "rrrr", (S32(a) < 0 ? ~U32(a) : U32(a)) ? \
  31u - (unsigned int)__builtin_clz(S32(a) < 0 ? ~U32(a) : U32(a)) : ~0u) \
X("bfind.shiftamt.u64 D, A;", "rddd", a ? (unsigned int)__builtin_clzll(a) : ~0u) \
X("bfe.u32 D, A, B, C;", "rrrr", bits_of(a, b & 255, c & 255, 32, false)) \
X("bfe.s32 D, A, B, C;", "rrrr", bits_of(a, b & 255, c & 255, 32, true)) \
X("bfe.s64 D, A, B, C;", "ddrr", bits_of(a, b & 255, c & 255, 64, true)) \
X("bfi.b32 D, A, B, C, 9;", "rrrr", insert(a, b, c & 255, 9, 32)) \
X("bfi.b64 D, A, B, 33, C;", "dddr", insert(a, b, 33, c & 255, 64)) \
X("prmt.b32 D, A, B, C;", "rrrr", permute(b << 32 | U32(a), U32(c))) \
X("dp4a.s32.u32 D, A, B, C;", "rrrr", dot(U32(a), U32(b), U32(c))) \
X("setp.lt.s32 D, A, B;", "prrr", S32(a) < S32(b)) \
X("setp.hs.u32 D, A, B;", "prrr", U32(a) >= U32(b)) X("setp.ne.b64 D, A, B;", "pddd", a != b) \
X("setp.gt.u16 D, A, B;", "phhh", U16(a) > U16(b)) \
X("{ .reg .pred t; setp.ge.s64 t, A, C; setp.lt.and.s64 _|D, A, B, t; }", "pddd", \
  !(S64(a) < S64(b)) && S64(a) >= S64(c)) \
X("set.le.u32.s32 D, A, B;", "rrrr", S32(a) <= S32(b) ? ~0u : 0) \
X("slct.b32.s32 D, A, B, C;", "rrrr", S32(c) >= 0 ? a : b) \
X("{ .reg .pred t; setp.eq.b32 t, A, B; selp.b64 D, C, 5, !t; }", "drrd", \
  U32(a) == U32(b) ? 5 : c) \
X("cvt.s64.s32 D, A;", "drrr", (uint64_t)S64(S32(a))) X("cvt.u64.u32 D, A;", "drrr", U32(a)) \
X("cvt.u32.u64 D, A;", "rddd", a) \
X("cvt.s32.s8 D, A;", "rrrr", (uint64_t)(int8_t)a) X("cvt.u16.u8 D, A;", "hrrr", (uint8_t)a) \
X("cvt.s8.s32 D, A;", "rrrr", (uint64_t)(int8_t)a) \
X("cvt.sat.u8.s32 D, A;", "rrrr", clampi(S32(a), 0, 255)) \
X("cvt.sat.s16.s64 D, A;", "hddd", clampi(S64(a), -32768, 32767)) \
X("cvt.sat.u32.s64 D, A;", "rddd", clampi(S64(a), 0, 0xffffffffll)) \
X("cvt.sat.s32.u64 D, A;", "rddd", a > 0x7fffffff ? 0x7fffffff : a) \
X("{ .reg .b32 t; add.cc.u32 t, A, B; addc.u32 D, B, C; }", "rrrr", \
  b + c + (((uint64_t)U32(a) + U32(b)) >> 32)) \
X("{ .reg .b32 t; sub.cc.u32 t, A, B; subc.u32 D, B, C; }", "rrrr", b - c - (U32(a) < U32(b))) \
X("{ .reg .b64 t; add.cc.u64 t, A, B; addc.u64 D, 0, 0; }", "dddd", \
  (uint64_t)(((u128)a + b) >> 64)) \
X("{ .reg .b32 t; mad.lo.cc.u32 t, A, B, C; madc.hi.u32 D, A, B, 0; }", "rrrr", \
  ((uint64_t)U32(a) * U32(b) + U32(c)) >> 32) \
X("{ .reg .b32 l; .reg .b32 h; mov.b64 {l, h}, A; mov.b64 D, {h, l}; }", "dddd", \
  a >> 32 | a << 32) \
X("{ .reg .b16 p<4>; mov.b64 {p0, p1, p2, p3}, A; mov.b64 D, {p3, p2, p1, p0}; }", "dddd", \
  a >> 48 | (a >> 16 & 0xffff0000) | (a << 16 & 0xffff00000000) | a << 48) \
X("szext.wrap.s32 D, A, 7;", "rrrr", (uint64_t)(S64(a << 57) >> 57)) \
X("bmsk.clamp.b32 D, 3, B;", "rrrr", (U32(b) > 31 ? ~0u : (1u << U32(b)) - 1) << 3) \
X("cvt.rn.f32.s32 D, A;", "rrrr", fbits((float)S32(a))) \
X("cvt.rn.f64.u64 D, A;", "dddd", dbits((double)a)) \
X("cvt.rn.f64.s64 D, A;", "dddd", dbits((double)S64(a)))

static uint32_t fbits(float f)
{
	uint32_t u;

	memcpy(&u, &f, 4);
	return u;
}

static uint64_t dbits(double d)
{
	uint64_t u;

	memcpy(&u, &d, 8);
	return u;
}

static const uint64_t edges[] = {
	0, 1, 2, 3, 5, 31, 32, 33, 63, 64, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x12345678,
	0x7fffffff, 0x80000000, 0xfffffffe,
	0xffffffff, 0x100000000, 0x123456789abcdef0, 0x7fffffffffffffff, 0x8000000000000000,
	0xfffffffffffffffe, 0xffffffffffffffff, 0xdeadbeefcafef00d,
};
#define E (sizeof(edges) / sizeof(*edges))
#define N (E * E * 4)

static void sweep(void)
{
	static uint64_t a[N], b[N], c[N], out[N], want[N];
	static const uint64_t third[] = { 0, 7, 0x80000011, 0xfedcba9876543210 };
	unsigned int i;

	for (i = 0; i < N; i++) {
		a[i] = edges[i % E];
		b[i] = edges[i / E % E];
		c[i] = third[i / E / E];
	}
#define X(insn, w, e) { \
	bool good; \
	for (i = 0; i < N; i++) { \
		uint64_t A_ = masked((w)[1], a[i]), B_ = masked((w)[2], b[i]), \
			C_ = masked((w)[3], c[i]); \
		want[i] = __extension__ ({ uint64_t a = A_, b = B_, c = C_; (void)a; (void)b; \
					   (void)c; (uint64_t)(e); }); \
	} \
	memset(out, 0xee, sizeof(out)); \
	good = eval(insn, w, N, a, b, c, out); \
	for (i = 0; good && i < N; i++) \
		if (masked((w)[0], out[i]) != masked((w)[0], want[i])) { \
			printf("# A 0x%llx B 0x%llx C 0x%llx: 0x%llx, C says 0x%llx\n", \
			       (unsigned long long)a[i], \
			       (unsigned long long)b[i], (unsigned long long)c[i], \
			       (unsigned long long)masked((w)[0], out[i]), \
			       (unsigned long long)masked((w)[0], want[i])); \
			good = false; \
		} \
	ok(good, "%s", insn); \
}
	/* 64-bit integers, and gcc shifts signs */
	/* cppcheck-suppress [comparePointers,shiftTooManyBitsSigned] */
	SWEEP
#undef X
}

#define INF	0x7f800000
#define NANF	0x7fffffff
#define DINF	0x7ff0000000000000
static const struct single singles[] = {
	/* 1 + 2^-24 is a tie, 1 + 2^-23 the next float */
	{ "add.f32 D, A, B;", "rrrr", 0x3f800000, 0x33800000, 0, 0x3f800000 },
	{ "add.rn.f32 D, A, B;", "rrrr", 0x3f800001, 0x33800000, 0, 0x3f800002 },
	{ "add.rz.f32 D, A, B;", "rrrr", 0x3f800001, 0x33800000, 0, 0x3f800001 },
	{ "add.rp.f32 D, A, B;", "rrrr", 0x3f800000, 0x2f800000, 0, 0x3f800001 },
	{ "add.rm.f32 D, A, B;", "rrrr", 0xbf800000, 0xaf800000, 0, 0xbf800001 },
	{ "sub.rm.f32 D, A, A;", "rrrr", 0x3f800000, 0, 0, 0x80000000 },
	{ "sub.f32 D, A, B;", "rrrr", INF, INF, 0, NANF },
	{ "add.f32 D, A, B;", "rrrr", 0xffc00001, 0x3f800000, 0, NANF },
	{ "mul.f32 D, A, B;", "rrrr", 0x00000001, 0x3f000000, 0, 0x00000000 },
	{ "mul.rp.f32 D, A, B;", "rrrr", 0x00000001, 0x3f000000, 0, 0x00000001 },
	{ "mul.ftz.f32 D, A, B;", "rrrr", 0x80000001, 0x40000000, 0, 0x80000000 },
	{ "mul.f32 D, A, B;", "rrrr", 0x00000001, 0x40000000, 0, 0x00000002 },
	{ "mul.sat.f32 D, A, B;", "rrrr", 0x40000000, 0x40000000, 0, 0x3f800000 },
	{ "mul.sat.f32 D, A, B;", "rrrr", 0xc0000000, 0x40000000, 0, 0 },
	{ "add.sat.f32 D, A, B;", "rrrr", 0x7fc00000, 0x40000000, 0, 0 },
	/* (1 + 2^-12)^2 - 1 - 2^-11: the product must not be rounded */
	{ "fma.rn.f32 D, A, A, B;", "rrrr", 0x3f800800, 0xbf801000, 0, 0x33800000 },
	{ "fma.rz.f32 D, A, B, C;", "rrrr", 0x3f800001, 0x3f800001, 0, 0x3f800002 },
	{ "fma.rp.f32 D, A, B, C;", "rrrr", 0x3f800001, 0x3f800001, 0, 0x3f800003 },
	{ "div.rn.f32 D, A, B;", "rrrr", 0x3f800000, 0x40400000, 0, 0x3eaaaaab },
	{ "div.rz.f32 D, A, B;", "rrrr", 0x3f800000, 0x40400000, 0, 0x3eaaaaaa },
	{ "div.rn.f32 D, A, B;", "rrrr", 0xbf800000, 0x00000000, 0, 0xff800000 },
	{ "div.rn.f32 D, A, B;", "rrrr", 0, 0, 0, NANF },
	{ "div.full.f32 D, A, B;", "rrrr", 0x40c00000, 0x40000000, 0, 0x40400000 },
	{ "rcp.rn.f32 D, A;", "rrrr", 0x40800000, 0, 0, 0x3e800000 },
	{ "rcp.approx.ftz.f32 D, A;", "rrrr", 0x00000001, 0, 0, INF },
	{ "sqrt.rn.f32 D, A;", "rrrr", 0x40000000, 0, 0, 0x3fb504f3 },
	{ "sqrt.rp.f32 D, A;", "rrrr", 0x40000000, 0, 0, 0x3fb504f4 },
	{ "sqrt.rn.f32 D, A;", "rrrr", 0xbf800000, 0, 0, NANF },
	{ "rsqrt.approx.f32 D, A;", "rrrr", 0x40800000, 0, 0, 0x3f000000 },
	{ "ex2.approx.ftz.f32 D, A;", "rrrr", 0x40400000, 0, 0, 0x41000000 },
	{ "lg2.approx.f32 D, A;", "rrrr", 0x41000000, 0, 0, 0x40400000 },
	{ "sin.approx.f32 D, A;", "rrrr", 0, 0, 0, 0 },
	{ "cos.approx.f32 D, A;", "rrrr", 0, 0, 0, 0x3f800000 },
	{ "tanh.approx.f32 D, A;", "rrrr", INF, 0, 0, 0x3f800000 },
	{ "min.f32 D, A, B;", "rrrr", 0x7fc00000, 0x3f800000, 0, 0x3f800000 },
	{ "min.NaN.f32 D, A, B;", "rrrr", 0x7fc00000, 0x3f800000, 0, NANF },
	{ "min.f32 D, A, B;", "rrrr", 0x00000000, 0x80000000, 0, 0x80000000 },
	{ "max.f32 D, A, B;", "rrrr", 0x80000000, 0x00000000, 0, 0 },
	{ "max.f32 D, A, B;", "rrrr", 0xffc00000, 0x7fc00000, 0, NANF },
	{ "max.f64 D, A, B;", "dddd", 0xbff0000000000000, 0x3fe0000000000000, 0,
	  0x3fe0000000000000 },
	{ "abs.f32 D, A;", "rrrr", 0xbf800000, 0, 0, 0x3f800000 },
	{ "neg.f64 D, A;", "dddd", 0, 0, 0, 0x8000000000000000 },
	{ "copysign.f32 D, A, B;", "rrrr", 0x80000000, 0x3f800000, 0, 0xbf800000 },
	{ "add.f64 D, A, B;", "dddd", 0x3ff0000000000000, 0x3ca0000000000000, 0,
	  0x3ff0000000000000 },
	{ "add.rp.f64 D, A, B;", "dddd", 0x3ff0000000000000, 0x3ca0000000000000, 0,
	  0x3ff0000000000001 },
	{ "mul.rz.f64 D, A, A;", "dddd", 0x3ff0000000000001, 0, 0, 0x3ff0000000000002 },
	{ "mul.rp.f64 D, A, A;", "dddd", 0x3ff0000000000001, 0, 0, 0x3ff0000000000003 },
	{ "fma.rn.f64 D, A, A, B;", "dddd", 0x3ff0000000000001, 0xbff0000000000002, 0,
	  0x3970000000000000 },
	{ "div.rn.f64 D, A, B;", "dddd", 0x3ff0000000000000, 0, 0, DINF },
	{ "sqrt.rn.f64 D, A;", "dddd", 0x4010000000000000, 0, 0, 0x4000000000000000 },
	{ "rcp.approx.ftz.f64 D, A;", "dddd", 0x4010000000000000, 0, 0, 0x3fd0000000000000 },
	{ "setp.lt.f32 D, A, B;", "prrr", 0x7fc00000, 0x3f800000, 0, 0 },
	{ "setp.ltu.f32 D, A, B;", "prrr", 0x7fc00000, 0x3f800000, 0, 1 },
	{ "setp.neu.f64 D, A, A;", "pddd", 0x7ff8000000000000, 0, 0, 1 },
	{ "setp.ne.f64 D, A, A;", "pddd", 0x7ff8000000000000, 0, 0, 0 },
	{ "setp.nan.f32 D, A, B;", "prrr", 0, 0x7fc00000, 0, 1 },
	{ "setp.gt.ftz.f32 D, A, B;", "prrr", 0x00000001, 0, 0, 0 },
	{ "testp.subnormal.f32 D, A;", "prrr", 0x00000001, 0, 0, 1 },
	{ "testp.finite.f64 D, A;", "pddd", DINF, 0, 0, 0 },
	{ "cvt.rni.s32.f32 D, A;", "rrrr", 0x40200000, 0, 0, 2 },		/* 2.5 */
	{ "cvt.rpi.s32.f32 D, A;", "rrrr", 0x40200000, 0, 0, 3 },
	{ "cvt.rzi.s32.f32 D, A;", "rrrr", 0xc0200000, 0, 0, 0xfffffffe },
	{ "cvt.rmi.s32.f32 D, A;", "rrrr", 0xc0200000, 0, 0, 0xfffffffd },
	{ "cvt.rzi.s32.f32 D, A;", "rrrr", 0x4f800000, 0, 0, 0x7fffffff },
	{ "cvt.rzi.u32.f32 D, A;", "rrrr", 0xbf800000, 0, 0, 0 },
	{ "cvt.rzi.u32.f32 D, A;", "rrrr", 0x4f7fffff, 0, 0, 0xffffff00 },
	{ "cvt.rzi.s32.f32 D, A;", "rrrr", 0x7fc00000, 0, 0, 0 },
	{ "cvt.rzi.u64.f64 D, A;", "dddd", 0x43efffffffffffff, 0, 0, 0xfffffffffffff800 },
	{ "cvt.rzi.s64.f64 D, A;", "dddd", 0xc3e0000000000000, 0, 0, 0x8000000000000000 },
	{ "cvt.rzi.s8.f32 D, A;", "rrrr", 0x43960000, 0, 0, 127 },
	{ "cvt.rn.f32.f64 D, A;", "rddd", 0x3ff0000010000000, 0, 0, 0x3f800000 },
	{ "cvt.rp.f32.f64 D, A;", "rddd", 0x3ff0000000000001, 0, 0, 0x3f800001 },
	{ "cvt.rz.f32.s32 D, A;", "rrrr", 0x7fffffff, 0, 0, 0x4effffff },
	{ "cvt.rp.f32.u64 D, A;", "rddd", 0xffffff0000000001, 0, 0, 0x5f800000 },
	{ "cvt.f64.f32 D, A;", "drrr", 0x40200000, 0, 0, 0x4004000000000000 },
	{ "cvt.sat.f32.f32 D, A;", "rrrr", 0x40200000, 0, 0, 0x3f800000 },
	{ "cvt.rni.f32.f32 D, A;", "rrrr", 0x40600000, 0, 0, 0x40800000 },	/* 3.5 */
	{ "cvt.rn.f16.f32 D, A;", "hrrr", 0x3f801000, 0, 0, 0x3c00 },		/* a tie */
	{ "cvt.rn.f16.f32 D, A;", "hrrr", 0x3f803000, 0, 0, 0x3c02 },
	{ "cvt.rz.f16.f32 D, A;", "hrrr", 0x477ff000, 0, 0, 0x7bff },
	{ "cvt.rn.f16.f32 D, A;", "hrrr", 0x477ff000, 0, 0, 0x7c00 },
	/* least subnormal */
	{ "cvt.rn.f16.f32 D, A;", "hrrr", 0x33800000, 0, 0, 0x0001 },
	{ "cvt.f32.f16 D, A;", "rhhh", 0x0001, 0, 0, 0x33800000 },
	{ "cvt.f32.f16 D, A;", "rhhh", 0xfc00, 0, 0, 0xff800000 },
	{ "cvt.rn.bf16.f32 D, A;", "hrrr", 0x3f808000, 0, 0, 0x3f80 },
	{ "cvt.rn.bf16.f32 D, A;", "hrrr", 0x3f818000, 0, 0, 0x3f82 },
	{ "cvt.rn.f16.s32 D, A;", "hrrr", 0xffffffff, 0, 0, 0xbc00 },
	{ "cvt.rn.f16x2.f32 D, A, B;", "rrrr", 0x3f800000, 0x40000000, 0, 0x3c004000 },
	{ "cvt.rna.tf32.f32 D, A;", "rrrr", 0x3f801000, 0, 0, 0x3f802000 },
	/* 1 + 2^-11: a tie */
	{ "add.f16 D, A, B;", "hhhh", 0x3c00, 0x1000, 0, 0x3c00 },
	{ "mul.f16 D, A, B;", "hhhh", 0x7bff, 0x4000, 0, 0x7c00 },
	{ "fma.rn.f16 D, A, A, B;", "hhhh", 0x3c01, 0xbc02, 0, 0x0010 },	/* 2^-20 */
	{ "fma.rn.f16x2 D, A, B, C;", "rrrr", 0x3c004000, 0x40004200, 0x3c003c00, 0x42004700 },
	{ "add.bf16 D, A, B;", "hhhh", 0x3f80, 0x3b80, 0, 0x3f80 },
	{ "max.f16 D, A, B;", "hhhh", 0x7e00, 0x3c00, 0, 0x3c00 },
	{ "min.bf16x2 D, A, B;", "rrrr", 0x3f80bf80, 0x40003f80, 0, 0x3f80bf80 },
	{ "neg.f16x2 D, A;", "rrrr", 0x3c00bc00, 0, 0, 0xbc003c00 },
	{ "add.f32 D, A, 0f3F800000;", "rrrr", 0x3f800000, 0, 0, 0x40000000 },
	{ "add.f32 D, A, 1.5;", "rrrr", 0x3f800000, 0, 0, 0x40200000 },
	{ "add.f64 D, A, 1.5;", "dddd", 0, 0, 0, 0x3ff8000000000000 },
	{ "mov.b32 D, 0f40490FDB;", "rrrr", 0, 0, 0, 0x40490fdb },
	{ "prmt.b32.b4e D, A, B, 1;", "rrrr", 0x03020100, 0x07060504, 0, 0x06070001 },
	{ "prmt.b32.rc16 D, A, B, 1;", "rrrr", 0x03020100, 0x07060504, 0, 0x03020302 },
	{ "add.s16x2 D, A, B;", "rrrr", 0x0001ffff, 0x00010001, 0, 0x00020000 },
	{ "fns.b32 D, A, 4, 2;", "rrrr", 0xf0, 0, 0, 5 },
};

int main(void)
{
	sweep();
	singles_run(singles, sizeof(singles) / sizeof(*singles));
	return done();
}
