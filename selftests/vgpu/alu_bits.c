// SPDX-License-Identifier: LGPL-2.1-or-later
/* Logic, shifts, bit fields, and mov. */
#include "exec_priv.h"

#define H(name, n, e) \
static enum xresult name(struct xctx *x, const struct xinsn *in, uint32_t m) \
{ \
	uint64_t *d = dst(x, in->o[0]); \
	const uint64_t *A = src(x, in->o[1]), *B = (n) > 1 ? src(x, in->o[2]) : A; \
	const uint64_t *C = (n) > 2 ? src(x, in->o[3]) : A, *E = (n) > 3 ? src(x, in->o[4]) : A; \
	FOR_LANES(m, uint64_t a = A[i]; uint64_t b = B[i]; uint64_t c = C[i]; uint64_t f = E[i]; \
		  (void)a; (void)b; (void)c; (void)f; d[i] = (uint64_t)(e)); \
	return X_NEXT; \
}

H(h_and, 2, a & b)
H(h_or, 2, a | b)
H(h_xor, 2, a ^ b)
H(h_not, 1, ~a)
H(cnot16, 1, !(uint16_t)a)
H(cnot32, 1, !(uint32_t)a)
H(cnot64, 1, !a)
/* shifts clamp: the amount is a 32-bit number */
H(shl16, 2, (uint32_t)b > 15 ? 0 : (uint16_t)a << (uint32_t)b)
H(shl32, 2, (uint32_t)b > 31 ? 0 : (uint32_t)a << (uint32_t)b)
H(shl64, 2, (uint32_t)b > 63 ? 0 : a << (uint32_t)b)
H(shr_u16, 2, (uint32_t)b > 15 ? 0 : (uint16_t)a >> (uint32_t)b)
H(shr_u32, 2, (uint32_t)b > 31 ? 0 : (uint32_t)a >> (uint32_t)b)
H(shr_u64, 2, (uint32_t)b > 63 ? 0 : a >> (uint32_t)b)
H(shr_s16, 2, (int16_t)a >> ((uint32_t)b > 15 ? 15 : (uint32_t)b))
H(shr_s32, 2, (int32_t)a >> ((uint32_t)b > 31 ? 31 : (uint32_t)b))
H(shr_s64, 2, (int64_t)a >> ((uint32_t)b > 63 ? 63 : (uint32_t)b))

static inline uint64_t pair(uint64_t lo, uint64_t hi)
{
	return hi << 32 | (uint32_t)lo;
}

static inline uint32_t clamp32(uint64_t v)
{
	return (uint32_t)v > 32 ? 32 : (uint32_t)v;
}

H(shf_l_wrap, 3, (pair(a, b) << ((uint32_t)c & 31)) >> 32)
H(shf_r_wrap, 3, (uint32_t)(pair(a, b) >> ((uint32_t)c & 31)))
H(shf_l_clamp, 3, (pair(a, b) << clamp32(c)) >> 32)
H(shf_r_clamp, 3, (uint32_t)(pair(a, b) >> clamp32(c)))

static inline uint32_t lop3(uint32_t a, uint32_t b, uint32_t c, uint32_t t)
{
	return (t & 0x80 ? a & b & c : 0) | (t & 0x40 ? a & b & ~c : 0) |
	       (t & 0x20 ? a & ~b & c : 0) | (t & 0x10 ? a & ~b & ~c : 0) |
	       (t & 0x08 ? ~a & b & c : 0) | (t & 0x04 ? ~a & b & ~c : 0) |
	       (t & 0x02 ? ~a & ~b & c : 0) | (t & 0x01 ? ~a & ~b & ~c : 0);
}
H(h_lop3, 4, lop3((uint32_t)a, (uint32_t)b, (uint32_t)c, (uint32_t)f))

H(popc32, 1, __builtin_popcount((uint32_t)a))
H(popc64, 1, __builtin_popcountll(a))
H(clz32, 1, (uint32_t)a ? __builtin_clz((uint32_t)a) : 32)
H(clz64, 1, a ? __builtin_clzll(a) : 64)

