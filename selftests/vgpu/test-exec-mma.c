// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Matrices: each shape of mma.sync with the fragments that the PTX ISA gives it, wmma, ldmatrix and
 * its kin.
 */
#include "test-exec.h"

static uint32_t buf[16384];

static const char *one(const char *ptx, unsigned int threads, uint64_t seed)
{
	struct args a = { { (uintptr_t)buf } };

	return run_text(ptx, 1, threads, 0, seed, &a);
}

static bool clean(const char *error)
{
	if (*error)
		printf("# %s\n", error);
	return !*error;
}

static uint32_t rnd_state = 1;
static int rnd(int lo, int hi)
{
	rnd_state = rnd_state * 1664525u + 1013904223u;
	return lo + (int)(rnd_state >> 8) % (hi - lo + 1);
}

/* Small integers in every type: sums of them are exact */
enum type { F16, BF16, TF32, F32, F64, E4M3, E5M2, S32, S8, U8, S4, U4, B1 };
static const unsigned int bits[] = { 16, 16, 32, 32, 64, 8, 8, 32, 8, 8, 4, 4, 1 };

static uint64_t encode(int v, enum type t)
{
	float f = (float)v;
	double d = v;
	uint64_t u = 0;
	uint32_t w;
	unsigned int e = 0, a = (unsigned int)(v < 0 ? -v : v);

	memcpy(&w, &f, 4);
	switch (t) {
	case F32: case TF32: return w;
	case BF16: return w >> 16;
	case F64: memcpy(&u, &d, 8); return u;
	case F16: case E4M3: case E5M2: {
		unsigned int mant = t == F16 ? 10 : t == E4M3 ? 3 : 2, bias = t == E4M3 ? 7 : 15;

		if (!v)
			return 0;
		while (a >> (e + 1))
			e++;
		return (v < 0 ? 1u << (bits[t] - 1) : 0) | (e + bias) << mant |
		       ((mant >= e ? a << (mant - e) : a >> (e - mant)) & ((1u << mant) - 1));
	}
	default: return (uint64_t)v & (bits[t] == 32 ? ~0u : (1u << bits[t]) - 1);
	}
}

static int small(enum type t)
{
	switch (t) {
	case U8: return rnd(0, 255);
	case S8: return rnd(-128, 127);
	case S4: return rnd(-8, 7);
	case U4: return rnd(0, 15);
	case B1: return rnd(0, 1);
	case E5M2: return rnd(-4, 4);
	default: return rnd(-8, 8);
	}
}

/*
 * Element i of lane (group g, thread t of it): its row and column, as the PTX ISA writes them for
 * each shape
 */
typedef void place(unsigned int g, unsigned int t, unsigned int i, unsigned int *row,
		   unsigned int *col);
#define PLACE(name, r, c) static void name(unsigned int g, unsigned int t, unsigned int i, \
					   unsigned int *row, unsigned int *col) { *row = (r); \
					   *col = (c); }
PLACE(a_1688h, i < 2 ? g : g + 8, t * 2 + (i & 1))
PLACE(b_1688h, t * 2 + i, g)
PLACE(a_16816h, (i < 2 || (i >= 4 && i < 6)) ? g : g + 8, t * 2 + (i & 1) + (i < 4 ? 0 : 8))
PLACE(b_16816h, t * 2 + (i & 1) + (i < 2 ? 0 : 8), g)
PLACE(a_1684t, i == 0 ? g : g + 8, t)
PLACE(b_1684t, t, g)
PLACE(a_1688t, i == 0 || i == 2 ? g : g + 8, i < 2 ? t : t + 4)
PLACE(b_1688t, i == 0 ? t : t + 4, g)
PLACE(a_8816i, g, t * 4 + i)
PLACE(b_8816i, t * 4 + i, g)
PLACE(a_16816i, i < 4 ? g : g + 8, t * 4 + (i & 3))
PLACE(a_16832i, (i < 4 || (i >= 8 && i < 12)) ? g : g + 8, t * 4 + (i & 3) + (i < 8 ? 0 : 16))
PLACE(b_16832i, t * 4 + (i & 3) + (i < 4 ? 0 : 16), g)
PLACE(a_8832n, g, t * 8 + i)
PLACE(b_8832n, t * 8 + i, g)
PLACE(a_16832n, i < 8 ? g : g + 8, t * 8 + (i & 7))
PLACE(a_16864n, (i < 8 || (i >= 16 && i < 24)) ? g : g + 8, t * 8 + (i & 7) + (i < 16 ? 0 : 32))
PLACE(b_16864n, t * 8 + (i & 7) + (i < 8 ? 0 : 32), g)
PLACE(a_88128, g, t * 32 + i)
PLACE(b_88128, t * 32 + i, g)
PLACE(a_16128, i < 32 ? g : g + 8, t * 32 + (i & 31))
PLACE(a_16256, (i < 32 || (i >= 64 && i < 96)) ? g : g + 8, t * 32 + (i & 31) + (i < 64 ? 0 : 128))
PLACE(b_16256, t * 32 + (i & 31) + (i < 32 ? 0 : 128), g)
PLACE(a_884d, g, t)
PLACE(a_1688d, i % 2 == 0 ? g : g + 8, i < 2 ? t : t + 4)
PLACE(b_1688d, i == 0 ? t : t + 4, g)
PLACE(a_16816d, i % 2 == 0 ? g : g + 8, i / 2 * 4 + t)
PLACE(b_16816d, i * 4 + t, g)
PLACE(c_16, i < 2 ? g : g + 8, t * 2 + (i & 1))
PLACE(c_8, g, t * 2 + i)

