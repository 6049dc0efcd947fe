/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The syntax tree of PTX: the parser builds it, passes transform it, the printer writes it and vgpu
 * executes it. A module lies in one arena; its strings are interned, so equal names are equal
 * pointers within a module. The tree keeps all that was written: print(parse(x)) differs from x in
 * white space and comments only, and in that a declaration of several names becomes several
 * declarations.
 */
#ifndef GSR_PTX_H
#define GSR_PTX_H

#include <string.h>
#include "rewriter/gsr.h"

struct gsr_arena;

enum gsr_opcode {
	GSR_OP_UNKNOWN,
#define OP(name, text) GSR_OP_##name,
#include "ops.h"
#undef OP
	GSR_OP_COUNT
};

enum gsr_operand_kind {
	GSR_OPND_REG,		/* name; %r1, %tid.x (name "%tid", component 'x'), also parameters
				 * of a call */
	GSR_OPND_INT,		/* ival; written decimal, hex, octal or binary, with or without U:
				 * text keeps the form */
	GSR_OPND_F32,		/* bits of 0f… */
	GSR_OPND_F64,		/* bits of 0d… or of a decimal floating-point constant */
	GSR_OPND_SYM,		/* a variable, function or label name, with offset (a+4) */
	GSR_OPND_ADDR,		/* [base + offset]; base is REG, SYM, INT or a tuple */
	GSR_OPND_VEC,		/* {a, b, c, d} in items */
	GSR_OPND_PAIR,		/* a|b in items */
	GSR_OPND_LIST,		/* (a, b) of a call, in items */
	GSR_OPND_SINK,		/* _ */
};

/* Operands are most of a module's memory, so their size matters */
struct gsr_operand {
	enum gsr_operand_kind kind : 8;
	bool negated : 1;		/* !p, -r */
	bool minus : 1;			/* negated, and written with - */
	bool indexed : 1;		/* ADDR written a[i]: items[0] is a, items[1] the index */
	char component;			/* 'x' 'y' 'z' 'w', 'h' etc. of %tid.x; 0 none */
	unsigned int n_items;
	const char *name;		/* REG, SYM */
	const char *selector;		/* component of several characters: r1.h0, r1.b3 of video
					 * instructions; NULL none */
	const char *text;		/* constants as written; SYM, ADDR: the offset as written
					 * ("+-4"); NULL: print ival */
	union {
		int64_t ival;		/* INT: value; SYM, ADDR: offset */
		uint64_t bits;		/* F32, F64 */
	};
	struct gsr_operand *items;	/* VEC, PAIR, LIST; ADDR: items[0] is the base, items[1]
					 * further coordinates */
};

#define GSR_MODS_MAX 16

struct gsr_insn {
	enum gsr_opcode op;
	unsigned int n_mods, n_opnds;
	bool guard_negated;		/* @!%p1 */
	bool unread;			/* atomic whose result is not read (spin.c) */
	bool retries;			/* compare-and-swap in a retry loop, which waits for no
					 * other thread (spin.c) */
	bool devirtualised;		/* direct call that replaced an indirect one
					 * (devirtualise.c) */
	bool one_address;		/* loads memory that others may write, from a uniform
					 * address (uniform.c) */
	bool stored;			/* likewise, and they may do so meanwhile (loads.c) */
	bool all_arrive;		/* warp-synchronous, and every lane of its mask is
					 * guaranteed to arrive (barriers.c) */
	const char *name;		/* opcode as written: "ld", "setp", "_unknown" */
	const char *guard;		/* @%p1; NULL none */
	const char **mods;		/* modifiers in order, without the dot: "global", "u32";
					 * the array has room for one more (gsr_set_mod()) */
	uint32_t initials;		/* a bit for each character that a modifier begins with;
					 * may have more */
	struct gsr_operand *opnds;
};

/*
 * A variable or register declaration: .reg .b32 %r<21>; .shared .align 4 .b8 x[16]; .param .u64 p;
 * .global .f32 t[2] = {…};
 */
struct gsr_var {
	const char *space;		/* "reg" "shared" "local" "param" "global" "const" "tex" */
	const char *linkage;		/* "extern" "visible" "weak" "common" or NULL */
	unsigned int align;		/* 0 none given */
	unsigned int vec;		/* 0, 2, 4 */
	const char *type;		/* "b8" "u32" "f64" "pred" "texref" … */
	const char *attrs;		/* .ptr .global .align 4, .attribute(…): text between type
					 * and name, or NULL */
	const char *name;
	unsigned int range;		/* %r<21>: 21; 0 none */
	uint64_t dims[4];		/* array dimensions; an empty [] is 0, or what its
					 * initializer has */
	unsigned int n_dims;
	const char *init;		/* initializer as written, without '='; NULL none */
	unsigned int line;
};

