// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Operands: registers and constants become rows; special registers and addresses of locals a move
 * to a spare row first.
 */
#include <stdlib.h>
#include "decode.h"

/* stands for dynamic shared memory until its offset is known */
#define DYNAMIC_MARK	0x5d1a000000000000ull

static const struct special {
	const char *name;
	int sr;
} specials[] = {
	{ "%tid", SR_TID }, { "%ntid", SR_NTID }, { "%ctaid", SR_CTAID }, { "%nctaid", SR_NCTAID },
	{ "%laneid", SR_LANEID },
	{ "%warpid", SR_WARPID }, { "%nwarpid", SR_NWARPID }, { "%smid", SR_SMID },
	{ "%nsmid", SR_NSMID },
	{ "%gridid", SR_GRIDID }, { "%clock", SR_CLOCK }, { "%clock_hi", SR_CLOCK_HI },
	{ "%clock64", SR_CLOCK64 },
	{ "%globaltimer", SR_GLOBALTIMER }, { "%globaltimer_lo", SR_GLOBALTIMER_LO },
	{ "%globaltimer_hi", SR_GLOBALTIMER_HI }, { "%lanemask_eq", SR_LANEMASK_EQ },
	{ "%lanemask_le", SR_LANEMASK_LE },
	{ "%lanemask_lt", SR_LANEMASK_LT }, { "%lanemask_ge", SR_LANEMASK_GE },
	{ "%lanemask_gt", SR_LANEMASK_GT },
	{ "%dynamic_smem_size", SR_DYNAMIC_SMEM_SIZE }, { "%total_smem_size", SR_TOTAL_SMEM_SIZE },
	{ "%aggr_smem_size", SR_TOTAL_SMEM_SIZE }, { "%reserved_smem_offset_begin", SR_ZERO },
	{ "%reserved_smem_offset_end", SR_ZERO }, { "%reserved_smem_offset_cap", SR_ZERO },
	{ "%is_explicit_cluster", SR_ZERO }, { "%clusterid", SR_CTAID },
	{ "%nclusterid", SR_NCTAID },
	{ "%cluster_ctaid", SR_ZERO }, { "%cluster_nctaid", SR_ONE },
	{ "%cluster_ctarank", SR_ZERO },
	{ "%cluster_nctarank", SR_ONE }, { "%envreg1", SR_WORKSPACE_HI },
	{ "%envreg2", SR_WORKSPACE },
};

static int special(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(specials) / sizeof(*specials); i++)
		if (!strcmp(specials[i].name, name))
			return specials[i].sr;
	if (!strncmp(name, "%envreg", 7))
		return SR_ZERO;
	return -1;
}

static bool from_special(struct dec *d, const struct gsr_operand *o, int32_t *out)
{
	int sr = special(o->name);
	struct xinsn *in;

	if (sr < 0)
		return dec_fail(d, "unknown name %s", o->name);
	in = dec_emit_plain(d, x_special);
	if (!in)
		return false;
	in->o[0] = *out = dec_temp(d);
	in->op = (uint8_t)sr;
	in->mode = o->component == 'w' ? 3 : o->component ? (uint8_t)(o->component - 'x') : 0;
	if (in->mode > 3)
		return dec_fail(d, "%s.%c", o->name, o->component);
	return true;
}

static bool local_address(struct dec *d, uint64_t offset, bool tagged, int32_t *out)
{
	struct xinsn *in = dec_emit_plain(d, x_local_addr);

	if (!in)
		return false;
	in->o[0] = *out = dec_temp(d);
	in->imm = (int64_t)(offset + (tagged ? WIN_LOCAL : 0));
	return true;
}

static bool shared_const(struct dec *d, uint64_t at, int64_t offset, int32_t *out)
{
	struct patch *p;

	if (at != UINT64_MAX) {
		*out = dec_const(d, at + (uint64_t)offset);
		return *out != NO_OPND;
	}
	*out = dec_const(d, DYNAMIC_MARK + (uint64_t)offset);
	p = dec_grow(d, d->dynamics, d->n_dynamics, &d->dynamics_room, sizeof(*p));
	if (!p || *out == NO_OPND)
		return false;
	d->dynamics = p;
	p[d->n_dynamics++] = (struct patch){ (uint32_t)~*out, offset };
	return true;
}

