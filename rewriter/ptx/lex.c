// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The lexer: one token at a time, without allocations. A NUL ends the text, as fat binaries pad PTX
 * with NULs.
 *
 * In: text. Out: tokens, which are slices of it. Assumes nothing.
 */
#include <string.h>
#include "lex.h"

/* Character classes, as a bit mask */
enum { BLANK = 1, PUNCT = 2, DIGIT = 4, LETTER = 8, OTHER = 16, START = LETTER | OTHER,
       IDENT = START | DIGIT };

static const unsigned char class_of[256] = {
	['\t' ... '\r'] = BLANK, [' '] = BLANK,
	['!' ... '#'] = PUNCT, ['%' ... '/'] = PUNCT, [':' ... '@'] = PUNCT, ['[' ... '^'] = PUNCT,
	['`'] = PUNCT,
	['{' ... '~'] = PUNCT,
	['0' ... '9'] = DIGIT, ['A' ... 'Z'] = LETTER, ['a' ... 'z'] = LETTER,
	['$'] = OTHER, ['_'] = OTHER, [0x80 ... 0xff] = OTHER,
};

static bool has_class(char c, unsigned int classes)
{
	return class_of[(unsigned char)c] & classes;
}

void gsr_lex_init(struct gsr_lexer *lx, const char *text, size_t size)
{
	const char *nul = size ? memchr(text, 0, size) : NULL;

	lx->pos = lx->line_start = text;
	lx->end = nul ? nul : text + size;
	lx->line = 1;
}

static void skip_white(struct gsr_lexer *lx)
{
	const char *p = lx->pos;

	for (; p < lx->end && has_class(*p, BLANK); p++) {
		if (*p != '\n')
			continue;
		lx->line++;
		lx->line_start = p + 1;
	}
	lx->pos = p;
}

static void skip_line(struct gsr_lexer *lx)
{
	const char *end = memchr(lx->pos, '\n', (size_t)(lx->end - lx->pos));

	lx->pos = end ? end : lx->end;
}

/* From its first character on. False: it has no end */
static bool skip_comment(struct gsr_lexer *lx)
{
	struct gsr_lexer open = *lx;

	lx->pos += 2;
	for (; lx->end - lx->pos >= 2; lx->pos++) {
		if (lx->pos[0] == '*' && lx->pos[1] == '/') {
			lx->pos += 2;
			return true;
		}
		if (*lx->pos == '\n') {
			lx->line++;
			lx->line_start = lx->pos + 1;
		}
	}
	*lx = open;
	return false;
}

/* Skips white space, comments and line markers (#). False: an unterminated comment */
static bool skip_blank(struct gsr_lexer *lx)
{
	for (;;) {
		const char *p;

		skip_white(lx);
		p = lx->pos;
		if (p == lx->end || (*p != '/' && *p != '#'))
			return true;
		if (*p == '/' && lx->end - p > 1 && p[1] == '*') {
			if (!skip_comment(lx))
				return false;
		} else if (*p == '/' ? lx->end - p > 1 && p[1] == '/' : p == lx->line_start) {
			skip_line(lx);
		} else {
			return true;
		}
	}
}

static const char *number_end(const char *p, const char *end)
{
	const char *start = p;
	bool decimal;

	while (p < end && has_class(*p, LETTER | DIGIT))
		p++;
	/* 0x, 0f, 0d have no fraction and no exponent sign */
	decimal = !(p - start > 1 && start[0] == '0' && strchr("xXfFdDbB", start[1]));
	if (!decimal)
		return p;
	if (p < end && *p == '.' && end - p > 1 && has_class(p[1], DIGIT))
		for (p++; p < end && has_class(*p, LETTER | DIGIT); p++)
			;
	else if (p < end && *p == '.' && !(end - p > 1 && has_class(p[1], IDENT)))
		p++;
	if (p < end && (*p == '-' || *p == '+') && (p[-1] == 'e' || p[-1] == 'E') && end - p > 1 &&
	    has_class(p[1], DIGIT))
		for (p++; p < end && has_class(*p, DIGIT); p++)
			;
	return p;
}

/* << >> && || == != <= >= */
static bool is_pair(char a, char b)
{
	return (a == b && strchr("<>&|=", a)) || (b == '=' && strchr("!<>", a));
}

/* The rest of the text is not read */
static void be_bad(struct gsr_lexer *lx, struct gsr_token *t, const char *why)
{
	t->kind = GSR_TOK_BAD;
	t->text = why;
	t->len = strlen(why);
	lx->pos = lx->end;
}

/* Behind the closing quote; NULL: there is none */
static const char *string_end(const char *p, const char *end)
{
	for (p++; p < end && *p != '"' && *p != '\n'; p++)
		if (*p == '\\' && end - p > 1 && p[1] != '\n')
			p++;
	return p < end && *p == '"' ? p + 1 : NULL;
}

static const char *ident_end(const char *p, const char *end)
{
	while (p < end && has_class(*p, IDENT))
		p++;
	return p;
}

/* With the parts behind "::" */
static const char *dot_end(const char *p, const char *end)
{
	for (;;) {
		p = ident_end(p, end);
		if (end - p < 3 || p[0] != ':' || p[1] != ':' || !has_class(p[2], IDENT))
			return p;
		p += 2;
	}
}

void gsr_lex_token(struct gsr_lexer *lx, struct gsr_token *t)
{
	bool terminated = skip_blank(lx);
	const char *p = lx->pos, *end = lx->end;

	t->punct = 0;
	t->text = p;
	t->len = 0;
	t->line = lx->line;
	t->column = (unsigned int)(p - lx->line_start) + 1;
	if (!terminated) {
		be_bad(lx, t, "comment without an end");
		return;
	}
	if (p == end) {
		t->kind = GSR_TOK_END;
		return;
	}
	if (has_class(*p, START) || (*p == '%' && end - p > 1 && has_class(p[1], IDENT))) {
		t->kind = GSR_TOK_IDENT;
		p = ident_end(p + 1, end);
	} else if (has_class(*p, DIGIT)) {
		t->kind = GSR_TOK_NUMBER;
		p = number_end(p, end);
	} else if (*p == '.' && end - p > 1 && has_class(p[1], IDENT)) {
		t->kind = GSR_TOK_DOT;
		t->text = ++p;
		p = dot_end(p, end);
	} else if (*p == '"') {
		t->kind = GSR_TOK_STRING;
		p = string_end(p, end);
		if (!p) {
			be_bad(lx, t, "string without an end");
			return;
		}
	} else if (has_class(*p, PUNCT)) {
		t->kind = GSR_TOK_PUNCT;
		if (end - p > 1 && is_pair(p[0], p[1]))
			p += 2;
		else
			t->punct = *p++;
	} else {
		be_bad(lx, t, "character that PTX does not have");
		return;
	}
	t->len = (size_t)(p - t->text);
	lx->pos = p;
}
