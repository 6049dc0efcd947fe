// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * One kernel: how it is launched, its parameters, what its registers and memories hold at first,
 * and its end.
 */
#include <stdlib.h>
#include <string.h>
#include "tree.h"

#define N_R	8
#define N_U	4
#define N_W	2
#define N_D	4
#define N_F	4
#define N_G	2
#define N_P	4
#define N_K	3

static const char *reg(struct place *p, char kind, unsigned int n)
{
	return gen_text(p->g, "%%%c%u", kind, gen_roll(p->g, n));
}

const char *gen_r(struct place *p) { return reg(p, 'r', N_R); }
const char *gen_u(struct place *p) { return reg(p, 'u', N_U); }
const char *gen_w(struct place *p) { return reg(p, 'w', N_W); }
const char *gen_d(struct place *p) { return reg(p, 'd', N_D); }
const char *gen_f(struct place *p) { return reg(p, 'f', N_F); }
const char *gen_g(struct place *p) { return reg(p, 'g', N_G); }
const char *gen_k(struct place *p) { return reg(p, 'k', N_K); }
const char *gen_p(struct place *p) { return reg(p, 'p', N_P); }

const char *gen_rv(struct place *p)
{
	static const char *const special[] = { "0", "1", "-1", "0x80000000", "0x7fffffff", "31",
					       "32", "255" };
	struct gen *g = p->g;

	switch (gen_roll(g, 10)) {
	case 0:
		return special[gen_roll(g, 8)];
	case 1:
		return gen_text(g, "%u", gen_roll(g, 1u << (1 + gen_roll(g, 30))));
	case 2:
		return "%lin";
	case 3:
		return gen_u(p);
	case 4:
		return p->func ? gen_r(p) : gen_w(p);
	default:
		return gen_r(p);
	}
}

/*
 * Declarations, then a first value for each register; what nobody names goes when the kernel is
 * reduced
 */
static void init(struct place *p, const char *name, const char *text)
{
	struct gen_node *n = gen_node(p, -1);

	n->fixed = true;
	n->only_with = name;
	L(n, "%s", text);
}

/*
 * %lin, %n, %cta: thread in the block, threads of the block, block in the grid, for any number of
 * dimensions
 */
static void ids(struct place *p)
{
	struct gen *g = p->g;
	struct gen_node *n = gen_node(p, -1);
	const unsigned int *b = g->k->launch.block_dim, *d = g->k->launch.grid;

	n->fixed = true;
	if (b[1] == 1 && b[2] == 1 && !gen_once_in(g, 4)) {
		L(n, "mov.u32 %%lin, %%tid.x;\nmov.u32 %%n, %%ntid.x;");
		g->linear = !p->func;
	} else {
		L(n, "mov.u32 %%t0, %%tid.z;\nmov.u32 %%t1, %%ntid.y;\nmov.u32 %%t2, %%tid.y;\n"
		  "mad.lo.u32 %%t0, %%t0, %%t1, %%t2;\n"
		  "mov.u32 %%t2, %%ntid.x;\nmov.u32 %%t3, %%tid.x;\n"
		  "mad.lo.u32 %%lin, %%t0, %%t2, %%t3;\nmul.lo.u32 %%n, %%t1, %%t2;\n"
		  "mov.u32 %%t3, %%ntid.z;\nmul.lo.u32 %%n, %%n, %%t3;");
	}
	n = gen_node(p, -1);
	n->fixed = true;
	if (p->func && !p->func->ids)
		L(n, "mov.u32 %%cta, 5;");
	else if (d[1] == 1 && d[2] == 1 && !gen_once_in(p->g, 4))
		L(n, "mov.u32 %%cta, %%ctaid.x;");
	else
		L(n, "mov.u32 %%t0, %%ctaid.z;\nmov.u32 %%t1, %%nctaid.y;\n"
		  "mov.u32 %%t2, %%ctaid.y;\nmad.lo.u32 %%t0, %%t0, %%t1, %%t2;\n"
		  "mov.u32 %%t1, %%nctaid.x;\nmov.u32 %%t2, %%ctaid.x;\n"
		  "mad.lo.u32 %%cta, %%t0, %%t1, %%t2;");
}

