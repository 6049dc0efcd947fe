// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The passes in order, and the module that holds the twins.
 *
 * In: PTX text and options. Out: one module with the twins, as PTX text, and a description of
 * every kernel. prepare_module() is what is done once a module, the table of passes what is done
 * for each kernel. Assumes nothing of the input: what cannot be rewritten is refused by kernel.
 */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "rewriter/runtime/runtime.h"

#define INPUT_MAX	(256u << 20)

struct job {
	struct gsr_pass p;
	struct gsr_rewrite *out;
	unsigned int n;
	bool resumable;
	bool suffixed;			/* some name may be a twin's */
	bool files, names;		/* what line information refers to is there */
	struct gsr_module printed;
	struct gsr_own own;		/* the module's own shared variables: what some twin needs */
	bool common;			/* some twin has them there */
	bool wide;			/* they are aligned */
	bool naps;			/* some twin naps, or asks who is active */
};

/* A prefix that no name of the input contains */
static const char *choose_prefix(struct gsr_arena *a, const char *text, size_t size)
{
	unsigned int i;
	const char *prefix = GSR_PREFIX;

	for (i = 0; memmem(text, size, prefix, strlen(prefix)); i++)
		prefix = gsr_sprintf(a, "__gsr%u_", i);
	return prefix;
}

static struct gsr_item *append(struct gsr_pass *p, struct gsr_module *out, enum gsr_item_kind kind)
{
	struct gsr_item *i = gsr_alloc(p->arena, sizeof(*i));

	i->kind = kind;
	if (out->last)
		out->last->next = i;
	else
		out->first = i;
	out->last = i;
	return i;
}

static bool is_shared(const struct gsr_var *v)
{
	return !strcmp(v->space, "shared");
}

static bool is_file(const struct gsr_item *i)
{
	return i->kind == GSR_ITEM_DIRECTIVE && !strncmp(i->text, ".file", 5);
}

/*
 * Names of inlined functions, which .loc refers to. The other debugging sections describe code that
 * is not in the module
 */
static bool is_names(const struct gsr_item *i)
{
	return i->kind == GSR_ITEM_DIRECTIVE && !strncmp(i->text, ".section", 8) && strstr(i->text, ".debug_str") &&
	       strcspn(i->text, "{") > (size_t)(strstr(i->text, ".debug_str") - i->text);
}

/* Line information that refers to what the module does not have */
static void drop_lines(struct gsr_function *f, bool files, bool names)
{
	struct gsr_stmt *s, *next;

	for (s = f->first; s; s = next) {
		next = s->next;
		if (s->kind == GSR_STMT_DIRECTIVE && !strncmp(s->text, ".loc", 4) &&
		    (!files || (!names && strstr(s->text, "function_name"))))
			gsr_remove(f, s);
	}
}

static void add_parameters(struct gsr_pass *p, struct gsr_function *f, unsigned int n_references)
{
	struct gsr_var *params = gsr_alloc_array(p->arena, f->n_params + 2, sizeof(*params));

	if (f->n_params)
		memcpy(params, f->params, f->n_params * sizeof(*params));
	if (n_references)
		params[f->n_params++] = (struct gsr_var){
			.space = "param", .align = 8, .type = "b8", .name = gsr_expand(p, "#references"),
			.dims = { 8 * n_references }, .n_dims = 1,
		};
	params[f->n_params++] = (struct gsr_var){
		.space = "param", .align = 16, .type = "b8", .name = gsr_expand(p, "#launch"),
		.dims = { sizeof(struct gsr_launch) }, .n_dims = 1,
	};
	f->params = params;
}

/*
 * The module's own shared variables. Where dynamic shared memory must stay aligned they come behind
 * all others of the module, which are moved to the front: they have no initializers.
 */
