// SPDX-License-Identifier: LGPL-2.1-or-later
/* Statements of one thread: arithmetic, predicates, memory of its own, atomics. */
#include "tree.h"

#define PICK(array) ((array)[gen_roll(p->g, sizeof(array) / sizeof(*(array)))])

static void alu(struct place *p, struct gen_node *n, const char *guard)
{
	static const char *const two[] = {
		"add.u32", "sub.s32", "mul.lo.u32", "mul.hi.u32", "mul.hi.s32", "and.b32", "or.b32",
		"xor.b32", "shl.b32", "shr.u32", "shr.s32",
		"min.u32", "max.s32", "min.s32", "max.u32", "mul24.lo.u32", "add.s32",
	};
	static const char *const one[] = { "not.b32", "neg.s32", "abs.s32", "popc.b32", "clz.b32",
					   "brev.b32", "cnot.b32", "bfind.u32" };
	static const char *const three[] = { "mad.lo.u32", "mad.hi.s32", "prmt.b32", "bfe.u32",
					     "bfe.s32", "sad.u32", "shf.l.wrap.b32",
					     "shf.r.clamp.b32", "mad24.lo.s32" };
	struct gen *g = p->g;
	const char *to = gen_r(p);

	switch (gen_roll(g, 9)) {
	case 0:
		L(n, "%s%s %s, %s;", guard, PICK(one), to, gen_r(p));
		break;
	case 1:
		L(n, "%s%s %s, %s, %s, %s;", guard, PICK(three), to, gen_r(p),
		  gen_rv(p), gen_rv(p));
		break;
	case 2:
		L(n, "%slop3.b32 %s, %s, %s, %s, %u;", guard, to, gen_r(p), gen_r(p), gen_rv(p),
		  gen_roll(g, 256));
		break;
	case 3:
		L(n, "or.b32 %%t0, %s, 1;\n%s%s.%s %s, %s, %%t0;", gen_r(p), guard,
		  gen_once_in(g, 2) ? "div" : "rem", gen_once_in(g, 2) ? "u32" : "s32",
		  to, gen_r(p));
		break;
	case 4:
		L(n, "%sbfi.b32 %s, %s, %s, %u, %u;", guard, to, gen_r(p), gen_r(p),
		  gen_roll(g, 32), gen_roll(g, 32));
		break;
	case 5:
		L(n, "add.cc.u32 %%t0, %s, %s;\n%saddc.u32 %s, %s, 0;", gen_r(p), gen_r(p), guard,
		  to, gen_r(p));
		break;
	default:
		L(n, "%s%s %s, %s, %s;", guard, PICK(two), to, gen_r(p), gen_rv(p));
	}
}

static void alu64(struct place *p, struct gen_node *n)
{
	static const char *const two[] = { "add.u64", "sub.s64", "mul.lo.u64", "mul.hi.u64",
					   "and.b64", "or.b64", "xor.b64", "min.s64", "max.u64" };
	struct gen *g = p->g;

	switch (gen_roll(g, 8)) {
	case 0:
		L(n, "mad.wide.u32 %s, %s, %s, %s;", gen_d(p), gen_r(p), gen_r(p), gen_d(p));
		break;
	case 1:
		L(n, "cvt.u32.u64 %s, %s;", gen_r(p), gen_d(p));
		break;
	case 2:
		L(n, "%s %s, %s, %s;", gen_once_in(g, 2) ? "shl.b64" : gen_once_in(g, 2) ?
		  "shr.u64" : "shr.s64", gen_d(p), gen_d(p), gen_rv(p));
		break;
	case 3:
		L(n, "or.b64 %%s0, %s, 1;\n%s.u64 %s, %s, %%s0;", gen_d(p),
		  gen_once_in(g, 2) ? "div" : "rem", gen_d(p), gen_d(p));
		break;
	case 4:
		L(n, "mov.b64 {%s, %s}, %s;", "%r0", "%r1", gen_d(p));
		break;
	case 5:
		L(n, "%s.b64 %s, %s;", gen_once_in(g, 2) ? "popc" : "clz", gen_r(p), gen_d(p));
		break;
	default:
		L(n, "%s %s, %s, %s;", PICK(two), gen_d(p), gen_d(p), gen_d(p));
	}
}