void gen_registers(struct place *p, bool kernel)
{
	struct gen *g = p->g;
	struct gen_node *n = gen_node(p, -1);
	unsigned int i;

	n->fixed = true;
	L(n, ".reg .b32 %%r<%d>, %%u<%d>, %%w<%d>, %%t<8>, %%z, %%lin, %%n, %%cta;\n"
	  ".reg .b64 %%d<%d>, %%s<6>, %%zz, %%inp, %%own, %%accp, %%fp<6>, %%locp, %%shp;", N_R,
	  N_U, N_W, N_D);
	L(n, ".reg .b32 %%c<%d>, %%b<%d>;", COUNTERS, COUNTERS);
	L(n, ".reg .f32 %%f<%d>, %%e<2>;\n.reg .f64 %%g<%d>, %%x<2>;\n.reg .pred %%p<%d>, %%q<4>;\n"
	  ".reg .b16 %%h<3>, %%k<%d>;", N_F, N_G, N_P, N_K);
	if (g->local)
		L(n, ".local .align 16 .b8 loc[%d];", 4 * LOCAL_WORDS);
	ids(p);
	for (i = 0; i < N_R; i++)
		init(p, gen_text(g, "%%r%u", i),
		     kernel ? gen_text(g, "mad.lo.u32 %%r%u, %s, %u, %u;", i, i % 3 == 2 ? "%cta" :
				       "%lin", gen_roll(g, 1u << 31), i) :
		     i < 2 ? gen_text(g, "ld.param.u32 %%r%u, [%c];", i, "xy"[i]) :
		     gen_text(g, "mad.lo.u32 %%r%u, %s, %u, %u;", i, i % 2 ? "%lin" : "%r0",
			      gen_roll(g, 1u << 31), i));
	for (i = 0; i < N_D; i++)
		init(p, gen_text(g, "%%d%u", i), gen_text(g, "mul.wide.u32 %%d%u, %s, %u;", i,
							  i % 2 ? "%cta" : "%lin",
							  gen_roll(g, 1u << 31)));
	for (i = 0; i < N_F; i++)
		init(p, gen_text(g, "%%f%u", i),
		     gen_text(g, "cvt.rn.f32.u32 %%f%u, %s;", i, i % 2 ? "%cta" : "%lin"));
	for (i = 0; i < N_G; i++)
		init(p, gen_text(g, "%%g%u", i),
		     gen_text(g, "cvt.rn.f64.u32 %%g%u, %s;", i, i % 2 ? "%cta" : "%lin"));
	for (i = 0; i < N_P; i++)
		init(p, gen_text(g, "%%p%u", i), gen_text(g, "setp.gt.u32 %%p%u, %s, %u;", i,
							  i % 2 ? "%cta" : "%lin",
							  gen_roll(g, 40)));
	for (i = 0; i < N_K; i++)
		init(p, gen_text(g, "%%k%u", i),
		     gen_text(g, "cvt.u16.u32 %%k%u, %s;", i, i % 2 ? "%cta" : "%lin"));
	if (!g->local)
		return;
	n = gen_node(p, -1);
	n->only_with = "loc";
	n->fixed = true;
	L(n, "mov.u64 %%s0, loc;");
	for (i = 0; i < LOCAL_WORDS; i += 4)
		L(n, "st.local.v4.u32 [%%s0+%u], {%%r0, %%lin, %%n, %%r1};", 4 * i);
	init(p, "%locp", "cvta.local.u64 %locp, %s0;");
}

