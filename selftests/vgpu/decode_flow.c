// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Which threads have gone past others of their warp that wait for them, at a barrier, at an
 * instruction of several lanes, or below a call: those at an instruction that is reached from
 * there, but from which the waiting ones cannot be reached any more (struct xwait.past). Where
 * nothing is left to do but to return nobody has: threads that return early come to the same end.
 * The nearest post-dominator of that kind is where the threads of a warp that pass are stopped
 * (xwait.stop).
 */
#include <stdlib.h>
#include "decode.h"

/* places times instructions: beyond, nothing is known of a function */
#define PAIRS_MAX	(64u << 20)

struct flow {
	const struct vgpu_kernel *k;
	uint32_t from, n;		/* node: pc - from; n is the exit */
	uint32_t *first, *preds;	/* predecessors of node i: preds[first[i]] to preds[first[i
					 * + 1]] */
	uint32_t *ipdom, *order, *number;	/* order: nodes in reverse postorder from the
						 * exit */
	uint32_t n_order;
	uint32_t *stack;
	uint8_t *seen, *over;
};

static bool ends(const struct xinsn *in)
{
	return in->fn == x_ret || in->fn == exec_control_select(GSR_OP_EXIT, NULL);
}

/* The @i-th way on from a node; NO_PC no more */
static uint32_t successor(const struct flow *f, uint32_t node, unsigned int i)
{
	const struct xinsn *in = &f->k->code[f->from + node];
	const struct xtable *t = in->ext;
	unsigned int n = 0;

	if (in->fn == exec_control_select(GSR_OP_BRA, NULL)) {
		if (i == n++)
			return in->target - f->from;
	} else if (in->fn == exec_control_select(GSR_OP_BRX, NULL)) {
		if (i < t->n)
			return t->pc[i] - f->from;
		n = t->n;
	} else if (ends(in)) {
		if (i == n++)
			return f->n;
	} else if (in->fn != exec_control_select(GSR_OP_TRAP, NULL)) {
		return i ? NO_PC : node + 1;
	}
	return in->guard >= 0 && i == n ? node + 1 : NO_PC;
}

static void predecessors(struct flow *f)
{
	uint32_t i, to, at = 0;
	unsigned int s;

	for (i = 0; i < f->n; i++)
		for (s = 0; (to = successor(f, i, s)) != NO_PC; s++)
			f->first[to]++;
	for (i = 0; i <= f->n; i++) {
		at += f->first[i];
		f->first[i] = at;
	}
	f->first[f->n + 1] = at;
	for (i = f->n; i--;)
		for (s = 0; (to = successor(f, i, s)) != NO_PC; s++)
			f->preds[--f->first[to]] = i;
}

/* Nodes from which @to can be reached get seen[]; with @order they are numbered, latest first */
static void backwards(struct flow *f, uint32_t to, bool order)
{
	uint32_t depth = 0, *next = f->stack + f->n + 1, i;

	memset(f->seen, 0, f->n + 1);
	f->stack[depth] = to;
	next[depth] = f->first[to];
	while (depth != NO_PC) {
		uint32_t at = f->stack[depth];

		if (next[depth] < f->first[at + 1]) {
			uint32_t p = f->preds[next[depth]++];

			if (f->seen[p])
				continue;
			f->seen[p] = 1;
			if (p == to)
				continue;
			f->stack[++depth] = p;
			next[depth] = f->first[p];
		} else {
			if (order) {
				f->number[at] = f->n_order;
				f->order[f->n_order++] = at;
			}
			depth--;
		}
	}
	for (i = 0; order && i < f->n_order / 2; i++) {
		uint32_t other = f->order[i];

		f->order[i] = f->order[f->n_order - 1 - i];
		f->order[f->n_order - 1 - i] = other;
	}
}

static uint32_t meet(const struct flow *f, uint32_t a, uint32_t b)
{
	while (a != b) {
		while (f->number[a] < f->number[b])
			a = f->ipdom[a];
		while (f->number[b] < f->number[a])
			b = f->ipdom[b];
	}
	return a;
}

