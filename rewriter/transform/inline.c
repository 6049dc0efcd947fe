// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Inlining: a call is replaced by the body of its function, if that cannot remain a function, as it
 * exits threads, or as finished threads must take part in its barriers; or if it is short and was
 * called through a pointer (devirtualise.c). The kernel's scopes are removed first, so each name
 * has one meaning; the body is copied with new names. Variables that passed parameters become
 * registers, or local memory if they are larger than a word.
 *
 * In: a kernel, and which functions to inline. Out: the kernel with their bodies, or a refusal.
 * Assumes the facts of gsr_analyse(), and that no call through a pointer may mean these functions.
 * The graph must be rebuilt.
 */
#include <stdlib.h>
#include <string.h>
#include "transform.h"

#define STATEMENTS_MAX	400000u
#define SMALL_INSNS	24u
#define SMALL_MAX	4000u	/* statements inlined only because of devirtualised calls */

#define MARK_PARAM	(6UL << 40)	/* names of .param variables, while calls are replaced */
#define MARK_REG	(7UL << 40)
#define MARK_INDEX	0xffffffffUL

struct param {
	struct gsr_stmt *decl;
	bool used;			/* by a call that was replaced */
	bool memory;			/* accessed in parts, or larger than a word */
	const char *wrong;
};

struct calls {
	struct gsr_pass *p;
	struct gsr_fn *fn;		/* the kernel */
	enum gsr_inline which;
	struct param *params;
	unsigned int n_params, room_params;
	unsigned int n_statements;
	const char *why;
};

static bool wanted(const struct gsr_fn *fn, enum gsr_inline which)
{
	if (!fn->f->body || fn->f->entry)
		return false;
	switch (which) {
	case GSR_INLINE_EXITS:
		return fn->any.exit && !fn->plan.may_exit;
	case GSR_INLINE_BARRIERS:
		return fn->any.plain;
	case GSR_INLINE_WARPS:
		return fn->any.warp_sync;
	case GSR_INLINE_SMALL:
		return fn->plan.small;
	case GSR_INLINE_TEXTURES:
		return fn->any.texture;
	default:
		return false;
	}
}

static void append_stmt(struct gsr_function *f, struct gsr_stmt *s)
{
	s->next = NULL;
	s->prev = f->last;
	if (f->last)
		f->last->next = s;
	else
		f->first = s;
	f->last = s;
}

static struct gsr_stmt *new_var(struct gsr_arena *a, const struct gsr_var *v)
{
	struct gsr_stmt *s = gsr_alloc(a, sizeof(*s));

	s->kind = GSR_STMT_VAR;
	s->var = gsr_alloc(a, sizeof(*s->var));
	*s->var = *v;
	return s;
}

/* Formal parameters become variables, then results; all names are new */
static void copy_body(struct calls *w, const struct gsr_function *from, struct gsr_function *to)
{
	struct gsr_arena *a = w->p->arena;
	const struct gsr_stmt *s;
	unsigned int i;

	memset(to, 0, sizeof(*to));
	for (i = 0; i < from->n_params; i++)
		append_stmt(to, new_var(a, &from->params[i]));
	for (i = 0; i < from->n_rets; i++)
		append_stmt(to, new_var(a, &from->rets[i]));
	for (s = from->first; s; s = s->next)
		append_stmt(to, gsr_stmt_copy(a, s));
	gsr_flatten(w->p, to, true);
}

static struct param *param_of(struct calls *w, const char *name)
{
	unsigned long m = *gsr_intern_mark(name);

	if ((m & ~MARK_INDEX) != MARK_PARAM || (m & MARK_INDEX) >= w->n_params ||
	    w->params[m & MARK_INDEX].decl->var->name != name)
		return NULL;
	return &w->params[m & MARK_INDEX];
}

static struct param *add_param(struct calls *w, struct gsr_stmt *decl)
{
	w->params = gsr_grow(w->p->arena, w->params, w->n_params, &w->room_params,
			     sizeof(*w->params));
	w->params[w->n_params].decl = decl;
	w->params[w->n_params].memory = decl->var->n_dims || (gsr_type_size(decl->var->type) != 4 &&
							      gsr_type_size(decl->var->type) != 8);
	*gsr_intern_mark(decl->var->name) = MARK_PARAM | w->n_params;
	return &w->params[w->n_params++];
}

