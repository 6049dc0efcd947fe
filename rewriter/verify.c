// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The verifier: whether a kernel, with the functions that it uses, is what every pass may assume.
 * Text that was inserted unparsed is parsed for it.
 *
 * In: a closure in any state between two passes. Out: what is wrong first, or NULL. Changes
 * nothing: names are compared as strings, in an arena of its own. Inserted code may name what a
 * later pass declares.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "rewriter/ptx/lex.h"
#include "verify.h"

#define MODULE		(~0u)		/* the scope around functions */

/* What a name is declared as */
enum class {
	NOTHING, REGISTER, PREDICATE, VARIABLE, FUNCTION, LABEL,
	TARGETS,			/* of .branchtargets, .callprototype and .calltargets */
};

struct decl {
	const char *name;
	const char *targets;		/* TARGETS: the directive */
	const struct gsr_var *var;
	enum class class;
	unsigned int range, scope;
	unsigned int at;		/* number of its statement, in the module of its item */
	unsigned int block;		/* LABEL: the one that it begins */
	unsigned int same;		/* another of the name, from 1 */
};

/* A statement, parsed if it was not */
struct line {
	const struct gsr_stmt *s;
	unsigned int number, scope;
	unsigned int decl;		/* from 1; 0 none */
	bool parsed;			/* it is not in the function's list itself */
};

struct verifier {
	const struct gsr_prefix *prefix;
	const struct gsr_promises *promises;
	struct gsr_arena *text, *names;	/* the parser uses marks of the one, we of the other */
	const struct gsr_fn *fn;
	struct line *lines;
	unsigned int n_lines, room_lines;
	struct decl *decls;
	unsigned int n_decls, room_decls;
	unsigned int *parent, n_scopes;
	unsigned int now;		/* the line looked at */
	unsigned int item;		/* the function's place in the module */
	jmp_buf failed;
	bool fine;
	char why[256];
};

__attribute__((noreturn, format(printf, 2, 3)))
static void fail(struct verifier *v, const char *fmt, ...)
{
	unsigned int line = v->now < v->n_lines ? v->lines[v->now].number : 0;
	size_t n = sizeof(v->why);
	va_list ap;
	int at;

	at = snprintf(v->why, n, "%.100s:%u: ", v->fn->f->name, line);
	va_start(ap, fmt);
	vsnprintf(v->why + at, n - (size_t)at, fmt, ap);
	va_end(ap);
	longjmp(v->failed, 1);
}

static void *grow(struct verifier *v, void *list, unsigned int n, unsigned int *room, size_t size)
{
	void *grown;

	if (n < *room)
		return list;
	grown = gsr_alloc_array(v->text, 2 * (size_t)n + 64, size);
	if (n)
		memcpy(grown, list, n * size);
	*room = 2 * n + 64;
	return grown;
}

/* ---- the list of statements ---- */

static void add_line(struct verifier *v, const struct gsr_stmt *s, unsigned int number, bool parsed)
{
	v->lines = grow(v, v->lines, v->n_lines, &v->room_lines, sizeof(*v->lines));
	v->lines[v->n_lines++] = (struct line){ .s = s, .number = number, .parsed = parsed };
}

static void add_parsed(struct verifier *v, const struct gsr_stmt *from)
{
	struct gsr_error err;
	const struct gsr_function *f =
		gsr_parse_body(v->text, gsr_sprintf(v->text, "{%s\n}", from->text), &err);
	const struct gsr_stmt *s;

	if (!f) {
		add_line(v, from, from->line, false);
		v->now = v->n_lines - 1;
		fail(v, "text that does not parse: %s", err.message);
	}
	if (f->first && f->first == f->last && f->first->kind == GSR_STMT_DIRECTIVE) {
		add_line(v, from, from->line, false);
		return;
	}
	for (s = f->first; s; s = s->next)
		add_line(v, s, from->line, true);
}

/* No cycle can pass: its first statement would have two before it */
static void read_list(struct verifier *v)
{
	const struct gsr_function *f = v->fn->f;
	const struct gsr_stmt *s, *before = NULL;

	v->n_lines = 0;
	for (s = f->first; s; before = s, s = s->next) {
		v->now = v->n_lines - !!v->n_lines;
		if (s->prev != before)
			fail(v, "the statement behind it is linked to another");
		if (s->kind == GSR_STMT_DIRECTIVE)
			add_parsed(v, s);
		else
			add_line(v, s, s->line, false);
	}
	v->now = v->n_lines - !!v->n_lines;
	if (f->last != before)
		fail(v, "the last statement is another");
}