static inline uint64_t brev(uint64_t v, unsigned int bits)
{
	uint64_t r = 0;

	for (unsigned int k = 0; k < bits; k++)
		r |= (v >> k & 1) << (bits - 1 - k);
	return r;
}
H(brev32, 1, brev(a, 32))
H(brev64, 1, brev(a, 64))

/* The most significant bit that differs from the sign; ~0 if none */
static inline uint32_t bfind(uint64_t v, unsigned int bits, bool is_signed, bool shiftamt)
{
	uint32_t at;

	if (is_signed && v >> (bits - 1) & 1)
		v = ~v;
	if (bits == 32)
		v = (uint32_t)v;
	if (!v)
		return ~0u;
	at = 63 - (uint32_t)__builtin_clzll(v);
	return shiftamt ? bits - 1 - at : at;
}
H(h_bfind, 1, bfind(a, in->size * 8u, xtype_signed(in->type), in->flags & F_SHIFTAMT))

static inline uint64_t bfe(uint64_t a, uint32_t pos, uint32_t len, unsigned int bits,
			   bool is_signed)
{
	uint64_t r = 0, sign;
	uint32_t last;

	pos &= 0xff;
	len &= 0xff;
	if (!len)
		return 0;
	last = pos + len - 1 > bits - 1 ? bits - 1 : pos + len - 1;
	sign = is_signed ? a >> last & 1 : 0;
	for (uint32_t k = 0; k < bits; k++)
		r |= (k < len && pos + k < bits ? a >> (pos + k) & 1 : sign) << k;
	return r;
}
H(h_bfe, 3, bfe(a, (uint32_t)b, (uint32_t)c, in->size * 8u, xtype_signed(in->type)))

static inline uint64_t bfi(uint64_t a, uint64_t b, uint32_t pos, uint32_t len, unsigned int bits)
{
	uint64_t mask;

	pos &= 0xff;
	len &= 0xff;
	if (!len || pos >= bits)
		return b;
	mask = (len >= 64 ? ~0ull : (1ull << len) - 1) << pos;
	return (b & ~mask) | ((a << pos) & mask);
}
H(h_bfi, 4, bfi(a, b, (uint32_t)c, (uint32_t)f, in->size * 8u))

/* find the offset-th set bit from base, upwards or downwards */
static inline uint32_t fns(uint32_t mask, uint32_t base, int32_t offset)
{
	int32_t left = offset < 0 ? -(int32_t)(offset + 1) + 1 : offset,
		step = offset < 0 ? -1 : 1, at;

	if (!offset)
		return base < 32 && mask >> base & 1 ? base : ~0u;
	for (at = (int32_t)(base & 31); at >= 0 && at < 32; at += step)
		if (mask >> at & 1 && !--left)
			return (uint32_t)at;
	return ~0u;
}
H(h_fns, 3, fns((uint32_t)a, (uint32_t)b, (int32_t)c))

static inline uint32_t szext(uint32_t a, uint32_t n, bool wrap, bool is_signed)
{
	n = wrap ? n & 31 : n;
	if (!n)
		return 0;
	if (n > 31)
		return a;
	a &= (1u << n) - 1;
	return is_signed && a >> (n - 1) & 1 ? a | ~((1u << n) - 1) : a;
}
H(h_szext, 2, szext((uint32_t)a, (uint32_t)b, in->flags & F_WRAP, xtype_signed(in->type)))

static inline uint32_t bmsk(uint32_t a, uint32_t b, bool wrap)
{
	if (wrap) {
		a &= 31;
		b &= 31;
	}
	if (a > 31 || !b)
		return 0;
	return (b > 31 ? ~0u : (1u << b) - 1) << a;
}
H(h_bmsk, 2, bmsk((uint32_t)a, (uint32_t)b, in->flags & F_WRAP))

static inline uint32_t dp(uint32_t a, uint32_t b, uint32_t c, bool as, bool bs, unsigned int width,
			  unsigned int from)
{
	for (unsigned int k = 0; k < (width == 16 ? 2 : 4); k++) {
		int32_t p, q = bs ? (int8_t)(b >> (8 * (k + from))) :
			       (uint8_t)(b >> (8 * (k + from)));

		p = width == 16 ? (as ? (int16_t)(a >> (16 * k)) : (uint16_t)(a >> (16 * k))) :
			as ? (int8_t)(a >> (8 * k)) : (uint8_t)(a >> (8 * k));
		c += (uint32_t)(p * q);
	}
	return c;
}
H(h_dp4a, 3, dp((uint32_t)a, (uint32_t)b, (uint32_t)c, in->type == T_S32, in->type2 == T_S32, 8, 0))
H(h_dp2a, 3, dp((uint32_t)a, (uint32_t)b, (uint32_t)c, in->type == T_S32, in->type2 == T_S32, 16,
		in->flags & F_HI ? 2 : 0))

