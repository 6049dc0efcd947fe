// SPDX-License-Identifier: LGPL-2.1-or-later
/* Barriers, shared memory, and what warps do together. */
#include "tree.h"

static const char *barrier(struct place *p)
{
	static const char *const forms[] = { "bar.sync 0;", "barrier.sync.aligned 0;",
					     "bar.cta.sync 0;", "barrier.cta.sync.aligned 0;",
					     "barrier.sync 0;" };
	unsigned int modern = p->g->arch >= 80 ? 5 : 2;

	return gen_once_in(p->g, 3) ? forms[gen_roll(p->g, modern)] : forms[0];
}

void gen_clean(struct place *p)
{
	struct gen_node *n;

	if (!*p->dirty || p->level != LEVEL_BLOCK)
		return;
	*p->dirty = false;
	n = gen_node(p, -1);
	L(n, "%s", barrier(p));
}

/* %t1: the address of cell %t0 of sh */
static void address(struct place *p, struct gen_node *n)
{
	L(n, "shl.b32 %%t0, %%t0, 2;\nmov.u32 %%t1, sh;\nadd.u32 %%t1, %%t1, %%t0;");
}

/* Each thread writes a cell, all wait, each reads some */
static void phase(struct place *p)
{
	struct gen *g = p->g;
	struct gen_node *n;

	gen_clean(p);
	n = gen_node(p, GEN_phase);
	if (gen_once_in(g, 2))
		L(n, "mov.u32 %%t0, %%lin;");
	else if (gen_once_in(g, 2))
		L(n, "sub.u32 %%t0, %%n, %%lin;\nsub.u32 %%t0, %%t0, 1;");
	else
		L(n, "add.u32 %%t0, %%lin, %u;\nrem.u32 %%t0, %%t0, %%n;", gen_roll(g, 1000));
	address(p, n);
	if (g->arch >= 80 && gen_once_in(g, 12) && !p->func)
		L(n, "cp.async.ca.shared.global [%%t1], [%%inp+%u], 4;\ncp.async.commit_group;\n"
		  "%s\n%s", 4 * gen_roll(g, IN_WORDS), gen_once_in(g, 2) ? "cp.async.wait_all;" :
		  "cp.async.wait_group 0;", barrier(p));
	else
		L(n, "st.shared.u32 [%%t1], %s;\n%s", gen_r(p), barrier(p));
	do {
		L(n, "rem.u32 %%t0, %s, %%n;", gen_rv(p));
		address(p, n);
		if (p->func || !gen_once_in(g, 4) || !g->generic)
			L(n, "ld.shared.u32 %s, [%%t1];", gen_r(p));
		else
			L(n, "cvt.u64.u32 %%s0, %%t0;\nadd.u64 %%s0, %%s0, %%shp;\n"
			  "ld.u32 %s, [%%s0];", gen_r(p));
	} while (gen_once_in(g, 3));
	*p->dirty = true;
}

static void shared_sum(struct place *p)
{
	struct gen *g = p->g;
	struct gen_node *n = gen_node(p, GEN_shared_sum);

	L(n, "%s\nmov.u32 %%t1, cells;\nld.shared.u32 %s, [%%t1+%u];\n%s", barrier(p),
	  gen_once_in(g, 2) ? gen_u(p) : gen_r(p), 4 * gen_roll(g, SHARED_CELLS), barrier(p));
	*p->dirty = false;
}

static void barrier_red(struct place *p)
{
	struct gen *g = p->g;
	struct gen_node *n = gen_node(p, GEN_barrier_red);

	if (gen_once_in(g, 2)) {
		L(n, "bar.red.popc.u32 %s, 0, %s;", gen_u(p), gen_p(p));
	} else {
		L(n, "bar.red.%s.pred %%q1, 0, %s%s;\nselp.u32 %s, 1, %u, %%q1;",
		  gen_once_in(g, 2) ? "and" : "or", gen_once_in(g, 3) ? "!" : "", gen_p(p),
		  gen_u(p), gen_roll(g, 10));
	}
	*p->dirty = false;
}

