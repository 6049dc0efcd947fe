// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Conversions between floating-point formats against a search for the nearest, and single results
 * of the rarer arithmetic.
 */
#include <math.h>
#include "test-eval.h"

#define MANY 4096

struct format {
	const char *type;	/* of a pair */
	unsigned int bits, mant, bias, max;	/* max: the code of the greatest number */
	bool nan;
};
static const struct format formats[] = {
	{ "e4m3x2", 8, 3, 7, 0x7e, true }, { "e5m2x2", 8, 2, 15, 0x7b, true },
	{ "e2m3x2", 8, 3, 1, 0x1f, false },
	{ "e3m2x2", 8, 2, 3, 0x1f, false }, { "e2m1x2", 4, 1, 1, 0x7, false },
};

static double value(unsigned int code, unsigned int mant, unsigned int bias)
{
	unsigned int e = code >> mant, m = code & ((1u << mant) - 1);

	return e ? (1 + m / (double)(1u << mant)) * pow(2, (int)e - (int)bias) :
	       m / (double)(1u << mant) * pow(2, 1 - (int)bias);
}

/* The nearest of the numbers up to @max; of two, the one with an even code */
static unsigned int nearest(double v, unsigned int mant, unsigned int bias, unsigned int max)
{
	unsigned int c, best = 0;

	for (c = 1; c <= max; c++) {
		double now = fabs(value(c, mant, bias) - v),
			old = fabs(value(best, mant, bias) - v);

		if (now < old || (now == old && !(c & 1)))
			best = c;
	}
	return best;
}

static uint32_t bits_of(float f)
{
	uint32_t u;

	memcpy(&u, &f, 4);
	return u;
}

/* Numbers of every size, ties among them */
static float some(unsigned int i)
{
	static const float special[] = { 0, -0.0f, INFINITY, -INFINITY, 448, 464, 480, 57344, 61440,
					 65504, 65520, 1e30f, 1e-30f, 6, 7.5f, 28 };
	uint32_t u = i * 2654435761u;
	float f = 1 + (float)(u >> 9 & 31) / 32;

	if (i < sizeof(special) / sizeof(*special))
		return special[i];
	if (i % 3 == 0)
		f = 1 + (float)(u >> 9) * 0x1p-23f;
	return ldexpf(i & 1 ? -f : f, (int)(u % 48) - 28);
}

static void minis(void)
{
	static uint64_t a[MANY], b[MANY], out[MANY];
	char insn[256];
	unsigned int k, i;

	for (i = 0; i < MANY; i++) {
		a[i] = bits_of(some(i));
		b[i] = bits_of(some(MANY - 1 - i));
	}
	for (k = 0; k < sizeof(formats) / sizeof(*formats); k++) {
		const struct format *f = &formats[k];
		unsigned int sign = f->bits == 4 ? 8 : f->nan ? 0x80 : 0x20;
		bool good;

		snprintf(insn, sizeof(insn), "{ .reg .b%d t; cvt.rn.satfinite.%s.f32 t, A, B; "
			 "cvt.u32.u%d D, t; }", f->bits == 4 ? 8 : 16, f->type,
			 f->bits == 4 ? 8 : 16);
		good = eval(insn, "rrrr", MANY, a, b, a, out);
		for (i = 0; good && i < MANY; i++) {
			double v = some(i), w = some(MANY - 1 - i);
			unsigned int hi = (signbit(v) ? sign : 0) |
					  nearest(fabs(v) > 1e9 ? 1e9 : fabs(v), f->mant,
						  f->bias, f->max);
			unsigned int lo = (signbit(w) ? sign : 0) |
					  nearest(fabs(w) > 1e9 ? 1e9 : fabs(w), f->mant,
						  f->bias, f->max);

			good = (uint32_t)out[i] == (hi << f->bits | lo);
			if (!good)
				printf("# %a %a: 0x%x, should be 0x%x\n", v, w, (uint32_t)out[i],
				       hi << f->bits | lo);
		}
		ok(good, "%s", insn);
		/* every code back */
		for (i = 0; i < 256; i++)
			b[i] = f->bits == 4 ? i : i | (i ^ 1) << 8;
		snprintf(insn, sizeof(insn),
			 "{ .reg .b%d t; cvt.u%d.u32 t, A; cvt.rn.f16x2.%s D, t; }",
			 f->bits == 4 ? 8 : 16, f->bits == 4 ? 8 : 16, f->type);
		good = eval(insn, "rrrr", 256, b, b, b, out);
		for (i = 0; good && i < 256; i++) {
			unsigned int code = b[i] & ((1u << f->bits) - 1), mag = code & (sign - 1);
			unsigned int want = nearest(mag > f->max ? 0 : value(mag, f->mant, f->bias),
						    10, 15, 0x7bff);

			if (!f->nan && f->bits == 8 && code >= 0x40)
				continue;
			if (mag > f->max)
				want = mag == 0x7c && f->mant == 2 ? 0x7c00 : 0x7fff;
			else if (f->mant == 2 && f->nan && mag == 0x7c)
				want = 0x7c00;
			if (want != 0x7fff)
				want |= code & sign ? 0x8000 : 0;
			good = (out[i] & 0xffff) == want;
			if (!good)
				printf("# 0x%x: 0x%llx, should be 0x%x\n", code,
				       (unsigned long long)out[i] & 0xffff, want);
		}
		ok(good, "%s", insn);
		for (i = 0; i < MANY; i++)
			b[i] = bits_of(some(MANY - 1 - i));
	}
}

