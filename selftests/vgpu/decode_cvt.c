// SPDX-License-Identifier: LGPL-2.1-or-later
/* cvt and cvt.pack. */
#include "decode.h"

static bool pack(struct dec *d)
{
	static const struct {
		const char *name;
		uint8_t bits, is_signed;
	} to[] = { { "u16", 16, 0 }, { "s16", 16, 1 }, { "u8", 8, 0 }, { "s8", 8, 1 },
	{ "u4", 4, 0 }, { "s4", 4, 1 },
		   { "u2", 2, 0 }, { "s2", 2, 1 } };
	const struct gsr_insn *i = d->insn;
	int32_t o[4] = { 0 };
	struct xinsn *in;
	unsigned int k, n, s;

	for (k = 0; k < sizeof(to) / sizeof(*to) &&
	     (i->n_mods < 4 || strcmp(to[k].name, i->mods[2]) != 0); k++)
		;
	if (k == sizeof(to) / sizeof(*to) || strcmp(i->mods[1], "sat") || strcmp(i->mods[3], "s32"))
		return dec_unknown(d);
	n = i->n_mods == 5 && !strcmp(i->mods[4], "b32") ? 4 : 3;
	if (i->n_mods != n + 1 || i->n_opnds != n || (n == 3) != (to[k].bits == 16))
		return dec_unknown(d);
	if (!opnd_dst(d, &i->opnds[0], &o[0]))
		return false;
	for (s = 1; s < n; s++)
		if (!opnd_src(d, &i->opnds[s], T_S32, &o[s]))
			return false;
	in = dec_emit(d, x_cvt_pack);
	if (!in)
		return false;
	in->imm = to[k].bits;
	in->mode = to[k].is_signed;
	memcpy(in->o, o, sizeof(o));
	return true;
}

bool dec_cvt(struct dec *d)
{
	const struct gsr_insn *i = d->insn;
	unsigned int k, n = i->n_opnds;
	int32_t o[9] = { 0 };
	struct xinsn *in;
	struct xmods md;
	bool pair;
	xfn *fn;

	if (i->n_mods && !strcmp(i->mods[0], "pack"))
		return pack(d);
	if (!mods_parse(i, C_TYPE | C_RND | C_FTZ | C_SAT | C_RELU, &md))
		return dec_unknown(d);
	fn = alu_cvt_select(&md);
	if (!fn)
		fn = alu_mini_select(&md);
	/* pairs are made of two f32 */
	pair = md.n_types == 2 && md.t[1] == T_F32 &&
		(md.t[0] == T_F16X2 || md.t[0] == T_BF16X2 ||
		 (md.t[0] >= T_E4M3X2 && md.t[0] <= T_UE8M0X2));
	if (!fn || n != 2u + pair)
		return dec_unknown(d);
	if (!opnd_dst(d, &i->opnds[0], &o[0]))
		return false;
	for (k = 1; k < n; k++)
		if (!opnd_src(d, &i->opnds[k], md.t[1], &o[k]))
			return false;
	in = dec_emit(d, fn);
	if (!in)
		return false;
	dec_fill(in, &md);
	memcpy(in->o, o, sizeof(o));
	return true;
}
