// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What each function uses and references, and why a kernel cannot be rewritten. Reasons are part
 * of the interface.
 *
 * In: a parsed module, its aliases resolved. Out: gsr_pass.fns; later graphs, closures and
 * refusals. Assumes that the marks of interned names are free.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "rewriter/ptx/lex.h"
#include "analysis.h"

#define PARAM_MAX	4352u
#define PARAM_MAX_81	32764u

/* Module-scope names carry a mark while references are looked for */
#define MARK_FN		(1UL << 40)
#define MARK_VAR	(2UL << 40)
#define MARK_INDEX	0xffffffffUL

struct scan {
	struct gsr_pass *p;
	struct gsr_fn *fn;
	struct gsr_var **vars;
	unsigned int n_vars;
	const struct gsr_insn *insn;	/* NULL: raw text */
	const struct gsr_operand *top;	/* its operand that is looked at */
	bool callee;		/* the operand is the target of a call */
};

/* Functions of the system that need nothing of ours */
static const char *const externals[] = { "vprintf", "malloc", "free", "__assertfail",
					 "__nv_isNan", NULL };

static void refuse(struct scan *s, const char *fmt, const char *arg)
{
	if (!s->fn->refusal)
		s->fn->refusal = gsr_sprintf(s->p->arena, fmt, arg);
}

void gsr_fns_add(struct gsr_arena *a, struct gsr_fns *l, struct gsr_fn *fn)
{
	unsigned int i;

	for (i = 0; i < l->n; i++)
		if (l->at[i] == fn)
			return;
	l->at = gsr_grow(a, l->at, l->n, &l->room, sizeof(struct gsr_fn *));
	l->at[l->n++] = fn;
}

void gsr_vars_add(struct gsr_arena *a, struct gsr_vars *l, struct gsr_var *v)
{
	unsigned int i;

	for (i = 0; i < l->n; i++)
		if (l->at[i] == v)
			return;
	l->at = gsr_grow(a, l->at, l->n, &l->room, sizeof(struct gsr_var *));
	l->at[l->n++] = v;
}

static void reference_var(struct scan *s, struct gsr_var *v, const struct gsr_operand *o)
{
	struct gsr_arena *a = s->p->arena;
	struct gsr_fn *fn = s->fn;
	const char *why = NULL;

	if (!s->insn)
		return;
	if (gsr_is_reference(v)) {
		why = gsr_reference_use(s->p, s->insn, s->top, o, v);
		gsr_vars_add(a, &fn->has.textures, v);
	} else if (gsr_is_global(v) || strcmp(v->space, "shared")) {
		why = gsr_global_use(s->p, s->insn, s->top, o, v);
		gsr_vars_add(a, &fn->has.globals, v);
	} else {
		gsr_vars_add(a, &fn->has.vars, v);
	}
	if (why)
		refuse(s, "%s", why);
}

static void note_reference(struct scan *s, const char *name, const struct gsr_operand *o)
{
	unsigned long m = *gsr_intern_mark(name);

	if (m & MARK_FN && (m & MARK_INDEX) < s->p->n_fns &&
	    s->p->fns[m & MARK_INDEX].f->name == name) {
		struct gsr_fn *to = &s->p->fns[m & MARK_INDEX];

		if (to->f->entry && !s->callee)
			refuse(s, "address of the kernel %s", name);
		gsr_fns_add(s->p->arena, &s->fn->has.refs, to);
		if (!s->callee && s->insn)
			to->has.address_taken = s->fn->has.takes_address = true;
	} else if (m & MARK_VAR && (m & MARK_INDEX) < s->n_vars &&
		   s->vars[m & MARK_INDEX]->name == name) {
		reference_var(s, s->vars[m & MARK_INDEX], o);
	}
}