static void rename_operand(struct gsr_operand *o, const char *from, const char *to)
{
	unsigned int i;

	if (o->name == from)
		o->name = to;
	for (i = 0; i < o->n_items; i++)
		rename_operand(&o->items[i], from, to);
}

static void rename_all(struct gsr_function *g, const char *from, const char *to)
{
	struct gsr_stmt *s;
	unsigned int i;

	for (s = g->first; s; s = s->next)
		for (i = 0; s->kind == GSR_STMT_INSN && i < s->insn->n_opnds; i++)
			rename_operand(&s->insn->opnds[i], from, to);
}

static bool is_param(const struct gsr_var *v)
{
	return !strcmp(v->space, "param");
}

static const char *move_of(struct calls *w, const struct gsr_var *v)
{
	unsigned int size = gsr_type_size(v->type);

	if (!strcmp(v->type, "pred"))
		return "mov.pred";
	return size >= 2 ? gsr_sprintf(w->p->arena, "mov.b%u", size * 8) : NULL;
}

/* Inserts the instruction @text with its operands replaced by @to and @from */
static void insert_move(struct calls *w, struct gsr_function *g, struct gsr_stmt *at,
			const char *text, const struct gsr_operand *to,
			const struct gsr_operand *from)
{
	struct gsr_stmt *s;

	gsr_insert(w->p, g, at, text);
	s = at ? at->prev : g->last;
	if (to)
		s->insn->opnds[0] = *to;
	if (from)
		s->insn->opnds[1] = *from;
}

/*
 * Binds a formal parameter or result, which is the variable @decl in the copy @g, to the call's
 * operand @actual. Moves are inserted in front of @at in the copy; NULL: at its end.
 */
static void bind_param(struct calls *w, struct gsr_function *g, struct gsr_stmt *decl,
		       struct gsr_operand *actual, struct gsr_stmt *at, bool returned)
{
	struct gsr_operand formal = { .kind = GSR_OPND_REG, .name = decl->var->name };
	struct param *given = actual->name ? param_of(w, actual->name) : NULL;
	struct gsr_arena *a = w->p->arena;
	const char *type = decl->var->type;

	if (given)
		given->used = true;
	if (is_param(decl->var) && given) {
		rename_all(g, decl->var->name, actual->name);
		gsr_remove(g, decl);
		return;
	}
	if (is_param(decl->var))
		add_param(w, decl)->used = true;
	if (actual->kind == GSR_OPND_SINK)
		return;
	if (is_param(decl->var)) {
		if (returned)
			insert_move(w, g, at,
				    gsr_sprintf(a, "ld.param.%s %%r, [%s];", type, decl->var->name),
				    actual, NULL);
		else
			insert_move(w, g, at,
				    gsr_sprintf(a, "st.param.%s [%s], %%r;", type, decl->var->name),
				    NULL, actual);
	} else if (given) {
		if (returned)
			insert_move(w, g, at,
				    gsr_sprintf(a, "st.param.%s [%s], %%r;", type, actual->name),
				    NULL, &formal);
		else
			insert_move(w, g, at,
				    gsr_sprintf(a, "ld.param.%s %%r, [%s];", type, actual->name),
				    &formal, NULL);
	} else if (!move_of(w, decl->var)) {
		w->why = gsr_sprintf(
			a,
			"parameter of type %s of a device function that ends threads or "
			"holds barriers",
			type);
	} else {
		insert_move(w, g, at, gsr_sprintf(a, "%s %%r, %%q;", move_of(w, decl->var)),
			    returned ? actual : &formal, returned ? &formal : actual);
	}
}