/* A loop that warps go through as a whole */
static void rounds(struct place *p)
{
	struct gen *g = p->g;
	unsigned int label = g->labels++, count = g->counters, times = 2 + gen_roll(g, 5);
	struct gen_node *n;
	struct place in;

	if (count >= COUNTERS)
		return;
	g->counters++;
	n = gen_node(p, -1);
	n->compound = true;
	L(n, "mov.u32 %%c%u, %u;\nL%u:", count, times, label);
	in = gen_inside(p, n, 0, LEVEL_THREAD);
	in.times = p->times * times;
	gen_statements(&in, 1);
	gen_line(g, n, 2, "sub.u32 %%c%u, %%c%u, 1;\nsetp.ne.u32 %%q0, %%c%u, 0;\n@%%q0 bra L%u;",
		 count, count, count, label);
}

/*
 * Warps part and meet among themselves, at barriers of their own, some of them from loops; when
 * they are through with these barriers others may not be yet
 */
static void split(struct place *p)
{
	struct gen *g = p->g;
	unsigned int first = 1 + gen_roll(g, g->warps - 1), half, label = g->labels++;
	struct gen_node *n;
	struct place in;

	gen_clean(p);
	n = gen_node(p, GEN_split);
	L(n, "setp.ge.u32 %%q0, %%lin, %u;\n@%%q0 bra L%u_else;", 32 * first, label);
	for (half = 0; half < 2; half++) {
		unsigned int from = half ? 32 * first : 0, count = half ? g->threads - 32 * first :
				    32 * first, times = 1 + gen_roll(g, 2);
		unsigned int id = 1 + 2 * half + gen_roll(g, 2);

		if (half)
			gen_line(g, n, 1, "bra L%u;\nL%u_else:", label, label);
		in = gen_inside(p, n, half, LEVEL_THREAD);
		while (times--) {
			struct gen_node *w;

			if (gen_once_in(g, 2))
				rounds(&in);
			else
				gen_statements(&in, 1);
			w = gen_node(&in, -1);
			gen_line(g, w, 0, "shl.b32 %%t0, %%lin, 2;\nmov.u32 %%t1, sh;\n"
				 "add.u32 %%t1, %%t1, %%t0;\nst.shared.u32 [%%t1], %s;\n"
				 "bar.sync %u, %u;", gen_r(p), id, count);
			gen_line(g, w, 0, "rem.u32 %%t0, %s, %u;\nadd.u32 %%t0, %%t0, %u;\n"
				 "shl.b32 %%t0, %%t0, 2;\nmov.u32 %%t1, sh;\n"
				 "add.u32 %%t1, %%t1, %%t0;\n"
				 "ld.shared.u32 %s, [%%t1];\nbar.sync %u, %u;", gen_r(p), count,
				 from, gen_r(p), id, count);
		}
		if (gen_once_in(g, 2))
			rounds(&in);
	}
	gen_line(g, n, 2, "L%u:\nbar.sync 0;", label);
}

/* Producers that do not wait, and consumers that do */
static void arrive(struct place *p)
{
	struct gen *g = p->g;
	unsigned int first = 1 + gen_roll(g, g->warps - 1), label = g->labels++,
		id = 5 + gen_roll(g, 3);
	struct gen_node *n;

	gen_clean(p);
	n = gen_node(p, GEN_arrive);
	L(n, "setp.ge.u32 %%q0, %%lin, %u;\n@%%q0 bra L%u_else;", 32 * first, label);
	L(n, "mov.u32 %%t0, %%lin;");
	address(p, n);
	L(n, "st.shared.u32 [%%t1], %s;\nbar.arrive %u, %u;\nbra L%u;\nL%u_else:\n"
	  "bar.sync %u, %u;\nrem.u32 %%t0, %s, %u;", gen_r(p), id, g->threads, label, label, id,
	  g->threads, gen_r(p), 32 * first);
	address(p, n);
	L(n, "ld.shared.u32 %s, [%%t1];\nL%u:\nbar.sync 0;", gen_r(p), label);
}

static void shuffle(struct place *p)
{
	static const char *const modes[] = { "idx", "up", "down", "bfly" };
	struct gen *g = p->g;
	struct gen_node *n = gen_node(p, GEN_shuffle);
	unsigned int mode = gen_roll(g, 4);
	/* lanes out of range keep their own */
	const char *clamp = mode == 1 ? "0" : gen_once_in(g, 4) ? "0x181f" : "31";

	if (mode == 0 && gen_once_in(g, 2))
		L(n, "and.b32 %%t0, %s, 31;\nshfl.sync.idx.b32 %s, %s, %%t0, 31, -1;", gen_r(p),
		  gen_r(p), gen_r(p));
	else
		L(n, "shfl.sync.%s.b32 %s%s, %s, %u, %s, -1;", modes[mode], gen_r(p),
		  gen_once_in(g, 2) ? "|%p2" : "", gen_r(p), mode ? 1u << gen_roll(g, 5) :
		  gen_roll(g, 32), clamp);
}

