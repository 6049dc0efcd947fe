// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The verifier: the corpus and random kernels go through it in all forms and come out the same; and
 * functions that are broken in one way each, of which it must say that.
 */
#include "test.h"
#include "rewriter/transform/transform.h"
#include "rewriter/verify.h"
#include "selftests/fuzz/gen/gen.h"

/* ---- the corpus ---- */

static const struct {
	const char *name;
	bool resumable, modes;
	enum gsr_restart restart;
} forms[] = {
	{ "twins", false, false, GSR_RESTART_NEVER },
	{ "modes", false, true, GSR_RESTART_NEVER },
	{ "resumable", true, false, GSR_RESTART_NEVER },
	{ "resumable or restart", true, true, GSR_RESTART_INSTEAD },
	{ "restart", true, false, GSR_RESTART_ALWAYS },
};

/* Of kernels that are no valid PTX it says that; they are refused without it, too */
static bool is_invalid(const struct gsr_kernel *k)
{
	return (!strcmp(k->name, "no_label") || !strcmp(k->name, "packs")) &&
	       k->tier == GSR_TIER_LAUNCH && strstr(k->reason, "; the input is not valid");
}

/* With verification the result is the same */
static bool same(const struct gsr_rewrite *a, const struct gsr_rewrite *b)
{
	unsigned int i, differ = 0;

	for (i = 0; i < a->n_kernels && i < b->n_kernels; i++)
		if (a->kernels[i].tier != b->kernels[i].tier ||
		    (strcmp(a->kernels[i].reason, b->kernels[i].reason) &&
		     !is_invalid(&b->kernels[i]))) {
			printf("# %s: %s\n", b->kernels[i].name, b->kernels[i].reason);
			differ++;
		}
	return !differ && a->n_kernels == b->n_kernels && a->ptx_size == b->ptx_size &&
	       (!a->ptx || !strcmp(a->ptx, b->ptx));
}

static bool all_forms(const char *what, const char *text, size_t n)
{
	struct gsr_rewrite without, with;
	unsigned int i, good = 0;
	struct gsr_error err;

	for (i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct gsr_options o = { .size = sizeof(o), .resumable = forms[i].resumable,
					 .modes = forms[i].modes, .restart = forms[i].restart };
		bool fine = !gsr_rewrite_ptx(text, n, &o, &without, &err);

		o.verify = true;
		fine &= !gsr_rewrite_ptx(text, n, &o, &with, &err) && same(&without, &with);
		if (!fine)
			printf("# %s: %s %s\n", what, forms[i].name, err.message);
		good += fine;
		gsr_rewrite_free(&without);
		gsr_rewrite_free(&with);
	}
	return good == i;
}

static void random_kernels(uint64_t seed, unsigned int n)
{
	struct gen_options o;
	unsigned int i, wrong = 0;

	gen_options_init(&o);
	for (i = 0; i < n; i++) {
		struct gen_kernel *k = gen_kernel_new(seed + i, &o);
		char *ptx = k ? gen_print(k) : NULL;

		wrong += !ptx || !all_forms(k->launch.kernel, ptx, strlen(ptx));
		free(ptx);
		gen_kernel_free(k);
	}
	ok(!wrong, "%u random kernels in all forms", n);
}

/* ---- broken functions ---- */

static const char *const base[] = {
	/* 1 */ ".version 7.0",
	/* 2 */ ".target sm_75",
	/* 3 */ ".address_size 64",
	/* 4 */ ".global .u32 g;",
	/* 5 */ ".visible .entry k(.param .u64 q) {",
	/* 6 */ ".reg .pred %p<2>;",
	/* 7 */ ".reg .b32 %r<4>;",
	/* 8 */ ".reg .b64 %d<2>;",
	/* 9 */ "ld.param.u64 %d1, [q];",
	/* 10 */ "mov.u32 %r1, %ctaid.x;",
	/* 11 */ "setp.eq.u32 %p1, %r1, 3;",
	/* 12 */ "@%p1 bra done;",
	/* 13 */ "{",
	/* 14 */ ".reg .b32 inner;",
	/* 15 */ "within: add.u32 inner, %r1, 1;",
	/* 16 */ "st.global.u32 [%d1], inner;",
	/* 17 */ "}",
	/* 18 */ "mov.u64 %d1, g;",
	/* 19 */ "done:",
	/* 20 */ "ret;",
	/* 21 */ "}",
};
#define N_LINES	(sizeof(base) / sizeof(base[0]))

