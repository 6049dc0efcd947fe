// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * One instruction: its modifiers, its operands, its handler. What no branch here accepts is an
 * unknown instruction.
 */
#include <stdlib.h>
#include "decode.h"

void dec_fill(struct xinsn *in, const struct xmods *md)
{
	in->type = (uint8_t)md->t[0];
	in->type2 = (uint8_t)(md->n_types > 1 ? md->t[1] : md->t[0]);
	in->rnd = (uint8_t)md->rnd;
	in->cmp = (uint8_t)md->cmp;
	in->op = (uint8_t)md->op;
	in->space = (uint8_t)md->space;
	in->mode = (uint8_t)md->mode;
	in->size = (uint8_t)xtype_size(md->t[0]);
	in->sem = (uint8_t)md->sem;
	in->flags = md->flags;
}

/* Arithmetic: destination, sources. @cast: which of the types sources have, for constants */
struct alu {
	enum gsr_opcode op;
	xfn *(*select)(enum gsr_opcode op, const struct xmods *md);
	unsigned int allow;
	uint8_t srcs, type;		/* @type: of the sources */
	uint8_t last_type;		/* of the last source */
	uint8_t kinds;			/* 1 integers, 2 f32 and f64, 4 halves, 8 mixed and packed
					 * f32 */
};

