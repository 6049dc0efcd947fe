// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The parser for modules, functions, declarations and statements. Its stack is bounded: only braces
 * nest, and these are counted.
 *
 * In: text. Out: the module (ptx.h), or an error with line and column. Assumes nothing.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "parse.h"
#include "semantics.h"

#define NEST_MAX	256
#define INPUT_MAX	(256ULL << 20)
#define PARAMS_MAX	8192

static const char *const opcode_names[] = {
	[GSR_OP_UNKNOWN] = "",
#define OP(name, text) [GSR_OP_##name] = text,
#include "ops.h"
#undef OP
};

static const char *const spaces[] = { "reg", "sreg", "const", "global", "local", "param", "shared",
				      "tex", NULL };
static const char *const linkages[] = { "extern", "visible", "weak", "common", NULL };

void gsr_parse_fail(struct gsr_parser *p, const struct gsr_token *at, const char *fmt, ...)
{
	char what[160];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	p->err->status = GSR_ERR_SYNTAX;
	p->err->line = at->line;
	p->err->column = at->column;
	if (at->kind == GSR_TOK_BAD)
		snprintf(what, sizeof(what), "%.100s", at->text);
	else if (at->kind == GSR_TOK_END)
		snprintf(what + strnlen(what, 120), 40, ", found the end of the text");
	snprintf(p->err->message, sizeof(p->err->message), "%.80s:%u:%u: %s", p->name, at->line,
		 at->column, what);
	longjmp(p->failed, 2);
}

void gsr_parse_next(struct gsr_parser *p)
{
	if (p->tok.kind != GSR_TOK_END)
		p->last_end = p->tok.text + p->tok.len;
	p->tok = p->ahead;
	if (p->tok.kind == GSR_TOK_BAD)
		gsr_parse_fail(p, &p->tok, "bad token");
	if (p->tok.kind != GSR_TOK_END)
		gsr_lex_token(&p->lx, &p->ahead);
}

void gsr_parse_expect(struct gsr_parser *p, char punct, const char *where)
{
	if (!gsr_parse_accept(p, punct))
		gsr_parse_fail(p, &p->tok, "'%c' expected %s", punct, where);
}

static bool tok_is(const struct gsr_token *t, enum gsr_token_kind kind, const char *s)
{
	return t->kind == kind && *t->text == *s && !strncmp(t->text, s, t->len) && !s[t->len];
}

static bool is_dot(const struct gsr_parser *p, const char *s)
{
	return tok_is(&p->tok, GSR_TOK_DOT, s);
}

static const char *find_dot(struct gsr_parser *p, const char *const *table)
{
	for (; *table; table++)
		if (is_dot(p, *table))
			return *table;
	return NULL;
}

static const char *take_text(struct gsr_parser *p)
{
	const char *s = gsr_intern(p->arena, p->tok.text, p->tok.len);

	gsr_parse_next(p);
	return s;
}

const char *gsr_parse_ident(struct gsr_parser *p, const char *what)
{
	if (p->tok.kind != GSR_TOK_IDENT)
		gsr_parse_fail(p, &p->tok, "%s expected", what);
	return take_text(p);
}

uint64_t gsr_parse_uint(struct gsr_parser *p, const char *what)
{
	char buf[80], *end;
	int base = 0, skip = 0;
	uint64_t v = 0;
	size_t i;

	if (p->tok.kind != GSR_TOK_NUMBER)
		gsr_parse_fail(p, &p->tok, "%s expected", what);
	/* the fast path: most are short and decimal */
	for (i = 0; i < p->tok.len && i < 10 && p->tok.text[i] >= '0' && p->tok.text[i] <= '9'; i++)
		v = 10 * v + (unsigned int)(p->tok.text[i] - '0');
	if (i == p->tok.len && (p->tok.text[0] != '0' || i == 1)) {
		gsr_parse_next(p);
		return v;
	}
	if (p->tok.len >= sizeof(buf))
		gsr_parse_fail(p, &p->tok, "number of %zu digits", p->tok.len);
	memcpy(buf, p->tok.text, p->tok.len);
	buf[p->tok.len] = 0;
	if (buf[0] == '0' && (buf[1] == 'b' || buf[1] == 'B')) {
		base = 2;
		skip = 2;
	}
	errno = 0;
	v = strtoull(buf + skip, &end, base);
	if (errno)
		gsr_parse_fail(p, &p->tok, "number '%s' does not fit 64 bits", buf);
	if (*end == 'U' || *end == 'u')
		end++;
	if (*end || end == buf + skip)
		gsr_parse_fail(p, &p->tok, "malformed number '%s'", buf);
	gsr_parse_next(p);
	return v;
}

