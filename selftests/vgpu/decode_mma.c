// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Instructions on matrices: which shapes and types there are, and how many registers their
 * fragments take.
 */
#include <stdio.h>
#include "decode.h"
#include "exec_mma.h"

static enum mtype mtype_parse(const char *name)
{
	static const char *const names[] = {
		[M_F16] = "f16", [M_BF16] = "bf16", [M_TF32] = "tf32", [M_F32] = "f32",
		[M_F64] = "f64", [M_E4M3] = "e4m3",
		[M_E5M2] = "e5m2", [M_S32] = "s32", [M_S8] = "s8", [M_U8] = "u8", [M_S4] = "s4",
		[M_U4] = "u4", [M_B1] = "b1",
	};
	unsigned int t;

	for (t = M_F16; t <= M_B1; t++)
		if (!strcmp(names[t], name))
			return (enum mtype)t;
	return M_NONE;
}

/* What the modifiers say, in whatever order they stand */
struct words {
	unsigned int m, n, k;
	enum mtype t[4];
	unsigned int n_types;
	unsigned int layouts;		/* how many of row, col */
	bool col[2];
	bool sync, aligned, sat, popc, rn;
	enum xop bitop;
	enum xspace space;
	bool load, store, mma;
	char which;
};

static bool word(struct words *w, const char *s)
{
	enum mtype t = mtype_parse(s);
	int end = 0;

	if (t) {
		if (w->n_types == 4)
			return false;
		w->t[w->n_types++] = t;
	} else if (sscanf(s, "m%un%uk%u%n", &w->m, &w->n, &w->k, &end) == 3 && !s[end]) {
		return true;
	} else if (!strcmp(s, "row") || !strcmp(s, "col")) {
		if (w->layouts == 2)
			return false;
		w->col[w->layouts++] = *s == 'c';
	} else if (!strcmp(s, "sync")) {
		w->sync = true;
	} else if (!strcmp(s, "aligned")) {
		w->aligned = true;
	} else if (!strcmp(s, "satfinite")) {
		w->sat = true;
	} else if (!strcmp(s, "rn")) {
		w->rn = true;
	} else if (!strcmp(s, "popc")) {
		w->popc = true;
	} else if (!strcmp(s, "xor") || !strcmp(s, "and")) {
		w->bitop = *s == 'x' ? A_XOR : A_AND;
	} else if (!strcmp(s, "global")) {
		w->space = S_GLOBAL;
	} else if (!strcmp(s, "shared") || !strcmp(s, "shared::cta")) {
		w->space = S_SHARED;
	} else if (!strcmp(s, "load")) {
		w->load = true;
	} else if (!strcmp(s, "store")) {
		w->store = true;
	} else if (!strcmp(s, "mma")) {
		w->mma = true;
	} else if (strlen(s) == 1 && strchr("abcd", *s) && (w->load || w->store)) {
		w->which = *s;
	} else {
		return false;
	}
	return true;
}

static bool words(const struct gsr_insn *i, struct words *w)
{
	unsigned int k;

	memset(w, 0, sizeof(*w));
	for (k = 0; k < i->n_mods; k++)
		if (!word(w, i->mods[k]))
			return false;
	return w->sync && w->aligned;
}

struct shape {
	uint16_t m, n, k;
};

/* By type of A */
static bool mma_shape(enum mtype t, const struct words *w)
{
	static const struct {
		enum mtype t;
		struct shape s[4];
	} all[] = {
		{ M_F16, { { 8, 8, 4 }, { 16, 8, 8 }, { 16, 8, 16 } } },
		{ M_BF16, { { 16, 8, 8 }, { 16, 8, 16 } } },
		{ M_TF32, { { 16, 8, 4 }, { 16, 8, 8 } } },
		{ M_F64, { { 8, 8, 4 }, { 16, 8, 4 }, { 16, 8, 8 }, { 16, 8, 16 } } },
		{ M_E4M3, { { 16, 8, 16 }, { 16, 8, 32 } } },
		{ M_E5M2, { { 16, 8, 16 }, { 16, 8, 32 } } },
		{ M_S8, { { 8, 8, 16 }, { 16, 8, 16 }, { 16, 8, 32 } } },
		{ M_U8, { { 8, 8, 16 }, { 16, 8, 16 }, { 16, 8, 32 } } },
		{ M_S4, { { 8, 8, 32 }, { 16, 8, 32 }, { 16, 8, 64 } } },
		{ M_U4, { { 8, 8, 32 }, { 16, 8, 32 }, { 16, 8, 64 } } },
		{ M_B1, { { 8, 8, 128 }, { 16, 8, 128 }, { 16, 8, 256 } } },
	};
	size_t i, k;

	for (i = 0; i < sizeof(all) / sizeof(*all); i++)
		for (k = 0; all[i].t == t && k < 4; k++)
			if (all[i].s[k].m == w->m && all[i].s[k].n == w->n && all[i].s[k].k == w->k)
				return true;
	return false;
}

