// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A linker for PTX: merges the translation units of a relocatable program into one module, so that
 * the passes see whole call graphs.
 *
 * A name with a linkage is global. A strong definition is preferred to weak ones, the first weak
 * one to others; two strong ones are an error. Declarations are dropped if there is a definition. A
 * name without a linkage is local to its unit: if it clashes with a name of another unit, it is
 * renamed in its unit's text. The output has prototypes of all functions first, then all variables,
 * then the functions, so that everything is declared before it is used.
 *
 * In: the units' PTX. Out: the text of one module. Assumes nothing of the units: they are parsed
 * here.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "rewriter/ptx/arena.h"
#include "fatbin.h"
#include "rewriter/ptx/lex.h"
#include "rewriter/ptx/ptx.h"

struct symbol {
	const char *name;
	const struct gsr_item *item;	/* the definition, else the first declaration */
	bool strong, weak;		/* the definition is; neither: only declared so far */
	bool linked;			/* is global in some unit */
	unsigned int linked_in;		/* ... the last such unit, from 1 */
	unsigned int owners, owner;	/* units to which it is local; the last one, from 1 */
	const char *to;			/* its new name in unit to_in, from 1 */
	unsigned int to_in;
};

struct unit {
	const char *text;		/* the input, or renamed */
	size_t size;
	char *renamed;
	struct gsr_module *module;
};

struct linker {
	struct gsr_arena *arena;
	struct unit *units;
	unsigned int n;
	struct symbol *symbols;
	unsigned int n_symbols, room;
	struct gsr_module out;
	struct gsr_error *err;
	const char *tag;		/* part of new names; occurs in no unit */
};

static const char *item_name(const struct gsr_item *i)
{
	return i->kind == GSR_ITEM_FUNCTION ? i->function->name :
	       i->kind == GSR_ITEM_VAR ? i->var->name : NULL;
}

static const char *item_linkage(const struct gsr_item *i)
{
	const char *l = i->kind == GSR_ITEM_FUNCTION ? i->function->linkage : i->var->linkage;

	return l ? l : "";
}

static bool is_definition(const struct gsr_item *i)
{
	if (i->kind == GSR_ITEM_FUNCTION)
		return i->function->body;
	return strcmp(item_linkage(i), "extern") != 0;
}

static bool is_local(const struct gsr_item *i)
{
	return !*item_linkage(i);
}

static enum gsr_status parse_unit(struct linker *l, struct unit *u)
{
	struct gsr_error err;
	enum gsr_status status = gsr_parse(u->text, u->size, "<unit>", &u->module, &err);

	if (status != GSR_OK)
		gsr_image_fail(l->err, status, "unit %u of a relocatable program: %.160s",
			       (unsigned int)(u - l->units) + 1, err.message);
	return status;
}

/* The mark of an interned name is its symbol's number plus 1 */
static struct symbol *symbol_of(struct linker *l, const char *text)
{
	const char *name = gsr_intern_str(l->arena, text);
	unsigned long *mark = gsr_intern_mark(name);

	if (!*mark) {
		l->symbols = gsr_grow(l->arena, l->symbols, l->n_symbols, &l->room,
				      sizeof(*l->symbols));
		l->symbols[l->n_symbols].name = name;
		*mark = ++l->n_symbols;
	}
	return &l->symbols[*mark - 1];
}

/* The new name of token @t in unit @k; NULL: it keeps its name */
static const char *new_name(struct linker *l, const struct gsr_token *t, unsigned int k)
{
	const struct symbol *s;
	unsigned long mark;

	if (t->kind != GSR_TOK_IDENT)
		return NULL;
	mark = *gsr_intern_mark(gsr_intern(l->arena, t->text, t->len));
	s = mark ? &l->symbols[mark - 1] : NULL;
	return s && s->to_in == k + 1 ? s->to : NULL;
}

/* Renames symbols in the text of unit @k and parses it again */
static enum gsr_status rename_symbols(struct linker *l, unsigned int k)
{
	struct unit *u = &l->units[k];
	const char *last = u->text, *to;
	size_t room = u->size + 1, len = 0;
	struct gsr_lexer lx;
	struct gsr_token t;
	char *out;

	gsr_lex_init(&lx, u->text, u->size);
	do {
		t = gsr_lex_next(&lx);
		to = new_name(l, &t, k);
		room += to ? strlen(to) : 0;
	} while (t.kind != GSR_TOK_END && t.kind != GSR_TOK_BAD);
	if (room > GSR_TEXT_MAX)
		return gsr_image_fail(l->err, GSR_ERR_LIMIT,
				      "relocatable program larger than %u MiB", GSR_TEXT_MAX >> 20);
	out = malloc(room);
	if (!out)
		return gsr_image_fail(l->err, GSR_ERR_NOMEM, "out of memory");
	/* every name is interned by now: nothing below allocates */
	gsr_lex_init(&lx, u->text, u->size);
	do {
		t = gsr_lex_next(&lx);
		to = new_name(l, &t, k);
		if (!to)
			continue;
		memcpy(out + len, last, (size_t)(t.text - last));
		len += (size_t)(t.text - last);
		memcpy(out + len, to, strlen(to));
		len += strlen(to);
		last = t.text + t.len;
	} while (t.kind != GSR_TOK_END && t.kind != GSR_TOK_BAD);
	memcpy(out + len, last, u->size - (size_t)(last - u->text));
	len += u->size - (size_t)(last - u->text);
	out[len] = 0;
	u->text = u->renamed = out;
	u->size = len;
	gsr_module_free(u->module);
	u->module = NULL;
	return parse_unit(l, u);
}

