// SPDX-License-Identifier: LGPL-2.1-or-later
/* tex, tld4, suld, sust, sured and queries, on objects by handle, and on references by name. */
#include "decode.h"
#include "exec_tex_priv.h"

static bool word_in(const char *s, const char *const *list, unsigned int *which)
{
	unsigned int k;

	for (k = 0; list[k]; k++)
		if (!strcmp(s, list[k])) {
			*which = k;
			return true;
		}
	return false;
}

static struct xtex *tex_new(struct dec *d)
{
	struct xtex *t = dec_alloc(d, sizeof(*t));

	if (t)
		t->resident = NO_OPND;
	return t;
}

static bool geometry(const char *s, struct xtex *t)
{
	static const char *const names[] = { "1d", "2d", "3d", "a1d", "a2d", NULL };
	unsigned int g;

	if (!word_in(s, names, &g))
		return false;
	t->dims = g < 3 ? g + 1 : g - 2;
	t->layered = g >= 3;
	return true;
}

/* Each has a number in the kernel: by that the launch says what is bound to it */
static bool reference(struct dec *d, const char *name, struct xtex *t)
{
	struct vgpu_kernel_info *info = &d->k->info;
	unsigned int i;

	for (i = 0; i < info->n_references && strcmp(info->reference[i], name); i++)
		;
	if (i == sizeof(info->reference) / sizeof(*info->reference))
		return dec_fail(d, "more than %u texture and surface references", i);
	info->reference[i] = name;
	info->n_references += i == info->n_references;
	t->reference = i + 1;
	return true;
}

static bool handle(struct dec *d, const struct gsr_operand *o, struct xtex *t)
{
	const struct name *n = o->name ? dec_name(d, o->name, d->scope) : NULL;
	bool surface, wanted = d->insn->op == GSR_OP_SULD || d->insn->op == GSR_OP_SUST ||
			       d->insn->op == GSR_OP_SURED || d->insn->op == GSR_OP_SUQ;

	if (o->name && (!n || n->kind == NAME_GLOBAL) &&
	    vgpu_module_reference(d->k->module, o->name, &surface) && surface == wanted)
		return reference(d, o->name, t);
	if (!n || n->kind != NAME_REG || n->size != 8 || o->negated)
		return dec_fail(d, "%s is neither a register with a handle nor a reference",
				o->name ? o->name : "operand");
	return opnd_src(d, o, T_U64, &t->handle);
}

/* [h, {x, y, z}], with the layer first if there are layers */
static bool coordinates(struct dec *d, const struct gsr_operand *o, struct xtex *t)
{
	const struct gsr_operand *c = &o->items[1];
	unsigned int n = t->dims + t->layered, have, k;

	if (o->kind != GSR_OPND_ADDR || o->n_items != 2 || o->indexed)
		return dec_unknown(d);
	have = c->kind == GSR_OPND_VEC ? c->n_items : 1;
	if (have < n)
		return dec_unknown(d);
	if (!handle(d, &o->items[0], t))
		return false;
	for (k = 0; k < n; k++) {
		const struct gsr_operand *e = c->kind == GSR_OPND_VEC ? &c->items[k] : c;
		bool layer = t->layered && !k;

		if (!opnd_src(d, e, t->fp_coords && !layer ? T_F32 : T_S32,
			      &t->coord[layer ? 3 : k - t->layered]))
			return false;
	}
	return true;
}

static bool values(struct dec *d, const struct gsr_operand *o, struct xtex *t, bool write)
{
	unsigned int k;

	if (o->kind == GSR_OPND_VEC ? o->n_items != t->n : t->n != 1)
		return dec_unknown(d);
	for (k = 0; k < t->n; k++) {
		const struct gsr_operand *e = o->kind == GSR_OPND_VEC ? &o->items[k] : o;

		if (write ? !opnd_dst(d, e, &t->value[k]) : !opnd_src(d, e, t->type, &t->value[k]))
			return false;
	}
	return true;
}

static bool emit(struct dec *d, xfn *fn, struct xtex *t)
{
	struct xinsn *in = dec_emit(d, fn);

	if (in)
		in->ext = t;
	return in;
}

