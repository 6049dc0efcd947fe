/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Inside the decoder: one function being decoded. decode_kernel.c has frames, names and labels,
 * decode_insn.c the instructions.
 */
#ifndef VGPU_DECODE_H
#define VGPU_DECODE_H

#include "exec_priv.h"

enum name_kind { NAME_REG, NAME_PRED, NAME_LOCAL, NAME_PARAM, NAME_SHARED, NAME_GLOBAL, NAME_LABEL,
		 NAME_TABLE };

struct name {
	const char *name;
	size_t prefix;			/* length without trailing digits */
	unsigned int scope;
	enum name_kind kind;
	unsigned int range;		/* registers %r<range>; 0 a single one */
	unsigned int size;		/* register: bytes; variable: bytes */
	unsigned int vec;		/* register: elements of a vector, 0 none */
	uint64_t value;			/* row, predicate, offset, address, pc */
	const char *text;		/* TABLE: the directive */
	int32_t next;			/* of the hash chain */
};

struct fixup {
	uint32_t insn;			/* whose target; with @table: its slot */
	struct xtable *table;
	const char *label;
	unsigned int scope, line;
};

struct dec {
	struct vgpu_kernel *k;
	struct xfunction *f;
	const struct gsr_function *fn;
	bool entry;
	struct name *names;
	uint32_t n_names, names_room;
	int32_t hash[256];
	unsigned int *parents;		/* of each scope */
	unsigned int n_scopes, scopes_room, scope;
	struct fixup *fixups;
	size_t n_fixups, fixups_room;
	uint32_t rows, preds, local;
	unsigned int line;
	const struct gsr_insn *insn;
	bool indirect;			/* the kernel calls through pointers */
	bool failed;
	/* what the kernel's shared variables are laid out as */
	struct shared_var {
		const struct gsr_var *var;
		uint64_t offset;
	} *shared;
	size_t n_shared, shared_room, shared_size;
	uint64_t dynamic;		/* offset of dynamic shared memory, patched at the end */
	struct patch {
		uint32_t pool;
		int64_t offset;
	} *dynamics;			/* constant rows that name it */
	size_t n_dynamics, dynamics_room;
};

/* All return false / negative and note the error in the kernel */
bool dec_fail(struct dec *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool dec_unknown(struct dec *d);
void *dec_grow(struct dec *d, void *array, size_t n, size_t *room, size_t size);
struct xinsn *dec_emit(struct dec *d, xfn *fn);
struct xinsn *dec_emit_plain(struct dec *d, xfn *fn);	/* without the instruction's guard */
int32_t dec_const(struct dec *d, uint64_t v);
int32_t dec_temp(struct dec *d);
const struct name *dec_name(struct dec *d, const char *name, unsigned int scope);
void *dec_alloc(struct dec *d, size_t size);	/* lives as long as the kernel */
bool dec_fixup(struct dec *d, uint32_t insn, struct xtable *table, const char *label);
bool dec_use(struct dec *d, unsigned int function);
bool dec_shared(struct dec *d, const struct gsr_var *v, uint64_t *offset);
bool dec_insn(struct dec *d);
void dec_fill(struct xinsn *in, const struct xmods *md);	/* what the modifiers say */

/* decode_async.c, decode_atom.c, decode_cvt.c, decode_mma.c: whole instructions */
bool dec_cp(struct dec *d);
bool dec_mbarrier(struct dec *d);
bool dec_fence(struct dec *d);
bool dec_hint(struct dec *d);
bool dec_policy(struct dec *d);
bool dec_atom(struct dec *d);
bool dec_cvt(struct dec *d);
bool dec_mma(struct dec *d);
bool dec_wmma(struct dec *d);
bool dec_wgmma(struct dec *d);
bool dec_ldmatrix(struct dec *d);
bool dec_movmatrix(struct dec *d);
bool dec_video(struct dec *d);
bool dec_tex(struct dec *d);
bool dec_stack(struct dec *d);
bool dec_cluster(struct dec *d);
bool dec_set_half(struct dec *d);
bool dec_lop3_bool(struct dec *d);
bool dec_xaddr(struct dec *d, const struct gsr_operand *o, struct xaddr *a);

/* decode_opnd.c */
bool opnd_src(struct dec *d, const struct gsr_operand *o, enum xtype t, int32_t *out);
bool opnd_dst(struct dec *d, const struct gsr_operand *o, int32_t *out);
/* a 128-bit register: two rows */
bool opnd_wide(struct dec *d, const struct gsr_operand *o, int32_t *out);
bool opnd_pred(struct dec *d, const struct gsr_operand *o, int32_t *out);
bool opnd_pred_dst(struct dec *d, const struct gsr_operand *o, int32_t *out);
bool opnd_addr(struct dec *d, const struct gsr_operand *o, int32_t *row, int64_t *imm, bool *a32);
bool opnd_is_pred(struct dec *d, const struct gsr_operand *o);
/* Element @i of what a mov.v2 or mov.v4 names; false: it is no vector */
bool opnd_element(struct dec *d, const struct gsr_operand *o, unsigned int i, bool write,
		  int32_t *out);
bool opnd_call(struct dec *d);
bool opnd_guard(struct dec *d, const char *name, int32_t *out);

/* decode_flow.c: struct xwait of the instructions of a decoded function, [from, to) */
bool flow_waits(struct dec *d, uint32_t from, uint32_t to);

#endif /* VGPU_DECODE_H */