static const struct {
	const char *insn;
	unsigned int m, k;
	enum type a, b, c;
	place *pa, *pb;
} shapes[] = {
	{ "m16n8k8.row.col.f32.f16.f16.f32", 16, 8, F16, F16, F32, a_1688h, b_1688h },
	{ "m16n8k8.row.col.f16.f16.f16.f16", 16, 8, F16, F16, F16, a_1688h, b_1688h },
	{ "m16n8k16.row.col.f32.f16.f16.f32", 16, 16, F16, F16, F32, a_16816h, b_16816h },
	{ "m16n8k16.row.col.f16.f16.f16.f16", 16, 16, F16, F16, F16, a_16816h, b_16816h },
	{ "m16n8k8.row.col.f32.bf16.bf16.f32", 16, 8, BF16, BF16, F32, a_1688h, b_1688h },
	{ "m16n8k16.row.col.f32.bf16.bf16.f32", 16, 16, BF16, BF16, F32, a_16816h, b_16816h },
	{ "m16n8k4.row.col.f32.tf32.tf32.f32", 16, 4, TF32, TF32, F32, a_1684t, b_1684t },
	{ "m16n8k8.row.col.f32.tf32.tf32.f32", 16, 8, TF32, TF32, F32, a_1688t, b_1688t },
	{ "m8n8k16.row.col.s32.s8.u8.s32", 8, 16, S8, U8, S32, a_8816i, b_8816i },
	{ "m16n8k16.row.col.s32.u8.s8.s32", 16, 16, U8, S8, S32, a_16816i, b_8816i },
	{ "m16n8k32.row.col.satfinite.s32.s8.s8.s32", 16, 32, S8, S8, S32, a_16832i, b_16832i },
	{ "m16n8k32.row.col.f32.e4m3.e5m2.f32", 16, 32, E4M3, E5M2, F32, a_16832i, b_16832i },
	{ "m8n8k32.row.col.s32.s4.u4.s32", 8, 32, S4, U4, S32, a_8832n, b_8832n },
	{ "m16n8k32.row.col.s32.u4.s4.s32", 16, 32, U4, S4, S32, a_16832n, b_8832n },
	{ "m16n8k64.row.col.s32.s4.s4.s32", 16, 64, S4, S4, S32, a_16864n, b_16864n },
	{ "m8n8k128.row.col.s32.b1.b1.s32.xor.popc", 8, 128, B1, B1, S32, a_88128, b_88128 },
	{ "m16n8k128.row.col.s32.b1.b1.s32.and.popc", 16, 128, B1, B1, S32, a_16128, b_88128 },
	{ "m16n8k256.row.col.s32.b1.b1.s32.xor.popc", 16, 256, B1, B1, S32, a_16256, b_16256 },
	{ "m8n8k4.row.col.f64.f64.f64.f64", 8, 4, F64, F64, F64, a_884d, b_1684t },
	{ "m16n8k4.row.col.f64.f64.f64.f64.rn", 16, 4, F64, F64, F64, a_1684t, b_1684t },
	{ "m16n8k8.row.col.f64.f64.f64.f64", 16, 8, F64, F64, F64, a_1688d, b_1688d },
	{ "m16n8k16.row.col.f64.f64.f64.f64", 16, 16, F64, F64, F64, a_16816d, b_16816d },
};

/*
 * Text of "{%x0, %x1}" and of the loads or stores of a fragment: lane's @n words (4 or 8 bytes) at
 * [%rd2 + at]
 */
static char *append(char *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	p += vsprintf(p, fmt, ap);
	va_end(ap);
	return p;
}

static unsigned int regs(unsigned int elements, enum type t)
{
	return bits[t] == 64 ? elements : (elements * bits[t] + 31) / 32;
}

static char *list(char *p, const char *name, unsigned int n)
{
	unsigned int i;

	p = append(p, "{");
	for (i = 0; i < n; i++)
		p = append(p, "%s%%%s%u", i ? ", " : "", name, i);
	return append(p, "}");
}

