// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The control-flow graph of one function: blocks, edges, post-dominators (Lengauer and Tarjan
 * 1979, over the reversed graph), and what lies between branches and their post-dominators. All of
 * it takes about as long as the function is.
 *
 * In: a function. Out: struct gsr_cfg, valid until the function's branches or labels change.
 * Assumes labels that are unique within a function; a branch to nowhere is an error in it.
 */
#include <string.h>
#include "rewriter/ptx/lex.h"
#include "analysis.h"

struct label {
	struct label *next;		/* another of the same name */
	const char *name;
	unsigned int scope, block;
};

struct builder {
	struct gsr_arena *a, *scratch;	/* for what stays in the graph; for the rest */
	struct gsr_cfg *cfg;
	struct label *labels;		/* 1-based by the mark of the name */
	unsigned int n_labels;
	struct targets {
		const char *name, *text;
	} *targets;			/* the lists of brx.idx */
	unsigned int n_targets;
	unsigned int *parent;		/* scope -> enclosing scope; 0 is the function */
};

bool gsr_insn_branches(const struct gsr_insn *insn)
{
	switch (insn->op) {
	case GSR_OP_BRA:
	case GSR_OP_BRX:
	case GSR_OP_RET:
	case GSR_OP_EXIT:
		return true;
	default:
		return false;
	}
}

static bool ends_block(const struct gsr_stmt *s)
{
	return s->kind == GSR_STMT_INSN && gsr_insn_branches(s->insn);
}

/* "ts: .branchtargets A, B;" */
static bool is_targets(const struct gsr_stmt *s)
{
	return s->kind == GSR_STMT_DIRECTIVE && strstr(s->text, ".branchtargets");
}

/* The label a branch in @scope means: the innermost one of the name that encloses it */
static unsigned int resolve(const struct builder *b, const char *name, unsigned int scope)
{
	unsigned long m = *gsr_intern_mark(name);
	const struct label *l;

	if (!m || m > b->n_labels || b->labels[m - 1].name != name)
		return GSR_NO_BLOCK;
	for (;;) {
		for (l = &b->labels[m - 1]; l; l = l->next)
			if (l->scope == scope)
				return l->block;
		if (!scope)
			return GSR_NO_BLOCK;
		scope = b->parent[scope];
	}
}

static void add_succ(struct builder *b, struct gsr_block *blk, unsigned int to)
{
	unsigned int i, *grown;

	for (i = 0; i < blk->n_succ; i++)
		if (blk->succ[i] == to)
			return;
	if (to == GSR_NO_BLOCK) {
		b->cfg->error = "branch to a label that is not there";
		return;
	}
	/* room is a power of two of at least 2 */
	if (blk->n_succ < 2 ? !blk->n_succ : !(blk->n_succ & (blk->n_succ - 1))) {
		grown = gsr_alloc_array(b->a, blk->n_succ ? blk->n_succ * 2 : 2, sizeof(*grown));
		if (blk->n_succ)
			memcpy(grown, blk->succ, blk->n_succ * sizeof(*grown));
		blk->succ = grown;
	}
	blk->succ[blk->n_succ++] = to;
}

static void find_targets(struct builder *b, const struct gsr_function *f)
{
	const struct gsr_stmt *s;
	unsigned int n = 0;

	for (s = f->first; s; s = s->next)
		n += is_targets(s);
	b->targets = gsr_alloc_array(b->scratch, n + 1, sizeof(*b->targets));
	for (s = f->first; n && s; s = s->next)
		if (is_targets(s))
			b->targets[b->n_targets++] = (struct targets){
				.name = gsr_intern(b->a, s->text, strcspn(s->text, " \t\r\n:")),
				.text = s->text,
			};
}