/* ---- declarations ---- */

static unsigned long *mark_of(struct verifier *v, const char *name, size_t n)
{
	return gsr_intern_mark(gsr_intern(v->names, name, n));
}

static struct decl *declare(struct verifier *v, const char *name, enum class class,
			    unsigned int scope, unsigned int at)
{
	size_t n = strlen(name);
	unsigned long *mark = mark_of(v, name, n);
	struct decl *d;

	v->decls = grow(v, v->decls, v->n_decls, &v->room_decls, sizeof(*v->decls));
	d = &v->decls[v->n_decls++];
	*d = (struct decl){ .name = name, .class = class, .scope = scope, .at = at,
			    .block = GSR_NO_BLOCK, .same = (unsigned int)*mark };
	*mark = v->n_decls;
	return d;
}

static enum class class_of(const struct gsr_var *var)
{
	return strcmp(var->space, "reg") ? VARIABLE :
	       strcmp(var->type, "pred") ? REGISTER : PREDICATE;
}

static void declare_var(struct verifier *v, const struct gsr_var *var, unsigned int scope,
			unsigned int at)
{
	struct decl *d = declare(v, var->name, class_of(var), scope, at);

	d->var = var;
	d->range = var->range;
}

/* Items that are declared again are the first's */
static void declare_module(struct verifier *v, const struct gsr_module *m)
{
	const struct gsr_item *i;
	unsigned int at = 0;

	for (i = m->first; i; i = i->next, at++) {
		const char *name = i->kind == GSR_ITEM_VAR ? i->var->name :
				   i->kind == GSR_ITEM_FUNCTION ? i->function->name : NULL;

		if (!name || *mark_of(v, name, strlen(name)))
			continue;
		if (i->kind == GSR_ITEM_VAR)
			declare_var(v, i->var, MODULE, at);
		else
			declare(v, name, FUNCTION, MODULE, at);
	}
}

/* Of that scope: the name itself, or one of a range */
static struct decl *declared_in(struct verifier *v, const char *name, unsigned int scope)
{
	size_t n = strlen(name), d = n;
	unsigned long k, number;

	for (k = *mark_of(v, name, n); k; k = v->decls[k - 1].same)
		if (v->decls[k - 1].scope == scope && !v->decls[k - 1].range)
			return &v->decls[k - 1];
	while (d && isdigit((unsigned char)name[d - 1]))
		d--;
	if (!d || d == n || n - d > 9 || (name[d] == '0' && n - d > 1))
		return NULL;
	number = strtoul(name + d, NULL, 10);
	for (k = *mark_of(v, name, d); k; k = v->decls[k - 1].same)
		if (v->decls[k - 1].scope == scope && v->decls[k - 1].range > number)
			return &v->decls[k - 1];
	return NULL;
}

static void check_new(struct verifier *v, const char *name, unsigned int range, unsigned int scope)
{
	unsigned long k;

	if (!range && declared_in(v, name, scope))
		fail(v, "%s is declared twice in one scope", name);
	for (k = *mark_of(v, name, strlen(name)); range && k; k = v->decls[k - 1].same)
		if (v->decls[k - 1].scope == scope && v->decls[k - 1].range)
			fail(v, "%s<%u> is declared twice in one scope", name, range);
}

static void declare_line(struct verifier *v, struct line *l)
{
	const struct gsr_stmt *s = l->s;
	const char *name;

	if (s->kind == GSR_STMT_VAR) {
		check_new(v, s->var->name, s->var->range, l->scope);
		declare_var(v, s->var, l->scope, v->now);
	} else if (s->kind == GSR_STMT_LABEL) {
		check_new(v, s->label, 0, l->scope);
		declare(v, s->label, LABEL, l->scope, v->now);
	} else if (s->kind == GSR_STMT_DIRECTIVE && s->text[0] != '.') {
		name = gsr_strndup(v->text, s->text, strcspn(s->text, " \t\r\n:"));
		check_new(v, name, 0, l->scope);
		declare(v, name, TARGETS, l->scope, v->now)->targets = s->text;
	} else {
		return;
	}
	l->decl = v->n_decls;
}

