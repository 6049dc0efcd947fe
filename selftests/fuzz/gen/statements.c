// SPDX-License-Identifier: LGPL-2.1-or-later
/* Control flow, and which statement comes next. */
#include "tree.h"

#define TIMES_MAX	48	/* of one statement, by the loops around it */

void gen_condition(struct place *p, struct gen_node *n, unsigned int part, enum level level)
{
	static const char *const cmp[] = { "eq", "ne", "lt", "le", "gt", "ge" };
	struct gen *g = p->g;
	const char *is = cmp[gen_roll(g, 6)];

	switch (level) {
	case LEVEL_BLOCK:
		if (gen_once_in(g, 2))
			gen_line(g, n, part, "setp.%s.u32 %%q0, %s, %u;", is, gen_u(p),
				 gen_roll(g, 12));
		else
			gen_line(g, n, part, "and.b32 %%t0, %s, %u;\nsetp.ne.u32 %%q0, %%t0, 0;",
				 gen_u(p), 1 + gen_roll(g, 7));
		return;
	case LEVEL_WARP:
		if (gen_once_in(g, 2))
			gen_line(g, n, part, "setp.%s.u32 %%q0, %s, %u;", is, gen_w(p),
				 gen_roll(g, 4));
		else
			gen_line(g, n, part, "and.b32 %%t0, %s, 1;\nsetp.eq.u32 %%q0, %%t0, 1;",
				 gen_w(p));
		return;
	default:
		switch (gen_roll(g, 6)) {
		case 0:
			gen_line(g, n, part, "setp.%s.u32 %%q0, %%lin, %u;", is,
				 gen_roll(g, g->threads + 1));
			break;
		case 1:
			gen_line(g, n, part, "and.b32 %%t0, %s, %u;\nsetp.eq.u32 %%q0, %%t0, 0;",
				 gen_r(p), 1u << gen_roll(g, 6));
			break;
		case 2:
			gen_line(g, n, part, "setp.%s.and.s32 %%q0, %s, %s, %s;", is, gen_r(p),
				 gen_rv(p), gen_p(p));
			break;
		case 3:
			gen_line(g, n, part, "setp.%s.f32 %%q0, %s, %s;", is, gen_f(p), gen_f(p));
			break;
		case 4:
			gen_line(g, n, part, "not.pred %%q0, %s;", gen_p(p));
			break;
		default:
			gen_line(g, n, part, "setp.%s.u32 %%q0, %s, %s;", is, gen_r(p), gen_rv(p));
		}
	}
}

static unsigned int body_size(struct place *p)
{
	return 1 + gen_roll(p->g, p->depth > 2 ? 2 : 5);
}

static void branch(struct place *p, enum gen_feature what, enum level level)
{
	struct gen_node *n;
	struct place in;
	unsigned int label;
	bool both;

	if (level == LEVEL_BLOCK)
		gen_clean(p);
	n = gen_node(p, what);
	label = p->g->labels++;
	both = gen_once_in(p->g, 2);
	gen_condition(p, n, 0, level);
	L(n, "@%s%%q0 bra%s L%u%s;", gen_once_in(p->g, 2) ? "!" : "", level == LEVEL_BLOCK &&
	  gen_once_in(p->g, 3) ? ".uni" : "", label, both ? "_else" : "");
	in = gen_inside(p, n, 0, level);
	gen_statements(&in, body_size(p));
	gen_clean(&in);
	if (both) {
		gen_line(p->g, n, 1, "bra L%u;\nL%u_else:", label, label);
		in = gen_inside(p, n, 1, level);
		gen_statements(&in, body_size(p));
		gen_clean(&in);
	}
	gen_line(p->g, n, 2, "L%u:", label);
}

/*
 * Test at the end, or at the beginning; the count lies in registers of its own, so that the body
 * cannot change it
 */
