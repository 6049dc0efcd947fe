// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Function-pointer tables: which slots of variables hold functions, as read from initializers (an
 * initializer that is not understood makes indirect calls a refusal), and what indirect calls are
 * replaced by.
 */
#include "test.h"

#define UNKNOWN	"indirect call of unknown functions"
#define HEAD	".version 7.0\n.target sm_75\n.address_size 64\n"
#define FUNCTION(name) ".func (.param .b32 r) " \
	name " (.param .b32 x) { .reg .b32 v; ld.param.b32 v, [x]; st.param.b32 [r], v; ret; }\n"
#define FUNCTIONS FUNCTION("f") FUNCTION("g") ".func other (.param .b32 x) { ret; }\n"
#define KERNEL \
	".visible .entry k (.param .u64 p)\n{\n.reg .b64 a; .reg .b32 v;\n" \
	"proto: .callprototype (.param .b32 _) _ (.param .b32 _);\n" \
	".param .b32 x, y;\nld.param.u64 a, [p];\nst.param.b32 [x], 1;\n" \
	"call (y), a, (x), proto;\nld.param.b32 v, [y];\nret;\n}\n"
#define BYTES(f) "0xFF(" f "), 0xFF00(" f "), 0xFF0000(" f "), 0xFF000000(" f "), 0xFF00000000(" \
	f "), 0xFF0000000000(" f ")"

