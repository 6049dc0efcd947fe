// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Where variables hold addresses of functions at first: {f, g}, or a byte at a time, {0xFF(f),
 * 0xFF00(f), ...}. Whoever loads the twins can read the numbers there that the functions have in
 * the original's module.
 *
 * In: variables with initializers. Out: gsr_pass.places, and gsr_fn.place. Assumes that all
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
	unsigned int elem;			/* bytes of a value; 0 not known */
	uint64_t at;				/* of the next value: a row that is not full is not filled up, the next one follows at once */
	bool had;				/* a value, and at is still its place */
	struct gsr_fn *part;			/* of whose address bytes have come */
	unsigned int bytes;			/* so many, from its lowest on */
	uint64_t end;				/* behind them */
};

static void next(struct reader *r)
{
	r->t = gsr_lex_next(&r->lx);
}

static bool punct(const struct reader *r, char c)
{
	return r->t.kind == GSR_TOK_PUNCT && r->t.punct == c;
}

static void add(struct gsr_pass *p, struct gsr_var *in, uint64_t offset, struct gsr_fn *fn)
{
	struct gsr_place *place = gsr_alloc(p->arena, sizeof(*place));

	/* code that is not seen, and that may be called; but not what is called where no function is */
	if (!fn->f->body)
		p->loose |= strncmp(fn->f->name, "__cxa_", 6) != 0;
	if (offset + 8 > gsr_var_size(in))
		p->loose = true;
	*place = (struct gsr_place){ .in = in, .offset = offset, .fn = fn };
	if (p->last_place)
		p->last_place->next = place;
	else
		p->places = place;
	p->last_place = place;
}

/* The bytes of @fn's address that @mask selects; all eight of them must come, one after another */
static void masked(struct reader *r, struct gsr_fn *fn, uint64_t mask)
{
	uint64_t at = r->at, low = r->elem < 8 ? (1ULL << 8 * r->elem) - 1 : ~0ULL;
	unsigned int first = mask ? (unsigned int)__builtin_ctzll(mask) / 8 : 0;

	if (!first && !r->part) {
		r->part = fn;
		r->bytes = 0;
		r->end = at;
	}
	if (r->part != fn || first != r->bytes || at != r->end || mask != low << 8 * first) {
		r->p->loose = true;
		return;
	}
	r->bytes += r->elem;
	r->end += r->elem;
	if (r->bytes < 8)
		return;
	add(r->p, r->v, r->end - 8, fn);
	r->part = NULL;
}

static struct gsr_fn *name(struct reader *r)
{
	const char *text = gsr_intern(r->p->arena, r->t.text, r->t.len);

	if (r->p->n_named == r->p->room_named) {
		const char **grown;

		r->p->room_named = r->p->room_named ? 2 * r->p->room_named : 16;
		grown = gsr_alloc_array(r->p->arena, r->p->room_named, sizeof(*grown));
		if (r->p->n_named)
			memcpy(grown, r->p->named, r->p->n_named * sizeof(*grown));
		r->p->named = grown;
	}
	r->p->named[r->p->n_named++] = text;
	return gsr_fn_of(r->p, text);
}

static void value(struct reader *r)
{
	struct gsr_fn *fn;
	uint64_t mask;

	if (r->t.kind == GSR_TOK_NUMBER) {
		mask = strtoull(r->t.text, NULL, 0);
		next(r);
		if (!punct(r, '('))
			return;
		next(r);
		fn = r->t.kind == GSR_TOK_IDENT ? name(r) : NULL;
		if (fn)
			masked(r, fn, mask);
		next(r);
		/* more than a name */
		r->p->loose |= fn && !punct(r, ')');
		return;
	}
	fn = r->t.kind == GSR_TOK_IDENT ? name(r) : NULL;
	next(r);
	if (!fn)
		return;
	if (r->elem != 8 || !(r->t.kind == GSR_TOK_END || punct(r, ',') || punct(r, '}')))
		r->p->loose = true;
	else
		add(r->p, r->v, r->at, fn);
}

void gsr_places(struct gsr_pass *p, struct gsr_var *v)
{
	struct reader r = { .p = p, .v = v, .elem = gsr_type_size(v->type) };

	gsr_lex_init(&r.lx, v->init, strlen(v->init));
	for (next(&r); r.t.kind != GSR_TOK_END && r.t.kind != GSR_TOK_BAD;) {
		if (r.t.kind == GSR_TOK_PUNCT) {
			if (r.had && (punct(&r, ',') || punct(&r, '}'))) {
				r.at += r.elem;
				r.had = false;
			}
			next(&r);
			continue;
		}
		value(&r);
		r.had = true;
	}
	p->loose |= r.part != NULL;
}

/* Nobody but the host writes C++'s tables of virtual functions, and constants; and not even the host the former */
static bool keeps(struct gsr_pass *p, const struct gsr_var *v)
{
	bool virtual_table = !strncmp(v->name, "_ZTV", 4) && !strcmp(v->space, "global");

	return virtual_table || !strcmp(v->space, "const") || gsr_never_written(p, v);
}

void gsr_places_choose(struct gsr_pass *p)
{
	const struct gsr_var *asked = NULL;
	struct gsr_place *place;
	bool known = false;

	for (place = p->places; place; place = place->next) {
		known = place->in == asked ? known : keeps(p, place->in);
		asked = place->in;
		place->known = known;
		if (!place->fn->place || (known && !place->fn->place->known))
			place->fn->place = place;
	}
}