static void add_targets(struct builder *b, struct gsr_block *blk, const char *list,
			unsigned int scope)
{
	struct gsr_lexer lx;
	struct gsr_token t;
	bool found = false;
	unsigned int i;

	for (i = 0; i < b->n_targets; i++) {
		if (b->targets[i].name != list)
			continue;
		found = true;
		gsr_lex_init(&lx, b->targets[i].text, strlen(b->targets[i].text));
		while (gsr_lex_next(&lx).kind != GSR_TOK_DOT)
			;
		while ((t = gsr_lex_next(&lx)).kind != GSR_TOK_END && t.punct != ';')
			if (t.kind == GSR_TOK_IDENT)
				add_succ(b, blk,
					 resolve(b, gsr_intern(b->a, t.text, t.len), scope));
	}
	if (!found)
		b->cfg->error = "brx.idx without its .branchtargets";
}

static void edges(struct builder *b, unsigned int i, unsigned int scope)
{
	struct gsr_block *blk = &b->cfg->blocks[i];
	const struct gsr_insn *insn = blk->last && ends_block(blk->last) ? blk->last->insn : NULL;
	unsigned int n = b->cfg->n_blocks;

	if (!insn || insn->guard)
		add_succ(b, blk, i + 1);	/* behind the last block: the exit */
	if (!insn)
		return;
	if (insn->op == GSR_OP_RET || insn->op == GSR_OP_EXIT) {
		add_succ(b, blk, n);
	} else if (insn->op == GSR_OP_BRA) {
		if (insn->n_opnds == 1 && insn->opnds[0].name)
			add_succ(b, blk, resolve(b, insn->opnds[0].name, scope));
		else
			b->cfg->error = "bra without a label";
	} else if (insn->n_opnds == 2 && insn->opnds[1].name) {
		add_targets(b, blk, insn->opnds[1].name, scope);
	} else {
		b->cfg->error = "brx of a kind we do not know";
	}
}

static void reach(struct gsr_cfg *cfg, unsigned int *stack)
{
	unsigned int n = 0, i, k;

	if (!cfg->n_blocks)
		return;
	stack[n++] = 0;
	cfg->blocks[0].reachable = true;
	while (n) {
		i = stack[--n];
		for (k = 0; k < cfg->blocks[i].n_succ; k++) {
			unsigned int to = cfg->blocks[i].succ[k];

			if (to < cfg->n_blocks && !cfg->blocks[to].reachable) {
				cfg->blocks[to].reachable = true;
				stack[n++] = to;
			}
		}
	}
}

/*
 * The reversed graph; its root is the exit, n. A node's number is the order in which it is found,
 * from 1
 */
struct tree {
	struct gsr_cfg *cfg;
	struct gsr_preds back;
	unsigned int *number, *node;	/* 0: the exit cannot be reached; node[number] */
	unsigned int *parent, *semi, *label, *ancestor, *bucket, *next, *idom, *stack;
	unsigned int count;
};

struct gsr_preds gsr_preds(struct gsr_arena *a, const struct gsr_cfg *cfg)
{
	unsigned int n = cfg->n_blocks, i, k, total = 0, *n_found;
	struct gsr_preds p;

	p.start = gsr_alloc_array(a, n + 2, sizeof(*p.start));
	for (i = 0; i < n; i++)
		for (k = 0; k < cfg->blocks[i].n_succ; k++, total++)
			p.start[cfg->blocks[i].succ[k] + 1]++;
	for (i = 0; i <= n; i++)
		p.start[i + 1] += p.start[i];
	p.at = gsr_alloc_array(a, total + 1, sizeof(*p.at));
	n_found = gsr_alloc_array(a, n + 1, sizeof(*n_found));
	for (i = 0; i < n; i++)
		for (k = 0; k < cfg->blocks[i].n_succ; k++) {
			unsigned int to = cfg->blocks[i].succ[k];

			p.at[p.start[to] + n_found[to]++] = i;
		}
	return p;
}

static void find_nodes(struct builder *b, struct tree *t)
{
	unsigned int n = b->cfg->n_blocks, depth = 0, i, k;
	unsigned int *at = gsr_alloc_array(b->scratch, n + 1, sizeof(*at));

	t->stack[depth++] = n;
	t->number[n] = ++t->count;
	t->node[t->count] = n;
	while (depth) {
		i = t->stack[depth - 1];
		if (t->back.start[i] + at[i] == t->back.start[i + 1]) {
			depth--;
			continue;
		}
		k = t->back.at[t->back.start[i] + at[i]++];
		if (t->number[k])
			continue;
		t->number[k] = ++t->count;
		t->node[t->count] = k;
		t->parent[k] = i;
		t->stack[depth++] = k;
	}
}