static const struct {
	const char *what, *text;
	const char *slots;		/* or the reason */
} cases[] = {
	{ "an array", ".global .align 8 .u64 t[3] = {f, 0, g};\n", "f t+0, g t+16" },
	{ "a constant", ".const .align 8 .u64 t[2] = {g, f};\n", "g t+0, f t+8" },
	{ "a single pointer", ".global .b64 t = f;\n", "f t+0" },
	{ "the same in braces", ".global .b64 t = {f};\n", "f t+0" },
	/* ptxas fills up no rows */
	{ "two dimensions, the first row not full", ".global .u64 t[2][3] = {{f}, {0, g}};\n",
	  "f t+0, g t+16" },
	{ "the same, as many rows as there are", ".global .u64 t[][3] = {{f}, {0, g}};\n",
	  "f t+0, g t+16" },
	{ "three dimensions", ".global .u64 t[2][2][2] = {{{0, 0}, {f}}, {{0}, {0, g}}};\n",
	  "f t+16, g t+40" },
	{ "vectors", ".global .v2 .u64 t[2] = {{0, f}, {g, 0}};\n", "f t+8, g t+16" },
	{ "bytes", ".global .align 8 .b8 t[20] = {1, 0, 0, 0, " BYTES("f")
	  ", 0xFF000000000000(f), 0xFF00000000000000(f), 7};\n", "f t+4" },
	{ "halves", ".global .align 8 .b32 t[4] = {0, 0, 0xFFFFFFFF(g), 0xFFFFFFFF00000000(g)};\n",
	  "g t+8" },
	{ "a function twice, and one that is not called like this",
	  ".global .u64 t[4] = {f, other, f, g};\n", "f t+0, g t+24" },
	{ "two tables, of which kernels write the first",
	  ".global .u64 t[1] = {f}; .global .u64 u[2] = {g, f};\n"
	  ".visible .entry w () { .reg .b64 a; mov.u64 a, 0; st.global.u64 [t], a; ret; }\n",
	  "g u+0, f u+8" },
	{ "a function in a table of virtual ones that is only declared",
	  ".extern .func (.param .b32 r) __cxa_pure_virtual (.param .b32 x);\n"
	  ".global .u64 _ZTV1a[4] = {0, 0, __cxa_pure_virtual, f};\n", "f _ZTV1a+24" },
	{ "a table that kernels write",
	  ".global .u64 t[1] = {f};\n"
	  ".visible .entry w () { .reg .b64 a; mov.u64 a, 0; st.global.u64 [t], a; ret; }\n",
	  "indirect call of functions that kernels may have replaced in t" },
	{ "a table that another variable points to",
	  ".global .u64 t[1] = {f}; .global .u64 u = generic(t);\n",
	  "indirect call of functions that kernels may have replaced in t" },
	{ "a table whose address is passed on",
	  ".global .u64 t[1] = {f};\n.visible .entry w (.param .u64 p) { .reg .b64 a, b; "
	  "ld.param.u64 b, [p]; mov.u64 a, t; st.global.u64 [b], a; ret; }\n",
	  "indirect call of functions that kernels may have replaced in t" },
	{ "no table", "", UNKNOWN },
	{ "numbers only", ".global .u64 t[2] = {1, 2};\n", UNKNOWN },
	{ "no function that is called like this", ".global .u64 t[1] = {other};\n", UNKNOWN },
	{ "half an address", ".global .u64 u = f; "
	  ".global .align 8 .b32 t[2] = {0xFFFFFFFF(g), 0};\n", UNKNOWN },
	{ "an address with a byte left out", ".global .u64 u = f; .global .align 8 .b8 t[8] = {"
	  BYTES("f") ", 0, 0xFF00000000000000(f)};\n", UNKNOWN },
	{ "bytes of two addresses", ".global .u64 u = f; .global .align 8 .b8 t[9] = {" BYTES("f")
	  ", 0xFF000000000000(g), 0xFF00000000000000(f)};\n", UNKNOWN },
	{ "a byte of an address at the end",
	  ".global .u64 u = f; .global .align 8 .b8 t[9] = {0, 0, 0xFF(f)};\n", UNKNOWN },
	{ "a word of 32 bits", ".global .u64 u = f; .global .u32 t[1] = {f};\n", UNKNOWN },
	{ "something behind a function", ".global .u64 u = f; .global .u64 t[1] = {f+4};\n",
	  UNKNOWN },
	{ "the generic address of a function",
	  ".global .u64 u = f; .global .u64 t[1] = {generic(f)};\n", UNKNOWN },
	{ "more than there is room for", ".global .u64 u = f; .global .u64 t[1] = {0, f};\n",
	  UNKNOWN },
	{ "a function that is not in the module",
	  ".extern .func (.param .b32 r) far (.param .b32 x);\n.global .u64 t[2] = {f, far};\n",
	  UNKNOWN },
	{ "a function of the system", ".extern .func (.param .b32 r) malloc (.param .b32 x);\n"
	  ".global .u64 t[2] = {f, malloc};\n", UNKNOWN },
	{ "an address that code gives away",
	  ".global .u64 t[1] = {f};\n.visible .entry w (.param .u64 p) { .reg .b64 a, b; "
	  "ld.param.u64 b, [p]; mov.u64 a, f; st.global.u64 [b], a; ret; }\n", UNKNOWN },
};

static const struct gsr_kernel *kernel(const struct gsr_rewrite *rw)
{
	unsigned int i;

	for (i = 0; i < rw->n_kernels; i++)
		if (!strcmp(rw->kernels[i].name, "k"))
			return &rw->kernels[i];
	return NULL;
}

static void list_slots(const struct gsr_rewrite *rw, const struct gsr_kernel *k, char *out,
		       size_t size)
{
	size_t at = 0;
	unsigned int i;

	*out = 0;
	for (i = 0; i < k->n_variables && at < size; i++) {
		const struct gsr_variable *v = &rw->variables[k->variables[i]];

		if (v->function)
			at += (size_t)snprintf(out + at, size - at, "%s%s %s+%llu", at ? ", " : "",
					       v->function, v->name, (unsigned long long)v->offset);
	}
}

static bool find_variable(void *arg, const char *name, uint64_t *address, uint64_t *size)
{
	(void)arg;
	*address = 0x1000;
	*size = strcmp(name, "t") ? 0 : 24;
	return true;
}

/* f is number 70, g null or not known */
static bool first_word(void *arg, const char *name, uint64_t offset, uint64_t *word)
{
	*word = offset ? 0 : 70;
	return !strcmp(name, "t") && (!offset || arg);
}

