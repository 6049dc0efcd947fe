// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * `exit` in functions that stay functions: those that are recursive, or whose address is taken, or
 * that one of these calls. "exit" becomes "say so, and return", and behind each call of such a
 * function a thread that has said so returns in turn, through all frames, until the kernel's own
 * `ret`, which is one like others. What it says it to is a byte of its own in shared memory: no
 * signature changes, nor any prototype, and nobody else reads or writes it.
 *
 * The kernel makes the byte zero in front of each such call, so nothing has to be known of it
 * before, nor behind.
 *
 * In: functions that stay functions, and kernels that call them. Out: gsr_fn.may_exit and holds; the
 * code. Assumes that the facts "with all that it calls" are there (gsr_barriers_prepare()).
 */
#include <string.h>
#include "transform.h"

struct exits {
	struct gsr_pass *p;
	struct gsr_fn *fn;
	unsigned int inserted;
};

/*
 * %#e0: where the thread's byte lies. Reckoned before calls and held, never behind one: lanes come back from a recursion in pieces, and ptxas
 * 13.0 goes on there with uniform registers, which change once for each piece.
 */
static const char place[] =
	"mov.u32 %#e0, %tid.z;\n"
	"mov.u32 %#e1, %ntid.y;\n"
	"mov.u32 %#e2, %tid.y;\n"
	"mad.lo.u32 %#e0, %#e0, %#e1, %#e2;\n"
	"mov.u32 %#e1, %ntid.x;\n"
	"mov.u32 %#e2, %tid.x;\n"
	"mad.lo.u32 %#e0, %#e0, %#e1, %#e2;\n"
	"mov.u32 %#e1, #ended;\n"
	"add.u32 %#e0, %#e0, %#e1;\n";

static bool *ends(struct gsr_fn *fn)
{
	return &fn->may_exit;
}

static bool *holds(struct gsr_fn *fn)
{
	return &fn->keeps_barriers;
}

/*
 * Of the functions that are marked, who can become part of the kernel: those that nobody reaches but by calls from others that can.
 * Their marks go. The rest is recursive, has its address taken, or is called by such a function.
 */
static void find_staying(struct gsr_pass *p, bool *(*mark)(struct gsr_fn *fn))
{
	struct gsr_fn **ready = gsr_alloc_array(p->arena, p->n_fns + 1, sizeof(struct gsr_fn *));
	unsigned int *callers = gsr_alloc_array(p->arena, p->n_fns + 1, sizeof(*callers)), n = 0, i, k;

	for (i = 0; i < p->n_fns; i++)
		for (k = 0; k < p->fns[i].n_refs && *mark(&p->fns[i]); k++)
			callers[p->fns[i].refs[k] - p->fns]++;
	for (i = 0; i < p->n_fns; i++)
		if (*mark(&p->fns[i]) && !callers[i] && !gsr_stays_function(&p->fns[i]))
			ready[n++] = &p->fns[i];
	while (n) {
		struct gsr_fn *fn = ready[--n];

		*mark(fn) = false;
		for (k = 0; k < fn->n_refs; k++)
			if (!--callers[fn->refs[k] - p->fns] && *mark(fn->refs[k]) && !gsr_stays_function(fn->refs[k]))
				ready[n++] = fn->refs[k];
	}
}

void gsr_exits_prepare(struct gsr_pass *p)
{
	unsigned int i;

	for (i = 0; i < p->n_fns; i++) {
		p->fns[i].may_exit = p->fns[i].any_exit && !p->fns[i].f->entry;
		p->fns[i].keeps_barriers = p->fns[i].any_plain && !p->fns[i].f->entry;
	}
	find_staying(p, ends);
	find_staying(p, holds);
}

static bool calls_ending(const struct gsr_fn *fn, const struct gsr_insn *insn)
{
	const struct gsr_fn *to;
	unsigned int k = 0;

	while ((to = gsr_callee(fn, insn, &k)))
		if (to->may_exit)
			return true;
	return false;
}

bool gsr_call_passes(const struct gsr_stmt *s, enum gsr_opcode op, const struct gsr_insn *call)
{
	const struct gsr_operand *addr = NULL;
	unsigned int i, k;

	if (s->kind != GSR_STMT_INSN || s->insn->op != op || s->insn->n_opnds != 2 || s->insn->guard)
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

/* What returns is read directly behind the call, and with it goes line information, and braces that close */
static struct gsr_stmt *behind(struct gsr_stmt *call)
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

static void insert(struct exits *x, struct gsr_stmt *at, const char *text)
{
	x->inserted += gsr_insert(x->p, x->fn->f, at, text);
}

/* @at NULL: the end, which a function may have without a statement */
static void look(struct exits *x, struct gsr_stmt *call)
{
	struct gsr_stmt *at = behind(call);

	if (x->fn->f->entry) {
		struct gsr_stmt *first = gsr_call_begins(call);

		insert(x, first, place);
		insert(x, first, "mov.u32 %#e1, 0; st.shared.u8 [%#e0], %#e1;");
	}
	insert(x, at, "ld.shared.u8 %#e1, [%#e0]; setp.ne.u32 %#ep, %#e1, 0; @%#ep ret;");
}

static void say(struct exits *x, struct gsr_stmt *s)
{
	unsigned int past = ++x->p->unique;

	if (s->insn->guard) {
		insert(x, s, gsr_sprintf(x->p->arena, "bra $#stay_%u;", past));
		s->prev->insn->guard = s->insn->guard;
		s->prev->insn->guard_negated = !s->insn->guard_negated;
		gsr_insert(x->p, x->fn->f, s->next, gsr_sprintf(x->p->arena, "$#stay_%u:", past));
	}
	insert(x, s, "mov.u32 %#e1, 1; st.shared.u8 [%#e0], %#e1;");
	s->insn->guard = NULL;
	s->insn->guard_negated = false;
	s->insn->op = GSR_OP_RET;
	s->insn->name = gsr_intern_str(x->p->arena, "ret");
}

/* A function that ends its thread does return now */
static const char *without_noreturn(struct gsr_pass *p, const char *text)
{
	static const char word[] = ".noreturn";
	const char *at = text ? strstr(text, word) : NULL;

	return at ? gsr_sprintf(p->arena, "%.*s%s", (int)(at - text), text, at + strlen(word)) : text;
}

static void may_return(struct gsr_pass *p, struct gsr_function *f)
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
			say(&x, s);
		else if (s->insn->op == GSR_OP_CALL && calls_ending(fn, s->insn))
			look(&x, s);
	}
	for (i = p->m->first; i && !f->entry; i = i->next)
		if (i->kind == GSR_ITEM_FUNCTION && i->function->name == f->name)
			may_return(p, i->function);
	if (!x.inserted)
		return 0;
	if (!f->entry)
		gsr_insert(p, f, f->first, place);
	gsr_insert(p, f, f->first, ".reg .b32 %#e<3>; .reg .pred %#ep;");
	gsr_graph(p, fn);
	return x.inserted;
}