static void add_own(struct job *j, struct gsr_module *out)
{
	struct gsr_pass *p = &j->p;
	struct gsr_var **vars;
	struct gsr_item *i;
	unsigned int n, k;

	for (i = p->m->first; i && j->wide; i = i->next)
		if (i->kind == GSR_ITEM_VAR && is_shared(i->var) && *gsr_intern_mark(i->var->name))
			append(p, out, GSR_ITEM_VAR)->var = i->var;
	if (!j->common)
		return;
	vars = gsr_own_module(p, &j->own, j->wide, &n);
	for (k = 0; k < n; k++)
		append(p, out, GSR_ITEM_VAR)->var = vars[k];
}

static void add_globals(struct job *j, struct gsr_module *out)
{
	struct gsr_pass *p = &j->p;
	struct gsr_var *table = gsr_alloc(p->arena, sizeof(*table));
	struct gsr_var **copies = gsr_alloc_array(p->arena, p->n_globals + 1, sizeof(struct gsr_var *));
	unsigned int i;

	if (!p->n_globals)
		return;
	gsr_globals_finish(p, j->out, copies, table);
	for (i = 0; i < p->n_globals; i++)
		if (copies[i])
			append(p, out, GSR_ITEM_VAR)->var = copies[i];
	append(p, out, GSR_ITEM_VAR)->var = table;
}

/*
 * Functions that are called by number, where the original has only a variable's word for it, may
 * stand behind who calls them
 */
static void declare_numbered(struct gsr_pass *p, struct gsr_module *out)
{
	const struct gsr_fnptr *slot;

	for (slot = p->fnptrs; slot; slot = slot->next) {
		const struct gsr_item *i = p->m->first;
		struct gsr_function *f;

		if (!slot->number || !*gsr_intern_mark(slot->fn->f->name))
			continue;
		while (i && (i->kind != GSR_ITEM_FUNCTION || i->function->name != slot->fn->f->name))
			i = i->next;
		if (!i || !i->function->body)
			continue;
		f = append(p, out, GSR_ITEM_FUNCTION)->function = gsr_alloc(p->arena, sizeof(*f));
		*f = *i->function;
		f->body = false;
		f->first = f->last = NULL;
	}
}

/*
 * What the twins need, in the input's order, which declares before use; names that carry the mark
 * are needed
 */
static void assemble(struct job *j, struct gsr_module *out, const struct gsr_closure *all, unsigned int n_all)
{
	struct gsr_pass *p = &j->p;
	unsigned int k, c, v;
	struct gsr_item *i;

	for (i = p->m->first; i; i = i->next) {
		if (i->kind == GSR_ITEM_FUNCTION)
			*gsr_intern_mark(i->function->name) = 0;
		else if (i->kind == GSR_ITEM_VAR)
			*gsr_intern_mark(i->var->name) = 0;
	}
	for (c = 0; c < n_all; c++)
		for (k = 0; k < all[c].n; k++) {
			*gsr_intern_mark(all[c].fns[k]->f->name) = 1;
			for (v = 0; v < all[c].fns[k]->n_vars; v++)
				*gsr_intern_mark(all[c].fns[k]->vars[v]->name) = 1;
		}
	add_own(j, out);
	add_globals(j, out);
	declare_numbered(p, out);
	for (i = p->m->first; i; i = i->next) {
		if (i->kind == GSR_ITEM_DIRECTIVE && (!strncmp(i->text, ".pragma", 7) || is_file(i) || is_names(i)))
			append(p, out, GSR_ITEM_DIRECTIVE)->text = i->text;
		else if (i->kind == GSR_ITEM_VAR && *gsr_intern_mark(i->var->name) && !(j->wide && is_shared(i->var)))
			append(p, out, GSR_ITEM_VAR)->var = i->var;
		/* an entry has changed its name: its forward declaration is of no use */
		else if (i->kind == GSR_ITEM_FUNCTION && *gsr_intern_mark(i->function->name) &&
			 (i->function->body || !i->function->entry))
			append(p, out, GSR_ITEM_FUNCTION)->function = i->function;
	}
}

/*
 * Barriers in inner scopes, or for a resumable twin anything: labels there cannot be jumped to, and
 * what a name means must be known from the name
 */