/* The node of the least semidominator on the way up through the forest, which is made shorter */
static unsigned int eval(struct tree *t, unsigned int v)
{
	unsigned int depth = 0, x = v;

	if (t->ancestor[v] == GSR_NO_BLOCK)
		return v;
	for (; t->ancestor[t->ancestor[x]] != GSR_NO_BLOCK; x = t->ancestor[x])
		t->stack[depth++] = x;
	while (depth) {
		unsigned int y = t->stack[--depth], up = t->ancestor[y];

		if (t->semi[t->label[up]] < t->semi[t->label[y]])
			t->label[y] = t->label[up];
		t->ancestor[y] = t->ancestor[up];
	}
	return t->label[v];
}

static void dominators(struct tree *t)
{
	const struct gsr_cfg *cfg = t->cfg;
	unsigned int i, k, w, v, u;

	for (i = t->count; i > 1; i--) {
		w = t->node[i];
		for (k = 0; k < cfg->blocks[w].n_succ; k++) {
			v = cfg->blocks[w].succ[k];
			if (!t->number[v])
				continue;
			u = eval(t, v);
			if (t->semi[u] < t->semi[w])
				t->semi[w] = t->semi[u];
		}
		v = t->node[t->semi[w]];
		t->next[w] = t->bucket[v];
		t->bucket[v] = w;
		v = t->ancestor[w] = t->parent[w];
		for (w = t->bucket[v]; w != GSR_NO_BLOCK; w = t->next[w]) {
			u = eval(t, w);
			t->idom[w] = t->semi[u] < t->semi[w] ? u : v;
		}
		t->bucket[v] = GSR_NO_BLOCK;
	}
	for (i = 2; i <= t->count; i++) {
		w = t->node[i];
		if (t->idom[w] != t->node[t->semi[w]])
			t->idom[w] = t->idom[t->idom[w]];
	}
}

static void postdominators(struct builder *b)
{
	struct gsr_cfg *cfg = b->cfg;
	unsigned int n = cfg->n_blocks, i, **field,
		*room = gsr_alloc_array(b->scratch, 10 * ((size_t)n + 2), sizeof(*room));
	struct tree t = { .cfg = cfg };
	unsigned int **const fields[] = { &t.number, &t.node, &t.parent, &t.semi, &t.label,
					  &t.ancestor, &t.bucket, &t.next, &t.idom, &t.stack };

	for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		field = fields[i];
		*field = room + i * ((size_t)n + 2);
	}
	t.back = gsr_preds(b->scratch, cfg);
	find_nodes(b, &t);
	for (i = 0; i <= n; i++) {
		t.semi[i] = t.number[i];
		t.label[i] = i;
		t.ancestor[i] = t.bucket[i] = t.idom[i] = GSR_NO_BLOCK;
	}
	dominators(&t);
	for (i = 0; i < n; i++)
		cfg->blocks[i].ipdom = cfg->blocks[i].depth = GSR_NO_BLOCK;
	for (i = 2; i <= t.count; i++) {
		struct gsr_block *blk = &cfg->blocks[t.node[i]];

		blk->ipdom = t.idom[t.node[i]];
		blk->depth = blk->ipdom == n ? 1 : cfg->blocks[blk->ipdom].depth + 1;
	}
}

void gsr_cfg_build(struct gsr_arena *a, struct gsr_arena *scratch, struct gsr_function *f,
		   struct gsr_cfg *cfg)
{
	struct builder b = { .a = a, .scratch = scratch, .cfg = cfg };
	unsigned int scopes = 1, blocks = 1, scope = 0, i, *scope_of, *stack;
	struct gsr_stmt *s;
	bool fresh = true;