static void alu_float(struct place *p, struct gen_node *n)
{
	static const char *const two[] = { "add.rn.f32", "sub.rn.f32", "mul.rn.f32", "min.f32",
					   "max.f32", "add.rz.f32", "div.rn.f32", "mul.ftz.f32" };
	struct gen *g = p->g;

	switch (gen_roll(g, 7)) {
	case 0:
		L(n, "fma.rn.f32 %s, %s, %s, %s;", gen_f(p), gen_f(p), gen_f(p), gen_f(p));
		break;
	case 1:
		L(n, "cvt.rzi.s32.f32 %s, %s;", gen_r(p), gen_f(p));
		break;
	case 2:
		L(n, "cvt.rn.f32.%s %s, %s;", gen_once_in(g, 2) ? "s32" : "u32",
		  gen_f(p), gen_r(p));
		break;
	case 3:
		L(n, "abs.f32 %%e0, %s;\nsqrt.rn.f32 %s, %%e0;", gen_f(p), gen_f(p));
		break;
	case 4:
		L(n, "mov.b32 %s, %s;", gen_r(p), gen_f(p));
		break;
	default:
		L(n, "%s %s, %s, 0f%08X;", PICK(two), gen_f(p), gen_f(p),
		  0x3f000000 + gen_roll(g, 1 << 26));
	}
}

static void alu_double(struct place *p, struct gen_node *n)
{
	static const char *const two[] = { "add.rn.f64", "sub.f64", "mul.rn.f64", "min.f64",
					   "div.rn.f64" };
	struct gen *g = p->g;

	switch (gen_roll(g, 5)) {
	case 0:
		L(n, "fma.rn.f64 %s, %s, %s, %s;", gen_g(p), gen_g(p), gen_g(p), gen_g(p));
		break;
	case 1:
		L(n, "cvt.f64.f32 %s, %s;", gen_g(p), gen_f(p));
		break;
	case 2:
		L(n, "cvt.rn.f32.f64 %s, %s;", gen_f(p), gen_g(p));
		break;
	case 3:
		L(n, "cvt.rzi.s64.f64 %s, %s;", gen_d(p), gen_g(p));
		break;
	default:
		L(n, "%s %s, %s, %s;", PICK(two), gen_g(p), gen_g(p), gen_g(p));
	}
}

static void alu16(struct place *p, struct gen_node *n)
{
	static const char *const two[] = { "add.u16", "sub.s16", "mul.lo.u16", "and.b16", "xor.b16",
					   "min.s16", "max.u16" };
	struct gen *g = p->g;

	switch (gen_roll(g, 6)) {
	case 0:
		L(n, "cvt.u16.u32 %s, %s;", gen_k(p), gen_r(p));
		break;
	case 1:
		L(n, "mul.wide.%s %s, %s, %s;", gen_once_in(g, 2) ? "u16" : "s16", gen_r(p),
		  gen_k(p), gen_k(p));
		break;
	case 2:
		L(n, "mov.b32 {%s, %s}, %s;", "%k0", gen_once_in(g, 2) ? "%k1" : "%k2", gen_r(p));
		break;
	default:
		L(n, "%s %s, %s, %s;", PICK(two), gen_k(p), gen_k(p), gen_k(p));
	}
}

