// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * `exit` in functions that are not inlined: those that are recursive, or whose address is taken, or
 * that are called by one of these. The exit becomes "set a flag, and return"; behind each call of
 * such a function a thread whose flag is set returns too, through all frames, until the kernel's
 * own `ret`. The flag is the thread's own byte in shared memory, which no other thread accesses; so
 * no signature and no prototype changes.
 *
 * The kernel clears the byte in front of each such call, so it needs no initialisation. The
 * PTX is in exits.ptx.
 *
 * In: functions that are not inlined, and kernels that call them. Out: gsr_plan.may_exit and
 * keeps_barriers; the code. Assumes gsr_barriers_prepare().
 */
#include <string.h>
#include "transform.h"
#include "rewriter/transform/exits.ptx.h"

struct exits {
	struct gsr_pass *p;
	struct gsr_fn *fn;
	unsigned int inserted;
};

static bool *may_exit_flag(struct gsr_plan *plan)
{
	return &plan->may_exit;
}

static bool *keeps_barriers_flag(struct gsr_plan *plan)
{
	return &plan->keeps_barriers;
}

/*
 * Clears the marks of functions that can be inlined: those that are reached only by calls from
 * functions that can be inlined themselves. The rest is recursive, has its address taken, or is
 * called by such a function.
 */
static void find_staying(struct gsr_pass *p, bool *(*mark)(struct gsr_plan *plan))
{
	struct gsr_fn **ready = gsr_alloc_array(p->arena, p->n_fns + 1, sizeof(struct gsr_fn *));
	unsigned int *callers = gsr_alloc_array(p->arena, p->n_fns + 1, sizeof(*callers)), n = 0, i,
		     k;

	for (i = 0; i < p->n_fns; i++)
		for (k = 0; k < p->fns[i].has.refs.n && *mark(&p->fns[i].plan); k++)
			callers[p->fns[i].has.refs.at[k] - p->fns]++;
	for (i = 0; i < p->n_fns; i++)
		if (*mark(&p->fns[i].plan) && !callers[i] && !gsr_stays_function(&p->fns[i].has))
			ready[n++] = &p->fns[i];
	while (n) {
		struct gsr_fn *fn = ready[--n];

		*mark(&fn->plan) = false;
		for (k = 0; k < fn->has.refs.n; k++) {
			struct gsr_fn *to = fn->has.refs.at[k];

			if (!--callers[to - p->fns] && *mark(&to->plan) &&
			    !gsr_stays_function(&to->has))
				ready[n++] = to;
		}
	}
}

void gsr_exits_prepare(struct gsr_pass *p)
{
	unsigned int i;

	for (i = 0; i < p->n_fns; i++) {
		struct gsr_fn *fn = &p->fns[i];

		fn->plan.may_exit = fn->any.exit && !fn->f->entry;
		fn->plan.keeps_barriers = fn->any.plain && !fn->f->entry;
	}
	find_staying(p, may_exit_flag);
	find_staying(p, keeps_barriers_flag);
}

static bool calls_exiting(const struct gsr_fn *fn, const struct gsr_insn *insn)
{
	const struct gsr_fn *to;
	unsigned int k = 0;

	while ((to = gsr_callee(fn, insn, &k)))
		if (to->plan.may_exit)
			return true;
	return false;
}

bool gsr_call_passes(const struct gsr_stmt *s, enum gsr_opcode op, const struct gsr_insn *call)
{
	const struct gsr_operand *addr = NULL;
	unsigned int i, k;

	if (s->kind != GSR_STMT_INSN || s->insn->op != op || s->insn->n_opnds != 2 ||
	    s->insn->guard)
		return false;
	addr = &s->insn->opnds[op == GSR_OP_LD];
	if (addr->kind != GSR_OPND_ADDR || !addr->n_items || !addr->items[0].name)
		return false;
	for (i = 0; i < call->n_opnds; i++)
		for (k = 0; call->opnds[i].kind == GSR_OPND_LIST && k < call->opnds[i].n_items; k++)
			if (call->opnds[i].items[k].name == addr->items[0].name)
				return true;
	return false;
}

