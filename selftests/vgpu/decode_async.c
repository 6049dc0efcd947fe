// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * cp, mbarrier and what goes with them: forms that are told apart by the order of their modifiers.
 */
#include <stdlib.h>
#include "decode.h"

/* The modifiers from @at on: takes the next if it is @text */
static bool take(const struct gsr_insn *i, unsigned int *at, const char *text)
{
	if (*at >= i->n_mods || strcmp(i->mods[*at], text) != 0)
		return false;
	++*at;
	return true;
}

static bool take_any(const struct gsr_insn *i, unsigned int *at, const char *const *texts)
{
	for (; *texts; texts++)
		if (take(i, at, *texts))
			return true;
	return false;
}

static bool end(const struct gsr_insn *i, unsigned int at)
{
	return at == i->n_mods;
}

static enum xspace shared_space(const struct gsr_insn *i, unsigned int *at)
{
	static const char *const names[] = { "shared", "shared::cta", "shared::cluster", NULL };

	return take_any(i, at, names) ? S_SHARED : S_NONE;
}

bool dec_xaddr(struct dec *d, const struct gsr_operand *o, struct xaddr *a)
{
	return opnd_addr(d, o, &a->row, &a->imm, &a->a32);
}

static struct xcopy *copy_new(struct dec *d)
{
	struct xcopy *c = dec_alloc(d, sizeof(*c));

	if (!c)
		return NULL;
	c->d.row = c->s.row = c->mbar.row = c->size = c->mask = c->ignore = NO_OPND;
	c->dspace = c->sspace = c->mspace = S_SHARED;
	return c;
}

static bool emit_ext(struct dec *d, xfn *fn, void *ext, struct xinsn **out)
{
	struct xinsn *in = dec_emit(d, fn);

	if (!in)
		return false;
	in->ext = ext;
	*out = in;
	return true;
}

/* cp.async.ca.shared.global [d], [s], n {, m or p} {, policy} */
static bool cp_small(struct dec *d, unsigned int at)
{
	const struct gsr_insn *i = d->insn;
	struct xcopy *c = copy_new(d);
	unsigned int n = i->n_opnds;
	struct xinsn *in;
	bool hint = false, cg;
	int64_t size;

	if (!c)
		return false;
	cg = take(i, &at, "cg");
	if ((!cg && !take(i, &at, "ca")) ||
	    !(take(i, &at, "shared") || take(i, &at, "shared::cta")) || !take(i, &at, "global"))
		return dec_unknown(d);
	for (; at < i->n_mods && !strncmp(i->mods[at], "L2::", 4); at++)
		hint |= !strcmp(i->mods[at], "L2::cache_hint");
	n -= hint && n > 3;
	if (!end(i, at) || n < 3 || n > 4 || i->opnds[2].kind != GSR_OPND_INT)
		return dec_unknown(d);
	size = i->opnds[2].ival;
	if (size != 16 && (cg || (size != 4 && size != 8)))
		return dec_unknown(d);
	if (!dec_xaddr(d, &i->opnds[0], &c->d) || !dec_xaddr(d, &i->opnds[1], &c->s))
		return false;
	c->sspace = S_GLOBAL;
	if (n == 4 && !(opnd_is_pred(d, &i->opnds[3]) ? opnd_pred(d, &i->opnds[3], &c->ignore) :
			opnd_src(d, &i->opnds[3], T_U32, &c->size)))
		return false;
	if (!emit_ext(d, x_copy, c, &in))
		return false;
	in->size = (uint8_t)size;
	return true;
}

static bool cp_commit_wait(struct dec *d, unsigned int at, bool bulk)
{
	const struct gsr_insn *i = d->insn;
	struct xinsn *in;
	int64_t keep = -1;
	xfn *fn;

	if (take(i, &at, "commit_group")) {
		fn = x_copy_commit;
	} else if (take(i, &at, "wait_group")) {
		fn = x_copy_wait;
		if (bulk)
			take(i, &at, "read");
		if (i->n_opnds != 1 || i->opnds[0].kind != GSR_OPND_INT || i->opnds[0].ival < 0)
			return dec_unknown(d);
		keep = i->opnds[0].ival;
	} else if (!bulk && take(i, &at, "wait_all")) {
		fn = x_copy_wait;
	} else {
		return dec_unknown(d);
	}
	if (!end(i, at) || i->n_opnds != (keep >= 0))
		return dec_unknown(d);
	in = dec_emit(d, fn);
	if (!in)
		return false;
	in->mode = bulk;
	in->imm = keep;
	return true;
}

