// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Relocatable programs: units joined into one module, wrappers of version 2, and what cannot be
 * joined.
 */
#include "fat.h"

#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"
#define PROTO ".extern .func (.param .b32 r) f (.param .b32 a);\n"
#define BODY(x) "(.param .b32 r) f (.param .b32 a)\n{\n\t.reg .b32 %r<2>;\n" \
		"\tld.param.b32 %r1, [a];\n\tadd.s32 %r1, %r1, " x \
	";\n\tst.param.b32 [r], %r1;\n\tret;\n}\n"
#define CALLS(name, more) ".visible .entry " name "(.param .u64 p)\n{\n\t.reg .b32 %r<4>;\n" \
						  "\t.reg .b64 %d<4>;\n" \
	"\tld.param.u64 %d1, [p];\n\tmov.u32 %r1, %ctaid.x;\n" more \
	"\t{\n\t.param .b32 a0;\n\t.param .b32 r0;\n\tst.param.b32 [a0], %r1;\n" \
	"\tcall.uni (r0), f, (a0);\n" \
	"\tld.param.b32 %r2, [r0];\n\t}\n\tst.global.u32 [%d1], %r2;\n\tret;\n}\n"

/* The linked text, or NULL and @err */
static char *linked(const char *const *units, unsigned int n, struct gsr_error *err)
{
	struct gsr_unit list[8];
	enum gsr_status status;
	char *ptx;
	size_t size;

	for (unsigned int i = 0; i < n; i++)
		list[i] = (struct gsr_unit){ units[i], strlen(units[i]) };
	status = gsr_link_ptx(list, n, &ptx, &size, err);
	if ((status == GSR_OK) != (ptx != NULL) || (ptx && strlen(ptx) != size) ||
	    (!ptx && err->status != status))
		printf("# status %d with %zu bytes\n", status, size);
	return ptx;
}

static unsigned int count(const char *text, const char *what)
{
	unsigned int n = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		n++;
	return n;
}

/* Kernel @name of the twins: its tier is block, or else @reason */
static bool rewritten(const char *ptx, const char *name, const char *reason)
{
	struct gsr_rewrite rw;
	struct gsr_error err;
	bool good = false;

	if (gsr_rewrite_ptx(ptx, strlen(ptx), NULL, &rw, &err) != GSR_OK) {
		printf("# %s\n", err.message);
		return false;
	}
	for (unsigned int i = 0; i < rw.n_kernels; i++) {
		if (strcmp(rw.kernels[i].name, name) != 0)
			continue;
		good = reason ? strstr(rw.kernels[i].reason, reason) != NULL :
		       rw.kernels[i].tier == GSR_TIER_BLOCK;
		if (!good)
			printf("# %s\n", rw.kernels[i].reason);
	}
	gsr_rewrite_free(&rw);
	return good;
}