/* A loop whose lanes come apart, in front of what the warp does together */
static void apart(struct place *p)
{
	struct gen *g = p->g;
	unsigned int label = g->labels++;
	struct gen_node *n = gen_node(p, GEN_apart);
	const char *get;
	struct place in;

	L(n, "{\n.reg .b32 turns;\n.reg .pred more;\nand.b32 turns, %s, %u;\nL%u:",
	  gen_once_in(g, 2) ? gen_r(p) : "%laneid", 1 + gen_roll(g, 7), label);
	in = gen_inside(p, n, 0, LEVEL_THREAD);
	in.times = p->times * 8;
	in.n_out = 0;
	gen_statements(&in, 1 + gen_roll(g, 2));
	/* %w must be the same in all lanes, so only what one lane gives to all may go there */
	get = gen_once_in(g, 2) ?
	      gen_text(g, "shfl.sync.bfly.b32 %s, %s, %u, 31, -1;", gen_r(p), gen_r(p),
		       1u << gen_roll(g, 5)) :
	      gen_text(g, "shfl.sync.idx.b32 %s, %s, 0, 31, -1;", gen_w(p), gen_r(p));
	gen_line(g, n, 2, "setp.ne.u32 more, turns, 0;\nsub.u32 turns, turns, 1;\n"
		 "@more bra L%u;\n}\n%s", label, get);
}

static void vote(struct place *p)
{
	struct gen *g = p->g;
	struct gen_node *n = gen_node(p, GEN_vote);

	switch (gen_roll(g, 4)) {
	case 0:
		L(n, "vote.sync.ballot.b32 %s, %s, -1;", gen_w(p), gen_p(p));
		break;
	case 1:
		L(n, "vote.sync.%s.pred %%q1, %s, -1;\nselp.u32 %s, %u, 2, %%q1;",
		  gen_once_in(g, 2) ? "any" : "all", gen_p(p), gen_w(p), gen_roll(g, 9));
		break;
	case 2:
		L(n, "bar.warp.sync -1;");
		break;
	default:
		L(n, "vote.sync.ballot.b32 %s, %s, 0xffffffff;\nvote.sync.uni.pred %%p3, %s, -1;",
		  gen_r(p), gen_p(p), gen_p(p));
	}
}

static const char *const redux[] = { "add.u32", "min.u32", "max.s32", "and.b32", "or.b32",
				     "xor.b32" };

/* What lanes of a mask do together, of which some may have ended */
static const char *together(struct place *p, const char *mask)
{
	struct gen *g = p->g;

	switch (gen_roll(g, g->arch >= 80 ? 6 : 5)) {
	case 0:
		return gen_text(g, "vote.sync.ballot.b32 %s, %s, %s;", gen_r(p), gen_p(p), mask);
	case 1:
		return gen_text(g, "and.b32 %%t0, %s, 3;\nmatch.any.sync.b32 %s, %%t0, %s;",
				gen_r(p), gen_r(p), mask);
	case 2:
		return gen_text(g, "bar.warp.sync %s;\nvote.sync.%s.pred %%q1, %s, %s;\n"
				"selp.u32 %s, %u, 2, %%q1;", mask, gen_once_in(g, 2) ? "any" :
				"all", gen_p(p), mask, gen_r(p), gen_roll(g, 9));
	case 3:
		return gen_text(g, "and.b32 %%t0, %s, 1;\nmatch.all.sync.b32 %s|%%p1, %%t0, %s;",
				gen_r(p), gen_r(p), mask);
	case 4:
		/* the lowest that is there gives its own to all */
		return gen_text(g, "vote.sync.ballot.b32 %%t0, 1, %s;\nbrev.b32 %%t0, %%t0;\n"
				"clz.b32 %%t0, %%t0;\nshfl.sync.idx.b32 %s, %s, %%t0, 31, %s;",
				mask, gen_r(p), gen_r(p), mask);
	default:
		return gen_text(g, "redux.sync.%s %s, %s, %s;", redux[gen_roll(g, 6)], gen_r(p),
				gen_r(p), mask);
	}
}