static char *transfer(char *p, const char *name, unsigned int n, enum type t,
		      unsigned int at, bool store)
{
	unsigned int i, size = bits[t] == 64 ? 8 : 4;

	for (i = 0; i < n; i++)
		p = store ? append(p, "st.global.b%u [%%rd2+%u], %%%s%u;\n", size * 8,
				   at + i * size, name, i) :
			append(p, "ld.global.b%u %%%s%u, [%%rd2+%u];\n", size * 8, name, i,
			       at + i * size);
	return p;
}

/* Each lane has 256 bytes: A at 0, B at 64, C at 96, D at 128 */
#define LANE 256
static void put(uint8_t *base, unsigned int lane, unsigned int at, unsigned int i, uint64_t v,
		enum type t)
{
	uint8_t *p = base + lane * LANE + at + i * bits[t] / 8;

	if (bits[t] < 8)
		*p |= (uint8_t)(v << (i * bits[t] % 8));
	else
		memcpy(p, &v, bits[t] / 8);
}

static uint64_t get(const uint8_t *base, unsigned int lane, unsigned int at, unsigned int i,
		    enum type t)
{
	uint64_t v = 0;

	memcpy(&v, base + lane * LANE + at + i * bits[t] / 8, bits[t] / 8);
	return v;
}

static void mma_shapes(void)
{
	static char ptx[16384];
	static int a[16][256], b[256][8], c[16][8];
	uint8_t *base = (uint8_t *)buf;
	unsigned int s, lane, i, row, col, k;

	for (s = 0; s < sizeof(shapes) / sizeof(*shapes); s++) {
		unsigned int m = shapes[s].m, kk = shapes[s].k, na = m * kk / 32, nb = kk * 8 / 32,
			nc = m * 8 / 32;
		enum type ta = shapes[s].a, tb = shapes[s].b, tc = shapes[s].c;
		place *pc = m == 16 ? c_16 : c_8;
		const char *w = ta == F64 ? "64" : "32", *wc = tc == F64 ? "64" : "32";
		bool good;
		char *p = ptx;

		p = append(p, "%s.visible .entry k(.param .u64 b)\n{\n"
			   ".reg .b32 %%r<4>; .reg .b64 %%rd<4>; .reg .b%s %%a<9>; "
			   ".reg .b%s %%b<9>; .reg .b%s %%c<9>; .reg .b%s %%d<9>;\n"
			   "ld.param.u64 %%rd1, [b]; mov.u32 %%r1, %%tid.x; "
			   "mul.wide.u32 %%rd2, %%r1, %u; add.s64 %%rd2, %%rd1, %%rd2;\n", HEAD, w,
			   w, wc, wc, LANE);
		p = transfer(p, "a", regs(na, ta), ta, 0, false);
		p = transfer(p, "b", regs(nb, tb), tb, 64, false);
		p = transfer(p, "c", regs(nc, tc), tc, 96, false);
		p = append(p, "mma.sync.aligned.%s ", shapes[s].insn);
		p = list(p, "d", regs(nc, tc));
		p = list(append(p, ", "), "a", regs(na, ta));
		p = list(append(p, ", "), "b", regs(nb, tb));
		p = list(append(p, ", "), "c", regs(nc, tc));
		p = transfer(append(p, ";\n"), "d", regs(nc, tc), tc, 128, true);
		append(p, "ret;\n}\n");
		memset(buf, 0, sizeof(buf));
		for (row = 0; row < m; row++)
			for (k = 0; k < kk; k++)
				a[row][k] = small(ta);
		for (k = 0; k < kk; k++)
			for (col = 0; col < 8; col++)
				b[k][col] = small(tb);
		for (row = 0; row < m; row++)
			for (col = 0; col < 8; col++)
				c[row][col] = rnd(-100, 100);
		for (lane = 0; lane < 32; lane++) {
			for (i = 0; i < na; i++) {
				shapes[s].pa(lane / 4, lane % 4, i, &row, &col);
				put(base, lane, 0, i, encode(a[row][col], ta), ta);
			}
			for (i = 0; i < nb; i++) {
				shapes[s].pb(lane / 4, lane % 4, i, &row, &col);
				put(base, lane, 64, i, encode(b[row][col], tb), tb);
			}
			for (i = 0; i < nc; i++) {
				pc(lane / 4, lane % 4, i, &row, &col);
				put(base, lane, 96, i, encode(c[row][col], tc), tc);
			}
		}
		good = clean(one(ptx, 32, s));
		for (lane = 0; good && lane < 32; lane++)
			for (i = 0; good && i < nc; i++) {
				int sum;

				pc(lane / 4, lane % 4, i, &row, &col);
				sum = c[row][col];
				for (k = 0; k < kk; k++)
					sum += ta != B1 ? a[row][k] * b[k][col] :
					       strstr(shapes[s].insn, "xor") ?
						       a[row][k] ^ b[k][col] :
						a[row][k] & b[k][col];
				good = get(base, lane, 128, i, tc) == encode(sum, tc);
				if (!good)
					printf("# lane %u, element %u: 0x%llx, should be %d\n",
					       lane, i, (unsigned long long)get(base, lane, 128,
										i, tc), sum);
			}
		ok(good, "mma.sync.aligned.%s", shapes[s].insn);
	}
}