static inline uint32_t byte_of(uint64_t v, uint32_t sel)
{
	uint32_t b = v >> (8 * (sel & 7)) & 0xff;

	return sel & 8 ? (b & 0x80 ? 0xff : 0) : b;
}

static inline uint32_t select4(uint64_t v, uint32_t s0, uint32_t s1, uint32_t s2, uint32_t s3)
{
	return byte_of(v, s0) | byte_of(v, s1) << 8 | byte_of(v, s2) << 16 | byte_of(v, s3) << 24;
}

static inline uint32_t prmt_seq(uint64_t v, uint32_t n, const uint8_t t[4][4])
{
	return select4(v, t[n & 3][0], t[n & 3][1], t[n & 3][2], t[n & 3][3]);
}

static const uint8_t f4e[4][4] = { { 0, 1, 2, 3 }, { 1, 2, 3, 4 }, { 2, 3, 4, 5 }, { 3, 4, 5, 6 } };
static const uint8_t b4e[4][4] = { { 0, 7, 6, 5 }, { 1, 0, 7, 6 }, { 2, 1, 0, 7 }, { 3, 2, 1, 0 } };
static const uint8_t rc8[4][4] = { { 0, 0, 0, 0 }, { 1, 1, 1, 1 }, { 2, 2, 2, 2 }, { 3, 3, 3, 3 } };
static const uint8_t ecl[4][4] = { { 0, 1, 2, 3 }, { 1, 1, 2, 3 }, { 2, 2, 2, 3 }, { 3, 3, 3, 3 } };
static const uint8_t ecr[4][4] = { { 0, 0, 0, 0 }, { 0, 1, 1, 1 }, { 0, 1, 2, 2 }, { 0, 1, 2, 3 } };
static const uint8_t rc16[4][4] = { { 0, 1, 0, 1 }, { 2, 3, 2, 3 }, { 0, 1, 0, 1 },
				    { 2, 3, 2, 3 } };
H(h_prmt, 3, select4(pair(a, b), c & 15, c >> 4 & 15, c >> 8 & 15, c >> 12 & 15))
H(prmt_f4e, 3, prmt_seq(pair(a, b), (uint32_t)c, f4e))
H(prmt_b4e, 3, prmt_seq(pair(a, b), (uint32_t)c, b4e))
H(prmt_rc8, 3, prmt_seq(pair(a, b), (uint32_t)c, rc8))
H(prmt_ecl, 3, prmt_seq(pair(a, b), (uint32_t)c, ecl))
H(prmt_ecr, 3, prmt_seq(pair(a, b), (uint32_t)c, ecr))
H(prmt_rc16, 3, prmt_seq(pair(a, b), (uint32_t)c, rc16))

enum xresult x_mov(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	uint64_t *d = dst(x, in->o[0]);
	const uint64_t *a = src(x, in->o[1]);

	FOR_LANES(m, d[i] = a[i]);
	return X_NEXT;
}

enum xresult x_mov_pred(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	pred_set(x, in->p[0], m, pred(x, in->p[1]));
	return X_NEXT;
}

enum xresult x_mov_pack(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	unsigned int bits = in->size * 8u / in->n, k;
	uint64_t mask = (1ull << bits) - 1;

	for (; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);
		uint64_t v = 0;

		for (k = 0; k < in->n; k++)
			v |= (src(x, in->o[k + 1])[i] & mask) << (k * bits);
		dst(x, in->o[0])[i] = v;
	}
	return X_NEXT;
}

enum xresult x_mov_unpack(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	unsigned int bits = in->size * 8u / in->n, k;
	uint64_t mask = (1ull << bits) - 1;

	for (; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);
		uint64_t v = src(x, in->o[0])[i];

		for (k = 0; k < in->n; k++)
			dst(x, in->o[k + 1])[i] = v >> (k * bits) & mask;
	}
	return X_NEXT;
}

