// SPDX-License-Identifier: LGPL-2.1-or-later
/* The control-flow graph of one function: blocks, edges, post-dominators (iterated over the reversed graph). */
#include <string.h>
#include "lex.h"
#include "rewrite.h"

#define BLOCKS_MAX	20000	/* the analyses look at pairs of them */

struct label {
	struct label *next;		/* another of the same name */
	const char *name;
	unsigned int scope, block;
};

struct builder {
	struct gsr_arena *a;
	struct gsr_cfg *cfg;
	struct label *labels;		/* 1-based by the mark of the name */
	unsigned int n_labels;
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

static void add_targets(struct builder *b, struct gsr_function *f, struct gsr_block *blk, const char *list,
			unsigned int scope)
{
	struct gsr_stmt *s;
	struct gsr_lexer lx;
	struct gsr_token t;
	bool found = false;

	for (s = f->first; s; s = s->next) {
		size_t n = strlen(list);

		if (!is_targets(s) || strncmp(s->text, list, n) || !strchr(" \t\n:", s->text[n]))
			continue;
		found = true;
		gsr_lex_init(&lx, s->text, strlen(s->text));
		while (gsr_lex_next(&lx).kind != GSR_TOK_DOT)
			;
		while ((t = gsr_lex_next(&lx)).kind != GSR_TOK_END && t.punct != ';')
			if (t.kind == GSR_TOK_IDENT)
				add_succ(b, blk, resolve(b, gsr_intern(b->a, t.text, t.len), scope));
	}
	if (!found)
		b->cfg->error = "brx.idx without its .branchtargets";
}

static void edges(struct builder *b, struct gsr_function *f, unsigned int i, unsigned int scope)
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
		add_targets(b, f, blk, insn->opnds[1].name, scope);
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

/* Order in which the reversed graph is left, exit last; blocks that do not reach the exit get none */
static unsigned int number(struct builder *b, unsigned int *order, unsigned int *post)
{
	unsigned int n = b->cfg->n_blocks, i, k, count = 0, depth = 0, total = 0;
	unsigned int *start = gsr_alloc_array(b->a, n + 2, sizeof(*start)), *pred, *at, *stack;

	for (i = 0; i < n; i++)
		for (k = 0; k < b->cfg->blocks[i].n_succ; k++, total++)
			start[b->cfg->blocks[i].succ[k] + 1]++;
	for (i = 0; i <= n; i++)
		start[i + 1] += start[i];
	pred = gsr_alloc_array(b->a, total + 1, sizeof(*pred));
	at = gsr_alloc_array(b->a, n + 1, sizeof(*at));
	for (i = 0; i < n; i++)
		for (k = 0; k < b->cfg->blocks[i].n_succ; k++) {
			unsigned int to = b->cfg->blocks[i].succ[k];

			pred[start[to] + at[to]++] = i;
		}
	memset(at, 0, (n + 1) * sizeof(*at));
	memset(post, 0xff, (n + 1) * sizeof(*post));
	stack = gsr_alloc_array(b->a, n + 2, sizeof(*stack));
	stack[depth++] = n;
	post[n] = GSR_NO_BLOCK - 1;	/* seen */
	while (depth) {
		i = stack[depth - 1];
		if (start[i] + at[i] < start[i + 1]) {
			k = pred[start[i] + at[i]++];
			if (post[k] == GSR_NO_BLOCK) {
				post[k] = GSR_NO_BLOCK - 1;
				stack[depth++] = k;
			}
		} else {
			post[i] = count;
			order[count++] = i;
			depth--;
		}
	}
	return count;
}

static void postdominators(struct builder *b)
{
	struct gsr_cfg *cfg = b->cfg;
	unsigned int n = cfg->n_blocks, i, k, count;
	unsigned int *order = gsr_alloc_array(b->a, n + 1, sizeof(*order));
	unsigned int *post = gsr_alloc_array(b->a, n + 1, sizeof(*post));
	unsigned int *idom = gsr_alloc_array(b->a, n + 1, sizeof(*idom));
	bool changed = true;

	count = number(b, order, post);
	for (i = 0; i <= n; i++)
		idom[i] = GSR_NO_BLOCK;
	idom[n] = n;
	while (changed) {
		changed = false;
		for (k = count - 1; k-- > 0;) {
			unsigned int now = GSR_NO_BLOCK, s;

			i = order[k];
			for (s = 0; s < cfg->blocks[i].n_succ; s++) {
				unsigned int x = cfg->blocks[i].succ[s];

				if (idom[x] == GSR_NO_BLOCK)
					continue;
				if (now == GSR_NO_BLOCK) {
					now = x;
					continue;
				}
				while (x != now) {
					while (post[x] < post[now])
						x = idom[x];
					while (post[now] < post[x])
						now = idom[now];
				}
			}
			if (idom[i] != now) {
				idom[i] = now;
				changed = true;
			}
		}
	}
	for (i = 0; i < n; i++)
		cfg->blocks[i].ipdom = idom[i];
}

void gsr_cfg_build(struct gsr_arena *a, struct gsr_function *f, struct gsr_cfg *cfg)
{
	struct builder b = { .a = a, .cfg = cfg };
	unsigned int scopes = 1, blocks = 1, scope = 0, i, *scope_of, *stack;
	struct gsr_stmt *s;
	bool fresh = true;

	memset(cfg, 0, sizeof(*cfg));
	for (s = f->first; s; s = s->next) {
		scopes += s->kind == GSR_STMT_OPEN;
		b.n_labels += s->kind == GSR_STMT_LABEL;
		blocks += s->kind == GSR_STMT_LABEL || ends_block(s);
	}
	if (blocks > BLOCKS_MAX) {
		cfg->error = "function of more than 20000 basic blocks";
		return;
	}
	cfg->blocks = gsr_alloc_array(a, blocks + 1, sizeof(*cfg->blocks));
	b.labels = gsr_alloc_array(a, b.n_labels + 1, sizeof(*b.labels));
	b.parent = gsr_alloc_array(a, scopes, sizeof(*b.parent));
	scope_of = gsr_alloc_array(a, blocks + 1, sizeof(*scope_of));
	for (s = f->first; s; s = s->next)
		if (s->kind == GSR_STMT_LABEL)
			*gsr_intern_mark(s->label) = 0;

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
	for (i = 0; i < cfg->n_blocks; i++)
		edges(&b, f, i, scope_of[i]);
	stack = gsr_alloc_array(a, cfg->n_blocks + 1, sizeof(*stack));
	reach(cfg, stack);
	if (!cfg->error)
		postdominators(&b);
}

void gsr_cfg_region(const struct gsr_cfg *cfg, unsigned int from, unsigned int stop, unsigned char *in,
		    unsigned int *stack)
{
	unsigned int n = 0, k;

	if (from == stop || from >= cfg->n_blocks || in[from])
		return;
	in[from] = 1;
	stack[n++] = from;
	while (n) {
		const struct gsr_block *blk = &cfg->blocks[stack[--n]];

		for (k = 0; k < blk->n_succ; k++) {
			unsigned int to = blk->succ[k];

			if (to != stop && to < cfg->n_blocks && !in[to]) {
				in[to] = 1;
				stack[n++] = to;
			}
		}
	}
}