static void loop(struct place *p, enum gen_feature what, enum level level)
{
	struct gen *g = p->g;
	bool first = gen_once_in(g, 2), scope = gen_once_in(g, 4) || g->counters == COUNTERS;
	const char *count = "count", *bound = "bound", *go = "%q2", *by = "1";
	struct gen_node *n;
	struct place in;
	unsigned int label, most = 2 + gen_roll(g, 4);

	if (level == LEVEL_BLOCK)
		gen_clean(p);
	n = gen_node(p, what);
	label = g->labels++;
	if (scope) {
		L(n, "{\n.reg .b32 count, bound, by;\n.reg .pred go;");
		go = "go";
		by = gen_once_in(g, 2) ? "by" : by;
	} else {
		count = gen_text(g, "%%c%u", g->counters);
		bound = gen_text(g, "%%b%u", g->counters++);
	}
	L(n, "mov.u32 %s, 0;", count);
	if (level == LEVEL_BLOCK && gen_once_in(g, 2))
		L(n, "mov.u32 %s, %u;", bound, most);
	else
		L(n, "rem.u32 %s, %s, %u;\nadd.u32 %s, %s, 1;", bound,
		  level == LEVEL_BLOCK ? gen_u(p) : level == LEVEL_WARP ? gen_w(p) : gen_r(p), most,
		  bound, bound);
	if (*by == 'b' && level == LEVEL_BLOCK)
		L(n, "mov.u32 by, %u;", 1 + gen_roll(g, 3));
	else if (*by == 'b')
		L(n, "and.b32 by, %s, 1;\nadd.u32 by, by, 1;",
		  level == LEVEL_WARP ? gen_w(p) : gen_r(p));
	L(n, "L%u:", label);
	if (first)
		L(n, "setp.ge.u32 %s, %s, %s;\n@%s bra L%u_end;", go, count, bound, go, label);
	in = gen_inside(p, n, 0, level);
	in.times = p->times * most;
	if (level == LEVEL_THREAD && in.n_out < NEST_MAX)
		in.out[in.n_out++] = label;
	else
		in.n_out = 0;
	gen_statements(&in, body_size(p) + 1);
	gen_clean(&in);
	gen_line(g, n, 2, "L%u_next:\nadd.u32 %s, %s, %s;", label, count, count, by);
	if (first)
		gen_line(g, n, 2, "bra L%u;", label);
	else
		gen_line(g, n, 2, "setp.lt.u32 %s, %s, %s;\n@%s bra L%u;", go, count,
			 bound, go, label);
	gen_line(g, n, 2, "L%u_end:%s", label, scope ? "\n}" : "");
}

/* break and continue, of this loop or one around it */
static void branch_out(struct place *p)
{
	struct gen_node *n = gen_node(p, GEN_branch_out);
	unsigned int inner = gen_once_in(p->g, 3) ? gen_roll(p->g, p->n_out) : p->n_out - 1;

	gen_condition(p, n, 0, LEVEL_THREAD);
	L(n, "@%%q0 bra L%u_%s;", p->out[inner], gen_once_in(p->g, 3) ? "next" : "end");
}

static void switches(struct place *p)
{
	enum level level = gen_once_in(p->g, 3) ? LEVEL_BLOCK : LEVEL_THREAD;
	struct gen_node *n;
	struct place in;
	unsigned int label;

	if (p->level < level)
		level = LEVEL_THREAD;
	if (level == LEVEL_BLOCK)
		gen_clean(p);
	n = gen_node(p, GEN_switch);
	label = p->g->labels++;
	L(n, "L%u_targets: .branchtargets L%u_a, L%u_b, L%u;\nrem.u32 %%t0, %s, 3;\n"
	  "brx.idx %%t0, L%u_targets;\nL%u_a:", label, label, label, label, level == LEVEL_BLOCK ?
	  gen_u(p) : gen_r(p), label, label);
	in = gen_inside(p, n, 0, level);
	gen_statements(&in, body_size(p));
	gen_clean(&in);
	gen_line(p->g, n, 1, "%s\nL%u_b:", gen_once_in(p->g, 4) ? "" :
		 gen_text(p->g, "bra L%u;", label), label);
	in = gen_inside(p, n, 1, level);
	gen_statements(&in, body_size(p));
	gen_clean(&in);
	gen_line(p->g, n, 2, "L%u:", label);
}