#define FLOATS	(C_TYPE | C_RND | C_FTZ | C_SAT)
static const struct alu alus[] = {
	{ GSR_OP_ADD, alu_int_select, C_TYPE | C_SAT | C_CC, 2, 0, 0, 1 },
	{ GSR_OP_SUB, alu_int_select, C_TYPE | C_SAT | C_CC, 2, 0, 0, 1 },
	{ GSR_OP_ADDC, alu_int_select, C_TYPE | C_CC, 2, 0, 0, 1 },
	{ GSR_OP_SUBC, alu_int_select, C_TYPE | C_CC, 2, 0, 0, 1 },
	{ GSR_OP_MUL, alu_int_select, C_TYPE | C_MUL, 2, 0, 0, 1 },
	{ GSR_OP_MAD, alu_int_select, C_TYPE | C_MUL | C_CC | C_SAT, 3, 0, 0, 1 },
	{ GSR_OP_MADC, alu_int_select, C_TYPE | C_MUL | C_CC, 3, 0, 0, 1 },
	{ GSR_OP_MUL24, alu_int_select, C_TYPE | C_MUL, 2, 0, 0, 1 },
	{ GSR_OP_MAD24, alu_int_select, C_TYPE | C_MUL | C_SAT, 3, 0, 0, 1 },
	{ GSR_OP_SAD, alu_int_select, C_TYPE, 3, 0, 0, 1 },
	{ GSR_OP_DIV, alu_int_select, C_TYPE, 2, 0, 0, 1 },
	{ GSR_OP_REM, alu_int_select, C_TYPE, 2, 0, 0, 1 },
	{ GSR_OP_ABS, alu_int_select, C_TYPE, 1, 0, 0, 1 },
	{ GSR_OP_NEG, alu_int_select, C_TYPE, 1, 0, 0, 1 },
	{ GSR_OP_MIN, alu_int_select, C_TYPE, 2, 0, 0, 1 },
	{ GSR_OP_MAX, alu_int_select, C_TYPE, 2, 0, 0, 1 },
	{ GSR_OP_POPC, alu_bits_select, C_TYPE, 1, 0, 0, 1 },
	{ GSR_OP_CLZ, alu_bits_select, C_TYPE, 1, 0, 0, 1 },
	{ GSR_OP_BFIND, alu_bits_select, C_TYPE | C_SHIFT, 1, 0, 0, 1 },
	{ GSR_OP_BREV, alu_bits_select, C_TYPE, 1, 0, 0, 1 },
	{ GSR_OP_BFE, alu_bits_select, C_TYPE, 3, 0, 0, 1 },
	{ GSR_OP_BFI, alu_bits_select, C_TYPE, 4, 0, 0, 1 },
	{ GSR_OP_FNS, alu_bits_select, C_TYPE, 3, 0, 0, 1 },
	{ GSR_OP_SZEXT, alu_bits_select, C_TYPE | C_SHIFT, 2, 0, 0, 1 },
	{ GSR_OP_BMSK, alu_bits_select, C_TYPE | C_SHIFT, 2, 0, 0, 1 },
	{ GSR_OP_DP4A, alu_bits_select, C_TYPE, 3, 0, 0, 1 },
	{ GSR_OP_DP2A, alu_bits_select, C_TYPE | C_MUL, 3, 0, 0, 1 },
	{ GSR_OP_AND, alu_bits_select, C_TYPE, 2, 0, 0, 1 },
	{ GSR_OP_OR, alu_bits_select, C_TYPE, 2, 0, 0, 1 },
	{ GSR_OP_XOR, alu_bits_select, C_TYPE, 2, 0, 0, 1 },
	{ GSR_OP_NOT, alu_bits_select, C_TYPE, 1, 0, 0, 1 },
	{ GSR_OP_CNOT, alu_bits_select, C_TYPE, 1, 0, 0, 1 },
	{ GSR_OP_LOP3, alu_bits_select, C_TYPE, 4, 0, 0, 1 },
	{ GSR_OP_SHF, alu_bits_select, C_TYPE | C_SHIFT, 3, 0, 0, 1 },
	{ GSR_OP_SHL, alu_bits_select, C_TYPE, 2, 0, 0, 1 },
	{ GSR_OP_SHR, alu_bits_select, C_TYPE, 2, 0, 0, 1 },
	{ GSR_OP_PRMT, alu_bits_select, C_TYPE | C_WORD, 3, 0, 0, 1 },
	{ GSR_OP_SLCT, alu_cmp_select, C_TYPE | C_FTZ, 3, 0, 1, 3 },
	{ GSR_OP_SET, alu_cmp_select, C_TYPE | C_CMP | C_FTZ, 2, 1, 1, 3 },
	{ GSR_OP_ADD, alu_float_select, FLOATS, 2, 0, 0, 2 },
	{ GSR_OP_SUB, alu_float_select, FLOATS, 2, 0, 0, 2 },
	{ GSR_OP_MUL, alu_float_select, FLOATS, 2, 0, 0, 2 },
	{ GSR_OP_MAD, alu_float_select, FLOATS, 3, 0, 0, 2 },
	{ GSR_OP_FMA, alu_float_select, FLOATS, 3, 0, 0, 2 },
	{ GSR_OP_DIV, alu_float_select, FLOATS | C_APPROX, 2, 0, 0, 2 },
	{ GSR_OP_ABS, alu_float_select, C_TYPE | C_FTZ, 1, 0, 0, 2 },
	{ GSR_OP_NEG, alu_float_select, C_TYPE | C_FTZ, 1, 0, 0, 2 },
	{ GSR_OP_MIN, alu_float_select, C_TYPE | C_FTZ | C_NAN, 2, 0, 0, 2 },
	{ GSR_OP_MAX, alu_float_select, C_TYPE | C_FTZ | C_NAN, 2, 0, 0, 2 },
	{ GSR_OP_COPYSIGN, alu_float_select, C_TYPE, 2, 0, 0, 2 },
	{ GSR_OP_RCP, alu_float_select, FLOATS | C_APPROX, 1, 0, 0, 2 },
	{ GSR_OP_SQRT, alu_float_select, FLOATS | C_APPROX, 1, 0, 0, 2 },
	{ GSR_OP_RSQRT, alu_float_select, C_TYPE | C_FTZ | C_APPROX, 1, 0, 0, 2 },
	{ GSR_OP_SIN, alu_float_select, C_TYPE | C_FTZ | C_APPROX, 1, 0, 0, 2 },
	{ GSR_OP_COS, alu_float_select, C_TYPE | C_FTZ | C_APPROX, 1, 0, 0, 2 },
	{ GSR_OP_LG2, alu_float_select, C_TYPE | C_FTZ | C_APPROX, 1, 0, 0, 2 },
	{ GSR_OP_EX2, alu_float_select, C_TYPE | C_FTZ | C_APPROX, 1, 0, 0, 2 },
	{ GSR_OP_TANH, alu_float_select, C_TYPE | C_APPROX, 1, 0, 0, 2 },
	{ GSR_OP_ADD, alu_mixed_select, FLOATS, 2, 0, 0, 8 },
	{ GSR_OP_SUB, alu_mixed_select, FLOATS, 2, 0, 0, 8 },
	{ GSR_OP_MUL, alu_mixed_select, FLOATS, 2, 0, 0, 8 },
	{ GSR_OP_FMA, alu_mixed_select, FLOATS, 3, 0, 0, 8 },
	{ GSR_OP_MIN, alu_int_select, C_TYPE | C_RELU, 2, 0, 0, 1 },
	{ GSR_OP_MAX, alu_int_select, C_TYPE | C_RELU, 2, 0, 0, 1 },
	{ GSR_OP_MIN, alu_float_select, C_TYPE | C_FTZ | C_NAN, 3, 0, 0, 2 },
	{ GSR_OP_MAX, alu_float_select, C_TYPE | C_FTZ | C_NAN, 3, 0, 0, 2 },
	{ GSR_OP_ADD, alu_half_select, C_TYPE | C_RND | C_FTZ | C_SAT, 2, 0, 0, 4 },
	{ GSR_OP_SUB, alu_half_select, C_TYPE | C_RND | C_FTZ | C_SAT, 2, 0, 0, 4 },
	{ GSR_OP_MUL, alu_half_select, C_TYPE | C_RND | C_FTZ | C_SAT, 2, 0, 0, 4 },
	{ GSR_OP_FMA, alu_half_select, C_TYPE | C_RND | C_FTZ | C_SAT | C_RELU, 3, 0, 0, 4 },
	{ GSR_OP_ABS, alu_half_select, C_TYPE | C_FTZ, 1, 0, 0, 4 },
	{ GSR_OP_NEG, alu_half_select, C_TYPE | C_FTZ, 1, 0, 0, 4 },
	{ GSR_OP_MIN, alu_half_select, C_TYPE | C_FTZ | C_NAN, 2, 0, 0, 4 },
	{ GSR_OP_MAX, alu_half_select, C_TYPE | C_FTZ | C_NAN, 2, 0, 0, 4 },
	{ GSR_OP_EX2, alu_half_select, C_TYPE | C_FTZ | C_APPROX, 1, 0, 0, 4 },
	{ GSR_OP_TANH, alu_half_select, C_TYPE | C_APPROX, 1, 0, 0, 4 },
};