static void note_special(struct scan *s, const char *name)
{
	if (!strcmp(name, "%ctaid") || !strcmp(name, "%nctaid"))
		s->fn->has.ids = true;
	else if (!strncmp(name, "%envreg", 7))
		refuse(s, "grid synchronisation (%s)", name);
	else if (!strcmp(name, "%cluster_ctarank") || !strcmp(name, "%cluster_nctarank") ||
		 !strcmp(name, "%cluster_ctaid") || !strcmp(name, "%cluster_nctaid") ||
		 !strcmp(name, "%is_explicit_cluster"))
		return;		/* the same in every cluster of one block */
	else if (!strncmp(name, "%cluster", 8) || !strncmp(name, "%ncluster", 9))
		refuse(s, "clusters (%s)", name);
	else if (!strcmp(name, "%gridid"))
		refuse(s, "reads the launch's number (%s), which differs among the "
		       "launches of a task", name);
	else if (!strcmp(name, "%total_smem_size") || !strcmp(name, "%aggr_smem_size"))
		refuse(s, "reads the size of shared memory (%s)", name);
	else if (!strcmp(name, "%dynamic_smem_size"))
		s->fn->has.dynamic_size = true;
}

static void scan_operand(struct scan *s, const struct gsr_operand *o)
{
	unsigned int i;

	/* what a call takes is read as registers */
	if (o->kind == GSR_OPND_SYM ||
	    (o->kind == GSR_OPND_REG && o->name[0] != '%' && s->insn->op == GSR_OP_CALL))
		note_reference(s, o->name, o);
	/* most are %r12, %rd3, %f4, %p5 */
	if (o->kind == GSR_OPND_REG && o->name[0] == '%' && o->name[1] != 'r' &&
	    o->name[1] != 'f' && o->name[1] != 'p')
		note_special(s, o->name);
	for (i = 0; i < o->n_items; i++)
		scan_operand(s, &o->items[i]);
}

/*
 * Distributed shared memory is none of these: a kernel that demands no cluster is launched as a
 * cluster of one block unless the launch says otherwise, and such launches are not rewritten. Then
 * shared::cluster is the block's own window, the only rank is 0, and mapa gives the address that it
 * is given. So it is in the twin, whose workers are clusters of one block, too. C++ barriers are
 * compiled to these without optimisation.
 */
static const char *unsupported(const struct gsr_insn *insn)
{
	switch (insn->op) {
	case GSR_OP_SETMAXNREG:
		return "setmaxnreg";
	case GSR_OP_TCGEN05:
		return "tcgen05";
	case GSR_OP_CLUSTERLAUNCHCONTROL:
		return "clusters (clusterlaunchcontrol)";
	case GSR_OP_CP:
		return gsr_insn_has(insn, "multicast::cluster") ? "clusters (multicast)" : NULL;
	default:
		return NULL;
	}
}

/* Barriers, and what lanes of a warp execute together */
static void scan_sync(struct scan *s, const struct gsr_insn *insn)
{
	struct gsr_barrier b;
	const char *why;

	if (!s->fn->f->writers && gsr_asks_for(insn))
		gsr_find_writers(s->p->arena, s->fn->f);
	if (gsr_barrier_of(s->fn->f, insn, &b)) {
		if (b.cluster)
			refuse(s, "%s", "clusters (barrier.cluster)");
		else if (!b.warp && insn->n_opnds < (b.red ? 3u : 1u))
			refuse(s, "barrier without its operands (%s)", insn->name);
		else if (!b.warp)
			s->fn->has.barriers++;
		s->fn->has.plain |= !b.warp && !b.cluster && !b.counted && !b.arrive;
		s->fn->has.counted |= b.counted || b.arrive;
	}
	why = gsr_warp_sync(s->fn->f, insn);
	if (why && !s->fn->has.warp_sync)
		s->fn->has.warp_sync = why;
}

