/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Internal to the parser: parse.c parses modules, functions and statements, operand.c operands and
 * constant expressions.
 */
#ifndef GSR_PARSE_H
#define GSR_PARSE_H

#include <setjmp.h>
#include "arena.h"
#include "lex.h"
#include "ptx.h"

struct gsr_parser {
	struct gsr_arena *arena;
	struct gsr_lexer lx;
	struct gsr_token tok, ahead;	/* the current token, and one token of lookahead */
	const char *last_end;		/* end of the token before @tok */
	const char *name;
	unsigned long epoch;		/* number of the current function: marks its registers */
	bool sigils;			/* "%$x" is the register $x */
	struct gsr_error *err;
	jmp_buf failed;
};

void gsr_parse_fail(struct gsr_parser *p, const struct gsr_token *at, const char *fmt, ...)
	__attribute__((noreturn, format(printf, 3, 4)));
void gsr_parse_next(struct gsr_parser *p);
static inline bool gsr_parse_is(const struct gsr_parser *p, char punct)
{
	return p->tok.kind == GSR_TOK_PUNCT && p->tok.punct == punct;
}

static inline bool gsr_parse_accept(struct gsr_parser *p, char punct)
{
	if (!gsr_parse_is(p, punct))
		return false;
	gsr_parse_next(p);
	return true;
}

void gsr_parse_expect(struct gsr_parser *p, char punct, const char *where);
const char *gsr_parse_ident(struct gsr_parser *p, const char *what);	/* interned */
const char *gsr_parse_bare(struct gsr_parser *p, const char *name);
uint64_t gsr_parse_uint(struct gsr_parser *p, const char *what);
/* the text from @start to last_end, interned */
const char *gsr_parse_slice(struct gsr_parser *p, const char *start);
bool gsr_parse_is_reg(struct gsr_parser *p, const char *name);

uint64_t gsr_parse_const(struct gsr_parser *p);	/* operand.c: a constant expression */
/* operand.c: operands up to, not including, ';' */
void gsr_parse_operands(struct gsr_parser *p, struct gsr_insn *insn);

#endif /* GSR_PARSE_H */