static void check_missing_number(const struct gsr_rewrite *rw, const struct gsr_kernel *k)
{
	const struct gsr_variable *missing;
	uint64_t words[2] = { 1, 1 };
	bool flags[2];
	unsigned int i;

	for (i = 0; i < 2; i++) {
		gsr_fill_addresses(rw, find_variable, first_word, i ? words : NULL, words, flags);
		missing = gsr_missing_variable(rw, k, flags);
		ok(words[0] == 70 && words[1] == 1 && missing && !strcmp(missing->function, "g") &&
		   missing->offset == 16, "a number that is %s: the kernel's twin must not run",
		   i ? "null" : "not known");
	}
}

static void check_many_functions(unsigned int n)
{
	char *text = malloc(1 << 16), found[256];
	struct gsr_rewrite rw = { 0 };
	size_t at = (size_t)sprintf(text, HEAD);
	struct gsr_error err;
	unsigned int i;
	bool good;

	for (i = 0; i < n; i++)
		at += (size_t)sprintf(text + at,
				      ".func (.param .b32 r) f%u (.param .b32 x) { ret; }\n", i);
	at += (size_t)sprintf(text + at, ".global .u64 t[%u] = {f0", n);
	for (i = 1; i < n; i++)
		at += (size_t)sprintf(text + at, ", f%u", i);
	at += (size_t)sprintf(text + at, "};\n" KERNEL);
	good = gsr_rewrite_ptx(text, at, NULL, &rw, &err) == GSR_OK;
	snprintf(found, sizeof(found), "%s", good ? kernel(&rw)->reason : err.message);
	ok(!strcmp(found, n > 64 ? "indirect call of one of too many functions" : "rewritten"),
	   "%u functions: %s", n, found);
	gsr_rewrite_free(&rw);
	free(text);
}

/*
 * A call becomes a switch of direct calls, short functions are inlined; or it stays a call through
 * a pointer.
 */
#define LONG(name, type) \
	".func (.param .b32 r) " name " (.param " type " x) { .reg .b32 v; ld.param.b32 v, [x];\n" \
		EIGHT EIGHT EIGHT EIGHT \
	"st.param.b32 [r], v; ret; }\n"
#define EIGHT FOUR FOUR
#define FOUR "add.u32 v, v, v; mul.lo.u32 v, v, v; xor.b32 v, v, 1; not.b32 v, v;\n"
#define CALLER(guard, other) \
	".visible .entry k (.param .u64 p, .param .u64 q)\n{\n" \
	".reg .b64 a; .reg .b32 v; .reg .pred p0;\nld.param.u64 a, [p];\n" \
	"setp.ne.u64 p0, a, 0;\n" \
	"{\n.param .b32 x, y;\nproto: .callprototype (.param .b32 _) _ (.param .b32 _);\n" \
	"st.param.b32 [x], 1;\n" \
	guard "call (y), a, (x), proto;\n" \
	"ld.param.b32 v, [y];\n" other "}\nld.param.u64 a, [q];\nst.global.u32 [a], v;\nret;\n}\n"
#define SEVEN(type) \
	LONG("n1", type) LONG("n2", type) LONG("n3", type) LONG("n4", type) LONG("n5", type) \
	LONG("n6", type) LONG("n7", type)

