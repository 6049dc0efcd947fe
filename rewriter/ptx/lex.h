/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* PTX tokens. The text of a token is a slice of the input. */
#ifndef GSR_LEX_H
#define GSR_LEX_H

#include <stdbool.h>
#include <stddef.h>

enum gsr_token_kind {
	GSR_TOK_END,
	GSR_TOK_IDENT,		/* add, %r1, $L__BB0_1, _ */
	GSR_TOK_DOT,		/* .global, .v4, .L2::128B: text without the dot */
	GSR_TOK_NUMBER,		/* 12, 0x1F, 0f3F800000, 1.5e3, 9.0 */
	GSR_TOK_STRING,		/* with its quotes */
	GSR_TOK_PUNCT,		/* one character, or << >> && || == != <= >= */
	GSR_TOK_BAD,		/* invalid character, unterminated comment or string: text is the
				 * reason */
};

struct gsr_token {
	enum gsr_token_kind kind;
	char punct;		/* the character of a PUNCT; 0 if it has two, or for other kinds */
	const char *text;
	size_t len;
	unsigned int line, column;
};

struct gsr_lexer {
	const char *pos, *end, *line_start;
	unsigned int line;
};

void gsr_lex_init(struct gsr_lexer *lx, const char *text, size_t size);
void gsr_lex_token(struct gsr_lexer *lx, struct gsr_token *t);

static inline struct gsr_token gsr_lex_next(struct gsr_lexer *lx)
{
	struct gsr_token t;

	gsr_lex_token(lx, &t);
	return t;
}

#endif /* GSR_LEX_H */