struct broken {
	unsigned int line;		/* replaced by @text; 0: none */
	const char *text;
	struct gsr_promises promises;
	const char *why;		/* NULL: nothing is wrong */
	void (*change)(struct gsr_pass *p, struct gsr_function *f);	/* the tree */
};

static struct gsr_stmt *at(struct gsr_function *f, unsigned int line)
{
	struct gsr_stmt *s = f->first;

	while (s->line < line)
		s = s->next;
	return s;
}

static void unlink_back(struct gsr_pass *p, struct gsr_function *f)
{
	(void)p;
	at(f, 11)->prev = at(f, 9);
}

static void end_early(struct gsr_pass *p, struct gsr_function *f)
{
	(void)p;
	f->last = f->last->prev;
}

static void close_circle(struct gsr_pass *p, struct gsr_function *f)
{
	(void)p;
	f->last->next = at(f, 9);
}

static void drop_open(struct gsr_pass *p, struct gsr_function *f)
{
	(void)p;
	gsr_remove(f, at(f, 13));
}

static void drop_close(struct gsr_pass *p, struct gsr_function *f)
{
	(void)p;
	gsr_remove(f, at(f, 17));
}

static void text_of_nothing(struct gsr_pass *p, struct gsr_function *f)
{
	gsr_insert_text(p, f, at(f, 18), "mov.u32 %#1, ;\n");
}

static void text_of_unknown(struct gsr_pass *p, struct gsr_function *f)
{
	gsr_insert_text(p, f, at(f, 18), "$#a:\nmov.u32 %r1, %r9;\n");
}

static void text_of_words(struct gsr_pass *p, struct gsr_function *f)
{
	gsr_insert_text(p, f, at(f, 18), "ld.volatile.shared.v2.u32 {%r1, %r2}, [%r3];\n");
}

static void text_of_own(struct gsr_pass *p, struct gsr_function *f)
{
	gsr_insert_text(p, f, at(f, 18), "mov.u32 %#1, 0;\nbra $#a;\n");
}

static void text_declared(struct gsr_pass *p, struct gsr_function *f)
{
	gsr_insert_text(p, f, f->first, ".reg .u32 %#<2>;\n");
	text_of_own(p, f);
	gsr_insert_text(p, f, NULL, "$#a:\n");
}

static void new_label(struct gsr_pass *p, struct gsr_function *f)
{
	gsr_insert(p, f, at(f, 11), "$#a:");
}

static void new_branch(struct gsr_pass *p, struct gsr_function *f)
{
	gsr_insert(p, f, at(f, 11), "bra done;");
}

static void new_first(struct gsr_pass *p, struct gsr_function *f)
{
	gsr_insert(p, f, f->first, ".reg .b32 %#1;");
}

static void new_text(struct gsr_pass *p, struct gsr_function *f)
{
	gsr_insert_text(p, f, at(f, 11), "mov.u32 %r1, 0;\nmov.u32 %r2, 0;\n");
}

static void drop_end(struct gsr_pass *p, struct gsr_function *f)
{
	(void)p;
	gsr_remove(f, at(f, 20));
}

static void retarget(struct gsr_pass *p, struct gsr_function *f)
{
	at(f, 12)->insn->opnds[0].name = gsr_intern_str(p->arena, "again");
}

static void always(struct gsr_pass *p, struct gsr_function *f)
{
	(void)p;
	at(f, 12)->insn->guard = NULL;
}