static void returns(struct place *p, enum gen_feature what)
{
	struct gen *g = p->g;
	struct gen_node *n;
	struct place in;
	unsigned int label;

	n = gen_node(p, what);
	gen_condition(p, n, 0, LEVEL_THREAD);
	/* rare enough that something is left to do */
	L(n, "and.b32 %%t1, %s, %u;\nsetp.eq.and.u32 %%q0, %%t1, 0, %%q0;", gen_r(p),
	  gen_once_in(g, 3) ? 3 : 15);
	if (p->func && what == GEN_ret) {
		L(n, "@%%q0 st.param.u32 [rv], %s;\n@%%q0 ret;", gen_r(p));
		return;
	}
	if (p->func) {
		L(n, "@%%q0 exit;");
		return;
	}
	if (gen_once_in(g, 2)) {
		L(n, "@%%q0 %s;", gen_once_in(g, 2) ? "ret" : "exit");
		return;
	}
	label = g->labels++;
	L(n, "@!%%q0 bra L%u;", label);
	in = gen_inside(p, n, 0, LEVEL_THREAD);
	gen_statements(&in, 1);
	gen_line(g, n, 2, "%s;\nL%u:", gen_once_in(g, 2) ? "ret" : "exit", label);
}

/* The whole block leaves */
static void returns_block(struct place *p)
{
	struct gen_node *n = gen_node(p, GEN_ret_block);

	L(n, "mad.lo.u32 %%t0, %s, 5, %s;\nrem.u32 %%t0, %%t0, 7;\nsetp.eq.u32 %%q0, %%t0, %u;\n"
	  "@%%q0 %s;", gen_u(p), gen_u(p), gen_roll(p->g, 7), gen_once_in(p->g, 2) ?
	  "ret" : "exit");
}

static bool allowed(const struct place *p, enum gen_feature what)
{
	const struct gen *g = p->g;
	bool nest = p->depth < 5 && *p->left > 1, sync = p->level == LEVEL_BLOCK &&
		    (!p->func || p->func->block);
	bool lanes = p->level >= LEVEL_WARP && !p->func && g->full_warps && !g->exits;
	bool counts = sync && !p->func && p->depth < 3 && g->threads % 32 == 0 && !g->exits &&
		      (g->linear || gen_once_in(p->g, 8));

	switch (what) {
	case GEN_if_thread:
	case GEN_switch:
	case GEN_scope:
		return nest;
	case GEN_loop_thread:
		return nest && p->times < TIMES_MAX;
	case GEN_if_warp:
		return nest && !p->func && g->full_warps && p->level >= LEVEL_WARP;
	case GEN_loop_warp:
		return nest && !p->func && g->full_warps && p->level >= LEVEL_WARP &&
		       p->times < TIMES_MAX;
	case GEN_if_block:
		return nest && sync;
	case GEN_loop_block:
		return nest && sync && p->times < TIMES_MAX;
	case GEN_branch_out:
		return p->n_out > 0;
	case GEN_ret:
		return p->func ? p->level == LEVEL_THREAD && !p->func->block : g->exits;
	case GEN_end:
		return p->func && g->exits;
	case GEN_ret_block:
		return sync && !p->func;
	case GEN_call:
		return p->n_funcs > 0 && p->times < TIMES_MAX;
	case GEN_call_block:
		return p->n_funcs > 0 && sync && p->times < TIMES_MAX;
	case GEN_recurse:
		return p->n_funcs > 0 && p->times < TIMES_MAX / 4;
	case GEN_recurse_block:
		return p->n_funcs > 0 && sync && p->times < TIMES_MAX / 4;
	case GEN_indirect:
		return p->n_funcs > 0 && !p->func && g->indirect && p->times < TIMES_MAX;
	case GEN_local:
		return g->local;
	case GEN_load:
	case GEN_vector:
	case GEN_atomic:
	case GEN_cas:
		return !p->func;
	case GEN_phase:
		return g->shared && sync;
	case GEN_shared_bits:
		return g->shared;
	case GEN_shared_atomic:
		return g->cells;
	case GEN_shared_sum:
		return g->cells && sync;
	case GEN_barrier:
		return sync;
	case GEN_barrier_red:
		return sync && (!g->exits || g->exit_barriers);
	case GEN_barrier_named:
		return sync && (!g->exits || g->exit_barriers);
	case GEN_split:
		return counts && g->shared && g->warps > 1;
	case GEN_arrive:
		return counts && g->shared && g->warps > 1;
	case GEN_shuffle:
	case GEN_apart:
	case GEN_vote:
		return lanes;
	case GEN_redux:
		return lanes && g->arch >= 80;
	case GEN_match:
		return lanes;
	case GEN_gather:
		return g->gathers && nest && p->level >= LEVEL_WARP &&
		       (!p->func || p->func->block) && p->times < TIMES_MAX / 4;
	case GEN_part:
	case GEN_chain:
	case GEN_generic:
		return false;	/* kernel.c says where */
	case GEN_tile:
		return g->exits && !p->func && p->level >= LEVEL_WARP;
	case GEN_global_var:
	case GEN_const_var:
	case GEN_global_load:
		return g->variables;
	case GEN_async:
		return !p->func && g->async;
	default:
		return true;
	}
}

