// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * How many 32-bit registers a kernel needs at once, as occupancy asks. An estimate: a register is
 * taken to be live from its first to its last mention, a loop around a mention keeps it live to the
 * loop's end. Real compilers do somewhat better by moving code and worse by aligning pairs.
 */
#include <ctype.h>
#include <stdlib.h>
#include "exec_priv.h"

struct range {
	const char *name;
	unsigned int first, last, weight;
};

struct live {
	struct range *ranges;
	size_t n, room;
	uint32_t *hash;
	size_t n_hash;
	struct {
		const char *name;
		unsigned int weight, prefix;
	} decls[64];
	unsigned int n_decls;
	bool failed;
};

static unsigned int weight_of(const struct live *l, const char *name)
{
	size_t len = strlen(name), prefix = len;
	unsigned int i;

	while (prefix && isdigit((unsigned char)name[prefix - 1]))
		prefix--;
	for (i = 0; i < l->n_decls; i++)
		if (!strcmp(l->decls[i].name, name) ||
		    (l->decls[i].prefix == prefix && !memcmp(l->decls[i].name, name, prefix)))
			return l->decls[i].weight;
	return 0;
}

static bool rehash(struct live *l)
{
	size_t n = l->n_hash ? l->n_hash * 2 : 256, i;
	uint32_t *hash = calloc(n, sizeof(*hash));

	if (!hash)
		return false;
	for (i = 0; i < l->n; i++) {
		size_t h = ((uintptr_t)l->ranges[i].name >> 4) * 0x9e3779b1u;

		while (hash[h & (n - 1)])
			h++;
		hash[h & (n - 1)] = (uint32_t)i + 1;
	}
	free(l->hash);
	l->hash = hash;
	l->n_hash = n;
	return true;
}

/* Names are interned: a pointer is a name */
static void mention(struct live *l, const char *name, unsigned int at)
{
	size_t h;
	struct range *r;

	if (!name || l->failed)
		return;
	if (l->n * 2 >= l->n_hash && !rehash(l)) {
		l->failed = true;
		return;
	}
	for (h = ((uintptr_t)name >> 4) * 0x9e3779b1u; l->hash[h & (l->n_hash - 1)]; h++) {
		r = &l->ranges[l->hash[h & (l->n_hash - 1)] - 1];
		if (r->name == name) {
			r->last = at;
			return;
		}
	}
	if (l->n == l->room) {
		size_t room = l->room ? l->room * 2 : 128;

		r = realloc(l->ranges, room * sizeof(*r));
		if (!r) {
			l->failed = true;
			return;
		}
		l->ranges = r;
		l->room = room;
	}
	l->ranges[l->n] = (struct range){ name, at, at, weight_of(l, name) };
	l->hash[h & (l->n_hash - 1)] = (uint32_t)++l->n;
}

static void operand(struct live *l, const struct gsr_operand *o, unsigned int at)
{
	unsigned int i;

	mention(l, o->name, at);
	for (i = 0; i < o->n_items; i++)
		operand(l, &o->items[i], at);
}

struct back {
	unsigned int from, to;
};

struct label {
	const char *name;
	unsigned int at;
};

static int by_name(const void *a, const void *b)
{
	uintptr_t x = (uintptr_t)((const struct label *)a)->name,
		y = (uintptr_t)((const struct label *)b)->name;

	return x < y ? -1 : x > y;
}

/*
 * Labels sorted by name, for the search of loops; two of one name in different scopes are as good
 * as one
 */
static struct label *label_list(const struct gsr_function *fn, size_t *n)
{
	const struct gsr_stmt *s;
	struct label *list;
	unsigned int at = 0;

	*n = 0;
	for (s = fn->first; s; s = s->next)
		*n += s->kind == GSR_STMT_LABEL;
	list = calloc(*n + 1, sizeof(*list));
	if (!list)
		return NULL;
	*n = 0;
	for (s = fn->first; s; s = s->next, at++)
		if (s->kind == GSR_STMT_LABEL)
			list[(*n)++] = (struct label){ s->label, at };
	qsort(list, *n, sizeof(*list), by_name);
	return list;
}

static void declare(struct live *l, const struct gsr_var *v)
{
	unsigned int size = xtype_size(xtype_parse(v->type));

	if (strcmp(v->space, "reg") || l->n_decls == sizeof(l->decls) / sizeof(*l->decls))
		return;
	l->decls[l->n_decls].name = v->name;
	l->decls[l->n_decls].prefix = v->range ? (unsigned int)strlen(v->name) : ~0u;
	l->decls[l->n_decls++].weight = size > 4 ? size / 4 : size ? 1 : 0;
}

unsigned int kernel_regs(const struct gsr_function *fn)
{
	struct live l = { 0 };
	struct back *backs = NULL;
	unsigned int at = 0, n_stmts = 0, most = 0, now = 0, i;
	size_t n_backs = 0, room = 0, n_labels, k;
	struct label *labels = label_list(fn, &n_labels);
	const struct gsr_stmt *s;
	const struct label *to;
	int *delta = NULL;
	bool changed = true;

	for (s = fn->first; s; s = s->next, at++) {
		if (s->kind == GSR_STMT_VAR)
			declare(&l, s->var);
		if (s->kind != GSR_STMT_INSN)
			continue;
		mention(&l, s->insn->guard, at);
		for (i = 0; i < s->insn->n_opnds; i++)
			operand(&l, &s->insn->opnds[i], at);
		if (s->insn->op != GSR_OP_BRA || s->insn->n_opnds != 1 || !labels)
			continue;
		to = bsearch(&(struct label){ s->insn->opnds[0].name, 0 }, labels, n_labels,
			     sizeof(*labels), by_name);
		if (!to || to->at > at)
			continue;
		if (n_backs == room) {
			struct back *b = realloc(backs, (room ? room * 2 : 16) * sizeof(*b));

			if (!b)
				goto out;
			backs = b;
			room = room ? room * 2 : 16;
		}
		backs[n_backs++] = (struct back){ at, to->at };
	}
	n_stmts = at;
	/*
	 * what is set before a loop and read in it is live through all of it; not looked into where
	 * it would take long
	 */
	for (unsigned int round = 0; changed && round < 8 && l.n * n_backs < 10000000; round++) {
		changed = false;
		for (k = 0; k < l.n; k++)
			for (size_t b = 0; b < n_backs; b++)
				if (l.ranges[k].first < backs[b].to &&
				    l.ranges[k].last >= backs[b].to &&
				    l.ranges[k].last < backs[b].from) {
					l.ranges[k].last = backs[b].from;
					changed = true;
				}
	}
	delta = calloc(n_stmts + 2, sizeof(*delta));
	if (!delta || l.failed)
		goto out;
	for (k = 0; k < l.n; k++) {
		delta[l.ranges[k].first] += (int)l.ranges[k].weight;
		delta[l.ranges[k].last + 1] -= (int)l.ranges[k].weight;
	}
	for (i = 0; i <= n_stmts; i++) {
		now = (unsigned int)((int)now + delta[i]);
		most = now > most ? now : most;
	}
out:
	free(l.ranges);
	free(l.hash);
	free(backs);
	free(labels);
	free(delta);
	/* addresses and the stack pointer take a few beyond what PTX names */
	return most + 4;
}