/* r, or an element of a vector: v.x, v.r */
static bool register_row(struct dec *d, const struct name *n, const struct gsr_operand *o,
			 int32_t *out)
{
	static const char letters[] = "xyzwrgba";
	const char *c = o->component ? strchr(letters, o->component) : NULL;
	unsigned int element = c ? (unsigned int)(c - letters) % 4 : 0;

	if (o->selector || (n->vec ? !c || element >= n->vec : o->component))
		return dec_fail(d, "element of register %s", o->name);
	/* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): registers have names */
	*out = (int32_t)(n->value + element + (n->range ? strtoul(o->name + n->prefix, NULL, 10) :
					       0) * (n->size > 8 ? 2 : 1));
	return true;
}

/* A name used as a value: a register's, or the address of a variable or function */
static bool named(struct dec *d, const struct gsr_operand *o, int64_t offset, int32_t *out,
		  unsigned int *size)
{
	const struct name *n = dec_name(d, o->name, d->scope);
	const struct xsym *s;
	uint64_t at;

	*size = 8;
	if (n) {
		switch (n->kind) {
		case NAME_REG:
			*size = n->size;
			return register_row(d, n, o, out);
		case NAME_LOCAL:
			/* parameters of calls carry their space in the address; see mem_ptr */
			return local_address(d, n->value + (uint64_t)offset, true, out);
		case NAME_PARAM:
			*out = dec_const(d, WIN_PARAM + n->value + (uint64_t)offset);
			return *out != NO_OPND;
		case NAME_SHARED:
			return shared_const(d, n->value, offset, out);
		case NAME_GLOBAL:
			*out = dec_const(d, n->value + (uint64_t)offset);
			return *out != NO_OPND;
		default:
			return dec_fail(d, "%s is no value", o->name);
		}
	}
	s = vars_find(d->k->module, o->name);
	/* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): vars_find() has read it */
	if (!s && !strcmp(o->name, "WARP_SZ")) {
		*out = dec_const(d, 32 + (uint64_t)offset);
		return *out != NO_OPND;
	}
	if (!s)
		return from_special(d, o, out);
	switch (s->kind) {
	case SYM_SHARED:
		return dec_shared(d, s->var, &at) && shared_const(d, at, offset, out);
	case SYM_FUNCTION:
		dec_use(d, (unsigned int)s->value);
		*out = dec_const(d, function_address(d->k->module, s->value));
		return *out != NO_OPND;
	default:
		*out = dec_const(d, s->value + (uint64_t)offset);
		return *out != NO_OPND;
	}
}

bool opnd_src(struct dec *d, const struct gsr_operand *o, enum xtype t, int32_t *out)
{
	uint64_t v;
	unsigned int size;
	int64_t imm;
	bool a32;

	switch (o->kind) {
	case GSR_OPND_REG:
	case GSR_OPND_SYM:
		if (o->negated)
			return dec_fail(d, "negated register %s", o->name);
		if (!named(d, o, o->ival, out, &size))
			return false;
		return size > 8 ? dec_fail(d, "%s has 128 bits", o->name) : true;
	case GSR_OPND_ADDR:
		/* mov of a[3], the address of an array's element */
		return o->indexed ? opnd_addr(d, o, out, &imm, &a32) && (!imm || dec_unknown(d)) :
				    dec_unknown(d);
	case GSR_OPND_INT:
		v = (uint64_t)o->ival;
		if (t == T_F32)
			v = f32_bits((float)o->ival);
		else if (t == T_F64)
			v = f64_bits((double)o->ival);
		break;
	case GSR_OPND_F32:
		v = t == T_F64 ? f64_bits(as_f32(o->bits)) : o->bits;
		break;
	case GSR_OPND_F64:
		v = t == T_F32 ? f32_bits((float)as_f64(o->bits)) : o->bits;
		break;
	default:
		return dec_unknown(d);
	}
	*out = dec_const(d, v);
	return *out != NO_OPND;
}