static bool cp_arrive(struct dec *d, unsigned int at)
{
	const struct gsr_insn *i = d->insn;
	struct xcopy *c = copy_new(d);
	bool noinc = take(i, &at, "noinc");
	struct xinsn *in;

	if (!c)
		return false;
	c->mspace = (uint8_t)shared_space(i, &at);
	if (!take(i, &at, "b64") || !end(i, at) || i->n_opnds != 1)
		return dec_unknown(d);
	if (!dec_xaddr(d, &i->opnds[0], &c->mbar) || !emit_ext(d, x_copy_arrive, c, &in))
		return false;
	in->flags = noinc ? F_NOCOMPLETE : 0;
	return true;
}

/* The operation and type of cp.reduce.async.bulk */
static bool reduction(const struct gsr_insn *i, unsigned int *at, bool to_global, struct xinsn *r)
{
	static const struct {
		const char *name;
		enum xop op;
	} ops[] = { { "and", A_AND }, { "or", A_OR }, { "xor", A_XOR }, { "add", A_ADD },
	{ "inc", A_INC }, { "dec", A_DEC },
		    { "min", A_MIN }, { "max", A_MAX } };
	enum xtype t;
	bool noftz, half;
	size_t k;

	for (k = 0; k < sizeof(ops) / sizeof(*ops) && !take(i, at, ops[k].name); k++)
		;
	if (k == sizeof(ops) / sizeof(*ops))
		return false;
	noftz = take(i, at, "noftz");
	t = *at < i->n_mods ? xtype_parse(i->mods[*at]) : T_NONE;
	++*at;
	half = t == T_F16 || t == T_BF16;
	r->op = (uint8_t)ops[k].op;
	r->type = (uint8_t)t;
	switch (ops[k].op) {
	case A_AND: case A_OR: case A_XOR: return t == T_B32 || (t == T_B64 && to_global);
	case A_INC: case A_DEC: return t == T_U32;
	case A_ADD:
		if (half || noftz)
			return half && noftz && to_global;
		return t == T_U32 || t == T_S32 || t == T_U64 ||
		       (to_global && (t == T_F32 || t == T_F64));
	default: return t == T_U32 || t == T_S32 ||
		(to_global && (t == T_U64 || t == T_S64 || half));
	}
}

/* [d], [s], size {, [mbar]} {, policy} {, byte mask} */
static bool cp_bulk(struct dec *d, unsigned int at, bool reduce)
{
	const struct gsr_insn *i = d->insn;
	bool to_global = take(i, &at, "global"), from_global = false, mbar, hint, mask = false;
	struct xcopy *c = copy_new(d);
	struct xinsn r = { 0 }, *in;
	unsigned int next = 3;

	if (!c)
		return false;
	if (!to_global && !take(i, &at, "shared::cluster") && !take(i, &at, "shared::cta"))
		return dec_unknown(d);
	if (!to_global && !reduce)
		from_global = take(i, &at, "global");
	if (!from_global && !take(i, &at, "shared::cta"))
		return dec_unknown(d);
	mbar = !to_global && take(i, &at, "mbarrier::complete_tx::bytes");
	if (!mbar && !(to_global && take(i, &at, "bulk_group")))
		return dec_unknown(d);
	hint = take(i, &at, "L2::cache_hint");
	if (reduce ? !reduction(i, &at, to_global, &r) : to_global && take(i, &at, "cp_mask"))
		mask = true;
	if ((reduce && mask) || !end(i, at) || i->n_opnds != 3u + mbar + hint + mask)
		return dec_unknown(d);
	if (!dec_xaddr(d, &i->opnds[0], &c->d) || !dec_xaddr(d, &i->opnds[1], &c->s) ||
	    !opnd_src(d, &i->opnds[2], T_U32, &c->size) ||
	    (mbar && !dec_xaddr(d, &i->opnds[next++], &c->mbar)))
		return false;
	next += hint;
	if (mask && !opnd_src(d, &i->opnds[next], T_U16, &c->mask))
		return false;
	c->bulk = true;
	c->dspace = to_global ? S_GLOBAL : S_SHARED;
	c->sspace = from_global ? S_GLOBAL : S_SHARED;
	if (!emit_ext(d, x_copy, c, &in))
		return false;
	in->op = r.op;
	in->type = r.type;
	return true;
}