static unsigned int parse_u32(struct gsr_parser *p, const char *what)
{
	struct gsr_token at = p->tok;
	uint64_t v = gsr_parse_uint(p, what);

	if (v > UINT32_MAX)
		gsr_parse_fail(p, &at, "%s out of range", what);
	return (unsigned int)v;
}

/* The first character of the current token, its dot included */
static const char *tok_start(const struct gsr_parser *p)
{
	return p->tok.kind == GSR_TOK_DOT ? p->tok.text - 1 : p->tok.text;
}

const char *gsr_parse_slice(struct gsr_parser *p, const char *start)
{
	return gsr_intern(p->arena, start, p->last_end > start ? (size_t)(p->last_end - start) : 0);
}

/*
 * Which names are registers: the mark of an interned name holds the number of the function that
 * declared it and, for %r<21>, the range. A declaration in another state space clears it.
 */
#define MARK(epoch, range)	((epoch) << 32 | (range))
#define MARK_PLAIN		0xffffffffUL

static void mark_var(struct gsr_parser *p, const struct gsr_var *v)
{
	if (v->space && !strcmp(v->space, "reg"))
		*gsr_intern_mark(v->name) = MARK(p->epoch, v->range ? v->range : MARK_PLAIN);
	else
		*gsr_intern_mark(v->name) = 0;
}

/* The name of a register that is written with a sigil, as names with '$' also are labels' */
const char *gsr_parse_bare(struct gsr_parser *p, const char *name)
{
	return p->sigils && name[0] == '%' && name[1] == '$' ?
		       gsr_intern_str(p->arena, name + 1) : name;
}

bool gsr_parse_is_reg(struct gsr_parser *p, const char *name)
{
	unsigned long mark, number = 0;
	size_t n, d;

	if (name[0] == '%')
		return true;
	mark = *gsr_intern_mark(name);
	if (mark >> 32 == p->epoch && (mark & MARK_PLAIN) == MARK_PLAIN)
		return true;
	n = d = strlen(name);
	while (d && name[d - 1] >= '0' && name[d - 1] <= '9')
		d--;
	if (!d || d == n || n - d > 9 || (name[d] == '0' && n - d > 1))
		return false;
	mark = *gsr_intern_mark(gsr_intern(p->arena, name, d));
	if (mark >> 32 != p->epoch || (mark & MARK_PLAIN) == MARK_PLAIN)
		return false;
	for (; d < n; d++)
		number = 10 * number + (unsigned long)(name[d] - '0');
	return number < (mark & MARK_PLAIN);
}

/* .attribute(.managed), kept as text */
static const char *parse_attribute(struct gsr_parser *p)
{
	const char *start = tok_start(p);
	unsigned int depth = 0;

	gsr_parse_next(p);
	if (!gsr_parse_is(p, '('))
		gsr_parse_fail(p, &p->tok, "'(' expected after .attribute");
	do {
		if (p->tok.kind == GSR_TOK_END)
			gsr_parse_fail(p, &p->tok, "')' expected after .attribute");
		depth += gsr_parse_is(p, '(');
		depth -= gsr_parse_is(p, ')');
		gsr_parse_next(p);
	} while (depth);
	return gsr_parse_slice(p, start);
}

/*
 * The text of an initializer, up to a ',' or ';' outside of brackets; *@n: the number of items
 * between its outermost braces
 */
