// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The parser for operands and constant expressions. It recurses to a bounded depth, which is passed
 * down.
 *
 * In: the parser at an operand or a constant expression. Out: the operand, or the constant's
 * value. Assumes that the arena's escape and the parser's are set.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "parse.h"

#define DEPTH_MAX	32
#define ITEMS_MAX	65536

/*
 * A list of operands under construction: on the stack while it is short, so that the arena gets it
 * in its final size, then in the arena, where it grows
 */
#define FEW	6
struct list {
	struct gsr_operand *items;
	unsigned int n, room;
	struct gsr_operand few[FEW];
};

static struct gsr_operand *push_operand(struct gsr_parser *p, struct list *l)
{
	struct gsr_operand *grown;

	if (l->n < FEW) {
		memset(&l->few[l->n], 0, sizeof(l->few[0]));
		return &l->few[l->n++];
	}
	if (l->n >= l->room) {
		if (l->room >= ITEMS_MAX)
			gsr_parse_fail(p, &p->tok, "more than %d operands", ITEMS_MAX);
		l->room = l->room ? l->room * 2 : 4 * FEW;
		grown = gsr_alloc_array(p->arena, l->room, sizeof(*grown));
		memcpy(grown, l->items ? l->items : l->few, l->n * sizeof(*grown));
		l->items = grown;
	}
	return &l->items[l->n++];
}

static struct gsr_operand *finish_list(struct gsr_parser *p, const struct list *l)
{
	return l->items ? l->items : gsr_memdup(p->arena, l->few, l->n * sizeof(*l->few));
}

static void parse_operand(struct gsr_parser *p, struct gsr_operand *o, bool call,
			  unsigned int depth);

static bool is_float(const struct gsr_token *t)
{
	size_t i;

	if (t->len > 2 && t->text[0] == '0' && strchr("xXbB", t->text[1]))
		return false;
	if (t->len > 2 && t->text[0] == '0' && strchr("fFdD", t->text[1]))
		return true;
	for (i = 0; i < t->len; i++)
		if (t->text[i] == '.' || t->text[i] == 'e' || t->text[i] == 'E')
			return true;
	return false;
}

/* 0f3F800000, 0d3FF0000000000000, 1.5e3; a sign has been consumed */
static void parse_float(struct gsr_parser *p, struct gsr_operand *o,
			const struct gsr_token *t, bool minus)
{
	char buf[64], *end;
	double d;

	if (t->len >= sizeof(buf))
		gsr_parse_fail(p, t, "constant of %zu characters", t->len);
	memcpy(buf, t->text, t->len);
	buf[t->len] = 0;
	if (buf[0] == '0' && buf[1] && strchr("fFdD", buf[1])) {
		bool single = tolower((unsigned char)buf[1]) == 'f';

		o->kind = single ? GSR_OPND_F32 : GSR_OPND_F64;
		if (t->len != (single ? 10 : 18) ||
		    strspn(buf + 2, "0123456789abcdefABCDEF") != t->len - 2)
			gsr_parse_fail(p, t, "floating-point constant '%s' needs %d "
				       "hexadecimal digits", buf, single ? 8 : 16);
		o->bits = strtoull(buf + 2, NULL, 16);
		if (minus)
			o->bits ^= single ? 1ULL << 31 : 1ULL << 63;
	} else {
		o->kind = GSR_OPND_F64;
		d = strtod(buf, &end);
		if (*end)
			gsr_parse_fail(p, t, "malformed number '%s'", buf);
		if (minus)
			d = -d;
		memcpy(&o->bits, &d, sizeof(d));
	}
}

static uint64_t parse_expression(struct gsr_parser *p, int level, unsigned int depth);

static uint64_t parse_primary(struct gsr_parser *p, unsigned int depth)
{
	uint64_t v;

	if (depth > DEPTH_MAX)
		gsr_parse_fail(p, &p->tok, "expression nested more than %d deep", DEPTH_MAX);
	if (gsr_parse_accept(p, '-'))
		return 0 - parse_primary(p, depth + 1);
	if (gsr_parse_accept(p, '+'))
		return parse_primary(p, depth + 1);
	if (gsr_parse_accept(p, '~'))
		return ~parse_primary(p, depth + 1);
	if (gsr_parse_accept(p, '!'))
		return !parse_primary(p, depth + 1);
	if (gsr_parse_accept(p, '(')) {
		v = parse_expression(p, 0, depth + 1);
		gsr_parse_expect(p, ')', "in an expression");
		return v;
	}
	return gsr_parse_uint(p, "number");
}