/* cp.async.bulk.prefetch.L2.global [a], size: the arguments are looked at, nothing is fetched */
static bool cp_prefetch(struct dec *d, unsigned int at)
{
	const struct gsr_insn *i = d->insn;
	struct xaddr a;
	int32_t row;
	bool hint;

	if (!take(i, &at, "L2") || !take(i, &at, "global"))
		return dec_unknown(d);
	hint = take(i, &at, "L2::cache_hint");
	if (!end(i, at) || i->n_opnds != 2u + hint)
		return dec_unknown(d);
	return dec_xaddr(d, &i->opnds[0], &a) && opnd_src(d, &i->opnds[1], T_U32, &row) &&
	       dec_emit(d, x_prefetch);
}

bool dec_cp(struct dec *d)
{
	const struct gsr_insn *i = d->insn;
	unsigned int at = 0;

	if (take(i, &at, "reduce"))
		return take(i, &at, "async") && take(i, &at, "bulk") ? cp_bulk(d, at, true) :
		       dec_unknown(d);
	if (!take(i, &at, "async"))
		return dec_unknown(d);
	if (take(i, &at, "bulk")) {
		if (take(i, &at, "prefetch"))
			return cp_prefetch(d, at);
		if (at < i->n_mods && (!strcmp(i->mods[at], "commit_group") ||
				       !strcmp(i->mods[at], "wait_group")))
			return cp_commit_wait(d, at, true);
		return cp_bulk(d, at, false);
	}
	if (take(i, &at, "mbarrier"))
		return take(i, &at, "arrive") ? cp_arrive(d, at) : dec_unknown(d);
	if (at < i->n_mods && (!strcmp(i->mods[at], "ca") || !strcmp(i->mods[at], "cg")))
		return cp_small(d, at);
	return cp_commit_wait(d, at, false);
}

static bool sem_scope(const struct gsr_insn *i, unsigned int *at, const char *const *sems)
{
	static const char *const scopes[] = { "cta", "cluster", NULL };

	return !take_any(i, at, sems) || take_any(i, at, scopes);
}

static bool mbar_wait(struct dec *d, unsigned int at, bool may_block)
{
	static const char *const sems[] = { "acquire", "relaxed", NULL };
	const struct gsr_insn *i = d->insn;
	bool parity = take(i, &at, "parity"), a32;
	int32_t p, row[2], hint;
	struct xinsn *in;
	enum xspace space;
	int64_t imm;

	if (!sem_scope(i, &at, sems))
		return dec_unknown(d);
	space = shared_space(i, &at);
	if (!take(i, &at, "b64") || !end(i, at) || i->n_opnds < 3 || i->n_opnds > 3u + may_block)
		return dec_unknown(d);
	if (!opnd_pred_dst(d, &i->opnds[0], &p) ||
	    !opnd_addr(d, &i->opnds[1], &row[0], &imm, &a32) ||
	    !opnd_src(d, &i->opnds[2], parity ? T_U32 : T_B64, &row[1]) ||
	    (i->n_opnds > 3 && !opnd_src(d, &i->opnds[3], T_U32, &hint)))
		return false;
	in = dec_emit(d, x_mbar_wait);
	if (!in)
		return false;
	in->o[0] = row[0];
	in->o[2] = row[1];
	in->p[0] = p;
	in->imm = imm;
	in->a32 = a32;
	in->space = (uint8_t)space;
	in->flags = parity ? F_PARITY : 0;
	return true;
}