static bool in_scopes(const struct gsr_function *f, bool anything)
{
	const struct gsr_stmt *s;
	unsigned int scope = 0;
	struct gsr_barrier b;

	for (s = f->first; s; s = s->next) {
		scope += s->kind == GSR_STMT_OPEN;
		scope -= s->kind == GSR_STMT_CLOSE;
		if (scope && (anything || (s->kind == GSR_STMT_INSN && (gsr_warp_sync(f, s->insn) || gsr_barrier_of(f, s->insn, &b)))))
			return true;
	}
	return false;
}

/* Threads that end in functions: these are shared between kernels, so each is changed once */
static unsigned int rewrite_exits(struct gsr_pass *p, struct gsr_fn *fn, const struct gsr_closure *c)
{
	unsigned int i, n = 0;

	for (i = 1; i < c->n; i++)
		if (c->fns[i]->ends && !c->fns[i]->exits_rewritten) {
			n += gsr_exits(p, c->fns[i]);
			c->fns[i]->exits_rewritten = true;
		}
	return n + gsr_exits(p, fn);
}

/*
 * What can be asked before anything is changed, but for functions that become part of the kernel. A
 * refusal or NULL.
 */
static const char *prepare(struct gsr_pass *p, struct gsr_fn *fn, struct gsr_closure *c, struct gsr_kernel *k, struct gsr_end *end,
			   bool resumable)
{
	enum gsr_inline wants = GSR_INLINE_NONE;
	const char *why = NULL;
	unsigned int i;

	for (i = 1; i < c->n; i++)
		if (c->fns[i]->any_exit && !c->fns[i]->ends)
			wants = GSR_INLINE_EXITS;
	do {
		if (wants != GSR_INLINE_NONE) {
			why = gsr_inline(p, fn, wants);
			*c = gsr_closure(p, fn);
		}
		if (!why && !k->inserted[GSR_INSERTED_EXITS] && gsr_ends(c))
			k->inserted[GSR_INSERTED_EXITS] = rewrite_exits(p, fn, c);
		if (!why)
			why = gsr_refusal(p, c, k);
		if (!why)
			why = gsr_mbarriers_refusal(p, c);
		if (!why)
			why = gsr_shared_room(p, c, 0);
		if (!why)
			why = gsr_barriers(c, end, &wants);
		/* handles are the kernel's parameters */
		if (!why && wants == GSR_INLINE_NONE && gsr_references_used(c) > fn->n_textures)
			wants = GSR_INLINE_TEXTURES;
		/* where block-tasks can be left; those of a software barrier are no barrier instructions any more */
		if (!why && wants == GSR_INLINE_NONE && resumable && !fn->swbarrier && !fn->warpsync && gsr_can_inline(p, c, GSR_INLINE_BARRIERS))
			wants = GSR_INLINE_BARRIERS;
	} while (!why && wants != GSR_INLINE_NONE);
	return why;
}

/* Likewise barriers that finished threads have no part in */
static void insert_swbarriers(struct gsr_pass *p, const struct gsr_closure *c, struct gsr_kernel *k)
{
	unsigned int i;

	/* their graphs, which are made again, tell where barriers stand that are still some */
	for (i = 0; i < c->n; i++)
		if (c->fns[i]->swbarrier)
			c->fns[i]->plain = c->fns[i]->any_plain = false;
	for (i = 0; i < c->n; i++)
		if (c->fns[i]->swbarrier && !c->fns[i]->swbarrier_inserted) {
			k->inserted[GSR_INSERTED_SITES] += gsr_swbarrier_insert(p, c->fns[i], &k->sites);
			c->fns[i]->swbarrier_inserted = true;
		}
}

/*
 * And instructions of lanes that finished ones are left out of. The kernel's own are known later,
 * with all that lets its threads end.
 */