static void pred(struct place *p, struct gen_node *n)
{
	static const char *const cmp[] = { "eq", "ne", "lt", "le", "gt", "ge" };
	static const char *const logic[] = { "and", "or", "xor" };

	switch (gen_roll(p->g, 6)) {
	case 0:
		L(n, "%s.pred %s, %s, %s;", PICK(logic), gen_p(p), gen_p(p), gen_p(p));
		break;
	case 1:
		L(n, "not.pred %s, %s;", gen_p(p), gen_p(p));
		break;
	case 2:
		L(n, "selp.b32 %s, %s, %s, %s;", gen_r(p), gen_r(p), gen_rv(p), gen_p(p));
		break;
	case 3:
		L(n, "setp.%s.%s.u32 %%p0|%%p1, %s, %s, %s;", PICK(cmp), PICK(logic), gen_r(p),
		  gen_rv(p), gen_p(p));
		break;
	case 4:
		L(n, "set.%s.u32.s32 %s, %s, %s;", PICK(cmp), gen_r(p), gen_r(p), gen_rv(p));
		break;
	default:
		L(n, "setp.%s.%s %s, %s, %s;", PICK(cmp), gen_once_in(p->g, 2) ? "u32" : "s32",
		  gen_p(p), gen_r(p), gen_rv(p));
	}
}

/* Into the thread's own words of `out` */
static void store(struct place *p, struct gen_node *n)
{
	struct gen *g = p->g;

	switch (gen_roll(g, 6)) {
	case 0:
		L(n, "st.global.u64 [%%own+%u], %s;", 8 * gen_roll(g, 4), gen_d(p));
		break;
	case 1:
		L(n, "st.global.u8 [%%own+%u], %s;", gen_roll(g, 32), gen_r(p));
		break;
	case 2:
		L(n, "and.b32 %%t0, %s, 7;\nmul.wide.u32 %%s0, %%t0, 4;\n"
		  "add.u64 %%s0, %%own, %%s0;\n@%s st.global.u32 [%%s0], %s;", gen_r(p),
		  gen_p(p), gen_r(p));
		break;
	case 3:
		L(n, "cvt.u16.u32 %%h0, %s;\nst.global.u16 [%%own+%u], %%h0;", gen_r(p),
		  2 * gen_roll(g, 16));
		break;
	case 4:
		L(n, "st.volatile.global.u32 [%%own+%u], %s;", 4 * gen_roll(g, 8), gen_r(p));
		break;
	default:
		L(n, "st.global.%s [%%own+%u], %s;", gen_once_in(g, 3) ? "f32" : "b32",
		  4 * gen_roll(g, 8), gen_once_in(g, 4) ? gen_f(p) : gen_r(p));
	}
}

static void load(struct place *p, struct gen_node *n)
{
	static const char *const narrow[] = { "u8", "s8", "u16", "s16", "u32" };
	struct gen *g = p->g;

	L(n, "and.b32 %%t0, %s, %d;\nmul.wide.u32 %%s0, %%t0, 4;\nadd.u64 %%s0, %%inp, %%s0;",
	  gen_r(p), IN_WORDS - 1);
	switch (gen_roll(g, 4)) {
	case 0:
		L(n, "ld.global.%s %s, [%%s0];", PICK(narrow), gen_r(p));
		break;
	case 1:
		L(n, "ld.global.nc.f32 %s, [%%s0];", gen_f(p));
		break;
	case 2:
		L(n, "@%s ld.global.u32 %s, [%%s0];", gen_p(p), gen_r(p));
		break;
	default:
		L(n, "ld%s.u32 %s, [%%s0];", gen_once_in(g, 4) ? "" : ".global", gen_r(p));
	}
}

