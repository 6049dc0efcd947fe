// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The printer: one statement per line.
 *
 * In: a module. Out: its text, which parses to the same module. Assumes a tree that the parser or a
 * pass built in the form that ptx.h describes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "arena.h"
#include "ptx.h"

/* most bytes reserved at a time, as the estimate of what remains may be far too high */
#define ROOM_MAX	((size_t)1 << 28)

struct text {
	char *buf;
	size_t len, room;
	size_t items, printed;		/* of the module: to estimate its length */
	bool failed;
};

/*
 * Makes room for @n more bytes and, extrapolating, for the rest of the module: when a mapping is
 * moved, its huge pages are split. Pages that are never written take no memory.
 */
static bool grow_buffer(struct text *t, size_t n)
{
	size_t times = t->printed ? t->items / t->printed + 1 : 1;
	size_t room = t->room + n + 64;
	char *grown = NULL;

	/*
	 * one large mapping rather than the heap, whose top is trimmed by free() and grows again
	 * by small pages
	 */
	times = times > ROOM_MAX / room ? ROOM_MAX / room : times;
	times = times < 2 ? 2 : times;
	/* if address space is limited, retry with less */
	while (!t->failed && !grown && times > 1) {
		grown = realloc(t->buf, room * times);
		times = grown ? times : times > 3 ? times / 2 : times - 1;
	}
	t->failed = !grown;
	if (t->failed)
		return false;
	t->buf = grown;
	t->room = room * times;
	gsr_huge_pages(grown, t->room);
	return true;
}

static inline void put_char(struct text *t, char c)
{
	if (t->len < t->room || grow_buffer(t, 1))
		t->buf[t->len++] = c;
}

/* Without memcpy(): names are too short for the call to pay */
static void put_str(struct text *t, const char *s)
{
	for (;;) {
		char *to = t->buf + t->len, *end = t->buf + t->room;

		while (*s && to < end)
			*to++ = *s++;
		t->len = (size_t)(to - t->buf);
		if (!*s || !grow_buffer(t, 1))
			return;
	}
}

static inline void put_bytes(struct text *t, const char *s, size_t n)
{
	if (n > t->room - t->len && !grow_buffer(t, n))
		return;
	memcpy(t->buf + t->len, s, n);
	t->len += n;
}

#define put_lit(t, s)	put_bytes(t, s, sizeof(s) - 1)

static void put_raw(struct text *t, const char *s)
{
	put_bytes(t, s, strlen(s));
}

static void put_dot(struct text *t, const char *s)
{
	put_char(t, '.');
	put_str(t, s);
}

static void put_number(struct text *t, uint64_t v)
{
	char digits[24], *d = digits + sizeof(digits) - 1;

	*d = 0;
	do
		*--d = (char)('0' + v % 10);
	while (v /= 10);
	put_str(t, d);
}