static void joins(void)
{
	const char *const calls[] = { HEAD PROTO CALLS("k", ""),
				      HEAD ".visible .func " BODY("5") CALLS("k2", "") };
	const char *const back[] = { calls[1], calls[0] };
	const char *const weak[] = { HEAD ".weak .func " BODY("5") CALLS("k", ""),
				     HEAD ".weak .func " BODY("6") CALLS("k2", "") };
	const char *const strong[] = { weak[0], HEAD ".visible .func " BODY("7") };
	const char *const own[] = { HEAD ".global .b8 s[3] = {1, 2, 3};\n"
				    ".func " BODY("11") CALLS("k", "\tmov.u64 %d2, s;\n"),
				    HEAD ".global .b8 s[4] = {4, 5, 6, 7};\n.global .u64 t = s;\n"
					 ".func " BODY("12")
				    CALLS("k2", "\tmov.u64 %d2, s;\n"),
				    HEAD ".visible .global .u32 s;\n" PROTO,
				    HEAD ".visible .func " BODY("13") };
	const char *const shared[] = { HEAD ".extern .shared .align 4 .b8 b[];\n",
				       HEAD ".extern .shared .align 16 .b8 b[];\n",
				       HEAD ".extern .shared .align 8 .b8 b[];\n" };
	const char *const vars[] = { HEAD ".extern .global .u32 v;\n"
				     PROTO CALLS("k", "\tst.global.u32 [v], %r1;\n"),
				     HEAD ".visible .func " BODY("5")
					     ".visible .global .u32 v = 7;\n" };
	const char *const missing[] = { HEAD PROTO CALLS("k", ""),
					HEAD ".visible .entry k2() { ret; }\n" };
	const char *const versions[] = { ".version 7.8\n.target sm_80\n.address_size 64\n"
					 ".visible .entry k() { ret; }\n",
					 ".version 7.12\n.target sm_75\n.address_size 64\n"
					 ".visible .entry k2() { ret; }\n" };
	const char *const lines[] = { HEAD ".visible .entry k() {\n\t.loc 1 2 3\n\tret;\n"
				      "\t.loc 1 3 3\n}\n.file 1 \"a.cu\"\n"
				      ".section .debug_str { $L: .b8 1 }\n" };
	struct gsr_error err;
	char *p;

	p = linked(calls, 2, &err);
	ok(p && rewritten(p, "k", NULL) && rewritten(p, "k2", NULL),
	   "a function of a later unit: both kernels are whole");
	ok(p && count(p, "add.s32") == 1 && !strstr(p, ".extern") &&
	   strstr(p, ".visible .func ") < strstr(p, ".entry"), "once, and declared before its use");
	free(p);
	p = linked(back, 2, &err);
	ok(p && rewritten(p, "k", NULL) && count(p, "add.s32") == 1,
	   "a function of an earlier unit");
	free(p);
	p = linked(weak, 2, &err);
	ok(p && strstr(p, "%r1, 5") && !strstr(p, "%r1, 6") && rewritten(p, "k2", NULL),
	   "of weak definitions the first");
	free(p);
	p = linked(strong, 2, &err);
	ok(p && !strstr(p, "%r1, 5") && strstr(p, "%r1, 7") && rewritten(p, "k", NULL),
	   "a strong definition before weak ones");
	free(p);
	p = linked(own, 4, &err);
	ok(p && count(p, "%r1, 11") == 1 && count(p, "%r1, 12") == 1 && count(p, "%r1, 13") == 1 &&
	   count(p, "{1, 2, 3}") == 1 && count(p, "{4, 5, 6, 7}") == 1 && count(p, ".u32 s;") == 1,
	   "each unit's own names stay its own");
	ok(p && strstr(p, "t = s__u0_1;") && strstr(p, "s__u0_0[3]") &&
	   strstr(p, "mov.u64 %d2, s__u0_1;") && strstr(p, "f__u0_1, (a0)") &&
	   strstr(p, "f__u0_0, (a0)"), "and are renamed wherever they stand");
	free(p);
	p = linked(shared, 3, &err);
	ok(p && count(p, ".shared") == 1 && strstr(p, ".align 16"),
	   "dynamic shared memory once, with the greatest alignment");
	free(p);
	p = linked(vars, 2, &err);
	ok(p && count(p, ".global .u32 v") == 1 && strstr(p, "v = 7;") &&
	   strstr(p, "v = 7;") < strstr(p, "[v]"), "a variable is defined before its use");
	free(p);
	p = linked(missing, 2, &err);
	ok(p && rewritten(p, "k", "f") && rewritten(p, "k2", NULL),
	   "what is nowhere stays a declaration: that kernel is refused");
	free(p);
	p = linked(versions, 2, &err);
	ok(p && strstr(p, ".version 7.12\n.target sm_80\n"), "the highest version and target");
	free(p);
	p = linked(lines, 1, &err);
	ok(p && !strstr(p, ".loc") && !strstr(p, ".file") && !strstr(p, ".section"),
	   "no line information");
	free(p);
}

static void refuses(void)
{
	static const struct {
		const char *what, *unit[2];
		enum gsr_status status;
		const char *message;
	} table[] = {
		{ "two strong definitions",
		  { HEAD ".visible .func " BODY("1"), HEAD ".visible .func " BODY("2") },
		  GSR_ERR_FORMAT, "<image>: relocatable program: f is defined twice" },
		{ "two kernels of one name",
		  { HEAD ".visible .entry k() { ret; }", HEAD ".visible .entry k() { ret; }" },
		  GSR_ERR_FORMAT, "<image>: relocatable program: k is defined twice" },
		{ "a function and a variable", { HEAD PROTO, HEAD ".visible .global .u32 f;" },
		  GSR_ERR_FORMAT, "<image>: relocatable program: f is a function and a variable" },
		{ "not PTX", { HEAD, HEAD "hello" }, GSR_ERR_SYNTAX,
		  "<image>: unit 2 of a relocatable program: <unit>:4:1: directive expected" },
		{ "32 and 64 bits", { HEAD, ".version 8.0\n.target sm_90\n.address_size 32\n" },
		  GSR_ERR_FORMAT, "<image>: relocatable program of 32-bit and 64-bit units" },
		{ "for particular machines",
		  { ".version 8.0\n.target sm_90a\n", ".version 8.0\n.target sm_100\n" },
		  GSR_ERR_UNSUPPORTED, "<image>: relocatable program of units for sm_90a "
				       "and for sm_100" },
	};
	struct gsr_error err;
	char *p;

	for (unsigned int i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		p = linked(table[i].unit, 2, &err);
		if (!ok(!p && err.status == table[i].status &&
			!strcmp(err.message, table[i].message), "error: %s", table[i].what))
			printf("# %d %s\n", err.status, err.message);
		free(p);
	}
	p = linked(NULL, 0, &err);
	ok(!p && err.status == GSR_ERR_FORMAT, "error: no units");
	free(p);
}

