// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The list of passes.
 *
 * In: PTX text and options. Out: one module with the twins, as PTX text, and a description of
 * every kernel. prepare_module() runs once per module, the table of passes once per kernel. Assumes
 * nothing about the input: a kernel that cannot be rewritten is refused, the others are not.
 */
#include <ctype.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "assemble.h"
#include "dump.h"
#include "verify.h"

#define INPUT_MAX	(256u << 20)

struct job {
	struct gsr_pass p;
	struct gsr_rewrite *out;
	unsigned int n;
	bool resumable;
	const char *kernel;		/* NULL: all */
	enum gsr_restart restart;
	bool suffixed;			/* the input may contain the name of a twin */
	bool files, names;		/* .file directives, names of inlined functions exist */
	bool verify, faulty;		/* with the verifier; which finds faults in the input */
	struct gsr_module printed;
	struct gsr_common common;
	struct gsr_dump dump;
};

/* A name may begin with '$' and what the names of registers and labels begin with */
static bool has_short_names(const char *text, size_t size)
{
	const char *end = text + size, *at = text;

	while ((at = memchr(at, '$', (size_t)(end - at))) && ++at < end)
		if (islower((unsigned char)*at) || isdigit((unsigned char)*at))
			return true;
	return false;
}

/* Those that no name of the input contains */
static struct gsr_prefix choose_prefix(struct gsr_arena *a, const char *text, size_t size)
{
	struct gsr_prefix prefix = gsr_usual_prefix[has_short_names(text, size)];
	const char *local = gsr_sprintf(a, "$%s", prefix.local);
	unsigned int i;

	for (i = 0; memmem(text, size, prefix.name, strlen(prefix.name)); i++)
		prefix.name = gsr_sprintf(a, "__gsr%u_", i);
	for (i = 0; local[1] && memmem(text, size, local, strlen(local)); i++) {
		local = gsr_sprintf(a, "$_%u_", i);
		prefix.local = local + 1;
	}
	return prefix;
}

static void add_parameters(struct gsr_pass *p, struct gsr_function *f, unsigned int n_references)
{
	struct gsr_var *params = gsr_alloc_array(p->arena, f->n_params + 2, sizeof(*params));

	if (f->n_params)
		memcpy(params, f->params, f->n_params * sizeof(*params));
	if (n_references)
		params[f->n_params++] = (struct gsr_var){
			.space = "param",
			.align = 8,
			.type = "b8",
			.name = gsr_expand(p, "#references"),
			.dims = { 8 * n_references },
			.n_dims = 1,
		};
	params[f->n_params++] = (struct gsr_var){
		.space = "param", .align = 16, .type = "b8", .name = gsr_expand(p, "$#x"),
		.dims = { sizeof(struct gsr_launch) }, .n_dims = 1,
	};
	f->params = params;
}

/*
 * Are there barriers in inner scopes, or, with @anything, any inner scopes? Labels in scopes are no
 * targets for jumps from outside; and the registers that a resumable twin saves must have unique
 * names.
 */
static bool uses_scopes(const struct gsr_function *f, bool anything)
{
	const struct gsr_stmt *s;
	unsigned int scope = 0;
	struct gsr_barrier b;

	for (s = f->first; s; s = s->next) {
		scope += s->kind == GSR_STMT_OPEN;
		scope -= s->kind == GSR_STMT_CLOSE;
		if (scope &&
		    (anything || (s->kind == GSR_STMT_INSN &&
				  (gsr_warp_sync(f, s->insn) || gsr_barrier_of(f, s->insn, &b)))))
			return true;
	}
	return false;
}

/* Converts exits in functions. Kernels share these, so each function is converted once */
static unsigned int rewrite_exits(struct gsr_pass *p, struct gsr_fn *fn,
				  const struct gsr_closure *c)
{
	unsigned int i, n = 0;

	for (i = 1; i < c->n; i++)
		if (c->fns[i]->plan.may_exit && !c->fns[i]->done.exits) {
			n += gsr_exits(p, c->fns[i]);
			c->fns[i]->done.exits = true;
		}
	return n + gsr_exits(p, fn);
}