/* Precedence of the current token as a binary operator: 0 shift, 1 sum, 2 product; -1 none */
static int operator_precedence(const struct gsr_parser *p)
{
	if (p->tok.kind != GSR_TOK_PUNCT)
		return -1;
	if (p->tok.len == 2)
		return memcmp(p->tok.text, "<<", 2) && memcmp(p->tok.text, ">>", 2) ? -1 : 0;
	switch (p->tok.punct) {
	case '+': case '-': return 1;
	case '*': case '/': case '%': return 2;
	}
	return -1;
}

static uint64_t parse_expression(struct gsr_parser *p, int level, unsigned int depth)
{
	uint64_t v = parse_primary(p, depth), r;
	int l;

	while ((l = operator_precedence(p)) >= level) {
		struct gsr_token op = p->tok;

		gsr_parse_next(p);
		r = parse_expression(p, l + 1, depth + 1);
		switch (*op.text) {
		case '+': v += r; break;
		case '-': v -= r; break;
		case '*': v *= r; break;
		case '<': v = r < 64 ? v << r : 0; break;
		case '>': v = r < 64 ? v >> r : 0; break;
		default:
			if (!r)
				gsr_parse_fail(p, &op, "division by zero");
			v = *op.text == '/' ? v / r : v % r;
		}
	}
	return v;
}

uint64_t gsr_parse_const(struct gsr_parser *p)
{
	return parse_expression(p, 0, 0);
}

/* An offset after a base: +4, +-4, -4. Its text is kept as written */
static void parse_offset(struct gsr_parser *p, struct gsr_operand *o)
{
	const char *start = p->tok.text;
	bool minus;

	if (!gsr_parse_is(p, '+') && !gsr_parse_is(p, '-'))
		return;
	minus = gsr_parse_is(p, '-');
	gsr_parse_next(p);
	o->ival = (int64_t)parse_expression(p, minus ? 2 : 1, 0);
	if (minus)
		o->ival = (int64_t)(0 - (uint64_t)o->ival);
	o->text = gsr_parse_slice(p, start);
}

static void parse_number(struct gsr_parser *p, struct gsr_operand *o)
{
	const char *start = p->tok.text;
	struct gsr_token t = p->tok;
	bool minus = gsr_parse_is(p, '-');

	if (minus && p->ahead.kind == GSR_TOK_NUMBER)
		t = p->ahead;
	if (t.kind == GSR_TOK_NUMBER && is_float(&t)) {
		if (minus)
			gsr_parse_next(p);
		parse_float(p, o, &t, minus);
		gsr_parse_next(p);
	} else {
		o->kind = GSR_OPND_INT;
		o->ival = (int64_t)parse_expression(p, 0, 0);
	}
	o->text = gsr_parse_slice(p, start);
}

/* Items up to @close, which is consumed */
static void parse_items(struct gsr_parser *p, struct gsr_operand *o, char close, bool call,
			unsigned int depth)
{
	struct list l;
	static const char *const where[] = { "after a call's list", "after a vector",
					     "after an address" };

	l.items = NULL;
	l.n = l.room = 0;
	if (!gsr_parse_is(p, close)) {
		do
			parse_operand(p, push_operand(p, &l), call, depth + 1);
		while (gsr_parse_accept(p, ','));
	}
	gsr_parse_expect(p, close, where[close == ')' ? 0 : close == '}' ? 1 : 2]);
	o->items = finish_list(p, &l);
	o->n_items = l.n;
}

static void parse_address(struct gsr_parser *p, struct gsr_operand *o, unsigned int depth)
{
	o->kind = GSR_OPND_ADDR;
	parse_items(p, o, ']', false, depth);
	if (!o->n_items)
		gsr_parse_fail(p, &p->tok, "address without a base");
	/* [a+4]: the offset belongs to the address */
	if (o->n_items && (o->items[0].kind == GSR_OPND_SYM || o->items[0].kind == GSR_OPND_REG)) {
		o->ival = o->items[0].ival;
		o->text = o->items[0].text;
		o->items[0].ival = 0;
		o->items[0].text = NULL;
	}
}

