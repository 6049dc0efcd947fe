// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * ".alias a, b;": calls of a become calls of b.
 *
 * In: a parsed module. Out: the same without a use of an alias' name. Assumes nothing; runs before
 * the analyses, which so see the functions that are meant.
 */
#include <string.h>
#include "rewriter/ptx/lex.h"
#include "transform.h"

struct alias {
	struct alias *next;
	const char *name, *target;	/* interned */
};

/* NULL: a directive of another form */
static struct alias *parse(struct gsr_arena *a, const char *text)
{
	struct alias *alias;
	const char *name[2];
	unsigned int n = 0;
	struct gsr_lexer lx;
	struct gsr_token t;

	gsr_lex_init(&lx, text, strlen(text));
	while ((t = gsr_lex_next(&lx)).kind != GSR_TOK_END && t.kind != GSR_TOK_BAD)
		if (t.kind == GSR_TOK_IDENT && n < 2)
			name[n++] = gsr_intern(a, t.text, t.len);
	if (n < 2)
		return NULL;
	alias = gsr_alloc(a, sizeof(*alias));
	alias->name = name[0];
	alias->target = name[1];
	return alias;
}

/* Through each alias in the order of the module, so that one may stand for another */
static void resolve(const struct alias *first, struct gsr_operand *o)
{
	const struct alias *alias;

	for (alias = first; alias; alias = alias->next)
		if (o->kind == GSR_OPND_SYM && alias->name == o->name)
			o->name = alias->target;
}

void gsr_resolve_aliases(struct gsr_module *m)
{
	struct alias *first = NULL, **end = &first;
	const struct gsr_item *i;
	const struct gsr_stmt *s;
	unsigned int k;

	for (i = m->first; i; i = i->next)
		if (i->kind == GSR_ITEM_DIRECTIVE && !strncmp(i->text, ".alias", 6)) {
			*end = parse(m->arena, i->text);
			end = *end ? &(*end)->next : end;
		}
	for (i = m->first; i && first; i = i->next)
		for (s = i->kind == GSR_ITEM_FUNCTION ? i->function->first : NULL; s; s = s->next)
			for (k = 0; s->kind == GSR_STMT_INSN && k < s->insn->n_opnds; k++)
				resolve(first, &s->insn->opnds[k]);
}