static void choose_shape(struct gen *g)
{
	static const unsigned int blocks[][3] = {
		{ 32, 1, 1 }, { 64, 1, 1 }, { 64, 1, 1 }, { 96, 1, 1 }, { 128, 1, 1 }, { 32, 2, 1 },
		{ 32, 3, 1 }, { 32, 1, 2 },
		{ 1, 1, 1 }, { 7, 1, 1 }, { 33, 1, 1 }, { 48, 1, 1 }, { 80, 1, 1 }, { 8, 8, 1 },
		{ 16, 4, 1 }, { 16, 2, 2 }, { 5, 3, 3 },
		{ 64, 2, 1 }, { 4, 4, 4 },
	};
	struct test_launch *t = &g->k->launch;
	unsigned int total;

	memcpy(t->block_dim, blocks[gen_roll(g, sizeof(blocks) / sizeof(*blocks))],
	       sizeof(t->block_dim));
	g->threads = t->block_dim[0] * t->block_dim[1] * t->block_dim[2];
	g->warps = g->threads / 32;
	g->full_warps = t->block_dim[0] % 32 == 0 ||
			(t->block_dim[0] == g->threads && g->threads % 32 == 0);
	total = 2 + gen_roll(g, gen_once_in(g, 3) ? 12 : 48);
	while (total > 2 && total * g->threads > 3000)
		total /= 2;
	t->grid[0] = total;
	t->grid[1] = t->grid[2] = 1;
	if (gen_once_in(g, 3)) {
		t->grid[1] = 1 + gen_roll(g, 4);
		t->grid[2] = gen_once_in(g, 2) ? 1 + gen_roll(g, 3) : 1;
		t->grid[0] = 1 + total / (t->grid[1] * t->grid[2]);
	}
}

static void param(struct gen *g, enum test_kind kind, enum test_fill fill, size_t size,
		  uint64_t value)
{
	struct test_launch *t = &g->k->launch;

	t->params[t->n_params++] = (struct test_param){ .kind = kind, .fill = fill, .size = size,
							.value = value };
}

/* The parameters in a random order; returns their declarations */
static const char *params(struct gen *g)
{
	static const char *const decl[] = {
		".param .u64 in", ".param .u64 out", ".param .u64 acc", ".param .u32 a",
		".param .u64 b", ".param .u8 c", ".param .align 8 .b8 s[24]",
	};
	const struct test_launch *t = &g->k->launch;
	unsigned int order[7] = { 0, 1, 2, 3, 4, 5, 6 }, i, j, swap;
	size_t blocks = (size_t)t->grid[0] * t->grid[1] * t->grid[2];
	const char *list = "";

	for (i = 7; i-- > 1 && !gen_once_in(g, 8);) {
		j = gen_roll(g, i + 1);
		swap = order[i];
		order[i] = order[j];
		order[j] = swap;
	}
	for (i = 0; i < 7; i++) {
		list = gen_text(g, "%s%s%s", list, i ? ", " : "", decl[order[i]]);
		switch (order[i]) {
		case 0: param(g, PARAM_BUFFER, FILL_WORDS, 4 * IN_WORDS, 0); break;
		case 1: param(g, PARAM_BUFFER, FILL_ZERO, blocks * g->threads * OWN_WORDS * 4, 0);
			break;
		case 2: param(g, PARAM_BUFFER, FILL_WORDS, 4 * CELLS + 8 * CELLS64, 0); break;
		case 3: param(g, PARAM_VALUE, 0, 4, gen_roll(g, 1000)); break;
		case 4: param(g, PARAM_VALUE, 0, 8, gen_roll64(g) >> 20); break;
		case 5: param(g, PARAM_VALUE, 0, 1, gen_roll(g, 256)); break;
		case 6: param(g, PARAM_BYTES, 0, 24, 0); break;
		}
	}
	return list;
}