static void insert_warpsync_in_functions(struct gsr_pass *p, const struct gsr_closure *c, struct gsr_kernel *k)
{
	unsigned int i;

	for (i = 0; i < c->n; i++) {
		struct gsr_fn *fn = c->fns[i];

		if (!fn->warpsync || fn->warpsync_inserted)
			continue;
		if (!fn->graph)
			gsr_graph(p, fn);
		k->inserted[GSR_INSERTED_SITES] += gsr_warpsync_insert(p, fn, i ? GSR_WARPSYNC_LANES | GSR_WARPSYNC_EXITS : GSR_WARPSYNC_EXITS, &k->sites);
		gsr_graph(p, fn);
		fn->warpsync_inserted = true;
	}
}

/* A function or variable of the module, which goes along with the twins */
static bool twin_named(const struct job *j, const struct gsr_fn *fn)
{
	const struct gsr_function *f;
	const char *name;

	if (!j->suffixed)
		return false;
	name = gsr_sprintf(j->p.arena, "%s" GSR_SUFFIX, fn->f->name);
	f = gsr_module_function(j->p.m, name);
	return (f && !f->entry) || gsr_module_var(j->p.m, name);
}

/*
 * Do functions name the twins' own shared variables? The ids that the kernel itself reads do not
 * count
 */
static bool functions_name_own(const struct gsr_closure *c, bool ids)
{
	unsigned int i;

	if (ids || gsr_ends(c) || c->fns[0]->swbarrier || c->fns[0]->warpsync)
		return true;
	for (i = 1; i < c->n; i++)
		if (c->fns[i]->mbarriers || c->fns[i]->mbarriers_listed)
			return true;
	return false;
}

/* A refusal or NULL */
static const char *align(struct gsr_pass *p, const struct gsr_closure *c, struct gsr_own *own, bool ids)
{
	unsigned int i;

	own->inside = !functions_name_own(c, ids);
	own->aligned = gsr_alignment_matters(c);
	for (i = 1; i < c->n && own->aligned && !own->inside; i++)
		if (c->fns[i]->keeps_shared)
			return "relies on how shared memory is aligned, beside functions with shared variables of their own";
	return gsr_shared_room(p, c, own->own_warpsync + (!own->aligned ? 0 : own->inside ? GSR_ALIGNED : GSR_OWN_MAX * GSR_ALIGNED));
}

/* ---- one kernel ---- */

/* A kernel on its way to its twin: what passes learn for those that come after them */
struct twin {
	struct job *j;
	struct gsr_fn *fn;
	struct gsr_closure c;		/* @fn, and all that it needs */
	struct gsr_kernel *k;		/* its description */
	struct gsr_own *own;
	unsigned int facts;		/* enum fact: what is known now */
	struct gsr_end end;
	struct gsr_left left;
	struct gsr_ids ids;
	struct gsr_sites sites;
	struct gsr_resume *resume;	/* NULL: it can be left between block-tasks only */
};

enum fact {
	FUNCTIONS = 1 << 0,		/* functions that stay functions wait in their final form */
	GRAPHS = 1 << 1,		/* the functions' graphs are those of their text */
	END = 1 << 2,			/* .end; and the kernel is not refused */
	ROOM = 1 << 3,			/* .own: which shared variables the twin has, and where */
	LEFT = 1 << 4,			/* .left, .ids, and .k->waits */
	FLAT = 1 << 5,			/* no inner scope where one would be in the way */
	PLAN = 1 << 6,			/* .resume */
	POINTS = 1 << 7,		/* where a block-task can be left is in the text */
	CONVERTED = 1 << 8,		/* .sites: no barrier of the text waits for finished threads */
	IDS = 1 << 9,			/* %ctaid and %nctaid are nowhere read */
	SHARED = 1 << 10,		/* the module's variables are reached through the table */
	LOOP = 1 << 11,			/* the worker's life stands around the body */
};