/* Returns the first statement of the inlined body */
static struct gsr_stmt *replace_call(struct calls *w, struct gsr_stmt *call, struct gsr_fn *callee)
{
	struct gsr_operand *rets = NULL, *args = NULL;
	struct gsr_function g, *f = w->fn->f;
	struct gsr_insn *insn = call->insn;
	struct gsr_stmt *decl, *next, *first, *s;
	unsigned int i, n_rets = 0, n_args = 0, out = ++w->p->unique;
	bool before = true;

	for (i = 0; i < insn->n_opnds; i++) {
		if (insn->opnds[i].kind == GSR_OPND_SYM)
			before = false;
		if (insn->opnds[i].kind != GSR_OPND_LIST)
			continue;
		if (before) {
			rets = insn->opnds[i].items;
			n_rets = insn->opnds[i].n_items;
		} else {
			args = insn->opnds[i].items;
			n_args = insn->opnds[i].n_items;
		}
	}
	if (n_rets != callee->f->n_rets || n_args != callee->f->n_params) {
		w->why = gsr_sprintf(w->p->arena, "call of %s with other parameters than it has",
				     callee->f->name);
		return call;
	}
	copy_body(w, callee->f, &g);
	gsr_insert(w->p, &g, NULL, gsr_sprintf(w->p->arena, "$#out_%u:", out));
	/* variables come first; moves of parameters follow them */
	for (s = g.first, i = 0; i < n_args + n_rets; i++)
		s = s->next;
	for (decl = g.first, i = 0; i < n_args + n_rets; i++, decl = next) {
		next = decl->next;
		bind_param(w, &g, decl, i < n_args ? &args[i] : &rets[i - n_args],
			   i < n_args ? s : NULL, i >= n_args);
	}
	for (s = g.first; s; s = s->next) {
		w->n_statements++;
		if (s->kind == GSR_STMT_VAR && is_param(s->var) && !param_of(w, s->var->name))
			add_param(w, s);
		if (s->kind != GSR_STMT_INSN || s->insn->op != GSR_OP_RET)
			continue;
		s->insn->op = GSR_OP_BRA;
		s->insn->name = gsr_intern_str(w->p->arena, "bra");
		s->insn->n_opnds = 1;
		s->insn->opnds = gsr_alloc(w->p->arena, sizeof(*s->insn->opnds));
		s->insn->opnds->kind = GSR_OPND_SYM;
		s->insn->opnds->name = gsr_intern_str(
			w->p->arena, gsr_expand(w->p, gsr_sprintf(w->p->arena, "$#out_%u", out)));
	}
	if (insn->guard) {
		gsr_insert(w->p, f, call, gsr_sprintf(w->p->arena, "bra $#out_%u;", out));
		call->prev->insn->guard = insn->guard;
		call->prev->insn->guard_negated = !insn->guard_negated;
	}
	first = g.first;
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): there is always the label */
	first->prev = call->prev;
	if (call->prev)
		call->prev->next = first;
	else
		f->first = first;
	g.last->next = call;
	call->prev = g.last;
	gsr_remove(f, call);
	return first;
}

/* Notes how a variable that passed parameters is used, and whether a register can replace it */
static void note_access(struct calls *w, const struct gsr_insn *insn)
{
	unsigned int i, k;

	for (i = 0; i < insn->n_opnds; i++) {
		const struct gsr_operand *o = &insn->opnds[i];
		bool moves = (insn->op == GSR_OP_LD || insn->op == GSR_OP_ST) &&
			     o->kind == GSR_OPND_ADDR;
		struct param *v = o->name ? param_of(w, o->name) : NULL;

		if (v && v->used)
			v->wrong =
				"address of a parameter of a device function that ends threads "
				"or holds barriers";
		for (k = 0; k < o->n_items; k++) {
			unsigned int size;

			v = o->items[k].name ? param_of(w, o->items[k].name) : NULL;
			if (!v || !v->used)
				continue;
			if (!moves || o->indexed) {
				v->wrong =
					insn->op == GSR_OP_CALL ?
						"parameter variable of several calls" :
						"address of a parameter of a device function that "
						"ends threads or holds barriers";
				continue;
			}
			size = insn->n_mods ? gsr_type_size(insn->mods[insn->n_mods - 1]) : 0;
			if (o->ival || insn->opnds[0].kind == GSR_OPND_VEC ||
			    insn->opnds[insn->n_opnds - 1].kind == GSR_OPND_VEC ||
			    v->decl->var->n_dims || size != gsr_type_size(v->decl->var->type) ||
			    (size != 4 && size != 8))
				v->memory = true;
		}
	}
}