/*
 * Everything that can refuse the kernel before its text is changed, but for the inlining of
 * functions and the conversion of their exits. A refusal or NULL.
 */
static const char *check_kernel(struct gsr_pass *p, struct gsr_fn *fn, struct gsr_closure *c,
				struct gsr_kernel *k, struct gsr_end *end, bool resumable)
{
	enum gsr_inline wants = GSR_INLINE_NONE;
	const char *why = NULL;
	unsigned int i;

	for (i = 1; i < c->n; i++)
		if (c->fns[i]->any.exit && !c->fns[i]->plan.may_exit)
			wants = GSR_INLINE_EXITS;
	do {
		if (wants != GSR_INLINE_NONE) {
			why = gsr_inline(p, fn, wants);
			*c = gsr_closure(p, fn);
		}
		if (!why && !k->inserted[GSR_INSERTED_EXITS] && gsr_functions_exit(c))
			k->inserted[GSR_INSERTED_EXITS] = rewrite_exits(p, fn, c);
		if (!why)
			why = gsr_refusal(p, c, k);
		if (!why)
			why = gsr_mbarriers_refusal(p, c);
		if (!why)
			why = gsr_shared_room(p, c, 0, true);
		if (!why)
			why = gsr_barriers(c, end, &wants);
		/* handles of textures are parameters of the kernel */
		if (!why && wants == GSR_INLINE_NONE && gsr_references_used(c) > fn->has.textures.n)
			wants = GSR_INLINE_TEXTURES;
		/* barriers are resume points, unless they were converted to a software barrier */
		if (!why && wants == GSR_INLINE_NONE && resumable && !fn->plan.swbarrier &&
		    !fn->plan.warpsync && gsr_can_inline(p, c, GSR_INLINE_BARRIERS))
			wants = GSR_INLINE_BARRIERS;
	} while (!why && wants != GSR_INLINE_NONE);
	return why;
}

/* Software barriers, in the kernel and its functions */
static void insert_swbarriers(struct gsr_pass *p, const struct gsr_closure *c, struct gsr_kernel *k)
{
	unsigned int i;

	/* the graphs are rebuilt, and must not count barriers that are being converted */
	for (i = 0; i < c->n; i++)
		if (c->fns[i]->plan.swbarrier)
			c->fns[i]->has.plain = c->fns[i]->any.plain = false;
	for (i = 0; i < c->n; i++)
		if (c->fns[i]->plan.swbarrier && !c->fns[i]->done.swbarrier) {
			k->inserted[GSR_INSERTED_SITES] +=
				gsr_swbarrier_insert(p, c->fns[i], &k->sites);
			c->fns[i]->done.swbarrier = true;
		}
}

/*
 * Software warp syncs in functions; in the kernel only the exit bits. Its own instructions are
 * converted later, when it is known which of its branches may split a warp.
 */
static void insert_warpsync_in_functions(struct gsr_pass *p, const struct gsr_closure *c,
					 struct gsr_kernel *k)
{
	unsigned int i;

	for (i = 0; i < c->n; i++) {
		struct gsr_fn *fn = c->fns[i];

		if (!fn->plan.warpsync || fn->done.warpsync)
			continue;
		gsr_need_graph(p, fn);
		k->inserted[GSR_INSERTED_SITES] += gsr_warpsync_insert(
			p, fn, i ? GSR_WARPSYNC_LANES | GSR_WARPSYNC_EXITS : GSR_WARPSYNC_EXITS,
			&k->sites);
		gsr_graph(p, fn);
		fn->done.warpsync = true;
	}
}

/* Has the module a function or variable of the twin's name? */
static bool twin_name_taken(const struct job *j, const struct gsr_fn *fn)
{
	const struct gsr_function *f;
	const char *name;

	if (!j->suffixed)
		return false;
	name = gsr_sprintf(j->p.arena, "%s" GSR_SUFFIX, fn->f->name);
	f = gsr_module_function(j->p.m, name);
	return (f && !f->entry) || gsr_module_var(j->p.m, name);
}