enum gsr_stmt_kind {
	GSR_STMT_INSN, GSR_STMT_LABEL, GSR_STMT_VAR, GSR_STMT_OPEN, GSR_STMT_CLOSE,
	GSR_STMT_DIRECTIVE,		/* .loc, .pragma, .branchtargets, .callprototype,
					 * .calltargets …: text */
};

struct gsr_stmt {
	struct gsr_stmt *prev, *next;
	enum gsr_stmt_kind kind;
	unsigned int line;
	union {
		struct gsr_insn *insn;
		struct gsr_var *var;
		const char *label;	/* LABEL */
		const char *text;	/* DIRECTIVE, with its label ("p: .callprototype") and ';'
					 * as written */
	};
};

struct gsr_function {
	struct gsr_function *next;
	bool entry;			/* .entry, else .func */
	const char *linkage;		/* as of a variable */
	const char *attrs;		/* .attribute(…), .noreturn …; or NULL */
	const char *name;
	struct gsr_var *rets, *params;
	unsigned int n_rets, n_params;
	const char **perf;		/* ".maxntid 256, 1, 1", ".reqntid …", ".minnctapersm 2",
					 * ".maxnreg", ".noreturn" */
	unsigned int n_perf;
	bool body;			/* false: a declaration only */
	struct gsr_stmt *first, *last;	/* the body without its outer braces */
	const struct gsr_writers *writers;	/* barrier.c; NULL: not computed */
	unsigned int line;
};

enum gsr_item_kind { GSR_ITEM_FUNCTION, GSR_ITEM_VAR, GSR_ITEM_DIRECTIVE };

struct gsr_item {			/* module scope, in order */
	struct gsr_item *next;
	enum gsr_item_kind kind;
	union {
		struct gsr_function *function;
		struct gsr_var *var;
		const char *text;	/* .file, .section …, .alias */
	};
};

struct gsr_module {
	struct gsr_arena *arena;
	const char *version;		/* "9.0" */
	const char *target;		/* "sm_90", also "sm_90a, debug" */
	unsigned int arch;		/* 90 */
	unsigned int address_size;
	struct gsr_item *first, *last;
};

/* parse.c. On failure *@out is NULL and @err says where. */
enum gsr_status gsr_parse(const char *text, size_t size, const char *name, struct gsr_module **out,
			  struct gsr_error *err);
void gsr_module_free(struct gsr_module *m);
/* Parses the statements of a body into @a. NULL: a syntax error, which is a bug of gsched */
struct gsr_function *gsr_parse_body(struct gsr_arena *a, const char *text, struct gsr_error *err);

/* print.c: malloc'd text, NUL-terminated; NULL out of memory. */
char *gsr_print(const struct gsr_module *m, size_t *size);

/* lines.c */
void gsr_remove(struct gsr_function *f, struct gsr_stmt *s);
void gsr_drop_lines(struct gsr_function *f);	/* removes its .loc directives */
bool gsr_is_line_info(const char *text);	/* a directive: .file, .loc or .section? */

/* Helpers */
struct gsr_insn *gsr_insn_copy(struct gsr_arena *a, const struct gsr_insn *insn);

static inline uint32_t gsr_initial(const char *mod)
{
	return 1u << (mod[0] & 31);
}

static inline void gsr_set_mod(struct gsr_insn *insn, unsigned int i, const char *mod)
{
	insn->mods[i] = mod;
	insn->initials |= gsr_initial(mod);
}

static inline bool gsr_insn_has(const struct gsr_insn *insn, const char *mod)
{
	unsigned int i;

	/* most do not, which one look tells */
	if (!(insn->initials & gsr_initial(mod)))
		return false;
	for (i = 0; i < insn->n_mods; i++)
		if (insn->mods[i][0] == mod[0] && !strcmp(insn->mods[i], mod))
			return true;
	return false;
}

struct gsr_function *gsr_module_function(const struct gsr_module *m, const char *name);
struct gsr_var *gsr_module_var(const struct gsr_module *m, const char *name);

#endif /* GSR_PTX_H */