static void choose_tag(struct linker *l)
{
	unsigned int i = 0, k;

	do {
		l->tag = gsr_sprintf(l->arena, "__u%u_", i++);
		for (k = 0; k < l->n; k++)
			if (memmem(l->units[k].text, l->units[k].size, l->tag, strlen(l->tag)))
				break;
	} while (k < l->n);
}

/*
 * Renames those local names of unit @k that another unit has, too. The first unit's are no
 * exception: otherwise the name would be ambiguous to a reader of the linked program.
 */
static enum gsr_status rename_locals(struct linker *l, unsigned int k)
{
	const struct gsr_item *i;
	bool any = false;

	for (i = l->units[k].module->first; i; i = i->next)
		if (i->kind != GSR_ITEM_DIRECTIVE && !is_local(i))
			symbol_of(l, item_name(i))->linked_in = k + 1;
	for (i = l->units[k].module->first; i; i = i->next) {
		struct symbol *s;

		if (i->kind == GSR_ITEM_DIRECTIVE || !is_local(i))
			continue;
		s = symbol_of(l, item_name(i));
		if (s->linked_in == k + 1 || s->to_in == k + 1 || (!s->linked && s->owners < 2))
			continue;
		if (!l->tag)
			choose_tag(l);
		s->to = gsr_sprintf(l->arena, "%s%s%u", s->name, l->tag, k);
		s->to_in = k + 1;
		any = true;
	}
	return any ? rename_symbols(l, k) : GSR_OK;
}

static void count_owners(struct linker *l)
{
	const struct gsr_item *i;
	struct symbol *s;
	unsigned int k;

	for (k = 0; k < l->n; k++)
		for (i = l->units[k].module->first; i; i = i->next) {
			if (i->kind == GSR_ITEM_DIRECTIVE)
				continue;
			s = symbol_of(l, item_name(i));
			if (!is_local(i)) {
				s->linked = true;
			} else if (s->owner != k + 1) {
				s->owner = k + 1;
				s->owners++;
			}
		}
}

static enum gsr_status define_symbols(struct linker *l, unsigned int k)
{
	const struct gsr_item *i;

	for (i = l->units[k].module->first; i; i = i->next) {
		bool weak, common;
		struct symbol *s;

		if (i->kind == GSR_ITEM_DIRECTIVE)
			continue;
		s = symbol_of(l, item_name(i));
		weak = !strcmp(item_linkage(i), "weak");
		common = !strcmp(item_linkage(i), "common");
		if (!s->item)
			s->item = i;
		if (s->item->kind != i->kind)
			return gsr_image_fail(l->err, GSR_ERR_FORMAT,
					      "relocatable program: %.100s is a function "
					      "and a variable", s->name);
		if (!is_definition(i)) {
			/* of .extern .shared declarations the largest alignment is kept */
			if (i->kind == GSR_ITEM_VAR && !s->strong && !s->weak &&
			    i->var->align > s->item->var->align)
				s->item = i;
			continue;
		}
		if (weak || common) {
			if (!s->strong && !s->weak)
				s->item = i;
			s->weak = true;
			continue;
		}
		if (s->strong)
			return gsr_image_fail(l->err, GSR_ERR_FORMAT,
					      "relocatable program: %.100s is defined twice",
					      s->name);
		s->strong = true;
		s->item = i;
	}
	return GSR_OK;
}

static void append_item(struct linker *l, struct gsr_item item)
{
	struct gsr_item *i = gsr_alloc(l->arena, sizeof(*i));

	*i = item;
	i->next = NULL;
	if (l->out.last)
		l->out.last->next = i;
	else
		l->out.first = i;
	l->out.last = i;
}

enum section { PROTOTYPES, VARIABLES, FUNCTIONS };

static void emit_items(struct linker *l, enum section what)
{
	struct gsr_function *proto;
	struct gsr_item *i;
	unsigned int k;

	for (k = 0; k < l->n; k++)
		for (i = l->units[k].module->first; i; i = i->next) {
			struct symbol *s;

			if (i->kind == GSR_ITEM_DIRECTIVE) {
				if (what == FUNCTIONS && !gsr_is_line_info(i->text))
					append_item(l, *i);
				continue;
			}
			s = symbol_of(l, item_name(i));
			if (s->item != i)
				continue;
			if (i->kind == GSR_ITEM_VAR) {
				if (what == VARIABLES)
					append_item(l, *i);
			} else if (what == FUNCTIONS && i->function->body) {
				gsr_drop_lines(i->function);
				append_item(l, *i);
			} else if (what == PROTOTYPES && !i->function->entry) {
				proto = gsr_alloc(l->arena, sizeof(*proto));
				*proto = *i->function;
				proto->body = false;
				proto->first = proto->last = NULL;
				append_item(l, (struct gsr_item){ .kind = GSR_ITEM_FUNCTION,
								  .function = proto });
			}
		}
}