static void parse_named(struct gsr_parser *p, struct gsr_operand *o, bool in_list)
{
	const char *name = gsr_parse_ident(p, "operand");

	if (name[0] == '_' && !name[1]) {
		o->kind = GSR_OPND_SINK;
		return;
	}
	o->name = gsr_parse_bare(p, name);
	o->kind = in_list || gsr_parse_is_reg(p, name) ? GSR_OPND_REG : GSR_OPND_SYM;
	if (p->tok.kind == GSR_TOK_DOT) {
		o->component = p->tok.text[0];
		if (p->tok.len > 1) {
			o->component = 0;
			o->selector = gsr_intern(p->arena, p->tok.text, p->tok.len);
		}
		gsr_parse_next(p);
	}
	if (gsr_parse_is(p, '[')) {
		struct gsr_operand index = { 0 }, *pair;

		/* a[3]: an address written as an array element */
		gsr_parse_next(p);
		parse_operand(p, &index, false, DEPTH_MAX - 1);
		gsr_parse_expect(p, ']', "after an array's index");
		pair = gsr_alloc_array(p->arena, 2, sizeof(*pair));
		pair[0] = *o;
		pair[1] = index;
		memset(o, 0, sizeof(*o));
		o->kind = GSR_OPND_ADDR;
		o->indexed = true;
		o->items = pair;
		o->n_items = 2;
		return;
	}
	parse_offset(p, o);
}

static void parse_operand(struct gsr_parser *p, struct gsr_operand *o, bool call,
			  unsigned int depth)
{
	if (depth > DEPTH_MAX)
		gsr_parse_fail(p, &p->tok, "operand nested more than %d deep", DEPTH_MAX);
	if (p->ahead.kind == GSR_TOK_IDENT && (gsr_parse_is(p, '!') || gsr_parse_is(p, '-'))) {
		o->negated = true;
		o->minus = gsr_parse_is(p, '-');
		gsr_parse_next(p);
	}
	if (p->tok.kind == GSR_TOK_IDENT) {
		parse_named(p, o, call && depth > 0);
	} else if (gsr_parse_accept(p, '{')) {
		o->kind = GSR_OPND_VEC;
		parse_items(p, o, '}', call, depth);
	} else if (gsr_parse_accept(p, '[')) {
		parse_address(p, o, depth);
	} else if (call && gsr_parse_accept(p, '(')) {
		o->kind = GSR_OPND_LIST;
		parse_items(p, o, ')', call, depth);
	} else if (p->tok.kind == GSR_TOK_DOT && isdigit((unsigned char)p->tok.text[0])) {
		struct gsr_token t = p->tok;

		/* .5 */
		t.text--;
		t.len++;
		parse_float(p, o, &t, false);
		gsr_parse_next(p);
		o->text = gsr_parse_slice(p, t.text);
	} else if (p->tok.kind == GSR_TOK_NUMBER || p->tok.kind == GSR_TOK_PUNCT) {
		parse_number(p, o);
	} else {
		gsr_parse_fail(p, &p->tok, "operand expected");
	}
	if (gsr_parse_is(p, '|')) {
		struct gsr_operand *pair = gsr_alloc_array(p->arena, 2, sizeof(*pair));

		gsr_parse_next(p);
		pair[0] = *o;
		parse_operand(p, &pair[1], false, depth + 1);
		memset(o, 0, sizeof(*o));
		o->kind = GSR_OPND_PAIR;
		o->items = pair;
		o->n_items = 2;
	}
}

void gsr_parse_operands(struct gsr_parser *p, struct gsr_insn *insn)
{
	struct list l;

	l.items = NULL;
	l.n = l.room = 0;
	if (!gsr_parse_is(p, ';')) {
		do
			parse_operand(p, push_operand(p, &l), insn->op == GSR_OP_CALL, 0);
		while (gsr_parse_accept(p, ','));
	}
	insn->opnds = finish_list(p, &l);
	insn->n_opnds = l.n;
}
