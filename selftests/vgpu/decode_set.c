// SPDX-License-Identifier: LGPL-2.1-or-later
/* set and lop3 where one instruction does what a comparison and another do: made of both. */
#include "decode.h"

static struct xinsn *compare(struct dec *d, const struct xmods *md, int32_t a, int32_t b,
			     int32_t p, int32_t q)
{
	xfn *fn = alu_cmp_select(GSR_OP_SETP, md);
	struct xinsn *in;

	if (!fn) {
		dec_unknown(d);
		return NULL;
	}
	in = dec_emit(d, fn);
	if (!in)
		return NULL;
	dec_fill(in, md);
	in->o[1] = a;
	in->o[2] = b;
	in->p[0] = p;
	in->p[2] = q;
	return in;
}

static bool is_half(enum xtype t)
{
	return t == T_F16 || t == T_BF16 || t == T_F16X2 || t == T_BF16X2;
}

static uint64_t yes(enum xtype t)
{
	switch (t) {
	case T_F32: return f32_bits(1);
	case T_F16: return 0x3c00;
	case T_BF16: return 0x3f80;
	case T_U16:
	case T_S16: return 0xffff;
	case T_U32:
	case T_S32: return 0xffffffff;
	default: return 0;
	}
}

/* set with a predicate, of halves, to halves */
bool dec_set_half(struct dec *d)
{
	const struct gsr_insn *i = d->insn;
	int32_t o[3], q = NO_OPND, p;
	struct xmods md, cmp, sel = { .t = { T_B32 }, .n_types = 1 };
	struct xinsn *in;
	enum xtype from;
	unsigned int k;
	bool pair;

	if (!mods_parse(i, C_TYPE | C_CMP | C_OP | C_FTZ, &md) || md.n_types != 2 || !md.cmp ||
	    i->n_opnds != 3u + (md.op != A_NONE) ||
	    (md.op && md.op != A_AND && md.op != A_OR && md.op != A_XOR))
		return dec_unknown(d);
	from = md.t[1];
	pair = from == T_F16X2 || from == T_BF16X2;
	if (pair ? md.t[0] != from && md.t[0] != T_U32 && md.t[0] != T_S32 : !yes(md.t[0]))
		return dec_unknown(d);
	if (!opnd_dst(d, &i->opnds[0], &o[0]))
		return false;
	for (k = 1; k < 3; k++)
		if (!opnd_src(d, &i->opnds[k], from, &o[k]))
			return false;
	if (md.op && !opnd_pred(d, &i->opnds[3], &q))
		return false;
	if (is_half(from)) {
		in = dec_emit(d, x_set_half);
		if (!in)
			return false;
		dec_fill(in, &md);
		memcpy(in->o, o, sizeof(o));
		in->p[2] = q;
		return true;
	}
	cmp = md;
	cmp.t[0] = from;
	cmp.n_types = 1;
	p = 2 * (int32_t)d->preds++;
	if (!compare(d, &cmp, o[1], o[2], p, q))
		return false;
	in = dec_emit(d, alu_cmp_select(GSR_OP_SELP, &sel));
	if (!in)
		return false;
	in->p[0] = p;
	in->o[0] = o[0];
	in->o[1] = dec_const(d, yes(md.t[0]));
	in->o[2] = dec_const(d, 0);
	return in->o[1] != NO_OPND && in->o[2] != NO_OPND;
}

/* lop3.or.b32 d|p, a, b, c, table, q: p = (d != 0) or q */
bool dec_lop3_bool(struct dec *d)
{
	const struct gsr_insn *i = d->insn;
	const struct gsr_operand *to = i->opnds;
	struct xmods md, cmp = { .t = { T_B32 }, .n_types = 1, .cmp = X_NE };
	int32_t o[5], p, q, zero;
	struct xinsn *in;
	unsigned int k;

	if (!mods_parse(i, C_TYPE | C_OP, &md) || md.n_types != 1 || md.t[0] != T_B32 ||
	    (md.op != A_OR && md.op != A_AND) || i->n_opnds != 6 || to->kind != GSR_OPND_PAIR)
		return dec_unknown(d);
	if (!opnd_dst(d, &to->items[0], &o[0]) || !opnd_pred_dst(d, &to->items[1], &p) ||
	    !opnd_pred(d, &i->opnds[5], &q))
		return false;
	for (k = 1; k < 5; k++)
		if (!opnd_src(d, &i->opnds[k], T_B32, &o[k]))
			return false;
	cmp.op = md.op;
	md.op = A_NONE;
	in = dec_emit(d, alu_bits_select(GSR_OP_LOP3, &md));
	if (!in)
		return false;
	dec_fill(in, &md);
	memcpy(in->o, o, sizeof(o));
	zero = dec_const(d, 0);
	return zero != NO_OPND && compare(d, &cmp, o[0], zero, p, q);
}
