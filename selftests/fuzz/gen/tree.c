// SPDX-License-Identifier: LGPL-2.1-or-later
/* The tree: memory, random numbers, nodes, printing. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "tree.h"

const char *const gen_feature_name[] = {
#define X(name, weight) #name,
	GEN_FEATURES(X)
#undef X
};

const unsigned int gen_feature_weight[] = {
#define X(name, weight) weight,
	GEN_FEATURES(X)
#undef X
};

void gen_options_init(struct gen_options *o)
{
	memset(o, 0, sizeof(*o));
	memcpy(o->weight, gen_feature_weight, sizeof(o->weight));
}

bool gen_options_weight(struct gen_options *o, const char *name_is_n)
{
	const char *is = strchr(name_is_n, '=');
	unsigned int i;
	char *end;

	for (i = 0; is && i < GEN_FEATURE_COUNT; i++) {
		if (strlen(gen_feature_name[i]) != (size_t)(is - name_is_n) ||
		    strncmp(gen_feature_name[i], name_is_n, is - name_is_n))
			continue;
		o->weight[i] = (unsigned int)strtoul(is + 1, &end, 10);
		return is[1] && !*end;
	}
	return false;
}

uint64_t gen_roll64(struct gen *g)
{
	uint64_t z = g->rng += 0x9e3779b97f4a7c15ull;

	/* splitmix64: any seed is a good one */
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

unsigned int gen_roll(struct gen *g, unsigned int n)
{
	return n ? (unsigned int)((gen_roll64(g) >> 32) % n) : 0;
}

struct chunk {
	struct chunk *next;
	size_t used;
	char room[65536 - 16];
};

/* Running out of memory ends the program: these are tests */
void *gen_alloc(struct gen_kernel *k, size_t size)
{
	struct chunk *c = k->memory;
	void *p;

	size = (size + 15) & ~(size_t)15;
	if (size > sizeof(c->room))
		abort();
	if (!c || c->used + size > sizeof(c->room)) {
		c = malloc(sizeof(*c));
		if (!c)
			abort();
		c->next = k->memory;
		c->used = 0;
		k->memory = c;
	}
	p = c->room + c->used;
	c->used += size;
	return memset(p, 0, size);
}

void gen_kernel_free(struct gen_kernel *k)
{
	struct chunk *c, *next;

	if (!k)
		return;
	for (c = k->memory; c; c = next) {
		next = c->next;
		free(c);
	}
	free(k);
}

const char *gen_text(struct gen *g, const char *fmt, ...)
{
	char buf[256], *text;
	va_list ap;
	size_t n;

	va_start(ap, fmt);
	vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	n = strlen(buf) + 1;
	text = gen_alloc(g->k, n);
	return memcpy(text, buf, n);
}

void gen_line(struct gen *g, struct gen_node *n, unsigned int i, const char *fmt, ...)
{
	char buf[2048], *at, *end;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	for (at = buf; *at; at = end) {
		struct gen_text *t = &n->text[i];
		struct gen_line *l;

		end = at + strcspn(at, "\n");
		if (*end)
			*end++ = 0;
		l = gen_alloc(g->k, sizeof(*l) + strlen(at) + 1);
		strcpy(l->text, at);
		if (t->last)
			t->last->next = l;
		else
			t->first = l;
		t->last = l;
	}
}

struct gen_node *gen_node(struct place *p, int feature)
{
	struct gen_node *n = gen_alloc(p->g->k, sizeof(*n));

	n->feature = feature;
	if (feature >= 0)
		p->g->k->count[feature]++;
	*p->tail = n;
	p->tail = &n->next;
	return n;
}

struct place gen_inside(struct place *p, struct gen_node *n, unsigned int child, enum level level)
{
	struct place in = *p;

	n->compound = true;
	in.tail = &n->child[child];
	in.level = level < p->level ? level : p->level;
	in.depth++;
	return in;
}

static void print_text(FILE *f, const struct gen_text *t)
{
	const struct gen_line *l;

	for (l = t->first; l; l = l->next)
		if (!l->off)
			fprintf(f, "%s%s\n", strchr("}{.$", l->text[0]) ||
				strchr(l->text, ':') ? "" : "\t", l->text);
}

static void print_nodes(FILE *f, const struct gen_node *n)
{
	for (; n; n = n->next) {
		if (n->off)
			continue;
		if (!n->flat)
			print_text(f, &n->text[0]);
		print_nodes(f, n->child[0]);
		if (!n->flat)
			print_text(f, &n->text[1]);
		print_nodes(f, n->child[1]);
		if (!n->flat)
			print_text(f, &n->text[2]);
	}
}

char *gen_print(const struct gen_kernel *k)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	print_nodes(f, k->module);
	return fclose(f) ? NULL : text;
}

void gen_print_launch(const struct gen_kernel *k, FILE *f)
{
	const struct test_launch *t = &k->launch;
	static const char *const fills[] = { [FILL_ZERO] = "out", [FILL_WORDS] = "io",
					     [FILL_FLOATS] = "inf" };
	unsigned int i;

	fprintf(f, "%s block grid=%u,%u,%u block=%u,%u,%u shared=%zu%s params=", t->kernel,
		t->grid[0], t->grid[1], t->grid[2], t->block_dim[0], t->block_dim[1],
		t->block_dim[2], t->dynamic, t->ordered ? " ordered" : "");
	for (i = 0; i < t->n_params; i++) {
		const struct test_param *p = &t->params[i];

		if (i)
			fputc(',', f);
		if (p->kind == PARAM_BUFFER)
			fprintf(f, "%s:%zu", fills[p->fill], p->size);
		else if (p->kind == PARAM_BYTES)
			fprintf(f, "bytes:%zu", p->size);
		else
			fprintf(f, "u%zu:%llu", 8 * p->size, (unsigned long long)p->value);
	}
	fputc('\n', f);
}