static unsigned int kind_of(enum xtype t)
{
	if (t == T_F16 || t == T_BF16 || t == T_F16X2 || t == T_BF16X2)
		return 4;
	return xtype_float(t) ? 2 : 1;
}

static bool sources(struct dec *d, int32_t *o, unsigned int from, unsigned int n,
		    const struct xmods *md, unsigned int type, unsigned int last)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (!opnd_src(d, &d->insn->opnds[from + i],
			      md->t[i + 1 == n ? last : type], &o[1 + i]))
			return false;
	return true;
}

/* not.pred, and.pred, or.pred, xor.pred */
static enum xresult x_pred_logic(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	uint32_t a = pred(x, in->p[1]), b = in->p[2] == NO_OPND ? 0 : pred(x, in->p[2]);

	pred_set(x, in->p[0], m, in->op == A_AND ? a & b : in->op == A_OR ? a | b :
		 in->op == A_XOR ? a ^ b : ~a);
	return X_NEXT;
}

static bool pred_logic(struct dec *d)
{
	const struct gsr_insn *i = d->insn;
	unsigned int n = i->op == GSR_OP_NOT ? 1 : 2, k;
	struct xinsn *in;
	int32_t p[3] = { NO_OPND, NO_OPND, NO_OPND };

	if (i->n_opnds != n + 1 || !opnd_pred_dst(d, &i->opnds[0], &p[0]))
		return false;
	for (k = 0; k < n; k++)
		if (!opnd_pred(d, &i->opnds[k + 1], &p[k + 1]))
			return false;
	in = dec_emit(d, x_pred_logic);
	if (!in)
		return false;
	memcpy(in->p, p, sizeof(p));
	in->op = i->op == GSR_OP_AND ? A_AND : i->op == GSR_OP_OR ? A_OR : i->op == GSR_OP_XOR ?
		 A_XOR : A_NONE;
	return true;
}

static bool alu(struct dec *d)
{
	const struct gsr_insn *i = d->insn;
	int32_t o[9] = { 0 };
	struct xinsn *in;
	struct xmods md;
	size_t k;
	xfn *fn;

	for (k = 0; k < sizeof(alus) / sizeof(*alus); k++) {
		const struct alu *a = &alus[k];

		if (a->op != i->op || i->n_opnds != a->srcs + 1u || !mods_parse(i, a->allow, &md) ||
		    !md.n_types)
			continue;
		if (md.t[0] == T_PRED && a->select == alu_bits_select)
			return pred_logic(d);
		if (!(a->kinds & (kind_of(md.t[a->type < md.n_types ? a->type : 0]) | 8)))
			continue;
		/* three to choose from there are of f32 only */
		if ((i->op == GSR_OP_MIN || i->op == GSR_OP_MAX) && a->srcs == 3 &&
		    md.t[0] != T_F32)
			continue;
		/* cppcheck-suppress AssignmentIntegerToAddress ; a macro hides the pointer */
		fn = a->select(i->op, &md);
		if (!fn)
			continue;
		if (!opnd_dst(d, &i->opnds[0], &o[0]) ||
		    !sources(d, o, 1, a->srcs, &md, a->type, a->last_type))
			return false;
		in = dec_emit(d, fn);
		if (!in)
			return false;
		dec_fill(in, &md);
		memcpy(in->o, o, sizeof(o));
		in->n = a->srcs;
		if (a->kinds == 8)
			in->mode = (uint8_t)i->op;
		return true;
	}
	if (i->op == GSR_OP_SET)
		return dec_set_half(d);
	return i->op == GSR_OP_LOP3 ? dec_lop3_bool(d) : dec_unknown(d);
}