static const char *parse_initializer(struct gsr_parser *p, uint64_t *n)
{
	const char *start = tok_start(p);
	unsigned int depth = 0;

	*n = 1;

	while (depth || (!gsr_parse_is(p, ';') && !gsr_parse_is(p, ','))) {
		if (p->tok.kind == GSR_TOK_END)
			gsr_parse_fail(p, &p->tok, "';' expected after an initializer");
		if (gsr_parse_is(p, '{') || gsr_parse_is(p, '('))
			depth++;
		if ((gsr_parse_is(p, '}') || gsr_parse_is(p, ')')) && !depth--)
			gsr_parse_fail(p, &p->tok, "unbalanced '%c' in an initializer",
				       p->tok.punct);
		*n += depth == 1 && gsr_parse_is(p, ',');
		gsr_parse_next(p);
	}
	if (p->last_end <= start)
		gsr_parse_fail(p, &p->tok, "initializer expected after '='");
	return gsr_parse_slice(p, start);
}

/* The part of a declaration before its name */
static void parse_var_type(struct gsr_parser *p, struct gsr_var *v)
{
	const char *start;

	v->line = p->tok.line;
	v->space = find_dot(p, spaces);
	if (!v->space)
		gsr_parse_fail(p, &p->tok, "state space expected");
	gsr_parse_next(p);
	if (gsr_parse_is(p, '['))
		gsr_parse_fail(p, &p->tok, "constant banks (.const[n]) are not supported");
	while (p->tok.kind == GSR_TOK_DOT) {
		if (is_dot(p, "align")) {
			gsr_parse_next(p);
			v->align = parse_u32(p, "alignment");
			if (!v->align || (v->align & (v->align - 1)))
				gsr_parse_fail(p, &p->tok, "alignment %u is not a power of two",
					       v->align);
		} else if (is_dot(p, "v2") || is_dot(p, "v4") || is_dot(p, "v8")) {
			v->vec = (unsigned int)(p->tok.text[1] - '0');
			gsr_parse_next(p);
		} else if (is_dot(p, "attribute")) {
			v->attrs = parse_attribute(p);
		} else if (!v->type) {
			v->type = take_text(p);
		} else {
			break;
		}
	}
	if (!v->type)
		gsr_parse_fail(p, &p->tok, "type expected after .%s", v->space);
	if (p->tok.kind != GSR_TOK_DOT)
		return;
	/* .ptr .global .align 4 */
	start = tok_start(p);
	while (p->tok.kind == GSR_TOK_DOT) {
		bool align = is_dot(p, "align");

		gsr_parse_next(p);
		if (align)
			parse_u32(p, "alignment");
	}
	v->attrs = gsr_parse_slice(p, start);
}

static void parse_var_name(struct gsr_parser *p, struct gsr_var *v)
{
	uint64_t items;

	v->name = gsr_parse_bare(p, gsr_parse_ident(p, "name of a variable"));
	if (gsr_parse_accept(p, '<')) {
		v->range = parse_u32(p, "number of registers");
		if (!v->range || v->range > 1u << 24)
			gsr_parse_fail(p, &p->tok, "%u registers in one declaration", v->range);
		gsr_parse_expect(p, '>', "after a number of registers");
	}
	while (gsr_parse_accept(p, '[')) {
		if (v->n_dims == 4)
			gsr_parse_fail(p, &p->tok, "array of more than 4 dimensions");
		if (!gsr_parse_is(p, ']')) {
			struct gsr_token at = p->tok;

			v->dims[v->n_dims] = gsr_parse_const(p);
			if (v->dims[v->n_dims] > 1ULL << 40)
				gsr_parse_fail(p, &at, "array dimension out of range");
		}
		v->n_dims++;
		gsr_parse_expect(p, ']', "after an array dimension");
	}
	if (gsr_parse_accept(p, '=')) {
		v->init = parse_initializer(p, &items);
		/* a[] = {1, 2, 3} */
		if (v->n_dims && !v->dims[0])
			v->dims[0] = items;
	}
	mark_var(p, v);
}