static const struct {
	const char *what, *text;
	unsigned int compared, direct, traps, pointers, prototypes;
} forms[] = {
	{ "short functions", FUNCTIONS ".global .u64 t[2] = {f, g};\n" CALLER("", ""),
	  2, 0, 1, 0, 0 },
	{ "one short, one long", FUNCTION("f") LONG("g", ".b32") ".global .u64 t[2] = {f, g};\n"
	  CALLER("", ""), 2, 1, 1, 0, 0 },
	{ "long ones", LONG("f", ".b32") LONG("g", ".b32") ".global .u64 t[2] = {f, g};\n"
	  CALLER("", ""), 2, 2, 1, 0, 0 },
	{ "one", LONG("f", ".b32") ".global .u64 t[1] = {f};\n" CALLER("", ""), 1, 1, 1, 0, 0 },
	{ "another type, too", LONG("f", ".b32") LONG("g", ".b64") ".global .u64 t[2] = {f, g};\n"
	  CALLER("", ""), 2, 1, 0, 1, 1 },
	{ "eight", SEVEN(".b32") LONG("f", ".b32") ".global .u64 t[8] = {n1, n2, n3, n4, n5, "
	  "n6, n7, f};\n" CALLER("", ""), 8, 8, 1, 0, 0 },
	{ "nine", SEVEN(".b32") LONG("f", ".b32") LONG("g", ".b32")
	  ".global .u64 t[9] = {n1, n2, n3, n4, n5, n6, n7, f, g};\n" CALLER("", ""),
	  9, 0, 0, 1, 1 },
	{ "one, predicated", LONG("f", ".b32") ".global .u64 t[1] = {f};\n" CALLER("@p0 ", ""),
	  1, 0, 0, 1, 1 },
	{ "one, with variables that are used again", LONG("f", ".b32") ".global .u64 t[1] = {f};\n"
	  CALLER("", "mov.u32 v, v; ld.param.b32 v, [y];\n"), 1, 0, 0, 1, 1 },
	{ "one, without a scope", LONG("f", ".b32") ".global .u64 t[1] = {f};\n" KERNEL,
	  1, 0, 0, 1, 1 },
};

static unsigned int count_text(const char *text, const char *what)
{
	unsigned int n = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		n++;
	return n;
}

static void check_form(unsigned int i)
{
	struct gsr_rewrite rw = { 0 };
	struct gsr_error err;
	char text[16384];
	unsigned int n[5] = { 0 };

	snprintf(text, sizeof(text), HEAD "%s", forms[i].text);
	if (gsr_rewrite_ptx(text, strlen(text), NULL, &rw, &err) == GSR_OK && rw.ptx) {
		n[0] = count_text(rw.ptx, "setp.eq.u64 $vp");
		n[1] = count_text(rw.ptx, "call (") - count_text(rw.ptx, ", proto") -
		       count_text(rw.ptx, "_proto;");
		n[2] = count_text(rw.ptx, "@!$vp trap;");
		n[3] = count_text(rw.ptx, "), $vf,");
		n[4] = count_text(rw.ptx, ".callprototype");
	}
	if (!ok(n[0] == forms[i].compared && n[1] == forms[i].direct && n[2] == forms[i].traps &&
		n[3] == forms[i].pointers && n[4] == forms[i].prototypes,
		"calls of %s: %u direct, %u by a pointer", forms[i].what, forms[i].direct,
		forms[i].pointers))
		printf("# %u compared, %u direct, %u traps, %u pointers, %u prototypes\n", n[0],
		       n[1], n[2], n[3], n[4]);
	gsr_rewrite_free(&rw);
}

int main(void)
{
	unsigned int i;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct gsr_kernel *k = NULL;
		struct gsr_rewrite rw = { 0 };
		struct gsr_error err = { 0 };
		char text[4096], found[256];

		snprintf(text, sizeof(text), HEAD FUNCTIONS "%s" KERNEL, cases[i].text);
		if (gsr_rewrite_ptx(text, strlen(text), NULL, &rw, &err) == GSR_OK)
			k = kernel(&rw);
		if (k && k->tier == GSR_TIER_BLOCK)
			list_slots(&rw, k, found, sizeof(found));
		else
			snprintf(found, sizeof(found), "%s", k ? k->reason : err.message);
		if (!ok(!strcmp(found, cases[i].slots), "%s: %s", cases[i].what, cases[i].slots))
			printf("# %s\n", found);
		if (!i && k)
			check_missing_number(&rw, k);
		gsr_rewrite_free(&rw);
	}
	for (i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		check_form(i);
	check_many_functions(64);
	check_many_functions(65);
	return done();
}
