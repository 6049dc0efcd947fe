// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Atomics: host atomics of the element's size, so that they hold between blocks, threads of the
 * host and processes. A vector is atomic element by element, as PTX has it. What a host has no
 * instruction for is a compare and swap loop.
 */
#include <math.h>
#include "exec_priv.h"

static uint16_t half_combine(enum xop op, uint16_t a, uint16_t b, bool bf)
{
	double p = half_to_f64(a, bf), q = half_to_f64(b, bf);

	if (op == A_ADD)
		return half_from_f64(p + q, bf, R_RN);
	if (isnan(p) || isnan(q))
		return isnan(p) && isnan(q) ? 0x7fff : isnan(p) ? b : a;
	if (p == q)
		return !!signbit(p) == (op == A_MIN) ? a : b;
	return (p < q) == (op == A_MIN) ? a : b;
}

static float flushed(uint64_t v, bool ftz)
{
	float f = as_f32(v);

	return ftz && fabsf(f) < 0x1p-126f ? copysignf(0, f) : f;
}

/* The value an atomic leaves */
static uint64_t combine(enum xop op, enum xtype t, uint64_t old, uint64_t b, bool ftz)
{
	bool bf = t == T_BF16 || t == T_BF16X2, less;
	float f;

	switch (t) {
	case T_F16: case T_BF16:
		return op == A_EXCH ? b : half_combine(op, (uint16_t)old, (uint16_t)b, bf);
	case T_F16X2: case T_BF16X2:
		return half_combine(op, (uint16_t)old, (uint16_t)b, bf) |
		       (uint32_t)half_combine(op, (uint16_t)(old >> 16),
					      (uint16_t)(b >> 16), bf) << 16;
	default:
		break;
	}
	switch (op) {
	case A_AND: return old & b;
	case A_OR: return old | b;
	case A_XOR: return old ^ b;
	case A_EXCH: return b;
	case A_INC: return (uint32_t)old >= (uint32_t)b ? 0 : (uint32_t)old + 1;
	case A_DEC: return !(uint32_t)old || (uint32_t)old > (uint32_t)b ?
		(uint32_t)b : (uint32_t)old - 1;
	case A_MIN:
	case A_MAX:
		less = t == T_S32 ? (int32_t)old < (int32_t)b :
		       t == T_S64 ? (int64_t)old < (int64_t)b :
			t == T_U32 ? (uint32_t)old < (uint32_t)b : old < b;
		return less == (op == A_MIN) ? old : b;
	default:
		break;
	}
	switch (t) {
	case T_F32:
		f = flushed(old, ftz) + flushed(b, ftz);
		f = ftz && fabsf(f) < 0x1p-126f ? copysignf(0, f) : f;
		return f != f ? 0x7fffffff : f32_bits(f);
	case T_F64:
		return f64_bits(as_f64(old) + as_f64(b));
	default:
		return old + b;
	}
}

#define ATOMIC(T) \
static uint64_t atomic_##T(enum xop op, enum xtype type, T *p, uint64_t b, uint64_t c, bool ftz) \
{ \
	T old, new; \
	switch (op) { \
	case A_CAS: \
		old = (T)b; \
		__atomic_compare_exchange_n(p, &old, (T)c, false, __ATOMIC_SEQ_CST, \
					    __ATOMIC_SEQ_CST); \
		return old; \
	case A_EXCH: return __atomic_exchange_n(p, (T)b, __ATOMIC_SEQ_CST); \
	case A_ADD: \
		if (!xtype_float(type)) \
			return __atomic_fetch_add(p, (T)b, __ATOMIC_SEQ_CST); \
		break; \
	default: break; \
	} \
	old = __atomic_load_n(p, __ATOMIC_RELAXED); \
	do \
		new = (T)combine(op, type, old, b, ftz); \
	while (!__atomic_compare_exchange_n(p, &old, new, false, __ATOMIC_SEQ_CST, \
					    __ATOMIC_RELAXED)); \
	return old; \
}
ATOMIC(uint16_t)
ATOMIC(uint32_t)
ATOMIC(uint64_t)

/* @shared: f32 sums keep subnormal numbers there; in global memory they are flushed */
uint64_t atom_apply(enum xop op, enum xtype t, void *p, uint64_t b, uint64_t c, bool shared)
{
	switch (xtype_size(t)) {
	case 2: return atomic_uint16_t(op, t, p, b, c, false);
	case 4: return atomic_uint32_t(op, t, p, b, c, !shared);
	default: return atomic_uint64_t(op, t, p, b, c, false);
	}
}

static bool is_shared(const struct vgpu_block *b, const void *p)
{
	return (uintptr_t)p - (uintptr_t)b->shared < b->shared_size;
}

static inline uint64_t address(const struct xinsn *in, const uint64_t *row, unsigned int lane)
{
	return (in->a32 ? (uint32_t)row[lane] : row[lane]) + (uint64_t)in->imm;
}

static enum xresult atom(struct xctx *x, const struct xinsn *in, uint32_t m, bool result)
{
	const uint64_t *row = src(x, in->o[0]), *B = src(x, in->o[1]), *C = src(x, in->o[2]);

	for (; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);
		void *p = mem_ptr(x, in, (enum xspace)in->space, i, address(in, row, i), in->size,
				  in->size, true);
		uint64_t old;

		if (!p)
			return X_FAULT;
		old = atom_apply((enum xop)in->op, (enum xtype)in->type, p, B[i], C[i],
				 is_shared(x->b, p));
		if (result)
			dst(x, in->o[3])[i] = old;
	}
	return X_NEXT;
}

