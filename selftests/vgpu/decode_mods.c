// SPDX-License-Identifier: LGPL-2.1-or-later
/* Modifiers: each word belongs to a class, and an instruction says which classes it takes. */
#include "exec_priv.h"

unsigned int xtype_size(enum xtype t)
{
	static const uint8_t size[] = {
		[T_U8] = 1, [T_S8] = 1, [T_B8] = 1, [T_U16] = 2, [T_S16] = 2, [T_B16] = 2,
		[T_F16] = 2, [T_BF16] = 2,
		[T_U32] = 4, [T_S32] = 4, [T_B32] = 4, [T_F32] = 4, [T_F16X2] = 4, [T_BF16X2] = 4,
		[T_TF32] = 4,
		[T_U64] = 8, [T_S64] = 8, [T_B64] = 8, [T_F64] = 8, [T_B128] = 16, [T_PRED] = 0,
		[T_U16X2] = 4, [T_S16X2] = 4, [T_E4M3X2] = 2, [T_E5M2X2] = 2, [T_E2M1X2] = 1,
		[T_E2M3X2] = 2,
		[T_E3M2X2] = 2, [T_UE8M0X2] = 2, [T_F32X2] = 8,
	};

	return size[t];
}

static const struct word {
	const char *text;
	unsigned int class, value;
} words[] = {
	{ "u8", C_TYPE, T_U8 }, { "u16", C_TYPE, T_U16 }, { "u32", C_TYPE, T_U32 },
	{ "u64", C_TYPE, T_U64 },
	{ "s8", C_TYPE, T_S8 }, { "s16", C_TYPE, T_S16 }, { "s32", C_TYPE, T_S32 },
	{ "s64", C_TYPE, T_S64 },
	{ "b8", C_TYPE, T_B8 }, { "b16", C_TYPE, T_B16 }, { "b32", C_TYPE, T_B32 },
	{ "b64", C_TYPE, T_B64 },
	{ "b128", C_TYPE, T_B128 }, { "f16", C_TYPE, T_F16 }, { "bf16", C_TYPE, T_BF16 },
	{ "f16x2", C_TYPE, T_F16X2 },
	{ "bf16x2", C_TYPE, T_BF16X2 }, { "tf32", C_TYPE, T_TF32 }, { "f32", C_TYPE, T_F32 },
	{ "f64", C_TYPE, T_F64 },
	{ "pred", C_TYPE, T_PRED }, { "u16x2", C_TYPE, T_U16X2 }, { "s16x2", C_TYPE, T_S16X2 },
	{ "e4m3x2", C_TYPE, T_E4M3X2 }, { "e5m2x2", C_TYPE, T_E5M2X2 },
	{ "e2m1x2", C_TYPE, T_E2M1X2 },
	{ "e2m3x2", C_TYPE, T_E2M3X2 }, { "e3m2x2", C_TYPE, T_E3M2X2 },
	{ "ue8m0x2", C_TYPE, T_UE8M0X2 },
	{ "f32x2", C_TYPE, T_F32X2 },
	{ "rn", C_RND, R_RN }, { "rz", C_RND, R_RZ }, { "rm", C_RND, R_RM }, { "rp", C_RND, R_RP },
	{ "rna", C_RND, R_RNA },
	{ "rni", C_RND, R_RNI }, { "rzi", C_RND, R_RZI }, { "rmi", C_RND, R_RMI },
	{ "rpi", C_RND, R_RPI },
	{ "global", C_SPACE, S_GLOBAL }, { "shared", C_SPACE, S_SHARED },
	{ "shared::cta", C_SPACE, S_SHARED },
	{ "shared::cluster", C_SPACE, S_SHARED },
	{ "local", C_SPACE, S_LOCAL }, { "param", C_SPACE, S_PARAM },
	{ "param::entry", C_SPACE, S_PARAM },
	{ "param::func", C_SPACE, S_PARAM }, { "const", C_SPACE, S_CONST },
	{ "v2", C_VEC, 2 }, { "v4", C_VEC, 4 }, { "v8", C_VEC, 8 },
	{ "eq", C_CMP, X_EQ }, { "ne", C_CMP, X_NE }, { "lt", C_CMP, X_LT }, { "le", C_CMP, X_LE },
	{ "gt", C_CMP, X_GT },
	{ "ge", C_CMP, X_GE }, { "lo", C_CMP, X_LT }, { "ls", C_CMP, X_LE }, { "hi", C_CMP, X_GT },
	{ "hs", C_CMP, X_GE },
	{ "equ", C_CMP, X_EQU }, { "neu", C_CMP, X_NEU }, { "ltu", C_CMP, X_LTU },
	{ "leu", C_CMP, X_LEU },
	{ "gtu", C_CMP, X_GTU }, { "geu", C_CMP, X_GEU }, { "num", C_CMP, X_NUM },
	{ "nan", C_CMP, X_NAN },
	{ "and", C_OP, A_AND }, { "or", C_OP, A_OR }, { "xor", C_OP, A_XOR },
	{ "add", C_OP, A_ADD }, { "inc", C_OP, A_INC },
	{ "dec", C_OP, A_DEC }, { "min", C_OP, A_MIN }, { "max", C_OP, A_MAX },
	{ "exch", C_OP, A_EXCH }, { "cas", C_OP, A_CAS },
	{ "popc", C_OP, A_POPC },
	{ "up", C_MODE, V_UP }, { "down", C_MODE, V_DOWN }, { "bfly", C_MODE, V_BFLY },
	{ "idx", C_MODE, V_IDX },
	{ "all", C_MODE, V_ALL }, { "any", C_MODE, V_ANY }, { "uni", C_MODE, V_UNI },
	{ "ballot", C_MODE, V_BALLOT },
	/* semantics: struct xmods has the bits */
	{ "weak", C_SEM, 0 }, { "volatile", C_SEM, 8 }, { "relaxed", C_SEM, 8 },
	{ "mmio", C_SEM, 8 }, { "nc", C_SEM, 0 },
	{ "acquire", C_SEM, 10 }, { "release", C_SEM, 9 }, { "acq_rel", C_SEM, 11 },
	{ "sc", C_SEM, 12 },
	{ "cta", C_SEM, 0 }, { "cluster", C_SEM, 0 }, { "gpu", C_SEM, 0 }, { "sys", C_SEM, 0 },
	{ "gl", C_SEM, 0 },
	{ "proxy", C_SEM, 0 }, { "alias", C_SEM, 0 }, { "noftz", C_SEM, 0 },
	{ "unified", C_SEM, 0 },
	{ "ca", C_CACHE, 0 }, { "cg", C_CACHE, 0 }, { "cs", C_CACHE, 0 }, { "lu", C_CACHE, 0 },
	{ "cv", C_CACHE, 0 },
	{ "wb", C_CACHE, 0 }, { "wt", C_CACHE, 0 },
	{ "ftz", C_FTZ, F_FTZ }, { "sat", C_SAT, F_SAT }, { "relu", C_RELU, F_RELU },
	{ "satfinite", C_RELU, F_SATFINITE }, { "cc", C_CC, F_CC },
	{ "lo", C_MUL, F_LO }, { "hi", C_MUL, F_HI }, { "wide", C_MUL, F_WIDE },
	{ "approx", C_APPROX, F_APPROX }, { "full", C_APPROX, F_FULL }, { "uni", C_UNI, F_UNI },
	{ "sync", C_SYNC, F_SYNC }, { "aligned", C_SYNC, F_ALIGNED },
	{ "arrive", C_BAR, F_ARRIVE }, { "red", C_BAR, F_RED }, { "warp", C_BAR, F_WARP },
	{ "cta", C_BAR, 0 },
	{ "NaN", C_NAN, F_NAN }, { "xorsign", C_NAN, F_XORSIGN }, { "abs", C_NAN, F_ABS },
	{ "to", C_TO, F_TO }, { "shiftamt", C_SHIFT, F_SHIFTAMT }, { "l", C_SHIFT, F_LEFT },
	{ "r", C_SHIFT, F_RIGHT },
	{ "clamp", C_SHIFT, F_CLAMP }, { "wrap", C_SHIFT, F_WRAP }, { "async", C_ASYNC, F_ASYNC },
};

