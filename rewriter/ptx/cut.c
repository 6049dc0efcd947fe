// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * One kernel of a module, with the functions and variables that it names, and those that these
 * name. Names are taken from the text as it is printed, so whatever an item may refer to is found.
 * Line information is dropped, as it names what is dropped.
 *
 * In: a module and the name of a kernel. Out: the text of a module with that kernel. Assumes that
 * nobody uses @m afterwards.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "ptx.h"

struct entry {
	const char *name;		/* "" a directive */
	const struct gsr_item *item;
	bool needed;
};

struct cut {
	const struct gsr_module *m;
	struct entry *entry;		/* by name */
	const struct entry **stack;	/* needed, not looked through yet */
	size_t n, depth;
};

static const char *name_of(const struct gsr_item *i)
{
	if (i->kind == GSR_ITEM_FUNCTION)
		return i->function->name;
	return i->kind == GSR_ITEM_VAR ? i->var->name : "";
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

/* All items of that name: a function's declarations, too */
static bool need(struct cut *c, const char *name)
{
	const struct entry key = { .name = name };
	struct entry *e = bsearch(&key, c->entry, c->n, sizeof(*c->entry), by_name);

	if (!e || e->needed)
		return e;
	while (e > c->entry && !strcmp(e[-1].name, name))
		e--;
	for (; e < c->entry + c->n && !strcmp(e->name, name); e++) {
		e->needed = true;
		c->stack[c->depth++] = e;
	}
	return true;
}

static bool part_of_name(char ch)
{
	return isalnum((unsigned char)ch) || ch == '_' || ch == '$';
}

/* Ends each name in @text with a NUL */
static void need_names(struct cut *c, char *text)
{
	while (*text) {
		char *end = text, after;

		while (part_of_name(*end))
			end++;
		if (end == text) {
			text++;
			continue;
		}
		after = *end;
		*end = 0;
		need(c, text);
		text = end + (after ? 1 : 0);
	}
}

static char *print_item(const struct gsr_module *m, const struct gsr_item *item)
{
	struct gsr_module part = *m;
	struct gsr_item one = *item;
	size_t size;

	one.next = NULL;
	part.first = part.last = &one;
	return gsr_print(&part, &size);
}

/* false: no memory, or there is no such kernel */
static bool find_needed(struct cut *c, const char *kernel)
{
	const struct gsr_item *i;

	if (!need(c, kernel))
		return false;
	/* .alias and the like stay, and what they name */
	for (i = c->m->first; i; i = i->next) {
		char *text;

		if (i->kind != GSR_ITEM_DIRECTIVE || gsr_is_line_info(i->text))
			continue;
		text = strdup(i->text);
		if (!text)
			return false;
		need_names(c, text);
		free(text);
	}
	while (c->depth) {
		char *text = print_item(c->m, c->stack[--c->depth]->item);

		if (!text)
			return false;
		need_names(c, text);
		free(text);
	}
	return true;
}

static bool stays(const struct cut *c, const struct gsr_item *i)
{
	const struct entry key = { .name = name_of(i) }, *e;

	if (i->kind == GSR_ITEM_DIRECTIVE)
		return !gsr_is_line_info(i->text);
	e = bsearch(&key, c->entry, c->n, sizeof(*c->entry), by_name);
	return e && e->needed;
}

char *gsr_cut(struct gsr_module *m, const char *kernel)
{
	struct gsr_item *i, **to = &m->first;
	struct cut c = { .m = m };
	char *text = NULL;
	size_t size;

	for (i = m->first; i; i = i->next)
		c.n++;
	c.entry = calloc(c.n + 1, sizeof(*c.entry));
	c.stack = calloc(c.n + 1, sizeof(*c.stack));
	if (c.entry && c.stack) {
		c.n = 0;
		for (i = m->first; i; i = i->next)
			if (*name_of(i))
				c.entry[c.n++] = (struct entry){ .name = name_of(i), .item = i };
		qsort(c.entry, c.n, sizeof(*c.entry), by_name);
	}
	if (c.entry && c.stack && find_needed(&c, kernel)) {
		m->last = NULL;
		for (i = m->first; i; i = i->next) {
			if (!stays(&c, i))
				continue;
			if (i->kind == GSR_ITEM_FUNCTION)
				gsr_drop_lines(i->function);
			*to = m->last = i;
			to = &i->next;
		}
		*to = NULL;
		text = gsr_print(m, &size);
	}
	free(c.entry);
	free(c.stack);
	return text;
}