/* Four 8x8x4 products, each by the lanes of two quads; A and B by rows or by columns */
static void quads(void)
{
	unsigned int form, lane, i, q, k, row, col;
	static int a[4][8][4], b[4][4][8], c[4][8][8];
	uint8_t *base = (uint8_t *)buf;
	char ptx[4096];

	for (form = 0; form < 8; form++) {
		bool acol = form & 1, bcol = form & 2, half = form & 4, good;
		enum type tc = half ? F16 : F32;
		char *p = ptx;

		p = append(p, "%s.visible .entry k(.param .u64 b)\n{\n"
			   ".reg .b32 %%r<4>; .reg .b64 %%rd<4>; .reg .b32 %%a<9>; "
			   ".reg .b32 %%b<9>; .reg .b32 %%c<9>; .reg .b32 %%d<9>;\n"
			   "ld.param.u64 %%rd1, [b]; mov.u32 %%r1, %%tid.x; "
			   "mul.wide.u32 %%rd2, %%r1, %u; add.s64 %%rd2, %%rd1, %%rd2;\n",
			   HEAD, LANE);
		p = transfer(p, "a", 2, F16, 0, false);
		p = transfer(p, "b", 2, F16, 64, false);
		p = transfer(p, "c", half ? 4 : 8, tc, 96, false);
		p = append(p, "mma.sync.aligned.m8n8k4.%s.%s.%s.f16.f16.%s ", acol ? "col" : "row",
			   bcol ? "col" : "row", half ? "f16" : "f32", half ? "f16" : "f32");
		p = list(p, "d", half ? 4 : 8);
		p = list(append(p, ", "), "a", 2);
		p = list(append(p, ", "), "b", 2);
		p = list(append(p, ", "), "c", half ? 4 : 8);
		p = transfer(append(p, ";\n"), "d", half ? 4 : 8, tc, 128, true);
		append(p, "ret;\n}\n");
		memset(buf, 0, sizeof(buf));
		for (q = 0; q < 4; q++)
			for (i = 0; i < 32; i++) {
				a[q][i / 4][i % 4] = small(F16);
				b[q][i / 8][i % 8] = small(F16);
				c[q][i / 8][i % 8] = small(F16);
				c[q][4 + i / 8][i % 8] = small(F16);
			}
		for (lane = 0; lane < 32; lane++) {
			q = lane % 16 / 4;
			for (i = 0; i < 4; i++) {
				unsigned int high = lane < 16 ? 0 : 4;

				put(base, lane, 0, i, encode(acol ? a[q][i + high][lane % 4] :
							     a[q][lane % 4 + high][i], F16), F16);
				put(base, lane, 64, i,
				    encode(bcol ? b[q][i][lane % 4 + high] :
					   b[q][lane % 4][i + high], F16), F16);
			}
			for (i = 0; i < 8; i++) {
				row = (half ? lane % 4 : (lane & 1) + (i & 2)) +
				      (lane < 16 ? 0 : 4);
				col = half ? i : (i & 4) + (lane & 2) + (i & 1);
				put(base, lane, 96, i, encode(c[q][row][col], tc), tc);
			}
		}
		good = clean(one(ptx, 32, 0));
		for (lane = 0; good && lane < 32; lane++)
			for (i = 0; i < 8; i++) {
				int sum;

				q = lane % 16 / 4;
				row = (half ? lane % 4 : (lane & 1) + (i & 2)) +
				      (lane < 16 ? 0 : 4);
				col = half ? i : (i & 4) + (lane & 2) + (i & 1);
				sum = c[q][row][col];
				for (k = 0; k < 4; k++)
					sum += a[q][row][k] * b[q][k][col];
				good &= get(base, lane, 128, i, tc) == encode(sum, tc);
			}
		ok(good, "mma.sync.aligned.m8n8k4, A by %s, B by %s, %s", acol ? "columns" : "rows",
		   bcol ? "columns" : "rows", half ? "f16" : "f32");
	}
}

