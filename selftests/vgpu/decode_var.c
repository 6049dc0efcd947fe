// SPDX-License-Identifier: LGPL-2.1-or-later
/* Module variables: where they lie, and what they hold at first. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include "exec_priv.h"

#define GAP	64

struct xsym_table {
	struct xsym *syms;
	size_t n, room;
	uint32_t *hash;		/* index + 1 by name; 0 empty */
	size_t n_hash;
};

static uint32_t hash_name(const char *s)
{
	uint32_t h = 2166136261u;

	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * 16777619u;
	return h;
}

size_t var_size(const struct gsr_var *v)
{
	size_t size = xtype_size(xtype_parse(v->type));
	unsigned int i;

	if (v->vec)
		size *= v->vec;
	for (i = 0; i < v->n_dims; i++)
		if (__builtin_mul_overflow(size, (size_t)v->dims[i], &size))
			return SIZE_MAX;
	return size;
}

size_t var_align(const struct gsr_var *v)
{
	size_t size = xtype_size(xtype_parse(v->type));

	if (v->align)
		return v->align;
	if (v->vec)
		size *= v->vec;
	return size ? size : 1;
}

const struct xsym *vars_find(const struct vgpu_module *m, const char *name)
{
	const struct xsym_table *t = m->syms;
	uint32_t h;

	if (!t || !t->n_hash)
		return NULL;
	for (h = hash_name(name); t->hash[h & (t->n_hash - 1)]; h++) {
		const struct xsym *s = &t->syms[t->hash[h & (t->n_hash - 1)] - 1];

		if (!strcmp(s->name, name))
			return s;
	}
	return NULL;
}

const struct xsym *vars_find_var(const struct vgpu_module *m, const struct gsr_var *var)
{
	size_t i;

	for (i = 0; i < m->syms->n; i++)
		if (m->syms->syms[i].var == var)
			return &m->syms->syms[i];
	return NULL;
}

static struct xsym *add(struct xsym_table *t, const char *name)
{
	if (t->n == t->room) {
		size_t room = t->room ? t->room * 2 : 64;
		struct xsym *syms = realloc(t->syms, room * sizeof(*syms));

		if (!syms)
			return NULL;
		t->syms = syms;
		t->room = room;
	}
	memset(&t->syms[t->n], 0, sizeof(*t->syms));
	t->syms[t->n].name = name;
	return &t->syms[t->n++];
}

static bool hash_all(struct xsym_table *t)
{
	size_t i;

	for (t->n_hash = 64; t->n_hash < t->n * 2; t->n_hash *= 2)
		;
	t->hash = calloc(t->n_hash, sizeof(*t->hash));
	if (!t->hash)
		return false;
	for (i = 0; i < t->n; i++) {
		uint32_t h = hash_name(t->syms[i].name);

		/* variables of functions are found by pointer: two functions may use one name */
		if (t->syms[i].kind != SYM_FUNCTION && t->syms[i].size == SIZE_MAX)
			continue;
		while (t->hash[h & (t->n_hash - 1)])
			h++;
		t->hash[h & (t->n_hash - 1)] = (uint32_t)i + 1;
	}
	return true;
}

static int space_of(const struct gsr_var *v)
{
	if (!strcmp(v->space, "global"))
		return SYM_GLOBAL;
	if (!strcmp(v->space, "const"))
		return SYM_CONST;
	return !strcmp(v->space, "shared") ? SYM_SHARED : SYM_NONE;
}

/* What an initialiser is read from */
struct reader {
	const char *s;
	const struct vgpu_module *m;
	uint8_t *to, *end;
	const struct gsr_var *v;
	size_t elem;
	char *err;
	size_t err_size;
};

static bool fail(struct reader *r, const char *what)
{
	snprintf(r->err, r->err_size, "line %u: initialiser of %s: %s near '%.20s'", r->v->line,
		 r->v->name, what, r->s);
	return false;
}

static void blanks(struct reader *r)
{
	while (isspace((unsigned char)*r->s))
		r->s++;
}

static bool is_name(int c)
{
	return isalnum(c) || c == '_' || c == '$' || c == '%' || c == '.';
}