static xfn *prmt_select(const char *mode)
{
	static const struct {
		const char *name;
		xfn *fn;
	} modes[] = { { "f4e", prmt_f4e }, { "b4e", prmt_b4e }, { "rc8", prmt_rc8 },
	{ "ecl", prmt_ecl },
		      { "ecr", prmt_ecr }, { "rc16", prmt_rc16 } };

	if (!mode)
		return h_prmt;
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
		if (!strcmp(modes[i].name, mode))
			return modes[i].fn;
	return NULL;
}

xfn *alu_bits_select(enum gsr_opcode op, const struct xmods *md)
{
	enum xtype t = md->t[0];
	unsigned int size = xtype_size(t), log = size == 2 ? 0 : size == 4 ? 1 : 2;
	bool b = t == T_B16 || t == T_B32 || t == T_B64, us32 = t == T_U32 || t == T_S32;
	bool us = us32 || t == T_U64 || t == T_S64, two = md->n_types == 2 && us32 &&
		  (md->t[1] == T_U32 || md->t[1] == T_S32);

	if (md->n_types != 1 && !(two && (op == GSR_OP_DP4A || op == GSR_OP_DP2A)))
		return NULL;
	switch (op) {
	case GSR_OP_AND: return b || t == T_PRED ? h_and : NULL;
	case GSR_OP_OR: return b || t == T_PRED ? h_or : NULL;
	case GSR_OP_XOR: return b || t == T_PRED ? h_xor : NULL;
	case GSR_OP_NOT: return b || t == T_PRED ? h_not : NULL;
	case GSR_OP_CNOT: return b ? (xfn *const[]){ cnot16, cnot32, cnot64 }[log] : NULL;
	case GSR_OP_SHL: return b ? (xfn *const[]){ shl16, shl32, shl64 }[log] : NULL;
	case GSR_OP_SHR:
		if (size < 2 || size > 8 || xtype_float(t))
			return NULL;
		return xtype_signed(t) ? (xfn *const[]){ shr_s16, shr_s32, shr_s64 }[log] :
			(xfn *const[]){ shr_u16, shr_u32, shr_u64 }[log];
	case GSR_OP_SHF:
		if (t != T_B32)
			return NULL;
		switch (md->flags) {
		case F_LEFT | F_WRAP: return shf_l_wrap;
		case F_LEFT | F_CLAMP: return shf_l_clamp;
		case F_RIGHT | F_WRAP: return shf_r_wrap;
		case F_RIGHT | F_CLAMP: return shf_r_clamp;
		}
		return NULL;
	case GSR_OP_LOP3: return t == T_B32 ? h_lop3 : NULL;
	case GSR_OP_POPC: return t == T_B32 ? popc32 : t == T_B64 ? popc64 : NULL;
	case GSR_OP_CLZ: return t == T_B32 ? clz32 : t == T_B64 ? clz64 : NULL;
	case GSR_OP_BREV: return t == T_B32 ? brev32 : t == T_B64 ? brev64 : NULL;
	case GSR_OP_BFIND: return us && !(md->flags & ~F_SHIFTAMT) ? h_bfind : NULL;
	case GSR_OP_BFE: return us ? h_bfe : NULL;
	case GSR_OP_BFI: return t == T_B32 || t == T_B64 ? h_bfi : NULL;
	case GSR_OP_FNS: return t == T_B32 ? h_fns : NULL;
	case GSR_OP_SZEXT: return us32 && (md->flags == F_WRAP || md->flags == F_CLAMP) ?
		h_szext : NULL;
	case GSR_OP_BMSK: return t == T_B32 && (md->flags == F_WRAP || md->flags == F_CLAMP) ?
		h_bmsk : NULL;
	case GSR_OP_DP4A: return two ? h_dp4a : NULL;
	case GSR_OP_DP2A: return two && (md->flags == F_LO || md->flags == F_HI) ? h_dp2a : NULL;
	case GSR_OP_PRMT: return t == T_B32 ? prmt_select(md->word) : NULL;
	default: return NULL;
	}
}
