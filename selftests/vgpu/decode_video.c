// SPDX-License-Identifier: LGPL-2.1-or-later
/* Video instructions: operations, types and the selectors of operands. */
#include "alu_video.h"
#include "decode.h"

static const struct {
	enum gsr_opcode insn;
	enum vop op;
	uint8_t lanes;
} ops[] = {
	{ GSR_OP_VADD, VO_ADD, 0 }, { GSR_OP_VSUB, VO_SUB, 0 }, { GSR_OP_VABSDIFF, VO_ABSDIFF, 0 },
	{ GSR_OP_VMIN, VO_MIN, 0 },
	{ GSR_OP_VMAX, VO_MAX, 0 }, { GSR_OP_VSHL, VO_SHL, 0 }, { GSR_OP_VSHR, VO_SHR, 0 },
	{ GSR_OP_VMAD, VO_MAD, 0 },
	{ GSR_OP_VSET, VO_SET, 0 }, { GSR_OP_VADD2, VO_ADD, 2 }, { GSR_OP_VSUB2, VO_SUB, 2 },
	{ GSR_OP_VAVRG2, VO_AVRG, 2 },
	{ GSR_OP_VABSDIFF2, VO_ABSDIFF, 2 }, { GSR_OP_VMIN2, VO_MIN, 2 },
	{ GSR_OP_VMAX2, VO_MAX, 2 }, { GSR_OP_VSET2, VO_SET, 2 },
	{ GSR_OP_VADD4, VO_ADD, 4 }, { GSR_OP_VSUB4, VO_SUB, 4 }, { GSR_OP_VAVRG4, VO_AVRG, 4 },
	{ GSR_OP_VABSDIFF4, VO_ABSDIFF, 4 }, { GSR_OP_VMIN4, VO_MIN, 4 },
	{ GSR_OP_VMAX4, VO_MAX, 4 }, { GSR_OP_VSET4, VO_SET, 4 },
};

/* Types in order; after them what else there is, in order too */
static bool modifiers(const struct gsr_insn *i, struct xvideo *v)
{
	static const char *const cmps[] = { "eq", "ne", "lt", "le", "gt", "ge" };
	unsigned int at = 0, n = v->op == VO_SET ? 2 : 3, k;
	bool *is_signed[] = { &v->dsigned, &v->asigned, &v->bsigned };

#define TAKE(text) (at < i->n_mods && !strcmp(i->mods[at], (text)) ? at++, true : false)
	for (k = 3 - n; k < 3; k++) {
		bool s = TAKE("s32");

		if (!s && !TAKE("u32"))
			return false;
		*is_signed[k] = s;
	}
	if (v->op == VO_SET) {
		for (k = 0; k < 6 && !TAKE(cmps[k]); k++)
			;
		if (k == 6)
			return false;
		v->cmp = (enum xcmp)(X_EQ + k);
	}
	if (v->op == VO_MAD)
		v->plus_one = TAKE("po");
	if (v->op != VO_SET)
		v->sat = TAKE("sat");
	if (v->op == VO_MAD)
		v->shift = TAKE("shr7") ? 7 : TAKE("shr15") ? 15 : 0;
	if (v->op == VO_SHL || v->op == VO_SHR) {
		v->wrap = TAKE("wrap");
		if ((!v->wrap && !TAKE("clamp")) || v->bsigned)
			return false;
	}
	if (v->op != VO_MAD && TAKE("add"))
		v->second = A_ADD;
	else if (v->op != VO_MAD && !v->lanes)
		v->second = TAKE("min") ? A_MIN : TAKE("max") ? A_MAX : A_NONE;
#undef TAKE
	return at == i->n_mods && !(v->lanes && v->sat && v->second);
}

static bool part(const char *s, struct xpart *p)
{
	*p = (struct xpart){ 0, 32 };
	if (!s)
		return true;
	if (s[0] == 'b' && s[1] >= '0' && s[1] <= '3' && !s[2])
		*p = (struct xpart){ (uint8_t)((s[1] - '0') * 8), 8 };
	else if (s[0] == 'h' && s[1] >= '0' && s[1] <= '1' && !s[2])
		*p = (struct xpart){ (uint8_t)((s[1] - '0') * 16), 16 };
	else
		return false;
	return true;
}

