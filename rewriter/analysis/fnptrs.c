// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Function-pointer tables: the slots of variables that hold the address of a function at first, as
 * their initializers say: {f, g}, or one byte at a time, {0xFF(f), 0xFF00(f), ...}. The loader of
 * the twins can read there the values that the functions' addresses have in the original module.
 *
 * In: variables with initializers. Out: gsr_pass.fnptrs, and gsr_fn.fnptr. Assumes that all
 * functions are known by name (gsr_fn_of()).
 */
#include <stdlib.h>
#include <string.h>
#include "rewriter/ptx/lex.h"
#include "analysis.h"

struct reader {
	struct gsr_pass *p;
	struct gsr_var *v;
	struct gsr_lexer lx;
	struct gsr_token t;
	unsigned int elem;		/* bytes of a value; 0: not known */
	uint64_t at;			/* offset of the value; incomplete rows are not padded */
	bool had;			/* the value at that offset was read */
	struct gsr_fn *part;		/* the function whose address is being read by bytes */
	unsigned int bytes;		/* read so far, the lowest first */
	uint64_t end;			/* offset behind them */
};

static void next_token(struct reader *r)
{
	r->t = gsr_lex_next(&r->lx);
}

static bool is_punct(const struct reader *r, char c)
{
	return r->t.kind == GSR_TOK_PUNCT && r->t.punct == c;
}

static void add_slot(struct gsr_pass *p, struct gsr_var *in, uint64_t offset, struct gsr_fn *fn)
{
	struct gsr_fnptr *slot = gsr_alloc(p->arena, sizeof(*slot));

	/*
	 * A function without a body may do anything with pointers; but not those of the C++
	 * runtime that stand for a missing function.
	 */
	if (!fn->f->body)
		p->fnptrs_escape |= strncmp(fn->f->name, "__cxa_", 6) != 0;
	if (offset + 8 > gsr_var_size(in))
		p->fnptrs_escape = true;
	*slot = (struct gsr_fnptr){ .in = in, .offset = offset, .fn = fn };
	if (p->last_fnptr)
		p->last_fnptr->next = slot;
	else
		p->fnptrs = slot;
	p->last_fnptr = slot;
}

/* Reads the bytes of @fn's address that @mask selects. All eight must follow one another */
static void read_bytes(struct reader *r, struct gsr_fn *fn, uint64_t mask)
{
	uint64_t at = r->at, low = r->elem < 8 ? (1ULL << 8 * r->elem) - 1 : ~0ULL;
	unsigned int first = mask ? (unsigned int)__builtin_ctzll(mask) / 8 : 0;

	if (!first && !r->part) {
		r->part = fn;
		r->bytes = 0;
		r->end = at;
	}
	if (r->part != fn || first != r->bytes || at != r->end || mask != low << 8 * first) {
		r->p->fnptrs_escape = true;
		return;
	}
	r->bytes += r->elem;
	r->end += r->elem;
	if (r->bytes < 8)
		return;
	add_slot(r->p, r->v, r->end - 8, fn);
	r->part = NULL;
}

/* Notes the name of the token; returns the function of that name, or NULL */
static struct gsr_fn *read_name(struct reader *r)
{
	struct gsr_pass *p = r->p;
	const char *text = gsr_intern(p->arena, r->t.text, r->t.len);

	p->named = gsr_grow(p->arena, p->named, p->n_named, &p->room_named, sizeof(*p->named));
	p->named[p->n_named++] = text;
	return gsr_fn_of(p, text);
}

static void read_value(struct reader *r)
{
	struct gsr_fn *fn;
	uint64_t mask;

	if (r->t.kind == GSR_TOK_NUMBER) {
		mask = strtoull(r->t.text, NULL, 0);
		next_token(r);
		if (!is_punct(r, '('))
			return;
		next_token(r);
		fn = r->t.kind == GSR_TOK_IDENT ? read_name(r) : NULL;
		if (fn)
			read_bytes(r, fn, mask);
		next_token(r);
		/* an expression and not just a name */
		r->p->fnptrs_escape |= fn && !is_punct(r, ')');
		return;
	}
	fn = r->t.kind == GSR_TOK_IDENT ? read_name(r) : NULL;
	next_token(r);
	if (!fn)
		return;
	if (r->elem != 8 || !(r->t.kind == GSR_TOK_END || is_punct(r, ',') || is_punct(r, '}')))
		r->p->fnptrs_escape = true;
	else
		add_slot(r->p, r->v, r->at, fn);
}

void gsr_fnptrs_read(struct gsr_pass *p, struct gsr_var *v)
{
	struct reader r = { .p = p, .v = v, .elem = gsr_type_size(v->type) };

	gsr_lex_init(&r.lx, v->init, strlen(v->init));
	for (next_token(&r); r.t.kind != GSR_TOK_END && r.t.kind != GSR_TOK_BAD;) {
		if (r.t.kind == GSR_TOK_PUNCT) {
			if (r.had && (is_punct(&r, ',') || is_punct(&r, '}'))) {
				r.at += r.elem;
				r.had = false;
			}
			next_token(&r);
			continue;
		}
		read_value(&r);
		r.had = true;
	}
	p->fnptrs_escape |= r.part != NULL;
}

/*
 * Does no kernel write the variable? Only the host can write constants, and nothing writes C++'s
 * virtual tables.
 */
static bool keeps_value(struct gsr_pass *p, const struct gsr_var *v)
{
	bool virtual_table = !strncmp(v->name, "_ZTV", 4) && !strcmp(v->space, "global");

	return virtual_table || !strcmp(v->space, "const") || gsr_never_written(p, v);
}

void gsr_fnptrs_choose(struct gsr_pass *p)
{
	const struct gsr_var *asked = NULL;
	struct gsr_fnptr *slot;
	bool known = false;

	for (slot = p->fnptrs; slot; slot = slot->next) {
		known = slot->in == asked ? known : keeps_value(p, slot->in);
		asked = slot->in;
		slot->known = known;
		if (!slot->fn->fnptr || (known && !slot->fn->fnptr->known))
			slot->fn->fnptr = slot;
	}
}