static const struct {
	const char *shape, *types;	/* of wmma.mma */
	unsigned int m, n, k;
	enum type a, b, c, d;
	unsigned int ra, rb, rc, rd;	/* registers, as PTX has them */
	const char *ta, *tb, *tc, *td;
} wmmas[] = {
	{ "m16n16k16", "f32.f32", 16, 16, 16, F16, F16, F32, F32, 8, 8, 8, 8, "f16", "f16",
	  "f32", "f32" },
	{ "m8n32k16", "f16.f32", 8, 32, 16, F16, F16, F32, F16, 8, 8, 8, 4, "f16", "f16",
	  "f32", "f16" },
	{ "m32n8k16", "f32.f16", 32, 8, 16, F16, F16, F16, F32, 8, 8, 4, 8, "f16", "f16",
	  "f16", "f32" },
	{ "m16n16k16", "f32.bf16.bf16.f32", 16, 16, 16, BF16, BF16, F32, F32, 4, 4, 8, 8, "bf16",
	  "bf16", "f32", "f32" },
	{ "m32n8k16", "f32.bf16.bf16.f32", 32, 8, 16, BF16, BF16, F32, F32, 8, 2, 8, 8, "bf16",
	  "bf16", "f32", "f32" },
	{ "m16n16k8", "f32.tf32.tf32.f32", 16, 16, 8, TF32, TF32, F32, F32, 4, 4, 8, 8, "tf32",
	  "tf32", "f32", "f32" },
	{ "m8n8k4", "f64.f64.f64.f64", 8, 8, 4, F64, F64, F64, F64, 1, 1, 2, 2, "f64", "f64",
	  "f64", "f64" },
	{ "m16n16k16", "s32.s8.s8.s32", 16, 16, 16, S8, S8, S32, S32, 2, 2, 8, 8, "s8", "s8",
	  "s32", "s32" },
	{ "m8n32k16", "s32.u8.u8.s32", 8, 32, 16, U8, U8, S32, S32, 1, 4, 8, 8, "u8", "u8",
	  "s32", "s32" },
	{ "m8n8k32", "s32.s4.s4.s32", 8, 8, 32, S4, S4, S32, S32, 1, 1, 2, 2, "s4", "s4",
	  "s32", "s32" },
	{ "m8n8k128", "s32.b1.b1.s32", 8, 8, 128, B1, B1, S32, S32, 1, 1, 2, 2, "b1", "b1",
	  "s32", "s32" },
};

/*
 * Memory: A at 0, B at 8192, C at 16384, D at 24576 bytes; each with a leading dimension of its own
 */
static void store_matrix(unsigned int at, unsigned int row, unsigned int col, unsigned int stride,
			 bool by_col, int v, enum type t)
{
	uint64_t bit = (uint64_t)(by_col ? col * stride + row : row * stride + col) * bits[t],
		u = encode(v, t);
	uint8_t *p = (uint8_t *)buf + at + bit / 8;

	if (bits[t] < 8)
		*p |= (uint8_t)(u << bit % 8);
	else
		memcpy(p, &u, bits[t] / 8);
}

static void wmma(void)
{
	static int a[32][128], b[128][32], c[32][32];
	static char ptx[8192];
	unsigned int s, form, row, col, k;

	for (s = 0; s < sizeof(wmmas) / sizeof(*wmmas); s++) {
		unsigned int m = wmmas[s].m, n = wmmas[s].n, kk = wmmas[s].k;
		bool narrow = bits[wmmas[s].a] < 8, good = true;

		for (form = 0; form < (narrow ? 1 : 4); form++) {
			bool acol = form & 1, bcol = narrow || form & 2, ccol = form == 3,
				dcol = form == 1;
			unsigned int sa = (acol ? m : kk) + (narrow ? 128 : 16),
				sb = (bcol ? kk : n) + (narrow ? 128 : 0), sc = (ccol ? m : n) + 8,
					sd = dcol ? m : n;
			const char *wc = wmmas[s].c == F64 ? "64" : "32", *w = wmmas[s].a == F64 ?
					 "64" : "32";
			char *p = ptx;

			p = append(p, "%s.visible .entry k(.param .u64 b)\n{\n"
				   ".reg .b64 %%rd<4>; .reg .b32 %%r<4>; .reg .b%s %%a<9>; "
				   ".reg .b%s %%b<9>; .reg .b%s %%c<9>; .reg .b%s %%d<9>;\n"
				   "ld.param.u64 %%rd1, [b]; mov.u32 %%r1, %u;\n", HEAD, w, w,
				   wc, wc, sa);
			p = list(append(p, "wmma.load.a.sync.aligned.%s.%s.global.%s ",
					acol ? "col" : "row", wmmas[s].shape, wmmas[s].ta), "a",
				 wmmas[s].ra);
			p = append(p, ", [%%rd1], %%r1;\n");
			p = list(append(p, "wmma.load.b.sync.aligned.%s.%s.%s ", bcol ? "col" :
					"row", wmmas[s].shape, wmmas[s].tb), "b", wmmas[s].rb);
			/* without a stride it is packed */
			p = narrow ? append(p, ", [%%rd1+8192], %u;\n", sb) :
			    append(p, ", [%%rd1+8192];\n");
			p = list(append(p, "wmma.load.c.sync.aligned.%s.%s.global.%s ",
					ccol ? "col" : "row", wmmas[s].shape, wmmas[s].tc), "c",
				 wmmas[s].rc);
			p = append(p, ", [%%rd1+16384], %u;\n", sc);
			p = list(append(p, "wmma.mma.%ssync.aligned.%s.%s.%s.%s ",
					wmmas[s].a == B1 ? "xor.popc." : "", acol ? "col" : "row",
					bcol ? "col" : "row", wmmas[s].shape, wmmas[s].types), "d",
				 wmmas[s].rd);
			p = list(append(p, ", "), "a", wmmas[s].ra);
			p = list(append(p, ", "), "b", wmmas[s].rb);
			p = list(append(p, ", "), "c", wmmas[s].rc);
			p = append(p,
				   ";\nwmma.store.d.sync.aligned.%s.%s.global.%s [%%rd1+24576], ",
				   dcol ? "col" : "row", wmmas[s].shape, wmmas[s].td);
			append(list(p, "d", wmmas[s].rd), ", %u;\nret;\n}\n", sd);
			memset(buf, 0, sizeof(buf));
			for (row = 0; row < m; row++)
				for (k = 0; k < kk; k++)
					store_matrix(0, row, k, sa, acol,
						     a[row][k] = small(wmmas[s].a), wmmas[s].a);
			for (k = 0; k < kk; k++)
				for (col = 0; col < n; col++)
					store_matrix(8192, k, col, sb, bcol,
						     b[k][col] = small(wmmas[s].b), wmmas[s].b);
			for (row = 0; row < m; row++)
				for (col = 0; col < n; col++)
					store_matrix(16384, row, col, sc, ccol,
						     c[row][col] = rnd(-100, 100), wmmas[s].c);
			good &= clean(one(ptx, 32, form));
			for (row = 0; good && row < m; row++)
				for (col = 0; good && col < n; col++) {
					uint64_t v = 0, at =
						(dcol ? col * sd + row : row * sd + col) *
						bits[wmmas[s].d] / 8;
					int sum = c[row][col];

					for (k = 0; k < kk; k++)
						sum += wmmas[s].a == B1 ? a[row][k] ^ b[k][col] :
						       a[row][k] * b[k][col];
					memcpy(&v, (uint8_t *)buf + 24576 + at,
					       bits[wmmas[s].d] / 8);
					good = v == encode(sum, wmmas[s].d);
					if (!good)
						printf("# form %u, row %u, column %u: 0x%llx, "
						       "should be %d\n", form, row, col,
						       (unsigned long long)v, sum);
				}
		}
		ok(good, "wmma %s %s", wmmas[s].shape, wmmas[s].types);
	}
}