static bool wmma_shape(enum mtype t, const struct words *w)
{
	bool sixteen = (w->m == 16 && w->n == 16) || (w->m == 8 && w->n == 32) ||
		       (w->m == 32 && w->n == 8);

	switch (t) {
	case M_F16: case M_BF16: case M_S8: case M_U8: return sixteen && w->k == 16;
	case M_TF32: return w->m == 16 && w->n == 16 && w->k == 8;
	case M_F64: return w->m == 8 && w->n == 8 && w->k == 4;
	case M_S4: case M_U4: return w->m == 8 && w->n == 8 && w->k == 32;
	case M_B1: return w->m == 8 && w->n == 8 && w->k == 128;
	default: return false;
	}
}

static bool is_small_int(enum mtype t)
{
	return t > M_S32;
}

/* Do the types of A, B, C and D go together? */
static bool types_ok(const struct xmma *mm)
{
	bool half_or_single = (mm->ct == M_F16 || mm->ct == M_F32) &&
			      (mm->dt == M_F16 || mm->dt == M_F32);

	if (is_small_int(mm->at))
		return is_small_int(mm->bt) && mtype_bits(mm->at) == mtype_bits(mm->bt) &&
		       mm->ct == M_S32 && mm->dt == M_S32;
	switch (mm->at) {
	case M_F16: return mm->bt == M_F16 && half_or_single &&
		(mm->wmma || mm->quads || mm->ct == mm->dt);
	case M_BF16:
	case M_TF32: return mm->bt == mm->at && mm->ct == M_F32 && mm->dt == M_F32;
	case M_F64: return mm->bt == M_F64 && mm->ct == M_F64 && mm->dt == M_F64;
	case M_E4M3:
	case M_E5M2: return (mm->bt == M_E4M3 || mm->bt == M_E5M2) && half_or_single &&
		mm->ct == mm->dt;
	default: return false;
	}
}

static unsigned int count(const struct xmma *mm, enum mmatrix which)
{
	enum mtype t = which == MAT_A ? mm->at : which == MAT_B ? mm->bt : which == MAT_C ?
		       mm->ct : mm->dt;
	unsigned int n = which == MAT_A ? mm->m * mm->k : which == MAT_B ? mm->k * mm->n :
			 mm->m * mm->n;
	unsigned int bits = mtype_bits(t);

	/* wmma's f16 fragments hold elements several times */
	if (mm->wmma && which < MAT_C && t == M_F16)
		return 8;
	n /= mm->quads ? 8 : LANES;
	return bits == 64 ? n : (n * bits + 31) / 32;
}

static bool fragment(struct dec *d, const struct gsr_operand *o, struct xmma *mm,
		     enum mmatrix which, unsigned int first, bool write)
{
	unsigned int n = count(mm, which), k;

	/* a fragment of one register may stand without braces */
	if (o->kind == GSR_OPND_VEC ? o->n_items != n : n != 1)
		return dec_unknown(d);
	mm->first[which] = first;
	mm->regs[which] = n;
	if (first + n > sizeof(mm->row) / sizeof(*mm->row))
		return dec_unknown(d);
	for (k = 0; k < n; k++) {
		const struct gsr_operand *e = o->kind == GSR_OPND_VEC ? &o->items[k] : o;

		if (write ? !opnd_dst(d, e, &mm->row[first + k]) :
		    !opnd_src(d, e, mtype_bits(which == MAT_A ? mm->at : mm->dt) == 64 ? T_F64 :
			      T_B32, &mm->row[first + k]))
			return false;
	}
	return true;
}

