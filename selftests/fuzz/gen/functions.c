// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Device functions: plain, recursive, with barriers, called directly, through pointers and from a
 * table. One prototype for all.
 */
#include "tree.h"

#define DEPTH	3	/* of recursion */
#define COST	300	/* of one function */

static void function(struct place *module, struct func *f, unsigned int index)
{
	struct gen *g = module->g;
	struct gen_node *n = gen_node(module, -1), *e;
	struct place p = gen_inside(module, n, 0, LEVEL_BLOCK);
	unsigned int label = g->labels++;
	bool dirty = false;
	int left = 2 + (int)gen_roll(g, 8);

	n->only_with = f->name;
	p.func = f;
	p.n_funcs = index;
	p.level = f->block ? LEVEL_BLOCK : LEVEL_THREAD;
	p.depth = 1;
	p.left = &left;
	p.dirty = &dirty;
	p.cost = &f->cost;
	p.most = COST;
	gen_line(g, n, 0, ".func (.param .b32 rv) %s (.param .b32 x, .param .b32 y, .param .b64 "
		 "o)\n{", f->name);
	gen_line(g, n, 1, "}");
	gen_registers(&p, false);
	e = gen_node(&p, -1);
	e->fixed = true;
	gen_line(g, e, 0, "ld.param.u64 %%own, [o];\nmov.u32 %%u0, %%cta;\n"
		 "add.u32 %%u1, %%cta, 3;\nmov.u32 %%u2, 7;\nadd.u32 %%u3, %%u1, %%u1;\n"
		 "mov.u32 %%w0, 0;\nmov.u32 %%w1, 1;");
	if (f->recursive) {
		/* y is how deep it may go yet */
		e = gen_node(&p, -1);
		e->fixed = true;
		gen_line(g, e, 0, "ld.param.u32 %%t0, [y];\nsetp.eq.u32 %%q0, %%t0, 0;\n"
			 "@!%%q0 bra L%u;\nst.param.u32 [rv], %%r0;\nret;\nL%u:", label, label);
	}
	gen_statements(&p, (unsigned int)left);
	gen_clean(&p);
	if (f->recursive) {
		e = gen_node(&p, GEN_recurse);
		gen_line(g, e, 0, "{\n.param .b32 px, py, pr;\n.param .b64 po;\n"
			 "ld.param.u32 %%t0, [y];\nsub.u32 %%t0, %%t0, 1;\nst.param.b32 [px], %s;\n"
			 "st.param.b32 [py], %%t0;\nst.param.b64 [po], %%own;\n"
			 "call (pr), %s, (px, py, po);\nld.param.b32 %s, [pr];\n}", gen_r(&p),
			 f->name, gen_r(&p));
		gen_statements(&p, 1);
		gen_clean(&p);
		f->cost *= DEPTH;
	}
	e = gen_node(&p, -1);
	e->fixed = true;
	gen_line(g, e, 0, "xor.b32 %%t0, %s, %s;\nst.param.u32 [rv], %%t0;\nret;",
		 gen_r(&p), gen_r(&p));
}

void gen_functions(struct place *module)
{
	struct gen *g = module->g;
	unsigned int i;

	for (i = 0; i < g->n_funcs; i++) {
		struct func *f = &g->func[i];

		snprintf(f->name, sizeof(f->name), "f%u", i);
		f->block = gen_once_in(g, g->exits ? 8 : 3);
		f->recursive = gen_once_in(g, 3);
		f->ids = gen_once_in(g, g->indirect ? 8 : 2);
		f->cost = 60;
		function(module, f, i);
	}
}

/* One of those that may be called here, whole blocks or not; -1 none */
static int pick(struct place *p, bool block, bool recursive)
{
	int found[FUNCS_MAX], n = 0;
	unsigned int i;

	for (i = 0; i < p->n_funcs; i++) {
		const struct func *f = &p->g->func[i];

		if (f->block == block && f->recursive == recursive &&
		    *p->cost + p->times * f->cost < p->most)
			found[n++] = (int)i;
	}
	return n ? found[gen_roll(p->g, (unsigned int)n)] : -1;
}

/* Those that are called through pointers, by their place in the table */
static bool in_table(const struct func *f)
{
	return !f->block && !f->recursive;
}

static unsigned int place(const struct gen *g, int func)
{
	unsigned int n = 0;
	int i;

	for (i = 0; i < func; i++)
		n += in_table(&g->func[i]);
	return n;
}

const char *gen_table(struct gen *g)
{
	const char *list = "";
	unsigned int i, n = place(g, (int)g->n_funcs);

	for (i = 0; i < g->n_funcs; i++)
		if (in_table(&g->func[i]))
			list = gen_text(g, "%s%s%s", list, *list ? ", " : "", g->func[i].name);
	return n ? gen_text(g, "%s.%s .align 8 .u64 functions[%u] = {%s};",
			    gen_once_in(g, 2) ? ".visible " : "", g->table_const ? "const" :
			    "global", n, list) : NULL;
}

void gen_call(struct place *p, enum gen_feature what)
{
	struct gen *g = p->g;
	bool block = what == GEN_call_block || what == GEN_recurse_block;
	int i = pick(p, block, what == GEN_recurse || what == GEN_recurse_block), j;
	const char *target;
	struct gen_node *n;

	if (i < 0) {
		gen_leaf(p, GEN_store);
		return;
	}
	if (block)
		gen_clean(p);
	n = gen_node(p, what);
	*p->cost += p->times * g->func[i].cost;
	target = g->func[i].name;
	L(n, "{\n.param .b32 px, py, pr;\n.param .b64 po;");
	if (what == GEN_recurse || what == GEN_recurse_block)
		L(n, "and.b32 %%t0, %s, %d;", block ? gen_u(p) : gen_r(p), DEPTH);
	else
		L(n, "mov.u32 %%t0, %s;", gen_rv(p));
	if (what == GEN_indirect) {
		j = pick(p, false, false);
		j = j < 0 ? i : j;
		/* a register that held one made here and one from memory would be refused */
		if (gen_once_in(g, 2)) {
			L(n, "mov.u64 %%fp0, %s;\nmov.u64 %%fp1, %s;\n"
			  "selp.b64 %%fp2, %%fp0, %%fp1, %s;", target, g->func[j].name, gen_p(p));
			target = "%fp2";
		} else {
			L(n, "ld.%s.u64 %%fp3, [functions+%u];\nld.%s.u64 %%fp4, [functions+%u];\n"
			  "selp.b64 %%fp5, %%fp3, %%fp4, %s;", g->table_const ? "const" : "global",
			  8 * place(g, i), g->table_const ? "const" : "global",
			  8 * place(g, j), gen_p(p));
			target = "%fp5";
		}
	}
	L(n, "st.param.b32 [px], %s;\nst.param.b32 [py], %%t0;\nst.param.b64 [po], %%own;\n"
	  "call%s (pr), %s, (px, py, po)%s;\nld.param.b32 %s, [pr];\n}", gen_rv(p), block &&
	  gen_once_in(g, 2) ? ".uni" : "", target, what == GEN_indirect ? ", proto" : "", gen_r(p));
}