#define START HEAD ".visible .entry k(.param .u64 b)\n{\n.reg .pred %p<9>; .reg .b32 %r<40>; " \
		   ".reg .b64 %rd<9>; .reg .f32 %f<9>; .shared .align 128 .b8 s[2048];\n" \
	"ld.param.u64 %rd1, [b]; mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 4; " \
	"mul.wide.u32 %rd2, %r1, 16; add.s64 %rd2, %rd1, %rd2; mov.u32 %r3, s; " \
	"add.s32 %r4, %r3, %r2;\n"
#define ONE(body) START body "\nret;\n}\n"

static void moves(void)
{
	/*
	 * four matrices of 8 rows of 16 bytes in, transposed and not; row r of matrix k begins with
	 * element 64 k + 8 r
	 */
	static const char in[] = ONE(
		"ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%rd2]; "
		"st.shared.v4.u32 [%r4], {%r5, %r6, %r7, %r8}; bar.warp.sync -1;\n"
		"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r4]; "
		"ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r14, %r15}, [%r4];\n"
		"cvt.u64.u32 %rd3, %r4; cvta.shared.u64 %rd3, %rd3; "
		"ldmatrix.sync.aligned.m8n8.x1.b16 {%r16}, [%rd3]; "
		"movmatrix.sync.aligned.m8n8.trans.b16 %r17, %r16;\n"
		"st.global.v4.u32 [%rd2+4096], {%r10, %r11, %r12, %r13}; "
		"st.global.v4.u32 [%rd2+8192], {%r14, %r15, %r16, %r17};");
	static const char out[] = ONE(
		"shl.b32 %r5, %r1, 1; shl.b32 %r6, %r1, 17; add.s32 %r5, %r5, %r6; "
		"add.s32 %r5, %r5, 65536; add.s32 %r6, %r5, 0x400040;\n"
		"stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r4], {%r5, %r6}; "
		"stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%r4+512], {%r5}; "
		"bar.warp.sync -1;\n"
		"ld.shared.v4.u32 {%r7, %r8, %r9, %r10}, [%r4]; "
		"st.global.v4.u32 [%rd2], {%r7, %r8, %r9, %r10};\n"
		"ld.shared.v4.u32 {%r7, %r8, %r9, %r10}, [%r4+512]; "
		"st.global.v4.u32 [%rd2+512], {%r7, %r8, %r9, %r10};");
	/* the lanes come in two groups and do it together */
	static const char diverged[] = ONE(
		"setp.lt.u32 %p1, %r1, 20; mov.u32 %r5, 1;\n@%p1 bra $A;\n"
		"mov.u32 %r5, 2; nanosleep.u32 1;\n"
		"$A: movmatrix.sync.aligned.m8n8.trans.b16 %r6, %r5; st.global.u32 [%rd2], %r6;");
	static const char missing[] = ONE("setp.gt.u32 %p1, %r1, 20;\n@%p1 ret;\n"
					  "movmatrix.sync.aligned.m8n8.trans.b16 %r6, %r1;");
	static const char half[] = ONE("setp.gt.u32 %p1, %r1, 20;\n@%p1 bra $A;\n"
				       "movmatrix.sync.aligned.m8n8.trans.b16 %r6, %r1; bra $B;\n"
		"$A: movmatrix.sync.aligned.m8n8.trans.b16 %r6, %r1;\n$B:");
	uint16_t *h = (uint16_t *)buf;
	unsigned int i, k;
	bool good = true;
	const char *e;

	for (i = 0; i < 256; i++)
		h[i] = (uint16_t)i;
	good = clean(one(in, 32, 0));
	for (i = 0; i < 32; i++)
		for (k = 0; k < 4; k++) {
			uint32_t at = 64 * k + 2 * i, tr = 64 * (k & 1) + i % 4 * 16 + i / 4;

			good &= buf[1024 + 4 * i + k] == (at | (at + 1) << 16);
			good &= buf[2048 + 4 * i + k] == (k == 2 ? 2 * i | (2 * i + 1) << 16 :
							  (tr & 63) + (k == 1) * 64 +
							  (((tr & 63) + 8 + (k == 1) * 64) << 16));
		}
	ok(good, "ldmatrix and movmatrix");
	good = clean(one(out, 32, 0));
	for (i = 0; i < 128; i++)
		good &= h[i] == i;
	for (i = 0; i < 64; i++)
		good &= h[256 + i % 8 * 8 + i / 8] == i;
	ok(good, "stmatrix");
	ok(clean(one(diverged, 32, 5)), "lanes that come in groups are waited for");
	e = one(missing, 32, 0);
	ok(strstr(e, "lanes 0xffe00000 of warp 0 are not there"),
	   "a lane that has exited is missed");
	e = one(half, 32, 0);
	ok(strstr(e, "deadlock"), "two instructions for one warp are a deadlock");
}