static bool mbar_pending(struct dec *d, unsigned int at)
{
	const struct gsr_insn *i = d->insn;
	struct xinsn *in;
	int32_t o[2];

	if (!take(i, &at, "b64") || !end(i, at) || i->n_opnds != 2)
		return dec_unknown(d);
	if (!opnd_dst(d, &i->opnds[0], &o[0]) || !opnd_src(d, &i->opnds[1], T_B64, &o[1]))
		return false;
	in = dec_emit(d, x_mbar_pending);
	if (!in)
		return false;
	in->o[1] = o[0];
	in->o[2] = o[1];
	return true;
}

bool dec_mbarrier(struct dec *d)
{
	static const struct {
		const char *name;
		int op;
	} ops[] = { { "init", MB_INIT }, { "inval", MB_INVAL }, { "expect_tx", MB_EXPECT_TX },
		    { "complete_tx", MB_COMPLETE_TX }, { "arrive", MB_ARRIVE },
		    { "arrive_drop", MB_ARRIVE_DROP } };
	static const char *const any[] = { "release", "relaxed", NULL },
		*const relaxed[] = { "relaxed", NULL };
	const struct gsr_insn *i = d->insn;
	int32_t o[3] = { 0, NO_OPND, NO_OPND };
	unsigned int at = 0, k, n, flags = 0;
	struct xinsn *in;
	enum xspace space;
	bool arrive, a32;
	int64_t imm;

	if (take(i, &at, "test_wait"))
		return mbar_wait(d, at, false);
	if (take(i, &at, "try_wait"))
		return mbar_wait(d, at, true);
	if (take(i, &at, "pending_count"))
		return mbar_pending(d, at);
	for (k = 0; k < sizeof(ops) / sizeof(*ops) && !take(i, &at, ops[k].name); k++)
		;
	if (k == sizeof(ops) / sizeof(*ops))
		return dec_unknown(d);
	arrive = ops[k].op >= MB_ARRIVE;
	if (arrive && take(i, &at, "expect_tx"))
		flags = F_EXPECT_TX;
	else if (arrive && take(i, &at, "noComplete"))
		flags = F_NOCOMPLETE;
	if (ops[k].op > MB_INVAL && !sem_scope(i, &at, arrive ? any : relaxed))
		return dec_unknown(d);
	space = shared_space(i, &at);
	/* the qualifiers are also written the other way round */
	if (arrive && !sem_scope(i, &at, any))
		return dec_unknown(d);
	if (!take(i, &at, "b64") || !end(i, at))
		return dec_unknown(d);
	n = arrive + 1u + (ops[k].op != MB_INVAL);
	if (i->n_opnds != n && !(arrive && !flags && i->n_opnds == n - 1))
		return dec_unknown(d);
	if (arrive && i->opnds[0].kind != GSR_OPND_SINK && !opnd_dst(d, &i->opnds[0], &o[1]))
		return false;
	if (!opnd_addr(d, &i->opnds[arrive], &o[0], &imm, &a32))
		return false;
	if (i->n_opnds > arrive + 1u && !opnd_src(d, &i->opnds[arrive + 1u], T_U32, &o[2]))
		return false;
	in = dec_emit(d, x_mbar);
	if (!in)
		return false;
	memcpy(in->o, o, sizeof(o));
	in->op = (uint8_t)ops[k].op;
	in->space = (uint8_t)space;
	in->flags = flags;
	in->imm = imm;
	in->a32 = a32;
	return true;
}