static void append_stmt(struct gsr_function *f, struct gsr_stmt *s)
{
	s->prev = f->last;
	if (f->last)
		f->last->next = s;
	else
		f->first = s;
	f->last = s;
}

static struct gsr_stmt *new_stmt(struct gsr_parser *p, struct gsr_function *f,
				 enum gsr_stmt_kind kind)
{
	struct gsr_stmt *s = gsr_alloc(p->arena, sizeof(*s));

	s->kind = kind;
	s->line = p->tok.line;
	append_stmt(f, s);
	return s;
}

static void append_item(struct gsr_module *m, struct gsr_item *item)
{
	if (m->last)
		m->last->next = item;
	else
		m->first = item;
	m->last = item;
}

static struct gsr_item *new_item(struct gsr_parser *p, struct gsr_module *m,
				 enum gsr_item_kind kind)
{
	struct gsr_item *item = gsr_alloc(p->arena, sizeof(*item));

	item->kind = kind;
	append_item(m, item);
	return item;
}

/* A declaration up to its ';', split by name; goes to @f or, at module scope, to @m */
static void parse_declaration(struct gsr_parser *p, struct gsr_module *m, struct gsr_function *f,
			      const char *linkage)
{
	struct gsr_var proto = { .linkage = linkage };

	parse_var_type(p, &proto);
	do {
		struct gsr_var *v = gsr_alloc(p->arena, sizeof(*v));

		*v = proto;
		parse_var_name(p, v);
		if (f)
			new_stmt(p, f, GSR_STMT_VAR)->var = v;
		else
			new_item(p, m, GSR_ITEM_VAR)->var = v;
	} while (gsr_parse_accept(p, ','));
	gsr_parse_expect(p, ';', "after a declaration");
}

/* (.param .u64 a, .reg .b32 %r); the '(' has been consumed */
static struct gsr_var *parse_parameters(struct gsr_parser *p, unsigned int *n)
{
	enum { FEW = 8 };
	struct gsr_var few[FEW], *list = NULL, *grown, *v;
	unsigned int room = FEW;

	*n = 0;
	if (gsr_parse_accept(p, ')'))
		return NULL;
	do {
		if (*n == room) {
			if (room >= PARAMS_MAX)
				gsr_parse_fail(p, &p->tok, "more than %d parameters", PARAMS_MAX);
			room *= 2;
			grown = gsr_alloc_array(p->arena, room, sizeof(*grown));
			memcpy(grown, list ? list : few, *n * sizeof(*grown));
			list = grown;
		}
		v = list ? &list[*n] : &few[*n];
		memset(v, 0, sizeof(*v));
		parse_var_type(p, v);
		parse_var_name(p, v);
		++*n;
	} while (gsr_parse_accept(p, ','));
	gsr_parse_expect(p, ')', "after parameters");
	return list ? list : gsr_memdup(p->arena, few, *n * sizeof(*few));
}

static enum gsr_opcode opcode_of(const char *name)
{
	unsigned int i;

	for (i = 1; i < GSR_OP_COUNT; i++)
		if (*opcode_names[i] == *name && !strcmp(opcode_names[i], name))
			return (enum gsr_opcode)i;
	return GSR_OP_UNKNOWN;
}

/* Opcodes are cached in the marks of their names, tagged in a way no function number is */
#define OP_MARK		(0xffffffUL << 40)

static enum gsr_opcode lookup_opcode(const char *name)
{
	unsigned long *mark = gsr_intern_mark(name);
	enum gsr_opcode op;

	if ((*mark & OP_MARK) == OP_MARK)
		return (enum gsr_opcode)(*mark & 0xffff);
	op = opcode_of(name);
	if (!*mark)
		*mark = OP_MARK | (unsigned long)op;
	return op;
}

