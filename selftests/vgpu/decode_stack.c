// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * alloca and the stack pointer; and what a kernel may say of its place among others: here a block
 * is a cluster of its own, a grid waits for those before it, and registers are as many as it likes.
 */
#include "decode.h"

bool dec_stack(struct dec *d)
{
	const struct gsr_insn *i = d->insn;
	bool is_alloca = i->op == GSR_OP_ALLOCA, save = i->op == GSR_OP_STACKSAVE;
	int32_t o[2] = { 0 };
	int64_t align = 8;
	struct xinsn *in;

	if (i->n_mods != 1 || strcmp(i->mods[0], "u64") ||
	    (is_alloca ? i->n_opnds < 2 || i->n_opnds > 3 : i->n_opnds != 1))
		return dec_unknown(d);
	if (is_alloca && i->n_opnds == 3) {
		align = i->opnds[2].ival;
		if (i->opnds[2].kind != GSR_OPND_INT || align < 1 || align > 4096 ||
		    align & (align - 1))
			return dec_unknown(d);
	}
	if (is_alloca || save ? !opnd_dst(d, &i->opnds[0], &o[0]) :
	    !opnd_src(d, &i->opnds[0], T_U64, &o[1]))
		return false;
	if (is_alloca && !opnd_src(d, &i->opnds[1], T_U64, &o[1]))
		return false;
	in = dec_emit(d, is_alloca ? x_alloca : save ? x_stacksave : x_stackrestore);
	if (!in)
		return false;
	memcpy(in->o, o, sizeof(o));
	in->imm = align;
	in->ext = d->f;
	return true;
}

static bool registers(struct dec *d)
{
	const struct gsr_insn *i = d->insn;

	if (i->n_mods != 4 || (strcmp(i->mods[0], "inc") && strcmp(i->mods[0], "dec")) ||
	    strcmp(i->mods[1], "sync") || strcmp(i->mods[2], "aligned") ||
	    strcmp(i->mods[3], "u32") || i->n_opnds != 1 || i->opnds[0].kind != GSR_OPND_INT ||
	    i->opnds[0].ival < 24 || i->opnds[0].ival > 256 || i->opnds[0].ival % 8)
		return dec_unknown(d);
	return dec_emit(d, x_prefetch);
}

/* mapa d, a, rank: the address in the block of this rank, which must be 0 */
static enum xresult x_mapa(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	const uint64_t *a = src(x, in->o[1]), *rank = src(x, in->o[2]);
	uint64_t *d = dst(x, in->o[0]);

	for (; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);

		if ((uint32_t)rank[i])
			return exec_fault(x, in, "block %u of a cluster of one", (uint32_t)rank[i]);
		d[i] = a[i];
	}
	return X_NEXT;
}

static bool cluster_address(struct dec *d)
{
	const struct gsr_insn *i = d->insn;
	bool shared = i->n_mods == 2 && !strcmp(i->mods[0], "shared::cluster"),
		mapa = i->op == GSR_OP_MAPA;
	enum xtype t = i->n_mods ? xtype_parse(i->mods[i->n_mods - 1]) : T_NONE;
	int32_t o[3] = { 0 };
	struct xinsn *in;

	if (i->n_mods != 1u + shared || (t != T_U32 && t != T_U64) || i->n_opnds != 2u + mapa)
		return dec_unknown(d);
	if (!opnd_dst(d, &i->opnds[0], &o[0]) || !opnd_src(d, &i->opnds[1], t, &o[1]) ||
	    (mapa && !opnd_src(d, &i->opnds[2], T_U32, &o[2])))
		return false;
	in = dec_emit(d, mapa ? x_mapa : x_mov);
	if (!in)
		return false;
	memcpy(in->o, o, sizeof(o));
	if (!mapa)
		in->o[1] = dec_const(d, 0);
	return in->o[1] != NO_OPND;
}

bool dec_cluster(struct dec *d)
{
	const struct gsr_insn *i = d->insn;

	switch (i->op) {
	case GSR_OP_SETMAXNREG: return registers(d);
	case GSR_OP_GRIDDEPCONTROL:
		if (i->n_mods != 1 || (strcmp(i->mods[0], "wait") &&
				       strcmp(i->mods[0], "launch_dependents")) || i->n_opnds)
			return dec_unknown(d);
		return dec_emit(d, x_prefetch);
	default: return cluster_address(d);
	}
}
