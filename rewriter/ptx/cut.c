// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Extraction of one kernel from a module, with the transitive closure of the functions and
 * variables that it names. References are found by scanning the printed text of each item, so that
 * none is missed, whatever the item is. Line information is dropped, as it may name dropped items.
 *
 * In: a module and the name of a kernel. Out: the text of a module with that kernel. Assumes that
 * the module is not used afterwards: its list of items is changed.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "ptx.h"

struct entry {
	const char *name;
	const struct gsr_item *item;
	bool needed;
};

struct cut {
	const struct gsr_module *m;
	struct entry *entry;		/* by name */
	const struct entry **stack;	/* worklist: needed, not scanned yet */
	size_t n, depth;
};

/* "" for a directive */
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

/* Marks all items of that name, declarations of a function included. False: there is none */
static bool mark_needed(struct cut *c, const char *name)
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

static bool is_name_char(char ch)
{
	return isalnum((unsigned char)ch) || ch == '_' || ch == '$';
}

/* Marks whatever @text names; overwrites the character after each name with a NUL */
static void mark_names(struct cut *c, char *text)
{
	while (*text) {
		char *end = text, after;

		while (is_name_char(*end))
			end++;
		if (end == text) {
			text++;
			continue;
		}
		after = *end;
		*end = 0;
		mark_needed(c, text);
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

/* False: no memory, or no such kernel */
static bool mark_closure(struct cut *c, const char *kernel)
{
	const struct gsr_item *i;

	if (!mark_needed(c, kernel))
		return false;
	/* directives such as .alias are kept, and so is what they name */
	for (i = c->m->first; i; i = i->next) {
		char *text;

		if (i->kind != GSR_ITEM_DIRECTIVE || gsr_is_line_info(i->text))
			continue;
		text = strdup(i->text);
		if (!text)
			return false;
		mark_names(c, text);
		free(text);
	}
	while (c->depth) {
		char *text = print_item(c->m, c->stack[--c->depth]->item);

		if (!text)
			return false;
		mark_names(c, text);
		free(text);
	}
	return true;
}

static bool is_kept(const struct cut *c, const struct gsr_item *i)
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
	if (c.entry && c.stack && mark_closure(&c, kernel)) {
		m->last = NULL;
		for (i = m->first; i; i = i->next) {
			if (!is_kept(&c, i))
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