static void directives(struct place *p, struct gen_node *n)
{
	const struct test_launch *t = &p->g->k->launch;

	switch (gen_roll(p->g, 6)) {
	case 0:
		L(n, ".reqntid %u, %u, %u", t->block_dim[0], t->block_dim[1], t->block_dim[2]);
		break;
	case 1:
		L(n, ".maxntid 128, 1, 1\n.minnctapersm 2");
		break;
	case 2:
		L(n, ".maxntid %u, %u, %u", t->block_dim[0], t->block_dim[1], t->block_dim[2]);
	}
}

static void prologue(struct place *p)
{
	struct gen *g = p->g;
	struct gen_node *n = gen_node(p, -1);
	unsigned int i;

	n->fixed = true;
	L(n, "ld.param.u64 %%inp, [in];\nld.param.u64 %%own, [out];\nld.param.u64 %%accp, [acc];");
	if (!gen_once_in(g, 3))
		L(n, "cvta.to.global.u64 %%inp, %%inp;\ncvta.to.global.u64 %%own, %%own;\n"
		  "cvta.to.global.u64 %%accp, %%accp;");
	L(n, "mad.lo.u32 %%t0, %%cta, %%n, %%lin;\nmul.wide.u32 %%s0, %%t0, %d;\n"
	  "add.u64 %%own, %%own, %%s0;", 4 * OWN_WORDS);
	for (i = 0; i < N_U; i++) {
		static const char *const from[] = {
			"ld.param.u32 %%u%u, [a];", "add.u32 %%u%u, %%cta, 0;",
			"ld.param.u32 %%u%u, [b];", "ld.param.u8 %%u%u, [c];",
			"ld.param.u32 %%u%u, [s+4];", "mov.u32 %%u%u, %%nctaid.x;",
			"mov.u32 %%u%u, %%ctaid.y;", "ld.param.u16 %%u%u, [s+18];",
		};

		init(p, gen_text(g, "%%u%u", i), gen_text(g, from[i < 2 ? i : gen_roll(g, 8)], i));
	}
	for (i = 0; i < N_W; i++)
		init(p, gen_text(g, "%%w%u", i),
		     g->k->launch.block_dim[1] == 1 && g->k->launch.block_dim[2] == 1 ?
		     gen_text(g, "shr.u32 %%w%u, %%lin, 5;", i) :
		     gen_text(g, "mov.u32 %%w%u, %s;", i, i ? "%tid.z" : "%tid.y"));
}

/* As most kernels begin: who has nothing to do leaves. Never thread 0 without its whole block. */
static bool early_guard(struct place *p)
{
	struct gen *g = p->g;
	struct gen_node *n;

	if (!g->exits || gen_once_in(g, 2))
		return false;
	n = gen_node(p, GEN_ret);
	if (gen_once_in(g, 2))
		L(n, "setp.gt.u32 %%q0, %%lin, %u;\n@%%q0 ret;", gen_roll(g, g->threads));
	else
		L(n, "mad.lo.u32 %%t0, %%cta, %%n, %%lin;\nsetp.ge.u32 %%q0, %%t0, %u;\n"
		  "@%%q0 exit;", gen_roll(g,
					  g->threads * g->k->launch.grid[0] *
					  g->k->launch.grid[1]));
	return true;
}

/* Thread 0 fills a shared array of @words */
static void fill(struct place *p, const char *name, const char *words, const char *value)
{
	unsigned int label = p->g->labels++;
	struct gen_node *n = gen_node(p, -1);

	n->fixed = true;
	n->only_with = name;
	L(n, "setp.ne.u32 %%q0, %%lin, 0;\n@%%q0 bra L%u;\nmov.u32 %%t0, 0;\nmov.u32 %%t1, %s;\n"
	  "L%u_fill:\nst.shared.u32 [%%t1], %s;\n"
	  "add.u32 %%t1, %%t1, 4;\nadd.u32 %%t0, %%t0, 1;\nsetp.lt.u32 %%q0, %%t0, %s;\n"
	  "@%%q0 bra L%u_fill;\nL%u:", label, name, label, value, words, label, label);
}