static bool setp(struct dec *d, const struct xmods *md)
{
	const struct gsr_insn *i = d->insn;
	int32_t o[9] = { 0 }, p[4] = { NO_OPND, NO_OPND, NO_OPND, NO_OPND };
	xfn *fn = md->t[0] == T_F16X2 || md->t[0] == T_BF16X2 ? x_setp_x2 :
		  alu_cmp_select(GSR_OP_SETP, md);
	unsigned int n = md->op ? 4 : 3;
	struct xinsn *in;

	if (!fn || md->n_types != 1 || !md->cmp || i->n_opnds != n ||
	    (md->op && md->op != A_AND && md->op != A_OR && md->op != A_XOR))
		return dec_unknown(d);
	if (i->opnds[0].kind == GSR_OPND_PAIR) {
		if (!opnd_pred_dst(d, &i->opnds[0].items[0], &p[0]) ||
		    !opnd_pred_dst(d, &i->opnds[0].items[1], &p[1]))
			return false;
	} else if (!opnd_pred_dst(d, &i->opnds[0], &p[0])) {
		return false;
	}
	if (!sources(d, o, 1, 2, md, 0, 0) || (md->op && !opnd_pred(d, &i->opnds[3], &p[2])))
		return false;
	in = dec_emit(d, fn);
	if (!in)
		return false;
	dec_fill(in, md);
	memcpy(in->o, o, sizeof(o));
	memcpy(in->p, p, sizeof(p));
	return true;
}

static bool selp(struct dec *d, const struct xmods *md)
{
	const struct gsr_insn *i = d->insn;
	xfn *fn = alu_cmp_select(GSR_OP_SELP, md);
	int32_t o[3], p;
	struct xinsn *in;

	if (!fn || i->n_opnds != 4)
		return dec_unknown(d);
	if (!opnd_dst(d, &i->opnds[0], &o[0]) || !sources(d, o, 1, 2, md, 0, 0) ||
	    !opnd_pred(d, &i->opnds[3], &p))
		return false;
	in = dec_emit(d, fn);
	if (!in)
		return false;
	dec_fill(in, md);
	memcpy(in->o, o, sizeof(o));
	in->p[0] = p;
	return true;
}

static bool testp(struct dec *d, const struct xmods *md)
{
	static const char *const kinds[] = { "finite", "infinite", "number", "notanumber", "normal",
					     "subnormal" };
	const struct gsr_insn *i = d->insn;
	xfn *fn = alu_cmp_select(GSR_OP_TESTP, md);
	struct xinsn *in;
	int32_t p, o;
	unsigned int k;

	for (k = 0; k < 6 && (!md->word || strcmp(kinds[k], md->word)); k++)
		;
	if (!fn || k == 6 || i->n_opnds != 2)
		return dec_unknown(d);
	if (!opnd_pred_dst(d, &i->opnds[0], &p) || !opnd_src(d, &i->opnds[1], md->t[0], &o))
		return false;
	in = dec_emit(d, fn);
	if (!in)
		return false;
	dec_fill(in, md);
	in->p[0] = p;
	in->o[1] = o;
	in->mode = (uint8_t)k;
	return true;
}

/* mov.v4.u32 v, %tid: sources first, a vector may be both sides */
static bool mov_vector(struct dec *d, const struct xmods *md)
{
	const struct gsr_insn *i = d->insn;
	int32_t from[8], tmp[8], to;
	struct xinsn *in;
	unsigned int k;

	if (i->n_opnds != 2 || md->n_types != 1 || md->vec > 4 || md->t[0] == T_B128 ||
	    md->t[0] == T_PRED)
		return dec_unknown(d);
	for (k = 0; k < md->vec; k++) {
		if (!opnd_element(d, &i->opnds[1], k, false, &from[k]))
			return false;
		in = dec_emit_plain(d, x_mov);
		if (!in)
			return false;
		in->o[0] = tmp[k] = dec_temp(d);
		in->o[1] = from[k];
	}
	for (k = 0; k < md->vec; k++) {
		if (!opnd_element(d, &i->opnds[0], k, true, &to))
			return false;
		in = dec_emit(d, x_mov);
		if (!in)
			return false;
		in->o[0] = to;
		in->o[1] = tmp[k];
	}
	return true;
}

/* Whole 128-bit registers, or one from or to its two halves */
static bool mov_wide(struct dec *d)
{
	const struct gsr_operand *side[2] = { &d->insn->opnds[0], &d->insn->opnds[1] };
	int32_t row[2][2];
	unsigned int s, k;
	struct xinsn *in;

	for (s = 0; s < 2; s++) {
		if (side[s]->kind == GSR_OPND_VEC) {
			if (side[s]->n_items != 2)
				return dec_unknown(d);
			for (k = 0; k < 2; k++)
				if (!(s ? opnd_src(d, &side[s]->items[k], T_B64, &row[s][k]) :
				      opnd_dst(d, &side[s]->items[k], &row[s][k])))
					return false;
		} else {
			if (!opnd_wide(d, side[s], &row[s][0]))
				return false;
			row[s][1] = row[s][0] + 1;
		}
	}
	for (k = 0; k < 2; k++) {
		in = dec_emit(d, x_mov);
		if (!in)
			return false;
		in->o[0] = row[0][k];
		in->o[1] = row[1][k];
	}
	return true;
}