static enum xresult x_atom(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	return atom(x, in, m, true);
}

static enum xresult x_red(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	return atom(x, in, m, false);
}

/* Vectors: rows of the results, then of the operands, in ext */
static enum xresult x_atom_vec(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	const uint64_t *row = src(x, in->o[0]);
	const struct xrows *v = in->ext;
	unsigned int k;

	for (; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);
		size_t bytes = (size_t)in->size * in->n;
		uint8_t *p = mem_ptr(x, in, (enum xspace)in->space, i, address(in, row, i), bytes,
				     bytes, true);
		uint64_t old[8];

		if (!p)
			return X_FAULT;
		for (k = 0; k < in->n; k++)
			old[k] = atom_apply((enum xop)in->op, (enum xtype)in->type,
					    p + (size_t)k * in->size, src(x, v->row[in->n + k])[i],
					    0, is_shared(x->b, p));
		for (k = 0; k < in->n && v->row[k] != NO_OPND; k++)
			dst(x, v->row[k])[i] = old[k];
	}
	return X_NEXT;
}

typedef unsigned __int128 u128;

#ifdef __x86_64__
__attribute__((target("cx16"))) static u128 swap128(u128 *p, u128 old, u128 new)
{
	return __sync_val_compare_and_swap(p, old, new);
}
#elif defined(__aarch64__)
/*
 * What differs is written back: without a store that succeeds, the two halves may have been read at
 * different times.
 */
static u128 swap128(u128 *p, u128 old, u128 new)
{
	uint64_t lo, hi, to_lo, to_hi;
	uint32_t failed;

	__asm__ volatile("1:	ldaxp	%[lo], %[hi], %[p]\n"
			 "	cmp	%[lo], %[old_lo]\n"
			 "	ccmp	%[hi], %[old_hi], #0, eq\n"
			 "	csel	%[to_lo], %[new_lo], %[lo], eq\n"
			 "	csel	%[to_hi], %[new_hi], %[hi], eq\n"
			 "	stlxp	%w[failed], %[to_lo], %[to_hi], %[p]\n"
			 "	cbnz	%w[failed], 1b"
			 : [lo] "=&r"(lo), [hi] "=&r"(hi), [to_lo] "=&r"(to_lo),
			 [to_hi] "=&r"(to_hi), [failed] "=&r"(failed), [p] "+Q"(*p)
			 : [old_lo] "r"((uint64_t)old), [old_hi] "r"((uint64_t)(old >> 64)),
			 [new_lo] "r"((uint64_t)new), [new_hi] "r"((uint64_t)(new >> 64))
			 : "cc", "memory");
	return (u128)hi << 64 | lo;
}
#else
static u128 swap128(u128 *p, u128 old, u128 new)
{
	__atomic_compare_exchange_n(p, &old, new, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return old;
}
#endif

static u128 pair(const struct xctx *x, int32_t o, unsigned int i)
{
	return (u128)src(x, o + 1)[i] << 64 | src(x, o)[i];
}

/* A 128-bit register is two rows */
static enum xresult x_atom128(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	const uint64_t *row = src(x, in->o[0]);

	for (; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);
		u128 *p = mem_ptr(x, in, (enum xspace)in->space, i, address(in, row, i), 16, 16,
				  true), old, seen;

		if (!p)
			return X_FAULT;
		if (in->op == A_CAS) {
			old = swap128(p, pair(x, in->o[1], i), pair(x, in->o[2], i));
		} else {
			for (old = swap128(p, 0, 0);
			     (seen = swap128(p, old, pair(x, in->o[1], i))) != old; old = seen)
				;
		}
		dst(x, in->o[3])[i] = (uint64_t)old;
		dst(x, in->o[3] + 1)[i] = (uint64_t)(old >> 64);
	}
	return X_NEXT;
}

/* Whether the operation exists for the type, alone or in vectors */
static bool scalar_ok(enum xop op, enum xtype t, bool red)
{
	bool bits = t == T_B32 || t == T_B64, is_int = t == T_U32 || t == T_S32 ||
		    t == T_U64 || t == T_S64;

	switch (op) {
	case A_AND: case A_OR: case A_XOR: return bits;
	case A_EXCH: return !red && (bits || is_int || t == T_F32 || t == T_F64 || t == T_B128);
	case A_CAS: return !red && (bits || t == T_B16 || is_int || t == T_B128);
	case A_INC: case A_DEC: return t == T_U32;
	case A_MIN: case A_MAX: return is_int;
	case A_ADD: return is_int || (xtype_float(t) && t != T_TF32);
	default: return false;
	}
}

static bool vector_ok(enum xop op, enum xtype t, unsigned int n)
{
	switch (t) {
	case T_F32: return op == A_ADD && n <= 4;
	case T_F16: case T_BF16: return op == A_ADD || op == A_MIN || op == A_MAX;
	case T_F16X2: case T_BF16X2: return (op == A_ADD || op == A_MIN || op == A_MAX) && n <= 4;
	default: return false;
	}
}

xfn *atom_select(const struct xmods *md, bool red)
{
	enum xtype t = md->t[0];

	if (md->space == S_LOCAL || md->space == S_PARAM || md->space == S_CONST)
		return NULL;
	if (md->vec)
		return md->space != S_SHARED && vector_ok(md->op, t, md->vec) ? x_atom_vec : NULL;
	if (!scalar_ok(md->op, t, red))
		return NULL;
	return t == T_B128 ? x_atom128 : red ? x_red : x_atom;
}