/* The width of a declared register; 0: unknown */
static unsigned int bits_of(const char *name)
{
	unsigned long m = *gsr_intern_mark(name);

	return (m & ~MARK_INDEX) == MARK_REG ? (unsigned int)(m & MARK_INDEX) : 0;
}

static unsigned int register_bits(struct gsr_arena *a, const char *name)
{
	size_t n = strlen(name);
	unsigned int bits = bits_of(name);

	while (n && name[n - 1] >= '0' && name[n - 1] <= '9')
		n--;
	return bits || !name[n] ? bits : bits_of(gsr_intern(a, name, n));
}

static void change_access(struct calls *w, struct gsr_insn *insn)
{
	struct gsr_arena *a = w->p->arena;
	struct gsr_operand *addr;
	struct param *v = NULL;
	unsigned int i;

	if ((insn->op != GSR_OP_LD && insn->op != GSR_OP_ST) || insn->n_opnds != 2)
		return;
	addr = &insn->opnds[insn->op == GSR_OP_LD];
	if (addr->kind == GSR_OPND_ADDR && addr->n_items && addr->items[0].name)
		v = param_of(w, addr->items[0].name);
	if (!v || !v->used)
		return;
	if (v->memory) {
		for (i = 0; i < insn->n_mods; i++)
			if (!strncmp(insn->mods[i], "param", 5))
				gsr_set_mod(insn, i, gsr_intern_str(a, "local"));
		return;
	}
	insn->name = gsr_intern_str(a, "mov");
	insn->op = GSR_OP_MOV;
	gsr_set_mod(insn, 0,
		    gsr_intern_str(a, gsr_type_size(v->decl->var->type) == 4 ? "b32" : "b64"));
	insn->n_mods = 1;
	*addr = (struct gsr_operand){ .kind = GSR_OPND_REG, .name = v->decl->var->name };
}

/* ld may fill a wider register than it loads, mov may not */
static bool wider(struct calls *w, const struct gsr_insn *insn)
{
	const struct gsr_operand *value =
		insn->op == GSR_OP_LD ? &insn->opnds[0] : &insn->opnds[insn->n_opnds - 1];
	unsigned int size = insn->n_mods ? gsr_type_size(insn->mods[insn->n_mods - 1]) : 0;

	return value->kind == GSR_OPND_REG && register_bits(w->p->arena, value->name) != size * 8;
}

/* Variables of replaced calls become registers or local memory */
static void change_params(struct calls *w)
{
	struct gsr_stmt *s;
	unsigned int i, k;

	for (s = w->fn->f->first; s; s = s->next)
		if (s->kind == GSR_STMT_INSN)
			note_access(w, s->insn);
		else if (s->kind == GSR_STMT_VAR && !strcmp(s->var->space, "reg"))
			*gsr_intern_mark(s->var->name) =
				MARK_REG | (gsr_type_size(s->var->type) * 8);
	for (s = w->fn->f->first; s; s = s->next)
		for (i = 0; s->kind == GSR_STMT_INSN && i < s->insn->n_opnds; i++)
			for (k = 0; s->insn->opnds[i].kind == GSR_OPND_ADDR &&
				    k < s->insn->opnds[i].n_items;
			     k++) {
				const char *name = s->insn->opnds[i].items[k].name;
				struct param *v = name ? param_of(w, name) : NULL;

				if (v && v->used && wider(w, s->insn))
					v->memory = true;
			}
	for (i = 0; i < w->n_params; i++)
		if (w->params[i].used && w->params[i].wrong)
			w->why = w->params[i].wrong;
	if (w->why)
		return;
	for (s = w->fn->f->first; s; s = s->next)
		if (s->kind == GSR_STMT_INSN)
			change_access(w, s->insn);
	for (i = 0; i < w->n_params; i++) {
		struct gsr_var *v = w->params[i].decl->var;

		if (!w->params[i].used)
			continue;
		if (w->params[i].memory) {
			v->space = "local";
		} else {
			v->space = "reg";
			v->type = gsr_type_size(v->type) == 4 ? "b32" : "b64";
			v->align = 0;
		}
		v->attrs = NULL;
	}
}