/* fence, membar: all of them order everything here; only their names are checked */
bool dec_fence(struct dec *d)
{
	static const char *const sems[] = { "sc", "acq_rel", "acquire", "release", NULL };
	static const char *const scopes[] = { "cta", "cluster", "gpu", "sys", NULL };
	static const char *const levels[] = { "cta", "gl", "sys", NULL };
	static const char *const kinds[] = { "alias", "async", "async.global", "async::generic",
					     "tensormap::generic", NULL };
	static const char *const spaces[] = { "global", "shared::cta", "shared::cluster", NULL };
	const struct gsr_insn *i = d->insn;
	unsigned int at = 0, n = 0;
	bool ok;

	if (take(i, &at, "mbarrier_init")) {
		ok = i->op == GSR_OP_FENCE && take(i, &at, "release") && take(i, &at, "cluster");
	} else if (take(i, &at, "proxy")) {
		ok = take_any(i, &at, kinds);
		if (take_any(i, &at, sems)) {
			bool acquire = !strcmp(i->mods[at - 1], "acquire");

			if (take(i, &at, "sync_restrict::shared::cta") ||
			    take(i, &at, "sync_restrict::shared::cluster"))
				n = 0;
			else
				n = acquire ? 2 : 0;
			ok &= take_any(i, &at, scopes);
		} else {
			take_any(i, &at, spaces);
		}
	} else if (i->op == GSR_OP_MEMBAR) {
		ok = take_any(i, &at, levels);
	} else {
		take_any(i, &at, sems);
		if (take(i, &at, "sync_restrict::shared::cta") ||
		    take(i, &at, "sync_restrict::shared::cluster"))
			n = 0;
		ok = take_any(i, &at, scopes);
	}
	if (!ok || !end(i, at) || i->n_opnds != n)
		return dec_unknown(d);
	return dec_emit(d, x_fence);
}

/* Hints. The address is looked at, nothing is fetched or given up */
bool dec_hint(struct dec *d)
{
	static const char *const levels[] = { "L1", "L2", "L2::evict_last",
					      "L2::evict_normal", NULL };
	static const char *const spaces[] = { "global", "local", "const", "param",
					      "const::cta", NULL };
	const struct gsr_insn *i = d->insn;
	unsigned int at = 0, n = 1;
	struct xaddr a;
	bool ok;

	switch (i->op) {
	case GSR_OP_PREFETCH:
		take_any(i, &at, spaces);
		ok = take_any(i, &at, levels) || take(i, &at, "tensormap");
		break;
	case GSR_OP_PREFETCHU:
		ok = take(i, &at, "L1");
		break;
	case GSR_OP_APPLYPRIORITY:
		take(i, &at, "global");
		ok = take(i, &at, "L2::evict_normal");
		n = 2;
		break;
	case GSR_OP_DISCARD:
		take(i, &at, "global");
		ok = take(i, &at, "L2");
		n = 2;
		break;
	default:	/* pmevent */
		take(i, &at, "mask");
		return end(i, at) && i->n_opnds == 1 && i->opnds[0].kind == GSR_OPND_INT ?
		       dec_emit(d, x_prefetch) != NULL :
			dec_unknown(d);
	}
	if (!ok || !end(i, at) || i->n_opnds != n ||
	    (n == 2 && (i->opnds[1].kind != GSR_OPND_INT || i->opnds[1].ival != 128)))
		return dec_unknown(d);
	return dec_xaddr(d, &i->opnds[0], &a) && dec_emit(d, x_prefetch);
}

/* createpolicy: a policy is a number that only hints are given */
bool dec_policy(struct dec *d)
{
	static const char *const priorities[] = { "L2::evict_last", "L2::evict_normal",
						  "L2::evict_first", "L2::evict_unchanged", NULL };
	const struct gsr_insn *i = d->insn;
	unsigned int at = 0, k;
	struct xinsn *in;
	int32_t row, skip;
	struct xaddr a;
	bool range = take(i, &at, "range"), ok = true;

	if (range) {
		take(i, &at, "global");
		ok = take_any(i, &at, priorities);
		take_any(i, &at, priorities);
	} else if (take(i, &at, "fractional")) {
		ok = take_any(i, &at, priorities);
		take_any(i, &at, priorities);
	} else {
		ok = take(i, &at, "cvt") && take(i, &at, "L2");
	}
	if (!ok || !take(i, &at, "b64") || !end(i, at) || !i->n_opnds || i->n_opnds > 4)
		return dec_unknown(d);
	if (!opnd_dst(d, &i->opnds[0], &row))
		return false;
	for (k = 1; k < i->n_opnds; k++)
		if (i->opnds[k].kind == GSR_OPND_ADDR ? !dec_xaddr(d, &i->opnds[k], &a) :
		    !opnd_src(d, &i->opnds[k], T_U32, &skip))
			return false;
	in = dec_emit(d, x_mov);
	if (!in)
		return false;
	in->o[0] = row;
	in->o[1] = dec_const(d, 0);
	return in->o[1] != NO_OPND;
}