/* Do functions, and not only the kernel itself, name the twin's own shared variables? */
static bool functions_name_own(const struct gsr_closure *c, bool ids)
{
	unsigned int i;

	if (ids || gsr_functions_exit(c) || c->fns[0]->plan.swbarrier || c->fns[0]->plan.warpsync)
		return true;
	for (i = 1; i < c->n; i++)
		if (c->fns[i]->has.mbarriers || c->fns[i]->done.mbarriers)
			return true;
	return false;
}

/* The program does not see that there is more dynamic shared memory */
static bool may_stand_behind(const struct gsr_closure *c, const struct gsr_own *own)
{
	unsigned int i;

	for (i = 0; i < c->n; i++)
		if (c->fns[i]->has.dynamic_size)
			return false;
	return own->inside;
}

/*
 * Where the twin's own shared variables are declared, and how they are aligned; a refusal or NULL
 */
static const char *place_own(struct gsr_pass *p, const struct gsr_closure *c, struct gsr_own *own,
			     bool ids)
{
	const char *why;
	unsigned int i;

	own->inside = !functions_name_own(c, ids);
	if (gsr_shared_by_number(c)) {
		if (!may_stand_behind(c, own))
			return "addresses shared memory by numbers, beside functions that use the "
			       "twin's words or a use of %dynamic_smem_size";
		own->behind = true;
		return NULL;
	}
	own->aligned = gsr_alignment_matters(p->scratch, c);
	for (i = 1; i < c->n && own->aligned && !own->inside; i++)
		if (c->fns[i]->has.keeps_shared)
			return "relies on how shared memory is aligned, beside functions with "
			       "shared variables of their own";
	why = gsr_shared_room(p, c,
			      own->own_warpsync + (!own->aligned ? 0 :
						   own->inside	 ? GSR_ALIGNED :
								   GSR_OWN_MAX * GSR_ALIGNED),
			      false);
	if (why && may_stand_behind(c, own) && !gsr_shared_room(p, c, 0, true)) {
		own->behind = true;
		own->aligned = false;
		return NULL;
	}
	return why;
}

/* ---- one kernel ---- */

/* A kernel that is becoming a twin: what passes learn for those that follow */
struct twin {
	struct job *j;
	struct gsr_fn *fn;
	struct gsr_closure c;		/* @fn, and all that it needs */
	struct gsr_kernel *k;		/* its description */
	struct gsr_own *own;
	unsigned int facts;		/* enum fact: what is known now */
	struct gsr_end end;
	struct gsr_cleanup cleanup;
	struct gsr_ids ids;
	struct gsr_sites sites;
	struct gsr_resume *resume;	/* NULL: the twin can leave between block-tasks only */
};

enum fact {
	CALLEES = 1 << 0,		/* barriers and warp syncs of functions are final */
	GRAPHS = 1 << 1,		/* the functions' graphs are those of their text */
	LEGAL = 1 << 2,			/* .end; and the kernel is not refused */
	SHARED_LAYOUT = 1 << 3,		/* .own: which shared variables the twin has, and where */
	CLEANUP = 1 << 4,		/* .cleanup, .ids, and .k->waits */
	FLAT = 1 << 5,			/* no inner scope where one would be in the way */
	RESUME_PLAN = 1 << 6,		/* .resume */
	RESUME_POINTS = 1 << 7,		/* the checks of resume points are in the text */
	BARRIERS = 1 << 8,		/* .sites: no barrier waits for finished threads */
	IDS = 1 << 9,			/* the text does not read %ctaid and %nctaid */
	VARIABLES = 1 << 10,		/* the module's variables are reached through the table */
	RETURNS = 1 << 11,		/* the body ends at its end only */
	LOOP = 1 << 12,			/* the worker's loop is in place around the body */
};

/*
 * Converts barriers and warp-synchronous instructions in functions that are not inlined. Whether
 * the kernel may spin is asked before, as the converted code polls for threads of its own block.
 */