static bool reaches(struct gsr_pass *p, struct gsr_fn *from, const struct gsr_fn *to)
{
	struct gsr_closure c = gsr_closure(p, from);
	unsigned int i, k;

	for (i = 0; i < c.n; i++)
		for (k = 0; k < c.fns[i]->has.refs.n; k++)
			if (c.fns[i]->has.refs.at[k] == to)
				return true;
	return false;
}

static const char *name_of(enum gsr_inline which)
{
	return which == GSR_INLINE_EXITS    ? "exit" :
	       which == GSR_INLINE_BARRIERS ? "early returns and barriers" :
	       which == GSR_INLINE_TEXTURES ? "texture or surface references" :
					      "early returns and warp-synchronous instructions";
}

static void merge_vars(struct gsr_arena *a, struct gsr_vars *to, const struct gsr_vars *from)
{
	unsigned int i;

	for (i = 0; i < from->n; i++)
		gsr_vars_add(a, to, from->at[i]);
}

/* What the text of the inlined function has, the kernel's has now */
static void merge_facts(struct gsr_arena *a, struct gsr_facts *to, const struct gsr_facts *from)
{
	unsigned int i;

	for (i = 0; i < from->refs.n; i++)
		gsr_fns_add(a, &to->refs, from->refs.at[i]);
	merge_vars(a, &to->vars, &from->vars);
	merge_vars(a, &to->globals, &from->globals);
	merge_vars(a, &to->textures, &from->textures);
	to->barriers += from->barriers;
	to->counted |= from->counted;
	to->warp_sync = to->warp_sync ? to->warp_sync : from->warp_sync;
	to->ids |= from->ids;
	to->indirect |= from->indirect;
	to->takes_address |= from->takes_address;
	to->dynamic_size |= from->dynamic_size;
	to->constants |= from->constants;
	to->shared |= from->shared;
	to->shared_access |= from->shared_access;
	to->cp_async |= from->cp_async;
	to->matrices |= from->matrices;
	to->bulk |= from->bulk;
	to->mbarriers |= from->mbarriers;
}

/* Does the kernel still name the function? Not all calls of small functions are inlined */
static bool still_named(const struct gsr_fn *fn, const struct gsr_fn *to)
{
	const struct gsr_stmt *s;

	for (s = fn->f->first; s; s = s->next) {
		const struct gsr_fn *callee;
		unsigned int k = 0;

		if (s->kind == GSR_STMT_DIRECTIVE && strstr(s->text, ".calltargets"))
			return true;
		while (s->kind == GSR_STMT_INSN && (callee = gsr_callee(fn, s->insn, &k)))
			if (callee == to)
				return true;
	}
	return false;
}

static void drop_inlined_refs(struct gsr_fn *fn, enum gsr_inline which)
{
	unsigned int i, n = 0;

	for (i = 0; i < fn->has.refs.n; i++)
		if (!wanted(fn->has.refs.at[i], which) ||
		    (which == GSR_INLINE_SMALL && still_named(fn, fn->has.refs.at[i])))
			fn->has.refs.at[n++] = fn->has.refs.at[i];
	fn->has.refs.n = n;
}

bool gsr_stays_function(const struct gsr_facts *has)
{
	return has->address_taken || has->alloca || has->keeps_shared;
}

bool gsr_not_inlinable(struct gsr_pass *p, struct gsr_fn *fn)
{
	return gsr_stays_function(&fn->has) || reaches(p, fn, fn);
}

/* Why a function cannot be inlined, or NULL; *@n: the number of functions to inline */
static const char *find_obstacle(struct gsr_pass *p, const struct gsr_closure *c,
				 enum gsr_inline which, unsigned int *n)
{
	unsigned int i;