static void read_declarations(struct verifier *v)
{
	const struct gsr_function *f = v->fn->f;
	unsigned int scope = 0, i;

	v->n_scopes = 1;
	v->parent = gsr_alloc_array(v->text, v->n_lines + 1, sizeof(*v->parent));
	v->parent[0] = MODULE;
	for (i = 0; i < f->n_rets; i++)
		declare_var(v, &f->rets[i], 0, 0);
	for (i = 0; i < f->n_params; i++) {
		check_new(v, f->params[i].name, 0, 0);
		declare_var(v, &f->params[i], 0, 0);
	}
	for (v->now = 0; v->now < v->n_lines; v->now++) {
		struct line *l = &v->lines[v->now];

		if (l->s->kind == GSR_STMT_OPEN) {
			v->parent[v->n_scopes] = scope;
			scope = v->n_scopes++;
		}
		l->scope = scope;
		if (l->s->kind == GSR_STMT_CLOSE) {
			if (!scope)
				fail(v, "a brace closes what none opened");
			scope = v->parent[scope];
		}
		declare_line(v, l);
	}
	v->now = v->n_lines - !!v->n_lines;
	if (scope)
		fail(v, "a brace is not closed");
}

static void forget_declarations(struct verifier *v, unsigned int n)
{
	while (v->n_decls > n) {
		struct decl *d = &v->decls[--v->n_decls];

		*mark_of(v, d->name, strlen(d->name)) = d->same;
	}
}

/* ---- names ---- */

/* It begins as what is inserted does */
static bool is_ours(const struct verifier *v, const char *name)
{
	const struct gsr_prefix *prefix = v->prefix;
	size_t n = strlen(prefix->local);

	if (!strncmp(name, prefix->name, strlen(prefix->name)))
		return true;
	return name[0] == '$' && !strncmp(name + 1, prefix->local, n) &&
	       (islower((unsigned char)name[1 + n]) || isdigit((unsigned char)name[1 + n]));
}