static const char *convert_callees(struct twin *t)
{
	struct gsr_pass *p = &t->j->p;
	struct gsr_fn *fn = t->fn;

	if (fn->plan.swbarrier || fn->plan.warpsync) {
		gsr_need_graph(p, fn);
		t->k->waits = gsr_may_spin(p, &t->c);
	}
	if (fn->plan.swbarrier)
		insert_swbarriers(p, &t->c, t->k);
	if (fn->plan.warpsync)
		insert_warpsync_in_functions(p, &t->c, t->k);
	return NULL;
}

static const char *build_graphs(struct twin *t)
{
	unsigned int i;

	for (i = 0; i < t->c.n; i++)
		if (t->c.fns[i]->f->body && !t->c.fns[i]->graph.valid) {
			if (gsr_hides_names(&t->j->p, t->c.fns[i]->f))
				gsr_flatten(&t->j->p, t->c.fns[i]->f, false);
			gsr_graph(&t->j->p, t->c.fns[i]);
		}
	return NULL;
}

static const char *legalise(struct twin *t)
{
	return check_kernel(&t->j->p, t->fn, &t->c, t->k, &t->end, t->j->resumable);
}

static const char *layout_shared(struct twin *t)
{
	unsigned int i;

	if (t->end.warpsync && !t->fn->plan.warpsync)
		t->own->own_warpsync = gsr_warpsync_size(t->fn->f);
	for (i = 0; i < t->c.n; i++)
		t->ids.shared |= t->c.fns[i]->done.ids || (i && t->c.fns[i]->has.ids);
	return place_own(&t->j->p, &t->c, t->own, t->ids.shared);
}

static const char *plan_cleanup(struct twin *t)
{
	struct gsr_cleanup *cleanup = &t->cleanup;
	struct gsr_fn *fn = t->fn;
	unsigned int i;

	cleanup->alloca = fn->has.alloca;
	cleanup->swbarrier = fn->plan.swbarrier;
	cleanup->warpsync = fn->plan.warpsync	 ? "#gathers" :
			    t->own->own_warpsync ? "#own_gathers" :
						   NULL;
	t->k->early_return =
		t->end.early || t->end.warps || cleanup->swbarrier || cleanup->warpsync;
	t->k->warp_rows = t->end.rows;
	/* convert_callees() has asked already if it converts any */
	if (!cleanup->swbarrier && !fn->plan.warpsync)
		t->k->waits = gsr_may_spin(&t->j->p, &t->c);
	t->ids.alone = true;
	for (i = 0; i < t->c.n; i++) {
		fn = t->c.fns[i];
		cleanup->cp_async |= fn->has.cp_async;
		cleanup->bulk |= fn->has.bulk;
		cleanup->mbarriers |= fn->has.mbarriers || fn->done.mbarriers;
		t->ids.alone &= !fn->has.shared && !fn->has.vars.n && !fn->has.barriers &&
				!cleanup->cp_async && !cleanup->bulk && !cleanup->mbarriers;
	}
	return NULL;
}

static const char *flatten(struct twin *t)
{
	if ((t->k->early_return || t->j->resumable) && uses_scopes(t->fn->f, t->j->resumable)) {
		gsr_flatten(&t->j->p, t->fn->f, false);
		gsr_graph(&t->j->p, t->fn);
	}
	return NULL;
}

static void plan_points(struct twin *t)
{
	const enum gsr_restart restart = t->j->restart;
	const char *why = NULL, *other = NULL;
	bool *rows = &t->k->warp_rows;

	if (restart != GSR_RESTART_ALWAYS)
		t->resume = gsr_resume_plan(&t->j->p, t->fn, &t->c, t->end.early, t->end.id, false,
					    rows, &why);
	if (!t->resume && restart != GSR_RESTART_NEVER) {
		t->resume = gsr_resume_plan(&t->j->p, t->fn, &t->c, t->end.early, t->end.id, true,
					    rows, &other);
		/* if it is neither, what is in the way of resuming is of more interest */
		if (t->resume || !why)
			why = other;
	}
	t->k->resume_reason = why;
}