/*
 * The halves of a warp, each its own way; in front of what its lanes do together they may be apart,
 * and end
 */
static void halves(struct place *p)
{
	static const char *const mask[] = { "0xffff", "0xffff0000" };
	struct gen *g = p->g;
	struct gen_node *n = gen_node(p, GEN_gather);
	unsigned int label = g->labels++, half;
	struct place in;

	L(n, "mov.u32 %%t0, %%laneid;\nsetp.ge.u32 %%q0, %%t0, 16;\n@%%q0 bra L%u_else;", label);
	for (half = 0; half < 2; half++) {
		if (half)
			gen_line(g, n, 1, "bra L%u;\nL%u_else:", label, label);
		in = gen_inside(p, n, half, LEVEL_THREAD);
		in.n_out = 0;
		gen_statements(&in, 1);
		gen_line(g, n, half + 1, "%s", together(p, mask[half]));
	}
	gen_line(g, n, 2, "L%u:", label);
}

/* The same in groups of lanes, whose masks are in a register; each goes its own number of rounds */
static void gather(struct place *p)
{
	struct gen *g = p->g;
	unsigned int width = 1 + gen_roll(g, 5), label = g->labels++;
	struct gen_node *n;
	struct place in;

	if (gen_once_in(g, 4)) {
		halves(p);
		return;
	}
	n = gen_node(p, GEN_gather);
	L(n, "{\n.reg .b32 lanes, turns;\n.reg .pred more;\nmov.u32 %%t0, %%laneid;\n"
	  "and.b32 %%t0, %%t0, %u;\nshr.u32 turns, %%t0, %u;", 32 - (1u << width), width);
	L(n, "mov.u32 lanes, 0x%x;\nshl.b32 lanes, lanes, %%t0;",
	  width == 5 ? ~0u : (1u << (1u << width)) - 1);
	L(n, "add.u32 turns, turns, %s;\nand.b32 turns, turns, 3;\nL%u:",
	  gen_once_in(g, 2) ? "%cta" : "1", label);
	in = gen_inside(p, n, 0, LEVEL_THREAD);
	in.times = p->times * 4;
	in.n_out = 0;
	gen_statements(&in, 1 + gen_roll(g, 2));
	gen_line(g, n, 2, "%s", together(p, width == 5 && gen_once_in(g, 2) ? "-1" : "lanes"));
	gen_line(g, n, 2, "setp.ne.u32 more, turns, 0;\nsub.u32 turns, turns, 1;\n"
		 "@more bra L%u;\n}", label);
}

/*
 * A thread of each block waits until those before it have come by. Once in a kernel, before any
 * ends
 */
static void chain(struct place *p)
{
	static const char *const polls[] = {
		"ld.global.cv.u32", "ld.global.cg.u32", "ld.volatile.global.u32",
		"ld.relaxed.gpu.global.u32", "ld.acquire.gpu.global.u32",
	};
	struct gen *g = p->g;
	struct gen_node *n = gen_node(p, GEN_chain);
	unsigned int label = g->labels++;

	L(n, "{\n.reg .b32 now;\nsetp.ne.u32 %%q0, %%lin, 0;\n@%%q0 bra L%u;\nL%u_poll:\n"
	  "%s now, [blocks];\nsetp.lt.u32 %%q0, now, %%cta;\n@%%q0 bra L%u_poll;\n"
	  "red.global.add.u32 [blocks], 1;\nL%u:\n}", label, label, polls[gen_roll(g, 5)],
	  label, label);
}

/*
 * Two groups of warps, each with a reduction of its own that may tell it to end; those that are
 * left have a phase. The last thing that a kernel does with barriers.
 */