static void parse_instruction(struct gsr_parser *p, struct gsr_function *f)
{
	struct gsr_insn *insn = gsr_alloc(p->arena, sizeof(*insn));
	const char *mods[GSR_MODS_MAX + 1] = { NULL };

	new_stmt(p, f, GSR_STMT_INSN)->insn = insn;
	if (gsr_parse_accept(p, '@')) {
		insn->guard_negated = gsr_parse_accept(p, '!');
		insn->guard = gsr_parse_bare(p, gsr_parse_ident(p, "predicate"));
	}
	insn->name = gsr_parse_ident(p, "instruction");
	insn->op = lookup_opcode(insn->name);
	while (p->tok.kind == GSR_TOK_DOT) {
		if (insn->n_mods == GSR_MODS_MAX)
			gsr_parse_fail(p, &p->tok, "instruction with more than %d modifiers",
				       GSR_MODS_MAX);
		mods[insn->n_mods] = take_text(p);
		insn->initials |= gsr_initial(mods[insn->n_mods++]);
	}
	insn->mods = gsr_memdup(p->arena, mods, (insn->n_mods + 1) * sizeof(*mods));
	gsr_parse_operands(p, insn);
	gsr_parse_expect(p, ';', "after an instruction");
}

/* The text up to and including ';'. Strings are tokens, so a ';' in one does not end it */
static const char *raw_to_semicolon(struct gsr_parser *p, const char *start)
{
	while (!gsr_parse_is(p, ';')) {
		if (p->tok.kind == GSR_TOK_END || gsr_parse_is(p, '{') || gsr_parse_is(p, '}'))
			gsr_parse_fail(p, &p->tok, "';' expected after a directive");
		gsr_parse_next(p);
	}
	gsr_parse_next(p);
	return gsr_parse_slice(p, start);
}

/* .loc 1 12 3, function_name $L__info_string0, inlined_at 1 5 3 */
static const char *parse_loc(struct gsr_parser *p)
{
	const char *start = tok_start(p);
	unsigned int line = p->tok.line;
	int i;

	gsr_parse_next(p);
	for (i = 0; i < 3; i++)
		gsr_parse_uint(p, "number");
	while (gsr_parse_is(p, ',')) {
		gsr_parse_next(p);
		gsr_parse_ident(p, "attribute of .loc");
		/*
		 * only the end of the line ends a .loc: a name on the next line is a label or an
		 * instruction
		 */
		if (p->tok.kind == GSR_TOK_IDENT && p->tok.line == line)
			gsr_parse_next(p);
		while (p->tok.kind == GSR_TOK_NUMBER || gsr_parse_is(p, '+'))
			gsr_parse_next(p);
	}
	return gsr_parse_slice(p, start);
}

static bool is_labelled_directive(const struct gsr_parser *p)
{
	static const char *const table[] = { "callprototype", "branchtargets",
					     "calltargets", NULL };
	unsigned int i;

	for (i = 0; table[i]; i++)
		if (tok_is(&p->tok, GSR_TOK_DOT, table[i]))
			return true;
	return false;
}

static void parse_label(struct gsr_parser *p, struct gsr_function *f)
{
	const char *start = p->tok.text;
	unsigned int line = p->tok.line;
	const char *name = take_text(p);
	struct gsr_stmt *s;

	gsr_parse_next(p);
	if (is_labelled_directive(p)) {
		s = new_stmt(p, f, GSR_STMT_DIRECTIVE);
		s->text = raw_to_semicolon(p, start);
	} else {
		s = new_stmt(p, f, GSR_STMT_LABEL);
		s->label = name;
	}
	s->line = line;
}