	memset(cfg, 0, sizeof(*cfg));
	for (s = f->first; s; s = s->next) {
		scopes += s->kind == GSR_STMT_OPEN;
		blocks += s->kind == GSR_STMT_LABEL || ends_block(s);
		if (s->kind == GSR_STMT_LABEL) {
			*gsr_intern_mark(s->label) = 0;
			b.n_labels++;
		}
	}
	cfg->blocks = gsr_alloc_array(a, blocks + 1, sizeof(*cfg->blocks));
	b.labels = gsr_alloc_array(scratch, b.n_labels + 1, sizeof(*b.labels));
	b.parent = gsr_alloc_array(scratch, scopes, sizeof(*b.parent));
	scope_of = gsr_alloc_array(scratch, blocks + 1, sizeof(*scope_of));
	scopes = 1;
	b.n_labels = 0;
	for (s = f->first; s; s = s->next) {
		struct gsr_block *blk;

		if (s->kind == GSR_STMT_OPEN) {
			b.parent[scopes] = scope;
			scope = scopes++;
		} else if (s->kind == GSR_STMT_CLOSE) {
			scope = b.parent[scope];
		}
		if (fresh || s->kind == GSR_STMT_LABEL)
			cfg->blocks[cfg->n_blocks++].first = s;
		blk = &cfg->blocks[cfg->n_blocks - 1];
		blk->last = s;
		scope_of[cfg->n_blocks - 1] = scope;
		if (s->kind == GSR_STMT_LABEL) {
			unsigned long *m = gsr_intern_mark(s->label);
			struct label *l = &b.labels[b.n_labels++];

			l->name = s->label;
			l->scope = scope;
			l->block = cfg->n_blocks - 1;
			if (*m) {
				l->next = b.labels[*m - 1].next;
				b.labels[*m - 1].next = l;
			} else {
				*m = b.n_labels;
			}
		}
		fresh = ends_block(s);
	}
	find_targets(&b, f);
	for (i = 0; i < cfg->n_blocks; i++)
		edges(&b, i, scope_of[i]);
	stack = gsr_alloc_array(scratch, cfg->n_blocks + 1, sizeof(*stack));
	reach(cfg, stack);
	if (!cfg->error)
		postdominators(&b);
}

void gsr_region_init(struct gsr_arena *a, const struct gsr_cfg *cfg, struct gsr_region *r)
{
	unsigned int i;

	r->cfg = cfg;
	r->n = 0;
	r->up = gsr_alloc_array(a, cfg->n_blocks + 1, sizeof(*r->up));
	r->found = gsr_alloc_array(a, cfg->n_blocks + 1, sizeof(*r->found));
	for (i = 0; i <= cfg->n_blocks; i++)
		r->up[i] = i;
}

/* The first post-dominator of @x, itself included, that is not in the region yet */
static unsigned int outside(struct gsr_region *r, unsigned int x)
{
	unsigned int top = x, next;

	while (top != GSR_NO_BLOCK && r->up[top] != top)
		top = r->up[top];
	for (; x != GSR_NO_BLOCK && x != top; x = next) {
		next = r->up[x];
		r->up[x] = top;
	}
	return top;
}

/*
 * If a block is in the region, so is all that can be reached from it without its post-dominator:
 * then the search goes on there, unless the branch's post-dominator comes first, so each block is
 * entered once.
 */
static void enter_block(struct gsr_region *r, unsigned int x, unsigned int depth)
{
	const struct gsr_block *b;

	x = outside(r, x);
	if (x == GSR_NO_BLOCK || x == r->cfg->n_blocks)
		return;
	b = &r->cfg->blocks[x];
	if (b->depth <= depth)
		return;
	r->up[x] = b->ipdom;
	r->found[r->n++] = x;
}

void gsr_region_add(struct gsr_region *r, unsigned int branch)
{
	const struct gsr_block *b = &r->cfg->blocks[branch];
	unsigned int depth = b->ipdom == GSR_NO_BLOCK || b->ipdom == r->cfg->n_blocks ? 0 :
			     r->cfg->blocks[b->ipdom].depth;
	unsigned int k, i;

	i = r->n;
	for (k = 0; k < b->n_succ; k++)
		enter_block(r, b->succ[k], depth);
	for (; i < r->n; i++)
		for (b = &r->cfg->blocks[r->found[i]], k = 0; k < b->n_succ; k++)
			enter_block(r, b->succ[k], depth);
}