static void scan_insn(struct scan *s, const struct gsr_insn *insn)
{
	const char *why;
	unsigned int i;

	if (insn->op == GSR_OP_UNKNOWN)
		refuse(s, "unknown instruction %s", insn->name);
	why = unsupported(insn);
	if (why)
		refuse(s, "%s", why);
	if ((insn->op == GSR_OP_CP && gsr_insn_has(insn, "bulk")) ||
	    ((insn->op == GSR_OP_ST || insn->op == GSR_OP_RED) && gsr_insn_has(insn, "async")))
		s->fn->has.bulk = true;
	else if (insn->op == GSR_OP_CP && gsr_insn_has(insn, "async"))
		s->fn->has.cp_async = true;
	s->fn->has.mbarriers |= insn->op == GSR_OP_MBARRIER &&
			    (gsr_insn_has(insn, "init") || gsr_insn_has(insn, "inval"));
	s->fn->has.matrices |= insn->op >= GSR_OP_WMMA && insn->op <= GSR_OP_MOVMATRIX;
	s->fn->has.alloca |= insn->op == GSR_OP_ALLOCA;
	s->fn->has.spins |= gsr_may_wait(insn) == GSR_WAIT_ALL;
	s->fn->has.exits |= insn->op == GSR_OP_EXIT;
	if (gsr_synchronises(insn))
		scan_sync(s, insn);
	why = gsr_constant_use(s->p, insn);
	if (why)
		refuse(s, "%s", why);
	s->fn->has.constants |= gsr_insn_has(insn, "const");
	s->fn->has.shared |= gsr_names_shared(insn);
	s->fn->has.shared_access |= gsr_addresses_shared(insn);
	s->insn = insn;
	for (i = 0; i < insn->n_opnds; i++) {
		const struct gsr_operand *o = &insn->opnds[i];

		/* call (ret), f, (args), prototype */
		s->callee = insn->op == GSR_OP_CALL && o->kind == GSR_OPND_SYM;
		if (insn->op == GSR_OP_CALL && o->kind == GSR_OPND_REG)
			s->fn->has.indirect = true;
		s->top = o;
		scan_operand(s, o);
		s->callee = false;
	}
	s->insn = NULL;
}

/* Identifiers in raw text: .calltargets */
static void scan_text(struct scan *s, const char *text)
{
	struct gsr_lexer lx;
	struct gsr_token t;

	gsr_lex_init(&lx, text, strlen(text));
	while ((t = gsr_lex_next(&lx)).kind != GSR_TOK_END && t.kind != GSR_TOK_BAD)
		if (t.kind == GSR_TOK_IDENT)
			note_reference(s, gsr_intern(s->p->arena, t.text, t.len), NULL);
}

/*
 * Names that a function declares itself hide those of the module: their marks are put away
 * meanwhile
 */
struct hidden {
	struct scan *s;
	struct { const char *name; unsigned long mark; } *names;
	unsigned int n, room;
};

static void hide(struct hidden *h, const char *name)
{
	h->names = gsr_grow(h->s->p->arena, h->names, h->n, &h->room, sizeof(*h->names));
	h->names[h->n].name = name;
	h->names[h->n++].mark = *gsr_intern_mark(name);
	*gsr_intern_mark(name) = 0;
}

static bool is_module_name(const struct scan *s, const char *name)
{
	unsigned long m = *gsr_intern_mark(name);

	return (m & MARK_FN && (m & MARK_INDEX) < s->p->n_fns &&
		s->p->fns[m & MARK_INDEX].f->name == name) ||
	       (m & MARK_VAR && (m & MARK_INDEX) < s->n_vars &&
		s->vars[m & MARK_INDEX]->name == name);
}

static bool names_symbol(const struct gsr_operand *o, const char *name)
{
	unsigned int i;

	if (o->name == name)
		return true;
	for (i = 0; i < o->n_items; i++)
		if (names_symbol(&o->items[i], name))
			return true;
	return false;
}

/*
 * Is the module's @name used outside of the inner scopes that declare one? The passes go by names,
 * so they would take one for the other.
 */
static bool named_outside(const struct gsr_function *f, const char *name)
{
	unsigned int depth = 0, inside = 0, i;	/* inside: depth of the outermost scope that
						 * declares it, 0 none */
	const struct gsr_stmt *s;

	for (s = f->first; s; s = s->next) {
		if (s->kind == GSR_STMT_OPEN) {
			depth++;
		} else if (s->kind == GSR_STMT_CLOSE) {
			inside = inside == depth ? 0 : inside;
			depth--;
		} else if (s->kind == GSR_STMT_VAR && s->var->name == name && !inside) {
			inside = depth;
		}
		for (i = 0; s->kind == GSR_STMT_INSN && !inside && i < s->insn->n_opnds; i++)
			if (names_symbol(&s->insn->opnds[i], name))
				return true;
	}
	return false;
}