/* The PTX of a wrapper, or of units without one */
static char *ptx_of(const void *wrapper, const struct gsr_unit *units, unsigned int arch)
{
	struct gsr_error err;
	char *p = NULL;
	size_t n;

	if (wrapper ? gsr_image_ptx(wrapper, SIZE_MAX, arch, &p, &n, &err) :
	    gsr_program_ptx(NULL, 0, units, 2, arch, &p, &n, &err))
		printf("# %s\n", err.message);
	return p;
}

static void wrappers(void)
{
	static const char a[] = HEAD PROTO CALLS("k", "")
		"// a long comment, so that there is something to compress ..........";
	static const char b[] = HEAD ".visible .func " BODY("5")
		"// another long comment, for the same .........................";
	static const char b75[] = ".version 8.0\n.target sm_75\n.address_size 64\n"
				  ".visible .func " BODY("75");
	struct fat f[4] = { fat_new(), fat_new(), fat_new(), fat_new() };
	const void *files[] = { f[1].p, f[2].p, f[3].p, NULL };
	struct { uint32_t magic, version; const void *data, *files; } w =
		{ 0x466243b1, 2, f[0].p, files };
	struct gsr_unit units[2];
	char *p;

	/*
	 * what nvcc -rdc=true makes: the linked code, and units of code and PTX; the last unit is a
	 * library without PTX
	 */
	fat_code(&f[0], 75, PLAIN, 75, false);
	fat_code(&f[0], 90, PLAIN, 90, false);
	fat_code(&f[1], 90, ZSTD, 90, false);
	fat_add(&f[1], PTX, 90, ZSTD, a);
	fat_code(&f[2], 75, LZ4, 75, false);
	fat_add(&f[2], PTX, 75, LZ4, b75);
	fat_code(&f[2], 90, LZ4, 90, false);
	fat_add(&f[2], PTX, 90, LZ4, b);
	fat_code(&f[3], 90, ZSTD, 90, false);
	p = ptx_of(&w, NULL, 90);
	ok(p && rewritten(p, "k", NULL) && strstr(p, "%r1, 5"),
	   "a relocatable program: one module of its units");
	ok(p && strstr(p, GSR_OTHER_UNITS), "it says that there is a unit without PTX");
	free(p);
	files[2] = NULL;
	p = ptx_of(&w, NULL, 90);
	ok(p && rewritten(p, "k", NULL) && !strstr(p, GSR_OTHER_UNITS),
	   "and not, where all have some");
	free(p);
	files[2] = f[3].p;
	p = ptx_of(&w, NULL, 100);
	ok(p && strstr(p, ".target sm_90\n") && rewritten(p, "k", NULL),
	   "on a machine that none of its code runs on");
	free(p);
	p = ptx_of(&w, NULL, 75);
	ok(p && strstr(p, "%r1, 75") && !strstr(p, ".entry"),
	   "units without PTX for the machine are left out");
	free(p);
	ok(gives_why(&w, SIZE_MAX, 70, NULL, GSR_ERR_NO_PTX, "other architectures"),
	   "no unit has PTX for the machine");
	fat_code(&f[0], 90, EXACT, 90, false);
	ok(gives_why(&w, SIZE_MAX, 90, NULL, GSR_ERR_NO_PTX, "machine code for sm_90a"),
	   "linked code of other PTX");
	f[0].n = 16;
	put(f[0].p + 8, 0, 8);
	p = ptx_of(&w, NULL, 90);
	ok(p && rewritten(p, "k", NULL), "PTX alone: an empty binary is the linked one");
	free(p);
	w.files = &files[3];
	ok(gives_why(&w, SIZE_MAX, 90, NULL, GSR_ERR_NO_PTX, "machine code only"),
	   "a program with nothing to link");
	w.files = NULL;
	ok(gives_why(&w, SIZE_MAX, 90, NULL, GSR_ERR_NO_PTX, "machine code only"),
	   "nor a list of it");
	w.files = files;
	put(f[2].p + 8, 1 << 30, 8);
	put(f[2].p + 20, 1 << 30, 4);
	ok(gives_why(&w, SIZE_MAX, 90, NULL, GSR_ERR_FORMAT, "larger"), "a unit that lies");
	units[0] = (struct gsr_unit){ a, strlen(a) };
	units[1] = (struct gsr_unit){ b, strlen(b) };
	p = ptx_of(NULL, units, 90);
	ok(p && rewritten(p, "k", NULL) && strstr(p, GSR_OTHER_UNITS),
	   "units of PTX text, which may not be all");
	free(p);
	for (int i = 0; i < 4; i++)
		free(f[i].p);
}

int main(void)
{
	joins();
	refuses();
	wrappers();
	return done();
}