static void vector(struct place *p, struct gen_node *n)
{
	struct gen *g = p->g;

	switch (gen_roll(g, 4)) {
	case 0:
		L(n, "and.b32 %%t0, %s, %d;\nmul.wide.u32 %%s0, %%t0, 16;\n"
		  "add.u64 %%s0, %%inp, %%s0;\nld.global.v4.u32 {%%r0, %%r1, %%r2, %%r3}, [%%s0];",
		  gen_r(p), IN_WORDS / 4 - 1);
		break;
	case 1:
		L(n, "and.b32 %%t0, %s, %d;\nmul.wide.u32 %%s0, %%t0, 16;\n"
		  "add.u64 %%s0, %%inp, %%s0;\nld.global.v2.u64 {%%d0, %%d1}, [%%s0];", gen_r(p),
		  IN_WORDS / 4 - 1);
		break;
	case 2:
		L(n, "st.global.v2.u32 [%%own+%u], {%s, %s};", 8 * gen_roll(g, 4),
		  gen_r(p), gen_r(p));
		break;
	default:
		L(n, "st.global.v4.b32 [%%own+%u], {%s, %s, %s, %s};", 16 * gen_roll(g, 2),
		  gen_r(p), gen_r(p), gen_rv(p), gen_r(p));
	}
}

/*
 * Each cell has one operation, so that the order does not matter; what an atom returns does, so
 * nobody reads it. %z and %zz are read nowhere at all.
 */
static void atomic(struct place *p, struct gen_node *n)
{
	static const char *const ops[CELLS] = { "add.u32", "add.u32", "min.u32", "max.u32",
						"min.s32", "max.s32", "and.b32",
						"or.b32", "xor.b32",
						"inc.u32", "xor.b32", "add.s32", "add.u32",
						"max.u32", "or.b32", "add.u32" };
	static const char *const ops64[CELLS64] = { "add.u64", "min.u64", "max.u64", "xor.b64",
						    "or.b64", "min.s64", "and.b64", "add.u64" };
	static const char *const scopes[] = { "", ".gpu", ".sys" };
	struct gen *g = p->g;
	const char *scope = PICK(scopes);
	unsigned int cell;

	if (gen_once_in(g, 4)) {
		cell = gen_roll(g, CELLS64);
		if (gen_once_in(g, 2))
			L(n, "red%s.global.%s [%%accp+%u], %s;", scope, ops64[cell],
			  4 * CELLS + 8 * cell, gen_d(p));
		else
			L(n, "atom%s.global.%s %s, [%%accp+%u], %s;", scope, ops64[cell],
			  gen_once_in(g, 3) ? "%s0" : "%zz", 4 * CELLS + 8 * cell, gen_d(p));
		return;
	}
	/* the last is changed by compare and swap only */
	cell = gen_roll(g, CELLS - 1);
	if (gen_once_in(g, 2))
		L(n, "red%s.global.%s [%%accp+%u], %s;", scope, ops[cell], 4 * cell,
		  cell == 9 ? "6" : gen_r(p));
	else
		L(n, "atom%s.global.%s %s, [%%accp+%u], %s;", scope, ops[cell],
		  gen_once_in(g, 3) ? "%t0" : "%z", 4 * cell, cell == 9 ? "6" : gen_r(p));
}

/* An addition, by hand */
static void cas(struct place *p, struct gen_node *n)
{
	unsigned int label = p->g->labels++;

	/* what it saw is nobody else's: the rewriter knows that it waits for nobody */
	if (gen_once_in(p->g, 2)) {
		L(n, "{\n.reg .b32 %%a%u, %%b%u, %%c%u;\n.reg .pred %%d%u;\nmov.u32 %%a%u, 0;\n"
		  "L%u:\nadd.u32 %%b%u, %%a%u, %s;\n"
		  "atom.global.cas.b32 %%c%u, [%%accp+%d], %%a%u, %%b%u;\n"
		  "setp.ne.u32 %%d%u, %%a%u, %%c%u;\nmov.u32 %%a%u, %%c%u;\n"
		  "@%%d%u bra L%u;\n}", label, label, label, label, label, label, label, label,
		  gen_rv(p), label, 4 * (CELLS - 1), label, label, label, label, label, label,
		  label, label, label);
		return;
	}
	L(n, "ld.volatile.global.u32 %%t0, [%%accp+%d];\nL%u:\nmov.u32 %%t2, %%t0;\n"
	  "add.u32 %%t1, %%t0, %s;\n"
	  "atom.global.cas.b32 %%t0, [%%accp+%d], %%t2, %%t1;\nsetp.ne.u32 %%q0, %%t0, %%t2;\n"
	  "@%%q0 bra L%u;", 4 * (CELLS - 1), label, gen_rv(p), 4 * (CELLS - 1), label);
}