/* First contents of shared memory, so that nobody reads what nobody wrote */
static void shared_init(struct place *p, bool some_left)
{
	struct gen *g = p->g;
	struct gen_node *n;

	if (g->shared && some_left) {
		fill(p, "sh", "%n", "%t0");
	} else if (g->shared) {
		n = gen_node(p, -1);
		n->fixed = true;
		n->only_with = "sh";
		L(n, "shl.b32 %%t0, %%lin, 2;\nmov.u32 %%t1, sh;\nadd.u32 %%t1, %%t1, %%t0;\n"
		  "st.shared.u32 [%%t1], %%r1;");
	}
	if (g->cells)
		fill(p, "cells", gen_text(g, "%d", SHARED_CELLS), "%u0");
	if (g->shared && g->generic) {
		n = gen_node(p, GEN_generic);
		n->fixed = true;
		n->only_with = "%shp";
		L(n, "mov.u64 %%s0, sh;\ncvta.shared.u64 %%shp, %%s0;");
	}
	if (g->shared || g->cells) {
		n = gen_node(p, -1);
		n->fixed = true;
		L(n, "bar.sync 0;");
	}
}

static void epilogue(struct place *p)
{
	static const char *const store[] = {
		"st.global.u32 [%own+32], %r0;", "st.global.v2.u32 [%own+40], {%r2, %r3};",
		"st.global.u64 [%own+48], %d0;",
		"st.global.f32 [%own+36], %f0;", "st.global.f64 [%own+56], %g0;",
		"selp.b32 %t0, %r1, %r4, %p0;\nst.global.u32 [%own+32], %t0;",
		"st.global.u16 [%own+62], %k0;",
		"mov.b32 %t0, {%k1, %k2};\nst.global.u32 [%own+60], %t0;",
		"xor.b64 %s0, %d1, %d2;\nst.global.u64 [%own+48], %s0;",
		"xor.b32 %t0, %r5, %r6;\nxor.b32 %t0, %t0, %u1;\nst.u32 [%own+56], %t0;",
	};
	unsigned int i, n = 2 + gen_roll(p->g, 5);
	struct gen_node *e;

	for (i = 0; i < n; i++) {
		e = gen_node(p, -1);
		L(e, "%s", store[gen_roll(p->g, sizeof(store) / sizeof(*store))]);
	}
	e = gen_node(p, -1);
	e->fixed = true;
	L(e, "%s", gen_once_in(p->g, 3) ? "exit;" : "ret;");
}

static void variable(struct place *p, const char *name, const char *declared)
{
	struct gen_node *n;

	if (!p->g->variables)
		return;
	n = gen_node(p, -1);
	n->fixed = true;
	n->only_with = name;
	L(n, "%s", declared);
}

/* Another kernel of the module, which nobody launches */
static void another(struct place *p)
{
	struct gen *g = p->g;
	struct gen_node *n = gen_node(p, -1);

	L(n, ".visible .entry another (.param .u64 out)\n{\n.reg .b32 %%r<8>;\n.reg .b64 %%d<4>;\n"
	  ".reg .pred %%p;\nld.param.u64 %%d0, [out];\n"
	  "mov.u32 %%r0, %%ctaid.x;\nmov.u32 %%r1, %%tid.x;\nsetp.gt.u32 %%p, %%r1, 20;\n"
	  "@%%p ret;\nbar.sync 0;");
	if (g->shared)
		L(n, "st.shared.u32 [sh], %%r0;\nbar.sync 0;\nld.shared.u32 %%r1, [sh];");
	if (g->n_funcs)
		L(n, "{\n.param .b32 px, py, pr;\n.param .b64 po;\nst.param.b32 [px], %%r0;\n"
		  "st.param.b32 [py], %%r1;\nst.param.b64 [po], %%d0;\n"
		  "call (pr), f0, (px, py, po);\nld.param.b32 %%r1, [pr];\n}");
	L(n, "st.global.u32 [%%d0], %%r1;\n}");
}