	for (i = 1; i < c->n; i++) {
		if (!wanted(c->fns[i], which))
			continue;
		++*n;
		if (gsr_stays_function(&c->fns[i]->has))
			return gsr_sprintf(p->arena, "%s in the function %s, %s", name_of(which),
					   c->fns[i]->f->name,
					   c->fns[i]->has.alloca ? "which allocates on the stack" :
					   c->fns[i]->has.address_taken ?
							       "whose address is taken" :
							       "which declares shared memory");
		if (which == GSR_INLINE_TEXTURES &&
		    (c->fns[i]->plan.may_exit || c->fns[i]->plan.swbarrier))
			return gsr_sprintf(
				p->arena,
				"%s in the function %s, which ends threads or holds barriers",
				name_of(which), c->fns[i]->f->name);
		if (reaches(p, c->fns[i], c->fns[i]))
			return gsr_sprintf(p->arena, "%s in the recursive function %s",
					   name_of(which), c->fns[i]->f->name);
	}
	return NULL;
}

bool gsr_can_inline(struct gsr_pass *p, const struct gsr_closure *c, enum gsr_inline which)
{
	unsigned int n = 0;

	return !find_obstacle(p, c, which, &n) && n;
}

const char *gsr_inline(struct gsr_pass *p, struct gsr_fn *fn, enum gsr_inline which)
{
	struct calls w = { .p = p, .fn = fn, .which = which };
	struct gsr_closure c = gsr_closure(p, fn);
	struct gsr_stmt *s, *next;
	unsigned int i, n = 0;
	const char *why = find_obstacle(p, &c, which, &n);

	/* small ones are not removed elsewhere, so nothing speaks against inlining them here */
	if (why && which != GSR_INLINE_SMALL)
		return why;
	gsr_flatten(p, fn->f, false);
	for (s = fn->f->first; s; s = s->next)
		if (s->kind == GSR_STMT_VAR && is_param(s->var))
			add_param(&w, s);
	for (s = fn->f->first; s && !w.why; s = next) {
		struct gsr_fn *callee;
		unsigned int k = 0;

		next = s->next;
		callee = s->kind == GSR_STMT_INSN ? gsr_callee(fn, s->insn, &k) : NULL;
		if (!callee || !wanted(callee, which) ||
		    (which == GSR_INLINE_SMALL && !s->insn->devirtualised))
			continue;
		if (which == GSR_INLINE_SMALL && w.n_statements > SMALL_MAX)
			break;
		if (w.n_statements > STATEMENTS_MAX)
			return gsr_sprintf(p->arena,
					   "%s in device functions that are called too often",
					   name_of(which));
		merge_facts(p->arena, &fn->has, &callee->has);
		fn->done.ids |= callee->done.ids;
		fn->done.mbarriers |= callee->done.mbarriers;
		fn->refusal = fn->refusal ? fn->refusal : callee->refusal;
		next = replace_call(&w, s, callee);
	}
	if (!w.why)
		change_params(&w);
	for (i = 0; i < w.n_params; i++)
		*gsr_intern_mark(w.params[i].decl->var->name) = 0;
	drop_inlined_refs(fn, which);
	/* a graph that does not exist yet is built later */
	if (!w.why && fn->graph.valid)
		gsr_graph(p, fn);
	else if (!w.why && fn->f->writers)
		gsr_find_writers(p->arena, fn->f);
	return w.why;
}

static bool is_formal(const struct gsr_function *f, const char *name)
{
	unsigned int i;

	for (i = 0; i < f->n_rets + f->n_params; i++)
		if ((i < f->n_rets ? &f->rets[i] : &f->params[i - f->n_rets])->name == name)
			return true;
	return false;
}

/* A word that a register can hold */
static bool simple_formal(const struct gsr_var *v)
{
	unsigned int size = gsr_type_size(v->type);

	return is_param(v) && !v->n_dims && !v->vec && (size == 4 || size == 8);
}