static bool mov(struct dec *d, const struct xmods *md)
{
	const struct gsr_insn *i = d->insn;
	const struct gsr_operand *a = &i->opnds[0], *b = &i->opnds[1], *v;
	int32_t o[9] = { 0 }, p[2];
	struct xinsn *in;
	unsigned int k;
	bool pack;

	if (i->n_opnds != 2 || md->n_types != 1)
		return dec_unknown(d);
	if (md->t[0] == T_PRED) {
		if (!opnd_pred_dst(d, a, &p[0]) || !opnd_pred(d, b, &p[1]))
			return false;
		in = dec_emit(d, x_mov_pred);
		if (in)
			memcpy(in->p, p, sizeof(p));
		return in;
	}
	if (a->kind == GSR_OPND_VEC && b->kind == GSR_OPND_VEC)
		return dec_unknown(d);
	if (md->t[0] == T_B128)
		return mov_wide(d);
	if (a->kind != GSR_OPND_VEC && b->kind != GSR_OPND_VEC) {
		if (!opnd_dst(d, a, &o[0]) || !opnd_src(d, b, md->t[0], &o[1]))
			return false;
		in = dec_emit(d, x_mov);
		if (in)
			memcpy(in->o, o, sizeof(o));
		return in;
	}
	pack = b->kind == GSR_OPND_VEC;
	v = pack ? b : a;
	if ((v->n_items != 2 && v->n_items != 4 && v->n_items != 8) ||
	    xtype_size(md->t[0]) < v->n_items)
		return dec_unknown(d);
	/* the whole in o[0], its parts behind it */
	if (!(pack ? opnd_dst(d, a, &o[0]) : opnd_src(d, b, md->t[0], &o[0])))
		return false;
	for (k = 0; k < v->n_items; k++)
		if (!(pack ? opnd_src(d, &v->items[k], T_B64, &o[k + 1]) :
		      opnd_dst(d, &v->items[k], &o[k + 1])))
			return false;
	in = dec_emit(d, pack ? x_mov_pack : x_mov_unpack);
	if (!in)
		return false;
	dec_fill(in, md);
	in->n = (uint8_t)v->n_items;
	memcpy(in->o, o, sizeof(o));
	return true;
}

/* ld, st: the vector in o[1..], the address in o[0] */
static bool ld_st(struct dec *d, const struct xmods *md, bool store)
{
	const struct gsr_insn *i = d->insn;
	const struct gsr_operand *a = &i->opnds[store ? 0 : 1], *v = &i->opnds[store ? 1 : 0];
	xfn *fn = store ? mem_st_select(md) : mem_ld_select(md);
	unsigned int n = md->vec ? md->vec : 1, k;
	bool wide = md->t[0] == T_B128 && !md->vec;
	int32_t o[9] = { 0 };
	struct xinsn *in;
	int64_t imm;
	bool a32;

	if (!fn || i->n_opnds < 2 || i->n_opnds > 2u + !!(md->flags & F_HINT) || md->n_types != 1 ||
	    (v->kind == GSR_OPND_VEC && v->n_items != n) || n * xtype_size(md->t[0]) > 32)
		return dec_unknown(d);
	if (!opnd_addr(d, a, &o[0], &imm, &a32))
		return false;
	if (wide && !opnd_wide(d, v, &o[1]))
		return false;
	for (k = 0; !wide && k < n; k++) {
		const struct gsr_operand *e = v->kind == GSR_OPND_VEC ? &v->items[k] : v;

		if (n > 1 && v->kind != GSR_OPND_VEC ? !opnd_element(d, v, k, !store, &o[k + 1]) :
		    store ? !opnd_src(d, e, md->t[0], &o[k + 1]) : !opnd_dst(d, e, &o[k + 1]))
			return false;
	}
	in = dec_emit(d, fn);
	if (!in)
		return false;
	dec_fill(in, md);
	in->n = (uint8_t)n;
	in->imm = imm;
	in->a32 = a32;
	memcpy(in->o, o, sizeof(o));
	if (wide) {
		in->o[2] = o[1] + 1;
		in->n = 2;
		in->type = T_B64;
		in->size = 8;
	}
	return true;
}

static bool unary(struct dec *d, xfn *fn, const struct xmods *md)
{
	const struct gsr_insn *i = d->insn;
	int32_t o[2];
	struct xinsn *in;

	if (!fn || i->n_opnds != 2)
		return dec_unknown(d);
	if (!opnd_dst(d, &i->opnds[0], &o[0]) || !opnd_src(d, &i->opnds[1], md->t[0], &o[1]))
		return false;
	in = dec_emit(d, fn);
	if (!in)
		return false;
	dec_fill(in, md);
	memcpy(in->o, o, sizeof(o));
	return true;
}

