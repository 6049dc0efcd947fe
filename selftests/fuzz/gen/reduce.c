// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The reducer: delta debugging over the tree. Takes away ranges of statements, unwraps what is
 * around others, then single lines, then blocks and threads, again and again until nothing more can
 * go.
 */
#include <stdlib.h>
#include <string.h>
#include <ctype.h>
#include "gen.h"

#define TRIALS_MAX 4000

struct reducer {
	struct gen_kernel *k;
	gen_fails *fails;
	void *arg;
	unsigned int trials;
	bool changed;
	struct gen_node **node;
	size_t n, room;
};

static bool word_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '%';
}

static bool names(const char *text, const char *word)
{
	size_t n = strlen(word);
	const char *at;

	for (at = text; (at = strstr(at, word)); at += n)
		if (!word_char(at[n]) && (at == text || !word_char(at[-1])))
			return true;
	return false;
}

static bool node_names(const struct gen_node *n, const char *word, const struct gen_node *but)
{
	unsigned int i;

	for (; n; n = n->next) {
		if (n->off || n == but)
			continue;
		for (i = 0; i < 3 && !n->flat; i++)
			for (const struct gen_line *l = n->text[i].first; l; l = l->next)
				if (!l->off && names(l->text, word))
					return true;
		if (node_names(n->child[0], word, but) || node_names(n->child[1], word, but))
			return true;
	}
	return false;
}

static bool trial(struct reducer *r)
{
	char *ptx;
	bool fails;

	if (r->trials >= TRIALS_MAX)
		return false;
	r->trials++;
	ptx = gen_print(r->k);
	fails = ptx && r->fails(r->k, ptx, r->arg);
	free(ptx);
	return fails;
}

/* Inner nodes come behind the ones around them */
static void collect(struct reducer *r, struct gen_node *n)
{
	for (; n; n = n->next) {
		if (n->off)
			continue;
		if (r->n == r->room) {
			r->room = r->room ? 2 * r->room : 256;
			r->node = realloc(r->node, r->room * sizeof(struct gen_node *));
			if (!r->node)
				abort();
		}
		r->node[r->n++] = n;
		collect(r, n->child[0]);
		collect(r, n->child[1]);
	}
}

static void collect_all(struct reducer *r)
{
	r->n = 0;
	collect(r, r->k->module);
}

static bool may_go(const struct reducer *r, const struct gen_node *n)
{
	if (n->only_with)
		return !node_names(r->k->module, n->only_with, n);
	return !n->fixed;
}

/* Statements, by ranges that get smaller */
static void reduce_nodes(struct reducer *r)
{
	size_t size, i, j, m;

	collect_all(r);
	for (size = r->n / 2 ? r->n / 2 : 1; size; size /= 2) {
		for (i = 0; i < r->n; i += size) {
			bool *was = calloc(size, sizeof(*was));

			for (m = 0, j = i; was && j < i + size && j < r->n; j++) {
				was[j - i] = r->node[j]->off;
				if (!r->node[j]->off && may_go(r, r->node[j])) {
					r->node[j]->off = true;
					m++;
				}
			}
			if (m && trial(r))
				r->changed = true;
			else
				for (j = i; was && j < i + size && j < r->n; j++)
					r->node[j]->off = was[j - i];
			free(was);
		}
	}
}

static void reduce_wraps(struct reducer *r)
{
	size_t i;
	unsigned int c;

	collect_all(r);
	for (i = 0; i < r->n; i++) {
		struct gen_node *n = r->node[i];

		if (!n->compound || n->fixed || n->only_with || n->flat || n->off)
			continue;
		n->flat = true;
		if (trial(r)) {
			r->changed = true;
			continue;
		}
		/* one of its two parts alone */
		for (c = 0; c < 2; c++) {
			struct gen_node *kept = n->child[c];

			n->child[c] = NULL;
			if (kept && trial(r)) {
				r->changed = true;
				break;
			}
			n->child[c] = kept;
		}
		if (c == 2)
			n->flat = false;
	}
}

/* What a line writes, if it is the next one's business: "%t0" of "add.u32 %t0, …" */
static bool feeds(const struct gen_line *l)
{
	char reg[32];
	size_t n = 0;
	const char *at = strpbrk(l->text, " ");
	const struct gen_line *next;

	if (l->text[0] == '@' && at)
		at = strchr(at + 1, ' ');
	if (!at || at[1] != '%')
		return strchr(l->text, ':') || strchr("{}.", l->text[0]);
	for (at++; n < sizeof(reg) - 1 && word_char(at[n]); n++)
		reg[n] = at[n];
	reg[n] = 0;
	if (!strchr("tsqexh", reg[1]) && strncmp(reg, "%lin", 4))
		return false;
	for (next = l->next; next; next = next->next)
		if (!next->off && names(next->text, reg))
			return true;
	return false;
}

static void reduce_lines(struct reducer *r)
{
	struct gen_line *l;
	size_t i;

	collect_all(r);
	for (i = 0; i < r->n; i++) {
		struct gen_node *n = r->node[i];

		if (n->compound || n->fixed || n->off)
			continue;
		for (l = n->text[0].first; l; l = l->next) {
			if (l->off || feeds(l))
				continue;
			l->off = true;
			if (trial(r))
				r->changed = true;
			else
				l->off = false;
		}
	}
}

/* Registers and variables that nobody names any more */
static void reduce_unnamed(struct reducer *r)
{
	size_t i;

	collect_all(r);
	for (i = r->n; i-- > 0;) {
		struct gen_node *n = r->node[i];

		if (!n->only_with || n->off || !may_go(r, n))
			continue;
		n->off = true;
		if (trial(r))
			r->changed = true;
		else
			n->off = false;
	}
}

static void shrink(struct reducer *r, unsigned int *v)
{
	unsigned int old = *v, tries[3] = { 1, old / 2, old - 1 }, i;

	for (i = 0; i < 3; i++) {
		if (!tries[i] || tries[i] >= old)
			continue;
		*v = tries[i];
		if (trial(r)) {
			r->changed = true;
			return;
		}
	}
	*v = old;
}

unsigned int gen_reduce(struct gen_kernel *k, gen_fails *fails, void *arg)
{
	struct reducer r = { .k = k, .fails = fails, .arg = arg };
	unsigned int i;

	do {
		r.changed = false;
		reduce_nodes(&r);
		reduce_wraps(&r);
		reduce_lines(&r);
		reduce_unnamed(&r);
		for (i = 0; i < 3; i++) {
			shrink(&r, &k->launch.grid[i]);
			shrink(&r, &k->launch.block_dim[i]);
		}
	} while (r.changed && r.trials < TRIALS_MAX);
	free(r.node);
	return r.trials;
}