/*
 * 64 x 16 by 16 x 16 of f16, the four warps of a block. Element (r, k) of A and B as the canonical
 * layouts have them: core matrices of 8 rows by 16 bytes, or rows of 128 bytes whose chunks are
 * exchanged by the row.
 */
static unsigned int offset_of(unsigned int r, unsigned int k, bool swizzled)
{
	if (swizzled)
		return r * 128 + ((k / 8 ^ r % 8) * 16 + k % 8 * 2);
	return r / 8 * 256 + k / 8 * 128 + r % 8 * 16 + k % 8 * 2;
}

static void warpgroup(void)
{
	static int a[64][16], b[16][16];
	static char ptx[8192];
	unsigned int form, r, k, c, lane, warp, i;

	for (form = 0; form < 4; form++) {
		/* swizzled; A in registers */
		bool sw = form & 1, in_regs = form & 2, good;
		uint8_t *mem = (uint8_t *)buf;
		/* stride 1024 >> 4 = 64; or leading 128, stride 256 */
		const char *desc = sw ? "0x4000004000010000" : "0x0000001000080000";

		append(ptx, "%s.visible .entry k(.param .u64 b)\n{\n"
		       ".reg .pred %%p<3>; .reg .b32 %%r<20>; .reg .b64 %%rd<20>; "
		       ".reg .b32 %%a<4>; .reg .f32 %%d<8>; .shared .align 1024 .b8 s[16384];\n"
			   "ld.param.u64 %%rd1, [b]; mov.u32 %%r1, %%tid.x; mov.u32 %%r2, s; "
			   "shl.b32 %%r3, %%r1, 7; add.s32 %%r3, %%r3, %%r2; "
			   "mul.wide.u32 %%rd2, %%r1, 128; add.s64 %%rd2, %%rd2, %%rd1; "
			   "mov.u32 %%r4, 0;\n"
			   "$L: ld.global.u32 %%r5, [%%rd2]; st.shared.u32 [%%r3], %%r5; "
			   "add.s64 %%rd2, %%rd2, 4; add.s32 %%r3, %%r3, 4; add.s32 %%r4, %%r4, 1; "
			   "setp.lt.u32 %%p1, %%r4, 32;\n@%%p1 bra $L;\n"
			   "fence.proxy.async; bar.sync 0; mul.wide.u32 %%rd3, %%r1, 32; "
			   "add.s64 %%rd3, %%rd3, %%rd1; "
			   "ld.global.v4.u32 {%%a0, %%a1, %%a2, %%a3}, [%%rd3+16384];\n"
			   "mov.b64 %%rd4, %s; add.s64 %%rd5, %%rd4, 512; "
			   "mov.f32 %%d0, 0f3F800000; mov.f32 %%d1, %%d0; mov.f32 %%d2, %%d0; "
			   "mov.f32 %%d3, %%d0; mov.f32 %%d4, %%d0; mov.f32 %%d5, %%d0; "
			   "mov.f32 %%d6, %%d0; mov.f32 %%d7, %%d0;\n"
			   "setp.ne.u32 %%p2, %s, 0; wgmma.fence.sync.aligned;\n"
			   "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%%d0, %%d1, %%d2, "
			   "%%d3, %%d4, %%d5, %%d6, %%d7}, %s, %%rd5, %%p2, 1, -1, %s;\n"
			   "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n"
			   "st.global.v4.f32 [%%rd3+24576], {%%d0, %%d1, %%d2, %%d3}; "
			   "st.global.v4.f32 [%%rd3+24592], {%%d4, %%d5, %%d6, %%d7}; ret;\n}\n",
		       HEAD, desc, form == 3 ? "0" : "1", in_regs ? "{%a0, %a1, %a2, %a3}" : "%rd4",
		       in_regs ? "0" : "0, 0");
		memset(buf, 0, sizeof(buf));
		for (r = 0; r < 64; r++)
			for (k = 0; k < 16; k++) {
				a[r][k] = rnd(-8, 8);
				if (!in_regs)
					memcpy(mem + offset_of(r, k, sw),
					       &(uint16_t){ (uint16_t)encode(a[r][k], F16) }, 2);
				else
					memcpy(mem + 16384 + (r / 16 * 32 + r % 8 * 4 + k % 8 / 2) *
					       32 + (r % 16 / 8 + k / 8 * 2) * 4 + k % 2 * 2,
					       &(uint16_t){ (uint16_t)encode(a[r][k], F16) }, 2);
			}
		for (k = 0; k < 16; k++)
			for (c = 0; c < 16; c++) {
				b[k][c] = rnd(-8, 8);
				memcpy(mem + 8192 + offset_of(c, k, sw),
				       &(uint16_t){ (uint16_t)encode(b[k][c], F16) }, 2);
			}
		good = clean(one(ptx, 128, form));
		for (warp = 0; good && warp < 4; warp++)
			for (lane = 0; lane < 32; lane++)
				for (i = 0; i < 8; i++) {
					int sum = form == 3 ? 0 : 1;
					float got;

					r = warp * 16 + lane / 4 + (i % 4 < 2 ? 0 : 8);
					c = i / 4 * 8 + lane % 4 * 2 + i % 2;
					for (k = 0; k < 16; k++)
						sum -= a[r][k] * b[k][c];
					memcpy(&got, mem + 24576 + (warp * 32 + lane) * 32 + i * 4,
					       4);
					good &= got == (float)sum;
				}
		ok(good, "wgmma m64n16k16, %s, A in %s", sw ? "128-byte swizzle" : "no swizzle",
		   in_regs ? "registers" : "shared memory");
	}
}