static const struct broken broken[] = {
	{ .why = NULL },
	{ 15, "within: add.u32 inner, %r4, 1;", .why = "k:15: %r4 is not declared" },
	{ 18, "mov.u32 inner, 1;", .why = "k:18: inner is not declared" },
	{ 18, "mov.u32 late, 1; .reg .b32 late;",
	  .why = "k:18: late is used before it is declared" },
	{ 14, ".reg .b32 inner, inner;", .why = "k:14: inner is declared twice in one scope" },
	{ 14, ".reg .b32 inner; .reg .b64 q;", .why = NULL },
	{ 8, ".reg .b64 %d<2>; .reg .b64 q;", .why = "k:8: q is declared twice in one scope" },
	{ 8, ".reg .b64 %d<2>, %d<3>;", .why = "k:8: %d<3> is declared twice in one scope" },
	{ 8, ".reg .b64 %d<2>, %d1;", .why = "k:8: %d1 is declared twice in one scope" },
	{ 19, "done: done:", .why = "k:19: done is declared twice in one scope" },
	{ 12, "@%p1 bra nowhere;", .why = "k:12: nowhere is not declared" },
	{ 12, "@%p1 bra within;", .why = "k:12: within is not declared" },
	{ 12, "@%p1 bra %r1;", .why = "k:12: %r1 is no label" },
	{ 12, "@%r1 bra done;", .why = "k:12: %r1 is no predicate" },
	{ 12, "@%p1 bra done, done;", .why = "k:12: bra with 2 operands" },
	{ 12, "brx.idx %r1, done;", .why = "k:12: label done is no operand of brx" },
	{ 12, "brx.idx %r1, ts; ts: .branchtargets done, no;",
	  .why = "k:12: no is not declared" },
	{ 12, "brx.idx %r1, ts; ts: .branchtargets done;", .why = NULL },
	{ 11, "setp.eq.u32 %r1, %r1, 3;", .why = "k:11: %r1 is no predicate" },
	{ 15, "within: add.u32 inner, %r1;", .why = "k:15: add with 2 operands" },
	{ 15, "within: add.u32 5, %r1, 1;", .why = "k:15: the result of add is no register" },
	{ 15, "within: add.u32 g, %r1, 1;", .why = "k:15: g is no register" },
	{ 15, "within: add.u32 inner, k, 1;", .why = "k:15: function k is no operand of add" },
	{ 16, "st.global.u32 %d1, inner;", .why = "k:16: st without an address" },
	{ 16, "mov.u32 %r1, done;", .why = "k:16: label done is no operand of mov" },
	{ .promises = { .flat = true }, .why = "k:13: there is an inner scope" },
	{ 18, "bar.sync 1;", { .sites = true }, .why = "k:18: bar waits for finished threads" },
	{ 18, "bar.sync 1, 32;", { .sites = true }, .why = NULL },
	{ .promises = { .ids = true }, .why = "k:10: %ctaid is read" },
	{ .promises = { .variables = true }, .why = "k:18: g is named" },
	{ .promises = { .returns = true }, .why = "k:20: ret is a further way out" },
	{ .promises = { .returns = true, .loop = true }, .why = NULL },
	{ 18, "@%p1 exit;", { .returns = true, .loop = true },
	  .why = "k:20: ret is a further way out" },
	{ 20, "bra done;", { .returns = true, .loop = true },
	  .why = "k:20: there is no way out" },
	{ .change = unlink_back, .why = "k:10: the statement behind it is linked to another" },
	{ .change = end_early, .why = "k:20: the last statement is another" },
	{ .change = close_circle, .why = "k:20: the statement behind it is linked to another" },
	{ .change = drop_open, .why = "k:17: a brace closes what none opened" },
	{ .change = drop_close, .why = "k:20: a brace is not closed" },
	{ .change = text_of_nothing,
	  .why = "k:0: text that does not parse: <inserted>:1:14: number expected" },
	{ .change = text_of_unknown, .why = "k:0: %r9 is not declared" },
	{ .change = text_of_words,
	  .why = "k:0: inserted ld of several words that others write" },
	{ .change = text_of_own, .promises = { .whole = true }, .why = "k:0: $1 is not declared" },
	{ .change = new_label, .why = "k:1: label $a begins no block of the graph" },
	{ .change = new_branch, .why = "k:1: bra ends no block of the graph" },
	{ .change = new_first, .why = "k:1: a statement in no block of the graph" },
	{ .change = new_text, .why = "k:0: unparsed text, and a graph of it" },
	{ .change = drop_end, .why = "k:19: a block of the graph is not in the text" },
	{ 18, "again: mov.u64 %d1, g;", .why = "k:12: the graph lacks an edge to block 3",
	  .change = retarget },
	{ .change = always, .why = "k:12: the graph has an edge that the text has not" },
};

static bool says(const char *got, const char *want)
{
	return !got || !want ? got == want : !strcmp(got, want);
}