/* In functions that stay functions; a kernel with such functions is asked first what it waits for */
static const char *change_functions(struct twin *t)
{
	struct gsr_pass *p = &t->j->p;
	struct gsr_fn *fn = t->fn;

	/* the twin's own waits are for the block's own threads */
	if (fn->swbarrier || fn->warpsync) {
		if (!fn->graph)
			gsr_graph(p, fn);
		t->k->waits = gsr_may_spin(p, &t->c);
	}
	if (fn->swbarrier)
		insert_swbarriers(p, &t->c, t->k);
	if (fn->warpsync)
		insert_warpsync_in_functions(p, &t->c, t->k);
	return NULL;
}

static const char *make_graphs(struct twin *t)
{
	unsigned int i;

	for (i = 0; i < t->c.n; i++)
		if (t->c.fns[i]->f->body && !t->c.fns[i]->graph)
			gsr_graph(&t->j->p, t->c.fns[i]);
	return NULL;
}

static const char *decide_end(struct twin *t)
{
	return prepare(&t->j->p, t->fn, &t->c, t->k, &t->end, t->j->resumable);
}

static const char *make_room(struct twin *t)
{
	unsigned int i;

	if (t->end.warpsync && !t->fn->warpsync)
		t->own->own_warpsync = gsr_warpsync_size(t->fn->f);
	for (i = 0; i < t->c.n; i++)
		t->ids.shared |= t->c.fns[i]->loads_ids || (i && t->c.fns[i]->reads_ids);
	return align(&t->j->p, &t->c, t->own, t->ids.shared);
}

static const char *note_left(struct twin *t)
{
	struct gsr_left *left = &t->left;
	struct gsr_fn *fn = t->fn;
	unsigned int i;

	left->alloca = fn->alloca;
	left->swbarrier = fn->swbarrier;
	left->warpsync = fn->warpsync ? gsr_warpsync_init : t->own->own_warpsync ? gsr_warpsync_init_own : NULL;
	t->k->early_return = t->end.early || t->end.warps || left->swbarrier || left->warpsync;
	t->k->warp_rows = t->end.rows;
	t->k->waits = left->swbarrier || fn->warpsync ? t->k->waits : gsr_may_spin(&t->j->p, &t->c);
	t->ids.alone = true;
	for (i = 0; i < t->c.n; i++) {
		fn = t->c.fns[i];
		left->cp_async |= fn->cp_async;
		left->bulk |= fn->bulk;
		left->mbarriers |= fn->mbarriers || fn->mbarriers_listed;
		t->ids.alone &= !fn->shared && !fn->n_vars && !fn->barriers && !left->cp_async && !left->bulk &&
				!left->mbarriers;
	}
	return NULL;
}

static const char *flatten(struct twin *t)
{
	if ((t->k->early_return || t->j->resumable) && in_scopes(t->fn->f, t->j->resumable)) {
		gsr_flatten(&t->j->p, t->fn->f, false);
		gsr_graph(&t->j->p, t->fn);
	}
	return NULL;
}

static const char *plan_resume(struct twin *t)
{
	struct gsr_kernel *k = t->k;

	if (!t->j->resumable)
		return NULL;
	if (t->end.warps || t->left.warpsync)
		k->resume_reason = "lanes may be finished while others of the warp wait for it";
	else if (t->left.swbarrier)
		k->resume_reason = "barriers that finished threads have no part in, in functions";
	else
		t->resume = gsr_resume_plan(&t->j->p, t->fn, &t->c, t->end.early, t->end.id, &k->warp_rows, &k->resume_reason);
	if (t->resume) {
		k->resume_points = t->resume->n_points;
		k->save_fixed = t->resume->fixed;
		k->save_thread = 4 * t->resume->words;
	}
	return NULL;
}

static const char *insert_points(struct twin *t)
{
	if (t->resume)
		t->k->inserted[GSR_INSERTED_RESUME] += gsr_resume_points(&t->j->p, t->fn->f, t->resume);
	return NULL;
}