static bool value_number(struct reader *r, uint64_t *v, enum xtype t)
{
	bool minus = false, invert = false;
	double d;
	char *end;
	const char *s;

	for (; *r->s == '-' || *r->s == '+' || *r->s == '~'; r->s++, blanks(r)) {
		minus ^= *r->s == '-';
		invert |= *r->s == '~';
	}
	s = r->s;
	if (s[0] == '0' && s[1] && strchr("fFdD", s[1]) && !xtype_int(t)) {
		bool single = s[1] == 'f' || s[1] == 'F';

		*v = strtoull(s + 2, &end, 16);
		if (end == s + 2)
			return fail(r, "number expected");
		if (minus)
			*v ^= single ? 1ull << 31 : 1ull << 63;
		if (single && t == T_F64)
			*v = f64_bits(as_f32(*v));
		else if (!single && t == T_F32)
			*v = f32_bits((float)as_f64(*v));
		r->s = end;
		return true;
	}
	if (s[0] == '0' && (s[1] == 'b' || s[1] == 'B'))
		*v = strtoull(s + 2, &end, 2);
	else
		*v = strtoull(s, &end, 0);
	if (end == s && *s != '.')
		return fail(r, "number expected");
	if (*end == '.' || ((*end == 'e' || *end == 'E') && xtype_float(t))) {
		d = strtod(s, &end);
		d = minus ? -d : d;
		*v = t == T_F32 ? f32_bits((float)d) : f64_bits(d);
	} else {
		if (*end == 'U' || *end == 'u')
			end++;
		*v = minus ? 0 - *v : *v;
		*v = invert ? ~*v : *v;
		if (t == T_F32)
			*v = f32_bits((float)(int64_t)*v);
		else if (t == T_F64)
			*v = f64_bits((double)(int64_t)*v);
	}
	r->s = end;
	return true;
}

/* name, generic(name), either with +offset */
static bool value_symbol(struct reader *r, uint64_t *v)
{
	char name[1024];
	size_t n = 0;
	const struct xsym *s;
	bool generic = false;
	uint64_t off;

	while (is_name((unsigned char)*r->s) && n + 1 < sizeof(name))
		name[n++] = *r->s++;
	name[n] = 0;
	blanks(r);
	if (!strcmp(name, "generic") && *r->s == '(') {
		r->s++;
		blanks(r);
		generic = true;
		for (n = 0; is_name((unsigned char)*r->s) && n + 1 < sizeof(name);)
			name[n++] = *r->s++;
		name[n] = 0;
		blanks(r);
	}
	s = vars_find(r->m, name);
	if (!s)
		return fail(r, "unknown name");
	*v = s->kind == SYM_FUNCTION ? function_address(r->m, s->value) : s->value;
	if (s->kind == SYM_SHARED)
		return fail(r, "a shared variable has no address here");
	if (generic && *r->s == ')') {
		r->s++;
		blanks(r);
	}
	if (*r->s == '+' || *r->s == '-') {
		if (!value_number(r, &off, T_B64))
			return false;
		*v += off;
	}
	if (generic && *r->s == ')')
		r->s++;
	return true;
}

static bool value(struct reader *r, uint64_t *v)
{
	enum xtype t = xtype_parse(r->v->type);
	uint64_t mask;

	blanks(r);
	if (isalpha((unsigned char)*r->s) || *r->s == '_' || *r->s == '$' || *r->s == '%')
		return value_symbol(r, v);
	if (!value_number(r, v, t))
		return false;
	blanks(r);
	/* 0xFF(name): one byte of an address */
	if (*r->s == '(') {
		mask = *v;
		r->s++;
		blanks(r);
		if (!value_symbol(r, v))
			return false;
		blanks(r);
		if (*r->s++ != ')' || !mask)
			return fail(r, "')' expected");
		*v = (*v & mask) >> __builtin_ctzll(mask);
	}
	return true;
}

/*
 * Braces as ptxas wants them: a pair for each dimension and for a vector. It does not fill up rows:
 * the next one follows at once
 */
static bool level(struct reader *r, unsigned int depth)
{
	const struct gsr_var *of = r->v;
	size_t most = depth < of->n_dims ? of->dims[depth] : of->vec, n = 0;
	bool inner = depth == of->n_dims + !!of->vec;
	uint64_t v;

	blanks(r);
	if (inner != (*r->s != '{'))
		return fail(r, inner ? "value expected" : "'{' expected");
	if (inner) {
		if (!value(r, &v))
			return false;
		if ((size_t)(r->end - r->to) < r->elem)
			return fail(r, "too many values");
		memcpy(r->to, &v, r->elem < 8 ? r->elem : 8);
		r->to += r->elem;
		return true;
	}
	do {
		r->s++;
		blanks(r);
		if (!n && *r->s == '}')
			break;
		if (!level(r, depth + 1))
			return false;
		n++;
		blanks(r);
	} while (*r->s == ',');
	if (*r->s != '}')
		return fail(r, "',' or '}' expected");
	if (n > most || (depth == of->n_dims && n != most))
		return fail(r, "wrong number of values");
	r->s++;
	return true;
}