static void module_vars(struct place *p)
{
	struct gen *g = p->g;
	const char *functions;
	struct gen_node *n;
	unsigned int i;

	if (g->shared) {
		n = gen_node(p, -1);
		n->fixed = true;
		n->only_with = "sh";
		if (g->dynamic)
			L(n, ".extern .shared .align 16 .b8 sh[];");
		else
			L(n, ".shared .align 16 .b8 sh[%u];", 4 * g->threads);
	}
	if (g->cells) {
		n = gen_node(p, -1);
		n->fixed = true;
		n->only_with = "cells";
		L(n, ".shared .align 4 .u32 cells[%d];", SHARED_CELLS);
	}
	if (g->async) {
		n = gen_node(p, -1);
		n->fixed = true;
		n->only_with = "async_room";
		L(n, ".shared .align 16 .b8 async_room[%u];", 16 * g->threads);
	}
	if (g->k->launch.ordered) {
		n = gen_node(p, -1);
		n->fixed = true;
		n->only_with = "blocks";
		L(n, ".global .u32 blocks;");
	}
	variable(p, "consts", ".const .align 4 .u32 consts[8] = {3, 1, 4, 1, 5, 9, 2, 6};");
	variable(p, "globals", gen_text(g, "%s.global .align 8 .u32 globals[%d]%s;",
					gen_once_in(g, 2) ? ".visible " : "", CELLS,
					gen_once_in(g, 2) ? "" : " = {1, 2, 3, 4, 5, 6, 7, 8, 9}"));
	variable(p, "table", ".global .align 4 .b8 table[64] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, "
		 "12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23};");
	for (i = 0; i < g->n_funcs; i++) {
		n = gen_node(p, -1);
		n->fixed = true;
		n->only_with = g->func[i].name;
		L(n, ".func (.param .b32 rv) %s (.param .b32 x, .param .b32 y, .param .b64 o);",
		  g->func[i].name);
	}
	functions = g->indirect ? gen_table(g) : NULL;
	if (functions) {
		n = gen_node(p, -1);
		n->fixed = true;
		n->only_with = "functions";
		L(n, "%s", functions);
	}
}

/*
 * Static shared memory of nearly 48 KiB, or all of it, which threads use at both ends: no room for
 * the twin's own. @at: where in the kernel; chosen last, so that seeds keep their kernels.
 */
static void fill_static(struct place *p, struct gen_node **at)
{
	struct gen *g = p->g;
	unsigned int size = 49152 - 4 * gen_roll(g, 32);
	struct gen_node *n, *rest = *at;
	struct place here = *p;

	size -= g->shared && !g->dynamic ? (4 * g->threads + 15) / 16 * 16 : 0;
	size -= (g->cells ? 4 * SHARED_CELLS : 0) + (g->async ? 16 * g->threads : 0);
	here.tail = at;
	n = gen_node(&here, -1);
	n->next = rest;
	L(n, ".shared .align 4 .b8 most[%u];\nshl.b32 %%t0, %%lin, 2;\nmov.u32 %%t1, most;\n"
	  "add.u32 %%t1, %%t1, %%t0;\nst.shared.u32 [%%t1], %%lin;\n"
	  "st.shared.u32 [%%t1+%u], %%lin;", size, (size - 4 * g->threads) / 4 * 4);
}

struct gen_kernel *gen_kernel_new(uint64_t seed, const struct gen_options *o)
{
	static const struct { unsigned int arch; const char *version; } targets[] =
		{ { 90, "9.0" }, { 75, "6.5" }, { 80, "7.4" }, { 90, "8.6" } };
	struct gen_kernel *k = calloc(1, sizeof(*k));
	struct gen g = { .rng = seed * 0x2545f4914f6cdd1dull ^ 0x67656e, .k = k, .o = o };
	struct gen_node *n, **initialised;
	struct place p = { .g = &g }, part;
	bool dirty = false;
	unsigned int target, cost = 0;
	const char *list;
	int left;