/* Are formal parameters only loaded and stored? */
static bool simple_use(const struct gsr_function *f, const struct gsr_insn *insn)
{
	unsigned int i, k;

	for (i = 0; i < insn->n_opnds; i++) {
		const struct gsr_operand *o = &insn->opnds[i];
		bool moved = o->kind == GSR_OPND_ADDR && !o->indexed &&
			     gsr_insn_has(insn, "param") && insn->n_opnds == 2 &&
			     i == (insn->op == GSR_OP_LD);

		if (o->name && is_formal(f, o->name))
			return false;
		for (k = 0; k < o->n_items; k++)
			if (o->items[k].name && is_formal(f, o->items[k].name) && !(moved && !k))
				return false;
	}
	return true;
}

static bool simple_uses(const struct gsr_function *f)
{
	const struct gsr_stmt *s;

	for (s = f->first; s; s = s->next)
		if (s->kind == GSR_STMT_INSN && !simple_use(f, s->insn))
			return false;
	return true;
}

/* Short, and independent of the function that contains it */
static bool is_small(const struct gsr_fn *fn)
{
	const struct gsr_facts *has = &fn->has;
	const struct gsr_function *f = fn->f;
	const struct gsr_stmt *s;
	unsigned int i, n = 0;

	if (!f->body || f->entry || fn->refusal || has->refs.n || has->barriers ||
	    has->warp_sync || has->exits || has->alloca || has->keeps_shared)
		return false;
	for (i = 0; i < f->n_rets + f->n_params; i++)
		if (!simple_formal(i < f->n_rets ? &f->rets[i] : &f->params[i - f->n_rets]))
			return false;
	for (s = f->first; s; s = s->next) {
		if (s->kind == GSR_STMT_DIRECTIVE && s->text[0] != '.')
			return false;
		if (s->kind == GSR_STMT_INSN && ++n > SMALL_INSNS)
			return false;
	}
	return simple_uses(f);
}

static bool exits_or_syncs(const struct gsr_summary *any)
{
	return any->exit || any->plain;
}

static bool calls_exiting_or_syncing(const struct gsr_fns *refs)
{
	unsigned int i;

	for (i = 0; i < refs->n && !exits_or_syncs(&refs->at[i]->any); i++)
		;
	return i < refs->n;
}

/*
 * Functions of devirtualised calls that exit threads or have barriers need not be inlined, as
 * little as others whose address is taken. They are inlined if that is possible and kernels do not
 * grow much; otherwise they are marked as if their address was taken.
 */
void gsr_inline_prepare(struct gsr_pass *p)
{
	const struct gsr_stmt *s;
	unsigned long n = 0;
	struct gsr_fn *fn;

	for (fn = p->fns; fn < p->fns + p->n_fns; fn++)
		if (fn->done.devirtualised && exits_or_syncs(&fn->any))
			for (s = fn->f->first; s; s = s->next)
				n += fn->done.devirtualised;
	for (fn = p->fns; fn < p->fns + p->n_fns; fn++)
		if (fn->done.devirtualised && exits_or_syncs(&fn->any))
			fn->has.address_taken |= n > SMALL_MAX ||
						 calls_exiting_or_syncing(&fn->has.refs) ||
						 !simple_uses(fn->f);
}

static bool calls_small(const struct gsr_fn *fn)
{
	const struct gsr_fn *callee;
	const struct gsr_stmt *s;

	for (s = fn->f->first; s; s = s->next) {
		unsigned int k = 0;

		callee = s->kind == GSR_STMT_INSN && s->insn->devirtualised ?
				 gsr_callee(fn, s->insn, &k) :
				 NULL;
		if (callee && callee->plan.small)
			return true;
	}
	return false;
}

void gsr_inline_small(struct gsr_pass *p)
{
	unsigned int i;

	for (i = 0; i < p->n_fns; i++)
		p->fns[i].plan.small = is_small(&p->fns[i]);
	for (i = 0; i < p->n_fns; i++) {
		struct gsr_fn *fn = &p->fns[i];

		if (fn->f->entry && fn->has.unresolved.n && !fn->refusal && calls_small(fn))
			fn->refusal = gsr_inline(p, fn, GSR_INLINE_SMALL);
	}
}