static void local(struct place *p, struct gen_node *n)
{
	struct gen *g = p->g;
	bool generic = gen_once_in(g, 3), load = gen_once_in(g, 2);

	/* by a pointer that was made long before */
	if (generic && gen_once_in(g, 2))
		L(n, "and.b32 %%t0, %s, %d;\nmul.wide.u32 %%s0, %%t0, 4;\n"
		  "add.u64 %%s0, %%s0, %%locp;", gen_r(p), LOCAL_WORDS - 1);
	else
		L(n, "and.b32 %%t0, %s, %d;\nmul.wide.u32 %%s0, %%t0, 4;\nmov.u64 %%s1, loc;%s\n"
		  "add.u64 %%s0, %%s0, %%s1;", gen_r(p), LOCAL_WORDS - 1,
		  generic ? "\ncvta.local.u64 %s1, %s1;" : "");
	if (load)
		L(n, "ld%s.u32 %s, [%%s0];", generic ? "" : ".local", gen_r(p));
	else
		L(n, "st%s.u32 [%%s0], %s;", generic ? "" : ".local", gen_r(p));
}

static void special(struct place *p, struct gen_node *n)
{
	static const char *const ids[] = { "%ctaid.x", "%nctaid.x", "%ctaid.y", "%nctaid.y",
					   "%ctaid.z", "%nctaid.z" };
	static const char *const own[] = { "%tid.x", "%tid.y", "%ntid.x", "%ntid.z", "%lin" };
	const char *from = (!p->func || p->func->ids) && !gen_once_in(p->g, 3) ?
			   PICK(ids) : PICK(own);

	if (from[1] == 'l') {
		L(n, "mov.u32 %s, %s;", gen_r(p), from);
		return;
	}
	switch (gen_roll(p->g, 8)) {
	case 0:
		L(n, "add.u32 %s, %s, %s;", gen_r(p), gen_r(p), from);
		break;
	case 1:
		L(n, "mad.lo.u32 %s, %s, %s, %s;", gen_r(p), from, from, gen_r(p));
		break;
	case 2:
		L(n, "setp.lt.u32 %s, %s, %s;", gen_p(p), gen_r(p), from);
		break;
	case 3:
		L(n, "cvt.u64.u32 %s, %s;", gen_d(p), from);
		break;
	case 4:
		L(n, "@%s mov.u32 %s, %s;", gen_p(p), gen_r(p), from);
		break;
	case 5:
		L(n, "mov.u16 %%h1, %s;\ncvt.u32.u16 %s, %%h1;", from, gen_r(p));
		break;
	default:
		L(n, "mov.u32 %s, %s;", gen_r(p), from);
	}
}

/* A cell of a variable of the module, as of acc: one operation each */
static void variable(struct place *p, struct gen_node *n)
{
	static const char *const ops[] = { "add.u32", "xor.b32", "max.u32", "or.b32" };
	unsigned int cell = gen_roll(p->g, CELLS);

	if (gen_once_in(p->g, 2))
		L(n, "red.global.%s [globals+%u], %s;", ops[cell % 4], 4 * cell, gen_r(p));
	else
		L(n, "mov.u64 %%s0, globals;\n%satom%s.%s %%z, [%%s0+%u], %s;",
		  cell & 4 ? "cvta.global.u64 %s0, %s0;\n" : "", cell & 4 ? "" : ".global",
		  ops[cell % 4], 4 * cell, gen_r(p));
}