static void parse_body(struct gsr_parser *p, struct gsr_function *f)
{
	unsigned int depth = 0;
	const char *linkage;

	gsr_parse_expect(p, '{', "before a body");
	for (;;) {
		if (p->tok.kind == GSR_TOK_IDENT && p->ahead.kind == GSR_TOK_PUNCT &&
		    p->ahead.punct == ':') {
			parse_label(p, f);
		} else if (p->tok.kind == GSR_TOK_IDENT || gsr_parse_is(p, '@')) {
			parse_instruction(p, f);
		} else if (p->tok.kind == GSR_TOK_END) {
			gsr_parse_fail(p, &p->tok, "'}' expected at the end of %.60s", f->name);
		} else if (gsr_parse_is(p, '{')) {
			if (++depth > NEST_MAX)
				gsr_parse_fail(p, &p->tok,
					       "braces nested more than %d deep", NEST_MAX);
			new_stmt(p, f, GSR_STMT_OPEN);
			gsr_parse_next(p);
		} else if (gsr_parse_is(p, '}')) {
			if (!depth)
				break;
			depth--;
			new_stmt(p, f, GSR_STMT_CLOSE);
			gsr_parse_next(p);
		} else if (gsr_parse_accept(p, ';')) {
			continue;
		} else if (is_dot(p, "loc")) {
			struct gsr_stmt *s = new_stmt(p, f, GSR_STMT_DIRECTIVE);

			s->text = parse_loc(p);
		} else if (is_labelled_directive(p)) {
			gsr_parse_fail(p, &p->tok, "a label expected before it");
		} else if (p->tok.kind == GSR_TOK_DOT) {
			linkage = find_dot(p, linkages);
			if (linkage)
				gsr_parse_next(p);
			if (find_dot(p, spaces)) {
				parse_declaration(p, NULL, f, linkage);
			} else {
				struct gsr_stmt *s = new_stmt(p, f, GSR_STMT_DIRECTIVE);

				if (linkage)
					gsr_parse_fail(p, &p->tok,
						       "declaration expected after .%s", linkage);
				s->text = raw_to_semicolon(p, tok_start(p));
			}
		} else {
			gsr_parse_fail(p, &p->tok, "statement expected");
		}
	}
	gsr_parse_next(p);
}

/* Directives between the parameters and the body: .maxntid 256, 1, 1 or .pragma "…"; */
static void parse_perf(struct gsr_parser *p, struct gsr_function *f)
{
	unsigned int room = 0;

	while (p->tok.kind == GSR_TOK_DOT) {
		const char *start = tok_start(p);

		f->perf = gsr_grow(p->arena, f->perf, f->n_perf, &room, sizeof(*f->perf));
		if (is_dot(p, "pragma")) {
			f->perf[f->n_perf++] = raw_to_semicolon(p, start);
			continue;
		}
		gsr_parse_next(p);
		if (p->tok.kind == GSR_TOK_NUMBER) {
			do
				gsr_parse_uint(p, "number");
			while (gsr_parse_accept(p, ','));
		}
		f->perf[f->n_perf++] = gsr_parse_slice(p, start);
	}
}

static void parse_function(struct gsr_parser *p, struct gsr_module *m, const char *linkage)
{
	struct gsr_function *f = gsr_alloc(p->arena, sizeof(*f));
	const char *start;

	p->epoch++;
	f->linkage = linkage;
	f->line = p->tok.line;
	f->entry = is_dot(p, "entry");
	gsr_parse_next(p);
	start = tok_start(p);
	while (p->tok.kind == GSR_TOK_DOT) {
		if (is_dot(p, "attribute"))
			parse_attribute(p);
		else
			gsr_parse_next(p);
		f->attrs = gsr_parse_slice(p, start);
	}
	if (gsr_parse_accept(p, '('))
		f->rets = parse_parameters(p, &f->n_rets);
	f->name = gsr_parse_ident(p, "name of a function");
	if (gsr_parse_accept(p, '('))
		f->params = parse_parameters(p, &f->n_params);
	parse_perf(p, f);
	if (gsr_parse_is(p, '{')) {
		f->body = true;
		parse_body(p, f);
	} else {
		gsr_parse_expect(p, ';', "or a body after a function's head");
	}
	new_item(p, m, GSR_ITEM_FUNCTION)->function = f;
}

/* .section .debug_str { … }, kept as text; braces nest */
static const char *parse_section(struct gsr_parser *p)
{
	const char *start = tok_start(p);
	unsigned int depth = 0;

	while (!gsr_parse_is(p, '{')) {
		if (p->tok.kind == GSR_TOK_END)
			gsr_parse_fail(p, &p->tok, "'{' expected after .section");
		gsr_parse_next(p);
	}
	do {
		if (p->tok.kind == GSR_TOK_END)
			gsr_parse_fail(p, &p->tok, "'}' expected after .section");
		depth += gsr_parse_is(p, '{');
		depth -= gsr_parse_is(p, '}');
		gsr_parse_next(p);
	} while (depth);
	return gsr_parse_slice(p, start);
}