static bool isspacep(struct dec *d, const struct xmods *md)
{
	const struct gsr_insn *i = d->insn;
	struct xinsn *in;
	int32_t p, o;

	if (md->space == S_NONE || i->n_opnds != 2)
		return dec_unknown(d);
	if (!opnd_pred_dst(d, &i->opnds[0], &p) || !opnd_src(d, &i->opnds[1], T_U64, &o))
		return false;
	in = dec_emit(d, x_isspacep);
	if (!in)
		return false;
	dec_fill(in, md);
	in->p[0] = p;
	in->o[1] = o;
	return true;
}

static bool bar(struct dec *d)
{
	const struct gsr_insn *i = d->insn;
	unsigned int n = i->n_opnds, k, at = 0, srcs;
	int32_t o[9] = { 0, NO_OPND, NO_OPND }, p[4] = { NO_OPND, NO_OPND, NO_OPND, NO_OPND };
	struct xinsn *in;
	struct xmods md;
	xfn *fn;

	if (!mods_parse(i, C_BAR | C_SYNC | C_OP | C_TYPE, &md))
		return dec_unknown(d);
	if (md.flags & F_WARP) {
		if (n != 1 || !(md.flags & F_SYNC) || !opnd_src(d, &i->opnds[0], T_B32, &o[1]))
			return d->failed ? false : dec_unknown(d);
		in = dec_emit(d, x_warp_sync);
		if (in)
			memcpy(in->o, o, sizeof(o));
		return in;
	}
	if (i->op == GSR_OP_BAR)
		md.flags |= F_ALIGNED;
	fn = md.flags & F_SYNC ? x_bar_sync : md.flags & F_ARRIVE ? x_bar_arrive :
	     md.flags & F_RED ? x_bar_red : NULL;
	if (!fn)
		return dec_unknown(d);
	if (fn == x_bar_red) {
		if (n < 3 || n > 4 || !(md.op == A_POPC ? md.t[0] == T_U32 : md.t[0] == T_PRED))
			return dec_unknown(d);
		if (!(md.op == A_POPC ? opnd_dst(d, &i->opnds[0], &o[0]) :
		      opnd_pred_dst(d, &i->opnds[0], &p[0])) ||
		    !opnd_pred(d, &i->opnds[n - 1], &p[1]))
			return false;
		at = 1;
	} else if (md.op || md.n_types) {
		return dec_unknown(d);
	}
	srcs = n - 2 * at;
	if (srcs < (fn == x_bar_arrive ? 2u : 1u) || srcs > 2)
		return dec_unknown(d);
	for (k = 0; k < srcs; k++)
		if (!opnd_src(d, &i->opnds[at + k], T_U32, &o[k + 1]))
			return false;
	in = dec_emit(d, fn);
	if (!in)
		return false;
	dec_fill(in, &md);
	memcpy(in->o, o, sizeof(o));
	memcpy(in->p, p, sizeof(p));
	return true;
}

/* shfl, vote, match, redux: destination (with predicate), sources, mask last */
static bool warp_op(struct dec *d)
{
	const struct gsr_insn *i = d->insn;
	int32_t o[9] = { 0, NO_OPND, NO_OPND, NO_OPND, NO_OPND },
		p[4] = { NO_OPND, NO_OPND, NO_OPND, NO_OPND };
	const struct gsr_operand *dest = i->opnds;
	unsigned int k, n;
	struct xinsn *in;
	struct xmods md;
	bool ok;
	xfn *fn;

	if (!mods_parse(i, C_SYNC | C_TYPE | C_MODE | C_OP | (i->op == GSR_OP_REDUX ? C_NAN : 0),
			&md) || !(md.flags & F_SYNC) || md.n_types != 1)
		return dec_unknown(d);
	switch (i->op) {
	case GSR_OP_SHFL:
		fn = x_shfl, n = 4;
		ok = md.mode >= V_UP && md.mode <= V_IDX && md.t[0] == T_B32;
		break;
	case GSR_OP_VOTE:
		fn = x_vote, n = 2;
		ok = md.mode == V_BALLOT ? md.t[0] == T_B32 : md.mode >= V_ALL && md.t[0] == T_PRED;
		break;
	case GSR_OP_MATCH:
		fn = x_match, n = 2;
		ok = (md.mode == V_ANY || md.mode == V_ALL) &&
		     (md.t[0] == T_B32 || md.t[0] == T_B64);
		break;
	default:
		fn = x_redux, n = 2;
		ok = md.t[0] == T_F32 ? (md.op == A_MIN || md.op == A_MAX) &&
		     !(md.flags & F_XORSIGN) :
			md.flags & (F_NAN | F_ABS) ? false :
				(md.t[0] == T_U32 || md.t[0] == T_S32) ? md.op == A_ADD ||
					md.op == A_MIN || md.op == A_MAX :
			md.t[0] == T_B32 && (md.op == A_AND || md.op == A_OR || md.op == A_XOR);
	}
	if (!ok || i->n_opnds != n + 1)
		return dec_unknown(d);
	if (dest->kind == GSR_OPND_PAIR) {
		if (!opnd_pred_dst(d, &dest->items[1], &p[0]))
			return false;
		dest = &dest->items[0];
	}
	if (i->op == GSR_OP_VOTE && md.mode != V_BALLOT ? !opnd_pred_dst(d, dest, &p[0]) :
	    !opnd_dst(d, dest, &o[0]))
		return false;
	for (k = 0; k < n; k++) {
		const struct gsr_operand *s = &i->opnds[k + 1];

		if (i->op == GSR_OP_VOTE && !k ? !opnd_pred(d, s, &p[1]) :
		    !opnd_src(d, s, T_B64, &o[k + 1]))
			return false;
	}
	o[8] = o[n];	/* the mask, where all of them look for it */
	in = dec_emit(d, fn);
	if (!in)
		return false;
	dec_fill(in, &md);
	memcpy(in->o, o, sizeof(o));
	memcpy(in->p, p, sizeof(p));
	return true;
}