static void put_int(struct text *t, int64_t v)
{
	if (v < 0)
		put_char(t, '-');
	put_number(t, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

static void put_operand(struct text *t, const struct gsr_operand *o);

static void put_items(struct text *t, const struct gsr_operand *o, const char *separator)
{
	unsigned int i;

	for (i = 0; i < o->n_items; i++) {
		if (i)
			put_str(t, separator);
		put_operand(t, &o->items[i]);
	}
}

static void put_offset(struct text *t, const struct gsr_operand *o)
{
	if (o->text) {
		put_str(t, o->text);
	} else if (o->ival) {
		put_lit(t, "+");
		put_int(t, o->ival);
	}
}

static void put_constant(struct text *t, const struct gsr_operand *o)
{
	char buf[32];

	if (o->text) {
		put_str(t, o->text);
	} else if (o->kind == GSR_OPND_INT) {
		put_int(t, o->ival);
	} else {
		if (o->kind == GSR_OPND_F32)
			snprintf(buf, sizeof(buf), "0f%08X", (unsigned int)o->bits);
		else
			snprintf(buf, sizeof(buf), "0d%016llX", (unsigned long long)o->bits);
		put_str(t, buf);
	}
}

static void put_operand(struct text *t, const struct gsr_operand *o)
{
	if (o->negated)
		put_str(t, o->minus ? "-" : "!");
	switch (o->kind) {
	case GSR_OPND_REG:
	case GSR_OPND_SYM:
		put_str(t, o->name);
		if (o->component) {
			put_char(t, '.');
			put_char(t, o->component);
		} else if (o->selector) {
			put_dot(t, o->selector);
		}
		put_offset(t, o);
		break;
	case GSR_OPND_INT:
	case GSR_OPND_F32:
	case GSR_OPND_F64:
		put_constant(t, o);
		break;
	case GSR_OPND_ADDR:
		if (o->indexed) {
			put_operand(t, &o->items[0]);
			put_lit(t, "[");
			put_operand(t, &o->items[1]);
			put_lit(t, "]");
			break;
		}
		put_lit(t, "[");
		if (o->n_items) {
			put_operand(t, &o->items[0]);
			put_offset(t, o);
		}
		if (o->n_items > 1) {
			struct gsr_operand rest = *o;

			rest.items++;
			rest.n_items--;
			put_lit(t, ", ");
			put_items(t, &rest, ", ");
		}
		put_lit(t, "]");
		break;
	case GSR_OPND_VEC:
		put_lit(t, "{");
		put_items(t, o, ", ");
		put_lit(t, "}");
		break;
	case GSR_OPND_PAIR:
		put_items(t, o, "|");
		break;
	case GSR_OPND_LIST:
		put_lit(t, "(");
		put_items(t, o, ", ");
		put_lit(t, ")");
		break;
	case GSR_OPND_SINK:
		put_lit(t, "_");
		break;
	}
}

static void put_insn(struct text *t, const struct gsr_insn *insn)
{
	unsigned int i;

	put_lit(t, "\t");
	if (insn->guard) {
		put_str(t, insn->guard_negated ? "@!" : "@");
		put_str(t, insn->guard);
		put_lit(t, " ");
	}
	put_str(t, insn->name);
	for (i = 0; i < insn->n_mods; i++)
		put_dot(t, insn->mods[i]);
	for (i = 0; i < insn->n_opnds; i++) {
		if (i)
			put_char(t, ',');
		put_char(t, ' ');
		put_operand(t, &insn->opnds[i]);
	}
	put_lit(t, ";\n");
}

static void put_var(struct text *t, const struct gsr_var *v)
{
	/* else attrs begins with .ptr, or with any other word that the parser lets pass */
	bool attribute = v->attrs && !strncmp(v->attrs, ".attribute", 10) &&
			 strchr("( \t\r\n\f\v/", v->attrs[10]);
	unsigned int i;

	if (v->linkage) {
		put_dot(t, v->linkage);
		put_lit(t, " ");
	}
	put_dot(t, v->space);
	if (attribute) {
		put_lit(t, " ");
		put_str(t, v->attrs);
	}
	if (v->align) {
		put_lit(t, " .align ");
		put_number(t, v->align);
	}
	if (v->vec) {
		put_lit(t, " .v");
		put_number(t, v->vec);
	}
	put_lit(t, " ");
	put_dot(t, v->type);
	if (v->attrs && !attribute) {
		put_lit(t, " ");
		put_str(t, v->attrs);
	}
	put_lit(t, " ");
	put_str(t, v->name);
	if (v->range) {
		put_char(t, '<');
		put_number(t, v->range);
		put_char(t, '>');
	}
	for (i = 0; i < v->n_dims; i++) {
		put_char(t, '[');
		if (v->dims[i])
			put_number(t, v->dims[i]);
		put_char(t, ']');
	}
	if (v->init) {
		put_lit(t, " = ");
		put_raw(t, v->init);
	}
}

static void put_params(struct text *t, const struct gsr_var *list, unsigned int n)
{
	unsigned int i;

	put_lit(t, "(");
	for (i = 0; i < n; i++) {
		put_str(t, i ? ",\n\t" : "\n\t");
		put_var(t, &list[i]);
	}
	put_str(t, n ? "\n)" : ")");
}

static void put_stmt(struct text *t, const struct gsr_stmt *s)
{
	switch (s->kind) {
	case GSR_STMT_INSN:
		put_insn(t, s->insn);
		break;
	case GSR_STMT_LABEL:
		put_str(t, s->label);
		put_lit(t, ":\n");
		break;
	case GSR_STMT_VAR:
		put_lit(t, "\t");
		put_var(t, s->var);
		put_lit(t, ";\n");
		break;
	case GSR_STMT_OPEN:
		put_lit(t, "\t{\n");
		break;
	case GSR_STMT_CLOSE:
		put_lit(t, "\t}\n");
		break;
	case GSR_STMT_DIRECTIVE:
		/* text that was inserted may be an instruction: many, without indentation */
		if (s->text[0] == '.')
			put_char(t, '\t');
		put_raw(t, s->text);
		put_char(t, '\n');
		break;
	}
}

static void put_function(struct text *t, const struct gsr_function *f)
{
	const struct gsr_stmt *s;
	unsigned int i;

	if (f->linkage) {
		put_dot(t, f->linkage);
		put_lit(t, " ");
	}
	put_str(t, f->entry ? ".entry " : ".func ");
	if (f->attrs) {
		put_str(t, f->attrs);
		put_lit(t, " ");
	}
	if (f->rets) {
		put_params(t, f->rets, f->n_rets);
		put_lit(t, " ");
	}
	put_str(t, f->name);
	put_params(t, f->params, f->n_params);
	for (i = 0; i < f->n_perf; i++) {
		put_lit(t, "\n");
		put_str(t, f->perf[i]);
	}
	if (!f->body) {
		put_lit(t, ";\n");
		return;
	}
	put_lit(t, "\n{\n");
	for (s = f->first; s; s = s->next)
		put_stmt(t, s);
	put_lit(t, "}\n");
}

char *gsr_print(const struct gsr_module *m, size_t *size)
{
	struct text t = { 0 };
	const struct gsr_item *i;

	for (i = m->first; i; i = i->next)
		t.items++;
	if (!grow_buffer(&t, 0))
		return NULL;
	put_lit(&t, ".version ");
	put_str(&t, m->version);
	put_lit(&t, "\n.target ");
	put_str(&t, m->target);
	put_lit(&t, "\n.address_size ");
	put_number(&t, m->address_size);
	put_lit(&t, "\n\n");
	for (i = m->first; i; i = i->next, t.printed++) {
		switch (i->kind) {
		case GSR_ITEM_FUNCTION:
			put_function(&t, i->function);
			break;
		case GSR_ITEM_VAR:
			put_var(&t, i->var);
			put_lit(&t, ";\n");
			break;
		case GSR_ITEM_DIRECTIVE:
			put_raw(&t, i->text);
			put_lit(&t, "\n");
			break;
		}
	}
	put_char(&t, 0);
	if (t.failed) {
		free(t.buf);
		return NULL;
	}
	if (size)
		*size = t.len - 1;
	return t.buf;
}
