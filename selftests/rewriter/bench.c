// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * How fast PTX is rewritten, on the CPU it runs on, by lines of input: the corpus, and what would
 * show that something takes longer than in proportion. Both forms of the twin; gschedd makes the
 * resumable one only for kernels that want it.
 */
#include <time.h>
#include "test.h"

#define HEAD ".version 8.6\n.target sm_90\n.address_size 64\n"

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static unsigned int lines_of(const char *text)
{
	unsigned int n = 0;

	while ((text = strchr(text, '\n'))) {
		text++;
		n++;
	}
	return n;
}

/* Rewritten again and again for so long: the best time. 0: it cannot be */
static double best(const char *text, size_t size, bool resumable, double duration)
{
	const struct gsr_options opts = { .size = sizeof(opts), .resumable = resumable };
	double from = seconds(), start, least = 1e9, now;

	do {
		struct gsr_rewrite rw;
		struct gsr_error err;

		start = seconds();
		if (gsr_rewrite_ptx(text, size, &opts, &rw, &err) != GSR_OK) {
			printf("%s\n", err.message);
			return 0;
		}
		now = seconds();
		gsr_rewrite_free(&rw);
		least = now - start < least ? now - start : least;
	} while (now - from < duration);
	return least;
}

static void print(const char *name, unsigned int lines, double plain, double resumable)
{
	printf("%-44s %8u lines %9.2f ms %7.3f ms per 1000 lines, resumable %7.3f\n", name, lines,
	       plain * 1e3, plain * 1e6 / lines, resumable * 1e6 / lines);
}

/* Frees the text */
static void report(const char *name, char *text)
{
	size_t size = strlen(text);

	print(name, lines_of(text), best(text, size, false, 1.5), best(text, size, true, 1.5));
	free(text);
}

static char *many(unsigned int kernels)
{
	char *text = malloc(64 + kernels * 640UL), *p = text;
	unsigned int k;

	p += sprintf(p, HEAD);
	for (k = 0; k < kernels; k++)
		p += sprintf(p,
			     ".visible .entry k%u(.param .u64 k%u_param_0, .param .u32 "
			     "k%u_param_1)\n{\n"
				"\t.reg .pred %%p<2>;\n\t.reg .b32 %%r<6>;\n\t.reg .b64 %%rd<5>;\n"
				"\tld.param.u64 %%rd1, [k%u_param_0];\n"
				"\tld.param.u32 %%r2, [k%u_param_1];\n"
				"\tmov.u32 %%r3, %%ctaid.x;\n\tmov.u32 %%r4, %%ntid.x;\n"
				"\tmov.u32 %%r5, %%tid.x;\n"
				"\tmad.lo.s32 %%r1, %%r3, %%r4, %%r5;\n"
				"\tsetp.ge.s32 %%p1, %%r1, %%r2;\n\t@%%p1 bra $L%u;\n"
				"\tcvta.to.global.u64 %%rd2, %%rd1;\n"
				"\tmul.wide.s32 %%rd3, %%r1, 4;\n\tadd.s64 %%rd4, %%rd2, %%rd3;\n"
				"\tst.global.u32 [%%rd4], %%r1;\n$L%u:\n\tret;\n}\n\n", k, k, k,
			     k, k, k, k);
	return text;
}

/* Branches that vary, one behind the other, before a barrier */
static char *large(unsigned int blocks)
{
	char *text = malloc(1024 + blocks * 160UL), *p = text;
	unsigned int k;

	p += sprintf(p, HEAD ".visible .entry large(.param .u64 out)\n{\n\t.reg .pred %%p<%u>;\n"
		     "\t.reg .b32 %%r<%u>;\n"
			"\t.reg .b64 %%rd<2>;\n\tld.param.u64 %%rd1, [out];\n"
			"\tmov.u32 %%r0, %%tid.x;\n", blocks + 1, 2 * blocks + 1);
	for (k = 0; k < blocks; k++)
		p += sprintf(p, "\tadd.u32 %%r%u, %%r%u, 1;\n\tsetp.eq.u32 %%p%u, %%r%u, %u;\n"
			     "\t@%%p%u bra $L%u;\n"
				"\tadd.u32 %%r%u, %%r%u, 3;\n$L%u:\n", k + 1, k, k, k + 1, k, k, k,
			     blocks + k + 1, k, k);
	sprintf(p, "\tbar.sync 0;\n\tst.global.u32 [%%rd1], %%r%u;\n\tret;\n}\n", blocks);
	return text;
}

/* One behind the other */
static char *loops(unsigned int n)
{
	char *text = malloc(1024 + n * 192UL), *p = text;
	unsigned int k;

	p += sprintf(p, HEAD ".visible .entry loops(.param .u64 out)\n{\n\t.reg .pred %%p<%u>;\n"
		     "\t.reg .b32 %%r<%u>;\n"
			"\t.reg .b64 %%rd<2>;\n\tld.param.u64 %%rd1, [out];\n"
			"\tmov.u32 %%r0, %%tid.x;\n", n, n + 1);
	for (k = 0; k < n; k++)
		p += sprintf(p, "\tmov.u32 %%r%u, 0;\n$L%u:\n\tadd.u32 %%r%u, %%r%u, 1;\n"
			     "\tadd.u32 %%r0, %%r0, %%r%u;\n"
				"\tsetp.lt.u32 %%p%u, %%r%u, 100;\n\t@%%p%u bra $L%u;\n",
			     k + 1, k, k + 1, k + 1, k + 1, k, k + 1, k, k);
	sprintf(p, "\tst.global.u32 [%%rd1], %%r0;\n\tret;\n}\n");
	return text;
}

/* Kernels that call one device function of so many lines */
static char *shared(unsigned int kernels, unsigned int lines)
{
	char *text = malloc(1024 + kernels * 160UL + lines * 32UL), *p = text;
	unsigned int k;

	p += sprintf(p, HEAD ".func f(.param .b32 a)\n{\n\t.reg .b32 %%r<2>;\n"
		     "\tld.param.b32 %%r0, [a];\n");
	for (k = 0; k < lines; k++)
		p += sprintf(p, "\tadd.u32 %%r0, %%r0, 1;\n");
	p += sprintf(p, "\tst.param.b32 [a], %%r0;\n\tret;\n}\n");
	for (k = 0; k < kernels; k++)
		p += sprintf(p, ".visible .entry k%u()\n{\n\t.reg .b32 %%r<2>;\n"
			     "\tmov.u32 %%r0, 1;\n\t{\n\t.param .b32 p;\n"
				"\tst.param.b32 [p], %%r0;\n\tcall f, (p);\n\t}\n\tret;\n}\n", k);
	return text;
}

int main(void)
{
	glob_t g = corpus(CORPUS "*.ptx");
	double plain = 0, resumable = 0;
	unsigned int lines = 0;
	char *text;
	size_t i, n;

	for (i = 0; i < g.gl_pathc; i++) {
		text = slurp(g.gl_pathv[i], &n);
		lines += lines_of(text);
		plain += best(text, n, false, 0.1);
		resumable += best(text, n, true, 0.1);
		free(text);
	}
	print("the corpus", lines, plain, resumable);
	globfree(&g);
	report("8000 small kernels", many(8000));
	report("30000 branches in one kernel", large(30000));
	report("20000 loops in one kernel", loops(20000));
	report("2000 kernels that call one function", shared(2000, 3000));
	return 0;
}