static bool init_var(struct vgpu_module *m, const struct xsym *s, char *err, size_t err_size)
{
	struct reader r = { .s = s->var->init, .m = m, .to = (uint8_t *)(uintptr_t)s->value,
			    .v = s->var,
			    .elem = xtype_size(xtype_parse(s->var->type)), .err = err,
			    .err_size = err_size };

	if (!r.elem)
		return fail(&r, "type without a size");
	r.end = r.to + var_size(s->var);
	if (!level(&r, 0))
		return false;
	blanks(&r);
	return *r.s && *r.s != ';' ? fail(&r, "end expected") : true;
}

static bool add_var(struct vgpu_module *m, const struct gsr_var *v, bool in_function, size_t *at,
		    char *err, size_t err_size)
{
	int kind = space_of(v);
	size_t size, align;
	struct xsym *s;

	if (kind == SYM_NONE)
		return true;
	if (kind == SYM_SHARED && in_function)
		return true;
	s = add(m->syms, v->name);
	if (!s) {
		snprintf(err, err_size, "out of memory");
		return false;
	}
	s->kind = kind;
	s->var = v;
	s->size = size = var_size(v);
	if (kind == SYM_SHARED)
		return true;
	align = var_align(v);
	if (size > (1ull << 32) || align > 4096 || (align & (align - 1))) {
		snprintf(err, err_size, "line %u: variable %s is larger than 4 GiB or "
			 "oddly aligned", v->line, v->name);
		return false;
	}
	/* apart, so that what is beyond one is not in the next */
	*at = (*at + GAP + align - 1) & ~(align - 1);
	s->value = *at;
	*at += size;
	if (in_function)
		s->size = SIZE_MAX;
	return true;
}

bool vars_load(struct vgpu_module *m, char *err, size_t err_size)
{
	struct gsr_item *it;
	struct gsr_stmt *st;
	size_t at = 0, i;

	m->syms = calloc(1, sizeof(*m->syms));
	if (!m->syms)
		goto nomem;
	for (it = m->ptx->first; it; it = it->next) {
		if (it->kind == GSR_ITEM_VAR && !add_var(m, it->var, false, &at, err, err_size))
			return false;
		if (it->kind != GSR_ITEM_FUNCTION)
			continue;
		for (st = it->function->first; st; st = st->next)
			if (st->kind == GSR_STMT_VAR &&
			    !add_var(m, st->var, true, &at, err, err_size))
				return false;
	}
	for (i = 0; i < m->n_functions; i++) {
		struct xsym *s = add(m->syms, m->functions[i]->name);

		if (!s)
			goto nomem;
		s->kind = SYM_FUNCTION;
		s->value = i;
	}
	m->globals_size = (at + 4095) & ~(size_t)4095;
	if (at) {
		m->globals = aligned_alloc(4096, m->globals_size);
		if (!m->globals)
			goto nomem;
		memset(m->globals, 0, m->globals_size);
	}
	m->ranges = calloc(m->syms->n + 1, sizeof(*m->ranges));
	if (!m->ranges || !hash_all(m->syms))
		goto nomem;
	for (i = 0; i < m->syms->n; i++) {
		struct xsym *s = &m->syms->syms[i];

		if (s->kind != SYM_GLOBAL && s->kind != SYM_CONST)
			continue;
		s->value += (uintptr_t)m->globals;
		m->ranges[m->n_ranges++] = (struct xrange){ s->value, var_size(s->var),
							    s->kind == SYM_CONST };
	}
	for (i = 0; i < m->syms->n; i++) {
		const struct xsym *s = &m->syms->syms[i];

		if ((s->kind == SYM_GLOBAL || s->kind == SYM_CONST) && s->var->init &&
		    !init_var(m, s, err, err_size))
			return false;
	}
	return true;
nomem:
	snprintf(err, err_size, "out of memory");
	return false;
}

const struct xrange *vars_range(const struct vgpu_module *m, uint64_t addr, size_t size)
{
	size_t low = 0, high = m->n_ranges;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (m->ranges[mid].at > addr)
			high = mid;
		else
			low = mid + 1;
	}
	if (!low || addr - m->ranges[low - 1].at >= m->ranges[low - 1].size ||
	    size > m->ranges[low - 1].size - (addr - m->ranges[low - 1].at))
		return NULL;
	return &m->ranges[low - 1];
}

void vars_free(struct vgpu_module *m)
{
	if (m->syms) {
		free(m->syms->syms);
		free(m->syms->hash);
		free(m->syms);
	}
	free(m->globals);
	free(m->ranges);
}
