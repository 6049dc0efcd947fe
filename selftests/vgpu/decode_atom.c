// SPDX-License-Identifier: LGPL-2.1-or-later
/* atom and red: on scalars, vectors and 128 bits. */
#include "decode.h"

static bool vector(struct dec *d, const struct xmods *md, bool red, xfn *fn)
{
	const struct gsr_insn *i = d->insn;
	const struct gsr_operand *to = &i->opnds[0], *from = &i->opnds[red ? 1 : 2];
	struct xrows *v = dec_alloc(d, sizeof(*v) + 2 * md->vec * sizeof(*v->row));
	struct xinsn *in;
	unsigned int k;
	int64_t imm;
	int32_t row;
	bool a32;

	if (!v)
		return false;
	if (from->kind != GSR_OPND_VEC || from->n_items != md->vec ||
	    (!red && (to->kind != GSR_OPND_VEC || to->n_items != md->vec)))
		return dec_unknown(d);
	v->n = 2 * md->vec;
	for (k = 0; k < md->vec; k++) {
		v->row[k] = NO_OPND;
		if ((!red && !opnd_dst(d, &to->items[k], &v->row[k])) ||
		    !opnd_src(d, &from->items[k], md->t[0], &v->row[md->vec + k]))
			return false;
	}
	if (!opnd_addr(d, &i->opnds[!red], &row, &imm, &a32))
		return false;
	in = dec_emit(d, fn);
	if (!in)
		return false;
	dec_fill(in, md);
	in->n = (uint8_t)md->vec;
	in->ext = v;
	in->o[0] = row;
	in->imm = imm;
	in->a32 = a32;
	return true;
}

bool dec_atom(struct dec *d)
{
	const struct gsr_insn *i = d->insn;
	bool red = i->op == GSR_OP_RED, a32;
	unsigned int at = red ? 0 : 1, n, k;
	int32_t o[9] = { 0 };
	struct xinsn *in;
	struct xmods md;
	int64_t imm;
	xfn *fn;

	if (!mods_parse(i, C_TYPE | C_SPACE | C_VEC | C_SEM | C_CACHE | C_OP, &md) ||
	    md.n_types != 1)
		return dec_unknown(d);
	fn = atom_select(&md, red);
	n = md.op == A_CAS ? 2 : 1;
	if (!fn || i->n_opnds < at + 1 + n || i->n_opnds > at + 1 + n + !!(md.flags & F_HINT))
		return dec_unknown(d);
	if (md.vec)
		return vector(d, &md, red, fn);
	if (!red && !(md.t[0] == T_B128 ? opnd_wide(d, &i->opnds[0], &o[3]) :
		      opnd_dst(d, &i->opnds[0], &o[3])))
		return false;
	if (!opnd_addr(d, &i->opnds[at], &o[0], &imm, &a32))
		return false;
	for (k = 0; k < n; k++)
		if (!(md.t[0] == T_B128 ? opnd_wide(d, &i->opnds[at + 1 + k], &o[k + 1]) :
		      opnd_src(d, &i->opnds[at + 1 + k], md.t[0], &o[k + 1])))
			return false;
	in = dec_emit(d, fn);
	if (!in)
		return false;
	dec_fill(in, &md);
	in->imm = imm;
	in->a32 = a32;
	memcpy(in->o, o, sizeof(o));
	return true;
}