static const char *plan_resume(struct twin *t)
{
	struct gsr_kernel *k = t->k;

	if (!t->j->resumable)
		return NULL;
	if (t->end.warps || t->cleanup.warpsync) {
		k->resume_reason = "lanes may be finished while others of the warp wait for it";
	} else if (t->cleanup.swbarrier) {
		k->resume_reason = "barriers that finished threads have no part in, in functions";
	} else {
		plan_points(t);
	}
	if (t->resume) {
		t->resume->behind = t->own->behind;
		k->restarts = t->resume->restart;
		k->resume_points = t->resume->n_points;
		k->save_fixed = t->resume->fixed;
		k->save_thread = 4 * t->resume->words;
	}
	return NULL;
}

static const char *insert_points(struct twin *t)
{
	if (t->resume) {
		t->k->inserted[GSR_INSERTED_RESUME] +=
			gsr_resume_points(&t->j->p, t->fn->f, t->resume);
		t->fn->graph.valid = false;
	}
	return NULL;
}

static const char *convert_barriers(struct twin *t)
{
	enum gsr_warpsync what =
		GSR_WARPSYNC_LANES | (t->own->own_warpsync ? GSR_WARPSYNC_EXITS : 0);
	unsigned int *inserted = &t->k->inserted[GSR_INSERTED_SITES];
	struct gsr_pass *p = &t->j->p;

	if (t->end.warpsync)
		*inserted += gsr_warpsync_insert(p, t->fn, what, &t->k->sites);
	if (t->end.warps)
		*inserted += gsr_convert_warps(p, t->fn, &t->sites);
	if (t->end.early || (t->resume && !t->resume->in_place))
		*inserted += gsr_convert_barriers(p, t->fn->f, &t->sites, t->resume);
	t->k->sites += t->sites.n + t->sites.warps;
	t->fn->graph.valid = false;
	return NULL;
}

/* Kernels share functions, so each function is converted once, here and in the passes below */
static const char *replace_ids(struct twin *t)
{
	const char *refusal = NULL;
	unsigned int i;

	if (t->ids.shared) {
		t->ids.held = GSR_IDS_ALL;
		t->ids.alone = false;
	}
	t->ids.aside = !t->ids.shared && !t->cleanup.mbarriers;
	for (i = 0; i < t->c.n && !refusal; i++) {
		struct gsr_fn *fn = t->c.fns[i];

		if (!fn->has.ids)
			continue;
		t->k->inserted[GSR_INSERTED_IDS] +=
			gsr_blockids(&t->j->p, fn->f, i || t->resume ? NULL : &t->ids, &refusal);
		fn->has.ids = false;
		fn->done.ids = true;
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

		if (fn->done.globals || (!fn->has.globals.n && !fn->has.constants))
			continue;
		*inserted += gsr_globals(p, fn) + fn->done.translated;
		fn->done.globals = true;
	}
	gsr_globals_list(p, &t->c, t->k);
	*inserted += gsr_references(p, t->fn, t->k);
	return NULL;
}

static const char *note_mbarriers(struct twin *t)
{
	unsigned int i;

	for (i = 0; i < t->c.n; i++)
		if (t->c.fns[i]->has.mbarriers)
			t->k->inserted[GSR_INSERTED_MBARRIERS] +=
				gsr_mbarriers(&t->j->p, t->c.fns[i]);
	return NULL;
}

static const char *replace_returns(struct twin *t)
{
	gsr_returns(&t->j->p, t->fn->f, &t->k->returns);
	return NULL;
}

static const char *insert_loop(struct twin *t)
{
	t->k->inserted[GSR_INSERTED_LOOP] +=
		gsr_loop(&t->j->p, t->fn->f, &t->sites, &t->cleanup, &t->ids, t->end.id, t->resume);
	return NULL;
}