static const char *changed(struct gsr_pass *p, const struct broken *b, bool graph)
{
	struct gsr_closure c;

	gsr_analyse(p);
	c = gsr_closure(p, &p->fns[0]);
	if (graph)
		gsr_graph(p, c.fns[0]);
	if (b->change)
		b->change(p, c.fns[0]->f);
	return gsr_verify(p, p->m, &c, &b->promises);
}

/* One of them; with @graph the graph is that from before the change */
static const char *examine(const struct broken *b, char *why, size_t size, bool graph)
{
	struct gsr_pass p = { .prefix = gsr_usual_prefix[0] };
	char text[2048] = "";
	struct gsr_error err;
	const char *got;
	unsigned int i;
	jmp_buf nomem;

	for (i = 0; i < N_LINES; i++) {
		strcat(text, b->line == i + 1 ? b->text : base[i]);
		strcat(text, "\n");
	}
	if (gsr_parse(text, strlen(text), NULL, &p.m, &err)) {
		snprintf(why, size, "%s", err.message);
		return why;
	}
	p.arena = p.m->arena;
	p.scratch = gsr_arena_new();
	if (!p.scratch || setjmp(nomem)) {
		printf("Bail out! no memory\n");
		exit(1);
	}
	gsr_arena_escape(p.arena, &nomem);
	gsr_arena_escape(p.scratch, &nomem);
	got = changed(&p, b, graph);
	snprintf(why, size, "%s", got ? got : "");
	gsr_arena_free(p.scratch);
	gsr_module_free(p.m);
	return got ? why : NULL;
}

static void broken_functions(void)
{
	static const struct broken fine[] = {
		{ .change = text_of_own }, { .change = text_declared, .promises.whole = true },
		{ .change = new_label }, { .change = always },
	};
	char why[512];
	const char *got;
	size_t i;

	for (i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		const struct broken *b = &broken[i];

		got = examine(b, why, sizeof(why), !strstr(b->why ? b->why : "", "k:0: $") &&
			      b->change != text_of_nothing && b->change != text_of_unknown);
		if (!ok(says(got, b->why), "%s%s%s", b->text ? b->text : "changed",
			b->why ? ": " : ", nothing wrong", b->why ? b->why : ""))
			printf("# %s\n", got ? got : "nothing");
	}
	for (i = 0; i < sizeof(fine) / sizeof(fine[0]); i++) {
		got = examine(&fine[i], why, sizeof(why), false);
		if (!ok(!got, "without a graph, nothing wrong: %zu", i))
			printf("# %s\n", got);
	}
}

/* Two kernels share a function whose blocks end with what is replaced or dropped */
static void shared_function(void)
{
#define CALL "(.param .u64 q) {\n.reg .b32 %r<2>; .param .b32 a, b;\n" \
	"st.param.b32 [a], 3;\ncall (b), f, (a);\nld.param.b32 %r1, [b];\nret;\n}\n"
	static const char text[] =
		".version 7.0\n.target sm_75\n.address_size 64\n.global .u32 g;\n"
		".func (.param .b32 r) f (.param .b32 n) {\n"
		".reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %d<2>; .param .b32 a, b;\n"
		"ld.param.b32 %r1, [n];\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra one;\n"
		"add.u32 %r2, %r1, -1;\nst.param.b32 [a], %r2;\ncall (b), f, (a);\n"
		"mov.u32 %r3, %ctaid.x;\none: mov.u64 %d1, g;\ntwo:\nbar.sync 0;\n"
		".loc 1 2 3\nthree: st.param.b32 [r], %r3;\nret;\n}\n"
		".visible .entry k" CALL ".visible .entry l" CALL;

	ok(all_forms("shared", text, sizeof(text) - 1), "a function that two kernels share");
}

int main(int argc, char **argv)
{
	unsigned int n = argc > 1 ? (unsigned int)atoi(argv[1]) : 300;
	glob_t g = corpus(CORPUS "*.ptx");
	size_t i, size;

	broken_functions();
	shared_function();
	for (i = 0; i < g.gl_pathc; i++) {
		char *text = slurp(g.gl_pathv[i], &size);

		ok(all_forms(g.gl_pathv[i], text, size), "%s", g.gl_pathv[i]);
		free(text);
	}
	globfree(&g);
	random_kernels(1, n);
	return done();
}