static enum gen_feature choose(struct place *p)
{
	unsigned int weight[GEN_FEATURE_COUNT], sum = 0, pick, i;

	/* asked once: what is allowed may be left to chance */
	for (i = 0; i < GEN_FEATURE_COUNT; i++) {
		weight[i] = allowed(p, (enum gen_feature)i) ? p->g->o->weight[i] : 0;
		sum += weight[i];
	}
	if (!sum)
		return GEN_store;
	pick = gen_roll(p->g, sum);
	for (i = 0; pick >= weight[i]; i++)
		pick -= weight[i];
	return (enum gen_feature)i;
}

static void statement(struct place *p, enum gen_feature what)
{
	struct gen_node *n;
	struct place in;

	switch (what) {
	case GEN_if_thread:
		branch(p, what, LEVEL_THREAD);
		break;
	case GEN_if_warp:
		branch(p, what, LEVEL_WARP);
		break;
	case GEN_if_block:
		branch(p, what, LEVEL_BLOCK);
		break;
	case GEN_loop_thread:
		loop(p, what, LEVEL_THREAD);
		break;
	case GEN_loop_warp:
		loop(p, what, LEVEL_WARP);
		break;
	case GEN_loop_block:
		loop(p, what, LEVEL_BLOCK);
		break;
	case GEN_branch_out:
		branch_out(p);
		break;
	case GEN_switch:
		switches(p);
		break;
	case GEN_scope:
		/* names that hide those outside */
		n = gen_node(p, what);
		L(n, "{\n.reg .b32 %%r0, %%t0;\nadd.u32 %%r0, %%lin, %u;", gen_roll(p->g, 100));
		in = gen_inside(p, n, 0, p->level);
		gen_statements(&in, body_size(p));
		gen_line(p->g, n, 2, "}");
		break;
	case GEN_ret:
	case GEN_end:
		returns(p, what);
		break;
	case GEN_ret_block:
		returns_block(p);
		break;
	case GEN_call:
	case GEN_call_block:
	case GEN_recurse:
	case GEN_recurse_block:
	case GEN_indirect:
		gen_call(p, what);
		break;
	case GEN_phase:
	case GEN_shared_sum:
	case GEN_barrier:
	case GEN_barrier_red:
	case GEN_barrier_named:
	case GEN_split:
	case GEN_arrive:
	case GEN_shuffle:
	case GEN_apart:
	case GEN_vote:
	case GEN_redux:
	case GEN_match:
	case GEN_gather:
	case GEN_tile:
		gen_sync(p, what);
		break;
	default:
		gen_leaf(p, what);
	}
}

void gen_statements(struct place *p, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n && (*p->left > 0 || !i); i++) {
		--*p->left;
		*p->cost += p->times * 8;
		if (*p->cost > p->most)
			*p->left = 0;
		statement(p, choose(p));
	}
}
