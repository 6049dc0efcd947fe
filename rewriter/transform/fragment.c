// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Inserts code that is written as PTX text: '#' stands for the prefix of all inserted names, in
 * "%#" and "$#" for the short one of registers and labels. Both begin with '$' in the twin: with a
 * '%' in front of it each register would take a byte more, and there are hundreds.
 *
 * In: text and a position. Out: statements there, and their number. Assumes that the text is valid
 * PTX: text that does not parse is a bug.
 */
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "transform.h"

const struct gsr_prefix gsr_usual_prefix[2] = { { "__gsr_", "" }, { "__gsr_", "_" } };

/* Enough for it with names expanded */
static size_t room_for(const char *text, const struct gsr_prefix *prefix)
{
	size_t n = strlen(prefix->name) + strlen(prefix->local), room = strlen(text);

	for (text = strchr(text, '#'); text; text = strchr(text + 1, '#'))
		room += n;
	return room;
}

/* @text[@at] is a '#' */
static const char *prefix_at(const struct gsr_prefix *prefix, const char *text, size_t at)
{
	return at && (text[at - 1] == '%' || text[at - 1] == '$') ? prefix->local : prefix->name;
}

static bool begins_register(const char *text)
{
	return text[0] == '%' && text[1] == '#';
}

/* Characters that are not always copied, or end an instruction */
static const bool stops[256] = {
	[0] = true, ['#'] = true, ['%'] = true, [';'] = true, ['\n'] = true,
};

/* With @sigils registers begin with "%$", by which gsr_parse_body() knows them */
static const char *expand(struct gsr_pass *p, const char *text, bool sigils)
{
	char *out = gsr_alloc_text(p->arena, room_for(text, &p->prefix)), *o = out;
	size_t i;

	for (i = 0;; i++) {
		while (!stops[(unsigned char)text[i]])
			*o++ = text[i++];
		if (!text[i])
			break;
		if (text[i] == '#')
			o = stpcpy(o, prefix_at(&p->prefix, text, i));
		else if (begins_register(text + i))
			o = stpcpy(o, sigils ? "%$" : "$");
		else
			*o++ = text[i];
	}
	*o = 0;
	return out;
}

const char *gsr_expand(struct gsr_pass *p, const char *text)
{
	return expand(p, text, false);
}

static void link_in(struct gsr_function *f, struct gsr_stmt *at, struct gsr_stmt *first,
		    struct gsr_stmt *last)
{
	first->prev = at ? at->prev : f->last;
	last->next = at;
	if (first->prev)
		first->prev->next = first;
	else
		f->first = first;
	if (at)
		at->prev = last;
	else
		f->last = last;
}

unsigned int gsr_insert(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at,
			const char *text)
{
	const char *block = gsr_sprintf(p->arena, "{%s}", expand(p, text, true));
	struct gsr_error err;
	struct gsr_function *body = gsr_parse_body(p->arena, block, &err);
	struct gsr_stmt *s;
	unsigned int n = 0;

	if (!body)
		abort();	/* our own text: the tests insert every piece of it */
	if (!body->first)
		return 0;
	for (s = body->first; s; s = s->next)
		n += s->kind == GSR_STMT_INSN;
	link_in(f, at, body->first, body->last);
	return n;
}

struct gsr_text {
	const char *text, *local, *expanded;
	unsigned int insns;
};

static bool declares(const char *text)
{
	while (*text == ' ')
		text++;
	return *text == '.';
}

/* As it is printed: names expanded, no empty last line; instructions are counted */
static struct gsr_text lay_out(const char *text, const struct gsr_prefix *prefix, char *out)
{
	struct gsr_text t = { .text = text, .local = prefix->local, .expanded = out };
	bool declaration = declares(text);
	size_t i;

	for (i = 0;; i++) {
		while (!stops[(unsigned char)text[i]])
			*out++ = text[i++];
		if (!text[i] || (text[i] == '\n' && !text[i + 1]))
			break;
		if (text[i] == '#') {
			out = stpcpy(out, prefix_at(prefix, text, i));
			continue;
		}
		*out++ = begins_register(text + i) ? '$' : text[i];
		if (text[i] != ';' && text[i] != '\n')
			continue;
		t.insns += text[i] == ';' && !declaration;
		declaration = declares(text + i + 1);
	}
	*out = 0;
	return t;
}