bool opnd_dst(struct dec *d, const struct gsr_operand *o, int32_t *out)
{
	const struct name *n;

	if (o->kind == GSR_OPND_SINK) {
		*out = dec_temp(d);
		return true;
	}
	if ((o->kind != GSR_OPND_REG && o->kind != GSR_OPND_SYM) || o->negated)
		return dec_unknown(d);
	n = dec_name(d, o->name, d->scope);
	if (!n || n->kind != NAME_REG)
		return dec_fail(d, "%s is no register that can be written", o->name);
	if (n->size > 8)
		return dec_fail(d, "%s has 128 bits", o->name);
	return register_row(d, n, o, out);
}

bool opnd_wide(struct dec *d, const struct gsr_operand *o, int32_t *out)
{
	const struct name *n = o->name && !o->negated ? dec_name(d, o->name, d->scope) : NULL;

	if (o->kind == GSR_OPND_SINK) {
		*out = dec_temp(d);
		dec_temp(d);
		return true;
	}
	if (!n || n->kind != NAME_REG || n->size != 16)
		return dec_fail(d, "%s is no 128-bit register", o->name ? o->name : "operand");
	return register_row(d, n, o, out);
}

bool opnd_element(struct dec *d, const struct gsr_operand *o, unsigned int i, bool write,
		  int32_t *out)
{
	struct gsr_operand e = *o;

	if (o->kind == GSR_OPND_VEC) {
		if (i >= o->n_items)
			return dec_unknown(d);
		e = o->items[i];
	} else {
		if (!o->name || o->component || o->selector)
			return dec_unknown(d);
		e.component = "xyzw"[i & 3];
	}
	return write ? opnd_dst(d, &e, out) : opnd_src(d, &e, T_B64, out);
}

static const struct name *pred_name(struct dec *d, const struct gsr_operand *o)
{
	const struct name *n;

	if (o->kind != GSR_OPND_REG && o->kind != GSR_OPND_SYM)
		return NULL;
	n = dec_name(d, o->name, d->scope);
	return n && n->kind == NAME_PRED ? n : NULL;
}

bool opnd_is_pred(struct dec *d, const struct gsr_operand *o)
{
	return pred_name(d, o) != NULL;
}

static int32_t pred_number(const struct name *n, const char *text)
{
	return 2 * (int32_t)(n->value + (n->range ? strtoul(text + n->prefix, NULL, 10) : 0));
}

bool opnd_pred(struct dec *d, const struct gsr_operand *o, int32_t *out)
{
	const struct name *n = pred_name(d, o);

	if (n) {
		*out = pred_number(n, o->name) + (o->negated ? 1 : 0);
		return true;
	}
	if (o->kind != GSR_OPND_INT)
		return dec_fail(d, "%s is no predicate", o->name ? o->name : "operand");
	*out = o->ival ? P_TRUE : P_FALSE;
	return true;
}

bool opnd_pred_dst(struct dec *d, const struct gsr_operand *o, int32_t *out)
{
	const struct name *n = pred_name(d, o);

	*out = NO_OPND;
	if (o->kind == GSR_OPND_SINK)
		return true;
	if (!n || o->negated)
		return dec_fail(d, "%s is no predicate that can be written",
				o->name ? o->name : "operand");
	*out = pred_number(n, o->name);
	return true;
}

bool opnd_guard(struct dec *d, const char *name, int32_t *out)
{
	struct gsr_operand o = { .kind = GSR_OPND_REG, .name = name };

	return opnd_pred_dst(d, &o, out);
}