	if (!k)
		return NULL;
	k->seed = seed;
	snprintf(k->launch.kernel, sizeof(k->launch.kernel), "gen_%llu", (unsigned long long)seed);
	k->launch.block = true;
	p.tail = &k->module;
	p.level = LEVEL_BLOCK;
	p.times = 1;
	p.left = &left;
	p.cost = &cost;
	p.most = 2500;
	p.dirty = &dirty;
	target = gen_roll(&g, 4);
	g.arch = targets[target].arch;
	choose_shape(&g);
	g.exits = gen_once_in(&g, g.full_warps ? 3 : 2);
	g.exit_barriers = gen_once_in(&g, 6);
	g.shared = !gen_once_in(&g, 4);
	g.dynamic = gen_once_in(&g, 3);
	g.cells = gen_once_in(&g, 3);
	g.local = gen_once_in(&g, 3);
	g.variables = gen_once_in(&g, 4);
	g.indirect = gen_once_in(&g, 4);
	g.table_const = g.indirect && gen_once_in(&g, 2);
	g.async = g.arch >= 80 && o->weight[GEN_async] && gen_once_in(&g, 6);
	g.gathers = gen_once_in(&g, 4);
	g.n_funcs = gen_once_in(&g, 2) ? 0 : 1 + gen_roll(&g, FUNCS_MAX - 1);
	k->launch.dynamic = g.shared && g.dynamic ? 4 * g.threads : gen_once_in(&g, 8) ? 64 : 0;
	/* not a roll of the dice, so that seeds keep their kernels */
	g.generic = seed % 4 < o->weight[GEN_generic];
	k->launch.ordered = o->weight[GEN_chain] && gen_once_in(&g, 8);
	list = params(&g);

	n = gen_node(&p, -1);
	n->fixed = true;
	gen_line(&g, n, 0, ".version %s\n.target sm_%u\n.address_size 64",
		 targets[target].version, g.arch);
	/* declarations, then functions: which there are is known only then */
	n = gen_node(&p, -1);
	n->fixed = true;
	part = gen_inside(&p, n, 1, LEVEL_BLOCK);
	gen_functions(&part);
	part = gen_inside(&p, n, 0, LEVEL_BLOCK);
	module_vars(&part);

	n = gen_node(&p, -1);
	n->fixed = true;
	n->compound = true;
	gen_line(&g, n, 0, ".visible .entry %s (%s)", k->launch.kernel, list);
	directives(&p, n);
	gen_line(&g, n, 0, "{");
	if (g.n_funcs && g.indirect)
		gen_line(&g, n, 0, "proto: .callprototype (.param .b32 _) _ (.param .b32 _, .param "
			 ".b32 _, .param .b64 _);");
	gen_line(&g, n, 1, "}");
	if (gen_once_in(&g, 5))
		another(&p);
	p.tail = &n->child[0];
	p.n_funcs = g.n_funcs;
	gen_registers(&p, true);
	prologue(&p);
	if (k->launch.ordered)
		gen_sync(&p, GEN_chain);
	shared_init(&p, early_guard(&p));
	initialised = p.tail;
	/* where nothing has parted warps yet */
	if (g.exits && o->weight[GEN_tile] && gen_once_in(&g, 4))
		gen_sync(&p, GEN_tile);
	left = 6 + (int)gen_roll(&g, gen_once_in(&g, 3) ? 50 : 20);
	gen_statements(&p, (unsigned int)left);
	if (o->weight[GEN_part] && g.shared && g.linear && !g.exits && g.warps > 1 &&
	    g.full_warps && gen_once_in(&g, 3))
		gen_sync(&p, GEN_part);
	epilogue(&p);
	if (gen_once_in(&g, 12))
		fill_static(&p, initialised);
	return k;
}