static void hide_own(struct hidden *h, const struct gsr_function *f)
{
	const struct gsr_stmt *s;
	unsigned int i, depth = 0;

	for (i = 0; i < f->n_params; i++)
		hide(h, f->params[i].name);
	for (i = 0; i < f->n_rets; i++)
		hide(h, f->rets[i].name);
	for (s = f->first; s; s = s->next) {
		depth += s->kind == GSR_STMT_OPEN;
		depth -= s->kind == GSR_STMT_CLOSE;
		if (s->kind == GSR_STMT_LABEL)
			hide(h, s->label);
		if (s->kind != GSR_STMT_VAR)
			continue;
		if (depth && is_module_name(h->s, s->var->name) && named_outside(f, s->var->name))
			refuse(h->s, "%s means the module's and, in an inner scope, another",
			       s->var->name);
		hide(h, s->var->name);
	}
}

static void scan_function(struct scan *s)
{
	struct gsr_function *f = s->fn->f;
	struct hidden h = { .s = s };
	struct gsr_stmt *st;
	unsigned int i;

	gsr_find_unread(s->p, f);
	hide_own(&h, f);
	for (i = 0; i < f->n_perf; i++)
		/* that only limits the clusters that a launch may ask for */
		if (strstr(f->perf[i], "cluster") && strncmp(f->perf[i], ".maxclusterrank", 15) != 0)
			refuse(s, "clusters (%s)", f->perf[i]);
	for (st = f->first; st; st = st->next) {
		if (st->kind == GSR_STMT_INSN)
			scan_insn(s, st->insn);
		else if (st->kind == GSR_STMT_DIRECTIVE && strstr(st->text, ".calltargets"))
			scan_text(s, st->text);
		else if (st->kind == GSR_STMT_VAR && !strcmp(st->var->space, "shared"))
			s->fn->has.shared = s->fn->has.keeps_shared = true;
		else if (st->kind == GSR_STMT_VAR &&
			 (!strcmp(st->var->space, "global") || !strcmp(st->var->space, "const")))
			refuse(s, "variable %s declared in a function", st->var->name);
		else if (st->kind == GSR_STMT_DIRECTIVE && !strncmp(st->text, ".loc", 4))
			s->fn->has.lines = true;
	}
	/* backwards, because a name may stand twice */
	while (h.n--)
		*gsr_intern_mark(h.names[h.n].name) = h.names[h.n].mark;
}

static void refuse_external(struct gsr_pass *p, struct gsr_fn *fn)
{
	const char *name = fn->f->name;
	unsigned int i;

	for (i = 0; externals[i]; i++)
		if (!strcmp(name, externals[i]))
			return;
	if (!strncmp(name, "cudaCG", 6))
		fn->refusal = gsr_sprintf(p->arena, "grid synchronisation (%s)", name);
	else if (!strncmp(name, "cudaLaunchDevice", 16) ||
		 !strncmp(name, "cudaGetParameterBuffer", 22) ||
		 !strncmp(name, "cudaDeviceSynchronize", 21))
		fn->refusal = gsr_sprintf(p->arena, "dynamic parallelism (%s)", name);
	else
		fn->refusal = gsr_sprintf(p->arena, "external function %s", name);
	/* there is code that is not seen here */
	p->fnptrs_escape |= strncmp(name, "cuda", 4) && strncmp(name, "__cxa_", 6);
}

struct gsr_fn *gsr_fn_of(const struct gsr_pass *p, const char *name)
{
	unsigned long m = *gsr_intern_mark(name);

	if (!(m & MARK_FN) || (m & MARK_INDEX) >= p->n_fns ||
	    p->fns[m & MARK_INDEX].f->name != name)
		return NULL;
	return &p->fns[m & MARK_INDEX];
}

void gsr_reference(struct gsr_pass *p, struct gsr_fn *fn, struct gsr_fn *to, struct gsr_var *v)
{
	gsr_fns_add(p->arena, &fn->has.refs, to);
	gsr_vars_add(p->arena, &fn->has.globals, v);
}

bool gsr_calls_own(const struct gsr_fn *fn)
{
	unsigned int i;

	for (i = 0; i < fn->has.refs.n; i++)
		if (fn->has.refs.at[i]->f->body)
			return true;
	return false;
}

