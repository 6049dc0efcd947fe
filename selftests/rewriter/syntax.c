// SPDX-License-Identifier: LGPL-2.1-or-later
/* Lexer, parser, printer: what is kept, what is an error and where, and that no input does harm. */
#include <ctype.h>
#include <glob.h>
#include "rewriter/ptx/lex.h"
#include "same.h"
#include "test.h"

#define HEAD ".version 8.6\n.target sm_90\n.address_size 64\n"

/* Same tokens? White space and comments apart; says where not */
static bool same_tokens(const char *a, size_t na, const char *b, size_t nb)
{
	struct gsr_lexer la, lb;
	struct gsr_token ta, tb;

	gsr_lex_init(&la, a, na);
	gsr_lex_init(&lb, b, nb);
	do {
		ta = gsr_lex_next(&la);
		tb = gsr_lex_next(&lb);
		if (ta.kind != tb.kind || ta.len != tb.len || memcmp(ta.text, tb.text, ta.len)) {
			printf("# line %u: '%.*s', printed '%.*s'\n", ta.line, (int)ta.len, ta.text,
			       (int)tb.len, tb.text);
			return false;
		}
	} while (ta.kind != GSR_TOK_END);
	return true;
}

static char *print_of(const char *text, size_t n, size_t *size)
{
	struct gsr_module *m;
	struct gsr_error err;
	char *out;

	if (gsr_parse(text, n, "x", &m, &err) != GSR_OK) {
		printf("# %s\n", err.message);
		return NULL;
	}
	out = gsr_print(m, size);
	gsr_module_free(m);
	return out;
}

/* parse(print(x)) = x, and so the second print is the first */
static void survives(const char *what, const char *text, size_t n)
{
	struct gsr_module *a = NULL, *b = NULL;
	char why[256] = "", *once = NULL, *twice = NULL;
	struct gsr_error err;
	size_t n1, n2;
	bool good = gsr_parse(text, n, "x", &a, &err) == GSR_OK && (once = gsr_print(a, &n1)) &&
		    gsr_parse(once, n1, "y", &b, &err) == GSR_OK &&
		    same_module(a, b, why, sizeof(why)) &&
		    (twice = gsr_print(b, &n2)) && n1 == n2 && !memcmp(once, twice, n1);

	if (!ok(good, "%s: parse(print(x)) is x", what))
		printf("# %s%s\n", err.message, why);
	free(once);
	free(twice);
	gsr_module_free(a);
	gsr_module_free(b);
}

/* What the rewriter makes of it, too, in both kinds */
static void survives_rewritten(const char *what, const char *text, size_t n)
{
	struct gsr_options opts = { .size = sizeof(opts) };
	struct gsr_rewrite rw;
	struct gsr_error err;
	char name[512];

	for (unsigned int i = 0; i < 2; i++) {
		opts.resumable = opts.modes = i;
		if (gsr_rewrite_ptx(text, n, &opts, &rw, &err) != GSR_OK) {
			ok(false, "%s: %s", what, err.message);
			continue;
		}
		snprintf(name, sizeof(name), "%s, its %stwins", what, i ? "resumable " : "");
		if (rw.ptx)
			survives(name, rw.ptx, rw.ptx_size);
		gsr_rewrite_free(&rw);
	}
}

static void keeps(const char *what, const char *text, size_t n)
{
	size_t m = 0;
	char *out = print_of(text, n, &m);

	ok(out && same_tokens(text, n, out, m), "%s is kept", what);
	free(out);
}