static const char *convert_barriers(struct twin *t)
{
	enum gsr_warpsync what = GSR_WARPSYNC_LANES | (t->own->own_warpsync ? GSR_WARPSYNC_EXITS : 0);
	unsigned int *inserted = &t->k->inserted[GSR_INSERTED_SITES];
	struct gsr_pass *p = &t->j->p;

	if (t->end.warpsync)
		*inserted += gsr_warpsync_insert(p, t->fn, what, &t->k->sites);
	if (t->end.warps)
		*inserted += gsr_convert_warps(p, t->fn, &t->sites);
	if (t->end.early || (t->resume && !t->resume->in_place))
		*inserted += gsr_convert_barriers(p, t->fn->f, &t->sites, t->resume);
	t->k->sites += t->sites.n + t->sites.warps;
	return NULL;
}

/* Functions are shared between kernels: each is changed once, here and below */
static const char *replace_ids(struct twin *t)
{
	const char *refusal = NULL;
	unsigned int i;

	if (t->ids.shared) {
		t->ids.held = GSR_IDS_ALL;
		t->ids.alone = false;
	}
	t->ids.aside = !t->ids.shared && !t->left.mbarriers;
	for (i = 0; i < t->c.n && !refusal; i++) {
		struct gsr_fn *fn = t->c.fns[i];

		if (!fn->reads_ids)
			continue;
		t->k->inserted[GSR_INSERTED_IDS] += gsr_blockids(&t->j->p, fn->f, i || t->resume ? NULL : &t->ids, &refusal);
		fn->reads_ids = false;
		fn->loads_ids = true;
		if (refusal)
			fn->refusal = refusal;
	}
	return refusal;
}

static const char *share_variables(struct twin *t)
{
	unsigned int *inserted = &t->k->inserted[GSR_INSERTED_VARIABLES], i;
	struct gsr_pass *p = &t->j->p;

	for (i = 0; i < t->c.n; i++) {
		struct gsr_fn *fn = t->c.fns[i];

		if (fn->shares || (!fn->n_globals && !fn->constants))
			continue;
		*inserted += gsr_globals(p, fn) + fn->translated;
		fn->shares = true;
	}
	gsr_globals_list(p, &t->c, t->k);
	*inserted += gsr_references(p, t->fn, t->k);
	return NULL;
}

static const char *note_mbarriers(struct twin *t)
{
	unsigned int i;

	for (i = 0; i < t->c.n; i++)
		if (t->c.fns[i]->mbarriers)
			t->k->inserted[GSR_INSERTED_MBARRIERS] += gsr_mbarriers(&t->j->p, t->c.fns[i]);
	return NULL;
}

static const char *replace_returns(struct twin *t)
{
	gsr_returns(&t->j->p, t->fn->f, &t->k->returns);
	return NULL;
}

static const char *write_loop(struct twin *t)
{
	t->k->inserted[GSR_INSERTED_LOOP] += gsr_loop(&t->j->p, t->fn->f, &t->sites, &t->left, &t->ids, t->end.id, t->resume);
	return NULL;
}

static const char *declare_own(struct twin *t)
{
	struct gsr_own *own = t->own;
	struct job *j = t->j;

	own->mbarriers = t->left.mbarriers;
	own->swbarrier = t->left.swbarrier;
	own->warpsync = t->fn->warpsync;
	own->ended = gsr_ends(&t->c);
	gsr_own_declare(&j->p, t->fn->f, own);
	add_parameters(&j->p, t->fn->f, t->k->n_references);
	j->naps |= t->left.swbarrier || t->left.warpsync;
	if (!own->inside) {
		j->common = true;
		j->wide |= own->aligned;
		j->own.mbarriers |= own->mbarriers;
		j->own.swbarrier |= own->swbarrier;
		j->own.warpsync |= own->warpsync;
		j->own.ended |= own->ended;
	}
	return NULL;
}

static const char *mend_lines(struct twin *t)
{
	struct job *j = t->j;
	unsigned int i;

	for (i = 0; i < t->c.n && (!j->files || !j->names); i++)
		if (t->c.fns[i]->lines) {
			drop_lines(t->c.fns[i]->f, j->files, j->names);
			t->c.fns[i]->lines = false;
		}
	return NULL;
}

