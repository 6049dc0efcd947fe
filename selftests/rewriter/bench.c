// SPDX-License-Identifier: LGPL-2.1-or-later
/* How fast PTX is rewritten: the corpus, many small kernels, one large one. Lines of input a second, on the CPU it runs on. */
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

/* Rewritten again and again for half a second: the best time. 0: it cannot be */
static double best(const char *text, size_t size)
{
	double from = seconds(), start, least = 1e9, now;

	do {
		struct gsr_rewrite rw;
		struct gsr_error err;

		start = seconds();
		if (gsr_rewrite_ptx(text, size, NULL, &rw, &err) != GSR_OK) {
			printf("%s\n", err.message);
			return 0;
		}
		now = seconds();
		gsr_rewrite_free(&rw);
		least = now - start < least ? now - start : least;
	} while (now - from < 0.5);
	return least;
}

static void report(const char *name, const char *text)
{
	unsigned int n = lines_of(text);
	double t = best(text, strlen(text));

	if (t > 0)
		printf("%-44s %8u lines %9.2f ms %7.3f ms per 1000 lines\n", name, n, t * 1e3, t * 1e6 / n);
}

static char *many(unsigned int kernels)
{
	char *text = malloc(64 + kernels * 640UL), *p = text;
	unsigned int k;

	p += sprintf(p, HEAD);
	for (k = 0; k < kernels; k++)
		p += sprintf(p, ".visible .entry k%u(.param .u64 k%u_param_0, .param .u32 k%u_param_1)\n{\n"
				"\t.reg .pred %%p<2>;\n\t.reg .b32 %%r<6>;\n\t.reg .b64 %%rd<5>;\n"
				"\tld.param.u64 %%rd1, [k%u_param_0];\n\tld.param.u32 %%r2, [k%u_param_1];\n"
				"\tmov.u32 %%r3, %%ctaid.x;\n\tmov.u32 %%r4, %%ntid.x;\n\tmov.u32 %%r5, %%tid.x;\n"
				"\tmad.lo.s32 %%r1, %%r3, %%r4, %%r5;\n\tsetp.ge.s32 %%p1, %%r1, %%r2;\n\t@%%p1 bra $L%u;\n"
				"\tcvta.to.global.u64 %%rd2, %%rd1;\n\tmul.wide.s32 %%rd3, %%r1, 4;\n\tadd.s64 %%rd4, %%rd2, %%rd3;\n"
				"\tst.global.u32 [%%rd4], %%r1;\n$L%u:\n\tret;\n}\n\n", k, k, k, k, k, k, k);
	return text;
}

/* Branches that vary, one behind the other, before a barrier */
static char *large(unsigned int blocks)
{
	char *text = malloc(1024 + blocks * 160UL), *p = text;
	unsigned int k;

	p += sprintf(p, HEAD ".visible .entry large(.param .u64 out)\n{\n\t.reg .pred %%p<%u>;\n\t.reg .b32 %%r<%u>;\n"
			"\t.reg .b64 %%rd<2>;\n\tld.param.u64 %%rd1, [out];\n\tmov.u32 %%r0, %%tid.x;\n", blocks + 1, 2 * blocks + 1);
	for (k = 0; k < blocks; k++)
		p += sprintf(p, "\tadd.u32 %%r%u, %%r%u, 1;\n\tsetp.eq.u32 %%p%u, %%r%u, %u;\n\t@%%p%u bra $L%u;\n"
				"\tadd.u32 %%r%u, %%r%u, 3;\n$L%u:\n", k + 1, k, k, k + 1, k, k, k, blocks + k + 1, k, k);
	sprintf(p, "\tbar.sync 0;\n\tst.global.u32 [%%rd1], %%r%u;\n\tret;\n}\n", blocks);
	return text;
}

int main(void)
{
	glob_t g = corpus(CORPUS "*.ptx");
	unsigned int lines = 0;
	double sum = 0;
	char *text;
	size_t i, n;

	for (i = 0; i < g.gl_pathc; i++) {
		text = slurp(g.gl_pathv[i], &n);
		lines += lines_of(text);
		sum += best(text, n);
		free(text);
	}
	printf("%-44s %8u lines %9.2f ms %7.3f ms per 1000 lines\n", "the corpus", lines, sum * 1e3, sum * 1e6 / lines);
	globfree(&g);
	text = many(8000);
	report("8000 small kernels", text);
	free(text);
	text = large(30000);
	report("30000 branches in one kernel", text);
	free(text);
	return 0;
}