/* One construct a line, inside of a kernel or, with a leading '!', at module scope */
static const char *const constructs[] = {
	"!.extern .shared .align 16 .b8 s[];",
	"!.global .align 4 .u32 a[2][3] = {{1, 2, 3}, {4, 5, 6}};",
	"!.visible .const .align 8 .b8 c[16] = {0xFF(f), 0, generic(g)+4};", "!.global .texref t;",
	"!.global .attribute(.managed) .align 4 .u32 m;",
	"!.weak .func (.param .b32 r) f (.param .b32 a, .reg .u32 b);",
	"!.func .attribute(.unified(1, 2)) f () { ret; }", "!.file 1 \"a.cu\", 1700000000, 12",
	"!.pragma \"nounroll\";",
	"!.section .debug_str { $L: .b8 1, 2 \n .b32 $L }", "!.alias a, b;",
	"!.func f () .noreturn { trap; }",
	"!.entry k2 (.param .u64 .ptr .global .align 16 p) .maxntid 256, 1, 1 { ret; }",
	"!.entry k2 (.param .align 8 .b8 q[24]) .minnctapersm 2 { ret; }",
	"!.entry k2 () .pragma \"enable_smem_spilling\"; { ret; }",
	"!.common .global .f64 d = 0d3FF0000000000000;",
	"!.global .v4 .f32 v[2];", "!.global .f32 pi = 3.14159e0;",
	"@%p1 bra $L1;", "@!%p1 ret;", "{ { add.s32 %r1, %r2, -7; } }", "mov.b64 {%r1, %r2}, %rd1;",
	"setp.eq.and.s32 %p1|%p2, %r1, 0x1F, !%p3;",
	"ld.global.nc.L1::no_allocate.L2::128B.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1+-16];",
	"ld.param.b32 %r1, [retval0+0];", "fma.rn.f32 %f1, 0f3F800000, %f2, 0fBF800000;",
	"mov.f64 %fd1, 1.5;", "mov.f32 %f1, .5;",
	"call.uni (r0, _), f, (a, 3, %r1);", "call f;", "call (r0), %rd1, (p0), proto;",
	"proto : .callprototype (.param .b32 _) _ (.param .b64 _);",
	"ts: .branchtargets $L1, $L2;", "cs: .calltargets f, g;", "brx.idx %r1, ts;", ".loc 1 12 3",
	".loc 1 5 3, function_name $L__info_string0, inlined_at 1 7 2", ".pragma \"nounroll\";",
	"tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1, %r2}];",
	"vadd.s32.u32.s32.sat %r1, %r2.b0, %r3.h1, %r4;",
	"shfl.sync.down.b32 %r1|%p1, %r2, 1, 31, -1;", "mov.u32 %r1, %tid.x;", "mov.u32 %r1, a[3];",
	"mov.u32 %r1, WARP_SZ;",
	"mov.u64 %rd1, sym+8;", "bar.red.popc.u32 %r1, 0, 64, !%p1;",
	"elect.sync _|%p1, 0xFFFFFFFF;",
	"mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], %r2;",
	"cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
		"[%r1], [%rd1, {%r2, %r3}], [%r4];",
	"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2}, {%r1}, {%r2}, {%f1, %f2};",
	"frobnicate.u32 %r1;",
	"add.u32 %r1, %r2, (1 + 2) * 3 << 4;", "mov.u32 %r1, 0b1010U;", ".reg .b32 %q<21>;",
	".local .align 16 .b8 depot[32];",
	".shared .align 4 .b8 x[2][4];", "L3: ret;", "mov.u32 %r1, -%r2;", "mov.u32 _, %r2;",
};

static const struct {
	const char *text, *message;
} errors[] = {
	{ "", "x:1:1: PTX begins with .version, found the end of the text" },
	{ "hello", "x:1:1: PTX begins with .version" },
	{ ".version 8.0\n.address_size 64", "x:2:1: .target expected after .version" },
	{ ".version 8.0\n.target sm_90\n.address_size 48",
	  "x:3:15: address size 48: 32 or 64 expected" },
	{ HEAD ".entry k () {\n\tadd.s32 %r1, %r2\n\tret;\n}",
	  "x:6:2: ';' expected after an instruction" },
	{ HEAD ".entry k () {\n\tret;\n",
	  "x:6:1: '}' expected at the end of k, found the end of the text" },
	{ HEAD ".entry k () { mov.f32 %f1, 0f3F; }",
	  "x:4:28: floating-point constant '0f3F' needs 8 hexadecimal digits" },
	{ HEAD ".entry k () { mov.u32 %r1, 12ab; }", "x:4:28: malformed number '12ab'" },
	{ HEAD ".entry k () { mov.u64 %r1, 99999999999999999999; }",
	  "x:4:28: number '99999999999999999999' does not fit 64 bits" },
	{ HEAD ".entry k () { mov.u32 %r1, 1/0; }", "x:4:29: division by zero" },
	{ HEAD ".global .align 3 .u32 x;", "x:4:18: alignment 3 is not a power of two" },
	{ HEAD ".const[2] .u32 x;", "x:4:7: constant banks (.const[n]) are not supported" },
	{ HEAD "/* open", "x:4:1: comment without an end" },
	{ HEAD ".pragma \"open", "x:4:9: string without an end" },
	{ HEAD ".entry k () { \x01 }", "x:4:15: character that PTX does not have" },
	{ HEAD ".entry k () { ld.global.u32 %r1, []; }", "x:4:36: address without a base" },
	{ HEAD ".global .u32 x = ;", "x:4:18: initializer expected after '='" },
	{ HEAD ".reg .u32 r<0>;", "x:4:14: 0 registers in one declaration" },
};