static const char *declare_shared(struct twin *t)
{
	struct gsr_own *own = t->own;
	struct job *j = t->j;

	own->mbarriers = t->cleanup.mbarriers;
	own->swbarrier = t->cleanup.swbarrier;
	own->warpsync = t->fn->plan.warpsync;
	own->ended = gsr_functions_exit(&t->c);
	gsr_own_declare(&j->p, t->fn->f, own);
	t->k->dynamic_shared = own->behind ? gsr_own_bytes(&j->p, own, false) : 0;
	j->common.dynamic |= own->behind;
	add_parameters(&j->p, t->fn->f, t->k->n_references);
	if (!own->inside) {
		j->common.needed = true;
		j->common.wide |= own->aligned;
		j->common.own.mbarriers |= own->mbarriers;
		j->common.own.swbarrier |= own->swbarrier;
		j->common.own.warpsync |= own->warpsync;
		j->common.own.ended |= own->ended;
	}
	return NULL;
}

/* How a kernel becomes a twin. A pass returns a refusal, which ends it, or NULL. */
static const struct {
	const char *name;
	unsigned int requires, gives;
	const char *(*run)(struct twin *t);
} passes[] = {
	{ "callees", 0, CALLEES, convert_callees },
	{ "graphs", CALLEES, GRAPHS, build_graphs },
	{ "legalise", GRAPHS, LEGAL, legalise },
	{ "shared-layout", LEGAL, SHARED_LAYOUT, layout_shared },
	{ "cleanup-plan", LEGAL | SHARED_LAYOUT, CLEANUP, plan_cleanup },
	{ "flatten", CLEANUP, FLAT, flatten },
	{ "resume-plan", CLEANUP | FLAT, RESUME_PLAN, plan_resume },
	{ "resume-points", RESUME_PLAN, RESUME_POINTS, insert_points },
	{ "barriers", LEGAL | FLAT | RESUME_POINTS, BARRIERS, convert_barriers },
	{ "block-ids", CLEANUP | RESUME_PLAN, IDS, replace_ids },
	{ "variables", LEGAL, VARIABLES, share_variables },
	{ "mbarriers", LEGAL, 0, note_mbarriers },
	{ "returns", BARRIERS, RETURNS, replace_returns },
	{ "loop", CLEANUP | RESUME_PLAN | BARRIERS | IDS | VARIABLES | RETURNS, LOOP, insert_loop },
	{ "declarations", SHARED_LAYOUT | CLEANUP | LOOP, 0, declare_shared },
};

#define N_PASSES	(sizeof(passes) / sizeof(passes[0]))

const char *gsr_pass_name(unsigned int i)
{
	return i < N_PASSES ? passes[i].name : NULL;
}

static const char *blame(const struct job *j)
{
	return j->faulty ? "; the input is not valid" : ", a bug of gsched";
}

/* A refusal, or NULL: @after left all as the passes behind it may assume */
static const char *verify_kernel(struct twin *t, const char *after)
{
	const struct gsr_promises promises = {
		.flat = t->facts & FLAT && t->j->resumable && !(t->facts & LOOP),
		.sites = t->facts & BARRIERS && t->end.early && !(t->facts & LOOP),
		.ids = t->facts & IDS,
		.variables = t->facts & VARIABLES,
		.returns = t->facts & RETURNS,
		.loop = t->facts & LOOP,
	};
	const char *why;

	if (!t->j->verify)
		return NULL;
	why = gsr_verify(&t->j->p, t->j->p.m, &t->c, &promises);
	return why ? gsr_sprintf(t->j->p.arena, "after %s: %s%s", after, why, blame(t->j)) : NULL;
}

static void rewrite_kernel(struct twin *t)
{
	struct gsr_dump *dump = &t->j->dump;
	const char *refusal = verify_kernel(t, "prepare");
	unsigned int i;

	for (i = 0; i < N_PASSES && !refusal; i++) {
		if (passes[i].requires & ~t->facts)
			refusal = gsr_sprintf(t->j->p.arena,
					      "pass %s before one that it requires, a "
					      "bug of gsched", passes[i].name);
		else
			refusal = passes[i].run(t);
		t->facts |= passes[i].gives;
		if (!refusal)
			refusal = verify_kernel(t, passes[i].name);
		if (!refusal && dump->pass && !strcmp(dump->pass, passes[i].name) &&
		    !gsr_dump(dump, &t->j->p, &t->c))
			refusal = "no memory to dump it";
	}
	t->k->tier = refusal ? GSR_TIER_LAUNCH : GSR_TIER_BLOCK;
	t->k->reason = refusal ? refusal : "rewritten";
}