/* .file 1 "a.cu", 1700000000, 1234 */
static const char *parse_file(struct gsr_parser *p)
{
	const char *start = tok_start(p);

	gsr_parse_next(p);
	gsr_parse_uint(p, "number of a file");
	if (p->tok.kind != GSR_TOK_STRING)
		gsr_parse_fail(p, &p->tok, "name of a file expected");
	gsr_parse_next(p);
	while (gsr_parse_accept(p, ','))
		gsr_parse_uint(p, "number");
	return gsr_parse_slice(p, start);
}

static void parse_header(struct gsr_parser *p, struct gsr_module *m)
{
	struct gsr_token at = p->tok;
	const char *start;

	if (!is_dot(p, "version"))
		gsr_parse_fail(p, &p->tok, "PTX begins with .version");
	gsr_parse_next(p);
	if (p->tok.kind != GSR_TOK_NUMBER)
		gsr_parse_fail(p, &p->tok, "version expected");
	m->version = take_text(p);
	if (!is_dot(p, "target"))
		gsr_parse_fail(p, &p->tok, ".target expected after .version");
	gsr_parse_next(p);
	start = p->tok.text;
	do {
		const char *t = gsr_parse_ident(p, "target");

		if (!strncmp(t, "sm_", 3) || !strncmp(t, "compute_", 8))
			m->arch = (unsigned int)strtoul(strchr(t, '_') + 1, NULL, 10);
	} while (gsr_parse_accept(p, ','));
	m->target = gsr_parse_slice(p, start);
	if (!m->arch)
		gsr_parse_fail(p, &at, ".target names no sm_NN");
	m->address_size = 32;
	if (is_dot(p, "address_size")) {
		gsr_parse_next(p);
		at = p->tok;
		m->address_size = parse_u32(p, "address size");
		if (m->address_size != 32 && m->address_size != 64)
			gsr_parse_fail(p, &at, "address size %u: 32 or 64 expected",
				       m->address_size);
	}
}

static void parse_module(struct gsr_parser *p, struct gsr_module *m)
{
	const char *linkage, *start;

	parse_header(p, m);
	while (p->tok.kind != GSR_TOK_END) {
		if (gsr_parse_accept(p, ';'))
			continue;
		if (p->tok.kind != GSR_TOK_DOT)
			gsr_parse_fail(p, &p->tok, "directive expected");
		start = tok_start(p);
		linkage = find_dot(p, linkages);
		if (linkage)
			gsr_parse_next(p);
		if (is_dot(p, "entry") || is_dot(p, "func")) {
			parse_function(p, m, linkage);
		} else if (find_dot(p, spaces)) {
			p->epoch++;
			parse_declaration(p, m, NULL, linkage);
		} else if (linkage) {
			gsr_parse_fail(p, &p->tok, "function or variable expected after .%s",
				       linkage);
		} else if (is_dot(p, "section")) {
			new_item(p, m, GSR_ITEM_DIRECTIVE)->text = parse_section(p);
		} else if (is_dot(p, "file")) {
			new_item(p, m, GSR_ITEM_DIRECTIVE)->text = parse_file(p);
		} else if (is_dot(p, "loc")) {
			new_item(p, m, GSR_ITEM_DIRECTIVE)->text = parse_loc(p);
		} else {
			new_item(p, m, GSR_ITEM_DIRECTIVE)->text = raw_to_semicolon(p, start);
		}
	}
}

/* NULL: the parser or the arena jumped here, and p->err has the reason */
static struct gsr_module *parse_guarded(struct gsr_parser *p)
{
	struct gsr_module *m;

