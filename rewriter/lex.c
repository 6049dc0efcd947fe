// SPDX-License-Identifier: LGPL-2.1-or-later
/* The lexer: no memory of its own, one token at a time. A NUL ends the text: fat binaries pad with them. */
#include <ctype.h>
#include <string.h>
#include "lex.h"

static bool ident_start(char c)
{
	return isalpha((unsigned char)c) || c == '_' || c == '$' || c == '%' || (unsigned char)c >= 0x80;
}

static bool ident_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

void gsr_lex_init(struct gsr_lexer *lx, const char *text, size_t size)
{
	const char *nul = size ? memchr(text, 0, size) : NULL;

	lx->pos = lx->line_start = text;
	lx->end = nul ? nul : text + size;
	lx->line = 1;
}

static void newline(struct gsr_lexer *lx)
{
	lx->line++;
	lx->line_start = lx->pos;
}

/* Skip white space, comments and the preprocessor's line marks. Returns false in an open comment. */
static bool skip_blank(struct gsr_lexer *lx)
{
	while (lx->pos < lx->end) {
		char c = *lx->pos;

		if (c == '\n') {
			lx->pos++;
			newline(lx);
		} else if (isspace((unsigned char)c)) {
			lx->pos++;
		} else if (c == '/' && lx->end - lx->pos > 1 && lx->pos[1] == '/') {
			while (lx->pos < lx->end && *lx->pos != '\n')
				lx->pos++;
		} else if (c == '/' && lx->end - lx->pos > 1 && lx->pos[1] == '*') {
			struct gsr_lexer open = *lx;

			lx->pos += 2;
			for (;;) {
				if (lx->end - lx->pos < 2) {
					*lx = open;
					return false;
				}
				if (lx->pos[0] == '*' && lx->pos[1] == '/')
					break;
				if (*lx->pos++ == '\n')
					newline(lx);
			}
			lx->pos += 2;
		} else if (c == '#' && lx->pos == lx->line_start) {
			while (lx->pos < lx->end && *lx->pos != '\n')
				lx->pos++;
		} else {
			break;
		}
	}
	return true;
}

static const char *number_end(const char *p, const char *end)
{
	const char *start = p;
	bool dec;

	while (p < end && isalnum((unsigned char)*p))
		p++;
	/* 0x, 0f, 0d have no fraction and no exponent sign */
	dec = !(p - start > 1 && start[0] == '0' && strchr("xXfFdDbB", start[1]));
	if (!dec)
		return p;
	if (p < end && *p == '.' && end - p > 1 && isdigit((unsigned char)p[1]))
		for (p++; p < end && isalnum((unsigned char)*p); p++)
			;
	else if (p < end && *p == '.' && !(end - p > 1 && ident_char(p[1])))
		p++;
	if (p < end && (*p == '-' || *p == '+') && (p[-1] == 'e' || p[-1] == 'E') && end - p > 1 &&
	    isdigit((unsigned char)p[1]))
		for (p++; p < end && isdigit((unsigned char)*p); p++)
			;
	return p;
}

struct gsr_token gsr_lex_next(struct gsr_lexer *lx)
{
	static const char pairs[] = "<<>>&&||==!=<=>=";
	bool fine = skip_blank(lx);
	struct gsr_token t = {
		.text = lx->pos, .line = lx->line, .column = (unsigned int)(lx->pos - lx->line_start) + 1,
	};
	const char *p = lx->pos, *end = lx->end;
	unsigned int i;

	if (!fine) {
		t.kind = GSR_TOK_BAD;
		t.text = "comment without an end";
		t.len = strlen(t.text);
		lx->pos = end;
		return t;
	}
	if (p == end) {
		t.kind = GSR_TOK_END;
		return t;
	}
	if (ident_start(*p) && !(*p == '%' && !(end - p > 1 && ident_char(p[1])))) {
		t.kind = GSR_TOK_IDENT;
		for (p++; p < end && ident_char(*p); p++)
			;
	} else if (isdigit((unsigned char)*p)) {
		t.kind = GSR_TOK_NUMBER;
		p = number_end(p, end);
	} else if (*p == '.' && end - p > 1 && ident_char(p[1])) {
		t.kind = GSR_TOK_DOT;
		t.text = ++p;
		while (p < end && (ident_char(*p) || (*p == ':' && end - p > 2 && p[1] == ':' && ident_char(p[2]))))
			p += *p == ':' ? 2 : 1;
	} else if (*p == '"') {
		t.kind = GSR_TOK_STRING;
		for (p++; p < end && *p != '"' && *p != '\n'; p++)
			if (*p == '\\' && end - p > 1 && p[1] != '\n')
				p++;
		if (p == end || *p != '"') {
			t.kind = GSR_TOK_BAD;
			t.text = "string without an end";
			t.len = strlen(t.text);
			lx->pos = end;
			return t;
		}
		p++;
	} else if (ispunct((unsigned char)*p)) {
		t.kind = GSR_TOK_PUNCT;
		for (i = 0; pairs[i]; i += 2)
			if (end - p > 1 && p[0] == pairs[i] && p[1] == pairs[i + 1])
				break;
		if (pairs[i])
			p += 2;
		else
			t.punct = *p++;
	} else {
		t.kind = GSR_TOK_BAD;
		t.text = "character that PTX does not have";
		t.len = strlen(t.text);
		lx->pos = end;
		return t;
	}
	t.len = (size_t)(p - t.text);
	lx->pos = p;
	return t;
}