static bool elect(struct dec *d)
{
	const struct gsr_insn *i = d->insn;
	int32_t o[2], p;
	struct xinsn *in;

	if (i->n_mods != 1 || strcmp(i->mods[0], "sync") || i->n_opnds != 2 ||
	    i->opnds[0].kind != GSR_OPND_PAIR)
		return dec_unknown(d);
	if (!opnd_dst(d, &i->opnds[0].items[0], &o[0]) ||
	    !opnd_pred_dst(d, &i->opnds[0].items[1], &p) ||
	    !opnd_src(d, &i->opnds[1], T_B32, &o[1]))
		return false;
	in = dec_emit(d, x_elect);
	if (!in)
		return false;
	memcpy(in->o, o, sizeof(o));
	in->o[8] = o[1];
	in->p[0] = p;
	return true;
}

/* brx.idx i, table */
static bool brx(struct dec *d, xfn *fn)
{
	const struct gsr_insn *i = d->insn;
	const struct name *n;
	const char *s;
	struct xtable *t;
	struct xinsn *in;
	unsigned int count = 1;
	int32_t row;

	if (i->n_opnds != 2 || !i->opnds[1].name || !i->n_mods || strcmp(i->mods[0], "idx"))
		return dec_unknown(d);
	n = dec_name(d, i->opnds[1].name, d->scope);
	if (!n || n->kind != NAME_TABLE)
		return dec_fail(d, "no .branchtargets %s", i->opnds[1].name);
	s = strstr(n->text, ".branchtargets") + strlen(".branchtargets");
	for (const char *c = s; *c; c++)
		count += *c == ',';
	t = dec_alloc(d, sizeof(*t) + count * sizeof(*t->pc));
	if (!t || !opnd_src(d, &i->opnds[0], T_U32, &row))
		return false;
	while (t->n < count) {
		size_t len;
		char *label;

		s += strspn(s, " \t\r\n,;");
		len = strcspn(s, " \t\r\n,;");
		if (!len)
			break;
		label = dec_alloc(d, len + 1);
		if (!label)
			return false;
		memcpy(label, s, len);
		if (!dec_fixup(d, t->n++, t, label))
			return false;
		s += len;
	}
	in = dec_emit(d, fn);
	if (!in)
		return false;
	in->ext = t;
	in->o[1] = row;
	return true;
}

static bool control(struct dec *d)
{
	const struct gsr_insn *i = d->insn;
	struct xinsn *in;
	struct xmods md;
	xfn *fn;

	if (i->op == GSR_OP_BRX) {
		memset(&md, 0, sizeof(md));
		return brx(d, exec_control_select(i->op, &md));
	}
	if (!mods_parse(i, C_UNI, &md))
		return dec_unknown(d);
	if (i->op == GSR_OP_CALL)
		return opnd_call(d);
	fn = i->op == GSR_OP_RET ? x_ret : exec_control_select(i->op, &md);
	if (!fn || i->n_opnds != (i->op == GSR_OP_BRA ? 1u : 0u))
		return dec_unknown(d);
	in = dec_emit(d, fn);
	if (!in)
		return false;
	if (i->op == GSR_OP_BRA) {
		if (!i->opnds[0].name)
			return dec_unknown(d);
		return dec_fixup(d, (uint32_t)(in - d->k->code), NULL, i->opnds[0].name);
	}
	return true;
}