static bool is_special(const char *name)
{
	static const char *const names[] = {
		"%tid", "%ntid", "%laneid", "%warpid", "%nwarpid", "%ctaid", "%nctaid", "%smid",
		"%nsmid", "%gridid", "%clusterid", "%nclusterid", "%cluster_ctaid",
		"%cluster_nctaid", "%cluster_ctarank", "%cluster_nctarank", "%is_explicit_cluster",
		"%clock", "%clock_hi", "%clock64", "%dynamic_smem_size", "%total_smem_size",
		"%aggr_smem_size", "%current_graph_exec", "WARP_SZ",
	};
	static const char *const begins[] = { "%lanemask_", "%globaltimer", "%envreg", "%pm",
					      "%reserved_smem_offset_" };
	unsigned int i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	for (i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (!strncmp(name, begins[i], strlen(begins[i])))
			return true;
	return false;
}

/* NULL: one of the hardware, or one that a later pass declares */
static const struct decl *resolve(struct verifier *v, const char *name)
{
	unsigned int scope = v->lines[v->now].scope;
	const struct decl *d;

	for (;; scope = v->parent[scope]) {
		d = declared_in(v, name, scope);
		if (d || scope == MODULE)
			break;
	}
	if (!d && !is_special(name) && (v->promises->whole || !is_ours(v, name)))
		fail(v, "%s is not declared", name);
	/* calls that were devirtualised name functions that are declared in the end only */
	if (d && (d->scope == MODULE ? v->promises->whole && d->at > v->item :
		  d->class != LABEL && d->class != TARGETS && d->at > v->now))
		fail(v, "%s is used before it is declared", name);
	return d;
}

static void expect(struct verifier *v, const char *name, const char *what, enum class class,
		   enum class other)
{
	const struct decl *d = resolve(v, name);

	if (d && d->class != class && d->class != other)
		fail(v, "%s is no %s", name, what);
}

/* ---- instructions ---- */

/* How many operands an instruction has; what is not listed is not known */
static const struct {
	unsigned char min, max;
} operands[GSR_OP_COUNT] = {
	[GSR_OP_ADD ... GSR_OP_MUL] = { 3, 4 },
	[GSR_OP_MAD] = { 4, 4 },
	[GSR_OP_MUL24] = { 3, 3 },
	[GSR_OP_MAD24 ... GSR_OP_SAD] = { 4, 4 },
	[GSR_OP_DIV ... GSR_OP_REM] = { 3, 3 },
	[GSR_OP_ABS ... GSR_OP_NEG] = { 2, 2 },
	[GSR_OP_MIN ... GSR_OP_MAX] = { 3, 4 },
	[GSR_OP_POPC ... GSR_OP_BFIND] = { 2, 2 },
	[GSR_OP_FNS] = { 4, 4 },
	[GSR_OP_BREV] = { 2, 2 },
	[GSR_OP_BFE] = { 4, 4 },
	[GSR_OP_BFI] = { 5, 5 },
	[GSR_OP_FMA] = { 4, 4 },
	[GSR_OP_RCP ... GSR_OP_TANH] = { 2, 2 },
	[GSR_OP_SETP] = { 3, 4 },
	[GSR_OP_SELP ... GSR_OP_SLCT] = { 4, 4 },
	[GSR_OP_AND ... GSR_OP_XOR] = { 3, 3 },
	[GSR_OP_NOT ... GSR_OP_CNOT] = { 2, 2 },
	[GSR_OP_LOP3] = { 5, 6 },
	[GSR_OP_SHF] = { 4, 4 },
	[GSR_OP_SHL ... GSR_OP_SHR] = { 3, 3 },
	[GSR_OP_MOV] = { 2, 2 },
	[GSR_OP_SHFL] = { 4, 5 },
	[GSR_OP_PRMT] = { 4, 4 },
	[GSR_OP_LD] = { 2, 3 },
	[GSR_OP_ST] = { 2, 3 },
	[GSR_OP_CVTA] = { 2, 2 },
	[GSR_OP_CVT] = { 2, 4 },
	[GSR_OP_BRA] = { 1, 1 },
	[GSR_OP_BRX] = { 2, 2 },
	[GSR_OP_CALL] = { 1, 4 },
	[GSR_OP_ATOM] = { 3, 5 },
	[GSR_OP_RED] = { 2, 3 },
	[GSR_OP_ACTIVEMASK] = { 1, 1 },
	[GSR_OP_NANOSLEEP] = { 1, 1 },
};

static bool is_ids(const char *name)
{
	return !strcmp(name, "%ctaid") || !strcmp(name, "%nctaid");
}

static void check_use(struct verifier *v, const struct gsr_insn *insn, const struct gsr_operand *o)
{
	const struct gsr_promises *promises = v->promises;
	const struct decl *d;
	unsigned int i;

	for (i = 0; i < o->n_items; i++)
		check_use(v, insn, &o->items[i]);
	if (!o->name)
		return;
	d = resolve(v, o->name);
	if (promises->ids && is_ids(o->name) &&
	    !(insn->opnds[0].name && is_ours(v, insn->opnds[0].name)))
		fail(v, "%s is read", o->name);
	if (!d)
		return;
	if (promises->variables && d->scope == MODULE && d->var && gsr_is_global(d->var) &&
	    !is_ours(v, o->name))
		fail(v, "%s is named", o->name);
	if (d->class == LABEL && insn->op != GSR_OP_BRA)
		fail(v, "label %s is no operand of %s", o->name, insn->name);
	if (d->class == TARGETS && insn->op != GSR_OP_BRX && insn->op != GSR_OP_CALL)
		fail(v, "directive %s is no operand of %s", o->name, insn->name);
	if (d->class == FUNCTION && insn->op != GSR_OP_CALL && insn->op != GSR_OP_MOV)
		fail(v, "function %s is no operand of %s", o->name, insn->name);
}

static void check_result(struct verifier *v, const struct gsr_insn *insn,
			 const struct gsr_operand *o)
{
	unsigned int i;

	if (o->kind == GSR_OPND_VEC || o->kind == GSR_OPND_PAIR)
		for (i = 0; i < o->n_items; i++)
			check_result(v, insn, &o->items[i]);
	else if (o->name && o->kind != GSR_OPND_ADDR)
		expect(v, o->name, "register", REGISTER, PREDICATE);
	else if (o->kind != GSR_OPND_SINK)
		fail(v, "the result of %s is no register", insn->name);
	if (insn->op == GSR_OP_SETP && o->name)
		expect(v, o->name, "predicate", PREDICATE, PREDICATE);
}

static bool is_address(const struct gsr_insn *insn, unsigned int i)
{
	return insn->n_opnds > i && insn->opnds[i].kind == GSR_OPND_ADDR;
}

/* "ts: .branchtargets A, B;" */
static void check_targets(struct verifier *v, const char *text)
{
	struct gsr_lexer lx;
	struct gsr_token t;

	if (!strstr(text, ".branchtargets"))
		fail(v, "brx.idx names no .branchtargets");
	gsr_lex_init(&lx, text, strlen(text));
	while (gsr_lex_next(&lx).kind != GSR_TOK_DOT)
		;
	while ((t = gsr_lex_next(&lx)).kind != GSR_TOK_END && t.punct != ';')
		if (t.kind == GSR_TOK_IDENT)
			expect(v, gsr_strndup(v->text, t.text, t.len), "label", LABEL, LABEL);
}

static void check_insn(struct verifier *v, const struct gsr_insn *insn)
{
	const struct decl *d;
	unsigned int i;

	if (operands[insn->op].max && (insn->n_opnds < operands[insn->op].min ||
				       insn->n_opnds > operands[insn->op].max))
		fail(v, "%s with %u operands", insn->name, insn->n_opnds);
	if (insn->guard)
		expect(v, insn->guard, "predicate", PREDICATE, PREDICATE);
	for (i = 0; i < insn->n_opnds; i++)
		check_use(v, insn, &insn->opnds[i]);
	if (gsr_has_result(insn) && insn->n_opnds)
		check_result(v, insn, &insn->opnds[0]);
	if (insn->op == GSR_OP_BRA)
		expect(v, insn->opnds[0].name ? insn->opnds[0].name : "its operand", "label",
		       LABEL, LABEL);
	if (insn->op == GSR_OP_BRX && insn->opnds[1].name) {
		d = resolve(v, insn->opnds[1].name);
		check_targets(v, d && d->targets ? d->targets : "");
	}
	if (insn->op == GSR_OP_ST || insn->op == GSR_OP_RED ? !is_address(insn, 0) :
	    insn->op == GSR_OP_LD || insn->op == GSR_OP_ATOM ? !is_address(insn, 1) : false)
		fail(v, "%s without an address", insn->name);
}

/*
 * Our own loads of what others write meanwhile are of one word: with more, lanes may find different
 * values, and ptxas takes them for the same (suspend.ptx).
 */
static void check_parts(struct verifier *v, const struct gsr_insn *insn)
{
	if (insn->op == GSR_OP_LD && gsr_insn_has(insn, "volatile") &&
	    (gsr_insn_has(insn, "v2") || gsr_insn_has(insn, "v4") ||
	     gsr_type_size(insn->mods[insn->n_mods - 1]) > 4))
		fail(v, "inserted %s of several words that others write", insn->name);
}

static void check_text(struct verifier *v)
{
	const struct gsr_promises *promises = v->promises;
	unsigned int ends = 0;
	struct gsr_barrier b;

	for (v->now = 0; v->now < v->n_lines; v->now++) {
		const struct gsr_stmt *s = v->lines[v->now].s;

		if (s->kind == GSR_STMT_OPEN && v->fn->f->entry && promises->flat)
			fail(v, "there is an inner scope");
		if (s->kind != GSR_STMT_INSN)
			continue;
		check_insn(v, s->insn);
		if (v->lines[v->now].parsed)
			check_parts(v, s->insn);
		if (promises->sites && v->fn->f->entry && gsr_barrier_of(v->fn->f, s->insn, &b) &&
		    !b.warp && !b.cluster && !b.counted)
			fail(v, "%s waits for finished threads", s->insn->name);
		if (s->insn->op != GSR_OP_RET && s->insn->op != GSR_OP_EXIT)
			continue;
		if (v->fn->f->entry && promises->returns && ++ends > promises->loop)
			fail(v, "%s is a further way out", s->insn->name);
	}
	v->now = v->n_lines - !!v->n_lines;
	if (v->fn->f->entry && promises->loop && !ends)
		fail(v, "there is no way out");
}

/* ---- the graph ---- */

/*
 * Each statement is in one block, labels begin one, and branches end one. A function's graph is
 * kept for the next kernel, so code without branches may have come in front of its blocks.
 */
static void check_blocks(struct verifier *v)
{
	const struct gsr_cfg *cfg = &v->fn->graph.cfg;
	bool inside = false, ends = false;
	unsigned int n = 0;

	for (v->now = 0; v->now < v->n_lines; v->now++) {
		const struct line *l = &v->lines[v->now];
		const struct gsr_stmt *s = l->s;

		if (l->parsed)
			fail(v, "unparsed text, and a graph of it");
		if (!inside && n < cfg->n_blocks && s == cfg->blocks[n].first) {
			inside = true;
			if (s->kind == GSR_STMT_LABEL)
				v->decls[l->decl - 1].block = n;
		} else if (s->kind == GSR_STMT_LABEL) {
			fail(v, "label %s begins no block of the graph", s->label);
		}
		if (!inside && v->fn->f->entry)
			fail(v, "a statement in no block of the graph");
		ends = inside && s == cfg->blocks[n].last;
		if (!ends && s->kind == GSR_STMT_INSN && gsr_insn_branches(s->insn))
			fail(v, "%s ends no block of the graph", s->insn->name);
		n += ends;
		inside &= !ends;
	}
	v->now = v->n_lines - !!v->n_lines;
	if (n != cfg->n_blocks)
		fail(v, "a block of the graph is not in the text");
}

static void check_edge(struct verifier *v, const struct gsr_block *b, unsigned int to,
		       unsigned int *n)
{
	unsigned int i;

	for (i = 0; i < b->n_succ && b->succ[i] != to; i++)
		;
	if (i == b->n_succ)
		fail(v, "the graph lacks an edge to block %u", to);
	*n |= i < 32 ? 1u << i : 0;
}

static unsigned int block_of(struct verifier *v, const char *name)
{
	const struct decl *d = resolve(v, name);

	return d ? d->block : GSR_NO_BLOCK;
}

static void check_edges(struct verifier *v, const struct gsr_block *b, unsigned int i)
{
	const struct gsr_insn *insn = b->last->kind == GSR_STMT_INSN &&
		gsr_insn_branches(b->last->insn) ? b->last->insn : NULL;
	unsigned int n = v->fn->graph.cfg.n_blocks, seen = 0;
	const struct decl *d;
	struct gsr_lexer lx;
	struct gsr_token t;

	if (!insn || insn->guard)
		check_edge(v, b, i + 1, &seen);
	if (insn && insn->op == GSR_OP_BRA) {
		check_edge(v, b, block_of(v, insn->opnds[0].name), &seen);
	} else if (insn && insn->op == GSR_OP_BRX) {
		d = resolve(v, insn->opnds[1].name);
		gsr_lex_init(&lx, d->targets, strlen(d->targets));
		while (gsr_lex_next(&lx).kind != GSR_TOK_DOT)
			;
		while ((t = gsr_lex_next(&lx)).kind != GSR_TOK_END && t.punct != ';')
			if (t.kind == GSR_TOK_IDENT)
				check_edge(v, b, block_of(v, gsr_strndup(v->text, t.text, t.len)),
					   &seen);
	} else if (insn) {
		check_edge(v, b, n, &seen);
	}
	if (b->n_succ < 32 && seen != (1u << b->n_succ) - 1)
		fail(v, "the graph has an edge that the text has not");
}

static void check_graph(struct verifier *v)
{
	const struct gsr_cfg *cfg = &v->fn->graph.cfg;
	unsigned int i;

	check_blocks(v);
	for (v->now = i = 0; i < cfg->n_blocks && !cfg->error; i++) {
		while (v->lines[v->now].s != cfg->blocks[i].last)
			v->now++;
		check_edges(v, &cfg->blocks[i], i);
	}
}

/* ---- all of it ---- */

static unsigned int item_of(const struct gsr_module *m, const struct gsr_function *f)
{
	const struct gsr_item *i = m->first;
	unsigned int at = 0;

	while (i && !(i->kind == GSR_ITEM_FUNCTION && i->function == f)) {
		i = i->next;
		at++;
	}
	return at;
}

static void check_function(struct verifier *v, const struct gsr_module *m, const struct gsr_fn *fn)
{
	unsigned int n = v->n_decls;

	v->fn = fn;
	v->item = item_of(m, fn->f);
	read_list(v);
	read_declarations(v);
	check_text(v);
	if (fn->graph.valid)
		check_graph(v);
	forget_declarations(v, n);
}

static void check_all(struct verifier *v, const struct gsr_module *m, const struct gsr_closure *c)
{
	unsigned int i;

	declare_module(v, m);
	for (i = 0; i < c->n; i++)
		if (c->fns[i]->f->body)
			check_function(v, m, c->fns[i]);
}

const char *gsr_verify(struct gsr_pass *p, const struct gsr_module *m, const struct gsr_closure *c,
		       const struct gsr_promises *promises)
{
	struct verifier *v = gsr_alloc(p->arena, sizeof(*v));

	v->prefix = &p->prefix;
	v->promises = promises;
	v->text = gsr_arena_new();
	v->names = gsr_arena_new();
	if (v->text && v->names && !setjmp(v->failed)) {
		gsr_arena_escape(v->text, &v->failed);
		gsr_arena_escape(v->names, &v->failed);
		check_all(v, m, c);
		v->fine = true;
	}
	gsr_arena_free(v->text);
	gsr_arena_free(v->names);
	return v->fine ? NULL : v->why[0] ? v->why : "no memory to verify it";
}