/* How a kernel becomes a twin. A pass returns a refusal, which ends it, or NULL. */
static const struct {
	const char *name;
	unsigned int requires, gives;
	const char *(*run)(struct twin *t);
} passes[] = {
	{ "functions", 0, FUNCTIONS, change_functions },
	{ "graphs", FUNCTIONS, GRAPHS, make_graphs },
	{ "end", GRAPHS, END, decide_end },
	{ "room", END, ROOM, make_room },
	{ "left", END | ROOM, LEFT, note_left },
	{ "flatten", LEFT, FLAT, flatten },
	{ "plan", LEFT | FLAT, PLAN, plan_resume },
	{ "points", PLAN, POINTS, insert_points },
	{ "barriers", END | FLAT | POINTS, CONVERTED, convert_barriers },
	{ "ids", LEFT | PLAN, IDS, replace_ids },
	{ "variables", END, SHARED, share_variables },
	{ "mbarriers", END, 0, note_mbarriers },
	{ "returns", CONVERTED, 0, replace_returns },
	{ "loop", LEFT | PLAN | CONVERTED | IDS | SHARED, LOOP, write_loop },
	{ "own", ROOM | LEFT | LOOP, 0, declare_own },
	{ "lines", LOOP, 0, mend_lines },
};

static void rewrite_kernel(struct twin *t)
{
	const char *refusal = NULL;
	unsigned int i;

	for (i = 0; i < sizeof(passes) / sizeof(passes[0]) && !refusal; i++) {
		if (passes[i].requires & ~t->facts)
			refusal = gsr_sprintf(t->j->p.arena, "pass %s before one that it requires, a bug of gsched", passes[i].name);
		else
			refusal = passes[i].run(t);
		t->facts |= passes[i].gives;
	}
	t->k->tier = refusal ? GSR_TIER_LAUNCH : GSR_TIER_BLOCK;
	t->k->reason = refusal ? refusal : "rewritten";
}

/* ---- the module ---- */

/* What is done once, for all kernels; each line relies on those above it */
static void prepare_module(struct gsr_pass *p)
{
	gsr_resolve_aliases(p->m);
	gsr_analyse(p);
	gsr_devirtualise(p);
	gsr_find_complete_masks(p);
	gsr_barriers_prepare(p);
	gsr_inline_prepare(p);
	gsr_exits_prepare(p);
	gsr_inline_small(p);
	gsr_swbarrier_prepare(p);
	gsr_warpsync_prepare(p);
}

static void run(struct job *j)
{
	struct gsr_pass *p = &j->p;
	struct gsr_closure *closures;
	struct gsr_kernel **twins;
	struct gsr_own *own;
	unsigned int i, n = 0;
	struct gsr_item *item;

	prepare_module(p);
	for (item = p->m->first; item; item = item->next) {
		j->files |= is_file(item);
		j->names |= is_names(item);
	}
	closures = gsr_alloc_array(p->arena, p->n_fns + 1, sizeof(*closures));
	twins = gsr_alloc_array(p->arena, p->n_fns + 1, sizeof(struct gsr_kernel *));
	own = gsr_alloc_array(p->arena, p->n_fns + 1, sizeof(*own));
	j->out->kernels = gsr_alloc_array(p->arena, p->n_fns + 1, sizeof(*j->out->kernels));
	for (i = 0; i < p->n_fns; i++) {
		struct gsr_kernel *kernel = &j->out->kernels[j->out->n_kernels];
		struct twin t = { .j = j, .fn = &p->fns[i], .k = kernel, .own = &own[n] };

		if (!p->fns[i].f->entry || !p->fns[i].f->body)
			continue;
		j->out->n_kernels++;
		kernel->name = p->fns[i].f->name;
		kernel->tier = GSR_TIER_LAUNCH;
		t.c = gsr_closure(p, t.fn);
		if (twin_named(j, &p->fns[i])) {
			kernel->reason = "its twin's name is another's (" GSR_SUFFIX ")";
			continue;
		}
		own[n] = (struct gsr_own){ 0 };
		rewrite_kernel(&t);
		if (kernel->tier != GSR_TIER_BLOCK)
			continue;
		twins[n] = kernel;
		closures[n++] = t.c;
	}
	for (i = 0; i < n; i++)
		twins[i]->static_shared = gsr_own_bytes(p, &own[i], j->wide);
	if (!n)
		return;
	j->printed = *p->m;
	j->printed.first = j->printed.last = NULL;
	assemble(j, &j->printed, closures, n);
	for (i = 0; i < n; i++) {
		struct gsr_function *f = closures[i].fns[0]->f;

		f->name = gsr_intern_str(p->arena, gsr_sprintf(p->arena, "%s" GSR_SUFFIX, f->name));
		f->linkage = "visible";
	}
	/* ", debug" wants the sections that are gone */
	j->printed.target = gsr_strndup(p->arena, p->m->target, strcspn(p->m->target, ", \t"));
	/* what threads that wait nap with, and who is there, has PTX only since then */
	if (j->naps && p->m->version[0] == '6' && p->m->version[2] < '3')
		j->printed.version = "6.3";
	j->n = n;
}