static bool nanosleep_(struct dec *d, xfn *fn)
{
	int32_t row;

	if (d->insn->n_opnds != 1)
		return dec_unknown(d);
	return opnd_src(d, &d->insn->opnds[0], T_U32, &row) && dec_emit(d, fn);
}

bool dec_insn(struct dec *d)
{
	const struct gsr_insn *i = d->insn;
	struct xinsn *in;
	struct xmods md;
	int32_t row;

#define PARSE(classes) (mods_parse(i, (classes), &md) ? true : dec_unknown(d))
	switch (i->op) {
	case GSR_OP_MOV:
		return PARSE(C_TYPE | C_VEC) && (md.vec ? mov_vector(d, &md) : mov(d, &md));
	case GSR_OP_LD:
	case GSR_OP_LDU:
		return PARSE(C_TYPE | C_SPACE | C_VEC | C_SEM | C_CACHE) && ld_st(d, &md, false);
	case GSR_OP_ST:
		return PARSE(C_TYPE | C_SPACE | C_VEC | C_SEM | C_CACHE) && ld_st(d, &md, true);
	case GSR_OP_ATOM:
	case GSR_OP_RED:
		return dec_atom(d);
	case GSR_OP_CVTA:
		return PARSE(C_TYPE | C_SPACE | C_TO) && md.n_types &&
		       unary(d, mem_cvta_select(&md), &md);
	case GSR_OP_CVT:
		return dec_cvt(d);
	case GSR_OP_ISSPACEP:
		return PARSE(C_SPACE) && isspacep(d, &md);
	case GSR_OP_CP:
		return dec_cp(d);
	case GSR_OP_ALLOCA:
	case GSR_OP_STACKSAVE:
	case GSR_OP_STACKRESTORE:
		return dec_stack(d);
	case GSR_OP_MAPA:
	case GSR_OP_GETCTARANK:
	case GSR_OP_GRIDDEPCONTROL:
	case GSR_OP_SETMAXNREG:
		return dec_cluster(d);
	case GSR_OP_TEX:
	case GSR_OP_TLD4:
	case GSR_OP_TXQ:
	case GSR_OP_SULD:
	case GSR_OP_SUST:
	case GSR_OP_SURED:
	case GSR_OP_SUQ:
		return dec_tex(d);
	case GSR_OP_MMA:
		return dec_mma(d);
	case GSR_OP_WGMMA:
		return dec_wgmma(d);
	case GSR_OP_WMMA:
		return dec_wmma(d);
	case GSR_OP_LDMATRIX:
	case GSR_OP_STMATRIX:
		return dec_ldmatrix(d);
	case GSR_OP_MOVMATRIX:
		return dec_movmatrix(d);
	case GSR_OP_MBARRIER:
		return dec_mbarrier(d);
	case GSR_OP_SETP:
		return PARSE(C_TYPE | C_CMP | C_OP | C_FTZ) && setp(d, &md);
	case GSR_OP_SELP:
		return PARSE(C_TYPE) && selp(d, &md);
	case GSR_OP_TESTP:
		return PARSE(C_TYPE | C_WORD) && testp(d, &md);
	case GSR_OP_BRA:
	case GSR_OP_BRX:
	case GSR_OP_CALL:
	case GSR_OP_RET:
	case GSR_OP_EXIT:
	case GSR_OP_TRAP:
	case GSR_OP_BRKPT:
		return control(d);
	case GSR_OP_BAR:
	case GSR_OP_BARRIER:
		return bar(d);
	case GSR_OP_SHFL:
	case GSR_OP_VOTE:
	case GSR_OP_MATCH:
	case GSR_OP_REDUX:
		return warp_op(d);
	case GSR_OP_ELECT:
		return elect(d);
	case GSR_OP_ACTIVEMASK:
		if (!PARSE(C_TYPE) || i->n_opnds != 1 || !opnd_dst(d, &i->opnds[0], &row))
			return false;
		in = dec_emit(d, x_activemask);
		if (in)
			in->o[0] = row;
		return in;
	case GSR_OP_MEMBAR:
	case GSR_OP_FENCE:
		return dec_fence(d);
	case GSR_OP_NANOSLEEP:
		return PARSE(C_TYPE) && nanosleep_(d, exec_control_select(i->op, &md));
	case GSR_OP_PREFETCH:
	case GSR_OP_PREFETCHU:
	case GSR_OP_APPLYPRIORITY:
	case GSR_OP_DISCARD:
	case GSR_OP_PMEVENT:
		return dec_hint(d);
	case GSR_OP_CREATEPOLICY:
		return dec_policy(d);
	case GSR_OP_UNKNOWN:
		return dec_unknown(d);
	default:
		return i->op >= GSR_OP_VADD && i->op <= GSR_OP_VSET4 ? dec_video(d) : alu(d);
	}
#undef PARSE
}