bool opnd_addr(struct dec *d, const struct gsr_operand *o, int32_t *row, int64_t *imm, bool *a32)
{
	const struct gsr_operand *base;
	const struct xsym *var;
	unsigned int size = 8;

	*a32 = false;
	*imm = 0;
	if (o->kind != GSR_OPND_ADDR || o->n_items < 1 || o->n_items > 2 ||
	    (o->n_items == 2 && !o->indexed))
		return dec_unknown(d);
	base = &o->items[0];
	if (base->kind == GSR_OPND_INT) {
		*row = dec_const(d, (uint64_t)(base->ival + o->ival));
		return *row != NO_OPND;
	}
	if ((base->kind != GSR_OPND_REG && base->kind != GSR_OPND_SYM) || base->negated)
		return dec_unknown(d);
	*imm = o->ival + base->ival;
	if (o->indexed) {
		if (o->items[1].kind != GSR_OPND_INT)
			return dec_unknown(d);
		var = dec_name(d, base->name, d->scope) ? NULL :
		      vars_find(d->k->module, base->name);
		/* the index of a module's array counts elements */
		*imm += o->items[1].ival * (int64_t)(var && var->var ?
						     xtype_size(xtype_parse(var->var->type)) : 1);
	}
	if (!named(d, base, 0, row, &size))
		return false;
	*a32 = size == 4;
	/* constant addresses take their offset now */
	if (*row < 0 && *imm && d->k->pool[~*row][0] >> 48 != DYNAMIC_MARK >> 48) {
		*row = dec_const(d, d->k->pool[~*row][0] + (uint64_t)*imm);
		*imm = 0;
	}
	return *row != NO_OPND;
}

/* An argument or result: a register, a constant, or a .param variable of the caller */
static bool call_arg(struct dec *d, const struct gsr_operand *o, bool result, struct xarg *a)
{
	const struct name *n = o->name ? dec_name(d, o->name, d->scope) : NULL;

	if (n && n->kind == NAME_LOCAL) {
		a->offset = (uint32_t)n->value;
		a->size = n->size;
		return true;
	}
	a->reg = true;
	a->size = 8;
	return result ? opnd_dst(d, o, &a->row) : opnd_src(d, o, T_B64, &a->row);
}

bool opnd_call(struct dec *d)
{
	const struct gsr_insn *in = d->insn;
	struct xcall *c = dec_alloc(d, sizeof(*c));
	const struct gsr_operand *target, *o = in->opnds, *end = o + in->n_opnds;
	const struct xsym *s = NULL;
	struct xinsn *x;
	int32_t row = NO_OPND;
	unsigned int i;

	if (!c)
		return false;
	c->caller = d->f;
	if (o < end && o->kind == GSR_OPND_LIST) {
		c->n_rets = o->n_items;
		c->rets = dec_alloc(d, o->n_items * sizeof(*c->rets));
		if (!c->rets)
			return false;
		for (i = 0; i < o->n_items; i++)
			if (!call_arg(d, &o->items[i], true, &c->rets[i]))
				return false;
		o++;
	}
	if (o >= end || !o->name)
		return dec_unknown(d);
	target = o++;
	if (o < end && o->kind == GSR_OPND_LIST) {
		c->n_args = o->n_items;
		c->args = dec_alloc(d, o->n_items * sizeof(*c->args));
		if (!c->args)
			return false;
		for (i = 0; i < o->n_items; i++)
			if (!call_arg(d, &o->items[i], false, &c->args[i]))
				return false;
	}
	if (!dec_name(d, target->name, d->scope))
		s = vars_find(d->k->module, target->name);
	if (s && s->kind == SYM_FUNCTION) {
		c->callee = &d->k->functions[s->value];
		dec_use(d, (unsigned int)s->value);
		if (!c->callee->fn->body) {
			c->builtin = call_builtin(target->name);
			if (!c->builtin)
				return dec_fail(d, "call of %s, which has no body", target->name);
		} else if (c->callee->fn->n_params != c->n_args ||
			   c->callee->fn->n_rets != c->n_rets) {
			return dec_fail(d, "call of %s with %u arguments and %u results, it "
					"has %u and %u", target->name, c->n_args, c->n_rets,
					c->callee->fn->n_params, c->callee->fn->n_rets);
		}
	} else {
		if (!opnd_src(d, target, T_B64, &row))
			return false;
		d->indirect = true;
	}
	x = dec_emit(d, x_call);
	if (!x)
		return false;
	x->ext = c;
	x->o[1] = row;
	return true;
}