/* ---- the module ---- */

/* Before there are graphs, whose blocks may begin or end with a .loc */
static void fix_line_info(struct job *j)
{
	const struct gsr_item *item;
	unsigned int i;

	for (item = j->p.m->first; item && j->common.lines; item = item->next) {
		j->files |= gsr_is_file(item);
		j->names |= gsr_is_debug_str(item);
	}
	for (i = 0; i < j->p.n_fns && (!j->files || !j->names); i++)
		if (j->p.fns[i].has.lines)
			gsr_drop_stale_lines(j->p.fns[i].f, j->files, j->names);
}

/* Runs once, for all kernels; each line relies on those above it */
static void prepare_module(struct job *j)
{
	struct gsr_pass *p = &j->p;
	unsigned int i;

	gsr_resolve_aliases(p->m);
	gsr_analyse(p);
	fix_line_info(j);
	for (i = 0; i < p->n_fns; i++)
		gsr_drop_triggers(p->fns[i].f);
	gsr_devirtualise(p);
	gsr_find_complete_masks(p);
	gsr_barriers_prepare(p);
	gsr_inline_prepare(p);
	gsr_exits_prepare(p);
	gsr_inline_small(p);
	gsr_swbarrier_prepare(p);
	gsr_warpsync_prepare(p);
}

/* So that a pass is not blamed for what it was given */
static bool is_faulty(struct gsr_pass *p)
{
	const struct gsr_promises none = { 0 };
	struct gsr_closure all = { 0 };
	const struct gsr_item *i;
	struct gsr_fn *fn;

	for (i = p->m->first; i; i = i->next)
		all.n += i->kind == GSR_ITEM_FUNCTION;
	all.fns = gsr_alloc_array(p->arena, all.n + 1, sizeof(struct gsr_fn *));
	for (all.n = 0, i = p->m->first; i; i = i->next)
		if (i->kind == GSR_ITEM_FUNCTION) {
			fn = all.fns[all.n++] = gsr_alloc(p->arena, sizeof(*fn));
			fn->f = i->function;
		}
	return gsr_verify(p, p->m, &all, &none);
}

/* All that a twin names is declared, in front of it */
static const char *verify_twins(struct job *j, const struct gsr_closure *twins, unsigned int n)
{
	const struct gsr_promises promises = { .ids = true, .variables = true, .returns = true,
					       .loop = true, .whole = true };
	const char *why = NULL;
	unsigned int i;

	for (i = 0; i < n && j->verify && !why; i++)
		why = gsr_verify(&j->p, &j->printed, &twins[i], &promises);
	return why ? gsr_sprintf(j->p.arena, "after all passes: %s%s", why, blame(j)) : NULL;
}