/* bxyzw, hxy: the last stands for the first element */
static bool elements(const char *s, unsigned int lanes, unsigned int first, uint8_t *sel)
{
	unsigned int i;

	for (i = 0; i < lanes; i++)
		sel[i] = (uint8_t)(first + i);
	if (!s)
		return true;
	if (s[0] != (lanes == 4 ? 'b' : 'h') || strlen(s) != lanes + 1)
		return false;
	for (i = 0; i < lanes; i++) {
		char c = s[lanes - i];

		if (c < '0' || c >= '0' + (char)(2 * lanes))
			return false;
		sel[i] = (uint8_t)(c - '0');
	}
	return true;
}

static bool mask(const char *s, unsigned int lanes, uint8_t *out)
{
	*out = (uint8_t)((1u << lanes) - 1);
	if (!s)
		return true;
	if (s[0] != (lanes == 4 ? 'b' : 'h') || !s[1])
		return false;
	*out = 0;
	while (*++s) {
		if (*s < '0' || *s >= '0' + (char)lanes)
			return false;
		*out |= (uint8_t)(1u << (*s - '0'));
	}
	return true;
}

/* What stands behind the dot: one letter is taken for a component */
static const char *selector(const struct gsr_operand *o)
{
	return o->selector ? o->selector : o->component ? "?" : NULL;
}

static bool source(struct dec *d, const struct gsr_operand *o, bool is_signed, int32_t *row)
{
	struct gsr_operand plain = *o;

	plain.selector = NULL;
	if (plain.kind == GSR_OPND_REG || plain.kind == GSR_OPND_SYM)
		plain.negated = false;
	return opnd_src(d, &plain, is_signed ? T_S32 : T_U32, row);
}

bool dec_video(struct dec *d)
{
	const struct gsr_insn *i = d->insn;
	const struct gsr_operand *o = i->opnds;
	struct xvideo *v = dec_alloc(d, sizeof(*v));
	struct gsr_operand dest;
	int32_t row[4] = { 0 };
	struct xinsn *in;
	unsigned int k, n;
	bool minus = false, ok;

	if (!v)
		return false;
	for (k = 0; k < sizeof(ops) / sizeof(*ops) && ops[k].insn != i->op; k++)
		;
	if (k == sizeof(ops) / sizeof(*ops))
		return dec_unknown(d);
	v->op = ops[k].op;
	v->lanes = ops[k].lanes;
	if (!modifiers(i, v) || i->n_opnds < 3 || i->n_opnds > 4)
		return dec_unknown(d);
	if (v->lanes)
		ok = mask(selector(&o[0]), v->lanes, &v->mask) &&
		     elements(selector(&o[1]), v->lanes, 0, v->asel) &&
			elements(selector(&o[2]), v->lanes, v->lanes, v->bsel);
	else
		ok = part(selector(&o[0]), &v->d) && part(selector(&o[1]), &v->a) &&
		     part(selector(&o[2]), &v->b);
	/* c is for what merges or has a second operation */
	n = v->lanes || v->op == VO_MAD || v->second || v->d.bits != 32 ? 4 : 3;
	if (!ok || i->n_opnds != n || (v->second && !v->lanes && v->d.bits != 32))
		return dec_unknown(d);
	for (k = 1; k < n; k++)
		minus |= o[k].negated && o[k].name;
	if (v->op == VO_MAD) {
		v->minus_ab = (o[1].negated && o[1].name) != (o[2].negated && o[2].name);
		v->minus_c = o[3].negated && o[3].name;
		if ((v->minus_ab && v->minus_c) || (minus && v->plus_one) || v->d.bits != 32)
			return dec_unknown(d);
	} else if (minus) {
		return dec_unknown(d);
	}
	dest = o[0];
	dest.selector = NULL;
	if (!opnd_dst(d, &dest, &row[0]) || !source(d, &o[1], v->asigned, &row[1]) ||
	    !source(d, &o[2], v->bsigned, &row[2]) ||
	    (n == 4 && !source(d, &o[3], v->dsigned, &row[3])))
		return false;
	in = dec_emit(d, x_video);
	if (!in)
		return false;
	in->ext = v;
	memcpy(in->o, row, sizeof(row));
	return true;
}