static void positions(void)
{
	struct gsr_module *m;
	struct gsr_error err;
	unsigned int i;

	for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		enum gsr_status s = gsr_parse(errors[i].text, strlen(errors[i].text),
					      "x", &m, &err);

		if (!ok(s == GSR_ERR_SYNTAX && !m && !strcmp(err.message, errors[i].message),
			"error: %s", errors[i].message))
			printf("# got %d: %s\n", s, err.message);
	}
}

/* Nesting that a recursive parser must bound */
static void deep(const char *what, const char *open, unsigned int n)
{
	char *text = malloc(strlen(HEAD) + 64 + n * strlen(open)), *p = text;
	struct gsr_module *m;
	struct gsr_error err;

	p += sprintf(p, HEAD ".entry k () { mov.u32 %%r1, ");
	if (*open == '{' && open[1])
		p = text + sprintf(text, HEAD ".entry k () { ");
	while (n--)
		p += sprintf(p, "%s", open);
	ok(gsr_parse(text, (size_t)(p - text), "x", &m, &err) == GSR_ERR_SYNTAX &&
	   strstr(err.message, "deep"), "%s: bounded", what);
	free(text);
}

static void mutate(const char *path)
{
	size_t n, i, k, size;
	char *text = slurp(path, &n), *copy;
	unsigned int parsed = 0, seed = 1;
	struct gsr_rewrite rw;
	struct gsr_error err;

	/* every prefix, in a buffer of its own size so that reading past it shows */
	for (i = 0; i < n; i += i < 400 ? 1 : 7) {
		copy = malloc(i ? i : 1);
		memcpy(copy, text, i);
		if (gsr_rewrite_ptx(copy, i, NULL, &rw, &err) == GSR_OK) {
			parsed++;
			gsr_rewrite_free(&rw);
		}
		free(copy);
	}
	ok(parsed < n / 4, "%s: truncated anywhere, no harm", path);
	/* single bits, and bytes that mean something */
	for (i = 0, size = n; i < 3000; i++) {
		copy = malloc(size);
		memcpy(copy, text, size);
		for (k = 0; k < 1 + i % 3; k++) {
			seed = seed * 1103515245 + 12345;
			if (i & 1)
				copy[(seed >> 8) % size] ^= (char)(1 << (seed & 7));
			else
				copy[(seed >> 8) % size] = "{}()[];,.%@:!|<>+-0\"/*"[seed % 22];
		}
		if (gsr_rewrite_ptx(copy, size, NULL, &rw, &err) == GSR_OK)
			gsr_rewrite_free(&rw);
		else if (!err.message[0])
			parsed = 0;
		free(copy);
	}
	ok(parsed > 0, "%s: changed anywhere, no harm, and each error says what", path);
	free(text);
}

int main(void)
{
	/* all PTX there is: the corpus, other corpora, and the kernels of the tests' programs */
	static const char *const where[] = { CORPUS "*.ptx", "selftests/*/*.ptx",
					     "selftests/*/*/*/*.ptx" };
	char buf[1024], name[400];
	unsigned int i, w;
	glob_t g = { 0 };

	for (w = 0; w < sizeof(where) / sizeof(where[0]); w++)
		glob(where[w], w ? GLOB_APPEND : 0, NULL, &g);
	ok(g.gl_pathc >= 17, "%zu files of PTX", g.gl_pathc);
	for (i = 0; i < g.gl_pathc; i++) {
		size_t n;
		char *text = slurp(g.gl_pathv[i], &n);

		survives(g.gl_pathv[i], text, n);
		survives_rewritten(g.gl_pathv[i], text, n);
		/* by hand, one declaration may name several */
		if (strstr(text, "NVIDIA NVVM"))
			keeps(g.gl_pathv[i], text, n);
		free(text);
	}
	for (i = 0; i < sizeof(constructs) / sizeof(constructs[0]); i++) {
		const char *c = constructs[i];
		int n = *c == '!' ? snprintf(buf, sizeof(buf), HEAD "%s", c + 1) :
				    snprintf(buf, sizeof(buf),
					     HEAD ".visible .entry k() { %s }", c);

		snprintf(name, sizeof(name), "\"%s\"", c);
		for (char *s = name; *s; s++)
			*s = *s == '\n' || *s == '#' ? ' ' : *s;
		keeps(name, buf, (size_t)n);
	}
	positions();
	deep("parentheses", "(", 100000);
	deep("signs", "-", 100000);
	deep("brackets", "[", 100000);
	deep("vectors", "{", 100000);
	deep("pairs", "%p|", 100000);
	deep("blocks", "{ ", 100000);
	mutate(CORPUS "hand.ptx");
	mutate(CORPUS "returns.sm_90.ptx");
	globfree(&g);
	return done();
}