static void refused(void)
{
	static const char *const bad[] = {
		"mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, "
		"{%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f1,%f2,%f3,%f4};",
		"mma.sync.aligned.m16n8k12.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, "
		"{%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f1,%f2,%f3,%f4};",
		"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, "
		"{%r1,%r2,%r3}, {%r5,%r6}, {%f1,%f2,%f3,%f4};",
		"mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 {%f1,%f2,%f3,%f4}, "
		"{%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f1,%f2,%f3,%f4};",
		"mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, "
		"{%r1,%r2,%r3,%r4}, {%r5,%r6,%r7,%r8}, {%f1,%f2,%f3,%f4}, %r9, 0;",
		"mma.m16n8k8.row.col.f16.f16.f16.f16 {%r1,%r2}, {%r3,%r4}, {%r5}, {%r6,%r7};",
		"wmma.load.a.sync.aligned.row.m16n16k16.global.f32 "
		"{%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}, [%rd1];",
		"wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd1], {%f1,%f2,%f3};",
		"ldmatrix.sync.aligned.m8n8.x3.shared.b16 {%r1,%r2,%r3}, [%r4];",
		"ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r1,%r2}, [%r4];",
		"tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 32;",
	};
	char ptx[4096], text[64];
	unsigned int i;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		const char *e;

		snprintf(ptx, sizeof(ptx), "%s%s\nret;\n}\n", START, bad[i]);
		e = one(ptx, 32, 0);
		snprintf(text, sizeof(text), "unknown instruction %.*s",
			 (int)strcspn(bad[i], " "), bad[i]);
		if (!ok(strstr(e, text), "%s", text))
			printf("# %s\n", e);
	}
}

int main(void)
{
	mma_shapes();
	quads();
	wmma();
	moves();
	warpgroup();
	refused();
	return done();
}