	switch (setjmp(p->failed)) {
	case 0:
		break;
	case 1:
		p->err->status = GSR_ERR_NOMEM;
		snprintf(p->err->message, sizeof(p->err->message), "%.80s: out of memory", p->name);
		/* fall through */
	default:
		return NULL;
	}
	gsr_arena_escape(p->arena, &p->failed);
	gsr_lex_token(&p->lx, &p->ahead);
	gsr_parse_next(p);
	m = gsr_alloc(p->arena, sizeof(*m));
	m->arena = p->arena;
	parse_module(p, m);
	gsr_arena_escape(p->arena, NULL);
	return m;
}

enum gsr_status gsr_parse(const char *text, size_t size, const char *name, struct gsr_module **out,
			  struct gsr_error *err)
{
	struct gsr_error own;
	/* cppcheck-suppress uninitvar ; its address is meant */
	struct gsr_parser p = { .name = name ? name : "<ptx>", .err = err ? err : &own,
				.last_end = text };

	*out = NULL;
	memset(p.err, 0, sizeof(*p.err));
	if (size > INPUT_MAX) {
		p.err->status = GSR_ERR_LIMIT;
		snprintf(p.err->message, sizeof(p.err->message),
			 "%.80s: %zu bytes of PTX; the limit is %llu", p.name, size, INPUT_MAX);
		return p.err->status;
	}
	p.arena = gsr_arena_new();
	if (!p.arena) {
		p.err->status = GSR_ERR_NOMEM;
		snprintf(p.err->message, sizeof(p.err->message), "%.80s: out of memory", p.name);
		return p.err->status;
	}
	gsr_lex_init(&p.lx, text, size);
	*out = parse_guarded(&p);
	if (!*out)
		gsr_arena_free(p.arena);
	return p.err->status;
}

struct gsr_function *gsr_parse_body(struct gsr_arena *a, const char *text, struct gsr_error *err)
{
	struct gsr_parser p = { .arena = a, .name = "<inserted>", .err = err, .last_end = text,
				.epoch = 1, .sigils = true };
	struct gsr_function *f = gsr_alloc(a, sizeof(*f));

	memset(err, 0, sizeof(*err));
	if (setjmp(p.failed))
		return NULL;
	f->name = "inserted";
	gsr_lex_init(&p.lx, text, strlen(text));
	gsr_lex_token(&p.lx, &p.ahead);
	gsr_parse_next(&p);
	parse_body(&p, f);
	return f;
}

void gsr_module_free(struct gsr_module *m)
{
	if (m)
		gsr_arena_free(m->arena);
}

static struct gsr_operand *copy_operands(struct gsr_arena *a, const struct gsr_operand *from,
					 unsigned int n)
{
	struct gsr_operand *to = gsr_alloc_array(a, n + 1, sizeof(*to));
	unsigned int i;

	for (i = 0; i < n; i++) {
		to[i] = from[i];
		if (from[i].n_items)
			to[i].items = copy_operands(a, from[i].items, from[i].n_items);
	}
	return to;
}

struct gsr_insn *gsr_insn_copy(struct gsr_arena *a, const struct gsr_insn *insn)
{
	struct gsr_insn *copy = gsr_alloc(a, sizeof(*copy));

	*copy = *insn;
	copy->opnds = copy_operands(a, insn->opnds, insn->n_opnds);
	copy->mods = gsr_alloc_array(a, insn->n_mods + 1, sizeof(*copy->mods));
	if (insn->n_mods)
		memcpy(copy->mods, insn->mods, insn->n_mods * sizeof(*copy->mods));
	return copy;
}

/* A definition is preferred to a declaration */
struct gsr_function *gsr_module_function(const struct gsr_module *m, const char *name)
{
	struct gsr_function *found = NULL;
	struct gsr_item *i;

	for (i = m->first; i; i = i->next)
		if (i->kind == GSR_ITEM_FUNCTION && !strcmp(i->function->name, name) &&
		    (!found || i->function->body))
			found = i->function;
	return found;
}

struct gsr_var *gsr_module_var(const struct gsr_module *m, const char *name)
{
	struct gsr_item *i;

	for (i = m->first; i; i = i->next)
		if (i->kind == GSR_ITEM_VAR && !strcmp(i->var->name, name))
			return i->var;
	return NULL;
}