static void part(struct place *p)
{
	struct gen *g = p->g;
	unsigned int first = 32 * (1 + gen_roll(g, g->warps - 1));
	const char *const end = gen_once_in(g, 2) ? "ret" : "exit";
	struct gen_node *n;

	gen_clean(p);
	n = gen_node(p, GEN_part);
	L(n, "{\n.reg .b32 id, size, sum;\n.reg .pred low, done;\nsetp.lt.u32 low, %%lin, %u;\n"
	  "selp.b32 id, 1, 2, low;\nselp.b32 size, %u, %u, low;\nsetp.eq.u32 %%q0, %%lin, %u;",
	  first, first, g->threads - first, gen_roll(g, g->threads));
	switch (gen_roll(g, 3)) {
	case 0:
		L(n, "barrier.red.or.pred done, id, size, %%q0;\n@done %s;", end);
		break;
	case 1:
		L(n, "bar.red.and.pred done, id, size, !%%q0;\n@!done %s;", end);
		break;
	default:
		L(n, "barrier.red.popc.u32 sum, id, size, %%q0;\nsetp.ne.u32 done, sum, 0;\n"
		  "@done %s;", end);
	}
	L(n, "mov.u32 %%t0, %%lin;");
	address(p, n);
	L(n, "st.shared.u32 [%%t1], %s;\nbar.sync 0;\nrem.u32 %%t0, %s, %%n;", gen_r(p), gen_r(p));
	address(p, n);
	L(n, "ld.shared.u32 %s, [%%t1];\n}", gen_r(p));
}

/*
 * Part of a warp votes, and ends or goes on as one; then comes what is for all that are left. The
 * result has a register of its own: to the rewriter one that is written elsewhere, too, may be
 * anything.
 */
static void tile(struct place *p)
{
	struct gen *g = p->g;
	unsigned int width = 1 + gen_roll(g, 4);
	struct gen_node *n = gen_node(p, GEN_tile);

	L(n, "{\n.reg .b32 lanes, most;\n.reg .pred done;\nmov.u32 %%t0, %%laneid;\n"
	  "and.b32 %%t1, %%t0, %u;\nmov.u32 lanes, 0x%x;\nshl.b32 lanes, lanes, %%t1;",
	  32 - (1u << width), (1u << (1u << width)) - 1);
	if (g->arch >= 80 && gen_once_in(g, 2))
		L(n, "redux.sync.max.u32 most, %%t0, lanes;\nsetp.lt.u32 done, most, %u;",
		  gen_roll(g, 20));
	else
		L(n, "setp.eq.u32 %%q0, %%t0, %u;\nvote.sync.any.pred done, %%q0, lanes;",
		  gen_roll(g, 32));
	L(n, "@done %s;\n%s\n}", gen_once_in(g, 2) ? "ret" : "exit", together(p, "-1"));
}

void gen_sync(struct place *p, enum gen_feature what)
{
	struct gen *g = p->g;
	struct gen_node *n;

	switch (what) {
	case GEN_phase:
		phase(p);
		break;
	case GEN_shared_sum:
		shared_sum(p);
		break;
	case GEN_barrier_red:
		barrier_red(p);
		break;
	case GEN_barrier_named:
		n = gen_node(p, what);
		if (g->threads % 32 == 0 && !g->exits && gen_once_in(g, 2))
			L(n, "bar.sync %u, %u;", 8 + gen_roll(g, 8), g->threads);
		else
			L(n, "bar.sync %u;", 8 + gen_roll(g, 8));
		break;
	case GEN_split:
		split(p);
		break;
	case GEN_arrive:
		arrive(p);
		break;
	case GEN_apart:
		apart(p);
		break;
	case GEN_shuffle:
		shuffle(p);
		break;
	case GEN_vote:
		vote(p);
		break;
	case GEN_gather:
		gather(p);
		break;
	case GEN_chain:
		chain(p);
		break;
	case GEN_part:
		part(p);
		break;
	case GEN_tile:
		tile(p);
		break;
	case GEN_redux:
		n = gen_node(p, what);
		L(n, "redux.sync.%s %s, %s, -1;", redux[gen_roll(g, 6)], gen_w(p), gen_r(p));
		break;
	case GEN_match:
		n = gen_node(p, what);
		if (gen_once_in(g, 2))
			L(n, "and.b32 %%t0, %s, 3;\nmatch.any.sync.b32 %s, %%t0, -1;",
			  gen_r(p), gen_r(p));
		else
			L(n, "and.b32 %%t0, %s, 1;\nmatch.all.sync.b32 %s|%%p1, %%t0, -1;",
			  gen_r(p), gen_r(p));
		break;
	default:
		n = gen_node(p, GEN_barrier);
		L(n, "%s", barrier(p));
		*p->dirty = false;
	}
}