static unsigned long version_of(const char *text)
{
	char *end;
	unsigned long major = strtoul(text, &end, 10);

	return major * 1000 + (*end == '.' ? strtoul(end + 1, NULL, 10) : 0);
}

/* Is the target more than an architecture, such as sm_90a or "sm_90, debug"? */
static bool is_specific(const char *target)
{
	return target[strspn(target, "smcoute_0123456789p")] != 0;
}

static enum gsr_status merge_headers(struct linker *l)
{
	const struct gsr_module *m = l->units[0].module, *u;
	unsigned int k;

	l->out.version = m->version;
	l->out.address_size = m->address_size;
	for (k = 1; k < l->n; k++) {
		u = l->units[k].module;
		if (u->address_size != m->address_size)
			return gsr_image_fail(l->err, GSR_ERR_FORMAT,
					      "relocatable program of 32-bit and 64-bit units");
		if (version_of(u->version) > version_of(l->out.version))
			l->out.version = u->version;
	}
	/* the highest target has all instructions of the others, unless one of these is specific */
	for (k = 0; k < l->n; k++) {
		u = l->units[k].module;
		if (!l->out.target || u->arch > l->out.arch ||
		    (u->arch == l->out.arch && is_specific(u->target))) {
			l->out.target = u->target;
			l->out.arch = u->arch;
		}
	}
	for (k = 0; k < l->n; k++)
		if (is_specific(l->units[k].module->target) &&
		    strcmp(l->units[k].module->target, l->out.target) != 0)
			return gsr_image_fail(l->err, GSR_ERR_UNSUPPORTED,
					      "relocatable program of units for %.40s "
					      "and for %.40s", l->units[k].module->target,
					      l->out.target);
	return GSR_OK;
}

static enum gsr_status link_units(struct linker *l, char **ptx, size_t *size)
{
	enum gsr_status status = GSR_OK;
	jmp_buf nomem;
	unsigned int k;

	if (setjmp(nomem))
		return gsr_image_fail(l->err, GSR_ERR_NOMEM, "out of memory");
	gsr_arena_escape(l->arena, &nomem);
	for (k = 0; k < l->n && status == GSR_OK; k++)
		status = parse_unit(l, &l->units[k]);
	if (status == GSR_OK)
		count_owners(l);
	for (k = 0; k < l->n && status == GSR_OK; k++) {
		status = rename_locals(l, k);
		if (status == GSR_OK)
			status = define_symbols(l, k);
	}
	if (status == GSR_OK)
		status = merge_headers(l);
	if (status == GSR_OK) {
		emit_items(l, PROTOTYPES);
		emit_items(l, VARIABLES);
		emit_items(l, FUNCTIONS);
		*ptx = gsr_print(&l->out, size);
		if (!*ptx)
			status = gsr_image_fail(l->err, GSR_ERR_NOMEM, "out of memory");
		else if (*size > GSR_TEXT_MAX)
			status = gsr_image_fail(l->err, GSR_ERR_LIMIT,
						"relocatable program larger than %u MiB",
						GSR_TEXT_MAX >> 20);
	}
	gsr_arena_escape(l->arena, NULL);
	if (status != GSR_OK) {
		free(*ptx);
		*ptx = NULL;
	}
	return status;
}

enum gsr_status gsr_link_ptx(const struct gsr_unit *texts, unsigned int n, char **ptx, size_t *size,
			     struct gsr_error *err)
{
	struct linker l = { .n = n, .err = err, .arena = gsr_arena_new() };
	enum gsr_status status;
	unsigned int k;

	*ptx = NULL;
	*size = 0;
	if (err)
		memset(err, 0, sizeof(*err));
	l.units = calloc(n + 1, sizeof(*l.units));
	if (!l.units || !l.arena) {
		status = gsr_image_fail(err, GSR_ERR_NOMEM, "out of memory");
	} else {
		for (k = 0; k < n; k++) {
			l.units[k].text = texts[k].data;
			l.units[k].size = strnlen(texts[k].data, texts[k].size);
		}
		status = n ? link_units(&l, ptx, size) :
			 gsr_image_fail(err, GSR_ERR_FORMAT, "relocatable program without units");
	}
	if (status != GSR_OK)
		*size = 0;
	for (k = 0; l.units && k < n; k++) {
		gsr_module_free(l.units[k].module);
		free(l.units[k].renamed);
	}
	free(l.units);
	gsr_arena_free(l.arena);
	return status;
}