static struct gsr_text lay_out_here(struct gsr_pass *p, const char *text)
{
	return lay_out(text, &p->prefix, gsr_alloc_text(p->arena, room_for(text, &p->prefix)));
}

/* Those that nearly all modules have: compared by address */
static bool is_usual(const struct gsr_prefix *prefix)
{
	const struct gsr_prefix *known = gsr_usual_prefix;

	return (prefix->name == known[0].name && prefix->local == known[0].local) ||
	       (prefix->name == known[1].name && prefix->local == known[1].local);
}

/*
 * Laid out with usual prefixes: once for the process, since the texts are constants. Entries are
 * complete when they are put there, and stay. NULL: no memory, no room.
 */
static const struct gsr_text *usual(const char *text, const struct gsr_prefix *prefix)
{
	static _Atomic(struct gsr_text *) table[1024];
	uintptr_t at = (uintptr_t)text;
	unsigned int i;

	for (at = at / 16 ^ at / 4096, i = 0; i < 64; at++, i++) {
		_Atomic(struct gsr_text *) *slot = &table[at % (sizeof(table) / sizeof(*table))];
		struct gsr_text *there = atomic_load_explicit(slot, memory_order_acquire), *t;

		if (!there) {
			t = malloc(sizeof(*t) + room_for(text, prefix) + 1);
			if (!t)
				return NULL;
			*t = lay_out(text, prefix, (char *)(t + 1));
			if (atomic_compare_exchange_strong(slot, &there, t))
				return t;
			free(t);
		}
		if (there->text == text && there->local == prefix->local)
			return there;
	}
	return NULL;
}

static unsigned int insert_laid_out(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at,
				    const struct gsr_text *t)
{
	struct gsr_stmt *s = gsr_alloc(p->arena, sizeof(*s));

	s->kind = GSR_STMT_DIRECTIVE;
	s->text = t->expanded;
	link_in(f, at, s, s);
	return t->insns;
}

unsigned int gsr_insert_text(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at,
			     const char *text)
{
	const struct gsr_text *known = is_usual(&p->prefix) ? usual(text, &p->prefix) : NULL;
	struct gsr_text t;

	if (known)
		return insert_laid_out(p, f, at, known);
	t = lay_out_here(p, text);
	return insert_laid_out(p, f, at, &t);
}

unsigned int gsr_insert_format(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at,
			       const char *fmt, ...)
{
	struct gsr_text t;
	va_list ap;

	va_start(ap, fmt);
	t = lay_out_here(p, gsr_vsprintf(p->arena, fmt, ap));
	va_end(ap);
	return insert_laid_out(p, f, at, &t);
}

unsigned int gsr_unguard(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *s)
{
	unsigned int i = ++p->unique;

	if (!s->insn->guard)
		return 0;
	gsr_insert(p, f, s, gsr_sprintf(p->arena, "bra $#past_%u;", i));
	s->prev->insn->guard = s->insn->guard;
	s->prev->insn->guard_negated = !s->insn->guard_negated;
	s->insn->guard = NULL;
	s->insn->guard_negated = false;
	gsr_insert(p, f, s->next, gsr_sprintf(p->arena, "$#past_%u:", i));
	return 1;
}

struct gsr_stmt *gsr_stmt_copy(struct gsr_arena *a, const struct gsr_stmt *s)
{
	struct gsr_stmt *out = gsr_alloc(a, sizeof(*out));

	*out = *s;
	if (s->kind == GSR_STMT_INSN) {
		out->insn = gsr_insn_copy(a, s->insn);
	} else if (s->kind == GSR_STMT_VAR) {
		out->var = gsr_alloc(a, sizeof(*out->var));
		*out->var = *s->var;
	}
	return out;
}

void gsr_insert_behind(struct gsr_function *f, struct gsr_stmt *at, struct gsr_stmt *s)
{
	s->prev = at;
	s->next = at->next;
	if (at->next)
		at->next->prev = s;
	else
		f->last = s;
	at->next = s;
}