/* The statement behind the call and its results: their loads and line information may follow */
static struct gsr_stmt *call_ends(struct gsr_stmt *call)
{
	struct gsr_stmt *s = call->next, *last = call;

	for (; s && (gsr_call_passes(s, GSR_OP_LD, call->insn) || s->kind == GSR_STMT_VAR ||
		     (s->kind == GSR_STMT_DIRECTIVE && s->text[0] == '.')); s = s->next)
		if (s->kind == GSR_STMT_INSN)
			last = s;
	return last->next;
}

struct gsr_stmt *gsr_call_begins(struct gsr_stmt *call)
{
	struct gsr_stmt *first = call;

	while (first->prev && gsr_call_passes(first->prev, GSR_OP_ST, call->insn))
		first = first->prev;
	return first;
}

static void insert_code(struct exits *x, struct gsr_stmt *at, const char *text)
{
	x->inserted += gsr_insert(x->p, x->fn->f, at, text);
}

/* Behind the call: return if the flag is set. In a kernel, clear it in front of the call */
static void insert_flag_check(struct exits *x, struct gsr_stmt *call)
{
	struct gsr_stmt *at = call_ends(call);

	if (x->fn->f->entry) {
		struct gsr_stmt *first = gsr_call_begins(call);

		insert_code(x, first, compute_address);
		insert_code(x, first, gsr_sprintf(x->p->arena, store_flag, 0));
	}
	insert_code(x, at, return_if_set);
}

static void convert_exit(struct exits *x, struct gsr_stmt *s)
{
	unsigned int past = ++x->p->unique;

	if (s->insn->guard) {
		insert_code(x, s, gsr_sprintf(x->p->arena, "bra $#stay_%u;", past));
		s->prev->insn->guard = s->insn->guard;
		s->prev->insn->guard_negated = !s->insn->guard_negated;
		gsr_insert(x->p, x->fn->f, s->next, gsr_sprintf(x->p->arena, "$#stay_%u:", past));
	}
	insert_code(x, s, gsr_sprintf(x->p->arena, store_flag, 1));
	s->insn->guard = NULL;
	s->insn->guard_negated = false;
	s->insn->op = GSR_OP_RET;
	s->insn->name = gsr_intern_str(x->p->arena, "ret");
}

/* A function that exits its thread returns now */
static const char *without_noreturn(struct gsr_pass *p, const char *text)
{
	static const char word[] = ".noreturn";
	const char *at = text ? strstr(text, word) : NULL;

	return at ? gsr_sprintf(p->arena, "%.*s%s", (int)(at - text), text, at + strlen(word)) :
		    text;
}

static void drop_noreturn(struct gsr_pass *p, struct gsr_function *f)
{
	unsigned int i, n = 0;

	f->attrs = without_noreturn(p, f->attrs);
	for (i = 0; i < f->n_perf; i++)
		if (strncmp(f->perf[i], ".noreturn", 9))
			f->perf[n++] = f->perf[i];
	f->n_perf = n;
}

unsigned int gsr_exits(struct gsr_pass *p, struct gsr_fn *fn)
{
	struct exits x = { .p = p, .fn = fn };
	struct gsr_function *f = fn->f;
	struct gsr_stmt *s, *next;
	struct gsr_item *i;

	for (s = f->first; s; s = next) {
		next = s->next;
		if (s->kind == GSR_STMT_DIRECTIVE && strstr(s->text, ".callprototype"))
			s->text = without_noreturn(p, s->text);
		if (s->kind != GSR_STMT_INSN)
			continue;
		if (s->insn->op == GSR_OP_EXIT && !f->entry)
			convert_exit(&x, s);
		else if (s->insn->op == GSR_OP_CALL && calls_exiting(fn, s->insn))
			insert_flag_check(&x, s);
	}
	for (i = p->m->first; i && !f->entry; i = i->next)
		if (i->kind == GSR_ITEM_FUNCTION && i->function->name == f->name)
			drop_noreturn(p, i->function);
	if (!x.inserted)
		return 0;
	if (!f->entry)
		gsr_insert(p, f, f->first, compute_address);
	gsr_insert(p, f, f->first, ".reg .b32 %#e<3>; .reg .pred %#ep;");
	gsr_graph(p, fn);
	return x.inserted;
}