/* Takes as many loads to be alike as turn out to be so if they are taken to be so */
static void find_divergence(struct gsr_pass *p, struct gsr_fn *fn)
{
	struct gsr_graph *g = &fn->graph;
	unsigned int i;
	bool waits;

	for (i = 0; i < g->defuse->n_insns; i++)
		g->defuse->insns[i]->stored = false;
	for (g->loads = gsr_loads_alike(p->scratch, fn, &waits);;) {
		gsr_uniform(p->scratch, fn->f, g, false);
		gsr_arena_reset(p->scratch);
		g->divergent = gsr_divergent(fn);
		if (!g->loads)
			break;
		if (g->divergent)
			g->loads = GSR_LOADS_VARY;
		else if (!gsr_find_stored(p->scratch, fn, waits))
			break;
	}
}

void gsr_graph(struct gsr_pass *p, struct gsr_fn *fn)
{
	struct gsr_graph *g = &fn->graph;

	if (g->valid)
		gsr_find_writers(p->arena, fn->f);
	gsr_cfg_build(p->arena, p->scratch, fn->f, &g->cfg);
	gsr_arena_reset(p->scratch);
	g->defuse = gsr_defuse_build(p->arena, fn->f);
	g->valid = true;
	if (g->cfg.error) {
		fn->refusal = fn->refusal ? fn->refusal : g->cfg.error;
		return;
	}
	gsr_find_retries(p, fn->f, &g->cfg);
	/* which branches split a block or warp matters only where somebody waits for others */
	if (fn->has.plain || fn->has.warp_sync || fn->has.refs.n)
		find_divergence(p, fn);
	if (fn->has.warp_sync || fn->has.refs.n) {
		gsr_uniform(p->scratch, fn->f, g, true);
		gsr_arena_reset(p->scratch);
		gsr_find_left(p->scratch, fn);
	}
}

void gsr_need_graph(struct gsr_pass *p, struct gsr_fn *fn)
{
	if (fn->f->body && !fn->graph.valid)
		gsr_graph(p, fn);
}

void gsr_analyse(struct gsr_pass *p)
{
	struct scan s = { .p = p };
	struct gsr_item *i;
	unsigned int k, n_items = 0;

	for (i = p->m->first; i; i = i->next)
		n_items++;
	p->fns = gsr_alloc_array(p->arena, n_items + 1, sizeof(*p->fns));
	s.vars = gsr_alloc_array(p->arena, n_items + 1, sizeof(*s.vars));
	p->walk = gsr_alloc_array(p->arena, n_items + 1, sizeof(struct gsr_fn *));
	for (i = p->m->first; i; i = i->next) {
		if (i->kind == GSR_ITEM_FUNCTION)
			*gsr_intern_mark(i->function->name) = 0;
		else if (i->kind == GSR_ITEM_VAR)
			*gsr_intern_mark(i->var->name) = 0;
	}
	/* a function is known by its definition, wherever it is declared */
	for (i = p->m->first; i; i = i->next) {
		if (i->kind == GSR_ITEM_FUNCTION) {
			unsigned long *m = gsr_intern_mark(i->function->name);

			if (*m & MARK_FN) {
				if (i->function->body)
					p->fns[*m & MARK_INDEX].f = i->function;
				continue;
			}
			*m = MARK_FN | p->n_fns;
			p->fns[p->n_fns++].f = i->function;
		} else if (i->kind == GSR_ITEM_VAR) {
			*gsr_intern_mark(i->var->name) = MARK_VAR | s.n_vars;
			s.vars[s.n_vars++] = i->var;
			p->constants |= !strcmp(i->var->space, "const");
		}
	}
	for (k = 0; k < p->n_fns; k++) {
		s.fn = &p->fns[k];
		if (s.fn->f->body)
			scan_function(&s);
		else
			refuse_external(p, s.fn);
	}
	/* addresses in tables */
	for (i = p->m->first; i; i = i->next)
		if (i->kind == GSR_ITEM_VAR && i->var->init)
			gsr_fnptrs_read(p, i->var);
		else if (i->kind == GSR_ITEM_VAR &&
			 (!strncmp(i->var->name, "_ZTV", 4) ||
			  !strcmp(i->var->name, GSR_OTHER_UNITS)))
			p->fnptrs_escape = true;
	for (k = 0; k < p->n_fns; k++) {
		struct gsr_fn *fn = &p->fns[k];
		const char *why;

		if (!fn->f->body || (!fn->has.indirect && !fn->has.takes_address))
			continue;
		why = gsr_track_fnptrs(p, fn);
		fn->refusal = fn->refusal ? fn->refusal : why;
	}
}