static bool emit(struct dec *d, xfn *fn, struct xmma *mm)
{
	struct xinsn *in = dec_emit(d, fn);

	if (!in)
		return false;
	in->ext = mm;
	in->flags = F_GATHER;
	return true;
}

/* d, a, b, c */
static bool multiply(struct dec *d, const struct words *w, bool wmma)
{
	const struct gsr_insn *i = d->insn;
	struct xmma *mm = dec_alloc(d, sizeof(*mm));
	bool b1;

	if (!mm)
		return false;
	mm->m = w->m;
	mm->n = w->n;
	mm->k = w->k;
	mm->wmma = wmma;
	mm->sat = w->sat;
	mm->bitop = w->bitop;
	mm->dt = w->t[0];
	if (w->n_types == 2 && wmma) {
		mm->at = mm->bt = M_F16;
		mm->ct = w->t[1];
	} else if (w->n_types == 4) {
		mm->at = w->t[1];
		mm->bt = w->t[2];
		mm->ct = w->t[3];
	} else {
		return dec_unknown(d);
	}
	mm->quads = !wmma && mm->at == M_F16 && w->k == 4;
	mm->a_col = w->col[0];
	mm->b_row = !w->col[1];
	b1 = mm->at == M_B1;
	if (w->layouts != 2 || !types_ok(mm) ||
	    !(wmma ? wmma_shape(mm->at, w) : mma_shape(mm->at, w)) || b1 != (w->bitop && w->popc) ||
	    (w->bitop && !w->popc) || i->n_opnds != 4)
		return dec_unknown(d);
	if ((mm->a_col || mm->b_row) && !wmma && !mm->quads)
		return dec_unknown(d);
	if (mm->sat && (b1 || !is_small_int(mm->at)) && !(wmma && mm->at == M_F16))
		return dec_unknown(d);
	if (w->rn && mm->at != M_F64)
		return dec_unknown(d);
	if (!fragment(d, &i->opnds[0], mm, MAT_D, 0, true) ||
	    !fragment(d, &i->opnds[1], mm, MAT_A, mm->regs[MAT_D], false) ||
	    !fragment(d, &i->opnds[2], mm, MAT_B, mm->first[MAT_A] + mm->regs[MAT_A], false) ||
	    !fragment(d, &i->opnds[3], mm, MAT_C, mm->first[MAT_B] + mm->regs[MAT_B], false))
		return false;
	return emit(d, x_mma, mm);
}

bool dec_mma(struct dec *d)
{
	struct words w;

	if (!words(d->insn, &w) || w.load || w.store || w.mma || w.space)
		return dec_unknown(d);
	return multiply(d, &w, false);
}

/* Of a matrix alone the shape tells only its sides: any type that has the shape will do */
static bool side_ok(enum mtype t, const struct words *w, bool accumulator)
{
	static const enum mtype of_single[] = { M_F16, M_BF16, M_TF32, M_NONE },
		of_half[] = { M_F16, M_NONE },
		of_double[] = { M_F64, M_NONE }, of_int[] = { M_S8, M_S4, M_B1, M_NONE };
	const enum mtype *of = t == M_F32 ? of_single : t == M_F16 ? of_half :
			       t == M_F64 ? of_double : of_int;

	if (!accumulator)
		return wmma_shape(t, w);
	if (t != M_F32 && t != M_F16 && t != M_F64 && t != M_S32)
		return false;
	for (; *of; of++)
		if (wmma_shape(*of, w))
			return true;
	return false;
}