/* tex{.base,.level,.grad}.geometry.v4.type.coordinates, tld4.component.geometry.v4.type.f32 */
static bool tex(struct dec *d)
{
	static const char *const modes[] = { "base", "level", "grad", NULL },
		*const comps[] = { "r", "g", "b", "a", NULL };
	const struct gsr_insn *i = d->insn;
	const struct gsr_operand *to = &i->opnds[0];
	struct xtex *t = tex_new(d);
	unsigned int at = 0, more = 0, mode = 0;
	bool gather = i->op == GSR_OP_TLD4;
	enum xtype coords;

	if (!t)
		return false;
	if (gather) {
		if (!i->n_mods || !word_in(i->mods[at++], comps, &t->component))
			return dec_unknown(d);
	} else if (i->n_mods && word_in(i->mods[0], modes, &mode)) {
		more = mode;
		at++;
	}
	if (i->n_mods != at + 4 || !geometry(i->mods[at], t) || strcmp(i->mods[at + 1], "v4") ||
	    i->n_opnds != 2 + more || (gather && t->dims != 2))
		return dec_unknown(d);
	t->n = 4;
	t->type = xtype_parse(i->mods[at + 2]);
	coords = xtype_parse(i->mods[at + 3]);
	t->fp_coords = coords == T_F32;
	if ((t->type != T_F32 && t->type != T_U32 && t->type != T_S32 &&
	     (gather || t->type != T_F16)) ||
	    (coords != T_F32 && (coords != T_S32 || gather || more)))
		return dec_unknown(d);
	if (to->kind == GSR_OPND_PAIR) {
		if (!opnd_pred_dst(d, &to->items[1], &t->resident))
			return false;
		to = &to->items[0];
	}
	return values(d, to, t, true) && coordinates(d, &i->opnds[1], t) &&
	       emit(d, gather ? x_tld4 : x_tex, t);
}

/*
 * suld.b.geometry{.cache}{.vec}.type.outside d, [h, c]; sust.b … [h, c], v;
 * sured.b.op.geometry.type.outside [h, c], v
 */
static bool surface(struct dec *d)
{
	static const char *const outsides[] = { "trap", "clamp", "zero", NULL },
		*const caches[] = { "ca", "cg", "cs", "cv", "wb", "wt", NULL };
	static const char *const ops[] = { "add", "min", "max", "and", "or", NULL };
	static const enum xop op[] = { A_ADD, A_MIN, A_MAX, A_AND, A_OR };
	const struct gsr_insn *i = d->insn;
	bool load = i->op == GSR_OP_SULD, reduce = i->op == GSR_OP_SURED;
	struct xtex *t = tex_new(d);
	unsigned int at = 0, k;

	if (!t)
		return false;
	if (i->n_mods < 4 || strcmp(i->mods[at++], "b") || i->n_opnds != 2)
		return dec_unknown(d);
	if (reduce) {
		if (!word_in(i->mods[at++], ops, &k))
			return dec_unknown(d);
		t->op = op[k];
	}
	if (!geometry(i->mods[at++], t))
		return dec_unknown(d);
	if (at < i->n_mods && !reduce && word_in(i->mods[at], caches, &k))
		at++;
	t->n = at < i->n_mods && !strcmp(i->mods[at], "v2") ? 2 : at < i->n_mods &&
	       !strcmp(i->mods[at], "v4") ? 4 : 1;
	at += t->n > 1;
	t->type = at < i->n_mods ? xtype_parse(i->mods[at++]) : T_NONE;
	if (at + 1 != i->n_mods || !word_in(i->mods[at], outsides, &k))
		return dec_unknown(d);
	t->outside = (enum outside)k;
	if (reduce) {
		bool bits = t->op == A_AND || t->op == A_OR;

		if (t->n != 1 || (bits ? t->type != T_B32 : t->type != T_U32 && t->type != T_S32 &&
				  t->type != T_U64 && (t->op == A_ADD || t->type != T_S64)))
			return dec_unknown(d);
	} else if (t->type < T_B8 || t->type > T_B64 || t->n * xtype_size(t->type) > 16) {
		return dec_unknown(d);
	}
	return values(d, &i->opnds[load ? 0 : 1], t, load) &&
	       coordinates(d, &i->opnds[load ? 1 : 0], t) &&
		emit(d, load ? x_suld : reduce ? x_sured : x_sust, t);
}

static bool query(struct dec *d)
{
	static const char *const names[] = { "width", "height", "depth", "array_size",
					     "normalized_coords", "num_mipmap_levels",
					     "num_samples", NULL };
	const struct gsr_insn *i = d->insn;
	struct xtex *t = tex_new(d);
	unsigned int q;

	if (!t)
		return false;
	if (i->n_mods != 2 || !word_in(i->mods[0], names, &q) || strcmp(i->mods[1], "b32") ||
	    i->n_opnds != 2 || i->opnds[1].kind != GSR_OPND_ADDR || i->opnds[1].n_items != 1 ||
	    i->opnds[1].ival || (i->op == GSR_OP_SUQ && q > Q_ARRAY_SIZE))
		return dec_unknown(d);
	t->query = (enum query)q;
	return opnd_dst(d, &i->opnds[0], &t->value[0]) && handle(d, &i->opnds[1].items[0], t) &&
		emit(d, i->op == GSR_OP_TXQ ? x_txq : x_suq, t);
}

bool dec_tex(struct dec *d)
{
	switch (d->insn->op) {
	case GSR_OP_TEX:
	case GSR_OP_TLD4: return tex(d);
	case GSR_OP_TXQ:
	case GSR_OP_SUQ: return query(d);
	default: return surface(d);
	}
}