/* false: the arena ran out of memory */
static bool guarded(struct job *j, const char *text, size_t size)
{
	jmp_buf nomem;

	if (setjmp(nomem))
		return false;
	gsr_arena_escape(j->p.arena, &nomem);
	gsr_arena_escape(j->p.scratch, &nomem);
	j->suffixed = memmem(text, size, GSR_SUFFIX, strlen(GSR_SUFFIX));
	j->p.prefix = choose_prefix(j->p.arena, text, size);
	run(j);
	gsr_arena_escape(j->p.arena, NULL);
	return true;
}

enum gsr_status gsr_rewrite_ptx(const char *ptx, size_t size, const struct gsr_options *opts,
				struct gsr_rewrite *out, struct gsr_error *err)
{
	size_t limit = opts && opts->size >= sizeof(*opts) && opts->max_input ? opts->max_input : INPUT_MAX;
	const char *name = opts && opts->name ? opts->name : "<ptx>";
	struct job j = { .out = out };
	struct gsr_error own;

	if (opts && opts->size >= sizeof(*opts)) {
		j.resumable = opts->resumable;
		j.p.look = opts->look;
		j.p.modes = opts->modes;
	}
	/* cppcheck-suppress uninitvar ; its address is meant */
	err = err ? err : &own;
	memset(out, 0, sizeof(*out));
	memset(err, 0, sizeof(*err));
	size = strnlen(ptx, size);
	if (size > limit) {
		err->status = GSR_ERR_LIMIT;
		snprintf(err->message, sizeof(err->message), "%.80s: %zu bytes of PTX; the limit is %zu", name, size, limit);
		return err->status;
	}
	if (gsr_parse(ptx, size, name, &j.p.m, err) != GSR_OK)
		return err->status;
	j.p.arena = j.p.m->arena;
	j.p.scratch = gsr_arena_new();
	if (!j.p.scratch || !guarded(&j, ptx, size))
		goto nomem;
	if (j.n) {
		out->ptx = gsr_print(&j.printed, &out->ptx_size);
		if (!out->ptx)
			goto nomem;
	}
	out->arena = j.p.arena;
	gsr_arena_free(j.p.scratch);
	return GSR_OK;
nomem:
	gsr_arena_free(j.p.scratch);
	gsr_module_free(j.p.m);
	memset(out, 0, sizeof(*out));
	err->status = GSR_ERR_NOMEM;
	snprintf(err->message, sizeof(err->message), "%.80s: out of memory", name);
	return err->status;
}

void gsr_rewrite_free(struct gsr_rewrite *rw)
{
	if (!rw)
		return;
	free(rw->ptx);
	gsr_arena_free(rw->arena);
	memset(rw, 0, sizeof(*rw));
}