struct gsr_closure gsr_closure(struct gsr_pass *p, struct gsr_fn *entry)
{
	struct gsr_closure c = { .fns = p->walk };
	unsigned int i, k;

	p->mark++;
	entry->mark = p->mark;
	c.fns[c.n++] = entry;
	for (i = 0; i < c.n; i++) {
		for (k = 0; k < c.fns[i]->has.refs.n; k++) {
			struct gsr_fn *to = c.fns[i]->has.refs.at[k];

			if (to->mark != p->mark) {
				to->mark = p->mark;
				c.fns[c.n++] = to;
			}
		}
	}
	c.fns = gsr_alloc_array(p->arena, c.n, sizeof(*c.fns));
	memcpy(c.fns, p->walk, c.n * sizeof(*c.fns));
	return c;
}

static unsigned int version_number(const char *v)
{
	char *end;
	unsigned long major = strtoul(v, &end, 10);

	return (unsigned int)(major * 10 + (*end == '.' ? strtoul(end + 1, NULL, 10) : 0));
}

/* Returns the size of the parameter buffer. */
static uint64_t lay_out_params(const struct gsr_function *f, struct gsr_param *layout)
{
	uint64_t size = 0;
	unsigned int i;

	for (i = 0; i < f->n_params; i++) {
		unsigned int align = gsr_var_align(&f->params[i]);

		layout[i].offset = (size + align - 1) / align * align;
		layout[i].size = gsr_var_size(&f->params[i]);
		size = layout[i].offset + layout[i].size;
	}
	return size;
}

bool gsr_functions_exit(const struct gsr_closure *c)
{
	unsigned int i;

	for (i = 1; i < c->n; i++)
		if (c->fns[i]->plan.may_exit)
			return true;
	return false;
}

const char *gsr_refusal(struct gsr_pass *p, const struct gsr_closure *c, struct gsr_kernel *k)
{
	struct gsr_function *f = c->fns[0]->f;
	unsigned int v = version_number(p->m->version), i, limit;
	struct gsr_param *layout = gsr_alloc_array(p->arena, f->n_params, sizeof(*layout));
	unsigned int references = gsr_references_used(c);
	uint64_t params = lay_out_params(f, layout);
	const char *why;

	k->barriers = 0;
	k->params = f->n_params;
	k->layout = layout;
	k->param_size = params;
	k->references_offset = (params + 7) / 8 * 8;
	k->launch_offset = ((references ? k->references_offset + 8ull * references : params) + 15) /
			   16 * 16;
	if (v < 60)
		return gsr_sprintf(p->arena, "PTX %s is older than 6.0", p->m->version);
	if (p->m->arch < 70)
		return gsr_sprintf(p->arena, "sm_%u is older than sm_70", p->m->arch);
	if (p->m->address_size != 64)
		return "32-bit addresses";
	if (!f->body)
		return "declared only";
	for (i = 0; i < c->n; i++) {
		k->barriers += c->fns[i]->has.barriers;
		if (i && c->fns[i]->f->entry)
			return gsr_sprintf(p->arena, "refers to the kernel %s", c->fns[i]->f->name);
	}
	for (i = 0; i < f->n_params; i++)
		if (f->params[i].attrs && strstr(f->params[i].attrs, ".const"))
			return gsr_sprintf(p->arena, "parameter %s points to constant memory",
					   f->params[i].name);
	for (i = 0; i < f->n_params; i++)
		if (!layout[i].size)
			return gsr_sprintf(p->arena, "parameter %s has no size that we know",
					   f->params[i].name);
	for (i = 0; i < c->n; i++)
		if (c->fns[i]->refusal)
			return c->fns[i]->refusal;
	why = gsr_globals_room(p, c);
	if (why)
		return why;
	if (references > GSR_REFERENCES_MAX)
		return gsr_sprintf(p->arena, "more than %u texture and surface references",
				   GSR_REFERENCES_MAX);
	limit = v >= 81 ? PARAM_MAX_81 : PARAM_MAX;
	if (k->launch_offset + sizeof(struct gsr_launch) > limit)
		return gsr_sprintf(p->arena, "%llu bytes of parameters leave no room for ours",
				   (unsigned long long)params);
	return NULL;
}
