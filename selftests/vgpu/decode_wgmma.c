// SPDX-License-Identifier: LGPL-2.1-or-later
/* wgmma: floating point, dense. */
#include <stdio.h>
#include "decode.h"
#include "exec_mma.h"

static bool order(struct dec *d)
{
	const struct gsr_insn *i = d->insn;
	bool wait = !strcmp(i->mods[0], "wait_group");
	struct xinsn *in;

	if (i->n_mods != 3 || strcmp(i->mods[1], "sync") || strcmp(i->mods[2], "aligned") ||
	    i->n_opnds != wait || (wait && i->opnds[0].kind != GSR_OPND_INT))
		return dec_unknown(d);
	in = dec_emit(d, x_wgmma_order);
	if (in)
		in->flags = F_GATHER;
	return in;
}

static bool immediate(const struct gsr_operand *o, int64_t a, int64_t b, int64_t *out)
{
	*out = o->ival;
	return o->kind == GSR_OPND_INT && (o->ival == a || o->ival == b);
}

bool dec_wgmma(struct dec *d)
{
	static const struct {
		const char *a, *b;
		enum mtype at, bt;
		unsigned int k;
	} types[] = {
		{ "f16", "f16", M_F16, M_F16, 16 }, { "bf16", "bf16", M_BF16, M_BF16, 16 },
		{ "tf32", "tf32", M_TF32, M_TF32, 8 },
		{ "e4m3", "e4m3", M_E4M3, M_E4M3, 32 }, { "e4m3", "e5m2", M_E4M3, M_E5M2, 32 },
		{ "e5m2", "e4m3", M_E5M2, M_E4M3, 32 }, { "e5m2", "e5m2", M_E5M2, M_E5M2, 32 },
	};
	const struct gsr_insn *i = d->insn;
	const struct gsr_operand *o = i->opnds;
	unsigned int m, k, t, n_d, n, at;
	struct xwgmma *g;
	int64_t v[4] = { 0 };
	struct xinsn *in;
	bool half, trans;

	if (i->n_mods && (!strcmp(i->mods[0], "fence") || !strcmp(i->mods[0], "commit_group") ||
			  !strcmp(i->mods[0], "wait_group")))
		return order(d);
	g = dec_alloc(d, sizeof(*g));
	if (!g)
		return false;
	if (i->n_mods != 7 || strcmp(i->mods[0], "mma_async") || strcmp(i->mods[1], "sync") ||
	    strcmp(i->mods[2], "aligned") || sscanf(i->mods[3], "m%un%uk%u", &m, &g->n,
						    &g->k) != 3 || m != 64 || !g->n ||
	    g->n > 256 || g->n % 8)
		return dec_unknown(d);
	for (t = 0; t < sizeof(types) / sizeof(*types) &&
	     (strcmp(types[t].a, i->mods[5]) || strcmp(types[t].b, i->mods[6])); t++)
		;
	half = !strcmp(i->mods[4], "f16");
	if (t == sizeof(types) / sizeof(*types) || g->k != types[t].k ||
	    (!half && strcmp(i->mods[4], "f32")) ||
	    (half && (types[t].at == M_BF16 || types[t].at == M_TF32)))
		return dec_unknown(d);
	g->at = types[t].at;
	g->bt = types[t].bt;
	g->dt = half ? M_F16 : M_F32;
	n_d = half ? g->n / 4 : g->n / 2;
	trans = g->k == 16;
	if (i->n_opnds < 6 || o[0].kind != GSR_OPND_VEC || o[0].n_items != n_d)
		return dec_unknown(d);
	g->a_regs = o[1].kind == GSR_OPND_VEC;
	n = 2 + (trans ? 2 - g->a_regs : 0);
	if (i->n_opnds != 4 + n || (g->a_regs && o[1].n_items != 4))
		return dec_unknown(d);
	for (k = 0; k < n; k++)
		if (!immediate(&o[4 + k], k < 2 ? -1 : 0, 1, &v[k]))
			return dec_unknown(d);
	g->scale_a = (int)v[0];
	g->scale_b = (int)v[1];
	at = 2;
	if (trans && !g->a_regs)
		g->a_trans = v[at++];
	if (trans)
		g->b_trans = v[at];
	for (k = 0; k < n_d; k++)
		if (!opnd_dst(d, &o[0].items[k], &g->d[k]))
			return false;
	for (k = 0; k < (g->a_regs ? 4u : 1u); k++)
		if (!opnd_src(d, g->a_regs ? &o[1].items[k] : &o[1],
			      g->a_regs ? T_B32 : T_B64, &g->a[k]))
			return false;
	if (!opnd_src(d, &o[2], T_B64, &g->b) || !opnd_pred(d, &o[3], &g->scale_d))
		return false;
	in = dec_emit(d, x_wgmma);
	if (!in)
		return false;
	in->ext = g;
	in->flags = F_GATHER;
	return true;
}