bool dec_wmma(struct dec *d)
{
	const struct gsr_insn *i = d->insn;
	struct xinsn *in;
	struct words w;
	struct xmma *mm;
	int32_t row;
	int64_t imm;
	bool a32;

	if (!words(i, &w) || w.load + w.store + w.mma != 1)
		return dec_unknown(d);
	if (w.mma)
		return w.space ? dec_unknown(d) : multiply(d, &w, true);
	mm = dec_alloc(d, sizeof(*mm));
	if (!mm)
		return false;
	if (w.n_types != 1 || w.layouts != 1 || w.sat || w.bitop || w.popc || w.rn ||
	    !(w.load ? strchr("abc", w.which) != NULL : w.which == 'd') || !w.which ||
	    !side_ok(w.t[0], &w, w.which > 'b') || i->n_opnds < 2 || i->n_opnds > 3)
		return dec_unknown(d);
	mm->m = w.m;
	mm->n = w.n;
	mm->k = w.k;
	mm->wmma = true;
	mm->which = (enum mmatrix)(w.which - 'a');
	mm->at = mm->bt = mm->ct = mm->dt = w.t[0];
	if (mm->which == MAT_B)
		mm->b_row = !w.col[0];
	else
		mm->a_col = w.col[0];
	mm->stride = NO_OPND;
	if (!fragment(d, &i->opnds[!w.load], mm, mm->which, 0, w.load) ||
	    (i->n_opnds == 3 && !opnd_src(d, &i->opnds[2], T_U32, &mm->stride)) ||
	    !opnd_addr(d, &i->opnds[w.load], &row, &imm, &a32) ||
	    !emit(d, w.load ? x_wmma_load : x_wmma_store, mm))
		return false;
	in = &d->k->code[d->k->n_code - 1];
	in->o[0] = row;
	in->imm = imm;
	in->a32 = a32;
	in->space = (uint8_t)w.space;
	return true;
}

/* ldmatrix, stmatrix: .sync.aligned.m8n8.xN{.trans}{.shared}.b16 */
bool dec_ldmatrix(struct dec *d)
{
	const struct gsr_insn *i = d->insn;
	bool store = i->op == GSR_OP_STMATRIX, trans, shared, a32;
	const struct gsr_operand *v = &i->opnds[store];
	unsigned int k, n, at = 3;
	struct xrows *regs;
	struct xinsn *in;
	int32_t row;
	int64_t imm;

	if (i->n_mods < 5 || strcmp(i->mods[0], "sync") || strcmp(i->mods[1], "aligned") ||
	    strcmp(i->mods[2], "m8n8") || i->n_opnds != 2)
		return dec_unknown(d);
	n = !strcmp(i->mods[at], "x1") ? 1 : !strcmp(i->mods[at], "x2") ? 2 :
	    !strcmp(i->mods[at], "x4") ? 4 : 0;
	trans = !strcmp(i->mods[++at], "trans");
	at += trans;
	shared = at < i->n_mods && (!strcmp(i->mods[at], "shared") ||
				    !strcmp(i->mods[at], "shared::cta"));
	at += shared;
	if (!n || at + 1 != i->n_mods || strcmp(i->mods[at], "b16") ||
	    (v->kind == GSR_OPND_VEC ? v->n_items != n : n != 1))
		return dec_unknown(d);
	regs = dec_alloc(d, sizeof(*regs) + n * sizeof(*regs->row));
	if (!regs)
		return false;
	regs->n = n;
	for (k = 0; k < n; k++) {
		const struct gsr_operand *o = v->kind == GSR_OPND_VEC ? &v->items[k] : v;

		if (store ? !opnd_src(d, o, T_B32, &regs->row[k]) : !opnd_dst(d, o, &regs->row[k]))
			return false;
	}
	if (!opnd_addr(d, &i->opnds[!store], &row, &imm, &a32))
		return false;
	in = dec_emit(d, store ? x_stmatrix : x_ldmatrix);
	if (!in)
		return false;
	in->ext = regs;
	in->flags = F_GATHER;
	in->o[0] = row;
	in->imm = imm;
	in->a32 = a32;
	in->mode = trans;
	in->space = shared ? S_SHARED : S_NONE;
	return true;
}

bool dec_movmatrix(struct dec *d)
{
	static const char *const want[] = { "sync", "aligned", "m8n8", "trans", "b16" };
	const struct gsr_insn *i = d->insn;
	struct xinsn *in;
	unsigned int k;
	int32_t o[2];

	for (k = 0; k < 5; k++)
		if (i->n_mods != 5 || strcmp(i->mods[k], want[k]) != 0)
			return dec_unknown(d);
	if (i->n_opnds != 2)
		return dec_unknown(d);
	if (!opnd_dst(d, &i->opnds[0], &o[0]) || !opnd_src(d, &i->opnds[1], T_B32, &o[1]))
		return false;
	in = dec_emit(d, x_movmatrix);
	if (!in)
		return false;
	in->flags = F_GATHER;
	memcpy(in->o, o, sizeof(o));
	return true;
}
