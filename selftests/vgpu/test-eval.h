/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One instruction over arrays of operands, for the tests of arithmetic. */
#ifndef VGPU_TEST_EVAL_H
#define VGPU_TEST_EVAL_H

#include "test-exec.h"

/*
 * One instruction over arrays: operands D, A, B, C of the widths given ('h' 16, 'r' 32, 'd' 64
 * bits, 'p' predicate)
 */
static inline const char *width(char c)
{
	return c == 'p' ? "pred" : c == 'h' ? "b16" : c == 'r' ? "b32" : "b64";
}

static inline uint64_t masked(char c, uint64_t v)
{
	return c == 'p' ? v & 1 : c == 'h' ? (uint16_t)v : c == 'r' ? (uint32_t)v : v;
}

static inline bool eval(const char *insn, const char *w, unsigned int n, const uint64_t *a,
			const uint64_t *b, const uint64_t *c, uint64_t *out)
{
	char ptx[4096];
	struct args args = { { (uintptr_t)a, (uintptr_t)b, (uintptr_t)c, (uintptr_t)out, n } };
	const char *e;

	snprintf(ptx, sizeof(ptx), "%s"
		 ".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 o, "
		 ".param .u32 n)\n{\n"
		 ".reg .%s D; .reg .%s A; .reg .%s B; .reg .%s C; .reg .b64 %%x<9>; "
		 ".reg .b32 %%i<9>; .reg .pred %%q;\n"
		 "mov.u32 %%i1, %%ctaid.x; mov.u32 %%i2, %%tid.x; "
		 "mad.lo.u32 %%i1, %%i1, 256, %%i2; ld.param.u32 %%i3, [n];\n"
		 "setp.ge.u32 %%q, %%i1, %%i3;\n@%%q ret;\nmul.wide.u32 %%x1, %%i1, 8;\n"
		 "ld.param.u64 %%x2, [a]; add.s64 %%x2, %%x2, %%x1; ld.global.%s A, [%%x2];\n"
		 "ld.param.u64 %%x2, [b]; add.s64 %%x2, %%x2, %%x1; ld.global.%s B, [%%x2];\n"
		 "ld.param.u64 %%x2, [c]; add.s64 %%x2, %%x2, %%x1; ld.global.%s C, [%%x2];\n"
		 "%s\nld.param.u64 %%x2, [o]; add.s64 %%x2, %%x2, %%x1; %s; "
		 "st.global.%s [%%x2], %s;\nret;\n}\n", HEAD, width(w[0]), width(w[1]), width(w[2]),
		 width(w[3]), width(w[1]), width(w[2]), width(w[3]), insn,
		 w[0] == 'p' ? "selp.b64 %x3, 1, 0, D" : "mov.u32 %i4, 0", w[0] == 'p' ? "b64" :
		 width(w[0]), w[0] == 'p' ? "%x3" : "D");
	e = run_text(ptx, (n + 255) / 256, 256, 0, 0, &args);
	if (*e)
		printf("# %s: %s\n", insn, e);
	return !*e;
}

/* A result known without the instruction that is tested */
struct single {
	const char *insn, *w;
	uint64_t a, b, c, want;
};

static inline void singles_run(const struct single *list, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		const struct single *s = &list[i];
		uint64_t out = 0xeeeeeeeeeeeeeeee;
		bool good = eval(s->insn, s->w, 1, &s->a, &s->b, &s->c, &out) &&
			    masked(s->w[0], out) == masked(s->w[0], s->want);

		if (!ok(good, "%s of 0x%llx 0x%llx 0x%llx", s->insn, (unsigned long long)s->a,
			(unsigned long long)s->b, (unsigned long long)s->c))
			printf("# 0x%llx, should be 0x%llx\n",
			       (unsigned long long)masked(s->w[0], out),
			       (unsigned long long)s->want);
	}
}

#endif /* VGPU_TEST_EVAL_H */