static const struct word *find(const char *text, unsigned int allow)
{
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(*words); i++)
		if ((words[i].class & allow) && !strcmp(words[i].text, text))
			return &words[i];
	return NULL;
}

enum xtype xtype_parse(const char *name)
{
	const struct word *w = find(name, C_TYPE);

	return w ? (enum xtype)w->value : T_NONE;
}

bool mods_parse(const struct gsr_insn *in, unsigned int allow, struct xmods *md)
{
	unsigned int i;

	memset(md, 0, sizeof(*md));
	for (i = 0; i < in->n_mods; i++) {
		const char *text = in->mods[i];
		const struct word *w = find(text, allow);

		if (!w) {
			/* hints to caches, their policies included, change no value */
			if ((allow & C_CACHE) &&
			    (!strncmp(text, "L1::", 4) || !strncmp(text, "L2::", 4))) {
				if (!strcmp(text, "L2::cache_hint"))
					md->flags |= F_HINT;
				continue;
			}
			if ((allow & C_WORD) && !md->word) {
				md->word = text;
				continue;
			}
			return false;
		}
		switch (w->class) {
		case C_TYPE:
			if (md->n_types == 3)
				return false;
			md->t[md->n_types++] = (enum xtype)w->value;
			break;
		case C_RND: md->rnd = (enum xrnd)w->value; break;
		case C_SPACE: md->space = (enum xspace)w->value; break;
		case C_VEC: md->vec = w->value; break;
		case C_CMP: md->cmp = (enum xcmp)w->value; break;
		case C_OP: md->op = (enum xop)w->value; break;
		case C_MODE: md->mode = (enum xmode)w->value; break;
		case C_SEM: md->sem |= w->value; break;
		case C_CACHE: break;
		default: md->flags |= w->value;
		}
	}
	return true;
}