void gen_leaf(struct place *p, enum gen_feature what)
{
	struct gen_node *n = gen_node(p, what);
	struct gen *g = p->g;
	bool generic = gen_once_in(g, 3);

	switch (what) {
	case GEN_alu:
		/* what the block has in common stays so */
		if (p->level == LEVEL_BLOCK && gen_once_in(g, 4))
			L(n, "mad.lo.u32 %s, %s, %u, %s;", gen_u(p), gen_u(p),
			  gen_roll(g, 100), gen_u(p));
		else
			alu(p, n, "");
		break;
	case GEN_guarded:
		alu(p, n, gen_text(g, "@%s%s ", gen_once_in(g, 2) ? "!" : "", gen_p(p)));
		break;
	case GEN_alu64:
		alu64(p, n);
		break;
	case GEN_alu_float:
		alu_float(p, n);
		break;
	case GEN_alu_double:
		alu_double(p, n);
		break;
	case GEN_alu16:
		alu16(p, n);
		break;
	case GEN_pred:
		pred(p, n);
		break;
	case GEN_load:
		load(p, n);
		break;
	case GEN_vector:
		vector(p, n);
		break;
	case GEN_readback:
		L(n, "ld.global.u32 %s, [%%own+%u];", gen_r(p), 4 * gen_roll(g, 8));
		break;
	case GEN_atomic:
		atomic(p, n);
		break;
	case GEN_cas:
		cas(p, n);
		break;
	case GEN_local:
		local(p, n);
		break;
	case GEN_special:
		special(p, n);
		break;
	case GEN_shared_bits:
		L(n, "mov.u32 %%t0, sh;\nand.b32 %%t0, %%t0, %u;\nadd.u32 %s, %s, %%t0;",
		  16 << gen_roll(g, 6), gen_r(p), gen_r(p));
		break;
	case GEN_shared_atomic:
		L(n, "and.b32 %%t0, %s, %d;\nshl.b32 %%t0, %%t0, 2;\nmov.u32 %%t1, cells;\n"
		  "add.u32 %%t0, %%t0, %%t1;\n%s[%%t0], %s;", gen_r(p), SHARED_CELLS - 1,
		  gen_once_in(g, 2) ? "red.shared.add.u32 " :
		  "atom.shared.add.u32 %t2, ", gen_r(p));
		break;
	case GEN_async:
		/* nobody reads what it brings, nor waits for it */
		L(n, "mov.u32 %%t0, async_room;\nshl.b32 %%t1, %%lin, 4;\n"
		  "add.u32 %%t0, %%t0, %%t1;\n"
		  "cp.async.ca.shared.global [%%t0], [%%inp+%u], 4;\ncp.async.commit_group;",
		  4 * gen_roll(g, IN_WORDS));
		break;
	case GEN_global_var:
		variable(p, n);
		break;
	case GEN_const_var:
		if (gen_once_in(g, 2))
			L(n, "ld.const.u32 %s, [consts+%u];", gen_r(p), 4 * gen_roll(g, 8));
		else
			L(n, "and.b32 %%t0, %s, 7;\nmul.wide.u32 %%s0, %%t0, 4;\n"
			  "mov.u64 %%s1, consts;\nadd.u64 %%s0, %%s0, %%s1;\n"
			  "ld.const.u32 %s, [%%s0];", gen_r(p), gen_r(p));
		break;
	case GEN_global_load:
		if (gen_once_in(g, 2))
			L(n, "ld.global.u32 %s, [table+%u];", gen_r(p), 4 * gen_roll(g, 16));
		else
			L(n, "and.b32 %%t0, %s, 15;\nmul.wide.u32 %%s0, %%t0, 4;\n"
			  "mov.u64 %%s1, table;\n%s\nadd.u64 %%s0, %%s0, %%s1;\n"
			  "ld%s.u32 %s, [%%s0];", gen_r(p), generic ? "cvta.global.u64 %s1, %s1;" :
			  "", generic ? "" : ".global", gen_r(p));
		break;
	default:
		store(p, n);
	}
}