static const struct single singles[] = {
	/* satfinite, relu, NaN */
	{ "cvt.rn.satfinite.e4m3x2.f32 D, A, B;", "hrrr", 0x7fc00000, 0xff800000, 0, 0x7ffe },
	{ "cvt.rn.satfinite.relu.e5m2x2.f32 D, A, B;", "hrrr", 0xbf800000, 0x3f800000, 0, 0x003c },
	{ "cvt.rn.satfinite.e4m3x2.f16x2 D, A;", "hrrr", 0x3c00bc00, 0, 0, 0x38b8 },
	{ "cvt.rn.relu.f16x2.e4m3x2 D, A;", "rhhh", 0x38b8, 0, 0, 0x3c000000 },
	{ "cvt.rz.satfinite.ue8m0x2.f32 D, A, B;", "hrrr", 0x40400000, 0x3f800000, 0, 0x807f },
	{ "cvt.rp.satfinite.ue8m0x2.f32 D, A, B;", "hrrr", 0x40400000, 0x3f800000, 0, 0x817f },
	{ "cvt.rp.ue8m0x2.bf16x2 D, A;", "hrrr", 0x4040ff80, 0, 0, 0x81ff },
	{ "cvt.rn.bf16x2.ue8m0x2 D, A;", "rhhh", 0x807f, 0, 0, 0x40003f80 },
	{ "cvt.rn.satfinite.f16.f32 D, A;", "hrrr", 0x7f800000, 0, 0, 0x7bff },
	{ "cvt.rn.relu.f16.f32 D, A;", "hrrr", 0xc0000000, 0, 0, 0 },
	{ "cvt.rn.relu.f16.f32 D, A;", "hrrr", 0xffc00000, 0, 0, 0x7fff },
	{ "cvt.rn.satfinite.bf16x2.f32 D, A, B;", "rrrr", 0xff800000, 0x3f800000, 0, 0xff7f3f80 },
	{ "cvt.rna.satfinite.tf32.f32 D, A;", "rrrr", 0x7f800000, 0, 0, 0x7f7fe000 },
	{ "cvt.rn.tf32.f32 D, A;", "rrrr", 0x3f801000, 0, 0, 0x3f800000 },
	{ "cvt.pack.sat.u16.s32 D, A, B;", "rrrr", 70000, 0xffffffff, 0, 0xffff0000 },
	{ "cvt.pack.sat.s8.s32.b32 D, A, B, C;", "rrrr", 200, 0xffffff00, 0x12345678, 0x56787f80 },
	{ "cvt.pack.sat.u4.s32.b32 D, A, B, C;", "rrrr", 5, 99, 0x00ab, 0xab5f },
	/* mixed and packed */
	{ "add.f32.f16 D, A, C;", "rhrr", 0x3c00, 0, 0x40000000, 0x40400000 },
	{ "sub.rz.sat.f32.bf16 D, A, C;", "rhrr", 0x3f80, 0, 0x3f000000, 0x3f000000 },
	{ "fma.rn.f32.f16 D, A, B, C;", "rhhr", 0x4000, 0x4200, 0x3f800000, 0x40e00000 },
	{ "add.rn.f32x2 D, A, B;", "dddd", 0x3f80000040000000, 0x4000000040400000, 0,
	  0x4040000040a00000 },
	{ "fma.rn.ftz.f32x2 D, A, B, C;", "dddd", 0x0000000140000000, 0x3f80000040400000,
	  0x000000003f800000, 0x0000000040e00000 },
	{ "mul.rm.f32x2 D, A, B;", "dddd", 0x3f80000140000000, 0x3f80000140400000, 0,
	  0x3f80000240c00000 },
	/* sets of halves */
	{ "set.lt.f16x2.f16x2 D, A, B;", "rrrr", 0x3c004000, 0x40003c00, 0, 0x3c000000 },
	{ "set.ge.u32.f16x2 D, A, B;", "rrrr", 0x3c004000, 0x40003c00, 0, 0x0000ffff },
	{ "set.nan.bf16.bf16 D, A, B;", "hhhh", 0x7fc0, 0, 0, 0x3f80 },
	{ "set.eq.u16.f16 D, A, B;", "hhhh", 0x8000, 0, 0, 0xffff },
	{ "{ .reg .pred p; setp.ne.u32 p, C, 0; set.lt.and.f32.s32 D, A, B, p; }", "rrrr",
	  0xffffffff, 1, 1, 0x3f800000 },
	{ "{ .reg .pred p; setp.ne.u32 p, C, 0; set.lt.xor.u32.f32 D, A, B, p; }", "rrrr",
	  0x3f800000, 0x40000000, 1, 0 },
	{ "{ .reg .pred p; .reg .pred q; setp.gt.f16x2 p|q, A, B; selp.b32 D, 1, 2, p; "
	  "@q add.u32 D, D, 4; }", "rrrr", 0x40003c00, 0x3c004000, 0, 6 },
	{ "{ .reg .pred p; .reg .pred q; setp.ne.u32 p, C, 0; lop3.or.b32 D|q, A, B, C, 0x80, p; "
	  "@!q mov.u32 D, 77; }", "rrrr", 6, 3, 0, 77 },
	{ "{ .reg .pred p; .reg .pred q; setp.eq.u32 p, C, 2; lop3.and.b32 D|q, A, B, C, 0x80, p; "
	  "@q mov.u32 D, 77; }", "rrrr", 6, 3, 2, 77 },
	/* minima */
	{ "min.relu.s32 D, A, B;", "rrrr", 0xfffffffe, 3, 0, 0 },
	{ "max.relu.s16x2 D, A, B;", "rrrr", 0xfffe0002, 0xffff0001, 0, 2 },
	{ "min.f32 D, A, B, C;", "rrrr", 0x40000000, 0x7fc00000, 0xbf800000, 0xbf800000 },
	{ "max.NaN.abs.f32 D, A, B, C;", "rrrr", 0x40000000, 0xc0800000, 0xbf800000, 0x40800000 },
	{ "max.NaN.f32 D, A, B, C;", "rrrr", 0x40000000, 0x7fc00000, 0xbf800000, 0x7fffffff },
	{ "neg.ftz.f16 D, A;", "hhhh", 0x0001, 0, 0, 0x8000 },
	{ "abs.ftz.f16x2 D, A;", "rrrr", 0x80018400, 0, 0, 0x00000400 },
	/* the reciprocal of what is above 2^126 is 0 */
	{ "div.approx.f32 D, A, B;", "rrrr", 0x40000000, 0x7f000000, 0, 0 },
	{ "div.approx.f32 D, A, B;", "rrrr", 0x7f800000, 0x7f000000, 0, 0x7fffffff },
	{ "div.full.f32 D, A, B;", "rrrr", 0x7f000000, 0x7f000000, 0, 0x3f800000 },
	{ "ex2.approx.f32 D, A;", "rrrr", 0xc3000000, 0, 0, 0x00200000 },
	{ "ex2.approx.ftz.f32 D, A;", "rrrr", 0xc3000000, 0, 0, 0 },
	{ "lg2.approx.f32 D, A;", "rrrr", 0x80000000, 0, 0, 0xff800000 },
	{ "lg2.approx.f32 D, A;", "rrrr", 0xbf800000, 0, 0, 0x7fffffff },
	{ "rsqrt.approx.f32 D, A;", "rrrr", 0x80000000, 0, 0, 0xff800000 },
	{ "rcp.approx.f32 D, A;", "rrrr", 0xff800000, 0, 0, 0x80000000 },
	{ "sin.approx.f32 D, A;", "rrrr", 0x7f800000, 0, 0, 0x7fffffff },
	{ "tanh.approx.f32 D, A;", "rrrr", 0xff800000, 0, 0, 0xbf800000 },
	/* video: parts of words, then saturation, then the second operation or the merge */
	{ "vadd.s32.u32.s32.sat D, A.b0, B.h0;", "rrrr", 0xff, 0xffff, 0, 0xfe },
	{ "vadd.u32.u32.u32.sat D, A, B;", "rrrr", 0xffffffff, 2, 0, 0xffffffff },
	{ "vsub.s32.s32.u32.sat D, A.h1, B.h1;", "rrrr", 0x80000000, 0x00010000, 0, 0xffff7fff },
	{ "vabsdiff.s32.s32.s32.sat D.h0, A.b0, B.b2, C;", "rrrr", 0x7f, 0x00800000, 0x12345678,
	  0x123400ff },
	{ "vmin.s32.s32.s32.sat.add D, A, B, C;", "rrrr", 5, 0xfffffffd, 10, 7 },
	{ "vmax.u32.u32.u32.min D, A.b3, B.b1, C;", "rrrr", 0x11000000, 0x2200, 0x20, 0x20 },
	{ "vshl.s32.u32.u32.clamp D, A, B;", "rrrr", 1, 40, 0, 0 },
	{ "vshr.u32.u32.u32.wrap D, A, B.h1;", "rrrr", 0x80, 0x00230000, 0, 0x10 },
	{ "vadd.u32.u32.u32.sat D.b1, A, B, C;", "rrrr", 200, 100, 0x11223344, 0x1122ff44 },
	{ "vmad.s32.s32.u32.sat D, A, B, -C;", "rrrr", 0xfffffffd, 4, 5, 0xffffffef },
	{ "vmad.u32.u32.u32.shr15 D, A.h0, B.h0, C;", "rrrr", 0x8000, 0x6, 0x8000, 7 },
	{ "vmad.u32.u32.u32.po.shr7 D, A.b0, B.b0, C;", "rrrr", 16, 8, 127, 2 },
	{ "vmad.s32.s32.s32 D, -A, B, C;", "rrrr", 3, 5, 1, 0xfffffff2 },
	{ "vset.s32.u32.lt D, A, B;", "rrrr", 0xffffffff, 1, 0, 1 },
	{ "vset.u32.u32.ne.add D, A, B.h1, C;", "rrrr", 7, 0x00070000, 9, 9 },
	{ "vadd2.s32.s32.s32.sat D, A, B, C;", "rrrr", 0x7fff0001, 0x0001ffff, 0, 0x7fff0000 },
	{ "vsub2.u32.u32.u32 D.h1, A.h32, B.h10, C;", "rrrr", 0x00010002, 0x00050003, 0x11112222,
	  0x00042222 },
	{ "vavrg4.u32.u32.u32 D, A, B, C;", "rrrr", 0x01020304, 0x02020205, 0, 0x02020305 },
	{ "vabsdiff4.u32.u32.u32.add D, A, B, C;", "rrrr", 0x10203040, 0x11191f50, 5, 0x2e },
	{ "vmin4.s32.s32.s32 D, A, B, C;", "rrrr", 0x807f01ff, 0x7f800002, 0, 0x808000ff },
	{ "vset4.u32.u32.ge D.b20, A, B, C;", "rrrr", 0x05060708, 0x06060609, 0xaabbccdd,
	  0xaa01cc00 },
	{ "vadd4.u32.u32.u32.sat D, A.b0000, B.b4567, C;", "rrrr", 0x000000f0, 0x01020304, 0,
	  0xf4f3f2f1 },
};

int main(void)
{
	minis();
	singles_run(singles, sizeof(singles) / sizeof(*singles));
	return done();
}