static void post_dominators(struct flow *f)
{
	bool more = true;
	uint32_t i, to;
	unsigned int s;

	memset(f->ipdom, -1, (f->n + 1) * sizeof(*f->ipdom));
	backwards(f, f->n, true);
	f->ipdom[f->n] = f->n;
	while (more) {
		more = false;
		for (i = 1; i < f->n_order; i++) {
			uint32_t at = f->order[i], d = NO_PC;

			for (s = 0; (to = successor(f, at, s)) != NO_PC; s++)
				if (f->ipdom[to] != NO_PC)
					d = d == NO_PC ? to : meet(f, d, to);
			more |= f->ipdom[at] != d;
			f->ipdom[at] = d;
		}
	}
}

/* Nothing but the way to the end */
static bool over(const struct flow *f, uint32_t node)
{
	uint32_t steps;

	for (steps = 0; steps < f->n; steps++) {
		const struct xinsn *in = &f->k->code[f->from + node];

		if (ends(in) && in->guard < 0)
			return true;
		if (in->fn != exec_control_select(GSR_OP_BRA, NULL) || in->guard >= 0)
			return false;
		node = in->target - f->from;
	}
	return true;
}

/* Nodes to which @from leads, in seen[]; @from itself only if it does */
static void forwards(struct flow *f, uint32_t from)
{
	uint32_t n = 1, to;
	unsigned int s;

	memset(f->seen, 0, f->n + 1);
	f->stack[0] = from;
	while (n) {
		uint32_t at = f->stack[--n];

		for (s = 0; (to = successor(f, at, s)) != NO_PC; s++)
			if (!f->seen[to]) {
				f->seen[to] = 1;
				if (to != f->n)
					f->stack[n++] = to;
			}
	}
}

static void place(struct flow *f, uint32_t i, struct xwait *w)
{
	uint32_t q;

	w->from = f->from;
	w->n = f->n;
	w->stop = NO_PC;
	forwards(f, i);
	for (q = 0; q < f->n; q++)
		if (f->seen[q] && !f->over[q])
			w->past[q / 64] |= 1ull << q % 64;
	backwards(f, i, false);
	w->past[i / 64] &= ~(1ull << i % 64);
	for (q = 0; q < f->n; q++)
		if (f->seen[q])
			w->past[q / 64] &= ~(1ull << q % 64);
	for (q = f->ipdom[i]; q != NO_PC && q != f->n && w->stop == NO_PC; q = f->ipdom[q])
		if (w->past[q / 64] >> q % 64 & 1)
			w->stop = f->from + q;
}

bool flow_waits(struct dec *d, uint32_t from, uint32_t to)
{
	struct flow f = { .k = d->k, .from = from, .n = to - from };
	struct xinsn *code = d->k->code + from;
	size_t edges = 0, places = 0;
	bool ok;
	unsigned int s;
	uint32_t i;

	for (i = 0; i < f.n; i++) {
		places += sync_waits(code[i].fn) || code[i].fn == x_call;
		for (s = 0; successor(&f, i, s) != NO_PC; s++)
			edges++;
	}
	if (!places || places * f.n > PAIRS_MAX)
		return true;
	f.first = calloc(f.n + 2, sizeof(*f.first));
	f.preds = calloc(edges + 1, sizeof(*f.preds));
	f.ipdom = calloc(f.n + 1, 3 * sizeof(*f.ipdom));
	f.stack = calloc(f.n + 1, 2 * sizeof(*f.stack));
	f.seen = calloc(f.n + 1, 2);
	ok = f.first && f.preds && f.ipdom && f.stack && f.seen;
	if (ok) {
		f.order = f.ipdom + f.n + 1;
		f.number = f.order + f.n + 1;
		f.over = f.seen + f.n + 1;
		predecessors(&f);
		post_dominators(&f);
		for (i = 0; i < f.n; i++)
			f.over[i] = over(&f, i);
	}
	for (i = 0; ok && i < f.n; i++) {
		struct xwait *w;

		if (!sync_waits(code[i].fn) && code[i].fn != x_call)
			continue;
		w = dec_alloc(d, sizeof(*w) + (f.n + 63) / 64 * sizeof(w->past[0]));
		if (w)
			place(&f, i, w);
		code[i].wait = w;
		ok = w;
	}
	free(f.first);
	free(f.preds);
	free(f.ipdom);
	free(f.stack);
	free(f.seen);
	return ok || dec_fail(d, "out of memory");
}