static void rewrite_module(struct job *j)
{
	struct gsr_pass *p = &j->p;
	struct gsr_closure *closures;
	struct gsr_kernel **twins;
	struct gsr_own *own;
	unsigned int i, n = 0;
	const char *why;

	j->faulty = j->verify && is_faulty(p);
	prepare_module(j);
	closures = gsr_alloc_array(p->arena, p->n_fns + 1, sizeof(*closures));
	twins = gsr_alloc_array(p->arena, p->n_fns + 1, sizeof(struct gsr_kernel *));
	own = gsr_alloc_array(p->arena, p->n_fns + 1, sizeof(*own));
	j->out->kernels = gsr_alloc_array(p->arena, p->n_fns + 1, sizeof(*j->out->kernels));
	for (i = 0; i < p->n_fns; i++) {
		struct gsr_kernel *kernel = &j->out->kernels[j->out->n_kernels];
		struct twin t = { .j = j, .fn = &p->fns[i], .k = kernel, .own = &own[n] };

		if (!p->fns[i].f->entry || !p->fns[i].f->body ||
		    (j->kernel && strcmp(p->fns[i].f->name, j->kernel)))
			continue;
		j->out->n_kernels++;
		kernel->name = p->fns[i].f->name;
		kernel->tier = GSR_TIER_LAUNCH;
		t.c = gsr_closure(p, t.fn);
		if (twin_name_taken(j, &p->fns[i])) {
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
		twins[i]->static_shared =
			own[i].behind ? 0 : gsr_own_bytes(p, &own[i], j->common.wide);
	if (!n)
		return;
	j->printed = *p->m;
	j->printed.first = j->printed.last = NULL;
	gsr_assemble(p, &j->common, j->out, closures, n, &j->printed);
	why = verify_twins(j, closures, n);
	for (i = 0; i < n && why; i++) {
		twins[i]->tier = GSR_TIER_LAUNCH;
		twins[i]->reason = why;
	}
	if (why)
		return;
	for (i = 0; i < n; i++) {
		struct gsr_function *f = closures[i].fns[0]->f;

		f->name = gsr_intern_str(p->arena, gsr_sprintf(p->arena, "%s" GSR_SUFFIX, f->name));
		f->linkage = "visible";
	}
	/* ", debug" would require the debugging sections that were dropped */
	j->printed.target = gsr_strndup(p->arena, p->m->target, strcspn(p->m->target, ", \t"));
	/* nanosleep and activemask need PTX ISA 6.3 */
	if (p->m->version[0] == '6' && p->m->version[2] < '3')
		j->printed.version = "6.3";
	j->n = n;
}

/* false: the arena ran out of memory */
static bool rewrite_guarded(struct job *j, const char *text, size_t size)
{
	jmp_buf nomem;

	if (setjmp(nomem))
		return false;
	gsr_arena_escape(j->p.arena, &nomem);
	gsr_arena_escape(j->p.scratch, &nomem);
	j->suffixed = memmem(text, size, GSR_SUFFIX, strlen(GSR_SUFFIX));
	j->p.prefix = choose_prefix(j->p.arena, text, size);
	rewrite_module(j);
	gsr_arena_escape(j->p.arena, NULL);
	return true;
}

enum gsr_status gsr_rewrite_ptx(const char *ptx, size_t size, const struct gsr_options *opts,
				struct gsr_rewrite *out, struct gsr_error *err)
{
	struct job j = { .out = out };
	struct gsr_options o = { 0 };
	struct gsr_error own;
	const char *name;
	size_t limit;

	/* a caller that was built with a shorter struct gets 0 for the rest */
	if (opts)
		memcpy(&o, opts, opts->size < sizeof(o) ? opts->size : sizeof(o));
	limit = o.max_input ? o.max_input : INPUT_MAX;
	name = o.name ? o.name : "<ptx>";
	j.resumable = o.resumable;
	j.kernel = o.kernel;
	j.common.lines = !o.kernel;
	j.restart = o.restart;
	j.p.look = o.look;
	j.p.modes = o.modes;
	j.verify = o.verify;
	if (o.dump)
		j.dump = (struct gsr_dump){ .pass = o.dump_pass,
					    .write = o.dump,
					    .arg = o.dump_arg };
	/* cppcheck-suppress uninitvar ; its address is meant */
	err = err ? err : &own;
	memset(out, 0, sizeof(*out));
	memset(err, 0, sizeof(*err));
	size = strnlen(ptx, size);
	if (size > limit) {
		err->status = GSR_ERR_LIMIT;
		snprintf(err->message, sizeof(err->message),
			 "%.80s: %zu bytes of PTX; the limit is %zu", name, size, limit);
		return err->status;
	}
	if (gsr_parse(ptx, size, name, &j.p.m, err) != GSR_OK)
		return err->status;
	j.p.arena = j.p.m->arena;
	j.p.scratch = gsr_arena_new();
	if (!j.p.scratch || !rewrite_guarded(&j, ptx, size))
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
